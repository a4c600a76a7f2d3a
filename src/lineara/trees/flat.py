"""Flat trees: a tree is its leaves, in order, and its structure.

>>> leaves, structure = flatten({"w": [1.0, 2.0], "b": (3.0,)})
>>> leaves
[1.0, 2.0, 3.0]
>>> unflatten(structure, leaves)
{'w': [1.0, 2.0], 'b': (3.0,)}
"""

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, NamedTuple

from lineara.errors import StructureError, with_article
from lineara.trees.fold import Node, Path, contains_itself, fold, path_text
from lineara.trees.kinds import Answering, Kind, kind_of

IsLeaf = Callable[[Any], bool]


class _Entry(NamedTuple):
    """One container of a structure; a leaf's entry is None."""

    kind: Kind
    keys: tuple[Any, ...]
    aux: Any

    @property
    def shape(self) -> tuple[Any, ...]:
        return (self.kind.cls, self.keys, self.aux)


class _Close(NamedTuple):
    """The end of a container in a walk; of entries a tree may have its own, in a structure."""

    entry: _Entry


class Structure:
    """A tree without its leaves: its containers, children before parents.

    >>> flatten([1, 2])[1] == flatten([3, 4])[1], flatten([1, 2])[1] == flatten((1, 2))[1]
    (True, False)
    >>> flatten({"w": [1.0, 2.0], "b": (3.0,)})[1]
    Structure({'w': [*, *], 'b': (*,)})
    """

    def __init__(self, entries: Iterable[_Entry | None]) -> None:
        self.entries: tuple[_Entry | None, ...] = tuple(entries)
        self.leaf_count: int = self.entries.count(None)
        self._hash: int | None = None  # of this process

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Structure):
            return NotImplemented
        return self is other or self._shapes() == other._shapes()

    def _shapes(self) -> list[Any]:
        return [entry and entry.shape for entry in self.entries]

    def __hash__(self) -> int:
        if self._hash is None:
            shapes = [entry and (entry.kind.cls, len(entry.keys)) for entry in self.entries]
            self._hash = hash(tuple(shapes))
        return self._hash

    def __reduce__(self) -> Any:
        return Structure, (self.entries,)

    def __repr__(self) -> str:
        if len(self.entries) > 1000:
            return f"Structure({self.leaf_count} leaves in {len(self.entries)} nodes)"
        return f"Structure({_assemble(self.entries, iter([_STAR] * self.leaf_count), _text)})"


LEAF = Structure([None])  # what a tree is that is one leaf: most are

_STAR = "*"


def _text(entry: _Entry, children: list[str]) -> str:
    name, items = entry.kind.cls.__name__, ", ".join(children)
    if entry.kind.cls is tuple:
        return f"({items}{',' * (len(children) == 1)})"
    if entry.kind.cls is list:
        return f"[{items}]"
    pairs = list(zip(entry.keys, children, strict=True))
    if entry.kind.cls is dict:
        return f"{{{', '.join(f'{key!r}: {child}' for key, child in pairs)}}}"
    named = [f"{entry.kind.step(key).removeprefix('.')}={child}" for key, child in pairs]
    return f"{name}({', '.join(named)})"


def _make(entry: _Entry, children: list[Any]) -> Any:
    return entry.kind.make(entry.aux, entry.keys, children)


def _assemble(
    entries: Iterable[_Entry | None], leaves: Iterable[Any], make: Callable[..., Any]
) -> Any:
    leaves, done = iter(leaves), []
    for entry in entries:
        if entry is None:
            done.append(next(leaves))
            continue
        split = len(done) - len(entry.keys)
        done[split:] = [make(entry, done[split:])]
    return done.pop()


def _nodes(node: Node, kind: Kind, keys: list[Any]) -> list[Node]:
    children, path = kind.children(node.value, keys), node.path
    return [Node(x, None, (path, kind, key)) for key, x in zip(keys, children, strict=True)]


def _expand(node: Node, is_leaf: IsLeaf | None) -> tuple[_Entry, list[Node]] | None:
    kind = kind_of(type(node.value))
    if kind is None or (is_leaf is not None and is_leaf(node.value)):
        return None
    keys = kind.keys(node.value)
    entry = _Entry(kind, tuple(keys), kind.aux(node.value))
    return entry, _nodes(node, kind, keys)


def flatten_call(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], Structure]:
    """The leaves and the structure of the arguments of a call, `flatten((args, kwargs))`.

    >>> flatten_call((1.0, [2.0]), {"n": 3})[0]
    [1.0, 2.0, 3]
    """
    if kwargs or any([kind_of(type(a)) is not None for a in args]):
        return flatten((args, kwargs))
    return [*args], positions(len(args))


@cache
def positions(n: int) -> Structure:
    """The structure of a call with so many arguments that are leaves."""
    return flatten(((None,) * n, {}))[1]


