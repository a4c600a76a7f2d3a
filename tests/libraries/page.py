"""The table of docs/libraries.md, from the checks: `python tests/libraries/page.py`."""

import importlib
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "libraries.md"
HEAD = "| library | works | refused | under jit |\n|---|---|---|---|\n"


def table() -> str:
    """A row for each library: what works, and what is refused and why."""
    rows = []
    for path in sorted(Path(__file__).parent.glob("test_*.py")):
        if path.stem == "test_page":
            continue
        cases = importlib.import_module(path.stem).cases
        refused = reasons({name: why for name, (*_, why) in cases.refused.items()})
        captured = len(cases.works) - len(cases.uncaptured)
        but = f", not {reasons(cases.uncaptured)}" if cases.uncaptured else ""
        rows.append(
            f"| {path.stem.removeprefix('test_')} | {len(cases.works)}: {', '.join(cases.works)} "
            f"| {refused or '–'} | {captured}{but} |\n"
        )
    return HEAD + "".join(rows)


def reasons(of: dict[str, str]) -> str:
    """Names with a reason each, by their reasons."""
    why = {w: [n for n, v in of.items() if v == w] for w in dict.fromkeys(of.values())}
    return "; ".join(f"{', '.join(names)}: {w}" for w, names in why.items())


def written() -> str:
    """The table that the page has."""
    text = PAGE.read_text(encoding="utf-8")
    return text[text.index(HEAD) :].partition("\n\n")[0] + "\n"


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    PAGE.write_text(PAGE.read_text(encoding="utf-8").replace(written(), table()), encoding="utf-8")
