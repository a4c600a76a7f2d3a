"""The rules as pictures: what each takes and what it makes, computed by the rules themselves.

A rule of differentiation is shown at the node that fires, beside a frame `rest` for all that is
left; a rule of simplification at a small diagram, of which the right side is what it becomes.

>>> from lineara.diagrams.show import show
>>> found = pictured("counit", None)
>>> print(show(found.left), show(found.right), sep="\\n")
(x1: R) =>
  v1, v2 = copy(x1)
  drop(v2)
  -> v1
(x1: R) =>
  -> x1
"""

from collections.abc import Sequence
from typing import NamedTuple

from lineara.diagrams.adjoint import backward, forward, residuals, types_in, types_out
from lineara.diagrams.net import Net, Node, Wire, Wires
from lineara.diagrams.parse import parse
from lineara.diagrams.simplify import Simplifier
from lineara.diagrams.types import R, Type, hats, tan, tans

# What is said of a step; {what} is the node that fires.
RULES = {
    "blue": "BLUE splits: ORANGE runs forward, and a box holds GREEN, which runs back.",
    "O-op": "{what} leaves ORANGE, and keeps a copy of each of its inputs for the way back.",
    "O-eval": "eval leaves ORANGE: a function gives its value, and now its way back too.",
    "O-box": "A box leaves ORANGE; what is within it is to be differentiated in turn.",
    "O-sel": "sel leaves ORANGE, and keeps its condition for the way back.",
    "O-route": "route leaves ORANGE, and keeps its condition for the way back.",
    "O-scan": "scan leaves ORANGE, and stacks the ways back of its rounds.",
    "O-id": "Nothing is left in ORANGE: its wires are joined.",
    "G-op": "{what} leaves GREEN: its pullback sends the cotangent to its inputs.",
    "G-copy": "A copy leaves GREEN: the cotangents of its two ends add.",
    "G-drop": "A drop leaves GREEN: what is not used has the cotangent zero.",
    "G-eval": "eval leaves GREEN: the way back that it kept is applied.",
    "G-box": "A box leaves GREEN: its bundle is opened, one cotangent for each wire it captured.",
    "G-const": "A constant leaves GREEN: its cotangent is dropped.",
    "G-zero": "A zero leaves GREEN: its cotangent is dropped.",
    "G-add": "A sum leaves GREEN: its cotangent goes to both sides.",
    "G-pack": "pack leaves GREEN as unpack.",
    "G-unpack": "unpack leaves GREEN as pack.",
    "G-sel": "sel leaves GREEN: the cotangent goes to the side that was chosen.",
    "G-route": "route leaves GREEN: the cotangent of the side that was chosen goes on.",
    "G-scan": "scan leaves GREEN as a scan the other way over the ways back that it stacked.",
    "G-id": "Nothing is left in GREEN: its wires are joined.",
    "beta": "A box that is evaluated is what is within it.",
    "eta": "A box that only evaluates what it captures is what it captures.",
    "gc": "What nobody needs is not computed.",
    "counit": "A copy of which one end is dropped is a wire.",
    "dup": "A copy of something small is two of it.",
    "absorb": "What depends on nothing moves into the box that captures it.",
    "capture": "What a box does not use it does not capture.",
    "unpack-pack": "A bundle that is opened where it was packed is its wires.",
    "add-pack": "The sum of two bundles is the bundle of the sums.",
    "zero": "Zero is neutral, and what is made of zeros is zero.",
    "chosen": "A choice by a constant is the side that it chooses.",
    "mul-one": "Multiplication by 1 is a wire.",
    "mul-zero": "Multiplication by 0 is zero, where numbers are finite.",
}
LAWS = {  # of functorial frames
    "unfold": "A box is coeval, then its body in a frame X ⊸ -.",
    "fold": "coeval and a frame X ⊸ - are a box.",
    "tensor": "Side by side is the frame - ⊗ X, on one side with bare wires.",
    "composition": "F[f ; g] is F[f], then F[g].",
    "identity": "F of bare wires is bare wires.",
    "naturality": "What is done in a frame may be done before eval or coeval, or after.",
    "triangle": "coeval in a frame, then eval, is nothing but wires.",
    "strict": "group and ungroup cancel.",
}
for _kind in ("const", "zero", "copy", "drop", "add", "pack", "unpack"):
    RULES.setdefault(f"O-{_kind}", "{what} leaves ORANGE as it is.")

