"""Values in the one lane of a vmap: formals of what it writes, with the values that they stand for.

What a test compares is what has been written so far, batched over that lane and run.

Loaded under a name that Lineara takes for its own, as `lifting.py` is.
"""

import threading
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from lineara.facts.types import type_of
from lineara.linear_a.program import Program
from lineara.linear_a.rules_as_text import closed
from lineara.linear_a.syntax import Binding, Block, Def, Ret, Var, reads
from lineara.passes.batch import over_lanes
from lineara.staging.definitions import needed
from lineara.staging.run_on_tape import play
from lineara.staging.staged_arrays import as_box
from lineara.staging.staged_level import StagedLevel, seen
from lineara.tape.levels import outside, threads
from lineara.tape.node import Scalar, Traced
from lineara.tape.strides import Doubtful, laid_out


class Lane:
    """What was lifted into the lane of an open vmap, and which checks it has passed."""

    def __init__(self, level: StagedLevel) -> None:
        self.level = level
        self.out = level.out
        self.known_values: dict[Var, Any] = {}  # of what was lifted, or has been run
        self.known: list[Binding] = []  # as they were last seen
        self.at: dict[Var, int] = {}  # where among these a variable is bound
        self.checks: list[int] = []  # which of these may raise, and were not run

    def lifted(self, value: Any) -> Any:
        """A plain value, as one that depends on the lane."""
        like = seen(value)
        formal = self.out.fresh("x", like.type)
        self.known_values[formal] = value
        return self.level.given(formal, like)

    def values(self, nodes: Sequence[Any]) -> list[Any]:
        """The values that nodes have in the lane."""
        level = self.level
        still = [n.now() for n in nodes]
        boxes = [as_box(level, level.entered(s)) if isinstance(s, Traced) else None for s in still]
        rows = iter(self._run([b.var for b in boxes if b is not None]))
        pairs = zip(nodes, still, boxes, strict=True)
        return [_as_plain(n, s if b is None else next(rows)) for n, s, b in pairs]

    def _needed(self, results: Sequence[Var]) -> list[Binding]:
        """What results need, and every check that was not run; which counts as run from now on."""
        bindings = self.out.bindings
        first = len(self.known)
        if first and (len(bindings) < first or bindings[first - 1] is not self.known[-1]):
            self.known, self.at, self.checks, first = [], {}, [], 0
        for i, b in enumerate(bindings[first:], first):
            self.at |= dict.fromkeys(b.vars, i)
            self.checks += [i] * self.level.shared.stays(b)
        self.known += bindings[first:]
        needed: set[int] = set()
        left = [*self.checks, *self._unknown(results)]
        self.checks = []
        while left:
            i = left.pop()
            if i not in needed:
                needed.add(i)
                left += self._unknown(reads(bindings[i]))
        return closed([bindings[i] for i in sorted(needed)], (), results, lambda b: True)

    def _unknown(self, variables: Iterable[Var]) -> list[int]:
        """Where those are bound that have not been run."""
        return [self.at[v] for v in variables if v in self.at and v not in self.known_values]

    def _run(self, results: Sequence[Var]) -> list[Any]:
        """What variables are over the lane; what Python's arithmetic raises comes out, once."""
        level = self.level
        bindings = self._needed(results)
        read = dict.fromkeys([*[v for b in bindings for v in reads(b)], *results])
        known = self.known_values
        given = {v: np.asarray(known[v])[None] for v in read if v in known}
        beside = {v: x for v, x in level.beside if v in read}
        body = Block(tuple(bindings), Ret(tuple(results)))
        types = tuple([v.type for v in results])
        name = level.name_of_definition("lane")
        made = Def(name, (*given, *beside), types, (), body)
        shared = level.shared
        program = needed(Program(shared.types, {**shared.defs, name: made}), name)
        axes = (*[0] * len(given), *[None] * len(beside))
        with outside():
            program, name, _ = over_lanes(program, name, axes, 1)
            rows = play(program, {}, name, [*given.values(), *beside.values()])
        values = [row[0] for row in rows]
        self.known_values |= dict(zip(results, values, strict=True))
        return values


def _as_plain(node: Any, value: Any) -> Any:
    """A value in the lane as the type of number that a node stands for, or lying as it lies."""
    if issubclass(type(node), Scalar):
        number = type_of(value).dtype.type(value)
        return number.item() if node.weak else number
    lay = node.lay
    return np.array(value) if isinstance(lay, Doubtful) else laid_out(np.asarray(value), lay)


class _Open(threading.local):
    """The lane that was asked for last, in each thread."""

    lane: Lane | None = None


_open = _Open()


def lane() -> Lane | None:
    """The lane of the vmap whose function runs; None where there is none, or inside of another."""
    level = threads.open[0] if len(threads.open) == 1 else None
    if not isinstance(level, StagedLevel) or level.inner is not None:
        return None
    if _open.lane is None or _open.lane.out is not level.out:
        _open.lane = Lane(level)
    return _open.lane


def settle() -> None:
    """Let what Python's arithmetic raises come out now."""
    found = lane()
    if found is not None:
        found._run(())


def close() -> None:
    """Settle, and leave nothing for the vmap itself to run."""
    settle()
    found = lane()
    if found is not None:
        found.out.bindings.clear()
