"""Sound simplification, rule by rule: each looks at one node and what its wires come from.

    beta          box ; eval             the body in their place
    eta           a box that only evaluates what it captures     what it captures
    gc            node ; drops           drops on what it took
    counit        copy with one drop     a wire
    dup           const, zero, box ; copy    two of them
    absorb        what depends on nothing moves into the box that captures it
    capture       what a box does not use it does not capture
    unpack-pack   pack ; unpack          wires
    add-pack      add of two packs       the pack of sums
    zero          unpack, add, sel, negative and route of zeros
    chosen        sel and route on a constant
    mul-one       multiplication by 1
    mul-zero      multiplication by 0, with `finite_math` only: 0 times infinity is not 0

They apply at all levels, in any order; the log has a `Step` for each  [Diagrams].

>>> from lineara.diagrams.show import show
>>> from lineara.diagrams.parse import parse
>>> net = parse("(x: R) => f = box() { (y: R) => z = sin(y) -> z } y = eval(f, x) -> y")
>>> print(show(simplify(net)))
(x1: R) =>
  v1 = sin(x1)
  -> v1
"""

import random
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from lineara.diagrams.net import Net, Node, Wire, copied, every_net, fresh_id, nodes_in
from lineara.diagrams.refuse import refusing
from lineara.diagrams.stepper import Step
from lineara.diagrams.types import R, Type
from lineara.facts.gc_pause import uncollected

SMALL = 40  # nodes of a body that may be there twice
Changed = Iterable[Wire | Node]
Schema = Callable[["Simplifier", Node], Changed | None]


@uncollected
@refusing
def simplify(net: Net, finite_math: bool = False, rng: random.Random | None = None) -> Net:
    """A smaller diagram that computes the same; the given one stays as it is.

    >>> from lineara.diagrams.parse import parse
    >>> len(simplify(parse("(x: R) => a, b = copy(x) c = sin(b) drop(c) -> a")).nodes)
    0
    """
    s = Simplifier(net, finite_math)
    for _ in s.steps(rng):
        pass
    return s.net


class Simplifier:
    """A diagram that is being simplified; `log` has what has been done."""

    def __init__(
        self, net: Net, finite_math: bool = False, schemas: Sequence[str] | None = None
    ) -> None:
        self.net: Net = copied(net)
        self.finite_math = finite_math
        self.log: list[Step] = []
        wanted = [n for n in SCHEMAS if n != "mul-zero" or finite_math]
        names = wanted if schemas is None else schemas
        self.at: dict[str, list[str]] = {}
        for name in names:
            for kind in SCHEMAS[name][0]:
                self.at.setdefault(kind, []).append(name)
        self.work: deque[Node] = deque(reversed(list(nodes_in(self.net))))
        self.waiting: set[int] = {node.id for node in self.work}

    def steps(self, rng: random.Random | None = None) -> Iterator[Step]:
        """Apply rules until none applies; with `rng` in an order that it chooses."""
        while self.work:
            if rng is not None:
                self.work.rotate(rng.randrange(len(self.work)))
            node = self.work.popleft()
            self.waiting.discard(node.id)
            if node.net.nodes.get(node.id) is not node:
                continue
            step = self.tried(node)
            if step is not None:
                yield step

    def tried(self, node: Node) -> Step | None:
        """The first rule that applies at a node, applied."""
        net, before = node.net, fresh_id()
        for name in self.at.get(node.kind, ()):
            changed = SCHEMAS[name][1](self, node)
            if changed is None:
                continue
            self.push(node)
            for item in changed:
                self.look(item)
            new_ids = []
            for i in reversed(net.nodes):
                if i < before:
                    break
                new_ids.append(i)
                for w in (*net.nodes[i].ins, *net.nodes[i].outs):
                    self.look(w)
            step = Step(len(self.log) + 1, name, net.path, node.id, tuple(new_ids))
            self.log.append(step)
            return step
        return None

    def look(self, item: Wire | Node) -> None:
        """A wire has other ends now, or a node is new."""
        if isinstance(item, Node):
            self.push(item)
            return
        for end in (item.source, item.target):
            if end is not None and isinstance(end[0], Node):
                self.push(end[0])
            elif end is not None and end[0].owner is not None:
                self.push(end[0].owner)

    def push(self, node: Node) -> None:
        """Look at a node again."""
        if node.id not in self.waiting and node.net.nodes.get(node.id) is node:
            self.waiting.add(node.id)
            self.work.append(node)


# --- the rules ------------------------------------------------------------------------------------


def source(w: Wire) -> Node | None:
    """The node that a wire comes from."""
    return w.source[0] if w.source is not None and isinstance(w.source[0], Node) else None


def target(w: Wire) -> Node | None:
    """The node that a wire goes to."""
    return w.target[0] if w.target is not None and isinstance(w.target[0], Node) else None


