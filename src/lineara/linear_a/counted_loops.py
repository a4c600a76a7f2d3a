"""A while loop reversed with s snapshots, once its rounds are counted  [Griewank and Walther 2000].

    seg_s(n, c0 ; ~d) =
      n = 0    ~d
      n = 1    let (c1, t) = f.nl(c0) in drop(c1), f.lin(t ; ~d)
      else     let k = split_s(n), m = advance(k, c0) in
               seg_(s-1)(n - k, m ; seg_s(k, c0 ; ~d))

Once it has run, a loop of unknown length has a known one.  The loop that counts its rounds keeps
what it starts from, and that is its tape; the transpose is the treeverse of treeverse.py, where n
is a number of the run.  It holds the start and s states at most, and takes t(n, s) steps forward,
the fewest there are.  Snapshots while the loop runs [Stumm and Walther 2010] would save the first k
of those at best, for memory in the forward run.
"""

from typing import Any

import numpy as np

from lineara.facts.registry import op
from lineara.facts.types import ArrayType
from lineara.linear_a import syntax as ir
from lineara.linear_a.branches import Switch
from lineara.linear_a.calls import Call, Writer

INT = ArrayType((), np.dtype(np.int64))
BOOL = ArrayType((), np.dtype(bool))


def unzip_counted(u: Any, loop: Any, s: int) -> tuple[ir.Leaf, ir.Leaf] | None:
    """U of a while loop that keeps its arguments; None if its rounds give more than carries."""
    d = u.program.defs[loop.body]
    nc, nlc = loop.carried()
    if len(d.results) != nc or len(d.lresults) != nlc:
        return None
    segments = Segments(u, loop, d)
    start, n = u.fresh("i", INT), u.fresh("n", INT)
    rs = u.results(d.results)
    u.context.append(ir.Let((start,), number(0)))
    counted = loop.counting((*loop.xs, start), segments.counted())
    u.context.append(ir.Let((*rs, n), counted))
    return ir.Ret(rs), Call((n, *loop.xs, *loop.lxs), (segments.all(s),))


def number(n: int) -> ir.Leaf:
    """An integer."""
    return ir.lit(np.int64(n), INT)


