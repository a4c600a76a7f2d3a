"""How far machine code may be from the interpreter: a bound that runs with the program.

Sums, products of matrices and factorisations have an order of their own in machine code, and each
of them is exact for operands that are a few units in the last place away (the backward error
[Higham 2002, chapters 3, 9 and 10]).  So the interpreter runs the program again with the operands
of just these primitives disturbed by so much, and the results may differ by what that changes.
What calculates with numbers that are cotangents may be contracted and added in any order, so it is
disturbed, too.
Where it changes nothing, all bits but the sign of zero have to be the same.
"""

from collections.abc import Collection
from typing import Any

import numpy as np

from lineara.engines import Ask, Numbers, run
from lineara.engines.native.cotangents import of_cotangents
from lineara.facts.primitive import Constant, Elementwise, Structural
from lineara.linear_a import syntax as ir
from lineara.linear_a.program import Program

RUNS, TIMES, UNITS = 6, 4, 8
"""How often a program runs again, how far it may be away, and by how much operands are disturbed:
by so much that a sum whose terms have both signs shows it."""
SAME = ("where", "keep", "live_factor")  # they choose and calculate nothing


class Disturbed(Numbers):
    """NumPy's numbers, where what may be rounded in another order has disturbed operands."""

    def __init__(self, seed: int, free: Collection[ir.Leaf] = ()) -> None:
        self.rng = np.random.default_rng(seed)
        self.free = free  # leaves whose rounding is free, elementwise ones of numbers and accums

    def evaluated(self, e: ir.Prim, args: list[Any], params: dict[str, Any]) -> Any:
        """The value of operands that are some units in the last place away."""
        fixed = isinstance(e.primitive, Elementwise | Constant | Structural)
        summed = not (fixed or e.name in SAME or e.primitive.acts)
        of_numbers = not any([np.ndim(a) for a in args]) and isinstance(e.primitive, Elementwise)
        if summed or (of_numbers and e in self.free):
            args = [self.disturbed(a) for a in args]
        return super().evaluated(e, args, params)

    def write(self, e: ir.Part, x: Any, at: Any, y: Any) -> Any:
        """The array after a part of it was added to, or overwritten."""
        x = super().write(e, x, at, y)
        if e in self.free and isinstance(e, ir.Accum) and not np.ndim(y):
            x[at] = self.disturbed(x[at])
        return x

    def disturbed(self, a: Any) -> Any:
        """A value, each number of it some units in the last place away, to either side."""
        dtype = getattr(a, "dtype", np.dtype(object))
        if dtype.kind not in "fc":
            return a
        sides = self.rng.choice([-1.0, 1.0], np.shape(a))
        with np.errstate(all="ignore"):
            unit = np.spacing(np.abs(a)) if dtype.kind == "f" else np.finfo(dtype).eps * a
            return np.where(np.isfinite(a) & (a != 0), a + UNITS * sides * unit, a).astype(dtype)[
                ()
            ]


def leaves(value: Any) -> list[np.ndarray]:
    """The arrays and numbers in a result."""
    if isinstance(value, tuple | list):
        return [leaf for v in value for leaf in leaves(v)]
    return [np.asarray(value)]


def bounds(program: Program, name: str, values: Any, expected: Any) -> list[np.ndarray]:
    """For each array of the results how far each number may be away."""
    base = leaves(expected)
    widest = [np.zeros(b.shape) for b in base]
    free = of_cotangents(program.whole, name)
    for seed in range(RUNS):
        ask = Ask(values=Disturbed(seed, free))
        with np.errstate(all="ignore"):
            other = leaves(run(program, name, *values, engine="interpreter", ask=ask).results)
            for i, (a, b) in enumerate(zip(other, base, strict=True)):
                if a.dtype.kind in "fc":
                    gap = np.abs(a - b)
                    widest[i] = np.maximum(widest[i], np.where(np.isfinite(gap), gap, 0.0))
    return [TIMES * w for w in widest]


def excess(program: Program, name: str, values: Any, expected: Any, ours: Any) -> str:
    """What is further away than it may be, in words; nothing if all is well."""
    pairs = [*zip(leaves(ours), leaves(expected), strict=True)]
    if all([_same(a, b).all() for a, b in pairs]):
        return ""  # most often: nothing has to run again
    for (a, b), bound in zip(pairs, bounds(program, name, values, expected), strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype), (a, b)
        with np.errstate(all="ignore"):
            fine = _same(a, b) | (np.abs(a - b) <= bound)
        if not fine.all():
            return f"{a[~fine]} is not {b[~fine]} within {bound[~fine]}"
    return ""


def _same(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Where numbers are equal; any NaN is as good as another one."""
    return (a == b) | ((a != a) & (b != b))
