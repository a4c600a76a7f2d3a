"""Machine code gives what the interpreter gives on random programs of Linear A.

Exact, it gives the same bits; by default no number is further away than the bound of `rounding.py`.
Many more programs are tried in `make fuzz`.
"""

import collections
import sys
from pathlib import Path

import hypothesis
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from rounding import excess

from lineara.engines import ENGINES, run
from lineara.engines.native import machine_code
from lineara.engines.native.cache import nothing_kept

pytest.importorskip("llvmlite")

sys.path.insert(0, str(Path(__file__).parent.parent / "linear_a"))
try:
    from programs import Case, arguments, cases
finally:
    sys.path.pop(0)

EXACT, NATIVE = [next(e for e in ENGINES if e.name == s) for s in ("native exact", "native")]
KINDS = st.one_of(
    cases("N", scalar=True, control=True),
    cases("N", scalar=True, arrays=True),
    cases("N", scalar=True, arrays=True, control=True),
    cases("N", arrays=True, control=True),
)


def bits(results):
    """What two results have in common if no bit is another; any NaN is as good as another one."""
    if isinstance(results, tuple | list):
        return [bits(v) for v in results]
    a = np.array(results)
    if a.dtype.kind in "fc":
        a[a != a] = np.nan
    return a.shape, a.dtype.str, a.tobytes()


def outcome(case, values, engine):
    """The results, or the exception that a run ends with."""
    try:
        return run(case.program, case.name, *values, engine=engine).results
    except Exception as error:
        return error


def told(error):
    return type(error), str(error)


def agree(case, values, engine):
    """An engine has the interpreter's outcome, but for what sums in another order."""
    ours, expected = outcome(case, values, engine), outcome(case, values, "interpreter")
    if isinstance(ours, Exception) or isinstance(expected, Exception):
        assert told(ours) == told(expected)
    elif engine is EXACT:
        assert bits(ours) == bits(expected)
    else:
        why = excess(case.program, case.name, values, expected, ours)
        assert not why, why


def explore(seed: int, programs: int) -> collections.Counter[str]:
    """Compare the two on that many random programs; how many were compared, and why others not."""
    counts = collections.Counter[str]()

    @hypothesis.seed(seed)
    @settings(
        max_examples=programs, database=None, deadline=None, print_blob=False,
        suppress_health_check=list(HealthCheck), phases=(Phase.generate, Phase.shrink),
    )  # fmt: skip
    @given(KINDS)
    def they_agree(case: Case) -> None:
        why = EXACT.takes(case.program, case.name)
        counts[why or "compared"] += 1
        if NATIVE.takes(case.program, case.name) is None:
            counts["compared by default"] += 1
            agree(case, arguments(case, 0), NATIVE)
        for offset in (0, 1) if why is None else ():
            if EXACT.takes(case.program, case.name) is None:  # a run may find another order
                agree(case, arguments(case, offset), EXACT)

    with np.errstate(all="ignore"):
        they_agree()
    return counts


def test_random_programs_of_linear_a_have_the_interpreters_values(request):
    programs = 500 if request.config.option.all else 40
    counts = explore(programs, programs)
    assert counts["compared"] > 0.8 * programs
    assert counts["compared by default"] > 0.8 * programs


def test_random_programs_that_llvm_does_not_make_faster_have_them_too(monkeypatch):
    asked = []
    monkeypatch.setattr(machine_code, "level_of", lambda text, leaves: asked.append(leaves) or 0)
    with nothing_kept():
        counts = explore(10, 10)
    assert counts["compared by default"]
    assert asked
