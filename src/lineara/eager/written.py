"""Arrays that are written: reads see the last write, n reads and n writes cost O(n).

A buffer holds the present values and, for each element, where its derivative comes from: element
`pos` of the node `sources[src]`, of the base (src 0), or nothing (src -1, a constant).  Views share
these arrays, so a write through an alias is seen by all.  A use of the whole gathers once a version.
"""

import math
from typing import Any

import numpy as np

from lineara.eager.node import Array, Scalar, Traced
from lineara.eager.reads import (
    View,
    c_strides,
    grid,
    locate,
    place,
    read_flat,
    strided,
    view,
)
from lineara.errors import LeakedVariableError, ShapeError
from lineara.ops.index import check_index, is_basic, read, show_index
from lineara.ops.shape import as_array
from lineara.primitive import Box, Joint, innermost, op
from lineara.types import type_of

BASE, CONSTANT = 0, -1


class Buffer:
    """The storage that a written array and its views share."""

    __slots__ = ("base", "level", "pos", "sources", "src", "val", "version")

    def __init__(self, level: Any, content: Any) -> None:
        traced = isinstance(content, Traced) and content.level is level
        self.level = level
        self.base = content if traced else None
        self.val = None if traced else content  # None: as the base
        self.src: Any = None
        self.pos: Any = None
        self.sources: list[Any] = [None]
        self.version = 0

    def materialise(self) -> None:
        """Give the buffer values and sources of its own."""
        if self.val is None:
            v = self.base.v
            self.val = v.copy() if isinstance(v, Box) else np.array(v, order="C")
        if self.src is None:
            self.src = np.zeros(self.val.shape, np.int32)
            self.pos = np.zeros(self.val.shape, np.int64)

    def rebase(self, node: Any) -> None:
        """From now on every element comes from the same place of `node`."""
        self.base = node
        if self.src is not None:
            self.src.fill(BASE)
        self.sources = [None]


