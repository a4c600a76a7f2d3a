"""np.isclose, np.allclose and np.array_equal: each pair of elements, and whether all are alike."""

from collections.abc import Sequence

import numpy as np

from lineara.engines.native import folds
from lineara.engines.native import numbers as nm
from lineara.engines.native.emit import Emitter
from lineara.engines.native.scalars import RULES, converted
from lineara.engines.native.strided import Plain, at_offset, steps_in, strides_of, type_of
from lineara.facts.types import ArrayType
from lineara.linear_a import syntax as ir


def alike(em: Emitter, e: ir.Prim, x: nm.Num, y: nm.Num) -> nm.Num:
    """Whether two numbers are: |x - y| <= atol + rtol |y| where y is finite, or equal."""

    def of(name: str, *args: nm.Num, kind: str = "bool") -> nm.Num:
        z = RULES[name](em, kind, args)
        assert z is not None, "there is code for these kinds"
        return z

    def of_float(name: str, *args: nm.Num) -> nm.Num:
        return of(name, *args, kind="f64")

    same = of("equal", x, y)
    floats = [z for a in (x, y) if (z := converted(em, a, "f64"))]
    if e.name != "array_equal":
        relative, absolute = [
            nm.constant("f64", float(e.params.get(name, default)))
            for name, default in (("rtol", 1e-05), ("atol", 1e-08))
        ]
        x, y = floats
        bound = of_float("add", absolute, of_float("multiply", relative, of_float("abs", y)))
        near = of("less_equal", of_float("abs", of_float("subtract", x, y)), bound)
        same = of("logical_or", of("logical_and", near, of("isfinite", y)), same)
    if e.params.get("equal_nan"):
        same = of("logical_or", same, of("logical_and", *[of("isnan", z) for z in floats]))
    return same


def close(em: Emitter, e: ir.Prim, args: Sequence[Plain], t: ArrayType) -> Plain | None:
    """Which elements are alike, or whether all are; None of more than constant tolerances."""
    kinds = {nm.kind_of(type_of(x)) for x in args}
    constants = all([isinstance(v, bool | int | float) for v in e.params.values()])
    if len(args) != 2 or not kinds <= {"f64", "i64"} or not constants:
        return None
    shapes = [type_of(x).shape for x in args]
    if e.name == "array_equal" and shapes[0] != shapes[1]:
        return nm.constant("bool", False)
    shape = np.broadcast_shapes(*shapes)
    if not shape:
        return alike(em, e, *[at_offset(em, x, nm.constant("i64", 0)) for x in args])
    with em.kept(args):
        y = em.array(ArrayType(shape, np.dtype(bool)))
    with em.nest(shape, *[steps_in(x, len(shape)) for x in args], strides_of(shape)) as (*at, to):
        em.store(alike(em, e, *[at_offset(em, x, i) for x, i in zip(args, at, strict=True)]), y, to)
    if e.name == "isclose":
        return y
    with em.kept([y]):
        total = folds.how_many(em, y)
    assert isinstance(total, nm.Num), "it is one number"
    return RULES["equal"](em, "bool", [total, nm.constant("i64", y.type.size)])


CLOSE = ("isclose", "allclose", "array_equal")

__all__ = ["CLOSE", "close"]
