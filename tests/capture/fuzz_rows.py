"""More random functions that give arrays several names: `make fuzz`.

python tests/capture/fuzz_rows.py [FUNCTIONS] [--seed N] [--jobs N]

5,000 functions, from a seed by the clock, on all processors; what fails is printed as text.
"""

import functools
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from fuzz_runs import go
from test_random_rows import proved


def outcome(seed: int, folder: str) -> tuple[Counter[str], str]:
    """What one function counts as, and what it fails with."""
    warnings.simplefilter("ignore")
    try:
        return Counter([proved(seed, folder)]), ""
    except Exception as error:
        return Counter(), "".join([f"seed {seed}\n", *traceback.format_exception_only(error)])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        go(str(__doc__), "functions", functools.partial(outcome, folder=folder), 5_000)
