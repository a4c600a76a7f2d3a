"""Primitives on numbers in registers: with the bits that NumPy's and Python's own have.

    by instructions        arithmetic, comparisons, choices: IEEE has one answer
    by the C library       functions of `math`, which are the C library's
    by the loops of NumPy  other functions of NumPy's: `numpy_loops`

A rule is called with the emitter, the kind of the result and the arguments; None says that it has
no code for these kinds.  Nothing is contracted or reassociated.
"""

import ctypes
import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

from lineara.engines.native.complexes import pair, parts
from lineara.engines.native.divisors import divisor
from lineara.engines.native.emit import Emitter
from lineara.engines.native.formulas import FORMULAS, by_formula
from lineara.engines.native.numbers import FLOATS, LLVM, Affine, Num, constant
from lineara.engines.native.symbols import c_function
from lineara.linear_a import syntax as ir

Rule = Callable[[Emitter, str, Sequence[Num]], Num | None]
Slow = Callable[[], Num]


def converted(em: Emitter, x: Num, kind: str) -> Num | None:
    """A number in another kind, as NumPy casts it; None from a float to an i64: it may not fit."""
    if x.kind == kind:
        return x
    if "c128" in (x.kind, kind):
        return between_complex(em, x, kind)
    if kind != "bool" and x.constant is not None and (kind in FLOATS or x.kind == "bool"):
        return constant(kind, x.constant)
    n = x.affine.constant if x.affine is not None and not x.affine.terms else None
    if kind in FLOATS and n is not None and abs(n) <= 2**53:  # rounded once
        return constant(kind, n)
    how = CASTS.get((x.kind, kind))
    if how is None:
        return None
    rest = ", 0" * (how == "icmp ne") + ", 0.0" * (how == "fcmp une")
    rest = rest or f" to {LLVM[kind]}"
    return Num(kind, em.let(f"{how} {LLVM[x.kind]} {em.text(x)}{rest}"))


def truncated(em: Emitter, x: Num) -> tuple[str, Num]:
    """Whether a float fits an i64 without its fraction, and that; else zero."""
    size = intrinsic("fabs")(em, x.kind, [x])
    assert size is not None, "it is a float"
    t, end, zero = LLVM[x.kind], *[em.text(constant(x.kind, c)) for c in (2.0**63, 0.0)]
    fine = em.let(f"fcmp olt {t} {em.text(size)}, {end}")
    inside = em.let(f"select i1 {fine}, {t} {em.text(x)}, {t} {zero}")
    return fine, Num("i64", em.let(f"fptosi {t} {inside} to i64"))


def between_complex(em: Emitter, x: Num, kind: str) -> Num | None:
    """A real number as a complex one, or whether a complex one is not zero."""
    if kind == "c128":
        re = converted(em, x, "f64")
        return re and pair(em, re, constant("f64", 0.0))
    if kind != "bool":
        return None
    return either(em, kind, [y for p in parts(em, x) if (y := converted(em, p, kind))])


CASTS = {
    ("f32", "f64"): "fpext", ("f64", "f32"): "fptrunc", ("i64", "bool"): "icmp ne",
    ("bool", "i64"): "zext",
    **{("i64", kind): "sitofp" for kind in FLOATS},
    **{("bool", kind): "uitofp" for kind in FLOATS},
    **{(kind, "bool"): "fcmp une" for kind in FLOATS},
}  # fmt: skip


def common(em: Emitter, args: Sequence[Num]) -> list[Num]:
    """Numbers in the kind that holds them all."""
    kinds = {x.kind for x in args}
    kind = next(k for k in ("c128", *FLOATS, "i64", "bool") if k in kinds)
    if {"f32", "i64"} <= kinds:  # neither holds the other
        kind = "f64"
    cast = [converted(em, x, kind) for x in args]
    return [x for x in cast if x is not None]


# --- arithmetic -----------------------------------------------------------------------------------


