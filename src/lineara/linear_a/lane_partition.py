"""Lanes that go different ways: those that go one way are gathered, go it, and are put back.

    y[pos_i] = fi(m_i, xs[pos_i] ; ~as[pos_i])     for the m_i lanes at the positions pos_i

How many go which way is counted when the program runs, so it happens in a definition that has the
m_i as formals and is applied by `sized`.  In a loop, the lanes that still run stand first in a
permutation, and a round is about those.  No lane is evaluated where it does not go, a branch that
no lane takes is not entered, and all of it is text: J, U and T need no rule for it.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lineara.errors import ProgramError
from lineara.facts.box import op
from lineara.facts.hints import Shaped
from lineara.facts.types import ArrayType, Product, Type, show
from lineara.linear_a import syntax as ir
from lineara.linear_a.calls import Sized, Writer, call
from lineara.linear_a.dimensions import I64, result_type

BOOL = ArrayType((), np.dtype(bool))
Write = Any  # an Emitter, or whatever else has `bind`


def applied(out: Write, name: str, *args: ir.Var, **params: Any) -> ir.Var:
    """A primitive on values, written down."""
    t = result_type(op(name), [a.type for a in args], params)  # type: ignore[misc]
    return out.bind(name[:1], t, ir.Prim(args, op(name), params))


def counting(out: Write, n: Any, ahead: ir.Var | None = None) -> ir.Var:
    """0, 1, .., n - 1, or the n numbers from another one on; n is a number, or a variable."""
    if not isinstance(n, ir.Var):
        numbers = out.bind(
            "k", ArrayType((n,), I64.dtype), ir.lit(np.arange(n), ArrayType((n,), I64.dtype))
        )
        return numbers if ahead is None else applied(out, "add", numbers, ahead)
    one = out.bind("k", I64, ir.lit(np.int64(1), I64))
    ones = applied(out, "broadcast_to", one, shape=(n,))
    first = one if ahead is None else applied(out, "subtract", one, ahead)
    return applied(out, "subtract", applied(out, "cumsum", ones, axis=0), first)


def how_many(out: Write, flags: ir.Var) -> ir.Var:
    """The number of elements that are true."""
    return applied(out, "count_nonzero", flags)


# --- branches -------------------------------------------------------------------------------------


def sides(
    b: Any,
    e: ir.Leaf,
    which: ir.Var,
    ways: Sequence[tuple[str, ir.Var]],
    rest: Sequence[ir.Var],
    cond: type,
) -> list[ir.Var]:
    """Each definition on the lanes that are flagged for it; all results have lanes.

    `which` sorts the lanes in the order of the ways; `cond` is the class of conditions.
    """
    rest = [b.lift(a) if a.linear else a for a in rest]
    flags = b.has_lanes(rest)
    sizes = [how_many(b.out, chosen) for _, chosen in ways]
    order = b.prim_("argsort", which, kind="stable")
    lead = (*[ir.Var(b.out.names("m"), I64) for _ in sizes], *b.ahead, order)
    w = Side(b, b.helper("sides"), (*lead, *rest))
    k = len(sizes)
    ms, order_, given = w.formals[:k], w.formals[len(lead) - 1], list(w.formals[len(lead) :])
    types = [v.type for v in e.args[len(e.args) - len(rest) :]]
    ts, us = b.outcome(e)
    every = (True,) * (len(ts) + len(us))
    zones = [(t, False) for t in ts] + [(t, True) for t in us]
    results = [w.blank(t, b.lanes, linear) for t, linear in zones]
    start = None
    for i, (f, _) in enumerate(ways):
        mine = slice(0, ms[i]) if start is None else counting(w, ms[i], start)
        pos = applied(w, "index", order_, at=(mine,))
        mine, given = w.taken(given, types, flags, pos, ms[i])
        name, _ = b.over(f, flags, None, every)
        kinds = [("y", b.run.type(t, ms[i]), linear) for t, linear in zones]
        some = applied(w, "greater", ms[i], w.number(0))
        none = w.none(f"{w.name}.none{i}", (ms[i], *mine), zones, ms[i])
        ys = w.let(cond((some, ms[i], *mine), (name, none)), *kinds)
        results = [
            w.put(x, y, t, pos, ms[i]) for x, y, (t, _) in zip(results, ys, zones, strict=True)
        ]
        if i < k - 1:
            start = ms[i] if start is None else applied(w, "add", start, ms[i])
    w.forget([a for a in given if a.linear])
    b.define(w.done(*results))
    made = Sized((*sizes, *b.ahead, order, *rest), (w.name,), tuple(range(k)))
    return b.results(e, made, every)


# --- loops ----------------------------------------------------------------------------------------


def rounds(b: Any, e: Any, args: Sequence[ir.Var]) -> list[ir.Var]:
    """A while loop whose lanes end at different times; all carries have lanes."""
    k, n = e.nk, len(e.xs)
    ks = args[:k]
    carries = [b.lift(a) for a in args[k:]]
    cs, lcs = carries[: n - k], carries[n - k :]
    flags = (*b.has_lanes(ks), *[True] * len(carries))
    p = e.functions[0]
    taken = len(b.program.defs[p].params)
    now, _ = b.recur(p, flags[:taken], (True,))
    (live,) = b.bound(
        call(now, *b.ahead, *[*ks, *cs][:taken]), [ArrayType((b.lanes,), np.dtype(bool))],
        (True,), 1,
    )  # fmt: skip
    order = b.prim_("argsort", b.prim_("logical_not", live), kind="stable")
    m = how_many(b.out, live)
    go = _going(b, ks, m)
    one = _live(b, e, (ir.Var(b.out.names("m"), I64), *b.ahead, order, *ks, *cs, *lcs), flags)
    w = Side(b, b.helper("round"), (*b.ahead, *ks, m, order, *cs, *lcs))
    a = len(b.ahead)
    same, moving = w.formals[: a + k], w.formals[a + k :]
    m_, order_, *rest = moving
    kinds = [(v.name, v.type, v.linear) for v in (m, order, *carries)]
    step = Sized((m_, *same[:a], order_, *same[a:], *rest), (one,), (0,))
    b.define(w.done(*w.let(step, *kinds)))
    loop = e.over((*b.ahead, *ks, m, order, *cs, *lcs), (go, w.name), a)
    left = [m.type, order.type, *[v.type for v in carries]]
    m, order, *results = b.bound(loop, left, (False, False, *[True] * len(carries)), n - k + 2)
    b.out.bindings += [ir.Let((), ir.drop(v)) for v in (m, order)]
    return results


def _going(b: Any, ks: Sequence[ir.Var], m: ir.Var) -> str:
    """Whether any lane still runs."""
    w = Side(b, b.helper("any"), (*b.ahead, *ks, m))
    w.forget(w.formals[:-1])
    b.define(w.done(applied(w, "greater", w.formals[-1], w.number(0))))
    return w.name


def _live(b: Any, e: Any, formals: ir.Vars, flags: Sequence[bool]) -> str:
    """A round of the lanes that still run: which of them go on, and the carries."""
    w = Side(b, b.helper("live"), formals)
    k, lead = e.nk, len(b.ahead) + 2
    m, order = w.formals[0], w.formals[lead - 1]
    first = slice(0, m)
    pos = applied(w, "index", order, at=(first,))
    types = [a.type for a in e.args]
    mine, left = w.taken(w.formals[lead:], types, flags, pos, m)
    p, f = e.functions
    body, _ = b.over(f, flags, None, flags[k:])
    kinds = [("c", v.type, v.linear) for v in mine[k:]]
    results = w.let(call(body, m, *mine), *kinds)
    taken = len(b.program.defs[p].params)
    now, _ = b.over(p, flags[:taken], None, (True,))
    bools: Any = b.run.type(ArrayType((), np.dtype(bool)), m)
    (live,) = w.let(call(now, m, *[*mine[:k], *results][:taken]), ("p", bools, False))
    ahead = applied(w, "argsort", applied(w, "logical_not", live), kind="stable")
    order = w.put(order, applied(w, "index", pos, at=(ahead,)), I64, first, m)
    pairs = zip(left[k:], results, types[k:], strict=True)
    every = [w.put(x, y, t, pos, m) for x, y, t in pairs]
    b.define(w.done(how_many(w, live), order, *every))
    return w.name


# --- what is written ------------------------------------------------------------------------------


class Side(Writer):
    """A definition beside a batched one, about some of its lanes."""

    def __init__(self, b: Any, name: str, formals: Sequence[ir.Var]) -> None:
        super().__init__(name, formals)
        self.b = b

    def bind(self, like: str, t: Type, e: ir.Leaf, linear: bool = False) -> ir.Var:
        """The variable of a leaf with one result."""
        return self.let(e, (like, t, linear))[0]

    def number(self, value: int) -> ir.Var:
        """A whole number."""
        return self.bind("k", I64, ir.lit(np.int64(value), I64))

    def forget(self, args: Sequence[ir.Var]) -> None:
        """Drop variables."""
        self.bindings += [ir.Let((), ir.drop(a)) for a in args]

    def parts(self, v: ir.Var, t: Product, lanes: Any) -> ir.Vars:
        """The components of a product over lanes."""
        types = [self.b.run.type(s, lanes) for s in t.items]
        made = tuple([self.var(v.name, s, v.linear) for s in types])
        self.bindings.append(ir.Unpack(made, v))
        return made

    def product(self, t: Type, lanes: Any, parts: Sequence[ir.Var], linear: bool) -> ir.Var:
        """A product over lanes, of its components."""
        fields = self.b.unfold(t).fields
        return self.bind(
            "p", self.b.run.type(t, lanes), ir.Tup(tuple(parts), linear, fields), linear
        )

    def items(self, t: Type) -> tuple[Type, ...] | None:
        """The components of a product, None of an array."""
        whole = self.b.unfold(t)
        if isinstance(whole, Product):
            return whole.items
        if not isinstance(whole, ArrayType):
            raise ProgramError(
                f"batch: in {self.b.d.name}, lanes go different ways with a {show(whole)}, which "
                "cannot be parted; batch what is around it"
            )
        return None

    def blank(self, t: Type, lanes: object, linear: bool) -> ir.Var:
        """Zeros for each lane."""
        whole = self.b.run.type(t, lanes)
        items = self.items(t)
        if linear:
            return self.bind("z", whole, ir.zero(whole), True)
        if items is not None:
            return self.product(t, lanes, [self.blank(s, lanes, False) for s in items], False)
        number = ArrayType((), whole.dtype)
        k = self.bind("k", number, ir.lit(whole.dtype.type(0), number))
        return applied(self, "broadcast_to", k, shape=whole.shape)

    def taken(
        self,
        args: Sequence[ir.Var],
        types: Sequence[Type],
        flags: Sequence[bool],
        pos: ir.Var,
        m: ir.Var,
    ) -> tuple[list[ir.Var], list[ir.Var]]:
        """The arguments at the lanes of some positions, and what is left of all arguments."""
        pairs = [
            self.take(v, t, pos, m) if b else (v, v)
            for v, t, b in zip(args, types, flags, strict=True)
        ]
        return [y for y, _ in pairs], [x for _, x in pairs]

    def take(self, v: ir.Var, t: Type, pos: ir.Var, m: ir.Var) -> tuple[ir.Var, ir.Var]:
        """The lanes at some positions, and the variable for all that is left."""
        items = self.items(t)
        if items is not None:
            parts = self.parts(v, self.b.unfold(t), self.b.lanes)
            pairs = [self.take(x, s, pos, m) for x, s in zip(parts, items, strict=True)]
            mine = self.product(t, m, [y for y, _ in pairs], v.linear)
            if not v.linear:
                return mine, v
            return mine, self.product(t, self.b.lanes, [x for _, x in pairs], True)
        part = self.b.run.type(t, m)
        if v.linear:
            y, rest = self.let(ir.Read((v,), (pos,)), ("y", part, True), (v.name, v.type, True))
            return y, rest
        return self.bind("y", part, ir.Prim((v,), op("index"), {"at": (pos,)})), v

    def put(self, x: ir.Var, y: ir.Var, t: Type, pos: object, m: ir.Var) -> ir.Var:
        """x with y in the lanes at some positions."""
        items = self.items(t)
        if items is None:
            return self.bind(x.name, x.type, ir.Put((x, y), (pos,)), x.linear)
        whole = self.b.unfold(t)
        xs = self.parts(x, whole, self.b.lanes)
        ys = self.parts(y, whole, m)
        made = [self.put(*one, pos, m) for one in zip(xs, ys, items, strict=True)]
        return self.product(t, self.b.lanes, made, x.linear)

    def none(self, name: str, args: ir.Vars, zones: Sequence[tuple[Type, bool]], m: ir.Var) -> str:
        """A definition that takes these arguments for no lanes, and gives nothing for each."""
        w = Side(self.b, name, args)
        w.forget(w.formals)
        self.b.define(w.done(*[w.blank(t, m, linear) for t, linear in zones]))
        return name


# --- positions ------------------------------------------------------------------------------------


def placed(b: Any, x: ArrayType, at: tuple[Any, ...], has: bool) -> tuple[Any, Any]:
    """An index over lanes, and the order of axes that then brings the lanes to the front.

    `x` is the type of one lane, `has` says whether the array has lanes; an index that differs from
    lane to lane picks from each lane its own.  NumPy puts the axes of arrays among the positions in
    front if something stands between them, else where they are.
    """
    at = without_masks(at)
    rank = {i: _rank(p) for i, p in enumerate(at) if _is_position(p)}
    places, nb = list(rank), max(rank.values(), default=0)
    together = not places or places == list(range(places[0], places[-1] + 1))
    moved = [b.at[p] if isinstance(p, ir.Var) else p for p in at]
    own = [i for i in places if isinstance(at[i], ir.Var) and moved[i] in b.batched]
    if not own and (together or not nb):
        return (slice(None), *moved), None
    for i in own:
        moved[i] = _padded(b, moved[i], nb - rank[i])
    ahead = at[: places[0]]
    used = sum([p is not None and p is not ... for p in at])
    before = sum([x.ndim - used if p is ... else p is None or isinstance(p, slice) for p in ahead])
    n = 1 + nb + x.ndim - len(places) + sum([p is None for p in at])  # axes of all lanes
    if not has:  # (before, lanes, B, after)
        order = (before, *range(before), *range(before + 1, n))
        return tuple(moved), order if together and before else None
    moved = [_padded(b, counting(b.out, b.lanes), nb), *moved]
    last = 1 + nb + before  # (lanes, B, before, after)
    order = (0, *range(1 + nb, last), *range(1, 1 + nb), *range(last, n))
    return tuple(moved), order if together and before and nb else None


def without_masks(at: tuple[Any, ...]) -> tuple[Any, ...]:
    """An index of arrays: a mask of constants is the positions where it holds, a list an array."""
    positions: list[Any] = []
    for p in [np.asarray(p) if isinstance(p, list) else p for p in at]:
        mask = isinstance(p, np.ndarray | np.bool_ | bool) and np.asarray(p).dtype.kind == "b"
        positions += np.asarray(p).nonzero() if mask else [p]
    return tuple(positions)


def _is_position(p: object) -> bool:
    return isinstance(p, ir.Var | int | np.integer | np.ndarray)


def _rank(p: Shaped) -> int:
    """How many axes an array among positions has."""
    return len(getattr(p.type, "shape", ())) if isinstance(p, ir.Var) else np.ndim(p)


def _padded(b: Any, v: Any, n: int) -> ir.Var:
    """Lanes of numbers with n axes of length 1 behind the lanes."""
    if not n:
        return v
    lead, *rest = v.type.shape
    return b.prim_("reshape", v, shape=(lead, *(1,) * n, *rest))


def in_turn(b: Any, e: Any, args: Sequence[ir.Var], scan: Any) -> list[ir.Var]:
    """One lane after the other, by a scan; `scan` is the class of them."""
    args = [b.lift(a) if a.linear else a for a in args]
    flags = b.has_lanes(args)
    ts, us = b.outcome(e)
    if not b.of_arrays(e):
        b.refuse(e, "goes from lane to lane, with what is no array")
    ks = [i for i, has in enumerate(flags) if not has]
    rows = [i for i, has in enumerate(flags) if has]
    w = Side(b, b.helper("lane"), [e.args[i] for i in (*ks, *rows)])
    mine = dict(zip((*ks, *rows), w.formals, strict=True))
    kinds = [("y", t, False) for t in ts] + [("y", t, True) for t in us]
    left = iter([mine[i] for i in range(len(args))])
    b.define(w.done(*w.let(e.renamed(lambda v: next(left, v)), *kinds)))
    loop = scan(tuple([args[i] for i in (*ks, *rows)]), (w.name,), b.lanes, "fwd", len(ks), 0, 0)
    return b.results(e, loop, (True,) * len(kinds))


# --- the choice of an engine ----------------------------------------------------------------------


def by_engine(
    b: Any,
    e: ir.Leaf,
    args: Sequence[ir.Var],
    packed: Callable[[Sequence[ir.Var]], list[ir.Var]],
    cond: type,
) -> list[ir.Var]:
    """Lanes that go different ways, in two texts: machine code takes one lane after the other.

    A loop costs it nothing, and what is packed has a size that is counted.
    """
    args = [b.lift(a) if a.linear else a for a in args]
    if not b.of_arrays(e) or b.program.may_act(ir.Let((), e)):
        return packed(args)
    compiled = b.prim_("compiled", b.out.bind("k", BOOL, ir.lit(False, BOOL)))
    given = tuple(dict.fromkeys((*b.ahead, *args)))
    ways = [
        apart(b, given, what, lambda how=how: how(args))
        for what, how in (("turn", lambda vs: b.in_turn(e, vs)), ("packed", packed))
    ]
    every = (True,) * sum(map(len, b.outcome(e)))
    return b.results(e, cond((compiled, *given), ways), every)


def apart(b: Any, formals: ir.Vars, what: str, write: Callable[[], list[ir.Var]]) -> str:
    """A definition of what is written, which reads these variables only."""
    before = len(b.out.bindings)
    results = write()
    bindings = b.out.bindings[before:]
    del b.out.bindings[before:]
    read = {v for binding in bindings for v in ir.reads(binding)}.union(results)
    drops = [ir.Let((), ir.drop(v)) for v in formals if v not in read]
    types = [tuple([v.type for v in results if v.linear is linear]) for linear in (False, True)]
    body = ir.Block((*drops, *bindings), ir.Ret(tuple(results)))
    order = tuple(sorted(formals, key=lambda v: v.linear))
    d = ir.Def(b.helper(what), order, types[0], types[1], body)
    b.define(d)
    return d.name


__all__ = ["applied", "by_engine", "in_turn", "placed", "rounds", "sides"]
