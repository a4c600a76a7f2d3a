"""Memory that a trace has used stays with the process for the next trace.

A C allocator maps large blocks one by one and gives the free end of its heap back to the system.
A tape of arrays is both: the next trace would have every page of it mapped and zeroed again, which
costs more than the arithmetic.  glibc raises its limits by itself: once a mapped block of up to 32
MiB has been freed, blocks of that size come from the heap, and twice that stays with the process
[mallopt(3)].  So one such block is taken and freed, untouched, as any program does that has had a
large array.  Limits that a user has set are left, and other allocators do not notice.
"""

import functools

import numpy as np

LARGEST_BYTES = 32 * 1024 * 1024 - 16 * 1024  # with the allocator's own words still within 32 MiB


@functools.cache
def keep_memory() -> None:
    """Have the allocator keep what is freed, up to some 64 MiB; once for the process."""
    np.empty(LARGEST_BYTES, np.uint8)
