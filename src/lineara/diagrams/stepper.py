"""Differentiation one local step at a time, in any order  [Diagrams].

A step erases one node of a frame, or a frame:

    blue    BLUE[f] becomes ORANGE[f] and a box with GREEN[f]
    O-kind  a node whose inputs are all there leaves ORANGE; O-id: nothing is left, wires are joined
    G-kind  a node whose outputs are all there leaves GREEN; G-id likewise

Steps at different nodes commute, so every order ends in the same diagram, that of `adjoint`, after
2 * nodes + 3 * (boxes + 1) steps.  A frame is a view of a diagram that nobody changes: which nodes
have left, and where its frontier is.  So a step touches a node and its wires, whatever the size.

>>> from lineara.diagrams.parse import parse
>>> d = Derivation(parse("(x: R) => y = sin(x) -> y"))
>>> [step.rule for step in d.steps()]
['blue', 'O-op', 'O-id', 'G-op', 'G-id']
"""

import heapq
import random
from collections.abc import Iterator
from typing import Any, NamedTuple

from lineara.diagrams.adjoint import backward, bundled, forward, residuals
from lineara.diagrams.net import Meter, Net, Node, Wire, Wires, fresh_id, line_of
from lineara.diagrams.node_kinds import back
from lineara.diagrams.refuse import refusing
from lineara.diagrams.types import Type, hat, tan
from lineara.errors import DiagramError
from lineara.facts.gc_pause import uncollected


class Step(NamedTuple):
    """One line of the log: the rule that fired, where, and the nodes that it made."""

    number: int
    rule: str
    path: tuple[int, ...]  # the ids of the nodes around the frame, from the outside
    node: int  # the id of the node that was erased; of the frame, where that is what changed
    made: tuple[int, ...]  # the ids of the nodes that are new


class Pair:
    """ORANGE and GREEN of one body, and the box between them whose captures are the residuals.

    A residual is known by (node, place); its wires are made when one of the sides gets there.
    """

    def __init__(self, number: int, f: Net, packed: int | None) -> None:
        self.number = number
        self.f = f
        self.packed = packed
        self.box: Any = None  # between the sides, once BLUE is split
        self.back: Any = None  # the wire of the back-propagator
        self.split = False
        self.has_captures = False  # whether the captures of the box are in place
        self.outside: dict[tuple[int, int], Wire] = {}
        self.within: dict[tuple[int, int], Wire] = {}

    def residuals(self) -> Iterator[tuple[tuple[int, int], Type]]:
        """The residuals in order, with their types."""
        for node in self.f.nodes.values():
            for i, t in enumerate(residuals(node)):
                yield (node.id, i), t


class Frame:
    """BLUE, ORANGE or GREEN: a body of which some nodes have left."""

    def __init__(self, kind: str, pair: Pair, net: Net) -> None:
        self.kind = kind
        self.pair = pair
        self.net = net
        self.id: int = Node(net, kind).id
        self.left: int = len(pair.f.nodes)
        self.gone: set[int] = set()
        self.missing: dict[int, int] = {}  # how many of the wires that a node waits for
        self.front: dict[Wire, Wire | None] = {}  # wires of the body and what they are outside
        self.ends: dict[Wire, Wire | None] = {}  # of the interface that is reached at the end

    def __repr__(self) -> str:
        return f"{self.kind}#{self.id}"


class Redex(NamedTuple):
    """A place where a rule can fire: a frame, and a node in it unless the frame itself changes."""

    order: tuple[int, int, int]
    rule: str
    frame: Frame
    node: Node | None


class _Open:
    """The redexes: the first, or any, in constant or logarithmic time."""

    def __init__(self) -> None:
        self.at: dict[tuple[int, int, int], int] = {}
        self.items: list[Redex] = []
        self.heap: list[tuple[tuple[int, int, int], int]] = []

    def add(self, r: Redex) -> None:
        self.at[r.order] = len(self.items)
        self.items.append(r)
        heapq.heappush(self.heap, (r.order, 0))

    def take(self, order: tuple[int, int, int]) -> Redex:
        i = self.at.pop(order)
        redex, last = self.items[i], self.items.pop()
        if last is not redex:
            self.items[i] = last
            self.at[last.order] = i
        return redex

    def first(self) -> Redex:
        while self.heap[0][0] not in self.at:
            heapq.heappop(self.heap)
        return self.items[self.at[self.heap[0][0]]]


