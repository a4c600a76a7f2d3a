"""Reads of an array: registered with it, distributed forward, pulled back in one step.

A read of one element and a basic part (slice, transpose, reshape) have no tape entry of their own.
A part is a *view*: it knows its root and its position there, (offset, strides) counted in elements
of the root in C order, so that parts of parts cost no more than parts.
"""

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from lineara.eager.node import Array, leaked, outlived, plain, zero
from lineara.eager.pin import blank
from lineara.ops.index import check_index, is_basic, normal, read, scalar_index
from lineara.primitive import Box, Joint, Outer, Piece, op
from lineara.types import type_of


class Reads:
    """What was read of a root array, and the builder contributions to its cotangent."""

    __slots__ = ("memory", "nodes", "pieces", "places", "still", "sums", "vector", "views")

    def __init__(self, v: Any) -> None:
        self.vector = type(v) is np.ndarray and v.ndim == 1 and v.dtype == np.float64
        content: Any = v
        self.memory = (
            memoryview(content) if self.vector else None
        )  # None again when the trace has ended
        self.places: list[int] = []
        self.nodes: list[Any] = []
        self.views: list[Any] = []
        self.still: Any = None  # the snapshot of the whole, made once
        self.pieces: list[Any] = []
        self.sums: list[Any] = []  # scalars that are the sum of all elements


class View:
    """The position of a view in its root, and the contributions to the view's own cotangent.

    A `fixed` view keeps its content when the root is written; any other shows what was written.
    """

    __slots__ = ("fixed", "offset", "pieces", "root", "strides", "sums")

    def __init__(self, root: Any, offset: int, strides: tuple[int, ...], fixed: bool) -> None:
        self.root = root
        self.offset = offset
        self.strides = strides
        self.fixed = fixed
        self.pieces: list[Any] = []
        self.sums: list[Any] = []


def grid(offset: int, strides: tuple[int, ...], shape: tuple[int, ...]) -> np.ndarray:
    """offset + sum of i_k stride_k, for every index i of `shape`."""
    found = np.array(offset)
    for n, s in zip(shape, strides, strict=True):
        found = found[..., None] + np.arange(n) * s
    return found


