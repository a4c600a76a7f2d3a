"""A definition of a program as one operation of whatever level is innermost.

    value           the definition                                              f
    tangent         its jvp, with its linear variables as others                f'jvp'e
    cotangent       its vjp, the same                                           f'vjp'e
    with dead lanes each vector beside its mask                                 f'jvp'm, f'vjp'm

Where a program is being written, that is a call of it.  A differentiation records it as one entry:
what lies under it is applied by this operation again, so it nests, and every order is a pass.
A batch of vectors, as the basis of a Jacobian, goes through the derivative over lanes in one call:
what does not depend on the vectors, which is the value with its tape, is calculated once for all.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from lineara.cotangent.batched import Batched
from lineara.cotangent.dead_lanes import Masked, pairs_of, unmasked
from lineara.cotangent.dependence import Dependent, through
from lineara.errors import LinearityError, ProgramError
from lineara.facts.hints import Namespace, Shaped, Value
from lineara.facts.primitive import Box, HigherOrder, Joint, innermost, op, primitive
from lineara.facts.types import type_of
from lineara.rules.call_as_operation import moves, record, settled, spread, value_below
from lineara.tape.level import Level


@primitive
class defined(HigherOrder):
    """f(xs;), the results of a definition of a program, in a list."""

    def evaluate(self, xp: Namespace, /, *values: Any, definition: Any, name: str) -> Any:
        """The value, by the evaluator; rules that it meets are tested before."""
        definition.test(values)
        results = definition.run(values).results
        return [v if isinstance(v, np.generic) else np.asarray(v) for v in results]

    def trace_staged(self, level: Level, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """The call of the definition."""
        return params["definition"].call(level, args)

    def trace_linear(self, level: Level, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """A linear function of what has no value."""
        raise LinearityError(
            f"{params['name']}: a staged condition ends a loop of a linear function, whose "
            "arguments have no values here; let the rule loop with lineara.fori_loop"
        )

    def trace(self, level: Level, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """The value below, and one entry for the linear map."""
        definition, name = params["definition"], params["name"]
        active = [i for i, a in enumerate(args) if level.mine(a)]
        values = [value_below(level, a) for a in args]
        y = [settled(v) for v in self(*values, **params)]
        xs, ys = definition.moving()

        def mapped(
            way: str,
            vectors: Sequence[Any],
            places: Sequence[int],
            of: list[Any],
            lanes: tuple[tuple[list[bool], int], ...] = (),
        ) -> list[Any] | None:
            """The linear map on vectors, one way or the other; of masked ones, with masks.

            None for a batch of vectors whose lanes the program cannot have.
            """
            batch = innermost(tuple([v for v in vectors if isinstance(v, Batched)]))
            if isinstance(batch, Dependent):
                return _sets(definition.derived(way), values, [vectors[i] for i in places], batch)
            if batch is not None:
                mine = [isinstance(v, Batched) and v.depth == batch.depth for v in vectors]
                rows = [v.v if m else v for v, m in zip(vectors, mine, strict=True)]
                count = next(type_of(v).shape[0] for v, m in zip(rows, mine, strict=True) if m)
                inner = mapped(way, rows, places, of, (*lanes, (mine, count)))
                return None if inner is None else [Batched(v, batch.depth) for v in inner]
            box = innermost(tuple([v for v in vectors if isinstance(v, Masked)]))
            given = [_zeros(of[i]) if vectors[i] is None else unmasked(vectors[i]) for i in places]
            live = [
                v is not None and getattr(v, "live", None) is None
                for v in map(vectors.__getitem__, places)
            ]
            strong = box is not None and box.strong
            masked = box is not None and (strong or not all(live) or definition.kills(way))
            alive = [_alive(vectors[i], of[i]) for i in places] if masked else []
            derived = definition.derived(way, masked, strong)
            try:
                for mine, count in lanes:
                    axes = [0 if mine[i] else None for i in places for _ in range(1 + masked)]
                    derived = derived.over_lanes((*[None] * len(values), *axes), count)
            except ProgramError:
                return None
            operands = [*values, *(pairs_of(given, alive) if masked else given)]
            results = self(*operands, definition=derived, name=name)
            if box is None:
                return results
            if not masked:
                return [Masked(v, None, box.depth) for v in results]
            pairs = zip(results[::2], results[1::2], strict=True)
            return [Masked(v, settled(live), box.depth, strong) for v, live in pairs]

        def forward(tangents: Sequence[Any]) -> Any:
            at = dict(zip(active, tangents, strict=True))
            dots = [at.get(i) for i in range(len(values))]
            results = mapped("jvp", dots, xs, [type_of(v) for v in values])
            return None if results is None else _placed(results, ys, len(y))

        def back(bars: Sequence[Any]) -> Any:
            kinds = [type_of(v) if moves(v) else None for v in y]
            results = mapped("vjp", bars, ys, kinds)
            if results is None:
                return None
            every = _placed(results, xs, len(values))
            return [every[i] for i in active]

        joint = Joint(
            lambda ts: spread(forward, ts, forward, forward),
            lambda bars: spread(back, bars, back, back),
        )
        return record(level, y, [args[i] for i in active], joint, name)


def _sets(
    derived: Any, values: Sequence[Any], vectors: Sequence[Any], some: Dependent
) -> list[Dependent]:
    """What the results of a linear map depend on, of vectors of which only that is known."""
    from lineara.engines import dependence  # a differentiation does not load the engines

    mine = [i for i, v in enumerate(vectors) if isinstance(v, Dependent)]
    formals = derived.text.params[len(values) :]
    given = [None if isinstance(v, Box) else v for v in values]
    for i, (v, formal) in enumerate(zip(vectors, formals, strict=True)):
        given.append(None if i in mine else _zeros(formal.type) if v is None else v)
    active = [len(values) + i for i in mine]
    rows = dependence(derived.program, derived.name, given, active)
    return [through(y, [vectors[i] for i in mine], some) for y in rows]


def _alive(v: Value, t: Any) -> Any:
    """The mask of a vector, in every lane."""
    live = v.live if isinstance(v, Masked) else None
    t = t if v is None else type_of(v)
    if live is None:
        return np.full(t.shape, v is not None)[()]
    return op("broadcast_to")(live, shape=t.shape) if type_of(live).shape != t.shape else live


def _placed(vectors_out: Sequence[Any], places: Sequence[int], n: int) -> list[Any]:
    at = dict(zip(places, vectors_out, strict=True))
    return [at.get(i) for i in range(n)]


def _zeros(t: Shaped) -> Any:
    return np.zeros(t.shape, t.dtype) if t.shape else t.dtype.type(0).item()


__all__ = ["defined"]
