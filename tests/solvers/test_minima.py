"""Minima move as stationarity says, and optimal values as the envelope theorem says."""

import numpy as np
import pytest
from scipy import optimize
from scipy.optimize import (
    Bounds,
    LinearConstraint,
    NonlinearConstraint,
    curve_fit,
    fsolve,
    least_squares,
    leastsq,
    linprog,
    minimize,
    minimize_scalar,
)

from lineara import grad, hessian, jacobian, jvp, value_and_grad
from lineara.errors import SolverError

P = np.array([1.2, 5.0])


def differences(f, p, h=1e-4):
    steps = h * np.eye(len(p))
    return np.stack([(f(p + e) - f(p - e)) / (2 * h) for e in steps], axis=-1)


# --- without conditions -------------------------------------------------------------------------


def valley(x, a, b):
    return (a - x[0]) ** 2 + b * (x[1] - x[0] ** 2) ** 2 + 0.1 * x[1] ** 2


def valley_slope(x, a, b):
    u = x[1] - x[0] ** 2
    return np.array([2 * (x[0] - a) - 4 * b * x[0] * u, 2 * b * u + 0.2 * x[1]])


def valley_hessian(x, a, b):
    u = x[1] - x[0] ** 2
    return np.array(
        [[2 - 4 * b * u + 8 * b * x[0] ** 2, -4 * b * x[0]], [-4 * b * x[0], 2 * b + 0.2]]
    )


def valley_mixed(x, a, b):  # of the slope, with respect to a and b
    u = x[1] - x[0] ** 2
    return np.array([[-2.0, -4 * x[0] * u], [0.0, 2 * u]])


GRADIENT_FREE = ["Nelder-Mead", "Powell", "COBYQA"]


@pytest.mark.parametrize("method", [*GRADIENT_FREE, "BFGS", "CG", "L-BFGS-B", "TNC", "SLSQP"])
def test_a_minimum_and_its_value(method):
    def solve(p):
        return minimize(valley, np.zeros(2), args=(p[0], p[1]), method=method, tol=1e-9)

    x = solve(P).x
    J = -np.linalg.solve(valley_hessian(x, *P), valley_mixed(x, *P))
    assert np.allclose(jacobian(lambda p: solve(p).x)(P), J, atol=1e-7)
    value, slope = value_and_grad(lambda p: solve(p).fun)(P)
    assert value == solve(P).fun
    u = x[1] - x[0] ** 2
    assert np.allclose(slope, [2 * (P[0] - x[0]), u**2])  # f with x held


@pytest.mark.parametrize("method", ["Newton-CG", "dogleg", "trust-exact", "trust-krylov"])
def test_methods_that_take_a_jac_and_a_hess(method):
    def solve(p):
        args = (p[0], p[1])
        return minimize(
            valley, np.zeros(2), args, method, jac=valley_slope, hess=valley_hessian, tol=1e-9
        )

    x = solve(P).x
    J = -np.linalg.solve(valley_hessian(x, *P), valley_mixed(x, *P))
    assert np.allclose(jacobian(lambda p: solve(p).x)(P), J, atol=1e-6)


def exact(p):
    """A minimum to the last digits."""
    options = {"jac": valley_slope, "hess": valley_hessian, "options": {"xtol": 1e-15}}
    return minimize(valley, np.zeros(2), (p[0], p[1]), "Newton-CG", **options)


def test_second_and_third_order():
    def product(p):
        x = exact(p).x
        return x[0] * x[1]

    def by_root(p):  # of the gradient as it was written by hand
        x = fsolve(valley_slope, np.ones(2), (p[0], p[1]), valley_hessian, xtol=1e-13)
        return x[0] * x[1]

    assert np.allclose(hessian(product)(P), differences(grad(by_root), P), rtol=1e-5)
    third = jvp(hessian(product), (P,), (np.ones(2),))[1]
    h = 1e-4
    expected = (hessian(by_root)(P + h) - hessian(by_root)(P - h)) / (2 * h)
    assert np.allclose(third, expected, rtol=1e-4)


