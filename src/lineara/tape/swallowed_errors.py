"""Refusals that somebody caught: the function went on where plain NumPy would not have come.

Its value may be right all the same, but nobody here can know, so the refusal is raised again when
the function returns.  Whoever names one of our errors in the function that catches it means it.
"""

import re
import sys
from pickle import PicklingError
from typing import Any, NoReturn

from lineara.errors import DetachError, LinearaError, describe_line, is_own_file
from lineara.facts.hints import Tree

MANY = 256  # refusals that are remembered before those that were meant are dropped
RECENT = 16  # the latest of them, which may still be propagating


def raise_swallowed(refused: list[LinearaError]) -> None:
    """Raise again the first refusal that was not meant to be caught."""
    for error in refused:
        if not _is_meant(error):
            _raise_again(error)


def prune(refused: list[LinearaError]) -> None:
    """Drop what was caught by one who means it: a loop may do so for ever."""
    if len(refused) > MANY:
        refused[:-RECENT] = [e for e in refused[:-RECENT] if not _is_meant(e)]


def _is_meant(error: LinearaError) -> bool:
    """Whether an error was caught on purpose: by our own code, or by `except` with its class."""
    trace = error.__traceback__  # begins where the error was caught
    if trace is None or not trace.tb_frame.f_code.co_exceptiontable:  # the code has no `try`
        return False  # compiled code, which has no frame, caught it
    code = trace.tb_frame.f_code
    names = [c.__name__ for c in type(error).__mro__ if issubclass(c, LinearaError)]
    return is_own_file(code.co_filename) or any(name in code.co_names for name in names)


def _raise_again(error: LinearaError) -> NoReturn:
    trace, around = error.__traceback__, "compiled code called there"
    if trace is not None and trace.tb_frame.f_code.co_exceptiontable:
        code = trace.tb_frame.f_code
        where = describe_line(code.co_filename, trace.tb_lineno, code.co_name)
        around = "an `except` around " + ("that line" if where == error.line else where)
    name = type(error).__name__
    raise type(error)(
        f"{error.message}; {around} caught this refusal, and the function went on where plain "
        f"numbers do not come; let it pass, or name {name} in the function that catches it, if "
        "the result is right without",
        line=error.line,
    ) from error


# --- errors of Python's that only a traced value gets ---------------------------------------------

_TRACED = re.compile(
    r"\bTraced(?:Number|Array|Address)\b|must be numpy.ufunc, not|^All inputs must be NumPy|"
    r"^(?:argument must be int or float|a float is|output must be an array)"
)
_OTHERS = re.compile(  # of other classes
    r"^Can't pickle .* (?:not the same object|on numpy failed$)|^Expected an array for parameter|"
    r"^setting an array element with a sequence$|^Currently only accepts floats$|"
    r"^require base class ndarray$"
)
_TEXT = re.compile(r"\b(?:not|from) Text\b")  # a text of staged values, where a text may stand
# What Python says of a number and an array, too: they have no such operation.
_PLAINLY = re.compile(
    r"interpreted as an integer|indices must be integers|unsupported operand|bad operand|"
    r"object (?:is not|does not support)|has no len|not supported between|no attribute|"
    r"must be str|can only concatenate|expected str|argument of type|^unhashable type"
)


class Told(ValueError):
    """An object whose `__array__` gives a traced value, which NumPy refuses to take as an array."""

    value: Any
    source: Tree

    def __init__(self, source: Tree, value: Any, copied: bool) -> None:
        super().__init__("object __array__ method not producing an array")
        self.source, self.value = source, value
        self.copied = copied  # asked for by copy.copy or copy.deepcopy


def met_by_traced(error: object) -> bool:
    """Whether compiled code refused a traced value where it may take a plain one."""
    if isinstance(error, Told):
        return True
    if not isinstance(error, Exception) or isinstance(error, LinearaError):
        return False
    text = str(error)
    if not isinstance(error, TypeError):
        return bool(_OTHERS.search(text))
    met = _TRACED.search(text) and not _PLAINLY.search(text)
    return bool(met or _TEXT.search(text))


def told(error: BaseException, line: str | None = None) -> DetachError:
    """Our refusal in place of an error of compiled code about a traced value."""
    if isinstance(error, PicklingError):
        return DetachError(
            f"{error}; functions, classes and modules of a differentiated function may be copies, "
            "which cannot be pickled; start other processes outside of it, or in lineara.external",
            line=line,
        )
    text = "array" if isinstance(error, Told) else str(error)
    kind = next((word for word in ("array", "ufunc", "Text") if word in text), "number").lower()
    return DetachError(
        f"compiled code takes no traced {kind}: {error}; compute with Python's operators, math and "
        "NumPy, or give it lineara.stop_gradient(x) to mean a constant",
        line=line,
    )


def refuse_caught() -> None:
    """Refuse what the `except` that now asks for its class is about to catch."""
    error = sys.exc_info()[1]
    if met_by_traced(error):
        assert error is not None
        raise told(error) from error
