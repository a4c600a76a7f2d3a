"""Branches, loops and calls: plain Python outside a trace, forms of the language inside."""

import math
from typing import Any

import numpy as np
import pytest
from test_trace import agree, close, staged

import lineara
from lineara import cond, fori_loop, function, scan, switch, while_loop
from lineara.engines import run
from lineara.errors import BoundsError, ShapeError, StagingError, StructureError
from lineara.linear_a.check import check
from lineara.passes.derivatives import grad
from lineara.passes.jvp import jvp

X = np.array([0.7, 1.9])


def branchy(x: Any) -> Any:
    a = 3.0 * x[0]
    return cond(x[0] > 0, lambda y: np.log(y) * a, lambda y: {"w": y * y}["w"], x[1])


def filled(x: Any) -> Any:
    y = np.zeros(6)
    y[0] = x[0]

    def body(i: Any, y: Any) -> Any:
        y[i] = np.sin(y[i - 1]) * x[1] + x[i % 2]
        return y

    return np.sum(fori_loop(1, 6, body, y) ** 2)


def recurrent(x: Any) -> Any:
    def step(c: Any, row: Any) -> Any:
        n = {"h": np.tanh(c["h"] * row[0] + x[0]), "count": c["count"] + 1}
        return n, (c["h"] * row, None)

    c, (rows, _) = scan(step, {"h": x[1], "count": 0}, np.outer(x, x), reverse=True)
    return c["h"] + np.sum(rows) * c["count"]


def newton(x: Any) -> Any:
    def again(c: Any) -> Any:
        return abs(c[0] * c[0] - x[0]) > 1e-13

    root, rounds = while_loop(again, lambda c: ((c[0] + x[0] / c[0]) / 2, c[1] + 1), (x[1], 0))
    return root * x[1] + rounds


@function
def wave(x: Any, k: int = 2) -> Any:
    return np.sin(x) * k


def calls(x: Any) -> Any:
    y = wave(wave(x)) + wave(x, k=3)
    return np.sum(y) + np.sum(fori_loop(0, 4, lambda i, c: wave(c), x))


def nested(x: Any) -> Any:
    def outer(i: Any, c: Any) -> Any:
        def inner(j: Any, d: Any) -> Any:
            return cond(d[j] > c[i], lambda d: d * x[0], lambda d: np.exp(-d + j + i), d)

        return c + fori_loop(0, 2, inner, c) * x[1]

    return np.prod(fori_loop(0, 2, outer, x))


PROGRAMS = [branchy, filled, recurrent, newton, calls, nested]


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("x", [X, np.array([-0.4, 0.8])], ids=["up", "down"])
def test_value_and_gradient_are_those_of_plain_python(f, x):
    if f is newton:
        x = np.abs(x)
    agree(f, x)
    close(lineara.trace(f, x)(x), f(x.copy()), 1e-14)


@pytest.mark.parametrize("f", [branchy, filled, recurrent, calls, nested], ids=lambda f: f.__name__)
def test_second_derivatives(f):
    t = lineara.trace(f, X)
    program = check(jvp(grad(t.program, t.name), f"{t.name}.grad"))
    d = np.array([0.3, -1.1])
    found = run(program, f"{t.name}.grad.jvp", *t.operands((X,)), d).lresults[0]
    close(found, lineara.jvp(lineara.grad(f), (X,), (d,))[1], 1e-9)


def test_the_branch_not_taken_is_not_run_in_any_direction():
    def f(x):
        return cond(x > 0, lambda: np.log(x), lambda: x * 1.0)

    value, g = staged(f, -2.0)
    assert (value, g) == (-2.0, (1.0,))
    assert "log" not in str(lineara.trace(f, 1.0).program.defs["f"])


def test_switch_chooses_by_a_staged_index():
    def f(x):
        return switch(np.argmax(x), [lambda y: y[0] * y[1], lambda y: np.sin(y[0])], x)

    agree(f, X)
    agree(f, X[::-1].copy())
    with pytest.raises(BoundsError):
        switch(2, [f, f], X)


def test_a_function_has_one_definition_for_each_form_of_arguments():
    t = lineara.trace(calls, X)
    assert [d for d in t.program.defs] == ["wave", "wave2", "body", "calls"]
    assert str(t).count("sin") == 2


