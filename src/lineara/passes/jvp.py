"""J, forward mode:  J(φ; e), with φ from the variables of e to the names of their tangents.

    f(xs:ts ;) -> (ss ;)      =>      f.jvp(xs:ts ; ~dxs:ts') -> (ss ; ss')

Domain: definitions without linear formals, results or syntax.  φ has exactly the free variables of
e that have tangents, each tangent is free exactly once in the output, and the output has a tangent
for each differentiable result.  Integers and booleans have no tangent variable, and a constant has
none until its zero is asked for.

A tangent with arrays in it is threaded (docs/design/threading.md): what reads a part of it, a call,
a branch or a loop takes it and hands it on, and only what needs all of it takes a copy.  So a
definition has a jvp for each set of formals whose tangents it is asked to hand on, and for each way
in which one array is several of its formals:

    f.jvp.on0'2(xs ; ~dxs) -> (ss ; dx0, dx2, ss')       f.jvp.as0'1(xs ; ~dx0, ..) -> (ss ; ss')

The rule of a primitive is not written here: its declaration's one derivative fact is run on boxed
variables, once a signature, and the text that comes out is copied  [YOLO, §4].
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from lineara.errors import ProgramError
from lineara.facts.gc_pause import uncollected
from lineara.facts.hints import Value
from lineara.facts.primitive import Constant, Joint, registry, total
from lineara.facts.types import ArrayType, Type, carries_tangents, is_ring
from lineara.linear_a import syntax as ir
from lineara.linear_a.calls import call
from lineara.linear_a.check import Judge, hashable
from lineara.linear_a.dimensions import Samples
from lineara.linear_a.program import Program, tangent_type, tangent_types
from lineara.linear_a.rules_as_text import Boxed, Emitter, Text, chained, reboxed, text
from lineara.linear_a.show import show_def
from lineara.passes.names import JVP, mangled, tangent, variant
from lineara.passes.signatures import agree, defined, jvp_signature

Phi = dict[ir.Var, ir.Var]


@uncollected
def jvp(program: Program, name: str) -> Program:
    """The program with `name.jvp`, and with the jvp of every definition that it calls.

    Raises ProgramError for a definition with linear formals or results: erase it first.

    >>> from lineara.linear_a.parse import parse
    >>> from lineara.linear_a.show import show_def
    >>> print(show_def(jvp(parse("def f(x: f64;) -> (f64;) = exp(x)"), "f").defs["f.jvp"]))
    def f.jvp(x: f64; ~dx: f64) -> (f64; f64) =
      let y: f64 = exp(x) in
      let ~dy: f64 = y * ~dx in
      (y; ~dy)
    <BLANKLINE>
    """
    run = _Run(program)
    run.all(Wanted(name))
    return run.program()


class Wanted(NamedTuple):
    """A jvp: of which definition, which tangents are handed on, which formals are one array."""

    name: str
    on: tuple[int, ...] = ()  # formals
    same: tuple[tuple[int, ...], ...] = ()  # formals that share a tangent, that of the first

    @property
    def jvp(self) -> str:
        """Its name."""
        return variant(self.name, self.on, self.same)


class _Run:
    """What one run of the pass makes, and what it knows."""

    def __init__(self, program: Program) -> None:
        self.source = program
        self.rules: dict[Any, Text] = {}
        self.known: dict[Any, ArrayType] = {}
        self.done: dict[str, ir.Def] = {}
        self.helpers: dict[str, ir.Def] = {}
        self.seen: set[Type] = set()  # types whose tangents were asked for
        self.ruled: dict[str, bool] = {}

    def all(self, wanted: Wanted) -> None:
        """The jvp of a definition, and of all that it calls."""
        todo = [wanted]
        while todo:
            f = todo.pop()
            if f.jvp in self.done:
                continue
            if f.jvp in self.source.defs:
                if f.jvp == f.name + JVP:
                    there, d = self.source.defs[f.jvp], defined(self.source, f.name)
                    what = f"the definition {there.name} that the program has"
                    agree(self.source, what, there, jvp_signature(self.source, d))
                continue
            one = _Jvp(self, f)
            self.done[f.jvp] = one.definition()
            todo += one.needed

    def program(self) -> Program:
        """The source with what was made."""
        made = [self.done[f] for f in reversed(self.done)]
        program = self.source.with_(*self.helpers.values(), *made)
        return program.with_(types=tangent_types(program, iter(self.seen)))

    def has_rule(self, name: str) -> bool:
        """Whether the jvp of a definition is not the one that J would write."""
        there = self.source.defs.get(name + JVP)
        if there is None:
            return False
        if name not in self.ruled:
            self.ruled[name] = False  # in what it calls itself
            own = _Jvp(self, Wanted(name)).definition()
            self.ruled[name] = show_def(own) != show_def(there)
        return self.ruled[name]


class _Jvp:
    """J of one definition."""

    def __init__(self, run: _Run, wanted: Wanted) -> None:
        program, name = run.source, wanted.name
        if name not in program.defs:
            raise ProgramError(f"jvp: there is no definition {name}")
        self.run = run
        self.wanted = wanted
        self.program = program
        self.d = program.defs[name]
        self.judge = Judge(program, name, run.known)
        self.needed: list[Wanted] = []
        self.places: dict[ir.Var, Place] = {}
        self.tags: dict[ir.Var, ir.Inj] = {}  # what is bound to a value of a sum
        taken = [v.name for v in ir.binders(self.d)]
        self.out = Emitter(ir.Names(taken))

    def definition(self) -> ir.Def:
        """f.jvp."""
        d, (name, on, same) = self.d, self.wanted
        if d.lresults or any(v.linear for v in ir.binders(d)):
            raise ProgramError(
                f"jvp: {d.name} has linear variables or results; J differentiates the non-linear "
                f"fragment: erase {d.name} first"
            )
        for first, *others in same:
            self.places |= {d.params[i]: Place((d.params[first],)) for i in others}
        with_tangent = [x for x in d.params if self.has_tangent(x.type) and x not in self.places]
        phi = {x: self.tangent_of(x) for x in with_tangent}
        tangents = tuple(phi.values())
        ruled = (on or same) and self.run.has_rule(name)
        body = ir.Block((), call(name, *d.params)) if ruled else d.body
        body = self.block(body, phi, [d.params[i] for i in on])
        handed = [self.tangent_type(d.params[i].type) for i in on]
        results = [self.tangent_type(t) for t in d.results if self.has_tangent(t)]
        params = (*d.params, *tangents)
        return ir.Def(self.wanted.jvp, params, d.results, (*handed, *results), body)

    def recur(self, name: str, on: Sequence[int] = (), same: Sequence[Any] = ()) -> str:
        """The name of the jvp of a definition that is called."""
        self.needed.append(Wanted(name, tuple(on), tuple(same)))
        return self.needed[-1].jvp

    def define(self, d: ir.Def) -> None:
        """A definition that a form needs beside the jvps."""
        self.run.helpers[d.name] = d

    def mangled(self, t: Type) -> str:
        """The text of a type as part of a name."""
        return mangled(t)

    # --- tangents ----------------------------------------------------------------------------

    def has_tangent(self, t: Type) -> bool:
        """Whether values of the type have tangents."""
        if isinstance(t, ArrayType):
            return carries_tangents(t.dtype)
        return not self.program.is_inert(t)

    def tangent_type(self, t: Type) -> Type:
        """t'."""
        self.run.seen.add(t)
        return tangent_type(self.program, t)

    def tangent_of(self, x: ir.Var) -> ir.Var:
        """A fresh variable for the tangent of x."""
        return self.out.fresh(tangent(x.name), self.tangent_type(x.type), True)

    def split(self, phi: Phi, here: Iterable[ir.Var], later: Iterable[ir.Var]) -> Phi:
        """Tangents for the roots that a binding reads; what is needed later is dup'd."""
        tangents = {}
        for x in here:
            if x in phi:
                if x in later:
                    (tangents[x], phi[x]), chain = chained(self.out, phi[x], 2)
                    self.out.bindings += chain
                else:
                    tangents[x] = phi.pop(x)
        return tangents

    def operands(
        self, phi: Phi, args: Sequence[ir.Var], later: Iterable[ir.Var] = ()
    ) -> list[ir.Var | None]:
        """A tangent for every occurrence, zero for a constant; None for integers and booleans."""
        pairs = zip(args, self.known(phi, args, later), strict=True)
        return [d or (self.zero_of(a) if self.has_tangent(a.type) else None) for a, d in pairs]

    def known(
        self, phi: Phi, args: Sequence[ir.Var], later: Iterable[ir.Var] = ()
    ) -> list[ir.Var | None]:
        """A tangent for every occurrence of a variable; None for constants.

        Of what is needed later, one more stays in φ.
        """
        times: dict[ir.Var, int] = {}
        for a in args:
            for x in self.roots((a,)) if a in self.places else (a,):
                times[x] = times.get(x, 0) + 1
        ready: dict[ir.Var, Any] = {}
        for x, n in times.items():
            if x in phi:
                made, chain = chained(self.out, phi.pop(x), n + (x in later))
                self.out.bindings += chain
                if x in later:
                    phi[x] = made.pop()
                ready[x] = iter(made)
        return [self.built(a, ready) for a in args]

    # --- where tangents are --------------------------------------------------------------------

    def place(self, b: ir.Binding) -> None:
        """Note if the tangent of what is bound is that of another variable, view or product."""
        e = b.rhs if isinstance(b, ir.Let) else None
        if isinstance(e, ir.Prim):
            if e.name in VIEWS and is_threaded(self.program, e.args[0].type):
                self.places[b.vars[0]] = Place(e.args, view=e)
        elif isinstance(b, ir.Unpack) and is_threaded(self.program, b.arg.type):
            at = self.named(b.arg)
            if at not in self.places:
                self.places[at] = Place(b.vars, product=b.arg.type)
                return
            self.places |= {v: Place((x,)) for v, x in zip(b.vars, self.places[at].of, strict=True)}
        elif isinstance(e, ir.Copy | ir.Ret):
            pairs = zip(b.vars, e.args, strict=True)
            self.places |= {v: Place((x,)) for v, x in pairs if self.has_tangent(v.type)}
        elif isinstance(e, ir.Tup) and is_threaded(self.program, b.vars[0].type):
            with_tangent = [x for x in e.args if self.has_tangent(x.type)]
            if len(self.roots(with_tangent)) == sum([len(self.roots([x])) for x in with_tangent]):
                self.places[b.vars[0]] = Place(e.args, product=b.vars[0].type)

    def named(self, v: ir.Var) -> ir.Var:
        """The variable that this one is a name for."""
        while v in self.places and self.places[v].is_name:
            (v,) = self.places[v].of
        return v

    def roots(self, vs: Iterable[ir.Var]) -> dict[ir.Var, None]:
        """The variables that have the tangents of these."""
        roots: dict[ir.Var, None] = {}
        todo = [*vs]
        if self.places.keys().isdisjoint(todo):
            return {v: None for v in todo if self.has_tangent(v.type)}
        todo.reverse()
        while todo:
            v = todo.pop()
            if v in self.places:
                todo += self.places[v].of[::-1]
            elif self.has_tangent(v.type):
                roots[v] = None
        return roots

    def active(self, phi: Phi, vs: Iterable[ir.Var]) -> bool:
        """Whether one of the variables has a tangent."""
        return any(x in phi for x in self.roots(vs))

    def built(self, v: ir.Var, ready: dict[ir.Var, Any]) -> ir.Var | None:
        """The tangent of a variable from those of its roots; None if none has one."""
        if v not in self.places:
            return next(ready[v]) if v in ready else None
        if not any(x in ready for x in self.roots([v])):
            return None
        p = self.places[v]
        parts = [self.built(x, ready) for x in p.of]
        if p.is_name:
            return parts[0]
        u = self.tangent_type(v.type)
        if p.view is not None:
            e = ir.Prim(tuple(parts), p.view.primitive, p.view.params)  # type: ignore[arg-type]
            return self.out.bind(tangent(v.name), u, e, linear=True)
        of = zip(p.of, parts, strict=True)
        parts = [self.zero_of(x) if d is None else d for x, d in of]
        e = ir.Tup(tuple(parts), True, getattr(self.program.unfold(v.type), "fields", None))  # type: ignore[arg-type]
        return self.out.bind(tangent(v.name), u, e, linear=True)

    def given_back(self, v: ir.Var, d: ir.Var, phi: Phi, taken: Iterable[ir.Var]) -> None:
        """The tangent of a variable is d again, and so those of the roots that were taken."""
        if v not in self.places:
            if v in taken:
                phi[v] = d
            else:
                self.discard([d])
            return
        p = self.places[v]
        if p.view is not None:
            x = p.of[0]
            params = inverse(p.view)
            e = ir.Prim((d,), p.view.primitive, params)
            u = self.tangent_type(x.type)
            d = self.out.bind(tangent(x.name), u, e, linear=True)
        if p.product is None:
            self.given_back(p.of[0], d, phi, taken)
            return
        tangents = [self.tangent_of(x) for x in p.of]
        self.out.bindings.append(ir.Unpack(tuple(tangents), d))
        for x, t in zip(p.of, tangents, strict=True):
            self.given_back(x, t, phi, taken)

    # --- blocks -------------------------------------------------------------------------------

    def block(self, block: ir.Block, phi: Phi, on: Sequence[ir.Var] = ()) -> ir.Block:
        """JLet and JUnpack along the bindings, then the leaf; the tangents of `on` come first."""
        outside, self.out.bindings = self.out.bindings, []
        around, self.places = self.places, dict(self.places)
        last: dict[ir.Var, int] = {}
        moved: list[dict[ir.Var, None]] = []  # what a binding reads, where its tangent is of that
        for i, b in enumerate(block.bindings):
            here = self.roots(ir.reads(b))
            self.place(b)
            moved.append({} if self.has_zero_tangent(b) or self.has_no_tangent(b) else here)
            last |= dict.fromkeys(moved[-1], i)
        n = len(block.bindings)
        last |= dict.fromkeys(self.roots(block.leaf.operands()), n)
        last |= dict.fromkeys(self.roots(on), n + 1)
        self.places = dict(around)
        self.discard([phi.pop(x) for x in list(phi) if x not in last])
        for i, (b, here) in enumerate(zip(block.bindings, moved, strict=True)):
            self.out.line = ir.line_of(b)
            self.binding(b, here, phi, last, i)
        self.out.line = ir.line_of(block.leaf)
        leaf = self.ending(block.leaf, phi, on)
        made = ir.Block(tuple(self.out.bindings), leaf)
        self.out.bindings, self.places = outside, around
        return made

    def binding(
        self, b: ir.Binding, here: dict[ir.Var, None], phi: Phi, last: dict[ir.Var, int], i: int
    ) -> None:
        """One binding, which reads the tangents of `here`; a block is entered to find out."""
        plain = isinstance(b, ir.Unpack) or type(b.rhs) not in ir.NESTS
        constant = plain and not any([x in phi for x in here])
        if isinstance(b, ir.Unpack) and not constant:
            self.unpack(b, phi, last, i)
            self.place(b)
            return
        self.place(b)
        if isinstance(b, ir.Let) and isinstance(b.rhs, ir.Inj):
            self.tags[b.vars[0]] = b.rhs
        if constant or isinstance(b, ir.Unpack):
            self.out.bindings.append(b)
            return
        later = [x for x in here if x in phi and last[x] > i]
        if isinstance(b.rhs, ir.Prim) and b.rhs.name == "index":
            self.index(b, b.rhs, phi, last, i)
            return
        if isinstance(b.rhs, ir.Drop):
            self.out.bindings.append(ir.Let((), self.dropped(b.rhs, phi, later)))
            return
        with_tangent = [v for v in b.vars if self.has_tangent(v.type)]
        if not isinstance(b.rhs, (ir.Application, ir.Block)):
            tangents = self.leaf(b.rhs, b.vars, self.split(phi, here, later))
            self.enter(zip(with_tangent, tangents, strict=True), phi, last)
            return
        on = [x for x in later if self.hands_on(b.rhs, x)]
        local = self.split(phi, here, [x for x in later if x not in on])
        made = self.inner(b.rhs, local, on)
        handed = [self.out.fresh(tangent(x.name), self.tangent_type(x.type), True) for x in on]
        tangents = [self.tangent_of(v) for v in with_tangent]
        self.out.bindings.append(ir.Let((*b.vars, *handed, *tangents), made))
        phi.update(zip(on, handed, strict=True))
        self.enter(zip(with_tangent, tangents, strict=True), phi, last)

    def hands_on(self, e: ir.Leaf | ir.Block, x: ir.Var) -> bool:
        """Whether J of a right-hand side gives the tangent of a variable back."""
        if isinstance(e, ir.Application) and e.HANDS_ALL_ON:
            return True
        return isinstance(e, ir.Application | ir.Block) and is_threaded(self.program, x.type)

    def has_zero_tangent(self, b: ir.Binding) -> bool:
        """Whether the tangent is zero whatever the operands are: of a comparison, of a rounding."""
        if not isinstance(b, ir.Let) or not isinstance(b.rhs, ir.Prim):
            return False
        inert = not any([self.has_tangent(v.type) for v in b.vars])
        return inert or isinstance(b.rhs.primitive, Constant)

    def has_no_tangent(self, b: ir.Binding) -> bool:
        """Whether the tangents of what is bound are those of other variables."""
        if not self.places:
            return False
        if isinstance(b, ir.Unpack):
            return bool(b.vars) and b.vars[0] in self.places
        if isinstance(b.rhs, ir.Application | ir.Block):
            return False
        with_tangent = [v for v in b.vars if self.has_tangent(v.type)]
        return bool(with_tangent) and all([v in self.places for v in with_tangent])

    def enter(
        self, tangents: Iterable[tuple[ir.Var, ir.Var]], phi: Phi, last: dict[Any, Any]
    ) -> None:
        """Enter new tangents; drop those that are read only where the tangent is zero."""
        for v, t in tangents:
            if v in last:
                phi[v] = t
            else:
                self.discard([t])

    def inner(
        self, e: ir.Leaf | ir.Block, phi: Phi, on: Sequence[ir.Var] = ()
    ) -> ir.Leaf | ir.Block:
        """A right-hand side: a leaf where its J is one, else a block."""
        if isinstance(e, ir.Block):
            return self.block(e, phi, on)
        outside, self.out.bindings = self.out.bindings, []
        leaf = self.ending(e, phi, on)
        made = ended(self.out.bindings, leaf)
        self.out.bindings = outside
        return made

    def ending(self, e: ir.Leaf, phi: Phi, on: Sequence[ir.Var]) -> ir.Leaf:
        """J of a leaf, with the tangents of `on` before those of its results."""
        if isinstance(e, ir.Application):
            leaf = e.jvp(self, phi, self.roots(on))
        elif isinstance(e, ir.Drop):
            leaf = self.dropped(e, phi, self.roots(on))
        elif isinstance(e, ir.Prim) and e.name == "index" and on and self.active(phi, e.args):
            y = self.out.fresh("y", self.judge.leaf(e)[0][0])
            leaf = ir.Ret((y, self.read(ir.Let((y,), e), e, phi, self.roots(on))))
        else:
            used = self.split(phi, self.roots(e.operands()), self.roots(on))
            leaf = self.last(e, used)
        if not on:
            return leaf
        if isinstance(leaf, ir.Drop):
            self.out.bindings.append(ir.Let((), leaf))
            leaf = ir.Ret(())
        assert isinstance(leaf, ir.Ret), "a form binds what it hands on"
        handed = [t for t in self.operands(phi, on) if t is not None]
        return ir.Ret((*leaf.xs, *handed, *leaf.lxs))

    def unpack(self, b: ir.Unpack, phi: Phi, last: dict[ir.Var, int], i: int) -> None:
        """JUnpack: the tangent is taken apart as the value is."""
        if is_threaded(self.program, b.arg.type):  # and is put together again where it is needed
            x = self.named(b.arg)
            d = phi.pop(x)
        else:
            here = self.roots([b.arg])
            (d,) = self.split(phi, here, [x for x in here if last[x] > i]).values()
        self.out.bindings.append(b)
        tangents = [self.tangent_of(v) for v in b.vars]
        self.out.bindings.append(ir.Unpack(tuple(tangents), d))
        for v, t in zip(b.vars, tangents, strict=True):
            if self.has_tangent(v.type):
                self.enter([(v, t)], phi, last)
            else:
                self.discard([t])

    def dropped(self, e: ir.Drop, phi: Phi, later: Iterable[ir.Var]) -> ir.Drop:
        """JDrop; the value alone where tangents are needed later, and other tangents."""
        here = [x for x in self.roots(e.operands()) if x in phi]
        local = {x: phi.pop(x) for x in here if x not in later}
        if len(local) == len(here):
            return ir.Drop((), self.inner(e.body, local))
        self.discard([*local.values()])
        return e

    def discard(self, tangents: Sequence[ir.Var]) -> None:
        """Drop tangents."""
        for t in tangents:
            self.out.bindings.append(ir.Let((), ir.drop(t)))

    # --- what forms ask for --------------------------------------------------------------------

    def threaded(
        self, phi: Phi, e: ir.Application, defs: Sequence[tuple[str, int]], spots: Iterable[int],
        later: Iterable[ir.Var],
    ) -> "Threaded":  # fmt: skip
        """The tangents for the arguments of a form; what is needed later is handed on.

        That may be arguments at `spots`.  `defs` are the definitions that are applied, and how many
        arguments come before their first formal.
        """
        args, every = e.args, e.HANDS_ALL_ON
        later, k = set(later), defs[0][1]
        formals = [(self.program.defs[f].params, n) for f, n in defs]
        ruled = len(defs) == 1 and not every and self.run.has_rule(defs[0][0])
        open_ = {
            i for i in spots
            if self.has_tangent(args[i].type)
            and (every or (not ruled and is_threaded(self.program, args[i].type)))
        }  # fmt: skip
        groups: dict[int, list[int]] = {}  # arguments that are one array, by the first
        for i, a in enumerate(args):
            first = i
            if i in open_ and self.active(phi, [a]) and is_threaded(self.program, a.type):
                same = [
                    j for j in groups if j in open_ and self.named(args[j]) is self.named(a)
                    and all(ps[i - n].type == ps[j - n].type for ps, n in formals)
                ]  # fmt: skip
                first = same[0] if same else i
            groups.setdefault(first, []).append(i)
        uses: dict[ir.Var, int] = {}
        for i in groups:
            for x in self.roots([args[i]]):
                uses[x] = uses.get(x, 0) + 1
        on: list[int] = []
        back: list[tuple[ir.Var, list[ir.Var]]] = []
        for i in sorted(open_ & set(groups)):
            mine = [x for x in self.roots([args[i]]) if x in phi]
            alone = all([uses[x] == 1 for x in mine]) and any([x in later for x in mine])
            if alone or every:
                on.append(i)
                back.append((args[i], mine if alone else []))
        held = {x for _, mine in back for x in mine}
        tangents = self.operands(phi, [args[i] for i in groups], later - held)
        return Threaded(
            tuple([t for t in tangents if t is not None]),
            tuple([i - k for i in on]),
            tuple([tuple([i - k for i in g]) for g in groups.values() if len(g) > 1]),
            back,
            later,
        )

    def handed(self, t: "Threaded", e: ir.Leaf, ts: Sequence[Type], phi: Phi) -> ir.Leaf:
        """The form with results of types ts; what it hands on is in φ again."""
        if not t.on and not t.later:
            return e
        ys = [self.out.fresh("y", s) for s in ts]
        rest = [self.tangent_of(a) for a, _ in t.back]
        dys = [self.out.fresh("dy", self.tangent_type(s), True) for s in ts if self.has_tangent(s)]
        self.out.bindings.append(ir.Let((*ys, *rest, *dys), e))
        for (a, mine), d in zip(t.back, rest, strict=True):
            wanted = [x for x in mine if x in t.later]
            if wanted:
                self.given_back(a, d, phi, wanted)
            else:
                self.discard([d])
        return ir.Ret((*ys, *dys))

    # --- leaves -------------------------------------------------------------------------------

    def last(self, e: ir.Leaf, phi: Phi) -> ir.Leaf:
        """J of the leaf of a block, in a leaf: its values and their tangents."""
        if isinstance(e, ir.Ret | ir.Copy):
            tangents = [t for t in self.operands(phi, e.args) if t is not None]
            return ir.Ret((*e.args, *tangents))
        ys = tuple([self.out.fresh("y", t) for t in self.judge.leaf(e)[0]])
        return ir.Ret((*ys, *self.leaf(e, ys, phi)))

    def leaf(self, e: ir.Leaf, ys: ir.Vars, phi: Phi) -> ir.Vars:
        """J of a leaf: it is bound to ys, then come the bindings of their tangents."""
        if not ys or not isinstance(e, NONLINEAR):
            what = type(e).__name__.lower()
            raise ProgramError(f"jvp: {what} is linear syntax; erase it first")
        (y,) = ys
        self.out.bindings.append(ir.Let(ys, e))
        if not self.has_tangent(y.type):
            self.discard([d for d in self.known(phi, e.args) if d is not None])
            return ()
        match e:
            case ir.Prim():
                return (self.prim(e, y, phi),)
            case ir.Tup():
                return (self.tup(e, y, phi),)
            case ir.Accum() | ir.Put():
                made = type(e)(tuple(self.operands(phi, e.args)), e.at)  # type: ignore[arg-type]
                return (self.bind(y, made),)  # one dtype, so all move
            case ir.Inj() | ir.Proj():
                return (self.tagged(e, y, phi),)
        return (self.zero(y.type),)  # JLit

    def zero(self, t: Type) -> ir.Var:
        """A zero tangent for a value of type t."""
        u = self.tangent_type(t)
        return self.out.bind("dy", u, ir.zero(u), linear=True)

    def zero_of(self, x: ir.Var) -> ir.Var:
        """A zero tangent for a value; it has its tag, where that is known."""
        e = self.tags.get(self.named(x))
        if e is None or not self.has_tangent(x.type):
            return self.zero(x.type)
        (payload,) = e.args
        d = self.zero_of(payload)
        return self.bind(x, ir.Inj((d,), e.tag, self.tangent_type(x.type)))

    def bind(self, y: ir.Var, e: ir.Leaf) -> ir.Var:
        """The tangent of y, which is bound to a leaf."""
        return self.out.bind(tangent(y.name), self.tangent_type(y.type), e, linear=True)

    def tup(self, e: ir.Tup, y: ir.Var, phi: Phi) -> ir.Var:
        """JTup; what does not move has a zero of the unit in the tangent."""
        pairs = zip(e.args, self.operands(phi, e.args), strict=True)
        parts = [self.zero(a.type) if d is None else d for a, d in pairs]
        return self.bind(y, ir.Tup(tuple(parts), True, e.fields))

    def tagged(self, e: ir.Inj | ir.Proj, y: ir.Var, phi: Phi) -> ir.Var:
        """A tangent has the tag of its value."""
        (d,) = self.operands(phi, e.args)
        if isinstance(e, ir.Inj):
            d = self.zero_of(e.args[0]) if d is None else d
            return self.bind(y, ir.Inj((d,), e.tag, self.tangent_type(y.type)))
        assert d is not None
        return self.bind(y, ir.Proj((d,), e.tag))

    def prim(self, e: ir.Prim, y: ir.Var, phi: Phi) -> ir.Var:
        """JPrim: the text of the primitive's rule, copied."""
        if not isinstance(self.program.unfold(y.type), ArrayType):  # a sum of products
            made = ir.Prim(tuple(self.operands(phi, e.args)), e.primitive)  # type: ignore[arg-type]
            return self.bind(y, made)
        tangents = self.known(phi, e.args)
        active = tuple([i for i, d in enumerate(tangents) if d is not None])
        given = [d for d in tangents if d is not None]
        if not active or isinstance(e.primitive, Constant):
            self.discard(given)
            return self.zero(y.type)
        rule = self.rule(e, y, active)
        likes = {v: tangent(y.name) for v in rule.results}
        (dy,) = rule.copied((y, *e.operands(), *given), self.out, likes)
        return dy

    def index(self, b: ir.Let, e: ir.Prim, phi: Phi, last: dict[ir.Var, int], i: int) -> None:
        """JRead: the part is read and the array handed on, so n reads are no n copies."""
        part = self.read(b, e, phi, [x for x in self.roots(e.args) if last[x] > i])
        self.enter([(b.vars[0], part)], phi, last)

    def read(self, b: ir.Let, e: ir.Prim, phi: Phi, later: Iterable[ir.Var]) -> ir.Var:
        """The tangent of the part; the array's stays in φ if it is needed later."""
        (x,), (y,) = e.args, b.vars
        taken = [r for r in self.roots([x]) if r in phi and r in later]
        (dx,) = self.known(phi, [x])
        assert dx is not None
        part, rest = self.tangent_of(y), self.tangent_of(x)
        self.out.bindings += [b, ir.Let((part, rest), ir.Read((dx,), ir.parts_of(e.params["at"])))]
        if taken:
            self.given_back(x, rest, phi, taken)
        else:
            self.discard([rest])
        return part

    def rule(self, e: ir.Prim, y: ir.Var, active: tuple[int, ...]) -> Text:
        """The derivative fact of a primitive at these types, as text over formals of its own."""
        known = tuple([a.type for a in e.operands()]), active
        return remembered(self.run.rules, e, known, lambda: rule_text(e, y.type, active))


