"""Linear positions: in which names a term is linear, by its form  [Pullback].

    lin(S) ∋ x      S is a linear function of x, whatever the other names are

Here for several names at once: linear in <x1, ..., xk> together.  A let hands linearity on: in
`let w = P in S` with P linear in the names, S may be linear in them and w.
"""

from lineara.calculus import terms as tm
from lineara.trampoline import Deep, run

Names = frozenset[str]


def offender(term: tm.Term, names: Names) -> tm.Term | None:
    """A subterm that keeps the term from being linear in the names, or None: it is linear.

    >>> from lineara.calculus.terms import (num, total)
    >>> from lineara.calculus.types import R
    >>> x = tm.Var((), "x", R)
    >>> offender(total([x, x], R), frozenset("x")) is None
    True
    >>> offender(total([x, num(1)], R), frozenset("x")).held
    1.0
    """
    return run(_offender(term, names))


def _first(*calls: Deep) -> Deep:
    for call in calls:
        position = yield call
        if position is not None:
            return position
    return None


def _one_of(t: tm.Term, a: tm.Term, b: tm.Term, names: Names, bound: Names = frozenset()) -> Deep:
    """Bilinear in (a, b): linear in one of them, and the other without the names."""
    in_a = not names.isdisjoint(a.free - bound)
    if in_a and not names.isdisjoint(b.free):
        return t
    return (yield _offender(a, names - bound) if in_a else _offender(b, names))


def _offender(t: tm.Term, names: Names) -> Deep:
    if names.isdisjoint(t.free):
        return None if tm.is_zero(t) else t
    match t:
        case tm.Var():
            return None
        case tm.Lam((body,), x):
            return (yield _offender(body, names - {x}))
        case tm.App((s, p)):
            return p if not names.isdisjoint(p.free) else (yield _offender(s, names))
        case tm.J((f, s)) | tm.At((f, s)) | tm.Scale((f, s)):
            return (yield _one_of(t, f, s, names))
        case tm.DualMap((s, k), x):
            return (yield _one_of(t, s, k, names, frozenset((x,))))
        case tm.Pull((p, w)):
            return p if not names.isdisjoint(p.free) else (yield _offender(w, names))
        case tm.Probe((_, *_, _) as parts):
            having = [i for i, p in enumerate(parts) if not names.isdisjoint(p.free)]
            if len(having) > 1 or having == [0]:
                return parts[having[0]]
            return (yield _offender(parts[having[0]], names))
        case tm.Let((p, s), w):
            if names.isdisjoint(p.free):
                return (yield _offender(s, names - {w}))
            return (yield _first(_offender(p, names), _offender(s, names | {w})))
        case tm.If((c, a, b)):
            if not names.isdisjoint(c.free):
                return c
            return (yield _first(_offender(a, names), _offender(b, names)))
        case tm.Fun((p,), symbol):
            if symbol.joint:
                return (yield _offender(p, names))
            if symbol.each and isinstance(p, tm.Pair):
                having = [i for i in (0, 1) if not names.isdisjoint(p.parts[i].free)]
                if len(having) == 1 and having[0] in symbol.each:
                    return (yield _offender(p.parts[having[0]], names))
            return t
        case tm.JAt((body, *rest), binders):
            along, at = rest[: len(binders)], rest[len(binders) :]
            if any([not names.isdisjoint(v.free) for v in at]):
                return t
            own = frozenset([x for x, _ in binders])
            in_body = not names.isdisjoint(body.free - own)
            in_along = any([not names.isdisjoint(d.free) for d in along])
            if in_body and in_along:
                return t
            return (yield _first(*[_offender(p, names) for p in ([body] if in_body else along)]))
        case tm.IsNil():
            return t
        case tm.Literal() | tm.Zero() | tm.Sum():
            pass
    if any([t.bound(i) for i in range(len(t.parts))]):
        return t  # a recursion, a pullback at an environment
    return (yield _first(*[_offender(p, names) for p in t.parts]))
