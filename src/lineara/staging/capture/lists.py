"""Lists of the function that is captured: where a staged number says which item, arrays hold them.

A list that grows from round to round, or is read or written at a staged place, is *stacked*: arrays
hold its items, one array for each number of an item, and its length is a number of the program
where it depends on values.  The list stays the object that it is, so every name of it sees that.
It is stacked where it was made, before the form that asks for it: the form is given up by `Wanted`,
and written again.

    List       a list that the function makes; a list like any other
    Stacked    the same list, once arrays hold its items
    Row        the same list, once it is a row of a pool that another list refers to
"""

import copy
import operator
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ClassVar, NamedTuple, NoReturn, SupportsIndex

import numpy as np

from lineara.errors import StagingError, user_line
from lineara.facts.hints import Index, Shaped, Tree, Value
from lineara.facts.primitive import op
from lineara.ops.shape import HeldAsArray, as_array
from lineara.ops.value_checks import checked
from lineara.python.container_copies import ShownAs
from lineara.python.user_code import reading
from lineara.staging.capture.list_items import (
    Count,
    Example,
    Form,
    Growing,
    Inner,
    Listed,
    Pool,
    Rows,
    Token,
    Wanted,
    few,
    form_of,
    is_staged,
    is_within,
    settled,
    sum_of,
    tracing_level,
    zeros,
)
from lineara.staging.control_flow import tracing
from lineara.staging.staged_arrays import Note, StagedArray, note_aliases
from lineara.staging.staged_level import Seen, StagedLevel, written_in_list
from lineara.tape.node import Array, Traced
from lineara.tape.strides import packed, strides_of
from lineara.trees import LEAF, flatten
from lineara.trees.kinds import Answering, Kind, ListKind

# --- lists ----------------------------------------------------------------------------------------


class _OfLists(ListKind):
    """The kind of lists: what is rebuilt as a trace goes on is one of the function's own."""

    def make(self, aux, keys, values):
        return new(values)


def new(values: Iterable[Any]) -> Any:
    """A new list of the function that is captured."""
    level = tracing()
    if level is None or reading() is None:
        return list(values)
    made = List(values)
    made.home, made.ends = level, None
    return made


def one_place(at: Any) -> Any:
    """The index of an item: of an array of constants, the number that it holds."""
    if not isinstance(at, Array):
        return at
    constant = at.constant()
    if constant is None and not at.shape:
        return at
    return operator.index(np.zeros(at.shape, int) if constant is None else constant)  # may raise


