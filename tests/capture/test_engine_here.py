"""`with lineara.engine(...)`: what runs the functions of `jit` that name no engine."""

import threading

import numpy as np
import pytest

import lineara
from lineara.engines import Engine, engine_of
from lineara.errors import ProgramError


class Counting(Engine):
    name = "counting"

    def __init__(self):
        self.runs = 0

    def evaluate(self, program, name, values, ask):
        self.runs += 1
        return engine_of("interpreter").evaluate(program, name, values, ask)


def slow(x):
    for _ in range(1000):
        x = np.sin(x) + x * 0.5
    return x


@pytest.fixture
def counting():
    return Counting()


@pytest.mark.parametrize("way", ["value", "jit of gradient", "gradient of jit"])
def test_it_runs_functions_that_name_no_engine_and_only_within_the_block(way, counting):
    f = {
        "value": lineara.jit(slow),
        "jit of gradient": lineara.jit(lineara.grad(slow)),
        "gradient of jit": lineara.grad(lineara.jit(slow)),
    }[way]
    before = [f(0.3) for _ in range(3)]  # machine code from the first on
    with lineara.engine(counting) as given:
        assert given is counting
        within = f(0.3)
        assert counting.runs >= 1
    runs = counting.runs
    assert within == pytest.approx(before[0], rel=1e-12)
    assert [f(0.3) for _ in range(3)] == before
    assert counting.runs == runs


def test_machine_code_asks_whether_an_engine_is_named(counting):
    f = lineara.jit(slow)
    f(0.3), f(0.3)
    assert f.recent, "machine code calls it"
    for _ in range(3):
        with lineara.engine(counting):
            f(0.3)
        f(0.3)
    assert counting.runs == 3
    assert f.captures == 1


def test_an_engine_that_is_named_stays(counting):
    f = lineara.jit(slow, engine="interpreter")
    with lineara.engine(counting):
        f(0.3)
    assert counting.runs == 0


def test_the_innermost_block_counts_and_an_exception_ends_it(counting):
    f, inner = lineara.jit(slow), Counting()

    def fails():
        with lineara.engine(counting):
            with lineara.engine(inner):
                f(0.3)
            f(0.3)
            f(None)

    with pytest.raises(TypeError):
        fails()
    f(0.3)
    assert (counting.runs, inner.runs) == (1, 1)


def test_other_threads_are_not_within_it(counting):
    f = lineara.jit(slow)
    with lineara.engine(counting):
        other = threading.Thread(target=f, args=(0.3,))
        other.start()
        other.join()
    assert counting.runs == 0


def test_there_is_no_engine_of_another_name():
    with pytest.raises(ProgramError, match=r"^there is no engine gpu; there is native, "):
        lineara.engine("gpu").__enter__()
