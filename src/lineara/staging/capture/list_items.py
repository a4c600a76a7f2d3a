"""What arrays hold of lists: what is known of the items, where there is room for more, and rows.

The items of one list are alike: constants are the same, and each number or array is of one type.
An item that is a list itself is the number of a row in a `Pool`, which holds the items of all lists
that one list holds.  So they have names as Python's have: a list that stands in two places, or
under a name of its own, is one row.

    Example    what one item shows of all
    Form       what all items are
    Growing    what has a length, and room for more
    Pool       the rows of the lists that a list holds
    Wanted     a form is given up, as a list is to be held otherwise
"""

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from lineara.errors import OutOfRoom, StagingError, StructureError, with_article
from lineara.facts.hints import Leaf, Shaped, Tree, Value
from lineara.facts.primitive import op
from lineara.facts.types import show_type
from lineara.ops.value_checks import checked
from lineara.python.user_code import reading
from lineara.staging.capture.joins import held, is_leaf, join_leaf, same_constant
from lineara.staging.control_flow import INTEGER, joined, tracing
from lineara.staging.staged_level import EXACT, Seen, StagedLevel, seen
from lineara.tape.node import Traced
from lineara.tape.strides import in_c_order, strides_of
from lineara.trees import Structure, flatten, unflatten

ITEM = "an item of a list"
WHERE = "in one list, which is held as an array since staged values say how it is read or grows"
ROW = Seen(INTEGER, None, True)  # what a list is in another one: the number of its row


def is_staged(v: Leaf) -> bool:
    """Whether a value is staged: not known while the program is written."""
    return isinstance(v, Traced) and not v.known


# --- what is known of the items -------------------------------------------------------------------


class Listed:
    """A list that may be an item of another one."""

    __slots__ = ()

    def inner(self) -> "Inner":
        """What it shows of all lists in its place."""
        raise NotImplementedError


class Example(NamedTuple):
    """What one item shows of all: its leaves, and what is known of those that are numbers."""

    structure: Structure
    leaves: Sequence[Any]
    seen: Sequence[Seen | None]
    inner: Sequence["Inner | None"]  # of the leaves that are lists

    @classmethod
    def of(cls, item: Tree) -> "Example":
        """What an item shows; one that can be changed itself, and is no list, is refused."""
        if others := held(item, but=Listed):
            raise StagingError(
                f"a list holds {with_article(type(others[0]).__name__)}, and is read or grows as "
                "staged values say: there the items are numbers, arrays, lists that the function "
                "makes, and tuples of them; use a list for each part"
            )
        leaves, structure = flatten(item, lambda x: isinstance(x, Listed))
        inner = [v.inner() if isinstance(v, Listed) else None for v in leaves]
        known = [
            ROW if lists else _known(v) if is_leaf(v) else None
            for v, lists in zip(leaves, inner, strict=True)
        ]
        return cls(structure, leaves, known, inner)


class Inner(NamedTuple):
    """What a list shows of all lists that one list holds."""

    examples: Sequence[Example]
    size: int  # for how many items there must be room
    length: int | None  # where it is known
    pool: "Pool | None" = None  # the one that it is a row of


def _known(v: Shaped) -> Seen:
    if np.shape(v) and not in_c_order(tuple(np.shape(v)), strides_of(v)):
        raise StagingError(
            "a list that is read or grows as staged values say holds an array that does not lie in "
            "C order; put a copy into it, a.copy()"
        )
    like = seen(v)
    return like._replace(lay=None, weak=like.weak if like.weak in (True, False) else None)


