"""Machine code and the interpreter on many random programs: `make fuzz`.

Each seed is a hundred programs of Linear A, and ten captured functions with their derivatives.
With --unoptimised LLVM makes none of them faster, which takes it a part of the time: what is
lowered is looked at on more programs, and what LLVM makes of it on fewer.
"""

import argparse
import sys
import tempfile
from collections import Counter
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import test_native_captured
import test_native_random
from fuzz_runs import go

from lineara.engines.native import machine_code
from lineara.engines.native.cache import nothing_kept

A_SEED, CAPTURED = 100, 10


def outcome(seed: int, unoptimised: bool) -> tuple[Counter[str], str]:
    """The programs of a seed: how many were compared, and the one on which the two differ."""
    counts = Counter[str]()
    if unoptimised:
        machine_code.level_of = lambda text, leaves: 0
    try:
        with nothing_kept(), tempfile.TemporaryDirectory() as folder:
            counts += test_native_random.explore(seed, A_SEED)
            for k in range(seed * CAPTURED, (seed + 1) * CAPTURED):
                counts += test_native_captured.explore(k, folder)
        return counts, ""
    except BaseException as error:
        lines = [repr(error), *getattr(error, "__notes__", ())]
        return Counter(), f"seed {seed}\n" + "\n".join(lines)


if __name__ == "__main__":
    own = argparse.ArgumentParser(add_help=False)
    own.add_argument("--unoptimised", action="store_true", help="100,000 programs, as they are")
    unoptimised = own.parse_known_args()[0].unoptimised
    go(
        __doc__,
        "seeds",
        partial(outcome, unoptimised=unoptimised),
        1000 if unoptimised else 100,
        options=[own],
    )
