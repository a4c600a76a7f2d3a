"""Whether two diagrams are equal, and how that was found out  [Diagrams].

First they are compared as they are, then by their βη-normal forms, which decide the matter where
there are no primitives; then simplified, rewritten by the oriented rules, and in an e-graph with
all algebraic rules, if egglog is there.  What is left undecided is tried on numbers, which proves
a difference and never an equality.

>>> from lineara.diagrams.parse import parse
>>> same(parse("(x: R) => a, b = copy(x) drop(a) -> b"), parse("(x: R) => -> x"))
Verdict(equal=True, how='proved')
"""

import random
from typing import NamedTuple

from lineara.diagrams import saturate
from lineara.diagrams.admit import agree, oriented, sample, standard
from lineara.diagrams.canonical import isomorphic
from lineara.diagrams.cartesian import joint
from lineara.diagrams.evaluate import evaluate
from lineara.diagrams.net import Net, nodes_in
from lineara.diagrams.normal_form import LARGEST, TooLarge, normal_forms
from lineara.diagrams.refuse import refusing
from lineara.diagrams.rewrite import rewritten
from lineara.diagrams.simplify import simplify
from lineara.diagrams.types import Arrow, Foreign, Stack, Type, array_of
from lineara.diagrams.types import E as Bundle
from lineara.errors import DiagramError

TRIES = 20
STRUCTURAL = ("copy", "drop", "box", "eval")  # what a λ-term without constants is made of


class Verdict(NamedTuple):
    """`equal` is None where nothing was found out; `how` says how much the answer is worth.

    interface: the types at the borders differ.  isomorphic: as they are.  proved: by βη-normal
    forms; of diagrams without primitives, that they differ as well.  simplified, rules, egglog:
    after simplification, the oriented rules, in an e-graph.  numeric: on random numbers only, so
    True means that no difference was found.
    """

    equal: bool | None
    how: str

    def __bool__(self) -> bool:
        return bool(self.equal)


@refusing
def same(a: Net, b: Net, finite_math: bool = False) -> Verdict:
    """Whether two diagrams are equal; with `finite_math`, where nothing is infinite or NaN.

    >>> from lineara.diagrams.parse import parse
    >>> box = "f = box(g) { (g: (R -> R), x: R) => y = eval(g, x) -> y }"
    >>> same(parse(f"(g: (R -> R)) => {box} -> f"), parse("(g: (R -> R)) => -> g"))
    Verdict(equal=True, how='proved')
    """
    if (a.takes, a.gives) != (b.takes, b.gives):
        return Verdict(False, "interface")
    if isomorphic(a, b):
        return Verdict(True, "isomorphic")
    forms, pure = _forms_agree(a, b), _pure(a, b)
    if forms or (forms is False and pure and _infinite_all(a)):
        return Verdict(forms, "proved")
    if forms is None and pure:
        return Verdict(None, f"a normal form takes more than {LARGEST} steps")
    a, b = (simplify(n, finite_math) for n in (a, b))
    if _one(a, b):
        return Verdict(True, "simplified")
    rules = oriented(finite_math)
    c, d = rewritten(a, rules), rewritten(b, rules)
    if _one(c, d):
        return Verdict(True, "rules")
    rules = [r for r in standard() if finite_math or not r.finite_math]
    if saturate.available() and saturate.saturated(c, d, rules):
        return Verdict(True, "egglog")
    return _tried(a, b)


def _forms_agree(a: Net, b: Net) -> bool | None:
    """Whether the normal forms are one; None where they are too large to know."""
    try:
        _, left, right = normal_forms(a, b, LARGEST)
    except TooLarge:
        return None
    return left == right


def _one(a: Net, b: Net) -> bool:
    agree = _forms_agree(a, b)
    if agree is None:
        _, left, right = joint(a, b)
        return left == right
    return agree


def _pure(*nets: Net) -> bool:
    """Whether there are no primitives."""
    return all([node.kind in STRUCTURAL for n in nets for node in nodes_in(n)])


def _infinite_all(net: Net) -> bool:
    """Whether different normal forms of pure diagrams are different functions on these types.

    Functions on infinite sets tell any two forms apart  [Friedman 1975].  On a finite one, such as
    that of truth values, they do not: there f(f(f(x))) is f(x).
    """
    return all([_infinite(t) for t in (*net.takes, *net.gives)])


def _infinite(t: Type) -> bool:
    """Whether all base types in a type have infinitely many values; numbers count as reals."""
    match t:
        case Arrow(source, target):
            return all([_infinite(s) for s in (*source, *target)])
        case Stack(n, item):
            return n > 0 and _infinite(item)
        case Foreign():
            return True  # it may stand for any set
    return t == Bundle or (array_of(t).dtype.kind != "b" and 0 not in array_of(t).shape)


def _tried(a: Net, b: Net) -> Verdict:
    rng = random.Random(0)
    for _ in range(TRIES):
        try:
            args = [sample(t, rng, False, "same") for t in a.takes]
        except DiagramError:
            return Verdict(None, "there are no random values of these types")
        results = zip(evaluate(a, *args), evaluate(b, *args), a.gives, strict=True)
        if not all([agree(x, y, t, rng) for x, y, t in results]):
            return Verdict(False, "numeric")
    return Verdict(True, "numeric")
