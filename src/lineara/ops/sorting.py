"""Sorting, partition, quantiles, distinct values, and set operations.

Each result is read from the input at positions, which are locally constant.
"""

from collections.abc import Callable
from typing import Any, cast

import numpy as np

from lineara.errors import ShapeError
from lineara.facts.hints import Namespace, Shaped, Value
from lineara.facts.primitive import Box, Constant, implements, op, primitive
from lineara.facts.types import ArrayType, is_complex, type_of
from lineara.ops.index import Positions, line, take, take_along_axis
from lineara.ops.shape import as_array, as_floats, normal_axes, normal_axis
from lineara.ops.value_checks import checked


@implements(np.sort)
def sort(a, axis=-1, kind=None, order=None, *, stable=None):
    """The elements in ascending order; equal elements keep their order."""
    np.sort(np.empty(0), kind=kind, order=order, stable=stable)  # NumPy may raise here
    a, axis = line(a, axis, "sort")
    return take_along_axis(a, op("argsort")(a, axis=axis, kind="stable"), axis)


@implements(np.sort_complex)
def sort_complex(a):
    """The elements in ascending order, as complex numbers."""
    y = sort(a)
    wide = np.result_type(type_of(a).dtype, np.complex64)
    return y if is_complex(y) else op("astype")(y, dtype=wide)


@implements(np.partition)
def partition(a, kth, axis=-1, kind="introselect", order=None):
    """The elements partially sorted: those of the ranks `kth` are in place, smaller ones before."""
    np.partition(np.empty(1), 0, kind=cast(Any, kind), order=order)  # NumPy may raise here
    a, axis = line(a, axis, "partition")
    return take_along_axis(a, op("partition_order")(a, kth, axis=axis), axis)


@primitive
class partition_order(Constant):
    """The positions of the elements as np.partition puts them: np.argpartition may differ."""

    host = True

    def result(self, x, kth, axis):
        shape = type_of(x).shape
        axis = normal_axis(axis, len(shape), "partition")
        if not isinstance(kth, ArrayType):  # a place that no line has is refused
            np.argpartition(np.zeros(shape[axis]), kth)
        return ArrayType(shape, np.dtype(np.intp))

    def evaluate(self, xp, /, x, kth, axis):
        value, order = np.partition(x, kth, axis), np.argpartition(x, kth, axis)
        if np.array_equal(np.take_along_axis(x, order, axis), value, equal_nan=True):
            return order
        ranks = np.argsort(np.argsort(value, axis, kind="stable"), axis)
        return np.take_along_axis(np.argsort(x, axis, kind="stable"), ranks, axis)


# --- quantiles ------------------------------------------------------------------------------------


SHORT = 256
"""Elements of a line up to which machine code has its whole order, and it takes no longer."""


def _between(alpha: float, beta: float) -> Callable[[Any, Any], Any]:
    """The position of a quantile in n sorted values  [Hyndman and Fan 1996, definitions 4 to 9]."""
    return lambda q, n: n * q + (alpha + q * (1 - alpha - beta)) - 1


ELEMENTS = (
    "inverted_cdf",
    "closest_observation",
    "lower",
    "higher",
    "nearest",
)  # they never mix two elements

PLACES: dict[
    str, Callable[[Any, Any], Any]
] = {  # the position of the quantile q in n sorted values
    "inverted_cdf": lambda q, n: np.ceil(_stop_gradient(n * q)) - 1,
    "averaged_inverted_cdf": lambda q, n: (
        0.5 * (np.floor(_stop_gradient(n * q)) + np.ceil(n * q - 1))
    ),
    "closest_observation": lambda q, n: np.rint(_stop_gradient(n * q)) - 1,
    "interpolated_inverted_cdf": _between(0, 1),
    "hazen": _between(0.5, 0.5),
    "weibull": _between(0, 0),
    "linear": lambda q, n: (n - 1) * q,
    "median_unbiased": _between(1 / 3, 1 / 3),
    "normal_unbiased": _between(3 / 8, 3 / 8),
    "lower": lambda q, n: np.floor(_stop_gradient((n - 1) * q)),
    "higher": lambda q, n: np.ceil(_stop_gradient((n - 1) * q)),
    "midpoint": lambda q, n: 0.5 * (np.floor((n - 1) * q) + np.ceil((n - 1) * q)),
    "nearest": lambda q, n: np.rint(_stop_gradient((n - 1) * q)),
}


SHARE = "Quantiles must be in the range [0, 1]"
ALL_NAN = "All-NaN slice encountered"
PERCENT = "Percentiles must be in the range [0, 100]"


