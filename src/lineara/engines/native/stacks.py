"""Stacks: what a loop makes in each round, one column for each part that has to be stored.

A constant, and a whole number that is affine in the rounds, is a part of the row as it is: it is
never stored, and where a row is read the rounds are those of the reader.  So is what was read at
such a place of an array that stays as it is: it is read there again.  Columns of a loop whose
rounds are known have their size; others are arenas, which double: where they are counted before
the first round there is room for them all, and each has its row at its place after the first one.
"""

import math
from collections.abc import Iterator, Sequence

from lineara.engines.native import numbers as nm
from lineara.engines.native.emit import Emitter
from lineara.facts.types import ArrayType, Type, stacked

FEW = 64
"""Rows of a while loop's columns at first."""
AT_ONCE = 2**20
"""Bytes up to which a column that grows has room at first for all that it may come to."""


class Rows:
    """The stacks of a loop that is being emitted."""

    used: str
    types: Sequence[Type]
    em: Emitter
    capacity: str
    r: nm.Round
    count: nm.Num | None
    position: nm.Num
    end: nm.Num
    before: int
    reserved: str

    def __init__(
        self,
        em: Emitter,
        r: nm.Round,
        count: nm.Num | None,
        types: Sequence[Type],
        backwards: bool = False,
    ) -> None:
        self.em, self.r, self.count, self.types = em, r, count, types
        self.rows: list[nm.Held] = []
        self.kept: list[nm.Held] = []  # the columns, while the loop is emitted
        self.grows: bool = r.n is None and bool(types)
        self.most: float = math.inf if count is None else em.around
        self.arenas: list[nm.Arena] = []
        itself = nm.Affine(0, ((r, 1),))
        self.turned: nm.Num = nm.Num(
            "i64", affine=itself
        )  # the round, told by the place of its row
        whole = count.affine if count is not None else None
        if backwards and whole is not None:
            last = whole.plus(nm.Affine(-1))
            self.turned = nm.Num("i64", affine=last.plus(itself, -1))
        if self.grows:
            self.used, self.capacity = [em.at_entry("alloca i64") for _ in range(2)]
            for place in (self.used, self.capacity):
                em.entry.append(f"  store i64 0, ptr {place}")
            em.emptied.append((len(em.lines), self.used, self.arenas))
            em.line("")
            self.begin: nm.Num = nm.Num("i64", em.let(f"load i64, ptr {self.used}"))
            if count is not None:
                self.end = plus(em, self.begin, count)
                self.before = len(em.lines)
                em.line("")
                em.block(em.name("reserved"))
                self.reserved = em.label

    def push(self, position: nm.Num, values: Sequence[nm.Held]) -> None:
        """Put the values of a round to the rows."""
        em = self.em
        self.position = position
        if self.grows and self.count is None:
            self.position = nm.Num("i64", em.let(f"load i64, ptr {self.used}"))
        elif self.grows:
            self.position = plus(em, self.begin, position)
        self.rows = []
        self.todo: list[tuple[nm.Num | nm.Arr, nm.Column, nm.Choice | None]] = []
        for value, t in zip(values, self.types, strict=True):
            if value is nm.UNREAD:
                self.rows.append(value)
            elif isinstance(t, ArrayType) and self.r.n is not None:
                self.rows.append(self.column(value))
            else:
                self.rows.append(self.stored(value))
        if self.grows and self.count is None:
            self.end = plus(em, self.position, nm.constant("i64", 1))
            self.grow()
        elif self.grows:
            with em.elsewhere(self.before):
                self.grow()
                em.jump(self.reserved)
        for value, column, choice in self.todo:
            self.store(value, column)
            if choice:
                choice.stores.append((len(em.lines) - 1, em.lines[-1], column.buffer))
        if self.grows and self.count is None:
            em.line(f"store i64 {em.text(self.end)}, ptr {self.used}")

    def stored(self, value: nm.Held) -> nm.Held:
        """What stands for a value in the row."""
        if value is None or value is nm.NIL:
            return value
        if isinstance(value, nm.Num):
            known = value.constant is not None or value.affine is not None
            if known:
                return self.told(value)
            source = value.source
            if source is None:
                return self.column(value)
            nbytes = self.most * source.array.type.dtype.itemsize
            if self.em.lasts(source, nbytes):
                return self.told(source)
            choice = self.em.may_last(source, nbytes)
            return self.told(self.column(value, choice)._replace(source=source, choice=choice))
        if isinstance(value, nm.Arr):
            return self.column(value)
        if isinstance(value, nm.Tup):
            return nm.Tup(tuple([self.stored(item) for item in value.items]))
        if isinstance(value, nm.Tag):
            tag = self.stored(value.tag)
            return nm.Tag(tag, tuple([self.stored(item) for item in value.items]))
        assert isinstance(value, nm.Stk)
        return self.inner(value)

    def told(self, part: nm.Held) -> nm.Held:
        """What the rounds tell, by the place of the row."""
        return through(self.em, part, self.r, self.turned)

    def inner(self, value: nm.Stk) -> nm.Stk:
        """A stack as a part of a row: its columns move to larger ones, unless they are arenas."""
        value = value._replace(row=self.told(value.row))
        n = value.round.n
        self.em.kept_arenas.update(nm.buffers(value.row))
        if n is None:
            return value._replace(n=self.stored(value.n), base=self.stored(value.base))
        if any([isinstance(c.buffer, nm.Arena) for c, _ in columns(value.row)]):
            raise nm.Refused("a loop stacks again what a while loop has stacked")
        moved = {c: self.larger(c, n * times, times, value) for c, times in columns(value.row)}
        return value._replace(base=None, row=replaced(value.row, moved))

    def larger(self, column: nm.Column, n: int, times: int, value: nm.Stk) -> nm.Column:
        """A column with n rows of another one in each row."""
        whole = stacked(column.type, n)
        assert isinstance(whole, ArrayType)
        assert isinstance(value.base, nm.Num)
        begin = self.em.text(scaled(self.em, value.base, times * column.type.size))
        source = nm.Arr(column.buffer, whole, "" if begin == "0" else begin)
        return column._replace(buffer=self.column(source, column.choice).buffer)

    def column(self, value: nm.Held, choice: nm.Choice | None = None) -> nm.Column:
        """A column for a number or an array."""
        if not isinstance(value, nm.Num | nm.Arr):
            raise nm.Refused("a loop stacks a value that is no array")
        t = value.type if isinstance(value, nm.Arr) else nm.TYPES[value.kind]
        if self.grows:
            place = self.em.at_entry("alloca ptr")
            self.em.entry.append(f"  store ptr null, ptr {place}")
            buffer: nm.Buffer = nm.Arena(place, t.size * t.dtype.itemsize, False)
            self.arenas.append(buffer)
            self.em.arenas.append(buffer)
        else:
            n = self.r.n
            assert n is not None
            buffer = self.em.array(ArrayType((n, *t.shape), t.dtype), fresh=True).buffer
        self.em.taped.append((self.r.n, t, self.em.place_of(value)))
        if choice:
            choice.told.append(self.em.taped[-1])
        made = nm.Column(buffer, t)
        self.kept.append(made)
        self.todo.append((value, made, choice))
        return made

    def store(self, value: nm.Num | nm.Arr, column: nm.Column) -> None:
        """Put a value to its row."""
        em = self.em
        i = em.text(self.position)
        t = column.type
        if t.size != 1 or t.shape:
            i = em.let(f"mul i64 {i}, {t.size}")
        into = nm.Arr(column.buffer, t, i)
        if isinstance(value, nm.Num):
            em.store(value, into)
        else:
            em.copy(value, into)

    def grow(self) -> None:
        """Make room up to the end."""
        em = self.em
        if not self.arenas:
            return
        sizes = [max(arena.nbytes, 1) for arena in self.arenas]
        room, end = em.let(f"load i64, ptr {self.capacity}"), em.text(self.end)
        on, full, sane = em.name("on"), em.name("full"), em.name("sane")
        em.branch(em.let(f"icmp ule i64 {end}, {room}"), on, full)
        em.block(full)
        em.branch(em.let(f"icmp ule i64 {end}, {2**62 // max(sizes)}"), sane, "exhausted")
        em.block(sane)
        larger = em.outside("llvm.umax.i64", "i64 (i64, i64)")
        wanted = em.let(f"mul i64 {room}, 2")
        few = FEW if self.count is None else 0
        first = int(self.most) if self.most * max(sizes) <= AT_ONCE else few
        for least in (str(first), end):
            wanted = em.let(f"call i64 {larger}(i64 {wanted}, i64 {least})")
        renew = em.outside("c.realloc", "ptr (ptr, i64)")
        for arena, size in zip(self.arenas, sizes, strict=True):
            old = em.let(f"load ptr, ptr {arena.register}")
            nbytes = em.let(f"mul i64 {wanted}, {size}")
            new = em.let(f"call ptr {renew}(ptr {old}, i64 {nbytes})")
            fine = em.name("fine")
            em.branch(em.let(f"icmp eq ptr {new}, null"), "exhausted", fine)
            em.block(fine)
            em.line(f"store ptr {new}, ptr {arena.register}")
        em.line(f"store i64 {wanted}, ptr {self.capacity}")
        em.jump(on)
        em.block(on)

    def results(self) -> list[nm.Held]:
        """The stacks, once the loop is over."""
        em = self.em
        if self.grows:
            n = self.count
            if n is None:
                now = em.let(f"load i64, ptr {self.used}")
                n = nm.Num("i64", em.let(f"sub i64 {now}, {em.text(self.begin)}"))
            else:
                em.line(f"store i64 {em.text(self.end)}, ptr {self.used}")
            return [nm.Stk(self.r, n, self.begin, row) for row in self.rows]
        made: list[nm.Held] = []
        for row, t in zip(self.rows, self.types, strict=True):
            if row is nm.UNREAD:
                made.append(row)
            elif isinstance(t, ArrayType):
                assert isinstance(row, nm.Column)
                assert self.r.n is not None
                made.append(nm.Arr(row.buffer, ArrayType((self.r.n, *t.shape), t.dtype)))
            else:
                assert self.count is not None
                made.append(nm.Stk(self.r, self.count, nm.constant("i64", 0), row))
        return made


