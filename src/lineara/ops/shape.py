"""Structural primitives: they move elements; each forms a pair with its transpose."""

import operator
from typing import Any

import numpy as np

from lineara.errors import ShapeError
from lineara.primitive import Structural, batch_size, implements, op, primitive, unbroadcast
from lineara.types import ArrayType, type_of


@primitive
class reshape(Structural):
    """The elements of x in C order under another shape.  Transpose: the shape back."""

    def result(self, x, *, shape):
        return ArrayType(tuple(shape), type_of(x).dtype)

    def evaluate(self, xp, /, x, *, shape):
        return xp.reshape(x, shape)

    def transpose(self, y_bar, /, x, *, shape):
        return (reshape(y_bar, shape=x.shape),)

    def batch(self, args, batched, params):
        (x,) = args
        return reshape(x, shape=(x.shape[0], *params["shape"]))


@primitive
class permute_dims(Structural):
    """The axes in another order.  Transpose: the inverse permutation."""

    def result(self, x, *, axes):
        t = type_of(x)
        return ArrayType(tuple(t.shape[i] for i in axes), t.dtype)

    def evaluate(self, xp, /, x, *, axes):
        return xp.transpose(x, axes)

    def transpose(self, y_bar, /, x, *, axes):
        return (permute_dims(y_bar, axes=tuple(int(i) for i in np.argsort(axes))),)

    def batch(self, args, batched, params):
        return permute_dims(args[0], axes=(0, *(i + 1 for i in params["axes"])))


@primitive
class broadcast_to(Structural):
    """x repeated along new or unit axes.  Transpose: the sum over them."""

    def result(self, x, *, shape):
        return ArrayType(tuple(shape), type_of(x).dtype)

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
    """x in another floating dtype.  Transpose: the dtype back."""

    def result(self, x, *, dtype):
        return ArrayType(type_of(x).shape, np.dtype(dtype))

    def evaluate(self, xp, /, x, *, dtype):
        return xp.asarray(x).astype(dtype)[()]

    def transpose(self, y_bar, /, x, *, dtype):
        return (astype(y_bar, dtype=x.dtype),)

    def batch(self, args, batched, params):
        return self(*args, **params)


@primitive
class concat(Structural):
    """Arrays joined along an axis that exists.  Transpose: the pieces of it."""

    linear = None

    def evaluate(self, xp, /, *arrays, axis):
        return xp.concatenate(arrays, axis=axis)

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
    """Arrays of one shape joined along a new first axis.  Transpose: the rows of it."""

    linear = None

    def evaluate(self, xp, /, *arrays):
        return xp.stack([xp.asarray(a) for a in arrays])

    def transpose(self, y_bar, /, *arrays):
        return tuple(y_bar[i] for i in range(len(arrays)))

    def batch(self, args, batched, params):
        stacked = stack(*spread(args, batched))
        return permute_dims(stacked, axes=(1, 0, *range(2, len(stacked.shape))))


