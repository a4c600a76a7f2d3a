r"""The machine: the fast evaluator  [Pullback].

    PB(let y = E in L, ρ, w, k)  =  PB(L, ρ[y := E(ρ)], w, K ↦ k(K + T(dE, ρ)(K y)))

The continuation k, defunctionalised, is a tape; cotangents are a map from places on it, where
absent is zero.  A closure is a term and an environment, and its cotangent is that of the numbers in
its environment: they are on the tape.  A function that is the argument of a pullback has probes for
its cotangent, one for each application.  The functional w is linear, so it too is only evaluated:

    pull(t; w) a  =  the gradient at a of  x ↦ w(t a) @ (t x)

Bodies are divided into series once.  Nothing recurs on Python's stack.
"""

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from types import GeneratorType
from typing import Any, NamedTuple

import numpy as np

from lineara.calculus import scalars
from lineara.calculus import terms as tm
from lineara.calculus.divide import divide, is_atom
from lineara.calculus.scalars import Forward, Reverse, Tape
from lineara.calculus.substitution import Fresh
from lineara.calculus.symbols import Symbol
from lineara.calculus.terms import Lam, Plain, Sum, Term
from lineara.calculus.types import DISCRETE, Arrow, Dual, ListOf, Product, Type
from lineara.calculus.values import (
    NOTHING,
    Along,
    Bag,
    Both,
    Cell,
    Change,
    Closure,
    Entangled,
    Evaluation,
    Items,
    Multiple,
    Nil,
    Nothing,
    Number,
    Pulled,
    Slope,
    Slot,
    Tangent,
    Total,
    Unbounded,
    Use,
    Waiting,
    Watched,
    add,
    entangled,
    is_number,
    items,
    listed,
    moves,
    numbers_at,
    primal,
    retagged,
    scale,
    summed,
    tangent,
    told_of,
    uses_of,
    zero,
)
from lineara.errors import CalculusError
from lineara.facts.hints import Shaped, Value
from lineara.trampoline import Deep, run

FUEL = 1_000_000


class Code(NamedTuple):
    """A body, divided: what each binding does, and where the result is."""

    instructions: tuple[tuple[str, Any, tm.Term, tuple[tuple[bool, Any], ...]], ...]
    result: tuple[bool, Any]


