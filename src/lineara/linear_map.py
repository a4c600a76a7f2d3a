"""LinearMap: what a derivative is; it applies, transposes, composes, adds and batches."""

import functools
import operator
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar, overload

import numpy as np

from lineara.colouring import Compression, bidirectional
from lineara.errors import (
    LinearityError,
    ShapeError,
    StagingError,
    StructureError,
    TypeMismatchError,
)
from lineara.facts.box import Box
from lineara.facts.hints import Leaf, Tree
from lineara.facts.primitive import conjugate, op
from lineara.facts.types import ArrayType, is_complex, show_type, type_of
from lineara.trees import LEAF, flatten, map_leaves, unflatten

BLOCK = 1 << 24  # numbers that one batched sweep carries for a leaf

X = TypeVar("X")
Y = TypeVar("Y")
Z = TypeVar("Z")

Sweep = Callable[[list[Any]], list[Any]]


@dataclass(frozen=True)
class Work:
    """Scalar operations, counted: of the value, of one application, of one transposed application.

    >>> Work(100, 200, 300)
    Work(value=100, forward=200, reverse=300)
    """

    value: int
    forward: int
    reverse: int

    @property
    def turned(self) -> "Work":
        """The same of the transposed map."""
        return Work(self.value, self.reverse, self.forward)

    def __add__(self, other: "Work") -> "Work":
        return Work(
            self.value + other.value, self.forward + other.forward, self.reverse + other.reverse
        )


@dataclass(frozen=True)
class Space:
    """The vectors on one side of a linear map: a container of arrays, as its list of leaves."""

    types: tuple[ArrayType, ...]
    structure: Any
    charts: tuple[Any, ...] = ()  # for each leaf of the structure how points read it; () is None
    still: frozenset[int] = frozenset()  # leaves that are no numbers: what vectors have there is 0

    @property
    def dual(self) -> "Space":
        """The space of the cotangents, of which points may have another type."""
        if not any(self.charts):
            return self
        return replace(self, charts=tuple([c and c.opposite() for c in self.charts]))

    @property
    def size(self) -> int:
        """Number of scalars."""
        return sum(t.size for t in self.types)

    def leaves(self, tree: Tree, asked: str) -> list[Any]:
        """The leaves of a vector of this space, or an error that says what does not fit."""
        if self is REAL and type(tree) is float:
            return [tree]
        leaves, structure = self._read(tree, asked) if any(self.charts) else flatten(tree)
        if structure != self.structure:
            raise StructureError(
                f"{asked}: the vector is {structure}, but the map takes {self.structure}"
            )
        if self.still:
            leaves = [None if i in self.still else leaf for i, leaf in enumerate(leaves)]
        for leaf, t in zip(leaves, self.types, strict=True):
            if leaf is None:
                continue
            found = type_of(leaf)
            if found.shape != t.shape:
                raise ShapeError(f"{asked}: the vector has a leaf {found}, but the map takes {t}")
            if found.dtype.kind not in ("fiubOc" if t.dtype.kind == "c" else "fiubO"):
                raise TypeMismatchError(
                    f"{asked}: the vector has a leaf {show_type(leaf)}, but the map takes {t}"
                )
        return [
            np.zeros(t.shape, t.dtype)[()] if leaf is None else leaf
            for leaf, t in zip(leaves, self.types, strict=True)
        ]

    def _read(self, tree: Tree, asked: str) -> tuple[list[Any], Any]:
        """The leaves of a vector, those at points in the points' own way."""
        vectors: list[Any] = []

        def take(place: int, vector: Any) -> None:
            chart = self.charts[place]
            vectors.extend([vector] if chart is None else chart.read(vector, asked))

        map_leaves(take, unflatten(self.structure, range(len(self.charts))), tree)
        return vectors, self.structure

    def tree(self, leaves: list[Any]) -> Any:
        """The vector with those leaves."""
        if self is REAL:
            return leaves[0]
        if not any(self.charts):
            return leaves[0] if self.structure is LEAF else unflatten(self.structure, leaves)
        parts, start = [], 0
        for chart in self.charts:
            if chart is None:
                parts.append(leaves[start])
                start += 1
            else:
                parts.append(chart.make(leaves[start : start + chart.width]))
                start += chart.width
        return unflatten(self.structure, parts)

    def __repr__(self) -> str:
        if not any(self.charts):
            return repr(self.tree(list(self.types)))
        types = iter(self.types)
        parts = [next(types) if c is None else _skipping(c, types) for c in self.charts]
        return repr(unflatten(self.structure, parts))


