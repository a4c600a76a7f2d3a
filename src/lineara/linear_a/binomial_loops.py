"""Binomial checkpoints: a counted loop reversed with s snapshots  [Griewank and Walther 2000].

    seg(n, s)(c0 ; ~d) =
      let m   = advance_k(c0) in
      let ~dm = seg(k, s)(c0 ; ~d) in
      seg(n-k, s-1)(m ; ~dm)
    seg(1, s)(c0 ; ~d) = let (c1, t) = f.nl(c0) in drop(c1), f.lin(t ; ~d)

This is linear code like any other, and the tape of the loop is what it starts from: T, applied as
it stands, reverses the right part while it holds m, and then the left one, which is the treeverse
schedule.  A segment is a definition, one for each (n, s) that occurs  (spec, 13.g).
"""

from collections.abc import Sequence
from math import comb
from typing import Any

from lineara.facts.registry import op
from lineara.facts.types import ArrayType, Type, stacked
from lineara.linear_a import syntax as ir
from lineara.linear_a.calls import Call, Writer


def advances(n: int, s: int) -> int:
    """How many steps forward it takes to reverse n steps with s snapshots beside the first state.

    t(n, s) = r n - C(s+1+r, s+2), with the least r for which C(s+1+r, s+1) >= n; the step that is
    reversed, and is run for its tape, does not count.

    >>> [advances(n, 2) for n in range(1, 11)]
    [0, 1, 2, 3, 5, 7, 9, 11, 13, 15]
    """
    r = 0
    while comb(s + 1 + r, s + 1) < n:
        r += 1
    return r * n - comb(s + 1 + r, s + 2)


def split(n: int, s: int) -> int:
    """After how many of n steps the next snapshot is best taken.

    It minimises k + t(n-k, s-1) + t(k, s), which is convex in k; without snapshots left, only the
    last step can be reversed.
    """
    if not s:
        return n - 1

    def cost(k: int) -> int:
        return k + advances(n - k, s - 1) + advances(k, s)

    low, high = 1, n - 1
    while low < high:
        middle = (low + high) // 2
        if cost(middle) <= cost(middle + 1):
            high = middle
        else:
            low = middle + 1
    return low


def unzip_with_snapshots(u: Any, loop: Any, s: int) -> tuple[ir.Leaf, ir.Leaf] | None:
    """U of a scan that keeps its arguments and s snapshots; None where that is not possible."""
    d = u.program.defs[loop.body]
    _, nlc = loop.carried()
    rows = [v.type for v in (*d.xs[loop.nk + loop.nc :], *d.lxs[nlc:])]
    rows += [*d.results[loop.nc :], *d.lresults[nlc:]]
    if loop.n is None or loop.n < 2 or not all(isinstance(t, ArrayType) for t in rows):
        return None
    ts, _ = loop.outcome(d)
    rs = u.results(ts)
    u.context.append(ir.Let(rs, loop.nonlinear(loop.xs, (u.primal(loop.body),))))
    segments = Segments(u, loop, d)
    return ir.Ret(rs), Call((*loop.xs, *loop.lxs), (segments.all(loop.n, s),))


