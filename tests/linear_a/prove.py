"""P1 to P13 of one program: the properties of the passes, as far as a run can show them.

Works and sizes are compared exactly, what unzipping and erasing keep bit by bit, and values with a
tolerance of 1e-7.  `proved` counts what was compared, `largest` keeps the largest ratios.
"""

import collections
import random
from fractions import Fraction
from typing import Any

import numpy as np
from programs import Case, drawn, value

import lineara
from lineara.cotangent.dead_lanes import pairs_of
from lineara.engines.interpreter import Machine, Numbers
from lineara.engines.values import dense, measure
from lineara.errors import ProgramError
from lineara.facts.registry import op
from lineara.facts.types import ArrayType, Stack, Sum
from lineara.linear_a import syntax as ir
from lineara.linear_a.check import check, check_def, type_of_leaf
from lineara.linear_a.cost import cells, size
from lineara.linear_a.dimensions import I64, with_dims
from lineara.linear_a.linear_b import linear_b as judged_linear_b
from lineara.linear_a.loops import Loop
from lineara.linear_a.parse import parse
from lineara.linear_a.program import Program
from lineara.linear_a.syntax import (
    Block,
    Copy,
    Def,
    Drop,
    Dup,
    Inj,
    Leaf,
    Let,
    Lit,
    Part,
    Prim,
    Proj,
    Put,
    Read,
    Ret,
    Tup,
    Unpack,
    Var,
    Zero,
    binders,
    drop,
    free,
    functions,
    renamed_params,
)
from lineara.passes.derivatives import grad, vjp
from lineara.passes.erase import erase
from lineara.passes.jvp import jvp
from lineara.passes.masks import masks
from lineara.passes.transpose import transpose
from lineara.passes.unzip import Cut, is_nonlinear, store_all, unzip
from lineara.passes.work_bound import c_jvp
from lineara.staging.dead_lanes import each

LIMITS = {"E": 4.5, "J": 6.0, "U": 2.5, "T": 2.0, "T.T": 1.1}  # of sizes
ARRAYS = {"E": 4.5, "J": 8.0, "U": 3.5, "T": 3.0, "T.T": 3.0}  # some maps transpose to several
FRAME = {"E": 4, "J": 24, "U": 16, "T": 4, "T.T": 4}  # a definition of no size has that much
TAME = 1e4  # larger numbers are compared bit by bit only
ROUNDS = 2  # how often a definition of a random program calls itself
TEXTS = 4  # one in so many programs that passes write is printed and parsed
STEP = 1e-30  # of a complex step
SMALL = 120  # programs up to this size are differentiated three times
LARGE = 60  # from this size on the ratios are noted

proved: collections.Counter[str] = collections.Counter()
largest: dict[str, float] = {}


def note(what: str, ratio: float) -> None:
    """Keep the largest."""
    largest[what] = max(largest.get(what, 0.0), float(ratio))


# --- running -----------------------------------------------------------------------------------


class Meter(Machine):
    """An evaluation that tells the work of drops apart, and counts R."""

    dropped = 0
    handed = 0  # scalars of the parts that were read of linear arrays
    whole = 0  # whole numbers dropped, dimensions among them
    light = 0  # what sums, stacks and arrays that are dropped cost more if they are not linear
    still = 0  # what dropping costs that is the same in every round of a loop
    surplus = 0  # R: scalars of what is made, once each, and of arrays that are dropped

    def __init__(self, program: Program, *rest: Any) -> None:
        super().__init__(program, *rest)
        self.steady = {
            v for d in program.defs.values() for loop in loops(d.body)
            for v in program.defs[loop.body].xs[: loop.invariants]
        }  # fmt: skip

    def typed(self, leaf: Leaf, values: Any) -> Any:
        found = super().typed(leaf, values)
        if isinstance(leaf, Ret | Copy):
            same = [a for a in leaf.args if a in self.steady]
            self.still += sum(cells(self.program, with_dims(a.type, self.dims)) for a in same)
        for v, t, linear in [(v, with_dims(t, self.dims), linear) for v, t, linear in found]:
            n, k = measure(self.program, t, v) if linear else 0, cells(self.program, t)
            self.dropped += n if linear else k
            self.light += max(0, k - n) if linear else 0
            self.whole += not linear and t == I64
            if not linear:
                self.surplus += max(0, measure(self.program, t, v) - k)
        return found

    def expression(self, e: Any, env: Any, *rest: Any) -> Any:
        found = yield from super().expression(e, env, *rest)
        if isinstance(e, Prim | Part | Lit | Zero | Tup | Inj | Proj | Loop):
            for v, t, linear in Machine.typed(self, e, found):
                self.surplus += not linear and measure(self.program, with_dims(t, env.dims), v)
        return found

    def prim(self, e: Prim, *rest: Any) -> Any:
        if e.name == "index" and e.args[0].linear:  # erased, what is looked up several times costs
            types = e.args[0].type, type_of_leaf(self.program, e).lxs[0]
            n, m = [self.program.scalars(with_dims(t, self.dims)) for t in types]
            self.light += max(0, m - n)
        return super().prim(e, *rest)

    def part(self, e: Part, *rest: Any) -> Any:
        if isinstance(e, Read):
            part = type_of_leaf(self.program, e).lxs[0]
            self.handed += self.program.scalars(with_dims(part, self.dims))
        return super().part(e, *rest)


