"""Results of NumPy's functions lie in memory as NumPy's do, whatever ours are composed of.

Whoever reshapes a result and writes into that asks whether it is a view, so a result has the
strides of NumPy's.  An operation that is evaluated by NumPy's own function has them already.  Of a
composition they are learned: NumPy's function runs once for each signature, of values or, while a
program is written, of sample values, and the strides are remembered.
"""

import contextlib
import warnings
from collections.abc import Callable
from numbers import Number
from typing import Any

import numpy as np

from lineara.errors import LinearityError
from lineara.facts.hints import Leaf, Value
from lineara.facts.primitive import registry
from lineara.facts.types import ArrayType, type_of
from lineara.tape.node import Array, Scalar, Traced, laid, plain, staged
from lineara.tape.strides import Doubtful, c_strides, in_c_order, laid_out, narrow, strides_of

ARRAYS = Array | np.ndarray
KNOWN = 4096  # signatures that are remembered
FEW = 8  # integers, which may be axes; those of a larger array are positions


# Operations that do.
TURNED = {"index", "permute_dims", "broadcast_to", "einsum"}


class NoSignature(Exception):
    """NumPy's function is not asked: an argument is of a class of which its results may depend."""


_known: dict[Any, Any] = {}
# Functions that give another order than C of arrays in C order.
TURNING: set[Callable[..., Any]] = {
    np.take,
    np.cross,
    np.nanquantile,
    np.nanpercentile,
    np.histogramdd,
    np.insert,
    np.vander,
}
TURNING |= {np.histogram2d, np.tensordot, np.repeat, np.delete, np.linalg.cross, np.compress}
TURNING |= {np.linalg.cholesky, np.linalg.qr, np.linalg.eigh, np.linalg.eig, np.linalg.svd}
TURNING |= {np.linalg.tensordot, np.vander}


def as_numpy_lays(
    func: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    result: Any,
    views: bool = False,
    turns: bool = False,
) -> Any:
    """The result of `func(*args, **kwargs)`, laid out as NumPy's own.

    Where NumPy gives a view, so do we; `views` says that ours is an array of its own.  `turns` says
    that NumPy may give another order than C also of arrays in C order.
    """
    several = issubclass(type(result), tuple | list)
    parts = result if several else (result,)
    shapes = [tuple(r.shape) if issubclass(type(r), ARRAYS) else () for r in parts]
    if all([len(shape) < 2 for shape in shapes]):
        return result
    given = list(_arrays((args, kwargs)))
    turns = turns or views or func in TURNING
    if not turns and all([in_c_order(tuple(a.shape), strides_of(a)) for a in given]):
        return result
    lays = learned(func, args, kwargs, shapes)
    if lays is None or len(lays) != len(parts):
        return result
    laid = [
        r if lay is None or (lay[1] and not views) else _laid(r, lay[0], given)
        for r, lay in zip(parts, lays, strict=True)
    ]
    if not several:
        return laid[0]
    if all([r is p for r, p in zip(laid, parts, strict=True)]):
        return result
    return type(result)(*laid) if hasattr(result, "_fields") else type(result)(laid)


def as_numpys_array(
    func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], result: Any
) -> Any:
    """`as_numpy_lays` of a result that NumPy gives as an array even where it has no axes."""
    if issubclass(type(result), Scalar):
        return result.level.buffer(result.typed())
    return as_numpy_lays(func, args, kwargs, result)


def lay_of(primitive: Any, args: tuple[Any, ...], params: dict[str, Any], y: Value) -> Any:
    """The strides of NumPy's result of an operation on staged values; None where in C order."""
    shape = tuple(getattr(y, "shape", ()))
    if len(shape) < 2:
        return None
    if any([isinstance(strides_of(a), Doubtful) for a in _arrays(args)]):
        return Doubtful(c_strides(shape))
    if primitive.name not in TURNED and all(
        [in_c_order(tuple(a.shape), strides_of(a)) for a in _arrays(args)]
    ):
        return None
    lays = learned(primitive, args, params, [shape])
    fits = lays is not None and lays[0] is not None and len(lays[0][0]) == len(shape)
    return lays[0][0] if lays is not None and fits else None


