"""Reads of an array: registered with it, distributed forward, pulled back in one step.

A read of one element and a basic part (slice, transpose, reshape) have no tape entry of their own.
A part is a *view*: it knows its root and its position there, (offset, strides) counted in elements
of the root in C order, so that parts of parts cost no more than parts.
"""

from typing import Any

import numpy as np

from lineara.facts.hints import Index, Shaped, Value
from lineara.facts.primitive import Box, Joint, Piece, innermost, op
from lineara.facts.types import type_of
from lineara.ops.index import check_index, is_basic, normal, read, scalar_index
from lineara.tape.node import Array, leaked, outlived
from lineara.tape.strides import c_strides, locate, reshaped_strides, strides_of


class Reads:
    """What was read of a root array, and the builder contributions to its cotangent."""

    __slots__ = ("memory", "nodes", "pieces", "places", "still", "sums", "views")

    def __init__(self) -> None:
        self.memory: Any = None  # of a vector of which something was read, until the trace ends
        self.places: list[int] = []
        self.nodes: list[Any] = []
        self.views: list[Any] = []
        self.still: Any = None  # the snapshot of the whole, made once
        self.pieces: list[Any] = []
        self.sums: list[Any] = []  # scalars that are the sum of all elements

    def remember(self, v: Any) -> None:
        """Let elements of a vector be read by way of its memory."""
        self.memory = memoryview(v)


class View:
    """The position of a view in its root, and the contributions to the view's own cotangent.

    A `fixed` view keeps its content when the root is written; any other shows what was written.
    """

    __slots__ = ("fixed", "offset", "pieces", "root", "strides", "sums")

    def __init__(
        self, root: Array | None, offset: int, strides: tuple[int, ...], fixed: bool
    ) -> None:
        self.root: Any = root
        self.offset: int = offset
        self.strides: tuple[int, ...] = strides
        self.fixed: bool = fixed
        self.pieces: list[Any] = []
        self.sums: list[Any] = []


def first_read(x: Array) -> Reads:
    """Where the reads of an array will be kept."""
    if x.g is leaked:
        raise outlived()
    x.k = k = Reads()
    v = x.v
    if type(v) is np.ndarray and v.ndim == 1 and v.dtype == np.float64:
        k.remember(v)
    return k


def place(x: Array) -> tuple[Any, int, tuple[int, ...]]:
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


# --- reading --------------------------------------------------------------------------------------


def read_array(level: Any, x: Array, at: Index) -> Any:
    """x[at] of the node x: an element, a view, or a gather."""
    if type(at) is tuple and type(x.v) is np.ndarray and x.v.dtype == np.float64:
        element = _read_ints(level, x, at)
        if element is not None:
            return element
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


def _read_ints(level: Any, x: Array, at: tuple[Any, ...]) -> Any:
    """The element of a plain float64 array at as many integers as it has axes; else None."""
    v = x.v
    if len(at) != v.ndim or not at:
        return None
    root, offset, strides = place(x)
    for i, n, s in zip(at, v.shape, strides, strict=True):
        if type(i) is not int or not -n <= i < n:
            return None
        offset += (i if i >= 0 else i + n) * s
    o = level.scalar(v.item(at), level.N)
    root.k.places.append(offset)
    root.k.nodes.append(o)
    return o


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
        if root is x:
            x.k.remember(v)
        o = level.scalar(v.item(at), level.N)
        root.k.places.append(offset)
        root.k.nodes.append(o)
        return o
    o = type(x)()  # of the same kind: complex arrays have methods of their own
    o.v = v = v[at]
    o.s = v.shape
    o.a = o.b = o.g = None
    o.k = View(root, offset, strides[1:], x is not root and x.k.fixed)
    root.k.views.append(o)
    return o


def read_slice(level: Any, x: Array, at: slice) -> Any:
    """x[at] for one slice, of a node on the fast path."""
    v = x.v
    if type(v) is not np.ndarray:
        return read_array(level, x, at)
    root, offset, strides = place(x)
    start, _, step = at.indices(v.shape[0])
    o = type(x)()  # of the same kind: complex arrays have methods of their own
    o.v = v = v[at]
    o.s = v.shape
    o.a = o.b = o.g = None
    along = strides[0]
    strides = (step * along, *strides[1:])
    o.k = View(root, offset + start * along, strides, x is not root and x.k.fixed)
    root.k.views.append(o)
    return o


def turned(level: Any, x: Array) -> Any:
    """x.T of a node on the fast path."""
    v = x.v
    if type(v) is not np.ndarray or not level.open or len(v.shape) < 2:
        return x.transpose()
    root, offset, strides = place(x)
    o = level.X()
    o.v = v = v.T
    o.s = v.shape
    o.a = o.b = o.g = None
    o.k = View(root, offset, strides[::-1], x is not root and x.k.fixed)
    root.k.views.append(o)
    return o


