"""Minima: found by SciPy, and differentiated as solutions of the equation of stationarity."""

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from lineara.api import stop_gradient
from lineara.errors import NoRuleError
from lineara.facts.hints import Shaped, Tree, Value
from lineara.facts.types import type_of
from lineara.ops.shape import as_array
from lineara.solvers.calls import Call, solver
from lineara.solvers.roots import first, real, tuple_of
from lineara.solvers.stationary import Condition, Minimum, number, objective, row
from lineara.tape.node import plain


def above(fun: Callable[..., Any], low: Shaped, at: np.ndarray, x: Shaped) -> Any:
    """fun(x) - low, for the elements that have a lower bound."""
    low = as_array(low)
    return row(fun(x))[at] - (row(low)[at] if type_of(low).size > 1 else low)


def below(fun: Callable[..., Any], high: Shaped, at: np.ndarray, x: Shaped) -> Any:
    """high - fun(x), for the elements that have an upper bound."""
    return -above(fun, high, at, x)


def itself(x: Shaped) -> Any:
    """The identity, of which bounds on x are the bounds."""
    return x


def product(A: Shaped, x: Shaped) -> Any:
    """A x, for dense or sparse A."""
    return A @ x


def between(fun: Callable[..., Any], low: Any, high: object, size: int) -> Iterator[Condition]:
    """The conditions low <= fun(x) <= high; the bounds broadcast to `size` elements."""
    lows, highs = (np.broadcast_to(_at_rest(b), (size,)) for b in (low, high))
    equal = lows == highs
    for bounded, side, limit in ((lows, above, low), (highs, below, high)):
        at = np.flatnonzero(np.isfinite(bounded) & ~equal)
        if len(at):
            yield Condition(functools.partial(side, fun, limit, at))
    if np.any(equal):
        yield Condition(functools.partial(above, fun, low, np.flatnonzero(equal)), equal=True)


def _at_rest(value: Tree) -> np.ndarray:
    """Bounds as an array of plain numbers."""
    return np.asarray([plain(v) for v in value] if isinstance(value, list) else plain(value), float)


def bounds_of(bounds: Any, size: int) -> list[Condition]:
    """The conditions of `bounds=`: pairs, where None is no bound, or an object with lb and ub."""
    if bounds is None:
        return []
    if hasattr(bounds, "lb"):
        return list(between(itself, bounds.lb, bounds.ub, size))
    low = [-np.inf if pair[0] is None else pair[0] for pair in bounds]
    high = [np.inf if pair[1] is None else pair[1] for pair in bounds]
    return list(between(itself, low, high, size))


def constraints_of(
    call: Call, constraints: dict[Any, Any] | list[Any] | tuple[Any, ...], x: np.ndarray
) -> Iterator[Condition]:
    """The conditions of `constraints=`: dicts, or SciPy's constraint objects."""
    listed = constraints if isinstance(constraints, list | tuple) else [constraints]
    for c in listed:
        if isinstance(c, dict):
            fun = functools.partial(applied, c["fun"], tuple_of(c.get("args", ())))
            yield Condition(fun, equal=c["type"].lower() == "eq")
        else:
            fun = functools.partial(product, c.A) if hasattr(c, "A") else c.fun
            size = len(call.on_numbers(functools.partial(as_row, fun))(x))
            yield from between(fun, c.lb, c.ub, size)


def as_row(fun: Callable[..., Any], x: Shaped) -> Any:
    """fun(x) as a vector."""
    return row(fun(x))


def applied(fun: Callable[..., Any], args: tuple[Any, ...], x: Shaped) -> Any:
    """fun(x, *args)."""
    return fun(x, *args)


def pinned(value: Value, formula: Shaped) -> Any:
    """SciPy's value with the derivative of the formula."""
    return value + (formula - stop_gradient(formula))


@solver("scipy.optimize.minimize")
def minimize(call: Call) -> Any:
    """Every method of `minimize`; the result's `x` and `fun` have derivatives."""
    result = call.run()
    fun = functools.partial(first, call["fun"]) if call["jac"] is True else call["fun"]
    f = functools.partial(objective, fun, tuple_of(call["args"]))
    x = np.asarray(real(call, result.x))
    conditions = bounds_of(call["bounds"], x.size)
    conditions += constraints_of(call, call["constraints"], x)
    best = Minimum(call, f, x, conditions, call.asked(None if result.success else result.message))
    result.x, result.fun = best.x, best.value(result.fun)
    return result