def _laid(r: Array, lay: tuple[int, ...], given: list[Any]) -> Any:
    """A result with these strides, if it has others."""
    shape = tuple(r.shape)
    if len(lay) != len(shape) or narrow(shape, lay) == narrow(shape, strides_of(r)):
        return r
    return r.copy() if any([r is a for a in given]) else laid(r, lay)


def _arrays(values: dict[Any, Any] | list[Any] | tuple[Any, ...]) -> Any:
    """The arrays of more than one axis among the arguments."""
    for v in values.values() if type(values) is dict else values:
        kind = type(v)
        if issubclass(kind, ARRAYS):
            if len(v.shape) > 1:
                yield v
        elif issubclass(kind, tuple | list | dict):
            yield from _arrays(v)


def learned(
    func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], shapes: Any = None
) -> Any:
    """For each of NumPy's results its strides and whether it is a view; None if NumPy is not asked.

    The `shapes` of our results tell apart what they depend on.
    """
    try:
        key = (func, signature(args), signature(kwargs), tuple(shapes))
        layout = _known.get(key, _known)
    except (NoSignature, TypeError):  # or a signature that has no hash
        return None
    if layout is _known:
        if len(_known) >= KNOWN:
            _known.clear()
        layout = _known[key] = _asked(func, _shown(args), _shown(kwargs))
    return layout


def signature(v: Leaf) -> Any:
    """What the layout of a result, and whether NumPy raises, may depend on: a hashable key."""
    if isinstance(v, tuple | list):
        return (type(v).__name__, *map(signature, v))
    if isinstance(v, dict):
        return tuple([(k, signature(w)) for k, w in v.items()])
    if isinstance(v, Traced | np.ndarray):
        shape, kind = tuple(v.shape), v.dtype.kind
        axes = kind in "iu" and v.size <= FEW and not staged(v)  # integers may be axes or shapes
        return shape, v.dtype.str, narrow(shape, strides_of(v)), plain(v).tobytes() if axes else b""
    if isinstance(v, slice):
        return "slice", v.start, v.stop, v.step
    if v is None or v is Ellipsis or isinstance(v, str | Number | np.generic | np.dtype):
        return type(v).__name__, v
    if isinstance(v, type) and issubclass(v, np.generic | float | complex | int):
        return v
    raise NoSignature(f"a {type(v).__name__} has no signature")


def _shown(v: Leaf) -> Any:
    """Values for NumPy, in the same layout."""
    if isinstance(v, tuple | list):
        return type(v)([_shown(w) for w in v])
    if isinstance(v, dict):
        return {k: _shown(w) for k, w in v.items()}
    if not isinstance(v, Traced):
        return v
    if not staged(v):
        with contextlib.suppress(LinearityError):  # the argument of a linear function has no value
            return plain(v)
    return sample(type_of(v), strides_of(v))


def sample(t: ArrayType, lay: tuple[int, ...]) -> Any:
    """Some values of a type, with these strides: matrices that can be inverted and factored."""
    values = np.cos(np.arange(t.size, dtype=float)).reshape(t.shape) / (4 * (t.size + 1))
    if t.ndim > 1 and t.shape[-1] == t.shape[-2]:
        values = values + np.diag(1.0 + np.arange(t.shape[-1]))
    else:
        values = values + 0.5
    values = np.zeros(t.shape, t.dtype) if t.dtype.kind in "iub" else values.astype(t.dtype)
    return laid_out(values, lay) if t.ndim else values[()]


def _asked(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            y = func(*args, **kwargs)
    except Exception:  # an error of the values: our function raises it
        return None
    parts = y if isinstance(y, tuple | list) else (y,)
    arrays = list(_plain_arrays((args, kwargs)))
    return tuple([_strides(p, arrays) for p in parts])


def _plain_arrays(values: dict[Any, Any] | list[Any] | tuple[Any, ...]) -> Any:
    for v in values.values() if isinstance(values, dict) else values:
        if isinstance(v, tuple | list | dict):
            yield from _plain_arrays(v)
        elif isinstance(v, np.ndarray):
            yield v


def _strides(y: Value, arrays: list[np.ndarray]) -> tuple[tuple[int, ...], bool] | None:
    if not isinstance(y, np.ndarray):
        return None
    return strides_of(y), any([np.may_share_memory(y, a) for a in arrays])


registry.lay = as_numpy_lays
registry.array = as_numpys_array