def flatten(tree: object, is_leaf: IsLeaf | None = None) -> tuple[list[Any], Structure]:
    """The leaves of a tree and its structure; None is a leaf.

    Raises StructureError for a container inside itself.

    >>> flatten((1.0, {"a": None, "b": "name"}))[0]
    [1.0, None, 'name']
    """
    if kind_of(type(tree)) is None:
        return [tree], LEAF
    leaves: list[Any] = []
    entries: list[_Entry | None] = []
    open_: list[Any] = []  # containers whose entries are in `todo`; they are kept, for their ids
    inside: set[int] = set()
    todo: list[Any] = [tree]
    while todo:
        x = todo.pop()
        if type(x) is _Close:
            entries.append(x.entry)
            inside.discard(id(open_.pop()))
            continue
        kind = kind_of(type(x))
        if kind is None or (is_leaf is not None and is_leaf(x)):
            leaves.append(x)
            entries.append(None)
        elif id(x) in inside:
            raise contains_itself(_path_of_next(todo))
        else:
            open_.append(x)
            inside.add(id(x))
            keys = kind.keys(x)
            todo.append(_Close(_Entry(kind, tuple(keys), kind.aux(x))))
            todo += reversed(kind.children(x, keys))
    return leaves, Structure(entries)


def _path_of_next(todo: list[Any]) -> Path:
    """The path of what was last taken from `todo`: closes, each before children not yet seen."""
    places = [i for i, x in enumerate(todo) if type(x) is _Close]
    path: Path = None
    for i, j in zip(places, [*places[1:], len(todo)], strict=True):
        entry = todo[i].entry
        path = path, entry.kind, entry.keys[len(entry.keys) - (j - i)]
    return path


def unflatten(structure: Structure, leaves: Iterable[Any]) -> Any:
    """The tree with this structure and these leaves.

    Raises StructureError for more or fewer leaves than there are places.

    >>> unflatten(flatten([1, [2]])[1], "ab")
    ['a', ['b']]
    """
    leaves = list(leaves)
    if len(leaves) != structure.leaf_count:
        raise StructureError(
            f"unflatten: {structure} has places for {structure.leaf_count} leaves, "
            f"but {len(leaves)} came; give one for each"
        )
    return leaves[0] if structure is LEAF else _assemble(structure.entries, leaves, _make)


def leaf_paths(tree: object, is_leaf: IsLeaf | None = None, root: str = "") -> list[str]:
    """The path of each leaf, in the order of `flatten`.

    >>> leaf_paths({"layers": [1.0, (2.0, 3.0)]}, root="params")
    ["params['layers'][0]", "params['layers'][1][0]", "params['layers'][1][1]"]
    """
    paths, todo = [], [root]
    for entry in reversed(flatten(tree, is_leaf)[1].entries):  # parents before children
        path = todo.pop()
        if entry is None:
            paths.append(path)
        else:
            todo += [path + entry.kind.step(key) for key in entry.keys]
    return paths[::-1]


def map_leaves(
    f: Callable[..., Any],
    tree: object,
    *rest: Any,
    is_leaf: IsLeaf | None = None,
    root: str = "tree",
) -> Any:
    """The tree of `f(leaf, *leaves of rest at the same place)`; a leaf None of `tree` stays None.

    The trees of `rest` must have the containers of `tree`, with keys in any order; at its leaves
    they may have anything.

    >>> map_leaves(lambda p, g: p - g, {"w": [3.0, 4.0], "b": None}, {"b": None, "w": [1.0, 1.0]})
    {'w': [2.0, 3.0], 'b': None}
    """

    if kind_of(type(tree)) is None:
        return None if tree is None else f(tree, *rest)

    def expand(node: Node) -> tuple[_Entry, list[Node]] | None:
        opened = _expand(node, is_leaf)
        if opened is None:
            return None
        entry, nodes = opened
        columns = [_matching(entry, other, node.path, root) for other in node.rest]
        rests = zip(*columns, strict=True) if columns else [()] * len(nodes)
        return entry, [Node(n.value, r, n.path) for n, r in zip(nodes, rests, strict=True)]

    def leaf(node: Node) -> Any:
        return None if node.value is None else f(node.value, *node.rest)

    return fold(Node(tree, rest), expand, leaf, lambda _, entry, values: _make(entry, values))


def _matching(entry: _Entry, other: object, path: Path, root: str) -> list[Any]:
    """The children of `other` in the order of the entry's keys."""
    kind, where = kind_of(type(other)), path_text(path, root)
    if kind is None or kind.cls is not entry.kind.cls:
        actual = f"{with_article(type(other).__name__)} in another"
        raise StructureError(
            f"map_leaves: {where} is a {entry.kind.cls.__name__} in the first tree and {actual}; "
            "all trees must have the containers of the first"
        )
    keys = other._lineara_all_keys() if isinstance(other, Answering) else kind.keys(other)
    if len(keys) != len(entry.keys) or set(keys) != set(entry.keys):
        raise StructureError(
            f"map_leaves: {where} has {_difference(kind, entry.keys, keys)}; "
            "all trees must have the keys of the first"
        )
    children = dict(zip(keys, kind.children(other, keys), strict=True))
    return [children[key] for key in entry.keys]


def _difference(kind: Kind, first: Iterable[Any], other: Iterable[Any]) -> str:
    only_first = [kind.step(k) for k in first if k not in set(other)]
    only_other = [kind.step(k) for k in other if k not in set(first)]
    parts = [f"{', '.join(only_first[:3])} only in the first tree"] * bool(only_first)
    parts += [f"{', '.join(only_other[:3])} only in another"] * bool(only_other)
    return " and ".join(parts)
