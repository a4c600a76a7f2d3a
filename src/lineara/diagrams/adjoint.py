"""The adjoint of a diagram: what each node becomes on the way forward and on the way back.

    BLUE[f]   : hat B        -> hat B', back     the whole
    ORANGE[f] : hat B        -> hat B', resid    forward: values, and what the way back reads
    GREEN[f]  : resid, tan B' -> tan B           back: cotangents

`forward` and `backward` are the rules for one node [Diagrams]; `adjoint` applies them to all nodes
in one sweep, and `stepper.py` one at a time and in any order, with the same result.

>>> from lineara.diagrams.show import show
>>> from lineara.diagrams.parse import parse
>>> print(show(adjoint(parse("(x: R) => y = sin(x) -> y"))))
(x1: R) =>
  v1, v2 = copy(x1)
  v3 = sin(v1)
  f1 = box(v2) { (x2: R, x3: R) =>
    v4 = cos(x2)
    v5 = multiply(x3, v4)
    -> v5 }
  -> v3, f1
"""

from collections.abc import Sequence
from typing import NamedTuple

from lineara.diagrams.net import Meter, Net, Node, Wire, Wires, copied, topological
from lineara.diagrams.node_kinds import back
from lineara.diagrams.pullbacks import orders, pullback
from lineara.diagrams.refuse import refusing
from lineara.diagrams.types import B, E, R, Stack, Type, Types, hat, hats, moves, tan, tans
from lineara.errors import DiagramError
from lineara.facts.gc_pause import uncollected

__all__ = ["R", "adjoint", "backward", "forward", "residuals"]


class Inner(NamedTuple):
    """A box's body that is yet to be differentiated: into `net`, `packed` inputs in one bundle."""

    body: Net
    net: Net
    packed: int
    ins: Wires


def types_in(node: Node) -> Types:
    """The types of what a node takes."""
    return tuple([w.type for w in node.ins])


def types_out(node: Node) -> Types:
    """The types of what a node gives."""
    return tuple([w.type for w in node.outs])


def residuals(node: Node) -> Types:
    """resid(n): the types of what the way back reads of a node."""
    match node.kind:
        case "op":
            return hats(types_in(node))
        case "eval":
            return (_back_of(node),)
        case "sel" | "route":
            return (B,)
        case "scan":
            return (Stack(node.data[0], _back_of(node)),)
    return ()


def _back_of(node: Node) -> Type:
    """The type of the back-propagator that a transformed function gives beside its value."""
    return hat(node.ins[0].type).target[-1]  # type: ignore[union-attr]


# --- forward: ORANGE ------------------------------------------------------------------------------


def forward(net: Net, node: Node, ins: Sequence[Wire]) -> tuple[Wires, Wires, Inner | None]:
    """Emit what a node becomes: its values, its residuals, and the box that is left to do."""
    match node.kind:
        case "const" | "zero" | "copy" | "drop" | "add" | "pack" | "unpack":
            return net.add("", ins, like=node), (), None
        case "op":
            _fixed_orders(node)
            pairs = [net.add("copy", (x,)) for x in ins]
            values = net.add("op", [u for u, _ in pairs], like=node)
            return values, tuple([r for _, r in pairs]), None
        case "eval":
            *values, b = net.add("eval", ins)
            return tuple(values), (b,), None
        case "sel" | "route":
            c, r = net.add("copy", ins[:1])
            return net.add(node.kind, (c, *ins[1:])), (r,), None
        case "scan":
            *values, bs = net.add("scan", ins, data=node.data)
            return tuple(values), (bs,), None
        case "box":
            return _boxed(net, node, ins)
    raise DiagramError(
        f"{node.kind} {node.name!r} has no derivative rule; lineara.diagrams.lowered puts what it "
        "stands for in its place"
    )


def _fixed_orders(node: Node) -> None:
    """An order must be a constant: nothing is known of the derivative with respect to it."""
    for i in orders(node.name):
        w = node.ins[i]
        if moves(w.type) and not _is_constant(w):
            raise DiagramError(
                f"{node.name} has no derivative with respect to its argument {i + 1}, and what "
                "comes in there is computed; make it a constant"
            )