def arithmetic(instruction: str, whole: Callable[[Affine, Affine], Affine | None]) -> Rule:
    """Of floats IEEE's, of i64 modulo 2**64; of booleans there is a rule beside it."""

    def rule(em: Emitter, kind: str, args: Sequence[Num]) -> Num | None:
        x, w = [a if a.kind == kind else converted(em, a, kind) for a in args]
        if x is None or w is None or kind == "bool":
            return None
        if kind == "c128" and instruction == "mul":
            return None  # NumPy's loop may round once where this rounds twice
        if kind != "i64":
            if x.constant is not None and w.constant is not None:
                # a double has so many digits that a f32 made of it is as if rounded once
                return constant(kind, FOLDED[instruction](x.constant, w.constant))
            if em.free and instruction == "add" and 0.0 in (x.constant, w.constant):
                return w if x.constant == 0.0 else x
            how = f"f{instruction}{em.freedom(instruction)} {LLVM[kind]}"
            return Num(kind, em.let(f"{how} {em.text(x)}, {em.text(w)}"))
        known = affine(em, x, w, whole)
        return known or Num(kind, em.let(f"{instruction} i64 {em.text(x)}, {em.text(w)}"))

    return rule


def affine(
    em: Emitter, x: Num, w: Num, whole: Callable[[Affine, Affine], Affine | None]
) -> Num | None:
    """The result where it is affine in the rounds and never too large."""
    if x.affine is None or w.affine is None:
        return None
    y = whole(x.affine, w.affine)
    return Num("i64", affine=y) if y is not None and (em.trying or y.fits()) else None


def product(x: Affine, w: Affine) -> Affine | None:
    """The product, if one factor is a constant."""
    if not w.terms:
        return x.times(w.constant)
    return None if x.terms else w.times(x.constant)


WHOLE: dict[str, Callable[[Affine, Affine], Affine | None]] = {
    "add": lambda x, w: x.plus(w),
    "sub": lambda x, w: x.plus(w, -1),
    "mul": product,
}
FOLDED: dict[str, Callable[[float, float], float]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul,
}  # fmt: skip
added: Rule = arithmetic("add", WHOLE["add"])
subtracted: Rule = arithmetic("sub", WHOLE["sub"])
multiplied: Rule = arithmetic("mul", WHOLE["mul"])


def either(em: Emitter, kind: str, args: Sequence[Num]) -> Num | None:
    """True if one is; a sum of booleans."""
    x, w = args
    if True in (x.constant, w.constant):
        return constant("bool", True)
    if x == w or False in (x.constant, w.constant):
        return w if x.constant is False else x
    return Num(kind, em.let(f"or i1 {em.text(x)}, {em.text(w)}"))


def both(em: Emitter, kind: str, args: Sequence[Num]) -> Num | None:
    """True if both are; a product of booleans."""
    x, w = args
    if False in (x.constant, w.constant):
        return constant("bool", False)
    if x == w or True in (x.constant, w.constant):
        return w if x.constant is True else x
    return Num(kind, em.let(f"and i1 {em.text(x)}, {em.text(w)}"))


def of_booleans(rule: Rule, others: Rule | None) -> Rule:
    """One rule where all are booleans, another one for numbers."""

    def chosen(em: Emitter, kind: str, args: Sequence[Num]) -> Num | None:
        if args[0].kind == "bool" and all([x.kind == "bool" for x in args]):
            return rule(em, kind, args)
        return others(em, kind, args) if others else None

    return chosen


def truth(rule: Rule) -> Rule:
    """A rule of booleans on whether numbers are not zero."""

    def of_truth(em: Emitter, kind: str, args: Sequence[Num]) -> Num | None:
        return rule(em, kind, [x for a in args if (x := converted(em, a, "bool")) is not None])

    return of_truth


def bits(instruction: str) -> Rule:
    """An instruction on the bits of whole numbers."""

    def rule(em: Emitter, kind: str, args: Sequence[Num]) -> Num | None:
        x, w = [converted(em, a, kind) for a in args]
        if kind != "i64" or x is None or w is None:
            return None
        return Num(kind, em.let(f"{instruction} i64 {em.text(x)}, {em.text(w)}"))

    return rule


def quotient(em: Emitter, kind: str, args: Sequence[Num]) -> Num | None:
    """x / w, of floats always."""
    x, w = [converted(em, a, kind) for a in args]
    if kind not in FLOATS or x is None or w is None:
        return None
    return Num(kind, em.let(f"fdiv {LLVM[kind]} {em.text(x)}, {em.text(w)}"))


