"""Rules of the user's in a program: what they state is traced, and made linear by `regain`.

    custom_jvp      f, and a rule (xs, dxs) -> (ys, dys), linear in dxs:   f.jvp
    custom_vjp      f, fwd, and bwd (k, cs) -> bars, linear in cs:         f.jvp calls fwd and bwd.t
    custom_linear   f, linear in some xs, and its transpose:               f.jvp calls f.map

The program keeps them under the names that the passes would give, so every pass and every order
finds them.  Types prove them linear; that they are right is tested with the first values that reach
them, as outside of a trace.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from lineara.errors import LinearityError, PickleError, RuleError, StagingError
from lineara.facts.types import ArrayType, Product, type_of
from lineara.linear_a import syntax as ir
from lineara.linear_a.calls import Call
from lineara.linear_a.infer_linear import Flags, have_tangents, regain
from lineara.linear_a.program import Program
from lineara.linear_a.rules_as_text import Boxed
from lineara.passes import rules_in_text
from lineara.passes.names import JVP, E, T
from lineara.passes.signatures import jvp_signature
from lineara.python.user_code import lifted
from lineara.rules.call_as_operation import Form, encloses, still, wrote
from lineara.rules.pullback import Pullback
from lineara.staging.control_flow import Fragment, fragment, is_operand, plain_key, written
from lineara.staging.staged_level import Seen, StagedLevel, seen
from lineara.staging.value_and_map import own
from lineara.tape.levels import innermost_level
from lineara.tape.node import Traced, plain
from lineara.trees import flatten, unflatten

Types = list[ArrayType | None]


class Spelled:
    """A rule at arguments of some types, as definitions of a program.

    places    the leaves of the arguments that are formals; the others are constants
    body      what f writes, and the types of its results: None for constants
    """

    rule: Any
    options: dict[str, Any]
    level: StagedLevel
    form: Form
    body: Fragment

    def __init__(
        self,
        rule: Any,
        level: StagedLevel,
        leaves: Sequence[Any],
        form: Form,
        options: dict[str, Any],
    ) -> None:
        self.rule, self.level, self.form, self.options = rule, level, form, options
        self.leaves: list[Any] = list(leaves)
        self.spell: Callable[..., Any] = KINDS[rule.operation]
        self.places: list[int] = [
            i for i, v in enumerate(leaves) if is_operand(v) and rule.is_formal(v, i, form)
        ]
        self.boxes: list[Boxed] = [level.as_box(leaves[i]) for i in self.places]
        self.given: list[Seen] = [seen(leaves[i]) for i in self.places]
        self.xs: list[ArrayType] = [like.type for like in self.given]
        self.moves: Flags = have_tangents(self.xs)
        self.flat: dict[str, ir.Def] = {}  # the definitions before they were made linear
        self.residuals: Any = None  # the containers of what fwd keeps for bwd
        self.linears: Flags = ()  # the formals in which a custom_linear is linear

    @property
    def key(self) -> Any:
        """What calls of one definition share."""
        given = {*self.places}
        rest = [plain_key(v) for i, v in enumerate(self.leaves) if i not in given]
        options = [(k, plain_key(v)) for k, v in sorted(self.options.items())]
        likes = [(like, type(like.lay)) for like in self.given]
        return (self.rule, *likes, tuple(self.places), self.form, *rest, *options)

    def call(self) -> Any:
        """The call of f in the definition that is being written; f and the rule are made first."""
        known = self.level.called.get(self.key)
        if known is None:
            known = self
            self.value()
            self.level.called[self.key] = self
            self.level.shared.rules[self.name] = self
            self.spell(self)
        leaf = Call(tuple([b.var for b in self.boxes]), (known.name,))
        made = iter(written(self.level, leaf, known.likes))
        pairs = zip(known.body.leaves, known.types, strict=True)
        leaves = [v if t is None else next(made) for v, t in pairs]
        return unflatten(known.body.structure, leaves)

    # --- what is traced --------------------------------------------------------------------------

    def value(self) -> None:
        """f."""

        def call(g: Callable[..., Any], nodes: Sequence[Any]) -> Any:
            return g(*lifted(self.form.arguments(self.filled(nodes))), **self.options)

        self.body = body = self.text(self.rule.f, self.formals(), call)
        kinds = Boxed | float | complex | np.ndarray
        self.types: Types = [type_of(v) if isinstance(v, kinds) else None for v in body.leaves]
        self.results: list[ArrayType] = [t for t in self.types if t is not None]
        self.likes: list[Seen] = [body.seen(i) for i, t in enumerate(self.types) if t is not None]
        self.name: str = body.name
        self.level.add(body.define([], self.types, False, ()))

    def formals(self) -> list[tuple[str, Seen]]:
        """Names of what is given, and what is known of it."""
        return [(f"x{i}", like) for i, like in enumerate(self.given)]

    def filled(self, nodes: Sequence[Any]) -> list[Any]:
        """The leaves of the arguments, with these for the formals."""
        at = dict(zip(self.places, nodes, strict=True))
        return [at.get(i, v) for i, v in enumerate(self.leaves)]

    def text(
        self, f: Callable[..., Any], formals: Sequence[tuple[str, Seen]], call: Callable[..., Any]
    ) -> Fragment:
        """What a function of the user's writes; it has its arguments and nothing else."""

        def closed(g: Callable[..., Any], nodes: Sequence[Any]) -> Any:
            inner = innermost_level()
            assert isinstance(inner, StagedLevel), "a fragment is written at its level"
            inner.literals = True
            out = call(g, nodes)
            for v in flatten(out)[0]:
                if isinstance(v, Traced):
                    inner.entered(v)
            if inner.around:
                raise encloses(repr(self.rule))
            if any(n.shape and n.w.buffer.version for n in nodes):
                raise wrote(repr(self.rule))
            return out

        return fragment(self.level, f, "rule", formals, closed)

    def moved(self, leaves: Sequence[Any], types: Types) -> list[Any]:
        """Of one thing for each leaf, those of the leaves that move."""
        pairs = zip(leaves, types, strict=True)
        return [v for v, t in pairs if t is not None and have_tangents([t])[0]]

    def alike(self, who: str, leaves: Sequence[Any]) -> None:
        """Refuse a value that is not like that of f."""
        if len(leaves) != len(self.types):
            raise RuleError(
                f"{self.rule!r}: {who} returns a value of {len(leaves)} leaves, the function "
                f"{len(self.types)}; they must be alike"
            )
        for v, t in zip(leaves, self.types, strict=True):
            if t is not None and type_of(v).shape != t.shape:
                raise RuleError(
                    f"{self.rule!r}: {who} returns a value {type_of(v)}, the function {t}; "
                    "they must be alike"
                )

    # --- what is installed -----------------------------------------------------------------------

    def flattened(self, body: Fragment, leaves: Sequence[Any], types: Sequence[Any]) -> ir.Def:
        """What was traced as a definition; a leaf that is None is zero."""
        filled = [_zeros(t) if v is None else v for v, t in zip(leaves, types, strict=True)]
        made = body._replace(leaves=filled).define([], types, False, ())
        self.flat[made.name] = made
        return made

    def program(self) -> Program:
        """The definitions so far."""
        return self.level.shared.program(*self.flat.values())

    def linear(self, d: ir.Def, flags: Flags, want: Flags, made: str, who: str) -> Program:
        """The program with a definition that is linear where flags say so."""
        try:
            return regain(self.program(), d.name, flags, want, made)
        except LinearityError as e:
            raise LinearityError(f"{self.rule!r}: {who} must be linear, but {e.message}") from None

    def install(self, program: Program) -> None:
        """Keep the definitions of a program."""
        new = {k: d for k, d in program.defs.items() if k not in self.flat}
        self.level.add(*new.values())

    @property
    def is_tested(self) -> bool:
        """Whether the rule was tested."""
        return self.rule.is_checked

    def __reduce__(self) -> Any:
        if not self.is_tested:
            raise PickleError(
                f"pickle: {self.rule!r} was not tested yet, and a pickled program has nothing to "
                "test its rules with; call the program once before, or declare the rule with "
                "check=False"
            )
        return Tested, ()

    def test(self, values: Sequence[Any]) -> None:
        """Test the rule with the first values that reach it."""
        if self.is_tested:
            return
        try:
            leaves = self.filled([own(plain(v)) for v in values])
        except (LinearityError, StagingError):  # a type without a value: wait for one
            return
        self.rule.check_once(leaves, self.form, self.options)