class OnGraph(Numbers):
    """Numbers that may be traced by the eager engine."""

    def apply(self, machine: Machine, e: Prim, args: list[Any], params: dict[str, Any]) -> Any:
        return e.primitive(*args, **params)


class Traced(Meter):
    """An evaluation on them."""

    def __init__(self, program: Program) -> None:
        super().__init__(program, OnGraph())

    def made(self, *_: Any) -> None:
        """Memory is not what is looked at."""

    share = made

    def given_away(self, results: Any) -> Any:
        return results

    def stack(self, t: Any, rows: list[Any]) -> Any:
        return op("stack")(*rows) if isinstance(t, ArrayType) else super().stack(t, rows)

    def part(self, e: Part, args: list[Any], env: Any, *rest: Any) -> Any:
        at, (x, *ys) = renamed_params(e.at, env.__getitem__), args
        keep = np.ones(with_dims(e.args[0].type, self.dims).shape)
        if isinstance(e, Put):
            keep[at] = 0.0
            x = x * keep.astype(e.args[0].type.dtype)  # type: ignore[union-attr]
        return (sum([op("scatter")(y, at=at, shape=keep.shape) for y in ys], x),)


class Run:
    """The results of a definition, and what they cost."""

    def __init__(self, program: Program, name: str, args: Any, machine: Any = Meter) -> None:
        m = machine(program)
        d = program.defs[name]
        with np.errstate(all="ignore"):
            found = m.drive(m.enter(name, list(args)))
        k, at = len(d.results), sizes(program, name, args)
        types = zip((*d.results, *d.lresults), found, strict=True)
        made = [dense(program, with_dims(t, at), v) for t, v in types]
        self.xs, self.us = tuple(made[:k]), tuple(made[k:])
        self.work, self.dropped, self.surplus = m.work, m.dropped, m.surplus
        self.handed, self.light, self.whole, self.still = m.handed, m.light, m.whole, m.still


def leaves(v: Any) -> list[Any]:
    """The numbers and arrays of a value."""
    return [x for part in v for x in leaves(part)] if isinstance(v, tuple | list) else [v]


def movable(program: Program, t: Any, v: Any) -> list[Any]:
    """The numbers and arrays of a value that have tangents."""
    kinds = program.leaves(t)
    return [x for x, a in zip(leaves(v), kinds, strict=True) if not program.is_inert(a)]


def mapped(f: Any, *vs: Any) -> Any:
    """A value of the results of `f` at the numbers and arrays of values."""
    if isinstance(vs[0], tuple | list):
        return tuple([mapped(f, *parts) for parts in zip(*vs, strict=True)])
    return f(*vs)


def imaginary(x: Any, dx: Any) -> Any:
    """A step along dx that leaves x where it is."""
    return x + 1j * STEP * dx


def identical(v: Any, w: Any) -> bool:
    """Equal bit by bit, but for the payload of a NaN and the sign of zero."""
    xs, ys = leaves(v), leaves(w)
    return len(xs) == len(ys) and all(
        np.asarray(x).dtype == np.asarray(y).dtype
        and np.array_equal(x, y, equal_nan=np.asarray(x).dtype.kind in "fc")
        for x, y in zip(xs, ys, strict=True)
    )


def tame(*vs: Any) -> bool:
    """Whether all numbers are of a size at which rounding is below the tolerance."""
    return all(np.all(np.isfinite(x)) and np.all(np.abs(x) < TAME) for x in leaves(vs))


def eps(*vs: Any) -> float:
    """The tolerance: that of the least precise number."""
    dtypes = [np.asarray(x).dtype for x in leaves(vs)]
    return 1e-2 if any(d in (np.float32, np.complex64) for d in dtypes) else 1e-7


def close(v: Any, w: Any, scale: float = 1.0) -> bool:
    """Equal to 1e-7, relative to numbers larger than 1."""
    tolerance = eps(v, w)
    return all(
        np.all(np.abs(np.asarray(x) - y) <= tolerance * (scale + np.abs(x)))
        for x, y in zip(leaves(v), leaves(w), strict=True)
    )


def dot(v: Any, w: Any) -> float:
    """Re<v, w>."""
    return sum(
        float(np.sum(np.real(np.conj(x) * y))) for x, y in zip(leaves(v), leaves(w), strict=True)
    )


def bulk(*vs: Any) -> float:
    """The sum of the sizes of numbers: what rounding errors of a dot product are relative to."""
    return 1.0 + sum(float(np.sum(np.abs(x))) for x in leaves(vs))


