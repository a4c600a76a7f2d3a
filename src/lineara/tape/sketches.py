"""Sketches: values that have a type and write down what is applied to them.

A rule runs once on sketches of its arguments, and each step's linear map once on a sketch of a
cotangent.  What is written down depends on types only: whoever looks at a value ends it.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from lineara.facts.hints import DType, Index, Leaf, Tree, Value
from lineara.facts.primitive import (
    ArrayBox,
    Constant,
    HigherOrder,
    Joint,
    OfType,
    Outer,
    Piece,
    Primitive,
    Recur,
    op,
    registry,
)
from lineara.facts.types import ArrayType


class Unplanned(Exception):
    """What a call does depends on more than its signature; the text says on what."""


class Step(NamedTuple):
    """The application of a primitive that was written down."""

    out: str
    t: ArrayType
    primitive: Primitive
    args: tuple[Any, ...]
    params: dict[str, Any]


class Move(NamedTuple):
    """A step with a derivative: the linear map takes tangents of `parents` to that of `out`."""

    out: str
    t: ArrayType
    parents: Sequence[str]
    joint: Joint
    is_view: bool = False  # whether it shows the memory of its parent


class Draft:
    """What was applied to the sketches of one call."""

    def __init__(self, recur: Recur) -> None:
        self.recur = recur  # transposes the text of a General primitive's jvp
        self.steps: list[Step] = []
        self.program: list[Step] = []  # the steps of the rule itself
        self.moves: list[Move] = []
        self.views: set[str] = set()  # what shows an argument in another shape
        self.inside: bool = False  # a linear map

    def sketch(self, name: str, t: ArrayType, moves: bool = False, weak: bool = False) -> "Sketch":
        """A value of that type under that name."""
        return Sketch(self, name, t, moves, weak)

    def apply(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """A sketch of the result; where a derivative flows, the linear map is kept beside."""
        if isinstance(primitive, HigherOrder) or any(map(_holds_sketch, params.values())):
            raise Unplanned(f"{primitive.name} takes functions, or positions that are not known")
        types = [a.t if isinstance(a, Sketch) else a for a in args]
        if isinstance(primitive, OfType):
            return primitive.known(*types, **params)
        t = primitive.result(*types, **params)
        if not isinstance(t, ArrayType):
            raise Unplanned(f"{primitive.name} gives several values")
        values = tuple([a.still() if isinstance(a, Sketch) else a for a in args])
        step = Step(f"t{len(self.steps)}", t, primitive, values, params)
        self.steps.append(step)
        if not self.inside:
            self.program.append(step)
        y = self.sketch(step.out, t)
        active = tuple([i for i, a in enumerate(args) if isinstance(a, Sketch) and a.moves])
        if not may_move(step, active):
            return y
        self.inside = True
        if primitive.name == "index":
            joint = self.read(args[0], params["at"])
        else:
            joint = primitive.linearize(y, values, active, params, self.recur)
        self.inside = False
        if joint is None:
            return y
        source = args[active[0]].name
        if primitive.view and (source.startswith("a") or source in self.views):
            self.views.add(step.out)
        names = [args[i].name for i in active]
        is_view = primitive.view or primitive.name == "index"
        self.moves.append(Move(step.out, t, names, joint, is_view))
        return self.sketch(step.out, t, moves=True)

    def read(self, x: "Sketch", at: Any) -> Joint:
        """The linear map of x[at], whose transpose stays sparse."""
        if x.name in self.views:
            raise Unplanned("a part of a view of an argument is read")
        return Joint(lambda ts: op("index")(ts[0], at=at), lambda y_bar: [Piece(at, y_bar)])


def may_move(step: Step, active: Sequence[int]) -> bool:
    """Whether a derivative may flow from the active arguments of a step to its result."""
    return bool(active) and not isinstance(step.primitive, Constant) and step.t.dtype.kind in "fc"


def pulled(moves: Sequence[Move], out: str, g: Value) -> list[tuple[str, Any]]:
    """(argument, contribution to its cotangent), in the order in which a sweep adds them."""
    arrived: dict[str, list[Any]] = {out: [g]}
    inner = {move.out for move in moves}
    ends: list[tuple[str, Any]] = [] if out in inner else [(out, g)]
    for move in reversed(moves):
        if move.out not in arrived:
            continue
        y_bar = joined(arrived.pop(move.out), move.t)
        for p, c in zip(move.parents, move.joint.back(y_bar), strict=True):
            if c is not None and p in inner:
                arrived.setdefault(p, []).append(c)
            elif c is not None:
                ends.append((p, c))
    return ends


def combined(moves: Sequence[Move], out: str, leaves: dict[str, ArrayType]) -> Joint:
    """The linear map from the leaves to the result of several steps."""

    def forward(tangents: Sequence[Any]) -> Any:
        arrived = dict(zip(leaves, tangents, strict=True))
        for move in moves:
            ahead = [arrived.get(p) for p in move.parents]
            still = all([t is None for t in ahead])
            arrived[move.out] = None if still else move.joint.forward(ahead)
        return known(arrived.get(out))

    def back(y_bar: Value) -> list[Any]:
        arrived: dict[str, list[Any]] = {name: [] for name in leaves}
        for name, c in pulled(moves, out, y_bar):
            arrived[name].append(c)
        return [
            known(cs[0] if len(cs) == 1 else joined(cs, leaves[name])) if cs else None
            for name, cs in arrived.items()
        ]

    return Joint(forward, back)


def known(value: Leaf) -> Any:
    """The value, which must have been kept: the code of a plan reads nothing that it dropped."""
    assert not isinstance(value, Sketch), "a plan has dropped what its linear map reads"
    return value


class Sketch(ArrayBox):
    """A value of which only the type is known."""

    __slots__ = ("draft", "moves", "name", "t", "weak")
    depth = 0

    def __init__(self, draft: Draft, name: str, t: ArrayType, moves: bool, weak: bool) -> None:
        self.draft: Draft = draft
        self.name: str = name
        self.t: ArrayType = t
        self.moves: bool = moves  # whether a derivative flows through it
        self.weak: bool = weak  # whether it is a number of Python's

    def interpret(self, primitive: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Write the application down."""
        return self.draft.apply(primitive, args, params)

    def still(self) -> "Sketch":
        """The value alone, through which no derivative flows."""
        return Sketch(self.draft, self.name, self.t, False, self.weak) if self.moves else self

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes."""
        return self.t.shape

    @property
    def dtype(self) -> np.dtype:
        """The dtype."""
        return self.t.dtype

    def __len__(self) -> int:
        return self.t.shape[0]

    def __getitem__(self, at: Index) -> Any:
        return op("index")(self, at=at)

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    def copy(self, order: str = "C") -> "Sketch":
        """The same values."""
        return self

    def astype(self, dtype: DType, **_: Any) -> Any:
        """The values in another dtype."""
        return op("astype")(self, dtype=np.dtype(dtype))

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        ours = registry.ours(ufunc)
        if method != "__call__" or options or not isinstance(ours, Primitive):
            raise Unplanned(f"np.{ufunc.__name__} of a value that is not known")
        return ours(*inputs)

    def __array_function__(
        self,
        func: Callable[..., Any],
        types: tuple[Any, ...],
        args: tuple[Any, ...],
        kwargs: dict[Any, Any],
    ) -> Any:
        ours = registry.ours(func)
        if not isinstance(ours, Primitive):
            raise Unplanned(f"np.{func.__name__} of a value that is not known")
        return ours(*args, **kwargs)


def _look(self: Sketch, *_: Any, **__: Any) -> Any:
    raise Unplanned("the value of an argument, or how it lies in memory, decides")


for _name in ("__bool__", "__int__", "__float__", "__complex__", "__index__", "__array__"):
    setattr(Sketch, _name, _look)
for _name in ("lay", "lying", "in_order"):
    setattr(Sketch, _name, property(_look))


def _holds_sketch(value: Tree) -> bool:
    if isinstance(value, tuple | list):
        return any(map(_holds_sketch, value))
    return isinstance(value, Sketch)


def joined(contributions: list[Any], t: ArrayType) -> Any:
    """The sum of what has arrived at a value within the call, as a sweep adds it up."""
    dense = [c for c in contributions if type(c) not in (Piece, Outer)]
    outers = [c for c in contributions if type(c) is Outer]
    terms = [_total(dense)] if dense else []
    if outers:
        u, v = (
            o[0] if len(o) == 1 else op("concat")(*o, axis=1)
            for o in ([c[i] for c in outers] for i in (0, 1))
        )
        terms.append(op("matmul")(u, op("permute_dims")(v, axes=(1, 0))))
    pieces = [c for c in contributions if type(c) is Piece]
    terms += [op("scatter")(c.x_bar, at=c.at, shape=t.shape) for c in pieces]
    return _total(terms)


def _total(terms: list[Any]) -> Any:
    total = terms[0]
    for c in terms[1:]:
        total = total + c
    return total
