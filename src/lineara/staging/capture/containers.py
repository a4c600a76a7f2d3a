"""Containers, arrays and objects that a block may reach: what it changes in them is put back.

A block that becomes a definition runs once while the program is written, so a list that it changes
would be changed once, whatever the condition or the number of rounds.
"""

import pickle
import random
from collections import deque
from types import FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from lineara.errors import StagingError
from lineara.python.function_copies import is_user_code
from lineara.python.namespaces import Namespace
from lineara.staging.capture.variables import UNSET, contents
from lineara.tape.node import Traced

LIMIT = 20_000  # entries that are looked at
_PLAIN = (int, float, complex, bool, str, bytes, type(None), range, slice, type, ModuleType, Traced)


_DRAWS = (random.Random, np.random.Generator, np.random.RandomState)
GENERATORS = (random.random.__self__, np.random.normal.__self__)  # type: ignore[attr-defined]


class Snapshot:
    """What a block can reach of lists, dicts, sets, arrays and objects, as it is now."""

    def __init__(self, *blocks: Any) -> None:
        self.kept: dict[int, tuple[Any, Any]] = {}
        self.seen: set[int] = set()
        self.functions: list[tuple[FunctionType, Any, list[Any]]] = []  # code, and what it reaches
        todo: list[Any] = [*blocks]
        while todo and len(self.seen) < LIMIT:
            todo += self._parts(todo.pop())

    def _parts(self, x: Any) -> list[Any]:
        """Remember one thing; what it leads to."""
        if isinstance(x, _PLAIN) or id(x) in self.seen:
            return []
        self.seen.add(id(x))
        if isinstance(x, FunctionType):
            reached = _captured(x)
            self.functions.append((x, x.__code__, reached))
            return reached
        if isinstance(x, MethodType):
            return [x.__self__, x.__func__]
        state = _state(x)
        if state is None:
            return [*x] if isinstance(x, tuple | frozenset) else []
        self.kept[id(x)] = x, state
        if isinstance(x, dict):
            return [*x.values()]
        if isinstance(x, list | deque):
            return [*x]
        return [*state.values()] if isinstance(state, dict) else []

    def is_stale(self) -> bool:
        """Whether anything is not as it was: what functions are and name, and what that holds.

        Generators of random numbers do not count, from which a function that is captured draws
        nothing.
        """
        for f, code, reached in self.functions:
            now = _captured(f)
            if f.__code__ is not code or len(now) != len(reached):
                return True
            if not all(map(_one, now, reached)):
                return True
        return any([not isinstance(x, _DRAWS) for x, _ in self.changed()])

    def changed(self) -> list[tuple[Any, Any]]:
        """What is not as it was, and how it was."""
        return [(x, was) for x, was in self.kept.values() if not _same(was, _state(x))]

    def undo(self) -> list[tuple[Any, Any]]:
        """Put back what was changed."""
        changed = self.changed()
        for x, was in changed:
            _restore(x, was)
        return changed


def refuse_changes(
    changed: list[tuple[Any, Any]], what: str, why: str = "depends on staged values"
) -> None:
    """Refuse what a block changed."""
    if changed:
        x, _ = changed[0]
        raise StagingError(
            f"a {type(x).__name__} was changed in a {what} that {why}: a program cannot change it "
            "when it runs; bind a new value to a variable instead, or write into an array"
        )


def _captured(f: FunctionType) -> list[Any]:
    """What a function reaches: its cells, defaults, and globals that it names.

    Of one that is not the user's, the functions that it holds.
    """
    reached = [contents(c) for c in f.__closure__ or ()]
    if not is_user_code(f.__code__.co_filename):
        return [v for v in reached if callable(v)]
    reached += [*(f.__defaults__ or ()), *(f.__kwdefaults__ or {}).values()]
    space: Any = f.__globals__
    real = space.real if isinstance(space, Namespace) else space
    reached += [real[name] for name in f.__code__.co_names if name in real]
    return [v for v in reached if v is not UNSET]


def _state(x: Any) -> Any:
    """A copy of what may be changed of a thing; None for what cannot be."""
    if isinstance(x, list | deque):
        return [*x]
    if isinstance(x, dict):
        return dict(x)
    if isinstance(x, set | bytearray):
        return x.copy()
    if isinstance(x, np.ndarray):
        return x.copy() if x.flags.writeable and not x.dtype.hasobject else None
    if isinstance(x, _DRAWS):
        return pickle.dumps(x)
    try:
        return dict(vars(x))
    except TypeError:
        return None


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray):
        return bool(a.tobytes() == b.tobytes())
    if type(a) is dict and type(b) is dict:
        return [*a] == [*b] and all([_one(v, b[k]) for k, v in a.items()])
    if type(a) is list:
        return len(a) == len(b) and all(map(_one, a, b))
    return bool(a == b)


def _one(a: Any, b: Any) -> bool:
    """Whether an entry is the same: of states of generators, equal."""
    if a is b:
        return True
    if isinstance(a, Traced) or isinstance(b, Traced) or type(a) is not type(b):
        return False
    return isinstance(a, int | float | str) and bool(a == b)


def _restore(x: Any, was: Any) -> None:
    if isinstance(x, list):
        x[:] = was
    elif isinstance(x, deque):
        x.clear()
        x.extend(was)
    elif isinstance(x, dict | set):
        x.clear()
        x.update(was)
    elif isinstance(x, bytearray):
        x[:] = was
    elif isinstance(x, np.ndarray):
        x[...] = was
    elif isinstance(x, random.Random):
        x.setstate(pickle.loads(was).getstate())
    elif isinstance(x, np.random.Generator):
        x.bit_generator.state = pickle.loads(was).bit_generator.state
    elif isinstance(x, np.random.RandomState):
        x.set_state(pickle.loads(was).get_state())
    else:
        vars(x).clear()
        vars(x).update(was)
