"""Substitution, walks over terms, and names that are nowhere else; none of them recurs.

t[u/x]        a binder that would capture a name of u gets another one
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence

from lineara.calculus.terms import Term, Var


def rebuilt(term: Term, change: Callable[[Term, frozenset[str]], Term | None]) -> Term:
    """The term with parts replaced, from the top down; what `change` answers None to is descended.

    It gets the names that are bound on the way.  No recursion: terms may be deep.
    """
    done: list[Term] = []
    open_: list[tuple[Term, frozenset[str], bool]] = [(term, frozenset(), False)]
    while open_:
        t, bound, ready = open_.pop()
        if ready:
            n = len(t.parts)
            parts = tuple(done[len(done) - n :])
            del done[len(done) - n :]
            same = all([p is q for p, q in zip(parts, t.parts, strict=True)])
            done.append(t if same else t.on(parts))
            continue
        changed = change(t, bound)
        if changed is not None or not t.parts:
            done.append(t if changed is None else changed)
            continue
        open_.append((t, bound, True))
        for i in range(len(t.parts) - 1, -1, -1):
            own = t.bound(i)
            open_.append((t.parts[i], bound.union(own) if own else bound, False))
    return done[0]


def subst(term: Term, table: Mapping[str, Term]) -> Term:
    """Terms for free names; a binder that would capture a name gets another one.

    >>> from lineara.calculus.terms import Sum, lam, num, var
    >>> from lineara.calculus.types import R
    >>> x, y = ("x", R), ("y", R)
    >>> subst(lam(y, Sum((var(x), var(y)))), {"x": num(2)}).parts[0].parts[0].held
    2.0
    >>> subst(lam(y, Sum((var(x), var(y)))), {"x": var(y)}).name
    'y%1'
    """
    if term.free.isdisjoint(table):
        return term
    keys = frozenset(table)
    incoming = frozenset().union(*[t.free for t in table.values()])

    def change(t: Term, bound: frozenset[str]) -> Term | None:
        if t.free.isdisjoint(keys):
            return t
        if isinstance(t, Var):
            return t if t.name in bound else table[t.name]
        if incoming and t.binders():
            caught = [x for x, _ in t.binders() if x in incoming]
            if caught:
                inner = {x: s for x, s in table.items() if x not in bound}
                return subst(_renamed(t, caught, incoming), inner)
        return None

    return rebuilt(term, change)


def _renamed(t: Term, caught: Sequence[str], incoming: frozenset[str]) -> Term:
    """The same term with other names for some of its binders."""
    taken = incoming.union(*[p.free for p in t.parts], [x for x, _ in t.binders()])
    names = {}
    for x in caught:
        fresh = (f"{x.partition('%')[0]}%{n}" for n in itertools.count(1))
        names[x] = next(y for y in fresh if y not in taken)
        taken |= {names[x]}
    types = dict(t.binders())
    table = {x: Var((), y, types[x]) for x, y in names.items()}
    parts = [subst(p, table) if t.bound(i) else p for i, p in enumerate(t.parts)]
    return t.called(names).on(tuple(parts))


def subterms(term: Term) -> Iterator[Term]:
    """The term and all that lie in it."""
    open_ = [term]
    while open_:
        t = open_.pop()
        yield t
        open_ += t.parts


class Fresh:
    """Names that are nowhere else; each contains a `%`.

    >>> fresh = Fresh()
    >>> fresh("a"), fresh("a"), fresh("a%1")
    ('a%1', 'a%2', 'a%3')
    """

    def __init__(self, *terms: Term) -> None:
        names = [n for t in terms for n in names_in(t) if "%" in n]
        last = max([int(n.rpartition("%")[2] or 0) for n in names], default=0)
        self._next = itertools.count(last + 1)

    def __call__(self, like: str) -> str:
        """A name like that one."""
        return f"{like.partition('%')[0]}%{next(self._next)}"


def names_in(term: Term) -> Iterator[str]:
    """The names that occur in a term, bound or free."""
    for t in subterms(term):
        if isinstance(t, Var):
            yield t.name
        for i in range(len(t.parts)):
            yield from t.bound(i)
