"""Coo: single cells by flat position, the cotangent of lookups `x[i, j]` of scalars."""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lineara.cotangent.builder import Builder, How
from lineara.cotangent.scatter import (
    Array,
    Ints,
    as_shape,
    checked_indices,
    scatter_add,
    slabs,
    sum_duplicates,
)
from lineara.cotangent.sizes_as_text import show_count, show_part, show_shape


class Coo(Builder):
    """The array of `shape` that is 0 but for `values` added at the flat (C order) positions `flat`.

    >>> g = Coo([5, 0, 5], [1.0, 2.0, 3.0], (2, 3))
    >>> g, np.asarray(g)
    (Coo(2 of 2 x 3, 33 %), array([[2., 0., 0.],
           [0., 0., 4.]]))
    """

    __slots__ = ("_flat", "_values", "coalesced")
    tag = "coo"
    cellular = True
    coalesced: bool

    def __new__(
        cls, flat: ArrayLike, values: Any, shape: Sequence[int], coalesced: bool = False
    ) -> Any:
        """The builder; of values that a differentiation follows the array itself."""
        if not hasattr(type(values), "scattered"):
            return object.__new__(cls)
        shape = as_shape(shape)
        where = checked_indices(flat, prod(shape))
        return values.scattered(np.unravel_index(where, shape), shape)

    def __init__(
        self, flat: ArrayLike, values: ArrayLike, shape: Sequence[int], coalesced: bool = False
    ) -> None:
        shape = as_shape(shape)
        where = checked_indices(flat, prod(shape))
        what = slabs(values, (prod(shape),), 0, where.size)
        self._hold(where, what, shape, coalesced and bool((where[1:] > where[:-1]).all()))

    def _hold(self, flat: Ints, values: Array, shape: tuple[int, ...], coalesced: bool) -> "Coo":
        self._begin(shape, values.dtype)
        self._flat, self._values, self.coalesced = flat, values, coalesced
        return self

    @classmethod
    def _of(cls, flat: Ints, values: Array, shape: tuple[int, ...], coalesced: bool) -> "Coo":
        return object.__new__(cls)._hold(flat, values, shape, coalesced)

    def _inherit(self, term: Builder) -> None:
        self.coalesced = False

    def _collected(self) -> "Coo":
        """Itself, after its terms are concatenated in order."""
        if self._terms:
            leaves = self.addends()
            self._flat = np.concatenate([leaf._flat for leaf in leaves])
            self._values = np.concatenate([leaf._values for leaf in leaves])
            self._terms = ()
        return self

    @property
    def flat(self) -> Ints:
        """Flat positions; sorted and distinct once coalesced."""
        return self._collected()._flat

    @property
    def values(self) -> Array:
        """The values added at the positions `flat`."""
        return self._collected()._values

    def arrays(self) -> tuple[Array, ...]:
        """Positions and values."""
        return self.flat, self.values

    def args(self) -> tuple[Any, ...]:
        """The arguments of the constructor."""
        return self.flat, self.values, self.shape, self.coalesced

    def map(self, f: Callable[[Array], Array]) -> Builder:
        """f applied to the values, after coalescing a sum."""
        whole = self.coalesce() if self._terms else self
        return Coo._of(whole.flat, f(whole.values), self.shape, whole.coalesced)

    def pointwise(self, ufunc: np.ufunc, *others: Any) -> Any:
        """In the touched cells."""
        whole = self.coalesce()
        there = np.unravel_index(whole.flat, self.shape)
        read = (np.broadcast_to(x, self.shape)[there] if np.ndim(x) else x for x in others)
        return Coo._of(whole.flat, ufunc(whole.values, *read), self.shape, True)

    def add_into(self, out: Array, ufunc: np.ufunc = np.add) -> None:
        """In the touched cells."""
        whole = self.coalesce()
        if out.flags.c_contiguous:
            out, there = out.reshape(-1), whole.flat
        else:
            there = np.unravel_index(whole.flat, self.shape)
        out[there] = ufunc(out[there], whole.values)

    def filled(self, dtype: np.dtype[Any]) -> Array:
        """By a scatter into zeros."""
        return scatter_add((self.size,), self.flat, self.values, 0, dtype).reshape(self.shape)

    def coalesce(self, sum: How = "fast") -> "Coo":
        """The same with sorted, distinct positions; once, then remembered."""
        return super().coalesce(sum)  # pyright: ignore[reportReturnType]  # summed gives a Coo

    def summed(self, how: How) -> Builder:
        """One value for each touched cell."""
        if self.coalesced:
            return self
        exact = how == "exact"
        flat, values = sum_duplicates(self.flat, self.values, 0, self.size, exact)
        return Coo._of(flat, values, self.shape, True)

    def contributions(self) -> Builder:
        """Itself."""
        return self

    def norm(self) -> float:
        """The Euclidean norm."""
        return float(np.linalg.norm(self.coalesce().values))

    def cells(self) -> tuple[Ints, Array]:
        """The touched cells that are not 0."""
        whole = self.coalesce()
        live = whole.values != 0
        return whole.flat[live], whole.values[live]

    def entries(self) -> tuple[Ints, Array]:
        """Coordinates of the touched cells."""
        whole = self.coalesce()
        return np.stack(np.unravel_index(whole.flat, self.shape), axis=1), whole.values

    @property
    def T(self) -> "Coo":
        """The same cells in the transposed array."""
        there = np.unravel_index(self.flat, self.shape)
        flat = np.ravel_multi_index(there[::-1], self.shape[::-1])
        return Coo._of(np.asarray(flat), self.values, self.shape[::-1], False)

    def __repr__(self) -> str:
        k = np.unique(self.flat).size
        return f"Coo({show_count(k)} of {show_shape(self.shape)}, {show_part(k, self.size)})"
