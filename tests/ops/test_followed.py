"""SciPy's functions that are read as the user's code: responses, filters, conversions."""

from typing import Any

import numpy as np
import pytest
import scipy
from scipy import optimize

import lineara

rng = np.random.default_rng(3)
A = rng.normal(size=(3, 3)) - 3 * np.eye(3)
B, C = rng.normal(size=(3, 1)), rng.normal(size=(1, 3))
X = np.array([0.31, -0.72, 0.55, 1.4])
P = np.array([0.3, 0.7, 1.1, 2.0])
S = np.array(0.7)
T = np.arange(4) / 4
TIMES = np.linspace(0, 1, 5)

FORMS: dict[str, Any] = {
    "lsim in the matrices": (lambda a: scipy.signal.lsim((a, B, C, S), P, T), A),
    "lsim in the input": (lambda u: scipy.signal.lsim((A, B, C, 0.3), u, T), X),
    "lsim in an input of zeros": (lambda u: scipy.signal.lsim((A, B, C, 0.3), u, T, X[:3]), 0 * X),
    "lsim held": (lambda u: scipy.signal.lsim((A, B, C, 0.3), u, T, interp=False), 0 * X),
    "lsim in the start": (lambda x: scipy.signal.lsim((A, B, C, 0.3), P, T, X0=x[:3] ** 2), X),
    "lsim of a transfer function": (lambda s: scipy.signal.lsim(([s], [1.0, 2.0, s]), X, T), S),
    "lsim of an lti": (lambda s: scipy.signal.lsim(scipy.signal.lti([s], [1.0, 2.0, s]), X, T), S),
    "step": (lambda s: scipy.signal.step(([s], [1.0, 2.0, s]), T=TIMES), S),
    "step of matrices": (lambda a: scipy.signal.step((a, B, C, 0.3), X[:3], TIMES), A),
    "impulse": (lambda s: scipy.signal.impulse(([s], [1.0, 2.0, s]), T=TIMES), S),
    "bode": (lambda s: scipy.signal.bode(([s], [1.0, 2.0, s]), w=[0.1, 1.0]), S),
    "freqresp": (lambda a: scipy.signal.freqresp((a, B, C, 0.3), w=[0.1, 1.0]), A),
    "firwin": (lambda s: scipy.signal.firwin(5, s / 2), S),
    "firwin of a band": (
        lambda s: scipy.signal.firwin(5, [s / 4, s], scale=False, pass_zero=False),
        S,
    ),
    "firwin2": (lambda x: scipy.signal.firwin2(7, [0, 0.3, 0.6, 1], x), P),
    "lp2lp": (lambda x: scipy.signal.lp2lp(x[:2], x, x[1]), P),
    "lp2hp": (lambda x: scipy.signal.lp2hp(x[:2], x, x[1]), P),
    "lp2bp": (lambda x: scipy.signal.lp2bp(x[:2], x, x[1], x[0]), P),
    "lp2bs": (lambda x: scipy.signal.lp2bs(x[:2], x, x[1], x[0]), P),
    "deconvolve": (lambda x: scipy.signal.deconvolve(x, [1.0, x[0]]), X),
    "vectorstrength": (lambda x: scipy.signal.vectorstrength(x, x[1]), P),
    "gauss_spline": (lambda x: scipy.signal.gauss_spline(x, 3), X),
    "square": (lambda x: scipy.signal.square(5 * x) * x, X),
    "exponential": (lambda s: scipy.signal.windows.exponential(5, None, s), S),
    "rosen": (optimize.rosen, X),
    "rosen_der": (optimize.rosen_der, X),
    "rosen_hess": (optimize.rosen_hess, X),
    "rosen_hess_prod": (lambda x: optimize.rosen_hess_prod(x, P), X),
}


def project(v: Any) -> Any:
    """A number that depends on every part of a result."""
    if isinstance(v, tuple):
        return sum(project(part) for part in v)
    v = v + 0 * S
    w = np.random.default_rng(7).uniform(0.5, 1.5, np.shape(v))
    return np.sum(v.real * w) + np.sum(v.imag * w**2)


def slope(f, x, v, h=1e-4):
    return (8 * (f(x + h * v) - f(x - h * v)) - (f(x + 2 * h * v) - f(x - 2 * h * v))) / 12 / h


@pytest.mark.parametrize("form", FORMS)
def test_value_gradient_and_second_derivative(form):
    act, x = FORMS[form]

    def f(x):
        return project(act(x))

    v = np.random.default_rng(2).uniform(-1, 1, np.shape(x))
    value, gradient = lineara.value_and_grad(f)(x)
    assert value == pytest.approx(f(x), rel=1e-12, abs=1e-13)
    expected = slope(f, x, v)
    assert np.sum(gradient * v) == pytest.approx(expected, rel=1e-8, abs=1e-8)
    assert lineara.jvp(f, (x,), (v,))[1] == pytest.approx(expected, rel=1e-8, abs=1e-8)
    second = slope(lineara.grad(f), x, v)
    np.testing.assert_allclose(lineara.hvp(f)(x, v), second, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    "act",
    [
        lambda t: scipy.signal.lsim((A, B, C, 0.3), P, t),
        lambda t: scipy.signal.step((A, B, C, 0.3), T=t),
        lambda t: scipy.signal.impulse((A, B, C, 0.3), T=t),
    ],
)
def test_times_that_move_are_refused(act):
    """SciPy looks whether the first is 0: its derivative would be lost there."""
    with pytest.raises(lineara.errors.NoRuleError) as caught:
        lineara.grad(lambda s: np.sum(act(T * s)[1]))(1.0)
    assert caught.value.message == (
        "scipy.signal.lsim: of traced times it has no rule; give plain T=, and scale the "
        "system: the matrices A and B times c run c times as fast"
    )