class Machine:
    """Evaluates closed terms; counts instructions, applications of symbols, and transposed ones.

    >>> from lineara.calculus.program import term
    >>> m = Machine()
    >>> m.value(term("pull(\\\\x. x * x; \\\\_. covec(1)) 3"))
    Number(r=6.0)
    >>> m.calls, m.vjps
    (1, 1)
    """

    vjps: int
    steps: int
    fuel: int
    filled: int
    calls: int

    def __init__(self, fuel: int = FUEL) -> None:
        self.fuel = self.filled = fuel
        self.steps = self.calls = self.vjps = 0
        self._levels = itertools.count(1)
        self._codes: dict[tm.Term, Code] = {}

    def value(self, term: tm.Term) -> Any:
        """The value of a closed term."""
        if term.free:
            raise CalculusError(f"only a closed term has a value: {', '.join(sorted(term.free))}")
        with np.errstate(all="ignore"):
            return run(self.evaluate(term, {}))

    def apply_to(self, f: Any, a: Value) -> Any:
        """A function value at a value."""
        with np.errstate(all="ignore"):
            return run(self.apply(f, a))

    def gradient_of(self, f: Closure, a: Any, source: Type, k: Any) -> Any:
        """The functional k pulled back along a function at a value."""
        with np.errstate(all="ignore"):
            return run(self.gradient(f, a, source, None, k))

    # --- code -----------------------------------------------------------------------------------

    def evaluate(self, term: tm.Term, env: Mapping[str, Any]) -> Deep:
        """The value of a term in an environment."""
        code = self._codes.get(term)
        if code is None:
            code = self._codes[term] = self._compiled(term)
        own = dict(env)
        for name, act, e, operands in code.instructions:
            self.steps += 1
            values = [own[x] if named else x for named, x in operands]
            value = act(self, e, values, own)
            if type(value) is GeneratorType:
                value = yield value
            own[name] = value
        named, x = code.result
        return own[x] if named else x

    def _compiled(self, term: tm.Term) -> Code:
        series = divide(term, Fresh(term))  # names that a closure's environment does not have
        steps = []
        for name, e in series.bindings:
            kept = (tm.Lam, tm.Fix, tm.DualMap, tm.If)
            parts = e.parts if not isinstance(e, kept) else _EVALUATED[type(e)](e)
            operands = tuple([self._operand(p) for p in parts])
            if is_atom(e):
                steps.append((name, _copy, e, (self._operand(e),)))
            else:
                steps.append((name, _ACTS[type(e)], e, operands))
        return Code(tuple(steps), self._operand(series.result))

    def _operand(self, atom: tm.Term) -> tuple[bool, Any]:
        if isinstance(atom, tm.Var):
            return True, atom.name
        return False, run(constant(atom))

    # --- functions ------------------------------------------------------------------------------

    def apply(self, f: Any, a: Any) -> Deep:
        """A function value at a value."""
        match f:
            case Closure(tm.Lam() as t, env):
                return (yield self.evaluate(t.parts[0], {**env, t.name: a}))
            case Closure(tm.Fix() as t, env):
                if self.fuel == 0:
                    raise exhausted(t.own, self.filled)
                self.fuel -= 1
                return (yield self.evaluate(t.parts[0], {**env, t.own: f, t.name: a}))
            case Nothing(t):
                assert isinstance(t, Arrow)
                return zero(t.target)
            case Total(parts):
                total = yield self.apply(parts[0], a)
                for p in parts[1:]:
                    total = add(total, (yield self.apply(p, a)))
                return total
            case Multiple(r, g):
                return scale(r, (yield self.apply(g, a)))
            case Along(Symbol() as symbol, s):
                level = next(self._levels)
                return tangent((yield self.symbol(symbol, entangled(a, s, level))), level)
            case Along(g, d):
                level = next(self._levels)
                return tangent((yield self.apply(g, entangled(a, d, level))), level)
            case Pulled(g, w, source):
                return (yield self.gradient(g, a, source, w, None))
            case Entangled(g, d, level):
                y = yield self.apply(g, a)
                dy = yield self.apply(d, (yield primal(a, level)))
                return entangled(y, dy, level)
            case Tangent(g, level):
                own = next(self._levels)  # a tag of its own: this may be applied within itself
                inner = yield retagged(g, level, own)
                return tangent((yield self.apply(inner, a)), own)
            case Watched(g, chain, tape, told):
                return (yield self.watch(g, (*chain, Use("apply", a)), tape, told))
            case Waiting():
                return (yield self.apply((yield self.used(f.inner, f.chain)), a))
        raise AssertionError(f"{type(f).__name__} is no function value")

    def symbol(self, symbol: Symbol, a: Any) -> Deep:
        """A function symbol at a value of its type; a declared one is its term."""
        self.calls += 1
        if symbol.body is not None:
            return (yield self.apply(Closure(symbol.body, {}), a))
        args = (a,)
        if isinstance(symbol.takes, Product):
            args = a
        if any([isinstance(x, Reverse) for x in args]) and symbol.moves:
            self.vjps += 1
        try:
            return scalars.apply(symbol, args)
        except ZeroDivisionError:
            raise no_infinity(symbol, args) from None

    def gradient(self, f: Closure, a: Value, source: Type, form: Any, k: Any) -> Deep:
        """The gradient at a of x ↦ k @ (f x); with a form, k is the form at f a."""
        tape = Tape(next(self._levels))
        x, collect = self.lifted(a, source, tape)
        y = yield self.apply(f, x)
        if form is not None:
            k = yield self.apply(form, (yield primal(y, tape.level)))
        number = yield self.pair(k, y)
        bars = {}
        if isinstance(number, Reverse) and number.tape is tape:
            bars = tape.back(number.index)
        return collect(bars)

    def lifted(self, a: Any, t: Type, tape: Tape) -> tuple[Any, Callable[[dict[Any, Any]], Any]]:
        """A value on a tape, and how its cotangent is read off the cotangents of numbers."""
        if t in DISCRETE:
            return a, lambda bars: Nothing(Dual(t))
        match t:
            case Product(left, right):
                (x, from_x), (y, from_y) = (
                    self.lifted(a[0], left, tape),
                    self.lifted(a[1], right, tape),
                )
                return (x, y), lambda bars: Both(from_x(bars), from_y(bars))
            case ListOf(item) if isinstance(a, Nothing):
                return self._unbounded(item, tape)
            case ListOf(item):
                pairs = [self.lifted(v, item, tape) for v in items(a)]
                items_on_tape = listed([x for x, _ in pairs])
                return items_on_tape, lambda bars: Items(tuple([c(bars) for _, c in pairs]))
            case Arrow() | Dual():
                heard: list[Any] = []
                return Watched(a, (), tape, heard.append), lambda bars: summed(heard, t)
        x = tape.number(a)
        return x, lambda bars: Number(bars.get(x.index, 0.0))

    def _unbounded(self, item: Type, tape: Tape) -> tuple[Any, Callable[[dict[Any, Any]], Any]]:
        """A list of zeros, as long as what reads it."""
        read: dict[int, Any] = {}

        def at(i: int) -> Any:
            for n in range(len(read), i + 1):
                read[n] = self.lifted(zero(item), item, tape)
            return read[i][0]

        return Unbounded(at), lambda bars: Items(tuple([c(bars) for _, c in read.values()]))

    # --- the cotangent of a function --------------------------------------------------------------

    def used(self, f: Any, chain: tuple[Use, ...]) -> Deep:
        """The value after a chain of uses: applied, projected, paired."""
        for use in chain:
            match use.kind:
                case "apply":
                    for d in use.along:
                        f = Along(f, d)
                    f = yield self.apply(f, use.at)
                case "fst" | "snd":
                    f = f[0 if use.kind == "fst" else 1]
                case "item":
                    f = items(f)[use.at]
                case "pair":
                    f = yield self.pair(f, use.at)
        return f

    def watch(
        self, f: Any, chain: tuple[Use, ...], tape: Tape | None, told: Callable[..., Any] | None
    ) -> Deep:
        """The value after a chain of uses, with numbers on the tape that tell `told` cotangents.

        Without a tape it is the value.
        """
        value = yield self.used(f, chain)
        if tape is None or told is None:
            return value
        if isinstance(value, bool | int | Nil):
            return value
        if type(value) is tuple:
            left = yield self.watch(f, (*chain, Use("fst")), tape, told)
            return left, (yield self.watch(f, (*chain, Use("snd")), tape, told))
        if isinstance(value, Cell):
            watched = []
            for i in range(len(items(value))):
                watched.append((yield self.watch(f, (*chain, Use("item", i)), tape, told)))
            return listed(watched)
        if not is_number(value):
            return Watched(f, chain, tape, told)
        within = numbers_at(tuple([(use.at, *use.along) for use in chain]), tape.level)
        if within:
            return (yield self._within(f, chain, tape, told, within))
        own = isinstance(value, Reverse) and value.tape is tape
        number = tape.number(value.primal, ((value.index, None),)) if own else tape.number(value)
        points = []
        for use in chain:
            at, along = yield _pair_of(primal(use.at, tape.level), use.along, tape.level)
            points.append(Use(use.kind, at, along))
        tape.hooks[number.index] = lambda bar: told(told_of(tuple(points), Number(bar)))
        return number

    def _within(self, f: Any, chain: Any, tape: Tape, told: Any, within: list[Any]) -> Deep:
        """A number that other differentiations, within that of the tape, go through."""
        level = max([x.tape.level if isinstance(x, Watched) else x.level for x in within])
        own = [x for x in within if not isinstance(x, Watched) and x.level == level]
        heard = [x for x in within if isinstance(x, Watched) and x.tape.level == level]
        base = []
        for use in chain:
            at, along = yield _pair_of(primal(use.at, level), use.along, level)
            base.append(Use(use.kind, at, along))
        y = yield self.watch(f, tuple(base), tape, told)
        reverse = {x.index: x for x in own if isinstance(x, Reverse)}
        if not reverse and not heard:
            moved = _tangents(chain, level)
            return Forward(level, y, (yield self._moved(f, base, moved, tape, told)))
        parents = []
        for index in reverse:
            one = next(self._levels)
            moved = _tangents((yield uses_of(chain, _one(level, index, one))), one)
            parents.append((index, (yield self._moved(f, base, moved, tape, told))))
        inner = heard[0].tape if heard else next(iter(reverse.values())).tape
        number = inner.number(y, tuple(parents))
        if heard:
            slopes = []
            for listener in {id(x.told): x.told for x in heard}.values():
                own_level = next(self._levels)
                held = yield uses_of(chain, _slotted(level, listener, own_level))
                slopes.append((listener, Slope(f, held, own_level, tape, told)))

            def tell(bar: Any) -> None:
                for listener, slope in slopes:
                    listener(scale(bar, slope))

            inner.hooks[number.index] = tell
        return number

    def _moved(self, f: Any, base: Any, moved: Any, tape: Tape | None, told: Any) -> Deep:
        """The derivative of a chain's number: each argument and each direction moves by itself."""
        total = 0.0
        for i, (use, move) in enumerate(zip(base, moved, strict=True)):
            ways = []
            if use.kind == "pair" and move.at is not None:
                ways = [Use("pair", move.at)]
            if use.kind == "apply":
                if move.at is not None:
                    ways = [Use("apply", use.at, (*use.along, move.at))]
                for j, d in enumerate(move.along):
                    if d is not None:
                        ways.append(Use("apply", use.at, (*use.along[:j], d, *use.along[j + 1 :])))
            for way in ways:
                chain = (*base[:i], way, *base[i + 1 :])
                total = total + (yield self.watch(f, chain, tape, told))
        return total

    def _slope(self, k: Slope, u: Any) -> Deep:
        """A slope at a direction: the chain with its slots along it."""
        one = next(self._levels)
        base = yield uses_of(k.chain, Change(_same, slot=_emptied(k.level)))
        filled = yield uses_of(k.chain, Change(_same, slot=_filled(k.level, u, one)))
        moved = _tangents(filled, one)
        return (yield self._moved(k.inner, base, moved, k.tape, k.told))

    def bag_of(self, k: Slope) -> Any:
        """A slope that nothing watches, as the sum of probes that it is."""
        tape, heard = Tape(next(self._levels)), []

        def watched(slot: Slot) -> Any:
            return Watched(slot.of, (), tape, heard.append) if slot.level == k.level else slot

        def number() -> Deep:
            return (yield self.used(k.inner, (yield uses_of(k.chain, Change(_same, slot=watched)))))

        with np.errstate(all="ignore"):
            y = run(number())
            if isinstance(y, Reverse) and y.tape is tape:
                tape.back(y.index)
        return functools.reduce(add, heard, NOTHING)

    def pair(self, k: Both | Number, v: Shaped) -> Deep:
        """A functional at a vector."""
        match k:
            case Nothing():
                return 0.0
            case Number(r):
                return r * v
            case Both(a, b):
                return (yield self.pair(a, v[0])) + (yield self.pair(b, v[1]))
            case Bag(probes):
                total = 0.0
                for at, directions, inner in probes:
                    f = v
                    for d in directions:
                        f = Along(f, d)
                    total = total + (yield self.pair(inner, (yield self.apply(f, at))))
                return total
            case Evaluation(u):
                return (yield self.pair(v, u))
            case Items(parts):
                total = 0.0
                for p, u in zip(parts, items(v), strict=False):
                    total = total + (yield self.pair(p, u))
                return total
            case Slope():
                return (yield self._slope(k, v))
            case Multiple(r, inner):
                return r * (yield self.pair(inner, v))
            case Total(parts):
                total = 0.0
                for p in parts:
                    total = total + (yield self.pair(p, v))
                return total
            case Entangled(inner, d, level):
                y = yield self.pair(inner, v)
                return entangled(y, (yield self.pair(d, (yield primal(v, level)))), level)
            case Tangent(inner, level):
                own = next(self._levels)
                other = yield retagged(inner, level, own)
                return tangent((yield self.pair(other, v)), own)
            case Watched(inner, chain, tape, told):
                return (yield self.watch(inner, (*chain, Use("pair", v)), tape, told))
            case Waiting():
                return (yield self.pair((yield self.used(k.inner, k.chain)), v))
        raise AssertionError(f"{type(k).__name__} is no functional")


