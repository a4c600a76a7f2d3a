"""Functions of floats that Python has algorithms of its own for, with the bits of CPython's C.

A formula is written once.  Of floats it is compared with Python's own function, which may have
been compiled to round otherwise; of registers it is code.  What is NaN here goes the slow way.
"""

import functools
import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from lineara.engines.native.code import Code
from lineara.engines.native.emit import Emitter
from lineara.engines.native.numbers import Num, in_text
from lineara.engines.native.symbols import c_function

Formula = Callable[..., Any]


def within(of: Any, low: float, x: Any, high: float, y: Any) -> Any:
    """y where x is between two numbers, else NaN."""
    return of.where(of.less(low, x), of.where(of.less(x, high), y, math.nan), math.nan)


# --- gamma functions:  Γ(x) = S(x) y^(x - 1/2) e^-y,  y = x + g - 1/2  [Lanczos 1964] ------------

# S is a quotient of polynomials, with the coefficients that Boost has for this g.
G = 6.024680040776729583740234375
TOP = (
    23531376880.41076, 42919803642.6491, 35711959237.35567, 17921034426.03721, 6039542586.352028,
    1439720407.3117216, 248874557.86205417, 31426415.585400194, 2876370.6289353725,
    186056.26539522348, 8071.672002365816, 210.82427775157936, 2.5066282746310002,
)  # fmt: skip
BOTTOM = (  # the coefficients of x (x + 1) ... (x + 11)
    0.0, 39916800.0, 120543840.0, 150917976.0, 105258076.0, 45995730.0, 13339535.0, 2637558.0,
    357423.0, 32670.0, 1925.0, 66.0, 1.0,
)  # fmt: skip


def lanczos(of: Any, x: Any) -> Any:
    """S(x); of large numbers by powers of 1/x, of which none is infinite."""

    def quotient(by: Callable[[Any], Any], *polynomials: Sequence[float]) -> Any:
        top, bottom = [functools.reduce(lambda y, c: by(y) + c, p, x * 0.0) for p in polynomials]
        return top / bottom

    return of.either(
        of.less(x, 5.0),
        lambda: quotient(lambda y: y * x, TOP[::-1], BOTTOM[::-1]),
        lambda: quotient(lambda y: y / x, TOP, BOTTOM),
    )


def lgamma(of: Any, x: Any) -> Any:
    """log Γ(x)."""
    y = of.log(lanczos(of, x)) - G
    y = y + (x - 0.5) * (of.log(x + G - 0.5) - 1.0)
    y = of.where(of.is_zero((x - 1.0) * (x - 2.0)), 0.0, y)
    return within(of, 1e-20, x, math.inf, y)


def gamma(of: Any, x: Any) -> Any:
    """Γ(x) of numbers below 140; a y that is rounded is mended by how much."""
    y = x + (G - 0.5)
    rest = of.where(of.less(G - 0.5, x), (y - x) - (G - 0.5), (y - (G - 0.5)) - x)
    by = rest * G / y
    z = lanczos(of, x) / of.exp(y)
    z = z + by * z
    z = z * of.pow(y, x - 0.5)
    whole = of.where(of.less(x, 18.0), of.rint(z), math.nan)  # as a table has it
    z = of.where(of.is_zero(x - of.floor(x)), whole, z)
    return within(of, 1e-20, x, 140.0, z)


# --- the length of a vector, with squares of two floats each [Dekker 1971] -----------------------


def hypot(of: Any, x: Any, y: Any) -> Any:
    """The square root of x^2 + y^2, and of it one step of Newton's."""
    x, y = of.fabs(x), of.fabs(y)
    largest = of.where(of.less(x, y), y, x)
    by = of.inverse_power(largest)
    total: Any = 1.0
    rest: Any = 0.0
    small: Any = 0.0

    def add(product: tuple[Any, Any]) -> None:
        nonlocal total, rest, small
        total, less = _sum(total, product[0])
        rest, small = rest + product[1], small + less

    add(_product(x * by, x * by))
    add(_product(y * by, y * by))
    root = of.sqrt(total - 1.0 + (rest + small))
    add(_product(root * -1.0, root))
    length = (root + (total - 1.0 + (rest + small)) / (root * 2.0)) / by
    return of.where(of.is_zero(x + y), 0.0, within(of, 1e-290, largest, 1e290, length))


def _sum(a: Any, b: Any) -> tuple[Any, Any]:
    """a + b, and what is lost; a is the larger one."""
    total = a + b
    return total, (a - total) + b


def _product(a: Any, b: Any) -> tuple[Any, Any]:
    """a b, and what is lost."""
    (a0, a1), (b0, b1), y = _halves(a), _halves(b), a * b
    return y, a1 * b1 - (((y - a0 * b0) - a1 * b0) - a0 * b1)


def _halves(a: Any) -> tuple[Any, Any]:
    """Two floats of half the digits, whose sum a is."""
    high = a * (2.0**27 + 1.0)
    high = high - (high - a)
    return high, a - high


# --- numbers --------------------------------------------------------------------------------------


class Floats:
    """What the formulas ask of numbers, of floats."""

    log = staticmethod(math.log)
    exp = staticmethod(math.exp)
    pow = staticmethod(math.pow)
    floor = staticmethod(math.floor)
    rint = staticmethod(round)
    fabs = staticmethod(abs)
    sqrt = staticmethod(math.sqrt)

    def inverse_power(self, x: float) -> float:
        """The inverse of the power of two that is next above x."""
        return math.ldexp(1.0, -math.frexp(x)[1])

    def less(self, x: float, y: float) -> bool:
        """Whether x < y."""
        return x < y

    def is_zero(self, x: float) -> bool:
        """Whether x is zero."""
        return x == 0.0

    def where(self, is_so: bool, x: float, y: float) -> float:
        """One of two numbers."""
        return x if is_so else y

    def either(self, is_so: bool, x: Callable[[], float], y: Callable[[], float]) -> float:
        """One of two numbers, of which the other one is not made."""
        return (x if is_so else y)()


