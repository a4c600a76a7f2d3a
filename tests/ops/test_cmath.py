"""cmath's functions: the values, errors and branches of Python's, and their derivatives."""

import cmath
import math

import numpy as np
import pytest

import lineara

X, V = np.array([0.3, 0.4]), np.array([1.0, -2.0])
NAMES = "exp log log10 sqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh phase polar"
POINTS = {
    "complex": lambda x: complex(x[0], x[1]),
    "left": lambda x: complex(-2 * x[0], -x[1]),
    "real": lambda x: 3 * x[0],
    "negative": lambda x: -3 * x[0],
}


def parts(r):
    """A real number that depends on all of a result."""
    return 2 * r[0] + 3 * r[1] if isinstance(r, tuple) else 2 * r.real + 3 * r.imag


def slope(f, x, v, h=1e-5):
    return (8 * (f(x + h * v) - f(x - h * v)) - (f(x + 2 * h * v) - f(x - 2 * h * v))) / 12 / h


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("name", [*NAMES.split(), "rect"])
def test_values_and_derivatives(name, point):
    f, place = getattr(cmath, name), POINTS[point]

    def g(x):
        z = place(x)
        return parts(f(z.real, z.imag) if name == "rect" else f(z))

    value, gradient = lineara.value_and_grad(g)(X)
    assert value == pytest.approx(g(X), rel=1e-14)
    assert gradient @ V == pytest.approx(slope(g, X, V), rel=1e-8, abs=1e-9)
    np.testing.assert_allclose(lineara.grad(g, policy="store_all")(X), gradient, rtol=1e-12)
    expected = slope(lineara.grad(g), X, V)
    np.testing.assert_allclose(lineara.hvp(g)(X, V), expected, rtol=1e-7, atol=1e-8)


def test_a_base_may_move():
    def g(x):
        return cmath.log(complex(x[0], 1.0), x[1] + 2).imag

    assert lineara.grad(g)(X) @ V == pytest.approx(slope(g, X, V), rel=1e-9)


def test_questions_are_constants():
    def g(x):
        asked = cmath.isfinite(x[0]), not cmath.isnan(x[0]), not cmath.isinf(complex(x[0], x[1]))
        return sum(asked) * x[0] if cmath.isclose(x[0], 0.31, rel_tol=0.1) else 0.0

    np.testing.assert_array_equal(lineara.grad(g)(X), [3.0, 0.0])


@pytest.mark.parametrize(
    ("f", "error"),
    [
        (lambda x: cmath.log(0 * x).real, ValueError),
        (lambda x: cmath.exp(5000 * x).real, OverflowError),
        (lambda x: cmath.atanh(x / x).real, ValueError),
    ],
)
def test_what_python_refuses_is_refused(f, error):
    for call in (f, lineara.grad(f)):
        with pytest.raises(error, match=r"math (domain|range) error"):
            call(0.7)


def test_the_root_of_a_negative_number_moves():
    assert lineara.grad(lambda x: cmath.sqrt(x).imag)(-4.0) == pytest.approx(-0.25)
    assert math.isclose(lineara.grad(lambda x: cmath.phase(1 + 1j * x))(1.0), 0.5)