def _pair_of(at: Deep, along: tuple[Any, ...], level: int) -> Deep:
    primals = yield at
    made = []
    for d in along:
        made.append((yield primal(d, level)))
    return primals, tuple(made)


def _one(level: int, index: int, own: int) -> Change:
    """One number of a tape has the tangent 1 at a level of its own; the rest of the level goes."""

    def number(x: Value) -> Any:
        if not isinstance(x, Reverse) or x.level != level:
            return x
        return Forward(own, x.primal, 1.0) if x.index == index else x.primal

    return Change(number, gone=level)


def _slotted(level: int, listener: Callable[[Any], None], own: int) -> Change:
    """What one listener watches is a slot; the rest of the level goes."""

    def number(x: Value) -> Any:
        return x.primal if isinstance(x, Reverse) and x.level == level else x

    def watched(inner: Any, told: Callable[[Any], None]) -> Any:
        return Slot(inner, own) if told is listener else inner

    return Change(number, gone=level, watched=watched)


def _filled(level: int, u: Any, own: int) -> Callable[[Slot], Any]:
    """A slot of the level moves along u at a level of its own."""
    return lambda slot: Entangled(slot.of, u, own) if slot.level == level else slot


def _emptied(level: int) -> Callable[[Slot], Any]:
    return lambda slot: slot.of if slot.level == level else slot


