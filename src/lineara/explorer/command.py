"""`python -m lineara explore FILE.py:function --args LIST -o page.html`."""

import argparse
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from lineara.cli.json_values import read_arguments
from lineara.errors import LinearaError, ProgramError
from lineara.explorer.exploration import explore


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The function, where it is explored, and where the page goes."""
    parser.description = (
        "Write a page on a function: its source, what every pass makes of it, and what each line "
        "costs. FILE.py is imported, which runs what stands in it."
    )
    parser.add_argument("source", metavar="FILE.py:function", help="the file is run to import it")
    parser.add_argument(
        "--args",
        metavar="LIST",
        default="[]",
        help="a JSON list of arguments: numbers, lists (arrays), @file.npy",
    )
    parser.add_argument("-o", dest="out", metavar="OUT.html", required=True, help="the page")


def run(options: argparse.Namespace) -> int:
    """Write the page; what is wrong is said in words."""
    file, _, name = options.source.rpartition(":")
    if not file or not name:
        raise ProgramError(
            f"explore: {options.source} is not FILE.py:function, such as model.py:loss"
        )
    f = function_of(file, name)
    args = [np.array(a, float) if isinstance(a, list) else a for a in read_arguments(options.args)]
    try:
        explored = explore(f, *args)
    except LinearaError:
        raise
    except Exception as error:
        raise ProgramError(
            f"explore: {name} failed at these arguments: {type(error).__name__}: {error}; "
            "--args is a JSON list with one item for each parameter"
        ) from error
    try:
        explored.save(options.out)
    except OSError as error:
        raise ProgramError(f"{options.out}: cannot be written: {error.strerror or error}") from None
    print(explored)
    return 0


def function_of(file: str, name: str) -> Callable[..., Any]:
    """A function of a file, which is run."""
    path = Path(file)
    if not path.is_file():
        raise ProgramError(f"explore: there is no file {file}")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ProgramError(f"explore: {file} is no file of Python: its name ends in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)
    sys.path.insert(0, str(path.parent.resolve()))
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise ProgramError(
            f"explore: {file} failed as it was run: {type(error).__name__}: {error}"
        ) from error
    f = getattr(module, name, None)
    if not callable(f):
        raise ProgramError(f"explore: {file} has no function {name}{_those_of(module)}")
    return f


def _those_of(module: ModuleType) -> str:
    """The functions that a module has."""
    names = [k for k, v in vars(module).items() if callable(v) and v.__module__ == module.__name__]
    return f"; it has {', '.join(names)}" if names else ""
