"""Hypernets: nodes and wires at one level, and whole diagrams within nodes  [Diagrams].

A wire knows its one source and its one target, a node its wires in order, a diagram its nodes by
their ids.  So every change is local: adding or removing a node touches the node and its wires.

>>> net = Net()
>>> x = net.input(R)
>>> a, b = net.add("copy", (x,))
>>> net.output(*net.add("op", (a, b), name="multiply"))
>>> len(net.nodes), net.gives
(2, (Base(name='R'),))
"""

import heapq
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from lineara.diagrams import node_kinds
from lineara.diagrams.refuse import refusing
from lineara.diagrams.types import R, Type, Types, show_all
from lineara.errors import DiagramError
from lineara.facts.hints import Tree

__all__ = ["Meter", "Net", "Node", "R", "Wire", "copied", "every_net", "nodes_in", "topological"]

_ids = itertools.count(1)  # of wires and nodes, never given twice


def fresh_id() -> int:
    """An id that nothing has yet; later ones are larger."""
    return next(_ids)


class Wire:
    """A wire: its type, and its two ends, (node or net, port).  An end at a net is an interface.

    It may have the name of the user's variable, and the user's line `file:number`.
    """

    __slots__ = ("id", "line", "linear", "name", "source", "target", "type")
    name: str
    line: str

    def __init__(self, type: Type, id: int | None = None, linear: bool = False) -> None:
        self.type: Type = type
        self.id: int = next(_ids) if id is None else id
        self.linear: bool = linear  # of a linear variable: drawn apart
        self.source: tuple[Any, Any] | None = None
        self.target: tuple[Any, Any] | None = None
        self.name = self.line = ""

    def called(self, name: str, line: str) -> "Wire":
        """This wire, with a name and a line."""
        self.name, self.line = name, line
        return self

    def __repr__(self) -> str:
        return f"w{self.id}"


Wires = tuple[Wire, ...]


class Node:
    """A node: kind, name (of an op or a frame), what it holds, bodies, wires."""

    __slots__ = ("bodies", "data", "id", "ins", "kind", "name", "net", "outs")

    def __init__(
        self,
        net: "Net",
        kind: str,
        name: str = "",
        data: Any = None,
        bodies: Sequence["Net"] = (),
        id: int | None = None,
    ) -> None:
        self.net: Net = net
        self.kind: str = kind
        self.name: str = name
        self.data: Any = data
        self.bodies: tuple[Net, ...] = tuple(bodies)
        self.ins: Wires = ()
        self.outs: Wires = ()
        self.id: int = next(_ids) if id is None else id
        for b in bodies:
            b.owner = self

    def __repr__(self) -> str:
        return f"{self.label}#{self.id}"

    @property
    def label(self) -> str:
        """The label of the node."""
        return self.name or self.kind

    @property
    def held(self) -> Any:
        """The content of the node; the tag of a pack is the id of the node that it is a copy of."""
        return self.id if self.kind == "pack" and self.data is None else self.data

    @property
    def body(self) -> "Net":
        """The one diagram within."""
        (body,) = self.bodies
        return body

    @property
    def path(self) -> tuple[int, ...]:
        """The ids of the nodes that it lies in, from the outside."""
        return self.net.path


def line_of(node: Node) -> str:
    """The user's line `file:number` that a node comes from, if it is known."""
    return next((w.line for w in node.outs if w.line), "")


class Meter:
    """Counts the nodes and the ends of wires that have been touched."""

    __slots__ = ("touched",)

    def __init__(self) -> None:
        self.touched: int = 0


