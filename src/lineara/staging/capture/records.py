"""A block as a definition: what it writes, what it leaves in variables and in arrays.

record(around, like, formals, run)     run writes one definition inside `around`
join(...)                              what variables hold after one of several blocks
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from lineara.errors import ShapeError, StagingError, StructureError
from lineara.facts.hints import Leaf, Tree
from lineara.facts.primitive import op
from lineara.facts.types import ArrayType, is_number, show_type
from lineara.linear_a import syntax as ir
from lineara.linear_a.rules_as_text import Boxed, closed, tidy
from lineara.staging.capture.containers import held
from lineara.staging.capture.variables import UNSET
from lineara.staging.control_flow import joined
from lineara.staging.staged_arrays import Aliases, Cell, StagedArray, as_box
from lineara.staging.staged_level import EXACT, FLOAT64, Seen, StagedLevel, seen
from lineara.tape.levels import open_level
from lineara.tape.node import Traced
from lineara.trees import Structure, flatten, unflatten


class Column(NamedTuple):
    """A value that a block leaves: its containers, and its leaves as they are and as entered."""

    tree: Any  # as the block gave it; UNSET for none
    structure: Structure | None
    leaves: list[Any]
    entered: list[Any]  # boxes, and constants
    seen: list[Seen | None]  # what is known of the leaves that are numbers
    aliases: list[Any]  # of each leaf the array whose memory it shares, which others may hold
    containers: Sequence[Any] = ()  # those of its containers that can be changed


class Record(NamedTuple):
    """What a block wrote."""

    name: str
    level: StagedLevel
    out: Any
    formals: list[ir.Var]
    columns: dict[Any, Column]
    changed: dict[Cell, Any]  # storage of definitions around that it wrote, as it is at its end
    mentions: list[tuple[Any, ir.Var]]  # what it mentions of the code around, and the formals
    stays: Callable[[ir.Binding], bool]

    def variable(self, value: Leaf, t: ArrayType) -> ir.Var:
        """A leaf as a variable of a type."""
        if not isinstance(value, Boxed):
            made: ir.Var = self.out.bind("v", t, ir.lit(np.asarray(value, t.dtype)[()], t))
            return made
        return value.var if value.var.type == t else op("astype")(value, dtype=t.dtype).var

    def pruned(self, results: Sequence[ir.Var]) -> "Record":
        """The record with the mentions alone that results need."""
        kept = tidy(self.out.bindings, results, self.stays)
        used = {v for b in kept for v in ir.reads(b)} | {*results}
        return self._replace(mentions=[(a, v) for a, v in self.mentions if v in used])

    def define(
        self, around: Sequence[Any], boxes: Mapping[Any, ir.Var], results: Sequence[ir.Var],
        formals: Sequence[ir.Var], first: bool,
    ) -> ir.Def:  # fmt: skip
        """The definition; formals for what is mentioned come first or last."""
        extra = [boxes.get(b.var) or self.out.fresh(b.var.name or "x", b.var.type) for b in around]
        params = [*extra, *formals] if first else [*formals, *extra]
        bindings = closed(self.out.bindings, params, results, self.stays)
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
    """What `run(level, nodes of the formals)` writes; it gives the columns by their keys."""
    name = name or around.name_of_definition(like)
    with open_level(StagedLevel) as level, around.holding(level):
        level.hands_on = True
        nodes = [level.formal(n, known) for n, known in formals]
        variables = [n.now().v.var for n in nodes]
        columns = {key: _column(level, tree) for key, tree in run(level, nodes).items()}
        level.shared.refuse_changes()
        changed = {
            cell: as_box(level, cell.content)
            for cell, _, version in level.taken
            if cell.version != version
        }
        mentions = [(a, v) for v, a in (*level.around.values(), *level.beside)]
        out, stays = level.out, level.shared.stays
    return Record(name, level, out, variables, columns, changed, mentions, stays)


def _column(level: StagedLevel, tree: Tree) -> Column:
    if tree is UNSET:
        return Column(UNSET, None, [], [], [], [])
    leaves, structure = flatten(tree)
    aliases = [_alias(level, v) for v in leaves]
    known = [seen(v) if is_leaf(v) else None for v in leaves]
    entered = [_entered(level, v) for v in leaves]
    return Column(tree, structure, leaves, entered, known, aliases, held(tree))


def is_leaf(v: Any) -> bool:
    """Whether a leaf is a number or an array, staged or not."""
    return isinstance(v, Traced | np.ndarray | bool | np.bool_) or is_number(v)


def _entered(level: StagedLevel, v: Any) -> Any:
    v = level.entered(v) if issubclass(type(v), Traced) else v
    return as_box(level, v) if issubclass(type(v), np.ndarray) and v.ndim else v


def _alias(level: StagedLevel, v: Any) -> Any:
    """The array itself, where other arrays than the block's own variables may show its memory."""
    if not issubclass(type(v), StagedArray):
        return v if issubclass(type(v), np.ndarray) and v.ndim else None
    own = v.w.buffer.home is level and not v.w.steps and v.w.source is None
    return None if own else v


