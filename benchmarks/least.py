"""The least CPU time of a call: for the benchmarks, and for scripts that numba's Python runs."""

import time
from collections.abc import Callable
from typing import Any


def least(f: Callable[..., Any], args: tuple, seconds: float, calls: int = 1) -> float:
    """Microseconds of CPU time of a call of f, the least of what fits into so many seconds.

    So many calls are timed at once.  A reading of 0 is none: the clock of CPU time may stand still
    on a busy machine.
    """
    f(*args)
    best, until = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < until:
        begun = time.process_time_ns()
        for _ in range(calls):
            f(*args)
        spent = (time.process_time_ns() - begun) / calls / 1e3
        best = min(best, spent or best)
    return best
