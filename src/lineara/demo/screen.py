"""The demo's output on the screen: a live table of the descents, and tables of the results."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from lineara.demo.fit import NAIVE, PUBLISHED, Descent, is_bad

MEANING = {
    "alpha": "hare births, a year",
    "beta": "hares lost to one lynx",
    "gamma": "lynx deaths, a year",
    "delta": "lynx won from one hare",
    "hare": "hares, 1900 (thousands)",
    "lynx": "lynx, 1900 (thousands)",
    "hare_noise": "noise of log hare pelts",
    "lynx_noise": "noise of log lynx pelts",
}


class Cost(NamedTuple):
    """The cost of the value and the gradient, in seconds and in counted scalar operations."""

    seconds: Sequence[float]  # of both, in Python
    jitted: Sequence[float]  # of both as machine code; none without a compiler
    value_work: int
    reverse_work: int


class Descents:
    """The live table: a row for each start, updated while BFGS runs."""

    def __init__(self, console: Console) -> None:
        self.rows: list[Descent | None] = []
        self.finished: int = 0
        self.live: Live = Live(console=console, refresh_per_second=8, get_renderable=self.table)

    def __enter__(self) -> "Descents":
        self.live.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self.live.__exit__(*error)

    def begin(self) -> None:
        """Add a row for the next start."""
        self.rows.append(None)

    def tell(self, descent: Descent) -> None:
        """Update the newest row."""
        self.rows[-1] = descent

    def end(self, descent: Descent) -> None:
        """Mark the newest row as ended."""
        self.tell(descent)
        self.finished += 1

    def table(self) -> Group:
        """The current rows, and an empty line."""
        table = Table(title="BFGS, minimising -log likelihood", title_justify="left")
        for column in ("start", "iteration", "-log likelihood", "|gradient|"):
            table.add_column(column, justify="right")
        table.add_column("")
        ended = [d for d in self.rows[: self.finished] if d is not None and np.isfinite(d.value)]
        best = min(ended, key=lambda d: d.value, default=None)
        for i, d in enumerate(self.rows):
            state, style = _state(d, best, running=i >= self.finished)
            start = f"{i + 1} naive" if i == 0 else f"{i + 1} random"
            row = (
                ("0", "", "")
                if d is None
                else (f"{d.iterations}", f"{d.value:.4f}", f"{d.gradient_norm:.1e}")
            )
            table.add_row(start, *row, state, style=style)
        return Group(table, "")


def _state(descent: Descent | None, best: Descent | None, running: bool) -> tuple[str, str]:
    """The text and the style of a row's last column."""
    if running:
        return "running", "yellow"
    if descent is None or best is None or not np.isfinite(descent.value):
        return "left the model's range", "red"
    if descent is best:
        return "best", "bold green"
    return ("a bad minimum", "red") if is_bad(descent, best) else ("the same minimum", "green")


def opening(pelts: np.ndarray) -> Text:
    """The introduction that is printed before the fit."""
    return Text.from_markup(
        f"[bold]Lynx and hare, Hudson Bay[/bold]: {len(pelts)} years of pelts, "
        f"{len(fields(NAIVE))} unknowns.\n"
        "The model is plain NumPy, a Runge-Kutta loop that fills an array; "
        "Lineara differentiates it as it stands.\n"
    )


def verdict(ended: list[Descent], best: Descent) -> Text:
    """The summary: which start gave the best fit, and where the others ended."""
    winner = next(i for i, d in enumerate(ended) if d is best)
    lost = [d for d in ended if not np.isfinite(d.value)]
    bad = [d for d in ended if np.isfinite(d.value) and is_bad(d, best)]
    text = (
        f"Start {winner + 1} of {len(ended)} won: -log likelihood {best.value:.4f} after "
        f"{best.iterations} iterations. {len(bad)} ended in a bad minimum"
    )
    if bad:
        text += f" (-log likelihood {min(d.value for d in bad):.1f} or worse)"
    if lost:
        text += f", {len(lost)} left the range in which the model can be computed"
    if len(ended) == 1:
        text += "; with one start nobody knows how good this minimum is, try --starts 8"
    return Text(text + ".\n")


def parameters(estimate: np.ndarray, errors: np.ndarray) -> Table:
    """The parameters with standard errors, beside the published ones."""
    table = Table(title="Parameters", title_justify="left")
    table.add_column("")
    table.add_column("", style="dim")
    for column in ("estimate", "standard error", "published"):
        table.add_column(column, justify="right")
    for field, value, error in zip(fields(NAIVE), estimate, errors, strict=True):
        published = PUBLISHED.get(field.name)
        decimals = max(0, 1 - int(np.floor(np.log10(error))))  # two digits of the error
        table.add_row(
            field.name,
            MEANING[field.name],
            f"{value:.{decimals}f}",
            f"{error:.{decimals}f}",
            "" if published is None else f"{published:#.2g}".rstrip("."),
        )
    table.caption = (
        "Standard errors from lineara.hessian at the minimum, by the delta method. "
        "Published: Carpenter 2018, the mean of a posterior."
    )
    return table


def check(report: object) -> Group:
    """The result of check_grads."""
    return Group(
        Text("\nlineara.check_grads, order 2, forward and reverse:", style="bold"),
        Text(f"{report}"),
    )


def cost(cost: Cost) -> Table:
    """A table of the cost of the gradient relative to the value."""
    table = Table(title="\nWhat a gradient costs", title_justify="left")
    table.add_column("")
    for column in ("value", "value and gradient", "ratio"):
        table.add_column(column, justify="right")
    for how, seconds in (("time", cost.seconds), ("time, jitted", cost.jitted)):
        if seconds:
            value, both = seconds
            table.add_row(how, _time(value), _time(both), f"{both / value:.1f}")
        else:
            table.add_row(how, "", "llvmlite is not installed", "")
    both = cost.value_work + cost.reverse_work
    table.add_row(
        "scalar operations",
        f"{cost.value_work:,}",
        f"{both:,}",
        f"{both / cost.value_work:.1f}",
    )
    return table


def _time(seconds: float) -> str:
    """Milliseconds or microseconds."""
    return f"{seconds * 1e3:.2f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.1f} µs"
