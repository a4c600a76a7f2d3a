"""What `float`, `complex` and NumPy's floating types are in the user's code: they keep derivatives.

Each is a subclass of the type that it stands for, so that it is a dtype, a base class, a pattern
and half of `float | None`; calling it converts, and `isinstance` asks for the real type.
"""

import copy
import copyreg
import inspect
import operator
from collections.abc import Callable
from functools import cache, partial, wraps
from inspect import getattr_static
from types import FunctionType
from typing import Any

import numpy as np

from lineara.containers.proxy import is_lazy
from lineara.facts.box import Box
from lineara.facts.hints import Tree, Value
from lineara.facts.primitive import op, registry
from lineara.tape.class_questions import type_shown
from lineara.tape.node import Array, Scalar, Traced, layout, plain, staged
from lineara.tape.number_kinds import valued

_own: Any = vars(type)["__dict__"].__get__  # quicker than through `__getattribute__`
_HEAP_TYPE = 1 << 9  # CPython's flag of classes that are written in Python
_METHODS = (type(float.__add__), type(float.hex))
_NUMBER = ("__complex__", "__float__")  # what an object is asked for, and what else there is
_COMPARISONS = {f"__{name}__" for name in ("lt", "le", "gt", "ge", "eq", "ne")}
_ASKED = (*_NUMBER, "__index__", "__int__", "__trunc__", "__floor__", "__ceil__", "__bool__")


class _Constructor(type):
    """The metaclass: `original` is the type, `convert` what a call does with traced arguments."""

    original: type
    convert: Callable[..., Any]

    def __getattribute__(cls, name: str) -> Any:
        """`float.__add__` and its kin take traced numbers as first argument."""
        value = super().__getattribute__(name)
        if type(value) in _METHODS and "original" in _own(cls):
            return unbound(_own(cls)["original"], name)
        return value

    def __call__(cls, *args: Any, **options: Any) -> Any:
        own = _own(cls)
        if "original" not in own:  # a subclass of the user's
            return super().__call__(*args, **options)
        convert = own["convert"].__func__
        if len(args) == 1 and not options and isinstance(args[0], Traced):
            return convert(*args, **options)
        if args and isinstance(args[0], list | tuple):
            return own["original"](*args, **options)
        value, given = None, (*args, *options.values())
        if not any([isinstance(a, Traced) and staged(a) for a in given]):
            value, args = answered(own["original"], args, options)  # the user's method may raise
            if not any([isinstance(a, Traced) for a in (*args, *options.values())]):
                return value
        y = convert(*args, **options)
        return y if value is None else valued(y, value)

    @property
    def __signature__(cls) -> Any:
        if "original" not in vars(cls):
            raise AttributeError("__signature__")
        return inspect.signature(cls.original)

    def __getattr__(cls, name: str) -> Any:
        """Attributes of `bool`, which cannot be a base class."""
        return getattr(_own(cls).get("original", object), name)

    def __instancecheck__(cls, obj: Tree) -> bool:
        if "original" not in vars(cls):
            return super().__instancecheck__(obj)
        answer = is_instance(obj, cls.original)
        return isinstance(obj, cls.original) if answer is None else answer

    def __subclasscheck__(cls, other: type) -> bool:
        if "original" not in vars(cls):
            return super().__subclasscheck__(other)
        return issubclass(other, cls.original)

    def __eq__(cls, other: object) -> Any:
        same = other is cls or other is vars(cls).get("original")
        return True if same else NotImplemented

    def __hash__(cls) -> int:  # so that a table by types finds it under both
        return hash(cls.original)


def answered(
    original: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]
) -> tuple[Any, tuple[Any, ...]]:
    """The result of a function of numbers, and its arguments, with objects as their numbers.

    Objects of the user's are asked for their numbers when, and as often as, the function asks.
    """
    kept = any([type(a).__flags__ & _HEAP_TYPE or type(a) in (list, tuple) for a in args])
    if not kept and not options:
        return original(*args), args
    numbers = list(args)
    given = [_asked(numbers, i) for i in range(len(args))]
    try:
        return original(*given, **{k: plain(v) for k, v in options.items()}), tuple(numbers)
    except _NotKnown:
        return None, tuple(numbers)


class _NotKnown(Exception):
    """A number of a program was asked for."""


