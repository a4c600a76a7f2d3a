"""Lists of the function that is captured: where a staged number says which item, arrays hold them.

A list that grows from round to round, or is read or written at a staged place, is *stacked*: arrays
hold its items, one array for each number of an item, and its length is a number of the program
where it depends on values.  The list stays the object that it is, so every name of it sees that.
It is stacked where it was made, before the form that asks for it: the form is given up by `Wanted`,
and written again.

    List       a list that the function makes; a list like any other
    Stacked    the same list, once arrays hold its items
"""

import copy
import operator
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, NoReturn, SupportsIndex

import numpy as np

from lineara.errors import OutOfRoom, StagingError, StructureError, user_line
from lineara.facts.hints import Index, Leaf, Shaped, Tree, Value
from lineara.facts.primitive import op
from lineara.facts.types import show_type
from lineara.ops.shape import HeldAsArray, as_array
from lineara.ops.value_checks import checked
from lineara.python.container_copies import ShownAs
from lineara.python.user_code import reading
from lineara.staging.capture.joins import held, is_leaf, join_leaf, same_constant
from lineara.staging.control_flow import joined, tracing
from lineara.staging.staged_arrays import Aliases, StagedArray
from lineara.staging.staged_level import EXACT, Seen, StagedLevel, seen, written_in_list
from lineara.tape.node import Traced
from lineara.tape.strides import in_c_order, packed, strides_of
from lineara.trees import LEAF, Structure, flatten, unflatten
from lineara.trees.kinds import Answering, Kind, ListKind

ITEM = "an item of a list"
WHERE = "in one list, which is held as an array since staged values say how it is read or grows"


def is_staged(v: Leaf) -> bool:
    """Whether a value is staged: not known while the program is written."""
    return isinstance(v, Traced) and not v.known


# --- what is known of the items -------------------------------------------------------------------


class Example(NamedTuple):
    """What one item shows of all: its leaves, and what is known of those that are numbers."""

    structure: Structure
    leaves: Sequence[Any]
    seen: Sequence[Seen | None]

    @classmethod
    def of(cls, item: Tree) -> "Example":
        """What an item shows; one that can be changed itself is refused."""
        if inner := held(item):
            raise StagingError(
                f"a list holds a {type(inner[0]).__name__}, and is read or grows as staged values "
                "say: there the items are numbers, arrays, and tuples of them; use an array of "
                "more axes, or a list for each part"
            )
        leaves, structure = flatten(item)
        known = [_known(v) if is_leaf(v) else None for v in leaves]
        return cls(structure, leaves, known)


def _known(v: Shaped) -> Seen:
    if np.shape(v) and not in_c_order(tuple(np.shape(v)), strides_of(v)):
        raise StagingError(
            "a list that is read or grows as staged values say holds an array that does not lie in "
            "C order; put a copy into it, a.copy()"
        )
    like = seen(v)
    return like._replace(lay=None, weak=like.weak if like.weak in (True, False) else None)


class Form(NamedTuple):
    """What all items of a list are: constants, and numbers and arrays of one type."""

    structure: Structure
    constants: tuple[Any, ...]  # None in the places of numbers
    likes: tuple[Seen | None, ...]  # None for a constant

    @classmethod
    def of(cls, examples: Sequence[Example]) -> "Form":
        """What items are that show this."""
        first = examples[0]
        for e in examples:
            if e.structure != first.structure:
                raise StructureError(
                    f"{ITEM} is {first.structure} and {e.structure} {WHERE}; make it the same"
                )
        likes = []
        for k, known in enumerate(zip(*[e.seen for e in examples], strict=True)):
            leaves, numbers = [e.leaves[k] for e in examples], [t for t in known if t is not None]
            constant = not numbers and all([same_constant(v, leaves[0]) for v in leaves])
            if not constant and len(numbers) < len(known):
                shown = " and ".join(dict.fromkeys(map(_shown, leaves)))
                raise StructureError(
                    f"{ITEM} is {shown} {WHERE}; what is no number must be the same there"
                )
            join_leaf(ITEM, leaves, known, WHERE)
            likes.append(None if constant else joined(numbers)._replace(lay=None))
        constants = [None if t else v for v, t in zip(first.leaves, likes, strict=True)]
        return cls(first.structure, tuple(constants), tuple(likes))

    @property
    def numbers(self) -> list[Seen]:
        """What is known of the numbers of an item."""
        return [t for t in self.likes if t is not None]

    def parts(self, leaves: Sequence[Any]) -> list[Any]:
        """The numbers among the leaves of an item."""
        return [v for v, t in zip(leaves, self.likes, strict=True) if t is not None]

    def item(self, parts: Iterable[Any]) -> Any:
        """An item with these numbers."""
        left = iter(parts)
        pairs = zip(self.constants, self.likes, strict=True)
        return unflatten(self.structure, [c if t is None else next(left) for c, t in pairs])


