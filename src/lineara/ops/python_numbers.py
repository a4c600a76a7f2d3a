"""Python's operators, `math` and `cmath` on Python's numbers, in programs and batches.

    python_divide, python_power, ..     x / y, x ** y, ..
    math_exp, cmath_exp, ..             math.exp(x), cmath.exp(x), ..

Of numbers the value is computed by Python, with its rounding and exceptions.  Over lanes it is the
base's, and Python's where that is not finite.  The derivative is that of the base.
"""

import cmath
import contextlib
import functools
import itertools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lineara.errors import ShapeError, StagingError
from lineara.facts.hints import DType, Namespace, Shaped, Value
from lineara.facts.primitive import (
    Box,
    Constant,
    Elementwise,
    General,
    Primitive,
    aligned,
    op,
    registry,
)
from lineara.facts.types import ArrayType, is_complex, type_of
from lineara.ops.elementwise import over
from lineara.ops.value_checks import checked

PLAIN = np.ndarray | np.generic | float | int | complex
FLOATS: set[type] = {float, np.float64}
WHOLE = np.iinfo(np.int64)


class Own(Primitive):
    """Python's function `act`, with the type rule and the derivative of the primitive `base`.

    With `either` the values may be Python's or NumPy's, and where the two differ it is an error.
    """

    host = pythons = True

    def __init__(self, name: str, base: Any, act: Callable[..., Any]) -> None:
        self.base: Any = base
        self.act: Callable[..., Any] = act
        operators = name.startswith("python")
        self.raised: tuple[type[Exception], ...] = (
            ZeroDivisionError if operators else ValueError,
            OverflowError,
        )
        if isinstance(base, Constant):
            super().__init__(name)
            return
        assert isinstance(self, Elementwise), f"{name}: the kind is that of the base"
        Elementwise.__init__(
            self,
            name,
            *base.stated,
            array=lambda *args: base.array(*args),
            wirtinger=base._wirtinger,
            conjugate=base._conjugate,
            selects=base.selects,
        )
        self.inlined = False

    def result(self, *args: Any, line: str = "", either: bool = False, **params: Any) -> Any:
        """The type of the base's result; of rounding an integer, of a test a boolean."""
        y = self.base.result(*args)
        return ArrayType(y.shape, np.dtype(GIVES.get(self.name, y.dtype)))

    def evaluate(
        self, xp: Namespace, /, *args: Any, line: str = "", either: bool = False, **params: Any
    ) -> Any:
        """Python's result for numbers, or the base's for exact numbers and complex steps."""
        if FLOATS.issuperset(map(type, args)):
            return self.of_numbers([float(a) for a in args], line, either, params)
        foreign = not all([isinstance(a, PLAIN) for a in args])
        if foreign or (self.name.startswith("math") and any(map(is_complex, args))):
            return self.base.evaluate(xp, *args)
        if any([np.ndim(a) for a in args]):
            return self.of_lanes(args, line, either, params)
        return self.of_numbers(args, line, either, params)

    def of_numbers(
        self, args: Sequence[Any], line: str, either: bool, params: dict[str, Any]
    ) -> Any:
        """Python's result for numbers, as a NumPy scalar."""
        numbers = [a if type(a) is float else _pythons(a) for a in args]
        try:
            y = self.act(*numbers, **params)
        except (ArithmeticError, ValueError) as e:
            if either:
                raise _torn(f"raises {type(e).__name__}", line) from None
            raise _noted(e, line) from None
        if type(y) is float is type(numbers[0]):
            return np.float64(y)
        kinds = set(map(type, numbers))
        if self.name == "python_power" and type(y) not in kinds:
            if either:
                raise _torn(f"gives a number of class {type(y).__name__}", line)
            raise StagingError(
                f"{numbers[0]!r} ** {numbers[1]!r} has the class {type(y).__name__} in Python, but "
                "a program knows the types of its values before it runs; take complex(x) ** y, "
                "float(x) ** y, or np.float64(x) ** y",
                line=line,
            )
        if type(y) is float:
            return np.float64(y)
        if type(y) is complex:
            return np.complex128(y)
        if type(y) is int and not WHOLE.min <= y <= WHOLE.max:
            raise StagingError(
                f"a whole number of Python's has {y.bit_length()} bits here, but in a program it "
                "may have 63 beside the sign; make it a float before",
                line=line,
            )
        return np.int64(y) if type(y) is int else np.bool_(y)

    @property
    def in_lanes(self) -> Any:
        """The primitive that has the results of lanes where all is finite; None: Python has."""
        return None if self.name in EVERYWHERE else self.base

    def of_lanes(self, args: Any, line: str, either: bool, params: dict[str, Any]) -> Any:
        """The base's results; in lanes where not all is finite, Python's result or exception."""
        spread = np.broadcast_arrays(*args)
        t = self.result(*map(type_of, spread))
        if t.dtype.kind in "fc" and self.in_lanes:
            with np.errstate(all="ignore"):
                y = np.array(self.in_lanes.evaluate(np, *args), t.dtype)
                known = np.isfinite(sum(map(abs, spread), y))
                if self.name == "python_power":  # NumPy's power may use a square root instead
                    known &= y != 0
                asked = np.argwhere(~known)
        else:
            y, asked = np.empty(t.shape, t.dtype), np.ndindex(t.shape)
        for i in map(tuple, asked):
            y[i] = self.of_numbers([a[i] for a in spread], line, either, params)
        return y

    def exceptions(
        self, kinds: Sequence[type], args: tuple[Any, ...], params: dict[str, Any]
    ) -> Any:
        """Where it raises, what, and with which arguments; None where these depend on values."""
        classes = "".join([type_of(a).dtype.kind for a in args])
        kinds = [k for k in kinds if said_by(self.name, k, classes)]
        names = " ".join([k.__name__ for k in kinds])
        given = {k: v for k, v in params.items() if k not in ("line", "either")}
        code = op("exception_of")(*args, of=self.name, kinds=names, **given)
        for k, kind in enumerate(kinds, 1):
            said = said_by(self.name, kind, classes)
            yield op("equal")(code, k), kind, said[0] if len(said) == 1 else None

    def on_objects(self, *args: Any) -> Any:
        """The base's value on arrays of Python objects."""
        return self.base.on_objects(*args)

    def batch(
        self, args: tuple[Any, ...], batched: tuple[bool, ...], params: dict[str, Any]
    ) -> Any:
        """The batch rule: align the trailing axes of the arguments."""
        return self(*aligned(args, batched), **params)


