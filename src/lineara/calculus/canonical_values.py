"""Arithmetic on values: sums, multiples, functionals at vectors, lists.

K_R = covec(r)    K_(s * t) = [K|K]    K_(s -> t) = sums of probes    K_(s^^) = ev(V)
"""

from typing import Any

from lineara.calculus.substitution import Fresh
from lineara.calculus.terms import (
    At,
    Cons,
    Copair,
    Covec,
    Ev,
    Head,
    IsNil,
    List,
    Literal,
    Pair,
    Probe,
    Scale,
    Sum,
    Term,
    Zero,
    app,
    lam,
    num,
    total,
    var,
)
from lineara.calculus.transpose import directional
from lineara.calculus.types import Arrow, Dual, Product, R, is_ground
from lineara.errors import CalculusError


def added(values: Any) -> Term:
    """The sum of values of one type."""
    t = values[0].type
    found = [v for v in values if not isinstance(v, Zero)]
    if len(found) < 2:
        return total(found, t)
    if t == R:
        return num(sum([v.held for v in found]))
    match found[0]:
        case Pair() | Copair():
            return found[0].on(
                tuple([added(ps) for ps in zip(*[v.parts for v in found], strict=True)])
            )
        case Covec():
            return Covec((num(sum([v.parts[0].held for v in found])),))
        case Ev():
            return Ev((Sum(tuple([v.parts[0] for v in found])),))
        case List():
            longest = max([len(v.parts) for v in found])
            columns = [[v.parts[i] for v in found if i < len(v.parts)] for i in range(longest)]
            return found[0].on(tuple([added(c) for c in columns]))
    return total(found, t)


def paired(k: Term, v: Term) -> Term:
    """A canonical functional at a vector."""
    match k:
        case Zero():
            return num(0)
        case Covec((Literal(_, r),)):
            assert isinstance(v, Literal)
            return num(r * v.held)
        case Copair(parts):
            return Sum(tuple([At((p, u)) for p, u in zip(parts, v.parts, strict=True)]))
        case Probe((at, *along, inner)):
            return At((inner, app(directional(v, along), at)))
        case Sum(parts):
            return Sum(tuple([At((p, v)) for p in parts]))
        case Ev((u,)):
            return At((v, u))
        case List(parts):
            pairs = zip(parts, v.parts, strict=False)
            return total([At((p, u)) for p, u in pairs], R)
    raise AssertionError(f"{type(k).__name__} is no functional")


def scaled(r: Term, v: Term, fresh: Fresh) -> Term:
    """A multiple of a value."""
    assert isinstance(r, Literal)
    if isinstance(v, Zero) or r.held == 1:
        return v
    match v:
        case Literal(_, held):
            return num(r.held * held)
        case Pair(parts) | Copair(parts) | List(parts) | Covec(parts) | Ev(parts) | Sum(parts):
            return v.on(tuple([Scale((r, p)) for p in parts]))
        case Probe((*most, k)):
            return Probe((*most, Scale((r, k))))
    assert isinstance(v.type, Arrow)
    x = (fresh("x"), v.type.source)
    return lam(x, Scale((r, app(v, var(x)))))


def of_list(t: Term) -> Term:
    """cons, head, tail and isnil of values."""
    last = t.parts[-1]
    if isinstance(last, Zero):  # a tangent of some length
        return Zero((), t.type)
    assert isinstance(last, List)
    match t:
        case Cons((a, _)):
            return last.on((a, *last.parts))
        case IsNil():
            return Literal((), not last.parts)
    if not last.parts:
        word = "head" if isinstance(t, Head) else "tail"
        raise CalculusError(f"{word} of an empty list; ask isnil before")
    return last.parts[0] if isinstance(t, Head) else last.on(last.parts[1:])


def written(k: Term) -> Term:
    """A functional whose zeros on numbers are written out."""
    if isinstance(k, Zero) and isinstance(k.type, Dual) and is_ground(k.type.of):
        of = k.type.of
        if of == R:
            return Covec((num(0),))
        assert isinstance(of, Product)
        return Copair(tuple([written(Zero((), Dual(p))) for p in (of.left, of.right)]))
    if isinstance(k, Copair):
        return k.on(tuple([written(p) for p in k.parts]))
    return k
