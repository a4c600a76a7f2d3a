"""Containers that hold functions: shallow copies whose writes reach the container they show.

A dispatch table read by copied code is a `DictView` of the user's dict.  Each method that
changes it changes the user's dict, then takes all entries from there again.
"""

import copy
from collections.abc import Callable, Iterable
from operator import is_
from typing import Any

from lineara.python.namespaces import Cells, Replacer, unchanged

LIMIT = 1000  # entries; a container with more is taken to be data and is not looked through


class Taken:
    """The entries that a view took from its original, to see whether those have changed."""

    __slots__ = ("cells", "entries", "overlay", "run", "steady")
    overlay: Replacer

    def __init__(self, overlay: Replacer) -> None:
        self.overlay, self.run = overlay, -1
        self.entries: list[Any] = [self]
        self.steady: bool = True  # they are replaced by the same in each run
        self.cells: Cells = []  # as long as what their functions captured is the same

    def holds(self, now: list[Any]) -> bool:
        """Whether the view is up to date with these entries of the original, in this run."""
        if len(now) != len(self.entries) or not all(map(is_, now, self.entries)):
            return False
        if self.run != self.overlay.run and not (self.steady and unchanged(self.cells)):
            return False
        self.run: int = self.overlay.run
        return True

    def take(self, now: list[Any]) -> None:
        """Remember the entries of the original that the view now shows."""
        self.entries, self.cells, self.run = now, [], self.overlay.run
        self.steady = all([self.overlay.stable(v, self.cells) for v in now])


class ShownAs:
    """Base of classes of our own that `type` says are those of Python."""

    __slots__ = ()
    _lineara_shown: type


class DictView(ShownAs, dict[Any, Any]):
    """A dict whose values, and keys, are seen through the overlay."""

    __slots__ = ("__weakref__", "origin", "overlay", "taken")
    overlay: Replacer
    origin: dict[Any, Any]
    _lineara_shown = dict

    def __init__(self, origin: dict[Any, Any], overlay: Replacer) -> None:
        super().__init__()
        self.origin, self.overlay = origin, overlay
        self.taken: Taken = Taken(overlay)

    def take(self) -> None:
        """Take the entries of the dict that this shows; a loop over an unchanged one goes on."""
        now = [*self.origin, *self.origin.values()]
        if self.taken.holds(now):
            return
        self.taken.take(now)
        replace = self.overlay.replace
        new = {replace(k): replace(v) for k, v in self.origin.items()}
        if list(new) != list(self):
            dict.clear(self)
        dict.update(self, new)

    __class__ = property(lambda self: dict)  # type: ignore[assignment]  # as of the user's

    def __copy__(self) -> dict[Any, Any]:
        return dict(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[Any, Any]:
        return copy.deepcopy(dict(self), memo)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.origin.__reduce_ex__(protocol)


class ListView(ShownAs, list[Any]):
    """A list whose entries are seen through the overlay."""

    __slots__ = ("__weakref__", "origin", "overlay", "taken")
    overlay: Replacer
    origin: list[Any]
    _lineara_shown = list

    def __init__(self, origin: list[Any], overlay: Replacer) -> None:
        super().__init__()
        self.origin, self.overlay = origin, overlay
        self.taken: Taken = Taken(overlay)

    def take(self) -> None:
        """Take the entries of the list that this shows."""
        now = self.origin.copy()
        if not self.taken.holds(now):
            self.taken.take(now)
            list.__setitem__(self, slice(None), [self.overlay.replace(v) for v in now])

    __class__ = property(lambda self: list)  # type: ignore[assignment]  # as of the user's

    def __copy__(self) -> list[Any]:
        return list(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> list[Any]:
        return copy.deepcopy(list(self), memo)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.origin.__reduce_ex__(protocol)


def _through(name: str) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **options: Any) -> Any:
        original = self.overlay.original
        args = tuple(map(original, args))
        options = {key: original(value) for key, value in options.items()}
        result = getattr(self.origin, name)(*args, **options)
        self.take()
        return self if result is self.origin else self.overlay.replace(result)

    method.__name__ = name
    return method


def _write_through(cls: type, names: Iterable[str]) -> None:
    for name in names:
        setattr(cls, name, _through(name))


_write_through(DictView, ("__setitem__", "__delitem__", "__ior__", "clear", "pop", "popitem"))
_write_through(DictView, ("setdefault", "update"))
_write_through(ListView, ("__setitem__", "__delitem__", "__iadd__", "__imul__", "append", "clear"))
_write_through(ListView, ("extend", "insert", "pop", "remove", "reverse", "sort"))
