"""Builders in a sweep: boxes while it goes on, contributions where they arrive.

seeded          before the sweep: a builder that was given is a box, and masked where that is asked
keeping_parts   within it: what arrived in parts at an array that is no argument is a box
settled         after it, at a leaf: a box is a contribution to a part
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from lineara.cotangent import Builder, Coo, LowRank, Rows, Zero
from lineara.cotangent.dead_lanes import seeded as masked_seed
from lineara.cotangent.dead_lanes import unmasked
from lineara.cotangent.kept_builder import KeptBuilder
from lineara.cotangent.lanes import Lanes
from lineara.cotangent.sparse_vector import MANY, SparseVector, sparse_vector
from lineara.facts.primitive import Outer, Own, Piece, op
from lineara.tape.contributions import add
from lineara.tape.cotangent_builders import builder
from lineara.tape.levels import deeper
from lineara.tape.node import Array, Scalar
from lineara.tape.pull_reads import pull
from lineara.tape.reads import Reads

ON_THE_WAY = SparseVector | KeptBuilder
FEW = 8  # times as long as an element of an array takes a part; of many parts the array is made


def seeded(
    sweep: Callable[[list[Any]], Any], seeds: list[Any], nodes: Sequence[Any], masked: bool
) -> Any:
    """What a sweep gives for these seeds of the nodes, as they are or masked: arrays, or None."""
    if not masked and not any([isinstance(s, Builder) for s in seeds]):
        return sweep(seeds)
    with deeper() as lanes, deeper() as depth:
        at = lanes if masked else None
        ends = sweep([_seed(s, n, depth, at) for s, n in zip(seeds, nodes, strict=True)])
        return ends and [unmasked(g.v if isinstance(g, ON_THE_WAY) else g) for g in ends]


def _seed(seed: Any, n: Any, depth: int, lanes: int | None) -> Any:
    if isinstance(seed, Lanes):  # which have no zeros but structural ones
        return seed
    if isinstance(seed, Builder):
        sparse = boxed(seed, depth, lanes) if isinstance(n, Array) else None
        if sparse is not None or lanes is None:
            return seed if sparse is None else sparse
        seed = seed.finish()
    return seed if seed is None or lanes is None else masked_seed(seed, lanes)


def boxed(c: Any, depth: int, lanes: int | None = None) -> Any:
    """A builder as what can be calculated with; None for one that only an array can stand for."""
    if isinstance(c, LowRank) and lanes is None and c.dtype.kind in "fc":
        return KeptBuilder(c, c.shape, c.dtype, depth)
    return sparse_vector(c, depth, lanes)


@contextmanager
def keeping_parts() -> Iterator[Callable[[Any], Any]]:
    """What sums in a sweep: of an array that was read in parts the parts, where that is less.

    Whether it is follows from the positions that were traced, never from values.
    """
    with deeper() as depth:

        def pulled(n: Any) -> Any:
            v = n.v
            if type(n.k) is not Reads or type(v) is not np.ndarray or v.dtype.kind not in "fc":
                return pull(n)
            settled(n)
            c = builder(n, v)
            if isinstance(c, Zero):
                return None
            if isinstance(c, Rows | Coo):
                parts = sparse_vector(c, depth, None)
                if parts is not None and len(parts.at) > MANY:
                    parts = parts.summed()
                    parts = parts if FEW * len(parts.at) <= v.size else None
                return pull(n) if parts is None else parts
            if isinstance(c, LowRank):
                return boxed(c, depth)
            own = None if c is None else next(p for p in n.k.pieces if isinstance(p, Own))
            return (
                pull(n) if own is None else KeptBuilder(Own(c, own.read), v.shape, v.dtype, depth)
            )

        yield pulled


def settled(n: Any) -> None:
    """Make contributions to parts of an array, and of its views, of the boxes there."""
    if isinstance(n, Scalar):
        return
    g = n.g
    if isinstance(g, ON_THE_WAY):
        n.g = None
        _contribute(n, g)
    if n.k is None:
        return
    pieces = [*n.k.pieces]
    n.k.pieces.clear()
    products = any([isinstance(p, Outer) and not _is_boxed(p) for p in pieces])
    for p in pieces:
        if isinstance(p, Outer) and products and _is_boxed(p):  # stays one of them
            p = type(p)(*[v.v if isinstance(v, ON_THE_WAY) else v for v in p])
        _contribute(n, _of_piece(p, tuple(n.v.shape)) if _is_boxed(p) else p)
    if type(n.k) is Reads:
        for o in n.k.views:
            settled(o)


def _is_boxed(p: Any) -> bool:
    return isinstance(p, Piece | Outer) and any([isinstance(v, ON_THE_WAY) for v in p])


def _of_piece(p: Piece | Outer, shape: tuple[int, ...]) -> Any:
    """The contribution in the shape of the leaf."""
    if isinstance(p, Outer):
        return op("matmul")(p.u, op("permute_dims")(p.v, axes=(1, 0)))
    if isinstance(p.x_bar, KeptBuilder):  # of a part: these elements
        return p._replace(x_bar=p.x_bar.v)
    flat = getattr(p.at, "at", None)
    if flat is None:
        return op("scatter")(p.x_bar, at=p.at, shape=shape)
    line = op("scatter")(p.x_bar, at=(flat,), shape=(math.prod(shape),))
    return op("reshape")(line, shape=shape)


def _contribute(n: Any, g: Any) -> None:
    if isinstance(g, KeptBuilder):
        add(n, g.value)
    elif not isinstance(g, SparseVector):
        add(n, g)
    elif g.lead:
        add(n, Piece(g.places(), g.values))
    else:
        add(n, g.values.sum(axis=0))
