"""Functions that make arrays: in a trace, arrays that traced values may be written into."""

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from lineara.errors import NoRuleError, StagingError
from lineara.facts.hints import DType, Tree, Value
from lineara.facts.primitive import implements, op, registry
from lineara.facts.types import type_of
from lineara.ops.shape import as_array, sizes
from lineara.python.numpy_functions import call_foreign
from lineara.python.numpy_values import failed
from lineara.tape.level import Level
from lineara.tape.levels import threads, writable
from lineara.tape.node import (
    Array,
    Scalar,
    Traced,
    as_type,
    becomes_other,
    follows,
    layout,
    objects,
    plain,
    plain_deep,
    staged,
)
from lineara.tape.reads import place
from lineara.tape.strides import strides_of
from lineara.tape.swallowed_errors import Told
from lineara.tape.written_arrays import Written


def any_traced(values: Any) -> bool:
    """Whether a traced value is among the arguments, also inside lists and tuples."""
    for v in values:
        if isinstance(v, Traced) or (isinstance(v, list | tuple) and any_traced(v)):
            return True
    return False


def _owned(made: np.ndarray) -> Any:
    """A fresh array, writable for traced values; several in a tuple or list."""
    if not threads.open:
        return made
    if isinstance(made, tuple | list):
        return type(made)([_owned(m) for m in made])
    floats = type(made) is np.ndarray and made.dtype.kind in "fciub" and made.dtype.isnative
    return writable(made) if floats else made


def show_parts(original: Any, call: Any, implementation: Callable[..., Any]) -> None:
    """Give a function the attributes by which code recognises a function of NumPy's."""
    vars(call)["_implementation"] = implementation
    vars(call)["__wrapped__"] = original.__wrapped__


def in_place_of(original: Any) -> Callable[[Callable[..., Any]], Any]:
    """Decorator of a stand-in for a function of NumPy's: it gets that function's attributes."""

    def decorate(call: Callable[..., Any]) -> Any:
        call = functools.wraps(original)(call)
        if hasattr(original, "_implementation"):  # what a class that NumPy asks may leave it to
            show_parts(original, call, original._implementation)
        return call

    return decorate