def test_the_value_at_second_order():
    def value(p):
        return exact(p).fun

    x = exact(P).x
    J = -np.linalg.solve(valley_hessian(x, *P), valley_mixed(x, *P))
    f_pp = np.array([[2.0, 0.0], [0.0, 0.0]])
    assert np.allclose(hessian(value)(P), f_pp + valley_mixed(x, *P).T @ J, atol=1e-6)


def test_a_value_needs_no_hessian(monkeypatch):
    solved = []
    monkeypatch.setattr(np.linalg, "solve", lambda a, b: solved.append(a))
    grad(lambda p: exact(p).fun)(P)
    assert solved == []


SCALAR = {
    "brent": {"options": {"xtol": 1e-10}},
    "golden": {"method": "golden", "options": {"xtol": 1e-10}},
    "bounded": {"method": "bounded", "bounds": (0, 5), "options": {"xatol": 1e-10}},
}


def hanging(p, **options):
    return minimize_scalar(lambda x: np.cosh(p[0] * x) - p[1] * x, **options)


@pytest.mark.parametrize("name", SCALAR)
def test_a_minimum_in_one_unknown(name):
    p = np.array([1.5, 2.0])  # p0 sinh(p0 x) = p1
    q = p[1] / p[0]
    x = np.arcsinh(q) / p[0]
    slope = np.array([-np.arcsinh(q) - q / np.hypot(1, q), 1 / np.hypot(1, q)]) / p[0] ** 2
    assert np.allclose(grad(lambda p: hanging(p, **SCALAR[name]).x)(p), slope, rtol=1e-5)
    slope = grad(lambda p: hanging(p, **SCALAR[name]).fun)(p)
    assert np.allclose(slope, [x * np.sinh(p[0] * x), -x], rtol=1e-5)


def test_a_number_at_its_bound_does_not_move():
    held = {"method": "bounded", "bounds": (0, 0.5), "options": {"xatol": 1e-9}}
    p = np.array([1.5, 2.0])
    assert np.allclose(grad(lambda p: hanging(p, **held).x)(p), 0.0)
    slope = grad(lambda p: hanging(p, **held).fun)(p)
    assert np.allclose(slope, [0.5 * np.sinh(0.75), -0.5])


# --- bounds and constraints ---------------------------------------------------------------------


@pytest.mark.parametrize("method", [*GRADIENT_FREE, "L-BFGS-B", "TNC", "SLSQP", "trust-constr"])
def test_a_variable_at_its_bound_does_not_move(method):
    def solve(p):
        args = (p[0], p[1])
        bounds = [(None, 0.6), (None, None)]
        return minimize(valley, np.zeros(2), args, method, bounds=bounds, tol=1e-9)

    x1 = P[1] * 0.36 / (P[1] + 0.1)  # b (x1 - 0.36) + 0.1 x1 = 0
    expected = [[0.0, 0.0], [0.0, 0.36 * 0.1 / (P[1] + 0.1) ** 2]]
    assert np.allclose(solve(P).x, [0.6, x1], atol=1e-4)
    assert np.allclose(jacobian(lambda p: solve(p).x)(P), expected, atol=1e-6)


MOVING = {
    "pairs": lambda b: [(None, b), (None, 3.0)],
    "Bounds": lambda b: Bounds(-np.inf, np.array([b, 3.0])),
}


@pytest.mark.parametrize("name", MOVING)
def test_a_bound_that_moves(name):
    def solve(b):
        bounds = MOVING[name](b)
        return minimize(lambda x: np.sum((x - 2.0) ** 2), np.zeros(2), bounds=bounds, tol=1e-10)

    assert np.allclose(jacobian(lambda b: solve(b).x)(1.0), [1.0, 0.0])
    assert grad(lambda b: solve(b).fun)(1.0) == pytest.approx(-2.0)
    assert grad(grad(lambda b: solve(b).fun))(1.0) == pytest.approx(2.0)


