"""Formal vectors: tangents and cotangents of what is no array, such as a function.

They add and take factors like numbers, so the sweeps carry them; nothing else is asked of them.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np


class Formal:
    """A vector without components: one leaf for the linear map that it passes through."""

    __lineara_leaf__ = True
    __array_ufunc__ = None  # so that a NumPy number times a formal vector asks the vector
    shape: tuple[int, ...] = ()
    dtype = np.dtype(object)

    def numbers(self) -> Iterable[Any]:
        """The numbers that it holds, for who looks for a NaN."""
        return ()

    def __add__(self, other: Any) -> "Formal":
        raise NotImplementedError(type(self).__name__)

    def __mul__(self, factor: Any) -> "Formal":
        raise NotImplementedError(type(self).__name__)

    def __radd__(self, other: Any) -> "Formal":
        return self if type(other) in (int, float) and other == 0 else NotImplemented

    def __rmul__(self, factor: Any) -> "Formal":
        return self * factor
