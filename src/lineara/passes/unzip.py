"""U, unzipping:  U(e) = (C; n; m): non-linear bindings, a non-linear leaf, and linear code.

    f(xs ; ~as) -> (ss ; rs)    =>    f.nl (xs ;) -> (ss, f.tape ;)      C, then n and the tape
                                      f.lin(t: f.tape ; ~as) -> (; rs)   m, the tape taken apart

Partial evaluation that knows nothing of differentiation: what is non-linear happens first, and what
linear code reads of it goes on the tape, but literals and parts of what f.lin is given, and of
values that are computed alike one.  Which bindings are stored and which ones computed again in
f.lin is free; a policy chooses [YOLO, §5].
"""

from collections import ChainMap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from lineara.errors import ProgramError
from lineara.facts.gc_pause import uncollected
from lineara.facts.types import Family, Named, Product, Type
from lineara.linear_a import syntax as ir
from lineara.linear_a.dimensions import mentioned
from lineara.linear_a.program import Program
from lineara.linear_a.same_leaves import key_of
from lineara.passes.names import LIN, NL, PRI, TAPE, of_jvp

EMPTY = ir.Ret(())


class Cut(NamedTuple):
    """The question to a policy: the bindings of one definition, and what its linear side reads."""

    program: Program
    name: str
    formals: tuple[ir.Var, ...]
    context: tuple[ir.Binding, ...]
    results: tuple[ir.Var, ...]  # FN(n)
    wanted: tuple[ir.Var, ...]  # FN(m)
    outermost: bool  # whether this is the definition that unzip was asked for
    invariants: tuple[ir.Var, ...] = ()  # formals that f.lin is given beside the tape

    def tape(self, again: "set[ir.Binding]") -> tuple[list[ir.Binding], list[ir.Var]]:
        """What f.lin computes again, in order, and what it needs for that, in binding order.

        Literals, and parts of what f.lin is given, are written again whatever was chosen.
        """
        need = dict.fromkeys(self.wanted)
        written: list[ir.Binding] = []
        given = {*self.invariants}
        for b in self.context:
            if is_part(b) and given.issuperset(ir.reads(b)):
                given.update(b.vars)
        for b in reversed(self.context):
            free = not given.isdisjoint(b.vars)
            if (free or b in again) and any([v in need for v in b.vars]):
                written.append(b)
                for v in b.vars:
                    need.pop(v, None)
                need |= dict.fromkeys(ir.reads(b))
        order = [*self.formals, *[v for b in self.context for v in b.vars]]
        return written[::-1], [v for v in order if v in need]

    def kept(self, stored: Sequence[ir.Var]) -> list[ir.Binding]:
        """What f.nl computes for its results and for the tape, in order."""
        live, kept = {*self.results, *stored}, []
        for b in reversed(self.context):
            if not b.vars or any(v in live for v in b.vars):
                kept.append(b)
                live.update(ir.reads(b))
        return kept[::-1]


def is_part(b: ir.Binding) -> bool:
    """Whether a binding is a literal, or a name, a view, a slice or an element of what it reads."""
    e = b.rhs if isinstance(b, ir.Let) else None
    if not isinstance(e, ir.Prim) or e.name == "checkpoint_name":
        return isinstance(e, ir.Lit | ir.Ret | ir.Copy)
    at = ir.parts_of(e.params["at"]) if e.name == "index" else [None]
    basic = all([p is None or p is Ellipsis or type(p) in (slice, int) for p in at])
    return basic and (e.primitive.view or e.name == "index")


Policy = Callable[[Cut], "set[ir.Binding]"]  # the bindings to compute again


def store_all(cut: Cut) -> set[ir.Binding]:
    """Store every value that linear code reads.

    >>> import numpy as np, lineara
    >>> lineara.stages(lambda x: np.sin(np.sin(x)), 0.0, policy=store_all).certificate.tape_bytes
    16
    """
    return set()


