"""Arguments that share memory: two of them are two arrays to us, so none of them may be written.

Nothing is compared until one is written.  Then those are that are views of the same owner, or whose
owner another library is: by their bounds first, then exactly, with bounded work.
"""

from typing import Any

import numpy as np

from lineara.errors import MutationError
from lineara.facts.hints import Shaped
from lineara.facts.types import type_of
from lineara.tape.node import Array, Traced
from lineara.tape.reads import place
from lineara.tape.strides import strided
from lineara.tape.written_arrays import Part, Written

WORK = 10_000  # candidates that NumPy tries until two views count as overlapping


class Overlaps:
    """The arrays among the leaves of one call, and which of them were written."""

    __slots__ = ("given", "groups", "indexed", "known", "written")

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget the arrays of a call that has ended."""
        self.given: list[tuple[Any, Any]] = []  # what the user gave, and its node
        self.indexed: int = 0
        self.known: dict[int, tuple[Any, Any]] = {}  # likewise, by the id of the written array
        self.groups: dict[Any, list[tuple[Any, Any]]] = {}  # by owner; None: of another library
        self.written: list[Any] = []

    def add(self, value: Shaped, node: Array | None) -> None:
        """Another leaf, lifted after some may have been written; or a plain array, without node."""
        self.given.append((value, node))
        if self.written and any([shares(value, other) for other in self.written]):
            raise written_in_one_place(value)

    def source(self, storage: object) -> Any:
        """The user's array behind a node, or behind an array of a program; else None."""
        for value, node in self.given[self.indexed :]:
            self.known[id(_written(node))] = value, node
            self.groups.setdefault(_owner(value), []).append((value, node))
        self.indexed = len(self.given)
        return self.known.get(id(storage))

    def write(self, storage: Any) -> None:
        """A node, or the cell of a program, is about to be written for the first time."""
        lock = self.source(storage)
        if lock is None:
            return
        value, node = lock
        owner = _owner(value)
        near = self.groups if owner is None else {owner, None}
        for group in near:
            for other, its_node in self.groups.get(group, ()):
                if its_node is not node and shares(value, other):
                    raise written_in_one_place(node)
        self.written.append(value)


def written_in_one_place(x: Shaped) -> MutationError:
    """The error for a write to an argument whose memory another argument has too."""
    return MutationError(
        f"an argument ({type_of(x)}) that was given in several places was written in one of them, "
        "which the others would not see; give copies, or write to a copy"
    )


def shares(a: Any, b: Any) -> bool:
    """Whether two arrays have an element in common, or might.

    >>> a = np.zeros(6)
    >>> shares(a, a[1:]), shares(a[::2], a[1::2]), shares(a, np.zeros(6))
    (True, False, False)
    """
    if isinstance(a, Array) and isinstance(b, Array):
        return a.level is b.level and _share_storage(a, b)
    if isinstance(a, Traced) or isinstance(b, Traced):
        return False
    if not np.may_share_memory(a, b):
        return False
    try:
        return np.shares_memory(a, b, max_work=WORK)  # type: ignore[arg-type]  # any int
    except np.exceptions.TooHardError:
        return True


def _written(node: Array) -> Any:
    """The storage that a write to this leaf changes: a node, or in a program the array's cell."""
    return node.w.buffer if isinstance(node, Written) else node


def _owner(a: Any) -> Any:
    """The id of the array that owns the memory; None if an object that is no array owns it."""
    if isinstance(a, Array):
        storage = _storage(a)[0]
        given = a.level.overlaps.source(storage)
        return id(storage) if given is None else _owner(given[0])
    while isinstance(a.base, np.ndarray):
        a = a.base
    return id(a) if a.base is None else None


def _storage(a: Array) -> tuple[Any, int, tuple[int, ...], int]:
    """Where a traced array lies: in what, and the offset, strides and size there in elements."""
    if isinstance(a, Written):
        part: Any = a.w
        size = int(np.prod(part.buffer.shape)) if isinstance(part, Part) else 0
        return part.buffer, part.offset, part.strides, size
    root, offset, strides = place(a)
    return root, offset, strides, root.size


def _share_storage(a: Array, b: Array) -> bool:
    one, offset, strides, size = _storage(a)
    other, start, steps, _ = _storage(b)
    if one is not other:  # two arguments of the function around this one, perhaps
        mine, theirs = a.level.overlaps.source(one), a.level.overlaps.source(other)
        return bool(mine and theirs) and shares(mine[0], theirs[0])
    if not size:
        return True  # two views of one array of a program
    memory = np.empty(size, np.int8)  # untouched: only where its elements lie is asked
    mine = strided(memory, offset, strides, a.shape)
    return shares(mine, strided(memory, start, steps, b.shape))