def _is_constant(w: Wire) -> bool:
    """Whether a wire comes from constants only, through copies, operations and captures."""
    open_, seen = [w], set()
    while open_:
        w = open_.pop()
        source, port = w.source or (None, 0)
        if isinstance(source, Net) and source.owner is not None and port < len(source.owner.ins):
            open_.append(source.owner.ins[port])
        elif isinstance(source, Node) and source.kind in ("const", "zero", "copy", "op"):
            if source not in seen:
                seen.add(source)
                open_ += source.ins
        else:
            return False
    return True


def _boxed(net: Net, node: Node, ins: Sequence[Wire]) -> tuple[Wires, Wires, Inner]:
    """box{h}(c..) becomes box{BLUE[h]}(c..)."""
    f, body = node.body, Net(net.meter)
    k = len(node.ins)
    inputs = tuple([body.input(hat(t)) for t in f.takes])
    back = Node(net, "box", bodies=[body])
    value = net.place(back, ins, [Wire(hat(node.outs[0].type))])
    return value, (), Inner(f, body, k, inputs)


# --- backward: GREEN ------------------------------------------------------------------------------


def backward(
    net: Net, node: Node, resid: Sequence[Wire], bars: Sequence[Wire | None]
) -> list[Wire | None]:
    """Emit the way back through a node, from the cotangents of its outputs to those of its inputs.

    What does not move has none, on both sides.
    """
    moving = tuple([s for s in bars if s is not None])
    match node.kind:
        case "const" | "zero":
            for s in moving:
                net.add("drop", (s,))
            return []
        case "copy":
            return [*(net.add("add", moving) if moving else (None,))]
        case "drop":
            t = tan(node.ins[0].type)
            return [None if t is None else net.add("zero", data=t)[0]]
        case "op":
            rule = copied(pullback(node.name, types_in(node), node.data or ()), net.meter)
            return _spread(net.splice(rule, (*resid, *moving)), types_in(node))
        case "eval":
            return _spread(net.add("eval", (*resid, *moving)), types_in(node))
        case "box":
            types = types_in(node)
            return _spread(net.add("unpack", moving, data=tans(types)), types)
        case "add":
            return [*net.add("copy", moving)]
        case "pack":
            return _spread(net.add("unpack", moving, data=tans(types_in(node))), types_in(node))
        case "unpack":
            return [*net.add("pack", moving)]
        case "sel":
            if not moving:
                net.add("drop", resid)
                return [None, None, None]
            return [None, *net.add("route", (*resid, *moving))]
        case "route":
            return [None, *net.add("sel", (*resid, *moving))]
        case "scan":
            return _scanned(net, node, resid, bars)
    raise AssertionError(f"the way forward has let {node.kind} through")


def _spread(wires: Sequence[Wire], types: Sequence[Type]) -> list[Wire | None]:
    """The wires at the types that move, None at the others."""
    moving = iter(wires)
    return [next(moving) if moves(t) else None for t in types]


def _scanned(
    net: Net, node: Node, resid: Sequence[Wire], bars: Sequence[Wire | None]
) -> list[Wire | None]:
    """Back through a scan: the other way round, over the back-propagators that it stacked.

    The bundle of the body's captures is one more carry, to which every round adds.
    """
    n, carries, reverse = node.data
    f = node.ins[0].type
    source, target = f.source, f.target  # type: ignore[union-attr]
    cs, ys = tans(target[:carries]), tans(target[carries:])
    body = Net(net.meter)
    e = body.input(E)
    given = [body.input(t) for t in cs]
    b = body.input(_back_of(node))
    rows = [body.input(t) for t in ys]
    more, *outs = body.add("eval", (b, *given, *rows))
    body.output(*body.add("add", (e, more)), *outs)
    (box,) = net.add("box", bodies=[body])
    (zero,) = net.add("zero", data=E)
    moving = [s for s in bars[:carries] if s is not None]
    stacks = [s for s in bars[carries:] if s is not None]
    out = net.add("scan", (box, zero, *moving, *resid, *stacks), data=(n, 1 + len(cs), not reverse))
    return _spread(out, (f, *source))


# --- one sweep ------------------------------------------------------------------------------------


