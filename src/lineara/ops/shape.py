"""Structural primitives, which only move elements, and NumPy's functions of shapes and axes."""

import math
import operator
from types import FunctionType
from typing import Any

import numpy as np

from lineara.errors import NoRuleError, ShapeError
from lineara.facts.hints import Shaped, Value
from lineara.facts.primitive import (
    Box,
    Constant,
    Structural,
    batch_size,
    implements,
    op,
    primitive,
    real_part,
    reals,
    unbroadcast,
)
from lineara.facts.types import ArrayType, is_complex, type_of

AXES = 64  # of an array of NumPy's, at most


def _lengths(shape: tuple[Any, ...]) -> tuple[int, ...]:
    """A shape as a tuple of ints; a negative length is an error."""
    lengths = tuple(map(operator.index, shape))
    if any([n < 0 for n in lengths]):
        raise ShapeError(f"a shape has no negative lengths: {lengths}")
    return lengths


def _without(t: ArrayType, axis: int) -> tuple[int, ...]:
    """The lengths of all axes but one."""
    if not -t.ndim <= axis < t.ndim:
        raise ShapeError(f"{t} has no axis {axis}; it has {t.ndim}, which count from 0")
    axis %= t.ndim
    return (*t.shape[:axis], *t.shape[axis + 1 :])


@primitive
class reshape(Structural):
    """The elements of x in C order under another shape.  Transpose: the shape back."""

    view = True

    def result(self, x, *, shape):
        return ArrayType(_lengths(shape), type_of(x).dtype)

    def misfit(self, y, *types, **params):
        (x,) = types
        if y.size != x.size:
            return f"{x} has {x.size} elements, and {y} would have {y.size}"
        return None

    def evaluate(self, xp, /, x, *, shape):
        return xp.reshape(x, shape)

    def text(self, x, *, shape):
        return f"{x}.reshape({shape})"

    def transpose(self, y_bar, /, x, *, shape):
        return (reshape(y_bar, shape=x.shape),)

    def batch(self, args, batched, params):
        (x,) = args
        return reshape(x, shape=(x.shape[0], *params["shape"]))


@primitive
class permute_dims(Structural):
    """The axes in another order.  Transpose: the inverse permutation."""

    view = True

    def result(self, x, *, axes):
        t = type_of(x)
        if sorted(axes) != list(range(t.ndim)):
            raise ShapeError(
                f"permute_dims: {axes} is no order of the {t.ndim} axes of {t}; they count from 0, "
                "and each stands once"
            )
        return ArrayType(tuple(t.shape[i] for i in axes), t.dtype)

    def evaluate(self, xp, /, x, *, axes):
        return xp.permute_dims(x, axes)

    def text(self, x, *, axes):
        return f"{x}.transpose({axes})"

    def transpose(self, y_bar, /, x, *, axes):
        return (permute_dims(y_bar, axes=tuple(int(i) for i in np.argsort(axes))),)

    def batch(self, args, batched, params):
        return permute_dims(args[0], axes=(0, *(i + 1 for i in params["axes"])))


@primitive
class broadcast_to(Structural):
    """x repeated along new or unit axes.  Transpose: the sum over them."""

    view = True

    def result(self, x, *, shape):
        t, y = type_of(x), _lengths(shape)
        result = ArrayType(y, t.dtype)
        ahead = len(y) - t.ndim
        if ahead < 0 or any([m not in (1, n) for m, n in zip(t.shape, y[ahead:], strict=True)]):
            raise ShapeError(
                f"broadcast_to: {t} has not the last axes of {result}, or 1 in their place"
            )
        return result

    def transpose(self, y_bar, /, x, *, shape):
        return (unbroadcast(y_bar, x),)

    def batch(self, args, batched, params):
        (x,), shape = args, params["shape"]
        lead = len(shape) - (len(x.shape) - 1)
        if lead:
            x = reshape(x, shape=(x.shape[0], *(1,) * lead, *x.shape[1:]))
        return broadcast_to(x, shape=(x.shape[0], *shape))


