"""Programs of Linear A that calls of primitives write, for the tests."""

from typing import NamedTuple

import numpy as np

from lineara.engines import run
from lineara.facts.types import type_of
from lineara.linear_a.check import check
from lineara.linear_a.program import Program
from lineara.linear_a.rules_as_text import Emitter
from lineara.linear_a.syntax import Block, Copy, Def, Let, Prim, Var, drop, occurrences, sampled


def captured(f, args, name="f"):
    """The program that f writes when it runs on variables of the types of the arguments."""
    out = Emitter()
    formals = [out.fresh("x", type_of(a)) for a in args]
    y = out.unbox(f(*map(out.box, formals)))
    used = {v for b in out.bindings for v in occurrences(b.rhs)} | {y}
    made = [v for b in out.bindings for v in b.vars]
    unused = [Let((), drop(v)) for v in (*formals, *made) if v not in used]
    body = Block((*out.bindings, *unused), Copy((y,)))
    return check(Program({}, {name: Def(name, tuple(formals), (y.type,), (), body)}))


def operator(primitive, args, linear, params=None, name="op"):
    """The program of one linear operator: `args` are its arguments, `linear` the places of vectors.

    Returns it with the values of its formals, the non-linear ones first.
    """
    params = params or {}
    vs = [Var(f"x{i}", type_of(a), i in linear) for i, a in enumerate(args)]
    at = params.get("at", ())
    indices = [p for p in at if isinstance(p, np.ndarray) and p.dtype.kind == "i"]
    js = [Var(f"i{n}", type_of(p)) for n, p in enumerate(indices)]
    named = {id(p): j for p, j in zip(indices, js, strict=True)}
    if at:
        params = params | {"at": tuple([named.get(id(p), p) for p in at])}
    y = primitive.result(*[v.type for v in vs], **sampled(params))
    given = dict(zip((*vs, *js), (*args, *indices), strict=True))
    formals = sorted(given, key=lambda v: v.linear)
    body = Block((), Prim(tuple(vs), primitive, params))
    d = Def(name, tuple(formals), (), (y,), body)
    return check(Program({}, {name: d})), [given[v] for v in formals]


class Case(NamedTuple):
    """A call in a program: its formals' values, which of them move, and the call as a function."""

    program: Program
    values: list
    active: list[int]
    f: object  # of the values that move

    @property
    def point(self):
        return [self.values[i] for i in self.active]

    def filled(self, moved):
        values = list(self.values)
        for i, v in zip(self.active, moved, strict=True):
            values[i] = v
        return values


def case(line):
    """A line of the table of primitives: arrays are formals, also those in an index."""
    inputs = [i for i, a in enumerate(line.args) if i in line.active or isinstance(a, np.ndarray)]
    at = line.params.get("at")
    parts = at if isinstance(at, tuple) else (at,)
    indices = [j for j, p in enumerate(parts) if isinstance(p, np.ndarray) and p.dtype.kind == "i"]

    def f(*values):
        args = list(line.args)
        for i, v in zip(inputs, values, strict=False):
            args[i] = v
        params = dict(line.params)
        if indices:
            given = list(parts)
            for j, v in zip(indices, values[len(inputs) :], strict=True):
                given[j] = v
            params["at"] = tuple(given)
        return line.primitive(*args, **params)

    values = [line.args[i] for i in inputs] + [parts[j] for j in indices]
    active = [i for i, v in enumerate(values) if type_of(v).dtype.kind in "fc"]
    found = Case(captured(f, values), values, active, None)
    return found._replace(f=lambda *moved: f(*found.filled(moved)))


def results(program, name, *args):
    """The results of a definition, the linear ones if it has any."""
    found = run(program, name, *args)
    return found.lresults or found.results