CONSTRAINTS = {
    "dict": lambda r: {"type": "ineq", "fun": lambda x: r**2 - x @ x},
    "equality": lambda r: [{"type": "eq", "fun": lambda x, r: x @ x - r**2, "args": (r,)}],
    "NonlinearConstraint": lambda r: NonlinearConstraint(lambda x: x @ x / r**2, -np.inf, 1.0),
    "and one that is slack": lambda r: [
        NonlinearConstraint(lambda x: [x @ x / r**2, x[0]], [0.0, -9.0], [1.0, 9.0])
    ],
    "equal ends": lambda r: NonlinearConstraint(lambda x: x @ x / r**2, 1.0, 1.0),
}


@pytest.mark.parametrize("name", CONSTRAINTS)
@pytest.mark.parametrize("method", ["SLSQP", "trust-constr"])
@pytest.mark.filterwarnings("ignore:delta_grad")
def test_a_minimum_on_a_circle(name, method):
    c = np.array([3.0, 4.0])

    def solve(r):
        return minimize(
            lambda x: np.sum((x - c) ** 2),
            np.ones(2),
            constraints=CONSTRAINTS[name](r),
            method=method,
            tol=1e-9,
        )

    assert np.allclose(jacobian(lambda r: solve(r).x)(2.0), c / 5, atol=1e-5)
    assert grad(lambda r: solve(r).fun)(2.0) == pytest.approx(-6.0, abs=1e-5)  # (5 - r)^2
    assert grad(grad(lambda r: solve(r).fun))(2.0) == pytest.approx(2.0, abs=1e-4)


def test_a_linear_constraint():
    def solve(b):
        line = LinearConstraint(np.array([[1.0, 1.0]]), b, np.inf)
        return minimize(lambda x: x @ x, np.ones(2), constraints=line, method="SLSQP")

    b = np.array([2.0])
    assert np.allclose(jacobian(lambda b: solve(b).x)(b), [[0.5], [0.5]])


# --- fits ---------------------------------------------------------------------------------------

T = np.linspace(0.0, 3.0, 12)
Y = 2 * np.exp(-1.3 * T) + 0.1 * np.sin(20 * T)
TIGHT = {"xtol": 1e-15, "ftol": 1e-15, "gtol": 1e-15}


def decay(t, a, b):
    return a * np.exp(-b * t)


def near(f, p, rtol=2e-4):
    """Whether gradient and Hessian are those of differences; the value is SciPy's own."""
    value, slope = value_and_grad(f)(p)
    steps = 1e-3 * np.random.default_rng(0).standard_normal((2, len(p)))
    for e in steps:
        if not np.isclose(slope @ e, (f(p + e) - f(p - e)) / 2, rtol=rtol, atol=1e-8):
            return False
        second = jvp(grad(f), (p,), (e,))[1]
        if not np.allclose(second, (grad(f)(p + e) - grad(f)(p - e)) / 2, rtol=1e-2, atol=1e-6):
            return False
    return value == f(p)


@pytest.mark.parametrize("loss", ["linear", "soft_l1", "huber", "cauchy", "arctan"])
@pytest.mark.parametrize("what", ["x", "cost"])
def test_least_squares_of_every_loss(loss, what):
    def f(y):
        found = least_squares(
            lambda p: decay(T, *p) - y, [1.0, 1.0], loss=loss, f_scale=0.5, **TIGHT
        )
        return found.x[0] * found.x[1] if what == "x" else found.cost

    assert near(f, Y)


def test_what_else_least_squares_gives():
    def f(y):
        found = least_squares(
            lambda p, k: decay(k * T, *p) - y, [1.0, 1.0], kwargs={"k": y[0]}, **TIGHT
        )
        return np.linalg.inv(found.jac.T @ found.jac)[0, 1] + found.fun[3] ** 2

    assert near(f, Y)


