"""What a diagram computes.  Functions are closures or callables of Python, bundles are opaque.

>>> from lineara.diagrams.parse import parse
>>> net = parse("(x: R) => f = box(x) { (c: R, y: R) => p = multiply(c, y) -> p }"
...             " k = const[4.0]() z = eval(f, k) -> z")
>>> evaluate(net, 3.0)
(12.0,)
"""

from collections.abc import Callable, Generator, Sequence
from typing import Any

import numpy as np

from lineara.diagrams import operations
from lineara.diagrams.net import Net, Node, Wire, topological
from lineara.diagrams.refuse import refusing
from lineara.diagrams.types import Arrow, Base, E, R, Stack, Type, array_of, show_all, tans
from lineara.errors import DiagramError
from lineara.facts.hints import Value
from lineara.facts.types import is_number
from lineara.trampoline import run


class Closure:
    """A box with the values that it captured."""

    __slots__ = ("body", "captured")

    def __init__(self, body: Net, captured: tuple[Any, ...]) -> None:
        self.body: Net = body
        self.captured: tuple[Any, ...] = captured

    def __repr__(self) -> str:
        return f"<a function that captured {len(self.captured)} values>"


class Bundle:
    """What `pack` makes; `tag` says which, and bundles of different ones are never added."""

    __slots__ = ("parts", "tag")

    def __init__(self, parts: tuple[Any, ...], tag: int) -> None:
        self.parts: tuple[Any, ...] = parts
        self.tag: int = tag

    def __repr__(self) -> str:
        return f"<a bundle of {len(self.parts)}>"


class Nothing:
    """The zero of any bundle."""

    def __repr__(self) -> str:
        return "0"


NOTHING = Nothing()


class Probes:
    """A cotangent of a function: arguments, and cotangents of what it gave there.

    They are a free commutative monoid; `dF(delta) = sum of <s, delta(x)>` over them.
    """

    __slots__ = ("items",)

    def __init__(self, *items: tuple[tuple[Any, ...], tuple[Any, ...]]) -> None:
        self.items: tuple[tuple[tuple[Any, ...], tuple[Any, ...]], ...] = items

    def __add__(self, other: "Probes") -> "Probes":
        return Probes(*self.items, *other.items)

    def __repr__(self) -> str:
        return f"Probes({', '.join(map(repr, self.items))})"


def plus(a: object, b: Value) -> Any:
    """The sum of two cotangents.

    >>> plus([1.0, NOTHING], [2.0, NOTHING])
    [3.0, 0]
    """
    sums: list[Any] = []
    open_: list[Any] = [(a, b)]
    while open_:  # bundles hold bundles, as deep as closures capture closures
        item = open_.pop()
        if not isinstance(item, tuple):
            n, build = item
            sums[len(sums) - n :] = [build(sums[len(sums) - n :])]
            continue
        x, y = item
        if isinstance(x, Nothing) or isinstance(y, Nothing):
            sums.append(y if isinstance(x, Nothing) else x)
        elif isinstance(x, Bundle) and isinstance(y, Bundle):
            if x.tag != y.tag:
                raise DiagramError(
                    f"bundles of two different functions were added, those of pack#{x.tag} and "
                    f"pack#{y.tag}; a bundle is opened by what made it, and goes nowhere else"
                )
            open_.append([len(x.parts), _bundler(x.tag)])
            open_ += reversed(list(zip(x.parts, y.parts, strict=True)))
        elif isinstance(x, list):
            open_.append([len(x), list])
            open_ += reversed(list(zip(x, y, strict=True)))
        else:
            sums.append(x + y)
    return sums[0]


def _bundler(tag: int) -> Callable[[list[Any]], Bundle]:
    return lambda parts: Bundle(tuple(parts), tag)


def zero(t: Type) -> Any:
    """The zero of a type of cotangents."""
    if isinstance(t, Stack):
        return [zero(t.item) for _ in range(t.n)]
    if t == E:
        return NOTHING
    assert isinstance(t, Base), "cotangents are numbers, arrays, bundles and stacks"
    return 0.0 if t == R else np.zeros(array_of(t).shape, array_of(t).dtype)


def check_arguments(net: Net, args: Sequence[Any]) -> None:
    """Raise a DiagramError where a diagram cannot have these arguments."""
    if len(args) != len(net.inputs):
        raise DiagramError(f"the diagram has {len(net.inputs)} inputs, not {len(args)}")
    for w, a in zip(net.inputs, args, strict=True):
        if w.type == R and (isinstance(a, tuple | list) or not (is_number(a) or type(a) is bool)):
            raise DiagramError(f"an input of the diagram is R, a number, but {a!r} is given")