def opposite(em: Emitter, kind: str, args: Sequence[Num]) -> Num | None:
    """-x."""
    (x,) = args
    if kind == x.kind and kind in (*FLOATS, "c128"):
        return Num(kind, em.let(f"fneg {LLVM[kind]} {em.text(x)}"))
    return subtracted(em, kind, [constant("i64", 0), x]) if kind == "i64" == x.kind else None


def squared(em: Emitter, kind: str, args: Sequence[Num]) -> Num | None:
    """x * x."""
    return multiplied(em, kind, [*args, *args])


def size(em: Emitter, kind: str, args: Sequence[Num]) -> Num | None:
    """|x|; of the least whole number itself, as NumPy has it."""
    (x,) = args
    if kind != "i64" or x.kind != "i64":
        return intrinsic("fabs")(em, kind, args)
    text = em.text(x)
    negative, other = em.let(f"icmp slt i64 {text}, 0"), em.let(f"sub i64 0, {text}")
    return Num(kind, em.let(f"select i1 {negative}, i64 {other}, i64 {text}"))


def raised(em: Emitter, kind: str, args: Sequence[Num]) -> Num | None:
    """x ** 0 and x ** 1, which C's pow has exactly, whatever x is; of whole numbers more."""
    n = exponent(args[1]) if kind == "i64" else None
    if n is not None:
        base = converted(em, args[0], kind)
        return base and powers(em, base, n, lambda a, b: f"mul i64 {em.text(a)}, {em.text(b)}")
    x, w = [converted(em, a, kind) for a in args]
    if kind not in FLOATS or x is None or w is None or w.constant not in (0.0, 1.0):
        return None
    return x if w.constant else constant(kind, 1.0)


def exponent(w: Num) -> int | None:
    """A constant whole exponent for which there are products: neither negative nor large."""
    n = w.affine.constant if w.affine is not None and not w.affine.terms else None
    return n if n is not None and 0 <= n <= 64 else None


def powers(em: Emitter, x: Num, n: int, product: Callable[[Num, Num], str]) -> Num:
    """x ** n by squares, of an instruction that makes a product of whole numbers."""
    y: Num | None = None
    while n:
        if n % 2:
            y = x if y is None else Num("i64", em.let(product(y, x)))
        n //= 2
        x = Num("i64", em.let(product(x, x))) if n else x
    return constant("i64", 1) if y is None else y


def inverted(em: Emitter, kind: str, args: Sequence[Num]) -> Num | None:
    """1 / x."""
    return quotient(em, kind, [constant(kind, 1.0), *args]) if args[0].kind == kind else None


def intrinsic(name: str, arity: int = 1) -> Rule:
    """A function of floats that LLVM has, and that has one answer."""

    def rule(em: Emitter, kind: str, args: Sequence[Num]) -> Num | None:
        if kind not in FLOATS or any([x.kind != kind for x in args]):
            return None
        t = LLVM[kind]
        f = em.outside(f"llvm.{name}.{kind}", f"{t} ({', '.join([t] * arity)})")
        given = ", ".join([f"{t} {em.text(x)}" for x in args])
        return Num(kind, em.let(f"call {t} {f}({given})"))

    return rule


def fraction(em: Emitter, kind: str, args: Sequence[Num]) -> Num | None:
    """What rounding to zero takes from a float, with its sign; of an infinity nothing."""
    whole = intrinsic("trunc")(em, kind, args)
    if whole is None:
        return None
    t, x, w = LLVM[kind], em.text(args[0]), em.text(whole)
    is_whole, part = em.let(f"fcmp oeq {t} {x}, {w}"), em.let(f"fsub {t} {x}, {w}")
    y = Num(kind, em.let(f"select i1 {is_whole}, {t} 0.0, {t} {part}"))
    return intrinsic("copysign", 2)(em, kind, [y, args[0]])


def sign(em: Emitter, kind: str, args: Sequence[Num]) -> Num | None:
    """1, 0 or -1; x itself where it is no number."""
    y = x = em.text(args[0])
    if kind not in FLOATS or args[0].kind != kind:
        return None
    t = LLVM[kind]
    for how, value in (("oeq", 0.0), ("olt", -1.0), ("ogt", 1.0)):
        y = em.let(f"select i1 {em.let(f'fcmp {how} {t} {x}, 0.0')}, {t} {value}, {t} {y}")
    return Num(kind, y)


