"""Functions of NumPy and of `math` written with the elementwise primitives."""

import cmath
import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from lineara.errors import TypeMismatchError
from lineara.facts.hints import Value
from lineara.facts.primitive import Box, Constant, Elementwise, implements, op, refuses, registry
from lineara.facts.types import is_complex, type_of
from lineara.ops.elementwise import (
    abs_,
    atan2,
    clip_above,
    clip_below,
    deg2rad,
    divide,
    equal,
    exponent,
    greater,
    hypot,
    imag,
    ldexp,
    log,
    power,
    rad2deg,
    real,
    rect_imag,
    rect_real,
    remainder,
    rint,
    trunc,
    where,
)
from lineara.ops.shape import as_array, as_floats


@implements(np.clip)
def clip(a, a_min=None, a_max=None, *, min=None, max=None):
    """The nearest value in [a_min, a_max]; where a is equal to a bound the two share the slope."""
    low, high = (a_min if min is None else min), (a_max if max is None else max)
    if low is None and high is None:
        return +a if type_of(a).shape else a  # a copy
    a = a if low is None else clip_below(a, low)
    return a if high is None else clip_above(a, high)


@implements(np.where)
def np_where(condition, *choices):
    """np.where(condition, x, y); with the condition alone, the positions where it is true."""
    if not choices:
        return op("nonzero")(condition)
    return where(
        op("not_equal")(condition, 0), *choices
    )  # a copy of the condition, which the user may write to


@implements(np.float_power)
def float_power(x1, x2):
    """x1 ** x2, computed in double precision."""
    wide = [np.result_type(float, type_of(v).dtype) for v in (x1, x2)]
    return power(*(op("astype")(v, dtype=t) for v, t in zip((x1, x2), wide, strict=True)))


@implements(np.positive)
def positive(x):
    """The same numbers; of an array a copy."""
    return +x


@implements(np.heaviside)
def heaviside(x1, x2):
    """0 for x1 < 0, 1 for x1 > 0, and x2 for x1 == 0."""
    x1 = as_floats(x1)
    if "c" in (type_of(x1).dtype.kind, type_of(x2).dtype.kind):
        raise TypeMismatchError("heaviside: complex numbers have no order; take the real part")
    step = op("astype")(greater(x1, 0), dtype=type_of(x1).dtype)
    return where(equal(x1, 0), x2, where(op("isnan")(x1), x1, step))


@implements(np.modf, math.modf)
def modf(x):
    """The fractional part, with slope 1, and the integer part, which is locally constant."""
    part = op("fraction")(x)
    return part, op("astype")(trunc(x), dtype=type_of(part).dtype)


@implements(np.divmod)
def divmod_(x, w):
    """The pair (x // w, x % w)."""
    return op("floor_divide")(x, w), remainder(x, w)


_FAR = 2**15


@implements(np.ldexp, math.ldexp)
def np_ldexp(x, n):
    """x 2**n for an integer n; beyond 2**15 either way it is infinite or zero."""
    return ldexp(x, np.int64(max(-_FAR, min(n, _FAR))) if type(n) is int else n)


@implements(np.frexp, math.frexp)
def frexp(x):
    """(m, n) with x = m 2**n; the exponent n is locally constant."""
    power_of_two = exponent(x)
    return ldexp(x, -power_of_two), power_of_two


def _widened(outside: Callable[..., Any], function: Callable[..., Any]) -> Any:
    """`function`, on complex numbers if `outside` is true for one element."""

    def stand_in(*args):
        """The value; complex if an argument is outside of the real function's domain."""
        values = [as_array(a) for a in args]
        if not any(map(is_complex, values)) and np.any(outside(*values)):
            values = [a + 0j for a in values]
        return registry.foreign[function].ours(*values)

    return stand_in


_negative = {np.emath.sqrt: np.sqrt, np.emath.log: np.log}
_negative |= {np.emath.log2: np.log2, np.emath.log10: np.log10}
for _wide, _narrow in _negative.items():
    implements(_wide)(_widened(lambda x: x < 0, _narrow))
for _wide, _narrow in {np.emath.arcsin: np.arcsin, np.emath.arccos: np.arccos}.items():
    implements(_wide)(_widened(lambda x: np.abs(x) > 1, _narrow))
implements(np.emath.arctanh)(_widened(lambda x: np.abs(x) > 1, np.arctanh))
implements(np.emath.power)(_widened(lambda x, p: x < 0, np.power))


@implements(np.emath.logn)
def logn(n, x):
    """The logarithm to base n; complex if an argument is negative."""
    ln = registry.foreign[np.emath.log].ours
    return ln(x) / ln(n)


for _function in (
    np.array_str, np.array_repr, np.array2string, np.can_cast, np.common_type,
    np.min_scalar_type, np.shares_memory, np.may_share_memory,
):  # fmt: skip
    registry.declare(_function, reads=True)
