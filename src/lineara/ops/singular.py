"""Singular values and vectors, the pseudo-inverse and least squares.

The diagonals of U^H U_dot and V^H V_dot are real (the gauge). The singular vectors of equal
singular values are not unique, so their derivative is NaN; that of the values has a default there,
which is right for sums over the equal ones.
"""

from typing import Any

import numpy as np

from lineara.errors import NoRuleError, ShapeError
from lineara.facts.hints import Shaped
from lineara.facts.primitive import (
    Constant,
    General,
    aligned,
    conjugate,
    implements,
    op,
    primitive,
    real_part,
    reals,
)
from lineara.facts.types import ArrayType, is_complex, type_of
from lineara.ops import lapack
from lineara.ops.contract import chain, matmul
from lineara.ops.eigen import close_to, has_values, inverse_gaps, np_eigh, np_eigvalsh
from lineara.ops.elementwise import real_dtype
from lineara.ops.factorizations import gauge
from lineara.ops.factorizations import hermitian as hermitian_of
from lineara.ops.index import take_along_axis
from lineara.ops.linalg import adjoint
from lineara.ops.reduce import modulus_squared
from lineara.ops.shape import as_doubles, as_floats, flip
from lineara.ops.sorting import sort


@primitive
class svd_factors(Constant):
    """U, V and s of A = U s V^H above each other in one array :  (...,m,n) -> (...,m+n+1,k).

    k is min(m, n); with `full` max(m, n), and the smaller of U and V is filled up with zeros.
    """

    host = True
    raised = lapack.FAILS

    def result(self, a, *, full):
        *lead, m, n = type_of(a).shape
        return ArrayType((*lead, m + n + 1, max(m, n) if full else min(m, n)), type_of(a).dtype)

    def evaluate(self, xp, /, a, *, full):
        u, s, vh = xp.linalg.svd(a, full_matrices=full)
        m = a.shape[-2]
        packed = np.zeros(self.result(a, full=full).shape, a.dtype)
        packed[..., :m, : u.shape[-1]] = u
        packed[..., m:-1, : vh.shape[-2]] = adjoint(vh)
        packed[..., -1, : s.shape[-1]] = s
        return packed

    def arithmetic(self, y, args, params):
        return 12 * max(1, *args[0].shape[-2:]) * reals(args[0])

    def batch(self, args, batched, params):
        return svd_factors(*args, **params)


@primitive
class svdvals(General):
    """The singular values, the largest first :  (...,m,n) -> (...,k); their slope at 0 is 0.

    `f` is `svd_factors(a)`, computed once for values, vectors and derivatives.
    """

    host = True
    raised = lapack.FAILS

    def result(self, a, *f: Any):
        *lead, m, n = type_of(a).shape
        return ArrayType((*lead, min(m, n)), real_dtype(type_of(a).dtype))

    def evaluate(self, xp, /, a, *f: Any):
        if not f:
            return xp.linalg.svd(a, compute_uv=False)
        return np.ascontiguousarray(f[0][..., -1, : min(a.shape[-2:])].real)

    def arithmetic(self, y, args, params):
        return svd_factors.arithmetic(y, args, params) if len(args) == 1 else reals(y)

    def jvp(self, y, primals, tangents, /):
        t = type_of(primals[0])
        m, k = t.shape[-2], min(t.shape[-2:])
        vectors = svd_vectors(*primals, full=False)
        u, v = vectors[..., :m, :k], vectors[..., m:, :k]
        moved = real_part(conjugate(u) * matmul(tangents[0], v))
        s_dot = op("sum")(moved, axis=(t.ndim - 2,), keepdims=False)  # Re diag(U^H A_dot V)
        return s_dot * (1 - close_to(y, 0.0, y, max(t.shape[-2:])).astype(type_of(y).dtype))

    def batch(self, args, batched, params):
        return svdvals(*aligned(args, batched))


