"""The small language in which random programs are made; each engine gets them in its own notation.

    t ::= R | V(n) | t * t | t -> t
    e ::= x | 0.5 | op(e, ..) | let x = e in e | x -> e | e e | <e, e> | first e | second e
        | if e < e then e else e | e applied n times to e | sum e | e[i] | stack(e, ..) | e @ e

V(n) is an array of n numbers.  Every name is bound once in a program.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class Real:
    """A number."""


@dataclass(frozen=True, slots=True)
class Array:
    """n numbers."""

    n: int


@dataclass(frozen=True, slots=True)
class Two:
    """A pair."""

    left: "Type"
    right: "Type"


@dataclass(frozen=True, slots=True)
class Arrow:
    """Functions of one argument."""

    source: "Type"
    target: "Type"


Type = Real | Array | Two | Arrow
R = Real()


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """A construct, its type, its parts, and what it holds: a name, a number, an operation."""

    head: str
    type: Type
    parts: tuple["Term", ...] = ()
    held: Any = None

    @property
    def size(self) -> int:
        """How many constructs there are."""
        return 1 + sum([p.size for p in self.parts])


def var(name: str, t: Type) -> Term:
    """A variable."""
    return Term("var", t, (), name)


def num(x: float) -> Term:
    """A number."""
    return Term("num", R, (), float(x))


def op(name: str, *args: Term) -> Term:
    """An elementwise operation; a number among arrays counts as one of equal numbers.

    >>> op("multiply", num(2.0), var("v", Array(3))).type
    Array(n=3)
    """
    arrays = [a.type for a in args if isinstance(a.type, Array)]
    return Term("op", arrays[0] if arrays else R, args, name)


def let(name: str, bound: Term, body: Term) -> Term:
    """Let name = bound in body."""
    return Term("let", body.type, (bound, body), name)


def lam(name: str, source: Type, body: Term) -> Term:
    """The function name -> body."""
    return Term("lam", Arrow(source, body.type), (body,), name)


def app(f: Term, a: Term) -> Term:
    """A function applied."""
    assert isinstance(f.type, Arrow)
    return Term("app", f.type.target, (f, a))


def pair(a: Term, b: Term) -> Term:
    """<a, b>."""
    return Term("pair", Two(a.type, b.type), (a, b))


def part(side: str, e: Term) -> Term:
    """The `first` or the `second` of a pair."""
    assert isinstance(e.type, Two)
    return Term(side, e.type.left if side == "first" else e.type.right, (e,))


def choice(a: Term, b: Term, yes: Term, no: Term) -> Term:
    """If a < b then yes else no."""
    return Term("if", yes.type, (a, b, yes, no))


def loop(n: int, f: Term, start: Term) -> Term:
    """F applied n times."""
    return Term("loop", start.type, (f, start), n)


def total(v: Term) -> Term:
    """The sum of an array."""
    return Term("sum", R, (v,))


def index(v: Term, i: int) -> Term:
    """V[i]."""
    return Term("index", R, (v,), i)


def stack(*xs: Term) -> Term:
    """The array of some numbers."""
    return Term("stack", Array(len(xs)), xs)


def dot(u: Term, v: Term) -> Term:
    """The product u @ v of two arrays."""
    return Term("dot", R, (u, v))


def with_parts(e: Term, parts: tuple[Term, ...]) -> Term:
    """The same construct on other parts of the same types."""
    return replace(e, parts=parts)


def free(e: Term) -> dict[str, Type]:
    """The free variables and their types, in the order in which they occur.

    >>> list(free(lam("x", R, op("add", var("y", R), var("x", R)))))
    ['y']
    """
    if e.head == "var":
        return {e.held: e.type}
    types: dict[str, Type] = {}
    for p in e.parts:
        types |= {x: t for x, t in free(p).items() if x not in types}
    if e.head in ("lam", "let"):
        types.pop(e.held, None)
    return types


def subterms(e: Term) -> Iterator[Term]:
    """The term and all within it, from the outside."""
    yield e
    for p in e.parts:
        yield from subterms(p)


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """A number as a function of numbers and arrays, and where its gradient is asked for."""

    inputs: tuple[tuple[str, Type], ...]
    body: Term
    at: tuple[Any, ...]  # a float, or a tuple of them, for each input

    @property
    def numbers(self) -> list[float]:
        """All the numbers of the point, in order."""
        return [x for a in self.at for x in (a if isinstance(a, tuple) else (a,))]

    def at_numbers(self, numbers: list[Any]) -> list[Any]:
        """Other numbers in the places of those of the point."""
        rest = iter(numbers)
        return [
            tuple([next(rest) for _ in a]) if isinstance(a, tuple) else next(rest) for a in self.at
        ]
