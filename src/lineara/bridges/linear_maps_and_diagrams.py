"""The linear graph of a derivative as a string diagram: all its wires are linear.

An edge is a node with its weight or its operation, a node of the graph a wire: read by several
edges it is a copy, which a reverse sweep adds at.  Where the sweep sends less than the whole, the
label says what: `Rows ← index`; the title has the numbers or sizes, and the user's line, which is
known of a map once its function has run again.

A product of maps is one graph behind the other, a sum both side by side; the transpose has the
edges turned, so that a sweep back through it is a sweep ahead through the map.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lineara.diagnose import Lines
from lineara.diagrams.draft import Draft
from lineara.diagrams.net import Net, Wire
from lineara.diagrams.sweeps import told
from lineara.diagrams.types import Foreign, Type, of_array
from lineara.errors import DiagramError
from lineara.facts.hints import Leaf, Tree
from lineara.facts.types import ArrayType, show, type_of
from lineara.linear_map import LinearMap
from lineara.python.user_code import method, restored, seen
from lineara.tape.linear_graph import LIMIT, Edges, Sent, graph, known, shown_number
from lineara.tape.linearize import linearize
from lineara.trees import flatten

ASKED = "drawing a linear map"
Lined = Sequence[tuple[str, str]]  # the operation and the line of each entry of a tape
Map = LinearMap[Any, Any]


def diagram_of(L: Map, *cotangent: Any, lines: Lined = ()) -> Net:
    """The linear graph of a map, and a reverse sweep of the cotangent.

    Without a cotangent the sweep is of ones.  Raises DiagramError for a graph that is too large to
    be read.
    """
    if len(cotangent) > 1:
        raise DiagramError(
            f"diagram: one cotangent is swept back, and {len(cotangent)} were given; give those of "
            "several results as a tuple"
        )
    ones = [np.ones(t.shape, t.dtype)[()] for t in L.codomain.types]
    w = cotangent[0] if cotangent else L.codomain.dual.tree(ones)
    draft = Draft()
    ins = [draft.input(_type(t), linear=True) for t in L.domain.types]
    return draft.done(*_map(L, ins, w, draft, lines))


def _map(L: Map, ins: list[Wire], w: Tree, draft: Draft, lines: Lined = ()) -> list[Wire]:
    """The wires of the results of a map on those of its arguments; the sweep is of w."""
    if L.tape is not None:
        return _graph(L, ins, w, draft, lines)
    if L.terms:
        return _sum(L.terms, ins, w, draft)
    if L.factors:
        return _product(L.factors, L.scale, L, ins, w, draft)
    T = L.T
    if T.tape is not None:
        return _turned(L, ins, w, draft)
    if T.terms:
        return _sum([M.T for M in T.terms], ins, w, draft)
    scale = None if T.scale is None else np.conj(T.scale)
    return _product([M.T for M in reversed(T.factors)], scale, L, ins, w, draft)


def _sum(maps: Sequence[Map], ins: list[Wire], w: Tree, draft: Draft) -> list[Wire]:
    sides = [_map(M, ins, w, draft) for M in maps]
    return [_added(wires, draft) for wires in zip(*sides, strict=True)]


def _product(
    maps: Sequence[Map],
    scale: Leaf,
    L: Map,
    ins: list[Wire],
    w: Tree,
    draft: Draft,
) -> list[Wire]:
    """The graphs of the maps, of which the last is applied first, and of a multiple its factor."""
    sent = [] if scale is None else _scaled(L, scale, w)
    if sent:
        w = L.codomain.dual.tree(sent)
    swept = []
    for M in maps:
        swept.append(w)
        w = M.T(w)
    for M, w in zip(reversed(maps), reversed(swept), strict=True):
        ins = _map(M, ins, w, draft)
    if scale is None:
        return ins
    label = f"× {shown_number(scale)}"
    return [
        _edge(label, [i], [Sent("dense", shown_number(c))], "", [i.type], draft)[0]
        for i, c in zip(ins, sent, strict=True)
    ]


def _scaled(L: Map, scale: Any, w: Tree) -> list[Any]:
    """What a multiple sends on: a number times each leaf of a cotangent."""
    known([scale])
    return [c * np.conj(scale) for c in L.codomain.dual.leaves(w, ASKED)]


def _graph(L: Map, ins: list[Wire], w: Tree, draft: Draft, lines: Lined) -> list[Wire]:
    """The graph of a tape."""
    if not lines:
        L, lines = _with_lines(L, w)
    frozen = L.tape
    edges = graph(frozen, L.codomain.dual.leaves(w, ASKED), lines)
    nodes = zip(frozen.nodes, ins, strict=True)
    wires = {id(n): wire for n, wire in nodes if n is not None}  # by the id of a node
    for e in edges:
        wires[id(e.out)] = _drawn(e, draft, [_wire(p, draft, wires) for p in e.parents])
    return [
        _nothing(_type(t), draft) if o is None else _wire(o, draft, wires)
        for o, t in zip(frozen.outs, L.codomain.types, strict=True)
    ]


def _with_lines(L: Map, w: Tree) -> tuple[Map, Lined]:
    """The map as its function makes it again, with the lines; the map alone if that is another."""
    origin = L.tape.origin
    if origin is None or len(L.tape.tape) > LIMIT:
        return L, ()
    tape = Lines()
    try:
        again = linearize(*origin, tape=tape)[1]
        if w is None:
            w = L.codomain.dual.tree([np.ones(t.shape, t.dtype)[()] for t in L.codomain.types])
        sides = [flatten(M.T(w))[0] for M in (L, again)]
        same = all([np.allclose(a, b, 1e-9, 0, True) for a, b in zip(*sides, strict=True)])
    except Exception:  # the function need not run twice, nor its numbers be plain
        return L, ()
    return (again, tape.lines) if same else (L, ())


def _turned(L: Map, ins: list[Wire], w: Tree, draft: Draft) -> list[Wire]:
    """The graph of a map whose transpose has a tape: every edge is turned, a copy is a sum."""
    T, lines = _with_lines(L.T, None)
    frozen = T.tape
    edges = graph(frozen, L.codomain.dual.leaves(w, ASKED), lines, ahead=True)
    arrived: dict[int, list[Wire]] = {}  # by the id of a node
    for o, wire in zip(frozen.outs, ins, strict=True):
        if o is not None:
            arrived.setdefault(id(o), []).append(wire)
    for e in reversed(edges):
        if id(e.out) not in arrived:
            continue  # nothing that is asked for depends on it
        wire = _added(arrived[id(e.out)], draft)
        types = [_type(type_of(p)) for p in e.parents]
        if e.joint:
            parts = _edge(f"{e.labels[0]}ᵀ", [wire], e.sent, e.line, types, draft)
        else:
            parts = [
                _edge(label, [wire], [s], e.line, [t], draft)[0]
                if label or t != wire.type
                else wire
                for label, s, t in zip(e.labels, e.sent, types, strict=True)
            ]
        for p, part in zip(e.parents, parts, strict=True):
            arrived.setdefault(id(p), []).append(part)
    return [
        _nothing(_type(t), draft) if id(n) not in arrived else _added(arrived[id(n)], draft)
        for n, t in zip(frozen.nodes, L.codomain.types, strict=True)
    ]


def _added(wires: Sequence[Wire], draft: Draft) -> Wire:
    total, *others = wires
    for w in others:
        total = draft.add("add", [total, w], gives=[w.type], linear=[True])[0]
    return total


def diagram_at(f: Callable[..., Any], *args: Any) -> Net:
    """The linear graph of the derivative of f there, with the user's line at each edge."""
    tape = Lines()
    _, L, _ = linearize(seen(f), args, {}, None, False, method, "diagram", restored, tape=tape)
    return diagram_of(L, lines=tape.lines)