class List(ShownAs, Answering, HeldAsArray, Growing, Listed, list):
    """A list that the function makes."""

    __slots__ = (
        "arrays", "ends", "examples", "extent", "form", "home", "most", "peak", "pool", "row",
        "sources", "token",
    )  # fmt: skip
    _lineara_shown = list
    _lineara_kind = _OfLists(list, list)
    holds_items: ClassVar[bool] = True  # itself, and not in arrays
    _lineara_own: dict[str, Callable[..., Any]]
    __hash__: ClassVar[None] = None  # type: ignore[assignment]

    def as_array(self) -> Any:
        """None: the items are converted one by one."""
        return None

    def inner(self) -> Inner:
        """What it shows of all lists in its place."""
        items = raw(self)
        return Inner(few(map(Example.of, items)), len(items), len(items))

    def stack(self, examples: Sequence[Example], rooms: int) -> None:
        """Let arrays hold the items, with room for more, and for more kinds of items."""
        items = raw(self)
        every = [*map(Example.of, items), *examples]
        form = form_of(self.home, None, every)
        self.form: Form = form
        self.examples = few(every, form)
        for pool in {id(p): p for p in form.pools if p}.values():
            lists = sum([type(v) is not Row for v in items])
            if pool.home is self.home:
                pool.want((), rooms + lists)
        columns = [form.parts(self.entered(e)) for e in every[: len(items)]]
        self.arrays = [
            filled(zeros(self.home, (len(items) + rooms,), like), (), [c[k] for c in columns])
            for k, like in enumerate(form.numbers)
        ]
        self.token, self.sources = Token(), list[Note]()
        self.extent = Count(None, len(items))
        self.most = self.peak = len(items)
        self._note([v for c in columns for v in c])
        list.clear(self)
        list.extend(self, STORED)
        self.__class__ = Stacked  # type: ignore[assignment]

    def entered(self, example: Example) -> list[Any]:
        """The leaves of an item, with the numbers of the rows for the lists among them."""
        pairs = zip(example.leaves, self.form.pools, example.inner, strict=True)
        return [v if inner is None else row_of(pool, v) for v, pool, inner in pairs]

    def want(self, examples: Sequence[Example], rooms: int = 0) -> None:
        """The list is to be stacked; that is done at once in the definition where it was made."""
        settled(Wanted(self, examples, rooms))

    def _note(self, values: Iterable[Any]) -> None:
        """Remember arrays of which the rows are copies: they may not be written from now on."""
        cells = [v.w.buffer for v in values if isinstance(v, StagedArray)]
        noted = [*map(Note, cells)]
        known = [n for n in self.sources if n.store is not None or n.is_written]
        self.sources = known + noted
        self.home.shared.copied += [(n, self.token) for n in noted]

    def __getitem__(self, at: Any) -> Any:
        at = one_place(at)
        if is_staged(at):
            self.want(())
            return self[at]
        y = list.__getitem__(self, at)
        return new(y) if type(at) is slice else y

    def __setitem__(self, at: Any, value: Any) -> None:
        at = one_place(at)
        if is_staged(at):
            self.want([Example.of(value)])
            self[at] = value
        else:
            list.__setitem__(self, at, value)

    def __iter__(self) -> Iterator[Any]:
        return _Through(self, range(0, sys.maxsize))

    def __reversed__(self) -> Iterator[Any]:
        return _Through(self, range(len(self) - 1, -1, -1))

    def copy(self) -> Any:
        """A new list with the same items."""
        return self[:]

    def __add__(self, other: Any) -> Any:
        if isinstance(other, Traced | np.ndarray | np.generic):  # which adds to each item
            return NotImplemented
        y = list.__add__([*self], [*other] if isinstance(other, list) else other)
        return y if y is NotImplemented else new(y)

    def __mul__(self, n: SupportsIndex) -> Any:
        if isinstance(n, Array | np.ndarray):
            return NotImplemented
        y = list.__mul__([*self], n)
        return y if y is NotImplemented else new(y)

    def __rmul__(self, n: SupportsIndex) -> Any:
        return self * n

    def __copy__(self) -> Any:
        return self[:]

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        memo[id(self)] = made = new(())
        made.extend([copy.deepcopy(v, memo) for v in self])
        return made

    def __reduce_ex__(self, protocol: object) -> Any:
        return list, ([*self],)


class Attempt:
    """What is stacked while a form is tried, and is as it was where that cannot be one."""

    def __init__(self, level: StagedLevel) -> None:
        self.level: StagedLevel = level
        self.mark: Any = level.mark()
        self.bindings: int = len(level.out.bindings)
        self.copied: int = len(level.shared.copied)
        self.lists: list[tuple[Any, Any]] = []  # and their items; None for one that was stacked

    def stack(self, wanted: Wanted) -> Exception | None:
        """Stack a list that the form has asked for; why that cannot be done."""
        x = wanted.values
        items = raw(x) if type(x) is List else None
        try:
            wanted.stack(self.level)
        except Exception as e:
            return e
        self.lists.append((x, items))
        return None

    def undo(self) -> None:
        """The lists hold their items again, unless lists among these have become rows."""
        if not all([items is not None and not any(x.form.pools) for x, items in self.lists]):
            return
        self.level.back_to(self.mark)
        self.level.forget(self.bindings)
        del self.level.shared.copied[self.copied :]
        now = reading()
        for region in now.regions if now else ():
            stacked = [id(x) for x, _ in self.lists]
            region.stacked = [x for x in region.stacked if id(x) not in stacked]
        for x, items in self.lists:
            x.__class__, x.ends = List, None
            list.__setitem__(x, slice(None), items)
        self.lists = []


