"""Lazy lists and tuples: their storage holds `UNREAD` where nothing has been read."""

import functools
import opcode
import operator
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

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
from lineara.facts.hints import Leaf, Value


class ListFront(Front):
    """A list whose storage is the memo: what has not been read is `UNREAD`."""

    __slots__ = ()

    @classmethod
    def _lineara_open(cls: Any, state: State) -> Any:
        self = list.__new__(cls)
        object.__setattr__(self, "_lineara", state)
        list.append(self, UNREAD)
        list.__imul__(self, list.__len__(state.source))
        if state.kind.has_dict:
            open_attributes(self, state)
        return self


_set = list.__setitem__


class LazyList(Back, list):
    """The methods of list, reading through the first read.

    A write that moves elements (insert, sort, deletion) reads all of them first.
    """

    __slots__ = ()

    def _lineara_child(self, i: int) -> Any:
        return LazyList.__getitem__(self, i)

    def _read(self, i: int) -> Any:
        state = self._lineara
        source = state.source
        lifted = state.lift(i, source[i]) if type(source) is list else state.child(i)
        _set(self, i, lifted)
        return lifted

    def _lineara_written(self) -> bool:
        """Whether it holds other things than were read."""
        memo, items = self._lineara.memo, list(list.__iter__(self))
        read = all([v is UNREAD or memo.get(i) is v for i, v in enumerate(items)])
        return not read or len(items) != list.__len__(self._lineara.source)

    def _read_all(self) -> None:
        for _ in LazyList.__iter__(self):
            pass

    def __getitem__(self, i: Any) -> Any:
        value = list.__getitem__(self, i)
        if value is UNREAD:
            return self._read(i if type(i) is int and i >= 0 else range(list.__len__(self))[i])
        if type(i) is slice:
            return [LazyList.__getitem__(self, j) for j in range(*i.indices(list.__len__(self)))]
        return value

    def __iter__(self) -> Iterator[Any]:
        for i, value in enumerate(list.__iter__(self)):
            yield value if value is not UNREAD else self._read(i)

    def __reversed__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self) - 1, -1, -1))

    def __contains__(self, value: object) -> bool:
        return any(x is value or x == value for x in self)

    def pop(self, i: Any = -1) -> Any:
        """The last element, or another, which goes."""
        if operator.index(i) not in (-1, len(self) - 1):
            self._read_all()
        elif self:
            LazyList.__getitem__(self, -1)
        return list.pop(self, i)

    def __setitem__(self, i: Any, value: Any) -> None:
        if type(i) is slice:
            self._read_all()
            value = list(value)
        list.__setitem__(self, i, value)

    def extend(self, values: Iterable[Any]) -> None:
        """Append each of the values."""
        list.extend(self, list(values))

    def __iadd__(self, values: Iterable[Any]) -> Any:
        self.extend(values)
        return self

    def __imul__(self, n: Any) -> Any:
        self._read_all()
        list.__imul__(self, n)
        return self

    def __add__(self, other: Any) -> Any:
        return list(self) + (list(other) if isinstance(other, list) else other)

    def __radd__(self, other: list[Any]) -> Any:
        if not isinstance(other, list):
            return NotImplemented
        if _is_in_place(sys._getframe(1)):
            other.extend(self)
            return other
        return other + list(self)

    def copy(self) -> Any:
        """A plain copy."""
        return list(self)

    def __repr__(self) -> str:
        return repr(list(self))

    __hash__ = None  # pyright: ignore  # as list


_IN_PLACE_ADD = bytes([opcode.opmap["BINARY_OP"], 13])  # 13 is NB_INPLACE_ADD


def _is_in_place(frame: types.FrameType) -> bool:
    """Whether the frame runs `a += b`: Python asks `b.__radd__` before it extends a list `a`."""
    return frame.f_code.co_code[frame.f_lasti :][:2] == _IN_PLACE_ADD


def _after_reading(name: str) -> Callable[..., Any]:
    function = getattr(list, name)

    @functools.wraps(function)
    def method(self: LazyList, *args: Any, **kwargs: Any) -> Any:
        self._read_all()
        return function(self, *args, **kwargs)

    return method


