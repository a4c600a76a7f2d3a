"""`sum`, `max`, `min`, `any`, `all`, `reduce` and `sorted` of staged values, and of generators."""

import functools

import numpy as np
import pytest
from capture.agreement import agrees, gradients_agree

import lineara
from lineara.errors import LinearaError, MutationError, StagingError
from lineara.staging.capture import trace as capture

X = np.array([0.4, -0.3, 1.2, 0.7, 2.5])
CASES = [(X,), (-X,), (X[::-1].copy(),), (np.roll(X, 1),), (-np.roll(X, 3),)]


def sums(x):
    squares = sum(v * v for v in x if v > 0)
    pairs = sum([u * v for u in x for v in x if u > v if v > 0], 1.5)
    return squares + pairs + sum(x) + sum(x, start=2.0) + sum((v for v in x), 0.5)


def extremes(x):
    high = max((v for v in x if v > 0.5), default=0.1)
    low = min((v for v in x if v < 0.5), default=x[0])
    return high * low + max(x) - min(x) + max(v * w for v in x for w in x)


def by_keys(x):
    near = max(x, key=lambda v: -((v - 1) ** 2))
    far = min((v for v in x if v > -9), key=lambda v: v * v)
    first = max([x[0], x[1], 0.3], key=lambda v: 1.0)
    return near * far + first + min(3.0, x[2], x[3], key=lambda v: -v)


def truths(x):
    some = any(v > 2 for v in x)
    every = all([v > -1 for v in x])
    inner = any(u * v > 3 and u != v for u in x for v in x)
    counted = sum(v > 0 for v in x) + sum(1 for v in x if v < 0)
    whole = any(x > 2) + 2 * all(x > -1)
    return x[0] * (1.0 + some + 2 * every + 4 * inner) + counted + whole


def reductions(x):
    decayed = functools.reduce(lambda a, b: 0.5 * a + b, x)
    return decayed * functools.reduce(lambda a, b: a * b + 1, x, 0.1)


def in_order(x):
    a, *_, b = sorted(x)
    near = sorted([x[0], x[1], 0.2], key=lambda v: v * v)
    down = sorted((float(v) for v in x), reverse=True)
    return a * b + near[0] - 2 * near[2] + down[1] * down[3]


def with_a_walrus(x):
    total = sum((y := v) * y for v in x if v > 0)
    last = 0.0
    any((last := v) > 1 for v in x)
    return total + last


def of_a_function_of_that_name(x):
    def sum(values):
        return next(iter(values))

    return sum(v * 2 for v in x)


def over_grids(x):
    total, table = 0.0, np.zeros((3, 2))
    for i, j in np.ndindex(5, 5):
        total += x[i] * x[j] * (i + 1)
    for at in np.ndindex(*table.shape):
        table[at] = x[at[0]] * at[1]
    for (i, j), v in np.ndenumerate(np.outer(x, x)):
        total += v * i * x[j]
    return total + table.sum()


FUNCTIONS = [sums, extremes, by_keys, truths, reductions, in_order, with_a_walrus, over_grids]
FUNCTIONS += [of_a_function_of_that_name]


@pytest.mark.parametrize("f", FUNCTIONS)
def test_it_gives_what_python_gives(f):
    agrees(f, *CASES)
    gradients_agree(f, *CASES)


@pytest.mark.parametrize("f", [sums, extremes, truths, reductions])
def test_the_size_of_a_program_does_not_depend_on_that_of_the_data(f):
    assert len({capture(f, np.linspace(-1, 2, n)).size() for n in (10, 30)}) == 1


@pytest.mark.parametrize("f", [extremes, reductions])
def test_a_gradient_costs_what_the_value_costs(f):
    for n in (16, 64):
        x = np.linspace(-1, 2, n)
        both = lineara.trace(lineara.value_and_grad(f), x).run(x).work
        assert both <= 4 * capture(f, x).run(x).work


def test_elements_of_an_array_are_gone_through_in_the_order_of_its_memory():
    def f(x):
        total = 0.0
        for v in np.nditer(np.outer(x, x + 1).T):
            total = total * 0.5 + v
        return total

    agrees(f, *CASES)
    with pytest.raises(StagingError, match="loop over np"):
        capture(lambda x: sum(v for v in np.nditer(x, ["external_loop"])), X)


def test_only_what_is_asked_is_evaluated():
    def f(x):
        return x[1] if any(np.log(v) > 0 for v in x if v > 0) else x[0]

    with np.errstate(all="raise"):
        agrees(f, *CASES)


@pytest.mark.parametrize("act", [max, min])
def test_nothing_to_choose_from_raises_as_in_python(act):
    def f(x):
        return max(v for v in x if v > 0) if act is max else min(v for v in x if v > 0)

    program = capture(f, X)
    with pytest.raises(ValueError, match="empty") as plain:
        f(-np.abs(X))
    with pytest.raises(ValueError, match="empty") as e:
        program(-np.abs(X))
    assert e.value.args == plain.value.args


def test_what_is_no_number_is_not_sorted_by_staged_values():
    with pytest.raises(StagingError, match="numbers are sorted, by numbers"):
        capture(lambda x: sorted([("a", x[0]), ("b", x[1])], key=lambda p: p[1])[0][1], X)
    agrees(lambda x: sorted([("b", x[0]), ("a", x[1])])[0][1], *CASES)
    with pytest.raises(LinearaError, match="whose place Python does not define"):
        capture(lambda x: sorted(x)[0], X)(X * np.nan)


def test_a_container_that_is_the_greatest_is_one_that_others_hold():
    def f(x):
        low, high = {"v": 1.0}, {"v": 2.0}
        best = max([low, high], key=lambda d: d["v"] * x[0])
        best["v"] = x[1]
        return low["v"] + 10 * high["v"]

    with pytest.raises(MutationError, match="a dict was changed that the staged branch or loop"):
        lineara.jit(f)(np.array([-1.0, 5.0]))
