"""Arrays of a function that is traced: storage that is written by `put`, and views of it.

A view is the steps that lead to it from the whole: writing takes the part out, writes it, and puts
it back.  What only constants were written to is still a constant, and is written in place.
"""

import functools
import math
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from lineara.errors import MutationError, StagingError
from lineara.facts.hints import Index, Leaf, Shaped, Tree, Value
from lineara.facts.primitive import innermost, op
from lineara.facts.types import ArrayType, carries_tangents, type_of
from lineara.linear_a.loops import Scan
from lineara.linear_a.rules_as_text import Boxed, Emitter
from lineara.linear_a.syntax import Accum, Block, Def, Put, Ret, sampled, zero
from lineara.ops.index import (
    check_index,
    flat_positions,
    is_basic,
    normal,
    read,
)
from lineara.ops.shape import as_array, told
from lineara.python.numpy_layout import lay_of
from lineara.staging import by_signature
from lineara.staging.selected import Selected, is_same
from lineara.staging.windows import is_window, positions
from lineara.tape.node import Array, Scalar, Traced, outlived
from lineara.tape.numpy_errors import refuse_shuffled
from lineara.tape.strides import (
    Doubtful,
    copied,
    grid,
    in_c_order,
    locate,
    packed,
    reshaped_strides,
    strides_of,
)
from lineara.tape.written_arrays import Part, Written, WrittenView

IN_LINE = 2  # staged positions that are written without a loop
LITERAL = 64  # elements: a constant up to this size stands in the text, a larger one beside it


class Step(NamedTuple):
    """One step from an array to a part of it: index, permute_dims or reshape."""

    name: str
    param: Any

    def taken(self, x: Value) -> Any:
        """The part."""
        key = {"index": "at", "permute_dims": "axes", "reshape": "shape"}[self.name]
        if self.name == "index" and isinstance(x, np.ndarray):  # a view, also of one element
            at = self.param if isinstance(self.param, tuple) else (self.param,)
            whole = any([p is Ellipsis for p in at]) or not is_basic(self.param)
            return x[at if whole else (*at, Ellipsis)]
        return op(self.name)(x, **{key: self.param})

    def back(self, out: Emitter, x: Boxed, y: Boxed) -> Any:
        """The array x with y in place of the part."""
        if self.name == "index":
            return put(out, x, self.param, y)
        if self.name == "reshape":
            return op("reshape")(y, shape=x.shape)
        return op("permute_dims")(y, axes=tuple(int(i) for i in np.argsort(self.param)))


def put(out: Emitter, x: Boxed, at: Index, y: Boxed) -> Boxed:
    """x with y in place of x[at]; the positions are all different."""
    at = at if isinstance(at, tuple) else (at,)
    at = tuple([p.var if isinstance(p, Boxed) else p for p in at])
    return out.box(out.bind("v", x.var.type, Put((x.var, y.var), at)))


class Cell:
    """The storage that an array and its views share: a constant until a staged value goes in.

    It was made in the definition `home`.  While a definition inside that one is being written and
    uses it, it comes along: `level` is the definition that it is in now, and `content` what it
    holds there.  `inside` has the roots of the differentiations in which it was made, which no two
    of them share.  If there are any, the arrays that show the storage are known: they may become
    arrays of those.
    """

    __slots__ = (
        "__weakref__",
        "arrays",
        "asked",
        "came",
        "content",
        "given",
        "home",
        "inside",
        "kin",
        "lay",
        "level",
        "notes",
        "version",
    )

    def __init__(self, level: Any, content: Shaped, inside: Sequence[Any], lay: Any = None) -> None:
        self.home: Any = level
        self.level: Any = level
        self.content: Any = content
        self.inside: Sequence[Any] = inside
        # the strides of NumPy's array
        self.lay: tuple[int, ...] = strides_of(content) if lay is None else lay
        self.asked: bool = False  # whether something depends on how it lies in memory
        self.came: bool = False  # whether it came in as a formal: another may be the same array
        self.version: int = 0
        self.given: list[Any] = []  # plain arrays that NumPy's user takes for views
        self.arrays: list[Any] = []
        self.kin: list[weakref.ref[Any]] = []  # what may be the same storage as the program runs
        self.notes: tuple[Note, ...] = ()  # of what depends on it as it was

    def wrote(self) -> None:
        """It was written: those that depend on it as it was know, even when it is gone."""
        self.version += 1
        for note in self.notes:
            note.wrote = True

    def here(self) -> Any:
        """The definition that is being written, to which the storage comes along."""
        level = self.level.innermost()
        if level is not self.level:
            level.take(self)
        return level

    def was_made_in(self, level: Any) -> bool:
        """Whether it was made while that differentiation went on, by what is differentiated."""
        return any([roots is level.roots for roots in self.inside])

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the content."""
        return self.content.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the content."""
        return tuple(self.content.shape)

    def ask(self, ndim: int) -> None:
        """Something depends on how a part with so many axes lies in memory."""
        self.asked |= ndim > 1
        self.level.shared.asked |= ndim > 1

    def boxed(self) -> Boxed:
        """The content as a variable."""
        if not isinstance(self.content, Boxed):
            self.content = as_box(self.level, self.content)
        return self.content


