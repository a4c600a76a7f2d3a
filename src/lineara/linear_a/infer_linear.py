"""L, linearity regained: E backwards, for a definition that is linear in some of its formals.

    f(xs, as ;) -> (ss, rs ;)      =>      f.l(xs ; ~as) -> (ss ; rs)

Python code knows no linear variables, and a definition that says `linear in x | y` has each of the
two in turn.  What is written about the vectors as is followed from them on: every operation that
meets one must be linear in it, a constant beside one must be zero, and what is used twice is dup'd.
What is not linear is an error here; the checker judges what comes out.

In a loop a vector that is the same in every round is carried, and a carry that becomes linear is
linear from the start.
"""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from lineara.errors import LinearityError, ProgramError
from lineara.facts.hints import Shaped
from lineara.facts.primitive import Constant
from lineara.facts.types import ArrayType, Type, carries_tangents, is_ring, show, type_of
from lineara.linear_a import syntax as ir
from lineara.linear_a.branches import Case, Choice
from lineara.linear_a.calls import Call, Facts, Sized
from lineara.linear_a.check import check_def, located
from lineara.linear_a.dimensions import Samples, dims_in
from lineara.linear_a.loops import Scan, While
from lineara.linear_a.program import Program
from lineara.linear_a.rules_as_text import (
    Boxed,
    Emitter,
    closed,
    reboxed,
    text,
    threaded,
    tidy,
)
from lineara.linear_a.show import show_def

Flags = tuple[bool, ...]
SMALL = 64  # elements: what constants up to this size make is a constant


def regain(program: Program, name: str, flags: Flags, want: Flags, made: str) -> Program:
    """The program with `made`: the definition, linear in the formals and results with a flag.

    Raises LinearityError where it is not linear in them, or where another result depends on them.

    >>> from lineara.linear_a.parse import parse
    >>> p = parse("def f(x: f64, a: f64;) -> (f64;) = let b = x * a in let c = b + a in sin(x) * c")
    >>> print(regain(p, "f", (False, True), (True,), "g").defs["g"].lxs)
    (~a,)
    """
    return program.with_(*regained(program, name, flags, want, made))


def regained(program: Program, name: str, flags: Flags, want: Flags, made: str) -> list[ir.Def]:
    """The definitions that `regain` adds, checked."""
    run = _Regain(program)
    run.made[made] = _One(run, program.defs[name], flags, want).definition(made)
    program = program.with_(*run.made.values())
    for d in run.made.values():
        check_def(program, d)
    return [*run.made.values()]


def with_linear_forms(program: Program, missing: Collection[str]) -> Program:
    """The program in which each definition that says `linear in x | y` has the forms f'x and f'y.

    Those that are missing have a signature only; others must be what is made of the definition.
    """
    defs = dict(program.defs)
    for f, d in program.defs.items():
        for places in d.linear:
            for g in program.reached(f):
                check_def(program, program.defs[g])
            name, flags = ir.linear_form(d, places), [i in places for i in range(len(d.params))]
            there = program.defs[name]
            try:
                made = regained(program, f, tuple(flags), (True,) * len(d.results), name)
            except LinearityError as error:
                said = f"{f} says that it is linear in {ir.linear_in(d, places)}: {error.message}"
                raise ProgramError(located(program, program.places[there][0], said)) from None
            if name in missing:
                program.places[made[0]] = program.places[there]  # type: ignore[index]
                defs |= {g.name: g for g in made}
            elif show_def(there) != show_def(made[0]):
                said = f"{name} is not what {f} is in {ir.linear_in(d, places)}; leave it out"
                raise ProgramError(located(program, program.places[there][0], said))
    return Program(program.types, defs, program.places, program.text, program.file)