def columns(row: nm.Held, times: int = 1) -> Iterator[tuple[nm.Column, int]]:
    """The columns in a row, and how many rows each has for one of these; arenas left out."""
    if isinstance(row, nm.Column):
        yield row, times
    elif isinstance(row, nm.Tup | nm.Tag):
        for item in (row.tag, *row.items) if isinstance(row, nm.Tag) else row.items:
            yield from columns(item, times)
    elif isinstance(row, nm.Stk):
        for item in (row.n, row.base):
            yield from columns(item, times)
        if row.round.n is not None:  # else its columns are arenas
            yield from columns(row.row, times * row.round.n)


def replaced(row: nm.Held, by: dict[nm.Column, nm.Column]) -> nm.Held:
    """A row with other columns."""
    if isinstance(row, nm.Column):
        return by.get(row, row)  # an arena stays
    if isinstance(row, nm.Tup):
        return nm.Tup(tuple([replaced(item, by) for item in row.items]))
    if isinstance(row, nm.Tag):
        return nm.Tag(replaced(row.tag, by), tuple([replaced(item, by) for item in row.items]))
    if isinstance(row, nm.Stk):
        return nm.Stk(row.round, *[replaced(item, by) for item in (row.n, row.base, row.row)])
    return row


def row(em: Emitter, x: nm.Held, i: nm.Num) -> nm.Held:
    """Row i of what a loop goes over: of an array or of a stack."""
    if isinstance(x, nm.Arr):
        t = ArrayType(x.type.shape[1:], x.type.dtype)
        at = scaled(em, i, t.size)
        if x.at:
            at = nm.Num("i64", em.let(f"add i64 {x.at}, {em.text(at)}"))
        if nm.kind_of(t) and not t.shape:
            return em.load(nm.Arr(x.buffer, t), at)
        return nm.Arr(x.buffer, t, em.text(at), nm.unsure(t) if x.lay else x.lay)
    assert isinstance(x, nm.Stk)
    assert isinstance(x.base, nm.Num)
    return read(em, x.row, x.round, i, plus(em, x.base, i))


