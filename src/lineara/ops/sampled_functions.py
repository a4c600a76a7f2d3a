"""Functions given at points: interpolation, differences, integrals, convolution, covariance."""

import math
from typing import Any

import numpy as np

from lineara.errors import ShapeError
from lineara.facts.hints import Shaped, Value
from lineara.facts.primitive import (
    Box,
    Multilinear,
    conjugate,
    implements,
    op,
    primitive,
    real_part,
)
from lineara.facts.types import ArrayType, is_complex, type_of
from lineara.ops.contract import contraction
from lineara.ops.index import diagonal, diff, line
from lineara.ops.join import concatenate
from lineara.ops.shape import as_array, as_doubles, as_floats, normal_axes, normal_axis, real_only
from lineara.ops.value_checks import checked


@implements(np.interp)
def interp(x, xp, fp, left=None, right=None, period=None):
    """Piecewise linear interpolation of (xp, fp) at x; differentiable in all three."""
    x, xp, fp = map(as_array, (x, xp, fp))
    real_only("interp", x, xp)
    x, fp = as_doubles(x), as_doubles(fp)
    if period is not None:
        period = abs(period)
        x, xp = x % period, xp % period
        order = op("argsort")(xp)
        xp, fp = op("index")(xp, at=(order,)), op("index")(fp, at=(order,))
        xp = concatenate([xp[-1:] - period, xp, xp[:1] + period])
        fp = concatenate([fp[-1:], fp, fp[:1]])
    y = _between(x, xp, fp)
    below, above = x < xp[0], x > xp[-1]
    y = op("where")(below, fp[0] if left is None else left, y)
    return op("where")(above, fp[-1] if right is None else right, y)


def _between(x: Shaped, xp: Shaped, fp: Shaped) -> Any:
    """The values on the straight lines between the points, and on the outer ones beyond these."""
    if is_complex(fp):
        return op("of_parts")(*[_between(x, xp, op(part)(fp)) for part in ("real", "imag")])
    n = type_of(xp).shape[0]
    if n == 1:
        return op("broadcast_to")(fp[0], shape=type_of(x).shape)
    at = np.clip(op("searchsorted")(xp, x, side="right") - 1, 0, n - 2)
    (x0, x1), (y0, y1) = [[op("index")(a, at=(i,)) for i in (at, at + 1)] for a in (xp, fp)]
    slope = (y1 - y0) / (x1 - x0)
    y = slope * (x - x0) + y0
    lost = np.logical_and(np.isnan(y), np.logical_not(np.isnan(x)))
    if not isinstance(lost, Box) and not np.any(lost):
        return y
    other = slope * (x - x1) + y1  # where something is infinite, as NumPy does it
    other = op("where")(np.logical_and(np.isnan(other), np.equal(y0, y1)), y0, other)
    for end, value in ((x1, y1), (x0, y0)):
        other = op("where")(np.equal(x, end), value, other)
    return op("where")(lost, other, y)


@implements(np.ediff1d)
def ediff1d(ary, to_end=None, to_begin=None):
    """Differences of neighbours of the flattened array, with given values before and after."""
    steps = diff(line(as_array(ary), None, "ediff1d")[0])
    ends = [
        None if v is None else line(as_array(v), None, "ediff1d")[0] for v in (to_begin, to_end)
    ]
    parts = [v for v in (ends[0], steps, ends[1]) if v is not None]
    return concatenate(parts, dtype=type_of(steps).dtype) if len(parts) > 1 else steps


@implements(np.trapezoid)
def trapezoid(y, x=None, dx=1.0, axis=-1):
    """The integral of y along an axis by the trapezoidal rule."""
    y = as_array(y)
    ndim = type_of(y).ndim
    axis = normal_axis(axis, ndim, "trapezoid")
    if x is None:
        width = dx
    else:
        x = as_array(x)
        width = diff(x, axis=axis if type_of(x).ndim > 1 else 0)
        if type_of(x).ndim == 1:
            width = op("reshape")(width, shape=_along(axis, ndim, type_of(width).shape[0]))
    lead = (slice(None),) * axis
    means = (y[(*lead, slice(1, None))] + y[(*lead, slice(None, -1))]) / 2.0
    return op("sum")(width * means, axis=(axis,), keepdims=False)


def _along(axis: int, ndim: int, n: int) -> tuple[int, ...]:
    """The shape of a vector that lies along an axis."""
    return tuple(n if i == axis else 1 for i in range(ndim))