# --- complex numbers ------------------------------------------------------------------------------


def part(i: int) -> Rule:
    """The real part, or the imaginary one, which is zero of all other numbers."""

    def rule(em: Emitter, kind: str, args: Sequence[Num]) -> Num | None:
        (z,) = args
        if z.kind == "c128":
            return parts(em, z)[i]
        return constant(kind, 0) if i else z

    return rule


def conjugate(em: Emitter, kind: str, args: Sequence[Num]) -> Num | None:
    """The number with the other sign of the imaginary part."""
    if kind != "c128":
        return args[0]
    re, im = parts(em, args[0])
    im = opposite(em, "f64", [im])
    return im and pair(em, re, im)


def of_parts(em: Emitter, kind: str, args: Sequence[Num]) -> Num | None:
    """The complex number of two real ones."""
    re, im = [converted(em, x, "f64") for x in args]
    return pair(em, re, im) if kind == "c128" and re and im else None


# --- comparisons and choices ----------------------------------------------------------------------

COMPARED: dict[str, tuple[str, str, str, Callable[[int, int], bool | None]]] = {
    "equal": ("oeq", "eq", "eq", lambda low, high: True if low == high == 0 else None),
    "not_equal": ("une", "ne", "ne", lambda low, high: False if low == high == 0 else None),
    "less": ("olt", "slt", "ult", lambda low, high: True if high < 0 else None),
    "less_equal": ("ole", "sle", "ule", lambda low, high: True if high <= 0 else None),
    "greater": ("ogt", "sgt", "ugt", lambda low, high: True if low > 0 else None),
    "greater_equal": ("oge", "sge", "uge", lambda low, high: True if low >= 0 else None),
}


SAME_IN_PYTHON: dict[str, Callable[[float, float], bool]] = {
    "oeq": operator.eq, "une": operator.ne, "olt": operator.lt, "ole": operator.le,
    "ogt": operator.gt, "oge": operator.ge,
}  # fmt: skip


def compared(floating: str, signed: str, booleans: str, known: Callable[..., Any]) -> Rule:
    """A comparison, in the kind that holds both."""

    def rule(em: Emitter, kind: str, args: Sequence[Num]) -> Num | None:
        x, w = common(em, args)
        if x.affine is not None and w.affine is not None:
            ends = x.affine.plus(w.affine, -1).range()
            told = None if ends is None else known(*ends)
            if told is not None:
                return constant("bool", told)
        if x.kind in FLOATS and x.constant is not None and w.constant is not None:
            return constant("bool", SAME_IN_PYTHON[floating](x.constant, w.constant))
        if x.kind == "c128":
            if floating not in ("oeq", "une"):
                return None
            one, two = [
                Num("bool", em.let(f"fcmp {floating} double {em.text(a)}, {em.text(b)}"))
                for a, b in zip(parts(em, x), parts(em, w), strict=True)
            ]
            return (both if floating == "oeq" else either)(em, "bool", [one, two])
        how = f"icmp {signed if x.kind == 'i64' else booleans}"
        how = f"fcmp {floating}" if x.kind in FLOATS else how
        y = em.let(f"{how} {LLVM[x.kind]} {em.text(x)}, {em.text(w)}")
        return Num("bool", y, compared=(signed, x, w) if x.kind == "i64" else None)

    return rule


def inverse(em: Emitter, kind: str, args: Sequence[Num]) -> Num | None:
    """Whether a boolean is false."""
    (x,) = args
    if x.constant is not None:
        return constant("bool", not x.constant)
    return Num("bool", em.let(f"xor i1 {em.text(x)}, true"))


def is_a(test: str) -> Rule:
    """A test of a float."""

    def rule(em: Emitter, kind: str, args: Sequence[Num]) -> Num | None:
        of = args[0].kind
        size = intrinsic("fabs")(em, of, args)
        infinite = em.text(constant("f64", math.inf))
        return size and Num("bool", em.let(f"fcmp {test} {LLVM[of]} {em.text(size)}, {infinite}"))

    return rule


