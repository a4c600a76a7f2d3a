"""Formal vectors: tangents and cotangents of values that are not arrays, such as functions.

They can be added and multiplied by numbers, which is all that the sweeps need.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from lineara.facts.hints import Value


class Formal:
    """A vector without components, which linear maps treat as one leaf."""

    __lineara_leaf__ = True
    __array_ufunc__ = None  # a NumPy number times a formal vector calls __rmul__
    shape: tuple[int, ...] = ()
    dtype: np.dtype = np.dtype(object)

    def numbers(self) -> Iterable[Any]:
        """The numbers in it, for the search for NaNs."""
        return ()

    def __add__(self, other: Value) -> "Formal":
        raise NotImplementedError(type(self).__name__)

    def __mul__(self, factor: Value) -> "Formal":
        raise NotImplementedError(type(self).__name__)

    def __radd__(self, other: Value) -> "Formal":
        return self if type(other) in (int, float) and other == 0 else NotImplemented

    def __rmul__(self, factor: Value) -> "Formal":
        return self * factor
