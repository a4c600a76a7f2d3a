"""Large arrays of the user's that a derivative still needs: locked until their trace ends.

NumPy refuses a write to a locked array and to views made from it afterwards.  A view that the user
made before can still write: an imprint of the array, taken when it is locked, is compared before
the sweep.  Up to 1 MiB it depends on every element and on its position.  Of larger arrays it sees
256 cache lines, since a pass over all costs as much as a product with a vector: the change of a few
elements may escape it.
"""

from typing import Any

import numpy as np

from lineara.errors import MutationError
from lineara.facts.types import type_of

GLIMPSES = 256  # cache lines of a very large array that are compared
LINE = 64  # bytes
WHOLE = 1 << 20  # bytes up to which all elements are
# Word i adds to the sums i % 1021 and i % 1013, and two words of 1 MiB never to the same two sums,
# since it has fewer words than the product of these primes: a word that moves is seen in one.
LANES = (1021, 1013)


class Locks:
    """What one trace has locked."""

    __slots__ = ("arrays", "gave", "seen")

    def __init__(self) -> None:
        self.arrays: list[np.ndarray] = []
        self.gave: bool = False  # plain views of arrays that are made in it, which may be read only
        self.seen: dict[int, tuple[np.ndarray, bytes]] = {}  # by id: the array and its imprint

    def take(self, a: np.ndarray, watch: bool) -> None:
        """Lock an array and what it is a view of; `watch` for writes through other views."""
        owner: Any = a
        while owner is not None:  # as_strided has an object between
            if isinstance(owner, np.ndarray) and owner.flags.writeable and self._may_unlock(owner):
                owner.flags.writeable = False
                self.arrays.append(owner)
            owner = getattr(owner, "base", None)
        if (watch or a.flags.writeable) and id(a) not in self.seen:
            self.seen[id(a)] = (a, imprint(a))

    def _may_unlock(self, a: np.ndarray) -> bool:
        """Whether NumPy lets a locked array be unlocked: not a view of one that the user locked,
        nor of memory whose owner does not lend it as a buffer (another library's tensor)."""
        base = a.base
        if not isinstance(base, np.ndarray):
            return base is None or _lends(base)
        return base.flags.writeable or any([base is locked for locked in self.arrays])

    def check(self) -> None:
        """Refuse to go on if an array has changed meanwhile."""
        for a, seen in self.seen.values():
            if imprint(a) != seen:
                raise MutationError(
                    f"a plain array ({type_of(a)}) that this derivative still needs was "
                    "overwritten through another view of its memory; copy it first, where it is "
                    "used with traced values"
                )

    def release(self) -> None:
        """Let the user write again."""
        owners_first = sorted(self.arrays, key=lambda a: isinstance(a.base, np.ndarray))
        for a in owners_first:
            a.flags.writeable = True
        self.arrays.clear()
        self.seen.clear()


def _lends(owner: Any) -> bool:
    """Whether an object that is no array lends its memory to be written."""
    try:
        return not memoryview(owner).readonly
    except (TypeError, ValueError, BufferError):
        return False


def imprint(a: np.ndarray) -> bytes:
    """What another content of an array would differ in.

    >>> a = np.arange(9000.0)
    >>> b = a.copy()
    >>> b[3:5] = b[4:2:-1]
    >>> len(imprint(a)) < 40000, imprint(a) == imprint(a.copy()), imprint(a) == imprint(b)
    (True, True, False)
    """
    large = a.nbytes > WHOLE
    if a.dtype.hasobject or (large and not (a.flags.c_contiguous or a.flags.f_contiguous)):
        return a.flat[:: max(1, a.size // GLIMPSES)].tobytes()
    content = a.ravel(order="K").view(np.uint8)
    if large:
        lines = content[: len(content) // LINE * LINE].reshape(-1, LINE)
        return lines[:: max(1, len(lines) // GLIMPSES)].tobytes()
    words = content[: len(content) // 8 * 8].view(np.uint64)
    parts = [content[len(words) * 8 :]]
    for lanes in LANES:
        rest = len(words) % lanes
        whole = words[: len(words) - rest].reshape(-1, lanes)
        parts += [np.add.reduce(whole, axis=0), words[len(words) - rest :]]
    return b"".join([part.tobytes() for part in parts])
