"""One drawing for a whole differentiation: each node has a cell, and what it becomes is in it.

    inputs   a b c d   outputs        forward, from left to right
           ( a'b'c'd' )               and back, in a box beneath, from right to left

A node that ORANGE or GREEN still holds stands where it will stand, so nothing has to move, and the
frame is what is around the nodes that it holds.  A level is laid out once, however many steps are
taken in it; a residual goes straight down, from a node to the way back through it.

>>> from lineara.diagrams.parse import parse
>>> d = Derivation(parse("(x: R) => y = sin(x) -> y"))
>>> fired = [(d.next, d.fire()) for _ in range(5)]
>>> places, _ = cells(d, fired)
>>> len(places) > 5
True
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from lineara.diagrams.crossing_order import Edge, Item, arrange
from lineara.diagrams.layout import HEAD, PAD, label_of, plain_item, text_width
from lineara.diagrams.moments import Moment
from lineara.diagrams.net import Net, Node, Wire, every_net, topological
from lineara.diagrams.stepper import Derivation, Pair, Redex, Step
from lineara.diagrams.still import Place, bent, port
from lineara.diagrams.types import tan

GAP = 12.0  # between rows, and between the nodes of a cell
Bends = dict[int, tuple[float, ...]]


@dataclass(slots=True)
class Area:
    """A part of the drawing, from its own upper left corner."""

    width: float = 0.0
    height: float = 0.0
    places: dict[str, Place] = field(default_factory=dict)
    bends: Bends = field(default_factory=dict)

    def take(self, other: "Area", x: float, y: float) -> None:
        """Put another part into this one."""
        for name, at in other.places.items():
            self.places[name] = at._replace(x=at.x + x, y=at.y + y)
        moved: dict[int, tuple[float, ...]] = {}
        for w, bends in other.bends.items():
            if id(bends) not in moved:
                by = (x, x, y) * (len(bends) // 3)
                moved[id(bends)] = tuple([a + b for a, b in zip(bends, by, strict=True)])
            self.bends[w] = moved[id(bends)]
        self.width = max(self.width, x + other.width)
        self.height = max(self.height, y + other.height)


def cells(d: Derivation, fired: Sequence[tuple[Redex, Step]]) -> tuple[dict[str, Place], Bends]:
    """The places of all that is ever drawn of a derivation that has ended, and the wires' bends."""
    area = _Cells(d, fired).level(d.root)
    return area.places, area.bends


def beside(places: dict[str, Place], bends: Bends, moment: Moment) -> None:
    """Places for what is new in a simplification: where it is needed, or where it came from.

    What the gradient adds to an adjoint stands on the right of it.
    """
    new_ids = {str(old): str(new) for old, new in moment.same}
    for name, at in list(places.items()):
        owner = re.split("[io]", name)[0]
        if owner in new_ids:
            places[new_ids[owner] + name[len(owner) :]] = at
    bends.update([(new, bends[old]) for old, new in moment.same if old in bends])
    nets = every_net(moment.net)
    new = [n for net in nets for n in net.nodes.values() if str(n.id) not in places]
    edge = max([p.x + p.width for p in places.values()], default=0.0)
    for i, node in enumerate(new):
        item = plain_item(node, label_of(node))
        at = places.get(str(moment.erased))
        ahead = [w.target[0] for w in node.outs if w.target and isinstance(w.target[0], Node)]
        near = next((p for n in ahead if (p := places.get(str(n.id)))), None)
        if near is not None and not node.ins:
            x = near.x + near.width + GAP if near.back else near.x - GAP - item.width
            y = near.y + (near.height - item.height) / 2 - GAP * (i % 3 - 1)
            place = Place(x, y, item.width, item.height, near.back)
        elif at is not None:
            place = Place(at.x, at.y + i * (item.height + 4), item.width, item.height, at.back)
        else:
            place = Place(edge + GAP * 2, 60.0 * i, item.width, item.height)
            edge += 0.0 if node.outs and not ahead else item.width + GAP * 2
        places[str(node.id)] = place
    for side, wires in (("i", moment.net.inputs), ("o", moment.net.outputs)):
        for i in range(len(wires)):
            if (name := f"{side}{i}") not in places:
                places[name] = Place(edge + GAP, 60.0 * (i + 1), 0, 0)


