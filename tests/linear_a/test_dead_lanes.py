"""Dead lanes in programs: what `where` did not take stays zero there as it does in `grad`.

The gradient and the Hessian times v of the eager engine, which test_zero_times_infinity.py compares
with those by hand, are what every staged way has to give, at a point with zeros and negatives.
"""

import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lineara import (
    checkpoint,
    cond,
    fori_loop,
    function,
    grad,
    hessian,
    hvp,
    jvp,
    scan,
    stages,
    switch,
    trace,
    vmap,
    while_loop,
)
from lineara.engines import run
from lineara.linear_a.parse import parse
from lineara.linear_a.program import Program
from lineara.passes.derivatives import reverse
from lineara.policies import binomial
from lineara.staging.dead_lanes import run_linear

X = np.array([4.0, 0.0, -1.0])
V = np.array([1.0, 2.0, 3.0])


@pytest.fixture(autouse=True)
def _quiet():
    with np.errstate(all="ignore"):
        yield


def root(y):
    return np.where(y > 0, np.sqrt(y), 0.0)


def in_a_loop(x):
    return np.sum(fori_loop(0, 3, lambda i, y: root(y), x))


def around_a_loop(x):
    return np.sum(np.where(x > 0, fori_loop(0, 3, lambda i, y: np.sqrt(y), x), 0.0))


def of_an_invariant(x):
    return np.sum(fori_loop(0, 3, lambda i, y: y + root(x) * y, x))


def of_stacked_rows(x):
    def body(c, r):
        return c * 0.5 + root(r), np.where(r > 0, r * np.log(r) + c, 0.0)

    return np.sum(scan(body, 1.0, x)[1])


def of_a_carry(x):
    return scan(lambda c, r: (np.where(c > 0, np.sqrt(c) + r, 0.0), c), x[0], x)[0]


def of_a_table_that_is_written(x):
    def body(table, i):
        table = np.copy(table)
        table[i + 1] = 0.0
        return table, 0.0

    return np.sum(scan(body, np.sqrt(x), np.arange(2))[0])


def of_elements_that_a_loop_reads(x):
    def body(i, total):
        return total + np.where(np.take(x, i) > 0, np.take(np.sqrt(x), i), 0.0)

    return fori_loop(0, 3, body, 0.0)


def of_elements_that_no_loop_reads(x):
    return fori_loop(0, 1, lambda i, total: total + np.take(np.sqrt(x), i), 0.0)


def in_a_while_loop(x):
    return np.sum(while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, root(s[1])), (0, x))[1])


def around_a_while_loop(x):
    found = while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, np.sqrt(s[1])), (0, x))
    return np.sum(np.where(x > 0, found[1], 0.0))


def in_a_branch(x):
    return cond(x[0] > 1, lambda x: np.sum(root(x)), np.sum, x)


def around_a_branch(x):
    return np.sum(np.where(x > 0, cond(x[0] > 1, np.sqrt, lambda x: x * 2.0, x), 0.0))


def around_branches_in_each_other(x):
    def inner(x):
        return switch(np.sum(x > 0), [np.exp, np.sqrt, np.sin], x)

    return np.sum(np.where(x > 0, cond(x[0] > 1, inner, np.sin, x), x))


def around_a_call(x):
    return np.sum(np.where(x > 0, function(np.sqrt)(x), 0.0))


def of_a_guarded_norm(x):
    n = np.sqrt((x - x) ** 2)
    return np.sum(np.where(n > 0, x / np.where(n > 0, n, 1.0), 0.0))


def of_a_length_read_twice(x):
    r = np.sqrt(np.abs(x))
    return np.sum(np.where(r > 0, x / r, 1.0) + 2 * np.where(r > 0, r, 0.0))


def of_powers(x):
    return np.sum(np.where(x > 0, np.power(x, 0.3) * x**1.5, 0.0))


def of_an_angle(x):
    return np.sum(np.where(x != 0, np.arctan2(x * 0, x * x * 0), x))


def before_a_product_of_matrices(x):
    return np.sum(np.ones((2, 3)) @ root(x))


def within_a_where(x):
    return np.sum(np.where(x > 0, np.sqrt(np.where(x > 0, x, 0.0)), 0.0))


CASES = [
    in_a_loop, around_a_loop, of_an_invariant, of_stacked_rows, of_a_carry,
    of_a_table_that_is_written, of_elements_that_a_loop_reads, of_elements_that_no_loop_reads,
    in_a_while_loop, around_a_while_loop, in_a_branch, around_a_branch,
    around_branches_in_each_other, around_a_call, of_a_guarded_norm, of_a_length_read_twice,
    of_powers, of_an_angle, before_a_product_of_matrices, within_a_where,
]  # fmt: skip
every_case = pytest.mark.parametrize("f", CASES, ids=lambda f: f.__name__)


def along(f, x):
    """The derivative of f in the direction V."""
    return jvp(f, (x,), (V,))[1]


