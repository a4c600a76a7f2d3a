"""Small programs run plainly and in a differentiation: what must be the same.

A program takes `saw`, to which it tells what it saw, and its arguments.  Its value, its exception
and what it saw must be those of the plain call, or there is an error of ours.
"""

import copy
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import lineara
from lineara.errors import LinearaError

Program = Callable[..., Any]
RUNS: dict[str, Callable[..., Any]] = {
    "grad": lambda f, args: lineara.value_and_grad(f, tuple(range(len(args))))(*args)[0],
    "linearize": lambda f, args: lineara.linearize(f, *args)[0],
    "vjp": lambda f, args: lineara.vjp(f, *args)[0],
    "nested": lambda f, args: lineara.value_and_grad(
        lambda *a: RUNS["grad"](f, a), tuple(range(len(args)))
    )(*args)[0],
}


class Saw(list):
    """What a program saw, as texts: nothing traced is kept."""

    def append(self, value: Any) -> None:
        """Note the class of a value, and what it looks like."""
        text = (value.shape, value.dtype) if isinstance(value, np.ndarray) else value
        super().append(f"{'' if isinstance(value, float) else type(value).__name__} {text}")


class Programs:
    """The programs of a file, with their arguments."""

    def __init__(self) -> None:
        self.all: dict[str, tuple[Program, tuple[Any, ...]]] = {}

    def at(self, *args: Any) -> Callable[[Program], Program]:
        """Declare a program with the arguments that it is run with."""

        def declare(f: Program) -> Program:
            self.all[f.__name__] = f, args
            return f

        return declare

    def differences(self, run: str) -> tuple[list[str], list[str]]:
        """Which programs differ from the plain run, and which are refused."""
        different, refused = [], []
        for name, (f, args) in self.all.items():
            plain = _outcome(f, args, lambda g, a: g(*a))
            found = _outcome(f, args, RUNS[run])
            if found[0] == "refused":
                refused.append(name)
            elif found != plain:
                different.append(f"{name}: {plain} plainly, {found}")
        return different, refused


def _outcome(f: Program, args: tuple[Any, ...], run: Callable[..., Any]) -> tuple[str, ...]:
    saw = Saw()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            value = run(lambda *a: f(saw, *a), copy.deepcopy(args))
        except LinearaError:
            return ("refused",)
        except Exception as e:
            return type(e).__name__, *saw
    once = saw[: len(saw) // 2] if saw[: len(saw) // 2] == saw[len(saw) // 2 :] else saw
    return np.asarray(value).tobytes().hex(), *once
