"""Elementwise primitives: each line declares a function and its partial derivatives.

Defaults at kinks: abs, hypot, atan2 and norm have slope 0 at 0; in a tie of maximum or minimum both
arguments get half of the cotangent; sqrt has slope infinity at 0.
"""

import math
from typing import Any

import numpy as np

from lineara.facts.hints import Namespace, Shaped, Value
from lineara.facts.primitive import (
    Box,
    Constant,
    Elementwise,
    Linear,
    Primitive,
    aligned,
    elementwise,
    lost,
    op,
    primitive,
    reals,
    registry,
    unbroadcast,
)
from lineara.facts.registry import implements
from lineara.facts.types import ArrayType, type_of
from lineara.ops.branchless_where import select

# --- arithmetic -------------------------------------------------------------------------------

add: Elementwise = elementwise(
    "add", lambda y, x, w: 1, lambda y, x, w: 1, scalar="x + w",
    sided=(lambda d, y, x, w: d, lambda d, y, x, w: d),
)  # fmt: skip
subtract: Elementwise = elementwise(
    "subtract", lambda y, x, w: 1, lambda y, x, w: -1, scalar="x - w",
    sided=(lambda d, y, x, w: d, lambda d, y, x, w: -d),
)  # fmt: skip
multiply: Elementwise = elementwise(
    "multiply", lambda y, x, w: w, lambda y, x, w: x, scalar="x * w",
    sided=(lambda d, y, x, w: d * w, lambda d, y, x, w: x * d),
)  # fmt: skip
divide: Elementwise = elementwise(  # x / w is x times the reciprocal of w
    "divide", lambda y, x, w: 1 / w, lambda y, x, w: -y / w, scalar="x / w",
    sided=(lambda d, y, x, w: d * reciprocal(w), lambda d, y, x, w: -(y * d * reciprocal(w))),
)  # fmt: skip
negative: Elementwise = elementwise(
    "negative", lambda y, x: -1, scalar="-x", sided=(lambda d, y, x: -d,)
)
power: Elementwise = elementwise(
    "power",
    lambda y, x, w: where(  # x of a program is read only where w is 0
        w == 0, where(x == 0, 0, w * x ** (w - 1)), w * x ** (w - 1)
    ),
    lambda y, x, w: where(x == 0, y * 0, y * log(x)),
    scalar="x ** w",
)
square: Elementwise = elementwise(
    "square", lambda y, x: 2 * x, scalar="x * x", sided=(lambda d, y, x: d * x + x * d,)
)
reciprocal: Elementwise = elementwise(
    "reciprocal", lambda y, x: -y / x, scalar="1 / x", sided=(lambda d, y, x: -(y * d * y),)
)
remainder: Elementwise = elementwise(  # x = y + n w for an integer n, which is locally constant
    "remainder", lambda y, x, w: 1, lambda y, x, w: rint((y - x) / w), scalar="x % w"
)
fmod: Elementwise = elementwise(
    "fmod", lambda y, x, w: 1, lambda y, x, w: rint((y - x) / w), host=True
)
abs_: Elementwise = elementwise(
    "abs",
    lambda y, x: sign(x),
    scalar="abs(x)",
    array=np.abs,
    wirtinger=(lambda y, x: where(y == 0, 0, conj(x) / (2 * y)),),
    conjugate=(lambda y, x: where(y == 0, 0, x / (2 * y)),),
)
fabs: Elementwise = elementwise("fabs", lambda y, x: sign(x), scalar="abs(x)")

# --- powers, exponentials, logarithms -----------------------------------------------------------