class Evaluator:
    """Runs diagrams and counts the operations."""

    def __init__(self) -> None:
        self.calls: int = 0
        self._orders: dict[int, tuple[Net, list[Node]]] = {}

    def run(self, net: Net, args: Sequence[Any]) -> tuple[Any, ...]:
        """The outputs at the inputs."""
        check_arguments(net, args)
        with np.errstate(all="ignore"):  # a gradient computes more than its value needs
            return run(self._net(net, args))

    def apply(self, f: Any, *args: Any) -> tuple[Any, ...]:
        """A function value at arguments."""
        with np.errstate(all="ignore"):
            return run(self._applied(f, args))

    def _order(self, net: Net) -> list[Node]:
        order = self._orders.get(id(net))
        if order is None or order[0] is not net:
            order = self._orders[id(net)] = (net, topological(net))
        return order[1]

    def _net(self, net: Net, args: Sequence[Any]) -> Generator[Any, Any, tuple[Any, ...]]:
        env: dict[Wire, Any] = dict(zip(net.inputs, args, strict=True))
        for node in self._order(net):
            ins = [env.pop(w) for w in node.ins]
            if node.kind == "eval":
                outs = yield self._applied(ins[0], ins[1:])
            elif node.kind == "scan":
                outs = yield self._scanned(node, ins)
            else:
                outs = self._node(node, ins)
            env.update(zip(node.outs, outs, strict=True))
        return tuple([env[w] for w in net.outputs])

    def _applied(self, f: Closure, args: Sequence[Any]) -> Generator[Any, Any, tuple[Any, ...]]:
        if isinstance(f, Closure):
            return (yield self._net(f.body, (*f.captured, *args)))
        y = f(*args)
        return y if isinstance(y, tuple) else (y,)

    def _scanned(self, node: Node, ins: Sequence[Any]) -> Generator[Any, Any, list[Any]]:
        n, k, reverse = node.data
        f, carries, stacks = ins[0], ins[1 : 1 + k], ins[1 + k :]
        rows: list[list[Any]] = [[] for _ in node.outs[k:]]
        for i in reversed(range(n)) if reverse else range(n):
            outs = yield self._applied(f, (*carries, *[x[i] for x in stacks]))
            carries = outs[:k]
            for row, y in zip(rows, outs[k:], strict=True):
                row.append(y)
        return [*carries, *[row[::-1] if reverse else row for row in rows]]

    def _node(self, node: Node, ins: Sequence[Any]) -> Sequence[Any]:
        match node.kind:
            case "const":
                return (node.data,)
            case "op":
                self.calls += 1
                return operations.evaluate(node.name, ins, node.data or ())
            case "copy":
                return ins[0], ins[0]
            case "drop":
                return ()
            case "box":
                return (Closure(node.body, tuple(ins)),)
            case "add":
                return (plus(*ins),)
            case "zero":
                return (zero(node.data),)
            case "pack":
                return (Bundle(tuple(ins), node.held),)
            case "unpack":
                return self._opened(node, ins[0])
            case "sel":
                return (ins[1] if ins[0] else ins[2],)
            case "route":
                nothing = zero(node.outs[0].type)
                return (ins[1], nothing) if ins[0] else (nothing, ins[1])
        raise DiagramError(
            f"{node.label} cannot be evaluated; lineara.diagrams.lowered puts what it stands for "
            "in its place"
        )

    def _opened(self, node: Node, e: Any) -> Sequence[Any]:
        if isinstance(e, Nothing):
            return [zero(t) for t in node.data]
        if not isinstance(e, Bundle) or len(e.parts) != len(node.data):
            raise DiagramError(f"{node!r} opens {e!r}, which it did not make")
        return e.parts


@refusing
def evaluate(net: Net, *args: Any) -> tuple[Any, ...]:
    """The outputs of a diagram at its inputs.

    Raises DiagramError for as many or other inputs than it takes.

    >>> from lineara.diagrams.parse import parse
    >>> evaluate(parse("(x: R) => a, b = copy(x) y = multiply(a, b) -> y"), 3.0)
    (9.0,)
    """
    return Evaluator().run(net, args)


def gradient(net: Net, *args: Value) -> tuple[Any, ...]:
    """The cotangents of the inputs, from the adjoint of a diagram with one real output.

    Raises DiagramError for what is no diagram or no adjoint, and for one of other outputs.

    >>> from lineara.diagrams.adjoint import adjoint
    >>> from lineara.diagrams.parse import parse
    >>> gradient(adjoint(parse("(x: R) => a, b = copy(x) y = multiply(a, b) -> y")), 3.0)
    (6.0,)
    """
    if not isinstance(net, Net):
        raise DiagramError(
            f"gradient takes the adjoint of a diagram, and this is one {type(net).__name__}; draw "
            "it first, gradient(adjoint(lineara.diagram(f)), ...), or take lineara.grad of a "
            "function"
        )
    *values, back = net.gives or (E,)
    if back != Arrow(tans(values), tans(net.takes)):
        raise DiagramError(
            f"gradient takes an adjoint, whose last output is the way back, and this diagram goes "
            f"from ({show_all(net.takes)}) to ({show_all(net.gives)}); differentiate it first: "
            "gradient(adjoint(net), ...)"
        )
    if tans(values) != (R,):
        raise DiagramError(
            f"gradient is of one real output, and this adjoint has ({show_all(values)}); give a "
            "cotangent for each that moves: cotangents(net, args, bars), of the diagram itself"
        )
    machine = Evaluator()
    *_, way_back = machine.run(net, args)
    return machine.apply(way_back, 1.0)