class OwnElementwise(Own, Elementwise):
    """A differentiable function of Python's."""


class OwnConstant(Own, Constant):
    """A function of Python's that is locally constant."""


class OfRow(General):
    """Python's function `act` of a list of numbers: of each row, along the last axis.

    `terms(y, x, x_dot)` are the numbers whose sum is the tangent.
    """

    host = pythons = True

    def __init__(self, name: str, act: Callable[..., float], terms: Callable[..., Any]) -> None:
        super().__init__(name)
        self.act: Callable[..., float] = act
        self.terms: Callable[..., Any] = terms
        self.raised: tuple[type[Exception], ...] = (ValueError, OverflowError)

    def result(self, x: tuple[Any, ...], **params: Any) -> Any:
        """The type of one number for each row."""
        t = type_of(x)
        if not t.shape:
            raise ShapeError(f"{self.name}: takes a row of numbers, and was given {t}")
        return ArrayType(t.shape[:-1], np.dtype(float))

    def evaluate(self, xp: Namespace, /, x: Shaped, line: str = "", **params: Any) -> Any:
        """Python's result for each row."""
        rows = np.reshape(x, (-1, np.shape(x)[-1])).tolist()
        try:
            return np.array([self.act(row) for row in rows]).reshape(np.shape(x)[:-1])[()]
        except (ArithmeticError, ValueError) as e:
            raise _noted(e, line) from None

    def jvp(self, y: Shaped, primals: tuple[Any, ...], tangents: list[Any], **params: Any) -> Any:
        """The tangent: the sum of the terms."""
        (x,), (x_dot,) = primals, tangents
        y = op("reshape")(y, shape=(*type_of(y).shape, 1))
        last = type_of(x).ndim - 1
        return op("sum")(self.terms(y, x, x_dot), axis=(last,), keepdims=False)

    def batch(
        self, args: tuple[Any, ...], batched: tuple[bool, ...], params: dict[str, Any]
    ) -> Any:
        """The batch rule: a batch of rows is an array of rows."""
        return self(*args, **params)