class Register:
    """A number in a register, whose arithmetic is written down."""

    def __init__(self, code: Code, text: str) -> None:
        self.code, self.text = code, text

    def __add__(self, x: Any) -> "Register":
        return self.by("fadd", self, x)

    def __radd__(self, x: float) -> "Register":
        return self.by("fadd", x, self)

    def __sub__(self, x: Any) -> "Register":
        return self.by("fsub", self, x)

    def __rsub__(self, x: float) -> "Register":
        return self.by("fsub", x, self)

    def __mul__(self, x: Any) -> "Register":
        return self.by("fmul", self, x)

    def __truediv__(self, x: Any) -> "Register":
        return self.by("fdiv", self, x)

    def by(self, instruction: str, x: Any, y: Any) -> "Register":
        """What an instruction makes of two numbers."""
        return Register(self.code, self.code.let(f"{instruction} double {text(x)}, {text(y)}"))


INSTRUCTIONS = "floor", "rint", "fabs", "sqrt"


class Registers:
    """What the formulas ask of numbers, of registers."""

    def __init__(self, em: Emitter) -> None:
        self.em, self.code = em, Code()

    def call(self, name: str, *of: Register) -> Register:
        """What a function outside makes of numbers."""
        f = self.em.outside(name, f"double ({', '.join(['double'] * len(of))})")
        given = ", ".join([f"double {x.text}" for x in of])
        return Register(self.code, self.code.let(f"call double {f}({given})"))

    def __getattr__(self, name: str) -> Callable[..., Register]:
        family = "llvm.{}.f64" if name in INSTRUCTIONS else "c.{}"
        return functools.partial(self.call, family.format(name))

    def inverse_power(self, x: Register) -> Register:
        """The inverse of the power of two that is next above x."""
        bits = self.code.let(f"bitcast double {x.text} to i64")
        power = self.code.let(f"and i64 {bits}, {0x7FF << 52}")
        below = self.code.let(f"bitcast i64 {power} to double")
        return Register(self.code, below).by("fdiv", 0.5, Register(self.code, below))

    def less(self, x: Any, y: Any) -> str:
        """Whether x < y."""
        return self.code.let(f"fcmp olt double {text(x)}, {text(y)}")

    def is_zero(self, x: Register) -> str:
        """Whether x is zero."""
        return self.code.let(f"fcmp oeq double {x.text}, 0.0")

    def where(self, is_so: str, x: Any, y: Any) -> Register:
        """One of two numbers."""
        chosen = self.code.let(f"select i1 {is_so}, double {text(x)}, double {text(y)}")
        return Register(self.code, chosen)

    def either(self, is_so: str, x: Callable[[], Register], y: Callable[[], Register]) -> Register:
        """One of two numbers, of which the other one is not made."""
        yes, no, on = [self.code.name(label) for label in ("yes", "no", "on")]
        self.code.branch(is_so, yes, no)
        made: list[str] = []
        for label, of in ((yes, x), (no, y)):
            self.code.block(label)
            made.append(f"[{of().text}, %{label}]")
            self.code.jump(on)
        self.code.block(on)
        return Register(self.code, self.code.let(f"phi double {', '.join(made)}"))


def text(x: Any) -> str:
    """A number as an operand."""
    return x.text if isinstance(x, Register) else in_text(x)


GAMMA = [
    *[k / 37 for k in range(1, 600)], *[k * 1.37 for k in range(12, 100)],
    *[2.0**-k for k in range(1, 60)], *[float(k) for k in range(1, 18)],
]  # fmt: skip
FORMULAS: dict[str, tuple[Formula, list[tuple[float, ...]]]] = {
    "gamma": (gamma, [(x,) for x in GAMMA]),
    "lgamma": (lgamma, [(x,) for x in GAMMA]),
    "hypot": (hypot, [*pairwise([math.sin(k) * 2 ** (k % 9) for k in range(600)])]),
}
"""The formulas, and where they are compared with Python's functions."""


@functools.cache
def is_pythons(name: str) -> bool:
    """Whether a formula is what Python calculates: the same bits at many points."""
    of, (formula, points) = Floats(), FORMULAS[name]
    pythons: Callable[..., float] = getattr(math, name)
    return all([formula(of, *x) == pythons(*x) for x in points])


def by_formula(em: Emitter, name: str, args: Sequence[Num]) -> Num | None:
    """A function of f64, NaN where Python has it; None if Python's is another one."""
    if not is_pythons(name) or any([c_function(f) is None for f in ("exp", "log", "pow")]):
        return None
    title, given = f"math.{name}", [f"%x{i}" for i in range(len(args))]
    if title not in em.helpers:
        of = Registers(em)
        y = FORMULAS[name][0](of, *[Register(of.code, x) for x in given])
        formals = ", ".join([f"double {x}" for x in given])
        lines = [f'define internal double @"{title}"({formals}) {{', "start:", *of.code.lines]
        em.helpers[title] = "\n".join([*lines, f"  ret double {y.text}", "}"])
    operands = ", ".join([f"double {em.text(x)}" for x in args])
    return Num("f64", em.let(f'call double @"{title}"({operands})'))


__all__ = ["FORMULAS", "Floats", "by_formula", "is_pythons"]
