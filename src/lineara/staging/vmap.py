"""vmap: a function of one element, over the lanes of arrays.

The function is traced once, for the types of one lane, and its program is batched: what does not
depend on a lane is calculated once, at a branch each lane goes to its own side, and a loop goes on
with the lanes that still run, so that no lane is calculated where it would not have gone.  In a
trace the batched definition is called; on plain values it is evaluated, and on those of a
differentiation played, so that the derivative is that of the operations that were done.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lineara.containers.foreign_arrays import refuse_foreign
from lineara.errors import OutOfRoom, ShapeError, StructureError
from lineara.facts.hints import Axis, Shaped, Value
from lineara.facts.pickled import transformation
from lineara.facts.primitive import op
from lineara.facts.types import ArrayType, type_of
from lineara.python.user_code import Reading, Rooms, lifted, reading, seen
from lineara.staging.capture import STRUCTURED
from lineara.staging.definition_of import Apart, apart, staged_around
from lineara.staging.definitions import Definition
from lineara.staging.run_on_tape import play
from lineara.staging.tracing import refuse_what_runs_later
from lineara.tape.node import Traced, staged
from lineara.trees import flatten, unflatten


@transformation
def vmap(f: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0) -> Callable[..., Any]:
    """f over lanes: in_axes says which axis of each argument holds them, None that it has none.

    in_axes and out_axes are an axis for all, or a tuple with one for each argument (each result);
    an entry may be a container of axes, like the argument.  Nests, is differentiated and traced.

    >>> vmap(lambda x, y: x @ y, (0, None))(np.eye(2), np.array([3.0, 4.0]))
    array([3., 4.])
    """

    @functools.wraps(f, updated=())
    def mapped(*args: Any) -> Any:
        axes = _axes(in_axes, args, "in_axes")
        leaves, structure = flatten(args)
        refuse_foreign(leaves, "vmap")
        size = _size(leaves, axes)
        rows = [v if a is None else _front(v, a) for v, a in zip(leaves, axes, strict=True)]
        types = [_lane(v, a) for v, a in zip(rows, axes, strict=True)]

        def lane(*nodes: Any) -> Any:
            for row, node in zip(rows, nodes, strict=True):
                if isinstance(node, Traced) and node.shape:
                    node.level.overlaps.add(row, node)
            return seen(f)(*lifted(unflatten(structure, nodes)))

        rooms = Rooms()
        while True:
            one = read_apart(lane, f, rows, types, rooms, "lane")
            for v in one.constants:
                refuse_what_runs_later("vmap: the function", v)
            places = [None if axes[i] is None else 0 for i in one.given]
            given = (*places, *[None] * len(one.mentions))
            over = one.definition.over_lanes(given, size)
            try:
                results = run_definition(
                    over, [*[rows[i] for i in one.given], *one.mentions], "vmap"
                )
                break
            except OutOfRoom as e:
                if not rooms.outgrown(e):
                    raise
        tree = one.tree(results, lambda c: _still(c, size))
        where = _axes(out_axes, (tree,), "out_axes", single=True)
        return unflatten(
            one.structure, [_back(v, a) for v, a in zip(flatten(tree)[0], where, strict=True)]
        )

    return mapped


def read_apart(
    run: Callable[..., Any],
    f: Callable[..., Any],
    values: Sequence[Any],
    types: Sequence[ArrayType | None],
    rooms: Rooms,
    like: str,
) -> Apart:
    """`run(*values)`, which calls f, as a definition; outside of a program f is read as source."""
    if reading() is not None:
        return apart(run, values, types, like)
    now = Reading(STRUCTURED, False, f, rooms)
    return now.traced(lambda: apart(run, values, types, like, now))


def _lane(v: Shaped, axis: Axis) -> ArrayType | None:
    """The type of a leaf in one lane; None for what is constant."""
    if axis is None:
        return type_of(v) if isinstance(v, Traced | np.ndarray) else None
    t = type_of(v)
    return ArrayType(t.shape[1:], t.dtype)


# --- axes -----------------------------------------------------------------------------------------


def _axes(
    axes: int | tuple[Any, ...] | None, args: tuple[Any, ...], name: str, single: bool = False
) -> list[Any]:
    """The axis of each leaf."""
    given = (axes,) if single else axes
    if not single and (axes is None or isinstance(axes, int)):
        given = (axes,) * len(args)
    if single and isinstance(axes, tuple) and not isinstance(args[0], tuple):
        raise StructureError(f"vmap: {name} is a tuple, but there is one result")
    if not isinstance(given, tuple | list) or len(given) != len(args):
        raise StructureError(
            f"vmap: {name} is {axes!r}; give an axis, or a tuple with one for each of the "
            f"{len(args)} arguments"
        )
    leaf_axes: list[Any] = []
    for axis, a in zip(given, args, strict=True):
        leaves, structure = flatten(a)
        if axis is None or isinstance(axis, int):
            leaf_axes += [axis] * len(leaves)
            continue
        parts, form = flatten(axis)
        if form != structure:
            raise StructureError(f"vmap: {name} has {form} for an argument that is {structure}")
        leaf_axes += parts
    return leaf_axes


def _size(leaves: Sequence[Any], axes: Sequence[Any]) -> int:
    """The number of lanes."""
    sizes: dict[int, ArrayType] = {}
    for v, a in zip(leaves, axes, strict=True):
        if a is None:
            continue
        t = type_of(v) if isinstance(v, Traced | np.ndarray) else ArrayType((), np.dtype(object))
        if not -t.ndim <= a < t.ndim:
            raise ShapeError(
                f"vmap: there is no axis {a} in {v!r}; give None in in_axes for what has no lanes"
            )
        sizes[t.shape[a]] = t
    if len(sizes) != 1 or 0 in sizes:
        raise ShapeError(
            f"vmap: the lanes are {', '.join(map(str, sizes)) or 'none'}; all axes of lanes have "
            "one length, which is not 0"
        )
    return next(iter(sizes))


def _front(v: Shaped, axis: int) -> Any:
    """The array with an axis in front."""
    axis %= len(v.shape)
    axes = (axis, *[i for i in range(len(v.shape)) if i != axis])
    return v if not axis else op("permute_dims")(v, axes=axes)


def _back(v: Value, axis: int | None) -> Any:
    """The array with its lanes at an axis; without lanes, the first."""
    if not isinstance(v, Traced | np.ndarray):
        return v
    if axis is None:
        return v[0]
    n = len(v.shape)
    axis %= n
    axes = [i for i in range(1, n)]
    axes.insert(axis, 0)
    return v if not axis else op("permute_dims")(v, axes=tuple(axes))


def _still(c: Value, size: int) -> Any:
    """A constant result: numbers in every lane, anything else as it is."""
    number = isinstance(c, int | float | complex | np.ndarray | np.generic)
    return np.array(np.broadcast_to(c, (size, *np.shape(c)))) if number else c


def run_definition(definition: Definition, values: Sequence[Any], name: str) -> list[Any]:
    """The results: a call in a trace, else the operations themselves."""
    if staged_around() is not None and staged(list(values)):
        return list(op("defined")(*values, definition=definition, name=name))
    return play(definition.program, definition.rules, definition.name, values)


__all__ = ["read_apart", "run_definition", "vmap"]
