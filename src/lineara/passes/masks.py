"""M, erasure with masks: a linear variable becomes its values and which of its lanes are alive.

    f(xs:ts ; ~as:us) -> (ss ; rs)      =>      f.m(xs, as:us, ms:us' ;) -> (ss, rs, ns:rs' ;)

Each vector stands beside its mask: a1, m1, a2, m2, ..  In us' numbers are booleans, and a name is
`NAME.live`.  A lane that is dead is zero, and stays it whatever it is multiplied with.  What
becomes of masks is said in one place, `cotangent/dead_lanes.py`; it runs here on boxed variables.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from lineara.cotangent.dead_lanes import Masked
from lineara.errors import ProgramError
from lineara.facts.gc_pause import uncollected
from lineara.facts.registry import op
from lineara.facts.types import ArrayType, Family, Named, Product, Type, is_ring
from lineara.linear_a import syntax as ir
from lineara.linear_a.check import type_of_leaf
from lineara.linear_a.dimensions import Samples
from lineara.linear_a.program import Program
from lineara.linear_a.rules_as_text import Boxed, Emitter, Text, closed, reboxed, text
from lineara.passes.jvp import remembered
from lineara.passes.names import LIVE, MS, M
from lineara.passes.unzip import is_nonlinear

BOOL = np.dtype(bool)
KILLS = ("keep", "scatter")  # primitives that put zeros into a vector
Pair = tuple[ir.Var, ir.Var]


@uncollected
def masks(program: Program, name: str, strong: bool = False) -> Program:
    """The program with `name.m`, and that of every callee that has linear parts.

    If `strong`, a computed zero times infinity is zero too; the suffix is then `.ms`.

    >>> from lineara.linear_a.parse import parse
    >>> from lineara.linear_a.show import show_def
    >>> p = masks(parse("def f(x: f64; ~a: f64) -> (; f64) = x * ~a"), "f")
    >>> print(show_def(p.defs["f.m"]))
    def f.m(x: f64, a: f64, live: bool;) -> (f64, bool;) =
      let k: f64 = 0.0 in
      let k2: f64 = live_factor(live, x, k) in
      let k3: f64 = k2 * a in
      (k3, live;)
    <BLANKLINE>
    """
    todo, done, helpers, used = [name], {}, {}, set()
    rules: dict[Any, Text] = {}
    suffix = MS if strong else M
    while todo:
        f = todo.pop()
        if f in done or f + suffix in program.defs:
            continue
        one = _Masks(program, f, suffix, rules, helpers)
        done[f] = one.definition()
        todo += one.needed
        used |= one.used
    program = program.with_(*helpers.values(), *[done[f] for f in reversed(done)])
    return program.with_(types=live_types(program, used))


def makes_dead_lanes(program: Program, name: str) -> bool:
    """Whether M gives a mask that is not known of vectors in which every lane lives.

    What is no part of a selection, a scattering or a zero keeps lanes alive.
    """
    places = ir.Accum | ir.Put | ir.Inj | ir.Proj
    return any([
        (isinstance(e, ir.Zero) and e.linear)
        or (e.lxs and (isinstance(e, places) or (isinstance(e, ir.Prim) and e.name in KILLS)))
        for f in program.reached(name) for e in ir.leaves(program.defs[f].body)
    ])  # fmt: skip


class _Masks:
    """M of one definition."""

    def __init__(
        self,
        program: Program,
        name: str,
        suffix: str,
        rules: dict[Any, Text],
        helpers: dict[str, ir.Def],
    ) -> None:
        if name not in program.defs:
            raise ProgramError(f"masks: there is no definition {name}")
        self.program = program
        self.d = program.defs[name]
        self.suffix = suffix
        self.rules = rules
        self.helpers = helpers
        self.needed: list[str] = []
        self.used: set[Type] = set()  # types of which that of masks is asked for
        self.names = ir.Names([v.name for v in ir.binders(self.d)])
        self.out = Emitter(self.names)
        self.pairs: dict[ir.Var, Pair] = {}
        self.harmless: set[ir.Var] = set()  # numbers that are known to be finite

    def definition(self) -> ir.Def:
        """f.m."""
        d = self.d
        params = (*d.xs, *[v for a in d.lxs for v in self.pair(a)])
        results = self.expression(d.body)
        bindings = closed(self.out.bindings, params, results)
        types = (*d.results, *self.types(d.lresults))
        return ir.Def(
            d.name + self.suffix, params, types, (), ir.Block(tuple(bindings), ir.Ret(results))
        )

    # --- what forms ask for ----------------------------------------------------------------------

    def recur(self, name: str) -> str:
        """A callee with masks; one without linear parts is its own."""
        if is_nonlinear(self.program, name):
            return name
        self.needed.append(name)
        return name + self.suffix

    def define(self, d: ir.Def) -> None:
        """A definition that a form needs."""
        self.helpers[d.name] = d

    def each(self, vs: Iterable[ir.Var]) -> ir.Vars:
        """What stands for variables."""
        return tuple([w for v in vs for w in (self.pairs[v] if v.linear else (v,))])

    def types(self, us: Iterable[Type]) -> tuple[Type, ...]:
        """The types of what stands for linear variables."""
        return tuple([t for u in us for t in (u, self.live(u))])

    def bound(self, rs: Sequence[ir.Var], leaf: ir.Leaf) -> None:
        """One more binding."""
        self.out.bindings.append(ir.Let(tuple(rs), leaf))

    def reordered(self, loop: ir.Leaf, outcome: tuple[Any, ...], nc: int, nlc: int) -> ir.Leaf:
        """A loop whose results (c', lc', y, ly) are bound and handed on as (c', y, lc', ly)."""
        ts, us = outcome[0], self.types(outcome[1])
        rs = [self.fresh("r", t) for t in (*ts[:nc], *us[: 2 * nlc], *ts[nc:], *us[2 * nlc :])]
        self.bound(rs, loop)
        k, m = nc + 2 * nlc, len(ts)
        return ir.Ret((*rs[:nc], *rs[k : m + 2 * nlc], *rs[nc:k], *rs[m + 2 * nlc :]))

    # --- variables -------------------------------------------------------------------------------

    def fresh(self, like: str, t: Type) -> ir.Var:
        """A variable with a name that is free."""
        return self.out.fresh(like, t)

    def live(self, t: Type) -> Type:
        """The type of masks."""
        self.used.add(t)
        return live_type(t)

    def pair(self, a: ir.Var) -> Pair:
        """The variables of a linear binder."""
        self.pairs[a] = ir.Var(a.name, a.type, False, a.line), self.fresh("live", self.live(a.type))
        return self.pairs[a]

    def columns(self, args: Iterable[ir.Var]) -> tuple[ir.Vars, ir.Vars]:
        """The values of linear variables, and their masks."""
        pairs = [self.pairs[a] for a in args]
        return tuple([v for v, _ in pairs]), tuple([m for _, m in pairs])

    def both(self, like: str, leaves: Sequence[ir.Leaf], t: Type) -> ir.Vars:
        """The pair that is bound to two leaves."""
        e, live = leaves
        return self.one(like, t, e), self.one("live", self.live(t), live)

    def one(self, like: str, t: Type, e: ir.Leaf) -> ir.Var:
        """The variable that a leaf is bound to."""
        v = self.fresh(like, t)
        self.bound([v], e)
        return v

    # --- M ---------------------------------------------------------------------------------------

    def expression(self, e: ir.Leaf | ir.Block) -> ir.Vars:
        """The results, non-linear ones and pairs."""
        while isinstance(e, ir.Block):
            for b in e.bindings:
                self.out.line = ir.line_of(b)
                if isinstance(b, ir.Unpack):
                    self.unpack(b)
                else:
                    self.let(b)
            e = e.leaf
        return self.leaf(e)

    def unpack(self, b: ir.Unpack) -> None:
        """The parts of the values, and of the mask."""
        made = [self.pair(v) for v in b.vars] if b.arg.linear else [(v,) for v in b.vars]
        columns = zip(*made, strict=True) if made else [()] * len(self.each((b.arg,)))
        for whole, parts in zip(self.each((b.arg,)), columns, strict=True):
            self.out.bindings.append(ir.Unpack(tuple(parts), whole))

    def let(self, b: ir.Let) -> None:
        """The binders stand for the results."""
        if isinstance(b.rhs, ir.Lit) and np.all(np.isfinite(b.rhs.value)):
            self.harmless.update(b.vars)
        if isinstance(b.rhs, ir.Leaf) and not any([v.linear for v in (*b.vars, *b.rhs.args)]):
            self.out.bindings.append(b)
            return
        results = iter(self.expression(b.rhs))
        for v in b.vars:
            if v.linear:
                self.pairs[v] = next(results), next(results)
            else:
                self.bound([v], ir.Copy((next(results),)))

    def leaf(self, e: ir.Leaf) -> ir.Vars:
        """M of a leaf."""
        match e:
            case ir.Ret() | ir.Copy():
                return self.each(e.args)
            case ir.Dup():
                return self.each(e.args * 2)
            case ir.Drop():
                return ()
            case ir.Read(args=(a,), at=at):
                y = type_of_leaf(self.program, e).lxs[0]
                parts = [ir.Prim((v,), op("index"), {"at": at}) for v in self.pairs[a]]
                return (*self.both("y", parts, y), *self.pairs[a])
            case ir.Application():
                return self.application(e)
        ts, us = type_of_leaf(self.program, e)
        if not us:
            return (self.one("v", ts[0], e),)
        (t,) = us
        match e:
            case ir.Zero():
                return self.both("z", [_zero(t), _zero(self.live(t))], t)
            case ir.Tup(args=args, fields=fields):
                return self.both("p", [ir.Tup(c, False, fields) for c in self.columns(args)], t)
            case ir.Inj(args=(a,), tag=tag, type=s):
                v, m = self.pairs[a]
                return self.both("s", [ir.Inj((v,), tag, s), ir.Inj((m,), tag, self.live(s))], t)
            case ir.Accum() | ir.Put():
                return self.both("d", [type(e)(c, e.at) for c in self.columns(e.args)], t)
            case ir.Proj(args=(a,), tag=tag):
                return self.both("d", [ir.Proj((v,), tag) for v in self.pairs[a]], t)
            case ir.Prim(name="add"):
                return self.both("ds", [ir.Prim(c, e.primitive) for c in self.columns(e.args)], t)
            case ir.Prim(name="multiply"):
                return self.scaled(e.args[0], *self.pairs[e.args[1]], e)
            case ir.Prim():
                return self.prim(e, t)
        raise AssertionError(type(e).__name__)

    def application(self, e: ir.Application) -> ir.Vars:
        """Calls, branches and loops, which state what E makes of them."""
        made = e.erase(self)
        if isinstance(made, ir.Ret):
            return made.args
        ts, us = type_of_leaf(self.program, e)
        rs = [self.fresh("r", t) for t in (*ts, *self.types(us))]
        self.bound(rs, made)
        return tuple(rs)

    def scaled(self, k: ir.Var, v: ir.Var, m: ir.Var, e: ir.Prim) -> Pair:
        """k * v: of a product, each part; what is finite makes no dead lane alive."""
        t = self.program.unfold(v.type)
        if not isinstance(t, Product):
            if k in self.harmless:
                return self.one("dp", v.type, ir.Prim((k, v), e.primitive)), m
            a = ir.Var(v.name, v.type, True)
            self.pairs[a] = v, m
            made = self.prim(ir.Prim((k, a), e.primitive), v.type)
            return made[0], made[1]
        values, alive = [tuple([self.fresh("p", s) for s in types])
                         for types in (t.items, self.types(t.items)[1::2])]  # fmt: skip
        self.out.bindings += [ir.Unpack(values, v), ir.Unpack(alive, m)]
        parts = [
            self.scaled(k, p, q, e) if self.program.has_scalars(p.type) else (p, q)
            for p, q in zip(values, alive, strict=True)
        ]
        made = [ir.Tup(c, False, t.fields) for c in zip(*parts, strict=True)]
        return self.one("p", v.type, made[0]), self.one("live", m.type, made[1])

    def prim(self, e: ir.Prim, t: Type) -> ir.Vars:
        """A primitive as masked vectors see it: a text, made once a signature."""
        known = tuple([(v.type, v.linear) for v in e.operands()]), self.suffix
        strong = self.suffix == MS
        made = remembered(self.rules, e, known, lambda: rule_text(e, t, strong))
        plain = [v for v in e.operands() if not v.linear]
        return tuple(made.copied([*plain, *self.each(e.lxs)], self.out, {}))


def rule_text(e: ir.Prim, t: Type, strong: bool) -> Text:
    """The non-linear operands, then vectors and masks, to the result and its mask."""
    plain = [v for v in e.operands() if not v.linear]
    formals = [ir.Var(f"x{i}", v.type) for i, v in enumerate(plain)]
    for i, a in enumerate(e.lxs):
        formals += [ir.Var(f"a{i}", a.type), ir.Var(f"m{i}", live_type(a.type))]

    def rule(samples: Samples, *boxed: Any) -> Sequence[Any]:
        boxes, pairs = iter(boxed[: len(plain)]), iter(boxed[len(plain) :])
        args = tuple(
            [Masked(next(pairs), next(pairs), 0, strong) if a.linear else next(boxes)
             for a in e.args]
        )  # fmt: skip
        params = reboxed(e.params, boxes, samples.at)
        first = next(a for a in args if isinstance(a, Masked))
        y = first.interpret(e.primitive, args, params)
        return y.v, y.live if isinstance(y.live, Boxed) else _full(y, first.v.emitter)

    return text(e, rule, formals, [t, live_type(t)])


def _full(y: Masked, out: Emitter) -> Boxed:
    """A mask that is known: every lane lives."""
    one = out.box(out.unbox(np.bool_(True)))
    return op("broadcast_to")(one, shape=y.shape) if y.shape else one


def _zero(t: Type) -> ir.Leaf:
    """The zero of a type, as a value."""
    if isinstance(t, ArrayType) and not t.shape:
        return ir.lit(t.dtype.type(0), t)
    return ir.zero(t, linear=False)


def live_type(t: Type) -> Type:
    """The type of the masks of vectors."""
    if isinstance(t, Named):
        return Named(t.name + LIVE, t.dims)
    if is_ring(t):
        raise ProgramError("masks: elements of a ring have no lanes that could be dead")
    if isinstance(t, ArrayType):
        return ArrayType(t.shape, BOOL)
    return t._replace(items=tuple(map(live_type, t.items)))


def live_types(program: Program, used: Iterable[Type]) -> dict[str, Type | Family]:
    """The definitions of the `NAME.live` that masks of the types mention."""
    types: dict[str, Type | Family] = {}
    open_ = list(used)
    while open_:
        t = open_.pop()
        if isinstance(t, Named):
            name = t.name + LIVE
            if name not in types and name not in program.types:
                stated = program.types[t.name]
                made = live_type(program.stated(t.name))
                types[name] = Family(stated.dims, made) if isinstance(stated, Family) else made
                open_.append(program.stated(t.name))
        elif not isinstance(t, ArrayType):
            open_ += t.items
    return types


__all__ = ["live_type", "masks"]
