"""W8: a diagram is what it is up to isomorphism; the canonical numbering tells two apart.

A walk from the ordered interfaces numbers each node that it meets, ports in order: it can go only
one way.  Components that no interface touches are compared as a multiset, each by the least text
of a walk from one of its nodes.  Time is linear, but for such components.

>>> from lineara.diagrams.net import identity, permutation
>>> from lineara.diagrams.types import R
>>> isomorphic(identity((R, R)), permutation((R, R), (0, 1)))
True
>>> isomorphic(identity((R, R)), permutation((R, R), (1, 0)))
False
"""

from collections import deque
from collections.abc import Iterable
from hashlib import blake2b
from typing import NamedTuple

import numpy as np

from lineara.diagrams.net import Net, Node, Wire, every_net
from lineara.diagrams.refuse import refusing
from lineara.diagrams.types import show
from lineara.facts.hints import Leaf


class Canon(NamedTuple):
    """The digest of a diagram, and its nodes in the order of the numbering."""

    digest: bytes
    nodes: tuple[Node, ...]


def canonical(net: Net) -> Canon:
    """The digest and the numbering of a diagram."""
    return canonicals(net)[id(net)]


def canonicals(net: Net) -> dict[int, Canon]:
    """The numberings of a diagram and of all within it, by the id() of each."""
    numberings: dict[int, Canon] = {}
    for n in reversed(every_net(net)):
        numberings[id(n)] = _canonical(n, numberings)
    return numberings


@refusing
def isomorphic(a: Net, b: Net) -> bool:
    """Whether two diagrams are the same, whatever their ids are.

    >>> from lineara.diagrams.parse import parse
    >>> isomorphic(parse("(x: R) => y = sin(x) -> y"), parse("(a: R) => b = sin(a) -> b"))
    True
    """
    return canonical(a).digest == canonical(b).digest


def _canonical(net: Net, inner: dict[int, Canon]) -> Canon:
    walk = _Walk(inner)
    walk.wires(net.inputs)
    walk.wires(net.outputs)
    walk.go()
    hasher = blake2b(digest_size=20)
    for part in walk.text(net):
        hasher.update(part.encode())
    order = list(walk.number)
    left = [node for node in net.nodes.values() if node not in walk.number]
    for text, nodes in sorted(_components(left, inner), key=lambda c: c[0]):
        hasher.update(text.encode())
        order += nodes
    return Canon(hasher.digest(), tuple(order))


def _components(left: list[Node], inner: dict[int, Canon]) -> list[tuple[str, list[Node]]]:
    """The components that no interface touches, each with its text."""
    components, seen = [], set()
    for node in left:
        if node in seen:
            continue
        walk = _Walk(inner)
        walk.start(node)
        members = list(walk.number)
        seen.update(members)
        best = None
        for first in members:
            walk = _Walk(inner)
            walk.start(first)
            text = "".join(walk.text(None))
            if best is None or text < best[0]:
                best = (text, list(walk.number))
        assert best is not None, "a component has a node"
        components.append(best)
    return components


def held(data: Leaf) -> str:
    """The content of a node, as a text that differs where values differ."""
    if isinstance(data, np.generic) and data.dtype.name in ("float64", "int64", "bool"):
        data = data.item()  # of one type with Python's
    if isinstance(data, np.ndarray | np.generic):
        return f"{data.dtype}{data.shape}{data.tobytes().hex()}"
    if isinstance(data, tuple):
        return f"({','.join(map(held, data))})"
    return f"{type(data).__name__}:{data!r}"


class _Walk:
    """Numbers for nodes and wires in the order in which they are met."""

    def __init__(self, inner: dict[int, Canon]) -> None:
        self.inner = inner
        self.number: dict[Node, int] = {}
        self.named: dict[Wire, int] = {}
        self.open: deque[Node] = deque()

    def wires(self, wires: Iterable[Wire]) -> None:
        """Number the wires and the nodes at their ends."""
        for w in wires:
            if w not in self.named:
                self.named[w] = len(self.named)
            for end in (w.source, w.target):
                if end is not None and isinstance(end[0], Node) and end[0] not in self.number:
                    self.number[end[0]] = len(self.number)
                    self.open.append(end[0])

    def start(self, node: Node) -> None:
        """Walk from a node."""
        self.number[node] = 0
        self.open.append(node)
        self.go()

    def go(self) -> None:
        """Walk on until nothing new is met."""
        while self.open:
            node = self.open.popleft()
            self.wires(node.ins)
            self.wires(node.outs)

    def text(self, net: Net | None) -> Iterable[str]:
        """The pieces of the canonical text, in the order of the walk."""
        if net is not None:
            yield self._wires("in", net.inputs)
            yield self._wires("out", net.outputs)
        for node in self.number:
            within = [self.inner[id(b)].digest.hex() for b in node.bodies]
            data = "" if node.kind == "pack" else held(node.data)  # its tag is no part of it
            yield f"{node.kind}|{node.name}|{data}|{','.join(within)}"
            yield self._wires("", node.ins)
            yield self._wires(">", node.outs)

    def _wires(self, mark: str, wires: Iterable[Wire]) -> str:
        named = [f"{'~' * w.linear}{self.named[w]}:{show(w.type)}" for w in wires]
        return f"{mark}[{' '.join(named)}]"
