"""Batching, vmap:  f on many arguments at once, along an axis in front of each batched variable.

    f(xs ; ~as) -> (ss ; rs)      =>      f.b<n>.<axes>(xs' ; ~as') -> (ss' ; rs')
                                          f.b.<axes>(lanes: i64, xs' ; ~as') -> (ss' ; rs')

The axes say of each formal where its n lanes lie, or n for one value that all lanes share; without
a number the lanes are counted at run time.  What depends on no batched formal is computed once and
stays as it is; where it meets a batched value it is broadcast, in so many words.  A primitive's one
batch rule is run on boxed variables, once a signature, and the text is copied, as in J and T.
Calls, branches and loops say themselves what they are over lanes; where lanes go different ways
they are partitioned (partition.py).
"""

from collections import ChainMap
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np

from lineara.errors import ProgramError
from lineara.facts.gc_pause import uncollected
from lineara.facts.registry import op
from lineara.facts.types import ArrayType, Family, Named, Product, Stack, Type, is_ring, show
from lineara.linear_a import syntax as ir
from lineara.linear_a.check import type_of_leaf
from lineara.linear_a.dimensions import I64, Samples, result_type
from lineara.linear_a.lane_partition import applied, in_turn, placed
from lineara.linear_a.loops import Scan
from lineara.linear_a.program import Program
from lineara.linear_a.rules_as_text import Emitter, Text, reboxed, text
from lineara.passes.jvp import remembered
from lineara.passes.names import JVP, T

Axes = Sequence[int | None]
Flags = tuple[bool, ...]
OverLanes = tuple[Program, str, dict[str, tuple[str, Axes]]]
Lanes = Any  # how many: a number, or an i64 formal


@uncollected
def batch(program: Program, name: str, axes: Axes, size: int | None = None) -> Program:
    """The program with `name` over lanes; `axes` has an axis or None for each formal.

    There are `size` of them, or as many as a first formal says.  Results that depend on a lane have
    the axis in front; those that do not have their old type.

    >>> from lineara.linear_a.parse import parse
    >>> from lineara.linear_a.show import show_def
    >>> text = "def f(k: f64, x: f64;) -> (f64, f64;) = let y = k * k in let z = y * x in (y, z;)"
    >>> print(show_def(batch(parse(text), "f", (None, 0), 3).defs["f.b3.n0"]))
    def f.b3.n0(k: f64, x: f64[3];) -> (f64, f64[3];) =
      let y: f64 = k * k in
      let z: f64[3] = y * x in
      (y, z;)
    <BLANKLINE>
    """
    if name not in program.defs:
        raise ProgramError(f"batch: there is no definition {name}")
    d = program.defs[name]
    if len(axes) != len(d.params):
        raise ProgramError(
            f"batch: {name} has {len(d.params)} formals, but {len(axes)} axes are given; "
            "give one or None for each"
        )
    if size is not None and size < 0:
        raise ProgramError(f"batch: {size} lanes; their number is not negative")
    run = Batch(program)
    run.definition(name, tuple(axes), size)
    return run.program_with()


def over_lanes(program: Program, name: str, axes: Axes, size: int) -> OverLanes:
    """The program with a definition over lanes, all of whose results have them; its name, and what
    each new definition is over lanes.

    What it applies is batched for it alone, under names that say so.
    """
    run = Batch(program, name)
    want = (True,) * len(program.defs[name].results)
    made, _ = run.definition(name, tuple(axes), size, want)
    return run.program_with(), made, run.origins


def batched_name(name: str, axes: Axes, size: int | None = None) -> str:
    """The name of a batched definition: f.b3.n0 has 3 lanes, in axis 0 of its second formal."""
    n = "" if size is None else size
    return f"{name}.b{n}.{''.join(['n' if a is None else str(a) for a in axes])}"


