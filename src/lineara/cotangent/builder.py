"""A builder: a sparse cotangent, summed once, when it is read  [Elsman 2022; downhill].

Builders of one shape are a commutative monoid with identity `Zero`.  Adding is O(1): a sum stores
its terms, and reading it sums them, in order of position.  So associativity holds exactly,
commutativity up to rounding, and

    finish(a + b) == finish(a) + finish(b)          finish(Zero) == 0

A builder is immutable.  NumPy's operators and functions accept it: those that keep it sparse return
a builder, the others convert it to a dense array, with a warning if that is large.
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
from lineara.facts.hints import Shaped

How = Literal["fast", "exact"]
"""How a sum is made: in order of position, or as the true sum rounded once (slow, any order)."""


class Builder(Terms, Algebra):
    """Base of the builders: `shape`, `dtype`, the monoid, and NumPy's operators."""

    __slots__ = ("_coalesced", "_terms", "dtype", "shape")
    # equal by value, as an ndarray
    __hash__: ClassVar[None] = None  # pyright: ignore[reportIncompatibleMethodOverride]

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

    # ---- what each kind of builder defines

    def kind(self) -> Any:
        """A key: builders of equal kind are merged to one."""
        return type(self)

    def args(self) -> tuple[Any, ...]:
        """The arguments of the class that construct an equal builder."""
        raise NotImplementedError

    def summed(self, how: How) -> "Builder":
        """An equal builder with all sums computed."""
        raise NotImplementedError

    def contributions(self) -> "Builder":
        """All unsummed contributions as single cells, in a Coo."""
        raise NotImplementedError

    def filled(self, dtype: np.dtype[Any]) -> Array:
        """The sum as a fresh array of `dtype`."""
        out = np.zeros(self.shape, dtype)
        self.add_into(out)
        return out

    def norm(self) -> float:
        """The Euclidean norm of the array."""
        return float(np.linalg.norm(self.dense("norm").ravel()))

    def cells(self) -> tuple[Ints, Array]:
        """(sorted flat positions of the cells that are not 0, their values)."""
        flat = self.finish().ravel()
        where = np.flatnonzero(flat)
        return where, flat[where]

    def entries(self) -> tuple[Ints, Array]:
        """(coordinates (m, k) of cells or of slices in k dimensions; values (m, ...))."""
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
        """The sum of builders of this kind; O(number of terms), since nothing is added yet."""
        lazy = object.__new__(cls)
        lazy._begin(terms[0].shape, np.result_type(*{t.dtype for t in terms}), terms)
        lazy._inherit(terms[0])
        return lazy

    def _inherit(self, term: "Builder") -> None:
        """Copy from a term the attributes that all terms share."""

    def plus(self, other: "Builder") -> "Builder":
        """`self + other`, for two builders of one shape."""
        return total([self, other])

    def coalesce(self, sum: How = "fast") -> "Builder":
        """An equal builder with sums computed in order of position; computed once, then kept."""
        if sum == "exact":
            return self.summed(sum)
        if self._coalesced is None:
            result = self.summed(sum)
            if result is self:  # no reference cycle, which only the garbage collector could free
                return self
            self._coalesced = result
        return self._coalesced

    def finish(self, like: Shaped | None = None, sum: How = "fast") -> Array:
        """The sum as a fresh writable C-contiguous ndarray, with the dtype of `like`."""
        dtype = self.dtype
        if like is not None:
            _same_shape(np.shape(like), self.shape)
            dtype = np.dtype(like.dtype if hasattr(like, "dtype") else np.result_type(like))
            self.check_cast(dtype)
        return (self.coalesce(sum) if sum == "exact" else self).filled(dtype)

    def check_cast(self, dtype: np.dtype[Any]) -> None:
        """Raise an error unless NumPy would cast the numbers to `dtype` in place."""
        if not np.can_cast(self.dtype, dtype, "same_kind"):
            raise TypeMismatchError(
                f"a cotangent of dtype {self.dtype} does not go into an array of dtype {dtype}; "
                f"take an array of dtype {np.result_type(self.dtype, dtype)}"
            )

    def dense(self, asked: str) -> Array:
        """The dense array, with a warning that `asked` needs it if it is large."""
        warn_densify(asked, self.shape, self.dtype)
        return self.finish()

    # ---- as an array

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements of the dense array."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The bytes held, which has nothing to do with the bytes of the dense array."""
        return sum(a.nbytes for leaf in self.addends() for a in leaf.arrays())

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
    """The zero cotangent of a shape: falsy, of O(1) size, the identity of +.

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
        """The empty tuple: a zero stores no arrays."""
        return ()

    def args(self) -> tuple[Any, ...]:
        """The shape and the dtype."""
        return self.shape, self.dtype.str

    def map(self, f: Callable[[Array], Array]) -> Builder:
        """Zero, in the dtype that f returns."""
        return Zero(self.shape, f(np.zeros(1, self.dtype)).dtype)

    def add_into(self, out: Array, ufunc: np.ufunc = np.add) -> None:
        """Leave `out` unchanged."""

    def summed(self, how: How) -> Builder:
        """Itself."""
        return self

    def contributions(self) -> Builder:
        """Itself."""
        return self

    def pointwise(self, ufunc: np.ufunc, *others: Any) -> Any:
        """Zero: a ufunc that maps 0 to 0 keeps it."""
        return self.map(lambda v: ufunc(v, *(np.ones(1, np.result_type(x)) for x in others)))

    def matmul(self, other: Array, left: bool) -> Any:
        """An array of zeros of the shape of the product."""
        like = np.broadcast_to(np.zeros((), self.dtype), self.shape)
        return other @ like if left else like @ other

    def norm(self) -> float:
        """The norm of zeros, 0."""
        return 0.0

    def cells(self) -> tuple[Ints, Array]:
        """Two empty arrays: no cell differs from 0."""
        return np.zeros(0, np.int64), np.zeros(0, self.dtype)

    def entries(self) -> tuple[Ints, Array]:
        """Two empty arrays: no coordinates and no values."""
        return np.zeros((0, self.ndim), np.int64), np.zeros(0, self.dtype)

    @property
    def T(self) -> Builder:
        """Zero of the reversed shape."""
        return Zero(self.shape[::-1], self.dtype)

    def __repr__(self) -> str:
        return f"Zero({show_shape(self.shape)}, {self.dtype})"


class Sum(Builder):
    """A sum of builders of different kinds, stored as one piece of each kind.

    It is the result of `+`:  `Rows + LowRank` is a `Sum`, and stays sparse.
    """

    __slots__ = ("_pieces",)
    tag = "sum"
    _pieces: "tuple[Builder, ...] | None"

    def __new__(cls, *terms: Builder) -> "Sum":
        """The sum of `terms`."""
        return cls.merge(terms)

    def _inherit(self, term: Builder) -> None:
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
        """The sum with f applied to each piece, since f is linear."""
        return self._each(lambda piece: piece.map(f))

    def pointwise(self, ufunc: np.ufunc, *others: Any) -> Any:
        """`ufunc` of each piece if it distributes over sums, else of the cells of the sum."""
        if ufunc not in ADDITIVE:
            whole = self.coalesce()
            return NotImplemented if isinstance(whole, Sum) else whole.pointwise(ufunc, *others)
        parts = [piece.pointwise(ufunc, *others) for piece in self.pieces]
        return NotImplemented if any(p is NotImplemented for p in parts) else total(parts)

    def matmul(self, other: Array, left: bool) -> Any:
        """The sum of the pieces' products, if every piece has a rule for it."""
        parts = [piece.matmul(other, left) for piece in self.pieces]
        return NotImplemented if any(p is NotImplemented for p in parts) else sum(parts)

    def add_into(self, out: Array, ufunc: np.ufunc = np.add) -> None:
        """Add one piece after the other."""
        for piece in self.pieces:
            piece.add_into(out, ufunc)

    def summed(self, how: How) -> Builder:
        """One builder of cells where that takes no more memory, otherwise each piece summed."""
        if how == "exact" or all(piece.cellular for piece in self.pieces):
            return self.contributions().coalesce(how)
        return self._each(lambda piece: piece.coalesce(how))

    def contributions(self) -> Builder:
        """The cells of every piece, in one Coo."""
        return self._each(lambda piece: piece.contributions())

    def norm(self) -> float:
        """The norm of the cells; a sum with a dense or low-rank piece is converted to an array."""
        whole = self.coalesce()
        return super().norm() if isinstance(whole, Sum) else whole.norm()

    def cells(self) -> tuple[Ints, Array]:
        """The cells of the whole sum."""
        whole = self.coalesce()
        return super().cells() if isinstance(whole, Sum) else whole.cells()

    def entries(self) -> tuple[Ints, Array]:
        """The entries of the whole sum, if all pieces consist of cells."""
        whole = self.coalesce()
        return super().entries() if isinstance(whole, Sum) else whole.entries()

    @property
    def T(self) -> Builder:
        """The sum of the transposed pieces."""
        return self._each(lambda piece: piece.T)

    def __repr__(self) -> str:
        return " + ".join(map(repr, self.pieces))