class Segments:
    """The definitions that one loop needs, and their names."""

    tape: Any
    nlc: Any
    nl: Any
    lin: Any
    k: Any
    c: Any

    def __init__(self, u: Any, loop: Any, d: Any) -> None:
        self.u = u
        self.loop = loop
        self.d = d
        self.nl, self.lin, self.tape = u.recur(d.name)
        self.k, self.c = loop.nk, loop.nk + loop.nc
        _, self.nlc = loop.carried()

    def name(self, what: str, *numbers: int) -> str:
        """The name of a segment or an advance."""
        shape = (*numbers, self.loop.nk, self.loop.nc, self.nlc)
        return f"{self.d.name}.{what}.{self.loop.direction}{chr(39).join(map(str, shape))}"

    def all(self, n: int, s: int) -> str:
        """Define the segment of n rounds with s snapshots, and those that it is made of."""
        todo = [(n, s)]
        while todo:
            n_, s_ = todo.pop()
            if self.name("seg", n_, s_) in self.u.run.defs:
                continue
            if n_ == 1:
                self.u.define(self.round(s_))
            else:
                k = split(n_, s_)
                self.u.define(self.segment(n_, s_, k))
                todo += [(k, s_), (n_ - k, max(s_ - 1, 0))]
        return self.name("seg", n, s)

    def writer(self, n: int, s: int) -> tuple[Writer, ir.Vars, ir.Vars, ir.Vars, ir.Vars, ir.Vars]:
        """A segment's formals: ks, cs, xs, lcs, lxs."""
        d, c = self.d, self.c
        formals = [
            *d.xs[:c],
            *[ir.Var(v.name, stacked(v.type, n)) for v in d.xs[c:]],
            *d.lxs[: self.nlc],
            *[ir.Var(v.name, stacked(v.type, n), True) for v in d.lxs[self.nlc :]],
        ]
        w = Writer(self.name("seg", n, s), formals)
        m = len(d.xs)
        xs, lxs = w.formals[:m], w.formals[m:]
        return w, xs[: self.k], xs[self.k : c], xs[c:], lxs[: self.nlc], lxs[self.nlc :]

    def round(self, s: int) -> Any:
        """One round: its tape is made, and read at once."""
        w, ks, cs, xs, lcs, lxs = self.writer(1, s)
        d = self.d
        row = [shaped(w, x, v.type) for x, v in zip(xs, d.xs[self.c :], strict=True)]
        lrow = [shaped(w, x, v.type) for x, v in zip(lxs, d.lxs[self.nlc :], strict=True)]
        kinds = [*[("r", t, False) for t in d.results], ("t", self.tape, False)]
        *rs, t = w.let(Call((*ks, *cs, *row), (self.nl,)), *kinds)
        w.let(ir.drop(*rs))
        cotangents = self.linear(w, Call((t, *lcs, *lrow), (self.lin,)), d.lresults)
        lys = [shaped(w, y, stacked(y.type, 1)) for y in cotangents[self.nlc :]]
        return w.done(*cotangents[: self.nlc], *lys)

    def segment(self, n: int, s: int, k: int) -> Any:
        """Two segments: the first k rounds, and the others from where those end."""
        w, ks, cs, xs, lcs, lxs = self.writer(n, s)
        forward = self.loop.direction == "fwd"
        first, second = slice(0, k), slice(k, n)
        if not forward:
            first, second = slice(n - k, n), slice(0, n - k)
        xs1 = [part(w, x, first) for x in xs]
        xs2 = [part(w, x, second) for x in xs]
        kinds = [("m", v.type, False) for v in cs]
        m = w.let(Call((*ks, *cs, *xs1), (self.advance(k),)), *kinds)
        pairs = [w.dup(x) for x in lxs]
        lxs1 = [part(w, a, first) for a, _ in pairs]
        lxs2 = [part(w, b, second) for _, b in pairs]
        one = self.linear(
            w, Call((*ks, *cs, *xs1, *lcs, *lxs1), (self.name("seg", k, s),)), self.outcome(k)
        )
        rest = self.name("seg", n - k, max(s - 1, 0))
        given = (*ks, *m, *xs2, *one[: self.nlc], *lxs2)
        two = self.linear(w, Call(given, (rest,)), self.outcome(n - k))
        lys = []
        for a, b, t in zip(
            one[self.nlc :], two[self.nlc :], self.outcome(n)[self.nlc :], strict=True
        ):
            both = (a, b) if forward else (b, a)
            lys += w.let(ir.Prim(both, op("concat"), {"axis": 0}), ("dy", t, True))
        return w.done(*two[: self.nlc], *lys)

    def linear(self, w: Writer, e: ir.Leaf, types: Sequence[Type]) -> ir.Vars:
        """Linear results bound."""
        return w.let(e, *[("dc", t, True) for t in types])

    def outcome(self, n: int) -> list[Type]:
        """The types of the linear results of a segment."""
        us = self.d.lresults
        return [*us[: self.nlc], *[stacked(t, n) for t in us[self.nlc :]]]

    def advance(self, k: int) -> str:
        """The definition that runs k rounds and keeps the carries."""
        name = self.name("adv", k)
        if name not in self.u.run.defs:
            d, c = self.d, self.c
            formals = [*d.xs[:c], *[ir.Var(v.name, stacked(v.type, k)) for v in d.xs[c:]]]
            w = Writer(name, formals)
            kinds = [("m", v.type, False) for v in d.xs[self.k : c]]
            m = w.let(self.loop.rounds(w.formals, self.carries_only(), k), *kinds)
            self.u.define(w.done(*m))
        return name

    def carries_only(self) -> str:
        """The primal body, without what it stacks."""
        primal, nc = self.u.primal(self.d.name), self.loop.nc
        if len(self.d.results) == nc:
            return primal
        name = self.name("step")
        if name not in self.u.run.defs:
            w = Writer(name, self.d.xs)
            rs = w.let(Call(w.formals, (primal,)), *[("r", t, False) for t in self.d.results])
            w.let(ir.drop(*rs[nc:]))
            self.u.define(w.done(*rs[:nc]))
        return name


def shaped(w: Writer, x: ir.Var, t: Type) -> ir.Var:
    """A row as a stack of one, or back."""
    assert isinstance(t, ArrayType)
    return w.let(ir.Prim((x,), op("reshape"), {"shape": t.shape}), (x.name, t, x.linear))[0]


def part(w: Writer, x: ir.Var, rows: slice) -> ir.Var:
    """Some rows of a stack."""
    assert isinstance(x.type, ArrayType)
    t = ArrayType((rows.stop - rows.start, *x.type.shape[1:]), x.type.dtype)
    return w.let(ir.Prim((x,), op("index"), {"at": (rows,)}), (x.name, t, x.linear))[0]
