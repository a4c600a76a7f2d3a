"""Reductions: sum and cumsum are linear; prod, max and min state a jvp; the rest is written with them."""

import operator
from typing import Any

import numpy as np

from lineara.errors import NoRuleError, ShapeError
from lineara.ops.shape import normal_axis
from lineara.primitive import General, Linear, implements, op, primitive
from lineara.types import ArrayType, type_of


def _kept(shape: tuple[int, ...], axis: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(1 if i in axis else n for i, n in enumerate(shape))


def _left(shape: tuple[int, ...], axis: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(n for i, n in enumerate(shape) if i not in axis)


def axes(axis: Any, ndim: int, name: str) -> tuple[int, ...]:
    """The axes to reduce over, counted from the front."""
    if axis is None:
        return tuple(range(ndim))
    listed = axis if isinstance(axis, tuple | list) else (axis,)
    return tuple(normal_axis(operator.index(i), ndim, name) for i in listed)


@primitive
class sum_(Linear):
    """Sum over axes.  Transpose: broadcast."""

    def result(self, x, *, axis, keepdims):
        t = type_of(x)
        axis = axes(axis, t.ndim, "sum")
        return ArrayType((_kept if keepdims else _left)(t.shape, axis), t.dtype)

    def evaluate(self, xp, /, x, *, axis, keepdims):
        return xp.sum(x, axis=axis, keepdims=keepdims)

    def transpose(self, y_bar, /, x, *, axis, keepdims):
        return (spread_back(y_bar, x, axes(axis, x.ndim, "sum")),)

    def batch(self, args, batched, params):
        (x,) = args
        axis = tuple(i + 1 for i in axes(params["axis"], len(x.shape) - 1, "sum"))
        return sum_(x, axis=axis, keepdims=params["keepdims"])


def spread_back(y: Any, x: ArrayType, axis: tuple[int, ...]) -> Any:
    """The value of a reduction repeated over the axes that it reduced."""
    kept = _kept(x.shape, axis)
    if type_of(y).shape != kept:
        y = op("reshape")(y, shape=kept)
    return op("broadcast_to")(y, shape=x.shape)


@primitive
class cumsum(Linear):
    """Running sum along one axis.  Transpose: the running sum from the other end."""

    def result(self, x, *, axis):
        return type_of(x)

    def evaluate(self, xp, /, x, *, axis):
        return xp.cumsum(x, axis=axis)

    def transpose(self, y_bar, /, x, *, axis):
        turn = (*(slice(None),) * axis, slice(None, None, -1))
        return (cumsum(y_bar[turn], axis=axis)[turn],)

    def batch(self, args, batched, params):
        return cumsum(args[0], axis=params["axis"] + 1)


@primitive
class prod(General):
    """Product over axes."""

    def result(self, x, *, axis, keepdims):
        return sum_.result(x, axis=axis, keepdims=keepdims)

    def jvp(self, y, primals, tangents, /, *, axis, keepdims):
        (x,), (x_dot,) = primals, tangents
        return op("sum")(x_dot * _others(x, axis), axis=axis, keepdims=keepdims)


def _others(x: Any, axis: Any) -> Any:
    """At each element the product of the other ones: exact also where elements are zero."""
    shape = type_of(x).shape
    axis = axes(axis, len(shape), "prod")
    rest = [i for i in range(len(shape)) if i not in axis]
    order = (*rest, *axis)
    moved = op("permute_dims")(x, axes=order)
    rows = op("reshape")(moved, shape=(*(shape[i] for i in rest), -1 if 0 not in shape else 0))
    before, after = _running(rows, forward=True), _running(rows, forward=False)
    back = op("reshape")(before * after, shape=tuple(shape[i] for i in order))
    return op("permute_dims")(back, axes=tuple(int(i) for i in np.argsort(order)))


def _running(rows: Any, forward: bool) -> Any:
    """Products of the elements before (after) each one along the last axis, by doubling: O(n log n)."""
    n = type_of(rows).shape[-1]
    one = np.ones((*type_of(rows).shape[:-1], 1))
    if n == 0:
        return rows
    found = op("concat")(*((one, rows[..., :-1]) if forward else (rows[..., 1:], one)), axis=-1)
    step = 1
    while step < n:
        ones = np.ones((*type_of(rows).shape[:-1], step))
        if forward:
            found = found * op("concat")(ones, found[..., :-step], axis=-1)
        else:
            found = found * op("concat")(found[..., step:], ones, axis=-1)
        step *= 2
    return found


class Extremum(General):
    """max or min over axes; ties share the tangent equally, other lanes are structural zeros."""

    def result(self, x, *, axis, keepdims):
        return sum_.result(x, axis=axis, keepdims=keepdims)

    def jvp(self, y, primals, tangents, /, *, axis, keepdims):
        (x,), (x_dot,) = primals, tangents
        t = type_of(x)
        hit = op("equal")(x, spread_back(y, t, axes(axis, t.ndim, self.name)))
        count = np.sum(hit, axis=axis, keepdims=keepdims)
        return op("sum")(op("keep")(x_dot, hit), axis=axis, keepdims=keepdims) / count


max_ = Extremum("max")
min_ = Extremum("min")


# --- NumPy's functions --------------------------------------------------------------------------


def _refuse(name: str, **given: Any) -> None:
    for key, value in given.items():
        if value is not None and value is not np._NoValue:
            raise NoRuleError(f"{name}: the argument `{key}` has no derivative rule; leave it out")


def _reduce(name: str, a: Any, axis: Any, keepdims: Any, where: Any, fill: Any) -> Any:
    """A reduction with NumPy's axis, keepdims and where."""
    t = type_of(a)
    if where is not None and where is not np._NoValue and where is not True:
        a = op("where")(where, a, fill)
    keepdims = False if keepdims is np._NoValue else bool(keepdims)
    return op(name)(a, axis=axes(axis, t.ndim, name), keepdims=keepdims)


@implements(np.sum)
def np_sum(a, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=None):
    """Sum over axes."""
    total = _reduce("sum", a, axis, keepdims, where, 0.0)
    total = total if dtype is None else op("astype")(total, dtype=np.dtype(dtype))
    return total if initial in (None, np._NoValue) else total + initial


@implements(np.prod)
def np_prod(a, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=None):
    """Product over axes."""
    _refuse("prod", dtype=dtype, out=out)
    product = _reduce("prod", a, axis, keepdims, where, 1.0)
    return product if initial in (None, np._NoValue) else product * initial


@implements(np.max, np.amax)
def np_max(a, axis=None, out=None, keepdims=False, initial=None, where=None):
    """Largest over axes."""
    return _extremum("max", a, axis, keepdims, initial, where)


@implements(np.min, np.amin)
def np_min(a, axis=None, out=None, keepdims=False, initial=None, where=None):
    """Smallest over axes."""
    return _extremum("min", a, axis, keepdims, initial, where)


def _extremum(name: str, a: Any, axis: Any, keepdims: Any, initial: Any, where: Any) -> Any:
    if type_of(a).size == 0:
        raise ShapeError(f"{name}: {type_of(a)} has no elements; give it at least one")
    none = -np.inf if name == "max" else np.inf
    found = _reduce(name, a, axis, keepdims, where, none)
    if initial in (None, np._NoValue):
        return found
    return op(f"{name}imum")(found, initial)


@implements(np.ptp)
def ptp(a, axis=None, out=None, keepdims=False):
    """Largest minus smallest."""
    return np_max(a, axis, keepdims=keepdims) - np_min(a, axis, keepdims=keepdims)


def _count(a: Any, axis: Any, where: Any) -> Any:
    t = type_of(a)
    if where is None or where is np._NoValue or where is True:
        return int(np.prod([t.shape[i] for i in axes(axis, t.ndim, "mean")]))
    return np.sum(np.broadcast_to(where, t.shape), axis=axis)


@implements(np.mean)
def mean(a, axis=None, dtype=None, out=None, keepdims=False, *, where=None):
    """Mean over axes."""
    if where is None or where is np._NoValue:
        return np_sum(a, axis, dtype, keepdims=keepdims) / _count(a, axis, where)
    count = np.sum(np.broadcast_to(where, type_of(a).shape), axis=axis, keepdims=bool(keepdims))
    return np_sum(a, axis, dtype, keepdims=keepdims, where=where) / count


@implements(np.average)
def average(a, axis=None, weights=None, returned=False, *, keepdims=False):
    """Weighted mean."""
    if weights is None:
        return mean(a, axis, keepdims=keepdims)
    if axis is not None and len(type_of(weights).shape) != len(type_of(a).shape):
        shape = [1] * len(type_of(a).shape)
        shape[axis] = -1
        weights = op("reshape")(weights, shape=tuple(shape))
    scale = np_sum(weights * np.ones(type_of(a).shape), axis, keepdims=keepdims)
    found = np_sum(a * weights, axis, keepdims=keepdims) / scale
    return (found, scale) if returned else found


@implements(np.var)
def var(
    a,
    axis=None,
    dtype=None,
    out=None,
    ddof=0,
    keepdims=False,
    *,
    where=None,
    mean=None,
    correction=None,
):
    """Mean squared distance from the mean."""
    _refuse("var", out=out, where=where, mean=mean)
    ddof = ddof if correction in (None, np._NoValue) else correction
    t = type_of(a)
    centred = a - np_sum(a, axis, keepdims=True) / _count(a, axis, None)
    squares = op("abs")(centred) ** 2 if t.dtype.kind == "c" else centred * centred
    return np_sum(squares, axis, dtype, keepdims=keepdims) / (_count(a, axis, None) - ddof)


@implements(np.std)
def std(
    a,
    axis=None,
    dtype=None,
    out=None,
    ddof=0,
    keepdims=False,
    *,
    where=None,
    mean=None,
    correction=None,
):
    """Square root of the variance."""
    return op("sqrt")(
        var(a, axis, dtype, out, ddof, keepdims, where=where, mean=mean, correction=correction)
    )


@implements(np.cumsum)
def np_cumsum(a, axis=None, dtype=None, out=None):
    """Running sum along an axis."""
    if axis is None:
        a, axis = op("reshape")(a, shape=(type_of(a).size,)), 0
    return cumsum(a, axis=normal_axis(axis, len(type_of(a).shape), "cumsum"))


@implements(np.cumprod)
def cumprod(a, axis=None, dtype=None, out=None):
    """Running product along an axis."""
    if axis is None:
        a, axis = op("reshape")(a, shape=(type_of(a).size,)), 0
    axis = normal_axis(axis, len(type_of(a).shape), "cumprod")
    lead = (slice(None),) * axis
    rows = [a[(*lead, slice(0, 1))]]
    for i in range(1, type_of(a).shape[axis]):
        rows.append(rows[-1] * a[(*lead, slice(i, i + 1))])
    return op("concat")(*rows, axis=axis)
