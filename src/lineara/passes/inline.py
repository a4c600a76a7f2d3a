"""Inlining:  a call becomes the body of what it calls.

    let (ys; ~bs) = f(xs; ~as) in e      =>      the bindings of f about xs and ~as, then e

Which calls is a choice: all of them, those of small definitions, or those of some names.  A
definition that calls itself, and what branches and loops apply, stays a definition.  Binders keep
names of their own; the work is the same.
"""

from collections.abc import Callable

from lineara.errors import ProgramError
from lineara.facts.gc_pause import uncollected
from lineara.linear_a import syntax as ir
from lineara.linear_a.calls import Call
from lineara.linear_a.cost import size
from lineara.linear_a.program import Program
from lineara.passes.unzip import flat, short

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
    defs, ready = program.defs, dict[str, ir.Def]()
    for f in ir.callees_first([name], lambda f: ir.functions(defs[f].body)):
        callees = dict.fromkeys(ir.functions(defs[f].body))
        bodies = {g: ready[g] for g in callees if g in ready and chosen(defs[g])}
        ready[f] = _Inline(defs[f], bodies).definition(defs[f]) if bodies else defs[f]
    return program.with_(ready[name])


class _Inline(ir.Mapped):
    """One definition, with the bodies of those that it calls."""

    def __init__(self, d: ir.Def, bodies: dict[str, ir.Def]) -> None:
        super().__init__()
        self.bodies = bodies
        self.names = ir.Names([v.name for v in ir.binders(d)])

    def block(self, block: ir.Block) -> ir.Block:
        """The bindings, with those of the bodies among them."""
        made = super().block(block)
        return flat(made.bindings, made.leaf)

    def leaf(self, e: ir.Leaf) -> ir.Leaf:
        """A leaf; the body of what is called is bound before it."""
        if isinstance(e, ir.Drop):
            return ir.Drop((), short(self.expression(e.body)))
        if isinstance(e, Call) and e.functions[0] in self.bodies:
            d = self.bodies[e.functions[0]]
            made = _Body(self.names, dict(zip(d.params, e.args, strict=True))).block(d.body)
            self.out += made.bindings
            return made.leaf
        return e


class _Body(ir.Mapped):
    """A body about the arguments of a call; its binders get names that are free there."""

    def __init__(self, names: ir.Names, at: dict[ir.Var, ir.Var]) -> None:
        super().__init__()
        self.names = names
        self.vars = at

    def binder(self, v: ir.Var) -> ir.Var:
        """A variable with a name that is free."""
        self.vars[v] = ir.Var(self.names(v.name), v.type, v.linear, v.line)
        return self.vars[v]


__all__ = ["Chosen", "every", "inline", "named", "smaller_than"]
