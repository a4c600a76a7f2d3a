"""Corners of staging, a class each.

Positions by lane, small integers, arrays without elements, one branch, checkpoints in traces.
"""

import numpy as np
import pytest

import lineara
from lineara.errors import StagingError
from lineara.facts.types import type_of
from lineara.linear_a.check import check

RNG = np.random.default_rng(5)
ARRAY, VECTOR = RNG.normal(size=(2, 3, 4)), RNG.normal(size=(2, 3))
ONE, ROW = np.array([0, 2]), np.array([[2, 0, 1], [1, 2, 0]])  # a cycle is not its own inverse
TWO, THREE = np.array([0, 3]), np.array([0, 3, 1])  # as many as there are lanes, and more


def written(v, p):
    y = np.zeros(3)
    for k in range(3):
        y[p[k]] = np.sin(v[k])
    return y * v


def read_in_a_loop(v, p):
    return lineara.fori_loop(0, 3, lambda k, c: c * v[p[k]], 1.0)


INDICES = {
    "one": (lambda a, i: a[i], ARRAY, ONE),
    "one, and a slice": (lambda a, i: a[i, 1:3], ARRAY, ONE),
    "after a slice": (lambda a, i: a[:, i], ARRAY, ONE),
    "two": (lambda a, i: a[i, i], ARRAY, ONE),
    "before a constant row of as many positions as lanes": (lambda a, i: a[i, TWO], ARRAY, ONE),
    "before a constant row": (lambda a, i: a[i, THREE], ARRAY, ONE),
    "after a constant row": (lambda a, i: a[np.array([0, 2]), i], ARRAY, ONE),
    "a row": (lambda v, p: v[p], VECTOR, ROW),
    "a row of rows": (lambda a, p: a[p], ARRAY, ROW),
    "two rows": (lambda a, p: a[p, p], ARRAY, ROW),
    "a row and one": (lambda a, p, i: a[p, i], ARRAY, ROW, ONE),
    "a row behind a slice": (lambda a, p: a[:, p], ARRAY, ROW),
    "a row and a new axis": (lambda a, p: a[p, None], ARRAY, ROW),
    "along an axis": (lambda v, p: np.take_along_axis(v, p, 0), VECTOR, ROW),
    "sorted": (np.sort, VECTOR),
    "sorted columns": (lambda a: np.sort(a, axis=0), ARRAY),
    "the largest": (lambda v: np.sin(v)[np.argmax(v)], VECTOR),
    "median": (np.median, VECTOR),
    "partition": (lambda v: np.partition(v, 1), VECTOR),
    "written": (written, VECTOR, ROW),
    "read in a loop": (
        lambda v, p: lineara.fori_loop(0, 3, lambda k, c: c * v[p[k]], 1.0),
        VECTOR,
        ROW,
    ),
}


def total(f):
    return lambda *args: np.sum(np.sin(f(*args)))


@pytest.mark.parametrize("name", INDICES)
def test_positions_that_differ_from_lane_to_lane(name):
    f, *args = INDICES[name]
    lanes = list(zip(*args, strict=True))
    over, slope = lineara.vmap(f), lineara.grad(total(f))
    np.testing.assert_allclose(over(*args), [f(*lane) for lane in lanes])
    want = [slope(*lane) for lane in lanes]
    np.testing.assert_allclose(lineara.grad(total(over))(*args), want)
    np.testing.assert_allclose(lineara.grad(total(over), policy="store_all")(*args), want)
    if name != "written":
        np.testing.assert_allclose(lineara.vmap(slope)(*args), want)
        staged = lineara.trace(lineara.vmap(slope), *args)
        np.testing.assert_allclose(staged(*args), want)


WHOLE = {
    "sum": np.sum,
    "sum of some": lambda b: np.sum(b, where=np.array([True, False, True])),
    "mean of some": lambda b: np.mean(b, where=np.array([True, False, True])),
    "product": np.prod,
    "product of some": lambda b: np.prod(b, where=np.array([True, False, True])),
    "running sum": np.cumsum,
    "running product": np.cumprod,
    "largest": np.max,
    "mean": np.mean,
    "norm": np.linalg.norm,
    "inverted": lambda b: ~b,
    "and": lambda b: b & (b > 0),
    "or a number": lambda b: b | 1,
    "a number xor": lambda b: 3 ^ b,
    "halves": lambda b: b // 2,
    "remainder": lambda b: b % 2,
    "clipped": lambda b: np.clip(b, 0, 1),
    "chosen": lambda b: np.where(b > 0, b, 1),
    "plus a number": lambda b: b + 1,
    "half": lambda b: b / 2,
    "squared": lambda b: b**2,
    "cubed": lambda b: b**3,
    "shifted left": lambda b: b << 1,
    "shifted right": lambda b: b >> 1,
    "shifts": lambda b: 5 >> (b * 1),
    "sum in int16": lambda b: np.sum(b, dtype=np.int16),
    "product in uint8": lambda b: np.prod(b, dtype=np.uint8),
    "outer": lambda b: np.outer(b, b),
}


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint8, np.int16, np.int32, np.int64])
@pytest.mark.parametrize("name", WHOLE)
def test_whole_numbers_have_numpys_values_and_dtypes(name, dtype):
    b = np.array([1, 0, 3], dtype)
    want = WHOLE[name](b)
    staged = lineara.trace(lambda x, b: (x, WHOLE[name](b)), 1.0, b)
    found = staged(1.0, b)[1]
    np.testing.assert_allclose(
        found, want, rtol=1e-3 if type_of(want).dtype == np.float16 else 1e-7
    )
    stated = check(staged.program).defs[staged.name].results[1]
    assert stated == type_of(want) == type_of(np.asarray(found)[()])


