"""scipy.linalg, by the primitives of numpy.linalg, with SciPy's names, defaults and triangles.

Options about the computation alone (`overwrite_a`, `check_finite`, drivers) are accepted and have
no effect.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from lineara.errors import NoRuleError, ShapeError
from lineara.facts.hints import Shaped, Value
from lineara.facts.primitive import conjugate, implements, op
from lineara.facts.types import is_complex, type_of
from lineara.ops.contract import matmul, swap
from lineara.ops.eigen import np_eig, np_eigvals, np_eigvalsh, values_and_vectors
from lineara.ops.factorizations import cholesky, hermitian, np_qr, triangle, triangular_solve
from lineara.ops.join import block
from lineara.ops.linalg import adjoint, np_det, np_inv, np_solve, square
from lineara.ops.norms import norm
from lineara.ops.shape import as_array, as_floats, np_reshape
from lineara.ops.singular import np_lstsq, np_pinv, np_svd


def in_columns(name: str, act: Callable[[Any], Any], rows: int, b: Shaped) -> Any:
    """`act` on the right side b, a vector or columns; checks that it has `rows` rows."""
    b = as_floats(b)
    t = type_of(b)
    if not t.ndim or t.shape[-2 if t.ndim > 1 else -1] != rows:
        raise ShapeError(f"{name}: a right side of {rows} rows is wanted, not {t}")
    if t.ndim > 1:
        return act(b)
    return np_reshape(act(np_reshape(b, (rows, 1))), (rows,))


def _keep(a: Shaped, at: np.ndarray) -> Any:
    return op("keep")(a, at)


def _symmetric(a: Shaped, lower: bool) -> Any:
    """The symmetric matrix whose lower (or upper) triangle is that of a."""
    n = type_of(a).shape[-1]
    below = triangle(n, -1) if lower else triangle(n, -1).T
    half = _keep(a, below)
    return half + swap(half) + _keep(a, np.eye(n, dtype=bool))


_POSITIVE = ("pos", "positive definite")


def _as_assumed(name: str, a: Shaped, assume: str | None, lower: bool) -> Any:
    """The matrix as SciPy reads it for `assume_a`: of a symmetric one only a triangle."""
    n = type_of(a).shape[-1]
    near = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    if assume in (None, "gen", "general", "banded"):
        return a
    if assume in ("sym", "symmetric"):
        return _symmetric(a, lower)
    if assume in ("her", "hermitian", *_POSITIVE):
        return hermitian(a, lower)
    if assume in ("diagonal", "tridiagonal"):
        return _keep(a, near <= (assume == "tridiagonal"))
    if assume in ("lower triangular", "upper triangular"):
        return _keep(a, triangle(n) if assume[0] == "l" else triangle(n).T)
    raise NoRuleError(f"{name}: assume_a={assume!r} has no rule; without assume_a it has one")


@implements("scipy.linalg.solve")
def solve(
    a,
    b,
    lower=False,
    overwrite_a=False,
    overwrite_b=False,
    check_finite=True,
    assume_a=None,
    transposed=False,
):
    """The solution of A x = b, or of A^T x = b."""
    a = square("solve", a)
    if assume_a in ("lower triangular", "upper triangular"):
        return solve_triangular(a, b, 1 if transposed else 0, assume_a[0] == "l")
    a = _as_assumed("solve", a, assume_a, lower)
    return np_solve(swap(a) if transposed else a, b)


_ADJOINTS: dict[Any, bool | None] = {0: False, "N": False, 1: None, "T": None, 2: True, "C": True}


@implements("scipy.linalg.solve_triangular")
def solve_triangular(
    a, b, trans=0, lower=False, unit_diagonal=False, overwrite_b=False, check_finite=True
):
    """The solution of A x = b, A^T x = b or A^H x = b, reading one triangle of A."""
    a = square("solve_triangular", a)
    n = type_of(a).shape[-1]
    if unit_diagonal:
        a = _keep(a, ~np.eye(n, dtype=bool)) + np.eye(n, dtype=type_of(a).dtype)
    turned = _ADJOINTS[trans]
    if turned is None:  # A^T is the adjoint of its conjugate
        a, turned = conjugate(a), True
    solved = lambda v: triangular_solve(a, v, lower=bool(lower), adjoint=turned)  # noqa: E731
    return in_columns("solve_triangular", solved, n, b)


@implements("scipy.linalg.inv")
def inv(a, overwrite_a=False, check_finite=True, *, assume_a=None, lower=False):
    """The inverse of a square matrix."""
    return np_inv(_as_assumed("inv", square("inv", a), assume_a, lower))


@implements("scipy.linalg.det")
def det(a, overwrite_a=False, check_finite=True):
    """The determinant of a square matrix."""
    return np_det(a)


@implements("scipy.linalg.norm")
def scipy_norm(a, ord=None, axis=None, keepdims=False, check_finite=True):
    """Norms of vectors and matrices."""
    return norm(a, ord, axis, keepdims)


# --- factorisations -----------------------------------------------------------------------------


@implements("scipy.linalg.cholesky")
def scipy_cholesky(a, lower=False, overwrite_a=False, check_finite=True):
    """U with U^H U = A, from A's upper triangle; or L with L L^H = A, from the lower."""
    a = square("cholesky", a)
    return cholesky(a) if lower else adjoint(cholesky(adjoint(a)))


