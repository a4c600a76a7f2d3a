"""Scatter, the transpose of gather: `out[indices[k]] += values[k]`, in order of k.

Three kernels were measured (1e6 x 3 and 1e5 x 64 contributions): bincount by column is fastest for
up to 16 columns, a product with a sparse 0-1 matrix for more; a flattened `np.add.at` serves other
dtypes.  Each adds in order of position, so the result depends only on the order of contributions.
"""

from collections.abc import Callable, Sequence
from math import prod
from operator import index
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from lineara.cotangent.true_sum import rounded
from lineara.errors import ShapeError, TypeMismatchError

Ints = NDArray[np.int64]
Array = NDArray[Any]

_BINCOUNT_COLUMNS = 16
_BINCOUNT_DTYPES = "efdFD"  # summed in float64 without loss; F and D by real and imaginary parts
_PRODUCT_DTYPES = "fdFD"  # the dtypes that scipy.sparse multiplies


def scatter_add(
    shape: Sequence[int],
    indices: ArrayLike,
    values: ArrayLike,
    axis: int = 0,
    dtype: DTypeLike | None = None,
) -> Array:
    """The dense array of `shape` to which `values` are added at `indices` along `axis`.

    The transpose of `x[indices]` along that axis: `values` has the shape of the gathered array.

    >>> scatter_add((4,), [2, 0, 2], [1.0, 5.0, 10.0])
    array([ 5.,  0., 11.,  0.])
    """
    shape = as_shape(shape)
    axis = checked_axis(axis, shape)
    rows = checked_indices(indices, shape[axis])
    slices = slabs(values, shape, axis, rows.size)
    wanted = np.dtype(dtype) if dtype is not None else slices.dtype
    slices = slices.astype(np.promote_types(slices.dtype, wanted), copy=False)
    if 8 * rows.size < shape[axis]:
        rows, slices = sum_duplicates(rows, slices, axis, shape[axis])
        out = np.zeros(shape, wanted)
        out[at(rows, axis)] = slices
        return out
    summed = sum_columns(shape[axis], rows, columns(slices, axis))
    return np.ascontiguousarray(uncolumns(summed, shape, axis), wanted)


def at(rows: Ints, axis: int) -> tuple[Any, ...]:
    """The index expression that selects `rows` along `axis`."""
    return (slice(None),) * axis + (rows,)


def as_shape(shape: Sequence[int]) -> tuple[int, ...]:
    """`shape` as a tuple of Python ints."""
    return tuple(map(index, shape))


def slabs(values: ArrayLike, shape: tuple[int, ...], axis: int, m: int) -> Array:
    """`values` reshaped to m slices along `axis` of an array of `shape`."""
    array, wanted = np.asarray(values), (*shape[:axis], m, *shape[axis + 1 :])
    if array.size != prod(wanted):
        raise ShapeError(
            f"{m} indices along axis {axis} of an array of shape {shape} need values of shape "
            f"{wanted}, not {array.shape}"
        )
    return array.reshape(wanted)