def is_end(end: float) -> Rule:
    """Whether a float is that end of the floats."""

    def rule(em: Emitter, kind: str, args: Sequence[Num]) -> Num | None:
        (x,) = args
        if x.kind not in FLOATS:
            return None
        return Num(
            "bool",
            em.let(f"fcmp oeq {LLVM[x.kind]} {em.text(x)}, {em.text(constant(x.kind, end))}"),
        )

    return rule


def where(em: Emitter, kind: str, args: Sequence[Num]) -> Num | None:
    """The second where the first is true, else the third."""
    c, a, b = converted(em, args[0], "bool"), *[converted(em, x, kind) for x in args[1:]]
    if c is None or a is None or b is None:
        return None
    if c.constant is not None:
        return a if c.constant else b
    t = LLVM[kind]
    return Num(kind, em.let(f"select i1 {em.text(c)}, {t} {em.text(a)}, {t} {em.text(b)}"))


def attains(em: Emitter, kind: str, args: Sequence[Num]) -> Num | None:
    """Whether the first is the second, an extremum, or no number."""
    t = LLVM[args[0].kind]
    if args[0].kind not in FLOATS or args[1].kind != args[0].kind:
        return None
    a, b = [em.text(x) for x in args]
    same, odd = em.let(f"fcmp oeq {t} {a}, {b}"), em.let(f"fcmp uno {t} {a}, {a}")
    return Num("bool", em.let(f"or i1 {same}, {odd}"))


def keep(em: Emitter, kind: str, args: Sequence[Num]) -> Num | None:
    """The first where the second is true, else zero."""
    x, live = args
    return where(em, kind, [live, x, constant(kind, 0)])


def itself(em: Emitter, kind: str, args: Sequence[Num]) -> Num | None:
    """The first argument, in the kind of the result; of a complex number the real part."""
    if len(args) > 1:  # an axis, which a number lacks
        return None
    x = parts(em, args[0])[0] if args[0].kind == "c128" and kind in FLOATS else args[0]
    return converted(em, x, kind)


def over_square(em: Emitter, kind: str, args: Sequence[Num]) -> Num | None:
    """x / (x^2 + w^2) as the interpreter has it: no square overflows."""
    if kind not in FLOATS or any([a.kind != kind for a in args]):
        return None
    t, (x, w) = LLVM[kind], [em.text(a) for a in args]
    one, infinite = [em.text(constant(kind, value)) for value in (1.0, math.inf)]

    def both_are(value: str) -> str:
        sizes = [em.text(size) for a in args if (size := intrinsic("fabs")(em, kind, [a]))]
        same = [em.let(f"fcmp oeq {t} {size}, {value}") for size in sizes]
        return em.let(f"and i1 {same[0]}, {same[1]}")

    part = em.let(f"fmul {t} {w}, {em.let(f'fdiv {t} {w}, {x}')}")
    whole = em.let(f"fadd {t} {x}, {part}")
    divisor = em.let(f"select i1 {both_are(infinite)}, {t} {x}, {t} {whole}")
    y = em.let(f"fdiv {t} {one}, {divisor}")
    return Num(
        kind, em.let(f"select i1 {both_are(em.text(constant(kind, 0.0)))}, {t} {x}, {t} {y}")
    )


RULES: dict[str, Rule] = {
    "add": of_booleans(either, added),
    "subtract": subtracted,
    "multiply": of_booleans(both, multiplied),
    "divide": quotient,
    "negative": opposite,
    "square": squared,
    "over_square": over_square,
    "reciprocal": inverted,
    "power": raised,
    "abs": size,
    "fabs": intrinsic("fabs"),
    "sqrt": intrinsic("sqrt"),
    "length": intrinsic("sqrt"),
    "real": part(0),
    "imag": part(1),
    "conj": conjugate,
    "of_parts": of_parts,
    "copysign": intrinsic("copysign", 2),
    "floor": intrinsic("floor"),
    "ceil": intrinsic("ceil"),
    "trunc": intrinsic("trunc"),
    "fraction": fraction,
    "rint": intrinsic("rint"),
    "sign": sign,
    "isnan": is_a("uno"),
    "isinf": is_a("oeq"),
    "isposinf": is_end(math.inf),
    "isneginf": is_end(-math.inf),
    "isfinite": is_a("olt"),
    "logical_not": truth(inverse),
    "logical_or": truth(either),
    "logical_and": truth(both),
    "bitwise_or": of_booleans(either, bits("or")),
    "bitwise_and": of_booleans(both, bits("and")),
    "where": where,
    "live_factor": where,
    "keep": keep,
    "attains": attains,
    **dict.fromkeys(
        (
            "astype",
            "reshape",
            "broadcast_to",
            "permute_dims",
            "index",
            "sum",
            "prod",
            "max",
            "min",
            "any",
            "all",
        ),
        itself,
    ),
    "stop_gradient": itself,
    "checkpoint_name": itself,
    "compiled": lambda em, kind, args: args[0] if em.exact else constant(kind, True),
    **{name: compared(*how) for name, how in COMPARED.items()},
}


