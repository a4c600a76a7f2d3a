"""Lazy dicts: their storage is the memo, so a hit is a plain read and `__missing__` lifts."""

from collections import OrderedDict, defaultdict
from collections.abc import ItemsView, Iterator, KeysView, ValuesView
from typing import Any, NoReturn

from lineara.containers.proxy import (
    UNREAD,
    Back,
    Front,
    State,
    is_lazy,
    open_attributes,
    plain,
    through,
)

_NO_DEFAULT = object()


class _Items(ItemsView):
    def __reversed__(self) -> Iterator[tuple[Any, Any]]:
        return ((key, self._mapping[key]) for key in reversed(self._mapping))


class _Values(ValuesView):
    def __reversed__(self) -> Iterator[Any]:
        return (self._mapping[key] for key in reversed(self._mapping))


class _Keys(KeysView):
    def __reversed__(self) -> Iterator[Any]:
        return reversed(self._mapping)


class DictFront(Front):
    """A dict whose storage is the memo: a hit is a plain `dict` read, a miss lifts.

    `_lineara.keys` has the keys in their order; of a dict it is the source itself, until a key
    is added or deleted.  An entry `UNREAD` keeps C code from taking it for an empty dict.
    """

    __slots__ = ()

    @classmethod
    def _lineara_open(cls: type, state: State) -> Any:
        self: Any = cls._lineara_kind.root.__new__(cls)
        object.__setattr__(self, "_lineara", state)
        source = state.source
        state.keys = source if type(source) is dict else dict.fromkeys(_keys_of(source, state))
        if cls._lineara_kind.has_factory:
            self.default_factory = source.default_factory  # pyright: ignore  # a defaultdict
        if state.keys:
            dict.__setitem__(self, UNREAD, UNREAD)
        if state.kind.has_dict:
            open_attributes(self, state)
        return self

    def __missing__(self, key: int | str) -> Any:
        state = self._lineara
        if key in state.keys:
            source = state.source
            lifted = state.lift(key, source[key]) if type(source) is dict else state.child(key)
            dict.__setitem__(self, key, lifted)  # pyright: ignore[reportArgumentType]  # it is a dict
            return lifted
        if hasattr(state.kind.cls, "__missing__"):
            return state.kind.cls.__missing__(self, key)
        raise KeyError(key)

    def __or__(self: Any, other: dict[Any, Any]) -> Any:
        """As the user's class has it; where it declines, never the `|` of dict on the storage."""
        result = super().__or__(other)  # pyright: ignore  # the next class is a dict
        if result is NotImplemented and isinstance(other, dict):
            return plain(self) | other
        return result


def _keys_of(source: Any, state: State) -> Any:
    return source._lineara.keys if is_lazy(source) else state.kind.root.__iter__(source)


class LazyDict(Back, dict):
    """The methods of dict, reading through `__getitem__`."""

    __slots__ = ()

    def _lineara_keys(self) -> list[Any]:
        return list(self._lineara.keys)

    def _lineara_child(self, key: str) -> Any:
        return dict.__getitem__(self, key)

    def _lineara_written(self) -> bool:
        """Whether it holds other things than were read."""
        state = self._lineara
        held = [v is UNREAD or state.memo.get(k) is v for k, v in dict.items(self)]
        return not all(held) or list(state.keys) != list(_keys_of(state.source, state))

    def _own_keys(self) -> dict[Any, Any]:
        state = self._lineara
        if state.keys is state.source:
            state.keys = dict.fromkeys(state.source)
        return state.keys

    def __getattr__(self, name: str) -> Any:
        if name != "_lineara" and self._lineara.kind.has_dict and vars(self) is self:
            return self[name] if name in self else _no_attribute(self, name)
        return _no_attribute(self, name)

    def __setitem__(self, key: object, value: Any) -> None:
        if key not in self._lineara.keys:
            self._own_keys()[key] = None
        dict.__setitem__(self, key, value)

    def __delitem__(self, key: str) -> None:
        if key not in self._lineara.keys:
            raise KeyError(key)
        del self._own_keys()[key]
        dict.pop(self, key, None)

    def __contains__(self, key: object) -> bool:
        return key in self._lineara.keys

    def __iter__(self) -> Iterator[Any]:
        state = self._lineara
        size = len(state.keys)
        for key in state.keys:
            yield key
            if len(state.keys) != size:  # the state may be another dict now
                raise RuntimeError("dictionary changed size during iteration")

    def __reversed__(self) -> Iterator[Any]:
        return reversed(self._lineara.keys)

    def __len__(self) -> int:
        return len(self._lineara.keys)

    def keys(self) -> Any:
        """The keys, live."""
        return _Keys(self)

    def values(self) -> Any:
        """The values, live, each read when it is reached."""
        return _Values(self)

    def items(self) -> Any:
        """The items, live, each read when it is reached."""
        return _Items(self)

    def get(self, key: str, default: object = None) -> Any:
        """`self[key]`, or the default."""
        return self[key] if key in self else default  # noqa: SIM401  # this is get

    def pop(self, key: str, default: Any = _NO_DEFAULT) -> Any:
        """`self[key]`, which goes; or the default."""
        if key not in self and default is not _NO_DEFAULT:
            return default
        if key not in self:
            raise KeyError(key)
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[Any, Any]:
        """The last item, which goes."""
        if not self:
            raise KeyError("popitem(): dictionary is empty")
        key = next(reversed(self))
        return key, self.pop(key)

    def setdefault(self, key: str, default: float | None = None) -> Any:
        """`self[key]`, set to the default if it is missing."""
        if key not in self:
            self[key] = default
        return self[key]

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Set the items of another mapping."""
        for key, value in dict(*args, **kwargs).items():  # a proxy among args is read by keys
            self[key] = value

    def clear(self) -> None:
        """Remove everything."""
        self._lineara.keys = {}
        dict.clear(self)

    def copy(self) -> Any:
        """A plain copy."""
        return plain(self)

    __hash__ = None  # pyright: ignore  # as dict
    __eq__ = through(dict, "__eq__")
    __ne__ = through(dict, "__ne__")

    def __or__(self, other: dict[Any, Any]) -> Any:
        return plain(self) | other if isinstance(other, dict) else NotImplemented

    def __ror__(self, other: object) -> Any:
        return other | dict(self) if isinstance(other, dict) else NotImplemented

    def __ior__(self, other: object) -> Any:
        self.update(other)
        return self

    def __repr__(self) -> str:
        return repr(plain(self))


def _no_attribute(self: Any, name: str) -> NoReturn:
    raise AttributeError(f"{self.__class__.__name__!r} object has no attribute {name!r}")


class LazyOrderedDict(LazyDict, OrderedDict):
    """What OrderedDict adds to dict."""

    __slots__ = ()

    def popitem(self, last: bool = True) -> tuple[Any, Any]:
        """The last item, or the first, which goes."""
        if not self:
            raise KeyError("dictionary is empty")
        key = next(reversed(self) if last else iter(self))
        return key, self.pop(key)

    def move_to_end(self, key: str, last: bool = True) -> None:
        """Move a key to the end, or to the beginning."""
        keys = self._own_keys()
        del keys[key]
        self._lineara.keys = {**keys, key: None} if last else {key: None, **keys}

    def __eq__(self, other: object) -> Any:
        return plain(self) == (plain(other) if is_lazy(other) else other)

    def __ne__(self, other: object) -> bool:
        return not self == other


class LazyDefaultDict(LazyDict, defaultdict):
    """A defaultdict, whose missing keys are made by `DictFront.__missing__`."""

    __slots__ = ()
