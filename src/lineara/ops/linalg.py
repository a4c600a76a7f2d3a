"""Linear algebra: each states its jvp; reverse mode is the transpose of that text  [Giles 2008]."""

import math
from typing import Any

import numpy as np

from lineara.errors import NoRuleError, ShapeError
from lineara.ops.contract import matmul, swap
from lineara.ops.elementwise import root
from lineara.ops.index import linalg_trace
from lineara.ops.reduce import modulus_squared
from lineara.ops.shape import normal_axes
from lineara.primitive import (
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
from lineara.types import ArrayType, is_complex, type_of


def factoring(a: ArrayType, stack: tuple[int, ...]) -> int:
    """The operations of as many LU factorisations  :  2/3 n^3 for each."""
    n = a.shape[-1]
    return math.prod(stack) * (1 + is_complex(a)) * max(n, 2 * n**3 // 3)


@primitive
class linear_solve(Linear):
    """X with A X = B, linear in B :  (...,n,n), (...,n,k) -> (...,n,k).  Transpose: with A^T."""

    linear = (1,)

    def result(self, a, b):
        s, t = type_of(a), type_of(b)
        lead = np.broadcast_shapes(s.shape[:-2], t.shape[:-2])
        return ArrayType((*lead, *t.shape[-2:]), np.result_type(s.dtype, t.dtype))

    def evaluate(self, xp, /, a, b):
        return xp.linalg.solve(a, b)

    def arithmetic(self, y, args, params):
        return factoring(args[0], y.shape[:-2]) + 2 * args[0].shape[-1] * reals(y)

    def transpose(self, y_bar, /, a, b):
        return (unbroadcast(linear_solve(swap(conjugate(a)), y_bar), b),)  # B_bar = A^-T X_bar

    def linearize(self, y, args, active, params, recur):
        kind = solve if 0 in active else super()
        return kind.linearize(y, args, active, params, recur)

    def batch(self, args, batched, params):
        return linear_solve(*aligned(args, batched))


@primitive
class solve(General):
    """X with A X = B :  (...,n,n), (...,n,k) -> (...,n,k)   [Giles 2008, 2.2.3]."""

    linear = (1,)

    def result(self, a, b):
        return linear_solve.result(a, b)

    def evaluate(self, xp, /, a, b):
        return xp.linalg.solve(a, b)

    def arithmetic(self, y, args, params):
        return linear_solve.arithmetic(y, args, params)

    def jvp(self, y, primals, tangents, /):
        (a, _), (a_dot, b_dot) = primals, tangents
        right = None if a_dot is None else -matmul(a_dot, y)
        if b_dot is not None:
            right = b_dot if right is None else b_dot + right
        return linear_solve(a, right)  # X_dot = A^-1 (B_dot - A_dot X)

    def batch(self, args, batched, params):
        return solve(*aligned(args, batched))


@primitive
class inv(General):
    """A^-1 :  (...,n,n) -> (...,n,n)."""

    def result(self, a):
        return type_of(a)

    def evaluate(self, xp, /, a):
        return xp.linalg.inv(a)

    def arithmetic(self, y, args, params):
        return 3 * factoring(y, y.shape[:-2])

    def jvp(self, y, primals, tangents, /):
        return -matmul(matmul(y, tangents[0]), y)  # Y_dot = -Y A_dot Y

    def batch(self, args, batched, params):
        return inv(*args)


@primitive
class det(General):
    """The determinant :  (...,n,n) -> (...); the derivative needs a regular matrix."""

    def result(self, a):
        t = type_of(a)
        return ArrayType(t.shape[:-2], t.dtype)

    def evaluate(self, xp, /, a):
        return xp.linalg.det(a)

    def arithmetic(self, y, args, params):
        return factoring(args[0], y.shape) + reals(y) * args[0].shape[-1]

    def jvp(self, y, primals, tangents, /):
        return linalg_trace(linear_solve(primals[0], tangents[0])) * y  # y tr(A^-1 A_dot)

    def batch(self, args, batched, params):
        return det(*args)


@primitive
class logabsdet(General):
    """log |det A| :  (...,n,n) -> (...) for real A."""

    def result(self, a):
        return det.result(a)

    def evaluate(self, xp, /, a):
        return xp.linalg.slogdet(a)[1]

    def arithmetic(self, y, args, params):
        return det.arithmetic(y, args, params)

    def jvp(self, y, primals, tangents, /):
        return linalg_trace(linear_solve(primals[0], tangents[0]))  # tr(A^-1 A_dot)

    def batch(self, args, batched, params):
        return logabsdet(*args)


# --- NumPy's functions --------------------------------------------------------------------------


def _square(name: str, a: Any) -> Any:
    t = type_of(a)
    if t.ndim < 2 or t.shape[-1] != t.shape[-2]:
        raise ShapeError(f"{name}: takes square matrices, not {t}")
    return a


@implements(np.linalg.solve)
def np_solve(a, b):
    """The solution of A x = b; b a vector or a matrix."""
    s, t = type_of(_square("solve", a)), type_of(b)
    if not t.ndim or t.shape[-2 if t.ndim > 1 else -1] != s.shape[-1]:
        raise ShapeError(f"solve: {s} and {t} do not fit; b must have as many rows as the matrix")
    if t.ndim > 1:
        return solve(a, b)
    x = solve(a, op("reshape")(b, shape=(*t.shape, 1)))
    return op("reshape")(x, shape=(*s.shape[:-2], *t.shape))


@implements(np.linalg.inv)
def np_inv(a):
    """The inverse matrix."""
    return inv(_square("inv", a))


@implements(np.linalg.det)
def np_det(a):
    """The determinant."""
    return det(_square("det", a))


@implements(np.linalg.slogdet)
def slogdet(a):
    """The sign of the determinant, which is locally constant, and the logarithm of its modulus."""
    if is_complex(a):
        raise NoRuleError("slogdet: has a rule for real matrices only; np.linalg.det has for all")
    sign = op("sign")(det(_square("slogdet", a)))
    return type(np.linalg.slogdet(np.eye(1)))(sign, logabsdet(a))


@implements(np.linalg.norm)
def norm(x, ord=None, axis=None, keepdims=False):
    """Vector norms of every order, matrix norms by rows and columns; at 0 the slope is 0."""
    t = type_of(x)
    if axis is None and ord is not None and t.ndim > 2:
        raise ShapeError(f"norm: of order {ord!r} for {t}; say along which axis or two axes")
    along = normal_axes(axis, t.ndim, "norm")
    if len(along) == 2 and ord not in (None, "fro"):
        return _matrix_norm(x, ord, along, keepdims)
    return vector_norm(x, axis=along, keepdims=keepdims, ord=2 if ord in (None, "fro") else ord)


@implements(np.linalg.vector_norm)
def vector_norm(x, /, *, axis=None, keepdims=False, ord=2):
    """The norm of a vector, of any order; at 0 the slope is 0 by structure."""
    along = {"axis": normal_axes(axis, len(type_of(x).shape), "norm"), "keepdims": keepdims}
    if ord == 2:
        return root(op("sum")(modulus_squared(x), **along))
    if ord == 0:
        return op("sum")(op("not_equal")(x, 0).astype(float), **along)
    size = op("abs")(x)
    if abs(ord) == np.inf:
        return op("max" if ord > 0 else "min")(size, **along)
    if ord == 1:
        return op("sum")(size, **along)
    if ord < 0:
        return op("sum")(size**ord, **along) ** (1 / ord)
    return root(op("sum")(root(size, ord), **along), 1 / ord)


def _matrix_norm(x: Any, order: Any, axis: tuple[int, ...], keepdims: bool) -> Any:
    """The largest or smallest sum of moduli of a column (order 1, -1) or a row (inf, -inf)."""
    if order not in (1, -1, np.inf, -np.inf):
        raise NoRuleError(
            f"norm: the matrix norm of order {order!r} has no rule; 'fro', 1, -1, inf and -inf have"
        )
    inner, outer = axis if abs(order) == 1 else axis[::-1]
    sums = op("sum")(op("abs")(x), axis=(inner,), keepdims=True)
    found = op("max" if order > 0 else "min")(sums, axis=(outer,), keepdims=True)
    kept = tuple(n for i, n in enumerate(found.shape) if i not in axis)
    return found if keepdims else op("reshape")(found, shape=kept)


@implements(np.linalg.matrix_norm)
def matrix_norm(x, /, *, keepdims=False, ord="fro"):
    """The norm of the matrices in the last two axes."""
    return norm(x, ord, (-2, -1), keepdims)
