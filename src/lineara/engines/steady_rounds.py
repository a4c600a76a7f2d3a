"""Rounds of a loop that take what the round before took are not gone through, but multiplied.

A loop on shadows goes round until two rounds in succession take the same work and bytes, add the
same to what is alive and hand on values of the same kinds, and no branch in them was chosen by a
number that is known: then so do all that follow, as long as they are given the same rows of stacks.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from lineara.engines.memory import owner
from lineara.engines.values import ZERO, Repeated, Tagged, alike, nbytes
from lineara.facts.hints import Tree


class Steady:
    """What the last round of a loop has taken.

    `unknown(number, n)` is what stands for n numbers, or for one, of which the type is known.
    """

    unknown: Callable[..., Any]
    peak: Any
    machine: Any

    def __init__(self, machine: Any, unknown: Callable[..., Any]) -> None:
        self.machine, self.unknown = machine, unknown
        self.taken: Any = None
        self.numbers: list[Any] = []  # of the carries, those that are known
        self._begin()

    def _begin(self) -> None:
        """A round begins, whose own peak is measured."""
        machine, meter = self.machine, self.machine.meter
        self.before: tuple[Any, Any, Any] = machine.work, machine.written, meter.live
        self.decisions: Any = machine.values.decisions
        self.peak, meter.peak = meter.peak, meter.live

    def ended(
        self, zones: tuple[list[Any], ...], rows: list[list[Any]], left: int,
        given: Sequence[Any] = (), at: int = 0, step: int = 1,
    ) -> int:  # fmt: skip
        """A round has ended: how many of those that are left are as it was.

        It was `given` the row at this place of each of these stacks.  Those rounds are counted, and
        stand in the rows; numbers that they carry on and change are not known from then on.
        """
        machine, meter = self.machine, self.machine.meter
        after = machine.work, machine.written, meter.live
        each = tuple([b - a for a, b in zip(self.before, after, strict=True)])
        inside = meter.peak - self.before[2]
        meter.peak = max(self.peak, meter.peak)
        numbers = [[*map(_known, zone)] for zone in zones]
        kinds = [[*map(self._kind, zone)] for zone in zones]
        taken = each, inside, kinds, [row[-1] is ZERO for row in rows]
        new = [_new_bytes(row) for row in rows]
        decided = machine.values.decisions > self.decisions
        steady = taken == self.taken and not decided and each[2] == sum(new)
        before, self.taken, self.numbers = self.numbers, taken, numbers
        if steady and left:
            left = min([left, *[alike(stack, at, step, left) for stack in given]])
            left *= not any([isinstance(row, Repeated) for row in rows])  # which has one such row
        if not steady or left < 1:
            self._begin()
            return 0
        machine.work += left * each[0]
        machine.written += left * each[1]
        for i, n in enumerate(new):
            rows[i] = repeated(rows[i], left, n, self.unknown)
            meter.made(rows[i])
        meter.peak = max(meter.peak, meter.live - each[2] + inside)
        for zone, old in zip(zones, before, strict=True):
            zone[:] = map(self._later, zone, old)
        self._begin()
        return left

    def over(self) -> None:
        """The loop is over, and its peak is one of the run."""
        self.machine.meter.peak = max(self.peak, self.machine.meter.peak)

    def _later(self, v: Tree, old: Any) -> Any:
        """A carry some rounds later."""
        if isinstance(v, tuple) and not isinstance(v, Tagged):
            return tuple(map(self._later, v, old))
        known = _known(v)
        return v if known is None or known == old else self.unknown(v)

    def _kind(self, v: Tree) -> Any:
        """What must be the same from round to round of a carry."""
        if isinstance(v, Tagged):
            return v.tag, self._kind(v.payload)
        if isinstance(v, tuple):
            return tuple(map(self._kind, v))
        flags = getattr(v, "flags", None)
        return type(v), v in self.machine.owners, getattr(flags, "writeable", None)


class Many:
    """Many numbers, of which the bytes are known."""

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes


def repeated(rows: list[Any], more: int, n: int | None, unknown: Callable[..., Any]) -> list[Any]:
    """A stack of these rows and, so often, the last one again, of which n bytes are arrays."""
    row = rows[-1]
    if row is ZERO:
        return Repeated(rows, [], more)
    n = _new_bytes(rows[-1:]) if n is None else n
    numbers = nbytes(row) - sum([a.nbytes for a in _arrays(row)])
    rest = [unknown(np.uint8(0), more * n)] if n else []
    return Repeated(rows, [*rest, Many(more * numbers)] if numbers else rest, more)


def _known(v: Tree) -> Any:
    """The numbers in a value that are known; None in place of everything else."""
    if isinstance(v, tuple) and not isinstance(v, Tagged):
        return tuple(map(_known, v))
    return v if isinstance(v, np.generic | int | float | complex) else None


def _arrays(v: Tree) -> Iterator[Any]:
    if isinstance(v, Tagged):
        yield from _arrays(v.payload)
    elif isinstance(v, tuple | list):
        for w in v:
            yield from _arrays(w)
    elif getattr(v, "ndim", 0):
        yield v


def _new_bytes(rows: list[Any]) -> int:
    """The bytes of the memory that the last row shows, and not the one before it."""
    both = ([rows[-i]] if len(rows) >= i else [] for i in (1, 2))
    last, before = ({id(owner(a)): owner(a) for v in vs for a in _arrays(v)} for vs in both)
    return sum([a.nbytes for k, a in last.items() if k not in before])