@uncollected
def unzip(program: Program, name: str, policy: Policy = store_all) -> Program:
    """The program with `name.nl`, `name.lin`, their tape, and those of every callee.

    Raises ProgramError if a policy is asked for and the program has such halves already.

    >>> from lineara.linear_a.parse import parse
    >>> p = unzip(parse("def f(x: f64; ~a: f64) -> (f64; f64) = (x; ~a)"), "f")
    >>> [*p.types, *p.defs]
    ['f.tape', 'f', 'f.nl', 'f.lin', 'f.pri']
    """
    run = Unzipping(program, policy)
    run.all(name, outermost=True)
    return program.with_(*run.defs.values(), types=run.types)


class Unzipping:
    """One run of the pass: the halves made so far, and the definitions still to be unzipped."""

    def __init__(self, program: Program, policy: Policy) -> None:
        self.program = program
        self.policy = policy
        self.defs: dict[str, ir.Def] = {}
        self.types: dict[str, Type | Family] = {}
        self.read: dict[tuple[str, int], tuple[int, ...]] = {}  # invariants that f.lin reads
        self.known: Program = replace(  # grows, so that a policy can tell what callees cost
            program,
            types=ChainMap(self.types, dict(program.types)),
            defs=ChainMap(self.defs, dict(program.defs)),
        )

    def all(self, name: str, outermost: bool = False) -> None:
        """Unzip a definition and what it calls."""
        todo, begun = [name], {}
        while todo:
            f = todo.pop()
            again = outermost and f == name and f + NL in self.program.defs
            if again and self.policy is not store_all:
                raise ProgramError(
                    f"unzip: the program has halves of {f} already, made under some policy; to "
                    f"choose another one, start from a program without {f + NL}"
                )
            if f not in begun and f + NL not in self.known.defs:
                begun[f] = one = _Unzip(self, f)
                one.outermost = outermost and f == name
                todo += one.split()

        def callees(f: str) -> list[str]:
            return [g for g in reversed(begun[f].needed) if g in begun]

        for f in ir.callees_first([name] if name in begun else [], callees):
            begun[f].finish()

    def hoisted(self, f: str, k: int) -> tuple[int, ...]:
        """Unzip the body of a loop; which of its first k formals f.lin takes beside the tape."""
        if (f, k) not in self.read:
            d, dims = self.program.defs[f], self.program.dims(f)
            # a body that loops over itself stores them, but for dimensions
            self.read[f, k] = tuple([i for i, x in enumerate(d.xs[:k]) if x in dims])
            one = _Unzip(self, f, k)
            for callee in one.split():
                self.all(callee)
            one.finish()
            self.read[f, k] = one.read
        return self.read[f, k]


def suffix(half: str, k: int) -> str:
    """The suffix of a half of a loop's body, whose first k formals are no part of the tape."""
    return f"{half}'{k}" if k else half


def is_nonlinear(program: Program, name: str) -> bool:
    """Whether a definition has no linear part, in its signature, its body, or what it calls."""
    for f in program.reached(name):
        if f not in program.defs:
            raise ProgramError(f"unzip: there is no definition {f}")
        d = program.defs[f]
        if any(v.linear for v in ir.binders(d)) or has_zero(d.body):
            return False
    return True


def has_zero(e: ir.Leaf | ir.Block) -> bool:
    """Whether linear zeros are made and dropped without a name."""
    return any(isinstance(leaf, ir.Zero | ir.Tup) and leaf.linear for leaf in ir.leaves(e))


