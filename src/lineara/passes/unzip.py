"""U, unzipping:  U(e) = (C; n; m): non-linear bindings, a non-linear leaf, and linear code.

    f(xs ; ~as) -> (ss ; rs)    =>    f.nl (xs ;) -> (ss, f.tape ;)      C, then n and the tape
                                      f.lin(t: f.tape ; ~as) -> (; rs)   m, the tape taken apart

Partial evaluation that knows nothing of differentiation: what is non-linear happens first, and what
linear code reads of it goes on the tape.  Which bindings are stored and which ones computed again
in f.lin is free; a policy chooses  (spec, section 7).
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from lineara.errors import ProgramError
from lineara.linear_a.program import Program
from lineara.linear_a.syntax import (
    Applied,
    Binding,
    Block,
    Copy,
    Def,
    Drop,
    Leaf,
    Let,
    Names,
    Ret,
    Tup,
    Unpack,
    Var,
    Zero,
    drop,
    free,
    occurrences,
)
from lineara.passes.jvp import all_vars
from lineara.passes.names import JVP, LIN, NL, PRI, TAPE
from lineara.types import Named, Product, Type

EMPTY = Ret(())


class Cut(NamedTuple):
    """What a policy is asked: the context of one definition, and what its linear side reads."""

    program: Program
    name: str
    formals: tuple[Var, ...]
    context: tuple[Binding, ...]
    wanted: tuple[Var, ...]  # FN(m)


Policy = Callable[[Cut], "set[Binding]"]  # the bindings to compute again


def store_all(cut: Cut) -> set[Binding]:
    """Store every value that linear code reads."""
    return set()


def unzip(program: Program, name: str, policy: Policy = store_all) -> Program:
    """The program with `name.nl`, `name.lin`, their tape, and those of every callee.

    >>> from lineara.linear_a.parse import parse
    >>> p = unzip(parse("def f(x: f64; ~a: f64) -> (f64; f64) = (x; ~a)"), "f")
    >>> [*p.types, *p.defs]
    ['f.tape', 'f', 'f.nl', 'f.lin', 'f.pri']
    """
    run = Unzipping(program, policy)
    run.all(name)
    return program.with_(*run.defs.values(), types=run.types)


class Unzipping:
    """One run of the pass: the halves made so far, and the definitions still to be unzipped."""

    def __init__(self, program: Program, policy: Policy) -> None:
        self.program = program
        self.policy = policy
        self.defs: dict[str, Def] = {}
        self.types: dict[str, Type] = {}
        self.read: dict[tuple[str, int], tuple[int, ...]] = {}  # invariants that f.lin reads

    def all(self, name: str) -> None:
        """Unzip a definition and what it calls."""
        todo, found = [name], []
        while todo:
            f = todo.pop()
            if f in found or f + NL in self.program.defs:
                continue
            found.append(f)
            one = _Unzip(self, f)
            made = one.halves()
            self.defs = {d.name: d for d in made} | self.defs
            self.types = {f + TAPE: one.tape} | self.types
            todo += one.needed

    def hoisted(self, f: str, k: int) -> tuple[int, ...]:
        """Unzip the body of a loop; which of its first k formals f.lin takes beside the tape."""
        if (f, k) not in self.read:
            self.read[f, k] = ()  # a body that loops over itself stores them
            one = _Unzip(self, f, k)
            made = one.halves()
            self.defs |= {d.name: d for d in made}
            self.types[f + suffix(TAPE, k)] = one.tape
            self.read[f, k] = one.read
            for callee in one.needed:
                self.all(callee)
        return self.read[f, k]


def suffix(half: str, k: int) -> str:
    """The suffix of a half of a loop's body, whose first k formals are no part of the tape."""
    return f"{half}'{k}" if k else half


def is_nonlinear(program: Program, name: str) -> bool:
    """Whether a definition has no linear part, in its signature, its body, or what it calls."""
    todo, seen = [name], set()
    while todo:
        f = todo.pop()
        if f in seen:
            continue
        seen.add(f)
        if f not in program.defs:
            raise ProgramError(f"unzip: there is no definition {f}")
        d = program.defs[f]
        if d.lresults or any(v.linear for v in all_vars(d)) or has_zero(d.body):
            return False
        todo += functions(d.body)
    return True


def has_zero(e: Leaf | Block) -> bool:
    """Whether linear zeros are made and dropped without a name."""
    if isinstance(e, Zero):
        return e.linear
    if isinstance(e, Tup):
        return e.linear
    if isinstance(e, Drop):
        return has_zero(e.body)
    return isinstance(e, Block) and (
        any(isinstance(b, Let) and has_zero(b.rhs) for b in e.bindings) or has_zero(e.leaf)
    )


