r"""Abstraction from the adjunction (- ⊗ X) -| (X ⊸ -): boxes unfolded, (BR), (η), (Lamb) derived.

A box is sugar: `coeval`, then its body in the frame (X ⊸ -)  [Diagrams].

    (BR)    (\x. t) u = t[x/u]             by naturality of eval and a triangle
    (η)     \x. f x = f                    by a triangle
    (Lamb)  (\y. t)[x/u] = \y. (t[x/u])    by naturality of coeval

Each law is a step in place, with a line in the log, so a derivation can be read and drawn.
"""

from collections.abc import Callable, Sequence

from lineara.diagrams.functors import (
    Adjunction,
    Beside,
    Functor,
    Functors,
    Hom,
    Labelled,
    Natural,
    closed,
    framed,
    functor_of,
    strictly,
)
from lineara.diagrams.net import Net, Node, Wire, compose, copied, every_net, identity, topological
from lineara.diagrams.simplify import only_evaluates, source, target
from lineara.diagrams.stepper import Step
from lineara.diagrams.types import Arrow, Types, show_all
from lineara.errors import DiagramError


class Frames:
    """A diagram whose functorial frames are rewritten by their laws; `log` has the steps.

    >>> from lineara.diagrams.parse import parse
    >>> net = parse("(c: R, u: R) => f = box(c) { (c: R, x: R) => y = multiply(c, x) -> y }"
    ...             " z = eval(f, u) -> z")
    >>> s = Frames(net)
    >>> (evaluation,) = [n for n in s.net.nodes.values() if n.kind == "eval"]
    >>> s.br(evaluation)
    >>> [step.rule for step in s.log]
    ['unfold', 'tensor', 'composition', 'naturality', 'triangle']
    >>> len(s.net.nodes)
    1
    """

    def __init__(self, net: Net, seen: Callable[[Step, Net], None] | None = None) -> None:
        self.net: Net = copied(net)
        self.log: list[Step] = []
        self.seen = seen  # is shown the diagram after each step, which it may copy

    def put(
        self, rule: str, nodes: Sequence[Node], ins: Sequence[Wire], outs: Sequence[Wire], by: Net
    ) -> list[Node]:
        """Put a diagram in place of nodes: from the wires `ins` to the wires `outs`."""
        net = nodes[0].net
        wanted = tuple([w.type for w in ins]), tuple([w.type for w in outs])
        if (by.takes, by.gives) != wanted:
            raise DiagramError(
                f"{rule}: ({show_all(by.takes)}) to ({show_all(by.gives)}) cannot stand where "
                f"({show_all(wanted[0])}) goes to ({show_all(wanted[1])})"
            )
        order = topological(by)
        for node in nodes:
            net.remove(node)
        for a, w in zip(net.splice(by, ins), outs, strict=True):
            net.join(a, w)
        new_ids = tuple([n.id for n in order])
        step = Step(len(self.log) + 1, rule, net.path, nodes[-1].id, new_ids)
        self.log.append(step)
        if self.seen is not None:
            self.seen(step, self.net)
        return order

    # --- the laws of a functor ----------------------------------------------------------------

    def identity(self, node: Node) -> None:
        """F[id] = id."""
        body = node.body
        _functor(node)
        if body.nodes or body.inputs != body.outputs:
            raise DiagramError(f"{node!r} has more within than bare wires")
        self.put("identity", [node], node.ins, node.outs, identity([w.type for w in node.ins]))

    def split(self, node: Node, n: int) -> list[Node]:
        """F[f ; g] = F[f] ; F[g], where f is the first n nodes of the body."""
        functor = _functor(node)
        first, second = cut(node.body, n)
        by = compose(framed((functor,), first), framed((functor,), second))
        return self.put("composition", [node], node.ins, node.outs, by)

    def merge(self, first: Node, second: Node) -> Node:
        """F[f] ; F[g] = F[f ; g]."""
        functor = _functor(first)
        if _functor(second) != functor:
            raise DiagramError(f"{first!r} and {second!r} are frames of two functors")
        _follows(first, second)
        by = framed((functor,), compose(first.body, second.body))
        (node,) = self.put("composition", [second, first], first.ins, second.outs, by)
        return node

    def beside(self, node: Node) -> None:
        """The frame (- ⊗ X) is its body beside bare wires."""
        if not isinstance(functor := _functor(node), Beside):
            raise DiagramError(f"{node!r} is no tensor with some wires")
        self.put("tensor", [node], node.ins, node.outs, functor.meaning(node.body))

    # --- boxes --------------------------------------------------------------------------------

    def unfold(self, box: Node) -> list[Node]:
        """A box as coeval, then (X ⊸ -) of its body."""
        x = _bound(box)
        captured = tuple([w.type for w in box.ins])
        by = compose(closed(x).unit.at(captured), framed((Hom(x),), copied(box.body)))
        return self.put("unfold", [box], box.ins, box.outs, by)

    def fold(self, coeval: Node, frame: Node) -> Node:
        """Back."""
        if coeval.name != "coeval" or not isinstance(_functor(frame), Hom):
            raise DiagramError(f"{coeval!r}, {frame!r}: a box is coeval and a frame (X ⊸ -)")
        _follows(coeval, frame)
        by = Net()
        ins = [by.input(w.type) for w in coeval.ins]
        by.output(*by.add("box", ins, bodies=[copied(frame.body)]))
        (node,) = self.put("fold", [frame, coeval], coeval.ins, frame.outs, by)
        return node

    def br(self, evaluation: Node) -> None:
        r"""(BR): (\x. t) u = t[x/u], in five steps, at an eval that follows on a box."""
        box = source(evaluation.ins[0]) if evaluation.kind == "eval" else None
        if box is None or box.kind != "box":
            raise DiagramError(f"{evaluation!r} is no evaluation of a box, so (BR) has no place")
        x, body = _bound(box), box.body
        adjunction = closed(x)
        captured = tuple([w.type for w in box.ins])
        coeval, hom = self.unfold(box)
        # coeval ; (X ⊸ -)[t] beside the argument is (- ⊗ X) of it
        one = compose(adjunction.unit.at(captured), framed((Hom(x),), copied(body)))
        by = compose(framed((Beside(x),), one), adjunction.counit.at(body.gives))
        nodes = [coeval, hom, evaluation]
        ins, outs = [*coeval.ins, *evaluation.ins[1:]], evaluation.outs
        frame, evaluation = self.put("tensor", nodes, ins, outs, by)
        first, second = self.split(frame, 1)
        nodes = self.natural(adjunction.counit, second, evaluation)
        self.triangle(adjunction, first, nodes[0])

    def eta(self, box: Node) -> None:
        r"""(η): \x. f x = f, in two steps, at a box that only evaluates what it captures."""
        if not only_evaluates(box):
            raise DiagramError(
                f"{box!r} is no box that only evaluates what it captures, so (η) has no place"
            )
        adjunction = closed(_bound(box))
        self.triangle(adjunction, *self.unfold(box))

    # --- natural transformations, adjunctions, the tensor ---------------------------------------

    def natural(self, theta: Natural, first: Node, second: Node) -> list[Node]:
        """F[f] ; θ_B = θ_A ; G[f], from the left to the right; without a frame f is one node."""
        f = _within(first, theta.source)
        _need_node(theta, second)
        _follows(first, second)
        by = compose(theta.at(f.takes), framed(theta.target, f))
        return self.put("naturality", [first, second], first.ins, second.outs, by)

    def conatural(self, theta: Natural, first: Node, second: Node) -> list[Node]:
        """F[f] ; θ_B = θ_A ; G[f], from the right to the left."""
        f = _within(second, theta.target)
        _need_node(theta, first)
        _follows(first, second)
        by = compose(framed(theta.source, f), theta.at(f.gives))
        return self.put("naturality", [second, first], first.ins, second.outs, by)

    def triangle(self, by: Adjunction, first: Node, second: Node) -> None:
        """L[η] ; ε = id, or η ; R[ε] = id."""
        frame, inner, other = (
            (first, by.unit, by.counit) if functor_of(first) else (second, by.counit, by.unit)
        )
        wanted = by.left if frame is first else by.right
        within = _only(frame.body) if functor_of(frame) == wanted else None
        if within is None or not _is(inner, within):
            raise DiagramError(f"{frame!r} is not {wanted.label} of {inner.name}")
        _need_node(other, second if frame is first else first)
        _follows(first, second)
        types = [w.type for w in first.ins]
        self.put("triangle", [first, second], first.ins, second.outs, identity(types))

    def strictly(self, node: Node) -> list[Node]:
        """A tensor of two as ungroup, the two side by side, group."""
        if node.name != "⊗" or len(node.bodies) != 2:
            raise DiagramError(f"{node!r} is no tensor of two diagrams")
        _, by = strictly(*map(copied, node.bodies))
        return self.put("strict", [node], node.ins, node.outs, by)

    def cancel(self, first: Node, second: Node) -> None:
        """group ; ungroup = id, or ungroup ; group = id."""
        if {first.name, second.name} != {"group", "ungroup"}:
            raise DiagramError(f"{first!r} and {second!r} are not group and ungroup")
        _follows(first, second)
        types = [w.type for w in first.ins]
        if types != [w.type for w in second.outs]:
            raise DiagramError(f"{first!r} groups other wires than {second!r}")
        self.put("strict", [first, second], first.ins, second.outs, identity(types))

    def lamb(self, node: Node, box: Node) -> Node:
        r"""(Lamb): (\y. t)[x/u] = \y. (t[x/u]), in five steps: u moves into the box.

        All that u gives is captured by the box.
        """
        if box.kind != "box" or any([target(w) is not box for w in node.outs]) or not node.outs:
            raise DiagramError(
                f"{node!r} gives something to others than {box!r}; only what a box alone needs "
                "moves into it"
            )
        x, body = _bound(box), copied(box.body)
        adjunction = closed(x)
        before, ins = _before(node, box)
        coeval, hom = self.unfold(box)
        # naturality of coeval: u ; coeval = coeval ; (X ⊸ -)[u ⊗ X]
        by = compose(adjunction.unit.at(before.takes),
                     framed((Hom(x), Beside(x)), copied(before)))  # fmt: skip
        coeval, moved = self.put("naturality", [node, coeval], ins, coeval.outs, by)
        whole = self.merge(moved, hom)
        inner = next(n for n in whole.body.nodes.values() if functor_of(n) == Beside(x))
        self.beside(inner)
        assert whole.body.gives == body.gives, "the function gives what it gave"
        return self.fold(coeval, whole)


