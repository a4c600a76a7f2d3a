"""The interpreter at first, and machine code as soon as it pays.

Of each definition the leaves are counted that its runs evaluate: those of a loop once a round, and
a loop or a recursion whose rounds depend on values has no end.  A run that would bring the count
above PAYS times the text, and SETUP leaves more, is machine code, and so are all that follow: the
interpreter has by then taken about as long as compiling takes.
"""

import math
import warnings
from collections.abc import Sequence
from functools import cache
from typing import Any

from lineara.engines.engine import CAPABILITIES, Ask, Engine, Outcome
from lineara.engines.interpreter import Interpreter
from lineara.engines.native import Native, is_installed
from lineara.linear_a import syntax as ir
from lineara.linear_a.loops import Scan, While
from lineara.linear_a.program import Program

PAYS = 100
"""Runs of a text in the time that it takes to compile it, about."""
SETUP = 16
"""Leaves that take as long to compile as an empty text does, about."""


class Adaptive(Engine):
    """Interpreted until compiling pays; what machine code does not take stays interpreted."""

    name = "adaptive"
    can = frozenset(CAPABILITIES)
    compiles = True

    def __init__(self, native: Native, interpreter: Interpreter) -> None:
        self.native, self.interpreter = native, interpreter

    def evaluate(self, program: Program, name: str, values: list[Any], ask: Ask) -> Outcome:
        """Run the definition by one of the two engines."""
        engine = self.native if self.compiled(program, name, ask) else self.interpreter
        return engine.evaluate(program, name, values, ask)

    def direct(self, program: Program, name: str, weak: Sequence[bool]) -> Any:
        """That of machine code, once there is some."""
        if program.noted["adaptive"].get(name, 0) >= 0 or not is_installed():
            return None
        return self.native.direct(program, name, weak)

    def compiled(self, program: Program, name: str, ask: Ask) -> bool:
        """Whether this run is one of machine code."""
        state = program.noted["adaptive"]
        left = state.get(name)
        if left is None:
            leaves = [len(ir.leaves(program.defs[f].body)) for f in program.reached(name)]
            left = PAYS * (SETUP + sum(leaves))
        if left >= 0:
            left = state[name] = left - evaluated(program, name)
        if left >= 0 or ask.needs():
            return False
        if not is_installed():
            warn_once()
            return False
        return self.native.takes(program, name) is None


def evaluated(program: Program, name: str) -> float:
    """The leaves that a run of a definition evaluates; infinity where values tell how many."""
    known: dict[str, float] = program.noted["leaves evaluated"]
    todo = [name]
    while todo:
        f = todo[-1]
        if f in known:
            todo.pop()
            continue
        body = program.defs[f].body
        missing = [g for g in ir.functions(body) if g not in known]
        if not missing:
            known[f] = sum([_of_leaf(e, known) for e in ir.leaves(body)])
            todo.pop()
        elif any([g in todo for g in missing]):
            known[f] = math.inf  # a recursion has no bound
        else:
            todo += missing
    return known[name]


def _of_leaf(e: ir.Leaf, known: dict[str, float]) -> float:
    """The leaves that one leaf evaluates."""
    match e:
        case While():
            return math.inf
        case Scan():
            return known[e.body] * e.n if isinstance(e.n, int) else math.inf
        case ir.Application():
            return 1 + max([known[f] for f in e.functions])
    return 1


@cache
def warn_once() -> None:
    """Say that programs are interpreted for want of a compiler."""
    warnings.warn(
        "llvmlite is not installed, so programs are interpreted, which is slower than machine code "
        'where they have loops; install llvmlite, or ask for that: jit(f, engine="interpreter")',
        UserWarning,
        stacklevel=2,
    )


__all__ = ["Adaptive"]
