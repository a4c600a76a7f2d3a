"""SciPy's sparse matrices times vectors and matrices, and their linear systems.

A matrix is given by coordinates, A[rows[i], cols[i]] += data[i].  The primitives are linear in
`data` too; rows and cols are constants.
"""

import sys
from typing import Any

import numpy as np

from lineara.errors import ShapeError
from lineara.facts.hints import Shaped, Value
from lineara.facts.primitive import (
    Box,
    General,
    Linear,
    Multilinear,
    conjugate,
    implements,
    op,
    primitive,
    reals,
)
from lineara.facts.types import ArrayType, is_complex, type_of
from lineara.ops.shape import as_array, matrix_transpose, np_reshape


def _matrix(data: Shaped, rows: Shaped, cols: Shaped, shape: tuple[int, int]) -> Any:
    from scipy.sparse import coo_array

    places = (np.real(v).astype(np.intp, copy=False) for v in (rows, cols))
    return coo_array((data, tuple(places)), shape=shape)


def _entries(name: str, data: Shaped, rows: Shaped, cols: Shaped) -> ArrayType:
    """The type of `data`, after checking that data, rows and cols have one length."""
    s, *places = map(type_of, (data, rows, cols))
    if s.ndim != 1 or any([p.shape != s.shape or p.dtype.kind not in "iu" for p in places]):
        raise ShapeError(
            f"{name}: {s} are no entries with rows {places[0]} and columns {places[1]}"
        )
    return s


@primitive
class sparse_product(Multilinear):
    """A X for `size` rows :  (e), (e), (e), (n,k) -> (size,k); data, rows, cols, X."""

    host = True

    def result(self, data, rows, cols, x, *, size):
        s, t = _entries(self.name, data, rows, cols), type_of(x)
        if t.ndim != 2 or type(size) is not int or size < 0:
            raise ShapeError(f"{self.name}: takes a matrix and a number of rows, not {t}, {size!r}")
        return ArrayType((size, *t.shape[1:]), np.result_type(s.dtype, t.dtype))

    def evaluate(self, xp, /, data, rows, cols, x, *, size):
        return _matrix(data, rows, cols, (size, x.shape[0])) @ x

    def arithmetic(self, y, args, params):
        data, *_, x = args
        return 2 * data.size * y.shape[1] * (1 + is_complex(y)) + reals(x)

    def transpose(self, place, y_bar, /, data, rows, cols, x, *, size):
        if place == 3:
            return sparse_product(data, cols, rows, y_bar, size=x.shape[0])
        return products_at(y_bar, x, rows, cols)

    def batch(self, args, batched, params):
        if batched[:3] != (False, False, False):
            return super().batch(args, batched, params)
        *matrix, x = args
        many, n, k = x.shape
        wide = op("reshape")(op("permute_dims")(x, axes=(1, 0, 2)), shape=(n, many * k))
        y = sparse_product(*matrix, wide, **params)
        y = op("reshape")(y, shape=(params["size"], many, k))
        return op("permute_dims")(y, axes=(1, 0, 2))


@primitive
class products_at(Multilinear):
    """Selected elements of Y X^T, at [rows[i], cols[i]] :  (m,k), (n,k), (e), (e) -> (e)."""

    host = True

    def result(self, y, x, rows, cols):
        s, t, r = type_of(y), type_of(x), _entries(self.name, rows, rows, cols)
        if s.ndim != 2 or t.ndim != 2 or s.shape[1] != t.shape[1]:
            raise ShapeError(f"{self.name}: takes two matrices of equal rows, not {s} and {t}")
        return ArrayType(r.shape, np.result_type(s.dtype, t.dtype))

    def evaluate(self, xp, /, y, x, rows, cols):
        return xp.einsum("ij,ij->i", y[rows], x[cols])

    def arithmetic(self, y, args, params):
        left, right, *_ = args
        return (2 * left.shape[1] - 1) * reals(y) + reals(left) + reals(right)

    def transpose(self, place, e_bar, /, y, x, rows, cols):
        if place == 0:
            return sparse_product(e_bar, rows, cols, x, size=y.shape[0])
        return sparse_product(e_bar, cols, rows, y, size=x.shape[0])