def _beta(s: Simplifier, node: Node) -> Changed | None:
    box = source(node.ins[0])
    if box is None or box.kind != "box":
        return None
    net, captured, args, outs = node.net, box.ins, node.ins[1:], node.outs
    inner = list(box.body.nodes.values())
    net.remove(node)
    net.remove(box)
    results = net.splice(box.body, (*captured, *args))
    for a, w in zip(results, outs, strict=True):
        net.join(a, w)
    return [*captured, *args, *results, *inner]


def _eta(s: Simplifier, node: Node) -> Changed | None:
    return _replaced(node.net, [node], node.ins) if only_evaluates(node) else None


def only_evaluates(box: Node) -> bool:
    """Whether a box applies the one function that it captures to its arguments, and does no more.

    What else computes a function within a box stays there: it may be an error, or work, that is
    not met unless the box is evaluated.
    """
    if box.kind != "box" or len(box.ins) != 1 or len(box.body.nodes) != 1:
        return False
    (inner,) = box.body.nodes.values()
    whole = [*inner.ins] == box.body.inputs and [*inner.outs] == box.body.outputs
    return inner.kind == "eval" and whole


def _gc(s: Simplifier, node: Node) -> Changed | None:
    node_before = source(node.ins[0])
    if node_before is None or node_before.kind == "copy":
        return None
    drops = [target(w) for w in node_before.outs]
    if not all([d is not None and d.kind == "drop" for d in drops]):
        return None
    net = node.net
    for d in drops:
        assert d is not None, "each output is dropped"
        net.remove(d)
    net.remove(node_before)
    for w in node_before.ins:
        net.add("drop", (w,))
    return []


def _counit(s: Simplifier, node: Node) -> Changed | None:
    copy = source(node.ins[0])
    if copy is None or copy.kind != "copy":
        return None
    net = node.net
    (kept,) = [w for w in copy.outs if w is not node.ins[0]]
    (x,) = copy.ins
    net.remove(node)
    net.remove(copy)
    net.join(x, kept)
    return [x]


def _dup(s: Simplifier, node: Node) -> Changed | None:
    node_before = source(node.ins[0])
    if node_before is None or node_before.kind not in ("const", "zero", "box"):
        return None
    if node_before.kind == "box" and not _worth_two(node_before):
        return None
    net, outs = node.net, node.outs
    net.remove(node)
    net.remove(node_before)
    pairs = [net.add("copy", (w,)) for w in node_before.ins]
    for i, w in enumerate(outs):
        bodies = [copied(b, net.meter) if i else b for b in node_before.bodies]
        (new,) = net.add(
            node_before.kind, [p[i] for p in pairs], data=node_before.data, bodies=bodies
        )
        net.join(new, w)
        for b in bodies:
            for inner in nodes_in(b):
                s.push(inner)
    return []


def _worth_two(box: Node) -> bool:
    """Whether a body is small enough to be there twice."""
    return smaller(box.body, SMALL)


def smaller(net: Net, limit: int) -> bool:
    """Whether a diagram has at most so many nodes, at all levels."""
    count = 0
    for n in every_net(net) if len(net.nodes) <= limit else [net]:
        count += len(n.nodes)
        if count > limit:
            return False
    return True


def _absorb(s: Simplifier, node: Node) -> Changed | None:
    node_before, port = next(
        (
            (node_before, port)
            for port, w in enumerate(node.ins)
            if (node_before := source(w))
            and node_before.kind in ("const", "zero", "box")
            and not node_before.ins
        ),
        (None, 0),
    )
    if node_before is None:
        return None
    net, body = node.net, node.body
    net.remove(node_before)
    inner = _uncaptured(node, port)
    bodies = node_before.bodies
    (new,) = body.add(node_before.kind, data=node_before.data, bodies=bodies)
    body.join(new, inner)
    return [new, *[n for b in bodies for n in nodes_in(b)]]


def _uncaptured(box: Node, port: int) -> Wire:
    """Take a capture away; the wire within is left without a source."""
    body, net = box.body, box.net
    box.ins[port].target = None
    box.ins = (*box.ins[:port], *box.ins[port + 1 :])
    for i, w in enumerate(box.ins):
        w.target = (box, i)
    inner = body.inputs.pop(port)
    inner.source = None
    for i, w in enumerate(body.inputs):
        w.source = (body, i)
    if not box.ins:
        net.springs[box.id] = box
    net.meter.touched += 2 + len(body.inputs)
    return inner


def _capture(s: Simplifier, node: Node) -> Changed | None:
    inside = [target(node.body.inputs[i]) for i in range(len(node.ins))]
    unused = [i for i, n in enumerate(inside) if n is not None and n.kind == "drop"]
    if not unused:
        return None
    port = unused[0]
    outer, drop = node.ins[port], inside[port]
    assert drop is not None, "what is not used is dropped"
    node.body.remove(drop)
    _uncaptured(node, port)
    node.net.add("drop", (outer,))
    return []


