"""A loop of a million rounds that fills an array: work and bytes are the closed forms.

python tests/linear_a/million.py [ROUNDS]      three minutes; `make fuzz` runs it too
"""

import sys

from test_growth import WORK, WRITTEN, counted, stated

if __name__ == "__main__":
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 10**6
    works, written, ahead, back = counted(n)
    assert works == stated(WORK, n), works
    assert written == stated(WRITTEN, n), written
    assert abs(ahead - back) <= 1e-12 * abs(back), (ahead, back)
    print(f"{n:,} rounds: work {works}, numbers written {written}")