@uncollected
@refusing
def adjoint(net: Net) -> Net:
    """BLUE of a diagram, all at once: its values, and a function from cotangents to cotangents.

    A diagram with functions among its inputs or outputs has bundles in the place of their
    cotangents, which only what made them can open; `probes.py` has what can be asked of them.

    >>> from lineara.diagrams.parse import parse
    >>> square = parse("(x: R) => a, b = copy(x) y = multiply(a, b) -> y")
    >>> from lineara.diagrams.evaluate import evaluate
    >>> len(adjoint(square).gives), evaluate(adjoint(square), 3.0)[0]
    (2, 9.0)
    """
    root = Net(Meter())
    ins = tuple([root.input(hat(t)) for t in net.takes])
    todo = [(Inner(net, root, 0, ins), None)]
    while todo:
        inner, packed = todo.pop()
        todo += [(nested, nested.packed) for nested in _sweep(inner, packed)]
    return root


def _sweep(inner: Inner, packed: int | None) -> list[Inner]:
    """One body, forward and back; the boxes in it that are left to do."""
    f, net, _, ins = inner
    order = topological(f)
    values: dict[Wire, Wire] = dict(zip(f.inputs, ins, strict=True))
    resid: dict[int, Wires] = {}
    left = []
    for node in order:
        outs, resid[node.id], within = forward(net, node, [values.pop(w) for w in node.ins])
        values.update(zip(node.outs, outs, strict=True))
        left += [within] if within else []
    body = Net(net.meter)
    within_body = {i: tuple([body.input(w.type) for w in resid[i]]) for i in f.nodes}
    captured = [w for i in f.nodes for w in resid[i]]
    bars: dict[Wire, Wire | None] = {}
    for w in f.outputs:
        t = tan(w.type)
        bars[w] = None if t is None else body.input(t)
    for node in reversed(order):
        sent = backward(body, node, within_body[node.id], [bars.pop(w) for w in node.outs])
        bars.update(zip(node.ins, sent, strict=True))
    cotangents = [bars.pop(w) for w in f.inputs]
    body.output(*bundled(body, cotangents, packed))
    k = Node(net, "box", bodies=[body])
    wire = Wire(back(f.takes, f.gives, packed))
    net.place(k, captured, [wire])
    net.output(*[values.pop(w) for w in f.outputs], wire)
    return left


def finished(frame: Node) -> Net:
    """The diagram that a BLUE, ORANGE or GREEN frame reduces to, with its inputs and outputs."""
    f, net = frame.body, Net(Meter())
    ins = [net.input(w.type) for w in frame.ins]
    order, left = topological(f), []
    if frame.kind == "BLUE":
        left = _sweep(Inner(f, net, 0, tuple(ins)), frame.data)
    elif frame.kind == "ORANGE":
        values: dict[Wire, Wire] = dict(zip(f.inputs, ins, strict=True))
        resid: dict[int, Wires] = {}
        for node in order:
            outs, resid[node.id], within = forward(net, node, [values.pop(w) for w in node.ins])
            values.update(zip(node.outs, outs, strict=True))
            left += [within] if within else []
        net.output(*[values.pop(w) for w in f.outputs], *[w for i in f.nodes for w in resid[i]])
    else:
        given = iter(ins)
        kept = {i: [next(given) for _ in residuals(n)] for i, n in f.nodes.items()}
        bars: dict[Wire, Wire | None] = {
            w: next(given) if moves(w.type) else None for w in f.outputs
        }
        for node in reversed(order):
            sent = backward(net, node, kept[node.id], [bars.pop(w) for w in node.outs])
            bars.update(zip(node.ins, sent, strict=True))
        net.output(*[s for w in f.inputs if (s := bars.pop(w)) is not None])
    while left:
        inner = left.pop()
        left += _sweep(inner, inner.packed)
    return net


def bundled(net: Net, bars: Sequence[Wire | None], packed: int | None) -> list[Wire]:
    """The cotangents that exist; the first `packed` of them as a bundle."""
    if packed is None:
        return [s for s in bars if s is not None]
    first = [s for s in bars[:packed] if s is not None]
    (e,) = net.add("pack", first)
    return [e, *[s for s in bars[packed:] if s is not None]]