NONLINEAR = ir.Lit | ir.Zero | ir.Tup | ir.Prim | ir.Accum | ir.Put | ir.Inj | ir.Proj
VIEWS = ("reshape", "permute_dims")  # what they give has the numbers of what they take


class Place(NamedTuple):
    """Where the tangent of a variable is: that of another, a view of it, or of several."""

    of: ir.Vars
    view: ir.Prim | None = None
    product: Type | None = None

    @property
    def is_name(self) -> bool:
        """Whether it is another name."""
        return self.view is None and self.product is None


class Threaded(NamedTuple):
    """The tangents that a form is given, and what it hands on."""

    tangents: ir.Vars
    on: tuple[int, ...]  # formals
    same: tuple[tuple[int, ...], ...]
    back: list[
        tuple[ir.Var, list[ir.Var]]
    ]  # a value handed on -> the variables whose tangents it has
    later: set[ir.Var]


def is_threaded(program: Program, t: Type) -> bool:
    """Whether values of a type have arrays that move, of which a part may be read."""
    return not program.is_inert(t) and not all(
        isinstance(s, ArrayType) and not s.shape for s in program.leaves(t)
    )


def inverse(view: ir.Prim) -> dict[str, Any]:
    """The parameters with which a view is undone."""
    if view.name == "reshape":
        return {"shape": view.args[0].type.shape}  # type: ignore[union-attr]
    axes = view.params["axes"]
    return {"axes": tuple([axes.index(i) for i in range(len(axes))])}


