"""Whether two diagrams are equal, and how that was found out  [Diagrams].

First they are compared as they are, then simplified and in the cartesian form, then in an e-graph
with the algebraic rules, if egglog is there; and what is left undecided is tried on numbers, which
proves a difference and never an equality.

>>> from lineara.diagrams.parse import parse
>>> same(parse("(x: R) => a, b = copy(x) drop(a) -> b"), parse("(x: R) => -> x"))
Verdict(equal=True, how='simplified')
"""

import random
from typing import NamedTuple

from lineara.diagrams import saturate
from lineara.diagrams.admit import agree, oriented, sample, standard
from lineara.diagrams.canonical import isomorphic
from lineara.diagrams.cartesian import cartesian, joint
from lineara.diagrams.evaluate import evaluate
from lineara.diagrams.net import Net
from lineara.diagrams.rewrite import rewritten
from lineara.diagrams.simplify import simplify
from lineara.errors import DiagramError

TRIES = 20


class Verdict(NamedTuple):
    """`equal` is None where nothing was found out; `how` says how much the answer is worth.

    interface, isomorphic, simplified, rules, egglog: proved.  numeric: tried on random numbers
    only, so True means that no difference was found.
    """

    equal: bool | None
    how: str

    def __bool__(self) -> bool:
        return bool(self.equal)


def same(a: Net, b: Net, finite_math: bool = False) -> Verdict:
    """Whether two diagrams are equal; with `finite_math`, where nothing is infinite or NaN.

    >>> from lineara.diagrams.parse import parse
    >>> square = parse("(x: R) => a, b = copy(x) y = multiply(a, b) -> y")
    >>> verdict = same(square, parse("(x: R) => b, a = copy(x) y = multiply(a, b) -> y"))
    >>> verdict.equal, verdict.how
    (True, 'simplified')
    """
    if (a.takes, a.gives) != (b.takes, b.gives):
        return Verdict(False, "interface")
    if isomorphic(a, b):
        return Verdict(True, "isomorphic")
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


def _one(a: Net, b: Net) -> bool:
    _, left, right = joint(a, b)
    return left == right or cartesian(a).digest == cartesian(b).digest


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
