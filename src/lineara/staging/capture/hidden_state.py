"""State of objects that do not show it in attributes: what they give next, or hold, or lead to.

hidden(x)     what can be compared later, or None for an object that is looked at otherwise
"""

import array
import io
import weakref
from collections.abc import Callable
from contextvars import ContextVar
from types import GeneratorType, MappingProxyType
from typing import Any, NamedTuple

from lineara.facts.hints import Leaf


class Hidden(NamedTuple):
    """The state of an object."""

    state: list[Any]
    parts: list[Any]  # what it leads to
    restore: Callable[[], object] | None  # None for what cannot be put back


def hidden(x: Leaf) -> Hidden | None:
    """The state of an object that hides it; None of any other."""
    kind = type(x)
    if kind in _HIDDEN:
        return _HIDDEN[kind](x)
    if isinstance(x, io.IOBase):
        return Hidden([_place(x)], [], None)
    if hasattr(kind, "__next__") and not hasattr(x, "__dict__"):
        return _iterator(x)
    return None


def _of_array(x: array.array) -> Hidden:
    was = array.array(x.typecode, x)

    def restore() -> None:
        x[:] = was

    return Hidden([x.typecode, was.tobytes()], [], restore)


def _of_memory(x: memoryview) -> Hidden:
    return Hidden([x.tobytes()], [], lambda: None)


def _of_text(x: io.StringIO) -> Hidden:
    if x.closed:
        return Hidden([], [], lambda: None)
    value, place = x.getvalue(), x.tell()

    def restore() -> None:
        x.seek(0)
        x.truncate()
        x.write(value)
        x.seek(place)

    return Hidden([value, place], [], restore)


def _of_variable(x: ContextVar[Any]) -> Hidden:
    unset = object()
    value = x.get(unset)
    if value is unset:
        return Hidden([], [], lambda: None)
    return Hidden([value], [value], lambda: x.set(value))


def _of_mapping(x: MappingProxyType[Any, Any]) -> Hidden:
    entries = [*x.keys(), *x.values()]
    return Hidden(entries, entries, lambda: None)  # what it shows is looked at where it is


def _of_reference(x: weakref.ref[Any]) -> Hidden:
    target = x()
    return Hidden([target], [target], lambda: None)


def _of_generator(x: GeneratorType) -> Hidden:
    local = [] if x.gi_frame is None else [*x.gi_frame.f_locals.values()]
    place = None if x.gi_frame is None else x.gi_frame.f_lasti
    return Hidden([place, *local], local, None)


def _iterator(x: Leaf) -> Hidden:
    try:
        _, *made_from = x.__reduce__()
    except TypeError:  # one of itertools, whose text may tell where it is
        return Hidden([repr(x)], [], None)
    parts = [v for part in made_from for v in (part if type(part) is tuple else (part,))]
    return Hidden(parts, parts, None)


def _place(x: io.IOBase) -> Any:
    """Where a file is read or written next."""
    try:
        return x.tell()
    except (OSError, ValueError) as e:
        return str(e)


_HIDDEN: dict[type, Callable[[Any], Hidden]] = {
    array.array: _of_array,
    memoryview: _of_memory,
    io.StringIO: _of_text,
    io.BytesIO: _of_text,
    ContextVar: _of_variable,
    MappingProxyType: _of_mapping,
    weakref.ref: _of_reference,
    GeneratorType: _of_generator,
}

__all__ = ["Hidden", "hidden"]
