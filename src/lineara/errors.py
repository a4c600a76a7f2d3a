"""Every way to fail.  A message says what was asked, what was found, and what would work.

Each class carries the user's line: the innermost frame on the stack that lies neither in
Lineara nor in an installed library.  Where it lies in a library that is followed, the text names
that line, too.  `docs/errors/` has a page for each class.
"""

import linecache
import pickle
import re
import sys
import sysconfig
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

_HERE = str(Path(__file__).parent)
_DEMO = str(Path(_HERE) / "demo")
_LIBRARY = (sysconfig.get_paths()["stdlib"], sysconfig.get_paths()["platstdlib"])


@cache
def is_user_file(filename: str) -> bool:
    """Whether code in `filename` is the user's: not ours, not installed, not the standard library.

    The demo's model is written as a user writes, and is treated as such wherever it lies.
    """
    if filename.startswith("<"):  # doctest and console lines are the user's, frozen modules are not
        return not filename.startswith(("<frozen", "<lineara", "<__array_function__"))
    if filename.startswith(_HERE):
        return filename.startswith(_DEMO)
    if "site-packages" in filename or "dist-packages" in filename:
        return False
    return not filename.startswith(_LIBRARY)


# Installed packages, and parts of them, whose functions get traced values as they are: they have
# rules or an adapter, values of their own that hold no derivatives, or nothing to differentiate.
_FOREIGN = """
IPython PIL _pytest astropy/units autograd cupy cython dask hypothesis jax jaxlib llvmlite
matplotlib mpl_toolkits numba numpy optree pandas pint pluggy pytest scipy sympy tensorflow
torch xarray
"""
FOREIGN = frozenset(_FOREIGN.split())
_INSTALLED = re.compile(r".*[\\/](?:site|dist)-packages[\\/](.*)", re.DOTALL)


@cache
def is_library_file(filename: str) -> bool:
    """Whether code in `filename` is an installed library's that is followed as the user's is."""
    match = _INSTALLED.fullmatch(filename)
    if match is None or filename.startswith(_HERE):
        return False
    first, *rest = re.split(r"[\\/]", match[1].removesuffix(".py"))
    return first.partition(".")[0] not in FOREIGN and "/".join([first, *rest[:1]]) not in FOREIGN


@cache
def is_own_file(filename: str) -> bool:
    """Whether code in `filename` is Lineara's own; the demo's model is not."""
    own = filename.startswith((_HERE, "<lineara"))
    return own and not filename.startswith(_DEMO)


def _file(frame: FrameType) -> str:
    """The file of the code that runs; of code that a library made, the library's."""
    filename = frame.f_code.co_filename
    if not filename.startswith("<") or filename.startswith("<doctest"):
        return filename
    module = frame.f_globals.get("__file__")
    return module if isinstance(module, str) and is_library_file(module) else filename


def user_frame(frame: FrameType | None = None) -> FrameType | None:
    """The innermost frame that runs the user's code, or None."""
    frame = frame or sys._getframe(1)
    while frame is not None and not is_user_file(_file(frame)):
        frame = frame.f_back
    return frame


def library_line(frame: FrameType | None) -> str:
    """The innermost line of a followed library that the user's line has come to, or nothing."""
    while frame is not None and not is_user_file(_file(frame)):
        if is_library_file(_file(frame)):
            code = frame.f_code
            return describe_line(code.co_filename, frame.f_lineno, code.co_name)
        frame = frame.f_back
    return ""


def user_line(frame: FrameType | None = None) -> str:
    """`file:line in function: source` of the user's line, or the empty string.

    >>> def f():
    ...     return user_line()
    >>> " in f" in f()
    True
    """
    frame = user_frame(frame or sys._getframe(1))
    if frame is None:
        return ""
    code = frame.f_code
    return describe_line(code.co_filename, frame.f_lineno, code.co_name)


def user_place() -> str:
    """`path:number` of the user's line, or the empty string.

    >>> user_place().rpartition(":")[0]
    '<doctest lineara.errors.user_place[0]>'
    """
    frame = user_frame(sys._getframe(1))
    return "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"


def raised_at(error: BaseException) -> str:
    """The user's line that an error comes from, as `user_line` has it, or the empty string."""
    line, trace = "", error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if is_user_file(_file(trace.tb_frame)):
            line = describe_line(code.co_filename, trace.tb_lineno, code.co_name)
        trace = trace.tb_next
    return line


def describe_line(filename: str, lineno: int, function: str) -> str:
    """`model.py:12 in loss: y = x @ w`."""
    source = linecache.getline(filename, lineno).strip()
    where = f"{Path(filename).name}:{lineno} in {function}"
    return f"{where}: {source}" if source else where


def described(place: str) -> str:
    """`model.py:12: y = x @ w`, of a place as `user_place` gives it.

    >>> described("no/such/model.py:12"), described("")
    ('model.py:12', '')
    """
    path, _, number = place.rpartition(":")
    source = linecache.getline(path, int(number)).strip() if path else ""
    where = f"{Path(path).name}:{number}" if path else ""
    return f"{where}: {source}" if source else where


def with_article(name: str) -> str:
    """The name of a class in a sentence.

    >>> with_article("ndarray"), with_article("Acc"), with_article("float")
    ('an ndarray', 'an Acc', 'a float')
    """
    return f"{'an' if name.lower().startswith(('a', 'e', 'i', 'o', 'nd')) else 'a'} {name}"


