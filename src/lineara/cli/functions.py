"""A function that a command names, and the arguments of `--args` that it is called with."""

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from lineara.bridges.python_and_diagrams import misfit
from lineara.cli.json_values import array_of_file, read_arguments
from lineara.errors import LinearaError, ProgramError, raised_at
from lineara.text.language import MOST, did_you_mean

SOURCE = "FILE.py:function or module:function"


def is_function(source: str) -> bool:
    """Whether a source names a function: of a file, or of a module.

    >>> is_function("model.py:loss"), is_function("package.model:loss"), is_function("model.pb")
    (True, True, False)
    """
    where, _, name = source.rpartition(":")
    return bool(where) and name.isidentifier()


def function_of(source: str) -> Callable[..., Any]:
    """The function `FILE.py:name`, whose file is run, or `module:name`, which is imported."""
    if not is_function(source):
        raise ProgramError(f"{source} is not {SOURCE}, such as model.py:loss")
    where, _, name = source.rpartition(":")
    is_file = where.endswith(".py") or Path(where).is_file()
    if is_file and not Path(where).is_file():
        raise ProgramError(f"there is no file {where}")
    if not is_file and "" not in sys.path:
        sys.path.insert(0, "")
    with said(f"{where} {'failed as it was run' if is_file else 'cannot be imported'}"):
        module = _run(Path(where)) if is_file else importlib.import_module(where)
    f = getattr(module, name, None)
    if not callable(f):
        raise ProgramError(f"{where} has no function {name}{_those_of(module, name)}")
    return f


def _run(path: Path) -> ModuleType:
    """The module of a file, which is run."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ProgramError(f"{path} is no file of Python: its name ends in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)
    sys.path.insert(0, str(path.parent.resolve()))
    spec.loader.exec_module(module)
    return module


def _those_of(module: ModuleType, name: str) -> str:
    """The functions that a module has, or the one that is most like a name."""
    names = [k for k, v in vars(module).items() if callable(v) and v.__module__ == module.__name__]
    few = f"; it has {', '.join(names)}" if 0 < len(names) <= MOST else ""
    return did_you_mean(name, names) or few


def arguments_of(f: Callable[..., Any], text: str | None) -> list[Any]:
    """The arguments in a JSON list, one for each parameter of f: lists are arrays of floats."""
    given = read_arguments(text or "[]")
    args = [_value(v, f"the argument {i + 1} of --args") for i, v in enumerate(given)]
    unfit = misfit(f, args)
    if unfit:
        raise ProgramError(f"{unfit}; --args is {wanted(f)}")
    return args


def wanted(f: Callable[..., Any]) -> str:
    """What `--args` is for a function.

    >>> wanted(lambda x, y: x)
    "a JSON list with a value for each parameter: --args '[x, y]'"
    """
    names = [p.name for p in inspect.signature(f).parameters.values() if p.kind in _POSITIONAL]
    return f"a JSON list with a value for each parameter: --args '[{', '.join(names)}]'"


_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def _value(given: object, where: str) -> Any:
    """A value of JSON as a function takes it."""
    if isinstance(given, str) and given.startswith("@"):
        return array_of_file(given[1:], where)
    if not isinstance(given, list):
        return given
    try:
        return np.array(given, float)
    except (TypeError, ValueError):
        raise ProgramError(
            f"{where} is no array: its lists are not equally long, or hold something other than "
            "numbers"
        ) from None


@contextmanager
def said(what: str) -> Iterator[None]:
    """An error of the user's own code as one of ours, with its line."""
    try:
        yield
    except LinearaError:
        raise
    except Exception as error:
        line = raised_at(error)
        raise ProgramError(f"{what}: {type(error).__name__}: {error}", line) from error