def functions(e: Leaf | Block) -> list[str]:
    """The definitions that an expression applies."""
    found: list[str] = []
    open_: list[Any] = [e]
    while open_:
        e = open_.pop()
        if isinstance(e, Applied):
            found += e.functions
        elif isinstance(e, Drop):
            open_.append(e.body)
        elif isinstance(e, Block):
            open_ += [b.rhs for b in e.bindings if isinstance(b, Let)]
            open_.append(e.leaf)
    return found


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
        self.read: tuple[int, ...] = ()
        self.needed: list[str] = []
        self.names = Names([v.name for v in all_vars(self.d)])
        self.context: list[Binding] = []
        self.tape = Product()

    def halves(self) -> list[Def]:
        """f.nl, f.lin, and f.pri where f has no primal form of its own."""
        d = self.d
        n, m = self.expression(d.body)
        results = self.named(n)
        wanted = free(m)
        cut = Cut(
            self.program, d.name, d.xs, tuple(self.context),
            tuple([v for v in wanted if not v.linear]),
        )  # fmt: skip
        again, stored = self.cut(cut)
        constant = d.xs[: self.invariants]
        self.read = tuple([i for i, x in enumerate(constant) if x in stored])
        beside = [constant[i] for i in self.read]
        stored = [v for v in stored if v not in beside]
        self.tape = Product(tuple([v.type for v in stored]))
        nl_, lin_, tape_ = (d.name + suffix(half, self.invariants) for half in (NL, LIN, TAPE))
        type_ = Named(tape_)
        t, t2 = Var(self.names("t"), type_), Var(self.names("t"), type_)
        kept = self.live([*self.context, Let((t,), Tup(tuple(stored)))], [*results, t], d.xs)
        nl = Def(nl_, d.xs, (*d.results, type_), (), Block(kept, Ret((*results, t))))
        lin = Def(
            lin_, (*beside, t2, *d.lxs), (), d.lresults,
            flat([Unpack(tuple(stored), t2), *again], m),
        )  # fmt: skip
        made = [nl, lin]
        if self.primal(d.name) == d.name + PRI and d.name + PRI not in self.run.defs:
            alone = self.live(self.context, results, d.xs)
            made.append(Def(d.name + PRI, d.xs, d.results, (), Block(alone, Ret(tuple(results)))))
        return made

    def primal(self, name: str) -> str:
        """The definition that gives the non-linear results alone: g for g.jvp, else f.pri."""
        g = name.removesuffix(JVP)
        return g if g != name and g in self.program.defs else name + PRI

    def recur(self, name: str) -> tuple[str, str, Named]:
        """The halves of a definition that is called, and its tape."""
        self.needed.append(name)
        return name + NL, name + LIN, Named(name + TAPE)

    def hoisted(self, name: str, k: int) -> tuple[str, str, Named, tuple[int, ...]]:
        """The halves of the body of a loop, its tape, and which invariants f.lin takes first."""
        read = self.run.hoisted(name, k)
        nl, lin, tape = (name + suffix(half, k) for half in (NL, LIN, TAPE))
        if not k:
            self.needed.append(name)
        return nl, lin, Named(tape), read

    def of_half(self, name: str) -> str | None:
        """The definition that a non-linear half is of, or None."""
        base, found, rest = name.rpartition(NL)
        plain = not rest or rest.startswith(("'", "."))
        return base if found and plain and base in self.program.defs else None

    def define(self, d: Def) -> None:
        """A definition that a form needs beside the halves."""
        self.run.defs[d.name] = d

    @property
    def types(self) -> dict[str, Type]:
        """The types that this run defines."""
        return self.run.types

    def results(self, types: Sequence[Type]) -> tuple[Var, ...]:
        """Variables for the non-linear results of something that is applied."""
        return tuple([self.fresh("r", t) for t in types])

    def is_nonlinear(self, name: str) -> bool:
        """Whether a callee has no linear part."""
        return is_nonlinear(self.program, name)

    def fresh(self, like: str, type_: Any, linear: bool = False) -> Var:
        """A variable with a name that is free."""
        return Var(self.names(like), type_, linear)

    def named(self, n: Leaf) -> list[Var]:
        """The variables of the non-linear results, bound if they have no names yet."""
        if isinstance(n, Ret | Copy):
            return list(n.args)
        results = [self.fresh("r", t) for t in self.d.results]
        self.context.append(Let(tuple(results), n))
        return results

    # --- U -----------------------------------------------------------------------------------

    def expression(self, e: Leaf | Block) -> tuple[Leaf, Leaf | Block]:
        """U(e): the context is written, n and m are given."""
        if isinstance(e, Block):
            return self.block(e)
        if isinstance(e, Drop):
            n, m = self.expression(e.body)
            return forgotten(n), forgotten(m)
        if isinstance(e, Applied):
            return e.unzip(self)
        if isinstance(e, Ret):
            return Ret(e.xs), Ret(e.lxs)
        return (EMPTY, e) if is_linear(e) else (e, EMPTY)

    def block(self, block: Block) -> tuple[Leaf, Leaf | Block]:
        """ULet, UUnpack and ULUnpack."""
        linear: list[Binding] = []
        for b in block.bindings:
            if isinstance(b, Unpack):
                (linear if b.arg.linear else self.context).append(b)
                continue
            n, m = self.expression(b.rhs)
            xs = tuple([v for v in b.vars if not v.linear])
            if xs or not is_empty(n):
                self.context.append(Let(xs, n))
            lxs = tuple([v for v in b.vars if v.linear])
            if lxs or not is_empty(m):
                linear.append(Let(lxs, short(m)))
        n, m = self.expression(block.leaf)
        return n, short(flat(linear, m)) if linear else m

    # --- the cut ------------------------------------------------------------------------------

    def cut(self, cut: Cut) -> tuple[list[Binding], list[Var]]:
        """What f.lin computes again, in order, and what goes on the tape, in binding order."""
        chosen = self.policy(cut)
        need = dict.fromkeys(cut.wanted)
        again: list[list[Binding]] = []
        for b in reversed(cut.context):
            if b in chosen and any(v in need for v in b.vars):
                unused = [v for v in b.vars if v not in need]
                again.append([b, *[Let((), drop(v)) for v in unused]])
                for v in b.vars:
                    need.pop(v, None)
                need |= dict.fromkeys(read_by(b))
        order = [*cut.formals, *[v for b in cut.context for v in b.vars]]
        stored = [v for v in order if v in need]
        return [b for group in reversed(again) for b in group], stored

    def live(
        self, context: Sequence[Binding], wanted: Sequence[Var], formals: Sequence[Var]
    ) -> tuple[Binding, ...]:
        """The bindings that the non-linear side still needs; what is left over is dropped."""
        live, kept = set(wanted), []
        for b in reversed(context):
            dead = [v for v in b.vars if v not in live]
            if b.vars and len(dead) == len(b.vars):
                continue
            b, dead = self.primal_call(b, dead)
            kept += [Let((), drop(v)) for v in dead]
            kept.append(b)
            live.update(read_by(b))
        kept += [Let((), drop(x)) for x in formals if x not in live]
        return tuple(reversed(kept))

    def primal_call(self, b: Binding, dead: list[Var]) -> tuple[Binding, list[Var]]:
        """A call whose tape nobody reads calls the primal form, which makes none."""
        if not isinstance(b, Let) or not isinstance(b.rhs, Applied) or not dead:
            return b, dead
        leaf = b.rhs.without_tape(self, b, dead)
        if leaf is None:
            return b, dead
        vars_, made = leaf
        return Let(vars_, made), [v for v in dead if v in vars_]


