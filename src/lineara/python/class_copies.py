"""The classes that get twins, and the views of their objects, kept by the overlay."""

import enum
import functools
import sys
import weakref
from abc import ABCMeta
from collections.abc import Callable, Iterator
from types import FunctionType, MethodType
from typing import Any

from lineara.errors import is_library_file
from lineara.facts.hints import Tree
from lineara.python.container_copies import LIMIT
from lineara.python.function_copies import Recent, is_user_code, is_user_function
from lineara.python.namespaces import Cells, Namespace, Replacer, same, unchanged
from lineara.python.twins import (
    link_of,
    look_again,
    make_twin,
    make_view,
    make_view_class,
    origin_of,
    take,
    twin_in_use,
)

LRU = type(functools.lru_cache(lambda: None))
_HEAP = 1 << 9  # the flag of a class that was written in Python


def parts_of(value: Any) -> tuple[Any, ...] | None:
    """The functions that a wrapper such as `property` is made of; None for anything else."""
    kind = type(value)
    if kind is MethodType:
        return value.__func__, value.__self__
    if kind is functools.partial or kind is functools.partialmethod:
        return value.func, *value.args, *value.keywords.values()
    if kind is staticmethod or kind is classmethod:
        return (value.__func__,)
    if kind is property:
        return value.fget, value.fset, value.fdel
    if kind is functools.cached_property:
        return (value.func,)
    if hasattr(kind, "_self_wrapper"):  # a function that is decorated with wrapt
        return value.__wrapped__, value._self_wrapper
    return (value.__wrapped__,) if kind is LRU else None


class _Twin:
    """The twin of a class, and what it was made from."""

    __slots__ = ("busy", "cells", "run", "seen", "source", "twin", "values", "view", "volatile")
    twin: type
    source: type
    run: int
    busy: bool

    def __init__(self, source: type, twin: type) -> None:
        self.source, self.twin = source, twin
        self.view: type | None = None
        self.seen: dict[str, Any] = {}
        self.values: list[Any] = [self]  # the values of `seen`, compared in one step
        self.volatile: list[str] = []  # names to be taken anew in each run
        self.cells: Cells = []  # what the functions of the others captured
        self.run, self.busy = -1, False


