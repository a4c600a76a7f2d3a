"""Iterators that a function has made: each item is taken once, by one loop or another."""

import numpy as np
import pytest

from lineara import grad, jit, trace, vmap
from lineara.errors import StagingError


class Walk:
    def __init__(self, values):
        self.rest = iter(values)

    def __iter__(self):
        yield from self.rest


ITERATORS = {
    "enumerate": lambda x: (v for _, v in enumerate(x)),
    "iter": iter,
    "reversed": reversed,
    "map": lambda x: map(np.sin, x),
    "generator": lambda x: (2 * v for v in x),
    "of a list": lambda x: iter([2 * v for v in x]),
    "of constants": lambda x: iter([1.0, 2.0, 3.0, 4.0]),
    "zip": lambda x: map(sum, zip(x, [1.0, 2.0, 3.0, 4.0], strict=False)),
    "of an object": lambda x: Walk([1.0, 2.0, 3.0, 4.0]),
}
FOUR = np.array([0.25, 0.5, 1.5, 2.0])


@pytest.mark.parametrize("make", ITERATORS.values(), ids=ITERATORS)
def test_an_iterator_goes_on_where_a_loop_has_left_it(make):
    def to_the_end(x):
        values, total = make(x), 0.0
        for v in values:
            total = total + v * x[1] if v > 1 else total - v
        for v in values:
            total = total + 100 * v
        return total + sum(values) + len(list(values))

    def twice(x):
        values = make(x)
        return sum(v * v for v in values) + max(values, default=x[0])

    for f in (to_the_end, twice):
        assert jit(f)(FOUR) == trace(f, FOUR)(FOUR) == f(FOUR)
        np.testing.assert_array_equal(jit(grad(f))(FOUR), grad(f)(FOUR))


def after_a_loop(values, x):
    total = 0.0
    for v in values:
        if v * x[2] > 1:
            break
        total = total + v
    for v in values:
        total = total - 10 * v
    return total


def after_any(values, x):
    return x[0] * any(v * x[2] > 1 for v in values) + sum(values)


def after_a_pair(values, x):
    total = 0.0
    for k, v in zip(["a", "b"], values, strict=False):
        if v * x[2] > 1:
            return total
        total = total + v * len(k)
    return total + sum(values)


@pytest.mark.parametrize("use", [after_a_loop, after_any, after_a_pair])
@pytest.mark.parametrize("make", ITERATORS.values(), ids=ITERATORS)
def test_an_iterator_that_staged_values_may_have_left_early_is_refused(make, use):
    def f(x):
        return use(make(x), x)

    with pytest.raises(StagingError, match="in use beside a staged loop that goes through it"):
        jit(f)(FOUR)


def test_an_iterator_that_two_loops_advance_is_refused_or_exact():
    def within(x):
        pairs, total = enumerate(x), 0.0
        for _, v in pairs:
            total = total + v
            for k, w in pairs:
                total = total - k * w
        return total

    def with_itself(x):
        pairs = enumerate(x)
        return sum(a[1] * b[1] for a, b in zip(pairs, pairs, strict=False))

    def in_pairs(x):
        pairs = enumerate(x)
        return sum(v * w[1] for v, w in zip(x[:2], pairs, strict=False)) + next(pairs)[1]

    assert jit(with_itself)(FOUR) == with_itself(FOUR)
    with pytest.raises(StagingError, match="in use beside a staged loop that goes through it"):
        jit(within)(FOUR)
    with pytest.raises(StagingError) as e:
        jit(in_pairs)(FOUR)
    assert str(e.value).split("\n")[:1] == [
        "an iterator (of an array or a range) is in use beside a staged loop that goes through it, "
        "or after one that staged values may end early: how far it went depends on values; go "
        "through a list or an array, and count where the loop was left"
    ]
    assert "in in_pairs: return sum(" in str(e.value)


def test_iterators_that_only_a_loop_has_may_be_left_early():
    def f(x):
        def numbers():
            yield 1.0
            yield 2.0

        total = 0.0
        for v in numbers():
            if v * x[0] > 1:
                break
            total = total + v * x[1]
        for v in map(float, [1, 2, 3]):
            if v * x[0] > 1:
                break
            total = total + v * x[2]
        for name, v in {"a": 1.0, "b": 2.0}.items():
            if v * x[0] > len(name):
                return total
        for k, name in enumerate(["a", "b"]):
            if k * x[0] > 1:
                return total
            total = total + len(name) * x[3]
        return total + any(v * x[0] > 1 for v in map(float, [1, 2])) + any(map(np.isnan, x))

    for x in (FOUR, FOUR * 3, -FOUR):
        assert jit(f)(x) == f(x)
        np.testing.assert_array_equal(jit(grad(f))(x), grad(f)(x))


GIVEN = {
    "map": lambda x: map(np.sin, x),
    "zip": lambda x: (1, zip(x, x, strict=True)),
    "enumerate": lambda x: [enumerate(x)],
    "reversed": reversed,
    "of constants": lambda x: reversed(range(3)),
    "nditer": np.nditer,
    "generator": lambda x: (v for v in x),
}


@pytest.mark.parametrize("name", GIVEN)
def test_an_iterator_is_no_result(name):
    f = GIVEN[name]
    for run in (jit(f), lambda x: trace(f, x), lambda x: vmap(f)(x[None])):
        with pytest.raises(StagingError, match=r"an? (iterator|generator), which runs after the"):
            run(FOUR)
