"""Boxes: values that an interpreter stands behind.

A primitive applied to boxes is interpreted by the innermost one.  Linear maps between them are
`Joint`s; what is summed later travels as `Piece`, `Outer` and `Own`.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from lineara.facts.registry import op


class Joint(NamedTuple):
    """A linear map from several tangents to one (or several), with its transpose.

    `forward(tangents) -> y_dot`, `back(y_bar) -> [x_bar, ...]`; None is zero on both sides.
    """

    forward: Callable[[Sequence[Any]], Any]
    back: Callable[[Any], Sequence[Any]]


class Piece(NamedTuple):
    """A contribution to the part x[at] of an array's cotangent, to be summed when x' turn comes."""

    at: Any
    x_bar: Any


class Outer(NamedTuple):
    """A contribution u v^T to a matrix' cotangent :  (m,k), (n,k); all become one product."""

    u: Any
    v: Any


class Given(Outer):
    """A contribution of a LowRank that a rule or a user gave: of any rank, it stays one."""

    __slots__ = ()


class Box:
    """A value that an interpreter stands behind: traced, batched, masked, linear or symbolic.

    A primitive applied to boxes is interpreted by the innermost one, the one of greatest `depth`.
    """

    __slots__ = ()
    depth: Any = 0
    has_type = False  # whether it has its type as an attribute
    has_variable = False  # whether it stands for a box that has its type
    v: Any  # the value inside, of every box but a symbol
    __array_ufunc__: Any = None  # so that ndarray * box asks the box

    if TYPE_CHECKING:  # a box answers as the value that it stands for

        def __getattr__(self, name: str) -> Any: ...
        def __getitem__(self, at: Any) -> Any: ...
        def __setitem__(self, at: Any, value: Any) -> None: ...
        def __len__(self) -> int: ...
        def __iter__(self) -> Iterator[Any]: ...
        def __array__(self) -> Any: ...
        def __float__(self) -> float: ...
        def __add__(self, other: object, /) -> Any: ...
        def __radd__(self, other: object, /) -> Any: ...
        def __sub__(self, other: object, /) -> Any: ...
        def __rsub__(self, other: object, /) -> Any: ...
        def __mul__(self, other: object, /) -> Any: ...
        def __rmul__(self, other: object, /) -> Any: ...
        def __truediv__(self, other: object, /) -> Any: ...
        def __rtruediv__(self, other: object, /) -> Any: ...
        def __matmul__(self, other: object, /) -> Any: ...
        def __rmatmul__(self, other: object, /) -> Any: ...
        def __pow__(self, other: object, /) -> Any: ...
        def __rpow__(self, other: object, /) -> Any: ...
        def __mod__(self, other: object, /) -> Any: ...
        def __floordiv__(self, other: object, /) -> Any: ...
        def __lt__(self, other: object, /) -> Any: ...
        def __le__(self, other: object, /) -> Any: ...
        def __gt__(self, other: object, /) -> Any: ...
        def __ge__(self, other: object, /) -> Any: ...

    def interpret(self, primitive: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Apply `primitive` to arguments of which `self` is the innermost box."""
        raise NotImplementedError

    def typed(self) -> Any:
        """The value as NumPy's, whose arithmetic does not raise."""
        return self

    def __neg__(self) -> Any:
        return op("negative")(self)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return op("abs")(self)


def _operators() -> None:
    """Give Box the binary operators of the primitives that they name."""
    named = {"add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide"}
    named |= {"pow": "power", "matmul": "matmul", "mod": "remainder", "floordiv": "floor_divide"}
    for stem, name in named.items():
        setattr(Box, f"__{stem}__", lambda a, b, _n=name: op(_n)(a, b))
        setattr(Box, f"__r{stem}__", lambda a, b, _n=name: op(_n)(b, a))
    compare = {"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"}
    for stem, name in (compare | {"eq": "equal", "ne": "not_equal"}).items():
        setattr(Box, f"__{stem}__", lambda a, b, _n=name: op(_n)(a, b))
    Box.__hash__ = object.__hash__  # type: ignore[method-assign]  # __eq__ above is elementwise


_operators()


def innermost(args: tuple[Any, ...]) -> Box | None:
    """The box of greatest depth among the arguments."""
    box = None
    for a in args:
        if isinstance(a, Box) and (box is None or a.depth > box.depth):
            box = a
    return box


class ArrayBox(Box):
    """A box of an array or a number, of which the shape is known."""

    __slots__ = ()
    shape: Any

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)


class Own:
    """A contribution of a builder class of the user's; such are combined, or finished to arrays."""

    __slots__ = ("cotangent", "read")
    __lineara_leaf__ = True

    def __init__(self, cotangent: Any, read: Callable[[Any], Any]) -> None:
        self.cotangent: Any = cotangent
        self.read: Callable[[Any], Any] = read  # gives a builder of that class as an array

    def finish(self) -> Any:
        """The array that the builder stands for."""
        return self.read(self.cotangent)
