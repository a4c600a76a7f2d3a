"""NumPy functions that call a user's function on parts of an array: rows, pieces, elements."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lineara.errors import NoRuleError, ShapeError, with_article
from lineara.facts.hints import Shaped, Value
from lineara.facts.primitive import Box, implements, op, registry
from lineara.facts.types import type_of
from lineara.ops.join import takes_arrays
from lineara.ops.shape import any_box, as_array, moveaxis, normal_axis, sizes
from lineara.ops.value_checks import checked


@implements(np.apply_along_axis, always=True)
def apply_along_axis(func1d, axis, arr, *args, **kwargs):
    """The results of `func1d` on each vector along an axis, stacked in place of that axis."""
    arr = as_array(arr)
    ndim = type_of(arr).ndim
    axis = normal_axis(axis, ndim, "apply_along_axis")
    rows = moveaxis(arr, axis, -1)
    rest = type_of(rows).shape[:-1]
    if not math.prod(rest):
        raise ValueError("Cannot apply_along_axis when any iteration dimensions are 0")
    results = [func1d(rows[at], *args, **kwargs) for at in np.ndindex(rest)]
    if any([isinstance(v, np.ndarray) and type(v) is not np.ndarray for v in results]):
        raise NoRuleError(
            f"apply_along_axis: the function gives {with_article(type(results[0]).__name__)}, "
            "whose rules are not followed; let it give a plain array"
        )
    rows_made = list(map(as_array, results))
    inner = type_of(rows_made[0]).shape
    stacked = op("reshape")(op("stack")(*rows_made), shape=(*rest, *inner))
    here = tuple(range(axis, axis + len(inner)))
    y = moveaxis(stacked, tuple(range(len(rest), len(rest) + len(inner))), here)
    return y if type_of(y).shape else registry.array(np.zeros_like, (y,), {}, y)


@implements(np.apply_over_axes, always=True)
def apply_over_axes(func, a, axes):
    """Apply `func(array, axis)` for one axis after the other; reduced axes stay with length 1."""
    y = as_array(a)
    ndim = type_of(y).ndim
    for axis in sizes(axes):
        axis = normal_axis(axis, ndim, "apply_over_axes")
        new = as_array(func(y, axis))
        if type_of(new).ndim < ndim:
            new = registry.foreign[np.expand_dims].ours(new, axis)
        y = new
    return y


@implements(np.piecewise, always=True)
def piecewise(x, condlist, funclist, *args, **kw):
    """In each element the function (or number) of the condition that holds; else the last one."""
    x = as_array(x)
    if (isinstance(condlist, list | tuple) and condlist and np.ndim(condlist[0]) > 0) or (
        isinstance(condlist, list | tuple) and type_of(x).ndim == 0
    ):
        conditions = list(condlist)
    else:
        conditions = list(condlist) if np.ndim(condlist) > type_of(x).ndim else [condlist]
    n = len(conditions)
    if len(funclist) not in (n, n + 1):
        raise ValueError(f"with {n} condition(s), either {n} or {n + 1} functions are expected")
    if len(funclist) == n + 1:
        none = np.logical_not(conditions[0])
        for c in conditions[1:]:
            none = np.logical_and(none, np.logical_not(c))
        conditions.append(none)
    y: Any = op("broadcast_to")(np.zeros((), type_of(x).dtype), shape=type_of(x).shape)
    for condition, function in zip(conditions, funclist, strict=True):
        y = _piece(y, x, condition, function, args, kw)
    same = type_of(y) == type_of(x)
    y = y if same else _cut("piecewise", y, type_of(x).dtype)
    return registry.array(np.zeros_like, (x,), {}, y)


def _cut(name: str, y: Shaped, dtype: np.dtype) -> Any:
    """The results in NumPy's dtype; an error where that would cut traced values to integers."""
    if dtype.kind in "fc":
        return op("astype")(y, dtype=dtype)
    if isinstance(y, Box):
        raise NoRuleError(
            f"{name}: NumPy would cut the results to {dtype.name}, and they would not move; "
            + ("give it an array of floats" if name == "piecewise" else "give it otypes=[float]")
        )
    return y.astype(dtype)


