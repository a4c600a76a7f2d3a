"""The multilinear primitives matmul and einsum."""

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from lineara.errors import ShapeError
from lineara.facts.hints import DType, Namespace, Shaped, Value
from lineara.facts.primitive import (
    Multilinear,
    Outer,
    aligned,
    implements,
    op,
    primitive,
    reals,
    unbroadcast,
)
from lineara.facts.types import ArrayType, is_complex, type_of
from lineara.ops.index import taken
from lineara.ops.shape import as_array


def swap(a: Shaped) -> Any:
    """The array with its last two axes exchanged."""
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
        """The product; lists of numbers are converted to arrays, as NumPy does."""
        return super().__call__(*map(as_array, args), **params)

    def evaluate(self, xp, /, a, b):
        try:
            return xp.matmul(a, b)
        except ValueError:
            self.result(a, b)  # says which dimensions do not fit
            raise

    def text(self, a, b):
        return f"{a} @ {b}"

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
    """The number of multiplications and additions of sums of `products` products each."""
    return (1 + is_complex(y)) * max(0, len(args) * products - y.size)


def _column(v: Value) -> Any:
    """A vector as a matrix of one column."""
    return v[:, None] if type(v) is np.ndarray else op("reshape")(v, shape=(*type_of(v).shape, 1))


def _back(x_bar: Shaped, like: ArrayType, row: bool) -> Any:
    """The cotangent in the shape of the operand `like`.

    Sums over broadcast axes, and drops the row or column axis that a vector was given.
    """
    if like.ndim > 1:
        return unbroadcast(x_bar, like)
    shape = type_of(x_bar).shape
    kept = (*shape[:-2], shape[-1] if row else shape[-2])
    return unbroadcast(op("reshape")(x_bar, shape=kept), like)


def chain(*matrices: Any) -> Any:
    """The product of several matrices, or stacks, in the order that needs the fewest operations."""
    shapes = [type_of(m).shape for m in matrices]
    sizes = [*[s[-2] for s in shapes], shapes[-1][-1]]

    @functools.cache
    def cheapest(i: int, j: int) -> tuple[int, int]:
        """The least cost of the product of matrices i to j - 1, and the place of its last split."""
        halves = [(cheapest(i, k)[0] + cheapest(k, j)[0], k) for k in range(i + 1, j)]
        return min([(n + sizes[i] * sizes[k] * sizes[j], k) for n, k in halves], default=(0, i))

    def product(i: int, j: int) -> Any:
        k = cheapest(i, j)[1]
        return matrices[i] if j == i + 1 else matmul(product(i, k), product(k, j))

    return product(0, len(matrices))


def _einsum(xp: Namespace, subscripts: str, operands: Sequence[Any]) -> Any:
    """einsum by the functions of the array API: products over all letters, summed."""
    inputs, output = subscripts.split("->")
    letters = [*output, *sorted({c for c in inputs if c != ","} - {*output})]
    whole = None
    for own, x in zip(inputs.split(","), operands, strict=True):
        once = "".join(dict.fromkeys(own))
        if once != own:  # a letter twice: the diagonal
            steps = np.arange(math.prod(x.shape)).reshape(x.shape)
            places = np.einsum(f"{own}->{once}", steps)
            x = taken(xp, x, places)
        here = [c for c in letters if c in once]
        x = xp.permute_dims(x, tuple(once.index(c) for c in here))
        size = dict(zip(here, x.shape, strict=True))
        x = xp.reshape(x, tuple(size.get(c, 1) for c in letters))
        whole = x if whole is None else whole * x
    assert whole is not None, "it has operands"
    summed = tuple(range(len(output), len(letters)))
    return xp.sum(whole, axis=summed, dtype=whole.dtype) if summed else whole


@primitive
class einsum(Multilinear):
    """Einstein summation; the transpose exchanges one operand's letters with the result's."""

    def result(self, *operands, subscripts):
        types = [type_of(o) for o in operands]
        inputs, arrow, output = str(subscripts).partition("->")
        letters = inputs.split(",")
        fits = len(letters) == len(types) and all(
            [len(s) == t.ndim for s, t in zip(letters, types, strict=True)]
        )
        if not arrow or not fits or not set(output) <= set("".join(letters)) or _twice(output):
            shown = ", ".join(map(str, types))
            raise ShapeError(
                f"einsum: {subscripts!r} does not say what becomes of {shown}; "
                "write a letter for each axis, and those that are left once: 'ij,j->i'"
            )
        size = _lengths(letters, types)
        return ArrayType(tuple(size[c] for c in output), np.result_type(*(t.dtype for t in types)))

    def evaluate(self, xp, /, *operands, subscripts):
        if not hasattr(xp, "einsum"):
            return _einsum(xp, subscripts, operands)
        large = len(operands) > 2 or max(map(np.size, operands)) > PLANNED
        return xp.einsum(subscripts, *operands, optimize=large)

    def arithmetic(self, y, args, params):
        inputs = params["subscripts"].split("->")[0].split(",")
        products = math.prod(_lengths(inputs, args).values())
        diagonals = [t for s, t in zip(inputs, args, strict=True) if len(set(s)) < len(s)]
        return contraction(y, args, products) + sum(map(reals, diagonals))  # beside the products

    def transpose(self, place, y_bar, /, *operands, subscripts):
        inputs, output = subscripts.split("->")
        letters = inputs.split(",")
        like, mine = operands[place], letters[place]
        others = [
            (s, o) for i, (s, o) in enumerate(zip(letters, operands, strict=True)) if i != place
        ]
        elsewhere = set(output).union(*(s for s, _ in others)) if others else set(output)
        reach = "".join(dict.fromkeys(c for c in mine if c in elsewhere))
        text = ",".join([output, *(s for s, _ in others)]) + "->" + reach
        x_bar = einsum(y_bar, *(o for _, o in others), subscripts=text)
        return _place(x_bar, reach, mine, like)

    def batch(self, args, batched, params):
        inputs, output = params["subscripts"].split("->")
        new = next(c for c in LETTERS if c not in params["subscripts"])
        marked = [new + s if b else s for s, b in zip(inputs.split(","), batched, strict=True)]
        return einsum(*args, subscripts=f"{','.join(marked)}->{new}{output}")