class Stored(Constant):
    """A number as an element of an array of whole numbers gets it: as Python's `int` of it."""

    host = pythons = True
    raised: tuple[type[Exception], ...] = (ValueError, OverflowError)

    def result(self, x: Shaped, *, dtype: DType, **params: Any) -> Any:
        """As many whole numbers."""
        return ArrayType(type_of(x).shape, np.dtype(dtype))

    def evaluate(
        self, xp: Namespace, /, x: Shaped, *, dtype: DType, line: str = "", **params: Any
    ) -> Any:
        """Each number, or what Python's or NumPy's conversion raises."""
        numbers, y = np.asarray(x), np.empty(np.shape(x), dtype)
        try:
            for at in np.ndindex(y.shape):
                y[at] = int(numbers[at])
        except (ArithmeticError, ValueError) as e:
            raise _noted(e, line) from None
        return y[()]

    def batch(
        self, args: tuple[Any, ...], batched: tuple[bool, ...], params: dict[str, Any]
    ) -> Any:
        """The batch rule: each number for itself."""
        return self(*args, **params)


Stored("stored")


class ExceptionOf(Constant):
    """Which of several exceptions Python's function raises: 0 for none, k for the k-th.

    `kinds` are the names of their classes, in one text.
    """

    host = pythons = True

    def result(self, *args: Shaped, of: str, kinds: str, **params: Any) -> Any:
        """A whole number for each number."""
        if not (isinstance(kinds, str) and isinstance(of, str) and of in registry.primitives):
            raise TypeError(f"exception_of: {of!r}, {kinds!r} are no function and names of classes")
        return ArrayType(op(of).result(*args, **params).shape, np.dtype(np.int64))

    def evaluate(self, xp: Namespace, /, *args: Any, of: str, kinds: str, **params: Any) -> Any:
        """What a call of it raises, of each number."""
        spread = np.broadcast_arrays(*args)
        y = np.zeros(spread[0].shape, np.int64)
        for at in np.ndindex(y.shape):
            numbers = [a[at] for a in spread]
            try:
                op(of).evaluate(np, *numbers, **params)
            except (ArithmeticError, ValueError) as e:
                classes = "".join([a.dtype.kind for a in numbers])
                y[at] = self._place(e, said_by(of, type(e), classes), kinds.split())
        return y[()]

    def _place(self, error: Exception, said: Sequence[Any], kinds: list[str]) -> int:
        names = [c.__name__ for c in type(error).__mro__]
        if len(said) < 2 and [[*error.args]] != said:
            raise StagingError(
                f"Python raises {error!r} here, with another text than was expected while the "
                "program was written"
            )
        return next((k for k, kind in enumerate(kinds, 1) if kind in names), 0)

    def batch(
        self, args: tuple[Any, ...], batched: tuple[bool, ...], params: dict[str, Any]
    ) -> Any:
        """The batch rule: align the trailing axes of the arguments."""
        return self(*aligned(args, batched), **params)


ExceptionOf("exception_of")


@functools.cache
def said_by(name: str, kind: type[Exception], classes: str) -> list[list[Any]]:
    """With which arguments a function of Python's raises exceptions of a class.

    It is asked for what numbers of these classes are special.
    """
    several: list[list[Any]] = []
    for numbers in itertools.product(*[_SPECIAL[c] for c in classes]):
        try:
            op(name).act(*numbers)
        except kind as e:
            several += [] if [*e.args] in several else [[*e.args]]
        except (ArithmeticError, ValueError, TypeError):
            continue
    return several


_INFINITE = math.inf
_SPECIAL: dict[str, list[Any]] = {
    "f": [0.0, -1.0, 0.5, -1.5, 3.0, 1e308, -1e308, _INFINITE, -_INFINITE, math.nan],
    "i": [0, 1, -1, 3, 2**62],
    "b": [False, True],
}
_SPECIAL["c"] = [complex(x, y) for x in _SPECIAL["f"] for y in (0.0, 1.0, -_INFINITE, math.nan)]
_SPECIAL["u"] = [0, 1]


def _noted(error: Exception, line: str) -> Exception:
    """Python's exception with the user's line in its text."""
    if line:
        error.add_note(f"in a program, at {line}")
    return error


def _pythons(a: Value) -> Any:
    return a.item() if isinstance(a, np.generic | np.ndarray) else a


def _torn(what: str, line: str) -> StagingError:
    return StagingError(
        f"Python's arithmetic {what} here and NumPy's does not, and the number is Python's in one "
        "branch or round of a loop and NumPy's in another; make it one of them where it begins, "
        "float(x) or np.float64(x)",
        line=line,
    )


def own(name: str, base: Primitive, act: Callable[..., Any]) -> Any:
    """Declare a primitive for Python's function `act` over a base."""
    return (OwnConstant if isinstance(base, Constant) else OwnElementwise)(name, base, act)


# --- operators ------------------------------------------------------------------------------------