class _Through:
    """An iterator of a list, which may come to be stacked, or to grow, while that goes on."""

    __slots__ = ("places", "values")

    def __init__(self, values: List, places: range) -> None:
        self.values, self.places = values, places

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        """The next item."""
        x = self.values
        n = x.known_length("the items") if isinstance(x, Stacked) else list.__len__(x)
        if not self.places or self.places[0] >= n:
            self.places = range(0)
            raise StopIteration
        k, self.places = self.places[0], self.places[1:]
        return x[k]

    def __reduce__(self) -> Any:
        return iter, (self.values,), len(self.places)


class _Instead:
    """What lies in the storage of a stacked list, for code that does not ask the list."""

    def _refuse(self, *_: object) -> NoReturn:
        raise StagingError(
            "C code read the storage of a list that is held as an array, since staged values say "
            "how it is read or grows; give it an array, np.array(values)"
        )

    __float__ = __index__ = __iter__ = __len__ = __bool__ = __add__ = __mul__ = _refuse
    __lt__ = __gt__ = __le__ = __ge__ = __eq__ = __ne__ = __radd__ = __rmul__ = _refuse  # type: ignore[assignment]
    __hash__ = object.__hash__


STORED = (_Instead(),) * 3  # so many are compared wherever they are a heap


class _Value(NamedTuple):
    """What a stacked list is beside its arrays and its length, where that is staged."""

    form: Form  # with what is known of rows
    length: int | None


class _OfStacked(Kind):
    """The kind of stacked lists.  Rebuilt from values that are no longer staged they are lists."""

    def keys(self, x: Any) -> list[Any]:
        return [*range(len(self.children(x, ())))]

    def children(self, x: Any, keys: Sequence[Any]) -> list[Any]:
        rows = [v for p in x.form.pools if p for v in p.parts()]
        return [*x.arrays, *([] if x.extent.base is None else [x.length]), *rows]

    def aux(self, x: Any) -> Any:
        return _Value(x.form.by_value(), None if x.extent.base is not None else x.extent.more)

    def make(self, aux, keys, values):
        form, level, parts = aux.form, tracing(), iter(values)
        arrays = [next(parts) for _ in form.numbers]
        length = next(parts) if aux.length is None else aux.length
        if level is not None and all([getattr(a, "level", None) is level for a in arrays]):
            pools = [p and Pool.of_parts(level, p, parts) for p in form.pools]
            return Stacked.of_arrays(level, form._replace(pools=tuple(pools)), arrays, length)
        return [*_plain(form, arrays, parts)[: int(length)]]


def _plain(form: Form, arrays: Sequence[Any], parts: Iterator[Any]) -> list[Any]:
    """The items that arrays hold, which are no longer staged; rows are lists."""
    form = form._replace(pools=tuple([p and _plain_rows(p, parts) for p in form.pools]))
    pairs = [*zip(arrays, form.numbers, strict=True)]
    items = range(len(arrays[0]) if arrays else 0)
    return [form.item([_own(a[k], t) for a, t in pairs], lambda rows, v: rows[v]) for k in items]


def _plain_rows(known: Rows, parts: Iterator[Any]) -> Any:
    """The rows of a pool as lists, by their numbers."""
    arrays = [next(parts) for _ in known.form.numbers] if known.form else []
    each = next(parts) if known.length is None else [known.length] * len(arrays[0])
    if known.form is None or not arrays:
        return [[] for _ in each]
    inner = known.form._replace(
        pools=tuple([p and _plain_rows(p, parts) for p in known.form.pools])
    )
    pairs = [*zip(arrays, inner.numbers, strict=True)]
    return [
        [
            inner.item([_own(a[r][k], t) for a, t in pairs], lambda rows, v: rows[v])
            for k in range(n)
        ]
        for r, n in enumerate(each)
    ]