@functools.lru_cache(maxsize=256)  # a pure function of the type
def space_of(t: ArrayType) -> Space:
    """The space of one array or number."""
    return Space((t,), LEAF)


REAL = space_of(type_of(0.0))


@dataclass(frozen=True)
class Basis:
    """A block of `unit` times the basis vectors of a space; `last`: where their axis may lie."""

    types: tuple[ArrayType, ...]
    block: range
    unit: complex = 1.0
    last: bool = False
    sets: bool = False  # whether the sets of the basis vectors that results depend on are asked for
    vectors: tuple[np.ndarray, ...] | None = None  # in place of basis vectors, for each leaf
    lanes: bool = False  # whether coefficients and columns are asked for, where they can be had

    def dense(self) -> list[Any]:
        """For each leaf one array, with the axis of the batch in front."""
        if self.vectors is not None:
            return [*self.vectors]
        seeds, start, block = [], 0, self.block
        for t in self.types:
            dtype = t.dtype if t.dtype.kind in "fcO" else np.dtype(float)
            seed = np.zeros((len(block), t.size), dtype)
            inside = np.arange(max(block.start, start), min(block.stop, start + t.size))
            unit = self.unit if is_complex(t) else self.unit.real
            seed[inside - block.start, inside - start] = unit
            seeds.append(seed.reshape(len(block), *t.shape))
            start += t.size
        return seeds


def _skipping(chart: Any, types: Iterator[ArrayType]) -> Space:
    for _ in range(chart.width):
        next(types)
    return chart.space


