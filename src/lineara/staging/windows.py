"""Slices with staged ends: `x[i:i + 3]`, of as many elements wherever it begins.

How many these are is read from how the ends were calculated: both are sums of the same terms, and
differ by a number.  Python gives fewer at the end of an axis, and counts a negative end from there:
a window that leaves the axis is refused as the program runs.
"""

from typing import Any

import numpy as np

from lineara.errors import StagingError
from lineara.facts.hints import Leaf
from lineara.facts.primitive import op
from lineara.facts.types import ArrayType
from lineara.linear_a import syntax as ir
from lineara.ops.value_checks import checked
from lineara.tape.node import Traced

Sum = dict[Any, int]  # how often each term counts; under None what is known


def is_window(part: Leaf) -> bool:
    """Whether a part of an index is a slice with a staged end."""
    return isinstance(part, slice) and any(
        [isinstance(v, Traced) for v in (part.start, part.stop, part.step)]
    )


def positions(level: Any, part: slice, n: int) -> Any:
    """The places that a slice of an axis with n elements takes, as a staged array."""
    start, stop, step = part.start, part.stop, 1 if part.step is None else part.step
    for end in (start, stop, step):
        if isinstance(end, Traced) and (end.shape or end.dtype.kind in "fc"):
            raise TypeError(
                "only integer scalar arrays can be converted to a scalar index"
                if end.shape
                else "slice indices must be integers or None or have an __index__ method"
            )
    width = None
    if isinstance(start, Traced) and isinstance(stop, Traced) and type(step) is int and step > 0:
        width = _difference(level, stop, start)
    if width is None:
        raise StagingError(
            "a slice whose ends are staged has as many elements as values say, and an array of a "
            "program keeps its shape; give it a width that is known, x[i:i + 3], or take all of x "
            "and leave out what is not meant, np.where(np.arange(len(x)) < i, x, 0)"
        )
    count = max(0, -(-width // step))
    last = op("add")(start, step * max(0, count - 1))
    outside = op("logical_or")(op("less")(start, 0), op("greater_equal")(last, n))
    said = (
        f"a slice of {count} elements at a staged place leaves an axis of {n}, where Python gives "
        "fewer or counts from the end; keep it within"
    )
    first = checked(start, outside, StagingError, said)
    whole = first if first.dtype == np.int64 else op("astype")(first, dtype=np.dtype(np.int64))
    return op("add")(whole, step * np.arange(count))


def _difference(level: Any, a: Any, b: Any) -> int | None:
    """a - b, where it is known."""
    left, right = (_sum(level, level.as_box(v).var) for v in (a, b))
    terms = {k: left.get(k, 0) - right.get(k, 0) for k in (*left, *right)}
    known = terms.pop(None, 0)
    return known if not any(terms.values()) else None


def _sum(level: Any, v: ir.Var) -> Sum:
    """A whole number as a sum of terms."""
    known = _leaf(level, v)
    if isinstance(known, ir.Lit):
        return {None: int(known.value)}
    if not isinstance(known, ir.Prim) or not _is_whole(v):
        return {_key(level, v): 1}
    name, args = known.name.removeprefix("python_"), known.args
    if name.startswith("check_") or (name == "astype" and _is_whole(args[0])):
        return _sum(level, args[0])
    if name in ("add", "subtract") and all(map(_is_whole, args)):
        left, right = (_sum(level, a) for a in args)
        sign = 1 if name == "add" else -1
        return {k: left.get(k, 0) + sign * right.get(k, 0) for k in {**left, **right}}
    if name == "multiply" and all(map(_is_whole, args)):
        left, right = (_sum(level, a) for a in args)
        for one, factor in ((left, right), (right, left)):
            if factor.keys() == {None}:
                return {k: c * factor[None] for k, c in one.items()}
    return {_key(level, v): 1}


def _is_whole(v: ir.Var) -> bool:
    return isinstance(v.type, ArrayType) and not v.type.shape and v.type.dtype.kind in "iu"


def _leaf(level: Any, v: ir.Var) -> Any:
    """What a variable is bound to, in a definition or one around it; itself for a formal."""
    while level is not None:
        for b in reversed(level.out.bindings):
            if isinstance(b, ir.Let) and v in b.vars:
                return b.rhs if len(b.vars) == 1 else v
        around = [a for formal, a in level.around.values() if formal is v]
        if not around or around[0].level.depth > level.depth:
            return v
        level, v = level.holder, around[0].v.var
    return v


def _key(level: Any, v: ir.Var) -> Any:
    """What two variables have in common that are calculated alike."""
    known = _leaf(level, v)
    if isinstance(known, ir.Lit) and not np.ndim(known.value):
        return repr(known.value), v.type
    if not isinstance(known, ir.Prim) or [*ir.vars_in(known.params)]:
        return known if isinstance(known, ir.Var) else v
    params = sorted([(k, repr(p)) for k, p in known.params.items() if k != "line"])
    return known.name, tuple(params), tuple([_key(level, a) for a in known.args])


__all__ = ["is_window", "positions"]
