"""What a differentiated function gives back: checked on the way in, released on the way out."""

from collections.abc import Sequence
from numbers import Number
from typing import Any

import numpy as np

from lineara.containers.points import (
    answers_itself,
    release_within,
)
from lineara.errors import NonScalarOutputError, TypeMismatchError
from lineara.facts.hints import Shaped, Tree, Value
from lineara.facts.types import FLOATS, show_type, type_of
from lineara.tape.leaves import kind_of_number, may_move
from lineara.tape.level import Level
from lineara.tape.node import Array, Scalar, Traced
from lineara.tape.written_arrays import Written
from lineara.trees import flatten, map_leaves


def released(value: Any, level: Level) -> Any:
    """A result without this level: the value below, plain arrays for arrays that were written."""
    if issubclass(type(value), Written):
        value = value.now()
    if isinstance(value, Traced) and value.level is level:
        value = value.v
        return value.copy() if isinstance(value, Array) else value
    if isinstance(value, Traced | float | np.ndarray):
        return value
    return release_within(value, lambda v: released(v, level))


def own_copy(value: Value) -> Any:
    """An array that the user may write to without changing what a linear map holds."""
    return value.copy() if isinstance(value, np.ndarray) else value


def release_tree(tree: Tree, level: Level) -> Any:
    """Every leaf of a result without this level."""
    if isinstance(tree, Traced):
        return released(tree, level)
    return map_leaves(lambda v: released(v, level), tree)


def check_numbers(values: Sequence[Any], name: str) -> None:
    """Refuse arguments that hold no number at all."""
    leaves = flatten(list(values))[0]
    if values and not any([may_move(v) for v in leaves]):
        shown = ", ".join(map(show_type, values))
        raise TypeMismatchError(
            f"{name}: there is no number in {shown}, so there is nothing to differentiate; give "
            "floating-point numbers or arrays, or containers of them"
        )


def with_aux(out: Shaped, has_aux: bool, name: str) -> tuple[Any, Any]:
    """(result, aux): what a function returned, taken apart if `has_aux`; else aux is None."""
    if not has_aux:
        return out, None
    if not isinstance(out, tuple) or len(out) != 2:
        raise TypeMismatchError(
            f"{name}: has_aux=True takes a function that returns (value, aux), "
            f"but it returned {show_type(out)}"
        )
    return out


def scalar_output(out: Any, name: str) -> Any:
    """The one real number that is differentiated; an error says what the function returned else."""
    y = out.now() if isinstance(out, Traced) else out
    if issubclass(type(y), Scalar) and type(y.v) in FLOATS:
        return y
    if isinstance(y, Traced) and y.shape and y.size == 1 and y.ndim == 0:
        y = y.item()
    if y is None:
        raise NonScalarOutputError(
            f"{name}: the function returned None; it must return one real number "
            "(is a `return` missing?)"
        )
    if not isinstance(y, Traced | np.ndarray | np.generic | Number) and (
        isinstance(y, str | bytes) or answers_itself(y) or not hasattr(y, "__mul__")
    ):
        raise NonScalarOutputError(
            f"{name}: the function returned {show_type(y)}; it must return one real number "
            "(for several results, use jacobian or vjp; for more results, has_aux=True)"
        )
    if type(y) is float:
        return y
    t = type_of(y)
    if t.dtype.kind not in "fciuO" or (isinstance(y, np.ndarray) and t.dtype.kind == "O"):
        raise NonScalarOutputError(
            f"{name}: the function returned {t}, which has no derivative; "
            "it must return one real number"
        )
    if t.shape:
        raise NonScalarOutputError(
            f"{name}: the function returned {t}; it must return one real number, "
            "so sum it, or use jacobian or vjp"
        )
    if t.dtype.kind == "c":
        raise NonScalarOutputError(
            f"{name}: the function returned a complex number ({t}); a gradient needs a real one, "
            "so take its real part or its modulus, or use jacobian"
        )
    return y


def check_result(value: Shaped, name: str) -> None:
    """Refuse a leaf of a result that is no number."""
    number = type(value) is float or kind_of_number(value) in tuple("fci")
    if not number:
        raise TypeMismatchError(
            f"{name}: the function returned {show_type(value)}, which has no derivative; "
            "return numbers, arrays or containers of them (other things with has_aux=True)"
        )
