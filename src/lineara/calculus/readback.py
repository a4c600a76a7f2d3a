"""From the machine's values to terms: a closure is its term with its environment filled in.

>>> from lineara.calculus.machine import Machine
>>> from lineara.calculus.program import term
>>> from lineara.calculus.show import show
>>> show(read_back(Machine().value(term("let a = 2 in \\\\x. a * x"))))
'\\\\x:R. multiply(2, x)'
"""

from typing import Any

from lineara.calculus import terms as tm
from lineara.calculus.machine import Machine
from lineara.calculus.scalars import Forward
from lineara.calculus.substitution import Fresh, subst
from lineara.calculus.symbols import Symbol
from lineara.calculus.types import Arrow, Dual, ListOf, Product, Type
from lineara.calculus.values import (
    Along,
    Bag,
    Both,
    Cell,
    Closure,
    Evaluation,
    Items,
    Multiple,
    Nil,
    Nothing,
    Number,
    Pulled,
    Slope,
    Tangent,
    Total,
    is_number,
    items,
    primal,
    scale,
    tangent,
)
from lineara.errors import CalculusError
from lineara.facts.hints import Leaf
from lineara.trampoline import Deep, run


def read_back(value: Leaf, stated: Type | None = None) -> tm.Term:
    """The term of a value; `stated`, its type, tells what an empty list is of."""
    return run(_term(value, stated))


def _term(v: Any, t: Type | None) -> Deep:
    """The term of a value of the type; what is nothing is zero of it."""
    if isinstance(v, bool | int):
        return tm.Literal((), v)
    if is_number(v):
        return tm.num(v)
    match v:
        case Nothing(own):
            return tm.Zero((), own if t is None else t)
        case Nil():
            assert isinstance(t, ListOf), "the type of an empty list must be known"
            return tm.List((), t.item)
        case Cell():
            item = t.item if isinstance(t, ListOf) else None
            terms = []
            for u in items(v):
                terms.append((yield _term(u, item)))
            return tm.List(tuple(terms), terms[0].type)
        case Closure(term, env):
            table = {}
            for x, u in env.items():
                stated = type_in(term, x)
                table[x] = yield _term(u, stated)
            return subst(term, table)
        case Number(r):
            return tm.Covec((tm.num(r),))
        case Both(p, q):
            left, right = _parts_of(t)
            return tm.Copair(((yield _term(p, left)), (yield _term(q, right))))
        case Bag(probes):
            terms = []
            for at, along, k in probes:
                source, target = _arrow_of(t)
                where, directions = (yield _term(at, source)), []
                for d in along:
                    directions.append((yield _term(d, source)))
                inner = yield _term(k, None if target is None else Dual(target))
                terms.append(tm.Probe((where, *directions, inner)))
            return tm.total(terms, terms[0].type)
        case Evaluation(u):
            return tm.Ev(((yield _term(u, None)),))
        case Items(parts):
            item = t.of.item if isinstance(t, Dual) and isinstance(t.of, ListOf) else None
            terms = []
            for p in parts:
                terms.append((yield _term(p, None if item is None else Dual(item))))
            return tm.List(tuple(terms), item or terms[0].type.of, dual=True)
        case Along(Symbol() as symbol, s):
            return tm.JFun(((yield _term(s, symbol.takes)),), symbol)
        case Along(f, d):
            g = yield _term(f, t)
            return tm.J((g, (yield _term(d, g.type.source))))
        case Pulled(f, w, _):
            g = yield _term(f, None)
            return tm.Pull((g, (yield _term(w, None))))
        case Slope():
            return (yield _term(Machine().bag_of(v), t))
        case Multiple(r, Slope() as k):
            return (yield _term(scale(r, Machine().bag_of(k)), t))
        case Total(parts):
            terms = []
            for p in parts:
                terms.append((yield _term(p, t)))
            return tm.total(terms, terms[0].type)
        case Multiple(r, f):
            g = yield _term(f, t)
            x = (Fresh(g)("x"), g.type.source)
            return tm.lam(x, tm.Scale((tm.num(r), tm.app(g, tm.var(x)))))
        case Tangent(Closure() as f, level):
            return (yield _of_tangent(f, level))
    if type(v) is tuple:
        left, right = (t.left, t.right) if isinstance(t, Product) else (None, None)
        return tm.Pair(((yield _term(v[0], left)), (yield _term(v[1], right))))
    raise CalculusError(
        f"the value is a {type(v).__name__.lower()} function of the machine, for which there is "
        "no term; reduce the term instead, or apply the function"
    )


def _arrow_of(t: Type | None) -> tuple[Type | None, Type | None]:
    if isinstance(t, Dual) and isinstance(t.of, Arrow):
        return t.of.source, t.of.target
    return None, None


def _parts_of(t: Type | None) -> tuple[Type | None, Type | None]:
    if isinstance(t, Dual) and isinstance(t.of, Product):
        return Dual(t.of.left), Dual(t.of.right)
    return None, None


def type_in(term: tm.Term, x: str) -> Type:
    """The type of a name that is free in a term."""
    open_ = [term]
    while open_:
        s = open_.pop()
        if isinstance(s, tm.Var):
            return s.type
        open_ += [p for i, p in enumerate(s.parts) if x in p.free and x not in s.bound(i)]
    raise AssertionError(f"{x} is not free here")


def _of_tangent(f: Closure, level: int) -> Deep:
    r"""The tangent of a closure: \z. J(\<X>. f z; <d>)<v> for the X that have one."""
    names, along, at, fixed = [], [], [], {}
    for x, u in f.env.items():
        stated = type_in(f.term, x)
        base = yield _term((yield primal(u, level)), stated)
        moved = yield _term(tangent(u, level), stated)
        if isinstance(u, Forward) or not isinstance(moved, tm.Zero):
            names.append((x, stated))
            along.append(moved)
            at.append(base)
        else:
            fixed[x] = base
    function = subst(f.term, fixed)
    z = (Fresh(function)("z"), f.term.type.source)
    return tm.lam(z, tm.JAt((tm.app(function, tm.var(z)), *along, *at), tuple(names)))