def _own(v: Value, like: Seen) -> Any:
    """A number of a row as Python's or NumPy's, which it is where it may be either."""
    return v.item() if like.weak is not False and isinstance(v, np.generic) else v


class Stacked(List):
    """A list whose items arrays hold.

    arrays     for each number of an item, those of all items
    sources    storage of arrays that it holds copies of, and how often these had been written
    """

    __slots__ = ()
    _lineara_kind = _OfStacked(list, list)
    holds_items: ClassVar[bool] = False

    @classmethod
    def of_arrays(
        cls, level: StagedLevel, form: Form, arrays: Sequence[Any], length: Any
    ) -> "Stacked":
        """A list that arrays hold."""
        made = cls()
        list.extend(made, STORED)
        made.home, made.form, made.arrays, made.ends = level, form, [*arrays], None
        made.examples = [Example(form.structure, form.constants, form.likes, form.lists)]
        made.token, made.sources = Token(), []
        made.length = length
        made.most = made.peak = made.rooms
        return made

    @property
    def rooms(self) -> int:
        """For how many items there is room."""
        return self.arrays[0].shape[0] if self.arrays else 2**62

    @property
    def mark(self) -> tuple[Any, int]:
        """What is another one where it became longer or shorter."""
        return self.extent

    def known_length(self, what: str) -> int:
        """How long it is, where that is known."""
        if self.extent.base is not None:
            raise StagingError(
                f"{what} of a list whose length depends on staged values: how many items there are "
                "is not known while a program is written; loop over the list, or take sum(values) "
                "or values[i]"
            )
        return self.extent.more

    # --- which items there are --------------------------------------------------------------------

    def inner(self) -> Inner:
        """What it shows of all lists in its place."""
        n = None if self.extent.base is not None else self.extent.more
        size = n if n is not None else self.rooms if self.arrays else self.most
        return Inner(self.examples, size, n)

    def stack(self, examples: Sequence[Example], rooms: int) -> None:
        """Let the arrays hold more items, and items of more kinds."""
        if examples:
            every = [*self.examples, *examples]
            form = form_of(self.home, self.form, every)
            self.examples = few(every, form)
            for k, (old, like) in enumerate(zip(self.form.numbers, form.numbers, strict=True)):
                if old.type != like.type:
                    whole = self.arrays[k].now()
                    self.arrays[k] = self.home.buffer(op("astype")(whole, dtype=like.type.dtype))
            self.form = form
        size = self.most + rooms
        if rooms and size > self.rooms:
            for k, like in enumerate(self.form.numbers):
                part = zeros(self.home, (size,), like)
                if self.rooms:
                    part[: self.arrays[k].shape[0]] = self.arrays[k]
                self.arrays[k] = part

    def _fitted(self, value: Tree) -> list[Any]:
        """The numbers of an item that is put into the list."""
        example = Example.of(value)
        if self.form is None or not self.form.fits(example, self.examples):
            self.want([example])
        parts = self.form.parts(self.entered(example))
        self._note(parts)
        return parts

    def append(self, value: Tree) -> None:
        """One more item."""
        parts = self._fitted(value)
        end = self.end()
        for a, v in zip(self.arrays, parts, strict=True):
            a[end] = v
        self.grow()

    def pop(self, at: SupportsIndex = -1) -> Any:
        """Remove the last item and return it; `at` may say another one if the length is known."""
        last = self.extent.more - 1 if self.extent.base is None else -1
        if type(at) is not int or at not in (-1, last):
            return self._as_list("pop")(at)
        item = self._item(self._place(-1, "pop from empty list"))
        self.extent = Count(self.extent.base, self.extent.more - 1)
        self.most -= 1
        return item

    def extend(self, values: Iterable[Any]) -> None:
        """More items."""
        for v in [*values]:
            self.append(v)

    def __iadd__(self, values: Iterable[Any]) -> Any:
        self.extend(values)
        return self

    def clear(self) -> None:
        """No item."""
        self.extent, self.most = Count(None, 0), 0

    def _as_list(self, name: str) -> Callable[..., Any]:
        """A method of lists, once the list is one again."""
        if self.home is not tracing():
            raise StagingError(
                f"{name} of a list that is held as an array, since staged values say how it is "
                "read or grows: it can be read and written at one place, append and pop there"
            )
        items = [*self]
        self.__class__ = List  # type: ignore[assignment]
        list.__setitem__(self, slice(None), items)
        return getattr(self, name)

    # --- items ------------------------------------------------------------------------------------

    def _place(self, at: Any, text: str = "list index out of range") -> Any:
        """The row of an item; a check where it depends on values whether there is one."""
        n, at = self.length, one_place(at)
        if not is_staged(at):
            at = operator.index(at)
            if not is_staged(n) and -n <= at < n:
                return at % n
            level = tracing_level()
            if not is_staged(n) and self.home is level:
                raise IndexError(text)
            if not self.rooms:
                self.want((), 1)
            n = n if is_staged(n) else level.number(level.as_box(np.int64(n)), True)
            place = sum_of(n, at) if at < 0 else min(at, self.rooms - 1)
            fails = op("less")(place, 0) if at < 0 else op("less_equal")(n, at)
        elif self.length_is(self.rooms):
            return at
        else:
            negative = op("less")(at, 0)
            place = op("where")(negative, op("add")(at, n), at)
            fails = op("logical_or")(op("less")(place, 0), op("greater_equal")(place, n))
        checked(fails, fails, IndexError, text, line=user_line())
        return place

    def _item(self, place: Index) -> Any:
        """The item of a row; its arrays are copies that may not be written."""
        self._refuse_stale()
        parts = []
        each = zip(self.arrays, self.form.numbers, self.form.rows(), strict=True)
        for a, like, pool in each:
            v: Any = place if pool and _is_in_order(a) else a[place]
            if like.type.shape:
                v = self._copy(v)
                kept = [n.store for n in self.sources if n.store is not None]
                note_aliases([(v, [self.token, *kept])])
            elif isinstance(v, Traced):
                v = v.level.number(v.v, like.weak)
            else:
                v = _own(v, like)
            parts.append(v)
        return self.form.item(parts, Row.of)

    def _copy(self, part: Shaped) -> Any:
        """A part of an array as an array of the definition that is being written."""
        level, shape = tracing() or self.home, tuple(np.shape(part))
        return level.buffer(part, packed(shape, strides_of(part), "C"))

    def _refuse_stale(self) -> None:
        if any([n.is_written for n in self.sources]):
            raise written_in_list()

    def __getitem__(self, at: Any) -> Any:
        if type(at) is not slice:
            return self._item(self._place(at))
        n = self.known_length("a slice")
        self._refuse_stale()
        parts = [self._copy(a[:n][at]) for a in self.arrays]
        return Stacked.of_arrays(tracing_level(), self.form, parts, len(range(n)[at]))

    def __setitem__(self, at: Any, value: Any) -> None:
        if type(at) is slice:
            self._as_list("__setitem__")(at, value)
            return
        place = self._place(at, "list assignment index out of range")
        for a, v in zip(self.arrays, self._fitted(value), strict=True):
            a[place] = v

    def __len__(self) -> int:
        return self.known_length("the length")

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        pools = tuple([p and copied(p, memo) for p in self.form.pools])
        arrays, form = [self._copy(a) for a in self.arrays], self.form._replace(pools=pools)
        memo[id(self)] = made = Stacked.of_arrays(tracing_level(), form, arrays, self.extent)
        return made

    def as_array(self) -> Any:
        """The items as one array, where they are numbers, arrays or tuples of as many of a type."""
        n = self.known_length("an array")
        self._refuse_stale()
        parts = [self._copy(a[:n]) for a in self.arrays]
        if self.form.structure == LEAF and parts:
            (pool,) = self.form.rows()
            return parts[0] if pool is None else _items(pool, parts[0])
        flat = self.form.structure == flatten((0,) * len(parts))[1]
        same = len({like.type for like in self.form.numbers}) == 1
        if not flat or not same or not n or any(self.form.rows()):
            return as_array([*self])
        axes = (1, 0, *range(2, parts[0].ndim + 1))
        return op("permute_dims")(op("stack")(*parts), axes=axes)

    def __repr__(self) -> str:
        return repr([*self])


