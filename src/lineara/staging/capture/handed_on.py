"""What the arrays that a loop carries may be in Python: what it began with, and one another.

A round is given arrays and leaves others.  A carry is what the loop began with, or an array of
outside that a round bound it to, where rounds hand that on, in any number of them; two carries are
one array where a round leaves one for both, or two that may have been one before it.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from lineara.facts.hints import Leaf
from lineara.staging.staged_arrays import Cell, StagedArray, may_be_one, relatives, stores_of


class HandedOn:
    """The arrays that rounds hand on.

    begins, given    what the loop began with, and what stood for it in a round, for each carry
    left             what a round, written at `level`, leaves: its carries, and what else is given
    handed           of each that is left, the carries that it may have been before the round
    begun, bound     of each, what of the begins and of outside it may be after any round
    pairs            the carries that may be one array before some round
    """

    def __init__(
        self, level: Any, begins: Sequence[Leaf], given: Sequence[Leaf], left: Sequence[Leaf]
    ) -> None:
        self.begins, self.given, self.left = begins, given, left
        self.first: list[list[Any]] = [*map(_stores, begins)]
        self.last: list[list[Any]] = [*map(_stores, left)]
        self.carries: list[int] = [p for p, v in enumerate(given) if isinstance(v, StagedArray)]
        self.handed: list[set[int]] = [
            {p for p in self.carries if _meet(_stores(given[p]), stores)} for stores in self.last
        ]
        ever = [self.before(of) for of in self.handed]
        self.begun: list[list[Any]] = [[s for p in of for s in self.first[p]] for of in ever]
        outside = [
            [s for s in stores if not (isinstance(s, Cell) and s.home is level)]
            for stores in [[*of, *[c for s in of for c in relatives(s)]] for of in self.last]
        ]
        self.bound: list[list[Any]] = [
            [s for p in {*of, k} for s in outside[p]] for k, of in enumerate(ever)
        ]
        each = [(p, q) for p in self.carries for q in self.carries if p != q]
        self.at_first: set[tuple[int, int]] = {
            (p, q) for p, q in each if _meet(self.first[p], self.first[q])
        }
        self.pairs: set[tuple[int, int]] = {*self.at_first}
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

    def may_be(self, k: int) -> list[Any]:
        """The storage of outside that one may be, before a round or after it."""
        first = self.first[k] if k in self.carries else []
        found = [*first, *self.begun[k], *self.bound[k]]
        return [*found, *[c for s in found for c in relatives(s)]]

    def others(self, results: Sequence[Leaf], runs: bool) -> list[list[Any]]:
        """For each result of the loop the arrays that it may be; `runs`: there is a round."""
        arrays = []
        for k in range(len(self.left)):
            found = [*self.begun[k], *self.bound[k]]
            others = [m for m in range(len(self.left)) if m != k and self._are_one(k, m)]
            if not runs and k in self.carries:
                found += self.first[k]
                others += [q for p, q in self.at_first if p == k]
            arrays.append([*found, *[results[m] for m in others]])
        return arrays


def _stores(v: Leaf) -> list[Any]:
    """The storage of an array; none of a number."""
    return stores_of(v) if isinstance(v, StagedArray | np.ndarray) else []


def _meet(some: Sequence[Any], others: Sequence[Any]) -> bool:
    """Whether one of some storages may be one of others."""
    return any([may_be_one(a, b) for a in some for b in others])
