"""Which basis vectors each element of a value depends on: a value of sets in place of numbers.

    x            {0} {1} {2} {3}
    x[1:] * a    {1} {2} {3}
    + x[:-1]     {0 1} {1 2} {2 3}

What a primitive does to the sets follows from its kind and its own evaluation.  An elementwise one
unites the sets of the elements that meet; one that is locally constant has none.  One that moves
elements is evaluated on their numbers, which says where each goes; a linear one is a matrix, whose
product with the sets it is; one with an axis mixes along it.  Anything else may mix everything.
"""

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from lineara.cotangent.batched import Batched
from lineara.errors import ShapeError
from lineara.facts.hints import Index
from lineara.facts.primitive import Constant, Elementwise, Linear, Primitive, Structural
from lineara.facts.symbol import Sym
from lineara.facts.types import ArrayType, type_of

LARGEST = 1 << 22  # entries of the matrix of a primitive that is found by its batch rule
MOST = 1 << 28  # entries of a pattern beyond which it is refused
BY_ELEMENT = ("astype", "conj", "imag", "keep", "live_factor", "of_parts", "real", "where")
NONE: frozenset[int] = frozenset()


class Dependent(Batched):
    """Of each element of a value of some type, the set of the basis vectors it depends on.

    The sets are the rows of a boolean matrix in compressed rows; where elements are written one by
    one, a list of sets.
    """

    __slots__ = ("_matrix", "_sets", "count", "type")
    has_type = True

    def __init__(
        self, type: ArrayType, matrix: Any, count: int, depth: int, sets: list[Any] | None = None
    ) -> None:
        self.type: ArrayType = type
        self._matrix = matrix
        self._sets = sets
        self.count: int = count  # of basis vectors
        self.depth = depth

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the value."""
        return self.type.shape

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self.type.ndim

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the value."""
        return self.type.dtype

    @property
    def live(self) -> np.ndarray:
        """No numbers: there are sets only."""
        return np.zeros(0)

    def __len__(self) -> int:
        return self.type.shape[0]

    @property
    def matrix(self) -> Any:
        """The sets as rows of a boolean matrix, (elements, basis vectors)."""
        if self._matrix is None:
            lengths = [len(s) for s in self._sets or ()]
            columns = np.fromiter((c for s in self._sets or () for c in sorted(s)), np.int32)
            indptr = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
            self._matrix = _csr(columns, indptr, self.count)
        return self._matrix

    @property
    def sets(self) -> list[frozenset[int]]:
        """The sets, one for each element."""
        if self._sets is None:
            columns, at = self.matrix.indices.tolist(), self.matrix.indptr.tolist()
            self._sets = [frozenset(columns[i:j]) for i, j in itertools.pairwise(at)]
        return self._sets

    def set_at(self, i: int) -> frozenset[int]:
        """The set of one element."""
        if self._sets is not None:
            return self._sets[i]
        at = self.matrix.indptr
        return frozenset(self.matrix.indices[at[i] : at[i + 1]].tolist())

    def like(self, type: ArrayType, matrix: Any) -> "Dependent":
        """A value of a type with these sets."""
        return Dependent(type, matrix, self.count, self.depth)

    def number(self, type: ArrayType, columns: frozenset[int]) -> "Dependent":
        """A number with this set."""
        return Dependent(type, None, self.count, self.depth, [columns])

    def constant(self, type: ArrayType) -> "Dependent":
        """A value of a type that depends on nothing, and is not known."""
        return self.like(type, _empty(type.size, self.count))

    def copy(self) -> "Dependent":
        """One that can be written."""
        sets = None if self._sets is None else [*self._sets]
        matrix = self._matrix if sets is None else None
        return Dependent(self.type, matrix, self.count, self.depth, sets)

    def astype(self, dtype: Any) -> "Dependent":
        """In another dtype."""
        return Dependent(
            ArrayType(self.shape, np.dtype(dtype)), self._matrix, self.count, self.depth, self._sets
        )

    def __getitem__(self, at: Index) -> "Dependent":
        rows = np.arange(self.type.size).reshape(self.shape)[at]  # type: ignore[index]
        return self.like(ArrayType(rows.shape, self.dtype), _taken(self.matrix, rows.ravel()))

    def write(self, at: Any, y: Any, add: bool) -> None:
        """Put or add a part: what the elements there depend on is replaced, or more."""
        place = _one_place(at, self.shape)
        mine = isinstance(y, Dependent)
        if place is not None and not (mine and y.type.size != 1):
            new = y.set_at(0) if mine else NONE
            self.sets[place] = self.sets[place] | new if add else new
            self._matrix = None
            return
        places = np.asarray(np.arange(self.type.size).reshape(self.shape)[at])
        rows = broadcast(y, places.shape) if mine else _empty(places.size, self.count)
        if add:
            matrix = self.matrix + _ones(places.ravel(), self.type.size) @ rows
        else:
            which = np.arange(self.type.size)
            which[places.ravel()] = self.type.size + np.arange(places.size)
            matrix = _taken(_stacked([self.matrix, rows]), which)
        self._matrix, self._sets = matrix, None

    def interpret(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """What the result depends on."""
        with np.errstate(all="ignore"):
            t = primitive.result(*[type_of(a) if _is(a) else a for a in args], **params)
        return applied(primitive, args, params, type_of(t))


def _is(a: object) -> bool:
    return isinstance(a, Dependent)


def seeds(types: Sequence[ArrayType], depth: int) -> list[Dependent]:
    """Values of these types, each element of which is a basis vector of its own."""
    count, start, values = sum(t.size for t in types), 0, []
    for t in types:
        columns = np.arange(start, start + t.size, dtype=np.int32)
        matrix = _csr(columns, np.arange(t.size + 1), count)
        values.append(Dependent(t, matrix, count, depth))
        start += t.size
    return values


# --- the rules of the kinds -----------------------------------------------------------------------


def applied(
    primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any], t: ArrayType
) -> "Dependent":
    """What the result of a primitive, of type t, depends on; an argument, or a position, does."""
    mine = [a for a in args if isinstance(a, Dependent)]
    positions = [p for p in mentioned(params) if isinstance(p, Dependent)]
    some = (mine or positions)[0]
    if isinstance(primitive, Constant) or not mine:
        return some.constant(t)
    if positions:
        return mixed(mine, t)
    if isinstance(primitive, Elementwise) or primitive.name in BY_ELEMENT:
        return _united(_reaching(primitive, args), args, t, some)
    if primitive.name == "index":
        place = _one_place(params["at"], some.shape)
        if place is not None:
            return some.number(t, some.set_at(place))
    moved = None
    if isinstance(primitive, Structural):
        moved = _moved(primitive, args, params, t)
    elif primitive.name == "matmul":
        moved = _matmul(args[0], args[1], t, some)
    elif "axis" in params:
        moved = _along_axes(mine, params["axis"], t)
    elif "subscripts" in params:
        moved = _along_letters(args, params["subscripts"], t, some)
    elif len(mine) == 1:
        moved = _as_matrix(primitive, args, params, t)
    return mixed(mine, t) if moved is None else moved


