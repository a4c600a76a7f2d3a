"""The steps of a rewriting, one moment after the other, for whoever draws them.

>>> from lineara.diagrams.parse import parse
>>> rules = []
>>> _ = differentiated(parse("(x: R) => y = sin(x) -> y"), lambda m: rules.append(m.rule))
>>> rules
['', 'blue', 'O-op', 'O-id', 'G-op', 'G-id']
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from lineara.diagrams.abstraction_laws import Frames
from lineara.diagrams.net import Net, Node, every_net, nodes_in
from lineara.diagrams.one_step import Leaving
from lineara.diagrams.pictured import LAWS, RULES
from lineara.diagrams.simplify import Simplifier, only_evaluates, source, target
from lineara.diagrams.snapshot import snapshot
from lineara.diagrams.stepper import Derivation, Redex, Step
from lineara.diagrams.types import R
from lineara.errors import DiagramError

LONGEST = 6_000  # steps that are played where places stay
DRAWN = 300  # steps of which each is laid out by itself: of laws, and on a sheet


@dataclass(slots=True)
class Moment:
    """What there is after a step, and the step.

    rule, said    the rule that fired, and what it did, in words
    look          gives the diagram now; what comes next may change it
    erased        the id of what the step took away, as the moment before drew it
    made          the ids of the nodes that are new
    at            the node that a rule of differentiation fired at
    same          old ids and new ones of what is one thing, which moves
    leaving       of a step that changes nothing but what is at one node
    """

    rule: str
    said: str
    look: Callable[[], Net]
    erased: int = 0
    made: tuple[int, ...] = ()
    at: Node | None = None
    same: tuple[tuple[int, int], ...] = ()
    leaving: tuple[Derivation, Leaving, Step] | None = None
    wires: tuple[tuple[int, int], ...] = ()  # those that are gone, and what goes on in their places
    _net: Net | None = None

    @property
    def net(self) -> Net:
        """The diagram at this moment."""
        if self._net is None:
            self._net = self.look()
        return self._net


Visit = Callable[[Moment], object]
Fired = list[tuple[Redex, Step]]


def steps_of(net: Net) -> int:
    """How many steps a differentiation takes."""
    nodes = list(nodes_in(net))
    return 2 * len(nodes) + 3 * (1 + sum([n.kind == "box" for n in nodes]))


def short_enough(steps: int, longest: int) -> None:
    """Refuse more steps than can be played."""
    if steps > longest:
        raise DiagramError(
            f"there are {steps} steps or more, and a page plays up to {longest}; "
            "draw single steps (--step K), or differentiate a part of the diagram"
        )


def differentiated(net: Net, visit: Visit, longest: int = LONGEST) -> tuple[Derivation, Fired]:
    """Visit every moment of a differentiation; what there is at its end, and what fired."""
    short_enough(steps_of(net), longest)
    d, fired = Derivation(net), []
    visit(Moment("", "A diagram that is to be differentiated.", partial(snapshot, d)))
    while not d.done:
        redex = d.next
        erased, leaving = _drawn_as(d, redex), Leaving.of(redex)
        step = d.fire(redex)
        fired.append((redex, step))
        visit(
            Moment(
                step.rule,
                _said(step.rule, redex),
                partial(snapshot, d),
                erased,
                step.made,
                redex.node,
                _taken_over(redex, step),
                (d, leaving, step) if leaving else None,
                _went_on(d, redex),
            )
        )
    return d, fired


def applied(net: Net) -> Net:
    """An adjoint whose function that goes back is applied to 1: the gradient."""
    value, back = net.outputs
    net.outputs.clear()
    value.target = back.target = None
    net.add("drop", (value,))
    net.output(*net.add("eval", (back, *net.add("const", data=1.0))))
    return net


def simplified(adjoint: Net, visit: Visit, longest: int = LONGEST) -> None:
    """Visit every moment of the simplification of a gradient."""
    s = Simplifier(applied(adjoint))
    said = "The adjoint, applied to 1: the gradient. Now it is simplified."
    visit(Moment("", said, lambda: s.net, same=tuple(_alike(adjoint, s.net))))
    for step in s.steps():
        short_enough(step.number, longest)
        visit(Moment(step.rule, RULES.get(step.rule, ""), lambda: s.net, step.node, step.made))


def _alike(net: Net, copy: Net) -> Iterator[tuple[int, int]]:
    """The ids of the nodes and wires of a diagram, and those of a copy of it."""
    for a, b in zip(every_net(net), every_net(copy), strict=True):
        for w, v in zip(a.inputs, b.inputs, strict=True):
            yield w.id, v.id
        for n, m in zip(a.nodes.values(), b.nodes.values(), strict=True):
            yield n.id, m.id
            for w, v in zip(n.outs, m.outs, strict=True):
                yield w.id, v.id


def has_gradient(net: Net) -> None:
    """Refuse what has no gradient."""
    if net.gives != (R,):
        raise DiagramError("a gradient is of a diagram with one real output")


def _drawn_as(d: Derivation, redex: Redex) -> int:
    """The id under which a picture shows what fires: GREEN's nodes are copies."""
    if redex.node is None:
        return redex.frame.id
    return d.ghosts.get((redex.frame.id, redex.node.id), redex.node.id)


