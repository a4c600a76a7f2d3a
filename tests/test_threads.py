"""Threads, nesting and failures: traces do not disturb each other, and leave nothing behind."""

import contextlib
import gc
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import lineara
from lineara.errors import LeakedVariableError, LinearaError
from lineara.python.user_code import Way, _overlay
from lineara.tape.levels import collector, threads

X = np.array([0.5, -1.0, 2.0])


@pytest.fixture(autouse=True)
def clean() -> Any:
    """Every test leaves the engine as it found it."""
    assert_clean()
    yield
    assert_clean()


def assert_clean() -> None:
    """No level is open, and the collector is on."""
    assert threads.open == []
    assert threads.depth == 0
    assert collector.tracing == []
    assert gc.isenabled()
    for (_, depth), waiting in threads.waiting.items():
        for level in waiting:
            assert level.depth == depth
            assert not level.open
            assert level.tape == []
            assert level.locks.arrays == []


def model(x: Any) -> Any:
    """Writes, reads, branches and an inner gradient."""
    y = np.zeros(3)
    for i in range(3):
        y[i] = x[i] ** 2 if x[i] > 0 else np.sin(x[i])
    y[1:] += y[:-1]
    inner = lineara.grad(lambda z: (z * y).sum() * z[0])(x)
    return (inner * y).sum()


def differences(f: Any, x: np.ndarray) -> np.ndarray:
    """Central differences."""
    h = 1e-6
    return np.array([(f(x + e) - f(x - e)) / (2 * h) for e in h * np.eye(x.size)])


# --- threads -------------------------------------------------------------------------------------


def test_threads_differentiate_at_once() -> None:
    expected = lineara.grad(model)(X)
    assert np.allclose(expected, differences(model, X), atol=1e-6)
    start = threading.Barrier(4)

    def work(k: int) -> bool:
        start.wait()
        same = True
        for _ in range(30):
            same &= np.array_equal(lineara.grad(model)(X), expected)
            same &= lineara.hessian(lambda x: x[0] ** 3 * k)(X)[0, 0] == 3 * k
        return same

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(4)))


def test_threads_that_begin_at_once_see_one_overlay() -> None:
    new, barrier = Way(lambda f: f.__code__, None, (), lambda f: f), threading.Barrier(4)

    def ask(_: int) -> Any:
        barrier.wait()
        return _overlay(new)

    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(ask, range(4)))) == 1


def test_traces_that_are_interleaved_in_two_threads() -> None:
    turns = [threading.Event(), threading.Event()]

    def f(me: int, x: Any) -> Any:
        total = x[0] * (me + 1)
        for k in range(5):
            turns[me].wait(10)
            turns[me].clear()
            total = total * x[k % 3] + lineara.grad(lambda s: s * s * x[1])(2.0)
            turns[1 - me].set()
        return total

    turns[0].set()
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda me: lineara.grad(lambda x: f(me, x))(X), range(2)))

    def plain(me: int, x: Any) -> Any:
        total = x[0] * (me + 1)
        for k in range(5):
            total = total * x[k % 3] + 4.0 * x[1]
        return total

    for me in range(2):
        assert np.allclose(found[me], differences(lambda x, me=me: plain(me, x), X), atol=1e-5)


def test_collection_rests_while_any_thread_traces() -> None:
    inside, go = threading.Event(), threading.Event()

    def f(x: Any) -> Any:
        inside.set()
        go.wait(10)
        return x.sum()

    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(lineara.grad(f), X)
        inside.wait(10)
        lineara.grad(lambda x: x.sum())(X)
        assert not gc.isenabled()
        go.set()
        future.result()
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        lineara.grad(model)(X)
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_a_value_of_another_thread_is_right_or_an_error() -> None:
    def f(x: Any) -> Any:
        with ThreadPoolExecutor(2) as pool:
            parts = list(pool.map(lambda i: np.sin(x[i]) * x[i], range(3)))
        return sum(parts)

    try:
        g = lineara.grad(f)(X)
    except LinearaError:
        return
    assert np.allclose(g, np.sin(X) + X * np.cos(X))


def test_a_value_handed_to_a_trace_of_another_thread_is_an_error() -> None:
    def f(x: Any) -> Any:
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(lineara.grad(lambda z: z * x[0] * z), 3.0).result()

    with pytest.raises(LeakedVariableError, match="another thread"):
        lineara.grad(f)(X)


# --- failures ------------------------------------------------------------------------------------


class Interruption(BaseException):
    """As KeyboardInterrupt."""


