"""Trees: nested containers, converted to a list of leaves and a structure, and back."""

from lineara.trees.flat import (
    LEAF,
    Structure,
    flatten,
    flatten_call,
    leaf_paths,
    map_leaves,
    positions,
    unflatten,
)
from lineara.trees.kinds import is_container

__all__ = ["LEAF", "Structure", "flatten", "flatten_call", "is_container", "leaf_paths"]
__all__ += ["map_leaves", "positions", "unflatten"]
