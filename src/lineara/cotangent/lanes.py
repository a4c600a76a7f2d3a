"""A batch over all basis vectors whose coefficients are traced, each beside its column.

A *lane* is an array of the value's own shape, of coefficients, and one of columns: the basis vector
that each belongs to.  What moves elements moves the lanes, a product scales them, a sum has the
lanes of both, of which those are joined whose columns agree.

    x            columns  0 1 2 3        coefficients  1 1 1 1
    x[1:] * a    columns  1 2 3          coefficients  a a a
    + x[:-1]     columns  0 1 2          coefficients  1 1 1

Columns follow from the operations, so they are known while a program is traced, and coefficients
that depend on no argument are constants of it.  An element that depends on more than lanes can tell
is `LOST`.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from lineara.errors import StructureError
from lineara.facts.box import ArrayBox, Box
from lineara.facts.hints import Index
from lineara.facts.primitive import Primitive, Structural, op
from lineara.facts.types import ArrayType, type_of

NONE, LOST = -1, -2  # in place of a column: a structural zero; no lanes tell of the element
MOST = 64  # lanes


class Lane(NamedTuple):
    """Coefficients, and for each its column."""

    values: Any
    columns: np.ndarray


class Lanes(ArrayBox):
    """The tangent of a value for each basis vector, as lanes of its shape."""

    __slots__ = ("depth", "dtype", "lanes", "shape")
    shape: Any
    dtype: np.dtype
    lanes: Sequence[Lane]
    depth: Any

    def __init__(
        self, shape: tuple[int, ...], dtype: np.dtype, lanes: Sequence[Lane], depth: int
    ) -> None:
        self.shape, self.dtype, self.lanes, self.depth = tuple(shape), dtype, lanes, depth

    def __getitem__(self, at: Index) -> Any:
        return op("index")(self, at=at)

    def interpret(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """The lanes of the result; lost where none are known."""
        t = primitive.result(*map(_typed, args), **params)
        if not isinstance(t, ArrayType):
            raise StructureError(f"no lanes hold what {primitive.name} gives")
        lanes = None
        if not any([isinstance(p, Box) for p in _flat(params.values())]):
            lanes = self._of(primitive, args, params, t)
        if lanes is None or len(lanes) > MOST:
            lanes = [Lane(np.zeros(t.shape), np.full(t.shape, LOST))]
        return Lanes(t.shape, t.dtype, lanes, self.depth)

    def _of(
        self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any], t: ArrayType
    ) -> Sequence[Lane] | None:
        name, mine = primitive.name, [isinstance(a, Lanes) for a in args]
        if name in ("add", "subtract"):
            return _sum(name, args, t.shape)
        if (name == "multiply" and sum(mine) == 1) or (name == "divide" and not mine[1]):
            return [
                _spread(_scaled(primitive, args, lane), lane.columns, t.shape)
                for lane in args[mine.index(True)].lanes
            ]
        if name in ("negative", "real", "conj", "astype"):
            if t.dtype.kind != "f":
                return None
            return [Lane(primitive(v, **params), at) for v, at in args[0].lanes]
        if name == "sum":
            return _reduced(args[0], t.shape, params["axis"])
        if name == "keep" and mine[0]:
            return _chosen(args[1], [(args[0], True)], t.shape)
        if name in ("where", "live_factor"):
            return _chosen(args[0], [(args[1], True), (args[2], False)], t.shape)
        if isinstance(primitive, Structural) and name != "checkpoint_name":
            return _moved(primitive, args, params)
        return None


def _typed(a: Any) -> Any:
    return ArrayType(a.shape, a.dtype) if isinstance(a, Lanes) else a


def _flat(values: Iterable[Any]) -> Iterator[Any]:
    """Values, and those in tuples."""
    for v in values:
        if isinstance(v, tuple):
            yield from _flat(v)
        else:
            yield v


def _is_zero(a: Any) -> bool:
    """Whether a value is known to be zero everywhere."""
    return not isinstance(a, Box) and not np.any(a)


def _scaled(primitive: Primitive, args: tuple[Any, ...], lane: Lane) -> Any:
    """The coefficients of a product with what does not depend on the basis."""
    v, other = lane.values, args[1] if isinstance(args[0], Lanes) else args[0]
    if primitive.name == "multiply" and not isinstance(v, Box) and np.all(v == 1):
        return other  # with which it is broadcast
    return primitive(*[v if isinstance(a, Lanes) else a for a in args])


def _spread(values: Any, columns: np.ndarray, shape: tuple[int, ...]) -> Lane:
    """A lane of that shape, with which both parts are broadcast."""
    if not isinstance(values, Box) and not np.all(values):  # zero for all arguments
        columns = np.where(np.equal(values, 0), NONE, columns)
    if type_of(values).shape != shape:
        values = op("broadcast_to")(values, shape=shape)
    return Lane(values, np.broadcast_to(columns, shape))


def _sum(name: str, args: tuple[Any, ...], shape: tuple[int, ...]) -> Sequence[Lane] | None:
    lanes: list[Lane] = []
    for a, sign in zip(args, (1, 1 if name == "add" else -1), strict=True):
        if not isinstance(a, Lanes):
            if not _is_zero(a):
                return None
            continue
        for v, at in a.lanes:
            lane = _spread(v if sign == 1 else -v, at, shape)
            i = next((i for i, kept in enumerate(lanes) if _agree(kept.columns, lane.columns)), -1)
            if i < 0:
                lanes.append(lane)
            else:
                lanes[i] = _joined(lanes[i], lane)
    return lanes


def _agree(a: np.ndarray, b: np.ndarray) -> bool:
    return bool(((a == b) | (a == NONE) | (b == NONE)).all())


def _joined(a: Lane, b: Lane) -> Lane:
    """The sum of two lanes whose columns agree."""
    parts = [_where(at != NONE, v) for v, at in (a, b)]
    return Lane(parts[0] + parts[1], np.where(a.columns == NONE, b.columns, a.columns))


def _where(live: np.ndarray, v: Any) -> Any:
    """The coefficients, and 0 where there are none."""
    return v if live.all() else op("where")(live, v, 0.0)


def _reduced(x: Lanes, shape: tuple[int, ...], axis: tuple[int, ...]) -> Sequence[Lane] | None:
    """A sum over axes: what was summed lies in lanes of its own."""
    axes = sorted([i % x.ndim for i in axis])
    count = math.prod([x.shape[i] for i in axes])
    if count * len(x.lanes) > MOST:
        return None
    order = (*axes, *[i for i in range(x.ndim) if i not in axes])
    lanes = []
    for parts in x.lanes:
        v, at = (
            op("reshape")(op("permute_dims")(p, axes=order), shape=(count, *shape)) for p in parts
        )
        lanes += [Lane(v[i], at[i]) for i in range(count)]
    return lanes


def _chosen(
    chooses: Any, ways: Sequence[tuple[Any, bool]], shape: tuple[int, ...]
) -> Sequence[Lane] | None:
    """The lanes of each way, where it is taken."""
    if isinstance(chooses, Box):
        return None
    lanes: list[Lane] = []
    taken = np.broadcast_to(chooses, shape).astype(bool)
    for x, way in ways:
        if not isinstance(x, Lanes):
            if not _is_zero(x):
                return None
            continue
        for v, at in x.lanes:
            lane = _spread(v, at, shape)
            lanes.append(Lane(lane.values, np.where(taken == way, lane.columns, NONE)))
    return lanes


def _moved(
    primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]
) -> Sequence[Lane] | None:
    """Each element is that of one operand at one place, or zero."""
    if not all([isinstance(a, Lanes) or _is_zero(a) for a in args]):
        return None
    if primitive.name == "scatter":
        ones = primitive(np.ones(args[0].shape), **params)
        if np.max(ones, initial=0.0) > 1.0:  # a sum of several
            return None
    lanes, types = [], [type_of(a) for a in args]
    for i in range(max([len(a.lanes) for a in args if isinstance(a, Lanes)])):
        given = [
            a.lanes[i]
            if isinstance(a, Lanes) and i < len(a.lanes)
            else Lane(np.zeros(t.shape, t.dtype), np.full(t.shape, NONE))
            for a, t in zip(args, types, strict=True)
        ]
        at = primitive(*[g.columns + 1 for g in given], **params)  # so that zeros are no column
        lanes.append(Lane(primitive(*[g.values for g in given], **params), at - 1))
    return lanes


def basis_lanes(types: Sequence[ArrayType], depth: int) -> list[Lanes]:
    """The basis vectors, for each leaf."""
    seeds, first = [], 0
    for t in types:
        if t.dtype.kind != "f":
            raise StructureError(f"lanes are of real numbers, not of {t}")
        columns = np.arange(first, first + t.size).reshape(t.shape)
        seeds.append(Lanes(t.shape, t.dtype, [Lane(np.ones(t.shape, t.dtype), columns)], depth))
        first += t.size
    return seeds
