"""Symbols: what a partial becomes when it is called once, at its declaration."""

import math
from typing import Any, ClassVar

from lineara.facts.box import Box
from lineara.facts.hints import Shaped


class Sym(Box):
    """A symbolic expression: what a partial becomes when it is called once, at its declaration.

    >>> x = Sym("x")
    >>> (1 - x * x).source()
    '(1 - (x * x))'
    """

    __slots__ = ("args", "head")
    depth = math.inf
    _INFIX: ClassVar[dict[str, str]] = {
        "add": "+",
        "subtract": "-",
        "multiply": "*",
        "divide": "/",
        "power": "**",
        "equal": "==",
        "less": "<",
        "greater": ">",
    }

    def __init__(self, head: str, args: tuple[Any, ...] = ()) -> None:
        self.head: str = head
        self.args: tuple[Any, ...] = args

    def interpret(self, primitive: Any, args: tuple[Any, ...], params: dict[str, Any]) -> "Sym":
        """The application of `primitive`, as an expression."""
        assert not params, f"{primitive.name}: a partial cannot take parameters"
        return Sym(primitive.name, args)

    def source(self, where: str = "where({}, {}, {})") -> str:
        """Python text of the expression; `where` says how a choice is written."""
        parts = [a.source(where) if isinstance(a, Sym) else repr(a) for a in self.args]
        if self.head == "where":
            return where.format(*parts)
        if self.head == "negative":
            return f"(-{parts[0]})"
        if self.head in self._INFIX:
            return f"({parts[0]} {self._INFIX[self.head]} {parts[1]})"
        return f"{self.head}({', '.join(parts)})" if self.args else self.head

    def reads(self, name: str) -> bool:
        """Whether the expression mentions the symbol `name`."""
        if not self.args:
            return self.head == name
        return any(isinstance(a, Sym) and a.reads(name) for a in self.args)


def source(expression: Shaped, where: str = "where({}, {}, {})") -> str:
    """Python text of a symbolic expression or of the number it came to."""
    return expression.source(where) if isinstance(expression, Sym) else repr(float(expression))


def exact_source(expression: Any) -> str:
    """The same, with an int for a whole number: Fractions stay Fractions."""
    if not isinstance(expression, Sym) and expression == int(expression):
        return repr(int(expression))
    return source(expression)
