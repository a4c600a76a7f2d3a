"""Data as a list of chunks: what of it each call of the loss gets.

an array of NumPy's                      slices of `chunks` rows
a dask array                             its blocks of rows
an xarray object                         its pieces along the chunked dimension, or `chunks`
a dask bag or dataframe                  its partitions
a list or an iterator                    its items: arrays, names of files, delayed objects, ...
a tuple or a dict of these               tuples or dicts of their chunks, which belong together
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from lineara.errors import StructureError, TypeMismatchError
from lineara.facts.types import show_type

Chunks = int | Mapping[Any, int] | None
Many = tuple | dict


def chunks_of(data: object, chunks: Chunks, name: str) -> list[Any]:
    """The chunks, in order; lazy ones of dask's stay so.

    Raises TypeMismatchError for data that is not known, StructureError for data without chunks and
    for parts of a tuple that have different numbers of them.

    >>> chunks_of((np.arange(3), np.zeros((3, 2))), 2, "value_and_grad")[1]
    (array([2]), array([[0., 0.]]))
    """
    listed = _chunks(data, chunks, name)
    if not listed:
        raise StructureError(f"{name}: the data has no chunks; a sum over nothing has no type")
    return listed


def _chunks(data: Any, chunks: Chunks, name: str) -> list[Any]:
    if isinstance(data, Many) and data:
        return _together(data, chunks, name)
    if isinstance(data, np.ndarray) and data.ndim:
        return [data[a:b] for a, b in _bounds(len(data), chunks, name)]
    if hasattr(data, "isel") and hasattr(data, "dims"):
        return _along(data, chunks, name)
    if hasattr(data, "rechunk"):
        return _blocks(data, chunks)
    delayed = getattr(data, "to_delayed", None)
    if delayed is not None:
        if chunks is not None:
            raise TypeMismatchError(
                f"{name}: {show_type(data)} has its partitions; leave out chunks=, or repartition"
            )
        return [*delayed()]
    if isinstance(data, Iterable) and not isinstance(data, str | bytes) and not _lazy(data):
        listed = [*data]
        if chunks is None:
            return listed
        return [listed[a:b] for a, b in _bounds(len(listed), chunks, name)]
    raise TypeMismatchError(
        f"{name}: {show_type(data)} is no data in chunks; give a list of chunks (arrays, names of "
        "files, delayed objects), an array with chunks=rows, a dask array, bag or dataframe, an "
        "xarray object, or a tuple or a dict of these"
    )


def _lazy(data: object) -> bool:
    """Whether it is one object of dask's."""
    return hasattr(type(data), "__dask_graph__")


def _blocks(data: Any, chunks: Chunks) -> list[Any]:
    """The blocks of rows of a dask array."""
    blocks = data.rechunk(dict.fromkeys(range(1, data.ndim), -1))
    blocks = blocks if chunks is None else blocks.rechunk({0: chunks})
    return [*np.ravel(blocks.to_delayed())]


def _together(data: Any, chunks: Chunks, name: str) -> list[Any]:
    """The chunks of several data, side by side."""
    keys = list(data) if isinstance(data, dict) else range(len(data))
    columns = [_chunks(data[k], chunks, name) for k in keys]
    counts = [len(column) for column in columns]
    if len(set(counts)) > 1:
        each = ", ".join(f"{k}: {count}" for k, count in zip(keys, counts, strict=True))
        raise StructureError(
            f"{name}: the data that belongs together has different numbers of chunks ({each}); a "
            "tuple or a dict is of data with the same rows, and a list is of chunks"
        )
    rows = zip(*columns, strict=True)
    if isinstance(data, dict):
        return [dict(zip(keys, row, strict=True)) for row in rows]
    return [*rows]


def _bounds(size: int, chunks: Chunks, name: str) -> list[tuple[int, int]]:
    """Where each chunk begins and ends."""
    if not isinstance(chunks, int) or isinstance(chunks, bool) or chunks < 1:
        raise TypeMismatchError(
            f"{name}: chunks={chunks!r} of data with {size:,} rows; give the number of rows of a "
            "chunk, 1 or more"
        )
    return [*pairwise([*range(0, size, chunks), size])]


def _along(data: Any, chunks: Chunks, name: str) -> list[Any]:
    """The pieces of an xarray object along the one dimension that is chunked."""
    dim, sizes = dimension(data, chunks, name)
    ends = np.cumsum([0, *sizes]).tolist()
    return [data.isel({dim: slice(a, b)}) for a, b in pairwise(ends)]


def dimension(data: Any, chunks: Chunks, name: str) -> tuple[Any, Sequence[int]]:
    """The dimension along which an xarray object is divided, and the sizes of the pieces."""
    if isinstance(chunks, Mapping) and len(chunks) == 1:
        ((dim, rows),) = chunks.items()
        if dim in data.sizes:
            return dim, [b - a for a, b in _bounds(data.sizes[dim], rows, name)]
    known = {dim: sizes for dim, sizes in (data.chunksizes or {}).items() if len(sizes) > 1}
    if chunks is None and len(known) == 1:
        return next(iter(known.items()))
    sizes = ", ".join(f"{dim}: {n}" for dim, n in data.sizes.items())
    raise TypeMismatchError(
        f"{name}: an xarray object is divided along one dimension, and chunks={chunks!r} names none"
        f" of {sizes}; give chunks={{dimension: size}}"
    )


# --- pieces of a chunk ----------------------------------------------------------------------------


def pieces_of(chunk: Any, size: int, dim: Any) -> list[Any]:
    """A chunk as pieces of so many rows (items, steps along `dim`); the last may be smaller."""
    rows = rows_of(chunk, dim)
    return [_rows(chunk, a, min(a + size, rows), dim) for a in range(0, rows, size)]


def rows_of(chunk: Any, dim: Any) -> int:
    """How many rows (items, steps along `dim`) a chunk has.

    Raises StructureError where it has none, or its parts have different numbers.
    """
    if isinstance(chunk, Many):
        parts = chunk.values() if isinstance(chunk, dict) else chunk
        counts = {rows_of(part, dim) for part in parts}
        if len(counts) == 1:
            return counts.pop()
        raise StructureError(
            f"distributed: sum='exact' divides a chunk into rows, but its parts have {counts} rows"
        )
    if hasattr(chunk, "isel"):
        return chunk.sizes[dim]
    try:
        return len(chunk)
    except TypeError:
        raise StructureError(
            f"distributed: sum='exact' divides a chunk into rows, and {show_type(chunk)} has none; "
            "let load= give arrays or lists"
        ) from None


def _rows(chunk: Any, a: int, b: int, dim: Any) -> Any:
    if isinstance(chunk, dict):
        return {k: _rows(v, a, b, dim) for k, v in chunk.items()}
    if isinstance(chunk, tuple):
        return tuple([_rows(v, a, b, dim) for v in chunk])
    if hasattr(chunk, "isel"):
        return chunk.isel({dim: slice(a, b)})
    return (chunk.iloc if hasattr(chunk, "iloc") else chunk)[a:b]