class _Unzip:
    """U of one definition."""

    def __init__(self, run: Unzipping, name: str, invariants: int = 0) -> None:
        if name not in run.program.defs:
            raise ProgramError(f"unzip: there is no definition {name}")
        self.run = run
        self.program = run.program
        self.d = run.program.defs[name]
        self.policy = run.policy
        self.invariants = invariants
        self.outermost = False
        self.read: tuple[int, ...] = ()
        self.needed: list[str] = []
        self.names = ir.Names([v.name for v in ir.binders(self.d)])
        self.context: list[ir.Binding] = []
        self.tape: Type | Family = Product()
        self.here: ir.Binding | ir.Leaf = self.d.body.leaf  # what is being unzipped
        self.dims = self.program.dims(name)

    def split(self) -> list[str]:
        """U of the body; the definitions that must be unzipped as well."""
        n, self.linear = self.expression(self.d.body)
        self.nonlinear = self.named(n)
        return self.needed

    def finish(self) -> None:
        """The halves and the tape, where the run keeps them."""
        self.run.defs.update([(d.name, d) for d in self.halves()])
        self.run.types[self.d.name + suffix(TAPE, self.invariants)] = self.tape

    def halves(self) -> list[ir.Def]:
        """f.nl, f.lin, and f.pri where f has no primal form of its own."""
        d, m, results = self.d, self.linear, self.nonlinear
        wanted = tuple([v for v in ir.free(m) if not v.linear])
        constant, dims = d.xs[: self.invariants], self.dims
        cut = Cut(
            self.run.known, d.name, d.xs, tuple(self.context), tuple(results), wanted,
            self.outermost, tuple(dict.fromkeys([*constant, *dims])),
        )  # fmt: skip
        chosen = {b for b in self.policy(cut) if not self.run.program.may_act(b)}
        again, stored = cut.tape(chosen)
        stored, copies = self.once(stored)
        again = [*copies, *again]
        self.read = tuple([i for i, x in enumerate(constant) if x in stored or x in dims])
        ahead = [constant[i] for i in self.read]
        behind = () if constant else dims  # after the tape, which a branch is given first
        stored = [v for v in stored if v not in (*ahead, *behind)]
        parts = Product(tuple([v.type for v in stored]))
        self.tape = Family(dims, parts) if dims else parts
        nl_, lin_, tape_ = (d.name + suffix(half, self.invariants) for half in (NL, LIN, TAPE))
        type_ = Named(tape_, dims)
        t, t2 = ir.Var(self.names("t"), type_), ir.Var(self.names("t"), type_)
        kept = self.live([*self.context, ir.Let((t,), ir.Tup(tuple(stored)))], [*results, t], d.xs)
        nl = ir.Def(nl_, d.xs, (*d.results, type_), (), ir.Block(kept, ir.Ret((*results, t))))
        lin = ir.Def(
            lin_, (*ahead, t2, *behind, *d.lxs), (), d.lresults,
            flat([ir.Unpack(tuple(stored), t2), *without_rest(again, wanted)], m),
        )  # fmt: skip
        made = [nl, lin]
        if self.primal(d.name) == d.name + PRI:
            made.append(self.primal_form(results))
        return made

    def once(self, stored: Sequence[ir.Var]) -> tuple[list[ir.Var], list[ir.Binding]]:
        """What the tape stores: of values that are computed alike the first, and copies of it."""
        same: dict[ir.Var, ir.Var] = {}  # of each variable the first that is computed alike
        first: dict[Any, ir.Var] = {}
        for b in self.context:
            if not isinstance(b, ir.Let) or len(b.vars) != 1 or not isinstance(b.rhs, ir.Leaf):
                continue
            (v,), e = b.vars, b.rhs
            if any([a in same for a in e.operands()]):
                e = e.renamed(lambda a: same.get(a, a))
            if isinstance(e, (ir.Ret, ir.Copy)) and e.args:
                same[v] = e.args[0]
                continue
            alike = first.setdefault(key_of(e) or b, v)
            if alike is not v and not self.program.may_act(b):
                same[v] = alike
        kept: dict[ir.Var, ir.Var] = {}
        for v in stored:
            kept.setdefault(same.get(v, v), v)
        copies = [(v, kept[same.get(v, v)]) for v in stored]
        return [*kept.values()], [ir.Let((v,), ir.Ret((a,))) for v, a in copies if a is not v]

    def primal_form(self, results: Sequence[ir.Var]) -> ir.Def:
        """f.pri; a dimension of f that nothing in it mentions is dropped."""
        d, body = (
            self.d,
            ir.Block(self.live(self.context, results, self.d.xs), ir.Ret(tuple(results))),
        )
        made = ir.Def(d.name + PRI, d.xs, d.results, (), body)
        unread = [n for n in self.dims if n not in {*mentioned(made), *ir.free(body)}]
        drops = [ir.Let((), ir.drop(n)) for n in unread]
        return replace(made, body=ir.Block((*drops, *body.bindings), body.leaf))

    def primal(self, name: str) -> str:
        """The definition that gives the non-linear results alone: g for g.jvp, else f.pri."""
        g = of_jvp(name)
        return g if g != name and g in self.program.defs else name + PRI

    def recur(self, name: str) -> tuple[str, str, Named]:
        """The halves of a definition that is called, and its tape."""
        self.needed.append(name)
        return name + NL, name + LIN, Named(name + TAPE, self.program.dims(name))

    def hoisted(self, name: str, k: int) -> tuple[str, str, Named, tuple[int, ...]]:
        """The halves of the body of a loop, its tape, and which invariants f.lin takes first."""
        read = self.run.hoisted(name, k)
        nl, lin, tape = (name + suffix(half, k) for half in (NL, LIN, TAPE))
        return nl, lin, Named(tape, self.program.dims(name)), read

    def of_half(self, name: str) -> str | None:
        """The definition that a non-linear half is of, or None."""
        base, _, rest = name.rpartition(NL)
        plain = not rest or rest.startswith(("'", "."))
        return base if plain and base in self.program.defs else None

    def define(self, d: ir.Def) -> None:
        """A definition that a form needs beside the halves."""
        self.run.defs[d.name] = d

    @property
    def snapshots(self) -> int | None:
        """The number of snapshots with which the policy reverses loops, if it says so."""
        return getattr(self.policy, "snapshots", None)

    @property
    def types(self) -> dict[str, Type | Family]:
        """The types that this run defines."""
        return self.run.types

    def results(self, types: Sequence[Type]) -> tuple[ir.Var, ...]:
        """Variables for the non-linear results of an application."""
        return tuple([self.fresh("r", t) for t in types])

    def is_nonlinear(self, name: str) -> bool:
        """Whether a callee has no linear part."""
        return is_nonlinear(self.program, name)

    def fresh(self, like: str, type_: Any, linear: bool = False) -> ir.Var:
        """A variable with a name that is free."""
        return ir.Var(self.names(like), type_, linear, ir.line_of(self.here))

    def named(self, n: ir.Leaf) -> list[ir.Var]:
        """The variables of the non-linear results, bound if they have no names yet."""
        if isinstance(n, ir.Ret | ir.Copy):
            return list(n.args)
        results = [self.fresh("r", t) for t in self.d.results]
        self.context.append(ir.Let(tuple(results), n))
        return results

    # --- U -----------------------------------------------------------------------------------

    def expression(self, e: ir.Leaf | ir.Block) -> tuple[ir.Leaf, ir.Leaf | ir.Block]:
        """U(e): the context is written, n and m are given."""
        if isinstance(e, ir.Prim):
            return (EMPTY, e) if is_linear(e) else (e, EMPTY)
        if isinstance(e, ir.Block):
            return self.block(e)
        if isinstance(e, ir.Drop):
            n, m = self.expression(e.body)
            return forgotten(n), forgotten(m)
        if isinstance(e, ir.Application):
            return e.unzip(self)
        if isinstance(e, ir.Ret):
            return ir.Ret(e.xs), ir.Ret(e.lxs)
        return (EMPTY, e) if is_linear(e) else (e, EMPTY)

    def block(self, block: ir.Block) -> tuple[ir.Leaf, ir.Leaf | ir.Block]:
        """ULet, UUnpack and ULUnpack."""
        linear: list[ir.Binding] = []
        for b in block.bindings:
            self.here = b
            if isinstance(b, ir.Unpack):
                (linear if b.arg.linear else self.context).append(b)
                continue
            n, m = self.expression(b.rhs)
            if n is b.rhs or m is b.rhs:
                (self.context if n is b.rhs else linear).append(b)
                continue
            xs = tuple([v for v in b.vars if not v.linear])
            if not is_empty(n):
                self.context.append(ir.Let(xs, n))
            lxs = tuple([v for v in b.vars if v.linear])
            if not is_empty(m):
                linear.append(ir.Let(lxs, short(m)))
        self.here = block.leaf
        n, m = self.expression(block.leaf)
        return n, short(flat(linear, m))

    # --- the non-linear side --------------------------------------------------------------------

    def live(
        self, context: Sequence[ir.Binding], wanted: Sequence[ir.Var], formals: Sequence[ir.Var]
    ) -> tuple[ir.Binding, ...]:
        """The bindings that the non-linear side still needs; what is left over is dropped."""
        live, kept = set(wanted), []
        for b in reversed(context):
            dead = [v for v in b.vars if v not in live]
            if b.vars and len(dead) == len(b.vars) and not self.program.may_raise(b):
                continue
            b, dead = self.primal_call(b, dead)
            kept += [ir.Let((), ir.drop(v)) for v in dead]
            kept.append(b)
            live.update(ir.reads(b))
        unread = [x for x in formals if x not in live and x not in self.dims]
        kept += [ir.Let((), ir.drop(x)) for x in unread]
        return tuple(reversed(kept))

    def primal_call(self, b: ir.Binding, dead: list[ir.Var]) -> tuple[ir.Binding, list[ir.Var]]:
        """A call whose tape nobody reads calls the primal form, which makes none."""
        if not isinstance(b, ir.Let) or not isinstance(b.rhs, ir.Application):
            return b, dead
        leaf = b.rhs.without_tape(self, b, dead)
        if leaf is None:
            return b, dead
        vars_, made = leaf
        return ir.Let(vars_, made), [v for v in dead if v in vars_]


