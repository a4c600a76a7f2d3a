"""`python -m benchmarks.operations`: measure every operation, write OPERATIONS.md."""

import argparse
import gc
import time
from datetime import date
from pathlib import Path

from rich.console import Console

from .. import peers
from ..machine import machine, settings
from ..report import time as duration
from .costs import Bench, Cost
from .lines import expressions
from .reasons import why

REPORT = Path(__file__).parents[1] / "OPERATIONS.md"
LIMIT, SHORT = 4.0, 50e-6
"""A gradient costs at most LIMIT values, where a value takes SHORT seconds or longer."""

HEAD = """# What every operation costs

A gradient should cost at most four values, where a value takes 50 µs or longer. Each expression is
made a number by weights. *Value* is plain NumPy or SciPy, *forward* `lineara.jvp` and *reverse*
`lineara.grad`, in all floating-point arrays of the expression at once; both compute the value
too. Torch and autograd compute the same gradient; `theirs / ours` is above 1 where we are faster,
and `–` where they cannot, or have another gradient. Least CPU time of interleaved rounds, one
thread.

Made by `python -m benchmarks.operations`; the values are in `benchmarks/operations/lines.py`.
"""


def main() -> None:
    """Measure, print the slow ones, write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.operations", description=__doc__)
    parser.add_argument("--only", default="", metavar="TEXT", help="expressions that contain this")
    options = parser.parse_args()
    console = Console()
    peers.prepare()
    bench, costs, started = Bench(), [], time.perf_counter()
    gc.freeze()  # what the imports made is not to be looked through at every collection
    for family, lines in expressions().items():
        for text, torch_text in lines.items():
            if options.only in text:
                costs.append(bench.cost(family, text, torch_text))
                style = "red" if above(costs[-1]) else None
                console.print(" ".join(cells(costs[-1])), markup=False, style=style)
    console.print(f"{len(costs)} expressions, {time.perf_counter() - started:.0f} s")
    if not options.only:
        REPORT.write_text(page(costs), encoding="utf-8")
        console.print(f"written: {REPORT.name}")


def above(cost: Cost) -> bool:
    """Whether the gradient costs more than it should."""
    ratio = cost.ratio("reverse", "value")
    return ratio is None or (ratio > LIMIT and cost.seconds["value"] >= SHORT)


def cells(cost: Cost) -> list[str]:
    """One line of the table."""
    return [
        f"`{cost.text}`",
        duration(cost.seconds.get("value")),
        times(cost.ratio("forward", "value")),
        times(cost.ratio("reverse", "value")),
        times(cost.ratio("torch", "torch value")),
        times(cost.ratio("torch", "reverse")),
        times(cost.ratio("autograd", "reverse")),
    ]


def times(ratio: float | None) -> str:
    """A ratio with two digits."""
    return "–" if ratio is None else f"{ratio:.2g}" if ratio < 99.5 else f"{ratio:.0f}"


def page(costs: list[Cost]) -> str:
    """OPERATIONS.md."""
    slow = [c for c in costs if above(c)]
    long = [c for c in costs if c.seconds.get("value", 0) >= SHORT]
    parts = [
        HEAD,
        _facts(),
        f"{len(long) - len(slow)} of {len(long)} values of 50 µs or longer "
        f"have a gradient within four values; {len(costs) - len(long)} values are shorter.",
    ]
    if slow:
        head = ["operation", "reverse / value", "why"]
        rows = [[f"`{c.text}`", times(c.ratio("reverse", "value")), reason(c)] for c in slow]
        parts += ["## Above four, and why", _grid(head, rows)]
    head = ["operation", "value", "forward / value", "reverse / value"]
    head += ["torch's reverse / its value", "torch / ours", "autograd / ours"]
    for family in dict.fromkeys(c.family for c in costs):
        rows = [cells(c) for c in costs if c.family == family]
        parts += [f"## {family.capitalize()}", _grid(head, rows)]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def reason(cost: Cost) -> str:
    """Why a gradient costs more than it should, or did not run."""
    return cost.failed.get("reverse") or why(cost.text, cost.seconds["value"])


def _facts() -> str:
    facts = {"Date": date.today().isoformat(), **machine(), **settings()} | peers.versions()
    return "\n".join(f"- {key}: {value}" for key, value in facts.items())


def _grid(head: list[str], rows: list[list[str]]) -> str:
    def line(cells: list[str]) -> str:
        return "| " + " | ".join(c.replace("|", "\\|") for c in cells) + " |"

    return "\n".join(map(line, [head, ["---"] * len(head), *rows]))


if __name__ == "__main__":
    main()
