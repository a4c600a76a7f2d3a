"""A definition of a program as one operation of whatever level is innermost.

    value           the definition                      f
    tangent         its jvp, with its linear variables as others                f.jvp.e
    cotangent       its vjp, the same                                           f.vjp.e

Where a program is being written, that is a call of it.  A differentiation records it as one entry:
what lies under it is applied by this operation again, so it nests, and every order is a pass.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from lineara.capture.apart import Text
from lineara.capture.forms import written
from lineara.capture.staging import needed
from lineara.eager.level import Level
from lineara.errors import LinearityError
from lineara.linear_a.control import Call
from lineara.linear_a.evaluate import run
from lineara.linear_a.program import Program
from lineara.passes.compose import vjp
from lineara.passes.erase import erase
from lineara.passes.jvp import jvp
from lineara.passes.names import JVP, VJP, E
from lineara.passes.rename import rename
from lineara.primitive import HigherOrder, Joint, op, primitive
from lineara.rules.whole import moves, record, settled, spread, value_below
from lineara.types import type_of


@primitive
class defined(HigherOrder):
    """f(xs;), where `text` says which definition f is, of which program; a list of results."""

    def evaluate(self, xp: Any, /, *values: Any, text: Text, name: str) -> Any:
        """The value, by the evaluator."""
        return list(run(text.program, text.name, *values).results)

    def trace_staged(self, level: Any, args: tuple, params: dict[str, Any]) -> Any:
        """The call of the definition."""
        text: Text = params["text"]
        found = needed(text.program, text.name)
        level.add(*found.defs.values())
        level.shared.types |= found.types
        level.shared.rules |= {k: r for k, r in text.rules.items() if k in found.defs}
        boxes = [level.as_box(a) for a in args]
        d = found.defs[text.name]
        return written(level, Call(tuple([b.var for b in boxes]), (d.name,)), d.results)

    def trace_linear(self, level: Any, args: tuple, params: dict[str, Any]) -> Any:
        """A linear function of what has no value."""
        raise LinearityError(
            f"{params['name']}: a staged condition ends a loop of a linear function, whose "
            "arguments have no values here; let the rule loop with lineara.fori_loop"
        )

    def trace(self, level: Level, args: tuple, params: dict[str, Any]) -> Any:
        """The value below, and one entry for the linear map."""
        text, name = params["text"], params["name"]
        active = [i for i, a in enumerate(args) if level.mine(a)]
        values = [value_below(level, a) for a in args]
        y = [settled(v) for v in self(*values, **params)]
        d = text.program.defs[text.name]
        xs = [i for i, v in enumerate(d.params) if not text.program.is_inert(v.type)]
        ys = [i for i, t in enumerate(d.results) if not text.program.is_inert(t)]

        def mapped(derived: Text, vectors: Sequence[Any], places: Sequence[int], of: Any) -> Any:
            given = [_zeros(t) if v is None else v for v, t in zip(vectors, of, strict=True)]
            found = self(*values, *[given[i] for i in places], text=derived, name=name)
            return found[len(y) :]

        def forward(tangents: Sequence[Any]) -> list[Any]:
            at = dict(zip(active, tangents, strict=True))
            dots = [at.get(i) for i in range(len(values))]
            found = mapped(_jvp(text), dots, xs, [type_of(v) for v in values])
            return _placed(found, ys, len(y))

        def back(bars: Sequence[Any]) -> list[Any]:
            found = mapped(_vjp(text), bars, ys, [type_of(v) if moves(v) else None for v in y])
            every = _placed(found, xs, len(values))
            return [every[i] for i in active]

        joint = Joint(lambda ts: spread(forward, ts), lambda bars: spread(back, bars))
        return record(level, y, [args[i] for i in active], joint, name)


def apply(text: Text, values: Sequence[Any], name: str) -> list[Any]:
    """The results of a definition."""
    return list(op("defined")(*values, text=text, name=name))


def _jvp(text: Text) -> Text:
    """f.jvp, with all variables alike."""
    return _source(text, jvp(text.program, text.name), text.name + JVP)


def _vjp(text: Text) -> Text:
    """f.vjp, with all variables alike."""
    return _source(text, vjp(text.program, text.name), text.name + VJP)


def _source(text: Text, program: Program, name: str) -> Text:
    """A derived definition, erased, under names that no pass gives: f'jvp'e."""
    before = {*text.program.defs, *text.program.types}

    def named(f: str) -> str:
        if f in before:
            return f
        base = max((g for g in before if f.startswith(f"{g}.")), key=len, default="")
        return base + f[len(base) :].replace(".", "'")

    found = needed(erase(program, name), name + E)
    return text._replace(program=rename(found, named), name=named(name + E))


def _placed(found: Sequence[Any], places: Sequence[int], n: int) -> list[Any]:
    at = dict(zip(places, found, strict=True))
    return [at.get(i) for i in range(n)]


def _zeros(t: Any) -> Any:
    return None if t is None else np.zeros(t.shape, t.dtype) if t.shape else t.dtype.type(0).item()


__all__ = ["apply", "defined"]