def same(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


@every_case
@pytest.mark.parametrize("policy", ["store_all", "recompute_all", "minimal_tape", binomial(2)])
def test_under_every_policy_at_both_orders(f, policy):
    expected = grad(f)(X)
    assert np.all(np.isfinite(expected))
    same(grad(f, policy=policy)(X), expected)
    same(along(checkpoint(f, policy=policy), X), expected @ V)
    slope = grad(lambda x: np.sum(grad(f)(x) * V), policy=policy)
    same(slope(X), hvp(f)(X, V))


@every_case
def test_in_traces_stages_and_lanes_at_both_orders(f):
    expected, bent = grad(f)(X), hvp(f)(X, V)
    same(along(f, X), expected @ V)
    same(stages(f, X).value_and_grad(X)[1], expected)
    same(trace(grad(f), X)(X), expected)
    same(trace(functools.partial(along, f), X)(X), expected @ V)
    same(trace(lambda x: hvp(f)(x, V), X)(X), bent)
    rows = np.stack([X, X + 1, X[::-1]])
    same(vmap(grad(f))(rows), [grad(f)(row) for row in rows])
    same(vmap(lambda x: hvp(f)(x, V))(rows)[0], bent)
    same(grad(lambda rows: np.sum(vmap(f)(rows)), policy="store_all")(rows)[0], expected)


def test_what_a_while_loop_gives_counts_beside_vectors_with_masks():
    """A tangent that comes without a mask, of a loop that is one operation, is no constant."""

    def f(x):
        y = while_loop(lambda y: np.sum(y) < 9, lambda y: y * np.exp(0.1 * x), x + 3)
        return np.sum(np.sin(np.where(x > 0, y, 2 * x)) + np.concatenate([y[:1], x[1:]]) ** 2)

    expected = grad(f)(X)
    same(grad(functools.partial(along, f), policy="store_all")(X), hvp(f)(X, V))
    same(trace(functools.partial(along, f), X)(X), expected @ V)
    same(trace(grad(f), X)(X), expected)


# --- loops and recursions that end on a staged condition ------------------------------------------


def positive(x):
    return np.sum(np.where(x > 0, x, 0.0))


def until_small(f, x):
    """`f` again and again, while the sum of what is positive is large."""
    return while_loop(lambda y: positive(y) > 1.5, f, x)


@function
def rooted(x):
    return cond(positive(x) > 1.5, lambda: rooted(np.sqrt(x)), lambda: x)


@function
def guarded_again(x):
    return cond(positive(x) > 1.5, lambda: guarded_again(root(x) * 0.7), lambda: x * x)


def around_a_loop_that_ends_on_it(x):
    return np.sum(np.where(x > 0, until_small(np.sqrt, x), 0.0))


def in_a_loop_that_ends_on_it(x):
    return np.sum(until_small(lambda y: 0.7 * root(y) + 0.1 * root(x), x))


def before_a_loop_that_ends_on_it(x):
    return positive(until_small(lambda y: 0.1 * y * y, np.sqrt(x)))


def of_rows_that_the_loop_writes(x):
    def body(s):
        i, table = s
        table = np.copy(table)
        table[i] = 0.5 * np.take(root(x), i) + np.take(table, i - 1)
        return i + 1, table

    found = while_loop(lambda s: s[0] < np.sum(x > -2.0), body, (0, np.sqrt(x)))
    return positive(found[1])


def of_a_loop_in_a_branch(x):
    return cond(x[0] > 1, in_a_loop_that_ends_on_it, positive, x)


def around_a_recursion(x):
    return np.sum(np.where(x > 0, rooted(x), 0.0))


def in_a_recursion(x):
    return np.sum(guarded_again(x))


ENDING = [
    around_a_loop_that_ends_on_it, in_a_loop_that_ends_on_it, before_a_loop_that_ends_on_it,
    of_rows_that_the_loop_writes, of_a_loop_in_a_branch, around_a_recursion, in_a_recursion,
]  # fmt: skip
ending = pytest.mark.parametrize("f", ENDING, ids=lambda f: f.__name__)


def bent(f):
    """A function whose gradient is the Hessian of f times V."""
    return lambda x: np.sum(grad(f)(x) * V)


@ending
@pytest.mark.slow("three orders of a loop or recursion")
def test_what_ends_on_a_staged_condition_keeps_dead_lanes_at_three_orders(f):
    once = bent(f)
    twice = bent(once)
    for g in (f, once, twice):
        expected = grad(g)(X)
        assert np.all(np.isfinite(expected))
        same(trace(grad(g), X)(X), expected)
        same(trace(functools.partial(along, g), X)(X), expected @ V)
    same(trace(lambda x: along(grad(f), x), X)(X), grad(once)(X))
    same(trace(hessian(f), X)(X), hessian(f)(X))


@ending
@pytest.mark.slow("writes programs of several orders: 5 s")
def test_what_ends_on_a_staged_condition_keeps_dead_lanes_in_lanes(f):
    rows = np.stack([X, 2 * X, X[::-1]])
    for g in (f, bent(f)):
        expected = [grad(g)(row) for row in rows]
        same(vmap(grad(g))(rows), expected)
        same(trace(vmap(grad(g)), rows)(rows), expected)
        same(trace(grad(lambda rows, g=g: np.sum(vmap(g)(rows))), rows)(rows), expected)


def test_a_computed_zero_in_such_a_loop_is_a_number_unless_it_is_strong():
    def f(x):
        return np.sum(until_small(lambda y: 0.5 * np.sqrt(y) ** 2, np.where(x >= 0, x, 0.0)))

    assert np.isnan(trace(grad(f), X)(X)).tolist() == [False, True, False]
    strong = functools.partial(grad, strong_zero=True)
    same(strong(f)(X), [0.25, 0, 0])
    same(trace(strong(f), X)(X), strong(f)(X))


# --- random expressions ---------------------------------------------------------------------------

OUTER = {
    "sqrt": np.sqrt, "log": np.log, "inverse": lambda x: 1 / x, "power": lambda x: x**0.3,
    "cube": lambda x: x**3, "sine": np.sin, "root of norm": lambda x: np.sqrt(np.sum(x * x)) + x,
    "shift": lambda x: np.concatenate([x[1:], x[:1]]), "relu": lambda x: np.maximum(x, 0.0),
    "part": lambda x: np.concatenate([x[:2], np.zeros(1)]), "double": lambda x: x + x,
    "matrix": lambda x: np.array([[1.0, 0, 0], [0, 0, 2.0], [0, 1.0, 0]]) @ x,
}  # fmt: skip
INNER = {
    "times": lambda a, b: a * b, "plus": lambda a, b: a + b, "over": lambda a, b: a / b,
    "angle": np.arctan2, "larger": np.maximum, "where": lambda a, b: np.where(a > 0, a, b),
    "guarded": lambda a, b: np.where(a > 0, b, 0.0), "or": lambda a, b: np.where(b != 0, a, 1.0),
}  # fmt: skip
expressions = st.recursive(
    st.just("x"),
    lambda e: st.tuples(st.sampled_from([*OUTER]), e) | st.tuples(st.sampled_from([*INNER]), e, e),
    max_leaves=5,
)


def evaluated(e, x):
    if e == "x":
        return x
    name, *args = e
    return (OUTER if len(args) == 1 else INNER)[name](*[evaluated(a, x) for a in args])


@given(expressions)
@settings(max_examples=60, deadline=None)
def test_random_guarded_expressions_have_the_gradient_of_the_eager_engine(e):
    def f(x):
        return np.sum(np.where(x > 0, evaluated(e, x), 0.0))

    with np.errstate(all="ignore"):
        expected, bent = grad(f)(X), hvp(f)(X, V)
        same(grad(f, policy="store_all")(X), expected)
        same(trace(grad(f), X)(X), expected)
        same(along(checkpoint(f, policy="recompute_all"), X), along(f, X))
        same(trace(lambda x: hvp(f)(x, V), X)(X), bent)


def test_a_linear_map_of_nothing_gives_nothing():
    def f(x):
        rotated = OUTER["matrix"](np.sqrt(x))
        return np.sum(np.where(x > 0, np.where(rotated != 0, x, 1.0), 0.0))

    with np.errstate(all="ignore"):
        assert grad(f)(X).tolist() == trace(grad(f), X)(X).tolist() == [1.0, 0.0, 0.0]


# --- texts ----------------------------------------------------------------------------------------

GUARDED = """
def f(n: i64, x: f64[n];) -> (f64;) =
  let z = zeros[f64[n]] in
  let c = greater(x, z) in
  let s = sqrt(x) in
  let w = where(c, s, z) in
  sum[axis=(0,), keepdims=false] (w)
"""


def test_a_text_with_a_dimension():
    program: Program = reverse(parse(GUARDED), "f")
    *_, tape = run(program, "f.jvp.nl", 3, X).results
    assert np.isnan(run(program, "f.jvp.lin.t", tape, 3, 1.0).lresults[0]).tolist() == [0, 1, 1]
    assert run_linear(program, "f.jvp.lin.t", [tape, 3], [1.0])[0].tolist() == [0.25, 0, 0]


def test_a_computed_zero_times_infinity_is_nan_in_programs_too():
    def square_of_root(x):
        return np.sum(np.where(x >= 0, np.sqrt(x) ** 2, 0.0))

    for found in (
        grad(square_of_root, policy="store_all")(X),
        trace(grad(square_of_root), X)(X),
        stages(square_of_root, X).value_and_grad(X)[1],
    ):
        assert np.isnan(found).tolist() == [False, True, False]


def test_a_seed_that_is_nan_is_given_back_as_it_came():
    program = reverse(parse("def f(x: f64[2];) -> (f64[2];) = sin(x)"), "f")
    *_, tape = run(program, "f.jvp.nl", np.zeros(2)).results
    (found,) = run_linear(program, "f.jvp.lin.t", [tape], [np.array([np.nan, 2.0])])
    assert np.isnan(found).tolist() == [True, False]
