"""The four engines and machine code on many more random programs than the tests have: `make fuzz`.

    python tests/engines/fuzz_crosscheck.py [PROGRAMS] [--seed N] [--jobs N] [--journal FILE] ...

100,000 programs, from a seed by the clock, on all processors.  A journal has a line for each shard
of 250 that was run; a run that finds one goes on where that one stopped.  With --page, and if there
is no disagreement, docs/trust.md is written from the run.
"""

import argparse
import datetime
import json
import multiprocessing
import os
import sys
import time
from pathlib import Path
from typing import Any

from trust_page import PAGE, page

from lineara.crosscheck import Report, crosscheck

SHARD = 250
SIZE = 16  # larger programs than those of the tests


def shard(seed: int) -> dict[str, Any]:
    """The report on SHARD programs."""
    return {"seed": seed, "report": crosscheck(SHARD, seed, SIZE).json()}


def main(programs: int, seed: int | None, jobs: int, journal: Path | None, write: bool) -> int:
    """Run the shards that are not in the journal; the exit status tells whether all is well."""
    there = journal.read_text().splitlines() if journal and journal.exists() else []
    done = [json.loads(line) for line in there]
    first = min((d["seed"] for d in done), default=int(time.time())) if seed is None else seed
    seeds = range(first, first + programs, SHARD)
    done = [d for d in done if d["seed"] in seeds]
    total = Report()
    for d in done:
        total += Report(**d["report"])
    left = sorted({*seeds} - {d["seed"] for d in done})
    with multiprocessing.Pool(jobs, maxtasksperchild=4) as pool:  # compiled code stays in a process
        for found in pool.imap_unordered(shard, left):
            report = Report(**found["report"])
            total += report
            print("\n".join([*report.found, f"{total.programs} programs"]), flush=True)
            if journal:
                with journal.open("a") as lines:
                    print(json.dumps(found), file=lines)
    print(total.text())
    if write and not total.wrong:
        today = datetime.datetime.now(datetime.UTC).date().isoformat()
        PAGE.write_text(page({"date": today, "seed": first, **total.json()}), encoding="utf-8")
    return int(total.wrong)


if __name__ == "__main__":
    asked = argparse.ArgumentParser(description="The engines on random programs.")
    asked.add_argument("programs", type=int, nargs="?", default=100_000)
    asked.add_argument("--seed", type=int)
    asked.add_argument("--jobs", type=int, default=os.cpu_count())
    asked.add_argument("--journal", type=Path)
    asked.add_argument("--page", action="store_true", dest="write")
    sys.exit(main(**vars(asked.parse_args())))