class Batch:
    """All definitions of one run: those that are done, and the batched types they mention."""

    named = staticmethod(batched_name)  # what a definition over lanes is called

    def __init__(self, program: Program, owner: str = "") -> None:
        self.program = program
        self.owner = owner  # the definition for which all others are batched
        self.done: dict[str, ir.Def] = {}
        self.origins: dict[str, tuple[str, Axes]] = {}
        self.one: type[OverLanesOf] = OverLanesOf
        self.known: dict[str, OverLanesOf] = {}
        self.types: dict[str, Type | Family] = {}
        self.every: Program = replace(
            program.whole, types=ChainMap(self.types, dict(program.types))
        )
        self.rules: dict[Any, Text] = {}
        self.entered: list[str] = []
        self.recursive: set[str] = set()

    def definition(
        self, name: str, axes: Axes, size: int | None, want: Flags | None = None
    ) -> tuple[str, Flags]:
        """The name of a batched definition, made if it is not there, and which results have lanes.

        Those that are wanted with lanes get them; all of them in a recursion, where none is known,
        and in a definition that has rules, whose lanes are then those of the rules.
        """
        new = self.named(name, axes, size)
        new = f"{new}.{self.owner}" if self.owner not in ("", name) else new
        self.origins[new] = name, axes
        d = self.program.defs[name]
        if new in self.entered:
            self.recursive.add(new)
            return new, (True,) * (len(d.results) + len(d.lresults))
        if new not in self.known:
            if len(self.entered) > 200:
                raise ProgramError(
                    "batch: calls lie in each other deeper than 200; inline some before"
                )
            one = self.entering(self.one(self, d, axes, size, new))
            ruled = {name + JVP, name + T} & set(self.program.defs)
            if new in self.recursive or (ruled and any([a is not None for a in axes])):
                one.flags = (True,) * len(one.flags)
            self.known[new] = one
            self.done[new] = one.definition(new, one.flags)
            self.with_rules(one, new, one.flags)
        one = self.known[new]
        flags = want or one.flags
        if flags != one.flags:
            new = f"{new}.{''.join([str(int(b)) for b in flags])}"
            self.origins[new] = name, axes
            if new not in self.done:
                self.done[new] = one.definition(new, flags)
        return new, flags

    def program_with(self) -> Program:
        """The program with all that was made."""
        return self.program.with_(*self.done.values(), types=self.types)

    def with_rules(self, one: "OverLanesOf", new: str, flags: Flags) -> None:
        """The derivative and the transpose that the program has for a definition, over lanes.

        A cotangent that all lanes share is the sum of those of the lanes.
        """
        d, defs = one.d, self.program.defs
        k = len(d.results)
        has_tangent = [not self.program.is_inert(p.type) for p in d.xs]
        if d.name + JVP in defs and not d.lxs:
            axes = [a for a, m in zip(one.axes, has_tangent, strict=True) if m]
            want = [
                b for b, t in zip(flags, d.results, strict=True) if not self.program.is_inert(t)
            ]
            self.rule(one, d.name + JVP, (*one.axes, *axes), new + JVP, (*flags, *want))
        if d.name + T in defs and not d.results:
            n = len(d.xs)
            axes = [0 if b else None for b in flags[k:]]
            want = [a is not None for a in one.axes[n:]]
            self.rule(one, d.name + T, (*one.axes[:n], *axes), new + T, tuple(want))

    def entering(self, one: "OverLanesOf") -> "OverLanesOf":
        """Write the definition's body; a recursive call finds it as entered."""
        self.entered.append(one.name)
        try:
            one.write()
        finally:
            self.entered.pop()
        return one

    def rule(self, one: "OverLanesOf", name: str, axes: Axes, new: str, want: Flags) -> None:
        """A definition over the lanes of another one, under a name that passes look for."""
        if new in self.program.defs:
            return
        made = self.entering(self.one(self, self.program.defs[name], axes, one.size, new))
        self.done[new] = made.definition(new, want)
        self.with_rules(made, new, want)

    def type(self, t: Type, lanes: Lanes, axis: int = 0) -> Type:
        """The type of many values; of a named type the name is NAME.b<n>, or NAME.b[lanes]."""
        if is_ring(t):
            raise ProgramError("batch: elements of a ring have no lanes; run f for one at a time")
        if isinstance(t, ArrayType):
            if not -len(t.shape) - 1 <= axis <= len(t.shape):
                raise ProgramError(f"batch: {show(t)} over lanes has no axis {axis}")
            axis %= len(t.shape) + 1
            return ArrayType((*t.shape[:axis], lanes, *t.shape[axis:]), t.dtype)
        if isinstance(t, Named):
            open_ = isinstance(lanes, ir.Var)
            name = f"{t.name}.b{'' if open_ else lanes}{f'.{axis}' if axis else ''}"
            if name not in self.every.types:
                self.types[name] = Product()
                stated = self.program.types[t.name]
                known = stated.dims if isinstance(stated, Family) else ()
                n = ir.Var(ir.Names([v.name for v in known])("lanes"), I64) if open_ else lanes
                made = self.type(self.program.stated(t.name), n, axis)
                dims = (*[n] * open_, *known)
                self.types[name] = Family(dims, made) if dims else made
            return Named(name, (lanes,) * open_ + t.dims)
        if isinstance(t, Product | Stack):
            return t._replace(items=tuple([self.type(s, lanes, axis) for s in t.items]))
        raise ProgramError(
            f"batch: {show(t)} has a tag, which may differ from lane to lane; batch what is around "
            "it"
        )


