"""What a derivation looks like between two steps: a diagram with its frames, well formed.

Nodes and wires keep their ids from one picture to the next; what GREEN still holds is a second
copy of what ORANGE holds, and has ids of its own.

>>> from lineara.diagrams.show import show
>>> from lineara.diagrams.parse import parse
>>> for step, _, after in history(parse("(x: R) => -> x")):
...     print(step.rule)
...     print(show(after))
blue
(x1: R) =>
  v1 = ORANGE(x1) { (x2: R) =>
    -> x2 }
  f1 = box() { (x3: R) =>
    v2 = GREEN(x3) { (x4: R) =>
      -> x4 }
    -> v2 }
  -> v1, f1
O-id
(x1: R) =>
  f1 = box() { (x2: R) =>
    v1 = GREEN(x2) { (x3: R) =>
      -> x3 }
    -> v1 }
  -> x1, f1
G-id
(x1: R) =>
  f1 = box() { (x2: R) =>
    -> x2 }
  -> x1, f1
"""

import random
from collections.abc import Callable, Iterable, Iterator

from lineara.diagrams.net import Net, Node, Wire, every_net, fresh_id
from lineara.diagrams.refuse import refusing
from lineara.diagrams.stepper import Derivation, Frame, Pair, Step
from lineara.diagrams.types import Type


@refusing
def history(net: Net, rng: random.Random | None = None) -> Iterator[tuple[Step, Net, Net]]:
    """Each step of a derivation with the diagrams before and after it.

    >>> from lineara.diagrams.parse import parse
    >>> square = parse("(x: R) => a, b = copy(x) y = multiply(a, b) -> y")
    >>> len(list(history(square))) > 0
    True
    """
    d = Derivation(net)
    before = snapshot(d)
    for step in d.steps(rng):
        after = snapshot(d)
        yield step, before, after
        before = after


@refusing
def snapshot(d: Derivation) -> Net:
    """The diagram as it is now; changing it changes nothing in the derivation.

    >>> from lineara.diagrams.parse import parse
    >>> square = parse("(x: R) => a, b = copy(x) y = multiply(a, b) -> y")
    >>> from lineara.diagrams.stepper import Derivation
    >>> [node.kind for node in snapshot(Derivation(square)).nodes.values()]
    ['BLUE']
    """
    return _Picture(d).whole()


class _Picture:
    """One picture on its way."""

    def __init__(self, d: Derivation) -> None:
        self.d = d
        self.boxes = {p.box.id: p for p in d.pairs if p.split and not p.has_captures}

    def ghost(self, *key: object) -> int:
        """The id of what is shown and is not there; always the same one."""
        if key not in self.d.ghosts:
            self.d.ghosts[key] = fresh_id()
        return self.d.ghosts[key]

    def whole(self) -> Net:
        """Every level, the inner ones first."""
        levels: dict[int, Net] = {}
        for net in reversed(every_net(self.d.root)):
            levels[id(net)] = self.level(net, levels)
        return levels[id(self.d.root)]

    def level(self, net: Net, levels: dict[int, Net]) -> Net:
        """One level: its nodes, and its frames as nodes."""
        new, wires = Net(), {}
        pair = self.boxes.get(net.owner.id) if net.owner else None
        inputs = [w for _, w in self.residuals(pair, pair.within, ())] if pair else []
        for w in (*inputs, *net.inputs):
            wires[w.id] = other = Wire(w.type, w.id, w.linear).called(w.name, w.line)
            other.source = (new, len(new.inputs))
            new.inputs.append(other)
        nodes: list[tuple[Node, list[Wire], list[Wire]]] = []
        for node in net.nodes.values():
            bodies = [levels[id(b)] for b in node.bodies]
            other = Node(new, node.kind, node.name, node.data, bodies, node.id)
            own, ins = self.boxes.get(node.id), list(node.ins)
            if own:
                ins = [w for _, w in self.residuals(own, own.outside, ())]
            nodes.append((other, ins, list(node.outs)))
        for frame in self.d.frames.get(net, ()):
            nodes.append(self.frame(frame, new))
        for _, _, outs in nodes:
            for w in outs:
                wires[w.id] = Wire(w.type, w.id, w.linear).called(w.name, w.line)
        for node, ins, outs in nodes:
            new.place(node, [wires[w.id] for w in ins], [wires[w.id] for w in outs])
        new.output(*[wires[w.id] for w in net.outputs])
        return new

    def residuals(
        self, pair: Pair, real: dict[tuple[int, int], Wire], gone: Iterable[int]
    ) -> list[tuple[Type, Wire]]:
        """The residuals of the nodes that are not gone: wires that are there, or stand-ins."""
        side = "out" if real is pair.outside else "in"
        left = set(gone)
        return [
            (t, real.get(key) or Wire(t, self.ghost(pair.number, key, side)))
            for key, t in pair.residuals()
            if key[0] not in left
        ]

    def frame(self, frame: Frame, net: Net) -> tuple[Node, list[Wire], list[Wire]]:
        """A frame as a node, with what is left within it."""
        pair, f = frame.pair, frame.pair.f
        front = sorted(frame.front, key=lambda w: w.id)
        if frame.kind == "BLUE":
            front = f.inputs
        ins = [s for w in front if (s := frame.front[w]) is not None]
        outs = [s for s in frame.ends.values() if s is not None]
        data: object = pair.packed
        if frame.kind == "BLUE":
            outs.append(pair.back)
            body = self.part(f, frame, f.inputs, f.outputs, lambda i: i)
        elif frame.kind == "ORANGE":
            resid = self.residuals(pair, pair.outside, frame.gone)
            data = tuple([t for t, _ in resid])
            outs += [w for _, w in resid]
            body = self.part(f, frame, front, f.outputs, lambda i: i)
        else:
            resid = self.residuals(pair, pair.within, frame.gone)
            data = tuple([t for t, _ in resid])
            ins = [w for _, w in resid] + ins
            body = self.part(f, frame, f.inputs, front, lambda i: self.ghost(frame.id, i))
        return Node(net, frame.kind, data=data, bodies=[body], id=frame.id), ins, outs

    def part(
        self,
        f: Net,
        frame: Frame,
        inputs: list[Wire],
        outputs: list[Wire],
        named: Callable[[int], int],
    ) -> Net:
        """The part of a body that is left between two frontiers."""
        parts: dict[int, Net] = {}

        def like(w: Wire) -> Wire:
            return Wire(w.type, named(w.id), w.linear).called(w.name, w.line)

        for n in reversed(every_net(f)):
            outermost = n is f
            new, wires = Net(), {}
            for w in inputs if outermost else n.inputs:
                wires[w] = other = like(w)
                other.source = (new, len(new.inputs))
                new.inputs.append(other)
            nodes = [x for x in n.nodes.values() if not (outermost and x.id in frame.gone)]
            for x in nodes:
                wires.update({w: like(w) for w in x.outs})
            for x in nodes:
                bodies = [parts[id(b)] for b in x.bodies]
                other = Node(new, x.kind, x.name, x.data, bodies, named(x.id))
                new.place(other, [wires[w] for w in x.ins], [wires[w] for w in x.outs])
            new.output(*[wires[w] for w in (outputs if outermost else n.outputs)])
            parts[id(n)] = new
        return parts[id(f)]
