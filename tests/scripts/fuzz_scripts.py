"""More random scripts than a run of the tests has: `make fuzz`.

python tests/scripts/fuzz_scripts.py [SCRIPTS] [--seed N] [--jobs N]

100,000 scripts, from a seed by the clock, on all processors; what is wrong is printed as text.
"""

import argparse
import multiprocessing
import os
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # differences
from judge_scripts import judge


def outcome(seed: int) -> tuple[str, str]:
    """How one script comes out, and its text if it is wrong."""
    try:
        return judge(seed), ""
    except Exception as error:
        return "wrong", "\n".join([f"{type(error).__name__}: {error}", *error.__notes__])


def main(scripts: int, seed: int, jobs: int) -> int:
    """Judge the scripts; the exit status tells whether all are right."""
    counts = Counter[str]()
    with multiprocessing.Pool(jobs) as pool:
        seeds = range(seed, seed + scripts)
        for n, (how, text) in enumerate(pool.imap_unordered(outcome, seeds, 50), 1):
            counts[how] += 1
            if text:
                print(text, flush=True)
            if n % 10_000 == 0 or n == scripts:
                print(f"{n}/{scripts} scripts: {dict(counts.most_common(12))}", flush=True)
    return int(counts["wrong"] > 0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scripts", nargs="?", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    sys.exit(main(given.scripts, given.seed, given.jobs))