def as_box(level: Any, value: Leaf) -> Boxed:
    """A constant as a variable."""
    if isinstance(value, Boxed):
        return value
    value = np.asarray(value)
    if value.size > 1 and carries_tangents(value.dtype) and not value.any():
        t = type_of(value)
        return level.out.box(level.out.bind("v", t, zero(t, linear=False)))
    value = level.constant(value)  # a copy: the array may be written later
    return value if isinstance(value, Boxed) else level.out.box(level.out.unbox(value))


class Note:
    """Storage that something depends on as it was: whether it is in use, and was written since.

    What was written and is in use no more was written all the same.  While it is in use its version
    tells, which goes back where a block is put back.
    """

    __slots__ = ("ref", "version", "wrote")

    def __init__(self, store: Any) -> None:
        self.ref: weakref.ref[Any] = weakref.ref(store)
        self.version: int = getattr(store, "version", 0)
        self.wrote: bool = False
        if isinstance(store, Cell):
            store.notes = (*store.notes, self)

    @property
    def store(self) -> Any:
        """The storage, or None where nobody uses it any more."""
        return self.ref()

    @property
    def is_written(self) -> bool:
        """Whether it was written since."""
        store = self.ref()
        return self.wrote if store is None else getattr(store, "version", 0) != self.version


class Aliases:
    """Arrays one of which Python gives where a program gives another one with its content.

    While such an array is in use, neither may be written.
    """

    def __init__(self, stores: Sequence[Any]) -> None:
        self.notes: list[Note] = [*map(Note, stores)]

    def refuse(self, written: bool) -> None:
        """Refuse a write, or what is read after one of the others was written."""
        for note in self.notes:
            if note.is_written or (written and note.store is not None):
                raise MutationError(
                    "an array that a staged branch or loop gave was written, or is read after a "
                    "write, where it may be one that is in use under another name, and whether it "
                    "is depends on values; let the branch or the loop give a copy, a.copy()"
                )


def store_of(v: Leaf) -> Any:
    """The storage that an array shows; of a plain array itself."""
    return v.w.buffer if isinstance(v, StagedArray) else v


def stores_of(v: Leaf) -> list[Any]:
    """The storage that an array shows in Python, of which a program may have made a copy."""
    return [store_of(a) for a in _shown_by(v)]


def relatives(store: Any) -> list[Any]:
    """What is in use and may be the same storage as the program runs."""
    if not isinstance(store, Cell):
        return []
    store.kin = [ref for ref in store.kin if ref() is not None]
    return [ref() for ref in store.kin]


def may_be_one(a: Any, b: Any) -> bool:
    """Whether two storages are one, or may be as the program runs."""
    return a is b or any([b is c for c in relatives(a)])


def note_aliases(pairs: Iterable[tuple[Any, Sequence[Any]]]) -> None:
    """Note which arrays each one that a form gave may be, all those of one form at once.

    What these may be, it may be, too: they may be gone when that is written.
    """
    each: list[tuple[Any, list[Any]]] = []
    for array, others in pairs:
        stores = [store for v in others for store in stores_of(v)]
        stores += [k for c in stores for k in relatives(c)]
        several = {id(c): c for c in stores if c is not store_of(array)}
        if several and isinstance(array, StagedArray):
            each.append((array, [*several.values()]))
    for array, stores in each:
        array.w.source, own = Aliases(stores), array.w.buffer
        own.kin += [weakref.ref(c) for c in stores]
        for c in stores:
            if isinstance(c, Cell):
                c.kin.append(weakref.ref(own))


def _shown_by(v: Any) -> Iterator[Any]:
    """A value, and the arrays that NumPy would see through it where it does not follow them."""
    yield v
    if isinstance(v, StagedArray) and type(v.w.source) is tuple:
        yield from _shown_by(v.w.source[0])


