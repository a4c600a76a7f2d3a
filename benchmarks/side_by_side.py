"""Calls of several systems timed in turn, and tables of a page."""

import math
import time
from collections.abc import Callable
from typing import Any


def least(calls: dict[str, Callable[[], Any]], rounds: int, turn: int = 1) -> dict[str, float]:
    """The least time of each call, interleaved, in microseconds.

    In a turn of several calls the later ones find the caches of the processor as they left them.
    """
    best = dict.fromkeys(calls, math.inf)
    for _ in range(rounds):
        for name, call in calls.items():
            for _ in range(turn):
                start = time.perf_counter()
                call()
                best[name] = min(best[name], time.perf_counter() - start)
    return {name: 1e6 * t for name, t in best.items()}


def table(head: list[str], rows: list[list[str]]) -> str:
    """A table of the page."""
    rule = ["---", *["--:"] * (len(head) - 1)]
    return "\n".join(["| " + " | ".join(row) + " |" for row in (head, rule, *rows)])
