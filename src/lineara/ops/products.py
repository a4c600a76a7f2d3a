"""NumPy's other products, written with matmul and einsum: dot, outer, tensordot, cross, kron."""

import re
from typing import Any

import numpy as np

from lineara.errors import ShapeError
from lineara.facts.hints import Shaped, Value
from lineara.facts.primitive import conjugate, implements, op
from lineara.facts.types import type_of
from lineara.ops.contract import LETTERS, chain, einsum, matmul
from lineara.ops.join import takes_arrays
from lineara.ops.linalg import square, squares
from lineara.ops.shape import as_array, expand_dims, moveaxis, normal_axes, roll, sizes


@implements(np.dot)
def dot(a, b, out=None):
    """NumPy's dot: a product of vectors, matrices or scalars."""
    a, b = as_array(a), as_array(b)
    s, t = type_of(a), type_of(b)
    if not s.ndim or not t.ndim:  # here a number of Python's counts as one of NumPy's
        dtype = np.result_type(s.dtype, t.dtype)
        a, b = (
            v if u.dtype == dtype else op("astype")(v, dtype=dtype) for v, u in ((a, s), (b, t))
        )
        return a * b
    if t.ndim <= 2:
        return matmul(a, b)
    return tensordot(a, b, ((s.ndim - 1,), (t.ndim - 2,)))


@implements(np.vdot)
def vdot(a, b):
    """Sum of conj(a) b over all elements."""
    flat = [op("reshape")(v, shape=(type_of(v).size,)) for v in (a, b)]
    return matmul(conjugate(flat[0]), flat[1])


@implements(np.inner)
def inner(a, b):
    """Sum of products over the last axes."""
    s, t = type_of(a), type_of(b)
    return a * b if not s.ndim or not t.ndim else tensordot(a, b, ((s.ndim - 1,), (t.ndim - 1,)))


@implements(np.outer, np.linalg.outer)
def outer(a, b, out=None):
    """All products of elements of a (rows) and b (columns)."""
    column = op("reshape")(a, shape=(type_of(a).size, 1))
    return column * op("reshape")(b, shape=(1, type_of(b).size))


@implements(np.tensordot, np.linalg.tensordot)
def tensordot(a, b, axes=2):
    """Sum of products over pairs of axes."""
    s, t = type_of(a), type_of(b)
    pair: Any = axes if np.ndim(axes) else (range(s.ndim - axes, s.ndim), range(axes))
    left, right = (normal_axes(v, w.ndim, "tensordot") for v, w in zip(pair, (s, t), strict=True))
    mine, yours = list(LETTERS[: s.ndim]), list(LETTERS[s.ndim : s.ndim + t.ndim])
    for i, j in zip(left, right, strict=True):
        if s.shape[i] != t.shape[j]:
            raise ShapeError(
                f"tensordot: axis {i} of {s} and axis {j} of {t} differ; summed axes must be equal"
            )
        yours[j] = mine[i]
    summed = {mine[i] for i in left}
    output = "".join(c for c in (*mine, *yours) if c not in summed)
    return einsum(a, b, subscripts=f"{''.join(mine)},{''.join(yours)}->{output}")


def along(ours: Any, signature: str, args: tuple[Any, ...], axes: Any) -> Any:
    """Apply a function of the last axes to the axes that `axes` names for arguments and result."""
    cores = [part.count(",") + 1 if part else 0 for part in re.findall(r"\((.*?)\)", signature)]
    named = [sizes(i) for i in axes]
    ends = [tuple(range(-len(i), 0)) for i in named]
    moved = [moveaxis(as_array(a), i, e) for a, i, e in zip(args, named, ends, strict=False)]
    y = ours(*moved)
    return moveaxis(y, ends[-1], named[-1]) if len(named) > len(args) and cores[-1] else y


def vecdot(x1: Value, x2: Value, /, *, axis: int = -1) -> Any:
    """Sum of conj(x1) x2 along an axis."""
    product = conjugate(x1) * x2
    return op("sum")(product, axis=normal_axes(axis, len(product.shape), "vecdot"), keepdims=False)


