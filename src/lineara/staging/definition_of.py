"""A function as a definition of its own, on values of any kind; what it mentions becomes formals.

Lanes are made of such a definition, and a loop within a differentiation within a trace is one, as
an operation of the differentiation.
"""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

from lineara.engines import run
from lineara.facts.types import ArrayType
from lineara.linear_a.calls import Call
from lineara.linear_a.program import Program
from lineara.linear_a.rules_as_text import closed
from lineara.linear_a.syntax import Block, Def, Let, Names, Ret, Var, binders, drop, reads
from lineara.passes.derivatives import vjp
from lineara.passes.erase import erase
from lineara.passes.jvp import jvp
from lineara.passes.masks import makes_dead_lanes, masks
from lineara.passes.names import MS, E, M
from lineara.passes.rename import rename
from lineara.python.user_code import overlay
from lineara.staging.staged_arrays import as_box
from lineara.staging.staged_level import Seen, StagedLevel, seen, weakness
from lineara.staging.tracing import VARIABLE, needed
from lineara.tape.levels import innermost_level, open_level, threads
from lineara.tape.node import Traced
from lineara.tape.strides import strides_of
from lineara.trees import Structure, flatten, unflatten


class Text(NamedTuple):
    """A definition of a program, and the rules of the user's that the program has."""

    program: Program
    name: str
    rules: dict[str, Any]
    seen: Sequence[Seen] | None = None  # what is known of the results beside their types

    @property
    def definition(self) -> Def:
        """The definition."""
        return self.program.defs[self.name]

    def run(self, values: Sequence[Any]) -> list[Any]:
        """The results on plain values."""
        return list(run(self.program, self.name, *values).results)

    def call(self, level: StagedLevel, args: Sequence[Any]) -> list[Any]:
        """A call in the definition that is being written."""
        called = needed(self.program, self.name)
        level.add(*called.defs.values())
        level.shared.types |= called.types
        level.applied([self.name])
        level.shared.rules |= {k: r for k, r in self.rules.items() if k in called.defs}
        made = [level.out.fresh("v", t) for t in self.definition.results]
        leaf = Call(tuple([level.as_box(a).var for a in args]), (self.name,))
        level.out.bindings.append(Let(tuple(made), leaf))
        if self.seen is None:
            return [level.wrap(level.out.box(v)) for v in made]
        return [level.given(v, like) for v, like in zip(made, self.seen, strict=True)]

    def moving(self) -> tuple[list[int], list[int]]:
        """The places of the formals and of the results that have tangents."""
        d, inert = self.definition, self.program.is_inert
        xs = [i for i, v in enumerate(d.params) if not inert(v.type)]
        return xs, [i for i, t in enumerate(d.results) if not inert(t)]

    def derived(self, way: str, masked: bool = False, strong: bool = False) -> "Text":
        """f.jvp or f.vjp (`way`) without its values, and with all variables alike.

        If asked for, each tangent or cotangent stands beside its mask.  The name is one that no
        pass gives: f'jvp'e.
        """
        lanes = (MS if strong else M) if masked else ""
        known = self.program.noted["derived"]
        if (self.name, way, lanes) not in known:
            program, name = self.along(way)
            program = masks(program, name, lanes == MS) if lanes else erase(program, name)
            name += lanes or E
            alone = vectors_only(program.defs[name], len(self.definition.results))
            known[self.name, way, lanes] = self.renamed(program.with_(alone), name)
        return known[self.name, way, lanes]._replace(rules=self.rules)

    def kills(self, way: str) -> bool:
        """Whether vectors without dead lanes may get some on the way."""
        return makes_dead_lanes(*self.along(way))

    def along(self, way: str) -> tuple[Program, str]:
        """The program with f.jvp or f.vjp, and its name."""
        known = self.program.noted["along"]
        if (self.name, way) not in known:
            known[self.name, way] = {"jvp": jvp, "vjp": vjp}[way](self.program, self.name)
        return known[self.name, way], f"{self.name}.{way}"

    def renamed(self, program: Program, name: str) -> "Text":
        """A derived definition and what it needs, each suffix of a pass after an apostrophe."""
        before = {*self.program.defs, *self.program.types}

        def named(f: str) -> str:
            if f in before:
                return f
            base = max((g for g in before if f.startswith(f"{g}.")), key=len, default="")
            return base + f[len(base) :].replace(".", "'")

        return Text(rename(needed(program, name), named), named(name), self.rules)


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


class Apart(NamedTuple):
    """A function that was traced apart, and what its definition is to be given."""

    text: Text
    given: list[int]  # the arguments that are its first formals
    mentions: list[Any]  # the values of the others
    structure: Structure
    constants: list[Any]  # of the results; VARIABLE in the place of a variable

    def tree(self, values: Sequence[Any], constant: Callable[[Any], Any] = lambda c: c) -> Any:
        """What the function gives, with these for what the definition gives."""
        left = iter(values)
        leaves = [next(left) if c is VARIABLE else constant(c) for c in self.constants]
        return unflatten(self.structure, leaves)


def staged_around() -> StagedLevel | None:
    """The innermost definition that is being written, whatever differentiations lie in it."""
    return next((v for v in reversed(threads.open) if isinstance(v, StagedLevel)), None)


def apart(
    f: Callable[..., Any], values: Sequence[Any], types: Sequence[ArrayType | None], like: str
) -> Apart:
    """`f(*values)` as a definition; values without a type are constants of it."""
    around = staged_around()
    innermost = around is not None and around is innermost_level()
    with open_level(StagedLevel) as level:
        if around is not None:
            level.shared = around.shared
        with around.holding(level) if around is not None and innermost else nullcontext():
            level.adopts = True
            pairs = list(zip(values, types, strict=True))
            nodes = [v if t is None else level.formal("x", _seen(v, t)) for v, t in pairs]
            formals = [n.now().v.var for n, t in zip(nodes, types, strict=True) if t is not None]
            leaves, form = flatten(overlay().restore(f(*nodes)))
            constants, results, likes = [], [], []
            for leaf in leaves:
                if isinstance(leaf, Traced):
                    results.append(as_box(level, level.entered(leaf)).var)
                    constants.append(VARIABLE)
                    likes.append(seen(leaf))
                else:
                    constants.append(leaf)
        mentions = [*level.beside, *level.around.values()]
        params, stays = (*formals, *[v for v, _ in mentions]), level.shared.stays
        body = Block(tuple(closed(level.out.bindings, params, results, stays)), Ret(tuple(results)))
        name = level.name_of_definition(like)
        level.add(Def(name, params, tuple([v.type for v in results]), (), body))
        shared = level.shared
    text = Text(Program(dict(shared.types), dict(shared.defs)), name, shared.rules, likes)
    given = [i for i, t in enumerate(types) if t is not None]
    return Apart(text, given, [c for _, c in mentions], form, constants)


def _seen(v: Any, t: ArrayType) -> Seen:
    """What is known of a value of that type, or of its lane, where it has lanes in front."""
    strides = strides_of(v)
    return Seen(t, strides[len(strides) - len(t.shape) :], weakness(v))


__all__ = ["Apart", "Text", "apart", "staged_around"]