def cut(net: Net, n: int) -> tuple[Net, Net]:
    """The first n nodes of a diagram, and the rest."""
    early = {node.id for node in topological(net)[:n]}
    first = copied(net)
    ids = dict(zip([m.id for m in net.nodes.values()], first.nodes.values(), strict=True))
    late = [node for i, node in ids.items() if i not in early]
    second = Net(first.meter)
    # the border: wires that the rest, or the interface, needs of the first part
    needed = [w for node in late for w in node.ins if source(w) not in late]
    through = [w for w in first.outputs if source(w) not in late]
    border = list(dict.fromkeys([*needed, *through]))
    for node in late:
        first.remove(node)
    outs = list(first.outputs)
    for w in outs:
        w.target = None
    first.outputs.clear()
    fresh = {w: second.input(w.type, w.linear) for w in border}
    for node in late:
        second.place(node, [fresh.get(w, w) for w in node.ins], node.outs)
    second.output(*[fresh.get(w, w) for w in outs])
    first.output(*border)
    return first, second


def unfolded(net: Net) -> Net:
    """The diagram without functorial frames: what they stand for, all at once.

    A DiagramError for a functor of which only the name is known, and for what is grouped at an
    interface.

    >>> from lineara.diagrams.functors import both, group, ungroup
    >>> from lineara.diagrams.parse import parse
    >>> from lineara.diagrams.types import R
    >>> f = parse("(x: R) => y = sin(x) -> y")
    >>> whole = compose(group((R,), (R,)), both(f, identity((R,))), ungroup((R,), (R,)))
    >>> len(unfolded(whole).nodes)
    1
    """
    s = Frames(net)
    while True:
        frames = [n for m in every_net(s.net) for n in m.nodes.values() if n.kind == "frame"]
        wholes = [n for n in frames if n.name not in ("group", "ungroup")]
        if not frames:
            return s.net
        if wholes:
            node = wholes[-1]  # what lies within comes after
            s.put("unfold", [node], node.ins, node.outs, _meaning(node))
            continue
        pairs = [(m, n) for n in frames if (m := source(n.ins[0])) in frames and m is not None]
        if not pairs:
            raise DiagramError(f"{frames[0]!r} stands at an interface; group the wires there too")
        s.cancel(*pairs[0])


