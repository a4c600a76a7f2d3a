"""Do all systems compute the same gradient?  Asked at a small size before anything is timed."""

from collections.abc import Mapping
from typing import Any

import numpy as np

Leaves = dict[tuple, np.ndarray]


def agree(first: Any, second: Any, rtol: float) -> str | None:
    """None if two gradients are the same numbers, else how they differ.

    An absent leaf, None and a symbolic zero all mean zero, so only leaves that are not zero count.
    """
    a, b = leaves(first), leaves(second)
    if a.keys() != b.keys():
        return f"gradients at different places: {sorted(map(str, a.keys() ^ b.keys()))[:3]}"
    for path, value in a.items():
        if value.shape != b[path].shape:
            return f"at {path}: shapes {value.shape} and {b[path].shape}"
        scale = np.abs(value).max()
        worst = np.abs(value - b[path]).max() / scale
        if not worst <= rtol:
            return f"at {path}: relative difference {worst:.1e}"
    return None


def leaves(tree: Any) -> Leaves:
    """All leaves that are not zero, by path, as float64 arrays.  Iterative: trees may be deep."""
    found: Leaves = {}
    todo: list[tuple[tuple, Any]] = [((), tree)]
    while todo:
        path, node = todo.pop()
        if isinstance(node, Mapping):
            todo.extend(((*path, key), child) for key, child in node.items())
        elif isinstance(node, (list, tuple)):
            todo.extend(((*path, key), child) for key, child in enumerate(node))
        elif node is not None:
            value = _dense(node)
            if value.any():
                found[path] = value
    return found


def _dense(leaf: Any) -> np.ndarray:
    if hasattr(leaf, "detach"):  # torch
        leaf = leaf.detach()
        leaf = leaf.to_dense() if leaf.is_sparse else leaf
    elif type(leaf).__name__ == "Ref":  # JAX
        leaf = leaf[...]
    return np.asarray(leaf, dtype=np.float64)
