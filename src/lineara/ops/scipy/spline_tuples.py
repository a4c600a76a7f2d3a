"""scipy.interpolate's splines as tuples (t, c, k); differentiable in values and points."""

import math
from typing import Any

import numpy as np

from lineara.errors import NoRuleError
from lineara.facts.primitive import Box, implements, op
from lineara.facts.types import type_of
from lineara.ops.scipy.interpolate_1d import Pieces
from lineara.ops.shape import as_array


@implements("scipy.interpolate.splrep")
def splrep(
    x,
    y,
    w=None,
    xb=None,
    xe=None,
    k=3,
    task=0,
    s=None,
    t=None,
    full_output=0,
    per=0,
    quiet=1,
):
    """The spline (t, c, k) through the points, linear in y; with SciPy's knots."""
    from scipy import interpolate

    del quiet
    others = [v for v in (w, xb, xe, t) if v is not None]
    if isinstance(x, Box) or s not in (None, 0) or others or task or per or full_output:
        raise NoRuleError(
            "splrep: has a rule in y, for a spline through all points: x, y, k, and s=0; "
            "CubicSpline has one in x too"
        )
    x = np.asarray(x, float)
    knots = interpolate.splrep(x, np.ones(len(x)), k=k, s=0)[0]
    basis = interpolate.BSpline.design_matrix(x, knots, k).toarray()
    c = np.linalg.solve(basis, as_array(y) * 1.0)
    return knots, np.concatenate([c, np.zeros(k + 1)]), k


def _pieces(name: str, tck: tuple[Any, ...]) -> Pieces:
    """The pieces of a spline, whose coefficients are linear in c."""
    from scipy import interpolate

    t, c, k = tck if isinstance(tck, tuple | list) else (tck.t, tck.c, tck.k)
    if isinstance(t, Box) or type_of(as_array(c)).ndim != 1:
        raise NoRuleError(f"{name}: has a rule in c, with one axis, and in the points, not in t")
    n = len(t) - k - 1
    basis, x = interpolate.BSpline(t, np.eye(n), k), np.asarray(t)[k : n + 1]
    each = np.stack([basis(x[:-1], j) / math.factorial(j) for j in range(k, -1, -1)])
    return Pieces(np.tensordot(each, as_array(c)[:n], 1), x, True)


@implements("scipy.interpolate.splev", sequence=True)
def splev(x, tck, der=0, ext=0):
    """The spline, or a derivative of it, at points."""
    pieces, x = _pieces("splev", tck), as_array(x)
    x = x if type_of(x).dtype.kind == "f" else op("astype")(x, dtype=np.dtype(float))
    first, last = pieces.x[0], pieces.x[-1]
    outside = np.logical_or(x < first, x > last)
    if ext == 2 and np.any(outside):
        raise ValueError("Point outside of the interval in which the spline is known")
    y = pieces(np.clip(x, first, last) if ext == 3 else x, der)
    return np.where(outside, 0.0, y) if ext == 1 else y


@implements("scipy.interpolate.splint", sequence=True)
def splint(a, b, tck, full_output=0):
    """The integral of the spline from a to b; the spline is 0 outside of its knots."""
    if full_output:
        raise NoRuleError("splint: full_output= has no rule; without it there is one")
    pieces = _pieces("splint", tck)
    whole = pieces.derivative(-1)
    ends = [np.clip(v, pieces.x[0], pieces.x[-1]) for v in (as_array(a) * 1.0, as_array(b) * 1.0)]
    return whole(ends[1]) - whole(ends[0])
