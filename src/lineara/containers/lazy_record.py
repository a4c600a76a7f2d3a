"""Lazy records: objects whose `__dict__` is the memo, so a hit is a plain attribute read."""

import functools
import types
from typing import Any

from lineara.containers.proxy import Back, Front, State, plain
from lineara.facts.hints import Tree
from lineara.trees.kinds import Proxy, RecordKind


class _WithDict:
    pass


held_by: Any = vars(_WithDict)[
    "__dict__"
].__get__  # the real __dict__: what has been read or written
_CACHED = functools.cached_property
_EMPTY: frozenset[str] = frozenset()


class RecordFront(Front):
    """A record that lifts a field at the first read; `_lineara.keys` are the deleted ones."""

    __slots__ = ()
    _lineara_shadowable: frozenset[str]  # class attributes that one of an instance would hide

    @classmethod
    def _lineara_open(cls: Any, state: State) -> Any:
        kind, source = cls._lineara_kind, state.source
        if _is_empty(kind, source):
            return source  # nothing to lift, and `is` stays true
        self = kind.root.__new__(cls)
        object.__setattr__(self, "_lineara", state)
        state.keys = _EMPTY
        if kind.hidden:
            for slot, value in kind.aux(source):
                slot.__set__(self, value)
        if cls._lineara_shadowable:
            _read_hiding(self, source, cls._lineara_shadowable)
        return self

    @staticmethod
    def _lineara_names(kind: RecordKind) -> dict[str, Any]:
        merged = {k: v for base in reversed(kind.cls.__mro__) for k, v in vars(base).items()}
        public = {k: v for k, v in merged.items() if not (k.startswith("__") and k.endswith("__"))}
        known = set(kind.known) | {k for k, v in public.items() if not _binds(v)}
        functions = {k for k, v in public.items() if _binds(v) and not _is_data(v)}
        return {
            **{name: _Field(name) for name in known - kind.recomputed},
            "__dict__": property(RecordFront._lineara_dict),
            "_lineara_shadowable": frozenset(functions - known - kind.recomputed),
        }

    def _lineara_has(self, name: str) -> bool:
        state = self._lineara
        if name in held_by(self):
            return name not in self._lineara_kind.recomputed
        return name not in state.keys and self._lineara_kind.has(state.source, name)

    def _lineara_keys(self) -> list[str]:
        state, kind = self._lineara, self._lineara_kind
        names = dict.fromkeys(kind.keys(state.source))
        names.update(dict.fromkeys(held_by(self)))
        return [name for name in names if self._lineara_has(name)]

    def _lineara_child(self, name: str) -> Any:
        held = held_by(self)
        if name not in held:
            held[name] = self._lineara.child(name)
        return held[name]

    def __getattr__(self, name: str) -> Any:
        if name == "_lineara":
            raise AttributeError(name)
        if self._lineara_has(name):
            return self._lineara_child(name)
        cls = self._lineara_kind.cls
        if hasattr(cls, "__getattr__"):
            return cls.__getattr__(self, name)
        raise AttributeError(f"{cls.__name__!r} object has no attribute {name!r}")

    def _lineara_dict(self) -> dict[str, Any]:
        """What `vars` gives: every field, read."""
        for name in self._lineara_keys():
            self._lineara_child(name)
        return held_by(self)


class LazyRecord(Back, _WithDict):
    """What comes before object."""

    def _lineara_written(self) -> bool:
        """Whether a field is another one than was read; what is cached counts as read."""
        state, cls = self._lineara, self._lineara.kind.cls
        held = [
            state.memo.get(name) is v or isinstance(getattr(cls, name, None), _CACHED)
            for name, v in held_by(self).items()
        ]
        return not all(held) or bool(state.keys)

    def __delattr__(self, name: str) -> None:
        getattr(self, name)
        super().__delattr__(name)
        self._lineara.keys |= {name}


class LazyNamespace(LazyRecord, types.SimpleNamespace):
    """SimpleNamespace, whose C methods would see only what has been read."""

    __hash__ = None  # pyright: ignore  # as SimpleNamespace

    def __eq__(self, other: object) -> Any:
        return plain(self) == (plain(other) if isinstance(other, LazyNamespace) else other)

    def __repr__(self) -> str:
        return repr(plain(self))

    def __replace__(self, /, **changes: Any) -> Any:
        new = plain(self)
        vars(new).update(changes)
        return new


def _is_empty(kind: RecordKind, source: object) -> bool:
    if kind.slots or isinstance(source, Proxy):
        return not kind.keys(source)
    return not (kind.has_dict and vars(source))


class Cached(functools.cached_property):
    """A cached property of a proxy, which keeps its value without reading every field."""

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        if instance is None:
            return self
        held = held_by(instance)
        if self.attrname not in held:
            held[self.attrname] = self.func(instance)
        return held[self.attrname]


def _read_hiding(self: Any, source: Tree, names: frozenset[str]) -> None:
    """Read the fields that hide a function of the class: no descriptor may stand in its place."""
    held = {} if isinstance(source, Proxy) or not hasattr(source, "__dict__") else vars(source)
    for name in held.keys() & names:
        self._lineara_child(name)


class _Field:
    """A field that the class knows: a slot, a dataclass field, one with a default in the class."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, proxy: Any, cls: Any = None) -> Any:
        if proxy is not None:
            state = proxy._lineara
            if self.name not in state.keys and state.kind.has(state.source, self.name):
                held_by(proxy)[self.name] = lifted = state.child(self.name)
                return lifted
        plain_class = cls._lineara_kind.cls
        if proxy is None or self.name not in proxy._lineara_kind.slots:
            return getattr(plain_class, self.name)
        raise AttributeError(f"{plain_class.__name__!r} object has no attribute {self.name!r}")


def _binds(attribute: object) -> bool:
    return hasattr(type(attribute), "__get__")


def _is_data(attribute: object) -> bool:
    return hasattr(type(attribute), "__set__") or hasattr(type(attribute), "__delete__")
