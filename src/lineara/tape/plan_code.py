"""The code of a plan: straight-line Python over NumPy, from the steps that were written down.

    def pull(parents, values, g):           y = a0 @ a1
        p0, p1 = parents
        a0, a1, y = values
        add(p0, Outer(g, a1))
        t2 = a0.swapaxes(-1, -2)
        t3 = t2 @ g
        h = p1.g
        p1.g = t3 if h is None else h + t3

Steps that no cotangent needs are left out.  Those that do not depend on the cotangent are taken
with it, too, unless they may raise: then they are taken at the call, as the general way does.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from lineara.facts.primitive import (
    Constant,
    Elementwise,
    Multilinear,
    Outer,
    Piece,
    Primitive,
    Structural,
)
from lineara.tape.contributions import add
from lineara.tape.sketches import Draft, Sketch, Step, Unplanned, pulled

INFIX = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/"}
_TAME = (Elementwise, Structural, Multilinear, Constant)  # kinds that do not raise
_TAME_NAMES = {"sum", "cumsum", "where", "keep"}


class Code(NamedTuple):
    """What runs: `pull(parents, values, g)` in the sweep, and `keep(*values)` at the call."""

    pull: Callable[..., None]
    keep: Callable[..., tuple] | None
    reads: frozenset[str]  # the leaves that `pull` reads
    text: str


def written_out(draft: Draft, leaves: Sequence[Sketch], moving: Sequence[str], out: Sketch) -> Code:
    """The code of the way back of what a draft holds."""
    draft.inside = True  # what is written down from here on belongs to the way back
    ends = pulled(draft.moves, out.name, draft.sketch("g", out.t))
    steps = {s.out: s for s in draft.steps}
    needed = _needed(steps, [s.name for _, c in ends for s in sketches_in(c)], out.name)
    moved = {"g"}
    for s in draft.steps:
        if any([a.name in moved for a in sketches_in(s.args)]):
            moved.add(s.out)
    early = [s for s in draft.steps if s.out in needed and s.out not in moved]
    at_call = early if not all([_is_tame(s.primitive) for s in early]) else []
    names = {out.name: "y"}
    writer = _Writer(names)
    late = [s for s in draft.steps if s.out in needed and s not in at_call]
    taken = {a.name for s in late for a in sketches_in(s.args)}
    taken |= {s.name for _, c in ends for s in sketches_in(c)}
    kept = [s.out for s in at_call if s.out in taken]
    head = [*[s.name for s in leaves], "y", *kept]
    body = [writer.line(s) for s in late]
    for name, c in ends:
        body += writer.given(f"p{moving.index(name)}", leaves[int(name[1:])], c)
    lines = [f"{', '.join(f'p{i}' for i in range(len(moving)))}, = parents"]
    lines += [f"{', '.join(head)}, = values"]
    lines += [] if out.t.shape else ["g = np.float64(g)"]
    text = "def pull(parents, values, g):\n"
    text += "".join([f"    {line}\n" for line in [*lines, *body]])
    if at_call:
        lines = [*[writer.line(s) for s in at_call], f"return {', '.join([*kept, ''])}"]
        if not kept:
            lines[-1] = "return ()"
        text += f"def keep({', '.join([*[s.name for s in leaves], 'y'])}):\n"
        text += "".join([f"    {line}\n" for line in lines])
    exec(compile(text, "<lineara plan>", "exec"), writer.scope)
    reads = frozenset(taken)
    return Code(writer.scope["pull"], writer.scope.get("keep"), reads, text)


def sketches_in(value: Any) -> list[Sketch]:
    """The sketches in arguments, or in a contribution to a cotangent."""
    if isinstance(value, Sketch):
        return [value]
    return [s for v in value for s in sketches_in(v)] if isinstance(value, tuple) else []


def _needed(steps: dict[str, Step], names: list[str], out: str) -> set[str]:
    """The steps from which values come; that of the result is known."""
    needed: set[str] = set()
    while names:
        name = names.pop()
        if name in steps and name != out and name not in needed:
            needed.add(name)
            names += [a.name for a in sketches_in(steps[name].args)]
    return needed


def _is_tame(primitive: Primitive) -> bool:
    return isinstance(primitive, _TAME) or primitive.name in _TAME_NAMES


class _Writer:
    """Writes steps as lines, and keeps what the lines mention."""

    def __init__(self, names: dict[str, str]) -> None:
        self.names = names
        self.scope: dict[str, Any] = {"add": add, "Outer": Outer, "Piece": Piece, "np": np}

    def constant(self, value: Any) -> str:
        """The name under which the code finds a value."""
        name = f"c{len(self.scope)}"
        self.scope[name] = value
        return name

    def word(self, a: Any) -> str:
        """An argument in the code."""
        return self.names.get(a.name, a.name) if isinstance(a, Sketch) else self.constant(a)

    def line(self, step: Step) -> str:
        """A step as an assignment."""
        primitive, words = step.primitive, [self.word(a) for a in step.args]
        out = self.names.get(step.out, step.out)
        if primitive.name in INFIX and len(words) == 2:
            return f"{out} = {words[0]} {INFIX[primitive.name]} {words[1]}"
        if isinstance(primitive, Elementwise):
            return f"{out} = {self.constant(primitive.array)}({', '.join(words)})"
        options = {name: self.constant(v) for name, v in step.params.items()}
        text = primitive.text(*words, **options)
        if text is None:
            call = self.constant(partial(primitive.evaluate, np, **step.params))
            text = f"{call}({', '.join(words)})"
        return f"{out} = {text}"

    def given(self, parent: str, leaf: Sketch, c: Any) -> list[str]:
        """A contribution to the cotangent of a parent."""
        if isinstance(c, Sketch) and leaf.t.shape:
            return [
                f"h = {parent}.g",
                f"{parent}.g = {self.word(c)} if h is None else h + {self.word(c)}",
            ]
        if isinstance(c, Outer):
            return [f"add({parent}, Outer({self.word(c.u)}, {self.word(c.v)}))"]
        if isinstance(c, Piece):
            if sketches_in(c.at):
                raise Unplanned("positions are not known")
            return [f"add({parent}, Piece({self.constant(c.at)}, {self.word(c.x_bar)}))"]
        return [f"add({parent}, {self.word(c)})"]
