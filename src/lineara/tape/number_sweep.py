"""The sweeps where all is Python's numbers: no arrays, no warnings, no masks."""

from collections.abc import Sequence
from operator import length_hint
from typing import Any

from lineara.tape.node import leaked, zero


def numbers_back(tape: Sequence[Any], scalar: tuple[type, type]) -> int:
    """The last reverse sweep over the numbers that end a tape; returns how many entries precede.

    They and their weights are Python's numbers, whose arithmetic gives no warnings.
    """
    python, numpy = scalar
    rest = reversed(tape)
    for n in rest:
        if type(n) is not python and type(n) is not numpy:
            return length_hint(rest) + 1
        g = n.g
        n.g = leaked
        if g is zero:
            continue
        n.a.g += g * n.d
        b = n.b
        if b is not None:
            b.g += g * n.e
    return 0


def numbers_ahead(
    tape: Sequence[Any],
    scalar: tuple[type, type],
    nodes: Sequence[Any],
    tangents: Sequence[Any],
    outs: Sequence[Any],
) -> list[Any] | None:
    """The sweep ahead where leaves, tape and results are numbers and no NaN comes; else None.

    Every slot that it reads it has written.
    """
    python, numpy = scalar
    if tape and type(tape[-1]) is not python and type(tape[-1]) is not numpy:
        return None
    for o in outs:
        if o is None or type(o.v) is not float:
            return None
    for n, t in zip(nodes, tangents, strict=True):
        if type(t) is not float or (type(n) is not python and type(n) is not numpy):
            return None
        n.g = t
    rest = iter(tape)
    for n in rest:
        if type(n) is not python and type(n) is not numpy:
            return None
        t = n.a.g
        if t is not zero:
            t = t * n.d
        b = n.b
        if b is not None and b.g is not zero:
            t = b.g * n.e if t is zero else t + b.g * n.e
        n.g = t
    vectors = []
    for o in outs:
        g = o.g
        if type(g) is not float or g is zero or g != g:
            return None
        vectors.append(g)
    return vectors


def are_sound(nodes: Sequence[Any]) -> bool:
    """Whether all leaves are numbers, and no NaN has arrived at one."""
    for n in nodes:
        g = n.g
        if g is not zero and (type(g) is not float or g != g):
            return False
    return True
