"""What a long differentiation does, read from beside it: it counts nothing and calls nothing.

A thread of its own looks, a few times a second, at how long the tapes of the other threads are, and
at the frame of a sweep, whose iterator tells how many entries are left.
"""

import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from operator import length_hint
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple, TextIO

from numpy import ndarray

from lineara.tape.level import Level
from lineara.tape.node import Traced
from lineara.tape.number_sweep import numbers_ahead, numbers_back
from lineara.tape.sweep import forward, reverse

BACKWARD = {reverse.__code__, numbers_back.__code__}
FORWARD = {forward.__code__, numbers_ahead.__code__}
SAMPLE = 64  # entries of a tape whose bytes stand for those of all
OURS = str(Path(__file__).parent.parent)
AFTER = 2.0  # seconds of a differentiation after which a terminal shows it
IDLE = 5.0  # seconds without one after which the thread of a terminal ends


class State(NamedTuple):
    """Where a differentiation is."""

    phase: str  # "forward": the function runs; "backward", "ahead": a sweep over the tape
    entries: int  # of the tape
    left: int  # of the sweep
    line: tuple[str, int] | None  # of the user's, the innermost that runs


def state_of(frame: FrameType | None, tape: Sequence[Any]) -> State:
    """What the thread of a frame does with a tape."""
    phase, left, line = "forward", 0, None
    while frame is not None:
        code = frame.f_code
        if phase == "forward" and (code in BACKWARD or code in FORWARD):
            phase = "backward" if code in BACKWARD else "ahead"
            left = length_hint(frame.f_locals.get("rest", ()))
        if line is None and not code.co_filename.startswith((OURS, "<")):
            line = code.co_filename, frame.f_lineno
        frame = frame.f_back
    return State(phase, len(tape), left, line)


