"""Stacks: what a loop makes in each round, one column for each part that has to be stored.

A constant, and a whole number that is affine in the rounds, is a part of the row as it is: it is
never stored, and where a row is read the rounds are those of the reader.  Columns of a loop whose
rounds are counted have their size; those of a while loop are arenas, which double.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from lineara.engines.native.emit import INDEX, Emitter
from lineara.engines.native.numbers import (
    Affine,
    Arena,
    Arr,
    Buffer,
    Column,
    Held,
    Num,
    Refused,
    Round,
    Stk,
    Tag,
    Tup,
    buffers,
    constant,
    kind_of,
)
from lineara.facts.types import ArrayType, Type, stacked

KINDS = {
    "f64": ArrayType((), np.dtype(float)),
    "i64": INDEX,
    "bool": ArrayType((), np.dtype(bool)),
}
FEW = 64
"""Rows of a while loop's columns at first."""


class Rows:
    """The stacks of a loop that is being emitted."""

    def __init__(
        self,
        em: Emitter,
        r: Round,
        count: Num | None,
        types: Sequence[Type],
        backwards: bool = False,
    ) -> None:
        self.em, self.r, self.count, self.types = em, r, count, types
        self.rows: list[Held] = []
        self.kept: list[Held] = []  # the columns, while the loop is emitted
        self.grows = r.n is None and bool(types)
        self.arenas: list[Arena] = []
        itself = Affine(0, ((r, 1),))
        self.turned = Num("i64", affine=itself)  # the round, told by the place of its row
        if backwards and r.n is not None:
            self.turned = Num("i64", affine=Affine(r.n - 1).plus(itself, -1))
        if self.grows:
            if backwards:
                raise Refused("a loop goes back over the rounds of a while loop and stacks values")
            self.used, self.capacity = [em.at_entry("alloca i64") for _ in range(2)]
            for place in (self.used, self.capacity):
                em.entry.append(f"  store i64 0, ptr {place}")
            em.emptied.append((len(em.lines), self.used, self.arenas))
            em.line("")
            self.begin = em.let(f"load i64, ptr {self.used}")

    def push(self, position: Num, values: Sequence[Held]) -> None:
        """Put the values of a round to the rows."""
        em = self.em
        self.position = position
        if self.grows:
            self.position = Num("i64", em.let(f"load i64, ptr {self.used}"))
        self.rows = []
        self.todo: list[tuple[Num | Arr, Column]] = []
        for value, t in zip(values, self.types, strict=True):
            if isinstance(t, ArrayType) and self.r.n is not None:
                self.rows.append(self.column(value))
            else:
                self.rows.append(self.stored(value))
        if self.grows:
            self.grow()
        for value, column in self.todo:
            self.store(value, column)
        if self.grows:
            more = em.let(f"add i64 {em.text(self.position)}, 1")
            em.line(f"store i64 {more}, ptr {self.used}")

    def stored(self, value: Held) -> Held:
        """What stands for a value in the row."""
        if value is None:
            return None
        if isinstance(value, Num):
            known = value.constant is not None or value.affine is not None
            return through(self.em, value, self.r, self.turned) if known else self.column(value)
        if isinstance(value, Arr):
            return self.column(value)
        if isinstance(value, Tup):
            return Tup(tuple([self.stored(item) for item in value.items]))
        if isinstance(value, Tag):
            tag = self.stored(value.tag)
            return Tag(tag, tuple([self.stored(item) for item in value.items]))
        assert isinstance(value, Stk)
        return self.inner(value)

    def inner(self, value: Stk) -> Stk:
        """A stack as a part of a row: its columns move to larger ones, unless they are arenas."""
        value = value._replace(row=through(self.em, value.row, self.r, self.turned))
        n = value.round.n
        self.em.kept_arenas.update(arenas(value.row))
        if n is None:
            return value._replace(n=self.stored(value.n), base=self.stored(value.base))
        if any([isinstance(c.buffer, Arena) for c, _ in columns(value.row)]):
            raise Refused("a loop stacks again what a while loop has stacked")
        moved = {c: self.larger(c, n * times, times, value) for c, times in columns(value.row)}
        return value._replace(base=None, row=replaced(value.row, moved))

    def larger(self, column: Column, n: int, times: int, value: Stk) -> Column:
        """A column with n rows of another one in each row."""
        whole = stacked(column.type, n)
        assert isinstance(whole, ArrayType)
        assert isinstance(value.base, Num)
        begin = self.em.text(scaled(self.em, value.base, times * column.type.size))
        source = Arr(column.buffer, whole, "" if begin == "0" else begin)
        return Column(self.column(source).buffer, column.type)

    def column(self, value: Held) -> Column:
        """A column for a number or an array."""
        if not isinstance(value, Num | Arr):
            raise Refused("a loop stacks a value that is no array")
        t = value.type if isinstance(value, Arr) else KINDS[value.kind]
        if self.grows:
            place = self.em.at_entry("alloca ptr")
            self.em.entry.append(f"  store ptr null, ptr {place}")
            buffer: Buffer = Arena(place, t.size * t.dtype.itemsize, False)
            self.arenas.append(buffer)
            self.em.arenas.append(buffer)
        else:
            n = self.r.n
            assert n is not None
            buffer = self.em.array(ArrayType((n, *t.shape), t.dtype), fresh=True).buffer
        made = Column(buffer, t)
        self.kept.append(made)
        self.todo.append((value, made))
        return made

    def store(self, value: Num | Arr, column: Column) -> None:
        """Put a value to its row."""
        em = self.em
        i = em.text(self.position)
        t = column.type
        if t.size != 1 or t.shape:
            i = em.let(f"mul i64 {i}, {t.size}")
        into = Arr(column.buffer, t, i)
        if isinstance(value, Num):
            em.store(value, into)
        else:
            em.copy(value, into)

    def grow(self) -> None:
        """Make room for one row more."""
        em = self.em
        place = em.text(self.position)
        room = em.let(f"load i64, ptr {self.capacity}")
        on, full = em.name("on"), em.name("full")
        em.branch(em.let(f"icmp ult i64 {place}, {room}"), on, full)
        em.block(full)
        doubled = em.let(f"mul i64 {room}, 2")
        first = em.let(f"icmp eq i64 {room}, 0")
        wanted = em.let(f"select i1 {first}, i64 {FEW}, i64 {doubled}")
        renew = em.outside("c.realloc", "ptr (ptr, i64)")
        for arena in self.arenas:
            old = em.let(f"load ptr, ptr {arena.register}")
            nbytes = em.let(f"mul i64 {wanted}, {max(arena.nbytes, 1)}")
            new = em.let(f"call ptr {renew}(ptr {old}, i64 {nbytes})")
            fine = em.name("fine")
            em.branch(em.let(f"icmp eq ptr {new}, null"), "exhausted", fine)
            em.block(fine)
            em.line(f"store ptr {new}, ptr {arena.register}")
        em.line(f"store i64 {wanted}, ptr {self.capacity}")
        em.jump(on)
        em.block(on)

    def results(self) -> list[Held]:
        """The stacks, once the loop is over."""
        em = self.em
        if self.grows:
            now = em.let(f"load i64, ptr {self.used}")
            n = Num("i64", em.let(f"sub i64 {now}, {self.begin}"))
            base = Num("i64", self.begin)
            return [Stk(self.r, n, base, row) for row in self.rows]
        made: list[Held] = []
        for row, t in zip(self.rows, self.types, strict=True):
            if isinstance(t, ArrayType):
                assert isinstance(row, Column)
                assert self.r.n is not None
                made.append(Arr(row.buffer, ArrayType((self.r.n, *t.shape), t.dtype)))
            else:
                assert self.count is not None
                made.append(Stk(self.r, self.count, constant("i64", 0), row))
        return made


