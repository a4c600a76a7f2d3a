"""The type of a value: dtype and shape, printed as `f64[3,4]`.

A linear argument of a rule arrives as its type: there is no value to read.
"""

import enum
import math
import numbers
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from lineara.facts.hints import Leaf, Value

_SHORT = {"float": "f", "complex": "c", "int": "i", "uint": "u"}


class ArrayType(NamedTuple):
    """Shape and dtype of an array or scalar.

    >>> ArrayType((3, 4), np.dtype(float)), ArrayType((), np.dtype(bool))
    (f64[3,4], bool[])
    >>> ArrayType((3, 4), np.dtype(float)).size
    12
    """

    shape: tuple[int, ...]
    dtype: np.dtype

    __lineara_leaf__ = True  # not a container of a shape and a dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    def __repr__(self) -> str:
        return f"{short_dtype(self.dtype)}[{','.join(_dims(self.shape))}]"


_FLOAT = ArrayType((), np.dtype(float))
FLOATS = (float, np.float64, np.float32)  # the classes of nearly every real number: asked first


@cache
def short_dtype(dtype: np.dtype) -> str:
    """`f64`, `c128`, `i32`, `bool`; anything else under NumPy's own name."""
    word = dtype.name.rstrip("0123456789")
    return _SHORT[word] + dtype.name[len(word) :] if word in _SHORT else dtype.name


def type_of(value: Any) -> ArrayType:
    """The type of a number, an array or a traced value.

    >>> type_of(2.0), type_of(np.ones((2, 3), np.float32))
    (f64[], f32[2,3])
    """
    kind = type(value)
    if kind is ArrayType:
        return value
    if kind is float:
        return _FLOAT
    known = getattr(kind, "of_type", None)  # traced numbers
    if known is not None:
        return known
    if getattr(kind, "has_type", False):  # variables of programs
        return value.type
    if getattr(kind, "has_variable", False):  # staged values, which name such a variable
        return value.v.type
    if kind is np.ndarray:
        return ArrayType(value.shape, NUMPYS_OWN[value.dtype])
    if hasattr(value, "dtype") and hasattr(value, "shape") and not issubclass(kind, type):
        try:
            return ArrayType(tuple(value.shape), np.dtype(value.dtype))
        except TypeError:  # another library's own, as torch.float32
            return ArrayType(tuple(value.shape), np.dtype(str(value.dtype).rpartition(".")[2]))
    array = np.asarray(value)
    return ArrayType(array.shape, array.dtype)