@implements("scipy.linalg.cho_factor")
def cho_factor(a, lower=False, overwrite_a=False, check_finite=True):
    """(factor, lower) for `cho_solve`; the factor's other triangle keeps the elements of a."""
    c = scipy_cholesky(a, lower)
    other = np.tri(type_of(c).shape[-1], k=-1, dtype=bool)
    return c + op("keep")(a, other.T if lower else other), lower


@implements("scipy.linalg.cho_solve", sequence=True)
def cho_solve(c_and_lower, b, overwrite_b=False, check_finite=True):
    """The solution of A x = b from the factor of A."""
    c, lower = c_and_lower
    c, lower = square("cho_solve", c), bool(lower)

    def solved(v: Value) -> Any:
        half = triangular_solve(c, v, lower=lower, adjoint=not lower)
        return triangular_solve(c, half, lower=lower, adjoint=lower)

    return in_columns("cho_solve", solved, type_of(c).shape[-1], b)


@implements("scipy.linalg.qr")
def qr(a, overwrite_a=False, lwork=None, mode="full", pivoting=False, check_finite=True):
    """(Q, R), or R alone."""
    if pivoting or mode not in ("full", "r", "economic"):
        asked = "pivoting=True" if pivoting else f"mode={mode!r}"
        raise NoRuleError(f"qr: {asked} has no rule; the modes 'full', 'r', 'economic' have one")
    q, r = np_qr(a, "reduced" if mode == "economic" else "complete")
    return (r,) if mode == "r" else (q, r)


def _standard(name: str, a: Shaped, b: Shaped, lower: bool, kind: int) -> tuple[Any, Any]:
    """(L^-1 A L^-H, L) for A v = w B v with B = L L^H."""
    if kind != 1:
        raise NoRuleError(f"{name}: type={kind} has no rule; type=1, A v = w B v, has one")
    low = cholesky(square(name, b) if lower else adjoint(square(name, b)))
    half = triangular_solve(low, hermitian(a, lower), lower=True, adjoint=False)
    return adjoint(triangular_solve(low, adjoint(half), lower=True, adjoint=False)), low


def _chosen(name: str, n: int, by_index: list[Any] | None, by_value: object) -> slice:
    if by_value is not None:
        raise NoRuleError(
            f"{name}: subset_by_value has no rule, since how many there are is not fixed; "
            "take all of them and choose by w[(low < w) & (w <= high)], or use subset_by_index"
        )
    return slice(0, n) if by_index is None else slice(int(by_index[0]), int(by_index[1]) + 1)


_DRIVERS = {
    "gv": "ev",
    "gvd": "evd",
    "gvx": "evx",
}  # drivers of A v = w B v -> of the standard problem