class Tested(NamedTuple):
    """A rule that was tested before its program was pickled."""

    is_tested = True

    def test(self, values: Sequence[Any]) -> None:
        """Nothing is left to test."""


def _zeros(t: ArrayType) -> Any:
    return np.zeros(t.shape, t.dtype) if t.shape else t.dtype.type(0)


# --- custom_jvp -----------------------------------------------------------------------------------


def spell_jvp(s: Spelled) -> None:
    """f.jvp is the rule."""
    rule, k = s.rule, len(s.places)
    dxs = [(f"d{n}", Seen(like.type)) for n, like in s.formals() if have_tangents([like.type])[0]]
    held = [i for i, m in zip(s.places, s.moves, strict=True) if m]

    def call(g: Any, nodes: Sequence[Any]) -> Any:
        xs, at = s.filled(nodes[:k]), dict(zip(held, nodes[k:], strict=True))
        dots = [at[i] if i in at else still(v) for i, v in enumerate(xs)]
        out = g(lifted(s.form.arguments(xs)), lifted(s.form.arguments(dots)), **s.options)
        y, y_dot = rule.parts(out)
        return flatten(y)[0], rule.aligned(y, y_dot)

    body = s.text(rule.jvp, [*s.formals(), *dxs], call)
    n = len(body.leaves) // 2
    s.alike("the rule", body.leaves[:n])
    pairs = zip(body.leaves[:n], s.types, strict=True)
    ys = [v for v, t in pairs if t is not None]
    dys, us = s.moved(body.leaves[n:], s.types), s.moved(s.types, s.types)
    flat = s.flattened(body, [*ys, *dys], [*s.results, *us])
    flags = (*(False,) * k, *(True,) * len(dxs))
    want = (*(False,) * len(ys), *(True,) * len(dys))
    program = s.linear(flat, flags, want, s.name + JVP, "the rule, in the tangents,")
    s.install(program)


