"""LAPACK's factorisations that NumPy does not offer, for each matrix of a stack.

SciPy is imported at first use. A matrix in C order is the transpose of one in Fortran order, so the
transpose of each matrix is factored, and none is copied.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from lineara.ops.blas_threads import one_thread

LARGE = 192  # from this size on factors pay; below, another call of NumPy's costs no more
FAILS = (np.linalg.LinAlgError,)  # what a factorisation may raise
CHARS = {"f": "s", "d": "d", "F": "c", "D": "z"}


@functools.cache
def routine(library: str, name: str, char: str) -> Callable[..., Any]:
    """The routine of LAPACK or BLAS for a dtype, such as dgetrf or ztrsm."""
    import scipy.linalg

    return one_thread(getattr(getattr(scipy.linalg, library), CHARS[char] + name))


def worth_factoring(a: Any) -> bool:
    """Whether to keep the factors of a matrix: for stacks of small ones NumPy's call is faster."""
    return a.shape[-1] >= LARGE and a.dtype.char in CHARS


def each(
    function: Callable[..., Any], shape: tuple[int, ...], dtype: np.dtype, *stacks: Any
) -> Any:
    """`function` of each matrix of stacks that broadcast; one result has the shape `shape`."""
    lead = np.broadcast_shapes(*(s.shape[:-2] for s in stacks))
    if not lead:
        return function(*stacks)
    out = np.empty((math.prod(lead), *shape), dtype)
    wide = [np.broadcast_to(s, (*lead, *s.shape[-2:])) for s in stacks]
    rows = zip(*[s.reshape(len(out), *s.shape[-2:]) for s in wide], strict=True)
    for i, matrices in enumerate(rows):
        out[i] = function(*matrices)
    return out.reshape(*lead, *shape)


def lu(a: np.ndarray) -> np.ndarray:
    """L and U in one matrix, and below them a row of pivots :  (...,n,n) -> (...,n+1,n)."""
    n = a.shape[-1]

    def one(m: np.ndarray) -> np.ndarray:
        packed = np.empty((n + 1, n), dtype)
        packed[:-1] = m
        factor = routine("lapack", "getrf", dtype.char)
        inside, packed[-1], _ = factor(packed[:-1].T, overwrite_a=True)
        assert np.shares_memory(inside, packed), "LAPACK factors in place"
        return packed

    dtype = a.dtype.newbyteorder("=")
    return each(one, (n + 1, n), dtype, a)


