"""Elementwise primitives: each line is a function and its partials, as expressions.

At kinks the default is documented here: abs has slope 0 at 0, ties of maximum and minimum share
the cotangent equally, sqrt has slope infinity at 0.
"""

import math
from typing import Any

import numpy as np

from lineara.primitive import (
    Constant,
    Linear,
    aligned,
    elementwise,
    implements,
    op,
    primitive,
    registry,
    unbroadcast,
)
from lineara.types import ArrayType, type_of

# --- arithmetic -------------------------------------------------------------------------------

add = elementwise("add", lambda y, x, w: 1, lambda y, x, w: 1, scalar="x + w")
subtract = elementwise("subtract", lambda y, x, w: 1, lambda y, x, w: -1, scalar="x - w")
multiply = elementwise("multiply", lambda y, x, w: w, lambda y, x, w: x, scalar="x * w")
divide = elementwise("divide", lambda y, x, w: 1 / w, lambda y, x, w: -y / w, scalar="x / w")
negative = elementwise("negative", lambda y, x: -1, scalar="-x")
power = elementwise(
    "power",
    lambda y, x, w: where(w == 0, 0, w * x ** (w - 1)),
    lambda y, x, w: where(y == 0, 0, y * log(x)),
    scalar="x ** w",
)
square = elementwise("square", lambda y, x: 2 * x, scalar="x * x")
reciprocal = elementwise("reciprocal", lambda y, x: -y * y, scalar="1 / x")
remainder = elementwise(
    "remainder", lambda y, x, w: 1, lambda y, x, w: -floor(x / w), scalar="x % w"
)
fmod = elementwise("fmod", lambda y, x, w: 1, lambda y, x, w: -trunc(x / w))
abs_ = elementwise(
    "abs",
    lambda y, x: sign(x),
    scalar="abs(x)",
    array=np.abs,
    wirtinger=(lambda y, x: conj(x) / (2 * y),),
    conjugate=(lambda y, x: x / (2 * y),),
)
fabs = elementwise("fabs", lambda y, x: sign(x), scalar="abs(x)")

# --- powers, exponentials, logarithms -----------------------------------------------------------

sqrt = elementwise("sqrt", lambda y, x: 0.5 / y)
cbrt = elementwise("cbrt", lambda y, x: 1 / (3 * y * y))
exp = elementwise("exp", lambda y, x: y)
exp2 = elementwise("exp2", lambda y, x: y * math.log(2))
expm1 = elementwise("expm1", lambda y, x: y + 1)
log = elementwise("log", lambda y, x: 1 / x)
log2 = elementwise("log2", lambda y, x: 1 / (x * math.log(2)))
log10 = elementwise("log10", lambda y, x: 1 / (x * math.log(10)))
log1p = elementwise("log1p", lambda y, x: 1 / (1 + x))
logaddexp = elementwise("logaddexp", lambda y, x, w: exp(x - y), lambda y, x, w: exp(w - y))
logaddexp2 = elementwise("logaddexp2", lambda y, x, w: exp2(x - y), lambda y, x, w: exp2(w - y))

# --- trigonometry -------------------------------------------------------------------------------

sin = elementwise("sin", lambda y, x: cos(x))
cos = elementwise("cos", lambda y, x: -sin(x))
tan = elementwise("tan", lambda y, x: 1 + y * y)
asin = elementwise("asin", lambda y, x: 1 / sqrt(1 - x * x), array=np.arcsin)
acos = elementwise("acos", lambda y, x: -1 / sqrt(1 - x * x), array=np.arccos)
atan = elementwise("atan", lambda y, x: 1 / (1 + x * x), array=np.arctan)
atan2 = elementwise(
    "atan2",
    lambda y, x, w: w / (x * x + w * w),
    lambda y, x, w: -x / (x * x + w * w),
    array=np.arctan2,
)
sinh = elementwise("sinh", lambda y, x: cosh(x))
cosh = elementwise("cosh", lambda y, x: sinh(x))
tanh = elementwise("tanh", lambda y, x: 1 - y * y)
asinh = elementwise("asinh", lambda y, x: 1 / sqrt(1 + x * x), array=np.arcsinh)
acosh = elementwise("acosh", lambda y, x: 1 / sqrt(x * x - 1), array=np.arccosh)
atanh = elementwise("atanh", lambda y, x: 1 / (1 - x * x), array=np.arctanh)
hypot = elementwise("hypot", lambda y, x, w: x / y, lambda y, x, w: w / y)
deg2rad = elementwise("deg2rad", lambda y, x: math.pi / 180, scalar="math.radians(x)")
rad2deg = elementwise("rad2deg", lambda y, x: 180 / math.pi, scalar="math.degrees(x)")
copysign = elementwise("copysign", lambda y, x, w: sign(x) * sign(y), lambda y, x, w: 0)