def _asked(numbers: list[Any], i: int) -> Any:
    """The i-th argument as the function gets it: for an object one that notes the number asked."""
    value, kind = numbers[i], type(numbers[i])
    if isinstance(value, list | tuple):
        numbers[i] = parts = list(value)
        return [_asked(parts, j) for j in range(len(parts))]
    if isinstance(value, Traced):
        return plain(value)
    if not kind.__flags__ & _HEAP_TYPE:
        return value
    methods = {name: getattr_static(kind, name, None) for name in _ASKED}
    own = [name for name in _NUMBER if type(methods[name]) is FunctionType]
    if not own or issubclass(kind, float | complex):  # floats have no methods to ask
        return value

    def note(method: Callable[..., Any]) -> Any:
        number = method(value)
        numbers[i] = number
        of = complex if method.__name__ == "__complex__" else float
        if staged(number) and isinstance(number, Scalar) and issubclass(number.stands_for(), of):
            raise _NotKnown("the number belongs to a program and has no value yet")
        return layout(number)  # a number of another class is refused

    names = {n: property(lambda _, f=f: f.__get__(value, kind)) for n, f in methods.items() if f}
    return type(kind.__name__, (), names | {n: partial(note, methods[n]) for n in own})()


def _pickled(cls: type) -> Any:
    """A class that stands for another is pickled as that one."""
    original = vars(cls).get("original")
    return cls.__qualname__ if original is None else (copy.copy, (original,))


copyreg.pickle(_Constructor, _pickled)


@cache
def unbound(cls: type, name: str) -> Callable[..., Any]:
    """A method of a class of numbers, as `float.hex`, which takes traced numbers."""

    @wraps(getattr(cls, name))
    def call(*args: Any) -> Any:
        return _of_class(cls, name, args)

    return call


for _cls in (float, complex):
    for _name in vars(_cls):
        if type(_method := getattr(_cls, _name)) in _METHODS:
            registry.declare(_method, stand_in=unbound(_cls, _name))


def _of_class(cls: type, name: str, args: tuple[Any, ...]) -> Any:
    method = getattr(cls, name)
    if not any([isinstance(a, Traced) for a in args]):
        return method(*args)
    if staged(args):
        compares = name in _COMPARISONS and method(*map(layout, args)) is NotImplemented
        return NotImplemented if compares else _operated(name, args)
    value = method(*map(plain, args))  # the number's own method may raise
    if name == "__getnewargs__":
        return args[0].__getnewargs__()
    if not isinstance(value, np.inexact | float | complex | tuple):
        return value
    return valued(_operated(name, args), value)


def _operated(name: str, args: tuple[Any, ...]) -> Any:
    """The result of the method, by the operator of that name where there is one."""
    reflected = name.replace("__r", "__", 1)
    if hasattr(operator, name):
        return getattr(operator, name)(*args)
    if len(args) == 2 and hasattr(operator, reflected):
        return getattr(operator, reflected)(args[1], args[0])
    return getattr(args[0], name)(*args[1:])


class _Maker(_Constructor):
    """The metaclass of a foreign class that takes collections of traced values."""

    def __call__(cls, *args: Any, **options: Any) -> Any:
        if "original" not in vars(cls):
            return super().__call__(*args, **options)
        return cls.convert(*args, **options)


def maker_class(original: type, convert: Callable[..., Any]) -> type:
    """The class that stands for a foreign class, whose objects `convert` makes."""
    names = {"original": original, "convert": staticmethod(convert), "__doc__": original.__doc__}
    return _Maker(original.__name__, (original,), names | {"__module__": original.__module__})


def constructor(original: type, convert: Callable[..., Any]) -> type:
    """The class that stands for a floating type."""
    names = {"original": original, "convert": staticmethod(convert), "__slots__": ()}
    if not issubclass(original, np.number):  # of its subclasses NumPy knows
        names["dtype"] = np.dtype(original)
    names |= {"__doc__": original.__doc__, "__module__": original.__module__}
    if original in (float, complex):
        names["fromhex"] = getattr(original, "fromhex", None)
    if original is int:
        names["from_bytes"] = int.from_bytes
    bases = () if original in (bool, np.bool_) else (original,)  # these have no subclasses
    return _Constructor(original.__name__, bases, names)


def _number(value: Any, to: type = float) -> Any:
    if not isinstance(value, Array):
        return value
    to(np.asarray(layout(value)))  # raises where the value is no number
    return value.item()


