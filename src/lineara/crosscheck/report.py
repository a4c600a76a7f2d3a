"""Many random programs, and what was found: the numbers that a page or a person reads."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from lineara.crosscheck.engines import (
    ENGINES,
    MACHINE_CODE,
    Engine,
    notations,
    with_machine_code,
)
from lineara.crosscheck.judge import ORACLE, Verdict, judge
from lineara.crosscheck.language import Program, subterms
from lineara.crosscheck.random_programs import Random
from lineara.crosscheck.shrink import shrink

SIZE = 12


@dataclass(slots=True)
class Report:
    """Counts, the largest differences, and the disagreements as texts; reports add up."""

    programs: int = 0
    edges: int = 0  # left out: at a point where two pieces meet
    not_finite: int = 0  # left out
    moving: int = 0  # have a gradient that is not zero
    higher_order: int = 0  # have a function as a value
    with_arrays: int = 0
    constructs: int = 0
    compiled: int = 0  # run as machine code, too
    between: int = 0
    against: int = 0
    rejudged: int = 0
    largest_between: float = 0.0
    largest_against: float = 0.0
    engines_disagree: int = 0  # programs
    oracle_disagrees: int = 0  # programs
    found: list[str] = field(default_factory=list)

    @property
    def judged(self) -> int:
        """The programs of which something was compared."""
        return self.programs - self.edges - self.not_finite

    @property
    def wrong(self) -> bool:
        """Whether there is any disagreement."""
        return bool(self.engines_disagree or self.oracle_disagrees)

    def __add__(self, other: "Report") -> "Report":
        made = Report()
        for name in self.__slots__:
            a, b = getattr(self, name), getattr(other, name)
            setattr(made, name, max(a, b) if name.startswith("largest") else a + b)
        return made

    def json(self) -> dict[str, Any]:
        """All of it."""
        return asdict(self)

    def text(self) -> str:
        """A table for a person."""
        without = "" if MACHINE_CODE in with_machine_code() else ": llvmlite is not installed"
        rows = [
            ("programs", self.programs),
            ("left out, where two pieces of a function meet", self.edges),
            ("left out, not finite", self.not_finite),
            ("with a gradient that is not zero", self.moving),
            ("with functions as values", self.higher_order),
            ("with arrays", self.with_arrays),
            (f"run as machine code, too{without}", self.compiled),
            ("comparisons of engines with each other", self.between),
            ("comparisons of engines with the complex step", self.against),
            ("judged again in 50 digits", self.rejudged),
            ("programs on which engines disagree", self.engines_disagree),
            ("programs on which the complex step disagrees", self.oracle_disagrees),
        ]
        width = max([len(f"{n:,}") for _, n in rows])
        lines = [f"{n:>{width},}  {what}" for what, n in rows]
        lines.append(f"largest difference of engines            {self.largest_between:.1e}")
        lines.append(f"largest difference from the complex step {self.largest_against:.1e}")
        return "\n".join([*lines, *self.found])


def crosscheck(
    programs: int,
    seed: int = 0,
    size: int = SIZE,
    engines: Mapping[str, Engine] | None = None,
    every: int = 1,
) -> Report:
    """Run programs of the seeds from `seed` on.

    Unless it is said which engines run them, one program in `every` is machine code, too.

    >>> crosscheck(3, seed=1).wrong
    False
    """
    report = Report()
    for s in range(seed, seed + programs):
        own = ENGINES if s % every else with_machine_code()
        report += one(s, size, own if engines is None else engines)
    return report


def one(seed: int, size: int, engines: Mapping[str, Engine]) -> Report:
    """The program of a seed."""
    program = Random(seed, size).program()
    v = judge(program, engines)
    r = Report(programs=1, edges=v.outcome == "edge", not_finite=v.outcome == "not finite")
    if v.outcome != "judged":
        return r
    heads = {e.head for e in subterms(program.body)}
    r.moving = int(v.moves)
    r.higher_order = int("lam" in heads)
    r.with_arrays = int(bool(heads & {"sum", "index", "stack", "dot"}))
    r.constructs = program.body.size
    r.compiled = int(MACHINE_CODE in v.numbers)
    r.between, r.against, r.rejudged = v.between, v.against, v.rejudged
    r.largest_between, r.largest_against = v.largest_between, v.largest_against
    r.engines_disagree = int(bool(v.engines_disagree))
    r.oracle_disagrees = int(bool(v.oracle_disagrees))
    if v.disagreement:
        r.found.append(told(seed, program, v, engines))
    return r


def told(seed: int, program: Program, v: Verdict, engines: Mapping[str, Engine]) -> str:
    """A disagreement: the smallest program that shows it, what each finds, the four notations."""

    def fails(p: Program) -> bool:
        w = judge(p, engines)
        return bool(w.engines_disagree if v.engines_disagree else w.oracle_disagrees)

    small = shrink(program, fails)
    w = judge(small, engines)
    who = ", ".join(dict.fromkeys([*w.engines_disagree, *w.oracle_disagrees]))
    at = ", ".join([f"{x} = {a}" for (x, _), a in zip(small.inputs, small.at, strict=True)])
    lines = [f"\nseed {seed}: {who} disagree; value and gradient at {at}"]
    width = max(map(len, (*engines, ORACLE)))
    lines += [f"  {name:<{width}}  {numbers}" for name, numbers in w.numbers.items()]
    for name, text in notations(small).items():
        lines += [f"--- {name}", text.rstrip("\n")]
    return "\n".join(lines)
