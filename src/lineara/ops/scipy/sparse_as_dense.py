"""Functions of sparse matrices that are differentiated by a dense factorisation.

SciPy's iteration determines which eigenvalues are returned, their order and signs; derivatives of
every order come from the dense factorisation.  This limits the size of the matrices.
"""

from typing import Any

import numpy as np

from lineara.errors import NoRuleError
from lineara.facts.hints import Value
from lineara.facts.primitive import op, registry
from lineara.facts.types import type_of
from lineara.ops.eigen import has_values
from lineara.ops.scipy.sparse_products import is_sparse
from lineara.ops.scipy.sparse_traced import (
    SparseValues,
    build,
    class_of_sparse,
    instead,
    plain_matrix,
)
from lineara.ops.shape import as_array

LARGEST = 4000  # rows and columns: a dense matrix of 128 MB


def _dense(name: str, a: Any) -> Any:
    """The sparse matrix as a dense array; an error if it is too large."""
    if max(a.shape) > LARGEST:
        raise NoRuleError(
            f"scipy.sparse.linalg.{name}: of traced values it is differentiated as that of a dense "
            f"matrix, of up to {LARGEST} rows and columns; this one has the shape {a.shape}"
        )
    return a.toarray() if isinstance(a, SparseValues) or is_sparse(a) else as_array(a)


def _iterated(name: str, a: Any, *args: Any, **options: Any) -> Any:
    """SciPy's result for the plain matrix."""
    from scipy.sparse import linalg

    if not has_values(np.sum(a.data if isinstance(a, SparseValues) else a)):
        raise NoRuleError(
            f"{name}: it iterates on numbers, which are not known while a program is written; "
            "numpy.linalg has rules for A.toarray()"
        )
    return getattr(linalg, name)(plain_matrix(a), *args, **options)


def _nearest(all_: Any, wanted: Any) -> np.ndarray:
    """For each number of `wanted` the position of the nearest in `all_`, without repetitions."""
    left = list(range(len(all_)))
    places = []
    for w in wanted:
        places.append(min(left, key=lambda i: abs(all_[i] - w)))
        left.remove(places[-1])
    return np.array(places, int)


def _turn(ours: Any, theirs: Any) -> np.ndarray:
    """The sign or phase by which each column of `ours` is multiplied to equal `theirs`."""
    inner = np.sum(np.conj(plain_matrix(ours)) * theirs, axis=0)
    inner = np.where(inner == 0, 1, inner)
    return inner / np.abs(inner)


def _no_other(name: str, **options: Any) -> None:
    for option, value in options.items():
        if value is not None:
            raise NoRuleError(f"scipy.sparse.linalg.{name}: {option}= has no rule")


@instead("linalg.eigsh")
def eigsh(A, k=6, M=None, sigma=None, which="LM", v0=None, *args, **options):  # SciPy's names
    """Some eigenvalues of a symmetric matrix, and their vectors."""
    return _eigen("eigsh", np.linalg.eigh, A, k, M, sigma, which, v0, *args, **options)


@instead("linalg.eigs")
def eigs(A, k=6, M=None, sigma=None, which="LM", v0=None, *args, **options):  # SciPy's names
    """Some eigenvalues of a square matrix, and their vectors."""
    return _eigen("eigs", np.linalg.eig, A, k, M, sigma, which, v0, *args, **options)


def _eigen(name, factor, A, k, M, *args, return_eigenvectors=True, **options):
    _no_other(name, M=M, **{o: options.get(o) for o in ("Minv", "OPinv")})
    if not isinstance(A, SparseValues) and hasattr(A, "matvec"):
        raise NoRuleError(f"{name}: a LinearOperator has no rule; a matrix has, dense or sparse")
    dense = _dense(name, A)
    w_found, v_found = _iterated(name, A, k, M, *args, **options)
    if not return_eigenvectors:  # in another order
        w_found = _iterated(name, A, k, M, *args, return_eigenvectors=False, **options)
        eigenvalues = np.linalg.eigvalsh if name == "eigsh" else np.linalg.eigvals
        w = registry.foreign[eigenvalues].ours(dense)
        return w[_nearest(plain_matrix(w), w_found)]
    w, v = registry.foreign[factor].ours(dense)
    at = _nearest(plain_matrix(w), w_found)
    v = v[:, at]
    return w[at], v * _turn(v, v_found)


@instead("linalg.svds")
def svds(A, k=6, ncv=None, tol=0, which="LM", v0=None, maxiter=None, *args, **options):
    """Some singular values in ascending order, and their vectors."""
    with_vectors = options.pop("return_singular_vectors", args[0] if args else True)
    dense = _dense("svds", A)
    u0, s0, _ = _iterated("svds", A, k, ncv, tol, which, v0, maxiter, True, *args[1:], **options)
    if with_vectors is False:
        s = registry.foreign[np.linalg.svd].ours(dense, compute_uv=False)
        return s[_nearest(plain_matrix(s), s0)]
    u, s, vh = registry.foreign[np.linalg.svd].ours(dense, full_matrices=False)
    at = _nearest(plain_matrix(s), s0)
    turn = _turn(u[:, at], u0)
    return u[:, at] * turn, s[at], vh[at] * np.conj(turn)[:, None]


def _like(a: Value, dense: Any) -> SparseValues:
    return build(class_of_sparse((a,)), dense)


@instead("linalg.inv")
def inv(A):  # SciPy's name
    """The inverse, a sparse matrix with all elements stored."""
    return _like(A, registry.foreign[np.linalg.inv].ours(_dense("inv", A)))


@instead("linalg.expm")
def expm(A):  # SciPy's name
    """The exponential, a sparse matrix with all elements stored."""
    return _like(A, op("expm")(_dense("expm", A)))


@instead("linalg.matrix_power")
def matrix_power(A, power):  # SciPy's name
    """A power of a square matrix."""
    return _like(A, registry.foreign[np.linalg.matrix_power].ours(_dense("matrix_power", A), power))


def _least_squares(name: str) -> None:
    @instead(f"linalg.{name}")
    def solve(A, b, damp=0.0, *args, **options):  # SciPy's name
        dense, b = _dense(name, A), as_array(b)
        result = _iterated(name, A, plain_matrix(b), plain_matrix(damp), *args, **options)
        n = type_of(dense).shape[1]
        rows = np.concatenate([dense, damp * np.eye(n)]) if plain_matrix(damp) else dense
        b = np.concatenate([b, np.zeros(n)]) if plain_matrix(damp) else b
        exact = registry.foreign[np.linalg.lstsq].ours(rows, b, rcond=None)[0]
        return result[0] + (exact - op("stop_gradient")(exact)), *result[1:]


_least_squares("lsqr")
_least_squares("lsmr")
