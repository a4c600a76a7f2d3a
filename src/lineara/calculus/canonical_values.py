"""Arithmetic on values: sums, multiples, functionals at vectors, lists.

K_R = covec(r)    K_(s * t) = [K|K]    K_(s -> t) = sums of probes    K_(s^^) = ev(V)
"""

from typing import Any

from lineara.calculus import terms as tm
from lineara.calculus.substitution import Fresh
from lineara.calculus.transpose import directional
from lineara.calculus.types import Arrow, Dual, Product, R, is_ground
from lineara.errors import CalculusError


def added(values: Any) -> tm.Term:
    """The sum of values of one type."""
    t = values[0].type
    nonzero = [v for v in values if not isinstance(v, tm.Zero)]
    if len(nonzero) < 2:
        return tm.total(nonzero, t)
    if t == R:
        return tm.num(sum([v.held for v in nonzero]))
    match nonzero[0]:
        case tm.Pair() | tm.Copair():
            return nonzero[0].on(
                tuple([added(ps) for ps in zip(*[v.parts for v in nonzero], strict=True)])
            )
        case tm.Covec():
            return tm.Covec((tm.num(sum([v.parts[0].held for v in nonzero])),))
        case tm.Ev():
            return tm.Ev((tm.Sum(tuple([v.parts[0] for v in nonzero])),))
        case tm.List():
            longest = max([len(v.parts) for v in nonzero])
            columns = [[v.parts[i] for v in nonzero if i < len(v.parts)] for i in range(longest)]
            return nonzero[0].on(tuple([added(c) for c in columns]))
    return tm.total(nonzero, t)


def paired(k: tm.Term, v: tm.Term) -> tm.Term:
    """A canonical functional at a vector."""
    match k:
        case tm.Zero():
            return tm.num(0)
        case tm.Covec((tm.Literal(_, r),)):
            assert isinstance(v, tm.Literal)
            return tm.num(r * v.held)
        case tm.Copair(parts):
            return tm.Sum(tuple([tm.At((p, u)) for p, u in zip(parts, v.parts, strict=True)]))
        case tm.Probe((at, *along, inner)):
            return tm.At((inner, tm.app(directional(v, along), at)))
        case tm.Sum(parts):
            return tm.Sum(tuple([tm.At((p, v)) for p in parts]))
        case tm.Ev((u,)):
            return tm.At((v, u))
        case tm.List(parts):
            pairs = zip(parts, v.parts, strict=False)
            return tm.total([tm.At((p, u)) for p, u in pairs], R)
    raise AssertionError(f"{type(k).__name__} is no functional")


def scaled(r: tm.Term, v: tm.Term, fresh: Fresh) -> tm.Term:
    """A multiple of a value."""
    assert isinstance(r, tm.Literal)
    if isinstance(v, tm.Zero) or r.held == 1:
        return v
    match v:
        case tm.Literal(_, held):
            return tm.num(r.held * held)
        case (
            tm.Pair(parts)
            | tm.Copair(parts)
            | tm.List(parts)
            | tm.Covec(parts)
            | tm.Ev(parts)
            | tm.Sum(parts)
        ):
            return v.on(tuple([tm.Scale((r, p)) for p in parts]))
        case tm.Probe((*most, k)):
            return tm.Probe((*most, tm.Scale((r, k))))
    assert isinstance(v.type, Arrow)
    x = (fresh("x"), v.type.source)
    return tm.lam(x, tm.Scale((r, tm.app(v, tm.var(x)))))


def of_list(t: tm.Term) -> tm.Term:
    """cons, head, tail and isnil of values."""
    last = t.parts[-1]
    if isinstance(last, tm.Zero):  # a tangent of some length
        return tm.Zero((), t.type)
    assert isinstance(last, tm.List)
    match t:
        case tm.Cons((a, _)):
            return last.on((a, *last.parts))
        case tm.IsNil():
            return tm.Literal((), not last.parts)
    if not last.parts:
        word = "head" if isinstance(t, tm.Head) else "tail"
        raise CalculusError(f"{word} of an empty list; ask isnil before")
    return last.parts[0] if isinstance(t, tm.Head) else last.on(last.parts[1:])


def written(k: tm.Term) -> tm.Term:
    """A functional whose zeros on numbers are written out."""
    if isinstance(k, tm.Zero) and isinstance(k.type, Dual) and is_ground(k.type.of):
        of = k.type.of
        if of == R:
            return tm.Covec((tm.num(0),))
        assert isinstance(of, Product)
        return tm.Copair(tuple([written(tm.Zero((), Dual(p))) for p in (of.left, of.right)]))
    if isinstance(k, tm.Copair):
        return k.on(tuple([written(p) for p in k.parts]))
    return k