class _Regain:
    """One run: the definitions made so far, and which results depend on which formals."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.made: dict[str, Any] = {}  # None while it is being made
        self.flows = Facts()

    def definition(
        self, name: str, flags: Flags, want: Flags, on: Sequence[int] = (), bare: bool = False
    ) -> str:
        """The name of a definition that is linear in these; the formals `on` are handed on too.

        A bare one does not take the linear formals: it may not read them.
        """
        marks = ["".join("01"[f] for f in zone) for zone in (flags, want)]
        new = f"{name}.l{marks[0]}'{marks[1]}{'.on' if on else ''}{'.bare' if bare else ''}"
        if new not in self.made and new not in self.program.defs:
            self.made[new] = None
            one = _One(self, self.program.defs[name], flags, want, on, bare)
            self.made[new] = one.definition(new)
        return new

    def flow(self, name: str, flags: Flags) -> Flags:
        """Which results of a definition depend on the formals with a flag."""
        d = self.program.defs[name]
        return self.flows((name, flags), (False,) * len(d.results), lambda: self._flow(d, flags))

    def _flow(self, d: ir.Def, flags: Flags) -> Flags:
        on = dict(zip(d.params, flags, strict=True))

        def of(e: ir.Leaf | ir.Block, count: int) -> Flags:
            if isinstance(e, ir.Block):
                for b in e.bindings:
                    unpacked = isinstance(b, ir.Unpack)
                    out = (on[b.arg],) * len(b.vars) if unpacked else of(b.rhs, len(b.vars))
                    on.update(zip(b.vars, out, strict=True))
                return of(e.leaf, count)
            if isinstance(e, ir.Ret | ir.Copy):
                return tuple([on[a] for a in e.args])
            if isinstance(e, ir.Application):
                return self.application(e, tuple([on[a] for a in e.args]))
            inert = isinstance(e, ir.Prim) and isinstance(e.primitive, Constant)
            return (not inert and any([on[a] for a in e.operands()]),) * count

        return of(d.body, len(d.results))

    def application(self, e: ir.Application, flags: Flags) -> Flags:
        """Which results depend on the flagged arguments; for carries, the fixed point."""
        if isinstance(e, Call):
            return self.flow(e.functions[0], flags)
        if isinstance(e, Choice):
            columns = zip(*[self.flow(f, formals(e, flags)) for f in e.functions], strict=True)
            return tuple([any(column) for column in columns])
        inner = self.carried(e, flags)
        nc = count_of_carries(e)
        flow = self.flow(e.functions[-1], inner)
        return (*inner[e.nk : e.nk + nc], *flow[nc:])  # type: ignore[attr-defined]

    def carried(self, e: Any, flags: Flags) -> Flags:
        """The flags of the formals of a loop's body."""
        nc = count_of_carries(e)
        while True:
            after = self.flow(e.functions[-1], flags)[:nc]
            carries = flags[e.nk : e.nk + nc]
            wider = tuple([a or b for a, b in zip(carries, after, strict=True)])
            if wider == carries:
                return flags
            flags = (*flags[: e.nk], *wider, *flags[e.nk + nc :])


def count_of_carries(e: Any) -> int:
    """How many arguments of a loop are carried."""
    return e.nc if isinstance(e, Scan) else len(e.args) - e.nk


def formals(e: ir.Application, flags: Flags) -> Flags:
    """The flags of the formals of a branch: its payload is that of the tag, if it has one."""
    return flags if isinstance(e, Call | Case) else flags[1:]


