"""Norms of vectors and matrices, condition numbers and ranks.  A norm's slope at 0 is 0."""

from typing import Any

import numpy as np

from lineara.errors import NoRuleError, ShapeError
from lineara.facts.hints import Namespace, Shaped
from lineara.facts.primitive import Box, Constant, implements, op
from lineara.facts.types import ArrayType, type_of
from lineara.ops import lapack
from lineara.ops.elementwise import real_dtype, root
from lineara.ops.linalg import square
from lineara.ops.reduce import modulus_squared
from lineara.ops.shape import as_array, as_floats, moveaxis, normal_axes
from lineara.ops.singular import np_svdvals


@implements(np.linalg.norm)
def norm(x, ord=None, axis=None, keepdims=False):
    """np.linalg.norm of vectors and matrices, of every order."""
    x = as_floats(x)
    t = type_of(x)
    if axis is None and ord is not None and t.ndim > 2:
        raise ShapeError(f"norm: of order {ord!r} for {t}; say along which axis or two axes")
    along = normal_axes(axis, t.ndim, "norm")
    euclidean = ord is None or (isinstance(ord, str) and ord == "fro")  # a traced order is neither
    if len(along) == 2 and not euclidean:
        return _matrix_norm(x, ord, along, keepdims)
    if len(along) > 2 and axis is not None:
        raise ShapeError(f"norm: along {len(along)} axes; a norm is of a vector or a matrix")
    if isinstance(ord, str) and (len(along) != 2 or ord != "fro"):
        raise ShapeError(f"norm: the order {ord!r} is one of matrices; give two axes")
    return vector_norm(x, axis=along, keepdims=keepdims, ord=2 if euclidean else ord)


@implements(np.linalg.vector_norm)
def vector_norm(x, /, *, axis=None, keepdims=False, ord=2):
    """The norm of a vector, of any order; its slope at 0 is a structural zero."""
    x = as_floats(x)
    along = {"axis": normal_axes(axis, len(type_of(x).shape), "norm"), "keepdims": keepdims}
    if isinstance(ord, Box):  # a traced order: the general formula
        return root(op("sum")(root(op("abs")(x), ord), **along), 1 / ord)
    if ord == 2:
        return root(op("sum")(modulus_squared(x), **along))
    if ord == 0:
        real = real_dtype(type_of(x).dtype)
        return op("sum")(op("not_equal")(x, 0).astype(real), **along)
    size = op("abs")(x)
    if abs(ord) == np.inf:
        return _largest(size, **along) if ord > 0 else op("min")(size, **along)
    if ord == 1:
        return op("sum")(size, **along)
    if ord < 0:
        return op("sum")(size**ord, **along) ** (1 / ord)
    return root(op("sum")(root(size, ord), **along), 1 / ord)


def _largest(x: Shaped, axis: tuple[int, ...], keepdims: bool) -> Any:
    """The largest of non-negative numbers; 0 if there are none."""
    if all(type_of(x).shape[i] for i in axis):
        return op("max")(x, axis=axis, keepdims=keepdims)
    return op("sum")(x, axis=axis, keepdims=keepdims)


def _matrix_norm(x: Shaped, order: Any, axis: tuple[int, ...], keepdims: bool) -> Any:
    """The matrix norm of an order, from singular values or from sums over rows or columns."""
    if order in (2, -2, "nuc"):
        s = np_svdvals(moveaxis(x, axis, (-2, -1)))
        last = (len(type_of(s).shape) - 1,)
        choose = {2: _largest, -2: op("min"), "nuc": op("sum")}[order]
        y = choose(s, axis=last, keepdims=False)
    elif order in (1, -1, np.inf, -np.inf):
        inner, outer = axis if abs(order) == 1 else axis[::-1]
        sums = op("sum")(op("abs")(x), axis=(inner,), keepdims=True)
        choose = _largest if order > 0 else op("min")
        largest = choose(sums, axis=(outer,), keepdims=True)
        y = op("reshape")(
            largest, shape=tuple(n for i, n in enumerate(largest.shape) if i not in axis)
        )
    else:
        raise NoRuleError(
            f"norm: there is no matrix norm of order {order!r}; "
            "'fro', 'nuc', 1, -1, 2, -2, inf and -inf are"
        )
    if not keepdims:
        return y
    shape = tuple(1 if i in axis else n for i, n in enumerate(type_of(x).shape))
    return op("reshape")(y, shape=shape)


@implements(np.linalg.matrix_norm)
def matrix_norm(x, /, *, keepdims=False, ord="fro"):
    """The norm of the matrices in the last two axes."""
    return norm(x, ord, (-2, -1), keepdims)


@implements(np.linalg.cond)
def cond(x, p=None):
    """The condition number: the norm of a matrix times that of its inverse."""
    x = as_floats(x)
    with np.errstate(all="ignore"):
        if p in (None, 2, -2):
            s = np_svdvals(x)
            ratio = s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
        else:
            t = type_of(square("cond", x)).dtype
            wide = op("astype")(x, dtype=np.result_type(t, float))
            axes = (-2, -1)
            ratio = norm(x, p, axes) * norm(op("inv_or_nan")(wide), p, axes)
            ratio = op("astype")(ratio, dtype=real_dtype(t))
        lost = np.isnan(ratio) & ~np.any(np.isnan(x), axis=(-2, -1))
        whole = not isinstance(lost, Box) and not np.any(lost)
        return ratio if whole else op("where")(lost, np.inf, ratio)


class MatrixRank(Constant):
    """The number of singular values above a tolerance, which is locally constant."""

    raised: tuple[type[Exception], ...] = lapack.FAILS
    host = True  # elsewhere there is no absolute tolerance, and no word for a Hermitian matrix

    def result(self, *args: Any, **params: Any) -> ArrayType:
        return ArrayType(type_of(args[0]).shape[:-2], np.dtype(np.int64))

    def evaluate(
        self,
        xp: Namespace,
        /,
        a: np.ndarray,
        *cut: Any,
        relative: bool = False,
        hermitian: bool = False,
    ) -> Any:
        tol, rtol = (None, *cut) if relative else ((*cut, None) if cut else (None, None))
        return np.linalg.matrix_rank(a, tol, hermitian, rtol=rtol)


_rank = MatrixRank("matrix_rank")


@implements(np.linalg.matrix_rank)
def matrix_rank(A, tol=None, hermitian=False, *, rtol=None):
    """The number of singular values above a tolerance, or above a share of the largest."""
    if tol is not None and rtol is not None:
        raise ValueError("`tol` and `rtol` can't be both set.")
    cut = [as_array(v) for v in (tol, rtol) if v is not None]
    return _rank(as_array(A), *cut, relative=rtol is not None, hermitian=bool(hermitian))
