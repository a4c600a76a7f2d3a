"""Places in a user's text, and the errors that show them: the parsers' common part."""

from typing import NamedTuple

WIDE = 120  # of a longer line a piece is shown


class Place(NamedTuple):
    """Where something stands in the text of a user: line and column, counted from 1."""

    line: int
    column: int


def located(text: str, file: str, place: Place, message: str) -> str:
    r"""`file:line:column: message`, the line and a caret; of a long one, a piece.

    >>> print(located("let x = 1\nin y", "a.pb", Place(2, 4), "y is not known here"))
    a.pb:2:4: y is not known here
      in y
         ^
    """
    name = f"{file}:" if file else ""
    if not text:
        return f"{name} {message}" if name else message
    lines = text.split("\n")
    line = lines[place.line - 1].rstrip("\r") if 0 < place.line <= len(lines) else ""
    start = max(0, place.column - 1 - WIDE // 2) if len(line) > WIDE else 0
    piece = line[start : start + WIDE]
    shown = "".join([c if c.isprintable() or c == "\t" else "?" for c in piece])
    before = shown[: place.column - 1 - start]
    pad = "".join(["\t" if c == "\t" else " " for c in before])
    return f"{name}{place.line}:{place.column}: {message}\n  {shown}\n  {pad}^"


def place_of(token: object) -> Place:
    """Where a token, or a tree of tokens, begins."""
    return Place(getattr(token, "line", 1) or 1, getattr(token, "column", 1) or 1)