def _wire(n: Any, draft: Draft, wires: dict[int, Wire]) -> Wire:
    """The wire of a node; of one that nothing leads to, a zero."""
    if id(n) not in wires:
        wires[id(n)] = _nothing(_type(type_of(n)), draft)
    return wires[id(n)]


def _type(t: ArrayType) -> Type:
    """The type of a wire; exact numbers keep a word of their own."""
    return of_array(t) if t.dtype.kind in "fc" else Foreign(show(t))


def _nothing(t: Type, draft: Draft) -> Wire:
    return draft.add("zero", data=t, gives=[t], linear=[True])[0]


def _drawn(e: Edges, draft: Draft, ins: list[Wire]) -> Wire:
    """The wire of the node in which the edges end."""
    t = _type(type_of(e.out))
    if e.joint:
        return _edge(e.labels[0], ins, e.sent, e.line, [t], draft)[0]
    parts = [
        _edge(label, [w], [s], e.line, [t], draft)[0] if label or w.type != t else w
        for label, w, s in zip(e.labels, ins, e.sent, strict=True)
    ]
    return _added(parts, draft)


def _edge(
    label: str,
    ins: Sequence[Wire],
    sent: Sequence[Sent],
    line: str,
    gives: Sequence[Type],
    draft: Draft,
) -> Sequence[Wire]:
    """The frame of one edge."""
    words = [s.word for s in sent]
    if any([w not in ("dense", "0") for w in words]):
        label = f"{', '.join(words)} ← {label}"
    data = told([s.shown for s in sent], line)
    marks = [True] * len(gives)
    return draft.add("frame", ins, name=label, data=data, gives=gives, linear=marks)
