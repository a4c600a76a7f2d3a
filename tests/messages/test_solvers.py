"""Solvers whose results have no derivative, and where no solver can run."""

import numpy as np
import pytest
from scipy.optimize import bisect, brentq, fsolve, newton

from lineara import grad, jvp, linear_transpose, trace
from lineara.errors import LinearityError, StagingError


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


def test_a_traced_value_that_is_out_of_sight(said):
    def f(k):
        Shared.k = k
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
