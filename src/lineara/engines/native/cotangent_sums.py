"""Sums of cotangents with less work: of what is added up already, and those before a product.

    let s = sum(x) in .. let p = x * c in .. sum(p)      =>      .. s * c
    let y = einsum(x, c) in let z = k * y in sum(z)      =>      k * einsum(sum(x), c)

c is the same along the axes of the sum, and nothing else reads y and z.  A factor of a masked
product is marked as one; so are s in the first rule, and sum(x), c and k in the second: a run in
which one of them is not finite is in doubt.  By the first rule the gradient of whatever takes the
largest number off before np.exp needs no pass over the exponentials for that; by the second that of
what is shifted before a product of matrices needs no product of their size.
"""

import math
from collections import Counter
from collections.abc import Callable

import numpy as np

from lineara.engines.native.demand import Demand
from lineara.engines.native.folds import gone
from lineara.facts.registry import op
from lineara.facts.types import ArrayType, Type
from lineara.linear_a import syntax as ir
from lineara.linear_a.program import Program

Axes = frozenset[int]
Shape = tuple[int, ...]
BOOL, NUMBER = [ArrayType((), np.dtype(t)) for t in (bool, float)]


def cotangent_sums(program: Program, name: str, is_free: Callable[[ir.Leaf], bool]) -> Program:
    """The program in which both rules are applied to all definitions that `name` reaches."""
    before, demand = [program.defs[f] for f in program.reached(name)], Demand(program, True)
    after = [CotangentSums(d, is_free, demand).definition(d) for d in before]
    return program.with_(*[e for d, e in zip(before, after, strict=True) if e.body is not d.body])


