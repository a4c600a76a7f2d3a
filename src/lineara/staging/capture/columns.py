"""What blocks leave in a place, by leaves; what the place holds after one of several blocks.

column(level, tree)     what a block leaves
with_choices(columns)   where blocks leave different things, each as a choice of one of these
join(columns)           the containers, constants and types after one of the blocks
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from lineara.errors import StructureError
from lineara.facts.hints import Leaf, Tree
from lineara.facts.primitive import op
from lineara.staging.capture.choices import OneOf, Shape, built, flattened, is_perhaps
from lineara.staging.capture.joins import held, is_leaf, join_leaf, same_constant
from lineara.staging.capture.variables import UNSET
from lineara.staging.control_flow import INTEGER, joined
from lineara.staging.staged_arrays import StagedArray, as_box
from lineara.staging.staged_level import FLOAT64, Seen, StagedLevel, seen
from lineara.tape.node import Scalar, Traced
from lineara.trees import LEAF


class Column(NamedTuple):
    """A value that a block leaves: its containers, and its leaves as they are and as entered."""

    tree: Any  # as the block gave it; UNSET for none
    structure: Shape | None
    leaves: list[Any]
    entered: list[Any]  # boxes, and constants
    seen: list[Seen | None]  # what is known of the leaves that are numbers
    aliases: list[Any]  # of each leaf the array whose memory it shares, which others may hold
    containers: Sequence[Any] = ()  # those of its containers that can be changed


NUMBER = Shape(LEAF, (None,))


def column(level: StagedLevel, tree: Tree) -> Column:
    """The column of the value that a block leaves in a place."""
    if tree is UNSET:
        return Column(UNSET, None, [], [], [], [])
    if issubclass(type(tree), Scalar):
        return Column(tree, NUMBER, [tree], [level.operand(tree)], [seen(tree)], [None])
    if type(tree) is float or (type(tree) is int and tree.bit_length() < 64):
        known = Seen(FLOAT64 if type(tree) is float else INTEGER, (), True)
        return Column(tree, NUMBER, [tree], [tree], [known], [None])
    leaves, structure = flattened(tree)
    aliases = [_alias(level, v) for v in leaves]
    known = [seen(v) if is_leaf(v) else None for v in leaves]
    entered = [_entered(level, v) for v in leaves]
    return Column(tree, structure, leaves, entered, known, aliases, held(tree))


def _entered(level: StagedLevel, v: Any) -> Any:
    v = level.entered(v) if issubclass(type(v), Traced) else v
    return as_box(level, v) if issubclass(type(v), np.ndarray) and v.ndim else v


def _alias(level: StagedLevel, v: Any) -> Any:
    """The array itself, if arrays outside of the block may share its memory."""
    if not issubclass(type(v), StagedArray):
        return v if issubclass(type(v), np.ndarray) and v.ndim else None
    own = v.w.buffer.home is level and not v.w.steps and v.w.source is None
    return None if own else v


class Joined(NamedTuple):
    """A place after one of several blocks: its structure, and a type for each leaf."""

    structure: Shape | None
    constants: list[Any]
    likes: list[Seen | None]  # None for a constant

    def tree(self, nodes: Iterable[Any]) -> Any:
        """The value with these in place of the leaves that are no constants."""
        if self.structure is None:
            return UNSET
        left = iter(nodes)
        pairs = zip(self.constants, self.likes, strict=True)
        return built(self.structure, iter([c if t is None else next(left) for c, t in pairs]))

    @property
    def results(self) -> list[Seen]:
        """The types of the leaves that are no constants."""
        return [t for t in self.likes if t is not None]


def join(what: str, columns: Sequence[Column], where: str) -> Joined:
    """The structure, constants and types of a value that is one of these; errors name `what`."""
    first = columns[0]
    for c in columns:
        if c.structure != first.structure:
            raise StructureError(
                f"{what} is {_shown(first)} and {_shown(c)} {where}; make it the same containers"
            )
    constants, likes = [], []
    for i in range(len(first.leaves)):
        some = columns
        if any([c.leaves[i] is MISSING for c in columns]):
            some = [c for c in columns if c.leaves[i] is not MISSING]
        if not some:  # of an alternative that a round before may have chosen
            constants.append(MISSING)
            likes.append(joined([t for t in (c.seen[i] for c in columns) if t is not None]))
            continue
        like = join_leaf(what, [c.leaves[i] for c in some], [c.seen[i] for c in some], where)
        constants.append(some[0].leaves[i])
        likes.append(like)
    return Joined(first.structure, constants, likes)


def or_unset(c: Column) -> Column:
    """The column as a choice whose first alternative is that there is no value."""
    unset = Column(UNSET, NUMBER, [UNSET], [UNSET], [None], [None])
    one = _chosen([unset, c if c.structure is not None else unset])[1]
    return one._replace(tree=None, containers=c.containers)


def unset_where(fails: Leaf, value: Tree) -> OneOf:
    """A value that a variable has but where a staged condition holds."""
    if is_perhaps(value):
        k = next(k for k, tree in enumerate(value.trees) if tree is UNSET)
        return OneOf(op("where")(fails, k, value.tag), value.trees)
    return OneOf(op("where")(fails, 0, 1), (UNSET, value))


MISSING = object()  # a leaf of an alternative that a block does not choose


def with_choices(columns: Sequence[Column]) -> list[Column]:
    """The columns; where they differ in kind, each as a choice among the same alternatives."""
    columns = [*columns]
    if all([c.structure is NUMBER and c.seen[0] is not None for c in columns]):
        return columns
    if any([c.structure is None for c in columns]) or _fit(columns):
        return columns
    if len({_shape(c).outer for c in columns}) > 1:
        return columns if any([c.containers for c in columns]) else _chosen(columns)
    parts = [*zip(*map(_parts, columns), strict=True)]
    several = [[*p] if _fit(p) else _chosen([*p]) for p in parts]
    if all([new[0] is p[0] for new, p in zip(several, parts, strict=True)]):
        return columns
    wholes = []
    for c, mine in zip(columns, zip(*several, strict=True), strict=True):
        inner = tuple([_shape(p).inner[0] for p in mine])
        whole = _together(c.tree, Shape(_shape(c).outer, inner), mine)
        wholes.append(whole._replace(containers=c.containers))
    return wholes


def _parts(c: Column) -> list[Column]:
    """A column for each leaf of its containers, of which some are choices."""
    parts, at = [], 0
    for inner in _shape(c).inner:
        shape = Shape(LEAF, (inner,))
        parts.append(_slice(c, shape, at))
        at += shape.size
    return parts


def _slice(c: Column, shape: Shape, at: int) -> Column:
    """Some leaves of a column, as a column of that shape."""
    here = slice(at, at + shape.size)
    return Column(None, shape, c.leaves[here], c.entered[here], c.seen[here], c.aliases[here])


def _together(tree: Tree, shape: Shape, parts: Sequence[Column]) -> Column:
    """The column whose leaves are those of its parts."""
    leaves = [v for p in parts for v in p.leaves]
    entered = [v for p in parts for v in p.entered]
    known = [t for p in parts for t in p.seen]
    return Column(tree, shape, leaves, entered, known, [a for p in parts for a in p.aliases])


def _shape(c: Column) -> Shape:
    assert c.structure is not None, "it has a value"
    return c.structure


def _fit(columns: Sequence[Column]) -> bool:
    """Whether columns agree: numbers, or the same constants, in the same places."""
    first, *others = columns
    if any([c.structure != first.structure for c in others]):
        return False
    pairs = [p for c in others for p in zip(first.leaves, c.leaves, strict=True)]
    known = [p for c in others for p in zip(first.seen, c.seen, strict=True)]
    return all([_same(*p) or None not in k for p, k in zip(pairs, known, strict=True)])


def _same(a: Leaf, b: Leaf) -> bool:
    return a is MISSING or b is MISSING or same_constant(a, b)


def _alternatives(c: Column) -> list[Column]:
    """What a column chooses among, or the column itself."""
    shapes = _shape(c).inner[0] if _shape(c).outer == LEAF else None
    if shapes is None:
        return [c]
    parts, at = [], 1
    for shape in shapes:
        parts.append(_slice(c, shape, at))
        at += shape.size
    return parts


def _chosen(columns: list[Column]) -> list[Column]:
    """Each column as a choice among the alternatives of all."""
    groups: list[list[Column]] = []
    places = []
    for c in columns:
        mine = []
        for a in _alternatives(c):
            k = next((k for k, g in enumerate(groups) if _fit([g[0], a])), len(groups))
            if k == len(groups):
                groups.append([])
            groups[k].append(a)
            mine.append(k)
        places.append(mine)
    shape = Shape(LEAF, (tuple([_shape(g[0]) for g in groups]),))
    made = []
    for c, mine in zip(columns, places, strict=True):
        own = dict(zip(mine, _alternatives(c), strict=True))
        parts = [own.get(k) or _absent(g[0]) for k, g in enumerate(groups)]
        made.append(_together(c.tree, shape, [_tag(c, mine), *parts]))
    return made


def _tag(c: Column, places: list[int]) -> Column:
    """The tag of a column whose alternatives stand at these places."""
    shape, (first, *others) = NUMBER, places
    if not others:
        return Column(None, shape, [first], [first], [seen(first)], [None])
    tag = was = c.entered[0]
    for k, place in enumerate(places):
        if k != place:
            tag = op("where")(op("equal")(was, k), place, tag)
    return Column(None, shape, c.leaves[:1], [tag], c.seen[:1], [None])


def _absent(like: Column) -> Column:
    """An alternative that is not chosen: its constants, and no values for the rest."""
    leaves = [MISSING if isinstance(v, Traced | np.ndarray) else v for v in like.leaves]
    none = [v is MISSING for v in leaves]
    known = [None if n else s for n, s in zip(none, like.seen, strict=True)]
    entered = [None if n else v for n, v in zip(none, leaves, strict=True)]
    return Column(None, like.structure, leaves, entered, known, [None] * len(leaves))


def _shown(c: Column) -> str:
    return "without a value" if c.structure is None else f"{c.structure}"