def test_a_fit_at_a_bound():
    def f(y):
        found = least_squares(
            lambda p: decay(T, *p) - y, [1.0, 1.0], bounds=([0, 0], [1.5, np.inf]), **TIGHT
        )
        return found.x[0] * found.x[1]

    assert near(f, Y)


FITS = {
    "plain": {},
    "sigma": {"sigma": 0.1 + 0.05 * T},
    "absolute sigma": {"sigma": 0.1 + 0.05 * T, "absolute_sigma": True},
    "covariance": {"sigma": 0.01 * (np.eye(12) + 0.3 * np.eye(12, k=1) + 0.3 * np.eye(12, k=-1))},
    "trf": {"method": "trf"},
    "bounds": {"bounds": ([0.0, 0.0], [5.0, 5.0])},
}


@pytest.mark.parametrize("name", FITS)
def test_curve_fit(name):
    def f(y):
        options = {"xtol": 1e-14, "ftol": 1e-14} | FITS[name]
        popt, pcov = curve_fit(decay, T, y, p0=[1.0, 1.0], **options)
        return popt[0] * popt[1] + pcov[0, 1] + pcov[1, 1]

    assert near(f, Y, rtol=1e-3)


def test_curve_fit_of_what_the_model_captured():
    def f(k):
        return curve_fit(lambda t, a, b: k * decay(t, a, b), T, Y, p0=[1.0, 1.0])[0][0]

    assert grad(f)(2.0) == pytest.approx(-f(2.0) / 2, rel=1e-6)  # k a stays


def test_leastsq():
    def f(y):
        x, inverse, *_ = leastsq(
            lambda p: decay(T, *p) - y, [1.0, 1.0], full_output=True, xtol=1e-14, ftol=1e-14
        )
        return x[0] * x[1] + inverse[0, 0] * leastsq(lambda p: p - y[:2], [1.0, 1.0])[0][1]

    assert near(f, Y, rtol=1e-3)


# --- linear programs ----------------------------------------------------------------------------


def program(p):
    return linprog(
        [-p[0], 4.0],
        A_ub=[[-3, p[1]], [p[2], 2]],
        b_ub=[6, p[3]],
        bounds=[(None, None), (-3, None)],
    )


def test_a_linear_program():
    p = np.array([1.0, 1.0, 1.0, 4.0])  # x1 = -3, x0 = (p3 + 6) / p2
    assert np.allclose(grad(lambda p: program(p).fun)(p), [-10.0, 0.0, 10.0, -1.0])
    expected = [[0.0, 0.0, -10.0, 1.0], [0.0] * 4]
    assert np.allclose(jacobian(lambda p: program(p).x)(p), expected)
    second = hessian(lambda p: program(p).fun)(p)  # -p0 (p3 + 6) / p2
    assert np.allclose(second[2], [10.0, 0.0, -20.0, 1.0])


def test_a_program_with_several_optima_has_no_derivative():
    def f(c):
        return linprog(c, A_eq=[[1.0, 1.0]], b_eq=[1.0]).fun

    assert np.allclose(grad(f)(np.array([1.0, 2.0])), [1.0, 0.0])
    with pytest.raises(SolverError):
        grad(f)(np.array([1.0, 1.0]))


# --- what has no derivative ---------------------------------------------------------------------


def at_its_bound(p):
    return minimize(lambda x: (x[0] - p) ** 2, [1.0], bounds=[(0.0, None)])


def test_a_bound_that_is_only_just_active():
    with pytest.raises(SolverError, match="only just active"):
        grad(lambda p: at_its_bound(p).x[0])(0.0)
    assert grad(lambda p: at_its_bound(p).fun)(0.0) == 0.0
    assert grad(lambda p: at_its_bound(p).fun)(-1.0) == pytest.approx(-2.0)


