"""Which arguments the results of a program depend on, for all values of the arguments.

The interpreter runs the program on values of which those that do not depend on the arguments are
known, and of the others only what they depend on (`Dependent`).  A branch on what is not known is
taken every way and the ways are joined; a while loop is then run until nothing more is joined.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from lineara.cotangent.dependence import (
    Dependent,
    applied,
    joined,
    mentioned,
    mixed,
    seeds,
    stacked,
)
from lineara.engines.interpreter import Machine, Numbers, Steps
from lineara.engines.values import ZERO, Tagged, dims_given, zeros
from lineara.errors import LinearaError, ProgramError
from lineara.facts.hints import Shaped
from lineara.facts.types import ArrayType, Type, type_of
from lineara.linear_a import syntax as ir
from lineara.linear_a.branches import Choice
from lineara.linear_a.dimensions import with_dims
from lineara.linear_a.loops import While
from lineara.linear_a.program import Program

ENTERED = 5_000_000  # definitions that one analysis enters before it is given up


def dependence(
    program: Program, name: str, values: Sequence[Any], active: Sequence[int]
) -> list[Any]:
    """What the results depend on, of the formals `active`; None among the values is not known.

    >>> from lineara.linear_a.parse import parse
    >>> p = parse("def f(x: f64[3];) -> (f64[2];) = let y = index[at=(1:,)](x) in y * y")
    >>> dependence(p, "f", [None], [0])[0].matrix.toarray().astype(int)
    array([[0, 1, 0],
           [0, 0, 1]])
    """
    d = program.defs[name]
    machine = Patterns(program, Known())
    machine.dims = dims_given(program, name, values)
    types = [machine.type_of(p.type) for p in d.params]
    given = dict(zip(active, seeds([types[i] for i in active], 0), strict=True))
    some = next(iter(given.values()))
    machine.some = some
    args = [
        given[i] if i in given else some.constant(t) if v is None else v
        for i, (v, t) in enumerate(zip(values, types, strict=True))
    ]
    with np.errstate(all="ignore"):
        return machine.drive(machine.enter(name, args))


class Ways(NamedTuple):
    """A value of a sum of which several alternatives are possible, by their tags."""

    payloads: dict[int, Any]


class Patterns(Machine):
    """A machine that goes every way where it does not know which."""

    some: Dependent
    forks: int = 0  # decisions that are open around what is at hand
    entered: int = 0

    def type_of(self, t: Type) -> ArrayType:
        """The type of an array, in numbers."""
        t = self.program.unfold(with_dims(t, self.dims))
        if not isinstance(t, ArrayType):
            raise ProgramError("patterns: arguments and results are arrays")
        return t

    def enter(self, name: str, values: list[Any]) -> Steps:
        """A definition, unless there were too many."""
        self.entered += 1
        if self.entered > ENTERED:
            raise ProgramError(f"patterns: more than {ENTERED} calls and rounds are to be followed")
        return super().enter(name, values)

    def application(self, e: ir.Application, values: list[Any]) -> Steps:
        """A branch or a loop, every way that it may go."""
        if isinstance(e, Choice) and isinstance(values[0], Dependent | Ways):
            return self.every_way(e, values)
        if isinstance(e, While):
            return self.rounds(e, values)
        return e.run(self, values)

    def every_way(self, e: Choice, values: list[Any]) -> Steps:
        """The branches that are possible, joined."""
        first, others = values[0], tuple(values[1:])
        self.owners.share(others)
        tags = first.payloads if isinstance(first, Ways) else range(len(e.functions))
        results = None
        self.forks += 1
        for i in tags:
            lead = [first.payloads[i]] if isinstance(first, Ways) else []
            ys = yield self.enter(e.functions[i], [*lead, *others])
            self.owners.share(tuple(ys))
            results = ys if results is None else self.joined(results, ys)
        self.forks -= 1
        return results

    def rounds(self, e: While, values: list[Any]) -> Steps:
        """Rounds while the condition is known to hold; then any number of them."""
        p, d = (self.program.defs[f] for f in e.functions)
        ks, cs = values[: e.nk], values[e.nk :]
        if len(d.results) + len(d.lresults) > len(cs):
            raise ProgramError("patterns: a while loop stacks what its rounds give")
        self.owners.share(tuple(ks))
        while True:
            self.owners.share(tuple(cs))
            (go,) = yield self.enter(p.name, [*ks, *cs][: len(p.xs)])
            if isinstance(go, Dependent):
                break
            if not go:
                return cs
            cs = yield self.enter(d.name, [*ks, *cs])
        self.forks += 1
        while True:
            self.owners.share(tuple(cs))
            ys = yield self.enter(d.name, [*ks, *cs])
            self.owners.share(tuple(ys))
            more = self.joined(cs, ys)
            if all(map(same, more, cs)):
                break
            cs = more
        self.forks -= 1
        return cs

    def joined(self, xs: Sequence[Any], ys: Sequence[Any]) -> list[Any]:
        """Values that may be the ones or the others."""
        return [self.join(x, y) for x, y in zip(xs, ys, strict=True)]

    def join(self, x: Any, y: Any) -> Any:
        """What may be x or y; known only if they are the same."""
        if x is y:
            return x
        if (
            isinstance(x, list | tuple)
            and isinstance(y, list | tuple)
            and not (isinstance(x, Tagged | Ways) or isinstance(y, Tagged | Ways))
        ):
            if len(x) != len(y):
                raise ProgramError("patterns: stacks of different lengths are joined")
            return type(x)(self.joined(x, y))
        if isinstance(x, Tagged | Ways) and isinstance(y, Tagged | Ways):
            ways = dict(_ways(x))
            for tag, payload in _ways(y).items():
                ways[tag] = self.join(ways[tag], payload) if tag in ways else payload
            return Ways(ways)
        if x is ZERO or y is ZERO:
            y = y if x is ZERO else x
            if isinstance(y, list | tuple):
                raise ProgramError("patterns: a zero is joined to what is no array")
            return y if isinstance(y, Dependent) else self.some.constant(type_of(y))
        a, b = (v if isinstance(v, Dependent) else self.some.constant(type_of(v)) for v in (x, y))
        if not isinstance(x, Dependent) and not isinstance(y, Dependent) and same(x, y):
            return x
        return joined(a, b)


def _ways(x: Any) -> dict[int, Any]:
    return x.payloads if isinstance(x, Ways) else {x.tag: x.payload}


def same(x: Any, y: Any) -> bool:
    """Whether two values are the same, as far as they are known."""
    if x is y:
        return True
    if isinstance(x, Dependent) or isinstance(y, Dependent):
        if not (isinstance(x, Dependent) and isinstance(y, Dependent)):
            return False
        return x.matrix.nnz == y.matrix.nnz and not (x.matrix != y.matrix).nnz
    if isinstance(x, Ways) and isinstance(y, Ways):
        return x.payloads.keys() == y.payloads.keys() and all(
            [same(v, y.payloads[k]) for k, v in x.payloads.items()]
        )
    if isinstance(x, list | tuple) and isinstance(y, list | tuple):
        return type(x) is type(y) and len(x) == len(y) and all(map(same, x, y))
    if x is ZERO or y is ZERO or type(x) is not type(y):
        return False
    return type_of(x) == type_of(y) and np.asarray(x).tobytes() == np.asarray(y).tobytes()


class Known(Numbers):
    """Values that are known, or of which it is known what they depend on."""

    kind = "patterns"
    recorded = True

    def zero(self, machine: Machine, t: Type) -> Any:
        """The zero of a type."""
        return zeros(machine.program, with_dims(t, machine.dims))

    def apply(self, machine: Any, e: ir.Prim, args: list[Any], params: dict[str, Any]) -> Any:
        """The value, if it is known, else what it depends on."""
        if any([isinstance(a, Dependent) for a in (*args, *mentioned(params))]):
            return self.unknown(machine, e, args, params)
        if not machine.forks:
            return super().apply(machine, e, args, params)
        try:
            return super().apply(machine, e, args, params)
        except (LinearaError, ArithmeticError, ValueError, IndexError, TypeError):
            return machine.some.constant(self.type(machine, e))  # a way that is perhaps not taken

    def type(self, machine: Machine, e: ir.Leaf) -> ArrayType:
        """The type of a result."""
        xs, us = machine.judge.leaf(e)
        t = machine.program.unfold(with_dims((*us, *xs)[0], machine.dims))
        assert isinstance(t, ArrayType)
        return t

    def unknown(self, machine: Any, e: ir.Prim, args: list[Any], params: dict[str, Any]) -> Any:
        """What the result of a primitive depends on."""
        if e.primitive.acts or e.name.startswith("check_"):
            return args[0]
        t = self.type(machine, e)
        return applied(e.primitive, tuple(args), params, t)

    def filled(self, t: ArrayType, rows: Sequence[Any]) -> Any:
        """The rows in one array."""
        some = next((r for r in rows if isinstance(r, Dependent)), None)
        return super().filled(t, rows) if some is None else stacked(rows, t, some)

    def copied(self, x: Any, like: Shaped | None = None) -> Any:
        """A copy, which can be written."""
        if isinstance(x, Dependent):
            return x.copy()
        return super().copied(x, None if isinstance(like, Dependent) else like)

    def part_of(self, machine: Any, e: ir.Part, x: Any, at: Any) -> Any:
        """What is read; at an unknown place, of any."""
        if isinstance(x, Dependent) and not any([isinstance(p, Dependent) for p in mentioned(at)]):
            return x[at]
        if isinstance(x, Dependent):
            xs, us = machine.judge.leaf(e)
            t = machine.program.unfold(with_dims((*us, *xs)[0], machine.dims))
            return mixed([x], t)
        if any([isinstance(p, Dependent) for p in mentioned(at)]):
            xs, us = machine.judge.leaf(e)
            return machine.some.constant(machine.program.unfold(with_dims(us[0], machine.dims)))
        return super().part_of(machine, e, x, at)

    def within(self, machine: Machine, e: ir.Part, x: Any, at: Any, y: Any) -> None:
        """What is not known is not looked at."""
        if not any([isinstance(v, Dependent) for v in (x, y, *mentioned(at))]):
            super().within(machine, e, x, at, y)

    def write(self, e: ir.Part, x: Any, at: Any, y: Any) -> Any:
        """The array after a part of it was added to, or overwritten."""
        nowhere = any([isinstance(p, Dependent) for p in mentioned(at)])
        some = next((v for v in (x, y, *mentioned(at)) if isinstance(v, Dependent)), None)
        if some is None:
            return super().write(e, x, at, y)
        if not isinstance(x, Dependent):
            x = some.constant(type_of(x))
        if nowhere:
            y = mixed([y], x.type) if isinstance(y, Dependent) else x.constant(x.type)
            return joined(x, y)
        x.write(at, y, isinstance(e, ir.Accum))
        return x
