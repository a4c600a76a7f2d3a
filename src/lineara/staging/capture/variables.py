"""The variables that blocks share, and the ways in which a block is left."""

from collections.abc import Callable, Mapping, Sequence
from types import CellType, FunctionType
from typing import Any, NamedTuple

from lineara.facts.hints import Leaf

Block = Callable[..., Any]


class _Unset:
    """What a variable holds that has no value."""

    def __repr__(self) -> str:
        return "no value"


UNSET = _Unset()


class Variables:
    """The variables of a function that some of its blocks bind and that are read later.

    `others` are the variables beside them that blocks mention: what a block binds them to is read
    in the block alone.
    """

    def __init__(self, names: Sequence[str], *blocks: Block | None) -> None:
        every: dict[str, CellType] = {}
        for b in blocks:
            if isinstance(b, FunctionType):
                every |= zip(b.__code__.co_freevars, b.__closure__ or (), strict=True)
        self.cells = {name: cell for name, cell in every.items() if name in names}
        self.others = [cell for name, cell in every.items() if name not in names]

    def reset(self, before: tuple[dict[str, Any], list[Any]]) -> None:
        """Let all of them hold what they held."""
        self.set(before[0])
        for cell, value in zip(self.others, before[1], strict=True):
            put(cell, value)

    def all(self) -> tuple[dict[str, Any], list[Any]]:
        """What they hold, and what the others hold."""
        return self.values(), [contents(cell) for cell in self.others]

    def values(self) -> dict[str, Any]:
        """What they hold."""
        return {name: contents(cell) for name, cell in self.cells.items()}

    def set(self, values: Mapping[str, Any]) -> None:
        """Let them hold these."""
        for name, value in values.items():
            put(self.cells[name], value)


def contents(cell: CellType) -> Any:
    """What a cell holds, or UNSET."""
    try:
        return cell.cell_contents
    except ValueError:
        return UNSET


def put(cell: CellType, value: Leaf) -> None:
    """Let a cell hold a value, or none where it is UNSET."""
    if value is not UNSET:
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
ON, RETURNED, BROKEN, CONTINUED = range(4)  # the codes of the ways


Codes = frozenset[int]


class Mixed(NamedTuple):
    """One of several ways, as a staged code says; the value is that of a return, or UNSET.

    `perhaps` has the variables that have a value on some of the ways only, and on which.
    """

    code: Any
    value: Any
    codes: Codes  # those that it may be
    perhaps: Mapping[str, tuple[Any, Codes]]


Way = Return | _Exit | Mixed | None  # None: control falls through the end of the block


def coded(way: Way) -> tuple[Any, Any]:
    """The code of a way, and the value that it returns or UNSET."""
    if isinstance(way, Mixed):
        return way.code, way.value
    if isinstance(way, Return):
        return RETURNED, way.value
    return (ON if way is None else BROKEN if way is BREAK else CONTINUED), UNSET


def codes(way: Way) -> Codes:
    """The codes that a way may have."""
    return way.codes if isinstance(way, Mixed) else frozenset([coded(way)[0]])


def decoded(
    code: Any, value: Any, possible: Codes, perhaps: Mapping[str, Any], variables: Variables
) -> Way:
    """The way of a code, which is staged where several are possible.

    Variables that have a value on all of these get it.
    """
    variables.set({n: v for n, (v, bound) in perhaps.items() if possible <= bound})
    rest = {n: p for n, p in perhaps.items() if not possible <= p[1] and possible & p[1]}
    if len(possible) > 1:
        return Mixed(code, value, possible, rest)
    (one,) = possible
    return Return(value) if one == RETURNED else (None, None, BREAK, CONTINUE)[one]
