"""Contractions: matmul and einsum are multilinear; dot, outer and the rest are written so."""

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from lineara.errors import ShapeError
from lineara.ops.join import takes_arrays
from lineara.ops.shape import as_array, expand_dims, moveaxis, normal_axes
from lineara.primitive import (
    Multilinear,
    Outer,
    aligned,
    conjugate,
    implements,
    op,
    primitive,
    reals,
    unbroadcast,
)
from lineara.types import ArrayType, is_complex, type_of


def swap(a: Any) -> Any:
    """The last two axes exchanged."""
    if type(a) is np.ndarray:
        return a.swapaxes(-1, -2)
    n = len(type_of(a).shape)
    return op("permute_dims")(a, axes=(*range(n - 2), n - 1, n - 2))


@primitive
class matmul(Multilinear):
    """Matrix product  C = A B :  (...,m,k), (...,k,n) -> (...,m,n);  vectors as in NumPy."""

    def result(self, a, b):
        s, t = type_of(a), type_of(b)
        inner = (s.shape[-1:], t.shape[-2:-1] if t.ndim > 1 else t.shape[-1:])
        if not s.ndim or not t.ndim or inner[0] != inner[1]:
            raise ShapeError(
                f"matmul: {s} @ {t} does not compose; "
                "the last dimension of the left must equal the first of the right"
            )
        try:
            lead = np.broadcast_shapes(s.shape[:-2], t.shape[:-2])
        except ValueError:
            raise ShapeError(
                f"matmul: cannot broadcast the stacks of matrices {s} and {t}; "
                "leading dimensions must be equal or 1"
            ) from None
        shape = (*lead, *s.shape[-2:-1], *(t.shape[-1:] if t.ndim > 1 else ()))
        return ArrayType(shape, np.result_type(s.dtype, t.dtype))

    def __call__(self, *args: Any, **params: Any) -> Any:
        """Lists of numbers are arrays, as for NumPy."""
        return super().__call__(*map(as_array, args), **params)

    def evaluate(self, xp, /, a, b):
        try:
            return xp.matmul(a, b)
        except ValueError:
            self.result(a, b)  # says which dimensions do not fit
            raise

    def arithmetic(self, y, args, params):
        return contraction(y, args, y.size * args[0].shape[-1])

    def transpose(self, place, y_bar, /, a, b):
        s, t = type_of(a), type_of(b)
        if s.ndim == 1 and t.ndim == 1:
            return y_bar * (b if place == 0 else a)
        if place == 1 and s.ndim == 2 and t.ndim == 1:
            return matmul(swap(a), y_bar)  # b_bar = A^T y_bar
        shape = type_of(y_bar).shape
        if s.ndim == 1:  # y = a B : restore the row
            y_bar = op("reshape")(y_bar, shape=(*shape[:-1], 1, shape[-1]))
        if t.ndim == 1:  # y = A b : restore the column
            y_bar = op("reshape")(y_bar, shape=(*shape, 1))
        if place == 0:  # A_bar = C_bar B^T
            other = op("reshape")(b, shape=(1, *t.shape)) if t.ndim == 1 else swap(b)
            return _back(matmul(y_bar, other), a, row=True)
        other = op("reshape")(a, shape=(*s.shape, 1)) if s.ndim == 1 else swap(a)
        return _back(matmul(other, y_bar), b, row=False)  # B_bar = A^T C_bar

    def work(self, y, args, params):
        return 2 * getattr(y, "size", 1) * args[0].shape[-1]

    def builder(self, place, y_bar, types, args):
        s, t = types
        if s.dtype.kind + t.dtype.kind != "ff":
            return None
        if place:
            return (
                Outer(_column(args[0]), _column(y_bar))
                if len(s.shape) == 1 == len(t.shape) - 1
                else None
            )
        if len(s.shape) != 2 or len(t.shape) > 2:
            return None
        if len(t.shape) == 2:
            return Outer(y_bar, args[1])
        return Outer(_column(y_bar), _column(args[1]))

    def batch(self, args, batched, params):
        a, b = args
        row, column = (len(v.shape) - m == 1 for v, m in zip(args, batched, strict=True))
        if row:
            a = op("reshape")(a, shape=(*a.shape[:-1], 1, a.shape[-1]))
        if column:
            b = op("reshape")(b, shape=(*b.shape, 1))
        y = matmul(*aligned((a, b), batched))
        shape = list(type_of(y).shape)
        if row:
            del shape[-2]
        if column:
            del shape[-1]
        return op("reshape")(y, shape=tuple(shape))


