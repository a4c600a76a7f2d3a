"""What the emitter knows of a value: numbers in registers, arrays in buffers, and what holds these.

    Num      a float, a c128, an i64 or a bool; a constant, or a whole number affine in rounds
    Arr      an array: a buffer, where it begins in it, and its type
    Tup      a product          Tag     a value of a sum: the tag and what each alternative holds
    Stk      a stack: what one row holds, each part a constant, affine in the round, a place of an
             array, or in a buffer

A whole number that is affine in the rounds around it is never stored on a tape, and its range is
known, so that neither a check of an index nor one of an overflow is left of it.
"""

import ctypes
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple, TypeAlias

import numpy as np

from lineara.facts.types import ArrayType

LEAST, MOST = -(2**63), 2**63 - 1
LLVM = {
    "f64": "double", "f32": "float", "c128": "<2 x double>", "i64": "i64", "bool": "i1",
}  # fmt: skip
"""Types in registers."""
IN_MEMORY = LLVM | {"bool": "i8"}
TYPES = {
    kind: ArrayType((), np.dtype(code))  # in the processor's byte order
    for kind, code in (
        ("f64", "f8"),
        ("f32", "f4"),
        ("c128", "c16"),
        ("i64", "i8"),
        ("bool", "b1"),
    )
}
KINDS = {t.dtype: kind for kind, t in TYPES.items()}
FLOATS = ("f64", "f32")


class Refused(Exception):
    """Why a program is not lowered."""


class Unlaid(Refused):
    """Why exact code has no bits of its own for a program: which array lies who knows how."""

    def __init__(self, why: str, place: str = "") -> None:
        super().__init__(why)
        self.place = place  # the user's, where that is known


class TooLong(Refused):
    """It would be too long: what is called back elsewhere does not help."""


class Unfit(Exception):
    """Why a definition is called back, which what is written around it has to know."""

    def __init__(self, why: str, name: str) -> None:
        super().__init__(why)
        self.name = name


SERIAL = count()


class Round:
    """The rounds of one loop: how many there are, and the register that counts them.

    `most` is how many there are in the rounds of the loops around, which were made before it.
    """

    def __init__(self, n: int | None, most: "Affine | None" = None) -> None:
        self.n = n
        self.most = most if n is None else Affine(max(n, 1))
        self.register = ""
        self.serial: int = next(SERIAL)


@dataclass(frozen=True, slots=True)
class Affine:
    """constant + Σ factor · round: a whole number, without overflow."""

    constant: int
    terms: tuple[tuple[Round, int], ...] = ()

    def plus(self, other: "Affine", times: int = 1) -> "Affine":
        """self + times · other."""
        factors = dict(self.terms)
        for r, k in other.terms:
            factors[r] = factors.get(r, 0) + times * k
        kept = tuple([(r, k) for r, k in factors.items() if k])
        return Affine(self.constant + times * other.constant, kept)

    def times(self, k: int) -> "Affine":
        """k · self."""
        return Affine(0).plus(self, k)

    def at(self, r: Round, value: "Affine") -> "Affine":
        """The same where another number stands for the rounds of a loop."""
        k = dict(self.terms).get(r, 0)
        rest = Affine(self.constant, tuple([t for t in self.terms if t[0] is not r]))
        return rest.plus(value, k) if k else self

    def range(self) -> tuple[int, int] | None:
        """Bounds of what it is wherever code runs; None where the rounds are not known."""
        ends = [self.end(sign) for sign in (-1, 1)]
        return None if None in ends else (ends[0], ends[1])  # type: ignore[return-value]

    def end(self, sign: int) -> int | None:
        """The greatest value, or the least: each loop in its first round or its last one."""
        a = self
        while a.terms:
            r, k = max(a.terms, key=lambda term: term[0].serial)  # others do not depend on it
            if r.most is None:
                return None
            a = a.at(r, r.most.plus(Affine(-1)) if k * sign > 0 else Affine(0))
        return a.constant

    def fits(self) -> bool:
        """Whether every value it takes is an i64."""
        ends = self.range()
        return ends is not None and ends[0] >= LEAST and ends[1] <= MOST


class Num(NamedTuple):
    """A number: its kind, its register, and what is known of it before the program runs."""

    kind: str
    register: str = ""
    constant: float | bool | None = None  # of a float or a bool
    affine: Affine | None = None  # of an i64
    compared: "tuple[str, Num, Num] | None" = None  # of a bool: the comparison that it is of
    source: "Read | None" = None  # where it was read


class Read(NamedTuple):
    """A number that was read at a place that rounds tell, in which open loop, the innermost one."""

    array: "Arr"
    at: Num
    loop: Round | None = None


class Buffer:
    """Memory: an argument, a constant, or a slot of the workspace, which alone is written."""

    def __init__(self, register: str, nbytes: int, written: bool) -> None:
        self.register = register
        self.nbytes = nbytes
        self.written = written


