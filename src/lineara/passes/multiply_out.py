"""Multiplying out: a composition of linear maps as one sparse matrix, where that is less work.

    f(xs ; ~as) -> (; rs)       =>       r_i = k_i1 * ~a_1 + .. + k_in * ~a_n,  with k_ij of the xs

Domain: definitions in which linear numbers are added, scaled, copied, dropped, and put into
products.  An entry is the sum over paths of the products of their factors; those of literals are
formed here, others are bindings, whose work counts.  Entries that are zero by structure are not
there.  Values are the same up to rounding, since products are bracketed otherwise.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from lineara.errors import ProgramError
from lineara.facts.gc_pause import uncollected
from lineara.facts.registry import op
from lineara.facts.types import ArrayType, Product, Type
from lineara.linear_a import syntax as ir
from lineara.linear_a.cost import static_works
from lineara.linear_a.linear_b import linear_b
from lineara.linear_a.program import Program
from lineara.linear_a.rules_as_text import Emitter, closed, threaded, tidy

WIDE = 64
Row = dict[ir.Var, Any]  # of a linear number: an entry for each argument, a number or a variable


class _Other(Exception):
    """A leaf that is no row of a matrix of numbers, or rows that are too long to be less work."""


@uncollected
def multiply_out(program: Program, name: str) -> Program:
    """The program in which `name` is the matrix that it is, if that is less work than it was.

    Calls in it stay as they are and are no entries: inline them first.  Raises ProgramError for
    what is not Linear B, or has non-linear results.

    >>> from lineara.linear_a.parse import parse
    >>> text = "def f(; ~a: f64) -> (; f64) = let k = 2.0 in let ~b = k * ~a in k * ~b"
    >>> print(multiply_out(parse(text), "f").defs["f"].body.bindings[0].rhs.value)
    4.0
    """
    if name not in program.defs:
        raise ProgramError(f"multiply_out: there is no definition {name}")
    d = linear_b(program, [name]).defs[name]
    if d.results:
        raise ProgramError(
            f"multiply_out: {name} has non-linear results; a matrix maps linear arguments to "
            f"linear results: unzip {name} and multiply {name}.lin out"
        )
    before = static_works(program)[name]
    if before is None:
        return program
    try:
        made = program.with_(_Matrix(program, d, before).definition())
    except _Other:
        return program
    after = static_works(made)[name]
    return made if after is not None and after < before else program


class _Matrix:
    """One definition: what each linear variable is, a row or a product of rows."""

    def __init__(self, program: Program, d: ir.Def, most: int) -> None:
        self.program, self.d, self.most = program, d, most
        self.steps = self.added = 0
        self.out = Emitter(ir.Names([v.name for v in ir.binders(d)]))
        self.known: dict[ir.Var, Any] = {}  # non-linear variables that are literals
        self.rows: dict[ir.Var, Any] = {}
        self.types: dict[ir.Var, ArrayType] = {}  # of the arguments in rows

    def definition(self) -> ir.Def:
        """The definition with one scaling for each entry."""
        d = self.d
        for a in d.lxs:
            self.rows[a] = self.argument(a)
        results = self.block(d.body)
        made = [self.written(r, t) for r, t in zip(results, d.lresults, strict=True)]
        bindings, _ = tidy(self.out.bindings, made)
        kept, made = threaded(self.out, d.params, bindings, made)
        stay = [p for p in d.params if p not in self.program.dims(d.name)]
        body = ir.Block(tuple(closed(kept, stay, made)), ir.Ret(tuple(made)))
        return ir.Def(d.name, d.params, (), d.lresults, body)

    def argument(self, a: ir.Var) -> Any:
        """An argument as a row with one entry, or its parts."""
        t = self.program.unfold(a.type)
        if isinstance(t, Product):
            parts = [self.out.fresh(a.name, s, True) for s in t.items]
            self.out.bindings.append(ir.Unpack(tuple(parts), a))
            return tuple(map(self.argument, parts))
        self.types[a] = self.number(t)
        return {a: 1}

    def number(self, t: Type) -> ArrayType:
        """The type of a number that commutes with others."""
        if isinstance(t, ArrayType) and not t.shape and t.dtype.kind in "fc":
            return t
        raise _Other

    # --- reading -----------------------------------------------------------------------------

    def block(self, e: ir.Leaf | ir.Block) -> list[Any]:
        """The rows of the linear results."""
        if isinstance(e, ir.Leaf):
            return self.leaf(e)
        for b in e.bindings:
            if not any([v.linear for v in (*b.vars, *ir.reads(b))]):
                self.plain(b)
            elif isinstance(b, ir.Unpack):
                self.rows.update(zip(b.vars, self.rows[b.arg], strict=True))
            else:
                self.rows.update(zip(b.vars, self.block(b.rhs), strict=True))
        return self.leaf(e.leaf)

    def plain(self, b: ir.Binding) -> None:
        """Non-linear code stays; it may not act, since it moves before all that is linear."""
        if self.program.may_raise(b):
            raise _Other
        self.out.bindings.append(b)
        if isinstance(b, ir.Let) and isinstance(b.rhs, ir.Lit):
            self.known[b.vars[0]] = b.rhs.value

    def leaf(self, e: ir.Leaf) -> list[Any]:
        """The rows of what a leaf gives."""
        match e:
            case ir.Ret() | ir.Copy():
                return [self.rows[a] for a in e.lxs]
            case ir.Dup(args=(a,)):
                return [self.rows[a], self.rows[a]]
            case ir.Zero(type=t):
                return [self.zero(self.program.unfold(t))]
            case ir.Tup():
                return [tuple([self.rows[a] for a in e.args])]
            case ir.Drop():
                return []
            case ir.Prim(name="add"):
                return [self.sum(*[self.rows[a] for a in e.args])]
            case ir.Prim(name="multiply"):
                k, a = ir.scaling(e)
                if {*self.program.leaves(a.type)} != {self.number(k.type)}:
                    raise _Other  # a narrower factor
                return [self.scaled(self.known.get(k, k), self.rows[a])]
        raise _Other

    def zero(self, t: Type) -> Any:
        """No entries, as often as there are numbers."""
        if isinstance(t, Product):
            return tuple([self.zero(self.program.unfold(s)) for s in t.items])
        self.number(t)
        return {}

    def sum(self, x: Any, y: Any) -> Any:
        """The sum of rows, entry by entry."""
        if isinstance(x, tuple):
            return tuple([self.sum(a, b) for a, b in zip(x, y, strict=True)])
        self.step(x, y)
        row = dict(x)
        for a, k in y.items():
            row[a] = self.entry("add", np.add, row[a], k, a) if a in row else k
        return row

    def scaled(self, k: Any, row: Any) -> Any:
        """A row times a number."""
        if isinstance(row, tuple):
            return tuple([self.scaled(k, part) for part in row])
        self.step(row)
        return {a: self.entry("multiply", np.multiply, k, c, a) for a, c in row.items()}

    def step(self, *rows: Row) -> None:
        """Count the entries that are gone through; WIDE for each operation are too many."""
        self.steps += sum(map(len, rows))
        if self.steps > WIDE * self.most:
            raise _Other

    def entry(self, name: str, known: Callable[..., Any], k: Any, c: Any, a: ir.Var) -> Any:
        """The sum or the product of two entries in the column of an argument."""
        if name == "multiply" and any([not isinstance(v, ir.Var) and v == 1 for v in (k, c)]):
            return c if not isinstance(k, ir.Var) and k == 1 else k
        t = self.types[a]
        if not isinstance(k, ir.Var) and not isinstance(c, ir.Var):
            return known(k, c, dtype=t.dtype)
        self.added += 1
        if self.added > self.most:
            raise _Other
        return self.out.bind("k", t, ir.Prim((self.bound(k, t), self.bound(c, t)), op(name)))

    def bound(self, k: Any, t: ArrayType) -> ir.Var:
        """An entry as a variable."""
        if isinstance(k, ir.Var):
            return k
        return self.out.bind("k", t, ir.lit(t.dtype.type(k), t))

    # --- writing -----------------------------------------------------------------------------

    def written(self, row: Any, t: Type) -> ir.Var:
        """The linear variable that is a row of the matrix."""
        t = self.program.unfold(t)
        if isinstance(t, Product):
            parts = [self.written(r, s) for r, s in zip(row, t.items, strict=True)]
            return self.out.bind("r", t, ir.Tup(tuple(parts), True, t.fields), linear=True)
        terms = [self.term(k, a, t) for a, k in row.items()]
        if not terms:
            return self.out.bind("z", t, ir.zero(t), linear=True)
        total = terms[0]
        for term in terms[1:]:
            total = self.out.bind("ds", t, ir.Prim((total, term), op("add")), linear=True)
        return total

    def term(self, k: Any, a: ir.Var, t: Any) -> ir.Var:
        """One entry times its argument."""
        if not isinstance(k, ir.Var) and k == 1:
            return a
        scaled = ir.Prim((self.bound(k, t), a), op("multiply"))
        return self.out.bind("dp", t, scaled, linear=True)