def _is_in_order(a: Any) -> bool:
    """Whether an array has at each place the number of that place."""
    a.w.buffer.here()
    content = a.w.content()
    return isinstance(content, np.ndarray) and bool((content == np.arange(len(content))).all())


def _items(pool: Pool, rows: Any) -> Any:
    """The items of rows, by their numbers, as one array."""
    form, n = pool.form, pool.one
    if n is None or form is None or form.structure != LEAF or not pool.arrays:
        raise StagingError(
            "an array of a list of lists that is read or grows as staged values say: the lists "
            "must be known to be of one length, and hold numbers or arrays; make an array of each"
        )
    whole = pool.arrays[0][:, :n]
    (inner,) = form.rows()
    part = whole[rows]
    return part if inner is None else _items(inner, part)


def _used_outside() -> StagingError:
    return StagingError(
        "a list is used after the round of a staged loop, the branch or the function that has made "
        "the list of lists in which it stands; take a copy, row.copy()"
    )


class _OfRows(Kind):
    """The kind of rows: of a program that is being written, the number of the row."""

    def keys(self, x: Any) -> list[Any]:
        return [*range(len(self.children(x, ())))]

    def children(self, x: Any, keys: Sequence[Any]) -> list[Any]:
        whole = x.at_the_end()
        return [x.row] if whole is None else _STACKED.children(whole, keys)

    def aux(self, x: Any) -> Any:
        whole = x.at_the_end()
        return x.pool if whole is None else _STACKED.aux(whole)

    def make(self, aux, keys, values):
        if not isinstance(aux, Pool):
            return _STACKED.make(aux, keys, values)
        if not is_within(tracing(), aux.home):
            raise _used_outside()
        return Row.of(aux, values[0])


