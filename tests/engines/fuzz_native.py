"""Machine code and the interpreter on many random programs: `make fuzz`.

Each seed is a hundred programs of Linear A, and ten captured functions with their derivatives.
"""

import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import test_native_captured
import test_native_random
from fuzz_runs import go

A_SEED, CAPTURED = 100, 10


def outcome(seed: int) -> tuple[Counter[str], str]:
    """The programs of a seed: how many were compared, and the one on which the two differ."""
    counts = Counter[str]()
    try:
        counts += test_native_random.explore(seed, A_SEED)
        with tempfile.TemporaryDirectory() as folder:
            for k in range(seed * CAPTURED, (seed + 1) * CAPTURED):
                counts += test_native_captured.explore(k, folder)
        return counts, ""
    except BaseException as error:
        lines = [repr(error), *getattr(error, "__notes__", ())]
        return Counter(), f"seed {seed}\n" + "\n".join(lines)


if __name__ == "__main__":
    go(__doc__, "seeds", outcome, 100)
