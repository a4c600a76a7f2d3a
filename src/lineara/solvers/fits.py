"""Least squares as minima: half the sum of squares is stationary, with its full Hessian.

With residuals r(x) the equation is J^T r = 0, whose derivative in x is J^T J + sum_i r_i (d^2 r_i).
Gauss-Newton iterations leave the second term out; the derivative of the solution needs it.
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from lineara.api import jacobian
from lineara.errors import NoRuleError
from lineara.facts.hints import Shaped, Value
from lineara.ops.shape import as_array
from lineara.solvers.calls import Call, solver
from lineara.solvers.minima import applied, as_row, between, itself, pinned, real, tuple_of
from lineara.solvers.stationary import Minimum, row

RHO: dict[str, Callable[[Any], Any]] = {  # the loss as a function of the squared residual
    "linear": lambda z: z,
    "soft_l1": lambda z: 2 * (np.sqrt(1 + z) - 1),
    "huber": lambda z: np.where(z <= 1, z, 2 * np.sqrt(np.where(z <= 1, 1.0, z)) - 1),
    "cauchy": lambda z: np.log1p(z),
    "arctan": lambda z: np.arctan(z),
}


def cost(residuals: Callable[..., Any], rho: Callable[..., Any], scale: Value, x: Shaped) -> Any:
    """C^2/2 sum_i rho((r_i(x) / C)^2)."""
    return scale**2 * np.sum(rho((row(residuals(x)) / scale) ** 2)) / 2


def half(residuals: Callable[..., Any], x: Shaped) -> Any:
    """|r(x)|^2 / 2."""
    return np.sum(row(residuals(x)) ** 2) / 2


@solver("scipy.optimize.least_squares")
def least_squares(call: Call) -> Any:
    """Every method and loss; `x`, `cost`, `fun` and (linear loss) `jac` have derivatives."""
    result = call.run()
    loss = call["loss"]
    residuals = functools.partial(
        with_options, call["fun"], tuple(call["args"]), call["kwargs"] or {}
    )
    if loss == "linear":
        f = functools.partial(half, residuals)
    else:
        rho = functools.partial(first_row, loss) if callable(loss) else RHO[loss]
        f = functools.partial(cost, residuals, rho, call["f_scale"])
    x = real(call, result.x)
    best = Minimum(
        call,
        f,
        x,
        limits(call["bounds"], x.size),
        call.asked(None if result.success else result.message),
    )
    result.x, result.cost = best.x, best.value(result.cost)
    result.fun = pinned(result.fun, row(residuals(best.x)))
    if loss == "linear" and isinstance(result.jac, np.ndarray):
        result.jac = pinned(result.jac, jacobian(functools.partial(as_row, residuals))(best.x))
    return result


def with_options(
    fun: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any], x: Shaped
) -> Any:
    """fun(x, *args, **options)."""
    return fun(x, *args, **options)


def first_row(loss: Any, z: Value) -> Any:
    """The value of a user's loss, which also returns its derivatives."""
    return loss(z)[0]


def limits(bounds: Any, size: int) -> list[Any]:
    """The conditions of a fit's `bounds=`: (lower, upper), or an object with lb and ub."""
    low, high = (bounds.lb, bounds.ub) if hasattr(bounds, "lb") else bounds
    return list(between(itself, low, high, size))


@solver("scipy.optimize.curve_fit")
def curve_fit(call: Call) -> Any:
    """The fitted parameters, and their covariance, as functions of the data and of f."""
    result = call.run()
    popt, pcov, *more = result
    if call["nan_policy"] not in (None, "raise"):
        raise NoRuleError(
            f"curve_fit: nan_policy={call['nan_policy']!r} has no derivative rule; leave the "
            "points without data out before the call"
        )
    fitted = functools.partial(misfit, call["f"], call["xdata"], call["ydata"], call["sigma"])
    x = real(call, popt)
    best = Minimum(
        call, functools.partial(half, fitted), x, limits(call["bounds"], x.size), call.asked()
    )
    if np.all(np.isfinite(pcov)):
        pcov = pinned(pcov, covariance(fitted, best.x, not call["absolute_sigma"]))
    return (best.x, pcov, *more)


def misfit(f: Callable[..., Any], xdata: Shaped, ydata: Shaped, sigma: Any, p: Shaped) -> Any:
    """(f(x, *p) - y) / sigma; with a matrix sigma = L L^T, L^-1 (f(x, *p) - y)."""
    r = row(f(as_array(xdata), *p) - as_array(ydata))
    if sigma is None:
        return r
    sigma = as_array(sigma)
    if sigma.ndim == 2:
        return np.linalg.solve(np.linalg.cholesky(sigma), r)
    return r / sigma


def covariance(residuals: Callable[..., Any], p: np.ndarray, scaled: bool) -> Any:
    """(J^T J)^-1; if `scaled`, times the mean square of the residuals."""
    r, J = row(residuals(p)), jacobian(functools.partial(as_row, residuals))(p)
    inverse = np.linalg.inv(J.T @ J)
    return inverse * (np.sum(r * r) / (r.size - p.size)) if scaled else inverse


@solver("scipy.optimize.leastsq")
def leastsq(call: Call) -> Any:
    """The parameters and, with `full_output`, the inverse of J^T J."""
    x, inverse, info, message, status = call.run(full_output=True)
    residuals = functools.partial(applied, call["func"], tuple_of(call["args"]))
    failure = None if status in (1, 2, 3, 4) else message
    best = Minimum(call, functools.partial(half, residuals), real(call, x), [], call.asked(failure))
    if not call["full_output"]:
        return best.x, status
    if inverse is not None:
        inverse = pinned(inverse, covariance(residuals, best.x, False))
    return best.x, inverse, info, message, status


def linear_misfit(A: Shaped, b: Shaped, x: Shaped) -> Any:
    """A x - b."""
    return (as_array(A) if isinstance(A, list) else A) @ x - as_array(b)


@solver("scipy.optimize.lsq_linear")
def lsq_linear(call: Call) -> Any:
    """Linear least squares in a box; `x`, `cost` and `fun` have derivatives."""
    result = call.run()
    residuals = functools.partial(linear_misfit, call["A"], call["b"])
    conditions = limits(call["bounds"], result.x.size)
    asked = call.asked(None if result.success else result.message)
    best = Minimum(call, functools.partial(half, residuals), result.x, conditions, asked)
    result.x, result.cost = best.x, best.value(result.cost)
    result.fun = pinned(result.fun, residuals(best.x))
    return result


@solver("scipy.optimize.nnls")
def nnls(call: Call) -> Any:
    """(x, norm of the residual) of linear least squares with x >= 0."""
    x, norm = call.run()
    residuals = functools.partial(linear_misfit, call["A"], call["b"])
    conditions = limits((0.0, np.inf), x.size)
    best = Minimum(call, functools.partial(half, residuals), x, conditions, call.asked())
    left = np.sqrt(2 * best.value(norm * norm / 2)) if norm > 0 else norm
    return best.x, pinned(norm, left)
