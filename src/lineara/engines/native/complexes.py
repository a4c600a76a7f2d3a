"""A complex number in a register: a vector of its two parts."""

from lineara.engines.native.emit import Emitter
from lineara.engines.native.numbers import LLVM, Num


def pair(em: Emitter, re: Num, im: Num) -> Num:
    """The complex number of two parts."""
    of = LLVM["c128"]
    half = em.let(f"insertelement {of} poison, double {em.text(re)}, i64 0")
    return Num("c128", em.let(f"insertelement {of} {half}, double {em.text(im)}, i64 1"))


def parts(em: Emitter, z: Num) -> list[Num]:
    """The real and the imaginary part."""
    of = f"extractelement {LLVM['c128']} {em.text(z)}, i64"
    return [Num("f64", em.let(f"{of} {i}")) for i in range(2)]


def product(em: Emitter, z: Num, w: Num) -> Num:
    """The product as it is written: four products, each rounded, and two sums."""
    (a, b), (c, d) = [[em.text(p) for p in parts(em, x)] for x in (z, w)]
    ac, bd, ad, bc = [em.let(f"fmul double {x}, {y}") for x, y in ((a, c), (b, d), (a, d), (b, c))]
    re, im = em.let(f"fsub double {ac}, {bd}"), em.let(f"fadd double {ad}, {bc}")
    return pair(em, Num("f64", re), Num("f64", im))


__all__ = ["pair", "parts", "product"]
