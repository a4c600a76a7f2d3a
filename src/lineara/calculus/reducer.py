r"""The reducer: one redex at a time, call by value, left to right  [Pullback].

    C[redex] -> C[contractum]        `focus` says where evaluation goes on in a term, or nowhere

`focus` is a function, so a closed term is a value or C[redex] for exactly one C and redex.  A
reducer holds C as its frames, from the inside, and works at their end; nothing is searched twice.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from lineara.calculus import terms as tm
from lineara.calculus.canonical_values import added, of_list, paired, scaled, written
from lineara.calculus.divide import divide, is_atom
from lineara.calculus.jacobian import as_lambda, derivative
from lineara.calculus.machine import exhausted
from lineara.calculus.substitution import Fresh, subst
from lineara.calculus.term_numbers import covector, numbers_of, structure, symbol_jvp, symbol_value
from lineara.calculus.transpose import operand, transpose, zeroed
from lineara.calculus.types import Dual, Product, R
from lineara.errors import CalculusError

FUEL = 100_000


class Rule(NamedTuple):
    """A rule's number in the paper or the spec, and its name."""

    number: str
    name: str


class Frame(NamedTuple):
    """A term and the path to its part in which evaluation goes on; the innermost of a context.

    Contexts share the frames outside, so a step that keeps its context keeps no copy of the term.
    """

    parent: tm.Term
    path: tuple[int, ...]
    outer: "Frame | None"


def path_of(context: Frame | None) -> tuple[int, ...]:
    """The path from the whole term to the hole of a context."""
    paths: list[tuple[int, ...]] = []
    while context is not None:
        paths.append(context.path)
        context = context.outer
    return tuple([i for path in reversed(paths) for i in path])


def filled(context: Frame | None, t: tm.Term) -> tm.Term:
    """C[t], the term in its context."""
    while context is not None:
        t = plugged(context.parent, context.path, t)
        context = context.outer
    return t


class Step(NamedTuple):
    """A step C[redex] -> C[contractum] and its rule; the whole term is put together on request."""

    rule: Rule
    context: Frame | None
    redex: tm.Term
    contractum: tm.Term


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
CONQUER: dict[type, Rule] = {
    tm.Var: Rule("10", "variable"),
    tm.Sum: Rule("11", "sum"),
    tm.Fst: Rule("12", "projection"),
    tm.Snd: Rule("12", "projection"),
    tm.JFun: Rule("13", "Jacobian"),
    tm.Pull: Rule("14", "pullback"),
    tm.Covec: Rule("14", "covector"),
    tm.Fun: Rule("15", "function symbol"),
    tm.DualMap: Rule("16", "dual map"),
    tm.Lam: Rule("18", "abstraction"),
    tm.Fix: Rule("18", "abstraction"),
    tm.App: Rule("19", "application"),
    tm.Pair: Rule("20", "pair"),
    tm.List: Rule("20", "list"),
    tm.Cons: Rule("20", "list"),
    tm.Head: Rule("12", "projection"),
    tm.Tail: Rule("12", "projection"),
}
BILINEAR = Rule("21", "bilinear")


def rule_of(e: tm.Term) -> Rule:
    """The rule by which an elementary term is pulled back."""
    if isinstance(e, tm.Pull) and e.parts[0].free:
        return Rule("17", "pullback along what moves")
    return CONQUER.get(type(e), BILINEAR)


_TRANSPOSED = {
    tm.Var: "variable", tm.Sum: "sum", tm.Pair: "pair", tm.Fst: "projection", tm.Snd: "projection",
    tm.App: "application", tm.JFun: "Jacobian", tm.J: "derivative", tm.Lam: "abstraction",
    tm.DualMap: "dual map", tm.Pull: "pullback", tm.Covec: "covector", tm.Copair: "covector",
    tm.Ev: "evaluation", tm.At: "pairing", tm.Scale: "multiple", tm.Probe: "probe",
    tm.JAt: "derivative", tm.Let: "let", tm.Fun: "symbol", tm.If: "choice",
}  # fmt: skip


