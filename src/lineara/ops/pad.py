"""np.pad in every mode, insert, resize, trim_zeros and sliding windows."""

import math
from typing import Any

import numpy as np

from lineara.errors import NoRuleError, ShapeError
from lineara.facts.hints import Shaped, Value
from lineara.facts.primitive import implements, op, registry
from lineara.facts.types import type_of
from lineara.ops.index import line
from lineara.ops.join import concatenate
from lineara.ops.shape import as_array, normal_axes, sizes
from lineara.ops.sorting import median


@implements(np.pad)
def pad(array, pad_width, mode="constant", **options):
    """The array with more elements before and after, along each axis."""
    a = as_array(array)
    ndim = type_of(a).ndim
    if isinstance(pad_width, dict):
        normal = {i % ndim: w for i, w in pad_width.items()}
        pad_width = [np.broadcast_to(normal.get(i, 0), 2) for i in range(ndim)]
    widths = np.broadcast_to(np.asarray(pad_width), (ndim, 2)).tolist()
    if callable(mode):
        raise NoRuleError(
            "pad: a function as mode writes into plain arrays; use one of NumPy's modes, or join "
            "the parts with np.concatenate"
        )
    if mode == "empty":
        mode, options = "constant", {}
    if not type_of(a).size and mode != "constant":
        empty = [i for i, n in enumerate(type_of(a).shape) if not n and any(widths[i])]
        if empty:
            modes = "'constant' or 'empty'"
            raise ValueError(f"can't extend empty axis {empty[0]} using modes other than {modes}")
        mode, options = "constant", {}
    for axis, (before, after) in enumerate(widths):
        if before or after or mode in _STATISTICS:
            a = _padded(a, axis, before, after, mode, options)
    return a if any(map(any, widths)) else +a  # a copy


def _padded(
    a: Shaped, axis: int, before: int, after: int, mode: str, options: dict[str, Any]
) -> Any:
    ndim, n = type_of(a).ndim, type_of(a).shape[axis]
    if mode in ("edge", "wrap", "reflect", "symmetric"):
        where = np.pad(np.arange(n), (before, after), mode)  # NumPy pads the positions
        even = options.get("reflect_type", "even") == "even"
        part = concatenate([_run(a, axis, *run) for run in _runs(where.tolist())], axis)
        return (
            part if even or mode in ("edge", "wrap") else _odd(a, axis, before, after, mode, part)
        )
    if mode == "constant":
        ends = _pair(options.get("constant_values", 0), axis, ndim)
        sides = [_filled(a, axis, k, v) for k, v in zip((before, after), ends, strict=True)]
    elif mode == "linear_ramp":
        ends = _pair(options.get("end_values", 0), axis, ndim)
        sides = [_ramp(a, axis, before, ends[0], False), _ramp(a, axis, after, ends[1], True)]
    elif mode in _STATISTICS:
        lengths = _pair(options.get("stat_length"), axis, ndim)
        lengths = [n if k is None else min(int(k), n) for k in lengths]
        if mode in ("maximum", "minimum") and not all(lengths):
            raise ValueError("stat_length of 0 yields no value for padding")
        parts = [_part(a, axis, 0, lengths[0]), _part(a, axis, n - lengths[1], n)]
        fills = [_STATISTICS[mode](p, axis) for p in parts]
        sides = [_filled(a, axis, k, v) for k, v in zip((before, after), fills, strict=True)]
    else:
        raise ValueError(f"mode {mode!r} is not supported")
    return concatenate([sides[0], a, sides[1]], axis, dtype=type_of(a).dtype)


def _runs(where: list[int]) -> list[tuple[int, int, int]]:
    """The positions as runs (first, step, count) with steps of -1, 0 or 1."""
    runs: list[tuple[int, int, int]] = []
    for at in where:
        first, step, count = runs[-1] if runs else (at, 0, 0)
        move = at - (first + step * (count - 1))
        if count and (move == step or (count == 1 and abs(move) <= 1)):
            runs[-1] = (first, move, count + 1)
        else:
            runs.append((at, 0, 1))
    return runs


def _run(a: Shaped, axis: int, first: int, step: int, count: int) -> Any:
    lead = (slice(None),) * axis
    if not step:
        return _filled(a, axis, count, a[(*lead, slice(first, first + 1))])
    last = first + step * count
    return a[(*lead, slice(first, None if last < 0 else last, step))]


_STATISTICS = {
    "maximum": lambda a, axis: registry.foreign[np.max].ours(a, axis, keepdims=True),
    "minimum": lambda a, axis: registry.foreign[np.min].ours(a, axis, keepdims=True),
    "mean": lambda a, axis: _rounded(registry.foreign[np.mean].ours(a, axis, keepdims=True), a),
    "median": lambda a, axis: _rounded(median(a, axis, keepdims=True), a),
}


def _rounded(value: Shaped, a: Shaped) -> Any:
    """A value that stands in an array of whole numbers: the nearest of them."""
    return op("rint")(value) if type_of(a).dtype.kind in "iu" else value


def _pair(values: Shaped | None, axis: int, ndim: int) -> list[Any]:
    """The values for both ends of an axis; the option is given once, by end, or by axis and end."""
    if values is None:
        return [None, None]
    values = as_array(values)
    spread = registry.foreign[np.broadcast_to].ours(values, (ndim, 2))
    return [spread[axis, 0], spread[axis, 1]]


