"""A batch over all basis vectors that holds, of each element, only the vectors it depends on.

The Jacobian of a stencil has a few numbers a row.  A dense batch carries all of a row through every
operation; this one carries *lanes*, arrays of the value's own shape: of each element a coefficient
and the column, the basis vector, that it belongs to; -1 is no column.

    x            lane 0:  1 1 1 1      columns  0 1 2 3
    x[1:] * a    lane 0:  a a a        columns  1 2 3
    + x[:-1]     lane 1:  1 1 1        columns  0 1 2

What moves elements moves the lanes, a product scales them, a sum has the lanes of both, of which
those are joined whose columns agree.  Anything else, and what depends on many vectors, is dense.
"""

import math
from typing import Any

import numpy as np

from lineara.cotangent.batched import Batched
from lineara.facts.hints import Value
from lineara.facts.primitive import Box, Primitive, Structural, op
from lineara.facts.types import type_of
from lineara.linear_map import Basis

FEW = 256  # basis vectors up to which a dense batch is as cheap
SHARE = 8  # of as many basis vectors one may be in a lane: beyond it dense arrays are no larger
MOVING = ("reshape", "permute_dims", "broadcast_to", "index")  # each element is one of the operand


class Compressed(Batched):
    """Of each element of a value the coefficients and columns: arrays (lanes, *shape)."""

    __slots__ = ("_dense", "columns", "count", "last", "values")

    def __init__(
        self, values: np.ndarray, columns: np.ndarray, count: int, last: bool, depth: int
    ) -> None:
        self.values: np.ndarray = values
        self.columns: np.ndarray = columns
        self.count: int = count  # of basis vectors
        self.last: bool = (
            last  # whether the axis of the batch lies last in memory, as in a Jacobian
        )
        self.depth = depth
        self._dense: Any = None

    @property
    def v(self) -> Any:  # type: ignore[override]  # a slot there
        """The dense batch, made when it is asked for."""
        if self._dense is None:
            self._dense = self._densified()
        return self._dense

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one value."""
        return self.values.shape[1:]

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the values."""
        return self.values.dtype

    @property
    def live(self) -> np.ndarray:
        """The coefficients that there are, in one array."""
        return self.values[self.columns >= 0]

    def _densified(self) -> np.ndarray:
        shape, size, n = self.shape, math.prod(self.shape), self.count
        whole = np.zeros((size, n) if self.last else (n, size), self.values.dtype)
        flat, places = whole.reshape(-1), np.arange(size)
        for values, columns in zip(self.values, self.columns, strict=True):
            values, columns = values.reshape(-1), columns.reshape(-1)
            live = columns >= 0
            at, columns = places[live], columns[live]
            flat[at * n + columns if self.last else columns * size + at] += values[live]
        if self.last:
            return np.moveaxis(whole.reshape(*shape, n), -1, 0)
        return whole.reshape(n, *shape)

    def _new(self, values: np.ndarray, columns: np.ndarray) -> "Compressed | None":
        """The same with other lanes; None where these are so many that a dense batch is better."""
        if len(values) * SHARE > self.count:
            return None
        return Compressed(values, columns, self.count, self.last, self.depth)

    # --- what primitives do ---------------------------------------------------------------------

    def interpret(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """The primitive on the lanes, or its batch rule on the dense batches."""
        if all([not isinstance(a, Box) or self._mine(a) for a in args]):
            y = self._on_lanes(primitive, args, params)
            if y is not None:
                return y
        return super().interpret(primitive, args, params)

    def _mine(self, a: Value) -> bool:
        return type(a) is Compressed and a.depth == self.depth

    def _on_lanes(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        name, flags = primitive.name, tuple(map(self._mine, args))
        if name in ("add", "subtract"):
            return self._sum(name, args, flags)
        if (name == "multiply" and sum(flags) == 1) or (
            name in ("divide", "negative") and flags[0] and sum(flags) == 1
        ):
            return self._scaled(primitive, args, flags, {})
        if name in ("real", "conj", "astype"):
            real = params.get("dtype", self.dtype).kind == "f"
            return self._scaled(primitive, args, flags, params) if real else None
        if name == "sum":
            return self._reduced(**params)
        if name in ("where", "live_factor"):
            return self._chosen(args, flags)
        if name == "keep" and flags[0]:
            return self._chosen((args[1], args[0], 0.0), (flags[1], True, False))
        if isinstance(primitive, Structural) and name != "checkpoint_name":
            return self._moved(primitive, args, flags, params)
        return None

    def _scaled(
        self,
        primitive: Primitive,
        args: tuple[Any, ...],
        flags: tuple[Any, ...],
        params: dict[str, Any],
    ) -> Any:
        """Products with what does not depend on the basis."""
        parts = tuple([a.values if mine else a for a, mine in zip(args, flags, strict=True)])
        values = primitive.batch(parts, flags, params)
        columns = self.columns
        if values.shape != columns.shape:
            rank = values.ndim - columns.ndim
            columns = columns.reshape(len(columns), *(1,) * rank, *columns.shape[1:])
            columns = np.broadcast_to(columns, values.shape)
        return Compressed(values, columns, self.count, self.last, self.depth)

    def _sum(self, name: str, args: tuple[Any, ...], flags: tuple[Any, ...]) -> Any:
        a, b = args
        if not all(flags):  # the first contribution to a number
            other = b if flags[0] else a
            if type(other) not in (int, float) or other != 0:
                return None
            return a if flags[0] else b if name == "add" else -b
        if name == "subtract":
            b = -b
        shape = np.broadcast_shapes(a.shape, b.shape)
        (x, at), (y, to) = a._as(shape), b._as(shape)
        return self._new(*_joined([*x, *y], [*at, *to], len(x)))

    def _as(self, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        """The lanes, broadcast."""
        if shape == self.shape:
            return self.values, self.columns
        lanes, rank = len(self.values), len(shape) - len(self.shape)
        return tuple(  # type: ignore[return-value]
            np.broadcast_to(part.reshape(lanes, *(1,) * rank, *self.shape), (lanes, *shape))
            for part in (self.values, self.columns)
        )

    def _reduced(self, axis: tuple[int, ...], keepdims: bool) -> Any:
        """A sum over axes: what was summed lies in lanes of its own."""
        axes = [i % len(self.shape) + 1 for i in axis]
        rest = [n for i, n in enumerate(self.shape, 1) if i not in axes]
        lanes = len(self.values) * math.prod([self.values.shape[i] for i in axes])
        if lanes * SHARE > self.count:
            return None
        shape = [1 if i in axes else n for i, n in enumerate(self.shape, 1)] if keepdims else rest
        order = (0, *axes, *[i for i in range(1, self.values.ndim) if i not in axes])
        return self._new(
            *[part.transpose(order).reshape(lanes, *shape) for part in (self.values, self.columns)]
        )

    def _chosen(self, args: tuple[Any, ...], flags: tuple[Any, ...]) -> Any:
        """where(c, a, b): the lanes of a where c holds, those of b elsewhere."""
        if flags[0]:
            return None
        y = None
        for place in (1, 2):
            mine, other = args[place], args[3 - place]
            if not flags[place]:
                if np.any(mine):
                    return None
                continue
            parts = []
            for part, none in ((mine.values, 0.0), (mine.columns, -1)):
                rest = np.broadcast_to(np.asarray(none, part.dtype), np.shape(other))
                three = (args[0], part, rest) if place == 1 else (args[0], rest, part)
                batched = tuple([i == place for i in range(3)])
                parts.append(op("where").batch(three, batched, {}))
            one = self._new(*parts)
            if one is None:
                return None
            y = one if y is None else op("add")(y, one)
        return y

    def _moved(
        self,
        primitive: Primitive,
        args: tuple[Any, ...],
        flags: tuple[Any, ...],
        params: dict[str, Any],
    ) -> Any:
        """Each element is that of one operand at one place, or zero."""
        if any([not mine and np.any(a) for a, mine in zip(args, flags, strict=True)]):
            return None
        if primitive.name not in MOVING:
            ones = [np.ones(type_of(a).shape) for a in args]
            if np.max(primitive(*ones, **params), initial=0.0) > 1.0:  # a sum of several
                return None
        lanes = max([len(a.values) for a, mine in zip(args, flags, strict=True) if mine])
        values, columns = [], []
        for a, mine in zip(args, flags, strict=True):
            shape = (lanes, *type_of(a).shape)
            values.append(_padded(a.values, lanes) if mine else np.zeros(shape))
            # columns from 1, so that what is zero has none
            columns.append(_padded(a.columns + 1, lanes) if mine else np.zeros(shape, np.int32))
        everywhere = (True,) * len(args)
        moved = [primitive.batch(tuple(parts), everywhere, params) for parts in (values, columns)]
        return self._new(moved[0], moved[1].astype(np.int32) - 1)


def _padded(part: np.ndarray, lanes: int) -> np.ndarray:
    """As many lanes, those that are added zero."""
    more = lanes - len(part)
    return np.concatenate([part, np.zeros((more, *part.shape[1:]), part.dtype)]) if more else part


def _joined(values: list[Any], columns: list[Any], kept: int) -> tuple[np.ndarray, np.ndarray]:
    """Lanes, of which those after the first `kept` are added to one that has the same columns."""
    for x, at in zip(values[kept:], columns[kept:], strict=True):
        for i in range(kept):
            dead, other = columns[i] < 0, at < 0
            if ((columns[i] == at) | dead | other).all():
                values[i] = np.where(dead, 0.0, values[i]) + np.where(other, 0.0, x)
                columns[i] = np.maximum(columns[i], at)
                break
        else:
            values[kept], columns[kept] = x, at
            kept += 1
    return np.stack(values[:kept]), np.stack(columns[:kept])


def compressed(basis: Basis, depth: int) -> list[Compressed] | None:
    """The basis vectors, for each leaf; None where dense ones are as well."""
    block = basis.block
    real = all([t.dtype.kind == "f" for t in basis.types])
    if len(block) < FEW or not real or basis.unit != 1.0:
        return None
    seeds, first = [], -block.start
    for t in basis.types:
        columns = np.arange(first, first + t.size, dtype=np.int32)
        columns[(columns < 0) | (columns >= len(block))] = -1
        values, first = np.ones((1, *t.shape), t.dtype), first + t.size
        seeds.append(
            Compressed(values, columns.reshape(values.shape), len(block), basis.last, depth)
        )
    return seeds