def _taken_over(redex: Redex, step: Step) -> tuple[tuple[int, int], ...]:
    """A node that leaves ORANGE is the one outside: it moves there."""
    node = redex.node
    if node is None or redex.frame.kind != "ORANGE":
        return ()
    for i in step.made:
        other = redex.frame.net.nodes[i]
        if (other.kind, other.name) == (node.kind, node.name):
            return ((node.id, i),)
    return ()


def _went_on(d: Derivation, redex: Redex) -> tuple[tuple[int, int], ...]:
    """The wires of a body that a node gives as it leaves ORANGE, and what they are outside."""
    if redex.node is None or redex.frame.kind != "ORANGE":
        return ()
    pair = redex.frame.pair.number
    return tuple([(w.id, d.became[pair, "ORANGE", w.id]) for w in redex.node.outs])


def _said(rule: str, redex: Redex) -> str:
    what = redex.node.label if redex.node is not None else redex.frame.kind
    return RULES.get(rule, "").format(what=what)


# --- laws -----------------------------------------------------------------------------------------


def derived(net: Net, law: str, visit: Visit) -> None:
    """Visit (BR), (η) or (Lamb) as it is derived from the laws of frames, wherever it has a place.

    Raises a DiagramError if it has none.
    """
    find, said = _LAWS[law]

    def seen(step: Step, now: Net) -> None:
        short_enough(step.number, DRAWN)
        visit(Moment(step.rule, LAWS[step.rule], lambda: now, step.node, step.made))

    frames = Frames(net, seen)
    if not find(frames.net):
        raise DiagramError(f"there is no place for the law here: {said}")
    visit(Moment("", said, lambda: frames.net))
    while match := find(frames.net):
        getattr(frames, law)(*match)


def _evaluated(net: Net) -> tuple[Node, ...] | None:
    """An eval that follows on a box."""
    evals = [n for n in nodes_in(net) if n.kind == "eval"]
    return next(((n,) for n in evals if (m := source(n.ins[0])) and m.kind == "box"), None)


def _evaluating(net: Net) -> tuple[Node, ...] | None:
    """A box that only evaluates what it captures."""
    return next(((n,) for n in nodes_in(net) if only_evaluates(n)), None)


def _captured(net: Net) -> tuple[Node, ...] | None:
    """A node that only a box needs, and that box."""
    for box in nodes_in(net):
        if box.kind == "box":
            for w in box.ins:
                node = source(w)
                if node is not None and all([target(v) is box for v in node.outs]):
                    return node, box
    return None


_LAWS = {
    "br": (_evaluated, "(BR): a box that is evaluated where it is made is its body."),
    "eta": (_evaluating, "(η): a box that only evaluates what it captures is what it captures."),
    "lamb": (_captured, "(Lamb): what only a box needs is computed within the box."),
}
