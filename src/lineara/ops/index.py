"""Indexing in every NumPy form, and its transpose, adding at an index into zeros."""

import math
from types import EllipsisType
from typing import Any

import numpy as np

from lineara.errors import BoundsError, ShapeError, TypeMismatchError
from lineara.facts.hints import Index, Namespace, Shaped, Value
from lineara.facts.operand import Operand
from lineara.facts.primitive import (
    Box,
    Constant,
    OfType,
    Primitive,
    Structural,
    implements,
    innermost,
    op,
    primitive,
    reals,
)
from lineara.facts.types import ArrayType, sample, type_of
from lineara.ops.shape import as_array, normal_axis


def is_basic(at: Index) -> bool:
    """Whether an index consists of integers, slices, None and ...: it reads no element twice."""
    if type(at) is int or type(at) is slice:
        return True
    for p in at if isinstance(at, tuple) else (at,):
        if type(p) is int or type(p) is slice or p is None:
            continue
        if isinstance(p, bool) or not isinstance(p, slice | int | np.integer | EllipsisType):
            return False
    return True


def is_one_place(at: Index) -> bool:
    """Whether an index is basic, where its integers may be traced values of a program."""
    parts = at if isinstance(at, tuple) else (at,)
    return all([is_basic(p) or (isinstance(p, Box) and p.shape == ()) for p in parts])


def normal(at: Index) -> Any:
    """A copy of an index with arrays for lists; later writes to the user's arrays do not matter."""
    if isinstance(at, tuple):
        return tuple(map(normal_part, at))
    return at if is_basic(at) else normal_part(at)


def normal_part(part: object) -> Any:
    """A list in an index as an array, of traced numbers too; an empty one as one of integers."""
    if not isinstance(part, list | tuple):
        return part
    places = as_array(part)
    return places if places.size else places.astype(np.intp)


def scalar_index(at: Any) -> Any:
    """The index with 0-d integer arrays as ints if it is basic then; else None."""
    parts = at if isinstance(at, tuple) else (at,)
    plain = [int(p) if _is_integer(p) else p for p in parts]
    if not is_basic(tuple(plain)):
        return None
    return tuple(plain) if isinstance(at, tuple) else plain[0]


def _is_integer(part: object) -> bool:
    return isinstance(part, np.ndarray) and not part.ndim and part.dtype.kind in "iu"


class _NoIndexError(TypeMismatchError, IndexError):
    """What is no index, as NumPy says it, too."""


_NoIndexError.__name__ = TypeMismatchError.__name__


def check_index(at: Index, x: Shaped) -> None:
    """Raise an error at the user's line if `at` is not an index of x."""
    for p in at if isinstance(at, tuple) else (at,):
        array = isinstance(p, np.ndarray | np.generic)
        staged = isinstance(p, Box) and p.dtype.kind in "iub"
        if (isinstance(p, Box | float | str) and not staged) or (
            array and p.dtype.kind not in "iub"
        ):
            raise _NoIndexError(
                f"index: {p!r} does not index {type_of(x)}; an index is made of integers, slices, "
                "None, ..., and integer or boolean arrays"
            )


def at_positions(primitive: Primitive, x: Shaped, params: dict[str, Any]) -> Any:
    """The primitive applied to x with the index in `params`, which may hold traced positions."""
    at = params["at"]
    box = innermost((x, *(at if isinstance(at, tuple) else (at,))))
    if box is None:
        return primitive.evaluate(np, x, **params)
    return box.interpret(primitive, (x,), params)


