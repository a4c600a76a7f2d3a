"""Loops: a definition round after round, over carries and stacks.

    scan[f, n, dir, nk, nc, nlc](ks, cs, xs ; ~lcs, ~lxs) -> (cs', ys ; ~lcs', ~lys)
    while[p, f, nk](ks, cs ; ~lcs)                        -> (cs', ys ; ~lcs', ~lys)

The body is f(k*, c*, x* ; lc*, lx*) -> (c'*, y* ; lc'*, ly*): ks are the same in every round, cs
are carried on, xs and ys are stacked, one a round.  A scan whose n is None goes as long as its
stacks, which a while loop has made.

J carries the tangents of ks along, so that in the transpose they are sums; U stacks the tapes of
the rounds and leaves what is the same in every round off them; T runs the other way round.
"""

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from lineara.errors import ProgramError
from lineara.facts.hints import Shaped
from lineara.facts.types import ArrayType, Stack, Type, show, stacked
from lineara.linear_a import syntax as ir
from lineara.linear_a.binomial_loops import unzip_with_snapshots
from lineara.linear_a.branches import Cond
from lineara.linear_a.calls import Call, Form, Writer
from lineara.linear_a.counted_loops import unzip_counted
from lineara.linear_a.dimensions import is_index, matching, with_dims
from lineara.linear_a.lane_partition import by_engine, rounds
from lineara.linear_a.syntax import Def

Zoned = tuple[tuple[Type, ...], tuple[Type, ...]]


