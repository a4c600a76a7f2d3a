"""Values with dead lanes: the rule "zero times infinity" for structural zeros.

A lane that a selection did not take is dead: its value is a structural zero, which remains zero in
every product.  Elementwise products change only live lanes, a sum is dead where all its terms are,
a structural primitive moves the mask as it moves the elements, and any other reads dead lanes as 0.
"""

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from lineara.cotangent.batched import Batched
from lineara.cotangent.formal import Formal
from lineara.facts.hints import Index, Shaped, Value
from lineara.facts.primitive import Box, Elementwise, Primitive, Structural, op
from lineara.facts.types import type_of


class Masked(Box):
    """A value `v` whose lanes are dead where `live` is False; all are live if `live` is None."""

    __slots__ = ("__weakref__", "depth", "live", "strong", "v")

    def __init__(self, v: Value, live: Value | None, depth: int, strong: bool = False) -> None:
        self.v: Any = v
        self.live: Value | None = live
        self.depth: Any = depth
        self.strong: bool = strong  # whether a computed zero times infinity is zero, too

    def interpret(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """The primitive applied to the values, with the mask of its result."""
        values = tuple(a.v if self._mine(a) else a for a in args)
        masks = [a.live if self._mine(a) else None for a in args]
        name = primitive.name
        if name == "keep":
            return self._made(primitive(*values), _both(masks[0], args[1]))
        if isinstance(primitive, Elementwise):
            return self._elementwise(primitive, args, values, masks)
        if name in ("conj", "real", "imag"):
            return self._made(primitive(*values, **params), masks[0])
        if name in ("reshape", "permute_dims"):  # free of work for values, and so for masks
            live = None if masks[0] is None else primitive(masks[0], **params)
            return self._made(primitive(*values, **params), live)
        if name in ("sum", "cumsum"):
            return self._made(
                primitive(*values, **params), self._moved(primitive, masks, args, params)
            )
        if isinstance(primitive, Structural) or name in ("where", "live_factor"):
            return self._made(
                primitive(*values, **params), self._moved(primitive, masks, args, params)
            )
        return self._made(primitive(*values, **params), self._any(masks, args))

    def _any(self, masks: list[Any], args: tuple[Any, ...]) -> Any:
        """Whether any lane lives: where none does, a linear map gives none."""
        mine = [m for a, m in zip(args, masks, strict=True) if self._mine(a)]
        if any(m is None for m in mine):
            return None
        each = [op("any")(m, axis=None, keepdims=False) if type_of(m).shape else m for m in mine]
        return functools.reduce(op("logical_or"), each)

    def _mine(self, a: Value) -> bool:
        return isinstance(a, Masked) and a.depth == self.depth

    def _made(self, v: Shaped, live: Shaped | None) -> "Masked":
        if live is not None and type_of(live).shape != type_of(v).shape:
            live = op("broadcast_to")(live, shape=type_of(v).shape)
        return Masked(v, live, self.depth, self.strong)

    def _elementwise(
        self, primitive: Primitive, args: tuple[Any, ...], values: tuple[Any, ...], masks: list[Any]
    ) -> Any:
        mine = [self._mine(a) for a in args]
        if all(mine):  # a sum: dead where all terms are
            if any(m is None for m in masks):
                return self._made(primitive(*values), None)
            return self._made(primitive(*values), _whole(functools.reduce(op("logical_or"), masks)))
        if len(args) == 1:
            return self._made(primitive(*values), masks[0])
        at = mine.index(True)
        live = masks[at]
        if primitive.name in ("add", "subtract"):
            if (
                type(values[0]) in (int, float) and values[0] == 0
            ):  # the first contribution to a scalar
                return args[at] if primitive.name == "add" else -args[at]
            return self._made(primitive(*values), None)
        if self.strong:
            live = self._not_zero(values if primitive.name == "multiply" else values[:1], live)
        if live is None:
            return self._made(primitive(*values), None)
        other = values[1 - at]
        if primitive.name == "divide" or not _is_finite(other):
            harmless = 1.0 if primitive.name == "divide" else 0.0
            other = op("live_factor")(live, other, harmless)  # no infinity in a dead lane
        pair = (values[at], other) if at == 0 else (other, values[at])
        product = primitive(*pair)
        return self._made(op("where")(live, product, 0.0) if self.strong else product, live)

    @staticmethod
    def _not_zero(factors: tuple[Any, ...], live: Value | None) -> Any:
        """The mask of live lanes in which no factor is zero."""
        for factor in factors:
            live = _both(live, op("not_equal")(factor, 0))
        return live

    def _moved(
        self, primitive: Primitive, masks: list[Any], args: tuple[Any, ...], params: dict[str, Any]
    ) -> Any:
        """The mask of a structural result or a sum: a lane is live if one of its terms is."""
        if all(m is None for m in masks) and primitive.name != "scatter":
            return None
        places = range(len(args)) if primitive.linear is None else primitive.linear
        filled = list(args)
        for i in places:
            m, a = masks[i], args[i]
            if m is not None:
                filled[i] = op("astype")(m, dtype=np.dtype(float))
            else:  # a constant beside a tangent is zero
                dead = not self._mine(a) and not isinstance(a, Box) and not np.any(a)
                filled[i] = np.full(type_of(a).shape, float(not dead))
        return _whole(op("not_equal")(primitive(*filled, **params), 0))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the values."""
        return type_of(self.v).shape

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the values."""
        return type_of(self.v).dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    def __getitem__(self, at: Index) -> Any:
        return op("index")(self, at=at)


def _both(live: Value | None, kept: Value) -> Any:
    return kept if live is None else op("logical_and")(live, kept)


def _whole(live: Shaped) -> Any:
    """The mask, or None if it is known that every lane is live."""
    return None if not isinstance(live, Box) and np.all(live) else live


def _is_finite(factor: Value) -> bool:
    """Whether a factor is known to contain no infinity or NaN."""
    return isinstance(factor, int | float | np.ndarray) and bool(np.all(np.isfinite(factor)))


def unmasked(value: Shaped | None) -> Any:
    """The values with zeros in dead lanes."""
    if isinstance(value, Batched):
        return Batched(unmasked(value.v), value.depth)
    return value.v if isinstance(value, Masked) else value


def pairs_of(values: Sequence[Any], masked: Sequence[Any]) -> Iterator[Any]:
    """The vectors, each masked one followed by its mask: the order of a masked program's values."""
    for v, m in zip(values, masked, strict=True):
        yield from (v, m)


def seeded(seed: Shaped, depth: int) -> Any:
    """A seed (tangent or cotangent) whose zeros are structural."""
    if isinstance(seed, Batched):
        return Batched(seeded(seed.v, seed.depth - 1), seed.depth)
    if isinstance(seed, Formal):
        return seed
    live = None if isinstance(seed, Box) else np.asarray(seed) != 0
    return Masked(seed, live, depth)
