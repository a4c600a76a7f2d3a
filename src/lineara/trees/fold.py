"""Fold: a walk over a tree, children first, without recursion.

A node is (value, rest, path): a container or leaf, the caller's data for it, and the path from the
root.  A path is a linked triple (path above, kind, key), and None for the root.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from lineara.errors import StructureError
from lineara.trees.kinds import Kind

Path = tuple[Any, Kind, Any] | None


class Node(NamedTuple):
    """A place in a tree that is being walked."""

    value: Any
    rest: Any = None
    path: Path = None


class _Close(NamedTuple):
    node: Node
    opened: Any
    width: int
    key: Any


def path_text(path: Path, root: str = "") -> str:
    """The path as Python source.

    >>> from lineara.trees.kinds import kind_of
    >>> mapping, sequence = kind_of(dict), kind_of(list)
    >>> path_text(((None, mapping, "layers"), sequence, 2), "params")
    "params['layers'][2]"
    """
    steps = []
    while path is not None:
        path, kind, key = path
        steps.append(kind.step(key))
    return root + "".join(reversed(steps))


def fold(
    root: Node,
    expand: Callable[[Node], tuple[Any, list[Node]] | None],
    leaf: Callable[[Node], Any],
    close: Callable[[Node, Any, list[Any]], Any],
    identity: Callable[[Node], Any] | None = None,
) -> Any:
    """The value of a tree: `leaf(node)` at a leaf, `close(node, opened, values)` at a container.

    `expand(node)` is (opened, child nodes), or None for a leaf.  A container inside itself is
    a StructureError: the same object, or one of equal `identity`.
    """
    todo: list[Node | _Close] = [root]
    done: list[Any] = []
    active: set[Any] = set()
    while todo:
        node = todo.pop()
        if type(node) is _Close:
            split = len(done) - node.width
            done[split:] = [close(node.node, node.opened, done[split:])]
            active.discard(node.key)
            continue
        assert type(node) is Node
        # Before `expand`, which may change the object.
        key = None if identity is None else identity(node)
        expansion = expand(node)
        if expansion is None:
            done.append(leaf(node))
            continue
        key = id(node.value) if identity is None else key
        if key in active:
            raise contains_itself(node.path)
        active.add(key)
        opened, children = expansion
        todo.append(_Close(node, opened, len(children), key))
        todo += reversed(children)
    return done.pop()


def contains_itself(path: Path) -> StructureError:
    """The error for a container that contains itself."""
    where = path_text(path, "tree")
    return StructureError(
        f"the container at {where} contains itself, so it has no last leaf; "
        "keep the link back out of the tree that is differentiated, or store an index instead"
    )
