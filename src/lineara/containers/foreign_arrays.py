"""Arrays of other libraries, as torch's and JAX's: their memory is shared with NumPy, by DLPack.

Such an array is a point whose coordinate is NumPy's array of the same memory: the function sees
that, and gradients, tangents and cotangents are arrays of the argument's kind.  No library is
imported before the user has done so.
"""

import importlib
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from lineara.errors import ShapeError, TypeMismatchError
from lineara.facts.box import Box
from lineara.facts.hints import Leaf

_NOT = np.ndarray | np.generic | Box


@cache
def is_foreign(cls: type) -> bool:
    """Whether values of a class are arrays of another library, whose memory can be shared."""
    return hasattr(cls, "__dlpack__") and not issubclass(cls, _NOT)


@dataclass(frozen=True)
class ForeignArrays:
    """The arrays of a class: `library` is the module that makes one from shared memory."""

    kind: type
    library: str

    is_whole = True
    point: type | None = None

    @classmethod
    def of(cls, x: Any) -> "ForeignArrays":
        """The class of an array, and its library."""
        kind = type(x)
        if hasattr(kind, "__array_namespace__"):
            return cls(kind, x.__array_namespace__().__name__)
        return cls(kind, kind.__module__.partition(".")[0])

    def coordinates(self, p: Leaf) -> Any:
        """The memory of the array, as NumPy's."""
        return as_numpy(p)

    def lifted(self, p: Leaf, v: Leaf) -> Any:
        """What the function sees: the traced array, as one of NumPy's."""
        del p
        return v

    def outgoing(self, r: Leaf, still: object) -> Any:
        """The memory of a result, which nothing traced has reached."""
        del still
        return as_numpy(r)

    def vector(self, tree: Any, chart: Any) -> Any:
        """A tangent, a cotangent or a block of a matrix as an array of the kind."""
        (t,) = chart.space.types
        plain = isinstance(tree, float) or (isinstance(tree, complex) and t.dtype.kind == "c")
        return self.made(np.asarray(tree, t.dtype) if plain else tree)

    def covector(self, p: Leaf, tree: Leaf, unit: object) -> Any:
        """A gradient as an array of the kind; a sparse one as it is."""
        del p, unit
        return self.made(tree)

    def components(self, vector: Any, chart: Any, asked: str) -> Any:
        """A vector as NumPy's array: one of the kind, or NumPy's."""
        (t,) = chart.space.types
        array = as_numpy(vector) if is_foreign(type(vector)) else vector
        if np.shape(array) != t.shape:
            raise ShapeError(
                f"{asked}: a {chart.word} of {self.kind.__name__} has the shape {t.shape}, but was "
                f"given one of {np.shape(array)}"
            )
        return array

    def made(self, g: Leaf) -> Any:
        """NumPy's array as one of the kind, of the same memory where the library takes it."""
        if not isinstance(g, np.ndarray | np.generic | float | complex):
            return g  # a sparse gradient, or one that is traced around
        return importlib.import_module(self.library).from_dlpack(np.asarray(g))


def as_numpy(x: Any) -> np.ndarray:
    """The memory of an array of another library, as NumPy's; TypeMismatchError where it has none.

    >>> as_numpy(np.ones(2))
    array([1., 1.])
    """
    name = show_foreign(x)
    if _is_tracer(x):
        raise TypeMismatchError(
            f"the {name} is a value that JAX follows, in jit, grad or vmap around, and has no "
            "numbers yet; lineara.to_jax(f) is f as a function that JAX follows"
        )
    if getattr(x, "requires_grad", False):
        raise TypeMismatchError(
            f"the {name} asks for a gradient of torch's, which would stop here; "
            "lineara.to_torch(f) is f as a function that torch differentiates, and x.detach() is "
            "the tensor without that gradient"
        )
    try:
        return np.from_dlpack(x)
    except Exception as error:
        raise TypeMismatchError(
            f"the {name} cannot be read as NumPy's array ({str(error).splitlines()[0]}); give one "
            "of numbers that NumPy knows and that lies in the processor's memory"
        ) from error


def show_foreign(x: Leaf) -> str:
    """The library and the class of an array, for errors."""
    return f"{type(x).__module__.partition('.')[0]} {type(x).__name__}"


def _is_tracer(x: Leaf) -> bool:
    core = getattr(sys.modules.get("jax"), "core", None)
    return core is not None and isinstance(x, core.Tracer)


def refuse_foreign(leaves: Iterable[Any], name: str) -> None:
    """Refuse arrays of other libraries where programs are made, whose arguments are NumPy's."""
    for x in leaves:
        if is_foreign(type(x)):
            raise TypeMismatchError(
                f"{name}: takes NumPy's arrays, but was given {show_foreign(x)}; give "
                "np.from_dlpack(x), which is the same memory as NumPy's array"
            )


__all__ = ["ForeignArrays", "as_numpy", "is_foreign", "refuse_foreign"]
