"""A branch within a differentiation within a trace: one operation, whose linear map branches too.

The condition is not known while the trace goes on.  So the value is a branch of the program, and so
are the tangent and the cotangent: each differentiates the function of its side, at the values that
it had, as a checkpoint does.  No side is evaluated that is not taken.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from lineara.cotangent.dead_lanes import Masked, unmasked
from lineara.errors import LinearityError
from lineara.facts.primitive import HigherOrder, Joint, innermost, op, primitive
from lineara.facts.types import type_of
from lineara.rules.call_as_operation import moves, record, settled, spread, value_below
from lineara.tape.level import Level
from lineara.tape.levels import deeper, open_level
from lineara.tape.linear_level import owned, tape_map
from lineara.trees import flatten


@primitive
class chosen(HigherOrder):
    """`choose(values, of)` is `of(branch, values)` for the branch that is taken."""

    def evaluate(self, xp: Any, /, *values: Any, choose: Any, name: str) -> Any:
        """The value, where no differentiation is left."""
        return choose(values, lambda run, now: run(*now))

    def trace_staged(self, level: Any, args: tuple, params: dict[str, Any]) -> Any:
        """The value."""
        return params["choose"](args, lambda run, now: run(*now))

    def trace_linear(self, level: Any, args: tuple, params: dict[str, Any]) -> Any:
        """A linear function of what has no value."""
        raise LinearityError(
            f"{params['name']}: a staged condition chooses a branch of a linear function, whose "
            "arguments have no values here; let the rule choose with np.where"
        )

    def trace(self, level: Level, args: tuple, params: dict[str, Any]) -> Any:
        """The value below, and one entry for the linear map."""
        choose, name = params["choose"], params["name"]
        active = [i for i, a in enumerate(args) if level.mine(a)]
        values = [value_below(level, a) for a in args]
        y = self(*values, **params)
        results = [settled(v) for v in flatten(y)[0]]
        kinds = [type_of(v) if moves(v) else None for v in results]

        def mapped(way: str, vectors: Sequence[Any], kinds: Sequence[Any]) -> list[Any]:
            """The linear map of the branch that is taken, one way or the other.

            Masks are operands beside the vectors, and results beside those.
            """
            box = innermost(tuple([v for v in vectors if isinstance(v, Masked)]))
            lives = [getattr(v, "live", None) for v in vectors]
            vectors = [unmasked(v) for v in vectors]
            given = [i for i, v in enumerate(vectors) if v is not None]
            told = [i for i, live in enumerate(lives) if live is not None]
            k, m = len(values), len(values) + len(given)

            def of(run: Any, now: Sequence[Any]) -> list[Any]:
                at = dict(zip(given, now[k:m], strict=True))
                live_at = dict(zip(told, now[m:], strict=True))
                moved = [(at.get(i), live_at.get(i)) for i in range(len(vectors))]
                found = _swept(run, now[:k], active, way, moved, box is not None and box.strong)
                zeros = [_zeros(t) if t is not None else None for t in kinds]
                made = [unmasked(z if v is None else v) for v, z in zip(found, zeros, strict=True)]
                return made if box is None else [*made, *map(_alive, found, made)]

            def below(values: Any, taken: Any) -> Any:
                """The same branch, where the function is that linear map."""
                return choose(values, lambda run, now: taken(lambda *vs: of(run, vs), now))

            moving = [*[vectors[i] for i in given], *[lives[i] for i in told]]
            found = self(*values, *moving, choose=below, name=name)
            if box is None:
                return found
            pairs = zip(found[: len(kinds)], found[len(kinds) :], strict=True)
            return [None if v is None else Masked(v, a, box.depth, box.strong) for v, a in pairs]

        def swept(way: str, vectors: Sequence[Any], kinds: Sequence[Any]) -> list[Any]:
            def go(now: Sequence[Any]) -> list[Any]:
                return mapped(way, now, kinds)

            return spread(go, vectors, masked=go)

        sources = [type_of(values[i]) for i in active]
        joint = Joint(
            lambda ts: swept("forward", ts, kinds), lambda bars: swept("back", bars, sources)
        )
        return record(level, y, [args[i] for i in active], joint, name)


def _swept(
    run: Any,
    values: Sequence[Any],
    active: Sequence[int],
    way: str,
    vectors: Sequence[tuple[Any, Any]],
    strong: bool,
) -> Sequence[Any]:
    """The linear map of a function at values, with respect to some, of vectors with their masks."""
    with open_level() as level:
        nodes = [level.wrap(values[i]) for i in active]
        at = dict(zip(active, nodes, strict=True))
        found = flatten(run(*[at.get(i, v) for i, v in enumerate(values)]))[0]
        joint = tape_map(level, nodes, [owned(level, settled(v)) for v in found])
        with deeper() as depth:
            masked = [None if v is None else Masked(v, a, depth, strong) for v, a in vectors]
            return getattr(joint, way)(masked)


def _alive(found: Any, made: Any) -> Any:
    """The mask of a result, of its shape; none of a zero lives."""
    shape = type_of(made).shape if made is not None else ()
    live = getattr(found, "live", None)
    if isinstance(found, Masked) and live is not None:
        return op("broadcast_to")(live, shape=shape) if type_of(live).shape != shape else live
    return np.full(shape, found is not None)


def _zeros(t: Any) -> Any:
    return np.zeros(t.shape, t.dtype) if t.shape else t.dtype.type(0).item()
