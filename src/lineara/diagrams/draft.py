"""A diagram under construction in which a wire may be used any number of times.

`done` puts the copies and drops in: the first use takes the first of a copy, the rest the second.

>>> d = Draft()
>>> x = d.input(R)
>>> from lineara.diagrams.show import show
>>> print(show(d.done(*d.add("op", (x, x), name="multiply"))))
(x1: R) =>
  v1, v2 = copy(x1)
  v3 = multiply(v1, v2)
  -> v3
"""

from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

from lineara.diagrams import node_kinds
from lineara.diagrams.net import Net, Node, Wire, Wires, topological
from lineara.diagrams.types import R, Type
from lineara.facts.hints import Tree, Value

__all__ = ["Draft", "R"]


class _Entry(NamedTuple):
    ins: Wires
    kind: str
    name: str
    data: Any
    bodies: Sequence[Net]
    outs: Wires


class Draft:
    """Nodes and inputs as they are asked for; a wire is a value that may be read again."""

    def __init__(self) -> None:
        self.inputs: list[Wire] = []
        self.entries: list[_Entry] = []

    def input(self, type: Type, linear: bool = False) -> Wire:
        """One more input."""
        w = Wire(type, linear=linear)
        self.inputs.append(w)
        return w

    def add(
        self,
        kind: str,
        ins: Sequence[Wire] = (),
        *,
        name: str = "",
        data: Tree = None,
        bodies: Sequence[Net] = (),
        gives: Sequence[Type] | None = None,
        linear: Sequence[bool] | None = None,
    ) -> Wires:
        """A node, and what it gives; copy and drop are no nodes here."""
        ins = tuple(ins)
        if gives is None:
            gives = node_kinds.gives(kind, tuple([w.type for w in ins]), name, data, bodies)
        marks = linear or [False] * len(gives)
        outs = tuple([Wire(t, linear=mark) for t, mark in zip(gives, marks, strict=True)])
        self.entries.append(_Entry(ins, kind, name, data, bodies, outs))
        return outs

    def op(self, name: str, *ins: Wire) -> Wire:
        """An operation with one result and no parameters."""
        return self.add("op", ins, name=name)[0]

    def const(self, value: Value) -> Wire:
        """A constant."""
        return self.add("const", data=value)[0]

    def inline(self, net: Net, ins: Sequence[Wire]) -> list[Wire]:
        """The nodes of a diagram on wires that are there; what it gives."""
        env = dict(zip(net.inputs, ins, strict=True))
        for node in topological(net):
            args = [env.pop(w) for w in node.ins]
            if node.kind == "copy":
                outs: Sequence[Wire] = args * 2
            else:
                drops = node.kind == "drop"
                outs = () if drops else self._again(node, args)
            env.update(zip(node.outs, outs, strict=True))
        return [env[w] for w in net.outputs]

    def _again(self, node: Node, ins: Sequence[Wire]) -> Wires:
        outs = self.add(
            node.kind, ins, name=node.name, data=node.data, bodies=node.bodies,
            gives=[w.type for w in node.outs], linear=[w.linear for w in node.outs],
        )  # fmt: skip
        for w, real in zip(node.outs, outs, strict=True):
            real.called(w.name, w.line)
        return outs

    def prune(self, *outputs: Wire) -> None:
        """Forget the nodes that those outputs do not need."""
        needed = set(outputs)
        kept = []
        for e in reversed(self.entries):
            if not needed.isdisjoint(e.outs):
                needed.update(e.ins)
                kept.append(e)
        self.entries = kept[::-1]

    def done(self, *outputs: Wire) -> Net:
        """The diagram, every wire with one source and one target."""
        uses: dict[Wire, int] = {}
        for e in self.entries:
            for w in e.ins:
                uses[w] = uses.get(w, 0) + 1
        for w in outputs:
            uses[w] = uses.get(w, 0) + 1
        net = Net()
        ends: dict[Wire, deque[Wire]] = {}

        def made(w: Wire, real: Wire) -> None:
            n = uses.get(w, 0)
            if n == 0:
                net.add("drop", (real,))
            ends[w] = sides = deque()
            for _ in range(n - 1):
                first, real = net.add("copy", (real,))
                first.called(w.name, w.line).linear = w.linear
                real.called(w.name, w.line).linear = w.linear
                sides.append(first)
            sides.append(real)

        inputs = [net.input(w.type, w.linear).called(w.name, w.line) for w in self.inputs]
        for w, real in zip(self.inputs, inputs, strict=True):
            made(w, real)
        for e in self.entries:
            ins = [ends[w].popleft() for w in e.ins]
            types = [w.type for w in e.outs]
            outs = net.add(e.kind, ins, name=e.name, data=e.data, bodies=e.bodies, gives=types)
            for w, real in zip(e.outs, outs, strict=True):
                real.called(w.name, w.line).linear = w.linear
                made(w, real)
        net.output(*[ends[w].popleft() for w in outputs])
        return net
