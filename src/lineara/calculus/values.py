"""What the machine calculates with: numbers, tuples of two, and the kinds here.

A value may hold numbers at levels, in the environments of closures too.  `primal`, `tangent` and
`entangled` take such a value apart at a level and put it together.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from lineara.calculus.scalars import Forward, Tagged, Tape
from lineara.calculus.symbols import Symbol
from lineara.calculus.types import Dual, Product, R, Type
from lineara.facts.hints import Leaf, Shaped, Value
from lineara.trampoline import Deep, run


class Cell(NamedTuple):
    """A list that is not empty."""

    head: Any
    tail: Any
    is_list: bool = True


class Nil(NamedTuple):
    """The empty list; what is added to it pads it, so it is also a tangent of any length."""

    is_list: bool = True


class Unbounded(NamedTuple):
    """A list of zeros of no known length, on a tape: its items arise when they are read."""

    item: Callable[[int], Any]
    first: int = 0


class Closure(NamedTuple):
    """A function: its term, and the values of the names in it."""

    term: Any
    env: Mapping[str, Any]


class Nothing(NamedTuple):
    """Zero of a type that is neither R nor a pair."""

    type: Type


class Along(NamedTuple):
    """J{f}(s) or J(f; d)."""

    function: Any
    direction: Any


class Pulled(NamedTuple):
    """pull(f; w)."""

    function: Any
    form: Any
    source: Type


class Total(NamedTuple):
    """A sum of functions."""

    parts: tuple[Any, ...]


class Multiple(NamedTuple):
    """r f."""

    factor: Any
    function: Any


class Number(NamedTuple):
    """covec(r)."""

    r: Any


class Both(NamedTuple):
    """[k1|k2]."""

    left: Any
    right: Any


class Bag(NamedTuple):
    """A sum of probes (V; D, ..., D |> K)."""

    probes: tuple[tuple[Any, tuple[Any, ...], Any], ...]


class Evaluation(NamedTuple):
    """ev(v)."""

    at: Any


class Items(NamedTuple):
    """covs[k, ..., k]."""

    parts: tuple[Any, ...]


class Use(NamedTuple):
    """What is done with a watched value: `apply` it `at` a value, differentiated `along` others;
    take `fst`, `snd` or the item `at` of it; or pair it with the vector `at`."""

    kind: str
    at: Any = None
    along: tuple[Any, ...] = ()


class Watched(NamedTuple):
    """A function or functional whose cotangent is asked for, and what has been done with it.

    Each number that comes of it tells its cotangent.
    """

    inner: Any
    chain: tuple[Use, ...]
    tape: Tape
    told: Callable[[Any], None]


class Waiting(NamedTuple):
    """A function or functional that a chain of uses makes of another."""

    inner: Any
    chain: tuple[Use, ...]


class Slot(NamedTuple):
    """The function or functional `of`, at the place in a chain that a `Slope` moves."""

    of: Any
    level: int


class Slope(NamedTuple):
    """The functional  u ↦ derivative of what a chain makes of `inner` as its slots move along u.

    It is the cotangent of a function to which another one is applied; while that one is watched,
    the numbers that come of the functional are on its `tape` and tell it theirs.
    """

    inner: Any
    chain: tuple[Use, ...]
    level: int
    tape: Tape | None
    told: Callable[[Any], None] | None


class Entangled(NamedTuple):
    """f + ε d, a function with a tangent at a level."""

    function: Any
    tangent: Any
    level: int


class Tangent(NamedTuple):
    """The tangent at a level of a function or functional."""

    of: Any
    level: int


# --- sums and multiples ---------------------------------------------------------------------------


def zero(t: Type) -> Any:
    """Zero of a type."""
    if t == R:
        return 0.0
    if isinstance(t, Product):
        return zero(t.left), zero(t.right)
    return Nothing(t)


def items(a: object) -> list[Any]:
    """The items of a list."""
    values = []
    while isinstance(a, Cell):
        values.append(a.head)
        a = a.tail
    return values


def listed(values: list[Any]) -> Any:
    """The list of the items."""
    items: Any = Nil()
    for v in reversed(values):
        items = Cell(v, items)
    return items


def add(a: Shaped, b: Value) -> Any:
    """The sum of two values of one type."""
    if isinstance(a, Nothing):
        return b
    if isinstance(b, Nothing):
        return a
    match a, b:
        case (Number(r), Number(s)):
            return Number(r + s)
        case (Both(p, q), Both(u, v)):
            return Both(add(p, u), add(q, v))
        case (Bag(p), Bag(q)):
            return Bag(p + q)
        case (Evaluation(u), Evaluation(v)):
            return Evaluation(add(u, v))
        case (Items(p), Items(q)):
            short, long = sorted((p, q), key=len)
            most = [add(u, v) for u, v in zip(short, long, strict=False)]
            return Items((*most, *long[len(short) :]))
        case (Cell() | Nil(), Cell() | Nil()):
            short, long = sorted((items(a), items(b)), key=len)
            most = [add(u, v) for u, v in zip(short, long, strict=False)]
            return listed([*most, *long[len(short) :]])
    if type(a) is tuple:
        return add(a[0], b[0]), add(a[1], b[1])
    if is_number(a):
        return a + b
    left = a.parts if isinstance(a, Total) else (a,)
    return Total((*left, *(b.parts if isinstance(b, Total) else (b,))))


def is_number(x: Shaped) -> bool:
    """Whether a value is a number, plain or traced at any levels."""
    return not isinstance(x, tuple)


def scale(r: Value, v: Shaped) -> Any:
    """A multiple of a value."""
    match v:
        case Nothing() | Nil():
            return v
        case Number(s):
            return Number(r * s)
        case Both(p, q):
            return Both(scale(r, p), scale(r, q))
        case Bag(probes):
            return Bag(tuple([(at, d, scale(r, k)) for at, d, k in probes]))
        case Evaluation(u):
            return Evaluation(scale(r, u))
        case Items(parts):
            return Items(tuple([scale(r, p) for p in parts]))
        case Cell():
            return listed([scale(r, p) for p in items(v)])
    if type(v) is tuple:
        return scale(r, v[0]), scale(r, v[1])
    return r * v if is_number(v) else Multiple(r, v)


def summed(heard: list[Any], t: Type) -> Any:
    """The sum of functionals on the type."""
    total: Any = Nothing(Dual(t))
    for k in heard:
        total = add(total, k)
    return total


NOTHING = Nothing(Dual(R))  # no cotangent, whatever its type


def told_of(chain: tuple[Use, ...], k: Any) -> Any:
    """The functional on a watched value that is k on what the chain makes of it."""
    for use in reversed(chain):
        match use.kind:
            case "apply":
                k = Bag(((use.at, use.along, k),))
            case "fst":
                k = Both(k, NOTHING)
            case "snd":
                k = Both(NOTHING, k)
            case "item":
                k = Items((*[NOTHING] * use.at, k))
            case "pair":
                k = Evaluation(scale(k.r, use.at))
    return k


# --- levels ---------------------------------------------------------------------------------------


def entangled(a: Shaped, d: Shaped, level: int) -> Any:
    """a + ε d."""
    if isinstance(d, Nothing) or isinstance(a, bool | int):
        return a
    if type(a) is tuple:
        return entangled(a[0], d[0], level), entangled(a[1], d[1], level)
    match a, d:
        case (Cell(), Cell()):
            pairs = zip(items(a), items(d), strict=False)
            return listed([entangled(u, v, level) for u, v in pairs])
        case (Nil(), _):
            return a
        case (Number(r), Number(s)):
            return Number(entangled(r, s, level))
        case (Both(p, q), Both(u, v)):
            return Both(entangled(p, u, level), entangled(q, v, level))
    return _entangled(a, d, level) if is_number(a) else Entangled(a, d, level)


def _entangled(a: Any, d: Any, level: int) -> Any:
    """`entangled` of numbers; the levels inside this one keep their order."""
    inner = max(_level(a), _level(d))
    if inner <= level:
        d = d.primal if _level(d) == level else d
        if _level(a) == level:
            return Forward(level, a.primal, a.tangent + d)
        return Forward(level, a, d)
    (a0, a1), (d0, d1) = [(x.primal, x) if _level(x) == inner else (x, None) for x in (a, d)]
    y = _entangled(a0, d0, level)
    if any([isinstance(x, Forward) for x in (a1, d1)]):
        moved, along = [0.0 if x is None else x.tangent for x in (a1, d1)]
        return Forward(inner, y, _entangled(moved, along, level))
    tape = next(x.tape for x in (a1, d1) if x is not None)
    weights = ((a1, None), (d1, Forward(level, 0.0, 1.0)))
    return tape.number(y, tuple([(x.index, w) for x, w in weights if x is not None]))


def _level(x: Value) -> int:
    return x.level if isinstance(x, Tagged) else 0


def tangent(v: Any, level: int) -> Any:
    """The tangent of a value at a level."""
    if isinstance(v, Forward) and v.level == level:
        return v.tangent
    if isinstance(v, bool | int):
        return Nothing(R)
    match v:
        case Nothing() | Nil():
            return v
        case Cell():
            return listed([tangent(u, level) for u in items(v)])
        case Number(r):
            return Number(tangent(r, level))
        case Both(p, q):
            return Both(tangent(p, level), tangent(q, level))
        case Evaluation(u):
            return Evaluation(tangent(u, level))
        case Items(parts):
            return Items(tuple([tangent(p, level) for p in parts]))
        case Entangled(f, d, own) if own == level:
            rest: Any = Tangent(f, level)
            return add(d, rest) if moves(f, level) else d
    if type(v) is tuple:
        return tangent(v[0], level), tangent(v[1], level)
    return 0.0 if is_number(v) else Tangent(v, level)


class Change(NamedTuple):
    """What becomes of the numbers in a value; `gone` is a level that is left out, (old, new) a tag
    that another takes the place of.  `watched` is what becomes of the values that are watched at
    the level that is left out, by who is told, and `slot` of the slots of a level.  The levels in
    `bound` are those of the tangents around: there they are no level of anyone else."""

    number: Callable[[Any], Any]
    gone: int = 0
    old: int = 0
    new: int = 0
    watched: Callable[[Any, Callable[[Any], None]], Any] = lambda inner, told: inner
    slot: Callable[[Slot], Any] = lambda slot: slot
    bound: frozenset[int] = frozenset()

    def of(self, x: Value) -> Any:
        """What becomes of a number."""
        if isinstance(x, Forward) and x.level in self.bound:
            return Forward(x.level, self.of(x.primal), self.of(x.tangent))
        return self.number(x)


def primal(v: Value, level: int) -> Deep:
    """The value without its tangent or its place on the tape at a level."""

    def number(x: Value) -> Any:
        return x.primal if isinstance(x, Tagged) and x.level == level else x

    return changed(v, Change(number, gone=level))


def retagged(v: Value, old: int, new: int) -> Deep:
    """The value with another tag for a level."""

    def number(x: Any) -> Any:
        is_old = isinstance(x, Forward) and x.level == old
        return Forward(new, x.primal, x.tangent) if is_old else x

    return changed(v, Change(number, old=old, new=new))


def numbers_at(v: Leaf, floor: int) -> list[Any]:
    """The numbers and functions in a value that are at levels within `floor`."""
    numbers: list[Any] = []

    def number(x: Value) -> Any:
        if _level(x) > floor:
            numbers.append(x)
        return x

    def others(x: Any) -> Any:
        level = x.tape.level if isinstance(x, Watched) else x.level
        if level > floor:
            numbers.append(x)

    run(changed(v, Change(number), others))
    return numbers


def moves(v: Leaf, level: int) -> bool:
    """Whether a value has numbers or functions with tangents at a level."""
    within = numbers_at(v, level - 1)
    return any([not isinstance(x, Watched) and x.level == level for x in within])


def changed(v: Any, change: Change, seen: Callable[[Any], Any] = lambda x: None) -> Deep:
    """The value with its numbers changed, those in environments too."""
    if is_number(v):
        return change.of(v)
    if isinstance(v, Nothing | Nil | Unbounded):
        return v

    def several(parts: Any) -> Deep:
        values = []
        for p in parts:
            values.append((yield changed(p, change, seen)))
        return tuple(values)

    match v:
        case Cell():
            return listed(list((yield several(items(v)))))
        case Closure(term, env):
            values = yield several(env.values())
            same = all([p is q for p, q in zip(values, env.values(), strict=True)])
            return v if same else Closure(term, dict(zip(env, values, strict=True)))
        case Bag(probes):
            moved = []
            for at, along, k in probes:
                where, along = (yield changed(at, change, seen)), (yield several(along))
                moved.append((where, along, (yield changed(k, change, seen))))
            return Bag(tuple(moved))
        case Watched(inner, chain, tape, told):
            seen(v)
            uses = yield uses_of(chain, change, seen)
            inner = yield changed(inner, change, seen)
            if tape.level == change.gone:
                inner = change.watched(inner, told)
                return Waiting(inner, uses) if uses else inner
            return Watched(inner, uses, tape, told)
        case Waiting(inner, chain):
            return Waiting(
                (yield changed(inner, change, seen)), (yield uses_of(chain, change, seen))
            )
        case Slope(inner, chain, level, tape, told):
            uses = yield uses_of(chain, change, seen)
            if tape is not None and told is not None:
                seen(Watched(inner, uses, tape, told))
            inner = yield changed(inner, change, seen)
            if tape is not None and told is not None and tape.level == change.gone:
                return Slope(change.watched(inner, told), uses, level, None, None)
            return Slope(inner, uses, level, tape, told)
        case Slot(of, level):
            return change.slot(Slot((yield changed(of, change, seen)), level))
        case Entangled(f, d, level):
            if level not in change.bound:
                seen(v)
            f = yield changed(f, change, seen)
            if level == change.gone and level not in change.bound:
                return f
            own = change.new if level == change.old and level not in change.bound else level
            return Entangled(f, (yield changed(d, change, seen)), own)
        case Total(parts) | Items(parts):
            return type(v)((yield several(parts)))
        case Tangent(of, level):
            within = change._replace(bound=change.bound | {level})
            return Tangent((yield changed(of, within, seen)), level)
        case Pulled(f, w, source):
            f = yield changed(f, change, seen)
            return Pulled(f, (yield changed(w, change, seen)), source)
        case Along(Symbol() as symbol, s):
            return Along(symbol, (yield changed(s, change, seen)))
    parts = yield several(v)
    return parts if type(v) is tuple else type(v)(*parts)


def uses_of(
    chain: Sequence[Use], change: Change, seen: Callable[[Any], Any] = lambda x: None
) -> Deep:
    """The uses of a chain with their values changed."""
    uses = []
    for use in chain:
        at = use.at if use.kind == "item" else (yield changed(use.at, change, seen))
        along = []
        for d in use.along:
            along.append((yield changed(d, change, seen)))
        uses.append(Use(use.kind, at, tuple(along)))
    return tuple(uses)
