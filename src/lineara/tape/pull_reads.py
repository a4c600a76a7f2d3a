"""The reads of an array in the sweeps: pulled back in one sum, distributed forward."""

import math
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from lineara.cotangent import combine
from lineara.cotangent.scatter import checked_indices, sum_duplicates
from lineara.cotangent.sparse_vector import SparseVector
from lineara.facts.hints import Shaped
from lineara.facts.primitive import Box, Outer, Own, Piece, op
from lineara.facts.types import type_of
from lineara.tape.lazy_zeros import blank, is_own
from lineara.tape.node import Array, zero
from lineara.tape.reads import Reads, View
from lineara.tape.strides import Flat, grid, strided


def settled(nodes: list[Any], places: list[int], size: int) -> tuple[np.ndarray, list[Any]]:
    """The positions and cotangents of the nodes that a cotangent has reached."""
    if any(n.g is zero for n in nodes):
        pairs = [(i, n.g) for i, n in zip(places, nodes, strict=True) if n.g is not zero]
        places, cotangents = [i for i, _ in pairs], [g for _, g in pairs]
    else:
        cotangents = [n.g for n in nodes]
    at = np.array(places, dtype=np.int64)
    at[at < 0] += size
    return at, cotangents


def pull(x: Array) -> Any:
    """The cotangent of an array: its dense part and all that its reads collected, in one sum."""
    k = x.k
    if k is None or (type(k) is View and not k.pieces and not k.sums):
        return x.g
    if type(k) is Reads and k.nodes and not (k.views or k.pieces or k.sums):
        quick = _pull_few(x, k)
        if quick is not None:
            return quick
    if len(k.pieces) == 1 and x.g is None:
        quick = _pull_product(k)
        if quick is not None:
            return quick
    if type(k) is Reads and 0 < len(k.views) <= FEW_VIEWS and not (k.nodes or k.pieces or k.sums):
        quick = _pull_views(x, k)
        if quick is not None:
            return quick
    if k.sums and x.g is None:
        quick = _pull_sums(x, k)
        if quick is not None:
            return quick
    shape = tuple(x.v.shape)
    terms = [*_pieces(k.pieces, shape), *_sums(x, shape)]
    if type(k) is Reads:
        terms = [*_reads(x, k), *terms]
    if x.g is None and not terms:
        return None
    if any(isinstance(t, Box) for _, t in terms) or isinstance(x.g, Box):
        return _pull_boxes(x.g, terms, shape)
    return _pull_plain(x, terms, shape)


def _pull_product(k: Reads | View) -> np.ndarray | None:
    """The cotangent of a matrix that was read by one plain product only; else None."""
    (piece,) = k.pieces
    if not isinstance(piece, Outer) or k.sums or (type(k) is Reads and (k.nodes or k.views)):
        return None
    u, v = piece
    plain = type(u) is np.ndarray and type(v) is np.ndarray
    return np.matmul(u, v.T) if plain else None


FEW_VIEWS = 4  # which are added one by one; of more, the small ones of one form all at once


def _pull_views(x: Array, k: Reads) -> np.ndarray | None:
    """The cotangent of a plain array whose views all have plain cotangents; else None."""
    v, total = x.v, x.g
    if type(v) is not np.ndarray or not (total is None or type(total) is np.ndarray):
        return None
    arrived = []
    for o in k.views:
        part = o.k
        c = pull(o) if part.pieces or part.sums else o.g
        if c is not None:
            if type(c) is not np.ndarray or c.dtype is not v.dtype:
                return None
            arrived.append((part, c))
    if not arrived:
        return total
    if total is not None and total.dtype is not v.dtype:
        return None
    total = blank(v.shape, v.dtype) if total is None else np.array(total, order="C")
    for part, c in arrived:
        strided(total, part.offset, part.strides, c.shape)[...] += c
    return total


def _pull_sums(x: Array, k: Any) -> np.ndarray | None:
    """The cotangent of a plain array that was only summed; else None."""
    if k.pieces or (type(k) is Reads and (k.nodes or k.views)) or type(x.v) is not np.ndarray:
        return None
    total: Any = zero
    for o in k.sums:
        if o.g is not zero:
            total = o.g if total is zero else total + o.g
    if type(total) is not float or total is zero:
        return None
    bar = np.empty(x.v.shape, x.v.dtype)
    bar.fill(total)
    return bar


FEW = 32  # elements of an array for which Python adds faster than NumPy does


