"""Colourings of sparse matrices: which rows and columns one product with a vector may share."""

from lineara.colouring.compression import (
    Compression,
    bidirectional,
    by_columns,
    by_rows,
    by_substitution,
    csr_of,
    symmetric,
)
from lineara.colouring.recent import Recent

__all__ = [
    "Compression",
    "Recent",
    "bidirectional",
    "by_columns",
    "by_rows",
    "by_substitution",
    "csr_of",
    "symmetric",
]