sqrt: Elementwise = elementwise("sqrt", lambda y, x: 0.5 / y)
cbrt: Elementwise = elementwise("cbrt", lambda y, x: 1 / (3 * y * y), host=True)
exp: Elementwise = elementwise("exp", lambda y, x: y)
exp2: Elementwise = elementwise("exp2", lambda y, x: y * math.log(2))
expm1: Elementwise = elementwise("expm1", lambda y, x: exp(x))
log: Elementwise = elementwise("log", lambda y, x: 1 / x)
log2: Elementwise = elementwise("log2", lambda y, x: 1 / (x * math.log(2)))
log10: Elementwise = elementwise("log10", lambda y, x: 1 / (x * math.log(10)))
log1p: Elementwise = elementwise("log1p", lambda y, x: 1 / (1 + x))
logaddexp: Elementwise = elementwise(
    "logaddexp", lambda y, x, w: _share(exp, x, w), lambda y, x, w: _share(exp, w, x)
)
logaddexp2: Elementwise = elementwise(
    "logaddexp2", lambda y, x, w: _share(exp2, x, w), lambda y, x, w: _share(exp2, w, x)
)

# --- trigonometry -------------------------------------------------------------------------------

sin: Elementwise = elementwise("sin", lambda y, x: cos(x))
cos: Elementwise = elementwise("cos", lambda y, x: -sin(x))
tan: Elementwise = elementwise("tan", lambda y, x: 1 + y * y)
# subtractions of real numbers keep the sign of a zero imaginary part: the side of a branch cut
asin: Elementwise = elementwise("asin", lambda y, x: 1 / sqrt(-(x - 1) * (x - -1)), array=np.arcsin)
acos: Elementwise = elementwise(
    "acos", lambda y, x: -1 / sqrt(-(x - 1) * (x - -1)), array=np.arccos
)
atan: Elementwise = elementwise("atan", lambda y, x: 1 / (1 + x * x), array=np.arctan)
atan2: Elementwise = elementwise(
    "atan2",
    lambda y, x, w: _over_square(w, x),
    lambda y, x, w: -_over_square(x, w),
    array=np.arctan2,
)
sinh: Elementwise = elementwise("sinh", lambda y, x: cosh(x))
cosh: Elementwise = elementwise("cosh", lambda y, x: sinh(x))
tanh: Elementwise = elementwise("tanh", lambda y, x: 1 - y * y)
asinh: Elementwise = elementwise("asinh", lambda y, x: 1 / sqrt(x * x - -1), array=np.arcsinh)
acosh: Elementwise = elementwise(
    "acosh", lambda y, x: 1 / (sqrt(x - 1) * sqrt(x - -1)), array=np.arccosh
)
atanh: Elementwise = elementwise("atanh", lambda y, x: 1 / ((1 - x) * (1 + x)), array=np.arctanh)
hypot: Elementwise = elementwise(
    "hypot",
    lambda y, x, w: over(x, y),
    lambda y, x, w: over(w, y),
)
deg2rad: Elementwise = elementwise("deg2rad", lambda y, x: math.pi / 180, scalar="math.radians(x)")
rad2deg: Elementwise = elementwise("rad2deg", lambda y, x: 180 / math.pi, scalar="math.degrees(x)")
copysign: Elementwise = elementwise(
    "copysign", lambda y, x, w: sign(x) * sign(y), lambda y, x, w: 0
)

# --- selections: a lane that is not selected is a structural zero ----------------------------

LARGER, SMALLER = "x if x >= w else w", "x if x <= w else w"
CHOSEN = (  # the slopes of maximum and minimum: a tie is shared, a NaN comes from both
    lambda y, x, w: where(x == w, 0.5, where(y == w, 0, 1)),
    lambda y, x, w: where(x == w, 0.5, where(y == x, 0, 1)),
)
NUMBER = (  # the slopes of fmax and fmin: a tie is shared, a NaN is not chosen
    lambda y, x, w: where(x == w, 0.5, where(y == x, 1, 0)),
    lambda y, x, w: where(x == w, 0.5, where(y == w, 1, 0)),
)
maximum: Elementwise = elementwise("maximum", *CHOSEN, scalar=LARGER, selects=True)
minimum: Elementwise = elementwise("minimum", *CHOSEN, scalar=SMALLER, selects=True)
fmax: Elementwise = elementwise("fmax", *NUMBER, scalar=LARGER, selects=True, host=True)
fmin: Elementwise = elementwise("fmin", *NUMBER, scalar=SMALLER, selects=True, host=True)
# the two halves of clip; their slopes at kinks are chosen separately from maximum and minimum
clip_below: Elementwise = elementwise(
    "clip_below", *CHOSEN, scalar=LARGER, array=lambda x, w: np.maximum(x, w), selects=True
)
clip_above: Elementwise = elementwise(
    "clip_above", *CHOSEN, scalar=SMALLER, array=lambda x, w: np.minimum(x, w), selects=True
)
clip_below.same_as, clip_above.same_as = (lambda: np.maximum), (lambda: np.minimum)


