"""The places that blocks change, variables and entries; the ways in which a block is left."""

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from types import CellType, FunctionType
from typing import Any, NamedTuple

from lineara.facts.hints import Leaf, Tree
from lineara.trees.kinds import Proxy

Block = Callable[..., Any]


class _Unset:
    """The mark of a variable that has no value."""

    __lineara_leaf__ = True

    def __repr__(self) -> str:
        return "no value"


UNSET = _Unset()


class Entry:
    """A place in a container: an item of a list, what a dict has at a key, or an attribute."""

    __slots__ = ("container", "key")

    def __init__(self, container: Tree, key: Hashable) -> None:
        self.container: Any = container
        self.key: Any = key

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Entry) or other.container is not self.container:
            return False
        return type(other.key) is type(self.key) and bool(other.key == self.key)

    def __hash__(self) -> int:
        return hash((id(self.container), self.key))

    def get(self) -> Any:
        """The value that the container holds there."""
        x, has_items = self._raw()
        return has_items.__getitem__(x, self.key) if has_items else getattr(x, self.key)

    def put(self, value: Tree) -> None:
        """Let the container hold a value there, whatever the methods of its class do."""
        x, has_items = self._raw()
        if has_items:
            has_items.__setitem__(x, self.key, value)
        elif isinstance(x, Proxy):
            setattr(x, self.key, value)
        else:
            object.__setattr__(x, self.key, value)

    def _raw(self) -> tuple[Any, Any]:
        """The object that holds the value, and the class of its items; None for attributes."""
        x: Any = self.container
        kind = next((k for k in (list, deque, dict) if isinstance(x, k)), None)
        if kind is list and type(self.key) is str:  # of a list that an array holds
            return x, None
        if isinstance(x, Proxy):
            return x, kind and type(x)
        if kind is None and self.key in getattr(x, "__dict__", ()):
            return x.__dict__, dict
        return x, kind

    def __str__(self) -> str:
        name = type(self.container).__name__
        if isinstance(self.container, list | deque) and type(self.key) is int:
            return f"the item {self.key} of a {name}"
        if isinstance(self.container, dict):
            return f"what a {name} has at {self.key!r}"
        what = "the length" if isinstance(self.container, list) else f"the attribute {self.key!r}"
        return f"{what} of a {name}"


Place = str | Entry  # a variable, by its name, or an entry


def said(place: Place) -> str:
    """A place as errors name it."""
    return str(place) if isinstance(place, Entry) else f"the variable {place!r}"


class Variables:
    """The places that some blocks of a function change and that are read later.

    These are variables, by their names, and entries of containers, which become known as blocks
    are written.  `others` are the variables beside them that blocks mention: what a block binds
    them to is read in the block alone.  `changed` names what the rounds of a loop bind, and whose
    items they write.
    """

    def __init__(
        self, names: Sequence[str], *blocks: Block | None, changed: Sequence[str] = ()
    ) -> None:
        self.changed = changed
        every: dict[str, CellType] = {}
        for b in blocks:
            if isinstance(b, FunctionType):
                every |= zip(b.__code__.co_freevars, b.__closure__ or (), strict=True)
        self.cells: dict[Any, CellType | Entry] = {n: c for n, c in every.items() if n in names}
        self.others: list[CellType] = [cell for name, cell in every.items() if name not in names]

    def with_entries(self) -> "Variables":
        """The same variables, to which entries of containers are added for one form."""
        same = Variables((), changed=self.changed)
        same.cells, same.others = {**self.cells}, self.others
        return same

    def add(self, entries: Iterable[Entry]) -> None:
        """More entries."""
        self.cells |= {e: e for e in entries}

    def reset(self, before: tuple[dict[Any, Any], list[Any]]) -> None:
        """Give the variables their old values back; an entry gets its own with its container."""
        self.set({n: v for n, v in before[0].items() if isinstance(n, str)})
        for cell, value in zip(self.others, before[1], strict=True):
            put(cell, value)

    def all(self) -> tuple[dict[Any, Any], list[Any]]:
        """The values of these places, and of the others."""
        return self.values(), [contents(cell) for cell in self.others]

    def values(self) -> dict[Any, Any]:
        """The values of these places."""
        return {name: contents(cell) for name, cell in self.cells.items()}

    def set(self, values: Mapping[Any, Any]) -> None:
        """Put these values into the places; what has none is read nowhere after the blocks."""
        for name, value in values.items():
            if name in self.cells:
                put(self.cells[name], value)


def contents(cell: CellType | Entry) -> Any:
    """The value in a cell or an entry, or UNSET."""
    if isinstance(cell, Entry):
        return cell.get()
    try:
        return cell.cell_contents
    except ValueError:
        return UNSET


def put(cell: CellType | Entry, value: Leaf) -> None:
    """Let a cell or an entry hold a value; a cell holds none where it is UNSET."""
    if isinstance(cell, Entry):
        cell.put(value)
    elif value is not UNSET:
        cell.cell_contents = value
    elif contents(cell) is not UNSET:
        del cell.cell_contents


# --- how a block is left --------------------------------------------------------------------------


class Return(NamedTuple):
    """The function returns a value."""

    value: Any = None


class _Exit:
    """A loop is left or goes on."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


BREAK, CONTINUE = _Exit("BREAK"), _Exit("CONTINUE")
ON, RETURNED, BROKEN, CONTINUED, RAISED = range(5)  # the codes of the ways


class Raised(NamedTuple):
    """The block is left by an exception, of which there may be several, from the code RAISED on."""

    code: int


Codes = frozenset[int]


class Mixed(NamedTuple):
    """One of several ways, as a staged code says; the value is that of a return, or UNSET.

    `perhaps` has the variables that have a value on some of the ways only, and on which.
    """

    code: Any
    value: Any
    codes: Codes  # those that it may be
    perhaps: Mapping[str, tuple[Any, Codes]]


Way = Return | Raised | _Exit | Mixed | None  # None: control falls through the end of the block


def coded(way: Way) -> tuple[Any, Any]:
    """The code of a way, and the value that it returns or UNSET."""
    if isinstance(way, Mixed):
        return way.code, way.value
    if isinstance(way, Return):
        return RETURNED, way.value
    if isinstance(way, Raised):
        return way.code, UNSET
    return (ON if way is None else BROKEN if way is BREAK else CONTINUED), UNSET


def codes(way: Way) -> Codes:
    """The codes that a way may have."""
    return way.codes if isinstance(way, Mixed) else frozenset([coded(way)[0]])
