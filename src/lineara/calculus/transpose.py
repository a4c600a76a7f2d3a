r"""T(S, K) = dual(\v.S; K): one step of running a linear map backwards  [Pullback].

    v, K               -> K                      S1 + S2, K      -> T(S1, K) + T(S2, K)
    <S1, S2>, [K1|K2]  -> T(S1, K1) + T(S2, K2)  fst S, K        -> T(S, [K|0])
    J{f}(S) r, covec c -> T(S, covec(Jf(r)^T c)) J(t; S) V, K    -> T(S, pull(t; \_.K) V)
    S V, K             -> T(S, V |> K)           \z.S, V |> K    -> T(S[V/z], K)
    J(S; V), (W; D |> K) -> T(S, (W; D, V |> K)) J(t; S), (W; D |> K) -> T(S, pull(J(t; D); \_.K) W)

S is linear in v, K is canonical.  A probe of any order n has n directions: derivatives commute, so
a map J(t; S) meets it as the pullback along the n-th derivative of t.  A linear map that is of no
form here is its own derivative, so it is pulled back at 0.
"""

from collections.abc import Callable, Sequence

from lineara.calculus import terms as tm
from lineara.calculus.jacobian import pulled
from lineara.calculus.substitution import Fresh, subst
from lineara.calculus.types import Arrow, Dual, Product, Type

# The covector Jf(r)^T k, for a symbol's JFun.
Numbers = Callable[[tm.Term, tm.Term, tm.Term], tm.Term]


def operand(t: tm.DualMap) -> tuple[int, ...] | None:
    """The path to a part of the linear map that has to be evaluated before it is transposed."""
    v, s = t.name, t.parts[0]
    if v not in s.free:
        return None
    match s:
        case tm.App((tm.J((f, _)), p)) if v not in f.free and v not in p.free:
            return None if f.value and p.value else (0, 0, 0) if not f.value else (0, 1)
        case tm.App((f, p)) if v in f.free and not p.value and not isinstance(f, tm.Lam):
            return (0, 1)
        case tm.J((f, p)) | tm.At((f, p)) | tm.Scale((f, p)):
            i = 1 if v in f.free else 0
            return None if s.parts[i].value else (0, i)
        case tm.If((c, _, _)):
            return None if c.value else (0, 0)
        case tm.JAt(parts, names):
            for i in range(len(names) + 1, len(parts)):
                if not parts[i].value:
                    return (0, i)
        case tm.Pull((f, _)):
            return None if f.value else (0, 0)
        case tm.DualMap((_, k)) if v not in k.free and not k.value:
            return (0, 1)
        case tm.Probe(parts):
            for i, p in enumerate(parts):
                if v not in p.free and not p.value:
                    return (0, i)
    return None