@pytest.mark.parametrize(
    "error", [ValueError, KeyboardInterrupt, Interruption, SystemExit, RecursionError]
)
@pytest.mark.parametrize("act", ["grad", "jvp", "hessian", "linearize", "jacobian"])
def test_an_exception_inside_leaves_the_engine_clean(error: Any, act: str) -> None:
    large = np.ones(20_000)

    def f(x: Any) -> Any:
        y = np.zeros(3)
        y[0] = x[0]
        z = (y.sum() * large).sum()
        if x[0] > 0:
            raise error("inside")
        return z

    calls = {
        "grad": lambda: lineara.grad(f)(X),
        "jvp": lambda: lineara.jvp(f, (X,), (X,)),
        "hessian": lambda: lineara.hessian(f)(X),
        "linearize": lambda: lineara.linearize(f, X),
        "jacobian": lambda: lineara.jacobian(f)(X),
    }
    with pytest.raises(error, match="inside"):
        calls[act]()
    assert_clean()
    large[0] = 2.0
    assert np.array_equal(lineara.grad(model)(X), lineara.grad(model)(X))


def test_an_exception_that_the_function_catches() -> None:
    def f(x: Any) -> Any:
        with contextlib.suppress(IndexError):
            lineara.grad(lambda z: [z][3])(x[0])
        with contextlib.suppress(LinearaError):
            lineara.grad(lambda z: z * x)(x[1])
        try:
            x[7]
        except IndexError:
            return x[0] ** 2 + lineara.grad(lambda z: z * z * x[2])(x[1])

    assert np.allclose(lineara.grad(f)(X), [2 * 0.5, 2 * 2.0, 2 * -1.0])


def test_an_error_in_the_reverse_sweep_leaves_the_engine_clean() -> None:
    def f(x: Any) -> Any:
        return np.sum(x * x)

    g = lineara.grad(f, combine=lambda leaf, g: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        g(X)
    assert_clean()
    assert np.array_equal(lineara.grad(f)(X), 2 * X)


# --- re-entrancy and generators ------------------------------------------------------------------


def test_a_gradient_that_calls_itself() -> None:
    def f(x: Any, depth: int) -> Any:
        if depth == 0:
            return x**3
        return x * lineara.grad(lambda z: f(z, depth - 1))(x)

    # x (x^3)' = 3 x^3, so each depth multiplies by 3
    assert abs(lineara.grad(lambda x: f(x, 4))(2.0) - 81 * 3 * 4.0) < 1e-9


def test_perturbations_are_not_confused() -> None:
    def f(x: Any) -> Any:
        return x * lineara.grad(lambda y: x + y)(1.0)

    assert lineara.grad(f)(1.0) == 1.0
    y, d = lineara.jvp(
        lambda x: x * lineara.jvp(lambda y: x * y, (2.0,), (1.0,))[1], (3.0,), (1.0,)
    )
    assert (y, d) == (9.0, 6.0)


def test_generators_that_are_suspended_inside_a_trace() -> None:
    def steps(x: Any) -> Any:
        total = x[0]
        while True:
            total = total * x[1] + lineara.grad(lambda z: z * z * x[2])(total)
            yield total

    kept: list[Any] = []

    def f(x: Any) -> Any:
        run = steps(x)
        kept.append(run)
        return next(run) + next(run)

    def plain(x: Any) -> Any:
        a = x[0] * x[1] + 2 * x[0] * x[2]
        return a + a * x[1] + 2 * a * x[2]

    assert np.allclose(lineara.grad(f)(X), differences(plain, X), atol=1e-6)
    with pytest.raises(LinearaError, match="a traced value was used after the"):
        next(kept[0])
    assert_clean()


def test_a_generator_that_differentiates_between_steps() -> None:
    def gradients(x: Any) -> Any:
        for k in range(3):
            yield lineara.grad(lambda z, k=k: (z**k).sum())(x)

    run = gradients(X)
    first = next(run)

    def f(x: Any) -> Any:
        return (x * next(run)).sum()

    assert np.array_equal(lineara.grad(f)(X), np.ones(3))
    assert np.array_equal(first, np.zeros(3))
    assert np.array_equal(next(run), 2 * X)


def test_callbacks_of_a_library() -> None:
    optimize = pytest.importorskip("scipy.optimize")

    def f(x: Any) -> Any:
        return (x[0] - 1) ** 2 + (x[1] - x[0] ** 2) ** 2 * 10

    found = optimize.minimize(lineara.value_and_grad(f), [0.0, 2.0], jac=True, method="BFGS")
    assert np.allclose(found.x, [1.0, 1.0], atol=1e-4)


def test_linear_maps_are_applied_in_other_threads() -> None:
    _, L = lineara.linearize(lambda x: np.sin(x) * x[::-1], X)
    J = L.to_dense()

    def work(k: int) -> bool:
        v = np.cos(np.arange(3) + k)
        same = [np.allclose(L @ v, J @ v) and np.allclose(L.T @ v, J.T @ v) for _ in range(30)]
        return all(same)

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(4)))


def test_two_traces_that_end_in_another_order() -> None:
    def outer(x: Any) -> Any:
        L = lineara.linearize(lambda z: z * z * x[0], x)[1]
        return (L @ np.ones(3)).sum() + (L.T @ np.ones(3))[1]

    def plain(x: Any) -> Any:
        return (2 * x * x[0]).sum() + 2 * x[1] * x[0]

    assert np.allclose(lineara.grad(outer)(X), differences(plain, X), atol=1e-6)