def _meaning(node: Node) -> Net:
    if node.name == "⊗" and len(node.bodies) == 2:
        return strictly(*map(copied, node.bodies))[1]
    if node.name == "coeval" and not node.bodies:
        (f,) = [w.type for w in node.outs]
        assert isinstance(f, Arrow), "coeval gives a function"
        net = Net()
        ins = [net.input(w.type) for w in node.ins]
        net.output(*net.add("box", ins, bodies=[identity(f.target)]))
        return net
    functor = functor_of(node) or Labelled(node.name)
    return functor.meaning(node.bodies[0] if node.bodies else Net())


def check_monoidal(net: Net) -> None:
    """Raise a DiagramError unless every wire is used once: a linear λ-term, monoidal closed.

    >>> from lineara.diagrams.parse import parse
    >>> check_monoidal(parse("(x: R) => y = sin(x) -> y"))
    """
    for level in every_net(net):
        for node in level.nodes.values():
            if node.kind in ("copy", "drop"):
                often = "twice" if node.kind == "copy" else "not at all"
                (w,) = node.ins
                raise DiagramError(
                    f"{node!r} uses a wire of the type {show_all([w.type])} {often}; a monoidal "
                    "closed diagram uses every wire once, and copy and drop belong to a cartesian "
                    "closed one"
                )