def transpose(t: tm.DualMap, fresh: Fresh, numbers: Numbers) -> tm.Term:
    """One step of T, for a linear map whose operands are values."""
    s, k = t.parts
    x = (t.name, t.source)
    if t.name not in s.free or isinstance(k, tm.Zero):
        return tm.Zero((), Dual(t.source))

    def back(part: tm.Term, k: tm.Term) -> tm.Term:
        return tm.dual(x, part, k)

    def several(pairs: Sequence[tuple[tm.Term, tm.Term]]) -> tm.Term:
        moving = [back(p, k) for p, k in pairs if t.name in p.free and not isinstance(k, tm.Zero)]
        return tm.total(moving, Dual(t.source))

    match s:
        case tm.Var():
            return k
        case tm.Sum(parts):
            return several([(p, k) for p in parts])
        case tm.Pair(parts):
            assert isinstance(k, tm.Copair)
            return several(list(zip(parts, k.parts, strict=True)))
        case tm.Fst((p,)):
            assert isinstance(p.type, Product)
            return back(p, tm.Copair((k, tm.Zero((), Dual(p.type.right)))))
        case tm.Snd((p,)):
            assert isinstance(p.type, Product)
            return back(p, tm.Copair((tm.Zero((), Dual(p.type.left)), k)))
        case tm.List(parts, _, False):
            assert isinstance(k, tm.List)
            return several(list(zip(parts, k.parts, strict=False)))
        case tm.Cons((p, q)):
            assert isinstance(k, tm.List)
            return several([(p, k.parts[0]), (q, k.on(k.parts[1:]))] if k.parts else [])
        case tm.Head((p,)):
            return back(p, tm.List((k,), s.type, dual=True))
        case tm.Tail((p,)):
            assert isinstance(k, tm.List)
            return back(p, k.on((tm.Zero((), Dual(k.item)), *k.parts)))
        case tm.If((c, a, b)):
            assert isinstance(c, tm.Literal)
            return back(a if c.held else b, k)
        case tm.App((tm.JFun((p,)) as j, r)) if t.name in p.free:
            return back(p, numbers(j, r, k))
        case tm.App((tm.J((f, p)), v)) if t.name not in f.free:
            return back(p, _pulled_back(f, (), k, v))
        case tm.App((p, v)) if t.name not in v.free and not isinstance(p, tm.Lam):
            return back(p, tm.Probe((v, k)))
        case tm.At((p, v)):
            r = k.parts[0]
            return (
                back(p, tm.Ev((tm.Scale((r, v)),)))
                if t.name in p.free
                else back(v, tm.Scale((r, p)))
            )
        case tm.Scale((p, v)):
            return (
                back(p, tm.Covec((tm.At((k, v)),)))
                if t.name in p.free
                else back(v, tm.Scale((p, k)))
            )
        case tm.JAt(parts, names) if t.name not in parts[0].free or t.name in dict(names):
            return _of_environment(parts, names, back, k, fresh)
    if isinstance(s.type, Arrow):
        functional = _of_function(t, s, k, back, fresh, numbers)
    elif isinstance(s.type, Dual) and isinstance(k, tm.Ev):
        functional = _of_functional(t, s, k.parts[0], back, several)
    else:
        functional = None
    if functional is None:  # a linear map is its own derivative
        functional = tm.app(
            tm.Pull((tm.lam(x, s), tm.constant_form(s.type, k))), tm.Zero((), t.source)
        )
    return functional


def probes(k: tm.Term) -> Sequence[tm.Term]:
    """The probes of a canonical functional on functions."""
    return k.parts if isinstance(k, tm.Sum) else () if isinstance(k, tm.Zero) else (k,)


def directional(f: tm.Term, along: Sequence[tm.Term]) -> tm.Term:
    """J(...J(f; d1)...; dn), the derivative of order n."""
    for d in along:
        f = tm.J((f, d))
    return f


def _pulled_back(f: tm.Term, along: Sequence[tm.Term], k: tm.Term, at: tm.Term) -> tm.Term:
    r"""pull(J(f; along); \_.k) at."""
    f = directional(f, along)
    assert isinstance(f.type, Arrow)
    return tm.app(tm.Pull((f, tm.constant_form(f.type.target, k))), at)


def _of_function(t, s, k, back, fresh, numbers) -> tm.Term | None:
    """S is a function: it meets each probe by itself, but where it is a derivative along v."""
    if isinstance(s, tm.J) and t.name in s.parts[0].free:
        own = s.parts[1]
        moved = [tm.Probe((*p.parts[:-1], own, p.parts[-1])) for p in probes(k)]
        return back(s.parts[0], tm.total(moved, Dual(s.type)))
    terms = []
    for p in probes(k):
        at, *along, inner = p.parts
        match s:
            case tm.J((f, q)):
                terms.append(back(q, _pulled_back(f, along, inner, at)))
            case tm.JFun((q,), symbol) if along:
                x = (fresh("x"), symbol.takes)
                f = tm.lam(x, tm.Fun((tm.var(x),), symbol))
                terms.append(back(q, _pulled_back(f, along, inner, at)))
            case tm.JFun((q,)):
                terms.append(back(q, numbers(s, at, inner)))
            case tm.Lam((body,), z) if not along:
                terms.append(back(subst(body, {z: at}), inner))
            case tm.Lam((body,), z):
                here = (z, s.source)
                for d in along[:-1]:
                    body = tm.JAt((body, d, tm.var(here)), (here,))
                terms.append(back(tm.JAt((body, along[-1], at), (here,)), inner))
            case tm.Pull((f, w)):
                terms.append(back(tm.app(directional(pulled(f, w, fresh), along), at), inner))
            case _:
                return None
    return tm.total(terms, Dual(t.source))