def columns(values: Array, axis: int) -> Array:
    """`values` as a matrix with one row for each slice along `axis`."""
    m = values.shape[axis]
    return np.moveaxis(values, axis, 0).reshape(m, values.size // m if m else 0)


def uncolumns(matrix: Array, shape: tuple[int, ...], axis: int) -> Array:
    """The inverse of `columns`: the rows of `matrix` as slices of an array of `shape`."""
    rest = shape[:axis] + shape[axis + 1 :]
    return np.moveaxis(matrix.reshape(matrix.shape[0], *rest), 0, axis)


def checked_axis(axis: int, shape: tuple[int, ...]) -> int:
    """`axis` counted from the front; an error if it is out of range."""
    if not -len(shape) <= axis < len(shape):
        raise ShapeError(f"axis {axis} does not exist in the shape {shape}")
    return axis % len(shape)


def checked_indices(indices: ArrayLike | range, n: int) -> Ints:
    """`indices` as a flat int64 array, counted from the front; an error if one is out of range."""
    if isinstance(indices, range):
        indices = np.arange(indices.start, indices.stop, indices.step)
    flat = np.asarray(indices)
    if flat.size == 0:
        return np.zeros(0, np.int64)
    if flat.dtype.kind not in "iu":
        raise TypeMismatchError(
            f"indices of a sparse cotangent are integers, not {flat.dtype}; "
            "np.flatnonzero(mask) gives those of a mask"
        )
    flat = flat.ravel().astype(np.int64, copy=False)
    low, high = int(flat.min()), int(flat.max())
    if low < -n or high >= n:
        bad = low if low < -n else high
        raise ShapeError(f"index {bad} is out of bounds for an axis of length {n}")
    return flat if low >= 0 else np.where(flat < 0, flat + n, flat)


def sum_duplicates(
    rows: Ints, values: Array, axis: int, n: int, exact: bool = False
) -> tuple[Ints, Array]:
    """(sorted distinct rows, the sum of the slices of `values` for each), of n rows.

    >>> sum_duplicates(np.array([7, 2, 7]), np.array([1.0, 2.0, 3.0]), 0, 10)
    (array([2, 7]), array([2., 4.]))
    """
    distinct, rank = _ranks(rows, n)
    if distinct.size == rows.size:
        order = np.empty_like(rank)
        order[rank] = np.arange(rows.size)
        return distinct, values[at(order, axis)]
    kernel = _fsum_columns if exact else sum_columns
    summed = kernel(distinct.size, rank, columns(values, axis))
    return distinct, uncolumns(summed, values.shape, axis)


def _ranks(rows: Ints, n: int) -> tuple[Ints, Ints]:
    """(sorted distinct rows, the position of each of `rows` among them); by sorting if few."""
    if 8 * rows.size < n:
        return np.unique(rows, return_inverse=True)
    seen = np.zeros(n, bool)
    seen[rows] = True
    return np.flatnonzero(seen), (np.cumsum(seen) - 1)[rows]


def sum_columns(n: int, rows: Ints, matrix: Array) -> Array:
    """A matrix of n rows; row i is the sum of the rows k of `matrix` with rows[k] == i."""
    code, D = matrix.dtype.char, matrix.shape[1]
    if D <= _BINCOUNT_COLUMNS and code in _BINCOUNT_DTYPES:
        return _by_column(_bincount, n, rows, matrix)
    if code in _PRODUCT_DTYPES:
        try:
            return _product(n, rows, matrix)
        except ImportError:
            pass
    return _add_at(n, rows, matrix)


def _by_column(kernel: Callable[..., Any], n: int, rows: Ints, matrix: Array) -> Array:
    out: Any = np.empty((n, matrix.shape[1]), matrix.dtype)
    for j, column in enumerate(matrix.T):
        if matrix.dtype.kind == "c":
            out.real[:, j] = kernel(n, rows, column.real)
            out.imag[:, j] = kernel(n, rows, column.imag)
        else:
            out[:, j] = kernel(n, rows, column)
    return out


def _bincount(n: int, rows: Ints, column: Array) -> Array:
    return np.bincount(rows, column, minlength=n)


def _product(n: int, rows: Ints, matrix: Array) -> Array:
    from scipy.sparse import (
        csc_array,
    )  # here, since SciPy takes longer to import than all of Lineara

    m = rows.size
    ones = np.ones(m, matrix.dtype)
    selection = csc_array((ones, rows, np.arange(m + 1)), shape=(n, m))  # column k: 1 at rows[k]
    return selection @ matrix


def _add_at(n: int, rows: Ints, matrix: Array) -> Array:
    D = matrix.shape[1]
    out = np.zeros(n * D, matrix.dtype)
    np.add.at(out, (rows[:, None] * D + np.arange(D)).ravel(), matrix.ravel())
    return out.reshape(n, D)


def _fsum_columns(n: int, rows: Ints, matrix: Array) -> Array:
    """As `sum_columns`, but each sum is the true sum, rounded once, for any order."""
    if matrix.dtype.char not in _BINCOUNT_DTYPES:
        raise TypeMismatchError(
            f"sum='exact' is for float16, 32, 64 and complex64, 128, not {matrix.dtype}; "
            "use sum='fast'"
        )
    return _by_column(_fsum, n, rows, matrix)


def _fsum(n: int, rows: Ints, column: Array) -> list[float]:
    terms: list[list[float]] = [[] for _ in range(n)]
    for row, x in zip(rows.tolist(), column.tolist(), strict=True):
        terms[row].append(x)
    real = float if column.dtype == float else column.dtype.type
    with np.errstate(over="ignore"):
        return [rounded(each, real) for each in terms]
