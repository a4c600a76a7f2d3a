"""`python -m benchmarks`: measure, print ratios, write RESULTS.md."""

import argparse
import gc
import time
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from . import peers
from .page import page
from .report import show, summary
from .run import Result, excuses, run
from .table import Row, Table
from .tables import TABLES
from .timing import Effort

RESULTS = Path(__file__).with_name("RESULTS.md")


def arguments() -> argparse.Namespace:
    """The command line."""
    keys = ",".join(dict.fromkeys(table.key for table in TABLES))
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", metavar="a,c", help=f"these tables (of {keys})")
    parser.add_argument("--quick", action="store_true", help="fewer rounds, no large sizes")
    parser.add_argument("--long", action="store_true", help="also what takes minutes")
    parser.add_argument("--out", type=Path, action="append", help="where to write the report")
    parser.add_argument("--merge", action="store_true", help="renew these tables of the report")
    parser.add_argument("--check", action="store_true", help="compare gradients, time nothing")
    return parser.parse_args()


def main() -> None:
    """Run the tables that were asked for."""
    options = arguments()
    console = Console()
    peers.prepare()
    gc.freeze()  # what the imports made is not the collector's business in any system
    started = time.perf_counter()
    tables = chosen(options.only)
    if options.check:
        check(console, tables)
        return
    effort = Effort(rounds=5, seconds=0.2) if options.quick else Effort()
    results = [result for table in tables for result in measured(console, table, options, effort)]
    line, missed = summary(results)
    spent = f"{time.perf_counter() - started:.0f} s, {time.process_time():.0f} s of CPU time"
    console.rule(f"{line}; {spent}", align="left")
    for text in missed:
        console.print(text, style="red", markup=False)
    whole = not (options.only or options.quick)
    if options.out or whole or options.merge:
        for out in options.out or [RESULTS]:
            before = out.read_text(encoding="utf-8") if options.merge and out.exists() else ""
            out.write_text(page(results, before), encoding="utf-8")
            console.print(f"written: {out}")


def chosen(only: str | None) -> list[Table]:
    """The tables named on the command line, or all."""
    keys = only.split(",") if only else [table.key for table in TABLES]
    unknown = set(keys) - {table.key for table in TABLES}
    if unknown:
        raise SystemExit(f"no such table: {', '.join(sorted(unknown))}")
    return [table for table in TABLES if table.key in keys]


def measured(
    console: Console, table: Table, options: argparse.Namespace, effort: Effort
) -> list[Result]:
    """One table, measured under a status line and printed."""
    rows = [row for row in table.rows if row.quick or not options.quick]
    results: list[Result] = []
    started = time.perf_counter()
    with console.status("") as status:
        status.update(doing(table, rows[0]))
        for result in run(table, rows, options.long, effort):
            results.append(result)
            if len(results) < len(rows):
                status.update(doing(table, rows[len(results)]))
    show(console, results)
    console.print(f"{time.perf_counter() - started:.0f} s", style="dim")
    return results


def doing(table: Table, row: Row) -> str:
    """The status line."""
    return escape(f"({table.key}) {table.title}: {row.label}")


def check(console: Console, tables: list[Table]) -> None:
    """Say of every system whether it computes the others' gradient."""
    for table in tables:
        excluded = excuses(table)
        console.print(f"({table.key}) {table.title}", markup=False)
        for system in table.programs:
            console.print(f"    {system}: {excluded.get(system, 'agrees')}", markup=False)


if __name__ == "__main__":
    main()
