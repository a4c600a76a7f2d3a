"""Kinks: where a primitive has no derivative, how they are counted, and which slope is used.

Each primitive's derivative fact has one subgradient at a kink, the default.  Another subgradient is
the derivative of another expression with the same values.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from lineara.facts.hints import Shaped, Value
from lineara.facts.primitive import op, real_part
from lineara.facts.types import type_of
from lineara.ops.eigen import close_to
from lineara.ops.elementwise import equal, sqrt, where
from lineara.ops.index import take_along_axis
from lineara.ops.reduce import lanes_last


class Kink(NamedTuple):
    """The kink of a primitive.

    `at(y, *args, **params)` counts the lanes at the kink, from plain values.
    `text(choice, *args, **params)` is the primitive's value, written so that it has the chosen
    slope; None if there is no choice.
    """

    name: str
    at: Callable[..., Any]
    text: Callable[..., Any] | None = None
    words: tuple[str, ...] = ()  # the names of the choices; () if the choice is a number, the slope
    default: str = ""


def _slope(name: str) -> Callable[..., Any]:
    """The expression of a function of x that has a chosen slope where x is 0."""

    def text(slope: float, x: Shaped, *rest: Any) -> Any:
        zero = equal(x, 0)
        return where(zero, real_part(x) * slope, op(name)(where(zero, 1.0, x), *rest))

    return text


def _tie(name: str) -> Callable[..., Any]:
    """The expression of maximum or minimum that takes the first, or last, of two equal values."""

    def text(word: str, a: Value, b: Value) -> Any:
        return where(equal(a, b), a if word in ("first", "inside") else b, op(name)(a, b))

    return text


def _extreme(name: str) -> Callable[..., Any]:
    """The expression of max or min over axes that takes the first, or the last, of equal values."""

    def text(word: str, x: Shaped, *, axis: tuple[int, ...], keepdims: bool) -> Any:
        rows, _ = lanes_last(x, axis)
        n = type_of(rows).shape[-1]
        if word == "last":
            rows = op("index")(rows, at=(..., slice(None, None, -1)))
        at = op("reshape")(op(f"arg{name}")(rows, axis=-1), shape=(*type_of(rows).shape[:-1], 1))
        y = take_along_axis(rows, at, -1) if n else rows
        shape = type_of(op(name).result(type_of(x), axis=axis, keepdims=keepdims)).shape
        return op("reshape")(y, shape=shape)

    return text


def _several(y: Shaped, x: Value, *, axis: tuple[int, ...], keepdims: bool) -> Any:
    """A mask of the results whose extremum occurs more than once."""
    full = y if keepdims else np.expand_dims(y, axis)
    return np.sum(x == full, axis=axis) > 1


def _repeats(y: Value, x: Shaped, *, axis: int = -1, **_: Any) -> Any:
    """A mask of equal neighbours in sorted order."""
    return np.diff(np.sort(x, axis=axis), axis=axis) == 0


def _broken(x: Shaped, w: Value) -> Any:
    return (np.asarray(x) == 0) & (np.asarray(w) > 0) & (np.asarray(w) < 1)


def _power(slope: float, x: Value, w: Value) -> Any:
    zero = np.logical_and(equal(x, 0), np.logical_and(op("greater")(w, 0), op("less")(w, 1)))
    return where(zero, x * slope, op("power")(where(zero, 1.0, x), w))


def _zero(y: Value, x: Value, *rest: Any) -> Any:
    return np.asarray(x) == 0


def _equal(y: Value, a: Shaped, b: Shaped) -> Any:
    return np.equal(a, b)


def _spectrum(values: Callable[..., Any], name: str) -> Kink:
    """The kink of eigenvectors (or singular vectors) at equal eigenvalues."""

    def at(y: Shaped, a: Any, *f: Any, **params: Any) -> Any:
        w, n = values(a, *f, **params), max(np.shape(a)[-2:])
        return close_to(w[..., None, :], w[..., :, None], w, n).sum((-2, -1)) > np.shape(w)[-1]

    def text(word: str, a: Shaped, *f: Any, **params: Any) -> Any:
        return op(name)(a, *f, **params | {"equal": word})

    return Kink("spectrum", at, text, ("nan", "zero"), "nan")


TIES = ("equal", "first", "last")
KINKS: dict[str, Kink] = {
    "abs": Kink("abs", _zero, _slope("abs"), (), "0"),
    "fabs": Kink("abs", _zero, _slope("fabs"), (), "0"),
    "sqrt": Kink("sqrt", _zero, _slope("sqrt"), (), "inf"),
    "cbrt": Kink("power", _zero, _slope("cbrt"), (), "inf"),
    "power": Kink("power", lambda y, x, w: _broken(x, w), _power, (), "inf"),
    "length": Kink("norm", _zero, lambda word, x: sqrt(x), ("zero", "nan"), "zero"),
    "hypot": Kink(
        "norm",
        lambda y, x, w: np.equal(y, 0),
        lambda word, x, w: sqrt(x * x + w * w),
        ("zero", "nan"),
        "zero",
    ),
    "maximum": Kink("ties", _equal, _tie("maximum"), TIES, "equal"),
    "minimum": Kink("ties", _equal, _tie("minimum"), TIES, "equal"),
    "fmax": Kink("ties", _equal, _tie("fmax"), TIES, "equal"),
    "fmin": Kink("ties", _equal, _tie("fmin"), TIES, "equal"),
    "max": Kink("ties", _several, _extreme("max"), TIES, "equal"),
    "min": Kink("ties", _several, _extreme("min"), TIES, "equal"),
    "clip_below": Kink("clip", _equal, _tie("clip_below"), ("half", "inside", "outside"), "half"),
    "clip_above": Kink("clip", _equal, _tie("clip_above"), ("half", "inside", "outside"), "half"),
    "argsort": Kink("sort", _repeats),
    "eigh_vectors": _spectrum(op("eigvalsh"), "eigh_vectors"),
    "eig_vectors": _spectrum(op("eigvals"), "eig_vectors"),
    "svd_vectors": _spectrum(lambda a, *f, full: op("svdvals")(a, *f), "svd_vectors"),
}
