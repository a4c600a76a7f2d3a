"""Types for syntax:  Γ ⊢ s : t  by unification.

    takes: Γ ⊢ s1 : t1 ... Γ ⊢ sk : tk   =>   gives: Γ ⊢ construct(s1, ..., sk) : t

What a text leaves out is inferred; a definition is as general as it can be, and each type that it
is used at makes an instance.  What stays open is R.  A sum or a product of integers is that of Int.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from lineara.calculus import terms as tm
from lineara.calculus.symbols import INTEGER, Symbol
from lineara.calculus.syntax import Syntax
from lineara.calculus.types import (
    BOOL,
    DISCRETE,
    INT,
    Arrow,
    Dual,
    Hole,
    ListOf,
    Product,
    R,
    Type,
    fill,
    holes,
    made_of,
    parts,
    show,
)
from lineara.text.language import Source, did_you_mean
from lineara.text.source_location import Place
from lineara.trampoline import Deep

PLAIN: dict[str, Any] = {
    "app": tm.App, "pair": tm.Pair, "fst": tm.Fst, "snd": tm.Snd, "j": tm.J, "pull": tm.Pull,
    "copair": tm.Copair, "ev": tm.Ev, "at": tm.At, "scale": tm.Scale, "if": tm.If, "cons": tm.Cons,
    "head": tm.Head, "tail": tm.Tail, "isnil": tm.IsNil,
}  # fmt: skip

_MENDS = {  # what a part of a construct must be, for its error
    ("app", 0): "only a function is applied; a difference has a space after the minus: x - 1",
    ("app", 1): "this is what the function before it takes",
    ("pull", 0): "pull(t; w) takes a function t",
    ("pull", 1): "the 1-form w maps a result of t to a functional on such results",
    ("j", 0): "J(t; s) takes a function t",
    ("j", 1): "a direction is of the type that the function takes",
    ("at", 0): "K @ S pairs a functional with a vector",
    ("at", 1): "the vector is of the type that the functional is on",
    ("fst", 0): "fst takes a pair",
    ("snd", 0): "snd takes a pair",
    ("if", 0): "a condition is Bool, such as less(x, y)",
    ("if", 2): "both branches have the same type",
    ("copair", 0): "[K|K] is made of two functionals",
    ("copair", 1): "[K|K] is made of two functionals; a list has commas",
    ("scale", 0): "scale(r, S) takes a number first",
}


@dataclass(frozen=True, eq=False, slots=True)
class Definition:
    """A definition of a program, with the most general type that was found for it."""

    name: str
    body: Syntax
    type: Type
    text: Source


Bound = Type | Definition


class Types:
    """What is known of the holes."""

    def __init__(self) -> None:
        self._known: dict[str | int, Type] = {}
        self._count = 0

    def hole(self) -> Hole:
        """A type that is not known yet."""
        self._count += 1
        return Hole(self._count)

    def head(self, t: Type) -> Type:
        """The type, itself no hole if that is known."""
        while isinstance(t, Hole) and t.name in self._known:
            t = self._known[t.name]
        return t

    def whole(self, t: Type) -> Type:
        """The type with all that is known."""
        t = self.head(t)
        return made_of(t, tuple([self.whole(p) for p in parts(t)]))

    def fresh(self, t: Type, own: Mapping[str | int, Type] | None = None) -> Type:
        """The type with other holes."""
        fillings = {h.name: self.hole() for h in holes(t)}
        return fill(t, fillings | dict(own or {}))

    def unify(self, s: Type, t: Type) -> bool:
        """Make two types equal, if that can be."""
        s, t = self.head(s), self.head(t)
        if s == t:
            return True
        if isinstance(s, Hole):
            if s in holes(self.whole(t)):
                return False
            self._known[s.name] = t
            return True
        if isinstance(t, Hole):
            return self.unify(t, s)
        if type(s) is not type(t) or not parts(s):
            return False
        return all([self.unify(p, q) for p, q in zip(parts(s), parts(t), strict=True)])


class Inference:
    """The types of one body, and its term."""

    def __init__(
        self, text: Source, symbols: Mapping[str, Symbol], defined: Mapping[str, Definition]
    ) -> None:
        self.text = text
        self.symbols = symbols
        self.scope: dict[str, list[Bound]] = {name: [d] for name, d in defined.items()}
        self.types: Types = Types()
        self.noted: dict[Syntax, Any] = {}  # the type of a binder, a list, an operator, a use
        self.numeric: list[Syntax] = []  # operators whose operands are R or Int
        self.ground: list[tuple[Syntax, Type]] = []
        self.uses: list[tuple[Syntax, Definition]] = []
        self.places: dict[tm.Term, Place] = {}

    def wrong(self, place: Place, message: str) -> Exception:
        """The error at a place."""
        return self.text.wrong(place, message)

    def expect(self, s: Syntax, wanted: Type, inferred: Type, mend: str = "") -> None:
        """The type of `s` is the one that is wanted."""
        if self.types.unify(wanted, inferred):
            return
        names = Letters()
        said = [names(self.types.whole(t)) for t in (wanted, inferred)]
        self.refuse(s.place, f"expected {said[0]}, found {said[1]}" + (f"; {mend}" if mend else ""))

    def refuse(self, place: Place, message: str) -> NoReturn:
        """The error at a place, raised."""
        raise self.wrong(place, message)

    # --- inference ------------------------------------------------------------------------------

    def infer(self, s: Syntax) -> Deep:
        """The type of a construct."""
        if s.kind in PLAIN:
            return (yield self._plain(s, PLAIN[s.kind], s.parts))
        return (yield getattr(self, f"_{s.kind}")(s))

    def _plain(self, s: Syntax, construct: type, operands: tuple[Syntax, ...]) -> Deep:
        own: dict[str | int, Type] = {}
        for i, (pattern, p) in enumerate(zip(construct.takes, operands, strict=True)):
            inferred = yield self.infer(p)
            for h in holes(pattern):
                own.setdefault(h.name, self.types.hole())
            self.expect(p, fill(pattern, own), inferred, _MENDS.get((s.kind, i), ""))
        for h in holes(construct.gives):
            own.setdefault(h.name, self.types.hole())
        return fill(construct.gives, own)

    def _under(self, names: Iterable[tuple[str, Bound]], s: Syntax) -> Deep:
        """The type of `s` where the names are bound."""
        names = list(names)
        for name, t in names:
            self.scope.setdefault(name, []).append(t)
        inferred = yield self.infer(s)
        for name, _ in names:
            self.scope[name].pop()
        return inferred

    def _literal(self, s: Syntax) -> Deep:
        return BOOL if type(s.data) is bool else INT if type(s.data) is int else R
        yield

    def _zero(self, s: Syntax) -> Deep:
        if any([t in DISCRETE for t in _bases(s.data)]):
            self.refuse(s.place, f"{show(s.data)} has no zero: nothing in it moves")
        return s.data
        yield

    def _var(self, s: Syntax) -> Deep:
        types = self.scope.get(s.data)
        if not types:
            if s.data in self.symbols:  # the symbol as a function
                return Arrow(self.symbols[s.data].takes, self.symbols[s.data].gives)
            known = [name for name, bound in self.scope.items() if bound]
            self.refuse(s.place, f"{s.data} is not known here{did_you_mean(s.data, known)}")
        bound = self.scope[s.data][-1]
        if isinstance(bound, Definition):
            t = self.types.fresh(bound.type)
            self.noted[s] = (bound, t)
            self.uses.append((s, bound))
            return t
        return bound
        yield

    def _lam(self, s: Syntax) -> Deep:
        t = s.data.type or self.types.hole()
        self.noted[s] = t
        return Arrow(t, (yield self._under([(s.data.name, t)], s.parts[0])))

    def _let(self, s: Syntax) -> Deep:
        t = yield self.infer(s.parts[0])
        return (yield self._under([(s.data, t)], s.parts[1]))

    def _rec(self, s: Syntax) -> Deep:
        own, name, source, stated = s.data
        t = Arrow(source or self.types.hole(), self.types.hole())
        if stated is not None:
            self.expect(s, stated, t, "the type after the colon is that of the function")
        self.noted[s] = t
        inferred = yield self._under([(own, t), (name, t.source)], s.parts[0])
        self.expect(s.parts[0], t.target, inferred, f"this is what {own} gives elsewhere")
        return t

    def _norec(self, s: Syntax) -> Deep:
        self.refuse(
            s.place, f"{s.data} takes nothing, so it cannot be recursive; write rec {s.data} x"
        )
        yield

    def _dual(self, s: Syntax) -> Deep:
        t = s.data.type or self.types.hole()
        self.noted[s] = t
        body = yield self._under([(s.data.name, t)], s.parts[0])
        k = yield self.infer(s.parts[1])
        self.expect(s.parts[1], Dual(body), k, "the functional is on what the linear map gives")
        return Dual(t)

    def _covec(self, s: Syntax) -> Deep:
        t = yield self.infer(s.parts[0])
        self.ground.append((s, t))
        return Dual(t)

    def _probe(self, s: Syntax) -> Deep:
        at = yield self.infer(s.parts[0])
        for d in s.parts[1:-1]:
            self.expect(d, at, (yield self.infer(d)), "a direction is as its point")
        k, of = (yield self.infer(s.parts[-1])), self.types.hole()
        self.expect(s.parts[-1], Dual(of), k, "V |> K probes a function at V and gives it to K")
        return Dual(Arrow(at, of))

    def _sum(self, s: Syntax) -> Deep:
        t = yield self.infer(s.parts[0])
        for p in s.parts[1:]:
            self.expect(p, t, (yield self.infer(p)), "summands have one type")
        self.noted[s] = t
        return t

    def _infix(self, s: Syntax) -> Deep:
        t = self.types.hole()
        for p in s.parts:
            self.expect(p, t, (yield self.infer(p)), f"the operands of {s.data} have one type")
        self.noted[s] = t
        self.numeric.append(s)
        return t

    def _within(self, s: Syntax) -> Deep:
        return (yield self.infer(s.parts[0]))

    def _ann(self, s: Syntax) -> Deep:
        inferred = yield self.infer(s.parts[0])
        self.expect(s.parts[0], s.data, inferred, "this is the type that the text states")
        return s.data

    def _list(self, s: Syntax) -> Deep:
        item = self.types.hole()
        wanted = Dual(item) if s.data else item
        for p in s.parts:
            self.expect(p, wanted, (yield self.infer(p)), "the items of a list have one type")
        self.noted[s] = item
        return Dual(ListOf(item)) if s.data else ListOf(item)

    def symbol(self, s: Syntax) -> Symbol:
        """The function symbol that a construct names."""
        if s.data not in self.symbols:
            mend = did_you_mean(s.data, self.symbols)
            self.refuse(s.place, f"there is no function symbol {s.data}{mend}")
        return self.symbols[s.data]

    def is_applied(self, s: Syntax) -> bool:
        """Whether `f(t)` applies a variable; if it could be both, that is an error."""
        bound = bool(self.scope.get(s.data))
        if bound and s.data in self.symbols:
            self.refuse(
                s.place,
                f"{s.data}(…) is the function symbol, but {s.data} is bound here too; "
                f"apply the variable with a space, {s.data} (…), or give it another name",
            )
        if not bound and s.data not in self.symbols:
            known = {*self.symbols, *[n for n, b in self.scope.items() if b]}
            self.refuse(s.place, f"there is no function {s.data}{did_you_mean(s.data, known)}")
        return bound

    def _call(self, s: Syntax) -> Deep:
        if self.is_applied(s):
            applied = Syntax("app", (Syntax("var", (), s.place, s.data), s.parts[0]), s.place)
            self.noted[s] = applied
            return (yield self.infer(applied))
        symbol, inferred = self.symbol(s), (yield self.infer(s.parts[0]))
        self.expect(s.parts[0], symbol.takes, inferred, f"{s.data} takes {show(symbol.takes)}")
        return symbol.gives

    def _jfun(self, s: Syntax) -> Deep:
        symbol, inferred = self.symbol(s), (yield self.infer(s.parts[0]))
        if not symbol.moves:
            self.refuse(
                s.place, f"{symbol} is locally constant, so J{{{symbol}}} is zero; leave it out"
            )
        self.expect(s.parts[0], symbol.takes, inferred, f"a direction of {s.data}")
        return Arrow(symbol.takes, symbol.gives)

    def close_types(self) -> None:
        """Operands and covectors whose types are open get R; any other type is an error."""
        for s in self.numeric:
            t = self.types.head(self.noted[s])
            if isinstance(t, Hole):
                self.types.unify(t, R)
            elif t != R and not (t == INT and s.data in INTEGER):
                mend = "scale(r, S) multiplies any vector, a + scale(-1, b) is a difference"
                self.refuse(
                    s.place, f"{s.data} is for numbers, found {show(self.types.whole(t))}; {mend}"
                )
        for s, t in self.ground:
            for h in holes(self.types.whole(t)):
                self.types.unify(h, R)
            whole = self.types.whole(t)
            if any([not isinstance(p, Product) and p != R for p in _tree(whole)]):
                mend = "on functions there are probes, V |> K, on lists covs[K, K]"
                self.refuse(
                    s.place, f"covec is for R and its products, found {show(whole)}; {mend}"
                )

    # --- terms ----------------------------------------------------------------------------------

    def concrete(self, t: Type) -> Type:
        """The type with R where nothing is known."""
        t = self.types.whole(t)
        return fill(t, {h.name: R for h in holes(t)})


class Letters:
    """Types with their holes as letters, the same ones in one message."""

    def __init__(self) -> None:
        self.known: dict[str | int, Type] = {}

    def __call__(self, t: Type) -> str:
        """The text of a type."""
        for h in holes(t):
            self.known.setdefault(h.name, Hole("abcdefghijklmnopqrstuvwxyz"[len(self.known) % 26]))
        return show(fill(t, self.known)).replace("?", "")


def _bases(t: Type) -> list[Type]:
    return [p for p in _tree(t) if not parts(p)]


def _tree(t: Type) -> list[Type]:
    """The types in a type, of products and lists alone those that it holds."""
    if isinstance(t, Product | ListOf):
        return [t, *[q for p in parts(t) for q in _tree(p)]]
    return [t]
