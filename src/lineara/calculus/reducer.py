r"""The reducer: one redex at a time, call by value, left to right  [Pullback].

    C[redex] -> C[contractum]        `focus` says where evaluation goes on in a term, or nowhere

`focus` is a function, so a closed term is a value or C[redex] for exactly one C and redex.  A
reducer holds C as a stack and works at its end; nothing is searched twice.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from lineara.calculus.canonical_values import added, of_list, paired, scaled, written
from lineara.calculus.divide import divide, is_atom
from lineara.calculus.jacobian import as_lambda, derivative
from lineara.calculus.machine import exhausted
from lineara.calculus.substitution import Fresh, subst
from lineara.calculus.term_numbers import covector, numbers_of, structure, symbol_jvp, symbol_value
from lineara.calculus.terms import (
    App,
    At,
    Back,
    Cons,
    Copair,
    Cotangents,
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
    Let,
    List,
    Literal,
    Pair,
    Pick,
    Probe,
    Pull,
    PullAt,
    Scale,
    Snd,
    Still,
    Sum,
    Tail,
    Term,
    Var,
    Zero,
    app,
    dual,
    is_zero,
    total,
    var,
)
from lineara.calculus.transpose import operand, transpose, zeroed
from lineara.calculus.types import Dual, Product, R
from lineara.errors import CalculusError

FUEL = 100_000


class Rule(NamedTuple):
    """A rule's number in the paper or the spec, and its name."""

    number: str
    name: str


class Step(NamedTuple):
    """A step: the rule, where in the term, the redex and what it becomes."""

    rule: Rule
    path: tuple[int, ...]
    redex: Term
    contractum: Term


BETA = Rule("1", "application")
LET = Rule("1", "let")
UNFOLD = Rule("1", "recursion")
PROJECTION = Rule("2", "projection")
SYMBOL = Rule("3", "symbol at numbers")
JACOBIAN = Rule("4", "Jacobian at numbers")
FORWARD = Rule("4'", "derivative written out")
DIVIDE = Rule("A", "divide into lets")
INLINE = Rule("A", "body joins the series")
CHOOSE = Rule("A", "branch joins the series")
VARIABLE = Rule("7", "end of the series")
INACTIVE = Rule("9", "constant")
BACK = Rule("8", "cotangents go back")
PICK = Rule("8", "that of the argument")
SUMS = Rule("sum", "sum")
ZERO = Rule("sum", "zero")
PAIRING = Rule("@", "functional at a vector")
SCALING = Rule("scale", "multiple")
CHOICE = Rule("if", "choice")
LISTS = Rule("list", "list")
COVECTOR = Rule("covec", "functional on a pair")
CONQUER = {
    Var: Rule("10", "variable"),
    Sum: Rule("11", "sum"),
    Fst: Rule("12", "projection"),
    Snd: Rule("12", "projection"),
    JFun: Rule("13", "Jacobian"),
    Pull: Rule("14", "pullback"),
    Covec: Rule("14", "covector"),
    Fun: Rule("15", "function symbol"),
    DualMap: Rule("16", "dual map"),
    Lam: Rule("18", "abstraction"),
    Fix: Rule("18", "abstraction"),
    App: Rule("19", "application"),
    Pair: Rule("20", "pair"),
    List: Rule("20", "list"),
    Cons: Rule("20", "list"),
    Head: Rule("12", "projection"),
    Tail: Rule("12", "projection"),
}
BILINEAR = Rule("21", "bilinear")


def rule_of(e: Term) -> Rule:
    """The rule by which an elementary term is pulled back."""
    if isinstance(e, Pull) and e.parts[0].free:
        return Rule("17", "pullback along what moves")
    return CONQUER.get(type(e), BILINEAR)


_TRANSPOSED = {
    Var: "variable", Sum: "sum", Pair: "pair", Fst: "projection", Snd: "projection",
    App: "application", JFun: "Jacobian", J: "derivative", Lam: "abstraction",
    DualMap: "dual map", Pull: "pullback", Covec: "covector", Copair: "covector",
    Ev: "evaluation", At: "pairing", Scale: "multiple", Probe: "probe", JAt: "derivative",
    Let: "let", Fun: "symbol", If: "choice",
}  # fmt: skip


def transposed(s: Term) -> Rule:
    """The rule by which a linear map is transposed."""
    return Rule("5", f"transposed {_TRANSPOSED.get(type(s), 'list')}")


# --- contexts -------------------------------------------------------------------------------------

_PATHS: dict[type, Callable[[Term], tuple[int, ...]]] = {
    Let: lambda t: (0,),
    If: lambda t: (0,),
    DualMap: lambda t: (1,),
    JAt: lambda t: tuple(range(1, len(t.parts))),
    PullAt: lambda t: tuple(range(2, len(t.parts))),
    Back: lambda t: (1,),
}