def _shown(v: Leaf) -> str:
    return repr(v) if v is None or isinstance(v, str | bool | int | float) else show_type(v)


class Count(NamedTuple):
    """A length: a staged number, if it depends on values, and what has been added since."""

    base: Any  # None for none
    more: int

    def number(self) -> Any:
        """The length as a number, of the definition that is being written."""
        base, more = self
        return more if base is None else _sum(base, more) if more else base


class Token:
    """What lives as long as a list that holds copies of arrays, which may not be written then."""

    __slots__ = ("__weakref__", "version")

    def __init__(self) -> None:
        self.version = 0


class Wanted(BaseException):
    """A form is given up: a list is to be stacked where it was made.

    No handler of the user's, nor of who tries a form, is to catch it but the form at that place.
    """

    def __init__(
        self, values: "List", examples: Sequence[Example], rooms: int, ends: str | None = None
    ) -> None:
        super().__init__(values, examples, rooms)
        self.values, self.examples, self.rooms = values, examples, rooms
        self.ends = ends  # what a program says that finds the room too small

    def stack(self, level: StagedLevel) -> None:
        """Stack the list, where it was made in the definition that is being written."""
        if self.values.home is not level:
            raise self
        self.values.stack(self.examples, self.rooms)
        self.values.ends = self.ends or self.values.ends


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


class List(ShownAs, Answering, HeldAsArray, list):
    """A list that the function makes."""

    __slots__ = (
        "arrays", "ends", "examples", "extent", "form", "home", "most", "peak", "sources",
        "token",
    )  # fmt: skip
    _lineara_shown = list
    _lineara_kind = _OfLists(list, list)
    home: Any
    __hash__ = None  # type: ignore[assignment]

    def as_array(self) -> Any:
        """None: the items are converted one by one."""
        return None

    def stack(self, examples: Sequence[Example], rooms: int) -> None:
        """Let arrays hold the items, with room for more, and for more kinds of items."""
        items = raw(self)
        self.examples = _few([*map(Example.of, items), *examples])
        form = Form.of(self.examples)
        columns = [form.parts(flatten(item)[0]) for item in items]
        size = len(items) + rooms
        arrays = []
        for k, like in enumerate(form.numbers):
            part = np.zeros((size, *like.type.shape), like.type.dtype)
            staged = [(i, c[k]) for i, c in enumerate(columns) if isinstance(c[k], Traced)]
            for i, c in enumerate(columns):
                part[i] = 0 if isinstance(c[k], Traced) else c[k]
            arrays.append(self.home.buffer(part))
            for i, v in staged:
                arrays[-1][i] = v
        self.form, self.arrays, self.token, self.sources = form, arrays, Token(), []
        self.extent = Count(None, len(items))
        self.most = self.peak = len(items)
        self._note([v for c in columns for v in c])
        list.clear(self)
        list.extend(self, STORED)
        self.__class__ = Stacked  # type: ignore[assignment]

    def want(self, examples: Sequence[Example], rooms: int = 0) -> None:
        """The list is to be stacked; that is done at once in the definition where it was made."""
        level = tracing()
        while level is not None and level is not self.home and level.hands_on:
            level = level.holder
        if level is not self.home or level is None:
            raise StagingError(
                "a list was read or written where a staged number says, in a function within the "
                "one that made it; pass an array"
            )
        wanted = Wanted(self, examples, rooms)
        innermost = tracing()
        assert innermost is not None, "there is the one where it was made"
        wanted.stack(innermost)

    def _note(self, values: Iterable[Any]) -> None:
        """Remember arrays of which the rows are copies: they may not be written from now on."""
        cells = [v.w.buffer for v in values if isinstance(v, StagedArray)]
        noted = [(weakref.ref(c), c.version, self.token) for c in cells]
        self.sources = [s for s in self.sources if s[0]() is not None] + noted
        self.home.shared.copied += noted

    def __getitem__(self, at) -> Any:
        if is_staged(at):
            self.want(())
            return self[at]
        y = list.__getitem__(self, at)
        return new(y) if type(at) is slice else y

    def __setitem__(self, at, value) -> None:
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

    def __add__(self, other) -> Any:
        y = list.__add__([*self], [*other] if isinstance(other, list) else other)
        return y if y is NotImplemented else new(y)

    def __mul__(self, n: SupportsIndex) -> Any:
        y = list.__mul__([*self], n)
        return y if y is NotImplemented else new(y)

    __rmul__ = __mul__

    def __copy__(self) -> Any:
        return self[:]

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        memo[id(self)] = made = new(())
        made.extend([copy.deepcopy(v, memo) for v in self])
        return made

    def __reduce_ex__(self, protocol: object) -> Any:
        return list, ([*self],)


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