class _SparseSolve(General):
    """X with A X = B, or A^H X = B :  (e), (e), (e), (n,k) -> (n,k); data, rows, cols, B."""

    host = True
    linear = (3,)

    def result(self, data, rows, cols, b, *, adjoint=False):
        s, t = _entries(self.name, data, rows, cols), type_of(b)
        if t.ndim != 2:
            raise ShapeError(f"{self.name}: takes a matrix of right sides, not {t}")
        return ArrayType(t.shape, np.result_type(s.dtype, t.dtype))

    def evaluate(self, xp, /, data, rows, cols, b, *, adjoint=False):
        from scipy.sparse.linalg import splu

        dtype = np.result_type(data.dtype, b.dtype)
        n = b.shape[0]
        a = _matrix(data.astype(dtype, copy=False), rows, cols, (n, n)).tocsc()
        return splu(a).solve(b.astype(dtype, copy=False), "H" if adjoint else "N")

    def arithmetic(self, y, args, params):
        return 10 * args[0].size + 10 * reals(y)

    def jvp(self, y, primals, tangents, /, *, adjoint=False):
        (data, rows, cols, b), (data_dot, _, _, right) = primals, tangents
        if data_dot is not None:
            weights, at = data_dot, (rows, cols)
            if adjoint:
                weights, at = conjugate(data_dot), (cols, rows)
            moved = -sparse_product(weights, *at, y, size=type_of(b).shape[0])
            right = moved if right is None else right + moved
        return linear_sparse_solve(data, rows, cols, right, adjoint=adjoint)


sparse_solve: _SparseSolve = _SparseSolve("sparse_solve")


@primitive
class linear_sparse_solve(Linear):
    """The same, linear in B."""

    host = True
    linear = (3,)

    def result(self, data, rows, cols, b, *, adjoint=False):
        return sparse_solve.result(data, rows, cols, b)

    def evaluate(self, xp, /, data, rows, cols, b, *, adjoint=False):
        return sparse_solve.evaluate(xp, data, rows, cols, b, adjoint=adjoint)

    def arithmetic(self, y, args, params):
        return sparse_solve.arithmetic(y, args, params)

    def transpose(self, y_bar, /, data, rows, cols, b, *, adjoint=False):
        return (linear_sparse_solve(data, rows, cols, y_bar, adjoint=not adjoint),)

    def linearize(self, y, args, active, params, recur):
        kind = sparse_solve if 0 in active else super()
        return kind.linearize(y, args, active, params, recur)


# --- what users write ---------------------------------------------------------------------------


def is_sparse(value: Shaped) -> bool:
    """Whether a value is a matrix or an array of scipy.sparse; does not import scipy.sparse."""
    return hasattr(value, "tocoo") and not isinstance(value, Box)


def is_matrix(value: Value) -> bool:
    """Whether the value is of a class for which * is the matrix product."""
    sparse: Any = sys.modules.get("scipy.sparse")
    return sparse is not None and isinstance(value, sparse.spmatrix)


def entries(a: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(data, rows, cols) of a sparse matrix."""
    coo = a.tocoo()
    return coo.data, coo.row.astype(np.intp), coo.col.astype(np.intp)


def sparse_matmul(left: Any, right: Any) -> Any:
    """left @ right, where one of the two is sparse."""
    if is_sparse(left):
        return _times(left, right)
    turned = _times(right.T, left if type_of(left).ndim < 2 else matrix_transpose(left))
    return turned if type_of(turned).ndim < 2 else matrix_transpose(turned)


def _times(a: Any, x: Value) -> Any:
    t = type_of(x)
    if len(a.shape) != 2 or t.ndim not in (1, 2) or t.shape[0] != a.shape[1]:
        raise ShapeError(
            f"matmul: a sparse matrix of shape {a.shape} @ {t} does not compose; a vector or a "
            "matrix with as many rows as the sparse one has columns does"
        )
    columns = x if t.ndim == 2 else np_reshape(x, (t.shape[0], 1))
    y = sparse_product(*entries(a), columns, size=a.shape[0])
    return y if t.ndim == 2 else np_reshape(y, (a.shape[0],))


@implements("scipy.sparse.linalg.spsolve")
def spsolve(A, b, permc_spec=None, use_umfpack=True):  # SciPy's name
    """The solution of a sparse system, for a vector or columns."""
    b = as_array(b)
    t = type_of(b)
    square = is_sparse(A) and A.shape[0] == A.shape[1]
    if not square or t.ndim not in (1, 2) or t.shape[0] != A.shape[0]:
        raise ShapeError(
            f"spsolve: takes a square sparse matrix, and a right side of as many rows, not {t}"
        )
    columns = b if t.ndim == 2 else np_reshape(b, (t.shape[0], 1))
    x = sparse_solve(*entries(A), columns)
    return np_reshape(x, (t.shape[0],)) if t.ndim == 1 or t.shape[1] == 1 else x
