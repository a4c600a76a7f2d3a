"""Linear systems and determinants; reverse mode is the transpose of each jvp  [Giles 2008].

Where value and derivative share a factorisation, it is an additional argument `f`, the `factors` of
the matrix, computed once. The derivative with respect to the matrix is complete, and that with
respect to `f` is zero by declaration. A call without `f` computes its own factors.
"""

import math
from typing import Any

import numpy as np

from lineara.errors import ShapeError
from lineara.facts.hints import DType, Shaped, Value
from lineara.facts.primitive import (
    Constant,
    General,
    Linear,
    aligned,
    conjugate,
    implements,
    op,
    primitive,
    real_part,
    reals,
    unbroadcast,
)
from lineara.facts.types import ArrayType, is_complex, type_of
from lineara.ops import lapack
from lineara.ops.contract import LETTERS, einsum, matmul, swap
from lineara.ops.elementwise import real_dtype
from lineara.ops.shape import as_array, as_floats, normal_axes, np_reshape, np_transpose


def factoring(a: ArrayType, stack: tuple[int, ...]) -> int:
    """The operations of the LU factorisations of a stack, 2/3 n^3 for each matrix."""
    n = a.shape[-1]
    return math.prod(stack) * (1 + is_complex(a)) * max(n, 2 * n**3 // 3)


def adjoint(a: Shaped) -> Any:
    """The conjugate transpose of matrices."""
    return swap(conjugate(a))


@primitive
class lu_factors(Constant):
    """L, U and the pivots of A, P A = L U, in one array :  (...,n,n) -> (...,n+1,n)."""

    host = True

    def result(self, a):
        *lead, n, _ = squares("lu_factors", a).shape
        return ArrayType((*lead, n + 1, n), type_of(a).dtype)

    def evaluate(self, xp, /, a):
        return lapack.lu(a)

    def arithmetic(self, y, args, params):
        return factoring(args[0], y.shape[:-2])

    def batch(self, args, batched, params):
        return lu_factors(*args)


def factors(a: Shaped, dtype: DType = None) -> tuple[Any, ...]:
    """The LU factors of A as a tuple of one argument, or () for none.

    There are none for a matrix that is too small, or if the solver computes in another dtype.
    """
    t = type_of(a)
    fits = dtype is None or dtype == t.dtype
    return (lu_factors(a),) if fits and lapack.worth_factoring(t) else ()


@primitive
class linear_solve(Linear):
    """X with A X = B, or A^H X = B, linear in B :  (...,n,n), (...,n,k) -> (...,n,k)."""

    linear = (1,)

    def result(self, a, b, *f: Any, adjoint=False):
        s, t = squares("solve", a), type_of(b)
        if s.shape[-1:] != t.shape[-2:-1]:
            raise ShapeError(f"solve: {s} has not as many rows as {t}, which has two axes or more")
        lead = np.broadcast_shapes(s.shape[:-2], t.shape[:-2])
        return ArrayType((*lead, *t.shape[-2:]), np.result_type(s.dtype, t.dtype))

    def evaluate(self, xp, /, a, b, *f: Any, adjoint=False):
        if f and xp is np:
            return lapack.lu_solve(f[0], b, adjoint)
        return xp.linalg.solve(xp.conj(xp.matrix_transpose(a)) if adjoint else a, b)

    def arithmetic(self, y, args, params):
        a, _, *f = args
        return (0 if f else factoring(a, y.shape[:-2])) + 2 * a.shape[-1] * reals(y)

    def transpose(self, y_bar, /, a, b, *f: Any, adjoint=False):
        return (unbroadcast(linear_solve(a, y_bar, *f, adjoint=not adjoint), b),)  # A^-H X_bar

    def linearize(self, y, args, active, params, recur):
        kind = solve if 0 in active else super()
        return kind.linearize(y, args, active, params, recur)

    def batch(self, args, batched, params):
        a, b, *f = args
        if f or batched[0] or type_of(a).ndim != 2 or type_of(b).ndim != 3:
            return linear_solve(*aligned(args, batched), **params)
        lanes, n, k = type_of(b).shape  # of one matrix they are columns: it is factored once
        columns = op("reshape")(op("permute_dims")(b, axes=(1, 0, 2)), shape=(n, lanes * k))
        x = op("reshape")(linear_solve(a, columns, **params), shape=(n, lanes, k))
        return op("permute_dims")(x, axes=(1, 0, 2))


@primitive
class solve(General):
    """X with A X = B, or A^H X = B :  (...,n,n), (...,n,k) -> (...,n,k)   [Giles 2008, 2.2.3]."""

    linear = (1,)
    raised = lapack.FAILS

    def result(self, a, b, *f: Any, adjoint=False):
        return linear_solve.result(a, b)

    def evaluate(self, xp, /, a, b, *f: Any, adjoint=False):
        return linear_solve.evaluate(xp, a, b, *f, adjoint=adjoint)

    def arithmetic(self, y, args, params):
        return linear_solve.arithmetic(y, args, params)

    def jvp(self, y, primals, tangents, /, *, adjoint=False):
        (a, _, *f), (a_dot, right, *_) = primals, tangents
        if a_dot is not None:
            moved = matmul(swap(conjugate(a_dot)) if adjoint else a_dot, -y)
            right = moved if right is None else right + moved
        return linear_solve(a, right, *f, adjoint=adjoint)  # X_dot = A^-1 (B_dot - A_dot X)

    def batch(self, args, batched, params):
        return solve(*aligned(args, batched), **params)


@primitive
class inv(General):
    """A^-1 :  (...,n,n) -> (...,n,n)."""

    raised = lapack.FAILS

    def result(self, a, *f: Any):
        return squares("inv", a)

    def evaluate(self, xp, /, a, *f: Any):
        return lapack.lu_inverse(*f) if f and xp is np else xp.linalg.inv(a)

    def arithmetic(self, y, args, params):
        return (2 if len(args) > 1 else 3) * factoring(y, y.shape[:-2])

    def jvp(self, y, primals, tangents, /):
        return matmul(matmul(-y, tangents[0]), y)  # Y_dot = -Y A_dot Y

    def batch(self, args, batched, params):
        return self(*aligned(args, batched))


@primitive
class inv_or_nan(type(inv)):
    """A^-1, of NaN where a matrix is singular :  (...,n,n) -> (...,n,n)."""

    raised = ()

    def evaluate(self, xp, /, a, *f: Any):
        if xp is not np:
            return xp.linalg.inv(a)
        return lapack.each(_inv_or_nan, a.shape[-2:], a.dtype, a)


def _inv_or_nan(a: np.ndarray) -> np.ndarray:
    try:
        return np.linalg.inv(a)
    except np.linalg.LinAlgError:
        return np.full_like(a, np.nan)


def _against(a: Shaped, a_dot: Value) -> Any:
    """tr(A A_dot), computed without the matrix product."""
    lead = LETTERS[2 : type_of(a).ndim]
    return einsum(a, a_dot, subscripts=f"{lead}ab,{lead}ba->{lead}")


class _OfDeterminant(General):
    """A function of the determinant, read off the LU factors in n steps :  (...,n,n) -> (...)."""

    def result(self, a, *f: Any):
        t = squares(self.name, a)
        return ArrayType(t.shape[:-2], t.dtype)

    def arithmetic(self, y, args, params):
        a, *f = args
        return (0 if f else factoring(a, y.shape)) + reals(y) * a.shape[-1]

    def batch(self, args, batched, params):
        return self(*aligned(args, batched))


@primitive
class det(_OfDeterminant):
    """The determinant :  (...,n,n) -> (...)."""

    def evaluate(self, xp, /, a, *f: Any):
        if not f or xp is not np:
            return xp.linalg.det(a)
        diagonal = np.diagonal(f[0][..., :-1, :], 0, -2, -1)
        return lapack.lu_sign(*f) * np.prod(np.abs(diagonal), axis=-1)

    def jvp(self, y, primals, tangents, /):
        return _against(adjugate(*primals), tangents[0])  # tr(adj(A) A_dot)


@primitive
class adjugate(General):
    """det(A) A^-1, defined for singular A too; its derivative needs a regular A."""

    host = True

    def result(self, a, *f: Any):
        return squares("adjugate", a)

    def evaluate(self, xp, /, a, *f: Any):
        if a.shape[-1] in (2, 3):
            return _small_adjugate(a)
        try:
            y = inv.evaluate(xp, a, *f)
            y *= det.evaluate(xp, a, *f)[..., None, None]
            return y
        except np.linalg.LinAlgError:
            u, s, vh = xp.linalg.svd(a)
            others = np.where(np.eye(s.shape[-1], dtype=bool), 1, s[..., None, :]).prod(-1)
            turned = (xp.linalg.det(u) * xp.linalg.det(vh))[..., None, None]
            return turned * (adjoint(vh) * others[..., None, :]) @ adjoint(u)

    def arithmetic(self, y, args, params):
        return inv.arithmetic(y, args, params) + reals(y)

    def jvp(self, y, primals, tangents, /):
        inverse = inv(*primals)
        turned = matmul(inverse, matmul(tangents[0], y))
        trace = _against(y, tangents[0])
        return op("reshape")(trace, shape=(*type_of(trace).shape, 1, 1)) * inverse - turned

    def batch(self, args, batched, params):
        return adjugate(*aligned(args, batched))


def _small_adjugate(a: np.ndarray) -> np.ndarray:
    """The adjugate of 2 x 2 or 3 x 3 matrices, from products of elements."""
    if a.shape[-1] == 2:
        return a[..., ::-1, ::-1].swapaxes(-1, -2) * np.array([[1, -1], [-1, 1]], a.dtype)
    turned, twice = (a[..., np.arange(i, i + 3) % 3, :] for i in (1, 2))
    columns = [(j + 1) % 3 for j in range(3)], [(j + 2) % 3 for j in range(3)]
    (b, c), (d, e) = ([m[..., i] for i in columns] for m in (turned, twice))
    return (b * e - c * d).swapaxes(-1, -2)


@primitive
class logabsdet(_OfDeterminant):
    """log |det A| :  (...,n,n) -> (...), real."""

    part_of = np.linalg.slogdet, 1

    def result(self, a, *f: Any):
        t = super().result(a)
        return ArrayType(t.shape, real_dtype(t.dtype))

    def evaluate(self, xp, /, a, *f: Any):
        if not f or xp is not np:
            return xp.linalg.slogdet(a)[1]
        with np.errstate(divide="ignore"):
            return np.sum(np.log(np.abs(np.diagonal(f[0][..., :-1, :], 0, -2, -1))), axis=-1)

    def jvp(self, y, primals, tangents, /):
        return real_part(_against(inv(*primals), tangents[0]))  # Re tr(A^-1 A_dot)


@primitive
class detsign(Constant):
    """The sign of the determinant of real matrices; 0 for a singular one :  (...,n,n) -> (...)."""

    def result(self, a, *f: Any):
        return det.result(a)

    def evaluate(self, xp, /, a, *f: Any):
        return lapack.lu_sign(*f) if f and xp is np else xp.linalg.slogdet(a)[0]

    def batch(self, args, batched, params):
        return detsign(*aligned(args, batched))


@primitive
class detphase(_OfDeterminant):
    """det A / |det A| :  (...,n,n) -> (...); locally constant for real matrices."""

    def evaluate(self, xp, /, a, *f: Any):
        return detsign.evaluate(xp, a, *f)

    def jvp(self, y, primals, tangents, /):
        if not is_complex(y):
            return None
        turned = op("imag")(_against(inv(*primals), tangents[0]))
        return y * (1j * turned)  # i Im tr(A^-1 A_dot) y


# --- NumPy's functions --------------------------------------------------------------------------


def square(name: str, a: Shaped) -> Any:
    """The array in floating point; an error unless its last two axes are square."""
    a = as_floats(a)
    squares(name, a)
    return a


def squares(name: str, a: Shaped) -> ArrayType:
    """The type of an array whose last two axes are square; an error otherwise."""
    t = type_of(a)
    if t.ndim < 2 or t.shape[-1] != t.shape[-2]:
        raise ShapeError(f"{name}: takes square matrices, not {t}")
    return t


@implements(np.linalg.solve)
def np_solve(a, b):
    """The solution of A x = b, where b is a vector or a matrix."""
    a, b = square("solve", a), as_array(b)
    s, t = type_of(a), type_of(b)
    if not t.ndim or t.shape[-2 if t.ndim > 1 else -1] != s.shape[-1]:
        raise ShapeError(f"solve: {s} and {t} do not fit; b must have as many rows as the matrix")
    f = factors(a, np.result_type(s.dtype, t.dtype))
    if t.ndim > 1:
        return solve(a, b, *f)
    x = solve(a, op("reshape")(b, shape=(*t.shape, 1)), *f)
    return op("reshape")(x, shape=(*s.shape[:-2], *t.shape))


@implements(np.linalg.inv)
def np_inv(a):
    """The inverse of a square matrix."""
    return inv(square("inv", a))


@implements(np.linalg.det)
def np_det(a):
    """The determinant of a square matrix."""
    a = square("det", a)
    return det(a, *factors(a))


@implements(np.linalg.slogdet)
def slogdet(a):
    """(sign of det A, log |det A|); the sign is locally constant for real matrices."""
    a = square("slogdet", a)
    f = factors(a)
    sign = detphase(a, *f) if is_complex(a) else detsign(a, *f)
    return type(np.linalg.slogdet(np.eye(1)))(sign, logabsdet(a, *f))


@implements(np.linalg.tensorsolve)
def tensorsolve(a, b, axes=None):
    """x with tensordot(a, x, x.ndim) = b."""
    a, b = as_array(a), as_array(b)
    if axes is not None:
        last = normal_axes(axes, len(a.shape), "tensorsolve")
        a = np_transpose(a, (*(i for i in range(len(a.shape)) if i not in last), *last))
    shape = type_of(a).shape[type_of(b).ndim :]
    n = math.prod(shape)
    if type_of(a).size != n * n or type_of(b).size != n:
        raise ShapeError(
            f"tensorsolve: {type_of(a)} is no square matrix from the shape {shape} to that of "
            f"{type_of(b)}; the axes of b come first, and the others have as many elements"
        )
    return np_reshape(np_solve(np_reshape(a, (n, n)), np_reshape(b, (n,))), shape)


@implements(np.linalg.tensorinv)
def tensorinv(a, ind=2):
    """The inverse of a as a linear map from its last axes to its first `ind` axes."""
    shape = type_of(a).shape
    n = math.prod(shape[:ind])
    if ind <= 0 or math.prod(shape[ind:]) != n:
        raise ShapeError(
            f"tensorinv: the first {ind} axes of {type_of(a)} and the others differ in their "
            "numbers of elements; as a matrix it must be square"
        )
    return np_reshape(np_inv(np_reshape(a, (n, n))), (*shape[ind:], *shape[:ind]))
