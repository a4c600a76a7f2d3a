"""NumPy's functions that join arrays and split them."""

from collections.abc import Callable
from typing import Any

import numpy as np

from lineara.errors import ShapeError
from lineara.facts.hints import Shaped
from lineara.facts.primitive import implements
from lineara.facts.types import type_of
from lineara.ops.shape import (
    HeldAsArray,
    as_array,
    astype,
    concat,
    expand_dims,
    moveaxis,
    normal_axis,
    ravel,
    reshape,
    sizes,
    stack,
)


def takes_arrays(*foreign: Any) -> Callable[[Any], Any]:
    """Declare a stand-in that gets its first argument, a sequence of arrays, unchanged."""

    def register(function: Callable[..., Any]) -> Any:
        return implements(*foreign, sequence=True)(function)

    return register


def _met(a: Shaped) -> Any:
    """What decides of a dtype: that of an array, or a number of Python's, which takes another's."""
    if getattr(a, "weak", False):
        return 1j if a.dtype.kind == "c" else 1.0
    return a if type(a) in (int, float, complex) else type_of(a).dtype


def _rows(arrays: Any, axis: int | None) -> Any:
    """Arrays that are the rows of one already, where they are joined as rows."""
    whole = arrays.as_array() if isinstance(arrays, HeldAsArray) and axis == 0 else None
    return whole if whole is not None and type_of(whole).shape[0] else None


@takes_arrays(np.concatenate, np.concat)
def concatenate(arrays, axis=0, out=None, *, dtype=None, casting="same_kind"):
    """Arrays joined along an axis."""
    rows = _rows(arrays, axis)
    if rows is not None and len(rows.shape) > 1:
        first, second, *rest = rows.shape
        arrays = [reshape(rows, shape=(first * second, *rest))]
    given = arrays = [as_array(a) for a in arrays]
    if axis is None:
        arrays, axis = [ravel(a) for a in arrays], 0
        dtype = np.result_type(*map(_met, given)) if dtype is None else dtype
    axis = normal_axis(axis, len(arrays[0].shape), "concatenate")
    try:
        joined = concat(*arrays, axis=axis)
    except ValueError:
        shown = " with ".join(repr(type_of(a)) for a in arrays)
        raise ShapeError(
            f"concatenate: cannot join {shown} along axis {axis}; all other axes must agree"
        ) from None
    return joined if dtype is None else astype(joined, dtype=np.dtype(dtype))


@takes_arrays(np.stack)
def np_stack(arrays, axis=0, out=None, *, dtype=None, casting="same_kind"):
    """Arrays of one shape joined along a new axis."""
    rows = _rows(arrays, axis)
    if rows is not None:
        return rows if dtype is None else astype(rows, dtype=np.dtype(dtype))
    arrays = [as_array(a) for a in arrays]
    if len({a.shape for a in map(type_of, arrays)}) > 1:
        shown = ", ".join(repr(type_of(a)) for a in arrays)
        raise ShapeError(f"stack: all arrays must have one shape; found {shown}")
    axis = normal_axis(axis, len(type_of(arrays[0]).shape) + 1, "stack")
    if axis:
        return concatenate([expand_dims(a, axis) for a in arrays], axis, dtype=dtype)
    joined = stack(*arrays)
    return joined if dtype is None else astype(joined, dtype=np.dtype(dtype))


@implements(np.append)
def append(arr, values, axis=None):
    """Two arrays joined: flattened, or along an axis."""
    flat = [ravel(as_array(a)) for a in (arr, values)] if axis is None else [arr, values]
    return concatenate(flat, axis or 0)


def _each(foreign: Callable[..., Any], doc: str) -> Callable[[Any], Any]:
    """Declare a stand-in that applies one function to each of its arguments."""

    def register(one: Callable[[Any], Any]) -> Any:
        def function(*arrays: Any) -> Any:
            results = tuple(one(a) for a in map(as_array, arrays))
            return results[0] if len(results) == 1 else results

        function.__doc__ = doc
        return implements(foreign)(function)

    return register


@_each(np.atleast_1d, "Each with at least one axis.")
def atleast_1d(a):
    """The array with at least one axis."""
    return a if len(a.shape) else reshape(a, shape=(1,))


@_each(np.atleast_2d, "Each with at least two axes; a vector becomes a row.")
def atleast_2d(a):
    """The array with at least two axes."""
    return a if len(a.shape) > 1 else reshape(a, shape=(1, *(a.shape or (1,))))


