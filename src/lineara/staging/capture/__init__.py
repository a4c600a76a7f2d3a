"""Capture: a function as it stands becomes a program whose branches and loops are structured.

The function runs once, as `trace` runs it, but from its source: branches and loops whose conditions
are staged become `cond`, `scan` and `while`; all others are Python's.
"""

import functools
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any

from lineara.errors import DetachError, OutOfRoom, StagingError
from lineara.facts.hints import Leaf
from lineara.facts.types import type_of
from lineara.python.structured_code import structured
from lineara.python.user_code import Reading, Rooms, Way
from lineara.staging.capture import forms
from lineara.staging.control_flow import one, tracing
from lineara.staging.definition_of import staged_around
from lineara.staging.staged_arrays import StagedArray
from lineara.staging.staged_level import StagedLevel
from lineara.staging.tracing import Fixed, Staged, traced
from lineara.tape.levels import threads
from lineara.tape.node import Traced
from lineara.trees import flatten, unflatten


def _code(f: FunctionType) -> CodeType:
    code = structured(f)
    return f.__code__ if isinstance(code, str) else code


class _Written(Exception):
    """The function writes into its arguments."""


def _inside(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function that is differentiated in a captured one: a definition, which the passes derive.

    One that writes into its arguments is differentiated as it runs.
    """

    def of_nodes(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
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
    return _trace(f, args, kwargs, False)


def trace_with_lines(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Staged:
    """The program that f is, as `trace` gives it; its variables know the user's lines.

    >>> trace_with_lines(lambda x: x * x, 3.0)(4.0)
    16.0
    """
    return _trace(f, args, kwargs, True)


def _trace(f: Callable[..., Any], args: tuple, kwargs: dict[str, Any], lines: bool) -> Staged:
    given: Any = (args, kwargs)
    leaves, structure = flatten(given)
    rooms = Rooms()
    known = not any([isinstance(v, Traced) for v in leaves])
    while True:
        try:
            reading = Reading(STRUCTURED, False, f, rooms)
            reading.lines = lines
            staged = traced(f, given[0], given[1], reading)
            if rooms.at and known:  # is there room enough, for these arguments?
                staged.run(*args, **kwargs)
            return staged
        except OutOfRoom as e:
            if not rooms.outgrown(e):
                raise
        except StagingError as e:
            if not e.leaves or _in_two_places((args, kwargs)):
                raise
            for i in e.leaves:
                leaves[i] = Fixed(leaves[i])
            given = unflatten(structure, leaves)


def _in_two_places(tree: object) -> bool:
    """Whether a container stands in two places of a tree: a copy of the tree would have two."""
    containers: list[object] = []
    flatten(tree, is_leaf=lambda x: bool(containers.append(x)))
    changeable = [id(x) for x in containers if type(x) is not tuple]
    return len({*changeable}) < len(changeable)


def static(value: Leaf) -> Any:
    """The value, which is a constant of a program that is captured from the function.

    Elsewhere it is the value itself.  In a function that is captured it takes an argument that is
    a number of Python's, or what is computed from whole numbers: `jit` makes a program for each
    value of it.  DetachError where it is differentiated, StagingError where it is no such number.

    >>> import lineara
    >>> @lineara.jit
    ... def power(x, k):
    ...     return x ** lineara.static(k)
    >>> power(3.0, 2), power(3.0, 3), power(5.0, 2), power.captures
    (9.0, 27.0, 25.0, 2)
    """
    if not isinstance(value, Traced):
        return value
    if not isinstance(value.level, StagedLevel):
        raise DetachError(
            "lineara.static was given a value that is differentiated, and a constant has no "
            "derivative; take static of a number that is not, or outside of the derivative"
        )
    error = StagingError(
        f"lineara.static was given a staged {type_of(value)}, whose value is not known while the "
        "program is written; take it of an argument that is a number of Python's, by itself"
    )
    outermost: Any = threads.open[0]
    error.leaves = tuple(outermost.arguments.leaves_of(value))
    raise error


__all__ = ["static", "trace", "trace_with_lines"]
