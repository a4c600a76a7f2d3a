"""What the arrays that a loop carries may be in Python: what it began with, and one another.

A round is given arrays and leaves others.  A carry is what the loop began with, or an array of
outside that a round bound it to, where rounds hand that on, in any number of them; two carries are
one array where a round leaves one for both, or two that may have been one before it.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from lineara.facts.hints import Leaf
from lineara.staging.capture.records import Record
from lineara.staging.staged_arrays import Cell, StagedArray, may_be_one, relatives, stores_of

Part = tuple[Any, int]  # a column, and the number of a leaf in it


class HandedOn:
    """The arrays that rounds hand on.

    begins, given    what the loop began with, and what stood for it in a round, for each carry
    places           the columns and leaves of what a round leaves: carries, and what else is given
    handed           of each that is left, the carries that it may have been before the round
    begun, bound     of each, what of the begins and of outside it may be after any round
    outside          of each, what of outside one round may leave
    pairs            the carries that may be one array before some round
    """

    def __init__(
        self, body: Record, begins: Sequence[Leaf], given: Sequence[Any], places: Sequence[Part]
    ) -> None:
        self.begins, self.given, self.places = begins, given, places
        columns = [body.columns[key] for key, _ in places]
        left = [
            c.leaves[i] if c.leaves else None for c, (_, i) in zip(columns, places, strict=True)
        ]
        self.aliases: list[Any] = [
            c.aliases[i] if c.leaves else None for c, (_, i) in zip(columns, places, strict=True)
        ]
        self.first: list[list[Any]] = _stores(begins)
        self.last: list[list[Any]] = _stores(left)
        self.pairs: set[tuple[int, int]] = set()
        self.has_arrays = any(self.first) or any(self.last)
        if not self.has_arrays:
            self.carries: list[int] = []
            return
        self.carries = [p for p, v in enumerate(given) if isinstance(v, StagedArray)]
        at = _stores(given)
        self.handed: list[set[int]] = [
            {p for p in self.carries if _meet(at[p], stores)} for stores in self.last
        ]
        ever = [self.before(of) if of else of for of in self.handed]
        self.begun: list[list[Any]] = [[s for p in of for s in self.first[p]] for of in ever]
        self.outside: list[list[Any]] = [
            [s for s in self.left(k) if _home(s) is not body.level] if of else of
            for k, of in enumerate(self.last)
        ]
        self.bound: list[list[Any]] = [
            [s for p in {*of, k} for s in self.outside[p]] for k, of in enumerate(ever)
        ]
        each = [(p, q) for p in self.carries for q in self.carries if p != q]
        self.at_first: set[tuple[int, int]] = {
            (p, q) for p, q in each if _meet(self.first[p], self.first[q])
        }
        self.pairs |= self.at_first
        while more := {(p, q) for p, q in each if (p, q) not in self.pairs and self._are_one(p, q)}:
            self.pairs |= more

    def before(self, some: set[int]) -> set[int]:
        """These carries, and those that they may have been before any number of rounds."""
        every = {*some}
        while more := {q for p in every for q in self.handed[p]} - every:
            every |= more
        return every

    def _are_one(self, k: int, m: int) -> bool:
        """Whether two may be one array after a round."""
        return (
            _meet(self.last[k], self.last[m])
            or _meet(self.bound[k], [*self.begun[m], *self.bound[m]])
            or _meet(self.begun[k], self.bound[m])
            or any([(p, q) in self.pairs for p in self.handed[k] for q in self.handed[m]])
        )

    def may_be(self, p: int) -> list[Any]:
        """The storage of outside that a carry may be, before a round or after it."""
        return _may_be([*self.first[p], *self.begun[p], *self.bound[p]])

    def written(self) -> set[int]:
        """The carries whose arrays rounds write, at first or later."""
        return self.before({p for p in self.carries if self.given[p].w.buffer.version > 0})

    def left(self, p: int) -> list[Any]:
        """The storage that what a round leaves in a carry may be."""
        return _may_be(self.last[p])

    def is_shared(self, p: int) -> bool:
        """Whether a round may leave in a carry an array of outside, or a part of one."""
        array = self.aliases[p]
        if array is None:
            return False
        whole = isinstance(array, StagedArray) and not array.w.steps
        return not whole or type(array.w.source) is tuple or bool(self.outside[p])

    def others(self, results: Sequence[Leaf], runs: bool) -> list[list[Any]]:
        """For each result of the loop the arrays that it may be; `runs`: there is a round."""
        if not self.has_arrays:
            return [[] for _ in self.places]
        arrays: list[list[Any]] = []
        left = [k for k, stores in enumerate(self.last) if stores]
        for k in range(len(self.places)):
            stores = [*self.begun[k], *self.bound[k]]
            others = [m for m in left if m != k and self._are_one(k, m)] if k in left else []
            if not runs and k in self.carries:
                stores += self.first[k]
                others += [q for p, q in self.at_first if p == k]
            arrays.append([*stores, *[results[m] for m in others]])
        return arrays


def _stores(values: Sequence[Leaf]) -> list[list[Any]]:
    """The storage of arrays; none of numbers."""
    return [stores_of(v) if isinstance(v, StagedArray | np.ndarray) else [] for v in values]


def _home(store: Any) -> Any:
    """The definition in which storage was made; None of an array that there was before."""
    return store.home if isinstance(store, Cell) else None


def _may_be(stores: Sequence[Any]) -> list[Any]:
    """Some storage, and what it may be as the program runs."""
    return [*stores, *[c for s in stores for c in relatives(s)]]


def _meet(some: Sequence[Any], others: Sequence[Any]) -> bool:
    """Whether one of some storages may be one of others."""
    return any([may_be_one(a, b) for a in some for b in others])
