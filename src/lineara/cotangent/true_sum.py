"""True sums: sums of numbers rounded once, independent of grouping and order.

A rounded partial sum loses its rounding error, so that the next sum depends on the grouping.  An
inexact sum is therefore a `Carried` number: its value is the rounded sum, and it also stores a few
numbers with the same true sum  [Shewchuk 1997].

>>> partial = summed([1.0, 1e16])
>>> partial == 1e16, summed([partial, -1e16])
(True, 1.0)
"""

from collections.abc import Sequence
from fractions import Fraction
from functools import reduce
from math import copysign, fsum, inf, isfinite, nextafter
from operator import add
from typing import Any

import numpy as np

from lineara.facts.hints import Leaf, Value

_REAL: dict[type, Any] = {
    float: float,
    complex: float,
    np.float16: np.float16,
    np.float32: np.float32,
    np.float64: float,
    np.complex64: np.float32,
    np.complex128: float,
}


class Carried:
    """Base of the two classes of rounded sums: `parts` are numbers with the same true sum."""

    __slots__ = ()
    parts: tuple[Any, ...]  # the first is a zero of the sum's class

    def __reduce__(self) -> tuple[Any, ...]:
        return summed, (self.parts,)


class CarriedReal(Carried, float):
    """A rounded sum of real numbers of Python's or NumPy's classes."""


class CarriedComplex(Carried, complex):
    """A rounded sum of complex numbers."""


def parts_of(x: Leaf) -> tuple[Any, ...]:
    """A tuple of numbers whose true sum is x."""
    return x.parts if isinstance(x, Carried) else (x,)


def plain(x: Value) -> Any:
    """A Carried number as a plain one; anything else unchanged."""
    return type(x.parts[0])(x) if isinstance(x, Carried) else x


def summed(terms: Sequence[Any]) -> Any:
    """The sum of numbers; of floats the true sum, rounded once, as a Carried number if inexact."""
    flat = [part for term in terms for part in parts_of(term)]
    with np.errstate(all="ignore"):
        running = reduce(add, flat)
    cls: Any = type(running)
    if cls not in _REAL or not all(type(x) in _REAL or _converts(x) for x in flat):
        return running
    value, parts = _parts([float(x.real) for x in flat], _REAL[cls])
    carrying: Any = CarriedReal
    if issubclass(cls, complex | np.complexfloating):
        imag, more = _parts([float(x.imag) for x in flat], _REAL[cls])
        if len(parts) == len(more) == 1:
            return cls(complex(value, imag))
        parts, carrying = [*parts, *[complex(0.0, x) for x in more]], CarriedComplex
        value = complex(value, imag)
    if len(parts) == 1:
        return cls(value)
    carried = carrying(value)
    carried.parts = (cls(0), *parts)
    return carried


def _converts(x: Value) -> bool:
    return type(x) is int and abs(x) <= 1 << 53


def _parts(terms: list[float], real: type) -> tuple[Any, list[Any]]:
    """(the true sum rounded to the type `real`, a few numbers with the same true sum)."""
    value = rounded(terms, real)
    if not isfinite(value):
        return value, terms if all(map(isfinite, terms)) else [value]
    parts = [float(value)]
    while rest := rounded([*terms, *[-x for x in parts]]):
        parts.append(rest)
    return value, parts


def rounded(terms: list[float], real: type = float) -> Any:
    """The true sum of numbers, rounded once to `real`, which is float or a narrower type.

    >>> rounded([1e308, 1e308, -1e308]), rounded([1.0, 2.0**-24, 2.0**-60], np.float32)
    (1e+308, np.float32(1.0000001))
    """
    total = true_sum(terms)
    if real is float or not isfinite(total):
        return real(total)
    rest = true_sum([*terms, -total])
    if (
        rest and not int(np.float64(total).view(np.int64)) & 1
    ):  # round to odd, so that the second rounding is correct
        total = nextafter(total, copysign(inf, rest))
    return real(total)


def true_sum(terms: list[float]) -> float:
    """As `math.fsum`, also for intermediate overflow and for infinities."""
    try:
        return fsum(terms)
    except (OverflowError, ValueError):
        pass
    special = [x for x in terms if not isfinite(x)]
    if special:
        return sum(special)
    exact = sum(map(Fraction, terms))
    try:
        return float(exact)
    except OverflowError:
        return inf if exact > 0 else -inf
