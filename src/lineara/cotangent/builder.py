"""A builder: a cotangent under construction, summed once, when it is read  [Elsman 2022; downhill].

Builders of one shape are a commutative monoid with identity `Zero`.  Adding is O(1): a sum only
remembers its terms, and whoever reads it sums them, in order of position.  So associativity holds
exactly, commutativity up to rounding, and

    finish(a + b) == finish(a) + finish(b)          finish(Zero) == 0

A builder is immutable.  Like ndarrays it takes part in NumPy's operators and functions: what keeps
it sparse is done sparsely, anything else makes it dense, and says so when that is large.
"""

from collections.abc import Callable, Iterable, Sequence
from math import prod
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import DTypeLike

from lineara.cotangent import interop
from lineara.cotangent.algebra import ADDITIVE, Algebra
from lineara.cotangent.densify import warn_densify
from lineara.cotangent.pending_sum import Terms
from lineara.cotangent.scatter import Array, Ints, as_shape
from lineara.cotangent.sizes_as_text import show_shape
from lineara.errors import ShapeError, TypeMismatchError

How = Literal["fast", "exact"]
"""How a sum is made: in order of position, or as the true sum rounded once (slow, any order)."""


class Builder(Terms, Algebra):
    """What every builder of an array has: `shape`, `dtype`, the monoid, and NumPy's algebra."""

    __slots__ = ("_coalesced", "_terms", "dtype", "shape")
    __hash__ = None  # pyright: ignore[reportAssignmentType]  # equal by value, as an ndarray

    tag: ClassVar[str] = ""
    """The name of the class on the wire."""

    cellular: ClassVar[bool] = False
    """Whether the touched cells of a builder of this kind are no more than the numbers it holds."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    _terms: tuple["Builder", ...]
    _coalesced: Any

    def _begin(
        self, shape: Sequence[int], dtype: DTypeLike, terms: Iterable["Builder"] = ()
    ) -> None:
        self.shape, self.dtype = as_shape(shape), np.dtype(dtype)
        self._terms, self._coalesced = tuple(terms), None

    # ---- what a kind of builder says about itself

    def kind(self) -> Any:
        """Builders of equal kind merge into one of that kind."""
        return type(self)

    def args(self) -> tuple[Any, ...]:
        """What the class is called with to make this again."""
        raise NotImplementedError

    def summed(self, how: How) -> "Builder":
        """The same value with every sum done."""
        raise NotImplementedError

    def contributions(self) -> "Builder":
        """The unsummed terms cell by cell, as a builder of cells."""
        raise NotImplementedError

    def filled(self, dtype: np.dtype[Any]) -> Array:
        """The sum as a fresh array of `dtype`."""
        out = np.zeros(self.shape, dtype)
        self.add_into(out)
        return out

    def norm(self) -> float:
        """The Euclidean norm of all the numbers."""
        return float(np.linalg.norm(self.dense("norm").ravel()))

    def cells(self) -> tuple[Ints, Array]:
        """Sorted flat positions of the cells that are not 0, and what stands there."""
        flat = self.finish().ravel()
        where = np.flatnonzero(flat)
        return where, flat[where]

    def entries(self) -> tuple[Ints, Array]:
        """Coordinates (m, k) of touched cells, or slices of the first k dimensions; and values."""
        raise TypeMismatchError(
            f"{type(self).__name__} is no sparse tensor in other libraries; "
            "pass its fields, or np.asarray(g)"
        )

    @property
    def T(self) -> "Builder":
        """The builder with its axes in reverse order."""
        raise NotImplementedError

    # ---- the monoid

    @classmethod
    def merge(cls, terms: Sequence[Any]) -> Self:
        """The sum of builders of this kind: O(number of terms), nothing is added yet."""
        lazy = object.__new__(cls)
        lazy._begin(terms[0].shape, np.result_type(*{t.dtype for t in terms}), terms)
        lazy._inherit(terms[0])
        return lazy

    def _inherit(self, term: Any) -> None:
        """Take from a term what the sum has in common with it."""

    def plus(self, other: "Builder") -> "Builder":
        """`self + other`."""
        return total([self, other])

    def coalesce(self, sum: How = "fast") -> "Builder":
        """The same value with every sum done: once, then remembered; in order of position."""
        if sum == "exact":
            return self.summed(sum)
        if self._coalesced is None:
            result = self.summed(sum)
            if (
                result is self
            ):  # no reference to oneself, which only the garbage collector could free
                return self
            self._coalesced = result
        return self._coalesced

    def finish(self, like: Any = None, sum: How = "fast") -> Array:
        """The sum as a fresh writable C-contiguous ndarray, with the dtype of `like`."""
        dtype = self.dtype
        if like is not None:
            _same_shape(np.shape(like), self.shape)
            dtype = np.dtype(like.dtype if hasattr(like, "dtype") else np.result_type(like))
            self.check_cast(dtype)
        return (self.coalesce(sum) if sum == "exact" else self).filled(dtype)

    def check_cast(self, dtype: np.dtype[Any]) -> None:
        """Raise unless NumPy would cast the numbers to `dtype` in place."""
        if not np.can_cast(self.dtype, dtype, "same_kind"):
            raise TypeMismatchError(
                f"a cotangent of dtype {self.dtype} does not go into an array of dtype {dtype}; "
                f"take an array of dtype {np.result_type(self.dtype, dtype)}"
            )

    def dense(self, asked: str) -> Array:
        """The dense array, with a warning that `asked` needs it if it is large."""
        warn_densify(asked, self.shape, self.dtype)
        return self.finish()

    # ---- an array to look at

    ndim = property(lambda self: len(self.shape), doc="The number of dimensions.")
    size = property(lambda self: prod(self.shape), doc="The number of elements of the dense array.")
    nbytes = property(
        lambda self: sum(a.nbytes for leaf in self.addends() for a in leaf.arrays()),
        doc="The bytes held, which has nothing to do with the bytes of the dense array.",
    )

    def astype(self, dtype: DTypeLike) -> "Builder":
        """The same numbers in another dtype."""
        return self.map(lambda v: v.astype(dtype))

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise ValueError(f"{type(self).__name__} becomes an array only by a copy")
        dense = self.finish()
        return dense if dtype is None else dense.astype(dtype, copy=False)

    def __eq__(self, other: object) -> Any:
        if not isinstance(other, Builder):
            return NotImplemented
        if self.shape != other.shape:
            return False
        a, b = self.coalesce(), other.coalesce()
        alike = a.kind() == b.kind() != Sum
        if alike and all(map(np.array_equal, a.arrays(), b.arrays())):
            return True
        return all(map(np.array_equal, a.cells(), b.cells()))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self.args()

    # ---- other libraries

    def to_scipy(self) -> Any:
        """A `scipy.sparse.coo_array`."""
        return interop.to_scipy(*self.entries(), self.shape)

    def to_torch(self) -> Any:
        """A coalesced `torch.sparse_coo_tensor`."""
        return interop.to_torch(*self.entries(), self.shape)

    def to_jax(self) -> Any:
        """A `jax.experimental.sparse.BCOO`."""
        return interop.to_jax(*self.entries(), self.shape)

    def to_tf(self) -> Any:
        """`tf.IndexedSlices` for rows, otherwise a `tf.sparse.SparseTensor`."""
        return interop.to_tf(*self.entries(), self.shape)


def total(terms: Sequence[Builder]) -> Builder:
    """The sum of builders of one shape, in O(number of terms)."""
    for term in terms:
        _same_shape(term.shape, terms[0].shape)
    nonzero = [t for t in terms if not isinstance(t, Zero)]
    if len(nonzero) < 2:
        return (*nonzero, *terms)[0]
    kinds = {t.kind() for t in nonzero}
    return (type(nonzero[0]) if len(kinds) == 1 else Sum).merge(nonzero)


def _same_shape(shape: tuple[int, ...], wanted: tuple[int, ...]) -> None:
    if shape != wanted:
        raise ShapeError(
            f"cotangents of shapes {wanted} and {shape} do not add; their shapes must be equal"
        )


class Zero(Builder):
    """The cotangent of what was never touched: falsy, O(1) at any shape, the identity of +.

    >>> z = Zero((1_000_000, 64))
    >>> bool(z), z.nbytes, z
    (False, 0, Zero(1 000 000 x 64, float64))
    """

    __slots__ = ()
    tag = "zero"

    def __init__(self, shape: Sequence[int], dtype: DTypeLike = float) -> None:
        self._begin(shape, dtype)

    def __bool__(self) -> bool:
        return False

    def arrays(self) -> tuple[Array, ...]:
        """No arrays."""
        return ()

    def args(self) -> tuple[Any, ...]:
        """The shape and the dtype."""
        return self.shape, self.dtype.str

    def map(self, f: Callable[[Array], Array]) -> Builder:
        """Zero again, of the dtype that f gives."""
        return Zero(self.shape, f(np.zeros(1, self.dtype)).dtype)

    def add_into(self, out: Array, ufunc: np.ufunc = np.add) -> None:
        """Nothing."""

    def summed(self, how: How) -> Builder:
        """Itself."""
        return self

    def contributions(self) -> Builder:
        """Itself."""
        return self

    def pointwise(self, ufunc: np.ufunc, *others: Any) -> Any:
        """Zero again."""
        return self.map(lambda v: ufunc(v, *(np.ones(1, np.result_type(x)) for x in others)))

    def matmul(self, other: Array, left: bool) -> Any:
        """Zeros of the shape of the product."""
        like = np.broadcast_to(np.zeros((), self.dtype), self.shape)
        return other @ like if left else like @ other

    def norm(self) -> float:
        """0."""
        return 0.0

    def cells(self) -> tuple[Ints, Array]:
        """None."""
        return np.zeros(0, np.int64), np.zeros(0, self.dtype)

    def entries(self) -> tuple[Ints, Array]:
        """No coordinates."""
        return np.zeros((0, self.ndim), np.int64), np.zeros(0, self.dtype)

    @property
    def T(self) -> Builder:
        """Zero of the reversed shape."""
        return Zero(self.shape[::-1], self.dtype)

    def __repr__(self) -> str:
        return f"Zero({show_shape(self.shape)}, {self.dtype})"


class Sum(Builder):
    """A sum of builders of different kinds, kept apart, one piece of each kind.

    It is `+` that makes it:  `Rows + LowRank` is a `Sum`, and stays sparse.
    """

    __slots__ = ("_pieces",)
    tag = "sum"
    _pieces: "tuple[Builder, ...] | None"

    def __new__(cls, *terms: Builder) -> "Sum":
        """The sum of `terms`."""
        return cls.merge(terms)

    def _inherit(self, term: Any) -> None:
        self._pieces = None

    @property
    def pieces(self) -> tuple[Builder, ...]:
        """One builder of each kind, in order of first appearance."""
        if self._pieces is None:
            groups: dict[Any, list[Builder]] = {}
            for leaf in self.addends():
                groups.setdefault(leaf.kind(), []).append(leaf)
            self._pieces = tuple(map(total, groups.values()))
        return self._pieces

    def _each(self, f: Callable[[Builder], Builder]) -> Builder:
        return total([f(piece) for piece in self.pieces])

    def arrays(self) -> tuple[Array, ...]:
        """The arrays of every piece."""
        return tuple(a for piece in self.pieces for a in piece.arrays())

    def args(self) -> tuple[Any, ...]:
        """The pieces."""
        return self.pieces

    def map(self, f: Callable[[Array], Array]) -> Builder:
        """f in each piece, for f is linear."""
        return self._each(lambda piece: piece.map(f))

    def pointwise(self, ufunc: np.ufunc, *others: Any) -> Any:
        """In each piece if `ufunc` distributes over sums, else in the cells of all."""
        if ufunc not in ADDITIVE:
            whole = self.coalesce()
            return NotImplemented if isinstance(whole, Sum) else whole.pointwise(ufunc, *others)
        parts = [piece.pointwise(ufunc, *others) for piece in self.pieces]
        return NotImplemented if any(p is NotImplemented for p in parts) else total(parts)

    def matmul(self, other: Array, left: bool) -> Any:
        """The sum of the products, if every piece has one."""
        parts = [piece.matmul(other, left) for piece in self.pieces]
        return NotImplemented if any(p is NotImplemented for p in parts) else sum(parts)

    def add_into(self, out: Array, ufunc: np.ufunc = np.add) -> None:
        """Piece by piece."""
        for piece in self.pieces:
            piece.add_into(out, ufunc)

    def summed(self, how: How) -> Builder:
        """One builder of cells where that is no more to hold, otherwise each piece summed."""
        if how == "exact" or all(piece.cellular for piece in self.pieces):
            return self.contributions().coalesce(how)
        return self._each(lambda piece: piece.coalesce(how))

    def contributions(self) -> Builder:
        """The cells of every piece."""
        return self._each(lambda piece: piece.contributions())

    def norm(self) -> float:
        """The norm of the cells; a sum with a dense or low-rank piece is made dense for it."""
        whole = self.coalesce()
        return super().norm() if isinstance(whole, Sum) else whole.norm()

    def cells(self) -> tuple[Ints, Array]:
        """Of the whole sum."""
        whole = self.coalesce()
        return super().cells() if isinstance(whole, Sum) else whole.cells()

    def entries(self) -> tuple[Ints, Array]:
        """Of the whole sum, if all its pieces have cells."""
        whole = self.coalesce()
        return super().entries() if isinstance(whole, Sum) else whole.entries()

    @property
    def T(self) -> Builder:
        """The sum of the transposed pieces."""
        return self._each(lambda piece: piece.T)

    def __repr__(self) -> str:
        return " + ".join(map(repr, self.pieces))