def split(d: Def, args: Any) -> tuple[list[Any], list[Any]]:
    """The non-linear and the linear arguments."""
    k = len(d.xs)
    return list(args[:k]), list(args[k:])


def sizes(program: Program, name: str, args: Any) -> dict[Var, int]:
    """The dimensions of a definition, in numbers."""
    dims, given = program.dims(name), zip(program.defs[name].params, args, strict=False)
    return {v: int(a) for v, a in given if v in dims}


def draw(program: Program, types: Any, rng: random.Random, at: Any) -> list[Any]:
    """Values of types; the dimensions in them are given."""
    return [value(program, with_dims(t, at), rng) for t in types]


def scalars(program: Program, types: Any, at: Any) -> int:
    return sum(program.scalars(with_dims(t, at)) for t in types)


def weights(program: Program, xs: Any, us: Any, at: Any) -> int:
    """What values count in the balance of work."""
    return sum(cells(program, t) for t in xs) + scalars(program, us, at)


def added(before: Program, after: Program) -> int:
    """The size of what a pass wrote."""
    defs = [d for f, d in after.defs.items() if before.defs.get(f) is not d]
    types = {k: t for k, t in after.types.items() if k not in before.types}
    return size(Program(types, {d.name: d for d in defs}))


def fine(after: Program, before: Program | None = None) -> Program:
    """P12: what a pass wrote is well typed."""
    if before is None:
        return check(after)
    fresh = {f: d for f, d in after.defs.items() if before.defs.get(f) is not d}
    for d in fresh.values():
        check_def(after, d)
    return after


def grown(what: str, source: dict[str, Def], new: int, arrays: bool = False) -> None:
    """P10: the text that a pass wrote is at most a constant times that of its source.

    A definition of no size has a frame, and drop((; ~a, ~b)) is as many zeros, then as many drops.
    """
    old = size(Program({}, source))
    if old >= LARGE:
        note(f"size {what}{', arrays' * arrays}", new / old)
    bound = (ARRAYS if arrays else LIMITS)[what] * old + FRAME[what] * len(source)
    if what == "T.T":
        bound += 3 * sum(len(linear_drops(d.body)) for d in source.values())
    assert new <= bound, f"size {what}: {new} > {bound} of {old}"


def has_arrays(program: Program, name: str) -> bool:
    """Whether variables are arrays, or numbers other than f64."""
    return any(
        t != ArrayType((), np.dtype(float))
        for f in program.reached(name) for v in binders(program.defs[f])
        for t in program.leaves(v.type)
    )  # fmt: skip


def untold(program: Program, name: str) -> bool:
    """Whether there are linear sums or stacks: nothing tells what a zero without a tag counts."""
    return any(
        isinstance(t, Sum) or (isinstance(t, Stack) and t.n is None)
        for f in program.reached(name) for v in binders(program.defs[f]) if v.linear
        for t in program.leaves(v.type)
    )  # fmt: skip


def steppable(program: Program, name: str) -> bool:
    """Whether a complex step tells the derivative: everything that moves is f64 throughout."""
    return all(
        getattr(t, "dtype", np.dtype(float)) in (np.dtype(float), np.dtype(bool), np.dtype("i8"))
        for f in program.reached(name) for v in binders(program.defs[f])
        for t in program.leaves(v.type)
    ) and not any(
        e.name == "astype" for f in program.reached(name)
        for e in ir.leaves(program.defs[f].body) if isinstance(e, Prim)
    )  # fmt: skip


def loops(e: Any) -> list[Loop]:
    """The loops in an expression."""
    if isinstance(e, Block):
        inner = [b.rhs for b in e.bindings if isinstance(b, Let)]
        return [a for f in (*inner, e.leaf) for a in loops(f)]
    if isinstance(e, Drop):
        return loops(e.body)
    return [e] if isinstance(e, Loop) else []


def linear_drops(e: Any) -> list[Var]:
    """The linear variables that are dropped by name."""
    if isinstance(e, Block):
        inner = [b.rhs for b in e.bindings if isinstance(b, Let)]
        return [a for f in (*inner, e.leaf) for a in linear_drops(f)]
    if isinstance(e, Drop):
        return linear_drops(e.body) if isinstance(e.body, Block) else list(e.body.lxs)
    return []


def mixed(program: Program, name: str) -> dict[str, Def]:
    """A definition and those of its callees that have linear parts."""
    found, todo = [], [name]
    while todo:
        f = todo.pop()
        if f not in found and (f == name or not is_nonlinear(program, f)):
            found.append(f)
            todo += functions(program.defs[f].body)
    return {f: program.defs[f] for f in found}


# --- the properties ----------------------------------------------------------------------------


def prove(case: Case) -> None:
    """All the properties of one program."""
    with np.errstate(all="ignore"):
        every(case)


def same_text(program: Program) -> Program:
    """What is parsed of the text of a program: it has the same text."""
    text = str(program)
    again = parse(text)
    assert str(again) == text, "parse(print(P)) is another program"
    proved["texts"] += 1
    return again