def broadcast(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The shape of arrays of these shapes that broadcast; a ValueError where they do not.

    >>> broadcast([(3, 1), (), (3, 1)]), broadcast([(3, 1), (4,)])
    ((3, 1), (3, 4))
    """
    several = {*shapes} - {()}
    return np.broadcast_shapes(*shapes) if len(several) > 1 else next(iter(several), ())


def sample(t: ArrayType) -> np.ndarray:
    """An array of zeros of a type, without memory of its own."""
    if t.dtype.kind in "biufc" and t.dtype.itemsize <= len(_NOTHING):
        return np.ndarray(t.shape, t.dtype, _NOTHING, strides=(0,) * len(t.shape))
    return np.broadcast_to(np.zeros((), t.dtype), t.shape)


_NOTHING = bytes(64)


def show_type(value: Leaf) -> str:
    """How an error message names what it found: `f64[3]`, `str 'abc'`, `None`."""
    if value is None:
        return "None"
    if isinstance(value, str | bytes):
        return f"{type(value).__name__} {value!r}"
    numeric = np.ndarray | np.generic | int | float | complex | ArrayType
    if isinstance(value, numeric) or isinstance(getattr(value, "dtype", None), np.dtype):
        return repr(type_of(value))
    return type(value).__name__


_LABELS = (bool, np.bool_, str, bytes, enum.Enum, type, type(None))


def is_label(value: Value | None) -> bool:
    """Whether a leaf never calculates, and stays as it is: a string, None, a flag, a function.

    >>> [is_label(x) for x in ("name", None, True, 1.0, np.ones(2), print)]
    [True, True, True, False, False, True]
    """
    return isinstance(value, _LABELS) or not hasattr(type(value), "__add__")


def is_number(value: Value | None) -> bool:
    """Whether a leaf calculates: a number, an array, a quantity; not a string or a flag."""
    if is_label(value):
        return False
    if isinstance(value, numbers.Number | np.ndarray):
        return True
    return hasattr(value, "__mul__") and not callable(value)


def is_complex(value: object) -> bool:
    """Whether a value (or type) is complex."""
    dtype = getattr(value, "dtype", None)
    return isinstance(value, complex) if dtype is None else dtype.kind == "c"


# --- types of programs ------------------------------------------------------------------------


class Product(NamedTuple):
    """Several values in one, in order; with `fields` a record.

    >>> x = ArrayType((2,), np.dtype(float))
    >>> Product((x, Product()))
    <f64[2], <>>
    >>> Product((x,), ("a",))
    {a: f64[2]}
    >>> Product() == ArrayType((), np.dtype(float))
    False
    """

    items: "tuple[Type, ...]" = ()
    fields: tuple[str, ...] | None = None
    mark: str = "<>"  # for two items alone <> would be f64: np.dtype(float) == None in NumPy

    __lineara_leaf__ = True

    def __repr__(self) -> str:
        if self.fields is None:
            return f"<{', '.join(map(show, self.items))}>"
        pairs = zip(self.fields, self.items, strict=True)
        return f"{{{', '.join(f'{f}: {show(t)}' for f, t in pairs)}}}"


class Sum(NamedTuple):
    """One of several values, with a tag that says which; an enumeration where all are units.

    >>> Sum((Product(), Product()))
    [<> | <>]
    """

    items: "tuple[Type, ...]"

    __lineara_leaf__ = True

    def __repr__(self) -> str:
        return f"[{' | '.join(map(show, self.items))}]"


class Stack(NamedTuple):
    """Values of one type in a row: n of them, or as many as a loop went round.

    In a program n may be a variable, like a dimension of an array.

    >>> Stack((Named("f.tape"),), 3), Stack((Named("f.tape"),), None)
    (stack[3, f.tape], stack[f.tape])
    """

    items: "tuple[Type]"
    n: int | None

    __lineara_leaf__ = True

    def __repr__(self) -> str:
        length = "" if self.n is None else f"{self.n}, "
        return f"stack[{length}{show(self.items[0])}]"


class Named(NamedTuple):
    """A type that a program defines under a name: every tape is one; with dimensions, of a family.

    A dimension that is None is left open: a value of the type knows it, and nobody else.

    >>> Named("f.jvp.tape"), Named("g.tape", (3, None))
    (f.jvp.tape, g.tape[3, _])
    """

    name: str
    dims: tuple[Any, ...] = ()

    __lineara_leaf__ = True

    def __repr__(self) -> str:
        return f"{self.name}{_bracketed(self.dims)}"


class Family(NamedTuple):
    """What stands for a named type with dimensions: `type f.tape[n] = <f64[n], f64>`."""

    dims: tuple[Any, ...]  # variables
    type: "Type"


def _bracketed(dims: tuple[Any, ...]) -> str:
    return f"[{', '.join(_dims(dims))}]" if dims else ""


def _dims(dims: tuple[Any, ...]) -> list[str]:
    return ["_" if n is None else str(n) for n in dims]


def show_definition(name: str, t: "Type | Family") -> str:
    """The text of the definition of a type.

    >>> show_definition("f.tape", Product())
    'type f.tape = <>'
    """
    dims, t = t if isinstance(t, Family) else ((), t)
    return f"type {name}{_bracketed(dims)} = {show(t)}"


Type = ArrayType | Product | Sum | Stack | Named
UNIT = Product()


def show(t: Type) -> str:
    """The text of a type in a program, where `f64[]` is written `f64`.

    >>> show(ArrayType((), np.dtype(float)))
    'f64'
    """
    return short_dtype(t.dtype) if isinstance(t, ArrayType) and not t.shape else repr(t)


def stacked(t: "Type", n: int | None) -> "Type":
    """n values of a type in one: arrays of numbers get a leading axis, all else makes a stack.

    >>> stacked(ArrayType((3,), np.dtype(float)), 2), stacked(Product(), 2)
    (f64[2,3], stack[2, <>])
    """
    if isinstance(t, ArrayType) and n is not None and not is_ring(t):
        return ArrayType((n, *t.shape), t.dtype)
    return Stack((t,), n)


def is_ring(t: "Type | np.dtype") -> bool:
    """Whether what has the type, or the dtype, is an element of a ring, which may not commute.

    >>> is_ring(np.dtype(object)), is_ring(np.dtype(float)), is_ring(UNIT)
    (True, False, False)
    """
    return getattr(getattr(t, "dtype", t), "kind", "") == "O"


def carries_tangents(dtype: np.dtype) -> bool:
    """Whether numbers of that dtype move: floating, complex, and exact ones."""
    return dtype.kind in "fcO"


# --- dtypes ---------------------------------------------------------------------------------------


class _NumpysOwn(dict[np.dtype, np.dtype]):
    """The dtype of each kind that NumPy's results have, in the byte order of the machine.

    An array that was unpickled, or of C's `long long`, has one that is equal to it and not the
    same.  A table, since the types of arrays are asked for at each operation.

    >>> NUMPYS_OWN[np.dtype(">f4")] is np.dtype(np.float32)
    True
    >>> NUMPYS_OWN[np.dtype(np.longlong)] is np.dtype(np.int64)
    True
    """

    def __missing__(self, dtype: np.dtype) -> np.dtype:
        native = dtype if dtype.isnative else dtype.newbyteorder("=")
        return self.get(native, native)


NUMPYS_OWN = _NumpysOwn((d, np.dtype(d.name)) for d in map(np.dtype, "?bhilqBHILQefdgFDG"))