# --- custom_vjp -----------------------------------------------------------------------------------


def spell_vjp(s: Spelled) -> None:
    """f.jvp calls fwd and then the transpose of bwd."""
    rule = s.rule

    def call(g: Any, nodes: Sequence[Any]) -> Any:
        y, residuals = rule.parts(g(*lifted(s.form.arguments(s.filled(nodes))), **s.options))
        s.residuals = flatten(residuals)[1]
        return flatten(y)[0], flatten(residuals)[0]

    ahead = s.text(rule.fwd, s.formals(), call)
    n = len(ahead.leaves) - s.residuals.leaf_count
    s.alike("fwd", ahead.leaves[:n])
    kept = [v for v in ahead.leaves[n:] if isinstance(v, Boxed)]
    rs = [type_of(v) for v in kept]
    pairs = zip(ahead.leaves[:n], s.types, strict=True)
    ys = [v for v, t in pairs if t is not None]
    fwd = s.flattened(ahead, [*ys, *kept], [*s.results, *rs])
    cs = s.moved(s.types, s.types)

    def back(g: Callable[..., Any], nodes: Sequence[Any]) -> Any:
        left, bars = iter(nodes[: len(rs)]), iter(nodes[len(rs) :])
        residuals = [next(left) if isinstance(v, Boxed) else v for v in ahead.leaves[n:]]
        y_bar = [
            next(bars) if t is not None and have_tangents([t])[0] else still(v)
            for v, t in zip(s.body.leaves, s.types, strict=True)
        ]
        given = unflatten(s.residuals, residuals), unflatten(s.body.structure, y_bar)
        y = unflatten(s.body.structure, s.body.leaves)
        pull = Pullback(rule, s.leaves, s.form, y, None)
        return pull.aligned(g(*lifted(given)))

    held = [ahead.seen(i) for i, v in enumerate(ahead.leaves) if i >= n and isinstance(v, Boxed)]
    formals = [(f"r{i}", like) for i, like in enumerate(held)]
    formals += [(f"c{i}", Seen(t)) for i, t in enumerate(cs)]
    body = s.text(rule.bwd, formals, back)
    us = [t for t, m in zip(s.xs, s.moves, strict=True) if m]
    bars = [v for v, m in zip([body.leaves[i] for i in s.places], s.moves, strict=True) if m]
    flat = s.flattened(body, bars, us)
    flags = (*(False,) * len(rs), *(True,) * len(cs))
    made, lead = flat.name + ".l", s.name
    program = s.linear(flat, flags, (True,) * len(us), made, "bwd, in y_bar,")
    program = program.with_(_taped(fwd, len(s.results), f"{lead}.fwd"))
    program = program.with_(_untaped(program.defs[made], f"{lead}.bwd"))
    program = rules_in_text.custom_vjp(program, lead, f"{lead}.fwd", f"{lead}.bwd", test=False)
    s.flat = {d.name: d for d in (fwd, flat)}
    s.install(program)


def _taped(d: ir.Def, n: int, name: str) -> ir.Def:
    """The definition with all results but n in one product."""
    names = ir.Names([v.name for v in d.params] + [v.name for b in d.body.bindings for v in b.vars])
    assert isinstance(d.body.leaf, ir.Ret), "a traced definition ends with its results"
    results = d.body.leaf.args
    k = ir.Var(names("k"), Product(tuple(d.results[n:])))
    body = ir.Block(
        (*d.body.bindings, ir.Let((k,), ir.Tup(results[n:]))), ir.Ret((*results[:n], k))
    )
    return ir.Def(name, d.params, (*d.results[:n], k.type), (), body)


