r"""βη-normal forms of diagrams: each is evaluated, and what it comes to is written down again.

A box is a closure, `eval` of one is its body, and `eval` of what is not known stands for itself.
Written down, a function is always a box (η), so \x. g x and g have one form; wires stand for
pairs, so these have their η too.  Forms are values of the cartesian form, where equal is the same
number: two diagrams without primitives are equal exactly if their forms are [Diagrams, §3].

>>> from lineara.diagrams.parse import parse
>>> c, left, right = normal_forms(
...     parse("(g: (R -> R)) => f = box(g) { (g: (R -> R), x: R) => y = eval(g, x) -> y } -> f"),
...     parse("(g: (R -> R)) => -> g"),
... )
>>> left == right
True
"""

from collections.abc import Generator, Sequence
from typing import Any

from lineara.diagrams.canonical import held
from lineara.diagrams.cartesian import Cartesian, cartesian
from lineara.diagrams.net import Net, Node, Wire, topological
from lineara.diagrams.node_kinds import REWRITING
from lineara.diagrams.types import Arrow, Type
from lineara.errors import DiagramError
from lineara.trampoline import run

LARGEST = 1_000_000  # nodes that are evaluated: no tower of powers bounds a normal form


class TooLarge(DiagramError):
    """A normal form needs more work than was allowed."""


def normal_forms(
    a: Net, b: Net, largest: int = LARGEST
) -> tuple[Cartesian, tuple[int, ...], tuple[int, ...]]:
    """The normal forms of two diagrams on the same inputs, in one cartesian form.

    Raises TooLarge if more than `largest` nodes are evaluated.
    """
    n = _Normaliser(largest)
    return n.values, n.outputs(a), n.outputs(b)


# A value is the number of an entry, which is nothing but itself, or ~i for the i-th closure.
_Values = tuple[int, ...]
_Run = Generator[Any, Any, _Values]


class _Normaliser:
    def __init__(self, largest: int) -> None:
        self.values = Cartesian()
        self.allowed = self.left = largest
        self.closures: list[tuple[Net, _Values]] = []
        self.numbers: dict[tuple[int, _Values], int] = {}  # of closures, by body and captures
        self.results: dict[tuple[int, _Values], _Values] = {}  # of closures that were applied
        self.written: dict[int, int] = {}  # functions as boxes
        self.orders: dict[int, list[Node]] = {}

    def outputs(self, net: Net) -> _Values:
        """The normal form of each output."""
        self.values.takes = net.takes
        inputs = [self.values.value("input", (), t, data=i) for i, t in enumerate(net.takes)]
        outputs = run(self.evaluated(net, inputs))
        self.values.outputs = run(self.as_entries(outputs, net.gives))
        return self.values.outputs

    def evaluated(self, net: Net, args: Sequence[int]) -> _Run:
        """The values of the outputs at values of the inputs."""
        if id(net) not in self.orders:
            self.orders[id(net)] = topological(net)
        at: dict[Wire, int] = dict(zip(net.inputs, args, strict=True))
        for node in self.orders[id(net)]:
            self.left -= 1
            if self.left < 0:
                raise TooLarge(f"a normal form takes more than {self.allowed} steps")
            ins = tuple([at[w] for w in node.ins])
            if node.kind == "copy":
                outs = ins * 2
            elif node.kind == "box":
                outs = (self.closure(node.body, ins),)
            elif node.kind == "eval":
                outs = yield self.applied(ins[0], ins[1:], node.ins[0].type)
            else:
                outs = yield self.kept(node, ins)
            at.update(zip(node.outs, outs, strict=True))
        return tuple([at[w] for w in net.outputs])

    def closure(self, body: Net, captured: _Values) -> int:
        """The value of a box; with the same captures it is the same."""
        key = id(body), captured
        if key not in self.numbers:
            self.closures.append((body, captured))
            self.numbers[key] = ~(len(self.closures) - 1)
        return self.numbers[key]

    def applied(self, f: int, args: _Values, t: Type) -> _Run:
        """A function on arguments: the body of a closure, or an eval that stays."""
        assert isinstance(t, Arrow), "a function is applied"
        if f >= 0:
            ins = yield self.as_entries(args, t.source)
            return tuple(self.values.outputs_of("eval", (f, *ins), t.target))
        key = f, args
        if key not in self.results:
            body, captured = self.closures[~f]
            self.results[key] = yield self.evaluated(body, (*captured, *args))
        return self.results[key]

    def kept(self, node: Node, args: _Values) -> _Run:
        """A node that stands for itself, on normal forms."""
        ins = yield self.as_entries(args, [w.type for w in node.ins])
        data = node.held
        if node.bodies:  # equal diagrams are equal in a frame; what is differentiated has its form
            within = cartesian if node.kind in REWRITING else self.inner
            data = (held(node.data), *[within(b).digest for b in node.bodies])
        given = tuple([w.type for w in node.outs])
        return tuple(self.values.outputs_of(node.kind, ins, given, node.name, data))

    def inner(self, net: Net) -> Cartesian:
        """The normal form of a diagram within a node."""
        n = _Normaliser(self.left)
        n.allowed = self.allowed
        n.outputs(net)
        self.left = n.left
        return n.values

    def as_entries(self, values: Sequence[int], types: Sequence[Type]) -> _Run:
        """Values as numbers of entries: functions as boxes, the rest as it is."""
        numbers = []
        for v, t in zip(values, types, strict=True):
            if isinstance(t, Arrow) and v not in self.written:
                binder, variables = self.values.binder(t.source)
                results = yield self.applied(v, tuple(variables), t)
                results = yield self.as_entries(results, t.target)
                self.written[v] = self.values.closed(binder, variables, results)
            numbers.append(self.written[v] if isinstance(t, Arrow) else v)
        return tuple(numbers)
