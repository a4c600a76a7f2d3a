"""What a program costs: W, the arithmetic of a leaf, and the size of a text  (spec, sections 3, 4).

    Prim                                 what the primitive says; 1 for an operation on numbers
    ~a + ~b, x * ~a at u                 |u|
    accum                                |y|
    drop of a non-linear x               one for each array in it
    drop of a linear ~a: u               |u|
    everything else                      0

Adding up n numbers costs n - 1, a contraction its multiplications and additions, reading a part
of a non-linear array its length; what only moves costs nothing.
"""

from collections.abc import Sequence
from typing import Any

from lineara.linear_a.program import Program
from lineara.linear_a.syntax import (
    Accum,
    Block,
    Def,
    Drop,
    Leaf,
    Let,
    Prim,
    Unpack,
    Var,
)
from lineara.types import ArrayType, Named, Type


def cells(program: Program, t: Type) -> int:
    """How many arrays and numbers a non-linear value has: what it costs to drop it."""
    return sum(1 for _ in program.leaves(t))


def weight(program: Program, v: Var) -> int:
    """What a variable counts in the balance of work: |u| if linear, else its arrays."""
    return program.scalars(v.type) if v.linear else cells(program, v.type)


def drop_work(program: Program, xs: Sequence[Type], lxs: Sequence[Type]) -> int:
    """What it costs to forget values of those types."""
    return sum(cells(program, t) for t in xs) + sum(program.scalars(t) for t in lxs)


def work(program: Program, e: Leaf, y: Type | None) -> int:
    """W of a leaf that applies no definition; y is the type of its (first) result."""
    if isinstance(e, Accum):
        return program.scalars(e.args[1].type)
    if not isinstance(e, Prim):
        return 0
    if not any(a.linear for a in e.args):
        if e.name == "add" and not isinstance(program.unfold(e.args[0].type), ArrayType):
            return program.scalars(e.args[0].type)
    elif e.name in ("add", "multiply"):
        return program.scalars(e.args[-1].type)
    types = tuple([program.unfold(a.type) for a in e.args])
    found = program.unfold(y) if y is not None else None
    return e.primitive.arithmetic(found, types, e.params)


# --- the size of a program ---------------------------------------------------------------------


def type_size(t: Type) -> int:
    """1 for numbers, arrays and names; 1 + the sum of the parts for products and sums."""
    if isinstance(t, ArrayType | Named):
        return 1
    return 1 + sum(map(type_size, t.items))


def size(e: Any) -> int:
    """The size of a leaf, a block, a definition or a program."""
    match e:
        case Program():
            return sum(1 + type_size(t) for t in e.types.values()) + sum(map(size, e.defs.values()))
        case Def():
            stated = sum(map(type_size, (*e.results, *e.lresults)))
            return 2 + _binders(e.params) + stated + size(e.body)
        case Block():
            return sum(map(size, e.bindings)) + size(e.leaf)
        case Let():
            return 1 + _binders(e.vars) + size(e.rhs)
        case Unpack():
            return 2 + _binders(e.vars)
        case Drop():
            return 1 + size(e.body)
    return 1 + len(e.operands())


def _binders(found: Sequence[Var]) -> int:
    return sum(1 + type_size(v.type) for v in found)