refuses(np.save, np.savetxt, np.savez, np.savez_compressed, advice="save lineara.stop_gradient(x)")
refuses(np.isnat, advice="it asks about moments, which are constants: give it plain ones")
refuses(np.nested_iters, np.nditer, advice="loop over the elements, or write it with whole arrays")
refuses(np.bmat, np.asmatrix, advice="np.matrix has rules of its own; use np.block, arrays and @")
refuses(np.frompyfunc, advice="np.vectorize calls the same function, and is followed")


@implements(np.nan_to_num)
def nan_to_num(x, copy=True, nan=0.0, posinf=None, neginf=None):
    """x with NaN and infinities replaced by constants."""
    if type_of(x).dtype.kind not in "fc":
        y = positive(x)
    elif is_complex(x):
        parts = [nan_to_num(part(x), True, nan, posinf, neginf) for part in (real, imag)]
        y = op("of_parts")(*parts)
    else:
        largest = np.finfo(type_of(x).dtype)
        high = largest.max if posinf is None else posinf
        low = largest.min if neginf is None else neginf
        y = where(op("isposinf")(x), high, where(op("isneginf")(x), low, x))
        y = where(op("isnan")(x), nan, y)
        y = y if type_of(y) == type_of(x) else op("astype")(y, dtype=x.dtype)
    if copy or not type_of(x).shape:
        return y
    x[...] = y
    return x


@implements(np.real_if_close)
def real_if_close(a, tol=100):
    """The real part if every imaginary part is below `tol` machine precisions; else a itself."""
    if not is_complex(a):
        return a
    near = tol * np.finfo(type_of(a).dtype).eps if tol > 1 else tol
    return real(a) if np.all(np.abs(op("imag")(a)) < near) else a


@implements(np.angle)
def angle(z, deg=False):
    """The argument of a complex number; that of a real number is locally constant."""
    radians = atan2(imag(z), real(z))
    return rad2deg(radians) if deg else radians


@implements(math.pow)
def pow_(x, y):
    """x ** y."""
    return x**y


@implements(math.log)
def log_base(x, base=None):
    """The natural logarithm, or the logarithm to a base."""
    return _ln(x) if base is None else _ln(x) / _ln(base)


def _ln(x):
    return log(x) if isinstance(x, Box) else math.log(x)


@implements(math.remainder)
def ieee_remainder(x, y):
    """x minus the multiple of y that is nearest to x."""
    return x - rint(divide(x, y)) * y


@implements(math.hypot)
def hypot_all(*coordinates):
    """The Euclidean norm of the coordinates."""
    if not coordinates:
        return 0.0
    length = abs_(coordinates[0])
    for c in coordinates[1:]:
        length = hypot(length, c)
    return length


@implements(math.dist)
def dist(p, q):
    """The Euclidean distance of two points."""
    return hypot_all(*(a - b for a, b in zip(p, q, strict=True)))


@implements(math.fsum)
def fsum(values):
    """The sum of the values."""
    total = 0.0
    for v in values:
        total = total + v
    return total


@implements(math.prod)
def prod(values, *, start=1):
    """The product of the values."""
    for v in values:
        start = start * v
    return start


def sumprod(p: Iterable[Any], q: Iterable[Any]) -> Any:
    """The sum of products."""
    return fsum(a * b for a, b in zip(p, q, strict=True))


def fma(x: Value, y: Value, z: Value) -> Any:
    """x * y + z, rounded twice."""
    return x * y + z


for _own in [p for p in registry.primitives.values() if isinstance(p, Elementwise | Constant)]:
    _math = getattr(math, _own.name, None)  # e.g. math.sinh; functions declared above are kept
    if _math is not None and registry.ours(_math) is None:
        implements(_math)(_own)
for _late in (sumprod, fma):  # of Python 3.12 and 3.13
    if hasattr(math, _late.__name__):
        implements(getattr(math, _late.__name__))(_late)
implements(math.degrees, np.degrees)(rad2deg)
implements(math.radians, np.radians)(deg2rad)


# --- cmath: every argument is a complex number ---------------------------------------------------


def _widened_to_complex(act: Callable[..., Any]) -> Any:
    """`act` with its argument converted to complex."""
    return lambda z: act(op("astype")(z, dtype=np.dtype(complex)))


_HOLOMORPHIC = "exp log10 sqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh"
for _name in _HOLOMORPHIC.split():
    implements(getattr(cmath, _name))(_widened_to_complex(op(_name)))
for _name in ("isfinite", "isinf", "isnan"):
    implements(getattr(cmath, _name))(op(_name))
implements(cmath.isclose)(registry.foreign[math.isclose].ours)


@implements(cmath.log)
def complex_log(z, base=None):
    """The principal natural logarithm, or that to a base."""
    y = _widened_to_complex(log)(z)
    return y if base is None else y / _widened_to_complex(log)(base)


@implements(cmath.phase)
def phase(z):
    """The argument of a complex number."""
    return atan2(imag(z), real(z))


@implements(cmath.polar)
def polar(z):
    """The pair (absolute value, argument)."""
    return abs_(z), phase(z)


@implements(cmath.rect)
def rect(r, phi):
    """The complex number with this absolute value and argument."""
    return op("of_parts")(rect_real(r, phi), rect_imag(r, phi))
