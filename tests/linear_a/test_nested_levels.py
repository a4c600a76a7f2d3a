"""Differentiations within traces, traces within differentiations, and branches of both."""

import warnings

import numpy as np
import pytest
from test_trace import close

import lineara
from lineara import cond, switch, vmap
from lineara.errors import StagingError

UP, DOWN = np.array([0.7, 1.9]), np.array([0.7, -1.9])
POINTS = pytest.mark.parametrize("x", [UP, DOWN], ids=["up", "down"])


def branches(x):
    s = x[0] * 2  # captured by both branches
    return cond(x[1] > 0, lambda y: np.log(x[1]) * s * y, lambda y: s * s * y, x[0])


def chooses(x):
    fs = [lambda y: y["a"] * x, lambda y: np.exp(y["a"]) * y["b"], lambda y: x * x[0]]
    return np.sum(switch(np.argmax(x), fs, {"a": np.sin(x), "b": x[1]}) ** 2)


def nested(x):
    def inner(y):
        return cond(y > 1, lambda: np.log(y) * x[1], lambda: y * y)

    return cond(x[0] < 1, lambda: inner(x[0] + 1) * x[1], lambda: inner(x[1]))


def several(x):
    a, b = cond(x[1] > 0, lambda: (np.sin(x), x[0] ** 2), lambda: (x * x[1], 1.0))
    return np.sum(a) * b


FUNCTIONS = [branches, chooses, nested, several]
BY_NAME = pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)


@BY_NAME
@POINTS
def test_a_gradient_within_a_trace_to_the_third_order(f, x):
    def squared(g):
        return lambda v: np.sum(lineara.grad(g)(v) ** 2)

    second = squared(f)
    close(lineara.trace(second, UP)(x), second(x))
    close(lineara.grad(second, policy="store_all")(x), lineara.grad(second)(x))
    third = squared(second)
    close(lineara.trace(third, UP)(x), third(x))
    close(lineara.grad(third, policy="store_all")(x), lineara.grad(third)(x))


@BY_NAME
@POINTS
def test_other_derivatives_within_a_trace(f, x):
    for g in (
        lineara.hessian(f),
        lambda v: lineara.jvp(f, (v,), (np.cos(v),))[1],
        lambda v: lineara.vjp(lambda u: f(u) * u, v)[1](v)[0],
    ):
        close(lineara.trace(g, UP)(x), g(x))


@BY_NAME
def test_lanes_of_gradients(f):
    a = np.array([UP, DOWN, UP * 0.3])
    close(vmap(lineara.grad(f))(a), np.array([lineara.grad(f)(row) for row in a]))


def test_a_branch_that_is_not_taken_is_not_run():
    """Of what a differentiation around the lanes gives, too: there is no logarithm of -1."""

    def f(s, a):
        return np.sum(vmap(lambda x: cond(x > 0, lambda: np.log(s) * x, lambda: s * x))(a))

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        value, g = lineara.value_and_grad(f, (0, 1))(-1.0, np.array([-2.0, -3.0]))
        inner = lineara.trace(lambda x: lineara.grad(lambda v: branches(v))(x), UP)(DOWN)
    assert value == 5.0
    assert g[0] == -5.0
    assert g[1].tolist() == [-1.0, -1.0]
    close(inner, lineara.grad(branches)(DOWN))


def test_a_traced_function_is_differentiated_and_traced_as_any():
    t = lineara.trace(branches, UP)
    close(lineara.grad(t)(DOWN), lineara.grad(branches)(DOWN))
    close(lineara.hessian(t)(UP), lineara.hessian(branches)(UP))
    assert lineara.trace(lambda x: t(x) * 2, UP)(DOWN) == 2 * branches(DOWN)
    with pytest.raises(StagingError) as error:
        lineara.grad(lambda x: t(x))(np.ones(3))
    assert error.value.message == (
        "branches was traced for f64[2] at arguments[0][0], but was given f64[3]; trace it again "
        "for this type"
    )


def test_a_loop_of_unknown_length_in_a_differentiation_in_a_trace_is_refused():
    def root(a):
        return lineara.while_loop(lambda c: abs(c * c - a) > 1e-9, lambda c: (c + a / c) / 2, a)

    with pytest.raises(StagingError) as error:
        lineara.trace(lambda x: lineara.grad(root)(x), 2.0)
    assert error.value.message == (
        "while_loop: a differentiation in a traced function needs the number of rounds, which "
        "depends on staged values; loop with lineara.fori_loop over as many rounds as it may take, "
        "with lineara.cond in the body, or differentiate the whole program"
    )


def test_a_trace_within_a_differentiation_is_refused():
    with pytest.raises(StagingError) as error:
        lineara.grad(lambda x: lineara.trace(lambda y: y * y, 2.0)(x))(3.0)
    assert error.value.message == (
        "trace was called inside a differentiation or another trace; trace outside of it, or mark "
        "a part that is called with lineara.function"
    )