def _over_square_of(x: Shaped, w: Shaped) -> Any:
    """x / (x^2 + w^2) without overflow of the squares; 0 at 0 and at infinity."""
    with np.errstate(all="ignore"):
        quotient = np.where(
            np.isinf(x) & np.isinf(w), np.divide(1, x), 1 / (x + w * np.divide(w, x))
        )
        return np.where((x == 0) & (w == 0), x, quotient)[()]


_over_square = elementwise(
    "over_square",
    lambda y, x, w: _over_square(w, x) ** 2 - y * y,
    lambda y, x, w: -2 * y * _over_square(w, x),
    array=_over_square_of,
    host=True,
)


def _share(power: Primitive, x: Shaped, w: Shaped) -> Any:
    """p^x / (p^x + p^w), and a half for equal infinities; no derivative of any order overflows."""
    z = w - x
    falls = z > 0
    part = power(where(falls, -z, z))
    s = where(falls, part, 1) / (1 + part)
    return where(x * 0 == 0, s, where(x == w, 0.5, s))


def over(x: Value, y: Value) -> Any:
    """x / y, and 0 where y is 0; no derivative of any order divides by zero."""
    return where(y == 0, 0, x / y)


class Selection(Linear):
    """(c, a, b): a where c is true, else b; linear in (a, b), which broadcast."""

    linear: tuple[int, ...] | None = (1, 2)

    def result(self, c: Any, a: Any, b: Any) -> ArrayType:
        shape = np.broadcast_shapes(*(type_of(v).shape for v in (c, a, b)))
        weak = [v if type(v) in (int, float, complex) else type_of(v).dtype for v in (a, b)]
        return ArrayType(shape, np.result_type(*weak))

    def evaluate(self, xp: Namespace, /, c: Any, a: Any, b: Any) -> Any:
        return select(c, a, b) if xp is np else xp.where(xp.asarray(c), a, b)

    def arithmetic(self, y: ArrayType, args: tuple[ArrayType, ...], params: dict[str, Any]) -> int:
        # one selection an element; the transpose also computes not c
        return reals(y) + args[0].size

    def transpose(self, y_bar: Value, /, c: Any, a: Any, b: Any) -> tuple[Any, ...]:
        from_a, from_b = op("keep")(y_bar, c), op("keep")(y_bar, op("logical_not")(c))
        return unbroadcast(from_a, a), unbroadcast(from_b, b)

    def batch(
        self, args: tuple[Any, ...], batched: tuple[bool, ...], params: dict[str, Any]
    ) -> Any:
        return self(*aligned(args, batched))


@primitive
class where(Selection):
    """where(c, a, b): a where c is true, else b; linear in (a, b), which broadcast."""


@primitive
class live_factor(Selection):
    """live_factor(live, k, harmless): the factor k of a masked product, harmless in dead lanes.

    The vector that it scales is zero in dead lanes, so the choice makes a difference only where k
    is infinite or a NaN: an engine may take k itself and look whether it was finite.
    """