def test_a_count_of_bools_is_taped_as_what_it_is():
    @lineara.function
    def power(a, n):
        return lineara.cond(n <= 0, lambda: a * 1.0, lambda: np.tanh(power(a, n - 1)) * a)

    def f(x, v):
        return power(x, np.sum(v > 0.2)) * v[0]

    v = np.array([1.0, 0.1, 0.7])
    want = lineara.grad(f, (0, 1))(0.8, v)
    for policy in ("store_all", "minimal_tape", "recompute_all"):
        for a, b in zip(lineara.grad(f, (0, 1), policy=policy)(0.8, v), want, strict=True):
            np.testing.assert_allclose(a, b)


EMPTY = {
    "squared": lambda x, v: x + np.sum(v[2:2] ** 2),
    "scaled": lambda x, v: np.sum(x * v[2:2]) + x,
    "times": lambda x, v: np.sum(np.sin(v[1:1]) * v[2:2]) + v[0],
    "joined": lambda x, v: np.sum(np.concatenate([v[3:], v * x])),
    "carried": lambda x, v: np.sum(lineara.fori_loop(0, 2, lambda i, c: np.sin(c * c), v[2:2])) + x,
    "no rounds": lambda x, v: lineara.fori_loop(0, 0, lambda i, c: c * x, x) + v[0],
    "no rows": lambda x, v: lineara.scan(lambda c, r: (c * r, r), x, v[3:])[0] * v[0],
    "one branch": lambda x, v: lineara.switch(np.sum(v > 9), [lambda: np.tanh(x * v[1])]),
    "one branch in a loop": lambda x, v: lineara.fori_loop(
        0, 3, lambda i, c: lineara.switch(np.sum(v > 9), [lambda: np.tanh(c * x)]), v[0]
    ),
}


@pytest.mark.parametrize("name", EMPTY)
def test_arrays_without_elements_loops_without_rounds_and_one_branch(name):
    f, x, v = EMPTY[name], 0.7, np.array([0.3, -1.2, 0.5])
    want = lineara.grad(f, (0, 1))(x, v)

    def along(x, v):
        p, q = lineara.grad(f, (0, 1))(x, v)
        return p * 0.3 + np.sum(q)

    for policy in ("store_all", "recompute_all", "minimal_tape"):
        found = lineara.grad(f, (0, 1), policy=policy)(x, v)
        assert [np.shape(g) for g in found] == [(), (3,)]
        np.testing.assert_allclose(np.hstack(found), np.hstack(want), atol=1e-14)
        twice = lineara.grad(along, (0, 1), policy=policy)(x, v)
        np.testing.assert_allclose(
            np.hstack(twice), np.hstack(lineara.grad(along, (0, 1))(x, v)), atol=1e-14
        )
    value, slope = lineara.stages(f, x, v).value_and_grad(x, v)
    np.testing.assert_allclose(value, f(x, v))
    np.testing.assert_allclose(np.hstack(slope), np.hstack(want), atol=1e-14)


def test_where_no_factor_bounds_forward_mode_the_certificate_says_so():
    found = lineara.stages(EMPTY["squared"], 0.7, np.ones(3)).certificate
    assert found.bound is None
    assert "bound: none is proved, for an operation without work" in str(found)


