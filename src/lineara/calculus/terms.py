"""Terms: frozen, each knows its type, its free names, and whether it is a value.

    t ::= x | r | \\x:s.t | t t | <t,t> | fst t | snd t | f(t) | 0:s | t + ... + t | let x = t in t
        | J{f}(t) | J(t;t) | dual(\\x:s.t; t) | pull(t; t)                                [Pullback]
        | covec(t) | [t|t] | t |> t | (t; t, ..., t |>' t) | ev(t) | t @ t | scale(t, t)
        | 2i | true | if t then t else t | rec f x:s. t | [t, ..., t] | cons | head | tail | isnil

A plain construct states its type as a pattern, `takes` and `gives`: inference, construction and the
checker all read it there.  The last line of terms is conservative: nothing of it has a derivative
rule that is not that of a pair or a choice.  While a term is reduced there are five more, which no
file can write: `PullAt`, `Back`, `Cotangents`, `Pick`, and `JAt`, a derivative at an environment.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from lineara.calculus.symbols import Symbol
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
    Row,
    Type,
    fill,
    match,
    show,
)

A, B = Hole("a"), Hole("b")
Binder = tuple[str, Type]


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Term:
    """What every term has: its parts, and three facts that are known when it is made."""

    within: ClassVar[int] = 0  # the part that sees the names that a construct binds

    parts: tuple["Term", ...]
    type: Type = field(init=False)
    free: frozenset[str] = field(init=False)
    value: bool = field(init=False)

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "type", self._type())
        put(self, "free", self._free())
        put(self, "value", self._value())

    def _type(self) -> Type:
        raise NotImplementedError(type(self).__name__)

    def _free(self) -> frozenset[str]:
        free: frozenset[str] = frozenset()
        for i, p in enumerate(self.parts):
            if p.free:
                bound = self.bound(i)
                free |= p.free.difference(bound) if bound else p.free
        return free

    def _value(self) -> bool:
        return False

    def bound(self, i: int) -> tuple[str, ...]:
        """The names that part `i` sees and that are bound here."""
        return tuple([x for x, _ in self.binders()]) if i == self.within else ()

    def binders(self) -> tuple[Binder, ...]:
        """The names that are bound here, and their types."""
        return ()

    def called(self, names: Mapping[str, str]) -> Any:
        """The same construct with other names for its binders, its parts as they are."""
        return self

    def on(self, parts: tuple["Term", ...]) -> "Term":
        """The same construct on other parts."""
        return type(self)(parts)

    def with_(self, i: int, part: "Term") -> "Term":
        """The same with another part `i`."""
        return self.on((*self.parts[:i], part, *self.parts[i + 1 :]))


class _Bare:
    """A construct with its names, waiting for its parts."""

    def __init__(self, kind: Callable[..., Term], *names: Any) -> None:
        self.on = lambda parts: kind(parts, *names)


def _all_values(parts: Sequence[Term]) -> bool:
    return all([p.value for p in parts])


# --- names, numbers, functions --------------------------------------------------------------------


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Var(Term):
    """A variable; it carries its type."""

    name: str
    stated: Type

    def _type(self) -> Type:
        return self.stated

    def _free(self) -> frozenset[str]:
        return frozenset((self.name,))

    def on(self, parts: tuple[Term, ...]) -> Term:
        """Itself."""
        return self


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Literal(Term):
    """A number, an integer or a truth value."""

    held: Any

    def _type(self) -> Type:
        kind = type(self.held)
        return BOOL if kind is bool else INT if kind is int else R

    def _value(self) -> bool:
        return True

    def on(self, parts: tuple[Term, ...]) -> Term:
        """Itself."""
        return self


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Zero(Term):
    """0:s, a value where there is no numeral for it."""

    stated: Type

    def _type(self) -> Type:
        return self.stated

    def _value(self) -> bool:
        return not isinstance(self.stated, Product) and self.stated != R

    def on(self, parts: tuple[Term, ...]) -> Term:
        """Itself."""
        return self


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Lam(Term):
    r"""\x:s. P."""

    name: str
    source: Type

    def _type(self) -> Type:
        return Arrow(self.source, self.parts[0].type)

    def _value(self) -> bool:
        return True

    def binders(self) -> tuple[Binder, ...]:
        """The formal."""
        return ((self.name, self.source),)

    def called(self, names: Mapping[str, str]) -> Any:
        """Another formal."""
        return _Bare(Lam, names.get(self.name, self.name), self.source)

    def on(self, parts: tuple[Term, ...]) -> Term:
        """The same formal, another body."""
        return Lam(parts, self.name, self.source)


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Fix(Term):
    """Rec f x:s. P : s -> t, where P may call f; unfolding costs fuel."""

    own: str
    name: str
    stated: Arrow

    def _type(self) -> Type:
        assert self.parts[0].type == self.stated.target, (
            f"rec {self.own}: its body changes its type"
        )
        return self.stated

    def _value(self) -> bool:
        return True

    def binders(self) -> tuple[Binder, ...]:
        """The function itself and its formal."""
        return ((self.own, self.stated), (self.name, self.stated.source))

    def called(self, names: Mapping[str, str]) -> Any:
        """Other names."""
        own, name = names.get(self.own, self.own), names.get(self.name, self.name)
        return _Bare(Fix, own, name, self.stated)

    def on(self, parts: tuple[Term, ...]) -> Term:
        """The same names, another body."""
        return Fix(parts, self.own, self.name, self.stated)


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Let(Term):
    """Let x = E in P."""

    name: str

    def _type(self) -> Type:
        return self.parts[1].type

    within: ClassVar[int] = 1

    def binders(self) -> tuple[Binder, ...]:
        """The name, with the type of what it names."""
        return ((self.name, self.parts[0].type),)

    def called(self, names: Mapping[str, str]) -> Any:
        """Another name."""
        return _Bare(Let, names.get(self.name, self.name))

    def on(self, parts: tuple[Term, ...]) -> Term:
        """The same name."""
        return Let(parts, self.name)


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class DualMap(Term):
    r"""dual(\x:s. S; K): the functional K after the linear map S."""

    name: str
    source: Type

    def _type(self) -> Type:
        body, k = self.parts
        assert k.type == Dual(body.type), f"dual: {show(body.type)} meets {show(k.type)}"
        return Dual(self.source)

    def binders(self) -> tuple[Binder, ...]:
        """The argument of the linear map."""
        return ((self.name, self.source),)

    def called(self, names: Mapping[str, str]) -> Any:
        """Another argument."""
        return _Bare(DualMap, names.get(self.name, self.name), self.source)

    def on(self, parts: tuple[Term, ...]) -> Term:
        """The same argument."""
        return DualMap(parts, self.name, self.source)


# --- plain constructs -----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Plain(Term):
    """A construct that binds nothing: its typing rule is `takes => gives`."""

    takes: ClassVar[tuple[Type, ...]]
    gives: ClassVar[Type]

    def _type(self) -> Type:
        fillings: dict[str | int, Type] = {}
        for pattern, part in zip(self.takes, self.parts, strict=True):
            if not match(pattern, part.type, fillings):
                wanted = show(fill(pattern, fillings))
                raise AssertionError(f"{type(self).__name__}: {show(part.type)} is no {wanted}")
        return fill(self.gives, fillings)


def _plain(name: str, takes: tuple[Type, ...], gives: Type, doc: str, value: object = None) -> Any:
    """A plain construct; `value` says when it is one."""
    body = {"takes": takes, "gives": gives, "__doc__": doc, "__slots__": ()}
    body["__module__"] = __name__
    if value is not None:
        body["_value"] = value
    return type(name, (Plain,), body)


def _formed(self: Term) -> bool:
    return _all_values(self.parts)


App: Any = _plain("App", (Arrow(A, B), A), B, "S P: a function applied.")
Pair: Any = _plain("Pair", (A, B), Product(A, B), "<P, Q>.", _formed)
Fst: Any = _plain("Fst", (Product(A, B),), A, "fst S.")
Snd: Any = _plain("Snd", (Product(A, B),), B, "snd S.")
J = _plain(
    "J", (Arrow(A, B), A), Arrow(A, B), "J(t; s): a ↦ derivative of t at a along s.", _formed
)
Pull: Any = _plain(
    "Pull", (Arrow(A, B), Arrow(B, Dual(B))), Arrow(A, Dual(A)),
    "pull(t; w): the 1-form w pulled back along t.", _formed,
)  # fmt: skip
Copair: Any = _plain(
    "Copair", (Dual(A), Dual(B)), Dual(Product(A, B)), "[K|K]: (a, b) ↦ k1 a + k2 b.", _formed
)
Ev: Any = _plain("Ev", (A,), Dual(Dual(A)), "ev(S): k ↦ k s.", _formed)
At: Any = _plain("At", (Dual(A), A), R, "K @ S: a functional at a vector.")
Scale: Any = _plain("Scale", (R, A), A, "scale(r, S): a multiple.")
If: Any = _plain("If", (BOOL, A, A), A, "if S then P else Q.")
Cons: Any = _plain("Cons", (A, ListOf(A)), ListOf(A), "cons(S, S).")
Head: Any = _plain("Head", (ListOf(A),), A, "head S.")
Tail: Any = _plain("Tail", (ListOf(A),), ListOf(A), "tail S.")
IsNil: Any = _plain("IsNil", (ListOf(A),), BOOL, "isnil S.")


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Covec(Term):
    """covec(S): the functional <s, -> on R, or on a product of R."""

    def _type(self) -> Type:
        return Dual(self.parts[0].type)

    def _value(self) -> bool:
        return isinstance(self.parts[0], Literal)


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Probe(Term):
    """(V; D1, ..., Dn |> K), on functions: u ↦ K(derivative of order n of u at V along the D).

    The parts are V, the directions, K; without directions it is written V |> K.
    """

    def _type(self) -> Type:
        at, *along, k = self.parts
        assert all(d.type == at.type for d in along), "a probe's directions are as its point"
        assert isinstance(k.type, Dual), f"a probe needs a functional, not {show(k.type)}"
        return Dual(Arrow(at.type, k.type.of))

    def _value(self) -> bool:
        return _all_values(self.parts)


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Fun(Term):
    """f(P), for a function symbol."""

    symbol: Symbol

    def _type(self) -> Type:
        takes, given = self.symbol.takes, self.parts[0].type
        assert given == takes, f"{self.symbol} takes {show(takes)}, not {show(given)}"
        return self.symbol.gives

    def on(self, parts: tuple[Term, ...]) -> Term:
        """The same symbol."""
        return Fun(parts, self.symbol)


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class JFun(Term):
    """J{f}(S): a ↦ Jf(a) s."""

    symbol: Symbol

    def _type(self) -> Type:
        return Arrow(self.symbol.takes, self.symbol.gives)

    def _value(self) -> bool:
        return self.parts[0].value

    def on(self, parts: tuple[Term, ...]) -> Term:
        """The same symbol."""
        return JFun(parts, self.symbol)


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Sum(Term):
    """P + ... + P, two or more of one type; of functions, and of probes, it is a value."""

    def _type(self) -> Type:
        types = {p.type for p in self.parts}
        assert len(types) == 1, f"a sum of {', '.join(map(show, types))}"
        return next(iter(types))

    def _value(self) -> bool:
        t = self.parts[0].type
        formal = isinstance(t, Arrow) or (isinstance(t, Dual) and isinstance(t.of, Arrow))
        return formal and all([p.value and not isinstance(p, Sum | Zero) for p in self.parts])


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class List(Term):
    """[P, ..., P]; with `dual` it is covs[K, ..., K], the functional on lists item by item."""

    item: Type
    dual: bool = False

    def _type(self) -> Type:
        return Dual(ListOf(self.item)) if self.dual else ListOf(self.item)

    def _value(self) -> bool:
        return _all_values(self.parts)

    def on(self, parts: tuple[Term, ...]) -> Term:
        """The same kind of list."""
        return List(parts, self.item, self.dual)


# --- what is there only while a term is reduced ---------------------------------------------------


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class JAt(Term):
    r"""J(\<X>.P; <D>)<V>: the derivative of P at the environment X = V along D; parts P, Ds, Vs."""

    names: tuple[Binder, ...]

    def _type(self) -> Type:
        return self.parts[0].type

    def binders(self) -> tuple[Binder, ...]:
        """The environment."""
        return self.names

    def called(self, names: Mapping[str, str]) -> Any:
        """Other names."""
        return _Bare(type(self), tuple([(names.get(x, x), t) for x, t in self.names]))

    def on(self, parts: tuple[Term, ...]) -> Term:
        """The same environment's names."""
        return JAt(parts, self.names)


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class PullAt(Term):
    r"""pull(\<X>.L; w)<V>: the cotangents of an environment; parts L, w, Vs."""

    names: tuple[Binder, ...]

    def _type(self) -> Type:
        return Row(tuple([Dual(t) for _, t in self.names]))

    def binders(self) -> tuple[Binder, ...]:
        """The environment."""
        return self.names

    def called(self, names: Mapping[str, str]) -> Any:
        """Other names."""
        return _Bare(type(self), tuple([(names.get(x, x), t) for x, t in self.names]))

    def on(self, parts: tuple[Term, ...]) -> Term:
        """The same environment's names."""
        return PullAt(parts, self.names)


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Back(Term):
    r"""dual(\<v>.<v,S>; N): what waits for the cotangents N to add those that S sends back."""

    names: tuple[Binder, ...]

    def _type(self) -> Type:
        duals = tuple([Dual(t) for _, t in self.names])
        assert self.parts[1].type == Row((*duals, Dual(self.parts[0].type)))
        return Row(duals)

    def binders(self) -> tuple[Binder, ...]:
        """The tangents."""
        return self.names

    def called(self, names: Mapping[str, str]) -> Any:
        """Other names."""
        return _Bare(type(self), tuple([(names.get(x, x), t) for x, t in self.names]))

    def on(self, parts: tuple[Term, ...]) -> Term:
        """The same tangents."""
        return Back(parts, self.names)


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Cotangents(Term):
    """{K1, ..., Kk}."""

    def _type(self) -> Type:
        return Row(tuple([p.type for p in self.parts]))

    def _value(self) -> bool:
        return _all_values(self.parts)


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Pick(Term):
    """The only cotangent of an environment of one."""

    def _type(self) -> Type:
        row = self.parts[0].type
        assert isinstance(row, Row)
        return row.items[0]


