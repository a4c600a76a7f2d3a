"""The checker:  Γ ⊢ t : s  for a term, from the leaves up, without trusting what it says of itself.

A variable has the type of its binder, a construct that of its rule, and what stands in a linear
position is linear: the body of `dual`, and what a `Back` sends back.  Every step of a reduction
keeps the type of its term; tests run this after each.
"""

from lineara.calculus import terms as tm
from lineara.calculus.linear_positions import offender
from lineara.calculus.show import show as show_term
from lineara.calculus.types import Arrow, Dual, Row, Type, show
from lineara.errors import CalculusError
from lineara.trampoline import Deep, run

Scope = dict[str, Type]


Known = dict[tm.Term, Scope]  # terms that are well typed where their free names have these types


def check(term: tm.Term, known: Known | None = None) -> Type:
    """The type of a closed term; CalculusError where it is not well typed.

    With `known` what a call has found out serves the next, as along a reduction.

    >>> from lineara.calculus.program import term
    >>> show(check(term("\\\\x. x * x")))
    'R -> R'
    """
    if not isinstance(term, tm.Term):
        raise CalculusError(
            f"calculus.check takes a term, and got {term!r}; calculus.term reads one"
        )
    return run(_check(term, {}, {} if known is None else known))


def _check(t: tm.Term, scope: Scope, known: Known) -> Deep:
    own = {x: scope[x] for x in t.free if x in scope}
    if known.get(t) == own:
        return t.type
    if isinstance(t, tm.Var):
        if scope.get(t.name) != t.stated:
            have = show(scope[t.name]) if t.name in scope else "not known"
            raise CalculusError(f"{t.name} is {have} here, and stands as {show(t.stated)}")
        return t.stated
    for i, p in enumerate(t.parts):
        inner = {**scope, **dict(t.binders())} if t.bound(i) else scope
        inferred = yield _check(p, inner, known)
        if inferred != p.type:
            raise CalculusError(f"{show_term(p)} is {show(inferred)}, and says {show(p.type)}")
    again = t.on(t.parts)
    if again.type != t.type or again.value != t.value or again.free != t.free:
        raise CalculusError(f"{show_term(t)} is {show(again.type)}, and says {show(t.type)}")
    if isinstance(t, tm.DualMap | tm.Back):
        names = frozenset(t.bound(0))
        wrong = offender(t.parts[0], names)
        if wrong is not None:
            raise CalculusError(
                f"{show_term(t.parts[0])} is not linear in {', '.join(sorted(names))}: "
                f"{show_term(wrong)}"
            )
    _environment(t)
    known[t] = own
    return again.type


def _environment(t: tm.Term) -> None:
    """Check that the values and cotangents of an environment have the types of its names."""
    if isinstance(t, tm.JAt):
        n, types = len(t.names), [s for _, s in t.names]
        wanted = [*types, *types]
        actual = [p.type for p in t.parts[1:]]
        assert len(t.parts) == 2 * n + 1
    elif isinstance(t, tm.PullAt):
        series, w, *at = t.parts
        wanted = [Arrow(series.type, Dual(series.type)), *[s for _, s in t.names]]
        actual = [w.type, *[v.type for v in at]]
    elif isinstance(t, tm.Back):
        wanted = [Row((*[Dual(s) for _, s in t.names], Dual(t.parts[0].type)))]
        actual = [t.parts[1].type]
    else:
        return
    if wanted != actual:
        have, want = [", ".join(map(show, types)) for types in (actual, wanted)]
        raise CalculusError(f"{show_term(t)} has {have}, and needs {want}")