class _Cells:
    """The levels of a derivation, the inner ones when the outer ones ask for them."""

    def __init__(self, d: Derivation, fired: Sequence[tuple[Redex, Step]]) -> None:
        self.d = d
        self.pairs = {id(p.box.net): p for p in d.pairs}
        self.made: dict[tuple[int, str, int], list[Node]] = {}
        self.frames: dict[tuple[int, str], int] = {}
        nodes = {n.id: n for net in every_net(d.root) for n in net.nodes.values()}
        for redex, step in fired:
            pair, kind = redex.frame.pair.number, redex.frame.kind
            self.frames[pair, kind] = redex.frame.id
            if redex.node is not None:
                self.made[pair, kind, redex.node.id] = [nodes[i] for i in step.made]

    # --- levels --------------------------------------------------------------------------------

    def level(self, net: Net) -> Area:
        """A level: a body on its way forward, and beneath it the box of its way back."""
        pair = self.pairs.get(id(net))
        if pair is None:
            return self.free(net)
        rows = _Rows(self, pair)
        area = Area()
        left = _names_width(net, pair)
        area.take(rows.ahead, left, 0.0)
        width = left + rows.ahead.width + PAD
        below = rows.ahead.height + GAP * 2
        box = self.box(pair, rows)
        area.take(box, max(0.0, left - box.places[str(pair.box.id)].x - PAD), below)
        area.width = max(area.width, width)
        self.borders(area, net, rows.first, rows.last, left, below + HEAD)
        return area

    def borders(
        self, area: Area, net: Net, ins: list[float], outs: list[float], left: float, back: float
    ) -> None:
        """The ends at the interface of a level on its way forward."""
        captured = len(net.owner.ins) if net.owner is not None else 0
        for i in range(captured, len(net.inputs)):
            area.places[port(net.owner, "i", i)] = Place(
                left - 10 if net.owner is None else 0.0, ins[i] if i < len(ins) else back, 0, 0
            )
        for i in range(len(net.outputs)):
            y = outs[i] if i < len(outs) else back
            outside = 24.0 if net.owner is None else 0.0
            area.places[port(net.owner, "o", i)] = Place(area.width + outside, y, 0, 0)

    def box(self, pair: Pair, rows: "_Rows") -> Area:
        """The box of a way back: what bundles the cotangents stands where they leave."""
        body = pair.box.body
        row = {
            n.id
            for (p, kind, _), ns in self.made.items()
            if (p, kind) == (pair.number, "GREEN")
            for n in ns
        }
        rest = self.cluster([n for n in body.nodes.values() if n.id not in row], True)
        area = Area()
        x = PAD + (rest.width + GAP if rest.width else 0.0)
        area.take(rest, PAD, HEAD + PAD)
        area.take(rows.back, x, HEAD)
        area.width, area.height = area.width + PAD, area.height + PAD
        moving = [y for y, w in zip(rows.back_last, pair.f.outputs, strict=True) if tan(w.type)]
        bound = len(body.inputs) - (len(pair.box.ins) if pair.has_captures else 0)
        for i in range(bound):
            y = moving[i] + HEAD if i < len(moving) else HEAD + PAD * (i + 1)
            area.places[f"{pair.box.id}i{i}"] = Place(area.width, y, 0, 0, True)
        sent = [y for y, w in zip(rows.back_first, pair.f.inputs, strict=True) if tan(w.type)]
        for i in range(len(body.outputs)):
            y = sent[i] + HEAD if len(sent) == len(body.outputs) else HEAD + PAD * (i + 1)
            area.places[f"{pair.box.id}o{i}"] = Place(0.0, y, 0, 0, True)
        area.places[str(pair.box.id)] = Place(0, 0, area.width, area.height)
        return area

    def free(self, net: Net) -> Area:
        """A level that nothing is differentiated in."""
        inner = self.cluster([*net.nodes.values()])
        area = Area()
        area.take(inner, PAD * 1.5, PAD / 2)
        area.width, area.height = area.width + PAD * 1.5, max(area.height + PAD / 2, PAD * 2)
        captured = len(net.owner.ins) if net.owner is not None and net.owner.kind == "box" else 0
        for side, wires, start, x in (
            ("i", net.inputs, captured, 0.0), ("o", net.outputs, 0, area.width),
        ):  # fmt: skip
            n = len(wires) - start
            for i in range(start, len(wires)):
                y = area.height * (i - start + 1) / (n + 1)
                area.places[port(net.owner, side, i)] = Place(x, y, 0, 0)
        return area

    # --- nodes ---------------------------------------------------------------------------------

    def node(self, node: Node, back: bool = False) -> Area:
        """A node, around its levels if it has some."""
        if not node.bodies:
            item = plain_item(node, label_of(node))
            place = Place(0, 0, item.width, item.height, back)
            return Area(item.width, item.height, {str(node.id): place})
        area = Area(width=text_width(label_of(node), 11) + 16)
        y = HEAD
        for body in node.bodies:
            area.take(self.level(body), PAD, y + PAD / 2)
            y = area.height
        area.width, area.height = area.width + PAD, area.height + PAD / 2
        for body in node.bodies:  # the ends of wires stand at the border itself
            for side, wires, x in (("i", body.inputs, 0.0), ("o", body.outputs, area.width)):
                for i in range(len(wires)):
                    at = area.places.get(name := port(node, side, i))
                    if at is not None:
                        area.places[name] = at._replace(x=x)
        area.places[str(node.id)] = Place(0, 0, area.width, area.height, back)
        return area

    def cluster(self, nodes: Sequence[Node], back: bool = False) -> Area:
        """Nodes in columns, each after those that it takes from; from the right if `back`."""
        ids = {n.id for n in nodes}
        depth: dict[int, int] = {}
        for n in _in_order(nodes):
            before = [w.source[0].id for w in n.ins if w.source and isinstance(w.source[0], Node)]
            depth[n.id] = 1 + max([depth[i] for i in before if i in ids], default=-1)
        columns: list[list[Area]] = [[] for _ in range(1 + max(depth.values(), default=-1))]
        for n in nodes:
            columns[depth[n.id]].append(self.node(n, back))
        if back:
            columns.reverse()
        area, x = Area(), 0.0
        tall = max([sum([a.height + GAP for a in c]) - GAP for c in columns], default=0.0)
        for column in columns:
            width = max([a.width for a in column])
            y = (tall - sum([a.height + GAP for a in column]) + GAP) / 2
            for a in column:
                area.take(a, x + (width - a.width) / 2, y)
                y += a.height + GAP
            x += width + GAP * 1.5
        return area

    def ghost(self, pair: Pair, id: int) -> int:
        """The id under which GREEN's node is drawn."""
        return self.d.ghosts.get((self.frames.get((pair.number, "GREEN"), 0), id), id)