@primitive
class svd_vectors(General):
    """U and V above each other in one array :  (...,m,n) -> (...,m+n,k), k as in `svd_factors`."""

    host = True

    def result(self, a, *f: Any, full, equal="nan"):
        *lead, m, n = type_of(a).shape
        columns = type_of(f[0] if f else svd_factors.result(a, full=full)).shape[-1]
        return ArrayType((*lead, m + n, columns), type_of(a).dtype)

    def evaluate(self, xp, /, a, *f: Any, full, equal="nan"):
        packed = f[0] if f else svd_factors.evaluate(xp, a, full=full)
        return packed[..., :-1, :]

    def arithmetic(self, y, args, params):
        return svd_factors.arithmetic(y, args, params) if len(args) == 1 else 0

    def jvp(self, y, primals, tangents, /, *, full, equal="nan"):
        a, a_dot = primals[0], tangents[0]
        m, n = type_of(a).shape[-2:]
        k, columns = min(m, n), type_of(y).shape[-1]
        u, v = y[..., :m, :k], y[..., m:, :k]
        s = svdvals(*primals)
        moved_v, moved_u = matmul(a_dot, v), matmul(adjoint(a_dot), u)  # A_dot V, A_dot^H U
        w = matmul(adjoint(u), moved_v)
        wh = adjoint(w)
        row, column = s[..., None, :], s[..., :, None]
        gaps = inverse_gaps(s, max(m, n), equal, squares=True)
        in_u, in_v = (w * row + wh * column) * gaps, (wh * row + w * column) * gaps
        if is_complex(a):
            turn = (w - wh) * op("keep")(0.25 / row, np.eye(k, dtype=bool))
            shape = (*type_of(w).shape[:-2], 2 * k, k)
            gauge_term = gauge(a_dot, shape=shape, unitary=False)
            in_u, in_v = in_u + turn + gauge_term[..., :k, :], in_v - turn + gauge_term[..., k:, :]
        u_dot, v_dot = matmul(u, in_u), matmul(v, in_v)
        if m > k:
            u_dot = u_dot + (moved_v - matmul(u, w)) / row
        if n > k:
            v_dot = v_dot + (moved_u - matmul(v, wh)) / row
        if columns > k:
            u_dot, v_dot = _full(y, (u, u_dot), (v, v_dot), a_dot, m)
        return op("concat")(u_dot, v_dot, axis=-2)

    def batch(self, args, batched, params):
        return svd_vectors(*aligned(args, batched), **params)


def _full(
    y: Shaped, us: tuple[Any, ...], vs: tuple[Any, ...], a_dot: Shaped, m: int
) -> tuple[Any, Any]:
    """The tangents of U and V with completing columns for the longer, and zeros for the other."""
    k = type_of(us[0]).shape[-1]
    tall = type_of(us[0]).shape[-2] > k
    (x, x_dot), (short, short_dot) = (us, vs) if tall else (vs, us)
    beyond = y[..., :m, k:] if tall else y[..., m:, k:]
    p = type_of(beyond).shape[-1]
    shape = (*type_of(a_dot).shape[:-2], p, p)
    moved = -matmul(x, matmul(adjoint(x_dot), beyond))
    gauge_term = matmul(beyond, gauge(a_dot, shape=shape, unitary=True))
    zeros = np.zeros((*type_of(short).shape[:-1], p), type_of(short).dtype)
    long = op("concat")(x_dot, moved + gauge_term, axis=-1)
    short = op("concat")(short_dot, zeros, axis=-1)
    return (long, short) if tall else (short, long)


# --- the pseudo-inverse -------------------------------------------------------------------------


def cutoff(rcond: object) -> None:
    """Raise a TypeError unless the cutoff is a number."""
    if isinstance(rcond, bool) or not isinstance(rcond, int | float | np.number):
        raise TypeError("the cutoff of singular values is a number")