def _parts(f: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(L and U of the transposed matrix, pivots) from the array that `lu` returns."""
    return f[:-1].T, np.real(f[-1]).astype(np.intc)


def refuse_singular(f: np.ndarray) -> None:
    """Raise NumPy's LinAlgError if a pivot is zero."""
    if not np.all(np.diagonal(f[..., :-1, :], 0, -2, -1)):
        raise np.linalg.LinAlgError("Singular matrix")


def lu_solve(f: np.ndarray, b: np.ndarray, adjoint: bool) -> np.ndarray:
    """X with A X = B, or with A^H X = B, from the factors of A."""
    refuse_singular(f)
    dtype = np.result_type(f.dtype, b.dtype)
    f, b = f.astype(dtype, copy=False), b.astype(dtype, copy=False)

    def one(f: np.ndarray, b: np.ndarray) -> np.ndarray:
        solve = routine("lapack", "getrs", dtype.char)
        if adjoint:  # the transpose was factored, and A^H is its conjugate
            return np.conj(solve(*_parts(f), np.conj(b), trans=0)[0])
        return solve(*_parts(f), b, trans=1)[0]

    return np.ascontiguousarray(each(one, b.shape[-2:], dtype, f, b))


def lu_inverse(f: np.ndarray) -> np.ndarray:
    """A^-1 from the factors of A."""
    refuse_singular(f)
    n = f.shape[-1]

    def one(f: np.ndarray) -> np.ndarray:
        return routine("lapack", "getri", f.dtype.char)(*_parts(f))[0].T

    return each(one, (n, n), f.dtype, f)


def lu_sign(f: np.ndarray) -> np.ndarray:
    """det A / |det A| from the factors of A; 0 where A is singular."""
    n = f.shape[-1]
    diagonal = np.diagonal(f[..., :-1, :], 0, -2, -1)
    moved = np.count_nonzero(np.real(f[..., -1, :]) != np.arange(n), axis=-1)
    return np.prod(np.sign(diagonal), axis=-1) * np.where(moved % 2, -1, 1).astype(f.dtype)


def triangular(a: np.ndarray, b: np.ndarray, lower: bool, adjoint: bool) -> np.ndarray:
    """X with A X = B, or A^H X = B, for triangular A; inf or NaN for singular A, no error."""
    dtype = np.result_type(a.dtype, b.dtype)
    a, b = a.astype(dtype, copy=False), b.astype(dtype, copy=False)
    if a.ndim > 2 and not worth_factoring(a):
        half = np.tril(a) if lower else np.triu(a)
        half = np.conj(half.swapaxes(-1, -2)) if adjoint else half
        try:
            return np.linalg.solve(half, b)
        except np.linalg.LinAlgError:
            pass  # below each matrix is solved separately, since the others are regular

    def one(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        if not b.size:
            return b.copy()
        solve = routine("blas", "trsm", dtype.char)
        turned = 2 * bool(adjoint)
        return solve(1, a.T, b.T, side=1, lower=not lower, trans_a=turned).T  # X^T A^T = B^T

    return each(one, b.shape[-2:], dtype, a, b)


def eigh(a: np.ndarray, lower: bool, driver: str) -> np.ndarray:
    """One array of eigenvalues, with eigenvectors as columns below, by a method of LAPACK."""
    import scipy.linalg

    return np.vstack(one_thread(scipy.linalg.eigh)(a, lower=lower, driver=driver))


# --- the derivative of Cholesky's factor ----------------------------------------------------------


def cholesky_tangent(low: np.ndarray, s: np.ndarray, adjoint: bool) -> np.ndarray:
    """Lower X with X L^H + L X^H = S, the Hermitian part of S; or the adjoint of that map.

    Of L the lower triangle is read, and of its diagonal the real part.
    """
    low = np.tril(low.astype(low.dtype.newbyteorder("="), copy=False))
    if low.dtype.kind == "c":
        np.einsum("...ii->...i", low).imag[...] = 0
    s = np.tril(s) if adjoint else (s + _h(s)) / 2
    turn = _adjoint_by_blocks if adjoint else _tangent_by_blocks
    n = low.shape[-1]
    if n <= BLOCK:
        return turn(low, s)

    def one(low: np.ndarray, s: np.ndarray) -> np.ndarray:
        return turn(low, s.copy())

    return each(one, (n, n), np.result_type(low, s), low, s)


BLOCK = 80  # up to this size one product costs less than the recursion


def _h(a: np.ndarray) -> np.ndarray:
    return np.conj(a.swapaxes(-1, -2))


def _halves(x: np.ndarray) -> np.ndarray:
    """The lower triangle of x with half of its diagonal."""
    x = np.tril(x)
    np.einsum("...ii->...i", x)[...] /= 2
    return x


def _right(b: np.ndarray, low: np.ndarray, adjoint: bool) -> np.ndarray:
    """B L^-1, or B L^-H."""
    if b.ndim > 2 or not b.size:
        return _h(triangular(low, _h(b), True, not adjoint))
    dtype = np.result_type(low.dtype, b.dtype)
    solve = routine("blas", "trsm", dtype.char)
    return solve(1, low.T, b.T, side=0, lower=0, trans_a=2 * bool(adjoint)).T  # L^T X^T = B^T


def _tangent_by_blocks(low: np.ndarray, s: np.ndarray) -> np.ndarray:
    """Overwrite S by X, block by block; n^3 operations instead of 4 n^3  [Murray 2016]."""
    n = low.shape[-1]
    if n <= BLOCK:
        return np.tril(low @ _halves(_right(triangular(low, s, True, False), low, True)))
    k = n // 2
    l11, l21, l22 = low[:k, :k], low[k:, :k], low[k:, k:]
    s[:k, :k] = _tangent_by_blocks(l11, s[:k, :k])
    s[:k, k:] = 0
    s[k:, :k] = _right(s[k:, :k] - l21 @ _h(s[:k, :k]), l11, True)
    both = s[k:, :k] @ _h(l21)
    s[k:, k:] = _tangent_by_blocks(l22, s[k:, k:] - both - _h(both))
    return s


def _adjoint_by_blocks(low: np.ndarray, c: np.ndarray) -> np.ndarray:
    """The adjoint of `_tangent_by_blocks`, its steps in reverse order; the result is Hermitian."""
    n = low.shape[-1]
    if n <= BLOCK:
        y = _right(triangular(low, _halves(_h(low) @ c), True, True), low, False)
        return (y + _h(y)) / 2
    k = n // 2
    l11, l21, l22 = low[:k, :k], low[k:, :k], low[k:, k:]
    c[k:, k:] = _adjoint_by_blocks(l22, c[k:, k:])
    below = _right(c[k:, :k] - 2 * (c[k:, k:] @ l21), l11, False)
    c[:k, :k] = _adjoint_by_blocks(l11, np.tril(c[:k, :k] - _h(below) @ l21))
    c[k:, :k] = below / 2
    c[:k, k:] = _h(below) / 2
    return c