CALLS = {
    "plain": lambda x, v: lineara.checkpoint(lambda a: np.sin(a) * a)(x),
    "captured": lambda x, v: lineara.checkpoint(lambda a: np.sin(a) * x * v[0])(x * 2),
    "a slice": lambda x, v: np.sum(lineara.checkpoint(lambda a: np.tanh(a)[1:])(v * x)),
    "of a slice": lambda x, v: np.sum(lineara.checkpoint(lambda a: np.sin(a[::2]))(v * x)),
    "a policy": lambda x, v: lineara.checkpoint(
        lambda a: np.sum(np.sin(a) * v), policy="store_all"
    )(v * x),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_checkpoint_in_a_trace_and_a_trace_of_its_derivatives(name):
    f, x, v = CALLS[name], 0.7, np.array([0.3, -1.2, 0.5])
    with_, slope = lambda x: f(x, v), lineara.grad(lambda x: f(x, v))
    h = 1e-6
    np.testing.assert_allclose(slope(x), (with_(x + h) - with_(x - h)) / (2 * h), rtol=1e-7)
    np.testing.assert_allclose(lineara.trace(f, x, v)(x, v), f(x, v))
    for _ in range(3):
        np.testing.assert_allclose(lineara.trace(slope, x)(x), slope(x))
        slope = lineara.grad(slope)
    np.testing.assert_allclose(
        lineara.grad(with_, policy="minimal_tape")(x), lineara.grad(with_)(x)
    )


def power(a, n):
    """a ** (n + 1); the number of calls is known in the run only."""
    return lineara.cond(n <= 0, lambda: a * 1.0, lambda: a * called_power(a, n - 1))


called_power = lineara.function(power)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 9])
def test_a_recursion_is_differentiated_in_a_trace_however_often_it_calls_itself(n):
    def slope(x, n):
        return lineara.grad(lambda x: called_power(x, n[0]))(x)

    def bend(x, n):
        return lineara.jvp(lambda x: slope(x, n), (x,), (1.0,))[1]

    other, here = np.array([3]), np.array([n])
    assert lineara.trace(slope, 2.0, other)(1.5, here) == pytest.approx((n + 1) * 1.5**n)
    expected = (n + 1) * n * 1.5 ** (n - 1)
    assert lineara.trace(bend, 2.0, other)(1.5, here) == pytest.approx(expected)
    found = lineara.grad(slope, policy="store_all")(1.5, here)
    assert found == pytest.approx(expected)
    lanes = lineara.vmap(lambda x, n: lineara.grad(lambda x: called_power(x, n))(x))
    found = lanes(np.array([1.5, 0.5]), np.array([n, 2]))
    np.testing.assert_allclose(found, [(n + 1) * 1.5**n, 0.75])


@pytest.mark.parametrize("order", [0, 1, 2])
def test_a_recursion_that_is_no_definition_is_refused_with_the_mend(order):
    def power(a, n):
        return lineara.cond(n <= 0, lambda: a * 1.0, lambda: a * power(a, n - 1))

    def value(x, n):
        return power(x, n[0])

    f = value
    for _ in range(order):
        f = lineara.grad(f)
    with pytest.raises(StagingError) as found:
        lineara.trace(f, 2.0, np.array([3]))
    assert found.value.message == (
        "cond: branches lie in each other without end; decorate a function that calls itself with "
        "lineara.function, and let a branch end without a call"
    )


def constants_in_a_branch(x, v):
    y = np.zeros(3)
    y[1] = 2.0

    def lane(a):
        return lineara.cond(x * a > 0, lambda: x * np.sum(y), lambda: x + y[1] * a)

    return np.sum(lineara.vmap(lane)(v))


STAGED_PLACES = {
    "a plain vector at staged positions": lambda x, v: np.sum(np.sort(v)[::-1]) + x * v[0],
    "constants written before a branch": constants_in_a_branch,
}


@pytest.mark.parametrize("name", STAGED_PLACES)
def test_constants_meet_staged_values_in_a_differentiation(name):
    f, x, v = STAGED_PLACES[name], 0.7, np.array([0.3, -1.2, 0.5])
    slope = lineara.grad(f, (0, 1))
    found = lineara.trace(slope, x, v)(x, v)
    np.testing.assert_allclose(np.hstack(found), np.hstack(slope(x, v)))


def test_a_plain_array_is_read_at_a_staged_position():
    a = np.array([2.0, 3.0, 5.0])

    def f(at):
        return lambda x: lineara.fori_loop(0, 3, lambda i, c: c * at(i) * x, 1.0)

    for at in (lambda i: np.take(a, i), lambda i: a[i]):
        assert lineara.trace(f(at), 1.0)(2.0) == 240.0


def test_stages_of_lanes_that_go_different_ways_are_shown():
    """Sizes that are values have no work that is known before a run."""

    def chosen(x):
        return x * 2.0 if x > 0.0 else -x

    def halved(x):
        while x > 1.0:
            x = x * 0.5
        return x * x

    x = np.array([1.5, -2.0, 3.2])
    for f in (chosen, halved):
        for g in (lineara.vmap(f), lineara.vmap(lineara.grad(f))):
            assert "\nbound: " in str(lineara.stages(g, x))
    assert "or a size is a value" in str(lineara.stages(lineara.vmap(chosen), x))
