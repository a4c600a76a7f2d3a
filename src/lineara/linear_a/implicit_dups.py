"""Programs in which linear variables are used as one likes, with their dups and drops written out.

Every occurrence gets a copy of its own, from a chain of dups where the variable is bound; what is
never used is dropped there.  Blocks are always evaluated, so an occurrence in one counts as any.
"""

from typing import Any

from lineara.linear_a import syntax as ir
from lineara.linear_a.program import Program


def explicit(program: Program) -> Program:
    """The program with implicit dups and drops in so many words."""
    places = dict(program.places)
    defs = {name: _Explicit(d, places).definition() for name, d in program.defs.items()}
    return Program(program.types, defs, places, program.text, program.file)


class _Explicit:
    """One definition."""

    def __init__(self, d: ir.Def, places: dict[Any, Any]) -> None:
        self.d = d
        self.places = places
        self.uses: dict[ir.Var, int] = {}
        self.names: set[str] = set()
        self.copies: dict[ir.Var, list[ir.Var]] = {}

    def definition(self) -> ir.Def:
        """The definition, of which only the body differs."""
        d = self.d
        self.names.update([p.name for p in d.params])
        self.count(d.body)
        self.fresh = ir.Names(self.names)
        written: list[ir.Binding] = []
        self.enter(d.params, written, d)
        body = self.block(d.body, written)
        made = ir.Def(d.name, d.params, d.results, d.lresults, body)
        self.places[made] = self.places.get(d, ())
        return made

    def count(self, e: ir.Leaf | ir.Block) -> None:
        """How often variables occur, and which names there are."""
        if isinstance(e, ir.Block):
            for b in e.bindings:
                self.names.update([v.name for v in b.vars])
                if isinstance(b, ir.Unpack):
                    self.uses[b.arg] = self.uses.get(b.arg, 0) + 1
                else:
                    self.count(b.rhs)
            self.count(e.leaf)
        elif isinstance(e, ir.Drop):
            self.count(e.body)
        else:
            for v in e.operands():
                self.uses[v] = self.uses.get(v, 0) + 1

    def enter(self, binders: tuple[ir.Var, ...], written: list[ir.Binding], at: Any) -> None:
        """Write the copies of variables that are bound, or drop them."""
        for v in binders:
            times = self.uses.get(v, 0)
            if not times:
                self.write(written, ir.Let((), ir.drop(v)), at)
            elif v.linear and times > 1:
                made, whole = [], v
                for _ in range(times - 1):
                    a, b = (ir.Var(self.fresh(v.name), v.type, True) for _ in range(2))
                    self.write(written, ir.Let((a, b), ir.Dup((whole,))), at)
                    made.append(a)
                    whole = b
                self.copies[v] = [*made, whole][::-1]

    def write(self, written: list[ir.Binding], b: ir.Let, at: Any) -> None:
        """One more binding, which stands where its variable is bound."""
        self.places[b] = self.places[b.rhs] = self.places.get(at, ())[:1]
        written.append(b)

    def occurrence(self, v: ir.Var) -> ir.Var:
        """The next copy of a variable."""
        return self.copies[v].pop() if v in self.copies else v

    def block(self, block: ir.Block, written: list[ir.Binding]) -> ir.Block:
        """A block after what is written already."""
        for b in block.bindings:
            made: ir.Binding = (
                ir.Unpack(b.vars, self.occurrence(b.arg))
                if isinstance(b, ir.Unpack)
                else ir.Let(b.vars, self.expression(b.rhs))
            )
            self.places[made] = self.places.get(b, ())
            written.append(made)
            self.enter(b.vars, written, b)
        return ir.Block(tuple(written), self.leaf(block.leaf))

    def expression(self, e: ir.Leaf | ir.Block) -> ir.Leaf | ir.Block:
        """A leaf or a block."""
        return self.block(e, []) if isinstance(e, ir.Block) else self.leaf(e)

    def leaf(self, e: ir.Leaf) -> ir.Leaf:
        """A leaf on the copies."""
        made = (
            ir.Drop((), self.expression(e.body))
            if isinstance(e, ir.Drop)
            else e.renamed(self.occurrence)
        )
        self.places[made] = self.places.get(e, ())
        return made