def contraction(y: ArrayType, args: tuple[ArrayType, ...], products: int) -> int:
    """The multiplications and additions of sums of products; a sum of none has none."""
    return (1 + is_complex(y)) * max(0, len(args) * products - y.size)


def _column(v: Any) -> Any:
    """A vector as a matrix of one column."""
    return v[:, None] if type(v) is np.ndarray else op("reshape")(v, shape=(*type_of(v).shape, 1))


def _back(x_bar: Any, like: ArrayType, row: bool) -> Any:
    """Sum over broadcast axes and drop the row or column that a vector was given."""
    if like.ndim > 1:
        return unbroadcast(x_bar, like)
    shape = type_of(x_bar).shape
    kept = (*shape[:-2], shape[-1] if row else shape[-2])
    return unbroadcast(op("reshape")(x_bar, shape=kept), like)


@primitive
class einsum(Multilinear):
    """Sum of products over letters; the transpose exchanges an operand's with the result's."""

    def result(self, *operands, subscripts):
        types = [type_of(o) for o in operands]
        inputs, output = subscripts.split("->")
        size = _lengths(inputs.split(","), types)
        return ArrayType(tuple(size[c] for c in output), np.result_type(*(t.dtype for t in types)))

    def evaluate(self, xp, /, *operands, subscripts):
        large = len(operands) > 2 or max(map(np.size, operands)) > PLANNED
        return xp.einsum(subscripts, *operands, optimize=large)

    def arithmetic(self, y, args, params):
        inputs = params["subscripts"].split("->")[0].split(",")
        products = math.prod(_lengths(inputs, args).values())
        diagonals = [t for s, t in zip(inputs, args, strict=True) if len(set(s)) < len(s)]
        return contraction(y, args, products) + sum(map(reals, diagonals))  # the rest is forgotten

    def transpose(self, place, y_bar, /, *operands, subscripts):
        inputs, output = subscripts.split("->")
        letters = inputs.split(",")
        like, mine = operands[place], letters[place]
        others = [
            (s, o) for i, (s, o) in enumerate(zip(letters, operands, strict=True)) if i != place
        ]
        known = set(output).union(*(s for s, _ in others)) if others else set(output)
        reach = "".join(dict.fromkeys(c for c in mine if c in known))
        text = ",".join([output, *(s for s, _ in others)]) + "->" + reach
        x_bar = einsum(y_bar, *(o for _, o in others), subscripts=text)
        return _place(x_bar, reach, mine, like)

    def batch(self, args, batched, params):
        inputs, output = params["subscripts"].split("->")
        new = next(c for c in _LETTERS if c not in params["subscripts"])
        marked = [new + s if b else s for s, b in zip(inputs.split(","), batched, strict=True)]
        return einsum(*args, subscripts=f"{','.join(marked)}->{new}{output}")


def _lengths(letters: Sequence[str], types: Sequence[ArrayType]) -> dict[str, int]:
    """The length that each letter stands for; 1 in one operand may be n in another."""
    size: dict[str, int] = {}
    for s, t in zip(letters, types, strict=True):
        for c, n in zip(s, t.shape, strict=True):
            size[c] = n if size.get(c, 1) == 1 else size[c]
    return size