def rounded_to(decimals: Any = 0) -> Rule | None:
    """To decimals, as NumPy has it: a multiple of a power of ten that is a f64."""
    if not -22 <= decimals <= 22:
        return None
    there, back = ("fmul", "fdiv")[:: 1 if decimals > 0 else -1]

    def rule(em: Emitter, kind: str, args: Sequence[Num]) -> Num | None:
        x, *digits = args
        if digits:
            return None  # that are numbers of the program
        if kind != "f64" or x.kind != kind:
            return x if kind == x.kind == "i64" and decimals >= 0 else None
        power = em.text(constant(kind, 10.0 ** abs(decimals)))
        scaled = Num(kind, em.let(f"{there} double {em.text(x)}, {power}"))
        whole = intrinsic("rint")(em, kind, [scaled])
        return whole and Num(kind, em.let(f"{back} double {em.text(whole)}, {power}"))

    return rule


def rule_of(e: ir.Prim) -> Rule | None:
    """The rule of a primitive with its parameters, if it has one."""
    return rounded_to(**e.params) if e.name in ("round", "around") else RULES.get(e.name)


# --- Python's own ---------------------------------------------------------------------------------

SAME = {"python_add": "add", "python_subtract": "sub", "python_multiply": "mul"}
OF_C = {
    "exp", "log", "log2", "log10", "log1p", "expm1", "sin", "cos", "tan", "asin", "acos", "atan",
    "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "cbrt", "exp2", "sqrt", "atan2", "fmod",
}  # fmt: skip
PERHAPS = {"erf", "erfc"}
"""Functions that Python takes from the C library in some versions, and has of its own in others."""
ROUNDED = {
    "math_floor": "floor", "math_ceil": "ceil", "math_trunc": "trunc", "math_round": "rint",
}  # fmt: skip


def pythons(em: Emitter, name: str, kind: str, args: Sequence[Num], slow: Slow) -> Num | None:
    """A function of Python's; where it may raise, or means something else, the slow way is gone."""
    if not {kind, *[x.kind for x in args]} <= {"f64", "i64", "bool"}:
        return None
    if name in SAME:
        return _checked(em, SAME[name], kind, args, slow)
    if name == "python_abs" and kind == "f64":
        return intrinsic("fabs")(em, kind, args)
    if name == "python_divide" and kind == "f64":
        return _divided(em, args, slow)
    if name in ("python_floor_divide", "python_remainder"):
        divided = _floored if kind == "i64" else _floored_floats
        return divided(em, name, args, slow)
    if name in ("python_power", "math_pow") and kind == "f64":
        return _power(em, args, slow)
    if name == "python_power" and kind == "i64":
        return _whole_power(em, args, slow)
    if name in ("math_degrees", "math_radians"):
        by = 180 / math.pi if name == "math_degrees" else math.pi / 180
        return multiplied(em, kind, [args[0], constant("f64", by)])
    if name in ROUNDED and args[0].kind == "f64":
        return _rounded(em, ROUNDED[name], args, slow)
    if name in ("math_gcd", "math_lcm"):
        return divisor(em, name, args, slow)
    if name == "math_ldexp":
        return _scaled(em, args, slow)
    in_c = name.removeprefix("math_")
    if in_c in FORMULAS and {x.kind for x in args} == {"f64"}:
        return finite(em, by_formula(em, in_c, args), slow)
    has = in_c in OF_C or (in_c in PERHAPS and is_pythons(in_c))
    if has and {x.kind for x in args} == {"f64"}:
        return finite(em, of_c(em, in_c, args), slow)
    return None


