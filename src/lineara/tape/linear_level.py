"""A level whose values are types only: it records a linear function and refuses any other.

Rules of General primitives are transposed here, and so is what the user gives to
`linear_transpose`.  Every operation must be linear in the nodes.  A node holds a zero of its type,
which nobody may look at: a linear function maps zero to zero, so a value that is not zero at the
end of an operation shows that a constant came in.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lineara.errors import LeakedVariableError, LinearityError, user_line
from lineara.facts.hints import Index, Shaped, Value
from lineara.facts.primitive import (
    HigherOrder,
    Joint,
    Primitive,
    Recur,
)
from lineara.facts.types import ArrayType, type_of
from lineara.tape.contributions import add
from lineara.tape.cotangent_builders import builder
from lineara.tape.level import Entry, Level, slow_methods
from lineara.tape.mixed_sources import CONSTANT
from lineara.tape.node import Array, Scalar, Traced, plain, zero
from lineara.tape.pull_reads import distribute
from lineara.tape.reads import forget
from lineara.tape.sweep import arrived, forward, reverse, tidy
from lineara.tape.written_arrays import Buffer, Written


class LinearLevel(Level):
    """A level of nodes that have a type and no value."""

    has_fast_path = False

    def __init__(self, depth: int, recur: Recur) -> None:
        super().__init__(depth, recur)
        self.forbidden: Any = None  # a level that may not be mentioned here, if there is one
        self.constants: list[tuple[Buffer, str]] = []  # arrays that got some, and the user's lines

    def make_classes(self) -> None:
        """Make the classes of nodes that have a type only."""
        body = slow_methods() | {"level": self, "depth": self.depth, "__slots__": ()}
        body |= {"__bool__": _read(bool), "__int__": _read(int), "__round__": _read(round)}
        body |= {"below": _no_value, "__repr__": lambda n: f"linear({type_of(n)!r})"}
        self.S = self.N = self.SG = type(
            "S", (Scalar,), body | {"weak": False} | {"__hash__": object.__hash__}
        )
        self.X = self.XG = type("X", (Array,), body)
        self.XW = type("XW", (Written, self.X), {"__slots__": (), "__setitem__": _noted_write})

    def wrap(self, v: Shaped) -> Any:
        """A node of that type."""
        if not isinstance(v, ArrayType):
            return super().wrap(v)
        if v.shape:
            return self.array(np.zeros(v.shape, v.dtype))
        return self.scalar(0.0 if v.dtype == np.float64 else v.dtype.type(0))

    def apply(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Record a linear operation; refuse any other."""
        if not self.open:
            return self._after(primitive, args, params)
        if args and isinstance(args[0], Written) and args[0].level is self:
            moved = args[0].moved(primitive.name, params)
            if moved is not None:
                return moved
        args = tuple([a.now() if isinstance(a, Traced) else a for a in args])
        self.refuse_forbidden(args)
        if isinstance(primitive, HigherOrder):
            return primitive.trace_linear(self, args, params)
        active = tuple([i for i, a in enumerate(args) if self.mine(a)])
        if not active:
            y = primitive(*args, **params)
            return self.own(y) if type_of(y).shape else y
        values = tuple([type_of(a) if i in active else a for i, a in enumerate(args)])
        self.check(primitive, values, active)
        moved = self.moved(primitive, args, params)
        if moved is not None:
            return moved
        y = primitive.result(*values, **params)
        joint = primitive.linearize(y, values, active, params, self.recur)
        assert joint is not None, f"{primitive.name} is linear but gives no map"
        return self.record(y, [args[i] for i in active], joint, primitive.name, y.size)

    def own(self, y: Shaped) -> Any:
        """An array to be written; the line is noted if constants are in it."""
        array = super().own(y)
        if isinstance(array, Written):
            self.note(array, y)
        return array

    def note(self, array: Written, value: Shaped) -> None:
        """Remember the user's line where it puts constants other than zero into an array."""
        if not isinstance(value, Traced) and np.any(value):
            self.constants.append((array.w.buffer, user_line()))

    def record(self, v: Shaped, parents: Sequence[Any], joint: Joint, name: str, work: int) -> Any:
        """A node of that type. An array assembled from nodes and constants comes as a value."""
        if not isinstance(v, ArrayType) and np.any(plain(v)):
            raise LinearityError(
                f"an array ({type_of(v)}) has linear elements and constants that are not zero, "
                "so it is affine; a linear function maps zero to zero: leave the constants out",
                line=next((line for b, line in self.constants[::-1] if _is_mixed(b)), None),
            )
        return super().record(v, parents, joint, name, work)

    def refuse_forbidden(self, args: Sequence[Any]) -> None:
        """Refuse nodes of the level whose linear map is recorded: it must not depend on them."""
        if self.forbidden is not None and any(
            [getattr(a, "level", None) is self.forbidden for a in args]
        ):
            raise LeakedVariableError(
                "a rule uses a traced value that is not among its arguments; "
                "pass it as an argument, so that the rule can say its derivative"
            )

    def check(self, primitive: Primitive, values: tuple[Any, ...], active: tuple[int, ...]) -> None:
        """Refuse an operation that is not linear in the active arguments."""
        zero = primitive.linear_in(active, len(values))
        if isinstance(zero, str):
            raise (_reads_value if zero == "reads" else _nonlinear)(primitive, values, active)
        if any(np.any(plain(values[i])) for i in zero):
            raise _affine(primitive, values, active)


def _nonlinear(
    primitive: Primitive, values: tuple[Any, ...], active: Sequence[int]
) -> LinearityError:
    name, types = primitive.name, ", ".join(repr(values[i]) for i in active)
    return LinearityError(
        f"{name} is not linear in {types}; a linear function adds, subtracts, moves elements, and "
        "multiplies by constants"
    )