class _Rows(NamedTuple):
    """What a stacked list is beside its arrays and its length, where that is staged."""

    form: Form
    length: int | None


class _OfStacked(Kind):
    """The kind of stacked lists.  Rebuilt from values that are no longer staged they are lists."""

    def keys(self, x: Any) -> list[Any]:
        return [*range(len(x.arrays) + (x.extent.base is not None))]

    def children(self, x: Any, keys: Sequence[Any]) -> list[Any]:
        return [*x.arrays, *([] if x.extent.base is None else [x.length])]

    def aux(self, x: Any) -> Any:
        return _Rows(x.form, None if x.extent.base is not None else x.extent.more)

    def make(self, aux, keys, values):
        arrays = values if aux.length is not None else values[:-1]
        length = values[-1] if aux.length is None else aux.length
        level = tracing()
        if level is not None and all([getattr(a, "level", None) is level for a in arrays]):
            return Stacked.of_arrays(level, aux.form, arrays, length)
        pairs = [*zip(arrays, aux.form.numbers, strict=True)]
        return [aux.form.item([_own(a[k], t) for a, t in pairs]) for k in range(int(length))]


def _own(v: Value, like: Seen) -> Any:
    """A number of a row as Python's or NumPy's, which it is where it may be either."""
    return v.item() if like.weak is not False and isinstance(v, np.generic) else v


