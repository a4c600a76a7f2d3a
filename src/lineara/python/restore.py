"""Restore: what copied code returned, with the user's own classes and objects in it."""

from collections.abc import Callable
from contextlib import suppress
from operator import is_
from typing import Any

from lineara.facts.hints import Tree
from lineara.python.twins import TwinType, link_of, members


class Restoration:
    """One walk through a result; each object is visited once, and depth does not matter."""

    def __init__(
        self,
        original: Callable[[Any], Any],
        is_plain: Callable[[type], bool],
        is_users: Callable[[type], bool],
    ) -> None:
        self.original: Callable[[Any], Any] = original
        self.is_plain: Callable[[type], bool] = is_plain
        self.is_users: Callable[[type], bool] = is_users
        self.seen: dict[int, Any] = {}
        self.todo: list[Any] = []

    def run(self, result: object) -> Any:
        """The restored result."""
        result = self.fix(result)
        while self.todo:
            self.mend(self.todo.pop())
        return result

    def fix(self, value: Tree) -> Any:
        """What should stand in place of `value`; its inside is mended later."""
        kind = type(value)
        if self.is_plain(kind):
            return value
        if isinstance(value, tuple):
            return self.fix_tuple(value)
        link = link_of(kind)
        if link and not link.twin:
            object.__setattr__(value, "__class__", link.real)
        else:
            value = self.original(value)
        if id(value) not in self.seen and self.is_holder(type(value)):
            self.seen[id(value)] = value
            self.todo.append(value)
        return value

    def is_holder(self, kind: type) -> bool:
        """Whether values of this type may hold something to restore."""
        return kind in (list, dict, set) or isinstance(kind, TwinType) or self.is_users(kind)

    def fix_tuple(self, value: tuple[Any, ...]) -> Any:
        """A tuple, or a namedtuple that may be of a twin, made again if need be."""
        items = [self.fix(item) for item in value]
        kind, link = type(value), link_of(type(value))
        if link is None and all(map(is_, items, value)):
            return value
        return tuple.__new__(link.real if link else kind, items)

    def mend(self, holder: object) -> None:
        """Restore in place what a list, a dict, a set or an object holds."""
        if isinstance(holder, list):
            for i, item in enumerate(holder):
                if (new := self.fix(item)) is not item:
                    holder[i] = new
        elif isinstance(holder, dict):
            self.mend_dict(holder)
        elif isinstance(holder, set):
            items = [(item, self.fix(item)) for item in holder]
            holder.difference_update([old for old, new in items if new is not old])
            holder.update(new for old, new in items if new is not old)
        if hasattr(holder, "__dict__"):
            self.mend_dict(object.__getattribute__(holder, "__dict__"))
        for _, member in members(type(holder)):
            with suppress(AttributeError):  # a slot that was never assigned
                item = member.__get__(holder)
                if (new := self.fix(item)) is not item:
                    member.__set__(holder, new)

    def mend_dict(self, holder: dict[Any, Any]) -> None:
        """Restore the entries; keys are rarely twins, and then the order is kept."""
        items = [(key, self.fix(key), item, self.fix(item)) for key, item in holder.items()]
        if any(old is not new for old, new, _, _ in items):
            holder.clear()
            holder.update((key, item) for _, key, _, item in items)
            return
        for key, _, item, new in items:
            if new is not item:
                holder[key] = new