def _pull_few(x: Array, k: Reads) -> np.ndarray | None:
    """The cotangent of a short vector that was only read by elements; else None."""
    g, v = x.g, x.v
    if not (type(v) is np.ndarray and v.size <= FEW and v.ndim == 1 and v.dtype == np.float64):
        return None
    if not (g is None or type(g) is np.ndarray):
        return None
    n = v.size
    total = [0.0] * n if g is None else g.tolist()
    touched = g is not None
    for i, o in zip(k.places, k.nodes, strict=True):
        c = o.g
        if c is zero:
            continue
        if type(c) is not float:
            return None
        total[i] += c
        touched = True
    return np.array(total) if touched else None


class Strided(NamedTuple):
    """A strided part that a contribution goes to; several of one form, where offsets are many."""

    offset: Any  # an int, or an array of them
    strides: tuple[int, ...]

    @property
    def many(self) -> bool:
        """Whether these are several parts: the contribution then has a leading axis over them."""
        return isinstance(self.offset, np.ndarray)


def _reads(x: Array, k: Reads) -> Any:
    """(where, contribution) for the elements read, together, and for the views."""
    if k.nodes:
        yield from _elements(x, k)
    arrived = (o for o in k.views if o.g is not None or o.k.pieces or o.k.sums)
    yield from joined((o.k, pull(o)) for o in arrived)


SMALL = 64  # elements; contributions of up to that many are added by position, all at once


def joined(arrived: Iterable[tuple[View, Any]]) -> Iterator[tuple[Strided, Any]]:
    """(where, contribution) for parts of an array; the small ones of one form are joined."""
    alike: dict[Any, tuple[list[int], list[np.ndarray]]] = {}
    for k, g in arrived:
        if type(g) is np.ndarray and g.size <= SMALL:
            form = k.strides, g.shape, g.dtype
            if form not in alike:
                alike[form] = [], []
            offsets, values = alike[form]
            offsets.append(k.offset)
            values.append(g)
        elif g is not None:
            yield Strided(k.offset, k.strides), g
    for (strides, shape, _), (offsets, values) in alike.items():
        if len(offsets) == 1:
            yield Strided(offsets[0], strides), values[0]
        else:
            yield (
                Strided(np.array(offsets), strides),
                np.concatenate(values).reshape(len(offsets), *shape),
            )


def _elements(x: Array, k: Reads) -> Any:
    """(where, contribution) for the elements read: plain numbers at once, others one by one."""
    size = math.prod(x.v.shape)
    if type(x.v) is np.ndarray and x.v.dtype == np.float64:
        arrived = [o.g for o in k.nodes]
        boxed = any([issubclass(kind, Box) for kind in set(map(type, arrived))])
        try:  # a box is not asked for a number: it would refuse
            values = None if boxed else np.fromiter(arrived, float, len(arrived))
        except (TypeError, ValueError):  # exact numbers, formal vectors
            values = None
        if values is not None:
            if not values.any() and all([g is zero for g in arrived]):
                return  # nothing arrived: an array of zeros would enliven the lanes of a mask
            at = np.fromiter(k.places, np.int64, len(k.places))
            at[at < 0] += size
            yield Flat(at), values
            return
    at, cotangents = settled(k.nodes, k.places, size)
    if cotangents:
        boxed = any(isinstance(g, Box) for g in cotangents)
        yield Flat(at), op("stack")(*cotangents) if boxed else np.array(cotangents)


def _sums(x: Array, shape: tuple[int, ...]) -> Any:
    """The contribution of all sums of the array: one number everywhere."""
    cotangents = [o.g for o in x.k.sums if o.g is not zero]
    if cotangents:
        total = cotangents[0] if len(cotangents) == 1 else sum(cotangents[1:], cotangents[0])
        boxed = isinstance(total, Box)
        yield None, op("broadcast_to")(total if boxed else np.array(total, x.dtype), shape=shape)


def _pieces(pieces: list[Any], shape: tuple[int, ...]) -> Any:
    outers = [p for p in pieces if isinstance(p, Outer)]
    if outers:
        yield None, join_outer(outers)
    for p in pieces:
        if type(p) is Piece:
            yield p.at, p.x_bar
    for own in combined([p for p in pieces if type(p) is Own]):
        yield None, own.finish()


def combined(owns: Iterable[Own]) -> list[Own]:
    """The sums of builders of the user's, one for each class: two classes know no common sum."""
    alike: dict[type, list[Own]] = {}
    for own in owns:
        alike.setdefault(type(own.cotangent), []).append(own)
    return [Own(combine([o.cotangent for o in same]), same[0].read) for same in alike.values()]


def join_outer(outers: list[Outer]) -> Any:
    """The sum of u v^T: one matrix product for all."""
    if len(outers) == 1:
        u, v = outers[0]
    else:
        u, v = (op("concat")(*(o[i] for o in outers), axis=1) for i in (0, 1))
    return op("matmul")(u, op("permute_dims")(v, axes=(1, 0)))


