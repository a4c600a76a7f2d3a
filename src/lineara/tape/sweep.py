"""The two sweeps over a tape: the linear map forward, and its transpose.

What flows is anything that adds and multiplies: numbers and arrays, traced values of an outer
level, batched or masked values.  After a sweep every slot is clean again (or marks a leak).
"""

from collections.abc import Callable, Sequence
from typing import Any

from numpy import ndarray

from lineara.facts.hints import Shaped
from lineara.tape.contributions import add
from lineara.tape.level import Entry, clear
from lineara.tape.node import ONE, Array, Scalar, Traced, leaked, zero
from lineara.tape.plans import Call
from lineara.tape.pull_reads import distribute, pull


def arrived(n: Traced, pull: Callable[[Any], Any] = pull) -> Any:
    """The cotangent that has arrived at a node, or None."""
    if issubclass(type(n), Scalar):
        return None if n.g is zero else n.g
    return pull(n)


def reverse(
    tape: Sequence[Any],
    scalar: tuple[type, type],
    last: bool,
    pull: Callable[[Any], Any] = pull,
) -> list[Any]:
    """The transposed map: every node hands its cotangent to its parents, latest first.

    `pull` sums what has arrived at an array of which parts were read.  After the last sweep, gives
    the arrays that were read in parts: once no masked sweep has to follow, these reads can be
    forgotten.
    """
    parted: list[Any] = []
    empty = leaked if last else zero
    none = leaked if last else None
    python, numpy = scalar
    rest = reversed(tape)  # which tells how much is left
    for n in rest:
        kind = type(n)
        if kind is python or kind is numpy:
            g = n.g
            n.g = empty
            if g is zero:
                continue
            n.a.g += g * n.d
            b = n.b
            if b is not None:
                b.g += g * n.e
        elif kind is Call:
            o = n.out
            plan = n.plan
            if plan.number:
                g = o.g
                o.g = empty
                if g is zero:
                    continue
                plain = type(g) is float
            else:
                if o.k is None:
                    g = o.g
                    o.g = none
                else:
                    g = pull(o)
                    clear(o, last)
                    if last:
                        parted.append(o)
                if g is None:
                    continue
                plain = type(g) is ndarray and g.dtype is plan.dtype
            if plain:
                plan.pull(n.parents, n.values, g)
                continue
            for p, c in zip(n.parents, n.joint.back(g), strict=True):
                add(p, c)
        elif kind is Entry:
            o = n.out
            g = arrived(o, pull)
            clear(o, last)
            if last and isinstance(o, Array):
                parted.append(o)
            if g is not None:
                for p, c in zip(n.parents, n.joint.back(g), strict=True):
                    add(p, c)
        else:
            if n.k is None:
                g = n.g
                n.g = none
            else:
                g = pull(n)
                clear(n, last)
                if last:
                    parted.append(n)
            if g is None:
                continue
            a = n.a
            d = n.d
            c = g if d is ONE else g * d
            h = a.g
            a.g = c if h is None else h + c
            b = n.b
            if b is not None:
                d = n.e
                c = g if d is ONE else g * d
                h = b.g
                b.g = c if h is None else h + c
    return parted


def forward(tape: Sequence[Any], scalar: tuple[type, type]) -> None:
    """The map itself: every node gets its tangent from its parents, earliest first."""
    python, numpy = scalar
    rest = iter(tape)
    for n in rest:
        kind = type(n)
        if kind is python or kind is numpy:
            t = n.a.g
            if t is not zero:
                t = t * n.d
            b = n.b
            if b is not None and b.g is not zero:
                t = b.g * n.e if t is zero else t + b.g * n.e
            n.g = t
        elif kind is Entry or kind is Call:
            tangents = [None if p.g is zero else p.g for p in n.parents]
            o = n.out
            still = all([t is None for t in tangents])
            t = None if still else n.joint.forward(tangents)
            if isinstance(o, Scalar):
                o.g = zero if t is None else t
            else:
                o.g = t
                distribute(o, t)
        else:
            t = _times(n.a.g, n.d)
            if n.b is not None:
                u = _times(n.b.g, n.e)
                t = u if t is None else t if u is None else t + u
            n.g = t
            if n.k is not None:
                distribute(n, t)


def _times(t: Shaped, d: object) -> Any:
    return t if t is None or d is ONE else t * d


def tidy(tape: Sequence[Any], scalar: tuple[type, type], roots: Sequence[Any], last: bool) -> None:
    """Empty every slot after a forward sweep; of roots, None is one that does not move."""
    python, numpy = scalar
    empty = leaked if last else zero
    for nodes in (tape, roots):
        for n in nodes:
            kind = type(n)
            if kind is python or kind is numpy:
                n.g = empty
            elif n is not None:
                clear(n.out if issubclass(kind, Entry) else n, last)
