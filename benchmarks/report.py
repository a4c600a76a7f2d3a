"""Print what was measured, ratios first: peer time / our time, beside what was promised."""

from collections.abc import Iterable, Sequence
from itertools import groupby

from rich.console import Console
from rich.markup import escape
from rich.table import Table as Grid

from .memory import Memory
from .run import Comparison, Result, Slope, comparisons, slopes
from .table import Table
from .timing import Timing

Cells = tuple[str, ...]

GROWTH = ("system", "sizes", "slope", "goal", "reached")
TIMES = ("size", "system", "time", "runs", "first call")
MEMORY = ("size", "system", "resident set", "NumPy peak")


def ratio(value: float | None) -> str:
    """12.3× when we win, 1/3.4 when we lose."""
    if value is None:
        return "–"
    return f"{_digits(value)}×" if value >= 0.995 else f"1/{_digits(1 / value)}"


def time(seconds: float | None) -> str:
    """Three digits and a unit."""
    if seconds is None:
        return "–"
    for scale, unit in ((1, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")):
        if seconds >= 0.9995 * scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-9:.2g} ns"


def size(count: int | None) -> str:
    """Bytes in MB."""
    return "–" if count is None else f"{count / 1e6:.3g} MB"


def reached(verdict: bool | None) -> str:
    """Yes, NO, or ? where something was promised and nothing measured."""
    return {True: "yes", False: "NO", None: "?"}[verdict]


def ratio_head(table: Table) -> Cells:
    """A column of ratios and one of times for each of our variants."""
    ratios = (f"peer / {ours}" for ours in table.ours)
    return ("size", "peer", *ratios, "published", "goal", "reached", "peer takes", *table.ours)


def ratio_rows(result: Result) -> Iterable[Cells]:
    """One row for each peer; a peer or a variant of ours without a time says why instead."""
    by_peer = groupby(comparisons([result]), lambda c: c.peer)
    for peer, group in by_peer:
        variants = list(group)
        yield (
            result.row.label,
            peer,
            *(ratio(c.ratio) for c in variants),
            ratio(variants[0].published) if variants[0].published else "",
            ratio(result.row.goal(peer)) if result.row.goal(peer) else "",
            ", ".join(reached(c.reached) for c in variants if c.goal),
            told(result, peer),
            *(told(result, c.ours) for c in variants),
        )
    if not result.table.peers.keys() & result.outcomes.keys():
        ours = [told(result, name) for name in result.table.ours]
        yield (result.row.label, "", *("" for _ in ours), "", "", "", "", *ours)


def told(result: Result, system: str) -> str:
    """The time of a system, or why there is none."""
    seconds = result.seconds(system)
    return str(result.outcomes[system]) if seconds is None else time(seconds)


def growth_row(s: Slope) -> Cells:
    """One fitted slope."""
    return (
        s.system,
        f"{s.growth.over} = {s.sizes[0]:.0e} … {s.sizes[-1]:.0e}".replace("e+0", "e"),
        f"{s.slope:+.3f}",
        f"< {s.goal}" if s.goal else "",
        reached(s.reached) if s.goal else "",
    )


def time_rows(result: Result) -> Iterable[Cells]:
    """Every system of one row with its time."""
    for system, outcome in result.outcomes.items():
        if isinstance(outcome, Timing):
            runs, first = str(outcome.calls), time(outcome.first)
            yield result.row.label, system, time(result.seconds(system)), runs, first
        else:
            yield result.row.label, system, outcome, "", ""


def memory_row(result: Result, system: str, memory: Memory) -> Cells:
    """What one call allocated."""
    return result.row.label, system, size(memory.resident), size(memory.traced)


def sections(results: Sequence[Result]) -> Iterable[tuple[str, Cells, list[Cells]]]:
    """The grids of one table: ratios, growth, memory, times."""
    table = results[0].table
    ratios = [row for r in results for row in ratio_rows(r)]
    growth = [growth_row(s) for s in slopes(list(results))]
    memory = [memory_row(r, system, m) for r in results for system, m in r.memory.items()]
    times = [row for r in results for row in time_rows(r)]
    yield f"peer time / our time, per {table.unit}", ratio_head(table), ratios
    yield "growth: log-log slope of the time", GROWTH, growth
    yield "memory of one call", MEMORY, memory
    yield "every time", TIMES, times


def show(console: Console, results: Sequence[Result]) -> None:
    """One table on the terminal."""
    table = results[0].table
    console.rule(escape(f"({table.key}) {table.title}"), align="left")
    for title, head, rows in sections(results):
        if rows and head is not TIMES:
            grid = Grid(title=escape(title), title_justify="left", header_style="bold")
            for name in head:
                grid.add_column(name, justify="right" if name.startswith("peer / ") else "left")
            for row in rows:
                grid.add_row(
                    *map(escape, row), style="red" if any("NO" in cell for cell in row) else None
                )
            console.print(grid)
    if table.note:
        console.print(table.note, style="dim", markup=False)


def summary(results: Sequence[Result]) -> tuple[str, list[str]]:
    """How many goals were reached, and which were not."""
    verdicts: list[Comparison | Slope] = [*comparisons(list(results)), *slopes(list(results))]
    judged = [v for v in verdicts if v.reached is not None]
    missed = [_missed(v) for v in judged if not v.reached]
    line = f"{len(judged) - len(missed)} of {len(judged)} goals reached"
    without = [c for c in verdicts if c.goal is not None and c.reached is None]
    return line + (f"; {len(without)} not measured" if without else ""), missed


def _missed(verdict: Comparison | Slope) -> str:
    if isinstance(verdict, Slope):
        table, what = verdict.table, f"{verdict.system}, slope over {verdict.growth.over}"
        return f"({table.key}) {what}: {verdict.slope:+.3f}, limit {verdict.goal}"
    table, row = verdict.result.table, verdict.result.row
    what = f"{row.label}, {verdict.ours} beside {verdict.peer}"
    return f"({table.key}) {what}: {ratio(verdict.ratio)}, goal {ratio(verdict.goal)}"


def _digits(value: float) -> str:
    return f"{value:.3g}" if value < 999.5 else f"{float(f'{value:.3g}'):,.0f}"


def grid(head: Cells, rows: Iterable[Cells]) -> str:
    """A table of Markdown."""

    def line(cells: Iterable[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    return "\n".join([line(head), line("---" for _ in head), *map(line, rows)])
