"""Builtins that must know of twins: `isinstance`, `issubclass`, `type`, `super`, `globals`.

What writes functions by their names and finds them again: `pickle`.  And `locals`, where copied
code has no dict of its local names.
"""

import builtins
import functools
import inspect
import pickle
import sys
import types
from collections.abc import Callable
from types import FunctionType
from typing import Any, cast

from lineara.errors import NoRuleError
from lineara.facts.hints import Shaped
from lineara.python.container_copies import ShownAs
from lineara.python.namespaces import Namespace, Replacer
from lineara.python.number_classes import original_of
from lineara.python.twins import PROTOCOLS, answering
from lineara.tape.node import Array

_FUNCTION = inspect.CO_NEWLOCALS | inspect.CO_OPTIMIZED  # without the second: of `namespaces`


def real_bases(bases: tuple[Any, ...]) -> tuple[Any, ...]:
    """The bases of a class of the user's, with the real number classes in place of stand-ins."""
    return tuple(map(original_of, bases))


def build_class(
    overlay: Replacer, body: Callable[..., Any], name: str, *bases: Any, **options: Any
) -> Any:
    """A class statement in copied code."""
    made = builtins.__build_class__(body, name, *real_bases(bases), **options)
    for protocol in PROTOCOLS:
        method = vars(made).get(protocol) if isinstance(made, type) else None
        if type(method) is FunctionType:
            setattr(made, protocol, answering(method, overlay))
    return made


def replaced_builtins(
    overlay: Replacer,
    is_instance: Callable[[Any, Any], bool | None] | None,
    type_of: Callable[[Any], type | None] | None,
) -> dict[int, Any]:
    """`id(builtin)` -> what copied code sees; the callables may answer before Python does."""

    def real(cls: Any) -> Any:
        return tuple(map(real, cls)) if type(cls) is tuple else overlay.original(cls)

    def itself(obj: Shaped) -> Any:
        """The user's or NumPy's function or class behind a copy or a stand-in."""
        return overlay.original(obj) if type(obj) is FunctionType or isinstance(obj, type) else obj

    @functools.wraps(isinstance)
    def isinstance_(obj: Array, cls: type, /) -> bool:
        obj, cls = itself(obj), real(cls)
        if is_instance is None:
            return isinstance(obj, cls)
        for one in _alternatives(cls):
            answer = is_instance(obj, one)
            if isinstance(obj, one) if answer is None else answer:
                return True
        return False

    @functools.wraps(issubclass)
    def issubclass_(cls: Any, classes: object, /) -> bool:
        return issubclass(overlay.original(cls), real(classes))

    class _Meta(type):
        def __call__(cls, *args: Any, **options: Any) -> Any:
            if cls is not type_:
                return super().__call__(*args, **options)
            if len(args) != 1 or options:
                return type(*args[:1], *[real_bases(b) for b in args[1:2]], *args[2:], **options)
            obj = itself(args[0])
            shown_class = type_of(obj) if type_of else None
            if shown_class is None:
                shown_class = obj._lineara_shown if isinstance(obj, ShownAs) else type(obj)
            return overlay.replace(overlay.original(shown_class))

    class type_(type, metaclass=_Meta):
        __class_getitem__ = classmethod(lambda cls, item: types.GenericAlias(type, item))

    @functools.wraps(super)
    def super_(*args: Any) -> Any:
        if args:
            return super(overlay.original(args[0]), *args[1:])
        frame = sys._getframe(1)
        own = frame.f_locals
        if "__class__" not in own:
            raise RuntimeError("super(): __class__ cell not found")
        return super(own["__class__"], own[frame.f_code.co_varnames[0]])

    @functools.wraps(globals)
    def globals_() -> dict[str, Any]:
        """The real module's dict.  The user may write to it: nothing is remembered any more."""
        space = sys._getframe(1).f_globals
        while isinstance(space, Namespace):
            space.open = True
            space.drop(*list(space))
            space = space.real
        return space

    def locals_(f: Callable[..., Any]) -> Any:
        @functools.wraps(f)
        def call(*args: Any) -> Any:
            if args:
                return f(*args)
            frame = sys._getframe(1)
            if frame.f_code.co_flags & _FUNCTION == inspect.CO_NEWLOCALS:
                raise NoRuleError(
                    f"{f.__name__}() in {frame.f_code.co_name}, which assigns a global name: what "
                    "its local names hold is not known there; assign the global in a function of "
                    "its own"
                )
            return sorted(frame.f_locals) if f is dir else frame.f_locals

        return call

    def by_name(f: Callable[..., Any]) -> Any:
        @functools.wraps(f)
        def call(*args: Any, **options: Any) -> Any:
            return overlay.replace(f(*map(itself, args), **options))

        return call

    pairs = {
        **{f: locals_(f) for f in (locals, vars, dir)},
        **{f: by_name(f) for f in (pickle.dump, pickle.dumps, pickle.load, pickle.loads)},
        isinstance: isinstance_,
        issubclass: issubclass_,
        super: super_,
        globals: globals_,
        type: type_,
    }
    type_.__name__, type_.__qualname__, type_.__module__ = "type", "type", builtins.__name__
    return {id(old): cast(Any, new) for old, new in pairs.items()}


def _alternatives(cls: type) -> tuple[Any, ...]:
    if type(cls) is tuple:
        return tuple(one for part in cls for one in _alternatives(part))
    return cls.__args__ if isinstance(cls, types.UnionType) else (cls,)