class Region(WrittenView):
    """A region of a cell: the whole, or what some steps lead to."""

    __slots__ = ("steps",)
    source: Any
    cache: tuple[int, Any]

    def __init__(self, cell: Cell, steps: tuple[Step, ...], position: tuple[Any, ...]) -> None:
        WrittenView.__init__(self, cell, *position)
        self.steps: tuple[Step, ...] = steps

    @classmethod
    def whole(cls, cell: Cell) -> "Region":
        """All of a cell."""
        return cls(cell, (), (0, cell.lay, tuple(cell.content.shape)))

    @property
    def lay(self) -> tuple[int, ...]:
        """The strides of NumPy's array."""
        return Doubtful(self.strides) if isinstance(self.buffer.lay, Doubtful) else self.strides

    def _part(self, step: Step, position: Any) -> "Region":
        last = self.steps[-1] if self.steps else None
        steps = (*self.steps, step)
        both = last is not None and last.name == step.name == "index" and _is_view(step.param)
        if last is not None and both and _all_integers(last.param):
            merged = (*_tuple(last.param), *_tuple(step.param))
            steps = (*self.steps[:-1], Step("index", merged))
        part = Region(self.buffer, steps, position)
        part.source = self.source
        return part

    def refuse_stale(self) -> None:
        """Refuse to read what does not follow an array that was written since."""
        if isinstance(self.source, Aliases):
            self.source.refuse(False)
        else:
            WrittenView.refuse_stale(self)

    def refuse_write(self, value: Any) -> None:
        """Refuse a write that another array would not follow."""
        if isinstance(self.source, Aliases):
            self.source.refuse(True)
            self.source = None
        WrittenView.refuse_write(self, value)

    # --- views ------------------------------------------------------------------------------------

    def of(self, whole: Part) -> Part | None:
        """The same region of an array of a differentiation, or None where there is none."""
        part: Part | None = whole
        if self.source is not None:
            return None
        for step in self.steps:
            if part is None or any(boxes(step.param)) or not is_basic(step.param):
                return None
            ways = {"index": part.sub, "permute_dims": part.permuted, "reshape": part.reshaped}
            part = ways[step.name](step.param)
        if part is not None:
            part.made = self.made
        return part

    def sub(self, at: Index) -> "Region":
        """The region of an index of integers, some of them staged, and slices."""
        level = self.buffer.here()
        if any(map(is_window, _tuple(at))):
            return self._windowed(level, _tuple(at))
        first = tuple([0 if isinstance(p, Traced) else p for p in _tuple(at)])
        read(np.broadcast_to(np.zeros((), self.buffer.dtype), self.shape), first)
        position = locate(first, self.offset, self.strides, self.shape)
        return self._part(Step("index", level.parameter(_tuple(at))), position)

    def _windowed(self, level: Any, at: tuple[Any, ...]) -> "Region":
        """The region of an index some of whose slices have staged ends."""
        if any([p is None or p is Ellipsis for p in at]):
            raise StagingError(
                "an index with a slice whose ends are staged and with ... or None; write it as two"
            )
        basic = tuple([slice(None) if is_window(p) else p for p in at])
        part = self if basic == (slice(None),) * len(at) else self.sub(basic)
        slices = [p for p in at if isinstance(p, slice)]
        for axis, p in enumerate(slices):
            if is_window(p):
                before = (slice(None),) * axis
                places = positions(level, p, part.shape[axis])
                here = locate(
                    (*before, slice(places.shape[0])), part.offset, part.strides, part.shape
                )
                part = part._part(Step("index", (*before, level.parameter(places))), here)
        return part

    def permuted(self, axes: tuple[int, ...]) -> "Region":
        """The axes in another order."""
        order = [tuple(of[i] for i in axes) for of in (self.strides, self.shape)]
        return self._part(Step("permute_dims", axes), (self.offset, *order))

    def reshaped(self, shape: tuple[int, ...]) -> "Region | None":
        """The elements under another shape, or None where NumPy copies."""
        strides = reshaped_strides(self.shape, self.strides, shape)
        self.buffer.ask(len(self.shape))
        if strides is None:
            return None
        return self._part(Step("reshape", shape), (self.offset, strides, shape))

    def strided(
        self, offset: int, strides: tuple[int, ...], shape: tuple[int, ...], lay: tuple[int, ...]
    ) -> "Region":
        """The region at a position of the whole cell, of an array that NumPy lays out so."""
        size = int(np.prod(self.shape))
        flat = self._part(Step("reshape", (size,)), (0, (1,), (size,)))
        return flat._part(Step("index", (grid(offset, strides, shape),)), (offset, lay, shape))

    # --- reading ----------------------------------------------------------------------------------

    def content(self) -> Any:
        """What the region shows now: an array of numbers or a box."""
        level, x = self.buffer.here(), self.buffer.content
        for step in self._steps(level):
            if isinstance(x, np.ndarray) and any(boxes(step.param)):
                x = as_box(level, x)
            x = step.taken(x)
        return x

    def _steps(self, level: Any) -> list[Step]:
        """The steps, as the definition that is being written knows their positions."""
        return [Step(s.name, level.known_here(s.param)) for s in self.steps]

    def now(self) -> Any:
        """The present content: an array that keeps it, staged or plain."""
        version, node = self.cache
        self.refuse_stale()
        level = self.buffer.here()
        known = isinstance(node, Traced) and node.v.emitter is level.out
        if version != self.buffer.version or not known:
            x = self.content()
            node = level.still(x, self.lay) if isinstance(x, Boxed) else copied(x)
            self.cache = (self.buffer.version, node)
        return node

    # --- writing ----------------------------------------------------------------------------------

    def write(self, at: Shaped, value: Shaped) -> None:
        """The region `at` gets the value."""
        cell = self.buffer
        if any(map(_is_staged, _tuple(at))):
            cell.here().guards("a write", at, self)
        value = value.now() if isinstance(value, Traced) else value
        self._refuse(value)
        level = cell.here()
        value = _as_stored(value, cell.dtype, at)
        at = normal(level.parameter(at) if any(map(_is_staged, _tuple(at))) else at)
        both = isinstance(value, np.ndarray) and isinstance(cell.content, np.ndarray)
        if not both or any(boxes((at, self.steps))):
            value = level.entered(value)
        if _all_integers(at) and len(_tuple(at)) == len(self.shape) and np.shape(value):
            raise self.misfit(
                value, at, self.shape, ValueError("setting an array element with a sequence.")
            )
        staged = [isinstance(v, Boxed) for v in (cell.content, value)]
        if not any(staged) and not any(boxes((at, self.steps))):
            self.store(self.content(), at, value)
        else:
            cell.content = self._written(cell.boxed(), self._steps(level), at, value)
        cell.wrote()

    def _written(self, x: Boxed, steps: Sequence[Step], at: Any, value: Shaped) -> Boxed:
        """The array x with the value at an index of what the steps lead to."""
        out = self.buffer.level.out
        if steps:
            first, *rest = steps
            together = first.name == "index" and _all_integers(first.param) and _is_view(at)
            if together and not rest:
                return self._written(x, (), (*_tuple(first.param), *_tuple(at)), value)
            part = first.taken(x)
            return first.back(out, x, self._written(part, rest, at, value))
        at = _tuple(at)
        if any(_masks(at)):
            return self._masked(x, at, value)
        if len(at) == 1 and at[0] is Ellipsis:
            return self.fitted(value, type_of(x), at)
        if not _is_view(at):
            return (self._spread if any(boxes(at)) else self._scattered)(x, at, value)
        part = op("index").result(x.var.type, at=sampled(tuple(map(_unboxed, at))))
        return put(out, x, at, self.fitted(value, part, at))

    def _scattered(self, x: Boxed, at: Any, value: Shaped) -> Boxed:
        """The write at index arrays or a mask: of one position the last write counts."""
        try:
            places = flat_positions(at, x.shape)
        except IndexError as e:
            raise self.misfit(value, at, x.shape, e) from None
        y = self.fitted(value, ArrayType(places.shape, x.dtype), at)
        flat = places.reshape(-1)
        last = flat.size - 1 - np.unique(flat[::-1], return_index=True)[1]
        y = op("reshape")(y, shape=(flat.size,))
        if last.size < flat.size:
            y = op("index")(y, at=(np.sort(last),))
            flat = flat[np.sort(last)]
        out = self.buffer.level.out
        whole = op("reshape")(x, shape=(int(np.prod(x.shape)),))
        at = _unboxed(self.buffer.level.constant(flat))
        return op("reshape")(put(out, whole, (at,), y), shape=x.shape)

    def _spread(self, x: Boxed, at: Any, value: Shaped) -> Boxed:
        """The write at staged positions: one after the other, since one may come twice."""
        part = ArrayType(_shape_at(x.shape, tuple(map(_unboxed, at))), x.dtype)
        return self._in_turn(x, at, self.fitted(value, part, at))

    def _in_turn(self, x: Boxed, at: Any, y: Boxed, act: Callable[..., Any] | None = None) -> Boxed:
        """x with its part of y, or act(what is there, the part), at one position after another."""
        at = _only_positions(at, len(x.shape))
        places = [k for k, p in enumerate(at) if p is not None and not isinstance(p, slice)]
        shape = np.broadcast_shapes(*[np.shape(at[k]) for k in places])
        together = places == [*range(places[0], places[-1] + 1)]
        lead, n = places[0] if together else 0, math.prod(shape)
        if n <= IN_LINE:
            for j in np.ndindex(shape):
                one = tuple([_place(p, shape, j) if k in places else p for k, p in enumerate(at)])
                x = _with(x, one, op("index")(y, at=(*[slice(None)] * lead, *j)), act)
            return x
        level, axes = self.buffer.level, [*range(len(y.shape))]
        front = axes[lead : lead + len(shape)]
        if lead:
            y = op("permute_dims")(y, axes=(*front, *[k for k in axes if k not in front]))
        given = [as_box(level, at[k]) for k in places]
        stacks = [v if v.shape == shape else op("broadcast_to")(v, shape=shape) for v in given]
        stacks.append(y)
        if len(shape) > 1:
            stacks = [op("reshape")(v, shape=(n, *v.shape[len(shape) :])) for v in stacks]
        out = Emitter(level.out.names)
        out.seek = level.out.seek
        rows = [ArrayType(v.shape[1:], v.dtype) for v in stacks]
        formals = [out.box(out.fresh("x", t)) for t in (x.var.type, *rows)]
        one = dict(zip(places, formals[1:-1], strict=True))
        made = _with(formals[0], tuple([one.get(k, p) for k, p in enumerate(at)]), formals[-1], act)
        name = level.name_of_definition("write")
        block = Block(tuple(out.bindings), Ret((made.var,)))
        level.add(Def(name, tuple([v.var for v in formals]), (x.var.type,), (), block))
        args = tuple([v.var for v in (x, *stacks)])
        return level.out.box(
            level.out.bind("v", x.var.type, Scan(args, (name,), n, "fwd", 0, 1, 0))
        )

    def _masked(self, x: Boxed, at: Any, value: Shaped) -> Boxed:
        """The write where a staged mask of some axes holds: of what is the same in all places."""
        k = next(k for k, p in enumerate(at) if isinstance(p, Boxed) and p.dtype.kind == "b")
        mask, others = at[k], (*at[:k], *at[k + 1 :])
        whole = [p for p in others if p is not Ellipsis]
        lead = k if Ellipsis not in at[:k] else len(x.shape) - len(mask.shape) - len(at[k + 1 :])
        rest = x.shape[lead + len(mask.shape) :]
        fits = all([isinstance(p, slice) and p == slice(None) for p in whole])
        fits = fits and x.shape[lead : lead + len(mask.shape)] == mask.shape
        t = type_of(value)
        if t.shape == (1,):
            value, t = op("reshape")(value, shape=()), ArrayType((), t.dtype)
        if not fits or len(t.shape) > len(rest):
            raise StagingError(
                "a write where a mask holds whose values are not known yet: the mask has to be of "
                "whole axes, all other axes are written whole, and the value is the same at each "
                "place, as one number; for an array of values use np.where(mask, values, array)"
            )
        y = self.fitted(value, ArrayType(rest if t.shape else (), x.dtype), at)
        if mask.shape != x.shape:
            mask = op("reshape")(mask, shape=(*[1] * lead, *mask.shape, *[1] * len(rest)))
            mask = op("broadcast_to")(mask, shape=x.shape)
        return op("where")(mask, op("broadcast_to")(y, shape=x.shape) if y.shape else y, x)

    def at_each(self, at: Any, value: Shaped, act: Callable[..., Any] | None) -> None:
        """Every occurrence of a position adds, or gets act(what is there, its part of value)."""
        cell = self.buffer
        at = np.asarray(at) if isinstance(at, list) else at
        if any(map(_is_staged, _tuple(at))):
            cell.here().guards("a write", at, self)
        value = value.now() if isinstance(value, Traced) else value
        self._refuse(value)
        level = cell.here()
        steps = self._steps(level)
        at = _tuple(normal(level.parameter(at)))
        where = tuple(map(_unboxed, at))
        y = level.entered(value)
        dtype = y.dtype if act else cell.dtype
        y = self.fitted(y, ArrayType(_shape_at(self.shape, where), dtype), at)
        x = cell.boxed()
        parts = [x]
        for step in steps:
            parts.append(step.taken(parts[-1]))
        last = parts.pop()
        if act:
            made = self._in_turn(last, at, y, act)
        else:
            leaf = Accum((last.var, y.var), where)
            made = level.out.box(level.out.bind("v", last.var.type, leaf))
        for step, part in zip(reversed(steps), reversed(parts), strict=True):
            made = step.back(level.out, part, made)
        cell.content = made
        cell.wrote()

    def fitted(self, value: Any, t: ArrayType, at: Any) -> Boxed:
        """A value in the shape and dtype of what it is written to."""
        if not isinstance(value, Boxed):
            try:
                value = np.broadcast_to(_lean(np.asarray(value), t), t.shape).astype(t.dtype)
            except ValueError as e:
                raise self.misfit(value, at, self.shape, e) from None
            return as_box(self.buffer.level, value)
        v = type_of(value)
        lead = len(v.shape) - len(t.shape)
        if lead > 0 and set(v.shape[:lead]) == {1}:
            value = op("reshape")(value, shape=v.shape[lead:])
        try:
            same = np.broadcast_shapes(value.shape, t.shape) == t.shape
        except ValueError:
            same = False
        if not same:
            why = ValueError(f"it has the shape {v.shape}, not {t.shape}")
            raise self.misfit(value, at, self.shape, why)
        value = value if value.dtype == t.dtype else op("astype")(value, dtype=t.dtype)
        return value if value.shape == t.shape else op("broadcast_to")(value, shape=t.shape)

    def _refuse(self, value: Shaped) -> None:
        cell = self.buffer
        cell.level.shared.written = True
        if not cell.level.open:
            raise outlived()
        if not cell.here().hands_on and cell.home is not cell.level:
            raise StagingError(
                "the function of a branch or loop writes into an array that was made outside it; "
                "pass the array in, and return it"
            )
        if cell.asked and isinstance(cell.lay, Doubtful):
            raise self.doubtful("an array was reshaped and written")
        self.refuse_write(value)
        if not cell.version:
            cell.level.overlaps.write(cell)
        cell.given = [ref for ref in cell.given if ref() is not None]
        if cell.given:
            raise MutationError(
                "an array was written after NumPy had given a plain view of it that does not "
                "follow; take the view after the write, or of a copy"
            )

    def doubtful(self, what: str) -> StagingError:
        """The error for what depends on how an array lies that may lie in several ways."""
        return StagingError(
            f"{what}, and what comes of that depends on how it lies in memory, where branches or "
            "the rounds of a loop give it in different ways; take a copy, a.copy(), of what they "
            "give"
        )

    def give(self, array: np.ndarray) -> None:
        """Remember a plain array that NumPy's user takes for a view."""
        self.buffer.given.append(weakref.ref(array))

    @property
    def values(self) -> Any:
        """The content, as arrays of eager levels have it."""
        return self.buffer.content


