"""Contributions to cotangents: added at once, or kept with the array that they belong to."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from lineara.cotangent import Coo, LowRank, Rows, Zero
from lineara.cotangent.builder import Builder, Sum
from lineara.facts.primitive import Given, Outer, Own, Piece
from lineara.tape.node import Scalar, leaked, outlived, zero
from lineara.tape.reads import Reads
from lineara.tape.strides import Flat


def add(p: Any, c: Any) -> None:
    """A contribution to the cotangent of the node p."""
    if c is None:
        return
    kind = type(c)
    if kind is Piece or issubclass(kind, Outer) or kind is Own:
        if p.g is leaked:
            raise outlived()
        if p.k is None:
            p.k = Reads()
        p.k.pieces.append(c)
    elif isinstance(c, Builder):
        for part in (c.finish(),) if issubclass(type(p), Scalar) else parts(c):
            add(p, part)
    elif issubclass(type(p), Scalar):
        c = c.item() if kind is np.float64 or kind is np.ndarray else c
        p.g = c if p.g is zero else p.g + c  # exact numbers stay exact
    else:
        h = p.g
        p.g = c if h is None else h + c


def parts(c: Builder) -> Iterator[Any]:
    """A builder, which a rule of the user's gave, as contributions."""
    if isinstance(c, Sum):
        for term in c.pieces:
            yield from parts(term)
    elif isinstance(c, Rows):
        yield Piece((*[slice(None)] * c.axis, c.indices), c.values)
    elif isinstance(c, Coo):
        yield Piece(Flat(c.flat), c.values)
    elif isinstance(c, LowRank):
        yield Given(c.U, c.V)
    elif not isinstance(c, Zero):
        yield c.finish()
