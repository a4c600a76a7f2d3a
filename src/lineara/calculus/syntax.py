"""What the parser makes of a text: a tree that knows its places, without types."""

from dataclasses import dataclass
from typing import Any

from lineara.calculus.types import Type
from lineara.text.language import Source
from lineara.text.source_location import Place


@dataclass(frozen=True, eq=False, slots=True)
class Syntax:
    """A construct: its kind, its parts, what else it states, and its place."""

    kind: str
    parts: tuple["Syntax", ...]
    place: Place
    data: Any = None


@dataclass(frozen=True, eq=False, slots=True)
class Param:
    """A name that is bound, and its type if the text has it; a pattern has parts as well."""

    name: str
    type: Type | None
    place: Place
    parts: tuple["Param", ...] = ()

    def __str__(self) -> str:
        return f"<{', '.join(map(str, self.parts))}>" if self.parts else self.name


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

    text: Source
    declarations: tuple[Declaration, ...]
    term: Syntax | None