def every(case: Case) -> None:
    """All the properties, where numbers may overflow."""
    program, name = check(case.program), case.name
    program = check(same_text(program))
    judgement(program)
    rng = random.Random(case.seed)
    if not is_nonlinear(program, name):
        of_mixed(program, name, rng)
        rejects(program, name, rng)
        program, name = erase(program, name), f"{name}.e"
    of_nonlinear(program, name, rng)
    proved["programs"] += 1


def of_mixed(program: Program, name: str, rng: random.Random) -> None:
    """P1 to P3 and P5 to P8, of a definition with linear parts."""
    d = program.defs[name]
    args = drawn(program, name, rng)
    ran = Run(program, name, args)
    linearity(program, name, args, ran, rng)
    balance(program, d, args, ran)
    erasure(program, name, args, ran, rng)
    masking(program, name, args, rng)
    unzipping(program, name, args, ran, rng)
    if linear_b(program, name):
        transposition(program, name, rng)


def linearity(program: Program, name: str, args: Any, ran: Run, rng: random.Random) -> None:
    """P1."""
    d = program.defs[name]
    xs, us = split(d, args)
    vs = draw(program, [a.type for a in d.lxs], rng, sizes(program, name, args))
    other = Run(program, name, [*xs, *vs])
    k = 0.5
    both = Run(program, name, [*xs, *mapped(lambda a, b: a + a.dtype.type(k) * b, us, vs)])
    assert ran.work == other.work == both.work, "P1: W depends on linear inputs"
    assert identical(ran.xs, other.xs), "P1: non-linear results depend on linear inputs"
    if tame(ran.us, other.us, ran.xs):
        expected = mapped(lambda a, b: a + np.asarray(a).dtype.type(k) * b, ran.us, other.us)
        assert close(both.us, expected, bulk(us, vs, ran.us)), "P1: results are not linear"
        proved["P1"] += 1
    nothing = Run(program, name, [*xs, *mapped(np.zeros_like, us)])
    if tame(nothing.us):
        assert all(np.all(np.asarray(u) == 0) for u in leaves(nothing.us)), "P1: r(0) is not 0"


def balance(program: Program, d: Def, args: Any, ran: Run) -> None:
    """P2: W >= in - out; dimensions are free."""
    at = sizes(program, d.name, args)
    xs = [x.type for x in d.xs if x not in at]
    before = weights(program, xs, [a.type for a in d.lxs], at)
    after = weights(program, d.results, d.lresults, at)
    assert ran.work >= before - after, "P2: the balance"
    proved["P2"] += 1
    note("P2 least slack", -(ran.work - before + after))


def erasure(program: Program, name: str, args: Any, ran: Run, rng: random.Random) -> None:
    """P3: the same values, the same work, nothing linear."""
    erased = fine(erase(program, name), program)
    if not rng.randrange(TEXTS):
        same_text(erased)
    found = Run(erased, f"{name}.e", args)
    assert is_nonlinear(erased, f"{name}.e"), "P3: E leaves something linear"
    if tame(found.xs, ran.xs, ran.us):  # a structural zero times infinity is zero, a number is not
        assert identical(found.xs, (*ran.xs, *ran.us)), "P3: E changes values"
    if has_arrays(program, name):  # a linear array is dropped at its length, another one at 1
        bound = ran.work + ran.handed + ran.light
        assert found.work <= bound, f"P3: W(E) = {found.work} > {ran.work}"
    else:
        assert found.work == ran.work, f"P3: W(E) = {found.work}, W = {ran.work}"
    grown("E", mixed(program, name), added(program, erased), has_arrays(program, name))
    proved["P3"] += 1


def masking(program: Program, name: str, args: Any, rng: random.Random) -> None:
    """f.m is f on vectors whose dead lanes are zero, and a lane that it calls dead is zero."""
    d = program.defs[name]
    xs, us = split(d, args)
    bits = np.random.default_rng(rng.randrange(2**32))
    alive = [each(u, lambda a: bits.random(np.shape(a))[()] < 0.7) for u in us]
    us = mapped(lambda a, live: np.where(live, a, a.dtype.type(0))[()], us, alive)
    ran = Run(program, name, [*xs, *us])
    masked = fine(masks(program, name), program)
    if not rng.randrange(TEXTS):
        same_text(masked)
    assert is_nonlinear(masked, f"{name}.m"), "M leaves something linear"
    found = Run(masked, f"{name}.m", [*xs, *pairs_of(us, alive)])
    k = len(d.results)
    assert identical(found.xs[:k], ran.xs), "M changes values"
    values, lanes = found.xs[k::2], found.xs[k + 1 :: 2]
    if tame(ran.us):
        assert identical(values, ran.us), "M changes vectors"
        proved["M"] += 1
    for v, live in zip(leaves(values), leaves(lanes), strict=True):
        assert live.dtype == bool, "M gives masks"
        assert np.shape(live) == np.shape(v), "M gives a mask for each lane"
        assert np.all(np.where(live, 0, v) == 0), "M: a dead lane is zero"
        proved["M dead lanes"] += not np.all(live)