def mentioned(params: object) -> Iterable[object]:
    """What parameters mention."""
    if isinstance(params, dict):
        params = tuple(params.values())
    if isinstance(params, slice):
        params = (params.start, params.stop, params.step)
    if not isinstance(params, tuple):
        yield params
        return
    for p in params:
        yield from mentioned(p)


def _reaching(primitive: Primitive, args: tuple[Any, ...]) -> list[Dependent]:
    """The arguments that the derivative of an elementwise primitive reaches."""
    partials: list[Any] = [None] * len(args)
    if isinstance(primitive, Elementwise):
        partials = primitive.expressions()
    known: dict[str, Any] = dict(zip(Elementwise.ARGS, args, strict=False))
    partials = [known.get(p.head) if isinstance(p, Sym) and not p.args else p for p in partials]
    return [
        a
        for a, p in zip(args, partials, strict=True)
        if isinstance(a, Dependent) and not _is_known_zero(p)
    ]


def _is_known_zero(p: Any) -> bool:
    """Whether a partial is the number 0, stated or given as a factor."""
    return isinstance(p, int | float | np.number) and p == 0


def _united(
    reaching: list[Dependent], args: tuple[Any, ...], t: ArrayType, some: Dependent
) -> Dependent:
    """The union of what the elements that meet depend on."""
    if not t.shape:
        return some.number(t, NONE.union(*[a.set_at(0) for a in reaching]))
    rows, seen = None, []
    for a in reaching:
        if any([a is b for b in seen]):
            continue
        seen.append(a)
        more = broadcast(a, t.shape)
        rows = more if rows is None else rows + more
    return some.constant(t) if rows is None else some.like(t, rows)


