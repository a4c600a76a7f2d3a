"""scipy.linalg: structured matrices and their systems, solved as dense ones."""

from typing import Any

import numpy as np

from lineara.errors import NoRuleError
from lineara.facts.hints import Shaped
from lineara.facts.primitive import implements, op, registry
from lineara.facts.types import type_of
from lineara.ops.contract import matmul
from lineara.ops.eigen import np_eigvalsh
from lineara.ops.factorizations import hermitian
from lineara.ops.linalg import adjoint, np_inv, np_solve, square
from lineara.ops.scipy.linalg import circulant, eigh, in_columns
from lineara.ops.scipy.matrix_functions import solve_continuous_lyapunov
from lineara.ops.shape import as_floats

# --- what is written down ------------------------------------------------------------------------


@implements("scipy.linalg.leslie")
def leslie(f, s):
    """The Leslie matrix: f in the first row, s below the diagonal."""
    f, s = as_floats(f), as_floats(s)
    return np.concatenate([f[None], np.diag(s, -1)[1:]])


@implements("scipy.linalg.fiedler")
def fiedler(a):
    """The Fiedler matrix: the distances |a_i - a_j|."""
    a = as_floats(a)
    return abs(a[:, None] - a)


@implements("scipy.linalg.convolution_matrix")
def convolution_matrix(a, n, mode="full"):
    """The matrix that convolves with a."""
    a = as_floats(a)
    of: dict[str, Any] = {"mode": mode}
    return np.stack([np.convolve(a, row, **of) for row in np.eye(n)], axis=1)


# --- systems -------------------------------------------------------------------------------------


@implements("scipy.linalg.solve_circulant")
def solve_circulant(c, b, singular="raise", tol=None, caxis=-1, baxis=0, outaxis=0):
    """The solution of a system with the circulant matrix of c."""
    if singular != "raise" or (caxis, baxis, outaxis) != (-1, 0, 0):
        raise NoRuleError("scipy.linalg.solve_circulant: only c and b have a rule")
    return np_solve(circulant(as_floats(c)), b)


@implements("scipy.linalg.cho_solve_banded", sequence=True)
def cho_solve_banded(cb_and_lower, b, overwrite_b=False, check_finite=True):
    """The solution by Cholesky's factor, of which the band is given."""
    band, lower = cb_and_lower
    low = _of_band(as_floats(band), lower, whole=False)
    low = low if lower else adjoint(low)
    solved = lambda v: np_solve(adjoint(low), np_solve(low, v))  # noqa: E731
    return in_columns("cho_solve_banded", solved, type_of(low).shape[-1], b)


@implements("scipy.linalg.solve_discrete_lyapunov")
def solve_discrete_lyapunov(a, q, method=None):
    """X with A X A^H - X + Q = 0: by products, or turned into the other equation, as in SciPy."""
    a, q = as_floats(a), as_floats(q)
    n = type_of(square("solve_discrete_lyapunov", a)).shape[0]
    method = method or ("bilinear" if n >= 10 else "direct")
    if method == "direct":
        many = np.eye(n * n) - np.kron(a, np.conj(a))
        return np.reshape(np_solve(many, np.reshape(q, (-1,))), (n, n))
    ah, eye = adjoint(a), np.eye(n)
    inverse = np_inv(ah + eye)
    b = matmul(ah - eye, inverse)
    c = 2 * matmul(matmul(np_inv(a + eye), q), inverse)
    return solve_continuous_lyapunov(adjoint(b), -c)


# --- eigenvalues of bands ------------------------------------------------------------------------


def _of_band(band: Shaped, lower: bool, whole: bool = True) -> Any:
    """The matrix from its diagonals on one side; the Hermitian one if `whole`."""
    rows, n = type_of(band).shape
    a = np.zeros((n, n), type_of(band).dtype)
    for i in range(rows):
        k = i if lower else rows - 1 - i
        a = a + np.diag(band[i, : n - k] if lower else band[i, k:], -k if lower else k)
    return hermitian(a, lower) if whole else a


def _select(name: str, w: Shaped, select: int | str, select_range: Any) -> slice:
    if select in ("a", "all", 0):
        return slice(None)
    if select in ("i", "index", 2):
        return slice(int(select_range[0]), int(select_range[1]) + 1)
    raise NoRuleError(f"scipy.linalg.{name}: select={select!r} has no rule; 'a' and 'i' have")


@implements("scipy.linalg.eig_banded")
def eig_banded(a_band, lower=False, eigvals_only=False, overwrite_a_band=False, select="a",
               select_range=None, max_ev=0, check_finite=True):  # fmt: skip
    """Eigenvalues and eigenvectors of a band."""
    a = _of_band(as_floats(a_band), lower)
    at = _select("eig_banded", a, select, select_range)
    if eigvals_only:
        return np_eigvalsh(a)[at]
    w, v = eigh(a)
    return w[at], v[:, at]


@implements("scipy.linalg.eigvals_banded")
def eigvals_banded(a_band, lower=False, overwrite_a_band=False, select="a", select_range=None,
                   check_finite=True):  # fmt: skip
    """Eigenvalues of a band."""
    return eig_banded(a_band, lower, True, select=select, select_range=select_range)


def _tridiagonal(d: Shaped, e: Shaped) -> Any:
    return np.diag(as_floats(d)) + np.diag(as_floats(e), -1)


@implements("scipy.linalg.eigh_tridiagonal")
def eigh_tridiagonal(d, e, eigvals_only=False, select="a", select_range=None, check_finite=True,
                     tol=0.0, lapack_driver="auto"):  # fmt: skip
    """Eigenvalues and eigenvectors of a symmetric tridiagonal matrix."""
    a = _tridiagonal(d, e)
    at = _select("eigh_tridiagonal", a, select, select_range)
    if eigvals_only:
        return np_eigvalsh(a)[at]
    w, v = eigh(a)
    return w[at], v[:, at]


@implements("scipy.linalg.eigvalsh_tridiagonal")
def eigvalsh_tridiagonal(d, e, select="a", select_range=None, check_finite=True, tol=0.0,
                         lapack_driver="auto"):  # fmt: skip
    """Eigenvalues of a symmetric tridiagonal matrix."""
    return eigh_tridiagonal(d, e, True, select, select_range)


# --- functions of matrices -----------------------------------------------------------------------


@implements("scipy.linalg.expm_frechet")
def expm_frechet(A, E, method=None, compute_expm=True, check_finite=True):  # SciPy's names
    """The exponential and its derivative along E: a corner of that of a block matrix."""
    a, e = as_floats(A), as_floats(E)
    n = type_of(square("expm_frechet", a)).shape[0]
    below = np.concatenate([np.zeros((n, n)), a], axis=1)
    blocks = op("expm")(np.concatenate([np.concatenate([a, e], axis=1), below]))
    return (blocks[:n, :n], blocks[:n, n:]) if compute_expm else blocks[:n, n:]


@implements("scipy.linalg.fractional_matrix_power")
def fractional_matrix_power(A, t):  # SciPy's name
    """A to a power, by its logarithm."""
    a = as_floats(A)
    whole = isinstance(t, int) or (isinstance(t, float) and t.is_integer())
    if whole:
        return registry.foreign[np.linalg.matrix_power].ours(a, int(t))
    return op("expm")(t * op("logm")(a))


@implements("scipy.linalg.signm")
def signm(A, disp=True):  # SciPy's name
    """The matrix with the eigenvectors of A and the signs of its eigenvalues."""
    a = square("signm", as_floats(A))
    return matmul(a, np_inv(op("sqrtm")(matmul(a, a))))
