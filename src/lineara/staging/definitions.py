"""A definition of a program and what it is run with: it is run, tested, called and derived.

Whatever is traced ends as one: a function (`tracing.Staged`), a function within another one
(`definition_of.Apart`), and every derivative that the passes make of these.
"""

import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

from lineara import engines
from lineara.engines import Ask, Engine, Entering, Outcome, run
from lineara.facts.types import ArrayType, Named
from lineara.linear_a.calls import Call
from lineara.linear_a.identity import identity
from lineara.linear_a.program import Program
from lineara.linear_a.syntax import (
    Block,
    Def,
    Leaf,
    Let,
    Mapped,
    Names,
    Prim,
    Ret,
    Var,
    binders,
    drop,
    leaves,
    reads,
)
from lineara.linear_a.unmade import Later, Unmade, program_of
from lineara.passes.batch import OverLanes, over_lanes
from lineara.passes.derivatives import vjp
from lineara.passes.erase import erase
from lineara.passes.jvp import jvp
from lineara.passes.masks import live_type, makes_dead_lanes, masks
from lineara.passes.names import JVP, MS, E, M, T
from lineara.passes.rename import rename
from lineara.passes.taylor import along_curve
from lineara.staging.staged_level import Seen, StagedLevel
from lineara.tape.levels import threads

_VALUES = Ask()
PASSES = "passes"
KILLS = "dead lanes of the "  # a question of which other processes may have the answer


