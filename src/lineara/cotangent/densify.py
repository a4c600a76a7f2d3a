"""When a sparse cotangent is cheaper than a dense one, and the warning when one is made dense.

>>> with strict():
...     pass
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from math import prod

from numpy import dtype
from numpy.typing import DTypeLike

from lineara.errors import DensifyWarning, warn_at_users_line

LARGE_BYTES = 1 << 23
"""A dense array of more bytes than this is not made from a builder without a `DensifyWarning`."""


def sparse_pays(m: int, n: int, D: int) -> bool:
    """Whether a cotangent of m rows is cheaper than a dense array of n rows, of D numbers each.

    The break-even was measured (coalesce and one SGD step): 1 % of the rows at D = 1, 10 % at 8,
    half of them from 40 on.

    >>> sparse_pays(100, 1_000_000, 64), sparse_pays(600, 1000, 64), sparse_pays(20, 1000, 1)
    (True, False, False)
    """
    return m <= n * min(0.5, D / 80)


def warn_densify(asked: str, shape: tuple[int, ...], kind: DTypeLike) -> None:
    """Warn that the operation `asked` makes a dense array, if that array is large."""
    nbytes = prod(shape) * dtype(kind).itemsize
    if nbytes > LARGE_BYTES:
        message = (
            f"{asked}: a sparse cotangent of shape {shape} becomes a dense array of "
            f"{nbytes / 1e6:,.0f} MB; write np.asarray(g) to say that you want it, or use what "
            "stays sparse: c*g, g/c, -g, g + g, g * array, W -= g, g.norm(), g.clip(c)"
        )
        warn_at_users_line(message, DensifyWarning)


@contextmanager
def strict() -> Iterator[None]:
    """A context manager in which a `DensifyWarning` is an error.

    It sets a filter of the module `warnings`, which acts on the whole process.

    >>> import numpy as np
    >>> from lineara.cotangent import Rows
    >>> g = Rows([1], [[2.0, 3.0]], (1_000_000, 2))
    >>> with strict():  # doctest: +ELLIPSIS
    ...     np.exp(g)
    Traceback (most recent call last):
        ...
    lineara.errors.DensifyWarning: ...
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("error", category=DensifyWarning)
        yield
