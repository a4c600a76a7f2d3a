"""The certificate of a derivative: what was proved of it, and what it takes, before it runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from lineara.engines import Forecast, Tagged, forecast
from lineara.errors import ProgramError
from lineara.facts.hints import Tree
from lineara.linear_a.check import check
from lineara.linear_a.program import Program
from lineara.passes.derivatives import vjp
from lineara.passes.names import JVP, LIN, NL, VJP, T
from lineara.passes.policy_table import size
from lineara.passes.unzip import Policy, store_all
from lineara.passes.work_bound import c_jvp


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

    def __str__(self) -> str:
        work = memory = "depends on values: only a run can tell"
        if None not in (self.value, self.forward, self.reverse, self.again):
            work = f"value {self.value:,}, forward {self.forward:,}, reverse {self.reverse:,}"
            work += f", of which {self.again:,} a second time"
        if self.tape_bytes is not None and self.peak is not None:
            memory = f"tape {size(self.tape_bytes)}, peak {size(self.peak)}"
        bound = "none is proved, for an operation without work has a derivative with some"
        if self.bound is not None:
            bound = f"forward <= {self.bound} value + the size of the arrays that are given or made"
        return (
            f"linear, by type: {', '.join(self.linear)}\n"
            f"work: {work}\n"
            f"bound: {bound}\n"
            f"memory: {memory}"
        )


def certified(source: Program, name: str, policy: Policy, operands: Sequence[Any]) -> Certificate:
    """The certificate of reverse mode of a definition under a policy, by rehearsal.

    Numbers among the operands are known, arrays only by their types.
    """
    made = check(vjp(source, name, policy))
    lin = name + JVP + LIN
    value, ahead, back = (foretold(made, name + end, operands) for end in ("", JVP, VJP))
    halves = foretold(made, name + JVP + NL, operands)
    stored = back if policy is store_all else foretold(vjp(source, name), name + VJP, operands)
    return Certificate(
        linear=(name + JVP, lin, lin + T),
        value=value and value.work,
        forward=ahead and ahead.work,
        reverse=back and back.work,
        bound=c_jvp(source, name),
        tape_bytes=halves and bytes_of(halves.results[-1]),
        peak=back and back.peak,
        again=back.work - stored.work if back and stored else None,
    )


def foretold(program: Program, name: str, operands: Sequence[Any]) -> Forecast | None:
    """A rehearsal, or None where what happens depends on values."""
    try:
        return forecast(program, name, *operands)
    except ProgramError:
        return None


def bytes_of(value: Tree) -> int:
    """The bytes of the numbers in a value of the language."""
    if isinstance(value, Tagged):
        return bytes_of(value.payload)
    if isinstance(value, tuple | list):
        return sum(map(bytes_of, value))
    return getattr(value, "nbytes", 0)


__all__ = ["Certificate", "bytes_of", "certified"]
