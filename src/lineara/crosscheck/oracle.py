"""What a program means, by an evaluator that shares nothing with the library: the oracle.

It takes steps in the complex plane: the imaginary part of f(x + i h) is h f'(x) to all digits if h
is small and f is analytic, whatever the library believes the derivative of an operation to be.
"""

import cmath
import math
import random
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from lineara.crosscheck.language import Program, Term
from lineara.errors import LinearaError

H = 1e-100  # its square is nothing, whatever it is multiplied by
DIGITS = 50
ROUNDED = 4  # how often rounding is tried, in the 50-digit run
LOST = 1e-3  # of a number, or of 1 if that is larger: moved by more it has less than three digits
NEAR = 1e-9  # as near as this to where two pieces meet, rounding may decide which is taken

Table = Mapping[str, Callable[..., Any]]


class EdgeError(Exception):
    """The point lies where two pieces of a function meet, so no derivative is asked for there."""


def larger(x: Any, w: Any) -> bool:
    """Whether x is the larger in its real part; an EdgeError where that is a matter of rounding."""
    a, b = x.real, w.real
    if abs(a - b) <= NEAR * (abs(a) + abs(b)):
        raise EdgeError(f"{float(a)} meets {float(b)}")
    return bool(a > b)


def table(m: Any, real: Callable[[Any], Any], **own: Callable[..., Any]) -> Table:
    """The operations over a module with functions of complex numbers."""
    one, two, ten = real(1), real(2), real(10)

    def cbrt(z: Any) -> Any:
        return m.exp(m.log(z) / 3) if larger(z, 0 * one) else -m.exp(m.log(-z) / 3)

    def atan2(x: Any, w: Any) -> Any:
        """The angle, from the larger of the two, plus what is constant in its quarter."""
        if abs(x.real) > abs(w.real):
            return (m.pi / 2 if x.real > 0 else -m.pi / 2) - m.atan(w / x)
        turn = real(0) if w.real > 0 else m.pi if x.real >= 0 else -m.pi
        return m.atan(x / w) + turn

    operations: dict[str, Callable[..., Any]] = {
        "abs": lambda z: z if larger(z, 0 * one) else -z,
        "acos": m.acos, "asin": m.asin, "asinh": m.asinh, "atan": m.atan, "atanh": m.atanh,
        "cbrt": cbrt, "cos": m.cos, "cosh": m.cosh, "exp": m.exp, "log": m.log, "sin": m.sin,
        "sinh": m.sinh, "sqrt": m.sqrt, "tan": m.tan, "tanh": m.tanh, "atan2": atan2,
        "deg2rad": lambda z: z * m.pi / 180, "rad2deg": lambda z: z * 180 / m.pi,
        "exp2": lambda z: m.exp(z * m.log(two)), "expm1": lambda z: m.exp(z) - 1,
        "log10": lambda z: m.log(z) / m.log(ten), "log1p": lambda z: m.log(1 + z),
        "log2": lambda z: m.log(z) / m.log(two), "negative": lambda z: -z,
        "reciprocal": lambda z: 1 / z, "square": lambda z: z * z,
        "add": lambda x, w: x + w, "subtract": lambda x, w: x - w,
        "multiply": lambda x, w: x * w, "divide": lambda x, w: x / w,
        "power": lambda x, w: m.exp(w * m.log(x)), "hypot": lambda x, w: m.sqrt(x * x + w * w),
        "logaddexp": lambda x, w: m.log(m.exp(x) + m.exp(w)),
        "maximum": lambda x, w: x if larger(x, w) else w,
        "minimum": lambda x, w: w if larger(x, w) else x,
    }  # fmt: skip
    return {**operations, **own}


COMPLEX = table(
    cmath,
    complex,
    expm1=lambda z: complex(math.expm1(z.real), cmath.exp(z).imag),
    log1p=lambda z: complex(math.log1p(z.real), cmath.log(1 + z).imag),
)


def finite(f: Callable[..., Any]) -> Callable[..., Any]:
    """The operation, with an OverflowError for any result that is not finite.

    Python's functions raise one, its products give infinity.  An engine may multiply that by the
    zero slope of a number that is dropped, and then has a NaN: the passes are literal there.
    """

    def checked(*args: Any) -> Any:
        y = f(*args)
        if not cmath.isfinite(y):
            raise OverflowError("a number on the way is not finite")
        return y

    return checked


FINITE = {name: finite(f) for name, f in COMPLEX.items()}


def run(e: Term, env: dict[str, Any], ops: Table, number: Callable[[float], Any]) -> Any:
    """The value of a term; arrays are tuples, functions are Python's."""
    match e.head:
        case "var":
            return env[e.held]
        case "num":
            return number(e.held)
        case "lam":
            (body,) = e.parts
            return lambda a: run(body, {**env, e.held: a}, ops, number)
        case "let":
            bound, body = e.parts
            return run(body, {**env, e.held: run(bound, env, ops, number)}, ops, number)
        case "if":
            a, b, yes, no = e.parts
            x, w = run(a, env, ops, number), run(b, env, ops, number)
            return run(yes if larger(w, x) else no, env, ops, number)
    parts = [run(p, env, ops, number) for p in e.parts]
    match e.head:
        case "op":
            return _spread(ops[e.held], parts)
        case "app":
            return parts[0](parts[1])
        case "pair" | "stack":
            return tuple(parts)
        case "first" | "second":
            return parts[0][e.head == "second"]
        case "index":
            return parts[0][e.held]
        case "loop":
            f, x = parts
            for _ in range(e.held):
                x = f(x)
            return x
    terms = parts[0] if e.head == "sum" else _spread(ops["multiply"], parts)
    total = terms[0]
    for x in terms[1:]:
        total = ops["add"](total, x)
    return total


