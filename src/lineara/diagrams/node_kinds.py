"""The kinds of nodes, and what each gives from what it takes.

    const   [] -> [t]          op      [t..] -> [t..]          copy    [t] -> [t, t]
    drop    [t] -> []          eval    [(A -> B), A] -> [B]    box     [G] -> [(A -> B)]
    add     [t, t] -> [t]      zero    [] -> [t]               pack    [t..] -> [E]
    unpack  [E] -> [t..]       sel     [B, t, t] -> [t]        route   [B, t] -> [t, t]
    scan    [(C, X -> C, Y), C, stack X] -> [C, stack Y]       frame   as it says

A box has one body, whose inputs are what it captures and then the arguments.  BLUE, ORANGE and
GREEN are there while a diagram is differentiated; `frame` is a labelled one that stays.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from lineara.diagrams import operations
from lineara.diagrams.types import (
    Arrow,
    B,
    Base,
    E,
    R,
    Stack,
    Type,
    Types,
    Z,
    additive,
    hats,
    of_array,
    show,
    show_all,
    tans,
)
from lineara.errors import DiagramError
from lineara.facts.hints import Shaped, Tree, Value
from lineara.facts.types import type_of

PLAIN = (
    "const", "op", "copy", "drop", "eval", "box", "add", "zero", "pack", "unpack", "sel", "route",
    "scan", "frame",
)  # fmt: skip
REWRITING = ("BLUE", "ORANGE", "GREEN")
KINDS = (*PLAIN, *REWRITING)
BODIES = {"box": 1, "BLUE": 1, "ORANGE": 1, "GREEN": 1}  # a frame has any number


class Body(Protocol):
    """The requirements of a kind on the diagram within a node."""

    @property
    def takes(self) -> Types:
        """The types of its inputs."""
        ...

    @property
    def gives(self) -> Types:
        """The types of its outputs."""
        ...


def gives(kind: str, takes: Types, name: str, data: Tree, bodies: Sequence[Body]) -> Types:
    """The types of the outputs of a node; a DiagramError if it cannot take those inputs.

    >>> gives("copy", (R,), "", None, ())
    (Base(name='R'), Base(name='R'))
    """
    rule = globals().get(f"_{kind.lower()}")
    if kind not in KINDS or rule is None:
        raise DiagramError(f"there is no kind {kind}; there are {', '.join(PLAIN)}")
    if kind != "frame" and len(bodies) != BODIES.get(kind, 0):
        raise DiagramError(f"{kind} has {BODIES.get(kind, 0)} bodies, not {len(bodies)}")
    return rule(takes, name, data, bodies)


def _need(ok: bool, kind: str, wanted: str, takes: Types) -> None:
    if not ok:
        raise DiagramError(f"{kind} takes {wanted}, not ({show_all(takes)})")


def type_of_constant(value: Shaped) -> Type:
    """The type of the wire of a constant."""
    if isinstance(value, bool):
        return B
    if isinstance(value, int):
        return Z
    return R if isinstance(value, float) else of_array(type_of(value))


def _const(takes: Types, name: str, data: Shaped, bodies: tuple[Any, ...]) -> Types:
    _need(not takes, "const", "nothing", takes)
    if not isinstance(data, float | int | np.ndarray | np.generic | complex):
        raise DiagramError(f"const holds a number or an array, not {data!r}")
    return (type_of_constant(data),)


def _op(takes: Types, name: str, data: tuple[Any, ...] | None, bodies: tuple[Any, ...]) -> Types:
    return operations.gives(name, takes, data or ())


def _copy(takes: Types, name: str, data: Value | None, bodies: tuple[Any, ...]) -> Types:
    _need(len(takes) == 1, "copy", "one wire", takes)
    return takes * 2


def _drop(takes: Types, name: str, data: Value | None, bodies: tuple[Any, ...]) -> Types:
    _need(len(takes) == 1, "drop", "one wire", takes)
    return ()


def _eval(takes: Types, name: str, data: Value | None, bodies: tuple[Any, ...]) -> Types:
    f = takes[0] if takes else None
    if not isinstance(f, Arrow):
        raise DiagramError(f"eval takes a function and its arguments, not ({show_all(takes)})")
    _need(takes[1:] == f.source, "eval", f"{show(f)} and ({show_all(f.source)})", takes)
    return f.target


def _box(takes: Types, name: str, data: Value | None, bodies: Sequence[Body]) -> Types:
    inner = bodies[0].takes
    _need(inner[: len(takes)] == takes, "box", f"the first inputs of ({show_all(inner)})", takes)
    return (Arrow(inner[len(takes) :], bodies[0].gives),)


def _add(takes: Types, name: str, data: Value | None, bodies: tuple[Any, ...]) -> Types:
    ok = len(takes) == 2 and takes[0] == takes[1] and additive(takes[0])
    _need(ok, "add", "two cotangents of one type", takes)
    return takes[:1]


def _zero(takes: Types, name: str, data: Base, bodies: tuple[Any, ...]) -> Types:
    _need(not takes, "zero", "nothing", takes)
    if not additive(data):
        raise DiagramError(f"there is no zero of the type {show(data)}; cotangents have one")
    return (data,)


def _pack(takes: Types, name: str, data: Value | None, bodies: tuple[Any, ...]) -> Types:
    _need(all([additive(t) for t in takes]), "pack", "cotangents", takes)
    return (E,)


def _unpack(takes: Types, name: str, data: tuple[Any, ...], bodies: tuple[Any, ...]) -> Types:
    _need(takes == (E,), "unpack", "E", takes)
    return tuple(data)


def _sel(takes: Types, name: str, data: Value | None, bodies: tuple[Any, ...]) -> Types:
    ok = len(takes) == 3 and takes[0] == B and takes[1] == takes[2]
    _need(ok, "sel", "B and two wires of one type", takes)
    return takes[1:2]


def _route(takes: Types, name: str, data: Value | None, bodies: tuple[Any, ...]) -> Types:
    ok = len(takes) == 2 and takes[0] == B and additive(takes[1])
    _need(ok, "route", "B and a cotangent", takes)
    return takes[1:] * 2


def _scan(takes: Types, name: str, data: tuple[Any, ...], bodies: tuple[Any, ...]) -> Types:
    """`data` is (n, carries, reverse)."""
    n, carries, _ = data
    f = takes[0] if takes else None
    if not isinstance(f, Arrow):
        raise DiagramError(f"scan takes a function, carries and stacks, not ({show_all(takes)})")
    xs = [Stack(n, t) for t in f.source[carries:]]
    wanted = (*f.source[:carries], *xs)
    _need(takes[1:] == wanted, "scan", f"{show(f)} and ({show_all(wanted)})", takes)
    if f.target[:carries] != f.source[:carries]:
        raise DiagramError(f"scan hands {carries} carries on, but its body is {show(f)}")
    return (*f.target[:carries], *[Stack(n, t) for t in f.target[carries:]])


def _frame(takes: Types, name: str, data: Value, bodies: object) -> Types:
    raise DiagramError("a frame says what it gives; its outputs have types in the text")


# --- while a diagram is differentiated ------------------------------------------------------------


def back(source: Types, target: Types, packed: int | None) -> Arrow:
    """The type of the back-propagator of a diagram; `packed` inputs come as one bundle."""
    if packed is None:
        return Arrow(tans(target), tans(source))
    return Arrow(tans(target), (E, *tans(source[packed:])))


def _blue(takes: Types, name: str, data: Any, bodies: Sequence[Body]) -> Types:
    f = bodies[0]
    _need(takes == hats(f.takes), "BLUE", f"({show_all(hats(f.takes))})", takes)
    return (*hats(f.gives), back(f.takes, f.gives, data))


def _orange(takes: Types, name: str, data: Shaped, bodies: Sequence[Body]) -> Types:
    """`data` has the types of the residuals."""
    f = bodies[0]
    _need(takes == hats(f.takes), "ORANGE", f"({show_all(hats(f.takes))})", takes)
    return (*hats(f.gives), *data)


def _green(takes: Types, name: str, data: Shaped, bodies: Sequence[Body]) -> Types:
    """`data` has the types of the residuals."""
    f = bodies[0]
    wanted = (*data, *tans(f.gives))
    _need(takes == wanted, "GREEN", f"({show_all(wanted)})", takes)
    return tans(f.takes)
