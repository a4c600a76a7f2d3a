"""Arrays that are written: reads see the last write, n reads and n writes cost O(n).

A buffer holds the present values and, for each element, where its derivative comes from: element
`pos` of the node `sources[src]`, or nothing (a constant).  Views share these arrays, so a write
through an alias is seen by all.  A use of the whole gathers once a version.

A buffer lies in memory as NumPy would lay it out, so that a reshape is a view exactly where NumPy's
is one.
"""

import sys
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lineara.containers.points import operated
from lineara.errors import (
    BoundsError,
    LeakedVariableError,
    MutationError,
    ShapeError,
    TypeMismatchError,
)
from lineara.facts.hints import DType, Index, Shaped, Value
from lineara.facts.primitive import innermost, op
from lineara.facts.types import ArrayType, type_of
from lineara.ops.index import check_index, is_basic, read, scalar_index, show_index
from lineara.ops.shape import as_array, told
from lineara.tape.class_questions import asks_as_index, asks_who_multiplies, in_object
from lineara.tape.mixed_sources import CONSTANT, assemble, mixed, region
from lineara.tape.node import Array, Scalar, Traced, has_priority, laid, leaked, staged
from lineara.tape.numpy_errors import refuse_shuffled
from lineara.tape.reads import View, is_fixed, place, read_flat, view
from lineara.tape.strides import (
    c_strides,
    copied,
    in_c_order,
    locate,
    narrow,
    outer_first,
    overlap,
    reshaped_strides,
    strided,
    strides_of,
)

new = object.__new__
NEVER: tuple[int, Any] = (-1, None)  # the version of a content that was not asked for
MANY_PARENTS = 8  # more sources than that are folded into one when a part is gathered


class Buffer:
    """The storage that a written array and its views share.

    While `src` is None the whole is `sources[0]`, or a constant where there are no sources.
    """

    __slots__ = (
        "dtype",
        "ended",
        "given",
        "level",
        "pos",
        "shape",
        "shared",
        "sources",
        "src",
        "val",
        "version",
    )
    shape: tuple[int, ...]
    dtype: np.dtype

    def __init__(self, level: Any, content: Any) -> None:
        traced = isinstance(content, Traced) and content.level is level
        self.level: Any = level
        self.sources: list[Any] = [content] if traced else []
        self.val: Any = None if traced else content
        t = type_of(content.v if traced else content)
        self.shape, self.dtype = tuple(t.shape), getattr(content, "dtype", t.dtype)
        self.src: Any = None
        self.pos: Any = None
        self.shared: bool = False  # whether views hold parts of `val`
        self.given: list[Any] = []  # (plain array that NumPy takes for a view, its part of `val`)
        self.version: int = 0
        self.ended: bool = False

    @classmethod
    def plain(cls, level: Any, content: np.ndarray) -> "Buffer":
        """The storage of a plain array that nobody else holds."""
        buffer = new(cls)
        buffer.level, buffer.sources, buffer.val = level, [], content
        buffer.shape, buffer.dtype = content.shape, content.dtype
        buffer.src, buffer.pos = None, None
        buffer.shared, buffer.given, buffer.version, buffer.ended = False, [], 0, False
        return buffer

    def values(self) -> Any:
        """Values of the buffer's own: plain, or a written array of the level below."""
        v = self.sources[0].v if self.val is None else self.val
        if isinstance(v, Traced):
            mine = self.val is not None and isinstance(v, Written)
            self.val = v if mine else v.level.buffer(v.now(), c_strides(self.shape))
        elif self.val is None:  # the written value may be traced by outer levels
            made, outer = np.array(v, order="C"), self.level.outer
            self.val = made if outer is None else outer.own(made)
        return self.val

    def origins(self) -> tuple[np.ndarray, np.ndarray]:
        """`src` and `pos` of every element."""
        if self.src is None:
            self.src = np.full(self.shape, 0 if self.sources else CONSTANT, np.int32)
            self.pos = np.zeros(self.shape, np.int64)
            if self.sources:
                self.pos.reshape(-1)[:] = np.arange(self.pos.size)
        return self.src, self.pos

    def forget(self) -> None:
        """Drop the nodes of a trace that has ended; the array is refused from now on."""
        if self.sources and not self.ended:
            self.ended = True
            ended = self.level.array(self.sources[0].v if self.val is None else self.val)
            ended.g = leaked
            self.sources = [ended] * len(self.sources)

    def rebase(self, node: Array) -> None:
        """From now on every element comes from the same place of `node`."""
        if self.src is not None:
            self.src.fill(0)
            self.pos.reshape(-1)[:] = np.arange(self.pos.size)
        self.sources = [node]