class Part:
    """A written array's region of its buffer: the whole, or a view."""

    __slots__ = ("_arrays", "buffer", "cache", "made", "offset", "shape", "strides")

    def __init__(self, buffer: Buffer, arrays: Any, offset: int, strides: Any, shape: Any) -> None:
        self.buffer = buffer
        self._arrays = arrays  # (val, src, pos); None for the whole, which looks them up
        self.offset = offset
        self.strides = strides
        self.shape = shape
        self.cache: tuple[int, Any] = (-1, None)
        self.made: Any = None

    @classmethod
    def whole(cls, buffer: Buffer) -> "Part":
        """The region that is all of the buffer."""
        shape = tuple((buffer.base.v if buffer.val is None else buffer.val).shape)
        return cls(buffer, None, 0, c_strides(shape), shape)

    @property
    def arrays(self) -> tuple[Any, np.ndarray, np.ndarray]:
        """Values, sources and positions of the region."""
        if self._arrays is not None:
            return self._arrays
        b = self.buffer
        b.materialise()
        return b.val, b.src, b.pos

    def sub(self, at: Any) -> "Part":
        """The region of a basic index."""
        val, src, pos = self.arrays
        offset, strides, shape = locate(at, self.offset, self.strides, self.shape)
        return Part(self.buffer, (read(val, at), src[at], pos[at]), offset, strides, shape)

    def strided(self, offset: int, strides: tuple[int, ...], shape: tuple[int, ...]) -> "Part":
        """The region at a position of the whole buffer."""
        val, src, pos = Part.whole(self.buffer).arrays
        if isinstance(val, Written):
            inner = val.level.XW()
            inner.v = inner.a = inner.b = inner.g = inner.k = None
            inner.w = val.w.strided(offset, strides, shape)
            part = inner
        else:
            part = strided(val, offset, strides, shape)
        regions = (strided(src, offset, strides, shape), strided(pos, offset, strides, shape))
        return Part(self.buffer, (part, *regions), offset, strides, shape)

    # --- reading ----------------------------------------------------------------------------

    def element(self, at: Any) -> Any:
        """One element: the scalar last written there, an element of a source, or a constant."""
        b = self.buffer
        if b.src is None and b.base is None:
            return read(b.val, at)
        val, src, pos = self.arrays
        found = int(read(src, at))
        if found == CONSTANT or (found == BASE and b.base is None):
            return val[at]
        if found == BASE:
            return read_flat(b.level, b.base, locate(at, self.offset, self.strides, self.shape)[0])
        source = b.sources[found]
        return source if isinstance(source, Scalar) else read_flat(b.level, source, int(pos[at]))

    def now(self) -> Any:
        """A node (or a plain array) with the present content, made once a version."""
        version, node = self.cache
        if version != self.buffer.version:
            node = self._gather()
            self.cache = (self.buffer.version, node)
        return node

    def _gather(self) -> Any:
        b = self.buffer
        if b.src is None:
            return b.base if b.base is not None else _copy(b.val)
        val, src, pos = self.arrays
        single = _single(src)
        if single == CONSTANT or (single == BASE and b.base is None):
            return _copy(val)
        whole = self._arrays is None
        if single == BASE and whole:
            return b.base
        if single is not None and single > 0:
            node = b.sources[single]
            same = isinstance(node, Array) and tuple(node.v.shape) == self.shape
            if same and (pos.reshape(-1) == np.arange(pos.size)).all():
                return node
        node = assemble(b.level, _copy(val), self._origins(src, pos))
        if whole:
            b.rebase(node)
        return node

    def _origins(self, src: np.ndarray, pos: np.ndarray) -> list[tuple[Any, np.ndarray, np.ndarray]]:
        """(node, places here, places there) for every source that the region has."""
        b = self.buffer
        flat = src.reshape(-1)
        order = np.argsort(flat, kind="stable")
        kinds, starts = np.unique(flat[order], return_index=True)
        found = []
        for kind, here in zip(kinds.tolist(), np.split(order, starts[1:]), strict=True):
            if kind > 0:
                found.append((b.sources[kind], here, pos.reshape(-1)[here]))
            elif kind == BASE and b.base is not None:
                found.append((b.base, here, grid(self.offset, self.strides, self.shape).reshape(-1)[here]))
        return found

    # --- writing ----------------------------------------------------------------------------

    def write(self, at: Any, value: Any) -> None:
        """The region `at` gets the value."""
        b = self.buffer
        b.version += 1
        value = value.now() if isinstance(value, Traced) else value
        if not (isinstance(value, Traced) and value.level is b.level):
            return self._write_constant(at, value)
        val, src, pos = self.arrays
        _store(val, at, value.v, self.shape)
        b.sources.append(value)
        src[at] = len(b.sources) - 1
        pos[at] = 0 if isinstance(value, Scalar) else np.arange(value.size).reshape(value.shape)
        return None

    def _write_constant(self, at: Any, value: Any) -> None:
        b = self.buffer
        if b.src is None and b.base is None:
            _store(b.val if self._arrays is None else self._arrays[0], at, value, self.shape)
            return
        val, src, _ = self.arrays
        _store(val, at, value, self.shape)
        src[at] = CONSTANT


def _copy(val: Any) -> Any:
    return val.now() if isinstance(val, Traced) else val.copy()


def _store(val: Any, at: Any, value: Any, shape: tuple[int, ...]) -> None:
    try:
        val[at] = value
    except (ValueError, IndexError) as e:
        raise ShapeError(
            f"write: {type_of(value)} does not fit at [{show_index(at)}] of an array of shape {shape}: {e}"
        ) from None


def _single(src: np.ndarray) -> int | None:
    """The one source of a region, or None."""
    if not src.size:
        return CONSTANT
    first = src[(0,) * src.ndim]
    return int(first) if (src == first).all() else None


