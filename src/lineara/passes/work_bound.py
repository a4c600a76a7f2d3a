"""c_J: how much more work f.jvp may do than f, computed from the primitives that f applies.

    W(J f) <= c_J W(f) + R       c_J = max over the primitives p in f of W(J p) / W(p), at least 2

It is at least 2 since a number that is dropped is dropped with its tangent.  R counts what ends
with a tangent and costs the value nothing: the scalars of what is given, made or dropped, each
once.
"""

from fractions import Fraction
from typing import Any

from lineara.facts.primitive import Constant
from lineara.facts.types import ArrayType, Type
from lineara.linear_a import syntax as ir
from lineara.linear_a.check import type_of_leaf
from lineara.linear_a.cost import drop_work, work
from lineara.linear_a.program import Program
from lineara.passes.jvp import rule_text


def c_jvp(program: Program, name: str) -> Fraction | None:
    """c_J of a definition and all that it calls; None if an operation without work has a jvp with.

    It is None, too, where a size is a value.  An operation on arrays without elements may be one
    without work: what its rule does with numbers stays.

    >>> from lineara.linear_a.parse import parse
    >>> c_jvp(parse("def f(x: f64;) -> (f64;) = sin(x)"), "f")
    Fraction(3, 1)
    >>> c_jvp(parse("def f(x: f64, y: f64;) -> (f64;) = x * y"), "f")
    Fraction(4, 1)
    """
    ratios = {
        _signature(program, e): e for f in program.reached(name)
        for e in ir.leaves(program.defs[f].body) if isinstance(e, ir.Prim)
    }  # fmt: skip
    bounds = [ratio(program, e) for e in ratios.values()]
    return None if None in bounds else max([Fraction(2), *[r for r in bounds if r is not None]])


def _signature(program: Program, e: ir.Prim) -> tuple[Any, ...]:
    return e.name, tuple([program.unfold(a.type) for a in e.args]), repr(e.params)


def ratio(program: Program, e: ir.Prim) -> Fraction | None:
    """W(J p) / W(p) where every argument that can move does; 1 for what R pays for."""
    (t,), _ = type_of_leaf(program, e)
    if not all([_is_closed(program, of) for of in (t, *[a.type for a in e.args])]):
        return None  # a size is a value: how much work that is, the run knows
    before = work(program, e, t)
    more = added(program, e, t)
    if not more:
        return Fraction(1)
    return Fraction(before + more, before) if before else None


def _is_closed(program: Program, t: Type) -> bool:
    """Whether every size in an array's type is known."""
    of = program.unfold(t)
    return not isinstance(of, ArrayType) or all([isinstance(n, int) for n in of.shape])


def added(program: Program, e: ir.Prim, t: Type) -> int:
    """W(J p) - W(p)."""
    if not isinstance(program.unfold(t), ArrayType):
        return program.scalars(t)  # a sum of products: the tangents are added
    active = tuple([i for i, a in enumerate(e.args) if not program.is_inert(a.type)])
    if not active or e.name == "index":
        return 0
    if program.is_inert(t) or isinstance(e.primitive, Constant):
        return sum(program.scalars(e.args[i].type) for i in active)
    total = 0
    for b in rule_text(e, t, active).bindings:
        assert isinstance(b, ir.Let)
        assert isinstance(b.rhs, ir.Leaf)
        if isinstance(b.rhs, ir.Drop):
            total += drop_work(program, (), [a.type for a in b.rhs.operands()])
        elif b.vars:
            total += work(program, b.rhs, b.vars[0].type)
    return total