def transposed(s: tm.Term) -> Rule:
    """The rule by which a linear map is transposed."""
    return Rule("5", f"transposed {_TRANSPOSED.get(type(s), 'list')}")


# --- contexts -------------------------------------------------------------------------------------

_PATHS: dict[type, Callable[[tm.Term], tuple[int, ...]]] = {
    tm.Let: lambda t: (0,),
    tm.If: lambda t: (0,),
    tm.DualMap: lambda t: (1,),
    tm.JAt: lambda t: tuple(range(1, len(t.parts))),
    tm.PullAt: lambda t: tuple(range(2, len(t.parts))),
    tm.Back: lambda t: (1,),
}


def focus(t: tm.Term) -> tuple[int, ...] | None:
    """The path to the part in which evaluation goes on; None: the term itself is the redex."""
    evaluated = _PATHS.get(type(t))
    for i in range(len(t.parts)) if evaluated is None else evaluated(t):
        if not t.parts[i].value and not (isinstance(t, tm.Sum) and isinstance(t.parts[i], tm.Zero)):
            return (i,)
    if isinstance(t, tm.DualMap) and not isinstance(t.parts[1], tm.Zero):
        return operand(t)
    if isinstance(t, tm.PullAt) and isinstance(t.parts[0], tm.Let):
        e = t.parts[0].parts[0]
        if not e.value and e.free.isdisjoint(t.bound(0)):
            return (0, 0)
    return None