def test_a_loop_is_one_definition_however_long():
    sizes = [
        lineara.trace(lambda x, n=n: fori_loop(0, n, lambda i, c: math.sin(c), x), 0.3).size()
        for n in (10, 1000)
    ]
    assert sizes[0] == sizes[1]


def test_bounds_may_be_staged():
    def f(x, n):
        return fori_loop(0, n[0], lambda i, c: c * x, x)

    t = lineara.trace(f, 2.0, np.array([3]))
    assert t(2.0, np.array([3])) == 16.0
    assert t(2.0, np.array([5])) == 64.0


def test_carries_become_floating_where_the_round_makes_them_so():
    agree(lambda x: fori_loop(0, 3, lambda i, c: c + x, 0), 0.5)


# --- recursion ------------------------------------------------------------------------------------


@function
def power(x, n):
    return cond(n == 0, lambda: np.ones(2), lambda: x * power(x, n - 1))


@function
def even(x, n):
    return cond(n == 0, lambda: x, lambda: np.sin(odd(x, n - 1)))


@function
def odd(x, n):
    return cond(n == 0, lambda: 0 * x, lambda: np.cos(even(x, n - 1)) * x)


@function
def tree(x, depth):
    def both():
        left, right = tree(x * 0.7, depth - 1), tree(np.sin(x), depth - 1)
        return {"sum": left["sum"] * right["sum"], "leaves": left["leaves"] + right["leaves"]}

    return cond(depth == 0, lambda: {"sum": x, "leaves": 1}, both)


def mutual(x, n):
    return np.sum(even(x, n[0]) + odd(x * 2, n[0])) + odd(x[1], n[0])  # of two types


def branching(x, n):
    found = tree(x[0], n[0])
    return found["sum"] * found["leaves"] * x[1]


def mentioning(x, n):
    y, c = np.exp(x[1]), np.arange(100.0)

    @function
    def go(n):
        return cond(n < 1, lambda: 0, lambda: y * np.sum(c * x[0]) + go(n - 1) * x[0])

    return go(n[0])


RECURSIONS = [lambda x, n: np.sum(power(x, n[0])), mutual, branching, mentioning]


@pytest.mark.parametrize("f", RECURSIONS, ids=["linear", "mutual", "branching", "mentioning"])
@pytest.mark.parametrize("n", [0, 1, 4])
def test_a_recursive_function_is_a_recursive_definition(f, n):
    n = np.array([n])
    close(lineara.trace(f, X, np.array([2]))(X, n), f(X, n))
    close(lineara.grad(f, policy="store_all")(X, n), lineara.grad(f)(X, n))
    t = lineara.trace(f, X, n)
    program = check(jvp(grad(t.program, t.name), f"{t.name}.grad"))
    d, beside = np.array([0.3, -1.1]), [np.zeros_like(c) for c in t.beside]
    found = run(program, f"{t.name}.grad.jvp", *t.operands((X, n)), d, *beside).lresults[0]
    _, expected = lineara.jvp(lineara.grad(lambda x: f(x, n)), (X,), (d,))
    close(found, expected, 1e-9)


def test_a_recursion_is_one_definition_for_each_type():
    t = lineara.trace(lambda x, n: power(x, n[0]), X, np.array([3]))
    assert [*t.program.defs] == ["branch", "branch2", "power", "f"]
    t = lineara.trace(mutual, X, np.array([3]))
    assert [d for d in t.program.defs if d[0] in "eo"] == ["odd", "even", "even2", "odd2"]


def test_every_lane_recurs_as_far_as_it_goes():
    A, n = np.array([0.7, 0.8, 0.9]), np.array([3, 0, 2])

    def lanes(a, n):
        return np.sum(lineara.vmap(even)(a, n) ** 2)

    def loop(a, n):
        return sum(even(a[i], n[i]) ** 2 for i in range(3))

    close(lineara.grad(lanes)(A, n), lineara.grad(loop)(A, n))
    close(lineara.grad(lanes, policy="store_all")(A, n), lineara.grad(loop)(A, n))


def recursive(g):
    """A function that g defines from itself."""

    @function
    def again(x):
        return g(again, x)

    return again