@pytest.mark.parametrize("what", [lambda r: r.x[0], lambda r: r.fun])
def test_what_did_not_converge(what):
    def f(p):
        return minimize(valley, np.zeros(2), args=(p[0], p[1]), options={"maxiter": 2})

    with pytest.raises(SolverError, match="did not converge"):
        grad(lambda p: what(f(p)))(P)
    assert np.all(grad(lambda p: p[0] if not f(p).success else 0.0)(P) == [1.0, 0.0])


def test_a_solver_that_stops_next_to_the_minimum_has_converged():
    def solve(p):
        jac = {"jac": valley_slope, "hess": valley_hessian}
        options = {"maxiter": exact(P).nit - 1, "xtol": 1e-15}
        return minimize(valley, np.zeros(2), (p[0], p[1]), "Newton-CG", **jac, options=options)

    assert not solve(P).success
    expected = jacobian(lambda p: exact(p).x)(P)
    assert np.allclose(jacobian(lambda p: solve(p).x)(P), expected, atol=1e-4)


def test_a_flat_minimum():
    with pytest.raises(SolverError, match="singular"):
        grad(lambda p: minimize(lambda x: (x[0] + x[1] - p) ** 2, np.zeros(2)).x[0])(1.0)


# --- other names --------------------------------------------------------------------------------

BOX = [(-2.0, 2.0), (-2.0, 2.0)]
OTHERS = {
    "differential_evolution": lambda f, p: (
        optimize.differential_evolution(f, BOX, (p[0], p[1]), rng=0, tol=1e-8, maxiter=60).x
    ),
    "dual_annealing": lambda f, p: (
        optimize.dual_annealing(f, BOX, (p[0], p[1]), rng=0, maxiter=20).x
    ),
    "shgo": lambda f, p: optimize.shgo(lambda x: f(x, p[0], p[1]), BOX).x,
    "basinhopping": lambda f, p: (
        optimize.basinhopping(
            f, np.zeros(2), niter=2, minimizer_kwargs={"args": (p[0], p[1])}, rng=0
        ).x
    ),
    "fmin": lambda f, p: optimize.fmin(f, np.zeros(2), (p[0], p[1]), 1e-9, 1e-9, disp=False),
    "fmin_powell": lambda f, p: optimize.fmin_powell(f, np.zeros(2), (p[0], p[1]), disp=False),
    "fmin_bfgs": lambda f, p: optimize.fmin_bfgs(
        f, np.zeros(2), valley_slope, (p[0], p[1]), disp=False, full_output=True
    )[0],
    "fmin_cg": lambda f, p: optimize.fmin_cg(
        f, np.zeros(2), valley_slope, (p[0], p[1]), disp=False, retall=True
    )[0],
    "fmin_ncg": lambda f, p: optimize.fmin_ncg(
        f, np.zeros(2), valley_slope, args=(p[0], p[1]), disp=False
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_the_minimum_by_other_names(name):
    x, slope = exact(P).x, jacobian(lambda p: exact(p).x)(P)
    assert np.allclose(OTHERS[name](valley, P), x, atol=1e-3)
    assert np.allclose(jacobian(lambda p: OTHERS[name](valley, p))(P), slope, atol=1e-3)


def test_linear_least_squares_in_a_box():
    A, b = np.array([[2.0, 1.0], [1.0, -1.0], [0.5, 3.0]]), np.array([1.0, 4.0, 0.0])

    def boxed(b):
        found = optimize.lsq_linear(A, b, bounds=(-5.0, 0.8))
        return found.x @ np.array([1.0, 2.0]) + found.cost + found.fun[1]

    def positive(b):
        x, norm = optimize.nnls(A, b)
        return x @ np.array([1.0, 2.0]) + norm

    for f in (boxed, positive):
        assert np.allclose(grad(f)(b), differences(f, b), atol=1e-6)
        assert np.allclose(hessian(f)(b), differences(grad(f), b), atol=1e-6)