def _piece(
    y: Shaped, x: Shaped, condition: Any, function: Value, args: tuple[Any, ...], kw: dict[Any, Any]
) -> Any:
    """`y` with one piece filled in.

    The function is called with the selected elements alone; if the condition is traced, with all
    elements, those not selected without derivative.
    """
    if not callable(function):
        return op("where")(condition, function, y)
    if isinstance(condition, Box) or not type_of(x).shape:
        hidden = op("where")(condition, x, op("stop_gradient")(x))
        return op("where")(condition, function(hidden, *args, **kw), y)
    at = np.nonzero(condition)
    if not at[0].size:
        return y
    values = as_array(function(op("index")(x, at=at), *args, **kw))
    values = op("broadcast_to")(values, shape=at[0].shape)
    return op("where")(condition, op("scatter")(values, at=at, shape=type_of(x).shape), y)


def choose(a: Any, choices: Sequence[Any], out: None = None, mode: str = "raise") -> Any:
    """In each element the value of `choices[a]` there, for an array of integers `a`."""
    listed = [c if type(c) in (int, float, complex) else as_array(c) for c in choices]
    n = len(listed)
    shape = np.broadcast_shapes(np.shape(a), *(type_of(c).shape for c in listed))
    a = np.clip(a, 0, n - 1) if mode == "clip" else np.mod(a, n) if mode == "wrap" else a
    if not isinstance(a, Box) and np.any((np.asarray(a) < 0) | (np.asarray(a) >= n)):
        raise ValueError("invalid entry in choice array")
    if not getattr(a, "known", True) and mode == "raise":
        fails = np.logical_or(np.less(a, 0), np.greater_equal(a, n))
        return _picked(
            checked(a, fails, ValueError, "invalid entry in choice array"), listed, shape
        )
    y = listed[0]
    for i in range(1, n):
        y = op("where")(op("equal")(a, i), listed[i], y)
    return registry.foreign[np.broadcast_to].ours(y, shape)


def _picked(a, listed, shape):
    """The same where a program finds the positions."""
    met = [c if type(c) in (int, float, complex) else type_of(c).dtype for c in listed]
    t = np.result_type(*met)
    spread = [registry.foreign[np.broadcast_to].ours(as_array(c), shape) for c in listed]
    table = op("stack")(*[op("astype")(c, dtype=t) for c in spread])
    return op("index")(table, at=(a, *np.ogrid[tuple(map(slice, shape))]))


takes_arrays(np.choose)(choose)


@implements(np.ndenumerate, always=True)
def ndenumerate(arr):
    """Pairs (position, element) for every element of the array."""
    arr = as_array(arr)
    return ((at, arr[at]) for at in np.ndindex(type_of(arr).shape))


