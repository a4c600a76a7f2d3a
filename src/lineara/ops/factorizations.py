"""Cholesky and QR factorisations, triangular systems, and the gauge of a factorisation.

NumPy reads one triangle of a Hermitian matrix, and so does the derivative: it is that of the
function that NumPy computes. A matrix that is symmetric by construction has the same gradient
under every convention.
"""

from typing import Any

import numpy as np

from lineara.errors import NoRuleError
from lineara.facts.hints import Shaped, Value
from lineara.facts.primitive import (
    General,
    Linear,
    aligned,
    conjugate,
    implements,
    op,
    primitive,
    reals,
    unbroadcast,
)
from lineara.facts.types import ArrayType, is_complex, type_of
from lineara.ops import lapack
from lineara.ops.contract import matmul, swap
from lineara.ops.linalg import adjoint, square, squares
from lineara.ops.shape import as_array


def triangle(n: int, k: int = 0) -> np.ndarray:
    """A mask of the lower triangle of a square matrix, up to diagonal k :  (n,n) of bool."""
    return np.tri(n, k=k, dtype=bool)


def hermitian(a: Shaped, lower: bool = True) -> Any:
    """The Hermitian matrix with the lower (or upper) triangle of a."""
    at = triangle(type_of(a).shape[-1], -1)
    half = op("keep")(a, at if lower else at.T)
    return half + adjoint(half) + _diagonal(a)


@primitive
class gauge(Linear):
    """Zeros of `shape`, for any x: the directions in which a factorisation is not unique.

    With `check` the transpose raises an error for a cotangent along these directions, since what
    depends on them has no derivative. With `unitary` they are the anti-Hermitian matrices, else
    those with an imaginary diagonal; square matrices above each other share one direction.
    """

    def result(self, x, *, shape, unitary, check=False):
        return ArrayType(tuple(shape), type_of(x).dtype)

    def evaluate(self, xp, /, x, *, shape, unitary, check=False):
        if check:
            _refuse_along(np.asarray(x), unitary)
        return xp.zeros(shape, dtype=x.dtype)

    def arithmetic(self, y, args, params):
        return reals(args[0])

    def transpose(self, y_bar, /, x, *, shape, unitary, check=False):
        return (gauge(y_bar, shape=x.shape, unitary=unitary, check=not check),)

    def batch(self, args, batched, params):
        shape = (args[0].shape[0], *params["shape"])
        return gauge(*args, **params | {"shape": shape})


