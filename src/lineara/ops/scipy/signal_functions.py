"""scipy.signal: other functions that are compiled, or have a shortcut for special values."""

import math
from typing import Any

import numpy as np

from lineara.errors import NoRuleError
from lineara.facts.hints import Shaped
from lineara.facts.primitive import conjugate, implements, op
from lineara.facts.types import type_of
from lineara.ops.eigen import has_values
from lineara.ops.pad import pad
from lineara.ops.scipy.image_rank_filters import ranked
from lineara.ops.scipy.signal_filters import correlate_inside, delayed, flipped, steady
from lineara.ops.shape import as_array, as_floats

_BEYOND = {"wrap": "wrap", "circular": "wrap", "symm": "symmetric", "symmetric": "symmetric"}


def _slid(x: Shaped, w: Shaped, mode: str, boundary: str, fill: int, middle: int) -> Any:
    """The correlation of a matrix with a window, also beyond the matrix' edges.

    `middle` selects the centre of a window of even size: the element before its half, or after it.
    """
    n, m = type_of(x).shape, type_of(w).shape
    if mode == "valid":
        if any(i < j for i, j in zip(n, m, strict=True)):
            return flipped(correlate_inside(w, x))
        return correlate_inside(x, w)
    if mode not in ("full", "same"):
        raise ValueError("acceptable mode flags are 'valid', 'same', or 'full'")
    left = [(j - 1 + middle) // 2 if mode == "same" else j - 1 for j in m]
    ends = [(k, j - 1 - k if mode == "same" else k) for j, k in zip(m, left, strict=True)]
    if boundary in ("fill", "pad"):
        wide = pad(x, ends, constant_values=fill)
    elif boundary in _BEYOND:
        wide = pad(x, ends, mode=_BEYOND[boundary])
    else:
        raise ValueError("Acceptable boundary flags are 'fill', 'circular' (or 'wrap'), 'symm'.")
    return correlate_inside(wide, w)


@implements("scipy.signal.correlate2d")
def correlate2d(in1, in2, mode="full", boundary="fill", fillvalue=0):
    """`correlate` of matrices, which `boundary` extends beyond their edges."""
    w = conjugate(as_floats(in2))
    return _slid(as_floats(in1), w, mode, boundary, fillvalue, 0)


@implements("scipy.signal.convolve2d")
def convolve2d(in1, in2, mode="full", boundary="fill", fillvalue=0):
    """`convolve` of matrices, which `boundary` extends beyond their edges."""
    return _slid(as_floats(in1), flipped(as_floats(in2)), mode, boundary, fillvalue, 1)


@implements("scipy.signal.upfirdn")
def upfirdn(h, x, up=1, down=1, axis=-1, mode="constant", cval=0):
    """Upsample by inserting zeros, filter, and keep every `down`-th result."""
    if mode != "constant" or np.any(cval != 0):
        raise NoRuleError(f"upfirdn: mode={mode!r} has no rule; with zeros beyond it has one")
    h, x = as_floats(h), np.moveaxis(as_floats(x), axis, -1)
    n, m = type_of(x).shape[-1], type_of(h).shape[0]
    between = np.concatenate([x[..., None], np.zeros((*type_of(x).shape, up - 1))], axis=-1)
    long = np.reshape(between, (*type_of(x).shape[:-1], n * up))[..., : (n - 1) * up + 1]
    room = [*[(0, 0)] * (type_of(x).ndim - 1), (0, m - 1)]
    return np.moveaxis(delayed(h, np.pad(long, room))[..., ::down], -1, axis)


@implements("scipy.signal.medfilt", "scipy.signal.medfilt2d")
def medfilt(volume, kernel_size=3):
    """The median of a box around each element; the array is padded with zeros."""
    x = as_array(volume)
    sizes = np.broadcast_to(kernel_size, type_of(x).ndim).tolist()
    if any(k % 2 != 1 for k in sizes):
        raise ValueError("Each element of kernel_size should be odd.")
    box = np.ones(sizes, bool)
    return ranked(x, box, math.prod(sizes) // 2, "constant", 0.0, [0] * len(sizes))


@implements("scipy.signal.lfilter_zi")
def lfilter_zi(b, a):
    """The state of the filter in which a constant signal stays as it is."""
    return steady(as_floats(b), as_floats(a))


@implements("scipy.signal.lfiltic")
def lfiltic(b, a, y, x=None):
    """The state of the filter after outputs y and inputs x, the most recent first."""
    b, a, y = (np.atleast_1d(as_floats(v)) for v in (b, a, y))
    x = np.zeros(0) if x is None else np.atleast_1d(as_floats(x))
    n, m = type_of(a).shape[0] - 1, type_of(b).shape[0] - 1
    size = max(n, m)

    def left(c: Shaped, past: Any, order: int) -> Any:
        """The contribution of past values to each of the next steps."""
        short = max(order - type_of(past).shape[0], 0)
        past = np.pad(past, (0, short))
        terms = [np.sum(c[k + 1 :] * past[: order - k]) for k in range(order)]
        return np.pad(np.stack(terms), (0, size - order)) if order else np.zeros(size)

    return (left(b, x, m) - left(a, y, n)) / a[0]


@implements("scipy.signal.normalize")
def normalize(b, a):
    """The coefficients of a rational function, with 1 as the first of the denominator."""
    num, den = np.atleast_2d(as_floats(b)), np.atleast_1d(as_floats(a))
    if not has_values(den) or not has_values(num):
        raise NoRuleError("normalize: whether a coefficient is 0 is not known in a program")
    if den[0] == 0 or np.all(np.abs(num[:, 0]) <= 1e-14):
        raise NoRuleError(
            "normalize: a first coefficient that is 0 is cut off, and has no derivative; give "
            "the coefficients without it"
        )
    num, den = num / den[0], den / den[0]
    return (num[0] if type_of(num).shape[0] == 1 else num), den


@implements("scipy.signal.chirp")
def chirp(t, f0, t1, f1, method="linear", phi=0, vertex_zero=True, *, complex=False):
    """A wave whose frequency goes from f0 to f1 in the time t1."""
    t, slope = as_array(t) * 1.0, (f1 - f0) / t1
    if method in ("linear", "lin", "li"):
        turns = f0 * t + 0.5 * slope * t * t
    elif method in ("quadratic", "quad", "q"):
        beta = slope / t1
        if vertex_zero:
            turns = f0 * t + beta * t**3 / 3
        else:
            turns = f1 * t + beta * ((t1 - t) ** 3 - t1**3) / 3
    elif method in ("logarithmic", "log", "lo"):
        turns = f0 * t * op("exprel")(np.log(f1 / f0) * t / t1)
    else:
        raise NoRuleError(
            f"chirp: method={method!r} has no rule; 'linear', 'quadratic' and 'logarithmic' have"
        )
    phase = 2 * np.pi * turns + phi * np.pi / 180
    return np.exp(1j * phase) if complex else np.cos(phase)
