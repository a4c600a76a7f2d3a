"""More random plain Python functions than a run of the tests has: `make fuzz`.

python tests/linear_a/fuzz_python.py [FUNCTIONS] [--seed N] [--jobs N]

5,000 functions, from a seed by the clock, on all processors; what fails is printed as text.
"""

import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from fuzz_runs import go
from test_random_python import proved


def outcome(seed: int) -> tuple[Counter[str], str]:
    """What one function fails with, and its text; nothing if it does not."""
    try:
        proved(seed)
    except Exception as error:
        text = "\n".join([f"seed {seed}: {type(error).__name__}: {error}", *error.__notes__])
        return Counter(), text
    return Counter(), ""


if __name__ == "__main__":
    go(str(__doc__), "functions", outcome, 5000)
