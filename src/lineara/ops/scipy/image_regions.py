"""scipy.ndimage: measurements of the labelled regions of an image."""

from collections.abc import Callable
from typing import Any

import numpy as np

from lineara.facts.hints import Shaped
from lineara.facts.primitive import implements
from lineara.facts.types import type_of
from lineara.ops.shape import as_doubles, as_floats

Measure = Callable[..., Any]


def _measured(x: Shaped, labels: object, index: Any, measure: Measure) -> Any:
    """`measure(values, flat positions, shape of the image)` for each region."""
    x = as_floats(x)
    flat, shape = np.ravel(x), type_of(x).shape
    if labels is None:
        return measure(flat, np.arange(type_of(flat).shape[0]), shape)
    marks = np.ravel(np.broadcast_to(np.asarray(labels), shape))
    regions = [marks > 0] if index is None else [marks == i for i in np.ravel(index)]
    places = [np.flatnonzero(r) for r in regions]
    results = [measure(flat[at], at, shape) for at in places]
    if index is None or np.ndim(index) == 0:
        return results[0]
    if isinstance(results[0], tuple):
        return results
    return np.reshape(np.stack(results), np.shape(index))


def _of_values(*names: str) -> Callable[[Measure], Measure]:
    """Declare a measurement that needs only the values of a region."""

    def register(measure: Measure) -> Measure:
        @implements(*[f"scipy.ndimage.{name}" for name in names])
        def call(input, labels=None, index=None):  # SciPy's names
            return _measured(input, labels, index, lambda v, at, shape: measure(v))

        call.__name__, call.__doc__ = names[0], measure.__doc__
        return measure

    return register


_of_values("sum_labels", "sum")(np.sum)
_of_values("mean")(lambda v: np.mean(as_doubles(v)))
_of_values("variance")(lambda v: np.var(as_doubles(v)))
_of_values("standard_deviation")(lambda v: np.std(as_doubles(v)))
_of_values("minimum")(np.min)
_of_values("maximum")(np.max)
_of_values("median")(np.median)


@implements("scipy.ndimage.center_of_mass")
def center_of_mass(input, labels=None, index=None):  # SciPy's names
    """The mean coordinates of a region, weighted by its values."""

    def center(v: Shaped, at: Shaped, shape: tuple[Any, ...]) -> Any:
        places, v = np.unravel_index(at, shape), as_doubles(v)
        return tuple([np.sum(v * p) / np.sum(v) for p in places])

    return _measured(input, labels, index, center)
