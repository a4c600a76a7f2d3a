"""Linearize: the value of a function and its derivative there, as a map that can be swept again."""

import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from lineara.containers.boundary import UNTOUCHED, repeats, same, shown
from lineara.containers.points import (
    Chart,
    is_point,
    manifold_of,
    with_units,
)
from lineara.containers.proxy import Places
from lineara.cotangent import Builder
from lineara.cotangent.batched import Batched
from lineara.cotangent.compressed import compressed
from lineara.cotangent.dead_lanes import unmasked
from lineara.cotangent.dependence import seeds
from lineara.cotangent.lanes import basis_lanes
from lineara.facts.hints import Leaf, Shaped, Tree, Value
from lineara.facts.primitive import Box
from lineara.facts.types import ArrayType, type_of
from lineara.linear_map import REAL, Basis, LinearMap, Space, Work, space_of
from lineara.tape.contributions import add
from lineara.tape.given_builders import keeping_parts, seeded, settled
from lineara.tape.leaves import Gradients, Leaves, beside, may_move
from lineara.tape.level import Entry, Level
from lineara.tape.levels import deeper, open_level
from lineara.tape.masked_sweep import any_nan, has_nan, settle
from lineara.tape.node import Array, Scalar, Traced, leaked, outlived, staged, zero
from lineara.tape.number_sweep import numbers_ahead
from lineara.tape.pull_reads import distribute, pull
from lineara.tape.results import check_numbers, check_result, own_copy, release_tree, with_aux
from lineara.tape.sweep import arrived, forward, reverse, tidy
from lineara.trees import LEAF, flatten, map_leaves, unflatten


class Sweeps:
    """The linear map that a tape is, whose slots are clean: it is swept once, or tidied."""

    def __init__(self, level: Level, nodes: list[Any], outs: list[Any]) -> None:
        self.tape: list[Any] = level.tape
        self.scalar: tuple[type, type] = level.S, level.N
        self.nodes = nodes
        self.outs = outs

    def forward(self, tangents: list[Any]) -> list[Any]:
        """Tangents of the results, from tangents of the leaves."""
        vectors = numbers_ahead(self.tape, self.scalar, self.nodes, tangents, self.outs)
        return self._masked(self._forward, tangents) if vectors is None else vectors

    def back(self, cotangents: list[Any]) -> list[Any]:
        """Cotangents of the leaves, from cotangents of the results."""
        return self._masked(self._back, cotangents)

    def _masked(self, sweep: Callable[..., Any], seeds: list[Any]) -> list[Any]:
        """The results of the sweep, or of a masked sweep where it produces a NaN.

        In a trace nobody can know whether it will.
        """
        if not self._is_staged():
            vectors = sweep(seeds)
            for g in vectors:
                if g != g if type(g) is float else has_nan(g):
                    break
            else:
                return vectors
            if any(map(has_nan, seeds)):
                return vectors
            tidy(self.tape, self.scalar, self.nodes, last=False)
        return sweep(seeds, masked=True)

    def _is_staged(self) -> bool:
        """Whether a result has no value yet, so that nobody knows what a sweep produces."""
        return any([o is not None and type(o.v) is not float and staged(o) for o in self.outs])

    @np.errstate(all="ignore")
    def _forward(self, tangents: list[Any], masked: bool = False) -> list[Any]:
        return seeded(self._ahead, tangents, self.nodes, masked)

    def _ahead(self, tangents: list[Any]) -> list[Any]:
        for n, t in zip(self.nodes, tangents, strict=True):
            if n is not None and t is not None:
                n.g = _as_scalar(t) if issubclass(type(n), Scalar) else t
                if issubclass(type(n), Array):
                    distribute(n, t)
        forward(self.tape, self.scalar)
        return [None if o is None or o.g is zero else o.g for o in self.outs]

    @np.errstate(all="ignore")
    def _back(self, cotangents: list[Any], masked: bool = False) -> list[Any]:
        return seeded(self._pulled, cotangents, self.outs, masked)

    def _pulled(self, cotangents: list[Any]) -> list[Any]:
        self._arrive(cotangents)
        return [None if n is None else arrived(n) for n in self.nodes]

    def _arrive(self, cotangents: list[Any], pull: Callable[[Any], Any] = pull) -> None:
        """The sweep back; what has arrived at the leaves is with them, unsummed."""
        for o, c in zip(self.outs, cotangents, strict=True):
            if o is not None:
                add(o, c)
        reverse(self.tape, self.scalar, False, pull)


