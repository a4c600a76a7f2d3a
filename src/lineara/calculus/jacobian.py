r"""d(E): the derivative of an elementary term along tangents of its atoms  [Pullback].

    10 d(z) = v_z                     11 d(z + ...) = sum of the v     12 d(fst z) = fst v_z
    13 d(J{f}(z)) = J{f}(v_z)         14 d(pull(y; z)) = pull(y; v_z)  15 d(f(z)) = J{f}(v_z) z
    16 d(dual(\w.S; z)) = dual(\w.S; v_z) + dual(\w. J(\<X>.S; <v_X>)<X>; z)
    17 d(pull(y; z)), y moving: that of \a. dual(\u. J(y; u) a; z (y a))
    18 d(\z.P) = \z. J(\<X>.P; <v_X>)<X>
    19 d(y z) = v_y z + J(y; v_z) z   20 d(<y, z>) = <v_y, v_z>        21 bilinear terms

An atom that does not move has no tangent, and a term of such has none: structural zeros.  The
derivative of a list is a list's, that of a choice the choice of the derivatives.
"""

from collections.abc import Callable, Sequence

from lineara.calculus import terms as tm
from lineara.calculus.partials import partials
from lineara.calculus.substitution import Fresh, subst
from lineara.calculus.symbols import Symbol
from lineara.calculus.types import Arrow

Tangents = dict[str, tm.Term]  # of the names that move


def derivative(e: tm.Term, tangents: Tangents, fresh: Fresh) -> tm.Term | None:
    """d(E), or None where it is zero.

    >>> from lineara.calculus.show import show
    >>> from lineara.calculus.symbols import standard
    >>> from lineara.calculus.types import R
    >>> x, v = tm.Var((), "x", R), tm.Var((), "v", R)
    >>> show(derivative(tm.Fun((x,), standard()["sin"]), {"x": v}, Fresh()))
    'J{sin}(v) x'
    """

    def tangent(z: tm.Term) -> tm.Term | None:
        return tangents.get(z.name) if isinstance(z, tm.Var) else None

    if e.free.isdisjoint(tangents):
        return None
    of = [tangent(p) for p in e.parts]
    rule = _RULES.get(type(e))
    if rule is not None:
        return rule(e, of, fresh)
    return _of_binder(e, of, tangents, fresh)


def moving(t: tm.Term, tangents: Tangents) -> list[tm.Binder]:
    """The free names of a term that move, with their types."""
    binders = {}
    open_ = [(t, t.free.intersection(tangents))]
    while open_:
        s, names = open_.pop()
        if isinstance(s, tm.Var) and s.name in names:
            binders[s.name] = s.type
        for i, p in enumerate(s.parts):
            inner = names.intersection(p.free).difference(s.bound(i))
            if inner:
                open_.append((p, inner))
    return [(x, binders[x]) for x in sorted(binders)]


def along(t: tm.Term, tangents: Tangents) -> tm.Term:
    r"""J(\<X>.t; <v_X>)<X> for the moving names X of t; zero without any."""
    names = moving(t, tangents)
    if not names:
        return tm.Zero((), t.type)
    return tm.JAt((t, *[tangents[x] for x, _ in names], *map(tm.var, names)), tuple(names))


def _of_binder(
    e: tm.Term, of: Sequence[tm.Term | None], tangents: Tangents, fresh: Fresh
) -> tm.Term | None:
    match e:
        case tm.Var(_, name):
            return tangents[name]
        case tm.Lam((body,), x):
            inner = {y: v for y, v in tangents.items() if y != x}
            return tm.lam((x, e.source), along(body, inner))
        case tm.Fix():
            return derivative(unfolded(e), tangents, fresh)
        case tm.If((c, a, b)):
            return tm.If((c, along(a, tangents), along(b, tangents)))
        case tm.DualMap((s, z), x):
            constant = tm.DualMap((s, of[1]), x, e.source) if of[1] is not None else None
            inner = {y: v for y, v in tangents.items() if y != x}
            moved = None
            if not s.free.isdisjoint(inner):
                moved = tm.DualMap((along(s, inner), z), x, e.source)
            return _sum([constant, moved])
        case tm.Pull((y, z)):
            if of[0] is None:
                return tm.Pull((y, of[1]))
            return derivative(pulled(y, z, fresh), tangents, fresh)
    raise AssertionError(f"d: {type(e).__name__} is not elementary")


def _sum(terms: Sequence[tm.Term | None]) -> tm.Term | None:
    nonzero = [t for t in terms if t is not None]
    return tm.total(nonzero, nonzero[0].type) if nonzero else None


