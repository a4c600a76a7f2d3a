"""What the user's code raises, as checks of the program: the exception and the user's line."""

import dis
from types import TracebackType
from typing import Any

from lineara.errors import LinearaError, StagingError, describe_line, is_own_file
from lineara.ops.value_checks import CHECKED, checked
from lineara.python.function_copies import is_user_code
from lineara.staging.control_flow import tracing
from lineara.staging.lost_texts import refuse_lost
from lineara.staging.staged_level import StagedLevel
from lineara.staging.texts import LINE, raises


def level_of_trace() -> StagedLevel:
    """The definition that is being written."""
    level = tracing()
    if level is None:
        raise StagingError(
            "a branch or a loop depends on a staged value within a differentiation in a captured "
            "function; write it with lineara.cond, lineara.while_loop or lineara.scan there"
        )
    return level


def check(fails: Any, error: BaseException, line: str) -> None:
    """Write what raises an exception of the user's as the program runs."""
    level = level_of_trace()
    refuse_lost(error)
    if level.caught(f"the raise of {type(error).__name__}", [type(error)]):
        level.raised_in_try(fails, error, line)
    elif is_simple(error):
        kind: Any = type(error)
        checked(fails, fails, kind, *error.args or ("",), line=line)
    else:
        raises(level, fails, error, line)


def is_simple(error: BaseException) -> bool:
    """Whether an exception is one of Python's with a text alone."""
    said = len(error.args) < 2 and all([type(a) is str for a in error.args])
    return type(error) in CHECKED and said and error.__cause__ is error.__context__ is None


def raised_by_python(error: BaseException, line: str) -> BaseException:
    """An exception that Python raises in the user's code where a form says so, at that line."""
    vars(error)[LINE] = line
    return error


def as_python_raises(error: BaseException) -> BaseException:
    """An exception as plain Python raises it: of an index NumPy's own, in place of ours."""
    plain = getattr(error, "plain", None)
    if plain is None:
        return error
    return raised_by_python(plain.with_traceback(error.__traceback__), line_of(error))


def is_raised(error: BaseException, natural: bool = False) -> bool:
    """Whether the user's code has raised an exception, by `raise` or as forms say.

    Or, if these count too, by what is `natural` to Python: arithmetic, and a look for an item.
    """
    if isinstance(error, LinearaError) or LINE in vars(error):
        return not isinstance(error, LinearaError)
    trace = _innermost(error)
    code = trace.tb_frame.f_code
    if natural and isinstance(error, NATURAL):
        return not is_own_file(code.co_filename)
    return is_user_code(code.co_filename) and code.co_code[trace.tb_lasti] == _RAISE


NATURAL = (ArithmeticError, LookupError)


_RAISE = dis.opmap["RAISE_VARARGS"]


def _innermost(error: BaseException) -> TracebackType:
    """The innermost traceback of an exception."""
    trace = error.__traceback__
    assert trace is not None, "it was raised"
    while trace.tb_next is not None:
        trace = trace.tb_next
    return trace


def line_of(error: BaseException) -> str:
    """The line that has raised an exception."""
    if LINE in vars(error):
        return str(vars(error)[LINE])
    trace = _innermost(error)
    code = trace.tb_frame.f_code
    return describe_line(code.co_filename, trace.tb_lineno, code.co_name)