@cache
def c_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides in elements of an array in C order."""
    found, step = [], 1
    for n in reversed(shape):
        found.append(step)
        step *= n
    return tuple(reversed(found))


def reshaped_strides(
    shape: tuple[int, ...], strides: tuple[int, ...], new: tuple[int, ...]
) -> tuple[int, ...] | None:
    """The strides of the same elements under another shape; None where NumPy has to copy.

    >>> reshaped_strides((2, 6), (6, 1), (2, 3, 2)), reshaped_strides((6, 2), (1, 6), (12,))
    ((6, 2, 1), None)
    """
    if 0 in shape:
        return c_strides(new)
    old = [(n, s) for n, s in zip(shape, strides, strict=True) if n != 1]
    found: list[int] = []
    i = j = 0
    while i < len(old):  # the shortest groups of axes, old and new, that hold as many elements
        start, first, have, want = i, j, old[i][0], 1
        i += 1
        while have != want:
            if want < have:
                want *= new[j]
                j += 1
            else:
                have *= old[i][0]
                i += 1
        if any(old[k][1] != old[k + 1][0] * old[k + 1][1] for k in range(start, i - 1)):
            return None
        step = old[i - 1][1]
        found += [step * c for c in c_strides(new[first:j])]
    return (*found, *[1] * (len(new) - j))


def first_read(x: Any) -> Reads:
    """Where the reads of an array will be kept."""
    if x.g is leaked:
        raise outlived()
    x.k = Reads(x.v)
    return x.k


def place(x: Any) -> tuple[Any, int, tuple[int, ...]]:
    """The root of an array node, and its position there."""
    k = x.k
    if k is None:
        k = first_read(x)
    if type(k) is View:
        if k.root.g is leaked:
            raise outlived()
        return k.root, k.offset, k.strides
    if x.g is leaked:
        raise outlived()
    return x, 0, c_strides(x.v.shape)


def locate(
    at: Any, offset: int, strides: tuple[int, ...], shape: tuple[int, ...]
) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    """The position and the shape of the part `at` of a part; `at` is basic and valid."""
    parts: tuple[Any, ...] = at if isinstance(at, tuple) else (at,)
    taken = sum(p is not None and p is not Ellipsis for p in parts)
    new_strides: list[int] = []
    new_shape: list[int] = []
    axis = 0
    listed: list[Any] = [*parts] if Ellipsis in parts else [*parts, Ellipsis]
    for p in listed:
        if p is None:
            new_shape.append(1)
            new_strides.append(0)
        elif p is Ellipsis:
            rest = len(shape) - taken
            new_shape += shape[axis : axis + rest]
            new_strides += strides[axis : axis + rest]
            axis += rest
        elif isinstance(p, slice):
            start, stop, step = p.indices(shape[axis])
            offset += start * strides[axis]
            new_shape.append(len(range(start, stop, step)))
            new_strides.append(step * strides[axis])
            axis += 1
        else:
            offset += (p if p >= 0 else p + shape[axis]) * strides[axis]
            axis += 1
    return int(offset), tuple(new_strides), tuple(new_shape)


# --- reading --------------------------------------------------------------------------------------


def read_array(level: Any, x: Array, at: Any) -> Any:
    """x[at] of the node x: an element, a view, or a gather."""
    if not is_basic(at):
        return gather(level, x, at)
    v = read(x.v, at)
    root, offset, strides = place(x)
    offset, strides, shape = locate(at, offset, strides, x.v.shape)
    if not shape and not _keeps_axes(at):
        return _element(level, root, offset, v)
    if not shape and is_fixed(x):
        return _element(level, root, offset, v if isinstance(v, Box) else v[()])
    if (
        not shape
    ):  # an array without axes, not a number: it sees what is written, and can be written
        level.begin(x)
        return x[at]
    return view(level, root, v, offset, strides, fixed=is_fixed(x))


def read_int(level: Any, x: Array, at: int) -> Any:
    """x[at] for one integer, of a node on the fast path: an element or a row."""
    v = x.v
    if type(v) is not np.ndarray or not -v.shape[0] <= at < v.shape[0]:
        return read_array(level, x, at)
    root, offset, strides = place(x)
    offset += (at if at >= 0 else at + v.shape[0]) * strides[0]
    if v.ndim == 1:
        if v.dtype != np.float64:
            return read_array(level, x, at)
        o = level.scalar(v.item(at))
        root.k.places.append(offset)
        root.k.nodes.append(o)
        return o
    o = level.array(v[at])
    o.k = View(root, offset, strides[1:], is_fixed(x))
    root.k.views.append(o)
    return o


def read_slice(level: Any, x: Array, at: slice) -> Any:
    """x[at] for one slice, of a node on the fast path."""
    v = x.v
    if type(v) is not np.ndarray:
        return read_array(level, x, at)
    root, offset, strides = place(x)
    start, _, step = at.indices(v.shape[0])
    o = level.array(v[at])
    o.k = View(root, offset + start * strides[0], (step * strides[0], *strides[1:]), is_fixed(x))
    root.k.views.append(o)
    return o


def whole_sum(level: Any, x: Array) -> Any:
    """The sum of all elements: its cotangent is one number for all of them."""
    k = x.k
    if k is None:
        k = first_read(x)
    elif (k.root if type(k) is View else x).g is leaked:
        raise outlived()
    v = x.v
    o = level.wrap(
        v.sum()
        if type(v) is np.ndarray
        else op("sum")(v, axis=tuple(range(v.ndim)), keepdims=False)
    )
    k.sums.append(o)
    return o


def snapshot(x: Any) -> Any:
    """The present content of an outer level's array, which its later writes do not change.

    Inner levels keep values as weights; the object itself would turn into what is written to it.
    """
    if not isinstance(x, Array):
        return x
    x = x.now()
    if not isinstance(x, Array) or is_fixed(x):
        return x
    root, offset, strides = place(x)
    if x is not root:
        return view(x.level, root, x.v, offset, strides, fixed=True)
    if x.k.still is None:
        x.k.still = view(x.level, x, x.v, 0, strides, fixed=True)
    return x.k.still


def is_fixed(x: Any) -> bool:
    """Whether x keeps its content when its root is written; then its parts do too."""
    return type(x.k) is View and x.k.fixed


def _keeps_axes(at: Any) -> bool:
    return at is Ellipsis or (isinstance(at, tuple) and Ellipsis in at)


def _element(level: Any, root: Array, at: int, v: Any) -> Any:
    o = level.wrap(v)
    root.k.places.append(at)
    root.k.nodes.append(o)
    return o


def read_flat(level: Any, x: Array, at: int) -> Any:
    """The element of the node x at a flat position."""
    index = tuple(int(i) for i in np.unravel_index(at, x.v.shape))
    root, offset, strides = place(x)
    return _element(
        level, root, offset + sum(i * s for i, s in zip(index, strides, strict=True)), x.v[index]
    )


def view(
    level: Any, root: Array, v: Any, offset: int, strides: tuple[int, ...], *, fixed: bool = False
) -> Any:
    """A node for a part of the root."""
    if not type_of(v).shape:
        return _element(level, root, offset, v if isinstance(v, Box) else v[()])
    o = level.wrap(v)
    o.k = View(root, offset, strides, fixed)
    root.k.views.append(o)
    return o


def reshape_view(level: Any, x: Array, shape: tuple[int, ...]) -> Any:
    """The node x under another shape, or None where NumPy copies."""
    root, offset, strides = place(x)
    if not shape or 0 in shape:
        return None
    if not memory_view(x.v, shape):
        return None
    found = reshaped_strides(tuple(x.v.shape), strides, shape)
    if found is not None:
        return view(level, root, op("reshape")(x.v, shape=shape), offset, found, fixed=is_fixed(x))
    if is_fixed(x):
        return None
    level.begin(x)
    return x.moved("reshape", {"shape": shape})


def memory_view(v: Any, shape: tuple[int, ...]) -> bool:
    """Whether NumPy's reshape of the array is a view."""
    v = plain(v)
    if not isinstance(v, np.ndarray) or v.flags.c_contiguous:
        return True
    return reshaped_strides(v.shape, tuple(s // v.itemsize for s in v.strides), shape) is not None


def permuted_view(level: Any, x: Array, axes: tuple[int, ...]) -> Any:
    """The node x with its axes in another order."""
    root, offset, strides = place(x)
    v = op("permute_dims")(x.v, axes=axes)
    return view(level, root, v, offset, tuple(strides[i] for i in axes), fixed=is_fixed(x))


def gather(level: Any, x: Array, at: Any) -> Any:
    """x[at] for index arrays and masks: its cotangent is a piece, summed when x' turn comes."""
    check_index(at, x)
    found = scalar_index(at)
    if found is not None:  # which NumPy copies
        part = read_array(level, x, found)
        return part.copy() if isinstance(part, Array) else part
    at = level.guard_deep(normal(at))
    v = op("index")(x.v, at=at)
    place(x)  # so that x has where to keep its pieces
    joint = Joint(
        lambda tangents: op("index")(tangents[0], at=at),
        lambda y_bar: [Piece(at, y_bar)],
    )
    return level.record(v, (x,), joint, "index", type_of(v).size)


class Gone:
    """The root of a view whose trace has ended."""

    g = leaked
    k = None


GONE = Gone()


def forget(n: Any) -> None:
    """Break the cycles of a node that no sweep will visit, so that its memory is free at once."""
    k = n.k
    if type(k) is not Reads:
        return
    for o in (n, *k.views):
        part = getattr(o, "w", None)
        if part is not None:
            part.forget()
    for o in k.views:
        o.k.root = GONE
    k.views = []
    k.still = None


# --- the reverse sweep ----------------------------------------------------------------------------


def settled(nodes: list[Any], places: list[int], size: int) -> tuple[np.ndarray, list[Any]]:
    """Where cotangents arrived, and they; a node that nothing reached is left out."""
    if any(n.g is zero for n in nodes):
        pairs = [(i, n.g) for i, n in zip(places, nodes, strict=True) if n.g is not zero]
        places, found = [i for i, _ in pairs], [g for _, g in pairs]
    else:
        found = [n.g for n in nodes]
    at = np.array(places, dtype=np.int64)
    at[at < 0] += size
    return at, found


def pull(x: Any) -> Any:
    """The cotangent of an array: its dense part and all that its reads collected, in one sum."""
    k = x.k
    if k is None or (type(k) is View and not k.pieces and not k.sums):
        return x.g
    if type(k) is Reads and k.vector and not k.views and not k.pieces and not k.sums:
        quick = _pull_few(x, k)
        if quick is not None:
            return quick
    if k.sums and x.g is None:
        quick = _pull_sums(x, k)
        if quick is not None:
            return quick
    shape = tuple(x.v.shape)
    terms = [*_pieces(k.pieces, shape), *_sums(x, shape)]
    if type(k) is Reads:
        terms = [*_reads(k, shape), *terms]
    if x.g is None and not terms:
        return None
    if any(isinstance(t, Box) for _, t in terms) or isinstance(x.g, Box):
        return _pull_boxes(x.g, terms, shape)
    return _pull_plain(x, terms, shape)


def _pull_sums(x: Array, k: Any) -> np.ndarray | None:
    """The cotangent of a plain array of which only sums were taken; None where it is not that."""
    if k.pieces or (type(k) is Reads and (k.nodes or k.views)) or type(x.v) is not np.ndarray:
        return None
    total: Any = zero
    for o in k.sums:
        if o.g is not zero:
            total = o.g if total is zero else total + o.g
    if type(total) is not float or total is zero:
        return None
    found = np.empty(x.v.shape, x.v.dtype)
    found.fill(total)
    return found


FEW = 32  # elements of an array for which Python adds faster than NumPy does


def _pull_few(x: Array, k: Reads) -> np.ndarray | None:
    """The sum for a short vector of which only elements were read; None where it is not that."""
    n = x.v.shape[0]
    g = x.g
    if n > FEW or not (g is None or type(g) is np.ndarray):
        return None
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


class Flat(NamedTuple):
    """Flat positions that a contribution goes to; a Piece may have them in place of an index."""

    at: np.ndarray


class _Strided(NamedTuple):
    """A strided part that a contribution goes to."""

    offset: int
    strides: tuple[int, ...]


def _reads(k: Reads, shape: tuple[int, ...]) -> Any:
    """(where, contribution) for the elements read, together, and for each view."""
    if k.nodes:
        yield from _elements(k, math.prod(shape))
    for o in k.views:
        g = pull(o)
        if g is not None:
            yield _Strided(o.k.offset, o.k.strides), g


def _elements(k: Reads, size: int) -> Any:
    """(where, contribution) for the elements read: plain numbers at once, others one by one."""
    if k.vector:
        try:
            values = np.fromiter([o.g for o in k.nodes], float, len(k.nodes))
        except (TypeError, ValueError):  # of an outer level, batched or masked
            pass
        else:
            if not values.any() and all([o.g is zero for o in k.nodes]):
                return  # nothing arrived: an array of zeros would enliven the lanes of a mask
            at = np.fromiter(k.places, np.int64, len(k.places))
            at[at < 0] += size
            yield Flat(at), values
            return
    at, found = settled(k.nodes, k.places, size)
    if found:
        boxed = any(isinstance(g, Box) for g in found)
        yield Flat(at), op("stack")(*found) if boxed else np.array(found)


def _sums(x: Array, shape: tuple[int, ...]) -> Any:
    """The contribution of all sums of the array: one number everywhere."""
    found = [o.g for o in x.k.sums if o.g is not zero]
    if found:
        total = found[0] if len(found) == 1 else sum(found[1:], found[0])
        boxed = isinstance(total, Box)
        yield None, op("broadcast_to")(total if boxed else np.array(total, x.dtype), shape=shape)


def _pieces(pieces: list[Any], shape: tuple[int, ...]) -> Any:
    outers = [p for p in pieces if type(p) is Outer]
    if outers:
        yield None, join_outer(outers)
    for p in pieces:
        if type(p) is Piece:
            yield p.at, p.x_bar


def join_outer(outers: list[Outer]) -> Any:
    """The sum of u v^T: one matrix product for all."""
    if len(outers) == 1:
        u, v = outers[0]
    else:
        u, v = (op("concat")(*(o[i] for o in outers), axis=1) for i in (0, 1))
    return op("matmul")(u, op("permute_dims")(v, axes=(1, 0)))


def _pull_plain(x: Array, terms: list[Any], shape: tuple[int, ...]) -> np.ndarray:
    dtype = np.result_type(*(t.dtype for _, t in terms), *(() if x.g is None else (x.g.dtype,)))
    total = blank(shape, dtype) if x.g is None else np.array(x.g, dtype, order="C")
    for where, t in terms:
        if where is None:
            total += t
        elif type(where) is Flat:
            np.add.at(total.reshape(-1), where.at, t)
        elif type(where) is _Strided:
            strided(total, where.offset, where.strides, t.shape)[...] += t
        else:
            np.add.at(total, where, t)
    return total


def strided(
    a: np.ndarray, offset: int, strides: tuple[int, ...], shape: tuple[int, ...]
) -> np.ndarray:
    """A strided part of a C-contiguous array, as a view."""
    size = a.itemsize
    if 0 in shape:
        return np.empty(shape, a.dtype)
    return np.ndarray(
        shape, a.dtype, a.data.cast("B"), offset * size, tuple(s * size for s in strides)
    )


def _pull_boxes(g: Any, terms: list[Any], shape: tuple[int, ...]) -> Any:
    """The same sum, written with primitives: for cotangents of outer levels, batched or masked."""
    size = math.prod(shape)
    total = g
    for where, t in terms:
        if where is None:
            part = t
        elif type(where) in (Flat, _Strided):
            inner = type_of(t).shape
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
    for o in k.sums:
        o.g = op("sum")(t, axis=tuple(range(len(x.v.shape))), keepdims=False)
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
        o.g = op("index")(flat, at=(grid(o.k.offset, o.k.strides, tuple(o.v.shape)),))
        if o.k.sums:
            distribute(o, o.g)
