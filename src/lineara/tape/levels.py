"""Opening and closing levels: one class for each thread and depth, reused from trace to trace.

Garbage collection rests while any trace is open, since a collection walks the whole tape.
"""

import gc
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, TextIO

import numpy as np

from lineara.errors import (
    LinearaError,
    MutationError,
    watchers,
)
from lineara.facts.primitive import Joint
from lineara.tape.level import Level
from lineara.tape.library_errors import in_place_of, line_of
from lineara.tape.linear_level import LinearLevel, linear_joint
from lineara.tape.progress import interrupted, on_terminal, watching
from lineara.tape.swallowed_errors import prune, raise_swallowed


class _Threads(threading.local):
    """The levels of this thread: those that wait for reuse, and how many are open."""

    def __init__(self) -> None:
        self.waiting: dict[tuple[type, int], list[Level]] = defaultdict(list)
        self.open: list[Level] = []
        self.depth = 0
        self.kinks: Any = None  # what decides at kinks in the function that runs
        self.refused: list[LinearaError] = []  # since the outermost of the open levels began


class Keeper(Protocol):
    """What may hold values of traces that have ended, and takes them out."""

    holders: dict[int, Any]
    assigned: list[Any]

    def tidy(self) -> None:
        """No trace is open: let go of what was traced."""
        ...


class _Collector:
    """Counts the threads with open traces; the last one to close lets collection go on."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.tracing: list[Level] = []  # the outermost of each such thread
        self.was_on: bool = False
        self.keeper: Keeper | None = None  # asked when no trace is open any more
        self.watch = on_terminal(self.tracing)  # shows what takes long

    def pause(self, level: Level) -> None:
        if self.watch is not None:
            self.watch()
        with self.lock:
            if not self.tracing:
                self.was_on = gc.isenabled()
                gc.disable()
            self.tracing.append(level)

    def resume(self, level: Level) -> None:
        with self.lock:
            self.tracing.remove(level)
            if not self.tracing:
                keeper = self.keeper
                if keeper is not None and (keeper.holders or keeper.assigned):
                    keeper.tidy()
                if self.was_on:
                    gc.enable()


threads: _Threads = _Threads()
collector: _Collector = _Collector()


def _remember(error: LinearaError) -> None:
    """A refusal must come out of its trace, whatever catches it on its way."""
    if threads.open:
        threads.refused.append(error)
        prune(threads.refused)


watchers.append(_remember)


class open_level:  # a context manager is named as a function is
    """A level that is open while the block runs.  It has no state: one serves many blocks."""

    __slots__ = ("cls",)

    def __init__(self, cls: type[Level] = Level) -> None:
        self.cls: type[Level] = cls

    def __enter__(self) -> Any:
        here = threads.__dict__  # one look for what is this thread's
        cls, around, depth = self.cls, here["open"], here["depth"] + 1
        waiting = here["waiting"][cls, depth]
        level = waiting.pop() if waiting else cls(depth, linear_map_of)
        level.start()
        if around:
            level.outer = around[-1]
        else:
            level.outer = None
            collector.pause(level)
        here["depth"] = depth
        around.append(level)
        if here["kinks"] is not None:
            level.decide(here["kinks"])
        return level

    def __exit__(self, kind: type | None, error: BaseException | None, trace: object) -> None:
        here, mutated = threads.__dict__, None
        cls, around = self.cls, here["open"]
        level = around[-1]
        assert type(level) is cls, "levels close in the order opposite to their opening"
        if error is not None and (level.locks.arrays or level.locks.gave):
            mutated = _mutated(error, bool(level.locks.arrays))
        if kind is KeyboardInterrupt and len(around) == 1 and error is not None:
            interrupted(error, level)
        if level.kinks is not None:
            level.decide(None)
        level.close()
        around.pop()
        depth = level.depth
        here["depth"] = depth - 1
        here["waiting"][cls, depth].append(level)
        swallowed = None
        if not around:
            collector.resume(level)
            swallowed = here["refused"]
            if swallowed:
                here["refused"] = []
        if error is None:
            if swallowed:
                raise_swallowed(swallowed)
            return
        if mutated is not None:
            raise mutated from None
        ours = in_place_of(error)
        if ours is not None:
            raise ours from None


@contextmanager
def deciding(kinks: object) -> Iterator[None]:
    """`kinks` decides at the kinks that the levels open in this thread meet."""
    before, levels = threads.kinks, [(level, level.kinks) for level in threads.open]
    threads.kinks = kinks
    for level, _ in levels:
        level.decide(kinks)
    try:
        yield
    finally:
        threads.kinks = before
        for level, kink_method in levels:
            level.decide(kink_method)


@contextmanager
def deeper() -> Iterator[int]:
    """A depth inside the open levels, for values that no tape belongs to."""
    threads.depth += 1
    try:
        yield threads.depth
    finally:
        threads.depth -= 1


def linear_map_of(fun: Callable[..., Any], types: Sequence[Any]) -> Joint:
    """The linear map of a function of tangents, from its text."""
    return linear_joint(open_level, fun, types)


def innermost_level() -> Level | None:
    """The level opened last in this thread, if one is open."""
    return threads.open[-1] if threads.open else None


def _mutated(error: object, locked: bool) -> MutationError | None:
    """NumPy's refusal to write a locked array, said as ours, at the user's line."""
    if not isinstance(error, ValueError) or "read-only" not in str(error):
        return None
    what = (
        "a plain array that this derivative still needs was about to be overwritten; "
        "copy it first, where it is used with traced values"
        if locked
        else "a plain view of an array that is made in a differentiated function was about to be "
        "overwritten, which is to be read only; give a plain copy, np.array(y.tolist())"
    )
    return MutationError(what, line=line_of(error))


def writable(content: np.ndarray) -> Any:
    """An array of the user's making that traced values may be written into, at every open level."""
    around = innermost_level()
    return content if around is None else around.own(content)


@contextmanager
def outside() -> Iterator[None]:
    """The block runs as code that no trace follows: arrays that it makes are plain ones."""
    hidden, threads.open = threads.open, []
    try:
        yield
    finally:
        threads.open = hidden


__all__ = [
    "LinearLevel",
    "deeper",
    "innermost_level",
    "open_level",
    "outside",
    "writable",
]


@contextmanager
def progress(
    *, after: float = 0.5, every: float = 0.5, file: TextIO | None = None
) -> Iterator[None]:
    """Show what differentiations do while the block runs, and with how much memory and time left.

    `after` so many seconds of one, a line is written `every` so many, to standard error or to
    `file`: the operations that were recorded and about how many bytes they keep; then how much of a
    sweep is done. A tape that has taken most of the memory is a RuntimeWarning that names a policy
    with which it fits. A thread of its own looks: the differentiation itself runs as without.

    Where standard error is a terminal, this goes on by itself for what takes two seconds or more.

    >>> import lineara
    >>> with lineara.progress():
    ...     slope = lineara.grad(lambda x: x**3)(2.0)
    >>> slope
    12.0
    """
    with watching(collector.tracing, after, every, file):
        yield
