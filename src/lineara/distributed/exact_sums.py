"""Exact sums of many arrays: cells whose true sum is kept, and rounded once at the end.

An accumulator is a pair (places, numbers); a place may occur several times, and stands for the true
sum of its numbers.  `compressed` makes it small and keeps every true sum, by the error-free sum of
two numbers  [Knuth; Shewchuk 1997]:

    s = a + b     e = (a - (s - (s - a))) + (b - (s - a))     a + b = s + e, exactly

So the rounded sum does not depend on the order of the terms, nor on how they were grouped.

>>> at, x = compressed(np.array([4, 4, 4]), np.array([1e16, 1.0, -1e16]))
>>> rounded_cells(at, x, np.dtype(float))
(array([4]), array([1.]))
"""

import numpy as np

from lineara.cotangent.true_sum import rounded
from lineara.facts.hints import Leaf

Cells = tuple[np.ndarray, np.ndarray]  # flat places, numbers in float64


def cells_of(flat: np.ndarray, values: np.ndarray) -> Cells:
    """Numbers of any floating dtype at flat places; the parts of complex ones, side by side."""
    if values.dtype.kind == "c":
        wide = np.ascontiguousarray(values, np.complex128).view(np.float64)
        return np.repeat(2 * flat, 2) + np.tile([0, 1], len(flat)), wide
    return flat, values.astype(np.float64)


def compressed(places: np.ndarray, numbers: np.ndarray) -> Cells:
    """Fewer numbers with the same true sum at each place, of which most have one or two.

    Infinities and NaN are kept apart: a place with one has their sum as the true sum.
    """
    cells, at = np.unique(places, return_inverse=True)
    finite = np.isfinite(numbers)
    special = ~finite
    parts: list[np.ndarray] = []
    order = np.argsort(at[finite], kind="stable")
    line, x = at[finite][order], numbers[finite][order]
    starts = np.flatnonzero(np.r_[True, line[1:] != line[:-1]]) if len(line) else line
    rank = np.arange(len(line)) - np.repeat(starts, np.diff(np.r_[starts, len(line)]))
    by_rank = np.argsort(rank, kind="stable")
    ends = np.cumsum(np.bincount(rank)) if len(rank) else rank
    for some in np.split(by_rank, ends[:-1]):
        _add(parts, line[some], x[some], len(cells))
    kept = [(cells[p != 0], p[p != 0]) for p in parts]
    for where, value in zip(*_special(at[special], numbers[special]), strict=True):
        kept.append((cells[[where]], np.array([value])))
    if not kept:
        return np.zeros(0, np.int64), np.zeros(0)
    return np.concatenate([c for c, _ in kept]), np.concatenate([p for _, p in kept])


def _special(at: np.ndarray, numbers: np.ndarray) -> Cells:
    cells, which = np.unique(at, return_inverse=True)
    sums = np.zeros(len(cells))
    with np.errstate(invalid="ignore"):
        np.add.at(sums, which, numbers)
    sums[np.isnan(sums)] = np.nan  # of one sign
    return cells, sums


def _add(parts: list[np.ndarray], at: np.ndarray, x: np.ndarray, size: int) -> None:
    """Add x at distinct places to the parts, of which each takes up the rounding error of the last.

    Where a sum is too large it is not made, and x goes on to the next part.
    """
    for part in parts:
        a = part[at]
        with np.errstate(over="ignore", invalid="ignore"):
            s = a + x
            b = s - a
            error = (a - (s - b)) + (x - b)
        fits = np.isfinite(s) & np.isfinite(error)
        part[at] = np.where(fits, s, a)
        x = np.where(fits, error, x)
        left = x != 0
        if not left.any():
            return
        at, x = at[left], x[left]
    last = np.zeros(size)
    last[at] = x
    parts.append(last)


def rounded_cells(places: np.ndarray, numbers: np.ndarray, dtype: np.dtype) -> Cells:
    """(sorted distinct places, the true sum at each, rounded once to a real dtype)."""
    order = np.argsort(places, kind="stable")
    places, numbers = places[order], numbers[order]
    starts = np.flatnonzero(np.r_[True, places[1:] != places[:-1]]) if len(places) else places
    counts = np.diff(np.r_[starts, len(places)])
    with np.errstate(over="ignore"):
        sums = numbers[starts].astype(dtype)
    for i in np.flatnonzero(counts > 1):
        terms = numbers[starts[i] : starts[i] + counts[i]].tolist()
        sums[i] = _rounded(terms, dtype)
    return places[starts], sums


def _rounded(terms: list[float], dtype: np.dtype) -> Leaf:
    special = [x for x in terms if not np.isfinite(x)]
    if special:
        total = sum(special)
        return total if total == total else np.nan  # of one sign
    return rounded(terms, float if dtype == np.float64 else dtype.type)
