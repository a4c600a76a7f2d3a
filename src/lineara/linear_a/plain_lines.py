"""Bindings in their plainest form, `let x: f64 = y * z in` on one line: one token each.

A lexer that makes ten tokens of such a line, and a parser that makes a tree of them, take most of
the time that a long program takes to be read.  Here the line is one token, and the tree that the
grammar would give is made of it at once.  What does not look so is left to the grammar, and so is
every error.
"""

import re
from typing import Any

from lineara.linear_a.syntax import DTYPES, KEYWORDS
from lineara.text.language import FIRST, NEXT

_END = rf"(?![{NEXT}.'])"
_DTYPE = rf"(?:{'|'.join(sorted(DTYPES))}){_END}"
_VAR = rf"~?(?!(?:{'|'.join(sorted(KEYWORDS))}){_END})[{FIRST}][{NEXT}.']*"
_BINDER = rf"{_VAR}(?: *: *{_DTYPE}(?:\[\d+(?:, *\d+)*\])?)?"
_NUMBER = rf"-?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?(?:_{_DTYPE})?"


def _list(item: str) -> str:
    return rf"(?:{item}(?: *, *{item})*)?"


_TARGET = rf"(?:{_BINDER}|\( *{_list(_BINDER)} *; *{_list(_BINDER)} *\))"
_APPLIED = rf"{_VAR} *\( *{_list(_VAR)} *(?:; *{_list(_VAR)} *)?\)"
_RIGHT = rf"(?:drop\({_VAR}\)|{_APPLIED}|{_VAR} *[-+*/] *{_VAR}|{_VAR}|{_NUMBER})"
PLAIN = rf"let +{_TARGET} *= *{_RIGHT} +in{_END}"
"""The regular expression of the token."""

_WORD = re.compile(rf"({_NUMBER})|~?[{FIRST}][{NEXT}.']*|[^ ]")


class Word(str):
    """A word of the text, and where it stands; of a number the type is INT."""

    __slots__ = ("column", "line", "type")
    line: int
    column: int
    type: str


class Node:
    """A tree like those of the grammar; it begins where `at` does."""

    __slots__ = ("children", "column", "data", "line")

    def __init__(self, data: str, children: list[Any], at: Any) -> None:
        self.data: str = data
        self.children: list[Any] = children
        self.line: Any = at.line
        self.column: Any = at.column


def binding(token: Any) -> Node:
    """The tree of a binding: what the grammar has for the same text.

    >>> from types import SimpleNamespace
    >>> class Token(str):
    ...     line, column = 1, 1
    >>> binding(Token("let x = y * z in")).children[1].children[0].data
    'chain'
    """
    line, column = token.line, token.column
    words = []
    for m in _WORD.finditer(token, 3):
        w = Word(m[0])
        w.line = line
        w.column = column + m.start()
        w.type = "INT" if m.lastindex else ""
        words.append(w)
    target, i = _target(words)
    return Node("binding", [target, _right(words, i + 1)], token)


def _target(words: list[Word]) -> tuple[Node, int]:
    """The binders, and where the sign of equality is."""
    at = words[0]
    if at != "(":
        binder, i = _binder(words, 0)
        return Node("one", [binder], at), i
    binders, i = [], 1
    while words[i] != ")":
        if words[i] in (",", ";"):
            i += 1
        else:
            binder, i = _binder(words, i)
            binders.append(binder)
    return Node("several", [Node("binders", binders, words[1])], at), i + 1


def _binder(words: list[Word], i: int) -> tuple[Node, int]:
    name = words[i]
    if words[i + 1] != ":":
        return Node("binder", [name, None], name), i + 1
    dtype, dims, i = words[i + 2], None, i + 3
    if words[i] == "[":
        end = words.index("]", i)  # type: ignore[arg-type]  # a word is a str
        dims, i = Node("dims", words[i + 1 : end : 2], words[i]), end + 1
    return Node("binder", [name, Node("array", [dtype, dims], dtype)], name), i


def _right(words: list[Word], i: int) -> Node:
    """The right-hand side, which begins at a word."""
    at, after = words[i], words[i + 1]
    if after == "in":
        leaf = _number(at) if at.type else _var(at)
    elif after != "(":
        leaf = Node("chain", [_var(at), after, _var(words[i + 2])], at)
    elif at == "drop":
        a = _var(words[i + 2])
        leaf = Node("drop", [Node("rhs", [a], a)], at)
    else:
        leaf = _applied(words, i)
    return Node("rhs", [leaf], at)


def _applied(words: list[Word], i: int) -> Node:
    at, zones, semicolon = words[i], [[]], None
    for w in words[i + 2 : -2]:
        if w == ";":
            semicolon = w
            zones.append([])
        elif w != ",":
            zones[-1].append(_var(w))
    first, second = [Node("args", z, z[0]) if z else None for z in (*zones, [])[:2]]
    return Node("apply", [at, None, first, semicolon, second], at)


def _var(w: Word) -> Node:
    return Node("var", [w], w)


def _number(w: Word) -> Node:
    number, _, dtype = w.partition("_")
    kind = "int" if number.lstrip("-").isdigit() else "num"
    suffix = f"_{dtype}" if dtype else None
    return Node("number", [Node("literal", [Node(kind, [number], w), suffix], w)], w)
