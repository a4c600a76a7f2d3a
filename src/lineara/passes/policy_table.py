"""A plan: the costs of each checkpoint policy, before anything runs.

policy          tape         peak         work    again
store_all    4.80 MB      6.40 MB    1,800,000
budget       2.00 MB      4.80 MB    2,150,000    +19 %
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from lineara.engines import Ask, Meter, bytes_of, forecast, ones_of, run
from lineara.errors import ProgramError, TypeMismatchError
from lineara.linear_a.cost import Costs
from lineara.linear_a.program import Program
from lineara.passes.derivatives import vjp
from lineara.passes.minimal_tape import minimal_tape
from lineara.passes.names import JVP, NL, TAPE, VJP
from lineara.passes.store_policies import recompute_all, save_contractions
from lineara.passes.unzip import Policy, store_all

POLICIES: Mapping[str, Policy] = {
    "store_all": store_all,
    "save_contractions": save_contractions,
    "recompute_all": recompute_all,
    "minimal_tape": minimal_tape,
}


def chosen(given: Policy | str, name: str) -> Policy:
    """The policy of that name, or the policy itself.

    Raises TypeMismatchError for a name that no policy has.

    >>> chosen("store_all", "grad") is POLICIES["store_all"]
    True
    """
    if callable(given):
        return given
    if given not in POLICIES:
        raise TypeMismatchError(
            f"{name}: policy={given!r} is not known; give one of {', '.join(POLICIES)} or an "
            f"object of lineara.policies, such as budget(10**6)"
        )
    return POLICIES[given]


class Row(NamedTuple):
    """One policy: bytes of the tape, most bytes of arrays alive, W, and W beyond store_all."""

    policy: str
    tape: int
    peak: int
    work: int
    again: int


class Plan(NamedTuple):
    """The policies side by side, for the reverse mode of one definition."""

    name: str
    rows: tuple[Row, ...]

    def __str__(self) -> str:
        table: list[tuple[str, ...]] = [("policy", "tape", "peak", "work", "again")]
        for r in self.rows:
            share = f"{100 * r.again / max(r.work - r.again, 1):+.0f} %" if r.again else ""
            table.append((r.policy, size(r.tape), size(r.peak), f"{r.work:,}", share))
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = []
        for first, *rest in table:
            cells = [c.rjust(w) for c, w in zip(rest, widths[1:], strict=True)]
            lines.append("    ".join([first.ljust(widths[0]), *cells]).rstrip())
        return "\n".join(lines)


def size(bytes: int) -> str:
    """Bytes as one reads them.

    >>> size(800), size(1_234_567)
    ('800 B', '1.23 MB')
    """
    for unit, n in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if bytes >= n:
            return f"{bytes / n:.2f} {unit}"
    return f"{bytes} B"


def plan(
    program: Program,
    name: str,
    policies: Mapping[str, Policy] | None = None,
    *args: Any,
    rounds: int | None = None,
) -> Plan:
    """What the vjp of a definition takes under each policy; a budget that nothing fits is left out.

    `args` are the arguments that are known before, and `rounds` those of while loops.  Where values
    tell what is done, as in a while loop without `rounds`, it is run at the arguments and counted.

    >>> from lineara.linear_a.parse import parse
    >>> p = parse("def f(x: f64[1000];) -> (f64[1000];) = let y = sin(x) in sin(y)")
    >>> print(plan(p, "f"))
    policy                    tape        peak     work    again
    store_all             16.00 kB    48.00 kB    6,000
    save_contractions      8.00 kB    48.00 kB    7,000    +17 %
    recompute_all          8.00 kB    48.00 kB    7,000    +17 %
    minimal_tape           8.00 kB    48.00 kB    7,000    +17 %
    """
    rows = []
    base = None
    for policy, chosen in {"store_all": store_all, **(policies or POLICIES)}.items():
        try:
            made = vjp(program, name, chosen)
        except ProgramError:
            if policy in POLICIES:
                raise
            continue
        tape, peak, work = _taken(made, name, args, rounds)
        base = work if base is None else base
        rows.append(Row(policy, tape, peak, work, work - base))
    return Plan(name, tuple(rows))


def _taken(
    made: Program, name: str, args: Sequence[Any], rounds: int | None
) -> tuple[int, int, int]:
    """Bytes of the tape, the most bytes of arrays alive, and W: foretold, or else counted."""
    try:
        foretold = forecast(made, name + VJP, *args, rounds=rounds)
        tape = Costs(made).bytes(made.stated(name + JVP + TAPE))
        return tape, foretold.peak, foretold.work
    except ProgramError:
        if len(args) < len(made.defs[name].params):
            raise
    meter = Meter()
    stored = run(made, name + JVP + NL, *args)
    ones = [ones_of(v.type) for v in made.defs[name + VJP].params[len(args) :]]
    counted = run(made, name + VJP, *args, *ones, ask=Ask(work=True, meter=meter))
    return bytes_of(stored.results[-1]), meter.peak, counted.work
