"""np.r_, np.c_, np.mgrid and np.ogrid, whose indices may hold traced values."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lineara.errors import NoRuleError
from lineara.facts.hints import Index
from lineara.facts.registry import registry
from lineara.facts.types import type_of
from lineara.ops.join import concatenate
from lineara.python.array_makers import any_traced, array, maker
from lineara.python.numpy_values import failed, own_value
from lineara.tape.node import Array, Scalar, plain, staged


class Joined:
    """np.r_ or np.c_: what stands between the brackets, joined along an axis."""

    original: Any

    def __init__(self, original: Any) -> None:
        self.original, self.__doc__ = original, original.__doc__
        self.places: tuple[Any, Any, Any] = original.axis, original.ndmin, original.trans1d

    def __getitem__(self, key: Any) -> Any:
        key = key if isinstance(key, tuple) else (key,)
        return _bracketed(self.original, key, _flat(key), self._joined)

    def _joined(self, key: tuple[Any, ...]) -> Any:
        (axis, ndmin, trans1d), parts = self.places, key
        if isinstance(key[0], str):
            parts = key[1:]
            words = key[0].split(",")
            if key[0] in ("r", "c"):
                raise NoRuleError(
                    f"np.r_[{key[0]!r}, ...] makes a matrix, which has no rule; use np.concatenate"
                )
            given = [int(w) for w in words]
            axis, ndmin, trans1d = (*given, *self.places[len(given) :])
        made = [_placed(_made(p), ndmin, trans1d, isinstance(p, slice)) for p in parts]
        weak = [0.0 if isinstance(p, Scalar) else p for p in parts]
        pairs = zip(weak, made, strict=True)
        kinds = [w if type(w) in (int, float, complex) else type_of(m).dtype for w, m in pairs]
        return concatenate(made, axis, dtype=np.result_type(*kinds))

    def __len__(self) -> int:
        return 0


def _bracketed(original: Any, key: Index, values: list[Any], composed: Callable[..., Any]) -> Any:
    """The value is NumPy's, the derivative that of the composition."""
    made = original.__getitem__
    if not any_traced(values):
        return maker(made)(key)
    if staged(values):
        return composed(key)
    try:
        return own_value(made, (key,), {}, composed)
    except Exception as e:
        raise failed(made, (key,), {}, e) from None


def _flat(key: Sequence[Any]) -> list[Any]:
    """The values in an index, those of slices as well."""
    return [v for p in key for v in ((p.start, p.stop, p.step) if isinstance(p, slice) else (p,))]


def _made(part: object) -> Any:
    """A slice as the numbers that it counts."""
    if not isinstance(part, slice):
        return array(part)
    start = 0 if part.start is None else part.start
    step = 1 if part.step is None else part.step
    if type_of(step).dtype.kind == "c":
        return maker(np.linspace)(start, part.stop, int(abs(plain(step))))
    return maker(np.arange)(start, part.stop, step)


def _placed(a: Array, ndmin: int, trans1d: int, counted: bool) -> Any:
    """An array with at least that many axes, its own beginning at `trans1d`."""
    rank = type_of(a).ndim
    if rank >= ndmin:
        return a
    more = ndmin - rank
    wide = np.reshape(a, (1,) * more + type_of(a).shape)
    if trans1d == -1 or not rank:
        return wide
    if counted:
        return np.swapaxes(wide, -1, trans1d)
    first = trans1d + more + 1 if trans1d < 0 else trans1d
    axes = list(range(ndmin))
    return np.transpose(wide, axes[:first] + axes[more:] + axes[first:more])


class Grid:
    """np.mgrid or np.ogrid: the coordinates that slices count, in full or open."""

    original: Any

    def __init__(self, original: Any) -> None:
        self.original, self.__doc__ = original, original.__doc__

    def __getitem__(self, key: Any) -> Any:
        parts = key if isinstance(key, tuple) else (key,)
        return _bracketed(self.original, key, _flat(parts), self._grid)

    def _grid(self, key: slice | tuple[Any, ...]) -> Any:
        parts = key if isinstance(key, tuple) else (key,)
        lines = [_made(p) for p in parts]
        if not isinstance(key, tuple):
            return lines[0]
        n = len(lines)
        open_grid = [
            np.reshape(v, [-1 if j == i else 1 for j in range(n)]) for i, v in enumerate(lines)
        ]
        if self.original.sparse:
            return tuple(open_grid)
        return np.stack(np.broadcast_arrays(*open_grid))


for _brackets in (np.r_, np.c_):
    registry.declare(_brackets, stand_in=Joined(_brackets))
for _brackets in (np.mgrid, np.ogrid):
    registry.declare(_brackets, stand_in=Grid(_brackets))
