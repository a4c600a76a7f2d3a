"""Python's own complex numbers: what CPython's C makes of them, to the bit.

That is not what NumPy makes of them: its products may be rounded once where these are rounded
twice.  Whether Python was compiled to round each product is looked at.
"""

import cmath
import ctypes
import functools
import math
import operator
import sys
from collections.abc import Callable, Sequence
from itertools import pairwise

from lineara.engines.native.complexes import pair, parts, product
from lineara.engines.native.emit import Emitter
from lineara.engines.native.numbers import Num
from lineara.engines.native.scalars import (
    WHOLE,
    Slow,
    arithmetic,
    converted,
    finite,
    intrinsic,
    multiplied,
    of_c,
)
from lineara.engines.native.symbols import c_function


def pythons_complex(
    em: Emitter, name: str, kind: str, args: Sequence[Num], slow: Slow
) -> Num | None:
    """Python's arithmetic of complex numbers, abs and cmath.exp, as CPython's C has them.

    What is no number goes the slow way, since versions differ in which infinities they recover;
    so does what may raise.
    """
    act = OF_COMPLEX.get(name)
    mixed = any([x.kind != "c128" for x in args])
    if act is None or (mixed and not MIXED_IS_COMPLEX) or not is_pythons_complex(name):
        return None
    given = [converted(em, x, "c128") for x in args]
    return act(em, [z for z in given if z is not None], slow)


MIXED_IS_COMPLEX = sys.version_info < (3, 14)
"""Whether Python makes a complex number of the float beside one."""


def _ordered(em: Emitter, z: Num, slow: Slow, also: str = "") -> Num:
    """A complex number, no part of which is NaN."""
    re, im = [em.text(p) for p in parts(em, z)]
    fine = em.let(f"fcmp ord double {re}, {im}")
    return em.unless(em.let(f"and i1 {fine}, {also}") if also else fine, z, slow)


def _complex_sum(instruction: str) -> Callable[..., Num | None]:
    """A sum or a difference."""
    return lambda em, args, slow: arithmetic(instruction, WHOLE[instruction])(em, "c128", args)


def _complex_product(em: Emitter, args: Sequence[Num], slow: Slow) -> Num | None:
    """A product."""
    return _ordered(em, product(em, *args), slow)


def _complex_quotient(em: Emitter, args: Sequence[Num], slow: Slow) -> Num | None:
    """A quotient, by the larger part of the divisor, which is the way of Smith."""
    (a, b), (c, d) = [[em.text(p) for p in parts(em, z)] for z in args]
    sizes = [intrinsic("fabs")(em, "f64", [p]) for p in parts(em, args[1])]
    e, f = [em.text(s) for s in sizes if s is not None]
    first = em.let(f"fcmp oge double {e}, {f}")

    def chosen(x: str, y: str) -> str:
        return em.let(f"select i1 {first}, double {x}, double {y}")

    def of(instruction: str, x: str, y: str) -> str:
        return em.let(f"f{instruction} double {x}, {y}")

    large, small = chosen(c, d), chosen(d, c)
    ratio = of("div", small, large)
    scale = of("add", large, of("mul", small, ratio))
    near, far = chosen(a, b), chosen(b, a)
    scaled = of("mul", near, ratio)
    re = of("add", near, of("mul", far, ratio))
    im = of("sub", chosen(far, scaled), chosen(scaled, far))
    z = pair(em, *[Num("f64", of("div", x, scale)) for x in (re, im)])
    return _ordered(em, z, slow, em.let(f"fcmp une double {large}, 0.0"))


def _complex_size(em: Emitter, args: Sequence[Num], slow: Slow) -> Num | None:
    """The absolute value."""
    return finite(em, of_c(em, "hypot", parts(em, args[0])), slow)


def _complex_exponential(em: Emitter, args: Sequence[Num], slow: Slow) -> Num | None:
    """The exponential."""
    x, y = parts(em, args[0])
    of = [of_c(em, name, [p]) for name, p in (("exp", x), ("cos", y), ("sin", y))]
    if None in of:
        return None
    size, *along = [p for p in of if p is not None]
    scaled = [multiplied(em, "f64", [size, p]) for p in along]
    z = pair(em, *[p for p in scaled if p is not None])
    return _ordered(em, z, slow, em.let(f"fcmp olt double {em.text(x)}, 7.0e+02"))


OF_COMPLEX: dict[str, Callable[..., Num | None]] = {
    "python_add": _complex_sum("add"),
    "python_subtract": _complex_sum("sub"),
    "python_multiply": _complex_product,
    "python_divide": _complex_quotient,
    "python_abs": _complex_size,
    "cmath_exp": _complex_exponential,
}


@functools.cache
def is_pythons_complex(name: str) -> bool:
    """Whether Python was compiled so that it rounds each product: the same bits at many points."""
    points = [complex(math.sin(k) * 2 ** (k % 7), math.cos(3 * k)) for k in range(1, 300)]
    pythons, written = WRITTEN.get(name, (operator.add, operator.add))
    return all([pythons(z, w) == written(z, w) for z, w in pairwise(points)])


def _product(z: complex, w: complex) -> complex:
    a, b, c, d = z.real, z.imag, w.real, w.imag
    return complex(a * c - b * d, a * d + b * c)


def _quotient(z: complex, w: complex) -> complex:
    a, b, c, d = z.real, z.imag, w.real, w.imag
    if abs(c) >= abs(d):
        ratio = d / c
        scale = c + d * ratio
        return complex((a + b * ratio) / scale, (b - a * ratio) / scale)
    ratio = c / d
    scale = c * ratio + d
    return complex((a * ratio + b) / scale, (b * ratio - a) / scale)


def _size(z: complex, _: complex) -> float:
    address = c_function("hypot")
    of = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double, ctypes.c_double)
    return math.nan if address is None else of(address)(z.real, z.imag)


def _exponential(z: complex, _: complex) -> complex:
    size = math.exp(z.real)
    return complex(size * math.cos(z.imag), size * math.sin(z.imag))


WRITTEN: dict[str, tuple[Callable[..., complex], Callable[..., complex]]] = {
    "python_multiply": (operator.mul, _product),
    "python_divide": (operator.truediv, _quotient),
    "python_abs": (lambda z, _: abs(z), _size),
    "cmath_exp": (lambda z, _: cmath.exp(z), _exponential),
}
"""Python's own, and what the code does for it."""

__all__ = ["pythons_complex"]
