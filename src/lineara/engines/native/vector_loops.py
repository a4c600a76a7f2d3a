"""Loops of NumPy's that ask the C library for number after number, as vectors with the same bits.

    exp(x) = 2^(k/N) (1 + p(r)),  k = round(N x / ln 2),  r = x - k ln 2 / N,  N = 128,  |x| < 512

NumPy calculates exp of float64 in vectors where a processor has AVX-512, and elsewhere calls the C
library's, which is glibc's on most machines.  These are its operations in its order, with the same
table and coefficients  [glibc 2.28, e_exp.c].  A loop takes the place of NumPy's where it has
the same bits at many points; so another C library, or NumPy's own vectors, go on as they are.
"""

import ctypes
import math
import struct
from decimal import Decimal, localcontext
from functools import cache
from typing import Any

import numpy as np

from lineara.engines.native.code import Code
from lineara.engines.native.machine_code import Compiler
from lineara.engines.native.numbers import in_text
from lineara.engines.native.symbols import c_function

EXP = "numpy.exp.f64.f64"
N = 128
SHIFT = 1.5 * 2**52  # what is added to it is rounded to a whole number
LN2 = tuple(map(float.fromhex, ("-0x1.62e42fefa0000p-8", "-0x1.cf79abc9e3b39p-47")))
"""- ln 2 / N, in two parts."""
COEFFICIENTS = tuple(map(float.fromhex, (
    "0x1.ffffffffffdbdp-2", "0x1.555555555543cp-3", "0x1.55555cf172b91p-5", "0x1.1111167a4d017p-7",
)))  # fmt: skip
"""Of r^2 to r^5."""
CHUNK = 256
"""Numbers that are in the first cache."""


def quicker(name: str, address: int, compiler: Compiler) -> int:
    """The address of what code calls by a name: a loop of vectors in place of NumPy's, or it."""
    if name != EXP:
        return address
    library = of_vectors(address, compiler)
    return address if library is None else library["exp"]


@cache
def of_vectors(address: int, compiler: Compiler) -> Any:
    """The loop of vectors, if it has the bits of the loop at an address; else None."""
    c_exp, few = c_function("exp"), np.linspace(-20.0, 20.0, 257)
    if c_exp is None or called(address, few).tolist() != [math.exp(x) for x in few.tolist()]:
        return None
    library = compiler.shared(text(), 1, {"c.exp": c_exp})
    x = points()
    return library if called(library["exp"], x).tobytes() == called(address, x).tobytes() else None


def called(address: int, x: np.ndarray) -> np.ndarray:
    """What the loop at an address makes of some numbers."""
    y = np.empty_like(x)
    places, sizes = np.array([x.ctypes.data, y.ctypes.data]), np.array([x.size])
    strides = np.array([8, 8])  # held: another thread may run during the call, and take its memory
    loop = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)(address)
    loop(places.ctypes.data, sizes.ctypes.data, strides.ctypes.data, None)
    return y


def points() -> np.ndarray:
    """Numbers of all sizes, those that are next to a rounding of k, and what is no number."""
    rng = np.random.default_rng(0)
    halves = (np.arange(-2000, 2000) + 0.5) * (math.log(2.0) / N)
    sizes = rng.normal(size=4000) * 10.0 ** rng.integers(-20, 3, 4000)
    special = [0.0, -0.0, 512.0, -512.0, 709.78, 709.79, -745.1, -745.2, -708.5, 1e300, -1e300]
    odd = [math.inf, -math.inf, math.nan, 5e-324, math.nextafter(512.0, 0.0)]
    return np.concatenate([halves, sizes, special, odd])


def table() -> list[int]:
    """For each i < N the bits of the error of 2^(i/N), and those of it, less i 2^45."""
    words = []
    with localcontext(prec=50):
        root, x = (Decimal(2).ln() / N).exp(), Decimal(1)
        for i in range(N):
            power = float(x)
            off, bits = struct.unpack(
                "<2Q", struct.pack("<2d", float(x / Decimal(power) - 1), power)
            )
            words += [off, (bits - (i << 45)) % 2**64]
            x *= root
    return words