PLANNED = 1000  # operands larger than this are worth the time to plan a contraction
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def _place(x_bar: Any, found: str, wanted: str, like: ArrayType) -> Any:
    """Spread x_bar over letters that only the operand had, and onto diagonals of repeated ones."""
    distinct = "".join(dict.fromkeys(wanted))
    size = dict(zip(wanted, like.shape, strict=True))
    sizes = zip(type_of(x_bar).shape, found, strict=True)
    fits = ArrayType(tuple(min(n, size[c]) for n, c in sizes), x_bar.dtype)
    x_bar = unbroadcast(x_bar, fits)  # a letter may stand for 1 in one operand and n in another
    shape = tuple(fits.shape[found.index(c)] if c in found else 1 for c in distinct)
    x_bar = op("reshape")(x_bar, shape=shape)
    full = tuple(size[c] for c in distinct)
    if shape != full:
        x_bar = op("broadcast_to")(x_bar, shape=full)
    if distinct == wanted:
        return x_bar
    grid = np.ogrid[tuple(slice(n) for n in full)]
    at = tuple(grid[distinct.index(c)] for c in wanted)
    return op("scatter")(x_bar, at=at, shape=like.shape)


# --- NumPy's functions --------------------------------------------------------------------------


@implements(np.matmul)
def np_matmul(a, b, out=None):
    """Matrix product."""
    return matmul(a, b)


@implements(np.einsum)
def np_einsum(*operands, out=None, optimize=False, **options):
    """Sum of products over letters, in every form of NumPy's."""
    subscripts, arrays = _letters(operands)
    return einsum(*arrays, subscripts=_explicit(subscripts, [type_of(a) for a in arrays]))


