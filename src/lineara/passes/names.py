"""The names that passes give: suffixes, and a letter in front for tangents and cotangents."""

from lineara.types import Type, show

JVP, NL, LIN, PRI, TAPE, T, E, M, VJP, GRAD, LIVE = (
    ".jvp", ".nl", ".lin", ".pri", ".tape", ".t", ".e", ".m", ".vjp", ".grad", ".live",
)  # fmt: skip


def mangled(t: Type) -> str:
    """The text of a type as part of a name."""
    swaps = {"<": "L", ">": "J", ",": ".", " ": "", "[": "_", "]": "_", "{": "R", "}": "K"}
    return "".join(swaps.get(c, c) for c in show(t)).replace(":", "'").replace("|", "'")


def tangent(name: str) -> str:
    """The name of the tangent of a variable: dx of x."""
    return f"d{name}"


def cotangent(name: str) -> str:
    """The name of the cotangent of a linear variable: cx of dx."""
    return f"c{name[1:]}" if name[:1] == "d" and len(name) > 1 else f"c{name}"
