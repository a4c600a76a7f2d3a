"""scipy.linalg: LU factors as differentiable values; the row exchanges are locally constant."""

from typing import Any

import numpy as np

from lineara.errors import NoRuleError, ShapeError
from lineara.facts.hints import Shaped, Value
from lineara.facts.primitive import Constant, General, conjugate, implements, op, primitive
from lineara.facts.types import ArrayType, type_of
from lineara.ops.contract import matmul
from lineara.ops.factorizations import linear_triangular, solve_right, triangle, triangular_solve
from lineara.ops.index import take
from lineara.ops.linalg import factoring, squares
from lineara.ops.scipy.linalg import in_columns
from lineara.ops.shape import as_array


def _factored(a: np.ndarray) -> Any:
    from scipy.linalg import lu_factor

    return lu_factor(a, check_finite=False)


def _one(name: str, a: Any) -> ArrayType:
    """The type of a, checked to be one square matrix."""
    t = squares(name, a)
    if t.ndim != 2:
        raise ShapeError(f"{name}: {t} are several matrices; it takes one")
    return t


@primitive
class lu_pivots(Constant):
    """The pivots of P A = L U: row i was exchanged with row pivots[i] :  (n,n) -> (n)."""

    host = True

    def result(self, a):
        return ArrayType(_one(self.name, a).shape[:1], np.dtype(np.int32))

    def evaluate(self, xp, /, a):
        return _factored(a)[1]


@primitive
class row_order(Constant):
    """The permutation of the rows that a sequence of exchanges gives :  (n) -> (n)."""

    host = True

    def result(self, pivots):
        t = type_of(pivots)
        if t.ndim != 1 or t.dtype.kind not in "iu":
            raise ShapeError(f"{self.name}: {t} are no exchanges of rows")
        return ArrayType(t.shape, np.dtype(np.intp))

    def evaluate(self, xp, /, pivots):
        order = np.arange(len(pivots))
        for i, j in enumerate(pivots):
            order[[i, j]] = order[[j, i]]
        return order


@primitive
class lu_packed(General):
    """L below the diagonal, U on and above it, of P A = L U :  (n,n) -> (n,n).

    F = L^-1 P A_dot U^-1 = L^-1 L_dot + U_dot U^-1, the first term strictly lower triangular.
    """

    host = True

    def result(self, a):
        return _one(self.name, a)

    def evaluate(self, xp, /, a):
        return _factored(a)[0]

    def arithmetic(self, y, args, params):
        return factoring(args[0], ())

    def jvp(self, y, primals, tangents, /):
        low, up = triangles(y)
        a_dot = take(tangents[0], row_order(lu_pivots(primals[0])), 0)
        f = solve_right(linear_triangular(low, a_dot, lower=True), up, lower=False)
        below = triangle(type_of(y).shape[-1], -1)
        return matmul(low, op("keep")(f, below)) + matmul(op("keep")(f, ~below), up)


def triangles(y: Shaped) -> tuple[Any, Any]:
    """(L, U) from both in one array."""
    n = type_of(y).shape[-1]
    below = triangle(n, -1)
    return op("keep")(y, below) + np.eye(n, dtype=type_of(y).dtype), op("keep")(y, ~below)


def _one_square(name: str, a: Shaped) -> Any:
    a = as_array(a)
    shape = type_of(a).shape
    if len(shape) != 2 or shape[0] != shape[1]:
        raise NoRuleError(
            f"scipy.linalg.{name}: of one square matrix it has a rule, not of {shape}"
        )
    return a if type_of(a).dtype.kind in "fc" else op("astype")(a, dtype=np.dtype(float))


@implements("scipy.linalg.lu_factor")
def lu_factor(a, overwrite_a=False, check_finite=True):
    """(L and U in one array, pivots)."""
    a = _one_square("lu_factor", a)
    return lu_packed(a), lu_pivots(a)


@implements("scipy.linalg.lu_solve", sequence=True)
def lu_solve(lu_and_piv, b, trans=0, overwrite_b=False, check_finite=True):
    """The solution of A x = b, A^T x = b or A^H x = b by the factors of A."""
    lu, pivots = lu_and_piv
    lu = _one_square("lu_solve", lu)
    low, up = triangles(lu)
    order = row_order(pivots)

    def solved(v: Value) -> Any:
        if trans == 0:
            v = take(v, order, 0)
            v = triangular_solve(low, v, lower=True, adjoint=False)
            return triangular_solve(up, v, lower=False, adjoint=False)
        of = conjugate if trans == 1 else lambda m: m  # A^T is the adjoint of the conjugate
        v = triangular_solve(of(up), v, lower=False, adjoint=True)
        v = triangular_solve(of(low), v, lower=True, adjoint=True)
        return take(v, op("argsort")(order, axis=0), 0)

    return in_columns("lu_solve", solved, type_of(lu).shape[0], b)


@implements("scipy.linalg.lu")
def lu(a, permute_l=False, overwrite_a=False, check_finite=True, p_indices=False):
    """(P, L, U) with A = P L U, or (P L, U)."""
    a = _one_square("lu", a)
    low, up = triangles(lu_packed(a))
    order = row_order(lu_pivots(a))
    if permute_l:
        return take(low, op("argsort")(order, axis=0), 0), up
    if p_indices:
        return op("argsort")(order, axis=0), low, up
    return take(np.eye(type_of(a).shape[0]), order, 1), low, up