@primitive
class pinv(General):
    """A^+, where singular values up to rcond times the largest count as zero.

    (...,m,n) -> (...,n,m), for a rank that does not change  [Golub and Pereyra 1973, 4].
    """

    host = True
    raised = lapack.FAILS

    def result(self, a, *f: Any, rcond):
        cutoff(rcond)
        *lead, m, n = type_of(a).shape
        return ArrayType((*lead, n, m), type_of(a).dtype)

    def evaluate(self, xp, /, a, *f: Any, rcond):
        if not f:
            return xp.linalg.pinv(a, rcond)
        m = a.shape[-2]
        u, v, s = f[0][..., :m, :], f[0][..., m:-1, :], f[0][..., -1:, :].real
        kept = s > np.asarray(rcond)[..., None, None] * np.max(s, axis=-1, keepdims=True, initial=0)
        return (v * np.divide(1, s, where=kept, out=np.zeros_like(s))) @ adjoint(u)

    def arithmetic(self, y, args, params):
        return svd_factors.arithmetic(y, args, params)

    def jvp(self, y, primals, tangents, /, *, rcond):
        (a, *_), a_dot = primals, tangents[0]
        turned, yh = adjoint(a_dot), adjoint(y)
        left = chain(turned, yh, y) - chain(y, a, turned, yh, y)  # beside A's rows
        right = chain(y, yh, turned) - chain(y, yh, turned, a, y)  # beside A's columns
        return left + right - chain(y, a_dot, y)

    def batch(self, args, batched, params):
        return pinv(*aligned(args, batched), **params)


@implements(np.linalg.pinv)
def np_pinv(a, rcond=None, hermitian=False, *, rtol=np._NoValue):
    """The Moore-Penrose inverse."""
    a = as_floats(a)
    if rcond is None:
        rcond = 1e-15 if rtol is np._NoValue else rtol
    return pinv(hermitian_of(a) if hermitian else a, rcond=_cut("pinv", a, rcond))


def _cut(name: str, a: Shaped, rcond: object) -> Any:
    """The cutoff, if only rounding errors lie below it; a larger one has no rule."""
    t = type_of(a)
    eps = float(np.finfo(t.dtype).eps)
    if rcond is None:
        return eps * max(t.shape[-2:])
    if np.any(np.asarray(rcond) > eps**0.5):
        raise NoRuleError(
            f"{name}: a cutoff of {rcond!r} drops singular values that are not zero, and has no "
            f"rule; up to {eps**0.5:.0e} it has, and with np.linalg.svd you say what is kept"
        )
    return rcond


@primitive
class lstsq(General):
    """The x of least norm among those that minimise |A x - b| :  (m,n), (m,k) -> (n,k).

    Linear in b. `f` is `svd_factors(a)`; the rank must not change  [Golub and Pereyra 1973, 4].
    """

    host = True
    linear = (1,)
    raised = lapack.FAILS

    def result(self, a, b, *f: Any, rcond):
        cutoff(rcond)
        s, t = type_of(a), type_of(b)
        if (s.ndim, t.ndim) != (2, 2) or s.shape[0] != t.shape[0]:
            raise ShapeError(f"lstsq: {s} and {t} are not two matrices of as many rows")
        return ArrayType((s.shape[-1], t.shape[-1]), np.result_type(s.dtype, t.dtype))

    def evaluate(self, xp, /, a, b, *f: Any, rcond):
        if not f:
            return xp.linalg.lstsq(a, b, rcond)[0]
        return pinv.evaluate(xp, a, *f, rcond=rcond) @ b

    def arithmetic(self, y, args, params):
        return svd_factors.arithmetic(y, args, params) + 2 * args[0].shape[-2] * reals(y)

    def jvp(self, y, primals, tangents, /, *, rcond):
        (a, b, *f), (a_dot, b_dot, *_) = primals, tangents
        p = pinv(a, *f, rcond=rcond)
        if a_dot is None:
            return matmul(p, b_dot)
        turned, ph = adjoint(a_dot), adjoint(p)
        inner, outer = chain(turned, ph, y), chain(ph, turned, b - matmul(a, y))
        moved = outer - matmul(a_dot, y)
        moved = moved if b_dot is None else moved + b_dot
        return matmul(p, moved - matmul(a, inner)) + inner


