"""Where the parts of an array lie: offsets and strides, counted in elements of C order.

And how whole arrays lie in memory, as NumPy's would: `strides_of` a value, with gaps and all, so
that whoever reshapes it knows whether that is a view.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from lineara.facts.types import ArrayType


class Flat(NamedTuple):
    """Flat positions that a contribution goes to; a Piece may have them in place of an index."""

    at: np.ndarray


def grid(offset: int | np.ndarray, strides: tuple[int, ...], shape: tuple[int, ...]) -> np.ndarray:
    """offset + sum of i_k stride_k, for every index i of `shape`; several offsets come first."""
    positions = np.array(offset)
    for n, s in zip(shape, strides, strict=True):
        positions = positions[..., None] + np.arange(n) * s
    return positions


@cache
def c_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides in elements of an array in C order."""
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= n
    return tuple(reversed(strides))


def reshaped_strides(
    shape: tuple[int, ...], strides: tuple[int, ...], new: tuple[int, ...]
) -> tuple[int, ...] | None:
    """The strides of the same elements under another shape; None where NumPy has to copy.

    >>> reshaped_strides((2, 6), (6, 1), (2, 3, 2)), reshaped_strides((6, 2), (1, 6), (12,))
    ((6, 2, 1), None)
    """
    if 0 in shape:
        return c_strides(new)
    old = [(n, s) for n, s in zip(shape, strides, strict=True) if n != 1]
    new_strides: list[int] = []
    i = j = 0
    while i < len(old):  # the shortest groups of axes, old and new, that hold as many elements
        start, first, have, want = i, j, old[i][0], 1
        i += 1
        while have != want:
            if want < have:
                want *= new[j]
                j += 1
            else:
                have *= old[i][0]
                i += 1
        if any(old[k][1] != old[k + 1][0] * old[k + 1][1] for k in range(start, i - 1)):
            return None
        step = old[i - 1][1]
        new_strides += [step * c for c in c_strides(new[first:j])]
    return (*new_strides, *[1] * (len(new) - j))


def locate(
    at: object, offset: int, strides: tuple[int, ...], shape: tuple[int, ...]
) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    """The position and the shape of the part `at` of a part; `at` is basic and valid."""
    parts: tuple[Any, ...] = at if isinstance(at, tuple) else (at,)
    taken = sum(p is not None and p is not Ellipsis for p in parts)
    new_strides: list[int] = []
    new_shape: list[int] = []
    axis = 0
    listed: list[Any] = [*parts] if Ellipsis in parts else [*parts, Ellipsis]
    for p in listed:
        if p is None:
            new_shape.append(1)
            new_strides.append(0)
        elif p is Ellipsis:
            rest = len(shape) - taken
            new_shape += shape[axis : axis + rest]
            new_strides += strides[axis : axis + rest]
            axis += rest
        elif isinstance(p, slice):
            start, stop, step = p.indices(shape[axis])
            offset += start * strides[axis]
            new_shape.append(len(range(start, stop, step)))
            new_strides.append(step * strides[axis])
            axis += 1
        else:
            offset += (p if p >= 0 else p + shape[axis]) * strides[axis]
            axis += 1
    return int(offset), tuple(new_strides), tuple(new_shape)


def strided(
    a: np.ndarray, offset: int, strides: tuple[int, ...], shape: tuple[int, ...]
) -> np.ndarray:
    """A strided part of a C-contiguous array, as a view."""
    size = a.itemsize
    if 0 in shape:
        return np.empty(shape, a.dtype)
    return np.ndarray(shape, a.dtype, a, offset * size, tuple([s * size for s in strides]))


def repeater(t: ArrayType, shape: tuple[int, ...]) -> Callable[[np.ndarray], np.ndarray]:
    """np.broadcast_to of one type, which takes longer than most sums of what it gives."""
    ahead = (0,) * (len(shape) - t.ndim)
    within = zip(t.shape, c_strides(t.shape), strict=True)
    strides = ahead + tuple([0 if n == 1 else s * t.dtype.itemsize for n, s in within])
    dtype, array = t.dtype, np.ndarray

    def repeated(a: np.ndarray) -> np.ndarray:
        if a.flags.c_contiguous:
            return array(shape, dtype, a, 0, strides)
        return np.broadcast_to(a, shape)

    return repeated


# --- whole arrays in memory ---------------------------------------------------------------------

ROOM = 2**20  # elements: a copy keeps gaps as they are up to this reach, and narrows wider ones


class Doubtful(tuple[int, ...]):
    """Strides of an array that lies in memory in one of several ways: those of C order."""

    __slots__ = ()


