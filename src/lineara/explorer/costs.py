"""What each line of the user's costs: work, bytes on the tape, and bytes that are alive.

    value       work of the function itself
    gradient    work of the simplified derivative: the value, its tape, and the sweep back
    tape        bytes that the forward sweep keeps for the sweep back
    peak        the most bytes of arrays that are alive after the line, in the forward sweep

A line in the body of a loop counts once a round; of branches each counts.  Where values tell how
many rounds there are, as of a while loop, what a run enters is counted; what else only a run can
tell counts as in `linear_a/cost.Costs`.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from lineara.engines import Ask, ones_of, run
from lineara.facts.types import ArrayType, Named, Product, Stack, Sum, Type
from lineara.linear_a import syntax as ir
from lineara.linear_a.cost import Costs
from lineara.linear_a.loops import While
from lineara.linear_a.program import Program
from lineara.passes.names import TAPE


@dataclass(slots=True)
class LineCost:
    """The costs of one line."""

    value: int = 0
    gradient: int = 0
    tape: int = 0
    peak: int = 0


Rounds = dict[str, int]  # how often each definition runs


def rounds_of(program: Program, names: Iterable[str]) -> Rounds:
    """How often each definition runs in one run of those: loops multiply, calls add up.

    >>> from lineara.linear_a.parse import parse
    >>> g = "def g(x: f64;) -> (f64;) = sin(x)"
    >>> f = " def f(x: f64;) -> (f64;) = let y = g(x;) in g(y;)"
    >>> rounds_of(parse(g + f), ["f"])["g"]
    2
    """
    times: dict[str, int] = defaultdict(int)
    order = [*dict.fromkeys([f for name in names for f in program.reached(name)])]
    order = ir.callees_first(
        [f for f in order if f in program.defs],
        lambda f: [g for g in ir.functions(program.defs[f].body) if g in program.defs],
    )
    for name in names:
        times[name] += 1
    for f in reversed(list(order)):
        for e in ir.leaves(program.defs[f].body):
            if isinstance(e, ir.Application):
                n = getattr(e, "n", 1)
                for g in e.functions:
                    times[g] += times[f] * (n if isinstance(n, int) else 1)
    return times


def rounds_at(program: Program, names: Sequence[str], args: Sequence[Any]) -> Rounds:
    """How often each definition runs, told by the text or else counted in a run at arguments.

    Of two names the second is the half of a derivative that takes what the first has kept.
    """
    bodies = [program.defs[f].body for f in program.reached(*names) if f in program.defs]
    loops = [e for b in bodies for e in ir.leaves(b) if isinstance(e, ir.Application)]
    if all([not isinstance(e, While) and type(getattr(e, "n", 1)) is int for e in loops]):
        return rounds_of(program, names)
    times = Counter[str]()
    ask = Ask(entering=(lambda _machine, name, _values: times.update([name]),))
    values = args
    for name in names:
        ones = [ones_of(v.type) for v in program.defs[name].params[len(values) :]]
        values = run(program, name, *values, *ones, ask=ask).results[-1:]  # the tape
    return times


def work_by_line(program: Program, rounds: Rounds) -> dict[str, int]:
    """The work of definitions that run so often, by the lines of their bindings."""
    costs, lines = Costs(program), defaultdict[str, int](int)
    for f, n in rounds.items():
        if f not in program.defs:
            continue
        body = program.defs[f].body
        for e in (*body.bindings, body.leaf):
            rhs = e.rhs if isinstance(e, ir.Let) else e
            if not isinstance(rhs, ir.Application):
                lines[ir.line_of(e)] += n * costs.work(e)
    return lines


def tape_by_line(program: Program, rounds: Rounds) -> dict[str, int]:
    """The bytes that forward halves of definitions keep, by the lines that computed them."""
    costs, lines = Costs(program), defaultdict[str, int](int)
    for f, n in rounds.items():
        body = program.defs[f].body if f in program.defs else ir.Block((), ir.Ret(()))
        for b in body.bindings:
            if isinstance(b, ir.Let) and isinstance(b.rhs, ir.Tup) and _is_tape(b.vars[0].type):
                for v in b.rhs.args:
                    if not _holds_tape(program, v.type):
                        lines[v.line] += n * costs.bytes(v.type)
    return lines


def _is_tape(t: Type) -> bool:
    return isinstance(t, Named) and TAPE in t.name


def _holds_tape(program: Program, t: Type) -> bool:
    """Whether a type is the tape of a callee, which counts there; or tags of these."""
    if isinstance(t, Named):
        return True
    return isinstance(t, Stack | Sum | Product) and any(
        [_holds_tape(program, item) for item in t.items]
    )


def peak_by_line(program: Program, nl: str) -> dict[str, int]:
    """The most bytes of arrays that are alive after each line of a definition."""
    costs, lines = Costs(program), defaultdict[str, int](int)
    body = program.defs[nl].body
    last: dict[Any, int] = {}
    for i, e in enumerate((*body.bindings, body.leaf)):
        operands = e.operands() if isinstance(e, ir.Leaf) else ir.reads(e)
        last |= dict.fromkeys(operands, i)
    alive = {v: costs.bytes(v.type) for v in program.defs[nl].params}
    for i, b in enumerate(body.bindings):
        alive |= {v: costs.bytes(v.type) for v in b.vars if isinstance(v.type, ArrayType)}
        line = ir.line_of(b)
        lines[line] = max(lines[line], sum(alive.values()))
        alive = {v: n for v, n in alive.items() if last.get(v, -1) > i}
    return lines