def ended(bindings: Sequence[ir.Binding], leaf: ir.Leaf) -> ir.Leaf | ir.Block:
    """The bindings, then the leaf; what is bound and given at once is the right-hand side."""
    last = bindings[-1] if bindings else None
    if (
        isinstance(last, ir.Let)
        and isinstance(leaf, ir.Ret)
        and leaf.args
        and last.vars == leaf.args
    ):
        (*bindings,), leaf = bindings[:-1], last.rhs  # type: ignore[assignment]
        if isinstance(leaf, ir.Block):
            return ir.Block((*bindings, *leaf.bindings), leaf.leaf)
    return ir.Block(tuple(bindings), leaf) if bindings else leaf


def remembered(
    rules: dict[Any, Text], e: ir.Prim, known: tuple[Any, ...], make: Callable[[], Text]
) -> Text:
    """The text of a rule, made once; anew where a parameter cannot be part of a key."""
    try:
        key = (e.primitive, known, hashable(e.params))
        hash(key)
    except TypeError:
        return make()
    if key not in rules:
        rules[key] = make()
    return rules[key]


def rule_text(e: ir.Prim, y: Type, active: tuple[int, ...]) -> Text:
    """y, args and parameters, then tangents of the active ones, to the tangent of y."""
    operands = e.operands()
    formals: ir.Vars = (
        ir.Var("y", y),
        *[ir.Var(f"x{i}", a.type) for i, a in enumerate(operands)],
        *[ir.Var(f"d{i}", e.args[i].type, True) for i in active],
    )
    n, k = len(operands), len(e.args)

    def rule(samples: Samples, boxed: Boxed, *rest: Any) -> Sequence[Any]:
        if is_ring(y):
            return [in_ring(e.primitive, boxed, rest[:k], dict(zip(active, rest[n:], strict=True)))]
        params = reboxed(e.params, iter(rest[k:n]), samples.at)
        joint = e.primitive.linearize(boxed, rest[:k], active, params, recur)
        return [joint.forward(rest[n:])]

    def recur(of_tangents: Callable[..., Any], types: list[Any]) -> Joint:
        return Joint(lambda tangents: of_tangents(*tangents), _no_transpose)

    return text(e, rule, formals, [y])


def in_ring(p: Any, y: Boxed, args: Sequence[Boxed], tangents: dict[int, Boxed]) -> Any:
    """The tangent of a primitive of elements of a ring, each factor on its side."""
    sided = getattr(p, "sided", ())
    if not sided:
        known = [q.name for q in registry.primitives.values() if getattr(q, "sided", ())]
        raise ProgramError(
            f"jvp: {p.name} has no derivative in a ring, whose products may not commute; "
            f"there is {', '.join(known)}"
        )
    return total([sided[i](d, y, *args) for i, d in tangents.items()])


def _no_transpose(y_bar: Value) -> Any:
    raise AssertionError("J asks no rule for its transpose")
