"""Lineara beside its peers: the same programs, side by side, in one process.

    python -m benchmarks                   everything, half an hour; writes RESULTS.md
    python -m benchmarks --only a,c        two tables
    python -m benchmarks --only a --merge  one table, in the place that it has in RESULTS.md
    python -m benchmarks --quick           fewer rounds, smaller sizes only
    python -m benchmarks --long            also what takes minutes (compiles of unrolled loops, ...)

Every program runs on one thread: OpenBLAS, OpenMP and XLA read these variables when they are
loaded, so they are set here, before anything else is imported.
"""

import os

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NPROC"):
    os.environ[_variable] = os.environ.get("BENCHMARK_THREADS", "1")
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.environ["JAX_PLATFORMS"] = "cpu"
