"""What applies definitions to arguments, and the call, the simplest of it.

Each form states its type, its evaluation, and one short method a pass; a pass hands itself over, so
that a form can ask for the derivative, the halves or the transpose of a definition that it names,
and define what it needs beside them.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from lineara.errors import ProgramError
from lineara.facts.types import ArrayType, Type, show
from lineara.linear_a import syntax as ir
from lineara.linear_a.dimensions import is_index, is_open, matching, with_dims

Types = tuple[Type, ...]


class Form(ir.Application):
    """What all forms share: T and E of one apply the transposed and the erased definitions."""

    __slots__ = ()

    def stated(self, f: str, d: ir.Def, defs: dict[Any, Any]) -> tuple[Types, Types]:
        """The results of a definition that is applied, about the dimensions here."""
        at: dict[ir.Var, Any] = {}
        for g, formals, args in self.zipped(defs):
            at |= matching(formals, args) if g == f else {}
        ts, us = ([with_dims(t, at) for t in zone] for zone in (d.results, d.lresults))
        return tuple(ts), tuple(us)

    def transpose(self, t: Any, cs: Sequence[ir.Var]) -> dict[ir.Var, ir.Var]:
        """TApp: the cotangents of the results stand for the linear arguments."""
        made = [t.fresh(a) for a in self.lxs]
        t.write(made, self.on((*self.xs, *cs), tuple(map(t.recur, self.functions))))
        return dict(zip(self.lxs, made, strict=True))

    def erase(self, e: Any) -> ir.Leaf:
        """The erased definitions, on all the arguments."""
        return self.on(e.each(self.args), tuple(map(e.recur, self.functions)))


class Call(Form):
    """f(xs ; ~as)."""

    __slots__ = ()

    def head(self) -> str:
        """What stands before the arguments."""
        return self.functions[0]

    def on(self, args: ir.Vars, functions: tuple[str, ...] | None = None) -> "Call":
        """The same on other arguments, and with another definition."""
        return Call(args, functions or self.functions)

    def zipped(self, defs: dict[Any, Any]) -> Iterator[tuple[str, ir.Vars, ir.Vars]]:
        """The definition on its arguments."""
        (f,) = self.functions
        if f in defs:
            yield f, defs[f].xs, self.xs

    def result(self, judge: Any) -> tuple[Types, Types]:
        """TypeApp: the formals and the arguments agree."""
        d = judge.definition(self.functions[0], self)
        judge.fits(self, self.head(), d.params, self.args)
        return self.stated(d.name, d, judge.program.defs)

    def run(self, machine: Any, values: list[Any]) -> Any:
        """The results of the body."""
        return machine.enter(self.functions[0], values)

    def work(self, works: list[int | None]) -> int | None:
        """That of the body."""
        return works[0]

    def jvp(self, j: Any, phi: dict[Any, Any], later: dict[Any, Any]) -> ir.Leaf:
        """JApp: the jvp of the definition, which hands on what is needed later."""
        (f,) = self.functions
        t = j.threaded(phi, self, [(f, 0)], range(len(self.args)), later)
        made = self.on((*self.args, *t.tangents), (j.recur(f, t.on, t.same),))
        d = j.program.defs[f]
        return j.handed(t, made, self.stated(f, d, j.program.defs)[0], phi)

    def unzip(self, u: Any) -> tuple[ir.Leaf, ir.Leaf]:
        """UApp and UAppN: the callee's halves, with its tape between them."""
        (f,) = self.functions
        if u.is_nonlinear(f):
            return self, ir.Ret(())
        d = u.program.defs[f]
        nl, lin, tape = u.recur(f)
        rs = u.results(self.stated(f, d, u.program.defs)[0])
        ((_, *pairs),) = self.zipped(u.program.defs)
        t = u.fresh("t", with_dims(tape, matching(*pairs)))
        u.context.append(ir.Let((*rs, t), self.on(self.xs, (nl,))))
        given = with_dims(tape, matching(d.xs, self.xs)).dims
        return ir.Ret(rs), self.linear((t, *given, *self.lxs), lin)

    def batch(self, b: Any, args: list[ir.Var]) -> list[ir.Var]:
        """The definition over all lanes at once; in turn, where it cannot be batched."""
        try:
            name, flags = b.recur(self.functions[0], b.has_lanes(args))
        except ProgramError:
            if not b.of_arrays(self):
                raise
            return b.in_turn(self, args)
        return b.results(self, Call((*b.ahead, *args), (name,)), flags)

    def linear(self, args: ir.Vars, name: str) -> ir.Leaf:
        """The linear half on its tape, the dimensions of that, and the linear arguments."""
        return Call(args, (name,))

    def without_tape(self, u: Any, b: ir.Let, dead: list[ir.Var]) -> Any:
        """The call of the primal definition, where nothing reads the tape."""
        name = u.of_half(self.functions[0])
        if name is None or b.vars[-1] not in dead:
            return None
        return b.vars[:-1], self.on(self.args, (u.primal(name),))


