"""Contractions: matmul and einsum are multilinear; dot, outer and the rest are written with them."""

from typing import Any

import numpy as np

from lineara.errors import ShapeError
from lineara.primitive import Multilinear, Outer, conjugate, implements, op, primitive, unbroadcast
from lineara.types import ArrayType, type_of


def _swap(a: Any) -> Any:
    """The last two axes exchanged."""
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
        lead = np.broadcast_shapes(s.shape[:-2], t.shape[:-2])
        shape = (*lead, *s.shape[-2:-1], *(t.shape[-1:] if t.ndim > 1 else ()))
        return ArrayType(shape, np.result_type(s.dtype, t.dtype))

    def evaluate(self, xp, /, a, b):
        try:
            return xp.matmul(a, b)
        except ValueError:
            self.result(a, b)  # says which dimensions do not fit
            raise

    def transpose(self, place, y_bar, /, a, b):
        s, t = type_of(a), type_of(b)
        if s.ndim == 1 and t.ndim == 1:
            return y_bar * (b if place == 0 else a)
        if s.ndim == 1:  # y = a B : restore the row
            y_bar = op("reshape")(
                y_bar, shape=(*type_of(y_bar).shape[:-1], 1, type_of(y_bar).shape[-1])
            )
        if t.ndim == 1:  # y = A b : restore the column
            y_bar = op("reshape")(y_bar, shape=(*type_of(y_bar).shape, 1))
        if place == 0:  # A_bar = C_bar B^T
            other = op("reshape")(b, shape=(1, *t.shape)) if t.ndim == 1 else _swap(b)
            return _back(matmul(y_bar, other), a, row=True)
        other = op("reshape")(a, shape=(*s.shape, 1)) if s.ndim == 1 else _swap(a)
        return _back(matmul(other, y_bar), b, row=False)  # B_bar = A^T C_bar

    def work(self, y, args, params):
        return 2 * type_of(y).size * type_of(args[0]).shape[-1]

    def builder(self, place, y_bar, /, a, b):
        s, t = type_of(a), type_of(b)
        real = s.dtype.kind == t.dtype.kind == "f"
        if place or s.ndim != 2 or t.ndim > 2 or not real:
            return None
        if t.ndim == 2:
            return Outer(y_bar, b)
        return Outer(*(op("reshape")(v, shape=(type_of(v).size, 1)) for v in (y_bar, b)))

    def batch(self, args, batched, params):
        a, b = args
        rows, column = len(a.shape) - batched[0], len(b.shape) - batched[1]
        if rows == 1:
            a = op("reshape")(a, shape=(*a.shape[:-1], 1, a.shape[-1]))
        if column == 1:
            b = op("reshape")(b, shape=(*b.shape, 1))
        lead = max(rows, column, 2) - 2
        a, b = (_lead(v, m, lead) if m else v for v, m in zip((a, b), batched, strict=True))
        y = matmul(a, b)
        keep = list(type_of(y).shape)
        if column == 1:
            del keep[-1]
        if rows == 1:
            del keep[-2 if column != 1 else -1]
        return op("reshape")(y, shape=tuple(keep))


def _lead(a: Any, batched: bool, lead: int) -> Any:
    """Unit axes after the batch axis, so that both operands have `lead` stacking axes."""
    missing = lead - (len(a.shape) - batched - 2)
    return (
        a if missing <= 0 else op("reshape")(a, shape=(a.shape[0], *(1,) * missing, *a.shape[1:]))
    )


def _back(x_bar: Any, like: ArrayType, row: bool) -> Any:
    """Sum over broadcast axes and drop the row or column that a vector was given."""
    if like.ndim > 1:
        return unbroadcast(x_bar, like)
    shape = type_of(x_bar).shape
    kept = (*shape[:-2], shape[-1] if row else shape[-2])
    return unbroadcast(op("reshape")(x_bar, shape=kept), like)


@primitive
class einsum(Multilinear):
    """Sum of products over letters; the transpose exchanges an operand's letters with the result's."""

    def evaluate(self, xp, /, *operands, subscripts):
        return xp.einsum(subscripts, *operands, optimize=len(operands) > 2)

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


_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def _place(x_bar: Any, found: str, wanted: str, like: ArrayType) -> Any:
    """Spread x_bar over letters that only the operand had, and onto diagonals of repeated ones."""
    distinct = "".join(dict.fromkeys(wanted))
    size = dict(zip(wanted, like.shape, strict=True))
    shape = tuple(size[c] if c in found else 1 for c in distinct)
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
    return einsum(*arrays, subscripts=_explicit(subscripts, arrays))


