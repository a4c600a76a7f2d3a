"""Derivatives by differences that say how far they can be trusted: an oracle that knows no rules.

Central differences with ever smaller steps are extrapolated to step zero [Ridders 1982]; the best
entry of the table is the one whose neighbours differ least.  Its error is that difference and what
the values are rounded by, since neighbours may be equal by chance.  A difference with one fixed
step has an error that nobody knows: a test under random programs meets the program for which its
tolerance was too tight.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

SHRINK = 1.6
STEPS = 12
EPS = float(np.finfo(float).eps)


def slope(f: Callable[[float], Any], first: float = 0.05) -> tuple[Any, float]:
    """The derivative of a function of one number at 0, and a bound of its error.

    >>> found, error = slope(lambda t: np.exp(3 * t))
    >>> bool(abs(found - 3) <= error < 1e-9)
    True
    """
    best, least = None, np.inf
    last: list[Any] = []
    for k in range(STEPS):
        h = first / SHRINK**k
        ahead, back = np.asarray(f(h)), np.asarray(f(-h))
        row, rounding = [(ahead - back) / (2 * h)], EPS * _size(ahead) / h
        for i, before in enumerate(last):
            power = SHRINK ** (2 * i + 2)
            row.append((power * row[i] - before) / (power - 1))
            gap = _size(row[-1] - row[-2]) + _size(row[-1] - before) + rounding
            if gap < least:
                best, least = row[-1], gap
        last = row
    return best, 30 * float(least)


def _size(x: Any) -> float:
    found = float(np.max(np.abs(x), initial=0.0))
    return found if np.isfinite(found) else np.inf


def agrees_along(found: Any, f: Callable[[Any], Any], x: np.ndarray) -> None:
    """Assert the same in one direction, which has a part of every element of the vector x.

    f is called once where `agrees` calls it for each element; a wrong element is still seen.
    """
    direction = np.cos(np.arange(x.size) + 1.0)
    agrees(found @ direction, lambda t: f(x + t[0] * direction), np.zeros(1))


def agrees(found: Any, f: Callable[[Any], Any], x: np.ndarray, tolerance: float = 1e-9) -> None:
    """Assert that `found` is the derivative of f at x, an axis first for the elements of x."""
    parts = [slope(lambda t, e=e: f(x + t * e)) for e in np.eye(x.size).reshape(-1, *x.shape)]
    found = np.reshape(found, (x.size, *np.shape(parts[0][0])))
    scale = 1.0 + max(_size(part) for part, _ in parts)
    for k, (part, error) in enumerate(parts):
        gap = _size(found[k] - part)
        assert gap <= tolerance * scale + error, (k, found[k], part, error)
