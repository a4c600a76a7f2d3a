"""A definition that is called in one place stands there: its lines are lines of the caller.

    let (ys) = f(xs) in e      =>      the bindings of f about xs, then e about f's results
    let t = <xs> in .. let <ys> = t in e      =>      .. e about xs

Both halves of a derivative are then lines of one block, and what the first half keeps for the
second one is no product.  The text does not grow, since nothing is written twice.  An error speaks
of the program as it was, so each leaf knows which one it was there.
"""

from collections import Counter

from lineara.linear_a import syntax as ir
from lineara.linear_a.calls import Call
from lineara.linear_a.program import Program

Origins = dict[ir.Leaf, ir.Leaf]


def spliced(program: Program, name: str) -> tuple[Program, Origins]:
    """The program in which what is called once stands in its caller, if `name` reaches it.

    Beside it: which leaf of the program each new one is.
    """
    reached = program.reached(name)
    applied = Counter([f for g in reached for f in ir.functions(program.defs[g].body)])
    once = {f for f, n in applied.items() if n == 1 and f != name}
    ready, origins = dict[str, ir.Def](), Origins()
    for f in ir.callees_first([name], lambda f: ir.functions(program.defs[f].body)):
        d = program.defs[f]
        calls = [e for e in ir.applications(d.body) if type(e) is Call]
        bodies = {g: ready[g] for e in calls for g in e.functions if g in once and g in ready}
        ready[f] = Spliced(d, bodies, origins).definition(d) if bodies else d
    return program.with_(*[d for f, d in ready.items() if d is not program.defs[f]]), origins


class Spliced(ir.Mapped):
    """One definition, with the bodies of those that it calls."""

    def __init__(self, d: ir.Def, bodies: dict[str, ir.Def], origins: Origins) -> None:
        super().__init__()
        self.origins = origins
        self.bodies = bodies
        self.names = ir.Names([v.name for v in ir.binders(d)])
        self.inside = False  # whether what is rebuilt is a body of another definition
        self.products: dict[ir.Var, ir.Vars] = {}

    def binder(self, v: ir.Var) -> ir.Var:
        """A variable; one of another definition gets a name that is free."""
        name = self.names(v.name) if self.inside else v.name
        if name == v.name:
            return v
        self.vars[v] = made = ir.Var(name, v.type, v.linear, v.line)
        return made

    def binding(self, b: ir.Binding) -> None:
        """A binding; of a call those of the body."""
        if isinstance(b, ir.Unpack) and self.at(b.arg) in self.products:
            self.vars |= zip(b.vars, self.products[self.at(b.arg)], strict=True)
            return
        if isinstance(b, ir.Let) and type(b.rhs) is Call and b.rhs.functions[0] in self.bodies:
            rhs = self.body(b.rhs)
            if isinstance(rhs, ir.Ret | ir.Copy):
                self.vars |= zip(b.vars, rhs.args, strict=True)
            else:
                self.out.append(ir.Let(self.binders(b.vars), rhs))
            return
        super().binding(b)
        made = self.out[-1]
        if isinstance(made, ir.Let) and isinstance(made.rhs, ir.Tup):
            self.products[made.vars[0]] = made.rhs.args

    def body(self, e: Call) -> ir.Leaf:
        """The leaf of what is called, after its bindings."""
        d, before = self.bodies[e.functions[0]], self.inside
        self.vars |= zip(d.params, map(self.at, e.args), strict=True)
        self.inside = True
        for b in d.body.bindings:
            self.binding(b)
        leaf = self.leaf(d.body.leaf)
        self.inside = before
        return leaf

    def leaf(self, e: ir.Leaf) -> ir.Leaf:
        """A leaf; of a call that of the body, which is bound before it."""
        if type(e) is Call and e.functions[0] in self.bodies:
            return self.body(e)
        made = super().leaf(e)
        self.origins[made] = self.origins.get(e, e)
        return made


__all__ = ["Origins", "spliced"]
