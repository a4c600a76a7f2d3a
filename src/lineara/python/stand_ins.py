"""What the overlay puts in place of NumPy's, math's and Python's functions.

Each stand-in looks at its arguments: with a traced one it is ours, without it is the original.
"""

import contextlib
import functools
import math
from collections.abc import Callable, Container, Iterator
from typing import Any

import numpy as np

import lineara.python.array_api as _standard  # declares what the array API standard asks for
import lineara.python.array_writers as _assigning  # declares the functions that write
import lineara.python.bracket_makers as _brackets  # declares np.r_ and its kin
from lineara.errors import DetachError, NoRuleError, StagingError
from lineara.facts.hints import Value
from lineara.facts.primitive import Constant, Elementwise, registry
from lineara.facts.registry import Foreign
from lineara.ops.shape import told
from lineara.ops.ufunc_methods import METHODS
from lineara.python.array_makers import any_traced, maker, show_parts
from lineara.python.number_classes import (
    answered,
    class_of,
    is_instance,
    maker_class,
)
from lineara.python.numpy_functions import call_foreign
from lineara.python.overlay import Later
from lineara.python.ufuncs import apply_ufunc
from lineara.tape.node import Array, Scalar, Traced, staged
from lineara.tape.number_kinds import valued
from lineara.tape.numpy_errors import foreign_name
from lineara.tape.swallowed_errors import Told, met_by_traced
from lineara.tape.swallowed_errors import told as refusal

_PRODUCTS = (math.prod, getattr(math, "sumprod", None))  # of the numbers' own arithmetic
_PLAIN = Traced | np.ndarray | np.generic | float | int | complex
Copy = Callable[[Any], Callable[..., Any]]


def stand_in(foreign: Foreign, copy: Copy) -> Any:
    """What stands in for a function in the user's code.

    `copy` makes the copies of functions whose source is followed.
    """
    return _MADE[foreign.kind](foreign, copy)


_MADE: dict[str, Callable[[Foreign, Copy], Any]] = {
    "rule": lambda foreign, copy: _of_rule(foreign.original, foreign.ours),
    "ours": lambda foreign, copy: foreign.ours,
    "followed": lambda foreign, copy: named(foreign.original, copy),
    "tried": lambda foreign, copy: named(foreign.original),
    "refused": lambda foreign, copy: refused(foreign.original),
}


def _of_rule(original: Callable[..., Any], ours: Callable[..., Any]) -> Any:
    if isinstance(original, np.ufunc):
        return _ufunc_stand_in(original, ours)
    if original in _PRODUCTS:
        return _when_traced(original, ours)
    if original is math.fsum:
        return _of_items(_math_stand_in(original, ours))
    if original.__module__ in ("math", "cmath"):
        return _math_stand_in(original, ours)
    if original.__module__ == "statistics":
        return _of_items(asked(original))
    return _total(asked(original)) if original is np.sum else asked(original)


def _of_items(call: Callable[..., Any]) -> Callable[..., Any]:
    """A stand-in for a function of numbers, which an iterator may give one by one."""

    @functools.wraps(call)
    def listed(*args: Any, **kwargs: Any) -> Any:
        return call(*map(_items, args), **{k: _items(v) for k, v in kwargs.items()})

    return listed


def _items(values: object) -> Any:
    return [*values] if isinstance(values, Iterator) else values


def refused(original: Any) -> Any:
    """A function that is refused where an argument is traced."""
    call = maker(original)
    if isinstance(original, np.ufunc):
        _show_as(original, call)
    return call


def asked(original: Any, known: Callable[..., Any] | None = None) -> Any:
    """A function that is ours, or reads plain values, where an argument is traced.

    It may be the inner function of NumPy's function `known`.
    """
    of_traced = original if known is None else known

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        if any_traced(args) or (kwargs and any_traced(kwargs.values())):
            return call_foreign(of_traced, args, kwargs)
        try:
            return original(*args, **kwargs)
        except Told as said:
            given = _as_told(said, args)
        return call_foreign(of_traced, given, kwargs)

    if type(original) is type:
        return maker_class(original, call)
    if hasattr(original, "_implementation"):  # what a class that NumPy asks may leave it to
        show_parts(original, call, asked(original._implementation, original))
    return call


