"""What a leaf is that is one of several: a constant, or a number or array of one type."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from lineara.errors import ShapeError, StructureError
from lineara.facts.hints import Tree
from lineara.facts.types import is_number
from lineara.staging.capture.choices import OneOf
from lineara.staging.control_flow import joined
from lineara.staging.staged_level import EXACT, FLOAT64, Seen
from lineara.tape.node import Traced
from lineara.trees.kinds import kind_of


def is_leaf(v: Any) -> bool:
    """Whether a leaf is a number or an array, staged or not."""
    return isinstance(v, Traced | np.ndarray | bool | np.bool_) or is_number(v)


def same_constant(a: object, b: object) -> bool:
    """Whether two leaves are one and the same constant."""
    if a is b:
        return not isinstance(a, Traced | np.ndarray)
    if isinstance(a, Traced | np.ndarray) or type(a) is not type(b):
        return False
    if isinstance(a, float | complex):
        return repr(a) == repr(b)
    return isinstance(a, int | str | bytes | bool | np.generic) and bool(a == b)


def join_leaf(
    what: str, leaves: Sequence[Any], known: Sequence[Seen | None], where: str
) -> Seen | None:
    """What is known of it, None for a constant; `what` and `where` say in errors what it is."""
    if all([same_constant(v, leaves[0]) for v in leaves]):
        return None
    numbers = [k for k in known if k is not None]
    types = {k.type.dtype for k in numbers}
    if len(types) > 1 and not all(map(_is_float, leaves, numbers)):
        shown = " and ".join(dict.fromkeys([repr(k.type) for k in numbers]))
        raise StructureError(
            f"{what} is {shown} {where}, and what Python does with these differs; make them of one "
            "type, with float() or astype"
        )
    if len({k.type.shape for k in numbers}) > 1:
        shown = " and ".join(dict.fromkeys([repr(k.type) for k in numbers]))
        raise ShapeError(f"{what} is {shown} {where}; it must keep its shape")
    return joined(numbers)


def _is_float(leaf: Any, known: Seen) -> bool:
    """Whether a leaf is a float64, or a whole number that becomes one, as 0 beside 0.5."""
    whole = type(leaf) is int and abs(leaf) <= EXACT
    return whole or (not known.type.shape and known.type == FLOAT64)


def held(tree: Tree, but: type | tuple[()] = ()) -> list[Any]:
    """The containers of a value that can be changed, but for those of a class."""
    todo, changeable = [tree], []
    while todo:
        x = todo.pop()
        if isinstance(x, but):
            continue
        if type(x) is OneOf:
            todo += x.trees
            continue
        kind: Any = kind_of(type(x))
        if kind is not None:
            frozen = getattr(getattr(type(x), "__dataclass_params__", None), "frozen", False)
            if kind.root is not tuple and not frozen:
                changeable.append(x)
            todo += kind.children(x, kind.keys(x))
    return changeable
