"""A solution as a function of the values that its equation has captured: implicit differentiation.

    F(x, theta) = 0     gives     x_dot = - (dF/dx)^-1 (dF/dtheta) theta_dot

This is the derivative fact of all solvers here.  It needs x and one linearization of F at x, not
the solver's iterations [Blondel 2022, §2.1].  It is computed with values of the level below, so
that outer levels differentiate dF/dx as well, which gives every order.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lineara.api import grad
from lineara.errors import SolverError
from lineara.facts.hints import Leaf, Shaped, Value
from lineara.facts.primitive import Joint, op
from lineara.facts.types import type_of
from lineara.ops.linalg import linear_solve
from lineara.ops.shape import as_array, reshape
from lineara.rules.call_as_operation import Form, Whole, settled
from lineara.solvers.calls import Asked, Solved, seeing
from lineara.tape.leaves import Absent
from lineara.tape.level import Level
from lineara.tape.levels import open_level
from lineara.tape.linear_level import owned
from lineara.tape.linearize import Frozen, batch_sweep
from lineara.tape.node import plain

NEAR = 1e-4  # largest relative Newton step from a point that the solver reports as not converged

for _name in ("solution", "optimal_value"):
    Whole(_name)


class Known(Solved):
    """A value known from a solver, as a function of the values that `f` has captured."""

    value: Any
    asked: Asked

    def __init__(self, f: Callable[..., Any], value: Any, asked: Asked) -> None:
        super().__init__(f, asked.name)
        self.value, self.asked = value, asked

    def run(self, args: Sequence[Any], options: dict[str, Any]) -> Any:
        """The value."""
        return self.value.copy() if isinstance(self.value, np.ndarray) else self.value

    def linearized(
        self, values: Sequence[Any], active: Sequence[int], form: Form, x: Value, moves: bool
    ) -> tuple[Any, Frozen]:
        """f(x) as a vector, and its linear map from the active leaves that f captured.

        With `moves` the map's first input is x.
        """
        with open_level() as inner:
            inner.keep_copies = True
            x = inner.wrap(x) if moves else x
            nodes = [inner.wrap(values[i]) for i in active]
            at = dict(zip(active, nodes, strict=True))
            leaves = [at.get(i, v) for i, v in enumerate(values)]
            y = settled(as_array(seeing(self.f, self.names, form, leaves)(x)))
            y = reshaped(y, (type_of(y).size,)) if type_of(y).shape else y
            return y, Frozen(inner, [x, *nodes] if moves else nodes, [owned(inner, y)])


class Solution(Known):
    """x with f(x) = 0; `elementwise` if equation i has only the unknown x_i."""

    def __init__(self, f: Callable[..., Any], value: Any, asked: Asked, elementwise: bool) -> None:
        super().__init__(f, value, asked)
        self.elementwise: bool = elementwise or not np.ndim(value)

    def trace(
        self,
        level: Level,
        values: list[Any],
        active: list[int],
        form: Form,
        options: dict[Any, Any],
    ) -> tuple[Any, Joint]:
        """x at the level below, and the linear map of the implicit function theorem."""
        x = op("solution")(*values, rule=self, form=form, options=options)
        y, frozen = self.linearized(values, active, form, x, True)
        none = [None] * len(active)
        size, shape = type_of(x).size, type_of(x).shape

        @functools.cache
        def slope() -> Any:
            """dF/dx : (n, n); if elementwise, one number for each unknown."""
            if self.elementwise:
                return self._checked(frozen.forward([np.ones(shape)[()], *none])[0], x, y)
            columns = batch_sweep(
                lambda seeds: frozen.forward([*seeds, *none]),
                [np.eye(size).reshape(size, *shape)],
            )[0]
            return self._checked(None if columns is None else columns.T, x, y)

        def forward(tangents: Sequence[Any]) -> list[Any]:
            right = frozen.forward([None, *tangents])[0]
            try:
                return [None if right is None else reshaped(-self._solve(slope(), right), shape)]
            except SolverError as error:
                return [Absent(error)]

        def back(bars: Sequence[Any]) -> Sequence[Any]:
            if bars[0] is None:
                return none
            flat = reshaped(bars[0], (size,) if shape else ())
            J = slope()
            return frozen.back([-self._solve(J if self.elementwise else J.T, flat)])[1:]

        return x, Joint(forward, back)

    def _checked(self, J: object, x: Shaped, y: Value) -> Any:
        """dF/dx, after checking that it is regular and that x is a solution."""
        n = type_of(x).size
        if self.asked.weak:
            raise self.asked.torn()
        if J is None:
            raise self.asked.singular()
        if not self.elementwise and type_of(J).shape != (n, n):
            raise SolverError(
                f"{self.asked.name}: {type_of(J).shape[0]} equations do not determine {n} "
                "unknowns, so the solution has no derivative",
                line=self.asked.line,
            )
        if self.asked.failure is not None:
            step = plain(
                self._solve(plain(J), np.ravel(plain(y)) if np.ndim(plain(y)) else plain(y))
            )
            if not np.max(np.abs(step), initial=0.0) <= NEAR * (1 + np.max(np.abs(plain(x)))):
                raise self.asked.far()
        return J

    def _solve(self, J: Shaped, b: Shaped) -> Any:
        """J^-1 b."""
        if self.elementwise:
            if np.any(np.equal(plain(J), 0)):
                raise self.asked.singular()
            return reshaped(b, type_of(J).shape) / J
        try:
            n = type_of(J).shape[0]
            return reshaped(linear_solve(J, reshaped(b, (n, 1))), (n,))
        except np.linalg.LinAlgError:
            raise self.asked.singular() from None


class OptimalValue(Known):
    """f(x) for an x that makes f stationary, so that the derivative with respect to x is zero.

    The first leaf is x; the others are the values that f has captured.
    """

    def trace(
        self,
        level: Level,
        values: list[Any],
        active: list[int],
        form: Form,
        options: dict[Any, Any],
    ) -> tuple[Any, Joint]:
        """The value at the level below, and the linear map of f for fixed x."""
        y = op("optimal_value")(*values, rule=self, form=form, options=options)
        x, *rest = values
        places = [i - 1 for i in active if i]
        _, frozen = self.linearized(rest, places, self.form, x, False)
        absent = [None] * (len(active) - len(places))
        return y, Joint(
            lambda tangents: frozen.forward(list(tangents)[len(absent) :]),
            lambda bars: [*absent, *frozen.back(list(bars))],
        )


def solution(f: Callable[..., Any], x: Leaf, asked: Asked, elementwise: bool = False) -> Any:
    """x with f(x) = 0, as a function of the values that f has captured."""
    rule = Solution(f, x, asked, elementwise)
    return op("solution")(*rule.leaves, rule=rule, form=rule.form, options={})


def gradient(f: Callable[..., Any], x: Shaped) -> Any:
    """The gradient of f at x, which is zero if x makes f stationary."""
    return grad(f)(x)


def optimal_value(f: Callable[..., Any], x: Shaped, value: Shaped, asked: Asked) -> Any:
    """value = f(x) for a stationary x, as a function of the values that f has captured."""
    rule = OptimalValue(f, value, asked)
    form = Form((None, *rule.form.structures))
    return op("optimal_value")(x, *rule.leaves, rule=rule, form=form, options={})


def reshaped(x: Shaped, shape: tuple[int, ...]) -> Any:
    """x reshaped; unchanged if it has the shape."""
    return x if type_of(x).shape == shape else reshape(x, shape=shape)
