"""Linear definitions on vectors with dead lanes: zero times infinity, in programs.

A plain run comes first.  Where it gives a NaN, the text runs again on vectors that know which of
their lanes are structural zeros (`Masked`); its symbolic zero is one of which all lanes are dead.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from lineara.eager.masked import Masked, seeded, unmasked
from lineara.eager.nans import has_nan
from lineara.eager.trace import deeper
from lineara.linear_a.dims import with_dims
from lineara.linear_a.evaluate import ZERO, Machine, Tagged, dense, dims_given, run
from lineara.linear_a.program import Program
from lineara.linear_a.syntax import Accum, Part, Prim, Read, Var, Vars, renamed_params
from lineara.types import ArrayType


def run_linear(
    program: Program, name: str, values: Sequence[Any], vectors: Sequence[Any]
) -> list[Any]:
    """The linear results of a definition, on what its coefficients need and on vectors."""
    found = list(run(program, name, *values, *vectors).lresults)
    return run_live(program, name, values, vectors) if of_dead_lanes(found, vectors) else found


def of_dead_lanes(found: Any, vectors: Any) -> bool:
    """Whether a NaN came out where none went in."""
    return _has_nan(found) and not _has_nan(vectors)


def run_live(
    program: Program, name: str, values: Sequence[Any], vectors: Sequence[Any]
) -> list[Any]:
    """All results, where dead lanes stay zero; what is given has the types of the formals."""
    d = program.defs[name]
    dims = dims_given(program, name, [*values, *vectors])
    with deeper() as depth, np.errstate(all="ignore"):
        machine = _Living(program, depth)
        given = [_each(v, lambda a: seeded(a, depth)) for v in vectors]
        found = machine.drive(machine.enter(name, [*values, *given]))
    types = [with_dims(t, dims) for t in (*d.results, *d.lresults)]
    return [dense(program, t, _each(v, unmasked)) for t, v in zip(types, found, strict=True)]


def _each(value: Any, f: Any) -> Any:
    """f of the arrays in a value of any type."""
    if isinstance(value, Tagged):
        return Tagged(value.tag, _each(value.payload, f))
    if isinstance(value, tuple | list):
        return type(value)([_each(v, f) for v in value])
    return value if value is ZERO else f(value)


def _has_nan(value: Any) -> bool:
    if isinstance(value, Tagged):
        return _has_nan(value.payload)
    if isinstance(value, tuple | list):
        return any(map(_has_nan, value))
    return value is not ZERO and has_nan(np.asarray(value))


class _Living(Machine):
    """The evaluator on masked vectors; what it counts is not asked for."""

    def __init__(self, program: Program, depth: int) -> None:
        super().__init__(program)
        self.depth = depth

    def prim(self, e: Prim, args: list[Any], env: dict[Var, Any]) -> Any:
        """The primitive, which the innermost of its arguments interprets."""
        if not any([isinstance(a, Masked) for a in args]):
            return super().prim(e, args, env)
        if any([a is ZERO for a in args]):
            if e.name == "add":
                return args[args[0] is ZERO]
            types = [v.type for v in e.args]
            args = [self.dead(t) if a is ZERO else a for a, t in zip(args, types, strict=True)]
        return e.primitive(*args, **renamed_params(e.params, env.__getitem__))

    def dead(self, t: Any) -> Masked:
        """A zero of numbers, dead in every lane."""
        v = self.zero(t)
        return Masked(v, np.zeros(np.shape(v), bool), self.depth)

    def part(self, e: Part, args: list[Any], env: dict[Var, Any], mine: bool) -> Sequence[Any]:
        """read, accum and put: of the values, and of the mask."""
        x: Any = args[0]
        y: Any = args[1] if len(args) > 1 else ZERO
        if not isinstance(x, Masked) and not isinstance(y, Masked):
            return super().part(e, args, env, mine)
        at = renamed_params(e.at, env.__getitem__)
        if isinstance(e, Read):
            live = None if x.live is None else self.part_of(e, x.live, at)
            return (Masked(self.part_of(e, x.v, at), live, self.depth), x)
        if isinstance(e, Accum) and y is ZERO:
            return (x,)
        x = self.dead(e.args[0].type) if x is ZERO else x
        dtype = x.dtype if y is ZERO else np.result_type(x.dtype, y.dtype)
        if not mine or x not in self.owners or dtype != x.dtype:
            x = self.writable(x, dtype)
        self.write(e, x.v, at, unmasked(y))
        alive = y is not ZERO and (True if y.live is None else y.live)
        if isinstance(e, Accum):
            np.logical_or.at(x.live, at, alive)
        else:
            x.live[at] = alive
        return (x,)

    def writable(self, x: Masked, dtype: np.dtype) -> Masked:
        """A copy that nobody else has."""
        v = np.array(x.v, dtype)
        live = np.ones(v.shape, bool) if x.live is None else np.array(x.live)
        made = Masked(v, live, self.depth)
        self.owners.take(made)
        return made

    def filled(self, t: ArrayType, rows: Sequence[Any]) -> Any:
        """The rows in one array, and their masks in one."""
        if not any([isinstance(r, Masked) for r in rows]):
            return super().filled(t, rows)
        v = super().filled(t, [unmasked(r) for r in rows])
        live = np.zeros(t.shape, bool)
        for i, row in enumerate(rows):
            if row is not ZERO:
                live[i] = True if row.live is None else row.live
        return Masked(v, live, self.depth)

    def made(self, e: Prim, args: Sequence[Any], y: Any, dead: Vars) -> None:
        """What shows the memory of an argument shares it, be it that of the mask."""
        for a in args:
            if isinstance(a, Masked) and (_meet(a.v, y.v) or _meet(a.live, y.live)):
                self.owners.share(a)

    def drop(self, e: Any, env: Any) -> Any:
        """What is forgotten costs nothing here."""
        yield from self.expression(e.body, env)
        return []

    def cost(self, e: Any, args: list[Any]) -> int:
        """Nothing is counted."""
        return 0

    def looked_at(self, e: Any, y: Any) -> Any:
        """The plain run has looked at the sizes."""
        return y

    def agree(self, d: Any, values: Sequence[Any], open_: Sequence[int]) -> None:
        """The plain run has compared the sizes."""


def _meet(a: Any, b: Any) -> bool:
    return a is not None and b is not None and np.may_share_memory(a, b)