class Segments:
    """The definitions that one loop needs."""

    tape: Any
    nl: Any
    lin: Any

    def __init__(self, u: Any, loop: Any, d: Any) -> None:
        self.u = u
        self.loop = loop
        self.d = d
        self.nl, self.lin, self.tape = u.recur(d.name)
        self.k: Any = loop.invariants

    def name(self, what: str, *snapshots: int) -> str:
        """The name of one of the definitions."""
        return f"{self.d.name}.{what}{chr(39).join(map(str, (self.k, *snapshots)))}"

    def integer(self, w: Writer, like: str, name: str, *args: ir.Var, t: ArrayType = INT) -> ir.Var:
        """An operation on integers."""
        return w.let(ir.Prim(args, op(name)), (like, t, False))[0]

    def one_more(self, w: Writer, i: ir.Var) -> ir.Var:
        """i + 1."""
        (one,) = w.let(number(1), ("one", INT, False))
        return self.integer(w, "j", "add", i, one)

    def primal(self, w: Writer, xs: ir.Vars) -> ir.Vars:
        """The carries after a round."""
        kinds = [("r", t, False) for t in self.d.results]
        return w.let(Call(xs, (self.u.primal(self.d.name),)), *kinds)

    def counted(self) -> str:
        """The primal body, with the number of rounds as its last carry."""
        w = Writer(self.name("counted"), (*self.d.xs, ir.Var("i", INT)))
        *xs, i = w.formals
        rs = self.primal(w, tuple(xs))
        self.u.define(w.done(*rs, self.one_more(w, i)))
        return w.name

    def all(self, s: int) -> str:
        """The segment with s snapshots, those with fewer, and what they choose from."""
        for made in (self.none(), self.single(), self.more(), self.step(), self.advance()):
            self.u.define(made)
        for left in range(s + 1):
            self.split(left)
            self.u.define(self.double(left))
            self.u.define(self.segment(left))
        return self.name("seg", s)

    def segment(self, s: int) -> Any:
        """Any number of rounds."""
        w, n, xs, lcs = self.writer("seg", s)
        (two,) = w.let(number(2), ("two", INT, False))
        which = self.integer(w, "m", "minimum", n, two)
        branches = self.name("none"), self.name("single"), self.name("double", s)
        return w.done(*self.linear(w, Switch((which, n, *xs, *lcs), branches)))

    def writer(self, what: str, *snapshots: int) -> tuple[Writer, ir.Var, ir.Vars, ir.Vars]:
        """n, ks and cs, ~lcs."""
        w = Writer(self.name(what, *snapshots), (ir.Var("n", INT), *self.d.xs, *self.d.lxs))
        m = 1 + len(self.d.xs)
        return w, w.formals[0], w.formals[1:m], w.formals[m:]

    def linear(self, w: Writer, e: ir.Leaf) -> ir.Vars:
        """Linear results bound."""
        return w.let(e, *[("dc", t, True) for t in self.d.lresults])

    def none(self) -> Any:
        """No round."""
        w, n, xs, lcs = self.writer("none")
        w.let(ir.drop(n, *xs))
        return w.done(*lcs)

    def single(self) -> Any:
        """One round: its tape is made, and read at once."""
        w, n, xs, lcs = self.writer("single")
        kinds = [*[("r", t, False) for t in self.d.results], ("t", self.tape, False)]
        *rs, t = w.let(Call(xs, (self.nl,)), *kinds)
        w.let(ir.drop(n, *rs))
        return w.done(*self.linear(w, Call((t, *lcs), (self.lin,))))

    def double(self, s: int) -> Any:
        """The first rounds, and the others from where those end."""
        w, n, xs, lcs = self.writer("double", s)
        (k,) = w.let(Call((n,), (self.name("split", s),)), ("k", INT, False))
        rest = self.integer(w, "r", "subtract", n, k)
        kinds = [("m", t, False) for t in self.d.results]
        m = w.let(Call((k, *xs), (self.name("advance"),)), *kinds)
        one = self.linear(w, Call((k, *xs, *lcs), (self.name("seg", s),)))
        given = (rest, *xs[: self.k], *m, *one)
        return w.done(*self.linear(w, Call(given, (self.name("seg", max(s - 1, 0)),))))

    def split(self, s: int) -> None:
        """After how many of n rounds the next snapshot is taken; without any, before the last.

        With the least r for which b = C(s+1+r, s+1) >= n, min(C(s+r, s+1), n - C(s+r-1, s)) rounds
        are one of the choices that take the fewest steps.
        """
        w = Writer(self.name("split", s), (ir.Var("n", INT),))
        (n,) = w.formals
        (one,) = w.let(number(1), ("one", INT, False))
        if not s:
            self.u.define(w.done(self.integer(w, "k", "subtract", n, one)))
            return
        names = self.name("short", s), self.name("longer", s)
        self.u.define(self.short(names[0]))
        self.u.define(self.longer(names[1], s))
        (zero,) = w.let(number(0), ("zero", INT, False))
        loop = type(self.loop)((n, zero, one), names, 1)
        r, b = w.let(loop, ("r", INT, False), ("b", INT, False))
        (t,) = w.let(number(s), ("s", INT, False))
        (u,) = w.let(number(s + 1), ("u", INT, False))
        high = self.quotient(w, b, r, self.integer(w, "v", "add", u, r))  # C(s+r, s+1)
        low = self.quotient(w, high, u, self.integer(w, "v", "add", t, r))  # C(s+r-1, s)
        others = self.integer(w, "k", "subtract", n, low)
        self.u.define(w.done(self.integer(w, "k", "minimum", high, others)))

    def quotient(self, w: Writer, a: ir.Var, b: ir.Var, c: ir.Var) -> ir.Var:
        """a b / c, a whole number."""
        return self.integer(w, "q", "floor_divide", self.integer(w, "p", "multiply", a, b), c)

    def short(self, name: str) -> Any:
        """Whether b < n."""
        w = Writer(name, (ir.Var("n", INT), ir.Var("r", INT), ir.Var("b", INT)))
        n, r, b = w.formals
        w.let(ir.drop(r))
        return w.done(self.integer(w, "p", "less", b, n, t=BOOL))

    def longer(self, name: str, s: int) -> Any:
        """r + 1, and C(s+2+r, s+1) = C(s+1+r, s+1) (s+2+r) / (r+1)."""
        w = Writer(name, (ir.Var("n", INT), ir.Var("r", INT), ir.Var("b", INT)))
        n, r, b = w.formals
        w.let(ir.drop(n))
        more = self.one_more(w, r)
        (u,) = w.let(number(s + 1), ("u", INT, False))
        return w.done(more, self.quotient(w, b, self.integer(w, "v", "add", u, more), more))

    def advance(self) -> Any:
        """The definition that runs n rounds and keeps the carries."""
        w = Writer(self.name("advance"), (ir.Var("n", INT), *self.d.xs))
        n, *xs = w.formals
        (i,) = w.let(number(0), ("i", INT, False))
        kinds = [("i", INT, False), *[("m", t, False) for t in self.d.results]]
        loop = self.loop.bounded(
            (n, *xs[: self.k], i, *xs[self.k :]), (self.name("more"), self.name("step"))
        )
        j, *m = w.let(loop, *kinds)
        w.let(ir.drop(j))
        return w.done(*m)

    def more(self) -> Any:
        """Whether fewer than n rounds are done."""
        w = Writer(self.name("more"), (ir.Var("n", INT), *self.d.xs[: self.k], ir.Var("i", INT)))
        n, *ks, i = w.formals
        if ks:
            w.let(ir.drop(*ks))
        return w.done(self.integer(w, "p", "less", i, n, t=BOOL))

    def step(self) -> Any:
        """One round, counted."""
        k = self.k
        formals = (ir.Var("n", INT), *self.d.xs[:k], ir.Var("i", INT), *self.d.xs[k:])
        w = Writer(self.name("step"), formals)
        n, ks, i, cs = w.formals[0], w.formals[1 : 1 + k], w.formals[1 + k], w.formals[2 + k :]
        w.let(ir.drop(n))
        rs = self.primal(w, (*ks, *cs))
        return w.done(self.one_more(w, i), *rs)
