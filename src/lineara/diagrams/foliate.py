"""Foliations: a diagram as a list of leaves, each a permutation and then one node  [Diagrams].

A leaf brings the inputs of its node to the front and leaves the other wires beside it, so a
foliation is a series of lets; the diagrams within a node are foliated too.  Each order of the nodes
in which none comes before what it needs is a foliation, at each level: they are linear extensions.

>>> from lineara.diagrams.canonical import isomorphic
>>> from lineara.diagrams.parse import parse
>>> net = parse("(x: R, y: R) => z = subtract(y, x) -> z")
>>> foliated(net).leaves[0].order
(1, 0)
>>> isomorphic(recomposed(foliated(net)), net)
True
>>> both = parse("(x: R, y: R) => a = sin(x) b = cos(y) -> a, b")
>>> [[leaf.name for leaf in f.leaves] for f in foliations(both)]
[['sin', 'cos'], ['cos', 'sin']]
"""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lineara.diagrams.net import Net, Node, Wire, every_net, topological
from lineara.diagrams.refuse import refusing
from lineara.diagrams.types import Types
from lineara.errors import DiagramError

LIMIT = 10_000  # foliations that are enumerated, if the caller does not say
LARGEST = 100_000  # sets of nodes that are visited in counting them


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
class Symmetry:
    """A leaf that is a permutation of the wires that there are, and nothing else."""

    order: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Foliation:
    """The inputs, the leaves, and the permutation to the outputs."""

    takes: Types
    leaves: tuple[Leaf | Symmetry, ...]
    last: tuple[int, ...]


@refusing
def foliated(net: Net) -> Foliation:
    """The leaves of a diagram, in topological order.

    >>> from lineara.diagrams.parse import parse
    >>> d = parse("(x: R) => a, b = copy(x) y = add(a, b) -> y")
    >>> [leaf.kind for leaf in foliated(d).leaves]
    ['copy', 'op']
    """
    return _of_orders([(n, topological(n)) for n in every_net(net)])


@refusing
def foliations(net: Net, limit: int = LIMIT) -> Iterator[Foliation]:
    """All foliations of a diagram, each once, as they are asked for.

    Raises a DiagramError after `limit` of them if there are more.

    >>> from lineara.diagrams.parse import parse
    >>> len(list(foliations(parse("(x: R, y: R) => drop(x) drop(y) ->"))))
    2
    """
    levels = every_net(net)
    choices = [_extensions(n) for n in levels]
    chosen = [next(c) for c in choices]
    for given in itertools.count():
        if given == limit:
            raise DiagramError(
                f"there are more than {limit} foliations; ask for more by limit=, or count them "
                "by count_foliations"
            )
        yield _of_orders(list(zip(levels, chosen, strict=True)))
        for i in reversed(range(len(levels))):  # the next order of the last level that has one
            order = next(choices[i], None)
            if order is not None:
                chosen[i] = order
                break
            choices[i] = _extensions(levels[i])
            chosen[i] = next(choices[i])
        else:
            return


@refusing
def count_foliations(net: Net, largest: int = LARGEST) -> int:
    """How many foliations a diagram has, without enumerating them.

    The orders of a level are counted over the sets of nodes that may come first, those of parts
    that share no wire each by itself.  Raises a DiagramError if there are more than `largest` such
    sets of a part.

    >>> from lineara.diagrams.net import tensor
    >>> from lineara.diagrams.parse import parse
    >>> count_foliations(tensor(*[parse("(x: R) => y = sin(x) z = cos(y) -> z")] * 8))
    81729648000
    """
    return math.prod([_count(n, largest) for n in every_net(net)])


def separated(foliation: Foliation) -> Foliation:
    """The same foliation with symmetries as leaves of their own, as in the definition.

    Then each other leaf is a node beside bare wires, and the last permutation is the identity.
    """
    leaves: list[Leaf | Symmetry] = []
    for leaf in foliation.leaves:
        here = tuple(range(len(leaf.order)))
        if leaf.order != here:
            leaves.append(Symmetry(leaf.order))
        if isinstance(leaf, Leaf):
            bodies = tuple(map(separated, leaf.bodies))
            leaves.append(
                Leaf(here, leaf.takes, leaf.kind, leaf.name, leaf.data, bodies, leaf.gives)
            )
    here = tuple(range(len(foliation.last)))
    if foliation.last != here:
        leaves.append(Symmetry(foliation.last))
    return Foliation(foliation.takes, tuple(leaves), here)