def _tangents(chain: Sequence[Use], level: int) -> list[Use]:
    """The tangents at a level of the values in a chain; None where nothing moves."""

    def along(v: Any) -> Any:
        return tangent(v, level) if moves(v, level) else None

    return [Use(u.kind, along(u.at), tuple([along(d) for d in u.along])) for u in chain]


def _same(x: Value) -> Any:
    return x


_EVALUATED: dict[type, Callable[[tm.Term], tuple[tm.Term, ...]]] = {
    tm.Lam: lambda e: (),
    tm.Fix: lambda e: (),
    tm.DualMap: lambda e: (e.parts[1],),
    tm.If: lambda e: (e.parts[0],),
}


def no_infinity(symbol: Symbol, args: Sequence[Any]) -> CalculusError:
    """The error of an integer division by zero."""
    shown = ", ".join([str(a) for a in args])
    return CalculusError(f"{symbol}({shown}): integers have no infinity")


def exhausted(name: str, fuel: int) -> CalculusError:
    """The error of a recursion that does not end in time."""
    return CalculusError(
        f"{name} was unfolded until {fuel} calls of recursive functions were spent; if it ends, "
        "give it more fuel"
    )


# --- what an elementary term does -----------------------------------------------------------------


def _copy(m: Machine, e: Term, values: list[Any], env: dict[Any, Any]) -> Any:
    return values[0]