def broadcast(a: Dependent, shape: tuple[int, ...]) -> Any:
    """The sets of the elements of a value that is broadcast to a shape."""
    if a.shape == shape:
        return a.matrix
    which = np.broadcast_to(np.arange(a.type.size).reshape(a.shape), shape)
    return _taken(a.matrix, which.ravel())


def _moved(
    primitive: Structural, args: tuple[Any, ...], params: dict[str, Any], t: ArrayType
) -> Dependent | None:
    """Each element is one of the arguments', or none: or each of them goes to one at most.

    The primitive, or its transpose, is evaluated on the numbers of the elements; that none is a sum
    of several is seen from its value at ones.
    """
    linear = range(len(args)) if primitive.linear is None else primitive.linear
    if any([isinstance(a, Dependent) for i, a in enumerate(args) if i not in linear]):
        return None
    numbers, ones, blocks, start = [*args], [*args], [], 1
    for i in linear:
        shape, size = type_of(args[i]).shape, type_of(args[i]).size
        numbers[i], ones[i] = np.zeros(shape), np.zeros(shape)
        if isinstance(args[i], Dependent):
            numbers[i] = np.arange(start, start + size, dtype=float).reshape(shape)
            ones[i] = np.ones(shape)
            blocks.append(args[i])
            start += size
    evaluate = primitive.evaluate
    if np.max(evaluate(np, *ones, **params), initial=0.0) <= 1.0:
        which = np.ravel(evaluate(np, *numbers, **params)).astype(np.int64) - 1
        rows = _stacked([b.matrix for b in blocks])
        return blocks[0].like(t, _taken(rows, which))
    back = [type_of(a) if i in linear else a for i, a in enumerate(args)]
    to_one = primitive.transpose(np.ones(t.shape), *back, **params)
    if any([x is None or np.max(x, initial=0.0) > 1.0 for x in to_one]):
        return None
    to = primitive.transpose(np.arange(1.0, t.size + 1).reshape(t.shape), *back, **params)
    rows = None
    for i, places in zip(linear, to, strict=True):
        if isinstance(args[i], Dependent):
            more = _ones(np.ravel(places).astype(np.int64) - 1, t.size) @ args[i].matrix
            rows = more if rows is None else rows + more
    return blocks[0].like(t, rows)


def _along_axes(mine: list[Dependent], axis: Any, t: ArrayType) -> Dependent | None:
    """What is mixed along axes: the result has these with another length, or has them not."""
    shape = mine[0].shape
    whole = axis is None or any([a.shape != shape for a in mine])
    axes = () if whole else axis if isinstance(axis, tuple) else (axis,)
    if whole or not all([isinstance(i, int | np.integer) for i in axes]):
        return None
    axes = {int(i) % max(1, len(shape)) for i in axes if i is not None}
    kept = tuple([1 if i in axes else n for i, n in enumerate(shape)])
    left = tuple([n for i, n in enumerate(shape) if i not in axes])
    groups = np.broadcast_to(np.arange(math.prod(kept)).reshape(kept), shape).ravel()
    rows = None
    for a in mine:
        more = _ones(groups, math.prod(kept)) @ a.matrix
        rows = more if rows is None else rows + more
    if t.shape == left:
        return mine[0].like(t, rows)
    if len(t.shape) != len(shape) or any([
        n != m for i, (n, m) in enumerate(zip(t.shape, shape, strict=True)) if i not in axes
    ]):  # fmt: skip
        return None
    which = np.broadcast_to(np.arange(math.prod(kept)).reshape(kept), t.shape)
    return mine[0].like(t, _taken(rows, which.ravel()))