class Loop(Form):
    """What scan and while share."""

    __slots__ = ()
    FORM = ""
    HANDS_ALL_ON: ClassVar[bool] = True

    @property
    def body(self) -> str:
        """The definition that is applied in every round."""
        return self.functions[-1]

    @property
    def invariants(self) -> int:
        """How many arguments are the same in every round."""
        raise NotImplementedError

    @property
    def length(self) -> int | None:
        """The number of rounds, if it is known before."""
        return None

    def carried(self) -> tuple[int, int]:
        """How many carries there are, non-linear and linear."""
        raise NotImplementedError

    def zipped(self, defs: dict[Any, Any]) -> Iterator[tuple[str, ir.Vars, ir.Vars]]:
        """The body, its formals that are the same in every round, and their values."""
        for f in self.functions:
            if f in defs:
                yield f, defs[f].xs[: self.invariants], self.xs[: self.invariants]

    def may_end(self, ends: list[bool]) -> bool:
        """Without a round, only the condition must end."""
        return all(ends[:-1])

    def outcome(self, d: Def) -> Zoned:
        """The results: carries as they are, the others stacked."""
        nc, nlc = self.carried()
        zones = zip(self.stated(d.name, d, {d.name: d}), (nc, nlc), strict=True)
        ts, us = ((*types[:k], *[stacked(t, self.length) for t in types[k:]]) for types, k in zones)
        return ts, us

    def carries_agree(self, judge: Any, d: Def) -> None:
        """Check that the carries of a round have the types that the next round takes."""
        nc, nlc = self.carried()
        k = self.invariants
        pairs = [*zip(d.xs[k : k + nc], d.results, strict=False)]
        pairs += [*zip(d.lxs[:nlc], d.lresults, strict=False)]
        if len(d.results) < nc or len(d.lresults) < nlc:
            judge.wrong(f"{d.name} hands {len(d.results)} values on, but {nc} are carried", self)
        for v, t in pairs:
            if not judge.program.same(v.type, t):
                judge.wrong(
                    f"{d.name} takes the carry {v!r}: {show(v.type)}, but hands {show(t)} on; a "
                    "carry has one type",
                    self,
                )

    def with_tangents(self, args: ir.Vars, functions: tuple[str, ...], linear: int) -> Any:
        """The loop with more linear carries."""
        raise NotImplementedError

    def jvp(self, j: Any, phi: dict[Any, Any], later: dict[Any, Any]) -> ir.Leaf:
        """JScan: the tangents of ks go from round to round, and are handed on."""
        k, (nc, _) = self.invariants, self.carried()
        t = j.threaded(phi, self, [(self.body, 0)], range(k), later)
        carries = [a for a in self.args[k : k + nc] if j.has_tangent(a.type)]
        loop = self.with_tangents(
            (*self.args, *t.tangents),
            (*self.functions[:-1], j.recur(self.body, t.on, t.same)),
            len(t.on) + len(carries),
        )
        ts, _ = self.outcome(j.program.defs[self.body])
        return j.handed(t, loop, ts, phi)

    def unzip(self, u: Any) -> tuple[ir.Leaf, ir.Leaf]:
        """UScan and UScanHoist: the tapes of the rounds in a stack, without what is invariant."""
        if all(map(u.is_nonlinear, self.functions)):
            return self, ir.Ret(())
        k = self.invariants
        nl, lin, tape, read = u.hoisted(self.body, k)
        d = u.program.defs[self.body]
        ts, _ = self.outcome(d)
        rs = u.results(ts)
        here = with_dims(tape, matching(d.xs[:k], self.xs[:k]))
        t = u.fresh("ts", stacked(here, self.length))
        forward = self.nonlinear(self.xs, (*self.functions[:-1], nl))
        u.context.append(ir.Let((*rs, t), forward))
        _, nlc = self.carried()
        invariant = [self.args[i] for i in read]
        back = Scan(
            (*invariant, t, *self.lxs), (lin,), self.length, self.way, len(invariant), 0, nlc
        )
        return ir.Ret(rs), back

    def with_carry_lanes(self, b: Any, args: Sequence[ir.Var]) -> tuple[tuple[bool, ...], str, Any]:
        """Which arguments have lanes from round to round, the body on them, and its results."""
        m, k = len(self.xs), self.invariants
        nc, nlc = self.carried()
        flags = [*b.has_lanes(args)]
        places = [*range(k, k + nc), *range(m, m + nlc)]
        while True:
            name, with_lanes = b.recur(self.body, tuple(flags))
            n = len(b.program.defs[self.body].results)
            carried = [*with_lanes[:nc], *with_lanes[n : n + nlc]]
            new = [i for i, has in zip(places, carried, strict=True) if has and not flags[i]]
            if not new:
                break
            for i in new:
                flags[i] = True
        want = list(with_lanes)
        for i, has in zip(
            [*range(nc), *range(n, n + nlc)], [flags[i] for i in places], strict=True
        ):
            want[i] = has
        name, with_lanes = b.recur(self.body, tuple(flags), tuple(want))
        return tuple(flags), name, with_lanes

    @property
    def way(self) -> str:
        """fwd or rev."""
        return "fwd"

    def nonlinear(self, args: ir.Vars, functions: tuple[str, ...]) -> Any:
        """The loop without its linear part."""
        raise NotImplementedError

    def without_tape(self, u: Any, b: ir.Let, dead: list[ir.Var]) -> Any:
        """The primal loop, where nothing reads the tapes."""
        name = u.of_half(self.body)
        if name is None or b.vars[-1] not in dead:
            return None
        return b.vars[:-1], self.on(self.args, (*self.functions[:-1], u.primal(name)))

    def permuted(self, e: Any, d: Any, name: str) -> str:
        """The erased body with its carries together, and then what is stacked."""
        nc, nlc = self.carried()
        k, n = self.invariants, len(d.xs)
        body = e.recur(d.name)
        if (n == k + nc and len(d.results) == nc) or (not d.lxs and not d.lresults):
            return body
        linear = [ir.Var(v.name, t) for v in d.lxs for t in e.types([v.type])]
        w = Writer(f"{body}.{name}", (*d.xs, *linear))
        kinds = [("r", t, False) for t in (*d.results, *e.types(d.lresults))]
        formals = w.formals
        made = w.let(Call(formals, (body,)), *kinds)
        q, c, m = len(e.types([v.type for v in d.lxs[:nlc]])), k + nc, len(d.results)
        w.formals = (*formals[:c], *formals[n : n + q], *formals[c:n], *formals[n + q :])
        e.define(w.done(*made[:nc], *made[m : m + q], *made[nc:m], *made[m + q :]))
        return w.name

    def handed_on(self, d: Def, results: list[Any], rows: list[Any]) -> tuple[list[Any], list[Any]]:
        """The carries after a round; what is stacked is put to the rows."""
        nc, nlc = self.carried()
        m = len(d.results)
        for row, y in zip(rows, (*results[nc:m], *results[m + nlc :]), strict=True):
            row.append(y)
        carries = results[:nc], results[m : m + nlc]
        results.clear()
        return carries

    def stacks(
        self,
        machine: Any,
        d: Def,
        cs: list[Any],
        lcs: list[Any],
        rows: list[Any],
        dims: dict[Any, Any],
    ) -> list[Any]:
        """The results of the loop: carries and stacks."""
        nc, nlc = self.carried()
        ts, us = self.outcome(d)
        types = [with_dims(t, dims) for t in (*ts[nc:], *us[nlc:])]
        made = [machine.stack(t, row) for t, row in zip(types, rows, strict=True)]
        k = len(ts) - nc
        return [*cs, *made[:k], *lcs, *made[k:]]

    def lengths(self, machine: Any, ks: list[Any]) -> dict[ir.Var, int]:
        """The dimensions of the body, in numbers, under the names that they have here."""
        at = dict(zip(self.xs, ks, strict=False))
        return {a: int(k) for a, k in at.items() if is_index(a)}

    def rows(self, d: Def) -> list[list[Any]]:
        """A row for every result that is stacked."""
        return [[] for _ in range(len(d.results) + len(d.lresults) - sum(self.carried()))]


