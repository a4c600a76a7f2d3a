"""Capture: a function as it stands becomes a program whose branches and loops are structured.

The function runs once, as `trace` runs it, but from its source: branches and loops whose conditions
are staged become `cond`, `scan` and `while`; all others are Python's.
"""

import functools
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any

from lineara.python.structured_code import structured
from lineara.python.user_code import Way, reading
from lineara.staging.capture import forms
from lineara.staging.control_flow import one, tracing
from lineara.staging.definition_of import staged_around
from lineara.staging.staged_arrays import StagedArray
from lineara.staging.tracing import Staged, traced
from lineara.trees import flatten


def _code(f: FunctionType) -> CodeType:
    code, now = structured(f), reading()
    if not isinstance(code, str):
        return code
    assert now is not None, "code is read for a trace"
    now.unread[f.__code__.co_filename, f.__code__.co_firstlineno] = code
    return f.__code__


class _Written(Exception):
    """The function writes into its arguments."""


def _inside(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function that is differentiated in a captured one: a definition, which the passes derive.

    One that writes into its arguments is differentiated as it runs.
    """

    def of_nodes(args: tuple, kwargs: dict[str, Any]) -> Any:
        arrays = [v for v in flatten((args, kwargs))[0] if isinstance(v, StagedArray)]
        results = f(*args, **kwargs)
        if any([a.w.buffer.version for a in arrays]):
            raise _Written("an argument was written into")
        return results

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        if tracing() is not None or staged_around() is None:
            return f(*args, **kwargs)
        try:
            return one(of_nodes, [args, kwargs], f, "function")
        except _Written:
            return f(*args, **kwargs)

    return call


STRUCTURED = Way(_code, forms, forms.BUILTINS, _inside)


def trace(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Staged:
    """The program that f is for arguments of these types, with its branches and loops.

    Floating and complex numbers and arrays, and arrays of integers or booleans, in any containers,
    are what the program is a function of; Python's integers, flags and strings are constants of it.
    (If there are integers only, they count as floating, as in `grad`.)

    >>> trace(lambda x: x * x, 3.0)
    def f(x: f64;) -> (f64;) =
      let v: f64 = x * x in
      (v;)
    <BLANKLINE>
    >>> trace(lambda x: x * x, 3.0)(4.0)
    16.0
    >>> def tripled(x):
    ...     while x < 100:
    ...         x = 3 * x
    ...     return x
    >>> trace(tripled, 1.0)(2.0)
    162.0
    """
    return traced(f, args, kwargs, STRUCTURED)


__all__ = ["trace"]
