"""The pullback diagram of an operation, from its declared fact: (x1, ..., xn, s) ↦ Jg(x)ᵀ s.

A scalar operation states its partials as expressions; each becomes nodes, times s.  For arrays the
declared rule is run on wires, and what it applies is the diagram.  No derivative is written here.

>>> from lineara.diagrams.show import show
>>> print(show(pullback("multiply", (R, R))))
(x1: R, x2: R, x3: R) =>
  v1, v2 = copy(x3)
  v3 = multiply(v2, x1)
  v4 = multiply(v1, x2)
  -> v4, v3
"""

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from lineara.diagrams import operations
from lineara.diagrams.draft import Draft
from lineara.diagrams.from_programs import diagram_of
from lineara.diagrams.lowering import lowered
from lineara.diagrams.net import Net, Wire
from lineara.diagrams.operations import Held, Params
from lineara.diagrams.types import R, Type, Types, array_of, moves, tans
from lineara.errors import DiagramError
from lineara.facts.box import ArrayBox, Outer
from lineara.facts.hints import Shaped, Value
from lineara.facts.primitive import Constant, Elementwise, General, HigherOrder
from lineara.facts.symbol import Sym
from lineara.linear_a import syntax as ir
from lineara.linear_a.calls import Call
from lineara.linear_a.check import type_of_leaf
from lineara.linear_a.program import Program
from lineara.ops.scipy.special import Special
from lineara.passes.derivatives import reverse
from lineara.passes.erase import erase
from lineara.passes.names import JVP, LIN, NL, E, T


def pullback(name: str, takes: Sequence[Type], params: Params = ()) -> Net:
    """The pullback diagram; it is shared, so copy it before changing it."""
    return _pullback(name, tuple(takes), Held(params))


@functools.cache
def _pullback(name: str, takes: Types, held: Held) -> Net:
    primitive = operations.primitive(name)
    gives = operations.gives(name, takes, held.params)
    d = Draft()
    xs = [d.input(t) for t in takes]
    ss = [d.input(t) for t in tans(gives)]
    active = [i for i, t in enumerate(takes) if moves(t)]
    if not ss or isinstance(primitive, Constant):
        back: list[Wire | None] = [None] * len(active)
    elif isinstance(primitive, Elementwise) and all([t == R for t in takes]):
        back = _of_partials(d, primitive, xs, ss[0])
    elif isinstance(primitive, General):
        back = _of_program(d, primitive, xs, ss, held.params)
    else:
        back = _of_rule(d, primitive, xs, ss, active, held.params)
    outs = []
    for i, w in zip(active, back, strict=True):
        outs.append(d.add("zero", data=takes[i])[0] if w is None else w)
    d.prune(*outs)
    return d.done(*outs)


@functools.cache
def orders(name: str) -> tuple[int, ...]:
    """The arguments of which an operation declares nothing: orders, branches, degrees.

    >>> orders("jv"), orders("sin"), orders("copysign")
    ((0,), (), ())
    """
    p = operations.primitive(name)
    return tuple(p.without) if isinstance(p, Special) else ()


def _of_partials(d: Draft, p: Elementwise, xs: list[Wire], s: Wire) -> list[Wire | None]:
    known: dict[str, Wire] = dict(zip(p.ARGS, xs, strict=False))

    def wire(e: Shaped) -> Wire:
        """The value of an expression; one that is written twice is computed once."""
        key = e.source() if isinstance(e, Sym) else repr(float(e))
        if key not in known:
            if not isinstance(e, Sym):
                known[key] = d.const(float(e))
            elif e.head == "y":
                known[key] = d.op(p.name, *xs)
            elif e.head == "where":
                known[key] = d.add("sel", [wire(a) for a in e.args])[0]
            else:
                known[key] = d.op(e.head, *[wire(a) for a in e.args])
        return known[key]

    def times(e: Shaped) -> Wire | None:
        if isinstance(e, Sym):
            if e.head != "where" or not p.selects:
                return d.op("multiply", s, wire(e))
            c, *sides = e.args  # what is not selected is a structural zero
            chosen = [times(side) or d.add("zero", data=R)[0] for side in sides]
            return d.add("sel", (wire(c), *chosen))[0]
        if e == 0:
            return None
        if e == 1:
            return s
        return d.op("negative", s) if e == -1 else d.op("multiply", s, wire(e))

    return [times(e) for e in p.expressions()]