def _checked(
    em: Emitter, instruction: str, kind: str, args: Sequence[Num], slow: Slow
) -> Num | None:
    """A sum, difference or product; of whole numbers Python's, which may be too large."""
    if kind != "i64":
        return arithmetic(instruction, WHOLE[instruction])(em, kind, args)
    x, w = args
    known = affine(em, x, w, WHOLE[instruction])
    if known is not None:
        return known
    f = em.outside(f"llvm.s{instruction}.with.overflow.i64", "{ i64, i1 } (i64, i64)")
    both_ = em.let(f"call {{ i64, i1 }} {f}(i64 {em.text(x)}, i64 {em.text(w)})")
    y = em.let(f"extractvalue {{ i64, i1 }} {both_}, 0")
    over = em.let(f"extractvalue {{ i64, i1 }} {both_}, 1")
    return em.unless(em.let(f"xor i1 {over}, true"), Num(kind, y), slow)


def _divided(em: Emitter, args: Sequence[Num], slow: Slow) -> Num | None:
    """x / w; Python's quotient of whole numbers is rounded once, so large ones go the slow way."""
    x, w = [converted(em, a, "f64") for a in args]
    assert x is not None
    assert w is not None
    fine = em.let(f"fcmp une double {em.text(w)}, 0.0")
    for a in args if all([a.kind == "i64" for a in args]) else ():
        moved = em.let(f"add i64 {em.text(a)}, {2**53}")
        fits = em.let(f"icmp ule i64 {moved}, {2**54}")  # a f64 holds it, so one rounding is all
        fine = em.let(f"and i1 {fine}, {fits}")
    on, no, after = em.name("on"), em.name("no"), em.name("after")
    em.branch(fine, on, no)  # a quotient is not computed in vain
    em.block(on)
    y, first = em.text(Num("f64", em.let(f"fdiv double {em.text(x)}, {em.text(w)}"))), em.label
    em.jump(after)
    em.block(no)
    z, second = em.text(slow()), em.label
    em.jump(after)
    em.block(after)
    return Num("f64", em.let(f"phi double [{y}, %{first}], [{z}, %{second}]"))


def _floored(em: Emitter, name: str, args: Sequence[Num], slow: Slow) -> Num | None:
    """x // w or x % w of whole numbers; zero and -1, which overflows, go the slow way."""
    x, w = [em.text(a) for a in args]
    fine = em.let(f"icmp ugt i64 {em.let(f'add i64 {w}, 1')}, 1")
    safe = em.let(f"select i1 {fine}, i64 {w}, i64 1")
    q, r = em.let(f"sdiv i64 {x}, {safe}"), em.let(f"srem i64 {x}, {safe}")
    differ = em.let(f"icmp slt i64 {em.let(f'xor i64 {r}, {safe}')}, 0")
    down = em.let(f"and i1 {differ}, {em.let(f'icmp ne i64 {r}, 0')}")
    if name == "python_remainder":
        y = em.let(f"add i64 {r}, {em.let(f'select i1 {down}, i64 {safe}, i64 0')}")
    else:
        y = em.let(f"sub i64 {q}, {em.let(f'zext i1 {down} to i64')}")
    return em.unless(fine, Num("i64", y), slow)


def _floored_floats(em: Emitter, name: str, args: Sequence[Num], slow: Slow) -> Num | None:
    """x % w of floats, as Python makes it of C's fmod; the slow way for // and for zeros."""
    x, w = [converted(em, a, "f64") for a in args]
    if name != "python_remainder" or x is None or w is None:
        return None
    r = of_c(em, "fmod", [x, w])
    if r is None:
        return None
    divisor, rest = em.text(w), em.text(r)
    apart = em.let(
        f"xor i1 {em.let(f'fcmp olt double {divisor}, 0.0')}, "
        f"{em.let(f'fcmp olt double {rest}, 0.0')}"
    )
    moved = em.let(f"fadd double {rest}, {divisor}")
    y = em.let(f"select i1 {apart}, double {moved}, double {rest}")
    fine = em.let(f"fcmp one double {rest}, 0.0")  # neither zero nor NaN
    return em.unless(fine, Num("f64", y), slow)