@primitive
class astype(Structural):
    """x in another floating dtype; complex to real keeps the real part.  Transpose: back."""

    def result(self, x, *, dtype):
        return ArrayType(type_of(x).shape, np.dtype(dtype))

    def evaluate(self, xp, /, x, *, dtype):
        if xp is np:
            whole = np.dtype(dtype).kind in "cb"  # a number is true if one of its parts is
            return xp.asarray(x if whole else real_part(x)).astype(dtype)[()]
        x, to = xp.asarray(x), getattr(xp, np.dtype(dtype).name)
        if xp.isdtype(to, "bool"):
            return x != 0
        narrows = not xp.isdtype(to, "complex floating")
        x = xp.real(x) if narrows and xp.isdtype(x.dtype, "complex floating") else x
        return xp.astype(x, to)

    def transpose(self, y_bar, /, x, *, dtype):
        return (astype(y_bar, dtype=x.dtype),)

    def batch(self, args, batched, params):
        return self(*args, **params)


@primitive
class concat(Structural):
    """Arrays joined along an existing axis.  Transpose: the pieces of the cotangent."""

    linear = None

    def result(self, *arrays, axis):
        types = [type_of(a) for a in arrays]
        shape = list(types[0].shape)
        if isinstance(axis, bool):
            raise TypeError("concat: axis is a whole number")
        axis = operator.index(axis)
        rests = [_without(t, axis) for t in types]
        if len(set(rests)) > 1:
            raise ShapeError(
                f"concat: {', '.join(map(str, types))} do not join along axis {axis}; their other "
                "axes must be equal"
            )
        shape[axis] = sum(t.shape[axis] for t in types)
        return ArrayType(tuple(shape), np.result_type(*(t.dtype for t in types)))

    def evaluate(self, xp, /, *arrays, axis):
        return xp.concat(arrays, axis=axis)

    def arithmetic(self, y, args, params):
        return reals(y)

    def transpose(self, y_bar, /, *arrays, axis):
        stops = np.cumsum([a.shape[axis] for a in arrays]).tolist()
        lead = (slice(None),) * (axis % len(arrays[0].shape))
        starts = [0, *stops[:-1]]
        return tuple(y_bar[(*lead, slice(i, j))] for i, j in zip(starts, stops, strict=True))

    def batch(self, args, batched, params):
        axis = params["axis"]
        return concat(*spread(args, batched), axis=axis + 1 if axis >= 0 else axis)


@primitive
class stack(Structural):
    """Arrays of one shape joined along a new first axis.  Transpose: its rows."""

    linear = None

    def result(self, *arrays):
        types = [type_of(a) for a in arrays]
        if len({t.shape for t in types}) > 1:
            raise ShapeError(f"stack: {', '.join(map(str, types))} have not one shape")
        shape = (len(types), *types[0].shape)
        if len(shape) > AXES:
            raise ShapeError(f"stack: {len(shape)} axes would exceed the maximum, {AXES}")
        return ArrayType(shape, np.result_type(*(t.dtype for t in types)))

    def evaluate(self, xp, /, *arrays):
        stacked = xp.stack([xp.asarray(a) for a in arrays])
        return np.ascontiguousarray(stacked) if xp is np else stacked  # as np.array

    def arithmetic(self, y, args, params):
        return reals(y)

    def transpose(self, y_bar, /, *arrays):
        return tuple(y_bar[i] for i in range(len(arrays)))

    def batch(self, args, batched, params):
        stacked = stack(*spread(args, batched))
        return permute_dims(stacked, axes=(1, 0, *range(2, len(stacked.shape))))


@primitive
class checkpoint_name(Structural):
    """The identity, with a name that a checkpoint policy can select.  Transpose: itself."""

    view = True

    def result(self, x, *, name):
        return type_of(x)

    def evaluate(self, xp, /, x, *, name):
        return x

    def transpose(self, y_bar, /, x, *, name):
        return (y_bar,)

    def batch(self, args, batched, params):
        return self(*args, **params)


@primitive
class compiled(Constant):
    """The truth, which is given as False, that one place of a program after another is cheap.

    Machine code, whose loops cost nothing, answers for itself.
    """

    def result(self, no):
        return type_of(no)

    def evaluate(self, xp, /, no):
        return xp.asarray(no)

    def batch(self, args, batched, params):
        return self(*args)


