"""The steps that an ODE solver took, repeated with traced values: the discrete derivative.

SciPy chooses the steps on plain numbers.  They are constants here, and the result of each step
is a function of y0, the parameters and the ends of the interval: stages of an explicit method
[Hairer 1993, §II.4], or the equation of an implicit one's stages, which the implicit function
theorem differentiates [Hairer and Wanner 1996, §IV.8].  A step gives y at its end, and a piece:
the polynomial between, as a partial of one argument, t.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from lineara.facts.hints import Shaped, Value
from lineara.facts.primitive import op
from lineara.facts.types import type_of
from lineara.ops.shape import as_array
from lineara.solvers.calls import Asked
from lineara.solvers.implicit import solution

Rhs = Callable[[Any, Any], Any]  # f(t, y)

S6 = 6**0.5
RADAU_A = np.array(  # the weights of the Radau IIA method of order 5
    [
        [(88 - 7 * S6) / 360, (296 - 169 * S6) / 1800, (-2 + 3 * S6) / 225],
        [(296 + 169 * S6) / 1800, (88 + 7 * S6) / 360, (-2 - 3 * S6) / 225],
        [(16 - S6) / 36, (16 + S6) / 36, 1 / 9],
    ]
)
RADAU_C = RADAU_A.sum(axis=1)


class Taken(NamedTuple):
    """A step that SciPy took: its two ends, and the stages of an implicit method."""

    start: Any
    stop: Any
    Z: Any = None


class Step(NamedTuple):
    """A repeated step: y at its end, y' there if known, and the interpolating piece."""

    y: Any
    slope: Any
    piece: Callable[[Any], Any] | None


def recorder(method: Any, log: list[Taken], most: float = np.inf) -> Any:
    """The solver class with its steps recorded in `log`; raises TooMany after `most` steps."""

    class Recorded(method):
        def step(self) -> Any:
            if len(log) >= most:
                raise TooMany(f"{method.__name__} took {most} steps, and is not at the end")
            before = self.t
            message = super().step()
            if self.status != "failed" and self.t != before:
                Z = getattr(self, "Z", None)
                log.append(Taken(before, self.t, None if Z is None else Z.copy()))
            return message

    return Recorded


class TooMany(Exception):
    """A solver took more steps than allowed."""


def weighted(weights: np.ndarray, K: Sequence[Any]) -> Any:
    """sum_i w_i K_i, over the weights that are not zero."""
    at = np.flatnonzero(weights).tolist()
    return op("matmul")(weights[at], op("stack")(*[K[i] for i in at]))


def power_series(start: object, h: Value, y: Shaped, Q: object, t: Shaped) -> Any:
    """y + Q (x, x^2, ...) with x from 0 to 1 over the step : (n,), or (n, points)."""
    x = (as_array(t) - start) / h
    powers = [x]
    for _ in range(type_of(Q).shape[1] - 1):
        powers.append(powers[-1] * x)
    series = op("matmul")(Q, op("stack")(*map(as_array, powers)))
    return series + (y if not type_of(x).shape else np.reshape(y, (-1, 1)))


def nested_series(start: object, h: Shaped, y: Shaped, F: Sequence[Any], t: Shaped) -> Any:
    """y + x (F0 + (1-x) (F1 + x (F2 + ...)))  : (n,), or (n, points)."""
    x = (as_array(t) - start) / h
    many = bool(type_of(x).shape)
    shown = [np.reshape(f, (-1, 1)) if many else f for f in (y, *F)]
    series = 0.0
    for i, f in enumerate(reversed(shown[1:])):
        series = (series + f) * (x if i % 2 == 0 else 1 - x)
    return series + shown[0]


def explicit(method: Any, f: Rhs, taken: Taken, y: Shaped, slope: Any, dense: bool) -> Step:
    """A step of a Runge-Kutta method."""
    t, h = taken.start, taken.stop - taken.start
    K = [f(t, y) if slope is None else slope]
    for s in range(1, method.n_stages):
        dy = weighted(method.A[s, :s], K) * h
        K.append(f(t + method.C[s] * h, y + dy))
    new = y + h * weighted(method.B, K)
    K.append(f(t + h, new))
    if not dense:
        return Step(new, K[-1], None)
    if not hasattr(method, "D"):
        Q = op("matmul")(np.ascontiguousarray(method.P.T), op("stack")(*K))
        return Step(new, K[-1], functools.partial(power_series, t, h, y, h * np.transpose(Q)))
    end = K[-1]
    for a, c in zip(method.A_EXTRA, method.C_EXTRA, strict=True):
        dy = weighted(a[: len(K)], K) * h
        K.append(f(t + c * h, y + dy))
    change = new - y
    F = [change, h * K[0] - change, 2 * change - h * (end + K[0])]
    F += [h * weighted(d, K) for d in method.D]
    return Step(new, end, functools.partial(nested_series, t, h, y, F))


def stages(f: Rhs, t: Value, h: Value, y: Value, Z: Any) -> Any:
    """The equation of the stages of Radau IIA : Z_i = h sum_j a_ij f(t + c_j h, y + Z_j)."""
    F = op("stack")(*[f(t + RADAU_C[i] * h, y + Z[i]) for i in range(3)])
    return Z - h * op("matmul")(RADAU_A, F)


def implicit(f: Rhs, taken: Taken, y: Shaped, asked: Asked) -> Step:
    """A step of Radau IIA, whose stages are known from SciPy."""
    from scipy.integrate._ivp.radau import P

    t, h = taken.start, taken.stop - taken.start
    Z = solution(functools.partial(stages, f, t, h, y), taken.Z, asked)
    Q = op("matmul")(np.transpose(Z), P)
    return Step(y + Z[2], None, functools.partial(power_series, t, h, y, Q))
