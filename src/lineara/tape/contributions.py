"""Contributions to cotangents: added at once, or kept with the array that they belong to."""

from typing import Any

import numpy as np

from lineara.facts.primitive import Outer, Piece
from lineara.tape.node import Scalar, leaked, outlived, zero
from lineara.tape.reads import Reads


def add(p: Any, c: Any) -> None:
    """A contribution to the cotangent of the node p."""
    if c is None:
        return
    kind = type(c)
    if kind is Piece or kind is Outer:
        if p.g is leaked:
            raise outlived()
        if p.k is None:
            p.k = Reads()
        p.k.pieces.append(c)
    elif issubclass(type(p), Scalar):
        c = c.item() if kind is np.float64 or kind is np.ndarray else c
        p.g = c if p.g is zero else p.g + c  # exact numbers stay exact
    else:
        h = p.g
        p.g = c if h is None else h + c
