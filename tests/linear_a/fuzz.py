"""The properties on many more random programs than a run of the tests has: `make fuzz`.

    python tests/linear_a/fuzz.py [PROGRAMS] [--seed N] [--jobs N] [--journal FILE]

100,000 programs, from a seed by the clock, on all processors.  A journal has a line for each shard
of 250 that was run; a run that finds one goes on where that one stopped.
"""

import argparse
import collections
import json
import multiprocessing
import os
import sys
import time
from pathlib import Path
from typing import Any

import prove
from test_properties import explore

SHARD = 250

Found = dict[str, Any]  # what one shard was and what it found


def shard(seed: int) -> Found:
    """One seed: what was compared, the largest ratios, and the failure if there was one."""
    prove.largest.clear()
    try:
        explore(seed, SHARD)
        failure = ""
    except BaseException as error:  # an ExceptionGroup of all that was found, shrunk
        lines = [str(error), *(str(e) for e in getattr(error, "exceptions", ()))]
        every = (error, *getattr(error, "exceptions", ()))
        lines += [n for e in every for n in getattr(e, "__notes__", ())]
        failure = "\n".join(lines)
    proved, largest = dict(prove.proved), dict(prove.largest)
    return {"seed": seed, "proved": proved, "largest": largest, "failure": failure}


def main(programs: int, seed: int | None, jobs: int, journal: Path | None) -> int:
    """Run the shards that are not in the journal; the exit status tells whether all is well."""
    there = journal.read_text().splitlines() if journal and journal.exists() else []
    done: list[Found] = [json.loads(line) for line in there]
    first = min((d["seed"] for d in done), default=int(time.time())) if seed is None else seed
    seeds = range(first, first + -(-programs // SHARD))
    done = [d for d in done if d["seed"] in seeds]
    counts: collections.Counter[str] = collections.Counter()
    largest: dict[str, float] = {}
    failures = 0

    def add(found: Found) -> None:
        nonlocal failures
        counts.update(found["proved"])
        for k, v in found["largest"].items():
            largest[k] = max(largest.get(k, 0.0), v)
        failures += bool(found["failure"])
        if found["failure"]:
            print(f"seed {found['seed']}\n{found['failure']}", flush=True)

    for found in done:
        add(found)
    left = sorted({*seeds} - {d["seed"] for d in done})
    with multiprocessing.Pool(jobs) as pool:
        for n, found in enumerate(pool.imap_unordered(shard, left), len(done) + 1):
            add(found)
            if journal:
                with journal.open("a") as lines:
                    print(json.dumps(found), file=lines)
            print(
                f"{n}/{len(seeds)}: {counts['programs']} programs, {failures} failures", flush=True
            )
    for k in sorted(counts):
        print(f"{counts[k]:9} {k}")
    for k in sorted(largest):
        print(f"{largest[k]:9.4f} largest {k}")
    return int(failures > 0)


if __name__ == "__main__":
    asked = argparse.ArgumentParser(description="Prove the properties of random programs.")
    asked.add_argument("programs", type=int, nargs="?", default=100_000)
    asked.add_argument("--seed", type=int)
    asked.add_argument("--jobs", type=int, default=os.cpu_count())
    asked.add_argument("--journal", type=Path)
    sys.exit(main(**vars(asked.parse_args())))