def _pull_plain(x: Array, terms: list[Any], shape: tuple[int, ...]) -> np.ndarray:
    if x.g is None and len(terms) == 1:
        where, only = terms[0]
        if where is None and is_own(only):  # a product: what is broadcast is a view
            return only
    dtype = np.result_type(*(t.dtype for _, t in terms), *(() if x.g is None else (x.g.dtype,)))
    total = blank(shape, dtype) if x.g is None else np.array(x.g, dtype, order="C")
    where: Any
    for where, t in terms:
        if where is None:
            total += t
        elif type(where) is Flat:
            np.add.at(total.reshape(-1), where.at, t)
        elif type(where) is Strided and where.many:
            at = grid(where.offset, where.strides, t.shape[1:])
            np.add.at(total.reshape(-1), at.reshape(-1), t.reshape(-1))
        elif type(where) is Strided:
            strided(total, where.offset, where.strides, t.shape)[...] += t
        else:
            _add_at(total, where, t)
    return total


MANY = 4096  # elements added by position, from which the kernels of a scatter pay


def _add_at(total: np.ndarray, where: Any, t: np.ndarray) -> None:
    """total[where] += t, each time that a position occurs; whole rows ten times as fast."""
    before = where[:-1] if type(where) is tuple else ()
    rows: Any = where[-1] if type(where) is tuple and where else where
    given = type(rows) is np.ndarray and rows.dtype.kind in "iu"
    whole = all([type(k) is slice and k == slice(None) for k in before])
    if not (given and whole and total.ndim > 1 and t.size >= MANY):
        np.add.at(total, where, t)
        return
    left, n, right = total.shape[: len(before)], total.shape[len(before)], len(before) + 1
    t = np.broadcast_to(t, (*left, *rows.shape, *total.shape[right:]))
    t = t.reshape(*left, rows.size, *total.shape[right:])
    rows, t = sum_duplicates(checked_indices(rows, n), t, len(before), n)
    total[(*before, rows)] += t


def _pull_boxes(g: Shaped | None, terms: list[Any], shape: tuple[int, ...]) -> Any:
    """The cotangent by primitives: where cotangents are of outer levels, batched or masked."""
    size = math.prod(shape)
    total = g
    sparse = next((t for t in (g, *[t for _, t in terms]) if isinstance(t, SparseVector)), None)
    for where, t in terms:
        if sparse is not None and where is not None and type(t) is np.ndarray:
            t = sparse.whole(t)  # so that the sum of parts stays sparse
        if where is None:
            part = t
        elif type(where) is Strided and isinstance(t, SparseVector) and not where.many:
            part = t.at_strides(where.offset, where.strides, shape)
        elif type(where) in (Flat, Strided):
            inner = type_of(t).shape[where.many :] if type(where) is Strided else ()
            at = where.at if type(where) is Flat else grid(where.offset, where.strides, inner)
            part = op("scatter")(t, at=(at,), shape=(size,))
            part = op("reshape")(part, shape=shape)
        else:
            part = op("scatter")(t, at=where, shape=shape)
        total = part if total is None else total + part
    return total


# --- the forward sweep ----------------------------------------------------------------------------


def distribute(x: Array, t: Any) -> None:
    """Give every read of x its part of the tangent t."""
    k = x.k
    if t is None or k is None:
        return
    if k.sums:
        plain = type(t) is np.ndarray and t.dtype == np.float64
        total = (
            t.sum().item()
            if plain
            else op("sum")(t, axis=tuple(range(len(x.v.shape))), keepdims=False)
        )
        for o in k.sums:
            o.g = total
    if type(k) is not Reads or not (k.nodes or k.views):
        return
    size = math.prod(x.v.shape)
    flat = op("reshape")(t, shape=(size,))
    if k.nodes:
        at = np.array(k.places)
        at[at < 0] += size
        parts = [flat[int(i)] for i in at] if isinstance(flat, Box) else flat[at].tolist()
        for o, t_dot in zip(k.nodes, parts, strict=True):
            o.g = t_dot
    for o in k.views:
        o.g = _part(flat, o.k, tuple(o.v.shape))
        if o.k.sums:
            distribute(o, o.g)


def _part(flat: Shaped, k: View, shape: tuple[int, ...]) -> Any:
    """The part of a tangent that belongs to a view."""
    if isinstance(flat, Box):
        return op("index")(flat, at=(grid(k.offset, k.strides, shape),))
    return strided(np.ascontiguousarray(flat), k.offset, k.strides, shape)
