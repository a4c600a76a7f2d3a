"""docs/trust.md, from the figures of a run: `fuzz_crosscheck.py --page` writes it.

The figures stand at the end of the page, so that the page can be made again from itself.
"""

import json
from pathlib import Path
from typing import Any

from lineara.crosscheck.random_programs import OPERATIONS

PAGE = Path(__file__).parent.parent.parent / "docs" / "trust.md"
FENCE = "```json\n"

TEMPLATE = Path(__file__).with_name("trust_template.md")
ROWS = (
    ("programs", "programs"),
    ("of these left out: two pieces of a function meet at the point", "edges"),
    ("of these left out: a number is not finite at the point, or on the way to it", "not_finite"),
    ("with a gradient that is not zero", "moving"),
    ("with functions as values", "higher_order"),
    ("with arrays", "with_arrays"),
    ("run as machine code, too", "compiled"),
    ("comparisons of an engine with another", "between"),
    ("comparisons of an engine with the complex step", "against"),
    ("judged again in 50 digits", "rejudged"),
    ("**disagreements of engines**", "engines_disagree"),
    ("**disagreements with the complex step**", "oracle_disagrees"),
    ("largest difference of engines, of those not judged again", "largest_between"),
    ("largest difference from the complex step, of those not judged again", "largest_against"),
)


def page(run: dict[str, Any]) -> str:
    """The text of the page."""
    table = "\n".join([f"| {label} | {_shown(run[key])} |" for label, key in ROWS])
    judged = run["programs"] - run["edges"] - run["not_finite"]
    text = TEMPLATE.read_text(encoding="utf-8").format(
        date=run["date"], table=table, rejudged=f"{run['rejudged']:,}",
        operations=len(OPERATIONS), size=round(run["constructs"] / judged),
    )  # fmt: skip
    return f"{text}{FENCE}{json.dumps(run)}\n```\n"


def figures(text: str) -> dict[str, Any]:
    """The figures that a page was made of."""
    return json.loads(text.partition(FENCE)[2].partition("```")[0])


def _shown(x: float) -> str:
    return f"{x:,}" if isinstance(x, int) else f"{x:.1e}"