def _stop_gradient(place: Value) -> Any:
    return op("stop_gradient")(place)


def _hundredth(q: Any) -> Any:
    return as_array(q) / 100 if isinstance(q, list | tuple) else q / 100


def _quantiles(
    func: Callable[..., Any], doc: str, percent: bool = False, skips_nan: bool = False
) -> Any:
    """Declare one of NumPy's four: of fractions or of percentages, with NaNs or without."""

    @implements(func)
    def call(
        a,
        q,
        axis=None,
        out=None,
        overwrite_input=False,
        method="linear",
        keepdims=np._NoValue if skips_nan else False,
        *,
        weights=None,
    ):
        part, words = (_hundredth(q), (PERCENT,)) if percent else (q, ())
        return _quantile(a, part, axis, method, keepdims, weights, skips_nan, *words)

    call.__name__, call.__doc__ = func.__name__, doc
    return call


quantile: Any = _quantiles(
    np.quantile,
    "The quantiles q along axes; differentiable in the values and, between two values, in q.",
)
percentile: Any = _quantiles(np.percentile, "The percentiles q along axes.", percent=True)
nanquantile: Any = _quantiles(
    np.nanquantile, "The quantiles q along axes, without NaNs.", skips_nan=True
)
nanpercentile: Any = _quantiles(
    np.nanpercentile, "The percentiles q along axes, without NaNs.", percent=True, skips_nan=True
)