class Stacked(List):
    """A list whose items arrays hold.

    arrays     for each number of an item, those of all items
    extent     how long it is
    most, peak what it may be and have been at most, in this round and branch
    ends       what the program says where it finds the room too small; None where it is reckoned
    sources    storage of arrays that it holds copies of, and how often these had been written
    """

    __slots__ = ()
    _lineara_kind = _OfStacked(list, list)

    @classmethod
    def of_arrays(
        cls, level: StagedLevel, form: Form, arrays: Sequence[Any], length: Any
    ) -> "Stacked":
        """A list that arrays hold."""
        made = cls()
        list.extend(made, STORED)
        made.home, made.form, made.arrays, made.ends = level, form, [*arrays], None
        made.examples = [Example(form.structure, form.constants, form.likes)]
        made.token, made.sources = Token(), []
        made.length = length
        made.most = made.peak = made.rooms
        return made

    @property
    def rooms(self) -> int:
        """For how many items there is room."""
        return self.arrays[0].shape[0] if self.arrays else 2**62

    @property
    def length(self) -> Any:
        """How long it is, a number or a staged one."""
        return self.extent.number()

    @length.setter
    def length(self, n: Any) -> None:
        if isinstance(n, Count):
            self.extent = n
            return
        if type(n) is not int and not is_staged(n):
            n = operator.index(n)
        self.extent = Count(n, 0) if is_staged(n) else Count(None, n)

    def length_is(self, n: int) -> bool:
        """Whether it is known to be so long."""
        return self.extent.base is None and self.extent.more == n

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

    def stack(self, examples: Sequence[Example], rooms: int) -> None:
        """Let the arrays hold more items, and items of more kinds."""
        if examples:
            self.examples = _few([*self.examples, *examples])
            form = Form.of(self.examples)
            for k, (old, like) in enumerate(zip(self.form.numbers, form.numbers, strict=True)):
                if old.type != like.type:
                    whole = self.arrays[k].now()
                    self.arrays[k] = self.home.buffer(op("astype")(whole, dtype=like.type.dtype))
            self.form = form
        size = self.most + rooms
        if rooms and size > self.rooms:
            for k, like in enumerate(self.form.numbers):
                part = _zeros(self.home, size, like)
                if self.rooms:
                    part[: self.arrays[k].shape[0]] = self.arrays[k]
                self.arrays[k] = part

    def _fitted(self, value: Tree) -> list[Any]:
        """The numbers of an item that is put into the list."""
        example = Example.of(value)
        if Form.of([*self.examples, example]) != self.form:
            self.want([example])
        parts = self.form.parts(example.leaves)
        self._note(parts)
        return parts

    def _grow(self) -> None:
        """There is one more item."""
        self.extent = Count(self.extent.base, self.extent.more + 1)
        self.most += 1
        self.peak = max(self.peak, self.most)

    def _end(self) -> Any:
        """The row behind the last item."""
        end = self.length
        if self.ends is None or not is_staged(end):
            return end
        full = op("less_equal")(self.rooms, end)
        return checked(end, full, OutOfRoom, self.ends)

    def append(self, value: Tree) -> None:
        """One more item."""
        parts = self._fitted(value)
        at_home = self.home is tracing()
        reckoned = self.ends is None and at_home
        if (reckoned and self.most >= self.rooms) or self.length_is(self.rooms):
            self.want((), self.most + 1 if at_home else 1)
        end = self._end()
        for a, v in zip(self.arrays, parts, strict=True):
            a[end] = v
        self._grow()

    def pop(self, at: SupportsIndex = -1) -> Any:
        """The last item, which goes; another one where the length is known."""
        if type(at) is not int or (at != -1 and at != self.extent.more - 1):
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
        n = self.length
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
            place = _sum(n, at) if at < 0 else min(at, self.rooms - 1)
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
        for a, like in zip(self.arrays, self.form.numbers, strict=True):
            v = a[place]
            if like.type.shape:
                v = self._copy(v)
                v.w.source = Aliases([self.token])
            elif isinstance(v, Traced):
                v = v.level.number(v.v, like.weak)
            else:
                v = _own(v, like)
            parts.append(v)
        return self.form.item(parts)

    def _copy(self, part: Shaped) -> Any:
        """A part of an array as an array of the definition that is being written."""
        level, shape = tracing() or self.home, tuple(np.shape(part))
        return level.buffer(part, packed(shape, strides_of(part), "C"))

    def _refuse_stale(self) -> None:
        for ref, version, _ in self.sources:
            cell = ref()
            if cell is not None and cell.version != version:
                raise written_in_list()

    def __getitem__(self, at) -> Any:
        if type(at) is not slice:
            return self._item(self._place(at))
        n = self.known_length("a slice")
        self._refuse_stale()
        parts = [self._copy(a[:n][at]) for a in self.arrays]
        return Stacked.of_arrays(tracing_level(), self.form, parts, len(range(n)[at]))

    def __setitem__(self, at, value) -> None:
        if type(at) is slice:
            self._as_list("__setitem__")(at, value)
            return
        place = self._place(at, "list assignment index out of range")
        for a, v in zip(self.arrays, self._fitted(value), strict=True):
            a[place] = v

    def __len__(self) -> int:
        return self.known_length("the length")

    def as_array(self) -> Any:
        """The items as one array, where they are numbers, arrays or tuples of as many of a type."""
        n = self.known_length("an array")
        self._refuse_stale()
        parts = [self._copy(a[:n]) for a in self.arrays]
        if self.form.structure == LEAF and parts:
            return parts[0]
        flat = self.form.structure == flatten((0,) * len(parts))[1]
        same = len({like.type for like in self.form.numbers}) == 1
        if not flat or not same or not n:
            return as_array([*self])
        axes = (1, 0, *range(2, parts[0].ndim + 1))
        return op("permute_dims")(op("stack")(*parts), axes=axes)

    def __repr__(self) -> str:
        return repr([*self])


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
for _class in (List, Stacked):
    _class.__name__ = _class.__qualname__ = "list"