def unzipping(program: Program, name: str, args: Any, ran: Run, rng: random.Random) -> None:
    """P5 and P6, and P7 and P8 of the linear halves."""
    d = program.defs[name]
    xs, us = split(d, args)
    key = rng.randrange(1 << 30)
    for what, policy in (("P5", store_all), ("P6", random_policy(key))):
        halves = fine(unzip(program, name, policy), program)
        nl = Run(halves, f"{name}.nl", xs)
        t = [nl.xs[-1], *sizes(program, name, args).values()]
        lin = Run(halves, f"{name}.lin", [*t, *us])
        assert identical(nl.xs[:-1], ran.xs), f"{what}: U changes non-linear results"
        assert identical(lin.us, ran.us), f"{what}: U changes linear results"
        for f in halves.defs:
            if f not in program.defs:
                assert is_linear_b(halves, halves.defs[f].body), f"{what}: {f} is no Linear B"
        if what == "P5" and not rng.randrange(TEXTS):
            same_text(halves)
        if what == "P5":
            total = nl.work + lin.work  # what is the same in every round and only linear code
            total -= nl.still + lin.still - ran.still  # reads, f.nl drops in every round
            if len(t) > 1:  # a branch may get a dimension that only another one needs, and drop it
                total -= nl.whole + lin.whole - ran.whole
            # Less where values are computed alike, of which the tape has one.
            assert total <= ran.work, f"P5: {nl.work} + {lin.work} > {ran.work}"
            grown("U", mixed(program, name), added(program, halves), has_arrays(program, name))
            alone = Run(halves, primal(halves, name), xs)
            assert identical(alone.xs, ran.xs), "U: f.pri has other results"
        else:
            assert nl.work <= ran.work + nl.dropped, "P6: f.nl does more"
            plain = [r.work - r.dropped for r in (nl, lin, ran)]
            bound = (depth(program, name) + 2) * plain[2]
            assert plain[0] + plain[1] <= bound, f"P6: {plain}"
            note("P6 work", (plain[0] + plain[1]) / max(1, plain[2]))
        proved[what] += 1
        forms = (False, True) if what == "P5" else (False,) * rng.randrange(2)
        transposition(halves, f"{name}.lin", rng, t, forms)


def primal(halves: Program, name: str) -> str:
    """The definition of the non-linear results alone."""
    return f"{name}.pri" if f"{name}.pri" in halves.defs else name.removesuffix(".jvp")


def random_policy(key: int) -> Any:
    """A policy that computes about half of the bindings again."""

    def policy(cut: Cut) -> set:
        rng = random.Random(f"{key} {cut.name}")
        return {b for b in cut.context if rng.random() < 0.5}

    return policy


def depth(program: Program, name: str, path: tuple[str, ...] = ()) -> int:
    """The height of the tree of calls of mixed functions; a recursion is at most ROUNDS deep."""
    inner = [
        f for f in dict.fromkeys(functions(program.defs[name].body))
        if path.count(f) <= ROUNDS and not is_nonlinear(program, f)
    ]  # fmt: skip
    return 1 + max(depth(program, f, (*path, f)) for f in inner) if inner else 0


def transposition(
    program: Program, name: str, rng: random.Random, xs: Any = None, forms: Any = (False, True)
) -> None:
    """P7 and P8, with the short and with the exact form of drop."""
    d = program.defs[name]
    xs = drawn(program, name, rng)[: len(d.xs)] if xs is None else xs
    at = sizes(program, name, xs)
    us = draw(program, [a.type for a in d.lxs], rng, at)
    ran = Run(program, name, [*xs, *us])
    cs = draw(program, d.lresults, rng, at)
    into, out = scalars(program, [a.type for a in d.lxs], at), scalars(program, d.lresults, at)
    for exact in forms:
        turned = fine(transpose(program, name, exact), program)
        back = Run(turned, f"{name}.t", [*xs, *cs])
        if tame(ran.us, back.us):
            left, right = dot(ran.us, cs), dot(us, back.us)
            tolerance = eps(us, cs) * bulk(us, cs, ran.us, back.us)
            assert abs(left - right) <= tolerance, f"P7: {left} != {right}"
            proved["P7"] += 1
        slack, vague = (ran.work + out - into) - back.work, untold(program, name)
        assert slack >= 0 or vague, f"P7: W(T) = {back.work} > {ran.work} + {out} - {into}"
        if exact and not vague:
            assert slack == 0, f"P7: exact, W(T) = {back.work} != {ran.work} + {out} - {into}"
        if not exact:
            proved["P7 equal" if slack == 0 else "P7 less"] += 1
            grown("T", mixed(program, name), added(program, turned), has_arrays(program, name))
        twice = fine(transpose(turned, f"{name}.t", exact), turned)
        again = Run(twice, f"{name}.t.t", [*xs, *us])
        if tame(ran.us, again.us):
            assert close(again.us, ran.us, bulk(us, ran.us)), "P8: T(T(e)) is another function"
            proved["P8"] += 1
        assert again.work <= ran.work or vague, f"P8: W(T(T)) = {again.work} > {ran.work}"
        if not exact:
            grown("T.T", mixed(program, name), added(turned, twice), has_arrays(program, name))


