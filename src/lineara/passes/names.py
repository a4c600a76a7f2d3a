"""The names that passes give: suffixes, and a letter in front for tangents and cotangents."""

import re
from collections.abc import Sequence

from lineara.facts.types import Type, show

JVP, NL, LIN, PRI, TAPE, T, E, M, MS, VJP, GRAD, LIVE = (
    ".jvp", ".nl", ".lin", ".pri", ".tape", ".t", ".e", ".m", ".ms", ".vjp", ".grad", ".live",
)  # fmt: skip
VARIANT = re.compile(r"\.jvp(\.on\d+('\d+)*)?(\.as\d+('\d+)*)*$")


def variant(name: str, on: Sequence[int], same: Sequence[Sequence[int]]) -> str:
    """f.jvp.on0'2.as1'3: the jvp that hands tangents on, and takes some formals for one array."""
    parts = [".on" + "'".join(map(str, on))] if on else []
    parts += [".as" + "'".join(map(str, c)) for c in same]
    return "".join([name, JVP, *parts])


def of_jvp(name: str) -> str:
    """The definition whose jvp has that name, or the name itself.

    >>> of_jvp("f.jvp.on0'2"), of_jvp("f.jvp.on1.lin.t.e.jvp"), of_jvp("f")
    ('f', 'f.jvp.on1.lin.t.e', 'f')
    """
    return VARIANT.sub("", name)


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
