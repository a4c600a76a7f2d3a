"""Roots move as the implicit function theorem says, in every mode and at every order."""

import functools
import math
from dataclasses import dataclass

import numpy as np
import pytest
from scipy import optimize
from scipy.optimize import (
    bisect,
    brenth,
    brentq,
    broyden1,
    fixed_point,
    fsolve,
    newton,
    newton_krylov,
    ridder,
    root,
    root_scalar,
    toms748,
)

from lineara import (
    grad,
    hessian,
    hvp,
    jacfwd,
    jacobian,
    jacrev,
    jvp,
    value_and_grad,
    vjp,
)

P = np.array([2.0, 3.0])
C = np.array([[1.0, 0.2], [0.1, 1.0]])


def differences(f, p, h=1e-5):
    """The Jacobian by central differences."""
    steps = h * np.eye(len(p))
    return np.stack([(f(p + e) - f(p - e)) / (2 * h) for e in steps], axis=-1)


# --- systems ------------------------------------------------------------------------------------


def coupled(p, solve):
    return solve(lambda x: x**3 + C @ x - p)


def by_root(method, **options):
    return lambda F: root(F, np.full(2, 0.7), method=method, tol=1e-11, **options).x


SYSTEMS = {
    "hybr": by_root("hybr"),
    "lm": by_root("lm"),
    "broyden1": by_root("broyden1"),
    "krylov": by_root("krylov"),
    "df-sane": by_root("df-sane"),
    "fsolve": lambda F: fsolve(F, np.full(2, 0.7)),
    "full_output": lambda F: fsolve(F, [0.7, 0.7], full_output=True)[0],
    "newton_krylov": lambda F: newton_krylov(F, np.full(2, 0.7), f_tol=1e-11),
    "function broyden1": lambda F: broyden1(F, np.full(2, 0.7), f_tol=1e-11),
    "fixed_point": lambda F: fixed_point(lambda x: x - 0.2 * F(x), np.full(2, 0.9)),
    "in lists": lambda F: root(lambda x: [F(x)[0], F(x)[1]], [0.7, 0.7]).x,
    "with jac=True": lambda F: (
        root(lambda x: (F(x), np.diag(3 * x**2) + C), np.full(2, 0.7), jac=True).x
    ),
    "with a jac": lambda F: (
        root(F, np.full(2, 0.7), jac=lambda x: np.diag(3 * x**2) + C, tol=1e-11).x
    ),
}


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_system_in_every_mode(name):
    def f(p):
        return coupled(p, SYSTEMS[name])

    x = f(P)
    J = np.linalg.inv(np.diag(3 * x**2) + C)
    v, w = np.array([1.0, -0.5]), np.array([0.3, 2.0])
    assert np.allclose(jacfwd(f)(P), J, rtol=1e-6)
    assert np.allclose(jacrev(f)(P), J, rtol=1e-6)
    y, y_dot = jvp(f, (P,), (v,))
    assert np.array_equal(y, x)  # SciPy's own digits
    assert np.allclose(y_dot, J @ v, rtol=1e-6)
    assert np.allclose(vjp(f, P)[1](w)[0], w @ J, rtol=1e-6)


def test_every_order_and_nesting():
    def f(p):
        x = coupled(p, SYSTEMS["hybr"])
        return x[0] * x[1] ** 2

    assert np.allclose(hessian(f)(P), differences(grad(f), P), rtol=1e-6)
    for second in (jacrev(jacrev(f)), jacfwd(jacfwd(f)), jacrev(jacfwd(f))):
        assert np.allclose(second(P), hessian(f)(P), rtol=1e-9)
    assert np.allclose(hvp(f)(P, np.ones(2)), hessian(f)(P) @ np.ones(2))
    third = jacobian(hessian(f))(P)
    assert np.allclose(third, differences(hessian(f), P), rtol=1e-5)


def test_a_square_system_by_least_squares_of_more_equations():
    def f(a):
        return root(lambda x: [x[0] - a, 2 * x[0] - 2 * a, x[1] - a * a], [0.0, 0.0], method="lm").x

    assert np.allclose(jacobian(f)(3.0), [1.0, 6.0])


