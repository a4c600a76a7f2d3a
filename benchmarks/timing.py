"""Interleaved minima of CPU time.

    round 1:  A B C      round 2:  A B C      round 3:  A B C  ...      each keeps its least time

A machine that slows down for a second then slows every system, and a minimum forgets it. Time is
CPU time of the process, all threads together: other processes do not count, helper threads do.
A call that is shorter than BATCH is repeated until a batch is that long.
"""

import gc
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import process_time
from typing import Any

BATCH = 0.02
SLOW = 3.0
"""Seconds. A call slower than this that does not compile anything is measured once."""
LENGTHY = 1.0
"""Seconds. A call slower than this is measured in the warm-up alone."""


@dataclass(frozen=True)
class Effort:
    """How long to measure: rounds, and seconds a system may use in one row."""

    rounds: int = 7
    seconds: float = 0.25


@dataclass(frozen=True)
class Timing:
    """Least CPU seconds of one call, over how many calls, and what the very first call took."""

    seconds: float
    calls: int
    first: float


def cpu_seconds(call: Callable[[], Any], times: int = 1) -> float:
    """CPU seconds of `times` calls."""
    start = process_time()
    for _ in range(times):
        call()
    return process_time() - start


Outcome = Timing | str
"""A time, or why there is none."""


def measure(
    calls: Mapping[str, Callable[[], Any]], compiled: Callable[[str], bool], effort: Effort
) -> dict[str, Outcome]:
    """Time all calls in interleaved rounds.  The garbage collector stays on, as users have it.

    A call that fails in its warm-up is left out and says why.
    """
    plans: dict[str, _Plan] = {}
    outcomes: dict[str, Outcome] = {}
    for name, call in calls.items():
        try:
            plans[name] = _Plan(call, compiled(name), effort)
        except Exception as error:
            outcomes[name] = reason(error)
    for turn in range(effort.rounds):
        for plan in plans.values():
            plan.take(turn)
    return outcomes | {name: plan.timing() for name, plan in plans.items()}


def reason(error: Exception) -> str:
    """An error as one short line."""
    lines = str(error).splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else ''}"[:120]


class _Plan:
    """The measurement of one call: warm-up, batch size, number of rounds, least time so far."""

    def __init__(self, call: Callable[[], Any], compiles: bool, effort: Effort) -> None:
        gc.collect()
        self.call = call
        self.first = cpu_seconds(call)
        self.least, self.calls, self.batch, self.rounds = self.first, 1, 1, 0
        if compiles or self.first < SLOW:
            self.least = once = cpu_seconds(call)
            self.batch = max(1, int(BATCH / max(once, 1e-7)))
            self.rounds = int(effort.seconds / max(once * self.batch, 1e-7))
            self.rounds = max(self.rounds, int(once < LENGTHY))

    def take(self, turn: int) -> None:
        """One batch, if this round is still ours."""
        if turn < self.rounds:
            gc.collect()
            self.least = min(self.least, cpu_seconds(self.call, self.batch) / self.batch)
            self.calls += self.batch

    def timing(self) -> Timing:
        return Timing(self.least, self.calls, self.first)