def warn_at_users_line(message: str, kind: type[Warning]) -> None:
    """Warn at the user's line: of a frame outside of NumPy and Lineara, the innermost one."""
    frame = user_frame(sys._getframe(1))
    if frame is None:
        warnings.warn(message, kind, stacklevel=3)
        return
    registry = frame.f_globals.setdefault("__warningregistry__", {})
    module = frame.f_globals.get("__name__", "<unknown>")
    where = (frame.f_code.co_filename, frame.f_lineno)
    warnings.warn_explicit(message, kind, *where, module=module, registry=registry)


watchers: list[Callable[[Any], None]] = []  # told of each refusal: an open trace remembers it


class LinearaError(Exception):
    """What every error of Lineara derives from; `message` is the text, `line` the user's line.

    >>> str(LinearaError("sum: the axis 3 of f64[2] does not exist", line="m.py:3 in f: x.sum(3)"))
    'sum: the axis 3 of f64[2] does not exist\\n  at m.py:3 in f: x.sum(3)'
    """

    refuses: bool = False  # whether plain NumPy would have gone on here

    def __init__(self, message: str, *, line: str | None = None) -> None:
        self.message = message
        self.line: str = user_line(sys._getframe(1)) if line is None else line
        inside = library_line(sys._getframe(1)) if line is None and self.line else ""
        lines = [f"\n  in {inside}"] * bool(inside) + [f"\n  at {self.line}"] * bool(self.line)
        super().__init__("".join([message, *lines]))
        if self.refuses:
            for watch in watchers:
                watch(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return _as_raised, (type(self), self.args), vars(self)


def _as_raised(kind: type[LinearaError], args: tuple[Any, ...]) -> LinearaError:
    """An error that was raised in another process, with the line that it had there."""
    return kind.__new__(kind, *args)


class ShapeError(LinearaError, ValueError):
    """Shapes, axes or indices that do not go together."""


class BoundsError(LinearaError, IndexError):
    """An index that does not lie in its array; `plain` is NumPy's own error, where it has one."""

    plain: IndexError | None = None

    @classmethod
    def beside(cls, plain: Exception, message: str) -> "BoundsError | ShapeError":
        """The error for one of NumPy's, which remembers it: of an index, or of shapes."""
        if not isinstance(plain, IndexError):
            return ShapeError(message)
        error = cls(message)
        error.plain = plain
        return error


class TypeMismatchError(LinearaError, TypeError):
    """An argument that cannot be differentiated or combined: a string, an object array, None."""


class NonScalarOutputError(LinearaError, TypeError):
    """`grad` was asked of a function whose result is not one real number."""


class NoRuleError(LinearaError, NotImplementedError):
    """A function or a form of it that has no derivative rule here."""

    refuses = True


class DetachError(LinearaError, TypeError):
    """A traced value was about to lose its derivative by turning into a plain number or array."""

    refuses = True


class LeakedVariableError(LinearaError):
    """A traced value was used after the differentiation that made it had ended."""

    refuses = True


class MutationError(LinearaError, ValueError):
    """An array that a derivative still needs was about to be overwritten."""

    refuses = True


class LinearityError(LinearaError):
    """Something that must be linear is not: a function to transpose, or a custom rule."""

    refuses = True


class StagingError(LinearaError):
    """While a program was traced, a value was asked for that is not known until it runs."""

    refuses = True
    final = False  # whether something has changed that cannot be put back to try another way
    leaves: tuple[int, ...] = ()  # the arguments, by number, that would have to be constants


class ProgramError(LinearaError):
    """A Linear A program that does not parse, is not well typed, or cannot be run as asked."""

    def __init__(self, message: str, line: str = "") -> None:
        super().__init__(message, line=line)


class OutOfBounds(ProgramError, IndexError):
    """A program that runs reads or writes beyond an array: as Python says it, too."""


class OutOfRoom(ProgramError):
    """A program that runs needs more room than it has: it was traced for less."""


OutOfBounds.__name__ = OutOfRoom.__name__ = ProgramError.__name__


class SolverError(LinearaError, ArithmeticError):
    """A solution without a derivative: the solver did not converge, or the equation is singular."""

    refuses = True


class CalculusError(LinearaError):
    """A term of the pullback calculus that does not parse, has no type, or does not end."""

    def __init__(self, message: str) -> None:
        super().__init__(message, line="")


class DiagramError(LinearaError):
    """A string diagram, or a rule about diagrams, that is not well formed or not sound."""

    def __init__(self, message: str) -> None:
        super().__init__(message, line="")


class RuleError(LinearaError):
    """A rule or builder that does not keep its law (dot-product identity, finite difference)."""

    refuses = True


class PickleError(LinearaError, pickle.PickleError):
    """What pickle cannot write, or what another version of Lineara has written."""


class DistributedError(LinearaError, RuntimeError):
    """A sum over chunks that did not come to its end, or that not all machines round alike."""


class StructureError(LinearaError, ValueError):
    """Containers that do not match, or that contain themselves."""


class GeometryError(LinearaError, TypeError):
    """An operation that a manifold, a unit or a metric does not have."""


class DensifyWarning(UserWarning):
    """Something large and sparse is about to become a dense array that nobody asked for."""
