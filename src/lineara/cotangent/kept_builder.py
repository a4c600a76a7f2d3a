"""A LowRank, or a builder of the user's class, on its way: primitives that can keep it do.

    negative, and products with a number          a LowRank; a class with a method `scaled(number)`
    + of two of one class                         their sum
    permute_dims, products with a row or a column,
    A @ W with a dense W                          a LowRank

What has no rule here reads the dense array.
"""

from collections.abc import Callable
from typing import Any, cast

import numpy as np

from lineara.cotangent.lowrank import LowRank
from lineara.cotangent.monoid import combine
from lineara.facts.box import ArrayBox, Box, Own
from lineara.facts.hints import Index
from lineara.facts.primitive import Primitive, op


class KeptBuilder(ArrayBox):
    """The array of this shape that `value`, a LowRank or an Own, stands for."""

    __slots__ = ("depth", "dtype", "shape", "value")
    value: LowRank | Own
    shape: Any
    dtype: np.dtype
    depth: Any

    def __init__(
        self, value: LowRank | Own, shape: tuple[int, ...], dtype: np.dtype, depth: int
    ) -> None:
        self.value, self.shape, self.dtype, self.depth = value, shape, dtype, depth

    @property
    def v(self) -> Any:  # type: ignore[override]
        """The dense array."""
        return self.value.finish()

    def __getitem__(self, at: Index) -> Any:
        return op("index")(self, at=at)

    def interpret(self, primitive: Primitive, args: tuple, params: dict[str, Any]) -> Any:
        """The rule of the primitive, or the primitive of dense arrays."""
        rule = RULES.get(primitive.name)
        if rule and all([isinstance(a, KeptBuilder) or not isinstance(a, Box) for a in args]):
            y = rule(*args, **params)
            if y is not None:
                return y
        return primitive(*[a.v if isinstance(a, KeptBuilder) else a for a in args], **params)

    def of(self, value: LowRank | Own) -> "KeptBuilder":
        """Another builder in the same sweep."""
        if isinstance(value, LowRank):
            return KeptBuilder(value, value.shape, value.dtype, self.depth)
        return KeptBuilder(value, self.shape, self.dtype, self.depth)

    def factors(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Of a LowRank its factors; None for a builder of the user's."""
        return (self.value.U, self.value.V) if isinstance(self.value, LowRank) else None


def _add(a: Any, b: Any) -> Any:
    if not isinstance(a, KeptBuilder) or not isinstance(b, KeptBuilder):
        kept, other = (a, b) if isinstance(a, KeptBuilder) else (b, a)
        return kept if type(other) in (int, float) and other == 0 else None
    p, q = a.value, b.value
    if isinstance(p, LowRank) and isinstance(q, LowRank):
        return a.of(cast(LowRank, p + q)) if 2 * (p.rank + q.rank) < min(a.shape) else None
    if isinstance(p, LowRank) or isinstance(q, LowRank):
        return None
    same = type(p.cotangent) is type(q.cotangent)
    return a.of(Own(combine([p.cotangent, q.cotangent]), p.read)) if same else None


def _scaled(x: KeptBuilder, number: Any) -> Any:
    value = x.value
    if isinstance(value, LowRank):
        return x.of(LowRank(value.U * number, value.V))
    scaled = getattr(value.cotangent, "scaled", None)
    return None if scaled is None else x.of(Own(scaled(number), value.read))


def _multiply(a: Any, b: Any) -> Any:
    x, other = (a, b) if isinstance(a, KeptBuilder) else (b, a)
    if isinstance(other, KeptBuilder):
        return None
    if not np.ndim(other):
        return _scaled(x, other)
    factors = x.factors()
    if factors is None or np.ndim(other) > 2:
        return None
    (u, v), lengths = factors, (1,) * (2 - np.ndim(other)) + np.shape(other)
    if lengths == (x.shape[0], 1):
        return x.of(LowRank(u * other, v))
    if lengths == (1, x.shape[1]):
        return x.of(LowRank(u, v * np.reshape(other, (-1, 1))))
    return None


def _divide(a: Any, b: Any) -> Any:
    return None if isinstance(b, KeptBuilder) else _multiply(a, 1 / b)


def _negative(x: KeptBuilder) -> Any:
    return _scaled(x, -1.0)


def _permute_dims(x: KeptBuilder, *, axes: tuple[int, ...]) -> Any:
    factors = x.factors()
    if factors is None:
        return None
    return x if tuple(axes) == (0, 1) else x.of(LowRank(factors[1], factors[0]))


def _matmul(a: Any, b: Any) -> Any:
    if isinstance(a, KeptBuilder):
        factors = a.factors()
        if factors is None or isinstance(b, KeptBuilder) or np.ndim(b) > 2:
            return None
        u, v = factors
        return u @ (v.T @ b) if np.ndim(b) == 1 else a.of(LowRank(u, (v.T @ b).T))
    factors = b.factors()
    if factors is None or np.ndim(a) > 2:
        return None
    u, v = factors
    return (a @ u) @ v.T if np.ndim(a) == 1 else b.of(LowRank(a @ u, v))


def _sum(x: KeptBuilder, *, axis: tuple[int, ...], keepdims: bool) -> Any:
    factors = x.factors()
    if factors is None:
        return None
    axes = {i % 2 for i in axis}
    u, v = (f.sum(axis=0, keepdims=True) if i in axes else f for i, f in enumerate(factors))
    total = u @ v.T
    if keepdims:
        return total
    return total.reshape([n for i, n in enumerate(x.shape) if i not in axes])[()]


RULES: dict[str, Callable[..., Any]] = {
    "add": _add,
    "multiply": _multiply,
    "divide": _divide,
    "negative": _negative,
    "permute_dims": _permute_dims,
    "matmul": _matmul,
    "sum": _sum,
    "checkpoint_name": lambda x, **_: x,
}
"""By the names of primitives: None where the dense array is read after all."""
