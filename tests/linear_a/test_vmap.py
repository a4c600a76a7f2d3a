"""vmap is the loop over lanes: values and derivatives, eager and traced, loops and branches."""

import warnings
from typing import Any

import numpy as np
import pytest
from test_trace import close, staged

import lineara
from lineara import cond, fori_loop, switch, vmap, while_loop
from lineara.errors import BoundsError, ShapeError, StructureError

rng = np.random.default_rng(0)
A, B, w = rng.normal(size=(5, 3)), rng.normal(size=(5, 3)), rng.normal(size=3)


def one_by_one(f: Any, axes: tuple[Any, ...]) -> Any:
    """The same as a Python loop."""

    def looped(*args: Any) -> Any:
        n = next(np.shape(a)[x] for a, x in zip(args, axes, strict=True) if x is not None)
        pairs = list(zip(args, axes, strict=True))
        rows = [[a if x is None else np.take(a, i, x) for a, x in pairs] for i in range(n)]
        return np.stack([f(*row) for row in rows])

    return looped


def fills(x, w):
    y = np.zeros(3)
    for i in range(3):
        y[i] = np.sin(x[i]) * w[i] + (y[i - 1] if i else 0.0)
    return y


def branches(x, w):
    return cond(x[0] > 0, lambda: np.log(x[0]) * w, lambda: x * w[0])


def chooses(x, w):
    fs = [lambda x: x * w, lambda x: np.exp(x), lambda x: x[::-1] * w[0]]
    return switch(np.argmax(x), fs, x)


def newton(x, w):
    def again(c):
        return abs(c[0] ** 2 - x[0] ** 2) > 1e-12

    start = (abs(w[0]) + 1.0, 0)
    root, rounds = while_loop(again, lambda c: ((c[0] + x[0] ** 2 / c[0]) / 2, c[1] + 1), start)
    return root * w + rounds


def counted(x, w):
    def body(i, y):
        y[i] = np.sin(y[i - 1]) + x[i] * w[0]
        return y

    y = np.zeros(3)
    y[0] = x[0]
    return fori_loop(1, 3, body, y)


def positions(x, w):
    i = np.argmax(x)
    y = np.array(x)
    y[i] = w[i] * x[i]
    np.add.at(y, np.argsort(x)[:2], 1.0)
    return y * x[i] + w[np.argsort(x)]


def linear_algebra(x, w):
    return np.linalg.solve(np.outer(x, x) + np.eye(3) * 2, w) + np.sort(x) + np.cumsum(x)


FUNCTIONS = [fills, branches, chooses, newton, counted, positions, linear_algebra]
CALLS = [((0, None), (A, w)), ((1, 0), (A.T, B))]


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize(("axes", "args"), CALLS, ids=["shared", "both"])
def test_values_and_gradients_are_those_of_a_loop(f, axes, args):
    expected = one_by_one(f, axes)(*args)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nobody takes the logarithm of what is not positive
        close(vmap(f, axes)(*args), expected, 1e-12)
    c = rng.normal(size=expected.shape)

    def weighted(v):
        return lambda *a: np.sum(c * v(*a))

    both = (0, 1)
    g = lineara.grad(weighted(vmap(f, axes)), both)(*args)
    for a, b in zip(g, lineara.grad(weighted(one_by_one(f, axes)), both)(*args), strict=True):
        close(a, b)
    value, h = staged(weighted(vmap(f, axes)), *args)
    close(value, np.sum(c * expected), 1e-12)
    for a, b in zip(h, g, strict=True):
        close(a, b)


def test_nested_and_out_axes():
    outer = vmap(vmap(lambda x, y: x * y, (None, 0)), (0, None), out_axes=1)
    close(outer(A[0], B[:, 0]), np.outer(B[:, 0], A[0]))
    assert vmap(lambda x: x, 0, 1)(A).shape == (3, 5)
    close(vmap(lambda x: w, 0, None)(A), w)


def test_of_gradients_and_of_what_is_captured():
    def loss(v):
        return np.sum(np.sin(v) * w)

    close(vmap(lineara.grad(loss))(A), np.cos(A) * w)

    def whole(scale):
        return np.sum(vmap(lambda x: x * scale[np.argmax(x)])(A))

    close(lineara.grad(whole)(w), [A[np.argmax(A, 1) == i].sum() for i in range(3)])


def test_containers_and_constants():
    found = vmap(lambda p, n: {"y": p["a"] * p["b"] ** n, "n": n}, ({"a": 0, "b": None}, None))(
        {"a": A, "b": 2.0}, 3
    )
    close(found["y"], A * 8)
    assert found["n"].tolist() == [3] * 5


def test_every_lane_takes_its_own_branch():
    x = np.array([4.0, -1.0, 9.0])
    roots = vmap(lambda v: cond(v > 0, lambda: np.sqrt(v), lambda: v * 0))(x)
    assert roots.tolist() == [2.0, 0.0, 3.0]
    g = lineara.grad(lambda v: np.sum(vmap(lambda u: cond(u > 0, np.sqrt, np.square, u))(v)))(x)
    close(g, [0.25, -2.0, 1 / 6])


@pytest.mark.parametrize(
    ("call", "kind", "said"),
    [
        (lambda: vmap(lambda x, y: x)(A, B[:2]), ShapeError, "lanes are 5, 2"),
        (lambda: vmap(lambda x: x)(2.0), ShapeError, "no axis 0"),
        (lambda: vmap(lambda x: x, None)(A), ShapeError, "lanes are none"),
        (lambda: vmap(lambda x: x, (0, 0))(A), StructureError, "in_axes"),
        (lambda: vmap(lambda x: x, ({"a": 0},))(A), StructureError, "in_axes"),
        (
            lambda: vmap(lambda i: switch(i, [lambda: 1.0, lambda: 2.0]))(np.array([0, 2])),
            BoundsError,
            "out of range",
        ),
    ],
)
def test_what_vmap_cannot_do_is_an_error(call, kind, said):
    with pytest.raises(kind, match=said):
        call()
