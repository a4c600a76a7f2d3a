"""More random functions to capture than a run of the tests has: `make fuzz`.

python tests/capture/fuzz_source.py [FUNCTIONS] [--seed N] [--jobs N]

5,000 functions, from a seed by the clock, on all processors; what fails is printed as text.
"""

import functools
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from fuzz_runs import go
from test_random_source import proved


def outcome(seed: int, folder: str) -> tuple[Counter[str], str]:
    """What one function counts as, and what it fails with."""
    try:
        return proved(seed, folder), ""
    except Exception as error:
        return Counter(), "\n".join([f"{type(error).__name__}: {error}", *error.__notes__])


def too_few(counts: Counter[str], functions: int) -> bool:
    """Whether too many functions are refused."""
    return counts["refused"] >= 0.05 * functions


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        act = functools.partial(outcome, folder=folder)
        go(str(__doc__), "functions", act, 5000, too_few)
