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
from lineara.linear_a.syntax import Block, Def, Let, Ret
from lineara.passes.derivatives import vjp
from lineara.passes.erase import erase
from lineara.passes.jvp import jvp
from lineara.passes.masks import masks
from lineara.passes.names import JVP, VJP, E, M
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
        found = needed(self.program, self.name)
        level.add(*found.defs.values())
        level.shared.types |= found.types
        level.applied([self.name])
        level.shared.rules |= {k: r for k, r in self.rules.items() if k in found.defs}
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

    def jvp(self, masked: bool = False, strong: bool = False) -> "Text":
        """f.jvp with all variables alike; if asked for, each tangent beside its mask."""
        return self.source(jvp(self.program, self.name), self.name + JVP, masked, strong)

    def vjp(self, masked: bool = False, strong: bool = False) -> "Text":
        """f.vjp with all variables alike; if asked for, each cotangent beside its mask."""
        return self.source(vjp(self.program, self.name), self.name + VJP, masked, strong)

    def source(self, program: Program, name: str, masked: bool, strong: bool) -> "Text":
        """A derived definition, none of it linear, under names that no pass gives: f'jvp'e."""
        before = {*self.program.defs, *self.program.types}

        def named(f: str) -> str:
            if f in before:
                return f
            base = max((g for g in before if f.startswith(f"{g}.")), key=len, default="")
            return base + f[len(base) :].replace(".", "'")

        suffix = M + "s" * strong if masked else E
        program = masks(program, name, strong) if masked else erase(program, name)
        found = needed(program, name + suffix)
        return Text(rename(found, named), named(name + suffix), self.rules)


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