def _refuse_along(c: np.ndarray, unitary: bool) -> None:
    """Refuse a cotangent with an anti-Hermitian part, or with an imaginary diagonal."""
    k = c.shape[-1]
    each = c.reshape(*c.shape[:-2], c.shape[-2] // max(1, k), k, k)
    whole = each.sum(-3)
    along = whole - np.conj(whole.swapaxes(-1, -2)) if unitary else np.diagonal(whole, 0, -2, -1)
    along = along if unitary else np.imag(along)
    eps = np.finfo(c.dtype).eps  # a cotangent of rounding errors has no direction
    if np.any(np.abs(along) > eps**0.4 * np.max(np.abs(c), initial=0) + eps**0.75):
        what = (
            "the basis of the vectors beyond the first ones, which any orthonormal one completes"
            if unitary
            else "the phases of the vectors, each of which may be multiplied by e^(i t)"
        )
        raise NoRuleError(
            f"a factorisation: the result depends on {what}, so it has no derivative; use what "
            "does not depend on the choice, such as abs(v) or v @ v.conj().T"
        )


# --- triangular systems -------------------------------------------------------------------------


class _Triangular:
    """What the two have in common: their types, their values and what these cost."""

    host = True
    linear = (1,)

    def result(self, a, b, *, lower, adjoint=False):
        return op("linear_solve").result(a, b)

    def evaluate(self, xp, /, a, b, *, lower, adjoint=False):
        return lapack.triangular(a, b, lower, adjoint)

    def arithmetic(self, y, args, params):
        return args[0].shape[-1] * reals(y)


@primitive
class linear_triangular(_Triangular, Linear):
    """X with A X = B, or A^H X = B, A triangular, linear in B :  (...,n,n), (...,n,k)."""

    def transpose(self, y_bar, /, a, b, *, lower, adjoint=False):
        b_bar = linear_triangular(a, y_bar, lower=lower, adjoint=not adjoint)
        return (unbroadcast(b_bar, b),)

    def linearize(self, y, args, active, params, recur):
        if 0 in active:
            return triangular_solve.linearize(y, args, active, params, recur)
        return Linear.linearize(self, y, args, active, params, recur)

    def batch(self, args, batched, params):
        return linear_triangular(*aligned(args, batched), **params)


@primitive
class triangular_solve(_Triangular, General):
    """X with A X = B, or A^H X = B, A one triangle of a matrix :  (...,n,n), (...,n,k)."""

    def jvp(self, y, primals, tangents, /, *, lower, adjoint=False):
        (a, _), (a_dot, right) = primals, tangents
        if a_dot is not None:
            at = triangle(type_of(a).shape[-1])
            a_dot = op("keep")(a_dot, at if lower else at.T)
            moved = -matmul(swap(conjugate(a_dot)) if adjoint else a_dot, y)
            right = moved if right is None else right + moved
        return linear_triangular(a, right, lower=lower, adjoint=adjoint)

    def batch(self, args, batched, params):
        return triangular_solve(*aligned(args, batched), **params)


def solve_right(b: Shaped, a: Value, lower: bool, of_adjoint: bool = False) -> Any:
    """X with X A = B, or X A^H = B, for triangular A."""
    x_adjoint = linear_triangular(a, adjoint(b), lower=lower, adjoint=not of_adjoint)
    return adjoint(x_adjoint)


# --- Cholesky -----------------------------------------------------------------------------------


@primitive
class cholesky(General):
    """Lower L with L L^H = A, from the lower triangle of A :  (...,n,n) -> (...,n,n)."""

    raised = lapack.FAILS

    def result(self, a):
        return squares(self.name, a)

    def evaluate(self, xp, /, a):
        return xp.linalg.cholesky(a)

    def arithmetic(self, y, args, params):
        return op("inv").arithmetic(y, args, params) // 6  # 1/3 n^3

    def jvp(self, y, primals, tangents, /):
        return linear_cholesky(y, hermitian(tangents[0]))

    def batch(self, args, batched, params):
        return cholesky(*args)


@primitive
class linear_cholesky(Linear):
    """Lower X with X L^H + L X^H = S, the tangent of L for S, linear in S :  (...,n,n), (...,n,n).

    S counts by its Hermitian part; with `adjoint` the adjoint of the map  [Murray 2016].
    """

    host = True
    linear = (1,)

    def result(self, a, b, *, adjoint=False):
        squares(self.name, b)
        return op("linear_solve").result(a, b)

    def evaluate(self, xp, /, a, b, *, adjoint=False):
        return lapack.cholesky_tangent(a, b, adjoint)

    def arithmetic(self, y, args, params):
        return args[0].shape[-1] * reals(y)

    def transpose(self, y_bar, /, a, b, *, adjoint=False):
        return (unbroadcast(linear_cholesky(a, y_bar, adjoint=not adjoint), b),)

    def linearize(self, y, args, active, params, recur):
        kind = tangent_of_cholesky if 0 in active else super()
        return kind.linearize(y, args, active, params, recur)

    def batch(self, args, batched, params):
        return linear_cholesky(*aligned(args, batched), **params)


@primitive
class tangent_of_cholesky(General):
    """`linear_cholesky` as a function of L too: of its lower triangle, with a real diagonal."""

    host = True
    linear = (1,)

    def result(self, a, b, *, adjoint=False):
        return linear_cholesky.result(a, b)

    def evaluate(self, xp, /, a, b, *, adjoint=False):
        return lapack.cholesky_tangent(a, b, adjoint)

    def arithmetic(self, y, args, params):
        return linear_cholesky.arithmetic(y, args, params)

    def jvp(self, y, primals, tangents, /, *, adjoint=False):
        (a, _), (a_dot, right) = primals, tangents
        if a_dot is not None:
            n = type_of(a).shape[-1]
            a_dot = op("keep")(a_dot, triangle(n, -1)) + _diagonal(a_dot)
            turned = a_dot if adjoint else swap(conjugate(a_dot))  # tril(2 Y L) = C, or as above
            moved = matmul(y, turned) * -2.0
            right = moved if right is None else right + moved
        return linear_cholesky(a, right, adjoint=adjoint)

    def batch(self, args, batched, params):
        return tangent_of_cholesky(*aligned(args, batched), **params)


@implements(np.linalg.cholesky)
def np_cholesky(a, /, *, upper=False):
    """L with L L^H = A, from A's lower triangle; with `upper`, U with U^H U = A from the upper."""
    a = square("cholesky", a)
    return adjoint(cholesky(adjoint(a))) if upper else cholesky(a)


# --- QR -----------------------------------------------------------------------------------------


@primitive
class qr(General):
    """Q above R^T, of A = Q R :  (...,m,n) -> (...,m+n,k), k = min(m,n), or m when complete.

    The diagonal of R is real, as LAPACK's is. Its derivative needs the first k columns of A to be
    independent  [Walter and Lehmann 2010].
    """

    host = True

    def result(self, a, *, complete):
        *lead, m, n = type_of(a).shape
        return ArrayType((*lead, m + n, m if complete else min(m, n)), type_of(a).dtype)

    def evaluate(self, xp, /, a, *, complete):
        q, r = xp.linalg.qr(a, mode="complete" if complete else "reduced")
        return xp.concatenate([q, xp.swapaxes(r, -1, -2)], axis=-2)

    def arithmetic(self, y, args, params):
        m, n = args[0].shape[-2:]
        return 4 * max(1, min(m, n)) * reals(y)

    def jvp(self, y, primals, tangents, /, *, complete):
        q, r = parts(y, type_of(primals[0]).shape[-2])
        a_dot = tangents[0]
        m, n = type_of(a_dot).shape[-2:]
        k = min(m, n)
        q, beyond = q[..., :, :k], q[..., :, k:]
        square_r = r[..., :k, :k]
        c = solve_right(a_dot[..., :, :k], square_r, lower=False)
        u = _upper(matmul(adjoint(q), c))  # R_dot R^-1
        q_dot, r_dot = c - matmul(q, u), matmul(u, square_r)
        if n > k:  # R2 = Q^H A2
            turned = matmul(adjoint(q_dot), matmul(q, r[..., :k, k:]))
            rest = turned + matmul(adjoint(q), a_dot[..., :, k:])
            r_dot = op("concat")(r_dot, rest, axis=-1)
        if complete and m > k:  # the completing columns rotate with the others only
            moved = -matmul(q, matmul(adjoint(c), beyond))
            shape = (*type_of(a_dot).shape[:-2], m - k, m - k)
            gauge_term = matmul(beyond, gauge(a_dot, shape=shape, unitary=True))
            q_dot = op("concat")(q_dot, moved + gauge_term, axis=-1)
            zeros = np.zeros((*shape[:-1], n), type_of(a_dot).dtype)
            r_dot = op("concat")(r_dot, zeros, axis=-2)
        return op("concat")(q_dot, swap(r_dot), axis=-2)

    def batch(self, args, batched, params):
        return qr(*args, **params)


def parts(y: Shaped, m: int) -> tuple[Any, Any]:
    """Q and R, from the array that `qr` returns."""
    return y[..., :m, :], swap(y[..., m:, :])


def _upper(w: Shaped) -> Any:
    """The upper triangular U with a real diagonal for which W - U is anti-Hermitian."""
    n = type_of(w).shape[-1]
    below = op("keep")(w, triangle(n, -1))
    return op("keep")(w, triangle(n, -1).T) + adjoint(below) + _diagonal(w)


def _diagonal(w: Shaped) -> Any:
    """The diagonal matrix of the real part of w's diagonal."""
    diagonal = op("keep")(w, np.eye(type_of(w).shape[-1], dtype=bool))
    return (diagonal + conjugate(diagonal)) * 0.5 if is_complex(w) else diagonal


@implements(np.linalg.qr)
def np_qr(a, mode="reduced"):
    """Q and R, or R alone; mode 'raw' is refused."""
    if mode not in ("reduced", "complete", "r"):
        raise NoRuleError(f"qr: the mode {mode!r} has no rule; 'reduced', 'complete' and 'r' have")
    a = as_array(a)
    q, r = parts(qr(a, complete=mode == "complete"), type_of(a).shape[-2])
    return r if mode == "r" else type(np.linalg.qr(np.eye(1)))(q, r)
