"""SciPy's threads and NumPy's do not wait for each other in a derivative."""

import threading

import numpy as np
import pytest

from lineara.ops import blas_threads, lapack
from lineara.ops.blas_threads import Library, OneThread, one_thread, scipys_threads


class Threads:
    """An OpenBLAS that notes what it is told."""

    def __init__(self, count: int) -> None:
        self.count, self.told = count, []

    @property
    def library(self) -> Library:
        return Library(lambda: self.count, self.set)

    def set(self, count: int) -> None:
        self.count = count
        self.told.append(count)


@pytest.mark.parametrize(
    ("ours", "other", "cores", "inside"), [(2, 2, 2, 1), (4, 1, 4, 1), (2, 2, 4, 2), (1, 8, 8, 1)]
)
def test_there_is_one_thread_where_there_are_more_than_cores(ours, other, cores, inside):
    scipys, numpys = Threads(ours), Threads(other)
    alone = OneThread(scipys.library, numpys.library, cores)
    with alone:
        assert scipys.count == inside
        with alone:
            assert scipys.count == inside
        assert scipys.count == inside
    assert scipys.told == ([1, ours] if inside < ours else [])
    with pytest.raises(ZeroDivisionError), alone:
        _ = 1 / 0
    assert (scipys.count, numpys.told) == (ours, [])


def test_the_last_thread_of_pythons_to_leave_gives_back_what_there_was():
    scipys = Threads(2)
    alone = OneThread(scipys.library, Threads(2).library, 2)
    entered, leave = threading.Event(), threading.Event()

    def other():
        with alone:
            entered.set()
            leave.wait(10)

    thread = threading.Thread(target=other)
    with alone:
        thread.start()
        assert entered.wait(10)
    assert scipys.count == 1
    leave.set()
    thread.join(10)
    assert scipys.told == [1, 2]


@pytest.fixture
def scipys(monkeypatch):
    """SciPy's threads, in place of which what they are told is noted."""
    threads = Threads(2)
    alone = OneThread(threads.library, Threads(2).library, 2)
    monkeypatch.setattr(blas_threads, "scipys_threads", lambda: alone)
    lapack.routine.cache_clear()
    yield threads
    lapack.routine.cache_clear()


@pytest.mark.parametrize(("n", "count"), [(4, 2), (200, 1), (1000, 2)])
def test_a_matrix_that_is_neither_small_nor_large_has_one_thread(scipys, n, count):
    a = np.zeros((n, n))
    assert one_thread(lambda alpha, b, lower: scipys.count)(1, a, lower=True) == count


A = np.random.default_rng(0).standard_normal((100, 100)) + 20 * np.eye(100)
F = lapack.lu(A)
ROUTINES = {
    "lu": lambda: lapack.lu(A),
    "lu_solve": lambda: lapack.lu_solve(F, A[:, :2], False),
    "lu_inverse": lambda: lapack.lu_inverse(F),
    "triangular": lambda: lapack.triangular(A, A[:, :2], True, False),
    "eigh": lambda: lapack.eigh(A + A.T, True, "ev"),
    "cholesky_tangent": lambda: lapack.cholesky_tangent(A, A, True),
}


@pytest.mark.parametrize("name", ROUTINES)
def test_every_routine_of_scipys_is_called_so(scipys, name):
    expected = ROUTINES[name]()
    assert scipys.told
    assert scipys.told == [1, 2] * (len(scipys.told) // 2)
    np.testing.assert_array_equal(ROUTINES[name](), expected)


def test_the_threads_of_this_process_are_left_as_they_were():
    alone = scipys_threads()
    if alone is None:
        pytest.skip("NumPy and SciPy share a library, or it does not say how many threads it has")
    before = alone.ours.get(), alone.other.get()
    with alone:
        inside = alone.ours.get()
    assert inside == (1 if sum(before) > alone.cores else before[0])
    assert (alone.ours.get(), alone.other.get()) == before
