"""scipy.linalg: bases of range and null space, angles between subspaces, rotations.

The tangent of a basis has no rotation within its space; a function that depends on the choice of
the basis is refused by `gauge`.
"""

from typing import Any

import numpy as np

from lineara.errors import NoRuleError, ShapeError
from lineara.facts.hints import Shaped
from lineara.facts.primitive import General, implements, op, primitive, real_part
from lineara.facts.types import ArrayType, type_of
from lineara.ops.contract import matmul
from lineara.ops.eigen import has_values
from lineara.ops.elementwise import stop_gradient
from lineara.ops.factorizations import gauge
from lineara.ops.linalg import adjoint, linear_solve
from lineara.ops.scipy.matrix_functions import linear_sylvester
from lineara.ops.shape import as_array
from lineara.ops.singular import cutoff, np_svd, np_svdvals, pinv


def _no_rotation(basis: Shaped, a_dot: Shaped) -> Any:
    """The tangent's part within the basis' space: zero, with `gauge`'s check of cotangents."""
    k = type_of(basis).shape[-1]
    return matmul(basis, gauge(a_dot, shape=(k, k), unitary=True))


def _matrix(name: str, a: ArrayType, rank: int, rcond: float) -> tuple[int, ...]:
    """The shape of a matrix that may have that rank."""
    t = type_of(a)
    cutoff(rcond)
    if type(rank) is not int:
        raise TypeError(f"{name}: rank is a whole number")
    if t.ndim != 2 or not 0 <= rank <= min(t.shape):
        raise ShapeError(f"{name}: {t} is no matrix of rank {rank}")
    return t.shape


@primitive
class range_basis(General):
    """Orthonormal columns that span the range of A, for a given rank :  (m,n) -> (m,rank)."""

    host = True

    def result(self, a, *, rank, rcond):
        m, _ = _matrix(self.name, a, rank, rcond)
        return ArrayType((m, rank), type_of(a).dtype)

    def evaluate(self, xp, /, a, *, rank, rcond):
        from scipy.linalg import svd

        return np.ascontiguousarray(svd(a, full_matrices=False)[0][:, :rank])

    def arithmetic(self, y, args, params):
        return 30 * max(args[0].shape) * args[0].size

    def jvp(self, y, primals, tangents, /, *, rank, rcond):
        a_dot = tangents[0]
        moved = matmul(a_dot, matmul(pinv(primals[0], rcond=rcond), y))
        return moved - matmul(y, matmul(adjoint(y), moved)) + _no_rotation(y, a_dot)


@primitive
class null_basis(General):
    """Orthonormal columns that span the null space, for a given rank :  (m,n) -> (n,n-rank)."""

    host = True

    def result(self, a, *, rank, rcond):
        _, n = _matrix(self.name, a, rank, rcond)
        return ArrayType((n, n - rank), type_of(a).dtype)

    def evaluate(self, xp, /, a, *, rank, rcond):
        from scipy.linalg import svd

        return np.ascontiguousarray(np.conj(svd(a, full_matrices=True)[2][rank:].T))

    def arithmetic(self, y, args, params):
        return 30 * max(args[0].shape) * args[0].size

    def jvp(self, y, primals, tangents, /, *, rank, rcond):
        a_dot = tangents[0]
        return _no_rotation(y, a_dot) - matmul(pinv(primals[0], rcond=rcond), matmul(a_dot, y))


def _rank(a: Shaped, rcond: float | None) -> dict[str, Any]:
    """The parameters `rank`, the number of singular values above the cutoff, and `rcond`."""
    t = type_of(a)
    rcond = float(np.finfo(t.dtype).eps) * max(t.shape) if rcond is None else float(rcond)
    s = np_svdvals(a)
    return {"rank": int(np.sum(s > rcond * np.max(s))), "rcond": rcond}


@implements("scipy.linalg.orth")
def orth(A, rcond=None):  # SciPy's name
    """An orthonormal basis of the range of A."""
    return range_basis(as_array(A), **_rank(A, rcond))


