"""Branches: a condition, an index or a tag chooses one of several definitions of one type.

    cond[f, g](p, xs ; ~as)                   f where p is true
    switch[f0, .., fn](i, xs ; ~as)           fi
    case x of f0 | .. | fn with (xs ; ~as)    fi(payload, xs ; ~as) where x has the tag i

J branches into the jvps, U puts the chosen branch's tape on a tagged one, T and E branch into the
transposed and the erased.  Only the branch that is taken is evaluated, in every direction.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from lineara.errors import ProgramError
from lineara.facts.hints import Value
from lineara.facts.types import ArrayType, Family, Named, Sum, Type, show
from lineara.linear_a import syntax as ir
from lineara.linear_a.calls import Call, Form, Writer, call
from lineara.linear_a.dimensions import matching, with_dims
from lineara.linear_a.lane_partition import Side, by_engine, sides

BOOL = ArrayType((), np.dtype(bool))
BYTE = np.dtype(np.uint8)  # sorted in linear time


class Choice(Form):
    """One of several definitions; the first argument says which."""

    __slots__ = ()
    FORM = ""

    def result(self, judge: Any) -> tuple[tuple[Type, ...], tuple[Type, ...]]:
        """The branches take the arguments, and have one type."""
        if not self.args or not self.functions:
            judge.wrong(f"the form is {self.FORM}", self)
        branches = [judge.definition(f, self) for f in self.functions]
        for f, d, lead in zip(self.functions, branches, self.leads(judge), strict=True):
            params = d.params
            if lead is not None:
                at = matching(params[1:], self.args[1:])
                if not d.xs or not judge.program.same(with_dims(d.xs[0].type, at), lead):
                    judge.wrong(f"{f} takes the payload {show(lead)} as its first argument", self)
                params = params[1:]
            judge.fits(self, f, params, self.args[1:])
        defs = judge.program.defs
        first = self.stated(branches[0].name, branches[0], defs)
        for f, d in zip(self.functions, branches, strict=True):
            for got, want in zip(self.stated(f, d, defs), first, strict=True):
                if len(got) != len(want) or not all(map(judge.program.same, got, want)):
                    judge.wrong(
                        f"{f} has other results than {self.functions[0]}; branches have one type",
                        self,
                    )
        return first

    def zipped(self, defs: dict[Any, Any]) -> Iterator[tuple[str, ir.Vars, ir.Vars]]:
        """Each branch on its arguments, without the payload."""
        for f in self.functions:
            if f in defs:
                xs = defs[f].xs
                yield f, xs[len(xs) - len(self.xs) + 1 :], self.xs[1:]

    def leads(self, judge: Any) -> Sequence[Type | None]:
        """For each branch the type of the payload that is its first argument, if it has one."""
        return [None] * len(self.functions)

    def chosen(self, value: Value) -> tuple[int, list[Any]]:
        """The branch that is taken, and the arguments that it gets before the others."""
        raise NotImplementedError

    def run(self, machine: Any, values: list[Any]) -> Any:
        """The branch that is chosen, and no other."""
        i, lead = machine.chosen(self, values[0])
        given = [*lead, *values[1:]]
        values.clear()  # the definition that is entered may free the arguments
        return machine.enter(self.functions[i], given)

    def may_end(self, ends: list[bool]) -> bool:
        """Whether one of the branches may end."""
        return any(ends)

    def work(self, works: list[int | None]) -> int | None:
        """The work of the branches, if it is the same for all; else None."""
        return works[0] if len(set(works)) == 1 else None

    def jvp(self, j: Any, phi: dict[Any, Any], later: dict[Any, Any]) -> ir.Leaf:
        """JCase: the jvps of the branches; the tangent of a payload has the tag of the value."""
        defs = j.program.defs
        sum_ = j.has_tangent(self.args[0].type)
        lead = len(self.args) - len(defs[self.functions[0]].params)  # 0 where there is a payload
        places = [(f, lead) for f in self.functions]
        t = j.threaded(phi, self, places, range(1, len(self.args)), later)
        functions = tuple([j.recur(f, t.on, t.same) for f in self.functions])
        if sum_:
            functions = tuple([
                self.projected(j, f, name, i, t)
                for i, (f, name) in enumerate(zip(self.functions, functions, strict=True))
            ])  # fmt: skip
        made = self.on((*self.args, *t.tangents), functions)
        ts, _ = self.stated(self.functions[-1], defs[self.functions[-1]], defs)
        return j.handed(t, made, ts, phi)

    def projected(self, j: Any, f: str, jvp: str, i: int, t: Value) -> str:
        """f.jvp on the tangent of a sum, of which it takes the payload."""
        return jvp

    def unzip(self, u: Any) -> tuple[ir.Leaf, ir.Leaf]:
        """UCase: the tape of the branch that was taken, tagged."""
        if all(map(u.is_nonlinear, self.functions)):
            return self, ir.Ret(())
        halves = [u.recur(f) for f in self.functions]
        names = self.functions if len(self.functions) > 1 else (*self.functions, "")
        name = "'".join(names) + ".tape"  # no branch's own
        calls = [*self.zipped(u.program.defs)]
        places = [
            k for k in range(len(self.xs) - 1)
            if any(xs[k] in u.program.dims(f) for f, xs, _ in calls)
        ]  # fmt: skip
        dims = [tuple([xs[k] for k in places]) for _, xs, _ in calls]
        tapes = [
            with_dims(tape, dict(zip(own, dims[0], strict=True)))
            for own, (_, _, tape) in zip(dims, halves, strict=True)
        ]
        u.types[name] = Family(dims[0], Sum(tuple(tapes))) if places else Sum(tuple(tapes))
        d = u.program.defs[calls[0][0]]
        tagged = [
            self.tagging(u, f, i, half, Named(name, own))
            for i, (f, half, own) in enumerate(zip(self.functions, halves, dims, strict=True))
        ]
        rs = u.results(self.stated(d.name, d, u.program.defs)[0])
        given = tuple([self.xs[k + 1] for k in places])
        t = u.fresh("t", Named(name, given))
        u.context.append(ir.Let((*rs, t), self.on(self.xs, tuple(tagged))))
        lins = [
            self.taking(u, f, half, own)
            for f, half, own in zip(self.functions, halves, dims, strict=True)
        ]
        return ir.Ret(rs), Case((t, *given, *self.lxs), tuple(lins))

    def taking(self, u: Any, f: str, half: tuple[Any, ...], dims: ir.Vars) -> str:
        """f.lin for all the dimensions that the tape of the branches has."""
        _, lin, tape = half
        if tape.dims == dims:
            return lin
        d = u.program.defs[f]
        w = Writer(f"{lin}.{len(dims)}dims", (ir.Var("t", tape), *dims, *d.lxs))
        t, *rest = w.formals
        for n in dims:
            if n not in tape.dims:
                w.let(ir.drop(n))
        us = [("r", s, True) for s in d.lresults]
        made = w.let(Call((t, *tape.dims, *rest[len(dims) :]), (lin,)), *us)
        u.define(w.done(*made))
        return w.name

    def batch(self, b: Any, args: list[ir.Var]) -> list[ir.Var]:
        """The branches over lanes; where lanes choose for themselves, each over those that do."""
        which, *rest = args
        if which in b.batched:

            def packed(given: Sequence[ir.Var]) -> list[ir.Var]:
                return sides(b, self, *self.ways(b, given[0]), given[1:], Cond)

            return by_engine(b, self, args, packed, Cond)
        extra = len(b.program.defs[self.functions[0]].params) - len(rest)  # a payload
        flags = (*[False] * extra, *b.has_lanes(rest))
        with_lanes = [b.recur(f, flags)[1] for f in self.functions]
        want = tuple([any(column) for column in zip(*with_lanes, strict=True)])
        names = [b.recur(f, flags, want)[0] for f in self.functions]
        names = [
            self.behind(b, f, name, rest) for f, name in zip(self.functions, names, strict=True)
        ]
        return b.results(self, self.on((which, *b.ahead, *rest), tuple(names)), want)

    def behind(self, b: Any, f: str, name: str, rest: Sequence[ir.Var]) -> str:
        """A branch over lanes that takes a payload before their number."""
        return name

    def ways(self, b: Value, which: ir.Var) -> tuple[ir.Var, list[tuple[str, ir.Var]]]:
        """A key that sorts the lanes, and in its order the definitions and the lanes of each."""
        raise ProgramError("batch: a tag may differ from lane to lane; batch what is around it")

    def tagging(self, u: Any, f: str, i: int, half: tuple[Any, ...], whole: Named) -> str:
        """f.nl with its tape as alternative i of the tape of the branches."""
        nl, _, tape = half
        d = u.program.defs[f]
        w = Writer(f"{nl}.{whole.name}{i}", d.xs)
        kinds = [("r", t, False) for t in d.results]
        *rs, t = w.let(Call(w.formals, (nl,)), *kinds, ("t", tape, False))
        (s,) = w.let(ir.Inj((t,), i, whole), ("s", whole, False))
        u.define(w.done(*rs, s))
        return w.name

    def without_tape(self, u: Any, b: ir.Let, dead: list[ir.Var]) -> Any:
        """The same choice of the primal branches, where nothing reads the tape."""
        names = [u.of_half(f) for f in self.functions]
        if None in names or b.vars[-1] not in dead:
            return None
        return b.vars[:-1], self.on(self.args, tuple(map(u.primal, names)))


class Cond(Choice):
    """cond[f, g](p, xs ; ~as)."""

    __slots__ = ()
    FORM = "cond[f, g](p, xs; ~as), where p is a bool"

    def head(self) -> str:
        """cond[f, g]."""
        return f"cond[{', '.join(self.functions)}]"

    def on(self, args: ir.Vars, functions: tuple[str, ...] | None = None) -> "Cond":
        """The same on other arguments, and with other definitions."""
        return Cond(args, functions or self.functions)

    def result(self, judge: Any) -> tuple[tuple[Type, ...], tuple[Type, ...]]:
        """The condition is one bool."""
        if not self.args or self.args[0].type != BOOL or len(self.functions) != 2:
            judge.wrong(f"the form is {self.FORM}", self)
        return Choice.result(self, judge)

    def ways(self, b: Any, which: ir.Var) -> tuple[ir.Var, list[tuple[str, ir.Var]]]:
        """False comes first."""
        f, g = self.functions
        return which, [(g, b.prim_("logical_not", which)), (f, which)]

    def chosen(self, value: Value) -> tuple[int, list[Any]]:
        """The first for true."""
        return (0 if value else 1), []


class Switch(Choice):
    """switch[f0, .., fn](i, xs ; ~as)."""

    __slots__ = ()
    FORM = "switch[f, g, …](i, xs; ~as), where i is an integer"

    def head(self) -> str:
        """switch[f0, .., fn]."""
        return f"switch[{', '.join(self.functions)}]"

    def on(self, args: ir.Vars, functions: tuple[str, ...] | None = None) -> "Switch":
        """The same on other arguments, and with other definitions."""
        return Switch(args, functions or self.functions)

    def result(self, judge: Any) -> tuple[tuple[Type, ...], tuple[Type, ...]]:
        """The index is one integer."""
        t = self.args[0].type if self.args else None
        if not isinstance(t, ArrayType) or t.shape or t.dtype.kind not in "iu":
            judge.wrong(f"the form is {self.FORM}", self)
        return Choice.result(self, judge)

    def ways(self, b: Any, which: ir.Var) -> tuple[ir.Var, list[tuple[str, ir.Var]]]:
        """The index itself; the least and the largest are looked at, so there is one for each."""
        w = Side(b, b.helper("way"), ())
        b.define(w.done())
        for like in ("min", "max"):
            end = b.prim_(like, which, axis=(0,), keepdims=False)
            b.bound(Switch((end,), (w.name,) * len(self.functions)), (), (), 0)
        key = which if len(self.functions) > 256 else b.prim_("astype", which, dtype=BYTE)
        flags = [b.prim_("equal", which, b.number(i)) for i in range(len(self.functions))]
        return key, list(zip(self.functions, flags, strict=True))

    def chosen(self, value: Any) -> tuple[int, list[Any]]:
        """The one at the index; there must be one."""
        if not 0 <= value < len(self.functions):
            n, names = len(self.functions), dict.fromkeys(self.functions)
            shown = f": {', '.join(names)}" if len(names) == n else ""
            raise ProgramError(f"switch: the index {value} is out of range for {n} branches{shown}")
        return int(value), []


class Case(Choice):
    """case x of f0 | .. | fn with (xs ; ~as)."""

    __slots__ = ()
    FORM = "case x of f | g with (xs; ~as), with a branch for each alternative of x"

    def head(self) -> str:
        """case x of f0 | .. | fn with, before the other arguments."""
        return f"case {self.args[0]!r} of {' | '.join(self.functions)} with "

    def shown(self) -> ir.Vars:
        """The arguments that stand between the brackets."""
        return self.args[1:]

    def on(self, args: ir.Vars, functions: tuple[str, ...] | None = None) -> "Case":
        """The same on other arguments, and with other definitions."""
        return Case(args, functions or self.functions)

    def leads(self, judge: Any) -> Sequence[Type | None]:
        """The payloads."""
        t = judge.program.unfold(self.args[0].type)
        if not isinstance(t, Sum) or len(t.items) != len(self.functions) or self.args[0].linear:
            judge.wrong(f"the form is {self.FORM}; x is {show(self.args[0].type)}", self)
        return t.items

    def behind(self, b: Any, f: str, name: str, rest: Sequence[ir.Var]) -> str:
        """The payload comes first."""
        if not b.ahead:
            return name
        first = b.program.defs[f].params[0]
        w = Side(b, b.helper("way"), (first, *b.ahead, *rest))
        payload, lanes, *given = w.formals
        made = call(name, lanes, payload, *given)
        ts, us = made.stated(name, b.run.done[name], b.run.done)
        kinds = [("y", t, False) for t in ts] + [("y", t, True) for t in us]
        b.define(w.done(*w.let(made, *kinds)))
        return w.name

    def chosen(self, value: Any) -> tuple[int, list[Any]]:
        """The one of the tag, with the payload."""
        return value.tag, [value.payload]

    def projected(self, j: Any, f: str, jvp: str, i: int, t: Any) -> str:
        """f.jvp on the tangent of the whole sum."""
        d, x = j.program.defs[f], self.args[0]
        pairs = [pair for g, *pair in self.zipped(j.program.defs) if g == f][-1]
        back = {a: p for p, a in matching(*pairs).items()}
        whole = with_dims(j.tangent_type(x.type), back)
        merged = {k for c in t.same for k in c[1:]}
        tangents = [
            (v.name, j.tangent_type(v.type))
            for k, v in enumerate(d.params) if k and k not in merged and j.has_tangent(v.type)
        ]  # fmt: skip
        payload = d.params[0]
        lead = ir.Var("ds", whole, True)
        w = Writer(f"{jvp}.{j.mangled(x.type)}{i}", (*d.params, lead))
        *xs, s = w.formals
        rest = [w.var(f"d{n}", t, True) for n, t in tangents]
        w.formals = (*w.formals, *rest)
        (p,) = w.let(ir.Proj((s,), i), ("dp", j.tangent_type(payload.type), True))
        if j.has_tangent(payload.type):
            given = [p, *rest]
        else:
            w.let(ir.drop(p))
            given = rest
        kinds = [("y", s, False) for s in d.results]
        kinds += [("d", j.tangent_type(d.params[k].type), True) for k in t.on]
        kinds += [("dy", j.tangent_type(s), True) for s in d.results if j.has_tangent(s)]
        j.define(w.done(*w.let(Call((*xs, *given), (jvp,)), *kinds)))
        return w.name
