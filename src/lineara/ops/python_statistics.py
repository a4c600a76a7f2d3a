"""Functions of Python's module `statistics` for lists of traced numbers.

In programs each is Python's function of a row of numbers, whose sums are exact.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from lineara.errors import StagingError
from lineara.facts.hints import Shaped, Value
from lineara.facts.primitive import Box, implements, op, registry
from lineara.facts.types import type_of
from lineara.ops.elementwise import over
from lineara.ops.python_numbers import OfRow
from lineara.ops.shape import any_box, as_array


@implements("statistics.mean")
def mean(data):
    """The arithmetic mean."""
    return np.mean(as_array(data))


@implements("statistics.fmean")
def fmean(data, weights=None):
    """The arithmetic mean, weighted if weights are given."""
    return np.average(as_array(data), weights=None if weights is None else as_array(weights))


@implements("statistics.median")
def median(data):
    """The middle value, or the mean of the two middle values."""
    return np.median(as_array(data))


def _spread(name: str, ddof: int, root: bool) -> Any:
    """Declare a variance, or a standard deviation: around the mean, or around a given value."""

    @implements(f"statistics.{name}")
    def call(data, around=None):
        x = as_array(data)
        if around is None:
            return (np.std if root else np.var)(x, ddof=ddof)
        y = np.sum((x - around) ** 2) / (len(x) - ddof)
        return np.sqrt(y) if root else y

    call.__name__ = name
    return call


variance: Callable[..., Any] = _spread("variance", 1, False)
stdev: Callable[..., Any] = _spread("stdev", 1, True)
pvariance: Callable[..., Any] = _spread("pvariance", 0, False)
pstdev: Callable[..., Any] = _spread("pstdev", 0, True)


# --- in programs ----------------------------------------------------------------------------------

FLOAT64 = np.dtype(float)


def _of_row(ours: Callable[..., Any], terms: Callable[..., Any], kind: str) -> None:
    """Declare what stands in for one of ours in programs, by the terms of its tangent.

    Its result is Python's number ("pythons"), NumPy's if one of them is ("mixed"), or of the class
    of all of them ("element").
    """
    name = ours.__name__

    def act(*given: Any) -> Any:
        return getattr(import_module("statistics"), name)(*given)

    row = OfRow(f"statistics_{name}", act, terms)

    def call(data: Any, *around: Any, **options: Any) -> Any:
        given = [v for v in (*around, *options.values()) if v is not None]
        if any_box(given):
            raise StagingError(
                f"statistics.{name}: the second argument is staged, which is no operation of "
                "programs; write the sum itself"
            )
        act([1.0] * len(data), *given)  # raises where there are too few numbers, or wrong weights
        numbers = data if isinstance(data, Box) else op("stack")(*data)
        numpys = {True} if isinstance(data, Box) else {_is_numpys(v) for v in data}
        plain = [] if isinstance(data, Box) else [v for v in data if not isinstance(v, Box)]
        whole = any([isinstance(v, int) and (kind == "element" or v != float(v)) for v in plain])
        torn = None in numpys or (kind == "element" and len(numpys) > 1)
        if type_of(numbers).dtype != FLOAT64 or whole or torn:
            shown = sorted({repr(type_of(v)) for v in data})
            raise StagingError(
                f"statistics.{name} of {', '.join(shown)}: what class of number it gives, or its "
                "bits, depends on values; give it floats of one class, [float(v) for v in data]"
            )
        y = ours(numbers, *given).item() if given else row(numbers)
        return y.typed() if kind != "pythons" and True in numpys else y

    registry.await_(
        f"statistics.{name}", lambda original: registry.declare(original, in_programs=call)
    )


def _is_numpys(value: Value) -> bool | None:
    """Whether a float is NumPy's; None where it may be either."""
    if isinstance(value, Box):
        weak = getattr(value, "weak", False)
        return None if weak is None else not weak
    return isinstance(value, np.generic)


def _mean_terms(y: Value, x: Shaped, x_dot: Value) -> Any:
    return x_dot / type_of(x).shape[-1]


def _spread_terms(ddof: int, root: bool) -> Callable[..., Any]:
    def terms(y: Value, x: Shaped, x_dot: Value) -> Any:
        n = type_of(x).shape[-1]
        off = x - op("sum")(x, axis=(type_of(x).ndim - 1,), keepdims=True) / n
        return (over(off, y) if root else 2 * off) / (n - ddof) * x_dot

    return terms


def _middle_terms(y: Shaped, x: Shaped, x_dot: Shaped) -> Any:
    n = type_of(x).shape[-1]
    rank = op("argsort")(op("argsort")(x, axis=-1, kind="stable"), axis=-1)
    middle = [op("equal")(rank, k) for k in ((n - 1) // 2, n // 2)]
    first, last = [op("astype")(is_there, dtype=FLOAT64) for is_there in middle]
    return (first + last) / 2 * x_dot


_of_row(mean, _mean_terms, "mixed")
_of_row(fmean, _mean_terms, "pythons")
_of_row(median, _middle_terms, "element")
for _ours, _ddof in ((variance, 1), (pvariance, 0)):
    _of_row(_ours, _spread_terms(_ddof, root=False), "mixed")
for _ours, _ddof in ((stdev, 1), (pstdev, 0)):
    _of_row(_ours, _spread_terms(_ddof, root=True), "pythons")