def tape_bytes(tape: Sequence[Any]) -> int:
    """About how many bytes a tape keeps: those of some of its entries, for all."""
    count = len(tape)
    if not count:
        return 0
    sample = [tape[i * count // SAMPLE] for i in range(min(SAMPLE, count))]
    return sum(map(_bytes, sample)) * count // len(sample)


def _bytes(entry: Any) -> int:
    """The bytes of an entry, of its node, and of the arrays that they hold."""
    node = entry if isinstance(entry, Traced) else entry.out
    held = [getattr(node, name, None) for name in ("v", "d", "e")]
    arrays = {id(a): a.nbytes for a in held if isinstance(a, ndarray)}
    objects = (entry,) if node is entry else (entry, node)
    return sum(arrays.values()) + sum(map(object.__sizeof__, objects)) + 64


def free_memory() -> int | None:
    """The bytes that this process may still take; None where the system does not tell."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            told = dict(line.split(":", 1) for line in file)
        free = int(told["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return None
    try:
        limit, used = [
            Path("/sys/fs/cgroup", name).read_text(encoding="ascii").strip()
            for name in ("memory.max", "memory.current")
        ]
    except OSError:
        return free
    return free if limit == "max" else min(free, int(limit) - int(used))


def size(count: float) -> str:
    """A number of bytes, as people read it."""
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"


def interrupted(error: BaseException, level: Level) -> None:
    """Say in the notes of an interruption where the differentiation was."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    at = state_of(trace.tb_frame if trace is not None else None, level.tape)
    if at.phase == "forward":
        what = f"the function ran, and the tape had {at.entries:,} operations"
    else:
        what = f"the sweep {at.phase} had {at.left:,} of {at.entries:,} operations left"
    where = f", at {at.line[0]}:{at.line[1]}" if at.line is not None and at.line[1] else ""
    error.add_note(f"lineara was interrupted while {what}{where}; nothing of it is left behind")


class Seen:
    """One tape that is watched: since when, and what was told of it."""

    tape: Sequence[Any]
    since: float

    def __init__(self, tape: Sequence[Any], now: float) -> None:
        self.tape, self.since = tape, now
        self.sweep: tuple[float, int] | None = None  # when it was first seen, and what was left
        self.warned: bool = False

    def line(self, at: State, now: float) -> str:
        """What is shown."""
        if at.phase == "forward":
            self.sweep = None
            text = f"forward: {at.entries:,} operations, tape {size(tape_bytes(self.tape))}"
            where = f", at {Path(at.line[0]).name}:{at.line[1]}" if at.line is not None else ""
            return f"{text}, {now - self.since:.1f} s{where}"
        if self.sweep is None or at.left > self.sweep[1]:
            self.sweep = now, at.left
        began, first = self.sweep
        done = 100 * (1 - at.left / max(1, at.entries))
        swept = first - at.left
        left = f", {(now - began) * at.left / swept:.1f} s left" if swept else ""
        return f"{at.phase}: {done:.0f} % of {at.entries:,} operations{left}"

    def warn(self, at: State) -> None:
        """Warn once if the tape has taken most of the memory that there was."""
        free = free_memory()
        if self.warned or at.phase != "forward" or free is None:
            return
        taken = tape_bytes(self.tape)
        if free > taken / 4:
            return
        self.warned = True
        budget = int(0.5 * (free + taken))
        name, line = at.line or ("lineara", 0)
        said = (
            f"the tape takes {size(taken)} after {at.entries:,} operations, and {size(free)} of "
            f"memory are free: grad(f, policy=lineara.policies.budget({budget})) keeps within half "
            "of both and computes the rest again, and lineara.policies.plan(f, *args) says what "
            "each policy takes"
        )
        warnings.warn_explicit(said, RuntimeWarning, name, line)


class Watch(threading.Thread):
    """The thread that looks."""

    out: TextIO
    levels: Sequence[Level]
    every: float
    after: float

    def __init__(
        self, levels: Sequence[Level], after: float, every: float, out: TextIO, idle: float
    ) -> None:
        super().__init__(name="lineara progress", daemon=True)
        self.levels, self.after, self.every, self.out = levels, after, every, out
        self.idle = idle
        self.over: threading.Event = threading.Event()
        self.seen: dict[int, Seen] = {}
        self.width: int = 0  # of the line that stands on the terminal

    def run(self) -> None:
        """Look until told to stop, or nothing has happened for `idle` seconds."""
        quiet = time.monotonic()
        while not self.over.wait(self.every):
            now = time.monotonic()
            quiet = now if self.look(now) else quiet
            if now - quiet > self.idle:
                break
        self.clear()

    def look(self, now: float) -> bool:
        """Show what goes on; whether anything does."""
        levels, seen = [*self.levels], {}
        for level in levels:
            tape, thread = level.tape, level.thread
            known = self.seen.get(thread)
            known = known if known is not None and known.tape is tape else Seen(tape, now)
            seen[thread] = known
            if now - known.since >= self.after:
                at = state_of(sys._current_frames().get(thread), tape)
                self.show(known.line(at, now))
                try:
                    known.warn(at)
                except RuntimeWarning as warning:  # where warnings are errors, this is no place
                    self.out.write(f"\nlineara: {warning}\n")
        if not seen and self.seen:
            self.clear()
        self.seen = seen
        return bool(levels)

    def show(self, text: str) -> None:
        """Write a line, on a terminal over the last one."""
        text = f"lineara: {text}"
        if self.out.isatty():
            self.out.write(f"\r{text:<{self.width}}")
            self.width = len(text)
        else:
            self.out.write(f"{text}\n")
        self.out.flush()

    def clear(self) -> None:
        """Take the line from the terminal."""
        if self.width:
            self.out.write(f"\r{'':<{self.width}}\r")
            self.out.flush()
            self.width = 0

    def stop(self) -> None:
        """End, and wait until it has."""
        self.over.set()
        self.join()


class OnTerminal:
    """What begins to watch as the first differentiation begins, where standard error is a terminal.

    The thread ends before a fork, and where nothing goes on: the next differentiation begins anew.
    """

    def __init__(self, levels: Sequence[Level]) -> None:
        self.levels = levels
        self.watch: Watch | None = None
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(before=self.stop)

    def __call__(self) -> None:
        """Begin, unless it goes on."""
        if self.watch is None or not self.watch.is_alive():
            self.watch = Watch(self.levels, AFTER, 0.5, sys.stderr, IDLE)
            self.watch.start()

    def stop(self) -> None:
        """End."""
        if self.watch is not None and self.watch.is_alive():
            self.watch.stop()


def on_terminal(levels: Sequence[Level]) -> Callable[[], None] | None:
    """What is to be called as a differentiation begins; None where nobody looks."""
    return OnTerminal(levels) if sys.stderr is not None and sys.stderr.isatty() else None


@contextmanager
def watching(
    levels: Sequence[Level], after: float, every: float, file: TextIO | None
) -> Iterator[None]:
    """A watch that goes on while the block runs."""
    watch = Watch(levels, after, every, sys.stderr if file is None else file, float("inf"))
    watch.start()
    try:
        yield
    finally:
        watch.stop()