class _Rows:
    """A body twice: forward, and back, with the same columns."""

    def __init__(self, cells: _Cells, pair: Pair) -> None:
        self.cells, self.pair = cells, pair
        f = pair.f
        order = topological(f)
        ahead = {n.id: self.cell(n, "ORANGE") for n in order}
        back = {n.id: self.cell(n, "GREEN") for n in order}
        wide = {i: max(a.width, back[i].width) for i, a in ahead.items()}
        self.ahead, self.first, self.last, columns = self.row(order, ahead, wide, None)
        self.back, self.back_first, self.back_last, _ = self.row(order, back, wide, columns)

    def cell(self, node: Node, kind: str) -> Area:
        """What a node becomes in one of the rows, and the node itself before that."""
        area, back = Area(), kind == "GREEN"
        made = self.cells.cluster(self.cells.made.get((self.pair.number, kind, node.id), ()), back)
        item = plain_item(node, label_of(node))
        if back:
            if node.bodies:
                item = Item(text_width("λ ⋯ 999") + 14, 24.0)
            name = str(self.cells.ghost(self.pair, node.id))
        else:
            name = str(node.id)
        if node.kind == "box" and not back:  # what is within it stands where it will stand
            (outer,) = self.cells.made[self.pair.number, kind, node.id]
            area.take(made, 0.0, 0.0)
            area.places[name] = made.places[str(outer.id)]
            ends = [(s, i) for s in "io" for i in range(len(node.body.inputs + node.body.outputs))]
            for side, i in ends:
                if (at := made.places.get(f"{outer.id}{side}{i}")) is not None:
                    area.places[f"{name}{side}{i}"] = at
            return area
        width, height = max(item.width, made.width), max(item.height, made.height)
        area.take(made, (width - made.width) / 2, (height - made.height) / 2)
        x, y = (width - item.width) / 2, (height - item.height) / 2
        area.places[name] = Place(x, y, item.width, item.height)
        area.width, area.height = width, height
        return area

    def row(
        self,
        order: Sequence[Node],
        areas: Mapping[int, Area],
        wide: Mapping[int, float],
        columns: Mapping[int, float] | None,
    ) -> tuple[Area, list[float], list[float], dict[int, float]]:
        """The cells of one way; the heights of the ends; the columns, those given or its own."""
        f = self.pair.f
        items: dict[int, Item] = {}
        for n in order:
            h = areas[n.id].height
            items[n.id] = Item(wide[n.id], h, _spread(len(n.ins), h), _spread(len(n.outs), h))
        first = [Item(10.0, 4.0, (), (2.0,)) for _ in f.inputs]
        last = [Item(10.0, 4.0, (2.0,), ()) for _ in f.outputs]
        ends: dict[Wire, list[tuple[Item, int]]] = {}
        for w, i in zip(f.inputs, first, strict=True):
            ends[w] = [(i, 0)]
        for n in order:
            for i, w in enumerate(n.ins):
                ends[w].append((items[n.id], i))
            for i, w in enumerate(n.outs):
                ends[w] = [(items[n.id], i)]
        for w, i in zip(f.outputs, last, strict=True):
            ends[w].append((i, 0))
        edges = {w: Edge(*a, *b) for w, (a, b) in ends.items()}
        drawing = arrange(first, [*items.values()], last, [*edges.values()])
        area = Area(drawing.width, drawing.height)
        starts: dict[int, float] = {}
        for item in (*first, *items.values(), *last):
            starts.setdefault(item.layer, item.column[0])
        shift = {k: (columns or starts).get(k, x) - x for k, x in starts.items()}
        for n in order:
            item = items[n.id]
            inner = areas[n.id]
            x = item.x + shift[item.layer] + (item.width - inner.width) / 2
            area.take(inner, x, item.y + (item.height - inner.height) / 2)
        for w, e in edges.items():
            self.bend(area, w, e, shift, columns is not None)
        if columns is not None and last:
            area.width = drawing.width + shift[last[0].layer]
        heights = [[i.y + 2 for i in some] for some in (first, last)]
        return area, heights[0], heights[1], starts

    def bend(self, area: Area, w: Wire, e: Edge, shift: Mapping[int, float], back: bool) -> None:
        """The bends of a wire of the body, and of the wire that it becomes."""
        if not e.bends:
            return
        moved = [(b.column, shift[b.layer], b.y) for b in e.bends]
        bends = [(a + by, b + by, y) for (a, b), by, y in moved]
        there = self.cells.d.became.get((self.pair.number, "GREEN" if back else "ORANGE", w.id))
        along = bent(bends)
        name = self.cells.ghost(self.pair, w.id) if back else w.id
        turned = bent([(b, a, y) for a, b, y in reversed(bends)])
        area.bends[name] = along
        if there is not None:
            area.bends[there] = turned if back else along


def _spread(n: int, height: float) -> list[float]:
    return [height * (i + 1) / (n + 1) for i in range(n)]


def _in_order(nodes: Sequence[Node]) -> Iterable[Node]:
    """Nodes of one level, each after those that it takes from."""
    left = {n.id: n for n in nodes}
    while left:
        ready = [
            n for n in left.values()
            if not any([w.source and getattr(w.source[0], "id", 0) in left for w in n.ins])
        ]  # fmt: skip
        for n in ready:
            yield n
            del left[n.id]


def _names_width(net: Net, pair: Pair) -> float:
    """Room for the names of inputs, which stand outside."""
    return 60.0 if net.owner is None and net.inputs else PAD


__all__ = ["Area", "cells"]