@primitive
class rank_of_lstsq(Constant):
    """The rank of a matrix, by singular values above rcond times the largest :  (m,n) -> ()."""

    host = True
    raised = lapack.FAILS

    def result(self, a, *, rcond):
        cutoff(rcond)
        if type_of(a).ndim != 2:
            raise ShapeError(f"rank_of_lstsq: takes a matrix, not {type_of(a)}")
        return ArrayType((), np.dtype(np.int32))

    def evaluate(self, xp, /, a, *, rcond):
        return xp.linalg.lstsq(a, np.zeros((len(a), 1)), rcond)[2]

    def arithmetic(self, y, args, params):
        return svd_factors.arithmetic(y, args, params)


NO_SQUARES = (
    "lstsq: NumPy gives no sums of squares where the rank is not full, so their shape depends on "
    "values; take them of b - A @ x"
)


@implements(np.linalg.lstsq)
def np_lstsq(a, b, rcond=None):
    """(x, sums of squared residuals, rank, singular values), computed in double precision.

    The sums are empty if the rank is not full; a program that reads them there is refused.
    """
    a, b = as_floats(a), as_floats(b)
    s, t = type_of(a), type_of(b)
    if s.ndim != 2 or t.ndim not in (1, 2) or s.shape[0] != t.shape[0]:
        raise ShapeError(
            f"lstsq: takes a matrix, and a vector or matrix with as many rows, not {s} and {t}"
        )
    m, n = s.shape
    dtype = np.result_type(s.dtype, t.dtype)
    real = real_dtype(dtype)
    a, b = as_doubles(a), as_doubles(b)
    negative = rcond is not None and rcond < 0  # LAPACK takes the unit roundoff
    cut = _cut("lstsq", a, np.finfo(float).eps / 2 if negative else rcond)
    f = svd_factors(a, full=False)
    columns = b if t.ndim == 2 else op("reshape")(b, shape=(m, 1))
    x = lstsq(a, columns, f, rcond=cut)
    rank = rank_of_lstsq(a, rcond=cut)
    if m > n and not (has_values(rank) and rank < n):
        squares = op("sum")(modulus_squared(columns - matmul(a, x)), axis=(0,), keepdims=False)
        if not has_values(rank):
            squares = op("check_StagingError")(squares, op("less")(rank, n), text=NO_SQUARES)
    else:
        squares = np.zeros(0)
    x = x if t.ndim == 2 else op("reshape")(x, shape=(n,))
    results = zip((x, squares, svdvals(a, f)), (dtype, real, real), strict=True)
    x, squares, values = (op("astype")(y, dtype=d) for y, d in results)
    return x, squares, rank, values


# --- NumPy's functions --------------------------------------------------------------------------


@implements(np.linalg.svd)
def np_svd(a, full_matrices=True, compute_uv=True, hermitian=False):
    """(U, s, V^H), or s alone."""
    a = as_floats(a)
    if hermitian:
        return _of_hermitian(a, compute_uv)
    m, n = type_of(a).shape[-2:]
    full = bool(full_matrices and compute_uv and m != n)
    f = svd_factors(a, full=full)
    s = svdvals(a, f)
    if not compute_uv:
        return s
    vectors = svd_vectors(a, f, full=full)
    wide = type_of(f).shape[-1]
    u, v = vectors[..., :m, : min(m, wide)], vectors[..., m:, : min(n, wide)]
    return _SVD(u, s, adjoint(v))


def _of_hermitian(a: Shaped, compute_uv: bool) -> Any:
    """The decomposition of a Hermitian matrix, from its eigenvalues in order of modulus."""
    if not compute_uv:
        return flip(sort(op("abs")(np_eigvalsh(a))), -1)
    w, v = np_eigh(a)
    order = op("argsort")(op("abs")(w), axis=-1)[..., ::-1]
    w = take_along_axis(w, order, -1)
    u = take_along_axis(v, order[..., None, :], -1)
    return _SVD(u, op("abs")(w), adjoint(u * op("copysign")(1.0, w)[..., None, :]))


_SVD: Any = type(np.linalg.svd(np.eye(1)))


@implements(np.linalg.svdvals)
def np_svdvals(x, /):
    """The singular values, the largest first."""
    return np_svd(x, compute_uv=False)