def focus(t: Term) -> tuple[int, ...] | None:
    """Where in a term that is no value evaluation goes on; None: the term itself is the redex."""
    evaluated = _PATHS.get(type(t))
    for i in range(len(t.parts)) if evaluated is None else evaluated(t):
        if not t.parts[i].value and not (isinstance(t, Sum) and isinstance(t.parts[i], Zero)):
            return (i,)
    if isinstance(t, DualMap) and not isinstance(t.parts[1], Zero):
        return operand(t)
    if isinstance(t, PullAt) and isinstance(t.parts[0], Let):
        e = t.parts[0].parts[0]
        if not e.value and e.free.isdisjoint(t.bound(0)):
            return (0, 0)
    return None


def plugged(t: Term, path: tuple[int, ...], part: Term) -> Term:
    """The term with another part at the path."""
    first, *rest = path
    return t.with_(first, plugged(t.parts[first], tuple(rest), part) if rest else part)


class Reducer:
    """A closed term and its context, stepped; `fuel` is how often recursions may unfold.

    >>> from lineara.calculus.program import term
    >>> from lineara.calculus.show import show
    >>> r = Reducer(term("pull(\\\\x. x * x; \\\\_. covec(1)) 3"))
    >>> r.run()
    >>> show(r.term())
    'covec(6)'
    """

    def __init__(self, term: Term, fuel: int = FUEL) -> None:
        if term.free:
            free = ", ".join(sorted(term.free))
            raise CalculusError(f"only a closed term is reduced, and {free} is free here")
        self.frames: list[tuple[Term, tuple[int, ...]]] = []
        self.at = term
        self.fresh = Fresh(term)
        self.fuel = self.filled = fuel
        self.steps = self.calls = self.vjps = 0

    def term(self) -> Term:
        """The whole term."""
        t = self.at
        for parent, path in reversed(self.frames):
            t = plugged(parent, path, t)
        return t

    def path(self) -> tuple[int, ...]:
        """Where the redex is."""
        return tuple([i for _, path in self.frames for i in path])

    def seek(self) -> bool:
        """Go to the redex; False if the whole term is a value."""
        while True:
            if self.at.value:
                if not self.frames:
                    return False
                parent, path = self.frames.pop()
                self.at = plugged(parent, path, self.at)
                continue
            path = focus(self.at)
            if path is None:
                return True
            self.frames.append((self.at, path))
            for i in path:
                self.at = self.at.parts[i]

    def step(self) -> Step | None:
        """One step, or None if the term is a value."""
        if not self.seek():
            return None
        redex = self.at
        rule, found = self.contract(redex)
        done = Step(rule, self.path(), redex, found)
        self.at = found
        self.steps += 1
        return done

    def run(self) -> None:
        """Step until there is a value."""
        while self.step() is not None:
            pass

    def __iter__(self) -> Iterator[Step]:
        """The steps that are left."""
        while (done := self.step()) is not None:
            yield done

    # --- redexes ----------------------------------------------------------------------------------

    def contract(self, t: Term) -> tuple[Rule, Term]:
        """The rule of a redex, and what it becomes."""
        rule = _REDEXES.get(type(t))
        if rule is None:
            raise AssertionError(f"{type(t).__name__} is stuck")
        return rule(self, t)

    def unfold(self, f: Fix) -> Lam:
        """A recursion once unfolded; fuel is spent."""
        if self.fuel == 0:
            raise exhausted(f.own, self.filled)
        self.fuel -= 1
        return as_lambda(f, self.fresh)

    def _app(self, t: Term) -> tuple[Rule, Term]:
        f, a = t.parts
        match f:
            case Lam((body,), x):
                return BETA, subst(body, {x: a})
            case Fix():
                unfolded = self.unfold(f)
                return UNFOLD, subst(unfolded.parts[0], {unfolded.name: a})
            case Zero():
                return ZERO, Zero((), t.type)
            case Sum(parts):
                return SUMS, Sum(tuple([app(p, a) for p in parts]))
            case JFun((s,), symbol):
                self.calls += 1
                return JACOBIAN, structure(symbol_jvp(symbol, numbers_of(a), numbers_of(s)), t.type)
            case J((g, d)):
                body = as_lambda(g, self.fresh)
                here = (body.name, body.source)
                made = JAt((body.parts[0], d, a), (here,))
                return FORWARD, divide(made, self.fresh, raw=True).term()
            case Pull((g, w)):
                body = as_lambda(g, self.fresh)
                x = (self.fresh(body.name), body.source)  # no binder within can hide it
                series = divide(subst(body.parts[0], {body.name: var(x)}), self.fresh).term()
                return DIVIDE, Pick((PullAt((series, w, a), (x,)),))
        raise AssertionError(f"{type(f).__name__} is no function value")

    def _let(self, t: Term) -> tuple[Rule, Term]:
        assert isinstance(t, Let)
        return LET, subst(t.parts[1], {t.name: t.parts[0]})

    def _projection(self, t: Term) -> tuple[Rule, Term]:
        return PROJECTION, t.parts[0].parts[0 if isinstance(t, Fst) else 1]

    def _symbol(self, t: Term) -> tuple[Rule, Term]:
        assert isinstance(t, Fun)
        self.calls += 1
        return SYMBOL, structure(symbol_value(t.symbol, numbers_of(t.parts[0])), t.type)

    def _zero(self, t: Term) -> tuple[Rule, Term]:
        if t.type == R:
            return ZERO, Literal((), Still(0.0))
        assert isinstance(t.type, Product)
        return ZERO, Pair((Zero((), t.type.left), Zero((), t.type.right)))

    def _sum(self, t: Term) -> tuple[Rule, Term]:
        return SUMS, added(t.parts)

    def _at(self, t: Term) -> tuple[Rule, Term]:
        return PAIRING, paired(*t.parts)

    def _scale(self, t: Term) -> tuple[Rule, Term]:
        return SCALING, scaled(t.parts[0], t.parts[1], self.fresh)

    def _covec(self, t: Term) -> tuple[Rule, Term]:
        return COVECTOR, Copair(tuple([Covec((p,)) for p in t.parts[0].parts]))

    def _if(self, t: Term) -> tuple[Rule, Term]:
        c, a, b = t.parts
        return CHOICE, a if isinstance(c, Literal) and c.held else b

    def _list(self, t: Term) -> tuple[Rule, Term]:
        return LISTS, of_list(t)

    def _dual(self, t: Term) -> tuple[Rule, Term]:
        assert isinstance(t, DualMap)
        return transposed(t.parts[0]), transpose(t, self.fresh, self._numbers)

    def _numbers(self, j: Term, r: Term, k: Term) -> Term:
        assert isinstance(j, JFun)
        self.vjps += 1
        return covector(j.symbol, r, k)

    def _jat(self, t: Term) -> tuple[Rule, Term]:
        return FORWARD, divide(t, self.fresh, raw=True).term()

    def _pick(self, t: Term) -> tuple[Rule, Term]:
        return PICK, written(t.parts[0].parts[0])

    # --- the pullback of a series -----------------------------------------------------------------

    def _pull_at(self, t: Term) -> tuple[Rule, Term]:
        assert isinstance(t, PullAt)
        series, w, *at = t.parts
        names = [x for x, _ in t.names]
        if not isinstance(series, Let):
            found: list[Term] = [Zero((), Dual(s)) for _, s in t.names]
            if isinstance(series, Var):
                i = names.index(series.name)
                found[i] = app(w, at[i])
            return VARIABLE, Cotangents(tuple(found))
        e, rest, y = series.parts[0], series.parts[1], series.name
        if e.value and not e.free:
            return INACTIVE, t.with_(0, subst(rest, {y: e}))
        values = dict(zip(names, at, strict=True))
        joined = self._joined(e, values)
        if joined is not None:
            rule, body = joined
            return rule, t.with_(0, _spliced(y, divide(body, self.fresh), rest))
        tangents: dict[str, Term] = {x: Var((), f"d{x}", s) for x, s in t.names}
        d = derivative(e, tangents, self.fresh)
        here = subst(e, values)
        if d is None or is_zero(d):
            return INACTIVE, t.with_(0, Let((here, rest), y))
        inner = PullAt((rest, w, *at, here), (*t.names, (y, e.type)))
        binders = tuple([(f"d{x}", s) for x, s in t.names])
        return rule_of(e), Back((subst(d, values), inner), binders)

    def _joined(self, e: Term, values: dict[str, Term]) -> tuple[Rule, Term] | None:
        """What an elementary term stands for that can join the series, or None."""
        match e:
            case App((f, a)) if not f.free:
                body = self.unfold(f) if isinstance(f, Fix) else as_lambda(f, self.fresh)
                return INLINE, app(body, a)
            case If((c, a, b)):
                c = values[c.name] if isinstance(c, Var) else c
                assert isinstance(c, Literal)
                return CHOOSE, a if c.held else b
        return None

    def _back(self, t: Term) -> tuple[Rule, Term]:
        assert isinstance(t, Back)
        s, n = t.parts
        *own, k = n.parts
        names = frozenset([x for x, _ in t.names])
        found = []
        for (x, source), have in zip(t.names, own, strict=True):
            if x in s.free and not isinstance(k, Zero):
                one = zeroed(s, names - {x})
                have = total([have, dual((x, source), one, k)], Dual(source))
            found.append(have)
        return BACK, Cotangents(tuple(found))


def _spliced(y: str, series: Any, rest: Term) -> Term:
    """`rest` after the series, its result under the name y."""
    found = Let((series.result, rest), y)
    if is_atom(series.result):
        found = subst(rest, {y: series.result})
    for name, e in reversed(series.bindings):
        found = Let((e, found), name)
    return found


_REDEXES: dict[type, Callable[[Reducer, Any], tuple[Rule, Term]]] = {
    App: Reducer._app,
    Let: Reducer._let,
    Fst: Reducer._projection,
    Snd: Reducer._projection,
    Fun: Reducer._symbol,
    Zero: Reducer._zero,
    Sum: Reducer._sum,
    At: Reducer._at,
    Scale: Reducer._scale,
    Covec: Reducer._covec,
    If: Reducer._if,
    DualMap: Reducer._dual,
    JAt: Reducer._jat,
    Pick: Reducer._pick,
    PullAt: Reducer._pull_at,
    Back: Reducer._back,
    **dict.fromkeys((Cons, Head, Tail, IsNil), Reducer._list),
}
