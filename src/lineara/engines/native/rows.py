"""Narrow rows: lines on many rows of few numbers are loops over blocks of rows, by columns.

    cells     what a line makes in one row is an array of symbols, one for each number of the row
    moves     slices, joins, transposition and what is put into a part of a row name other symbols
    steps     y = f(x, w) of symbols; equal steps of equal symbols are one, as are sums in a row
    calls     functions of NumPy's, on a column: a symbol's numbers in all rows of a block
    reads     rows at positions, into columns; sums: rows that are added where positions say
    folds     sums and extrema over the rows, which go on from block to block

A region begins at a line and takes the later ones of its block that need no others.  What moves up
may not fail, but for positions: a pass over them looks at each before the rows begin, and nothing
that may fail and is left where it stands comes before it.  A block's steps are one loop for all
that lies between two calls; LLVM makes vectors of it, since the numbers of a column lie beside each
other.  What is added at positions is added in the order of the rows, as NumPy does.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from lineara.engines.native import arrays, folds
from lineara.engines.native import numbers as nm
from lineara.engines.native.emit import Emitter
from lineara.engines.native.regions import VECTOR, is_tame, is_trusted, needed, takes_all, type_held
from lineara.engines.native.scalars import RULES, itself
from lineara.engines.native.strided import Spot, offset_of, spot, steps_of
from lineara.facts.primitive import Elementwise
from lineara.facts.types import ArrayType
from lineara.linear_a import syntax as ir

MANY = 256
"""Rows from which an array is one of rows."""
NARROW = 16
"""Numbers of a row up to which it is narrow."""
BLOCK = 512
"""Rows of a block, whose columns stay in the second cache."""
WINDOW = 4096
"""Bindings in which a region looks for its lines, and cells from which it has enough."""
GIVEN, LOAD, PLACE, AT, STEP, CALL = "given", "load", "place", "at", "step", "call"
MOVES = {"index", "reshape", "permute_dims", "broadcast_to", "concat", "stack"}
VIEWS = {"index", "reshape", "permute_dims"}
ENDS = {"sum", *folds.EXTREMA}
Make = Callable[[Emitter, str, Sequence[nm.Num]], nm.Num | None]


class Cell:
    """One number of a row, in all rows; or a number that is the same in each.

    given         a number that is known
    load          an array's: its variable, the place in the first row, and from row to row
    place         a position, counted from the beginning of so many
    at            an array's at a place: its variable, the first place, and from one to the next
    step, call    what a rule or a loop of NumPy's makes of other cells
    """

    __slots__ = ("args", "how", "kind", "num", "of", "varies")

    def __init__(
        self, how: str, kind: str, of: Any, args: Sequence["Cell"] = (), num: nm.Num | None = None
    ) -> None:
        self.how = how
        self.kind = kind
        self.of = of
        self.args = args
        self.num = num
        moves = how == AT or (how == LOAD and of[2] != 0)
        self.varies: bool = moves or any([x.varies for x in args])


class Cells(NamedTuple):
    """An array of cells, which has one place on the axis of the rows; None: it has no rows."""

    at: np.ndarray
    axis: int | None


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
    """Positions that are looked at before the rows begin, and what is asked if one is not there."""

    array: ir.Var
    length: int
    leaf: ir.Prim


class Rows:
    """The region of narrow rows that begins at a binding of a block, or none."""

    def __init__(
        self, em: Emitter, block: ir.Block, start: int, runs: set[int], env: dict[ir.Var, nm.Held]
    ) -> None:
        self.em = em
        self.block = block
        self.env = env
        self.runs = runs
        self.n: int = 0
        self.lines: list[Line] = []
        self.sums: list[Sum] = []
        self.folds: list[Fold] = []
        self.checks: list[Checked] = []
        self.zeros: dict[ir.Var, int] = {
            b.vars[0]: i
            for i, b in enumerate(block.bindings)
            if isinstance(b, ir.Let) and isinstance(b.rhs, ir.Zero)
        }
        self.literals: dict[ir.Var, int] = {}  # arrays of the text, and where they are bound
        self.outside: dict[ir.Var, nm.Held] = dict(env)
        self.inside: dict[ir.Var, Cells] = {}
        self.known: dict[object, Cell | None] = {}  # what is known of equal cells
        self.order: list[Cell] = []
        self.moved: int = 0  # lines that no other region takes
        self.left: int = len(block.bindings)  # the first binding on as many rows that is no line
        self.stored: set[ir.Var] = set()
        with em.trial():
            self.look(start)
        self.choose()

    # --- which lines ------------------------------------------------------------------------------

    def look(self, start: int) -> None:
        """The lines of the region."""
        blocked = False  # whether something that may fail stays before the binding at hand
        for i in range(start, min(len(self.block.bindings), start + WINDOW)):
            b = self.block.bindings[i]
            if i not in self.runs:
                continue
            fits = len(b.vars) == 1 and len(self.order) < WINDOW
            taken = isinstance(b, ir.Let) and fits and self.takes(i, b, blocked)
            if not self.lines and i == start and not (taken and self.n):
                return
            if not taken and isinstance(b, ir.Let):
                blocked = blocked or self.em.demand.may_fail(b.rhs)
                if self.n in [many(self.em, v) for v in b.vars]:
                    self.left = min(self.left, i)

    def takes(self, i: int, b: ir.Let, blocked: bool) -> bool:
        """Whether a binding is a line."""
        e, v = b.rhs, b.vars[0]
        t = type_held(self.em, v)
        if t is None or isinstance(e, ir.Block):
            return False
        if isinstance(e, ir.Lit) and t.size > NARROW:
            self.outside[v] = self.em.literal(e.value, t)
            self.literals[v] = i
            return False
        self.n = self.n or many(self.em, v)
        total = self.added(i, b, e, t)
        if total is not None:
            self.sums.append(total)
            self.moved += 1
            return True
        fold = self.folded(i, b, e, t)
        if fold is not None:
            self.folds.append(fold)
            return True
        cells = self.cells_of(e, t, blocked)
        if cells is None:
            return False
        read = isinstance(e, ir.Prim) and e.name in VIEWS and not arrays_in(e)
        of = self.inside.get(e.args[0]) if read else None
        same = of is not None and of.at.size == cells.at.size
        loads = read and all([x.how == LOAD for x in cells.at.flat])
        weak = cells.axis is None or same or loads or isinstance(e, ir.Zero | ir.Ret | ir.Copy)
        self.inside[v] = cells
        self.lines.append(Line(i, b, cells, weak))
        self.moved += moves(self.em, b)
        return True

    def choose(self) -> None:
        """The lines that are emitted, and those whose results are stored."""
        zeros = {v: i for v, i in self.zeros.items() if i in self.runs}
        mine = {line.place for line in self.every()} | {*zeros.values()}
        others = [b for i, b in enumerate(self.block.bindings) if i in self.runs and i not in mine]
        later = {v for b in others for v in ir.reads(b)} | {*self.block.leaf.operands()}
        lines = []
        for line in reversed(self.lines):
            v = line.binding.vars[0]
            if line.weak and v in later:
                later.update(ir.reads(line.binding))
            else:
                lines.append(line)
        self.lines = lines[::-1]
        self.spare: set[int] = {i for v, i in zeros.items() if v not in later}
        self.stored = {v for line in self.lines for v in line.binding.vars if v in later}

    def every(self) -> list[Line | Sum | Fold]:
        """All lines, in the order of the block."""
        return sorted([*self.lines, *self.sums, *self.folds], key=lambda line: line.place)

    # --- cells ------------------------------------------------------------------------------------

    def axis_of(self, t: ArrayType) -> int | None:
        """The axis of the rows in a type that has them."""
        if self.n not in t.shape or not 0 < t.size <= NARROW * self.n:
            return None
        return t.shape.index(self.n)

    def cells(self, v: ir.Var) -> Cells | None:
        """The cells of a variable that is there."""
        if v not in self.inside:
            made = self.loaded(v)
            if made is None:
                return None
            self.inside[v] = made
        return self.inside[v]

    def loaded(self, v: ir.Var) -> Cells | None:
        """The cells of a number or an array that is there before the region."""
        x = self.outside.get(v)
        if isinstance(x, nm.Num):
            return Cells(filled((), [self.given(x)]), None)
        if not isinstance(x, nm.Arr) or nm.kind_of(x.type) is None:
            return None
        axis, steps = self.axis_of(x.type), steps_of(x)
        if axis is None and not 0 < x.type.size <= NARROW:
            return None
        kind, shape = nm.kind_of(x.type) or "", one(x.type.shape, axis)
        step = 0 if axis is None else steps[axis]
        made = []
        for place in np.ndindex(*shape):
            offset = sum([i * k for i, k in zip(place, steps, strict=True)])
            made.append(self.cell(LOAD, kind, (v, offset, step)))
        return Cells(filled(shape, made), axis)

    def cell(
        self, how: str, kind: str, of: Any, args: Sequence[Cell] = (), key: Any = None
    ) -> Cell:
        """A cell; equal ones are one."""
        key = (how, kind, of if key is None else key, *args)
        made = self.known.get(key)
        if made is None:
            made = self.known[key] = Cell(how, kind, of, args)
            self.order.append(made)
        return made

    def given(self, x: nm.Num) -> Cell:
        """The cell of a number."""
        key = GIVEN, x.kind, x.register, repr(x.constant), x.affine
        made = self.known.get(key)
        if made is None:
            made = self.known[key] = Cell(GIVEN, x.kind, None, (), x)
        return made

    def step(self, key: object, kind: str, rule: Make, args: Sequence[Cell]) -> Cell | None:
        """What a rule makes of cells: what is there already where it only hands that on."""
        known = (STEP, kind, key, *args)
        if known not in self.known:
            numbers = [x.num or nm.Num(x.kind, f"%cell{id(x)}") for x in args]
            y = rule(self.em, kind, numbers)
            if y is None:
                self.known[known] = None
                return None
            same = [x for x, n in zip(args, numbers, strict=True) if y.register and n == y]
            whole = y.affine is not None and not y.affine.terms and y.affine.fits()
            if same:
                self.known[known] = same[0]
            elif y.constant is not None or whole:
                self.known[known] = self.given(y)
            else:
                return self.cell(STEP, kind, rule, args, key)
        return self.known[known]

    def called(self, e: ir.Prim, kind: str, args: Sequence[Cell]) -> Cell | None:
        """What a loop of NumPy's makes of columns."""
        of = arrays.loop_of(e, tuple([x.kind for x in args]), kind)
        if of is None or not any([x.varies for x in args]):
            return None
        cast = [self.step("astype", k, itself, [x]) for x, k in zip(args, of[2], strict=True)]
        if None in cast:
            return None
        return self.cell(CALL, kind, of, [x for x in cast if x is not None], of[0])

    # --- lines as cells ---------------------------------------------------------------------------

    def cells_of(self, e: ir.Leaf, t: ArrayType, blocked: bool) -> Cells | None:
        """The cells that a leaf makes; None if it is no line."""
        match e:
            case ir.Ret() | ir.Copy():
                return self.cells(e.args[0])
            case ir.Lit() | ir.Zero():
                axis = self.axis_of(t)
                if axis is None and not 0 < t.size <= NARROW:
                    return None
                kind, shape = nm.kind_of(t) or "", one(t.shape, axis)
                values = np.zeros(shape) if isinstance(e, ir.Zero) else np.asarray(e.value)
                numbers = [self.given(nm.constant(kind, x)) for x in values.ravel().tolist()]
                return Cells(filled(shape, numbers), axis)
            case ir.Accum() | ir.Put():
                return self.put(e, t)
            case ir.Prim(name="index") if arrays_in(e):
                return self.at_positions(e, t, blocked)
            case ir.Prim():
                if not is_tame(e):
                    return None
                reads = needed(self.em, e)
                given = [x for v in reads if (x := self.cells(v)) is not None]
                if len(given) < len(reads) or not given:
                    return None
                if is_trusted(self.em, e):
                    return self.trusted(given[0], t)
                if e.name in MOVES:
                    return self.named(e, given, t)
                return self.ended(e, given[0], t) if e.name in ENDS else self.stepped(e, given, t)
        return None

    def spread(self, given: Sequence[Cells], t: ArrayType) -> tuple[list[np.ndarray], int | None]:
        """Cells in the places of a type, and the axis of its rows; no cells if that is not one."""
        axes = {t.ndim - (x.at.ndim - x.axis) for x in given if x.axis is not None}
        axis = axes.pop() if axes else self.axis_of(t)
        fits = axis == self.axis_of(t) if axis is not None else 0 < t.size <= NARROW
        if axes or not fits:
            return [], None
        return [np.broadcast_to(x.at, one(t.shape, axis)) for x in given], axis

    def stepped(self, e: ir.Prim, given: Sequence[Cells], t: ArrayType) -> Cells | None:
        """An elementwise primitive, cell by cell."""
        kind, key = nm.kind_of(t) or "", (e.name, repr(e.params))
        has_rule = e.name in arrays.STEPS or (e.name in RULES and e.name not in arrays.OF_ARRAYS)
        args, axis = self.spread(given, t)
        if not args or not (has_rule or isinstance(e.primitive, Elementwise)):
            return None
        made: list[Cell] = []
        for xs in zip(*[x.flat for x in args], strict=True):
            y = self.step(key, kind, RULES[e.name], xs) if has_rule else None
            y = self.called(e, kind, xs) if y is None else y
            if y is None:
                return None
            made.append(y)
        return Cells(filled(args[0].shape, made), axis)

    def trusted(self, x: Cells, t: ArrayType) -> Cells | None:
        """A factor as it is, which is looked at."""
        args, axis = self.spread([x], t)
        if not args:
            return None
        made = []
        for y in [*args[0].flat]:
            fine = (
                y.num is not None and y.num.constant is not None and math.isfinite(y.num.constant)
            )
            made.append(y if fine else self.cell(STEP, y.kind, looked_at, [y], "trust"))
        return Cells(filled(args[0].shape, made), axis)

    def ended(self, e: ir.Prim, x: Cells, t: ArrayType) -> Cells | None:
        """A sum or an extremum in a row, one term after the other."""
        gone = folds.gone(e, ArrayType(x.at.shape, t.dtype))
        how, kind = folds.EXTREMA.get(e.name, folds.SUM), nm.kind_of(t) or ""
        fits = kind in ("f64", "i64") if how is folds.SUM else kind in nm.FLOATS
        if x.axis in gone or not fits or {y.kind for y in x.at.flat} != {kind}:
            return None

        def rule(em: Emitter, kind: str, xs: Sequence[nm.Num]) -> nm.Num:
            return folds.combined(em, how, kind, *xs)

        kept = [i for i in range(x.at.ndim) if i not in gone]
        rows = x.at.transpose([*kept, *sorted(gone)])
        shape = rows.shape[: len(kept)]
        made = []
        for terms in rows.reshape(math.prod(shape), -1):
            y = self.given(folds.initial(how, kind))
            for term in terms:
                z = self.step(("fold", how.rule), kind, rule, [y, term])
                assert z is not None, "it folds"
                y = z
            made.append(y)
        axis = None if x.axis is None else self.axis_of(t)
        return Cells(filled(one(t.shape, axis), made), axis)

    def folded(self, i: int, b: ir.Let, e: ir.Leaf, t: ArrayType) -> Fold | None:
        """A sum or an extremum over the rows of what is made here."""
        if not isinstance(e, ir.Prim) or e.name not in folds.FOLDS or not is_tame(e):
            return None
        of, x = type_held(self.em, e.args[0]), self.cells(e.args[0])
        if of is None or x is None or x.axis != 0 or 0 not in folds.gone(e, of):
            return None
        whole = nm.Arr(nm.Buffer("%none", of.size * of.dtype.itemsize, True), of)
        loads = all([y.how == LOAD for y in x.at.flat])
        return None if loads or not folds.goes_on(self.em, e, whole, t) else Fold(i, b, x, of)

    def named(self, e: ir.Prim, given: Sequence[Cells], t: ArrayType) -> Cells | None:
        """What only moves elements: the same cells in other places."""
        x, axis = given[0], given[0].axis
        if len({y.axis for y in given}) > 1:
            return None
        if e.name == "broadcast_to":
            args, axis = self.spread(given, t)
            return Cells(args[0], axis) if args else None
        if axis is None and not 0 < t.size <= NARROW:
            return None
        if e.name == "index":
            return taken(x, self.n, ir.parts_of(e.params["at"]))
        if e.name in ("concat", "stack"):
            kind = nm.kind_of(t) or ""
            if not all([arrays.joins(nm.TYPES[y.kind], t) for c in given for y in c.at.flat]):
                return None
            cast = [
                filled(c.at.shape, [self.step("astype", kind, itself, [y]) for y in c.at.flat])
                for c in given
            ]
            if e.name == "stack":
                return Cells(np.stack(cast), None if axis is None else axis + 1)
            along = e.params["axis"] % t.ndim
            return None if along == axis else Cells(np.concatenate(cast, along), axis)
        if e.name == "permute_dims":
            axes = [int(i) for i in e.params["axes"]]
            return Cells(x.at.transpose(axes), None if axis is None else axes.index(axis))
        new = None if axis is None else self.axis_of(t)
        before = None if new is None else math.prod(t.shape[:new])
        if axis is not None and before != math.prod(x.at.shape[:axis]):
            return None
        return Cells(x.at.reshape(one(t.shape, new)), new)

    def put(self, e: ir.Part, t: ArrayType) -> Cells | None:
        """An array after a part of each row was written, or added to."""
        parts, kind = ir.parts_of(e.at), nm.kind_of(t) or ""
        if len(e.operands()) > len(e.args):
            return None
        x, *rest = [self.cells(v) for v in e.args]
        if x is None or x.axis is None or None in rest:
            return None
        ids = taken(Cells(np.arange(x.at.size).reshape(x.at.shape), x.axis), self.n, parts)
        value = rest[0] if rest else None
        if ids is None or {y.kind for c in (x, value) if c for y in c.at.flat} != {kind}:
            return None
        if value is not None and (value.axis, value.at.shape) != (ids.axis, ids.at.shape):
            return None
        new = [*x.at.flat]
        zero = self.given(nm.constant(kind, 0))
        values = [zero] * ids.at.size if value is None else [*value.at.flat]
        for i, v in zip(ids.at.ravel().tolist(), values, strict=True):
            if isinstance(e, ir.Put):
                new[i] = v
            elif value is not None:
                y = self.step(("add", "{}"), kind, RULES["add"], [new[i], v])
                if y is None:
                    return None
                new[i] = y
        return Cells(filled(x.at.shape, new), x.axis)

    # --- rows at positions ------------------------------------------------------------------------

    def positions(self, x: nm.Arr, at: Any) -> tuple[ir.Var, Cells, Spot] | None:
        """An array of positions, one or more in each row, and where they are in an array."""
        parts = ir.parts_of(at)
        names = [*ir.vars_in(at)]
        if len(names) != 1 or not isinstance(self.outside.get(names[0]), nm.Arr):
            return None
        of = self.cells(names[0])
        if of is None or of.axis is None or {y.how for y in of.at.flat} != {LOAD}:
            return None
        where = spot(self.em, x, parts, self.outside, lambda: None)
        if where is None or where.positions is None:
            return None
        return names[0], of, where

    def places(self, of: Cells, where: Spot, axis: int) -> Iterator[tuple[int, int, Cell]]:
        """For each number of a row where it is: its place, how far apart positions are, and one."""
        p = where.positions
        assert p is not None, "it was asked for"
        start = where.start.affine
        assert start is not None, "it is known"
        assert of.axis is not None, "positions have rows"
        new = axis - of.axis
        for place in np.ndindex(*one(where.shape, axis)):
            position: Any = of.at[place[new : new + of.at.ndim]]
            offset = start.constant
            offset += sum([i * k for i, k in zip(place, where.strides, strict=True)])
            yield offset, p.step, self.cell(PLACE, "i64", p.length, [position])

    def at_positions(self, e: ir.Prim, t: ArrayType, blocked: bool) -> Cells | None:
        """Rows of an array at positions."""
        x, axis = self.outside.get(e.args[0]), self.axis_of(t)
        if not isinstance(x, nm.Arr) or nm.kind_of(x.type) is None or axis is None:
            return None
        at = self.positions(x, e.params["at"])
        if at is None:
            return None
        v, of, where = at
        assert where.positions is not None, "it was asked for"
        length, kind = where.positions.length, nm.kind_of(t) or ""
        if not self.is_checked(v, length):
            if blocked:
                return None
            self.checks.append(Checked(v, length, e))
        name = e.args[0]
        made = [
            self.cell(AT, kind, (name, offset, step), [i])
            for offset, step, i in self.places(of, where, axis)
        ]
        return Cells(filled(one(t.shape, axis), made), axis)

    def is_checked(self, v: ir.Var, length: int) -> bool:
        """Whether positions have been looked at."""
        return any([c.array is v and c.length == length for c in self.checks])

    def added(self, i: int, b: ir.Let, e: ir.Leaf, t: ArrayType) -> Sum | None:
        """Rows that are added to zeros at positions which are looked at before."""
        if isinstance(e, ir.Accum) and e.args[0] in self.zeros:
            at, value = e.at, e.args[1:]
        elif isinstance(e, ir.Prim) and e.name == "scatter":
            at, value = e.params["at"], e.args
        else:
            return None
        kind = nm.kind_of(t)
        terms = self.cells(value[0]) if value and arrays_in(e) else None
        if terms is None or terms.axis != 0 or {y.kind for y in terms.at.flat} != {kind}:
            return None
        positions = self.positions(nm.Arr(nm.Buffer("%none", 0, True), t), at)
        if kind == "bool" or positions is None:
            return None
        v, of, where = positions
        assert where.positions is not None, "it was asked for"
        if of.axis != 0 or where.shape[:1] != (self.n,) or terms.at.shape != one(where.shape, 0):
            return None
        if not self.is_checked(v, where.positions.length):
            return None
        places = self.places(of, where, 0)
        sums = [(*place, x) for place, x in zip(places, terms.at.flat, strict=True)]
        return Sum(i, b, t, sums)

    # --- as code ----------------------------------------------------------------------------------

    def is_worth_it(self) -> bool:
        """Whether rows stay where another region would go through memory."""
        strong = [line for line in self.every() if not (isinstance(line, Line) and line.weak)]
        return self.moved > 0 and len(strong) > 1

    def emit(self) -> set[int]:
        """The bindings that are emitted."""
        em, env = self.em, self.env
        lines = self.every()
        done = {line.place for line in lines} | self.spare
        for i in done:
            env |= dict.fromkeys(self.block.bindings[i].vars)
        done |= self.literals_early()
        for line in lines:
            em.tell(line.binding)
        em.leaves += len(lines)
        for c in self.checks:
            self.check(c)
        self.outputs: list[tuple[Cells, nm.Arr]] = []
        self.totals: list[tuple[Sum, nm.Arr]] = []
        self.going: list[folds.Going] = []
        self.memory: dict[Cell, nm.Arr] = {}
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
                elif v in self.stored:
                    y = em.array(em.array_type(v.type))
                    self.outputs.append((line.cells, y))
                    made.append(y)
                    env[v] = y
            rows = self.rows()
            is_open = self.by_blocks(rows)
            for line, going in zip(self.folds, self.going, strict=True):
                env[line.binding.vars[0]] = folds.ended(em, going, is_open)
        names = [x.binding.vars[0].name for x in lines if not (isinstance(x, Line) and x.weak)]
        stored = [
            x.binding.vars[0].name
            for x in lines
            if not isinstance(x, Fold) and env[x.binding.vars[0]] is not None
        ]
        blocks = f", {rows:,} at a time" if rows < self.n else ""
        told = (
            f"{em.open[-1]}: {', '.join(names)} over {self.n:,} narrow rows{blocks}; "
            f"stored: {', '.join(stored) or 'none'}"
        )
        places = dict.fromkeys([ir.line_of(line.binding) for line in lines] * em.listed)
        em.fused.append((told, tuple(filter(None, places))))
        return done

    def literals_early(self) -> set[int]:
        """Arrays of the text that cells are of are there before the region."""
        used = {x.of[0] for x in self.alive() if x.how in (LOAD, AT)}
        used |= {v for c in self.checks for v in c.leaf.operands()}
        early = {v: i for v, i in self.literals.items() if v in used}
        for v, i in early.items():
            b = self.block.bindings[i]
            assert isinstance(b, ir.Let), "it is a literal"
            (self.env[v],) = self.em.expression(b.rhs, self.env, [v.type], (), {}, None)
        return {*early.values()}

    def rows(self) -> int:
        """How many rows a block has: whole vectors, and all blocks as many if that can be."""
        if self.n < 2 * BLOCK:
            return self.n
        return next((k for k in range(BLOCK, BLOCK // 4, -VECTOR) if self.n % k == 0), BLOCK)

    def alive(self) -> list[Cell]:
        """The cells that what is stored needs, each after its arguments."""
        kept = [line.cells for line in self.lines if line.binding.vars[0] in self.stored]
        wanted = {x for cells in kept for x in cells.at.flat}
        wanted |= {x for fold in self.folds for x in fold.cells.at.flat}
        wanted |= {x for total in self.sums for term in total.terms for x in term[2:]}
        for x in reversed(self.order):
            if x in wanted:
                wanted.update(x.args)
        return [x for x in self.order if x in wanted]

    def check(self, c: Checked) -> None:
        """Look at all positions, and complain where one is not there."""
        em, x, bad = self.em, self.env[c.array], self.em.at_entry("alloca i1")
        assert isinstance(x, nm.Arr), "positions are an array"
        em.line(f"store i1 false, ptr {bad}")
        with em.nest(x.type.shape, steps_of(x)) as (i,):
            above = em.let(f"add i64 {em.text(em.load(x, i))}, {c.length}")
            off = em.let(f"icmp uge i64 {above}, {2 * c.length}")
            before = em.let(f"load i1, ptr {bad}")
            em.line(f"store i1 {em.let(f'or i1 {before}, {off}')}, ptr {bad}")
        at = {v: self.env[v] for v in c.leaf.operands()}
        fine = em.let(f"xor i1 {em.let(f'load i1, ptr {bad}')}, true")
        em.must(fine, lambda: arrays.complained(em, c.leaf, at))

    def by_blocks(self, rows: int) -> bool:
        """All rows, so many at a time; gives whether a loop has the last ones."""
        em, alive = self.em, self.alive()
        self.start: nm.Affine = nm.Affine(0)
        self.filled: set[Cell] = set()
        self.same: dict[Cell, nm.Num] = {}
        for x in alive:
            if not x.varies:
                self.number(x, nm.constant("i64", 0), self.same)
        self.plan([x for x in alive if x.varies])
        rest = self.n % rows
        if rows == self.n:
            self.a_block(nm.Affine(0), rows, rows)
        elif not rest or self.folds:  # a fold has to know how many rows there are
            with em.each(self.n // rows) as i:
                self.a_block(rounds(i).times(rows), rows, rows)
            if rest:
                self.a_block(nm.Affine(self.n - rest), rest, rows)
        else:
            with em.each(self.n // rows + 1) as i:
                start = rounds(i).times(rows)
                left = em.let(f"sub i64 {self.n}, {em.of_rounds(start)}")
                few = em.let(f"icmp ult i64 {left}, {rows}")
                count = em.let(f"select i1 {few}, i64 {left}, i64 {rows}")
                self.a_block(start, count, rows)
        return rows < self.n and not (rest and self.folds)

    def plan(self, alive: Sequence[Cell]) -> None:
        """After how many calls each cell is made, and until when those in memory are read."""
        self.level: dict[Cell, int] = {}
        self.last: dict[Cell, int] = {}
        self.of_level: dict[int, list[Cell]] = {}
        for x in alive:
            at = max([self.level.get(y, 0) for y in x.args], default=0)
            self.level[x] = at + (x.how == CALL)
            self.of_level.setdefault(at, []).append(x)
            for y in [y for y in x.args if y.varies]:
                crosses = y.how in (CALL, AT) or (y.how == STEP and self.level[y] < at)
                if crosses or x.how == CALL:
                    self.last[y] = max(self.last.get(y, 0), at)
        self.end: int = max([*self.level.values(), 0])
        for x in [x for total, _ in self.totals for *_, x in total.terms]:
            if x.varies and x.how != LOAD:
                self.last[x] = self.end + 1
        stored = [cells for cells, _ in self.outputs] + [fold.cells for fold in self.folds]
        for x in [x for cells in stored for x in cells.at.flat]:
            if x.how in (CALL, AT):
                self.last[x] = max(self.last.get(x, 0), self.level[x])

    def a_block(self, start: nm.Affine, count: int | str, rows: int) -> None:
        """The rows of a block, so many from one of them on, in columns of `rows`."""
        em = self.em
        self.start = start
        blocks: list[nm.Arr] = []
        with em.kept(blocks):
            for fold in self.folds:
                assert isinstance(count, int), "a fold knows how many rows there are"
                blocks.append(em.array(ArrayType((count, *fold.type.shape[1:]), fold.type.dtype)))
            self.columns(blocks, count, rows)
            pairs = zip(self.going, blocks, strict=True)
            self.going = [folds.gone_on(em, going, y) for going, y in pairs]

    def columns(self, blocks: Sequence[nm.Arr], count: int | str, rows: int) -> None:
        """The same; what is folded goes into `blocks`."""
        em = self.em
        folded = [(fold.cells, y) for fold, y in zip(self.folds, blocks, strict=True)]
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
            for x in steps:
                self.number(x, i, numbers)
            for x in kept:
                em.store(self.number(x, i, numbers), self.memory[x], i)
            for x, y, (place, step), first in outputs:
                em.store(self.number(x, i, numbers), y, place_of(place, step, first, i))
        self.filled.update(kept)

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


def looked_at(em: Emitter, kind: str, args: Sequence[nm.Num]) -> nm.Num:
    """A factor, of which it is noted whether it is finite."""
    em.trust(args[0])
    return args[0]


def one(shape: Sequence[int], axis: int | None) -> tuple[int, ...]:
    """A shape of which an axis is left with one place."""
    return tuple([1 if i == axis else n for i, n in enumerate(shape)])


def filled(shape: Sequence[int], cells: Sequence[Any]) -> np.ndarray:
    """An array of cells, which are given in C order."""
    made = np.empty(len(cells), object)
    for i, x in enumerate(cells):
        made[i] = x
    return made.reshape(tuple(shape))


def arrays_in(e: ir.Leaf) -> bool:
    """Whether an index has an array whose values the run knows."""
    at = e.params.get("at") if isinstance(e, ir.Prim) else getattr(e, "at", None)
    return any([getattr(v.type, "shape", ()) for v in ir.vars_in(at)])


def taken(x: Cells, n: int, at: Sequence[Any]) -> Cells | None:
    """x[at], where all rows are taken."""
    if any(ir.vars_in(tuple(at))):
        return None
    parts = (*at,) if any([p is Ellipsis for p in at]) else (*at, ...)
    if x.axis is None:
        return Cells(x.at[parts], None)
    plain: list[Any] = [*parts]
    counts = [np.ndim(p) if np.asarray(p).dtype == bool else int(p is not None) for p in plain]
    place = next(i for i, p in enumerate(parts) if p is Ellipsis)
    counts[place] = x.at.ndim - sum(counts) + 1
    axis = 0
    for p, k in zip(parts, counts, strict=True):
        whole = p is Ellipsis or (isinstance(p, slice) and p.indices(n) == (0, n, 1))
        if axis <= x.axis < axis + k and not whole:
            return None
        axis += k
    two = tuple([2 if i == x.axis else k for i, k in enumerate(x.at.shape)])
    made, more = x.at[parts], np.empty(two, bool)[parts]
    (axis,) = [i for i, (k, m) in enumerate(zip(made.shape, more.shape, strict=True)) if k != m]
    return Cells(made, axis)


def places_in(y: nm.Arr, axis: int | None) -> list[tuple[int, int]]:
    """Where each number of the first row lies in a result, and how far those of the next are."""
    steps = steps_of(y)
    step = 0 if axis is None else steps[axis]
    return [
        (sum([i * k for i, k in zip(place, steps, strict=True)]), step)
        for place in np.ndindex(*one(y.type.shape, axis))
    ]


def moves(em: Emitter, b: ir.Let) -> bool:
    """Whether a line puts numbers of a row in other places, at which other regions end."""
    e = b.rhs
    if isinstance(e, ir.Prim):
        known = e.name in ("concat", "stack", "permute_dims")
        known = known or (e.name == "index" and not takes_all(e))
    else:
        known = isinstance(e, ir.Part)
    if not known or isinstance(e, ir.Block):
        return False
    types = [t for v in (*b.vars, *e.args) if (t := type_held(em, v)) is not None]
    return arrays_in(e) or any([t.size > max(t.shape, default=1) for t in types])


def many(em: Emitter, v: ir.Var) -> int:
    """How many rows a variable has, if they are narrow; else none."""
    t = type_held(em, v)
    n = 0 if t is None else max(t.shape, default=0)
    return n if t is not None and n >= MANY and 0 < t.size <= NARROW * n else 0


def rows(
    em: Emitter, block: ir.Block, start: int, runs: set[int], env: dict[ir.Var, nm.Held]
) -> set[int]:
    """Emit the region of narrow rows that begins at a binding, if one does; what is done."""
    b = block.bindings[start]
    n = many(em, b.vars[0]) if isinstance(b, ir.Let) and len(b.vars) == 1 else 0
    if not n or em.exact:
        return set()
    if block not in em.narrow:
        em.narrow[block] = {
            many(em, c.vars[0]): 0
            for c in block.bindings
            if isinstance(c, ir.Let) and len(c.vars) == 1
            if moves(em, c)
        }
    if em.narrow[block].get(n, len(block.bindings)) > start:
        return set()
    region = Rows(em, block, start, runs, env)
    if region.is_worth_it():
        return region.emit()
    em.narrow[block][n] = region.left
    return set()


__all__ = ["rows"]