class LinearMap(Generic[X, Y]):
    """A linear map between spaces of containers of arrays, from vectors X to vectors Y.

    `L @ v` applies it, `w @ L` applies its transpose, `L.T` is its transpose (and `L.T.T` is `L`),
    `L2 @ L1` composes, `L + M`, `sum([L, M])`, `L - M`, `2 * L` and `L / 2` combine,
    `L.to_dense()` is its matrix, in one batched sweep.  `L.work` counts scalar operations.

    Of a builder (`Rows`, `Coo`), `w @ L` is builders where the map keeps it sparse.

    Vectors of other shapes are a ShapeError, of other containers a StructureError, complex numbers
    in a real space a TypeMismatchError; `+` and `@` of maps of other spaces a ShapeError.

    >>> import numpy as np, lineara
    >>> y, L = lineara.linearize(lambda x: x[0] * x, np.array([2.0, 3.0]))
    >>> L @ np.array([1.0, 0.0])
    array([4., 3.])
    >>> np.array([1.0, 0.0]) @ L
    array([4., 0.])
    """

    __array_ufunc__ = None  # so that ndarray @ L is ours

    def __init__(
        self,
        forward: Sweep,
        back: Sweep,
        domain: Space,
        codomain: Space,
        work: Callable[[], Work],
        batch: Callable[[Sweep, "Basis"], list[Any]],
        *,
        twin: "LinearMap[Y, X] | None" = None,
        tape: Any = None,
        terms: "tuple[LinearMap[Any, Any], ...]" = (),
        factors: "tuple[LinearMap[Any, Any], ...]" = (),
        scale: Any = None,
    ) -> None:
        self._forward = forward
        self._back = back
        self.domain = domain
        self.codomain = codomain
        self._work = work
        self._batch = batch
        self._twin = twin  # the map that this is the transpose of
        self._turned: weakref.ref[Any] | None = None  # weak: no cycle holds the tape
        self.tape = tape  # whose sweeps these are; None of a map made of others
        self.terms = terms  # a sum of these, or none
        self.factors = factors  # a product of these, the first to be applied last, or none
        self.scale = scale  # what the last factor is multiplied by, of a multiple

    @property
    def work(self) -> Work:
        """Scalar operations, counted."""
        return self._work()

    @property
    def shape(self) -> tuple[int, int]:
        """(scalars of the codomain, scalars of the domain)."""
        return self.codomain.size, self.domain.size

    @property
    def T(self) -> "LinearMap[Y, X]":
        """The transpose; its own transpose is this map again."""
        if self._twin is not None:
            return self._twin
        turned = None if self._turned is None else self._turned()
        if turned is None:
            turned = LinearMap(
                self._back,
                self._forward,
                self.codomain.dual,
                self.domain.dual,
                lambda: self.work.turned,
                self._batch,
                twin=self,
            )
            self._turned = weakref.ref(turned)
        return turned

    def __call__(self, v: X) -> Y:
        """The map applied to a vector: the same as `L @ v`."""
        return self.codomain.tree(self._forward(self.domain.leaves(v, "applying a linear map")))

    def ahead(self, leaves: list[Any]) -> list[Any]:
        """The map on the leaves of a vector, as the leaves of the result."""
        return self._forward(leaves)

    def between(self, domain: Space, codomain: Space, work: Work) -> "LinearMap[Any, Any]":
        """The same map of the leaves between spaces that have these leaves."""
        sweeps = self._forward, self._back
        return LinearMap(*sweeps, domain, codomain, lambda: work, self._batch, tape=self.tape)

    def __copy__(self) -> "LinearMap[X, Y]":
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> "LinearMap[X, Y]":
        return self  # it has its own copy of what it needs

    @overload
    def __matmul__(self, other: "LinearMap[Z, X]") -> "LinearMap[Z, Y]": ...
    @overload
    def __matmul__(self, other: X) -> Y: ...
    @overload  # a Python float where NumPy's stubs say float64
    def __matmul__(self: "LinearMap[np.float64, Y]", other: float) -> Y: ...
    @overload
    def __matmul__(self, other: Box) -> Any: ...
    def __matmul__(self, other: Any) -> Any:
        if isinstance(other, LinearMap):
            return self._compose(other)
        return self.codomain.tree(self._forward(self.domain.leaves(other, "applying a linear map")))

    @overload
    def __rmatmul__(self, w: Y) -> X: ...
    @overload
    def __rmatmul__(self: "LinearMap[X, np.float64]", w: float) -> X: ...
    @overload
    def __rmatmul__(self, w: Box) -> Any: ...
    def __rmatmul__(self, w: Any) -> Any:
        return self.T(w)

    def _compose(self, first: "LinearMap[Z, X]") -> "LinearMap[Z, Y]":
        if first.codomain != self.domain:
            raise ShapeError(
                f"composing linear maps: the first gives {first.codomain}, but the second takes "
                f"{self.domain}"
            )
        return LinearMap(
            lambda v: self._forward(first._forward(v)),
            lambda w: first._back(self._back(w)),
            first.domain,
            self.codomain,
            lambda: self.work + first.work,
            self._batch,
            factors=(self, first),
        )

    def __add__(self, other: "LinearMap[X, Y]") -> "LinearMap[X, Y]":
        if not isinstance(other, LinearMap):
            return NotImplemented
        if (self.domain, self.codomain) != (other.domain, other.codomain):
            raise ShapeError(
                f"adding linear maps: {self} and {other} are not between the same spaces"
            )
        return LinearMap(
            lambda v: _plus(self._forward(v), other._forward(v)),
            lambda w: _plus(self._back(w), other._back(w)),
            self.domain,
            self.codomain,
            lambda: self.work + other.work,
            self._batch,
            terms=(self, other),
        )

    def __radd__(self, other: int) -> "LinearMap[X, Y]":  # the 0 that a sum begins with
        return self if type(other) is int and other == 0 else NotImplemented

    def __mul__(self, c: Any) -> "LinearMap[X, Y]":
        return self._scaled(operator.mul, c)

    def __rmul__(self, c: Any) -> "LinearMap[X, Y]":
        return self._scaled(operator.mul, c)

    def __truediv__(self, c: Any) -> "LinearMap[X, Y]":
        return self._scaled(operator.truediv, c)

    def _scaled(self, by: Callable[[Any, Any], Any], c: Any) -> "LinearMap[X, Y]":
        if isinstance(c, LinearMap) or np.ndim(c):
            return NotImplemented
        return LinearMap(
            lambda v: [by(x, c) for x in self._forward(v)],
            lambda w: [by(x, np.conj(c)) for x in self._back(w)],
            self.domain,
            self.codomain,
            self._work,
            self._batch,
            factors=(self,),
            scale=by(1.0, c),
        )

    def __neg__(self) -> "LinearMap[X, Y]":
        return self * -1.0

    def __sub__(self, other: "LinearMap[X, Y]") -> "LinearMap[X, Y]":
        return self + (-other)

    def columns(self) -> list[Any]:
        """What the map makes of each basis vector: leaves (size, *shape of the leaf).

        For complex vectors that is the whole map only if it is linear over the complex numbers:
        else a LinearityError.
        """
        columns = self._on_basis(1.0, last=True)
        if any(map(is_complex, self.domain.types)):
            turns = _each(self.domain, is_complex)
            for a, b in zip(columns, self._on_basis(1j, last=True), strict=True):
                _check_complex(a[turns], b[turns])
        return columns

    def rows(self) -> list[Any]:
        """The same matrix, row by row, from transposed sweeps: leaves (size, *shape of the leaf).

        Of a complex result a cotangent 1 sees the real part of the row, and a cotangent i the
        imaginary one.
        """
        by_rows = self.T._on_basis(1.0, last=False)
        turns = _each(self.codomain, is_complex)
        turned = self.T._on_basis(1j, last=False) if turns.any() else by_rows
        rows = []
        for t, a, b in zip(self.domain.types, by_rows, turned, strict=True):
            if is_complex(t):
                _check_complex(a[turns], b[turns])
                _check_complex(a[~turns], 0 * a[~turns])
                rows.append(conjugate(a))
            elif turns.any():
                which = turns.reshape(-1, *[1] * t.ndim)
                rows.append(a + b * np.where(which, 1j, 0))
            else:
                rows.append(a)
        return rows

    def _on_basis(self, unit: complex, last: bool) -> list[Any]:
        """The map on `unit` times each basis vector (i times a real one is 0), by batched sweeps.

        The axis of the batch is the first one; `last` in memory, where that is as easy.  One sweep
        carries a block of basis vectors; only a Jacobian too large for memory takes several.
        """
        size = self.domain.size
        step = max(1, BLOCK // max(1, size, self.codomain.size))
        starts = range(0, size, step)
        blocks = [self._on_block(range(i, min(i + step, size)), unit, last) for i in starts]
        if not blocks:
            return [np.zeros((0, *t.shape), t.dtype) for t in self.codomain.types]
        if len(blocks) == 1:
            return blocks[0]
        return [np.concatenate(parts) for parts in zip(*blocks, strict=True)]

    def _on_block(self, block: range, unit: complex, last: bool) -> list[Any]:
        vectors = self._batch(self._forward, Basis(self.domain.types, block, unit, last))
        return [
            np.zeros((len(block), *t.shape), t.dtype)
            if y is None
            else _narrow(_repeat(y, len(block), t), t)
            for y, t in zip(vectors, self.codomain.types, strict=True)
        ]

    def to_dense(self) -> Any:
        """The matrix, of shape (scalars out, scalars in), from one batched sweep.

        >>> import numpy as np, lineara
        >>> _, L = lineara.linearize(np.cumsum, np.zeros(3))
        >>> L.to_dense()
        array([[1., 0., 0.],
               [1., 1., 0.],
               [1., 1., 1.]])
        """
        n, m = self.domain.size, self.codomain.size
        ahead = n <= m
        parts, others = (self.columns(), self.codomain) if ahead else (self.rows(), self.domain)
        size = n if ahead else m
        flat = [c.reshape(size, t.size) for c, t in zip(parts, others.types, strict=True)]
        if not flat:
            return np.zeros((m, n))
        joined = flat[0] if len(flat) == 1 else np.concatenate(flat, axis=1)
        joined = joined.T if ahead else joined
        return np.ascontiguousarray(joined) if isinstance(joined, np.ndarray) else joined

    def pattern(self) -> Any:
        """Which scalars of a result depend on which of a vector: a boolean `scipy.sparse` array.

        It holds of the point of the derivative, and follows from the operations that were done
        there, not from their numbers.  TypeMismatchError for complex numbers.

        >>> import numpy as np, lineara
        >>> _, L = lineara.linearize(lambda x: x[1:] * x[:-1], np.zeros(3))
        >>> L.pattern().toarray().astype(int)
        array([[1, 1, 0],
               [0, 1, 1]])
        """
        from scipy.sparse import csr_array, vstack

        if any([is_complex(t) for t in (*self.domain.types, *self.codomain.types)]):
            raise TypeMismatchError(
                "pattern: the map is one of complex numbers, and sparse matrices are of real ones; "
                "give the real and the imaginary part as two arguments, or ask for to_dense()"
            )
        m, n = self.shape
        basis = Basis(self.domain.types, range(n), sets=True)
        blocks = self._batch(self._forward, basis)
        pairs = zip(blocks, self.codomain.types, strict=True)
        rows = [csr_array((t.size, n), dtype=bool) if b is None else b for b, t in pairs]
        return vstack(rows, format="csr") if rows else csr_array((m, n), dtype=bool)

    def lanes(self) -> list[Any]:
        """For each leaf of a result the coefficients and columns of its elements, or None for zero.

        Numbers may be traced: which columns there are follows from the operations alone.  Raises
        StructureError where an operation gives something else than an array.
        """
        basis = Basis(self.domain.types, range(self.domain.size), lanes=True)
        return self._batch(self._forward, basis)

    def to_sparse(self, pattern: Any = None) -> Any:
        """The matrix as a `scipy.sparse` array in compressed rows, from as few products as it can.

        Columns that share no row are found by one product, rows that share no column by one that is
        transposed.  One more product tests it: StructureError where a `pattern` of one's own lacks
        an entry, ShapeError for one of another shape.  TypeMismatchError for complex numbers.

        >>> import numpy as np, lineara
        >>> _, L = lineara.linearize(lambda x: x[1:] * x[:-1], np.array([1.0, 2.0, 3.0]))
        >>> L.to_sparse().toarray()
        array([[2., 1., 0.],
               [0., 3., 2.]])
        """
        return self.compressed(bidirectional(self.pattern() if pattern is None else pattern))

    def compressed(self, compression: Compression) -> Any:
        """The matrix from the products that a compression asks for, and one that tests it."""
        forward, back = compression.seeds
        if compression.pattern.shape != self.shape:
            raise ShapeError(
                f"to_sparse: the pattern is one of {compression.pattern.shape}, and the map one of "
                f"{self.shape}"
            )
        ys = self._on_vectors(np.concatenate([forward, compression.probe[None]]))
        matrix = compression.matrix(ys[:-1], self.T._on_vectors(back))
        compression.test(matrix, ys[-1])
        return matrix

    def on_vector(self, vector: np.ndarray) -> np.ndarray:
        """The map on the numbers of a vector, as the numbers of the result."""
        return self._on_vectors(vector[None])[0]

    def _on_vectors(self, vectors: np.ndarray) -> np.ndarray:
        """The map on the rows of a matrix, as the rows of another, in one batched sweep."""
        k = len(vectors)
        if not k:
            return np.zeros((0, self.codomain.size))
        stops = np.cumsum([t.size for t in self.domain.types])[:-1]
        pairs = zip(np.split(vectors, stops, axis=1), self.domain.types, strict=True)
        leaves = tuple([np.ascontiguousarray(p).reshape(k, *t.shape) for p, t in pairs])
        ys = self._batch(self._forward, Basis(self.domain.types, range(k), vectors=leaves))
        rows = [
            np.zeros((k, t.size)) if y is None else np.reshape(_repeat(y, k, t), (k, t.size))
            for y, t in zip(ys, self.codomain.types, strict=True)
        ]
        return rows[0] if len(rows) == 1 else np.concatenate(rows, axis=1)

    def aslinearoperator(self) -> Any:
        """As a `scipy.sparse.linalg.LinearOperator` on flat vectors, for iterative solvers."""
        from scipy.sparse.linalg import LinearOperator

        def flat(sweep: Sweep, into: Space, out: Space) -> Callable[[Any], Any]:
            def apply(v: Any) -> Any:
                parts = np.split(np.ravel(v), np.cumsum([t.size for t in into.types])[:-1])
                leaves = [p.reshape(t.shape) for p, t in zip(parts, into.types, strict=True)]
                ys = sweep(leaves)
                return np.concatenate([np.ravel(y) for y in ys]) if ys else np.zeros(out.size)

            return apply

        dtypes = [t.dtype for t in (*self.domain.types, *self.codomain.types)]
        make: Any = LinearOperator  # its stub tells of the class, not of the factory that it is
        return make(
            self.shape,
            matvec=flat(self._forward, self.domain, self.codomain),
            rmatvec=flat(self._back, self.codomain, self.domain),
            dtype=np.result_type(*dtypes) if dtypes else np.dtype(float),
        )

    def __repr__(self) -> str:
        return f"LinearMap({self.domain} -> {self.codomain}, {self.work})"


def _plus(a: list[Any], b: list[Any]) -> list[Any]:
    return [x + y for x, y in zip(a, b, strict=True)]


def _each(space: Space, asks: Callable[[ArrayType], bool]) -> np.ndarray:
    """For each scalar of a space what its leaf's type answers."""
    return np.repeat([asks(t) for t in space.types], [t.size for t in space.types]).astype(bool)


def _check_complex(of_one: object, of_i: object) -> None:
    """Refuse a map that is not linear over the complex numbers: L(i v) = i L(v)."""
    a, b = _plain(of_one), _plain(of_i)
    if a is None or isinstance(a, Box):
        raise StagingError(
            "whether a function is holomorphic depends on values, which are not known while a "
            "program is written; differentiate outside of jit and vmap, for example "
            'grad(jit(f), convention="holomorphic")'
        )
    scale = np.max(np.abs(a), initial=0.0) + np.max(np.abs(b), initial=0.0)
    if np.any(np.abs(b - 1j * a) > scale * np.finfo(np.asarray(a).dtype).eps ** 0.5):
        raise LinearityError(
            "the derivative with respect to complex numbers is not linear over them (the function "
            "is not holomorphic), so no complex matrix holds it; use linearize, whose L @ v is "
            "right for every v, or give the real and the imaginary part as two arguments"
        )


def _plain(value: Leaf) -> Any:
    while isinstance(value, Box) and hasattr(value, "v"):
        value = value.v
    return value


def _narrow(y: Leaf, t: ArrayType) -> Any:
    """In the precision of the result: numbers in a batch are arrays, and widen what they meet."""
    wide = type_of(y).dtype
    fits = wide.kind == t.dtype.kind == "f" or wide.kind == t.dtype.kind == "c"
    return op("astype")(y, dtype=t.dtype) if fits and wide.itemsize > t.dtype.itemsize else y


def _repeat(y: Any, size: int, t: ArrayType) -> Any:
    """A batch of results; one that does not depend on the batch is repeated."""
    shape = (size, *t.shape)
    return y if tuple(y.shape) == shape else np.broadcast_to(y, shape)
