"""Batching, vmap:  f on many arguments at once, along an axis in front of each batched variable.

    f(xs ; ~as) -> (ss ; rs)      =>      f.b<n>.<axes>(xs' ; ~as') -> (ss' ; rs')

The axes say of each formal where its n lanes lie, or n for one value that all lanes share.  What
depends on no batched formal is computed once and stays as it is; where it meets a batched value it
is broadcast, in so many words.  A primitive's one batch rule is run on boxed variables, once a
signature, and the text is copied, as in J and T.  Where the program has f.jvp, it is batched, too,
and stands beside the batched f: a rule of the user's holds in lanes.  What branches or loops on a
batched value is refused: its lanes go different ways.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from lineara.errors import ProgramError
from lineara.linear_a.check import hashable, type_of_leaf
from lineara.linear_a.collector import uncollected
from lineara.linear_a.control import Call
from lineara.linear_a.dims import Samples
from lineara.linear_a.emit import Boxed, Emitter, Text, text
from lineara.linear_a.program import Program
from lineara.linear_a.syntax import (
    Accum,
    Applied,
    Block,
    Copy,
    Def,
    Drop,
    Dup,
    Leaf,
    Let,
    Names,
    Part,
    Prim,
    Put,
    Read,
    Ret,
    Tup,
    Unpack,
    Var,
    Zero,
    drop,
    vars_in,
)
from lineara.passes.jvp import reboxed
from lineara.passes.names import JVP
from lineara.registry import op
from lineara.types import ArrayType, Family, Named, Product, Stack, Type, show

Axes = Sequence[int | None]
INDEX = ArrayType((), np.dtype(np.int64))


@uncollected
def batch(program: Program, name: str, axes: Axes, size: int) -> Program:
    """The program with `name` over `size` lanes; `axes` has an axis or None for each formal.

    Results that depend on a lane have the axis in front; those that do not have their old type.

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
    if size < 0:
        raise ProgramError(f"batch: {size} lanes; their number is not negative")
    run = _Batch(program, size)
    run.definition(name, tuple(axes))
    return program.with_(*run.done.values(), types=run.types)


def batched_name(name: str, axes: Axes, size: int) -> str:
    """The name of a batched definition: f.b3.n0 has 3 lanes, in axis 0 of its second formal."""
    return f"{name}.b{size}.{''.join(['n' if a is None else str(a) for a in axes])}"


class _Batch:
    """All definitions of one run: those that are done, and the batched types they mention."""

    def __init__(self, program: Program, size: int) -> None:
        self.program = program
        self.size = size
        self.done: dict[str, Def] = {}
        self.flags: dict[str, tuple[bool, ...]] = {}  # which results are batched
        self.types: dict[str, Type | Family] = {}
        self.rules: dict[Any, Text] = {}
        self.entered: list[str] = []

    def definition(self, name: str, axes: Axes) -> str:
        """The name of a batched definition, which is made if it is not there."""
        new = batched_name(name, axes, self.size)
        if new in self.flags:
            return new
        if new in self.entered:
            raise ProgramError(f"batch: {name} calls itself; batch what it is called on one by one")
        if len(self.entered) > 200:
            raise ProgramError("batch: calls lie in each other deeper than 200; inline some before")
        self.entered.append(new)
        one = _Lanes(self, self.program.defs[name], axes)
        self.done[new] = one.made(new)
        self.flags[new] = one.batched_results
        if name + JVP in self.program.defs:
            self.derivative(one.d, axes, new)
        self.entered.pop()
        return new

    def derivative(self, d: Def, axes: Axes, new: str) -> None:
        """The jvp of a batched definition is the batched jvp: tangents have lanes as values do."""
        inert, flags = self.program.is_inert, self.flags[new]
        tangents = [a for v, a in zip(d.params, axes, strict=True) if not inert(v.type)]
        want = [b for t, b in zip(d.results, flags, strict=True) if not inert(t)]
        one = _Lanes(self, self.program.defs[d.name + JVP], (*axes, *tangents))
        self.done[new + JVP] = one.made(new + JVP, (*flags, *want))

    def type(self, t: Type, axis: int = 0) -> Type:
        """The type of n values; of a named type the name is NAME.b<n>."""
        if isinstance(t, ArrayType):
            if not -len(t.shape) - 1 <= axis <= len(t.shape):
                raise ProgramError(f"batch: {show(t)} over lanes has no axis {axis}")
            axis %= len(t.shape) + 1
            return ArrayType((*t.shape[:axis], self.size, *t.shape[axis:]), t.dtype)
        if isinstance(t, Named):
            name = f"{t.name}.b{self.size}{f'.{axis}' if axis else ''}"
            if name not in self.types and name not in self.program.types:
                self.types[name] = Product()
                stated = self.program.types[t.name]
                made = self.type(self.program.stated(t.name), axis)
                self.types[name] = Family(stated.dims, made) if isinstance(stated, Family) else made
            return Named(name, t.dims)
        if isinstance(t, Product | Stack):
            return t._replace(items=tuple([self.type(s, axis) for s in t.items]))
        raise ProgramError(
            f"batch: {show(t)} has a tag, which may differ from lane to lane; batch what is around "
            "it"
        )