@_each(np.atleast_3d, "Each with at least three axes; a vector becomes (1, n, 1).")
def atleast_3d(a):
    """The array with at least three axes."""
    a = atleast_2d(a)
    return a if len(a.shape) > 2 else reshape(a, shape=(*a.shape, 1))


@takes_arrays(np.vstack)
def vstack(tup, *, dtype=None, casting="same_kind"):
    """Arrays on top of each other."""
    rows = _rows(tup, 0)
    if rows is not None and len(rows.shape) < 3:
        rows = rows if len(rows.shape) == 2 else expand_dims(rows, 1)
        return concatenate([rows], 0, dtype=dtype)
    return concatenate([atleast_2d(a) for a in tup], 0, dtype=dtype)


@takes_arrays(np.hstack)
def hstack(tup, *, dtype=None, casting="same_kind"):
    """Arrays side by side."""
    arrays = [atleast_1d(a) for a in tup]
    return concatenate(arrays, min(1, len(arrays[0].shape) - 1), dtype=dtype)


@takes_arrays(np.dstack)
def dstack(tup):
    """Arrays behind each other, along the third axis."""
    return concatenate([atleast_3d(a) for a in tup], 2)


@takes_arrays(np.column_stack)
def column_stack(tup):
    """Vectors as the columns of a matrix."""
    columns = [as_array(a) for a in tup]
    return concatenate([a if len(a.shape) > 1 else expand_dims(ravel(a), 1) for a in columns], 1)


@takes_arrays(np.block)
def block(arrays):
    """Nested lists of blocks joined to one array, the innermost lists along the last axis."""
    ndim = max(_depth(arrays), _ranks(arrays))

    def join(part: Shaped, axis: int) -> Any:
        if isinstance(part, list):
            return concatenate([join(p, axis + 1) for p in part], axis)
        part = as_array(part)
        return reshape(part, shape=(*(1,) * (ndim - len(part.shape)), *part.shape))

    joined = join(arrays, -_depth(arrays))
    return joined if isinstance(arrays, list) else joined.copy()


def _depth(arrays: Shaped) -> int:
    return 1 + _depth(arrays[0]) if isinstance(arrays, list) else 0


def _ranks(arrays: Shaped) -> int:
    return max(map(_ranks, arrays)) if isinstance(arrays, list) else len(type_of(arrays).shape)


@implements(np.array_split)
def array_split(ary, indices_or_sections, axis=0):
    """The list of pieces of an array along an axis; their sizes may differ by one."""
    axis = normal_axis(axis, len(ary.shape), "split")
    n, lead = ary.shape[axis], (slice(None),) * axis
    if np.ndim(indices_or_sections):
        stops = [*sizes(indices_or_sections), n]
    else:
        stops = np.cumsum([len(p) for p in np.array_split(np.arange(n), indices_or_sections)])
    bounds = zip([0, *stops[:-1]], stops, strict=True)
    return [ary[(*lead, slice(int(i), int(j)))] for i, j in bounds]


@implements(np.split)
def split(ary, indices_or_sections, axis=0):
    """The list of pieces of an array along an axis; an error unless a number of them divides it."""
    n = ary.shape[normal_axis(axis, len(ary.shape), "split")]
    if not np.ndim(indices_or_sections) and n % indices_or_sections:
        raise ShapeError(
            f"split: {n} rows do not make {indices_or_sections} equal parts; "
            "np.array_split gives unequal ones"
        )
    return array_split(ary, indices_or_sections, axis)


@implements(np.vsplit)
def vsplit(ary, indices_or_sections):
    """The list of pieces along the first axis."""
    if len(ary.shape) < 2:
        raise ValueError("vsplit only works on arrays of 2 or more dimensions")
    return split(ary, indices_or_sections, 0)


@implements(np.hsplit)
def hsplit(ary, indices_or_sections):
    """The list of pieces along the second axis; of a vector along its only one."""
    return split(ary, indices_or_sections, min(1, len(ary.shape) - 1))


@implements(np.dsplit)
def dsplit(ary, indices_or_sections):
    """The list of pieces along the third axis."""
    return split(ary, indices_or_sections, 2)


def unstack(x: Shaped, /, *, axis: int = 0) -> tuple[Any, ...]:
    """A tuple of the slices along an axis."""
    return tuple(moveaxis(x, axis, 0)[i] for i in range(x.shape[axis]))


if hasattr(np, "unstack"):  # from NumPy 2.1
    implements(np.unstack)(unstack)
