"""The checker: whether a diagram is well formed, condition by condition  [Diagrams].

    W1  every wire has one source and one target       W2  no cycle at any level
    W3  the ports of a node have the types of its kind
    W4  no wire crosses the border of a box: what a box captures enters by its first ports
    W5  interfaces have no repetitions                 W6  the diagrams within are well formed
    W7  no BLUE, ORANGE or GREEN in a finished diagram

W8, that a diagram is what it is up to isomorphism, is `canonical.isomorphic`.
"""

from typing import Any, NoReturn

from lineara.diagrams import node_kinds
from lineara.diagrams.net import Net, Node, Wire, every_net, topological
from lineara.diagrams.refuse import refusing
from lineara.diagrams.types import show_all
from lineara.errors import DiagramError


@refusing
def check(net: Net, finished: bool = True) -> None:
    """Raise a DiagramError at the first condition that does not hold.

    >>> from lineara.diagrams.net import identity
    >>> from lineara.diagrams.types import R
    >>> check(identity((R, R)))
    """
    ids: set[int] = set()
    for n in every_net(net):
        _unique(n, ids)
        _interfaces(n)
        _ends(n)
        for node in n.nodes.values():
            _ports(n, node)
            if finished and node.kind in node_kinds.REWRITING:
                _wrong("W7", n, f"{node!r} is left in a diagram that is finished; go on rewriting")
        topological(n)


def _wrong(condition: str, net: Net, what: str) -> NoReturn:
    at = f" in {'/'.join(map(str, net.path))}" if net.path else ""
    raise DiagramError(f"{condition}{at}: {what}")


def _unique(net: Net, ids: set[int]) -> None:
    used: list[Any] = [*net.nodes, *[w.id for w in net.inputs]]
    used += [w.id for node in net.nodes.values() for w in node.outs]
    for i in used:
        if i in ids:
            _wrong("W4", net, f"the id {i} is there twice; a wire or node lies at one level")
        ids.add(i)


def _interfaces(net: Net) -> None:
    for side, wires in (("inputs", net.inputs), ("outputs", net.outputs)):
        if len(set(wires)) < len(wires):
            twice = next(w for w in wires if wires.count(w) > 1)
            _wrong("W5", net, f"{twice!r} is twice among the {side}; copy it")


def _ends(net: Net) -> None:
    """Each wire is where its ends say, and nowhere else."""
    sources: dict[Wire, tuple[Any, Any]] = {w: (net, i) for i, w in enumerate(net.inputs)}
    targets: dict[Wire, tuple[Any, Any]] = {}
    for node in net.nodes.values():
        for i, w in enumerate(node.outs):
            if w in sources:
                _wrong("W1", net, f"{w!r} has two sources, {node!r} is one of them")
            sources[w] = (node, i)
    given = [(w, (net, i)) for i, w in enumerate(net.outputs)]
    given += [(w, (n, i)) for n in net.nodes.values() for i, w in enumerate(n.ins)]
    for w, end in given:
        if w in targets:
            _wrong("W1", net, f"{w!r} has two targets, {targets[w][0]!r} and {end[0]!r}; copy it")
        targets[w] = end
    for w in targets:
        if w not in sources:
            _wrong(
                "W4" if w.source is not None else "W1",
                net,
                f"{w!r} goes to {_place(targets[w])} and comes from nowhere at this level; a box "
                "gets what it captures by its ports",
            )
    for w in sources:
        if w not in targets:
            _wrong("W1", net, f"{w!r} of {_place(sources[w])} ends nowhere; drop it")
    for w in sources:
        if w.source != sources[w] or w.target != targets[w]:
            _wrong("W1", net, f"the ends that {w!r} remembers are not those that it has")


def _place(end: tuple[Any, Any]) -> str:
    return "the interface" if isinstance(end[0], Net) else repr(end[0])


def _ports(net: Net, node: Node) -> None:
    if node.net is not net or any([b.owner is not node for b in node.bodies]):
        _wrong("W6", net, f"{node!r} is not where it says that it is")
    if node.kind == "frame":
        return
    takes = tuple([w.type for w in node.ins])
    actual = tuple([w.type for w in node.outs])
    try:
        wanted = node_kinds.gives(node.kind, takes, node.name, node.data, node.bodies)
    except DiagramError as error:
        _wrong("W3", net, f"{node!r}: {error.message}")
    if actual != wanted:
        _wrong("W3", net, f"{node!r} gives ({show_all(wanted)}), not ({show_all(actual)})")