# --- orders of a level ----------------------------------------------------------------------------


def _needs(net: Net) -> tuple[dict[int, Node], dict[int, list[int]], dict[int, int]]:
    """The nodes by number; those that need each of them, once a wire; how many each waits for."""
    nodes = dict(enumerate(topological(net)))
    number = {node: i for i, node in nodes.items()}
    after = {
        i: [number[t[0]] for w in n.outs if (t := w.target) and isinstance(t[0], Node)]
        for i, n in nodes.items()
    }
    waits = dict.fromkeys(nodes, 0)
    for later in after.values():
        for j in later:
            waits[j] += 1
    return nodes, after, waits


def _extensions(net: Net) -> Iterator[list[Node]]:
    """The orders of the nodes of a level in which none comes before what it needs."""
    nodes, after, waits = _needs(net)
    order: list[int] = []
    open_ = [iter([i for i in nodes if waits[i] == 0])]
    while open_:
        if len(order) == len(open_):  # the last choice here has been tried: take it back
            i = order.pop()
            for j in after[i]:
                waits[j] += 1
        if len(order) == len(nodes):
            yield [nodes[i] for i in order]
            open_.pop()
            continue
        i = next(open_[-1], None)
        if i is None:
            open_.pop()
            continue
        order.append(i)
        for j in after[i]:
            waits[j] -= 1
        placed = set(order)
        open_.append(iter([j for j in nodes if waits[j] == 0 and j not in placed]))


def _count(net: Net, largest: int) -> int:
    """How many such orders there are: those of each part, and the ways to shuffle the parts."""
    nodes, after, _ = _needs(net)
    before = [0] * len(nodes)  # the nodes that each needs, as bits
    for i, later in after.items():
        for j in later:
            before[j] |= 1 << i
    orders, placed = 1, 0
    for part in _parts(after):
        placed += len(part)
        orders *= math.comb(placed, len(part)) * _paths(part, before, largest)
    return orders


def _parts(after: Mapping[int, Sequence[int]]) -> list[list[int]]:
    """The nodes in parts between which there are no wires."""
    part = {i: [i] for i in after}
    for i, later in after.items():
        for j in later:
            if part[i] is not part[j]:
                joined = part[i]
                joined += part[j]
                part.update(dict.fromkeys(part[j], joined))
    return list({id(p): p for p in part.values()}.values())


def _paths(nodes: Sequence[int], before: Sequence[int], largest: int) -> int:
    """The orders of some nodes: the paths through the sets of them that may come first."""
    paths, visited = {0: 1}, 1
    for _ in nodes:
        longer: dict[int, int] = {}
        for done, n in paths.items():
            for i in nodes:
                if not done >> i & 1 and before[i] & done == before[i]:
                    longer[done | 1 << i] = longer.get(done | 1 << i, 0) + n
        paths = longer
        visited += len(paths)
        if visited > largest:
            raise DiagramError(
                f"more than {largest} sets of nodes may come first, so the foliations are not "
                "counted; ask for more by largest="
            )
    return next(iter(paths.values()))


# --- leaves ---------------------------------------------------------------------------------------


def _of_orders(orders: Sequence[tuple[Net, Sequence[Node]]]) -> Foliation:
    """The foliation of a diagram, from an order of the nodes of each level, the outermost first."""
    whole: dict[int, Foliation] = {}
    for n, order in reversed(orders):
        whole[id(n)] = _of_order(n, order, whole)
    return whole[id(orders[0][0])]


def _of_order(net: Net, nodes: Sequence[Node], foliations: Mapping[int, Foliation]) -> Foliation:
    there: list[Wire] = list(net.inputs)
    leaves = []
    for node in nodes:
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


@refusing
def recomposed(foliation: Foliation) -> Net:
    """The diagram of a foliation: leaf after leaf, so its nodes come in their order.

    >>> from lineara.diagrams.net import identity
    >>> recomposed(foliated(identity(()))).gives
    ()
    """
    order = [foliation]
    for f in order:
        order += [b for leaf in f.leaves if isinstance(leaf, Leaf) for b in leaf.bodies]
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
        if isinstance(leaf, Symmetry):
            continue
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