def written_outside() -> LeakedVariableError:
    """The error for a value that would leave its differentiation through an array."""
    return LeakedVariableError(
        "a value of an inner differentiation was written into an array that lives outside "
        "it, as copies of outer values do; make the array inside the inner function with "
        "np.zeros, or return the value"
    )


class WrittenView:
    """What a written array shows of a storage, its buffer: the whole, or a part.

    `offset` and `strides` count elements of the storage.
    """

    __slots__ = ("buffer", "cache", "made", "offset", "quick", "shape", "source", "strides")
    strides: tuple[Any, ...]
    shape: tuple[Any, ...]
    offset: int

    def __init__(self, buffer: Any, offset: int, strides: Any, shape: Any) -> None:
        self.buffer: Any = buffer
        self.offset, self.strides, self.shape = offset, tuple(strides), tuple(shape)
        self.cache: tuple[int, Any] = NEVER  # a version, and the content as it was then
        self.quick: Any = None  # memory of values, sources and positions, of a plain vector
        self.made: Any = None  # (array, index) that it was read from
        self.source: Any = None  # (array, version): what NumPy would see through this one

    def refuse_stale(self) -> None:
        """Refuse to read a view that does not follow its source, which was written since."""
        if self.source is not None and version_of(self.source[0]) != self.source[1]:
            raise MutationError(
                "an array was written after a view of it was taken that does not follow (as .real, "
                ".imag, broadcast_to, diagonal and einsum give); take the view again, or a copy "
                "before the write"
            )

    def refuse_write(self, value: Shaped) -> None:
        """Refuse a write through a view that does not follow, or of complex into real numbers."""
        dtype = self.buffer.dtype
        complex_ = dtype.kind in "fiu" and type_of(value).dtype.kind == "c"
        numpys = getattr(value, "weak", type(value) is complex) is False
        if complex_ and numpys and isinstance(value, Traced):
            np.zeros((0,), complex).astype(float)  # NumPy warns, and takes the real part
        elif complex_ and not numpys:
            raise TypeMismatchError(
                f"write: a complex value does not fit into an array of {dtype}; "
                "take its real part, or make the array complex"
            )
        if self.source is not None:
            raise MutationError(
                "this array is a view of another one that Lineara cannot write through (as .real, "
                ".imag, broadcast_to, diagonal and einsum give); write to that one, or to a copy"
            )

    def store(self, values: Any, at: Any, value: Shaped) -> None:
        """Write into the values, as NumPy does."""
        try:
            values[at] = value
        except (ValueError, IndexError) as e:
            raise self.misfit(value, at, self.shape, e) from None

    @staticmethod
    def misfit(
        value: Shaped, at: object, shape: tuple[int, ...], why: Exception
    ) -> ShapeError | BoundsError:
        """The error for a value that cannot be written at an index of an array of a shape."""
        said = f"write: {type_of(value)} does not fit at [{show_index(at)}] of an array of shape "
        return BoundsError.beside(why, f"{said}{shape}: {why}")


