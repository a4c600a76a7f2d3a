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
    places, n = np.array([x.ctypes.data, y.ctypes.data]), np.array([x.size])
    loop = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)(address)
    loop(places.ctypes.data, n.ctypes.data, np.array([8, 8]).ctypes.data, None)
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
    c2, c3, c4, c5 = [in_text(c) for c in COEFFICIENTS]
    high, low = [in_text(c) for c in LN2]
    shift, by = in_text(SHIFT), in_text(N * 1.4426950408889634)
    words = ", ".join([f"i64 {w}" for w in table()])
    fma = "call double @llvm.fma.f64"
    return f"""
declare double @llvm.fma.f64(double, double, double)
declare double @llvm.fabs.f64(double)
declare double @"c.exp"(double)
@table = private unnamed_addr constant [{2 * N} x i64] [{words}]
define void @exp(ptr %places, ptr %size, ptr %steps, ptr %data) {{
entry:
  %in = alloca [{CHUNK} x double], align 64
  %out = alloca [{CHUNK} x double], align 64
  %n = load i64, ptr %size
  %x = load ptr, ptr %places
  %y.place = getelementptr i64, ptr %places, i64 1
  %y = load ptr, ptr %y.place
  %of = load i64, ptr %steps
  %to.place = getelementptr i64, ptr %steps, i64 1
  %to = load i64, ptr %to.place
  br label %chunks
chunks:
  %first = phi i64 [0, %entry], [%next, %done]
  %left = sub i64 %n, %first
  %some = icmp sgt i64 %left, 0
  br i1 %some, label %chunk, label %end
chunk:
  %few = icmp slt i64 %left, {CHUNK}
  %m = select i1 %few, i64 %left, i64 {CHUNK}
  br label %read
read:
  %i = phi i64 [0, %chunk], [%i1, %read]
  %i.row = add i64 %first, %i
  %i.off = mul i64 %i.row, %of
  %i.from = getelementptr i8, ptr %x, i64 %i.off
  %i.x = load double, ptr %i.from, align 8
  %i.to = getelementptr double, ptr %in, i64 %i
  store double %i.x, ptr %i.to
  %i1 = add nuw nsw i64 %i, 1
  %i.more = icmp slt i64 %i1, %m
  br i1 %i.more, label %read, label %round
round:
  %j = phi i64 [0, %read], [%j1, %round]
  %far = phi i1 [false, %read], [%far1, %round]
  %a.place = getelementptr double, ptr %in, i64 %j
  %a = load double, ptr %a.place
  %size.a = call double @llvm.fabs.f64(double %a)
  %is.far = fcmp uge double %size.a, {in_text(512.0)}
  %far1 = or i1 %far, %is.far
  %z = {fma}(double %a, double {by}, double {shift})
  %k = bitcast double %z to i64
  %whole = fsub double %z, {shift}
  %r0 = {fma}(double %whole, double {high}, double %a)
  %r = {fma}(double %whole, double {low}, double %r0)
  %place = and i64 %k, {N - 1}
  %twice = shl i64 %place, 1
  %off.place = getelementptr i64, ptr @table, i64 %twice
  %off = load double, ptr %off.place
  %odd = or i64 %twice, 1
  %bits.place = getelementptr i64, ptr @table, i64 %odd
  %bits = load i64, ptr %bits.place
  %exponent = shl i64 %k, 45
  %sum = add i64 %bits, %exponent
  %scale = bitcast i64 %sum to double
  %p = {fma}(double {c3}, double %r, double {c2})
  %t = fadd double %off, %r
  %r2 = fmul double %r, %r
  %q = {fma}(double {c5}, double %r, double {c4})
  %pt = {fma}(double %p, double %r2, double %t)
  %r4 = fmul double %r2, %r2
  %tail = {fma}(double %r4, double %q, double %pt)
  %e = {fma}(double %scale, double %tail, double %scale)
  %e.place = getelementptr double, ptr %out, i64 %j
  store double %e, ptr %e.place
  %j1 = add nuw nsw i64 %j, 1
  %j.more = icmp slt i64 %j1, %m
  br i1 %j.more, label %round, label %look, !llvm.loop !0
look:
  br i1 %far1, label %seek, label %write
seek:
  %l = phi i64 [0, %look], [%l1, %sought]
  %b.place = getelementptr double, ptr %in, i64 %l
  %b = load double, ptr %b.place
  %size.b = call double @llvm.fabs.f64(double %b)
  %is = fcmp uge double %size.b, {in_text(512.0)}
  br i1 %is, label %ask, label %sought
ask:
  %c = call double @"c.exp"(double %b)
  %c.place = getelementptr double, ptr %out, i64 %l
  store double %c, ptr %c.place
  br label %sought
sought:
  %l1 = add nuw nsw i64 %l, 1
  %l.more = icmp slt i64 %l1, %m
  br i1 %l.more, label %seek, label %write
write:
  %w = phi i64 [0, %look], [0, %sought], [%w1, %write]
  %w.from = getelementptr double, ptr %out, i64 %w
  %w.y = load double, ptr %w.from
  %w.row = add i64 %first, %w
  %w.off = mul i64 %w.row, %to
  %w.to = getelementptr i8, ptr %y, i64 %w.off
  store double %w.y, ptr %w.to, align 8
  %w1 = add nuw nsw i64 %w, 1
  %w.more = icmp slt i64 %w1, %m
  br i1 %w.more, label %write, label %done
done:
  %next = add i64 %first, {CHUNK}
  br label %chunks
end:
  ret void
}}
!0 = distinct !{{!0, !1}}
!1 = !{{!"llvm.loop.vectorize.enable", i1 true}}
"""