class Joined(NamedTuple):
    """What one column is after one of several blocks: its structure, and of each leaf a type."""

    structure: Structure | None
    constants: list[Any]
    likes: list[Seen | None]  # None for a constant

    def tree(self, nodes: Iterable[Any]) -> Any:
        """The value with these in place of the leaves that are no constants."""
        if self.structure is None:
            return UNSET
        left = iter(nodes)
        pairs = zip(self.constants, self.likes, strict=True)
        return unflatten(self.structure, [c if t is None else next(left) for c, t in pairs])

    @property
    def results(self) -> list[Seen]:
        """The types of the leaves that are no constants."""
        return [t for t in self.likes if t is not None]


def join(what: str, columns: Sequence[Column], where: str) -> Joined:
    """What a value is that is one of these; `what` and `where` say so in errors."""
    first = columns[0]
    for c in columns:
        if c.structure != first.structure:
            raise StructureError(
                f"{what} is {_shown(first)} and {_shown(c)} {where}; make it the same containers"
            )
    constants, likes = [], []
    for i, leaf in enumerate(first.leaves):
        like = _join_leaf(what, [c.leaves[i] for c in columns], [c.seen[i] for c in columns], where)
        constants.append(leaf)
        likes.append(like)
    return Joined(first.structure, constants, likes)


def same_constant(a: object, b: object) -> bool:
    """Whether two leaves are one and the same constant."""
    if a is b:
        return not isinstance(a, Traced | np.ndarray)
    if isinstance(a, Traced | np.ndarray) or type(a) is not type(b):
        return False
    if isinstance(a, float | complex):
        return repr(a) == repr(b)
    return isinstance(a, int | str | bytes | bool | np.generic) and bool(a == b)


def _join_leaf(what: str, leaves: list[Any], known: list[Seen | None], where: str) -> Seen | None:
    if all([same_constant(v, leaves[0]) for v in leaves]):
        return None
    numbers = [k for k in known if k is not None]
    if len(numbers) < len(known):
        shown = " and ".join(dict.fromkeys(map(_shown_leaf, leaves)))
        raise StructureError(f"{what} is {shown} {where}; what is no number must be the same there")
    types = {k.type.dtype for k in numbers}
    if len(types) > 1 and not all(map(_is_float, leaves, numbers)):
        shown = " and ".join(dict.fromkeys([repr(k.type) for k in numbers]))
        raise StructureError(
            f"{what} is {shown} {where}, and what Python does with these differs; make them of one "
            "type, with float() or astype"
        )
    if len({k.type.shape for k in numbers}) > 1:
        shown = " and ".join(dict.fromkeys([repr(k.type) for k in numbers]))
        raise ShapeError(f"{what} is {shown} {where}; it must keep its shape")
    return joined(numbers)


def _is_float(leaf: Any, known: Seen) -> bool:
    """Whether a leaf is a float64, or a whole number that is one: 0 where another one is 0.5."""
    whole = type(leaf) is int and abs(leaf) <= EXACT
    return whole or (not known.type.shape and known.type == FLOAT64)


def _shown(c: Column) -> str:
    return "without a value" if c.structure is None else f"{c.structure}"


def _shown_leaf(v: Leaf) -> str:
    return repr(v) if v is None or isinstance(v, str | bool | int | float) else show_type(v)


def together(around: StagedLevel, records: Sequence[Record]) -> tuple[list[Boxed], list[dict]]:
    """What any of them mentions, as boxes of the code around; for each its formals by those."""
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
    """Storage holds what a block left in it."""
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
    cell.version += 1


def mark_aliases(
    nodes: Sequence[Any], places: Sequence[tuple[Any, int]], records: Sequence[Record]
) -> None:
    """Say of arrays that a form gave which others may show their memory.

    `places` are the columns and leaves that the first nodes stand for.  Python gives what one of
    the blocks gave, which others may hold; in the program it is an array of its own.
    """
    others: list[list[Any]] = [[] for _ in places]
    for r in records:
        shown: dict[int, list[int]] = {}
        for k, (key, i) in enumerate(places):
            column = r.columns[key]
            if not column.leaves:
                continue
            if column.aliases[i] is not None:
                others[k].append(column.aliases[i])
            leaf = column.leaves[i]
            if isinstance(leaf, StagedArray):
                shown.setdefault(id(leaf.w.buffer), []).append(k)
        for same in shown.values():
            for k in same:
                others[k] += [nodes[m] for m in same if m != k]
    for node, same in zip(nodes, others, strict=False):
        if same and isinstance(node, StagedArray):
            node.w.source = Aliases(same)
