"""What lies at places of arrays, as far as the lines of one block of code tell.

A place is a number of elements from the beginning of a buffer that rounds tell, so of two places it
is often known that they are never the same one.  A number that was read or stored is in its
register until something may be stored over it.  A store that nobody reads before the next one to
its place is taken back, and what a place has is not stored there again: what is read, cleared and
added to again stays as it is.

And of a loop it is known whether any round stores where another one reads or stores.
"""

from collections.abc import Sequence
from typing import NamedTuple

from lineara.engines.native.numbers import FLOATS, Affine, Arena, Arr, Buffer, Num, Round, kind_of

MOST = 8
"""Places of one buffer that are known at a time."""


class Place(NamedTuple):
    """A place and the number there; the line that stored it, if nobody has read it since.

    Before that line the place had the number `before`, if that is known.
    """

    at: Affine
    number: Num
    line: int | None = None
    before: Num | None = None

    def is_at(self, where: Affine | None, array: Arr) -> bool:
        """Whether it is that place of an array."""
        return self.at == where and self.number.kind == kind_of(array.type)

    def is_apart(self, where: Affine | None, array: Arr) -> bool:
        """Whether it is never that place of an array."""
        if where is None or self.number.kind != kind_of(array.type):
            return False
        ends = self.at.plus(where, -1).range()
        return ends is not None and not ends[0] <= 0 <= ends[1]


class Places:
    """The places of arrays that are known."""

    def __init__(self) -> None:
        self.known: dict[Buffer, list[Place]] = {}

    def read(self, array: Arr, at: Num | None) -> Num | None:
        """The number at a place, if it is known; else stores to what may be the place are read."""
        where, known = place_of(array, at), self.known.get(array.buffer, [])
        for p in known:
            if p.is_at(where, array):
                return p.number
        known[:] = [p if p.is_apart(where, array) else Place(p.at, p.number) for p in known]
        return None

    def over(self, array: Arr, at: Num | None) -> Place | None:
        """What is known of a place that is stored to; what may be the same place is forgotten."""
        where, known = place_of(array, at), self.known.get(array.buffer, [])
        same = next((p for p in known if p.is_at(where, array)), None)
        known[:] = [p for p in known if p.is_apart(where, array)]
        return same

    def know(
        self,
        array: Arr,
        at: Num | None,
        number: Num,
        line: int | None = None,
        before: Num | None = None,
    ) -> None:
        """A number is at a place from now on."""
        where = place_of(array, at)
        if where is not None and number.kind == kind_of(array.type):
            known = self.known.setdefault(array.buffer, [])
            known.append(Place(where, number, line, before))
            del known[:-MOST]


class Reached:
    """The places that the rounds of a loop reach, if all of them are known."""

    def __init__(self, group: str = "") -> None:
        self.group = group  # the name that LLVM has for the lines that reach memory
        self.is_known = bool(group)
        self.is_innermost = True
        self.places: dict[Buffer, list[tuple[Affine | None, bool]]] = {}

    def add(self, array: Arr, at: Num | None, stores: bool) -> None:
        """A number is read or stored."""
        self.places.setdefault(array.buffer, []).append((place_of(array, at), stores))

    def are_apart(self, r: Round) -> bool:
        """Whether no two rounds reach one place, but for places that all of them only read."""
        return self.is_known and all([
            differ(x, w, r)
            for places in self.places.values()
            for x, stores in places if stores
            for w, _ in places
        ])  # fmt: skip


def differ(x: Affine | None, w: Affine | None, r: Round) -> bool:
    """Whether two places are never the same one in two different rounds of a loop."""
    if x is None or w is None:
        return False
    if x == w and r in dict(x.terms):
        return True
    other = Affine(0, ((Round(r.n, r.most), 1),))
    ends = x.plus(w.at(r, other), -1).range()
    return ends is not None and not ends[0] <= 0 <= ends[1]


def may_be_later(p: Affine, rounds: Sequence[Round], q: Affine, others: Sequence[Round]) -> bool:
    """Whether place q, in the rounds of other loops, may be p in the same rounds or in later ones.

    Later is what is later in the outermost loop that both are in, or as late there and later in the
    next one.  All loops within are in any round.
    """
    both = [r for r, s in zip(rounds, others, strict=False) if r is s]
    if both != [*rounds[: len(both)]]:
        return True
    for i in range(len(both) + 1):
        at = {r: one(r) for r in both[:i]}
        if i < len(both):
            r = both[i]
            if r.most is None:
                return True
            more = Round(None, r.most.plus(one(r), -1).plus(Affine(-1)))
            at[r] = one(r).plus(Affine(1)).plus(one(more))
        apart = elsewhere(q, at).plus(p, -1)
        least, most = apart.end(-1), apart.end(1)
        if (least is None or least <= 0) and (most is None or most >= 0):
            return True
    return False


def one(r: Round) -> Affine:
    """The round itself."""
    return Affine(0, ((r, 1),))


def elsewhere(a: Affine, at: dict[Round, Affine]) -> Affine:
    """The same in other rounds: those that are told, and for every other loop any round of it."""
    moved = Affine(a.constant)
    for r, k in a.terms:
        if r not in at:
            at[r] = one(Round(r.n, None if r.most is None else elsewhere(r.most, at)))
        moved = moved.plus(at[r], k)
    return moved


def place_of(array: Arr, at: Num | None) -> Affine | None:
    """Which place of its buffer an element of an array has, if rounds tell."""
    if array.at or kind_of(array.type) not in FLOATS or isinstance(array.buffer, Arena):
        return None
    return Affine(0) if at is None else at.affine


__all__ = ["Places", "Reached", "may_be_later"]
