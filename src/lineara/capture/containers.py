"""Containers that hold functions: shallow copies whose writes reach the container they show.

A dispatch table read by copied code is a `DictView` of the user's dict.  Each method that
changes it changes the user's dict, then takes all entries from there again.
"""

from collections.abc import Callable, Iterable
from operator import is_
from typing import Any

from lineara.capture.namespaces import Replacer

LIMIT = 1000  # entries; a container with more is taken to be data and is not looked through


class DictView(dict[Any, Any]):
    """A dict whose values, and keys, are seen through the overlay."""

    __slots__ = ("__weakref__", "origin", "overlay", "taken")

    def __init__(self, origin: dict[Any, Any], overlay: Replacer) -> None:
        super().__init__()
        self.origin, self.overlay = origin, overlay
        self.taken: list[Any] = [self]  # the entries of the origin that were replaced

    def take(self) -> None:
        """Take the entries of the dict that this shows; a loop over an unchanged one goes on."""
        now = [*self.origin, *self.origin.values()]
        if len(now) == len(self.taken) and all(map(is_, now, self.taken)):
            return
        self.taken, replace = now, self.overlay.replace
        new = {replace(k): replace(v) for k, v in self.origin.items()}
        if list(new) != list(self):
            dict.clear(self)
        dict.update(self, new)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.origin.__reduce_ex__(protocol)


class ListView(list[Any]):
    """A list whose entries are seen through the overlay."""

    __slots__ = ("__weakref__", "origin", "overlay", "taken")

    def __init__(self, origin: list[Any], overlay: Replacer) -> None:
        super().__init__()
        self.origin, self.overlay = origin, overlay
        self.taken: list[Any] = [self]

    def take(self) -> None:
        """Take the entries of the list that this shows."""
        now = self.origin.copy()
        if len(now) != len(self.taken) or not all(map(is_, now, self.taken)):
            self.taken = now
            list.__setitem__(self, slice(None), [self.overlay.replace(v) for v in now])

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