def _closure(m: Machine, e: Lam, values: list[Any], env: dict[Any, Any]) -> Any:
    return Closure(e, {x: env[x] for x in e.free})


def _dual_map(m: Machine, e: Any, values: list[Any], env: dict[Any, Any]) -> Any:
    s = e.parts[0]
    f = Closure(tm.Lam((s,), e.name, e.source), {x: env[x] for x in s.free if x != e.name})
    return m.gradient(f, zero(e.source), e.source, None, values[0])


def _choice(m: Machine, e: Plain, values: list[Any], env: dict[Any, Any]) -> Any:
    branch = e.parts[1 if values[0] else 2]
    return m.evaluate(branch, {x: env[x] for x in branch.free})


def _covector(value: Value) -> Any:
    if isinstance(value, tuple) and type(value) is tuple:
        return Both(_covector(value[0]), _covector(value[1]))
    return Number(value)


def _sum(m: Machine, e: Sum, values: list[Any], env: dict[Any, Any]) -> Any:
    total = values[0]
    for v in values[1:]:
        total = add(total, v)
    return total


def _head(m: Machine, e: Plain, values: list[Any], env: dict[Any, Any]) -> Any:
    if isinstance(values[0], Nothing):
        return zero(e.type)
    if isinstance(values[0], Unbounded):
        return values[0].item(values[0].first)
    if isinstance(values[0], Nil):
        raise CalculusError("head of an empty list; ask isnil before")
    return values[0].head


