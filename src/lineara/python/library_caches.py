"""What a library keeps from call to call: its caches and registries hold no traced values after.

A library may store what it computed: in a dict of its module, in an attribute of an object that
lives there, in a global.  When the last differentiation has ended such an entry is of no use, and a
plain call that finds it would stop.  So entries that hold traced values are taken out again, and
attributes and globals get the value back that they had.

A large dict or list is looked through when its length has changed.  Whether anything has changed
at all is asked of all of them together and without calls of Python functions: most differentiations
have nothing to do with the libraries that others have used.
"""

from collections.abc import Callable, Iterator
from itertools import chain
from operator import is_
from typing import Any

from lineara.facts.hints import Leaf, Tree

_SMALL = 32  # entries; of a container with fewer they are compared, of a larger one counted
_MANY = 5000  # of them; caches that are met later are left alone
_DEPTH = 3  # containers and objects within each other
_CONTAINERS = (dict, list, set)


class Kept:
    """The mutable things that copied code of libraries has met, in modules, classes and cells."""

    def __init__(
        self, is_traced: Callable[[Any], bool], is_followed: Callable[[type], bool]
    ) -> None:
        self.is_traced: Callable[[Any], bool] = is_traced
        self.is_followed: Callable[[type], bool] = is_followed
        self.holders: dict[int, tuple[Any, Any]] = {}  # each, and what it was like
        self.assigned: list[tuple[dict[str, Any], str, Any]] = []  # globals, and what they were
        self.snapshot: _Snapshot | None = None  # of the holders, where it was taken

    def note(self, value: Leaf, depth: int = _DEPTH) -> None:
        """Look through this container, and what it holds, when all differentiations have ended."""
        if depth == 0 or id(value) in self.holders or len(self.holders) > _MANY:
            return
        self.snapshot = None
        if isinstance(value, _CONTAINERS):
            if len(value) < 1000:
                self.holders[id(value)] = value, _extent(value)
                for v in _entries(value):
                    self.note(v, depth - 1)
        elif self._is_object(value):
            self.holders[id(value)] = value, dict(vars(value))
            for v in list(vars(value).values()):
                self.note(v, depth - 1)

    def _is_object(self, value: Tree) -> bool:
        return self.is_followed(type(value)) and type(getattr(value, "__dict__", None)) is dict

    def assign(self, space: dict[str, Any], name: str) -> None:
        """Remember the value of a global that is about to be assigned."""
        self.assigned.append((space, name, space.get(name, self)))

    def tidy(self) -> None:
        """No differentiation is open: take out what was traced."""
        if self.snapshot is None or not self.snapshot.holds():
            for holder, was in list(self.holders.values()):
                if type(was) is dict:
                    self._tidy_object(holder, was)
                elif not _is_as(holder, was):
                    self._tidy_container(holder)
                    self.holders[id(holder)] = holder, _extent(holder)
            self.snapshot = _Snapshot(self.holders)
        assigned, self.assigned = self.assigned, []
        for space, name, was in reversed(assigned):
            if self._holds(space.get(name)):
                space.pop(name) if was is self else space.update({name: was})

    def _tidy_object(self, holder: object, was: dict[str, Any]) -> None:
        state = vars(holder)
        if len(state) == len(was) and all(map(is_, was.values(), state.values())):
            return
        changed = [n for n, v in state.items() if was.get(n, self) is not v]
        for name in changed:
            if not self._holds(state[name]):
                was[name] = state[name]
                self.note(state[name])
            elif name in was:
                state[name] = was[name]
            else:
                del state[name]

    def _tidy_container(self, holder: dict[Any, Any] | list[Any]) -> None:
        if not any(map(self._holds, [*holder, *_entries(holder)])):
            for v in _entries(holder):
                self.note(v, _DEPTH - 1)
            return
        if isinstance(holder, dict):
            kept = [(k, v) for k, v in holder.items() if not (self._holds(k) or self._holds(v))]
        else:
            kept = [v for v in holder if not self._holds(v)]
        holder.clear()
        holder.extend(kept) if isinstance(holder, list) else holder.update(kept)

    def _holds(self, value: object, depth: int = _DEPTH) -> bool:
        """Whether an entry holds a traced value."""
        if self.is_traced(value):
            return True
        if depth == 0:
            return False
        if isinstance(value, dict):
            parts: Any = [*value, *value.values()]
        elif isinstance(value, tuple | list | set):
            parts = value
        else:
            parts = vars(value).values() if self._is_object(value) else ()
        return any(self._holds(v, depth - 1) for v in list(parts))


class _Snapshot:
    """The state of all holders: their lengths, and the entries of objects and small containers."""

    lengths: list[int]
    entries: list[Any]

    def __init__(self, holders: dict[int, tuple[Any, Any]]) -> None:
        self.all: tuple[list[Any], ...] = _by_kind([holder for holder, _ in holders.values()])
        self.small: tuple[list[Any], ...] = _by_kind(
            [holder for holder, was in holders.values() if type(was) is not int]
        )
        self.lengths, self.entries = [*self._lengths()], [*self._entries()]

    def _lengths(self) -> Iterator[int]:
        objects, dicts, lists, sets = self.all
        spaces = map(dict.__len__, chain(map(vars, objects), dicts))
        return chain(spaces, map(list.__len__, lists), map(set.__len__, sets))

    def _entries(self) -> Iterator[Any]:
        objects, dicts, lists, sets = self.small
        spaces = map(dict.values, chain(map(vars, objects), dicts))
        return chain.from_iterable(
            chain(spaces, map(list.__iter__, lists), map(set.__iter__, sets))
        )

    def holds(self) -> bool:
        """Whether nothing has changed: where the lengths are the same, entries lie as they lay."""
        same = [*self._lengths()] == self.lengths
        return same and all(map(is_, self._entries(), self.entries))


def _by_kind(holders: list[Any]) -> tuple[list[Any], ...]:
    """Objects, dicts, lists and sets."""
    containers = [[h for h in holders if isinstance(h, kind)] for kind in _CONTAINERS]
    return ([h for h in holders if not isinstance(h, _CONTAINERS)], *containers)


def _extent(container: Any) -> Any:
    """A fingerprint of a container, by which a later change is seen."""
    return _entries(container) if len(container) < _SMALL else len(container)


def _is_as(container: dict[Any, Any] | list[Any], was: Any) -> bool:
    """Whether a container still has this fingerprint."""
    if type(was) is int:
        return len(container) == was
    return len(container) == len(was) and all(map(is_, _entries(container), was))


def _entries(container: Any) -> list[Any]:
    return [*container.values()] if isinstance(container, dict) else [*container]
