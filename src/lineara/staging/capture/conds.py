"""Blocks of which one is done become a `cond`: what they leave in places and arrays is joined."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from lineara.errors import StagingError
from lineara.facts.hints import Leaf
from lineara.facts.primitive import op
from lineara.facts.types import type_of
from lineara.linear_a.branches import Cond
from lineara.python.user_code import reading
from lineara.staging.capture.choices import OneOf, is_perhaps, with_value
from lineara.staging.capture.columns import (
    Column,
    Joined,
    join,
    or_unset,
    unset_where,
    with_choices,
)
from lineara.staging.capture.containers import Snapshot, doubt, in_use
from lineara.staging.capture.joins import held, is_leaf
from lineara.staging.capture.list_items import Wanted
from lineara.staging.capture.lists import List, raw
from lineara.staging.capture.records import Record, change, mark_aliases, together
from lineara.staging.capture.variables import (
    BREAK,
    CONTINUE,
    RAISED,
    RETURNED,
    UNSET,
    Codes,
    Entry,
    Mixed,
    Place,
    Raised,
    Return,
    Variables,
    Way,
    coded,
    codes,
    said,
)
from lineara.staging.control_flow import written
from lineara.staging.staged_level import Seen, StagedLevel
from lineara.tape.node import Traced

WHERE = "in the two branches of a staged condition"


class Written(NamedTuple):
    """A block of a branch as it was traced."""

    record: Record
    values: dict[Any, Any]  # what the places hold at its end
    left: Way
    snapshot: Snapshot  # what it could reach before
    narrowed: Mapping[Place, Any] = MappingProxyType({})  # what choices held that it knew

    def leaves(self, n: Place, before: Leaf) -> bool:
        """Whether a place holds the same value at the end of the block as at its beginning."""
        value = self.values[n]
        return value is before or (n in self.narrowed and value is self.narrowed[n])


def places_of(way: Way, values: Mapping[Any, Any]) -> dict[Any, Any]:
    """What a block leaves that is left in this way: the way, and the values of the places."""
    code, value = coded(way)
    columns: dict[Any, Any] = {"code": code, "value": value}
    columns |= {(n,): v for n, v in values.items()}
    if isinstance(way, Mixed):
        columns |= {(n,): v for n, (v, _) in way.perhaps.items()}
        columns |= {("tagged", n): perhaps_of(way, n) for n in way.perhaps}
    return columns


def decoded(
    code: Any, value: Any, possible: Codes, perhaps: Mapping[str, Any], variables: Variables
) -> Way:
    """The way of a code, which is staged where several are possible.

    Variables that have a value on all of these get it, and those that may have one on others.
    """
    rest = {n: p for n, p in perhaps.items() if not possible <= p[1] and possible & p[1]}
    here = {n: p for n, p in perhaps.items() if n not in rest}
    for n, (v, bound) in here.items():
        if possible <= bound:
            variables.set({n: with_value(v)[0] if is_perhaps(v) else v})
        elif is_perhaps(v):
            variables.set({n: v})
    if len(possible) > 1:
        return Mixed(code, value, possible, rest)
    (one,) = possible
    if one >= RAISED:
        return Raised(one)
    return Return(value) if one == RETURNED else (None, None, BREAK, CONTINUE)[one]


def perhaps_of(way: Mixed, n: str) -> OneOf:
    """A variable that has a value on some of the ways in which a block was left."""
    value, bound = way.perhaps[n]
    if is_perhaps(value):
        return value
    fails: Any = None
    for c in sorted(way.codes - bound):
        here = op("equal")(way.code, c)
        fails = here if fails is None else op("logical_or")(fails, here)
    return unset_where(fails, value)


class Form:
    """A `cond` under construction, from the records of its two blocks."""

    ways: list[dict[Any, Any]]
    variables: Variables
    test: Any
    level: StagedLevel
    left: list[Way]
    blocks: Sequence[Written]
    before: dict[Any, Any]

    def __init__(
        self, level: StagedLevel, test: Any, blocks: Sequence[Written], before: dict[Any, Any],
        variables: Variables,
    ) -> None:  # fmt: skip
        self.level, self.test, self.blocks = level, test, blocks
        self.records: list[Record] = [b.record for b in blocks]
        self.ways, self.left = [b.values for b in blocks], [b.left for b in blocks]
        self.codes: list[Codes] = [*map(codes, self.left)]
        self.before, self.variables = before, variables

    def write(self) -> Way:
        """Write the form; variables, entries and arrays then hold its results."""
        perhaps = {n: None for w in self.left if isinstance(w, Mixed) for n in w.perhaps}
        names = [
            n for n, v in self.before.items()
            if n in perhaps or not all([b.leaves(n, v) for b in self.blocks])
        ]  # fmt: skip
        some: dict[Any, frozenset[int]] = {}  # on which ways those have a value that may have none
        possible = frozenset[int]().union(*self.codes)
        joined: dict[Any, Joined] = {}
        if len(possible) > 1:
            joined["code"] = self._join("code", "the way out")
        values = [r.columns["value"] for r in self.records]
        if any([c.tree is not UNSET for c in values]):
            joined["value"] = self._join("value", "what is returned", values)
        kept: dict[Any, Any] = {}
        for n in names:
            columns = [r.columns[n,] for r in self.records]
            trees = [c.tree for c in columns]
            bound = self._bound(n)
            if bound is not None and (not bound or self._perhaps(n)):
                for r in self.records:
                    r.columns[n,] = or_unset(r.columns.get(("tagged", n), r.columns[n,]))
            if bound is not None:
                joined[n,] = self._join((n,), said(n))
                if bound:
                    kept[n], some[n] = UNSET, bound
            elif all([t is trees[0] for t in trees]):
                kept[n] = trees[0]
            else:
                _chosen_in_list(n, trees)
                joined[n,] = self._join((n,), said(n))
        cells = list(dict.fromkeys([c for r in self.records for c in r.changed]))
        nodes = self._written(joined, cells)
        taken = iter(nodes)
        given = {key: j.tree([next(taken) for _ in j.results]) for key, j in joined.items()}
        for cell, content in zip(cells, taken, strict=True):
            change(self.level, cell, content)
        given_to = {key[0]: v for key, v in given.items() if type(key) is tuple}
        self.variables.set(kept | {n: v for n, v in given_to.items() if n not in some})
        self._mark(joined, nodes)
        self._doubt(given)
        value = given.get("value", UNSET)
        perhaps = {n: (given_to[n], bound) for n, bound in some.items()}
        return decoded(given.get("code"), value, possible, perhaps, self.variables)

    def _doubt(self, given: dict[Any, Any]) -> None:
        """Refuse later changes of containers that are one object in Python and two here."""
        changed = {key: held(tree) for key, tree in given.items()}
        if any(changed.values()):
            before = [x for v in self.before.values() for x in held(v)]
            for b in self.blocks:
                old = in_use(self.level, b.snapshot, before, b.record.columns.values())
                for key, containers in changed.items():
                    several = [x for x in b.record.columns[key].containers if id(x) in old]
                    doubt(self.level, [*several, *(containers if several else ())])

    def _perhaps(self, n: Any) -> bool:
        """Whether a block leaves a choice in a variable that may have no value."""
        each = zip(self.left, self.ways, strict=True)
        some = [(w.perhaps[n][0] if isinstance(w, Mixed) and n in w.perhaps else v[n])
                for w, v in each]  # fmt: skip
        return any(map(is_perhaps, some))

    def _bound(self, n: Any) -> frozenset[int] | None:
        """The codes with which a variable has a value, where it may have none; None if it has one.

        None of them where the code does not tell whether it has one.
        """
        sure = [v[n] is not UNSET and not is_perhaps(v[n]) for v in self.ways]
        if all(sure):
            return None
        bound, unbound = set[int](), set[int]()
        for way, every, known in zip(self.left, self.codes, sure, strict=True):
            some = way.perhaps.get(n) if isinstance(way, Mixed) else None
            has = every if known else some[1] if some else frozenset()
            bound |= has
            unbound |= every - has
        if not unbound:
            return None
        return frozenset() if bound & unbound else frozenset(bound)

    def _join(self, key: object, what: str, columns: list[Column] | None = None) -> Joined:
        columns = columns or [r.columns[key] for r in self.records]
        full = [c for c in columns if c.tree is not UNSET]
        if len(full) < len(columns):  # of a return that the other branch does not make
            columns = [full[0] if c.tree is UNSET else c for c in columns]
        else:
            columns = with_choices(columns)
            for r, c in zip(self.records, columns, strict=True):
                r.columns[key] = c
        one = join(what, columns, WHERE)
        if len(full) < len(columns):
            likes = next(c.seen for c in full)
            differs = [like if isinstance(v, Traced) else None for like, v in
                       zip(likes, full[0].leaves, strict=True)]  # fmt: skip
            one = one._replace(likes=differs)
        return one

    def _written(self, joined: dict[Any, Joined], cells: list[Any]) -> list[Any]:
        """The results of the form: the leaves of the joined values, then the storage."""
        records, results = [], []
        for r in self.records:
            variables = []
            for key, j in joined.items():
                entered = r.columns[key].entered or [None] * len(j.likes)
                for v, like in zip(entered, j.likes, strict=True):
                    if like is not None:
                        v = np.zeros(like.type.shape, like.type.dtype) if v is None else v
                        variables.append(r.variable(v, like.type))
            variables += [self._content(r, cell).var for cell in cells]
            results.append(variables)
            records.append(r.pruned(variables))
        around, each = together(self.level, records)
        pairs = zip(records, each, results, strict=True)
        self.level.add(
            *[r.define(around, mine, variables, (), False) for r, mine, variables in pairs]
        )
        args = [self.level.as_box(self.test), *around]
        leaf = Cond(tuple([b.var for b in args]), tuple([r.name for r in records]))
        likes = [like for j in joined.values() for like in j.results]
        likes += [Seen(type_of(cell.content), cell.lay) for cell in cells]
        return written(self.level, leaf, likes)

    def _content(self, r: Record, cell: Any) -> Any:
        """The content of a storage at the end of a block, whether or not the block wrote it."""
        if cell in r.changed:
            return r.changed[cell]
        cell.here()
        outer = cell.boxed()
        for a, v in r.mentions:
            if self.level.as_box(a).var is outer.var:
                return r.out.box(v)
        v = r.out.fresh("x", outer.var.type)
        r.mentions.append((self.level.still(outer, cell.lay), v))
        return r.out.box(v)

    def _mark(self, joined: dict[Any, Joined], nodes: list[Any]) -> None:
        places = [(key, i) for key, j in joined.items() for i, t in enumerate(j.likes) if t]
        mark_aliases(nodes, places, self.records)


def _chosen_in_list(n: Place, trees: Sequence[Any]) -> None:
    """A list of lists of numbers, of which blocks choose an item, holds them as rows.

    What is joined are their numbers, and they stay the lists that they are under all their names.
    In a try the block that would be written again may have been split.
    """
    if not isinstance(n, Entry) or type(n.container) is not List:
        return
    now = reading()
    if now is None or now.tries:
        return
    lists = [*trees, *raw(n.container)]
    if all([type(x) is List for x in lists]) and all([is_leaf(v) for x in lists for v in raw(x)]):
        wanted = Wanted(n.container, (), 0)
        with suppress(StagingError):  # another level's list is joined by its items
            wanted.refuse_far()
            raise wanted
