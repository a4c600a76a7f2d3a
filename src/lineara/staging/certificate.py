"""The certificate of a derivative: what was proved of it, and what it takes, before it runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from lineara.engines import Forecast, bytes_of, forecast
from lineara.errors import ProgramError
from lineara.facts.types import ArrayType, Stack, Sum, Type
from lineara.linear_a.check import check
from lineara.linear_a.cost import static_works
from lineara.linear_a.program import Program
from lineara.passes.derivatives import vjp
from lineara.passes.inline import inline
from lineara.passes.multiply_out import multiply_out
from lineara.passes.names import JVP, LIN, NL, VJP, T
from lineara.passes.policy_table import size
from lineara.passes.simplify import simplify
from lineara.passes.unzip import Policy, store_all
from lineara.passes.work_bound import c_jvp

LARGEST = 10_000  # work of what is multiplied out for the sake of a certificate


@dataclass(frozen=True)
class Certificate:
    """What was proved of a derivative, and what it takes.

    linear       definitions that the checker has judged linear in their linear arguments
    value, forward, reverse    work: arithmetic of f, of f.jvp, of f.vjp
    bound        c_J: forward is at most c_J value, and the scalars of what is given, made or
                 dropped, once each and never for being read; None if there is none, as where a rule
                 calculates for arrays without elements
    tape_bytes   what f.jvp.nl keeps for f.jvp.lin
    peak         the most bytes of arrays that are alive at a time, in reverse mode
    again        work that the policy does a second time
    multiplied   work of f.jvp.lin.t, inlined and simplified, and of the sparse matrix that it is,
                 where that is less (`passes/multiply_out`)

    Work and bytes are None where they depend on values: on how often a while loop goes round.
    """

    linear: tuple[str, ...]
    value: int | None
    forward: int | None
    reverse: int | None
    bound: Fraction | None
    tape_bytes: int | None
    peak: int | None
    again: int | None
    multiplied: tuple[int, int] | None = None

    def __str__(self) -> str:
        work = memory = "depends on values: only a run can tell"
        if None not in (self.value, self.forward, self.reverse, self.again):
            work = f"value {self.value:,}, forward {self.forward:,}, reverse {self.reverse:,}"
            work += f", of which {self.again:,} a second time"
        if self.tape_bytes is not None and self.peak is not None:
            memory = f"tape {size(self.tape_bytes)}, peak {size(self.peak)}"
        bound = (
            "none is proved, for an operation without work has a derivative with some, or a size "
            "is a value"
        )
        if self.bound is not None:
            bound = f"forward <= {self.bound} value + the size of the arrays that are given or made"
        matrix = ""
        if self.multiplied is not None:
            before, after = self.multiplied
            matrix = f"as one matrix: {self.linear[-1]} does {after:,} in place of {before:,}\n"
        return (
            f"linear, by type: {', '.join(self.linear)}\n"
            f"work: {work}\n"
            f"bound: {bound}\n"
            f"{matrix}"
            f"memory: {memory}"
        )


def certified(source: Program, name: str, policy: Policy, operands: Sequence[Any]) -> Certificate:
    """The certificate of reverse mode of a definition under a policy, by rehearsal.

    Numbers among the operands are known, arrays only by their types.
    """
    works = Works(check(vjp(source, name, policy)))
    stored = works if policy is store_all else Works(vjp(source, name))
    return certificate(works, name, operands, stored)


def certificate(works: "Works", name: str, operands: Sequence[Any], stored: "Works") -> Certificate:
    """The certificate of a program with the vjp of a definition, and of one that stores all."""
    lin = name + JVP + LIN
    value, ahead, reverse = (works.of(name + end, operands) for end in ("", JVP, VJP))
    back, once = works.rehearsal(name + VJP, operands), stored.of(name + VJP, operands)
    return Certificate(
        linear=(name + JVP, lin, lin + T),
        value=value,
        forward=ahead,
        reverse=reverse,
        bound=c_jvp(works.program, name),
        tape_bytes=works.bytes(name + JVP + NL, operands),
        peak=back and back.peak,
        again=None if reverse is None or once is None else reverse - once,
        multiplied=multiplied(works.program, lin + T, works.static[lin + T]),
    )


def multiplied(program: Program, name: str, work: int | None) -> tuple[int, int] | None:
    """The work of a linear definition without its calls, and of its matrix, if that is less."""
    if work is None or work > LARGEST:
        return None
    flat = simplify(inline(program, name), name)
    try:
        made = multiply_out(flat, name)
    except ProgramError:  # a rule of the user's may mix the zones
        return None
    before, after = static_works(flat)[name], static_works(made)[name]
    return None if made is flat or before is None or after is None else (before, after)


class Works:
    """What definitions of a program take: from their texts, and from a rehearsal where it tells."""

    static: dict[str, int | None]
    program: Program

    def __init__(self, program: Program) -> None:
        self.program, self.static = program, static_works(program)
        self.rehearsed: dict[str, Forecast | None] = {}

    def of(self, name: str, operands: Sequence[Any]) -> int | None:
        """The work of a definition; None where it depends on values."""
        if self.static[name] is None:
            known = self.rehearsal(name, operands)
            return known and known.work
        return self.static[name]

    def bytes(self, name: str, operands: Sequence[Any]) -> int | None:
        """The bytes of the last result of a definition; None where they depend on values."""
        n = _bytes_of(self.program, self.program.defs[name].results[-1])
        if n is None:
            known = self.rehearsal(name, operands)
            return known and bytes_of(known.results[-1])
        return n

    def rehearsal(self, name: str, operands: Sequence[Any]) -> Forecast | None:
        """What a rehearsal tells of a definition, which is gone through once."""
        if name not in self.rehearsed:
            self.rehearsed[name] = foretold(self.program, name, operands)
        return self.rehearsed[name]


def _bytes_of(program: Program, t: Type) -> int | None:
    """The bytes of the numbers in the values of a type; None where these differ in size."""
    t = program.unfold(t)
    if isinstance(t, ArrayType):
        return None if any(type(n) is not int for n in t.shape) else t.size * t.dtype.itemsize
    if isinstance(t, Sum) or (isinstance(t, Stack) and type(t.n) is not int):
        return None
    parts = [_bytes_of(program, item) for item in t.items]  # type: ignore[union-attr]
    if None in parts:
        return None
    return sum(parts) * (t.n if isinstance(t, Stack) else 1)  # type: ignore[arg-type, operator]


def foretold(program: Program, name: str, operands: Sequence[Any]) -> Forecast | None:
    """A rehearsal, or None where what happens depends on values."""
    try:
        return forecast(program, name, *operands)
    except ProgramError:
        return None


__all__ = ["Certificate", "certified"]
