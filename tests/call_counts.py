"""How many Python functions a run calls: a measure that no clock and no other process disturbs."""

import gc
import sys
from collections.abc import Callable
from typing import Any

from lineara.python.user_code import overlay


def calls(run: Callable[[], Any], warm: int = 1) -> int:
    """The calls of a run that follows `warm` others, in a process like a new one.

    What libraries keep is looked at after every differentiation, and modules that were imported
    are read: those that other tests brought in are left out.  The garbage collector, whose turn
    depends on what was allocated before, calls functions of Python's too (Hypothesis times it).
    """
    count = 0

    def note(frame: Any, event: str, _: Any) -> None:
        nonlocal count
        count += event == "call"

    overlay().forget()
    overlay().kept.holders.clear()
    for _ in range(warm):
        run()
    before, collects = sys.getprofile(), gc.isenabled()
    gc.disable()
    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(before)
        if collects:
            gc.enable()
    return count
