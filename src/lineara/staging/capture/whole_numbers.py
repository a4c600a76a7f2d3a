"""`int` and `round` of staged numbers: whole numbers of Python's, in 64 bits.

What Python raises of a NaN or an infinity is raised as the program runs, and a number that has no
place in 64 bits is refused there.
"""

import builtins
import functools
import operator
from typing import Any

import numpy as np

from lineara.errors import StagingError
from lineara.facts.box import Box
from lineara.facts.hints import Leaf
from lineara.facts.primitive import op
from lineara.facts.types import type_of
from lineara.python.number_classes import constructor
from lineara.tape.node import Array, Traced, layout, plain, staged


def _whole(number: Leaf) -> Any:
    """`int(number)` of a traced number: the integer part."""
    x: Any = number
    x = x.now()
    if not staged(x):
        return int(plain(x))
    if isinstance(x, Array) or (x.dtype.kind == "c" and x.weak is not False):
        int(layout(x))  # which refuses it, but for an array of no axes
        x = x.item()
    if x.dtype.kind == "c":
        int(layout(x))  # which warns
        x = x.real
    return _in_64_bits(x) if x.dtype.kind in "iub" else op("math_trunc")(_as_double(x))


def _in_64_bits(x: Box) -> Any:
    """A whole number or a truth value of either kind as a whole number of Python's."""
    if x.dtype == np.uint64:
        raise StagingError(
            "int() of a staged u64[]: it may be more than a whole number of a program can be, "
            "which has 63 bits beside the sign; make it astype(np.int64) before"
        )
    whole = x if x.dtype == np.int64 else op("astype")(x, dtype=np.dtype(np.int64))
    return whole.item()


def _as_double(x: Box) -> Any:
    return x if x.dtype == float else op("astype")(x, dtype=np.dtype(float))


@functools.wraps(builtins.round)
def round_(number: Leaf, ndigits: Leaf = None) -> Any:
    """`round`: to the next whole number, half to even, or to a number of digits."""
    x: Any = number
    digits: Any = ndigits
    if not isinstance(x, Traced) or not staged(x):
        return builtins.round(x, digits)
    x = x.now()
    kind, weak = x.dtype.kind, getattr(x, "weak", False)
    if isinstance(x, Array) or kind == "c" or (kind == "b" and weak is False):
        return builtins.round(layout(x), digits)  # which refuses it
    if digits is None:
        return _in_64_bits(x) if kind in "iub" else op("math_round")(_as_double(x))
    digits = operator.index(digits)
    if kind in "iub" and digits >= 0:
        return _in_64_bits(x) if weak is not False else x
    if weak is None or kind != "f":
        raise StagingError(
            f"round(x, {digits}) of a staged {type_of(x)}: Python's numbers are rounded in "
            "another way than NumPy's, and which it is, is not known while a program is written; "
            "use round(float(x), n) or np.round(x, n)"
        )
    return op("math_round_to")(x, digits=digits) if weak else np.round(x, digits)


BUILTINS = ((builtins.int, constructor(builtins.int, _whole)), (builtins.round, round_))

__all__ = ["BUILTINS"]
