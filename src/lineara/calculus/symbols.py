"""Function symbols: the elementwise operations of the library, from their own declarations.

Nothing about a derivative stands here.  The numbers come from the declared fact, and the term of a
derivative, for derivatives of derivatives, is its partials read as expressions (jacobian.py).  A
function of Python that is given to one of the calculus is a symbol too; the eager engine has its
partials, which are functions of Python again.
"""

import functools
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lineara.api import jvp
from lineara.calculus.types import BOOL, INT, Product, R, Type, power
from lineara.facts.hints import Leaf
from lineara.facts.primitive import Constant, Elementwise, registry
from lineara.ops.python_numbers import Own
from lineara.ops.scipy.special import Special

JOINT = {"add", "subtract", "negative", "deg2rad", "rad2deg"}  # linear in all arguments at once
EACH: dict[str, tuple[int, ...]] = {
    "multiply": (0, 1),
    "divide": (0,),
}  # linear in one when the other is fixed


@dataclass(frozen=True, eq=False, slots=True)
class Symbol:
    """A name, its type, and what computes it: a primitive, a term, or plain Python on integers."""

    name: str
    takes: Type
    gives: Type
    primitive: Any = None
    body: Any = None  # the closed function that a file declares it to be
    exact: Callable[..., Any] | None = None  # on Int and Bool, where nothing moves
    joint: bool = False  # linear in all arguments at once
    each: tuple[int, ...] = ()  # the arguments, if two, in which it is linear while the other stays

    def __repr__(self) -> str:
        return self.name

    @property
    def moves(self) -> bool:
        """Whether its derivative may differ from zero."""
        return self.body is not None or isinstance(self.primitive, Elementwise)

    @property
    def selects(self) -> bool:
        """Whether it selects an argument: a partial that is 0 means that it was not selected."""
        return self.primitive.selects

    def evaluate(self, args: Sequence[Any]) -> Any:
        """The value at numbers, or at whatever boxes the primitive knows."""
        if self.exact is not None:
            return self.exact(*args)
        y = self.primitive(*args)
        return y if isinstance(self.primitive, Elementwise) else _plain(y, self.gives)

    def jvp(self, args: Sequence[float], tangents: Sequence[float | None]) -> float:
        """The derivative at `args` in the direction `tangents`; None is zero by structure."""
        active, joint = self._joint(args)
        assert not any([t for i, t in enumerate(tangents) if i not in active]), "an order moves"
        moving = [tangents[i] for i in active]
        y_dot = joint.forward([None if t is None else np.float64(t) for t in moving])
        return 0.0 if y_dot is None else float(y_dot)

    def vjp(self, args: Sequence[float], cotangent: float) -> list[float | None]:
        """The derivative's transpose at `args`; None for an argument that a selection left out."""
        active, joint = self._joint(args)
        bars = dict(zip(active, joint.back(np.float64(cotangent)), strict=True))
        cotangents = [None if bars.get(i) is None else float(bars[i]) for i in range(len(args))]
        return [None if self.primitive.selects and not x else x for x in cotangents]

    def _joint(self, args: Sequence[float]) -> tuple[tuple[int, ...], Any]:
        """The positions that may have tangents (orders have none), and the linear map from them."""
        numbers = tuple([np.float64(a) for a in args])
        orders = _orders(self)
        active = tuple([i for i in range(len(numbers)) if i not in orders])
        y = self.primitive(*numbers)
        return active, self.primitive.linearize(y, numbers, active, {}, None)


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Foreign(Symbol):
    """A function of Python from numbers to a number."""

    python: Any = None
    known: dict[int, "Foreign"] = field(default_factory=dict)

    @property
    def moves(self) -> bool:
        """True: a function of Python may have any derivative."""
        return True

    @property
    def selects(self) -> bool:
        """False: a partial that is 0 says nothing about a function of Python."""
        return False

    def evaluate(self, args: Sequence[Any]) -> Any:
        """The value that the function of Python returns."""
        return self.python(*args)

    def partial(self, i: int) -> "Foreign":
        """Its partial in argument i, by the eager engine."""
        if i not in self.known:
            slope = functools.partial(_slope, self.python, i)
            name = f"{self.name}'" if self.takes == R else f"{self.name}'{i}"
            self.known[i] = Foreign(name, self.takes, R, python=slope)
        return self.known[i]

    def jvp(self, args: Sequence[float], tangents: Sequence[float | None]) -> float:
        """The derivative at `args` in the direction `tangents`; None is zero by structure."""
        moving = [(i, t) for i, t in enumerate(tangents) if t is not None]
        return sum([float(self.partial(i).evaluate(args)) * t for i, t in moving])

    def vjp(self, args: Sequence[float], cotangent: float) -> list[float | None]:
        """The derivative's transpose at `args`."""
        return [float(self.partial(i).evaluate(args)) * cotangent for i in range(len(args))]


def _slope(f: Callable[..., Any], i: int, *args: Any) -> Any:
    """The derivative of a function in one of its arguments."""
    return jvp(lambda x: f(*args[:i], x, *args[i + 1 :]), (args[i],), (1.0,))[1]


def _plain(value: Leaf, gives: Type) -> Any:
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
    "pow2": "square", "gammaln": "lgamma",
}  # fmt: skip
_STILL = ("sign", "floor", "ceil", "trunc", "rint")
_ASK = ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal")


_INNER = {  # written by rules; or complex, or with partials that are; or of an integer
    "length", "polygamma_difference", "gamma_density", "beta_density", "wofz", "log1p_deficit",
    "over_square", "ellipk_slope", "ellipkm1_slope", "erfcx", "dawsn", "log_ndtr", "ndtri_exp",
    "ldexp",
}  # fmt: skip
_NAMES = {"i0", "i1", "j0", "j1", "k0", "k1", "y0", "y1"}  # names that programs use as variables


@functools.cache
def declared() -> dict[str, Symbol]:
    """Every elementwise operation on real numbers but Python's own: partials are written so."""
    table: dict[str, Symbol] = {}
    for name, p in registry.primitives.items():
        if isinstance(p, Own):
            continue
        if isinstance(p, Elementwise):
            how = {"joint": name in JOINT, "each": EACH.get(name, ())}
            table[name] = Symbol(name, power(p.arity), R, p, **how)
        elif isinstance(p, Constant) and name in _STILL:
            table[name] = Symbol(name, R, R, p)
        elif isinstance(p, Constant) and name in _ASK:
            table[name] = Symbol(name, Product(R, R), BOOL, p)
    return table


@functools.cache
def standard() -> dict[str, Symbol]:
    """The function symbols that programs have: the elementwise operations, and those on integers.

    Special functions are among them.  An operation with an order, an argument in which nothing is
    said of the derivative, is not, nor is one of three numbers, nor are Bessel functions whose
    names are those of variables.

    >>> standard()["atan2"].takes, standard()["pow2"]
    (Product(left=Base(name='R'), right=Base(name='R')), square)
    """
    left_out = _INNER | _NAMES
    table = {n: s for n, s in declared().items() if n not in left_out and _is_said(s)}
    return table | _of_integers() | {short: table[long] for short, long in SHORT.items()}


def _is_said(symbol: Symbol) -> bool:
    """Whether the declaration says all of the derivative, in one number or a pair."""
    return not _orders(symbol) and getattr(symbol.primitive, "arity", 1) < 3


def _orders(symbol: Symbol) -> tuple[int, ...]:
    """The arguments in which the declaration says nothing of the derivative."""
    return tuple(symbol.primitive.without) if isinstance(symbol.primitive, Special) else ()
