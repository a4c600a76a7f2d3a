"""Solvers whose results have no derivative, and where no solver can run."""

import functools
import sys

import numpy as np
import pytest
from scipy.integrate import cumulative_trapezoid, quad, romb, simpson, solve_ivp
from scipy.optimize import bisect, brentq, curve_fit, fsolve, linprog, minimize, newton

from lineara import grad, jvp, linear_transpose, trace
from lineara.errors import LinearityError, StagingError
from lineara.solvers.calls import Asked
from lineara.solvers.implicit import solution

ASKED = Asked("root", "")


def test_not_converged(said):
    def f(p):
        return newton(lambda x: x**2 + p, 1.0, maxiter=5, disp=False)

    assert said(lambda: grad(f)(3.0)) == (
        "SolverError: newton: did not converge (not all of the iterations ended), and what is no "
        "solution has no derivative; give another start or more iterations, or do without the "
        "derivative by lineara.stop_gradient"
        "\n  at f: return newton(lambda x: x**2 + p, 1.0, maxiter=5, disp=False)"
    )


@pytest.mark.parametrize(
    "solve",
    [
        lambda p: fsolve(lambda x: [x[0] + x[1] - p, 2 * (x[0] + x[1] - p)], [0.0, p])[0],
        lambda p: bisect(lambda x: (x - p) * x**3, -1.0, 1.0),  # x = 0
        lambda p: newton(lambda x: (x - p) * x**2, np.zeros(2))[0],
    ],
)
def test_singular(said, solve):
    def f(p):
        return solve(p)

    text = said(lambda: grad(f)(2.0))
    assert text == said(lambda: jvp(f, (2.0,), (1.0,)))
    assert text.split(":", 2)[0] == "SolverError"
    assert text.split(":", 2)[2].split("\n")[0] == (
        " the derivative of the equation with respect to the unknown is singular at the solution, "
        "which is then no differentiable function of the parameters (several solutions meet "
        "there, or the equation leaves the unknown free)"
    )


class Shared:
    k = None


@pytest.fixture
def shared():
    yield Shared
    Shared.k = None


def test_a_result_that_is_traced_never_gets_into_compiled_code(said, shared):
    """SciPy would call again with an exception pending, which Python's cache of methods clears."""

    def f(k):
        shared.k = k

        def g(x):
            calls.append(x)
            sys._clear_type_cache()
            return x - shared.k

        return brentq(g, 0.0, 2.0)

    calls = []
    text = said(lambda: grad(f)(1.0))
    assert text.startswith("RuleError: brentq: a function that was given to it uses a traced value")
    assert calls == [0.0]


def test_a_traced_value_that_is_out_of_sight(said, shared):
    def f(k):
        shared.k = k
        return brentq(lambda x: x - Shared.k, 0.0, 2.0)

    assert said(lambda: grad(f)(1.0)) == (
        "RuleError: brentq: a function that was given to it uses a traced value which it has not "
        "captured (a global, or an attribute of a class); pass that in args=, or let the function "
        "be a closure over it"
        "\n  at f: return brentq(lambda x: x - Shared.k, 0.0, 2.0)"
    )


def test_complex(said):
    def f(p):
        return abs(newton(lambda x: x**2 + p, 1.0 + 1j))

    assert said(lambda: grad(f)(2.0)) == (
        "NoRuleError: newton: a complex solution has no derivative rule; solve for the real and "
        "the imaginary part as two real unknowns"
        "\n  at f: return abs(newton(lambda x: x**2 + p, 1.0 + 1j))"
    )


def test_in_a_program(said):
    def f(p):
        return brentq(lambda x: x - p, 0.0, 2.0)

    with pytest.raises(StagingError):
        trace(f, 1.0)
    assert said(lambda: trace(f, 1.0)) == (
        "StagingError: brentq: asked for a number that is not known until the program runs; a "
        "solver iterates on numbers, so differentiate with grad, jvp or linearize, which run on "
        "them, or solve outside of the traced function"
        "\n  at f: return brentq(lambda x: x - p, 0.0, 2.0)"
    )
    with pytest.raises(LinearityError):
        linear_transpose(f, 1.0)


# --- forms without a rule -----------------------------------------------------------------------


def test_a_bound_that_is_only_just_active(said):
    def f(p):
        return minimize(lambda x: (x[0] - p) ** 2, [1.0], bounds=[(0.0, None)]).x[0]

    assert said(lambda: grad(f)(0.0)) == (
        "SolverError: minimize: a bound or a constraint is only just active (its multiplier is "
        "zero), so the solution moves in one way when it is pushed against it and in another when "
        "it is pulled off; the optimal value has a derivative there, the solution has none"
        "\n  at f: return minimize(lambda x: (x[0] - p) ** 2, [1.0], bounds=[(0.0, None)]).x[0]"
    )