@implements(np.median)
def median(a, axis=None, out=None, overwrite_input=False, keepdims=False):
    """The middle value along axes, or the mean of the two middle values."""
    rows, shape = _in_front(as_floats(a), axis, keepdims, "median")
    n = type_of(rows).shape[0]
    order, bad = _ranks(rows, np.unique([(n - 1) // 2, n // 2]))
    middle = [take_along_axis(rows, order[i : i + 1], 0) for i in range(type_of(order).shape[0])]
    y = middle[0] if len(middle) == 1 else 0.5 * (middle[0] + middle[1])
    return op("reshape")(_spoiled(y, bad), shape=shape)


@implements(np.nanmedian)
def nanmedian(a, axis=None, out=None, overwrite_input=False, keepdims=np._NoValue):
    """The median along axes, without NaNs."""
    rows, shape = _in_front(as_floats(a), axis, keepdims, "nanmedian")
    order, count, none = _sorted(rows, True)
    low, high = (_at(order, np.maximum(k, 0)) for k in ((count - 1) // 2, count // 2))
    middle = [take_along_axis(rows, at, 0) for at in (low, high)]
    y = op("where")(np.equal(low, high), middle[0], 0.5 * (middle[0] + middle[1]))
    y = op("reshape")(_spoiled(y, none), shape=shape)
    return checked(y, none, RuntimeWarning, ALL_NAN)


def _in_front(
    a: Shaped, axis: int | None, keepdims: object, name: str
) -> tuple[Any, tuple[int, ...]]:
    """a as a matrix (reduced elements, results), and the shape of the result."""
    shape = type_of(a).shape
    axes = normal_axes(axis, len(shape), name)
    rest = [i for i in range(len(shape)) if i not in axes]
    rows = op("permute_dims")(a, axes=(*axes, *rest)) if shape else a
    size = int(np.prod([shape[i] for i in rest], dtype=int))
    count = int(np.prod([shape[i] for i in axes], dtype=int))
    if not count:
        raise ShapeError(f"{name}: {type_of(a)} has no elements to choose from")
    kept = [n if i in rest else 1 for i, n in enumerate(shape)]
    wanted = kept if keepdims is True else [shape[i] for i in rest]
    return op("reshape")(rows, shape=(count, size)), tuple(wanted)


def _ranks(rows: Shaped, places: np.ndarray) -> tuple[Any, Any]:
    """The positions of the elements with these ranks in each column, and which columns have NaN."""
    kth = np.append(places, type_of(rows).shape[0] - 1)
    if kth[-1] < SHORT:
        order = op("argsort")(rows, axis=0, kind="stable")
    else:
        order = op("argpartition")(rows, tuple(kth.tolist()), axis=0)
    last = take_along_axis(rows, order[-1:], 0)
    return order[places], op("isnan")(_stop_gradient(last))


def _spoiled(y: Shaped, bad: Shaped) -> Any:
    """y, but NaN where `bad` is true."""
    return y if not isinstance(bad, Box) and not np.any(bad) else op("where")(bad, np.nan, y)


def _sorted(rows: Shaped, nan: bool) -> tuple[Any, Any, Any]:
    """The order of each column, how many elements count, and which columns have no quantile."""
    order = op("argsort")(_stop_gradient(rows), axis=0, kind="stable")
    missing = op("isnan")(_stop_gradient(rows))
    if not nan:
        return order, type_of(rows).shape[0], np.any(missing, axis=0, keepdims=True)
    count = np.sum(np.logical_not(missing), axis=0, keepdims=True)
    return order, count, np.equal(count, 0)


def _at(order: Shaped, places: Shaped) -> Any:
    """The positions of the elements with these ranks, which differ from column to column."""
    shape = type_of(places).shape[0], type_of(order).shape[1]
    return take_along_axis(order, np.broadcast_to(places, shape), 0)


def _quantile(
    a: Shaped,
    q: Shaped,
    axis: int | None,
    method: str,
    keepdims: object,
    weights: Any,
    nan: bool,
    range_: str = SHARE,
) -> Any:
    a = as_array(a) if method in ELEMENTS else as_floats(a)
    weak = type(q) in (int, float) or getattr(q, "weak", False)
    if is_complex(a):
        raise TypeError("a must be an array of real numbers")
    if method not in PLACES or (weights is not None and method != "inverted_cdf"):
        wanted = "inverted_cdf" if method in PLACES else ", ".join(PLACES)
        raise ValueError(f"{method!r} is not a method here; use {wanted}")
    q = as_array(q)
    known = _stop_gradient(q)
    q = checked(q, np.logical_not(np.logical_and(known >= 0, known <= 1)), ValueError, range_)
    rows, shape = _in_front(a, axis, keepdims, "quantile")
    asked, n = type_of(q).shape, type_of(rows).shape[0]
    level = op("reshape")(q, shape=(type_of(q).size, 1))
    if weights is None and not nan and not isinstance(known, Box):
        place = PLACES[method](level, n)
        places = np.clip(np.floor(_stop_gradient(place)).astype(int), 0, n - 1)
        ends = np.unique(np.append(places, np.minimum(places + 1, n - 1)))
        order, bad = _ranks(rows, ends)
        lower, upper = (
            op("index")(order, at=np.searchsorted(ends, p[:, 0]))
            for p in (places, np.minimum(places + 1, n - 1))
        )
    else:
        order, count, bad = _sorted(rows, nan)
        if weights is None:
            place = PLACES[method](level, count)
        else:
            place = _weighted_place(level, order, _weights(weights, a, axis, rows), rows, nan)
        top = np.maximum(count - 1, 0)
        places = np.clip(np.floor(_stop_gradient(place)), 0, top).astype(int)
        lower, upper = (_at(order, p) for p in (places, np.minimum(places + 1, top)))
    y = take_along_axis(rows, lower, 0)
    part = np.clip(place - places, 0.0, None)
    if method not in ELEMENTS and (isinstance(part, Box) or np.any(part)):
        part = op("astype")(part, dtype=type_of(rows).dtype) if weak else part
        y = _between_two(y, take_along_axis(rows, upper, 0), part)
    if not weak and type_of(q).dtype.kind == "f" and method not in ELEMENTS:
        y = op("astype")(y, dtype=np.result_type(type_of(rows).dtype, type_of(q).dtype))
    if type_of(y).dtype.kind in "fc":  # whole numbers hold no NaN
        y = _spoiled(y, bad)
    y = op("reshape")(y, shape=(*asked, *shape))
    return checked(y, bad, RuntimeWarning, ALL_NAN) if nan else y


def _between_two(a: Shaped, b: Shaped, part: Shaped) -> Any:
    """a + (b - a) part, from the end that is nearer, as NumPy calculates it."""
    gap = b - a
    return op("where")(part >= 0.5, b - gap * (1 - part), a + gap * part)


def _weights(weights: Shaped, a: Shaped, axis: int | None, rows: Shaped) -> Any:
    """The weights as a matrix like `rows`; weights of one axis are repeated for every column."""
    weights = as_array(weights)
    if type_of(weights).shape == type_of(a).shape:
        return _stop_gradient(_in_front(weights, axis, False, "quantile")[0])
    return np.broadcast_to(np.reshape(_stop_gradient(weights), (-1, 1)), type_of(rows).shape)


def _weighted_place(level: Shaped, order: Shaped, weights: Shaped, rows: Shaped, nan: bool) -> Any:
    """The number of sorted values whose cumulated share of the weight is below q."""
    weights = checked(weights, weights < 0, ValueError, "Weights must be non-negative.")
    missing = op("isnan")(_stop_gradient(rows)) if nan else np.zeros((1, 1), bool)
    run = np.cumsum(take_along_axis(np.where(missing, 0.0, weights), order, 0), axis=0)
    share = run / run[-1:]
    unfit = np.logical_and(np.isnan(share[-1]), np.logical_not(np.all(missing, axis=0)))
    share = checked(share, unfit, ValueError, "Weights included NaN, inf or were all zero.")
    # values of weight 0 at the beginning are no quantile, not even that of 0
    share = np.where(np.logical_and(share == 0, share[:1] == 0), -1.0, share)
    below = np.expand_dims(share, 0) < np.expand_dims(_stop_gradient(level), 1)
    return np.sum(below, axis=1)


# --- distinct values ---------------------------------------------------------------------------
class Distinct(Positions):
    """(first positions, inverse positions, counts) of the distinct values."""

    host = True

    def evaluate(
        self, xp: Namespace, /, x: np.ndarray, axis: int | None = None, equal_nan: bool = True
    ) -> Any:
        return np.unique(x, True, True, True, axis, equal_nan=equal_nan)[1:]


distinct: Distinct = Distinct("distinct")


@implements(np.unique)
def unique(
    ar,
    return_index=False,
    return_inverse=False,
    return_counts=False,
    axis=None,
    *,
    equal_nan=True,
    sorted=True,
):
    """The sorted distinct values: of equal elements the first one is taken."""
    ar = as_array(ar)
    first, inverse, counts = distinct(ar, axis=axis, equal_nan=equal_nan)
    flat, along = line(ar, axis, "unique")
    asked = (return_index, return_inverse, return_counts)
    extra = [v for v, wanted in zip((first, inverse, counts), asked, strict=True) if wanted]
    values = take(flat, first, along)
    return (values, *extra) if extra else values


@implements(np.unique_all)
def unique_all(x):
    """(distinct values, first positions, inverse positions, counts)."""
    return _ALL(*unique(x, True, True, True, equal_nan=False))


@implements(np.unique_counts)
def unique_counts(x):
    """(distinct values, counts)."""
    return _COUNTS(*unique(x, return_counts=True, equal_nan=False))


@implements(np.unique_inverse)
def unique_inverse(x):
    """(distinct values, inverse positions)."""
    return _INVERSE(*unique(x, return_inverse=True, equal_nan=False))


@implements(np.unique_values)
def unique_values(x):
    """The distinct values."""
    return unique(x, equal_nan=False)


_ALL, _COUNTS, _INVERSE = (
    type(f(np.zeros(1))) for f in (np.unique_all, np.unique_counts, np.unique_inverse)
)


def _where(mask: Shaped, flat: Any) -> Any:
    return op("index")(flat, at=(op("flatnonzero")(mask),))


@implements(np.union1d)
def union1d(ar1, ar2):
    """The distinct values of two arrays together."""
    return unique(np.append(ar1, ar2))


@implements(np.intersect1d)
def intersect1d(ar1, ar2, assume_unique=False, return_indices=False):
    """The distinct values that two arrays share, read from the first."""
    flat = [line(as_array(a), None, "intersect1d")[0] for a in (ar1, ar2)]
    places = [np.arange(flat[0].shape[0]), np.arange(flat[1].shape[0])]
    if not assume_unique:
        places = [distinct(a)[0] for a in flat]
        flat = [take(a, p) for a, p in zip(flat, places, strict=True)]
    order = np.argsort(flat[0], kind="stable")
    first = order[np.isin(flat[0], flat[1])[order]]
    common = take(flat[0], first)
    if not return_indices:
        return common
    turned = np.argsort(flat[1], kind="stable")
    second = turned[np.isin(flat[1], flat[0])[turned]]
    return common, places[0][first], places[1][second]


@implements(np.setdiff1d)
def setdiff1d(ar1, ar2, assume_unique=False):
    """The distinct values of the first array that the second does not have."""
    values = line(as_array(ar1), None, "setdiff1d")[0] if assume_unique else unique(ar1)
    return _where(np.logical_not(np.isin(values, ar2)), values)


@implements(np.setxor1d)
def setxor1d(ar1, ar2, assume_unique=False):
    """The distinct values that exactly one of two arrays has."""
    values = sort(np.append(*((ar1, ar2) if assume_unique else map(unique, (ar1, ar2)))))
    changes = np.concatenate([[True], values[1:] != values[:-1], [True]])
    return _where(np.logical_and(changes[1:], changes[:-1]), values)