def _power(em: Emitter, args: Sequence[Num], slow: Slow) -> Num | None:
    """x ** w by C's pow where x is positive, or w a whole constant; else the slow way."""
    x, w = [converted(em, a, "f64") for a in args]
    if x is None or w is None:
        return None
    n = w.constant
    if n is None or n != int(n) or not 0 < n < 2**53:
        y = of_c(em, "pow", [x, w])
        positive = em.let(f"fcmp ogt double {em.text(x)}, 0.0")
        return y and finite(em, y, slow, positive)
    size = intrinsic("fabs")(em, "f64", [x])
    assert size is not None
    y = of_c(em, "pow", [size, w])
    if y is not None and n % 2:
        y = intrinsic("copysign", 2)(em, "f64", [y, x])
    return finite(em, y, slow)


def _whole_power(em: Emitter, args: Sequence[Num], slow: Slow) -> Num | None:
    """x ** n of whole numbers by products; one that is too large goes the slow way."""
    n = exponent(args[1])
    if n is None:
        return None
    f = em.outside("llvm.smul.with.overflow.i64", "{ i64, i1 } (i64, i64)")
    large: list[str] = []

    def product(a: Num, b: Num) -> str:
        both_ = em.let(f"call {{ i64, i1 }} {f}(i64 {em.text(a)}, i64 {em.text(b)})")
        large.append(em.let(f"extractvalue {{ i64, i1 }} {both_}, 1"))
        return f"extractvalue {{ i64, i1 }} {both_}, 0"

    y = powers(em, args[0], n, product)
    if not large:
        return y
    any_ = functools.reduce(lambda a, b: em.let(f"or i1 {a}, {b}"), large)
    return em.unless(em.let(f"xor i1 {any_}, true"), y, slow)


def _scaled(em: Emitter, args: Sequence[Num], slow: Slow) -> Num | None:
    """x 2**n by C's ldexp; the slow way for large n, which C cannot take."""
    x, n = converted(em, args[0], "f64"), converted(em, args[1], "i64")
    if x is None or n is None or c_function("ldexp") is None:
        return None
    f, n = em.outside("c.ldexp", "double (double, i32)"), em.text(n)
    short = em.let(f"trunc i64 {n} to i32")
    y = Num("f64", em.let(f"call double {f}(double {em.text(x)}, i32 {short})"))
    same = em.let(f"icmp eq i64 {em.let(f'sext i32 {short} to i64')}, {n}")
    return finite(em, y, slow, same)


def _rounded(em: Emitter, name: str, args: Sequence[Num], slow: Slow) -> Num | None:
    """A whole number next to a f64; what does not fit goes the slow way."""
    x = intrinsic(name)(em, "f64", args)
    assert x is not None
    size = intrinsic("fabs")(em, "f64", [x])
    assert size is not None
    fine = em.let(f"fcmp olt double {em.text(size)}, {em.text(constant('f64', 2.0**62))}")
    y = em.let(
        f"call i64 {em.outside('llvm.fptosi.sat.i64.f64', 'i64 (double)')}(double {em.text(x)})"
    )
    return em.unless(fine, Num("i64", y), slow)


def finite(em: Emitter, y: Num | None, slow: Slow, also: str = "") -> Num | None:
    """A result that is finite; of any other Python knows whether it raises."""
    if y is None:
        return None
    size = intrinsic("fabs")(em, "f64", [y])
    assert size is not None
    fine = em.let(f"fcmp olt double {em.text(size)}, {em.text(constant('f64', math.inf))}")
    return em.unless(em.let(f"and i1 {fine}, {also}") if also else fine, y, slow)


@functools.cache
def is_pythons(name: str) -> bool:
    """Whether a function of C is what Python's `math` calls: the same bits at many points."""
    address = c_function(name)
    if address is None:
        return False
    in_c = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(address)
    points = [k / 37 for k in range(-300, 300)]
    return all([in_c(x) == getattr(math, name)(x) for x in points])


def of_c(em: Emitter, name: str, args: Sequence[Num]) -> Num | None:
    """A function of the C library; None where it has none of that name.

    It is called under a name that LLVM does not know, lest it put another function in its place.
    """
    if c_function(name) is None:
        return None
    f = em.outside(f"c.{name}", f"double ({', '.join(['double'] * len(args))})")
    given = ", ".join([f"double {em.text(x)}" for x in args])
    return Num("f64", em.let(f"call double {f}({given})"))
