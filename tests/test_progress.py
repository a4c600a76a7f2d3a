"""What is shown of a long differentiation, and what an interruption leaves."""

import io
import signal
import time

import numpy as np
import pytest
from call_counts import calls

import lineara
from lineara import grad
from lineara.tape import progress as watched
from lineara.tape.levels import collector, threads


def wait_for(text, out):
    """Give the thread that looks its time; a test that hangs fails."""
    end = time.monotonic() + 3
    while text not in out.getvalue():
        assert time.monotonic() < end, out.getvalue()
        time.sleep(0.001)


def waiting(forward, backward):
    """The identity, which calls these as it runs and as its cotangent comes back."""
    armed = []  # once the rule was tested

    @lineara.custom_vjp
    def rule(x):
        return x

    def back(_, w):
        if armed:
            backward()
        return (w,)

    rule.defvjp(lambda x: (x, None), back)
    grad(lambda x: np.sum(rule(x)))(0.5)
    grad(lambda x: np.sum(rule(x)))(np.ones(2))
    armed.append(True)

    def same(x):
        forward()
        return rule(x)

    return same


def chain(same, x, n=50):
    for _ in range(n):
        x = np.sin(x)
    x = same(x)
    for _ in range(n):
        x = x * 1.5
    return x


def test_both_directions_are_shown():
    out = io.StringIO()
    same = waiting(lambda: wait_for("forward: ", out), lambda: wait_for("backward: ", out))
    with lineara.progress(after=0.0, every=0.001, file=out):
        g = grad(lambda x: chain(same, x))(0.5)
    assert g == grad(lambda x: chain(lambda y: y, x))(0.5)
    text = out.getvalue()
    assert "lineara: forward: 50 operations, tape " in text
    assert "test_progress.py:" in text
    assert " % of 101 operations" in text


def test_it_costs_the_differentiation_no_call():
    f = grad(lambda x: chain(lambda y: y, x))
    without = calls(lambda: f(0.5))

    with lineara.progress(every=60.0):
        within = calls(lambda: f(0.5))
    assert within == without


@pytest.mark.parametrize("n", [100, 200])
def test_the_bytes_of_a_tape_grow_with_its_arrays(n):
    kept = []

    def f(x):
        for _ in range(n):
            x = np.sin(x)
        kept.append(watched.tape_bytes(threads.open[-1].tape))
        return np.sum(x)

    grad(f)(np.zeros(1000))
    assert 8000 * n <= kept[0] <= 3 * 8000 * n


def test_a_tape_that_takes_most_of_the_memory_warns_with_a_policy(monkeypatch):
    monkeypatch.setattr(watched, "free_memory", lambda: 1000)
    out = io.StringIO()
    same = waiting(lambda: wait_for("forward: ", out), lambda: None)
    with (
        pytest.warns(RuntimeWarning, match="the tape takes .* operations, and 1 kB of memory are")
        as told,
        lineara.progress(after=0.0, every=0.001, file=out),
    ):  # fmt: skip
        grad(lambda x: np.sum(chain(same, x)))(np.zeros(1000))
    assert len(told) == 1
    assert "grad(f, policy=lineara.policies.budget(" in str(told[0].message)
    assert told[0].filename == __file__


@pytest.fixture
def pythons_handler():
    """Python's own handler: a shell lets what runs in its background ignore interruptions."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupt():
    signal.raise_signal(signal.SIGINT)


def test_an_interruption_of_the_function_says_where(pythons_handler):
    same = waiting(interrupt, lambda: None)
    with pytest.raises(KeyboardInterrupt) as e:
        grad(lambda x: chain(same, x))(0.5)
    (note,) = e.value.__notes__
    assert note.startswith("lineara was interrupted while the function ran, and the tape had 50 op")
    assert f"at {__file__}:" in note
    assert_clean()


def test_an_interruption_of_the_sweep_says_where(pythons_handler):
    same = waiting(lambda: None, interrupt)
    with pytest.raises(KeyboardInterrupt) as e:
        grad(lambda x: chain(same, x))(0.5)
    (note,) = e.value.__notes__
    assert "the sweep backward had 50 of 101 operations left" in note
    assert_clean()


def assert_clean():
    assert threads.open == []
    assert collector.tracing == []
    assert grad(lambda x: x**3)(2.0) == 12.0


def test_a_terminal_is_watched_and_its_line_taken_away(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    out = Terminal()
    monkeypatch.setattr(watched.sys, "stderr", out)
    monkeypatch.setattr(watched, "AFTER", 0.0)
    begin = watched.on_terminal(collector.tracing)
    monkeypatch.setattr(collector, "watch", begin)
    same = waiting(lambda: wait_for("forward: ", out), lambda: None)
    grad(lambda x: chain(same, x))(0.5)
    begin.stop()
    assert not begin.watch.is_alive()
    assert out.getvalue().endswith("\r")


def test_sizes_are_told_as_people_read_them():
    assert [watched.size(n) for n in (12, 5e3, 644e6, 2.5e9)] == [
        "12 B",
        "5 kB",
        "644 MB",
        "2.5 GB",
    ]
