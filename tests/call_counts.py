"""How much Python a run runs: a measure that no clock and no other process disturbs."""

import gc
import sys
from collections.abc import Callable
from typing import Any

from lineara.python.user_code import overlay


def calls(run: Callable[[], Any], warm: int = 1) -> int:
    """The functions of Python that a run calls, after `warm` others, in a process like a new one.

    What libraries keep is looked at after every differentiation, and modules that were imported
    are read: those that other tests brought in are left out.  The garbage collector, whose turn
    depends on what was allocated before, calls functions of Python's too (Hypothesis times it).
    """
    return _counted(run, warm, "call", sys.getprofile, sys.setprofile)


def lines(run: Callable[[], Any], warm: int = 1) -> int:
    """The lines of Python that it runs, each time that it runs."""
    return _counted(run, warm, "line", sys.gettrace, sys.settrace)


def _counted(
    run: Callable[[], Any],
    warm: int,
    counted: str,
    installed: Callable[[], Any],
    install: Callable[[Any], None],
) -> int:
    count = 0

    def note(frame: Any, event: str, _: Any) -> Any:
        nonlocal count
        count += event == counted
        return note

    overlay().forget()
    overlay().kept.holders.clear()
    for _ in range(warm):
        run()
    before, collects = installed(), gc.isenabled()
    gc.disable()
    install(note)
    try:
        run()
    finally:
        install(before)
        if collects:
            gc.enable()
    return count