@implements("scipy.linalg.eigh")
def eigh(
    a,
    b=None,
    *,
    lower=True,
    eigvals_only=False,
    overwrite_a=False,
    overwrite_b=False,
    type=1,  # SciPy's name
    check_finite=True,
    subset_by_index=None,
    subset_by_value=None,
    driver=None,
):
    """Eigenvalues and vectors of A v = w v or A v = w B v, A and B Hermitian."""
    a, low = square("eigh", a), None
    at = _chosen("eigh", type_of(a).shape[-1], subset_by_index, subset_by_value)
    if b is not None:
        (a, low), lower = _standard("eigh", a, b, lower, type), True
    if eigvals_only:
        return np_eigvalsh(a, "L" if lower else "U")[..., at]
    if driver is None:
        driver = "evr" if b is None else "evd" if subset_by_index is None else "evx"
    w, v = values_and_vectors(a, bool(lower), driver=_DRIVERS.get(driver, driver))
    if low is not None:
        v = triangular_solve(low, v, lower=True, adjoint=True)
    return w[..., at], v[..., at]


@implements("scipy.linalg.eigvalsh")
def eigvalsh(a, b=None, **options):
    """Eigenvalues of A v = w v or A v = w B v, A and B Hermitian."""
    return eigh(a, b, eigvals_only=True, **options)


def _complex(w: Shaped) -> Any:
    return w if is_complex(w) else w + 0j


@implements("scipy.linalg.eig")
def eig(
    a,
    b=None,
    left=False,
    right=True,
    overwrite_a=False,
    overwrite_b=False,
    check_finite=True,
    homogeneous_eigvals=False,
):
    """Eigenvalues, which are complex numbers, and vectors."""
    if left or homogeneous_eigvals:
        raise NoRuleError(
            "eig: left=True and homogeneous_eigvals=True have no rule; without they have"
        )
    a = a if b is None else np_solve(b, a)
    if not right:
        return _complex(np_eigvals(a))
    w, v = np_eig(a)
    return _complex(w), v


@implements("scipy.linalg.eigvals")
def eigvals(a, b=None, overwrite_a=False, check_finite=True, homogeneous_eigvals=False):
    """Eigenvalues, which are complex numbers."""
    return eig(a, b, right=False, homogeneous_eigvals=homogeneous_eigvals)


@implements("scipy.linalg.svd")
def svd(
    a,
    full_matrices=True,
    compute_uv=True,
    overwrite_a=False,
    check_finite=True,
    lapack_driver="gesdd",
):
    """(U, s, V^H), or s alone."""
    result = np_svd(a, full_matrices, compute_uv)
    return tuple(result) if compute_uv else result


@implements("scipy.linalg.svdvals")
def svdvals(a, overwrite_a=False, check_finite=True):
    """The singular values, the largest first."""
    return np_svd(a, compute_uv=False)


def _cutoff(a: Shaped, atol: object, rtol: object) -> Any:
    if atol:
        raise NoRuleError(
            f"pinv: atol={atol!r} has no rule, a cutoff relative to the largest one, rtol=, has"
        )
    t = type_of(a)
    return max(t.shape[-2:]) * float(np.finfo(t.dtype).eps) if rtol is None else rtol


@implements("scipy.linalg.pinv")
def pinv(a, *, atol=None, rtol=None, return_rank=False, check_finite=True):
    """The Moore-Penrose inverse; with `return_rank` also the rank."""
    a = as_array(a)
    cut = _cutoff(a, atol, rtol)
    inverse = np_pinv(a, cut)
    return (inverse, op("matrix_rank")(a, as_array(cut), relative=True)) if return_rank else inverse


@implements("scipy.linalg.pinvh")
def pinvh(a, atol=None, rtol=None, lower=True, return_rank=False, check_finite=True):
    """The Moore-Penrose inverse of a Hermitian matrix, of which one triangle is read."""
    a = hermitian(square("pinvh", a), lower)
    return pinv(a, atol=atol, rtol=rtol, return_rank=return_rank)


