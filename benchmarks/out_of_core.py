"""`python -m benchmarks.out_of_core`: a fit to more rows than memory holds; writes OUT_OF_CORE.md.

    python -m benchmarks.out_of_core             10^8 rows
    python -m benchmarks.out_of_core --quick     10^5 rows, written nowhere

The data is a range of seeds, of each of which `load=` draws a chunk where it is worked on: what a
file is for others.  SciPy's L-BFGS asks for value and gradient, chunk by chunk, in this process.
"""

import argparse
import resource
import time
from collections.abc import Callable
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import minimize

import lineara.distributed as over

REPORT = Path(__file__).with_name("OUT_OF_CORE.md")
TRUE = np.array([0.5, -1.0, 2.0, 0.25])


def rows(seed: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """A chunk: features, and labels that follow a logistic regression."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, len(TRUE)))
    return x, (rng.random(count) < 1 / (1 + np.exp(-x @ TRUE))) * 1.0


def loss(w: Any, chunk: Any) -> Any:
    """The loss of a chunk."""
    x, y = chunk
    z = x @ w
    return np.sum(np.logaddexp(0, z) - y * z)


def objective(chunks: int, count: int) -> over.Objective:
    """What SciPy minimizes: so many chunks of so many rows."""
    load = partial(rows, count=count)
    return over.minimizable(loss, np.zeros(len(TRUE)), range(chunks), load=load, progress=False)


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    """(seconds, the result)."""
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def most() -> float:
    """The most MB that this process has had in memory."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


PAGE = """# More rows than memory holds

Written by `python -m benchmarks.out_of_core`, in one process, {date}, NumPy {numpy}{note}.

A logistic regression on {total:,} rows of {features} features in float64: {chunks} chunks of
{count:,} rows, {bytes:.1f} GB in all, which are drawn anew, chunk by chunk, in each evaluation.
One evaluation of value and gradient took {one:,.0f} s, and SciPy's L-BFGS {evaluations} evaluations
and {fit:,.0f} s; it found the weights to {error:.0e}. The process had {peak:,.0f} MB in memory at
most, and {before:,.0f} MB before the first evaluation. That memory does not grow with the number of
chunks is counted by a test (`tests/distributed/test_here.py`).
"""


def main() -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="small, and written nowhere")
    parser.add_argument("--note", default="", help="what else the machine did, for the page")
    given = parser.parse_args()
    chunks, count = (10, 10_000) if given.quick else (1_000, 100_000)
    m, before = objective(chunks, count), most()
    one, _ = timed(lambda: m.fun(m.x0))
    print(f"one evaluation: {one:,.1f} s, {most():,.0f} MB", flush=True)
    fit, found = timed(lambda: minimize(m.fun, m.x0, jac=True, method="L-BFGS-B"))
    page = PAGE.format(
        date=date.today().isoformat(),
        numpy=np.__version__,
        note=given.note and f"; {given.note}",
        total=chunks * count,
        features=len(TRUE),
        chunks=f"{chunks:,}",
        count=count,
        bytes=chunks * count * 8 * (len(TRUE) + 1) / 1e9,
        one=one,
        evaluations=found.nfev,
        fit=fit,
        error=np.max(np.abs(found.x - TRUE)),
        peak=most(),
        before=before,
    )
    print(page)
    if not given.quick:
        REPORT.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
