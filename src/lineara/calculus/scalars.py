"""Numbers that are being differentiated: a level is one differentiation, and each has its own tag.

    Forward(level, x, x_dot)     a number and its tangent
    Reverse(tape, x, index)      a number and its place on a tape

A symbol at several levels is applied at the innermost one, to numbers of the levels outside: so
derivatives nest, and tangents of different differentiations are never taken for each other.
"""

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lineara.calculus.symbols import Foreign, Symbol, declared, standard
from lineara.facts.box import Box
from lineara.facts.hints import Value
from lineara.facts.primitive import Elementwise, registry
from lineara.facts.symbol import exact_source


class Tape:
    """One reverse differentiation: for each number the numbers that it came from, and its weights.

    A hook of a number hears its cotangent.
    """

    def __init__(self, level: int) -> None:
        self.level = level
        self.parents: list[tuple[tuple[int, Any], ...]] = []
        self.hooks: dict[int, Callable[[Any], None]] = {}

    def number(self, primal: Value, parents: tuple[tuple[int, Any], ...] = ()) -> "Reverse":
        """A number that is on the tape."""
        self.parents.append(parents)
        return Reverse(self, primal, len(self.parents) - 1)

    def back(self, index: int) -> dict[int, Any]:
        """The cotangents of the numbers that came from nowhere; a map, absent is zero."""
        bars: dict[int, Any] = {index: 1.0}
        cotangents: dict[int, Any] = {}
        for i in range(index, -1, -1):
            bar = bars.pop(i, None)
            if bar is None:
                continue
            if i in self.hooks:
                self.hooks[i](bar)
            if not self.parents[i]:
                cotangents[i] = bar
            for j, w in self.parents[i]:
                term = bar if w is None else w * bar
                bars[j] = bars[j] + term if j in bars else term
        return cotangents


INNERMOST = 1_000_000  # deeper than any box of another engine


class Tagged(Box):
    """A number at a level; with boxes of other engines it is the innermost one, and interprets."""

    __slots__ = ("level", "primal")
    level: int
    primal: Any

    @property
    def depth(self) -> int:
        """Levels of the calculus lie within everything else."""
        return INNERMOST + self.level

    def interpret(
        self, primitive: Elementwise, args: tuple[Any, ...], params: dict[str, Any]
    ) -> Any:
        """The primitive as a function symbol."""
        assert not params, f"{primitive.name} has parameters, and no symbol has"
        return apply(declared()[primitive.name], args)

    def __neg__(self) -> Any:
        return apply(standard()["negative"], (self,))


class Forward(Tagged):
    """A number and its tangent."""

    __slots__ = ("tangent",)

    def __init__(self, level: int, primal: Value, tangent: Value) -> None:
        self.level = level
        self.primal = primal
        self.tangent: Value = tangent


class Reverse(Tagged):
    """A number and its place on a tape."""

    __slots__ = ("index", "tape")

    def __init__(self, tape: Tape, primal: Value, index: int) -> None:
        self.level: int = tape.level
        self.primal = primal
        self.tape: Tape = tape
        self.index: int = index


def _operators() -> None:
    named = {"add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide"}
    for stem, name in (named | {"pow": "power"}).items():
        setattr(Tagged, f"__{stem}__", lambda a, b, _n=name: apply(standard()[_n], (a, b)))
        setattr(Tagged, f"__r{stem}__", lambda a, b, _n=name: apply(standard()[_n], (b, a)))
    for word in ("lt", "le", "gt", "ge", "eq", "ne"):
        compare = getattr(operator, word)
        setattr(Tagged, f"__{word}__", lambda a, b, _c=compare: _c(plain(a), plain(b)))
    Tagged.__hash__ = object.__hash__  # type: ignore[method-assign]  # __eq__ compares numbers


_operators()


def plain(x: Value) -> Any:
    """The number without any level."""
    while isinstance(x, Tagged):
        x = x.primal
    return x


_FAST = {"add": operator.add, "subtract": operator.sub, "multiply": operator.mul}