OPERATORS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "power": operator.pow,
    "remainder": operator.mod,
    "floor_divide": operator.floordiv,
    "left_shift": operator.lshift,
    "right_shift": operator.rshift,
    "abs": abs,
}
for _name, _act in OPERATORS.items():
    own(f"python_{_name}", op(_name), _act)

# --- math and cmath -------------------------------------------------------------------------------

GIVES: dict[str, Any] = {f"math_{name}": int for name in ("floor", "ceil", "trunc", "round")}
# Those whose base is another function, or differs by more than two in the last place.
EVERYWHERE = {"math_remainder", "cmath_isclose", "math_gamma", "math_lgamma"}
EVERYWHERE |= {"math_round_to"}
OF_MATH = """
acos acosh asin asinh atan atan2 atanh cbrt cos cosh erf erfc exp exp2 expm1 fmod gamma lgamma log
log1p log10 log2 sin sinh sqrt tan tanh ldexp hypot floor ceil trunc pow remainder degrees radians
"""
OF_CMATH = "exp log log10 sqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh isclose"
BASES = {"degrees": "rad2deg", "radians": "deg2rad", "pow": "power"}


def _real(x: Shaped) -> Any:
    """The number in double precision, as functions of `math` convert it."""
    if not isinstance(x, Box):
        return math.ldexp(x, 0)  # raises math's exception
    if x.shape:
        raise TypeError("only arrays of one element can be converted to Python's numbers")
    t = x.dtype
    if t.kind == "c" and getattr(x, "weak", False):
        raise TypeError("must be real number, not complex")
    x = op("real")(x) if t.kind == "c" else x
    return x if x.dtype == float else op("astype")(x, dtype=np.dtype(float))


def _complex(z: Shaped) -> Any:
    """The number as a complex one, as functions of `cmath` convert it."""
    return op("astype")(z, dtype=np.dtype(complex)) if isinstance(z, Box) else complex(z)


def _declare(original: Callable[..., Any], convert: Callable[[Any], Any], act: Primitive) -> None:
    """Declare what stands for a function of numbers in programs."""

    def call(*args: Any, **options: Any) -> Any:
        with contextlib.suppress(ArithmeticError, ValueError):  # of numbers, not of how many
            original(*[1.0] * len(args))
        return act(*map(convert, args), **options)

    registry.declare(original, in_programs=call)


for _name in OF_MATH.split():
    _own = own(f"math_{_name}", op(BASES.get(_name, _name)), getattr(math, _name))
    _declare(getattr(math, _name), _real, _own)
for _name in OF_CMATH.split():
    _own = own(f"cmath_{_name}", op(_name), getattr(cmath, _name))
    _declare(getattr(cmath, _name), _complex, _own)
for _name in ("isfinite", "isinf", "isnan", "copysign", "nextafter"):
    _declare(getattr(math, _name), _real, op(_name))
_declare(math.fabs, _real, op("abs"))
own("math_round", op("rint"), round)
own("math_round_to", op("rint"), lambda x, digits: round(x, digits))
_fraction = own("math_fraction", op("fraction"), lambda x: math.modf(x)[0])


def _of_integers(ours: OwnConstant, start: int) -> Any:
    """math.gcd and math.lcm, of any number of integers."""

    def call(*integers: Any) -> Any:
        for n in integers:
            if isinstance(n, Box) and (n.shape or n.dtype.kind not in "iub"):
                named = n.stands_for().__name__
                raise TypeError(f"'{named}' object cannot be interpreted as an integer")
        return functools.reduce(ours, integers, start)

    return call


for _name, _start in (("gcd", 0), ("lcm", 1)):
    _own = own(f"math_{_name}", op(_name), getattr(math, _name))
    registry.declare(getattr(math, _name), in_programs=_of_integers(_own, _start))


def _in_programs(function: Callable[..., Any]) -> Callable[[Any], Any]:
    def declare(ours: Callable[..., Any]) -> Any:
        registry.declare(function, in_programs=ours)
        return ours

    return declare


@_in_programs(math.trunc)
def trunc(x):
    """The integer part, as a Python int."""
    if isinstance(x, Box) and x.dtype.kind == "b" and not x.weak:
        raise TypeError("type numpy.bool doesn't define __trunc__ method")
    return op("math_trunc")(_real(x))


@_in_programs(math.log)
def log(x, base=None):
    """The logarithm, to any base."""
    number = op("math_log")(_real(x))
    if base is None:
        return number
    return op("python_divide")(number, op("math_log")(_real(base)))


