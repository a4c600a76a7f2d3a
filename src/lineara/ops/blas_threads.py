"""SciPy's LAPACK with one thread, where its threads and NumPy's would wait for each other.

The wheels of NumPy and of SciPy each bring an OpenBLAS with threads of its own, as many as there
are cores.  A thread that has finished its part spins for some milliseconds, and a call returns when
its last thread does.  A derivative goes from NumPy's products to SciPy's factorisations and back,
so the threads that spin for the one library have the cores that the other one waits for: a
factorisation of a tenth of a millisecond takes forty.

While SciPy's routine runs for us it has one thread, and nothing waits.  A large matrix gains more
by its threads than a change of the library costs; a tiny one is never shared among threads.
"""

import ctypes
import functools
import os
import threading
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np

FEW, MANY = 8 * 8, 1000 * 1000  # elements from which threads have parts, and gain by them


class Library(NamedTuple):
    """How many threads an OpenBLAS has: it says it, and is told it."""

    get: Callable[[], int]
    set: Callable[[int], Any]


class OneThread:
    """A context in which `ours` has one thread, if it and `other` have more than there are cores.

    Several of Python's threads may be inside; the last to leave gives back what there was.
    """

    ours: Library
    other: Library
    inside: int
    cores: int

    def __init__(self, ours: Library, other: Library, cores: int) -> None:
        self.ours, self.other, self.cores = ours, other, cores
        self.lock: threading.Lock = threading.Lock()
        self.inside, self.before = 0, 1

    def __enter__(self) -> None:
        with self.lock:
            if not self.inside:
                threads = self.ours.get()
                contend = threads > 1 and threads + self.other.get() > self.cores
                self.before: int = threads if contend else 1
                if contend:
                    self.ours.set(1)
            self.inside += 1

    def __exit__(
        self, kind: type | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self.lock:
            self.inside -= 1
            if not self.inside and self.before > 1:
                self.ours.set(self.before)


def one_thread(routine: Callable[..., Any]) -> Callable[..., Any]:
    """A routine of SciPy's that has one thread where threads would wait."""
    alone = scipys_threads()
    if alone is None:
        return routine

    @functools.wraps(routine)
    def call(*args: Any, **options: Any) -> Any:
        if FEW <= max([a.size for a in args if type(a) is np.ndarray]) < MANY:
            with alone:
                return routine(*args, **options)
        return routine(*args, **options)

    return call


@functools.cache  # one for the process, as SciPy's threads are
def scipys_threads() -> OneThread | None:
    """SciPy's threads beside NumPy's; None where both use one library, or it does not say."""
    import scipy.linalg.lapack

    ours = _library(scipy.linalg.lapack, "_flapack")
    other = _library(np.linalg, "_umath_linalg")
    if ours is None or other is None or _address(ours.set) == _address(other.set):
        return None
    return OneThread(ours, other, os.cpu_count() or 1)


def _library(module: Any, extension: str) -> Library | None:
    """The OpenBLAS with which an extension module is linked."""
    try:
        inside = ctypes.CDLL(getattr(module, extension).__file__)
    except (AttributeError, OSError):
        return None
    for name in _names():
        try:
            return Library(inside[name.format("get")], inside[name.format("set")])
        except AttributeError:
            continue
    return None


def _names() -> Sequence[str]:
    """What the functions are called, in wheels and in what distributions build."""
    ends = ("64_", "")
    return [f"{start}openblas_{{}}_num_threads{end}" for start in ("scipy_", "") for end in ends]


def _address(function: Any) -> int | None:
    return ctypes.cast(function, ctypes.c_void_p).value