def _known(at: Index) -> Any:
    """An index with the content of arrays that were made of constants in place of these."""
    parts = [(p.constant() if isinstance(p, StagedArray) else None, p) for p in _tuple(at)]
    known = tuple([p if content is None else content for content, p in parts])
    return known if isinstance(at, tuple) else known[0]


class StagedArray(Written):
    """An array of the function that is traced."""

    __slots__ = ()

    def memory(self, to_write: bool = False) -> None:
        """None: the values are not known while a program is written."""

    def lying(self) -> tuple[int, ...]:
        """The strides, where values depend on them."""
        shared = self.level.shared
        shared.asked = shared.written = True
        if isinstance(self.lay, Doubtful):
            raise self.w.doubtful("an array was read in the order of its memory")
        return self.lay

    @property
    def new(self) -> bool:
        """Whether an operation made it, so that it is no other array that has a name."""
        return not isinstance(self.w.source, Aliases) and bool(
            self.w.steps or not self.w.buffer.came
        )

    @property
    def in_order(self) -> bool:
        """Whether the elements lie in memory in C order."""
        self.w.buffer.ask(len(self.shape))
        return in_c_order(self.shape, self.lay)

    def __getitem__(self, at: Any) -> Any:
        if self.w.source is not None:
            self.w.refuse_stale()
        level = self.w.buffer.here()
        place = issubclass(type(at), Scalar) and at.dtype.kind in "iu"
        if place and len(self.w.shape) == 1 and not self.w.steps and at.level.depth <= level.depth:
            level.guards("a read", at, self)
            read_part = functools.partial(self._shown, (at,), at)
            return by_signature.written(self.level, "[]", (self, at), read_part)
        if isinstance(at, list | tuple):
            at = normal(at)
        at = _known(at)
        parts = _tuple(at)
        inside = [v.level for v in _staged_parts(parts) if v.level.depth > level.depth]
        if inside:
            return max(inside, key=lambda level: level.depth).innermost().read(self)[at]
        basic = is_basic(tuple([0 if _is_integer(p) else p for p in parts]))
        if basic and any(map(_is_staged, parts)):  # else `index` looks
            level.guards("a read", at, self)
        if not basic:
            check_index(at, self)
            if any([isinstance(p, Traced) and p.dtype.kind == "b" for p in parts]):
                return self._selected(parts)
            x = self.w.content()
            if isinstance(x, np.ndarray) and not any(map(_is_staged, parts)):
                return self._own(np.array(read(x, normal(at))))
            y = op("index")(as_box(level, x), at=normal(level.parameter(at)))
            return level.wrap(y, lay_of(op("index"), (self,), {"at": at}, y))
        return self._shown(parts, at)

    def _selected(self, parts: tuple[Any, ...]) -> Selected:
        """What a staged mask of the shape of the array selects."""
        level, mask = self.w.buffer.here(), parts[0]
        if len(parts) > 1 or mask.shape != self.shape or not self.size:
            raise StagingError(
                "an array was read where a staged mask of a part of its axes holds: how many "
                "elements there are depends on values; keep the shape with np.where(mask, a, b)"
            )
        if isinstance(mask, StagedArray):  # as it is now: it may be written
            mask = level.wrap(as_box(level, mask.w.content()))
        return Selected.of(self, mask)

    def _shown(self, parts: tuple[Any, ...], at: Any) -> Any:
        """The part at an index of integers and slices: an element, or a view."""
        region = self.w.sub(at)
        if region.shape or any([p is Ellipsis for p in parts]):
            made = self.level.handle(region)
            made.w.made = (self, at)
            return made
        x = region.content()
        return self.w.buffer.level.wrap(x) if isinstance(x, Boxed) else x[()]

    def entered(self, value: Value) -> bool:
        """Whether this is an array of the differentiation that a value belongs to from now on.

        The function that is differentiated has made it, of values that do not move, so nobody
        outside has it.  It becomes what it would be had it been made with np.zeros, and so do all
        that share its memory.  Of what was made outside it is refused.
        """
        box, cell = innermost((value,)), self.w.buffer
        if not isinstance(box, Traced) or not box.known or box.depth <= self.depth:
            return False
        parts: list[Any] = [None]
        if cell.was_made_in(box.level) and not cell.given:
            packed_lay = packed(tuple(cell.content.shape), cell.lay, "K")  # as buffers are
            content = Region.whole(Cell(cell.level, cell.content, cell.inside, packed_lay))
            whole = Part.of(box.level, cell.level.handle(content), cell.lay)
            parts = [a.w.of(whole) for a in cell.arrays]
        if any([p is None for p in parts]):
            self._refuse_inner(value)
        for a, part in zip(cell.arrays, parts, strict=True):
            a.__class__ = box.level.XW
            a.w = part
        return True

    def __setitem__(self, at: Index, value: Any) -> None:
        if type(value) is type(self) and value.w.buffer is self.w.buffer:
            refuse_shuffled(sys._getframe(1))
        if any(map(is_window, _tuple(at))):
            made = value.w.made if isinstance(value, StagedArray) else None
            if made is None or made[0] is not self or not _one_place(made[1], at):
                self[at][...] = value
            return
        if self._has_written(at, value):
            return
        if isinstance(value, Selected):
            self._put_selected(at, value)
            return
        value = as_array(value) if isinstance(value, list | tuple) else told(value)
        if self.entered(value):
            self[at] = value
            return
        if isinstance(at, list | tuple):
            at = normal(at)
        at = _known(at)
        check_index(at, self)
        self.w.write(at, value)

    def _put_selected(self, at: Index, value: Selected) -> None:
        """Write what a mask selects where the same mask holds."""
        if not isinstance(at, Traced) or at.shape != self.shape or not is_same(value.mask, at):
            value.refuse("a write where another mask holds")
        if not np.can_cast(value.dtype, self.w.buffer.dtype):
            value.refuse(f"a write into an array of {self.w.buffer.dtype}")
        self[...] = op("where")(at, value.now(), self)

    def assign_all(self, value: Array) -> Any:
        """Every element gets a value: an in-place operation."""
        if self.entered(value):
            return self.assign_all(value)
        self._refuse_growth(type_of(value))
        self.w.write(Ellipsis, value)
        return self

    def give(self, array: np.ndarray) -> None:
        """A plain view of the content was given away."""
        self.w.give(array)