def spread(args: tuple[Any, ...], batched: tuple[bool, ...]) -> list[Any]:
    """Every argument with a batch axis in front; unbatched ones are repeated."""
    size = batch_size(args, batched)
    arrays = [a if isinstance(a, Box) else np.asarray(a) for a in args]
    return [
        a if b else broadcast_to(a, shape=(size, *a.shape))
        for a, b in zip(arrays, batched, strict=True)
    ]


# --- NumPy's functions --------------------------------------------------------------------------


def normal_axis(axis: int, ndim: int, name: str) -> int:
    """The axis counted from the front, or an error that names the function."""
    axis = operator.index(axis)
    if not -ndim <= axis < ndim:
        raise ShapeError(
            f"{name}: the axis {axis} does not exist in an array of {ndim} "
            f"dimension{'s' * (ndim != 1)}; use one from {-ndim} to {ndim - 1}"
        )
    return axis % ndim


def normal_axes(axis: int | None, ndim: int, name: str) -> tuple[int, ...]:
    """Several axes counted from the front; all axes for None."""
    if axis is None:
        return tuple(range(ndim))
    listed = tuple(normal_axis(i, ndim, name) for i in sizes(axis))
    if len(set(listed)) < len(listed):
        raise ShapeError(f"{name}: the axes {axis} name one axis twice; give each once")
    return listed


def sizes(value: Any) -> tuple[int, ...]:
    """A shape (or several axes) as a tuple; one integer as a tuple of one."""
    listed = value if isinstance(value, tuple | list | range | np.ndarray) else (value,)
    if any([isinstance(n, bool) for n in listed]):
        raise TypeError("an integer is required")  # as NumPy says of what counts for one elsewhere
    return tuple(operator.index(n) for n in listed)


class HeldAsArray:
    """Base of lists whose items an array may hold."""

    __slots__ = ()

    def as_array(self) -> Any:
        """The array of the items, or None where there is none."""
        raise NotImplementedError


def as_array(a: Any) -> Any:
    """A traced value unchanged; nested sequences of traced values as one traced array."""
    if isinstance(a, Box):
        return a
    if isinstance(a, list | tuple):
        whole = a.as_array() if isinstance(a, HeldAsArray) else None
        if whole is not None:
            return whole
        return stack(*map(as_array, a)) if any_box(a) else np.asarray(a)
    a = told(a)
    return a if hasattr(a, "shape") else np.asarray(a)


_PLAIN = (np.ndarray, np.float64, list, tuple, float, int, complex, bool)


def told(obj: Value) -> Any:
    """The array of an object with `__array__`, which may be traced."""
    if type(obj) in _PLAIN:
        return obj
    tell: Any = getattr(type(obj), "__array__", None)
    tell = getattr(tell, "__wrapped__", tell)
    followed = type(tell) is FunctionType and type(tell.__globals__) is not dict  # a copy
    array = tell(obj) if followed else obj
    return array if hasattr(array, "shape") else obj


def as_floats(a: Shaped) -> Any:
    """The array; integers and booleans converted to float64."""
    a = as_array(a)
    return a if type_of(a).dtype.kind in "fc" else op("astype")(a, dtype=np.dtype(float))


def as_doubles(a: Shaped) -> Any:
    """The array in double precision, real or complex."""
    wide = np.result_type(type_of(a).dtype, float)
    return a if type_of(a).dtype == wide else op("astype")(a, dtype=wide)


def real_only(function: str, *values: Any) -> None:
    """Raise an error if a value is complex."""
    for v in values:
        if is_complex(as_array(v)):
            raise NoRuleError(
                f"{function}: takes real numbers, not {type_of(as_array(v))}; give it the real "
                "part, x.real, or a real and an imaginary part as two arguments"
            )


def any_box(values: list[Any] | tuple[Any, ...]) -> bool:
    """Whether one of the values is traced, also inside lists and tuples."""
    return any(isinstance(v, Box) or (isinstance(v, list | tuple) and any_box(v)) for v in values)


