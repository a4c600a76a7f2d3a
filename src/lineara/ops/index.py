"""Reading parts of an array in every NumPy form, and its transpose, adding into parts."""

from typing import Any

import numpy as np

from lineara.errors import ShapeError, TypeMismatchError
from lineara.primitive import Box, Constant, Structural, implements, op, primitive, registry
from lineara.types import ArrayType, type_of


def is_basic(at: Any) -> bool:
    """Whether an index is made of integers, slices, None and ... only: it reads each element once."""
    parts = at if isinstance(at, tuple) else (at,)
    return all(
        p is None
        or p is Ellipsis
        or isinstance(p, slice | int | np.integer)
        and not isinstance(p, bool)
        for p in parts
    )


def check_index(at: Any, x: Any) -> None:
    """Refuse what is no index, with the line."""
    for p in at if isinstance(at, tuple) else (at,):
        if isinstance(p, Box | float | str) or (
            isinstance(p, np.ndarray) and p.dtype.kind not in "iub"
        ):
            raise TypeMismatchError(
                f"index: {p!r} does not index {type_of(x)}; an index is made of integers, slices, "
                "None, ..., and integer or boolean arrays"
            )


@primitive
class index(Structural):
    """x[at] for a static index.  Transpose: scatter into zeros."""

    def result(self, x, *, at):
        t = type_of(x)
        return type_of(read(np.broadcast_to(np.zeros((), t.dtype), t.shape), at))

    def evaluate(self, xp, /, x, *, at):
        return read(x, at)

    def transpose(self, y_bar, /, x, *, at):
        return (scatter(y_bar, at=at, shape=x.shape),)

    def batch(self, args, batched, params):
        (x,), at = args, params["at"]
        if is_basic(at):
            return x[(slice(None), *(at if isinstance(at, tuple) else (at,)))]
        flat = op("reshape")(x, shape=(x.shape[0], int(np.prod(x.shape[1:]))))
        return flat[:, positions(x.shape[1:], at)]


@primitive
class scatter(Structural):
    """Zeros of `shape` with v added at the index.  Transpose: index."""

    def result(self, v, *, at, shape):
        return ArrayType(tuple(shape), type_of(v).dtype)

    def evaluate(self, xp, /, v, *, at, shape):
        into = np.zeros(shape, getattr(v, "dtype", float))
        if is_basic(at):
            into[at] = v
        else:
            np.add.at(into, at, v)
        return into

    def transpose(self, y_bar, /, v, *, at, shape):
        return (index(y_bar, at=at),)

    def batch(self, args, batched, params):
        (v,), at, shape = args, params["at"], params["shape"]
        size = v.shape[0]
        if is_basic(at):
            at = (slice(None), *(at if isinstance(at, tuple) else (at,)))
            return scatter(v, at=at, shape=(size, *shape))
        at = (slice(None), positions(shape, at))
        flat = scatter(v, at=at, shape=(size, int(np.prod(shape))))
        return op("reshape")(flat, shape=(size, *shape))


def read(x: Any, at: Any) -> Any:
    """x[at], with our error."""
    try:
        return x[at]
    except IndexError as e:
        raise ShapeError(f"index: {show_index(at)} does not index {type_of(x)}: {e}") from None


def show_index(at: Any) -> str:
    """An index as it is written between brackets: `2, 1:3`."""
    return ", ".join(map(_show_part, at)) if isinstance(at, tuple) else _show_part(at)


def _show_part(part: Any) -> str:
    if isinstance(part, slice):
        text = (
            f"{'' if part.start is None else part.start}:{'' if part.stop is None else part.stop}"
        )
        return text if part.step is None else f"{text}:{part.step}"
    return "..." if part is Ellipsis else repr(part)


def positions(shape: tuple[int, ...], at: Any) -> np.ndarray:
    """The flat positions that an index reads of an array of that shape."""
    return np.arange(int(np.prod(shape))).reshape(shape)[at]


# --- NumPy's functions --------------------------------------------------------------------------

for (
    _name
) in "argmax argmin argsort nonzero flatnonzero argwhere searchsorted digitize any all".split():
    registry.functions[getattr(np, _name)] = Constant(_name)
for _name in "count_nonzero shape ndim size".split():
    registry.functions[getattr(np, _name)] = Constant(_name)


@implements(np.take)
def take(a, indices, axis=None, out=None, mode="raise"):
    """Elements at integer positions along an axis."""
    if axis is None:
        a, axis = op("reshape")(a, shape=(type_of(a).size,)), 0
    axis %= len(a.shape)
    if mode != "raise":
        n = a.shape[axis]
        indices = np.mod(indices, n) if mode == "wrap" else np.clip(indices, 0, n - 1)
    return index(a, at=(*(slice(None),) * axis, np.asarray(indices)))


@implements(np.take_along_axis)
def take_along_axis(arr, indices, axis=-1):
    """Elements at positions given for each line along the axis."""
    if axis is None:
        return index(op("reshape")(arr, shape=(type_of(arr).size,)), at=indices)
    axis %= len(arr.shape)
    grid = list(np.ogrid[tuple(slice(n) for n in indices.shape)])
    grid[axis] = indices
    return index(arr, at=tuple(grid))


@implements(np.sort)
def sort(a, axis=-1, kind=None, order=None, *, stable=None):
    """The elements in order; ties keep theirs."""
    if axis is None:
        a, axis = op("reshape")(a, shape=(type_of(a).size,)), 0
    return take_along_axis(a, op("argsort")(a, axis=axis, kind="stable"), axis)


@implements(np.diagonal)
def diagonal(a, offset=0, axis1=0, axis2=1):
    """The diagonal of the last-moved pair of axes."""
    moved = np.moveaxis(np.arange(type_of(a).size).reshape(a.shape), (axis1, axis2), (-2, -1))
    flat = op("reshape")(a, shape=(type_of(a).size,))
    return index(flat, at=np.diagonal(moved, offset, -2, -1))


@implements(np.trace)
def trace(a, offset=0, axis1=0, axis2=1, dtype=None, out=None):
    """The sum of the diagonal."""
    return op("sum")(diagonal(a, offset, axis1, axis2), axis=(-1,), keepdims=False)


@implements(np.diag)
def diag(v, k=0):
    """A vector as a diagonal matrix, or the diagonal of a matrix."""
    if len(v.shape) == 2:
        return diagonal(v, k)
    n = v.shape[0] + abs(k)
    rows = np.arange(v.shape[0]) + max(-k, 0)
    return scatter(v, at=(rows, rows + k), shape=(n, n))


@implements(np.tril)
def tril(m, k=0):
    """The lower triangle; zeros above."""
    return op("keep")(m, np.tri(*m.shape[-2:], k=k, dtype=bool))


@implements(np.triu)
def triu(m, k=0):
    """The upper triangle; zeros below."""
    return op("keep")(m, ~np.tri(*m.shape[-2:], k=k - 1, dtype=bool))


@implements(np.diff)
def diff(a, n=1, axis=-1):
    """Differences of neighbours along an axis."""
    axis %= len(a.shape)
    lead = (slice(None),) * axis
    for _ in range(n):
        a = a[(*lead, slice(1, None))] - a[(*lead, slice(None, -1))]
    return a