class Frozen(Sweeps):
    """A tape that outlives its trace: the linear map at a point, swept as often as asked."""

    def __init__(
        self,
        level: Level,
        nodes: list[Any],
        outs: list[Any],
        like: tuple[list[Any], list[Any]] | None = None,
    ) -> None:
        self.tape: list[Any] = list(level.tape)
        self.scalar: tuple[type, type] = level.S, level.N
        self.nodes = nodes
        self.outs = outs
        self.level = level
        self.like = like  # leaves and results, whose types the vectors take on; None: as they come
        self.origin: tuple[Any, ...] | None = None  # of `linearize`, what it was made of
        # a sweep keeps what flows in the nodes: one at a time
        self.lock: threading.RLock = threading.RLock()

    def forward(self, tangents: list[Any]) -> list[Any]:
        """Tangents of the results, from tangents of the leaves."""
        with self.lock:
            try:
                vectors = numbers_ahead(self.tape, self.scalar, self.nodes, tangents, self.outs)
                if vectors is None:
                    vectors = self._masked(self._forward, tangents)
            finally:
                tidy(self.tape, self.scalar, self.nodes, True)
        like = self.like
        return vectors if like is None else _fit(vectors, tangents, like[1], self.level)

    def back(self, cotangents: list[Any]) -> list[Any]:
        """Cotangents of the leaves, from cotangents of the results."""
        with self.lock:
            try:
                vectors = self._masked(self._back, cotangents)
            finally:
                tidy(self.tape, self.scalar, self.nodes, True)
        like = self.like
        return vectors if like is None else _fit(vectors, cotangents, like[0], self.level)

    def back_as_given(self, cotangents: list[Any]) -> list[Any]:
        """The same, where a builder among what is given asks for builders."""
        sparse = any([isinstance(c, Builder) for c in cotangents])
        return self.back_sparse(cotangents) if sparse else self.back(cotangents)

    def back_sparse(self, cotangents: list[Any]) -> list[Any]:
        """Cotangents of the leaves as builders, where what was traced allows it."""
        assert self.like is not None, "a map whose vectors take on no types gives no builders"
        seeds = [c.copy() if isinstance(c, np.ndarray) else c for c in cotangents]
        grads = Gradients(self.level)
        with self.lock, np.errstate(all="ignore"):
            try:
                self._settled(seeds)
                pairs = zip(self.like[0], self.nodes, strict=True)
                return [grads.sparse(x, UNTOUCHED if n is None else n) for x, n in pairs]
            finally:
                tidy(self.tape, self.scalar, self.nodes, True)

    def _settled(self, seeds: list[Any]) -> None:
        """The sweep back, or a masked one where it leaves a NaN; without masks at the leaves."""
        nodes = [n for n in self.nodes if n is not None]
        tidy(self.tape, self.scalar, self.nodes, last=False)
        if not self._is_staged():
            seeded(self._arrive_parts, seeds, self.outs, masked=False)
            if not any_nan(self.level, nodes) or any(map(has_nan, seeds)):
                return
            tidy(self.tape, self.scalar, self.nodes, last=False)
        seeded(self._arrive_sparse, seeds, self.outs, masked=True)
        for n in nodes:
            settle(n)

    def _arrive_parts(self, cotangents: list[Any]) -> None:
        with keeping_parts() as pull:
            self._arrive_sparse(cotangents, pull)

    def _arrive_sparse(self, cotangents: list[Any], pull: Callable[[Any], Any] = pull) -> None:
        """The sweep back; boxes of builders become contributions to parts of the leaves."""
        self._arrive(cotangents, pull)
        for n in self.nodes:
            if n is not None:
                settled(n)

    def _masked(self, sweep: Callable[..., Any], seeds: list[Any]) -> list[Any]:
        tidy(self.tape, self.scalar, self.nodes, last=False)
        return super()._masked(sweep, seeds)

    def work(self) -> Work:
        """Scalar operations of the value and of the two sweeps, counted on the tape."""
        value = ahead = 0
        for n in self.tape:
            if issubclass(type(n), Entry):
                value += n.work
                ahead += n.work * max(1, len(n.parents))
            else:
                size = n.size if issubclass(type(n), Array) else 1
                value += size
                ahead += size * (2 if n.b is None else 4)
        return Work(value, ahead, ahead)


def _as_scalar(t: Tree) -> Any:
    return t if isinstance(t, Box) else t.item() if isinstance(t, np.ndarray | np.generic) else t


OPENING = open_level()


