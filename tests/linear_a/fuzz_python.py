"""More random plain Python functions than a run of the tests has: `make fuzz`.

python tests/linear_a/fuzz_python.py [FUNCTIONS] [--seed N] [--jobs N]

5,000 functions, from a seed by the clock, on all processors; what fails is printed as text.
"""

import argparse
import multiprocessing
import os
import sys
import time

from test_random_python import proved


def failure(seed: int) -> str:
    """What one function fails with, and its text; nothing if it does not."""
    try:
        proved(seed)
    except Exception as error:
        return "\n".join([f"seed {seed}: {type(error).__name__}: {error}", *error.__notes__])
    return ""


def main(functions: int, seed: int, jobs: int) -> int:
    """Prove the functions; the exit status tells whether all hold."""
    failures = 0
    with multiprocessing.Pool(jobs) as pool:
        seeds = range(seed, seed + functions)
        for n, found in enumerate(pool.imap_unordered(failure, seeds, 10), 1):
            failures += bool(found)
            if found:
                print(found, flush=True)
            if n % 500 == 0 or n == functions:
                print(f"{n}/{functions} functions, {failures} failures", flush=True)
    return int(failures > 0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("functions", nargs="?", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    sys.exit(main(given.functions, given.seed, given.jobs))
