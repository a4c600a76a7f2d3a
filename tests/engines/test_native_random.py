"""Machine code gives the interpreter's bits on random programs of Linear A; more in `make fuzz`."""

import collections
import sys
from pathlib import Path

import hypothesis
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from lineara.engines import ENGINES, run

pytest.importorskip("llvmlite")

sys.path.insert(0, str(Path(__file__).parent.parent / "linear_a"))
try:
    from programs import Case, arguments, cases
finally:
    sys.path.pop(0)

EXACT = next(e for e in ENGINES if e.name == "native exact")
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
    """The bits of the results, or the exception that a run ends with."""
    try:
        return bits(run(case.program, case.name, *values, engine=engine).results)
    except Exception as error:
        return type(error), str(error)


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
        for offset in (0, 1) if why is None else ():
            values = arguments(case, offset)
            assert outcome(case, values, EXACT) == outcome(case, values, "interpreter")

    with np.errstate(all="ignore"):
        they_agree()
    return counts


def test_random_programs_of_linear_a_have_the_interpreters_bits(request):
    programs = 1500 if request.config.option.all else 60
    counts = explore(programs, programs)
    assert counts["compared"] > 0.8 * programs
