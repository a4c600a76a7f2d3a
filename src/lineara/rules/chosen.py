"""A branch within a differentiation within a trace: one operation, whose linear map branches too.

The condition is not known while the trace goes on.  So the value is a branch of the program, and so
are the tangent and the cotangent: each differentiates the function of its side, at the values that
it had, as a checkpoint does.  No side is evaluated that is not taken.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from lineara.eager.level import Level
from lineara.eager.linear import owned, tape_map
from lineara.eager.trace import open_level
from lineara.errors import LinearityError
from lineara.primitive import HigherOrder, Joint, primitive
from lineara.rules.whole import moves, record, settled, spread, value_below
from lineara.trees import flatten
from lineara.types import type_of


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
            """The linear map of the branch that is taken, one way or the other."""
            given = [i for i, v in enumerate(vectors) if v is not None]
            k = len(values)

            def of(run: Any, now: Sequence[Any]) -> list[Any]:
                at = dict(zip(given, now[k:], strict=True))
                moved = [at.get(i) for i in range(len(vectors))]
                found = _swept(run, now[:k], active, way, moved)
                return [
                    _zeros(t) if v is None and t is not None else v
                    for v, t in zip(found, kinds, strict=True)
                ]

            def below(values: Any, taken: Any) -> Any:
                """The same branch, where the function is that linear map."""
                return choose(values, lambda run, now: taken(lambda *vs: of(run, vs), now))

            return self(*values, *[vectors[i] for i in given], choose=below, name=name)

        sources = [type_of(values[i]) for i in active]
        joint = Joint(
            lambda ts: spread(lambda now: mapped("forward", now, kinds), ts),
            lambda bars: spread(lambda now: mapped("back", now, sources), bars),
        )
        return record(level, y, [args[i] for i in active], joint, name)


def _swept(
    run: Any, values: Sequence[Any], active: Sequence[int], way: str, vectors: Sequence[Any]
) -> Sequence[Any]:
    """The linear map of a function at values, with respect to some of them, of vectors."""
    with open_level() as level:
        nodes = [level.wrap(values[i]) for i in active]
        at = dict(zip(active, nodes, strict=True))
        found = flatten(run(*[at.get(i, v) for i, v in enumerate(values)]))[0]
        joint = tape_map(level, nodes, [owned(level, settled(v)) for v in found])
        return getattr(joint, way)(vectors)


def _zeros(t: Any) -> Any:
    return np.zeros(t.shape, t.dtype) if t.shape else t.dtype.type(0).item()
