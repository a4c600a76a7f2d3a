"""More random scripts than a run of the tests has: `make fuzz`.

python tests/scripts/fuzz_scripts.py [SCRIPTS] [--seed N] [--jobs N]

100,000 scripts, from a seed by the clock, on all processors; what is wrong is printed as text.
"""

import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # differences
from fuzz_runs import go
from judge_scripts import judge


def outcome(seed: int) -> tuple[Counter[str], str]:
    """How one script comes out, and its text if it is wrong."""
    try:
        return Counter([judge(seed)]), ""
    except Exception as error:
        return Counter(["wrong"]), "\n".join([f"{type(error).__name__}: {error}", *error.__notes__])


if __name__ == "__main__":
    go(str(__doc__), "scripts", outcome, 100_000)