def _affine(primitive: Primitive, values: tuple[Any, ...], active: Sequence[int]) -> LinearityError:
    name, types = primitive.name, ", ".join(repr(values[i]) for i in active)
    return LinearityError(
        f"{name} of a linear {types} and a constant that is not zero is affine; "
        "a linear function maps zero to zero, so leave the constant out"
    )


def _reads_value(
    primitive: Primitive, values: tuple[Any, ...], active: Sequence[int]
) -> LinearityError:
    name, types = primitive.name, ", ".join(repr(values[i]) for i in active)
    return LinearityError(
        f"{name} reads the value of a linear {types}, which has a type but no value; "
        "a linear function may not depend on it that way"
    )


def _is_mixed(b: Buffer) -> bool:
    """Whether a buffer holds linear elements and constants that are not zero."""
    return b.src is not None and bool(b.sources and np.any(plain(b.val)[b.src == CONSTANT]))


def _noted_write(array: Written, at: Index, value: Shaped) -> None:
    array.level.note(array, value)
    Written.__setitem__(array, at, value)


def _read(act: Callable[..., Any]) -> Callable[..., Any]:
    return lambda n, *rest: act(plain(n), *rest)


def _no_value(n: Shaped) -> Any:
    raise LinearityError(
        f"the value of a linear {type_of(n)} was asked for, but it has a type and no value; "
        "a linear function may not branch on its argument or leave NumPy with it"
    )


# --- linear maps from tapes ---------------------------------------------------------------------


def tape_map(
    level: Level, params: Sequence[Any], outs: Sequence[Any], sparse: bool = False
) -> Joint:
    """The linear map that a level's tape is, from nodes to nodes: lists of vectors both ways.

    An out that is None is zero; so is a vector that is None.  The tape may be closed meanwhile.
    `sparse`: whether cotangents are builders, where parts of an array were read.  Who needs the
    map no longer calls `free_tape`, or the collector of cycles finds what it holds, some time.
    """
    tape, scalar = list(level.tape), (level.S, level.N)
    level.keep_copies = True  # closing leaves to arrays what was read of them

    def ahead(tangents: Sequence[Any]) -> list[Any]:
        if all(t is None for t in tangents):
            return [None] * len(outs)
        tidy(tape, scalar, params, last=False)
        for p, t in zip(params, tangents, strict=True):
            if t is not None:
                p.g = _number(t) if isinstance(p, Scalar) else t
                if isinstance(p, Array):
                    distribute(p, t)
        forward(tape, scalar)
        dots = [None if o is None or o.g is zero else o.g for o in outs]
        tidy(tape, scalar, params, last=False)
        return dots

    def back(cotangents: Sequence[Any]) -> list[Any]:
        tidy(tape, scalar, params, last=False)
        for o, c in zip(outs, cotangents, strict=True):
            if o is not None:
                add(o, c)
        reverse(tape, scalar, last=False)
        bars = [_sparse(p) if sparse and isinstance(p, Array) else arrived(p) for p in params]
        tidy((), scalar, params, last=False)
        return bars

    return Joint(ahead, back)


def free_tape(tape: Sequence[Any], scalar: tuple[type, type], params: Sequence[Any]) -> None:
    """End a tape whose map is not applied again: its nodes are refused, its memory is freed."""
    tidy(tape, scalar, params, last=True)
    for n in (*params, *tape):
        node = n.out if issubclass(type(n), Entry) else n
        if isinstance(node, Array):
            forget(node)


def _sparse(p: Array) -> Any:
    """What has arrived at an array, as a builder if it can be one."""
    bar = builder(p, p.v)
    return arrived(p) if bar is None else bar


def _number(t: Value) -> Any:
    return t.item() if isinstance(t, np.ndarray | np.generic) else t


def owned(level: Level, value: Value | None) -> Any:
    """The node of this level that a result is, or None."""
    value = value.now() if isinstance(value, Traced) else value
    return value if isinstance(value, Traced) and value.level is level else None


def record_linear(
    open_level: Callable[..., Any],
    fun: Callable[..., Sequence[Any]],
    types: Sequence[ArrayType],
    outer: Level | None = None,
    sparse: bool = False,
) -> tuple[list[Any], Joint]:
    """What `fun` gives for arguments without values, and its linear map between lists of vectors.

    A result that depends on the arguments is given as its type; None stays None; any other must
    be zero.  Values of the level `outer` may not be mentioned.  `sparse` is as in `tape_map`.
    """
    with open_level(LinearLevel) as level:
        level.forbidden = outer
        level.keep_copies = True  # the tape outlives the trace
        params = [level.wrap(t) for t in types]
        results = list(fun(*params))
        nodes = [owned(level, v) for v in results]
        for v, n in zip(results, nodes, strict=True):
            if n is None and v is not None and np.any(plain(v)):
                raise LinearityError(
                    f"a result ({type_of(v)}) is constant and not zero, so the function is affine; "
                    "a linear function maps zero to zero"
                )
        level.forbidden = None
        shown = [v if n is None else type_of(n) for v, n in zip(results, nodes, strict=True)]
        return shown, tape_map(level, params, nodes, sparse)


def linear_joint(
    open_level: Callable[..., Any], fun: Callable[..., Any], types: Sequence[ArrayType]
) -> Joint:
    """The linear map with one result that `fun` is."""
    _, map_ = record_linear(open_level, lambda *params: [fun(*params)], types)
    return Joint(lambda tangents: map_.forward(tangents)[0], lambda y_bar: map_.back([y_bar]))


__all__ = ["Entry", "LinearLevel", "linear_joint", "owned", "record_linear", "tape_map"]