def apply(symbol: Symbol, args: Sequence[Any]) -> Any:
    """A function symbol at numbers of any levels.

    >>> apply(standard()["multiply"], (3.0, Forward(1, 2.0, 1.0))).tangent
    3.0
    """
    level = 0
    for a in args:
        if isinstance(a, Tagged) and a.level > level:
            level = a.level
    if level == 0:
        return _plainly(symbol, args)
    if not symbol.moves:
        return _plainly(symbol, [plain(a) for a in args])
    lower = [a.primal if isinstance(a, Tagged) and a.level == level else a for a in args]
    y = apply(symbol, lower)
    at = [(i, a) for i, a in enumerate(args) if isinstance(a, Tagged) and a.level == level]
    weights = [(a, weight(symbol, i, y, lower)) for i, a in at]
    if symbol.selects:  # a lane that is not chosen is a structural zero
        weights = [(a, w) for a, w in weights if isinstance(w, Tagged) or w != 0]
    first = at[0][1]
    if isinstance(first, Reverse):
        parents = [(a.index, w) for a, w in weights if isinstance(a, Reverse)]
        return first.tape.number(y, tuple(parents))
    tangents = [w * a.tangent for a, w in weights if isinstance(a, Forward)]
    return Forward(level, y, functools.reduce(operator.add, tangents)) if tangents else y


def _plainly(symbol: Symbol, args: Sequence[Any]) -> Any:
    if isinstance(symbol, Foreign):
        return symbol.evaluate(args)
    fast = _FAST.get(symbol.name)
    if fast is not None and type(args[0]) is float and type(args[1]) is float:
        return fast(args[0], args[1])
    if symbol.exact is None and all([type(a) is float for a in args]):
        y = symbol.primitive.array(*args) if symbol.moves else symbol.evaluate(args)
        return y if isinstance(y, bool) else float(y)
    return symbol.evaluate(args)


def weight(symbol: Symbol, i: int, y: Value, args: Sequence[Any]) -> Any:
    """The partial with respect to argument i, from its declaration."""
    if isinstance(symbol, Foreign):
        return apply(symbol.partial(i), args)
    w = _weights(symbol)[i](_typed(y), *[_typed(a) for a in args])
    return float(w) if isinstance(w, np.floating | int) else w


def _typed(x: Value) -> Any:
    """A plain number as NumPy's, which divides by zero."""
    return np.float64(x) if type(x) is float else x


@functools.cache
def _weights(symbol: Symbol) -> list[Callable[..., Any]]:
    primitive = symbol.primitive
    names = ("y", *primitive.ARGS[: primitive.arity])
    return [
        eval(f"lambda {', '.join(names)}: {exact_source(p)}", _namespace())
        for p in primitive.expressions()
    ]


@functools.cache
def _namespace() -> dict[str, Any]:
    """The names that the text of a partial may mention."""
    table = {name: functools.partial(_called, s) for name, s in declared().items()}
    return table | {"where": chosen, "real": _same, "math": math}


def _same(x: Value) -> Any:
    """The real part of a number: numbers are real here."""
    return x


def chosen(c: Value, a: Value, b: Value) -> Any:
    """The choice in a partial; for what is staged it stays one."""
    if isinstance(c, bool | np.bool_):
        return a if c else b
    level = max([x.level for x in (a, b) if isinstance(x, Tagged)], default=0)
    if not level:
        return registry.primitives["where"](c, a, b)
    at = [x if isinstance(x, Tagged) and x.level == level else None for x in (a, b)]
    y = chosen(c, *[x if t is None else t.primal for x, t in zip((a, b), at, strict=True)])
    tape = next((t.tape for t in at if isinstance(t, Reverse)), None)
    if tape is None:
        moved = [t.tangent if isinstance(t, Forward) else 0.0 for t in at]
        return Forward(level, y, chosen(c, *moved))
    weights = zip(at, ((1.0, 0.0), (0.0, 1.0)), strict=True)
    parents = [(t.index, chosen(c, *w)) for t, w in weights if isinstance(t, Reverse)]
    return tape.number(y, tuple(parents))


def _called(symbol: Symbol, *args: Any) -> Any:
    return apply(symbol, args)
