"""What lines on narrow rows make in one row: arrays of symbols, one for each number of the row.

moves     slices, joins, transposition and what is put into a part of a row name other symbols
steps     y = f(x, w) of symbols; equal steps of equal symbols are one, as are sums in a row
calls     functions of NumPy's, on a column: a symbol's numbers in all rows of a block
reads     numbers of arrays, in the place of the row
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from lineara.engines.native import arrays, folds
from lineara.engines.native import numbers as nm
from lineara.engines.native.emit import Emitter
from lineara.engines.native.regions import is_trusted, needed
from lineara.engines.native.scalars import RULES, itself
from lineara.engines.native.strided import steps_of
from lineara.facts.primitive import Elementwise
from lineara.facts.types import ArrayType
from lineara.linear_a import syntax as ir

NARROW = 16
"""Numbers of a row up to which it is narrow."""
GIVEN, LOAD, PLACE, AT, STEP, CALL = "given", "load", "place", "at", "step", "call"
MOVES = {"index", "reshape", "permute_dims", "broadcast_to", "concat", "stack"}
ENDS = {"sum", "prod", "max", "min"}
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


class Table:
    """The cells of variables: those of outside, which are read, and those that lines make.

    n          how many rows there are
    outside    what there is before the region; inside   the cells of what is read or made
    order      all cells, each after its arguments
    """

    def __init__(self, em: Emitter, env: dict[ir.Var, nm.Held]) -> None:
        self.em = em
        self.n: int = 0
        self.outside: dict[ir.Var, nm.Held] = dict(env)
        self.inside: dict[ir.Var, Cells | None] = {}
        self.known: dict[object, Cell | None] = {}  # what is known of equal cells
        self.order: list[Cell] = []

    def axis_of(self, t: ArrayType) -> int | None:
        """The axis of the rows in a type that has them."""
        if self.n not in t.shape or not 0 < t.size <= NARROW * self.n:
            return None
        return t.shape.index(self.n)

    def cells(self, v: ir.Var) -> Cells | None:
        """The cells of a variable that is there."""
        if v not in self.inside:
            self.inside[v] = self.loaded(v)
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

    def cells_of(self, e: ir.Leaf, t: ArrayType) -> Cells | None:
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
            case ir.Prim():
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
        rule = arrays.step(e)
        if not (rule or isinstance(e.primitive, Elementwise)):
            return None
        args, axis = self.spread(given, t)
        if not args:
            return None
        made: list[Cell] = []
        for xs in zip(*[x.flat for x in args], strict=True):
            y = self.step(key, kind, rule, xs) if rule else None
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
        how, kind = folds.HOW[e.name], nm.kind_of(t) or ""
        fits = kind in nm.FLOATS if how in (folds.MAX, folds.MIN) else kind in ("f64", "i64")
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