class Net:
    """One level of a diagram: nodes, and interfaces of wires in order."""

    _repr_svg_: Callable[["Net"], str]  # `svg.py` has it

    __slots__ = ("inputs", "meter", "nodes", "outputs", "owner", "sinks", "springs")

    def __init__(self, meter: Meter | None = None) -> None:
        self.nodes: dict[int, Node] = {}
        self.springs: dict[int, Node] = {}  # the nodes that take nothing
        self.sinks: dict[int, Node] = {}  # the nodes that give nothing
        self.inputs: list[Wire] = []
        self.outputs: list[Wire] = []
        self.owner: Node | None = None
        self.meter: Meter = meter or Meter()

    @property
    def takes(self) -> Types:
        """The types of the inputs."""
        return tuple([w.type for w in self.inputs])

    @property
    def gives(self) -> Types:
        """The types of the outputs."""
        return tuple([w.type for w in self.outputs])

    @property
    def path(self) -> tuple[int, ...]:
        """The ids of the nodes that it lies in, from the outside."""
        ids: list[int] = []
        net: Net | None = self
        while net is not None and net.owner is not None:
            ids.append(net.owner.id)
            net = net.owner.net
        return tuple(reversed(ids))

    # --- building ---------------------------------------------------------------------------

    def input(self, type: Type, linear: bool = False) -> Wire:
        """A new wire at the end of the inputs."""
        w = Wire(type, linear=linear)
        w.source = (self, len(self.inputs))
        self.inputs.append(w)
        return w

    def output(self, *wires: Wire) -> None:
        """Wires at the end of the outputs."""
        for w in wires:
            self._end(w, (self, len(self.outputs)))
            self.outputs.append(w)

    def add(
        self,
        kind: str,
        ins: Iterable[Wire] = (),
        *,
        name: str = "",
        data: Tree = None,
        bodies: Sequence["Net"] = (),
        gives: Sequence[Type] | None = None,
        like: Node | None = None,
    ) -> Wires:
        """A new node on wires that have no target yet; its outputs.

        What a frame gives is stated, of all other kinds it is known.  Raises a DiagramError if the
        kind does not take such wires.
        """
        ins = tuple(ins)
        if like is not None:
            kind, name, data = like.kind, like.name, like.data
        if gives is None:
            gives = node_kinds.gives(kind, tuple([w.type for w in ins]), name, data, bodies)
        node = Node(self, kind, name, data, bodies)
        return self.place(node, ins, [Wire(t) for t in gives])

    def place(self, node: Node, ins: Sequence[Wire], outs: Sequence[Wire]) -> Wires:
        """A node that has been made, on wires without a target and wires without a source."""
        node.ins, node.outs = tuple(ins), tuple(outs)
        for i, w in enumerate(node.ins):
            self._end(w, (node, i))
        for i, w in enumerate(node.outs):
            w.source = (node, i)
        self._hold(node)
        self.meter.touched += 1 + len(node.ins) + len(node.outs)
        return node.outs

    def _hold(self, node: Node) -> None:
        node.net = self
        self.nodes[node.id] = node
        if not node.ins:
            self.springs[node.id] = node
        if not node.outs:
            self.sinks[node.id] = node

    def _end(self, w: Wire, end: tuple[Any, Any]) -> None:
        if w.target is not None:
            raise DiagramError(f"the wire {w!r} ends twice; a copy gives two wires of one")
        w.target = end

    # --- changing ---------------------------------------------------------------------------

    def remove(self, node: Node) -> None:
        """Take a node out: its wires are left with an end that is open."""
        del self.nodes[node.id]
        self.springs.pop(node.id, None)
        self.sinks.pop(node.id, None)
        for w in node.ins:
            w.target = None
        for w in node.outs:
            w.source = None
        self.meter.touched += 1 + len(node.ins) + len(node.outs)

    def join(self, a: Wire, b: Wire) -> None:
        """One wire of `a`, which has no target, and `b`, which has no source: `a` stays."""
        assert a.target is None, "only open ends can be joined"
        assert b.source is None, "only open ends can be joined"
        self.meter.touched += 2
        if b.target is None:
            return
        owner, port = a.target = b.target
        b.target = None
        a.called(a.name or b.name, a.line or b.line)
        if isinstance(owner, Net):
            owner.outputs[port] = a
        else:
            owner.ins = (*owner.ins[:port], a, *owner.ins[port + 1 :])

    def replace_input(self, node: Node, port: int, a: Wire) -> Wire:
        """Put `a`, which has no target, in place of an input, which is left without one."""
        old = node.ins[port]
        old.target = None
        self._end(a, (node, port))
        node.ins = (*node.ins[:port], a, *node.ins[port + 1 :])
        self.meter.touched += 2
        return old

    def splice(self, other: "Net", ins: Sequence[Wire]) -> Wires:
        """The nodes of `other`, which is used up, on wires without a target; what it gives."""
        for node in other.nodes.values():
            self._hold(node)
        self.meter.touched += len(other.nodes)
        outs = list(other.outputs)
        for w in outs:
            w.target = None
        for a, w in zip(ins, other.inputs, strict=True):
            w.source = None
            if w.target is None:  # an identity, or already given
                outs = [a if v is w else v for v in outs]
            else:
                self.join(a, w)
        return tuple(outs)


# --- walks, without recursion ---------------------------------------------------------------------


def every_net(net: Net) -> list[Net]:
    """The diagram and all within it; what lies within comes after.

    >>> len(every_net(Net()))
    1
    """
    nets = [net]
    for n in nets:
        for node in n.nodes.values():
            nets += node.bodies
    return nets