@implements(np.reshape)
def np_reshape(a, /, shape, order="C", *, copy=None):
    """The elements in another shape, of which one length may be -1; order C, F or A."""
    asked = shape = sizes(shape)
    size = type_of(a).size
    rest = math.prod(n for n in shape if n != -1)
    shape = tuple(size // rest if n == -1 and rest else n for n in shape)
    if math.prod(shape) != size or asked.count(-1) > 1:
        raise ShapeError(f"reshape: {type_of(a)} has {size} elements, which do not fill {asked}")
    if order not in ("C", "F", "A"):
        raise ValueError(f"order {order!r} is not permitted for reshaping")
    if order == "F" or (order == "A" and _in_fortran_order(a)):
        y = np_transpose(reshape(np_transpose(a), shape=shape[::-1]))
    else:
        y = reshape(a, shape=shape)
    return y.copy() if copy and type_of(y).shape else y


@implements(np.ravel)
def ravel(a, order="C"):
    """All elements along one axis: a view if memory has that order, else a copy."""
    if order == "K":
        return ravel(np_transpose(a, _outer_first(a)))
    order = "F" if order == "A" and _in_fortran_order(a) else "C" if order == "A" else order
    there = np_transpose(a) if order == "F" else a
    if not getattr(there, "in_order", True):
        return np_reshape(a, (-1,), order).copy()
    return np_reshape(a, (-1,) if type_of(a).size else (0,), order)


def _in_fortran_order(a: Value) -> bool:
    """Whether memory has Fortran order, and not C order as well."""
    lying(a)
    return not getattr(a, "in_order", True) and np_transpose(a).in_order


def lying(a: Value) -> Any:
    """The strides of a traced array for functions whose values depend on them; otherwise None."""
    ask = getattr(a, "lying", None)
    return ask() if callable(ask) else None


def _outer_first(a: Shaped) -> list[int]:
    """The axes from the outermost in memory to the innermost."""
    strides = lying(a)
    axes = range(type_of(a).ndim)
    if strides is None:
        return list(axes)
    if any([s == 0 and n > 1 for s, n in zip(strides, a.shape, strict=True)]):
        raise NoRuleError(
            f"ravel: the elements of {type_of(a)} share their memory, as those of broadcast_to do, "
            "so that its order 'K' is no order of its own; use 'C', or ravel a copy"
        )
    return sorted(axes, key=lambda i: -abs(strides[i]))


@implements(np.transpose, np.permute_dims)
def np_transpose(a, axes=None):
    """The axes in another order; reversed by default."""
    ndim = len(a.shape)
    axes = range(ndim)[::-1] if axes is None else normal_axes(axes, ndim, "transpose")
    if len(axes) != ndim:
        raise ShapeError(f"transpose: {len(axes)} axes for {type_of(a)}; name each of its {ndim}")
    return permute_dims(a, axes=tuple(axes))


@implements(np.swapaxes)
def swapaxes(a, axis1, axis2):
    """Two axes exchanged."""
    ndim = len(a.shape)
    i, j = (normal_axis(n, ndim, "swapaxes") for n in (axis1, axis2))
    axes = list(range(ndim))
    axes[i], axes[j] = j, i
    return permute_dims(a, axes=tuple(axes))


@implements(np.matrix_transpose, np.linalg.matrix_transpose)
def matrix_transpose(x, /):
    """The last two axes exchanged."""
    return swapaxes(x, -1, -2)


@implements(np.moveaxis)
def moveaxis(a, source, destination):
    """Axes moved to other places; the rest keep their order."""
    ndim = len(a.shape)
    src, dst = (normal_axes(v, ndim, "moveaxis") for v in (source, destination))
    order = [i for i in range(ndim) if i not in src]
    for d, s in sorted(zip(dst, src, strict=True)):
        order.insert(d, s)
    return permute_dims(a, axes=tuple(order))


@implements(np.rollaxis)
def rollaxis(a, axis, start=0):
    """The array with one axis moved in front of another."""
    ndim = len(a.shape)
    axis = normal_axis(axis, ndim, "rollaxis")
    if not -ndim <= start <= ndim:
        np.rollaxis(np.empty((0,) * ndim), axis, start)  # raises NumPy's error
    start = start + ndim if start < 0 else start
    return moveaxis(a, axis, start - (axis < start))


@implements(np.expand_dims)
def expand_dims(a, axis):
    """The array with new axes of length 1."""
    shape = list(a.shape)
    for i in sorted(normal_axes(axis, len(shape) + len(sizes(axis)), "expand_dims")):
        shape.insert(i, 1)
    return reshape(a, shape=tuple(shape))


@implements(np.squeeze)
def squeeze(a, axis=None):
    """The array without axes of length 1."""
    shape = a.shape
    if axis is None:
        return reshape(a, shape=tuple(n for n in shape if n != 1))
    axes = normal_axes(axis, len(shape), "squeeze")
    if any(shape[i] != 1 for i in axes):
        raise ShapeError(f"squeeze: axis {axis} of {type_of(a)} is not of length 1")
    return reshape(a, shape=tuple(n for i, n in enumerate(shape) if i not in axes))


@implements(np.broadcast_to)
def np_broadcast_to(array, shape, subok=False):
    """The array broadcast to a shape."""
    shape = sizes(shape)
    try:
        fits = np.broadcast_shapes(type_of(array).shape, shape) == shape
    except ValueError:
        fits = False
    if not fits:
        raise ShapeError(
            f"broadcast_to: {type_of(array)} does not broadcast to {shape}; "
            "trailing dimensions must be equal or 1"
        )
    return broadcast_to(array, shape=shape)


@implements(np.broadcast_arrays)
def broadcast_arrays(*args, subok=False):
    """The arrays broadcast to their common shape."""
    shape = np.broadcast_shapes(*(type_of(a).shape for a in args))
    return tuple(broadcast_to(a, shape=shape) for a in args)


@implements(np.flip)
def flip(m, axis=None):
    """The elements in reverse order along axes."""
    ndim = len(m.shape)
    turned = normal_axes(axis, ndim, "flip")
    return m[tuple(slice(None, None, -1 if i in turned else None) for i in range(ndim))]


@implements(np.flipud)
def flipud(m):
    """The rows in reverse order."""
    return flip(m, 0)


@implements(np.fliplr)
def fliplr(m):
    """The columns in reverse order."""
    return flip(m, 1)


@implements(np.rot90)
def rot90(m, k=1, axes=(0, 1)):
    """The array rotated by k quarter turns, from the first axis towards the second."""
    first, second = normal_axes(axes, len(m.shape), "rot90")
    for _ in range(k % 4):
        m = flip(swapaxes(m, first, second), first)
    return m


@implements(np.roll)
def roll(a, shift, axis=None):
    """Elements shifted cyclically along axes; a traced shift is taken as a constant integer."""
    shift = op("stop_gradient")(shift) if isinstance(shift, Box) else shift
    shifts: Any = shift if isinstance(shift, Box) else np.asarray(shift).astype(int)
    if axis is None:
        return reshape(roll(ravel(a), shift, 0), shape=a.shape)
    given = a
    for n, i in np.broadcast(shifts, sizes(axis)):
        size, i = a.shape[i], normal_axis(i, len(a.shape), "roll")
        split = -n % size if size else 0
        lead = (slice(None),) * i
        a = concat(a[(*lead, slice(split, None))], a[(*lead, slice(0, split))], axis=i)
    return a.copy(order="K") if a is given else a


@implements(np.repeat)
def repeat(a, repeats, axis=None):
    """Each element repeated, along an axis or of the flattened array."""
    if axis is None:
        a, axis = ravel(a), 0
    axis = normal_axis(axis, len(a.shape), "repeat")
    if isinstance(repeats, int | np.integer) and repeats >= 0:  # the transpose is then a plain sum
        left, right = a.shape[: axis + 1], a.shape[axis + 1 :]
        wide = broadcast_to(reshape(a, shape=(*left, 1, *right)), shape=(*left, repeats, *right))
        return reshape(wide, shape=(*left[:-1], left[-1] * int(repeats), *right))
    order = np.repeat(np.arange(a.shape[axis]), repeats)
    return op("index")(a, at=(*(slice(None),) * axis, order))


@implements(np.tile)
def tile(A, reps):
    """The array repeated as a block along its axes."""
    reps, shape = sizes(reps), type_of(A).shape
    ndim = max(len(reps), len(shape))
    reps, shape = ((1,) * (ndim - len(v)) + v for v in (reps, shape))
    paired = tuple(n for pair in zip(reps, shape, strict=True) for n in pair)
    split_axes = tuple(n for size in shape for n in (1, size))
    laid_out = broadcast_to(reshape(A, shape=split_axes), shape=paired)
    return reshape(laid_out, shape=tuple(r * n for r, n in zip(reps, shape, strict=True)))
