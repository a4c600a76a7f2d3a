"""Counting into bins: differentiable in the weights; the bin of a value is locally constant."""

from typing import Any

import numpy as np

from lineara.errors import StagingError, TypeMismatchError
from lineara.facts.hints import Shaped, Value
from lineara.facts.primitive import Box, implements, op
from lineara.facts.types import type_of
from lineara.ops.index import diff, line
from lineara.ops.join import concatenate, takes_arrays
from lineara.ops.reduce import np_sum
from lineara.ops.shape import as_array, as_doubles
from lineara.ops.value_checks import checked


def _known(a: Shaped, what: str, instead: str) -> np.ndarray:
    """The values, without derivative; of a staged array an error, since a shape depends on them."""
    plain: Any = op("stop_gradient")(a)
    if not isinstance(plain, Box):
        return plain
    try:
        op("flatnonzero")(plain)  # the function that is staged may have made it of constants
    except StagingError:
        raise StagingError(
            f"{what}: the shape of the result depends on staged values; {instead}"
        ) from None
    return np.array(plain.tolist(), type_of(plain).dtype)


def _still(a: Value) -> Any:
    return op("stop_gradient")(a)


def _fit(x: Any, fails: object, text: str) -> Any:
    """x, which a program checks; of plain values NumPy raises what it has to say."""
    return checked(x, fails, ValueError, text) if isinstance(fails, Box) else x


FALLING = "`bins` must increase monotonically, when an array"
TURNED = "max must be larger than min in range parameter."
TOO_MANY = "Too many bins for data range. Cannot create {} finite-sized bins."


@implements(np.bincount)
def bincount(x, /, weights=None, minlength=0):
    """The sum of the weights of each integer 0, 1, 2, ...; differentiable in the weights."""
    x = _known(as_array(x), "np.bincount", "np.add.at(counts, x, weights) has a known length")
    x = x.astype(np.intp) if x.dtype.kind == "b" else x
    plain = np.bincount(x, minlength=minlength)  # raises NumPy's errors
    if weights is None:
        return plain
    weights = as_array(weights)
    if type_of(weights).shape != x.shape:
        raise ValueError("The weights and list don't have the same length.")
    return op("scatter")(as_doubles(weights), at=(x,), shape=plain.shape)


def _edges(a: Shaped, bins: Any, range: tuple[Any, ...] | None) -> Any:
    """The edges of the bins: an array `bins`, or equal steps over a range that may be traced."""
    if type_of(a).dtype.kind == "c":
        raise TypeMismatchError(
            "a histogram of complex numbers, which have no order, is not differentiated; take that "
            "of z.real, z.imag or abs(z)"
        )
    if isinstance(bins, str):
        said = f"the bins {bins!r} of a histogram", "give their number"
        ends: Any = None if range is None else [_known(as_array(v), *said) for v in range]
        bins = len(np.histogram_bin_edges(_known(a, *said), bins, ends)) - 1
    bins = as_array(bins)
    if np.ndim(bins) or isinstance(bins, Box):
        falls = op("greater")(_still(bins[:-1]), _still(bins[1:]))
        return _fit(bins, falls, FALLING)
    if range is not None:
        low, high = range
        low = _fit(low, op("greater")(_still(low), _still(high)), TURNED)
    elif not type_of(a).size:
        low, high = 0.0, 1.0
    else:
        low, high = (op(name)(a, axis=(0,), keepdims=False) for name in ("min", "max"))
    finite = np.logical_and(np.isfinite(_still(low)), np.isfinite(_still(high)))
    how = "autodetected" if range is None else "supplied"
    low = _fit(low, np.logical_not(finite), f"{how} range is not finite")
    same = np.equal(low, high)  # NumPy makes an empty range one wide
    low, high = op("where")(same, low - 0.5, low), op("where")(same, high + 0.5, high)
    dtype = type_of(a).dtype if type_of(a).dtype.kind == "f" else np.dtype(float)
    steps = np.arange(bins).astype(dtype) * ((high - low) / bins) + low
    edges = concatenate([steps, op("reshape")(high, shape=(1,))], dtype=dtype)
    level = op("greater_equal")(_still(edges[:-1]), _still(edges[1:]))
    return _fit(edges, level, TOO_MANY.format(bins))


@implements(np.histogram_bin_edges)
def histogram_bin_edges(a, bins=10, range=None, weights=None):
    """The edges of the bins: equal steps from the smallest value to the largest, differentiable."""
    return _edges(line(as_array(a), None, "histogram")[0], bins, range)


@implements(np.histogram)
def histogram(a, bins=10, range=None, density=None, weights=None):
    """(counts, edges): how many values lie in each bin, or the sum of their weights."""
    sample = line(as_array(a), None, "histogram")[0]
    flat = None if weights is None else line(as_array(weights), None, "histogram")[0]
    ranges = None if range is None else [range]
    counts, edges = histogramdd([sample], [bins], ranges, density, flat)
    if flat is None and not density:
        counts = op("astype")(counts, dtype=np.dtype(int))
    elif flat is not None and not density:
        counts = op("astype")(counts, dtype=type_of(flat).dtype)
    return counts, edges[0]


@takes_arrays(np.histogram2d)
def histogram2d(x, y, bins=10, range=None, density=None, weights=None):
    """(counts, edges, edges) of points in the plane."""
    two = isinstance(bins, list | tuple) and len(bins) == 2
    counts, edges = histogramdd([x, y], bins if two else [bins, bins], range, density, weights)
    return counts, *edges


@takes_arrays(np.histogramdd)
def histogramdd(sample, bins=10, range=None, density=None, weights=None):
    """(counts, list of edges) of points: a matrix (n, d), or a list of d coordinate arrays."""
    rows = [as_array(c) for c in sample] if isinstance(sample, list | tuple) else _columns(sample)
    d = len(rows)
    bins = bins if isinstance(bins, list | tuple | np.ndarray) else [bins] * d
    ranges = [None] * d if range is None else range
    edges = [_edges(c, b, r) for c, b, r in zip(rows, bins, ranges, strict=True)]
    shape = tuple(type_of(e).shape[0] - 1 for e in edges)
    places, inside = [], True
    for c, e in zip(rows, edges, strict=True):
        c, e = _still(c), _still(e)
        last = type_of(e).shape[0] - 1
        at = op("searchsorted")(e, c, side="right") - 1
        at = np.where(c == e[-1], last - 1, at)
        inside = np.logical_and(inside, np.logical_and(at >= 0, at < last))
        places.append(np.clip(at, 0, last - 1))
    if weights is None:
        weights = np.ones(type_of(rows[0]).shape)
    kept = op("keep")(as_doubles(as_array(weights)), inside)
    counts = op("scatter")(kept, at=tuple(places), shape=shape)
    if density:
        counts = counts / np_sum(counts * 1.0)
        for i, e in enumerate(edges):
            counts = counts / np.reshape(diff(e), [-1 if j == i else 1 for j in np.arange(d)])
    return counts, tuple(edges)


def _columns(sample: Shaped) -> list[Any]:
    sample = as_array(sample)
    if type_of(sample).ndim == 1:
        return [sample]
    return [sample[:, i] for i in np.arange(type_of(sample).shape[1])]