@implements(np.gradient)
def gradient(f, *varargs, axis=None, edge_order=1):
    """Slopes of f along the axes: central inside, one-sided at the ends  [Fornberg 1988]."""
    f = as_floats(f)
    t = type_of(f)
    axes = normal_axes(axis, t.ndim, "gradient")
    spacings = [1.0] * len(axes) if not varargs else list(varargs)
    spacings = spacings * len(axes) if len(spacings) == 1 != len(axes) else spacings
    if len(spacings) != len(axes):
        raise ShapeError(
            f"gradient: {len(varargs)} spacings for {len(axes)} axes; give one for all, or one each"
        )
    pairs = zip(axes, spacings, strict=True)
    slopes = [_slope(f, i, as_array(h) if np.ndim(h) else h, edge_order) for i, h in pairs]
    slopes = [y if type_of(y).dtype == t.dtype else op("astype")(y, dtype=t.dtype) for y in slopes]
    return slopes[0] if len(axes) == 1 else tuple(slopes)


def _slope(f: Shaped, axis: int, h: Value, edge_order: int) -> Any:
    n, ndim, lead = type_of(f).shape[axis], type_of(f).ndim, (slice(None),) * axis
    if n < edge_order + 1:
        raise ShapeError(f"gradient: {n} points along axis {axis}; it takes {edge_order + 1}")

    def part(*at: Any) -> Any:
        return f[(*lead, slice(*at))]

    if type_of(h).ndim == 0:
        inside = (part(2, None) - part(None, -2)) / (2.0 * h)
        first = last = p0 = q0 = p1 = q1 = h
    else:
        if type_of(h).shape != (n,):
            raise ShapeError(f"gradient: coordinates {type_of(h)} for {n} points along axis {axis}")
        steps = op("reshape")(diff(h), shape=_along(axis, ndim, n - 1))
        a, b = steps[(*lead, slice(None, -1))], steps[(*lead, slice(1, None))]
        left, middle, right = -b / (a * (a + b)), (b - a) / (a * b), a / (b * (a + b))
        inside = left * part(None, -2) + middle * part(1, -1) + right * part(2, None)
        first, last = steps[(*lead, slice(0, 1))], steps[(*lead, slice(-1, None))]
        p0, q0 = first, b[(*lead, slice(0, 1))]
        p1, q1 = a[(*lead, slice(-1, None))], last
    if edge_order == 1:
        begin = (part(1, 2) - part(0, 1)) / first
        end = (part(-1, None) - part(-2, -1)) / last
    else:
        p, q = p0, q0
        begin = (
            -(2.0 * p + q) / (p * (p + q)) * part(0, 1)
            + (p + q) / (p * q) * part(1, 2)
            - p / (q * (p + q)) * part(2, 3)
        )
        p, q = p1, q1
        end = (
            q / (p * (p + q)) * part(-3, -2)
            - (p + q) / (p * q) * part(-2, -1)
            + (2.0 * q + p) / (q * (p + q)) * part(-1, None)
        )
    return concatenate([begin, inside, end], axis)


@implements(np.unwrap)
def unwrap(p, discont=None, axis=-1, *, period=2 * np.pi):
    """The angles with periods added so that neighbours differ by less than half a period."""
    p = as_array(p)
    axis = normal_axis(axis, type_of(p).ndim, "unwrap")
    lead = (slice(None),) * axis
    steps = op("stop_gradient")(diff(p, axis=axis))
    half = period / 2
    wrapped = np.mod(steps + half, period) - half
    wrapped = np.where(np.logical_and(wrapped == -half, steps > 0), half, wrapped)
    jumps = wrapped - steps
    small = np.abs(steps) < (half if discont is None else discont)
    jumps = np.cumsum(np.where(small, 0.0, jumps), axis=axis)
    return concatenate([p[(*lead, slice(0, 1))], p[(*lead, slice(1, None))] + jumps], axis)


# --- sliding sums -----------------------------------------------------------------------------


def _vectors(name: str, *args: Any) -> list[ArrayType]:
    types = [type_of(a) for a in args]
    if any([t.ndim != 1 or not t.size for t in types]):
        raise ShapeError(f"{name}: takes two vectors, not {types[0]} and {types[1]}")
    return types


@primitive
class convolve(Multilinear):
    """The full convolution y_k = sum_j a_(k-j) v_j :  (n), (m) -> (n + m - 1)."""

    host = True

    def result(self, a, v):
        s, t = _vectors(self.name, a, v)
        return ArrayType((s.shape[0] + t.shape[0] - 1,), np.result_type(s.dtype, t.dtype))

    def arithmetic(self, y, args, params):
        return contraction(y, args, args[0].shape[0] * args[1].shape[0])

    def transpose(self, place, y_bar, /, a, v):
        return correlate(y_bar, v if place == 0 else a)


@primitive
class correlate(Multilinear):
    """y_k = sum_j a_(k+j) v_j for all v within a :  (n), (m) -> (n - m + 1), n >= m."""

    host = True

    def result(self, a, v):
        s, t = _vectors(self.name, a, v)
        if s.size < t.size:
            raise ShapeError(f"correlate: takes the longer vector first, not {s} and {t}")
        return ArrayType((s.shape[0] - t.shape[0] + 1,), np.result_type(s.dtype, t.dtype))

    def evaluate(self, xp, /, a, v):
        return xp.correlate(a, xp.conj(v), "valid")

    def arithmetic(self, y, args, params):
        return contraction(y, args, y.shape[0] * args[1].shape[0])

    def transpose(self, place, y_bar, /, a, v):
        return convolve(y_bar, v) if place == 0 else correlate(a, y_bar)


