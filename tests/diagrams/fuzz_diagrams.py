"""The diagrams on many more random programs than a run of the tests has: `make fuzz`.

python tests/diagrams/fuzz_diagrams.py [PROGRAMS [SEED]]      20,000 programs, seeded by the clock
"""

import multiprocessing
import os
import sys
import time
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
from diagrams.judge import agree

SHARD = 50


def shard(seed: int) -> tuple[int, int, str]:
    """SHARD programs: how many have a gradient that is not zero, and what failed."""
    moving = 0
    for n in range(seed, seed + SHARD):
        try:
            small = n % 20 == 0
            moving += agree(n, 3 if small else 4 + n % 2, every_step=small, simplified=n % 5 == 1)
        except Exception:
            return n, moving, traceback.format_exc()
    return seed, moving, ""


def main(programs: int = 20_000, seed: int | None = None) -> int:
    """Run the shards on all processors; the exit status tells whether all is well."""
    first = int(time.time()) if seed is None else seed
    moving = failures = 0
    with multiprocessing.Pool(os.cpu_count()) as pool:
        for at, found, failure in pool.imap_unordered(shard, range(first, first + programs, SHARD)):
            moving += found
            if failure:
                failures += 1
                print(f"seed {at}\n{failure}")
    print(f"{programs} programs from seed {first}: {moving} move, {failures} shards failed")
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
