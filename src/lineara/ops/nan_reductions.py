"""Reductions that leave NaNs out: the lanes of NaNs are structural zeros."""

from collections.abc import Callable
from typing import Any

import numpy as np

from lineara.facts.hints import Axis, DType, Shaped
from lineara.facts.primitive import Box, Constant, implements, op, registry
from lineara.facts.types import type_of
from lineara.ops.elementwise import root
from lineara.ops.reduce import dtype_of_mean, freed, given, modulus_squared, per
from lineara.ops.shape import as_array
from lineara.ops.value_checks import checked

for _name in ("nanargmax", "nanargmin"):
    _position = Constant(_name, host=True)
    _position.raised = (ValueError,)
    implements(getattr(np, _name))(_position)


def _missing(a: Shaped) -> Any:
    """The mask of NaNs; integers and booleans have none."""
    return op("isnan")(op("stop_gradient")(a))


def _without(a: Shaped, fill: float) -> Any:
    a = as_array(a)
    if type_of(a).dtype.kind not in "fcO":
        return a
    missing = _missing(a)
    if not isinstance(missing, Box) and not np.any(missing):
        return a
    return op("where")(missing, fill, a)


def _options(keepdims: bool | None, **given_too: Any) -> dict[str, Any]:
    options = {"keepdims": given(keepdims) and bool(keepdims)}
    return options | {k: v for k, v in given_too.items() if given(v)}


@implements(np.nansum)
def nansum(a, axis=None, dtype=None, out=None, keepdims=None, initial=None, where=None):
    """Sum over axes, without NaNs."""
    options = _options(keepdims, initial=initial, where=where)
    return registry.foreign[np.sum].ours(_without(a, 0.0), axis, dtype, **options)


@implements(np.nanprod)
def nanprod(a, axis=None, dtype=None, out=None, keepdims=None, initial=None, where=None):
    """Product over axes, without NaNs."""
    options = _options(keepdims, initial=initial, where=where)
    return registry.foreign[np.prod].ours(_without(a, 1.0), axis, dtype, **options)


@implements(np.nancumsum)
def nancumsum(a, axis=None, dtype=None, out=None):
    """Running sum, NaNs counted as 0."""
    return registry.foreign[np.cumsum].ours(_without(a, 0.0), axis, dtype)


@implements(np.nancumprod)
def nancumprod(a, axis=None, dtype=None, out=None):
    """Running product, NaNs counted as 1."""
    return registry.foreign[np.cumprod].ours(_without(a, 1.0), axis, dtype)


def _extremum(function: Callable[..., Any], fill: float) -> Any:
    def stand_in(a, axis=None, out=None, keepdims=None, initial=None, where=None):
        """The maximum or minimum over axes, without NaNs."""
        options = _options(keepdims, initial=initial, where=where)
        y = registry.foreign[function].ours(_without(a, fill), axis, **options)
        if type_of(as_array(a)).dtype.kind not in "fcO":  # none is missing
            return y
        empty = np.all(_missing(as_array(a)), axis=axis, keepdims=options["keepdims"])
        if given(initial) or (not isinstance(empty, Box) and not np.any(empty)):
            return y
        y = op("where")(empty, np.nan, y)
        return checked(y, np.any(empty), RuntimeWarning, "All-NaN slice encountered")

    return stand_in


implements(np.nanmax)(_extremum(np.max, -np.inf))
implements(np.nanmin)(_extremum(np.min, np.inf))


def _present(a: Shaped, where: Any) -> Any:
    """The mask of elements that are no NaN and are selected by `where`."""
    there = np.logical_not(_missing(a))
    return np.logical_and(there, where) if given(where) else there


@implements(np.nanmean)
def nanmean(a, axis=None, dtype=None, out=None, keepdims=None, *, where=None):
    """Mean over axes, without NaNs."""
    y, count = _mean(as_array(a), axis, dtype, keepdims, where)
    return checked(y, np.any(np.equal(count, 0)), RuntimeWarning, "Mean of empty slice")


def _mean(
    a: Shaped, axis: Axis, dtype: DType, keepdims: bool | None, where: Shaped | None
) -> tuple[Any, Any]:
    """The mean, and of how many elements it is."""
    options = _options(keepdims)
    count = np.sum(_present(a, where), axis=axis, keepdims=options["keepdims"])
    total = nansum(a, axis, dtype_of_mean(a, dtype), where=where, **options)
    return per(total, count), count


@implements(np.nanvar)
def nanvar(
    a,
    axis=None,
    dtype=None,
    out=None,
    ddof=0,
    keepdims=None,
    *,
    where=None,
    mean=None,
    correction=None,
):
    """Mean squared distance from the mean, without NaNs."""
    a = as_array(a)
    options = _options(keepdims)
    mean = mean if given(mean) else _mean(a, axis, dtype, True, where)[0]
    squares = modulus_squared(_without(a, 0.0) - mean)
    there = _present(a, where)
    total = registry.foreign[np.sum].ours(squares, axis, dtype, where=there, **options)
    count = np.sum(there, axis=axis, keepdims=options["keepdims"])
    free = count - freed(ddof, correction)
    y = per(total, op("where")(free > 0, free, np.nan))
    return checked(y, np.any(free <= 0), RuntimeWarning, "Degrees of freedom <= 0 for slice.")


@implements(np.nanstd)
def nanstd(*args, **options):
    """Square root of `nanvar`."""
    return root(nanvar(*args, **options))
