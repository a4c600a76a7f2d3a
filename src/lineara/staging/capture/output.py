"""`print` and `warnings.warn` in captured functions: done each time that the program runs."""

import builtins
import functools
import sys
import warnings
from collections.abc import Callable
from types import FrameType
from typing import Any

from lineara.errors import user_frame, user_line
from lineara.facts.hints import Tree
from lineara.python.namespaces import Namespace
from lineara.python.user_code import reading
from lineara.staging.capture.raises import level_of_trace
from lineara.staging.texts import report


@functools.wraps(builtins.print)
def print_(*values: Tree, **options: Any) -> None:
    """`print`, as the program runs."""
    if reading() is None:
        builtins.print(*values, **options)
    else:
        level_of_trace().reported("print")
        report(level_of_trace(), True, builtins.print, *values, line=user_line(), **options)


@functools.wraps(warnings.warn)
def warn(
    message: str, category: type[Warning] | None = None, stacklevel: int = 1, source: object = None
) -> None:
    """`warnings.warn`, as the program runs; of the line that it stands in, or of one around."""
    frame: FrameType | None = user_frame(sys._getframe(1))
    for _ in range(stacklevel - 1):
        frame = frame and user_frame(frame.f_back)
    if reading() is None or frame is None:
        warnings.warn(message, category, stacklevel + 1, source)
        return
    space: Any = frame.f_globals
    real = space.real if isinstance(space, Namespace) else space
    explicit: Callable[..., Any] = functools.partial(
        warnings.warn_explicit,
        category=UserWarning if category is None else category,
        filename=frame.f_code.co_filename,
        lineno=frame.f_lineno,
        module=real.get("__name__"),
        registry=real.setdefault("__warningregistry__", {}),
        source=source,
    )
    level_of_trace().reported("warnings.warn")
    report(level_of_trace(), True, explicit, message, line=user_line())


BUILTINS = ((builtins.print, print_), (warnings.warn, warn))

__all__ = ["BUILTINS"]