# --- small things ---------------------------------------------------------------------------------


def _tuple(at: Index) -> tuple[Any, ...]:
    return at if isinstance(at, tuple) and not isinstance(at, Step) else (at,)


def _one_place(a: Index, b: Index) -> bool:
    """Whether two indices have the same ends, as those of x[i:j] += v have."""
    pairs = zip(_tuple(a), _tuple(b), strict=False)
    ends = [("start", "stop", "step")] * len(_tuple(a))
    return len(_tuple(a)) == len(_tuple(b)) and all([
        p is q or (isinstance(p, slice) and isinstance(q, slice)
                   and all([getattr(p, e) is getattr(q, e) for e in names]))
        for (p, q), names in zip(pairs, ends, strict=True)
    ])  # fmt: skip


def _is_integer(p: object) -> bool:
    """Whether a part of an index is a staged number."""
    return isinstance(p, Traced) and not p.shape and p.dtype.kind in "iu"


def _is_staged(p: Tree) -> bool:
    """Whether a part of an index is staged, or has staged numbers in a list."""
    if issubclass(type(p), Traced):  # which `isinstance` of another class would ask for its class
        return True
    return isinstance(p, list | tuple) and any(map(_is_staged, p))


def _staged_parts(parts: Any) -> Iterator[Any]:
    """What is staged in an index: places, and the ends of slices."""
    for p in parts:
        if isinstance(p, slice):
            yield from _staged_parts((p.start, p.stop, p.step))
        elif isinstance(p, list | tuple):
            yield from _staged_parts(p)
        elif issubclass(type(p), Traced):
            yield p