SIMPLIFIED = {
    "beta": '(c: R, x: R) => f = box(c) { (a: R, b: R) => y: R = frame["f"](a, b) -> y } '
    "y = eval(f, x) -> y",
    "eta": "(g: (R -> R)) => f = box(g) { (g: (R -> R), x: R) => y = eval(g, x) -> y } -> f",
    "gc": "(x: R) => y = sin(x) drop(y) ->",
    "counit": "(x: R) => a, b = copy(x) drop(b) -> a",
    "dup": "() => k = const[2.0]() a, b = copy(k) -> a, b",
    "absorb": '() => k = const[2.0]() f = box(k) { (a: R, b: R) => y: R = frame["f"](a, b) -> y }'
    " -> f",
    "capture": '(c: R) => f = box(c) { (a: R, b: R) => drop(a) y: R = frame["f"](b) -> y } -> f',
    "unpack-pack": "(x: R, y: R) => e = pack(x, y) a, b = unpack[R, R](e) -> a, b",
    "add-pack": "(a: R, b: R, c: R, d: R) => e = pack(a, b) g = pack(c, d) s = add[E](e, g) -> s",
    "zero": "(x: R) => z = zero[R]() y = add[R](z, x) -> y",
    "chosen": "(a: R, b: R) => c = const[true]() y = sel(c, a, b) -> y",
    "mul-one": "(x: R) => k = const[1.0]() y = multiply(k, x) -> y",
    "mul-zero": "(x: R) => k = const[0.0]() y = multiply(k, x) -> y",
}


class Pictured(NamedTuple):
    """A rule: from `left` to `right`."""

    left: Net
    right: Net


def pictured(rule: str, node: Node | None) -> Pictured | None:
    """A rule at a node, as two diagrams; None if there is no picture of it."""
    if rule in SIMPLIFIED:
        left = parse(SIMPLIFIED[rule])
        s = Simplifier(left, schemas=[rule])
        next(s.steps(), None)
        return Pictured(left, s.net)
    if rule == "blue":
        return Pictured(_framed("BLUE", _rest((R,), (R,), "f")), _split())
    if rule in ("O-id", "G-id"):
        wire = Net()
        wire.output(wire.input(R))
        return Pictured(_framed("ORANGE" if rule == "O-id" else "GREEN", _wire()), wire)
    if node is None:
        return None
    return _orange(node) if rule.startswith("O") else _green(node)


def _wire() -> Net:
    net = Net()
    net.output(net.input(R))
    return net


def _rest(takes: Sequence[Type], gives: Sequence[Type], name: str = "rest") -> Net:
    """A diagram that is one frame without anything in it."""
    net = Net()
    ins = [net.input(t) for t in takes]
    net.output(*net.add("frame", ins, name=name, gives=gives))
    return net


def _framed(kind: str, body: Net, data: Sequence[Type] = ()) -> Net:
    net = Net()
    takes = hats(body.takes) if kind != "GREEN" else (*data, *tans(body.gives))
    held = None if kind == "BLUE" else tuple(data)
    ins = [net.input(t) for t in takes]
    net.output(*net.add(kind, ins, data=held, bodies=[body]))
    return net


def _split() -> Net:
    """BLUE as ORANGE and a box with GREEN."""
    net = Net()
    y, r = net.add("ORANGE", (net.input(R),), data=(R,), bodies=[_rest((R,), (R,), "f")])
    (back,) = net.add("box", (r,), bodies=[_framed("GREEN", _rest((R,), (R,), "f"), (R,))])
    net.output(y, back)
    return net


def _like(net: Net, node: Node, ins: Wires) -> Node:
    """A node of the same kind; a box around one frame."""
    bodies = [_rest(b.takes, b.gives, "f") for b in node.bodies]
    other = Node(net, node.kind, node.name, node.data, bodies)
    net.place(other, ins, [Wire(t) for t in types_out(node)])
    return other


def _orange(node: Node) -> Pictured:
    """ORANGE{node ; rest} becomes the node, and ORANGE{rest}."""

    def whole() -> tuple[Net, Node]:
        f = Net()
        copy = _like(f, node, tuple([f.input(t) for t in types_in(node)]))
        more = f.input(R)
        f.output(*f.add("frame", (*copy.outs, more), name="rest", gives=(R,)))
        return f, copy

    left = _framed("ORANGE", whole()[0], residuals(node))
    right = Net()
    ins = [right.input(t) for t in left.takes]
    outs, resid, inner = forward(right, whole()[1], ins[:-1])
    if inner is not None:
        copy = inner.net.add("BLUE", inner.ins, data=inner.packed, bodies=[inner.body])
        inner.net.output(*copy)
    rest = _rest((*types_out(node), R), (R,))
    right.output(*right.add("ORANGE", (*outs, ins[-1]), data=(), bodies=[rest]), *resid)
    return Pictured(left, right)


def _green(node: Node) -> Pictured:
    """GREEN{rest ; node} becomes GREEN{rest}, and the way back through the node."""
    f = Net()
    *ins, more = f.add("frame", (f.input(R),), name="rest", gives=(*types_in(node), R))
    copy = _like(f, node, tuple(ins))
    f.output(*copy.outs, more)
    kept = residuals(node)
    left = _framed("GREEN", f, kept)
    right = Net()
    given = [right.input(t) for t in left.takes]
    resid, bars = given[: len(kept)], iter(given[len(kept) : -1])
    per_output = [None if tan(t) is None else next(bars) for t in types_out(node)]
    sent = [s for s in backward(right, copy, resid, per_output) if s is not None]
    rest = _rest((R,), (*types_in(node), R))
    right.output(*right.add("GREEN", (*sent, given[-1]), data=(), bodies=[rest]))
    return Pictured(left, right)
