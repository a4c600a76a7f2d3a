"""Linearize: the value of a function and its derivative there, as a map that can be swept again."""

import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lineara.containers.boundary import repeats, shown
from lineara.containers.points import (
    Chart,
    is_point,
    manifold_of,
    with_units,
)
from lineara.containers.proxy import Places
from lineara.cotangent.batched import Batched
from lineara.cotangent.compressed import compressed
from lineara.cotangent.dead_lanes import seeded, unmasked
from lineara.facts.primitive import Box
from lineara.facts.types import ArrayType, type_of
from lineara.linear_map import Basis, LinearMap, Space, Work
from lineara.tape.contributions import add
from lineara.tape.leaves import Gradients, Leaves, beside
from lineara.tape.level import Entry, Level
from lineara.tape.levels import deeper, open_level
from lineara.tape.masked_sweep import has_nan
from lineara.tape.node import Array, Scalar, Traced, leaked, outlived, staged, zero
from lineara.tape.pull_reads import distribute
from lineara.tape.results import check_numbers, check_result, own_copy, release_tree, with_aux
from lineara.tape.sweep import arrived, forward, reverse, tidy
from lineara.trees import flatten, map_leaves, unflatten


class Frozen:
    """A tape that outlives its trace: the linear map at a point, swept as often as asked."""

    def __init__(self, level: Level, nodes: list[Any], outs: list[Any]) -> None:
        self.tape = list(level.tape)
        self.scalar = level.S, level.N
        self.level = level
        self.nodes = nodes
        self.outs = outs
        self.roots = [n for n in nodes if n is not None]
        self.lock = threading.RLock()  # a sweep keeps what flows in the nodes: one at a time

    def forward(self, tangents: list[Any]) -> list[Any]:
        """Tangents of the results, from tangents of the leaves."""
        return self._masked(self._forward, tangents)

    def back(self, cotangents: list[Any]) -> list[Any]:
        """Cotangents of the leaves, from cotangents of the results."""
        return self._masked(self._back, cotangents)

    def _masked(self, sweep: Callable, seeds: list[Any]) -> list[Any]:
        with self.lock, np.errstate(all="ignore"):
            try:
                unknown = any([staged(o) for o in self.outs])  # whether there will be a NaN
                found = [] if unknown else sweep(seeds)
                arose = any(map(has_nan, found)) and not any(map(has_nan, seeds))
                if unknown or arose:
                    with deeper() as depth:
                        found = sweep([None if s is None else seeded(s, depth) for s in seeds])
                    found = [unmasked(g) for g in found]
                return found
            finally:
                tidy(self.tape, self.roots, last=True)

    def _forward(self, tangents: list[Any]) -> list[Any]:
        tidy(self.tape, self.roots, last=False)
        for n, t in zip(self.nodes, tangents, strict=True):
            if n is not None and t is not None:
                n.g = _as_scalar(t) if isinstance(n, Scalar) else t
                if isinstance(n, Array):
                    distribute(n, t)
        forward(self.tape, self.scalar)
        return [None if o is None or o.g is zero else o.g for o in self.outs]

    def _back(self, cotangents: list[Any]) -> list[Any]:
        tidy(self.tape, self.roots, last=False)
        for o, c in zip(self.outs, cotangents, strict=True):
            if o is not None:
                add(o, c)
        reverse(self.tape, self.scalar, last=False)
        return [None if n is None else arrived(n) for n in self.nodes]

    def work(self) -> Work:
        """Scalar operations of the value and of the two sweeps, counted on the tape."""
        value = ahead = 0
        for n in self.tape:
            if isinstance(n, Entry):
                value += n.work
                ahead += n.work * max(1, len(n.parents))
            else:
                size = n.size if isinstance(n, Array) else 1
                value += size
                ahead += size * (2 if n.b is None else 4)
        return Work(value, ahead, ahead)


def _as_scalar(t: Any) -> Any:
    return t if isinstance(t, Box) else t.item() if isinstance(t, np.ndarray | np.generic) else t


def linearize(
    f: Any,
    args: tuple,
    kwargs: dict[str, Any],
    argnums: Sequence[int],
    has_aux: bool,
    method: Any,
    name: str = "linearize",
    keep: bool = True,
) -> tuple[Any, LinearMap, Any]:
    """(value, linear map from args[argnums] to the result, aux).

    Without `keep` the map is applied before the user's code goes on, so it needs no copies of the
    user's arrays.
    """
    with open_level() as level:
        level.keep_copies = keep
        sources = [args[i] for i in argnums]
        leaves = Leaves(level, sources, method, beside(args, kwargs, argnums))
        check_numbers(sources, name)
        whole = sources[0] if len(sources) == 1 else tuple(sources)
        tree, flat, nodes, domain = _opened(whole, leaves)
        places = Places(strict=repeats([args, kwargs]))
        trees = [shown(t, method, places) for t in ([tree] if len(sources) == 1 else tree)]
        given = dict(zip(argnums, trees, strict=True))
        out = f(*(given.get(i, a) for i, a in enumerate(args)), **kwargs)
        places.settle()
        out, aux = with_aux(out, has_aux, name)
        out = _settled(out)
        value = release_tree(out, level)
        results, outs, codomain = _closed(out, value, level, name)
        domain, codomain = with_units(domain, codomain)
        if any([o is not None and o.g is leaked for o in outs]):
            raise outlived()
        value = map_leaves(own_copy, value)
        frozen = Frozen(level, nodes, outs)
        work = frozen.work()
        aux = map_leaves(own_copy, release_tree(aux, level)) if has_aux else None
        level.keep_copies = True  # the tape outlives the trace
    fit = Gradients(level)
    back = _fitted(frozen.back, flat, fit)
    ahead = _fitted(frozen.forward, results, fit)
    sweep_basis = functools.partial(basis_sweep, plain=level.depth == 1)
    return value, LinearMap(ahead, back, domain, codomain, work, sweep_basis), aux


