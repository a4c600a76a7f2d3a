"""vmap: a function of one element, over the lanes of arrays.

The function is traced once, for the types of one lane, and its program is batched: what does not
depend on a lane is calculated once, at a branch each lane goes to its own side, and a loop goes on
with the lanes that still run, so that no lane is calculated where it would not have gone.  In a
trace the batched definition is called; on plain values it is evaluated, and on those of a
differentiation played, so that the derivative is that of the operations that were done.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from lineara.errors import OutOfRoom, ShapeError, StructureError
from lineara.facts.hints import Axis, Shaped, Value
from lineara.facts.primitive import op
from lineara.facts.types import ArrayType, type_of
from lineara.passes.batch import over_lanes
from lineara.python.user_code import Reading, Rooms, lifted, reading, seen
from lineara.staging.capture import STRUCTURED
from lineara.staging.definition_of import Apart, apart, staged_around
from lineara.staging.definitions import Definition, Same
from lineara.staging.run_on_tape import play
from lineara.tape.node import Traced, staged
from lineara.trees import flatten, unflatten


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
            one = _read(lane, f, rows, types, rooms)
            places = [None if axes[i] is None else 0 for i in one.given]
            over = _over(one.definition, (*places, *[None] * len(one.mentions)), size)
            try:
                results = _run(over, [*[rows[i] for i in one.given], *one.mentions])
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


def _read(
    lane: Callable[..., Any], f: Callable[..., Any], rows: list, types: list, rooms: Rooms
) -> Apart:
    """A lane as a definition; outside of a program the function is read from source."""
    if reading() is not None:
        return apart(lane, rows, types, "lane")
    now = Reading(STRUCTURED, False, f, rooms)
    return now.traced(lambda: apart(lane, rows, types, "lane", now))


def _lane(v: Shaped, axis: Axis) -> ArrayType | None:
    """The type of a leaf in one lane; None for what is constant."""
    if axis is None:
        return type_of(v) if isinstance(v, Traced | np.ndarray) else None
    t = type_of(v)
    return ArrayType(t.shape[1:], t.dtype)


# --- axes -----------------------------------------------------------------------------------------


def _axes(
    axes: int | tuple[Any, ...] | None, args: tuple, name: str, single: bool = False
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


# --- all lanes ------------------------------------------------------------------------------------


class _Over(NamedTuple):
    """A rule of the user's over lanes: it is tested with the values of the first one."""

    rule: Any
    axes: Sequence[int | None]

    @property
    def is_tested(self) -> bool:
        """Whether the rule was tested."""
        return self.rule.is_tested

    def test(self, values: Sequence[Any]) -> None:
        """Test it with the first values that reach it."""
        if not self.is_tested:
            given = values[len(values) - len(self.axes) :]  # the number of lanes may come first
            pairs = zip(given, self.axes, strict=True)
            self.rule.test([v if a is None else v[0] for v, a in pairs])


def _over(one: Definition, axes: tuple[int | None, ...], size: int) -> Definition:
    """The definition over lanes; all of its results have them."""
    program, name, made = _batched(Same.of(one.program, one.name), axes, size)
    rules = {
        new: _Over(one.rules[old], axes) for new, (old, axes) in made.items() if old in one.rules
    }
    return Definition(program, name, {**one.rules, **rules}, engine=one.engine)


@functools.lru_cache(maxsize=64)
def _batched(one: Same, axes: tuple[int | None, ...], size: int) -> Any:
    return over_lanes(one.program, one.name, axes, size)


def _run(definition: Definition, values: Sequence[Any]) -> list[Any]:
    """The results: a call in a trace, else the operations themselves."""
    if staged_around() is not None and staged(list(values)):
        return list(op("defined")(*values, definition=definition, name="vmap"))
    return play(definition.program, definition.rules, definition.name, values)


__all__ = ["vmap"]
