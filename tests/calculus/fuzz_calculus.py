"""The calculus on many more random programs than a run of the tests has: `make fuzz`.

python tests/calculus/fuzz_calculus.py [PROGRAMS [SEED]]      20,000 programs, seeded by the clock
"""

import multiprocessing
import os
import sys
import time
import traceback

from agree import agree, agree_converted, agree_functional, agree_staged

SHARD = 100


def shard(seed: int) -> tuple[int, int, str]:
    """SHARD programs, half of them with derivatives inside: how many move, and what failed."""
    moving = 0
    for n in range(seed, seed + SHARD):
        try:
            moving += agree(n, nested=bool(n % 2), typed=n % 10 < 2)
            if n % 10 == 5:
                agree_functional(n)
                agree_staged(n, nested=bool(n % 4 == 1))
                agree_converted(n, nested=bool(n % 4 == 3))
        except Exception:
            return n, moving, traceback.format_exc()
    return seed, moving, ""


def main(programs: int = 20_000, seed: int | None = None) -> int:
    """Run the shards on all processors; the exit status tells whether all is well."""
    first = int(time.time()) if seed is None else seed
    starts = range(first, first + programs, SHARD)
    moving = failures = 0
    with multiprocessing.Pool(os.cpu_count()) as pool:
        for at, found, failure in pool.imap_unordered(shard, starts):
            moving += found
            if failure:
                failures += 1
                print(f"seed {at}\n{failure}")
    print(f"{programs} programs from seed {first}: {moving} move, {failures} shards failed")
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
