"""Sparse matrices with traced values: constructors, operators, joining and linear systems.

A matrix is given by coordinates, as in `sparse_products`: A[rows[i], cols[i]] += data[i].  The
coordinates are plain; the sum of two matrices concatenates their entries.
"""

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from lineara.errors import NoRuleError, ShapeError
from lineara.facts.hints import Leaf, Shaped, Value
from lineara.facts.primitive import Box, conjugate, op, registry
from lineara.facts.registry import implements, stands_for
from lineara.facts.types import type_of
from lineara.ops.eigen import has_values
from lineara.ops.elementwise import stop_gradient
from lineara.ops.index import take
from lineara.ops.scipy.interpolate_1d import any_box
from lineara.ops.scipy.sparse_products import entries, is_sparse, sparse_matmul, spsolve
from lineara.ops.shape import as_array


class SparseValues:
    """A sparse matrix with traced values, the stand-in for SciPy's class `base`.

    It is no instance of SciPy's classes, but supports their operators.
    """

    data: Any
    base: type

    __array_ufunc__ = None
    __array_priority__: float = 20.0
    ndim = 2

    def __init__(self, data: Any, rows: Any, cols: Any, shape: Any, base: type) -> None:
        self.data, self.base = data, base
        self.row: np.ndarray = np.asarray(rows, np.intp)
        self.col: np.ndarray = np.asarray(cols, np.intp)
        self.shape: tuple[int, ...] = tuple(int(n) for n in shape)

    def _with(self, data: Leaf) -> "SparseValues":
        return SparseValues(data, self.row, self.col, self.shape, self.base)

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the values."""
        return type_of(self.data).dtype

    @property
    def nnz(self) -> int:
        """The number of stored entries."""
        return len(self.row)

    @property
    def T(self) -> "SparseValues":  # NumPy's name
        """The transpose."""
        return SparseValues(self.data, self.col, self.row, self.shape[::-1], self.base)

    def transpose(self) -> "SparseValues":
        """The transpose."""
        return self.T

    def conj(self) -> "SparseValues":
        """The complex conjugate."""
        return self._with(conjugate(self.data))

    def same(self, *_: Any, **__: Any) -> "SparseValues":
        """The matrix itself: all formats of SciPy's have this one representation."""
        return self

    tocoo = same
    tocsr = same
    tocsc = same
    tobsr = same
    todia = same
    tolil = same
    todok = same
    asformat = same
    copy = same

    def sum_duplicates(self) -> None:
        """Nothing: a place that is stored twice means the sum."""

    eliminate_zeros = sum_duplicates
    sort_indices = sum_duplicates

    def toarray(self, *_: Any, **__: Any) -> Any:
        """The dense array."""
        return op("scatter")(self.data, at=(self.row, self.col), shape=self.shape)

    def todense(self, *_: Any, **__: Any) -> Any:
        """The dense array; refused for classes whose result is a np.matrix."""
        if self._is_matrix():
            raise NoRuleError(f"{self.base.__name__}.todense: makes a np.matrix; use toarray()")
        return self.toarray()

    def _is_matrix(self) -> bool:
        sparse: Any = sys.modules["scipy.sparse"]
        return issubclass(self.base, sparse.spmatrix)

    # --- operators -------------------------------------------------------------------------------

    def __matmul__(self, other: Any) -> Any:
        if isinstance(other, SparseValues) or is_sparse(other):
            return _product(self, of(other, self.base))
        return sparse_matmul(self, as_array(other))

    def __rmatmul__(self, other: Any) -> Any:
        if is_sparse(other):
            return _product(of(other, self.base), self)
        return sparse_matmul(as_array(other), self)

    def dot(self, other: Any) -> Any:
        """The matrix product."""
        return self * other if _is_number(other) else self @ other

    def __mul__(self, other: Any) -> Any:
        if _is_number(other):
            return self._with(self.data * other)
        return self @ other if self._is_matrix() else self.multiply(other)

    def __rmul__(self, other: Any) -> Any:
        if _is_number(other):
            return self._with(other * self.data)
        return other @ self if self._is_matrix() else self.multiply(other)

    def multiply(self, other: Any) -> "SparseValues":
        """The elementwise product with a number, or with an array that broadcasts."""
        if _is_number(other):
            return self._with(self.data * other)
        if is_sparse(other) or isinstance(other, SparseValues):
            raise NoRuleError(
                "a sparse matrix of traced values times the elements of another has no rule; "
                "A.multiply(B.toarray()) has one"
            )
        wide = op("broadcast_to")(as_array(other), shape=self.shape)
        return self._with(self.data * op("index")(wide, at=(self.row, self.col)))

    def __truediv__(self, other: Any) -> Any:
        if not _is_number(other):
            raise NoRuleError(
                "a sparse matrix of traced values over an array has no rule; A.multiply(1 / b) has"
            )
        return self._with(self.data / other)

    def __neg__(self) -> "SparseValues":
        return self._with(-self.data)

    def __add__(self, other: Any) -> Any:
        if _is_number(other):
            if not isinstance(other, Box) and other == 0:
                return self
            raise NoRuleError("a number added to a sparse matrix fills it; use A.toarray()")
        if not is_sparse(other) and not isinstance(other, SparseValues):
            return self.toarray() + other
        other = of(other, self.base)
        if other.shape != self.shape:
            raise ShapeError(f"add: sparse matrices of shapes {self.shape} and {other.shape}")
        data = op("concat")(as_array(self.data), as_array(other.data), axis=0)
        rows, cols = np.append(self.row, other.row), np.append(self.col, other.col)
        return SparseValues(data, rows, cols, self.shape, self.base)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self + -other

    def __rsub__(self, other: object) -> Any:
        return -self + other

    # --- sums ------------------------------------------------------------------------------------

    def sum(self, axis: Any = None, *_: Any, **__: Any) -> Any:
        """The sum of all elements, of columns or of rows."""
        if axis is None:
            return np.sum(self.data)
        if self._is_matrix():
            raise NoRuleError(
                f"{self.base.__name__}.sum: along an axis it is a np.matrix, whose * is another "
                "one; A.toarray().sum(axis) has a rule, and so has A @ np.ones(n)"
            )
        at, n = (self.col, self.shape[1]) if axis in (0, -2) else (self.row, self.shape[0])
        return op("scatter")(self.data, at=(at,), shape=(n,))

    def mean(self, axis: Any = None, *_: Any, **__: Any) -> Any:
        """The mean of all elements, of columns or of rows."""
        m, n = self.shape
        return self.sum(axis) / (m * n if axis is None else m if axis in (0, -2) else n)

    def diagonal(self, k: int = 0) -> Any:
        """The elements A[i, i + k]."""
        m, n = self.shape
        on = np.flatnonzero(self.col - self.row == k)
        size = max(0, min(m + min(k, 0), n - max(k, 0)))
        at = self.row[on] + min(k, 0)
        return op("scatter")(take(self.data, on, 0), at=(at,), shape=(size,))

    def trace(self, offset: int = 0) -> Any:
        """The sum of a diagonal."""
        return np.sum(self.diagonal(offset))

    def power(self, n: Value) -> Any:
        """Elementwise powers; an error if two entries have the same coordinates."""
        if len(np.unique(self.row * self.shape[1] + self.col)) < self.nnz:
            raise NoRuleError("power: several entries make one element; use A.toarray() ** n")
        return self._with(self.data**n)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise NoRuleError(
            f"scipy.sparse.{self.base.__name__}.{name}: of traced values it has no rule; products, "
            "sums, .T, .diagonal(), .multiply() and .toarray() have"
        )

    def __getitem__(self, at: Any) -> Any:
        raise NoRuleError(
            "a part of a sparse matrix of traced values has no rule; A.toarray()[...] has one"
        )

    def __setitem__(self, at: Any, value: Any) -> None:
        raise NoRuleError(
            "a sparse matrix of traced values is not written to; make it of (data, (i, j))"
        )


