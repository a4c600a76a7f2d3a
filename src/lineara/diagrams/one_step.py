"""What one step of a differentiation changes in the drawing, found at the node that left its frame.

A node leaves ORANGE or GREEN for what stands outside: the wires at its ports end at other nodes
now, and nothing else has changed.  So a step costs what it touches, whatever the size of the
diagram.  Steps that split or end a frame, and those of boxes, are looked at as a whole
(`still.seen`), and a test compares the two after every step.
"""

from typing import NamedTuple

from lineara.diagrams.film import Change, Film
from lineara.diagrams.net import Node, Wire
from lineara.diagrams.stepper import Derivation, Frame, Redex, Step
from lineara.diagrams.still import End, Line, block_of, looks_of, title_of
from lineara.diagrams.svg import Namer


class Leaving(NamedTuple):
    """A node that is about to leave a frame, and the wires that wait for it there."""

    frame: Frame
    node: Node
    waiting: tuple[Wire | None, ...]

    @classmethod
    def of(cls, redex: Redex) -> "Leaving | None":
        """What leaves by a step; None for a step that is to be looked at as a whole."""
        frame, node = redex.frame, redex.node
        if node is None or node.bodies or node.kind == "scan":
            return None
        ports = node.ins if frame.kind == "ORANGE" else node.outs
        return cls(frame, node, tuple([frame.front[w] for w in ports]))


def left(film: Film, d: Derivation, leaving: Leaving, step: Step, namer: Namer) -> Change:
    """The change of a step at a node without bodies; the film is after it then."""
    return _Left(film, d, leaving, step, namer).change()


class _Left:
    """One step."""

    def __init__(
        self, film: Film, d: Derivation, leaving: Leaving, step: Step, namer: Namer
    ) -> None:
        self.film, self.namer = film, namer
        self.frame, self.node, self.waiting = leaving
        self.ahead = self.frame.kind == "ORANGE"
        id = self.node.id
        self.key = namer.key(id if self.ahead else d.ghosts[self.frame.id, id])
        self.made = [self.frame.net.nodes[i] for i in step.made]
        self.origin: dict[int, End] = {}  # where wires come from that were there before
        self.new: list[Line] = []

    def change(self) -> Change:
        """The blocks and wires that are new, and those that are gone."""
        film, owner = self.film, self.frame.net.owner
        before = film.at_block(self.key)
        within = self.namer.key(owner.id) if owner else ""
        if self.ahead:
            self.forward(before)
        else:
            self.back(before)
        for node in self.made:
            for i, w in enumerate(node.outs):
                at, port = w.target or (None, 0)
                if at in self.made:
                    key = f"{self.namer.key(w.id)}w"
                    ends = (
                        End(self.namer.key(node.id), "o", i),
                        End(self.namer.key(at.id), "i", port),
                    )
                    self.line(key, w, *ends)
        blocks = [(block_of(n, self.namer, within, False), str(n.id)) for n in self.made]
        return film.step(self.key, blocks, before, self.new)

    def line(self, key: str, w: Wire, source: End, target: End) -> None:
        title = title_of(w, self.namer.name(w, "v"))
        self.new.append(Line(key, looks_of(w, target.side), title, source, target, (w.id,)))

    def again(self, old: Line, w: Wire, source: End, target: End) -> None:
        """A wire that was there, with another end."""
        course = (w.id, *old.course) if target == old.target else (w.id,)
        title = old.title if source == old.source else title_of(w, self.namer.name(w, "v"))
        self.new.append(Line(old.key, looks_of(w, target.side), title, source, target, course))

    def end(self, w: Wire) -> End | None:
        """Where a wire that was there goes now."""
        at, port = w.target or (None, 0)
        return End(self.namer.key(at.id), "i", port) if at in self.made else None

    def source(self, w: Wire) -> End:
        """Where a wire comes from."""
        if w.id in self.origin:
            return self.origin[w.id]
        assert w.source is not None, "a wire that a rule made has a source"
        return End(self.namer.key(w.source[0].id), "o", w.source[1])

    def forward(self, before: dict[End, Line]) -> None:
        """Out of ORANGE: what comes in, what goes out, and what is kept for the way back."""
        pair, node = self.frame.pair, self.node
        for i, w in enumerate(self.waiting):
            old = before.get(End(self.key, "i", i))
            if old and w is not None and (target := self.end(w)):
                self.again(old, w, old.source, target)
        for (side, i), w in {
            **{("o", i): self.frame.front[w] for i, w in enumerate(node.outs)},
            **{("r", k): w for (n, k), w in self.kept(pair.outside)},
        }.items():
            old = before.get(End(self.key, side, i))
            if old and w is not None:
                self.again(old, w, self.source(w), old.target)

    def kept(self, wires: dict[tuple[int, int], Wire]) -> list[tuple[tuple[int, int], Wire]]:
        """The residuals of the node."""
        residuals, k = [], 0
        while (key := (self.node.id, k)) in wires:
            residuals.append((key, wires[key]))
            k += 1
        return residuals

    def back(self, before: dict[End, Line]) -> None:
        """Out of GREEN: cotangents and residuals come in, and other cotangents go on."""
        waiting = {("o", i): w for i, w in enumerate(self.waiting)}
        waiting |= {("r", k): w for (_, k), w in self.kept(self.frame.pair.within)}
        for (side, i), w in waiting.items():
            old = before.get(End(self.key, side, i))
            if old is None or w is None:
                continue
            self.origin[w.id] = old.source
            if target := self.end(w):
                self.again(old, w, old.source, target)
        for i, v in enumerate(self.node.ins):
            old, w = before.get(End(self.key, "i", i)), self.frame.front[v]
            if old is not None and w is not None:
                target = old.source if old.source.key != self.key else old.target
                self.again(old, w, self.source(w), target)


__all__ = ["Leaving", "left"]
