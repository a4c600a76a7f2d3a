"""One differentiation: open a level, run the function on traced arguments, sweep, close.

`backward` is the one-shot reverse mode behind grad; `linearize` keeps the tape and gives the
linear map.  Both take functions that already see our NumPy (capture/overlay).
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Number
from typing import Any

import numpy as np

from lineara.eager.batched import Batched
from lineara.eager.containers import lift, rebuild
from lineara.eager.leaves import Gradients, Leaves, kind_of_number, may_move, one_like
from lineara.eager.level import Entry, Level
from lineara.eager.masked import Masked, unmasked
from lineara.eager.node import Array, Scalar, Traced, leaked, outlived, plain, zero
from lineara.eager.points import (
    Chart,
    answers_itself,
    is_point,
    manifold_of,
    release_within,
    with_units,
    without_unit,
)
from lineara.eager.reads import Reads, View, distribute, forget
from lineara.eager.sweep import add, arrived, clear, forward, reverse, tidy
from lineara.eager.trace import deeper, open_level
from lineara.eager.written import Written
from lineara.errors import NonScalarOutputError, StructureError, TypeMismatchError
from lineara.linear_map import LinearMap, Space, Work
from lineara.primitive import Box, Outer
from lineara.trees import flatten, leaf_paths, map_leaves, unflatten
from lineara.types import ArrayType, show_type, type_of


@dataclass
class Asked:
    """What the user asked of a gradient."""

    argnums: tuple[int, ...] = (0,)
    has_aux: bool = False
    sparse: bool | tuple[str, ...] = False
    combine: Callable[[Any, Any], Any] | None = None
    builder: bool = False
    strong_zero: bool = False
    name: str = "grad"


# --- values that leave the trace ------------------------------------------------------------------


def released(value: Any, level: Level) -> Any:
    """A result without this level: the value below, plain arrays for arrays that were written."""
    if isinstance(value, Written):
        value = value.now()
    if isinstance(value, Traced) and value.level is level:
        value = value.v
        return value.copy() if isinstance(value, Array) else value
    if isinstance(value, Traced | float | np.ndarray):
        return value
    return release_within(value, lambda v: released(v, level))


def _own_copy(value: Any) -> Any:
    """An array that the user may write to without changing what a linear map holds."""
    return value.copy() if isinstance(value, np.ndarray) else value


def release_tree(tree: Any, level: Level) -> Any:
    """Every leaf of a result without this level."""
    if isinstance(tree, Traced):
        return released(tree, level)
    return map_leaves(lambda v: released(v, level), tree)


def lift_args(args: Sequence[Any], argnums: Sequence[int], leaves: Leaves) -> list[Any]:
    """The arguments, those to differentiate as lazy traced proxies."""
    found = list(args)
    for i in argnums:
        a = args[i]
        plain_leaf = type(a) is np.ndarray or type(a) is float
        found[i] = leaves(a) if plain_leaf else lift(a, leaves, method=leaves.method)
    return found


# --- gradients ------------------------------------------------------------------------------------


def backward(f: Any, args: tuple, kwargs: dict[str, Any], asked: Asked, method: Any) -> Any:
    """(value, gradients of args[argnums], aux) of a function with one real result."""
    with open_level() as level:
        return _backward(level, f, args, kwargs, asked, method)


def _backward(
    level: Level, f: Any, args: tuple, kwargs: dict[str, Any], asked: Asked, method: Any
) -> Any:
    """The same at an open level.

    A function of its own, so that the result's node is gone when the level clears its tape from
    the end: a chain of nodes is then freed one by one and not by recursion.
    """
    leaves = Leaves(level, [args[i] for i in asked.argnums], method)
    lifted = lift_args(args, asked.argnums, leaves)
    for i in asked.argnums:
        if lifted[i] is args[i]:  # a leaf that stays as it is
            _check_numbers([args[i]], asked.name)
    out = f(*lifted, **kwargs)
    if not isinstance(asked.sparse, bool):
        _check_names(asked.sparse, [args[i] for i in asked.argnums], asked.name)
    if not leaves.nodes:
        _check_numbers([args[i] for i in asked.argnums], asked.name)
    out, aux = _with_aux(out, asked)
    number, unit = without_unit(out)
    y = _scalar_output(number, asked.name)
    value = y
    if isinstance(y, Traced) and y.level is level:
        with np.errstate(all="ignore"):
            _sweep_back(level, y, leaves.nodes, asked.strong_zero)
        value = y.v
    if unit is not None:
        value = type(out)(value, unit)
    grads = Gradients(level, leaves.points, unit)
    found = [_gradient(args[i], lifted[i], grads, asked) for i in asked.argnums]
    aux = release_tree(aux, level) if asked.has_aux else None
    for n in leaves.nodes:
        clear(n, last=True)
    return value, found, aux


def _check_numbers(values: Sequence[Any], name: str) -> None:
    """Refuse arguments that hold no number at all."""
    leaves = flatten(list(values))[0]
    if values and not any([may_move(v) for v in leaves]):
        shown = ", ".join(map(show_type, values))
        raise TypeMismatchError(
            f"{name}: there is no number in {shown}, so there is nothing to differentiate; give "
            "floating-point numbers or arrays, or containers of them"
        )


def _with_aux(out: Any, asked: Asked) -> tuple[Any, Any]:
    if not asked.has_aux:
        return out, None
    if not isinstance(out, tuple) or len(out) != 2:
        raise TypeMismatchError(
            f"{asked.name}: has_aux=True takes a function that returns (value, aux), "
            f"but it returned {show_type(out)}"
        )
    return out


def _scalar_output(out: Any, name: str) -> Any:
    """The one real number that a gradient is of, or an error that says what came instead."""
    y = out.now() if isinstance(out, Traced) else out
    if isinstance(y, Traced) and y.shape and y.size == 1 and y.ndim == 0:
        y = y.item()
    if y is None:
        raise NonScalarOutputError(
            f"{name}: the function returned None; it must return one real number "
            "(is a `return` missing?)"
        )
    if not isinstance(y, Traced | np.ndarray | np.generic | Number) and (
        isinstance(y, str | bytes) or answers_itself(y) or not hasattr(y, "__mul__")
    ):
        raise NonScalarOutputError(
            f"{name}: the function returned {show_type(y)}; it must return one real number "
            "(for several results, use jacobian or vjp; for more results, has_aux=True)"
        )
    if type(y) is float or (isinstance(y, Scalar) and type(y.v) is float):
        return y
    t = type_of(y)
    if t.dtype.kind not in "fciuO" or (isinstance(y, np.ndarray) and t.dtype.kind == "O"):
        raise NonScalarOutputError(
            f"{name}: the function returned {t}, which has no derivative; "
            "it must return one real number"
        )
    if t.shape:
        raise NonScalarOutputError(
            f"{name}: the function returned {t}; it must return one real number, "
            "so sum it, or use jacobian or vjp"
        )
    if t.dtype.kind == "c":
        raise NonScalarOutputError(
            f"{name}: the function returned a complex number ({t}); a gradient needs a real one, "
            "so take its real part or its modulus, or use jacobian"
        )
    return y


def _sweep_back(level: Level, y: Any, nodes: Sequence[Any], strong_zero: bool) -> None:
    """The reverse sweep; a masked one follows where the plain one has produced a NaN."""
    if y.g is leaked:
        raise outlived()
    if not strong_zero:
        y.g = one_like(y.v)
        parted = reverse(level.tape, level.S, last=True)
        level.swept = True
        if not _any_nan(level, nodes):
            for n in parted:
                forget(n)
            return
        level.swept = False
        tidy(level.tape, nodes, last=False)
    with deeper() as depth:
        y.g = Masked(1.0, None, depth, strong_zero)
        reverse(level.tape, level.S, last=False)
        for n in nodes:
            settle(n)


def settle(n: Any) -> None:
    """Replace the masked cotangents of a leaf, and of what was read of it, by their values."""
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


def _bare(piece: Any) -> Any:
    """A contribution without masks."""
    moving = [name for name in piece._fields if name != "at"]
    return piece._replace(**{name: unmasked(getattr(piece, name)) for name in moving})


def _any_nan(level: Level, nodes: Sequence[Any]) -> bool:
    """Whether a NaN has arrived at one of the leaves."""
    if level.depth == 1:  # plain scalars: one sum tells of all
        scalars = [n.g for n in nodes if type(n) is level.S]
        if not _has_nan(sum(scalars)):
            nodes = [n for n in nodes if type(n) is not level.S]
    return any([_is_nan(n) for n in nodes])


def _is_nan(n: Any) -> bool:
    """Whether a NaN has arrived at a leaf."""
    if isinstance(n, Scalar):
        g = plain(n.g) if isinstance(n.g, Traced) else n.g
        return _has_nan(g)
    k = n.k
    if k is None:
        return _has_nan(n.g)
    if n.g is not None and _has_nan(n.g):
        return True
    if any([_has_nan(p.u if type(p) is Outer else p.x_bar) for p in k.pieces]):
        return True
    if any([_has_nan(o.g) for o in k.sums]):
        return True
    if type(k) is View:
        return False
    found = [o.g for o in k.nodes]
    at_once = n.level.depth == 1 and bool(found)  # plain numbers: one sum tells
    if (at_once and _has_nan(sum(found))) or (not at_once and any([_has_nan(g) for g in found])):
        return True
    return any([_is_nan(o) for o in k.views])


def _has_nan(g: Any) -> bool:
    g = plain(g) if isinstance(g, Traced) else g.v if isinstance(g, Batched) else g
    g = plain(g) if isinstance(g, Traced) else g
    if isinstance(g, float):
        return g != g
    if isinstance(g, np.ndarray) and g.dtype.kind in "fc":
        total = g.sum()
        return bool(total != total)
    return False


def _gradient(source: Any, lifted: Any, grads: Gradients, asked: Asked) -> Any:
    """The gradient of one argument, in its own container."""
    if asked.combine is not None:
        combine = asked.combine
        return rebuild(source, lifted, lambda x, n: combine(x, grads.dense(x, n)))
    if asked.builder or asked.sparse is True:
        if isinstance(lifted, Traced):
            return grads.sparse(source, lifted)
        return rebuild(source, lifted, grads.sparse, sparse=True)
    if asked.sparse:
        return _some_sparse(source, lifted, grads, asked.sparse)
    if isinstance(lifted, Traced):
        return grads.dense(source, lifted)
    return rebuild(source, lifted, grads.dense)


def _some_sparse(source: Any, lifted: Any, grads: Gradients, names: Sequence[str]) -> Any:
    """Sparse for the leaves whose path ends with one of the names, dense for the others."""
    paths = iter(leaf_paths(source))

    def finish(x: Any, n: Any) -> Any:
        return grads.sparse(x, n) if _named(next(paths), names) else grads.dense(x, n)

    return rebuild(source, lifted, finish)


def _named(path: str, names: Sequence[str]) -> list[str]:
    """The names that a path ends with."""
    words = path.replace("]", "").replace("'", "").replace("[", ".").split(".")
    return [s for s in names if s == path or words[-len(s.split(".")) :] == s.split(".")]


def _check_names(names: Sequence[str], sources: Sequence[Any], name: str) -> None:
    """Refuse a name in `sparse` that no leaf has."""
    paths = [path for source in sources for path in leaf_paths(source)]
    missing = set(names).difference(*[_named(path, names) for path in paths])
    if missing:
        raise StructureError(
            f"{name}: sparse names {', '.join(sorted(missing))}, which is no leaf; the leaves are "
            f"{', '.join(paths[:8]) or 'one array without a name'}"
        )


# --- linear maps ----------------------------------------------------------------------------------


class Frozen:
    """A tape that outlives its trace: the linear map at a point, swept as often as asked."""

    def __init__(self, level: Level, nodes: list[Any], outs: list[Any]) -> None:
        self.tape = list(level.tape)
        self.scalar = level.S
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
                found = sweep(seeds)
                if any(_has_nan(g) for g in found) and not any(_has_nan(s) for s in seeds):
                    with deeper() as depth:
                        found = sweep([_with_mask(s, depth) for s in seeds])
                    found = [unmasked(g) for g in found]
                return found
            finally:
                tidy(self.tape, self.roots, last=True)

    def _forward(self, tangents: list[Any]) -> list[Any]:
        tidy(self.tape, self.roots, last=False)
        for n, t in zip(self.nodes, tangents, strict=True):
            if n is not None:
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
            if type(n) is Entry:
                value += n.work
                ahead += n.work * max(1, len(n.parents))
            else:
                size = n.size if isinstance(n, Array) else 1
                value += size
                ahead += size * (2 if n.b is None else 4)
        return Work(value, ahead, ahead)


def _with_mask(seed: Any, depth: int) -> Any:
    """A seed whose plain zeros are structural: nothing is moved there, or asked of it."""
    if isinstance(seed, Batched):
        return Batched(_with_mask(seed.v, seed.depth - 1), seed.depth)
    live = None if isinstance(seed, Box) else np.asarray(seed) != 0
    return Masked(seed, live, depth)


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
) -> tuple[Any, LinearMap, Any]:
    """(value, linear map from args[argnums] to the result, aux)."""
    with open_level() as level:
        level.keep_copies = True
        sources = [args[i] for i in argnums]
        leaves = Leaves(level, sources, method)
        _check_numbers(sources, name)
        whole = sources[0] if len(sources) == 1 else tuple(sources)
        tree, flat, nodes, domain = _opened(whole, leaves)
        given = dict(zip(argnums, [tree] if len(sources) == 1 else list(tree), strict=True))
        out = f(*(given.get(i, a) for i, a in enumerate(args)), **kwargs)
        out, aux = _with_aux(out, Asked(has_aux=has_aux, name=name))
        out = _settled(out)
        value = release_tree(out, level)
        results, outs, codomain = _closed(out, value, level, name)
        domain, codomain = with_units(domain, codomain)
        if any([o is not None and o.g is leaked for o in outs]):
            raise outlived()
        value = map_leaves(_own_copy, value)
        frozen = Frozen(level, nodes, outs)
        work = frozen.work()
        aux = map_leaves(_own_copy, release_tree(aux, level)) if has_aux else None
    fit = Gradients(level)
    back = _fitted(frozen.back, flat, fit)
    ahead = _fitted(frozen.forward, results, fit)
    return value, LinearMap(ahead, back, domain, codomain, work, batch_sweep), aux


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
            _check_result(r, name)
            flat.append(r)
            nodes.append(_own_node(r, level))
            charts.append(None)
        else:
            at = _settled(points.outgoing(r, s))
            inner, inner_nodes, space = _closed(at, release_tree(at, level), level, name, True)
            flat += inner
            nodes += inner_nodes
            charts.append(Chart(points, space, getattr(r, "units", None)))
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


def _check_result(value: Any, name: str) -> None:
    number = type(value) is float or kind_of_number(value) in tuple("fci")
    if not number:
        raise TypeMismatchError(
            f"{name}: the function returned {show_type(value)}, which has no derivative; "
            "return numbers, arrays or containers of them (other things with has_aux=True)"
        )


def _fitted(
    sweep: Callable, leaves: list[Any], grads: Gradients
) -> Callable[[list[Any]], list[Any]]:
    """The sweep with results in the types of the leaves that they belong to."""
    types = [released_leaf(v) for v in leaves]

    def run(vectors: list[Any]) -> list[Any]:
        found = sweep(vectors)
        grads.given.clear()
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


def _unbatched(g: Any) -> Any:
    g = unmasked(g)
    return g.v if isinstance(g, Batched) else g