def text() -> str:
    """The loop, for arguments with any strides; chunks of it are vectors."""
    f = Code()
    x, y = [f.let(f"load ptr, ptr {of_word(f, '%places', i)}") for i in (0, 1)]
    of, to = [f.let(f"load i64, ptr {of_word(f, '%steps', i)}") for i in (0, 1)]
    n, is_far = f.let("load i64, ptr %size"), f.let("alloca i1")
    given, made = [f.let(f"alloca [{CHUNK} x double], align 64") for _ in "xy"]
    chunks = f.let(f"sdiv i64 {f.let(f'add i64 {n}, {CHUNK - 1}')}, {CHUNK}")
    with f.loop("0", chunks) as c:
        first = f.let(f"mul i64 {c}, {CHUNK}")
        left = f.let(f"sub i64 {n}, {first}")
        some = f.let(f"icmp slt i64 {left}, {CHUNK}")
        m = f.let(f"select i1 {some}, i64 {left}, i64 {CHUNK}")
        with f.loop("0", m) as i:
            moved(f, apart(f, x, first, i, of), of_word(f, given, i))
        f.line(f"store i1 false, ptr {is_far}")
        with f.loop("0", m) as i:
            a = f.let(f"load double, ptr {of_word(f, given, i)}")
            before = f.let(f"load i1, ptr {is_far}")
            f.line(f"store i1 {f.let(f'or i1 {before}, {far(f, a)}')}, ptr {is_far}")
            f.line(f"store double {power(f, a)}, ptr {of_word(f, made, i)}")
        asked, give = f.name("asked"), f.name("give")
        f.branch(f.let(f"load i1, ptr {is_far}"), asked, give)
        f.block(asked)
        with f.loop("0", m) as i:
            a = f.let(f"load double, ptr {of_word(f, given, i)}")
            ask, on = f.name("ask"), f.name("on")
            f.branch(far(f, a), ask, on)
            f.block(ask)
            asked_for = f.let(f'call double @"c.exp"(double {a})')
            f.line(f"store double {asked_for}, ptr {of_word(f, made, i)}")
            f.jump(on)
            f.block(on)
        f.jump(give)
        f.block(give)
        with f.loop("0", m) as i:
            moved(f, of_word(f, made, i), apart(f, y, first, i, to))
    head = "define void @exp(ptr %places, ptr %size, ptr %steps, ptr %data) {\nstart:"
    words = ", ".join([f"i64 {w}" for w in table()])
    constant = f"@table = private unnamed_addr constant [{2 * N} x i64] [{words}]"
    return "\n".join([DECLARED, constant, head, *f.lines, "  ret void", "}"])


DECLARED = """
declare double @llvm.fma.f64(double, double, double)
declare double @llvm.fabs.f64(double)
declare double @"c.exp"(double)
"""


def of_word(f: Code, base: str, i: int | str) -> str:
    """The address of a word of eight bytes."""
    return f.let(f"getelementptr i64, ptr {base}, i64 {i}")


def apart(f: Code, base: str, first: str, i: str, step: str) -> str:
    """The address of an element whose neighbours are so many bytes apart."""
    nbytes = f.let(f"mul i64 {f.let(f'add i64 {first}, {i}')}, {step}")
    return f.let(f"getelementptr i8, ptr {base}, i64 {nbytes}")


def moved(f: Code, source: str, into: str) -> None:
    """Copy a number."""
    f.line(f"store double {f.let(f'load double, ptr {source}')}, ptr {into}")


def far(f: Code, x: str) -> str:
    """Whether exp(x) may be infinite, 0, subnormal or no number."""
    size = f.let(f"call double @llvm.fabs.f64(double {x})")
    return f.let(f"fcmp uge double {size}, {in_text(512.0)}")


def power(f: Code, x: str) -> str:
    """exp(x) of a number that is not far."""

    def fma(a: str, b: str, c: str) -> str:
        return f.let(f"call double @llvm.fma.f64(double {a}, double {b}, double {c})")

    def times(a: str, b: str) -> str:
        return f.let(f"fmul double {a}, {b}")

    c2, c3, c4, c5 = map(in_text, COEFFICIENTS)
    high, low = map(in_text, LN2)
    shift = in_text(SHIFT)
    rounded = fma(x, in_text(N / math.log(2.0)), shift)
    k, bits = f.let(f"fsub double {rounded}, {shift}"), f.let(f"bitcast double {rounded} to i64")
    r = fma(k, low, fma(k, high, x))
    at = f.let(f"shl i64 {f.let(f'and i64 {bits}, {N - 1}')}, 1")
    off = f.let(f"load double, ptr {of_word(f, '@table', at)}")
    word = f.let(f"load i64, ptr {of_word(f, '@table', f.let(f'or i64 {at}, 1'))}")
    whole = f.let(f"add i64 {word}, {f.let(f'shl i64 {bits}, 45')}")
    scale = f.let(f"bitcast i64 {whole} to double")
    r2 = times(r, r)
    p = fma(fma(c3, r, c2), r2, f.let(f"fadd double {off}, {r}"))
    return fma(scale, fma(times(r2, r2), fma(c5, r, c4), p), scale)
