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

from collections import Counter
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
from lineara.ops.branchless_where import select
from lineara.tape.contributions import add
from lineara.tape.sketches import Draft, Sketch, Step, Unplanned, pulled
from lineara.tape.strides import repeated

INFIX = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/"}
_TAME = (Elementwise, Structural, Multilinear, Constant)  # kinds that do not raise
_TAME_NAMES = {"sum", "cumsum", "where", "keep"}


class Code(NamedTuple):
    """What runs: `pull(parents, values, g)` in the sweep, and `keep(*values)` at the call."""

    pull: Callable[..., None]
    keep: Callable[..., tuple] | None
    reads: frozenset[str]  # the leaves that either reads


def written_out(draft: Draft, leaves: Sequence[Sketch], out: Sketch, composed: bool) -> Code:
    """The code of the way back of what a draft holds.

    Of a composition the value is calculated too, since NumPy's is another function's.
    """
    draft.inside = True  # what is written down from here on belongs to the way back
    _check_order(draft, out.name)
    ends = pulled(draft.moves, out.name, draft.sketch("g", out.t))
    of_g = {"g"}
    for s in draft.steps:
        if any([a.name in of_g for a in sketches_in(s.args)]):
            of_g.add(s.out)
    read = [s.name for _, c in ends for s in sketches_in(c)]
    needed = _needed(draft.steps, read, stop=out.name)
    early = [s for s in draft.steps if s.out in needed and s.out not in of_g]
    at_call = {s.out for s in early} if not all([_is_tame(s.primitive) for s in early]) else set()
    if composed:
        if out.name in {s.name for s in leaves}:
            raise Unplanned("the result is an argument")
        at_call |= {s.out for s in draft.program if s.out in needed}
        at_call |= _needed(draft.steps, [out.name], stop="")
    at_call |= _needed(draft.steps, list(at_call), stop="" if composed else out.name)
    late = [s for s in draft.steps if s.out in needed and s.out not in at_call]
    taken = {a.name for s in late for a in sketches_in(s.args)}.union(read)
    kept = [name for name in sorted(at_call - {out.name}) if name in taken]

    writer = _Writer({} if composed else {out.name: "y"})
    y = writer.word(out)
    moving = [s.name for s in leaves if s.moves]
    lines = [", ".join([*[f"p{i}" for i in range(len(moving))], "= parents"])]
    lines.append(", ".join([*[s.name for s in leaves], y, *kept, "= values"]))
    lines += [] if out.t.shape else ["g = np.float64(g)"]
    lines += [writer.line(s) for s in late]
    for name, c in ends:
        lines += writer.given(f"p{moving.index(name)}", leaves[int(name[1:])], c)
    text = "\n    ".join(["def pull(parents, values, g):", *lines])
    if at_call:
        head = ", ".join([*[s.name for s in leaves], "value" if composed else y])
        before = [s for s in draft.steps if s.out in at_call]
        taken |= {a.name for s in before for a in sketches_in(s.args)}
        lines = [writer.line(s) for s in before]
        result = ", ".join([y, *kept, ""])
        text += "\n    ".join([f"\ndef keep({head}):", *lines, f"return {result}\n"])
    exec(compile(text, "<lineara plan>", "exec"), writer.scope)
    return Code(writer.scope["pull"], writer.scope.get("keep"), frozenset(taken))


def _check_order(draft: Draft, out: str) -> None:
    """Refuse several contributions to what is read through views: they are summed by turns.

    A sweep adds what has arrived at views when it is the turn of the array that they show.
    """
    reached, uses, seen = {out}, Counter(), set()
    for move in reversed(draft.moves):
        if move.out in reached:
            reached.update(move.parents)
            uses.update(move.parents)
            if move.is_view:
                seen.update(move.parents)
    if any([uses[name] > 1 for name in seen]):
        raise Unplanned("views of an argument have their turn in the sweep")


def sketches_in(value: Any) -> list[Sketch]:
    """The sketches in arguments, or in a contribution to a cotangent."""
    if isinstance(value, Sketch):
        return [value]
    return [s for v in value for s in sketches_in(v)] if isinstance(value, tuple) else []


def _needed(steps: Sequence[Step], names: Sequence[str], stop: str) -> set[str]:
    """The steps from which values come, where that of `stop` is known."""
    known = {s.out: s for s in steps}
    needed: set[str] = set()
    todo = list(names)
    while todo:
        name = todo.pop()
        if name in known and name != stop and name not in needed:
            needed.add(name)
            todo += [a.name for a in sketches_in(known[name].args)]
    return needed


def _is_tame(primitive: Primitive) -> bool:
    return isinstance(primitive, _TAME) or primitive.name in _TAME_NAMES


class _Writer:
    """Writes steps as lines, and keeps what the lines mention."""

    def __init__(self, names: dict[str, str]) -> None:
        self.names = names
        self.scope: dict[str, Any] = {"add": add, "Outer": Outer, "Piece": Piece, "np": np}
        self.scope |= {"select": select, "repeated": repeated, "new": tuple.__new__}

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
        arrays = any([a.t.shape for a in sketches_in(step.args)])
        text = primitive.text(*words, **options) if arrays else None
        if text is None:
            own = type(primitive).evaluate is Primitive.evaluate
            call = getattr(np, primitive.name) if own else partial(primitive.evaluate, np)
            named = [f"{name}={word}" for name, word in options.items()]
            text = f"{self.constant(call)}({', '.join([*words, *named])})"
        return f"{out} = {text}"

    def given(self, parent: str, leaf: Sketch, c: Any) -> list[str]:
        """A contribution to the cotangent of a parent."""
        if isinstance(c, Sketch) and leaf.t.shape:
            return [
                f"h = {parent}.g",
                f"{parent}.g = {self.word(c)} if h is None else h + {self.word(c)}",
            ]
        if isinstance(c, Outer):
            return [f"add({parent}, new(Outer, ({self.word(c.u)}, {self.word(c.v)})))"]
        if isinstance(c, Piece):
            if sketches_in(c.at):
                raise Unplanned("positions are not known")
            return [f"add({parent}, Piece({self.constant(c.at)}, {self.word(c.x_bar)}))"]
        return [f"add({parent}, {self.word(c)})"]