class Definition(NamedTuple):
    """A definition of a program, and what it is run with.

    program, name     the program, and the name of the definition in it
    rules             of the definitions whose derivatives the user states
    seen              what is known of the results beside their types
    engine            the one that runs it, or its name; None: the first that can what is asked
    """

    program: Program
    name: str
    rules: dict[str, Any]
    seen: Sequence[Seen] | None = None
    engine: Engine | str | None = None

    @property
    def text(self) -> Def:
        """The definition itself; of a derivative that is made later, its formals and results."""
        return self.program.outline.defs[self.name]

    def of(self, program: Program, suffix: str = "") -> "Definition":
        """The definition that a pass has made of this one, in the program that it gave."""
        return Definition(program, self.name + suffix, self.rules, engine=self.engine)

    def run(self, operands: Sequence[Any], ask: Ask = _VALUES, checked: bool = True) -> Outcome:
        """The results on plain values, and what else is asked for."""
        engine = None if ask.needs() else self.engine
        return run(self.program, self.name, *operands, ask=ask, checked=checked, engine=engine)

    def test(self, operands: Sequence[Any]) -> None:
        """Test rules of the user's that were not tested yet, with the values that reach them."""
        if not all([rule.is_tested for rule in self.rules.values()]):
            self.run(operands, Ask(entering=(_tests_of(self.rules),)))

    def call(self, level: StagedLevel, args: Sequence[Any]) -> list[Any]:
        """A call in the definition that is being written."""
        called = needed(self.program, self.name).outline
        level.shared.passes += self.program.seconds.pop(PASSES, 0.0)
        level.add(*called.defs.values())
        level.shared.types |= called.types
        level.applied([self.name])
        level.shared.rules |= {k: r for k, r in self.rules.items() if k in called.defs}
        made = [level.out.fresh("v", t) for t in self.text.results]
        leaf = Call(tuple([level.as_box(a).var for a in args]), (self.name,))
        level.out.bindings.append(Let(tuple(made), leaf))
        if self.seen is None:
            return [level.wrap(level.out.box(v)) for v in made]
        return [level.given(v, like) for v, like in zip(made, self.seen, strict=True)]

    def moving(self) -> tuple[list[int], list[int]]:
        """The places of the formals and of the results that have tangents."""
        d, inert = self.text, self.program.is_inert
        xs = [i for i, v in enumerate(d.params) if not inert(v.type)]
        return xs, [i for i, t in enumerate(d.results) if not inert(t)]

    def derived(self, way: str, masked: bool = False, strong: bool = False) -> "Definition":
        """f.jvp or f.vjp (`way`) without its values, and with all variables alike.

        If asked for, each tangent or cotangent stands beside its mask.  The name is one that no
        pass gives: f'jvp'e.
        """
        lanes = (MS if strong else M) if masked else ""
        known, key = self.program.noted["derived"], (self.name, way, lanes)
        if key not in known:
            known[key] = self._later(way, lanes) if self._may_wait(way) else self._made(way, lanes)
            known[key].program.seconds[PASSES] = self.program.seconds.pop(PASSES, 0.0)
        alike = known[key]
        ahead = {} if isinstance(alike.program, Unmade) else self._rules_ahead(alike.program)
        return alike._replace(rules={**ahead, **self.rules}, engine=self.engine)

    def _made(self, way: str, lanes: str) -> "Definition":
        """The derived definition, by the passes."""
        program, name = self.along(way)
        with self.program.takes_time(PASSES):
            if any(self.program.acting.values()):
                program = done(program)
            program = masks(program, name, lanes == MS) if lanes else erase(program, name)
            name += lanes or E
            alone = vectors_only(program.defs[name], len(self.text.results))
            return self.renamed(program.with_(alone), name)

    # --- derivatives that are made later ----------------------------------------------------------

    def _may_wait(self, way: str) -> bool:
        """Whether the derivative may be made later.

        What is said of it before is said of this definition, so it has plain arrays, and neither
        acts nor has a rule of the user's.  Errors of the passes are to be raised here, so they have
        been run, or an earlier process has run them.
        """
        program, d = self.program, self.text
        outline = program.outline
        reached = {*outline.reached(self.name, rules=(JVP, T, E))}
        types = (*[v.type for v in d.params], *d.results)
        plain = all([isinstance(t, ArrayType) and t.dtype.kind in "fciub" for t in types])
        if not plain or outline.acting[self.name] or outline.dims(self.name):
            return False
        if any([f in reached for f in self.rules]) or any([JVP in f for f in reached]):
            return False
        self.kills(way)
        return True

    def _later(self, way: str, lanes: str) -> "Definition":
        """The derived definition, with its formals and results alone."""
        d, name = self.text, f"{self.name}'{way}'{(lanes or E)[1:]}"
        moving = [[d.params[i].type for i in self.moving()[0]]]
        moving.append([d.results[i] for i in self.moving()[1]])
        given, got = moving if way == "jvp" else moving[::-1]
        vectors = [t for u in given for t in ((u, live_type(u)) if lanes else (u,))]
        results = tuple([t for u in got for t in ((u, live_type(u)) if lanes else (u,))])
        names = Names([v.name for v in d.params])
        params = (*d.params, *[Var(names("v"), t) for t in vectors])

        def told() -> str:
            text = identity(self.program, self.name)
            return f"{name} of {text}" if text else ""

        later = Later(
            name, params, results, (), Block((), Call(d.params, (self.name,))),
            make=lambda: self._made(way, lanes).program, told=told, keep=lambda: self._keep(way),
        )  # fmt: skip
        shell = needed(self.program, self.name).outline.with_(later)
        return Definition(needed(shell, name), name, self.rules)

    def kills(self, way: str) -> bool:
        """Whether vectors without dead lanes may get some in the linear part."""
        known, key = self.program.noted["kills"], (self.name, way)
        if key not in known:
            written = any([isinstance(v, StagedLevel) for v in threads.open])
            asked = written and key not in self.program.noted["along"]
            answer = engines.facts.fact(self.program, self.name, KILLS + way) if asked else None
            known[key] = makes_dead_lanes(*self.along(way)) if answer is None else answer
        return known[key]

    def _keep(self, way: str) -> None:
        """Have other processes know what the passes have found out."""
        if (self.name, way) in self.program.noted["along"]:
            engines.facts.keep_fact(self.program, self.name, KILLS + way, self.kills(way))

    def _rules_ahead(self, derived: Program) -> dict[str, "_Ahead"]:
        """Of definitions derived of one with a rule, that rule: they may run where it does not."""
        return {
            g: _Ahead(rule, len(self.program.defs[f].params))
            for f, rule in self.rules.items() if f in self.program.defs
            for g in derived.defs if _DERIVED.fullmatch(g.removeprefix(f))
        }  # fmt: skip

    def over_lanes(self, axes: tuple[int | None, ...], size: int) -> "Definition":
        """The definition over lanes, which all of its results have; None is a formal without.

        ProgramError where the program cannot have lanes.
        """
        known, key = self.program.noted["lanes"], (self.name, axes, size)
        if key not in known:
            with self.program.takes_time(PASSES):
                known[key] = _batched(Same.of(self.program, self.name), axes, size)
            known[key][0].seconds[PASSES] = self.program.seconds.pop(PASSES)
        program, name, origins = known[key]
        rules = {
            new: _OverLanes(self.rules[old], axes)
            for new, (old, axes) in origins.items()
            if old in self.rules
        }
        return Definition(program, name, {**self.rules, **rules}, engine=self.engine)

    def along_curve(self, moves: tuple[bool, ...], order: int) -> "Definition":
        """The definition along a curve: coefficients up to an order, of the formals that move.

        NoRuleError where there is no series.
        """
        known, key = self.program.noted["curves"], (self.name, moves, order)
        if key not in known:
            with self.program.takes_time(PASSES):
                known[key] = _expanded(Same.of(self.program, self.name), moves, order)
            known[key][0].seconds[PASSES] = self.program.seconds.pop(PASSES)
        program, name = known[key]
        return Definition(program, name, self.rules, engine=self.engine)

    def along(self, way: str) -> tuple[Program, str]:
        """The program with f.jvp or f.vjp, and its name."""
        known = self.program.noted["along"]
        if (self.name, way) not in known:
            with self.program.takes_time(PASSES):
                known[self.name, way] = {"jvp": jvp, "vjp": vjp}[way](self.program.whole, self.name)
        return known[self.name, way], f"{self.name}.{way}"

    def renamed(self, program: Program, name: str) -> "Definition":
        """A derived definition and what it needs, each suffix of a pass after an apostrophe."""
        before = {*self.program.defs, *self.program.types}
        acting = self.program.acting

        def named(f: str) -> str:
            if f in before:
                return f"{f}'done" if acting.get(f) else f
            base = max((g for g in before if f.startswith(f"{g}.")), key=len, default="")
            return base + f[len(base) :].replace(".", "'")

        return Definition(rename(needed(program, name), named), named(name), self.rules)


