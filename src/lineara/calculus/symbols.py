"""Function symbols: the elementwise operations of the library, from their own declarations.

Nothing about a derivative stands here.  The numbers come from the declared fact, and the term of a
derivative, for derivatives of derivatives, is its partials read as expressions (jacobian.py).
"""

import functools
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lineara.calculus.types import BOOL, INT, Product, R, Type, power
from lineara.ops import elementwise
from lineara.primitive import Constant, Elementwise, registry
from lineara.symbol import Sym

JOINT = {"add", "subtract", "negative", "deg2rad", "rad2deg"}  # linear in all arguments at once
EACH = {"multiply": (0, 1), "divide": (0,)}  # linear in one when the other is fixed


@dataclass(frozen=True, eq=False, slots=True)
class Symbol:
    """A name, its type, and what computes it: a primitive, a term, or plain Python on integers."""

    name: str
    takes: Type
    gives: Type
    primitive: Any = None
    body: Any = None  # the closed function that a file declares it to be
    exact: Callable[..., Any] | None = None  # on Int and Bool, where nothing moves

    def __repr__(self) -> str:
        return self.name

    @property
    def moves(self) -> bool:
        """Whether it has a derivative that is not zero."""
        return self.body is not None or isinstance(self.primitive, Elementwise)

    def evaluate(self, args: Sequence[Any]) -> Any:
        """The value at numbers, or at whatever boxes the primitive knows."""
        if self.exact is not None:
            return self.exact(*args)
        found = self.primitive(*args)
        return found if isinstance(self.primitive, Elementwise) else _plain(found, self.gives)

    def jvp(self, args: Sequence[float], tangents: Sequence[float]) -> float:
        """The derivative at `args` in the direction `tangents`."""
        found = self._joint(args).forward([np.float64(t) for t in tangents])
        return 0.0 if found is None else float(found)

    def vjp(self, args: Sequence[float], cotangent: float) -> list[float | None]:
        """The derivative's transpose at `args`; None for an argument that a selection left out."""
        found = [
            None if x is None else float(x) for x in self._joint(args).back(np.float64(cotangent))
        ]
        return [None if self.primitive.selects and not x else x for x in found]

    def _joint(self, args: Sequence[float]) -> Any:
        numbers = tuple([np.float64(a) for a in args])
        active = tuple(range(len(numbers)))
        return self.primitive.linearize(self.primitive(*numbers), numbers, active, {}, None)


def _plain(value: Any, gives: Type) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        return bool(value) if gives == BOOL else float(value)
    return value


def _of_integers() -> dict[str, Symbol]:
    two, choice = Product(INT, INT), Product(BOOL, BOOL)
    arithmetic = {"iadd": operator.add, "isub": operator.sub, "imul": operator.mul}
    arithmetic |= {"idiv": operator.floordiv, "imod": operator.mod}
    compare = {"ilt": operator.lt, "ile": operator.le, "ieq": operator.eq}
    logic = {"and": operator.and_, "or": operator.or_}
    table = {name: Symbol(name, two, INT, exact=f) for name, f in arithmetic.items()}
    table |= {name: Symbol(name, two, BOOL, exact=f) for name, f in compare.items()}
    table |= {name: Symbol(name, choice, BOOL, exact=f) for name, f in logic.items()}
    table["not"] = Symbol("not", BOOL, BOOL, exact=operator.not_)
    table["real"] = Symbol("real", INT, R, exact=float)
    return table


INTEGER = {"+": "iadd", "-": "isub", "*": "imul"}  # what an infix operator is between integers
INFIX = {"-": "subtract", "*": "multiply", "/": "divide"}
SHORT = {
    "add": "add", "sub": "subtract", "mul": "multiply", "div": "divide", "neg": "negative",
    "pow2": "square",
}  # fmt: skip
_STILL = ("sign", "floor", "ceil", "trunc", "rint")
_ASK = ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal")


_ZERO = ("copysign", "nextafter")  # a partial that is declared 0 is so; elsewhere it is an order's
_INNER = ("length",)  # written by rules, and what users call square root


@functools.cache
def declared() -> dict[str, Symbol]:
    """Every elementwise operation on real numbers: what partials are written with."""
    table: dict[str, Symbol] = {}
    for name, p in registry.primitives.items():
        if isinstance(p, Elementwise):
            table[name] = Symbol(name, power(p.arity), R, p)
        elif isinstance(p, Constant) and name in _STILL:
            table[name] = Symbol(name, R, R, p)
        elif isinstance(p, Constant) and name in _ASK:
            table[name] = Symbol(name, Product(R, R), BOOL, p)
    return table


@functools.cache
def standard() -> dict[str, Symbol]:
    """The function symbols that programs have: the elementwise operations, and those on integers.

    An operation with an order, an integer that has no derivative, is none of them.

    >>> standard()["atan2"].takes, standard()["pow2"]
    (Product(left=Base(name='R'), right=Base(name='R')), square)
    """
    own = {id(p) for p in vars(elementwise).values()}  # special functions have orders and domains
    found = {n: s for n, s in declared().items() if id(s.primitive) in own or not s.moves}
    table = {n: s for n, s in found.items() if n not in _INNER and not _has_order(s)}
    return table | _of_integers() | {short: table[long] for short, long in SHORT.items()}


def _has_order(symbol: Symbol) -> bool:
    """Whether the declaration says nothing of the derivative in some argument."""
    if not symbol.moves or symbol.name in _ZERO:
        return False
    partials = symbol.primitive.expressions()
    return any([not isinstance(p, Sym) and p == 0 for p in partials])
