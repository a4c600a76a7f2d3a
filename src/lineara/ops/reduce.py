"""Reductions: the primitives sum, cumsum, prod, max and min, and NumPy's functions of them."""

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lineara.errors import ShapeError
from lineara.facts.hints import DType, Shaped, Value
from lineara.facts.primitive import (
    Box,
    Constant,
    Elementwise,
    General,
    Linear,
    aligned,
    batch_size,
    conjugate,
    implements,
    lost,
    op,
    primitive,
    reals,
)
from lineara.facts.types import ArrayType, is_complex, type_of
from lineara.ops.elementwise import real_dtype, root
from lineara.ops.index import line
from lineara.ops.shape import as_array, normal_axes

# In primitives, a reduction's `axis` is a tuple of axes counted from the front.

LARGE = 2**15  # elements from which a pass over memory costs more than a few calls


def reduced(name: str, x: ArrayType, axis: tuple[Any, ...], keepdims: bool) -> ArrayType:
    """The type of a reduction's result."""
    t = type_of(x)
    fine = type(axis) is tuple and not any([isinstance(i, bool) for i in axis])
    if not fine or not isinstance(keepdims, bool | np.bool_):
        raise TypeError(f"{name}: axis is a tuple of whole numbers, and keepdims true or false")
    axis = tuple(map(operator.index, axis))
    if len(set(axis)) < len(axis) or any([not 0 <= i < t.ndim for i in axis]):
        raise ShapeError(
            f"{name}: {t} has not the axes {axis}; it has {t.ndim}, which count from 0, and each "
            "stands once"
        )
    left = tuple(n for i, n in enumerate(t.shape) if i not in axis)
    return ArrayType(_kept(t.shape, axis) if keepdims else left, t.dtype)


