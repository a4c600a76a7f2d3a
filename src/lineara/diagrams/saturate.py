"""Equality by saturation: both diagrams in one e-graph, and the rules as equations (egglog).

Values of the normal forms are terms; what has no rule, boxes and bundles too, is a symbol on its
arguments, so equations are found within boxes as well.  Rules equate numbers and no functions, so a
form stays a normal form while it is rewritten: functions stay boxes, and η needs no rule here.
"""

import functools
import importlib
from collections.abc import Sequence
from typing import Any

from lineara.diagrams.cartesian import Cartesian, cartesian, shown
from lineara.diagrams.net import Net
from lineara.diagrams.normal_form import TooLarge, normal_forms
from lineara.diagrams.rewrite import Rule
from lineara.diagrams.types import show

ROUNDS = 6
LARGEST = 120  # values; associativity multiplies them


def available() -> bool:
    """Whether egglog is installed: `pip install lineara[egglog]`."""
    try:
        importlib.import_module("egglog")
    except ImportError:
        return False
    return True


def saturated(a: Net, b: Net, rules: Sequence[Rule]) -> bool:
    """Whether the rules make two diagrams equal, as far as a few rounds show."""
    from egglog import EGraph, eq, rewrite, ruleset  # pyright: ignore[reportMissingImports]  # an extra

    language = _language()
    try:
        c, left, right = normal_forms(a, b, LARGEST * LARGEST)
    except TooLarge:
        return False
    if len(c.needed((*left, *right))) > LARGEST:
        return False
    terms = _terms(language, c, {})
    graph = EGraph()
    pairs = [(terms(x), terms(y)) for x, y in zip(left, right, strict=True) if x != y]
    for x, y in pairs:
        graph.register(x, y)
    rules_of_language = []
    for rule in rules:
        for source, target in ((rule.left, rule.right), (rule.right, rule.left))[: 1 + rule.both]:
            if len(target.inputs) == len(source.inputs) == len(_used(source)):
                rules_of_language.append(
                    rewrite(*_sides(language, source)).to(*_sides(language, target))
                )
    equations = ruleset(*rules_of_language, name="equations")
    for _ in range(ROUNDS):
        if all([graph.check_bool(eq(x).to(y)) for x, y in pairs]):
            return True
        graph.run(equations)
    return all([graph.check_bool(eq(x).to(y)) for x, y in pairs])


def _used(net: Net) -> set[int]:
    c = cartesian(net)
    return {i for i in c.needed(c.outputs) if c.entries[i].kind == "input"}


def _sides(language: Any, net: Net) -> list[Any]:
    """The one output of a side of a rule, its inputs variables."""
    from egglog import var  # pyright: ignore[reportMissingImports]  # an extra

    c = cartesian(net)
    names = {i: var(f"x{e.data}", language) for i, e in enumerate(c.entries) if e.kind == "input"}
    terms = _terms(language, c, names)
    return [terms(i) for i in c.outputs]


def _terms(language: Any, c: Cartesian, known: dict[int, Any]) -> Any:
    def term(i: int) -> Any:
        for j in c.needed((i,)):
            if j not in known:
                e = c.entries[j]
                key = repr((e.kind, e.name, shown(e.kind, e.data), show(e.type), e.port))
                expression = language(key)
                for a in e.args:
                    expression = expression.on(known[a])
                known[j] = expression
        return known[i]

    return term


@functools.cache
def _language() -> Any:
    """The one sort of terms: symbols, and terms on others."""
    from egglog import Expr, StringLike  # pyright: ignore[reportMissingImports]  # an extra

    class Term(Expr):
        def __init__(self, symbol: StringLike) -> None: ...

        def on(self, argument: "Term") -> "Term": ...

    return Term
