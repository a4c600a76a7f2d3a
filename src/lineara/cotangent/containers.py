"""Containers one level at a time: what is in one, another one like it, and a fold over all levels.

A dict has its keys; a list or tuple its positions; a NamedTuple, dataclass or attrs object its
fields.
"""

from collections.abc import Callable, Mapping, MutableMapping
from copy import copy
from dataclasses import fields as dataclass_fields
from dataclasses import is_dataclass
from typing import Any


def parts(x: Any) -> dict[Any, Any] | None:
    """What the container x holds, by key; None if x is no container.

    >>> parts((1.0, [2.0])), parts(3.0)
    ({0: 1.0, 1: [2.0]}, None)
    """
    if isinstance(x, Mapping):
        return dict(x)
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return dict(zip(x._fields, x, strict=True))  # pyright: ignore[reportAttributeAccessIssue]  # NamedTuple
    if isinstance(x, (list, tuple)):
        return dict(enumerate(x))
    names = _field_names(x)
    return None if names is None else {name: getattr(x, name) for name in names}


def _field_names(x: Any) -> list[str] | None:
    if isinstance(x, type):
        return None
    if is_dataclass(x):
        return [field.name for field in dataclass_fields(x)]
    attributes = getattr(type(x), "__attrs_attrs__", None)
    return None if attributes is None else [a.name for a in attributes]


def rebuild(like: Any, new: dict[Any, Any]) -> Any:
    """A container of the type of `like` that holds `new`.

    >>> rebuild((1.0, [2.0]), {0: 5.0, 1: [6.0]})
    (5.0, [6.0])
    """
    if isinstance(like, tuple):
        make = getattr(type(like), "_make", type(like))
        return make(new.values())
    if isinstance(like, Mapping) and not isinstance(like, MutableMapping):
        return new
    twin = copy(like)
    if isinstance(twin, (MutableMapping, list)):
        for key, value in new.items():
            twin[key] = value
        return twin
    for name, value in new.items():
        object.__setattr__(twin, name, value)  # frozen dataclasses too
    return twin


def fold(
    root: Any,
    children: Callable[[Any], dict[Any, Any] | None],
    leaf: Callable[[Any], Any],
    branch: Callable[[Any, dict[Any, Any]], Any],
) -> Any:
    """`branch(node, {key: folded child})` from the leaves up, without recursion, at any depth.

    >>> fold([1, [2, 3]], parts, lambda x: x, lambda node, found: sum(found.values()))
    6
    """
    results: dict[Any, Any] = {}
    stack: list[tuple[dict[Any, Any], Any, Any, dict[Any, Any] | None]] = [(results, 0, root, None)]
    while stack:
        into, key, node, found = stack.pop()
        if found is not None:
            into[key] = branch(node, found)
            continue
        below = children(node)
        if below is None:
            into[key] = leaf(node)
            continue
        found = dict.fromkeys(below)
        stack.append((into, key, node, found))
        stack.extend((found, k, child, None) for k, child in reversed(below.items()))
    return results[0]
