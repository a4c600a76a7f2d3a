"""The line of a function that changes something which outlives its call.

That something has changed is seen when the function has been captured.  Which line did it is found
by one more run, in which all is looked at after each line of the user's.
"""

import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

from lineara.errors import describe_line
from lineara.python.function_copies import is_user_code
from lineara.staging.capture.containers import Snapshot

LOOKS = 100_000  # at one thing after one line


class _Done(BaseException):
    """The line is known, or is not to be had."""


def line_of_change(run: Callable[[], object], snapshots: Sequence[Snapshot]) -> str | None:
    """The first line of a run after which something is not as it was; None where none is found.

    What was changed is put back.
    """
    at: list[Any] = [None, 0]  # the line that runs; how many there were
    lines = LOOKS // max(1, sum([len(s.kept) + len(s.places) for s in snapshots]))
    line: str | None = None

    def look(frame: FrameType, event: str, _: object) -> Any:
        nonlocal line
        code = frame.f_code
        if not is_user_code(code.co_filename):
            return None
        at[1] += 1
        if at[0] is not None and any([s.changed() for s in snapshots]):
            line = describe_line(*at[0])
        if line is not None or at[1] > lines:
            raise _Done
        at[0] = code.co_filename, frame.f_lineno, code.co_name
        if event == "return":
            caller = _user_frame(frame.f_back)
            at[0] = caller or at[0]
        return look

    before = sys.gettrace()
    sys.settrace(look)
    try:
        run()
    except (_Done, Exception):  # the first run has said what there is to say
        pass
    finally:
        sys.settrace(before)
        last = any([s.undo() for s in snapshots])
    return describe_line(*at[0]) if line is None and last and at[1] <= lines and at[0] else line


def _user_frame(frame: FrameType | None) -> Any:
    while frame is not None and not is_user_code(frame.f_code.co_filename):
        frame = frame.f_back
    return frame and (frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)


__all__ = ["line_of_change"]
