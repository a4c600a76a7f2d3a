"""The primitives, one family a file, and the NumPy functions written with them.

A family imports downwards only; importing this package declares all of them.
"""

from lineara.ops import (
    contract,
    elementwise,
    fold,
    functions,
    index,
    join,
    linalg,
    order,
    reduce,
    shape,
    special,
)

__all__ = [
    "contract",
    "elementwise",
    "fold",
    "functions",
    "index",
    "join",
    "linalg",
    "order",
    "reduce",
    "shape",
    "special",
]
