"""The types of wires, and what a differentiation makes of them  [Diagrams].

    t ::= R | E | B | Z | f64[3,4] | stack[n, t] | (t, ..., t -> t, ..., t) | 'a foreign type'

R is a real number; E the opaque bundle of the cotangents of what a function captured; B a truth
value and Z an integer, in which nothing moves, as in arrays of them; a stack has n values of t.

    hat(R) = R      hat(A -> B) = hat A -> hat B, (tan B -> E, tan A)       a function, and back
    tan(R) = R      tan(A -> B) = E                                         cotangents

>>> show(hat(Arrow((R,), (R,))))
'(R -> R, (R -> E, R))'
"""

import functools
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from lineara.errors import DiagramError
from lineara.facts.types import ArrayType, carries_tangents


@dataclass(frozen=True, slots=True)
class Base:
    """R, E, B, Z, or an array's type under its own name."""

    name: str


@dataclass(frozen=True, slots=True)
class Arrow:
    """Functions of several wires to several wires."""

    source: "Types"
    target: "Types"


@dataclass(frozen=True, slots=True)
class Stack:
    """n values of one type."""

    n: int
    item: "Type"


@dataclass(frozen=True, slots=True)
class Foreign:
    """A type of another language, in its own words; nothing here looks into it."""

    text: str


Type = Base | Arrow | Stack | Foreign
Types = tuple[Type, ...]
R, E, B, Z = Base("R"), Base("E"), Base("B"), Base("Z")
_SCALARS = {"f64[]": R, "bool[]": B, "i64[]": Z}


def of_array(t: ArrayType) -> Base:
    """The type of a wire that holds such an array.

    >>> of_array(ArrayType((), np.dtype(float))), of_array(ArrayType((2, 3), np.dtype(float)))
    (Base(name='R'), Base(name='f64[2,3]'))
    """
    return _SCALARS.get(repr(t)) or Base(repr(t))


_SHORT = {"f": "float", "c": "complex", "i": "int", "u": "uint"}


@functools.cache
def array_of(t: Base) -> ArrayType:
    """The array that a wire of the type holds: the inverse of `of_array`."""
    name = {v.name: k for k, v in _SCALARS.items()}.get(t.name, t.name)
    short, _, dims = name.rstrip("]").partition("[")
    word = short.rstrip("0123456789")
    dtype = np.dtype(_SHORT.get(word, word) + short[len(word) :])
    return ArrayType(tuple([int(n) for n in dims.split(",") if n]), dtype)


def moves(t: Type) -> bool:
    """Whether values of the type have cotangents."""
    if isinstance(t, Foreign):
        raise DiagramError(
            f"a wire of the type {t.text} has no derivative here; differentiate the program that "
            "the diagram was made of"
        )
    if isinstance(t, Base):
        return t in (R, E) or carries_tangents(array_of(t).dtype)
    return moves(t.item) if isinstance(t, Stack) else True


def additive(t: Type) -> bool:
    """Whether values of the type are cotangents, which add and have a zero."""
    return not isinstance(t, Arrow) and (additive(t.item) if isinstance(t, Stack) else moves(t))


@functools.cache
def hat(t: Type) -> Type:
    """The types of the wires that a transformed diagram has in place of a wire."""
    match t:
        case Arrow(source, target):
            back = Arrow(tans(target), (E, *tans(source)))
            return Arrow(hats(source), (*hats(target), back))
        case Stack(n, item):
            return Stack(n, hat(item))
    return t


@functools.cache
def tan(t: Type) -> Type | None:
    """The type of cotangents; None where nothing moves."""
    match t:
        case Arrow():
            return E
        case Stack(n, item):
            bar = tan(item)
            return None if bar is None else Stack(n, bar)
    return t if moves(t) else None


def hats(ts: Iterable[Type]) -> Types:
    """`hat` of each."""
    return tuple([hat(t) for t in ts])


def tans(ts: Iterable[Type]) -> Types:
    """The cotangents of several wires: what does not move has none.

    >>> show_all(tans((R, B, Arrow((R,), (R,)))))
    'R, E'
    """
    return tuple([bar for t in ts if (bar := tan(t)) is not None])


@functools.cache
def show(t: Type) -> str:
    """The text of a type, as the parser reads it."""
    match t:
        case Arrow(source, target):
            left = show_all(source)
            return f"({left}{' ' * bool(left)}-> {show_all(target)})"
        case Stack(n, item):
            return f"stack[{n}, {show(item)}]"
        case Foreign(text):
            return f"'{text}'"
    return t.name


def show_all(ts: Iterable[Type]) -> str:
    """The texts of several types, between commas."""
    return ", ".join([show(t) for t in ts])