class OverLanesOf:
    """One definition, whose lanes are as many as a number or a first formal says."""

    def __init__(self, run: Batch, d: ir.Def, axes: Axes, size: int | None, name: str) -> None:
        self.run = run
        self.program: Program = run.program
        self.d = d
        self.axes = axes
        self.size = size
        self.name = name
        self.out: Emitter = Emitter(ir.Names([p.name for p in d.params]))
        self.lanes: Lanes = self.out.fresh("lanes", I64) if size is None else size
        self.ahead: tuple[Lanes, ...] = (self.lanes,) if size is None else ()
        self.at: dict[ir.Var, ir.Var] = {}  # the variable of a batched one has another type
        self.batched: set[ir.Var] = set()  # new variables that have lanes
        self.likes: Sequence[str] = ()  # the names of what is bound
        self.helpers: int = 0
        self.flags: Flags = ()

    def write(self) -> None:
        """The formals and the body, and which results have lanes."""
        d, params = self.d, []
        for p, axis in zip(d.params, self.axes, strict=True):
            if axis is None:
                params.append(p)
                self.at[p] = p
                continue
            if p in self.program.dims(d.name):
                raise ProgramError(
                    f"batch: {p!r} is a dimension in {d.name}, which is the same in all lanes; "
                    "give it no axis"
                )
            v = ir.Var(p.name, self.type(p.type, axis), p.linear, p.line)
            params.append(v)
            self.at[p] = front = v if axis == 0 else self.front(v, p.type, axis)
            self.batched.add(front)
        self.params: tuple[Any, ...] = (*self.ahead, *params)
        self.last: list[ir.Var] = self.body()
        self.flags = self.has_lanes(self.last)

    def body(self) -> list[ir.Var]:
        """The results, whose bindings are written."""
        return self.expression(self.d.body)

    def definition(self, name: str, flags: Flags) -> ir.Def:
        """The batched definition, where results have lanes as the flags say."""
        d, written = self.d, len(self.out.bindings)
        stated = zip((*d.results, *d.lresults), flags, strict=True)
        types = [self.type(t) if b else t for t, b in stated]
        pairs = zip(self.last, flags, strict=True)
        results = [self.lift(v) if b else self.shared(v) for v, b in pairs]
        if self.ahead and not any(flags) and all([a is None for a in self.axes]):
            self.out.bindings.append(ir.Let((), ir.drop(self.lanes)))
        k = len(d.results)
        body = ir.Block(tuple(self.out.bindings), ir.Ret(tuple(results)))
        del self.out.bindings[written:]
        return ir.Def(name, self.params, tuple(types[:k]), tuple(types[k:]), body)

    def like(self, i: int) -> str:
        """A name for result i of what is bound."""
        return self.likes[i] if i < len(self.likes) else "v"

    # --- variables ---------------------------------------------------------------------------

    def bind(self, like: str, t: Type, e: ir.Leaf, linear: bool) -> ir.Var:
        """A new variable with lanes, for a leaf with one result."""
        v = self.out.bind(like, t, e, linear)
        self.batched.add(v)
        return v

    def parts(self, v: ir.Var, t: Product, batched: bool) -> list[ir.Var]:
        """The components of a product."""
        types = [self.type(s) if batched else s for s in t.items]
        made = [self.out.fresh(self.like(i), s, v.linear) for i, s in enumerate(types)]
        self.out.bindings.append(ir.Unpack(tuple(made), v))
        if batched:
            self.batched.update(made)
        return made

    def product(self, v: ir.Var, parts: Sequence[ir.Var], t: Product, whole: Type) -> ir.Var:
        """A batched product like v of batched parts."""
        return self.bind(v.name, whole, ir.Tup(tuple(parts), v.linear, t.fields), v.linear)

    def lift(self, v: ir.Var) -> ir.Var:
        """A variable with lanes; one without is the same in all of them."""
        if v in self.batched:
            return v
        t = self.unfold(v.type)
        whole = self.type(v.type)
        if isinstance(t, Product):
            return self.product(v, [self.lift(p) for p in self.parts(v, t, False)], t, whole)
        if not isinstance(whole, ArrayType):
            raise ProgramError(
                f"batch: in {self.d.name}, {v!r} is a {show(t)} that all lanes share, and one of "
                "the lane's own is needed; batch what is around it"
            )
        made = ir.Prim((v,), op("broadcast_to"), {"shape": whole.shape})
        return self.bind(v.name, whole, made, v.linear)

    def shared(self, v: ir.Var) -> ir.Var:
        """A cotangent that all lanes share, which is the sum of those of the lanes."""
        if v not in self.batched:
            return v
        t = self.unfold(v.type)
        assert v.linear, "only cotangents are wanted without lanes"
        assert isinstance(t, ArrayType), "a cotangent that lanes share is an array"
        made = ir.Prim((v,), op("sum"), {"axis": (0,), "keepdims": False})
        return self.out.bind(v.name, ArrayType(t.shape[1:], t.dtype), made, True)

    def front(self, v: ir.Var, t: Type, axis: int) -> ir.Var:
        """The same with its lanes in front; t is the type of one lane."""
        whole, t = self.type(t), self.unfold(t)
        if isinstance(t, Product):
            parts = [self.out.fresh("p", self.type(s, axis), v.linear) for s in t.items]
            self.out.bindings.append(ir.Unpack(tuple(parts), v))
            moved = [self.front(p, s, axis) for p, s in zip(parts, t.items, strict=True)]
            return self.product(v, moved, t, whole)
        assert isinstance(t, ArrayType), show(t)
        axis %= len(t.shape) + 1
        order = (axis, *[i for i in range(len(t.shape) + 1) if i != axis])
        made = ir.Prim((v,), op("permute_dims"), {"axes": order})
        return self.out.bind(v.name, whole, made, v.linear)

    def type(self, t: Type, axis: int = 0) -> Type:
        """The type of a value for each lane."""
        return self.run.type(t, self.lanes, axis)

    def unfold(self, t: Type) -> Type:
        """The type that a name stands for."""
        return self.run.every.unfold(t)

    # --- expressions -------------------------------------------------------------------------

    def expression(self, e: ir.Leaf | ir.Block) -> list[ir.Var]:
        """The results of an expression, whose bindings are written, flat."""
        if isinstance(e, ir.Leaf):
            return self.leaf(e)
        for b in e.bindings:
            self.likes, self.out.line = [v.name for v in b.vars], ir.line_of(b)
            results = self.unpack(b) if isinstance(b, ir.Unpack) else self.expression(b.rhs)
            self.at.update(zip(b.vars, results, strict=True))
        self.likes, self.out.line = [], ir.line_of(e.leaf)
        return self.leaf(e.leaf)

    def unpack(self, b: ir.Unpack) -> list[ir.Var]:
        """A batched product has batched parts."""
        arg = self.at[b.arg]
        t = self.unfold(b.arg.type)
        assert isinstance(t, Product)
        return self.parts(arg, t, arg in self.batched)

    def leaf(self, e: ir.Leaf) -> list[ir.Var]:
        """The results of a leaf."""
        if isinstance(e, ir.Drop):
            for v in self.expression(e.body):
                self.out.bindings.append(ir.Let((), ir.drop(v)))
            return []
        if isinstance(e, ir.Ret | ir.Copy):
            return [self.at[a] for a in e.args]
        args = [self.at[a] for a in e.args]
        if not any([self.at[v] in self.batched for v in e.operands()]):
            return self.plain(e)
        if isinstance(e, ir.Prim) and e.name == "index":
            return [self.read(e, args, e.params["at"])[0]]
        if isinstance(e, ir.Part):
            return self.part(e, args)
        if isinstance(e, ir.Prim) and e.name == "scatter" and any(ir.vars_in(e.params["at"])):
            return self.scatter(e, args[0])
        match e:
            case ir.Tup(linear=linear, fields=fields):
                parts = [self.lift(a) for a in args]
                t = Product(tuple([p.type for p in parts]), fields)
                return [self.bind(self.like(0), t, ir.Tup(tuple(parts), linear, fields), linear)]
            case ir.Dup():
                made = [self.out.fresh(args[0].name, args[0].type, True) for _ in range(2)]
                self.out.bindings.append(ir.Let(tuple(made), ir.Dup(tuple(args))))
                self.batched.update(made)
                return made
            case ir.Prim():
                return [self.prim(e, args)]
            case ir.Application():
                return e.batch(self, args)
        self.refuse(e, "depends on what differs from lane to lane")

    def refuse(self, e: ir.Leaf, why: str) -> NoReturn:
        """Raise the error about what cannot be batched."""
        what = e.head() if isinstance(e, ir.Application) else type(e).__name__.lower()
        raise ProgramError(
            f"batch: in {self.d.name}, {what} {why}; batch what is around it, or run it lane by "
            "lane"
        )

    def plain(self, e: ir.Leaf) -> list[ir.Var]:
        """What all lanes share stays as it is."""
        xs, us = type_of_leaf(self.run.program, e)
        made = [self.out.fresh(self.like(i), t, i >= len(xs)) for i, t in enumerate((*xs, *us))]
        self.out.bindings.append(ir.Let(tuple(made), e.renamed(self.at.__getitem__)))
        return made

    def part(self, e: ir.Part, args: list[ir.Var]) -> list[ir.Var]:
        """read, accum and put, of the same part in every lane or of a part of its own."""
        if isinstance(e, ir.Read):
            return list(self.read(e, args, e.at))
        assert isinstance(e, ir.Accum | ir.Put)
        x, *rest = map(self.lift, args)
        at, order = placed(self, self.lane(e.args[0]), e.at, True)
        back = None if order is None else tuple(np.argsort(order).tolist())
        rest = [self.permuted(y, back) for y in rest]
        return [self.bind(x.name, x.type, type(e)((x, *rest), at), x.linear)]

    def scatter(self, e: ir.Prim, y: ir.Var) -> list[ir.Var]:
        """Zeros, to which each lane adds at positions of its own."""
        (t,) = self.outcome(e)[y.linear]
        whole = self.type(t)
        x = self.bind("x", whole, ir.Zero((), whole, y.linear), y.linear)
        at, order = placed(self, t, ir.parts_of(e.params["at"]), True)
        back = None if order is None else tuple(np.argsort(order).tolist())
        made = ir.Accum((x, self.permuted(self.lift(y), back)), at)
        return [self.bind(self.like(0), whole, made, y.linear)]

    def read(self, e: ir.Leaf, args: list[ir.Var], at: Any) -> tuple[ir.Var, ...]:
        """The part of each lane, and of a linear array the rest."""
        (x,) = args
        has = x in self.batched
        at, order = placed(self, self.lane(e.args[0]), ir.parts_of(at), has)
        t = result_type(op("index"), (self.unfold(x.type),), {"at": at})  # type: ignore
        if isinstance(e, ir.Read):
            part = self.out.fresh(self.like(0), t, True)
            rest = self.out.fresh(x.name, x.type, True)
            self.out.bindings.append(ir.Let((part, rest), ir.Read((x,), at)))
            self.batched.update([part, *[rest] * has])
            return self.permuted(part, order), rest
        y = self.bind(self.like(0), t, ir.Prim((x,), op("index"), {"at": at}), x.linear)
        return (self.permuted(y, order),)

    def lane(self, v: ir.Var) -> ArrayType:
        """The type of an array in one lane."""
        t = self.unfold(v.type)
        assert isinstance(t, ArrayType)
        return t

    def permuted(self, v: ir.Var, axes: tuple[int, ...] | None) -> ir.Var:
        """The array with its axes in another order, if there is one."""
        if axes is None:
            return v
        made = ir.Prim((v,), op("permute_dims"), {"axes": axes})
        t = self.unfold(v.type)
        assert isinstance(t, ArrayType)
        t = ArrayType(tuple([t.shape[i] for i in axes]), t.dtype)
        return self.bind(v.name, t, made, v.linear)

    # --- what forms ask for --------------------------------------------------------------------

    def has_lanes(self, args: Sequence[ir.Var]) -> Flags:
        """Which of the variables have lanes."""
        return tuple([a in self.batched for a in args])

    def recur(self, name: str, flags: Flags, want: Flags | None = None) -> tuple[str, Flags]:
        """A definition over the same lanes, and which of its results have them."""
        if not any(flags) and self.size is not None:
            d = self.program.defs[name]
            return name, (False,) * (len(d.results) + len(d.lresults))
        return self.over(name, flags, self.size, want)

    def over(
        self, name: str, flags: Flags, size: int | None, want: Flags | None
    ) -> tuple[str, Flags]:
        """A definition over some lanes."""
        return self.run.definition(name, tuple([0 if b else None for b in flags]), size, want)

    def of_arrays(self, e: ir.Leaf) -> bool:
        """Whether a leaf takes and gives arrays only."""
        ts, us = self.outcome(e)
        types = (*[v.type for v in e.args], *ts, *us)
        return all([isinstance(self.unfold(t), ArrayType) for t in types])

    def in_turn(self, e: ir.Leaf, args: Sequence[ir.Var]) -> list[ir.Var]:
        """One lane after the other."""
        return in_turn(self, e, args, Scan)

    def helper(self, what: str) -> str:
        """A name for a definition that this one needs beside it."""
        self.helpers += 1
        return f"{self.name}.{what}{self.helpers}"

    def define(self, d: ir.Def) -> None:
        """A definition that a form needs."""
        self.run.done[d.name] = d

    def outcome(self, e: ir.Leaf) -> Any:
        """The types of what a leaf gives for one lane."""
        return type_of_leaf(self.program, e)

    def results(self, e: ir.Leaf, made: ir.Leaf, flags: Flags) -> list[ir.Var]:
        """The results of what stands for a leaf; those that have lanes as the flags say."""
        xs, us = self.outcome(e)
        types = [self.type(t) if b else t for t, b in zip((*xs, *us), flags, strict=True)]
        return self.bound(made, types, flags, len(xs))

    def bound(self, made: ir.Leaf, types: Sequence[Type], flags: Flags, k: int) -> list[ir.Var]:
        """Variables for the results of a leaf, of which k are non-linear."""
        vs = [self.out.fresh(self.like(i), t, i >= k) for i, t in enumerate(types)]
        self.out.bindings.append(ir.Let(tuple(vs), made))
        self.batched.update([v for v, b in zip(vs, flags, strict=True) if b])
        return vs

    def number(self, value: Any) -> ir.Var:
        """A whole number."""
        return self.out.bind("k", I64, ir.lit(np.int64(value), I64))

    def prim_(self, name: str, *args: ir.Var, **params: Any) -> ir.Var:
        """A primitive on values as they are."""
        return applied(self.out, name, *args, **params)

    # --- primitives --------------------------------------------------------------------------

    def prim(self, e: ir.Prim, args: list[ir.Var]) -> ir.Var:
        """The batch rule of a primitive; sums and multiples of products, part by part."""
        linear = any([a.linear for a in args])
        if isinstance(self.unfold(args[-1].type), Product):
            return self.of_products(e, args)
        flags = tuple([a in self.batched for a in args])
        (t,) = self.outcome(e)[linear]
        try:
            rule = self.rule(e, args, flags, self.type(t))
        except ProgramError:  # the definition needs the number of lanes
            if self.size is not None or any(ir.vars_in(e.params)) or not self.of_arrays(e):
                raise
            return self.in_turn(e, args)[0]
        plain = [self.at[v] for v in e.operands()[len(args) :]]
        (y,) = rule.copied((*args, *plain), self.out, {rule.results[0]: self.like(0)})
        if y.type != self.type(t):
            raise ProgramError(
                f"batch: the batch rule of {e.name} gives {show(y.type)}, not "
                f"{show(self.type(t))}; this is a mistake in the rule"
            )
        self.batched.add(y)
        return y

    def of_products(self, e: ir.Prim, args: list[ir.Var]) -> ir.Var:
        """~p + ~q, x * ~p."""
        x, p = args
        if e.name == "add" or x not in self.batched:
            lifted = tuple([self.lift(a) if e.name == "add" else a for a in args])
            return self.bind("s", lifted[-1].type, ir.Prim(lifted, e.primitive), p.linear)
        p = self.lift(p)
        t = self.unfold(p.type)
        assert isinstance(t, Product)
        parts = [self.out.fresh("p", s, p.linear) for s in t.items]
        self.out.bindings.append(ir.Unpack(tuple(parts), p))
        self.batched.update(parts)
        scaled = [self.scaled(e, x, q) for q in parts]
        return self.product(p, scaled, t, p.type)

    def scaled(self, e: ir.Prim, x: ir.Var, q: ir.Var) -> ir.Var:
        """x * ~q, for lanes of both."""
        t = self.unfold(q.type)
        if isinstance(t, Product):
            return self.of_products(e, [x, q])
        rule = self.rule(e, [x, q], (True, True), q.type)
        (y,) = rule.copied((x, q), self.out, {})
        return y

    def rule(self, e: ir.Prim, args: Sequence[ir.Var], flags: tuple[bool, ...], y: Type) -> Text:
        """The batch rule at these types, as text over formals of its own."""
        operands = [*args, *[self.at[v] for v in e.operands()[len(args) :]]]
        formals = [ir.Var(f"x{i}", v.type, v.linear) for i, v in enumerate(operands)]
        k = len(args)

        def written(samples: Samples, *boxed: Any) -> Sequence[Any]:
            params = reboxed(e.params, iter(boxed[k:]), samples.at)
            return [e.primitive.batch(boxed[:k], flags, params)]

        known = tuple([(v.type, v.linear) for v in operands]), flags
        return remembered(self.run.rules, e, known, lambda: text(e, written, formals, [y]))
