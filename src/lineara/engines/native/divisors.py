"""math.gcd and math.lcm of whole numbers, by Euclid's algorithm: at most 90 remainders."""

from collections.abc import Callable, Sequence

from lineara.engines.native.emit import Emitter
from lineara.engines.native.numbers import Num

GCD = """define internal i64 @"math.gcd"(i64 %x, i64 %y) {
start:
  br label %round
round:
  %a = phi i64 [%x, %start], [%b, %more]
  %b = phi i64 [%y, %start], [%rest, %more]
  %end = icmp eq i64 %b, 0
  br i1 %end, label %done, label %more
more:
  %rest = urem i64 %a, %b
  br label %round
done:
  ret i64 %a
}"""


def divisor(em: Emitter, name: str, args: Sequence[Num], slow: Callable[[], Num]) -> Num | None:
    """The greatest common divisor or the least common multiple; if too large, the slow way."""
    if {x.kind for x in args} != {"i64"}:
        return None
    em.helpers["math.gcd"] = GCD
    absolute = em.outside("llvm.abs.i64", "i64 (i64, i1)")
    x, y = [em.let(f"call i64 {absolute}(i64 {em.text(a)}, i1 false)") for a in args]
    d = em.let(f'call i64 @"math.gcd"(i64 {x}, i64 {y})')
    if name == "math_gcd":
        return em.unless(em.let(f"icmp sge i64 {d}, 0"), Num("i64", d), slow)
    none = em.let(f"icmp eq i64 {d}, 0")
    by = em.let(f"udiv i64 {x}, {em.let(f'select i1 {none}, i64 1, i64 {d}')}")
    f = em.outside("llvm.smul.with.overflow.i64", "{ i64, i1 } (i64, i64)")
    both = em.let(f"call {{ i64, i1 }} {f}(i64 {by}, i64 {y})")
    least, large = [em.let(f"extractvalue {{ i64, i1 }} {both}, {i}") for i in range(2)]
    bits = em.let(f"or i64 {least}, {em.let(f'or i64 {by}, {y}')}")  # negative where one is
    fine = em.let(f"and i1 {em.let(f'icmp sge i64 {bits}, 0')}, {em.let(f'xor i1 {large}, true')}")
    return em.unless(fine, Num("i64", least), slow)


__all__ = ["divisor"]
