"""The type of a value: dtype and shape, printed as `f64[3,4]`.

A linear argument of a rule arrives as its type: there is no value to read.
"""

import enum
import math
import numbers
from typing import Any, NamedTuple

import numpy as np

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
        return f"{short_dtype(self.dtype)}[{','.join(map(str, self.shape))}]"


_FLOAT = ArrayType((), np.dtype(float))


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
    if kind is np.ndarray:
        return ArrayType(value.shape, value.dtype)
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return ArrayType(tuple(value.shape), np.dtype(value.dtype))
    array = np.asarray(value)
    return ArrayType(array.shape, array.dtype)


def show_type(value: Any) -> str:
    """How an error message names what it found: `f64[3]`, `str 'abc'`, `None`."""
    if value is None:
        return "None"
    if isinstance(value, str | bytes):
        return f"{type(value).__name__} {value!r}"
    if isinstance(value, np.ndarray | np.generic | int | float | complex | ArrayType) or hasattr(
        value, "dtype"
    ):
        return repr(type_of(value))
    return type(value).__name__


_LABELS = (bool, np.bool_, str, bytes, enum.Enum, type, type(None))


def is_label(value: Any) -> bool:
    """Whether a leaf never calculates, and stays as it is: a string, None, a flag, a function.

    >>> [is_label(x) for x in ("name", None, True, 1.0, np.ones(2), print)]
    [True, True, True, False, False, True]
    """
    return isinstance(value, _LABELS) or not hasattr(type(value), "__add__")


def is_number(value: Any) -> bool:
    """Whether a leaf calculates: a number, an array, a quantity; not a string or a flag."""
    if is_label(value):
        return False
    if isinstance(value, numbers.Number | np.ndarray):
        return True
    return hasattr(value, "__mul__") and not callable(value)


def is_complex(value: Any) -> bool:
    """Whether a value (or type) is complex."""
    dtype = getattr(value, "dtype", None)
    return isinstance(value, complex) if dtype is None else dtype.kind == "c"
