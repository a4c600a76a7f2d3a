"""Large arrays of the user's that a derivative still needs: locked until their trace ends.

NumPy refuses a write to a locked array and to views made from it afterwards.  A view that the user
made before can still write: a glimpse of the array, taken when it is locked, is compared before
the sweep.  It sees every 256th part of the array, so the change of a few elements may escape it.
"""

import numpy as np

from lineara.errors import MutationError
from lineara.types import type_of

GLIMPSES = 256  # elements that are compared


class Locks:
    """What one trace has locked."""

    __slots__ = ("arrays", "seen")

    def __init__(self) -> None:
        self.arrays: list[np.ndarray] = []
        self.seen: list[tuple[np.ndarray, bytes]] = []

    def take(self, a: np.ndarray, watch: bool) -> None:
        """Lock an array and what it is a view of; `watch` for writes through other views."""
        if watch and a.flags.writeable:
            self.seen.append((a, glimpse(a)))
        owner = a
        while isinstance(owner, np.ndarray) and owner.flags.writeable:
            owner.flags.writeable = False
            self.arrays.append(owner)
            owner = owner.base

    def check(self) -> None:
        """Refuse to go on if an array has changed meanwhile."""
        for a, seen in self.seen:
            if glimpse(a) != seen:
                raise MutationError(
                    f"a plain array ({type_of(a)}) that this derivative still needs was "
                    "overwritten through another view of its memory; copy it first, where it is "
                    "used with traced values"
                )

    def release(self) -> None:
        """Let the user write again."""
        for a in reversed(self.arrays):
            a.flags.writeable = True
        self.arrays.clear()
        self.seen.clear()


def glimpse(a: np.ndarray) -> bytes:
    """Elements of an array at even distances."""
    return a.flat[:: max(1, a.size // GLIMPSES)].tobytes()