def rows(b: Any, v: ir.Var) -> ir.Var:
    """An array with its first two axes exchanged: lanes of rows are rows of lanes, and back."""
    if not isinstance(v.type, ArrayType):
        return v
    return b.permuted(v, (1, 0, *range(2, v.type.ndim)))


def rowed(b: Any, t: Type) -> Type:
    """The type of rows of lanes."""
    over_lanes = b.type(t)
    if not isinstance(over_lanes, ArrayType):
        return over_lanes
    n, lanes, *rest = t.shape[0], over_lanes.shape[0], *t.shape[1:]  # type: ignore[union-attr]
    return ArrayType((n, lanes, *rest), over_lanes.dtype)


def _row(value: Shaped, i: int) -> Any:
    return value[i] if hasattr(value, "__getitem__") else value  # a symbolic zero


@ir.node()
class Scan(Loop):
    """scan[f, n, dir, nk, nc, nlc](ks, cs, xs ; ~lcs, ~lxs)."""

    n: Any  # a number, a variable, or None
    direction: str
    nk: int
    nc: int
    nlc: int

    FORM = "scan[f, n, fwd|rev, nk, nc, nlc](ks, cs, xs; ~lcs, ~lxs)"

    def head(self) -> str:
        """scan[..]."""
        n = "None" if self.n is None else self.n
        numbers = f"{n}, {self.direction}, {self.nk}, {self.nc}, {self.nlc}"
        return f"scan[{self.body}, {numbers}]"

    def operands(self) -> ir.Vars:
        """The arguments, and the number of rounds if it is a variable."""
        return (*self.args, *ir.vars_in(self.n))

    def renamed(self, rename: ir.Rename) -> "Scan":
        """The same about other variables."""
        loop = self.on(tuple([rename(a) for a in self.args]))
        return loop.with_length({self.n: rename(self.n)}) if isinstance(self.n, ir.Var) else loop

    def with_length(self, dims: Any) -> "Scan":
        """The same with a number of rounds that is no variable."""
        n = dims.get(self.n, self.n)
        if n is self.n:
            return self
        return Scan(self.args, self.functions, n, self.direction, self.nk, self.nc, self.nlc)

    def on(self, args: ir.Vars, functions: tuple[str, ...] | None = None) -> "Scan":
        """The same on other arguments, and with another body."""
        return Scan(
            args, functions or self.functions, self.n, self.direction, self.nk, self.nc, self.nlc
        )

    @property
    def invariants(self) -> int:
        """nk."""
        return self.nk

    @property
    def length(self) -> int | None:
        """n."""
        return self.n

    @property
    def way(self) -> str:
        """fwd or rev."""
        return self.direction

    def work(self, works: list[int | None]) -> int | None:
        """That of the body, n times."""
        (w,) = works
        return self.n * w if w is not None and isinstance(self.n, int) else None

    def carried(self) -> tuple[int, int]:
        """nc and nlc."""
        return self.nc, self.nlc

    def nonlinear(self, args: ir.Vars, functions: tuple[str, ...]) -> "Scan":
        """The loop without its linear part."""
        return Scan(args, functions, self.n, self.direction, self.nk, self.nc, 0)

    def batch(self, b: Any, args: list[ir.Var]) -> list[ir.Var]:
        """Every round over all lanes; a row of a stack is that of each lane."""
        flags, name, with_lanes = self.with_carry_lanes(b, args)
        m, k, c = len(self.xs), self.nk, self.nk + self.nc
        carried = (*range(k, c), *range(m, m + self.nlc))
        given = [
            a if not has or i < k else b.lift(a) if i in carried else rows(b, a)
            for i, (a, has) in enumerate(zip(args, flags, strict=True))
        ]
        k += len(b.ahead)
        loop = Scan((*b.ahead, *given), (name,), self.n, self.direction, k, self.nc, self.nlc)
        ts, us = b.outcome(self)
        stacks = [i >= self.nc for i in range(len(ts))] + [i >= self.nlc for i in range(len(us))]
        shown = [
            rowed(b, t) if s and has else b.type(t) if has else t
            for t, s, has in zip((*ts, *us), stacks, with_lanes, strict=True)
        ]
        made = b.bound(loop, shown, with_lanes, len(ts))
        every = zip(made, stacks, with_lanes, strict=True)
        return [rows(b, v) if s and has else v for v, s, has in every]

    def rounds(self, args: ir.Vars, body: str, n: int) -> "Scan":
        """n rounds of another body without linear part, whose results are the carries."""
        return Scan(args, (body,), n, self.direction, self.nk, self.nc, 0)

    def unzip(self, u: Any) -> tuple[ir.Leaf, ir.Leaf]:
        """With the tapes of all rounds, or with as many snapshots as the policy allows."""
        s = u.snapshots
        plain = isinstance(self.n, int) and not u.program.dims(self.body)
        if s is not None and plain and not u.is_nonlinear(self.body):
            halves = unzip_with_snapshots(u, self, s)
            if halves is not None:
                return halves
        return Loop.unzip(self, u)

    def with_tangents(self, args: ir.Vars, functions: tuple[str, ...], linear: int) -> "Scan":
        """The loop with tangents as linear carries."""
        return Scan(args, functions, self.n, self.direction, self.nk, self.nc, linear)

    def result(self, judge: Any) -> Zoned:
        """The body takes the invariants, the carries, and a row of each stack."""
        if self.direction not in ("fwd", "rev") or len(self.functions) != 1:
            judge.wrong(f"the form is {self.FORM}", self)
        d = judge.definition(self.body, self)
        k = self.nk + self.nc
        want = [
            *d.xs[:k],
            *[ir.Var(v.name, stacked(v.type, self.n)) for v in d.xs[k:]],
            *d.lxs[: self.nlc],
            *[ir.Var(v.name, stacked(v.type, self.n), True) for v in d.lxs[self.nlc :]],
        ]
        if len(d.xs) < k or len(d.lxs) < self.nlc:
            judge.wrong(f"{self.body} has too few formals for nk, nc, nlc of {self.head()}", self)
        judge.fits(self, self.head(), want, self.args)
        if self.n is None and not any(isinstance(a.type, Stack) for a in self.args):
            judge.wrong("a scan without a length goes over a stack; give it one, or a length", self)
        self.carries_agree(judge, d)
        return self.outcome(d)

    def run(self, machine: Any, values: list[Any]) -> Any:
        """n rounds, in one direction or the other."""
        d = machine.program.defs[self.body]
        k, c, m = self.nk, self.nk + self.nc, len(self.xs)
        ks, cs, xs = values[:k], values[k:c], values[c:m]
        dims = self.lengths(machine, ks)
        lcs, lxs = values[m : m + self.nlc], values[m + self.nlc :]
        values.clear()
        machine.owners.share(tuple(ks))  # every round gets them
        n = self.n
        if n is None:
            n = next((len(v) for v in (*xs, *lxs) if isinstance(v, list)), 0)
        rows, done, steady = self.rows(d), 0, machine.values.steady(machine, d.name)
        first, step = (0, 1) if self.direction == "fwd" else (n - 1, -1)
        while done < n:
            i = first + step * done
            x, lx = ([_row(v, i) for v in zone] for zone in (xs, lxs))
            given = [*ks, *cs, *x, *lcs, *lx]
            cs = lcs = x = lx = []  # a round may free its carries
            results = yield machine.enter(d.name, given)
            cs, lcs = self.handed_on(d, results, rows)
            done += 1
            if steady is not None:
                done += steady.ended((cs, lcs), rows, n - done, (*xs, *lxs), i, step)
        if steady is not None:
            steady.over()
        ordered = rows if self.direction == "fwd" else [row[::-1] for row in rows]
        return self.stacks(machine, d, cs, lcs, ordered, dims)

    def transpose(self, t: Any, cs: Sequence[ir.Var]) -> dict[ir.Var, ir.Var]:
        """TScan: the other way round; a carry that was dup'd every round becomes a sum."""
        other = "rev" if self.direction == "fwd" else "fwd"
        made = [t.fresh(a) for a in self.lxs]
        body = t.recur(self.body)
        loop = Scan((*self.xs, *cs), (body,), self.n, other, self.nk, 0, self.nlc)
        t.write(made, loop)
        return dict(zip(self.lxs, made, strict=True))

    def erase(self, e: Any) -> ir.Leaf:
        """EScan: the linear carries join the carries."""
        d = e.program.defs[self.body]
        body = self.permuted(e, d, f"scan{self.nk}'{self.nc}'{self.nlc}")
        k, lcs = self.nk + self.nc, e.each(self.lxs[: self.nlc])
        given = (*self.xs[:k], *lcs, *self.xs[k:], *e.each(self.lxs[self.nlc :]))
        return e.reordered(
            Scan(given, (body,), self.n, self.direction, self.nk, self.nc + len(lcs), 0),
            self.outcome(d), self.nc, self.nlc,
        )  # fmt: skip


