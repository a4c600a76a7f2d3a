"""A cotangent fitted to the argument that it belongs to: its shape, its dtype, its live lanes."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from lineara.facts.hints import Leaf, Shaped, Value
from lineara.facts.registry import op
from lineara.facts.types import ArrayType, is_complex, type_of


def unbroadcast(x_bar: Shaped, like: ArrayType) -> Any:
    """Sum `x_bar` over the axes that broadcasting added; a real argument sees its real part."""
    shape, want = type_of(x_bar).shape, like.shape
    if shape != want:
        lead = len(shape) - len(want)
        grown = [i + lead for i, n in enumerate(want) if n == 1 != shape[i + lead]]
        x_bar = op("sum")(x_bar, axis=(*range(lead), *grown), keepdims=False)
        if grown:
            x_bar = op("reshape")(x_bar, shape=want)
    return in_dtype(x_bar, like.dtype)


def real_part(x: Leaf) -> Any:
    """The real part of a complex value; a real value as it is."""
    return op("real")(x) if is_complex(x) else x


def in_dtype(x_bar: Shaped, dtype: np.dtype) -> Any:
    """A cotangent for an argument of that dtype: real where that is real, and not wider."""
    if dtype.kind != "c":
        x_bar = real_part(x_bar)
    wider = type(x_bar) is np.ndarray and x_bar.dtype.itemsize > dtype.itemsize > 1
    return x_bar.astype(dtype) if wider and x_bar.dtype.kind == dtype.kind else x_bar


def conjugate(x: Leaf) -> Any:
    """The complex conjugate; a real value as it is."""
    return op("conj")(x) if is_complex(x) else x


def keep(live: object, x: Value) -> Any:
    """The lanes of a tangent or cotangent where `live` holds; the others are structural zeros."""
    return op("keep")(x, live)


def total(terms: Sequence[Any]) -> Any:
    """The sum of the terms that are not None, or None."""
    sum_of_terms = None
    for t in terms:
        if t is not None:
            sum_of_terms = t if sum_of_terms is None else sum_of_terms + t
    return sum_of_terms
