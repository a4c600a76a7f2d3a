"""What an engine is: it evaluates a definition of a program on values, and says what it can.

The machinery around it, `engines.run`, checks the arguments and chooses the engine; so an engine
gets values of the types of the formals, and a program that it has said that it takes.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from lineara.engines.memory import Meter
from lineara.errors import ProgramError
from lineara.linear_a.program import Program

CAPABILITIES: Mapping[str, str] = {
    "work": "count work and bytes",
    "meter": "measure the memory that is alive",
    "fuel": "stop after a number of calls",
    "no number": "refuse what has no number",
    "entering": "show the calls of definitions",
    "exact numbers": "calculate with exact numbers",
    "traced values": "calculate with values that a tape records",
}

Entering = Callable[[Any, str, list[Any]], Generator[Any, Any, Any] | None]


class Domain(Protocol):
    """What kind of values a program is evaluated on, where they are not NumPy's numbers."""

    @property
    def kind(self) -> str:
        """The capability that an engine needs for them."""
        ...


class Ask(NamedTuple):
    """What a caller wants of an evaluation beside the results.

    work       W and the bytes written are counted
    meter      counts the bytes of the arrays that are alive
    fuel       after so many calls and rounds of loops the evaluation is a ProgramError
    ieee       a division by zero is infinite; False: it is a ProgramError, as is a NaN
    entering   are called with (machine, name, values) as a definition is entered; one that returns
               steps has these done in place of the definition
    values     what the program is evaluated on, if not on NumPy's numbers
    """

    work: bool = False
    meter: Meter | None = None
    fuel: int | None = None
    ieee: bool = True
    entering: tuple[Entering, ...] = ()
    values: Domain | None = None

    def needs(self) -> frozenset[str]:
        """The capabilities that an engine must have."""
        asked = {
            "work": self.work,
            "meter": self.meter is not None,
            "fuel": self.fuel is not None,
            "no number": not self.ieee,
            "entering": bool(self.entering),
        }
        kind = self.values.kind if self.values is not None else ""
        return frozenset([*[k for k, v in asked.items() if v], *[kind] * bool(kind)])


@dataclass(frozen=True, slots=True)
class Outcome:
    """The results of a definition, non-linear and linear, and what was counted, if it was.

    Bytes are written where memory is filled: a view is free, and so is what stays in place.
    """

    results: tuple[Any, ...]
    lresults: tuple[Any, ...]
    counted: tuple[int, int] | None = None  # work and bytes

    @property
    def work(self) -> int:
        """The work W."""
        return self._counted()[0]

    @property
    def written(self) -> int:
        """The bytes written."""
        return self._counted()[1]

    def _counted(self) -> tuple[int, int]:
        if self.counted is None:
            raise ProgramError(
                "work and bytes were not counted in this run; ask for them: "
                "engines.run(..., ask=Ask(work=True))"
            )
        return self.counted


class Engine:
    """An engine: a name, what it can beside the results, and the two questions it answers."""

    name: str
    can: frozenset[str] = frozenset()  # some of CAPABILITIES

    def takes(self, program: Program, name: str) -> str | None:
        """Why the engine cannot evaluate this definition, as "f has a while loop"; else None."""
        return None

    def evaluate(self, program: Program, name: str, values: list[Any], ask: Ask) -> Outcome:
        """The results of a definition on values, which have the types of its formals."""
        raise NotImplementedError(self.name)

    def direct(self, program: Program, name: str, weak: Sequence[bool]) -> Any:
        """A function of the values of the formals that gives the results faster than `evaluate`.

        None where there is none, or not yet.  It looks at no types.  One result is given as it is,
        several in a tuple; numbers that are `weak` are Python's.  What it gives may be
        NotImplemented: `evaluate` is asked then.
        """
        return None

    def native(self, program: Program, name: str) -> Any:
        """The engine whose machine code runs are, if there is one."""
        return None

    def of_type(self, value: Any) -> Any:
        """An argument of a call; of an array that only this engine knows, NumPy's of that type."""
        return value

    def refuses(self, program: Program, name: str, ask: Ask) -> str | None:
        """Why the engine does not do what is asked for, else None."""
        if self.can < CAPABILITIES.keys():
            missing = sorted([CAPABILITIES[key] for key in ask.needs() - self.can])
            if missing:
                return f"it does not {' or '.join(missing)}"
        return self.takes(program, name)
