"""A builder that was given to a linear map, on its way: primitives that can keep it sparse do.

    x[at], reshape, permute_dims, concat, and their transposes     its positions move
    products with constants, conj, real, astype, where             its numbers change
    + of two                                                       has the positions of both
    sum, broadcast_to                                              fewer or more positions
    A @ W with a dense W, stacks of them, einsum                   the same rows
    cumsum within a block                                          the same blocks

What has no rule here reads the dense array, as does + with a dense one.  Positions are those of
*blocks*: of all elements along some of the last axes, so that a row has one position.  What is in
no block is a structural zero.
"""

import functools
import math
import string
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from lineara.cotangent.builder import Builder, Sum
from lineara.cotangent.coo import Coo
from lineara.cotangent.dead_lanes import Masked
from lineara.cotangent.rows import Rows
from lineara.cotangent.scatter import sum_duplicates
from lineara.facts.box import ArrayBox, Box
from lineara.facts.hints import Index
from lineara.facts.primitive import Primitive, op
from lineara.facts.types import broadcast, type_of

MANY = 4096  # numbers up to which a sum keeps all terms, whatever the size of the array is
Places = tuple[np.ndarray, ...]  # of each block its index, one array an axis


class SparseVector(ArrayBox):
    """The array of `shape` that is 0 but for the blocks `values` added at the numbers `at`.

    The last `values.ndim - 1` axes are those of a block, and blocks are counted in C order.  With
    `lanes`, the depth of the masks of a masked sweep, a block is one element, and is left out where
    its number is a structural zero.
    """

    __slots__ = ("at", "depth", "lanes", "shape", "values")
    values: np.ndarray
    shape: Any
    lanes: int | None
    depth: Any
    at: np.ndarray

    def __init__(
        self,
        shape: tuple[int, ...],
        at: np.ndarray,
        values: np.ndarray,
        depth: int,
        lanes: int | None = None,
    ) -> None:
        self.shape, self.at, self.values = shape, at, values
        self.depth, self.lanes = depth, lanes

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the numbers."""
        return self.values.dtype

    @property
    def lead(self) -> tuple[int, ...]:
        """Lengths of the axes that count blocks."""
        return self.shape[: len(self.shape) - self.tail]

    @property
    def tail(self) -> int:
        """How many axes a block has."""
        return self.values.ndim - 1

    @property
    def v(self) -> Any:  # type: ignore[override]
        """The dense array; in a masked sweep with a mask of what no block is at."""
        whole = np.zeros(self.shape, self.dtype)
        self.add_into(whole)
        if self.lanes is None:
            return whole
        live = np.zeros(self.shape, bool)
        live.reshape(-1)[self.at] = True
        return Masked(whole, live, self.lanes)

    def add_into(self, whole: np.ndarray) -> None:
        """Add the blocks to an array in C order."""
        count = math.prod(self.lead)
        np.add.at(whole.reshape(count, *self.values.shape[1:]), self.at, self.values)

    def places(self) -> Places:
        """The index of each block."""
        return np.unravel_index(self.at, self.lead) if self.lead else ()

    def __getitem__(self, at: Index) -> Any:
        return op("index")(self, at=at)

    def interpret(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """The rule of the primitive, or the primitive of dense arrays."""
        rule = RULES.get(primitive.name)
        mine = [isinstance(a, SparseVector) for a in args]
        if not len(self.at) and len(args) == 2:
            y = self._of_nothing(primitive.name, args)
            if y is not None:
                return y
        if rule is not None and all(mine[i] or not isinstance(a, Box) for i, a in enumerate(args)):
            y = rule(*args, **params)
            if y is not None:
                return y
        return primitive(*[a.v if m else a for a, m in zip(args, mine, strict=True)], **params)

    def _of_nothing(self, name: str, args: tuple[Any, ...]) -> Any:
        """What an operation with zero gives, whatever the other operand is; else None."""
        first = args[0] is self
        other = args[1] if first else args[0]
        shape = type_of(other).shape
        if name in ("add", "subtract") and shape == self.shape:
            return -other if name == "subtract" and first else other
        keeps = name == "multiply" or (name in ("divide", "keep") and first)
        return self if keeps and broadcast([shape, self.shape]) == self.shape else None

    # --- other forms ----------------------------------------------------------------------------

    def new(self, shape: Sequence[int], at: np.ndarray, values: np.ndarray) -> "SparseVector":
        """Another array in the same sweep; axes of length 1 that come last belong to the blocks."""
        shape = tuple(shape)
        while self.lanes is None and values.ndim <= len(shape) and shape[-values.ndim] == 1:
            values = values[:, None]
        return SparseVector(shape, at, values, self.depth, self.lanes)

    def whole(self, array: np.ndarray) -> "SparseVector":
        """All of an array, in the same sweep."""
        if self.lanes is None:
            return self.new(array.shape, np.zeros(1, np.int64), array[None])
        return self.new(array.shape, np.arange(array.size), array.reshape(-1))

    def with_numbers(self, values: np.ndarray) -> "SparseVector":
        """The same blocks with other numbers."""
        return SparseVector(self.shape, self.at, values, self.depth, self.lanes)

    def summed(self) -> "SparseVector":
        """The same with one block at a place."""
        at, values = sum_duplicates(self.at, self.values, 0, math.prod(self.lead))
        return SparseVector(self.shape, at, values, self.depth, self.lanes)

    def by(self, tail: int) -> "SparseVector":
        """The same with blocks of at most `tail` axes."""
        if tail >= self.tail:
            return self
        return self._cut(self.shape[len(self.shape) - tail :])

    def _cut(self, block: tuple[int, ...]) -> "SparseVector":
        """Smaller blocks of that shape, in C order; the shape of the whole is left as it is."""
        parts = math.prod(self.values.shape[1:]) // max(1, math.prod(block))
        at = (self.at[:, None] * parts + np.arange(parts)).reshape(-1)
        values = self.values.reshape(len(at), *block)
        return SparseVector(self.shape, at, values, self.depth, self.lanes)

    def numbers_of(self, other: Any) -> Any:
        """What another array has where the blocks are; None where it does not broadcast to them."""
        if not np.ndim(other):
            return other
        if np.ndim(other) > self.ndim or np.broadcast_shapes(other.shape, self.shape) != self.shape:
            return None
        whole = np.broadcast_to(other, self.shape)
        return whole[self.places()] if self.lead else whole[None]

    def rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Of a matrix the numbers of the rows that have a block, and these rows."""
        if self.tail == 2:
            return np.arange(self.shape[0]), self.values.sum(axis=0)
        if self.tail == 1:
            return sum_duplicates(self.at, self.values, 0, self.shape[0])
        i, j = self.places()
        rows, rank = np.unique(i, return_inverse=True)
        values = np.zeros((len(rows), self.shape[1]), self.dtype)
        np.add.at(values, (rank, j), self.values)
        return rows, values

    def at_strides(
        self, offset: int, strides: tuple[int, ...], shape: tuple[int, ...]
    ) -> "SparseVector":
        """In an array of `shape`, of which this is the part with these strides, in elements."""
        for tail in range(self.tail, -1, -1):
            own = self.by(tail)
            block, width = own.values.shape[1:], math.prod(own.values.shape[1:])
            target = _fitting(shape, width)
            steps = strides[len(strides) - tail :]
            if math.prod(shape[len(shape) - target :]) != width or not _in_order(block, steps):
                continue
            start = np.full(len(own.at), offset)
            for place, step in zip(own.places(), strides, strict=False):
                start += place * step
            if not np.any(start % max(1, width)):
                values = own.values.reshape(len(start), *shape[len(shape) - target :])
                return self.new(shape, start // max(1, width), values)
        raise AssertionError("a block of one element fits anywhere")


def _fitting(shape: tuple[int, ...], width: int) -> int:
    """The most last axes of a shape whose elements divide `width`."""
    tail = 0
    while tail < len(shape):
        block = math.prod(shape[len(shape) - tail - 1 :])
        if not block or width % block:
            break
        tail += 1
    return tail


def _in_order(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    step = 1
    for n, s in zip(reversed(shape), reversed(strides), strict=True):
        if n != 1 and s != step:
            return False
        step *= n
    return True


def _numbers(places: Sequence[np.ndarray], lead: Sequence[int], count: int) -> np.ndarray:
    """The numbers of blocks from their indices."""
    at = np.zeros(count, np.int64)
    for place, n in zip(places, lead, strict=True):
        at = at * n + place
    return at


def sparse_vector(c: Builder, depth: int, lanes: int | None) -> SparseVector | None:
    """A builder as a sparse vector; None for one that holds more than places and numbers."""
    if isinstance(c, Sum):
        parts = [sparse_vector(piece, depth, lanes) for piece in c.pieces]
        return None if any([p is None for p in parts]) else functools.reduce(_add, parts)
    if not isinstance(c, Rows | Coo) or c.dtype.kind not in "fc":
        return None
    if isinstance(c, Coo):
        v = SparseVector(c.shape, c.flat, c.values, depth, lanes)
    else:
        before, (n, *rest) = math.prod(c.shape[: c.axis]), c.shape[c.axis :]
        at = (np.arange(before)[:, None] * n + c.indices).reshape(-1)
        v = SparseVector(c.shape, at, c.values.reshape(len(at), *rest), depth, lanes)
    if lanes is None:
        return v.new(v.shape, v.at, v.values)
    v = v.by(0)
    live = v.values != 0
    return SparseVector(v.shape, v.at[live], v.values[live], depth, lanes)


# --- indices --------------------------------------------------------------------------------------


class _Taken(NamedTuple):
    """Axes of a part, in order: a slice of one axis, a new axis, or arrays for several axes.

    `axes` are those of the whole array; `first` and `step` say which elements a slice takes,
    `arrays` which ones arrays do, in the common shape `shape`.
    """

    axes: tuple[int, ...]
    shape: tuple[int, ...]
    first: int = 0
    step: int = 1
    arrays: tuple[np.ndarray, ...] = ()


def _taken(at: Any, shape: tuple[int, ...]) -> list[_Taken] | None:
    """What an index takes of an array of that shape; None for an index that is left to NumPy."""
    parts: list[Any] = []
    for p in at if isinstance(at, tuple) else (at,):
        flags = isinstance(p, np.ndarray) and p.dtype == bool
        if isinstance(p, Box | list | bool | np.bool_) or (flags and not np.ndim(p)):
            return None
        parts += np.nonzero(p) if flags else (p,)
    whole = [i for i, p in enumerate(parts) if p is Ellipsis]
    missing = len(shape) - sum([p is not None and p is not Ellipsis for p in parts])
    place = whole[0] if whole else len(parts)
    parts[place : place + 1] = [slice(None)] * missing
    advanced = any([isinstance(p, np.ndarray) for p in parts])
    taken, arrays, axis = [], [], 0
    for p in parts:
        if p is None:
            taken.append(_Taken((), (1,)))
            continue
        if isinstance(p, slice):
            start, stop, step = p.indices(shape[axis])
            taken.append(_Taken((axis,), (len(range(start, stop, step)),), start, step))
        elif advanced:
            arrays.append((len(taken), axis, np.asarray(p) % max(1, shape[axis])))
        else:
            taken.append(_Taken((axis,), (), p % max(1, shape[axis])))
        axis += 1
    if arrays:
        orders, axes, given = zip(*arrays, strict=True)
        first = orders[0] if len({*orders}) == 1 else 0
        given = np.broadcast_arrays(*given)
        taken.insert(first, _Taken(axes, given[0].shape, arrays=tuple(given)))
    return taken


def _rest(taken: Sequence[_Taken], shape: tuple[int, ...]) -> int:
    """How many of the last axes are taken as they are."""
    count = 0
    for t in reversed(taken):
        n = len(shape) - count - 1
        if t.arrays or t.axes != (n,) or t.shape != (shape[n],) or (t.first, t.step) != (0, 1):
            break
        count += 1
    return count


def _scatter(v: Any, *, at: Any, shape: tuple[int, ...]) -> Any:
    taken = _taken(at, tuple(shape))
    if taken is None:
        return None
    part = tuple([n for t in taken for n in t.shape])
    if v.shape != part:
        v = _broadcast_to(v, shape=part)
    v = v.by(_rest(taken, tuple(shape)))
    own, places = [*v.places()], {}
    for t in taken[: len(taken) - v.tail]:
        here, own = own[: len(t.shape)], own[len(t.shape) :]
        if t.arrays:
            there = tuple(here) if here else ()
            places |= {i: a[there] for i, a in zip(t.axes, t.arrays, strict=True)}
        elif t.axes:
            places[t.axes[0]] = t.first + t.step * here[0] if here else t.first
    lead = tuple(shape)[: len(shape) - v.tail]
    numbers = _numbers([places[i] for i in range(len(lead))], lead, len(v.at))
    return v.new(shape, numbers, v.values)


def _index(x: Any, *, at: Any) -> Any:
    taken = _taken(at, x.shape)
    if taken is None:
        return None
    x = x.by(_rest(taken, x.shape))
    left = taken[: len(taken) - x.tail]
    source = np.arange(len(x.at))
    matched: dict[int, Any] = {}
    for k, t in enumerate(left):  # arrays first: an element may be taken several times
        if t.arrays:
            places = x.places()
            lengths = [x.shape[i] for i in t.axes]
            mine = _numbers([places[i] for i in t.axes], lengths, len(x.at))
            order = np.argsort(mine, kind="stable")
            wanted = _numbers([a.reshape(-1) for a in t.arrays], lengths, math.prod(t.shape))
            low, high = (np.searchsorted(mine[order], wanted, side=s) for s in ("left", "right"))
            counts = high - low
            which = np.repeat(np.arange(len(wanted)), counts)
            ahead = np.repeat(np.cumsum(counts) - counts, counts)
            source = order[low[which] + np.arange(len(which)) - ahead]
            matched[k] = np.unravel_index(which, t.shape) if t.shape else ()
    places = [p[source] for p in x.places()]
    live, new = np.ones(len(source), bool), []
    for k, t in enumerate(left):
        if t.arrays:
            new += matched[k]
        elif not t.axes:
            new.append(np.zeros(len(source), np.int64))
        elif t.shape:
            q, r = np.divmod(places[t.axes[0]] - t.first, t.step)
            live &= (r == 0) & (q >= 0) & (q < t.shape[0])
            new.append(q)
        else:
            live &= places[t.axes[0]] == t.first
    shape = tuple([n for t in taken for n in t.shape])
    values = x.values[source[live]]
    if not shape:
        return None if x.lanes is not None else values.sum()
    lead = shape[: len(shape) - x.tail]
    return x.new(shape, _numbers([p[live] for p in new], lead, int(live.sum())), values)


# --- moving axes ----------------------------------------------------------------------------------


def _reshape(x: Any, *, shape: tuple[int, ...]) -> Any:
    if -1 in shape:
        rest = max(1, -math.prod(shape))
        shape = tuple([x.size // rest if n == -1 else n for n in shape])
    tail = 0 if x.lanes is not None else _fitting(shape, math.prod(x.values.shape[1:]))
    cut = x._cut(shape[len(shape) - tail :])
    return x.new(shape, cut.at, cut.values)


def _permute_dims(x: Any, *, axes: tuple[int, ...]) -> Any:
    kept, n = 0, len(axes)
    while kept < x.tail and axes[n - kept - 1] % n == n - kept - 1:
        kept += 1
    x = x.by(kept)
    shape, places = tuple([x.shape[i] for i in axes]), x.places()
    lead = shape[: n - x.tail]
    at = _numbers([places[axes[i]] for i in range(len(lead))], lead, len(x.at))
    return x.new(shape, at, x.values)


def _broadcast_to(x: Any, *, shape: tuple[int, ...]) -> Any:
    shape = tuple(shape)
    before = (1,) * (len(shape) - x.ndim)
    x = _reshape(x, shape=(*before, *x.shape)) if before else x
    block, k = shape[len(shape) - x.tail :], len(x.at)
    values = np.broadcast_to(x.values, (k, *block))
    at = np.zeros((k,), np.int64)
    for place, n, m in zip(x.places(), x.lead, shape, strict=False):
        steps = place if n == m else np.arange(m)
        if n == m:
            at = at * m + place.reshape(k, *(1,) * (at.ndim - 1))
        else:
            at = at[..., None] * m + steps
    several = at.size // max(1, k)
    return x.new(shape, at.reshape(-1), np.repeat(values, several, axis=0))


def _sum(x: Any, *, axis: tuple[int, ...], keepdims: bool) -> Any:
    lead = len(x.lead)
    axes = {i % x.ndim for i in axis}
    values = x.values.sum(axis=tuple([i - lead + 1 for i in axes if i >= lead]))
    left = [i for i in range(lead) if i not in axes]
    shape = tuple([n for i, n in enumerate(x.shape) if i not in axes])
    if not shape and not keepdims:
        return None if x.lanes is not None else values.sum()
    places = x.places()
    at = _numbers([places[i] for i in left], [x.shape[i] for i in left], len(x.at))
    y = x.new(shape, at, values) if shape else None
    if not keepdims:
        return y
    kept = tuple([1 if i in axes else n for i, n in enumerate(x.shape)])
    return None if y is None else _reshape(y, shape=kept)


def _concat(*arrays: Any, axis: int) -> Any:
    if not all([isinstance(a, SparseVector) for a in arrays]):
        return None
    first, axis = arrays[0], axis % arrays[0].ndim
    shape, start, parts = [*first.shape], 0, []
    shape[axis] = sum([a.shape[axis] for a in arrays])
    for a in arrays:
        along = slice(start, start + a.shape[axis])
        parts.append(_scatter(a, at=(*[slice(None)] * axis, along), shape=tuple(shape)))
        start += a.shape[axis]
    y = parts[0]
    for part in parts[1:]:
        y = _add(y, part)
    return y


# --- numbers --------------------------------------------------------------------------------------


def _add(a: Any, b: Any) -> Any:
    if not isinstance(b, SparseVector):
        a, b = b, a
    if not isinstance(a, SparseVector):
        if type(a) in (int, float) and a == 0:  # the first contribution to a number
            return b
        if b.lanes is not None or np.shape(a) != b.shape:
            return None
        whole = np.array(a, np.result_type(a, b.dtype), order="C")
        b.add_into(whole)
        return whole
    if a.shape != b.shape:
        return None
    tail = min(a.tail, b.tail)
    a, b = a.by(tail), b.by(tail)
    at, values = np.concatenate([a.at, b.at]), np.concatenate([a.values, b.values])
    y = a.new(a.shape, at, values)
    return y.summed() if values.size > max(MANY, y.size) else y  # so that it does not grow


def _subtract(a: Any, b: Any) -> Any:
    return _add(a, -b)


def _multiply(a: Any, b: Any) -> Any:
    if isinstance(a, SparseVector):
        a, b = b, a
    if isinstance(a, SparseVector):
        return None
    numbers = b.numbers_of(a)
    return None if numbers is None else b.with_numbers(numbers * b.values)


def _divide(a: Any, b: Any) -> Any:
    if isinstance(b, SparseVector):
        return None
    numbers = a.numbers_of(b)
    return None if numbers is None else a.with_numbers(a.values / numbers)


def _keep(x: Any, live: Any) -> Any:
    if not isinstance(x, SparseVector):
        return None
    there = x.numbers_of(live)
    if there is None:
        return None
    if x.lanes is None:
        return x.with_numbers(np.where(there, x.values, x.dtype.type(0)))
    there = np.broadcast_to(there, x.at.shape)
    return SparseVector(x.shape, x.at[there], x.values[there], x.depth, x.lanes)


def _of_numbers(name: str) -> Callable[..., Any]:
    """A linear primitive that acts on each number."""
    return lambda x, **params: x.with_numbers(op(name)(x.values, **params))


def _matmul(a: Any, b: Any) -> Any:
    if max(np.ndim(a), np.ndim(b)) > 2:
        return _stacked(a, b)
    if a.ndim + b.ndim < 3:
        return None
    if not isinstance(b, SparseVector):
        if a.lanes is not None:
            return None
        if a.ndim == 1:
            a = a.by(0)
            return a.values @ b[a.at]
        at, rows = a.rows()
        return a.new((a.shape[0], *b.shape[1:]), at, rows @ b)
    if isinstance(a, SparseVector) or b.lanes is not None:
        return None
    if b.ndim == 1:
        b = b.by(0)
        return a[..., b.at] @ b.values
    if not b.tail:
        turned = _permute_dims(b, axes=(1, 0))
        columns, parts = turned.rows()
        if 2 * len(columns) <= b.shape[1] and a.ndim == 2:
            product = b.new((b.shape[1], a.shape[0]), columns, parts @ a.T)
            return _permute_dims(product, axes=(1, 0))
    at, rows = b.rows()
    return a[..., at] @ rows


def _stacked(a: Any, b: Any) -> Any:
    """The products of stacks of matrices, in the letters of einsum."""
    deep = max(a.ndim, b.ndim) - 2
    stack = string.ascii_lowercase[:deep]
    left, right = ([*stack[max(0, deep + 2 - x.ndim) :]] if x.ndim > 2 else [] for x in (a, b))
    row, column = "x" * (a.ndim > 1), "y" * (b.ndim > 1)
    text = f"{''.join(left)}{row}z,{''.join(right)}z{column}->{stack}{row}{column}"
    return _einsum(a, b, subscripts=text)


def _einsum(*operands: Any, subscripts: str) -> Any:
    """The sum over the letters of a block, for each block; None where another one is sparse too."""
    inputs, output = subscripts.split("->")
    letters = inputs.split(",")
    pairs = [*zip(letters, operands, strict=True)]
    lengths = {(c, n) for s, o in pairs for c, n in zip(s, np.shape(o), strict=True)}
    mine = [(s, o) for s, o in pairs if isinstance(o, SparseVector)]
    own, x = mine[0]
    if len(mine) > 1 or x.lanes is not None or len(set(own)) < len(own):
        return None
    if len(lengths) > len({c for c, _ in lengths}):  # an axis of length 1 is broadcast
        return None
    lead, size = own[: len(x.lead)], dict(lengths)
    places = dict(zip(lead, x.places(), strict=True))
    block = next(c for c in string.ascii_letters if c not in subscripts)
    texts, values = [block + own[len(lead) :]], [x.values]
    for s, o in pairs:
        if o is not x and len(set(s)) < len(s):
            return None
        if o is not x:
            there = [c for c in s if c in lead]
            first = np.transpose(
                o, [s.index(c) for c in [*there, *[c for c in s if c not in lead]]]
            )
            values.append(first[tuple([places[c] for c in there])] if there else o)
            texts.append(block * bool(there) + "".join([c for c in s if c not in lead]))
    kept = [c for c in output if c in lead]
    rest = "".join([c for c in output if c not in lead])
    y = np.einsum(
        f"{','.join(texts)}->{block * bool(kept)}{rest}", *values, optimize=len(pairs) > 2
    )
    if not kept:
        return y
    at = _numbers([places[c] for c in kept], [size[c] for c in kept], len(x.at))
    whole = x.new([size[c] for c in [*kept, *rest]], at, y)
    order = [*kept, *rest]
    return _permute_dims(whole, axes=tuple([order.index(c) for c in output]))


def _cumsum(x: Any, *, axis: int, reverse: bool = False) -> Any:
    within = axis % x.ndim - len(x.lead)
    if within < 0 or x.lanes is not None:
        return None
    return x.with_numbers(op("cumsum")(x.values, axis=within + 1, reverse=reverse))


RULES: dict[str, Callable[..., Any]] = {
    "add": _add,
    "subtract": _subtract,
    "multiply": _multiply,
    "divide": _divide,
    "keep": _keep,
    "index": _index,
    "scatter": _scatter,
    "reshape": _reshape,
    "permute_dims": _permute_dims,
    "broadcast_to": _broadcast_to,
    "sum": _sum,
    "concat": _concat,
    "matmul": _matmul,
    "einsum": _einsum,
    "cumsum": _cumsum,
    "checkpoint_name": lambda x, **_: x,
    **{name: _of_numbers(name) for name in ("negative", "conj", "real", "astype")},
}
"""By the names of primitives: None where the dense array is read after all."""
