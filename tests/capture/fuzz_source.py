"""More random functions to capture than a run of the tests has: `make fuzz`.

python tests/capture/fuzz_source.py [FUNCTIONS] [--seed N] [--jobs N]

5,000 functions, from a seed by the clock, on all processors; what fails is printed as text.
"""

import argparse
import collections
import functools
import multiprocessing
import os
import sys
import tempfile
import time

from test_random_source import proved


def outcome(seed: int, folder: str) -> tuple[collections.Counter[str], str]:
    """What one function counts as, and what it fails with."""
    try:
        return proved(seed, folder), ""
    except Exception as error:
        return collections.Counter(), "\n".join(
            [f"{type(error).__name__}: {error}", *error.__notes__]
        )


def main(functions: int, seed: int, jobs: int) -> int:
    """Prove the functions; the exit status tells whether all hold and few are refused."""
    failures, counts = 0, collections.Counter[str]()
    with tempfile.TemporaryDirectory() as folder, multiprocessing.Pool(jobs) as pool:
        act, seeds = functools.partial(outcome, folder=folder), range(seed, seed + functions)
        for n, (found, failure) in enumerate(pool.imap_unordered(act, seeds, 10), 1):
            counts += found
            failures += bool(failure)
            if failure:
                print(failure, flush=True)
            if n % 500 == 0 or n == functions:
                print(f"{n}/{functions} functions, {failures} failures, {dict(counts)}", flush=True)
    return int(failures > 0 or counts["refused"] >= 0.05 * functions)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("functions", nargs="?", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    sys.exit(main(given.functions, given.seed, given.jobs))
