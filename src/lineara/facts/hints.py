"""What parameters are annotated with where no single class is meant.

A value is a number, an array, or a box that stands for one (traced, batched, symbolic).  The
protocols say what a function asks of it; that operators give `Any` is meant, since a result is of
its operands' kind.  An array stands beside the protocol, as NumPy's stubs overload its operators.
"""

from types import EllipsisType, ModuleType
from typing import Any, ParamSpec, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import DTypeLike

from lineara.facts.box import Box

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)


class Calculates(Protocol):
    """What arithmetic is written for."""

    def __add__(self, other: Any, /) -> Any: ...
    def __radd__(self, other: Any, /) -> Any: ...
    def __sub__(self, other: Any, /) -> Any: ...
    def __rsub__(self, other: Any, /) -> Any: ...
    def __mul__(self, other: Any, /) -> Any: ...
    def __rmul__(self, other: Any, /) -> Any: ...
    def __truediv__(self, other: Any, /) -> Any: ...
    def __rtruediv__(self, other: Any, /) -> Any: ...
    def __pow__(self, other: Any, /) -> Any: ...
    def __rpow__(self, other: Any, /) -> Any: ...
    def __neg__(self) -> Any: ...
    def __abs__(self) -> Any: ...
    def __lt__(self, other: Any, /) -> Any: ...
    def __le__(self, other: Any, /) -> Any: ...
    def __gt__(self, other: Any, /) -> Any: ...
    def __ge__(self, other: Any, /) -> Any: ...


class HasUnits(Protocol):
    """A number with a unit, such as pint's."""

    @property
    def magnitude(self) -> Any:
        """The number."""
        ...

    @property
    def units(self) -> Any:
        """The unit."""
        ...


class Certified(Protocol[P, R_co]):
    """A function of ours that was made under a policy, and knows its certificate."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """The function."""
        ...

    def certificate(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        """What is proved of it, and what it takes, for arguments of these types."""
        ...


Real: TypeAlias = float | np.floating[Any] | HasUnits  # one real number
Value: TypeAlias = Calculates | np.ndarray | Box
Shaped: TypeAlias = np.ndarray | Box  # a value that has a shape and may be indexed
Tree: TypeAlias = object  # containers of leaves, or one leaf
Leaf: TypeAlias = object  # a number, an array, a traced value, or a label
Index: TypeAlias = (
    int | slice | EllipsisType | np.ndarray | np.integer | Box | list[Any] | tuple[Any, ...] | None
)
Axis: TypeAlias = int | tuple[int, ...] | None
DType: TypeAlias = DTypeLike | None
Namespace: TypeAlias = ModuleType  # of arrays: numpy, jax.numpy, array_api_strict
