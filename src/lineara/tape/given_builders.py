"""Builders that were given to a linear map: boxes while a sweep goes on, contributions at its end.

seeded      before the sweep: a builder is a sparse vector, and masked where that is asked
settled     after it, at a leaf: a sparse vector is a contribution to a part
finished    after it, of what has arrived: an array
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

from lineara.cotangent import Builder
from lineara.cotangent.dead_lanes import seeded as masked_seed
from lineara.cotangent.dead_lanes import unmasked
from lineara.cotangent.lanes import Lanes
from lineara.cotangent.sparse_vector import SparseVector, sparse_vector
from lineara.facts.primitive import Outer, Piece, op
from lineara.tape.contributions import add
from lineara.tape.levels import deeper
from lineara.tape.node import Array, Scalar
from lineara.tape.reads import Reads


def seeded(
    sweep: Callable[[list[Any]], Any], seeds: list[Any], nodes: Sequence[Any], masked: bool
) -> Any:
    """What a sweep gives for these seeds of the nodes, as they are or masked: arrays, or None."""
    if not masked and not any([isinstance(s, Builder) for s in seeds]):
        return sweep(seeds)
    with deeper() as lanes, deeper() as depth:
        at = lanes if masked else None
        ends = sweep([_seed(s, n, depth, at) for s, n in zip(seeds, nodes, strict=True)])
        return ends and [unmasked(g.v if isinstance(g, SparseVector) else g) for g in ends]


def _seed(seed: Any, n: Any, depth: int, lanes: int | None) -> Any:
    if isinstance(seed, Lanes):  # which have no zeros but structural ones
        return seed
    if isinstance(seed, Builder):
        sparse = sparse_vector(seed, depth, lanes) if isinstance(n, Array) else None
        if sparse is not None or lanes is None:
            return seed if sparse is None else sparse
        seed = seed.finish()
    return seed if seed is None or lanes is None else masked_seed(seed, lanes)


def settled(n: Any) -> None:
    """Make contributions to parts of a leaf, and of its views, of the sparse vectors there."""
    if isinstance(n, Scalar):
        return
    g = n.g
    if isinstance(g, SparseVector):
        n.g = None
        _contribute(n, g)
    if n.k is None:
        return
    pieces = [*n.k.pieces]
    n.k.pieces.clear()
    for p in pieces:
        sparse = isinstance(p, Piece | Outer) and any([isinstance(v, SparseVector) for v in p])
        _contribute(n, _of_piece(p, tuple(n.v.shape)) if sparse else p)
    if type(n.k) is Reads:
        for o in n.k.views:
            settled(o)


def _of_piece(p: Piece | Outer, shape: tuple[int, ...]) -> Any:
    """The contribution in the shape of the leaf."""
    if isinstance(p, Outer):
        return op("matmul")(p.u, op("permute_dims")(p.v, axes=(1, 0)))
    flat = getattr(p.at, "at", None)
    if flat is None:
        return op("scatter")(p.x_bar, at=p.at, shape=shape)
    line = op("scatter")(p.x_bar, at=(flat,), shape=(math.prod(shape),))
    return op("reshape")(line, shape=shape)


def _contribute(n: Any, g: Any) -> None:
    if not isinstance(g, SparseVector):
        add(n, g)
    elif g.lead:
        add(n, Piece(g.places(), g.values))
    else:
        add(n, g.values.sum(axis=0))
