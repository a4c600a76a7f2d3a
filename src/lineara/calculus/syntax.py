"""What the parser makes of a text: a tree that knows its places, without types."""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from lineara.calculus.types import Type
from lineara.errors import CalculusError
from lineara.text.source_location import Place, located


class Text(NamedTuple):
    """A text, and the file that it stands in."""

    text: str
    file: str = ""

    def wrong(self, place: Place, message: str) -> CalculusError:
        """The error with `file:line:column`, the line and a caret."""
        return CalculusError(located(self.text, self.file, place, message))


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