def _is_number(value: Leaf) -> bool:
    shape = getattr(value, "shape", None)
    return isinstance(value, int | float | complex) or shape == ()


def between(name: str, p: Any, q: Any) -> Any:
    """An operator between a traced value and a plain sparse matrix."""
    left, right = (of(v, type(v)) if is_sparse(v) else v for v in (p, q))
    first = isinstance(left, SparseValues)
    if name == "multiply":
        return left * right if first else right.__rmul__(left)
    if name == "divide" and first:
        return left / right
    if name in ("add", "subtract"):
        right = right if name == "add" else -right
        return left + right if first else right + left
    raise NoRuleError(f"{name} of a traced value and a sparse matrix has no rule; A.toarray() has")


def of(a: Any, base: type) -> SparseValues:
    """A sparse matrix of SciPy's, or an array, converted to SparseValues."""
    if isinstance(a, SparseValues):
        return a
    return SparseValues(*entries(a), a.shape, base) if is_sparse(a) else build(base, a)


def class_of_sparse(parts: Any) -> type:
    """The class of a matrix joined from parts: that of the first sparse part."""
    for a in parts:
        if isinstance(a, SparseValues) or is_sparse(a):
            return a.base if isinstance(a, SparseValues) else type(a)
    return sparse_class("coo_matrix")