def of_nonlinear(program: Program, name: str, rng: random.Random) -> None:
    """P4, P9 and P11, and the properties of f.jvp."""
    args = drawn(program, name, rng)
    at = sizes(program, name, args)
    ran = Run(program, name, args)
    moved = fine(jvp(program, name), program)
    j = moved.defs[f"{name}.jvp"]
    dxs = draw(moved, [a.type for a in j.lxs], rng, at)
    found = Run(moved, j.name, [*args, *dxs])
    assert identical(found.xs, ran.xs), "P4: J changes results"
    # c_J is a ratio of works that are known before the program runs
    c = None if at else c_jvp(program, name)
    more = ran.surplus + scalars(program, [p.type for p in program.defs[name].params], at)
    bound = found.work if c is None else c * ran.work + more
    assert found.work <= bound, f"P4: W(J) = {found.work} > {c} * {ran.work} + {more}"
    if c is not None and found.work > c * ran.work:
        note("P4 (W(J f) - c_J W(f)) / R", (found.work - c * ran.work) / more)
    if ran.work and c is not None:
        note("P4 W(J f) / W(f)", found.work / ran.work)
        note("P4 W(J f) / c_J W(f)", found.work / (c * ran.work))
    grown(
        "J",
        {f: program.defs[f] for f in program.reached(name)},
        added(program, moved),
        has_arrays(program, name),
    )
    same_derivative(program, name, args, dxs, ran, found)
    of_mixed(moved, j.name, rng)
    reverse_mode(program, name, args, dxs, found, Fraction(bound), rng)
    if not random.Random(str(rng.random())).randrange(4):
        rejects(moved, j.name, rng)


def same_derivative(program: Program, name: str, args: Any, dxs: Any, ran: Run, found: Run) -> None:
    """P4: the tangents are those of the complex step and of the eager engine."""
    if not tame(ran.xs, found.us):
        return
    d = program.defs[name]
    moving = [not program.is_inert(p.type) for p in d.params]
    its = iter(dxs)
    tangents = [next(its) if m else None for m in moving]
    if not steppable(program, name):
        return eager(program, name, args, tangents, found)
    stepped = [
        mapped(imaginary, a, t) if m else a for a, t, m in zip(args, tangents, moving, strict=True)
    ]
    made = Run(program, name, stepped)
    expected = [
        np.imag(x) / STEP
        for y, t in zip(made.xs, d.results, strict=True) for x in movable(program, t, y)
    ]  # fmt: skip
    assert close(found.us, expected, bulk(dxs, found.us)), "P4: J differs from the complex step"
    proved["P4 complex step"] += 1
    eager(program, name, args, tangents, found)


def eager(program: Program, name: str, args: Any, tangents: Any, found: Run) -> None:
    """The staged tangents are those of the eager engine."""
    d = program.defs[name]
    at = [i for i, t in enumerate(tangents) if t is not None and leaves(t)]
    outs = [i for i, t in enumerate(d.results) if not program.is_inert(t)]
    if not at or not outs:
        return

    def f(*moving: Any) -> Any:
        given = list(args)
        for i, v in zip(at, moving, strict=True):
            given[i] = v
        with np.errstate(all="ignore"):
            m = Traced(program)
            ys = m.drive(m.enter(name, given))
        return tuple([y for i in outs for y in movable(program, d.results[i], ys[i])])

    primals, moving = tuple([args[i] for i in at]), tuple([tangents[i] for i in at])
    _, dys = lineara.jvp(f, primals, moving)
    assert close(found.us, dys, bulk(moving, found.us)), "P4: J differs from the eager engine"
    proved["P4 eager"] += 1


