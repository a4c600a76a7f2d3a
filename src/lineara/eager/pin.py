"""Memory that a trace has used stays with the process for the next trace.

A C allocator gives the free end of its heap back to the system.  A tape of arrays is such an end:
it is freed as a whole, and the next trace would have every page of it mapped and zeroed again,
which costs more than the arithmetic.  A small block that lies above the tape, and is kept, makes
the tape's memory an ordinary hole that the next trace fills.  No global setting is changed, and
large tapes are given back as always.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

MANY = 64  # entries; a shorter tape is not worth a look
BLOCK_BYTES = (
    96 * 1024
)  # more than any hole that a tape leaves, less than gets a mapping of its own
KEPT_BYTES = 256 * 1024 * 1024  # a tape with more than this is given back


class Pin:
    """The highest block that was seen above a tape."""

    __slots__ = ("address", "block")

    def __init__(self) -> None:
        self.address = 0
        self.block: Any = None

    def hold(self, tape: Sequence[Any]) -> None:
        """Keep a block above the tape, which is about to be freed."""
        sample = tape[:: max(1, len(tape) // 16)]
        sizes = [n.v.nbytes if type(getattr(n, "v", None)) is np.ndarray else 0 for n in sample]
        if not 0 < 2 * sum(sizes) * len(tape) < KEPT_BYTES * len(sizes):
            return
        block = np.empty(BLOCK_BYTES, np.uint8)
        address = block.__array_interface__["data"][0]
        if address > self.address:
            self.block, self.address = block, address
