"""A program as a hypernet: closures are boxes, loops scans, and a choice selects a function."""

import numpy as np

from lineara.crosscheck import language
from lineara.crosscheck.language import Program, Term, free
from lineara.diagrams.draft import Draft
from lineara.diagrams.net import Net, Wire
from lineara.diagrams.types import Arrow, Base, R, Type, of_array
from lineara.facts.types import ArrayType

Wires = list[Wire]


def flat(t: language.Type) -> list[Type]:
    """The wires of a type."""
    match t:
        case language.Real():
            return [R]
        case language.Array(n):
            return [_array(n)]
        case language.Two(left, right):
            return flat(left) + flat(right)
        case language.Arrow(source, target):
            return [Arrow(tuple(flat(source)), tuple(flat(target)))]


def _array(n: int) -> Base:
    return of_array(ArrayType((n,), np.dtype(float)))


def diagram_of(program: Program) -> Net:
    """The diagram, whose inputs are those of the program.

    >>> from lineara.diagrams.show import show
    >>> x = language.var("x", language.R)
    >>> square = language.op("multiply", x, x)
    >>> print(show(diagram_of(Program((("x", language.R),), square, (0.5,)))))
    (x1: R) =>
      v1, v2 = copy(x1)
      v3 = multiply(v1, v2)
      -> v3
    """
    d = Draft()
    scope = {name: [d.input(w) for w in flat(t)] for name, t in program.inputs}
    return d.done(*_wires(program.body, scope, d))


def _wires(e: Term, scope: dict[str, Wires], d: Draft) -> Wires:
    match e.head:
        case "var":
            return scope[e.held]
        case "num":
            return [d.const(e.held)]
        case "lam":
            assert isinstance(e.type, language.Arrow)
            return [_box(e.parts[0], [(e.held, e.type.source)], scope, d)]
        case "let":
            bound, body = e.parts
            return _wires(body, {**scope, e.held: _wires(bound, scope, d)}, d)
        case "if":
            a, b, *sides = e.parts
            asked = d.op("less", *_wires(a, scope, d), *_wires(b, scope, d))
            boxes = [_box(s, [], scope, d) for s in sides]
            return list(d.add("eval", d.add("sel", (asked, *boxes))))
    parts = [_wires(p, scope, d) for p in e.parts]
    every = [w for p in parts for w in p]
    match e.head:
        case "op":
            return list(d.add("op", every, name=e.held))
        case "app":
            return list(d.add("eval", every))
        case "pair":
            return every
        case "first":
            return every[: len(flat(e.type))]
        case "second":
            return every[-len(flat(e.type)) :]
        case "loop":
            return list(d.add("scan", every, data=(e.held, len(every) - 1, False)))
        case "sum":
            params = (("axis", (0,)), ("keepdims", False))
            return list(d.add("op", every, name="sum", data=params))
        case "index":
            return list(d.add("op", every, name="index", data=(("at", (e.held,)),)))
    return list(d.add("op", every, name="stack" if e.head == "stack" else "matmul"))


def _box(
    body: Term, bound: list[tuple[str, language.Type]], scope: dict[str, Wires], d: Draft
) -> Wire:
    names = [x for x in free(body) if x not in dict(bound)]
    inner = Draft()
    within = {x: [inner.input(w.type) for w in scope[x]] for x in names}
    within |= {x: [inner.input(w) for w in flat(t)] for x, t in bound}
    outs = _wires(body, within, inner)
    captured = [w for x in names for w in scope[x]]
    return d.add("box", captured, bodies=[inner.done(*outs)])[0]
