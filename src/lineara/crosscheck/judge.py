"""One program: do the engines agree with each other, and with what they share nothing with?

Two numbers agree if they differ by at most 1e-9 of the larger.  What differs more is judged in 50
digits: a number is right if it is within 1e-9 of the exact one, or within what rounding can do.
"""

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from lineara.crosscheck.engines import ENGINES, Engine, Numbers
from lineara.crosscheck.language import Program
from lineara.crosscheck.oracle import EdgeError, complex_step, fifty_digits

TOLERANCE = 1e-9
ROUNDINGS = 16  # a difference up to this many times that of runs with random rounding is rounding
ORACLE = "complex step"


@dataclass(slots=True)
class Verdict:
    """What was found about a program."""

    outcome: str = "judged"  # or "edge", or "not finite": then nothing was compared
    between: int = 0  # comparisons of two engines
    against: int = 0  # comparisons of an engine and the oracle
    largest_between: float = 0.0
    largest_against: float = 0.0
    rejudged: int = 0  # comparisons that went to 50 digits
    moves: bool = False
    numbers: dict[str, Numbers | str] = field(default_factory=dict)  # or what an engine raised
    engines_disagree: list[str] = field(default_factory=list)
    oracle_disagrees: list[str] = field(default_factory=list)

    @property
    def disagreement(self) -> bool:
        """Whether something is wrong."""
        return bool(self.engines_disagree or self.oracle_disagrees)


def difference(a: float, b: float) -> float:
    """The difference of two numbers, in parts of the larger.

    >>> difference(2.0, 1.0), difference(0.0, 0.0), difference(float("nan"), 1.0)
    (0.5, 0.0, inf)
    """
    if a == b:
        return 0.0
    if not (math.isfinite(a) and math.isfinite(b)):
        return math.inf
    return abs(a - b) / max(abs(a), abs(b))


def judge(program: Program, engines: Mapping[str, Engine] = ENGINES) -> Verdict:
    """Run the engines, compare, and judge again what differs; a LinearaError without mpmath."""
    verdict = Verdict()
    try:
        wanted = complex_step(program)
    except EdgeError:
        verdict.outcome = "edge"
        return verdict
    except (ArithmeticError, ValueError):
        wanted = [math.inf]
    if not all(map(math.isfinite, wanted)):
        verdict.outcome = "not finite"
        return verdict
    verdict.moves = any(wanted[1:])
    verdict.numbers[ORACLE] = wanted
    for name, engine in engines.items():
        verdict.numbers[name] = _asked(engine, program, len(wanted))
        if isinstance(verdict.numbers[name], str):
            verdict.engines_disagree.append(name)
    try:
        _compare(program, verdict, [e for e in engines if e not in verdict.engines_disagree])
    except EdgeError:
        return Verdict("edge")
    return verdict


def _asked(engine: Engine, program: Program, n: int) -> Numbers | str:
    """What an engine finds, or what it raises: none of the two is expected to stop the others."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # the eager engine warns where a program is constant
            numbers = engine(program)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return numbers if len(numbers) == n else f"{len(numbers)} numbers, not {n}"


def _compare(program: Program, verdict: Verdict, names: list[str]) -> None:
    exact: tuple[Numbers, Numbers] | None = None
    first, *_ = names or [ORACLE]
    pairs = [(first, other) for other in names[1:]] + [(ORACLE, name) for name in names]
    for left, right in pairs:
        a, b = verdict.numbers[left], verdict.numbers[right]
        wrong: list[str] = []
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            assert not isinstance(x, str)
            assert not isinstance(y, str)
            d = difference(x, y)
            if d > TOLERANCE:
                exact = exact or fifty_digits(program)
                verdict.rejudged += 1
                wrong += [s for s, v in ((left, x), (right, y)) if not _right(v, exact, i)]
            elif left == ORACLE:
                verdict.largest_against = max(verdict.largest_against, d)
            else:
                verdict.largest_between = max(verdict.largest_between, d)
        if left == ORACLE:
            verdict.against += len(a)
            verdict.oracle_disagrees += [s for s in dict.fromkeys(wrong) if s != ORACLE]
        else:
            verdict.between += len(a)
            known = verdict.engines_disagree
            known += [s for s in dict.fromkeys(wrong) if s not in known]


def _right(x: float, exact: tuple[Numbers, Numbers], i: int) -> bool:
    wanted, moved = exact[0][i], exact[1][i]
    return abs(x - wanted) <= TOLERANCE * abs(wanted) + ROUNDINGS * moved