@primitive
class keep(Linear):
    """keep(x, live): x where `live` is true, a structural zero elsewhere; its own transpose."""

    def result(self, x, live):
        t = type_of(x)
        return ArrayType(np.broadcast_shapes(t.shape, np.shape(live)), t.dtype)

    def evaluate(self, xp, /, x, live):
        if xp is not np:
            return xp.where(xp.asarray(live), x, 0)
        return select(live, x, 0) if np.ndim(x) or np.ndim(live) else (x if live else 0.0)

    def text(self, x, live):
        return f"select({live}, {x}, 0)"

    def arithmetic(self, y, args, params):
        return lost(y, args[:1])

    def transpose(self, y_bar, /, x, live):
        return (unbroadcast(keep(y_bar, live), x),)

    def batch(self, args, batched, params):
        return self(*aligned(args, batched))


length: Elementwise = elementwise(
    "length", lambda y, x: where(x == 0, 0, 0.5 / y), array=lambda x: np.sqrt(x), selects=True
)


def root(x: Value, exponent: Value = 0.5) -> Any:
    """x ** exponent for x >= 0; the slope at 0 is a structural zero, as of a zero vector's norm."""
    if not isinstance(exponent, Box) and exponent == 0.5:
        return length(x)
    zero = equal(x, 0)
    return where(zero, 0.0, power(where(zero, 1.0, x), exponent))


# --- complex parts ----------------------------------------------------------------------------


def real_dtype(dtype: np.dtype) -> np.dtype:
    """The dtype of the real and imaginary part of that dtype; a real dtype itself."""
    return np.dtype(dtype.char.lower()) if dtype.kind == "c" else dtype


@primitive
class conj(Linear):
    """The complex conjugate; its own transpose for the inner product Re<u, v>."""

    def result(self, x):
        return type_of(x)

    def arithmetic(self, y, args, params):
        return 0  # multiplying by the conjugate costs the same as multiplying

    def transpose(self, y_bar, /, x):
        return (conj(y_bar),)

    def batch(self, args, batched, params):
        return self(*args)


@primitive
class real(Linear):
    """The real part; its transpose embeds the reals in the complex numbers."""

    def result(self, x):
        return ArrayType(type_of(x).shape, real_dtype(type_of(x).dtype))

    def arithmetic(self, y, args, params):
        return lost(y, args)

    def transpose(self, y_bar, /, x):
        return (y_bar,)

    def batch(self, args, batched, params):
        return self(*args)


@primitive
class imag(Linear):
    """The imaginary part; its transpose multiplies by i."""

    def evaluate(self, xp, /, x):
        real = xp is not np and not xp.isdtype(x.dtype, "complex floating")
        return xp.zeros_like(x) if real else xp.imag(x)

    def result(self, x):
        return ArrayType(type_of(x).shape, real_dtype(type_of(x).dtype))

    def arithmetic(self, y, args, params):
        return reals(args[0]) + lost(y, args)  # the real part of -i x

    def transpose(self, y_bar, /, x):
        return (y_bar * 1j if x.dtype.kind == "c" else y_bar * 0.0,)

    def batch(self, args, batched, params):
        return self(*args)


@primitive
class of_parts(Linear):
    """The complex numbers a + i b, whatever is infinite; its transpose takes the parts."""

    linear = (0, 1)
    host = True  # the standard has no word for it: i times infinity is not a number

    def result(self, a, b):
        types = type_of(a), type_of(b)
        shape = np.broadcast_shapes(*[t.shape for t in types])
        return ArrayType(shape, np.result_type(*[t.dtype for t in types], np.complex64))

    def evaluate(self, xp, /, a, b):
        t = self.result(a, b)
        y = np.empty(t.shape, t.dtype)
        y.real, y.imag = a, b
        return y[()]

    def arithmetic(self, y, args, params):
        return 2 * reals(y) + lost(y, args)  # as i b and a sum

    def transpose(self, y_bar, /, a, b):
        return unbroadcast(real(y_bar), a), unbroadcast(imag(y_bar), b)

    def batch(self, args, batched, params):
        return self(*aligned(args, batched))


for _function, _ours in {np.conjugate: conj, np.real: real, np.imag: imag}.items():
    implements(_function)(_ours)

# --- the representation ---------------------------------------------------------------------------

