"""What a machine's rounding depends on: its processor, its BLAS, and the versions of libraries.

Two machines of one description give the same bits.  BLAS divides its sums among threads, so it gets
one thread while a chunk is worked on.
"""

import os
import platform
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import scipy.linalg  # noqa: F401  # so that its BLAS is there when threads are limited

from lineara.cotangent.interop import MissingLibraryError

LIBRARIES = ("numpy", "scipy", "lineara", "llvmlite")
_ONE_BY_HAND = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")


@cache
def machine() -> dict[str, str]:
    """The processor, the BLAS kernels and the versions of this process, by name.

    >>> sorted(machine())[:3]
    ['BLAS', 'lineara', 'llvmlite']
    """
    return {
        "processor": _processor(),
        "BLAS": _blas(),
        "python": platform.python_version(),
        **{name: _version(name) for name in LIBRARIES},
    }


def _processor() -> str:
    """The name of the processor's model."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return (names or [platform.processor() or platform.machine()])[0]


def _blas() -> str:
    """The libraries that NumPy and SciPy call, with the kernels that each chose."""
    pools = _threadpoolctl()
    if pools is None:
        return "unknown"
    infos = [p for p in pools.threadpool_info() if p["user_api"] == "blas"]
    names = {f"{p['internal_api']} {p['version']} {p.get('architecture', '')}" for p in infos}
    return ", ".join(sorted(name.strip() for name in names))


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "missing"


@cache
def _threadpoolctl() -> Any:
    try:
        return import_module("threadpoolctl")
    except ImportError:
        return None


def differences(machines: Sequence[tuple[dict[str, str], list[str]]]) -> list[str]:
    """A line for each property in which machines differ: who has what.

    >>> differences([({"numpy": "2.3"}, ["a"]), ({"numpy": "2.4"}, ["b", "c"])])
    ['numpy: 2.3 (a), 2.4 (b, c)']
    """
    lines = []
    for name in machines[0][0]:
        who: dict[str, list[str]] = {}
        for description, workers in machines:
            who.setdefault(description.get(name, "missing"), []).extend(workers)
        if len(who) > 1:
            parts = [f"{what} ({', '.join(sorted(workers))})" for what, workers in who.items()]
            lines.append(f"{name}: {', '.join(parts)}")
    return lines


class _Entered:
    """How many chunks are worked on in this process, and what ends the limit on BLAS."""

    lock, count, limit = threading.Lock(), 0, None


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """A context in which BLAS has one thread; the first that enters sets it, the last resets it.

    Raises MissingLibraryError where neither threadpoolctl nor the environment can say so.
    """
    with _Entered.lock:
        if _Entered.count == 0:
            _Entered.limit = _limited()
        _Entered.count += 1
    try:
        yield
    finally:
        with _Entered.lock:
            _Entered.count -= 1
            if _Entered.count == 0 and _Entered.limit is not None:
                _Entered.limit.restore_original_limits()


def _limited() -> Any:
    pools = _threadpoolctl()
    if pools is not None:
        return pools.threadpool_limits(1, "blas")
    if any(os.environ.get(name) == "1" for name in _ONE_BY_HAND):
        return None
    raise MissingLibraryError(
        "distributed: the same bits for any number of workers need BLAS with one thread; "
        "`pip install lineara[dask]` brings threadpoolctl, which limits it, or set "
        "OPENBLAS_NUM_THREADS=1 before Python starts"
    )
