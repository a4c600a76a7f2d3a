"""Machine code and the interpreter on many random programs of Linear A: `make fuzz`."""

import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from fuzz_runs import go
from test_native_random import explore

A_SEED = 100


def outcome(seed: int) -> tuple[Counter[str], str]:
    """A hundred programs: how many were compared, and the one on which the two differ."""
    try:
        return explore(seed, A_SEED), ""
    except BaseException as error:
        lines = [repr(error), *getattr(error, "__notes__", ())]
        return Counter(), f"seed {seed}\n" + "\n".join(lines)


if __name__ == "__main__":
    go(__doc__, "seeds", outcome, 100)
