"""Regions: lines on arrays of as many rows, emitted together, some rows after the other.

    steps     y = f(x, w) at each place: a run of them is one loop, and values cross in registers
    calls     functions of NumPy's, and sums over axes of a row, as they are, on the rows at hand
    adds      what lines make, added to a part of an array that dies there, or to zeros
    names     the same memory under another shape
    folds     sums and extrema over the rows: they go on from block to block

A region begins at a line and takes the later ones of its block that need no others; these move up,
since none of them can fail.  What no line after the region reads is in registers, or in a block of
memory that stays in the cache.  No bit of a result changes: NumPy's loops get whole vectors of the
processor, and what is added is added in the order that `folds` has without regions.
"""

import math
from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

from lineara.engines.native import arrays, folds
from lineara.engines.native import numbers as nm
from lineara.engines.native.emit import Emitter
from lineara.engines.native.layouts import laid
from lineara.engines.native.scalars import RULES, itself, rule_of
from lineara.engines.native.strided import (
    Plain,
    Spot,
    at_offset,
    cleared_around,
    part,
    spot,
    steps_in,
    steps_of,
)
from lineara.facts.primitive import Elementwise
from lineara.facts.types import ArrayType
from lineara.linear_a import syntax as ir

WINDOW = 256
"""Bindings in which a region looks for its lines."""
LEAST = 32
"""Elements of an array from which it has regions."""
BLOCK = 2048
"""Elements of a block, of which some stay in the first cache."""
BLOCKED = 4 * BLOCK
"""Elements from which an array is cut into blocks."""
VECTOR = 32
"""Elements of which a block is a multiple: partial sums, and a processor's vectors."""
STEP, ADD, CALL, NAME, FOLD = "step", "add", "call", "name", "fold"


class Line(NamedTuple):
    """A binding of a region, and what becomes of it."""

    place: int  # in its block
    binding: ir.Let
    how: str
    reads: ir.Vars
    type: ArrayType

    @property
    def var(self) -> ir.Var:
        """What it binds."""
        return self.binding.vars[0]


