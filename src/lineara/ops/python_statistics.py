"""Python's statistics of lists of traced numbers."""

from typing import Any

import numpy as np

from lineara.facts.primitive import implements
from lineara.ops.shape import as_array


@implements("statistics.mean")
def mean(data):
    """The mean."""
    return np.mean(as_array(data))


@implements("statistics.fmean")
def fmean(data, weights=None):
    """The mean, with weights."""
    return np.average(as_array(data), weights=None if weights is None else as_array(weights))


@implements("statistics.median")
def median(data):
    """The one in the middle, or the mean of both."""
    return np.median(as_array(data))


def _spread(name: str, ddof: int, root: bool) -> Any:
    """The variance around the mean, or around another value; or its root."""

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
