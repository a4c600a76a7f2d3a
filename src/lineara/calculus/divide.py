r"""A, "divide": a term becomes a series of lets over elementary terms  [Pullback].

    P   --A-->   let a1 = E1 in ... let ak = Ek in z

An elementary term has atoms, variables or closed values, where it is evaluated.  What binders hold
is not touched before it is needed.  Every non-atomic node gives one let, so A is linear.

The derivative at an environment is no elementary term: it is written out here, by the rule J.

    J(\<X>.P; <D>)<V>   --J-->   let X = V in ... let y = E in let v_y = d(E) in ... v_result
"""

from collections.abc import Mapping
from typing import NamedTuple

from lineara.calculus import terms as tm
from lineara.calculus.jacobian import Tangents, derivative
from lineara.calculus.substitution import Fresh, subst
from lineara.trampoline import Deep, run


class Series(NamedTuple):
    """Bindings in order, and the atom that is the result."""

    bindings: tuple[tuple[str, tm.Term], ...]
    result: tm.Term

    def term(self) -> tm.Term:
        """The series as lets."""
        term = self.result
        for name, e in reversed(self.bindings):
            term = tm.let(name, e, term)
        return term


def divide(term: tm.Term, fresh: Fresh, raw: bool = False) -> Series:
    """A of a term.

    >>> from lineara.calculus.program import term
    >>> from lineara.calculus.show import show
    >>> show(divide(term("\\\\x. sin(x * x)").parts[0], Fresh()).term())
    'let a%1 = <x, x> in let a%2 = multiply(a%1) in let a%3 = sin(a%2) in a%3'
    """
    divider = _Divider(fresh, raw)
    result = run(divider.name(term, {}))
    return Series(tuple(divider.bindings), result)


def is_atom(t: tm.Term) -> bool:
    """Whether a term needs no name: a variable, or a value that is closed."""
    return isinstance(t, tm.Var) or (t.value and not t.free)


class _Divider:
    """The bindings so far; `tangents` are open where the rule J writes derivatives beside them."""

    def __init__(self, fresh: Fresh, raw: bool) -> None:
        self.fresh = fresh
        self.raw = raw  # whether a tangent's term may stand as it is: nothing differentiates it
        self.bindings: list[tuple[str, tm.Term]] = []
        self.open: list[Tangents] = []

    def bind(self, e: tm.Term, like: str = "a") -> tm.Term:
        """The name of an elementary term; where derivatives are written, its tangents follow."""
        name = self.fresh(like)
        self.bindings.append((name, e))
        levels = self.open
        for i in range(len(levels) - 1, -1, -1):  # a tangent has tangents in the levels outside
            self.open = levels[:i]
            d = derivative(e, levels[i], self.fresh)
            if d is not None and not tm.is_zero(d):
                levels[i][name] = self._written(d)
        self.open = levels
        return tm.Var((), name, e.type)

    def _written(self, d: tm.Term) -> tm.Term:
        if self.open or not self.raw or is_atom(d):
            return run(self.name(d, {}))
        self.bindings.append((self.fresh("v"), d))
        return tm.Var((), self.bindings[-1][0], d.type)

    def name(self, t: tm.Term, env: Mapping[str, tm.Term]) -> Deep:
        """The atom that is the value of a term whose names are atoms."""
        env = dict(env)
        while True:
            if isinstance(t, tm.Var):
                return env.get(t.name, t)
            if is_atom(t):
                return t
            if isinstance(t, tm.App) and isinstance(t.parts[0], tm.Lam):
                f, a = t.parts
                assert isinstance(f, tm.Lam)
                held = yield self.name(a, {y: env[y] for y in a.free if y in env})
                env = {y: env[y] for y in f.free if y in env}
                env[f.name] = held
                t = f.parts[0]
            elif isinstance(t, tm.Let):
                e, t, x = t.parts[0], t.parts[1], t.name
                inner = {y: env[y] for y in e.free if y in env}
                env[x] = yield self.name(e, inner)
            else:
                break
        if isinstance(t, tm.JAt):
            return (yield self._derivative(t, env))
        if isinstance(t, tm.Lam | tm.Fix):
            return self.bind(subst(t, env))
        return self.bind((yield self._elementary(t, env)))

    def _elementary(self, t: tm.Term, env: Mapping[str, tm.Term]) -> Deep:
        """The construct with atoms for the parts that are evaluated."""
        kept = {0} if isinstance(t, tm.DualMap) else {1, 2} if isinstance(t, tm.If) else set()
        atoms = []
        for i, p in enumerate(t.parts):
            if i in kept:
                inner = {x: a for x, a in env.items() if x not in t.bound(i)}
                atoms.append(subst(p, inner))
            else:
                inner = {y: env[y] for y in p.free if y in env}
                atoms.append((yield self.name(p, inner)))
        return t.on(tuple(atoms))

    def _derivative(self, t: tm.JAt, env: Mapping[str, tm.Term]) -> Deep:
        """The rule J: P with tangents beside it; the atom of the tangent of its result."""
        n = len(t.names)
        along, at, own = [], [], {}
        for p in t.parts[1 : n + 1]:
            along.append((yield self.name(p, {y: env[y] for y in p.free if y in env})))
        for p in t.parts[n + 1 :]:
            at.append((yield self.name(p, {y: env[y] for y in p.free if y in env})))
        for (x, _), v in zip(t.names, at, strict=True):
            own[x] = self.bind(v, x)  # a name of its own: V may be what P also has as a constant
        tangents: Tangents = {
            own[x].name: d for (x, _), d in zip(t.names, along, strict=True) if not tm.is_zero(d)
        }
        self.open.append(tangents)
        body = t.parts[0]
        inner = {y: env[y] for y in body.free if y in env}
        result = yield self.name(body, inner | own)
        self.open.pop()
        tangent = tangents.get(result.name) if isinstance(result, tm.Var) else None
        return tm.Zero((), t.type) if tangent is None else tangent