def _opened(
    tree: Any, leaves: Leaves, inside: bool = False
) -> tuple[Any, list[Any], list[Any], Space]:
    """Arguments as the program sees them, their leaves, the nodes of these, and the tangents.

    `inside`: the tree holds the coordinates of a point, which may be that point.
    """
    items, structure = flatten(tree, is_leaf=lambda x: is_point(x) and not (inside and x is tree))
    given, flat, nodes, charts = [], [], [], []
    for x in items:
        points = manifold_of(x)
        if points is None:
            n = _own_node(leaves(x), leaves.level)
            given.append(x if n is None else n)
            flat.append(x)
            nodes.append(n)
            charts.append(None)
        else:
            v, inner, inner_nodes, space = _opened(points.coordinates(x), leaves, True)
            given.append(points.lifted(x, v))
            flat += inner
            nodes += inner_nodes
            charts.append(Chart(points, space, getattr(x, "units", None)))
    space = Space(tuple(map(_tangent_type, flat)), structure, _or_none(charts))
    return unflatten(structure, given), flat, nodes, space


def _closed(
    out: Any, value: Any, level: Level, name: str, inside: bool = False
) -> tuple[list[Any], list[Any], Space]:
    """The leaves of a result, the nodes of these, and the tangents."""
    items, structure = flatten(out, is_leaf=lambda x: is_point(x) and not (inside and x is out))
    still = flatten(value, is_leaf=lambda x: is_point(x) and not (inside and x is value))[0]
    flat, nodes, charts = [], [], []
    for r, s in zip(items, still, strict=True):
        points = manifold_of(r)
        if points is None:
            check_result(r, name)
            flat.append(r)
            nodes.append(_own_node(r, level))
            charts.append(None)
        else:
            at = _settled(points.outgoing(r, s))
            inner, inner_nodes, space = _closed(at, release_tree(at, level), level, name, True)
            flat += inner
            nodes += inner_nodes
            charts.append(Chart(manifold_of(s), space, getattr(r, "units", None)))
    return flat, nodes, Space(tuple(map(_tangent_type, flat)), structure, _or_none(charts))


def _or_none(charts: list[Any]) -> tuple[Any, ...]:
    return tuple(charts) if any(charts) else ()


def _settled(out: Any) -> Any:
    return (
        out.now()
        if isinstance(out, Traced)
        else map_leaves(lambda v: v.now() if isinstance(v, Traced) else v, out)
    )


def _own_node(value: Any, level: Level) -> Any:
    return value if isinstance(value, Traced) and value.level is level else None


def _given(value: Any, node: Any) -> Any:
    return value if node is None else node


def _tangent_type(value: Any) -> ArrayType:
    t = type_of(value)
    return t if t.dtype.kind in "fc" else ArrayType(t.shape, np.dtype(float))


def _fitted(
    sweep: Callable, leaves: list[Any], grads: Gradients
) -> Callable[[list[Any]], list[Any]]:
    """The sweep with results in the types of the leaves that they belong to."""
    types = [released_leaf(v) for v in leaves]

    def run(vectors: list[Any]) -> list[Any]:
        found = sweep(vectors)
        grads.given = set(map(id, vectors))  # what the user gave is not handed out
        if any(isinstance(g, Batched) for g in found) or any(
            isinstance(v, Batched) for v in vectors
        ):
            return found
        return [grads.fit(x, g) for x, g in zip(types, found, strict=True)]

    return run


def released_leaf(value: Any) -> Any:
    """A stand-in with the type of a leaf, which a fitted gradient takes on."""
    if isinstance(value, Traced):
        t = type_of(value)
        return np.broadcast_to(np.zeros((), t.dtype), t.shape) if t.shape else 0.0
    if isinstance(value, np.ndarray):
        return np.broadcast_to(np.zeros((), value.dtype), value.shape)
    return value


def batch_sweep(sweep: Callable, seeds: list[Any]) -> list[Any]:
    """A sweep on vectors with a leading batch axis: one sweep, not one for each."""
    with deeper(), deeper() as depth:  # the depth between is for masks inside the batch
        found = sweep([Batched(s, depth) for s in seeds])
    return [_unbatched(g) for g in found]


def basis_sweep(sweep: Callable, basis: Basis, plain: bool) -> list[Any]:
    """A sweep on basis vectors, as compressed as they stay where residuals are plain arrays."""
    with deeper(), deeper() as depth:
        seeds = compressed(basis, depth) if plain else None
        if seeds is not None:
            return [_unbatched(g) for g in sweep(seeds)]
    return batch_sweep(sweep, basis.dense())


def _unbatched(g: Any) -> Any:
    g = unmasked(g)
    return g.v if isinstance(g, Batched) else g