def _along_letters(
    args: tuple[Any, ...], subscripts: str, t: ArrayType, some: Dependent
) -> Dependent | None:
    """An Einstein sum: each operand is mixed along the letters that the result has not."""
    inputs, _, output = subscripts.partition("->")
    rows = None
    for letters, a in zip(inputs.split(","), args, strict=True):
        if not isinstance(a, Dependent):
            continue
        if len({*letters}) < len(letters):
            return None
        kept = [c for c in letters if c in output]
        left = _along_axes(
            [a],
            tuple([i for i, c in enumerate(letters) if c not in output]),
            ArrayType(tuple([a.shape[letters.index(c)] for c in kept]), t.dtype),
        )
        assert left is not None
        order = sorted(range(len(kept)), key=lambda i: output.index(kept[i]))
        numbers = np.arange(left.type.size).reshape(left.shape).transpose(order)
        lined = numbers.reshape(
            [n if c in kept else 1 for c, n in zip(output, t.shape, strict=True)]
        )
        more = _taken(left.matrix, np.broadcast_to(lined, t.shape).ravel())
        rows = more if rows is None else rows + more
    return None if rows is None else some.like(t, rows)


def _matmul(a: Any, b: Any, t: ArrayType, some: Dependent) -> Dependent:
    """A product: with a known matrix by that, else along the axis that is summed."""
    import scipy.sparse as sparse

    if isinstance(b, Dependent) and isinstance(a, np.ndarray) and a.ndim == 2 and b.ndim <= 2:
        many = sparse.csr_array(a != 0)
        if b.ndim == 2:
            many = sparse.kron(many, sparse.eye_array(b.shape[1], dtype=bool), "csr")
        return some.like(t, many @ b.matrix)
    if isinstance(a, Dependent) and isinstance(b, np.ndarray) and b.ndim == 2 and a.ndim <= 2:
        many = sparse.csr_array(b.T != 0)
        if a.ndim == 2:
            many = sparse.kron(sparse.eye_array(a.shape[0], dtype=bool), many, "csr")
        return some.like(t, many @ a.matrix)
    rows = None
    for x, axis, one in ((a, -1, type_of(b).ndim > 1), (b, max(-2, -type_of(b).ndim), True)):
        if not isinstance(x, Dependent):
            continue
        lined = tuple([1 if i == x.ndim + axis else n for i, n in enumerate(x.shape)])
        along = _along_axes([x], axis, ArrayType(lined, t.dtype))
        assert along is not None
        if x is a and not one:  # a matrix by a vector: the summed axis is gone
            lined = lined[:-1]
        elif x is b and type_of(a).ndim == 1 and x.ndim > 1:
            lined = (*lined[:-2], lined[-1])
        elif x.ndim == 1:
            lined = (1,) * bool(x is a and t.ndim)
        more = broadcast(some.like(ArrayType(lined, t.dtype), along.matrix), t.shape)
        rows = more if rows is None else rows + more
    return some.like(t, rows)


def _as_matrix(
    primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any], t: ArrayType
) -> Dependent | None:
    """The product with the matrix of a map that is linear in its one argument, if that is small."""
    (place,) = [i for i, a in enumerate(args) if isinstance(a, Dependent)]
    x = args[place]
    one = primitive.linear_in((place,), len(args))
    linear = not isinstance(one, str) and (isinstance(primitive, Linear) or not one)
    if not linear or x.type.size * t.size > LARGEST or x.dtype.kind != "f":
        return None
    import scipy.sparse as sparse

    given = [*args]
    for i in () if isinstance(one, str) else one:
        given[i] = np.zeros(type_of(args[i]).shape)
    given[place] = np.eye(x.type.size).reshape(x.type.size, *x.shape)
    columns = primitive.batch(tuple(given), tuple([i == place for i in range(len(args))]), params)
    many = sparse.csr_array(np.reshape(columns, (x.type.size, t.size)).T != 0)
    return x.like(t, many @ x.matrix)


