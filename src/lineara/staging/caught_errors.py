"""Whether an exception that a program may raise as it runs would be caught by the traced function.

Which branch a `try` takes is then not known while the program is written, so it is an error.  The
handlers are those of CPython's exception tables, at the places where the frames stand.
"""

import ast
import dis
import linecache
import sys
from collections.abc import Sequence
from types import CodeType, FrameType
from typing import Any, NamedTuple

from lineara.errors import StagingError, describe_line, is_own_file
from lineara.text.python_source import tree_of

_PUSHES = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FAST", "LOAD_DEREF", "LOAD_CONST")
_SKIPPED = ("PUSH_EXC_INFO", "NOP", "PUSH_NULL", "COPY_FREE_VARS", "LOAD_CLASSDEREF")
_SWALLOWING = {"suppress", "raises", "assertRaises", "assertRaisesRegex"}


class Handler(NamedTuple):
    """What may catch an exception: `loads` are the instructions that load its classes."""

    loads: tuple[dis.Instruction, ...]
    every: bool = False  # it catches all there are
    cleans: bool = False  # it is that of a `finally` or a `with`, and lets them pass


def refuse_caught(what: str, kinds: Sequence[type[BaseException]], end: FrameType | None) -> bool:
    """Refuse an operation whose exception a frame inside of `end` would catch.

    Whether one of them would do something on the way out.
    """
    frame: Any = sys._getframe(1)
    cleaned = False
    while frame is not None and frame is not end:
        if frame.f_code.co_exceptiontable and not is_own_file(frame.f_code.co_filename):
            for handler in _handlers(frame.f_code, frame.f_lasti):
                cleaned = cleaned or handler.cleans
                caught = _caught(handler, frame, kinds)
                if caught is not None:
                    raise in_try(what, caught)
        frame = frame.f_back
    return cleaned


def in_try(what: str, caught: str) -> StagingError:
    """The refusal of what may raise where that would be caught."""
    return StagingError(
        f"{what} stands in a try that catches {caught}: whether it is raised is not known while a "
        "program is written; choose with lineara.cond on the numbers, or let the exception out"
    )


def in_with(what: str, kind: type[BaseException]) -> StagingError:
    """The refusal of what may raise in a `with` within the try that catches it."""
    return StagingError(
        f"{what} stands in a `with`, or in a function that is not read, within a try that catches "
        f"{kind.__name__}: what is done at its end where that is raised is not known while a "
        "program is written; put the try into it, or leave it before"
    )


def cleaning_line(end: FrameType | None) -> str:
    """The line of a `finally`, or of an `__exit__`, that is done inside of `end`; or nothing."""
    frame: Any = sys._getframe(1)
    while frame is not None and frame is not end:
        file, line = frame.f_code.co_filename, frame.f_lineno
        if not is_own_file(file) and (
            frame.f_code.co_name == "__exit__" or any([line in r for r in _finally_lines(file)])
        ):
            return describe_line(file, line, frame.f_code.co_name)
        frame = frame.f_back
    return ""


def _finally_lines(file: str) -> list[range]:
    """The lines of the `finally` blocks of a file."""
    try:
        tree = tree_of("".join(linecache.getlines(file)))
    except SyntaxError:
        return []
    tries = [n for n in ast.walk(tree) if isinstance(n, ast.Try | ast.TryStar) and n.finalbody]
    ends = [(n.finalbody[0].lineno, n.finalbody[-1].end_lineno or 0) for n in tries]
    return [range(first, last + 1) for first, last in ends]


def _caught(handler: Handler, frame: FrameType, kinds: Sequence[type[BaseException]]) -> str | None:
    """The first of these exceptions that a handler catches; one whose classes are hidden may."""
    if handler.cleans:
        return None
    if handler.every:
        return kinds[0].__name__
    try:
        classes = _loaded(handler.loads, frame)
        return next((k.__name__ for k in kinds if issubclass(k, classes)), None)
    except (LookupError, AttributeError, TypeError):
        return kinds[0].__name__