def test_more_equations_than_unknowns(said):
    def f(p):
        return solution(functools.partial(np.multiply, p * np.ones(3)), 0.0 * np.ones(1), ASKED)[0]

    assert said(lambda: grad(f)(1.0)).startswith(
        "SolverError: root: 3 equations do not determine 1 unknowns, so the solution has no "
        "derivative"
    )


def test_integers(said):
    def f(c):
        return linprog(c, A_ub=[[-1.0, -1.0]], b_ub=[-1.5], integrality=1).fun

    assert said(lambda: grad(f)(np.ones(2))) == (
        "NoRuleError: linprog: a solution in integers jumps, and has no derivative; solve for it "
        "on plain numbers (lineara.stop_gradient), or without integrality"
        "\n  at f: return linprog(c, A_ub=[[-1.0, -1.0]], b_ub=[-1.5], integrality=1).fun"
    )


def test_data_that_are_missing(said):
    def f(y):
        return curve_fit(lambda t, a: a * t, np.ones(3), y, nan_policy="omit")[0][0]

    assert said(lambda: grad(f)(np.ones(3))) == (
        "NoRuleError: curve_fit: nan_policy='omit' has no derivative rule; leave the points "
        "without data out before the call"
        '\n  at f: return curve_fit(lambda t, a: a * t, np.ones(3), y, nan_policy="omit")[0][0]'
    )


def test_a_complex_integral(said):
    def f(p):
        return abs(quad(lambda t: np.exp(1j * p * t), 0, 1, complex_func=True)[0])

    assert said(lambda: grad(f)(1.0)) == (
        "NoRuleError: quad: complex_func=True has no derivative rule; integrate the real and the "
        "imaginary part on their own"
        "\n  at f: return abs(quad(lambda t: np.exp(1j * p * t), 0, 1, complex_func=True)[0])"
    )


def test_a_weight_that_moves(said):
    def f(w):
        return quad(np.exp, 0, 1, weight="cos", wvar=w)[0]

    assert said(lambda: grad(f)(1.0)) == (
        "NoRuleError: quad: with weight= there is a rule for what the integrand captured, not for "
        "limits or wvar; write the weight into the integrand"
        '\n  at f: return quad(np.exp, 0, 1, weight="cos", wvar=w)[0]'
    )


def test_an_interval_of_length_zero(said):
    def f(k):
        return solve_ivp(lambda t, y: k * y, (1.0, 1.0), [1.0]).y[0, -1]

    assert said(lambda: grad(f)(1.0)) == (
        "NoRuleError: solve_ivp: t_span is empty; return y0 itself"
        "\n  at f: return solve_ivp(lambda t, y: k * y, (1.0, 1.0), [1.0]).y[0, -1]"
    )


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (
            lambda y: simpson(y, x=np.ones(3)),
            "simpson: f64[3] points do not fit 4 samples along axis -1; give one point for each "
            "sample",
        ),
        (romb, "romb: takes 2^k + 1 samples, not 4"),
        (
            lambda y: cumulative_trapezoid(y, initial=2.0),
            "cumulative_trapezoid: initial is None or 0, not 2.0",
        ),
    ],
)
def test_samples_that_do_not_fit(said, rule, text):
    def f(y):
        return np.sum(rule(y))

    assert said(lambda: grad(f)(np.ones(4))).split("\n")[0] == "ShapeError: " + text


def test_a_continuous_adjoint_of_all_steps(said):
    def f(k):
        return solve_ivp(lambda t, y: k * y, (0, 1), [1.0], adjoint="continuous").y[0, -1]

    assert said(lambda: grad(f)(1.0)) == (
        "NoRuleError: solve_ivp: adjoint='continuous' gives y at the times of t_eval, and keeps "
        "nothing between; give t_eval (the last time alone, if y is wanted there), and leave out "
        "events and dense_output, or leave out adjoint="
        "\n  at f: return solve_ivp(lambda t, y: k * y, (0, 1), [1.0], "
        'adjoint="continuous").y[0, -1]'
    )


def test_an_adjoint_that_is_not_known(said):
    def f(k):
        return solve_ivp(lambda t, y: k * y, (0, 1), [1.0], adjoint="both").y[0, -1]

    assert said(lambda: grad(f)(1.0)) == (
        "TypeMismatchError: solve_ivp: adjoint='both' is not known; give 'discrete', which is what "
        "is done without, or 'continuous'"
        '\n  at f: return solve_ivp(lambda t, y: k * y, (0, 1), [1.0], adjoint="both").y[0, -1]'
    )