class _OverLanes(NamedTuple):
    """A rule of the user's over lanes: it is tested with the values of the first one."""

    rule: Any
    axes: Sequence[int | None]

    @property
    def is_tested(self) -> bool:
        """Whether the rule was tested."""
        return self.rule.is_tested

    def test(self, values: Sequence[Any]) -> None:
        """Test it with the first values that reach it."""
        if not self.is_tested:
            given = values[len(values) - len(self.axes) :]  # the number of lanes may come first
            pairs = zip(given, self.axes, strict=True)
            self.rule.test([v if a is None else v[0] for v, a in pairs])


# After the name of a definition, in what is derived of it and is given what it was given.
_DERIVED = re.compile(r"[.'](jvp|vjp|done)((?![.'](lin|t)\b).)*")


class _Ahead(NamedTuple):
    """A rule, where a derivative is given the values of its definition, and vectors after them."""

    rule: Any
    formals: int

    @property
    def is_tested(self) -> bool:
        """Whether the rule was tested."""
        return self.rule.is_tested

    def test(self, values: Sequence[Any]) -> None:
        """Test it with the values that come first."""
        self.rule.test(values[: self.formals])


class _Done(Mapped):
    """What acts has done so."""

    def leaf(self, e: Leaf) -> Leaf:
        """A leaf; one that acts does nothing any more."""
        if isinstance(e, Prim) and e.primitive.acts:
            return Prim(e.args, e.primitive, {**e.params, "done": True})
        return super().leaf(e)