class CotangentSums(ir.Mapped):
    """One definition, of whose leaves the rounding of some is free."""

    def __init__(self, d: ir.Def, is_free: Callable[[ir.Leaf], bool], demand: Demand) -> None:
        super().__init__()
        self.is_free = is_free
        self.names = ir.Names([v.name for v in ir.binders(d)])
        _, runs = demand.block(d.body, (True,) * len(d.results))
        read = [v for i in runs for v in ir.reads(d.body.bindings[i])]
        self.reads = Counter([*read, *d.body.leaf.operands()])
        self.made: dict[ir.Var, ir.Prim] = {}
        self.sums: dict[tuple[ir.Var, Axes], ir.Var] = {}

    def block(self, block: ir.Block) -> ir.Block:
        """A block; what is known of its variables is not known outside."""
        before = self.made, self.sums
        self.made, self.sums = dict(self.made), dict(self.sums)
        block = super().block(block)
        self.made, self.sums = before
        return block

    def leaf(self, e: ir.Leaf) -> ir.Leaf:
        """A leaf, itself: nothing gets another name, and what is known of leaves goes by them."""
        return e

    def binding(self, b: ir.Binding) -> None:
        """A binding; in place of a sum for which a rule holds, what the rule says."""
        if isinstance(b, ir.Let) and isinstance(b.rhs, ir.Prim):
            (v,), e = b.vars, b.rhs
            x = e.args[0] if e.name == "sum" else v
            if e.name == "sum" and isinstance(x.type, ArrayType) and shape_of(x) is not None:
                axes = frozenset(gone(e, x.type))
                if self.is_free(e) and (self.scaled(v, x, axes) or self.sum_first(v, x, axes)):
                    return
                self.sums.setdefault((self.factor(x), axes), v)
            self.made[v] = e
        super().binding(b)

    def factor(self, v: ir.Var) -> ir.Var:
        """What a factor is where its lanes live."""
        e = self.made.get(v)
        is_factor = e is not None and e.name == "live_factor" and e.args[1].type == v.type
        return e.args[1] if e is not None and is_factor else v

    def scaled(self, v: ir.Var, p: ir.Var, axes: Axes) -> bool:
        """Whether a sum of p is that of a product with a known one; it is bound then."""
        e, whole, to = self.made.get(p), shape_of(p), shape_of(v)
        if e is None or e.name != "multiply" or whole is None or to is None:
            return False
        for x, c in (e.args, e.args[::-1]):
            s = self.sums.get((self.factor(x), axes))
            spread = self.made.get(c)
            if spread is not None and spread.name == "broadcast_to":
                (c,) = spread.args
            shape = shape_of(c)
            if s is None or x.type != p.type or shape is None:
                continue
            shape = (1,) * (len(whole) - len(shape)) + shape
            if math.prod([shape[i] for i in axes]) != 1:
                continue
            if len(to) < len(shape):
                shape = tuple([n for i, n in enumerate(shape) if i not in axes])
            factor = self.shaped(self.finite(s), "reshape", to)
            c = self.shaped(self.shaped(c, "reshape", shape), "broadcast_to", to)
            self.out.append(ir.Let((v,), ir.Prim((factor, c), op("multiply"))))
            return True
        return False

    def sum_first(self, v: ir.Var, y: ir.Var, axes: Axes) -> bool:
        """Whether a sum of y is a product with the sum of one operand of y; it is bound then."""
        scales: list[ir.Var] = []
        while (e := self.made.get(y)) is not None and self.reads[y] == 1:
            *ks, z = sorted(e.args, key=lambda x: len(shape_of(x) or ()))
            numbers = e.name in ("multiply", "reshape") and all([shape_of(k) == () for k in ks])
            if not numbers or z.type != y.type:
                break
            y, scales = z, [*scales, *ks]
        letters, shape = e and letters_of(e), shape_of(y)
        if e is None or not letters or shape is None or self.reads[y] != 1:
            return False
        *ins, out = letters
        over = {out[i] for i in axes}
        x, of, c, other = e.args[0], ins[0], e.args[1], ins[1]
        if over & {*other}:
            x, of, c, other = c, other, x, of
        if not over or over & {*other} or len({*of}) < len(of):
            return False
        params = {"axis": tuple([i for i, a in enumerate(of) if a in over]), "keepdims": False}
        kept = {a: n for a, n in zip(of, shape_of(x) or (), strict=True) if a not in over}
        total = self.let(floats(tuple(kept.values())), ir.Prim((x,), op("sum"), params))
        left = {a: n for a, n in zip(out, shape, strict=True) if a not in over}
        how = {"subscripts": f"{''.join(kept)},{other}->{''.join(left)}"}
        product = ir.Prim((self.finite(total), self.finite(c)), op("einsum"), how)
        z = self.let(floats(tuple(left.values())), product)
        for k in scales:
            z = self.let(z.type, ir.Prim((self.finite(k), z), op("multiply")))
        self.out.append(ir.Let((v,), ir.Prim((z,), op("reshape"), {"shape": shape_of(v)})))
        return True

    def finite(self, v: ir.Var) -> ir.Var:
        """A variable that holds finite numbers, or the run is in doubt."""
        live, zero = [self.let(t, ir.lit(k, t)) for t, k in ((BOOL, True), (NUMBER, 0.0))]
        return self.let(v.type, ir.Prim((live, v, zero), op("live_factor")))

    def shaped(self, v: ir.Var, how: str, shape: Shape) -> ir.Var:
        """A variable in another shape."""
        same = shape_of(v) == shape
        return v if same else self.let(floats(shape), ir.Prim((v,), op(how), {"shape": shape}))

    def let(self, t: Type, e: ir.Leaf) -> ir.Var:
        """Bind a variable."""
        v = ir.Var(self.names("s"), t)
        self.out.append(ir.Let((v,), e))
        return v


def letters_of(e: ir.Prim) -> tuple[str, str, str] | None:
    """The axes of two arrays of floats and of their product as letters, if e is one."""
    shapes = [shape_of(x) for x in e.args]
    if len(shapes) != 2 or None in shapes:
        return None
    if e.name == "matmul" and [len(s or ()) for s in shapes] == [2, 2]:
        return "ij", "jk", "ik"
    if e.name != "einsum":
        return None
    ins, _, out = e.params["subscripts"].partition("->")
    first, _, second = ins.partition(",")
    return first, second, out


def floats(shape: Shape) -> ArrayType:
    """The type of floats in a shape."""
    return ArrayType(shape, np.dtype(float))


def shape_of(v: ir.Var) -> Shape | None:
    """The shape of an array of floats, if it is one of a known size."""
    t = v.type
    if not isinstance(t, ArrayType) or t.dtype != float:
        return None
    return t.shape if all([isinstance(n, int) for n in t.shape]) else None


__all__ = ["cotangent_sums"]
