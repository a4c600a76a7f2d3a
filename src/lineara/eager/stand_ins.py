"""What the overlay puts in place of NumPy's, math's and Python's functions.

Each stand-in looks at its arguments: with a traced one it is ours, without it is the original.
Functions that make arrays give arrays that traced values may be written into, while a trace is open.
"""

import functools
import math
import numbers
from collections.abc import Callable
from typing import Any

import numpy as np

from lineara.eager.level import Level
from lineara.eager.node import Array, Scalar, Traced, apply_ufunc, call_foreign, plain
from lineara.eager.trace import threads, writable
from lineara.ops.shape import as_array
from lineara.primitive import Elementwise, registry


def any_traced(values: Any) -> bool:
    """Whether a traced value is among the arguments, also inside lists and tuples."""
    for v in values:
        if isinstance(v, Traced) or (isinstance(v, list | tuple) and any_traced(v)):
            return True
    return False


def stand_in(original: Any) -> Any:
    """The stand-in of a function that has a rule."""
    ours = registry.functions[original]
    if isinstance(original, np.ufunc):
        return _ufunc_stand_in(original, ours)
    if original.__module__ == "math":
        return _math_stand_in(original, ours)

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        if any_traced(args) or (kwargs and any_traced(kwargs.values())):
            return call_foreign(original, args, kwargs)
        return original(*args, **kwargs)

    return call


def _fast(ours: Any) -> str | None:
    """The name of the node method for a unary elementwise primitive."""
    unary = isinstance(ours, Elementwise) and ours.arity == 1 and not ours.selects
    return ours.name if unary and ours.name not in ("abs", "negative") else None


def _ufunc_stand_in(ufunc: np.ufunc, ours: Any) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        if any_traced(args) or (kwargs and any_traced(kwargs.values())):
            return apply_ufunc(ufunc, "__call__", args, kwargs)
        return ufunc(*args, **kwargs)

    name = _fast(ours)
    if name:
        call = _unary_ufunc(ufunc, call, name)
    for attribute in dir(ufunc):
        if not attribute.startswith("__"):
            setattr(call, attribute, getattr(ufunc, attribute))
    call.__name__, call.__doc__ = ufunc.__name__, ufunc.__doc__
    return call


def _math_stand_in(original: Any, ours: Any) -> Any:
    """math's functions raise where NumPy's have an infinity or a NaN: so do these."""

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not any_traced(args):
            return original(*args, **kwargs)
        y = ours(*args, **kwargs)
        value = plain(y)
        if not isinstance(y, Traced) or (type(value) is float and not math.isfinite(value)):
            constant = original(*_plain_args(args), **kwargs)
            return y if isinstance(y, Traced) else constant
        return y

    name = _fast(ours)
    return functools.wraps(original)(_unary_math(original, call, name)) if name else call


def _unary_math(original: Any, general: Any, name: str) -> Any:
    """What calls with one traced scalar take: the node's method that raises as math does."""
    text = f"""
def call(x):
    if type(x) is float:
        return original(x)
    try:
        return type(x).math_{name}(x)
    except AttributeError:
        return general(x)
"""
    return _compiled(text, Scalar=Scalar, original=original, general=general)


def _unary_ufunc(ufunc: np.ufunc, general: Any, name: str) -> Any:
    """What calls with one traced value take: the node's method."""
    text = f"""
def call(x, out=None, where=True, casting="same_kind", order="K", dtype=None, subok=True):
    if out is None and where is True and dtype is None:
        if type(x) is not ndarray and type(x) is not float:
            try:
                return type(x).np_{name}(x)  # what only forwards attributes answers itself
            except AttributeError:
                pass
        if casting == "same_kind" and order == "K" and subok is True:
            return general(x)
    return general(x, out=out, where=where, casting=casting, order=order, dtype=dtype, subok=subok)
"""
    return _compiled(text, ndarray=np.ndarray, general=general)