# --- selections: the lanes that are not selected are structural zeros ------------------------------

_half = 0.5  # each side's share of a tie
maximum = elementwise(
    "maximum",
    lambda y, x, w: where(x == w, _half, where(x > w, 1, 0)),
    lambda y, x, w: where(x == w, _half, where(w > x, 1, 0)),
    scalar="x if x >= w else w",
    selects=True,
)
minimum = elementwise(
    "minimum",
    lambda y, x, w: where(x == w, _half, where(x < w, 1, 0)),
    lambda y, x, w: where(x == w, _half, where(w < x, 1, 0)),
    scalar="x if x <= w else w",
    selects=True,
)
fmax = elementwise(
    "fmax",
    lambda y, x, w: where(x == w, _half, where(y == x, 1, 0)),
    lambda y, x, w: where(x == w, _half, where(y == w, 1, 0)),
    scalar="x if x >= w else w",
    selects=True,
)
fmin = elementwise(
    "fmin",
    lambda y, x, w: where(x == w, _half, where(y == x, 1, 0)),
    lambda y, x, w: where(x == w, _half, where(y == w, 1, 0)),
    scalar="x if x <= w else w",
    selects=True,
)


@primitive
class where(Linear):
    """where(c, a, b): a where c holds, else b; linear in (a, b), which broadcast."""

    linear = (1, 2)

    def result(self, c, a, b):
        shape = np.broadcast_shapes(*(type_of(v).shape for v in (c, a, b)))
        return ArrayType(shape, np.result_type(type_of(a).dtype, type_of(b).dtype))

    def transpose(self, y_bar, /, c, a, b):
        from_a, from_b = op("keep")(y_bar, c), op("keep")(y_bar, op("logical_not")(c))
        return unbroadcast(from_a, a), unbroadcast(from_b, b)

    def batch(self, args, batched, params):
        return self(*aligned(args, batched))


@primitive
class keep(Linear):
    """keep(x, live): x where `live` holds, a structural zero elsewhere; its own transpose."""

    def result(self, x, live):
        return type_of(x)

    def evaluate(self, xp, /, x, live):
        return xp.where(live, x, 0) if np.ndim(x) or np.ndim(live) else (x if live else 0.0)

    def transpose(self, y_bar, /, x, live):
        return (keep(y_bar, live),)

    def batch(self, args, batched, params):
        return self(*aligned(args, batched))


# --- complex parts ----------------------------------------------------------------------------


@primitive
class conj(Linear):
    """The complex conjugate; its own transpose for the inner product Re<u, v>."""

    def result(self, x):
        return type_of(x)

    def transpose(self, y_bar, /, x):
        return (conj(y_bar),)

    def batch(self, args, batched, params):
        return self(*args)


@primitive
class real(Linear):
    """The real part; its transpose embeds the reals in the complex numbers."""

    def result(self, x):
        return ArrayType(type_of(x).shape, np.empty(0, type_of(x).dtype).real.dtype)

    def transpose(self, y_bar, /, x):
        return (y_bar,)

    def batch(self, args, batched, params):
        return self(*args)