class _One:
    """L of one definition: what each variable is now, a box or a constant."""

    def __init__(
        self,
        run: _Regain,
        d: ir.Def,
        flags: Flags,
        want: Flags,
        on: Sequence[int] = (),
        bare: bool = False,
    ) -> None:
        self.run, self.d, self.flags, self.want = run, d, flags, want
        self.on, self.bare = on, bare
        self.out = Emitter(ir.Names([v.name for v in ir.binders(d)]))
        self.out.like = "v"
        self.at: dict[ir.Var, Any] = {}
        self.nothing: set[ir.Var] = set()  # values that are some value times zero

    def definition(self, name: str) -> ir.Def:
        """The definition under its new name; linear formals and results come last."""
        d = self.d
        pairs = zip(d.params, self.flags, strict=True)
        formals = [ir.Var(p.name, p.type, True) if f else p for p, f in pairs]
        self.at = dict(zip(d.params, map(self.out.box, formals), strict=True))
        if self.bare:
            formals = [v for v in formals if not v.linear]
        values = self.expression(d.body, list(d.results))
        handed = [self.at[d.params[i]].var for i in self.on]
        zones: list[list[ir.Var]] = [[], handed]
        for v, t, w in zip(values, d.results, self.want, strict=True):
            zones[w].append(self.vector(v, t) if w else self.value(v, t))
        params = sorted(formals, key=lambda v: v.linear)
        results = [*zones[0], *zones[1]]
        kept, _ = tidy(self.out.bindings, results)
        kept, results = threaded(self.out, params, kept, results)
        dims = self.run.program.dims(d.name)
        stay = [v for v in params if v not in dims]
        body = ir.Block(tuple(closed(kept, stay, results)), ir.Ret(tuple(results)))
        types = [tuple([v.type for v in zone]) for zone in zones]
        return ir.Def(name, tuple(params), types[0], types[1], body)

    # --- what a variable is --------------------------------------------------------------------

    def value(self, v: Shaped, t: Type) -> ir.Var:
        """A non-linear variable; a constant is written down."""
        if not isinstance(v, Boxed):
            assert isinstance(t, ArrayType)
            if np.ndim(v) and not np.any(v):
                return self.out.bind("z", t, ir.zero(t, linear=False))
            return self.out.unbox(v, t)
        if v.var.linear:
            raise LinearityError(
                f"a value ({show(t)}) depends on a vector; a linear function gives vectors of them"
            )
        return v.var

    def vector(self, v: Shaped, t: Type) -> ir.Var:
        """A linear variable; of a constant, that of zero."""
        if isinstance(v, Boxed) and v.var.linear:
            return v.var
        if v.var not in self.nothing if isinstance(v, Boxed) else np.any(v):
            raise LinearityError(
                f"a constant {show(t)} that is not zero stands where a vector does, which is "
                "affine; a linear function maps zero to zero"
            )
        return self.out.bind("z", t, ir.zero(t), linear=True)

    def plain(self, v: ir.Var) -> ir.Var:
        """The variable that stands for a non-linear one."""
        return self.value(self.at[v], v.type)

    def is_vector(self, v: ir.Var) -> bool:
        """Whether a variable became linear."""
        it = self.at[v]
        return isinstance(it, Boxed) and it.var.linear

    # --- blocks and leaves -----------------------------------------------------------------------

    def expression(self, e: ir.Leaf | ir.Block, types: list[Type]) -> list[Any]:
        """What the results of a leaf are, or of a block, whose bindings are written before."""
        if isinstance(e, ir.Leaf):
            return self.leaf(e, types)
        for b in e.bindings:
            self.likes = [v.name for v in b.vars]
            types_of = [v.type for v in b.vars]
            unpacked = isinstance(b, ir.Unpack)
            values = self.parts(b) if unpacked else self.expression(b.rhs, types_of)
            self.at.update(zip(b.vars, values, strict=True))
        self.likes = []
        return self.leaf(e.leaf, types)

    def parts(self, b: ir.Unpack) -> list[Boxed]:
        """The parts of a product, vectors if it is one."""
        whole = self.at[b.arg].var
        parts = [self.out.fresh(v.name, v.type, whole.linear) for v in b.vars]
        self.out.bindings.append(ir.Unpack(tuple(parts), whole))
        return list(map(self.out.box, parts))

    def leaf(self, e: ir.Leaf, types: list[Type]) -> list[Any]:
        """What the results of a leaf are."""
        match e:
            case ir.Ret() | ir.Copy():
                return [self.at[a] for a in e.args]
            case ir.Drop():
                return []
            case ir.Lit(value=value):
                return [value]
            case ir.Zero(type=t) if not isinstance(t, ArrayType) or is_ring(t):
                (zero,) = self.written(e, [t])
                self.nothing.add(zero.var)
                return [zero]
            case ir.Zero(type=t):
                assert isinstance(t, ArrayType)
                return [np.broadcast_to(t.dtype.type(0), t.shape)[()]]
            case ir.Put() | ir.Accum():
                return [self.part(e)]
            case ir.Application():
                return self.application(e, types)
            case ir.Tup(args=args, fields=fields) if any(map(self.is_vector, args)):
                vectors = tuple([self.vector(self.at[a], a.type) for a in args])
                return self.written(ir.Tup(vectors, True, fields), types, [True])
            case ir.Tup() | ir.Inj() | ir.Proj():
                if any(map(self.is_vector, e.args)):
                    raise LinearityError("a vector is no payload of an alternative")
                return self.written(e.renamed(self.plain), types)
        assert isinstance(e, ir.Prim), type(e).__name__
        return [self.prim(e, types[0])]

    def written(self, e: ir.Leaf, types: Sequence[Type], flags: Sequence[bool] = ()) -> list[Boxed]:
        """The results of a leaf that is written down, in the order of the text."""
        made = []
        for i, t in enumerate(types):
            like = self.likes[i] if i < len(self.likes) else "v"
            made.append(self.out.fresh(like, t, bool(flags) and flags[i]))
        self.out.bindings.append(ir.Let(tuple(sorted(made, key=lambda v: v.linear)), e))
        return [self.out.box(v) for v in made]

    def prim(self, e: ir.Prim, t: Type) -> Any:
        """A primitive: as it is on values, as the linear map that it is on vectors."""
        args = [self.at[a] for a in e.args]
        linear = [i for i, a in enumerate(e.args) if self.is_vector(a)]
        if not linear:
            if not any([isinstance(self.at[v], Boxed) for v in e.operands()]):
                is_zero = e.name == "broadcast_to" and not np.any(args[0])
                if is_zero or type_of(t).size <= SMALL:
                    params = ir.renamed_params(e.params, self.at.__getitem__)
                    with np.errstate(all="ignore"):
                        return e.primitive(*args, **params)
            (made,) = self.written(e.renamed(self.plain), [t])
            if e.name == "multiply" and not all([isinstance(a, Boxed) or np.any(a) for a in args]):
                self.nothing.add(made.var)
            return made
        if not isinstance(t, ArrayType):  # a sum of products
            vectors = tuple([self.vector(self.at[a], a.type) for a in e.args])
            return self.written(ir.Prim(vectors, e.primitive), [t], [True])[0]
        params = ir.renamed_params(e.params, self.plain)
        zero = e.primitive.linear_in(linear, len(args))
        if zero == "reads":
            raise LinearityError(
                f"{e.name} reads the value of a vector ({show(e.args[linear[0]].type)}); a linear "
                "function may not depend on it that way"
            )
        if zero == "nonlinear":
            places = " and ".join([str(i + 1) for i in linear])
            raise LinearityError(
                f"{e.name} is not linear in argument{'s'[: len(linear) - 1]} {places}; a linear "
                "function adds, moves, sums, contracts and scales vectors"
            )
        if any(dims_in([t, *[a.type for a in e.args]])):
            return self.sampled(e, args, t)
        return self.out.interpret(e.primitive, tuple(args), params)

    def sampled(self, e: ir.Prim, args: list[Any], t: Type) -> Boxed:
        """A linear primitive of types with dimensions: the text that it writes for samples."""
        given = [a.var for a in args if isinstance(a, Boxed)]
        given += [self.plain(v) for v in ir.vars_in(e.params)]
        formals = [ir.Var(f"x{i}", v.type, v.linear) for i, v in enumerate(given)]

        def rule(samples: Samples, *boxes: Any) -> list[Any]:
            boxed = iter(boxes)
            whole = [next(boxed) if isinstance(a, Boxed) else a for a in args]
            return [e.primitive(*whole, **reboxed(e.params, boxed, samples.at))]

        (y,) = text(e, rule, formals, [t]).copied(given, self.out, {})
        return self.out.box(y)

    def part(self, e: ir.Put | ir.Accum) -> Any:
        """An array that is written: a vector if it or what is written is one."""
        at = ir.renamed_params(e.at, self.plain)
        if not any(map(self.is_vector, e.args)):
            return self.written(type(e)(tuple(map(self.plain, e.args)), at), [e.args[0].type])[0]
        x, *rest = [self.at[a] for a in e.args]
        nothing = [isinstance(y, Boxed) or bool(np.any(y)) for y in rest] == [False]
        if nothing and isinstance(e, ir.Accum):
            return x
        vectors = [self.vector(self.at[a], a.type) for a in (e.args[:1] if nothing else e.args)]
        return self.written(type(e)(tuple(vectors), at), [vectors[0].type], [True])[0]

    # --- forms -----------------------------------------------------------------------------------

    def application(self, e: ir.Application, types: list[Type]) -> list[Any]:
        """Calls, branches and loops, of definitions that are linear where they must be."""
        flags = tuple(map(self.is_vector, e.args))
        if not any(flags):
            return self.written(e.renamed(self.plain), types)
        if isinstance(e, Scan | While):
            return self.loop(e, flags, types)
        if isinstance(e, Sized):
            raise LinearityError("a call with a size that is computed takes no vectors")
        want = self.run.application(e, flags)
        if isinstance(e, Choice) and flags[0]:
            raise LinearityError(
                f"a branch is chosen by a vector ({show(e.args[0].type)}); a linear function does "
                "the same for all"
            )
        functions = tuple([self.run.definition(f, formals(e, flags), want) for f in e.functions])
        return self.written(e.on(self.arguments(e, flags), functions), types, want)

    def arguments(self, e: ir.Application, flags: Flags) -> tuple[ir.Var, ...]:
        """The arguments, vectors last."""
        pairs = list(zip(e.args, flags, strict=True))
        values = [self.plain(a) for a, f in pairs if not f]
        return (*values, *[self.vector(self.at[a], a.type) for a, f in pairs if f])

    def loop(self, e: Any, flags: Flags, types: list[Type]) -> list[Any]:
        """A loop: invariant vectors are carries that each round hands on."""
        flags = self.run.carried(e, flags)
        nc = count_of_carries(e)
        flow = self.run.flow(e.functions[-1], flags)
        want = (*flags[e.nk : e.nk + nc], *flow[nc:])
        on = [i for i in range(e.nk) if flags[i]]
        body = self.run.definition(e.functions[-1], flags, want, on)
        nk, linear = e.nk - len(on), sum(flags[e.nk : e.nk + nc])
        args = self.arguments(e, flags)
        if isinstance(e, Scan):
            n, way = e.n, e.direction
            made: Any = Scan(args, (body,), n, way, nk, nc - linear, len(on) + linear)
        else:
            m = len(self.run.program.defs[e.functions[0]].params)
            test = self.run.definition(e.functions[0], flags[:m], (False,), bare=True)
            made = While(args, (test, body), nk)
        rest = [self.out.fresh("z", e.args[i].type, True) for i in on]
        results = self.written(made, types, want)
        b = self.out.bindings.pop()
        k = len(want) - sum(want)
        self.out.bindings.append(ir.Let((*b.vars[:k], *rest, *b.vars[k:]), b.rhs))  # type: ignore
        return results


def have_tangents(types: Sequence[Any]) -> Flags:
    """Which values of these types have tangents: floating and complex ones."""
    return tuple([isinstance(t, ArrayType) and carries_tangents(t.dtype) for t in types])
