"""A definition that is called in one place stands there: its lines are lines of the caller.

    let (ys) = f(xs) in e      =>      the bindings of f about xs, then e about f's results
    let t = <xs> in .. let <ys> = t in e      =>      .. e about xs

Both halves of a derivative are then lines of one block, and what the first half keeps for the
second one is no product.  The text does not grow, since nothing is written twice.  An error speaks
of the program as it was, so each leaf knows which one it was there.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from lineara.linear_a import syntax as ir
from lineara.linear_a.calls import Call
from lineara.linear_a.program import Program

Origins = dict[ir.Leaf, ir.Leaf]


def spliced(program: Program, name: str) -> tuple[Program, Origins]:
    """The program in which what is called once stands in its caller, if `name` reaches it.

    Beside it: which leaf of the program each new one is; others are themselves.
    """
    reached = [*program.reached(name)]
    applied = [e for f in reached for e in ir.applications(program.defs[f].body)]
    times = Counter([f for e in applied for f in e.functions])
    calls = [e.functions[0] for e in applied if type(e) is Call]
    once = {f: program.defs[f] for f in calls if times[f] == 1 and f != name}
    origins = Origins()
    bodies = [program.defs[f] for f in reached if f not in once]
    made = [Spliced(d, once, origins).definition(d) for d in bodies if once]
    return program.with_(*made), origins


class Spliced(ir.Mapped):
    """One definition, with the bodies of those that it calls.

    Definitions may have variables in common, so `vars` is what stands for those of the body at
    hand.
    """

    def __init__(self, d: ir.Def, bodies: dict[str, ir.Def], origins: Origins) -> None:
        super().__init__()
        self.origins = origins
        self.bodies = bodies
        self.names = ir.Names([v.name for v in ir.binders(d)])
        self.own = self.vars
        self.products: dict[ir.Var, ir.Vars] = {}

    def binder(self, v: ir.Var) -> ir.Var:
        """A variable; one of another definition gets a name that is free."""
        name = v.name if self.vars is self.own else self.names(v.name)
        if name == v.name:
            return v
        self.vars[v] = made = ir.Var(name, v.type, v.linear, v.line)
        return made

    def lines(self, bindings: Sequence[ir.Binding], leaf: ir.Leaf) -> ir.Leaf:
        """The leaf, after the bindings, in which those of bodies stand for calls."""
        around, rest = self.vars, iter(bindings)
        callers: list[tuple[Iterator[ir.Binding], ir.Leaf, dict[ir.Var, ir.Var], ir.Vars]] = []
        while True:
            e: ir.Leaf | ir.Block = leaf
            for b in rest:
                if isinstance(b, ir.Let) and self.is_spliced(b.rhs):
                    callers.append((rest, leaf, self.vars, b.vars))
                    e = b.rhs
                    break
                self.binding(b)
            if isinstance(e, Call) and self.is_spliced(e):
                d = self.bodies[e.functions[0]]
                self.vars = dict(zip(d.params, map(self.at, e.args), strict=True))
                rest, leaf = iter(d.body.bindings), d.body.leaf
                continue
            made = self.leaf(leaf)
            if not callers:
                self.vars = around
                return made
            rest, leaf, self.vars, results = callers.pop()
            if isinstance(made, ir.Ret | ir.Copy):
                self.vars |= zip(results, made.args, strict=True)
            else:
                self.bind(ir.Let(self.binders(results), made))

    def is_spliced(self, e: ir.Leaf | ir.Block) -> bool:
        """Whether a body stands for an expression."""
        return type(e) is Call and e.functions[0] in self.bodies

    def binding(self, b: ir.Binding) -> None:
        """A binding; of a product that is taken apart the parts are known."""
        if isinstance(b, ir.Unpack) and self.at(b.arg) in self.products:
            self.vars |= zip(b.vars, self.products[self.at(b.arg)], strict=True)
            return
        super().binding(b)
        self.bind(self.out.pop())

    def bind(self, b: ir.Binding) -> None:
        """Append a binding; the parts of a product are known from then on."""
        self.out.append(b)
        if isinstance(b, ir.Let) and isinstance(b.rhs, ir.Tup):
            self.products[b.vars[0]] = b.rhs.args

    def leaf(self, e: ir.Leaf) -> ir.Leaf:
        """A leaf; of a call that is dropped that of the body, which is bound before it."""
        if self.is_spliced(e):
            return self.lines((), e)
        made = super().leaf(e)
        if made is not e:
            self.origins[made] = e
        return made


__all__ = ["Origins", "spliced"]
