"""Rings to evaluate programs over: rationals, GF(7), quaternions, matrices; dual numbers.

tr is a map to a field with tr(x y) = tr(y x): the real part of a quaternion, the trace of a matrix.
"""

import operator
import random
from collections.abc import Callable
from fractions import Fraction
from functools import reduce
from typing import Any, NamedTuple

from lineara.engines import Ask, Exact, run
from lineara.linear_a.program import Program


class Element:
    """What its parts are: added part by part; a class says how two are multiplied."""

    def __init__(self, *parts: Any) -> None:
        self.parts = parts

    def __add__(self, other: Any) -> Any:
        return type(self)(*map(operator.add, self.parts, other.parts))

    def __sub__(self, other: Any) -> Any:
        return self + -other

    def __neg__(self) -> Any:
        return type(self)(*map(operator.neg, self.parts))

    def __truediv__(self, other: Any) -> Any:
        return self * (1 / other)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.parts == getattr(other, "parts", None)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}{self.parts}"


class Mod7(Element):
    """The field of seven elements."""

    def __init__(self, n: Any) -> None:
        assert n == int(n), "a whole number"
        super().__init__(int(n) % 7)

    def __mul__(self, other: "Mod7") -> "Mod7":
        return Mod7(self.parts[0] * other.parts[0])

    def __rtruediv__(self, one: int) -> "Mod7":
        if self == Mod7(0):
            raise ZeroDivisionError("0 in GF(7)")
        return Mod7(self.parts[0] ** 5)


class Quaternion(Element):
    """a + b i + c j + d k over the rationals."""

    def __mul__(self, other: "Quaternion") -> "Quaternion":
        (a, b, c, d), (e, f, g, h) = self.parts, other.parts
        return Quaternion(
            a * e - b * f - c * g - d * h, a * f + b * e + c * h - d * g,
            a * g - b * h + c * e + d * f, a * h + b * g - c * f + d * e,
        )  # fmt: skip

    def __rtruediv__(self, one: int) -> "Quaternion":
        a, b, c, d = self.parts
        norm = Fraction(a * a + b * b + c * c + d * d)
        return Quaternion(a / norm, -b / norm, -c / norm, -d / norm)


class Matrix(Element):
    """A matrix of two rows and columns over GF(7)."""

    def __mul__(self, other: "Matrix") -> "Matrix":
        (a, b, c, d), (e, f, g, h) = self.parts, other.parts
        return Matrix(a * e + b * g, a * f + b * h, c * e + d * g, c * f + d * h)

    def __rtruediv__(self, one: int) -> "Matrix":
        a, b, c, d = self.parts
        k = 1 / (a * d - b * c)
        return Matrix(k * d, k * -b, k * -c, k * a)


class Dual(Element):
    """x + e dx, where e commutes with everything and its square is 0."""

    def __mul__(self, other: "Dual") -> "Dual":
        (x, dx), (y, dy) = self.parts, other.parts
        return Dual(x * y, dx * y + x * dy)

    def __rtruediv__(self, one: int) -> "Dual":
        x, dx = self.parts
        y = 1 / x
        return Dual(y, -(y * dx * y))


class Ring(NamedTuple):
    """A ring: n times its one, a random element, and tr."""

    number: Callable[[Any], Any]
    element: Callable[[random.Random], Any]
    trace: Callable[[Any], Any]


def whole(rng: random.Random) -> int:
    return rng.randrange(-3, 4)


RINGS = {
    "rationals": Ring(Fraction, lambda rng: Fraction(whole(rng), rng.randrange(1, 4)), lambda x: x),
    "GF(7)": Ring(Mod7, lambda rng: Mod7(whole(rng)), lambda x: x),
    "quaternions": Ring(
        lambda n: Quaternion(Fraction(n), *[Fraction(0)] * 3),
        lambda rng: Quaternion(*[Fraction(whole(rng)) for _ in range(4)]),
        lambda x: x.parts[0],
    ),
    "matrices": Ring(
        lambda n: Matrix(Mod7(n), Mod7(0), Mod7(0), Mod7(n)),
        lambda rng: Matrix(*[Mod7(whole(rng)) for _ in range(4)]),
        lambda x: x.parts[0] + x.parts[3],
    ),
}


def evaluated(ring: Ring, program: Program, name: str, *values: Any) -> Any:
    """Results of both zones, and the work."""
    return run(program, name, *values, ask=Ask(values=Exact(ring.number), work=True))


def pairing(ring: Ring, left: Any, right: Any) -> Any:
    """tr of the sum of products, over numbers and pairs."""
    if isinstance(left, tuple):
        parts = zip(left, right, strict=True)
        return reduce(operator.add, [pairing(ring, a, b) for a, b in parts])
    return ring.trace(left * right)


def elements(ring: Ring, rng: random.Random, n: int) -> list[Any]:
    """n numbers, then a pair."""
    draw = ring.element
    return [*[draw(rng) for _ in range(n)], (draw(rng), draw(rng))]