def _compiled(text: str, **scope: Any) -> Any:
    exec(compile(text, "<lineara stand-in>", "exec"), scope)
    return scope["call"]


def _plain_args(args: Any) -> Any:
    return [type(a)(_plain_args(a)) if isinstance(a, list | tuple) else plain(a) for a in args]


# --- functions that make arrays ---------------------------------------------------------------------


def _maker(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        made = original(*map(_shape_only, args), **{k: _shape_only(v) for k, v in kwargs.items()})
        return writable(made) if threads.open and made.dtype.kind in "fc" else made

    return call


def _shape_only(value: Any) -> Any:
    """For zeros_like and its kin: only shape and dtype of a traced array matter."""
    return np.broadcast_to(np.zeros((), value.dtype), value.shape) if isinstance(value, Traced) else value


def _full(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(like: Any, fill_value: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(fill_value, Traced):
            return _maker(original)(like, fill_value, *args, **kwargs)
        made = _maker(original)(like, 0.0, *args, **kwargs)
        made[...] = fill_value
        return made

    return call


@functools.wraps(np.array)
def array(obj: Any, dtype: Any = None, *, copy: Any = True, **options: Any) -> Any:
    """np.array of traced values: an array that keeps their derivatives and may be written."""
    if not any_traced((obj,)):
        made = np.array(obj, dtype, copy=copy, **options)
        return writable(made) if threads.open and made.dtype.kind in "fc" else made
    level = threads.open[-1] if threads.open else None
    flat = level is not None and isinstance(obj, list | tuple) and type(level) is Level
    if flat and dtype is None and all([type(v) is level.S or type(v) is float for v in obj]):
        return level.join(obj)
    made = as_array(obj)
    if dtype is not None and np.dtype(dtype) != made.dtype:
        made = made.astype(dtype)
    if made is obj and copy is not False:
        made = made.copy() if isinstance(made, Array) else made
    for _ in range(options.get("ndmin", 0) - made.ndim):
        made = made[None]
    return made


def _as_array(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(a: Any, dtype: Any = None, *args: Any, **kwargs: Any) -> Any:
        if not any_traced((a,)):
            return original(a, dtype, *args, **kwargs)
        return array(a, dtype, copy=False)

    return call


@functools.wraps(np.copy)
def copy(a: Any, *args: Any, **kwargs: Any) -> Any:
    """np.copy: of a traced array, one that may be written."""
    if isinstance(a, Traced):
        return a.copy() if isinstance(a, Array) else a
    return array(a)


def to_float(value: Any = 0.0) -> Any:
    """float() that keeps the derivative of a traced number."""
    if isinstance(value, Array):
        return value.item()
    return value if isinstance(value, Scalar) else float(value)


to_float.dtype = np.dtype(float)  # type: ignore[attr-defined]  # astype(float) asks for this


def is_instance(value: Any, cls: type) -> bool | None:
    """What isinstance says of a traced value: that it is the number or the array it stands for."""
    if isinstance(value, Array):
        return True if cls is np.ndarray else None
    if isinstance(value, Scalar):
        kinds = (float, np.float64, np.floating, np.inexact, np.number, np.generic)
        return True if cls in (*kinds, numbers.Number, numbers.Real, numbers.Complex) else None
    return None


def replacements() -> dict[Any, Any]:
    """Every foreign function and what stands in for it in the user's code."""
    found = {f: stand_in(f) for f in registry.functions}
    made = (np.zeros, np.ones, np.empty, np.zeros_like, np.ones_like, np.empty_like, np.eye)
    found |= {f: _maker(f) for f in (*made, np.identity)}
    found |= {f: _full(f) for f in (np.full, np.full_like)}
    found |= {np.array: array, np.copy: copy, float: to_float}
    found |= {f: _as_array(f) for f in (np.asarray, np.asanyarray, np.ascontiguousarray)}
    return found