def original_of(cls: type) -> Any:
    """The class of numbers that a class stands for, or the class itself."""
    return vars(cls).get("original", cls) if type(cls) is _Constructor else cls


def to_float(value: Box) -> Any:
    """float() of a traced number."""
    value = _number(value)
    if not isinstance(value, Traced):  # what an array of constants holds
        return float(value)
    if value.dtype.kind == "c":
        float(layout(value))  # raises for a Python number, and warns for a NumPy number
        value = value.real
    wide = value if value.dtype.kind == "f" else op("astype")(value, dtype=np.dtype(float))
    return wide.item()


def to_complex(real: Value = 0.0, imag: Scalar | None = None) -> Any:
    """complex() of traced numbers."""
    given = [_number(v, complex) for v in (real, imag) if v is not None]
    parts: list[Any] = [v if isinstance(v, Traced) else complex(v) for v in given]
    z = parts[0] if imag is None else _of_both(*parts)
    if type(z) is complex:
        return z
    z = z if z.dtype == complex else op("astype")(z, dtype=np.dtype(complex))
    return z.item() if staged(parts) else valued(z, complex(*map(plain, given)))


def _of_both(p: Any, q: Any) -> Any:
    """p + q i without a product, which loses signs of zeros and makes NaNs of infinities."""
    p, q = [z if isinstance(z, Traced) else np.complex128(z) for z in (p, q)]
    turned = [z.dtype.kind == "c" if isinstance(z, Traced) else bool(z.imag) for z in (p, q)]
    real = p.real - q.imag if turned[1] else p.real
    return op("of_parts")(real, q.real + p.imag if turned[0] else q.real)


def _typed(dtype: Any) -> Callable[..., Any]:
    def convert(value: Box, imag: Any = None) -> Any:
        if imag is not None and dtype.kind != "c":
            raise TypeError(f"{dtype.name}() takes one number, and was given an imaginary part")
        if imag is None and isinstance(value, Array) and value.shape and value.dtype == dtype:
            return value
        if imag is not None and "D" in [v.dtype.char for v in (value, imag) if staged(v)]:
            dtype.type(1j, 1j)  # raises for complex parts
        value = value.now() if imag is None else to_complex(value, imag)
        y = value if value.dtype == dtype else value.astype(dtype)
        y = y if y.shape else y[()] if isinstance(y, Array) else y
        return y.typed() if issubclass(type(y), Scalar) else y

    return convert


def _whole(t: type) -> Callable[..., Any]:
    """A type of whole numbers, which are constants."""

    def convert(value: Any) -> Any:
        value = value.now()
        if isinstance(value, Array) or staged(value):
            return value.astype(np.dtype(t))
        return t(plain(value))

    return convert


def class_of(value: Any) -> type | None:
    """What type() says of a traced value, and of a proxy."""
    if isinstance(value, Traced):
        return type_shown(value)
    if is_lazy(value):
        return value._lineara_kind.cls
    return getattr(type(value), "_lineara_stands_for", None)


def is_instance(value: Tree, cls: type) -> bool | None:
    """What isinstance says of a traced value: that it is the number or the array it stands for."""
    stands_for = getattr(type(value), "_lineara_stands_for", None)
    if stands_for is not None:
        return issubclass(stands_for, cls) or None
    if not isinstance(value, Traced):
        return None
    try:
        if getattr(value, "weak", False) is None:  # a staged number, of one kind or the other
            kinds = [value.level.alias(value, weak).stands_for() for weak in (True, False)]
            kinds += [int] if value.dtype.kind == "f" else []  # 0 in a branch, a float in another
            answers = {issubclass(kind, cls) for kind in kinds}
            if len(answers) == 1:
                return answers.pop() or None
        return issubclass(value.stands_for(), cls) or None
    except TypeError:  # a protocol with data attributes: isinstance looks at the value
        return None


def _declare(original: type, convert: Callable[..., Any]) -> None:
    registry.declare(original, kind="class", stand_in=constructor(original, convert))


_declare(float, to_float)
_declare(complex, to_complex)
for _type in (np.float64, np.float32, np.complex128, np.complex64):
    _declare(_type, _typed(np.dtype(_type)))
for _type in {np.dtype(char).type for char in "?bBhHiIlLqQ"}:
    _declare(_type, _whole(_type))
