"""The cotangent of an array as a builder: Rows, Coo, LowRank or Zero, decided by what was traced.

    only rows along the first axis               Rows
    only parts: elements, columns, blocks        Coo
    only products with vectors, few of them      LowRank
    only rules that give one builder class       that class of the user's, combined
    nothing                                      Zero
    anything that reads the whole                an array

Values decide nothing, and nothing of the size of the array is made.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from lineara.cotangent import Coo, LowRank, Rows, Zero
from lineara.facts.hints import Shaped
from lineara.facts.primitive import Box, Given, Outer, Own, Piece
from lineara.ops.index import is_basic
from lineara.tape.node import Array, zero
from lineara.tape.pull_reads import combined, joined
from lineara.tape.reads import Reads, View
from lineara.tape.strides import Flat, c_strides, grid


class _Region(NamedTuple):
    """What arrived at a part of the array: its place, an index within it (or all), values.

    Several parts of one form, all of each, have several offsets.
    """

    offset: Any  # an int, or an array of them
    strides: tuple[int, ...]
    shape: tuple[int, ...]
    at: Any
    values: Any


def builder(node: Array, leaf: np.ndarray) -> Any:
    """The cotangent of an array as a builder; None where it has to be dense."""
    k = node.k
    if node.g is not None or (k is not None and k.sums):
        return None
    if type(k) is not Reads:
        return Zero(leaf.shape, leaf.dtype)
    outers = list(_outers(k, leaf.shape))
    regions = list(_regions(k, leaf.shape))
    if any(_is_boxed(r.values) for r in regions) or any(
        isinstance(v, Box) for o in outers for v in o
    ):
        return None  # of an outer level: only an array can hold it
    owns = combined(p for p in k.pieces if type(p) is Own)
    if owns:
        alone = len(owns) == 1 and not (outers or regions or k.nodes)
        return owns[0].cotangent if alone else None
    if any(r.at is None and math.prod(r.shape) == leaf.size for r in regions):
        return None
    if outers:
        return None if regions or k.nodes else _low_rank(outers, leaf)
    if not regions and not k.nodes:
        return Zero(leaf.shape, leaf.dtype)
    rows = _rows(k, regions, leaf)
    return rows if rows is not None else _coo(k, regions, leaf)


def _is_boxed(values: Shaped) -> bool:
    return isinstance(values, Box)


def _regions(k: Reads, shape: tuple[int, ...]) -> Iterator[_Region]:
    """Everything that arrived but single elements and outer products."""
    whole = (0, c_strides(shape), shape)
    for p in k.pieces:
        if type(p) is Piece:
            yield _Region(*whole, p.at, p.x_bar)
    if k.nodes and any(isinstance(o.g, Box) for o in k.nodes):
        yield _Region(
            *whole, Flat(np.array(k.places)), next(o.g for o in k.nodes if isinstance(o.g, Box))
        )
    for o in k.views:
        place = (o.k.offset, o.k.strides, tuple(o.v.shape))
        for p in o.k.pieces:
            if type(p) is Piece:
                yield _Region(*place, p.at, p.x_bar)
            elif type(p) is Own:
                yield _Region(*place, None, p.finish())
            elif not _is_whole(o, shape):
                yield _Region(*place, None, p.u @ p.v.T)
    for where, g in joined(_whole_parts(k.views)):
        yield _Region(where.offset, where.strides, np.shape(g)[where.many :], None, g)


def _whole_parts(views: list[Any]) -> Iterator[tuple[View, Any]]:
    """What arrived at all elements of each view."""
    for o in views:
        if o.g is not None:
            yield o.k, o.g
        for s in o.k.sums:
            if s.g is not zero:
                yield o.k, s.g if isinstance(s.g, Box) else np.full(o.v.shape, s.g)


def _is_whole(o: Array, shape: tuple[int, ...]) -> bool:
    """Whether a view is the matrix itself or its transpose."""
    mine = tuple(o.v.shape), o.k.strides
    straight = c_strides(shape)
    return o.k.offset == 0 and mine in ((shape, straight), (shape[::-1], straight[::-1]))


def _outers(k: Reads, shape: tuple[int, ...]) -> Iterator[Outer]:
    """Outer products with the whole array, or with its transpose."""
    yield from (p for p in k.pieces if isinstance(p, Outer))
    for o in k.views:
        if _is_whole(o, shape):
            straight = tuple(o.v.shape) == shape and o.k.strides == c_strides(shape)
            for p in o.k.pieces:
                if isinstance(p, Outer):
                    yield p if straight else type(p)(p.v, p.u)


def _low_rank(outers: list[Outer], leaf: np.ndarray) -> Any:
    rank = sum(o.u.shape[1] for o in outers)
    if 2 * rank >= min(leaf.shape) and not any(isinstance(o, Given) for o in outers):
        return None
    return LowRank(*(np.concatenate([o[i] for o in outers], axis=1) for i in (0, 1)))


# --- rows ----------------------------------------------------------------------------------------


def _rows(k: Reads, regions: list[_Region], leaf: np.ndarray) -> Any:
    """All contributions as rows along the first axis, or None."""
    at, values = [], []
    width = leaf.shape[1:]
    if k.nodes:
        if width:
            return None
        at.append(np.array(k.places, dtype=np.int64) % leaf.size)
        values.append(np.array([o.g for o in k.nodes], dtype=leaf.dtype))
    for r in regions:
        rows = _row_numbers(r, width)
        if rows is None:
            return None
        at.append(rows)
        values.append(np.asarray(r.values).reshape(-1, *width))
    indices, rows = np.concatenate(at), np.concatenate(values)  # memory that nobody else has
    return Rows(indices, rows.astype(leaf.dtype, copy=False), leaf.shape)


def _row_numbers(r: _Region, width: tuple[int, ...]) -> np.ndarray | None:
    """The rows that a contribution goes to, or None where it is not made of whole rows."""
    step, tail = math.prod(width), len(width)
    lead = len(r.shape) - tail
    if lead < 0 or r.shape[lead:] != width or not step:
        return None
    rest: Any = r.offset % step
    if rest.any() if isinstance(rest, np.ndarray) else rest:
        return None
    real = [(n, s) for n, s in zip(r.shape, r.strides, strict=True) if n != 1]
    inner = [(n, s) for n, s in zip(width, c_strides(width), strict=True) if n != 1]
    if real[len(real) - len(inner) :] != inner or any(s % step for s in r.strides[:lead]):
        return None
    strides = tuple(s // step for s in r.strides[:lead])
    if r.at is None:
        return grid(r.offset // step, strides, r.shape[:lead]).reshape(-1)
    where = _leading(r.at, r.shape, lead)
    return None if where is None else _positions(where, r.offset // step, strides, r.shape[:lead])


def _leading(at: object, shape: tuple[int, ...], lead: int) -> Any:
    """The part of an index that reads the leading axes, where the others are read as they are."""
    if type(at) is Flat:
        return at if lead == len(shape) else None
    parts = at if isinstance(at, tuple) else (at,)
    while parts and isinstance(parts[-1], slice) and parts[-1] == slice(None):
        parts = parts[:-1]
    axes = sum(p.ndim if isinstance(p, np.ndarray) and p.dtype == bool else 1 for p in parts)
    known = all(isinstance(p, int | np.integer | np.ndarray | slice) for p in parts)
    return parts if known and 0 < axes <= lead else None


# --- elements ------------------------------------------------------------------------------------


def _coo(k: Reads, regions: list[_Region], leaf: np.ndarray) -> Any:
    """All contributions as single elements."""
    at, values = [], []
    if k.nodes:
        at.append(np.array(k.places, dtype=np.int64) % leaf.size)
        values.append(np.array([o.g for o in k.nodes], dtype=leaf.dtype))
    for r in regions:
        whole = r.at is None
        at.append(
            grid(r.offset, r.strides, r.shape).reshape(-1)
            if whole
            else _positions(r.at, r.offset, r.strides, r.shape)
        )
        values.append(np.asarray(r.values).reshape(-1))
    return Coo(
        np.concatenate(at), np.concatenate(values).astype(leaf.dtype, copy=False), leaf.shape
    )


def _positions(
    at: Shaped, offset: int, strides: tuple[int, ...], shape: tuple[int, ...]
) -> np.ndarray:
    """offset + sum of i_k stride_k for the elements i that an index reads, flat."""
    if type(at) is Flat:
        parts: Any = np.unravel_index(at.at % math.prod(shape), shape)
        return _summed(parts, offset, strides)
    parts = at if isinstance(at, tuple) else (at,)
    if len(parts) <= len(shape) and all(map(_counts, parts)) and not is_basic(parts):
        wrapped = [p % n for p, n in zip(parts, shape, strict=False)]
        first = _summed(wrapped, offset, strides[: len(parts)])
        rest = len(shape) - len(parts)
        return (grid(first, strides[-rest:], shape[-rest:]) if rest else first).reshape(-1)
    total: Any = offset
    for axis, (n, s) in enumerate(zip(shape, strides, strict=True)):
        along = (np.arange(n) * s).reshape(n, *(1,) * (len(shape) - axis - 1))
        total = total + np.broadcast_to(along, shape)[at]
    return np.asarray(total).reshape(-1)


def _counts(part: np.ndarray) -> bool:
    """Whether a part of an index is one or several numbers."""
    if isinstance(part, np.ndarray):
        return part.dtype != bool
    return isinstance(part, int | np.integer) and not isinstance(part, bool)


def _summed(indices: Sequence[Any], offset: int, strides: tuple[int, ...]) -> np.ndarray:
    total: Any = offset
    for i, s in zip(indices, strides, strict=True):
        total = total + i * s
    return np.asarray(total)
