"""Linear B, the part of Linear A that unzipping ends in and T begins with.

    P |- e : (ts ; us)       ts or us is empty
                             FL(e) is empty unless ts is

A definition is Linear B if both hold of every expression in it: results are all non-linear or all
linear, and what is non-linear reads no linear variable, not even to drop it.  What it applies is
judged by its type alone  [YOLO, §5].
"""

from collections.abc import Iterable

from lineara.facts.gc_pause import uncollected
from lineara.linear_a import syntax as ir
from lineara.linear_a.check import Judge, Typing, show_zones
from lineara.linear_a.program import Program


@uncollected
def linear_b(program: Program, names: Iterable[str]) -> Program:
    """The well-typed program itself, if these definitions are Linear B; else a ProgramError.

    >>> from lineara.errors import ProgramError
    >>> from lineara.linear_a.parse import parse
    >>> program = parse("def f(x: f64; ~a: f64) -> (f64; f64) = (x; x * ~a)")
    >>> try:
    ...     linear_b(program, ["f"])
    ... except ProgramError as error:
    ...     print(error.message.splitlines()[0][:51])
    1:40: this has results in both zones, (f64; f64), b
    """
    for name in names:
        _LinearB(program, name).expression(program.defs[name].body, program.defs[name])
    return program


class _LinearB:
    """The judgement about one definition."""

    def __init__(self, program: Program, name: str) -> None:
        self.name = name
        self.judge = Judge(program, name)

    def expression(self, e: ir.Leaf | ir.Block, at: object) -> tuple[Typing, set[ir.Var]]:
        """The results of an expression and FL(e); errors show e, or what it stands in."""
        if isinstance(e, ir.Drop):
            return Typing((), ()), self.expression(e.body, at)[1]
        if isinstance(e, ir.Block):
            typing, reads = self.block(e)
        else:
            typing, reads, at = self.judge.leaf(e), set(e.lxs), e
        if typing.xs and (typing.lxs or reads):
            said = (
                f"has results in both zones, {show_zones(*typing)}"
                if typing.lxs
                else f"has non-linear results, {show_zones(*typing)}, and reads "
                f"{', '.join(sorted(map(repr, reads)))}"
            )
            self.judge.wrong(
                f"this {said}, but in Linear B an expression is of one zone; unzip {self.name}: "
                f"{self.name}.nl and {self.name}.lin are Linear B",
                at,
            )
        return typing, reads

    def block(self, block: ir.Block) -> tuple[Typing, set[ir.Var]]:
        """The results of the leaf; FL of all without what is bound here."""
        reads: set[ir.Var] = set()
        for b in block.bindings:
            if isinstance(b, ir.Unpack):
                reads |= {b.arg} if b.arg.linear else set()
            else:
                reads |= self.expression(b.rhs, b)[1]
        typing, last = self.expression(block.leaf, block.leaf)
        return typing, (reads | last).difference(*[b.vars for b in block.bindings])