def _functor(node: Node) -> Functor:
    functor = functor_of(node)
    if functor is None:
        raise DiagramError(f"{node!r} is no frame of a functor; a frame has one body")
    return functor


def _only(net: Net) -> Node | None:
    """The one node between the interfaces, if that is all."""
    if len(net.nodes) != 1:
        return None
    (node,) = net.nodes.values()
    return node if [*node.ins] == net.inputs and [*node.outs] == net.outputs else None


def _within(node: Node, functors: Functors) -> Net:
    """The body of a frame in frames; without functors the node itself, as a diagram."""
    if not functors:
        net = Net()
        ins = [net.input(w.type) for w in node.ins]
        net.output(*_same(net, node, ins))
        return net
    inner: Node | None = node
    for f in functors[:-1]:
        inner = _only(inner.body) if inner is not None and functor_of(inner) == f else None
    if inner is None or functor_of(inner) != functors[-1]:
        wanted = " of ".join([f.label for f in functors])
        raise DiagramError(f"{node!r} is no frame {wanted}")
    return inner.body


def _same(net: Net, node: Node, ins: Sequence[Wire]) -> tuple[Wire, ...]:
    """The same node in another diagram."""
    return net.add(node.kind, ins, name=node.name, data=node.data,
                   bodies=[copied(b) for b in node.bodies],
                   gives=[w.type for w in node.outs])  # fmt: skip


def _is(theta: Natural, node: Node) -> bool:
    return node.kind == "eval" if theta.name == "eval" else node.name == theta.name


def _need_node(theta: Natural, node: Node) -> None:
    if not _is(theta, node):
        raise DiagramError(f"{node!r} is not {theta.name}")


def _follows(first: Node, second: Node) -> None:
    if first.outs != second.ins:
        raise DiagramError(
            f"{second!r} does not follow on {first!r}; all the wires of the first go to the "
            "second, in order"
        )


def _bound(box: Node) -> Types:
    if box.kind != "box":
        raise DiagramError(f"{box!r} is no box")
    return box.body.takes[len(box.ins) :]


def _before(node: Node, box: Node) -> tuple[Net, list[Wire]]:
    """The part of a node that goes before a box, beside its other captures; and the inputs."""
    net = Net()
    ins: list[Wire] = []
    inputs: dict[Wire, Wire] = {}
    for w in [v for c in box.ins for v in (node.ins if source(c) is node else (c,))]:
        if w not in inputs:
            inputs[w] = net.input(w.type, w.linear)
            ins.append(w)
    outs = _same(net, node, [inputs[w] for w in node.ins])
    to = dict(zip(node.outs, outs, strict=True))
    net.output(*[to.get(w) or inputs[w] for w in box.ins])
    return net, ins
