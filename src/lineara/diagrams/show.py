"""The canonical text of a diagram: isomorphic diagrams have the same text  [Diagrams].

    (x: R) =>
      x1, x2 = copy(x)
      m = box(x1) { (c: R, y: R) => p = multiply(c, y) -> p }
      -> ...

Lines are in topological order, the smallest number of the canonical walk first.
"""

import heapq
from collections.abc import Mapping, Sequence
from types import EllipsisType
from typing import Any

import numpy as np

from lineara.diagrams.canonical import Canon, canonicals
from lineara.diagrams.net import Net, Node, Wire
from lineara.diagrams.node_kinds import KINDS
from lineara.diagrams.refuse import refusing
from lineara.diagrams.types import Arrow, Base, E, Foreign, Stack, Type, of_array, show_all
from lineara.diagrams.types import show as show_type
from lineara.facts.hints import Shaped, Value
from lineara.facts.types import type_of

Names = Mapping[Wire, str]


@refusing
def show(net: Net, names: Names | None = None) -> str:
    """The text of a diagram; `names` may name wires, the others are numbered.

    >>> from lineara.diagrams.net import identity
    >>> from lineara.diagrams.types import R
    >>> print(show(identity((R, R))))
    (x1: R, x2: R) =>
      -> x1, x2
    """
    return "\n".join(_Printer(names or {}, canonicals(net)).lines(net))


def ordered(net: Net, canon: Canon) -> list[Node]:
    """The nodes in topological order, the canonical number deciding where there is a choice."""
    place = {node: i for i, node in enumerate(canon.nodes)}
    missing = {
        node: sum([w.source is not None and isinstance(w.source[0], Node) for w in node.ins])
        for node in canon.nodes
    }
    ready = [place[node] for node, n in missing.items() if n == 0]
    heapq.heapify(ready)
    nodes = []
    while ready:
        node = canon.nodes[heapq.heappop(ready)]
        nodes.append(node)
        for w in node.outs:
            if w.target is not None and isinstance(w.target[0], Node):
                after = w.target[0]
                missing[after] -= 1
                if missing[after] == 0:
                    heapq.heappush(ready, place[after])
    return nodes


class _Printer:
    """Names for wires, and lines."""

    def __init__(self, names: Names, canons: dict[int, Canon]) -> None:
        self.canons = canons
        self.names: dict[Wire, str] = dict(names)
        self.taken = set(names.values())
        self.last: dict[str, int] = {}

    def name(self, w: Wire, stem: str = "") -> str:
        """The name of a wire: x for an input, f for a function, e for a bundle, v for others."""
        if w not in self.names:
            stem = stem or _stem(w.type)
            n = self.last.get(stem, 0) + 1
            while f"{stem}{n}" in self.taken:
                n += 1
            self.last[stem] = n
            self.names[w] = f"{'~' * w.linear}{stem}{n}"
        return self.names[w]

    def lines(self, net: Net) -> list[str]:
        """The lines of a diagram, without recursion."""
        done: list[str] = []
        open_: list[Any] = [(net, 0, "", "")]
        while open_:
            item = open_.pop()
            if isinstance(item, str):
                done.append(item)
                continue
            n, depth, before, after = item
            pad = "  " * depth
            binders = [f"{self.name(w, _input_stem(w))}: {show_type(w.type)}" for w in n.inputs]
            todo: list[Any] = [f"{before or pad}({', '.join(binders)}) =>"]
            for node in ordered(n, self.canons[id(n)]):
                todo += self.line(node, depth + 1)
            outs = ", ".join([self.name(w) for w in n.outputs])
            todo.append(f"{pad}  ->{' ' * bool(outs)}{outs}{after}")
            open_ += reversed(todo)
        return done

    def line(self, node: Node, depth: int) -> list[Any]:
        """A node: one line, or more if it has bodies."""
        pad = "  " * depth
        ins = ", ".join([self.name(w) for w in node.ins])
        typed = node.kind == "frame"
        outs = [
            f"{self.name(w)}: {show_type(w.type)}" if typed else self.name(w) for w in node.outs
        ]
        left = f"{', '.join(outs)} = " if outs else ""
        head = f"{pad}{left}{show_kind(node)}({ins})"
        if not node.bodies:
            return [head]
        items: list[Any] = []
        for i, body in enumerate(node.bodies):
            last = i == len(node.bodies) - 1
            before = f"{head} {{ " if i == 0 else ""
            items.append((body, depth, before, " }" if last else " } {"))
        return items


def _stem(t: Type) -> str:
    if isinstance(t, Arrow):
        return "f"
    return "e" if t == E else "v"


def _input_stem(w: Wire) -> str:
    return "x" if isinstance(w.type, Base | Stack | Foreign) and w.type != E else ""


def show_kind(node: Node) -> str:
    """The head of a line: `multiply`, `add[R]`, `const[2.0]`, `scan[3, 1, fwd]`."""
    held = _held(node)
    if node.kind == "op" and (node.name in KINDS and not held):
        return node.name if node.name == "add" else f'op["{node.name}"]'
    head = node.name if node.kind == "op" else node.kind
    return f"{head}[{held}]" if held else head


def _held(node: Node) -> str:
    match node.kind:
        case "const":
            return constant(node.data)
        case "op":
            return ", ".join([f"{k}={value(v)}" for k, v in node.data or ()])
        case "add":
            return show_type(node.outs[0].type)
        case "zero":
            return show_type(node.data)
        case "unpack" | "ORANGE" | "GREEN":
            return show_all(node.data)
        case "scan":
            n, carries, reverse = node.data
            return f"{n}, {carries}, {'rev' if reverse else 'fwd'}"
        case "frame":
            held = "" if node.data is None else f", {value(node.data)}"
            return f'"{node.name}"{held}'
        case "BLUE" if node.data is not None:
            return str(node.data)
    return ""


def constant(x: Shaped) -> str:
    """A number as it is, an array with its type: `f64[2]: [1.0, 2.0]`."""
    if isinstance(x, bool | int | float):
        return value(x)
    return f"{show_type(of_array(type_of(x)))}: {value(np.asarray(x).tolist())}"


def value(v: Value) -> str:
    """A parameter: numbers, strings, tuples, lists, slices, dtypes, `...`, None."""
    match v:
        case None:
            return "none"
        case bool() | np.bool_():
            return "true" if bool(v) else "false"
        case int() | np.integer():
            return repr(int(v))
        case float() | np.floating():
            return repr(float(v))
        case complex():
            return f"complex({v.real!r}, {v.imag!r})"
        case str():
            return f'"{v}"'
        case EllipsisType():
            return "..."
        case slice(start=start, stop=stop, step=step):
            return f"slice({value(start)}, {value(stop)}, {value(step)})"
        case np.dtype():
            return f'dtype("{v.name}")'
        case tuple():
            return f"({_all(v)}{',' * (len(v) == 1)})"
        case list():
            return f"[{_all(v)}]"
        case np.ndarray():
            return f"array({constant(v)})"
    return f'"{v}"'


def _all(vs: Sequence[Any]) -> str:
    return ", ".join([value(v) for v in vs])
