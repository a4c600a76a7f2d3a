"""The types of the calculus, and matching a type against the pattern that a construct states.

    t ::= R | t * t | t -> t | t^ | Int | Bool | List t

t^ holds the linear functionals on t.  Every t is a vector space; nothing moves in Int and Bool,
whose only tangent is zero  [Pullback].

>>> show(Arrow(Product(R, R), Dual(Arrow(R, R))))
'R * R -> (R -> R)^'
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lineara.errors import CalculusError


@dataclass(frozen=True, slots=True)
class Base:
    """R, Int or Bool."""

    name: str


@dataclass(frozen=True, slots=True)
class Product:
    """Pairs."""

    left: "Type"
    right: "Type"


@dataclass(frozen=True, slots=True)
class Arrow:
    """Functions."""

    source: "Type"
    target: "Type"


@dataclass(frozen=True, slots=True)
class Dual:
    """Linear functionals."""

    of: "Type"


@dataclass(frozen=True, slots=True)
class ListOf:
    """Lists; a tangent of a list is a list as long."""

    item: "Type"


@dataclass(frozen=True, slots=True)
class Row:
    """Several at once, {t1, ..., tk}: the cotangents of an environment while a term is reduced."""

    items: tuple["Type", ...]


@dataclass(frozen=True, slots=True)
class Hole:
    """A type that is not known: of a pattern, or yet to be inferred."""

    name: str | int


Type = Base | Product | Arrow | Dual | ListOf | Row | Hole
R, INT, BOOL = Base("R"), Base("Int"), Base("Bool")
DISCRETE = (INT, BOOL)
# Terms are walked without Python's stack, types are not.
TOO_DEEP = (
    "a function type here nests too deep; give the function a tuple of its arguments, and not one "
    "after the other"
)


def power(n: int) -> Type:
    """R^n, nested to the right: `R * (R * R)`.

    >>> show(power(3))
    'R * R * R'
    """
    return R if n == 1 else Product(R, power(n - 1))


def parts(t: Type) -> tuple[Type, ...]:
    """The types that a type is made of."""
    match t:
        case Product(a, b) | Arrow(a, b):
            return a, b
        case Dual(a) | ListOf(a):
            return (a,)
        case Row(items):
            return items
    return ()


def made_of(t: Type, parts: tuple[Type, ...]) -> Type:
    """The type of the same kind made of others."""
    if isinstance(t, Row):
        return Row(parts)
    kind: Any = type(t)
    return kind(*parts) if parts else t


def is_ground(t: Type) -> bool:
    """Whether a type is R or a product of ground types."""
    return t == R or (isinstance(t, Product) and is_ground(t.left) and is_ground(t.right))


def match(pattern: Type, t: Type, fillings: dict[str | int, Type]) -> bool:
    """Whether `t` matches the pattern; the types of its holes are put into `found`."""
    if isinstance(pattern, Hole):
        return fillings.setdefault(pattern.name, t) == t
    if type(pattern) is not type(t) or isinstance(pattern, Base):
        return pattern == t
    pairs = zip(parts(pattern), parts(t), strict=True)
    return all([match(p, s, fillings) for p, s in pairs])


def fill(pattern: Type, fillings: Mapping[str | int, Type]) -> Type:
    """The pattern with its holes filled."""
    if isinstance(pattern, Hole):
        return fillings.get(pattern.name, pattern)
    return made_of(pattern, tuple([fill(p, fillings) for p in parts(pattern)]))


def holes(t: Type) -> Iterator[Hole]:
    """The holes of a type, in order."""
    if isinstance(t, Hole):
        yield t
    for p in parts(t):
        yield from holes(p)


def show(t: Type, level: int = 0) -> str:
    """The text of a type; `level` 1 is left of an arrow, 2 left of a star, 3 under a dual.

    Raises CalculusError for what is no type.
    """
    match t:
        case Base(name):
            return name
        case Hole(name):
            return f"?{name}"
        case Dual(of):
            return f"{show(of, 3)}^"
        case Row(items):
            return f"{{{', '.join(map(show, items))}}}"
        case Arrow(a, b):
            text, own = f"{show(a, 1)} -> {show(b)}", 0
        case Product(a, b):
            text, own = f"{show(a, 2)} * {show(b, 1)}", 1
        case ListOf(a):
            text, own = f"List {show(a, 3)}", 2
        case _:
            raise CalculusError(
                f"calculus.types.show: {t!r} is no type of the calculus; a type is R, INT, BOOL, "
                "or a Product, Arrow, Dual, ListOf, Row or Hole"
            )
    return f"({text})" if level > own else text
