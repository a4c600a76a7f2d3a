"""NumPy's ufuncs on traced values: calls with out=, where=, dtype=; reduce, outer, at, ..."""

import functools
from collections.abc import Callable
from numbers import Number
from typing import Any

import numpy as np

from lineara.containers.points import is_labelled, is_quantity, operated
from lineara.errors import DetachError, NoRuleError
from lineara.facts.hints import DType, Leaf, Shaped, Value
from lineara.facts.primitive import Box, Constant, Elementwise, Primitive, op, registry
from lineara.facts.types import type_of
from lineara.ops.index import flat_positions, is_basic
from lineara.ops.products import along
from lineara.ops.shape import as_array, told
from lineara.ops.ufunc_methods import METHODS, WHOLE
from lineara.python.numpy_functions import (
    call_foreign,
    constant_call,
    declared,
    of_objects,
    write_out,
)
from lineara.python.numpy_layout import as_numpy_lays
from lineara.python.numpy_values import (
    UNANSWERED,
    asked,
    carried,
    failed,
    is_asked,
    is_composed,
    judged,
    of_constants,
    own_value,
)
from lineara.tape.node import (
    Array,
    Scalar,
    Traced,
    as_type,
    is_of_objects,
    plain,
    refuse_class,
    staged,
)
from lineara.tape.number_kinds import as_numpys, numpys
from lineara.tape.plans import GENERAL, by_plan

REFLECTED: dict[np.ufunc, str] = {
    np.add: "__radd__",
    np.subtract: "__rsub__",
    np.multiply: "__rmul__",
    np.divide: "__rtruediv__",
    np.power: "__rpow__",
    np.remainder: "__rmod__",
}