@primitive
class imag(Linear):
    """The imaginary part; its transpose multiplies by i."""

    def result(self, x):
        return ArrayType(type_of(x).shape, np.empty(0, type_of(x).dtype).real.dtype)

    def transpose(self, y_bar, /, x):
        return (y_bar * 1j if x.dtype.kind == "c" else y_bar * 0.0,)

    def batch(self, args, batched, params):
        return self(*args)


registry.functions |= {np.conjugate: conj, np.real: real, np.imag: imag}

# --- error function ---------------------------------------------------------------------------


def _special(name: str) -> Any:
    """SciPy's function of that name, loaded at its first use."""

    def late(*args: Any) -> Any:
        from scipy import special

        return getattr(special, name)(*args)

    return late


_2_OVER_SQRT_PI = 2 / math.sqrt(math.pi)
erf = elementwise("erf", lambda y, x: _2_OVER_SQRT_PI * exp(-x * x), array=_special("erf"))
erfc = elementwise("erfc", lambda y, x: -_2_OVER_SQRT_PI * exp(-x * x), array=_special("erfc"))
gamma = elementwise("gamma", lambda y, x: y * polygamma(0, x), array=_special("gamma"))
lgamma = elementwise("lgamma", lambda y, x: polygamma(0, x), array=_special("gammaln"))
polygamma = elementwise(  # the order is a plain number
    "polygamma", lambda y, x, w: 0, lambda y, x, w: polygamma(x + 1, w), array=_special("polygamma")
)

# --- locally constant ----------------------------------------------------------------------------

for _name in (
    "sign floor ceil trunc rint signbit isnan isinf isfinite "
    "equal not_equal less less_equal greater greater_equal "
    "logical_and logical_or logical_xor logical_not floor_divide"
).split():
    globals()[_name] = Constant(_name)
    registry.functions[getattr(np, _name)] = globals()[_name]
sign, floor, trunc = op("sign"), op("floor"), op("trunc")

# --- functions of math and NumPy written with these ----------------------------------------------


@implements(np.clip)
def clip(a, a_min=None, a_max=None, out=None, *, min=None, max=None):  # noqa: A002
    """The nearest value in [a_min, a_max]; at an edge the bound and the value share the slope."""
    low, high = (a_min if min is None else min), (a_max if max is None else max)
    a = a if low is None else maximum(a, low)
    return a if high is None else minimum(a, high)


@implements(math.pow)
def pow_(x, y):
    """x ** y."""
    return x**y


@implements(math.log)
def log_base(x, base=None):
    """The logarithm, to any base."""
    return log(x) if base is None else log(x) / log(base)


@implements(math.dist)
def dist(p, q):
    """The Euclidean distance of two points."""
    return hypot_all(*(a - b for a, b in zip(p, q, strict=True)))


@implements(math.hypot)
def hypot_all(*coordinates):
    """The Euclidean norm of the coordinates."""
    if not coordinates:
        return 0.0
    found = abs_(coordinates[0])
    for c in coordinates[1:]:
        found = hypot(found, c)
    return found


@implements(math.fsum)
def fsum(values):
    """The sum of the values."""
    found = 0.0
    for v in values:
        found = found + v
    return found


@implements(math.prod)
def prod(values, *, start=1):
    """The product of the values."""
    for v in values:
        start = start * v
    return start


@implements(np.where)
def where_(condition, *choices):
    """np.where in its form of three arguments; with one it gives positions."""
    if not choices:
        return op("nonzero")(condition)
    return where(condition, *choices)


_MATH = "sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh exp expm1 log2 log10"
_MATH += " log1p sqrt cbrt exp2 fabs fmod copysign erf erfc gamma lgamma floor ceil trunc"
for _name in (_MATH + " isnan isinf isfinite").split():
    if hasattr(math, _name):
        registry.functions[getattr(math, _name)] = op(_name)
registry.functions |= {math.degrees: rad2deg, math.radians: deg2rad}
registry.functions |= {np.degrees: rad2deg, np.radians: deg2rad, np.absolute: abs_}
registry.functions |= {np.float_power: power, np.mod: remainder, np.positive: lambda x: x}
