"""A program on values of the eager engine, which records what is done as if Python had done it.

The evaluator runs it: branches and loops go the way that the values say, and only what is needed is
evaluated.  A definition with a derivative of its own in the program is a function with a rule.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from lineara.engines.interpreter import Machine, is_array
from lineara.errors import BoundsError, ProgramError
from lineara.facts.primitive import op
from lineara.facts.types import ArrayType
from lineara.linear_a import syntax as ir
from lineara.linear_a.program import Program
from lineara.passes.erase import erase
from lineara.passes.names import JVP, E
from lineara.rules.custom import custom_jvp
from lineara.tape.levels import writable
from lineara.tape.node import Traced, plain


def play(program: Program, rules: dict[str, Any], name: str, values: Sequence[Any]) -> list[Any]:
    """The results of a definition without linear formals; `rules` are tested as they are met."""
    player = _Player(program, rules)
    with np.errstate(all="ignore"):
        return player.drive(player.enter(name, list(values)))


class _Own:
    """Arrays that this run has made, and one variable alone refers to: they may be written."""

    def __init__(self) -> None:
        self._known: dict[int, Any] = {}

    def __bool__(self) -> bool:
        return bool(self._known)

    def __contains__(self, value: Any) -> bool:
        return self._known.get(id(value)) is value

    def take(self, array: Any) -> None:
        """An array that was just made."""
        if is_array(array):
            self._known[id(array)] = array

    def share(self, value: Any) -> None:
        """Somebody else refers to the value too."""
        if isinstance(value, tuple):
            for v in value:
                self.share(v)
        elif value in self:
            del self._known[id(value)]

    def lent(self, values: Any) -> list[Any]:
        """Share for a while; what to take again is given."""
        found = [v for v in values if v in self]
        self.share(tuple(values))
        return found


class _Player(Machine):
    """The evaluator on traced values."""

    def __init__(self, program: Program, rules: dict[str, Any]) -> None:
        super().__init__(program)
        self.owners: Any = _Own()
        self.rules = rules
        self.ruled: dict[str, Any] = {}

    def enter(self, name: str, values: list[Any]) -> Any:
        """A definition on values; one with a rule is a function with that rule."""
        if name in self.rules:
            self.rules[name].test(values)
        if name + JVP not in self.program.defs or not any(isinstance(v, Traced) for v in values):
            return super().enter(name, values)
        self.owners.share(tuple(values))
        return self._whole(name, values)

    def _whole(self, name: str, values: list[Any]) -> Any:
        if name not in self.ruled:
            self.ruled[name] = self._with_rule(name)
        return list(self.ruled[name](*values))
        yield

    def _with_rule(self, name: str) -> custom_jvp:
        self.program = erase(self.program, name + JVP)
        d = self.program.defs[name]
        moves = [not self.program.is_inert(v.type) for v in d.params]
        stays = [self.program.is_inert(t) for t in d.results]

        def value(*xs: Any) -> list[Any]:
            return self.drive(Machine.enter(self, name, list(xs)))

        def jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
            dots = [t for t, m in zip(tangents, moves, strict=True) if m]
            found = self.drive(self.enter(name + JVP + E, [*primals, *dots]))
            left = iter(found[len(stays) :])
            return found[: len(stays)], [None if s else next(left) for s in stays]

        return custom_jvp(value, jvp, check=False)

    # --- what is done to values ------------------------------------------------------------------

    def prim(self, e: ir.Prim, args: list[Any], env: dict[ir.Var, Any]) -> Any:
        """The primitive as the eager engine applies it; of an array that may be written, a copy."""
        y = e.primitive(*args, **ir.renamed_params(e.params, env.__getitem__))
        if any([a is y for a in args]):
            self.owners.share(y)
        viewed = is_array(y) and (e.primitive.view or e.name == "index")
        return y.copy() if viewed and args[0] in self.owners else y

    def made(self, e: ir.Prim, args: Sequence[Any], y: Any, dead: ir.Vars) -> None:
        """What a primitive gives may be shared with who keeps it on a tape."""

    def part(
        self, e: ir.Part, args: list[Any], env: dict[ir.Var, Any], mine: bool
    ) -> Sequence[Any]:
        """accum and put: in place, if this is the last use and the array is nobody else's."""
        assert not isinstance(e, ir.Read), "what is erased reads by indexing"
        at, x = ir.renamed_params(e.at, env.__getitem__), args[0]
        if not mine or x not in self.owners:
            x = x.copy() if isinstance(x, Traced) else writable(np.array(x))
            self.owners.take(x)
        if isinstance(e, ir.Accum):
            np.add.at(x, at, args[1])
        else:
            x[at] = args[1] if len(args) > 1 else 0
        return (x,)

    def filled(self, t: ArrayType, rows: Sequence[Any]) -> Any:
        """The rows in one array."""
        return op("stack")(*rows) if rows else np.zeros(t.shape, t.dtype)

    def new(self, made: Any) -> Any:
        """What was just made."""
        return made

    def chosen(self, e: Any, value: Any) -> tuple[int, list[Any]]:
        """Which branch a value chooses."""
        try:
            return e.chosen(plain(value))
        except ProgramError as error:
            raise BoundsError(error.message) from None

    def holds(self, condition: Any, done: int) -> bool:
        """Whether a loop goes on."""
        return bool(plain(condition))

    def drop(self, e: Any, env: Any) -> Any:
        """Nothing: what is dropped is needed by nobody."""
        return []
        yield


__all__ = ["play"]