class Vectorized:
    """np.vectorize: the function is called once for each element of the broadcast arguments."""

    signature: str | None
    pyfunc: Any
    otypes: str | None
    excluded: set[int | str]
    cache: bool

    def __init__(
        self,
        pyfunc: Any = np._NoValue,
        otypes: Any = None,
        doc: str | None = None,
        excluded: Any = None,
        cache: bool = False,
        signature: str | None = None,
    ) -> None:
        self.plainly: np.vectorize = np.vectorize(
            pyfunc, otypes, doc, excluded, cache, signature
        )  # or refuses
        self.options: tuple[Any, ...] = otypes, doc, excluded, cache, signature
        self.pyfunc, self.signature, self.cache = pyfunc, signature, cache
        self.otypes, self.excluded = self.plainly.otypes, self.plainly.excluded
        self.__name__: Any | str = getattr(pyfunc, "__name__", "vectorize")
        self.__doc__ = doc or pyfunc.__doc__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The results as an array; a tuple of arrays if the function returns tuples."""
        if self.pyfunc is np._NoValue:  # a decorator
            self.plainly(*args, **kwargs)
            return Vectorized(args[0], *self.options)
        if self.signature is not None:
            raise NoRuleError(
                "vectorize: signature= has no rule; loop over the leading axes, and np.stack what "
                "comes out"
            )
        varied = [i for i in range(len(args)) if i not in self.excluded]
        names = [k for k in kwargs if k not in self.excluded]
        values = [*[args[i] for i in varied], *[kwargs[k] for k in names]]
        filled, named = list(args), dict(kwargs)

        def call(*elements: Any) -> Any:
            for i, v in zip(varied, elements, strict=False):
                filled[i] = v
            named.update(zip(names, elements[len(varied) :], strict=True))
            return self.pyfunc(*filled, **named)

        return self._vectorized(call, values) if values else call()

    def _vectorized(self, call: Callable[..., Any], values: list[Any]) -> Any:
        """As NumPy does it: a call on the first elements says the dtypes, and a ufunc calls on."""
        dtypes, kept = self.otypes, []
        if dtypes is None:
            values = list(map(as_array, values))
            if not math.prod([type_of(v).size for v in values]):
                raise ShapeError("vectorize: the arguments have no elements to call it with")
            first = call(*map(_first, values))
            listed = first if isinstance(first, tuple) else (first,)
            dtypes = [type_of(as_array(v)).dtype.char for v in listed]
            kept = [first] if self.cache else kept
        each = np.frompyfunc(
            lambda *elements: kept.pop() if kept else call(*elements), len(values), len(dtypes)
        )
        results = each(*map(_objects, values))
        columns = [results] if len(dtypes) == 1 else results
        joined = [_joined(_in_object(c), np.dtype(t)) for c, t in zip(columns, dtypes, strict=True)]
        joined = [registry.array(_each, tuple(values), {}, m) for m in joined]
        return joined[0] if len(joined) == 1 else tuple(joined)


def _joined(results: np.ndarray, dtype: np.dtype) -> Any:
    """The results in NumPy's dtype."""
    if dtype.kind == "O" or not any_box(listed := results.ravel().tolist()):
        return results.astype(dtype, copy=False)
    if any([isinstance(v, Box) and type_of(v).shape for v in listed]):
        raise ValueError("setting an array element with a sequence.")
    joined = op("reshape")(as_array(listed), shape=results.shape)
    return joined if type_of(joined).dtype == dtype else _cut("vectorize", joined, dtype)


def _each(*values: Any) -> Any:
    """NumPy's ufunc of one element each, by which the class of the results is decided."""
    return np.frompyfunc(lambda *_: 0, len(values), 1)(*values)


def _first(values: Shaped) -> Any:
    """The first element, as NumPy's number."""
    if type_of(values).shape:
        return values[(0,) * type_of(values).ndim]
    return op("reshape")(values, shape=()) if isinstance(values, Box) else values[()]


def _objects(value: Shaped) -> np.ndarray:
    """The elements, as Python's numbers, in an array of objects."""
    if not any_box([value]):
        return np.asanyarray(value, dtype=object)
    value = as_array(value)
    shape, lay = type_of(value).shape, getattr(value, "lay", ())  # the ufunc calls in that order
    axes = sorted(range(len(shape)), key=lambda i: -abs(lay[i]) if lay else i)
    results = np.empty([shape[i] for i in axes], object).transpose(np.argsort(axes).astype(int))
    for at in np.ndindex(results.shape):
        results[at] = (value[at] if at else _first(value)).item()
    return results


def _in_object(results: object) -> np.ndarray:
    """The array of objects; one of an object that NumPy gave as it is."""
    if type(results) is np.ndarray and results.dtype.kind == "O" and results.ndim:
        return results
    whole = np.empty((), object)
    whole[()] = results
    return whole


implements(np.vectorize, always=True)(Vectorized)