def _of_functional(t, s, u, back, several) -> tm.Term | None:
    """S is a functional and K evaluates it at u."""
    match s:
        case tm.DualMap((p, k), w):
            if t.name in k.free:
                return back(k, tm.Ev((subst(p, {w: u}),)))
            return back(subst(p, {w: u}), k)
        case tm.Covec((p,)):
            return back(p, tm.Covec((u,)))
        case tm.Copair((p, q)):
            return several([(p, tm.Ev((u.parts[0],))), (q, tm.Ev((u.parts[1],)))])
        case tm.List(parts, _, True):
            return several([(p, tm.Ev((v,))) for p, v in zip(parts, u.parts, strict=False)])
        case tm.Ev((p,)):
            return back(p, u)
        case tm.Probe((at, *along, k)):
            return back(tm.At((k, tm.app(directional(u, along), at))), tm.Covec((tm.num(1),)))
    return None


def _of_environment(parts, names, back, k, fresh) -> tm.Term:
    """J(<X>.P; <S>)<V> with v in the S: pulled back along P as a function of all of X."""
    n = len(names)
    body, along, at = parts[0], parts[1 : n + 1], parts[n + 1 :]
    if n == 1:
        return back(along[0], _pulled_back(tm.lam(names[0], body), (), k, at[0]))
    types = [t for _, t in names]
    p = (fresh("p"), _nested(types))
    rest: tm.Term = tm.var(p)
    lets = []
    for i, (x, _) in enumerate(names):
        lets.append((x, rest if i == n - 1 else tm.Fst((rest,))))
        rest = tm.Snd((rest,)) if i < n - 1 else rest
    for x, e in reversed(lets):
        body = tm.let(x, e, body)
    return back(_tuple(along), _pulled_back(tm.lam(p, body), (), k, _tuple(at)))


def _nested(types: Sequence[Type]) -> Type:
    return types[0] if len(types) == 1 else Product(types[0], _nested(types[1:]))


def _tuple(parts: Sequence[tm.Term]) -> tm.Term:
    return parts[0] if len(parts) == 1 else tm.Pair((parts[0], _tuple(parts[1:])))


# --- zeros for tangents ---------------------------------------------------------------------------

_ALL = (
    tm.Pair,
    tm.Copair,
    tm.List,
    tm.Cons,
    tm.Fst,
    tm.Snd,
    tm.Head,
    tm.Tail,
    tm.JFun,
    tm.Ev,
    tm.Covec,
    tm.J,
    tm.At,
    tm.Scale,
    tm.Lam,
)
_ANY = (tm.J, tm.At, tm.Scale, tm.DualMap, tm.Pull, tm.Probe)


def zeroed(t: tm.Term, names: frozenset[str]) -> tm.Term:
    """A term that is linear in the names, where they are zero: without the summands that have them.

    >>> from lineara.calculus.types import R
    >>> x, y = tm.Var((), "x", R), tm.Var((), "y", R)
    >>> zeroed(tm.Sum((x, y)), frozenset("y")) is x
    True
    """
    if names.isdisjoint(t.free):
        return t
    if isinstance(t, tm.Var):
        return tm.Zero((), t.type)
    parts = tuple([zeroed(p, names.difference(t.bound(i))) for i, p in enumerate(t.parts)])
    if isinstance(t, tm.Sum):
        return tm.total(parts, t.type)
    zero = [isinstance(p, tm.Zero) for p in parts]
    gone = (isinstance(t, _ALL) and all(zero)) or (isinstance(t, _ANY) and any(zero))
    if isinstance(t, tm.App):
        gone = zero[0]
    elif isinstance(t, tm.If):
        gone = zero[1] and zero[2]
    elif isinstance(t, tm.JAt):
        n = len(t.names)
        gone = zero[0] or all(zero[1 : n + 1])
    return tm.Zero((), t.type) if gone else t.on(parts)
