"""A call of a function as a function of a list of arrays, with its derivative at any order.

A framework differentiates a list of its own arrays.  Its derivative of the call is the call of
another function, `pulled`, of arrays and cotangents, and that is one of the same kind: so every
order follows.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lineara.api import jvp, linearize, vjp
from lineara.facts.hints import Leaf
from lineara.linear_map import LinearMap
from lineara.python.user_code import lifted, seen
from lineara.trees import Structure, flatten, unflatten

Flat = Callable[..., Sequence[Any]]


class FlatCall:
    """`f` in one call: a function of the arrays among the arguments, to the numbers in the result.

    places      where the arrays stand among the leaves of the arguments
    results     the containers of the result, and what of it is no number, once it has run
    """

    structure: Structure
    leaves: list[Any]

    def __init__(
        self,
        f: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        is_array: Callable[..., Any],
    ) -> None:
        self.f = f
        self.leaves, self.structure = flatten((args, kwargs))
        self.places: list[int] = [i for i, v in enumerate(self.leaves) if is_array(v)]
        self.results: tuple[Structure, list[Any]] | None = None

    @property
    def arrays(self) -> list[Any]:
        """The framework's arrays among the arguments."""
        return [self.leaves[i] for i in self.places]

    def __call__(self, *arrays: Any) -> list[Any]:
        """The numbers in the result, for these arrays in place of the framework's."""
        at = dict(zip(self.places, arrays, strict=True))
        leaves = [at.get(i, v) for i, v in enumerate(self.leaves)]
        args, kwargs = unflatten(self.structure, leaves)
        names = [*kwargs]
        given = lifted([*args, *kwargs.values()])
        stop = len(args)
        out = seen(self.f)(*given[:stop], **dict(zip(names, given[stop:], strict=True)))
        values, structure = flatten(out)
        self.results = structure, [None if is_number(v) else v for v in values]
        return [v for v in values if is_number(v)]

    def tree(self, numbers: Sequence[Any]) -> Any:
        """The result with these in place of its numbers."""
        assert self.results is not None, "the call has run"
        structure, others = self.results
        left = iter(numbers)
        return unflatten(structure, [next(left) if v is None else v for v in others])


def is_number(v: Leaf) -> bool:
    """Whether a leaf of a result is a number or an array of numbers."""
    return isinstance(v, float | complex) or _kind(v) in (*"fciub",)


def _kind(v: Leaf) -> str:
    return getattr(getattr(v, "dtype", None), "kind", "")


def linearized(g: Flat, arrays: Sequence[np.ndarray], moving: Sequence[int]) -> Any:
    """(numbers in the result, the linear map from the moving arrays to the floating of these)."""
    kinds: list[bool] = []
    values: list[Any] = []

    def of_moving(*moved: Any) -> list[Any]:
        at = dict(zip(moving, moved, strict=True))
        ys = g(*[at.get(i, a) for i, a in enumerate(arrays)])
        kinds[:] = [moves(y) for y in ys]
        values[:] = ys
        return [y for y, k in zip(ys, kinds, strict=True) if k]

    floating, L = linearize(of_moving, *[arrays[i] for i in moving])
    left = iter(floating)
    return [next(left) if k else y for y, k in zip(values, kinds, strict=True)], L


def moves(y: Leaf) -> bool:
    """Whether a number has a derivative."""
    return isinstance(y, float | complex) or _kind(y) in ("f", "c")


def cotangents(L: LinearMap[Any, Any], bars: Sequence[Any]) -> list[Any]:
    """The cotangents of the moving arrays."""
    back = L.T @ [*bars]
    return [*back] if isinstance(back, tuple) else [back]


def pulled(g: Flat, count: int, moving: Sequence[int]) -> Flat:
    """The function (arrays, cotangents) -> cotangents of the moving arrays."""

    def pull(*given: Any) -> list[Any]:
        arrays, bars = given[:count], given[count:]

        def of_moving(*moved: Any) -> list[Any]:
            at = dict(zip(moving, moved, strict=True))
            return [y for y in g(*[at.get(i, a) for i, a in enumerate(arrays)]) if moves(y)]

        return [*vjp(of_moving, *[arrays[i] for i in moving])[1]([*bars])]

    return pull


def pushed(g: Flat, count: int, moving: Sequence[int]) -> Flat:
    """The function (arrays, tangents of the moving ones) -> tangents of the results."""

    def push(*given: Any) -> list[Any]:
        arrays, dots = given[:count], given[count:]

        def of_moving(*moved: Any) -> list[Any]:
            at = dict(zip(moving, moved, strict=True))
            return [y for y in g(*[at.get(i, a) for i, a in enumerate(arrays)]) if moves(y)]

        return [*jvp(of_moving, [arrays[i] for i in moving], [*dots])[1]]

    return push
