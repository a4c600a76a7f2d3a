"""NumPy's functions that write into an array: each is a write that the array understands."""

from typing import Any

import numpy as np

from lineara.errors import DetachError
from lineara.facts.primitive import implements, op
from lineara.facts.types import type_of
from lineara.ops.shape import as_array
from lineara.tape.node import Array, Traced


def _target(a: Any, name: str) -> Array:
    if not isinstance(a, Array):
        raise DetachError(
            f"np.{name} writes traced values into a plain array, which cannot hold their "
            "derivative; make the array inside the differentiated function"
        )
    return a


def _cycled(values: Any, at: np.ndarray) -> Any:
    """Elements of the flattened values, beginning again where they end."""
    if not isinstance(values, Traced):
        flat = np.ravel(as_array(values))
        return flat[at % max(flat.size, 1)]
    flat = op("reshape")(values, shape=(type_of(values).size,))
    return op("index")(flat, at=(at % flat.shape[0],))


@implements(np.copyto)
def copyto(dst, src, casting="same_kind", where=True):
    """dst[...] = src, where a mask holds."""
    dst = _target(dst, "copyto")
    if where is True:
        dst[...] = src
        return
    mask = np.broadcast_to(where, dst.shape)
    spread = src if isinstance(src, Traced) else as_array(src)
    dst[mask] = np.broadcast_to(spread, dst.shape)[mask]


@implements(np.put)
def put(a, ind, v, mode="raise"):
    """a.flat[ind] = v."""
    a = _target(a, "put")
    ind = np.ravel(ind)
    ind = np.clip(ind, 0, a.size - 1) if mode == "clip" else ind % a.size if mode == "wrap" else ind
    if ind.size and (ind.max() >= a.size or ind.min() < -a.size):
        raise IndexError(f"put: an index is out of bounds for an array of {a.size} elements")
    a[np.unravel_index(ind % a.size, a.shape)] = _cycled(v, np.arange(ind.size))


@implements(np.putmask)
def putmask(a, mask, values):
    """a.flat[i] = values[i] for each i where the mask holds."""
    a = _target(a, "putmask")
    at = np.flatnonzero(np.broadcast_to(mask, a.shape))
    a[np.unravel_index(at, a.shape)] = _cycled(values, at)


@implements(np.place)
def place(arr, mask, vals):
    """The first values go where the mask holds, in order."""
    arr = _target(arr, "place")
    at = np.flatnonzero(np.broadcast_to(mask, arr.shape))
    arr[np.unravel_index(at, arr.shape)] = _cycled(vals, np.arange(at.size))


@implements(np.put_along_axis)
def put_along_axis(arr, indices, values, axis):
    """Writes at positions given for each line along the axis."""
    arr = _target(arr, "put_along_axis")
    axis %= arr.ndim
    shape = list(arr.shape)
    shape[axis] = indices.shape[axis]
    grid = list(np.ogrid[tuple(slice(n) for n in shape)])
    grid[axis] = np.broadcast_to(indices, shape)
    arr[tuple(grid)] = values


@implements(np.fill_diagonal)
def fill_diagonal(a, val, wrap=False):
    """The main diagonal of a gets the value."""
    a = _target(a, "fill_diagonal")
    if a.ndim == 2:
        n, m = a.shape
        at = np.arange(0, n * m if wrap else min(n, m) * m, m + 1)
        a[np.unravel_index(at, a.shape)] = _cycled(val, np.arange(at.size))
        return
    at = np.arange(min(a.shape))
    a[(at,) * a.ndim] = _cycled(val, at)
