"""What is drawn of a diagram at one time: blocks, and wires between them.

A wire is drawn from the node that it really comes from to the one where it really goes: what a box
captures, and what a frame passes on, is one curve across the border.  So a wire is known by two
ends, and whatever moves takes its wires along.

>>> from lineara.diagrams.parse import parse
>>> still = seen(parse("(x: R) => y = sin(x) -> y"), Namer())
>>> [block.label for block in still.blocks.values()], len(still.wires)
(['x1', 'v1', 'sin'], 2)
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from lineara.diagrams.adjoint import residuals
from lineara.diagrams.layout import Picture, label_of
from lineara.diagrams.names import written_at
from lineara.diagrams.net import Net, Node, Wire, every_net, line_of
from lineara.diagrams.show import show_kind
from lineara.diagrams.svg import FRAMES, Namer, look_of
from lineara.diagrams.types import show as show_type
from lineara.diagrams.types import tan


class Block(NamedTuple):
    """A node, a box around others, a frame, or an end of a wire at an interface."""

    key: str
    within: str  # the key of the box or frame that it lies in
    looks: str
    label: str
    title: str  # and, in a second line, what stands in the user's line
    ins: int
    outs: int


class End(NamedTuple):
    """Where a wire is drawn to: in (i), out (o), or what is kept for the way back (r)."""

    key: str
    side: str
    port: int


class Line(NamedTuple):
    """A wire as it is drawn."""

    key: str
    looks: str
    title: str
    source: End
    target: End
    course: tuple[int, ...]  # the ids of the wires that it is made of


class Place(NamedTuple):
    """Where a block is; `back`: what comes in comes in on the right; the heights of its ports."""

    x: float
    y: float
    width: float
    height: float
    back: bool = False
    ins: tuple[float, ...] | None = None
    outs: tuple[float, ...] | None = None


Where = tuple[Any, str, int]  # a node, or the key of an end at an interface; the side; the port
Places = Mapping[str, Place]  # by `port` and the id of a node


def port(owner: Node | None, side: str, i: int) -> str:
    """The name of an end at an interface: of a box those that it does not capture."""
    taken = len(owner.ins) if owner is not None and owner.kind == "box" and side == "i" else 0
    return f"{owner.id if owner else ''}{side}{i - taken}"


@dataclass(slots=True)
class Still:
    """What is drawn at one time, by keys; `named` has the place's name of each block."""

    blocks: dict[str, Block] = field(default_factory=dict)
    wires: dict[str, Line] = field(default_factory=dict)
    named: dict[str, str] = field(default_factory=dict)


def seen(net: Net, namer: Namer) -> Still:
    """What is drawn of a diagram, frames of a derivation and all."""
    return _Look(namer).at(net)