def columns(row: Held, times: int = 1) -> Iterator[tuple[Column, int]]:
    """The columns in a row, and how many rows each has for one of these; arenas left out."""
    if isinstance(row, Column):
        yield row, times
    elif isinstance(row, Tup | Tag):
        for item in (row.tag, *row.items) if isinstance(row, Tag) else row.items:
            yield from columns(item, times)
    elif isinstance(row, Stk):
        for item in (row.n, row.base):
            yield from columns(item, times)
        if row.round.n is not None:  # else its columns are arenas
            yield from columns(row.row, times * row.round.n)


def arenas(row: Held) -> Iterator[Arena]:
    """The arenas in a row."""
    yield from [b for b in buffers(row) if isinstance(b, Arena)]


def replaced(row: Held, by: dict[Column, Column]) -> Held:
    """A row with other columns."""
    if isinstance(row, Column):
        return by.get(row, row)  # an arena stays
    if isinstance(row, Tup):
        return Tup(tuple([replaced(item, by) for item in row.items]))
    if isinstance(row, Tag):
        return Tag(replaced(row.tag, by), tuple([replaced(item, by) for item in row.items]))
    if isinstance(row, Stk):
        return Stk(row.round, *[replaced(item, by) for item in (row.n, row.base, row.row)])
    return row