def spread(args: tuple, batched: tuple[bool, ...]) -> list[Any]:
    """Every argument with the leading axis, repeated where it had none."""
    size = batch_size(args, batched)
    return [
        a if b else broadcast_to(np.asarray(a), shape=(size, *np.shape(a)))
        for a, b in zip(args, batched, strict=True)
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


@implements(np.reshape)
def np_reshape(a, /, shape, order="C", *, copy=None):
    """The elements under another shape; one entry may be -1; order C or F."""
    shape = (shape,) if isinstance(shape, int | np.integer) else tuple(shape)
    size = type_of(a).size
    if -1 in shape:
        rest = -int(np.prod(shape))
        shape = tuple(size // rest if n == -1 and rest else n for n in shape)
    if int(np.prod(shape)) != size:
        raise ShapeError(
            f"reshape: {type_of(a)} has {size} elements, which do not fill {tuple(shape)}"
        )
    shape = tuple(int(n) for n in shape)
    if order == "F":
        return np_transpose(reshape(np_transpose(a), shape=shape[::-1]))
    return reshape(a, shape=shape)


@implements(np.ravel)
def ravel(a, order="C"):
    """All elements in one axis."""
    return np_reshape(a, (-1,), order)


@implements(np.transpose, np.permute_dims)
def np_transpose(a, axes=None):
    """The axes in another order; reversed by default."""
    ndim = len(a.shape)
    axes = range(ndim)[::-1] if axes is None else [normal_axis(i, ndim, "transpose") for i in axes]
    return permute_dims(a, axes=tuple(axes))


@implements(np.swapaxes)
def swapaxes(a, axis1, axis2):
    """Two axes exchanged."""
    axes = list(range(len(a.shape)))
    axes[axis1], axes[axis2] = axes[axis2], axes[axis1]
    return permute_dims(a, axes=tuple(axes))


@implements(np.matrix_transpose)
def matrix_transpose(x, /):
    """The last two axes exchanged."""
    return swapaxes(x, -1, -2)


@implements(np.moveaxis)
def moveaxis(a, source, destination):
    """Axes moved to other places; the rest keep their order."""
    ndim = len(a.shape)
    listed = [(v,) if isinstance(v, int) else tuple(v) for v in (source, destination)]
    src, dst = ([normal_axis(i, ndim, "moveaxis") for i in v] for v in listed)
    order = [i for i in range(ndim) if i not in src]
    for d, s in sorted(zip(dst, src, strict=True)):
        order.insert(d, s)
    return permute_dims(a, axes=tuple(order))


@implements(np.expand_dims)
def expand_dims(a, axis):
    """New axes of length 1."""
    shape = list(a.shape)
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    ndim = len(shape) + len(axes)
    for i in sorted(normal_axis(i, ndim, "expand_dims") for i in axes):
        shape.insert(i, 1)
    return reshape(a, shape=tuple(shape))


@implements(np.squeeze)
def squeeze(a, axis=None):
    """Axes of length 1 removed."""
    shape = a.shape
    if axis is None:
        return reshape(a, shape=tuple(n for n in shape if n != 1))
    axes = [
        normal_axis(i, len(shape), "squeeze") for i in ((axis,) if isinstance(axis, int) else axis)
    ]
    if any(shape[i] != 1 for i in axes):
        raise ShapeError(f"squeeze: axis {axis} of {type_of(a)} is not of length 1")
    return reshape(a, shape=tuple(n for i, n in enumerate(shape) if i not in axes))


@implements(np.broadcast_to)
def np_broadcast_to(array, shape, subok=False):
    """The array repeated to that shape."""
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
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


@implements(np.concatenate, np.concat)
def concatenate(arrays, axis=0, out=None, *, dtype=None, casting="same_kind"):
    """Arrays joined along an axis."""
    arrays = [as_array(a) for a in arrays]
    if axis is None:
        arrays, axis = [ravel(a) for a in arrays], 0
    axis = normal_axis(axis, len(arrays[0].shape), "concatenate")
    try:
        joined = concat(*arrays, axis=axis)
    except ValueError:
        found = " with ".join(repr(type_of(a)) for a in arrays)
        raise ShapeError(
            f"concatenate: cannot join {found} along axis {axis}; all other axes must agree"
        ) from None
    return joined if dtype is None else astype(joined, dtype=np.dtype(dtype))


@implements(np.stack)
def np_stack(arrays, axis=0, out=None, *, dtype=None, casting="same_kind"):
    """Arrays of one shape joined along a new axis."""
    arrays = [as_array(a) for a in arrays]
    if len({tuple(a.shape) for a in map(type_of, arrays)}) > 1:
        found = ", ".join(repr(type_of(a)) for a in arrays)
        raise ShapeError(f"stack: all arrays must have one shape; found {found}")
    joined = stack(*arrays)
    axis = normal_axis(axis, len(joined.shape), "stack")
    joined = joined if axis == 0 else moveaxis(joined, 0, axis)
    return joined if dtype is None else astype(joined, dtype=np.dtype(dtype))


def as_array(a: Any) -> Any:
    """A traced value as it is; nested sequences of them as an array."""
    if isinstance(a, list | tuple):
        return np_stack([as_array(v) for v in a]) if len(a) else np.array(a)
    return a if hasattr(a, "shape") else np.asarray(a)


@implements(np.atleast_1d)
def atleast_1d(*arrays):
    """Each with at least one axis."""
    found = [a if len(a.shape) else reshape(a, shape=(1,)) for a in map(as_array, arrays)]
    return found[0] if len(found) == 1 else tuple(found)


@implements(np.atleast_2d)
def atleast_2d(*arrays):
    """Each with at least two axes; a vector becomes a row."""
    found = [
        a if len(a.shape) > 1 else reshape(a, shape=(1, *(a.shape or (1,))))
        for a in map(as_array, arrays)
    ]
    return found[0] if len(found) == 1 else tuple(found)


@implements(np.vstack)
def vstack(tup, *, dtype=None, casting="same_kind"):
    """Arrays on top of each other."""
    return concatenate([atleast_2d(a) for a in tup], 0, dtype=dtype)


@implements(np.hstack)
def hstack(tup, *, dtype=None, casting="same_kind"):
    """Arrays side by side."""
    arrays = [atleast_1d(a) for a in tup]
    return concatenate(arrays, 0 if len(arrays[0].shape) == 1 else 1, dtype=dtype)


@implements(np.column_stack)
def column_stack(tup):
    """Vectors as the columns of a matrix."""
    columns = [as_array(a) for a in tup]
    return concatenate(
        [a if len(a.shape) > 1 else reshape(a, shape=(a.shape[0], 1)) for a in columns], 1
    )


@implements(np.flip)
def flip(m, axis=None):
    """The elements in reverse order along axes."""
    ndim = len(m.shape)
    axes = range(ndim) if axis is None else [axis] if isinstance(axis, int) else axis
    turned = {normal_axis(i, ndim, "flip") for i in axes}
    return m[tuple(slice(None, None, -1 if i in turned else None) for i in range(ndim))]


@implements(np.roll)
def roll(a, shift, axis=None):
    """Elements shifted around along an axis."""
    if axis is None:
        return reshape(roll(ravel(a), shift, 0), shape=a.shape)
    axis = normal_axis(axis, len(a.shape), "roll")
    n = a.shape[axis]
    order = (np.arange(n) - shift) % n if n else np.arange(0)
    return op("index")(a, at=(*(slice(None),) * axis, order))


@implements(np.repeat)
def repeat(a, repeats, axis=None):
    """Each element repeated."""
    if axis is None:
        a, axis = ravel(a), 0
    axis = normal_axis(axis, len(a.shape), "repeat")
    order = np.repeat(np.arange(a.shape[axis]), repeats)
    return op("index")(a, at=(*(slice(None),) * axis, order))


@implements(np.tile)
def tile(A, reps):  # noqa: N803
    """The array laid out repeatedly."""
    reps = (reps,) if isinstance(reps, int) else tuple(reps)
    ndim = max(len(reps), len(A.shape))
    reps = (1,) * (ndim - len(reps)) + reps
    A = reshape(A, shape=(1,) * (ndim - len(A.shape)) + tuple(A.shape))
    for axis, n in enumerate(reps):
        A = concat(*[A] * n, axis=axis) if n != 1 else A
    return A


@implements(np.split, np.array_split)
def split(ary, indices_or_sections, axis=0):
    """The array in pieces along an axis."""
    axis = normal_axis(axis, len(ary.shape), "split")
    stops = np.array_split(np.arange(ary.shape[axis]), indices_or_sections)
    lead, start, pieces = (slice(None),) * axis, 0, []
    for piece in stops:
        pieces.append(ary[(*lead, slice(start, start + len(piece)))])
        start += len(piece)
    return pieces
