"""The least CPU time of calls: for the benchmarks, and for scripts that numba's Python runs."""

import time
from collections.abc import Callable, Hashable, Iterable
from typing import Any, TypeVar

SLOW = 3.0
"""Seconds from which a call has one run."""
Name = TypeVar("Name", bound=Hashable)


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


def in_turns(
    calls: dict[Name, Callable[[], Any]], seconds: float, by_the_clock: Iterable[Name] = ()
) -> dict[Name, float]:
    """Of each call the least microseconds of CPU time; they take turns for so many seconds each.

    JAX' are to be measured by the clock, since the CPU time of its threads is told late.
    """
    clocks = {name: time.process_time for name in calls}
    clocks |= {name: time.perf_counter for name in by_the_clock if name in calls}
    best = dict.fromkeys(calls, float("inf"))

    def run(names: Iterable[Name]) -> None:
        for name in names:
            begun = clocks[name]()
            calls[name]()
            spent = 1e6 * (clocks[name]() - begun)
            best[name] = min(best[name], spent or best[name])

    run(calls)
    quick = [name for name in calls if best[name] < 1e6 * SLOW]
    until = time.perf_counter() + seconds * len(quick)
    while quick and time.perf_counter() < until:
        run(quick)
    return best