_STACKED = Stacked._lineara_kind


class Row(Stacked):
    """A list that is a row of a pool.

    pool    the pool
    row     the number of the row
    """

    __slots__ = ()
    _lineara_kind = _OfRows(list, tuple)  # not changed itself: the pool is

    @classmethod
    def of(cls, pool: Pool, row: Any) -> "Row":
        """The list of that number."""
        known = None if is_staged(row) else pool.rows.get(int(row))
        if known is not None:
            return known
        made = cls()
        list.extend(made, STORED)
        made.be(pool, row)
        return made

    def be(self, pool: Pool, row: Any) -> None:
        """Be the list of that number."""
        self.pool: Pool = pool
        self.row: Any = row if is_staged(row) else int(row)
        if type(self.row) is int:
            pool.rows[self.row] = self

    def at_the_end(self) -> Stacked | None:
        """The list with arrays of its own, where the program ends."""
        home: Any = self.home
        if not home.ends:
            return None
        if home.holder is not None:
            raise _used_outside()
        parts = [self._copy(a) for a in self.arrays]
        return Stacked.of_arrays(home, self.form, parts, self.extent)

    @property
    def home(self) -> StagedLevel:
        """The definition where the pool was made."""
        return self.pool.home

    @property
    def form(self) -> Any:
        """What the items of all rows are."""
        return self.pool.form

    @property
    def examples(self) -> list[Example]:
        """Of the items of all rows."""
        return self.pool.examples

    @property
    def token(self) -> Token:
        """That of the pool: the rows hold copies of arrays as long as it lives."""
        return self.pool.token

    @property
    def ends(self) -> str | None:
        """What a program says that finds the room of a row too small."""
        return self.pool.columns.ends

    @property
    def arrays(self) -> list[Any]:
        """For each number of an item, those of the row."""
        return [a[self.row] for a in self.pool.arrays]

    @property
    def sources(self) -> list[Note]:
        """The arrays that rows hold copies of."""
        return self.pool.sources

    @sources.setter
    def sources(self, notes: list[Note]) -> None:
        self.pool.sources = notes

    @property
    def rooms(self) -> int:
        """For how many items there is room."""
        return self.pool.width if self.pool.arrays else 2**62

    @property
    def most(self) -> int:
        """How long the longest row may be."""
        return self.pool.columns.most

    @most.setter
    def most(self, n: int) -> None:
        self.pool.columns.most = max(self.pool.columns.most, n)

    @property
    def peak(self) -> int:
        """How long the longest row may have been."""
        return self.pool.columns.peak

    @peak.setter
    def peak(self, n: int) -> None:
        self.pool.columns.peak = n

    @property
    def extent(self) -> Count:
        """How long it is."""
        pool: Any = self.pool
        if pool.each is None:
            return Count(None, pool.one)
        n = pool.each[self.row]
        return Count(n.level.number(n.v, True), 0) if isinstance(n, Traced) else Count(None, int(n))

    @extent.setter
    def extent(self, n: Count) -> None:
        if self.pool.each is None:
            self.pool.want([Inner((), 0, None)])
        each: Any = self.pool.each
        each[self.row] = n.number()

    @property
    def mark(self) -> tuple[Any, int]:
        """What is another one where a row became longer or shorter."""
        each = self.pool.each
        return (None, -1) if each is None else (each.w.buffer, each.w.buffer.version)

    def inner(self) -> Inner:
        """What it shows of all lists in its place."""
        return Inner((), 0, None, self.pool)

    def want(self, examples: Sequence[Example], rooms: int = 0) -> None:
        """There are to be other items in the rows, or more of them."""
        if examples:
            self.pool.want([Inner(examples, 0, self.pool.one)])
        if rooms:
            self.more_room(rooms)

    def more_room(self, rooms: int) -> None:
        """There is to be room for so many more items."""
        self.pool.columns.more_room(rooms)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return Row.of(copied(self.pool, memo), self.row)

    def _as_list(self, name: str) -> Callable[..., Any]:
        """A method of lists, of a list with these items, which are then those of the row."""

        def call(*args: Any, **options: Any) -> Any:
            items = List([*self])
            items.home, items.ends = tracing_level(), None
            y = getattr(items, name)(*args, **options)
            if len(items) != self.known_length("the items"):
                self.clear()
                self.extend(items)
            else:
                for k, v in enumerate(items):
                    self[k] = v
            return y

        return call


