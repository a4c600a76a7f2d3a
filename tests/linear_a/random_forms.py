"""What random programs apply to arguments: calls, branches, tagged sums, loops and recursion.

Each method here makes the definitions that a form needs and notes how it is applied to them.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lineara.facts.registry import op
from lineara.facts.types import UNIT, ArrayType, Product, Sum, Type, stacked
from lineara.linear_a.branches import Case as CaseOf
from lineara.linear_a.branches import Cond, Switch
from lineara.linear_a.calls import Call
from lineara.linear_a.loops import Scan, While
from lineara.linear_a.program import Program
from lineara.linear_a.syntax import (
    Binding,
    Block,
    Def,
    Inj,
    Leaf,
    Let,
    Prim,
    Ret,
    Var,
    drop,
    lit,
)

F = ArrayType((), np.dtype(float))
I64, BOOL = ArrayType((), np.dtype(np.int64)), ArrayType((), np.dtype(bool))
SUMS = (Sum((F, Product((F, F)))), Sum((UNIT, F)), Sum((F, Product((F,)), F)))
Apply = Callable[[list[Var], list[Var], list[Binding]], Leaf]


def count(n: int) -> Leaf:
    """A whole number."""
    return lit(np.int64(n), I64)


class Forms:
    """The forms of a program in the making; programs.py has the rest of it."""

    pick: Callable[[int], int]
    program: Program
    zones: dict[str, str]
    used: set[Var]
    n: Var | None
    supply: Callable[[Type, list[Var], list[Binding]], Var]
    take: Callable[[Type, list[Var], list[Binding]], Var]
    mask: Callable[[ArrayType, list[Var], list[Binding]], Var]
    fresh: Callable[..., Var]
    shaped: Callable[..., None]
    type: Callable[[], Type]

    def __init__(self) -> None:
        self.applied: dict[str, Apply] = {}
        self.made: set[Any] = set()

    def form(self, i: int) -> None:
        """The definitions of one more form."""
        zone = "NML"[self.pick(3)]
        made = (self.branches, self.scan, self.while_, self.recursion, self.sums)
        form = made[self.pick(len(made))]
        if (form, i) not in self.made:
            form(i, zone)
        self.made.add((form, i))

    # --- applications --------------------------------------------------------------------------

    def call(self, f: str, own: list[Var], us: list[Var], made: list[Binding]) -> Leaf:
        """The application of a definition, or of the form that it belongs to."""
        if f in self.applied:
            return self.applied[f](own, us, made)
        return Call(self.arguments(f, own, us, made), (f,))

    def arguments(self, f: str, own: list, us: list, made: list, lead: int = 0) -> tuple[Var, ...]:
        """Arguments for the formals of a definition, but for the first ones."""
        d = self.program.defs[f]
        xs = [p if p is self.n else self.supply(p.type, own, made) for p in d.xs[lead:]]
        return (*xs, *[self.take(p.type, us, made) for p in d.lxs])

    def dimension(self) -> tuple[Var, ...]:
        """The dimension that definitions are given, if there is one."""
        return (self.n,) if self.n is not None else ()

    def index(self, own: list[Var], made: list[Binding]) -> Var:
        """0, 1, or what is known only when the program runs."""
        return self.supply(I64, own, made)

    def wrapper(self, name: str, params: Sequence[Var], bindings: Sequence[Binding], leaf: Leaf,
                results: tuple[Sequence[Type], Sequence[Type]]) -> None:  # fmt: skip
        """A definition written by hand."""
        d = Def(name, tuple(params), *map(tuple, results), Block(tuple(bindings), leaf))  # type: ignore[arg-type]
        self.program = self.program.with_(d)

    def types(self, most: int) -> list[Type]:
        """Up to so many types but one."""
        return [self.type() for _ in range(self.pick(most))]

    # --- branches ------------------------------------------------------------------------------

    def twin(self, name: str, other: str) -> None:
        """Another definition of the same type."""
        d = self.program.defs[name]
        xs, us = ([v.type for v in zone if v is not self.n] for zone in (d.xs, d.lxs))
        self.shaped(other, self.zones[name], xs, us, (d.results, d.lresults))

    def branches(self, i: int, zone: str) -> None:
        """cond[f, g], or switch[f, g, f]."""
        name, other = f"f{i}", f"g{i}"
        self.twin(name, other)
        self.zones[f"b{i}"] = self.zones[name]
        several = self.pick(2)

        def apply(own: list[Var], us: list[Var], made: list[Binding]) -> Leaf:
            args = self.arguments(name, own, us, made)
            if several:
                return Switch((self.index(own, made), *args), (name, other, name))
            return Cond((self.mask(F, own, made), *args), (name, other))

        self.applied[f"b{i}"] = apply

    def sums(self, i: int, zone: str) -> None:
        """case x of f | g with (..), and what makes such an x by a branch."""
        t = SUMS[self.pick(len(SUMS))]
        xs = self.types(3)
        us = [self.type() for _ in range(self.pick(3) * (zone != "N"))]
        results = [self.type() for _ in range(self.pick(3) * (zone != "L"))]
        lresults = [self.type() for _ in range((1 + self.pick(2)) * (zone != "N"))]
        names = tuple([f"s{i}{'abc'[k]}" for k in range(len(t.items))])
        for name, payload in zip(names, t.items, strict=True):
            self.shaped(name, zone, xs, us, (results, lresults), (payload,))
        self.zones[f"s{i}"] = zone

        def apply(own: list[Var], us: list[Var], made: list[Binding]) -> Leaf:
            s = self.supply(t, own, made)
            return CaseOf((s, *self.arguments(names[0], own, us, made, 1)), names)

        self.applied[f"s{i}"] = apply
        makers = (f"i{i}a", f"i{i}b")
        for k, name in enumerate(makers):
            params = [Var(f"x{j}", u) for j, u in enumerate(t.items[:2])]
            self.wrapper(
                name, params, [Let((), drop(params[1 - k]))], Inj((params[k],), k, t), ((t,), ())
            )
        self.zones[f"i{i}"] = "N"
        self.applied[f"i{i}"] = lambda own, us, made: Cond(
            (self.mask(F, own, made), *self.arguments(makers[0], own, us, made)), makers
        )

    # --- loops ---------------------------------------------------------------------------------

    def scan(self, i: int, zone: str) -> None:
        """A loop with invariants, carries, and an array or a number each round."""
        name, dim = f"h{i}", len(self.dimension())
        ks, cs = self.types(3), self.types(3)
        x = self.type()
        x = x if isinstance(x, ArrayType) else F
        lcs = [self.type() for _ in range(self.pick(3) * (zone != "N"))]
        lone = [F] * (zone != "N")
        ys = [F] if zone != "L" else []
        zone = zone if zone != "L" or not cs else "M"
        self.shaped(name, zone, [*ks, *cs, x], [*lcs, *lone], ([*cs, *ys], [*lcs, *lone]))
        self.zones[name] = zone
        nk, nc, nlc = dim + len(ks), len(cs), len(lcs)

        def apply(own: list[Var], us: list[Var], made: list[Binding]) -> Leaf:
            d = self.program.defs[name]
            n: Any = self.n if self.n is not None and self.pick(2) else 2 + self.pick(2)
            types = [p.type if j < nk + nc else stacked(p.type, n) for j, p in enumerate(d.xs)]
            ltypes = [p.type if j < nlc else stacked(p.type, n) for j, p in enumerate(d.lxs)]
            xs = [self.supply(t, own, made) for t in types[dim:]]
            args = (*self.dimension(), *xs, *[self.take(t, us, made) for t in ltypes])
            return Scan(args, (name,), n, ("fwd", "rev")[self.pick(2)], nk, nc, nlc)

        self.applied[name] = apply

    def while_(self, i: int, zone: str) -> None:
        """A loop as long as a count and a number that is carried say."""
        inner, body, test = f"w{i}a", f"w{i}", f"w{i}p"
        ks, cs = self.types(3), [F, *self.types(2)]
        lcs = [self.type() for _ in range(self.pick(3) * (zone != "N"))]
        zone = "M" if lcs else "N"
        ys = [F] * self.pick(2)
        self.shaped(inner, zone, [*ks, *cs], lcs, ([*cs, *ys], lcs))
        d, dim = self.program.defs[inner], self.dimension()
        m = len(dim) + len(ks)
        at, one, then = Var("count", I64), Var("one", I64), Var("then", I64)
        rs = [Var(f"r{j}", t) for j, t in enumerate((*cs, *ys))]
        lrs = [Var(f"l{j}", t, True) for j, t in enumerate(lcs)]
        self.wrapper(
            body, (*d.xs[:m], at, *d.xs[m:], *d.lxs),
            [Let((one,), count(1)), Let((then,), Prim((at, one), op("add"))),
             Let((*rs, *lrs), Call(d.params, (inner,)))],
            Ret((then, *rs, *lrs)), ((I64, *cs, *ys), lcs),
        )  # fmt: skip
        last, number, small, both = (Var("last", I64), Var("number", F), Var("small", BOOL),
                                     Var("both", BOOL))  # fmt: skip
        less = Let((small,), Prim((at, last), op("less")))
        head = (*[Var(f"k{j}", t) for j, t in enumerate(ks)], at)
        forget = [Let((), drop(v)) for v in head[:-1]]
        limit = Let((last,), count(self.pick(4)))
        if self.pick(2):  # how long is seen only as it runs
            c, low = Var("c", F), Var("low", BOOL)
            made = [limit, less, Let((number,), lit(np.float64(0.5), F)),
                    Let((low,), Prim((c, number), op("less"))),
                    Let((both,), Prim((small, low), op("logical_and")))]  # fmt: skip
            head, leaf = (*head, c), Ret((both,))
        else:
            made, leaf = [limit, less], Ret((small,))
        unread = [Let((), drop(v)) for v in dim if not any(v in _dims(t) for t in ks)]
        self.wrapper(test, (*dim, *head), [*unread, *forget, *made], leaf, ((BOOL,), ()))
        self.zones[body] = zone

        def apply(own: list[Var], us: list[Var], made: list[Binding]) -> Leaf:
            first = self.fresh("count", I64)
            made.append(Let((first,), count(self.pick(2))))
            xs = [self.supply(t, own, made) for t in (*ks, *cs)]
            xs.insert(len(ks), first)
            args = (*dim, *xs, *[self.take(t, us, made) for t in lcs])
            self.used.update(args)
            end, rows = self.fresh("count", I64), [self.fresh("ys", stacked(F, None)) for _ in ys]
            found = [self.fresh("x", t) for t in cs]
            lfound = [self.fresh("a", t, True) for t in lcs]
            made.append(Let((end, *found, *rows, *lfound), While(args, (test, body), m)))
            made.append(Let((), drop(end, *rows)))
            return Ret((*found, *lfound))

        self.applied[body] = apply

    # --- recursion -----------------------------------------------------------------------------

    def recursion(self, i: int, zone: str) -> None:
        """r(xs, n ; as): at n = 0 the base, else a step after r(xs, n - 1 ; as), or after two."""
        name, base, step, again, end = (f"r{i}{half}" for half in ("", "z", "s", "m", "e"))
        xs = self.types(3)
        us = [self.type() for _ in range(self.pick(3) * (zone != "N"))]
        ts = [self.type() for _ in range((1 + self.pick(2)) * (zone != "L"))]
        lts = [self.type() for _ in range((1 + self.pick(2)) * (zone != "N"))]
        twice = 1 + (zone == "N") * self.pick(2)
        self.shaped(base, zone, xs, us, (ts, lts))
        self.shaped(step, zone, [*xs, *ts * twice], lts, (ts, lts))
        d, dim = self.program.defs[base], self.dimension()
        k = Var("count", I64)
        params = (*d.xs, k, *d.lxs)
        self.wrapper(end, params, [Let((), drop(k))], Call(d.params, (base,)), (ts, lts))
        one, less = Var("one", I64), Var("less", I64)
        rs = [Var(f"r{j}", t) for j, t in enumerate(ts * twice)]
        ls = [Var(f"l{j}", t, True) for j, t in enumerate(lts)]
        calls = [
            Let((*rs[: len(ts)], *ls), Call((*d.xs, less, *d.lxs), (name,))),
            *[Let(tuple(rs[len(ts) :]), Call((*d.xs, less), (name,)))] * (twice - 1),
        ]
        self.wrapper(
            again, params,
            [Let((one,), count(1)), Let((less,), Prim((k, one), op("subtract"))), *calls],
            Call((*d.xs, *rs, *ls), (step,)), (ts, lts),
        )  # fmt: skip
        zero, ended = Var("none", I64), Var("ended", BOOL)
        self.wrapper(
            name, params,
            [Let((zero,), count(0)), Let((ended,), Prim((k, zero), op("equal")))],
            Cond((ended, *params), (end, again)), (ts, lts),
        )  # fmt: skip
        self.zones[name] = zone

        def apply(own: list[Var], us: list[Var], made: list[Binding]) -> Leaf:
            if self.pick(2):
                n = self.index(own, made)
            else:
                n = self.fresh("count", I64)
                made.append(Let((n,), count(2 - self.pick(3))))
            found = [self.supply(t, own, made) for t in xs]
            args = (*dim, *found, n, *[self.take(p.type, us, made) for p in d.lxs])
            return Call(args, (name,))

        self.applied[name] = apply


def _dims(t: Type) -> tuple[Any, ...]:
    """What is written in the shapes of a type."""
    if isinstance(t, ArrayType):
        return t.shape
    return tuple([n for s in getattr(t, "items", ()) for n in _dims(s)])
