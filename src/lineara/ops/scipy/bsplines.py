"""B-splines of any degree; differentiable in the values, the points and the knots.

After [de Boor 1978]: the recurrence of the basis (chapter X), its derivatives, and interpolation
by a banded system (chapter XIII).
"""

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from lineara.errors import NoRuleError, ShapeError
from lineara.facts.hints import Shaped
from lineara.facts.primitive import implements, op, registry
from lineara.facts.types import type_of
from lineara.ops.index import index, take
from lineara.ops.scipy.interpolate_1d import Pieces, any_box, checked, cubic_spline, of_plain, under
from lineara.ops.scipy.matrix_functions import banded
from lineara.ops.shape import as_array


def not_a_knot(x: Shaped, k: int) -> Any:
    """The knots that SciPy chooses for an interpolating spline of degree k through points x."""
    if k == 0:
        return np.concatenate([x, x[-1:]])
    inner = x if k % 2 else (x[1:] + x[:-1]) / 2.0
    leave = (k + 1) // 2
    inner = inner[leave : type_of(inner).shape[0] - leave]
    return np.concatenate([*[x[:1]] * (k + 1), inner, *[x[-1:]] * (k + 1)])


def basis(t: Shaped, k: int, at: Shaped) -> tuple[Any, list[Any]]:
    """(index of the first, values) of the k + 1 basis splines that are not zero at each point.

    Outside of the knots, the polynomials of the first or last interval are continued.
    """
    n = type_of(t).shape[0] - k - 1
    interval = np.clip(np.searchsorted(t, at, side="right") - 1, k, n - 1)
    knot = lambda i: take(as_array(t), interval + i, 0)  # noqa: E731
    values: list[Any] = [np.ones(type_of(at).shape)]
    for degree in range(1, k + 1):
        saved, raised = 0.0, []
        for r, value in enumerate(values):
            right, left = knot(r + 1), knot(r + 1 - degree)
            share = value / (right - left)
            raised.append(saved + (right - at) * share)
            saved = (at - left) * share
        values = [*raised, saved]
    return interval - k, values


def coefficients(x: Shaped, y: Shaped, t: Shaped, k: int) -> Any:
    """The coefficients, along the first axis, of the spline with knots t through (x, y)."""
    n = type_of(y).shape[0]
    if k == 0:
        return y
    first, values = basis(t, k, x)
    rows = np.arange(n)
    diagonals = 0.0
    for r, value in enumerate(values):
        at = (k + rows - (first + r), first + r)
        diagonals = diagonals + op("scatter")(value, at=at, shape=(2 * k + 1, n))
    columns = np.reshape(y, (n, -1))
    return np.reshape(banded(diagonals, columns, below=k), type_of(y).shape)


def pieces(t: Shaped, c: Shaped, k: int, extrapolate: bool, axis: int) -> Pieces:
    """The polynomials between knots: Taylor coefficients of the spline with coefficients c."""
    n = type_of(c).shape[0]
    breaks, derivatives = t[k : n + 1], []
    for order in range(k + 1):
        degree = k - order
        first, values = basis(t, degree, breaks[:-1])
        terms = [under(v, c) * take(c, first + r, 0) for r, v in enumerate(values)]
        derivatives.append(sum(terms[1:], terms[0]) / math.factorial(order))
        if degree:
            m = type_of(c).shape[0]
            wide = t[degree + 1 : m + degree] - t[1:m]
            c, t = degree * np.diff(c, axis=0) / under(wide, c), t[1:-1]
    return Pieces(np.stack(derivatives[::-1]), breaks, extrapolate, axis)


def through(x: Shaped, y: Shaped, k: int, t: Any = None, axis: int = 0) -> Pieces:
    """The spline of degree k through (x, y), with knots t or those that SciPy chooses."""
    x, y, axis = checked("make_interp_spline", x, y, axis)
    n = type_of(x).shape[0]
    if n <= k:
        raise ShapeError(f"make_interp_spline: {n} values are too few for k={k}; give {k + 1}")
    t = not_a_knot(x, k) if t is None else as_array(t)
    if type_of(t).shape != (n + k + 1,):
        raise ShapeError(
            f"make_interp_spline: {type_of(t)} knots do not fit {n} values and k={k}, which take "
            f"{n + k + 1}"
        )
    return pieces(t, coefficients(x, y, t, k), k, True, axis)


def tensor_splines(grid: Sequence[Any], values: Any, k: int) -> tuple[list[Any], Any]:
    """(knots along each axis, coefficients) of the tensor spline through values on a grid."""
    knots = [not_a_knot(as_array(x), k) for x in grid]
    for axis, (x, t) in enumerate(zip(grid, knots, strict=True)):
        columns = coefficients(as_array(x), np.moveaxis(values, axis, 0), t, k)
        values = np.moveaxis(columns, 0, axis)
    return knots, values


def on_grid(splines: tuple[list[Any], Any], points: Any, k: int) -> Any:
    """A tensor spline of degree k, evaluated at points (..., d)."""
    knots, c = splines
    bases = [basis(t, k, points[..., axis]) for axis, t in enumerate(knots)]
    terms = []
    for local in itertools.product(range(k + 1), repeat=len(bases)):
        pairs = list(zip(bases, local, strict=True))
        part = index(c, at=tuple([first + r for (first, _), r in pairs]))
        weight = math.prod([values[r] for (_, values), r in pairs], start=1.0)
        terms.append(under(weight, part) * part)
    return sum(terms[1:], terms[0])


@implements("scipy.interpolate.make_interp_spline", always=True)
def make_interp_spline(x, y, k=3, t=None, bc_type=None, axis=0, check_finite=True):
    """The spline of degree k through the values."""
    from scipy import interpolate

    spline_class: Any = registry.foreign[interpolate.BSpline].ours
    if not any_box((x, y, t, bc_type)):
        plain = interpolate.make_interp_spline(x, y, k, t, bc_type, axis, check_finite)
        return spline_class.of(of_plain(plain), plain)
    if t is None and k == 3 and isinstance(bc_type, str):
        return spline_class.of(cubic_spline(x, y, axis, bc_type))
    if bc_type not in (None, "not-a-knot"):
        raise NoRuleError(
            f"make_interp_spline: of traced values bc_type={bc_type!r} has no rule for k={k}; "
            "a name has one for k=3 without t, and CubicSpline for derivatives at the ends"
        )
    return spline_class.of(through(x, y, k, t, axis))