class Part(WrittenView):
    """A region of a buffer of a level.

    `_val` are its values, None for the whole, and `direct` the same where they are a plain array.
    A view of plain values is made by NumPy, and located when that is asked for: `within` is the
    part and the index that it was taken with.  `gaps` are the strides of NumPy's array, where that
    has gaps in memory, which a buffer has not.
    """

    __slots__ = ("_marks", "_val", "direct", "gaps", "within")
    strides: tuple[int, ...]
    offset: int

    def __init__(
        self, buffer: Buffer, val: Shaped | None, offset: int, strides: object, shape: Any
    ) -> None:
        WrittenView.__init__(self, buffer, offset, strides, shape)
        self._val = val
        self.direct: np.ndarray | None = None
        self._marks: Any = None
        self.gaps: tuple[int, ...] | None = None

    @classmethod
    def plain(
        cls,
        buffer: Buffer,
        val: np.ndarray | None,
        direct: np.ndarray,
        within: "tuple[Part, Index] | None",
    ) -> "Part":
        """A region of plain values, which NumPy has laid out as the buffer is laid out."""
        part = new(cls)
        part.buffer, part.shape = buffer, direct.shape
        part.cache, part.quick, part.made, part.source = NEVER, None, None, None
        part._val, part.direct, part.within = val, direct, within
        part._marks, part.gaps = None, None
        return part

    def __getattr__(self, name: str) -> Any:
        """Where a region of plain values lies, when that is asked for."""
        if name not in ("offset", "strides"):
            raise AttributeError(name)
        if self.within is None:
            self.offset, self.strides = 0, c_strides(self.shape)
        else:
            part, at = self.within
            self.offset, self.strides, _ = locate(at, part.offset, part.strides, part.shape)
        return self.offset if name == "offset" else self.strides

    @classmethod
    def whole(cls, buffer: Buffer) -> "Part":
        """The region that is all of the buffer."""
        return cls(buffer, None, 0, c_strides(buffer.shape), buffer.shape)

    @classmethod
    def of(cls, level: Any, content: Shaped, lay: tuple[int, ...] | None = None) -> "Part":
        """A new buffer with the content, which lies in memory as it did, or with other strides."""
        if lay is None and type(content) is np.ndarray and content.flags.c_contiguous:
            return cls.plain(Buffer.plain(level, content), None, content, None)
        shape = tuple(type_of(content).shape)
        kept = lay is None
        lay = strides_of(content) if lay is None else lay
        if in_c_order(shape, lay):
            return cls.whole(Buffer(level, content))
        axes = outer_first(lay)
        turned = op("permute_dims")(content, axes=axes)
        if isinstance(turned, np.ndarray) and not turned.flags.c_contiguous:
            turned = turned.copy()
        part = cls.whole(Buffer(level, turned))
        part = part.permuted(tuple(int(i) for i in np.argsort(axes)))
        if narrow(shape, lay) != narrow(shape, part.strides):
            part.gaps = lay
        if kept and isinstance(content, Traced):
            part.cache = (0, content)
        return part

    # --- views -----------------------------------------------------------------------------------

    @property
    def values(self) -> Any:
        """The present values of the region."""
        return self.buffer.values() if self._val is None else self._val

    def marks(self) -> tuple[np.ndarray, np.ndarray]:
        """Sources and positions of the region."""
        if self._marks is None:
            src, pos = self.buffer.origins()
            if self._val is not None:
                where = (self.offset, self.strides, self.shape)
                src, pos = strided(src, *where), strided(pos, *where)
            self._marks = src, pos
            val: Any = self.values
            if type(val) is np.ndarray and val.dtype == np.float64 and val.ndim == 1:
                of: list[Any] = [val, src, pos]
                self.quick: Any = tuple(map(memoryview, of))
        return self._marks

    @property
    def lay(self) -> tuple[int, ...]:
        """The strides of NumPy's array."""
        return self.strides if self.gaps is None else self.gaps

    def _part(
        self, val: Shaped, offset: int, strides: Sequence[int], shape: Sequence[int]
    ) -> "Part":
        self.buffer.shared = True
        part = Part(self.buffer, val, offset, strides, shape)
        part.source = self.source
        return part

    def sub(self, at: Index) -> "Part":
        """The region of a basic index."""
        val = read(self.values, at)
        if not isinstance(val, np.ndarray | Array):  # NumPy gives a number
            val = self.values[(*at, Ellipsis) if isinstance(at, tuple) else (at, Ellipsis)]
        part = self._part(val, *locate(at, self.offset, self.strides, self.shape))
        if self.gaps is not None:
            part.gaps = locate(at, 0, self.gaps, self.shape)[1]
        return part

    def permuted(self, axes: tuple[int, ...]) -> "Part":
        """The axes in another order."""
        order = [tuple(of[i] for i in axes) for of in (self.strides, self.shape)]
        part = self._part(op("permute_dims")(self.values, axes=axes), self.offset, *order)
        if self.gaps is not None:
            part.gaps = tuple([self.gaps[i] for i in axes])
        return part

    def reshaped(self, shape: tuple[int, ...]) -> "Part | None":
        """The elements under another shape, or None where NumPy copies."""
        strides = reshaped_strides(self.shape, self.strides, shape)
        gaps = self.gaps and reshaped_strides(self.shape, self.gaps, shape)
        if strides is None or (self.gaps and gaps is None):
            return None
        part = self._part(op("reshape")(self.values, shape=shape), self.offset, strides, shape)
        part.gaps = gaps
        return part

    def strided(
        self, offset: int, strides: tuple[int, ...], shape: tuple[int, ...], lay: tuple[int, ...]
    ) -> "Part":
        """The region at a position of the whole buffer, of an array that NumPy lays out so."""
        val = self.buffer.values()
        if isinstance(val, Written):
            val = val.level.handle(val.w.strided(offset, strides, shape, lay))
        else:
            val = strided(val, offset, strides, shape)
        part = self._part(val, offset, strides, shape)
        if narrow(shape, lay) != narrow(shape, strides):
            part.gaps = lay
        return part

    # --- reading ---------------------------------------------------------------------------------

    def element(self, at: Any) -> Any:
        """One element: the scalar last written there, an element of a source, or a constant."""
        b = self.buffer
        self.refuse_stale()
        if b.src is None:
            if not b.sources:
                return read(self.values, at)
            read(self.values, at)
            flat, _, _ = locate(at, self.offset, self.strides, self.shape)
            source = b.sources[0]
            return source if isinstance(source, Scalar) else read_flat(b.level, source, flat)
        src, pos = self.marks()
        which = int(read(src, at))
        if which == CONSTANT:
            return self.values[at]
        source = b.sources[which]
        return source if isinstance(source, Scalar) else read_flat(b.level, source, int(pos[at]))

    def gather(self, at: Shaped) -> Any:
        """The elements at index arrays or a mask, as a node of their own."""
        self.refuse_stale()
        if staged(at):
            return op("index")(self.now(), at=at)
        val = read(self.values, at)
        b = self.buffer
        if b.src is None and not b.sources:
            return _copy(val)
        src, pos = self.marks()
        return mixed(b.level, b.sources, _copy(val), src[at], pos[at])

    def now(self) -> Any:
        """A node (or a plain array) with the present content, made once a version."""
        version, node = self.cache
        self.refuse_stale()
        if version != self.buffer.version:
            node = self._gather()
            self.cache = (self.buffer.version, node)
        if issubclass(type(node), Written) and node.level is self.buffer.level:
            node = _still(node)  # an array that was copied from, and has been written since
            self.cache = (self.buffer.version, node)
        return node

    def _gather(self) -> Any:
        b, whole = self.buffer, self._val is None
        if b.src is None:
            if not b.sources:
                return self._shown()
            node = b.sources[0]
            if whole:
                return node
            if isinstance(node, Scalar):
                return _shaped(node, self.shape)
            return region(b.level, node, self.offset, self.strides, self._shown())
        src, pos = self.marks()
        node = assemble(b.level, b.sources, self._shown(), src, pos)
        if whole and isinstance(node, Traced) and node.level is b.level:
            b.rebase(node)
        elif not whole and isinstance(node, Array) and node.level is b.level and node.k is None:
            self._fold(node, src, pos)
        return node

    def _shown(self) -> Any:
        """The present values, as NumPy's array lies in memory."""
        values = _copy(self.values)
        if self.gaps is None or overlap(self.shape, self.gaps):
            return values
        return laid(values, self.gaps)

    def _fold(self, node: Array, src: np.ndarray, pos: np.ndarray) -> None:
        """Let the elements come from a new mixture of them, so that the next has few parents."""
        sources = self.buffer.sources
        if len(np.unique(src)) > MANY_PARENTS:
            sources.append(node)
            src[...] = len(sources) - 1
            pos[...] = np.arange(pos.size).reshape(pos.shape)

    # --- writing ---------------------------------------------------------------------------------

    def write(self, at: Any, value: Any) -> None:
        """The region `at` gets the value."""
        b = self.buffer
        if b.given:
            self._refuse_given(at)
        if issubclass(type(value), Written) and value.w.buffer is b and self.source is None:
            self._move(at, value.w)
            return
        value = value.now() if isinstance(value, Traced) else value
        self.refuse_write(value)
        if not (isinstance(value, Traced) and value.level is b.level):
            self._write_constant(at, value)
            return
        if value.dtype != b.dtype:
            value = op("astype")(value, dtype=b.dtype)
        if issubclass(type(value), Scalar):  # an element that is read is a NumPy number
            value = value.typed()
        self.store(self.values, at, value.v)
        src, pos = self.marks()
        b.version += 1
        b.sources.append(value)
        src[at] = len(b.sources) - 1
        one = issubclass(type(value), Scalar)
        pos[at] = 0 if one else np.arange(value.size).reshape(value.v.shape)

    def _move(self, at: Any, part: "Part") -> None:
        """The region `at` gets a part of the same buffer: what NumPy does to the values, overlaps
        included, is done to the sources and positions."""
        b = self.buffer
        self.store(self.values, at, part.values)
        if b.src is not None or b.sources:
            for mine, theirs in zip(self.marks(), part.marks(), strict=True):
                mine[at] = theirs
        b.version += 1

    def _write_constant(self, at: Any, value: Shaped) -> None:
        b = self.buffer
        self.store(self.values, at, value)
        b.version += 1
        if b.src is not None or b.sources:
            self.marks()[0][at] = CONSTANT

    def forget(self) -> None:
        """Drop what a trace that has ended left behind."""
        self.cache: tuple[int, Any] = NEVER
        self.buffer.forget()

    def give(self, array: np.ndarray) -> None:
        """Remember a plain array that NumPy's user takes for a view, as long as anyone has it."""
        self.buffer.given.append((weakref.ref(array), self._val))

    def _refuse_given(self, at: Index) -> None:
        b = self.buffer
        b.given = [(ref, part) for ref, part in b.given if ref() is not None]
        mine: Any = self.values
        if isinstance(mine, np.ndarray) and is_basic(at):
            parts = at if isinstance(at, tuple) else (at,)
            whole = any([p is Ellipsis for p in parts])  # an index has one Ellipsis at most
            try:
                mine = mine[parts if whole else (*parts, Ellipsis)]
            except IndexError:  # the write itself raises a clearer error
                return
        for _, part in b.given:
            both = isinstance(mine, np.ndarray) and isinstance(part, np.ndarray)
            if not both or np.may_share_memory(mine, part):
                raise MutationError(
                    "an array was written after NumPy had given a plain view of it that does not "
                    "follow (as np.require, np.asmatrix, np.real_if_close, as_strided and "
                    "sliding_window_view do); take the view after the write, or of a copy"
                )


