r"""The term of a syntax whose types are known.

    Γ ⊢ s : t     becomes     a term of type t, its binders annotated, a symbol's name never bound

In `dual(\x. S; K)` x must be in linear positions, and the error shows the one that is not.
"""

from collections.abc import Callable
from typing import Any

from lineara.calculus import terms as tm
from lineara.calculus.infer import PLAIN, Inference
from lineara.calculus.linear_positions import offender
from lineara.calculus.show import show as show_term
from lineara.calculus.substitution import Fresh
from lineara.calculus.symbols import INFIX, INTEGER, standard
from lineara.calculus.syntax import Syntax
from lineara.calculus.types import DISCRETE, INT, Arrow, Type, show
from lineara.trampoline import Deep, run


def build(inference: Inference, s: Syntax, instance: Callable[..., Any]) -> tm.Term:
    """The term of a construct that has been inferred; `instance` names a definition's."""
    return run(_Builder(inference, instance).build(s))


class _Builder:
    """Terms from syntax with types."""

    def __init__(self, inference: Inference, instance: Callable[..., Any]) -> None:
        self.inference = inference
        self.names: dict[str, list[tuple[str, Type]]] = {}
        self.fresh = Fresh()
        self.instance = instance

    def build(self, s: Syntax) -> Deep:
        term = yield self._made(s)
        self.inference.places.setdefault(term, s.place)
        return term

    def _under(self, names: list[tuple[str, str, Type]], s: Syntax) -> Deep:
        for source, name, t in names:
            self.names.setdefault(source, []).append((name, t))
        term = yield self.build(s)
        for source, _, _ in names:
            self.names[source].pop()
        return term

    def named(self, name: str) -> str:
        """The name of a binder; that of a function symbol would be read as one."""
        return self.fresh(name) if name in self.inference.symbols else name

    def _made(self, s: Syntax) -> Deep:
        inference, kind = self.inference, s.kind
        if kind == "var":
            if s in inference.noted:
                definition, t = inference.noted[s]
                t = inference.concrete(t)
                return tm.Var((), self.instance(definition, t), t)
            if not self.names.get(s.data):
                symbol, x = inference.symbols[s.data], self.fresh("x")
                return tm.Lam((tm.Fun((tm.Var((), x, symbol.takes),), symbol),), x, symbol.takes)
            return tm.Var((), *self.names[s.data][-1])
        if kind == "literal":
            return tm.Literal((), s.data)
        if kind == "zero":
            return tm.Zero((), s.data)
        if kind in ("within", "ann"):
            return (yield self.build(s.parts[0]))
        if kind == "call" and s in inference.noted:
            return (yield self.build(inference.noted[s]))
        if kind == "lam":
            t, name = inference.concrete(inference.noted[s]), self.named(s.data.name)
            return tm.Lam(((yield self._under([(s.data.name, name, t)], s.parts[0])),), name, t)
        if kind == "rec":
            t = inference.concrete(inference.noted[s])
            assert isinstance(t, Arrow)
            own, name = self.named(s.data[0]), self.named(s.data[1])
            inner = [(s.data[0], own, t), (s.data[1], name, t.source)]
            return tm.Fix(((yield self._under(inner, s.parts[0])),), own, name, t)
        if kind == "let":
            bound, name = (yield self.build(s.parts[0])), self.named(s.data)
            body = yield self._under([(s.data, name, bound.type)], s.parts[1])
            return tm.Let((bound, body), name)
        if kind == "dual":
            return (yield self._dual(s))
        operand_terms = []
        for p in s.parts:
            operand_terms.append((yield self.build(p)))
        operands = tuple(operand_terms)
        if kind in PLAIN:
            return PLAIN[kind](operands)
        if kind == "covec":
            return tm.Covec(operands)
        if kind == "probe":
            return tm.Probe(operands)
        if kind == "call":
            return tm.Fun(operands, inference.symbols[s.data])
        if kind == "jfun":
            return tm.JFun(operands, inference.symbols[s.data])
        if kind == "list":
            return tm.List(operands, inference.concrete(inference.noted[s]), s.data)
        return self._arithmetic(s, operands)

    def _arithmetic(self, s: Syntax, operands: tuple[tm.Term, ...]) -> tm.Term:
        t = self.inference.concrete(self.inference.noted[s])
        sign = "+" if s.kind == "sum" else s.data
        if t == INT:
            symbol, term = standard()[INTEGER[sign]], operands[0]
            for p in operands[1:]:
                term = tm.Fun((tm.Pair((term, p)),), symbol)
            return term
        if s.kind == "sum":
            if t in DISCRETE:
                self.inference.refuse(
                    s.place, f"{show(t)} is not added; there are and(…), or(…), not(…)"
                )
            return tm.Sum(operands)
        return tm.Fun((tm.Pair(operands),), standard()[INFIX[sign]])

    def _dual(self, s: Syntax) -> Deep:
        t, name = self.inference.concrete(self.inference.noted[s]), self.named(s.data.name)
        body = yield self._under([(s.data.name, name, t)], s.parts[0])
        wrong = offender(body, frozenset((name,)))
        if wrong is not None:
            place = self.inference.places.get(wrong, s.place)
            raise self.inference.wrong(
                place,
                f"dual needs a map that is linear in {s.data}, and {show_term(wrong)} is not "
                "linear in it; linear are sums, pairs, fst, snd, a product with what does not "
                "contain it, and it as the function that is applied",
            )
        return tm.DualMap((body, (yield self.build(s.parts[1]))), name, t)