class _Lanes:
    """One definition."""

    def __init__(self, run: _Batch, d: Def, axes: Axes) -> None:
        self.run = run
        self.d = d
        self.axes = axes
        self.out = Emitter(Names([p.name for p in d.params]))
        self.at: dict[Var, Var] = {}  # the variable of a batched one has another type
        self.batched: set[Var] = set()  # new variables that have lanes
        self.likes: Sequence[str] = ()  # the names of what is bound

    def made(self, name: str, want: Sequence[bool] | None = None) -> Def:
        """The batched definition; `want` says which results have lanes, if that is known."""
        d = self.d
        params = []
        for p, axis in zip(d.params, self.axes, strict=True):
            if axis is None:
                params.append(p)
                self.at[p] = p
                continue
            v = Var(p.name, self.run.type(p.type, axis), p.linear)
            params.append(v)
            self.at[p] = found = v if axis == 0 else self.front(v, p.type, axis)
            self.batched.add(found)
        found = self.expression(d.body)
        if want is not None:
            found = [self.lift(v) if w else v for v, w in zip(found, want, strict=True)]
            if any(v in self.batched and not w for v, w in zip(found, want, strict=True)):
                raise ProgramError(
                    f"batch: {d.name} gives what differs from lane to lane, where the value that "
                    "it is the derivative of does not; let the value depend on the same formals"
                )
        self.batched_results = tuple([v in self.batched for v in found])
        stated = zip((*d.results, *d.lresults), self.batched_results, strict=True)
        types = [self.run.type(t) if b else t for t, b in stated]
        k = len(d.results)
        body = Block(tuple(self.out.bindings), Ret(tuple(found)))
        return Def(name, tuple(params), tuple(types[:k]), tuple(types[k:]), body)

    def like(self, i: int) -> str:
        """A name for result i of what is bound."""
        return self.likes[i] if i < len(self.likes) else "v"

    # --- variables ---------------------------------------------------------------------------

    def bind(self, like: str, t: Type, e: Leaf, linear: bool, batched: bool) -> Var:
        """A new variable for a leaf with one result."""
        v = self.out.bind(like, t, e, linear)
        if batched:
            self.batched.add(v)
        return v

    def parts(self, v: Var, t: Product, batched: bool) -> list[Var]:
        """The components of a product."""
        types = [self.run.type(s) if batched else s for s in t.items]
        made = [self.out.fresh(self.like(i), s, v.linear) for i, s in enumerate(types)]
        self.out.bindings.append(Unpack(tuple(made), v))
        if batched:
            self.batched.update(made)
        return made

    def product(self, v: Var, parts: Sequence[Var], t: Product, whole: Type) -> Var:
        """A batched product like v of batched parts."""
        return self.bind(v.name, whole, Tup(tuple(parts), v.linear, t.fields), v.linear, True)

    def lift(self, v: Var) -> Var:
        """A variable with lanes; one without is the same in all of them."""
        if v in self.batched:
            return v
        t = self.unfold(v.type)
        whole = self.run.type(v.type)
        if isinstance(t, Product):
            return self.product(v, [self.lift(p) for p in self.parts(v, t, False)], t, whole)
        assert isinstance(whole, ArrayType), show(whole)
        made = Prim((v,), op("broadcast_to"), {"shape": whole.shape})
        return self.bind(v.name, whole, made, v.linear, True)

    def front(self, v: Var, t: Type, axis: int) -> Var:
        """The same with its lanes in front; t is the type of one lane."""
        whole, t = self.run.type(t), self.unfold(t)
        if isinstance(t, Product):
            parts = [self.out.fresh("p", self.run.type(s, axis), v.linear) for s in t.items]
            self.out.bindings.append(Unpack(tuple(parts), v))
            moved = [self.front(p, s, axis) for p, s in zip(parts, t.items, strict=True)]
            return self.product(v, moved, t, whole)
        assert isinstance(t, ArrayType), show(t)
        axis %= len(t.shape) + 1
        order = (axis, *[i for i in range(len(t.shape) + 1) if i != axis])
        return self.bind(v.name, whole, Prim((v,), op("permute_dims"), {"axes": order}),
                         v.linear, True)  # fmt: skip

    def unfold(self, t: Type) -> Type:
        """The type that a name stands for."""
        known = self.run.program
        return (known.with_(types=self.run.types) if self.run.types else known).unfold(t)

    # --- expressions -------------------------------------------------------------------------

    def expression(self, e: Leaf | Block) -> list[Var]:
        """The results of an expression, whose bindings are written, flat."""
        if isinstance(e, Leaf):
            return self.leaf(e)
        for b in e.bindings:
            self.likes = [v.name for v in b.vars]
            found = self.unpack(b) if isinstance(b, Unpack) else self.expression(b.rhs)
            self.at.update(zip(b.vars, found, strict=True))
        self.likes = []
        return self.leaf(e.leaf)

    def unpack(self, b: Unpack) -> list[Var]:
        """A batched product has batched parts."""
        arg = self.at[b.arg]
        t = self.unfold(b.arg.type)
        assert isinstance(t, Product)
        return self.parts(arg, t, arg in self.batched)

    def leaf(self, e: Leaf) -> list[Var]:
        """The results of a leaf."""
        if isinstance(e, Drop):
            for v in self.expression(e.body):
                self.out.bindings.append(Let((), drop(v)))
            return []
        if isinstance(e, Ret | Copy):
            return [self.at[a] for a in e.args]
        args = [self.at[a] for a in e.args]
        inside = [v for v in e.operands()[len(e.args) :] if self.at[v] in self.batched]
        if inside:
            self.refuse(e, f"reads {inside[0]!r}, which differs from lane to lane, as a position")
        if not any([a in self.batched for a in args]):
            return self.plain(e)
        match e:
            case Tup(linear=linear, fields=fields):
                parts = [self.lift(a) for a in args]
                t = Product(tuple([p.type for p in parts]), fields)
                return [self.bind(self.like(0), t, Tup(tuple(parts), linear, fields), linear, True)]
            case Dup():
                made = [self.out.fresh(args[0].name, args[0].type, True) for _ in range(2)]
                self.out.bindings.append(Let(tuple(made), Dup(tuple(args))))
                self.batched.update(made)
                return made
            case Prim():
                return [self.prim(e, args)]
            case Part():
                return self.part(e, args)
            case Call():
                return self.call(e, args)
        self.refuse(e, "depends on what differs from lane to lane")
        raise AssertionError

    def refuse(self, e: Leaf, why: str) -> None:
        """What cannot be batched."""
        what = e.head() if isinstance(e, Applied) else type(e).__name__.lower()
        what = e.name if isinstance(e, Prim) else what
        raise ProgramError(
            f"batch: in {self.d.name}, {what} {why}; batch what is around it, or run it lane by "
            "lane"
        )

    def plain(self, e: Leaf) -> list[Var]:
        """What all lanes share stays as it is."""
        xs, us = type_of_leaf(self.run.program, e)
        made = [self.out.fresh(self.like(i), t, i >= len(xs)) for i, t in enumerate((*xs, *us))]
        e = e if isinstance(e, Zero) else e.renamed(self.at.__getitem__)
        self.out.bindings.append(Let(tuple(made), e))
        return made

    def call(self, e: Call, args: Sequence[Var]) -> list[Var]:
        """The callee over the same lanes."""
        axes = [0 if a in self.batched else None for a in args]
        name = self.run.definition(e.functions[0], axes)
        d = self.run.done[name]
        types = (*d.results, *d.lresults)
        k = len(d.results)
        made = [self.out.fresh(self.like(i), t, i >= k) for i, t in enumerate(types)]
        self.out.bindings.append(Let(tuple(made), Call(tuple(args), (name,))))
        self.batched.update([v for v, b in zip(made, self.run.flags[name], strict=True) if b])
        return made

    def part(self, e: Part, args: list[Var]) -> list[Var]:
        """read, accum and put of the same part in every lane."""
        lifted = [self.lift(a) for a in args]
        many = [i for i in e.at if not isinstance(i, slice | int) and i not in (None, Ellipsis)]
        if len(many) > 1 or any([isinstance(i, Var) and i.type != INDEX for i in vars_in(e.at)]):
            self.refuse(e, "has several arrays of positions")
        at = (slice(None), *[self.at[i] if isinstance(i, Var) else i for i in e.at])
        x = lifted[0]
        if isinstance(e, Read):
            _, (t, _) = type_of_leaf(self.run.program, e)
            part = self.out.fresh("y", self.run.type(t), True)
            rest = self.out.fresh(x.name, x.type, True)
            self.out.bindings.append(Let((part, rest), Read((x,), at)))
            self.batched.update([part, rest])
            return [part, rest]
        assert isinstance(e, Accum | Put)
        return [self.bind(x.name, x.type, type(e)(tuple(lifted), at), True, True)]

    # --- primitives --------------------------------------------------------------------------

    def prim(self, e: Prim, args: list[Var]) -> Var:
        """The batch rule of a primitive; sums and multiples of products, part by part."""
        linear = any([a.linear for a in args])
        if e.name in ("add", "multiply") and isinstance(self.unfold(args[-1].type), Product):
            return self.of_products(e, args)
        flags = tuple([a in self.batched for a in args])
        (t,) = (*type_of_leaf(self.run.program, e)[1 if linear else 0],)
        rule = self.rule(e, args, flags, self.run.type(t))
        plain = [self.at[v] for v in e.operands()[len(args) :]]
        (found,) = rule.copied((*args, *plain), self.out, {rule.results[0]: self.like(0)})
        if found.type != self.run.type(t):
            raise ProgramError(
                f"batch: the batch rule of {e.name} gives {show(found.type)}, not "
                f"{show(self.run.type(t))}; this is a mistake in the rule"
            )
        self.batched.add(found)
        return found

    def of_products(self, e: Prim, args: list[Var]) -> Var:
        """~p + ~q, x * ~p."""
        x, p = args
        if e.name == "add" or x not in self.batched:
            lifted = tuple([self.lift(a) if a.linear or e.name == "add" else a for a in args])
            return self.bind("s", lifted[-1].type, Prim(lifted, e.primitive), p.linear, True)
        p = self.lift(p)
        t = self.unfold(p.type)
        assert isinstance(t, Product)
        parts = [self.out.fresh("p", s, p.linear) for s in t.items]
        self.out.bindings.append(Unpack(tuple(parts), p))
        self.batched.update(parts)
        scaled = [self.scaled(e, x, q) for q in parts]
        return self.product(p, scaled, t, p.type)

    def scaled(self, e: Prim, x: Var, q: Var) -> Var:
        """x * ~q, for lanes of both."""
        t = self.unfold(q.type)
        if isinstance(t, Product):
            return self.of_products(e, [x, q]) if self.run.program.scalars(q.type) else q
        lane = ArrayType(t.shape[1:], t.dtype)  # type: ignore[union-attr]
        one = Prim((Var("x", ArrayType((), x.type.dtype)), Var("q", lane, q.linear)),  # type: ignore[union-attr]
                   e.primitive)  # fmt: skip
        rule = self.rule(one, [x, q], (True, True), q.type)
        (found,) = rule.copied((x, q), self.out, {})
        self.batched.add(found)
        return found

    def rule(self, e: Prim, args: Sequence[Var], flags: tuple[bool, ...], y: Type) -> Text:
        """The batch rule at these types, as text over formals of its own."""
        operands = [*args, *[self.at[v] for v in e.operands()[len(args) :]]]
        try:
            types = tuple([(v.type, v.linear) for v in operands])
            key: Any = (e.primitive, types, flags, hashable(e.params))
            if key in self.run.rules:
                return self.run.rules[key]
        except TypeError:
            key = None
        formals = [Var(f"x{i}", v.type, v.linear) for i, v in enumerate(operands)]
        k = len(args)

        def written(samples: Samples, *boxed: Any) -> Sequence[Any]:
            params = reboxed(e.params, iter(boxed[k:]), samples.at)
            found = e.primitive.batch(boxed[:k], flags, params)
            return [found if isinstance(found, Boxed) else None]

        made = text(e, written, formals, [y])
        if key is not None:
            self.run.rules[key] = made
        return made