def _lengths(letters: Sequence[str], types: Sequence[ArrayType]) -> dict[str, int]:
    """The length of the axis of each letter; an axis of length 1 broadcasts against length n."""
    size: dict[str, int] = {}
    for s, t in zip(letters, types, strict=True):
        for c, n in zip(s, t.shape, strict=True):
            size[c] = n if size.get(c, 1) == 1 else size[c]
            if n not in (1, size[c]):
                raise ShapeError(f"einsum: {c!r} is {size[c]} and {n}; a letter has one length")
    return size


def _twice(letters: str) -> bool:
    return len(set(letters)) < len(letters)


PLANNED = 1000  # elements; for a larger operand the order of the contraction is planned
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def _place(x_bar: Shaped, letters: str, wanted: str, like: ArrayType) -> Any:
    """The cotangent of an operand with the letters `wanted`, from x_bar with the axes `letters`.

    It is repeated along letters that only this operand has, and put on the diagonal of letters that
    occur twice in it.
    """
    distinct = "".join(dict.fromkeys(wanted))
    size = dict(zip(wanted, like.shape, strict=True))
    sizes = zip(type_of(x_bar).shape, letters, strict=True)
    fits = ArrayType(tuple(min(n, size[c]) for n, c in sizes), x_bar.dtype)
    x_bar = unbroadcast(x_bar, fits)  # a letter may stand for 1 in one operand and n in another
    shape = tuple(fits.shape[letters.index(c)] if c in letters else 1 for c in distinct)
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


def _as(a: Shaped, dtype: DType) -> Any:
    """An operand converted to the dtype that the caller asked for."""
    a = as_array(a)
    return a if dtype is None else op("astype")(a, dtype=np.dtype(dtype))


@implements(np.matmul, np.linalg.matmul)
def np_matmul(a, b, /):
    """Matrix product."""
    return matmul(a, b)


@implements(np.einsum_path)
def einsum_path(*operands, **options):
    """np.einsum_path of arrays that may be traced: it depends on shapes only."""
    return np.einsum_path(*map(_shaped, operands), **options)


def _shaped(operand: Shaped) -> Any:
    """An array of the operand's shape that takes no memory; subscripts and lists are returned."""
    shaped = hasattr(operand, "shape")
    return np.broadcast_to(0.0, type_of(operand).shape) if shaped else operand


@implements(np.einsum)
def np_einsum(*operands, out=None, optimize=False, dtype=None, order="K", casting="safe"):
    """Sum of products over letters, in every form of NumPy's."""
    subscripts, arrays = _letters(operands)
    arrays = [_as(a, dtype) for a in arrays]
    text = _explicit(subscripts, [type_of(a) for a in arrays])
    if len(arrays) < 3:
        return einsum(*arrays, subscripts=text)
    return _in_order(text, arrays, optimize)


def _in_order(text: str, arrays: list[Any], optimize: bool | str) -> Any:
    """An einsum of three or more operands as a chain of smaller ones, each with its transpose."""
    inputs, output = text.split("->")
    left = list(zip(inputs.split(","), arrays, strict=True))
    path = einsum_path(text, *arrays, optimize=optimize or "greedy")[0][1:]
    for places in path:
        taken = [left.pop(i) for i in sorted(places, reverse=True)]
        wanted = set(output).union(*[s for s, _ in left]) if left else None
        letters = dict.fromkeys(c for s, _ in taken for c in s)
        result = output if wanted is None else "".join(c for c in letters if c in wanted)
        step = ",".join(s for s, _ in taken) + "->" + result
        left.append((result, einsum(*[a for _, a in taken], subscripts=step)))
    return left[0][1]


def _letters(operands: tuple[Any, ...]) -> tuple[str, list[Any]]:
    """The subscripts as text, and the operands, from either form of np.einsum's arguments."""
    if isinstance(operands[0], str):
        return operands[0].replace(" ", ""), list(operands[1:])
    pairs = operands[: len(operands) // 2 * 2]

    def name(part: list[Any]) -> str:
        for i in part:
            if i is not Ellipsis and not 0 <= i < len(LETTERS):
                raise ShapeError(f"einsum: the subscript {i} is not in [0, {len(LETTERS)})")
        return "".join("..." if i is Ellipsis else LETTERS[i] for i in part)

    text = ",".join(map(name, pairs[1::2]))
    if len(operands) % 2:
        text += "->" + name(operands[-1])
    return text, list(pairs[0::2])


def _explicit(text: str, types: list[ArrayType]) -> str:
    """The subscripts with an explicit result and with letters in place of ellipses."""
    inputs, arrow, output = text.partition("->")
    parts = inputs.split(",")
    if len(parts) != len(types):
        raise ShapeError(
            f"einsum: {text!r} names {len(parts)} operands, but {len(types)} are given"
        )
    extra = [t.ndim - len(p.replace("...", "")) for p, t in zip(parts, types, strict=True)]
    dots = max((n for n, p in zip(extra, parts, strict=True) if "..." in p), default=0)
    filled = "".join([c for c in LETTERS if c not in text][:dots])
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
