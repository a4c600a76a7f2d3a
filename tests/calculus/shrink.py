"""A program that fails, made as small as it can be while it fails.

The programs of these tests have seeds, which a report of a long run can carry; hypothesis would
shrink the draws that a generator made, and a smaller draw is another program.  Here the term itself
shrinks: a part becomes a part of itself of the same type, a let is written out, a number becomes 0
or 1, a part nothing.  Each step is well typed, since terms are built with their types, and what is
left is shown in the syntax that the parser reads.
"""

from collections.abc import Callable, Iterator

from lineara.calculus.substitution import subst, subterms
from lineara.calculus.terms import Let, Literal, Pair, Term, Zero, lam, num
from lineara.calculus.types import DISCRETE, Arrow, Product, R, Type


def smallest(term: Term, fails: Callable[[Term], bool]) -> Term:
    """A term that fails, none of whose smaller neighbours does."""
    assert fails(term), "there is nothing to shrink"
    while True:
        found = next((t for t in smaller(term) if fails(t)), None)
        if found is None:
            return term
        term = found


def smaller(t: Term) -> Iterator[Term]:
    """Simpler terms of the same type, the simplest first; the same names are free, or fewer."""
    least = plainest(t.type)
    if weight(least) < weight(t):
        yield least
    for s, bound in within(t):
        if s.type == t.type and s.free.isdisjoint(bound):
            yield s
    if isinstance(t, Let):
        yield subst(t.parts[1], {t.name: t.parts[0]})
    if isinstance(t, Literal) and t.type == R and t.held not in (0.0, 1.0):
        yield num(1)
    for i, p in enumerate(t.parts):
        for q in smaller(p):
            yield t.with_(i, q)


def within(t: Term, bound: frozenset[str] = frozenset()) -> Iterator[tuple[Term, frozenset[str]]]:
    """The proper parts of a term, with the names that are bound between."""
    for i, p in enumerate(t.parts):
        inner = bound.union(t.bound(i))
        yield p, inner
        yield from within(p, inner)


def plainest(t: Type) -> Term:
    """The simplest term of a type."""
    if t == R or t in DISCRETE:
        return Literal((), {"R": 0.0, "Int": 0, "Bool": False}[t.name])
    if isinstance(t, Product):
        return Pair((plainest(t.left), plainest(t.right)))
    return lam(("_", t.source), plainest(t.target)) if isinstance(t, Arrow) else Zero((), t)


def weight(t: Term) -> tuple[int, int]:
    """What gets less: the constructs, and the numbers that are not plain."""
    parts = list(subterms(t))
    return len(parts), sum([isinstance(s, Literal) and s.held not in (0.0, 1.0) for s in parts])