def joined_strides(
    shape: tuple[int, ...], ways: Sequence[tuple[int, ...] | None]
) -> tuple[int, ...]:
    """The strides of what is one of several arrays of a shape; None is C order."""
    ways = [c_strides(shape) if way is None else way for way in ways]
    first = ways[0]
    alike = all([narrow(shape, way) == narrow(shape, first) for way in ways])
    sure = len(shape) < 2 or not any([isinstance(way, Doubtful) for way in ways])
    return first if alike and sure else Doubtful(c_strides(shape))


def strides_of(value: Any) -> tuple[int, ...]:
    """The strides, in elements, that NumPy's array would have; () for a number."""
    if issubclass(type(value), np.ndarray):
        return tuple([s // value.itemsize for s in value.strides])
    lay = getattr(value, "lay", None)
    return c_strides(tuple(getattr(value, "shape", ()))) if lay is None else lay


def in_c_order(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Whether elements lie one after the other in C order."""
    if 0 in shape:
        return True
    return all([n == 1 or s == c for n, s, c in zip(shape, strides, c_strides(shape), strict=True)])


def packed(shape: tuple[int, ...], strides: tuple[int, ...], order: str | None) -> tuple[int, ...]:
    """Strides of a copy in the order C, F, A or K.

    >>> packed((2, 3), (1, 2), "C"), packed((2, 3), (1, 2), "K"), packed((2, 3), (-3, 2), "A")
    ((3, 1), (1, 2), (3, 1))
    """
    if isinstance(strides, Doubtful) and order not in ("C", "F"):
        return strides
    if order == "A":
        turned = in_c_order(shape[::-1], strides[::-1]) and not in_c_order(shape, strides)
        order = "F" if turned else "C"
    if order == "C" or (order != "F" and in_c_order(shape, strides)):
        return c_strides(shape)
    if order == "F" or in_c_order(shape[::-1], strides[::-1]):
        return c_strides(shape[::-1])[::-1]
    axes = outer_first(strides)
    along = dict(zip(axes, c_strides(tuple([shape[i] for i in axes])), strict=True))
    return tuple([along[i] for i in range(len(shape))])


def outer_first(strides: tuple[int, ...]) -> tuple[int, ...]:
    """The axes from the outermost in memory to the innermost."""
    return tuple(sorted(range(len(strides)), key=lambda i: -abs(strides[i])))


@cache
def narrow(shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, ...]:
    """The least strides with gaps at the same places; the same ones where elements overlap.

    Two arrays of one shape with the same narrow strides reshape alike.

    >>> narrow((2, 3), (90, 10)), narrow((2, 3), (-30, 10)), narrow((2, 3), (1, 2))
    ((7, 2), (-6, 2), (1, 2))
    """
    new_strides = [0] * len(shape)
    reach, least = 1, 1  # the first stride that is free for the next axis: as it is, and narrow
    for i in reversed(outer_first(strides)):
        n, s = shape[i], strides[i]
        if n == 1 or s == 0 or 0 in shape:
            continue
        if abs(s) < reach:
            return strides
        step = least if abs(s) == reach else least + 1
        new_strides[i] = step if s > 0 else -step
        reach, least = n * abs(s), n * step
    return tuple(new_strides)


def overlap(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Whether elements share their memory, as in a window or an array that is broadcast."""
    steps = sorted([(abs(s), n) for n, s in zip(shape, strides, strict=True) if n > 1])
    reach = 0
    for s, n in steps if 0 not in shape else ():
        if s <= reach:
            return True
        reach += s * (n - 1)
    return False


def laid_out(a: np.ndarray, strides: tuple[int, ...]) -> np.ndarray:
    """A copy of an array that lies in memory with these strides, or with narrower gaps.

    Where elements overlap, they are equal in the array too.
    """
    if not a.size:
        return a.copy(order="K")
    ends = [(n - 1) * s for n, s in zip(a.shape, strides, strict=True)]
    if sum(map(abs, ends)) > max(ROOM, 2 * a.size):
        strides = narrow(a.shape, strides)
        ends = [(n - 1) * s for n, s in zip(a.shape, strides, strict=True)]
    first = -sum([e for e in ends if e < 0])
    memory = np.empty(first + 1 + sum([e for e in ends if e > 0]), a.dtype)
    size = a.itemsize
    made = np.ndarray(a.shape, a.dtype, memory, first * size, tuple([s * size for s in strides]))
    if 0 in strides:  # what is broadcast is written once, however long it is
        once = tuple([slice(0, 1) if s == 0 else slice(None) for s in strides])
        made[once] = a[once]
        return made
    made[...] = a
    return made


def copied(a: np.ndarray) -> np.ndarray:
    """A copy that lies in memory as the array does, so that a reshape copies where NumPy's does."""
    if 0 in a.strides and a.size:  # of a broadcast array no whole copy may have room
        return laid_out(a, strides_of(a))
    made = a.copy(order="K")
    return made if made.strides == a.strides else laid_out(a, strides_of(a))
