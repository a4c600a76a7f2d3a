"""The properties on many more random programs than a run of the tests has: `make fuzz`.

python tests/linear_a/fuzz.py [PROGRAMS [SEED]]      100,000 programs, from a seed by the clock
"""

import collections
import multiprocessing
import os
import sys
import time

import prove
from test_properties import explore

SHARD = 250


def shard(seed: int) -> tuple[int, dict[str, int], dict[str, float], str]:
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
    return seed, dict(prove.proved), dict(prove.largest), failure


def main(programs: int = 100_000, seed: int | None = None) -> int:
    """Run the shards on all processors; the exit status tells whether all is well."""
    first = int(time.time()) if seed is None else seed
    seeds = range(first, first + -(-programs // SHARD))
    counts: collections.Counter[str] = collections.Counter()
    largest: dict[str, float] = {}
    failures = 0
    with multiprocessing.Pool(os.cpu_count()) as pool:
        for n, (found_in, proved, ratios, failure) in enumerate(
            pool.imap_unordered(shard, seeds), 1
        ):
            counts.update(proved)
            largest = {k: max(largest.get(k, 0), ratios.get(k, 0)) for k in {**largest, **ratios}}
            failures += bool(failure)
            print(
                f"{n}/{len(seeds)}: {counts['programs']} programs, {failures} failures", flush=True
            )
            if failure:
                print(f"seed {found_in}\n{failure}", flush=True)
    for k in sorted(counts):
        print(f"{counts[k]:9} {k}")
    for k in sorted(largest):
        print(f"{largest[k]:9.4f} largest {k}")
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
