"""Foliations: a diagram as a list of leaves, each a permutation and then one node  [Diagrams].

A leaf brings the inputs of its node to the front and leaves the other wires beside it, so a
foliation is a series of lets; the diagrams within a node are foliated too.

>>> from lineara.diagrams.canonical import isomorphic
>>> from lineara.diagrams.parse import parse
>>> net = parse("(x: R, y: R) => z = subtract(y, x) -> z")
>>> foliated(net).leaves[0].order
(1, 0)
>>> isomorphic(recomposed(foliated(net)), net)
True
"""

from dataclasses import dataclass
from typing import Any

from lineara.diagrams.net import Net, Wire, every_net, topological
from lineara.diagrams.types import Types


@dataclass(frozen=True, slots=True)
class Leaf:
    """A permutation of the wires that there are, and the node on the first of them."""

    order: tuple[int, ...]
    takes: int
    kind: str
    name: str
    data: Any
    bodies: tuple["Foliation", ...]
    gives: Types


@dataclass(frozen=True, slots=True)
class Foliation:
    """The inputs, the leaves, and the permutation to the outputs."""

    takes: Types
    leaves: tuple[Leaf, ...]
    last: tuple[int, ...]


def foliated(net: Net) -> Foliation:
    """The leaves of a diagram, in topological order."""
    foliations: dict[int, Foliation] = {}
    for n in reversed(every_net(net)):
        foliations[id(n)] = _foliated(n, foliations)
    return foliations[id(net)]


def _foliated(net: Net, foliations: dict[int, Foliation]) -> Foliation:
    there: list[Wire] = list(net.inputs)
    leaves = []
    for node in topological(net):
        taken = set(node.ins)
        place = {w: i for i, w in enumerate(there)}
        rest = [w for w in there if w not in taken]
        order = tuple([place[w] for w in (*node.ins, *rest)])
        bodies = tuple([foliations[id(b)] for b in node.bodies])
        gives = tuple([w.type for w in node.outs])
        leaves.append(Leaf(order, len(node.ins), node.kind, node.name, node.data, bodies, gives))
        there = [*node.outs, *rest]
    place = {w: i for i, w in enumerate(there)}
    return Foliation(net.takes, tuple(leaves), tuple([place[w] for w in net.outputs]))


def recomposed(foliation: Foliation) -> Net:
    """The diagram of a foliation: leaf after leaf."""
    order = [foliation]
    for f in order:
        order += [b for leaf in f.leaves for b in leaf.bodies]
    nets: list[Net] = []
    waiting: dict[int, Net] = {}
    for f in reversed(order):
        net = _recomposed(f, waiting)
        waiting[id(f)] = net
        nets.append(net)
    return nets[-1]


def _recomposed(f: Foliation, waiting: dict[int, Net]) -> Net:
    net = Net()
    there: list[Wire] = [net.input(t) for t in f.takes]
    for leaf in f.leaves:
        there = [there[i] for i in leaf.order]
        outs = net.add(
            leaf.kind,
            there[: leaf.takes],
            name=leaf.name,
            data=leaf.data,
            bodies=[waiting[id(b)] for b in leaf.bodies],
            gives=leaf.gives,
        )
        there = [*outs, *there[leaf.takes :]]
    net.output(*[there[i] for i in f.last])
    return net