@ir.node()
class Sized(Call):
    """sized[f, i, ..](xs ; ~as): a call whose non-linear arguments i are sizes that were computed.

    No type here can mention them: what f gives has other dimensions, but for types with a name,
    such as the tape of f, which leave them open.
    """

    sizes: tuple[int, ...]
    FORM = "sized[f, i, …](xs; ~as), where the arguments i of f are whole numbers"

    def head(self) -> str:
        """sized[f, 0]."""
        return f"sized[{', '.join([self.functions[0], *map(str, self.sizes)])}]"

    def on(self, args: ir.Vars, functions: tuple[str, ...] | None = None) -> "Sized":
        """The same on other arguments, and with another definition."""
        return Sized(args, functions or self.functions, self.sizes)

    def zipped(self, defs: dict[Any, Any]) -> Iterator[tuple[str, ir.Vars, Any]]:
        """The definition on its arguments; those that are sizes have no names in types."""
        for f, formals, args in Call.zipped(self, defs):
            yield f, formals, tuple([None if i in self.sizes else a for i, a in enumerate(args)])

    def result(self, judge: Any) -> tuple[Types, Types]:
        """TypeApp, where the sizes are open."""
        d = judge.definition(self.functions[0], self)
        if not all(
            [type(i) is int and 0 <= i < len(d.xs) and is_index(d.xs[i]) for i in self.sizes]
        ):
            judge.wrong(f"the form is {self.FORM}", self)
        types = Call.result(self, judge)
        for t in (*types[0], *types[1]):
            if isinstance(t, ArrayType) and is_open(t):
                judge.wrong(
                    f"{d.name} gives {show(t)}, where _ is a size that is computed here; use that "
                    f"array within {d.name}, and give what has another shape",
                    self,
                )
        return types

    def batch(self, b: Any, args: list[ir.Var]) -> list[ir.Var]:
        """The definition over the lanes; one after the other, if they have sizes of their own."""
        if any([args[i] in b.batched for i in self.sizes]):
            return b.in_turn(self, args)
        name, flags = b.recur(self.functions[0], b.has_lanes(args))
        sizes = tuple([i + len(b.ahead) for i in self.sizes])
        return b.results(self, Sized((*b.ahead, *args), (name,), sizes), flags)

    def run(self, machine: Any, values: list[Any]) -> Any:
        """The results of the body; what comes with an open size must be of the size given."""
        d = machine.program.defs[self.functions[0]]
        open_ = [i for i, a in enumerate(self.args) if None in getattr(a.type, "dims", ())]
        machine.agree(d, values, open_)
        return machine.enter(d.name, values)

    def linear(self, args: ir.Vars, name: str) -> ir.Leaf:
        """The linear half, on the sizes that its tape leaves open."""
        known = getattr(args[0].type, "dims", ())
        return Sized(args, (name,), tuple([i + 1 for i, n in enumerate(known) if n is None]))


class Facts:
    """Facts about definitions that may apply each other: the least that are consistent.

    >>> facts = Facts()
    >>> facts("f", 0, lambda: max(1, facts("g", 0, lambda: facts("f", 0, int))))
    1
    """

    def __init__(self) -> None:
        self._found: dict[Any, Any] = {}
        self._final: set[Any] = set()
        self._pass: set[Any] | None = None  # what was looked at since the outermost question

    def __call__(
        self, key: tuple[Any, ...], least: tuple[Any, ...], found: Callable[[], Any]
    ) -> Any:
        """The fact about a definition; `found` computes it, and may ask for others and this one."""
        if key in self._final or (self._pass is not None and key in self._pass):
            return self._found[key]
        outermost, before = self._pass is None, None
        while before != self._found:
            before = dict(self._found)
            self._pass = set() if outermost else self._pass
            assert self._pass is not None, "a pass is going on"
            self._pass.add(key)
            self._found.setdefault(key, least)
            self._found[key] = found()
            if not outermost:
                break
        if outermost:
            self._final |= self._pass or set()
            self._pass = None
        return self._found[key]


def call(name: str, *args: Any) -> Call:
    """The call of a definition."""
    return Call(args, (name,))


class Writer:
    """A small definition under construction, for the wrappers that forms need."""

    def __init__(self, name: str, formals: Sequence[ir.Var]) -> None:
        self.name = name
        self.shared: set[str] = {v.name for v in formals if is_index(v)}
        self.names: ir.Names = ir.Names(self.shared)
        self.formals: tuple[ir.Var, ...] = tuple([self.formal(v) for v in formals])
        self.bindings: list[Any] = []

    def var(self, like: str, t: Type, linear: bool = False) -> ir.Var:
        """A variable with a name that is free."""
        return ir.Var(self.names(like), t, linear)

    def formal(self, v: ir.Var) -> ir.Var:
        """A formal like that one; whole numbers stay the same, since types may mention them."""
        if is_index(v) and v.name in self.shared:
            self.shared.remove(v.name)
            return v
        return self.var(v.name, v.type, v.linear)

    def let(self, e: ir.Leaf, *kinds: tuple[str, Type, bool]) -> ir.Vars:
        """Bind the results of a leaf."""
        made = tuple([self.var(*kind) for kind in kinds])
        self.bindings.append(ir.Let(made, e))
        return made

    def dup(self, a: ir.Var) -> ir.Vars:
        """Two of a linear variable."""
        return self.let(ir.Dup((a,)), (a.name, a.type, True), (a.name, a.type, True))

    def done(self, *results: ir.Var) -> ir.Def:
        """The definition with these results, non-linear ones first."""
        xs = [v for v in results if not v.linear]
        lxs = [v for v in results if v.linear]
        body = ir.Block(tuple(self.bindings), ir.Ret((*xs, *lxs)))
        types = tuple([v.type for v in xs]), tuple([v.type for v in lxs])
        formals = sorted(self.formals, key=lambda v: v.linear)
        return ir.Def(self.name, tuple(formals), *types, body)
