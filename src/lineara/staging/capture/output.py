"""`print` and `warnings.warn` in captured functions: done each time that the program runs."""

import builtins
import functools
import sys
import warnings
from collections.abc import Callable
from types import FrameType
from typing import Any

from lineara.errors import StagingError, user_frame, user_line
from lineara.facts.hints import Tree
from lineara.python.namespaces import Namespace
from lineara.python.user_code import reading
from lineara.staging.capture.raises import level_of_trace
from lineara.staging.texts import report


def _is_heard_now(name: str, within: str, known: str, now: object) -> bool:
    """Whether a `with` of the function's own hears what is said, and no later run would be heard.

    It is said while the function is traced then, which is once in each run of it.
    """
    level = level_of_trace()
    if now is getattr(level.shared, known):
        return False
    if level.holder is not None:
        raise StagingError(
            f"{name} under {within} in a loop, a branch or a function of its own in a program: how "
            f"often it is called depends on staged values, and {within} hears it while the program "
            "is written; put it in front of the with, or the with around the call of the function"
        )
    return True


@functools.wraps(builtins.print)
def print_(*values: Tree, **options: Any) -> None:
    """`print`, as the program runs."""
    heard = reading() is not None and options.get("file") is None
    heard = heard and _is_heard_now("print", "redirect_stdout", "stdout", sys.stdout)
    if reading() is None or heard:
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
    heard = reading() is not None and _is_heard_now(
        "warnings.warn", "catch_warnings", "filters", warnings.filters
    )
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
    if heard:
        explicit(message)
        return
    level_of_trace().reported("warnings.warn")
    report(level_of_trace(), True, explicit, message, line=user_line())


BUILTINS = ((builtins.print, print_), (warnings.warn, warn))

__all__ = ["BUILTINS"]
