"""The canonical text of programs: two spaces a level, one `let` a line, short single binders.

`parse(show(P)) == P`, and a text is the identity of a program.
"""

from collections.abc import Mapping, Sequence
from types import EllipsisType
from typing import Any

import numpy as np

from lineara.facts.hints import Tree, Value
from lineara.facts.types import ArrayType, Family, Type, short_dtype, show_definition
from lineara.facts.types import show as show_type
from lineara.linear_a import syntax as ir

INFIX = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/"}


def show_program(types: Mapping[str, Type | Family], defs: Mapping[str, ir.Def]) -> str:
    """The text of a program, ending in a newline: types first, in order."""
    lines = [f"{show_definition(name, t)}\n" for name, t in types.items()]
    return "\n".join(["".join(lines)] * bool(lines) + [show_def(d) for d in defs.values()])


def show_def(d: ir.Def) -> str:
    """The text of a definition."""
    formals = binders(d.xs, d.lxs)
    results = two_zones(map(show_type, d.results), map(show_type, d.lresults))
    sets = " | ".join([ir.linear_in(d, places) for places in d.linear])
    linear = f" linear in {sets}" * bool(sets)
    return f"def {d.name}{formals} -> {results}{linear} =\n{show_block(d.body, 1)}\n"


def two_zones(xs: Any, lxs: Any) -> str:
    """(x, y; ~a, ~b), with a semicolon always."""
    left, right = ", ".join(xs), ", ".join(lxs)
    return f"({left};{' ' * bool(right)}{right})"


def binders(xs: Sequence[ir.Var], lxs: Sequence[ir.Var]) -> str:
    """(x: f64; ~a: f64)."""
    return two_zones(map(binder, xs), map(binder, lxs))


def binder(v: ir.Var) -> str:
    """x: f64, or ~a: f64."""
    return f"{v!r}: {show_type(v.type)}"


def show_block(block: ir.Block, depth: int) -> str:
    """The lines of a block, indented."""
    lines = [f"let {show_binding(b, depth)} in" for b in block.bindings]
    pad = "  " * depth
    return "\n".join(pad + line for line in [*lines, show_leaf(block.leaf)])


def show_binding(b: ir.Binding, depth: int = 1) -> str:
    """`x: f64 = sin(y)`: a binding without its `let`."""
    if isinstance(b, ir.Unpack):
        sigil = "~" * b.arg.linear
        return f"{sigil}<{', '.join(map(binder, b.vars))}> = {b.arg!r}"
    if len(b.vars) == 1:
        left = binder(b.vars[0])
    else:
        left = binders(*([v for v in b.vars if v.linear is linear] for linear in (False, True)))
    return f"{left} = {show_rhs(b.rhs, depth)}"


def show_rhs(e: ir.Leaf | ir.Block, depth: int) -> str:
    """A leaf, or a block in braces."""
    if isinstance(e, ir.Leaf):
        return show_leaf(e, depth)
    return f"{{\n{show_block(e, depth + 1)}\n{'  ' * depth}}}"


def show_leaf(e: ir.Leaf, depth: int = 1) -> str:
    """The text of a leaf."""
    names = [repr(a) for a in e.args]
    match e:
        case ir.Ret():
            return two_zones(map(repr, e.xs), map(repr, e.lxs))
        case ir.Copy():
            return names[0]
        case ir.Dup():
            return f"dup({', '.join(names)})"
        case ir.Lit(value=value, type=t):
            return show_literal(value, t)
        case ir.Zero(type=t, linear=linear):
            return f"zero{'s' * (not linear)}[{show_type(t)}]"
        case ir.Tup(fields=None, linear=linear):
            return f"{'~' * linear}<{', '.join(names)}>"
        case ir.Tup(fields=fields, linear=linear):
            pairs = zip(fields or (), names, strict=True)
            return f"{'~' * linear}{{{', '.join(f'{f}: {n}' for f, n in pairs)}}}"
        case ir.Drop(body=body):
            return f"drop({show_rhs(body, depth)})"
        case ir.Part(at=at):
            return (
                f"{type(e).__name__.lower()}[{', '.join(map(show_value, at))}]({', '.join(names)})"
            )
        case ir.Inj(tag=tag, type=t):
            return f"inj[{tag}, {show_type(t)}]({names[0]})"
        case ir.Proj(tag=tag):
            return f"proj[{tag}]({names[0]})"
        case ir.Prim(primitive=p, params=params):
            if p.name in INFIX and not params and len(names) == 2:
                return f"{names[0]} {INFIX[p.name]} {names[1]}"
            shown = {k: v for k, v in params.items() if k != "line"}  # it has no meaning
            given = ", ".join(f"{k}={show_value(v)}" for k, v in shown.items())
            return f"{p.name}{f'[{given}]' if given else ''}({', '.join(names)})"
        case ir.Application():
            shown = e.shown()
            zones = [[repr(a) for a in shown if a.linear is linear] for linear in (False, True)]
            return f"{e.head()}{two_zones(*zones)}"
    raise AssertionError(f"no text for {type(e).__name__}")


def show_value(v: Value) -> str:
    """The text of a parameter: numbers, strings, tuples, slices, dtypes, arrays, variables."""
    match v:
        case np.dtype():
            return short_dtype(v)
        case slice(start=start, stop=stop, step=step):
            ends = f"{'' if start is None else show_value(start)}:"
            ends += "" if stop is None else show_value(stop)
            return ends if step is None else f"{ends}:{show_value(step)}"
        case EllipsisType():
            return "..."
        case tuple():
            return f"({', '.join(map(show_value, v))}{',' * (len(v) == 1)})"
        case np.ndarray():
            return show_literal(v, ArrayType(v.shape, v.dtype))
        case bool() | np.bool_():
            return str(bool(v)).lower()
        case np.integer():
            return repr(int(v))
        case np.floating():
            return repr(float(v))
    return repr(v)


def show_literal(value: Value, t: Type) -> str:
    """A number, or nested lists of them, with the dtype behind it unless that is f64 or bool."""
    assert isinstance(t, ArrayType), "a literal is a number or an array"
    short = short_dtype(t.dtype)
    array = np.asarray(value)
    if not t.size:
        return f"[]_{t!r}"
    text = _nested(array.tolist())
    return text if short in ("f64", "bool") else f"{text}_{short}"


def _nested(value: Tree) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_nested, value))}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, complex):
        return f"complex({value.real!r}, {value.imag!r})"
    return repr(value)