def copied(pool: Pool, memo: dict[int, Any]) -> Pool:
    """The copy of a pool that stands for it among what is copied with it."""
    if id(pool) not in memo:
        level = tracing_level()
        parts = iter([level.buffer(a) for a in pool.parts()])
        memo[id(pool)] = Pool.of_parts(level, pool.shape(), parts)
    return memo[id(pool)]


def row_of(pool: Pool, x: Any) -> Any:
    """The number of the row that a list is in a pool; it becomes one."""
    if isinstance(x, Row):
        return x.row
    if x.home is not tracing():
        settled(_RowWanted(x, [pool], 0))
    else:
        _become_row(x, pool)
    return x.row


class _RowWanted(Wanted):
    """A form is given up, as a list is to be a row of a pool where it was made."""

    def stack(self, level: StagedLevel) -> None:
        if self.values.home is not level:
            raise self
        _become_row(self.values, self.examples[0])


class TogetherWanted(Wanted):
    """A form is given up, as two lists are to be rows of one pool where they were made."""

    def __init__(self, a: List, b: List) -> None:
        super().__init__(a, [b], 0)

    def stack(self, level: StagedLevel) -> None:
        """Let both be rows."""
        a, (b,) = self.values, self.examples
        if a.home is not level or b.home is not level:
            raise self
        pool = Pool(level)
        for x in (a, b):
            _become_row(x, pool)


