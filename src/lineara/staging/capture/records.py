"""A block as a definition: what it writes, what it leaves in variables and in arrays.

record(around, like, formals, run)     run writes one definition inside `around`
"""

import sys
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any, NamedTuple

import numpy as np

from lineara.errors import StagingError
from lineara.facts.hints import Leaf, Tree
from lineara.facts.primitive import op
from lineara.facts.types import ArrayType
from lineara.linear_a import syntax as ir
from lineara.linear_a.rules_as_text import Boxed, dropping, tidy
from lineara.staging.capture.columns import Column, column
from lineara.staging.staged_arrays import Cell, StagedArray, as_box, may_be_one, note_aliases
from lineara.staging.staged_level import Seen, StagedLevel, open_definition


class Record(NamedTuple):
    """The trace of a block: its bindings, and the columns that it leaves."""

    name: str
    level: StagedLevel
    out: Any
    formals: list[ir.Var]
    columns: dict[Any, Column]
    changed: dict[Cell, Any]  # storage of definitions around that it wrote, as it is at its end
    mentions: list[tuple[Any, ir.Var]]  # what it mentions of the code around, and the formals
    stays: Callable[[ir.Binding], bool]
    kept: Sequence[ir.Binding] = ()  # those that the results need, once these are known
    used: Set[ir.Var] = frozenset()  # the variables in these and the results

    def variable(self, value: Leaf, t: ArrayType) -> ir.Var:
        """A leaf as a variable of a type."""
        if not isinstance(value, Boxed):
            made: ir.Var = self.out.bind("v", t, ir.lit(np.asarray(value, t.dtype)[()], t))
            return made
        return value.var if value.var.type == t else op("astype")(value, dtype=t.dtype).var

    def pruned(self, results: Sequence[ir.Var]) -> "Record":
        """The record without what its results do not need."""
        kept, used = tidy(self.out.bindings, results, self.stays)
        mentions = [m for m in self.mentions if m[1] in used]
        return Record(*self[:6], mentions, self.stays, kept, used)

    def define(
        self, around: Sequence[Any], boxes: Mapping[Any, ir.Var], results: Sequence[ir.Var],
        formals: Sequence[ir.Var], first: bool,
    ) -> ir.Def:  # fmt: skip
        """The definition of a pruned record; formals for what is mentioned come first or last."""
        extra = [boxes.get(b.var) or self.out.fresh(b.var.name or "x", b.var.type) for b in around]
        params = [*extra, *formals] if first else [*formals, *extra]
        bindings = dropping(self.kept, self.used, params)
        types = tuple([v.type for v in results])
        body = ir.Block(tuple(bindings), ir.Ret(tuple(results)))
        return ir.Def(self.name, tuple(params), types, (), body)


def record(
    around: StagedLevel,
    like: str,
    formals: Sequence[tuple[str, Seen]],
    run: Callable[[StagedLevel, list[Any]], dict[Any, Any]],
    name: str = "",
) -> Record:
    """The record of `run(level, nodes of the formals)`, which returns columns by their keys."""
    one = Recording(around, like, formals, name)
    try:
        return one.end(run(one.level, one.nodes))
    except BaseException:
        one.abandon()
        raise


class Recording:
    """A block that is being written, from its formals on."""

    def __init__(
        self, around: StagedLevel, like: str, formals: Sequence[tuple[str, Seen]], name: str = ""
    ) -> None:
        self.name: str = name or around.name_of_definition(like)
        self.open: open_definition = open_definition(around)
        self.level: StagedLevel = self.open.__enter__()
        self.level.hands_on = True
        self.nodes: list[Any] = [self.level.formal(n, known) for n, known in formals]
        self.formals: list[Any] = [n.now().v.var for n in self.nodes]
        self.copied: int = len(self.level.shared.copied)

    def end(self, trees: Mapping[Any, Tree]) -> Record:
        """The record of the block, which leaves these."""
        level = self.level
        level.ends = True
        columns = {key: column(level, tree) for key, tree in trees.items()}
        level.shared.refuse_changes()
        level.shared.refuse_writes(self.copied)
        changed = {
            cell: as_box(level, cell.content)
            for cell, _, version in level.taken
            if cell.version != version
        }
        mentions = [(a, v) for v, a in (*level.around.values(), *level.beside)]
        stays = level.shared.stays
        self.open.__exit__(None, None, None)
        return Record(self.name, level, level.out, self.formals, columns, changed, mentions, stays)

    def abandon(self) -> None:
        """Give it up, where an exception is on its way."""
        self.open.__exit__(*sys.exc_info())


def together(
    around: StagedLevel, records: Sequence[Record]
) -> tuple[list[Boxed], list[dict[Any, Any]]]:
    """The values around that any record mentions; for each record its formals for them."""
    all_: dict[ir.Var, Boxed] = {}
    each = []
    for r in records:
        mine = {}
        for a, v in r.mentions:
            box = around.as_box(a)
            all_[box.var], mine[box.var] = box, v
        each.append(mine)
    return list(all_.values()), each


def change(around: StagedLevel, cell: Cell, content: Any) -> None:
    """Let storage hold the content that a block left in it."""
    cell.here()
    if cell.home is not around and not around.hands_on:
        raise StagingError(
            "the function of a branch or loop writes into an array that was made outside it; "
            "pass the array in, and return it"
        )
    cell.level.shared.written = True
    if not cell.version:
        cell.level.overlaps.write(cell)
    cell.content = content.now().v
    cell.wrote()


def mark_aliases(
    nodes: Sequence[Any],
    places: Sequence[tuple[Any, int]],
    records: Sequence[Record],
    passed_on: Sequence[Sequence[Any]] = (),
) -> None:
    """Say of arrays that a form gave which others may show their memory.

    `places` are the columns and leaves that the first nodes stand for.  Python gives what one of
    the blocks gave, which others may hold; in the program it is an array of its own.  `passed_on`
    has for each of them what else it may be.
    """
    others: list[list[Any]] = [[*more] for more in passed_on] or [[] for _ in places]
    for r in records:
        shown: list[tuple[int, Any]] = []
        for k, (key, i) in enumerate(places):
            column = r.columns[key]
            if not column.leaves:
                continue
            if column.aliases[i] is not None:
                others[k].append(column.aliases[i])
            leaf = column.leaves[i]
            if issubclass(type(leaf), StagedArray):
                copied = r.level.shared.copied
                others[k] += [t for note, t in copied if note.store is leaf.w.buffer]
                for m, store in shown:
                    if may_be_one(store, leaf.w.buffer):
                        others[k].append(nodes[m])
                        others[m].append(nodes[k])
                shown.append((k, leaf.w.buffer))
    note_aliases(zip(nodes, others, strict=False))
