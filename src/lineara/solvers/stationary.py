"""Minima under constraints: stationary points of the Lagrangian of the active constraints.

    L(x, l) = f(x) - sum_j l_j g_j(x)        over the g_j that are active, g_j(x) = 0

x and the multipliers l make L stationary [Nocedal and Wright 2006, §12.3].  So a minimum is a
solution of dL = 0, whose derivative with respect to the unknowns is the Hessian of L, and the
derivative of the value f(x) = L(x, l) is that of L for fixed x and l.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from lineara.api import jacobian, jvp
from lineara.facts.hints import Leaf
from lineara.facts.types import type_of
from lineara.ops.shape import as_array
from lineara.solvers.calls import Asked, Call
from lineara.solvers.implicit import gradient, optimal_value, reshaped, solution

ACTIVE = (
    1e-5  # distance to the bound, relative to the size of x, up to which a condition may be active
)
EXACT = 1e-9  # distance up to which a condition is certainly active
WEAK = 1e-6  # a multiplier that this relative change of x makes zero counts as zero


class Condition(NamedTuple):
    """g(x) >= 0, or g(x) = 0 if `equal`, for each element of g(x)."""

    g: Callable[[Any], Any]
    equal: bool = False


def row(y: Any) -> Any:
    """A number, a list or an array as a vector."""
    y = as_array(y)
    return reshaped(y, (type_of(y).size,))


def number(y: Any) -> Any:
    """The value as a number; an array of one element is reduced to it."""
    y = as_array(y)
    return reshaped(y, ()) if type_of(y).shape else y


def objective(fun: Callable[..., Any], args: tuple[Any, ...], x: Leaf) -> Any:
    """fun(x, *args), as a number."""
    return number(fun(x, *args))


def lagrangian(
    f: Callable[..., Any], conditions: Sequence[Any], rows: Sequence[Any], size: int, z: Any
) -> Any:
    """L(x, l), for x and the multipliers in one vector z."""
    y, start = f(z[:size]), size
    for g, at in zip(conditions, rows, strict=True):
        y = y - np.dot(z[start : start + len(at)], row(g(z[:size]))[at])
        start += len(at)
    return y


class Minimum:
    """A solver's result: x, a minimum of f under conditions, and f(x).

    `f` and the conditions may have captured traced values; `x` and `value` are SciPy's numbers.
    """

    size: int
    asked: Asked

    def __init__(
        self,
        call: Call,
        f: Callable[..., Any],
        x: Any,
        conditions: Sequence[Condition],
        asked: Asked,
    ) -> None:
        self.asked, self.size = asked, np.size(x)
        self.shape: tuple[int, ...] = np.shape(x)
        self.f: Callable[..., Any] = f
        self.point: Any = x
        active = _active(call, f, np.atleast_1d(x), conditions, asked) if conditions else None
        if active is not None:
            rows, multipliers = active
            self.f = functools.partial(lagrangian, f, [c.g for c in conditions], rows, self.size)
            self.point = np.concatenate([np.atleast_1d(x), multipliers])
        self.found: Any = solution(functools.partial(gradient, self.f), self.point, asked)

    @property
    def x(self) -> Any:
        """The minimum, differentiable in what f and the conditions captured."""
        return self.found if self.point.shape == self.shape else self.found[: self.size]

    def value(self, value: Any) -> Any:
        """f at the minimum, with SciPy's number as its value."""
        if self.asked.failure is not None:
            return self.f(self.found)
        return optimal_value(self.f, self.found, value, self.asked)


def _active(
    call: Call, f: Callable[..., Any], x: np.ndarray, conditions: Sequence[Condition], asked: Asked
) -> tuple[list[np.ndarray], np.ndarray] | None:
    """(active elements of each condition, their multipliers); None if no condition is active."""
    values = [call.on_numbers(functools.partial(_of, row, c.g))(x) for c in conditions]
    size = 1 + np.max(np.abs(x))
    near = [
        np.full(v.shape, c.equal) | (v <= ACTIVE * size)
        for c, v in zip(conditions, values, strict=True)
    ]
    rows = [np.flatnonzero(n) for n in near]
    if not any(map(len, rows)):
        return None
    slope, bend = call.on_numbers(functools.partial(_slope_and_bend, f))(x)
    weak = WEAK * bend + EXACT * np.max(np.abs(slope))
    lines = [
        call.on_numbers(functools.partial(_jacobian, c.g))(x)[at]
        for c, at in zip(conditions, rows, strict=True)
    ]
    while True:
        multipliers = np.linalg.lstsq(np.concatenate(lines).T, slope, rcond=None)[0]
        parts = np.split(multipliers, np.cumsum([len(at) for at in rows])[:-1])
        binding = [
            np.full(p.shape, c.equal) | (p > weak) for c, p in zip(conditions, parts, strict=True)
        ]
        for v, at, p, h in zip(values, rows, parts, binding, strict=True):
            if np.any(~h & (np.abs(p) <= weak) & (np.abs(v[at]) <= EXACT * size)):
                asked.weak = True
        if all(map(np.all, binding)):
            return (rows, multipliers) if len(multipliers) else None
        rows = [at[h] for at, h in zip(rows, binding, strict=True)]
        lines = [line[h] for line, h in zip(lines, binding, strict=True)]


def _of(outer: Any, inner: Any, x: Any) -> Any:
    return outer(inner(x))


def _jacobian(g: object, x: Leaf) -> Any:
    return jacobian(functools.partial(_of, row, g))(x)


def _slope_and_bend(f: Callable[..., Any], x: Any) -> tuple[Any, Any]:
    """The gradient, and how much a change of x by its own size would change it."""
    slope, bend = jvp(functools.partial(gradient, f), (x,), (1 + np.abs(x),))
    return slope, np.max(np.abs(bend))