def version_of(array: Array) -> int:
    """How often the storage of an array has been written."""
    return array.w.buffer.version if isinstance(array, Written) else 0


def _still(node: Array) -> Any:
    """A view of a node that keeps its first content, whatever is written into the node later."""
    root, offset, strides = place(node)
    return view(node.level, root, node.v, offset, strides, fixed=True)


def _copy(val: Shaped) -> Any:
    return val.now() if isinstance(val, Traced) else val.copy(order="K")


# --- the class of written arrays -----------------------------------------------------------------


def _shaped(node: Scalar, shape: tuple[int, ...]) -> Any:
    """A node without axes in the shape that the array has been given: axes of length 1."""
    return op("reshape")(node, shape=shape) if shape else node


def written_in_itself(x: Shaped) -> MutationError:
    """The error for a write to an argument that has one element in several places."""
    return MutationError(
        f"an argument ({type_of(x)}) whose elements share their memory, as those of "
        "broadcast_to and sliding_window_view do, was written; give a copy of it"
    )


class Written(Array):
    """The class that an array turns into when it is written; `w` is its region of a buffer."""

    __slots__ = ()

    @staticmethod
    def begin(level: Any, x: Array) -> None:
        """Turn x into a written array, and with it its root and all views of the root."""
        if isinstance(x, Written):
            return
        root, offset, strides = place(x)
        level.overlaps.write(root)
        shared = overlap(tuple(root.v.shape), strides_of(root.v))
        if shared and any([root is n for n in level.roots]):
            raise written_in_itself(root)
        if is_fixed(x):
            x.w = Part.of(level, view(level, root, x.v, offset, strides, fixed=True))
            x.__class__ = level.XW
            return
        views = [o for o in root.k.views if not o.k.fixed]
        shape = tuple(root.v.shape)
        part = Part.of(level, view(level, root, root.v, 0, c_strides(shape), fixed=True))
        root.w = part
        root.__class__ = level.XW
        for o in views:
            position = _translated(o.k, tuple(o.v.shape), part)
            o.w = part.strided(*position, tuple(o.v.shape), strides_of(o.v))
            o.__class__ = level.XW

    def now(self) -> Any:
        """The node (or plain array) for the present content."""
        return self.w.now()

    def below(self) -> Any:
        """What is below the present content, which may be a written array of another level."""
        node = self.now()
        return node.below() if isinstance(node, Traced) else node

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes."""
        return self.w.shape

    @shape.setter
    def shape(self, value: Value) -> None:
        self.set_shape(value)

    def set_shape(self, value: Any) -> None:
        """The same memory under another shape, where NumPy needs no copy."""
        shape = np.empty(self.shape, np.int8).reshape(value).shape  # NumPy resolves -1 or raises
        part = self.w.reshaped(shape)
        if part is None:
            raise AttributeError(
                "Incompatible shape for in-place modification. Use `.reshape()` to make a copy "
                "with the desired shape."
            )
        self.w = part

    @property
    def lay(self) -> tuple[int, ...]:
        """The strides of NumPy's array."""
        return self.w.lay

    @Array.dtype.getter
    def dtype(self) -> np.dtype:
        """The dtype of the values."""
        return self.w.buffer.dtype

    def _own(self, y: Shaped) -> Any:
        """A node unchanged; a constant as an array that may be written."""
        if isinstance(y, Traced) and y.level is self.level:
            return y
        return self.level.own(y) if type_of(y).shape else y

    def moved(self, name: str, params: dict[str, Any]) -> Any:
        """A view, where a primitive only reads this array in another order; else None."""
        if name == "permute_dims":
            part = self.w.permuted(tuple(params["axes"]))
        elif name == "reshape":
            part = self.w.reshaped(tuple(params["shape"]))
        elif name == "index" and is_basic(params["at"]):
            return self[params["at"]]
        else:
            return None
        return None if part is None else self.level.handle(part)

    def __getitem__(self, at: Any) -> Any:
        part = self.w
        if type(at) is int and part.quick is not None:
            return self._element(at)
        if not is_basic(at):
            check_index(at, self)
            part_array = scalar_index(at)
            return self._own(part.gather(at)) if part_array is None else _copied(self[part_array])
        values = self.memory()
        if values is not None:
            shown = read(values, at)
            if type(shown) is not np.ndarray:
                return shown
            if values is part.direct:
                part.buffer.shared = True
                view = Part.plain(part.buffer, shown, shown, (part, at))
                view.made = (self, at)
                return self.level.handle(view)
        if _is_element(at, len(part.shape)):
            return part.element(at)
        part_array = self.level.handle(part.sub(at))
        part_array.w.made = (self, at)
        return part_array

    def _element(self, at: int) -> Any:
        """One element of a vector, by way of its memory."""
        part = self.w
        memory = part.quick[1]
        if part.source is None and -len(memory) <= at < len(memory):
            which = memory[at]
            source = part.buffer.sources[which] if which != CONSTANT else None
            if isinstance(source, Scalar):
                return source
        return part.element(at)

    def _write_number(self, at: int, value: Scalar) -> bool:
        """Write a number into a vector, by way of its memory; False where that is not possible."""
        part = self.w
        b, (val, src, pos) = part.buffer, part.quick
        if part.source is not None or b.ended or b.given or not -len(src) <= at < len(src):
            return False
        if type(value) is float:
            val[at] = value
            src[at] = CONSTANT
        elif type(value) is self.level.N or type(value) is self.level.S:
            value = value.typed()
            val[at] = value.v
            b.sources.append(value)
            src[at] = len(b.sources) - 1
            pos[at] = 0
        else:
            return False
        b.version += 1
        return True

    def total(self) -> Any:
        """The sum of all elements."""
        values = self.memory()
        if values is not None:
            return np.add.reduce(values, axis=None)
        node = self.now()
        return node.total() if isinstance(node, Array) else node.sum()

    def __setitem__(self, at: Index, value: Any) -> None:
        if type(at) is int and self.w.quick is not None and self._write_number(at, value):
            return
        if type(value) is type(self) and value.w.buffer is self.w.buffer:
            refuse_shuffled(sys._getframe(1))
        if self._write_plain(at, value):
            return
        if self._has_written(at, value):
            return
        value = as_array(value) if issubclass(type(value), list | tuple) else told(value)
        if not is_basic(at):
            check_index(at, self)
        self._refuse_inner(value)
        self.w.write(at, value)

    def _write_plain(self, at: Index, value: Shaped) -> bool:
        """Write a plain value where all of the array is constant; False if the general way must."""
        content: Any = value
        kind = type(content)
        if kind is type(self):
            made = content.w.made
            content = content.memory() if made is None or made[0] is not self else None
            kind = type(content)
        if kind is np.ndarray:
            if content.dtype.kind not in "fiub":
                return False
        elif kind is not np.float64 and kind not in PYTHONS:
            return False
        values = self.memory(to_write=True) if is_basic(at) else None
        if values is None:
            return False
        try:
            values[at] = content
        except (ValueError, IndexError):  # the general way raises a clearer error
            return False
        part = self.w
        part.buffer.version += 1
        if part.direct is None:
            part.values.rewritten()
        return True

    def _has_written(self, at: Index, value: Any) -> bool:
        """Whether `value` is the view self[at], which x[at] += v has written already."""
        made = value.w.made if issubclass(type(value), Written) else None
        if made is None or made[0] is not self:
            return False
        return made[1] is at or (is_basic(at) and is_basic(made[1]) and made[1] == at)

    def _refuse_inner(self, value: Value) -> None:
        box = innermost((value,))
        if box is not None and box.depth > self.depth:
            raise written_outside()

    def _refuse_growth(self, t: ArrayType) -> None:
        if t.shape != self.w.shape:
            raise ShapeError(
                f"in-place operation: {t} does not fit into {type_of(self)}; "
                "broadcasting cannot make the target larger"
            )

    def assign_all(self, value: Array) -> Any:
        """Every element gets a value: an in-place operation."""
        self._refuse_inner(value)
        node = value.now() if isinstance(value, Traced) else value
        b, t = self.w.buffer, type_of(node)
        self._refuse_growth(t)
        mine = (
            self.w.source is None
            and isinstance(node, Traced)
            and node.level is b.level
            and t.dtype == b.dtype
        )
        own = self.w._val is None and b.src is None and not (b.shared or b.given)
        if mine and own and (len(t.shape) < 2 or in_c_order(t.shape, strides_of(node))):
            b.sources, b.val = [node], None
            b.version += 1
        else:
            self.w.write(Ellipsis, node)
        return self

    # --- a written array without derivative is a plain array to whoever reads it -----------------

    def memory(self, to_write: bool = False) -> np.ndarray | None:
        """The values themselves, where nothing traced has reached the array; else None.

        They are to be looked at only, or, `to_write`, written by whoever calls `rewritten` then.
        """
        part = self.w
        b = part.buffer
        if b.src is not None or b.sources or b.ended or (to_write and b.given):
            return None
        if part.source is not None or part.gaps is not None or not self.level.open:
            return None
        if part.direct is not None:
            return part.direct
        values = part.values
        if isinstance(values, Written):
            return values.memory(to_write)
        if type(values) is np.ndarray:
            part.direct = values
            return values
        return None

    def rewritten(self) -> None:
        """The memory has been written."""
        self.w.buffer.version += 1
        below = self.w.values
        if type(below) is not np.ndarray:
            below.rewritten()

    def constant(self) -> np.ndarray | None:
        """A copy of the content where nothing is traced, at any level; else None."""
        content = self.now()
        content = content.constant() if isinstance(content, Written) else content
        return content if isinstance(content, np.ndarray) else None

    def __array__(self, dtype: DType = None, copy: bool | None = None) -> Any:
        array = self.constant()
        if array is None:
            product = asks_who_multiplies(sys._getframe(1))
            return in_object(self) if product else super().__array__()
        if dtype is None and not array.size and asks_as_index(sys._getframe(1)):
            np.empty(0, int)[np.empty(0, array.dtype)]  # raises; other objects are accepted
        if copy is False:
            np.array(array, dtype, copy=False)  # NumPy refuses another dtype
        kept = dtype is None or np.dtype(dtype) == array.dtype
        array = copied(array) if kept else array.astype(dtype)
        array.flags.writeable = copy is True  # a write would be lost
        self.level.locks.gave = True
        if kept and not copy:
            self.w.give(array)
        return array

    def give(self, array: np.ndarray) -> None:
        """The plain content belongs to a view that a function has returned: cache it no longer."""
        self.w.give(array)
        self.w.cache = NEVER
        below = self.w.values
        if isinstance(below, Written):
            below.give(array)

    def __getattr__(self, name: str) -> Any:
        """Read-only attributes of ndarray, where nothing in the array is traced."""
        if name in ("data", "flags", "itemsize", "strides", "tobytes", "tofile", "dump", "dumps"):
            constant = self.constant()
            if constant is not None:
                return getattr(self.__array__(), name)
        raise AttributeError(f"a traced array has no attribute {name!r}")

    def __float__(self) -> float:
        constant = self.constant()
        return super().__float__() if constant is None else float(constant)

    def __complex__(self) -> complex:
        constant = self.constant()
        return super().__complex__() if constant is None else complex(constant)

    def __reduce__(self) -> Any:
        constant = self.constant()
        return super().__reduce__() if constant is None else constant.__reduce__()