def _letters(operands: tuple) -> tuple[str, list[Any]]:
    """Subscripts as text; the form with lists of integers is turned into it."""
    if isinstance(operands[0], str):
        return operands[0].replace(" ", ""), list(operands[1:])
    pairs = operands[: len(operands) // 2 * 2]
    name = lambda part: "".join("..." if i is Ellipsis else _LETTERS[i] for i in part)  # noqa: E731
    text = ",".join(name(part) for part in pairs[1::2])
    if len(operands) % 2:
        text += "->" + name(operands[-1])
    return text, list(pairs[0::2])


def _explicit(text: str, arrays: list[Any]) -> str:
    """Subscripts with a right side and without ellipses."""
    inputs, arrow, output = text.partition("->")
    parts = inputs.split(",")
    if len(parts) != len(arrays):
        raise ShapeError(
            f"einsum: {text!r} names {len(parts)} operands, but {len(arrays)} are given"
        )
    spare = [c for c in _LETTERS if c not in text]
    extra = [
        len(type_of(a).shape) - len(p.replace("...", ""))
        for p, a in zip(parts, arrays, strict=True)
    ]
    dots = max((n for n, p in zip(extra, parts, strict=True) if "..." in p), default=0)
    filled = "".join(spare[:dots])
    named = [
        p.replace("...", filled[dots - n :] if "..." in p else "")
        for p, n in zip(parts, extra, strict=True)
    ]
    if not arrow:
        flat = "".join(p.replace("...", "") for p in parts)
        output = ("..." if dots else "") + "".join(
            sorted(c for c in set(flat) if flat.count(c) == 1)
        )
    for p, a in zip(named, arrays, strict=True):
        if len(p) != len(type_of(a).shape):
            raise ShapeError(f"einsum: {text!r} gives {len(p)} letters to {type_of(a)}")
    return ",".join(named) + "->" + output.replace("...", filled)


@implements(np.dot)
def dot(a, b, out=None):
    """NumPy's dot: a product of vectors, matrices or scalars."""
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
    return matmul(op("conj")(flat[0]) if type_of(a).dtype.kind == "c" else flat[0], flat[1])


@implements(np.inner)
def inner(a, b):
    """Sum of products over the last axes."""
    s, t = type_of(a), type_of(b)
    return a * b if not s.ndim or not t.ndim else tensordot(a, b, ((s.ndim - 1,), (t.ndim - 1,)))


@implements(np.outer)
def outer(a, b, out=None):
    """All products of elements of a (rows) and b (columns)."""
    column = op("reshape")(a, shape=(type_of(a).size, 1))
    return column * op("reshape")(b, shape=(1, type_of(b).size))


@implements(np.tensordot)
def tensordot(a, b, axes=2):
    """Sum of products over pairs of axes."""
    s, t = type_of(a), type_of(b)
    if isinstance(axes, int):
        axes = (range(s.ndim - axes, s.ndim), range(axes))
    left, right = (
        [int(i) for i in np.atleast_1d(list(v) if isinstance(v, range) else v)] for v in axes
    )
    names = list(_LETTERS[: s.ndim + t.ndim])
    mine, yours = names[: s.ndim], names[s.ndim :]
    for i, j in zip(left, right, strict=True):
        if s.shape[i] != t.shape[j]:
            raise ShapeError(
                f"tensordot: axis {i} of {s} and axis {j} of {t} differ; summed axes must be equal"
            )
        yours[j] = mine[i]
    summed = {mine[i] for i in left}
    output = "".join(c for c in (*mine, *yours) if c not in summed)
    return einsum(a, b, subscripts=f"{''.join(mine)},{''.join(yours)}->{output}")


@implements(np.kron)
def kron(a, b):
    """Kronecker product of matrices or vectors."""
    s, t = type_of(a), type_of(b)
    ndim = max(s.ndim, t.ndim)
    left, right = ((1,) * (ndim - v.ndim) + v.shape for v in (s, t))
    grid = (
        [n for i in range(ndim) for n in (left[i], 1)],
        [n for i in range(ndim) for n in (1, right[i])],
    )
    product = op("reshape")(a, shape=tuple(grid[0])) * op("reshape")(b, shape=tuple(grid[1]))
    return op("reshape")(product, shape=tuple(m * n for m, n in zip(left, right, strict=True)))


@implements(np.cross)
def cross(a, b, axisa=-1, axisb=-1, axisc=-1, axis=None):
    """Vector product of vectors of length 3 along the last axis."""
    if (axis, axisa, axisb, axisc) != (None, -1, -1, -1) or type_of(a).shape[-1:] != (3,):
        raise ShapeError("cross: only vectors of length 3 along the last axis have a rule")
    turn = [np.array([1, 2, 0]), np.array([2, 0, 1])]
    (a1, a2), (b1, b2) = ([op("index")(v, at=(..., i)) for i in turn] for v in (a, b))
    return a1 * b2 - a2 * b1
