"""What the parser makes of a text: a tree that knows its places, without types."""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from lineara.calculus.types import Type
from lineara.errors import CalculusError


class Place(NamedTuple):
    """Line and column, from 1."""

    line: int
    column: int


class Text(NamedTuple):
    """A text, and the file that it stands in."""

    text: str
    file: str = ""

    def wrong(self, place: Place, message: str) -> CalculusError:
        """`file:line:column: message`, the line and a caret; of a long line, a piece."""
        name = f"{self.file}:" if self.file else ""
        lines = self.text.split("\n")
        line = lines[place.line - 1].rstrip("\r") if 0 < place.line <= len(lines) else ""
        start = max(0, place.column - 61) if len(line) > 120 else 0
        piece = line[start : start + 120]
        shown = "".join([c if c.isprintable() or c == "\t" else "?" for c in piece])
        before = shown[: place.column - 1 - start]
        pad = "".join(["\t" if c == "\t" else " " for c in before])
        at = f"{name}{place.line}:{place.column}"
        return CalculusError(f"{at}: {message}\n  {shown}\n  {pad}^")


@dataclass(frozen=True, eq=False, slots=True)
class Syntax:
    """A construct: its kind, its parts, what else it states, and its place."""

    kind: str
    parts: tuple["Syntax", ...]
    place: Place
    data: Any = None


@dataclass(frozen=True, eq=False, slots=True)
class Param:
    """A name that is bound, and its type if the text has it."""

    name: str
    type: Type | None
    place: Place


@dataclass(frozen=True, eq=False, slots=True)
class Declaration:
    """`def name = body`, `symbol name params = body`, or `import "name"` without a body."""

    kind: str
    name: str
    body: Syntax | None
    place: Place


@dataclass(frozen=True, eq=False, slots=True)
class File:
    """The declarations of a text and its term, if it has one."""

    text: Text
    declarations: tuple[Declaration, ...]
    term: Syntax | None


def nearest(name: str, known: Iterable[str]) -> str:
    """`; did you mean x?`, or nothing."""
    near = difflib.get_close_matches(name, list(known), 1)
    return f"; did you mean {near[0]}?" if near else ""
