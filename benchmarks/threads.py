"""`python -m benchmarks.threads`: matrices with one thread of BLAS and with two; writes THREADS.md.

The wheels of NumPy and of SciPy each bring an OpenBLAS of their own, with threads of its own.
Each number of threads is measured in a process of its own, which is told it before it begins.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

from lineara.ops.blas_threads import scipys_threads

REPORT = Path(__file__).with_name("THREADS.md")
COUNTS = (1, 2)
N, ROUNDS = 200, 60

HEAD = f"""# One thread of BLAS, and two

Milliseconds of CPU time, all threads together, of matrices of {N} × {N}: the least of {ROUNDS}
runs and, in brackets, the middle one.

The wheels of NumPy and of SciPy each bring an OpenBLAS of their own, which begins with as many
threads as there are cores. A thread of either that has finished its part waits for the next by
spinning, for some 2^26 ticks, and a call returns when its last thread does. So a product of NumPy's
alone, or one of SciPy's alone, gains by a second thread. One after the other, the threads that spin
for the one library have the cores that those of the other wait for, and each change of library
costs a slice of the scheduler's time: the third row shows it without Lineara. On a machine that has
other work the slices are longer, and even the first two rows have to wait at times.

A derivative changes the library where NumPy computes the value: NumPy offers neither triangular
solves nor the factors of `solve`, so ours take SciPy's, as autograd does for Cholesky's factor.
What ends the waiting: while a routine of SciPy's runs for us, SciPy's OpenBLAS has one thread, for
matrices of less than a million elements (`ops/blas_threads.py`); the rows `waiting` are without it.
Threads of NumPy's spin as they do in the plain function, and are counted; on a machine that has
other work they have to wait for it there, too.

Tried before: derivatives by NumPy alone (`solve` factors again, triangles by halves). With two
threads on a busy machine they took 9 ms in place of 71 (determinant) and 14 in place of 45
(Cholesky), with one thread 4.1 in place of 3.2 and 5.4 in place of 4.1; and twice as long where
`solve` of a vector is most of the work.

Code of the user's that itself goes from NumPy's products to SciPy's waits as the third row does.
That ends with `OPENBLAS_NUM_THREADS=1` before Python starts, or with
`threadpoolctl.threadpool_limits(1)` around the code, as matrices of some hundreds gain little from
more threads; or with a NumPy and a SciPy that share one BLAS, as conda-forge and the distributions
of Linux build them.

Made by `python -m benchmarks.threads`.
"""


def programs() -> dict[str, Callable[[], Any]]:
    """What is measured, by name."""
    import autograd
    import autograd.numpy as anp
    import numpy as np
    from scipy.linalg import blas

    import lineara

    from .tables import k_likelihood as k

    p, *given = k.inputs(N)
    A = np.random.default_rng(0).standard_normal((N, N))
    F = np.asfortranarray(A)
    found: dict[str, Callable[[], Any]] = {
        "a product, NumPy's": lambda: A @ A,
        "a product, SciPy's": lambda: blas.dgemm(1.0, F, F),
        "both, one after the other": lambda: (A @ A, blas.dgemm(1.0, F, F)),
    }
    ways = {"Cholesky's factor": k.by_cholesky, "a determinant": k.by_determinant}
    for way, f in ways.items():
        ours = lineara.grad(lambda p, f=f: f(np, p, *given))
        theirs = autograd.grad(lambda p, f=f: f(anp, p, *given))
        found[f"likelihood by {way}, NumPy"] = lambda f=f: f(np, p, *given)
        found[f"likelihood by {way}, lineara"] = lambda g=ours: g(p)
        found[f"likelihood by {way}, autograd"] = lambda g=theirs: g(p)
        found[f"likelihood by {way}, lineara, waiting"] = lambda g=ours: waiting(g, p)
    return found


def waiting(g: Callable[..., Any], p: Any) -> Any:
    """The same while SciPy's threads stay as they are."""
    alone = scipys_threads()
    if alone is None:
        return g(p)
    cores, alone.cores = alone.cores, 1_000
    try:
        return g(p)
    finally:
        alone.cores = cores


def measured() -> dict[str, list[float]]:
    """Milliseconds of CPU time of each run, least first."""
    found = {}
    for name, run in programs().items():
        run()
        taken = []
        for _ in range(ROUNDS):
            start = time.process_time()
            run()
            taken.append((time.process_time() - start) * 1e3)
        found[name] = sorted(taken)
        time.sleep(0.2)  # until the threads of this row sleep
    return found


def with_threads(count: int) -> dict[str, list[float]]:
    """The same, in a process that has so many threads for each library."""
    run = "from benchmarks.threads import measured; import json; print(json.dumps(measured()))"
    told = os.environ | {"BENCHMARK_THREADS": str(count)}
    out = subprocess.run([sys.executable, "-c", run], env=told, stdout=subprocess.PIPE, check=True)
    return json.loads(out.stdout)


def main() -> None:
    """Measure with each number of threads, and write the page."""
    from .machine import machine
    from .peers import versions

    columns = {count: with_threads(count) for count in COUNTS}
    lines = [HEAD, f"- Date: {date.today()}"]
    lines += [f"- {name}: {value}" for name, value in (machine() | versions()).items()]
    lines += ["", "| | " + " | ".join(f"{c} thread{'s' * (c > 1)}" for c in COUNTS) + " | ratio |"]
    lines += ["|---|" + "--:|" * (len(COUNTS) + 1)]
    for name, first in columns[COUNTS[0]].items():
        runs = [columns[c][name] for c in COUNTS]
        cells = " | ".join(f"{r[0]:.2f} ({r[len(r) // 2]:.2f})" for r in runs)
        lines.append(f"| {name} | {cells} | {runs[-1][0] / first[0]:.1f} |")
    REPORT.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(REPORT.read_text())


if __name__ == "__main__":
    main()