def _loaded(loads: tuple[dis.Instruction, ...], frame: FrameType) -> Any:
    """The classes that instructions load."""
    stack: list[Any] = []
    for i in loads:
        if i.opname == "LOAD_CONST":
            stack.append(i.argval)
        elif i.opname in ("LOAD_FAST", "LOAD_DEREF"):
            stack.append(frame.f_locals[i.argval])
        elif i.opname in _PUSHES:
            stack.append(_named(i.argval, frame))
        elif i.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            stack.append(getattr(stack.pop(), i.argval))
        else:  # BUILD_TUPLE
            assert i.arg is not None, "a tuple has a length"
            parts = stack[len(stack) - i.arg :]
            del stack[len(stack) - i.arg :]
            stack.append(tuple(parts))
    (cls,) = stack
    return cls


def _named(name: str, frame: FrameType) -> Any:
    try:
        return frame.f_globals[name]
    except KeyError:
        return frame.f_builtins[name]


def _handlers(code: CodeType, at: int) -> tuple[Handler, ...]:
    """The handlers around an instruction, from the innermost to the outermost."""
    key = id(code), at  # a hash of the code itself reads all of it
    if key not in _known:
        if len(_known) >= 4096:
            _known.clear()
        _known[key] = code, _found(code, at)
    return _known[key][1]


_known: dict[tuple[int, int], tuple[CodeType, tuple[Handler, ...]]] = {}


def _found(code: CodeType, at: int) -> tuple[Handler, ...]:
    entries = list(dis._parse_exception_table(code))  # type: ignore[attr-defined]  # of CPython
    if not entries:
        return ()
    instructions = list(dis.get_instructions(code))
    index = {i.offset: k for k, i in enumerate(instructions)}
    handlers: list[Handler] = []
    seen: set[int] = set()
    entry = next((e for e in entries if e.start <= at < e.end), None)
    while entry is not None and entry.target not in seen:
        seen.add(entry.target)
        at = entry.target
        handlers += _clauses(instructions, index, index[at]) or [Handler((), cleans=True)]
        of_with = "WITH_EXCEPT_START" in [i.opname for i in instructions[index[at] :][:2]]
        if of_with and _suppresses(instructions, index.get(entry.start, 0)):
            handlers.append(Handler((), True))
        entry = next((e for e in entries if e.start <= at < e.end), None)
    return tuple(handlers)


def _clauses(instructions: list[dis.Instruction], index: dict[int, int], k: int) -> list[Handler]:
    """The `except` clauses of the handler that begins at an instruction; a `finally` has none."""
    handlers: list[Handler] = []
    if instructions[k].opname != "PUSH_EXC_INFO":
        return handlers
    loads: list[dis.Instruction] = []
    k += 1
    while k < len(instructions):
        i = instructions[k]
        if i.opname in ("CHECK_EXC_MATCH", "CHECK_EG_MATCH"):
            handlers.append(Handler(tuple(loads)))
            loads = []
            jump = instructions[k + 1]
            k = index[jump.argval]
        elif i.opname == "POP_TOP" and not loads:
            return [*handlers, Handler((), True)]
        elif i.opname in (*_PUSHES, "LOAD_ATTR", "LOAD_METHOD", "BUILD_TUPLE"):
            loads.append(i)
            k += 1
        elif i.opname in _SKIPPED:
            k += 1
        elif handlers and loads:  # the class of a clause is calculated
            return [*handlers, Handler((), True)]
        else:
            return handlers
    return handlers


def _suppresses(instructions: list[dis.Instruction], k: int) -> bool:
    """Whether a `with` is one that is known to swallow exceptions, by its name."""
    lines = [getattr(i.positions, "lineno", None) for i in instructions[: k + 1]]
    named = [i.argval for i, line in zip(instructions, lines, strict=False) if line == lines[-1]]
    return not _SWALLOWING.isdisjoint([n for n in named if isinstance(n, str)])