def matvec(x1: Value, x2: Value, /) -> Any:
    """Matrices times vectors, both in stacks."""
    return matmul(x1, expand_dims(x2, -1))[..., 0]


def vecmat(x1: Value, x2: Value, /) -> Any:
    """Conjugated row vectors times matrices, both in stacks."""
    return matmul(expand_dims(conjugate(x1), -2), x2)[..., 0, :]


for _function in (vecdot, matvec, vecmat):  # of NumPy 2.0 and 2.2
    if hasattr(np, _function.__name__):
        implements(getattr(np, _function.__name__))(_function)
implements(np.linalg.vecdot)(vecdot)


@implements(np.kron)
def kron(a, b):
    """Kronecker product of arrays of any rank."""
    s, t = type_of(a).shape, type_of(b).shape
    ndim = max(len(s), len(t))
    left, right = ((1,) * (ndim - len(v)) + v for v in (s, t))
    if 2 * ndim > len(LETTERS):
        raise ShapeError(f"kron: {ndim} axes; up to {len(LETTERS) // 2} have names")
    mine, yours = LETTERS[:ndim], LETTERS[ndim : 2 * ndim]
    paired = "".join(i + j for i, j in zip(mine, yours, strict=True))
    a, b = (op("reshape")(v, shape=shape) for v, shape in ((a, left), (b, right)))
    products = einsum(a, b, subscripts=f"{mine},{yours}->{paired}")
    shape = tuple(m * n for m, n in zip(left, right, strict=True))
    return op("reshape")(products, shape=shape)


@implements(np.cross, np.linalg.cross)
def cross(a, b, axisa=-1, axisb=-1, axisc=-1, axis=None):
    """The vector product; of two plane vectors only its third component is returned."""
    a, b = as_array(a), as_array(b)
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = moveaxis(a, axisa, -1), moveaxis(b, axisb, -1)
    lengths = type_of(a).shape[-1], type_of(b).shape[-1]
    if not {*lengths} <= {2, 3}:
        raise ShapeError(
            f"cross: takes vectors of length 3 or 2, not {type_of(a)} and {type_of(b)}"
        )
    if lengths == (2, 2):
        return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
    a, b = _in_space(a), _in_space(b)
    (a1, a2), (b1, b2) = ([roll(v, -i, -1) for i in (1, 2)] for v in (a, b))
    return moveaxis(a1 * b2 - a2 * b1, -1, axisc)


def _in_space(v: Shaped) -> Any:
    """The vectors with a third component 0 added to plane ones."""
    *lead, n = type_of(v).shape
    zeros = np.zeros((*lead, 3 - n), type_of(v).dtype)
    return v if n == 3 else op("concat")(v, zeros, axis=-1)


@takes_arrays(np.linalg.multi_dot)
def multi_dot(arrays, *, out=None):
    """The product of several matrices in the cheapest order; the first and last may be vectors."""
    arrays = [as_array(a) for a in arrays]
    if len(arrays) < 2:
        raise ShapeError(f"multi_dot: takes two arrays or more, not {len(arrays)}")
    row, column = type_of(arrays[0]).ndim == 1, type_of(arrays[-1]).ndim == 1
    arrays[0] = arrays[0][None, :] if row else arrays[0]
    arrays[-1] = arrays[-1][:, None] if column else arrays[-1]
    y = chain(*arrays)
    kept = slice(None)
    return y[0 if row else kept, 0 if column else kept] if row or column else y


@implements(np.linalg.matrix_power)
def matrix_power(a, n):
    """A square matrix to an integer power; a negative one takes the inverse."""
    if n < 0:
        return matrix_power(op("inv")(square("matrix_power", a)), -n)
    t = squares("matrix_power", a)
    if n == 0:
        return np.broadcast_to(np.eye(t.shape[-1], dtype=t.dtype), t.shape)
    if n == 1:
        return a
    half = matrix_power(a, n // 2)
    return matmul(matmul(half, half), a) if n % 2 else matmul(half, half)
