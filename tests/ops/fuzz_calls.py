"""Random calls of NumPy's and SciPy's functions, as many as asked for.

python tests/ops/fuzz_calls.py [CALLS] [FIRST SEED]      part of `make fuzz`
"""

import collections
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from judge_calls import judge, judge_precision


def main(calls: int = 3000, first: int = 1000) -> int:
    """Print what does not hold; the exit status tells whether all does."""
    found: collections.Counter[str] = collections.Counter()
    for seed in range(first, first + calls):
        try:
            found[judge(seed)] += 1
            found[judge_precision(seed)] += 1
        except Exception as error:
            found["wrong"] += 1
            print(f"seed {seed}: {type(error).__name__}: {error}", flush=True)
    print(f"{calls} calls: {dict(found)}")
    return int(found["wrong"] > 0)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