def nodes_in(net: Net) -> Iterator[Node]:
    """The nodes of all levels."""
    for n in every_net(net):
        yield from n.nodes.values()


def topological(net: Net) -> list[Node]:
    """The nodes of one level, each behind those that it needs; a DiagramError if there is a cycle.

    The first that can come comes first: so the order is that in which the nodes were made.
    """
    place = {node_id: i for i, node_id in enumerate(net.nodes)}
    missing = {}
    ready = []
    for node in net.nodes.values():
        n = sum([w.source is not None and isinstance(w.source[0], Node) for w in node.ins])
        missing[node.id] = n
        if n == 0:
            ready.append((place[node.id], node))
    heapq.heapify(ready)
    order = []
    while ready:
        _, node = heapq.heappop(ready)
        order.append(node)
        for w in node.outs:
            if w.target is not None and isinstance(w.target[0], Node):
                after = w.target[0]
                missing[after.id] -= 1
                if missing[after.id] == 0:
                    heapq.heappush(ready, (place[after.id], after))
    if len(order) < len(net.nodes):
        left = [node for node in net.nodes.values() if missing[node.id] > 0]
        raise DiagramError(
            f"the diagram has a cycle through {', '.join(map(repr, left[:3]))}; a wire runs from "
            "what makes it to what needs it"
        )
    return order


@refusing
def copied(net: Net, meter: Meter | None = None) -> Net:
    """The same diagram with ids of its own.

    >>> a = Net()
    >>> a.output(a.input(R))
    >>> b = copied(a)
    >>> b.takes == a.takes, b.inputs[0] is b.outputs[0], b.inputs[0] is a.inputs[0]
    (True, True, False)
    """
    copies: dict[int, Net] = {}
    meter = meter or Meter()
    for n in reversed(every_net(net)):
        new = copies[id(n)] = Net(meter)
        wires: dict[Wire, Wire] = {}
        for w in n.inputs:
            wires[w] = new.input(w.type, w.linear).called(w.name, w.line)
        for node in n.nodes.values():
            for w in node.outs:
                wires[w] = Wire(w.type, linear=w.linear).called(w.name, w.line)
        for node in n.nodes.values():
            other = Node(new, node.kind, node.name, node.held, [copies[id(b)] for b in node.bodies])
            new.place(other, [wires[w] for w in node.ins], [wires[w] for w in node.outs])
        new.output(*[wires[w] for w in n.outputs])
    return copies[id(net)]


# --- composition ----------------------------------------------------------------------------------


@refusing
def identity(types: Sequence[Type]) -> Net:
    """Bare wires.

    >>> identity((R, R)).gives == (R, R)
    True
    """
    net = Net()
    net.output(*[net.input(t) for t in types])
    return net


@refusing
def permutation(types: Sequence[Type], order: Sequence[int]) -> Net:
    """Output i is input order[i].

    Raises DiagramError where `order` does not have each place once.

    >>> swap = permutation((R, R), (1, 0))
    >>> swap.outputs[0] is swap.inputs[1]
    True
    """
    if sorted(order) != list(range(len(types))):
        raise DiagramError(
            f"a permutation of {len(types)} wires has each of their places once, and "
            f"{tuple(order)} has not"
        )
    net = Net()
    wires = [net.input(t) for t in types]
    net.output(*[wires[i] for i in order])
    return net


@refusing
def compose(first: Net, *rest: Net) -> Net:
    """One after the other: the outputs of each are the inputs of the next.  Nothing is used up.

    Raises DiagramError where the outputs of one are not the inputs of the next.

    >>> from lineara.diagrams.net import identity
    >>> compose(identity((R,)), identity((R,))).takes
    (Base(name='R'),)
    """
    net = Net()
    wires: Wires = tuple([net.input(t) for t in first.takes])
    for part in (first, *rest):
        types = tuple([w.type for w in wires])
        if types != part.takes:
            raise DiagramError(
                f"({show_all(types)}) does not compose with ({show_all(part.takes)}); the outputs "
                "of the first are the inputs of the second"
            )
        wires = net.splice(copied(part, net.meter), wires)
    net.output(*wires)
    return net


@refusing
def tensor(*parts: Net) -> Net:
    """Side by side: inputs and outputs in order.

    >>> tensor(identity((R,)), identity((R,))).gives
    (Base(name='R'), Base(name='R'))
    """
    net = Net()
    outs: list[Wire] = []
    wires = [[net.input(t) for t in part.takes] for part in parts]
    for part, ins in zip(parts, wires, strict=True):
        outs += net.splice(copied(part, net.meter), ins)
    net.output(*outs)
    return net
