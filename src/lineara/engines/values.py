"""Values of programs: numbers, arrays, tuples, stacks, tagged values, and the symbol for zero.

What a program is given is made into values of the types of its formals here, whichever engine
evaluates it.
"""

import itertools
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from lineara.errors import ProgramError
from lineara.facts.hints import Tree, Value
from lineara.facts.types import ArrayType, Product, Stack, Sum, Type, is_ring, show, type_of
from lineara.linear_a import syntax as ir
from lineara.linear_a.dimensions import dims_in, is_open, with_dims
from lineara.linear_a.program import Program, scalars_of


class SymbolicZero:
    """The zero of every vector space: ~a + 0 is ~a, and nothing is made until it is asked for."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "0"


ZERO = SymbolicZero()


class Tagged(NamedTuple):
    """A value of a sum: which alternative, and its payload."""

    tag: int
    payload: Any


class Repeated(list[Any]):
    """A stack many of whose rows, one after the other, are one row.

    It has the length of the stack, and rows by their numbers; later rows may be put to it.  Who
    goes through it meets the others, that one, and what takes the memory of the rest, so that bytes
    add up.
    """

    more: int
    kept: int
    rest: int
    backward: bool

    def __init__(
        self,
        rows: Sequence[Any],
        rest: Sequence[Any],
        more: int,
        backward: bool = False,
        later: Sequence[Any] = (),
    ) -> None:
        super().__init__([*rows, *rest, *later])
        self.kept, self.rest, self.more, self.backward = len(rows), len(rest), more, backward

    @property
    def later(self) -> int:
        """How many rows come after those that are one row."""
        return list.__len__(self) - self.kept - self.rest

    def __len__(self) -> int:
        return self.kept + self.more + self.later

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            assert at == slice(None, None, -1), "the rows of a loop that ran the other way"
            return self.mapped(lambda v: v, not self.backward)
        i = range(len(self))[-1 - at if self.backward else at]
        after = i - self.kept - self.more
        place = min(i, self.kept - 1) if after < 0 else self.kept + self.rest + after
        return list.__getitem__(self, place)

    def mapped(self, f: Callable[[Any], Any], backward: bool | None = None) -> "Repeated":
        """A stack of what a function makes of the rows."""
        made = [f(v) for v in self]
        way = self.backward if backward is None else backward
        end = self.kept + self.rest
        return Repeated(made[: self.kept], made[self.kept : end], self.more, way, made[end:])


def alike(rows: Any, at: int, step: int, left: int) -> int:
    """How many of the rows that are left of a stack are the one at this place.

    Which branches a round takes may hang on the tags in its row; rows of an array have none.
    """
    if not isinstance(rows, list):
        return left
    if isinstance(rows, Repeated):
        first = rows.later if rows.backward else rows.kept - 1
        if first <= at <= first + rows.more:
            return first + rows.more - at if step > 0 else at - first
    ahead = range(at + step, at + step * (left + 1), step)
    return sum([1 for _ in itertools.takewhile(lambda i: rows[i] is rows[at], ahead)])


def may_end(program: Program, name: str) -> bool:
    """Whether some way through a definition ends: one that calls itself on every way has no value.

    A loop may take no round, and of a branch one alternative is enough.
    """

    def ends(d: ir.Def, known: dict[str, bool]) -> bool:
        applied = ir.applications(d.body)
        return all([e.may_end([known.get(g, True) for g in e.functions]) for e in applied])

    return program.least("ends", ends)[name]


def nbytes(value: object) -> int:
    """The bytes of a number or an array, or of all in a product."""
    if isinstance(value, tuple | list):
        return sum(map(nbytes, value))
    return getattr(value, "nbytes", 0)


def is_array(value: Value) -> bool:
    """Whether a value has axes."""
    return bool(getattr(value, "ndim", 0))


def plus(x: Any, y: Any) -> Any:
    """The sum of two values of one type, products and tags included."""
    if x is ZERO or y is ZERO:
        return y if x is ZERO else x
    if isinstance(x, Tagged):
        assert x.tag == y.tag, "tangents of one value have one tag"
        return Tagged(x.tag, plus(x.payload, y.payload))
    if isinstance(x, list):
        return [plus(x[i], y[i]) for i in range(len(x))]
    if isinstance(x, tuple):
        return tuple([plus(a, b) for a, b in zip(x, y, strict=True)])
    assert np.shape(x) == np.shape(y), "tangents of one value have one size"
    return x + y


def times(x: Any, y: Any) -> Any:
    """A value of any type, scaled: one of the two is a product."""
    if isinstance(y, tuple):
        return tuple([b if b is ZERO else times(x, b) for b in y])
    return tuple([a if a is ZERO else times(a, y) for a in x]) if isinstance(x, tuple) else x * y


def measure(program: Program, t: Type, value: Any) -> int:
    """The scalars of a linear value; of a sum, those of its payload."""
    t = program.unfold(t)
    if isinstance(t, ArrayType):
        if is_open(t):
            return 0 if value is ZERO else scalars_of(type_of(value))
        return scalars_of(t)
    if isinstance(t, Sum):
        return 0 if value is ZERO else measure(program, t.items[value.tag], value.payload)
    if isinstance(t, Stack):
        if isinstance(value, Repeated):
            again = value.more * measure(program, t.items[0], value[value.kept - 1])
            return again + measure(program, t, [value[i] for i in range(value.kept)])
        n = t.n if value is ZERO else len(value)
        rows = [ZERO] * (n or 0) if value is ZERO else value
        return sum(measure(program, t.items[0], v) for v in rows)
    assert isinstance(t, Product)
    parts = [ZERO] * len(t.items) if value is ZERO else value
    return sum(measure(program, s, v) for s, v in zip(t.items, parts, strict=True))


def zeros(program: Program, t: Type, of_ring: Callable[[], Any] = int) -> Any:
    """The zero of a type, in numbers; sums stay symbolic, and that of a ring is `of_ring()`."""
    t = program.unfold(t)
    if isinstance(t, ArrayType):
        if is_open(t):
            return ZERO
        if is_ring(t) and not t.shape:
            return of_ring()
        return np.zeros(t.shape, t.dtype) if t.shape else t.dtype.type(0)
    if isinstance(t, Stack) and t.n is not None:
        return [zeros(program, t.items[0], of_ring) for _ in range(t.n)]
    if isinstance(t, Sum | Stack):
        return ZERO
    assert isinstance(t, Product)
    return tuple([zeros(program, item, of_ring) for item in t.items])


def fits(program: Program, t: Type, value: Any) -> bool:
    """Whether a value has the sizes that its type says; what is open may be anything."""
    t = program.unfold(t)
    if value is ZERO:
        return True
    if isinstance(t, ArrayType):
        shape = np.shape(value)
        return len(shape) == t.ndim and all(
            [n in (None, m) for n, m in zip(t.shape, shape, strict=True)]
        )
    if isinstance(t, Sum):
        return fits(program, t.items[value.tag], value.payload)
    if isinstance(t, Stack):
        return t.n in (None, len(value)) and all([fits(program, t.items[0], v) for v in value])
    assert isinstance(t, Product)
    return all([fits(program, s, v) for s, v in zip(t.items, value, strict=True)])


def dense(
    program: Program, t: Type, value: Any, zero: Callable[[Program, Type], Any] = zeros
) -> Any:
    """A value in numbers, with no symbol left in it but for sums; erased code has symbols, too."""
    t = program.unfold(t)
    if value is ZERO:
        return zero(program, t)
    if isinstance(t, Product):
        return tuple([dense(program, s, v, zero) for s, v in zip(t.items, value, strict=True)])
    if isinstance(t, Stack):
        return [dense(program, t.items[0], v, zero) for v in value]
    if isinstance(t, Sum):
        return Tagged(value.tag, dense(program, t.items[value.tag], value.payload, zero))
    return value


def exactly(value: Value, scalar: Callable[[Any], Any]) -> Any:
    """A value whose floating numbers are those of another kind: `Fraction` for exact ones."""
    if isinstance(value, Tagged):
        return Tagged(value.tag, exactly(value.payload, scalar))
    if isinstance(value, list):
        return [exactly(v, scalar) for v in value]
    if isinstance(value, tuple):
        return tuple([exactly(v, scalar) for v in value])
    if isinstance(value, float | np.floating):
        return scalar(float(value))
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        array = np.empty(value.shape, object)
        array.ravel()[:] = [scalar(float(v)) for v in value.ravel()]
        return array
    return value


def dims_given(program: Program, name: str, args: Sequence[Any]) -> dict[ir.Var, int]:
    """The dimensions of a definition in numbers."""
    dims = program.dims(name)
    if not dims:
        return {}
    at = dict(zip(program.defs[name].params, args, strict=True))
    sizes = {v: at[v] for v in dims}
    for v, n in sizes.items():
        if np.ndim(n) or not isinstance(n, int | np.integer) or n < 0:
            raise ProgramError(
                f"{v!r} is a dimension in {name}: give it a whole number that is not negative, "
                f"not {n!r}"
            )
    return {v: int(n) for v, n in sizes.items()}


def fit_argument(
    program: Program, p: ir.Var, value: Tree, name: str, dims: dict[ir.Var, int]
) -> Any:
    """A value of the type of a formal, or an error."""
    try:
        return fit(program, with_dims(p.type, dims), value)
    except (TypeError, ValueError) as error:
        known = dict.fromkeys(dims_in(p.type))
        where = ", where " * bool(known) + " and ".join(f"{v!r} is {dims[v]}" for v in known)
        raise ProgramError(f"{name} takes {show(p.type)} as {p!r}{where}: {error}") from None


def fit(program: Program, t: Type, value: Tree) -> Any:
    """A value as one of the type: nested lists are arrays and tuples; nothing is rounded off."""
    t = program.unfold(t)
    if isinstance(t, Sum):
        if isinstance(value, bool | np.bool_ | int) and program.is_inert(t):
            value = Tagged(int(value), ())
        if not isinstance(value, Tagged) or not 0 <= value.tag < len(t.items):
            raise TypeError(f"{value!r} is none of its {len(t.items)} alternatives")
        return Tagged(value.tag, fit(program, t.items[value.tag], value.payload))
    if isinstance(t, Stack):
        if not isinstance(value, tuple | list) or t.n not in (None, len(value)):
            raise TypeError(f"{value!r} is no stack of {t.n or 'some'} values")
        return [fit(program, t.items[0], v) for v in value]
    if isinstance(t, Product):
        if isinstance(value, dict) and t.fields is not None:
            if set(value) != set(t.fields):
                raise TypeError(f"the fields are {', '.join(t.fields)}, not {', '.join(value)}")
            value = [value[f] for f in t.fields]
        if not isinstance(value, tuple | list) or len(value) != len(t.items):
            raise TypeError(f"{value!r} is no product of {len(t.items)} values")
        return tuple([fit(program, s, v) for s, v in zip(t.items, value, strict=True)])
    assert isinstance(t, ArrayType)
    if isinstance(value, Fraction) or (is_ring(t) and not t.shape):
        if isinstance(value, np.ndarray | list | tuple):
            raise TypeError(f"{value!r} is no element of a ring; give what has + - and *")
        return value
    array = np.asarray(value)
    fitting = fits(program, t, array)
    if array.dtype == object and fitting and _is_exact(array):
        return array.copy()
    if not fitting or not _holds(array, t.dtype):
        what = show(type_of(array)) if array.dtype.kind in "biufc" else repr(value)
        raise TypeError(f"found {what}")
    return array.astype(t.dtype) if t.shape else t.dtype.type(array)


def _is_exact(array: np.ndarray) -> bool:
    """Whether an array holds fractions."""
    return all(isinstance(v, Fraction) for v in array.flat)


def _holds(array: np.ndarray, dtype: np.dtype) -> bool:
    """Whether numbers go into a dtype unchanged in kind: integers may become floating."""
    order = "biufc".replace("u", "")
    kind, want = array.dtype.kind.replace("u", "i"), dtype.kind.replace("u", "i")
    if kind not in order or want not in order:
        return array.dtype == object
    if array.size == 0:
        return True
    return order.index(kind) <= order.index(want) and (kind == "b") == (want == "b")


def bytes_of(value: Tree) -> int:
    """The bytes of the numbers in a value of the language.

    >>> bytes_of((np.zeros(3), Tagged(1, [np.float64(1.0)])))
    32
    """
    if isinstance(value, Tagged):
        return bytes_of(value.payload)
    if isinstance(value, tuple | list):
        return sum(map(bytes_of, value))
    return getattr(value, "nbytes", 0)


def ones_of(t: Type) -> Any:
    """The value of an array type that is all ones.

    >>> ones_of(ArrayType((2,), np.dtype(float)))
    array([1., 1.])
    """
    assert isinstance(t, ArrayType), "a function of arrays has arrays as its operands"
    return np.ones(t.shape, t.dtype) if t.shape else t.dtype.type(1)
