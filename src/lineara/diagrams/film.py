"""A rewriting as differences: what is drawn after a step is what was drawn before, and a little.

>>> from lineara.diagrams.parse import parse
>>> from lineara.diagrams.still import seen
>>> from lineara.diagrams.svg import Namer
>>> film, net = Film(), parse("(x: R) => y = sin(x) -> y")
>>> [len(part) for part in film.then(seen(net, Namer()))]
[3, 0, 2, 0]
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from lineara.diagrams.still import Block, End, Line, Place, Places, Still

Bends = Mapping[int, tuple[float, ...]]  # of a wire: from x to x at the height y, and again


class Change(NamedTuple):
    """What is not as it was before: new blocks and wires, and the keys of those that are gone."""

    put: list[tuple[Block, str, Place | None]]
    gone: list[str]
    wire: list[tuple[Line, tuple[float, ...] | None]]
    cut: list[str]


class Film:
    """The differences between stills, one after the other.

    Places that are known only when all has been seen are given to `written`, the same for a block
    as long as it is there; those of one still are given with it.
    """

    def __init__(self) -> None:
        self.blocks: dict[str, tuple[Block, str, Place | None]] = {}
        self.wires: dict[str, tuple[Line, tuple[float, ...] | None]] = {}
        self.ends: dict[End, str] = {}  # which wire ends there
        self.ports: dict[str, set[End]] = {}  # of a block

    def then(
        self, still: Still, places: Places | None = None, bends: Bends | None = None
    ) -> Change:
        """The difference from the still before."""
        names, at = still.named, places or {}
        known = {(w.source, w.target): k for k, (w, _) in self.wires.items()}
        same = [(known.get((w.source, w.target), k), w) for k, w in still.wires.items()]
        still = Still(still.blocks, {k: w._replace(key=k) for k, w in same}, names)
        blocks = {k: (b, names[k], at.get(names[k])) for k, b in still.blocks.items()}
        wires = {
            k: (w, None if bends is None else _bent(w.course, bends))
            for k, w in still.wires.items()
        }
        change = Change(
            [b for k, b in blocks.items() if self.blocks.get(k) != b],
            [k for k in self.blocks if k not in blocks],
            [w for k, w in wires.items() if self.wires.get(k) != w],
            [k for k in self.wires if k not in wires],
        )
        self.blocks, self.wires = blocks, wires
        self.ends = {end: k for k, (w, _) in wires.items() for end in (w.source, w.target)}
        self.ports = {}
        for end in self.ends:
            self.ports.setdefault(end.key, set()).add(end)
        return change

    def at_block(self, key: str) -> dict[End, Line]:
        """The wires at a block, by their ends there."""
        return {end: self.wires[self.ends[end]][0] for end in self.ports.get(key, ())}

    def step(
        self, gone: str, made: list[tuple[Block, str]], before: dict[End, Line], new: list[Line]
    ) -> Change:
        """The difference where a block goes, with the wires `before`, and others come instead."""
        there = {b.key for b, _ in made}
        for old in before.values():
            self.wires.pop(old.key, None)
            for end in (old.source, old.target):
                self.ends.pop(end, None)
                self.ports[end.key].discard(end)
        self.blocks.pop(gone)
        for b, name in made:
            self.blocks[b.key] = b, name, None
        for w in new:
            self.wires[w.key] = w, None
            for end in (w.source, w.target):
                self.ends[end] = w.key
                self.ports.setdefault(end.key, set()).add(end)
        kept = {w.key for w in new}
        cut = [k for k in dict.fromkeys([w.key for w in before.values()]) if k not in kept]
        return Change(
            [(b, name, None) for b, name in made],
            [] if gone in there else [gone],
            [(w, None) for w in new],
            cut,
        )


def written(change: Change, places: Places, bends: Bends) -> dict[str, list[Any]]:
    """A change as a page reads it.

    put     [key, within, looks, label, title, ins, outs, x, y, width, height, back, heights of
            ins, heights of outs], of a frame, which is around what it holds, without its place
    wire    [key, looks, title, [key, side, port], [key, side, port], bends]
    """
    return {
        "put": [_block(b, at or places.get(name)) for b, name, at in change.put],
        "gone": change.gone,
        "wire": [_line(w, _bent(w.course, bends) if at is None else at) for w, at in change.wire],
        "cut": change.cut,
    }


def _bent(course: tuple[int, ...], bends: Bends) -> tuple[float, ...]:
    """The bends of a wire that is made of others; some of these have the same ones."""
    by_id = {id(bends[i]): bends[i] for i in course if i in bends}
    return tuple([n for of_one in by_id.values() for n in of_one])


def _block(b: Block, at: Place | None) -> list[Any]:
    if at is None:
        return [*b]
    heights = [None if h is None else [*map(short, h)] for h in (at.ins, at.outs)]
    made = [*b, *map(short, at[:4]), int(at.back), *heights]
    while made[-1] is None:
        made.pop()
    return made


def _line(w: Line, bends: tuple[float, ...]) -> list[Any]:
    made: list[Any] = [w.key, w.looks, w.title, [*w.source], [*w.target]]
    return [*made, [*map(short, bends)]] if bends else made


def short(x: float) -> float:
    """A coordinate: at most one digit behind the point."""
    rounded = round(x, 1)
    return int(rounded) if rounded == int(rounded) else rounded
