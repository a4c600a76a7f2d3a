"""What `float`, `complex` and NumPy's floating types are in the user's code: they keep derivatives.

Each is a subclass of the type that it stands for, so that it is a dtype, a base class, a pattern
and half of `float | None`; calling it converts, and `isinstance` asks for the real type.
"""

import numbers
from collections.abc import Callable
from typing import Any

import numpy as np

from lineara.eager.node import Array, Scalar, Traced
from lineara.primitive import op

ABSTRACT = (numbers.Number, numbers.Complex, numbers.Real)


class _Constructor(type):
    """The metaclass: `original` is the type, `convert` what a call does with traced arguments."""

    original: type
    convert: Callable[..., Any]

    def __call__(cls, *args: Any, **options: Any) -> Any:
        if any([isinstance(a, Traced) for a in args]):
            return cls.convert(*args, **options)
        return cls.original(*args, **options)

    def __instancecheck__(cls, obj: Any) -> bool:
        answer = is_instance(obj, cls.original)
        return isinstance(obj, cls.original) if answer is None else answer

    def __subclasscheck__(cls, other: type) -> bool:
        return issubclass(other, cls.original)


def constructor(original: Any, convert: Callable[..., Any]) -> type:
    """The class that stands for a floating type."""
    names = {"dtype": np.dtype(original), "original": original, "convert": staticmethod(convert)}
    names |= {"__doc__": original.__doc__, "__module__": original.__module__}
    if original in (float, complex):
        names["fromhex"] = getattr(original, "fromhex", None)
    return _Constructor(original.__name__, (original,), names)


def _number(value: Any) -> Any:
    return value.item() if isinstance(value, Array) else value


def to_float(value: Any) -> Any:
    """float() of a traced number."""
    value = _number(value)
    if value.dtype.kind == "c":
        raise TypeError("float() argument must be a real number, not a complex one")
    return op("astype")(value, dtype=np.dtype(float)) if value.dtype == np.float32 else value


def to_complex(real: Any = 0.0, imag: Any = 0.0) -> Any:
    """complex() of traced numbers."""
    real, imag = _number(real), _number(imag)
    found = real if type(imag) is float and imag == 0.0 else real + 1j * imag
    return found.astype(complex) if isinstance(found, Traced) else found


def _typed(dtype: Any) -> Callable[..., Any]:
    def convert(value: Any) -> Any:
        value = value.now()
        return value if value.dtype == dtype else value.astype(dtype)

    return convert


def constructors() -> dict[Any, type]:
    """Every floating type and what stands for it."""
    found = {float: constructor(float, to_float), complex: constructor(complex, to_complex)}
    for t in (np.float64, np.float32, np.complex128, np.complex64):
        found[t] = constructor(t, _typed(np.dtype(t)))
    return found


# --- what a traced value is ----------------------------------------------------------------------


def is_instance(value: Any, cls: type) -> bool | None:
    """What isinstance says of a traced value: that it is the number or the array it stands for."""
    if isinstance(value, Array):
        return True if cls is np.ndarray else None
    if isinstance(value, Scalar):
        kind = value.dtype.type
        if kind is np.object_:  # an exact number
            return isinstance(value.below(), cls)
        real = kind not in (np.complex128, np.complex64)
        return cls in kind.__mro__ or cls in ABSTRACT[: 3 if real else 2] or None
    return None


def class_of(value: Any) -> type | None:
    """What type() says of a traced value."""
    if isinstance(value, Array):
        return np.ndarray
    if isinstance(value, Scalar):
        kind = value.dtype.type
        named = {np.float64: float, np.complex128: complex, np.object_: type(value.below())}
        return named.get(kind, kind)
    return None