@_in_programs(math.isclose)
def isclose(a, b, *, rel_tol: Any = 1e-09, abs_tol: Any = 0.0):
    """Whether two numbers are no further apart than the tolerances."""
    x, y, relative, absolute = _real(a), _real(b), _real(rel_tol), _real(abs_tol)
    negative = op("logical_or")(relative < 0.0, absolute < 0.0)
    if isinstance(negative, Box):
        x = checked(x, negative, ValueError, "tolerances must be non-negative")
    else:
        math.isclose(0.0, 0.0, rel_tol=relative, abs_tol=absolute)  # raises math's exception
    apart = abs(y - x)
    near = [apart <= abs(relative * y), apart <= abs(relative * x), apart <= absolute]
    finite = op("logical_and")(op("isfinite")(x), op("isfinite")(y))
    return op("logical_or")(
        op("equal")(x, y), op("logical_and")(finite, functools.reduce(op("logical_or"), near))
    )


_FAR = 2**15  # beyond which a power of two is infinite or zero


@_in_programs(math.ldexp)
def ldexp(x, n):
    """x 2**n; NumPy's integers are none to it."""
    if not isinstance(n, Box):
        n = np.int64(max(-_FAR, min(n, _FAR))) if isinstance(n, int) else math.ldexp(0.0, n)
    elif n.shape or n.weak is False or n.dtype.kind not in "bi":
        raise TypeError("Expected an int as second argument to ldexp.")
    return op("math_ldexp")(_real(x), n)


@_in_programs(math.frexp)
def frexp(x):
    """(m, n) with x = m 2**n."""
    fraction, power_of_two = registry.foreign[np.frexp].ours(_real(x))
    return fraction, op("astype")(power_of_two, dtype=np.dtype(np.int64))


@_in_programs(math.modf)
def modf(x):
    """(fractional part, integer part)."""
    return _fraction(_real(x)), op("trunc")(_real(x))


_norm = OfRow("math_norm", lambda row: math.hypot(*row), lambda y, x, x_dot: over(x, y) * x_dot)
_sum = OfRow("math_fsum", math.fsum, lambda y, x, x_dot: x_dot)


@_in_programs(math.hypot)
def hypot(*coordinates):
    """The Euclidean norm of the coordinates."""
    numbers = tuple(map(_real, coordinates))
    return op("math_hypot")(*numbers) if len(numbers) == 2 else _norm(op("stack")(*numbers))


@_in_programs(math.dist)
def dist(p, q):
    """The Euclidean distance of two points."""
    p, q = map(tuple, (p, q))
    if len(p) != len(q):
        raise ValueError("both points must have the same number of dimensions")
    return hypot(*[_real(a) - _real(b) for a, b in zip(p, q, strict=True)])


@_in_programs(math.fsum)
def fsum(values):
    """The sum of the values, rounded once."""
    return _sum(op("stack")(*map(_real, values)))


def _refuse(name: str, n: int, works: str) -> None:
    raise StagingError(
        f"math.{name} of {n} numbers has bits of its own, which a program has no operation for; "
        f"use {works}, which may differ in the last ones"
    )


def _refusing(name: str) -> Callable[..., None]:
    return lambda *args: _refuse(name, len(args), "* and +")


for _name in ("sumprod", "fma"):  # of Python 3.12 and 3.13
    if hasattr(math, _name):
        registry.declare(getattr(math, _name), in_programs=_refusing(_name))


@_in_programs(cmath.log)
def complex_log(z, base=None):
    """The principal logarithm, to any base."""
    number = op("cmath_log")(_complex(z))
    if base is None:
        return number
    return op("python_divide")(number, op("cmath_log")(_complex(base)))


@_in_programs(cmath.phase)
def phase(z):
    """The argument of a complex number."""
    z = _complex(z)
    return op("math_atan2")(op("imag")(z), op("real")(z))


@_in_programs(cmath.polar)
def polar(z):
    """The absolute value and the argument."""
    return op("python_abs")(_complex(z)), phase(z)


_rect_real = own("cmath_rect_real", op("rect_real"), lambda r, phi: cmath.rect(r, phi).real)
_rect_imag = own("cmath_rect_imag", op("rect_imag"), lambda r, phi: cmath.rect(r, phi).imag)


@_in_programs(cmath.rect)
def rect(r, phi):
    """The complex number with this absolute value and argument."""
    return op("of_parts")(*[part(_real(r), _real(phi)) for part in (_rect_real, _rect_imag)])


__all__ = ["Own"]