def apply_ufunc(
    ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """A NumPy ufunc, or one of its methods, on traced arguments."""
    if method == "__call__" and not kwargs:
        y = by_plan(ufunc, inputs, kwargs, judged)
        if y is not GENERAL:
            return y
    if any([is_labelled(a) for a in inputs]):
        labelled = _of_labelled(ufunc, method, inputs, kwargs)
        return getattr(ufunc, method)(*inputs, **kwargs) if labelled is NotImplemented else labelled
    if any([_answers_ufuncs(a) for a in inputs]):
        return getattr(ufunc, method)(*inputs, **kwargs)  # NumPy asks all of them
    act = ufunc if method == "__call__" else getattr(ufunc, method)
    if any(map(is_of_objects, inputs)) and not (method == "at" and isinstance(inputs[0], Array)):
        return of_objects(act, inputs, kwargs)
    y = of_constants(act, inputs, kwargs) if method != "at" else UNANSWERED
    if y is not UNANSWERED:
        return y
    ours = declared(ufunc).ours
    if ours is None:
        return call_foreign(
            ufunc if method == "__call__" else getattr(ufunc, method), inputs, kwargs
        )
    if method == "at":
        return _ufunc_at(ufunc, *inputs[:2], *map(as_array, inputs[2:]))
    count = 1 if method == "reduceat" else len(inputs)  # not the indices
    inputs = (*[_entered(ufunc, a) for a in inputs[:count]], *inputs[count:])
    out = kwargs.pop("out", None)
    boxed = out is Ellipsis  # out=... asks for an array, also without axes
    nothing = isinstance(out, tuple) and len(out) == ufunc.nout and not _outs(out)
    out = None if boxed or nothing else out
    try:
        if not all([isinstance(o, Box | np.ndarray) or _answers_ufuncs(o) for o in _outs(out)]):
            asked(act, inputs, kwargs, out, [])  # raises where out is no array
        if method == "__call__":
            result = _called(ufunc, ours, inputs, out, **kwargs)
        elif isinstance(ours, Constant) and not staged(inputs):
            result = constant_call(act, inputs, kwargs)
        else:
            run = functools.partial(METHODS[method], ufunc)
            whole = WHOLE.get(method, {}).get(ufunc)
            own = whole is None or is_asked(whole, inputs, kwargs, out)
            result = own_value(act, inputs, kwargs, run, out) if own else run(*inputs, **kwargs)
    except Exception as e:
        raise failed(act, inputs, kwargs, e, out) from None
    if out is not None:
        return write_out(out, result, spreads=method == "__call__")
    if boxed and issubclass(type(result), Scalar):
        return result.level.buffer(result.typed())
    turns = method == "__call__"
    if turns and kwargs.get("order", "K") == "K" and "axes" not in kwargs:
        return result
    return as_numpy_lays(getattr(ufunc, method), inputs, kwargs, result, turns=turns)


def _outs(out: object) -> list[Any]:
    """The arrays given as `out=`."""
    return [o for o in several(out) if o is not None]


def _entered(ufunc: np.ufunc, a: Shaped) -> Any:
    """An operand; sequences and what only says that it is an array become one."""
    if issubclass(type(a), list | tuple):
        return as_array(a)
    if not hasattr(type(a), "__array__") or isinstance(a, Box | np.ndarray | np.generic):
        return a
    if hasattr(type(a), "__array_wrap__"):
        refuse_class(ufunc.__name__, type(a))
    if not hasattr(a, "shape"):
        array = told(a)  # in a differentiation, perhaps an array of ours
        return a.__array__() if array is a else array
    return a


def _called(
    ufunc: Any,
    ours: Any,
    inputs: tuple[Any, ...],
    out: Any,
    where: Any = True,
    casting: str = "same_kind",
    dtype: DType = None,
    order: str = "K",
    subok: bool = True,
    **options: Any,
) -> Any:
    """A ufunc with the options that say where, in which dtype, and with which casts."""
    unknown = options.keys() - ({"axis", "axes"} if ufunc.signature else set())
    if unknown:
        raise NoRuleError(
            f"np.{ufunc.__name__} of a traced value takes no {min(unknown)}=; "
            "it takes out=, where= and dtype="
        )
    if dtype is not None or out is not None or casting != "same_kind":
        inputs = _in_dtype(ufunc, inputs, out, casting, dtype)
    if where is not True:
        return _called_where(ufunc, ours, inputs, out, where)
    if isinstance(ours, Constant) and not staged(inputs):
        return ufunc(*map(plain, inputs))
    if "axes" in options:
        return along(ours, ufunc.signature, inputs, options["axes"])
    inputs = as_numpys(inputs)
    if is_composed(ufunc) and not isinstance(ours, Primitive):
        return numpys(own_value(ufunc, inputs, options, ours))
    return numpys(ours(*inputs, **options))


def _in_dtype(
    ufunc: Any, inputs: tuple[Any, ...], out: Value | None, casting: str, dtype: Any
) -> tuple[Any, ...]:
    """The arguments as NumPy would cast them, or its error."""
    outs = [None] * ufunc.nout if out is None else out if isinstance(out, tuple) else (out,)
    kinds = [type(a) if type(a) in (int, float, complex) else _dtype(a) for a in inputs]
    given = (*kinds, *[None if o is None else _dtype(o) for o in outs])
    asked = (None,) * ufunc.nin + (None if dtype is None else np.dtype(dtype),) * ufunc.nout
    loop = ufunc.resolve_dtypes(given, signature=asked, casting=casting)
    if dtype is None:
        return inputs
    pairs = zip(inputs, loop[: ufunc.nin], strict=True)
    return tuple([_cast(a, t) for a, t in pairs])


def _dtype(value: Any) -> np.dtype:
    """The dtype with its order of bytes, which our types leave out."""
    dtype: np.dtype = value.dtype if hasattr(value, "dtype") else type_of(value).dtype
    return dtype


def _cast(value: Shaped, dtype: np.dtype) -> Any:
    """A value in another dtype; Python's numbers have none."""
    if isinstance(value, Traced):
        return value if value.dtype == dtype else as_type(value, dtype)
    return value.astype(dtype) if isinstance(value, np.ndarray | np.generic) else value


def _called_where(
    ufunc: np.ufunc, ours: Elementwise, inputs: tuple[Any, ...], out: Array | None, where: Any
) -> Any:
    """A ufunc on the elements that a mask selects; the others are not evaluated."""
    whole = np.broadcast_shapes(np.shape(where), *(type_of(a).shape for a in inputs))
    spread = registry.foreign[np.broadcast_to].ours
    if staged((where, *inputs)):
        y = ours(*inputs)
    else:
        lanes = whole or (1,)
        at = np.nonzero(np.broadcast_to(plain(where), lanes))
        part = [op("index")(spread(a, lanes), at=at) if type_of(a).shape else a for a in inputs]
        y = _called(ufunc, ours, tuple(part), None)
        back = [spread(v, at[0].shape) for v in several(y)]  # also where all are numbers
        back = [op("scatter")(v, at=at, shape=lanes) for v in back]
        back = back if whole else [op("reshape")(v, shape=()) for v in back]
        y = tuple(back) if isinstance(y, tuple) else back[0]
    if out is None and not staged((where, *inputs)):
        return y
    outs = several(out) if out is not None else (0,) * ufunc.nout
    kept = [op("where")(where, v, o) for v, o in zip(several(y), outs, strict=True)]
    return tuple(kept) if isinstance(y, tuple) else kept[0]


def several(value: Leaf) -> tuple[Any, ...]:
    """The results of a function that may give one or several."""
    return value if isinstance(value, tuple) else (value,)


def _ufunc_at(ufunc: Any, target: Any, at: Any, *values: Any) -> None:
    """Unbuffered in-place operation at an index: a place that is named twice is written twice."""
    if not isinstance(target, Array):
        raise DetachError(
            f"np.{ufunc.__name__}.at writes traced values into a plain array, which cannot hold "
            "their derivative; make the array inside the differentiated function"
        )
    if isinstance(at, Array | np.ndarray) and at.dtype.kind == "b":  # each place once
        target[at] = ufunc(target[at], *values)
        return
    sums = ufunc in (np.add, np.subtract) and target.dtype.kind != "b"
    if sums and values[0].dtype != object:  # else what is added is rounded at each turn
        sums = np.result_type(target.dtype, values[0].dtype) == target.dtype
        values = (values[0].astype(target.dtype),) if sums else values
    if sums and not target.known and not target.entered(values[0]):
        target.w.at_each(at, values[0] if ufunc is np.add else -values[0], None)
        return
    if is_basic(at):
        target[at] = ufunc(target[at], *values)
        return
    if staged(at if isinstance(at, tuple) else (at,)):
        ours = declared(ufunc).ours
        target.w.at_each(
            at, *(values or (np.zeros(()),)), lambda v, y: ours(v, *[y][: len(values)])
        )
        return
    flat = flat_positions(at, target.shape)
    values = tuple([registry.foreign[np.broadcast_to].ours(v, flat.shape) for v in values])
    if sums:
        places, which = np.unique(flat, return_inverse=True)
        summed = op("scatter")(values[0], at=(which.reshape(flat.shape),), shape=places.shape)
        index = np.unravel_index(places, target.shape)
        before = target[index]
        after = ufunc(before, summed)
        if not staged((before, summed)):  # NumPy adds them one after the other
            value = np.array(plain(before))
            ufunc.at(value, which.reshape(flat.shape), plain(values[0]))
            after = carried(after, value)
        target[index] = after
        return
    turn = _turns(flat.ravel())
    for i in range(max(turn, default=-1) + 1):
        now = np.flatnonzero(turn == i)
        index = np.unravel_index(flat.ravel()[now], target.shape)
        given = [registry.foreign[np.ravel].ours(v)[now] for v in values]
        target[index] = ufunc(target[index], *given)


def _turns(places: np.ndarray) -> np.ndarray:
    """How often each place has been named before."""
    order = np.argsort(places, kind="stable")
    first = np.searchsorted(places[order], places[order])
    turn = np.empty(places.size, int)
    turn[order] = np.arange(places.size) - first
    return turn


def _of_labelled(
    ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """A binary ufunc of a labelled array whose class defers to us; else NotImplemented."""
    simple = method == "__call__" and len(inputs) == 2 and not kwargs
    return operated(ufunc, *inputs) if simple else NotImplemented


def _answers_ufuncs(x: Value) -> bool:
    """Whether a value has a class of the user's that answers NumPy's ufuncs itself."""
    if isinstance(x, Box | np.ndarray | np.generic | Number) or is_quantity(x):
        return False
    return callable(getattr(type(x), "__array_ufunc__", None))


def _array_ufunc(self: Traced, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
    if any([is_labelled(a) for a in inputs]):
        return _of_labelled(ufunc, method, inputs, kwargs)
    if any([_answers_ufuncs(a) for a in inputs]):
        return NotImplemented
    if method == "__call__" and not kwargs and len(inputs) == 2:
        reflected = REFLECTED.get(ufunc)
        if reflected is not None and inputs[1] is self:  # a plain number or array on the left
            left = inputs[0]
            number = type(left) is np.float64 or type(left) is np.int64
            if number and self.shape and self.dtype == np.float64:
                left = left.item()
            return getattr(self, reflected)(left)
    return apply_ufunc(ufunc, method, inputs, kwargs)


def _array_function(
    self: Traced,
    func: Callable[..., Any],
    types: tuple[Any, ...],
    args: tuple[Any, ...],
    kwargs: dict[Any, Any],
) -> Any:
    for name, given, kind in (("args", args, tuple), ("kwargs", kwargs, dict)):
        if not isinstance(given, kind):
            raise TypeError(f"{name} must be a {kind.__name__}.")
    return call_foreign(func, args, kwargs)


Traced.__array_ufunc__ = _array_ufunc
Traced.__array_function__ = _array_function  # type: ignore[attr-defined]  # NumPy's protocols
