"""Dense: an array as a builder, so that sums can mix it with sparse ones."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lineara.cotangent.builder import Builder, How, total
from lineara.cotangent.coo import Coo
from lineara.cotangent.scatter import Array
from lineara.cotangent.sizes_as_text import show_shape


class Dense(Builder):
    """An array, not copied.  Arrays that are added are stored until the sum is read.

    >>> Dense([1.0, 2.0]) + Coo([1], [10.0], (2,))
    Dense(2, float64) + Coo(1 of 2, 50 %)
    """

    __slots__ = ("_array",)
    tag = "dense"

    def __init__(self, array: ArrayLike) -> None:
        self._array = np.asarray(array)
        self._begin(self._array.shape, self._array.dtype)

    @property
    def array(self) -> Array:
        """The sum of the arrays, added in order."""
        return self.coalesce()._array

    def arrays(self) -> tuple[Array, ...]:
        """The terms, unsummed."""
        return tuple(leaf._array for leaf in self.addends())

    def args(self) -> tuple[Any, ...]:
        """The sum, as the one argument of the constructor."""
        return (self.array,)

    def __reduce__(self) -> tuple[Any, ...]:
        addends = self.addends()
        return (total, (addends,)) if len(addends) > 1 else super().__reduce__()

    def map(self, f: Callable[[Array], Array]) -> Builder:
        """f applied to the sum."""
        return Dense(f(self.array))

    def pointwise(self, ufunc: np.ufunc, *others: Any) -> Any:
        """`ufunc` applied to the sum."""
        return Dense(ufunc(self.array, *others))

    def matmul(self, other: Any, left: bool) -> Any:
        """The matrix product with the sum."""
        if isinstance(other, Builder):
            return NotImplemented
        return other @ self.array if left else self.array @ other

    def add_into(self, out: Array, ufunc: np.ufunc = np.add) -> None:
        """`out += sum`, in every element."""
        out[...] = ufunc(out, self.array)

    def filled(self, dtype: np.dtype[Any]) -> Array:
        """A copy of the sum in `dtype`."""
        return np.array(self.array, dtype, order="C", copy=True)

    def coalesce(self, sum: How = "fast") -> "Dense":
        """One array, the sum; computed once, then kept."""
        return super().coalesce(sum)  # pyright: ignore[reportReturnType]  # summed gives Dense

    def summed(self, how: How) -> Builder:
        """The sum as one Dense."""
        if not self._terms:
            return self
        if how == "exact":
            return Dense(self.contributions().coalesce("exact").finish())
        first, *rest = self.arrays()
        total = np.array(first, self.dtype)
        for array in rest:
            np.add(total, array, out=total)
        return Dense(total)

    def contributions(self) -> Builder:
        """Every element of every array, as cells."""
        arrays = self.arrays()
        flat = np.tile(np.arange(self.size), len(arrays))
        return Coo(flat, np.concatenate([a.ravel() for a in arrays]), self.shape)

    def dense(self, asked: str) -> Array:
        """The sum, without a warning, since it is dense already."""
        return self.array

    def norm(self) -> float:
        """The Euclidean norm."""
        return float(np.linalg.norm(self.array.ravel()))

    def entries(self) -> Any:
        """Coordinates of the elements that are not 0."""
        return Coo(*self.cells(), self.shape).entries()

    @property
    def T(self) -> "Dense":
        """The transpose of the sum."""
        return Dense(self.array.T)

    def __repr__(self) -> str:
        return f"Dense({show_shape(self.shape)}, {self.dtype})"
