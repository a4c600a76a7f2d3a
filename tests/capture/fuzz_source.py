"""More random functions to capture than a run of the tests has: `make fuzz`.

python tests/capture/fuzz_source.py [FUNCTIONS] [--seed N] [--jobs N]

50,000 functions, from a seed by the clock, on all processors; what fails is printed as text.
Second derivatives are compared for programs of up to 1,000 lines, nine in ten of them.
"""

import functools
import sys
import tempfile
import traceback
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from fuzz_runs import go
from test_random_source import proved

SHORT = 1_000


def outcome(seed: int, folder: str) -> tuple[Counter[str], str]:
    """What one function counts as, and what it fails with."""
    try:
        return proved(seed, folder, SHORT), ""
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # also what is not to leave a trace; it would end the process
        said = traceback.format_exception_only(error)
        return Counter(), "".join([f"seed {seed}\n", *said])


def too_few(counts: Counter[str], functions: int) -> bool:
    """Whether too many functions are refused."""
    second = counts["second refused"] > 0.05 * counts["second"]
    return second or counts["refused"] >= 0.05 * functions


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        act = functools.partial(outcome, folder=folder)
        go(str(__doc__), "functions", act, 50_000, too_few)
