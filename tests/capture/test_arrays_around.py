"""Loops in a differentiated function read arrays of the function around it, as loops."""

import os

import numpy as np
import pytest

from lineara import grad, hvp, jit, jvp, value_and_grad
from lineara.errors import MutationError, StagingError
from lineara.staging.capture import trace as capture


def rows(p, X, y):
    def loss(p):
        s = 0.0
        for i in range(len(X)):
            r = X[i]
            s = s + (r @ p - y[i]) ** 2
        return s

    return grad(loss)(p)


def items(p, X, y):
    def loss(p):
        s = 0.0
        for r, t in zip(X, y, strict=True):
            s = s + (r @ p - t) ** 2
        return s

    return value_and_grad(loss)(p)[1]


def twice(p, X, y):
    def loss(p):
        s = 0.0
        for i in range(len(X)):
            s = s + np.sin(X[i, 0] * p[0]) * X[i][1] * y[-i] * p[1]
        return s

    return grad(lambda p: grad(loss)(p)[0] * p[1])(p)


def of_the_data(p, X, y):
    def of_data(X):
        def loss(p):
            s = 0.0
            for i in range(len(X)):
                s = s + np.sin(X[i, 0] * p[0]) * X[i, 1] * y[-i]
            return s

        return (grad(loss)(p) ** 2).sum()

    return grad(of_data)(X)


def until(p, X, y):
    def loss(p):
        i, s = 0, 0.0
        while s < 30.0 and i < len(y):
            s = s + (y[i] * p[0]) ** 2
            i = i + 1
        return s

    return grad(loss)(p)


def calculated_around(p, X, y):
    z = np.exp(-y) * p[1]

    def loss(p):
        s = 0.0
        for i in range(1, len(z)):
            s = s + z[i] * z[i - 1] * p[0] ** 2
        return s

    return p * jvp(loss, (p,), (p,))[1] + hvp(loss)(p, p)


def at_places(p, X, y):
    def loss(p):
        k = np.argsort(y * p[0])
        return (X[k, 0] * np.arange(len(y)) * p[1]).sum() + y[k[0]] * p[0] ** 2

    return grad(loss)(p)


LOOPS = [rows, items, twice, of_the_data, until, calculated_around, at_places]


def data(n):
    rng = np.random.default_rng(n)
    return np.array([0.3, 0.2, 0.1]), rng.normal(size=(n, 3)), rng.normal(size=n)


@pytest.mark.parametrize("f", LOOPS)
def test_a_loop_over_an_array_around_a_derivative_is_a_loop(f):
    lengths = set()
    for n in (7, 40):
        args = data(n)
        np.testing.assert_allclose(jit(f)(*args), f(*args), rtol=1e-10, atol=1e-12)
        lengths.add(len(str(capture(f, *args)).splitlines()))
    assert len(lengths) == 1


def writes_around(p, X, y):
    z = y * 1.0

    def loss(p):
        s = 0.0
        for i in range(len(y)):
            s = s + z[i] * p[0]
            z[0] = 2.0
        return s

    return grad(loss)(p) + z[0]


def writes_a_row(p, X, y):
    Z = X * 1.0

    def loss(p):
        s = 0.0
        for i in range(len(y)):
            r = Z[i]
            r[0] = 3.0
            s = s + r @ p + Z[i - 1, 0] * p[1]
        return s

    return grad(loss)(p) + Z[0]


def keeps_a_row(p, X, y):
    Z = X * 1.0

    def loss(p):
        s, r = 0.0, Z[0]
        for i in range(len(y)):
            r = Z[i]
            s = s + r @ p
        Z[-1, 0] = 7.0
        return s * p[0] + r[0] * p[0]

    return grad(loss)(p) + Z[-1]


@pytest.mark.parametrize("f", [writes_around, writes_a_row])
def test_what_is_written_into_such_an_array_is_seen_where_python_shows_it(f):
    args = data(5)
    np.testing.assert_allclose(jit(f)(*args), f(*args), rtol=1e-10)


def test_a_row_that_was_kept_is_not_read_after_a_write_into_its_array():
    with pytest.raises(MutationError, match="is read after a write"):
        jit(keeps_a_row)(*data(5))


FEW = np.arange(3.0)


def copied(x):
    a = FEW.copy()
    a[0] = x[0] ** 2
    if x[1] > 0:
        a[1] = 7.0
    return a @ a * x[1]


def scaled(x):
    a = FEW * 2.0
    for i in range(3):
        a[i] = a[i] * x[0]
    return a @ a + FEW[1]


@pytest.mark.parametrize("f", [copied, scaled])
def test_a_copy_of_a_small_array_around_is_written(f):
    program, x = jit(f), np.array([1.5, 2.0])
    assert program(x) == f(x)
    FEW[1] = 5.0
    try:
        assert program(x) == f(x)
        assert program.captures == 1  # it is an input
    finally:
        FEW[1] = 1.0
    assert program(x) == f(x)


def test_what_is_refused_whatever_arrays_are_says_why_as_before():
    def refused(x):
        FEW.copy()
        return x * len(os.getcwd())

    with pytest.raises(StagingError, match="getcwd would be called once"):
        jit(refused)(2.0)