def maker(original: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose result is a fresh array."""

    @in_place_of(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        if any_traced(args) or (kwargs and any_traced(kwargs.values())):
            kwargs.pop("device", None)  # every array is on this device
            try:
                return call_foreign(original, args, kwargs)
            except NoRuleError:  # what it is given are lengths
                _refuse_lengths(original, [*args, *kwargs.values()])
                raise
        return _owned(original(*args, **kwargs))

    return call


def _refuse_lengths(original: Any, lengths: object) -> None:
    """Refuse values of a program as the lengths of a new array."""
    if staged(lengths):
        raise StagingError(
            f"numpy.{original.__name__} was asked for an array whose length depends on staged "
            "values, and an array of a program has a length that is known while it is written; "
            "make it as long as it can become and leave out what is not meant, "
            "np.where(np.arange(n) < k, y, 0)"
        )


def like(original: Callable[..., Any]) -> Callable[..., Any]:
    """zeros_like and its kin: only shape, dtype and layout of the array matter."""

    @in_place_of(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        _refuse_lengths(original, [*args[1:], *kwargs.values()])
        shown = [layout(a) for a in args]
        return _owned(original(*shown, **{k: layout(v) for k, v in kwargs.items()}))

    return call


def full(original: Callable[..., Any]) -> Callable[..., Any]:
    """full and full_like: a fresh array whose elements are all assigned."""
    names = ("shape" if original is np.full else "a", "fill_value")

    @in_place_of(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        first = [*args[:2], *[kwargs.pop(n) for n in names[len(args) :] if n in kwargs]]
        if len(first) < len(names):
            return original(*first, *args[2:], **kwargs)  # which raises what NumPy does
        (shape, fill_value), args = first, args[2:]
        if original is np.full:
            _refuse_lengths(original, [shape])
        if not any_traced((fill_value,)):
            return like(original)(shape, fill_value, *args, **kwargs)
        given = args[0] if args else kwargs.get("dtype")
        if given is None and original is np.full:
            kwargs["dtype"] = as_array(fill_value).dtype
        made = like(original)(shape, 0.0, *args, **kwargs)
        if made.dtype.kind == "O":
            made[...] = objects(array(fill_value))
        elif staged(fill_value):  # where NumPy casts, an element that is set is converted by int()
            if not isinstance(made, Traced):  # of a dtype that no number of a program has
                return as_type(
                    op("broadcast_to")(as_array(_fitted(fill_value, made.dtype)), shape=made.shape),
                    made.dtype,
                )
            made[...] = as_type(as_array(_fitted(fill_value, made.dtype)), made.dtype)
        else:
            made[...] = fill_value
        return made

    return call


def scalars(obj: Tree, level: Level) -> bool:
    """Whether a list holds nothing but numbers of the fast kind."""
    return isinstance(obj, list | tuple) and all(
        [type(v) is level.N or type(v) is level.S or type(v) is float for v in obj]
    )


@in_place_of(np.array)
def array(object: object, dtype: DType = None, *, copy: bool | None = True, **options: Any) -> Any:
    """np.array of traced values: an array that keeps their derivatives and may be written."""
    obj: Any = object
    try:
        reached = any_traced((obj,))
    except RecursionError:  # a list that contains itself
        reached = False
    if not reached:
        try:
            made = np.array(obj, dtype, copy=copy, **options)
            return made if _is_shared(made, obj) else _owned(made)
        except Told as told:
            if told.source is obj:
                obj, copy = told.value, False if told.copied else copy
    elif copy is not True and copy is not None:  # NumPy may refuse copy=False
        traced = issubclass(type(obj), Traced)
        shown = layout(obj) if traced else [] if staged(obj) else plain_deep(obj)
        np.array(shown, dtype, copy=copy, **options)
    copy = _COPIES.get(copy, copy)
    level = threads.open[-1] if threads.open else None
    if dtype is None and not options and type(level) is Level and scalars(obj, level):
        return level.join(obj)
    if dtype is not None and np.dtype(dtype).kind == "O":
        return np.array(objects(obj), dtype, copy=copy, **options)
    try:
        made = as_array(obj)
    except Exception as e:
        if dtype is not None and np.dtype(dtype).kind not in "fcbiu" and follows(obj):
            raise becomes_other(obj, np.dtype(dtype)) from None
        if dtype is not None and np.dtype(dtype).kind not in "fcbiu":
            return np.array(plain_deep(obj), dtype, **options)  # of constants; NumPy may raise here
        raise failed(np.array, (obj,), {}, e) from None
    if dtype is not None and np.dtype(dtype) != made.dtype:
        made = _in_dtype(obj, made, np.dtype(dtype))
    if isinstance(made, Scalar):  # an array without axes, which may be written as any other
        made = made.level.buffer(made.typed())
    elif isinstance(made, Array) and ((made is obj and copy) or not _ordered(made, **options)):
        made = made.copy(order=options.get("order") or "K")
    for _ in range(options.get("ndmin", 0) - made.ndim):
        made = made[None]
    return made


def _is_shared(made: object, source: Tree) -> bool:
    """Whether an array shares memory with the source that it was made from."""
    if isinstance(source, np.ndarray):
        return np.may_share_memory(made, source)
    if not issubclass(type(source), list | tuple) and hasattr(source, "__array__"):
        return True  # the user's function may keep the array that it gave
    while isinstance(made, np.ndarray):
        made = made.base
    return made is not None


_COPIES: dict[Any, Any] = {np._CopyMode.IF_NEEDED: None, np._CopyMode.ALWAYS: True}


def _in_dtype(obj: object, made: Array, dtype: np.dtype) -> Any:
    """The array `made` of `obj` in another dtype; NumPy converts numbers in lists one by one."""
    if staged(made) and made.dtype.kind == "c" and dtype.kind in "iuf" and _has_pythons(obj):
        np.array(1j, dtype)  # raises NumPy's error for complex numbers
    if issubclass(type(obj), list | tuple) and dtype.kind in "iu" and staged(made):
        return as_array(_stored(obj, dtype)).astype(dtype)
    if issubclass(type(obj), Array) or staged(made) or dtype.kind not in "fcbiu":
        return _fitted(obj if issubclass(type(obj), Scalar) else made, dtype).astype(dtype)
    value = np.array(plain_deep(obj), dtype)  # NumPy may raise or warn here
    return op("astype")(made, dtype=dtype) if dtype.kind in "fc" else value


def _has_pythons(obj: Any) -> bool:
    """Whether nested lists hold a complex number of Python's."""
    if issubclass(type(obj), list | tuple):
        return any(map(_has_pythons, obj))
    if issubclass(type(obj), Scalar):
        return obj.weak is True and obj.dtype.kind == "c"
    return type(obj) is complex


def _stored(obj: Any, dtype: np.dtype) -> Any:
    """Staged numbers of a list as integers: by `int`, or by a cast for NumPy's unsigned ones."""
    if issubclass(type(obj), list | tuple):
        return [_stored(v, dtype) for v in obj]
    number = issubclass(type(obj), Scalar) and staged(obj) and obj.dtype.kind == "f"
    pythons = number and (dtype.kind == "i" or obj.weak)
    return op("stored")(obj, dtype=dtype) if pythons else _fitted(obj, dtype)


def _fitted(value: Any, dtype: np.dtype) -> Any:
    """A value; of a whole number of Python's what NumPy makes of it, which raises if that is none.

    That is of a staged one in an array of whole numbers, which may be too small.
    """
    number = issubclass(type(value), Scalar) and staged(value) and value.weak is True
    whole = number and value.dtype.kind == "i" and dtype.kind in "iu" and dtype != value.dtype
    return op("stored")(value, dtype=dtype) if whole else value


def _ordered(a: Array, order: str | None = None, **_: Any) -> bool:
    """Whether the elements lie in memory as `order` asks."""
    return a.in_order if order == "C" else a.T.in_order if order == "F" else True


def _converted(a: Traced, dtype: DType) -> Any:
    """A traced value as an array of the dtype; itself where it has it."""
    if dtype is None or np.dtype(dtype) == a.dtype:
        return a
    return objects(a) if np.dtype(dtype).kind == "O" else _fitted(a, np.dtype(dtype)).astype(dtype)


def as_array_function(original: Callable[..., Any]) -> Callable[..., Any]:
    """asarray and its kin: the array itself where it is one."""

    @in_place_of(original)
    def call(a: Any, dtype: DType = None, *args: Any, **kwargs: Any) -> Any:
        if not any_traced((a,)):
            try:
                found = original(a, dtype, *args, **kwargs)
                return _owned(found) if isinstance(a, list | tuple) else found
            except Told as told:
                a = told.value if told.source is a else a
        order: Any = args[0] if args else kwargs.get("order")
        rows = original is np.ascontiguousarray  # at least one axis
        order = "C" if rows else order
        copy = kwargs.get("copy")
        if copy is not None or isinstance(a, list | tuple) or issubclass(type(a), Scalar):
            copy = True if copy is None else copy
            return array(a, dtype, copy=copy, order=order, ndmin=int(rows))
        a = _converted(a, dtype)
        return a if not isinstance(a, Array) or _ordered(a, order) else a.copy(order=order)

    return call


@in_place_of(np.asfortranarray)
def asfortranarray(a: Array, dtype: DType = None, **options: Any) -> Any:
    """The array itself where its transpose lies in C order, else a copy."""
    if not any_traced((a,)):
        return np.asfortranarray(a, dtype, **options)
    a = _converted(a, dtype) if isinstance(a, Array) else array(a, dtype, ndmin=1)
    return a if not isinstance(a, Array) or a.T.in_order else a.copy(order="F")


@in_place_of(np.copy)
def copy(a: Array, *args: Any, **kwargs: Any) -> Any:
    """np.copy: of a traced array, one that may be written."""
    order = args[0] if args else kwargs.get("order", "K")
    return array(a, order=order)


@in_place_of(np.isscalar)
def isscalar(element: Value) -> bool:
    """np.isscalar, which is true of traced scalars."""
    return isinstance(element, Scalar) or np.isscalar(element)


# --- makers that take values ---------------------------------------------------------------------


@implements(np.linspace)
def linspace(start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0):
    """Equal steps from start to stop, both of which may be traced."""
    div = num - 1 if endpoint else num
    ends = [as_array(v) if isinstance(v, list | tuple) else v for v in (start, stop)]
    precise = np.result_type(*map(layout, ends), 0.0)
    start, stop = (op("astype")(as_array(v), dtype=precise) for v in ends)
    step = (stop - start) / div if div > 0 else (stop - start) * np.nan
    k = np.arange(num, dtype=precise).reshape(-1, *(1,) * len(type_of(step).shape))
    made = k * step + start if div > 0 else k * (stop - start) + start
    if endpoint and num > 1:
        made[-1] = stop
    if axis != 0:
        made = np.moveaxis(made, 0, axis)
    if dtype is not None:
        made = (np.floor(made) if np.dtype(dtype).kind in "iu" else made).astype(dtype)
    return (made, step) if retstep else made


@implements(np.arange)
def arange(start, stop=None, step=1, dtype=None):
    """start, start + step, ... below stop; their count is a constant."""
    if stop is None:
        start, stop = 0.0, start
    shown = np.arange(plain(start), plain(stop), plain(step))
    made = start + np.arange(len(shown)) * ((start + step) - start)
    dtype = shown.dtype if dtype is None else dtype
    return made if made.dtype == dtype else made.astype(dtype)


@implements(np.logspace)
def logspace(start, stop, num=50, endpoint=True, base=10.0, dtype=None, axis=0):
    """base ** linspace(start, stop)."""
    traced_exponents = (
        linspace(start, stop, num, endpoint, axis=axis) if any_traced((start, stop)) else None
    )
    exponents = (
        np.linspace(start, stop, num, endpoint, axis=axis)
        if traced_exponents is None
        else traced_exponents
    )
    made = np.power(base, exponents)
    return made if dtype is None else made.astype(dtype)


@implements(np.geomspace)
def geomspace(start, stop, num=50, endpoint=True, dtype=None, axis=0):
    """Equal ratios from start to stop."""
    ends = [as_array(v) for v in (start, stop)]
    precise = np.result_type(*[type_of(v).dtype for v in ends], np.zeros((), dtype))
    start, stop = [op("astype")(v, dtype=precise) for v in ends]
    if "c" in (type_of(start).dtype.kind, type_of(stop).dtype.kind):
        div = max(num - 1 if endpoint else num, 1)
        k = np.arange(num, dtype=float).reshape(-1, *(1,) * len(type_of(start * stop).shape)) / div
        made = start * (stop / start) ** k
    else:
        sign = np.sign(start)
        made = sign * logspace(np.log10(sign * start), np.log10(sign * stop), num, endpoint)
        made[:1] = start
        if endpoint and num > 1:
            made[-1] = stop
    made = made if axis == 0 else np.moveaxis(made, 0, axis)
    return made if dtype is None else made.astype(dtype)


@implements(np.kaiser)
def kaiser(M, beta):
    """The Kaiser window, differentiable in beta."""
    if M == 1:
        return np.ones(1) + 0.0 * beta
    half = (M - 1) / 2.0
    inside = np.sqrt(1 - ((np.arange(M) - half) / half) ** 2.0)
    return np.i0(beta * inside) / np.i0(beta)


@implements(np.meshgrid)
def meshgrid(*xi, copy=True, sparse=False, indexing="xy"):
    """Coordinates of a grid from those along its axes."""
    n = len(xi)
    if indexing not in ("xy", "ij"):
        raise ValueError("Valid values for `indexing` are 'xy' and 'ij'.")
    turn = {0: 1, 1: 0} if indexing == "xy" and n > 1 else {}
    lines = [
        np.reshape(v, [-1 if j == turn.get(i, i) else 1 for j in range(n)])
        for i, v in enumerate(map(as_array, xi))
    ]
    grids = lines if sparse else np.broadcast_arrays(*lines)
    return tuple([v.copy() for v in grids] if copy else grids)


@implements(np.ix_)
def ix_(*args):
    """Positions along axes, each with an axis of its own."""
    lines = [a if np.size(a) else np.zeros(0, np.intp) for a in map(as_array, args)]
    if not all([np.ndim(a) == 1 for a in lines]):
        raise ValueError("Cross index must be 1 dimensional")
    lines = [np.flatnonzero(a) if a.dtype == bool else a for a in lines]
    return meshgrid(*lines, copy=False, sparse=True, indexing="ij")


@in_place_of(np.fromiter)
def fromiter(iter: Any, dtype: DType, count: int = -1, **options: Any) -> Any:
    """The values of an iterator, which may be traced."""
    values = list(itertools.islice(iter, count) if count >= 0 else iter)
    if any_traced(values):
        return array(values, dtype)
    return _owned(np.fromiter(values, dtype, count, **options))


@implements(np.astype)
def astype(x, dtype, /, *, copy=True, device=None):
    """The array in another dtype."""
    return x.astype(dtype, copy=copy)


@implements(np.asarray_chkfinite)
def checked(a, dtype=None, *options, **more):
    """np.asarray_chkfinite: the values as an array; raises NumPy's error if one is not finite."""
    return _converted(a, dtype) if isinstance(a, Array) else array(a, dtype)


@implements(np.require)
def require(a, dtype=None, requirements=None):
    """The array itself where it is as it is required to be, else a copy."""
    a = checked(a, dtype)
    shown = layout(a)
    fits = np.require(shown, None, requirements)
    if {"O", "OWNDATA"} & {r.upper() for r in requirements or ()}:
        raise NoRuleError("require: which array owns its memory is not known; take a.copy()")
    return (
        a if np.may_share_memory(fits, shown) else a.copy("C" if fits.flags.c_contiguous else "F")
    )


@in_place_of(memoryview)
def memory(obj: Any) -> Any:
    """memoryview; of an array made in a trace, a read-only view of its constant content."""
    if isinstance(obj, Written) and obj.constant() is not None:
        return memoryview(obj.__array__())
    return call_foreign(memoryview, (obj,), {}) if isinstance(obj, Traced) else memoryview(obj)


@in_place_of(np.frombuffer)
def frombuffer(buffer: Array, *args: Any, **options: Any) -> Any:
    """np.frombuffer; of an array made in a trace, its constant content."""
    return np.frombuffer(memory(buffer) if isinstance(buffer, Traced) else buffer, *args, **options)


@in_place_of(as_strided)
def strided(
    x: Any, shape: Any = None, strides: Any = None, subok: bool = False, writeable: bool = True
) -> Any:
    """np.lib.stride_tricks.as_strided; of an array made in a trace, of its constant content.

    That is a copy of what the array shows, so that nothing beside it may be reached.
    """
    constant = x.constant() if isinstance(x, Written) else None
    if constant is None:
        return as_strided(x, shape, strides, subok, writeable)
    own, size = strides_of(x), constant.itemsize
    shape = constant.shape if shape is None else sizes(shape)
    steps = [s * size for s in own] if strides is None else sizes(strides)
    known, asked = _places(constant.shape, own).ravel(), _places(shape, steps)
    order = np.argsort(known, kind="stable")
    at = np.minimum(np.searchsorted(known[order] * size, asked), max(constant.size - 1, 0))
    if not np.all(known[order][at] * size == asked) if constant.size else asked.size:
        raise NoRuleError(
            f"as_strided: the shape {shape} with the strides {tuple(steps)} reaches beyond the "
            f"elements of the array of {constant.shape} that it is given, which is no part of "
            "another one in a trace; give it the whole array"
        )
    made = np.asarray(constant.ravel()[order[at]])
    made.flags.writeable = False  # a write would be lost
    x.level.locks.gave = True
    x.w.give(made)
    return made


def _places(shape: tuple[int, ...], strides: Sequence[int]) -> np.ndarray:
    """Where the elements of an array lie, counted from its first one."""
    steps = [s * np.arange(n) for n, s in zip(shape, strides, strict=True)]
    return sum(np.ix_(*steps), np.zeros((), int)) if steps else np.zeros((), int)


def sharing(original: Callable[..., Any]) -> Callable[..., Any]:
    """np.shares_memory and np.may_share_memory, by where NumPy's arrays would lie."""

    @in_place_of(original)
    def call(a: object, b: object, /, max_work: Any = None) -> bool:
        if not (isinstance(a, Array) and isinstance(b, Array)) or staged((a, b)):
            return call_foreign(original, (a, b), {"max_work": max_work})
        (base, *first), (other, *second) = map(_in_memory, (a, b))
        if base is not other:
            return False
        memory = np.zeros(math.prod(base.shape) or 1, np.int8)
        views = [as_strided(memory[n:], shape, lay) for n, lay, shape in (first, second)]
        return original(*views, max_work=max_work)

    return call


def _in_memory(x: Array) -> Any:
    """The storage of an array, and its position there: offset, strides, shape."""
    if not isinstance(x, Written):
        return *place(x), tuple(x.shape)
    part = x.w if x.w.source is None else x.w.source[0].w
    return part.buffer, part.offset, part.strides, part.shape


# --- what stands in for each ---------------------------------------------------------------------

_random = np.random
_MAKERS: dict[Callable[[Any], Any], tuple[Any, ...]] = {
    maker: (
        *(np.zeros, np.ones, np.empty, np.eye, np.identity, np.tri, np.linspace, np.arange),
        *(np.logspace, np.geomspace, np.fromfunction, np.vander, np.meshgrid),
        *(_random.rand, _random.randn, _random.random, _random.uniform, _random.normal),
        *(_random.standard_normal, np.hanning, np.hamming, np.blackman),
    ),
    like: (
        *(np.zeros_like, np.ones_like, np.empty_like),
        *(np.diag_indices_from, np.tril_indices_from, np.triu_indices_from),
    ),
    full: (np.full, np.full_like),
    as_array_function: (np.asarray, np.asanyarray, np.ascontiguousarray),
    sharing: (np.shares_memory, np.may_share_memory),
}
for _make, _functions in _MAKERS.items():
    for _function in _functions:
        registry.declare(_function, stand_in=_make(_function))
_CALLS = {np.array: array, np.copy: copy, np.asfortranarray: asfortranarray, memoryview: memory}
_CALLS |= {as_strided: strided}
_CALLS |= {np.fromiter: fromiter, np.isscalar: isscalar, np.frombuffer: frombuffer}
for _function, _call in _CALLS.items():
    registry.declare(_function, stand_in=_call)
