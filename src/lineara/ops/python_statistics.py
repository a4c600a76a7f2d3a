"""Functions of Python's module `statistics` for lists of traced numbers."""

from typing import Any

import numpy as np

from lineara.facts.primitive import implements
from lineara.ops.shape import as_array


@implements("statistics.mean")
def mean(data):
    """The arithmetic mean."""
    return np.mean(as_array(data))


@implements("statistics.fmean")
def fmean(data, weights=None):
    """The arithmetic mean, weighted if weights are given."""
    return np.average(as_array(data), weights=None if weights is None else as_array(weights))


@implements("statistics.median")
def median(data):
    """The middle value, or the mean of the two middle values."""
    return np.median(as_array(data))


def _spread(name: str, ddof: int, root: bool) -> Any:
    """Declare a variance, or a standard deviation: around the mean, or around a given value."""

    @implements(f"statistics.{name}")
    def call(data, around=None):
        x = as_array(data)
        if around is None:
            return (np.std if root else np.var)(x, ddof=ddof)
        y = np.sum((x - around) ** 2) / (len(x) - ddof)
        return np.sqrt(y) if root else y

    call.__name__ = name
    return call


variance, stdev = _spread("variance", 1, False), _spread("stdev", 1, True)
pvariance, pstdev = _spread("pvariance", 0, False), _spread("pstdev", 0, True)
