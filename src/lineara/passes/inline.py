"""Inlining:  a call becomes the body of what it calls.

    let (ys; ~bs) = f(xs; ~as) in e      =>      the bindings of f about xs and ~as, then e

Which calls is a choice: all of them, those of small definitions, or those of some names.  A
definition that calls itself, and what branches and loops apply, stays a definition.  Binders keep
names of their own; the work is the same.
"""

from collections.abc import Callable, Iterable
from typing import Any

from lineara.errors import ProgramError
from lineara.linear_a import syntax as ir
from lineara.linear_a.calls import Call
from lineara.linear_a.cost import size
from lineara.linear_a.gc_pause import uncollected
from lineara.linear_a.program import Program
from lineara.passes.jvp import all_vars
from lineara.passes.unzip import flat, functions, short

Chosen = Callable[[ir.Def], bool]


def every(d: ir.Def) -> bool:
    """Inline all calls."""
    return True


def smaller_than(limit: int) -> Chosen:
    """Inline calls of definitions whose text has less than that size."""
    return lambda d: size(d) < limit


def named(*names: str) -> Chosen:
    """Inline calls of the definitions of these names."""
    return lambda d: d.name in names


@uncollected
def inline(program: Program, name: str, chosen: Chosen = every) -> Program:
    """The program with the chosen calls in `name`, and in what is inlined there, replaced.

    >>> from lineara.linear_a.parse import parse
    >>> p = parse("def g(x: f64;) -> (f64;) = sin(x)  def f(x: f64;) -> (f64;) = g(x;)")
    >>> print(inline(p, "f").defs["f"].body.leaf.name)
    sin
    """
    if name not in program.defs:
        raise ProgramError(f"inline: there is no definition {name}")
    ready: dict[str, ir.Def] = {}
    open_ = [name]
    while open_:  # callees first
        f = open_[-1]
        if f in ready:
            open_.pop()
            continue
        callees = called(program.defs[f].body)
        waits = [g for g in callees if g not in ready and g not in open_]
        if waits:
            open_ += waits[:1]
            continue
        bodies = {g: ready[g] for g in callees if g in ready and chosen(program.defs[g])}
        ready[f] = _Inline(program.defs[f], bodies).definition() if bodies else program.defs[f]
    return program.with_(ready[name])


def called(e: ir.Leaf | ir.Block) -> Iterable[str]:
    """The definitions that an expression calls."""
    return dict.fromkeys(functions(e))


class _Inline:
    """One definition, with the bodies of those that it calls."""

    def __init__(self, d: ir.Def, bodies: dict[str, ir.Def]) -> None:
        self.d = d
        self.bodies = bodies
        self.names = ir.Names([v.name for v in all_vars(d)])

    def definition(self) -> ir.Def:
        """The definition with its calls replaced."""
        d = self.d
        return ir.Def(d.name, d.params, d.results, d.lresults, self.block(d.body))

    def block(self, block: ir.Block) -> ir.Block:
        """The bindings, with those of the bodies among them."""
        out: list[ir.Binding] = []
        for b in block.bindings:
            if isinstance(b, ir.Unpack):
                out.append(b)
            else:
                out.append(ir.Let(b.vars, self.expression(b.rhs, out)))
        return flat(out, self.expression(block.leaf, out))

    def expression(self, e: ir.Leaf | ir.Block, out: list[ir.Binding]) -> Any:
        """A right-hand side; what a body binds is written before it."""
        if isinstance(e, ir.Block):
            return self.block(e)
        if isinstance(e, ir.Drop):
            return ir.Drop((), short(self.expression(e.body, out)))
        if isinstance(e, Call) and e.functions[0] in self.bodies:
            d = self.bodies[e.functions[0]]
            return self.body(d.body, dict(zip(d.params, e.args, strict=True)), out)
        return e

    def body(self, block: ir.Block, at: dict[ir.Var, ir.Var], out: list[ir.Binding]) -> Any:
        """The bindings of a body about other variables; its leaf is given."""
        for b in block.bindings:
            if isinstance(b, ir.Unpack):
                out.append(ir.Unpack(self.fresh(b.vars, at), at[b.arg]))
            else:
                made = self.copy(b.rhs, at)
                out.append(ir.Let(self.fresh(b.vars, at), made))
        return self.copy(block.leaf, at)

    def fresh(self, binders: tuple[ir.Var, ...], at: dict[ir.Var, ir.Var]) -> tuple[ir.Var, ...]:
        """Binders with names that are free here."""
        made = tuple([ir.Var(self.names(v.name), v.type, v.linear) for v in binders])
        at.update(zip(binders, made, strict=True))
        return made

    def copy(self, e: ir.Leaf | ir.Block, at: dict[ir.Var, ir.Var]) -> Any:
        """An expression about other variables."""
        if isinstance(e, ir.Block):
            inner: list[ir.Binding] = []
            leaf = self.body(e, at, inner)
            return ir.Block(tuple(inner), leaf)
        if isinstance(e, ir.Drop):
            return ir.Drop((), self.copy(e.body, at))
        return e.renamed(at.__getitem__)


__all__ = ["Chosen", "every", "inline", "named", "smaller_than"]
