"""Programs in which linear variables are used as one likes, with their dups and drops written out.

Every occurrence gets a copy of its own, from a chain of dups where the variable is bound; what is
never used is dropped there.  Blocks are always evaluated, so an occurrence in one counts as any.
"""

from collections import Counter
from dataclasses import replace
from typing import Any

from lineara.linear_a import syntax as ir
from lineara.linear_a.program import Program
from lineara.linear_a.syntax import Def, Let, Unpack


def explicit(program: Program) -> Program:
    """The program with its implicit dups and drops written out."""
    places = dict(program.places)
    defs = {name: _Explicit(d, places).definition(d) for name, d in program.defs.items()}
    return Program(program.types, defs, places, program.text, program.file)


class _Explicit(ir.Mapped):
    """One definition."""

    def __init__(self, d: ir.Def, places: dict[Any, Any]) -> None:
        super().__init__()
        self.places = places
        self.uses = Counter([v for e in ir.leaves(d.body) if not isinstance(e, ir.Drop)
                             for v in e.operands()])  # fmt: skip
        self.uses.update([b.arg for block in ir.blocks(d.body) for b in block.bindings
                          if isinstance(b, ir.Unpack)])  # fmt: skip
        self.fresh = ir.Names([v.name for v in ir.binders(d)])
        self.copies: dict[ir.Var, list[ir.Var]] = {}

    def definition(self, d: ir.Def) -> ir.Def:
        """The definition, of which only the body differs."""
        self.enter(d.params, d)
        ahead = self.out
        body = self.block(d.body)
        made = replace(d, body=ir.Block((*ahead, *body.bindings), body.leaf))
        self.places[made] = self.places.get(d, ())
        return made

    def enter(self, binders: ir.Vars, at: Def | Let | Unpack) -> None:
        """Append the dups of variables that are bound, or drop them."""
        for v in binders:
            times = self.uses[v]
            if not times:
                self.append(ir.Let((), ir.drop(v)), at)
            elif v.linear and times > 1:
                copies, whole = [], v
                for _ in range(times - 1):
                    a, b = (ir.Var(self.fresh(v.name), v.type, True) for _ in range(2))
                    self.append(ir.Let((a, b), ir.Dup((whole,))), at)
                    copies.append(a)
                    whole = b
                self.copies[v] = [*copies, whole][::-1]
                self.vars[v] = whole

    def append(self, b: ir.Let, at: Def | Let | Unpack) -> None:
        """Append a binding whose place in the text is where its variable is bound."""
        self.places[b] = self.places[b.rhs] = self.places.get(at, ())[:1]
        self.out.append(b)

    def at(self, v: ir.Var) -> ir.Var:
        """The next copy of a variable."""
        return self.copies[v].pop() if v in self.copies else v

    def binding(self, b: ir.Binding) -> None:
        """Append the binding, and the dups of what it binds."""
        super().binding(b)
        self.places[self.out[-1]] = self.places.get(b, ())
        self.enter(b.vars, b)

    def leaf(self, e: ir.Leaf) -> ir.Leaf:
        """A leaf on the copies."""
        made = super().leaf(e)
        self.places[made] = self.places.get(e, ())
        return made
