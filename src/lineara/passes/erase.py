"""E, erasure: forget that variables are linear, so that J can be applied again.

    f(xs:ts ; ~as:us) -> (ss ; rs)      =>      f.e(xs:ts, as:us ;) -> (ss, rs ;)

E(σ; e) takes a substitution σ on linear names: dups vanish, for a non-linear variable may be used
often.  Values are the same, and so is the work, but for arrays: forgetting a non-linear array costs
1 and a linear one its length, and a read that hands no array on costs its length.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from lineara.errors import ProgramError
from lineara.facts.gc_pause import uncollected
from lineara.facts.registry import op
from lineara.facts.types import ArrayType, Product, Type, show
from lineara.linear_a import syntax as ir
from lineara.linear_a.calls import Call
from lineara.linear_a.check import type_of_leaf
from lineara.linear_a.dimensions import dims_in
from lineara.linear_a.program import Program
from lineara.passes.names import E, mangled
from lineara.passes.unzip import is_nonlinear


@uncollected
def erase(program: Program, name: str) -> Program:
    """The program with `name.e`, and the erasure of every callee that has linear parts.

    >>> from lineara.linear_a.parse import parse
    >>> p = erase(parse("def f(; ~a: f64) -> (; f64, f64) = dup(~a)"), "f")
    >>> print(p.defs["f.e"].params, p.defs["f.e"].body.leaf.args)
    (a,) (a, a)
    """
    todo, done, helpers = [name], {}, {}
    while todo:
        f = todo.pop()
        if f in done or f + E in program.defs:
            continue
        one = Erase(program, f, helpers)
        done[f] = one.erased()
        todo += one.needed
    return program.with_(*helpers.values(), *[done[f] for f in reversed(done)])


class Erase(ir.Mapped):
    """E of one definition; σ is `vars`."""

    def __init__(self, program: Program, name: str, helpers: dict[str, ir.Def]) -> None:
        super().__init__()
        if name not in program.defs:
            raise ProgramError(f"erase: there is no definition {name}")
        self.program = program
        self.d: ir.Def = program.defs[name]
        self.helpers = helpers
        self.needed: list[str] = []
        self.names: ir.Names = ir.Names([v.name for v in ir.binders(self.d)])

    def erased(self) -> ir.Def:
        """f.e."""
        d = self.d
        params = self.binders(d.params)
        return ir.Def(d.name + E, params, (*d.results, *d.lresults), (), self.block(d.body))

    def recur(self, name: str) -> str:
        """The erasure of a callee; one without linear parts is its own."""
        if is_nonlinear(self.program, name):
            return name
        self.needed.append(name)
        return name + E

    def define(self, d: ir.Def) -> None:
        """A definition that a form needs beside the erased ones."""
        self.helpers[d.name] = d

    def each(self, vs: Iterable[ir.Var]) -> ir.Vars:
        """What stands for variables."""
        return tuple(map(self.at, vs))

    def types(self, us: Iterable[Type]) -> tuple[Type, ...]:
        """The types of what stands for linear variables."""
        return tuple(us)

    def bound(self, rs: Sequence[ir.Var], leaf: ir.Leaf) -> None:
        """A binding before that of the leaf at hand."""
        self.out.append(ir.Let(tuple(rs), leaf))

    def reordered(self, loop: ir.Leaf, outcome: tuple[Any, ...], nc: int, nlc: int) -> ir.Leaf:
        """A loop whose results (c', lc', y, ly) are bound and handed on as (c', y, lc', ly)."""
        ts, us = outcome[0], self.types(outcome[1])
        k = len(self.types(outcome[1][:nlc]))
        if len(ts) == nc or not k:
            return loop
        line = ir.line_of(loop)
        rs = [ir.Var(self.names("r"), t, line=line) for t in (*ts[:nc], *us[:k], *ts[nc:], *us[k:])]
        self.bound(rs, loop)
        m = len(ts)
        return ir.Ret((*rs[:nc], *rs[nc + k : m + k], *rs[nc : nc + k], *rs[m + k :]))

    def binder(self, v: ir.Var) -> ir.Var:
        """The non-linear variable for a binder."""
        if v.linear:
            self.vars[v] = ir.Var(v.name, v.type, line=v.line)
        return self.at(v)

    def binding(self, b: ir.Binding) -> None:
        """A dup is two names of one variable; a read looks the part up and leaves the array."""
        match b.rhs if isinstance(b, ir.Let) else None:
            case ir.Dup(args=(a,)):
                self.vars |= dict.fromkeys(b.vars, self.at(a))
            case ir.Read(args=(a,)) as e:
                x = self.at(a)
                self.bound([self.binder(b.vars[0])], self.lookup(x, e))
                self.vars[b.vars[1]] = x
            case _:
                super().binding(b)

    def lookup(self, x: ir.Var, e: ir.Read) -> ir.Prim:
        """The part of a non-linear array."""
        return ir.Prim((x,), op("index"), {"at": e.at})

    def leaf(self, e: ir.Leaf) -> ir.Leaf:
        """E of a leaf."""
        match e:
            case ir.Prim():
                return self.scale(e) if e.name == "multiply" else super().leaf(e)
            case ir.Read(args=(a,)):
                (part, _) = type_of_leaf(self.program, e).lxs
                y = ir.Var(self.names("y"), part, line=ir.line_of(e))
                self.bound([y], self.lookup(self.at(a), e))
                return ir.Ret((y, self.at(a)))
            case ir.Dup(args=(a,)):
                return ir.Ret((self.at(a), self.at(a)))
            case ir.Zero(type=t):
                return self.zero(t)
            case ir.Tup(args=args, fields=fields):
                return ir.Tup(self.each(args), False, fields)
            case ir.Application():
                return e.erase(self)
        return super().leaf(e)

    def zero(self, t: Type) -> ir.Leaf:
        """0.0, or the zero of an array or a product."""
        if isinstance(t, ArrayType) and not t.shape:
            return ir.lit(t.dtype.type(0), t)
        return ir.zero(t, linear=False)

    def scale(self, e: ir.Prim) -> ir.Leaf:
        """x * a; of a product, a helper that scales its parts."""
        right = e.args[0].linear
        x, a = map(self.at, ir.scaling(e))
        if isinstance(self.program.unfold(a.type), ArrayType):
            return ir.Prim((a, x) if right else (x, a), e.primitive)
        return scaled(x, a, self.helper(x.type, a.type, right))

    def helper(self, k: Type, u: Type, right: bool) -> str:
        """scale_u(x, a ;): one definition a type and a side, which calls those of the parts."""
        name = f"scale_{mangled(k)}_{mangled(u)}{'.right' * right}"
        if name in self.helpers:
            return name
        t = self.program.unfold(u)
        if not isinstance(t, Product):
            raise ProgramError(f"erase: {show(u)} cannot be scaled; only numbers and products can")
        names = ir.Names([v.name for v in dims_in(u)])
        x, a = ir.Var(names("x"), k), ir.Var(names("a"), u)
        parts = [ir.Var(names("p"), s) for s in t.items]
        bindings: list[ir.Binding] = [ir.Unpack(tuple(parts), a)]
        made: list[ir.Var] = []
        for p in parts:
            if not self.program.has_scalars(p.type):
                made.append(p)  # a part without numbers passes through: scaling would cost its drop
                continue
            q = ir.Var(names("q"), p.type)
            plain = isinstance(self.program.unfold(p.type), ArrayType)
            made_of: ir.Leaf = (
                ir.Prim((p, x) if right else (x, p), op("multiply"))
                if plain
                else scaled(x, p, self.helper(k, p.type, right))
            )
            bindings.append(ir.Let((q,), made_of))
            made.append(q)
        body = ir.Block(tuple(bindings), ir.Tup(tuple(made), False, t.fields))
        dims = dict.fromkeys(dims_in(u))
        self.helpers[name] = ir.Def(name, (x, a, *dims), (u,), (), body)
        return name


def scaled(x: ir.Var, a: ir.Var, helper: str) -> Call:
    """The call of a helper, which is given the dimensions of the type, too."""
    return Call((x, a, *dict.fromkeys(dims_in(a.type))), (helper,))