class Form(NamedTuple):
    """What all items of a list are: constants, lists, and numbers and arrays of one type."""

    structure: Structure
    constants: tuple[Any, ...]  # None in the places of numbers
    likes: tuple[Seen | None, ...]  # None for a constant
    pools: tuple[Any, ...]  # the rows of those that are lists; None for all else

    @classmethod
    def of(cls, examples: Sequence[Example], pools: Sequence[Any] = ()) -> "Form":
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
            lists = {e.inner[k] is not None for e in examples}
            constant = not numbers and all([same_constant(v, leaves[0]) for v in leaves])
            if (not constant and len(numbers) < len(known)) or len(lists) > 1:
                shown = " and ".join(dict.fromkeys(map(_shown, leaves)))
                raise StructureError(
                    f"{ITEM} is {shown} {WHERE}; what is no number must be the same there"
                )
            if lists == {True}:
                likes.append(ROW)
                continue
            join_leaf(ITEM, leaves, known, WHERE)
            likes.append(None if constant else joined(numbers)._replace(lay=None))
        constants = [None if t else v for v, t in zip(first.leaves, likes, strict=True)]
        known_pools = tuple(pools) or (None,) * len(likes)
        return cls(first.structure, tuple(constants), tuple(likes), known_pools)

    @property
    def numbers(self) -> list[Seen]:
        """What is known of the numbers of an item."""
        return [t for t in self.likes if t is not None]

    @property
    def lists(self) -> list[Any]:
        """What the lists in an item show, which are rows."""
        return [p and Inner((), 0, None, p) for p in self.pools]

    def rows(self) -> Iterator[Any]:
        """The pools of the numbers of an item; None for those that are no lists."""
        return iter([p for p, t in zip(self.pools, self.likes, strict=True) if t is not None])

    def parts(self, leaves: Sequence[Any]) -> list[Any]:
        """The numbers among the leaves of an item."""
        return [v for v, t in zip(leaves, self.likes, strict=True) if t is not None]

    def item(self, parts: Iterable[Any], row: Callable[[Any, Any], Any]) -> Any:
        """An item with these numbers; `row` gives the list that is a row of a pool."""
        left, leaves = iter(parts), []
        for c, t, pool in zip(self.constants, self.likes, self.pools, strict=True):
            leaves.append(c if t is None else row(pool, next(left)) if pool else next(left))
        return unflatten(self.structure, leaves)

    def fits(self, example: Example, others: Sequence[Example]) -> bool:
        """Whether an item is like the others."""
        pairs = zip(self.pools, example.inner, strict=False)
        return self == Form.of([*others, example], self.pools) and not any(
            [inner is not None and not pool.fits(inner) for pool, inner in pairs]
        )

    def by_value(self) -> "Form":
        """The form with what is known of the rows in place of their pools."""
        return self._replace(pools=tuple([p and p.shape() for p in self.pools]))


def is_within(level: StagedLevel | None, home: StagedLevel) -> bool:
    """Whether a definition is the other one, or within it."""
    while level is not None and level is not home:
        level = level.holder
    return level is not None


def form_of(home: StagedLevel, before: Form | None, examples: Sequence[Example]) -> Form:
    """The form of items that show this, with pools for lists among them."""
    form = Form.of(examples, before.pools if before else ())
    pools = [*form.pools]
    for k, t in enumerate(form.likes):
        inners = [inner for e in examples if (inner := e.inner[k]) is not None]
        if t is ROW and inners:
            known = {id(p): p for p in [pools[k], *[i.pool for i in inners]] if p is not None}
            if len(known) > 1:
                raise StagingError(
                    "a list stands in two lists of lists that are read or grow as staged values "
                    "say, each of which holds its lists as rows of an array; put a copy into one "
                    "of them, row.copy()"
                )
            pools[k] = next(iter(known.values()), None) or Pool(home)
            if not is_within(home, pools[k].home):
                raise StagingError(
                    "a list that a round of a staged loop, or a branch, puts into a list of lists "
                    "is put into one that was made before it; put a copy into it, row.copy()"
                )
            if not all([pools[k].fits(i) for i in inners]):
                pools[k].want([i for i in inners if i.pool is None])
    return form._replace(pools=tuple(pools))


def _shown(v: Leaf) -> str:
    if isinstance(v, Listed):
        return "a list"
    return repr(v) if v is None or isinstance(v, str | bool | int | float) else show_type(v)