class Classes:
    """The twins of classes that one overlay has made."""

    packages: frozenset[str]
    overlay: Replacer

    def __init__(self, overlay: Replacer, packages: frozenset[str]) -> None:
        self.overlay, self.packages = overlay, packages - {"builtins"}
        self.twins: Recent = Recent(256)
        self.plain: dict[int, weakref.ref[type]] = {}  # classes without a twin
        self.views: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
        self.kept: Recent = Recent(LIMIT)  # the views of this run

    def forget(self) -> None:
        """Look at all classes again, and make new views; a twin that is in use stays the twin."""
        self.twins.clear()
        self.plain.clear()
        self.kept.clear()
        self.views.clear()

    def of(self, cls: type) -> _Twin | None:
        """The twin of `cls`, up to date in this run; None when the class is left alone."""
        plain = self.plain.get(id(cls))
        if plain is not None and plain() is cls:
            return None
        record = self._known(cls)
        if record is not None and record.run == self.overlay.run:
            return record
        with self.overlay.lock:
            record = self._known(cls) or (self._new(cls) if self._wants(cls) else None)
            if record is not None:
                self._refresh(record)
                return record
        key = id(cls)
        self.plain[key] = weakref.ref(cls, lambda _: self.plain.pop(key, None))
        return None

    def viewable(self, cls: type) -> bool:
        """Whether objects of this class have no state but their `__dict__` and their slots."""
        if link_of(cls) or not all(b.__flags__ & _HEAP or b is object for b in cls.__mro__):
            return False
        return self.of(cls) is not None

    def view(self, obj: Tree, watch: Callable[[Any], bool]) -> Any:
        """The view of `obj` in this run; `obj` itself where its state cannot be shared."""
        record = self.of(type(obj))
        assert record is not None, f"{type(obj)} has no twin"
        known = self.views.get(id(obj))
        if known is not None and origin_of(known) is obj:
            look_again(known, watch, self.overlay)
            return known
        try:
            if record.view is None:
                record.view = make_view_class(type(obj), record.twin, self.overlay)
            view = make_view(obj, record.view, self.overlay, watch)
        except (TypeError, AttributeError):
            return obj
        self.views[id(obj)] = self.kept[id(obj)] = view
        return view

    def _known(self, cls: type) -> _Twin | None:
        record = self.twins.get(id(cls))
        return record if record is not None and record.source is cls else None

    def _wants(self, cls: type) -> bool:
        meta = type(cls)
        if not _is_from_user_module(cls):  # the engine makes classes all the time: be quick
            return False
        if link_of(cls) or issubclass(cls, BaseException | type) or issubclass(meta, enum.EnumMeta):
            return False
        if any([_is_copied(f) for f in _functions(cls)]):  # a class statement in copied code
            return False
        known = meta in (type, ABCMeta) or meta.__module__ == "typing"
        if not known and not has_user_code(meta):
            return False  # the metaclass of a library: it may count on being run
        others = [base for base in cls.__mro__ if not _is_from_user_module(base)]
        roots = {base.__module__.partition(".")[0] for base in others}
        return roots.isdisjoint(self.packages) and any(map(self._has_user_code, cls.__mro__))

    def _has_user_code(self, cls: type) -> bool:
        """Whether a class has functions of the user's, also within a library's decorator."""
        return has_user_code(cls) or any(
            [type(v) is FunctionType and self.overlay.needs(v) for v in vars(cls).values()]
        )

    def _new(self, cls: type) -> _Twin | None:
        bases = [self.of(base) for base in cls.__bases__]
        twin = twin_in_use(cls, self.overlay)
        try:
            twin = twin or make_twin(cls, [base.twin for base in bases if base], self.overlay)
        except (TypeError, AttributeError):  # a class that cannot be derived from
            return None
        record = self.twins[id(cls)] = _Twin(cls, twin)
        record.seen = dict(vars(twin))  # each is taken anew
        return record

    def _refresh(self, record: _Twin) -> None:
        if record.busy:
            return
        run, record.busy = self.overlay.run, True
        try:
            for base in record.source.__bases__:
                self.of(base)
            if same(record.values, vars(record.source).values()) and unchanged(record.cells):
                for name in record.volatile:
                    take(record.twin, name)
            else:
                self._take_all(record)
        finally:
            record.busy = False
        record.run = run

    def _take_all(self, record: _Twin) -> None:
        new, stable = dict(vars(record.source)), self.overlay.stable
        if is_from_library(record.source):
            for value in new.values():
                self.overlay.kept.note(value)
        for name in {**record.seen, **new}:
            take(record.twin, name)
        record.cells = []
        record.volatile = [name for name, v in new.items() if not stable(v, record.cells)]
        record.seen, record.values = new, [*new.values()]


def _is_from_user_module(cls: type) -> bool:
    """Whether the class was made in a module of the user's, or in an unknown one."""
    module = sys.modules.get(cls.__module__)
    filename = getattr(module, "__file__", None)
    return not isinstance(filename, str) or is_user_code(filename)


def is_from_library(cls: type) -> bool:
    """Whether the class was made in a module of an installed library."""
    return is_library_file(str(getattr(sys.modules.get(cls.__module__), "__file__", None)))


def has_user_code(cls: type) -> bool:
    """Whether the body of the class has functions of the user's."""
    return any(map(is_user_function, _functions(cls)))


def _functions(cls: type) -> Iterator[Any]:
    """The values that the body of a class binds, with the functions of properties."""
    return (part for value in vars(cls).values() for part in parts_of(value) or (value,))


def _is_copied(f: object) -> bool:
    return type(f) is FunctionType and type(f.__globals__) is Namespace
