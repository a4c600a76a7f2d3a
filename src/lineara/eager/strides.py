"""Where the parts of an array lie: offsets and strides, counted in elements of C order."""

from functools import cache
from typing import Any, NamedTuple

import numpy as np


class Flat(NamedTuple):
    """Flat positions that a contribution goes to; a Piece may have them in place of an index."""

    at: np.ndarray


def grid(offset: int | np.ndarray, strides: tuple[int, ...], shape: tuple[int, ...]) -> np.ndarray:
    """offset + sum of i_k stride_k, for every index i of `shape`; several offsets come first."""
    found = np.array(offset)
    for n, s in zip(shape, strides, strict=True):
        found = found[..., None] + np.arange(n) * s
    return found


@cache
def c_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides in elements of an array in C order."""
    found, step = [], 1
    for n in reversed(shape):
        found.append(step)
        step *= n
    return tuple(reversed(found))


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
    found: list[int] = []
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
        found += [step * c for c in c_strides(new[first:j])]
    return (*found, *[1] * (len(new) - j))


def locate(
    at: Any, offset: int, strides: tuple[int, ...], shape: tuple[int, ...]
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
    return np.ndarray(
        shape, a.dtype, a.data.cast("B"), offset * size, tuple(s * size for s in strides)
    )