def row(em: Emitter, x: Held, i: Num) -> Held:
    """Row i of what a loop goes over: of an array or of a stack."""
    if isinstance(x, Arr):
        t = ArrayType(x.type.shape[1:], x.type.dtype)
        at = scaled(em, i, t.size)
        if x.at:
            at = Num("i64", em.let(f"add i64 {x.at}, {em.text(at)}"))
        whole = Arr(x.buffer, t, em.text(at), x.as_numpys)
        return em.load(whole) if kind_of(t) and not t.shape else whole
    assert isinstance(x, Stk)
    assert isinstance(x.base, Num)
    return read(em, x.row, x.round, i, plus(em, x.base, i))


def scaled(em: Emitter, i: Num, k: int) -> Num:
    """k · i."""
    if i.affine is not None:
        return Num("i64", affine=i.affine.times(k))
    return Num("i64", em.let(f"mul i64 {i.register}, {k}")) if k != 1 else i


def plus(em: Emitter, a: Num, b: Num) -> Num:
    """a + b."""
    if a.affine is not None and b.affine is not None:
        return Num("i64", affine=a.affine.plus(b.affine))
    return Num("i64", em.let(f"add i64 {em.text(a)}, {em.text(b)}"))


def read(em: Emitter, part: Held, r: Round, i: Num, at: Num) -> Held:
    """A part of row i, which is row `at` of the columns."""
    if isinstance(part, Num):
        if part.affine is None or r not in dict(part.affine.terms):
            return part
        if i.affine is not None:
            return Num("i64", affine=part.affine.at(r, i.affine))
        k = dict(part.affine.terms)[r]
        rest = part.affine.at(r, Affine(0))
        return plus(em, scaled(em, i, k), Num("i64", affine=rest))
    if isinstance(part, Column):
        t = part.type
        whole = Arr(part.buffer, t, em.text(scaled(em, at, t.size)))
        return em.load(whole) if kind_of(t) and not t.shape else whole
    if isinstance(part, Tup):
        return Tup(tuple([read(em, item, r, i, at) for item in part.items]))
    if isinstance(part, Tag):
        tag = read(em, part.tag, r, i, at)
        return Tag(tag, tuple([read(em, item, r, i, at) for item in part.items]))
    if isinstance(part, Stk):
        n, base = [read(em, item, r, i, at) for item in (part.n, part.base)]
        if base is None:
            assert part.round.n is not None, "its columns have as many rows for each of these"
            base = scaled(em, at, part.round.n)
        return Stk(part.round, n, base, through(em, part.row, r, i))
    return None


def through(em: Emitter, part: Held, r: Round, i: Num) -> Held:
    """The row of a stack in a row: only what rounds tell is known yet; its columns stay."""
    if isinstance(part, Num):
        return read(em, part, r, i, i)
    if isinstance(part, Tup):
        return Tup(tuple([through(em, item, r, i) for item in part.items]))
    if isinstance(part, Tag):
        tag = through(em, part.tag, r, i)
        return Tag(tag, tuple([through(em, item, r, i) for item in part.items]))
    if isinstance(part, Stk):
        return Stk(part.round, *[through(em, x, r, i) for x in (part.n, part.base, part.row)])
    return part
