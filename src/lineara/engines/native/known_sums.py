"""A sum that is known is not added up again where a cotangent scales it.

    let s = sum(x) in .. let p = x * c in .. sum(p)      =>      .. s * c

c is the same along the axes of the sum.  Beside x may stand that it is a factor of a masked
product, and so does s afterwards: a run in which s is not finite is in doubt.  The gradient of
whatever takes the largest number off before np.exp needs no pass over the exponentials for that.
"""

import math
from collections.abc import Callable

import numpy as np

from lineara.engines.native.folds import gone
from lineara.facts.registry import op
from lineara.facts.types import ArrayType, Type
from lineara.linear_a import syntax as ir
from lineara.linear_a.program import Program

Axes = frozenset[int]
Shape = tuple[int, ...]
BOOL, NUMBER = [ArrayType((), np.dtype(t)) for t in (bool, float)]


def known_sums(program: Program, name: str, is_free: Callable[[ir.Leaf], bool]) -> Program:
    """The program in which no definition that `name` reaches adds up what is known."""
    before = [program.defs[f] for f in program.reached(name)]
    after = [KnownSums(d, is_free).definition(d) for d in before]
    return program.with_(*[e for d, e in zip(before, after, strict=True) if e.body is not d.body])


class KnownSums(ir.Mapped):
    """One definition, of whose leaves the rounding of some is free."""

    def __init__(self, d: ir.Def, is_free: Callable[[ir.Leaf], bool]) -> None:
        super().__init__()
        self.is_free = is_free
        self.names = ir.Names([v.name for v in ir.binders(d)])
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
        """A binding; of a sum that is known a product."""
        if isinstance(b, ir.Let) and isinstance(b.rhs, ir.Prim):
            (v,), e = b.vars, b.rhs
            x = e.args[0] if e.name == "sum" else v
            if e.name == "sum" and isinstance(x.type, ArrayType) and shape_of(x) is not None:
                axes = frozenset(gone(e, x.type))
                if self.is_free(e) and self.scaled(v, x, axes):
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
            live, zero = [self.let(t, ir.lit(k, t)) for t, k in ((BOOL, True), (NUMBER, 0.0))]
            factor = ir.Prim((live, s, zero), op("live_factor"))
            factor = self.shaped(self.let(s.type, factor), "reshape", to)
            c = self.shaped(self.shaped(c, "reshape", shape), "broadcast_to", to)
            self.out.append(ir.Let((v,), ir.Prim((factor, c), op("multiply"))))
            return True
        return False

    def shaped(self, v: ir.Var, how: str, shape: Shape) -> ir.Var:
        """A variable in another shape."""
        same = shape_of(v) == shape
        return v if same else self.let(floats(shape), ir.Prim((v,), op(how), {"shape": shape}))

    def let(self, t: Type, e: ir.Leaf) -> ir.Var:
        """Bind a variable."""
        v = ir.Var(self.names("s"), t)
        self.out.append(ir.Let((v,), e))
        return v


def floats(shape: Shape) -> ArrayType:
    """The type of floats in a shape."""
    return ArrayType(shape, np.dtype(float))


def shape_of(v: ir.Var) -> Shape | None:
    """The shape of an array of floats, if it is one of a known size."""
    t = v.type
    if not isinstance(t, ArrayType) or t.dtype != float:
        return None
    return t.shape if all([isinstance(n, int) for n in t.shape]) else None


__all__ = ["known_sums"]