def test_a_solver_within_a_solver():
    def inner(a):
        return brentq(lambda x: x**3 - a, 0.0, 10.0, xtol=1e-14)

    def outer(b):
        return brentq(lambda a: inner(a) * a - b, 0.5, 5.0, xtol=1e-14)

    assert grad(outer)(2.0) == pytest.approx(0.75 * 2.0**-0.25)  # a = b^(3/4)
    assert grad(grad(outer))(2.0) == pytest.approx(-0.1875 * 2.0**-1.25)


def test_a_gradient_in_the_equation():
    def f(a):
        return brentq(grad(lambda x: np.cosh(x) - a * x), -5.0, 5.0, xtol=1e-14)  # sinh x = a

    assert grad(f)(0.7) == pytest.approx(1 / math.hypot(1, 0.7))
    assert grad(grad(f))(0.7) == pytest.approx(-0.7 / math.hypot(1, 0.7) ** 3)


# --- one unknown --------------------------------------------------------------------------------

SCALARS = {
    "bisect": lambda f: bisect(f, 0.0, 3.0, xtol=1e-13),
    "brentq": lambda f: brentq(f, 0.0, 3.0, xtol=1e-13),
    "brenth": lambda f: brenth(f, 0.0, 3.0, xtol=1e-13),
    "ridder": lambda f: ridder(f, 0.0, 3.0, xtol=1e-13),
    "toms748": lambda f: toms748(f, 0.0, 3.0, xtol=1e-13),
    "full_output": lambda f: brentq(f, 0.0, 3.0, xtol=1e-13, full_output=True)[1].root,
    "newton": lambda f: newton(f, 1.0, tol=1e-13),
    "newton, full_output": lambda f: newton(f, 1.0, tol=1e-13, full_output=True)[1].root,
    "newton with fprime": lambda f: newton(f, 1.0, fprime=math.exp, tol=1e-13),
    "root_scalar": lambda f: root_scalar(f, bracket=[0.0, 3.0], xtol=1e-13).root,
    "root_scalar, secant": lambda f: root_scalar(f, x0=1.0, x1=1.2, xtol=1e-13).root,
    "root_scalar, fprime": lambda f: (
        root_scalar(lambda x: (f(x), math.exp(x)), x0=1.0, fprime=True, xtol=1e-13).root
    ),
    "fixed_point": lambda f: fixed_point(lambda x: x - f(x) / 4, 1.0, xtol=1e-13),
}


@pytest.mark.parametrize("name", SCALARS)
def test_one_unknown_at_three_orders(name):
    def log(a):
        return SCALARS[name](lambda x: math.exp(x) - a)

    assert value_and_grad(log)(2.5)[0] == log(2.5)
    assert grad(log)(2.5) == pytest.approx(1 / 2.5)
    assert grad(grad(log))(2.5) == pytest.approx(-1 / 2.5**2)
    assert jvp(grad(grad(log)), (2.5,), (1.0,))[1] == pytest.approx(2 / 2.5**3)


def test_many_roots_at_once_each_on_its_own():
    def f(a):
        return np.sum(newton(lambda x: x**2 - a, np.full(3, 2.0)))

    def g(a):
        x, converged, _ = newton(lambda x: x**2 - a, np.full(3, 2.0), full_output=True)
        return np.sum(x[converged])

    a = np.array([1.0, 4.0, 9.0])
    assert np.allclose(grad(f)(a), 0.5 / np.sqrt(a))
    assert np.allclose(grad(g)(a), 0.5 / np.sqrt(a))
    assert np.allclose(hessian(f)(a), np.diag(-0.25 * a**-1.5))


# --- where the traced values are ----------------------------------------------------------------


class Square:
    def __init__(self, k):
        self.k = k

    def __call__(self, x):
        return x * x - self.k

    def at(self, x):
        return x * x - self.k


def residual(x, k, scale):
    return scale * (x * x - k)


def helped(k):
    def shifted(x):
        return x - k

    return lambda x: shifted(x * x)


def filled(k):
    A = np.zeros(2)
    A[0] = k
    return lambda x: x * x - A[0]


HOLDERS = {
    "closure": lambda k: lambda x: x * x - k,
    "default": lambda k: lambda x, k=k: x * x - k,
    "keyword default": lambda k: lambda x, *, k=k: x * x - k,
    "partial": lambda k: functools.partial(residual, k=k, scale=2.0),
    "method": lambda k: Square(k).at,
    "object": Square,
    "helper": helped,
    "array that was written": filled,
    "list": lambda k: (lambda values: lambda x: x * x - values[1])([0.0, k]),
    "dict of a dict": lambda k: (lambda p: lambda x: x * x - p["a"]["b"])({"a": {"b": k}}),
}


