"""Comprehensions that make lists, and `map`, of staged values: loops of the program."""

import numpy as np
import pytest

import lineara
from lineara.staging.capture import trace as capture

X = np.array([0.5, -1.0, 2.0, 3.0, 0.1, -0.3, 0.7])


def of_an_array(x):
    ys = [np.sin(v) * v for v in x]
    zs = [a * b for a, b in zip(ys, x, strict=True)]
    return ys[0] * zs[-1] + len(ys) + sum(zs) + np.array(ys) @ x + max(ys)


def filtered(x):
    ys = [2 * v for v in x if v > 0.2 if v < 2.5]
    s = 0.0
    for y in ys:
        s = 0.5 * s + y
    return s + ys[0] + ys[-1] * len(ys)


def nested(x):
    a = [[u * v for v in x[:5]] for u in x]
    return sum([sum(r) for r in a]) + a[1][2] + np.array(a).sum() + len(a[0])


def of_several(x):
    a = [u * v for u in x for v in x]
    return sum(a) + a[5] + len(a)


def by_the_counter(x):
    n = len(x)
    d = [[abs(x[i] - x[j]) + i for j in range(n)] for i in range(n)]
    s = 0.0
    for i in range(n):
        s += min(d[i]) + d[i][i // 2]
    return s


def of_pairs(x):
    ps = [(v, np.cos(v)) for v in x]
    s = 0.0
    for a, b in ps:
        s = 0.5 * s + a * b
    return s + ps[2][1]


def of_rows(x):
    rows = [x[:3] * v for v in x]
    return np.stack(rows).sum() + rows[1] @ rows[2]


def with_a_branch(x):
    ys = [v if v > 0 else 0.5 * v for v in x]
    flags = [v > 0.2 for v in x]
    return sum(ys) + ys[1] * sum(flags)


def mapped(x):
    total = sum(map(lambda v: np.sin(v) * v, x)) + sum(map(lambda a, b: a * b, x, x))
    s = 0.0
    for v in map(np.cos, x):
        s = 0.5 * s + v
    return total + s


def in_a_loop(x):
    a = [[0.0] * 4 for _ in range(4)]
    for v in x:
        a = [[0.5 * a[i][j] + v * (i + j) for j in range(4)] for i in range(4)]
    return sum(map(sum, a)) + a[3][1]


FUNCTIONS = [
    of_an_array, filtered, nested, of_several, by_the_counter, of_pairs, of_rows, with_a_branch,
    mapped, in_a_loop,
]  # fmt: skip


@pytest.mark.parametrize("f", FUNCTIONS)
def test_comprehensions_are_those_of_python(f):
    program = capture(f, X)
    for x in (X, X[::-1].copy(), 0.3 * X, np.abs(X)):
        np.testing.assert_allclose(program(x), f(x), rtol=1e-15)
    given, expected = lineara.jit(lineara.grad(f))(X), lineara.grad(f)(X)
    np.testing.assert_allclose(given, expected, rtol=1e-11, atol=1e-12)
    given, expected = lineara.jit(lineara.hessian(f))(X), lineara.hessian(f)(X)
    np.testing.assert_allclose(given, expected, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("f", FUNCTIONS)
def test_the_size_of_a_program_does_not_depend_on_the_items(f):
    assert capture(f, np.tile(X, 10)).size() == capture(f, np.tile(X, 13)).size()


def test_what_python_knows_stays_known():
    def f(x):
        sizes = [k + 1 for k in range(5)]
        names = [f"n{k}" for k in range(5)]
        parts = [np.zeros(n) + x[0] for n in sizes]
        some = [k for k in range(6) if k % 2]
        pairs = [(k, v) for k, v in enumerate(x)]
        lower = [x[i] * x[j] for i in range(4) for j in range(i)]
        chosen = [x[i] for i in range(5) if i != 2]
        table = dict(zip(names, parts, strict=True))
        y = np.zeros(some[2])
        return table["n3"].sum() + len(y) + x[pairs[2][0]], np.array(lower), np.array(chosen), names

    assert repr(capture(f, X)(X)) == repr(f(X))


def test_what_is_returned_is_a_list_of_python_s():
    def f(x):
        ys = [float(v) for v in x if v > 0]
        return ys, [[float(v), 1.0] for v in x], [v for v in x[:0]], [*map(np.sin, x)]

    program = capture(f, X)
    for x in (X, -X):
        assert repr(program(x)) == repr(f(x))


def test_a_variable_of_a_comprehension_is_its_own():
    def f(x):
        v = k = 10.0
        ys = [v * k for k, v in zip(x, x, strict=True)]

        def put():
            nonlocal v
            v = v + 1.0
            return v

        zs = [put() + u for u in x]
        return v * k + sum(ys), zs[-1], sum(v for v in x) + v

    assert capture(f, X)(X) == f(X)