@implements("scipy.linalg.lstsq")
def lstsq(
    a,
    b,
    cond=None,
    overwrite_a=False,
    overwrite_b=False,
    check_finite=True,
    lapack_driver=None,
):
    """(x of least norm minimising |A x - b|, squared residuals, rank, singular values)."""
    x, sums, rank, values = np_lstsq(a, b, -1 if cond is None else cond)
    one = type_of(b).ndim == 1 and type_of(sums).size
    return x, sums[0] if one else sums, rank, values


# --- matrices of a structure --------------------------------------------------------------------


def _vector(name: str, v: Shaped) -> Any:
    v = as_array(v)
    if type_of(v).ndim != 1:
        raise ShapeError(f"{name}: a vector is wanted, not {type_of(v)}")
    return v


def _both(first: Shaped, last: Shaped) -> Any:
    return op("concat")(first, last, axis=0)


@implements("scipy.linalg.toeplitz")
def toeplitz(c, r=None):
    """The matrix constant along diagonals, with first column c and first row (c[0], *r[1:])."""
    c = _vector("toeplitz", c)
    r = conjugate(c) if r is None else _vector("toeplitz", r)
    m, n = type_of(c).shape[0], type_of(r).shape[0]
    values = _both(c[::-1], r[1:])
    return values[m - 1 - np.arange(m)[:, None] + np.arange(n)]


@implements("scipy.linalg.hankel")
def hankel(c, r=None):
    """The matrix constant along anti-diagonals: first column c, last row (c[-1], *r[1:])."""
    c = _vector("hankel", c)
    m = type_of(c).shape[0]
    r = np.zeros(m, type_of(c).dtype) if r is None else _vector("hankel", r)
    n = type_of(r).shape[0]
    return _both(c, r[1:])[np.arange(m)[:, None] + np.arange(n)]


@implements("scipy.linalg.circulant")
def circulant(c):
    """The circulant matrix with first column c: each column is the previous one rolled by 1."""
    c = as_array(c)
    n = np.arange(type_of(c).shape[-1])
    return c[..., (n[:, None] - n) % len(n)]


@implements("scipy.linalg.companion")
def companion(a):
    """The matrix whose characteristic polynomial has these coefficients."""
    a = _vector("companion", a)
    n = type_of(a).shape[0] - 1
    return _both((-a[1:] / a[0])[None], np.eye(n)[:-1].astype(type_of(a).dtype))


@implements("scipy.linalg.block_diag", sequence=True)
def block_diag(*arrs):
    """The block-diagonal matrix."""
    parts = [as_array(a) for a in arrs]
    parts = [a if type_of(a).ndim > 1 else np_reshape(a, (1, -1)) for a in parts]
    shapes = [type_of(a).shape for a in parts]
    dtype = np.result_type(*(type_of(a).dtype for a in parts))
    zeros = lambda i, j: np.zeros((shapes[i][0], shapes[j][1]), dtype)  # noqa: E731
    places = range(len(parts))
    return block([[parts[i] if i == j else zeros(i, j) for j in places] for i in places])


@implements("scipy.linalg.khatri_rao")
def khatri_rao(a, b):
    """The Kronecker products of corresponding columns."""
    a, b = as_array(a), as_array(b)
    products = a[..., :, None, :] * b[..., None, :, :]
    *lead, m, n, k = type_of(products).shape
    return np_reshape(products, (*lead, m * n, k))


def _of_pair(c_or_cr: Shaped) -> Any:
    return toeplitz(*c_or_cr) if isinstance(c_or_cr, tuple) else toeplitz(c_or_cr)


@implements("scipy.linalg.matmul_toeplitz", sequence=True)
def matmul_toeplitz(c_or_cr, x, check_finite=False, workers=None):
    """The product of a Toeplitz matrix and x."""
    return matmul(_of_pair(c_or_cr), as_array(x))


@implements("scipy.linalg.solve_toeplitz", sequence=True)
def solve_toeplitz(c_or_cr, b, check_finite=True):
    """The solution of a Toeplitz system."""
    return np_solve(_of_pair(c_or_cr), b)