def linearize(
    f: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    argnums: Sequence[int] | None,
    has_aux: bool,
    method: Callable[..., Any],
    name: str = "linearize",
    restore: Callable[[Any], Any] = same,
    sparse: bool | None = None,
    tape: list[Any] | None = None,
) -> tuple[Any, LinearMap[Any, Any], Any]:
    """(value, linear map from args[argnums] to the result, aux).

    `argnums`: None for all arguments.  `restore`: what a result of f is to the user.  `sparse`:
    whether the transpose gives builders; None: where it is given one.  `tape`: an empty one that
    watches what is recorded.
    """
    with OPENING as level:
        if tape is not None:
            level.start(tape)
        level.keep_copies = True  # the tape outlives the trace
        traced = _trace(level, f, args, kwargs, argnums, has_aux, method, name, restore)
        value, aux, (domain, ins, types), (codomain, outs, out_types) = traced
        frozen = Frozen(level, ins, outs, (types, out_types))
        frozen.origin = f, args, kwargs, argnums, has_aux, method, name, restore, sparse
    basis = PLAIN_BASIS if level.depth == 1 else BASIS
    back = {True: frozen.back_sparse, False: frozen.back, None: frozen.back_as_given}[sparse]
    L = LinearMap(frozen.forward, back, domain, codomain, frozen.work, basis, tape=frozen)
    return value, L, aux


def directional(
    f: Callable[..., Any],
    args: tuple[Any, ...],
    along: object,
    has_aux: bool,
    method: Callable[..., Any],
    name: str,
    restore: Callable[[Any], Any] = same,
) -> tuple[Any, Any, Any]:
    """(value, its derivative in the direction `along`, aux): one sweep ahead, and no map is kept.

    The sweep comes before the user's code goes on, so it needs no copies of the user's arrays.
    """
    with OPENING as level:
        value, aux, ins, outs = _trace(level, f, args, {}, None, has_aux, method, name, restore)
        seeds = ins.space.leaves(along, "applying a linear map")
        vectors = Sweeps(level, ins.nodes, outs.nodes).forward(seeds)
        return value, outs.space.tree(_fit(vectors, seeds, outs.like, level)), aux


class Side(NamedTuple):
    """The arguments or the results of a trace: their tangents, their nodes, and what they were."""

    space: Space
    nodes: list[Any]  # None for a leaf that does not move
    like: list[Any]  # a leaf each, or what has its type


new = tuple.__new__  # a side of one number, as most often, without a call of Python's


def _trace(
    level: Level,
    f: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    argnums: Sequence[int] | None,
    has_aux: bool,
    method: Callable[..., Any],
    name: str,
    restore: Callable[[Any], Any],
) -> tuple[Any, Any, Side, Side]:
    """(value, aux, the arguments to differentiate, the results) of a function at an open level."""
    sources, others = args, ()
    if argnums is not None:
        sources = [args[i] for i in argnums]
        others = beside(args, kwargs, argnums) if len(args) > len(sources) or kwargs else ()
    leaves = Leaves(level, sources, method, others)
    tree, ins = _opened(sources[0] if len(sources) == 1 else tuple(sources), leaves)
    if not leaves.nodes:
        check_numbers(sources, name)
    trees, places = (tree,) if len(sources) == 1 else tree, None
    if ins.space.structure is not LEAF:
        places = Places(strict=repeats([args, kwargs]))
        trees = [shown(t, method, places) for t in trees]
    given = trees
    if argnums is not None:
        given = list(args)
        for i, t in zip(argnums, trees, strict=True):
            given[i] = t
    out, aux = f(*given, **kwargs), None
    if not issubclass(type(out), Traced):
        out = restore(out)
    if places is not None:
        places.close()
    if has_aux:
        out, aux = with_aux(out, True, name)
        aux = map_leaves(own_copy, release_tree(aux, level))
    if type(out) in (level.S, level.N):  # one real number, as most often
        value, outs = out.v, new(Side, (REAL, [out], [0.0]))
    elif type(out) is level.X:
        value, outs = out.v.copy(), _leaf_side(out, out)
    else:
        out = _settled(out)
        value = release_tree(out, level)
        outs = _closed(out, value, level, name)
        value = map_leaves(own_copy, value)
    for o in outs.nodes:
        if o is not None and o.g is leaked:
            raise outlived()
    domain, codomain = ins.space, outs.space
    if domain.charts or codomain.charts:
        domain, codomain = with_units(domain, codomain)
        ins, outs = ins._replace(space=domain), outs._replace(space=codomain)
    return value, aux, ins, outs


