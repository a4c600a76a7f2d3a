"""`jit(f).into(out)`: a jitted function whose results are put into arrays that there are.

    g = jit(f).into(out);  g(x)      is      out[...] = jit(f)(x), without an array in between

Machine code writes where the arrays lie, if their memory has what it takes: C order, and nothing of
an argument.  Whatever else there is, the results are made as ever, and copied.
"""

import numbers
from typing import Any

import numpy as np

from lineara.engines import with_room
from lineara.errors import ShapeError, StagingError, StructureError, TypeMismatchError
from lineara.facts.pickled import Making, Remade
from lineara.facts.types import show_type
from lineara.staging.capture.quick_calls import Quick, attach
from lineara.staging.tracing import VARIABLE
from lineara.tape.node import Traced
from lineara.tape.shared_memory import shares
from lineara.trees import flatten, leaf_paths, unflatten


class Into(Remade):
    """A jitted function, and the arrays that its results are put into; see `Jitted.into`."""

    __lineara_leaf__ = True  # it is a function, and no container

    def __new__(cls, *args: Any, **kwargs: Any) -> "Into":
        """An object that machine code may call."""
        return super().__new__(with_room(cls))

    def __init__(self, jitted: Any, out: Any) -> None:
        self.jitted, self.out = jitted, out
        self.arrays, self.structure = flatten(out)
        self.paths: list[str] = ["out" + path for path in leaf_paths(out)]
        for i, (array, path) in enumerate(zip(self.arrays, self.paths, strict=True)):
            self._refuse(array, path)
            for other, theirs in zip(self.arrays[:i], self.paths[:i], strict=True):
                if shares(array, other):
                    raise StructureError(
                        f"into: {theirs} and {path} lie in the same memory, so one result would "
                        "be put over the other; pass arrays of their own"
                    )
        self.parts: list[Any] = []
        self.table: Any = None  # which machine code reads

    def _refuse(self, array: Any, path: str) -> None:
        """An error where no result can be put into something."""
        name = self.jitted.name
        if type(array) is not np.ndarray:
            given = repr(array) if isinstance(array, numbers.Number) else show_type(array)
            raise TypeMismatchError(
                f"into: the results of {name} are put into arrays of NumPy's, and {path} is "
                f"{given}; pass np.empty of the shape and the dtype of the result"
            )
        if not array.flags.writeable:
            raise TypeMismatchError(f"into: {path} is read-only; pass an array that can be written")

    def made_by(self) -> Making:
        """The function and the arrays."""
        return Making(Into, (self.jitted, self.out), {})

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The arrays, which have the results from then on."""
        values, structure = flatten(self.jitted(*args, **kwargs))
        name = self.jitted.name
        if structure != self.structure:
            raise StructureError(
                f"into: {name} gives {structure}, and out is {self.structure}; pass arrays in the "
                "containers of the result"
            )
        for value, array, path in zip(values, self.arrays, self.paths, strict=True):
            self._refuse(array, path)
            if isinstance(value, Traced):
                raise StagingError(
                    f"into: {name} is called where a derivative is taken or a program is written, "
                    f"and only numbers are put into {path}; call the function itself there"
                )
            if np.shape(value) != array.shape or np.asarray(value).dtype != array.dtype:
                order = "" if array.dtype.isnative else " in another byte order"
                raise ShapeError(
                    f"into: the result for {path} is {show_type(value)}, and {path} is "
                    f"{show_type(array)}{order}; pass an array of the type of the result"
                )
        for value, array in zip(values, self.arrays, strict=True):
            array[...] = value
        attach(self, Into, list(filter(self._fits, self.jitted.recent)), self.arrays)
        return unflatten(self.structure, self.arrays)

    def _fits(self, q: Quick) -> bool:
        """Whether each result of a program is put into one of the arrays."""
        results = q.staged.results
        plain = all([c is VARIABLE for c in results.constants])
        return plain and results.structure == self.structure

    def __repr__(self) -> str:
        return f"<{self.jitted!r} into {', '.join(map(show_type, self.arrays))}>"


__all__ = ["Into"]
