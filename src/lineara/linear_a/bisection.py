"""Halving: a while loop reversed from what it starts with and the number of its rounds.

    halve(n, c0 ; ~d) =
      n = 0    ~d
      n = 1    let (c1, t) = f.nl(c0) in drop(c1), f.lin(t ; ~d)
      else     let m = advance(n/2, c0) in halve(n - n/2, m ; halve(n/2, c0 ; ~d))

Once it has run, a loop of unknown length has a known one, and the loop that counts its rounds is
its tape.  The transpose holds at most log2(n) + 1 states, and runs at most n/2 log2(n) + n rounds
forward beside those that it reverses.  Snapshots while the loop runs [Stumm and Walther 2010] would
save the first n/2 of those, for memory in the forward run.
"""

from typing import Any

import numpy as np

from lineara.linear_a.branches import Switch
from lineara.linear_a.control import Call, Writer
from lineara.linear_a.syntax import Leaf, Let, Prim, Ret, Var, Vars, drop, lit
from lineara.registry import op
from lineara.types import ArrayType

INT = ArrayType((), np.dtype(np.int64))
BOOL = ArrayType((), np.dtype(bool))


def unzip_by_halves(u: Any, loop: Any) -> tuple[Leaf, Leaf] | None:
    """U of a while loop that keeps its arguments; None if its rounds give more than carries."""
    d = u.program.defs[loop.body]
    nc, nlc = loop.carried()
    if len(d.results) != nc or len(d.lresults) != nlc:
        return None
    halves = Halves(u, loop, d)
    start, n = u.fresh("i", INT), u.fresh("n", INT)
    rs = u.results(d.results)
    u.context.append(Let((start,), number(0)))
    counted = loop.counting((*loop.xs, start), halves.counted())
    u.context.append(Let((*rs, n), counted))
    return Ret(rs), Call((n, *loop.xs, *loop.lxs), (halves.all(),))


def number(n: int) -> Leaf:
    """An integer."""
    return lit(np.int64(n), INT)


class Halves:
    """The definitions that one loop needs."""

    def __init__(self, u: Any, loop: Any, d: Any) -> None:
        self.u = u
        self.loop = loop
        self.d = d
        self.nl, self.lin, self.tape = u.recur(d.name)
        self.k = loop.invariants

    def name(self, what: str) -> str:
        """The name of one of the definitions."""
        return f"{self.d.name}.{what}{self.k}"

    def integer(self, w: Writer, like: str, name: str, *args: Var, t: ArrayType = INT) -> Var:
        """An operation on integers."""
        return w.let(Prim(args, op(name)), (like, t, False))[0]

    def one_more(self, w: Writer, i: Var) -> Var:
        """i + 1."""
        (one,) = w.let(number(1), ("one", INT, False))
        return self.integer(w, "j", "add", i, one)

    def primal(self, w: Writer, xs: Vars) -> Vars:
        """The carries after a round."""
        kinds = [("r", t, False) for t in self.d.results]
        return w.let(Call(xs, (self.u.primal(self.d.name),)), *kinds)

    def counted(self) -> str:
        """The primal body, with the number of rounds as its last carry."""
        w = Writer(self.name("counted"), (*self.d.xs, Var("i", INT)))
        *xs, i = w.formals
        rs = self.primal(w, tuple(xs))
        self.u.define(w.done(*rs, self.one_more(w, i)))
        return w.name

    def all(self) -> str:
        """halve, and what it chooses from."""
        for made in (self.none(), self.single(), self.double(), self.more(), self.step()):
            self.u.define(made)
        self.u.define(self.advance())
        w, n, xs, lcs = self.writer("halve")
        (two,) = w.let(number(2), ("two", INT, False))
        which = self.integer(w, "m", "minimum", n, two)
        branches = tuple(map(self.name, ("none", "single", "double")))
        self.u.define(w.done(*self.linear(w, Switch((which, n, *xs, *lcs), branches))))
        return w.name

    def writer(self, what: str) -> tuple[Writer, Var, Vars, Vars]:
        """n, ks and cs, ~lcs."""
        w = Writer(self.name(what), (Var("n", INT), *self.d.xs, *self.d.lxs))
        m = 1 + len(self.d.xs)
        return w, w.formals[0], w.formals[1:m], w.formals[m:]

    def linear(self, w: Writer, e: Leaf) -> Vars:
        """Linear results bound."""
        return w.let(e, *[("dc", t, True) for t in self.d.lresults])

    def none(self) -> Any:
        """No round."""
        w, n, xs, lcs = self.writer("none")
        w.let(drop(n, *xs))
        return w.done(*lcs)

    def single(self) -> Any:
        """One round: its tape is made, and read at once."""
        w, n, xs, lcs = self.writer("single")
        kinds = [*[("r", t, False) for t in self.d.results], ("t", self.tape, False)]
        *rs, t = w.let(Call(xs, (self.nl,)), *kinds)
        w.let(drop(n, *rs))
        return w.done(*self.linear(w, Call((t, *lcs), (self.lin,))))

    def double(self) -> Any:
        """The first half of the rounds, and the others from where those end."""
        w, n, xs, lcs = self.writer("double")
        (two,) = w.let(number(2), ("two", INT, False))
        half = self.integer(w, "h", "floor_divide", n, two)
        rest = self.integer(w, "r", "subtract", n, half)
        kinds = [("m", t, False) for t in self.d.results]
        m = w.let(Call((half, *xs), (self.name("advance"),)), *kinds)
        halve = (self.name("halve"),)
        one = self.linear(w, Call((half, *xs, *lcs), halve))
        return w.done(*self.linear(w, Call((rest, *xs[: self.k], *m, *one), halve)))

    def advance(self) -> Any:
        """So many rounds forward."""
        w = Writer(self.name("advance"), (Var("n", INT), *self.d.xs))
        n, *xs = w.formals
        (i,) = w.let(number(0), ("i", INT, False))
        kinds = [("i", INT, False), *[("m", t, False) for t in self.d.results]]
        loop = self.loop.bounded(
            (n, *xs[: self.k], i, *xs[self.k :]), (self.name("more"), self.name("step"))
        )
        j, *m = w.let(loop, *kinds)
        w.let(drop(j))
        return w.done(*m)

    def more(self) -> Any:
        """Whether fewer than n rounds are done."""
        w = Writer(self.name("more"), (Var("n", INT), *self.d.xs[: self.k], Var("i", INT)))
        n, *ks, i = w.formals
        if ks:
            w.let(drop(*ks))
        return w.done(self.integer(w, "p", "less", i, n, t=BOOL))

    def step(self) -> Any:
        """One round, counted."""
        k = self.k
        formals = (Var("n", INT), *self.d.xs[:k], Var("i", INT), *self.d.xs[k:])
        w = Writer(self.name("step"), formals)
        n, ks, i, cs = w.formals[0], w.formals[1 : 1 + k], w.formals[1 + k], w.formals[2 + k :]
        w.let(drop(n))
        rs = self.primal(w, (*ks, *cs))
        return w.done(self.one_more(w, i), *rs)
