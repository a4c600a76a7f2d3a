"""NumPy's functions that write into an array: where each value goes, NumPy says of its number."""

from collections.abc import Callable
from typing import Any, cast

import numpy as np

from lineara.errors import DetachError
from lineara.facts.hints import Shaped, Value
from lineara.facts.primitive import implements, op
from lineara.facts.types import type_of
from lineara.ops.shape import as_array
from lineara.tape.node import Array, Traced, as_type, follows, layout, plain, plain_deep, staged


def _write(name: str, a: Any, values: Value, act: Callable[[np.ndarray, Any], Any]) -> None:
    """Write `values` into `a` as NumPy's function `act(array, values)` does."""
    if not isinstance(a, Array):
        raise DetachError(
            f"np.{name} writes traced values into a plain array, which cannot hold their "
            "derivative; make the array inside the differentiated function"
        )
    memory = a.memory(to_write=True)
    if memory is not None and not follows(values):
        try:
            act(memory, plain_deep(values))
        finally:
            a.rewritten()
        return
    if not staged((a, values)):
        act(np.array(plain(a)), plain_deep(values))  # NumPy may raise or warn here
    values = as_array(values)
    t = type_of(values)
    numbers = np.full(a.shape, -1)
    act(numbers, np.arange(t.size).reshape(t.shape))
    if np.any(numbers >= 0):
        places = np.nonzero(numbers >= 0) if a.ndim else ()  # NumPy has no nonzero of 0-d arrays
        flat = op("reshape")(values, shape=(t.size,))
        a[places] = op("index")(flat, at=(numbers[places],))


@implements(np.copyto)
def copyto(dst, src, casting: Any = "same_kind", where=True):
    """dst[...] = src, where a mask holds."""
    mask = plain_deep(where)

    def act(a: np.ndarray, values: Shaped) -> None:
        rule: Any = "unsafe" if a.dtype.kind == "i" else casting  # of the numbers of places
        np.copyto(a, values, casting=rule, where=mask)

    steps = isinstance(dst, Array) and staged((dst, src))
    if steps or (isinstance(dst, Array) and dst.dtype.kind == "i" and casting != "unsafe"):
        shown = layout(as_array(src) if staged(src) else src)
        np.copyto(np.empty(dst.shape, dst.dtype), shown, casting=casting)  # NumPy may raise here
    if where is True and steps:
        dst[...] = as_type(src, dst.dtype, casting) if isinstance(src, Traced) else src
        return
    _write("copyto", dst, src, act)


@implements(np.put)
def put(a, ind, v, mode="raise"):
    """a.flat[ind] = v."""
    at, mode = plain_deep(ind), cast(Any, mode)
    _write("put", a, v, lambda a, values: np.put(a, at, values, mode=mode))


@implements(np.putmask)
def putmask(a, /, mask, values):
    """a.flat[i] = values[i] for each i where the mask holds."""
    mask = plain_deep(mask)
    _write("putmask", a, values, lambda a, values: np.putmask(a, mask, values))


@implements(np.place)
def place(arr, mask, vals):
    """The first values go where the mask holds, in order."""
    mask = plain_deep(mask)
    _write("place", arr, vals, lambda a, values: np.place(a, mask, values))


@implements(np.put_along_axis)
def put_along_axis(arr, indices, values, axis):
    """Writes at positions given for each line along the axis."""
    at = plain_deep(indices)
    _write("put_along_axis", arr, values, lambda a, v: np.put_along_axis(a, at, v, axis))


@implements(np.fill_diagonal)
def fill_diagonal(a, val, wrap=False):
    """The main diagonal of a gets the value."""
    _write("fill_diagonal", a, val, lambda a, values: np.fill_diagonal(a, values, wrap))


WRITERS: set[Callable[..., Any]] = {
    np.copyto,
    np.put,
    np.putmask,
    np.place,
    np.put_along_axis,
    np.fill_diagonal,
}
