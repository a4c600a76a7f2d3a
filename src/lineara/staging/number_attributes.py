"""What Python's whole numbers and NumPy's say of themselves, of staged numbers.

A number has the attributes of the class that it stands for.  What has no rule in a program, as
`int.to_bytes`, is refused, so that `hasattr` and `getattr` with a default tell nothing wrong.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from lineara.errors import StagingError
from lineara.facts.primitive import op
from lineara.facts.types import type_of
from lineara.tape.node import Scalar

_WHOLE = np.dtype(np.int64)


class Attribute:
    """An attribute that `get` gives, if the class that the number stands for has it."""

    def __init__(self, name: str, get: Callable[[Scalar], Any]) -> None:
        self.name, self.get = name, get

    def __get__(self, n: Any, owner: type) -> Any:
        if n is None:
            return self
        kind = n.stands_for()
        if not hasattr(kind, self.name):
            raise missing(kind, self.name)
        return self.get(n)


def missing(kind: type, name: str) -> AttributeError:
    """Python's error for an attribute that no number of a class has."""
    module = f"{kind.__module__}." if kind.__module__ != "builtins" else ""
    return AttributeError(f"'{module}{kind.__name__}' object has no attribute '{name}'")


def _refused(name: str) -> Callable[[Scalar], Any]:
    """What refuses an attribute that is made of the number's own value."""

    def get(n: Scalar) -> Any:
        kind = n.stands_for().__name__
        raise StagingError(
            f"{name} of a staged {type_of(n)}: it is made of the number's own value, which is not "
            f"known while a program is written; call {kind}.{name} outside of the function, and "
            "hand on what it gives"
        )

    return get


def _pythons(n: Scalar, y: Any) -> Any:
    """A result as a number of Python's."""
    wide = np.dtype(bool) if y.dtype.kind == "b" else _WHOLE
    return n.level.number(op("astype")(y, dtype=wide).v, True)


def _whole(n: Scalar) -> Any:
    return n if n.dtype == _WHOLE else op("astype")(n, dtype=_WHOLE)


def _bit_length(n: Scalar) -> Any:
    """The exponent of the number as a float, less one where the float was rounded up to it."""
    size = op("abs")(_whole(n))  # of the least number itself, whose shift below is not zero
    exponent = op("astype")(np.frexp(op("astype")(size, dtype=np.dtype(float)))[1], dtype=_WHOLE)
    places = op("maximum")(op("subtract")(exponent, 1), 0)
    rounded = op("equal")(op("right_shift")(size, places), 0)
    above = op("logical_and")(rounded, op("greater")(exponent, 0))
    return _pythons(n, op("where")(above, places, exponent))


def _bit_count(n: Scalar) -> Any:
    return _pythons(n, op("bitwise_count")(_whole(n)))


def _is_integer(n: Scalar) -> Any:
    if n.dtype.kind != "f":
        return True
    return _pythons(n, op("logical_and")(op("isfinite")(n), op("equal")(op("trunc")(n), n)))


def _numerator(n: Scalar) -> Any:
    return n.level.number(_whole(n).v, True) if n.weak else n


_GETS: dict[str, Callable[[Scalar], Any]] = {
    "bit_length": lambda n: lambda: _bit_length(n),
    "bit_count": lambda n: lambda: _bit_count(n),
    "is_integer": lambda n: lambda: _is_integer(n),
    "numerator": _numerator,
    "denominator": lambda n: 1,
} | {name: _refused(name) for name in ("to_bytes", "from_bytes", "fromhex")}


def attributes() -> dict[str, Any]:
    """The descriptors of a class of staged numbers."""
    return {name: Attribute(name, get) for name, get in _GETS.items()}


__all__ = ["attributes"]
