"""Zeros that cost nothing where nobody touches them: memory is mapped page by page."""

import contextlib
import math
import mmap
from typing import Any

import numpy as np

PAGED_BYTES = (
    32 * 1024 * 1024
)  # below it, a few huge pages are filled sooner than small ones mapped
PIECE_BYTES = 1024 * 1024  # as much as one array of zeros that is kept may hold
SHARING = range(1024, 256 * 1024)  # bytes of an array that comes from a piece
FIRST_BYTES = 64 * 1024  # so much is filled with zeros sooner than a piece is mapped


def blank(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Zeros of which only parts will be written.

    NumPy's own large arrays take huge pages, so a hundred elements written here and there would
    have all of the array filled with zeros.
    """
    size = math.prod(shape) * dtype.itemsize
    if size < PAGED_BYTES:
        return np.zeros(shape, dtype)
    return np.ndarray(shape, dtype, _pages(size))


def is_own(a: np.ndarray) -> bool:
    """Whether an array shares its memory with no other array."""
    return a.base is None or isinstance(a.base, mmap.mmap)


class Zeros:
    """Makes arrays of zeros, many of them from one piece of memory."""

    __slots__ = ("piece", "used")

    def __init__(self) -> None:
        self.piece: Any = None
        self.used: int = PIECE_BYTES - FIRST_BYTES

    def __call__(self, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        """Zeros that no other array has."""
        size = math.prod(shape) * dtype.itemsize
        if size not in SHARING:
            return np.zeros(shape, dtype)
        if self.used + size > PIECE_BYTES:
            self.piece, self.used = _pages(PIECE_BYTES), 0
        start = self.used
        self.used += -(-size // 64) * 64
        if self.piece is None:
            return np.zeros(shape, dtype)
        return np.ndarray(shape, dtype, self.piece, start)


def _pages(size: int) -> mmap.mmap:
    """Small pages of this process' own: a process that is forked gets copies."""
    if not hasattr(mmap, "MAP_PRIVATE"):
        return mmap.mmap(-1, size)
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_NOHUGEPAGE"):
        with contextlib.suppress(OSError):  # a kernel that has no huge pages
            memory.madvise(mmap.MADV_NOHUGEPAGE)
    return memory