def done(program: Program) -> Program:
    """The program, in which what acts has acted already: the values are calculated once more."""
    acting = program.acting
    return program.with_(*[_Done().definition(d) for f, d in program.defs.items() if acting[f]])


def _tests_of(rules: Mapping[str, Any]) -> Entering:
    """Shows rules the values that their definitions are given, as these are entered."""

    def see(machine: Any, name: str, values: list[Any]) -> None:
        if name in rules:
            rules[name].test(values)

    return see


def needed(program: Program, name: str) -> Program:
    """The definitions that one applies, with their rules, and the types that these mention."""
    outline = program.outline
    reached = {*outline.reached(name, rules=(JVP, T, E))}
    defs = {f: d for f, d in outline.defs.items() if f in reached}
    types = named_types(outline, defs.values()) if outline.types else {}
    return program_of(types, defs, lambda whole: needed(whole, name))


@dataclass(frozen=True)
class Same:
    """A definition of a program; of the same text, it is the same, for passes too."""

    text: str
    program: Program = field(compare=False)
    name: str = field(compare=False)

    @classmethod
    def of(cls, program: Program, name: str) -> Self:
        """The definition with what it needs; lines that errors name and effects are of the text."""
        whole = needed(program, name)
        every = [leaf for d in whole.defs.values() for leaf in leaves(d.body)]
        prims = [leaf for leaf in every if isinstance(leaf, Prim)]
        lines = [p.params.get("line") for p in prims if p.primitive.raised]
        lines += [v.line for d in whole.defs.values() for v in binders(d)]
        effects = [id(p.params["effect"]) for p in prims if p.primitive.acts]
        return cls(f"{name} in {whole}, {lines}, {effects}", whole, name)


@functools.lru_cache(maxsize=64)
def _batched(one: Same, axes: tuple[int | None, ...], size: int) -> OverLanes:
    return over_lanes(one.program, one.name, axes, size)


@functools.lru_cache(maxsize=64)
def _expanded(one: Same, moves: tuple[bool, ...], order: int) -> tuple[Program, str]:
    return along_curve(one.program, one.name, moves, order)


def named_types(program: Program, defs: Iterable[Def]) -> dict[str, Any]:
    """The named types that definitions mention, or that these types mention in turn."""
    of_binders = {id(v.type): v.type for d in defs for v in binders(d)}  # of which few differ
    open_: list[Any] = [*of_binders.values()]
    open_ += [t for d in defs for t in (*d.results, *d.lresults)]
    names = set()
    while open_:
        t = open_.pop()
        if isinstance(t, Named) and t.name not in names:
            names.add(t.name)
            open_.append(program.stated(t.name))
        elif not isinstance(t, ArrayType | Named):
            open_ += t.items
    return {k: t for k, t in program.types.items() if k in names}


def vectors_only(d: Def, values: int) -> Def:
    """A derived definition without its first results, which are the values."""
    bindings, leaf = list(d.body.bindings), d.body.leaf
    if not isinstance(leaf, Ret):
        names = Names([v.name for v in binders(d)])
        made = tuple([Var(names("r"), t) for t in d.results])
        bindings, leaf = [*bindings, Let(made, leaf)], Ret(made)
    results = leaf.args[values:]
    used = {v for b in bindings for v in reads(b)} | set(results)
    bindings += [Let((), drop(v)) for v in dict.fromkeys(leaf.args[:values]) if v not in used]
    body = Block(tuple(bindings), Ret(results))
    return Def(d.name, d.params, d.results[values:], (), body)
