"""How NumPy lays out what exact code calculates, whose own arrays lie in C order.

Sums depend on it: what is called back is given arrays that lie as the interpreter's do.  How a
result lies follows from how the operands do, and NumPy is asked for it as the code is emitted, by
an evaluation on arrays of such layouts.  Where branches or rounds meet it is not known.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from lineara.engines.interpreter import Machine
from lineara.engines.native import numbers as nm
from lineara.engines.native.emit import Emitter
from lineara.facts.primitive import Constant, Elementwise
from lineara.facts.types import ArrayType
from lineara.linear_a import syntax as ir

MOST = 1 << 20
"""Numbers of which an evaluation is asked for; of more it is not known how they lie."""
FEW = 1 << 12
"""Numbers of which one is asked for although all operands lie in C order."""
UNKNOWN = "branches or rounds of a loop tell how NumPy lays it out"
APART = {"real", "imag"}
"""What is every other number of an array to NumPy, and lies beside each other here."""


def of_interpreter(
    em: Emitter, e: ir.Leaf, variables: Sequence[ir.Var]
) -> Callable[[Sequence[Any]], Sequence[Any]]:
    """What the interpreter makes of a leaf, given the values of its variables."""
    machine, leaf = Machine(em.source), em.leaves_of_source.get(e, e)
    pairs = [*zip(e.operands(), leaf.operands(), strict=True)]  # one here may be two of theirs

    def values_of(values: Sequence[Any]) -> Sequence[Any]:
        mine = dict(zip(variables, values, strict=True))
        env = {theirs: mine[v] for v, theirs in pairs}
        args = [env[a] for a in leaf.args]
        if isinstance(leaf, ir.Part):
            return machine.part(leaf, args, env, False)
        return machine.leaf(leaf, args, env)

    return values_of


def laid(
    em: Emitter, e: ir.Leaf, of: Mapping[ir.Var, tuple[ArrayType, nm.Lay]], t: ArrayType
) -> nm.Lay:
    """How NumPy lays out the result of a leaf, of operands of some types and layouts."""
    lays = [lay for _, lay in of.values()]
    primitive: Any = e.primitive if isinstance(e, ir.Prim) else None
    if not em.exact or not t.shape:
        return ()
    if isinstance(e, ir.Prim) and e.name.startswith("check_"):
        return of[e.args[0]][1]
    size = sum([s.size for s, _ in of.values()]) + t.size
    if None in lays or size > MOST or getattr(primitive, "acts", False):
        return nm.C if size > MOST and not any(lays) and None not in lays else nm.unsure(t)
    moves = getattr(primitive, "view", False) or getattr(e, "name", "") in APART
    plain = isinstance(primitive, Elementwise | Constant) or t.ndim < 2 or size > FEW
    if plain and not moves and not any(lays):
        return nm.C
    key = (e, *lays)
    if key not in em.lays:
        try:
            with np.errstate(all="ignore"):
                values = [_sample(s, lay, not moves) for s, lay in of.values()]
                em.lays[key] = lay_of(of_interpreter(em, e, [*of])(values)[0])
        except Exception:  # as a matrix without an inverse, which it happens to be
            em.lays[key] = nm.unsure(t) if any(lays) else nm.C
    return em.lays[key]


def _sample(t: ArrayType, lay: nm.Lay, fills: bool) -> Any:
    """An array of some layout, or a number; matrices have an inverse, if it `fills`."""
    inexact = t.dtype.kind in "fc"
    if not t.shape:
        return t.dtype.type(inexact)
    x = np.zeros(nm.extent(t, lay) if lay else t.shape, t.dtype)
    if lay:
        x = as_strided(x, t.shape, [k * t.dtype.itemsize for k in lay])
    if fills and inexact:
        x[...] = np.eye(t.shape[-2], t.shape[-1]) if t.ndim > 1 else 1
    return x


def lay_of(y: Any) -> nm.Lay:
    """How an array lies: C order, or how many elements apart the places of each axis are."""
    if np.ndim(y) == 0 or y.flags.c_contiguous:
        return nm.C
    k = y.dtype.itemsize
    apart = tuple([s // k if n > 1 else 0 for n, s in zip(y.shape, y.strides, strict=True)])
    return apart if all([s >= 0 and s % k == 0 for s in y.strides]) else None


def axes_of(t: ArrayType, lay: nm.Lay) -> tuple[int, ...]:
    """Where the axes of a copy of an array are in memory, as NumPy copies one that lies so."""
    steps = np.empty_like(as_strided(np.empty(1, np.int8), t.shape, lay or None)).strides
    order = sorted(range(t.ndim), key=lambda i: -steps[i])
    return tuple([order.index(i) for i in range(t.ndim)])


def in_one_memory(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two factors; a matrix and its transpose in one memory, where NumPy has other sums for them.

    Code has no views, so a copy of the matrix that is turned is taken for the matrix.
    """
    turned = a.swapaxes(-1, -2) if a.ndim > 1 else a
    same = a.ndim > 1 and turned.strides == b.strides and np.array_equal(turned, b)
    return a, turned if same else b


__all__ = ["APART", "UNKNOWN", "axes_of", "in_one_memory", "laid", "lay_of", "of_interpreter"]