def _unpack_pack(s: Simplifier, node: Node) -> Changed | None:
    pack = source(node.ins[0])
    if pack is None or pack.kind != "pack" or len(pack.ins) != len(node.outs):
        return None
    net = node.net
    net.remove(node)
    net.remove(pack)
    for a, w in zip(pack.ins, node.outs, strict=True):
        net.join(a, w)
    return pack.ins


def _add_pack(s: Simplifier, node: Node) -> Changed | None:
    a, b = map(source, node.ins)
    if a is None or b is None or a.kind != "pack" or b.kind != "pack":
        return None
    if [w.type for w in a.ins] != [w.type for w in b.ins]:
        return None
    net = node.net
    for n in (node, a, b):
        net.remove(n)
    sums = [net.add("add", pair)[0] for pair in zip(a.ins, b.ins, strict=True)]
    (e,) = net.add("pack", sums)
    net.join(e, node.outs[0])
    return [e, *sums]


def _is_zero(node: Node | None) -> bool:
    return node is not None and node.kind == "zero"


def _zero(s: Simplifier, node: Node) -> Changed | None:
    net = node.net
    from_ = [source(w) for w in node.ins]
    if node.kind == "add":
        for i, z in enumerate(from_):
            if _is_zero(z):
                return _replaced(net, [z, node], [node.ins[1 - i]])
        return None
    if node.kind == "unpack" and _is_zero(from_[0]):
        return _replaced(net, [from_[0], node], _zeros(net, node.data))
    if node.kind == "op" and node.name == "negative" and _is_zero(from_[0]):
        return _replaced(net, [from_[0], node], _zeros(net, [R]))
    both = node.kind == "sel" and _is_zero(from_[1]) and _is_zero(from_[2])
    if both or (node.kind == "route" and _is_zero(from_[1])):
        t, c = node.outs[0].type, node.ins[0]
        changed = _replaced(net, [*from_[1:], node], _zeros(net, [t] * len(node.outs)))
        net.add("drop", (c,))
        return changed
    return None


def _zeros(net: Net, types: Iterable[Type]) -> list[Wire]:
    return [net.add("zero", data=t)[0] for t in types]


def _replaced(net: Net, gone: Sequence[Any], by: Sequence[Wire]) -> Changed:
    """Other wires for the outputs of the last of the nodes, all of which go."""
    outs = gone[-1].outs
    for n in gone:
        net.remove(n)
    for a, w in zip(by, outs, strict=True):
        net.join(a, w)
    return by


def _chosen(s: Simplifier, node: Node) -> Changed | None:
    c = source(node.ins[0])
    if c is None or c.kind != "const":
        return None
    net, rest = node.net, node.ins[1:]
    if node.kind == "sel":
        kept, lost = rest if c.data else rest[::-1]
        changed = _replaced(net, [c, node], [kept])
        net.add("drop", (lost,))
        return changed
    nothing = _zeros(net, [rest[0].type])
    return _replaced(net, [c, node], [*rest, *nothing] if c.data else [*nothing, *rest])


def _mul_one(s: Simplifier, node: Node) -> Changed | None:
    return _factor(node, lambda n: n.kind == "const" and type(n.data) is float and n.data == 1.0)


def _factor(node: Node, wanted: Callable[[Node], bool]) -> Changed | None:
    if node.name != "multiply":
        return None
    for i, w in enumerate(node.ins):
        c = source(w)
        if c is not None and wanted(c) and node.ins[1 - i].type == node.outs[0].type:
            return _replaced(node.net, [c, node], [node.ins[1 - i]])
    return None


def _mul_zero(s: Simplifier, node: Node) -> Changed | None:
    if node.name != "multiply":
        return None
    for i, w in enumerate(node.ins):
        c = source(w)
        if c is not None and _is_nought(c):
            net, other = node.net, node.ins[1 - i]
            changed = _replaced(net, [c, node], _zeros(net, [node.outs[0].type]))
            net.add("drop", (other,))
            return changed
    return None


def _is_nought(node: Node) -> bool:
    return _is_zero(node) or (node.kind == "const" and type(node.data) is float and node.data == 0)


SCHEMAS: dict[str, tuple[tuple[str, ...], Schema]] = {
    "beta": (("eval",), _beta),
    "eta": (("box",), _eta),
    "gc": (("drop",), _gc),
    "counit": (("drop",), _counit),
    "dup": (("copy",), _dup),
    "absorb": (("box",), _absorb),
    "capture": (("box",), _capture),
    "unpack-pack": (("unpack",), _unpack_pack),
    "add-pack": (("add",), _add_pack),
    "zero": (("add", "unpack", "op", "sel", "route"), _zero),
    "chosen": (("sel", "route"), _chosen),
    "mul-one": (("op",), _mul_one),
    "mul-zero": (("op",), _mul_zero),
}
