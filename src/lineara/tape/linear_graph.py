"""The linear graph that a tape is, as edges, and what a reverse sweep sends along each.

An inline edge is a weight; an entry is a linear map from several nodes to one; what was read of an
array (an element, a view, the sum of all elements) has no entry on the tape, and is an edge here.
The sweep is the one of `sweep.reverse`, one step at a time, so that each contribution is seen
before it is added to others.  Of the transposed map it is the sweep ahead, all at once: tangents
stay in the nodes until they are tidied.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from lineara.cotangent import Builder, Zero
from lineara.errors import DiagramError
from lineara.facts.hints import Leaf, Value
from lineara.facts.primitive import Box
from lineara.facts.types import show_type, type_of
from lineara.tape.contributions import add
from lineara.tape.cotangent_builders import builder
from lineara.tape.level import Entry, clear
from lineara.tape.linearize import Frozen, Sweeps, released_leaf
from lineara.tape.node import ONE, Array, Scalar, Traced, zero
from lineara.tape.reads import Reads
from lineara.tape.sweep import arrived, tidy

FEW = 6  # numbers that are shown themselves
LIMIT = 400  # entries of a tape, and things read, that a picture is made of


class Sent(NamedTuple):
    """What a reverse sweep sends to one parent: its kind in a word, and all of it in words."""

    word: str  # dense, Rows, Coo, LowRank, or 0 for nothing
    shown: str  # the numbers where they are few, else the type


class Edges(NamedTuple):
    """The edges that end in one node: one linear map, or weights whose products are added."""

    out: Any
    parents: tuple[Any, ...]
    labels: tuple[str, ...]  # one of a map; of weights one each, "" for the identity
    joint: bool
    sent: tuple[Sent, ...]  # to each parent; ahead: from each, and of a joint map one to `out`
    line: str  # the user's, where it was recorded


NOTHING = Sent("0", "nothing")


def graph(
    frozen: Frozen,
    seeds: Sequence[Any],
    lines: Sequence[tuple[str, str]] = (),
    ahead: bool = False,
) -> list[Edges]:
    """The edges of a tape, each behind those that it needs, and what the sweep sends along them.

    The sweep is of cotangents of the results; `ahead`, of tangents of the leaves.  `lines` are the
    operation and the user's line of each entry, where they were recorded.  Raises DiagramError for
    a tape of more than `LIMIT` entries, or whose numbers are traced.
    """
    names = lines or [("", "")] * len(frozen.tape)
    nodes = [n for n in frozen.nodes if n is not None]
    size = len(frozen.tape) + sum(map(_count_reads, [*nodes, *map(_out, frozen.tape)]))
    if size > LIMIT:
        raise DiagramError(
            f"diagram: the linear graph has {size} edges, and can be read with up to {LIMIT}; "
            "linearize a part of the function, or the function of smaller arguments"
        )
    known([n.v for n in (*nodes, *frozen.outs) if n is not None])
    with frozen.lock, np.errstate(all="ignore"):
        tidy(frozen.tape, frozen.scalar, frozen.nodes, last=False)
        try:
            return (_swept_ahead if ahead else _swept)(frozen, nodes, seeds, names)
        finally:
            tidy(frozen.tape, frozen.scalar, frozen.nodes, last=True)


def known(values: Sequence[Value]) -> None:
    """Raise a DiagramError if a number of a linear map is traced."""
    if any([isinstance(v, Box) for v in values]):
        raise DiagramError(
            "diagram: the linear map was made inside another differentiation or a trace, and its "
            "numbers are not known; linearize outside"
        )


def _out(entry: Any) -> Any:
    return entry.out if issubclass(type(entry), Entry) else entry


def _count_reads(n: Traced) -> int:
    return len([*_reads(n)])


class _Read(NamedTuple):
    """Something read of an array: a node, and that reading alone."""

    node: Any
    of: Any
    label: str
    alone: Reads


def _reads(n: Traced) -> Iterator[_Read]:
    """All that was read of a node."""
    k = n.k if isinstance(n, Array) else None
    if k is None:
        return
    for o in k.sums:
        alone = Reads()
        alone.sums = [o]
        yield _Read(o, n, "sum", alone)
    if type(k) is not Reads:
        return
    t = type_of(n)
    for o, place in zip(k.nodes, k.places, strict=True):
        alone = Reads()
        alone.nodes, alone.places = [o], [place]
        at = np.unravel_index(place % t.size, t.shape)
        yield _Read(o, n, f"[{', '.join([str(int(i)) for i in at])}]", alone)
    for o in k.views:
        alone = Reads()
        alone.views = [o]
        yield _Read(o, n, "view", alone)
        yield from _reads(o)


def _swept_ahead(
    frozen: Frozen,
    nodes: list[Any],
    tangents: Sequence[Any],
    names: Sequence[tuple[str, str]],
) -> list[Edges]:
    """The sweep ahead, and the edges in the order of the tape."""
    Sweeps._forward(frozen, list(tangents))
    edges = [e for n in nodes for e in _of_reads(n, ahead=True)]
    for entry, (name, line) in zip(frozen.tape, names, strict=True):
        out = _out(entry)
        parents, labels, weights = _ends(entry, name)
        if weights is None:
            sent = (_ahead(_tangent(out)),)
        else:
            sent = tuple(
                [
                    _ahead(t if d is ONE else t * d) if (t := _tangent(p)) is not None else NOTHING
                    for p, d in zip(parents, weights, strict=True)
                ]
            )
        edges.append(Edges(out, parents, labels, weights is None, sent, line))
        edges += _of_reads(out, ahead=True)
    return edges


def _tangent(n: Traced) -> Any:
    """The tangent that a sweep ahead has left in a node, or None."""
    return None if n.g is zero else n.g


def _ahead(t: Leaf | None) -> Sent:
    return NOTHING if t is None else Sent("dense", shown_number(t))


def _ends(entry: Any, name: str) -> tuple[tuple[Any, ...], tuple[str, ...], list[Any] | None]:
    """The parents of an entry, its labels, and the weights of inline edges, None of a joint map."""
    if issubclass(type(entry), Entry):
        return tuple(entry.parents), (entry.name,), None
    edges = [(entry.a, entry.d), (entry.b, entry.e if entry.b is not None else None)]
    edges = [(p, d) for p, d in edges if p is not None]
    labels = tuple([_weight(d, name) for _, d in edges])
    return tuple([p for p, _ in edges]), labels, [d for _, d in edges]


def _swept(
    frozen: Frozen,
    nodes: list[Any],
    cotangents: Sequence[Any],
    names: Sequence[tuple[str, str]],
) -> list[Edges]:
    """The sweep, latest entry first; the edges in the order of the tape."""
    for o, c in zip(frozen.outs, cotangents, strict=True):
        if o is not None:
            add(o, c.copy() if isinstance(c, np.ndarray) else c)
    edges: list[Edges] = []
    for entry, (name, line) in zip(reversed(frozen.tape), reversed(names), strict=True):
        out = _out(entry)
        edges += reversed(_of_reads(out))
        g = arrived(out)
        clear(out, last=False)
        parents, labels, weights = _ends(entry, name)
        if g is None:
            bars = [None] * len(parents)
        elif weights is None:
            bars = entry.joint.back(g)
        else:
            bars = [g if d is ONE else g * d for d in weights]
        sent = tuple([_sent(p, c) for p, c in zip(parents, bars, strict=True)])
        edges.append(Edges(out, parents, labels, weights is None, sent, line))
        for p, c in zip(parents, bars, strict=True):
            add(p, c)
    for n in nodes:
        edges += reversed(_of_reads(n))
    return edges[::-1]


def _weight(d: Any, name: str) -> str:
    """The label of an inline edge: the operation, where it is known, and the weight."""
    if d is ONE:
        return ""
    shown = f"{d:.4g}" if isinstance(d, float | int) else show_type(d)
    return f"{name} × {shown}".strip()


def _of_reads(n: Traced, ahead: bool = False) -> list[Edges]:
    """The edges to what was read of a node, once all has arrived there."""
    edges = []
    for o, of, label, alone in _reads(n):
        if ahead:
            sent = _ahead(_tangent(o))
        elif isinstance(o, Scalar) and arrived(o) is None:
            sent = NOTHING
        elif alone.sums:
            sent = Sent("dense", f"{shown_number(arrived(o))} for all of {type_of(of)}")
        else:
            sent = _alone(of, alone)
        edges.append(Edges(o, (of,), (label,), True, (sent,), ""))
    return edges


def _sent(p: Traced, c: Any) -> Sent:
    """What one contribution to a node is."""
    if c is None:
        return NOTHING
    if isinstance(p, Scalar):
        return Sent("dense", shown_number(c))
    probe = p.level.array(None)
    add(probe, c)
    if probe.g is not None:
        return Sent("dense", shown_number(probe.g))
    return NOTHING if probe.k is None else _alone(p, probe.k)


def _alone(p: Traced, k: Reads) -> Sent:
    """The cotangent of a node, if nothing but that arrives."""
    probe = p.level.array(p.v)
    probe.k = k
    b = builder(probe, released_leaf(p))
    if b is None:
        t = type_of(p)
        c = arrived(probe) if t.size <= FEW else None  # an outer product of few numbers is formed
        return Sent("dense", str(t) if c is None else shown_number(c))
    if isinstance(b, Zero):
        return NOTHING
    return Sent(type(b).__name__, f"{b!r}{_cells(b)}")


def shown_number(value: Leaf) -> str:
    """A cotangent: its numbers where they are few, else its type."""
    numbers = np.asarray(value)
    if numbers.size > FEW or numbers.dtype.kind not in "fciu":
        return show_type(value)
    return _digits(numbers.tolist())


def _digits(x: Any) -> str:
    return f"[{', '.join(map(_digits, x))}]" if isinstance(x, list) else f"{x:.4g}"


def _cells(b: Builder) -> str:
    """The places and numbers of a builder that has few."""
    if not b.cellular:
        return ""
    flat, values = b.coalesce().cells()
    if np.size(values) > FEW:
        return ""
    places = [[int(i) for i in np.unravel_index(f, b.shape)] for f in flat]
    return ": " + ", ".join(
        [f"{at} {shown_number(v)}" for at, v in zip(places, values, strict=True)]
    )