def _tail(m: Machine, e: Plain, values: list[Any], env: dict[Any, Any]) -> Any:
    if isinstance(values[0], Nothing):
        return values[0]
    if isinstance(values[0], Unbounded):
        return values[0]._replace(first=values[0].first + 1)
    if isinstance(values[0], Nil):
        raise CalculusError("tail of an empty list; ask isnil before")
    return values[0].tail


_Act = Callable[[Machine, Any, list, dict], Any]
_ACTS: dict[type, _Act] = {
    tm.Var: _copy,
    tm.Lam: _closure,
    tm.Fix: _closure,
    tm.Zero: lambda m, e, v, env: zero(e.type),
    tm.App: lambda m, e, v, env: m.apply(v[0], v[1]),
    tm.Pair: lambda m, e, v, env: (v[0], v[1]),
    tm.Fst: lambda m, e, v, env: v[0][0],
    tm.Snd: lambda m, e, v, env: v[0][1],
    tm.Fun: lambda m, e, v, env: m.symbol(e.symbol, v[0]),
    tm.JFun: lambda m, e, v, env: Along(e.symbol, v[0]),
    tm.J: lambda m, e, v, env: Along(v[0], v[1]),
    tm.Pull: lambda m, e, v, env: Pulled(v[0], v[1], e.type.source),
    tm.DualMap: _dual_map,
    tm.If: _choice,
    tm.Covec: lambda m, e, v, env: _covector(v[0]),
    tm.Copair: lambda m, e, v, env: Both(v[0], v[1]),
    tm.Probe: lambda m, e, v, env: Bag(((v[0], tuple(v[1:-1]), v[-1]),)),
    tm.Ev: lambda m, e, v, env: Evaluation(v[0]),
    tm.At: lambda m, e, v, env: m.pair(v[0], v[1]),
    tm.Scale: lambda m, e, v, env: scale(v[0], v[1]),
    tm.Sum: _sum,
    tm.List: lambda m, e, v, env: Items(tuple(v)) if e.dual else listed(v),
    tm.Cons: lambda m, e, v, env: Cell(v[0], v[1]),
    tm.Head: _head,
    tm.Tail: _tail,
    tm.IsNil: lambda m, e, v, env: isinstance(v[0], Nil),
}


def constant(t: tm.Term) -> Deep:
    """A closed value of the calculus as the machine holds it."""
    match t:
        case tm.Literal(_, held):
            return held
        case tm.Zero():
            return zero(t.type)
        case tm.Lam() | tm.Fix():
            return Closure(t, {})
    values = []
    for p in t.parts:
        values.append((yield constant(p)))
    if isinstance(t, tm.Sum):
        return _sum(None, t, values, {})  # type: ignore[arg-type]  # adding asks no machine
    return _ACTS[type(t)](None, t, values, {})  # type: ignore[arg-type]  # nor does forming
