"""Ufuncs that write into an array: out=, where=, ufunc.at, and functions that take out by place."""

from typing import Any

import numpy as np
import pytest
from test_numpy_forms import close, difference, random_like

import lineara
from lineara.engines import run
from lineara.linear_a.check import check
from lineara.passes.derivatives import vjp
from lineara.staging.capture import trace

x = np.array([0.3, 1.7, -2.2])
y = np.array([1.1, -0.4, 0.6])
COLUMN: Any = (slice(None), 1)
AT = np.array([2, 0, 2, 2])


def out_of_a_constant(x):
    rounded = x * 1.0
    np.round(x, out=rounded)
    return rounded * x


def out_by_place(x):
    into = np.zeros(3)
    np.sum(np.stack([x, x * x]), 0, None, into)
    return into * x


def out_of_a_constant_by_place(x):
    into = x * 1.0
    np.round(x, 1, into)
    return into * x


def out_of_a_method(x):
    into = x * 1.0
    x.clip(0.0, 1.0, out=into)
    return into * x


def several_outs(x):
    fraction, whole = np.zeros(3), np.ones(3)
    np.modf(x, fraction, whole)
    return fraction * x + whole * x


def one_of_several_outs(x):
    whole = x * 2
    fraction, _ = np.modf(x, None, whole)
    return fraction * whole * x


def mask_and_out(x):
    into = x * x
    np.exp(x, out=into, where=x > 0)
    return into


def mask_and_out_of_a_constant(x):
    into = x * x
    np.floor(x, out=into, where=[True, False, True])
    return into * x


def mask_that_broadcasts(x, y):
    into = np.ones((2, 3))
    np.add(x, y, out=into, where=np.array([[True], [False]]))
    return into


def mask_hides_a_singular_point(x):
    into = np.zeros(3)
    np.log(x, out=into, where=x > 0)
    return into


def out_in_place(x):
    z = x * x
    np.multiply(z, x, out=z)
    z += 1
    return z


def out_of_a_reduction(x):
    into = np.zeros(2)
    np.add.reduce(np.stack([x, x * x]), axis=1, out=into)
    return into


def add_at(x, y):
    z = x * x
    np.add.at(z, AT, np.append(y, 2.0))
    return z


def subtract_at(x, y):
    z = x * x
    np.subtract.at(z, AT, y[0])
    return z


def multiply_at(x, y):
    z = x * x
    np.multiply.at(z, AT, np.append(y, 2.0))
    return z


def divide_at(x, y):
    z = x * x
    np.divide.at(z, [0, 0, 1], y)
    return z


def maximum_at(x, y):
    z = x * x
    np.maximum.at(z, AT, np.append(3 * y, 2.0))
    return z


def power_at(x, y):
    z = x * x
    np.power.at(z, [1, 1, 0], 1.5)
    return z * y


def negative_at(x):
    z = x * x
    np.negative.at(z, [0, 0, 1])
    return z


def exp_at(x):
    z = x * 1.0
    np.exp.at(z, [0, 1, 0])
    return z


def add_at_of_a_matrix(x, y):
    z = np.outer(x, y)
    np.multiply.at(z, ([0, 1, 0], [2, 1, 2]), x)
    np.add.at(z, COLUMN, y)
    np.multiply.at(z, 1, y)
    return z


FUNCTIONS = [f for f in globals().values() if getattr(f, "__module__", "") == __name__]
FUNCTIONS = [f for f in FUNCTIONS if f.__code__.co_varnames[:1] == ("x",)]


def point_of(f):
    return [x, y][: f.__code__.co_argcount]


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_value_and_derivatives_are_those_of_numpy(f):
    point = point_of(f)
    value, L = lineara.linearize(f, *point)
    close(value, f(*point), 1e-14)
    direction = [random_like(p, i) for i, p in enumerate(point)]
    ahead = L @ (direction[0] if len(point) == 1 else tuple(direction))
    close(ahead, difference(f, point, direction), 1e-8)
    c = random_like(value, 9)
    back = c @ L
    parts = (back,) if len(point) == 1 else back
    total = sum(np.sum(g * d) for g, d in zip(parts, direction, strict=True))
    close(total, np.sum(c * ahead), 1e-12)


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_staged_equals_eager(f):
    point = point_of(f)
    staged = trace(f, *point)
    program = check(vjp(staged.program, staged.name))
    value, L = lineara.linearize(f, *point)
    c = random_like(value, 9)
    out = run(program, f"{staged.name}.vjp", *staged.operands(tuple(point)), c)
    close(out.results[0], value, 1e-13)
    back = c @ L
    for a, b in zip(out.lresults, (back,) if len(point) == 1 else back, strict=False):
        close(a, b, 1e-12)


def test_a_cast_that_numpy_refuses_is_refused():
    with pytest.raises(TypeError, match="Cannot cast"):
        lineara.grad(lambda x: np.sum(np.add(x, 1j * x, dtype=float)))(x)
    with pytest.raises(TypeError, match="Cannot cast"):
        lineara.grad(lambda x: np.sum(np.add(x, 1j * x, out=np.zeros(3))))(x)


def test_a_dtype_says_how_exactly_to_calculate():
    single = lineara.value_and_grad(lambda x: np.sum(np.multiply(x, x, dtype=np.float32)))(x)
    assert single[0] == np.sum(np.multiply(x, x, dtype=np.float32))
    close(single[1], 2 * x.astype(np.float32), 1e-7)
    assert single[1].dtype == np.float64


def test_several_axes_at_once_are_refused_where_their_order_matters():
    with pytest.raises(ValueError, match="which of the axes \\(0, 1\\) comes first matters"):
        lineara.grad(lambda x: np.subtract.reduce(x, axis=None))(np.ones((2, 3)))


def test_differences_are_not_taken_less_than_never():
    with pytest.raises(ValueError, match="n is -1; how often differences are taken is 0"):
        lineara.grad(lambda x: np.sum(np.diff(x, -1)))(np.ones(3))