def few(examples: Iterable[Example], form: Form | None = None) -> list[Example]:
    """One example of each kind; of items of a form the pools know what their lists show."""
    kinds: dict[Any, Example] = {}
    for e in examples:
        e = e if form is None else e._replace(inner=form.lists)
        whole = [type(v) is int and abs(v) <= EXACT for v in e.leaves]
        pairs = zip(e.leaves, e.seen, strict=True)
        constants = [id(v) if t is None else None for v, t in pairs]
        lists = tuple([i is not None for i in e.inner])
        kinds.setdefault((e.structure, *e.seen, *whole, *constants, lists), e)
    return [*kinds.values()]


# --- room for more --------------------------------------------------------------------------------


class Count(NamedTuple):
    """A length: a staged number, if it depends on values, and what has been added since."""

    base: Any  # None for none
    more: int

    def number(self) -> Any:
        """The length as a number, of the definition that is being written."""
        base, more = self
        return more if base is None else sum_of(base, more) if more else base


def sum_of(n: Value, k: int) -> Any:
    """A whole number of the program, and one that is known."""
    y = op("add")(n, k)
    return y.level.number(y.v, True)


class Wanted(BaseException):
    """A form is given up: a list is to be held otherwise where it was made.

    No handler of the user's, nor of who tries a form, is to catch it but the form at that place.
    """

    def __init__(
        self, values: Any, examples: Sequence[Any], rooms: int, ends: str | None = None
    ) -> None:
        super().__init__(values, examples, rooms)
        self.values: Any = values
        self.examples: Sequence[Any] = examples
        self.rooms: int = rooms
        self.ends = ends  # what a program says that finds the room too small

    def stack(self, level: StagedLevel) -> None:
        """Let arrays hold the list, where it was made in the definition that is being written."""
        if self.values.home is not level:
            raise self
        self.values.stack(self.examples, self.rooms)
        self.values.ends = self.ends or self.values.ends
        now = reading()
        for region in now.regions if now else ():
            region.stacked.append(self.values)

    def refuse_far(self) -> None:
        """Refuse it in a function within the one that made the list."""
        level, home = tracing(), self.values.home
        while level is not None and level is not home and level.hands_on:
            level = level.holder
        if level is not home or home is None:
            raise StagingError(
                "a list was read or written where a staged number says, in a function within the "
                "one that made it; pass an array"
            )


def settled(wanted: Wanted) -> None:
    """What is wanted is done at once in the definition where the list was made."""
    wanted.refuse_far()
    wanted.stack(tracing_level())


class Growing:
    """What has a length, and room for more.

    home        the definition where it was made
    rooms       for how many there is room
    extent      how many there are
    most, peak  how many there may be and have been at most, in this round and branch
    ends        what the program says where it finds the room too small; None where it is reckoned
    """

    __slots__ = ()
    home: Any
    rooms: Any
    extent: Count
    most: int
    peak: int
    ends: str | None

    @property
    def length(self) -> Any:
        """How many there are, a number or a staged one."""
        return self.extent.number()

    @length.setter
    def length(self, n: Any) -> None:
        if not isinstance(n, Count):
            n = Count(n, 0) if is_staged(n) else Count(None, operator.index(n))
        self.extent = n

    def length_is(self, n: int) -> bool:
        """Whether it is known that there are so many."""
        return self.extent.base is None and self.extent.more == n

    def more_room(self, rooms: int) -> None:
        """There is to be room for so many more."""
        settled(Wanted(self, (), rooms))

    def end(self) -> Any:
        """The place of one more, for which there is room."""
        at_home = self.home is tracing()
        reckoned = self.ends is None and at_home
        if (reckoned and self.most >= self.rooms) or self.length_is(self.rooms):
            self.more_room(self.most + 1)
        end = self.length
        if self.ends is None or not is_staged(end):
            return end
        return checked(end, op("less_equal")(self.rooms, end), OutOfRoom, self.ends)

    def grow(self) -> None:
        """There is one more."""
        self.extent = Count(self.extent.base, self.extent.more + 1)
        self.most += 1
        self.peak = max(self.peak, self.most)