def assemble(level: Any, v: Any, origins: list[tuple[Any, np.ndarray, np.ndarray]]) -> Any:
    """A node of value v whose elements come from other nodes: (node, places here, places there)."""
    shape = tuple(v.shape)
    size = math.prod(shape)

    def forward(tangents: Any) -> Any:
        total = None
        for (_, here, there), t in zip(origins, tangents, strict=True):
            if t is None:
                continue
            inner = type_of(t).shape
            if inner:
                t = op("index")(op("reshape")(t, shape=(math.prod(inner),)), at=(there,))
            else:
                t = op("broadcast_to")(t, shape=here.shape)
            part = op("scatter")(t, at=(here,), shape=(size,))
            total = part if total is None else total + part
        return None if total is None else op("reshape")(total, shape=shape)

    def back(y_bar: Any) -> list[Any]:
        flat = op("reshape")(y_bar, shape=(size,))
        if singles is not None and not isinstance(flat, Box):
            return flat[singles].tolist()
        found = []
        for node, here, there in origins:
            part = op("index")(flat, at=(here,))
            if isinstance(node, Scalar):
                found.append(op("sum")(part, axis=(0,), keepdims=False))
                continue
            inner = tuple(node.v.shape)
            part = op("scatter")(part, at=(there,), shape=(math.prod(inner),))
            found.append(op("reshape")(part, shape=inner))
        return found

    scalars = all(isinstance(node, Scalar) and here.size == 1 for node, here, _ in origins)
    singles = np.array([here[0] for _, here, _ in origins], dtype=np.int64) if scalars else None
    return level.record(v, [node for node, _, _ in origins], Joint(forward, back), "assemble", size)


class Written(Array):
    """The class that an array turns into when it is written; `w` is its region of a buffer."""

    __slots__ = ()

    @staticmethod
    def begin(level: Any, x: Array) -> None:
        """Turn x into a written array, and with it its root and all views of the root."""
        if isinstance(x, Written):
            return
        if type(x.k) is View:
            return Written.begin(level, x.k.root)
        root, _, strides = place(x)
        views = list(root.k.views)
        whole = Part.whole(Buffer(level, view(level, x, x.v, 0, strides)))  # version 0, as a node
        x.w = whole
        x.__class__ = level.XW
        for o in views:
            o.w = whole.strided(o.k.offset, o.k.strides, tuple(o.v.shape))
            o.__class__ = level.XW
        return None

    def now(self) -> Any:
        """The node (or plain array) for the present content."""
        return self.w.now()

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes."""
        return self.w.shape

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the values."""
        b = self.w.buffer
        return np.dtype((b.base.v if b.val is None else b.val).dtype)

    def __getitem__(self, at: Any) -> Any:
        if not is_basic(at):
            check_index(at, self)
            return op("index")(self.now(), at=at)
        part = self.w
        if _is_element(at, len(part.shape)):
            return part.element(at)
        o = self.level.XW()
        o.v = o.a = o.b = o.g = o.k = None
        o.w = part.sub(at)
        o.w.made = (self, at)
        return o

    def __setitem__(self, at: Any, value: Any) -> None:
        if isinstance(value, Written) and value.w.made is not None and value.w.made[0] is self:
            same = value.w.made[1]
            if same is at or (is_basic(at) and is_basic(same) and same == at):
                return  # x[at] += v has already written through the view
        if isinstance(value, list | tuple):
            value = as_array(value)
        if not is_basic(at):
            check_index(at, self)
        box = innermost((value,))
        if box is not None and box.depth > self.depth:
            raise LeakedVariableError(
                "a value of an inner differentiation was written into an array that lives outside it; "
                "make the array inside the inner function, or return the value"
            )
        self.w.write(at, value)

    def assign_all(self, value: Any) -> Any:
        """Every element gets a value: an in-place operation."""
        node = value.now() if isinstance(value, Traced) else value
        b, whole = self.w.buffer, self.w._arrays is None
        if tuple(np.shape(node) if not isinstance(node, Box) else node.shape) != self.w.shape:
            raise ShapeError(
                f"in-place operation: {type_of(node)} does not fit into {type_of(self)}; "
                "broadcasting cannot make the target larger"
            )
        same_dtype = type_of(node).dtype == self.dtype
        if whole and b.src is None and same_dtype and isinstance(node, Traced) and node.level is b.level:
            b.base, b.val = node, None
            b.version += 1
        else:
            self.w.write(Ellipsis, node)
        return self

    def strided_reshape(self, shape: tuple[int, ...]) -> Any:
        """A view of this array under another shape, or None where that needs a copy."""
        part = self.w
        if part.strides != c_strides(part.shape) or 0 in shape:
            return None
        o = self.level.XW()
        o.v = o.a = o.b = o.g = o.k = None
        o.w = part.strided(part.offset, c_strides(shape), shape)
        return o


def _is_element(at: Any, ndim: int) -> bool:
    if isinstance(at, tuple):
        return len(at) == ndim and all(isinstance(p, int | np.integer) for p in at)
    return ndim == 1 and isinstance(at, int | np.integer)
