"""The methods of ufuncs: reduce, accumulate, reduceat and outer."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lineara.errors import NoRuleError, ShapeError
from lineara.facts.hints import DType, Shaped, Value
from lineara.facts.primitive import Box, op, registry
from lineara.facts.types import type_of
from lineara.ops.index import line, take_along_axis
from lineara.ops.reduce import given, reduced_axes, running, wide
from lineara.ops.shape import as_array, normal_axis

WHOLE = {  # ufunc -> the NumPy function that does the same
    "reduce": {
        np.add: np.sum,
        np.multiply: np.prod,
        np.maximum: np.max,
        np.minimum: np.min,
        np.logical_and: np.all,
        np.logical_or: np.any,
    },
    "accumulate": {np.add: np.cumsum, np.multiply: np.cumprod},
}
WIDENED = (np.add, np.multiply)  # of small whole numbers, in 64 bits unless dtype= says
NOTHING: dict[np.ufunc, float] = {  # associative ufunc -> its neutral value
    np.multiply: 1.0,
    np.maximum: -np.inf,
    np.minimum: np.inf,
    np.fmax: np.nan,
    np.fmin: np.nan,
    np.logaddexp: -np.inf,
    np.logaddexp2: -np.inf,
    np.hypot: 0.0,
}
# Values that are neutral on the right of an operation, for when `initial=` is on its left.
ON_THE_RIGHT: dict[np.ufunc, float] = {
    np.subtract: 0.0,
    np.divide: 1.0,
    np.power: 1.0,
    np.float_power: 1.0,
}

RECORDS: dict[np.ufunc, np.ufunc] = {
    np.maximum: np.greater,
    np.minimum: np.less,
    np.fmax: np.greater,
    np.fmin: np.less,
}


def reduce_(
    ufunc: np.ufunc,
    a: Shaped,
    axis: Any = 0,
    dtype: DType = None,
    keepdims: bool = False,
    initial: Any = np._NoValue,
    where: Value = True,
) -> Any:
    """np.ufunc.reduce: one value for each line along the axes."""
    whole = WHOLE["reduce"].get(ufunc)
    options = {"initial": initial} if given(initial) else {}
    if ufunc in WIDENED:
        options |= {} if dtype is None else {"dtype": dtype}
    else:
        a = _as(a, dtype)
    if whole is not None:
        options |= {} if where is True else {"where": where}
        return registry.foreign[whole].ours(a, axis=axis, keepdims=keepdims, **options)
    nothing = NOTHING | (ON_THE_RIGHT if options else {})
    if where is not True:
        if ufunc not in nothing:
            raise NoRuleError(
                f"np.{ufunc.__name__}.reduce of a traced value takes no where=; reduce the "
                "elements that the mask selects, x[mask]"
            )
        a = op("where")(where, a, nothing[ufunc])
    shape = type_of(a).shape
    axes = reduced_axes(axis, len(shape), f"{ufunc.__name__}.reduce")
    if len(axes) > 1 and ufunc not in NOTHING:
        raise ShapeError(
            f"np.{ufunc.__name__}.reduce: which of the axes {axes} comes first matters; "
            "reduce one axis after the other"
        )
    along = axes[0] if len(axes) == 1 else len(shape) - len(axes)
    if len(axes) != 1:  # merge the axes, so that `initial` is used once
        kept = tuple(i for i in range(len(shape)) if i not in axes)
        lines = (*[shape[i] for i in kept], math.prod(shape[i] for i in axes))
        a = op("reshape")(op("permute_dims")(a, axes=(*kept, *axes)), shape=lines)
    a = _along(ufunc, a, along, **options)
    left = tuple(n for i, n in enumerate(shape) if i not in axes)
    ones = tuple(1 if i in axes else n for i, n in enumerate(shape))
    y = op("reshape")(a, shape=ones if keepdims else left)
    return +y if left else y  # a copy, not a view of the operand


def _along(ufunc: np.ufunc, a: Shaped, axis: int, initial: object = None) -> Any:
    """The reduction along one axis, which is kept with length 1."""
    act, t = registry.foreign[ufunc].ours, type_of(a)
    lead = (slice(None),) * axis
    shape = (*t.shape[:axis], 1, *t.shape[axis + 1 :])
    if initial is not None:
        first = op("astype")(op("broadcast_to")(initial, shape=shape), dtype=t.dtype)
        a = op("concat")(first, a, axis=axis)
    elif not t.shape[axis] and ufunc.identity is None:
        raise ShapeError(
            f"{ufunc.__name__}: {t} has no elements; give it at least one, or initial="
        )
    elif not t.shape[axis]:
        return np.full(shape, ufunc.identity, t.dtype)
    n = type_of(a).shape[axis]
    if ufunc not in NOTHING:
        y = a[(*lead, slice(0, 1))]
        for i in range(1, n):
            y = act(y, a[(*lead, slice(i, i + 1))])
        return y
    while n > 1:  # combine the two halves
        half = n // 2
        joined = act(a[(*lead, slice(0, half))], a[(*lead, slice(half, 2 * half))])
        rest = (a[(*lead, slice(2 * half, None))],) if n % 2 else ()
        a = op("concat")(joined, *rest, axis=axis) if rest else joined
        n = half + n % 2
    return a


def accumulate(ufunc: np.ufunc, a: Shaped, axis: int = 0, dtype: DType = None) -> Any:
    """np.ufunc.accumulate: the running reduction along an axis."""
    whole = WHOLE["accumulate"].get(ufunc)
    if whole is not None:
        return registry.foreign[whole].ours(a, axis, dtype)
    a = _as(a, dtype)
    axis = normal_axis(axis, type_of(a).ndim, f"{ufunc.__name__}.accumulate")
    act, lead = registry.foreign[ufunc].ours, (slice(None),) * axis
    if ufunc in RECORDS:
        return take_along_axis(a, _records(ufunc, a, axis), axis)
    if ufunc in NOTHING:
        return running(act, a, axis)
    rows = [a[(*lead, slice(0, 1))]]
    for i in range(1, type_of(a).shape[axis]):
        rows.append(act(rows[-1], a[(*lead, slice(i, i + 1))]))
    return op("concat")(*rows, axis=axis)


def _records(ufunc: np.ufunc, a: Shaped, axis: int) -> Any:
    """The position of the running maximum or minimum; of equal elements the first."""
    values, lead = op("stop_gradient")(a), (slice(None),) * axis
    best = _run(ufunc, values, axis)
    n, ndim = type_of(a).shape[axis], type_of(a).ndim
    before, here = best[(*lead, slice(None, -1))], values[(*lead, slice(1, None))]
    new = RECORDS[ufunc](here, before)
    one, other = (here, before) if ufunc in (np.maximum, np.minimum) else (before, here)
    no_number = np.logical_and(np.isnan(one), np.logical_not(np.isnan(other)))
    at = np.reshape(np.arange(1, n), [-1 if i == axis else 1 for i in range(ndim)])
    at = np.where(np.logical_or(new, no_number), at, 0)
    first = np.zeros((*type_of(a).shape[:axis], min(n, 1), *type_of(a).shape[axis + 1 :]), int)
    return _run(np.maximum, np.concatenate([first, at], axis), axis)


def _run(ufunc: np.ufunc, values: Shaped, axis: int) -> Any:
    """The running reduction of values without derivative."""
    if isinstance(values, Box):
        return running(registry.foreign[ufunc].ours, values, axis)
    return ufunc.accumulate(values, axis)


def reduceat(
    ufunc: np.ufunc,
    a: Shaped,
    indices: Sequence[int] | np.ndarray,
    axis: int = 0,
    dtype: DType = None,
) -> Any:
    """np.ufunc.reduceat: the reductions of the slices that begin at the indices."""
    if ufunc in WIDENED and dtype is None:
        dtype = wide(type_of(a).dtype)
    a, axis = line(_as(a, dtype), axis, f"{ufunc.__name__}.reduceat")
    n, lead = type_of(a).shape[axis], (slice(None),) * axis
    starts = np.asarray(indices).astype(int)
    if not starts.size:
        return a[(*lead, slice(0, 0))]
    if np.any((starts < 0) | (starts >= n)):
        raise ShapeError(f"{ufunc.__name__}.reduceat: the indices {starts} leave the {n} elements")
    stops = np.append(starts[1:], n)
    stops = np.where(stops > starts, stops, starts + 1)
    if ufunc is not np.add:
        parts = zip(starts.tolist(), stops.tolist(), strict=True)
        results = [
            reduce_(ufunc, a[(*lead, slice(i, j))], axis, dtype, keepdims=True) for i, j in parts
        ]
        return op("concat")(*results, axis=axis)
    read = np.concatenate([np.arange(i, j) for i, j in zip(starts, stops, strict=True)])
    part = np.repeat(np.arange(starts.size), stops - starts)
    shape = (*type_of(a).shape[:axis], starts.size, *type_of(a).shape[axis + 1 :])
    return op("scatter")(op("index")(a, at=(*lead, read)), at=(*lead, part), shape=shape)


def outer(ufunc: np.ufunc, a: Value, b: Value) -> Any:
    """np.ufunc.outer: the operation on all pairs of elements."""
    a, b = [v.typed() if isinstance(v, Box) else v for v in map(as_array, (a, b))]
    shape = (*type_of(a).shape, *(1,) * type_of(b).ndim)
    spread = registry.foreign[np.reshape].ours(a, shape) if shape else a
    return registry.foreign[ufunc].ours(spread, b)


def _as(a: Shaped, dtype: DType) -> Any:
    same = dtype is None or type_of(a).dtype == np.dtype(dtype)
    return a if same else op("astype")(a, dtype=np.dtype(dtype))


METHODS: dict[str, Callable[..., Any]] = {
    "reduce": reduce_,
    "accumulate": accumulate,
    "reduceat": reduceat,
    "outer": outer,
}
