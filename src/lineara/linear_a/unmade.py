"""A program whose derivatives are made when somebody asks for them.

    outline     the program with a call of f in place of the body of each derivative of f
    whole       the program with the derivatives and all that they apply

The questions that a run asks before it begins are answered by the outline: a derivative acts,
raises, ends and has dimensions as what it is derived of does.  Whatever else is asked of the
program makes the derivatives.  So a program of which machine code is known runs without them.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from lineara.facts.types import Family, Type
from lineara.linear_a.program import Program
from lineara.linear_a.syntax import Def, Vars, node

T = TypeVar("T")


@node(kw_only=True)
class Later(Def):
    """A derivative that is made later; the body is a call of what it is derived of.

    make    gives a program with the derivative and all that it applies
    told    the text that tells the derivative from any other: how it is derived, and of what; or ""
    keep    is called once machine code of it is on disk
    """

    make: Callable[[], Program]
    told: Callable[[], str]
    keep: Callable[[], None]


class Unmade(Program):
    """A program with definitions that are made later, which looks as if they were there."""

    __slots__ = ("finish", "made", "shell")
    shell: Program
    finish: Callable[[Program], Program]
    made: Program | None

    def __init__(self, shell: Program, finish: Callable[[Program], Program]) -> None:
        """Of a program in which some definitions are `Later`; `finish` takes what is needed."""
        super().__init__(
            _Asked(shell.types, lambda: self.whole.types),
            _Asked(shell.defs, lambda: self.whole.defs),
            shell.places,
            shell.text,
            shell.file,
        )
        for name, value in (("shell", shell), ("finish", finish), ("made", None)):
            object.__setattr__(self, name, value)

    @property
    def outline(self) -> Program:
        """The program with a call of f in place of the body of each derivative of f."""
        return self.shell

    @property
    def whole(self) -> Program:
        """The program with its derivatives."""
        made = self.made
        if made is None:
            types, defs = dict(self.shell.types), dict[str, Def]()
            with self.takes_time("passes"):
                for f, d in self.shell.defs.items():
                    if isinstance(d, Later):
                        program = d.make().whole
                        types |= program.types
                        defs |= program.defs
                    else:
                        defs[f] = d
                made = self.finish(Program(types, defs, self.places, self.text, self.file))
            object.__setattr__(made, "noted", self.noted)
            object.__setattr__(self, "made", made)
        return made

    @property
    def is_made(self) -> bool:
        """Whether the derivatives are made."""
        return self.made is not None

    def dims(self, name: str) -> Vars:
        """The formals of a definition that are dimensions."""
        return self.outline.dims(name)

    def least(self, key: str, holds: Callable[[Def, dict[str, bool]], bool]) -> dict[str, bool]:
        """Of which definitions a property holds, if it holds of them by what they apply."""
        return self.outline.least(key, holds)


class _Asked(Mapping[str, T]):
    """What a program has under names; all of it is made when another one is asked for."""

    def __init__(self, there: Mapping[str, T], whole: Callable[[], Mapping[str, T]]) -> None:
        self.there, self.whole = there, whole

    def __getitem__(self, name: str) -> T:
        value = self.there.get(name)
        return self.whole()[name] if value is None or isinstance(value, Later) else value

    def __contains__(self, name: Any) -> bool:
        return name in self.there or name in self.whole()

    def __iter__(self) -> Iterator[str]:
        return iter(self.whole())

    def __len__(self) -> int:
        return len(self.whole())


def program_of(
    types: Mapping[str, Type | Family],
    defs: Mapping[str, Def],
    finish: Callable[[Program], Program] = lambda whole: whole,
) -> Program:
    """A program of definitions of which some may be made later; then `finish` takes what is needed.

    >>> program_of({}, {}).defs
    {}
    """
    shell = Program(types, defs)
    later = any([isinstance(d, Later) for d in defs.values()])
    return Unmade(shell, finish) if later else shell


__all__ = ["Later", "Unmade", "program_of"]