def _as_told(said: Told, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments, with traced arrays for the objects that said that they are arrays."""
    given = tuple([said.value if a is said.source else told(a) for a in args])
    if not any_traced(given):
        raise said
    return given


def _when_traced(original: Callable[..., Any], ours: Callable[..., Any]) -> Any:
    """Our function where an argument is traced, the original where none is."""

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        reached = any_traced(args) or any_traced(kwargs.values())
        return (ours if reached else original)(*args, **kwargs)

    return call


def named(original: Any, copy: Copy | None = None) -> Any:
    """A function without a rule: its Python code is followed; where it fails, the error names it.

    With `copy` it is the copy that is called where a traced value is near.
    """

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        run = original
        if copy and _reached([*args, *kwargs.values()]):
            run = copy(original)
            around = registry.foreign[original].around
            run = functools.partial(around, run) if around else run
        try:
            return run(*args, **kwargs)
        except DetachError as e:
            raise NoRuleError(
                f"{foreign_name(original)} of a traced value has no derivative rule; "
                f"{registry.foreign[original].advice}"
            ) from e

    return call


def _reached(values: list[Any]) -> bool:
    """Whether a traced value is among these, or in an object among them."""
    held = [vars(v).values() for v in values if hasattr(v, "__dict__")]
    return any_traced(values) or any(map(any_traced, held))


def _total(general: Callable[..., Any]) -> Any:
    """np.sum, with a short way for the sum of all elements of a traced array."""

    @functools.wraps(general)
    def call(a: Array, *args: Any, **kwargs: Any) -> Any:
        if not args and not kwargs and isinstance(a, Traced) and a.shape:
            return a.total()
        return general(a, *args, **kwargs)

    return call


def _fast(ours: Any) -> str | None:
    """The name of the node method for a unary elementwise primitive."""
    unary = isinstance(ours, Elementwise) and ours.arity == 1 and ours.inlined
    return ours.name if unary and ours.name not in ("abs", "negative") else None


def _ufunc_stand_in(ufunc: np.ufunc, ours: Callable[..., Any]) -> Any:
    nin, nargs = ufunc.nin, ufunc.nargs

    def call(*args: Any, **kwargs: Any) -> Any:
        if any_traced(args) or (kwargs and any_traced(kwargs.values())):
            if nin < len(args) <= nargs and "out" not in kwargs:
                args, kwargs["out"] = args[:nin], (*args[nin:], *(None,) * (nargs - len(args)))
            if len(args) == nin:
                return apply_ufunc(ufunc, "__call__", args, kwargs)
        try:
            return ufunc(*args, **kwargs)  # raises for a wrong number of arguments
        except Told as said:
            given = _as_told(said, args)
        return call(*given, **kwargs)

    name = _fast(ours)
    if name:
        call = _unary_ufunc(ufunc, call, name)
    _show_as(ufunc, call)
    call.__name__, call.__doc__ = ufunc.__name__, ufunc.__doc__
    vars(call)["__wrapped__"] = ufunc  # inspect.signature then gives the ufunc's
    return call


def _show_as(ufunc: np.ufunc, call: Callable[..., Any]) -> None:
    """Give a function the attributes of a ufunc; its signature is that of what it wraps."""
    for name in dir(ufunc):
        if not name.startswith("__"):
            in_ours = _method(ufunc, name) if name in METHODS else None
            setattr(call, name, in_ours or getattr(ufunc, name))


def _method(ufunc: np.ufunc, name: str) -> Any:
    """A method of a ufunc, where a traced value is in a list or is the first value."""
    original, names = getattr(ufunc, name), ("axis", "dtype", "out", "keepdims", "initial", "where")

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not any_traced(args) and not any_traced(kwargs.values()):
            return original(*args, **kwargs)
        inputs = 2 if name in ("outer", "reduceat") else 1
        given = dict(zip(names, args[inputs:], strict=False))
        return apply_ufunc(ufunc, name, args[:inputs], given | kwargs)

    return call


def _math_stand_in(original: Callable[..., Any], ours: Callable[..., Any]) -> Any:
    """math's and cmath's functions raise where NumPy's have an infinity or a NaN: so do these."""

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        value = None
        if not any_traced(args) or not staged(args):
            value, args = answered(original, args, kwargs)  # a method of the user's may raise
            if value is not None and (isinstance(ours, Constant) or not any_traced(args)):
                return value
        if value is None:  # in a program
            in_program: Any = registry.foreign[original].in_programs or ours
            return _pythons(in_program(*args, **kwargs))
        to = float if original.__module__ == "math" else complex
        with np.errstate(all="ignore"):  # math does not warn
            y = ours(*_numbers(args, to), **{k: _numbers(v, complex) for k, v in kwargs.items()})
        return valued(y, value)

    name = "log" if original is math.log else _fast(ours)
    return functools.wraps(original)(_unary_math(original, call, name)) if name else call


def _unary_math(original: Callable[..., Any], general: Callable[..., Any], name: str) -> Any:
    """What calls with one traced scalar take: the node's method that raises as math does."""
    bases = original is math.log  # the one that takes a second argument
    text = f"""
def call(x{", *base" * bases}):
    if {"base or " * bases}type(x) is float:
        return {"general(x, *base) if base else " * bases}original(x)
    try:
        return type(x).math_{name}(x)
    except AttributeError:
        return general(x)
"""
    return _compiled(text, Scalar=Scalar, original=original, general=general)


def _unary_ufunc(ufunc: np.ufunc, general: Callable[..., Any], name: str) -> Any:
    """What calls with one traced value take: the node's method."""
    text = f"""
def call(x=absent, /, *rest, **options):
    if not rest and not options and type(x) is not ndarray and type(x) is not float:
        try:
            return type(x).np_{name}(x)  # what only forwards attributes answers itself
        except AttributeError:
            pass
    return general(*(() if x is absent else (x,)), *rest, **options)
"""
    return _compiled(text, ndarray=np.ndarray, general=general, absent=object())


def _compiled(text: str, **scope: Any) -> Any:
    exec(compile(text, "<lineara stand-in>", "exec"), scope)
    return scope["call"]


def _numbers(args: object, to: type) -> Any:
    """What math (`to` float) and cmath (complex) see, as numbers of NumPy's."""
    if isinstance(args, list | tuple):
        return type(args)([_numbers(a, to) for a in args])
    if isinstance(args, Scalar | np.complexfloating):
        number = args.real if to is float else args
        return number.typed() if isinstance(number, Scalar) else number
    return args if isinstance(args, _PLAIN) else to(args)


def _pythons(y: Value) -> Any:
    """What math and cmath give: numbers of Python's."""
    if isinstance(y, tuple):
        return tuple(map(_pythons, y))
    return y.item() if isinstance(y, Scalar) else y


def replacements(copy: Copy = lambda f: f, known: Container[int] = ()) -> dict[int, Any]:
    """`id(foreign function)` -> what stands in for it in the user's code; not those `known`.

    What is no class is made when it is first met: a program meets few of the hundreds.
    """
    chosen: dict[int, Any] = {}
    for f in registry.foreign.values():
        if id(f.original) not in known and f.stand_in is not None:
            chosen[id(f.original)] = f.stand_in
        elif id(f.original) not in known and f.kind in _MADE:
            chosen[id(f.original)] = Later(functools.partial(stand_in, f, copy))
    return chosen


@functools.wraps(hasattr)
def has_attribute(obj: Any, name: str, /) -> bool:
    """Whether the number or the array has the attribute that it stands for."""
    if issubclass(type(obj), Scalar | Array):
        return hasattr(obj.stands_for(), name) and (hasattr(obj, name) or True)
    return hasattr(obj, name)


@functools.wraps(pow)
def power(base: Any, exp: Any, mod: Any = None) -> Any:
    """A power; with a modulus, which only whole numbers have, of numbers of the same classes."""
    if mod is None:
        return pow(base, exp)
    whole = [v for v in (base, exp, mod) if issubclass(type(v), Scalar) and v.dtype.kind in "iub"]
    y = pow(*map(_of_kind, (base, exp, mod)))  # raises what Python does for other numbers
    if whole:
        raise StagingError(
            "pow with a modulus of whole numbers that are staged has no operation in a program; "
            "write a ** b % m, or a loop that multiplies"
        )
    return y


def _of_kind(value: Any) -> Any:
    return value.stands_for()(1) if issubclass(type(value), Scalar) else value


class Suppress(contextlib.suppress):
    """contextlib.suppress, except for errors that only traced values meet."""

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
        if met_by_traced(error):
            raise refusal(error) from error
        return bool(super().__exit__(kind, error, trace))


registry.declare(contextlib.suppress, stand_in=Suppress)
registry.declare(hasattr, stand_in=has_attribute)
registry.declare(pow, stand_in=power)

__all__ = ["class_of", "is_instance", "replacements"]

del _assigning, _brackets, _standard
