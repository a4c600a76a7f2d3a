"""The primitives, one family a file, and the NumPy functions written with them.

A family imports downwards only; importing this package declares all of them.
"""

from lineara.ops import (
    contract,
    counting,
    eigen,
    elementwise,
    factor,
    fft,
    fold,
    functions,
    grid,
    index,
    join,
    linalg,
    nan,
    norms,
    order,
    pad,
    products,
    reduce,
    shape,
    singular,
    special,
)

__all__ = [
    "contract",
    "counting",
    "eigen",
    "elementwise",
    "factor",
    "fft",
    "fold",
    "functions",
    "grid",
    "index",
    "join",
    "linalg",
    "nan",
    "norms",
    "order",
    "pad",
    "products",
    "reduce",
    "shape",
    "singular",
    "special",
]