def reverse_mode(
    program: Program, name: str, args: Any, dxs: Any, forward: Run, bound: Fraction,
    rng: random.Random,
) -> None:  # fmt: skip
    """P9, and P11: the same cotangents under two policies; second and third order."""
    d = program.defs[name]
    pulled = fine(vjp(program, name), program)
    if not rng.randrange(TEXTS):
        same_text(pulled)
    v = pulled.defs[f"{name}.vjp"]
    at = sizes(program, name, args)
    cs = draw(pulled, [a.type for a in v.lxs], rng, at)
    ran = Run(pulled, v.name, [*args, *cs])
    out, into = scalars(pulled, [a.type for a in v.lxs], at), scalars(pulled, v.lresults, at)
    surplus = forward.surplus
    vague = untold(pulled, f"{name}.jvp")
    assert ran.work <= forward.work + out - into or vague, (
        f"P9: W(vjp) = {ran.work} > {forward.work} + {out} - {into}"
    )
    assert ran.work <= bound + out - into or vague, (
        f"P9: W(vjp) = {ran.work} > {bound} + {out} - {into}"
    )
    proved["P9"] += 1
    assert surplus >= 0
    other = fine(vjp(program, name, random_policy(rng.randrange(1 << 30))), program)
    again = Run(other, v.name, [*args, *cs])
    assert identical(again.xs, ran.xs), "P11: another policy, other values"
    if tame(ran.us, forward.us):
        assert close(again.us, ran.us), "P11: another policy, other cotangents"
        left, right = dot(forward.us, cs), dot(dxs, ran.us)
        tolerance = eps(dxs, cs) * bulk(dxs, cs, forward.us, ran.us)
        assert abs(left - right) <= tolerance, f"P9: <J dx, c> = {left}, <dx, J' c> = {right}"
        proved["P11 policies"] += 1
    t = d.results[0] if len(d.results) == 1 else None
    if t == ArrayType((), np.dtype(float)) and d.params:
        # erased, a part that was handed on is looked up, and an array of no elements is one array
        higher_order(program, name, args, bound + ran.handed + ran.light, rng)


def higher_order(
    program: Program, name: str, args: Any, bound: Fraction, rng: random.Random
) -> None:
    """P11: the gradient, its derivative in three ways, and the third derivative."""
    first = fine(grad(program, name), program)
    if not rng.randrange(TEXTS):
        same_text(first)
    g = Run(first, f"{name}.grad", args)
    params, at = program.defs[name].params, sizes(program, name, args)
    types = [p.type for p in params if not program.is_inert(p.type)]
    limit = bound + 1 - scalars(program, types, at) + 1
    assert g.work <= limit or untold(first, f"{name}.jvp"), f"P9: W(grad) = {g.work}"
    if size(program.defs[name]) > SMALL:
        return
    if not steppable(program, name):
        return

    def stepped(v: Any) -> list[Any]:
        """The arguments, a small imaginary step along v."""
        its = iter(v)
        return [
            a if program.is_inert(p.type) else mapped(imaginary, a, next(its))
            for a, p in zip(args, params, strict=True)
        ]

    u, v = draw(program, types, rng, at), draw(program, types, rng, at)
    forward = fine(jvp(first, f"{name}.grad"), first)
    hv = Run(forward, f"{name}.grad.jvp", [*args, *v])
    second = fine(vjp(first, f"{name}.grad"), first)
    uh = Run(second, f"{name}.grad.vjp", [*args, *u])
    hu = Run(forward, f"{name}.grad.jvp", [*args, *u])
    if not tame(g.xs, hv.us, uh.us, hu.us):
        return
    scale = bulk(u, v, hv.us, uh.us)
    found = Run(first, f"{name}.grad", stepped(v))
    expected = mapped(lambda y: np.imag(y) / STEP, found.xs)
    assert close(hv.us, expected, scale), "P11: forward over reverse and the complex step"
    assert close(uh.us, hu.us, scale), "P11: forward over reverse and reverse over reverse"
    assert abs(dot(u, hv.us) - dot(v, uh.us)) <= 1e-7 * scale, "P11: the Hessian is not symmetric"
    proved["P11 Hessian"] += 1
    erased = fine(erase(second, f"{name}.grad.vjp"), second)
    third = fine(vjp(erased, f"{name}.grad.vjp.e"), erased)
    w = draw(program, types, rng, at)
    zeros = mapped(np.zeros_like, list(g.xs))
    found = Run(third, f"{name}.grad.vjp.e.vjp", [*args, *u, *zeros, *w])
    along = Run(erased, f"{name}.grad.vjp.e", [*stepped(v), *u])
    k = len(g.xs)
    slope = mapped(lambda y: np.imag(y) / STEP, list(along.xs[k:]))
    left, right = dot(found.us[: len(types)], v), dot(slope, w)
    if tame(found.us, slope):
        scale = bulk(u, v, w, found.us, slope)
        assert abs(left - right) <= 1e-7 * scale, f"P11: third order: {left} != {right}"
        proved["P11 third order"] += 1


# --- Linear B ----------------------------------------------------------------------------------


def linear_b(program: Program, name: str) -> bool:
    """Whether a definition and all its callees are Linear B, without non-linear results."""
    return (
        all(
            is_linear_b(program, program.defs[f].body)
            and (not program.defs[f].results or is_nonlinear(program, f))
            for f in program.reached(name)
        )
        and not program.defs[name].results
    )


def judgement(program: Program) -> None:
    """The judgement of Linear B is Definition 7.1, word by word."""
    for f, d in program.defs.items():
        try:
            judged_linear_b(program, [f])
        except ProgramError:
            assert not is_linear_b(program, d.body), f"Linear B: {f} is refused"
        else:
            assert is_linear_b(program, d.body), f"Linear B: {f} is taken"
        proved["Linear B"] += 1


