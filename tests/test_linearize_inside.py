"""A linear map is a value like any other in a function that is differentiated.

Against the complex step of the same formulas with the Jacobian written out.
"""

import numpy as np
import pytest

import lineara
from lineara import calculus, grad, hessian, hvp, jacobian, jvp, linearize, vjp

H = 1e-30
X = np.array([0.3, 0.7, -0.2])


def g(x):
    return np.array([np.sin(x[0]) * x[1], x[2] ** 2 * x[0], x[1] * x[1]])


def matrix(x):
    """The Jacobian of g, by hand."""
    zero = 0 * x[0]
    return np.array(
        [
            [np.cos(x[0]) * x[1], np.sin(x[0]), zero],
            [x[2] ** 2, zero, 2 * x[2] * x[0]],
            [zero, 2 * x[1], zero],
        ]
    )


def moving(x):
    """Vectors that depend on x as well."""
    return np.array([1.0 + 0 * x[0], 2.0 + 0 * x[0], x[0]]), np.array([x[1], 1.0 + x[2], x[0] - 1])


USES = {
    "applied": lambda L, v, w: L @ v,
    "called": lambda L, v, w: L(v),
    "from the left": lambda L, v, w: w @ L,
    "transposed": lambda L, v, w: L.T @ w,
    "composed": lambda L, v, w: (L @ L) @ v,
    "normal": lambda L, v, w: (L.T @ L) @ v,
    "combined": lambda L, v, w: (L + 2 * L - L / 4) @ v,
    "scaled by what moves": lambda L, v, w: (v[2] * L) @ v,
    "twice transposed": lambda L, v, w: L.T.T @ v,
}
SIZE = {"dense": lambda L, v, w: L.to_dense() ** 2}


def traced(use):
    def f(x):
        _, L = linearize(g, x)
        v, w = moving(x)
        return np.sum(use(L, v, w) ** 2 * np.cos(v))

    return f


def by_hand(use):
    class Matrix:
        def __init__(self, A):
            self.A = A
            self.to_dense = lambda: A

        T = property(lambda self: Matrix(self.A.T))
        __call__ = __matmul__ = lambda self, v: (
            Matrix(self.A @ v.A) if isinstance(v, Matrix) else self.A @ v
        )
        __rmatmul__ = lambda self, w: w @ self.A  # noqa: E731
        __array_ufunc__ = None
        __add__ = lambda self, other: Matrix(self.A + other.A)  # noqa: E731
        __sub__ = lambda self, other: Matrix(self.A - other.A)  # noqa: E731
        __rmul__ = lambda self, c: Matrix(c * self.A)  # noqa: E731
        __truediv__ = lambda self, c: Matrix(self.A / c)  # noqa: E731

    def f(x):
        v, w = moving(x)
        return np.sum(use(Matrix(matrix(x)), v, w) ** 2 * np.cos(v))

    return f


def complex_step(f, x):
    return np.array([f(x + 1j * H * e).imag / H for e in np.eye(3)])


@pytest.mark.parametrize("name", USES | SIZE)
def test_every_use_of_a_map_is_differentiated(name):
    use = (USES | SIZE)[name]
    f, h = traced(use), by_hand(use)
    wanted = complex_step(h, X)
    assert f(X) == pytest.approx(h(X), rel=1e-14)
    assert np.allclose(grad(f)(X), wanted, rtol=1e-12, atol=1e-14)
    tangent = jvp(f, (X,), (np.arange(3.0),))[1]
    assert tangent == pytest.approx(wanted @ np.arange(3.0), rel=1e-12)


@pytest.mark.parametrize("name", USES | SIZE)
def test_the_second_order_too(name):
    use = (USES | SIZE)[name]
    e = 1e-5
    found = hessian(traced(use))(X)
    h = by_hand(use)
    rows = [(complex_step(h, X + e * d) - complex_step(h, X - e * d)) / (2 * e) for d in np.eye(3)]
    assert np.allclose(found, rows, rtol=1e-7, atol=1e-7)
    assert np.allclose(hvp(traced(use))(X, X), found @ X, rtol=1e-12)


def test_values_and_pullbacks_beside_the_map():
    def f(x):
        y, pull = vjp(g, x)
        return y @ pull(y)[0] + np.sum(jacobian(g)(x) @ y)

    def h(x):
        y = np.array([np.sin(x[0]) * x[1], x[2] ** 2 * x[0], x[1] * x[1]])
        return y @ (y @ matrix(x)) + np.sum(matrix(x) @ y)

    assert np.allclose(grad(f)(X), complex_step(h, X), rtol=1e-12)


def test_a_map_of_containers_and_of_what_is_captured():
    def f(a):
        def at(p):
            return {"y": a * p["x"] ** 2, "z": p["x"] * p["s"]}

        _, L = linearize(at, {"x": a * a, "s": 2.0})
        moved = L @ {"x": 1.0, "s": a}  # y: 2 a a^2, z: 2 + a^3
        back = {"y": 1.0, "z": 0.0} @ L  # x: 2 a^3
        return moved["y"] * moved["z"] + back["x"]

    # (2 a^3)(2 + a^3) + 2 a^3 = 6 a^3 + 2 a^6
    assert f(1.5) == pytest.approx(6 * 1.5**3 + 2 * 1.5**6)
    assert grad(f)(1.5) == pytest.approx(18 * 1.5**2 + 12 * 1.5**5)
    assert grad(grad(f))(1.5) == pytest.approx(36 * 1.5 + 60 * 1.5**4)


def test_a_map_made_outside_is_a_constant_and_its_vectors_move():
    _, L = linearize(g, X)
    A = matrix(X)
    found = grad(lambda v: np.sum((L @ v) ** 2) + np.sum(v @ L))(X)
    assert np.allclose(found, 2 * A.T @ (A @ X) + A.sum(axis=1))


def test_hvp_is_the_term_of_the_calculus():
    # J(\x. grad f x; u) x: forward over reverse, in both
    hvp_of = calculus.function(r"\x u. J(\x. (pull(\y. sin(y * y) * y; \_. covec(1)) x) @ 1; u) x")
    f = lambda y: np.sin(y * y) * y  # noqa: E731
    for x, u in ((0.3, 1.0), (1.2, -2.0)):
        wanted = (6 * x * np.cos(x * x) - 4 * x**3 * np.sin(x * x)) * u
        assert hvp(f)(x, u) == pytest.approx(wanted, rel=1e-13)
        assert hvp_of(x, u) == pytest.approx(wanted, rel=1e-13)
        third = grad(lambda x, u=u: hvp(f)(x, u))(x)
        assert third == pytest.approx(lineara.grad(lambda x, u=u: hvp_of(x, u))(x), rel=1e-12)
