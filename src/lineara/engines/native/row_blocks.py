"""Narrow rows as code: loops over blocks of rows, in which each number of a row is a column.

A block's steps are one loop for all that lies between two calls; LLVM makes vectors of it, since
the numbers of a column lie beside each other.  What is added at positions is added in the order of
the rows, as NumPy does, and what is folded goes on from block to block.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from lineara.engines.native import arrays, folds
from lineara.engines.native import numbers as nm
from lineara.engines.native.cells import AT, CALL, LOAD, PLACE, STEP, Cell, Cells, one
from lineara.engines.native.emit import Emitter
from lineara.engines.native.regions import VECTOR
from lineara.engines.native.scalars import RULES
from lineara.engines.native.strided import offset_of, steps_of
from lineara.facts.types import ArrayType
from lineara.linear_a import syntax as ir

BLOCK = 512
"""Rows of a block, whose columns stay in the second cache."""
FAR = 2**20
"""Bytes of an array from which a number at a position is in no near cache."""
AHEAD = 96
"""Rows before such a number is used it is asked for: memory takes as long."""


class Line(NamedTuple):
    """A binding of a region; a weak one stays where it is if others read it."""

    place: int
    binding: ir.Let
    cells: Cells
    weak: bool


class Sum(NamedTuple):
    """Zeros to which rows are added at positions: a place, how far apart positions are, a value."""

    place: int
    binding: ir.Let
    type: ArrayType
    terms: list[tuple[int, int, Cell, Cell]]


class Fold(NamedTuple):
    """A sum or an extremum over rows, and the type of what is folded."""

    place: int
    binding: ir.Let
    cells: Cells
    type: ArrayType


class Checked(NamedTuple):
    """Positions that are looked at before they are used, and what is asked if one is not there."""

    array: ir.Var
    cells: Cells
    length: int
    leaf: ir.Prim


class Region(NamedTuple):
    """The lines of a region of so many rows."""

    n: int
    lines: list[Line]
    sums: list[Sum]
    folds: list[Fold]
    checks: list[Checked]
    stored: set[ir.Var]  # of what lines bind, what is read after them
    spare: set[int]  # the places of zeros that only sums read
    literals: dict[ir.Var, int]  # arrays of the text, and where they are bound
    order: list[Cell]  # all cells, each after its arguments

    def every(self) -> list[Line | Sum | Fold]:
        """All lines, in the order of the block."""
        return sorted([*self.lines, *self.sums, *self.folds], key=lambda line: line.place)

    def is_worth_it(self) -> bool:
        """Whether rows stay where another region would go through memory."""
        return len([x for x in self.every() if not (isinstance(x, Line) and x.weak)]) > 1


class Blocks:
    """The code of a region: what its block binds is put into `env`."""

    def __init__(
        self, em: Emitter, block: ir.Block, env: dict[ir.Var, nm.Held], region: Region
    ) -> None:
        self.em = em
        self.block = block
        self.env = env
        self.region = region
        self.outputs: list[tuple[Cells, nm.Arr]] = []
        self.totals: list[tuple[Sum, nm.Arr]] = []
        self.going: list[folds.Going] = []
        self.memory: dict[Cell, nm.Arr] = {}
        self.start: nm.Affine = nm.Affine(0)  # the first row of the block that is written
        self.filled: set[Cell] = set()
        self.same: dict[Cell, nm.Num] = {}
        self.level: dict[Cell, int] = {}  # after how many calls a cell is made
        self.last: dict[Cell, int] = {}  # until when those in memory are read
        self.of_level: dict[int, list[Cell]] = {}
        self.end: int = 0

    def emit(self) -> set[int]:
        """The bindings that are emitted."""
        em, env = self.em, self.env
        lines = self.region.every()
        done = {line.place for line in lines} | self.region.spare
        for i in done:
            env |= dict.fromkeys(self.block.bindings[i].vars)
        done |= self.literals_early()
        for line in lines:
            em.tell(line.binding)
        em.leaves += len(lines)
        made: list[nm.Held] = []
        with em.kept(made), em.kept(self.memory.values()):
            for line in lines:
                v = line.binding.vars[0]
                if isinstance(line, Fold):
                    assert isinstance(line.binding.rhs, ir.Prim), "it folds"
                    whole = nm.Arr(nm.Buffer("%none", 0, True), line.type)
                    t = em.array_type(v.type)
                    self.going.append(folds.begun(em, line.binding.rhs, whole, t))
                    made.append(self.going[-1].so_far)
                elif isinstance(line, Sum):
                    y = em.zero(line.type)
                    assert isinstance(y, nm.Arr), "it has axes"
                    self.totals.append((line, y))
                    made.append(y)
                    env[v] = y
                elif v in self.region.stored:
                    y = em.array(em.array_type(v.type))
                    self.outputs.append((line.cells, y))
                    made.append(y)
                    env[v] = y
            rows = self.rows()
            is_open = self.by_blocks(rows)
            for line, going in zip(self.region.folds, self.going, strict=True):
                env[line.binding.vars[0]] = folds.ended(em, going, is_open)
        names = [x.binding.vars[0].name for x in lines if not (isinstance(x, Line) and x.weak)]
        stored = [
            x.binding.vars[0].name
            for x in lines
            if not isinstance(x, Fold) and env[x.binding.vars[0]] is not None
        ]
        blocks = f", {rows:,} at a time" if rows < self.region.n else ""
        told = (
            f"{em.open[-1]}: {', '.join(names)} over {self.region.n:,} narrow rows{blocks}; "
            f"stored: {', '.join(stored) or 'none'}"
        )
        places = dict.fromkeys([ir.line_of(line.binding) for line in lines] * em.listed)
        em.fused.append((told, tuple(filter(None, places))))
        return done

    def literals_early(self) -> set[int]:
        """Arrays of the text that cells are of are there before the region."""
        used = {x.of[0] for x in self.alive() if x.how in (LOAD, AT)}
        used |= {v for c in self.region.checks for v in c.leaf.operands()}
        early = {v: i for v, i in self.region.literals.items() if v in used}
        for v, i in early.items():
            b = self.block.bindings[i]
            assert isinstance(b, ir.Let), "it is a literal"
            (self.env[v],) = self.em.expression(b.rhs, self.env, [v.type], (), {}, [True])
        return {*early.values()}

    def rows(self) -> int:
        """How many rows a block has: whole vectors, and all blocks as many if that can be."""
        if self.region.n < 2 * BLOCK:
            return self.region.n
        return next((k for k in range(BLOCK, BLOCK // 4, -VECTOR) if self.region.n % k == 0), BLOCK)

    def alive(self) -> list[Cell]:
        """The cells that what is stored needs, each after its arguments."""
        kept = [
            line.cells for line in self.region.lines if line.binding.vars[0] in self.region.stored
        ]
        wanted = {x for cells in kept for x in cells.at.flat}
        wanted |= {x for fold in self.region.folds for x in fold.cells.at.flat}
        wanted |= {x for total in self.region.sums for term in total.terms for x in term[2:]}
        wanted |= {x for c in self.region.checks for x in c.cells.at.flat}
        for x in reversed(self.region.order):
            if x in wanted:
                wanted.update(x.args)
        return [x for x in self.region.order if x in wanted]

    def check(self, count: int | str) -> None:
        """Look at the positions in a block, and complain of the first that is not there.

        The block's are in the first cache then; a pass over all of them before would read them
        from memory twice.
        """
        em, bad = self.em, self.em.at_entry("alloca i1")
        em.line(f"store i1 false, ptr {bad}")
        with em.each(count, True) as i:
            numbers = dict(self.same)
            for x, length in [(x, c.length) for c in self.region.checks for x in c.cells.at.flat]:
                above = em.let(f"add i64 {em.text(self.number(x, i, numbers))}, {length}")
                off = em.let(f"icmp uge i64 {above}, {2 * length}")
                before = em.let(f"load i1, ptr {bad}")
                em.line(f"store i1 {em.let(f'or i1 {before}, {off}')}, ptr {bad}")

        def complain() -> None:
            for c in self.region.checks:
                arrays.complained(em, c.leaf, {v: self.env[v] for v in c.leaf.operands()})

        em.must(em.let(f"xor i1 {em.let(f'load i1, ptr {bad}')}, true"), complain)

    def by_blocks(self, rows: int) -> bool:
        """All rows, so many at a time; gives whether a loop has the last ones."""
        em, alive = self.em, self.alive()
        for x in alive:
            if not x.varies:
                self.number(x, nm.constant("i64", 0), self.same)
        self.plan([x for x in alive if x.varies])
        rest = self.region.n % rows
        if rows == self.region.n:
            self.a_block(nm.Affine(0), rows, rows)
        elif not rest or self.region.folds:  # a fold has to know how many rows there are
            with em.each(self.region.n // rows, spent=rows * len(alive)) as i:
                self.a_block(rounds(i).times(rows), rows, rows)
            if rest:
                self.a_block(nm.Affine(self.region.n - rest), rest, rows)
        else:
            with em.each(self.region.n // rows + 1, spent=rows * len(alive)) as i:
                start = rounds(i).times(rows)
                left = em.let(f"sub i64 {self.region.n}, {em.of_rounds(start)}")
                few = em.let(f"icmp ult i64 {left}, {rows}")
                count = em.let(f"select i1 {few}, i64 {left}, i64 {rows}")
                self.a_block(start, count, rows)
        return rows < self.region.n and not (rest and self.region.folds)

    def plan(self, alive: Sequence[Cell]) -> None:
        """After how many calls each cell is made, and until when those in memory are read."""
        for x in alive:
            at = max([self.level.get(y, 0) for y in x.args], default=0)
            self.level[x] = at + (x.how == CALL)
            self.of_level.setdefault(at, []).append(x)
            for y in [y for y in x.args if y.varies]:
                crosses = y.how in (CALL, AT) or (y.how == STEP and self.level[y] < at)
                if crosses or x.how == CALL:
                    self.last[y] = max(self.last.get(y, 0), at)
        self.end = max([*self.level.values(), 0])
        for x in [x for total, _ in self.totals for *_, x in total.terms]:
            if x.how != LOAD:
                self.last[x] = self.end + 1
        stored = [cells for cells, _ in self.outputs] + [fold.cells for fold in self.region.folds]
        for x in [x for cells in stored for x in cells.at.flat]:
            if x.how in (CALL, AT):
                self.last[x] = max(self.last.get(x, 0), self.level[x])

    def a_block(self, start: nm.Affine, count: int | str, rows: int) -> None:
        """The rows of a block, so many from one of them on, in columns of `rows`."""
        em = self.em
        self.start = start
        blocks: list[nm.Arr] = []
        with em.kept(blocks):
            for fold in self.region.folds:
                assert isinstance(count, int), "a fold knows how many rows there are"
                blocks.append(em.array(ArrayType((count, *fold.type.shape[1:]), fold.type.dtype)))
            self.columns(blocks, count, rows)
            pairs = zip(self.going, blocks, strict=True)
            self.going = [folds.gone_on(em, going, y) for going, y in pairs]

    def columns(self, blocks: Sequence[nm.Arr], count: int | str, rows: int) -> None:
        """The same; what is folded goes into `blocks`."""
        em = self.em
        if self.region.checks:
            self.check(count)
        folded = [(fold.cells, y) for fold, y in zip(self.region.folds, blocks, strict=True)]
        stored = [
            (self.level.get(x, 0), x, y, place, first)
            for these, first in ((self.outputs, self.start), (folded, nm.Affine(0)))
            for cells, y in these
            for x, place in zip(cells.at.flat, places_in(y, cells.axis), strict=True)
        ]
        first = self.of_level.get(0, [])
        at: dict[Cell, list[Cell]] = {}
        for x in [x for x in first if x.how == AT]:
            at.setdefault(x.args[0], []).append(x)
        for cells in at.values():
            self.one_loop((), cells, (), count, rows)
        self.one_loop((), [x for x in self.last if x.how == LOAD], (), count, rows)
        for level in range(self.end + 1):
            here = self.of_level.get(level, [])
            steps = [x for x in here if x.how == STEP]
            outputs = [tuple(to) for at, *to in stored if at == level]
            self.one_loop(steps, [x for x in steps if x in self.last], outputs, count, rows)
            for x in [x for x in here if x.how == CALL]:
                self.call(x, count, rows)
            for x in [x for x in self.filled if self.last[x] <= level]:
                self.filled.discard(x)
                del self.memory[x]
        for total, y in self.totals:
            with em.each(count, True) as i:
                numbers = dict(self.same)
                self.ask_for([(x, y, place, step) for place, step, x, _ in total.terms], i, 1)
                for place, step, position, x in total.terms:
                    if x.num is not None and repr(x.num.constant) == "0.0":
                        continue  # zeros and what is added to them are never -0.0
                    to = self.number(position, i, numbers)
                    to = offset_of(em, nm.constant("i64", place), to, step)
                    z = RULES["add"](em, x.kind, [em.load(y, to), self.number(x, i, numbers)])
                    assert z is not None, "numbers are added"
                    em.store(z, y, to)
        self.filled.clear()
        self.memory.clear()

    def one_loop(
        self,
        steps: Sequence[Cell],
        kept: Sequence[Cell],
        outputs: Sequence[tuple[Any, ...]],
        count: int | str,
        rows: int,
    ) -> None:
        """Steps in all rows of a block; which of them are columns, and which go into results."""
        if not kept and not outputs:
            return
        em = self.em
        for x in kept:
            self.memory[x] = em.array(ArrayType((rows,), nm.TYPES[x.kind].dtype))
        with em.each(count, True) as i:
            numbers = dict(self.same)
            read = [(x.args[0], self.env[x.of[0]], *x.of[1:]) for x in kept if x.how == AT]
            self.ask_for(read, i, 0)
            for x in steps:
                self.number(x, i, numbers)
            for x in kept:
                em.store(self.number(x, i, numbers), self.memory[x], i)
            for x, y, (place, step), first in outputs:
                em.store(self.number(x, i, numbers), y, place_of(place, step, first, i))
        self.filled.update(kept)

    def ask_for(self, places: Sequence[tuple[Cell, Any, int, int]], i: nm.Num, stores: int) -> None:
        """Have memory bring what a later row reads or adds to at its positions.

        A processor looks ahead as well, but less far than memory takes.  The later positions may
        not be looked at yet; an address that is none brings nothing.
        """
        em = self.em
        far = {
            (position, array): (first, step)
            for position, array, first, step in reversed(places)
            if array.type.size * array.type.dtype.itemsize >= FAR
        }
        bring = em.outside("llvm.prefetch.p0", "void (ptr, i32, i32, i32)") if far else ""
        for (position, array), (first, step) in far.items():
            v, place, along = position.args[0].of
            row = em.let(f"add i64 {em.of_rounds(self.start.plus(rounds(i)))}, {AHEAD}")
            more = em.let(f"icmp ult i64 {row}, {self.region.n}")
            row = nm.Num("i64", em.let(f"select i1 {more}, i64 {row}, i64 {self.region.n - 1}"))
            positions = self.env[v]
            assert isinstance(positions, nm.Arr), "it was there"
            at = em.load(positions, offset_of(em, nm.constant("i64", place), row, along))
            at = em.text(offset_of(em, nm.constant("i64", first), at, step))
            unit = f"[{array.type.dtype.itemsize} x i8]"
            to = em.let(f"getelementptr {unit}, ptr {em.address(array)}, i64 {at}")
            em.line(f"call void {bring}(ptr {to}, i32 {stores}, i32 3, i32 1)")

    def call(self, x: Cell, count: int | str, rows: int) -> None:
        """A column by a loop of NumPy's."""
        em, (name, loop, _) = self.em, x.of
        y = self.memory[x] = em.array(ArrayType((rows,), nm.TYPES[x.kind].dtype))
        places, steps = [], []
        for a in x.args:
            array = self.memory.get(a)
            if array is None:
                places.append(em.boxed(a.num or self.same[a]))
            else:
                places.append(em.address(array))
            steps.append(0 if array is None else array.type.dtype.itemsize)
        f, data = arrays.named_loop(em, name, loop)
        steps.append(y.type.dtype.itemsize)
        arrays.looped(em, f, data, [*places, em.address(y)], count, steps)
        self.filled.add(x)

    def number(self, x: Cell, i: nm.Num, numbers: dict[Cell, nm.Num]) -> nm.Num:
        """The number of a cell in a row of the block."""
        if x.num is not None:
            return x.num
        if x not in numbers:
            numbers[x] = self.made(x, i, numbers)
        return numbers[x]

    def made(self, x: Cell, i: nm.Num, numbers: dict[Cell, nm.Num]) -> nm.Num:
        """The same of one that is in no register yet."""
        em = self.em
        if x in self.filled:
            return em.load(self.memory[x], i)
        given = [self.number(y, i, numbers) for y in x.args]
        if x.how == PLACE:
            at = em.text(given[0])
            below = em.let(f"icmp slt i64 {at}, 0")
            above = em.let(f"add i64 {at}, {x.of}")
            return nm.Num("i64", em.let(f"select i1 {below}, i64 {above}, i64 {at}"))
        if x.how == STEP:
            y = x.of(em, x.kind, given)
            assert y is not None, "it was tried before"
            return y
        v, place, step = x.of
        array = self.env[v]
        assert isinstance(array, nm.Arr), "it was there"
        if x.how == AT:
            return em.load(array, offset_of(em, nm.constant("i64", place), given[0], step))
        return em.load(array, place_of(place, step, self.start, i))


def rounds(i: nm.Num) -> nm.Affine:
    """The rounds that a loop counts."""
    assert i.affine is not None, "a loop counts its rounds"
    return i.affine


def place_of(place: int, step: int, first: nm.Affine, i: nm.Num) -> nm.Num:
    """Where a number is that has this place in row 0, in a row counted from the first one."""
    row = first.plus(rounds(i)) if step else nm.Affine(0)
    return nm.Num("i64", affine=nm.Affine(place).plus(row, step))


def places_in(y: nm.Arr, axis: int | None) -> list[tuple[int, int]]:
    """Where each number of the first row lies in a result, and how far those of the next are."""
    steps = steps_of(y)
    step = 0 if axis is None else steps[axis]
    return [
        (sum([i * k for i, k in zip(place, steps, strict=True)]), step)
        for place in np.ndindex(*one(y.type.shape, axis))
    ]