def plugged(t: tm.Term, path: tuple[int, ...], part: tm.Term) -> tm.Term:
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

    vjps: int
    steps: int
    given: int
    fuel: int
    calls: int

    def __init__(self, term: tm.Term, fuel: int = FUEL) -> None:
        if term.free:
            free = ", ".join(sorted(term.free))
            raise CalculusError(f"only a closed term is reduced, and {free} is free here")
        self.context: Frame | None = None
        self.at: tm.Term = term
        self.fresh: Fresh = Fresh(term)
        self.fuel = self.given = fuel
        self.steps = self.calls = self.vjps = 0

    def term(self) -> tm.Term:
        """The whole term."""
        return filled(self.context, self.at)

    def seek(self) -> bool:
        """Go to the redex; False if the whole term is a value."""
        while True:
            if self.at.value:
                if self.context is None:
                    return False
                parent, path, self.context = self.context
                self.at = plugged(parent, path, self.at)
                continue
            path = focus(self.at)
            if path is None:
                return True
            self.context = Frame(self.at, path, self.context)
            for i in path:
                self.at = self.at.parts[i]

    def step(self) -> Step | None:
        """One step, or None if the term is a value."""
        if not self.seek():
            return None
        redex = self.at
        rule, contracted = self.contract(redex)
        done = Step(rule, self.context, redex, contracted)
        self.at = contracted
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

    def contract(self, t: tm.Term) -> tuple[Rule, tm.Term]:
        """The rule of a redex, and what it becomes."""
        rule = _REDEXES.get(type(t))
        if rule is None:
            raise AssertionError(f"{type(t).__name__} is stuck")
        return rule(self, t)

    def unfold(self, f: tm.Fix) -> tm.Lam:
        """A recursion once unfolded; fuel is spent."""
        if self.fuel == 0:
            raise exhausted(f.own, self.given)
        self.fuel -= 1
        return as_lambda(f, self.fresh)

    def forward(self, g: tm.Term, d: tm.Term, a: tm.Term) -> tm.Term:
        """(J(g; d)) a, written out."""
        body = as_lambda(g, self.fresh)
        derivative = tm.JAt((body.parts[0], d, a), ((body.name, body.source),))
        return divide(derivative, self.fresh, raw=True).term()

    def _app(self, t: tm.Term) -> tuple[Rule, tm.Term]:
        f, a = t.parts
        match f:
            case tm.Lam((body,), x):
                return BETA, subst(body, {x: a})
            case tm.Fix():
                unfolded = self.unfold(f)
                return UNFOLD, subst(unfolded.parts[0], {unfolded.name: a})
            case tm.Zero():
                return ZERO, tm.Zero((), t.type)
            case tm.Sum(parts):
                return SUMS, tm.Sum(tuple([tm.app(p, a) for p in parts]))
            case tm.JFun((s,), symbol):
                self.calls += 1
                return JACOBIAN, structure(symbol_jvp(symbol, numbers_of(a), numbers_of(s)), t.type)
            case tm.J((g, d)):
                return FORWARD, self.forward(g, d, a)
            case tm.Pull((g, w)):
                body = as_lambda(g, self.fresh)
                x = (self.fresh(body.name), body.source)  # no binder within can hide it
                series = divide(subst(body.parts[0], {body.name: tm.var(x)}), self.fresh).term()
                return DIVIDE, tm.Pick((tm.PullAt((series, w, a), (x,)),))
        raise AssertionError(f"{type(f).__name__} is no function value")

    def _let(self, t: tm.Term) -> tuple[Rule, tm.Term]:
        assert isinstance(t, tm.Let)
        return LET, subst(t.parts[1], {t.name: t.parts[0]})

    def _projection(self, t: tm.Term) -> tuple[Rule, tm.Term]:
        return PROJECTION, t.parts[0].parts[0 if isinstance(t, tm.Fst) else 1]

    def _symbol(self, t: tm.Term) -> tuple[Rule, tm.Term]:
        assert isinstance(t, tm.Fun)
        self.calls += 1
        return SYMBOL, structure(symbol_value(t.symbol, numbers_of(t.parts[0])), t.type)

    def _zero(self, t: tm.Term) -> tuple[Rule, tm.Term]:
        if t.type == R:
            return ZERO, tm.Literal((), tm.ZeroTangent(0.0))
        assert isinstance(t.type, Product)
        return ZERO, tm.Pair((tm.Zero((), t.type.left), tm.Zero((), t.type.right)))

    def _sum(self, t: tm.Term) -> tuple[Rule, tm.Term]:
        return SUMS, added(t.parts)

    def _at(self, t: tm.Term) -> tuple[Rule, tm.Term]:
        return PAIRING, paired(*t.parts)

    def _scale(self, t: tm.Term) -> tuple[Rule, tm.Term]:
        return SCALING, scaled(t.parts[0], t.parts[1], self.fresh)

    def _covec(self, t: tm.Term) -> tuple[Rule, tm.Term]:
        return COVECTOR, tm.Copair(tuple([tm.Covec((p,)) for p in t.parts[0].parts]))

    def _if(self, t: tm.Term) -> tuple[Rule, tm.Term]:
        c, a, b = t.parts
        return CHOICE, a if isinstance(c, tm.Literal) and c.held else b

    def _list(self, t: tm.Term) -> tuple[Rule, tm.Term]:
        return LISTS, of_list(t)

    def _dual(self, t: tm.Term) -> tuple[Rule, tm.Term]:
        assert isinstance(t, tm.DualMap)
        return transposed(t.parts[0]), transpose(t, self.fresh, self._numbers)

    def _numbers(self, j: tm.Term, r: tm.Term, k: tm.Term) -> tm.Term:
        assert isinstance(j, tm.JFun)
        self.vjps += 1
        return covector(j.symbol, r, k)

    def _jat(self, t: tm.Term) -> tuple[Rule, tm.Term]:
        return FORWARD, divide(t, self.fresh, raw=True).term()

    def _pick(self, t: tm.Term) -> tuple[Rule, tm.Term]:
        return PICK, written(t.parts[0].parts[0])

    # --- the pullback of a series -----------------------------------------------------------------

    def _pull_at(self, t: tm.Term) -> tuple[Rule, tm.Term]:
        assert isinstance(t, tm.PullAt)
        series, w, *at = t.parts
        names = [x for x, _ in t.names]
        if not isinstance(series, tm.Let):
            cotangents: list[tm.Term] = [tm.Zero((), Dual(s)) for _, s in t.names]
            if isinstance(series, tm.Var):
                i = names.index(series.name)
                cotangents[i] = tm.app(w, at[i])
            return VARIABLE, tm.Cotangents(tuple(cotangents))
        e, rest, y = series.parts[0], series.parts[1], series.name
        if e.value and not e.free:
            return INACTIVE, t.with_(0, subst(rest, {y: e}))
        values = dict(zip(names, at, strict=True))
        joined = self._joined(e, values)
        if joined is not None:
            rule, body = joined
            return rule, t.with_(0, _spliced(y, divide(body, self.fresh), rest))
        moving = [(x, s) for x, s in t.names if x in e.free]
        tangents: dict[str, tm.Term] = {x: tm.Var((), f"d{x}", s) for x, s in moving}
        d = derivative(e, tangents, self.fresh)
        here = subst(e, values)
        if d is None or tm.is_zero(d):
            return INACTIVE, t.with_(0, tm.Let((here, rest), y))
        inner = tm.PullAt((rest, w, *at, here), (*t.names, (y, e.type)))
        binders = tuple([(f"d{x}", s) for x, s in t.names])
        return rule_of(e), tm.Back((subst(d, values), inner), binders)

    def _joined(self, e: tm.Term, values: dict[str, tm.Term]) -> tuple[Rule, tm.Term] | None:
        """The rule and the term by which a call or a choice joins the series, or None."""
        match e:
            case tm.App((f, a)) if not f.free:
                body = self.unfold(f) if isinstance(f, tm.Fix) else as_lambda(f, self.fresh)
                return INLINE, tm.app(body, a)
            case tm.If((c, a, b)):
                c = values[c.name] if isinstance(c, tm.Var) else c
                assert isinstance(c, tm.Literal)
                return CHOOSE, a if c.held else b
        return None

    def _back(self, t: tm.Term) -> tuple[Rule, tm.Term]:
        assert isinstance(t, tm.Back)
        s, n = t.parts
        *own, k = n.parts
        names = frozenset([x for x, _ in t.names])
        cotangents = []
        for (x, source), have in zip(t.names, own, strict=True):
            if x in s.free and not isinstance(k, tm.Zero):
                one = zeroed(s, names - {x})
                have = tm.total([have, tm.dual((x, source), one, k)], Dual(source))
            cotangents.append(have)
        return BACK, tm.Cotangents(tuple(cotangents))


def _spliced(y: str, series: Any, rest: tm.Term) -> tm.Term:
    """`rest` after the series, its result under the name y."""
    spliced = tm.Let((series.result, rest), y)
    if is_atom(series.result):
        spliced = subst(rest, {y: series.result})
    for name, e in reversed(series.bindings):
        spliced = tm.Let((e, spliced), name)
    return spliced


_REDEXES: dict[type, Callable[[Reducer, Any], tuple[Rule, tm.Term]]] = {
    tm.App: Reducer._app,
    tm.Let: Reducer._let,
    tm.Fst: Reducer._projection,
    tm.Snd: Reducer._projection,
    tm.Fun: Reducer._symbol,
    tm.Zero: Reducer._zero,
    tm.Sum: Reducer._sum,
    tm.At: Reducer._at,
    tm.Scale: Reducer._scale,
    tm.Covec: Reducer._covec,
    tm.If: Reducer._if,
    tm.DualMap: Reducer._dual,
    tm.JAt: Reducer._jat,
    tm.Pick: Reducer._pick,
    tm.PullAt: Reducer._pull_at,
    tm.Back: Reducer._back,
    **dict.fromkeys((tm.Cons, tm.Head, tm.Tail, tm.IsNil), Reducer._list),
}
