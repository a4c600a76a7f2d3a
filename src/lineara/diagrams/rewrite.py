"""Double-pushout rewriting with convex matches: rules are pairs of diagrams  [Diagrams].

A match takes the nodes of the left side to different nodes of one level, wires to wires, and is
convex: no path leaves it and comes back.  Then the match is taken out and the right side put in on
the same border.  A box matches a box with the same body; a box of which the body is one frame
`"?name"` matches any body, and stands for it on the right.

>>> from lineara.diagrams.show import show
>>> from lineara.diagrams.parse import parse
>>> left, right = parse("(x: R) => y = sin(x) -> y"), parse("(x: R) => y = cos(x) -> y")
>>> net = parse("(x: R) => y = tanh(x) z = sin(y) -> z")
>>> print(show(rewritten(net, [Rule("sin-cos", left, right)])))
(x1: R) =>
  v1 = tanh(x1)
  v2 = cos(v1)
  -> v2
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from lineara.diagrams.canonical import canonical, held
from lineara.diagrams.net import Net, Node, Wire, copied, every_net, fresh_id
from lineara.diagrams.refuse import refusing
from lineara.diagrams.stepper import Step
from lineara.errors import DiagramError


@dataclass(frozen=True, eq=False)
class Rule:
    """Two diagrams with the same interface; `both` if it may be used in either direction."""

    name: str
    left: Net
    right: Net
    finite_math: bool = False
    both: bool = False


class Match(NamedTuple):
    """Where a left side is in a level: nodes by nodes, wires by wires, bodies by names."""

    net: Net
    nodes: dict[Node, Node]
    wires: dict[Wire, Wire]
    bodies: dict[str, Net]


def metavariable(body: Net) -> str | None:
    """The name that a body stands for, if it is one frame `"?name"` between its interfaces."""
    if len(body.nodes) != 1:
        return None
    (node,) = body.nodes.values()
    whole = list(node.ins) == body.inputs and list(node.outs) == body.outputs
    return node.name if node.kind == "frame" and node.name.startswith("?") and whole else None


# --- matching -------------------------------------------------------------------------------------


def matches(left: Net, net: Net, convex: bool = True) -> Iterator[Match]:
    """The matches of a left side in one level; with `convex` False also those that must not be."""
    order = _connected(left)
    open_: list[tuple[int, Match]] = [(0, Match(net, {}, {}, {}))]
    while open_:
        i, match = open_.pop()
        if i == len(order):
            if not convex or is_convex(match):
                yield match
            continue
        more = [m for n in _candidates(order[i], match) if (m := _extended(order[i], n, match))]
        open_ += [(i + 1, m) for m in reversed(more)]


def _connected(left: Net) -> list[Node]:
    """The nodes of a left side, each beside one before it where that is possible."""
    order: list[Node] = []
    seen: set[Node] = set()
    for first in left.nodes.values():
        open_ = [first]
        while open_:
            node = open_.pop()
            if node in seen:
                continue
            seen.add(node)
            order.append(node)
            for w in (*node.ins, *node.outs):
                for end in (w.source, w.target):
                    if end is not None and isinstance(end[0], Node):
                        open_.append(end[0])
    return order


def _candidates(node: Node, match: Match) -> list[Node]:
    """The nodes of the level that may be this one: the one at the end of a wire, or all."""
    for side in ("ins", "outs"):
        for w in getattr(node, side):
            if w in match.wires:
                real = match.wires[w]
                end = real.target if side == "ins" else real.source
                return [end[0]] if end is not None and isinstance(end[0], Node) else []
    return list(match.net.nodes.values())


def _extended(node: Node, real: Node, match: Match) -> Match | None:
    """The match with one node more, or None."""
    if real in match.nodes.values() or (node.kind, node.name) != (real.kind, real.name):
        return None
    if (node.kind != "pack" and held(node.data) != held(real.data)) or len(node.bodies) != len(
        real.bodies
    ):
        return None
    if len(node.ins) != len(real.ins) or len(node.outs) != len(real.outs):
        return None
    wires = dict(match.wires)
    for a, b in zip((*node.ins, *node.outs), (*real.ins, *real.outs), strict=True):
        if a.type != b.type or wires.setdefault(a, b) is not b:
            return None
    bodies = dict(match.bodies)
    for a, b in zip(node.bodies, real.bodies, strict=True):
        name = metavariable(a)
        if name is None:
            if canonical(a).digest != canonical(b).digest:
                return None
        elif name in bodies:
            if canonical(bodies[name]).digest != canonical(b).digest:
                return None
        elif (a.takes, a.gives) != (b.takes, b.gives):
            return None
        else:
            bodies[name] = b
    return Match(match.net, {**match.nodes, node: real}, wires, bodies)


def is_convex(match: Match) -> bool:
    """Whether no path leaves the image and comes back: a walk from what it gives."""
    image = set(match.nodes.values())
    interior = {match.wires[w] for n in match.nodes for w in n.outs if _interior(w)}
    open_ = [w for n in image for w in n.outs if w not in interior]
    seen: set[Node] = set()
    while open_:
        end = open_.pop().target
        if end is None or not isinstance(end[0], Node) or end[0] in seen:
            continue
        if end[0] in image:
            return False
        seen.add(end[0])
        open_ += end[0].outs
    return True


def _interior(w: Wire) -> bool:
    return w.target is not None and isinstance(w.target[0], Node)


# --- rewriting ------------------------------------------------------------------------------------


def rewrite(rule: Rule, match: Match) -> None:
    """Take the match out and put the right side in, on the same border."""
    net = match.net
    ins = [match.wires[w] for w in rule.left.inputs]
    outs = [match.wires[w] for w in rule.left.outputs]
    fresh = {name: copied(body) for name, body in match.bodies.items()}
    for node in match.nodes.values():
        net.remove(node)
    right = copied(rule.right, net.meter)
    for n in every_net(right):
        for node in n.nodes.values():
            node.bodies = tuple([_filled(node, b, fresh) for b in node.bodies])
    new_wires = net.splice(right, ins)
    for a, w in zip(new_wires, outs, strict=True):
        net.join(a, w)


def _filled(node: Node, body: Net, bodies: dict[str, Net]) -> Net:
    name = metavariable(body)
    if name is None:
        return body
    filled = copied(bodies[name])
    filled.owner = node
    return filled


class Rewriter:
    """A diagram that rules are applied to; `log` has a Step for each application."""

    @refusing
    def __init__(self, net: Net, rules: Sequence[Rule]) -> None:
        self.net: Net = copied(net)
        self.rules = rules
        self.log: list[Step] = []

    def all(self) -> Iterator[tuple[Rule, Match]]:
        """What can be applied, at all levels."""
        for n in every_net(self.net):
            for rule in self.rules:
                for match in matches(rule.left, n):
                    yield rule, match

    def fire(self, rule: Rule, match: Match) -> Step:
        """Apply a rule at a match, which must be convex."""
        if not is_convex(match):
            shown = ", ".join([repr(n) for n in match.nodes.values()])
            raise DiagramError(
                f"{rule.name}: a path leaves the match {shown} and comes back, so putting the "
                "right side in would close a cycle; match what lies between as well"
            )
        before = fresh_id()
        path, first = match.net.path, min([n.id for n in match.nodes.values()])
        rewrite(rule, match)
        new_ids = tuple([i for i in match.net.nodes if i > before])
        step = Step(len(self.log) + 1, rule.name, path, first, new_ids)
        self.log.append(step)
        return step

    def steps(self, limit: int = 10_000, rng: random.Random | None = None) -> Iterator[Step]:
        """Apply rules while there is a match: the first one, or one that `rng` chooses."""
        while True:
            pair: Any = rng.choice(list(self.all()) or [None]) if rng else next(self.all(), None)
            if pair is None:
                return
            if len(self.log) >= limit:
                raise DiagramError(
                    f"{limit} applications of rules, and there is no end; rules that undo each "
                    "other are for `same`, or ask for more by limit="
                )
            yield self.fire(*pair)


@refusing
def rewritten(net: Net, rules: Sequence[Rule], limit: int = 10_000) -> Net:
    r"""The diagram after the rules have been applied as often as they match.

    >>> from lineara.diagrams.admit import read
    >>> from lineara.diagrams.parse import parse
    >>> text = "rule twice\n(x: R) => y = negative(x) z = negative(y) -> z\n==>\n(x: R) => -> x"
    >>> len(rewritten(parse("(x: R) => y = negative(x) z = negative(y) -> z"), read(text)).nodes)
    0
    """
    r = Rewriter(net, [rule for rule in rules if not rule.both])
    for _ in r.steps(limit):
        pass
    return r.net
