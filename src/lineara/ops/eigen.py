"""Eigenvalues and eigenvectors.

The eigenvectors of equal eigenvalues are not unique, so their derivative is NaN. The derivative of
the eigenvalues has a default there, which is right for sums over the equal ones. The gauge of a
Hermitian matrix's vectors V: the diagonal of V^H V_dot is zero.
"""

from typing import Any

import numpy as np

from lineara.errors import StagingError
from lineara.facts.hints import Leaf, Shaped, Value
from lineara.facts.primitive import (
    Box,
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
from lineara.ops.contract import matmul
from lineara.ops.elementwise import real_dtype
from lineara.ops.factorizations import gauge, hermitian
from lineara.ops.linalg import adjoint, square, squares


def close_to(x: Shaped, y: Value, values: Shaped, n: int) -> Any:
    """Whether x and y agree to the rounding error of a factorisation with these values."""
    size = op("abs")(op("stop_gradient")(values))
    shape = type_of(size).shape
    scale = op("max")(size, axis=(len(shape) - 1,), keepdims=True) if shape[-1] else size
    scale = op("reshape")(scale, shape=(*scale.shape, *(1,) * (type_of(x).ndim - len(shape))))
    eps = np.finfo(type_of(values).dtype).eps
    return op("less_equal")(op("abs")(op("stop_gradient")(x - y)), scale * (n * eps))


def inverse_gaps(w: Shaped, n: int, equal: str, squares: bool = False) -> Any:
    """1 / (w_j - w_i), zero on the diagonal :  (...,n) -> (...,n,n); NaN or zero where w_i = w_j.

    With `squares` 1 / (w_j^2 - w_i^2).
    """
    row, column = w[..., None, :], w[..., :, None]
    gap = (row - column) * (row + column) if squares else row - column
    close = close_to(row, column, w, n)
    gap = op("where")(close, np.nan if equal == "nan" else np.inf, gap)
    return op("keep")(1 / gap, ~np.eye(type_of(w).shape[-1], dtype=bool))


# --- Hermitian matrices -------------------------------------------------------------------------


@primitive
class eigh_factors(Constant):
    """One array with eigenvalues as first row, eigenvectors as columns :  (...,n,n) -> (...,n+1,n).

    `driver` is LAPACK's method, on which signs depend: "evd" in NumPy, "evr" in SciPy.
    """

    host = True
    raised = lapack.FAILS

    def result(self, a, *, lower=True, driver="evd"):
        *lead, n, _ = squares(self.name, a).shape
        return ArrayType((*lead, n + 1, n), type_of(a).dtype)

    def evaluate(self, xp, /, a, *, lower=True, driver="evd"):
        if driver != "evd":
            n = a.shape[-1]
            one = lambda m: lapack.eigh(m, lower, driver)  # noqa: E731
            return lapack.each(one, (n + 1, n), a.dtype, a)
        w, v = xp.linalg.eigh(a, "L" if lower else "U")
        return xp.concatenate([w[..., None, :].astype(v.dtype), v], axis=-2)

    def arithmetic(self, y, args, params):
        return 9 * max(1, args[0].shape[-1]) * reals(args[0])

    def batch(self, args, batched, params):
        return eigh_factors(*args, **params)


@primitive
class eigvalsh(General):
    """The eigenvalues of Hermitian matrices, the smallest first :  (...,n,n) -> (...,n).

    `f` is `eigh_factors(a)`, computed once for values, vectors and derivatives.
    """

    host = True
    raised = lapack.FAILS

    def result(self, a, *f: Any, lower=True):
        t = squares(self.name, a)
        return ArrayType(t.shape[:-1], real_dtype(t.dtype))

    def evaluate(self, xp, /, a, *f: Any, lower=True):
        if not f:
            return xp.linalg.eigvalsh(a, "L" if lower else "U")
        return np.ascontiguousarray(f[0][..., 0, :].real)

    def arithmetic(self, y, args, params):
        return eigh_factors.arithmetic(y, args, params) if len(args) == 1 else reals(y)

    def jvp(self, y, primals, tangents, /, *, lower=True):
        a, *f = primals
        v = eigh_vectors(a, *f, lower=lower)
        moved = matmul(hermitian(tangents[0], lower), v)
        n = type_of(moved).ndim
        return op("sum")(real_part(conjugate(v) * moved), axis=(n - 2,), keepdims=False)

    def batch(self, args, batched, params):
        return eigvalsh(*aligned(args, batched), **params)


@primitive
class eigh_vectors(General):
    """The eigenvectors of Hermitian matrices :  (...,n,n) -> (...,n,n)."""

    host = True

    def result(self, a, *f: Any, lower=True, equal="nan"):
        return squares(self.name, a)

    def evaluate(self, xp, /, a, *f: Any, lower=True, equal="nan"):
        packed = f[0] if f else eigh_factors.evaluate(xp, a, lower=lower)
        return packed[..., 1:, :]

    def arithmetic(self, y, args, params):
        return eigh_factors.arithmetic(y, args, params) if len(args) == 1 else 0

    def jvp(self, y, primals, tangents, /, *, lower=True, equal="nan"):
        (a, *f), a_dot = primals, tangents[0]
        n = type_of(a).shape[-1]
        w = matmul(adjoint(y), matmul(hermitian(a_dot, lower), y))
        turn = w * inverse_gaps(eigvalsh(a, *f, lower=lower), n, equal)
        if is_complex(a):
            turn = turn + gauge(a_dot, shape=type_of(w).shape, unitary=False)
        return matmul(y, turn)

    def batch(self, args, batched, params):
        return eigh_vectors(*aligned(args, batched), **params)


# --- any square matrices ------------------------------------------------------------------------


@primitive
class eig_factors(Constant):
    """One complex array: eigenvalues, and the vectors below :  (...,n,n) -> (...,n+1,n)."""

    host = True
    raised = lapack.FAILS

    def result(self, a):
        *lead, n, _ = squares(self.name, a).shape
        return ArrayType((*lead, n + 1, n), np.result_type(type_of(a).dtype, np.complex64))

    def evaluate(self, xp, /, a):
        w, v = xp.linalg.eig(a)
        return xp.concatenate([w[..., None, :], v], axis=-2).astype(self.result(a).dtype)

    def arithmetic(self, y, args, params):
        return 25 * max(1, args[0].shape[-1]) * reals(args[0])

    def batch(self, args, batched, params):
        return eig_factors(*args)


@primitive
class eigvals(General):
    """The eigenvalues as complex numbers, also of a real matrix :  (...,n,n) -> (...,n)."""

    host = True
    raised = lapack.FAILS

    def result(self, a, *f: Any):
        t = squares(self.name, a)
        return ArrayType(t.shape[:-1], np.result_type(t.dtype, np.complex64))

    def evaluate(self, xp, /, a, *f: Any):
        if not f:
            return xp.linalg.eigvals(a).astype(self.result(a).dtype)
        return np.ascontiguousarray(f[0][..., 0, :])

    def arithmetic(self, y, args, params):
        return eig_factors.arithmetic(y, args, params) if len(args) == 1 else reals(y)

    def jvp(self, y, primals, tangents, /):
        a, *f = primals
        v = eig_vectors(a, *f)
        moved = matmul(op("inv")(v), matmul(tangents[0], v))
        n = type_of(moved).ndim
        kept = op("keep")(moved, np.eye(type_of(a).shape[-1], dtype=bool))
        return op("sum")(kept, axis=(n - 2,), keepdims=False)

    def batch(self, args, batched, params):
        return eigvals(*aligned(args, batched))


@primitive
class eig_vectors(General):
    """The eigenvectors, normalised as LAPACK's: length 1, the largest component real."""

    host = True

    def result(self, a, *f: Any, equal="nan"):
        t = squares(self.name, a)
        return ArrayType(t.shape, np.result_type(t.dtype, np.complex64))

    def evaluate(self, xp, /, a, *f: Any, equal="nan"):
        packed = f[0] if f else eig_factors.evaluate(xp, a)
        return packed[..., 1:, :]

    def arithmetic(self, y, args, params):
        return eig_factors.arithmetic(y, args, params) if len(args) == 1 else 0

    def jvp(self, y, primals, tangents, /, *, equal="nan"):
        (a, *f), a_dot = primals, tangents[0]
        n = type_of(a).shape[-1]
        w = matmul(op("inv")(y), matmul(a_dot, y))
        moved = matmul(y, w * inverse_gaps(eigvals(a, *f), n, equal))
        size = op("abs")(op("stop_gradient")(y))
        largest = op("argmax")(size, axis=-2, keepdims=True)
        place = op("equal")(np.arange(n)[:, None], largest)
        turn = op("imag")(op("sum")(op("keep")(moved / y, place), **_down(y)))
        grow = op("sum")(op("real")(conjugate(y) * moved), **_down(y))
        return moved - y * (grow + 1j * turn)

    def batch(self, args, batched, params):
        return eig_vectors(*aligned(args, batched), **params)


def _down(y: Shaped) -> dict[str, Any]:
    return {"axis": (type_of(y).ndim - 2,), "keepdims": True}


# --- NumPy's functions --------------------------------------------------------------------------


def _triangle(uplo: str) -> bool:
    if not isinstance(uplo, str) or uplo.upper() not in ("L", "U"):
        raise ValueError("UPLO argument must be 'L' or 'U'")
    return uplo.upper() == "L"


def values_and_vectors(a: Shaped, lower: bool, **driver: str) -> tuple[Any, Any]:
    """Eigenvalues and eigenvectors of a Hermitian matrix, of which one triangle is read."""
    f = eigh_factors(a, lower=lower, **driver)
    return eigvalsh(a, f, lower=lower), eigh_vectors(a, f, lower=lower)


@implements(np.linalg.eigh)
def np_eigh(a, UPLO="L"):  # NumPy's name
    """Eigenvalues and vectors of a Hermitian matrix, of which one triangle is read."""
    pair = values_and_vectors(square("eigh", a), _triangle(UPLO))
    return type(np.linalg.eigh(np.eye(1)))(*pair)


@implements(np.linalg.eigvalsh)
def np_eigvalsh(a, UPLO="L"):
    """Eigenvalues of a Hermitian matrix, of which one triangle is read."""
    a, lower = square("eigvalsh", a), _triangle(UPLO)
    return eigvalsh(a, eigh_factors(a, lower=lower), lower=lower)


_ALWAYS_COMPLEX = np.linalg.eigvals(np.eye(1)).dtype.kind == "c"


def _real(name: str, a: Shaped, w: Shaped) -> bool:
    """Whether NumPy returns real eigenvalues: up to 2.4 those of a real matrix, if all are real."""
    if is_complex(a) or _ALWAYS_COMPLEX:
        return False
    try:
        return not bool(op("any")(op("not_equal")(op("imag")(w), 0)))
    except StagingError:
        raise StagingError(
            f"{name}: whether the eigenvalues of a real {type_of(a)} are real depends on values, "
            "which are not known while a program is written; give it a complex matrix, or a "
            "symmetric one to eigh"
        ) from None


def has_values(x: Leaf) -> bool:
    """Whether the numbers of a value are known: False while a program is being traced."""
    while isinstance(x, Box):
        if not getattr(x, "known", False):
            return False
        x = x.v
    return True


@implements(np.linalg.eig)
def np_eig(a):
    """Eigenvalues and eigenvectors of a square matrix."""
    a = square("eig", a)
    f = eig_factors(a)
    w, v = eigvals(a, f), eig_vectors(a, f)
    if _real("eig", a, w):
        w, v = op("real")(w), op("real")(v)
    return type(np.linalg.eig(np.eye(1)))(w, v)


@implements(np.linalg.eigvals)
def np_eigvals(a):
    """Eigenvalues of a square matrix."""
    a = square("eigvals", a)
    w = eigvals(a, eig_factors(a))
    return op("real")(w) if _real("eigvals", a, w) else w
