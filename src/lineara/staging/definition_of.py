"""A function as a definition of its own, on values of any kind; what it mentions becomes formals.

Lanes are made of such a definition, and a loop within a differentiation within a trace is one, as
an operation of the differentiation.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from lineara.facts.hints import Shaped
from lineara.facts.types import ArrayType
from lineara.linear_a.rules_as_text import closed
from lineara.linear_a.syntax import Block, Def, Ret
from lineara.python.user_code import Reading, overlay
from lineara.staging.definitions import Definition
from lineara.staging.staged_arrays import as_box
from lineara.staging.staged_level import Seen, StagedLevel, open_definition, seen
from lineara.staging.tracing import VARIABLE
from lineara.tape.levels import innermost_level, open_level, threads
from lineara.tape.node import Traced
from lineara.tape.strides import strides_of
from lineara.trees import Structure, flatten, unflatten


class Apart(NamedTuple):
    """A function that was traced apart, and what its definition is to be given."""

    definition: Definition
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
    f: Callable[..., Any],
    values: Sequence[Any],
    types: Sequence[ArrayType | None],
    like: str,
    reading: Reading | None = None,
) -> Apart:
    """`f(*values)` as a definition; values without a type are constants of it.

    Functions are read as they are around, or so.
    """
    around = staged_around()
    opening: Any = open_level(StagedLevel)
    if around is not None and around is innermost_level():
        opening = open_definition(around)
    with opening as level:
        if around is not None:
            level.shared = around.shared
            level.out.seek, level.out.every = around.out.seek, around.out.every
        level.reading, level.adopts = reading, True
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
    definition = Definition(shared.program(), name, shared.rules, likes)
    given = [i for i, t in enumerate(types) if t is not None]
    return Apart(definition, given, [c for _, c in mentions], form, constants)


def _seen(v: Shaped, t: ArrayType) -> Seen:
    """What is known of a value of that type, or of its lane, where it has lanes in front."""
    strides = strides_of(v)
    return seen(v)._replace(type=t, lay=strides[len(strides) - len(t.shape) :])


__all__ = ["Apart", "apart", "staged_around"]