class Token:
    """What lives as long as a list that holds copies of arrays, which may not be written then."""

    __slots__ = ("__weakref__", "version")

    def __init__(self) -> None:
        self.version: int = 0


# --- lists in lists -------------------------------------------------------------------------------


class Rows(NamedTuple):
    """What is known of the rows of a pool, beside its arrays."""

    form: Form | None
    length: int | None  # of all rows, where it is known


class Pool(Growing):
    """The items of the lists that a list holds, each of which is a row.

    form      what the items of the rows are; None as long as there are none
    arrays    for each number of an item, those of all rows
    each      how long each row is, where they are not of one length
    width     for how many items there is room in a row
    columns   how long the rows may become
    rows      the lists that are rows whose number is known
    """

    def __init__(self, home: StagedLevel) -> None:
        self.home: StagedLevel = home
        self.form: Form | None = None
        self.examples: list[Example] = []
        self.arrays: list[Any] = []
        self.one: int | None = None  # the length of all rows
        self.each: Any = None
        self.width: int = 0
        self.rooms: int = 0
        self.most = self.peak = 0
        self.extent: Count = Count(None, 0)
        self.ends: str | None = None
        self.token: Token = Token()
        self.sources: list[Any] = []
        self.columns: Columns = Columns(self)
        self.rows: dict[int, Any] = {}

    def fits(self, inner: Inner) -> bool:
        """Whether a list may be a row."""
        if inner.pool is self:
            return True
        same = self.each is not None or inner.length == self.one is not None
        if inner.pool is not None or not same or inner.size > self.width:
            return False
        return self.form is not None and all(
            [self.form.fits(e, self.examples) for e in inner.examples]
        )

    def want(self, inners: Sequence[Inner], rooms: int = 0) -> None:
        """There are to be rows like these, and room for more."""
        settled(Wanted(self, inners, rooms))

    def stack(self, inners: Sequence[Inner], rooms: int) -> None:
        """Let there be rows like these, and room for more."""
        before, examples = self.form, [e for i in inners for e in i.examples]
        if examples:
            self.form = form_of(self.home, before, [*self.examples, *examples])
            self.examples = few([*self.examples, *examples], self.form)
        width = max([self.width, *[i.size for i in inners]])
        size = max(self.rooms, self.most + rooms) if rooms else self.rooms
        lengths = {i.length for i in inners} | ({self.one} if self.rooms else set())
        if self.each is None and lengths and (len(lengths) > 1 or None in lengths):
            self.each = self.home.buffer(np.full(self.rooms, self.one or 0))
            self.one = None
        elif self.each is None and lengths:
            self.one = lengths.pop()
        most = max([self.columns.most, *[i.size for i in inners]])
        self.columns.most, self.columns.peak = most, max(self.columns.peak, most)
        self._lay_out(before, size, width)

    def _lay_out(self, before: Form | None, size: int, width: int) -> None:
        """Arrays for so many rows of so many items, with what there was."""
        numbers = self.form.numbers if self.form else []
        same = (size, width) == (self.rooms, self.width)
        if not same or not before or [t.type for t in before.numbers] != [t.type for t in numbers]:
            arrays = []
            for k, like in enumerate(numbers):
                part = zeros(self.home, (size, width), like)
                if before and self.rooms and self.width:
                    part[: self.rooms, : self.width] = self.arrays[k]
                arrays.append(part)
            self.arrays = arrays
        if self.each is not None and size > self.rooms:
            each = self.home.buffer(np.zeros(size, np.int64))
            if self.rooms:
                each[: self.rooms] = self.each
            self.each = each
        self.rooms, self.width = size, width

    def add(self) -> Any:
        """One more row; its number."""
        end = self.end()
        self.grow()
        return end

    # --- as a value -------------------------------------------------------------------------------

    def shape(self) -> Rows:
        """What is known of the rows, without the arrays."""
        return Rows(self.form and self.form.by_value(), self.one if self.each is None else None)

    def parts(self) -> list[Any]:
        """The arrays, and those of lists in the rows."""
        inner = [v for p in (self.form.pools if self.form else ()) if p for v in p.parts()]
        return [*self.arrays, *([] if self.each is None else [self.each]), *inner]

    @classmethod
    def of_parts(cls, level: StagedLevel, known: Rows, parts: Iterator[Any]) -> "Pool":
        """The pool with these arrays."""
        made = cls(level)
        if known.form is not None:
            made.arrays = [next(parts) for _ in known.form.numbers]
        made.one = known.length
        if known.length is None:
            made.each = next(parts)
        made.form = known.form and known.form._replace(
            pools=tuple([p and cls.of_parts(level, p, parts) for p in known.form.pools])
        )
        if made.form is not None:
            form = made.form
            made.examples = [Example(form.structure, form.constants, form.likes, form.lists)]
        first = made.arrays[0] if made.arrays else made.each
        made.rooms = 0 if first is None else first.shape[0]
        made.width = made.arrays[0].shape[1] if made.arrays else 0
        made.most = made.peak = made.rooms
        made.extent = Count(None, made.rooms)
        made.columns.most = made.columns.peak = made.width
        return made


