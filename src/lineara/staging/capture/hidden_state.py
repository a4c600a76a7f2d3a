"""State of objects that do not show it in attributes: what they give next, or hold, or lead to.

hidden(x)     what can be compared later, or None for an object that is looked at otherwise
opaque(x)     the same of an object whose class is compiled code
"""

import array
import io
import pickle
import sys
import weakref
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from types import GeneratorType, GetSetDescriptorType, MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from lineara.facts.hints import Leaf


class Hidden(NamedTuple):
    """The state of an object."""

    state: list[Any]
    parts: list[Any]  # what it leads to
    restore: Callable[[], object] | None  # None for what cannot be put back
    goes_on: bool = False  # whether it gives something else each time
    is_unseen: bool = False  # whether it does not tell what it holds


def hidden(x: Leaf) -> Hidden | None:
    """The state of an object that hides it; None of any other."""
    kind = type(x)
    if kind in _HIDDEN:
        return _HIDDEN[kind](x)
    if isinstance(x, weakref.ref):
        return _of_reference(x)
    if isinstance(x, io.IOBase):
        return Hidden([_place(x)], [], None, True)
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
    return Hidden([place, *local], local, None, True)


def _iterator(x: Leaf) -> Hidden:
    try:
        _, *made_from = x.__reduce__()
    except TypeError:  # one of itertools, whose text may tell where it is
        said = repr(x)
        return Hidden([said], [], None, True, " at 0x" in said)
    parts = [v for part in made_from for v in (part if type(part) is tuple else (part,))]
    return Hidden(parts, parts, None, True)


def _of_flat(x: np.flatiter) -> Hidden:
    return Hidden([x.index], [x.base], None, True)


def opaque(x: Leaf, attributes: Mapping[str, Leaf] | None) -> Hidden:
    """The state of an object of compiled code, as it would be stored or sent."""
    parts = [*(attributes or {}).values()]
    try:
        return Hidden([pickle.dumps(x)], parts, None)
    except Exception:  # whatever it says
        return Hidden([], parts, None, False, True)


class _Compiled(weakref.WeakKeyDictionary[type, bool]):
    """Whether the objects of classes hold something that compiled code alone can reach."""

    def of(self, c: type) -> bool:
        """Whether an object of that class, which is not Python's or NumPy's, does."""
        known = self.get(c)
        if known is None:
            compiles = c.__module__.partition(".")[0] in ("llvmlite", "numba")  # and holds no data
            known = self[c] = not compiles and any(map(_has_fields, c.__mro__))
        return known


is_compiled: Callable[[type], bool] = _Compiled().of


def _has_fields(c: type) -> bool:
    if c.__module__ == "_ctypes":
        return True
    of_python = ("__dict__", "__weakref__")
    names = [n for n, v in vars(c).items() if isinstance(v, GetSetDescriptorType)]
    return not is_pythons(c) and any([n not in of_python for n in names])


def is_pythons(c: type) -> bool:
    """Whether a class is of Python's library or of NumPy, whose objects are known."""
    package = str(c.__module__).partition(".")[0]
    return package in sys.stdlib_module_names or package == "numpy"


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
    np.flatiter: _of_flat,
    GeneratorType: _of_generator,
}

__all__ = ["Hidden", "hidden", "is_compiled", "is_pythons", "opaque"]