@ir.node()
class While(Loop):
    """while[p, f, nk](ks, cs ; ~lcs), as long as p(ks, cs) of the first carries is true."""

    nk: int

    FORM = "while[p, f, nk](ks, cs; ~lcs), where p gives a bool"

    def head(self) -> str:
        """while[..]."""
        return f"while[{', '.join(self.functions)}, {self.nk}]"

    def on(self, args: ir.Vars, functions: tuple[str, ...] | None = None) -> "While":
        """The same on other arguments, and with other definitions."""
        return While(args, functions or self.functions, self.nk)

    @property
    def invariants(self) -> int:
        """nk."""
        return self.nk

    def carried(self) -> tuple[int, int]:
        """All arguments but the invariants."""
        return len(self.xs) - self.nk, len(self.lxs)

    def nonlinear(self, args: ir.Vars, functions: tuple[str, ...]) -> "While":
        """The loop without its linear part."""
        return While(args, functions, self.nk)

    def batch(self, b: Any, args: list[ir.Var]) -> list[ir.Var]:
        """Rounds over all lanes, or over those whose own condition still holds."""
        flags, name, with_lanes = self.with_carry_lanes(b, args)
        p = self.functions[0]
        taken = len(b.program.defs[p].params)
        nc, nlc = self.carried()
        over, (own,) = b.recur(p, flags[:taken])
        if own:
            if len(with_lanes) > nc + nlc:
                b.refuse(self, "stacks what it finds in rounds whose number differs by lane")
            return by_engine(b, self, args, lambda given: rounds(b, self, given), Cond)
        given = [b.lift(a) if has else a for a, has in zip(args, flags, strict=True)]
        return b.results(
            self, self.over((*b.ahead, *given), (over, name), len(b.ahead)), with_lanes
        )

    def over(self, args: ir.Vars, functions: tuple[str, ...], ahead: int) -> "While":
        """The loop with more invariants in front."""
        return While(args, functions, self.nk + ahead)

    def counting(self, args: ir.Vars, body: str) -> "While":
        """Another body, that carries something more than this one."""
        return While(args, (self.functions[0], body), self.nk)

    def bounded(self, args: ir.Vars, functions: tuple[str, ...]) -> "While":
        """A loop with another condition and body, and one more invariant."""
        return While(args, functions, self.nk + 1)

    def unzip(self, u: Any) -> tuple[ir.Leaf, ir.Leaf]:
        """With the tapes of all rounds, or with as many snapshots as the policy allows."""
        plain = not u.program.dims(self.body)
        if u.snapshots is not None and plain and not u.is_nonlinear(self.body):
            halves = unzip_counted(u, self, u.snapshots)
            if halves is not None:
                return halves
        return Loop.unzip(self, u)

    def with_tangents(self, args: ir.Vars, functions: tuple[str, ...], linear: int) -> "While":
        """The loop with tangents as linear carries."""
        return While(args, functions, self.nk)

    def result(self, judge: Any) -> Zoned:
        """The condition takes the first arguments, the body all of them."""
        if len(self.functions) != 2:
            judge.wrong(f"the form is {self.FORM}", self)
        p, d = (judge.definition(f, self) for f in self.functions)
        bool_ = ArrayType((), np.dtype(bool))
        if p.results != (bool_,) or p.lxs or p.lresults or len(p.xs) > len(self.xs):
            judge.wrong(f"the condition {p.name} gives one bool; the form is {self.FORM}", self)
        judge.fits(self, p.name, p.params, self.xs[: len(p.xs)])
        judge.fits(self, d.name, d.params, self.args)
        self.carries_agree(judge, d)
        return self.outcome(d)

    def run(self, machine: Any, values: list[Any]) -> Any:
        """Rounds while the condition holds."""
        p, d = (machine.program.defs[f] for f in self.functions)
        m = len(self.xs)
        ks, cs, lcs = values[: self.nk], values[self.nk : m], values[m:]
        dims = self.lengths(machine, ks)
        values.clear()
        machine.owners.share(tuple(ks))  # every round gets them
        rows, done, steady = self.rows(d), 0, machine.values.steady(machine, d.name)
        while True:
            mine = machine.owners.lent(cs)
            (go,) = yield machine.enter(p.name, [*ks, *cs][: len(p.xs)])
            if not machine.holds(go, done):
                break
            done += 1
            while mine:
                machine.owners.take(mine.pop())
            given = [*ks, *cs, *lcs]
            cs = lcs = []  # a round may free its carries
            results = yield machine.enter(d.name, given)
            cs, lcs = self.handed_on(d, results, rows)
            if steady is not None:
                done += steady.ended((cs, lcs), rows, machine.values.left(go, done))
        if steady is not None:
            steady.over()
        return self.stacks(machine, d, cs, lcs, rows, dims)

    def transpose(self, t: object, cs: Sequence[ir.Var]) -> dict[ir.Var, ir.Var]:
        """In Linear B it carries nothing that its condition could depend on."""
        raise ProgramError(
            f"transpose: {self.head()} takes no round or never ends, for nothing that its "
            "condition reads ever changes; call the body in a branch of cond, or carry what ends "
            "the loop"
        )

    def erase(self, e: Any) -> ir.Leaf:
        """The linear carries join the carries; the condition takes the first ones only."""
        d = e.program.defs[self.body]
        nc, nlc = self.carried()
        body = self.permuted(e, d, f"while{self.nk}'{nc}")
        loop = While(e.each(self.args), (self.functions[0], body), self.nk)
        return e.reordered(loop, self.outcome(d), nc, nlc)
