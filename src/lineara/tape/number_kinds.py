"""What kind of number a traced number is: Python's or NumPy's, and how one becomes the other.

A number of Python's is `weak`: it raises what Python raises, and takes the precision of an array it
meets.  A float64 of NumPy's is kept as Python's float too, whose operations give the same bits.
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from lineara.facts.hints import Value
from lineara.facts.primitive import Box, op
from lineara.facts.types import ArrayType
from lineara.tape.class_questions import hidden, lacking
from lineara.tape.node import Scalar, Traced, plain, staged


def _numpys(p: Scalar) -> Any:
    """The plain number of a float64 of NumPy's, which is kept as Python's float."""
    return np.float64(p.v) if type(p.v) is float else p.v


# What the classes of a level's numbers have beside the operations of Scalar.
_FLOAT64 = ArrayType((), np.dtype(float))
NUMPYS: dict[str, Any] = {"weak": False, "of_type": _FLOAT64, "below": _numpys}
SLOW: dict[str, Any] = {"weak": vars(Scalar)["weak"], "of_type": None}


@functools.cache
def pythons() -> dict[str, Any]:
    """The attributes of the class of Python's floats; asked for once Scalar is declared whole."""
    return {"weak": True, "of_type": _FLOAT64} | hidden(Scalar, np.float64, float)


@functools.cache
def of_numpy() -> dict[str, Any]:
    """The attributes of the class of NumPy's floats."""
    return NUMPYS | lacking(Scalar, np.float64)


def typed(v: Value) -> Any:
    """A number as NumPy's, whose arithmetic warns where Python's raises."""
    return v.typed() if isinstance(v, Box) else np.result_type(type(v), float).type(v)


def decided(name: str, act: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """An operator under a policy of kinks: the value is the operator's, the derivative chosen."""
    y = op(name)(*map(typed, args))
    return y if staged(args) else valued(y, act(*map(plain, args)))


def valued(y: Any, value: Any) -> Any:
    """The node y with `value` in place of its own, which may differ in kind."""
    if type(value) is tuple:
        return tuple([valued(*pair) for pair in zip(y, value, strict=True)])
    if not issubclass(type(y), Scalar) or type(value) is int:
        return value
    node = y.level.alias(y, weak=not isinstance(value, np.generic))
    inside = valued(node.v, value)
    quick = type(inside) is np.float64 and node.of_type is not None
    return node.level.revalued(node, float(inside) if quick else inside)


def numpys(value: Traced) -> Any:
    """The result of a function of NumPy's: numbers in it become NumPy's."""
    kind = type(value)
    if issubclass(kind, list | tuple) and any([issubclass(type(v), Scalar) for v in value]):
        parts = [numpys(v) for v in value]
        made = kind(*parts) if hasattr(value, "_fields") else kind(parts)
        if hasattr(value, "__dict__"):  # fields of a named tuple that are not among its elements
            vars(made).update({name: numpys(v) for name, v in vars(value).items()})
        return made
    return value.typed() if issubclass(kind, Scalar) else value


def real_typed(a: Any) -> Any:
    """A traced real number as NumPy's; other values as they are, complex ones never raise."""
    return a.typed() if issubclass(type(a), Scalar) and a.dtype.kind == "f" else a


def as_numpys(args: tuple[Any, ...]) -> Any:
    """The arguments of a function of NumPy's; if all are Python's numbers, they become NumPy's."""
    for a in args:
        if type(a) not in (int, float, complex, bool) and not getattr(type(a), "weak", False):
            return args
        if issubclass(type(a), Scalar) and not a.weak:
            return args
    return tuple([real_typed(a) for a in args])


def _conjugate(p: Scalar) -> Any:
    if p.dtype.kind != "c":
        return p
    return p.level.alias(op("conj")(p), p.weak)


def _imag(p: Traced) -> Any:
    return _imag_of_complex(p) if p.dtype.kind == "c" or staged(p) else plain(p).imag


_imag_of_complex: Any = Traced.imag.fget
for _name in ("base", "flags", "strides"):
    setattr(Scalar, _name, property(lambda p, _name=_name: getattr(typed(plain(p)), _name)))
Scalar.transpose = lambda p, *axes: p  # type: ignore[attr-defined]  # as NumPy's number
Scalar.conjugate = Scalar.conj = _conjugate  # type: ignore[method-assign]
Scalar.imag = property(_imag)  # type: ignore[assignment]  # of a real number a constant