@pytest.mark.parametrize("name", HOLDERS)
def test_what_a_function_holds_is_followed(name):
    def f(k):
        return brentq(HOLDERS[name](k), 0.0, 5.0, xtol=1e-14)

    assert grad(f)(4.0) == pytest.approx(0.25)
    assert grad(grad(f))(4.0) == pytest.approx(-1 / 32)


@pytest.mark.parametrize("args", [lambda k: (k, 2.0), lambda k: (k, k)])
def test_further_arguments(args):
    def f(k):
        return brentq(residual, 0.0, 5.0, args=args(k), xtol=1e-14)

    assert grad(f)(4.0) == pytest.approx(0.25)


def test_an_argument_that_is_no_tuple():
    assert grad(lambda k: fsolve(lambda x, k: x**2 - k, 1.0, k)[0])(4.0) == pytest.approx(0.25)


@dataclass
class Spring:
    k: float
    load: np.ndarray

    def force(self, x):
        return self.k * np.sinh(x) - self.load

    def stiff(self, x):
        return math.exp(self.k) * x


def test_a_record_with_methods():
    spring = Spring(0.5, np.array([1.0, 2.0]))

    def by_method(s):
        return np.sum(fsolve(s.force, np.ones(2)))

    def by_closure(s):
        return np.sum(fsolve(lambda x: s.stiff(s.force(x)), np.ones(2)))

    for f in (by_method, by_closure):
        g = grad(f)(spring)
        at = spring.load / spring.k
        assert isinstance(g, Spring)
        assert np.allclose(g.load, 1 / np.hypot(1, at) / spring.k)
        assert g.k == pytest.approx(-np.sum(at / np.hypot(1, at)) / spring.k)


def test_a_start_is_a_constant():
    assert grad(lambda k: fsolve(lambda x: x - 3.0, k)[0] * k)(2.0) == pytest.approx(3.0)


def test_without_anything_traced_it_is_scipys_call():
    found = []
    grad(lambda k: found.append(root(lambda x: x - 1.0, [3.0])) or k)(1.0)
    assert type(found[0].x) is np.ndarray
    assert found[0] == root(lambda x: x - 1.0, [3.0])


# --- costs --------------------------------------------------------------------------------------


def test_the_solver_runs_once_on_numbers_and_the_equation_once_more():
    def f(k):
        def F(x):
            seen.append(type(x))
            return x * x - k

        return brentq(F, 0.0, 5.0)

    seen = []
    f(4.0)
    alone = list(seen)
    seen.clear()
    _, pull = vjp(f, 4.0)
    assert seen[:-1] == alone  # plain floats, as SciPy gives them
    assert len(seen) == len(alone) + 1
    pull(1.0), pull(2.0)
    assert len(seen) == len(alone) + 1


def test_a_pullback_is_one_linear_solve(monkeypatch):
    solved = []
    lu = np.linalg.solve

    def counted(a, b):
        solved.append(a.shape)
        return lu(a, b)

    n = 6
    monkeypatch.setattr(np.linalg, "solve", counted)
    grad(lambda p: np.sum(fsolve(lambda x: x + 0.1 * x**3 - p, np.zeros(n))))(np.ones(n))
    assert solved == [(n, n)]


# --- what has no derivative ---------------------------------------------------------------------


def test_code_that_looks_at_success_goes_on():
    def f(p):
        found = root(lambda x: x**2 + p, 1.0)
        return found.x[0] if found.success else -p

    assert grad(f)(3.0) == -1.0
    assert jvp(f, (3.0,), (1.0,)) == (-3.0, -1.0)


def test_fsolve_warns_as_scipy_does():
    with pytest.warns(RuntimeWarning, match="not making good progress"):
        jvp(lambda p: p * fsolve(lambda x: x**2 + p, 1.0).size, (1.0,), (1.0,))


def test_what_is_missing_scipy_says():
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'b'"):
        grad(lambda p: optimize.brentq(lambda x: x - p, 0.0))(1.0)
