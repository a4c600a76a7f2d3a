"""How far long work of a command has come: one line on a terminal, once it takes two seconds."""

import sys
import time
from types import TracebackType

SILENT = 2.0  # seconds


class Progress:
    """Called with how much is done and about how much there is; it writes on stderr.

    >>> with Progress("drawn", "steps") as told:
    ...     told(1, 10)
    """

    what: str
    last: float
    done: str
    begun: float

    def __init__(self, done: str, what: str) -> None:
        self.done, self.what = done, what
        self.begun = self.last = time.monotonic()
        self.shown: bool = False

    def __enter__(self) -> "Progress":
        return self

    def __call__(self, n: int, of: int) -> None:
        """Say that n are done."""
        now = time.monotonic()
        if now - self.begun < SILENT or now - self.last < 0.1 or not sys.stderr.isatty():
            return
        self.last, self.shown = now, True
        print(f"\r{self.done}: {n} of about {max(n, of)} {self.what}", end="", file=sys.stderr)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.shown:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