class ZeroTangent(float):
    """The numeral 0 of a tangent that is zero by structure: times infinity it is zero as well."""

    __slots__ = ()


# --- how terms are written in the rules -----------------------------------------------------------


def num(x: float) -> Literal:
    """A real number."""
    return Literal((), float(x))


def var(x: Binder) -> Var:
    """The variable of a binder."""
    return Var((), *x)


def lam(x: Binder, body: Term) -> Lam:
    r"""\x. body."""
    return Lam((body,), *x)


def let(name: str, bound: Term, body: Term) -> Let:
    """Let name = bound in body."""
    return Let((bound, body), name)


def dual(x: Binder, body: Term, k: Term) -> DualMap:
    r"""dual(\x. body; k)."""
    return DualMap((body, k), *x)


def app(f: Term, a: Term) -> Term:
    """An application."""
    return App((f, a))


def probe(at: Term, along: Sequence[Term], k: Term) -> Probe:
    """(at; along |> k)."""
    return Probe((at, *along, k))


def is_zero(t: Term) -> bool:
    """Whether a term is zero by its form."""
    match t:
        case Zero():
            return True
        case Literal(_, held):
            return t.type == R and held == 0
        case Pair(parts):
            return all(map(is_zero, parts))
    return False


def total(terms: Sequence[Term], t: Type) -> Term:
    """The sum of terms of the type, without zeros and without sums within."""
    summands: list[Term] = []
    for p in terms:
        summands += p.parts if isinstance(p, Sum) else () if isinstance(p, Zero) else (p,)
    return (
        Zero((), t) if not summands else summands[0] if len(summands) == 1 else Sum(tuple(summands))
    )


def has_tangent(t: Type) -> bool:
    """Whether values of the type have tangents other than zero."""
    return t not in DISCRETE


def constant_form(source: Type, k: Term) -> Term:
    r"""\_. k, the 1-form that is the same everywhere; `k` is closed."""
    return Lam((k,), "_", source)
