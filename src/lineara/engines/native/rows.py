"""Narrow rows: lines on many rows of few numbers are loops over blocks of rows, by columns.

    cells     what a line makes in one row is an array of symbols: `cells`
    reads     rows at positions, into columns
    sums      rows that are added where positions say
    folds     sums and extrema over the rows
    code      loops over blocks of rows: `row_blocks`

A region begins at a line and takes the later ones of its block that need no others.  What moves up
may not fail, but for positions: each block looks at its own before it uses them, and nothing that
may fail and is left where it stands comes before it.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from lineara.engines.native import folds
from lineara.engines.native import numbers as nm
from lineara.engines.native.cells import (
    AT,
    LOAD,
    NARROW,
    PLACE,
    Cell,
    Cells,
    Table,
    arrays_in,
    filled,
    one,
)
from lineara.engines.native.emit import Emitter
from lineara.engines.native.regions import takes_all, type_held
from lineara.engines.native.row_blocks import Blocks, Checked, Fold, Line, Region, Sum
from lineara.engines.native.strided import Spot, spot
from lineara.facts.types import ArrayType
from lineara.linear_a import syntax as ir

MANY = 256
"""Rows from which an array is one of rows."""
WINDOW = 4096
"""Bindings in which a region looks for its lines, and cells from which it has enough."""
VIEWS = {"index", "reshape", "permute_dims"}


class Rows:
    """The lines of narrow rows of a block, from a binding on that may be one."""

    def __init__(
        self, em: Emitter, block: ir.Block, start: int, runs: set[int], env: dict[ir.Var, nm.Held]
    ) -> None:
        self.em = em
        self.block = block
        self.runs = runs
        self.table = Table(em, env)
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
        self.moved: int = 0  # lines that no other region takes
        self.left: int = len(block.bindings)  # the first binding on as many rows that is no line
        with em.trial():
            self.look(start)

    # --- which lines ------------------------------------------------------------------------------

    def look(self, start: int) -> None:
        """The lines of the region."""
        blocked = False  # whether something that may fail stays before the binding at hand
        for i in range(start, min(len(self.block.bindings), start + WINDOW)):
            b = self.block.bindings[i]
            if i not in self.runs:
                continue
            fits = len(b.vars) == 1 and len(self.table.order) < WINDOW
            taken = isinstance(b, ir.Let) and fits and self.takes(i, b, blocked)
            if i == start and not (taken and self.table.n):
                return
            if not taken and isinstance(b, ir.Let):
                blocked = blocked or self.em.demand.may_fail(b.rhs)
                if self.table.n in [many(self.em, v) for v in b.vars]:
                    self.left = min(self.left, i)

    def takes(self, i: int, b: ir.Let, blocked: bool) -> bool:
        """Whether a binding is a line."""
        e, v = b.rhs, b.vars[0]
        t = type_held(self.em, v)
        if t is None or isinstance(e, ir.Block):
            return False
        if isinstance(e, ir.Lit) and t.size > NARROW:
            self.table.outside[v] = self.em.literal(e.value, t)
            self.literals[v] = i
            return False
        self.table.n = self.table.n or many(self.em, v)
        total = self.added(i, b, e, t)
        if total is not None:
            self.sums.append(total)
            self.moved += 1
            return True
        fold = self.folded(i, b, e, t)
        if fold is not None:
            self.folds.append(fold)
            return True
        if isinstance(e, ir.Prim) and e.name == "index" and arrays_in(e):
            cells = self.at_positions(e, t, blocked)
        else:
            cells = self.table.cells_of(e, t)
        if cells is None:
            return False
        read = isinstance(e, ir.Prim) and e.name in VIEWS and not arrays_in(e)
        of = self.table.inside.get(e.args[0]) if read else None
        same = of is not None and of.at.size == cells.at.size
        loads = read and all([x.how == LOAD for x in cells.at.flat])
        weak = cells.axis is None or same or loads or isinstance(e, ir.Zero | ir.Ret | ir.Copy)
        self.table.inside[v] = cells
        self.lines.append(Line(i, b, cells, weak))
        self.moved += moves(self.em, b)
        return True

    def chosen(self) -> Region:
        """The lines that are emitted, and those whose results are stored."""
        zeros = {v: i for v, i in self.zeros.items() if i in self.runs}
        every = [*self.lines, *self.sums, *self.folds]
        mine = {line.place for line in every} | {*zeros.values()}
        others = [b for i, b in enumerate(self.block.bindings) if i in self.runs and i not in mine]
        later = {v for b in others for v in ir.reads(b)} | {*self.block.leaf.operands()}
        lines = []
        for line in reversed(self.lines):
            if line.weak and line.binding.vars[0] in later:
                later.update(ir.reads(line.binding))
            else:
                lines.insert(0, line)
        return Region(
            self.table.n,
            lines,
            self.sums,
            self.folds,
            self.checks,
            stored={v for line in lines for v in line.binding.vars if v in later},
            spare={i for v, i in zeros.items() if v not in later},
            literals=self.literals,
            order=self.table.order,
        )

    def folded(self, i: int, b: ir.Let, e: ir.Leaf, t: ArrayType) -> Fold | None:
        """A sum or an extremum over the rows of what is made here."""
        if not isinstance(e, ir.Prim) or e.name not in folds.FOLDS:
            return None
        of, x = type_held(self.em, e.args[0]), self.table.cells(e.args[0])
        if of is None or x is None or x.axis != 0 or 0 not in folds.gone(e, of):
            return None
        whole = nm.Arr(nm.Buffer("%none", of.size * of.dtype.itemsize, True), of)
        loads = all([y.how == LOAD for y in x.at.flat])
        return None if loads or not folds.goes_on(self.em, e, whole, t) else Fold(i, b, x, of)

    # --- rows at positions ------------------------------------------------------------------------

    def positions(self, x: nm.Arr, at: Any) -> tuple[ir.Var, Cells, Spot] | None:
        """An array of positions, one or more in each row, and where they are in an array."""
        parts = ir.parts_of(at)
        names = [*ir.vars_in(at)]
        if len(names) != 1 or not isinstance(self.table.outside.get(names[0]), nm.Arr):
            return None
        of = self.table.cells(names[0])
        if of is None or of.axis is None or {y.how for y in of.at.flat} != {LOAD}:
            return None
        where = spot(self.em, x, parts, self.table.outside, lambda: None)
        if where is None or len(where.positions) != 1:
            return None
        return names[0], of, where

    def places(self, of: Cells, where: Spot, axis: int) -> Iterator[tuple[int, int, Cell]]:
        """For each number of a row where it is: its place, how far apart positions are, and one."""
        (p,) = where.positions
        start = where.start.affine
        assert start is not None, "it is known"
        assert of.axis is not None, "positions have rows"
        new = axis - of.axis
        for place in np.ndindex(*one(where.shape, axis)):
            position: Any = of.at[place[new : new + of.at.ndim]]
            offset = start.constant
            offset += sum([i * k for i, k in zip(place, where.strides, strict=True)])
            yield offset, p.step, self.table.cell(PLACE, "i64", p.length, [position])

    def at_positions(self, e: ir.Prim, t: ArrayType, blocked: bool) -> Cells | None:
        """Rows of an array at positions."""
        x, axis = self.table.outside.get(e.args[0]), self.table.axis_of(t)
        if not isinstance(x, nm.Arr) or nm.kind_of(x.type) is None or axis is None:
            return None
        at = self.positions(x, e.params["at"])
        if at is None:
            return None
        v, of, where = at
        length, kind = where.positions[0].length, nm.kind_of(t) or ""
        if not self.is_checked(v, length):
            if blocked:
                return None
            self.checks.append(Checked(v, of, length, e))
        name = e.args[0]
        made = [
            self.table.cell(AT, kind, (name, offset, step), [i])
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
        terms = self.table.cells(value[0]) if value and arrays_in(e) else None
        if terms is None or terms.axis != 0 or {y.kind for y in terms.at.flat} != {kind}:
            return None
        positions = self.positions(nm.Arr(nm.Buffer("%none", 0, True), t), at)
        if kind == "bool" or positions is None:
            return None
        v, of, where = positions
        if (
            of.axis != 0
            or where.shape[:1] != (self.table.n,)
            or terms.at.shape != one(where.shape, 0)
        ):
            return None
        if not self.is_checked(v, where.positions[0].length):
            return None
        places = self.places(of, where, 0)
        sums = [(*place, x) for place, x in zip(places, terms.at.flat, strict=True)]
        return Sum(i, b, t, sums)


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
    if getattr(v.type, "shape", None) == ():
        return 0
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
    those = Rows(em, block, start, runs, env)
    region = those.chosen()
    if those.moved and region.is_worth_it():
        return Blocks(em, block, env, region).emit()
    em.narrow[block][n] = those.left
    return set()


__all__ = ["rows"]