def _spread(f: Callable[..., Any], args: list[Any]) -> Any:
    """An operation on each element; a number among arrays goes with all."""
    n = max([len(a) for a in args if isinstance(a, tuple)], default=0)
    if not n:
        return f(*args)
    return tuple([f(*[a[i] if isinstance(a, tuple) else a for a in args]) for i in range(n)])


def at(program: Program, numbers: list[Any], ops: Table, number: Callable[[float], Any]) -> Any:
    """The value of a program where its inputs have these numbers."""
    given = program.at_numbers(numbers)
    env = {name: a for (name, _), a in zip(program.inputs, given, strict=True)}
    return run(program.body, env, ops, number)


def complex_step(program: Program) -> list[float]:
    """Value and gradient in double precision; an EdgeError where there is no gradient.

    An ArithmeticError or ValueError where the value or a number on the way is not finite.
    """
    xs = program.numbers
    gradient = []
    value = 0.0
    for i in range(len(xs)):
        y = at(program, [complex(x, H * (i == j)) for j, x in enumerate(xs)], FINITE, complex)
        value = y.real
        gradient.append(y.imag / H)
    return [value, *gradient]


# --- in 50 digits ---------------------------------------------------------------------------------


def mpmath() -> ModuleType:
    """The library of many digits; a LinearaError if it is not there."""
    try:
        import mpmath
    except ImportError:
        raise LinearaError(
            "a disagreement is judged in 50 digits by mpmath, which is not installed; "
            "`pip install mpmath`, or `pip install lineara[test]`"
        ) from None
    return mpmath


def fifty_digits(program: Program) -> tuple[list[float], list[float]]:
    """Value and gradient in 50 digits, and by how much rounding can move each of these numbers.

    Rounding is what a run in 50 digits shows in which all that goes into an operation and comes out
    is off by half a unit in the last place of a double, up or down by chance.  Where it leaves less
    than three digits of a number on the way, it can move all by any amount: a few runs are no bound
    for the sine of 1e60 degrees.
    """
    for digits in (DIGITS, 8 * DIGITS):  # a step is small if the slope times it is
        try:
            exact, moved = _judged(program, digits)
        except OverflowError:
            continue
        if max(map(abs, exact[1:]), default=0.0) < 10.0 ** (digits // 2):
            return exact, moved
    return [math.nan] * (1 + len(program.numbers)), [math.inf] * (1 + len(program.numbers))


def _judged(program: Program, digits: int) -> tuple[list[float], list[float]]:
    mp = mpmath()
    h = mp.mpf(10) ** -digits
    xs = program.numbers
    rng = random.Random(0)
    half = mp.mpf(2) ** -53

    def numbers(
        variant: Callable[[Callable[..., Any]], Callable[..., Any]],
    ) -> tuple[list[Any], list[Any]]:
        """Value and gradient by a variant of each operation, and what each operation gave."""
        on_the_way = []

        def noted(f: Callable[..., Any]) -> Callable[..., Any]:
            def called(*args: Any) -> Any:
                z = f(*args)
                on_the_way.append(z.real)
                return z

            return called

        ops = {k: noted(variant(f)) for k, f in table(mp, mp.mpc).items()}
        gradient = []
        value = mp.mpf(0)
        for i in range(len(xs)):
            step = [mp.mpc(x, h if i == j else 0) for j, x in enumerate(xs)]
            value = at(program, step, ops, mp.mpc)
            gradient.append(mp.im(value) / h)
        return [mp.re(value), *gradient], on_the_way

    def moved_by_half(z: Any, scale: Any = 0) -> Any:
        u, v = rng.choice((-1, 1)), rng.choice((-1, 1))  # value and slope round on their own
        return mp.mpc(z.real * (1 + u * half), z.imag + v * half * max(abs(z.imag), scale))

    def off(f: Callable[..., Any]) -> Callable[..., Any]:
        def rounded(*args: Any) -> Any:
            # a slope such as 1 - y * y is as exact as what is subtracted in it
            return moved_by_half(f(*map(moved_by_half, args)), max(abs(a.imag) for a in args))

        return rounded

    with mp.workdps(3 * digits):  # the square of the step is a relative error of 1e-100
        exact, way = numbers(lambda f: f)
        moved = [0.0] * len(exact)
        for _ in range(ROUNDED):
            rounded, other = numbers(off)  # another branch may have more operations, or fewer
            if any([abs(z - y) > LOST * max(abs(y), 1) for y, z in zip(way, other, strict=False)]):
                return [float(x) for x in exact], [math.inf] * len(exact)
            moved = [
                max(m, float(abs(r - x))) for m, r, x in zip(moved, rounded, exact, strict=True)
            ]
        return [float(x) for x in exact], moved
