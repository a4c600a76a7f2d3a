"""Rows: slices along one axis, the cotangent of an embedding, a gather or a slice."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lineara.cotangent.builder import Builder, How
from lineara.cotangent.coo import Coo
from lineara.cotangent.scatter import (
    Array,
    Ints,
    as_shape,
    at,
    checked_axis,
    checked_indices,
    scatter_add,
    slabs,
    sum_duplicates,
)
from lineara.cotangent.sizes_as_text import show_count, show_part, show_shape


class Rows(Builder):
    """The array of `shape` that is 0 but for `values` added at `indices` along `axis`.

    `values` has the shape of `np.take(x, indices, axis)`.  An index may occur more than once;
    `coalesce` sums, and then the indices are sorted and distinct.

    >>> g = Rows([2, 0, 2], [[1.0, 1.0], [5.0, 5.0], [10.0, 0.0]], (1000, 2))
    >>> g, g.coalesce().indices, g.coalesce().values
    (Rows(2 of 1 000 x 2, 0.2 %), array([0, 2]), array([[ 5.,  5.],
           [11.,  1.]]))
    >>> W = np.ones((1000, 2))
    >>> W -= 0.1 * g
    >>> W[:3]
    array([[ 0.5,  0.5],
           [ 1. ,  1. ],
           [-0.1,  0.9]])
    """

    __slots__ = ("_indices", "_values", "axis", "coalesced")
    tag = "rows"
    cellular = True
    axis: int
    coalesced: bool

    def __new__(
        cls,
        indices: ArrayLike | range,
        values: Any,
        shape: Sequence[int],
        axis: int = 0,
        coalesced: bool = False,
    ) -> Any:
        """The builder; of values that a differentiation follows the array itself."""
        if not hasattr(type(values), "scattered"):
            return object.__new__(cls)
        shape = as_shape(shape)
        axis = checked_axis(axis, shape)
        where = checked_indices(indices, shape[axis])
        return values.scattered((*[slice(None)] * axis, where), shape)

    def __init__(
        self,
        indices: ArrayLike | range,
        values: ArrayLike,
        shape: Sequence[int],
        axis: int = 0,
        coalesced: bool = False,
    ) -> None:
        shape = as_shape(shape)
        axis = checked_axis(axis, shape)
        where = checked_indices(indices, shape[axis])
        what = slabs(values, shape, axis, where.size)
        self._hold(where, what, shape, axis, coalesced and bool((where[1:] > where[:-1]).all()))

    def _hold(
        self, indices: Ints, values: Array, shape: tuple[int, ...], axis: int, coalesced: bool
    ) -> "Rows":
        self._begin(shape, values.dtype)
        self._indices, self._values, self.axis, self.coalesced = indices, values, axis, coalesced
        return self

    def _with(self, indices: Ints, values: Array, coalesced: bool) -> "Rows":
        return object.__new__(Rows)._hold(indices, values, self.shape, self.axis, coalesced)

    def _inherit(self, term: Any) -> None:
        self.axis, self.coalesced = term.axis, False

    def kind(self) -> Any:
        """The class and the axis: rows along the same axis are merged."""
        return Rows, self.axis

    def _collected(self) -> "Rows":
        """Itself, after its terms are concatenated in order."""
        if self._terms:
            leaves = self.addends()
            self._indices = np.concatenate([leaf._indices for leaf in leaves])
            self._values = np.concatenate([leaf._values for leaf in leaves], axis=self.axis)
            self._terms = ()
        return self

    @property
    def indices(self) -> Ints:
        """Positions along the axis; sorted and distinct once coalesced."""
        return self._collected()._indices

    @property
    def values(self) -> Array:
        """The slices added at `indices`."""
        return self._collected()._values

    def arrays(self) -> tuple[Array, ...]:
        """Indices and values."""
        return self.indices, self.values

    def args(self) -> tuple[Any, ...]:
        """The arguments of the constructor."""
        return self.indices, self.values, self.shape, self.axis, self.coalesced

    def map(self, f: Callable[[Array], Array]) -> Builder:
        """f applied to the values, after coalescing a sum."""
        whole = self.coalesce() if self._terms else self
        return self._with(whole.indices, f(whole.values), whole.coalesced)

    def pointwise(self, ufunc: np.ufunc, *others: Any) -> Any:
        """In the touched rows."""
        whole = self.coalesce()
        there = at(whole.indices, self.axis)
        read = (np.broadcast_to(x, self.shape)[there] if np.ndim(x) else x for x in others)
        return self._with(whole.indices, ufunc(whole.values, *read), True)

    def add_into(self, out: Array, ufunc: np.ufunc = np.add) -> None:
        """In the touched rows."""
        whole = self.coalesce()
        there = at(whole.indices, self.axis)
        out[there] = ufunc(out[there], whole.values)

    def filled(self, dtype: np.dtype[Any]) -> Array:
        """A scatter into zeros, as an array."""
        return scatter_add(self.shape, self.indices, self.values, self.axis, dtype)

    def coalesce(self, sum: How = "fast") -> "Rows":
        """Equal Rows with sorted, distinct indices; computed once, then kept."""
        return super().coalesce(sum)  # pyright: ignore[reportReturnType]  # summed gives Rows

    def summed(self, how: How) -> Builder:
        """Rows with one slice for each distinct index."""
        if self.coalesced:
            return self
        n, exact = self.shape[self.axis], how == "exact"
        indices, values = sum_duplicates(self.indices, self.values, self.axis, n, exact)
        return self._with(indices, values, True)

    def contributions(self) -> Builder:
        """Every cell of every slice, as a Coo."""
        stride = np.prod(self.shape[self.axis + 1 :], dtype=np.int64)
        before = np.arange(np.prod(self.shape[: self.axis], dtype=np.int64))
        start = before[:, None] * self.shape[self.axis] + self.indices
        flat = start[:, :, None] * stride + np.arange(stride)
        return Coo(flat, self.values, self.shape)

    def norm(self) -> float:
        """The Euclidean norm."""
        return float(np.linalg.norm(self.coalesce().values.ravel()))

    def cells(self) -> tuple[Ints, Array]:
        """The touched cells that are not 0."""
        return self.coalesce().contributions().cells()

    def entries(self) -> tuple[Ints, Array]:
        """For axis 0 the row numbers as coordinates (m, 1); else the coordinates of cells."""
        whole = self.coalesce()
        if self.axis == 0:
            return whole.indices[:, None], whole.values
        return whole.contributions().entries()

    @property
    def T(self) -> "Rows":
        """The transpose: Rows along the mirrored axis; of a matrix's rows, its columns."""
        values, axis = self.values.transpose(), self.ndim - 1 - self.axis
        new = object.__new__(Rows)
        return new._hold(self.indices, values, self.shape[::-1], axis, self.coalesced)

    def __repr__(self) -> str:
        k, n = np.unique(self.indices).size, self.shape[self.axis]
        along = f" along axis {self.axis}" if self.axis else ""
        return f"Rows({show_count(k)} of {show_shape(self.shape)}{along}, {show_part(k, n)})"