PYTHONS = (float, int)


def plain_operands(args: Sequence[Any]) -> list[Any] | None:
    """The plain operands of an operation in which nothing is traced, to be read only; else None."""
    operands: list[Any] = []
    for a in args:
        if issubclass(type(a), Written):
            a = a.memory()
            if a is None:
                return None
        elif type(a) is np.ndarray:
            if a.dtype.kind == "O":
                return None
        elif not (type(a) in PYTHONS or issubclass(type(a), np.number)):
            return None
        operands.append(a)
    return operands


def settled(X: type, name: str, general: Callable[..., Any]) -> Any:
    """The method of X on the current node of a written array; the general one for other nodes."""
    own = getattr(X, name)
    stem = name.removeprefix("np_")
    plainly: Any = getattr(np.ndarray, name) if name.startswith("__") else op(stem).array
    turned = getattr(X, name.replace("__r", "__", 1)) if name.startswith("__r") else None

    def method(self: Any, *others: Any) -> Any:
        level = self.level
        if level.kinks is None:
            operands = plain_operands((self, *others))
            if operands is not None:
                y = plainly(*operands)
                if y is not NotImplemented:
                    return level.own(y) if type(y) is np.ndarray else y
        node = self.now()
        if type(node) is not X:
            if len(others) == 1 and has_priority(others[0]):
                return operated(lambda p, q: general(self, q), self, others[0])
            return general(self, *others)
        others = tuple([o.now() if issubclass(type(o), Written) else o for o in others])
        if turned is not None and type(others[0]) is X:
            return turned(others[0], node)
        return own(node, *others)

    return method


def _copied(value: Traced) -> Any:
    return value.copy() if isinstance(value, Array) else value


def _translated(k: View, shape: tuple[int, ...], part: Part) -> tuple[int, tuple[int, ...]]:
    """A view's position in the memory of a buffer that holds its root as `part`."""
    if part._val is None:
        return k.offset, k.strides
    where = np.array(np.unravel_index(k.offset if 0 not in shape else 0, part.shape))
    strides = []
    for n, s in zip(shape, k.strides, strict=True):
        if n < 2 or 0 in shape:
            strides.append(0)
            continue
        step = np.array(np.unravel_index(k.offset + s, part.shape)) - where
        strides.append(int(step @ np.array(part.strides)))
    return int(where @ np.array(part.strides)), tuple(strides)


def _is_element(at: Index, ndim: int) -> bool:
    if isinstance(at, tuple):
        return len(at) == ndim and all(isinstance(p, int | np.integer) for p in at)
    return ndim == 1 and isinstance(at, int | np.integer)


__all__ = ["Buffer", "Part", "Written"]
