"""What the frames of a program stand for, as nodes that have derivative rules.

    call                its body                    read, accum, put    index, scatter, where
    cond, switch        sel of boxes, then eval     tuples              their wires
    scan                scan                        while               scan with rounds that rest

A loop over arrays is one over carries that reads and writes the rows.  What ends a program with an
error ends the diagram with one: an index where there is nothing stands before the value.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from lineara.diagrams.draft import Draft
from lineara.diagrams.names import branches_named
from lineara.diagrams.net import Net, Node, Wire, copied, every_net, topological
from lineara.diagrams.operations import MARK, marks
from lineara.diagrams.types import Base, Z, array_of
from lineara.errors import DiagramError
from lineara.facts.hints import Index

ROUNDS = 1000  # of a while loop, in which those after its end do nothing


def lowered(net: Net, rounds: int = ROUNDS) -> Net:
    """The diagram with its calls, branches and loops as nodes that have derivative rules.

    A while loop has at most `rounds` rounds; where it would go on evaluation is a BoundsError.
    Raises a DiagramError for a frame that has no such nodes: recursion, sums, and operations that
    are no nodes here.

    >>> from lineara import diagrams
    >>> from lineara.diagrams.from_programs import diagram_of
    >>> from lineara.linear_a.parse import parse
    >>> program = parse("def g(x: f64;) -> (f64;) = sin(x)\\ndef f(x: f64;) -> (f64;) = g(x;)")
    >>> print(diagrams.show(lowered(diagram_of(program, "f").net)))
    (x1: R) =>
      v1 = sin(x1)
      -> v1
    """
    lowered_net = copied(net)
    for n in reversed(every_net(lowered_net)):
        for node in list(n.nodes.values()):
            form = _form(node)
            if node.kind != "frame" or node.name == "untuple" or form == "tuple":
                continue
            replacement = _stands_for(node, form, rounds)
            outs, ins = node.outs, node.ins
            n.remove(node)
            _joined(n, n.splice(replacement, ins), outs)
    for n in every_net(lowered_net):
        for node in topological(n):
            if node.name == "untuple":
                _untupled(n, node)
    return branches_named(lowered_net)


def _form(node: Node) -> str:
    return node.data[0] if isinstance(node.data, tuple) and node.data else ""


def _joined(net: Net, replacement: Sequence[Wire], outs: Sequence[Wire]) -> None:
    for a, w in zip(replacement, outs, strict=True):
        net.join(a, w)


def _stands_for(node: Node, form: str, rounds: int) -> Net:
    match form:
        case "Call" if node.bodies:
            return node.bodies[0]
        case "Cond":
            return _branched(node)
        case "Switch":
            return _switched(node)
        case "Scan":
            return _looped(node)
        case "While":
            return _repeated(node, rounds)
        case "part":
            return _parted(node)
    word, _, _ = node.name.partition(" ")
    if word == "again":
        why = "a diagram has no recursion; write it as a loop"
    elif form in ("Case", "inj", "proj"):
        why = "no wire carries a sum; differentiate the program itself"
    else:
        why = (
            "differentiate the program itself, or write it with calls, branches, loops and "
            "operations that are nodes"
        )
    name = node.name.removesuffix(" with")
    raise DiagramError(f"{name} has no derivative rule here: {why}")


def _draft(node: Node) -> tuple[Draft, list[Wire]]:
    """A diagram that begins with what a node takes."""
    d = Draft()
    return d, [d.input(w.type).called(w.name, w.line) for w in node.ins]


def _untupled(net: Net, node: Node) -> None:
    """Cancel a tuple and its projections; calls are inlined by then."""
    source = node.ins[0].source
    if source is None or not isinstance(source[0], Node) or _form(source[0]) != "tuple":
        raise DiagramError("a tuple that comes from elsewhere has no wires here")
    ins, outs = source[0].ins, node.outs
    net.remove(node)
    net.remove(source[0])
    _joined(net, ins, outs)


# --- parts of arrays ------------------------------------------------------------------------------


def _parted(node: Node) -> Net:
    """A read, an accum or a put; a computed position is a wire."""
    d, ins = _draft(node)
    at = node.data[1]
    n = len(ins) - marks(at)
    x, *rest = ins[:n]
    if node.name == "read":
        return d.done(_index(d, x, at, ins[n:]), x)
    if rest and node.name == "put":
        return d.done(_written(d, x, rest[0], at, ins[n:]))
    if rest:
        return d.done(d.op("add", x, _scatter(d, rest[0], at, x, ins[n:])))
    nothing = d.const(np.zeros(_array(_index(d, x, at, ins[n:])).shape)[()])
    return d.done(_written(d, x, nothing, at, ins[n:]))


def _index(d: Draft, x: Wire, at: Index, places: Sequence[Wire]) -> Wire:
    return d.add("op", (x, *places), name="index", data=(("at", at),))[0]


def _scatter(d: Draft, y: Wire, at: Index, into: Wire, places: Sequence[Wire]) -> Wire:
    given = (("at", at), ("shape", _array(into).shape))
    return d.add("op", (y, *places), name="scatter", data=given)[0]


def _written(d: Draft, x: Wire, y: Wire, at: Any, places: Sequence[Wire]) -> Wire:
    """x with y at a position: elsewhere what is scattered is not looked at."""
    there = d.const(np.ones(_array(y).shape)[()])
    asked = d.op("equal", _scatter(d, there, at, x, places), d.const(0.0))
    return d.op("where", asked, x, _scatter(d, y, at, x, places))


def _array(w: Wire) -> Any:
    assert isinstance(w.type, Base), "parts are of arrays"
    return array_of(w.type)


# --- branches -------------------------------------------------------------------------------------


def _branched(node: Node) -> Net:
    d, (c, *args) = _draft(node)
    boxes = [d.add("box", bodies=[b])[0] for b in node.bodies]
    return d.done(*d.add("eval", (*d.add("sel", (c, *boxes)), *args)))


def _switched(node: Node) -> Net:
    """A switch as choices by number; a number out of range is the same error as in the program."""
    d, (i, *args) = _draft(node)
    n, t = len(node.bodies), _array(i).dtype.type
    beyond = d.op("where", d.op("less", i, d.const(t(0).item())), d.const(t(n).item()), i)
    which = _index(d, d.const(np.arange(n, dtype=t)), (f"{MARK}0",), [beyond])
    *others, chosen = [d.add("box", bodies=[b])[0] for b in node.bodies]
    for k, box in reversed(list(enumerate(others))):
        (chosen,) = d.add("sel", (d.op("equal", which, d.const(t(k).item())), box, chosen))
    return d.done(*d.add("eval", (chosen, *args)))


# --- loops ----------------------------------------------------------------------------------------


def _looped(node: Node) -> Net:
    n, direction, nk, nc, nlc = node.data[2]
    (body,) = node.bodies
    if not isinstance(n, int):
        raise DiagramError(
            f"{node.name} takes a number of rounds that is known when it runs, and has no "
            "derivative rule here: differentiate the program itself"
        )
    if len(body.inputs) > nk + nc + nlc or len(node.outs) > nc + nlc:
        return _over_arrays(node)
    d, ins = _draft(node)
    (f,) = d.add("box", ins[:nk], bodies=[body])
    return d.done(*d.add("scan", (f, *ins[nk:]), data=(n, nc + nlc, direction == "rev")))


def _over_arrays(node: Node) -> Net:
    """Carries are a number of the round, the carries, and the arrays that rounds write."""
    n, direction, nk, nc, nlc = node.data[2]
    (body,) = node.bodies
    d, ins = _draft(node)
    pure = sum([not w.linear for w in node.ins])
    ks, cs = ins[:nk], [*ins[nk : nk + nc], *ins[pure : pure + nlc]]
    xs = [*ins[nk + nc : pure], *ins[pure + nlc :]]
    first = sum([not w.linear for w in node.outs])
    stacks = [w for i, w in enumerate(node.outs) if not (i < nc or first <= i < first + nlc)]

    inner = Draft()
    own_ks, own_xs = [[inner.input(w.type) for w in ws] for ws in (ks, xs)]
    i = inner.input(Z)
    carries, written = [[inner.input(w.type) for w in ws] for ws in (cs, stacks)]
    at = (f"{MARK}0",)
    rows = [_index(inner, x, at, [i]) for x in own_xs]
    k = pure - nk - nc  # the rows that are not linear come before the linear carries
    given = [*own_ks, *carries[:nc], *rows[:k], *carries[nc:], *rows[k:]]
    outs_of_round = inner.inline(body, given)
    handed = [*outs_of_round[:nc], *outs_of_round[first : first + nlc]]
    arrays = [*outs_of_round[nc:first], *outs_of_round[first + nlc :]]
    written = [_written(inner, w, y, at, [i]) for w, y in zip(written, arrays, strict=True)]
    step = inner.op("add", i, inner.const(-1 if direction == "rev" else 1))

    (f,) = d.add("box", (*ks, *xs), bodies=[inner.done(step, *handed, *written)])
    empty = [d.const(np.zeros(_array(w).shape, _array(w).dtype)) for w in stacks]
    start = d.const(n - 1 if direction == "rev" else 0)
    carried = (start, *cs, *empty)
    _, *outs_of_round = d.add("scan", (f, *carried), data=(n, len(carried), False))
    k = len(cs)
    outs = [
        *outs_of_round[:nc],
        *outs_of_round[k : k + first - nc],
        *outs_of_round[nc:k],
        *outs_of_round[k + first - nc :],
    ]
    return d.done(*outs)


def _repeated(node: Node, rounds: int) -> Net:
    """Rounds that do nothing once the condition fails; if it never does there is no value."""
    (nk,) = node.data[2]
    asks, body = node.bodies
    taken = len(asks.inputs)
    d, ins = _draft(node)
    inner = Draft()
    own = [inner.input(w.type) for w in ins]
    boxes = [inner.add("box", bodies=[b])[0] for b in (body, _resting(own, nk))]
    (chosen,) = inner.add("sel", (*inner.inline(asks, own[:taken]), *boxes))
    round_ = inner.done(*inner.add("eval", (chosen, *own)))
    (f,) = d.add("box", ins[:nk], bodies=[round_])
    carries = d.add("scan", (f, *ins[nk:]), data=(rounds, len(ins) - nk, False))
    (more,) = d.inline(copied(asks), [*ins[:nk], *carries][:taken])
    place = d.op("where", more, d.const(1), d.const(0))
    over = _index(d, d.const(np.array([False])), (f"{MARK}0",), [place])
    return d.done(*[d.add("sel", (over, w, w))[0] for w in carries])


def _resting(own: Sequence[Wire], nk: int) -> Net:
    d = Draft()
    return d.done(*[d.input(w.type) for w in own][nk:])
