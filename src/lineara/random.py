"""Random numbers from keys: the same key gives the same numbers, however often a function is run.

A NumPy Generator has a state, so a function that draws from one gives something else when it runs
again: in `checkpoint`, in a line search, in a test.  A key has none.  It is made from a seed, and
further keys from it by `split` and `fold_in`; what is drawn from different keys is independent.

Draws are constants.  `normal`, `uniform` and `exponential` are differentiable in their parameters,
since they shift and scale standard draws  [Kingma & Welling 2014, 2.4].

>>> from lineara import grad, random
>>> key = random.key(7)
>>> def loss(scale):
...     return random.normal(key, scale=scale)
>>> loss(2.0) == loss(2.0) == 2 * grad(loss)(2.0)
True
"""

import operator
from dataclasses import dataclass
from typing import Any

import numpy as np

from lineara.errors import TypeMismatchError
from lineara.facts.hints import Shaped, Value
from lineara.facts.types import show_type

Shape = int | tuple[int, ...]


@dataclass(frozen=True)
class Key:
    """Where random numbers come from: a seed, and the path of splits from it."""

    seed: int
    path: tuple[int, ...] = ()


def key(seed: int) -> Key:
    """The key of a seed, a non-negative integer of any size.

    Raises TypeMismatchError for anything else.

    >>> key(3)
    Key(seed=3, path=())
    """
    return Key(_count(seed, "key", "a seed"))


def split(key: Key, count: int = 2) -> tuple[Key, ...]:
    """`count` keys that are independent of each other, of `key` and of its other descendants.

    >>> a, b = split(key(3))
    >>> a == b
    False
    """
    _check(key, "split")
    return tuple([fold_in(key, i) for i in range(_count(count, "split", "a count"))])


def fold_in(key: Key, number: int) -> Key:
    """The key of a number, as of a step in a loop: `fold_in(key, i)` is `split(key, n)[i]`.

    Raises TypeMismatchError for a number that is negative or no integer.

    >>> fold_in(key(3), 1) == split(key(3))[1]
    True
    """
    _check(key, "fold_in")
    return Key(key.seed, (*key.path, _count(number, "fold_in", "a number")))


def generator(key: Key) -> np.random.Generator:
    """A NumPy Generator that starts from the key, for any distribution; draws are constants.

    >>> int(generator(key(3)).integers(10)) == int(generator(key(3)).integers(10))
    True
    """
    _check(key, "generator")
    seeds = np.random.SeedSequence(key.seed, spawn_key=key.path)
    return np.random.Generator(np.random.Philox(seeds))


def normal(key: Key, shape: Shape = (), loc: Value = 0.0, scale: Value = 1.0) -> Any:
    """Normal numbers, `loc + scale * z` with standard normal z of that shape.

    >>> normal(key(3), (2, 5)).shape, normal(key(3)) == normal(key(3))
    ((2, 5), True)
    """
    return loc + scale * _drawn(generator(key).standard_normal(shape))


def uniform(key: Key, shape: Shape = (), low: Value = 0.0, high: Value = 1.0) -> Any:
    """Uniform numbers, `low + (high - low) * u` with u in [0, 1).

    >>> u = uniform(key(3), (100,), low=2.0, high=4.0)
    >>> bool(u.min() >= 2.0), bool(u.max() < 4.0)
    (True, True)
    """
    return low + (high - low) * _drawn(generator(key).random(shape))


def exponential(key: Key, shape: Shape = (), scale: Value = 1.0) -> Any:
    """Exponential numbers, `scale * e` with standard exponential e.

    >>> exponential(key(3), scale=2.0) == 2.0 * exponential(key(3))
    True
    """
    return scale * _drawn(generator(key).standard_exponential(shape))


def integers(key: Key, shape: Shape, low: int, high: int) -> np.ndarray:
    """Integers with low <= i < high; constants.

    >>> sorted({*integers(key(3), (100,), 0, 3).tolist()})
    [0, 1, 2]
    """
    return generator(key).integers(low, high, shape)


def permutation(key: Key, of: Any) -> np.ndarray:
    """The integers 0 <= i < of, or the rows of an array of constants, in random order.

    >>> sorted(permutation(key(3), 4).tolist())
    [0, 1, 2, 3]
    """
    return generator(key).permutation(of)


def _drawn(value: Shaped) -> Any:
    return value if np.ndim(value) else float(value)


def _check(key: object, name: str) -> None:
    if not isinstance(key, Key):
        raise TypeMismatchError(
            f"random.{name}: takes a key, but was given {show_type(key)}; random.key(seed) makes it"
        )


def _count(number: Any, name: str, what: str) -> int:
    try:
        count = operator.index(number)
    except TypeError:
        count = -1
    if count < 0 or isinstance(number, bool):
        raise TypeMismatchError(f"random.{name}: {what} is a non-negative integer, not {number!r}")
    return count


__all__ = [
    "Key",
    "exponential",
    "fold_in",
    "generator",
    "integers",
    "key",
    "normal",
    "permutation",
    "split",
    "uniform",
]
