"""The interpreter at first, and machine code as soon as it pays.

Of each definition the leaves are counted that its runs evaluate: those of a loop once a round, and
a loop or a recursion whose rounds depend on values has no end.  A run that would bring the count
above PAYS times the text, and SETUP leaves more, is machine code, and so are all that follow: the
interpreter has by then taken about as long as compiling takes.

Exact code keeps the values as they were when the run goes over.  What exact code calls back, since
NumPy's order of sums is its own, the default code often does itself: then that is taken, and values
differ by the rounding of sums from there on.  To be called back for ever costs tens of times as
much, and to be interpreted a thousand times.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

from lineara.engines.engine import CAPABILITIES, Ask, Engine, Outcome
from lineara.engines.interpreter import Interpreter
from lineara.engines.native import Native, is_installed
from lineara.engines.native.facts import fact, keep_fact
from lineara.errors import warn_at_users_line
from lineara.linear_a import syntax as ir
from lineara.linear_a.cost import most
from lineara.linear_a.program import Program

PAYS = 50
"""Runs of a text in the time that it takes to compile it, about."""
SETUP = 16
"""Leaves that take as long to compile as an empty text does, about."""


class Adaptive(Engine):
    """Interpreted until compiling pays; what machine code does not take stays interpreted."""

    interpreter: Interpreter
    exact: Native
    default: Native

    can: frozenset[str] = frozenset(CAPABILITIES)

    def __init__(self, name: str, exact: Native, default: Native, interpreter: Interpreter) -> None:
        self.name, self.exact, self.default, self.interpreter = name, exact, default, interpreter

    def evaluate(self, program: Program, name: str, values: list[Any], ask: Ask) -> Outcome:
        """Run the definition by one of the engines."""
        native = self.native(program, name) if self.pays(program, name, ask) else None
        return (native or self.interpreter).evaluate(program, name, values, ask)

    def direct(self, program: Program, name: str, weak: Sequence[bool]) -> Any:
        """That of machine code, once there is some."""
        if program.noted["adaptive"].get(name, 0) >= 0 or not is_installed():
            return None
        native = self.native(program, name)
        return None if native is None else native.direct(program, name, weak)

    def native(self, program: Program, name: str) -> Native | None:
        """Whose machine code it is, if there is any."""
        relaid = name in program.noted["native relaid"]
        told = None if relaid else self.told(program, name)
        if told is not None:
            return {e.name: e for e in (self.exact, self.default)}.get(told["code"])
        native = self.chosen(program, name)
        if not relaid:
            told = {
                "leaves": texts(program, name), "evaluated": evaluated(program, name),
                "code": native.name if native else "none",
            }  # fmt: skip
            program.noted["adaptive told"][self.name, name] = told
            keep_fact(program, name, TOLD + self.name, told)
        return native

    def chosen(self, program: Program, name: str) -> Native | None:
        """Whose machine code it is to be, of what either emits."""
        exact, default = self.exact, self.default
        relaid = name in program.noted["native relaid"]
        if relaid or exact.takes(program, name) is not None:
            return default if default.takes(program, name) is None else None
        sites = exact.sites(program, name)
        if sites and default.takes(program, name) is None:
            return default if default.sites(program, name) < sites else exact
        return exact

    def told(self, program: Program, name: str) -> dict[str, Any] | None:
        """What an earlier process has found out, so that nothing is emitted and no pass runs."""
        known, key = program.noted["adaptive told"], (self.name, name)
        if key not in known:
            known[key] = fact(program, name, TOLD + self.name)
        return known[key]

    def pays(self, program: Program, name: str, ask: Ask) -> bool:
        """Whether this run is one of machine code, if there is any."""
        state = program.noted["adaptive"]
        left = state.get(name)
        if left is None or left >= 0:
            told = None if program.is_made else self.told(program, name)
            told = told or {}
            if left is None:
                left = PAYS * (SETUP + (told.get("leaves") or texts(program, name)))
            left = state[name] = left - (told.get("evaluated") or evaluated(program, name))
        if left >= 0 or ask.needs():
            return False
        if not is_installed():
            warn_once()
            return False
        return True


TOLD = "the machine code that pays of "


def texts(program: Program, name: str) -> int:
    """The leaves in the texts of a definition and of what it applies."""
    return sum([len(ir.leaves(program.defs[f].body)) for f in program.reached(name)])


def evaluated(program: Program, name: str) -> float:
    """The leaves that a run of a definition evaluates; infinity where values tell how many."""
    return most(program, name, "leaves evaluated", lambda e, y: 1)


@cache
def warn_once() -> None:
    """Say that programs are interpreted for want of a compiler."""
    warn_at_users_line(
        "llvmlite is not installed, so programs are interpreted, which is slower than machine code "
        'where they have loops; install llvmlite, or ask for that: jit(f, engine="interpreter")',
        UserWarning,
    )


__all__ = ["Adaptive"]
