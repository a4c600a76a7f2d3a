"""What the scripts of `make fuzz` have in common that go through random things by their seeds."""

import argparse
import multiprocessing
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence


def go(
    doc: str,
    things: str,
    outcome: Callable[[int], tuple[Counter[str], str]],
    number: int,
    failed: Callable[[Counter[str], int], bool] = lambda counts, number: False,
    options: Sequence[argparse.ArgumentParser] = (),
) -> None:
    """Try `number` things, or as many as the command line says; exits with 1 where one fails.

    `outcome(seed)` is what one counts as, and what it fails with, or no text.  All together fail
    where `failed(counts, number)`, too.  `doc` is what the command line tells of the script, which
    may have `options` of its own.
    """
    parser = argparse.ArgumentParser(description=doc, parents=options)
    parser.add_argument(things, nargs="?", type=int, default=number)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    given = vars(parser.parse_args())
    number, seed = given[things], given["seed"]
    counts, failures = Counter[str](), 0
    # a process ends after 100 things, and with it the code and what caches hold of them
    with multiprocessing.Pool(given["jobs"], maxtasksperchild=10) as pool:
        found = pool.imap_unordered(outcome, range(seed, seed + number), 10)
        for n, (kinds, text) in enumerate(found, 1):
            counts += kinds
            failures += bool(text)
            if text:
                print(text, flush=True)
            if n % 500 == 0 or n == number:
                shown = dict(counts.most_common(12))
                print(f"{n}/{number} {things}, {failures} failures {shown}", flush=True)
    sys.exit(int(failures > 0 or failed(counts, number)))