@implements("scipy.linalg.null_space")
def null_space(A, rcond=None, *, overwrite_a=False, check_finite=True, lapack_driver="gesdd"):
    """An orthonormal basis of the null space of A."""
    return null_basis(as_array(A), **_rank(A, rcond))


@implements("scipy.linalg.subspace_angles")
def subspace_angles(A, B):  # SciPy's names
    """The angles between two spaces, the largest first: by sines where they are small."""
    qa, qb = orth(as_array(A)), orth(as_array(B))
    between = matmul(adjoint(qa), qb)
    cosines = np_svdvals(between)
    if type_of(qa).shape[1] < type_of(qb).shape[1]:
        rest = qa - matmul(qb, adjoint(between))
    else:
        rest = qb - matmul(qa, between)
    small = cosines**2 >= 0.5
    sines = np.where(small, np.clip(np_svdvals(rest)[::-1], 0.0, 1.0), 0.5)[::-1]
    wide = np.clip(np.where(small, 0.5, cosines)[::-1], -1.0, 1.0)
    return np.where(small[::-1], np.arcsin(sines), np.arccos(wide))


# --- rotations -----------------------------------------------------------------------------------


@primitive
class unitary_factor(General):
    """U of A = U P with a Hermitian P :  (m,n) -> (m,n), m >= n  [Higham 2008, ch. 8].

    U^H U_dot = X is anti-Hermitian, and P X + X P = U^H A_dot - A_dot^H U: smooth also where
    singular values are equal.
    """

    def result(self, a):
        t = type_of(a)
        if t.ndim != 2 or t.shape[0] < t.shape[1]:
            raise ShapeError(f"{self.name}: {t} is no matrix with at least as many rows as columns")
        return t

    def evaluate(self, xp, /, a):
        u, _, vh = xp.linalg.svd(a, full_matrices=False)
        return u @ vh

    def arithmetic(self, y, args, params):
        return 30 * max(args[0].shape[-2:]) * args[0].size

    def jvp(self, y, primals, tangents, /):
        (a,), (a_dot,), turned = primals, tangents, adjoint(y)
        p = matmul(turned, a)
        p = (p + adjoint(p)) * 0.5
        w = matmul(turned, a_dot)
        x = linear_sylvester(p, p, w - adjoint(w))
        m, n = type_of(a).shape[-2:]
        if m == n:
            return matmul(y, x)
        beyond = adjoint(linear_solve(p, adjoint(a_dot - matmul(y, w))))
        return matmul(y, x) + beyond


def _refuse_singular(a: Shaped) -> None:
    """Raise an error if a singular value is zero: then U is not unique."""
    s = np_svdvals(stop_gradient(a))
    least = np.finfo(type_of(a).dtype).eps * max(type_of(a).shape)
    singular = s[-1] <= least * s[0]
    if has_values(singular) and singular:
        raise NoRuleError(
            "polar: of a singular matrix the unitary factor is not determined, and has no "
            "derivative; scipy.linalg.sqrtm(a.conj().T @ a + small * np.eye(n)) is the other one"
        )


@implements("scipy.linalg.polar")
def polar(a, side="right"):
    """The unitary U and the Hermitian P with A = U P, or A = P U."""
    if side not in ("left", "right"):
        raise ValueError("`side` must be either 'right' or 'left'")
    a = as_array(a)
    a = a if type_of(a).dtype.kind in "fc" else op("astype")(a, dtype=np.dtype(float))
    m, n = type_of(a).shape[-2:]
    if type_of(a).ndim > 2:
        left, _, right = np_svd(a, full_matrices=False)
        u = matmul(left, right)
    else:
        _refuse_singular(a)
        u = unitary_factor(a) if m >= n else adjoint(unitary_factor(adjoint(a)))
    p = matmul(adjoint(u), a) if side == "right" else matmul(a, adjoint(u))
    return u, (p + adjoint(p)) * 0.5


@implements("scipy.linalg.orthogonal_procrustes")
def orthogonal_procrustes(A, B, check_finite=True):  # SciPy's names
    """The rotation that brings A nearest to B, and the sum of the singular values."""
    turned, stretch = polar(matmul(adjoint(as_array(A)), as_array(B)))
    return turned, real_part(np.trace(stretch))