_ON_A_COPY = ("index", "count", "__mul__", "__rmul__")
_COMPARISONS = ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__")

for _name in ("insert", "remove", "reverse", "sort", "__delitem__"):
    setattr(LazyList, _name, _after_reading(_name))
for _name in (*_ON_A_COPY, *_COMPARISONS):
    setattr(LazyList, _name, through(list, _name))


class _TupleWithDict(tuple):
    """A tuple cannot have slots, so a lazy one keeps its state in its `__dict__`."""


class TupleFront(Front):
    """A tuple whose storage is all `UNREAD`; the memo is beside it."""

    __slots__ = ()

    @classmethod
    def _lineara_open(cls: type, state: State) -> Any:
        self = tuple.__new__(cls, _storage(state))
        object.__setattr__(self, "_lineara", state)
        if state.kind.has_dict:
            open_attributes(self, state)
        return self

    @staticmethod
    def _lineara_names(kind: Any) -> dict[str, Any]:
        """What `NamedTuple` writes into the user's class itself."""
        if not kind.fields:
            return {}
        names: dict[str, Any] = {field: _Item(i) for i, field in enumerate(kind.fields)}
        names["_make"] = property(lambda self: self.__class__._make)  # for _replace
        if kind.cls.__repr__.__module__ in ("collections", "typing"):  # the generated __repr__
            names["__repr__"] = LazyTuple.__repr__
        return names


_UNREAD = (UNREAD,)
_INERT = frozenset((int, str, bool, bytes, type(None)))


def _storage(state: State) -> Iterable[Any]:
    """What C code sees: nothing, but for shapes, axes and words, which it reads behind our back."""
    source = state.source
    raws = source if type(source) is tuple else tuple(tuple.__iter__(source))
    for raw in raws:
        if type(raw) is float or type(raw) not in _INERT:
            return _UNREAD * len(raws)
    return [state.child(i) for i in range(len(raws))]


class LazyTuple(Back, _TupleWithDict):
    """The methods of tuple, reading through the memo."""

    def _lineara_child(self, i: int) -> Any:
        return LazyTuple.__getitem__(self, i)

    def __getitem__(self, i: Any) -> Any:
        if type(i) is slice:
            return tuple([LazyTuple.__getitem__(self, j) for j in _indices(self, i)])
        state = self._lineara
        if type(i) is not int or i < 0:
            i = range(tuple.__len__(self))[i]
        return state.memo[i] if i in state.memo else state.child(i)

    def __iter__(self) -> Iterator[Any]:
        state = self._lineara
        memo, source = state.memo, state.source
        for i, raw in enumerate(source if type(source) is tuple else _raw_items(source)):
            yield memo[i] if i in memo else state.lift(i, raw)

    def __contains__(self, value: Leaf) -> bool:
        return any(x is value or x == value for x in self)

    def __add__(self, other: Any) -> Any:
        return tuple(self) + (tuple(other) if isinstance(other, tuple) else other)

    def __radd__(self, other: tuple[Any, ...]) -> Any:
        return other + tuple(self) if isinstance(other, tuple) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(plain(self))

    def __copy__(self) -> Any:
        return self

    def __setattr__(self, name: str, value: Value) -> None:
        if not self._lineara.kind.has_dict:
            raise AttributeError("can't set attribute")
        super().__setattr__(name, value)


for _name in (*_ON_A_COPY, *_COMPARISONS):
    setattr(LazyTuple, _name, through(tuple, _name))


def _raw_items(source: Any) -> Iterator[Any]:
    return LazyTuple.__iter__(source) if is_lazy(source) else tuple.__iter__(source)


def _indices(x: tuple[Any, ...], part: slice) -> range:
    return range(*part.indices(tuple.__len__(x)))


class _Item:
    """A field of a NamedTuple."""

    def __init__(self, i: int) -> None:
        self.i = i

    def __get__(self, proxy: Any, cls: type | None = None) -> Any:
        return self if proxy is None else LazyTuple.__getitem__(proxy, self.i)
