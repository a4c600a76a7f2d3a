"""Arrays whose places are any number of elements apart, and places that are known from the text.

offset_of, at_offset      where an element is, counted in elements of its buffer, and its value
contiguous, gathered      the array in C order
spot, part, beside        the places of a part: a beginning and strides, or a table of places
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from lineara.engines.native import numbers as nm
from lineara.engines.native.emit import INDEX, Emitter
from lineara.engines.native.numbers import strides_of
from lineara.engines.native.scalars import RULES
from lineara.facts.types import ArrayType
from lineara.linear_a import syntax as ir

Plain = nm.Num | nm.Arr


def type_of(x: Plain) -> ArrayType:
    """The type of a number or an array."""
    return x.type if isinstance(x, nm.Arr) else nm.TYPES[x.kind]


def steps_of(x: Plain) -> Sequence[int]:
    """How many elements apart the places of each axis are; a number has no axes."""
    strides = x.strides if isinstance(x, nm.Arr) else ()
    return strides_of(type_of(x).shape) if strides is None else strides


def offset_of(em: Emitter, start: nm.Num, by: nm.Num, size: int = 1) -> nm.Num:
    """start + by · size."""
    step = RULES["multiply"](em, "i64", [by, nm.constant("i64", size)])
    assert step is not None
    y = RULES["add"](em, "i64", [start, step])
    assert y is not None
    return y


def at_offset(em: Emitter, x: Plain, at: nm.Num) -> nm.Num:
    """The element so many elements after the first one; a number is itself."""
    return em.load(x, at) if isinstance(x, nm.Arr) else x


def gathered(em: Emitter, x: Plain, t: ArrayType, strides: Sequence[int]) -> nm.Arr:
    """The array of the elements of x that are `strides` apart."""
    with em.kept([x]):
        y = em.array(t)
    with em.nest(t.shape, strides, strides_of(t.shape)) as (of, to):
        em.store(at_offset(em, x, of), y, to)
    return y


def broadcast(em: Emitter, x: Plain, t: ArrayType) -> nm.Arr:
    """A number or an array in all places of axes of length one, and of axes that come before."""
    return gathered(em, x, t, steps_in(x, t.ndim))


def steps_in(x: Plain, ndim: int) -> list[int]:
    """How many elements apart the places of a number or an array are, broadcast to some axes."""
    shape = type_of(x).shape
    steps = [0 if n == 1 else k for n, k in zip(shape, steps_of(x), strict=True)]
    return [0] * (ndim - len(shape)) + steps


def view(x: nm.Arr, t: ArrayType, at: str, strides: Sequence[int]) -> nm.Arr:
    """Some places of an array, in its memory."""
    plain = [*strides] == strides_of(t.shape) or t.size <= 1
    return x._replace(type=t, at=at, strides=None if plain else tuple(strides))


# --- parts ----------------------------------------------------------------------------------------


class Positions(NamedTuple):
    """Positions on one axis: values that are looked at where they are used, or known ones."""

    array: nm.Arr | np.ndarray
    steps: tuple[int, ...]  # how far apart they are, on each axis of the part
    length: int  # of the axis
    step: int  # of the array, on that axis
    complain: Callable[[], object]


class Spot(NamedTuple):
    """Where a part of an array is: from `start` on, `strides` apart or where a table says.

    On some axes it may be where positions are that only the run knows.
    """

    start: nm.Num
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    table: np.ndarray | None = None
    positions: tuple[Positions, ...] = ()

    @property
    def is_plain(self) -> bool:
        """Whether it is one piece of memory, in C order."""
        return not self.is_looked_up and (
            math.prod(self.shape) <= 1 or [*self.strides] == strides_of(self.shape)
        )

    @property
    def begin(self) -> int | None:
        """Where it starts, if that is known."""
        a = self.start.affine
        return a.constant if a is not None and not a.terms else None

    @property
    def is_looked_up(self) -> bool:
        """Whether a table or positions say where."""
        return self.table is not None or bool(self.positions)

    @property
    def in_order(self) -> bool:
        """Whether NumPy goes through it, and lays out what it takes there, as code does."""
        return self.is_plain or (bool(self.positions) and len(self.shape) == 1)

    @property
    def kept(self) -> list[nm.Held]:
        """What has to lie in memory as long as the part is looked at."""
        return [p.array for p in self.positions if isinstance(p.array, nm.Arr)]


def spot(
    em: Emitter,
    x: nm.Arr,
    at: Sequence[Any],
    held: dict[ir.Var, nm.Held],
    complain: Callable[[], object],
) -> Spot | None:
    """Where x[at] is; None where a bound of a slice or a mask is a value."""
    shape, steps = x.type.shape, steps_of(x)
    taken = [np.ndim(p) if np.asarray(p).dtype == bool else int(p is not None) for p in at]
    axis, start, fixed = 0, nm.constant("i64", 0), []
    if any([isinstance(p, ir.Var) and isinstance(held[p], nm.Arr) for p in at]):
        return looked_up(em, x, at, held, complain)
    for p, k in zip(at, taken, strict=True):
        if p is Ellipsis:
            axis += len(shape) - sum(taken) + 1
            fixed.append(p)
            continue
        index = held[p] if isinstance(p, ir.Var) else None
        if isinstance(p, ir.Var):
            if not isinstance(index, nm.Num) or index.kind != "i64" or not shape[axis]:
                return None
            start = offset_of(em, start, within(em, index, shape[axis], complain), steps[axis])
        elif isinstance(p, slice) and any([isinstance(b, ir.Var) for b in (p.start, p.stop)]):
            return None
        fixed.append(0 if isinstance(p, ir.Var) else p)
        axis += k
    if all([p is None or p is Ellipsis or isinstance(p, slice | int | np.integer) for p in fixed]):
        base = as_strided(np.zeros(1, np.int8), shape, steps)
        part = base[tuple(fixed)] if Ellipsis in fixed else base[(*fixed, ...)]
        begin = address(part) - address(base)
        start = offset_of(em, start, nm.constant("i64", begin))
        return Spot(start, part.shape, part.strides)
    apart = zip(steps, np.indices(shape, sparse=True), strict=True)
    table = sum([k * i for k, i in apart], np.zeros(shape, int))[tuple(fixed)]
    return Spot(start, table.shape, (), np.ascontiguousarray(table))


def looked_up(
    em: Emitter,
    x: nm.Arr,
    at: Sequence[Any],
    held: dict[ir.Var, nm.Held],
    complain: Callable[[], object],
) -> Spot | None:
    """A part at positions of which some are an array of values.

    What the positions make stands where the first of them stands, or in front of all where
    something lies between them, as NumPy has it.
    """
    shape, steps = x.type.shape, steps_of(x)
    taken = sum([p is not None and p is not Ellipsis for p in at])
    rest = [slice(None)] * (len(shape) - taken)
    i = next((i for i, p in enumerate(at) if p is Ellipsis), len(at))
    parts = [held[p] if isinstance(p, ir.Var) else p for p in (*at[:i], *rest, *at[i + 1 :])]
    bounds = [b for p in parts if isinstance(p, slice) for b in (p.start, p.stop, p.step)]
    places = [i for i, p in enumerate(parts) if p is not None and not isinstance(p, slice)]
    axes = [sum([p is not None for p in parts[:i]]) for i in places]
    if any([isinstance(b, ir.Var) for b in bounds]) or not all([shape[axis] for axis in axes]):
        return None
    base = as_strided(np.zeros(1, np.int8), shape, steps)
    index: Any = [0 if i in places else p for i, p in enumerate(parts)]
    part = base[(*index, ...)]
    start = nm.constant("i64", address(part) - address(base) if part.size else 0)
    arrays: list[tuple[nm.Arr | np.ndarray, tuple[int, ...], Sequence[int], int, int]] = []
    for p, axis in zip([parts[i] for i in places], axes, strict=True):
        n, step = shape[axis], steps[axis]
        if isinstance(p, int | np.integer):
            p = nm.constant("i64", int(p))
        known = None if isinstance(p, nm.Num | nm.Arr) else np.asarray(p)
        if known is not None and known.dtype.kind == "i":
            known = np.where(known < 0, known + n, known)
            if not np.all((known >= 0) & (known < n)):
                return None
            arrays.append((known, known.shape, strides_of(known.shape), n, step))
        elif isinstance(p, nm.Num) and p.kind == "i64":
            start = offset_of(em, start, within(em, p, n, complain), step)
        elif isinstance(p, nm.Arr) and nm.kind_of(p.type) == "i64":
            arrays.append((p, p.type.shape, steps_of(p), n, step))
        else:
            return None
    common = np.broadcast_shapes(*[array[1] for array in arrays])
    together = places == [*range(places[0], places[-1] + 1)]
    new = places[0] if together else 0  # where these axes are in the part
    after = part.ndim - new

    def spread(own: tuple[int, ...], apart: Sequence[int]) -> tuple[int, ...]:
        kept = [0 if n == 1 else k for n, k in zip(own, apart, strict=True)]
        return (*[0] * (new + len(common) - len(own)), *kept, *[0] * after)

    positions = [
        Positions(array, spread(own, apart), n, step, complain)
        for array, own, apart, n, step in arrays
    ]
    whole = (*part.shape[:new], *common, *part.shape[new:])
    strides = (*part.strides[:new], *[0] * len(common), *part.strides[new:])
    return Spot(start, whole, strides, None, tuple(positions))


def address(array: np.ndarray) -> int:
    """Where an array begins."""
    return array.__array_interface__["data"][0]


def within(em: Emitter, index: nm.Num, n: int, complain: Callable[[], object]) -> nm.Num:
    """A position counted from the beginning; one that is not there is complained of."""
    ends = None if index.affine is None else index.affine.range()
    if ends is not None and index.affine is not None:
        if ends[0] >= 0 and ends[1] < n:
            return index
        if -n <= ends[0] and ends[1] < 0:
            return nm.Num("i64", affine=index.affine.plus(nm.Affine(n)))
    i = em.text(index)
    below = em.let(f"icmp slt i64 {i}, 0")
    i = em.let(f"select i1 {below}, i64 {em.let(f'add i64 {i}, {n}')}, i64 {i}")
    em.must(em.let(f"icmp ult i64 {i}, {n}"), complain)
    return nm.Num("i64", i)


def part(em: Emitter, x: nm.Arr, where: Spot) -> nm.Arr:
    """A part of an array, in the same memory; its places are no table."""
    begin = offset_of(em, nm.Num("i64", x.at) if x.at else nm.constant("i64", 0), where.start)
    text = em.text(begin)
    t = ArrayType(where.shape, x.type.dtype)
    return view(x, t, "" if text == "0" else text, where.strides)


@contextmanager
def beside(em: Emitter, value: Plain | None, where: Spot) -> Iterator[tuple[nm.Num, nm.Num]]:
    """A loop over a part: the value that is put there, zero if it is none, and the offset."""
    x = nm.constant("f64", 0.0) if value is None else value
    steps = steps_of(x) if isinstance(x, nm.Arr) else [0] * len(where.shape)
    with over(em, where, steps) as (i, place):
        yield at_offset(em, x, i), place


def cleared_around(em: Emitter, y: nm.Arr, where: Spot) -> None:
    """Fill an array with zeros; where a part is one piece of memory, all but that."""
    begin = where.begin if where.is_plain else None
    if begin is None:
        em.cleared(y)
        return
    end = begin + math.prod(where.shape)
    for i, n in ((0, begin), (end, y.type.size - end)):
        em.cleared(nm.Arr(y.buffer, y.type._replace(shape=(n,)), str(i) if i else ""))


def known_or(em: Emitter, positions: nm.Arr | np.ndarray) -> nm.Arr:
    """Positions as an array; those that are known are one of the text."""
    if isinstance(positions, nm.Arr):
        return positions
    array = em.literal(positions, ArrayType(positions.shape, INDEX.dtype))
    assert isinstance(array, nm.Arr), "it has axes"
    return array


@contextmanager
def over(em: Emitter, where: Spot, steps: Sequence[int]) -> Iterator[tuple[nm.Num, nm.Num]]:
    """A loop over a part: the offset of what lies `steps` apart, and that of the part's place."""
    if where.positions:
        arrays = [(p, known_or(em, p.array)) for p in where.positions]
        with em.nest(where.shape, steps, where.strides, *[p.steps for p, _ in arrays]) as (
            i, j, *each,
        ):  # fmt: skip
            place = offset_of(em, where.start, j)
            for (p, array), k in zip(arrays, each, strict=True):
                at = em.load(array, k)
                at = at if array is not p.array else within(em, at, p.length, p.complain)
                place = offset_of(em, place, at, p.step)
            yield i, place
    elif where.table is None:
        with em.nest(where.shape, steps, where.strides) as (i, j):
            yield i, offset_of(em, where.start, j)
    else:
        table = known_or(em, where.table)
        with em.nest(where.shape, steps, strides_of(where.shape)) as (i, k):
            yield i, offset_of(em, where.start, em.load(table, k))


__all__ = [
    "Plain",
    "Spot",
    "at_offset",
    "beside",
    "broadcast",
    "cleared_around",
    "offset_of",
    "over",
    "part",
    "spot",
    "steps_in",
    "steps_of",
    "strides_of",
    "type_of",
    "view",
]
