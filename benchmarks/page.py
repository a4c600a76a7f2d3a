"""The page of a report: a head, what was not reached, and a section for each table.

Each section says when and at which commit its table was measured, so a page may be renewed key by
key, on the same machine with the same versions.
"""

import re
import subprocess
from collections.abc import Sequence
from datetime import date
from pathlib import Path

from .machine import machine, settings
from .peers import versions
from .report import grid, sections, summary
from .run import Result
from .tables import TABLES

KEYS = tuple(dict.fromkeys(table.key for table in TABLES))
TITLES = tuple(f"({table.key}) {table.title}" for table in TABLES)

ABOUT = (
    "A ratio is peer time / our time: 12× means that we are twelve times faster, 1/3 that we are "
    "three times slower. `published` is the same ratio in the tables of the experiment that set "
    "the goals; a goal is that ratio / 1.3, or what was agreed in words. Rows without a goal are "
    "there for completeness, losing ones too. Before timing, every system's gradient is compared "
    "with the others' at a small size."
)


class OtherMachineError(Exception):
    """What was measured cannot stand on one page."""


def page(results: Sequence[Result], before: str = "") -> str:
    """The page with these results; what `before` has of tables of other keys stays."""
    keys = {r.table.key for r in results}
    facts = f"{bullets(machine() | settings())}\n\n{bullets(versions())}"
    if before and facts not in before:
        raise OtherMachineError(
            "the page was measured on another machine or with other versions; measure all tables, "
            "or write these to a page of their own with --out"
        )
    kept = {title: text for title, text in parted(before).items() if key_of(title) not in keys}
    texts = kept | {title: section(title, results) for title in titles(results)}
    missed = [text for text in missed_in(before) if key_of(text) not in keys]
    missed = sorted(missed + summary(results)[1], key=lambda text: KEYS.index(key_of(text)))
    parts = [
        "# Benchmarks: what was measured",
        f"{total([*texts.values()])}. {ABOUT}",
        "Made by `python -m benchmarks`.",
        facts,
    ]
    if missed:
        parts += ["## Not reached", "\n".join(f"- {text}" for text in missed)]
    parts += [f"## {title}\n\n{texts[title]}" for title in TITLES if title in texts]
    return "\n\n".join(parts) + "\n"


def titles(results: Sequence[Result]) -> list[str]:
    """The tables of the results."""
    return list(dict.fromkeys(f"({r.table.key}) {r.table.title}" for r in results))


def section(title: str, results: Sequence[Result]) -> str:
    """One table: when it was measured, what it says, and its grids."""
    mine = [r for r in results if f"({r.table.key}) {r.table.title}" == title]
    parts = [f"Measured on {date.today().isoformat()} at {commit()}: {summary(mine)[0]}."]
    parts += [mine[0].table.note] if mine[0].table.note else []
    for name, head, rows in sections(mine):
        if rows:
            parts += [f"### {name.capitalize()}", grid(head, rows)]
    return "\n\n".join(parts)


def parted(text: str) -> dict[str, str]:
    """The sections of a page, by title."""
    parts = [part.partition("\n\n") for part in text.split("\n## ")[1:]]
    return {title: body.strip() for title, _, body in parts if title in TITLES}


def missed_in(text: str) -> list[str]:
    """What a page says was not reached."""
    return re.findall(r"^- (\(\w+\) .*)$", text, re.MULTILINE)


def key_of(text: str) -> str:
    """`s` of `(s) a chain of scalars`."""
    return text[1 : text.index(")")]


def total(texts: Sequence[str]) -> str:
    """How many goals the sections reached, of how many."""
    counts = [re.search(r": (\d+) of (\d+) goals reached", text) for text in texts]
    reached, judged = (sum(int(m[i]) for m in counts if m) for i in (1, 2))
    return f"{reached} of {judged} goals reached"


def commit() -> str:
    """The commit that was measured."""
    asked = ["git", "rev-parse", "--short", "HEAD"]
    here = Path(__file__).parent
    run = subprocess.run(asked, cwd=here, capture_output=True, text=True, check=False)
    return run.stdout.strip() or "an unknown commit"


def bullets(facts: dict[str, str]) -> str:
    """A list of facts."""
    return "\n".join(f"- {key}: {value}" for key, value in facts.items())