def mixed(mine: list[Dependent], t: ArrayType) -> Dependent:
    """Every element may depend on all that the arguments depend on."""
    columns = np.unique(np.concatenate([a.matrix.indices for a in mine])).astype(np.int32)
    if len(columns) * t.size > MOST:
        raise ShapeError(
            f"sparsity: each of {t.size} elements may depend on {len(columns)} others, so the "
            "pattern is as large as the matrix; ask for the dense Jacobian, or give its pattern"
        )
    if not t.shape:
        return mine[0].number(t, frozenset(columns.tolist()))
    indptr = np.arange(t.size + 1) * len(columns)
    return mine[0].like(t, _csr(np.tile(columns, t.size), indptr, mine[0].count))


def joined(a: Dependent, b: Dependent) -> Dependent:
    """What may be the one or the other."""
    if a.type.size == 1 and not a.shape:
        return a.number(a.type, a.set_at(0) | b.set_at(0))
    return a.like(a.type, a.matrix + b.matrix)


def through(y: Any, vectors: Sequence[Dependent], some: Dependent) -> Dependent:
    """What depends on the elements of vectors, which are sets themselves: the sets that meet."""
    if not isinstance(y, Dependent):
        return some.constant(type_of(y))
    return some.like(y.type, y.matrix @ _stacked([v.matrix for v in vectors]))


def stacked(values: Sequence[Any], t: ArrayType, some: Dependent) -> Dependent:
    """Rows as one array of type t; those that are known depend on nothing."""
    size = t.size // max(1, len(values))
    empty = _empty(size, some.count)
    return some.like(t, _stacked([v.matrix if isinstance(v, Dependent) else empty for v in values]))


# --- boolean matrices in compressed rows ----------------------------------------------------------


def _csr(columns: np.ndarray, indptr: np.ndarray, count: int) -> Any:
    from scipy.sparse import csr_array

    rows = len(indptr) - 1
    data = np.ones(len(columns), bool)
    return csr_array((data, columns, indptr.astype(np.int32)), shape=(rows, count))


def _empty(rows: int, count: int) -> Any:
    return _csr(np.zeros(0, np.int32), np.zeros(rows + 1, np.int32), count)


def _ones(rows: np.ndarray, size: int) -> Any:
    """The matrix that adds element i to row rows[i]; a row below 0 is none."""
    from scipy.sparse import csr_array

    columns = np.flatnonzero(rows >= 0)
    data = np.ones(len(columns), bool)
    return csr_array((data, (rows[columns], columns)), shape=(size, len(rows)))


def _stacked(blocks: list[Any]) -> Any:
    from scipy.sparse import vstack

    return blocks[0] if len(blocks) == 1 else vstack(blocks, format="csr")


def _taken(matrix: Any, which: np.ndarray) -> Any:
    """Rows by their numbers; one below 0 is empty."""
    starts, ends = matrix.indptr[which], matrix.indptr[which + 1]
    counts = np.where(which < 0, 0, ends - starts)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    ahead = np.repeat(starts - indptr[:-1], counts)
    return _csr(matrix.indices[ahead + np.arange(len(ahead))], indptr, matrix.shape[1])


def _one_place(at: Any, shape: tuple[int, ...]) -> int | None:
    """The number of the element at an index that is a whole number for each axis."""
    parts = at if isinstance(at, tuple) else (at,)
    if len(parts) != len(shape):
        return None
    place = 0
    for p, n in zip(parts, shape, strict=True):
        if isinstance(p, bool) or not isinstance(p, int | np.integer):
            return None
        if not -n <= p < n:
            return None
        place = place * n + int(p) % n
    return place
