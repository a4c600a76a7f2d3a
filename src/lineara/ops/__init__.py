"""The primitives, one family a file, and the NumPy functions written with them.

A family imports downwards only; importing this package declares all of them.
"""

from lineara.ops import (
    contract,
    eigen,
    elementwise,
    factor,
    fft,
    fold,
    functions,
    index,
    join,
    linalg,
    norms,
    order,
    products,
    reduce,
    shape,
    singular,
    special,
)

__all__ = [
    "contract",
    "eigen",
    "elementwise",
    "factor",
    "fft",
    "fold",
    "functions",
    "index",
    "join",
    "linalg",
    "norms",
    "order",
    "products",
    "reduce",
    "shape",
    "singular",
    "special",
]
