"""Whole derivatives, composed from the passes  [YOLO].

f.vjp(xs ; ~cs) -> (ss ; ts')     the halves of f.jvp, the linear one transposed
f.grad(xs ;) -> (ts' ;)           f.vjp at 1, erased; f has one real number as its result
"""

from typing import Any

from lineara.errors import ProgramError
from lineara.facts.types import ArrayType, show
from lineara.linear_a import syntax as ir
from lineara.linear_a.calls import Call
from lineara.linear_a.dimensions import matching, with_dims
from lineara.linear_a.program import Program
from lineara.passes.erase import erase
from lineara.passes.jvp import jvp
from lineara.passes.names import GRAD, JVP, LIN, NL, VJP, E, T
from lineara.passes.sink_recompute import late
from lineara.passes.transpose import transpose
from lineara.passes.unzip import Policy, store_all, unzip


def reverse(program: Program, name: str, policy: Policy = store_all) -> Program:
    """The program with the jvp of `name`, its halves, and the linear half transposed."""
    program = jvp(program, name)
    program = unzip(program, name + JVP, policy)
    program = transpose(program, name + JVP + LIN, unzipped=True)
    return late(program, name + JVP + LIN + T)


def vjp(program: Program, name: str, policy: Policy = store_all) -> Program:
    """The program with `name.vjp`.

    >>> from lineara.linear_a.parse import parse
    >>> p = vjp(parse("def f(x: f64;) -> (f64;) = exp(x)"), "f")
    >>> print(p.defs["f.vjp"].lresults)
    (f64[],)
    """
    return with_vjp(reverse(program, name, policy), name)


def with_vjp(program: Program, name: str) -> Program:
    """The program with `name.vjp`, where it has the halves that this calls."""
    d, nl = program.defs[name], program.defs[name + JVP + NL]
    lin_t = program.defs[name + JVP + LIN + T]
    names = ir.Names([p.name for p in d.params])
    at = matching(nl.xs, d.xs)  # a rule of the user's has formals of its own
    us = tuple([with_dims(u, at) for u in lin_t.lresults])
    cs = [ir.Var(names("ct"), with_dims(c.type, at), True) for c in lin_t.lxs]
    ys, t = _primal(nl, names, at)
    gs = [ir.Var(names("g"), u, True) for u in us]
    body = ir.Block(
        (
            ir.Let((*ys, t), Call(d.params, (nl.name,))),
            ir.Let(tuple(gs), Call((t, *t.type.dims, *cs), (lin_t.name,))),
        ),
        ir.Ret((*ys, *gs)),
    )
    made = ir.Def(name + VJP, (*d.params, *cs), d.results, us, body)
    return program.with_(made)


def grad(program: Program, name: str, policy: Policy = store_all) -> Program:
    """The program with `name.grad`: the gradient, and the value dropped.

    Raises ProgramError unless the result of the definition is one real number.
    """
    if name not in program.defs:
        raise ProgramError(f"grad: there is no definition {name}")
    d = program.defs[name]
    t = program.unfold(d.results[0]) if len(d.results) == 1 else None
    if not isinstance(t, ArrayType) or t.shape or t.dtype.kind != "f":
        raise ProgramError(
            f"grad: {name} has the results ({', '.join(map(show, d.results))}), not one real "
            "number; vjp is for any results"
        )
    program = reverse(program, name, policy)
    program = erase(program, name + JVP + LIN + T)
    nl, back = program.defs[name + JVP + NL], program.defs[name + JVP + LIN + T + E]
    names = ir.Names([p.name for p in d.params])
    at = matching(nl.xs, d.xs)
    ys, tape = _primal(nl, names, at)
    one = ir.Var(names("one"), t)
    body = ir.Block(
        (
            ir.Let((*ys, tape), Call(d.params, (nl.name,))),
            ir.Let((), ir.drop(*ys)),
            ir.Let((one,), ir.lit(t.dtype.type(1), t)),
        ),
        Call((tape, *tape.type.dims, one), (back.name,)),
    )
    results = tuple([with_dims(u, at) for u in back.results])
    return program.with_(ir.Def(name + GRAD, d.params, results, (), body))


def _primal(nl: ir.Def, names: ir.Names, at: dict[ir.Var, Any]) -> tuple[list[ir.Var], Any]:
    """Variables for the results of f.nl: the values, and the tape."""
    *types, tape = [with_dims(t, at) for t in nl.results]
    return [ir.Var(names("y"), s) for s in types], ir.Var(names("t"), tape)
