"""The counts of the last run of `make test-conformance`, as a table: what the page says.

python tests/conformance/table.py [PATTERN [LIFT]]    runs the files whose name has it, and writes
"""

import re
import sys
import tempfile
import tomllib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from suites import HERE, Judged, files, judged

COUNTS = HERE / "counts.toml"
PAGE = HERE.parent.parent / "docs" / "conformance.md"
TEXT = """# NumPy's own tests, and Python's, inside of a differentiation

NumPy's wheel ships its tests, and Python those of its numbers. `make test-conformance` runs them
with every floating value that a test makes lifted into an open differentiation: a test that passes
plainly must pass there, too, or stop with an error of ours that is one of the kept kinds
(`tests/conformance/reasons.toml`). What differs is counted for each file in
`tests/conformance/counts.toml`, and may only become less. {files} files have been counted; what has
no counts is skipped.

{tape}

Kept are tests that look at what the harness itself changes (`tests/conformance/kept.toml`); late
are those that take more than 20 s of CPU time.
`python tests/conformance/table.py PATTERN` counts files again and writes this page.

## In the one lane of a `vmap`

The same tests run once more as the body of a `vmap` over one lane, in which every floating value
that a test makes is a value of that lane. A value is not known there while the function runs: what
a test compares is what has been written so far, batched over the lane and run. So a test that makes
a Python number, a branch or a text of a value is refused. {lanes_files} files have been counted.

{lanes}

`python tests/conformance/table.py PATTERN lanes` counts files again.
"""
OUTCOMES = ("passed", "different", "kept", "late")
Counts = dict[str, dict[str, int]]  # of each file


def written(counts: dict[str, Counts]) -> str:
    """The counts of each way to lift, as the text of a file."""
    lines = [
        "# What came out of the installed tests: `python tests/conformance/table.py` writes it."
    ]
    for lift, files_of in counts.items():
        lines += ["", f"[{lift}]"]
        for name, found in sorted(files_of.items()):
            inside = ", ".join([f'"{key}" = {n}' for key, n in found.items()])
            lines.append(f'"{name}" = {{ {inside} }}')
    return "\n".join(lines) + "\n"


def counted(found: Judged) -> dict[str, int]:
    """The counts of one file; the reasons of refusals by name."""
    refused = dict(sorted(found.refused.items()))
    counts = {"passed": found.passed, "different": len(found.different)}
    rest = {"kept": found.kept, "late": found.late}
    return counts | {key: n for key, n in rest.items() if n} | refused


def table(counts: Counts) -> str:
    """A line for each suite, and for all: what passed, what was refused and why, what differs."""
    suites: dict[str, Counter[str]] = {}
    for name, found in sorted(counts.items()):
        suites.setdefault(name.rpartition("/")[0], Counter()).update(found)
    lines = [
        "| suite | passed | refused | different | kept | late | refused because of |",
        "|---|--:|--:|--:|--:|--:|---|",
    ]
    for name, found in suites.items():
        why = {k: n for k, n in found.most_common() if k not in OUTCOMES and n}
        reasons = ", ".join([f"{k} {n}" for k, n in why.items()])
        passed, *rest = [str(found[k]) for k in OUTCOMES]
        cells = [name, passed, str(sum(why.values())), *rest, reasons]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def page(counts: dict[str, Counts]) -> str:
    """The text of docs/conformance.md."""
    tables = {lift: table(found) for lift, found in counts.items()}
    return TEXT.format(files=len(counts["tape"]), lanes_files=len(counts["lanes"]), **tables)


def main(pattern: str = "", lift: str = "tape") -> None:
    """Run the files, two at a time, and keep their counts."""
    counts = tomllib.loads(COUNTS.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as made, ThreadPoolExecutor(2) as pool:

        def run(name: str) -> tuple[str, Judged]:
            folder = Path(made) / name.replace("/", "_")
            folder.mkdir()
            return name, judged(name, lift, folder)

        for name, found in pool.map(run, [n for n in files() if re.search(pattern, n)]):
            counts[lift][name] = counted(found)
            print(name, counts[lift][name], *found.different, sep="\n  ", flush=True)
    COUNTS.write_text(written(counts), encoding="utf-8")
    PAGE.write_text(page(counts), encoding="utf-8")
    print(table(counts[lift]))


if __name__ == "__main__":
    main(*sys.argv[1:])