def is_linear(e: Leaf) -> bool:
    """Whether a leaf belongs to the linear side."""
    if isinstance(e, Zero | Tup):
        return e.linear
    return any(a.linear for a in e.args)


def read_by(b: Binding) -> Sequence[Var]:
    """The variables that a binding reads."""
    return (b.arg,) if isinstance(b, Unpack) else tuple(occurrences(b.rhs))


def is_empty(e: Leaf | Block) -> bool:
    """(;): nothing."""
    return isinstance(e, Ret) and not e.args


def forgotten(e: Leaf | Block) -> Leaf:
    """drop(e); of nothing it is nothing."""
    return EMPTY if is_empty(e) else Drop((), e)


def flat(bindings: Sequence[Binding], e: Leaf | Block) -> Block:
    """The bindings, then e; `let (xs) = e in (xs)` is e."""
    if isinstance(e, Block):
        bindings, e = (*bindings, *e.bindings), e.leaf
    last = bindings[-1] if bindings else None
    if isinstance(last, Let) and isinstance(e, Ret) and e.args and last.vars == e.args:
        return flat(bindings[:-1], last.rhs)
    return Block(tuple(bindings), e)


def short(e: Leaf | Block) -> Leaf | Block:
    """A block without bindings is its leaf."""
    return e.leaf if isinstance(e, Block) and not e.bindings else e


__all__ = ["Cut", "Policy", "functions", "store_all", "unzip"]
