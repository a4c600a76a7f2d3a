"""Where a NaN has arrived, and masked cotangents brought back to plain ones.

The plain sweep is followed by a masked one only where it has produced a NaN.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from lineara.cotangent import Builder
from lineara.cotangent.batched import Batched
from lineara.cotangent.dead_lanes import unmasked
from lineara.cotangent.formal import Formal
from lineara.cotangent.monoid import attributes
from lineara.facts.box import Own, Piece
from lineara.facts.hints import Shaped
from lineara.facts.primitive import Box, Outer
from lineara.tape.level import Level
from lineara.tape.node import Scalar, Traced, layout
from lineara.tape.pull_reads import SMALL
from lineara.tape.reads import Reads, View

SHORT = 4096  # elements up to which a dot product, which is one call of C, costs less than a sum


def settle(n: Any) -> None:
    """Replace the masked cotangents of a leaf, and of its reads, by their values."""
    n.g = unmasked(n.g)
    if isinstance(n, Scalar) or n.k is None:
        return
    n.k.pieces[:] = [_bare(piece) for piece in n.k.pieces]
    for o in n.k.sums:
        o.g = unmasked(o.g)
    if type(n.k) is Reads:
        for o in n.k.nodes:
            o.g = unmasked(o.g)
        for o in n.k.views:
            settle(o)


def _bare(piece: Outer | Own | Piece) -> Any:
    """A contribution without masks, which a builder of the user's has not."""
    if isinstance(piece, Own):
        return piece
    moving = [name for name in piece._fields if name != "at"]
    return piece._replace(**{name: unmasked(getattr(piece, name)) for name in moving})


def any_nan(level: Level, nodes: Sequence[Any]) -> bool:
    """Whether a NaN has arrived at one of the leaves."""
    numbers = level.S, level.N
    for n in nodes:
        g = n.g
        if g != g if type(g) is float and type(n) in numbers else _is_nan(n):
            return True
    return False


def _is_nan(n: Traced) -> bool:
    """Whether a NaN has arrived at a leaf."""
    if issubclass(type(n), Scalar):
        g = layout(n.g) if isinstance(n.g, Traced) else n.g
        return has_nan(g)
    k = n.k
    if k is None:
        return has_nan(n.g)
    if n.g is not None and has_nan(n.g):
        return True
    if any([_brings_nan(p) for p in k.pieces]):
        return True
    if any([has_nan(o.g) for o in k.sums]):
        return True
    if type(k) is View:
        return False
    arrived = [o.g for o in k.nodes]
    at_once = n.level.depth == 1 and bool(arrived)  # plain numbers: one sum tells
    if (at_once and has_nan(sum(arrived))) or (not at_once and any([has_nan(g) for g in arrived])):
        return True
    few, others = [], []  # what arrived at views, if no more than a few numbers did; other views
    for o in k.views:
        g = o.g
        if o.k.pieces or o.k.sums or not (g is None or _is_few(g)):
            others.append(o)
        elif g is not None:
            few.append(g)
    return bool(few and has_nan(np.concatenate(few, axis=None))) or any(map(_is_nan, others))


def _brings_nan(piece: Outer | Own | Piece) -> bool:
    """Whether a contribution holds a NaN; one of finite numbers alone need not be finished."""
    if isinstance(piece, Own):
        parts = attributes(piece.cotangent)
        return not all(map(_is_finite, parts)) and has_nan(piece.finish())
    return has_nan(piece.x_bar if isinstance(piece, Piece) else piece.u)


def _is_finite(part: object) -> bool:
    """Whether a part of a builder is known to hold finite numbers or none."""
    if isinstance(part, float | complex | np.number) or type(part) is np.ndarray:
        numeric = np.asarray(part).dtype.kind in "fciub"
        return numeric and bool(np.isfinite(part).all())
    return part is None or isinstance(part, int | str | type | np.dtype)


def _is_few(g: Shaped) -> bool:
    return type(g) is np.ndarray and g.size <= SMALL


def has_nan(g: object) -> bool:
    """Whether a cotangent or tangent holds a NaN, under whatever wraps it."""
    if type(g) is np.ndarray and g.dtype.kind == "f":
        if g.size > SHORT:
            total = g.sum()
        else:
            flat = g.ravel()
            with np.errstate(over="ignore"):
                total = flat.dot(flat)  # a NaN if there is one
        return bool(total != total)
    while issubclass(type(g), Scalar) and g.known:  # type: ignore[union-attr]  # a Scalar's
        g = g.v  # type: ignore[union-attr]
    if isinstance(g, Builder):
        return any(map(has_nan, g.arrays()))
    if isinstance(g, Box):
        if isinstance(g, Batched):
            g = g.live
        elif isinstance(g, Traced):
            g = layout(g)
        g = layout(g)
    if isinstance(g, float | complex | np.inexact):
        return bool(g != g)
    if isinstance(g, np.ndarray) and g.dtype.kind in "fc":
        with np.errstate(over="ignore"):
            total = np.vdot(g, g) if g.size <= SHORT else g.sum()  # a NaN if there is one
        return bool(total != total)
    return isinstance(g, Formal) and any(map(has_nan, g.numbers()))
