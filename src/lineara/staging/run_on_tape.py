"""A program on values of the eager engine, which records what is done as if Python had done it.

The interpreter runs it on these values: branches and loops go the way that they say, and only what
is needed is evaluated.  A definition with a derivative of its own in the program is a function with
a rule.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lineara.engines import ZERO, Ask, Machine, Numbers, run
from lineara.errors import BoundsError, ProgramError
from lineara.facts.hints import Value
from lineara.facts.primitive import op
from lineara.facts.types import ArrayType
from lineara.linear_a import syntax as ir
from lineara.linear_a.program import Program
from lineara.passes.erase import erase
from lineara.passes.names import JVP, E
from lineara.rules.custom import custom_jvp
from lineara.tape.levels import writable
from lineara.tape.node import Traced, plain


def play(program: Program, rules: Mapping[str, Any], name: str, values: Sequence[Any]) -> list[Any]:
    """The results of a definition without linear formals; `rules` are tested as they are met."""
    ask = Ask(entering=(Rules(rules),), values=OnTape())
    return list(run(program, name, *values, checked=False, ask=ask).results)


class OnTape(Numbers):
    """Values of the eager engine: primitives are applied as it applies them, and recorded."""

    kind = "traced values"
    recorded = True

    def apply(self, machine: Machine, e: ir.Prim, args: list[Any], params: dict[str, Any]) -> Any:
        """The primitive as the eager engine applies it; of an array that may be written, a copy."""
        y = e.primitive(*args, **params)
        if any([a is y for a in args]):
            machine.owners.share(y)
        viewed = getattr(y, "ndim", 0) and (e.primitive.view or e.name == "index")
        return y.copy() if viewed and args[0] in machine.owners else y

    def copied(self, x: Value, like: Value | None = None) -> Any:
        """A copy that traced values can be written into."""
        return x.copy() if isinstance(x, Traced) else writable(np.array(x))

    def write(self, e: ir.Part, x: Any, at: Any, y: Any) -> Any:
        """The array after the write, which is recorded."""
        if isinstance(e, ir.Accum):
            np.add.at(x, at, y)
        else:
            x[at] = 0 if y is ZERO else y
        return x

    def filled(self, t: ArrayType, rows: Sequence[Any]) -> Any:
        """The rows in one array."""
        return op("stack")(*rows) if rows else np.zeros(t.shape, t.dtype)

    def chosen(self, machine: Machine, e: Any, value: Any) -> tuple[int, list[Any]]:
        """Which branch the plain value chooses."""
        try:
            return e.chosen(plain(value))
        except ProgramError as error:
            raise BoundsError(error.message) from None

    def holds(self, condition: object, done: int) -> bool:
        """Whether the loop has one more round."""
        return bool(plain(condition))


class Rules:
    """Looks on as definitions are entered: one that has a rule is a function with that rule."""

    def __init__(self, rules: Mapping[str, Any]) -> None:
        self.rules = rules
        self.functions: dict[str, custom_jvp] = {}

    def __call__(self, machine: Machine, name: str, values: list[Any]) -> Any:
        """Test the rule; of traced values, apply the definition with its derivative."""
        if name in self.rules:
            self.rules[name].test(values)
        if name + JVP not in machine.program.defs or not any(
            [isinstance(v, Traced) for v in values]
        ):
            return None
        machine.owners.share(tuple(values))
        return self._applied(machine, name, values)

    def _applied(self, machine: Machine, name: str, values: list[Any]) -> Any:
        if name not in self.functions:
            self.functions[name] = self._with_rule(machine, name)
        return list(self.functions[name](*values))
        yield

    def _with_rule(self, machine: Machine, name: str) -> custom_jvp:
        program = erase(machine.program, name + JVP)
        d = program.defs[name]
        moves = [not program.is_inert(v.type) for v in d.params]
        stays = [program.is_inert(t) for t in d.results]

        def value(*xs: Any) -> list[Any]:
            return machine.drive(machine.body(name, list(xs)))

        def jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
            dots = [t for t, m in zip(tangents, moves, strict=True) if m]
            out = play(program, self.rules, name + JVP + E, [*primals, *dots])
            left = iter(out[len(stays) :])
            return out[: len(stays)], [None if s else next(left) for s in stays]

        return custom_jvp(value, jvp, check=False)


__all__ = ["play"]