@solver("scipy.optimize.minimize_scalar")
def minimize_scalar(call: Call) -> Any:
    """Every method of `minimize_scalar`; the result's `x` and `fun` have derivatives."""
    result = call.run()
    x = real(call, np.asarray(result.x)[()])
    f = functools.partial(of_one, call["fun"], tuple_of(call["args"]))
    bounds = call["bounds"]
    conditions = bounds_of(None if bounds is None else [bounds], 1)
    failure = None if result.success else result.message
    best = Minimum(call, f, np.atleast_1d(x), conditions, call.asked(failure))
    result.x, result.fun = best.x[0], best.value(result.fun)
    return result


def of_one(fun: Callable[..., Any], args: tuple[Any, ...], x: Shaped) -> Any:
    """fun(x[0], *args) for an x of one element."""
    return number(fun(x[0], *args))


@solver("scipy.optimize.linprog")
def linprog(call: Call) -> Any:
    """`x` and `fun` have derivatives where the optimum is a single, not degenerate vertex."""
    if call["integrality"] is not None and np.any(call.plain("integrality")):
        raise NoRuleError(
            "linprog: a solution in integers jumps, and has no derivative; solve for it on plain "
            "numbers (lineara.stop_gradient), or without integrality"
        )
    result = call.run()
    if result.x is None:
        return result
    size, bounds = result.x.size, call["bounds"]
    if not hasattr(bounds, "lb") and not np.iterable(bounds[0]):  # one pair for all unknowns
        bounds = [bounds] * size
    conditions = bounds_of(bounds, size)
    for A, b, equal in (("A_ub", "b_ub", False), ("A_eq", "b_eq", True)):
        if call[A] is not None:
            conditions.append(Condition(functools.partial(slack, call[A], call[b]), equal))
    f = functools.partial(product, as_array(call["c"]))
    failure = None if result.success else result.message
    result.x = Minimum(call, f, result.x, conditions, call.asked(failure)).x
    result.fun = pinned(result.fun, f(result.x))
    return result


def slack(A: Any, b: Any, x: Shaped) -> Any:
    """b - A x."""
    return row(b) - product(as_array(A) if isinstance(A, list | tuple) else A, x)


# --- over the whole of a box, and the older names -----------------------------------------------


@solver(
    "scipy.optimize.differential_evolution",
    "scipy.optimize.dual_annealing",
    "scipy.optimize.shgo",
)
def global_minimum(call: Call) -> Any:
    """The best minimum found, differentiated as a local minimum."""
    result = call.run()
    x = np.asarray(real(call, result.x))
    conditions = bounds_of(call["bounds"], x.size)
    constraints = call.given.get("constraints")
    conditions += constraints_of(call, constraints or (), x)
    f = functools.partial(objective, call["func"], tuple_of(call["args"]))
    asked = call.asked(None if result.success else result.message)
    best = Minimum(call, f, x, conditions, asked)
    result.x, result.fun = best.x, best.value(result.fun)
    return result


@solver("scipy.optimize.basinhopping")
def basinhopping(call: Call) -> Any:
    """The lowest minimum, differentiated as a result of `minimize` with `minimizer_kwargs`."""
    result = call.run()
    options = call["minimizer_kwargs"] or {}
    fun = functools.partial(first, call["func"]) if options.get("jac") is True else call["func"]
    f = functools.partial(objective, fun, tuple_of(options.get("args", ())))
    x = np.asarray(real(call, result.x))
    conditions = bounds_of(options.get("bounds"), x.size)
    conditions += constraints_of(call, options.get("constraints", ()), x)
    lowest = result.lowest_optimization_result
    best = Minimum(call, f, x, conditions, call.asked(None if lowest.success else lowest.message))
    result.x, result.fun = best.x, best.value(result.fun)
    return result


@solver(
    "scipy.optimize.fmin",
    "scipy.optimize.fmin_bfgs",
    "scipy.optimize.fmin_cg",
    "scipy.optimize.fmin_ncg",
    "scipy.optimize.fmin_powell",
)
def fmin(call: Call) -> Any:
    """The minimum and, with `full_output`, its value; other results have no derivative."""
    x, value, *rest = call.run(full_output=True)
    flag = rest[-2] if call["retall"] else rest[-1]
    fun = call.given["func" if "func" in call.given else "f"]
    f = functools.partial(objective, fun, tuple_of(call["args"]))
    asked = call.asked(f"warnflag {flag}" if flag else None)
    best = Minimum(call, f, np.atleast_1d(real(call, x)), [], asked)
    result = (best.x, best.value(value), *rest)
    if call["full_output"]:
        return result
    return (best.x, rest[-1]) if call["retall"] else best.x
