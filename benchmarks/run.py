"""Run a table: check that the systems agree, then time and weigh each row."""

import gc
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from math import log

from .check import agree
from .memory import Memory, allocations
from .peers import installed
from .table import Call, Growth, Row, Table, is_compiled, package
from .timing import Effort, Outcome, Timing, measure, reason


@dataclass(frozen=True)
class Result:
    """One row, measured."""

    table: Table
    row: Row
    outcomes: dict[str, Outcome]
    memory: dict[str, Memory] = field(default_factory=dict)

    def seconds(self, system: str) -> float | None:
        """Seconds a unit, if the system ran."""
        outcome = self.outcomes.get(system)
        if not isinstance(outcome, Timing):
            return None
        return outcome.seconds / self.table.units(self.row)


@dataclass(frozen=True)
class Comparison:
    """One of our variants beside one peer in one row."""

    result: Result
    ours: str
    peer: str

    @property
    def ratio(self) -> float | None:
        """Peer time / our time."""
        ours, peer = self.result.seconds(self.ours), self.result.seconds(self.peer)
        return peer / ours if ours and peer else None

    @property
    def published(self) -> float | None:
        """The same ratio in the published table."""
        return self.result.row.published_ratio(self.peer)

    @property
    def goal(self) -> float | None:
        """The least ratio that counts as reached; None where nothing was promised."""
        return self.result.row.goal(self.peer) if self.ours in self.result.table.judged else None

    @property
    def reached(self) -> bool | None:
        """None where there is no goal or no measurement."""
        return None if self.goal is None or self.ratio is None else self.ratio >= self.goal


@dataclass(frozen=True)
class Slope:
    """Fitted growth of one system: time a unit ~ size^slope."""

    table: Table
    growth: Growth
    system: str
    sizes: list[int]
    slope: float

    @property
    def goal(self) -> float | None:
        """The limit, for those of our variants that are judged."""
        return self.growth.limit if self.system in self.growth.judged else None

    @property
    def reached(self) -> bool | None:
        """None where there is no goal."""
        return None if self.goal is None else self.slope < self.goal


def run(table: Table, rows: list[Row], long: bool, effort: Effort) -> Iterator[Result]:
    """Measure the rows one after the other; what cannot run says why, and never stops the rest."""
    excluded = excuses(table)
    for row in rows:
        outcomes: dict[str, Outcome] = {}
        calls: dict[str, Call] = {}
        inputs = table.inputs(**row.size)
        for system in table.systems(row, long):
            if system in excluded:
                outcomes[system] = excluded[system]
            else:
                _attempt(system, calls, outcomes, partial(table.programs[system], *inputs))
        outcomes |= measure(calls, is_compiled, effort)
        memory = {}
        if row.memory:
            memory = {
                system: allocations(call, package(system) in ("lineara", "autograd", "numpy"))
                for system, call in calls.items()
                if isinstance(outcomes[system], Timing)
            }
        skipped = {} if long else {system: "only with --long" for system in row.long}
        yield Result(table, row, outcomes | skipped, memory)
        del calls, inputs
        gc.collect()


def excuses(table: Table) -> dict[str, str]:
    """Systems that cannot run: not installed, fail, or disagree with the others' gradient."""
    out: dict[str, str] = {}
    calls: dict[str, Call] = {}
    inputs = table.inputs(**table.small)
    for system, build in table.programs.items():
        if not installed(package(system)):
            out[system] = "not installed"
        else:
            _attempt(system, calls, out, partial(build, *inputs))
    gradients: dict[str, object] = {}
    for system, call in calls.items():
        if "no derivative" not in system:
            _attempt(system, gradients, out, call)
    reference = next((s for s in table.peers if s in gradients), None)
    for system in gradients:
        if reference and system != reference:
            differs = agree(gradients[reference], gradients[system], table.rtol)
            if differs:
                out[system] = f"disagrees with {reference}: {differs}"
    return out


def slopes(results: list[Result]) -> Iterator[Slope]:
    """Every system's growth over the rows of its table, where it ran at three sizes or more."""
    for table in dict.fromkeys(id(r.table) for r in results):
        mine = [r for r in results if id(r.table) == table]
        for growth in mine[0].table.growth:
            for system in mine[0].table.programs:
                points = {
                    r.row.size[growth.over]: seconds
                    for r in mine
                    if growth.where.items() <= r.row.size.items() and (seconds := r.seconds(system))
                }
                if len(points) >= 3:
                    yield Slope(mine[0].table, growth, system, sorted(points), fit(points))


def fit(points: dict[int, float]) -> float:
    """Least-squares slope of log(time) over log(size)."""
    xs, ys = [log(x) for x in points], [log(y) for y in points.values()]
    x_mean, y_mean = sum(xs) / len(xs), sum(ys) / len(ys)
    covariance = sum((x - x_mean) * (y - y_mean) for x, y in zip(xs, ys, strict=True))
    return covariance / sum((x - x_mean) ** 2 for x in xs)


def comparisons(results: list[Result]) -> list[Comparison]:
    """Every variant of ours beside every peer of its row; the losing ones too."""
    return [
        Comparison(result, ours, peer)
        for result in results
        for peer in result.table.peers
        if peer in result.outcomes
        for ours in result.table.ours
    ]


def _attempt(system: str, done: dict, failed: dict, action: Callable[[], object]) -> None:
    try:
        done[system] = action()
    except Exception as error:
        failed[system] = reason(error)
