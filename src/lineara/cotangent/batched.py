"""Values with one leading batch axis: a Jacobian is a linear map applied to a batch of seeds."""

from typing import Any

import numpy as np

from lineara.facts.hints import Index, Shaped
from lineara.facts.primitive import Box, Primitive, op


class Batched(Box):
    """A value `v` with a leading batch axis, on which primitives apply their batch rule."""

    __slots__ = ("depth", "v")

    def __init__(self, v: Shaped, depth: int) -> None:
        self.v: Any = v
        self.depth: Any = depth

    def interpret(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """The primitive's batch rule, over the leading axis."""
        flags = tuple(isinstance(a, Batched) and a.depth == self.depth for a in args)
        values = tuple(a.v if b else a for a, b in zip(args, flags, strict=True))
        return Batched(primitive.batch(values, flags, params), self.depth)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape without the batch axis."""
        return tuple(self.v.shape[1:])

    @property
    def live(self) -> Any:
        """All numbers that are more than structural zeros."""
        return self.v

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the values."""
        return self.v.dtype

    def __getitem__(self, at: Index) -> Any:
        return op("index")(self, at=at)
