"""NumPy's functions and methods on traced values: our stand-in for each, or a refusal."""

import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from lineara.containers.points import is_labelled, without_unit
from lineara.errors import DetachError, NoRuleError, ShapeError
from lineara.facts.hints import Axis, Shaped, Value
from lineara.facts.primitive import Constant, innermost, op, registry
from lineara.facts.registry import WRITE, Foreign
from lineara.facts.types import type_of
from lineara.ops.shape import any_box, as_array
from lineara.python.array_writers import WRITERS
from lineara.python.numpy_layout import as_numpy_lays
from lineara.python.numpy_values import (
    UNANSWERED,
    checked_types,
    failed,
    is_asked,
    judged,
    of_constants,
    own_value,
    place_of_out,
)
from lineara.tape.node import (
    Array,
    Scalar,
    Traced,
    derived,
    follows,
    in_objects,
    is_of_objects,
    plain,
    plain_deep,
    staged,
)
from lineara.tape.number_kinds import as_numpys, numpys, real_typed
from lineara.tape.numpy_errors import foreign_name, refused
from lineara.tape.plans import GENERAL, by_plan


def call_foreign(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A NumPy or SciPy function on traced arguments: our function that stands in for it."""
    y = by_plan(func, args, kwargs, judged)
    if y is not GENERAL:
        return y
    if any(map(is_of_objects, args)) and not (func in WRITERS and isinstance(args[0], Array)):
        try:
            return of_objects(func, args, kwargs)
        except Exception as e:
            raise failed(func, args, kwargs, e) from None
    y = of_constants(func, args, kwargs)
    if y is not UNANSWERED:
        return y
    foreign = declared(func)
    ours = foreign.ours
    if foreign.in_programs is not None and staged(args):
        return foreign.in_programs(*args, **kwargs)
    args = tuple([without_unit(a)[0] if is_labelled(a) else a for a in args])
    args, out = _without_out(func, args, kwargs)
    asks = ours is None or out is not None
    if foreign.reads or (asks and not follows((args, tuple(kwargs.values())))):
        return _constant(func, args, kwargs, out, constant_call)
    if ours is None:
        raise NoRuleError(
            f"{foreign_name(func)} of a traced value has no derivative rule; {_advice(func)}"
        )
    if isinstance(ours, Constant):
        return _constant(func, args, kwargs, out, functools.partial(locally_constant, ours))
    if func in (np.real, np.imag) and issubclass(type(args[0]), Scalar):
        return getattr(args[0], func.__name__)
    given, args = args, as_numpys(args)
    if func is np.clip and args:  # np.clip converts its first argument to an array
        args = (real_typed(args[0]), *args[1:])
    if not foreign.sequence:
        args = tuple([as_array(a) if _is_sequence(a) else a for a in args])
    try:
        if is_asked(func, args, kwargs, out):
            result = own_value(func, args, kwargs, ours, out, given)
        else:
            result = numpys(ours(*args, **kwargs))
    except Exception as e:
        error = refused(foreign_name(func), args, kwargs, e) if isinstance(e, _SHAPES) else e
        raise failed(func, given, kwargs, error, out) from None
    if out is not None:
        return write_out(out, result, spreads=func in _SPREAD)
    if func in DERIVED and (func is not np.einsum or len(args) == 2):
        source = next((a for a in (*args, *kwargs.values()) if isinstance(a, Array)), None)
        if func is np.real and source is not None and source.dtype.kind != "c":
            return source
        if func is np.diag and source is not None and source.ndim == 1:
            return result
        if isinstance(result, list | tuple):
            pairs = zip(result, args, strict=True)
            return type(result)([_view(r, a) for r, a in pairs])
        result = as_numpy_lays(func, args, kwargs, result, views=True)
        return _view(result, source) if func is not np.einsum else derived(result, source)
    if issubclass(type(result), Scalar):
        return _without_axes(func, result, given)
    return as_numpy_lays(func, args, kwargs, result)


def of_objects(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A function of arrays of objects: NumPy calls the operators of the traced numbers in them."""
    args, out = _without_out(func, args, kwargs)
    return _constant(func, args, kwargs, out, _asking_objects)


def _asking_objects(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    options = {k: v if k in _NUMBERS else in_objects(v) for k, v in kwargs.items()}
    return func(*in_objects(args), **options)


_SPREAD = {np.clip, np.percentile, np.quantile, np.nanpercentile, np.nanquantile}  # over out=
_NUMBERS = {"ddof", "correction"}  # keywords that NumPy never converts to arrays


def _constant(
    func: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    out: object,
    call: Callable[..., Any],
) -> Any:
    """The constant result of a function; NumPy itself writes a plain `out`, or refuses it."""
    if out is None:
        return call(func, args, kwargs)
    if staged((out, *args, *kwargs.values())):
        checked_types(func, args, kwargs, out)
        return write_out(out, call(func, args, kwargs), func in _SPREAD)
    several = isinstance(out, tuple)
    ours = any_box(out if several else (out,))
    plainly = tuple(map(_copied, out)) if several else _copied(out)  # some look at what is there
    place = place_of_out(func)
    if place is None or len(args) <= place:
        kwargs = kwargs | {"out": plainly}
    else:
        args = (*args[:place], plainly, *args[place + 1 :])
    y = call(func, args, kwargs)
    return write_out(out, y) if ours else y


def _copied(out: Any) -> Any:
    """A plain copy of `out` for NumPy to write; what is no array stays, which NumPy refuses."""
    return np.array(plain(out)) if isinstance(out, Array) else plain(out)


# What gives a view also of an array without axes, and what makes an array without axes.
_VIEWS = {np.squeeze, np.reshape, np.transpose, np.swapaxes, np.moveaxis}
_ARRAYS = {np.where, np.select, np.piecewise, np.i0, np.roll, np.real_if_close, np.tensordot}
_ARRAYS |= {np.block, np.apply_along_axis}


def _without_axes(func: Callable[..., Any], result: Traced, args: tuple[Any, ...]) -> Any:
    """The result as NumPy gives it: some functions give an array without axes for a number."""
    source: Any = args[0] if args else None
    if func not in _VIEWS | _ARRAYS:
        return result
    if func in _VIEWS and isinstance(source, Array):
        return source.only()
    if func in _VIEWS and not getattr(source, "weak", True):  # of NumPy's number itself
        return result
    return result.level.buffer(result.typed())


def _view(result: Any, source: Any) -> Any:
    """A view of an array; for a number a new array, which may have no axes."""
    if isinstance(source, Array) or not isinstance(result, Traced):
        return derived(result, source)
    return result.level.derived(result, result)


def _is_sequence(value: Any) -> bool:
    """Whether it is a list or a tuple with traced values, which becomes an array."""
    return issubclass(type(value), list | tuple) and any_box(value)


def _advice(func: Callable[..., Any]) -> str:
    """What works in place of a function without a rule."""
    of_python = isinstance(func, np.ufunc) and func.__name__.endswith("(vectorized)")
    return declared(np.frompyfunc if of_python else func).advice or WRITE


def declared(func: Callable[..., Any]) -> Foreign:
    """The record of a function; its module may have been imported just now."""
    record = registry.foreign.get(func)
    if (record is None or record.ours is None) and registry.arrive():
        record = registry.foreign.get(func)
    return _UNKNOWN if record is None else record


_UNKNOWN = Foreign(None)
_SHAPES = (ValueError, IndexError)


def _without_out(
    func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], Any]:
    """The arguments without the array that is to be written, and that array."""
    out = kwargs.pop("out", None)
    place = place_of_out(func)
    if out is None and place is not None and len(args) > place:
        args, out = (*args[:place], None, *args[place + 1 :]), args[place]
    return args, None if out is np._NoValue else out


# Views of NumPy's that are arrays of their own here: when either is written, the other is refused.
DERIVED: set[Callable[..., Any]] = {
    np.broadcast_to,
    np.broadcast_arrays,
    np.diagonal,
    np.diag,
    np.real,
    np.imag,
    np.einsum,
}
DERIVED |= {np.lib.stride_tricks.sliding_window_view, np.linalg.diagonal}


def locally_constant(
    ours: Constant, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """The plain result of a locally constant function; of staged values an operation on them."""
    if not staged((*args, *kwargs.values())):
        return constant_call(func, args, kwargs)
    checked_types(func, args, kwargs, None)
    args = tuple([as_array(a) if _is_sequence(a) else a for a in args])
    if func is np.searchsorted:
        args, kwargs = _in_order(*args, **kwargs)
    box = innermost(tuple([a for a in (*args, *kwargs.values()) if staged(a)]))
    assert isinstance(box, Traced)
    while box.known:
        box = box.now().v
    return box.level.constant_call(ours, func, args, kwargs)


def _in_order(a: Value, v: Shaped, side: str = "left", sorter: Shaped | None = None) -> Any:
    """The arguments of np.searchsorted without staged positions that sort the array."""
    if not staged(sorter):
        return (a, v, side, sorter), {}
    if type_of(sorter).shape != type_of(a).shape:
        raise ValueError("sorter.size must equal a.size")
    return (op("index")(a, at=(sorter,)), v, side), {}


def constant_call(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A locally constant function of the plain values."""
    y = func(*map(plain_deep, args), **{k: plain_deep(v) for k, v in kwargs.items()})
    for part in y if isinstance(y, list | tuple) else (y,):
        if isinstance(part, np.ndarray):
            for a in (*args, *kwargs.values()):
                if isinstance(a, Array):
                    _give(part, a)
    return y


def _give(view: np.ndarray, source: Array) -> None:
    """A plain result that is a view of an array of constants: neither may be written any more."""
    content = plain(source)
    if np.may_share_memory(view, content):
        view.flags.writeable = False
        source.give(content)


def write_out(out: Any, value: Shaped, spreads: bool = False) -> Any:
    """Write a result into the user's `out=`, over which that of a ufunc may be broadcast."""
    if isinstance(value, tuple) and isinstance(out, tuple):
        pairs = zip(out, value, strict=True)
        return tuple([v if o is None else write_out(o, v, spreads) for o, v in pairs])
    target = out[0] if isinstance(out, tuple) else out
    if not isinstance(target, Array) and not isinstance(value, Traced):
        target[...] = value
        return target
    if not isinstance(target, Array):
        raise DetachError(
            "what out= or an operator such as += writes is a plain array, which cannot hold the "
            f"derivative of a traced {type_of(value)}; make it with np.zeros, np.array(a) or "
            "np.copy(a), not a.copy(), in the differentiated function, or leave out= away"
        )
    if not spreads and type_of(value).shape != tuple(target.shape):
        raise ShapeError(f"out= has the shape {target.shape}, and the result is {type_of(value)}")
    both = np.broadcast_shapes(type_of(value).shape, tuple(target.shape))
    if both != tuple(target.shape):
        np.add(np.empty(both), 0.0, out=np.empty(target.shape))  # raises NumPy's error
    target[...] = value
    return target


def _set_real(self: Any, value: Array) -> None:
    complex_ = self.dtype.kind == "c"
    self[...] = op("of_parts")(as_array(value), op("imag")(self)) if complex_ else value


def _set_imag(self: Any, value: Array) -> None:
    if self.dtype.kind != "c":
        raise TypeError("array does not have imaginary part to set")
    self[...] = op("of_parts")(op("real")(self), as_array(value))


Array.real = Traced.real.setter(_set_real)  # type: ignore[assignment, attr-defined]
Array.imag = Traced.imag.setter(_set_imag)  # type: ignore[assignment, attr-defined]


# --- methods ----------------------------------------------------------------------------------


def _method(function: Callable[..., Any], name: str) -> Any:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return call_foreign(function, (self, *args), kwargs)

    method.__name__ = name
    method.__doc__ = f"As np.{name}."
    return method


_REDUCTIONS = (np.sum, np.mean, np.prod, np.max, np.min, np.std, np.var, np.cumsum, np.cumprod)
_MOVES = (np.ravel, np.swapaxes, np.squeeze, np.repeat, np.take, np.trace, np.diagonal)
_CONSTANTS = (np.argmax, np.argmin, np.argsort, np.nonzero, np.all, np.any, np.searchsorted)
_CONSTANTS += (np.argpartition, np.round)
for _function in (*_REDUCTIONS, *_MOVES, *_CONSTANTS, np.dot, np.clip):
    setattr(Array, _function.__name__, _method(_function, _function.__name__))
    setattr(Scalar, _function.__name__, _method(_function, _function.__name__))


def _sum(self: Any, *args: Any, **kwargs: Any) -> Any:
    if not args and not kwargs and self.shape:
        return self.total()
    return call_foreign(np.sum, (self, *args), kwargs)


def _choose(self: Any, *choices: Any, out: object = None, mode: str = "raise") -> Any:
    """As np.choose."""
    listed = choices[0] if len(choices) == 1 else choices
    return call_foreign(np.choose, (self, listed), {"out": out, "mode": mode})


def _compress(self: Any, condition: Value, axis: Axis = None, out: object = None) -> Any:
    """As np.compress."""
    return call_foreign(np.compress, (condition, self, axis, out), {})


def _partition(self: Any, kth: object, axis: int = -1, kind: str = "introselect") -> None:
    """Partition in place."""
    operator.index(axis)  # NumPy's method takes no None
    self[...] = call_foreign(np.partition, (self, kth, axis, kind), {})


def _conjugate(self: Any, out: object = None) -> Any:
    """As np.conjugate."""
    y = Traced.conjugate(self)
    return y if out is None else write_out(out, y)


def _wrap(self: Any, array: Shaped, context: object = None, return_scalar: object = None) -> Any:
    """The array, or its element as a number where the arguments were numbers."""
    array = array.view(np.ndarray) if isinstance(array, np.ndarray) else array
    number = not self.shape if return_scalar is None else return_scalar
    return array[()] if number and not array.shape else array


def _refusal(name: str, advice: str) -> Any:
    def refuse(self: object, *_: Any, **__: Any) -> Any:
        raise NoRuleError(f"{name}: a traced {type_of(self)} has no such method; {advice}")

    return refuse


Array.conjugate = Array.conj = _conjugate
Traced.__array_wrap__ = _wrap  # type: ignore[attr-defined]
Array.partition = _partition  # type: ignore[attr-defined]  # set, as those above
Array.resize = _refusal("resize", "x = np.resize(x, shape) makes another array")  # type: ignore[attr-defined]
Array.setflags = _refusal("setflags", "lineara keeps what it needs from being written")  # type: ignore[attr-defined]
Array.compress = Scalar.compress = _compress  # type: ignore[attr-defined]
Array.choose = Scalar.choose = _choose  # type: ignore[attr-defined]
_sum.__name__ = "sum"  # pint asks for it
for _name in ("reshape", "flatten"):
    setattr(Scalar, _name, getattr(Array, _name))
Array.sum = _sum  # type: ignore[attr-defined]  # the methods above are set, not declared
