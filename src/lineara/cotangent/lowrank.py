"""LowRank: a sum of outer products, kept as two factors; the cotangent of W in W @ x."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from lineara.cotangent.builder import Builder, How
from lineara.cotangent.coo import Coo
from lineara.cotangent.scatter import Array
from lineara.cotangent.sizes_as_text import show_shape
from lineara.errors import ShapeError

_BLOCK = 1 << 17  # elements of the product that are computed at a time


class LowRank(Builder):
    """The matrix U @ V.T of shape (m, n), for U of shape (m, k) and V of shape (n, k).

    That is the sum of the outer products of the columns of U and V: element (i, j) is
    sum_l U[i, l] * V[j, l].  Nothing is conjugated, for complex numbers neither.  The gradient of
    `sum over t of w_t . (W @ x_t)` is LowRank with columns w_t and x_t.

    Raises ShapeError unless U and V are matrices with as many columns.

    >>> g = LowRank([[1.0], [2.0]], [[1.0], [10.0], [100.0]])
    >>> g, g @ np.ones(3)
    (LowRank(rank 1 of 2 x 3), array([111., 222.]))
    """

    __slots__ = ("_U", "_V")
    tag = "lowrank"

    def __init__(self, U: ArrayLike, V: ArrayLike) -> None:
        u, v = np.asarray(U), np.asarray(V)
        if u.ndim != 2 or v.ndim != 2 or u.shape[1] != v.shape[1]:
            raise ShapeError(
                f"LowRank: U of shape {u.shape} and V of shape {v.shape} give no U @ V.T; "
                "they must be (m, k) and (n, k)"
            )
        self._begin((u.shape[0], v.shape[0]), np.result_type(u.dtype, v.dtype))
        self._U, self._V = u, v

    def _collected(self) -> "LowRank":
        """Itself, after the columns of its terms are concatenated in order."""
        if self._terms:
            leaves = self.addends()
            self._U = np.concatenate([leaf._U for leaf in leaves], axis=1)
            self._V = np.concatenate([leaf._V for leaf in leaves], axis=1)
            self._terms = ()
        return self

    @property
    def U(self) -> Array:
        """The left factor, (m, k)."""
        return self._collected()._U

    @property
    def V(self) -> Array:
        """The right factor, (n, k)."""
        return self._collected()._V

    @property
    def rank(self) -> int:
        """The number k of outer products, an upper bound of the rank."""
        return self.U.shape[1]

    def arrays(self) -> tuple[Array, ...]:
        """U and V."""
        return self.U, self.V

    def args(self) -> tuple[Any, ...]:
        """U and V."""
        return self.U, self.V

    def map(self, f: Callable[[Array], Array]) -> Builder:
        """f applied to U, after compressing a sum so that a running average does not grow."""
        u, v = (self.coalesce() if self._terms else self).args()
        return LowRank(f(u), v)

    def astype(self, dtype: DTypeLike) -> Builder:
        """Both factors in another dtype."""
        return LowRank(self.U.astype(dtype), self.V.astype(dtype))

    def pointwise(self, ufunc: np.ufunc, *others: Any) -> Any:
        """The conjugate of both factors; NotImplemented for other functions."""
        if ufunc is np.conjugate:
            return LowRank(self.U.conj(), self.V.conj())
        return NotImplemented

    def matmul(self, other: object, left: bool) -> Any:
        """`U @ (V.T @ x)`, or `(x @ U) @ V.T`, O(k(m + n)) a vector; LowRank for two LowRanks."""
        if isinstance(other, LowRank):
            return other.matmul(self, False) if left else self._compose(other)
        if isinstance(other, Builder):
            return NotImplemented
        x = np.asarray(other)
        _inner(self.T if left else self, x.shape[-1] if left else x.shape[-2:][0])
        return (x @ self.U) @ self.V.T if left else self.U @ (self.V.T @ x)

    def _compose(self, other: "LowRank") -> "LowRank":
        _inner(self, other.shape[0])
        return LowRank(self.U, other.V @ (other.U.T @ self.V))

    def add_into(self, out: Array, ufunc: np.ufunc = np.add) -> None:
        """Add a block of rows of the product at a time."""
        u, vt = self.U, self.V.T
        step = max(1, _BLOCK // max(1, self.shape[1]))
        for i in range(0, self.shape[0], step):
            block = out[i : i + step]
            block[...] = ufunc(block, u[i : i + step] @ vt)

    def filled(self, dtype: np.dtype[Any]) -> Array:
        """The matrix product U @ V.T as an array."""
        return np.ascontiguousarray(self.U @ self.V.T, dtype)

    def coalesce(self, sum: How = "fast") -> Builder:
        """An equal LowRank with k <= min(m, n), multiplied out if necessary; for 'exact' a Coo."""
        return super().coalesce(sum)

    def summed(self, how: How) -> Builder:
        """An equal LowRank with k <= min(m, n); for 'exact' a Coo."""
        if how == "exact":
            return self.contributions().coalesce("exact")
        m, n = self.shape
        if self.rank <= min(m, n):
            return self
        product, one = self.U @ self.V.T, np.eye(min(m, n), dtype=self.dtype)
        return LowRank(product, one) if n <= m else LowRank(one, product.T)

    def contributions(self) -> Builder:
        """Each outer product as cells."""
        products = self.U.T[:, :, None] * self.V.T[:, None, :]
        return Coo(np.tile(np.arange(self.size), self.rank), products, self.shape)

    def norm(self) -> float:
        """The Frobenius norm, from the triangular factors of U and V, without cancellation."""
        wide = np.result_type(self.dtype, np.float32)
        r, s = (_triangle(f.astype(wide, copy=False)) for f in (self.U, self.V))
        return float(np.linalg.norm(r @ s.T))

    @property
    def T(self) -> "LowRank":
        """The transpose V @ U.T."""
        return LowRank(self.V, self.U)

    def to_scipy(self) -> Any:
        """A `scipy.sparse.linalg.LinearOperator` that multiplies by the factors."""
        from scipy.sparse.linalg import aslinearoperator  # late: SciPy is slow to import

        return aslinearoperator(self.U) @ aslinearoperator(self.V.T)

    def __repr__(self) -> str:
        return f"LowRank(rank {self.rank} of {show_shape(self.shape)})"


def _triangle(factor: Array) -> Any:
    return np.linalg.qr(factor, "r")


def _inner(left: Builder, n: int) -> None:
    if left.shape[1] != n:
        raise ShapeError(
            f"matmul: a LowRank of shape {left.shape} and {n} rows do not compose; "
            f"{left.shape[1]} rows are needed"
        )