def _become_row(x: Any, pool: Pool) -> None:
    """Let a list be a new row of a pool."""
    if not is_within(x.home, pool.home):
        raise StagingError(
            "a list was put into a list of lists that a round of a staged loop, or a branch, "
            "makes, and was made before it; put a copy into it, row.copy()"
        )
    inner = x.inner()
    if not pool.fits(inner):
        pool.want([inner])
    row = pool.add()
    if isinstance(x, Stacked):
        for a, part in zip(pool.arrays, x.arrays, strict=True):
            n = min(part.shape[0], pool.width)
            a[row, :n] = part[:n]
        pool.sources += x.sources
    elif pool.form is not None:
        x.form = pool.form
        columns = [pool.form.parts(x.entered(e)) for e in map(Example.of, raw(x))]
        for k, a in enumerate(pool.arrays):
            filled(a, (row,), [c[k] for c in columns])
        x.sources = pool.sources
        x._note([v for c in columns for v in c])
        pool.sources = x.sources
    n = x.extent if isinstance(x, Stacked) else Count(None, len(raw(x)))
    if pool.each is not None:
        pool.each[row] = n.number()
    if not isinstance(x, Stacked):
        list.clear(x)
        list.extend(x, STORED)
    x.__class__ = Row
    made: Any = x
    made.be(pool, row)


def filled(a: Any, at: tuple[Any, ...], values: Sequence[Any]) -> Any:
    """An array, with these in the first places of a part of it: what is known at once."""
    n = len(values)
    known = np.zeros((n, *a.shape[len(at) + 1 :]), a.dtype)
    for i, v in enumerate(values):
        known[i] = 0 if isinstance(v, Traced) else v
    if n:
        a[(*at, slice(0, n))] = known
    for i, v in enumerate(values):
        if isinstance(v, Traced):
            a[(*at, i)] = v
    return a


def same_list(a: "Row", b: "Row") -> Any:
    """Whether two rows are one list."""
    if a.pool is not b.pool:
        return False
    if type(a.row) is int and type(b.row) is int:
        return a.row == b.row
    y: Any = op("equal")(a.row, b.row)
    return y.level.number(y.v, True)


def _read(name: str) -> Callable[..., Any]:
    def method(self: Stacked, *args: Any) -> Any:
        return getattr([*self], name)(*[[*a] if isinstance(a, Stacked) else a for a in args])

    return method


def _written(name: str) -> Callable[..., Any]:
    def method(self: Stacked, *args: Any, **options: Any) -> Any:
        return self._as_list(name)(*args, **options)

    return method


for _name in ("index", "count", "__contains__", "__eq__", "__ne__", "__lt__", "__le__", "__gt__",
              "__ge__"):  # fmt: skip
    setattr(Stacked, _name, _read(_name))
for _name in ("insert", "remove", "reverse", "sort", "__delitem__", "__imul__"):
    setattr(Stacked, _name, _written(_name))


def _as_it_is(name: str) -> Callable[..., Any]:
    """A method as the class has it that the list is of when it is called.

    What an argument is evaluated for may have stacked it since the method was looked up.
    """

    def method(self: List, *args: Any, **options: Any) -> Any:
        return type(self)._lineara_own[name](self, *args, **options)

    method.__name__ = name
    return method


for _class in (List, Stacked, Row):
    _class._lineara_own = {
        n: getattr(_class, n) for n in dir(list) if n[0] != "_"
    }  # before any of them is replaced
for _name in List._lineara_own:
    setattr(List, _name, _as_it_is(_name))
    for _class in (Stacked, Row):
        if _name in vars(_class):
            delattr(_class, _name)
for _class in (List, Stacked, Row):
    _class.__name__ = _class.__qualname__ = "list"
_Through.__name__ = "list_iterator"


def raw(x: List) -> list[Any]:
    """The items of a list that is not stacked."""
    return list.__getitem__(x, slice(None))