def _as_stored(value: Any, dtype: np.dtype, at: Any) -> Any:
    """A staged number as an array of whole numbers stores it.

    Where NumPy converts an array it casts; Python's numbers, and NumPy's where no array is between,
    are converted by `int`, which may raise.
    """
    if dtype.kind not in "iu" or not issubclass(type(value), Scalar) or value.dtype == dtype:
        return value
    if value.dtype.kind != "f" and (value.dtype.kind != "i" or value.weak is not True):
        return value
    if value.weak is False and (dtype.kind == "u" or not is_basic(at)):
        return value
    return op("stored")(value, dtype=dtype)


def _is_number(p: object) -> bool:
    return isinstance(p, Boxed) and not p.shape


def _all_integers(at: Index) -> bool:
    return all([_is_number(p) or type(p) in (int, np.int64) for p in _tuple(at)])


def boxes(params: object) -> Any:
    """The boxes in parameters."""
    if isinstance(params, Boxed):
        yield True
    elif isinstance(params, tuple | list):
        for p in params:
            yield from boxes(p)
    elif isinstance(params, dict):
        yield from boxes(list(params.values()))


def _is_view(at: Shaped) -> bool:
    """Whether an index has no arrays; beside these an integer would count as one."""
    return is_basic(tuple([0 if _is_number(p) else p for p in _tuple(at)]))