def _opened(tree: Any, leaves: Leaves, inside: bool = False) -> tuple[Any, Side]:
    """The arguments as the function sees them, and their side: nodes, types and structure.

    `inside`: the tree holds the coordinates of a point, which may be that point.
    """
    if type(tree) is float or (issubclass(type(tree), Scalar) and tree.of_type is not None):
        n = leaves(tree)
        return n, new(Side, (REAL, [n], [0.0]))
    if type(tree) is np.ndarray and tree.dtype.kind == "f":
        n = leaves(tree)
        return n, _leaf_side(tree, n)
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
            v, inner = _opened(points.coordinates(x), leaves, True)
            given.append(points.lifted(x, v))
            flat += inner.like
            nodes += inner.nodes
            charts.append(Chart(points, inner.space, getattr(x, "units", None)))
    return unflatten(structure, given), _side(flat, nodes, structure, charts)


def _closed(out: Value, value: Value, level: Level, name: str, inside: bool = False) -> Side:
    """The side of the results: `out` holds their nodes, `value` what the user gets."""
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
            inner = _closed(at, release_tree(at, level), level, name, True)
            flat += inner.like
            nodes += inner.nodes
            charts.append(Chart(manifold_of(s), inner.space, getattr(r, "units", None)))
    return _side(flat, nodes, structure, charts)


def _leaf_side(value: Leaf, node: Array) -> Side:
    """The side of one array of floating-point numbers."""
    return Side(space_of(type_of(value)), [node], [released_leaf(value)])


def _side(flat: list[Any], nodes: list[Any], structure: object, charts: list[Any]) -> Side:
    types = tuple([_tangent_type(v) for v in flat])
    still = frozenset([i for i, v in enumerate(flat) if not may_move(v)])
    space = Space(types, structure, tuple(charts) if any(charts) else (), still)
    return Side(space, nodes, [released_leaf(v) for v in flat])


def _settled(out: Value) -> Any:
    return map_leaves(lambda v: v.now() if isinstance(v, Traced) else v, out)


def _own_node(value: Value, level: Level) -> Any:
    return value if isinstance(value, Traced) and value.level is level else None


def _tangent_type(value: Shaped) -> ArrayType:
    t = type_of(value)
    return t if t.dtype.kind in "fc" else ArrayType(t.shape, np.dtype(float))


def _fit(vectors: list[Any], given: list[Any], like: list[Any], level: Level) -> list[Any]:
    """The results of a sweep of the `given` vectors, each in the type of its leaf."""
    if len(vectors) == 1 and type(vectors[0]) is float and type(like[0]) is float:
        return vectors
    for v in (*vectors, *given):
        if issubclass(type(v), Batched):
            return vectors
    grads = Gradients(level)
    grads.given = set(map(id, given))  # what the user gave is not handed out
    return [grads.fit(x, g) for x, g in zip(like, vectors, strict=True)]


def released_leaf(value: Leaf) -> Any:
    """An object with the type of a leaf but without its memory; gradients are fitted to it."""
    if issubclass(type(value), Traced):
        t = type_of(value)
        return _typed(t) if t.shape else 0.0
    return _typed(ArrayType(value.shape, value.dtype)) if isinstance(value, np.ndarray) else value


@functools.lru_cache(maxsize=256)  # a pure function of the type
def _typed(t: ArrayType) -> np.ndarray:
    """An array of a type, with no memory for its elements."""
    return np.broadcast_to(np.zeros((), t.dtype), t.shape)


def batch_sweep(sweep: Callable[..., Any], seeds: list[Any]) -> list[Any]:
    """A sweep on vectors with a leading batch axis: one sweep, not one for each."""
    with deeper(), deeper() as depth:  # the depth between is for masks inside the batch
        swept = sweep([Batched(s, depth) for s in seeds])
    return [_unbatched(g) for g in swept]


def basis_sweep(sweep: Callable[..., Any], basis: Basis, plain: bool) -> list[Any]:
    """A sweep on basis vectors, as compressed as they stay where residuals are plain arrays."""
    with deeper(), deeper() as depth:
        if basis.sets:
            return [None if y is None else y.matrix for y in sweep(seeds(basis.types, depth))]
        if basis.lanes:
            return sweep(basis_lanes(basis.types, depth))
        lanes = compressed(basis, depth) if plain and basis.vectors is None else None
        if lanes is not None:
            return [_unbatched(g) for g in sweep(lanes)]
    return batch_sweep(sweep, basis.dense())


BASIS = functools.partial(basis_sweep, plain=False)
PLAIN_BASIS = functools.partial(basis_sweep, plain=True)


def _unbatched(g: Shaped | None) -> Any:
    g = unmasked(g)
    return g.v if isinstance(g, Batched) else g
