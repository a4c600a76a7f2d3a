"""The calculus on many more random programs than a run of the tests has: `make fuzz`.

python tests/calculus/fuzz_calculus.py [PROGRAMS [SEED [PROCESSES]]]    20,000, seeded by the clock

Every program is reduced by the rules, with each step typed again, evaluated by the machine and by
the eager engine, some as Linear A in two ways, and compared with the complex step.
"""

import multiprocessing
import os
import sys
import time
import traceback
from typing import NamedTuple

import agree as agreement
from agree import agree, agree_converted, agree_functional, agree_staged

SHARD = 100


class Found(NamedTuple):
    """What a shard has found: at which seed it ended, how many move, comparisons, the worst."""

    seed: int
    moving: int
    comparisons: int
    worst: float
    failure: str = ""


def shard(seed: int) -> Found:
    """SHARD programs, half of them with derivatives inside."""
    moving, before = 0, agreement.comparisons
    for n in range(seed, seed + SHARD):
        try:
            moving += agree(n, nested=bool(n % 2), typed=True)
            if n % 10 == 5:
                agree_functional(n)
                agree_staged(n, nested=bool(n % 4 == 1))
                agree_converted(n, nested=bool(n % 4 == 3))
        except Exception:
            return Found(n, moving, 0, agreement.worst, traceback.format_exc())
    return Found(seed, moving, agreement.comparisons - before, agreement.worst)


def main(programs: int = 20_000, seed: int | None = None, processes: int | None = None) -> int:
    """Run the shards on all processors; the exit status tells whether all is well."""
    first = int(time.time()) if seed is None else seed
    starts = range(first, first + programs, SHARD)
    with multiprocessing.Pool(processes or os.cpu_count()) as pool:
        found = []
        for f in pool.imap_unordered(shard, starts):
            found.append(f)
            if f.failure:
                print(f"seed {f.seed}\n{f.failure}", flush=True)
    failures = sum([bool(f.failure) for f in found])
    print(
        f"{programs} programs from seed {first}: {sum(f.moving for f in found)} move, "
        f"{sum(f.comparisons for f in found)} comparisons, the largest disagreement is "
        f"{max(f.worst for f in found):.1e}, {failures} shards failed"
    )
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