def _kept(shape: tuple[int, ...], axis: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(1 if i in axis else n for i, n in enumerate(shape))


def wide(dtype: np.dtype) -> np.dtype:
    """The dtype in which NumPy sums and multiplies: 64 bits for smaller integers."""
    return np.add.reduce(np.zeros(0, dtype)).dtype


def _next(params: dict[str, Any]) -> dict[str, Any]:
    """The parameters of a reduction of an array that has a batch axis in front."""
    return params | {"axis": tuple(i + 1 for i in params["axis"])}


@primitive
class sum_(Linear):
    """Sum over axes.  Transpose: broadcast."""

    def result(self, x, *, axis, keepdims):
        return ArrayType(reduced("sum", x, axis, keepdims).shape, wide(type_of(x).dtype))

    def evaluate(self, xp, /, x, *, axis, keepdims):
        return xp.sum(x, axis=axis, keepdims=keepdims)

    def text(self, x, *, axis, keepdims):
        return f"reduced({x}, {axis}, None, None, {keepdims})"

    def arithmetic(self, y, args, params):
        return lost(y, args)  # an addition for each element that is reduced

    def transpose(self, y_bar, /, x, *, axis, keepdims):
        return (spread_back(y_bar, x, axis),)

    def batch(self, args, batched, params):
        return sum_(*args, **_next(params))


def spread_back(y: Shaped, x: ArrayType, axis: tuple[int, ...]) -> Any:
    """The value of a reduction repeated over the axes that it reduced."""
    kept = _kept(x.shape, axis)
    if not isinstance(y, Box) and type_of(y).dtype != x.dtype:
        y = np.asarray(y, np.result_type(x.dtype, np.complex64) if np.iscomplexobj(y) else x.dtype)
    if type_of(y).shape != kept:
        y = op("reshape")(y, shape=kept)
    return op("broadcast_to")(y, shape=x.shape)


@primitive
class cumsum(Linear):
    """Running sum along one axis.  Transpose: the running sum from the other end."""

    def result(self, x, *, axis, reverse=False):
        reduced("cumsum", x, (axis,), reverse)
        return ArrayType(type_of(x).shape, wide(type_of(x).dtype))

    def evaluate(self, xp, /, x, *, axis, reverse=False):
        total = np.cumsum if xp is np else xp.cumulative_sum
        if reverse:
            return xp.flip(total(xp.flip(x, axis=axis), axis=axis), axis=axis)
        return total(x, axis=axis)

    def arithmetic(self, y, args, params):
        return reals(y) - reals(y) // max(1, y.shape[params["axis"]])

    def transpose(self, y_bar, /, x, *, axis, reverse=False):
        return (cumsum(y_bar, axis=axis, reverse=not reverse),)

    def batch(self, args, batched, params):
        return cumsum(args[0], **params | {"axis": params["axis"] + 1})


@primitive
class cumprod(General):
    """Running product along one axis, from the left."""

    def result(self, x, *, axis):
        return cumsum.result(x, axis=axis)

    def evaluate(self, xp, /, x, *, axis):
        return (np.cumprod if xp is np else xp.cumulative_prod)(x, axis=axis)

    def arithmetic(self, y, args, params):
        return cumsum.arithmetic(y, args, params)

    def jvp(self, y, primals, tangents, /, *, axis):
        (x,), (x_dot,) = primals, tangents  # y_i = x_i y_(i-1)
        before = _beside(1, _less(y, axis, False), y, axis, False)
        return recurrence(_less(x, axis, True), before * x_dot, axis=axis)

    def batch(self, args, batched, params):
        return cumprod(args[0], axis=params["axis"] + 1)


FEW = 64  # lanes up to which Python's numbers are faster than rows of NumPy's


def _recurred(factors: Any, terms: Any, times: Callable[[Any, Any], Any]) -> list[Any]:
    """Each term, plus the factor before it times what came out before."""
    rows = [*terms[:1]]
    for factor, term in zip(factors, terms[1:], strict=True):
        rows.append(times(factor, rows[-1]) + term)
    return rows


@primitive
class recurrence(Linear):
    """z with z_i = a_(i-1) z_(i-1) + b_i along an axis, or from its end, linear in b.

    A zero z_(i-1) is structural: times an infinity it is zero.
    """

    host = True
    linear = (1,)

    def result(self, a, b, *, axis, reverse=False):
        s, t = type_of(a), reduced("recurrence", type_of(b), (axis,), reverse) and type_of(b)
        between = (*t.shape[:axis], max(t.shape[axis] - 1, 0), *t.shape[axis + 1 :])
        if s.shape != between:
            raise ShapeError(f"recurrence: {s} does not stand between the elements of {t}")
        return ArrayType(t.shape, np.result_type(s.dtype, t.dtype))

    def evaluate(self, xp, /, a, b, *, axis, reverse=False):
        z = np.empty(b.shape, np.result_type(a, b))
        a, b, into = (np.moveaxis(v, axis, 0)[:: -1 if reverse else 1] for v in (a, b, z))
        with np.errstate(all="ignore"):
            if math.prod(b.shape[1:]) > FEW:
                into[:] = _recurred(
                    a, b, lambda factor, last: np.where(last == 0, 0, factor * last)
                )
            else:
                for lane in np.ndindex(b.shape[1:]):
                    each = (..., *lane) if lane else ...
                    numbers = a[each].tolist(), b[each].tolist()
                    into[each] = _recurred(
                        *numbers, lambda factor, last: factor * last if last else 0
                    )
        return z

    def arithmetic(self, y, args, params):
        return 2 * reals(args[0])

    def transpose(self, y_bar, /, a, b, *, axis, reverse=False):
        return (recurrence(conjugate(a), y_bar, axis=axis, reverse=not reverse),)

    def linearize(self, y, args, active, params, recur):
        kind: Any = General if 0 in active else Linear
        return kind.linearize(self, y, args, active, params, recur)

    def jvp(self, y, primals, tangents, /, *, axis, reverse=False):
        (a, _), (a_dot, right) = primals, tangents
        if a_dot is not None:
            moved = _beside(0, a_dot * _less(y, axis, reverse), y, axis, reverse)
            right = moved if right is None else right + moved
        return recurrence(a, right, axis=axis, reverse=reverse)

    def batch(self, args, batched, params):
        size = batch_size(args, batched)
        both = [
            a if b else op("broadcast_to")(a, shape=(size, *type_of(a).shape))
            for a, b in zip(args, batched, strict=True)
        ]
        return recurrence(*both, **params | {"axis": params["axis"] + 1})


def _less(a: Shaped, axis: int, first: bool) -> Any:
    """An array without its first elements along an axis, or without its last."""
    return a[(*(slice(None),) * axis, slice(1, None) if first else slice(None, -1))]


def _beside(number: int, rest: Shaped, whole: Shaped, axis: int, after: bool) -> Any:
    """As many elements as the whole has, those that are not the rest's a number at that end."""
    shape, t = [*type_of(whole).shape], type_of(rest)
    shape[axis] -= t.shape[axis]
    parts = np.full(shape, number, t.dtype), rest
    return op("concat")(*(parts[::-1] if after else parts), axis=axis)


@primitive
class prod(General):
    """Product over axes."""

    def result(self, x, *, axis, keepdims):
        t = reduced("prod", x, axis, keepdims)
        return ArrayType(t.shape, wide(t.dtype))

    def arithmetic(self, y, args, params):
        return reals(args[0])

    def jvp(self, y, primals, tangents, /, *, axis, keepdims):
        (x,), (x_dot,) = primals, tangents
        return op("sum")(x_dot * _others(x, axis), axis=axis, keepdims=keepdims)

    def batch(self, args, batched, params):
        return prod(*args, **_next(params))


def _others(x: Shaped, axis: tuple[int, ...]) -> Any:
    """In each element the product of the others along the axes; exact where elements are zero."""
    shape = type_of(x).shape
    rows, order = lanes_last(x, axis)
    others = _running(rows, before=True) * _running(rows, before=False)
    back = op("reshape")(others, shape=tuple(shape[i] for i in order))
    return op("permute_dims")(back, axes=tuple(int(i) for i in np.argsort(order)))


def lanes_last(x: Shaped, axis: tuple[int, ...]) -> tuple[Any, tuple[int, ...]]:
    """x with the reduced axes merged into one, the last; and the order of the remaining axes."""
    shape = type_of(x).shape
    rest = tuple(i for i in range(len(shape)) if i not in axis)
    order = (*rest, *axis)
    lanes = math.prod(shape[i] for i in axis)
    moved = op("permute_dims")(x, axes=order)
    return op("reshape")(moved, shape=(*(shape[i] for i in rest), lanes)), order


def _running(rows: Shaped, before: bool) -> Any:
    """In each element the product of those before (after) it on the last axis; O(n log n)."""
    t = type_of(rows)
    n = t.shape[-1]

    def shifted(a: Shaped, step: int) -> Any:
        ones = np.ones((*t.shape[:-1], min(step, n)), t.dtype)
        parts = (ones, a[..., :-step]) if before else (a[..., step:], ones)
        return op("concat")(*parts, axis=-1)

    products, step = shifted(rows, 1), 1
    while step < n:
        products, step = products * shifted(products, step), 2 * step
    return products


@primitive
class attains(Constant):
    """Which elements of x are y, the extremum of their lane; where that is NaN, which are NaN."""

    def result(self, x, y):
        shape = np.broadcast_shapes(type_of(x).shape, type_of(y).shape)
        return ArrayType(shape, np.dtype(bool))

    def evaluate(self, xp, /, x, y):
        equal = xp.equal(x, y)
        if xp is np and x.size >= LARGE and not np.not_equal(y, y).any():
            return equal  # whole numbers have no NaN
        return xp.logical_or(equal, xp.not_equal(x, x))

    def batch(self, args, batched, params):
        return attains(*aligned(args, batched))


@primitive
class ties(Constant):
    """How many elements attain the extremum of their lane, each of which one does at least."""

    def result(self, hit, *, axis, keepdims, dtype):
        return ArrayType(reduced("ties", hit, axis, keepdims).shape, np.dtype(dtype))

    def evaluate(self, xp, /, hit, *, axis, keepdims, dtype):
        if xp is np and hit.size < LARGE:
            return np.add.reduce(hit, axis=axis, dtype=np.dtype(dtype), keepdims=keepdims)
        if xp is np:
            shape = reduced("ties", hit, axis, keepdims).shape
            if np.count_nonzero(hit) == math.prod(shape):
                return np.ones(shape, dtype)[()]
        to = getattr(xp, np.dtype(dtype).name)
        hit = hit if xp is np else xp.astype(hit, to)  # elsewhere flags are not added up
        return xp.astype(xp.sum(hit, axis=axis, keepdims=keepdims), to)

    def batch(self, args, batched, params):
        return ties(*args, **_next(params))


class Extremum(General):
    """max or min over axes; ties share the tangent equally, other lanes are structural zeros."""

    def result(self, x: Any, *, axis: tuple[int, ...], keepdims: bool) -> ArrayType:
        return reduced(self.name, x, axis, keepdims)

    def arithmetic(self, y: ArrayType, args: tuple[ArrayType, ...], params: dict[str, Any]) -> int:
        return reals(args[0])

    def jvp(
        self,
        y: Shaped,
        primals: Sequence[Any],
        tangents: Sequence[Any],
        /,
        *,
        axis: tuple[int, ...],
        keepdims: bool,
    ) -> Any:
        (x,), (x_dot,) = primals, tangents
        t = type_of(x)
        hit = attains(x, op("reshape")(y, shape=_kept(t.shape, axis)))
        count = ties(hit, axis=axis, keepdims=keepdims, dtype=t.dtype)
        return op("sum")(op("keep")(x_dot, hit), axis=axis, keepdims=keepdims) / count

    def batch(
        self, args: tuple[Any, ...], batched: tuple[bool, ...], params: dict[str, Any]
    ) -> Any:
        return self(*args, **_next(params))


max_: Extremum = Extremum("max")
min_: Extremum = Extremum("min")


# --- NumPy's functions --------------------------------------------------------------------------


def given(option: object) -> bool:
    """Whether an optional argument was given: it is neither None nor np._NoValue."""
    return option is not None and option is not np._NoValue


def reduced_axes(axis: int | None, ndim: int, name: str) -> tuple[int, ...]:
    """The axes to reduce, counted from the front; a scalar accepts 0 and -1, as in NumPy."""
    return () if not ndim and axis in (0, -1) else normal_axes(axis, ndim, name)


def _reduce(
    name: str, a: Shaped, axis: Any, keepdims: bool, where: Shaped | None, fill: float
) -> Any:
    """The reduction `name` with NumPy's arguments axis, keepdims and where."""
    axis = reduced_axes(axis, len(type_of(a).shape), name)
    if given(where) and where is not True:
        a = op("where")(where, a, fill)
    return op(name)(a, axis=axis, keepdims=keepdims is not np._NoValue and bool(keepdims))


def _as(a: Value, dtype: DType) -> Any:
    return op("astype")(a, dtype=np.dtype(dtype)) if given(dtype) else a


def _kept_as(y: Shaped, dtype: DType) -> Any:
    """y converted to the dtype that the caller asked for, if any."""
    return y if not given(dtype) or type_of(y).dtype == np.dtype(dtype) else _as(y, dtype)


@implements(np.sum)
def np_sum(a, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=None):
    """Sum over axes."""
    total = _kept_as(_reduce("sum", _as(a, dtype), axis, keepdims, where, 0), dtype)
    return total + _begin(initial, total) if given(initial) else total


def _begin(initial: Any, like: Shaped) -> Any:
    """What a reduction begins with; of whole numbers NumPy begins with a whole number."""
    dtype = type_of(like).dtype
    whole = dtype.kind in "biu" and type_of(initial).dtype.kind in "fc"
    return op("astype")(as_array(initial), dtype=dtype) if whole else initial


@implements(np.prod)
def np_prod(a, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=None):
    """Product over axes."""
    product = _kept_as(_reduce("prod", _as(a, dtype), axis, keepdims, where, 1), dtype)
    return product * _begin(initial, product) if given(initial) else product


@implements(np.max, np.amax)
def np_max(a, axis=None, out=None, keepdims=False, initial=None, where=None):
    """The largest element over axes."""
    return _extremum("max", a, axis, keepdims, initial, where)


@implements(np.min, np.amin)
def np_min(a, axis=None, out=None, keepdims=False, initial=None, where=None):
    """The smallest element over axes."""
    return _extremum("min", a, axis, keepdims, initial, where)


def _extremum(
    name: str,
    a: Shaped,
    axis: int | None,
    keepdims: bool,
    initial: float | None,
    where: Shaped | None,
) -> Any:
    t = type_of(a)
    along = reduced_axes(axis, t.ndim, name)
    none = -np.inf if name == "max" else np.inf
    if not given(initial) and any(t.shape[i] == 0 for i in along):
        raise ShapeError(f"{name}: {t} has no elements; give it at least one, or initial=")
    if not given(initial):
        return _reduce(name, a, axis, keepdims, where, none)
    if any(t.shape[i] == 0 for i in along):
        shape = reduced(name, t, along, keepdims is True).shape
        return op("broadcast_to")(initial, shape=shape)
    y = _reduce(name, a, axis, keepdims, where, none)
    return op(f"{name}imum")(y, _begin(initial, a))


@implements(np.ptp)
def ptp(a, axis=None, out=None, keepdims=False):
    """Largest minus smallest."""
    return np_max(a, axis, keepdims=keepdims) - np_min(a, axis, keepdims=keepdims)


def _count(a: Shaped, axis: Any, where: Any = None, keepdims: bool = False) -> Any:
    """The number of elements that are reduced to each result."""
    shape = type_of(a).shape
    axis = reduced_axes(axis, len(shape), "mean")
    if not given(where):
        return math.prod(shape[i] for i in axis)
    chosen = np.broadcast_to(where, shape)
    real = real_dtype(type_of(a).dtype)
    dtype = real if real.kind == "f" else np.dtype(float)
    return np.sum(chosen, axis=axis, keepdims=bool(keepdims), dtype=dtype)


@implements(np.mean)
def mean(a, axis=None, dtype=None, out=None, keepdims=False, *, where=None):
    """Mean over axes; of half precision in single."""
    if type_of(a).dtype == np.float16 and not given(dtype):
        wide = mean(a, axis, np.float32, keepdims=keepdims, where=where)
        return op("astype")(wide, dtype=np.dtype(np.float16))
    total = np_sum(a, axis, dtype_of_mean(a, dtype), keepdims=keepdims, where=where)
    return per(total, _count(a, axis, where, keepdims))


def dtype_of_mean(a: Shaped, dtype: DType) -> DType:
    """The dtype in which NumPy sums for a mean: that asked for, and of whole numbers double."""
    whole = type_of(a).dtype.kind in "biu" and not given(dtype)
    return np.dtype(float) if whole else dtype


def per(total: Shaped, count: Shaped) -> Any:
    """total / count, in the precision of the total."""
    if type_of(count).shape or isinstance(count, Box):
        dtype = type_of(total).dtype
        return total / op("astype")(count, dtype=real_dtype(dtype) if dtype.kind in "fc" else float)
    return total / float(count)


@implements(np.average)
def average(a, axis=None, weights=None, returned=False, *, keepdims=False):
    """Mean over axes, weighted if weights are given."""
    if weights is None:
        y = mean(a, axis, keepdims=keepdims)
        scale = type_of(y).dtype.type(_count(a, axis))
    else:
        shape = type_of(a).shape
        along = normal_axes(axis, len(shape), "average")
        weights = as_array(weights)
        if axis is not None and type_of(weights).shape != shape:
            weights = _weights_along(weights, along, shape)
        weights = op("broadcast_to")(weights, shape=shape)
        own = type_of(a).dtype
        into = np.result_type(own, type_of(weights).dtype, float if own.kind in "biu" else own)
        a, weights = _kept_as(a, into), _kept_as(weights, into)
        scale = np_sum(weights, axis, keepdims=keepdims)
        y = np_sum(a * weights, axis, keepdims=keepdims) / scale
    if not returned:
        return y
    return y, op("broadcast_to")(scale, shape=type_of(y).shape)


def _weights_along(weights: Shaped, axis: tuple[int, ...], shape: tuple[int, ...]) -> Any:
    """Weights along the averaged axes, reshaped to the rank of the array."""
    if type_of(weights).shape != tuple(shape[i] for i in axis):
        raise ShapeError(
            f"average: weights {type_of(weights)} for the axes {axis} of an array of shape "
            f"{shape}; give them the shape of the array, or of the axes"
        )
    ordered = op("permute_dims")(weights, axes=tuple(int(i) for i in np.argsort(axis)))
    return op("reshape")(ordered, shape=tuple(n if i in axis else 1 for i, n in enumerate(shape)))


def _deviation(
    a: Shaped, axis: int | None, dtype: DType, where: Shaped | None, mean: Value | None
) -> Any:
    """The difference of each element from the mean."""
    if not given(mean):
        total = np_sum(a, axis, dtype, keepdims=True, where=where)
        mean = _kept_as(per(total, _count(a, axis, where, True)), type_of(total).dtype)
    return a - mean


def freed(ddof: int, correction: Value | None) -> Any:
    """How many numbers fewer are free than there are."""
    if given(correction) and ddof != 0:
        raise ValueError("ddof and correction can't be provided simultaneously.")
    return correction if given(correction) else ddof


def _freedom(
    a: Shaped,
    axis: int | None,
    where: Shaped | None,
    keepdims: bool,
    ddof: int,
    correction: Value | None,
) -> Any:
    """The number of elements minus ddof (or correction)."""
    count = _count(a, axis, where, keepdims is not np._NoValue and keepdims)
    left = count - freed(ddof, correction)
    return np.maximum(left, 0) if np.ndim(left) else max(left, 0)  # a plain number keeps dtypes


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
    dtype = dtype_of_mean(a, dtype)
    squares = modulus_squared(_deviation(a, axis, dtype, where, mean))
    total = np_sum(squares, axis, dtype, keepdims=keepdims, where=where)
    return per(total, _freedom(a, axis, where, keepdims, ddof, correction))


def modulus_squared(x: Shaped) -> Any:
    """|x|^2, smooth also for complex numbers."""
    return op("real")(x * op("conj")(x)) if is_complex(x) else x * x


@implements(np.std)
def std(*args, **options):
    """Square root of the variance; its slope is 0 where all elements are equal."""
    return root(var(*args, **options))


@implements(np.cumsum)
def np_cumsum(a, axis=None, dtype=None, out=None):
    """Running sum along an axis."""
    a, axis = line(_as(a, dtype), axis, "cumsum")
    return _kept_as(cumsum(a, axis=axis), dtype)


@implements(np.cumprod)
def np_cumprod(a, axis=None, dtype=None, out=None):
    """Running product along an axis."""
    a, axis = line(_as(a, dtype), axis, "cumprod")
    return _kept_as(cumprod(_kept_as(a, wide(type_of(a).dtype)), axis=axis), dtype)


def running(act: Elementwise, a: Shaped, axis: int) -> Any:
    """The running result of an associative operation along an axis; O(n log n)."""
    n, lead, step = type_of(a).shape[axis], (slice(None),) * axis, 1
    if n <= 1:
        return +a  # a copy
    while step < n:
        joined = act(a[(*lead, slice(None, -step))], a[(*lead, slice(step, None))])
        a, step = op("concat")(a[(*lead, slice(None, step))], joined, axis=axis), 2 * step
    return a


def cumulative(run: Callable[..., Any], start: float) -> Any:
    """Declare cumulative_sum or cumulative_prod from cumsum or cumprod and the neutral value."""

    def function(x, /, *, axis=None, dtype=None, out=None, include_initial=False):
        """The running result; with `include_initial` the neutral value is put first."""
        y = run(x, axis, dtype)
        if not include_initial:
            return y
        shape = list(type_of(y).shape)
        shape[axis or 0] = 1
        first = np.full(shape, start, type_of(y).dtype)
        return op("concat")(first, y, axis=axis or 0)

    return function


if hasattr(np, "cumulative_sum"):  # from NumPy 2.1
    implements(np.cumulative_sum)(cumulative(np_cumsum, 0.0))
    implements(np.cumulative_prod)(cumulative(np_cumprod, 1.0))
