"""Linear algebra: each states its jvp; reverse mode is the transpose of that text  [Giles 2008]."""

from typing import Any

import numpy as np

from lineara.errors import NoRuleError, ShapeError
from lineara.ops.contract import _swap, matmul
from lineara.primitive import General, Linear, implements, op, primitive
from lineara.types import ArrayType, type_of


@primitive
class linear_solve(Linear):
    """X with A X = B for a fixed A :  (...,n,n), (...,n,k) -> (...,n,k).  Transpose: solve with A^T."""

    linear = (1,)

    def result(self, a, b):
        return ArrayType(type_of(b).shape, np.result_type(type_of(a).dtype, type_of(b).dtype))

    def evaluate(self, xp, /, a, b):
        return xp.linalg.solve(a, b)

    def transpose(self, y_bar, /, a, b):
        adjoint = _swap(op("conj")(a) if type_of(a).dtype.kind == "c" else a)
        return (linear_solve(adjoint, y_bar),)  # B_bar = A^-T X_bar

    def batch(self, args, batched, params):
        return linear_solve(*args)


@primitive
class solve(General):
    """X with A X = B :  (...,n,n), (...,n,k) -> (...,n,k)   [Giles 2008, 2.2.3]."""

    linear = (1,)

    def result(self, a, b):
        return linear_solve.result(a, b)

    def evaluate(self, xp, /, a, b):
        return xp.linalg.solve(a, b)

    def jvp(self, y, primals, tangents, /):
        (a, b), (a_dot, b_dot) = primals, tangents
        right = None if a_dot is None else -matmul(a_dot, y)
        if b_dot is not None:
            right = b_dot if right is None else b_dot + right
        return linear_solve(a, right)  # X_dot = A^-1 (B_dot - A_dot X)

    def batch(self, args, batched, params):
        return solve(*args)


@primitive
class inv(General):
    """A^-1 :  (...,n,n) -> (...,n,n)."""

    def result(self, a):
        return type_of(a)

    def evaluate(self, xp, /, a):
        return xp.linalg.inv(a)

    def jvp(self, y, primals, tangents, /):
        return -matmul(matmul(y, tangents[0]), y)  # Y_dot = -Y A_dot Y

    def batch(self, args, batched, params):
        return inv(*args)


# --- NumPy's functions --------------------------------------------------------------------------


@implements(np.linalg.solve)
def np_solve(a, b):
    """The solution of A x = b; b a vector or a matrix."""
    s, t = type_of(a), type_of(b)
    if (
        s.ndim < 2
        or s.shape[-1] != s.shape[-2]
        or t.ndim < 1
        or t.shape[-min(2, t.ndim)] != s.shape[-1]
    ):
        raise ShapeError(f"solve: {s} and {t} do not fit; the matrix must be square, with b's rows")
    if t.ndim > 1:
        return solve(a, b)
    return op("reshape")(
        solve(a, op("reshape")(b, shape=(*t.shape, 1))), shape=(*s.shape[:-2], *t.shape)
    )


@implements(np.linalg.inv)
def np_inv(a):
    """The inverse matrix."""
    return inv(a)


@implements(np.linalg.norm)
def norm(x, ord=None, axis=None, keepdims=False):  # noqa: A002
    """Vector norms of every order, and the Frobenius norm; at 0 the slope is 0 by structure."""
    t = type_of(x)
    axis = tuple(range(t.ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    size = op("abs")(x) if t.dtype.kind == "c" or ord not in (None, 2, "fro") else x
    matrix = len(axis) == 2 and ord is not None
    if matrix and ord != "fro":
        raise NoRuleError(
            f"norm: the matrix norm of order {ord!r} has no rule yet; 'fro' and all vector norms have"
        )
    if ord in (None, 2, "fro"):
        return _two_norm(size, axis, keepdims)
    if ord in (np.inf, -np.inf):
        return op("max" if ord > 0 else "min")(size, axis=axis, keepdims=keepdims)
    if ord == 0:
        return np.linalg.norm(np.asarray(op("not_equal")(x, 0), float), 0, axis, keepdims)
    if ord == 1:
        return op("sum")(size, axis=axis, keepdims=keepdims)
    return op("sum")(size**ord, axis=axis, keepdims=keepdims) ** (1 / ord)


def _two_norm(x: Any, axis: tuple[int, ...], keepdims: bool) -> Any:
    """The Euclidean norm; a zero vector is a kink, where we take the slope 0."""
    squares = op("sum")(x * x, axis=axis, keepdims=True)
    zero = op("equal")(squares, 0.0)
    length = op("where")(zero, 0.0, op("sqrt")(op("where")(zero, 1.0, squares)))
    if keepdims:
        return length
    kept = tuple(
        n
        for i, n in enumerate(type_of(x).shape)
        if i not in {j % len(type_of(x).shape) for j in axis}
    )
    return op("reshape")(length, shape=kept)