_MODES: dict[Any, str] = {0: "valid", 1: "same", 2: "full"}


@implements(np.convolve)
def np_convolve(a, v, mode="full"):
    """The discrete convolution of two sequences."""
    a, v = (line(as_array(w), None, "convolve")[0] for w in (a, v))
    n, m = (type_of(w).shape[0] for w in (a, v))
    if not n or not m:
        raise ValueError(f"{'a' if not n else 'v'} cannot be empty")
    if m > n:
        a, v, n, m = v, a, m, n
    mode_name = _MODES.get(mode, mode)
    if mode_name == "full":
        return convolve(a, v)
    if mode_name == "valid":
        return correlate(a, v[::-1])
    if mode_name != "same":
        raise ValueError(f"mode must be one of 'valid', 'same', or 'full' (got {mode!r})")
    start = (m - 1) // 2
    return convolve(a, v)[start : start + n]


@implements(np.correlate)
def np_correlate(a, v, mode="valid"):
    """The cross-correlation of two sequences."""
    a, v = (line(as_array(w), None, "correlate")[0] for w in (a, v))
    n, m = (type_of(w).shape[0] for w in (a, v))
    turned = conjugate(v)[::-1]
    mode_name = _MODES.get(mode, mode)
    if mode_name != "same":
        return np_convolve(a, turned, mode_name)
    start = (min(n, m) - 1) // 2 if n >= m else min(n, m) // 2
    return np_convolve(a, turned, "full")[start : start + max(n, m)]


# --- covariance ---------------------------------------------------------------------------------


@implements(np.cov)
def cov(m, y=None, rowvar=True, bias=False, ddof=None, fweights=None, aweights=None, *, dtype=None):
    """The covariance matrix of variables, whose samples are the rows of m."""
    rows = as_doubles(_variables(m, rowvar, _ONE_ROW_IS_TURNED))
    if y is not None:
        rows = concatenate([rows, _variables(y, rowvar, False)], 0)
    if dtype is not None:
        rows = op("astype")(rows, dtype=np.dtype(dtype))
    ddof = (0 if bias else 1) if ddof is None else ddof
    n = type_of(rows).shape[1]
    for name, given in (("fweights", fweights), ("aweights", aweights)):
        if given is not None:
            rows = checked(rows, np.less(given, 0), ValueError, f"{name} cannot be negative")
    weights = fweights if aweights is None else aweights
    if fweights is not None and aweights is not None:
        weights = as_array(aweights) * fweights
    if weights is None:
        total, scale = n, n - ddof
        mean = op("sum")(rows, axis=(1,), keepdims=True) / float(n)
        right = rows - mean
        left = right
    else:
        weights = as_array(weights)
        total = op("sum")(weights * 1.0, axis=(0,), keepdims=False)
        mean = op("sum")(rows * weights, axis=(1,), keepdims=True) / total
        left = rows - mean
        right = left * weights
        squares = 0.0 if aweights is None else np.sum(weights * aweights) / total
        scale = total - ddof * squares if aweights is not None else total - ddof
    product = op("matmul")(left, conjugate(op("permute_dims")(right, axes=(1, 0))))
    none = np.less_equal(scale, 0)
    product = checked(product, none, RuntimeWarning, "Degrees of freedom <= 0 for slice")
    covariance = product * np.true_divide(1, op("where")(none, 0.0, scale))
    return np.squeeze(op("astype")(covariance, dtype=type_of(rows).dtype))


_ONE_ROW_IS_TURNED = np.lib.NumpyVersion(np.__version__) >= "2.2.0"


def _variables(m: Shaped, rowvar: bool, turned: bool) -> Any:
    """The samples with one row for each variable; one row is transposed in some NumPy versions."""
    m = as_array(m)
    if type_of(m).ndim > 2:
        raise ValueError("m has more than 2 dimensions")
    if type_of(m).ndim == 2:
        same = rowvar or (type_of(m).shape[0] == 1 and not turned)
        return m if same else op("permute_dims")(m, axes=(1, 0))
    return op("reshape")(m, shape=(1, math.prod(type_of(m).shape)))


@implements(np.corrcoef)
def corrcoef(x, y=None, rowvar=True, *, dtype=None):
    """The correlation matrix of variables, whose samples are the rows of x."""
    c = cov(x, y, rowvar, dtype=dtype)
    if type_of(c).ndim == 0:
        return c / c
    scale = op("sqrt")(real_part(diagonal(c)))
    return c / scale[:, None] / scale[None, :]