class Derivation:
    """A diagram on its way to its adjoint.

    `redexes` can fire; `fire` fires one, the first in the order of a tape if none is given;
    `diagram` is what there is now, frames and all, and `result` what there is at the end.
    """

    @refusing
    def __init__(self, net: Net) -> None:
        self.meter: Meter = Meter()
        self.root: Net = Net(self.meter)
        self.log: list[Step] = []
        self.frames: dict[Net, list[Frame]] = {}
        self.pairs: list[Pair] = []
        self._open = _Open()
        self._serial = 0
        self.ghosts: dict[Any, int] = {}
        self.became: dict[tuple[int, str, int], int] = {}  # wires of bodies, and what they are
        self._result: Net | None = None
        ins = tuple([self.root.input(hat(w.type)).called(w.name, w.line) for w in net.inputs])
        self._blue(net, None, self.root, ins)

    # --- asking -----------------------------------------------------------------------------

    @property
    def redexes(self) -> tuple[Redex, ...]:
        """What can fire now, in order."""
        return tuple(sorted(self._open.items, key=lambda r: r.order))

    @property
    def next(self) -> Redex:
        """What fires next in the order of a tape."""
        return self._open.first()

    @property
    def done(self) -> bool:
        """Whether no frame is left."""
        return not self._open.items

    def steps(self, rng: random.Random | None = None) -> Iterator[Step]:
        """Fire until nothing is left; with `rng`, in an order that it chooses."""
        while not self.done:
            yield self.fire(rng.choice(self._open.items) if rng else None)

    @uncollected
    def result(self, rng: random.Random | None = None) -> Net:
        """The adjoint."""
        for _ in self.steps(rng):
            pass
        if self._result is None:
            for pair in self.pairs:
                self._settled(pair)
            self._result = self.root
        return self._result

    # --- firing -----------------------------------------------------------------------------

    def fire(self, redex: Redex | None = None) -> Step:
        """One step; its line of the log."""
        if self.done:
            raise DiagramError("no frame is left: the derivation has ended")
        order = (self._open.first() if redex is None else redex).order
        if order not in self._open.at:
            raise DiagramError("that step has been taken, or cannot be taken yet")
        taken = self._open.take(order)
        frame, node = taken.frame, taken.node
        before = fresh_id()
        if node is None:
            erased = frame.id
            {"blue": self._split, "O-id": self._joined, "G-id": self._joined}[taken.rule](frame)
        else:
            erased = node.id
            (self._forward if frame.kind == "ORANGE" else self._backward)(frame, node)
        nets = (frame.net, frame.pair.box.body) if taken.rule == "blue" else (frame.net,)
        new_ids = tuple([i for n in nets for i in _since(n, before)])
        if node is not None and (line := line_of(node)):
            for i in new_ids:
                for w in frame.net.nodes[i].outs:
                    w.line = w.line or line
        step = Step(len(self.log) + 1, taken.rule, frame.net.path, erased, new_ids)
        self.log.append(step)
        return step

    def _ready(self, frame: Frame, node: Node | None, rule: str) -> None:
        self._serial += 1
        phase = {"BLUE": 0, "ORANGE": 1, "GREEN": 2}[frame.kind]
        order = (frame.pair.number * 3 + phase, self._serial, 0)
        self._open.add(Redex(order, rule, frame, node))

    def _blue(self, f: Net, packed: int | None, net: Net, ins: Wires) -> None:
        """A frame that is yet to be split."""
        pair = Pair(len(self.pairs), f, packed)
        self.pairs.append(pair)
        frame = Frame("BLUE", pair, net)
        self._held(frame, dict(zip(f.inputs, ins, strict=True)))
        for w in f.outputs:
            frame.ends[w] = self._sent(frame, hat(w.type))
        net.output(*[w for w in frame.ends.values() if w])
        pair.back = self._sent(frame, back(f.takes, f.gives, packed))
        net.output(pair.back)
        self.frames.setdefault(net, []).append(frame)
        self._ready(frame, None, "blue")

    def _held(self, frame: Frame, front: dict[Wire, Any]) -> None:
        for w in front.values():
            if w is not None:
                w.target = (frame, 0)
        frame.front = front

    def _sent(self, frame: Frame, t: Type) -> Wire:
        w = Wire(t)
        w.source = (frame, 0)
        return w

    def _split(self, blue: Frame) -> None:
        """BLUE becomes ORANGE, and a box with GREEN whose bundle is packed."""
        pair, net, f = blue.pair, blue.net, blue.pair.f
        self.frames[net].remove(blue)
        orange = Frame("ORANGE", pair, net)
        self._held(orange, blue.front)
        for w, end in blue.ends.items():
            assert end is not None, "every value is a wire"
            end.source = (orange, 0)
            orange.ends[w] = end
        body = Net(self.meter)
        green = Frame("GREEN", pair, body)
        front = {w: None if (t := tan(w.type)) is None else body.input(t) for w in f.outputs}
        self._held(green, front)
        for w in f.inputs:
            t = tan(w.type)
            green.ends[w] = None if t is None else self._sent(green, t)
        body.output(*bundled(body, list(green.ends.values()), pair.packed))
        pair.box, pair.split = Node(net, "box", bodies=[body]), True
        net.place(pair.box, (), (pair.back,))
        self.frames.setdefault(net, []).append(orange)
        self.frames.setdefault(body, []).append(green)
        self._started(orange, f.inputs, f.springs.values())
        self._started(green, f.outputs, f.sinks.values())

    def _started(self, frame: Frame, wires: list[Any], free: Any) -> None:
        for node in free:
            self._ready(frame, node, f"{frame.kind[0]}-{node.kind}")
        for w in wires:
            self._reached(frame, w)
        self._finished(frame)

    def _reached(self, frame: Frame, w: Wire) -> None:
        """A wire of the body is on the frontier: the node behind it waits for one less."""
        end = w.target if frame.kind == "ORANGE" else w.source
        assert end is not None, "a wire of a diagram has two ends"
        node = end[0]
        if not isinstance(node, Node):
            return
        wires = node.ins if frame.kind == "ORANGE" else node.outs
        left = frame.missing.pop(node.id, len(wires)) - 1
        if left:
            frame.missing[node.id] = left
        else:
            self._ready(frame, node, f"{frame.kind[0]}-{node.kind}")

    def _finished(self, frame: Frame) -> None:
        if not frame.left:
            self._ready(frame, None, f"{frame.kind[0]}-id")

    def _erased(self, frame: Frame, node: Node) -> None:
        frame.gone.add(node.id)
        frame.left -= 1

    def _forward(self, frame: Frame, node: Node) -> None:
        """A node leaves ORANGE for what stands before it."""
        pair = frame.pair
        ins = []
        for w in node.ins:
            real = frame.front.pop(w)
            assert real is not None, "every value is a wire"
            real.target = None
            ins.append(real)
        outs, resid, inner = forward(frame.net, node, ins)
        for i, r in enumerate(resid):
            r.target = (pair.box, i)
            pair.outside[node.id, i] = r
        for w, real in zip(node.outs, outs, strict=True):
            real.called(w.name, w.line).target = (frame, 0)
            frame.front[w] = real
            self.became[pair.number, "ORANGE", w.id] = real.id
        self._erased(frame, node)
        for w in node.outs:
            self._reached(frame, w)
        if inner is not None:
            self._blue(inner.body, inner.packed, inner.net, inner.ins)
        self._finished(frame)

    def _backward(self, frame: Frame, node: Node) -> None:
        """A node leaves GREEN for what stands behind it."""
        pair, bars, resid = frame.pair, [], []
        for w in node.outs:
            s = frame.front.pop(w)
            if s is not None:
                s.target = None
            bars.append(s)
        for i, t in enumerate(residuals(node)):
            r = pair.within[node.id, i] = Wire(t)
            r.source = (frame.net, 0)
            resid.append(r)
        sent = backward(frame.net, node, resid, bars)
        for w, s in zip(node.ins, sent, strict=True):
            if s is not None:
                s.called(w.name and f"{w.name}_bar", w.line).target = (frame, 0)
                self.became[pair.number, "GREEN", w.id] = s.id
            frame.front[w] = s
        self._erased(frame, node)
        for w in node.ins:
            self._reached(frame, w)
        self._finished(frame)

    def _joined(self, frame: Frame) -> None:
        """Remove a frame with nothing left in it, and join its wires."""
        for w, end in frame.ends.items():
            a = frame.front[w]
            if a is None or end is None:
                continue
            a.target = None
            end.source = None
            frame.net.join(a, end)
        self.frames[frame.net].remove(frame)

    def _settled(self, pair: Pair) -> None:
        """The captures of a box, in the order of the nodes that they belong to."""
        pair.has_captures = True
        keys = [key for key, _ in pair.residuals()]
        box, body = pair.box, pair.box.body
        box.ins = tuple([pair.outside[key] for key in keys])
        for i, w in enumerate(box.ins):
            w.target = (box, i)
        body.inputs = [pair.within[key] for key in keys] + body.inputs
        for i, w in enumerate(body.inputs):
            w.source = (body, i)
        box.net.springs.pop(box.id, None)
        if not box.ins:
            box.net.springs[box.id] = box


def _since(net: Net, before: int) -> Iterator[int]:
    """The nodes of a level that are newer than an id."""
    for i in reversed(net.nodes):
        if i < before:
            return
        yield i
