"""Integrals of samples: weighted sums, whose weights depend on the spacing."""

from typing import Any

import numpy as np

from lineara.errors import ShapeError
from lineara.facts.hints import Shaped, Value
from lineara.facts.primitive import implements
from lineara.facts.types import type_of
from lineara.ops.shape import as_array


def _last(y: Any, axis: int) -> Any:
    """The samples with their axis moved to the end."""
    y = as_array(y)
    return y if axis in (-1, type_of(y).ndim - 1) else np.moveaxis(y, axis, -1)


def _steps(name: str, y: Shaped, x: Any, dx: object, axis: int) -> Any:
    """The distances between samples: an array along the last axis, or one number for all."""
    if x is None:
        if type(dx) is float or type(dx) is int:  # a Python number does not change the dtype of y
            return dx
        dx = as_array(dx)
        return _last(dx, axis) if type_of(dx).ndim > 1 else dx
    x = as_array(x)
    if type_of(x).ndim > 1:
        x = _last(x, axis)
    if type_of(x).shape[-1] != y.shape[-1]:
        raise ShapeError(
            f"{name}: {type_of(x)} points do not fit {y.shape[-1]} samples along axis {axis}; give "
            "one point for each sample"
        )
    return x[..., 1:] - x[..., :-1]


def _ratio(a: Value, b: Shaped) -> Any:
    """a / b, and 0 where b is 0: an interval of length 0 has no area."""
    there = b != 0
    return np.where(there, a / np.where(there, b, 1.0), 0.0)


@implements("scipy.integrate.trapezoid")
def trapezoid(y, x=None, dx=1.0, axis=-1):
    """The trapezoidal rule: the sum of h (y_i + y_{i+1}) / 2."""
    y = _last(y, axis)
    h = _steps("trapezoid", y, x, dx, axis)
    return np.sum(h * (y[..., 1:] + y[..., :-1]) / 2.0, axis=-1)


@implements("scipy.integrate.cumulative_trapezoid")
def cumulative_trapezoid(y, x=None, dx=1.0, axis=-1, initial=None):
    """The trapezoidal rule up to each sample."""
    y = _last(y, axis)
    h = _steps("cumulative_trapezoid", y, x, dx, axis)
    areas = np.cumsum(h * (y[..., 1:] + y[..., :-1]) / 2.0, axis=-1)
    if initial is not None:
        if initial != 0:
            raise ShapeError(f"cumulative_trapezoid: initial is None or 0, not {initial!r}")
        areas = _begun(areas, 0.0)
    return areas if axis == -1 else np.moveaxis(areas, -1, axis)


def _begun(areas: Shaped, initial: Value) -> Any:
    """The areas with a first value in front of them."""
    first = np.zeros((*areas.shape[:-1], 1), type_of(areas).dtype) + initial
    return np.concatenate([first, areas], axis=-1)


@implements("scipy.integrate.simpson")
def simpson(y, x=None, *, dx=1.0, axis=-1):
    """Simpson's rule; for an even number of samples the last interval by a corrected parabola."""
    y = _last(y, axis)
    n = y.shape[-1]
    h = _steps("simpson", y, x, dx, axis)
    dtype = type_of(y).dtype if n % 2 and type_of(y).dtype.kind in "fc" else np.dtype(float)
    h = h if type_of(h).shape and type_of(h).shape[-1] == n - 1 else h * np.ones(n - 1, dtype)
    if n == 2:
        return np.sum(h * (y[..., 1:] + y[..., :-1]) / 2.0, axis=-1)
    even = n % 2 == 0
    areas = _parabolas(y[..., :-1], h[..., :-1]) if even else _parabolas(y, h)
    return areas + _last_interval(y, h[..., -2], h[..., -1]) if even else areas


def _parabolas(y: Shaped, h: Shaped) -> Any:
    a, b = h[..., :-1:2], h[..., 1::2]
    first, middle, last = y[..., :-2:2], y[..., 1:-1:2], y[..., 2::2]
    ends = (2.0 - _ratio(b, a)) * first + (2.0 - _ratio(a, b)) * last
    return np.sum((a + b) / 6.0 * (ends + (a + b) * _ratio(a + b, a * b) * middle), axis=-1)


def _last_interval(y: Shaped, a: Shaped, b: Shaped) -> Any:
    """The integral over the last interval, of length b, of the parabola through three samples."""
    z, m, e = y[..., -3], y[..., -2], y[..., -1]
    right = _ratio(2 * b**2 + 3 * a * b, 6 * (a + b)) * e
    return right + _ratio(b**2 + 3 * a * b, 6 * a) * m - _ratio(b**3, 6 * a * (a + b)) * z


@implements("scipy.integrate.cumulative_simpson")
def cumulative_simpson(y, *, x=None, dx=1.0, axis=-1, initial=None):
    """Simpson's rule up to each sample; each interval by a parabola that begins or ends there."""
    samples, y = y, _last(y, axis)
    n = y.shape[-1]
    if n < 3:
        areas = _last(cumulative_trapezoid(samples, x, dx, axis), axis)
    else:
        h = _steps("cumulative_simpson", y, x, dx, axis) * np.ones(n - 1)
        ahead = _first_halves(y, h)
        behind = _first_halves(y[..., ::-1], h[..., ::-1])[..., ::-1]
        parts = [ahead[..., i] if i % 2 == 0 else behind[..., i - 1] for i in range(n - 2)]
        areas = np.cumsum(np.stack([*parts, behind[..., -1]], axis=-1), axis=-1)
    if initial is not None:
        initial = as_array(initial)
        initial = _last(initial, axis) if type_of(initial).ndim else initial
        areas = _begun(areas + initial, initial)
    return areas if axis == -1 else np.moveaxis(areas, -1, axis)


def _first_halves(y: Shaped, h: Shaped) -> Any:
    """For each three samples, the integral of their parabola over the first interval."""
    a, b = h[..., :-1], h[..., 1:]
    whole, other = a / (a + b), a / b
    bend = whole * other
    f, g, e = y[..., :-2], y[..., 1:-1], y[..., 2:]
    return a / 6 * ((3 - whole) * f + (3 + bend + whole) * g - bend * e)


@implements("scipy.integrate.romb")
def romb(y, dx=1.0, axis=-1, show=False):
    """Romberg's rule for 2^k + 1 samples: extrapolated trapezoidal sums."""
    y = _last(y, axis)
    n = y.shape[-1] - 1
    if n & (n - 1) or n < 1:
        raise ShapeError(f"romb: takes 2^k + 1 samples, not {n + 1}")
    h, step = n * dx, n
    rows = [[(y[..., 0] + y[..., -1]) / 2.0 * h]]
    while step > 1:
        new = [0.5 * (rows[-1][0] + h * np.sum(y[..., step // 2 : n : step], axis=-1))]
        for j, before in enumerate(rows[-1]):
            new.append(new[-1] + (new[-1] - before) / (4 ** (j + 1) - 1))
        rows.append(new)
        step, h = step // 2, h / 2
    return rows[-1][-1]
