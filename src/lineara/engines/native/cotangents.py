"""Which leaves of a program calculate with cotangents: their rounding is free.

A gradient calls the two halves of a vjp, and all that the second one gets beside the tape are
cotangents.  What is made of them is followed through the definitions that the half applies.  It is
linear in them, so nothing there relies on what is rounded away; a line that only recalculates
something of the primal reads no cotangent and is none of them.
"""

from collections.abc import Iterable

from lineara.engines.primal import halves
from lineara.facts.types import ArrayType, Type
from lineara.linear_a import syntax as ir
from lineara.linear_a.branches import Choice
from lineara.linear_a.calls import Call
from lineara.linear_a.loops import Scan, While
from lineara.linear_a.program import Program

Places = frozenset[int]


def of_cotangents(program: Program, name: str) -> set[ir.Leaf]:
    """The leaves that calculate with cotangents, of all that a definition reaches."""
    made = Cotangents(program)
    for f in program.reached(name):
        two = halves(program.defs[f])
        if two is not None:
            _, tape, back = two
            given = [i for i, v in enumerate(back.args) if v != tape and made.is_float(v.type)]
            made.of(back.functions[0], frozenset(given))
    return made.leaves


class Cotangents:
    """What a program makes of cotangents."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.leaves: set[ir.Leaf] = set()
        self.known: dict[tuple[str, Places], Places] = {}

    def is_float(self, t: Type) -> bool:
        """Whether values of a type may be cotangents: numbers that are floats, or products."""
        t = self.program.unfold(t)
        return t.dtype.kind in "fc" if isinstance(t, ArrayType) else True

    def of(self, name: str, given: Places) -> Places:
        """Which results are made of cotangents, where these arguments are."""
        if (name, given) not in self.known:
            self.known[name, given] = Places()  # where it calls itself
            d = self.program.defs[name]
            self.known[name, given] = self.block(d.body, {d.params[i] for i in given})
        return self.known[name, given]

    def block(self, block: ir.Block, cts: set[ir.Var]) -> Places:
        """The same of a block, where these variables are cotangents."""
        for b in block.bindings:
            if isinstance(b, ir.Unpack):
                made: Iterable[int] = range(len(b.vars)) if b.arg in cts else ()
            else:
                made = self.results(b.rhs, cts)
            cts.update([b.vars[i] for i in made if self.is_float(b.vars[i].type)])
        return self.results(block.leaf, cts)

    def results(self, e: ir.Leaf | ir.Block, cts: set[ir.Var]) -> Places:
        """Which results of an expression are made of cotangents."""
        if isinstance(e, ir.Block):
            return self.block(e, cts)
        given = frozenset([i for i, v in enumerate(e.args) if v in cts])
        if isinstance(e, ir.Drop) or not given:
            return Places()
        if isinstance(e, ir.Ret | ir.Copy):
            return given
        self.leaves.add(e)
        if isinstance(e, ir.Prim):
            return Places([0])
        if isinstance(e, Scan):
            return self.rounds(e.body, given, e.nk, e.nc)
        if isinstance(e, While):
            return self.rounds(e.body, given, e.nk, len(e.args) - e.nk)
        if isinstance(e, Choice):  # a payload comes before what all branches get
            return frozenset().union(*[self.of(f, self.shifted(e, f, given)) for f in e.functions])
        if isinstance(e, Call):
            return self.of(e.functions[0], given)
        return Places([0])

    def shifted(self, e: Choice, f: str, given: Places) -> Places:
        """The formals of a branch that get these arguments."""
        first = len(self.program.defs[f].params) - len(e.args)
        return frozenset([i + first for i in given if i + first >= 0])

    def rounds(self, body: str, given: Places, nk: int, nc: int) -> Places:
        """The results of a loop, whose carries go from round to round."""
        while True:
            made = self.of(body, given)
            again = given | {i + nk for i in made if i < nc}
            if again == given:
                return made | {i - nk for i in given if nk <= i < nk + nc}
            given = again


__all__ = ["of_cotangents"]
