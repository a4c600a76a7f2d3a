"""One gradient: open a level, run the function on traced arguments, sweep back, close.

The function already sees our NumPy (python/overlay).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lineara.containers.boundary import rebuild
from lineara.containers.points import without_unit
from lineara.cotangent.dead_lanes import Masked
from lineara.errors import StructureError
from lineara.facts.hints import Shaped
from lineara.facts.types import type_of
from lineara.tape.given_builders import keeping_parts, settled
from lineara.tape.leaves import Gradients, Leaves, beside, lift_args, may_move, one_like
from lineara.tape.level import Level
from lineara.tape.levels import deeper, open_level
from lineara.tape.masked_sweep import any_nan, settle
from lineara.tape.node import Traced, leaked, outlived, staged
from lineara.tape.number_sweep import are_sound, numbers_back
from lineara.tape.reads import forget
from lineara.tape.results import check_numbers, release_tree, scalar_output, with_aux
from lineara.tape.sweep import reverse, tidy
from lineara.trees import leaf_paths


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
    dense: bool = field(init=False, compare=False)  # numbers and arrays, given as they are

    def __post_init__(self) -> None:
        self.dense = self.combine is None and not self.builder and not self.sparse


OPENING = open_level()


def backward(
    f: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    asked: Asked,
    method: Callable[..., Any],
) -> Any:
    """(value, gradients of args[argnums], aux) of a function with one real result."""
    with OPENING as level:
        return _backward(level, f, args, kwargs, asked, method)


def _backward(
    level: Level,
    f: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    asked: Asked,
    method: Callable[..., Any],
) -> Any:
    """`backward` on a level that is open.

    A function of its own, so that the result's node is gone when the level clears its tape from
    the end: a chain of nodes is then freed one by one and not by recursion.
    """
    argnums, given, others = asked.argnums, args, ()
    if len(args) > 1 or kwargs:
        given, others = [args[i] for i in argnums], beside(args, kwargs, argnums)
    leaves = Leaves(level, given, method, others)
    lifted = lift_args(args, argnums, leaves)
    if leaves.places is not None:
        for i in argnums:
            if lifted[i] is args[i]:  # a leaf that stays as it is
                check_numbers([args[i]], asked.name)
    out = f(*lifted, **kwargs)
    if leaves.places is not None:
        leaves.places.close()
    if not asked.dense and isinstance(asked.sparse, tuple):
        _check_names(asked.sparse, given, asked.name)
    if not leaves.nodes:
        check_numbers(given, asked.name)
    aux = unit = None
    if asked.has_aux:
        out, aux = with_aux(out, True, asked.name)
    y = out
    if type(y) is not level.S and type(y) is not level.N:  # not a real number of this level
        number, unit = without_unit(out)
        y = scalar_output(number, asked.name)
    value = y
    if isinstance(y, Traced) and y.level is level:
        _sweep_back(level, y, asked.strong_zero, not asked.dense and asked.combine is None)
        value = y.v
    if unit is not None:
        value = type(out)(value, unit)
    grads, gradients, dense = None, [], asked.dense
    for i in argnums:
        x, x_bar = args[i], lifted[i]
        if dense and type(x) is float and type(x_bar.g) is float:
            gradients.append(x_bar.g)
            continue
        if grads is None:
            grads = Gradients(level, leaves.points, unit)
        if dense and isinstance(x_bar, Traced):
            gradients.append(grads.dense(x, x_bar))
        else:
            gradients.append(_gradient(x, x_bar, grads, asked))
    return value, gradients, release_tree(aux, level) if asked.has_aux else None


def _sweep_back(level: Level, y: Any, strong_zero: bool, sparse: bool) -> None:
    """The reverse sweep: over the numbers at the end of the tape, then over all entries before."""
    if y.g is leaked:
        raise outlived()
    if level.locks.seen:
        level.locks.check()
    tape = level.tape
    if type(y.v) is float and not strong_zero:  # at the outermost level, as most results
        y.g = 1.0
        left = numbers_back(tape, (level.S, level.N))
        if not left and are_sound(level.roots):
            level.swept = True
            return
        if left < len(tape):
            tape = tape[:left]
    _sweep_arrays(level, y, tape, strong_zero, sparse)


@np.errstate(all="ignore")
def _sweep_arrays(
    level: Level, y: Any, tape: Sequence[Any], strong_zero: bool, sparse: bool
) -> None:
    """The reverse sweep over what is left; where it gives a NaN, all is swept again with masks.

    In a trace nobody can know whether it will, so there the masked one is all that is written.
    """
    nodes, known = level.roots, type(y.v) is float
    unknown = not known and staged(y)
    if not strong_zero and not unknown:
        if not known:
            y.g = one_like(y.v)
        if sparse:
            with keeping_parts() as pull:
                parted = reverse(tape, (level.S, level.N), True, pull)
                for n in nodes:
                    settled(n)
        else:
            parted = reverse(tape, (level.S, level.N), last=True)
        level.swept = True
        if not any_nan(level, nodes):
            for n in parted:
                forget(n)
            return
        level.swept = False
        tidy(level.tape, (level.S, level.N), nodes, last=False)
    with deeper() as depth:
        one = type_of(y.v).dtype.type(1) if unknown else one_like(y.v)
        y.g = Masked(one, None, depth, strong_zero)
        reverse(level.tape, (level.S, level.N), last=False)
        for n in nodes:
            settle(n)


def _gradient(source: Any, lifted: Any, grads: Gradients, asked: Asked) -> Any:
    """The gradient of one argument, in its own container."""
    if asked.combine is not None:
        combine = asked.combine
        return rebuild(
            source, lifted, lambda x, n: combine(x, grads.dense(x, n)) if may_move(x) else x
        )
    if asked.builder or asked.sparse is True:
        if isinstance(lifted, Traced):
            return grads.sparse(source, lifted)
        return rebuild(source, lifted, grads.sparse, sparse=True)
    if asked.sparse:
        return _some_sparse(source, lifted, grads, asked.sparse)
    if isinstance(lifted, Traced):
        return grads.dense(source, lifted)
    return rebuild(source, lifted, grads.dense)


def _some_sparse(
    source: dict[Any, Any], lifted: dict[Any, Any], grads: Gradients, names: Sequence[str]
) -> Any:
    """Sparse for the leaves whose path ends with one of the names, dense for the others."""
    paths = iter(leaf_paths(source))

    def finish(x: Shaped, n: Any) -> Any:
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
