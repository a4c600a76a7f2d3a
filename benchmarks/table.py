"""A table: the same program in every system, at several sizes, with what was measured elsewhere.

A program is built once a row (`build(*inputs) -> call`); `call()` computes one gradient and is what
is timed. The systems are named; the first word of the name says which package it needs.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Call = Callable[[], Any]
Build = Callable[..., Call]
Size = Mapping[str, int]

PACKAGES = {"lineara": "lineara", "torch": "torch", "JAX": "jax", "autograd": "autograd"}

TOLERANCE = 1.3
"""A ratio reaches the published one if it is at least that ratio / TOLERANCE."""


def package(system: str) -> str:
    """The package a system needs: the first word of its name decides."""
    return PACKAGES.get(system.replace(".", " ").split()[0], "numpy")


def is_compiled(system: str) -> bool:
    """Does the first call of this system compile something?  JAX compiles single operations too."""
    return system.startswith("JAX")


@dataclass(frozen=True)
class Row:
    """One size of a table: who runs there, and what the published table says.

    `published` maps a peer to its published time and "lineara" to the time of the experiment that
    set the goals (one unit a table). A peer in `also` runs without a goal; one in `long` runs only
    under --long. `goals` gives a ratio that was agreed in words instead of by a table.
    """

    size: Size
    published: Mapping[str, float] = field(default_factory=dict)
    also: Sequence[str] = ()
    long: Sequence[str] = ()
    goals: Mapping[str, float] = field(default_factory=dict)
    memory: bool = False
    quick: bool = True

    @property
    def label(self) -> str:
        """`n=1e6, k=100`."""
        return ", ".join(f"{name}={count(value)}" for name, value in self.size.items())

    def published_ratio(self, peer: str) -> float | None:
        """Peer time / our time in the published table."""
        if peer in self.published and "lineara" in self.published:
            return self.published[peer] / self.published["lineara"]
        return None

    def goal(self, peer: str) -> float | None:
        """The least ratio that counts as reached."""
        ratio = self.published_ratio(peer)
        return self.goals.get(peer, ratio and ratio / TOLERANCE)


@dataclass(frozen=True)
class Growth:
    """A statement on growth: log-log slope of the time a unit over one size is below `limit`."""

    over: str
    limit: float
    where: Mapping[str, int] = field(default_factory=dict)
    judged: Sequence[str] = ("lineara",)


@dataclass(frozen=True)
class Table:
    """The same function in every system.  Of our variants, `ours`, those in `judged` have goals."""

    key: str
    title: str
    inputs: Callable[..., tuple]
    small: Size
    ours: Mapping[str, Build]
    peers: Mapping[str, Build]
    rows: Sequence[Row]
    judged: Sequence[str] = ("lineara",)
    unit: str = "gradient"
    per: str | None = None
    growth: Sequence[Growth] = ()
    rtol: float = 1e-8
    note: str = ""

    @property
    def programs(self) -> dict[str, Build]:
        """Every system's program, ours first."""
        return {**self.ours, **self.peers}

    def systems(self, row: Row, long: bool = False) -> list[str]:
        """Who runs in this row, in the order of the programs."""
        wanted = {*self.ours, *row.published, *row.also, *(row.long if long else ())}
        return [name for name in self.programs if name in wanted]

    def units(self, row: Row) -> int:
        """By how much a time is divided: the lookups, elements or operations of one gradient."""
        return row.size[self.per] if self.per else 1


def count(n: int) -> str:
    """1000000 as 1e6; small or crooked numbers as they are."""
    digits = str(n).rstrip("0")
    zeros = len(str(n)) - len(digits)
    return f"{digits}e{zeros}" if zeros > 2 and len(digits) == 1 else str(n)
