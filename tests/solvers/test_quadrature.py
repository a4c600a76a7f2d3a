"""Integrals in their parameters and limits, and sums of samples."""

import math

import numpy as np
import pytest
from scipy.integrate import (
    cumulative_simpson,
    cumulative_trapezoid,
    dblquad,
    fixed_quad,
    nquad,
    quad,
    quad_vec,
    romb,
    simpson,
    trapezoid,
)

from lineara import check_grads, grad, hessian, jacobian, jvp, value_and_grad, vjp

# each with the same integral in closed form, and a point
INTEGRALS = {
    "a parameter": (
        lambda p: quad(lambda t: np.exp(-p[0] * t), 0, np.inf)[0],
        lambda p: 1 / p[0],
        [1.3],
    ),
    "two, from args": (
        lambda p: quad(lambda t, a, b: a * math.exp(-b * t), 0, 1, args=(p[0], p[1]))[0],
        lambda p: p[0] / p[1] * (1 - np.exp(-p[1])),
        [1.3, 0.7],
    ),
    "limits": (
        lambda p: quad(lambda t: math.cos(p[2] * t), p[0], p[1])[0],
        lambda p: (np.sin(p[2] * p[1]) - np.sin(p[2] * p[0])) / p[2],
        [0.2, 1.5, 0.8],
    ),
    "one limit": (
        lambda p: quad(lambda t: math.exp(-t * t), -np.inf, p[0])[0],
        lambda p: math.sqrt(math.pi) / 2 * (1 + math.erf(p[0])),
        [0.4],
    ),
    "weight": (
        lambda p: quad(lambda t: math.exp(-p[0] * t), 0, np.inf, weight="sin", wvar=2.0)[0],
        lambda p: 2 / (p[0] ** 2 + 4),
        [0.9],
    ),
    "points": (
        lambda p: quad(lambda t: p[0] * abs(t - 0.3) ** p[1], 0, 1, points=[0.3])[0],
        lambda p: p[0] * (0.3 ** (p[1] + 1) + 0.7 ** (p[1] + 1)) / (p[1] + 1),
        [0.9, 2.0],
    ),
    "a singular end": (
        lambda p: quad(lambda t: t ** (p[0] - 1), 0, 1)[0],
        lambda p: 1 / p[0],
        [1.8],
    ),
    "an array": (
        lambda p: np.sum(quad_vec(lambda t: np.exp(-p * t), 0, p[0])[0] * np.array([1.0, 2.0])),
        lambda p: np.sum((1 - np.exp(-p * p[0])) / p * np.array([1.0, 2.0])),
        [0.8, 1.3],
    ),
    "fixed": (
        lambda p: fixed_quad(lambda t: p[1] * t**3, 0, p[0])[0],
        lambda p: p[1] * p[0] ** 4 / 4,
        [0.8, 1.3],
    ),
}


@pytest.mark.parametrize("name", INTEGRALS)
def test_an_integral_in_every_mode_and_at_two_orders(name):
    ours, closed, at = INTEGRALS[name]
    p = np.array(at)
    value, slope = value_and_grad(ours)(p)
    assert value == ours(p)
    assert np.allclose(slope, grad(closed)(p), rtol=1e-7)
    assert np.allclose(jacobian(ours, mode="forward")(p), slope, rtol=1e-9)
    assert np.allclose(hessian(ours)(p), hessian(closed)(p), rtol=1e-6)


def test_an_array_valued_integral():
    def ours(p):
        return quad_vec(lambda t: np.array([[p[0] * t, 1.0], [t**2, p[1]]]), 0, p[1])[0]

    def closed(p):
        b = p[1]
        return np.array([[p[0] * b**2 / 2, b], [b**3 / 3, b**2]])

    p, w = np.array([1.5, 0.7]), np.array([[1.0, -2.0], [0.5, 3.0]])
    assert np.allclose(jacobian(ours)(p), jacobian(closed)(p))
    assert np.allclose(vjp(ours, p)[1](w)[0], vjp(closed, p)[1](w)[0])
    assert np.allclose(jvp(ours, (p,), (p,))[1], jvp(closed, (p,), (p,))[1])


def test_derivatives_cost_one_integral_more():
    calls = []

    def f(p):
        return quad(lambda t: calls.append(t) or p[0] * t + p[1], 0, 1)[0]

    grad(f)(np.ones(2))
    once = len(calls)
    _, pull = vjp(f, np.ones(2))
    pull(1.0), pull(2.0)
    assert len(calls) == 2 * once


def test_a_double_integral():
    def ours(p):
        low, high = (lambda x: 0.0), (lambda x: p[1] * x)
        return dblquad(lambda y, x: p[0] * y * x, 0, 2.0, low, high, epsabs=1e-3, epsrel=1e-3)[0]

    p = np.array([1.5, 0.7])  # p0 p1^2 2^4 / 8
    assert np.allclose(grad(ours)(p), [2 * p[1] ** 2, 4 * p[0] * p[1]])


LOOSE = {"epsabs": 1e-2, "epsrel": 1e-2}


def test_more_variables():
    def box(p):
        return nquad(lambda x, y: p * x * y, [[0, 1], lambda: (0.0, p)], opts=LOOSE)[0]

    assert grad(box)(2.0) == pytest.approx(3.0)  # p^3 / 4


# --- samples ------------------------------------------------------------------------------------

Y = np.random.default_rng(0).normal(size=(3, 9))
X = np.cumsum(np.random.default_rng(1).uniform(0.5, 1.5, size=9))
RULES = [trapezoid, simpson, cumulative_trapezoid, cumulative_simpson]


@pytest.mark.parametrize("rule", RULES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("n", [2, 3, 4, 9])
def test_samples(rule, n):
    y, x = Y[:, :n], X[:n]
    for options in ({}, {"dx": 0.3}, {"x": x}, {"x": np.cumsum(y * y + 0.1, axis=1)}):
        found, pull = vjp(lambda y, options=options: rule(y, **options), y)
        assert np.allclose(found, rule(y, **options), rtol=1e-12)
        w = np.cos(np.arange(found.size)).reshape(found.shape)
        basis = np.eye(y.size).reshape(y.size, *y.shape)
        exact = [np.sum(w * rule(e, **options)) for e in basis]
        assert np.allclose(pull(w)[0].ravel(), exact)  # linear in the samples
    assert check_grads(lambda x: np.sum(rule(y, x=x) ** 2), (x,))
    turned = vjp(lambda y: rule(y.T, axis=0, x=x), y)[0]
    assert np.allclose(turned, rule(y.T, axis=0, x=x))


@pytest.mark.parametrize("rule", [cumulative_trapezoid, cumulative_simpson])
def test_an_initial_value(rule):
    assert np.allclose(vjp(lambda y: rule(y, initial=0), Y)[0], rule(Y, initial=0))


def test_romb():
    assert np.allclose(vjp(lambda y: romb(y, dx=0.2), Y)[0], romb(Y, dx=0.2))
    assert check_grads(lambda y: romb(y**2, dx=y[0]), (Y[0],))


def test_intervals_of_length_zero():
    x = np.array([0.0, 1.0, 1.0, 2.0, 3.0])
    y, w = Y[0, :5], np.eye(5)
    exact = [simpson(e, x=x) for e in w]
    assert np.allclose(grad(lambda y: simpson(y, x=x))(y), exact)
