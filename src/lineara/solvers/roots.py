"""Roots and fixed points: found by SciPy, differentiated by the implicit function theorem."""

import functools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from lineara.errors import NoRuleError
from lineara.facts.hints import Shaped, Value
from lineara.ops.shape import as_array
from lineara.solvers.calls import Call, solver
from lineara.solvers.implicit import gradient, solution


def residual(fun: Callable[..., Any], args: tuple[Any, ...], x: Value) -> Any:
    """F(x, *args)."""
    return fun(x, *args)


def first(fun: Callable[..., Any], x: Value, *args: Any) -> Any:
    """The value of a function that also returns its derivatives."""
    return fun(x, *args)[0]


def tuple_of(args: object) -> tuple[Any, ...]:
    """`args` as a tuple, as SciPy reads it: a single argument need not be in one."""
    return args if isinstance(args, tuple) else (args,)


def equation(call: Call, fun: Callable[..., Any]) -> Any:
    """x -> fun(x, *args)."""
    return functools.partial(residual, fun, tuple_of(call["args"]))


def half_square(fun: Callable[..., Any], x: Shaped) -> Any:
    """|fun(x)|^2 / 2."""
    return np.sum(as_array(fun(x)) ** 2) / 2


def real(call: Call, x: Shaped) -> Any:
    """The solution; an error if it is complex."""
    if np.iscomplexobj(x):
        raise NoRuleError(
            f"{call.name}: a complex solution has no derivative rule; solve for the real and the "
            "imaginary part as two real unknowns"
        )
    return x


@solver("scipy.optimize.root")
def root(call: Call) -> Any:
    """Every method of `root`; the result's `x` has a derivative, `fun` is a constant."""
    result = call.run()
    fun = functools.partial(first, call["fun"]) if call["jac"] is True else call["fun"]
    failure = None if result.success else result.message
    equal = equation(call, fun)
    if np.size(result.fun) > np.size(result.x):  # lm: more equations than unknowns
        equal = functools.partial(gradient, functools.partial(half_square, equal))
    result.x = solution(equal, real(call, result.x), call.asked(failure))
    return result


@solver("scipy.optimize.fsolve")
def fsolve(call: Call) -> Any:
    """The solution; with `full_output` the other results are constants."""
    x, info, status, message = call.run(full_output=True)
    if status != 1 and not call["full_output"]:
        warnings.warn(message, RuntimeWarning, stacklevel=3)
    failure = None if status == 1 else message
    x = solution(equation(call, call["func"]), real(call, x), call.asked(failure))
    return (x, info, status, message) if call["full_output"] else x


@solver("scipy.optimize.fixed_point")
def fixed_point(call: Call) -> Any:
    """x with func(x, *args) = x."""
    x = real(call, np.asarray(call.run())[()])
    return solution(functools.partial(excess, equation(call, call["func"])), x, call.asked())


@solver(
    "scipy.optimize.anderson",
    "scipy.optimize.broyden1",
    "scipy.optimize.broyden2",
    "scipy.optimize.diagbroyden",
    "scipy.optimize.excitingmixing",
    "scipy.optimize.linearmixing",
    "scipy.optimize.newton_krylov",
)
def quasi_newton(call: Call) -> Any:
    """The solution, in the shape of the start."""
    return solution(call["F"], real(call, np.asarray(call.run())[()]), call.asked())


def excess(fun: Callable[..., Any], x: Value) -> Any:
    """fun(x) - x."""
    return fun(x) - x


@solver(
    "scipy.optimize.bisect",
    "scipy.optimize.brenth",
    "scipy.optimize.brentq",
    "scipy.optimize.ridder",
    "scipy.optimize.toms748",
)
def bracketed(call: Call) -> Any:
    """The root in a bracket, as a number."""
    x, info = call.run(full_output=True)
    failure = None if info.converged else info.flag
    info.root = x = solution(equation(call, call["f"]), x, call.asked(failure))
    return (x, info) if call["full_output"] else x


@solver("scipy.optimize.newton")
def newton(call: Call) -> Any:
    """A root near x0; for an array x0 one root near each element, independently."""
    x, info, *more = call.run(full_output=True)
    ended = np.all(info if more else info.converged)
    asked = call.asked(None if ended else "not all of the iterations ended")
    x = real(call, x if more else np.asarray(x)[()])
    x = solution(equation(call, call["func"]), x, asked, elementwise=bool(more))
    if not call["full_output"]:
        return x
    if not more:
        info.root = x
    return (x, info, *more)


@solver("scipy.optimize.root_scalar")
def root_scalar(call: Call) -> Any:
    """Every method of `root_scalar`; the result's `root` has a derivative."""
    result = call.run()
    several = call["fprime"] is not None and not callable(call["fprime"]) and call["fprime"]
    fun = functools.partial(first, call["f"]) if several else call["f"]
    failure = None if result.converged else result.flag
    result.root = solution(equation(call, fun), real(call, result.root), call.asked(failure))
    return result
