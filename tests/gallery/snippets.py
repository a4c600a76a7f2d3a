"""What a page of the gallery is made of: plain functions, each with a point."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Snippet(NamedTuple):
    """A function of everyday code with one real result, and its arguments; all floats move."""

    f: Callable[..., Any]
    args: tuple[Any, ...]
    kinked: bool  # piecewise linear: the second derivative is 0 or not looked at


GALLERY: list[Snippet] = []


def at(*args: Any, kinked: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Put the decorated function into the gallery, to be differentiated at these arguments."""

    def enter(f: Callable[..., Any]) -> Callable[..., Any]:
        GALLERY.append(Snippet(f, args, kinked))
        return f

    return enter


def some(*shape: int, seed: int = 0, low: float = 0.2, high: float = 1.7) -> np.ndarray:
    """Numbers that look like data."""
    return np.random.default_rng(seed).uniform(low, high, shape)
