"""Functions inside a differentiated container are points: what they captured moves.

Their tangents and cotangents have the captured values by name, as `captured` lists them.
"""

import functools
from types import FunctionType, MethodType
from typing import Any

from lineara.capture.captured import captured, with_captured
from lineara.capture.plain_code import seen
from lineara.eager.leaves import kind_of_number
from lineara.eager.points import MANIFOLDS, Chart, manifold_of
from lineara.errors import TypeMismatchError
from lineara.trees import flatten
from lineara.types import show_type

FUNCTIONS = (FunctionType, MethodType, functools.partial)


class Functions:
    """The manifold of functions: the coordinates are what they captured."""

    is_whole = True
    point: type | None = None

    def coordinates(self, p: Any) -> Any:
        """What the function captured, by name."""
        return captured(p)

    def lifted(self, p: Any, v: Any) -> Any:
        """The function around the traced values."""
        return seen(with_captured(p, v))

    def outgoing(self, r: Any, still: Any) -> Any:
        """A function is not a result: its own arguments are still open."""
        del still
        raise TypeMismatchError(
            f"the function returned {show_type(r)}, which has no derivative until it is called; "
            "return what it gives, or return it beside the result with has_aux=True"
        )

    def vector(self, tree: Any, chart: Chart) -> Any:
        """Captured values by name."""
        del chart
        return tree

    def covector(self, p: Any, tree: Any, unit: Any) -> Any:
        """Captured values by name: a gradient with respect to the function."""
        del p, unit
        return tree

    def components(self, vector: Any, chart: Chart, asked: str) -> Any:
        """Captured values by name."""
        del chart, asked
        return vector


def functions(f: Any) -> Functions | None:
    """The manifold that a function is a point of; None for one that captured no floating number."""
    found = flatten(captured(f))[0]
    moves = any(kind_of_number(v) in tuple("fc") or manifold_of(v) is not None for v in found)
    return MOVING if moves else None


MOVING = Functions()
MANIFOLDS.update(dict.fromkeys(FUNCTIONS, functions))
