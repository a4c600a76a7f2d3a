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

from lineara.calculus.partials import partials
from lineara.calculus.substitution import Fresh, subst
from lineara.calculus.symbols import Symbol
from lineara.calculus.terms import (
    App,
    At,
    Binder,
    Cons,
    Copair,
    Covec,
    DualMap,
    Ev,
    Fix,
    Fst,
    Fun,
    Head,
    If,
    IsNil,
    J,
    JAt,
    JFun,
    Lam,
    List,
    Pair,
    Probe,
    Pull,
    Scale,
    Snd,
    Sum,
    Tail,
    Term,
    Var,
    Zero,
    app,
    dual,
    lam,
    total,
    var,
)
from lineara.calculus.types import Arrow

Tangents = dict[str, Term]  # of the names that move


def derivative(e: Term, tangents: Tangents, fresh: Fresh) -> Term | None:
    """d(E), or None where it is zero.

    >>> from lineara.calculus.show import show
    >>> from lineara.calculus.symbols import standard
    >>> from lineara.calculus.types import R
    >>> x, v = Var((), "x", R), Var((), "v", R)
    >>> show(derivative(Fun((x,), standard()["sin"]), {"x": v}, Fresh()))
    'J{sin}(v) x'
    """

    def tangent(z: Term) -> Term | None:
        return tangents.get(z.name) if isinstance(z, Var) else None

    if e.free.isdisjoint(tangents):
        return None
    of = [tangent(p) for p in e.parts]
    rule = _RULES.get(type(e))
    if rule is not None:
        return rule(e, of, fresh)
    return _of_binder(e, of, tangents, fresh)


def moving(t: Term, tangents: Tangents) -> list[Binder]:
    """The free names of a term that move, with their types."""
    found = {}
    open_ = [(t, t.free.intersection(tangents))]
    while open_:
        s, names = open_.pop()
        if isinstance(s, Var) and s.name in names:
            found[s.name] = s.type
        for i, p in enumerate(s.parts):
            inner = names.intersection(p.free).difference(s.bound(i))
            if inner:
                open_.append((p, inner))
    return [(x, found[x]) for x in sorted(found)]


def along(t: Term, tangents: Tangents) -> Term:
    r"""J(\<X>.t; <v_X>)<X> for the moving names X of t; zero without any."""
    names = moving(t, tangents)
    if not names:
        return Zero((), t.type)
    return JAt((t, *[tangents[x] for x, _ in names], *map(var, names)), tuple(names))


def _of_binder(e: Term, of: Sequence[Term | None], tangents: Tangents, fresh: Fresh) -> Term | None:
    match e:
        case Var(_, name):
            return tangents[name]
        case Lam((body,), x):
            inner = {y: v for y, v in tangents.items() if y != x}
            return lam((x, e.source), along(body, inner))
        case Fix():
            return derivative(unfolded(e), tangents, fresh)
        case If((c, a, b)):
            return If((c, along(a, tangents), along(b, tangents)))
        case DualMap((s, z), x):
            constant = DualMap((s, of[1]), x, e.source) if of[1] is not None else None
            inner = {y: v for y, v in tangents.items() if y != x}
            moved = None
            if not s.free.isdisjoint(inner):
                moved = DualMap((along(s, inner), z), x, e.source)
            return _sum([constant, moved])
        case Pull((y, z)):
            if of[0] is None:
                return Pull((y, of[1]))
            return derivative(pulled(y, z, fresh), tangents, fresh)
    raise AssertionError(f"d: {type(e).__name__} is not elementary")


def _sum(terms: Sequence[Term | None]) -> Term | None:
    found = [t for t in terms if t is not None]
    return total(found, found[0].type) if found else None


def _linear(e: Term, of: Sequence[Term | None], fresh: Fresh) -> Term | None:
    """Jointly linear: the construct on the tangents, zeros for what does not move."""
    pairs = zip(of, e.parts, strict=True)
    return e.on(tuple([Zero((), p.type) if v is None else v for v, p in pairs]))


def _bilinear(e: Term, of: Sequence[Term | None], fresh: Fresh) -> Term | None:
    return _sum([None if v is None else e.with_(i, v) for i, v in enumerate(of)])


def _symbol(e: Term, of: Sequence[Term | None], fresh: Fresh) -> Term | None:
    assert isinstance(e, Fun)
    return app(JFun((of[0],), e.symbol), e.parts[0]) if e.symbol.moves and of[0] else None


def _application(e: Term, of: Sequence[Term | None], fresh: Fresh) -> Term | None:
    y, z = e.parts
    moved = of[1] if of[1] is not None else None
    return _sum(
        [
            app(of[0], z) if of[0] is not None else None,
            app(J((y, moved)), z) if moved is not None else None,
        ]
    )


def _probe(e: Term, of: Sequence[Term | None], fresh: Fresh) -> Term | None:
    """Linear in the directions and the functional; the point's tangent is one more direction."""
    at, *directions, k = e.parts
    found = [None if v is None else e.with_(i, v) for i, v in enumerate(of) if i]
    if of[0] is not None:
        found.append(Probe((at, *directions, of[0], k)))
    return _sum(found)


_Rule = Callable[[Term, Sequence[Term | None], Fresh], Term | None]
_RULES: dict[type, _Rule] = {
    **dict.fromkeys((Sum, Pair, Fst, Snd, JFun, Covec, Ev, Copair), _linear),
    **dict.fromkeys((List, Cons, Head, Tail), _linear),
    **dict.fromkeys((J, At, Scale), _bilinear),
    Fun: _symbol,
    App: _application,
    Probe: _probe,
    IsNil: lambda e, of, fresh: None,
}


# --- a function value as a lambda -----------------------------------------------------------------


def unfolded(f: Fix) -> Lam:
    """A recursion once unfolded."""
    return Lam((subst(f.parts[0], {f.own: f}),), f.name, f.stated.source)


def pulled(y: Term, z: Term, fresh: Fresh) -> Lam:
    r"""pull(y; z) by its definition, \a. dual(\u. J(y; u) a; z (y a))."""
    assert isinstance(y.type, Arrow)
    a, u = (fresh("x"), y.type.source), (fresh("u"), y.type.source)
    return lam(a, dual(u, app(J((y, var(u))), var(a)), app(z, app(y, var(a)))))


def as_lambda(f: Term, fresh: Fresh) -> Lam:
    """A function value, eta-expanded until it is a lambda."""
    match f:
        case Lam():
            return f
        case Fix():
            return unfolded(f)
        case Pull((y, z)):
            return pulled(y, z, fresh)
    assert isinstance(f.type, Arrow)
    x = (fresh("x"), f.type.source)
    match f:
        case Zero():
            return lam(x, Zero((), f.type.target))
        case Sum(parts):
            return lam(x, Sum(tuple([app(p, var(x)) for p in parts])))
        case JFun((s,), symbol):
            return lam(x, symbol_derivative(symbol, var(x), s, fresh))
        case J((g, s)):
            inner = as_lambda(g, fresh)
            here = (inner.name, inner.source)
            return lam(x, JAt((inner.parts[0], s, var(x)), (here,)))
    raise AssertionError(f"{type(f).__name__} is no function value")


def symbol_derivative(symbol: Symbol, x: Term, v: Term, fresh: Fresh) -> Term:
    """Jf(x) v as a term: the declared partials, read as expressions; of a declared symbol, J."""
    if symbol.body is not None:
        return app(J((symbol.body, v)), x)
    return partials(symbol, x, v, fresh)