def _product(a: SparseValues, b: SparseValues) -> SparseValues:
    """The product A B: an entry of A in column j is multiplied by all entries of B in row j."""
    if a.shape[1] != b.shape[0]:
        raise ShapeError(f"matmul: sparse matrices of shapes {a.shape} and {b.shape}")
    order = np.argsort(b.row, kind="stable")
    starts = np.searchsorted(b.row[order], np.arange(b.shape[0] + 1))
    counts = np.diff(starts)[a.col]
    left = np.repeat(np.arange(a.nnz), counts)
    within = np.arange(len(left)) - np.repeat(np.cumsum(counts) - counts, counts)
    right = order[np.repeat(starts[a.col], counts) + within]
    data = take(as_array(a.data), left, 0) * take(as_array(b.data), right, 0)
    return SparseValues(data, a.row[left], b.col[right], (a.shape[0], b.shape[1]), a.base)


# --- the constructors ----------------------------------------------------------------------------


def traced(value: Leaf) -> bool:
    """Whether a value, or a part of it, is traced."""
    if isinstance(value, SparseValues):
        return True
    if isinstance(value, list | tuple):
        return any(map(traced, value))
    return any_box((value,))


def _lengths(rows: Shaped, cols: Shaped, shape: object) -> Any:
    return (int(np.max(rows)) + 1, int(np.max(cols)) + 1) if shape is None else shape


def build(
    base: type, arg: object, shape: Any = None, dtype: object = None, **_: Any
) -> SparseValues:
    """The result of the constructor of `base` for traced arguments."""
    name = base.__name__
    if isinstance(arg, SparseValues):
        return SparseValues(arg.data, arg.row, arg.col, arg.shape, base)
    if isinstance(arg, tuple) and len(arg) == 2 and name.startswith("dia"):
        data, offsets = as_array(arg[0]), np.atleast_1d(arg[1])
        data = data if type_of(data).ndim == 2 else np.reshape(data, (1, -1))
        j = np.tile(np.arange(type_of(data).shape[1]), len(offsets))
        i = j - np.repeat(offsets, type_of(data).shape[1])
        data = np.reshape(data, (-1,))
        inside = np.flatnonzero((i >= 0) & (i < shape[0]) & (j < shape[1]))
        return SparseValues(take(data, inside, 0), i[inside], j[inside], shape, base)
    if isinstance(arg, tuple) and len(arg) == 2:
        data, (rows, cols) = as_array(arg[0]), arg[1]
        rows, cols = np.asarray(rows), np.asarray(cols)
        return SparseValues(data, rows, cols, _lengths(rows, cols, shape), base)
    if isinstance(arg, tuple) and len(arg) == 3 and name[:3] in ("csr", "csc"):
        data, indices, starts = as_array(arg[0]), np.asarray(arg[1]), np.asarray(arg[2])
        lines = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        n = len(starts) - 1
        if name.startswith("csr"):
            shape = (n, int(np.max(indices)) + 1) if shape is None else shape
            return SparseValues(data, lines, indices, shape, base)
        shape = (int(np.max(indices)) + 1, n) if shape is None else shape
        return SparseValues(data, indices, lines, shape, base)
    if not isinstance(arg, tuple) and type_of(as_array(arg)).ndim == 2:
        a = as_array(arg)  # all elements, since a zero may have a tangent
        rows, cols = np.indices(type_of(a).shape).reshape(2, -1)
        return SparseValues(np.reshape(a, (-1,)), rows, cols, type_of(a).shape, base)
    raise NoRuleError(
        f"scipy.sparse.{name}: of traced values it has a rule for a matrix and for (data, (i, j)), "
        "and csr, csc and dia for their own parts"
    )