class Node(Buffer):
    """Memory of a node or of a column: its register is made where it is read, and not before."""


class Arena(Buffer):
    """The rows of a tape that grows, so its address is loaded when read."""


Lay: TypeAlias = tuple[int, ...] | None
"""How many elements apart the places of each axis are in an array of NumPy's; None: not known."""
C: Lay = ()
"""As they are in C order."""


class Arr(NamedTuple):
    """An array: `at` counts elements of its buffer; "" is the beginning.

    It lies in C order, or its places are `strides` elements apart on each axis.  `lay` says how
    NumPy's array lies there: sums depend on that.
    """

    buffer: Buffer
    type: ArrayType
    at: str = ""
    lay: Lay = C
    strides: tuple[int, ...] | None = None


class Tup(NamedTuple):
    """A product."""

    items: "tuple[Held, ...]"


class Tag(NamedTuple):
    """A value of a sum; an alternative that it cannot be is None."""

    tag: "Held"
    items: "tuple[Held, ...]"


class Choice:
    """Whether numbers are read again where they lay, and not stored; None while that is open."""

    def __init__(self) -> None:
        self.again: bool | None = None
        self.stores: list[tuple[int, str, Buffer]] = []  # lines of code, and into which memory
        self.told: list[tuple[int | None, ArrayType, str]] = []  # as a report has columns


class Column(NamedTuple):
    """One part of the rows of a stack: an array or a number a row, in a buffer.

    Or each lies yet at its source, if that is the choice.
    """

    buffer: Buffer
    type: ArrayType
    source: "Read | None" = None
    choice: Choice | None = None


class Stk(NamedTuple):
    """A stack: the rounds, how many there are, its first row in the columns, and what a row is.

    In a row of another stack the first row is None where it follows from the place of that row.
    """

    round: Round
    n: "Held"
    base: "Held"
    row: "Held"


class Nil:
    """The zero of a sum or of a stack: it has the tag and the rows of what it is added to."""


NIL = Nil()
# A column and what is read again stand in rows only; None is what a value of a sum cannot be.
Held = Num | Arr | Tup | Tag | Stk | Nil | Column | Read | None


def buffers(value: Held) -> Iterator[Buffer]:
    """The buffers that a value lies in."""
    if isinstance(value, Column) and value.source and value.choice and value.choice.again:
        yield value.source.array.buffer
    elif isinstance(value, Arr | Column):
        yield value.buffer
    elif isinstance(value, Read):
        yield value.array.buffer
    elif isinstance(value, Stk):
        for part in (value.n, value.base, value.row):
            yield from buffers(part)
    elif isinstance(value, Tup | Tag):
        for item in value.items:
            yield from buffers(item)
        if isinstance(value, Tag):
            yield from buffers(value.tag)


def constant(kind: str, value: complex | bool) -> Num:
    """A number that is known."""
    if kind == "i64":
        return Num(kind, affine=Affine(int(value.real)))
    if kind == "c128":
        parts = [f"double {in_text(part)}" for part in (complex(value).real, complex(value).imag)]
        return Num(kind, f"<{', '.join(parts)}>")
    assert not isinstance(value, complex), "it is real"
    if kind == "f32":
        return Num(kind, constant=ctypes.c_float(value).value)
    return Num(kind, constant=bool(value) if kind == "bool" else float(value))


def in_text(value: float) -> str:
    """A float as LLVM reads it, to the bit."""
    return f"0x{struct.pack('>d', value).hex().upper()}"


def word_of(t: ArrayType) -> str | None:
    """The kind of a number that a word of eight bytes holds; None for what has memory."""
    return None if t.shape or t.dtype.itemsize > 8 else kind_of(t)


UNREAD = constant("i64", 0)
"""Stands for what nobody reads, and is told by its identity."""


def kind_of(t: ArrayType) -> str | None:
    """The kind of the numbers of a type; None for those that no register holds."""
    return KINDS.get(t.dtype)


def unsure(t: ArrayType) -> Lay:
    """How an array lies of which it is not known; of one axis it does not matter."""
    return C if t.ndim < 2 else None


def lays(value: Held) -> tuple[Lay, ...]:
    """How the arrays in a value lie."""
    if isinstance(value, Arr):
        return (value.lay,)
    items = value.items if isinstance(value, Tup | Tag) else ()
    return tuple([lay for item in items for lay in lays(item)])


def extent(t: ArrayType, lay: tuple[int, ...]) -> int:
    """How many elements there are from the first to the last place of an array."""
    return 1 + sum([(n - 1) * k for n, k in zip(t.shape, lay, strict=True)])


def strides_of(shape: Sequence[int]) -> list[int]:
    """How many elements apart the places of each axis are, in C order."""
    steps, step = [], 1
    for n in reversed(shape):
        steps.append(step)
        step *= n
    return steps[::-1]