def is_linear(e: ir.Leaf) -> bool:
    """Whether a leaf belongs to the linear side."""
    for a in e.args:
        if a.linear:
            return True
    return isinstance(e, ir.Zero | ir.Tup) and e.linear


def without_rest(bindings: Sequence[ir.Binding], wanted: Iterable[ir.Var]) -> list[ir.Binding]:
    """The bindings, with drops of the variables that nothing reads."""
    read = {*wanted, *[v for b in bindings for v in ir.reads(b)]}
    return [
        one
        for b in bindings
        for one in (b, *[ir.Let((), ir.drop(v)) for v in b.vars if v not in read])
    ]


def is_empty(e: ir.Leaf | ir.Block) -> bool:
    """Whether an expression is (;), which has no results."""
    return isinstance(e, ir.Ret) and not e.args


def forgotten(e: ir.Leaf | ir.Block) -> ir.Leaf:
    """drop(e), or nothing where e has no results."""
    return EMPTY if is_empty(e) else ir.Drop((), e)


def flat(bindings: Sequence[ir.Binding], e: ir.Leaf | ir.Block) -> ir.Block:
    """The bindings, then e; `let (xs) = e in (xs)` is e."""
    if isinstance(e, ir.Block):
        bindings, e = (*bindings, *e.bindings), e.leaf
    last = bindings[-1] if bindings else None
    if isinstance(last, ir.Let) and isinstance(e, ir.Ret) and e.args and last.vars == e.args:
        return flat(bindings[:-1], last.rhs)
    return ir.Block(tuple(bindings), e)


def short(e: ir.Leaf | ir.Block) -> ir.Leaf | ir.Block:
    """A block without bindings is its leaf."""
    return e.leaf if isinstance(e, ir.Block) and not e.bindings else e


__all__ = ["Cut", "Policy", "store_all", "unzip"]