class Region:
    """The region that begins at a binding of a block, or none."""

    count: int

    def __init__(
        self, em: Emitter, block: ir.Block, start: int, runs: set[int], env: dict[ir.Var, nm.Held]
    ) -> None:
        self.em = em
        self.block = block
        self.env = env
        self.n: int = 0
        self.begin: int = start
        self.lines: list[Line] = []
        self.early: list[int] = []  # small bindings that lines need
        self.inside: dict[ir.Var, nm.Arr] = {}  # what lines make, in memory that is not there
        with em.trial():
            self.look(start, runs)
        self.stored: set[ir.Var] = set()
        if self.is_worth_it():
            self.stored = self.read_later(runs)

    # --- which lines --------------------------------------------------------------------------

    def look(self, start: int, runs: set[int]) -> None:
        """The lines of the region, and the small bindings that these need."""
        outside = dict(self.env)
        places = range(start, min(len(self.block.bindings), start + WINDOW))
        small: dict[ir.Var, int] = {}
        for i in places:
            b = self.block.bindings[i]
            if i not in runs or not isinstance(b, ir.Let) or len(b.vars) != 1:
                continue
            e = b.rhs
            if not isinstance(e, ir.Ret | ir.Copy | ir.Lit | ir.Prim | ir.Accum):
                continue
            if not all([v in outside or v in self.inside for v in needed(self.em, e)]):
                continue
            if isinstance(e, ir.Accum):
                self.lines += self.adding(i, b, e, runs)
                continue
            line = self.line(i, b, e, outside)
            if line is not None:
                self.lines.append(line)
            elif not self.lines:
                return
            elif self.is_small(b) and all([v in outside for v in needed(self.em, e)]):
                (outside[b.vars[0]],) = self.early_values(b, outside)
                small[b.vars[0]] = i
        self.prune()
        wanted = [v for line in self.lines for v in line.reads]
        for v, i in reversed(small.items()):
            if v in wanted:
                self.early.insert(0, i)
                b = self.block.bindings[i]
                assert isinstance(b, ir.Let)
                wanted += self.em.demand.reads(b.rhs, (True,))

    def adding(self, i: int, b: ir.Let, e: ir.Accum, runs: set[int]) -> list[Line]:
        """What adds a line to a slice of an array, if nothing else reads that from here on."""
        whole, value = e.args
        t, target = type_held(self.em, value), self.env.get(whole)
        if self.em.exact or t is None or value not in self.inside or t.shape[:1] != (self.n,):
            return []
        others = [b for j, b in enumerate(self.block.bindings) if j in runs and j >= self.begin]
        read = [*[v for b in others for v in ir.reads(b)], *self.block.leaf.operands()]
        fits = isinstance(target, nm.Arr | nm.Nil) and whole.type == b.vars[0].type
        if not fits or read.count(whole) != 1 or len(e.operands()) != 2:
            return []
        where = self.spot(e, self.em.array(self.em.array_type(whole.type)))
        fits = where is not None and where.shape == t.shape and where.begin is not None
        fits = fits and t.dtype == self.em.array_type(whole.type).dtype
        return [Line(i, b, ADD, (value,), t)] if fits else []

    def spot(self, e: ir.Accum, whole: nm.Arr) -> Spot | None:
        """The slice of an array that is added to, if it is one."""
        where = spot(self.em, whole, ir.parts_of(e.at), {}, lambda: None)
        return None if where is None or where.is_looked_up else where

    def prune(self) -> None:
        """Leave out what would only be stored earlier: names and broadcasts that no line reads."""
        read: set[ir.Var] = set()
        for line in reversed(self.lines[1:]):
            e = line.binding.rhs
            spreads = getattr(e, "name", "") == "broadcast_to" or is_trusted(self.em, e)
            if line.var not in read and (self.is_name(line) or spreads):
                self.lines.remove(line)
            else:
                read.update(line.reads)

    def is_name(self, line: Line) -> bool:
        """Whether the result is what the line reads, perhaps under another shape."""
        trusts = line.how is STEP and is_trusted(self.em, line.binding.rhs)
        return line.how is NAME or (trusts and type_held(self.em, line.reads[0]) == line.type)

    def is_small(self, b: ir.Let) -> bool:
        """Whether a binding may come earlier than it is written, and costs next to nothing."""
        t = type_held(self.em, b.vars[0])
        return t is not None and t.size < LEAST and not self.em.demand.may_fail(b.rhs)

    def early_values(self, b: ir.Let, env: dict[ir.Var, nm.Held]) -> Any:
        """The value of a binding that comes earlier."""
        types = [v.type for v in b.vars]
        at = {v: env.get(v, nm.UNREAD) for v in ir.reads(b)}  # masks may not be there
        return self.em.expression(b.rhs, at, types, (), {}, [True] * len(types))

    def line(self, i: int, b: ir.Let, e: ir.Leaf, outside: dict[ir.Var, nm.Held]) -> Line | None:
        """A binding as a line of the region, if it is one."""
        t, reads = type_held(self.em, b.vars[0]), needed(self.em, e)
        types = [type_held(self.em, v) for v in reads]
        if t is None or not reads or None in types:
            return None
        over_rows = isinstance(e, ir.Prim) and folds_rows(e, types[0])
        shape = types[0].shape if over_rows and types[0] is not None else t.shape
        if not shape or (self.n or shape[0]) != shape[0] or math.prod(shape) < LEAST:
            return None
        self.n = shape[0]
        values = {v: self.inside.get(v, outside.get(v)) for v in reads}
        given = [values[v] for v in reads]
        if not all([isinstance(x, nm.Num | nm.Arr) for x in given]):
            return None
        how = self.how(e, reads, values, t, over_rows)
        if how is None:
            return None
        if how is not FOLD:
            size = t.size * t.dtype.itemsize
            self.inside[b.vars[0]] = nm.Arr(nm.Buffer("%none", size, True), t)
        return Line(i, b, how, reads, t)

    def how(
        self,
        e: ir.Leaf,
        reads: ir.Vars,
        values: dict[ir.Var, Any],
        t: ArrayType,
        over_rows: bool,
    ) -> str | None:
        """What becomes of a leaf, all of whose arguments are there."""
        em, given = self.em, [values[v] for v in reads]
        first = given[0]
        if over_rows:
            assert isinstance(e, ir.Prim), "it has a name"
            fits = isinstance(first, nm.Arr) and self.is_of_rows(first, first.type.ndim)
            return FOLD if fits and folds.goes_on(em, e, first, t) else None
        if not isinstance(e, ir.Prim) or e.name == "reshape" or takes_all(e):
            of_rows = reads[0] in self.inside and first.type.shape[:1] == t.shape[:1]
            return NAME if of_rows else None
        whole = [v for v in reads if v in self.inside and not self.is_of_rows(values[v], t.ndim)]
        if whole and e.name not in folds.FOLDS:
            return None
        if len(reads) < len(e.args) or is_step(em, e, given, t):
            return STEP
        if not (isinstance(e.primitive, Elementwise) or e.name in folds.FOLDS):
            return None
        sites = len(em.sites)
        y = arrays.primitive(em, e, [values[v] for v in e.args], values, t)
        asks = any([s.leaves for s in em.sites[sites:]])
        return CALL if isinstance(y, nm.Arr) and not asks else None

    def is_of_rows(self, x: Plain, ndim: int) -> bool:
        """Whether an array has a row for each row of the result; if not it is read whole."""
        return isinstance(x, nm.Arr) and x.type.ndim == ndim and x.type.shape[0] == self.n

    def read_later(self, runs: set[int]) -> set[ir.Var]:
        """What is read after the region, of what its lines make."""
        mine = {line.place for line in self.lines}
        others = [b for i, b in enumerate(self.block.bindings) if i in runs and i not in mine]
        later = {v for b in others for v in ir.reads(b)} | {*self.block.leaf.operands()}
        for line in reversed(self.lines):  # the memory of a name is that of what it names
            if self.is_name(line) and line.var in later:
                later.add(line.reads[0])
        return later

    # --- as code ------------------------------------------------------------------------------

    def is_worth_it(self) -> bool:
        """Whether there is anything that lines have in common."""
        return len([line for line in self.lines if line.how is not NAME]) > 1

    def emit(self) -> set[int]:
        """The bindings that are emitted; none where it is not worth it."""
        em, env = self.em, self.env
        if not self.is_worth_it():
            return set()
        for i in self.early:
            b = self.block.bindings[i]
            assert isinstance(b, ir.Let)
            em.tell(b)
            env.update(zip(b.vars, self.early_values(b, env), strict=True))
        em.leaves += len(self.lines)
        self.outputs: dict[ir.Var, nm.Arr] = {}
        self.going: dict[ir.Var, folds.Going] = {}
        self.sums: dict[ir.Var, nm.Arr] = {}  # what is added to, and the parts of these
        self.parts: dict[ir.Var, nm.Arr] = {}
        self.zeros: set[ir.Var] = set()
        made: list[nm.Arr] = []
        with em.kept(made):
            for line in self.lines:
                if line.how is FOLD:
                    assert isinstance(line.binding.rhs, ir.Prim)
                    x = self.whole(line.reads[0])
                    self.going[line.var] = folds.begun(em, line.binding.rhs, x, line.type)
                    made.append(self.going[line.var].so_far)
                elif line.how is ADD:
                    made.append(self.target(line))
                elif not self.is_name(line) and line.var in self.stored:
                    self.outputs[line.var] = self.over(line)
                    made.append(self.outputs[line.var])
            rows = self.rows()
            self.in_loop: bool = self.n % rows == 0 and rows < self.n
            if rows == self.n:
                self.rows_from(nm.Affine(0), rows)
            else:
                em.in_blocks = True
                with em.each(self.n // rows, spent=rows * self.widest()) as i:
                    assert i.affine is not None, "a loop counts its rounds"
                    self.rows_from(i.affine.times(rows), rows)
                if self.n % rows:
                    self.rows_from(nm.Affine(self.n - self.n % rows), self.n % rows)
                em.in_blocks = False
            lays = self.lays() if em.exact else {}
            for line in self.lines:
                env[line.var] = y = self.result(line)
                if line.var in lays and isinstance(y, nm.Arr):
                    env[line.var] = y._replace(lay=lays[line.var])
        places = dict.fromkeys([ir.line_of(line.binding) for line in self.lines] * em.listed)
        em.fused.append((self.told(rows), tuple(filter(None, places))))
        return {*self.early, *[line.place for line in self.lines]}

    def target(self, line: Line) -> nm.Arr:
        """The array that a line adds to, in place, or zeros: of its own part those are not made."""
        e, em = line.binding.rhs, self.em
        assert isinstance(e, ir.Accum)
        t, before = em.array_type(line.var.type), self.env[e.args[0]]
        self.env[e.args[0]] = nm.UNREAD  # its own binding may be later in the block
        whole = em.own(before, True) if isinstance(before, nm.Arr) else em.array(t)
        where = self.spot(e, whole)
        assert where is not None, "it was looked at"
        if not isinstance(before, nm.Arr):
            self.zeros.add(line.var)
            cleared_around(em, whole, where)
        self.sums[line.var], self.parts[line.var] = whole, part(em, whole, where)
        return whole

    def over(self, line: Line) -> nm.Arr:
        """The memory of a stored line: that of an array that dies here, if it may be.

        The line is made of such an array place by place, and so is every line that reads it.
        """
        needs, dying = {line.var}, {v for b in self.block.bindings for v in b.vars} - self.stored
        for other in reversed(self.lines):
            needs.update(other.reads if other.var in needs else ())
        late = [r for r in self.lines if r.var not in needs or r.type.ndim != line.type.ndim]
        dying -= {v for r in late for v in r.reads}
        mine = [v for v in self.env if v in dying and v in needs and line.how is STEP]
        left = {v: self.env.pop(v) for v in mine}
        y = self.em.over([*left.values()], line.type)
        self.env.update(left)
        return y

    def whole(self, v: ir.Var) -> nm.Arr:
        """An array of all rows, whose memory need not be there."""
        x = self.inside.get(v, self.env.get(v))
        assert isinstance(x, nm.Arr), "it has rows"
        return x

    def width(self, line: Line) -> int:
        """How many elements a row of a line has, or one of what it folds."""
        t = self.whole(line.reads[0]).type if line.how is FOLD else line.type
        return math.prod(t.shape[1:])

    def widest(self) -> int:
        """How many elements the widest rows have."""
        return max(1, *map(self.width, self.lines))

    def rows(self) -> int:
        """How many rows a block has: whole vectors for what is called, and for partial sums."""
        widest, step = self.widest(), 1
        for line in self.lines:
            going = self.going.get(line.var)
            if line.how is CALL or (going and going.is_long):
                step = max(step, VECTOR // math.gcd(VECTOR, self.width(line)))
        most = max(step, BLOCK // widest // step * step)
        if self.n * widest < BLOCKED or 2 * most > self.n:
            return self.n
        dividing = [k for k in range(most, most // 4, -step) if self.n % k == 0]
        return dividing[0] if dividing else most

    def told(self, rows: int) -> str:
        """Which lines are one region, and which of them are stored."""
        names = [line.var.name for line in self.lines if line.how is not NAME]
        stored = [v.name for v in (*self.outputs, *self.sums)]
        blocks = f", {rows:,} at a time" if rows < self.n else ""
        return (
            f"{self.em.open[-1]}: {', '.join(names)} over {self.n:,} rows{blocks}; "
            f"stored: {', '.join(stored) or 'none'}"
        )

    def lays(self) -> dict[ir.Var, nm.Lay]:
        """How NumPy lays out the results."""
        em, known = self.em, {v: x.lay for v, x in self.env.items() if isinstance(x, nm.Arr)}
        for line in self.lines:
            e = line.binding.rhs
            assert isinstance(e, ir.Leaf), "it is a line"
            of = {v: (em.array_type(v.type), known.get(v, nm.C)) for v in e.operands()}
            known[line.var] = laid(em, e, of, em.array_type(line.var.type))
        return known

    def result(self, line: Line) -> nm.Held:
        """The value after the region; None of what nobody reads."""
        if line.how is FOLD:
            return folds.ended(self.em, self.going[line.var], self.in_loop)
        if line.how is ADD:
            return self.sums[line.var]
        if self.is_name(line) and line.var in self.stored:
            source = self.env[line.reads[0]]
            if line.type != type_held(self.em, line.reads[0]):
                (source,) = self.em.in_order([source])
            assert isinstance(source, nm.Arr), "it is stored"
            return source._replace(type=line.type)
        return self.outputs.get(line.var)

    def rows_from(self, start: nm.Affine, rows: int) -> None:
        """The lines on so many rows, from one of them on."""
        self.start: nm.Affine = start
        self.count: int = rows
        self.values: dict[ir.Var, nm.Arr] = {}
        self.unread: Counter[ir.Var] = Counter([v for line in self.lines for v in line.reads])
        waiting: dict[tuple[int, ...], list[Line]] = {}
        ordered = sorted(self.lines, key=lambda line: line.how is FOLD)  # no line reads a fold
        with self.em.kept(self.values.values()):
            for line in ordered:
                for shape, lines in [*waiting.items()]:
                    joins = line.how in (STEP, ADD) and line.type.shape == shape
                    if not joins and {*line.reads} & {s.var for s in lines}:
                        self.steps(waiting.pop(shape))
                if line.how in (STEP, ADD):
                    waiting.setdefault(line.type.shape, []).append(line)
                else:
                    self.alone(line)
            for lines in waiting.values():
                self.steps(lines)

    def done(self, lines: Iterable[Line]) -> None:
        """What no line reads any more needs no memory."""
        for line in lines:
            self.unread.subtract(line.reads)
            for v in line.reads:
                if not self.unread[v]:
                    self.values.pop(v, None)

    def value(self, v: ir.Var, ndim: int) -> Plain:
        """An operand of a line whose places have so many axes: the rows at hand, or all."""
        if v in self.values:
            return self.values[v]
        x = self.env[v]
        assert isinstance(x, nm.Num | nm.Arr), "it was there"
        return self.part(x) if isinstance(x, nm.Arr) and self.is_of_rows(x, ndim) else x

    def part(self, x: nm.Arr) -> nm.Arr:
        """The rows at hand."""
        if self.count == self.n:
            return x
        steps = tuple(steps_of(x))
        first = nm.Num("i64", affine=self.start.times(steps[0]))
        return part(self.em, x, Spot(first, (self.count, *x.type.shape[1:]), steps))

    def memory(self, line: Line) -> nm.Arr:
        """Where the rows of a result are put."""
        if line.var in self.outputs:
            return self.part(self.outputs[line.var])
        return self.em.array(self.of_rows(line.type))

    def of_rows(self, t: ArrayType) -> ArrayType:
        """The type of the rows at hand."""
        return ArrayType((self.count, *t.shape[1:]), t.dtype)

    def steps(self, lines: list[Line]) -> None:
        """A run of steps: one loop."""
        em = self.em
        t = self.of_rows(lines[0].type)
        mine = {line.var for line in lines}
        within = Counter([v for line in lines for v in line.reads])
        inputs: dict[ir.Var, Plain] = {}
        for line in lines:
            em.tell(line.binding)
            for v in line.reads:
                if v not in mine and v not in inputs:
                    inputs[v] = self.value(v, t.ndim)
            if line.how is ADD:
                inputs[line.var] = self.part(self.parts[line.var])
        kept: list[Line] = []
        with em.kept(inputs.values()):
            for line in lines:
                if line.var in self.outputs or self.unread[line.var] > within[line.var]:
                    self.values[line.var] = self.memory(line)
                    kept.append(line)
        places = [steps_in(x, t.ndim) for x in inputs.values()]
        whole = nm.strides_of(t.shape)
        with em.nest(t.shape, *places, whole) as (*of, to):
            numbers = {v: at_offset(em, x, i) for (v, x), i in zip(inputs.items(), of, strict=True)}
            offsets = dict(zip(inputs, of, strict=True))
            for line in lines:
                if line.how is ADD:
                    self.add(line, inputs[line.var], offsets[line.var], numbers)
                    continue
                y = number(em, line, [numbers[v] for v in line.reads])
                numbers[line.var] = y
                if line in kept:
                    em.store(y, self.values[line.var], to)
        self.done(lines)

    def add(self, line: Line, into: Plain, at: nm.Num, numbers: dict[ir.Var, nm.Num]) -> None:
        """Add a number to what is at its place; to a zero, after which -0 is 0."""
        kind = nm.kind_of(line.type)
        assert kind is not None
        assert isinstance(into, nm.Arr)
        before = nm.constant(kind, 0) if line.var in self.zeros else numbers[line.var]
        total = RULES["add"](self.em, kind, [before, numbers[line.reads[0]]])
        assert total is not None
        self.em.store(total, into, at)

    def alone(self, line: Line) -> None:
        """A line that is no step."""
        em, e = self.em, line.binding.rhs
        em.tell(line.binding)
        if line.how is NAME:
            source = self.values[line.reads[0]]
            self.values[line.var] = source._replace(type=self.of_rows(line.type))
        elif line.how is FOLD:
            whole = self.whole(line.reads[0])
            x = self.value(line.reads[0], whole.type.ndim)
            assert isinstance(x, nm.Arr), "it has rows"
            self.going[line.var] = folds.gone_on(em, self.going[line.var], x)
        else:
            assert isinstance(e, ir.Prim)
            of_own = e.name in folds.FOLDS
            at = {}
            for v in line.reads:
                t = type_held(self.em, v)
                assert t is not None
                at[v] = self.value(v, t.ndim if of_own else line.type.ndim)
            given = [at[v] for v in e.args]
            into = self.memory(line) if line.var in self.outputs else None
            y = arrays.primitive(em, e, given, at, self.of_rows(line.type), into)
            assert isinstance(y, nm.Arr), "it was tried before"
            if into is not None and y.buffer is not into.buffer:
                em.copy(y, into)
                y = into
            self.values[line.var] = y
        self.done([line])


def type_held(em: Emitter, v: ir.Var) -> ArrayType | None:
    """The type of an array or number whose size is known, and whose numbers registers hold."""
    t = em.program.unfold(v.type)
    if not isinstance(t, ArrayType) or not all([isinstance(k, int) for k in t.shape]):
        return None
    return None if nm.kind_of(t) is None else t


def needed(em: Emitter, e: ir.Leaf) -> ir.Vars:
    """What a leaf reads; of a masked product the mask is not looked at."""
    return e.args[1:2] if is_trusted(em, e) else e.operands()


def is_trusted(em: Emitter, e: ir.Leaf | ir.Block) -> bool:
    """Whether a leaf is a factor that is taken as it is."""
    return isinstance(e, ir.Prim) and e.name == "live_factor" and em.demand.trusts(e)


def folds_rows(e: ir.Prim, t: ArrayType | None) -> bool:
    """Whether a primitive folds the first axis."""
    return e.name in folds.FOLDS and t is not None and 0 in folds.gone(e, t)


def takes_all(e: ir.Prim) -> bool:
    """Whether an index takes all elements, and only makes axes."""
    parts = ir.parts_of(e.params["at"]) if e.name == "index" else [0]
    return all([p is None or p is Ellipsis or is_whole(p) for p in parts])


def is_whole(p: object) -> bool:
    """Whether a part of an index is `:`."""
    return isinstance(p, slice) and (p.start, p.stop, p.step) == (None, None, None)


def is_step(em: Emitter, e: ir.Prim, args: list[Plain], t: ArrayType) -> bool:
    """Whether a primitive has code for numbers, place by place."""
    rule = arrays.step(e)
    if rule is None:
        return False
    if e.name == "broadcast_to" and em.exact and max([arrays.type_of(x).size for x in args]) > 1:
        return False
    kind = nm.kind_of(t)
    numbers = [em.load(x) if isinstance(x, nm.Arr) else x for x in args]
    return kind is not None and rule(em, kind, numbers) is not None


def number(em: Emitter, line: Line, args: list[nm.Num]) -> nm.Num:
    """What a step makes at one place."""
    e, kind = line.binding.rhs, nm.kind_of(line.type)
    assert isinstance(e, ir.Prim)
    assert kind is not None
    trusted = len(line.reads) < len(e.args)
    if trusted:
        em.trust(args[0])
    rule = itself if trusted else rule_of(e)
    assert rule is not None, "it has one"
    y = rule(em, kind, args)
    assert y is not None, "it was tried before"
    return y


def region(
    em: Emitter, block: ir.Block, start: int, runs: set[int], env: dict[ir.Var, nm.Held]
) -> set[int]:
    """Emit the region that begins at a binding, if one does; gives the bindings that are done."""
    b = block.bindings[start]
    if not isinstance(b, ir.Let) or not isinstance(b.rhs, ir.Prim) or len(b.vars) != 1:
        return set()
    if not any([getattr(v.type, "shape", ()) for v in (*b.vars, *b.rhs.args)]):
        return set()
    return Region(em, block, start, runs, env).emit()


__all__ = ["region"]
