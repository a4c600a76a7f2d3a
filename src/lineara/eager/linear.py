"""A level whose values are types only: it records a linear function and refuses any other.

Rules of General primitives are transposed here, and so is what the user gives to
`linear_transpose`.  A node has a type but no value; every operation must be linear in such nodes.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lineara.eager.level import Entry, Level
from lineara.eager.node import Array, Traced
from lineara.eager.sweep import add, arrived, clear, forward, reverse, tidy
from lineara.errors import LinearityError
from lineara.primitive import (
    Constant,
    Elementwise,
    Joint,
    Linear,
    Multilinear,
    Primitive,
    Recur,
    Sym,
    op,
)
from lineara.types import ArrayType, type_of


class LinearLevel(Level):
    """A level of nodes that have a type and no value."""

    def __init__(self, depth: int, recur: Recur) -> None:
        super().__init__(depth, recur)
        body = {"level": self, "depth": depth, "__slots__": (), "__bool__": _no_value}
        body |= {"__int__": _no_value, "__float__": _no_value, "now": lambda n: n}
        body |= {"__repr__": lambda n: f"linear({n.v!r})"}
        self.N = type("N", (Array,), body)

    def wrap(self, v: Any) -> Any:
        """A node of that type."""
        return self.array(type_of(v), self.N)

    def apply(self, primitive: Primitive, args: tuple, params: dict[str, Any]) -> Any:
        """Record a linear operation; refuse any other."""
        active = tuple(i for i, a in enumerate(args) if self.mine(a))
        values = tuple(a.v if i in active else a for i, a in enumerate(args))
        self.check(primitive, values, active)
        y = primitive.result(*values, **params)
        joint = primitive.linearize(y, values, active, params, self.recur)
        assert joint is not None, f"{primitive.name} is linear but gives no map"
        return self.record(y, [args[i] for i in active], joint, primitive.name, type_of(y).size)

    def check(self, primitive: Primitive, values: tuple, active: tuple[int, ...]) -> None:
        """Refuse an operation that is not linear in the active arguments."""
        name, types = primitive.name, ", ".join(repr(type_of(values[i])) for i in active)
        if isinstance(primitive, Constant):
            raise LinearityError(
                f"{name} reads the value of a linear {types}, which has a type but no value; "
                "a linear function may not depend on it that way"
            )
        if isinstance(primitive, Elementwise):
            self._check_elementwise(primitive, values, active)
        elif isinstance(primitive, Linear):
            places = range(len(values)) if primitive.linear is None else primitive.linear
            rest = [values[i] for i in places if i not in active]
            if any(np.any(v) for v in rest):
                raise LinearityError(
                    f"{name} of a linear {types} and a constant that is not zero is affine; "
                    "a linear function maps zero to zero, so leave the constant out"
                )
        elif not isinstance(primitive, Multilinear) or len(active) > 1:
            raise LinearityError(f"{name} is not linear in {types}; a linear function may not use it")

    def _check_elementwise(
        self, primitive: Elementwise, values: tuple, active: tuple[int, ...]
    ) -> None:
        name, types = primitive.name, ", ".join(repr(type_of(values[i])) for i in active)
        partials = primitive.expressions()
        symbols = ("y", *(primitive.ARGS[i] for i in active))
        for i in active:
            stated = partials[i]
            if isinstance(stated, Sym) and any(stated.reads(s) for s in symbols):
                raise LinearityError(
                    f"{name} is not linear in {types}; a linear function adds, subtracts, and "
                    "multiplies by constants"
                )
        with np.errstate(all="ignore"):
            rest = [np.zeros(v.shape) if i in active else v for i, v in enumerate(values)]
            at_zero = primitive(*rest) if name in ("add", "subtract") else 0.0
        if not isinstance(at_zero, Traced) and np.any(at_zero):
            raise LinearityError(
                f"{name} of a linear {types} and a constant that is not zero is affine; "
                "a linear function maps zero to zero, so leave the constant out"
            )

    def getitem(self, x: Array, at: Any) -> Any:
        """x[at], as an operation."""
        return op("index")(x, at=at)

    def moved(self, primitive: Primitive, args: tuple, params: dict[str, Any]) -> Any:
        """Nothing is a view here."""
        return None

    def setitem(self, x: Array, at: Any, value: Any) -> None:
        """Writes have no linear rule here."""
        raise LinearityError(
            "a write into an array that has a type but no value; build the result with np.concatenate "
            "or np.stack"
        )


def _no_value(n: Any) -> Any:
    raise LinearityError(
        f"the value of a linear {n.v} was asked for, but it has a type and no value; "
        "a linear function may not branch on its argument or leave NumPy with it"
    )


def tape_joint(level: Level, tape: Sequence[Any], params: Sequence[Any], out: Any) -> Joint:
    """The linear map of a recorded tape, from params to out."""

    def go(tangents: Sequence[Any]) -> Any:
        if all(t is None for t in tangents) or not level_owns(level, out):
            return None
        for p, t in zip(params, tangents, strict=True):
            p.g = t
        forward(tape, level.S)
        y_dot = out.g
        tidy(tape, params, last=False)
        return y_dot

    def back(y_bar: Any) -> list[Any]:
        if not level_owns(level, out):
            return [None] * len(params)
        add(out, y_bar)
        reverse(tape, level.S, last=False)
        found = [arrived(p) for p in params]
        for p in params:
            clear(p, last=False)
        return found

    return Joint(go, back)


def level_owns(level: Level, value: Any) -> bool:
    """Whether a result depends on the level's parameters at all."""
    return isinstance(value, Traced) and value.level is level


def linear_joint(open_level: Callable[..., Any], fun: Any, types: Sequence[ArrayType]) -> Joint:
    """The linear map that `fun` is, recorded on arguments that have a type but no value."""
    with open_level(LinearLevel) as level:
        params = [level.array(t, level.N) for t in types]
        out = fun(*params)
        if out is not None and not level_owns(level, out) and np.any(out):
            raise LinearityError("the function is constant and not zero, so it is not linear")
        tape = list(level.tape)
    tidy(tape, params, last=False)  # closing has marked them as leaked; here they live on
    return tape_joint(level, tape, params, out)