class _Look:
    """One look at a diagram."""

    def __init__(self, namer: Namer) -> None:
        self.namer = namer
        self.still = Still()
        self.frames: dict[Node, list[Where]] = {}  # what is kept of each frame's nodes

    def kept(self, frame: Node) -> list[Where]:
        """The residuals of a frame, in order: what each node in it keeps for the way back."""
        if frame not in self.frames:
            self.frames[frame] = [
                (node, "r", i)
                for node in frame.body.nodes.values()
                for i, _ in enumerate(residuals(node))
            ]
        return self.frames[frame]

    def at(self, net: Net) -> Still:
        """All levels that are shown: what GREEN holds in its boxes is done, and not shown."""
        self.names = self.namer.named(net)
        levels = [(net, "")]
        for n, within in levels:
            self.ends(n, within)
            for node in n.nodes.values():
                ghost = n.owner is not None and n.owner.kind == "GREEN"
                self.block(node, within, bool(node.bodies) and not ghost)
                if not ghost:
                    levels += [(b, self.key(node)) for b in node.bodies]
        for n, _ in levels:
            for w, source in self.sources(n):
                self.wire(w, source)
        return self.still

    def key(self, node: Node) -> str:
        return self.namer.key(node.id)

    def end_key(self, owner: Node | None, side: str, i: int) -> str:
        """The key of an end at an interface."""
        own = str(owner.id) if owner is not None else ""
        return f"p{self.key(owner) if owner else ''}{port(owner, side, i)[len(own) :]}"

    def put(self, block: Block, name: str) -> None:
        self.still.blocks[block.key] = block
        self.still.named[block.key] = name

    def ends(self, net: Net, within: str) -> None:
        """The ends at the border of a level, of wires that do not go on outside."""
        owner = net.owner
        if owner is not None and owner.kind in FRAMES:
            return
        first = len(owner.ins) if owner is not None and owner.kind == "box" else 0
        for side, wires, start in (("i", net.inputs, first), ("o", net.outputs, 0)):
            for i, w in list(enumerate(wires))[start:]:
                name = port(owner, side, i)
                title = f"{self.names.get(w, '')}: {show_type(w.type)}"
                looks = f"port {'from' if side == 'i' else 'to'}"
                label = self.names.get(w, "") if owner is None or side == "i" else ""
                block = Block(self.end_key(owner, side, i), within, looks, label, title, 1, 1)
                self.put(block, name)

    def block(self, node: Node, within: str, opened: bool) -> None:
        """A node, a box or a frame."""
        self.put(block_of(node, self.namer, within, opened), str(node.id))

    def wire(self, w: Wire, source: tuple[Node | str, str, int]) -> None:
        reached = self.followed(w)
        if reached is None:
            return
        (at, side, i), course = reached
        key = f"{self.namer.key(course[-1])}w"
        a, b = (
            End(n if isinstance(n, str) else self.key(n), s, p)
            for n, s, p in (source, (at, side, i))
        )
        title = title_of(w, self.names.get(w, ""))
        self.still.wires[key] = Line(key, looks_of(w, side), title, a, b, tuple(course))

    def sources(self, net: Net) -> Iterator[tuple[Wire, Where]]:
        """The wires that begin at a level, and where they are drawn from."""
        owner = net.owner
        if owner is None or owner.kind not in FRAMES:
            first = len(owner.ins) if owner is not None and owner.kind == "box" else 0
            for i, w in list(enumerate(net.inputs))[first:]:
                yield w, (self.end_key(owner, "i", i), "o", 0)
        for node in net.nodes.values():
            if node.kind == "ORANGE":
                kept = self.kept(node)
                yield from zip(node.outs[len(node.outs) - len(kept) :], kept, strict=True)
            elif node.kind == "GREEN":
                moving = [w for w in node.body.inputs if tan(w.type) is not None]
                for w, inner in zip(node.outs, moving, strict=True):
                    at, i = inner.target or (None, 0)
                    if isinstance(at, Node):
                        yield w, (at, "i", i)
            elif node.kind == "BLUE":
                yield node.outs[-1], (node, "o", len(node.outs) - 1)
            else:
                for i, w in enumerate(node.outs):
                    yield w, (node, "o", i)

    def followed(self, w: Wire) -> tuple[Where, list[int]] | None:
        """Where a wire is drawn to, across borders, and the wires that it is made of."""
        course = [w.id]
        while True:
            at, i = w.target or (None, 0)
            if at is None:
                return None
            reached = self.into_net(at, i) if isinstance(at, Net) else self.into_node(at, i)
            if not isinstance(reached, Wire):
                return None if reached is None else (reached, course)
            w = reached
            course.append(w.id)

    def into_net(self, net: Net, i: int) -> Wire | Where | None:
        """What goes on where a wire is an output of its level."""
        owner = net.owner
        if owner is None or owner.kind not in FRAMES:
            return self.end_key(owner, "o", i), "i", 0
        return None if owner.kind == "GREEN" else owner.outs[i]

    def into_node(self, node: Node, i: int) -> Wire | Where | None:
        """What goes on where a wire is an input of a node."""
        if node.kind == "GREEN":
            return self.into_green(node, i)
        ghost = node.net.owner is not None and node.net.owner.kind == "GREEN"
        if node.kind in ("box", "BLUE", "ORANGE") and not ghost:
            return node.body.inputs[i]
        return node, "i", i

    def into_green(self, node: Node, i: int) -> Wire | Where | None:
        """A residual goes to the node that it is of, a cotangent to where its value comes from."""
        kept = self.kept(node)
        if i < len(kept):
            return kept[i]
        moving = [w for w in node.body.outputs if tan(w.type) is not None]
        at, k = moving[i - len(kept)].source or (None, 0)
        if isinstance(at, Node):
            return at, "o", k
        inputs = [j for j, w in enumerate(node.body.inputs) if tan(w.type) is not None]
        return node.outs[inputs.index(k)]


