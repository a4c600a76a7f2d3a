"""What one call allocates: growth of the resident set, and NumPy's own count.

The resident set is what every system shows, its own allocators included; Linux only. tracemalloc
counts what Python and NumPy ask for, touched or not, so it says something about those two alone.
"""

import contextlib
import ctypes
import gc
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

STATUS = Path("/proc/self/status")
CLEAR = Path("/proc/self/clear_refs")


@dataclass(frozen=True)
class Memory:
    """Bytes: the highest resident set of one call above the one before it; NumPy's peak."""

    resident: int | None
    traced: int | None


def allocations(call: Callable[[], Any], traced: bool) -> Memory:
    """Measure one call, its result held to the end (the call has been warmed up)."""
    return Memory(_resident(call), _traced(call) if traced else None)


def _resident(call: Callable[[], Any]) -> int | None:
    gc.collect()
    _trim()
    try:
        CLEAR.write_text("5")  # sets the high-water mark back to the present resident set
        before = _status("VmRSS")
        result = call()
        peak = _status("VmHWM")
    except OSError:
        return None
    del result
    return max(0, peak - before)


def _traced(call: Callable[[], Any]) -> int:
    tracemalloc.start()
    try:
        result = call()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    del result
    return peak


def _trim() -> None:
    """Give free memory back to the system, so that what is taken again is seen."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def _status(key: str) -> int:
    lines = (line.split() for line in STATUS.read_text().splitlines())
    return next(int(words[1]) * 1024 for words in lines if words[0] == f"{key}:")
