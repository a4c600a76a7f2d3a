"""The derivative of a function symbol as a term: its declared partials, read as expressions.

    Jf(x) v  =  let y = f(x) in  p1(y, x) v1 + ... + pn(y, x) vn

The numbers of a first derivative come from the declaration itself; this is for the derivative of
the derivative, and it says nothing that the declaration does not.
"""

import functools
from typing import Any

from lineara.calculus.substitution import Fresh
from lineara.calculus.symbols import Foreign, Symbol, declared, standard
from lineara.calculus.terms import Fst, Fun, If, Pair, Snd, Term, Var, is_zero, let, num, total
from lineara.calculus.types import BOOL, Product, R, Type
from lineara.errors import CalculusError
from lineara.facts.symbol import Sym


def partials(symbol: Symbol, x: Term, v: Term, fresh: Fresh) -> Term:
    """Jf(x) v.

    >>> from lineara.calculus.show import show
    >>> x, v = Var((), "x", R), Var((), "v", R)
    >>> show(partials(standard()["tanh"], x, v, Fresh()))
    'let y%1 = tanh(x) in multiply(subtract(1, multiply(y%1, y%1)), v)'
    """
    if isinstance(symbol, Foreign):
        tangents = enumerate(_components(v, _count(symbol.takes)))
        slopes = [(Fun((x,), symbol.partial(i)), t) for i, t in tangents]
        return total([Fun((Pair(pair),), _times()) for pair in slopes], R)
    primitive = symbol.primitive
    y = Var((), fresh("y"), R)
    args, tangents = _components(x, primitive.arity), _components(v, primitive.arity)
    names = {"y": y, **dict(zip(primitive.ARGS, args, strict=False))}
    terms = []
    for partial, t in zip(primitive.expressions(), tangents, strict=True):
        p = expression(partial, names)
        if is_zero(p):
            continue
        terms.append(t if getattr(p, "held", None) == 1 else Fun((Pair((p, t)),), _times()))
    body = total(terms, R)
    return let(y.name, Fun((x,), symbol), body) if y.name in body.free else body


def _components(x: Term, n: int) -> list[Term]:
    """The numbers of a vector, nested to the right."""
    if n == 1:
        return [x]
    return [Fst((x,)), *_components(Snd((x,)), n - 1)]


def _count(t: Type) -> int:
    return 1 + _count(t.right) if isinstance(t, Product) else 1


def _times() -> Symbol:
    return standard()["multiply"]


def expression(e: Any, names: dict[str, Term]) -> Term:
    """A symbolic expression of a declaration, as a term."""
    if not isinstance(e, Sym):
        return num(float(e))
    if not e.args:
        return names[e.head]
    args = [expression(a, names) for a in e.args]
    if e.head == "where":
        return If(tuple(args))
    if e.head == "real":  # numbers are real here
        return args[0]
    head = e.head
    if all([a.type == BOOL for a in args]):  # a condition that is written as a sum or a product
        head = {"multiply": "and", "add": "or"}.get(head, head)
    symbol = declared().get(head) or standard().get(head)
    if symbol is None:
        raise CalculusError(
            f"the derivative of a derivative needs {e.head}, which is no function symbol here"
        )
    return Fun((functools.reduce(lambda rest, a: Pair((a, rest)), reversed(args)),), symbol)