def _letters(operands: tuple) -> tuple[str, list[Any]]:
    """Subscripts as text; the form with lists of integers is turned into it."""
    if isinstance(operands[0], str):
        return operands[0].replace(" ", ""), list(operands[1:])
    pairs = operands[: len(operands) // 2 * 2]

    def name(part: Any) -> str:
        return "".join("..." if i is Ellipsis else _LETTERS[i] for i in part)

    text = ",".join(map(name, pairs[1::2]))
    if len(operands) % 2:
        text += "->" + name(operands[-1])
    return text, list(pairs[0::2])


def _explicit(text: str, types: list[ArrayType]) -> str:
    """Subscripts with a right side and without ellipses."""
    inputs, arrow, output = text.partition("->")
    parts = inputs.split(",")
    if len(parts) != len(types):
        raise ShapeError(
            f"einsum: {text!r} names {len(parts)} operands, but {len(types)} are given"
        )
    extra = [t.ndim - len(p.replace("...", "")) for p, t in zip(parts, types, strict=True)]
    dots = max((n for n, p in zip(extra, parts, strict=True) if "..." in p), default=0)
    filled = "".join([c for c in _LETTERS if c not in text][:dots])
    if not arrow:
        once = inputs.replace("...", "").replace(",", "")
        output = "..." + "".join(sorted(c for c in set(once) if once.count(c) == 1))
    elif dots and "..." not in output:
        raise ShapeError(f"einsum: {text!r} has ... on its left side only; write it on both")
    named = [
        p.replace("...", filled[dots - n :] if n > 0 else "")
        for p, n in zip(parts, extra, strict=True)
    ]
    for p, t in zip(named, types, strict=True):
        if len(p) != t.ndim:
            raise ShapeError(f"einsum: {text!r} gives {len(p)} letters to {t}")
    _check_letters(text, named, types, output.replace("...", ""))
    return ",".join(named) + "->" + output.replace("...", filled)


def _check_letters(text: str, named: list[str], types: list[ArrayType], output: str) -> None:
    """Refuse a letter with two lengths, and one of the result that no operand has."""
    length: dict[str, int] = {}
    pairs = [zip(p, t.shape, strict=True) for p, t in zip(named, types, strict=True)]
    for letter, n in [pair for each in pairs for pair in each]:
        if length.setdefault(letter, n) != n and 1 not in (n, length[letter]):
            raise ShapeError(
                f"einsum: {text!r} gives the letter {letter} the lengths {length[letter]} and {n}; "
                "a letter has one length"
            )
    for letter in output:
        if letter not in length:
            raise ShapeError(
                f"einsum: {text!r} has the letter {letter} in its result but in no operand"
            )


@implements(np.dot)
def dot(a, b, out=None):
    """NumPy's dot: a product of vectors, matrices or scalars."""
    a, b = as_array(a), as_array(b)
    s, t = type_of(a), type_of(b)
    if not s.ndim or not t.ndim:
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
    mine, yours = list(_LETTERS[: s.ndim]), list(_LETTERS[s.ndim : s.ndim + t.ndim])
    for i, j in zip(left, right, strict=True):
        if s.shape[i] != t.shape[j]:
            raise ShapeError(
                f"tensordot: axis {i} of {s} and axis {j} of {t} differ; summed axes must be equal"
            )
        yours[j] = mine[i]
    summed = {mine[i] for i in left}
    output = "".join(c for c in (*mine, *yours) if c not in summed)
    return einsum(a, b, subscripts=f"{''.join(mine)},{''.join(yours)}->{output}")


def vecdot(x1, x2, /, *, axis=-1):
    """Sum of conj(x1) x2 along an axis."""
    product = conjugate(x1) * x2
    return op("sum")(product, axis=normal_axes(axis, len(product.shape), "vecdot"), keepdims=False)


def matvec(x1, x2, /):
    """Matrices times vectors, both in stacks."""
    return matmul(x1, expand_dims(x2, -1))[..., 0]


def vecmat(x1, x2, /):
    """Conjugated row vectors times matrices, both in stacks."""
    return matmul(expand_dims(conjugate(x1), -2), x2)[..., 0, :]


for _function in (vecdot, matvec, vecmat):  # of NumPy 2.0 and 2.2
    if hasattr(np, _function.__name__):
        implements(getattr(np, _function.__name__))(_function)
implements(np.linalg.vecdot)(vecdot)
implements(np.linalg.matmul)(np_matmul)


@implements(np.kron)
def kron(a, b):
    """Kronecker product of arrays of any rank."""
    s, t = type_of(a).shape, type_of(b).shape
    ndim = max(len(s), len(t))
    left, right = ((1,) * (ndim - len(v)) + v for v in (s, t))
    rows = op("reshape")(a, shape=tuple(n for m in left for n in (m, 1)))
    columns = op("reshape")(b, shape=tuple(n for m in right for n in (1, m)))
    shape = tuple(m * n for m, n in zip(left, right, strict=True))
    return op("reshape")(rows * columns, shape=shape)


@implements(np.cross, np.linalg.cross)
def cross(a, b, axisa=-1, axisb=-1, axisc=-1, axis=None):
    """Vector product of vectors of length 3."""
    a, b = as_array(a), as_array(b)
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = moveaxis(a, axisa, -1), moveaxis(b, axisb, -1)
    if type_of(a).shape[-1] != 3 or type_of(b).shape[-1] != 3:
        raise ShapeError(
            f"cross: takes vectors of length 3, not {type_of(a)} and {type_of(b)}; "
            "write the product of plane vectors as a[0] * b[1] - a[1] * b[0]"
        )
    turn = [np.array([1, 2, 0]), np.array([2, 0, 1])]
    (a1, a2), (b1, b2) = ([op("index")(v, at=(..., i)) for i in turn] for v in (a, b))
    return moveaxis(a1 * b2 - a2 * b1, -1, axisc)


@takes_arrays(np.linalg.multi_dot)
def multi_dot(arrays, *, out=None):
    """The product of several matrices, from the left."""
    return functools.reduce(matmul, map(as_array, arrays))


@implements(np.linalg.matrix_power)
def matrix_power(a, n):
    """A matrix times itself, n times; of the inverse for a negative n."""
    if n < 0:
        return matrix_power(op("inv")(a), -n)
    half = None if n < 2 else matrix_power(a, n // 2)
    if half is None:
        return a if n else np.broadcast_to(np.eye(a.shape[-1]), a.shape)
    return matmul(matmul(half, half), a) if n % 2 else matmul(half, half)
