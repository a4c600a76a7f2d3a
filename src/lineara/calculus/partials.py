"""The derivative of a function symbol as a term: its declared partials, read as expressions.

    Jf(x) v  =  let y = f(x) in  p1(y, x) v1 + ... + pn(y, x) vn

The numbers of a first derivative come from the declaration itself; this is for the derivative of
the derivative, and it says nothing that the declaration does not.
"""

import functools

from lineara.calculus import terms as tm
from lineara.calculus.substitution import Fresh
from lineara.calculus.symbols import Foreign, Symbol, declared, standard
from lineara.calculus.types import BOOL, Product, R, Type
from lineara.errors import CalculusError
from lineara.facts.symbol import Sym


def partials(symbol: Symbol, x: tm.Term, v: tm.Term, fresh: Fresh) -> tm.Term:
    """Jf(x) v.

    >>> from lineara.calculus.show import show
    >>> x, v = tm.Var((), "x", R), tm.Var((), "v", R)
    >>> show(partials(standard()["tanh"], x, v, Fresh()))
    'let y%1 = tanh(x) in multiply(subtract(1, multiply(y%1, y%1)), v)'
    """
    if isinstance(symbol, Foreign):
        tangents = enumerate(_components(v, _count(symbol.takes)))
        slopes = [(tm.Fun((x,), symbol.partial(i)), t) for i, t in tangents]
        return tm.total([tm.Fun((tm.Pair(pair),), _times()) for pair in slopes], R)
    primitive = symbol.primitive
    y = tm.Var((), fresh("y"), R)
    args, tangents = _components(x, primitive.arity), _components(v, primitive.arity)
    names = {"y": y, **dict(zip(primitive.ARGS, args, strict=False))}
    terms = []
    for partial, t in zip(primitive.expressions(), tangents, strict=True):
        p = expression(partial, names)
        if tm.is_zero(p):
            continue
        terms.append(t if getattr(p, "held", None) == 1 else tm.Fun((tm.Pair((p, t)),), _times()))
    body = tm.total(terms, R)
    return tm.let(y.name, tm.Fun((x,), symbol), body) if y.name in body.free else body


def _components(x: tm.Term, n: int) -> list[tm.Term]:
    """The numbers of a vector, nested to the right."""
    if n == 1:
        return [x]
    return [tm.Fst((x,)), *_components(tm.Snd((x,)), n - 1)]


def _count(t: Type) -> int:
    return 1 + _count(t.right) if isinstance(t, Product) else 1


def _times() -> Symbol:
    return standard()["multiply"]


def expression(e: Sym, names: dict[str, tm.Term]) -> tm.Term:
    """A symbolic expression of a declaration, as a term."""
    if not isinstance(e, Sym):
        return tm.num(float(e))
    if not e.args:
        return names[e.head]
    args = [expression(a, names) for a in e.args]
    if e.head == "where":
        return tm.If(tuple(args))
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
    return tm.Fun((functools.reduce(lambda rest, a: tm.Pair((a, rest)), reversed(args)),), symbol)