class _Class(type):
    """The stand-in for a class of SciPy's, which constructs SparseValues of traced arguments."""

    base: type

    def __call__(cls, *args: Any, **options: Any) -> Any:
        return build(cls.base, *args, **options) if traced(args) else cls.base(*args, **options)

    def __instancecheck__(cls, value: Leaf) -> bool:
        ours = isinstance(value, SparseValues) and issubclass(value.base, cls.base)
        return ours or isinstance(value, cls.base)

    def __subclasscheck__(cls, other: type) -> bool:
        return issubclass(getattr(other, "base", other), cls.base)


def _declare_class(original: type) -> None:
    cls = _Class(original.__name__, (), {"base": original, "__doc__": original.__doc__})
    implements(original, always=True)(cls)


for _name in ("coo", "csr", "csc", "dia", "bsr", "lil", "dok"):
    for _kind in ("matrix", "array"):
        registry.await_(f"scipy.sparse.{_name}_{_kind}", _declare_class)


def instead(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare the stand-in for SciPy's function, used if an argument is traced."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        def declare(original: Callable[..., Any]) -> None:
            def call(*args: Any, **options: Any) -> Any:
                ours = traced(args) or traced(list(options.values()))
                return (function if ours else original)(*args, **options)

            implements(original, always=True)(call)

        registry.await_(f"scipy.sparse.{name}", declare)
        return function

    return register


def sparse_class(name: str) -> type:
    """A class of scipy.sparse, which is loaded if there is a sparse matrix."""
    return getattr(sys.modules["scipy.sparse"], name)


def _diagonals(diagonals: object, offsets: Any, shape: Any, base: type) -> SparseValues:
    """The matrix with these diagonals at `offsets`; a diagonal of one number is repeated."""
    listed: Any = diagonals
    if np.ndim(offsets) == 0:
        listed, offsets = [diagonals], [offsets]
    parts = [np.reshape(as_array(d), (-1,)) for d in listed]
    if shape is None:
        n = type_of(parts[0]).shape[0] + abs(offsets[0])
        shape = (n, n)
    rows, cols, data = [], [], []
    for d, k in zip(parts, offsets, strict=True):
        size = min(shape[0] + min(k, 0), shape[1] - max(k, 0))
        if type_of(d).shape[0] not in (1, size):
            raise ValueError(f"Diagonal length (offset {k}) does not agree with the array size.")
        data.append(op("broadcast_to")(d, shape=(size,)))
        at = np.arange(size)
        rows.append(at - min(k, 0))
        cols.append(at + max(k, 0))
    joined = op("concat")(*data, axis=0) if len(data) > 1 else data[0]
    return SparseValues(joined, np.concatenate(rows), np.concatenate(cols), shape, base)


@instead("diags")
def diags(diagonals, offsets=0, shape=None, format=None, dtype=None):
    """A matrix of diagonals."""
    return _diagonals(diagonals, offsets, shape, sparse_class("dia_matrix"))


@instead("diags_array")
def diags_array(diagonals, /, *, offsets=0, shape=None, format=None, dtype=None):
    """A matrix of diagonals."""
    return _diagonals(diagonals, offsets, shape, sparse_class("dia_array"))


@instead("spdiags")
def spdiags(data, diags, m=None, n=None, format=None):
    """A matrix of diagonals, each stored with as many elements as the matrix has columns."""
    return build(sparse_class("dia_matrix"), (data, diags), m if n is None else (m, n))


def _blocks(rows: Any) -> SparseValues:
    """The matrix of nested lists of blocks; None stands for a block of zeros."""
    base = class_of_sparse([b for row in rows for b in row])
    blocks = [[b if b is None else of(b, base) for b in row] for row in rows]
    heights = [next(b.shape[0] for b in row if b is not None) for row in blocks]
    columns = list(zip(*blocks, strict=True))
    widths = [next(b.shape[1] for b in column if b is not None) for column in columns]
    none = np.zeros(0, int)
    lines = []
    for row, m in zip(blocks, heights, strict=True):
        filled = [
            SparseValues(np.zeros(0), none, none, (m, n), base) if b is None else b
            for b, n in zip(row, widths, strict=True)
        ]
        lines.append(_stacked(filled, 1))
    return _stacked(lines, 0)


@instead("bmat")
def bmat(blocks, format=None, dtype=None):
    """A matrix of matrices."""
    return _blocks(blocks)


@instead("block_array")
def block_array(blocks, *, format=None, dtype=None):
    """A matrix of matrices."""
    return _blocks(blocks)


@instead("block_diag")
def block_diag(mats, format=None, dtype=None):
    """Matrices along the diagonal."""
    return _blocks([[m if i == j else None for j in range(len(mats))] for i, m in enumerate(mats)])


@instead("issparse")
def issparse(x):
    """Whether x is a sparse matrix, plain or traced."""
    return isinstance(x, SparseValues)


def _stacked(blocks: Any, axis: int) -> SparseValues:
    parts, start, other = [], 0, 0
    base = class_of_sparse(blocks)
    for b in (of(b, base) for b in blocks):
        shift = (start, 0) if axis == 0 else (0, start)
        parts.append((b.data, b.row + shift[0], b.col + shift[1]))
        start += b.shape[axis]
        other = b.shape[1 - axis]
    data = op("concat")(*(as_array(d) for d, _, _ in parts), axis=0)
    rows, cols = (np.concatenate([f[i] for f in parts]) for i in (1, 2))
    return SparseValues(data, rows, cols, (start, other) if axis == 0 else (other, start), base)


@instead("vstack")
def vstack(blocks, format=None, dtype=None):
    """Matrices above each other."""
    return _stacked(blocks, 0)


@instead("hstack")
def hstack(blocks, format=None, dtype=None):
    """Matrices beside each other."""
    return _stacked(blocks, 1)


@instead("kron")
def kron(A, B, format=None):  # SciPy's names
    """The Kronecker product."""
    base = class_of_sparse((A, B))
    a, b = of(A, base), of(B, base)
    data = np.reshape(as_array(a.data)[:, None] * as_array(b.data), (-1,))
    rows, cols = (
        np.ravel(u[:, None] * n + v)
        for u, v, n in ((a.row, b.row, b.shape[0]), (a.col, b.col, b.shape[1]))
    )
    shape = tuple(m * n for m, n in zip(a.shape, b.shape, strict=True))
    return SparseValues(data, rows, cols, shape, base)


def _triangle(name: str, inside: Callable[[Any], Any]) -> None:
    @instead(name)
    def triangle(A, k=0, format=None):  # SciPy's name
        a = of(A, class_of_sparse((A,)))
        at = np.flatnonzero(inside(a.col - a.row - k))
        return SparseValues(take(as_array(a.data), at, 0), a.row[at], a.col[at], a.shape, a.base)


_triangle("triu", lambda above: above >= 0)
_triangle("tril", lambda above: above <= 0)


# --- systems -------------------------------------------------------------------------------------

instead("linalg.spsolve")(spsolve)


@instead("linalg.spsolve_triangular")
def spsolve_triangular(A, b, lower=True, overwrite_A=False, overwrite_b=False, unit_diagonal=False):
    """The solution of a triangular system; what stands beside the triangle is not read."""
    a = of(A, class_of_sparse((A,)))
    below = a.row - a.col if lower else a.col - a.row
    at = np.flatnonzero(below > 0 if unit_diagonal else below >= 0)
    data, row, col = take(as_array(a.data), at, 0), a.row[at], a.col[at]
    if unit_diagonal:
        ones = np.arange(a.shape[0])
        data = np.concatenate([data, np.ones(len(ones))])
        row, col = np.append(row, ones), np.append(col, ones)
    return spsolve(SparseValues(data, row, col, a.shape, a.base), b)


def _solved(A: Any, b: Shaped) -> Any:
    if is_sparse(A) or isinstance(A, SparseValues):
        return spsolve(A, b)
    if callable(getattr(A, "matvec", None)) or callable(A):
        raise NoRuleError(
            "an iterative solver of traced values has a rule for a matrix, dense or sparse, not "
            "for a LinearOperator"
        )
    return np.linalg.solve(A, b)


def _iterative(name: str) -> None:
    """Declare an iterative solver, whose result is differentiated as the system's solution."""

    @instead(f"linalg.{name}")
    def solve(A, b, x0=None, **options):  # SciPy's name
        from scipy.sparse import linalg

        if not has_values(
            np.sum(as_array(b)) * np.sum(A.data if isinstance(A, SparseValues) else 0)
        ):
            raise NoRuleError(
                f"{name}: in a program spsolve has a rule; this one iterates on numbers"
            )
        a_now, b_now = plain_matrix(A), plain_matrix(b)
        start = None if x0 is None else plain_matrix(x0)
        x, *rest = getattr(linalg, name)(a_now, b_now, start, **options)
        exact = _solved(A, np.reshape(as_array(b), (-1,)))
        return x + (exact - stop_gradient(exact)), *rest


def plain_matrix(value: Leaf) -> Any:
    """The numbers below every trace."""
    if isinstance(value, SparseValues):
        base: Any = value.base
        return base(
            sparse_class("coo_array")(
                (plain_matrix(value.data), (value.row, value.col)), value.shape
            )
        )
    while isinstance(value, Box):
        now: Any = value.now() if hasattr(value, "now") else value
        value = now.v if isinstance(now, Box) else now
    return value


for _name in ("cg", "cgs", "bicg", "bicgstab", "gmres", "lgmres", "minres", "qmr", "tfqmr"):
    _iterative(_name)
_iterative("gcrotmk")


@instead("linalg.norm")
def norm(x, ord=None, axis=None):
    """Frobenius' norm."""
    if ord not in (None, "fro") or axis is not None or not isinstance(x, SparseValues):
        raise NoRuleError(
            "scipy.sparse.linalg.norm: of traced values only Frobenius' has a rule; "
            "numpy.linalg.norm(A.toarray()) has the others"
        )
    return np.sqrt(np.sum(abs(x.power(1).data) ** 2))


def _refused(name: str, works: str) -> None:
    @instead(f"linalg.{name}")
    def refuse(*_, **__):
        raise NoRuleError(f"scipy.sparse.linalg.{name} of traced values has no rule; {works}")


for _names, _works in {
    "lobpcg": "eigsh has, and numpy.linalg.eigh of A.toarray()",
    "spilu onenormest aslinearoperator": "give it plain values",
}.items():
    for _name in _names.split():
        _refused(_name, _works)


class Factors:
    """The stand-in for `splu`'s result for a traced matrix: solves systems with it."""

    shape: Any
    a: Any

    def __init__(self, a: Any) -> None:
        self.a, self.shape = a, a.shape

    def solve(self, rhs: Any, trans: str = "N") -> Any:
        """The solution of A x = b, A^T x = b or A^H x = b."""
        a = self.a if trans == "N" else self.a.T
        return spsolve(a.conj() if trans == "H" else a, rhs)


def _with_factors(name: str, give: Callable[[Any], Any]) -> None:
    """Declare splu or factorized; a plain matrix is factored by SciPy."""

    def declare(original: Callable[..., Any]) -> None:
        def call(A: object, *args: Any, **options: Any) -> Any:  # SciPy's name
            if traced((A,)):
                return give(Factors(A))
            linalg: Any = sys.modules["scipy.sparse.linalg"]
            return give(PlainFactors(linalg.splu(A, *args, **options)))

        implements(original, always=True)(call)

    registry.await_(f"scipy.sparse.linalg.{name}", declare)


_with_factors("splu", lambda factors: factors)
_with_factors("factorized", lambda factors: factors.solve)


class PlainFactors:
    """SciPy's factors of a plain matrix, for right sides that may be traced."""

    shape: Any
    lu: Any

    def __init__(self, lu: Any) -> None:
        self.lu, self.shape = lu, lu.shape
        self._matrix: Any = None

    def solve(self, rhs: Any, trans: str = "N") -> Any:
        """As SuperLU.solve."""
        if not traced((rhs,)):
            return self.lu.solve(rhs, trans)
        if self._matrix is None:  # Pr A Pc = L U
            lu, n = self.lu, self.shape[0]
            product = (lu.L @ lu.U).tocoo()
            coo: Any = sparse_class("coo_matrix")
            back = np.argsort(lu.perm_r)[product.row], np.argsort(lu.perm_c)[product.col]
            self._matrix = coo((product.data, back), (n, n)).tocsc()
        return Factors(self._matrix).solve(rhs, trans)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.lu, name)


stands_for("scipy.sparse.linalg.SuperLU")(PlainFactors)
