"""The form of a call's arguments: whether others have it, and their leaves if they have.

    f(x, {"w": w}, k=2)    0: f64[3]   1: a dict of "w"   2: an int   3: what is at "w"

The arguments and what is in their containers are numbered, and each number is looked at once: its
class, and what a program depends on of it.  The looks are code; other code has them as checks.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import numpy as np

from lineara.facts.hints import Leaf, Tree
from lineara.staging.capture.guards import Term
from lineara.trees import Structure, is_container
from lineara.trees.kinds import ListKind, RecordKind, kind_of

Leaves = Callable[[tuple, dict[str, Any]], tuple[Any, ...] | None]

TEXTS = {
    "class": "type({0}) is {1}",
    "whole": f"type({{0}}) is {{1}} and {-(2**63) + 1} <= {{0}} < {2**63}",
    "is": "{0} is {1}",
    "equal": "type({0}) is {2} and {0} == {1}",
    "array": "type({0}) is {1} and {0}.dtype is {3} and {0}.shape == {2} and {0}.strides == {4}",
    "foreign": "type({0}) is {1} and {0}.aval == {2}",
    "items": "type({0}) is {1} and len({0}) == {2}",
    "entries": "type({0}) is {1} and [*{0}] == {2}",
    "fields": "type({0}) is {1} and [*vars({0})] == {2}",
}
INNER = {"items": "{0}", "entries": "{0}.values()", "fields": "vars({0}).values()"}
"""What lies in a container."""


class Form(NamedTuple):
    """The form of the arguments of a call.

    names    of the arguments that are given by name, the last ones
    given    how many arguments
    looks    what is asked; its first operand is the number of what it asks about
    inner    by the number of a container, the number of the first thing in it
    places   the numbers of the leaves, in their order
    leaves   the leaves of arguments of this form; None where they have another one
    """

    names: tuple[str, ...]
    given: int
    looks: tuple[Term, ...]
    inner: dict[int, int]
    places: tuple[int, ...]
    leaves: Leaves

    @property
    def slots(self) -> int:
        """How many numbers there are."""
        return self.given + sum([_size(t) for t in self.looks])


def _size(t: Term) -> int:
    """How many things a look has found in a container."""
    if t.kind not in INNER:
        return 0
    return t.operands[2] if t.kind == "items" else len(t.operands[2])


def form_of(
    args: tuple[Any, ...], kwargs: dict[str, Any], structure: Structure, constants: Collection[int]
) -> Form | None:
    """The form of these arguments, some leaves of which are constants; None where none is known."""
    every = [*args, *kwargs.values()]
    if not all([type(k) is str for k in kwargs]):
        return None
    looks: list[Term] = []
    inner: dict[int, int] = {}
    leaves: list[tuple[int, Any]] = []
    count = len(every)

    def look(number: int, v: Tree) -> bool:
        """Whether there are looks for a value."""
        nonlocal count
        opened = _opened(number, v)
        if opened is None:
            leaves.append((number, v))
            term = None if is_container(v) else look_at(number, v, len(leaves) - 1 in constants)
            looks.extend([term] if term else [])
            return term is not None
        term, items = opened
        inner[number], first = count, count
        count += len(items)
        looks.append(term)
        return all([look(first + place, item) for place, item in items])

    if not all([look(i, v) for i, v in enumerate(every)]):
        return None
    assert len(leaves) == structure.leaf_count, "each is looked at in its place"
    places = tuple([number for number, _ in leaves])
    known = tuple(looks), inner, places
    return Form((*kwargs,), len(every), *known, _code((*kwargs,), len(every), *known))


def _opened(number: int, v: Tree) -> tuple[Term, list[tuple[int, Any]]] | None:
    """A look at a container, and what lies in it with its places there, in the order of leaves."""
    cls = type(v)
    kind = kind_of(cls)
    if isinstance(v, dict) and cls is dict:
        return Term("entries", (number, cls, [*v])), [*enumerate(v.values())]
    is_row = cls is list or (issubclass(cls, tuple) and _is_read_as_tuple(cls))
    if isinstance(v, list | tuple) and is_row and isinstance(kind, ListKind) and not kind.has_dict:
        return Term("items", (number, cls, len(v))), [*enumerate(v)]
    if type(kind) is not RecordKind or type(getattr(v, "__dict__", None)) is not dict:
        return None
    fields, keys = vars(v), kind.keys(v)
    if {*fields} != {*keys} or kind.aux(v):
        return None
    places = {name: i for i, name in enumerate(fields)}
    return Term("fields", (number, cls, [*fields])), [(places[k], fields[k]) for k in keys]


def _is_read_as_tuple(cls: type) -> bool:
    """Whether the items of a class of tuples are a tuple's."""
    names = ("__len__", "__getitem__", "__iter__")
    return all([getattr(cls, n) is getattr(tuple, n) for n in names])


def _code(
    names: tuple[str, ...],
    count: int,
    looks: Sequence[Term],
    inner: dict[int, int],
    places: Sequence[int],
) -> Leaves:
    """The looks as code."""
    scope: dict[str, Any] = {"names": [*names]}
    named = "[*kwargs] == names" if names else "not kwargs"
    lines = ["def leaves(args, kwargs):", " try:"]
    lines.append(f"  if len(args) != {count - len(names)} or not ({named}): return None")
    if count:
        lines.append(f"  {_several(0, count)} = {'*args, *kwargs.values()' if names else 'args'}")
    for i, t in enumerate(looks):
        number, *rest = t.operands
        known = {f"k{i}_{j}": v for j, v in enumerate(rest)}
        scope |= known
        lines.append(f"  if not ({TEXTS[t.kind].format(f's{number}', *known)}): return None")
        if _size(t):
            values = INNER[t.kind].format(f"s{number}")
            lines.append(f"  {_several(inner[number], _size(t))} = {values}")
    lines.append(f"  return ({''.join([f's{p}, ' for p in places])})")
    lines.append(" except Exception: return None")
    exec(compile("\n".join(lines), "<lineara form>", "exec"), scope)
    return scope["leaves"]


def _several(first: int, count: int) -> str:
    """The names of several things in a row."""
    return "".join([f"s{first + i}, " for i in range(count)])


def look_at(number: int, v: Leaf, fixed: bool) -> Term | None:
    """What is asked of a leaf that has the number; None where there is no such question.

    It is enough for one, and cheap.
    """
    kind: type = type(v)
    if isinstance(v, np.ndarray) and kind is np.ndarray:
        plain = v.dtype.kind in "fciub" and v.dtype.isbuiltin == 1
        if plain and (v.shape or v.dtype.kind in "fc"):
            return Term("array", (number, kind, v.shape, v.dtype, v.strides))
    elif (t := getattr(v, "aval", None)) is not None:  # the type of an array of JAX's
        return Term("foreign", (number, kind, t))
    elif v is None or kind is bool:
        return Term("is", (number, v))
    elif kind is str or (fixed and kind is int):
        return Term("equal", (number, v, kind))
    elif not fixed and isinstance(v, int) and kind is int and v.bit_length() < 64:
        return Term("whole", (number, kind))
    elif not fixed and (
        kind in (float, complex) or (isinstance(v, np.generic) and v.dtype.kind in "fc")
    ):
        return Term("class", (number, kind))
    return None


__all__ = ["Form", "form_of"]
