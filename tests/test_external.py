"""external: code that cannot be followed, with a stated derivative or one by differences.

Its result is the derivative of the same function as Lineara follows it.
"""

import math
from typing import Any

import numpy as np
import pytest

import lineara
from lineara import external
from lineara.errors import NoRuleError, RuleError

A = np.array([[0.4, -0.2, 0.1], [0.3, 0.5, -0.7]])


def two(x: Any, n: Any = 2, *, scale: Any = 1.0) -> Any:
    """f64[3] -> f64[2], with a constant argument and one by name."""
    return scale * np.tanh(A @ x) ** n


def slopes(args: tuple, scale: float = 1.0) -> np.ndarray:
    x, n = args
    t = np.tanh(A @ x)
    return scale * (n * t ** (n - 1) * (1 - t * t))[:, None] * A


def jvp(args: tuple, tangents: tuple, scale: float = 1.0) -> np.ndarray:
    return slopes(args, scale) @ tangents[0]


def vjp(args: tuple, y_bar: np.ndarray, scale: float = 1.0) -> tuple:
    return slopes(args, scale).T @ y_bar, None


WAYS: dict[str, dict[str, Any]] = {
    "jvp": {"jvp": jvp},
    "vjp": {"vjp": vjp},
    "both": {"jvp": jvp, "vjp": vjp},
    "complex step": {"difference": "complex-step"},
    "central": {"difference": "central"},
    "shape": {"difference": "central", "shape": (2,)},
    "shape by function": {"vjp": vjp, "shape": lambda x, n, scale=1.0: (len(A),)},
}


@pytest.mark.parametrize("way", WAYS)
def test_it_has_the_derivative_of_the_function(way):
    f = external(two, **WAYS[way])
    x, w = np.array([0.3, -0.6, 1.1]), np.array([1.5, -0.4])

    def through(g: Any) -> Any:
        return lambda x: np.sum(np.exp(g(np.sin(x), 3, scale=2.0)) * w)

    assert np.array_equal(f(x, 3, scale=2.0), two(x, 3, scale=2.0))
    assert np.array_equal(f(x), two(x))
    value, g = lineara.value_and_grad(through(f))(x)
    assert value == through(two)(x)
    assert np.allclose(g, lineara.grad(through(two))(x), rtol=1e-8, atol=1e-10)
    ahead = lineara.jvp(through(f), (x,), (w[[0, 1, 0]],))[1]
    assert ahead == pytest.approx(float(g @ w[[0, 1, 0]]), rel=1e-8)
    assert np.allclose(lineara.jacobian(f)(x), lineara.jacobian(two)(x), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("way", WAYS)
def test_its_derivative_is_linear_and_traced_in_the_tangent(way):
    f, x = external(two, **WAYS[way]), np.array([0.3, -0.6, 1.1])

    def energy(g: Any) -> Any:
        return lambda v: np.sum(lineara.jvp(g, (x,), (v,))[1] ** 2)

    v = np.array([1.0, -2.0, 0.5])
    assert np.allclose(lineara.grad(energy(f))(v), lineara.grad(energy(two))(v), rtol=1e-7)


def test_numbers_containers_and_several_arguments():
    def f(p: Any, y: Any) -> Any:
        return {"u": p["a"] * y, "n": 3, "v": [p["b"] ** 2 * y]}

    g = external(f, difference="central")

    def total(h: Any) -> Any:
        def run(p: Any, y: Any) -> Any:
            found = h(p, y)
            return np.sum(found["u"]) * found["n"] + np.sum(found["v"][0])

        return run

    p, y = {"a": np.array([1.0, 2.0]), "b": 0.7}, 1.3
    ours, theirs = (lineara.grad(total(h), (0, 1))(p, y) for h in (g, f))
    assert np.allclose(ours[0]["a"], theirs[0]["a"])
    assert ours[0]["b"] == pytest.approx(theirs[0]["b"])
    assert ours[1] == pytest.approx(theirs[1])


def test_the_code_gets_plain_values_and_runs_outside():
    seen = []

    def f(x: Any) -> Any:
        seen.append(type(x))
        return math.sin(x) + float(np.array([x])[0])

    g = external(f, difference="central")
    assert lineara.grad(lambda x: g(x * x))(0.5) == pytest.approx(math.cos(0.25) + 1)
    assert set(seen) <= {float, np.float64}


def test_a_wrong_derivative_is_refused_and_a_trusted_one_is_not_looked_at():
    wrong = external(lambda x: x**3, vjp=lambda args, w: (2 * args[0] ** 2 * w,))
    for _ in range(2):
        with pytest.raises(RuleError, match="derivative is 8, but a finite difference"):
            lineara.grad(wrong)(2.0)
    trusted = external(lambda x: x**3, vjp=lambda args, w: (2 * args[0] ** 2 * w,), check=False)
    assert lineara.grad(trusted)(2.0) == 8.0


def test_a_complex_step_that_loses_its_imaginary_part_is_refused():
    f = external(lambda x: float(np.real(x)) ** 2, difference="complex-step")
    with pytest.raises(RuleError, match="the difference says"):
        lineara.grad(f)(2.0)


def test_there_is_no_second_derivative():
    f = external(lambda x: x**3, difference="central")
    with pytest.raises(NoRuleError, match="a second one was asked for"):
        lineara.grad(lineara.grad(f))(2.0)


def test_it_is_not_proved():
    assert not external(math.sin, difference="central").proved