def growing(made):
    """A function that looks at the length of what it gives itself."""

    def g(f, x):
        n = [1]

        def more():
            n[0] = len(f(x - 1)) + 1
            return x

        cond(x > 0, lambda: x, more)
        return made(n[0])

    return g


REFUSED = {
    "every branch": (
        lambda f, x: cond(x > 0, lambda: f(x - 1), lambda: f(x + 1)),
        StagingError,
        "again calls itself in every branch, so nothing says what it gives; one branch of a "
        "lineara.cond must end without a call",
    ),
    "no branch": (
        lambda f, x: f(x - 1) + 1,
        StagingError,
        "again calls itself in every branch, so nothing says what it gives; one branch of a "
        "lineara.cond must end without a call",
    ),
    "a shape that depends on its own": (
        lambda f, x: cond(x > 0, lambda: np.zeros(3), lambda: f(x + 1)[1:]),
        ShapeError,
        "cond: the branches give f64[3] and f64[2] in one place; branches give results of the same "
        "types",
    ),
    "a shape that grows": (
        growing(np.zeros),
        ShapeError,
        "again gives f64[1] and, where it calls itself, f64[2]; a recursive function gives one "
        "type",
    ),
    "containers that grow": (
        growing(lambda n: [0.0] * n),
        StructureError,
        "again gives Structure([*]) and, where it calls itself, Structure([*, *]); a recursive "
        "function gives the same containers",
    ),
    "other types for ever": (
        lambda f, x: cond(np.sum(x) > 0, lambda: 1.0, lambda: f(np.append(x, 1.0))),
        StagingError,
        "again calls itself with other constants or types every time, each of which is a "
        "definition of its own; pass what changes as an array or a floating number, and let "
        "lineara.cond choose the branch that ends",
    ),
}


@pytest.mark.parametrize(("g", "kind", "message"), REFUSED.values(), ids=REFUSED)
def test_a_recursion_that_gives_no_type_is_refused(g, kind, message):
    f = recursive(g)
    with pytest.raises(kind) as error:
        lineara.trace(lambda x: f(x), 2.0)
    assert error.value.message == message


def outside(x):
    y = np.exp(x)

    def body(i, c):
        y[i] = c
        return c

    return fori_loop(0, 2, body, x[0])


def through_a_view(x):
    y = np.exp(x)

    def body(i, c):
        part = y[0:1]
        part[0] = c
        return c

    return fori_loop(0, 2, body, x[0])


def shapes(x):
    return cond(x[0] > 0, lambda: x, lambda: x[0])


def containers(x):
    return cond(x[0] > 0, lambda: (x,), lambda: [x])


def carries(x):
    return fori_loop(0, 2, lambda i, c: np.append(c, 1.0), x)


@pytest.mark.parametrize(
    ("f", "kind", "said"),
    [
        (outside, StagingError, "made outside it"),
        (through_a_view, StagingError, "made outside it"),
        (shapes, ShapeError, "same types"),
        (containers, StructureError, "same containers"),
        (carries, ShapeError, "keeps its"),
        (lambda x: cond(x > 0, lambda: x, lambda: x), StagingError, "one boolean"),
    ],
)
def test_what_a_form_cannot_do_is_an_error(f, kind, said):
    with pytest.raises(kind, match=said):
        lineara.trace(f, X)


def test_an_error_in_the_body_of_a_loop_says_which_loop_and_what_came():
    with pytest.raises(ShapeError) as error:
        lineara.trace(carries, X)
    assert error.value.message == (
        "fori_loop: carry 1 is f64[2], but the function hands f64[3] on; a carry keeps its type"
    )
    for wrong, given in ((lambda c, _: (c,), "1 values"), (lambda c, _: c, "f64[2]")):
        with pytest.raises(StructureError) as error:
            lineara.trace(lambda x, body=wrong: lineara.scan(body, x, None, 3), X)
        assert error.value.message == (
            f"scan: the function gives (carry, y), but this one gave {given}; return None as y if "
            "nothing is to be stacked"
        )


def test_values_of_a_branch_do_not_leave_it():
    kept = []

    def f(x):
        cond(x > 0, lambda: kept.append(x * 2) or x, lambda: x)
        return kept[0] + 1

    with pytest.raises(lineara.errors.LeakedVariableError):
        lineara.trace(f, 1.0)