def places_of(at: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Where the elements of x[at] lie in an array x of that shape, counted in C order."""
    return read(np.arange(math.prod(shape)).reshape(shape), at)


def taken(xp: Namespace, x: Value, places: np.ndarray) -> Any:
    """The elements of x at places, in the shape of the places."""
    flat = xp.take(xp.reshape(x, (-1,)), xp.asarray(places.ravel()))
    return xp.reshape(flat, places.shape)


def _summed(xp: Any, v: Shaped, places: np.ndarray, shape: tuple[int, ...]) -> Any:
    """Zeros with v added at places, without a write: each element is a sum of those that meet."""
    n, size = places.size, math.prod(shape)
    order = np.argsort(places, axis=None, kind="stable")
    counts = np.bincount(places.ravel(), minlength=size)
    rank = np.arange(n) - np.repeat(np.cumsum(counts) - counts, counts)
    table = np.full((size, max(1, counts.max(initial=0))), n)  # n is the place of a zero
    table[places.ravel()[order], rank] = order
    flat = xp.reshape(xp.broadcast_to(v, places.shape), (-1,))
    padded = xp.concat([flat, xp.zeros(1, dtype=v.dtype)])
    return xp.reshape(xp.sum(taken(xp, padded, table), axis=1, dtype=v.dtype), shape)


@primitive
class index(Structural):
    """x[at] for an index.  Transpose: scatter into zeros."""

    def __call__(self, x, *, at):
        return at_positions(self, x, {"at": at})

    def result(self, x, *, at):
        return type_of(read(sample(type_of(x)), at))

    def evaluate(self, xp, /, x, *, at):
        if xp is not np:
            return taken(xp, x, places_of(at, x.shape))
        return read(x, at)

    def text(self, x, *, at):
        return f"{x}[{at}]"

    def arithmetic(self, y, args, params):
        return reals(y)

    def transpose(self, y_bar, /, x, *, at):
        return (scatter(y_bar, at=at, shape=x.shape),)

    def batch(self, args, batched, params):
        (x,), at = args, params["at"]
        if is_one_place(at):
            return x[(slice(None), *(at if isinstance(at, tuple) else (at,)))]
        flat = op("reshape")(x, shape=(x.shape[0], math.prod(x.shape[1:])))
        return flat[:, positions(x.shape[1:], at)]


@primitive
class scatter(Structural):
    """Zeros of `shape` with v added at the index.  Transpose: index."""

    def __call__(self, v, *, at, shape):
        return at_positions(self, v, {"at": at, "shape": shape})

    def result(self, v, *, at, shape):
        t, part = type_of(v), index.result(ArrayType(tuple(shape), type_of(v).dtype), at=at)
        if np.broadcast_shapes(t.shape, part.shape) != part.shape:
            raise ShapeError(f"scatter: {t} does not go to the part {part} of {tuple(shape)}")
        return ArrayType(tuple(shape), t.dtype)

    def evaluate(self, xp, /, v, *, at, shape):
        if xp is not np:
            return _summed(xp, xp.asarray(v), places_of(at, shape), shape)
        into = np.zeros(shape, getattr(v, "dtype", float))
        if is_basic(at):
            into[at] = v
        else:
            np.add.at(into, at, v)
        return into

    def arithmetic(self, y, args, params):
        return reals(args[0])

    def transpose(self, y_bar, /, v, *, at, shape):
        return (index(y_bar, at=at),)

    def batch(self, args, batched, params):
        (v,), at, shape = args, params["at"], params["shape"]
        size = v.shape[0]
        if is_one_place(at):
            at = (slice(None), *(at if isinstance(at, tuple) else (at,)))
            return scatter(v, at=at, shape=(size, *shape))
        at = (slice(None), positions(shape, at))
        flat = scatter(v, at=at, shape=(size, math.prod(shape)))
        return op("reshape")(flat, shape=(size, *shape))


def read(x: Any, at: Any) -> Any:
    """x[at], with a ShapeError in place of an IndexError."""
    try:
        return x[at]
    except IndexError as e:
        said = f"index: {show_index(at)} does not index {type_of(x)}: {e}"
        raise BoundsError.beside(e, said) from None


def show_index(at: Any) -> str:
    """The index as Python writes it between brackets: `2, 1:3`."""
    return ", ".join(map(_show_part, at)) if isinstance(at, tuple) else _show_part(at)


def _show_part(part: int | slice) -> str:
    if isinstance(part, slice):
        text = (
            f"{'' if part.start is None else part.start}:{'' if part.stop is None else part.stop}"
        )
        return text if part.step is None else f"{text}:{part.step}"
    if isinstance(part, Operand) or (isinstance(part, np.ndarray) and part.size > 8):
        return str(type_of(part))
    return "..." if part is Ellipsis else repr(part)


def flat_positions(at: Index, shape: tuple[int, ...]) -> np.ndarray:
    """The flat (C order) positions of an index; by arithmetic if every axis has integers."""
    at = normal(at)
    parts = at if isinstance(at, tuple) else (at,)
    whole = all(isinstance(p, int | np.integer | np.ndarray) for p in parts)
    if whole and len(parts) == len(shape) and all(np.asarray(p).dtype.kind in "iu" for p in parts):
        read(np.broadcast_to(False, shape), tuple(parts))  # raises if out of bounds
        wrapped = [np.asarray(p) % n for p, n in zip(parts, shape, strict=True)]
        return np.asarray(np.ravel_multi_index(np.broadcast_arrays(*wrapped), shape))
    return positions(shape, at)


def positions(shape: tuple[int, ...], at: Index) -> Any:
    """The flat positions that an index reads of an array of `shape`; the index may be traced."""
    return index(np.arange(math.prod(shape)).reshape(shape), at=at)


# --- NumPy's functions --------------------------------------------------------------------------


class Positions(Constant):
    """A primitive whose number of results depends on values, so that no type rule exists."""

    def result(self, *args: Any, **params: Any) -> Any:
        raise ShapeError(
            f"{self.name}: how many it finds depends on values, and a type has a fixed shape; "
            "where(c, a, b) chooses without counting"
        )


class Along(Constant):
    """A locally constant primitive that reduces along an axis, or the whole array."""

    def __init__(self, name: str, axis: int | None = None) -> None:
        super().__init__(name)
        self.axis = axis

    def __call__(self, x: Any, /, *rest: Any, where: Value = True, **params: Any) -> Any:
        if where is not True:  # of any and all: elements left out get the neutral value
            left_out = op("logical_not")(where)
            x = op("logical_and")(x, where) if self.name == "any" else op("logical_or")(x, left_out)
        return super().__call__(x, *rest, **params)

    def batch(
        self, args: tuple[Any, ...], batched: tuple[bool, ...], params: dict[str, Any]
    ) -> Any:
        x, *rest = args
        axis = params.get("axis", self.axis)
        if rest or isinstance(axis, tuple):
            return super().batch(args, batched, params)
        if axis is None:
            rows = op("reshape")(x, shape=(x.shape[0], math.prod(x.shape[1:])))
            params = params | {"axis": 1}
            kept = (1,) * (x.ndim - 1) if params.pop("keepdims", False) is True else ()
            y = self(rows, **params)
            return op("reshape")(y, shape=(*x.shape[:1], *kept)) if kept else y
        return self(x, **params | {"axis": axis + (axis >= 0)})


_CONSTANT = ("argpartition", "searchsorted", "digitize", "lexsort")
_ALONG = ("argmax", "argmin", "any", "all", "count_nonzero")
_POSITIONS = ("nonzero", "flatnonzero", "argwhere")
_NUMPY = ("argpartition", "digitize", "lexsort", "flatnonzero", "argwhere")  # not in the standard
_OF_TYPE = ("shape", "ndim", "size", "iscomplexobj", "isrealobj", "result_type")
_KINDS = ((Constant, _CONSTANT), (Along, _ALONG), (Positions, _POSITIONS), (OfType, _OF_TYPE))
for _kind, _names in _KINDS:
    for _name in _names:
        _primitive = _kind(_name)
        _primitive.host = _primitive.host or _name in _NUMPY
        implements(getattr(np, _name))(_primitive)
implements(np.argsort)(Along("argsort", -1))


def line(a: Shaped, axis: int | None, name: str) -> tuple[Any, int]:
    """(array, axis); for axis None the flattened array and 0."""
    if axis is None:
        return op("reshape")(a, shape=(type_of(a).size,)), 0
    return a, normal_axis(axis, len(type_of(a).shape), name)


@implements(np.take)
def take(a, indices, axis=None, out=None, mode="raise"):
    """Elements at integer positions along an axis."""
    a, axis = line(a, axis, "take")
    if mode != "raise":
        n = a.shape[axis]
        indices = np.mod(indices, n) if mode == "wrap" else np.clip(indices, 0, n - 1)
    part = index(a, at=(*(slice(None),) * axis, normal_part(indices)))
    number = isinstance(indices, int) or getattr(indices, "shape", None) == ()
    return part.copy() if number and part.shape else part  # a copy, where a[i] is a view


@implements(np.take_along_axis)
def take_along_axis(arr, indices, axis=-1):
    """Elements at positions that are given for each line along the axis."""
    t = type_of(indices)
    if axis is None and t.ndim != 1:
        raise ValueError("when axis=None, `indices` must have a single dimension.")
    arr, axis = line(arr, axis, "take_along_axis")
    return index(arr, at=_along_axis(type_of(arr).shape, indices, axis))


def _along_axis(shape: tuple[int, ...], indices: Shaped, axis: int) -> tuple[Any, ...]:
    """The index of positions that are given for each line along the axis."""
    if type_of(indices).dtype.kind not in "iu":
        raise IndexError("`indices` must be an integer array")
    if type_of(indices).ndim != len(shape):
        raise ValueError("`indices` and `arr` must have the same number of dimensions")
    grid: list[Any] = list(np.ogrid[tuple(slice(n) for n in shape)])
    grid[axis] = indices
    return tuple(grid)


@implements(np.compress)
def compress(condition, a, axis=None, out=None):
    """The slices along an axis where the condition is true."""
    return take(a, np.flatnonzero(condition), axis)


@implements(np.extract)
def extract(condition, arr):
    """The elements where the condition is true, as a vector."""
    return take(arr, np.flatnonzero(condition))


@implements(np.delete)
def delete(arr, obj, axis=None):
    """The array without the slices at these positions."""
    arr, axis = line(arr, axis, "delete")
    return take(arr, np.delete(np.arange(arr.shape[axis]), obj), axis)


@implements(np.diagonal)
def diagonal(a, offset=0, axis1=0, axis2=1):
    """The diagonals of the matrices in two axes, along a new last axis."""
    flat = op("reshape")(a, shape=(type_of(a).size,))
    where = np.arange(type_of(a).size).reshape(a.shape)
    return index(flat, at=np.diagonal(where, offset, axis1, axis2))


@implements(np.linalg.diagonal)
def linalg_diagonal(x, /, *, offset=0):
    """The diagonals of the matrices in the last two axes."""
    return diagonal(x, offset, -2, -1)


@implements(np.trace)
def trace(a, offset=0, axis1=0, axis2=1, dtype=None, out=None):
    """The sum along the diagonal of two axes."""
    diagonals = diagonal(a, offset, axis1, axis2)
    diagonals = diagonals if dtype is None else op("astype")(diagonals, dtype=np.dtype(dtype))
    return op("sum")(diagonals, axis=(len(diagonals.shape) - 1,), keepdims=False)


@implements(np.linalg.trace)
def linalg_trace(x, /, *, offset=0, dtype=None):
    """The sums of the diagonals of the matrices in the last two axes."""
    return trace(x, offset, -2, -1, dtype)


@implements(np.diag)
def diag(v, k=0):
    """A vector as a diagonal matrix, or the diagonal of a matrix."""
    if len(v.shape) == 2:
        return diagonal(v, k)
    if len(v.shape) != 1:
        raise ShapeError(f"diag: takes a vector or a matrix, not {type_of(v)}")
    n = v.shape[0] + abs(k)
    rows = np.arange(v.shape[0]) + max(-k, 0)
    return scatter(v, at=(rows, rows + k), shape=(n, n))


@implements(np.diagflat)
def diagflat(v, k=0):
    """The flattened elements as a diagonal matrix."""
    return diag(line(v, None, "diagflat")[0], k)


def _kept(m: Shaped, mask: np.ndarray) -> Any:
    return op("logical_and" if type_of(m).dtype.kind == "b" else "keep")(m, mask)


@implements(np.tril)
def tril(m, k=0):
    """The lower triangle; zeros above."""
    return _kept(m, np.tril(np.ones(type_of(m).shape, bool), k))


@implements(np.triu)
def triu(m, k=0):
    """The upper triangle; zeros below."""
    return _kept(m, np.triu(np.ones(type_of(m).shape, bool), k))


@implements(np.select, sequence=True)
def select(condlist, choicelist, default=0):
    """In each element the choice that belongs to the first true condition."""
    y = default
    for condition, choice in zip(condlist[::-1], choicelist[::-1], strict=True):
        y = op("where")(condition, choice, y)
    return y


@implements(np.diff)
def diff(a, n=1, axis=-1, prepend=None, append=None):
    """Differences of neighbours along an axis."""
    if n < 0:
        raise ShapeError(f"diff: n is {n}; how often differences are taken is 0 or more")
    if n == 0:
        return a
    a, axis = line(a, axis, "diff")
    ends = [_end(v, a, axis) for v in (prepend, append)]
    if ends[0] is not None or ends[1] is not None:
        a = op("concat")(*(v for v in (ends[0], a, ends[1]) if v is not None), axis=axis)
    lead = (slice(None),) * axis
    for _ in range(n):
        a = a[(*lead, slice(1, None))] - a[(*lead, slice(None, -1))]
    return a


def _end(value: Shaped | None, a: Shaped, axis: int) -> Any:
    """The array that `diff` puts before or after `a`; a number is repeated."""
    if value is None or value is np._NoValue:
        return None
    if type_of(value).shape:
        return value
    shape = list(a.shape)
    shape[axis] = 1
    return op("broadcast_to")(value, shape=tuple(shape))
