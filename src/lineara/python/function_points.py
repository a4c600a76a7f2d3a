"""Functions inside a differentiated container are points: captured values are coordinates.

Their tangents and cotangents have the captured values by name, as `captured` lists them.  For a
function that is a result a cotangent may also be given as probes: each is pulled back, through the
function at its point, to what was captured, and they are added.
"""

import functools
from collections.abc import Callable, Mapping
from types import FunctionType, MethodType
from typing import Any

from lineara.containers.points import MANIFOLDS, Chart, manifold_of
from lineara.errors import StructureError
from lineara.facts.hints import Tree, Value
from lineara.facts.pickled import Making, Remade, Transformed
from lineara.facts.types import show_type
from lineara.python.captured_values import captured, with_captured
from lineara.python.function_probes import Probes, arguments, derivative
from lineara.python.user_code import method, seen
from lineara.tape.leaves import kind_of_number
from lineara.tape.linearize import linearize
from lineara.trees import flatten, map_leaves

FUNCTIONS = (FunctionType, MethodType, functools.partial, Transformed)


class Functions(Remade):
    """The manifold of functions: the coordinates are what they captured."""

    is_whole = True
    point: type | None = None

    def __init__(self, f: Callable[..., Any]) -> None:
        self.f = f

    def made_by(self) -> Making:
        """The function."""
        return Making(Functions, (self.f,), {})

    def coordinates(self, p: Callable[..., Any]) -> Any:
        """What the function captured, by name."""
        return captured(p)

    def lifted(self, p: Callable[..., Any], v: dict[Any, Any]) -> Any:
        """The function around the traced values."""
        return seen(with_captured(p, v))

    def outgoing(self, r: Callable[..., Any], still: Callable[..., Any]) -> Any:
        """The captured values, by name, that have tangents, of a function that is a result."""
        del still
        return captured(r, _moves)

    def released(self, r: Any, release: Callable[[Any], Any]) -> Any:
        """The function around values without a level."""
        return with_captured(r, map_leaves(release, captured(r, _moves)))

    def vector(self, tree: Tree, chart: Chart) -> Any:
        """Captured values by name."""
        del chart
        return tree

    def covector(self, p: Callable[..., Any], tree: Tree, unit: object) -> Any:
        """Captured values by name: a gradient with respect to the function."""
        del p, unit
        return tree

    def components(self, vector: object, chart: Chart, asked: str) -> Any:
        """Captured values by name; probes are pulled back to these."""
        if not (chart.dual and isinstance(vector, Probes)):
            if not isinstance(vector, Mapping):
                other = "Probes, or " if chart.dual else ""
                raise StructureError(
                    f"{asked}: a {chart.word} of a function is {other}a dict of what it captured, "
                    f"by name, but was given {show_type(vector)}"
                )
            return vector
        held = captured(self.f, _moves)
        total = None
        for at, k, along in vector:

            def probe(
                values: dict[Any, Any], at: Value = at, along: tuple[Any, ...] = along
            ) -> Any:
                return derivative(with_captured(self.f, values), arguments(at), along)

            _, L, _ = linearize(probe, (held,), {}, (0,), False, method, asked)
            part = L.T @ k
            total = part if total is None else map_leaves(lambda a, b: a + b, total, part)
        return map_leaves(lambda v: v * 0.0, held) if total is None else total


def _moves(value: Tree) -> bool:
    """Whether something in a captured value has tangents."""
    leaves = flatten(value)[0]
    return any([kind_of_number(v) in tuple("fc") or manifold_of(v) is not None for v in leaves])


def functions(f: Callable[..., Any]) -> Functions | None:
    """The manifold that a function is a point of; None for one that captured no floating number."""
    return Functions(f) if _moves(captured(f)) else None


MANIFOLDS.update(dict.fromkeys(FUNCTIONS, functions))