class Columns(Growing):
    """How long the rows of a pool may become: its `most` is that of the longest."""

    def __init__(self, pool: Pool) -> None:
        self.pool: Pool = pool
        self.most: int = 0
        self.peak: int = 0
        self.ends: str | None = None

    @property
    def home(self) -> Any:
        """The definition where the pool was made."""
        return self.pool.home

    @property
    def rooms(self) -> int:
        """For how many items there is room in a row."""
        return self.pool.width

    def stack(self, examples: Sequence[Any], rooms: int) -> None:
        """Let there be room for more items in a row."""
        self.pool._lay_out(self.pool.form, self.pool.rooms, self.most + rooms)


def tracing_level() -> StagedLevel:
    """The definition that is being written."""
    level = tracing()
    assert level is not None, "lists are stacked in traces"
    return level


def zeros(level: StagedLevel, sizes: tuple[int, ...], like: Seen) -> Any:
    """An array that items are written into."""
    return level.buffer(np.zeros((*sizes, *like.type.shape), like.type.dtype))


class Extents:
    """How long the lists that a block reaches become in it, beside how long they were."""

    def __init__(self, lists: Iterable[Any]) -> None:
        growing = [x for y in lists for x in ((y, y.columns) if isinstance(y, Pool) else (y,))]
        self.before: list[tuple[Any, int, int]] = [(x, x.most, x.peak) for x in growing]
        for x, most, _ in self.before:
            x.peak = most

    def end(self) -> list[tuple[Any, int, int]]:
        """How much longer each may be at the end, and was on the way; they are as before."""
        grown = []
        for x, most, peak in self.before:
            grown.append((x, x.most - most, x.peak - most))
            x.most, x.peak = most, peak
        return grown


def longest(blocks: Iterable[Sequence[tuple[Any, int, int]]]) -> list[tuple[Any, int, int]]:
    """How much longer lists may be after one of several blocks."""
    most: dict[int, tuple[Any, int, int]] = {}
    for x, *grown in [g for block in blocks for g in block]:
        _, more, peak = most.get(id(x), (x, 0, 0))
        most[id(x)] = x, max(more, grown[0]), max(peak, grown[1])
    return [*most.values()]


def lengthen(level: StagedLevel, grown: Iterable[tuple[Any, int, int]], rounds: int = 1) -> None:
    """Lists are longer after a form; where they were made there must be room for that."""
    longer = [(x, max(more, 0), most) for x, more, most in grown if x.ends is None]
    peaks = [x.most + more * (rounds - 1) + most for x, more, most in longer]
    for (x, *_), peak in zip(longer, peaks, strict=True):
        if x.home is level and peak > x.rooms:
            raise Wanted(x, (), peak - x.most)
    for (x, more, _), peak in zip(longer, peaks, strict=True):
        x.peak, x.most = max(x.peak, peak), x.most + more * rounds
