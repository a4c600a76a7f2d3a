"""A definition of a program as one operation of whatever level is innermost.

    value           the definition                                              f
    tangent         its jvp, with its linear variables as others                f'jvp'e
    cotangent       its vjp, the same                                           f'vjp'e
    with dead lanes each vector beside its mask                                 f'jvp'm, f'vjp'm

Where a program is being written, that is a call of it.  A differentiation records it as one entry:
what lies under it is applied by this operation again, so it nests, and every order is a pass.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from lineara.cotangent.dead_lanes import Masked, pairs_of, unmasked
from lineara.errors import LinearityError
from lineara.facts.hints import Namespace, Shaped, Value
from lineara.facts.primitive import HigherOrder, Joint, innermost, op, primitive
from lineara.facts.types import type_of
from lineara.rules.call_as_operation import moves, record, settled, spread, value_below
from lineara.tape.level import Level


@primitive
class defined(HigherOrder):
    """f(xs;), the results of a definition of a program, in a list."""

    def evaluate(self, xp: Namespace, /, *values: Any, definition: Any, name: str) -> Any:
        """The value, by the evaluator; rules that it meets are tested before."""
        definition.test(values)
        return list(definition.run(values).results)

    def trace_staged(self, level: Level, args: tuple, params: dict[str, Any]) -> Any:
        """The call of the definition."""
        return params["definition"].call(level, args)

    def trace_linear(self, level: Level, args: tuple, params: dict[str, Any]) -> Any:
        """A linear function of what has no value."""
        raise LinearityError(
            f"{params['name']}: a staged condition ends a loop of a linear function, whose "
            "arguments have no values here; let the rule loop with lineara.fori_loop"
        )

    def trace(self, level: Level, args: tuple, params: dict[str, Any]) -> Any:
        """The value below, and one entry for the linear map."""
        definition, name = params["definition"], params["name"]
        active = [i for i, a in enumerate(args) if level.mine(a)]
        values = [value_below(level, a) for a in args]
        y = [settled(v) for v in self(*values, **params)]
        xs, ys = definition.moving()

        def mapped(
            way: str, vectors: Sequence[Any], places: Sequence[int], of: list[Any]
        ) -> list[Any]:
            """The linear map on vectors, one way or the other; of masked ones, with masks."""
            box = innermost(tuple([v for v in vectors if isinstance(v, Masked)]))
            given = [_zeros(of[i]) if vectors[i] is None else unmasked(vectors[i]) for i in places]
            live = [
                v is not None and getattr(v, "live", None) is None
                for v in map(vectors.__getitem__, places)
            ]
            if box is None or (all(live) and not box.strong and not definition.kills(way)):
                vectors_out = self(*values, *given, definition=definition.derived(way), name=name)
                return (
                    vectors_out
                    if box is None
                    else [Masked(v, None, box.depth) for v in vectors_out]
                )
            alive = [_alive(vectors[i], of[i]) for i in places]
            derived = definition.derived(way, masked=True, strong=box.strong)
            vectors_out = self(*values, *pairs_of(given, alive), definition=derived, name=name)
            pairs = zip(vectors_out[::2], vectors_out[1::2], strict=True)
            return [Masked(v, settled(live), box.depth, box.strong) for v, live in pairs]

        def forward(tangents: Sequence[Any]) -> list[Any]:
            at = dict(zip(active, tangents, strict=True))
            dots = [at.get(i) for i in range(len(values))]
            vectors_out = mapped("jvp", dots, xs, [type_of(v) for v in values])
            return _placed(vectors_out, ys, len(y))

        def back(bars: Sequence[Any]) -> list[Any]:
            kinds = [type_of(v) if moves(v) else None for v in y]
            every = _placed(mapped("vjp", bars, ys, kinds), xs, len(values))
            return [every[i] for i in active]

        joint = Joint(
            lambda ts: spread(forward, ts, masked=forward),
            lambda bars: spread(back, bars, masked=back),
        )
        return record(level, y, [args[i] for i in active], joint, name)


def _alive(v: Value, t: Any) -> Any:
    """The mask of a vector, in every lane."""
    live = v.live if isinstance(v, Masked) else None
    if live is None:
        return np.full(t.shape, v is not None)[()]
    return op("broadcast_to")(live, shape=t.shape) if type_of(live).shape != t.shape else live


def _placed(vectors_out: Sequence[Any], places: Sequence[int], n: int) -> list[Any]:
    at = dict(zip(places, vectors_out, strict=True))
    return [at.get(i) for i in range(n)]


def _zeros(t: Shaped) -> Any:
    return np.zeros(t.shape, t.dtype) if t.shape else t.dtype.type(0).item()


__all__ = ["defined"]
