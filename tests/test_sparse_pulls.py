"""vjp(f, *x, sparse=True): the pull gives builders, as grad does."""

import tracemalloc

import numpy as np
import pytest

import lineara
from lineara import Coo, LowRank, Rows, Zero
from lineara.errors import TypeMismatchError

X = np.arange(12.0).reshape(4, 3) / 7
AT = np.array([2, 0, 2])
CASES = {
    "rows": (lambda x: np.sin(x[AT]), Rows),
    "cells": (lambda x: x[1, 2] * x[0], Coo),
    "a column": (lambda x: 3 * x[:, 1], Coo),
    "a product": (lambda x: x @ np.array([1.0, -2.0, 0.5]), LowRank),
    "nothing": (lambda x: np.ones(2), Zero),
    "all": (lambda x: x * x, np.ndarray),
    "a number": (lambda x: x[1, 1] ** 2, Coo),
    "zero times infinity": (lambda x: np.where(x[0] > 0, np.sqrt(x[0]), 0.0), Rows),
}


@pytest.mark.parametrize("name", CASES)
def test_it_is_the_dense_one_in_its_class(name):
    f, kind = CASES[name]
    y, dense = lineara.vjp(f, X)
    value, pull = lineara.vjp(f, X, sparse=True)
    np.testing.assert_array_equal(value, y)
    w = np.cos(np.arange(np.size(y))).reshape(np.shape(y)) if np.shape(y) else 0.5
    for scale in (1.0, 2.0):  # the map is swept as often as asked
        (g,) = pull(scale * w)
        assert type(g) is kind
        np.testing.assert_allclose(np.asarray(g), scale * dense(w)[0], rtol=1e-14)


def test_of_several_arguments_and_containers():
    table = np.ones((1_000, 2))
    y, pull = lineara.vjp(lambda p, c: p["t"][[3, 5]] * c, {"t": table, "b": 1.0}, 2.0, sparse=True)
    g, c_bar = pull(np.ones((2, 2)))
    assert type(g["t"]) is Rows
    assert (g["b"], c_bar, y.shape) == (0.0, 4.0, (2, 2))
    assert g["t"] == Rows([3, 5], np.full((2, 2), 2.0), (1_000, 2))


def test_the_cotangent_may_be_written_to_afterwards():
    _, pull = lineara.vjp(lambda x: x[1:3], X, sparse=True)
    w = np.ones((2, 3))
    (g,) = pull(w)
    w[:] = 7.0
    np.testing.assert_array_equal(np.asarray(g)[1:3], np.ones((2, 3)))


def test_nothing_of_the_size_of_the_argument_is_made():
    def peak(n):
        _, pull = lineara.vjp(lambda t: t[3] ** 2, np.ones((n, 2)), sparse=True)
        pull(np.ones(2))
        tracemalloc.start()
        try:
            with lineara.strict():
                pull(np.ones(2))
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(1_000)  # what is made once in a process
    assert peak(300_000) < 20_000


def test_it_is_differentiated_and_staged_as_an_array():
    def f(x):
        _, pull = lineara.vjp(lambda x: np.sin(x[1]), x, sparse=True)
        return np.sum(pull(np.ones(3))[0] ** 2)

    expected = np.zeros((4, 3))
    expected[1] = -2 * np.cos(X[1]) * np.sin(X[1])
    np.testing.assert_allclose(lineara.grad(f)(X), expected, rtol=1e-13)
    np.testing.assert_allclose(lineara.jit(lineara.grad(f))(X), expected, rtol=1e-13)


def test_with_a_policy_it_is_refused():
    with pytest.raises(TypeMismatchError) as e:
        lineara.vjp(lambda x: x, X, sparse=True, policy="store")
    assert e.value.message == "vjp: sparse= does not go with policy=; leave one of them out"
