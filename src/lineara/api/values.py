"""What user code does to values: stop their derivative, lay a container out as a vector."""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from lineara.containers.foreign_arrays import refuse_foreign
from lineara.errors import ShapeError
from lineara.facts.hints import Shaped, Value
from lineara.facts.types import type_of
from lineara.ops.elementwise import stop_gradient as still
from lineara.ops.shape import as_array, concat, reshape
from lineara.tape.node import Scalar, Traced, plain, staged
from lineara.trees import flatten, map_leaves, unflatten

X = TypeVar("X")


def stop_gradient(x: X) -> X:
    """x as a constant: its value without its derivative, at every order.

    >>> from lineara import grad
    >>> grad(lambda x: x * stop_gradient(x))(3.0)
    3.0
    """
    node: Any = x
    if staged(node) and isinstance(node, Traced):
        node = node.now()
        return stop_gradient(node.v) if node.known else still(node)
    if isinstance(node, Traced):
        value: Any = plain(node)
        copied: Any = value.copy() if isinstance(value, np.ndarray) else value
        return copied  # the user may write to it
    return map_leaves(lambda v: stop_gradient(v) if isinstance(v, Traced) else v, x)


def ravel(tree: X) -> tuple[Any, Callable[[Any], X]]:
    """(flat, unravel): the numbers of a container as one vector, and the way back.

    Integers, strings and None are kept as they are. Both directions are differentiable.

    `unravel` raises ShapeError for a vector of another length.

    >>> flat, unravel = ravel({"a": 1.0, "b": [2.0, 3.0]})
    >>> flat
    array([1., 2., 3.])
    >>> unravel(flat * 2)
    {'a': 2.0, 'b': [4.0, 6.0]}
    """
    leaves, structure = flatten(tree)
    refuse_foreign(leaves, "ravel")
    moving = [_is_floating(v) for v in leaves]
    types = [type_of(v) if m else None for v, m in zip(leaves, moving, strict=True)]
    parts = [
        reshape(as_array(v), shape=(type_of(v).size,)) if isinstance(v, Traced) else np.ravel(v)
        for v, m in zip(leaves, moving, strict=True)
        if m
    ]
    flat = concat(*parts, axis=0) if parts else np.zeros(0)
    size = sum(t.size for t in types if t is not None)

    def unravel(vector: Any) -> Any:
        if type_of(vector).shape != (size,):
            raise ShapeError(f"unravel: takes a vector of {size} numbers, not {type_of(vector)}")
        parts, start = [], 0
        for v, t in zip(leaves, types, strict=True):
            if t is None:
                parts.append(v)
                continue
            part = vector[start : start + t.size]
            parts.append(part.reshape(t.shape) if t.shape else _number(part[0], v))
            start += t.size
        return unflatten(structure, parts)

    return flat, unravel


def _number(part: Scalar, like: Value) -> Any:
    return float(part) if type(like) is float and not isinstance(part, Traced) else part


def _is_floating(value: Shaped) -> bool:
    if isinstance(value, bool | int | str | bytes) or value is None:
        return False
    return (hasattr(value, "dtype") and value.dtype.kind in "fc") or isinstance(
        value, float | complex
    )
