r"""The differential λ-calculus, to be compared with  [Ehrhard and Regnier 2003].

    D(\x. s) · t  ->  \x. ∂s/∂x · t            our J(\x. s; t)

    ∂x/∂x · t = t     ∂y/∂x · t = 0     ∂(\y. s)/∂x · t = \y. ∂s/∂x · t
    ∂(s u)/∂x · t = (∂s/∂x · t) u + (D s · (∂u/∂x · t)) u

Linear substitution puts t in the place of one occurrence of x, for each occurrence in turn, where
the pullback calculus binds each intermediate result and its tangent once.  `translated` takes a
term of the pullback calculus there: a functional is a function to R.

    τ^ ↦ τ -> R     covec(s) ↦ \v. <s, v>     k @ v ↦ k v     dual(\x. S; k) ↦ \x. k S
    pull(t; w) ↦ \a. \v. w (t a) ((D t · v) a)
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from lineara.calculus import terms as tm
from lineara.calculus.jacobian import as_lambda
from lineara.calculus.program import as_term
from lineara.calculus.reducer import FUEL, Reducer
from lineara.calculus.show import show
from lineara.calculus.substitution import Fresh, subst
from lineara.calculus.symbols import standard
from lineara.calculus.types import Arrow, Dual, Product, R, Type, is_ground, made_of, parts
from lineara.calculus.types import show as show_type
from lineara.errors import CalculusError
from lineara.trampoline import Deep, run


def linear_substitution(s: tm.Term, x: str, t: tm.Term, fresh: Fresh) -> tm.Term:
    r"""∂s/∂x · t, with t for one occurrence of x in each summand.

    CalculusError for a construct that the differential λ-calculus has not, such as `pull`.

    >>> from lineara.calculus.program import term
    >>> body = term("\\x. x * x").parts[0]
    >>> show(linear_substitution(body, "x", tm.num(1), Fresh()))
    'J{multiply}(<1, 1>) <x, x>'
    """
    return run(_substituted(s, x, t, fresh))


def _substituted(s: tm.Term, x: str, t: tm.Term, fresh: Fresh) -> Deep:
    if x not in s.free:
        return tm.Zero((), s.type)
    match s:
        case tm.Var():
            return t
        case tm.Lam((body,), y, source):
            own = fresh(y) if y in t.free else y
            renamed = subst(body, {y: tm.var((own, source))}) if own != y else body
            return tm.lam((own, source), (yield _substituted(renamed, x, t, fresh)))
        case tm.Let((e, body), y):
            return (yield _substituted(tm.app(tm.lam((y, e.type), body), e), x, t, fresh))
    moved = []
    for p in s.parts:
        moved.append((yield _substituted(p, x, t, fresh)))
    match s:
        case tm.App((f, u)):
            return _sum(s, [tm.app(moved[0], u), tm.app(tm.J((f, moved[1])), u)], moved)
        case tm.J() | tm.Scale():
            return _sum(s, [s.with_(i, m) for i, m in enumerate(moved)], moved)
        case tm.Fun((p,), symbol):
            return tm.app(tm.JFun((moved[0],), symbol), p) if symbol.moves else moved[0]
        case tm.Sum() | tm.Pair() | tm.Fst() | tm.Snd() | tm.JFun():
            return s.on(tuple(moved))
        case tm.If((c, _, _)):
            return tm.If((c, *moved[1:]))
    raise _not_there(s)


def _sum(s: tm.Term, summands: list[tm.Term], moved: list[tm.Term]) -> tm.Term:
    """The summands whose part moves."""
    kept = [p for p, m in zip(summands, moved, strict=True) if not isinstance(m, tm.Zero)]
    return tm.total(kept, s.type)


def _not_there(s: tm.Term) -> CalculusError:
    return CalculusError(
        f"{show(s)}: the differential λ-calculus has variables, functions, products, sums, "
        "function symbols and derivatives; functionals come there by `translated`, and lists and "
        "recursion do not"
    )


class LinearReducer(Reducer):
    """The reducer with linear substitution in the place of the rule J; all else is as there."""

    def forward(self, g: tm.Term, d: tm.Term, a: tm.Term) -> tm.Term:
        """(J(\\x. s; d)) a is (\\x. ∂s/∂x · d) a."""
        return tm.app(self._derived(g, d), a)

    def _derived(self, g: tm.Term, d: tm.Term) -> tm.Lam:
        inner = self._derived(*g.parts) if isinstance(g, tm.J) else as_lambda(g, self.fresh)
        here = (inner.name, inner.source)
        return tm.lam(here, linear_substitution(inner.parts[0], inner.name, d, self.fresh))


# --- the translation ------------------------------------------------------------------------------


def functions_for_duals(t: Type) -> Type:
    """The type with τ -> R for each τ^.

    >>> from lineara.calculus.types import show as show_type
    >>> show_type(functions_for_duals(Arrow(R, Dual(Product(R, R)))))
    'R -> R * R -> R'
    """
    inner = tuple([functions_for_duals(p) for p in parts(t)])
    return Arrow(inner[0], R) if isinstance(t, Dual) else made_of(t, inner)


def translated(term: tm.Term) -> tm.Term:
    r"""A term of the pullback calculus as one of the differential λ-calculus.

    CalculusError for lists and recursion, which are not there.

    >>> from lineara.calculus.program import term
    >>> show(translated(term("covec(3) @ 2")))
    '(let k%1 = 3 in \\v%2:R. multiply(k%1, v%2)) 2'
    """
    return run(_translated(term, Fresh(term)))


def _translated(t: tm.Term, fresh: Fresh) -> Deep:
    of: list[Any] = []
    for p in t.parts:
        of.append((yield _translated(p, fresh)))
    match t:
        case tm.Var(_, name):
            return tm.var((name, functions_for_duals(t.type)))
        case tm.Zero():
            return tm.Zero((), functions_for_duals(t.type))
        case tm.Lam(_, name, source):
            return tm.lam((name, functions_for_duals(source)), of[0])
        case tm.At():
            return tm.app(*of)
        case tm.Covec():
            return _bound(fresh, of, of[0].type, _dot)
        case tm.Copair():
            left, right = [k.type.source for k in of]
            return _bound(fresh, of, Product(left, right), _on_a_pair)
        case tm.DualMap(_, x, source):
            s = tm.lam((x, functions_for_duals(source)), of[0])
            return _bound(fresh, of[1:], s.source, lambda k, v: tm.app(k, tm.app(s, v)))
        case tm.Ev():
            return _bound(fresh, of, Arrow(of[0].type, R), lambda u, k: tm.app(k, u))
        case tm.Probe():
            return _bound(fresh, of, Arrow(of[0].type, of[-1].type.source), _probed)
        case tm.Pull():
            v = fresh("v"), of[0].type.source
            return _bound(
                fresh,
                of,
                of[0].type.source,
                lambda f, w, a: tm.lam(
                    v, tm.app(tm.app(w, tm.app(f, a)), tm.app(tm.J((f, tm.var(v))), a))
                ),
            )
        case tm.List() | tm.Cons() | tm.Head() | tm.Tail() | tm.IsNil() | tm.Fix():
            raise _not_there(t)
    return t.on(tuple(of))


def _bound(
    fresh: Fresh, held: Sequence[tm.Term], source: Type, body: Callable[..., tm.Term]
) -> tm.Term:
    """The function of v that is the body, of names for what it holds and of v."""
    names = [tm.var((fresh("k"), h.type)) for h in held]
    v = fresh("v"), source
    term: tm.Term = tm.lam(v, body(*names, tm.var(v)))
    for name, h in zip(reversed(names), reversed(held), strict=True):
        term = tm.let(name.name, h, term)
    return term


def _dot(s: tm.Term, v: tm.Term) -> tm.Term:
    """<s, v>, of numbers or of pairs."""
    if s.type == R:
        return tm.Fun((tm.Pair((s, v)),), standard()["multiply"])
    return tm.Sum(tuple([_dot(part((s,)), part((v,))) for part in (tm.Fst, tm.Snd)]))


def _on_a_pair(k: tm.Term, q: tm.Term, v: tm.Term) -> tm.Term:
    return tm.Sum((tm.app(k, tm.Fst((v,))), tm.app(q, tm.Snd((v,)))))


def _probed(*of: tm.Term) -> tm.Term:
    """k (D (... D u · d1 ...) at), u the function."""
    at, *along, k, u = of
    for d in along:
        u = tm.J((u, d))
    return tm.app(k, tm.app(u, at))


# --- the comparison -------------------------------------------------------------------------------


class Counts(NamedTuple):
    """The value of a reduction, how many steps it took, and how many terms its rules made."""

    value: tm.Term
    steps: int
    terms: int


def counted(reducer: Reducer) -> Counts:
    """Reduce to the value, and count; a term counts once, however often it is used."""
    seen: dict[int, tm.Term] = {}

    def new(term: tm.Term) -> int:
        count, open_ = 0, [term]
        while open_:
            t = open_.pop()
            if id(t) not in seen:
                seen[id(t)] = t
                count += 1
                open_ += t.parts
        return count

    new(reducer.term())
    terms = sum([new(done.contractum) for done in reducer])
    return Counts(reducer.term(), reducer.steps, terms)


def compare(term: tm.Term | str, fuel: int = FUEL) -> tuple[Counts, Counts]:
    r"""The pullback calculus and linear substitution on a closed term of a type of numbers.

    CalculusError for another type, and for what the differential λ-calculus has not.

    >>> ours, theirs = compare("pull(\\x. sin(x) * x; \\_. covec(1)) 2 @ 1")
    >>> show(ours.value) == show(theirs.value)
    True
    """
    t = as_term(term, "linear_substitution.compare")
    if not is_ground(t.type):
        raise CalculusError(
            f"values are compared as numbers, and this is {show_type(t.type)}; pair a functional "
            "with a vector, k @ v"
        )
    return counted(Reducer(t, fuel)), counted(LinearReducer(translated(t), fuel))