def _only_positions(at: Any, ndim: int) -> tuple[Any, ...]:
    """An index with slices in place of `...`, and positions in place of plain masks."""
    at = _tuple(at)
    masks = [isinstance(p, np.ndarray) and p.dtype == bool for p in at]
    at = tuple([q for p, m in zip(at, masks, strict=True) for q in (np.nonzero(p) if m else (p,))])
    k = next((k for k, p in enumerate(at) if p is Ellipsis), None)
    if k is None:
        return at
    others = [*at[:k], *at[k + 1 :]]
    whole = (slice(None),) * (ndim - sum([p is not None for p in others]))
    return (*at[:k], *whole, *at[k + 1 :])


def _with(x: Boxed, at: tuple[Any, ...], y: Boxed, act: Callable[..., Any] | None) -> Boxed:
    """x with y, or act(what is there, y), at one position."""
    y = act(op("index")(x, at=at), y) if act else y
    return put(x.emitter, x, at, y if y.dtype == x.dtype else op("astype")(y, dtype=x.dtype))


def _place(p: Any, shape: tuple[int, ...], j: tuple[int, ...]) -> Any:
    """One number of an index array, where all are broadcast to a shape."""
    if isinstance(p, Boxed):
        whole = op("broadcast_to")(p, shape=shape) if p.shape != shape else p
        return op("index")(whole, at=j)
    return int(np.broadcast_to(p, shape)[j])


def _masks(at: Index) -> Any:
    return [isinstance(p, Boxed) and p.dtype.kind == "b" for p in _tuple(at)]


def _unboxed(p: object) -> Any:
    return p.var if isinstance(p, Boxed) else p


def _shape_at(shape: tuple[int, ...], at: tuple[Any, ...]) -> tuple[int, ...]:
    """The shape of a part of an array."""
    return np.empty(shape, bool)[sampled(at)].shape


def _lean(value: np.ndarray, t: ArrayType) -> np.ndarray:
    """Without the unit axes in front that NumPy lets a write have."""
    lead = value.ndim - len(t.shape)
    return value.reshape(value.shape[lead:]) if lead > 0 and value.size == t.size else value