def _linear(e: tm.Term, of: Sequence[tm.Term | None], fresh: Fresh) -> tm.Term | None:
    """Jointly linear: the construct on the tangents, zeros for what does not move."""
    pairs = zip(of, e.parts, strict=True)
    return e.on(tuple([tm.Zero((), p.type) if v is None else v for v, p in pairs]))


def _bilinear(e: tm.Term, of: Sequence[tm.Term | None], fresh: Fresh) -> tm.Term | None:
    return _sum([None if v is None else e.with_(i, v) for i, v in enumerate(of)])


def _symbol(e: tm.Term, of: Sequence[tm.Term | None], fresh: Fresh) -> tm.Term | None:
    assert isinstance(e, tm.Fun)
    return tm.app(tm.JFun((of[0],), e.symbol), e.parts[0]) if e.symbol.moves and of[0] else None


def _application(e: tm.Term, of: Sequence[tm.Term | None], fresh: Fresh) -> tm.Term | None:
    y, z = e.parts
    moved = of[1] if of[1] is not None else None
    return _sum(
        [
            tm.app(of[0], z) if of[0] is not None else None,
            tm.app(tm.J((y, moved)), z) if moved is not None else None,
        ]
    )


def _probe(e: tm.Term, of: Sequence[tm.Term | None], fresh: Fresh) -> tm.Term | None:
    """Linear in the directions and the functional; the point's tangent is one more direction."""
    at, *directions, k = e.parts
    tangents = [None if v is None else e.with_(i, v) for i, v in enumerate(of) if i]
    if of[0] is not None:
        tangents.append(tm.Probe((at, *directions, of[0], k)))
    return _sum(tangents)


_Rule = Callable[[tm.Term, Sequence[tm.Term | None], Fresh], tm.Term | None]
_RULES: dict[type, _Rule] = {
    **dict.fromkeys(
        (tm.Sum, tm.Pair, tm.Fst, tm.Snd, tm.JFun, tm.Covec, tm.Ev, tm.Copair), _linear
    ),
    **dict.fromkeys((tm.List, tm.Cons, tm.Head, tm.Tail), _linear),
    **dict.fromkeys((tm.J, tm.At, tm.Scale), _bilinear),
    tm.Fun: _symbol,
    tm.App: _application,
    tm.Probe: _probe,
    tm.IsNil: lambda e, of, fresh: None,
}


# --- a function value as a lambda -----------------------------------------------------------------


def unfolded(f: tm.Fix) -> tm.Lam:
    """A recursion once unfolded."""
    return tm.Lam((subst(f.parts[0], {f.own: f}),), f.name, f.stated.source)


def pulled(y: tm.Term, z: tm.Term, fresh: Fresh) -> tm.Lam:
    r"""pull(y; z) by its definition, \a. dual(\u. J(y; u) a; z (y a))."""
    assert isinstance(y.type, Arrow)
    a, u = (fresh("x"), y.type.source), (fresh("u"), y.type.source)
    return tm.lam(
        a, tm.dual(u, tm.app(tm.J((y, tm.var(u))), tm.var(a)), tm.app(z, tm.app(y, tm.var(a))))
    )


def as_lambda(f: tm.Term, fresh: Fresh) -> tm.Lam:
    """A function value, eta-expanded until it is a lambda."""
    match f:
        case tm.Lam():
            return f
        case tm.Fix():
            return unfolded(f)
        case tm.Pull((y, z)):
            return pulled(y, z, fresh)
    assert isinstance(f.type, Arrow)
    x = (fresh("x"), f.type.source)
    match f:
        case tm.Zero():
            return tm.lam(x, tm.Zero((), f.type.target))
        case tm.Sum(parts):
            return tm.lam(x, tm.Sum(tuple([tm.app(p, tm.var(x)) for p in parts])))
        case tm.JFun((s,), symbol):
            return tm.lam(x, symbol_derivative(symbol, tm.var(x), s, fresh))
        case tm.J((g, s)):
            inner = as_lambda(g, fresh)
            here = (inner.name, inner.source)
            return tm.lam(x, tm.JAt((inner.parts[0], s, tm.var(x)), (here,)))
    raise AssertionError(f"{type(f).__name__} is no function value")


def symbol_derivative(symbol: Symbol, x: tm.Term, v: tm.Term, fresh: Fresh) -> tm.Term:
    """Jf(x) v as a term: the declared partials, read as expressions; of a declared symbol, J."""
    if symbol.body is not None:
        return tm.app(tm.J((symbol.body, v)), x)
    return partials(symbol, x, v, fresh)