def block_of(node: Node, namer: Namer, within: str, opened: bool) -> Block:
    """A node as it is drawn; one with diagrams within is `opened`, or shut."""
    looks = f"node {FRAMES.get(node.kind, node.kind)}{' around' * opened}"
    label = label_of(node)
    if node.kind in FRAMES:  # what it holds goes, and so do its ports
        return Block(namer.key(node.id), within, looks, label, node.kind, 0, 0)
    if node.bodies and not opened:
        looks += " folded"
        label += f" ⋯ {sum([len(n.nodes) for b in node.bodies for n in every_net(b)])}"
    ports = len(node.ins), len(node.outs)
    title = f"{show_kind(node)}\n{written_at(line_of(node))}".strip()
    return Block(namer.key(node.id), within, looks, label, title, *ports)


def looks_of(w: Wire, side: str) -> str:
    """The styles of a wire that goes to a side of a block."""
    return f"wire {look_of(w.type)}{' linear' * w.linear}{' kept' * (side == 'r')}"


def title_of(w: Wire, name: str) -> str:
    """What is said of a wire: its name and its type."""
    return f"{name}: {show_type(w.type)}".removeprefix(": ")


def stands(picture: Picture) -> tuple[dict[str, Place], dict[int, tuple[float, ...]]]:
    """The places and the bends of one drawing."""
    places: dict[str, Place] = {}
    for region in picture.regions:
        net = region.net
        for side, points in (("i", region.inputs), ("o", region.outputs)):
            for i, (x, y) in enumerate(points):
                places[port(net.owner, side, i)] = Place(x, y, 0, 0, region.mirrored)
    for p in picture.placed:
        back = bool(p.ins and p.outs) and p.ins[0][0] > p.outs[0][0]
        heights = [tuple([y - p.y for _, y in points]) for points in (p.ins, p.outs)]
        place = Place(p.x, p.y, p.width, p.height, back, heights[0], heights[1])
        places[str(p.node.id)] = place
    bends = {}
    for r in picture.wires:
        inner = r.points[2:-2]
        pairs = zip(inner[::2], inner[1::2], strict=True)
        bends[r.wire.id] = bent([(a, b, y) for (a, y), (b, _) in pairs])
    return places, bends


def bent(bends: Iterable[tuple[float, float, float]]) -> tuple[float, ...]:
    """The bends of a wire, from an x to an x at a height; what runs on at one height is one.

    A wire has one bend in each column that it passes, so a long one would take as much to write.

    >>> bent([(0.0, 5.0, 1.0), (8.0, 9.0, 1.0), (12.0, 13.0, 4.0)])
    (0.0, 9.0, 1.0, 12.0, 13.0, 4.0)
    """
    joined: list[tuple[float, float, float]] = []
    for start, end, y in bends:
        if joined and joined[-1][2] == y:
            joined[-1] = joined[-1][0], end, y
        else:
            joined.append((start, end, y))
    return tuple([n for bend in joined for n in bend])