def _part(a: Shaped, axis: int, start: int, stop: int) -> Any:
    return a[(*(slice(None),) * axis, slice(start, stop))]


def _filled(a: Shaped, axis: int, count: int, value: Value) -> Any:
    shape = list(type_of(a).shape)
    shape[axis] = count
    return op("broadcast_to")(value, shape=tuple(shape))


def _ramp(a: Shaped, axis: int, count: int, end: Value, after: bool) -> Any:
    """`count` equal steps between the edge of the array and the end value."""
    n = type_of(a).shape[axis]
    lead = (slice(None),) * axis
    dtype = type_of(a).dtype
    steps = registry.foreign[np.linspace].ours
    ramp = steps(end, a[(*lead, n - 1 if after else 0)], count, False, False, dtype, axis)
    return ramp[(*lead, slice(None, None, -1))] if after else ramp


def _odd(a: Shaped, axis: int, before: int, after: int, mode: str, part: Shaped) -> Any:
    """The odd reflection: twice the edge value minus the mirrored values."""
    n = type_of(a).shape[axis]
    reach = n - 1 if mode == "reflect" else n
    if before > reach or after > reach:
        raise NoRuleError(
            f"pad: reflect_type='odd' over more than the {reach} elements of a reflection has no "
            "rule; pad twice"
        )
    total = before + n + after
    first, last = _part(a, axis, 0, 1), _part(a, axis, n - 1, n)
    left = 2 * first - _part(part, axis, 0, before)
    right = 2 * last - _part(part, axis, total - after, total)
    return concatenate([left, a, right], axis)


@implements(np.insert)
def insert(arr, obj, values, axis=None):
    """The array with values put before these positions."""
    arr = as_array(arr)
    arr, axis = line(arr, axis, "insert")
    shape = type_of(arr).shape
    n = shape[axis]
    values = as_array(values)
    order = np.insert(np.arange(n), obj, -1)  # -1 at the places of new elements
    new = np.flatnonzero(order < 0)
    if new.size == 1 and type_of(values).ndim:  # one position for all of them
        lead = (1,) * (len(shape) - type_of(values).ndim)
        values = op("reshape")(values, shape=(*lead, *type_of(values).shape))
        if not np.ndim(obj) and not isinstance(obj, slice):
            values = registry.foreign[np.moveaxis].ours(values, 0, axis)
        count = type_of(values).shape[axis]
        order = np.insert(np.arange(n), np.repeat(_places(obj, n, 1), count), -1)
        new = np.flatnonzero(order < 0)
    spread = list(shape)
    spread[axis] = new.size
    values = registry.foreign[np.broadcast_to].ours(values, tuple(spread))
    wide = concatenate([arr, op("astype")(values, dtype=type_of(arr).dtype)], axis)
    order[new] = n + np.argsort(_places(obj, n, new.size), kind="stable")
    return op("index")(wide, at=(*(slice(None),) * axis, order))


def _places(obj: object, n: int, count: int) -> Any:
    """The position of the element before which each value is inserted."""
    if isinstance(obj, slice):
        return np.arange(n)[obj]
    at = np.asarray(obj)
    at = np.flatnonzero(at) if at.dtype == bool else np.where(at < 0, at + n, at)
    return np.broadcast_to(at, count)


@implements(np.resize)
def resize(a, new_shape):
    """The elements in another shape, repeated or cut off to fill it."""
    flat = line(as_array(a), None, "resize")[0]
    shape, n = sizes(new_shape), type_of(flat).shape[0]
    if not n:
        return np.zeros(shape, type_of(flat).dtype)
    where = np.arange(math.prod(shape)) % n
    return op("reshape")(op("index")(flat, at=(where,)), shape=shape)


@implements(np.trim_zeros)
def trim_zeros(filt, trim="fb", axis=None):
    """The array without the zeros at its ends."""
    filt = as_array(filt)
    t = type_of(filt)
    places = op("argwhere")(filt)
    if any(c not in "fb" for c in trim.lower()):
        raise ValueError(f"unexpected character(s) in `trim`: {trim!r}")
    axes = normal_axes(axis, t.ndim, "trim_zeros")
    at = [slice(None)] * t.ndim
    for i in axes:
        start = places[:, i].min() if len(places) else t.shape[i]
        stop = places[:, i].max() + 1 if len(places) else t.shape[i]
        low = int(start) if "f" in trim.lower() else 0
        high = int(stop) if "b" in trim.lower() else t.shape[i]
        at[i] = slice(low, high) if len(places) else slice(0, 0)
    return filt[tuple(at)]


@implements(np.lib.stride_tricks.sliding_window_view)
def sliding_window_view(x, window_shape, axis=None, *, subok=False, writeable=False):
    """All windows of a size along axes, with the window's axes last."""
    x = as_array(x)
    shape = type_of(x).shape
    windows = sizes(window_shape)
    axes = normal_axes(axis, len(shape), "sliding_window_view") if axis is not None else None
    axes = tuple(range(len(shape))) if axes is None else axes
    if len(windows) != len(axes) or any(shape[i] < w for i, w in zip(axes, windows, strict=True)):
        raise ShapeError(
            f"sliding_window_view: the window {windows} does not fit the axes {axes} of "
            f"{type_of(x)}; it has one length for each, none larger"
        )
    where = np.lib.stride_tricks.sliding_window_view(
        np.arange(math.prod(shape)).reshape(shape), windows, axes
    )
    return op("index")(op("reshape")(x, shape=(math.prod(shape),)), at=(where,))