def scaled(em: Emitter, i: nm.Num, k: int) -> nm.Num:
    """k · i."""
    if i.affine is not None:
        return nm.Num("i64", affine=i.affine.times(k))
    return nm.Num("i64", em.let(f"mul i64 {i.register}, {k}")) if k != 1 else i


def plus(em: Emitter, a: nm.Num, b: nm.Num) -> nm.Num:
    """a + b."""
    if a.affine is not None and b.affine is not None:
        return nm.Num("i64", affine=a.affine.plus(b.affine))
    return nm.Num("i64", em.let(f"add i64 {em.text(a)}, {em.text(b)}"))


def read(em: Emitter, part: nm.Held, r: nm.Round, i: nm.Num, at: nm.Num) -> nm.Held:
    """A part of row i, which is row `at` of the columns."""
    if isinstance(part, nm.Num):
        if part.affine is None or r not in dict(part.affine.terms):
            return part
        if i.affine is not None:
            return nm.Num("i64", affine=part.affine.at(r, i.affine))
        k = dict(part.affine.terms)[r]
        rest = part.affine.at(r, nm.Affine(0))
        return plus(em, scaled(em, i, k), nm.Num("i64", affine=rest))
    if isinstance(part, nm.Read):
        place = read(em, part.at, r, i, at)
        assert isinstance(place, nm.Num)
        return em.load(part.array, place)
    if isinstance(part, nm.Column):
        if part.choice and part.source:
            part.choice.again = bool(part.choice.again)  # from now on it is stored
            if part.choice.again:
                return read(em, part.source, r, i, at)
        t = part.type
        whole = nm.Arr(part.buffer, t, em.text(scaled(em, at, t.size)))
        return em.load(whole) if nm.kind_of(t) and not t.shape else whole
    if isinstance(part, nm.Tup):
        return nm.Tup(tuple([read(em, item, r, i, at) for item in part.items]))
    if isinstance(part, nm.Tag):
        tag = read(em, part.tag, r, i, at)
        return nm.Tag(tag, tuple([read(em, item, r, i, at) for item in part.items]))
    if isinstance(part, nm.Stk):
        n, base = [read(em, item, r, i, at) for item in (part.n, part.base)]
        if base is None:
            assert part.round.n is not None, "its columns have as many rows for each of these"
            base = scaled(em, at, part.round.n)
        return nm.Stk(part.round, n, base, through(em, part.row, r, i))
    return part


def through(em: Emitter, part: nm.Held, r: nm.Round, i: nm.Num) -> nm.Held:
    """The row of a stack in a row: only what rounds tell is known yet; its columns stay."""
    if isinstance(part, nm.Num):
        return read(em, part, r, i, i)
    if isinstance(part, nm.Read):
        place = read(em, part.at, r, i, i)
        assert isinstance(place, nm.Num)
        return nm.Read(part.array, place)
    if isinstance(part, nm.Column) and part.source:
        source = through(em, part.source, r, i)
        assert isinstance(source, nm.Read)
        return part._replace(source=source)
    if isinstance(part, nm.Tup):
        return nm.Tup(tuple([through(em, item, r, i) for item in part.items]))
    if isinstance(part, nm.Tag):
        tag = through(em, part.tag, r, i)
        return nm.Tag(tag, tuple([through(em, item, r, i) for item in part.items]))
    if isinstance(part, nm.Stk):
        return nm.Stk(part.round, *[through(em, x, r, i) for x in (part.n, part.base, part.row)])
    return part