def zones(program: Program, e: Leaf | Block) -> tuple[bool, bool]:
    """Whether an expression has non-linear, and linear results."""
    while isinstance(e, Block):
        e = e.leaf
    found = ((), ()) if isinstance(e, Drop) else type_of_leaf(program, e)
    return bool(found[0]), bool(found[1])


def is_linear_b(program: Program, e: Leaf | Block) -> bool:
    """Definition 7.1: of one zone; where there are non-linear results, nothing linear is read."""
    xs, us = zones(program, e)
    if xs and (us or any(v.linear for v in free(e))):
        return False
    if isinstance(e, Drop):
        return is_linear_b(program, e.body)
    if not isinstance(e, Block):
        return True
    inner = [b.rhs for b in e.bindings if isinstance(b, Let)]
    return all(is_linear_b(program, f) for f in (*inner, e.leaf))


# --- P13 ---------------------------------------------------------------------------------------


def rejects(program: Program, name: str, rng: random.Random, tries: int = 3) -> None:
    """P13: a program with one linear occurrence dropped, repeated or replaced is refused."""
    d = program.defs[name]
    places = list(occurrences_of(d.body))
    for leaf, i in rng.sample(places, min(tries, len(places))):
        for what, broken in mutants(d, leaf, i, rng):
            try:
                check_def(program.with_(broken), broken)
            except ProgramError:
                proved["P13"] += 1
            else:
                raise AssertionError(f"P13: {what} was accepted\n{program.with_(broken)}")


def occurrences_of(e: Any) -> Any:
    """The places where a linear variable occurs: what holds it, and its position there."""
    if isinstance(e, Block):
        for b in e.bindings:
            if isinstance(b, Let):
                yield from occurrences_of(b.rhs)
            elif b.arg.linear:
                yield b, 0
        yield from occurrences_of(e.leaf)
    elif isinstance(e, Drop):
        yield from occurrences_of(e.body)
    else:
        yield from ((e, i) for i, a in enumerate(e.args) if a.linear)


def mutants(d: Def, at: Any, i: int, rng: random.Random) -> Any:
    """The definition with the occurrence dropped, repeated, and replaced by other variables."""
    a = at.arg if isinstance(at, Unpack) else at.args[i]
    if isinstance(at, Leaf):
        fewer = (*at.args[:i], *at.args[i + 1 :])
        yield f"without {a!r}", rebuilt(d, at, on(at, fewer))
        more = (*at.args[: i + 1], a, *at.args[i + 1 :])
        yield f"with {a!r} twice", rebuilt(d, at, on(at, more))
    yield f"{a!r} dropped as well", Def(
        d.name, d.params, d.results, d.lresults,
        replaced(d.body, at, at, before=Let((), drop(a))),
    )  # fmt: skip
    others = [b for b in linear_vars(d) if b is not a and b.type == a.type]
    if others:
        b = rng.choice(others)
        if isinstance(at, Unpack):
            yield f"{b!r} for {a!r}", rebuilt(d, at, Unpack(at.vars, b))
        else:
            args = (*at.args[:i], b, *at.args[i + 1 :])
            yield f"{b!r} for {a!r}", rebuilt(d, at, on(at, args))


def linear_vars(d: Def) -> list[Var]:
    return [v for v in binders(d) if v.linear]


def on(e: Leaf, args: Any) -> Leaf:
    """The same leaf on other arguments, however many."""
    match e:
        case Prim():
            return Prim(args, e.primitive, e.params)
        case Tup():
            return Tup(args, e.linear, (*e.fields, "z")[: len(args)] if e.fields else None)
        case Part():
            return type(e)(args, e.at)
        case Ret() | Dup():
            return type(e)(args)
    return e.on(args) if hasattr(e, "on") else Ret(args)  # type: ignore[attr-defined]


def rebuilt(d: Def, old: Any, new: Any) -> Def:
    """The definition with one leaf or unpacking exchanged."""
    return Def(d.name, d.params, d.results, d.lresults, replaced(d.body, old, new))


def replaced(e: Any, old: Any, new: Any, before: Any = None) -> Any:
    """An expression with one leaf or unpacking exchanged, and a binding put before it."""
    if isinstance(e, Block):
        bindings: list[Any] = []
        for b in e.bindings:
            inside = b if isinstance(b, Unpack) else b.rhs
            if before is not None and (inside is old or held(inside, old)):
                bindings.append(before)
            if isinstance(b, Unpack):
                bindings.append(new if b is old else b)
            else:
                bindings.append(Let(b.vars, replaced(b.rhs, old, new, before)))
        if before is not None and (e.leaf is old or held(e.leaf, old)):
            bindings.append(before)
        return Block(tuple(bindings), replaced(e.leaf, old, new, before))
    if isinstance(e, Drop):
        return Drop((), replaced(e.body, old, new, before))
    return new if e is old else e


def held(e: Any, old: Any) -> bool:
    """Whether a drop of a leaf is what holds it."""
    return isinstance(e, Drop) and e.body is old