def _untaped(d: ir.Def, name: str) -> ir.Def:
    """The definition with its non-linear formals in one product."""
    names = ir.Names([v.name for v in d.params] + [v.name for b in d.body.bindings for v in b.vars])
    k = ir.Var(names("k"), Product(tuple([v.type for v in d.xs])))
    body = ir.Block((ir.Unpack(d.xs, k), *d.body.bindings), d.body.leaf)
    return ir.Def(name, (k, *d.lxs), d.results, d.lresults, body)


# --- custom_linear --------------------------------------------------------------------------------


def spell_linear(s: Spelled) -> None:
    """f.jvp calls f.map, which is f made linear; its transpose is that of the user."""
    rule, n = s.rule, len(s.places)
    flags = rule.linear_leaves(s.form)
    s.linears = tuple([flags[i] for i in s.places])
    others = [p for p, f in zip(s.formals(), s.linears, strict=True) if not f]
    held = [i for i, f in zip(s.places, s.linears, strict=True) if not f]
    active = [i for i, f in zip(s.places, s.linears, strict=True) if f]
    cs = s.moved(s.types, s.types)

    def back(g: Any, nodes: Sequence[Any]) -> Any:
        at = dict(zip(held, nodes, strict=False))
        bars = iter(nodes[len(held) :])
        y_bar = [
            next(bars) if t is not None and have_tangents([t])[0] else still(v)
            for v, t in zip(s.body.leaves, s.types, strict=True)
        ]
        filled = [at.get(i, v) for i, v in enumerate(s.leaves)]
        args = s.form.arguments(filled)
        rest = [a for i, a in enumerate(args) if i not in rule.places]
        x_bar = g(*lifted([unflatten(s.body.structure, y_bar), *rest]), **s.options)
        return rule.x_bars(x_bar, s.leaves, s.form, active)

    body = s.text(rule.transpose, [*others, *[(f"c{i}", Seen(t)) for i, t in enumerate(cs)]], back)
    us = [t for t, f in zip(s.xs, s.linears, strict=True) if f]
    flat = s.flattened(body, body.leaves, us)
    f, there = s.level.shared.defs[s.name], f"{s.name}.map"
    for t, m in zip(s.results, have_tangents(s.results), strict=True):
        if not m:
            raise RuleError(
                f"{rule!r}: the result {t} has no tangent, but a linear function gives vectors "
                "only; leave it out, or declare a custom_jvp"
            )
    k = n - len(us)
    flags = (*(False,) * k, *(True,) * len(cs))
    program = s.linear(flat, flags, (True,) * len(us), f"{there}{T}", "the transpose")
    s.install(program)
    program = s.linear(f, s.linears, (True,) * len(cs), there, "the function")
    program = rules_in_text.custom_linear(program, there, f"{there}{T}", test=False)
    program = program.with_(_by_map(program, f, s, there))
    program = program.with_(_erased(f, s, there + E))
    s.install(program)


def _by_map(program: Program, d: ir.Def, s: Spelled, there: str) -> ir.Def:
    """f.jvp: the value by f, the tangent by its map."""
    wanted = jvp_signature(program, d)
    names = ir.Names([v.name for v in wanted.params])
    ys = [ir.Var(names("y"), t) for t in d.results]
    dys = [ir.Var(names("dy"), t, True) for t in wanted.lresults]
    at = dict(
        zip([v for v, m in zip(d.params, s.moves, strict=True) if m], wanted.lxs, strict=True)
    )
    pairs = list(zip(d.params, s.linears, strict=True))
    xs, dxs = [v for v, f in pairs if not f], [at[v] for v, f in pairs if f]
    rest = [ir.Let((), ir.drop(v)) for x, v in at.items() if v not in dxs]
    body = ir.Block(
        (
            *rest,
            ir.Let(tuple(ys), Call(d.params, (d.name,))),
            ir.Let(tuple(dys), Call((*xs, *dxs), (there,))),
        ),
        ir.Ret((*ys, *dys)),
    )
    return ir.Def(d.name + JVP, wanted.params, d.results, wanted.lresults, body)


def _erased(d: ir.Def, s: Spelled, name: str) -> ir.Def:
    """f.map.e is f, so that its derivative is what the user stated too."""
    formals = [ir.Var(v.name, v.type) for v in d.params]
    order = sorted(range(len(formals)), key=lambda i: s.linears[i])
    body = ir.Block((), Call(tuple(formals), (d.name,)))
    return ir.Def(name, tuple([formals[i] for i in order]), d.results, (), body)


KINDS: dict[str, Callable[[Spelled], None]] = {
    "custom_jvp": spell_jvp,
    "custom_vjp": spell_vjp,
    "custom_linear": spell_linear,
}