ldexp: Elementwise = elementwise("ldexp", lambda y, x, w: exp2(w), lambda y, x, w: 0, host=True)
nextafter: Elementwise = elementwise("nextafter", lambda y, x, w: 1, lambda y, x, w: 0)

fraction: Elementwise = elementwise("fraction", lambda y, x: 1, array=lambda x: np.modf(x)[0])
# the parts of cmath.rect(x, w)
rect_real: Elementwise = elementwise(
    "rect_real",
    lambda y, x, w: cos(w),
    lambda y, x, w: -rect_imag(x, w),
    array=lambda x, w: x * np.cos(w),
    host=True,
)
rect_imag: Elementwise = elementwise(
    "rect_imag",
    lambda y, x, w: sin(w),
    lambda y, x, w: rect_real(x, w),
    array=lambda x, w: x * np.sin(w),
    host=True,
)

# --- in other array namespaces, whose standard has these under other names, or not ---------------

_ELSEWHERE: dict[str, Any] = {
    "power": lambda xp, x, w: xp.pow(x, w),
    "fabs": lambda xp, x: xp.abs(x),
    "exp2": lambda xp, x: xp.pow(2.0, x),
    "fraction": lambda xp, x: xp.copysign(xp.where(xp.trunc(x) == x, 0.0, x - xp.trunc(x)), x),
    "logaddexp2": lambda xp, x, w: xp.logaddexp(x * math.log(2), w * math.log(2)) / math.log(2),
    "deg2rad": lambda xp, x: x * (math.pi / 180),
    "rad2deg": lambda xp, x: x * (180 / math.pi),
    "clip_below": lambda xp, x, w: xp.maximum(x, w),
    "clip_above": lambda xp, x, w: xp.minimum(x, w),
    "length": lambda xp, x: xp.sqrt(x),
}
for _name, _f in _ELSEWHERE.items():
    registry.primitives[_name].elsewhere = _f

# --- locally constant ----------------------------------------------------------------------------


def constant(name: str, host: bool = False) -> Primitive:
    """Declare NumPy's function of that name as locally constant."""
    declared = Constant(name, host)
    implements(getattr(np, name))(declared)
    return declared


class StopGradient(Constant):
    """The identity with a zero derivative."""

    def result(self, *args: Any, **params: Any) -> Any:
        return type_of(args[0])

    def evaluate(self, xp: Namespace, /, *args: Any, **params: Any) -> Any:
        return args[0]

    def arithmetic(self, y: ArrayType, args: tuple[ArrayType, ...], params: dict[str, Any]) -> int:
        return 0

    def batch(
        self, args: tuple[Any, ...], batched: tuple[bool, ...], params: dict[str, Any]
    ) -> Any:
        return self(*args)


@primitive
class exponent(Constant):
    """The power of two in a number: x = m 2**exponent with 1/2 <= |m| < 1."""

    host = True

    def evaluate(self, xp, /, x):
        return xp.frexp(x)[1]


stop_gradient: StopGradient = StopGradient("stop_gradient")
sign: Primitive = constant("sign")
trunc: Primitive = constant("trunc")
equal: Primitive = constant("equal")
greater: Primitive = constant("greater")
rint: Primitive = constant("rint", host=True)
_STANDARD = (
    "floor", "ceil", "floor_divide", "signbit", "isnan", "isinf", "isfinite", "not_equal", "less",
    "less_equal", "greater_equal", "logical_and", "logical_or", "logical_xor", "logical_not",
    "bitwise_and", "bitwise_or", "bitwise_xor", "isin",
)  # fmt: skip
_NUMPY = (  # the array API standard has no function of the name, or none of these parameters
    "round", "around", "fix", "isneginf", "isposinf", "isreal", "iscomplex", "isclose", "allclose",
    "array_equal", "array_equiv", "spacing", "gcd", "lcm", "bitwise_count", "invert", "left_shift",
    "right_shift",
)  # fmt: skip
for _name in (*_STANDARD, *_NUMPY):
    constant(_name, host=_name in _NUMPY)