def reshaped(level: Any, x: Array, shape: tuple[Any, ...]) -> Any:
    """x.reshape(shape) of a node on the fast path, whose elements lie in C order; else None."""
    v = x.v
    if type(v) is not np.ndarray or not level.open or not v.flags.c_contiguous or not v.size:
        return None
    try:
        v = v.reshape(*shape)
    except (TypeError, ValueError):
        return None  # the general way raises the error
    root, offset, strides = place(x)
    moved = reshaped_strides(x.s, strides, v.shape)
    if moved is None or not v.shape:
        return None
    o = level.X()
    o.v = v
    o.s = v.shape
    o.a = o.b = o.g = None
    o.k = View(root, offset, moved, x is not root and x.k.fixed)
    root.k.views.append(o)
    return o


FEW = 8  # elements; fewer are added faster by Python, and NumPy adds them in the same order


def whole_sum(level: Any, x: Array) -> Any:
    """The sum of all elements: its cotangent is one number for all of them."""
    k = x.k
    if (k.root if type(k) is View else x).g is leaked:
        raise outlived()
    if k is None:
        x.k = k = Reads()  # most arrays that are summed are read no further
    v = x.v
    if type(v) is not np.ndarray:
        o = level.wrap(op("sum")(v, axis=tuple(range(v.ndim)), keepdims=False))
    elif v.size < FEW and v.ndim == 1 and v.dtype == np.float64:
        total = 0.0
        for c in v.tolist():
            total += c
        if total - total != 0.0:  # not finite: NumPy may warn
            total = float(np.add.reduce(v))
        o = level.scalar(total, level.N)
    else:
        total = np.add.reduce(v, axis=None)
        whole = type(total) is np.float64
        o = level.scalar(float(total), level.N) if whole else level.wrap(total)
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


def is_fixed(x: Array) -> bool:
    """Whether x keeps its content when its root is written; then its parts do too."""
    return type(x.k) is View and x.k.fixed


def _keeps_axes(at: Index) -> bool:
    return at is Ellipsis or (isinstance(at, tuple) and Ellipsis in at)


def _element(level: Any, root: Array, at: int, v: Value) -> Any:
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
    level: Any,
    root: Array,
    v: Shaped,
    offset: int,
    strides: tuple[int, ...],
    *,
    fixed: bool = False,
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
    new_strides = reshaped_strides(tuple(x.v.shape), strides, shape)
    if new_strides is not None:
        return view(
            level, root, op("reshape")(x.v, shape=shape), offset, new_strides, fixed=is_fixed(x)
        )
    if is_fixed(x):
        return None
    level.begin(x)
    return x.moved("reshape", {"shape": shape})


def memory_view(v: Shaped, shape: tuple[int, ...]) -> bool:
    """Whether NumPy's reshape of the array is a view."""
    if isinstance(v, np.ndarray) and v.flags.c_contiguous:
        return True
    return reshaped_strides(tuple(v.shape), strides_of(v), shape) is not None


def permuted_view(level: Any, x: Array, axes: tuple[int, ...]) -> Any:
    """The node x with its axes in another order."""
    root, offset, strides = place(x)
    v = op("permute_dims")(x.v, axes=axes)
    return view(level, root, v, offset, tuple(strides[i] for i in axes), fixed=is_fixed(x))


def gather(level: Any, x: Array, at: Index) -> Any:
    """x[at] for index arrays and masks: its cotangent is a piece, summed when x' turn comes."""
    check_index(at, x)
    box = innermost(_parts(at))
    if box is not None and box.depth > level.depth:  # positions that a trace inside does not know
        return box.interpret(op("index"), (x,), {"at": at})
    if box is not None:  # of a trace around
        made = _gathered(level, x, at)
        numbers = not any([getattr(p, "shape", ()) for p in _parts(at)])
        return level.derived(made, x) if numbers and made.shape else made  # NumPy gives a view
    scalar_at = scalar_index(at)
    if scalar_at is not None:  # NumPy copies here
        part = read_array(level, x, scalar_at)
        return part.copy() if isinstance(part, Array) else part
    return _gathered(level, x, at)


def _parts(at: Index) -> tuple[Any, ...]:
    return at if isinstance(at, tuple) else (at,)


def _gathered(level: Any, x: Array, at: Index) -> Any:
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


def forget(n: Array) -> None:
    """Break the cycles of a node that no sweep will visit, so that its memory is freed at once."""
    k = n.k
    if type(k) is not Reads:
        return
    written = n.level.XW
    for o in k.views:
        o.k.root = GONE
        if type(o) is written:
            o.w.forget()
    if type(n) is written:
        n.w.forget()
    k.views = []
    k.still = None