class _Traced(ArrayBox):
    """A wire as the rules of primitives see it."""

    __slots__ = ("draft", "wire")
    depth = 2_000_000

    def __init__(self, draft: Draft, wire: Wire) -> None:
        self.draft = draft
        self.wire = wire

    @property
    def shape(self) -> tuple[int, ...]:
        return array_of(self.wire.type).shape  # type: ignore[arg-type]

    @property
    def dtype(self) -> np.dtype:
        return array_of(self.wire.type).dtype  # type: ignore[arg-type]

    def interpret(self, primitive: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """One more node."""
        held, places = operations.marked(tuple(params.items()), _Traced)
        wires = [self._wire(a) for a in (*args, *places)]
        given = held or None
        return _Traced(self.draft, self.draft.add("op", wires, name=primitive.name, data=given)[0])

    def _wire(self, a: Value) -> Wire:
        if isinstance(a, _Traced):
            return a.wire
        return self.draft.const(a if isinstance(a, float | np.ndarray) else np.asarray(a)[()])

    def __getitem__(self, at: Any) -> Any:
        return self.interpret(operations.primitive("index"), (self,), {"at": at})


def _of_rule(
    d: Draft, primitive: Any, xs: list[Wire], ss: list[Wire], active: list[int], params: Params
) -> list[Wire | None]:
    if isinstance(primitive, HigherOrder) or len(ss) > 1:
        raise DiagramError(
            f"{primitive.name} has no pullback diagram; take the gradient of the program that the "
            "diagram was made of"
        )
    boxes = tuple([_Traced(d, x) for x in xs])
    n = len(boxes) - operations.marks(params)
    given = dict(operations.unmarked(params, boxes[n:]))
    y = primitive(*boxes[:n], **given)
    joint = primitive.linearize(y, boxes[:n], tuple(active), given, None)
    cotangents = [_product(b) for b in joint.back(_Traced(d, ss[0]))]
    if any([b is not None and not isinstance(b, _Traced) for b in cotangents]):
        raise DiagramError(f"{primitive.name}: its cotangent is no array that a wire could carry")
    return [None if b is None else b.wire for b in cotangents]


def _of_program(
    d: Draft, primitive: object, xs: list[Wire], ss: list[Wire], params: Params
) -> list[Wire | None]:
    """A fact that is a jvp, transposed as a program is: by the passes of Linear A."""
    types = [array_of(w.type) for w in xs]  # type: ignore[arg-type]
    formals = tuple([ir.Var(f"x{i}", t) for i, t in enumerate(types)])
    leaf = ir.Prim(formals, primitive, dict(params))
    result_types = type_of_leaf(Program({}, {}), leaf).xs
    program = Program({}, {"f": ir.Def("f", formals, result_types, (), ir.Block((), leaf))})
    program = erase(reverse(program, "f"), "f" + JVP + LIN + T)
    nl, back = program.defs["f" + JVP + NL], program.defs["f" + JVP + LIN + T + E]
    *ys, tape = [ir.Var(f"y{i}", t) for i, t in enumerate(nl.results)]
    bars = tuple([ir.Var(f"s{i}", v.type) for i, v in enumerate(back.xs[1:])])
    calls = (ir.Let((*ys, tape), Call(formals, (nl.name,))), ir.Let((), ir.drop(*ys)))
    body = ir.Block(calls, Call((tape, *bars), (back.name,)))
    whole = ir.Def("pullback", (*formals, *bars), back.results, (), body)
    net = lowered(diagram_of(program.with_(whole), "pullback").net)
    return [*d.inline(net, [*xs, *ss])]


def _product(b: _Traced) -> Any:
    """A cotangent that waits to be summed with others, as the product that it is."""
    if not isinstance(b, Outer):
        return b
    swap, times = operations.primitive("permute_dims"), operations.primitive("matmul")
    return times(b.u, swap(b.v, axes=(1, 0)))