_Through.__name__ = "list_iterator"


def raw(x: List) -> list[Any]:
    """The items of a list that is not stacked."""
    return list.__getitem__(x, slice(None))


def _few(examples: Iterable[Example]) -> list[Example]:
    """One example of each kind."""
    kinds: dict[Any, Example] = {}
    for e in examples:
        whole = [type(v) is int and abs(v) <= EXACT for v in e.leaves]
        pairs = zip(e.leaves, e.seen, strict=True)
        constants = [id(v) if t is None else None for v, t in pairs]
        kinds.setdefault((e.structure, *e.seen, *whole, *constants), e)
    return [*kinds.values()]


def tracing_level() -> StagedLevel:
    """The definition that is being written."""
    level = tracing()
    assert level is not None, "lists are stacked in traces"
    return level


def _sum(n: Value, k: int) -> Any:
    y = op("add")(n, k)
    return y.level.number(y.v, True)


def _zeros(level: StagedLevel, size: int, like: Seen) -> Any:
    """An array that items are written into."""
    return level.buffer(np.zeros((size, *like.type.shape), like.type.dtype))


class Extents:
    """How long the stacked lists that a block reaches become in it, beside how long they were."""

    def __init__(self, lists: Iterable[Stacked]) -> None:
        self.before = [(x, x.most, x.peak) for x in lists]
        for x, most, _ in self.before:
            x.peak = most

    def end(self) -> list[tuple[Stacked, int, int]]:
        """How much longer each may be at the end, and was on the way; they are as before."""
        grown = []
        for x, most, peak in self.before:
            grown.append((x, x.most - most, x.peak - most))
            x.most, x.peak = most, peak
        return grown


def longest(blocks: Iterable[Sequence[tuple[Stacked, int, int]]]) -> list[tuple[Stacked, int, int]]:
    """How much longer lists may be after one of several blocks."""
    most: dict[int, tuple[Stacked, int, int]] = {}
    for x, *grown in [g for block in blocks for g in block]:
        _, more, peak = most.get(id(x), (x, 0, 0))
        most[id(x)] = x, max(more, grown[0]), max(peak, grown[1])
    return [*most.values()]


def lengthen(
    level: StagedLevel, grown: Iterable[tuple[Stacked, int, int]], rounds: int = 1
) -> None:
    """Lists are longer after a form; where they were made there must be room for that."""
    longer = [(x, max(more, 0), most) for x, more, most in grown if x.ends is None]
    peaks = [x.most + more * (rounds - 1) + most for x, more, most in longer]
    for (x, *_), peak in zip(longer, peaks, strict=True):
        if x.home is level and peak > x.rooms:
            raise Wanted(x, (), peak - x.most)
    for (x, more, _), peak in zip(longer, peaks, strict=True):
        x.peak, x.most = max(x.peak, peak), x.most + more * rounds
