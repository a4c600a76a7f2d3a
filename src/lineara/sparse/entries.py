"""The entries of a sparse Jacobian, one by one: coefficients of lanes, and rows that lack lanes.

A product with a vector of ones and zeros computes as many numbers as there are rows, for each
colour.  Where the operations of f move, scale and add elements, the *lanes* of its tangent
(`cotangent/lanes.py`) hold each entry once: what depends on no argument is a constant of the
program, and what moves elements has moved them before it runs.  A few rows that depend on many
arguments, such as a sum of all, are transposed products.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from lineara.cotangent import Coo
from lineara.cotangent.lanes import LOST, Lanes
from lineara.errors import StructureError
from lineara.facts.box import Box
from lineara.facts.primitive import op
from lineara.facts.types import type_of
from lineara.linear_map import LinearMap
from lineara.trees import flatten

FEW = 8  # rows that are had by products of their own


def entries(L: LinearMap[Any, Any], pattern: Any) -> Any:
    """The numbers of a map at the entries of a pattern, in the order of its compressed rows.

    Raises StructureError where more than a few rows are in no lanes, or where the pattern lacks an
    entry.
    """
    n = pattern.shape[1]
    known: list[tuple[Any, np.ndarray]] = []  # numbers, and of each its entry: row * n + column
    lost, first = [], 0
    for y, t in zip(L.lanes(), L.codomain.types, strict=True):
        row = np.arange(first, first + t.size).reshape(t.shape)
        first += t.size
        if not isinstance(y, Lanes):  # what does not depend on the arguments
            continue
        unknown = np.zeros(t.shape, bool)
        for _, columns in y.lanes:
            unknown |= columns == LOST
        lost += row[unknown].tolist()
        for values, columns in y.lanes:
            at = np.where(unknown | (columns < 0), -1, row * n + columns)
            known.append((op("reshape")(values, shape=(t.size,)), at.reshape(-1)))
    if len(lost) > FEW:
        raise StructureError(f"{len(lost)} rows are in no lanes")
    for i in lost:
        known.append((_row(L, i), i * n + np.arange(n)))
    dtype = np.result_type(*[t.dtype for t in L.codomain.types])
    return _gathered(known, pattern, lost, dtype)


def _row(L: LinearMap[Any, Any], i: int) -> Any:
    """A row of the matrix, by a transposed product."""
    seeds = []
    for t in L.codomain.types:
        here = [i] if 0 <= i < t.size else []
        seeds.append(Coo(here, np.ones(len(here)), t.shape) if t.shape else float(len(here)))
        i -= t.size
    bars = flatten(L.codomain.tree(seeds) @ L)[0]
    parts = [op("reshape")(_array(b), shape=(type_of(b).size,)) for b in bars]
    return parts[0] if len(parts) == 1 else op("concat")(*parts, axis=0)


def _array(b: Any) -> Any:
    return b if isinstance(b, Box) else np.asarray(b)


def _gathered(
    known: Sequence[tuple[Any, np.ndarray]], pattern: Any, lost: Sequence[int], dtype: np.dtype
) -> Any:
    """The numbers in the order of the pattern; several of one entry are added."""
    m, n = pattern.shape
    wanted = np.repeat(np.arange(m), np.diff(pattern.indptr)) * n + pattern.indices
    plain = [(v, at) for v, at in known if not isinstance(v, Box)]
    traced = [(v, at) for v, at in known if isinstance(v, Box)]
    constants, which = np.unique(
        np.concatenate([np.zeros(1, dtype), *[v for v, _ in plain]]), return_inverse=True
    )
    sizes = [0, *[type_of(v).size for v, _ in traced]]
    starts = len(constants) + np.cumsum(sizes[:-1])
    places = np.concatenate(
        [which[1:], *[s + np.arange(k) for s, k in zip(starts, sizes[1:], strict=True)]]
    )
    keys = np.concatenate([np.zeros(0, int), *[at for _, at in (*plain, *traced)]])
    order = np.argsort(keys, kind="stable")
    order = order[keys[order] >= 0]
    keys, places = keys[order], places[order].astype(np.int64)
    entry = np.minimum(np.searchsorted(wanted, keys), max(0, len(wanted) - 1))
    inside = wanted[entry] == keys if len(wanted) else np.zeros(len(keys), bool)
    if not np.all(inside | np.isin(keys // n, lost)):
        raise StructureError("the pattern lacks an entry")
    entry, places = entry[inside], places[inside]
    first = np.ones(len(entry), bool)
    first[1:] = entry[1:] != entry[:-1]
    at = np.full(len(wanted), which[0])  # where there is none, the zero
    at[entry[first]] = places[first]
    line = op("concat")(constants, *[v for v, _ in traced], axis=0) if traced else constants
    numbers = op("index")(line, at=(at,))
    if first.all():
        return numbers
    more = op("index")(line, at=(places[~first],))
    return numbers + op("scatter")(more, at=(entry[~first],), shape=(len(wanted),))
