"""What machine code allocates: what is told beforehand, and in the rounds of a loop nothing.

The functions of the C library that code is linked with are counted, and Python's own memory is
measured beside them.
"""

import ctypes
import re
import tracemalloc

import numpy as np
import pytest
from test_direct import filled, prepared

import lineara
from lineara.engines.native.machine_code import compiler
from lineara.engines.native.stacks import FEW

pytest.importorskip("llvmlite")

ADDRESS, SIZE = ctypes.c_void_p, ctypes.c_size_t


class Allocated:
    """The memory that code has taken from C: how often, and how much there is at once."""

    def __init__(self) -> None:
        self.sizes: dict[int, int] = {}  # of what is not given back
        self.malloc, self.realloc = 0, 0  # calls
        self.peak = 0
        c = ctypes.CDLL(None)
        kinds = {
            "malloc": ctypes.CFUNCTYPE(ADDRESS, SIZE),
            "realloc": ctypes.CFUNCTYPE(ADDRESS, ADDRESS, SIZE),
            "free": ctypes.CFUNCTYPE(None, ADDRESS),
        }
        self.c = {name: kind((name, c)) for name, kind in kinds.items()}
        self.counting = {
            "py.malloc": kinds["malloc"](self.new),
            "c.malloc": kinds["malloc"](self.new),
            "c.realloc": kinds["realloc"](self.renewed),
            "py.free": kinds["free"](self.given_back),
            "c.free": kinds["free"](self.given_back),
        }

    def new(self, size):
        self.malloc += 1
        return self.noted(self.c["malloc"](size), size)

    def renewed(self, old, size):
        self.realloc += 1
        self.sizes.pop(old, None)
        return self.noted(self.c["realloc"](old, size), size)

    def given_back(self, address):
        self.sizes.pop(address, None)
        self.c["free"](address)

    def noted(self, address, size):
        self.sizes[address] = size
        self.peak = max(self.peak, sum(self.sizes.values()))
        return address


@pytest.fixture
def allocated(monkeypatch):
    """What is compiled from now on counts what it allocates."""
    allocated, linked = Allocated(), type(compiler()).linked

    def counted(self, code, symbols, names):
        other = {n: ctypes.cast(f, ADDRESS).value for n, f in allocated.counting.items()}
        symbols = {name: other.get(name, address) for name, address in symbols.items()}
        return linked(self, code, symbols, names)

    monkeypatch.setattr(type(compiler()), "linked", counted)
    return allocated


def runge_kutta(x):
    s, v = x[0], x[1]
    for i in range(x.shape[0]):
        a = v + 0.01 * np.sin(s)
        s, v = s + 0.01 * a, v - 0.01 * s * x[i]
    return s * v


def filtered(x):
    """Small matrices in each round, which are made and dropped."""
    p, m = np.eye(3), np.zeros(3)
    f = np.array([[1.0, 0.1, 0.0], [0.0, 1.0, 0.1], [0.0, 0.0, 1.0]])
    for i in range(x.shape[0]):
        p = f @ p @ f.T + np.eye(3)
        gain = p[:, 0] / (p[0, 0] + 1.0)
        m = f @ m + gain * (x[i] - m[0])
        p = p - np.outer(gain, p[0])
    return m @ m


def nested(x):
    total = 0.0
    for i in range(x.shape[0] // 10):
        for k in range(10):
            total = total + np.sin(total) * x[10 * i + k]
    return total


def branched(x):
    total = 0.0
    for i in range(x.shape[0]):
        total = total * x[i] if x[i] > 0.5 else total + x[i] * x[i]
    return total


def rows(x):
    """Arrays of each round, which a matrix keeps."""
    y, z = np.zeros((x.shape[0], 20)), np.ones(20)
    for i in range(x.shape[0]):
        z = np.exp(-x[i] * np.arange(20.0)) * z + 1.0
        y[i] = z
    return np.sum(y * y)


LOOPS = [filled, runge_kutta, filtered, nested, branched, rows]


def workspace(jitted, *args):
    """The bytes of the workspace that `explain` tells."""
    operations, *_ = lineara.explain(jitted, *args).machine_code
    told = re.fullmatch(r"[\d,]+ operations, ([\d,]+) bytes of workspace", operations)
    assert told is not None
    return int(told[1].replace(",", ""))


@pytest.mark.parametrize("f", LOOPS, ids=lambda f: f.__name__)
def test_a_gradient_allocates_what_stages_tell_and_nothing_in_its_rounds(f, allocated):
    """A workspace at the first call, which the next ones have, and the result of each.

    There is at most a tenth more of all else, and no round of the 2,000 asks for memory.
    """
    x = np.linspace(0.1, 0.9, 2_000)
    jitted, call = prepared(lineara.value_and_grad(f), x)
    told = workspace(jitted, x) + x.nbytes
    assert lineara.stages(f, x).machine_code.workspace + x.nbytes == told
    tracemalloc.start()
    try:
        call(x)
        _, of_python = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert told <= allocated.peak + of_python <= 1.1 * told
    for _ in range(3):
        call(x)
    assert (allocated.malloc, allocated.realloc) == (1, 0)


@pytest.mark.parametrize("largest", [0.09, 9.0], ids=["", "after a run in doubt"])
def test_a_function_keeps_one_workspace(largest, allocated):
    """That of direct calls: the long way, and code that is not run again, keep none."""
    x = np.linspace(-0.9, largest, 2_000)  # the array overflows where its factors pass 1
    jitted, call = prepared(lineara.grad(filled), x)
    call(x)
    staged = jitted.program(x)
    (kernel,) = staged.program.noted["native"].values()
    assert kernel.free == []
    staged.value((x,))  # the long way once more
    assert kernel.free == []
    assert list(allocated.sizes.values()) == [workspace(jitted, x) + 64]


def until(x, n):
    i = 0.0
    while i < n:
        x = np.sin(x) * x + 0.1
        i = i + 1.0
    return x


def test_a_while_loop_allocates_where_its_tape_doubles(allocated):
    """All memory of a tape is given back at the end of the run."""
    jitted, call = prepared(lineara.grad(until), 0.5, 1.0)
    staged = jitted.program(0.5, 1.0)
    (kernel,) = staged.program.noted["native"].values()
    columns = kernel.code.taped
    assert columns
    assert {(n, t.shape, t.dtype.itemsize) for n, t, _ in columns} == {(None, (), 8)}
    for rounds in (0, 1, FEW, FEW + 1, 2 * FEW, 2 * FEW + 1, 50 * FEW):
        before, allocated.peak = allocated.realloc, 0
        call(0.5, float(rounds))
        doubled = (rounds - 1).bit_length() - FEW.bit_length() + 1 if rounds > FEW else 0
        times = doubled + 1 if rounds else 0
        assert allocated.realloc - before == times * len(columns)
        assert allocated.peak == (8 * FEW * 2**doubled * len(columns) if rounds else 0)
        assert not allocated.sizes


def triangle(x):
    total = 0.5
    for i in range(x.shape[0]):
        for k in range(i + 1):
            total = np.sin(total) * x[k]
    return total


@pytest.mark.parametrize(("n", "bound"), [(100, 1), (1_000, 20)])
def test_the_tape_of_a_loop_that_is_counted_when_it_begins_has_room_at_once(n, bound, allocated):
    """For all the rounds that it may have, if that is little, or else it doubles in between."""
    x = np.linspace(0.1, 0.9, n)
    jitted, call = prepared(lineara.grad(triangle), x)
    (kernel,) = jitted.program(x).program.noted["native"].values()
    columns = [t.dtype.itemsize for rounds, t, _ in kernel.code.taped if rounds is None]
    call(x)
    before = allocated.realloc
    call(x)
    assert len(columns) <= allocated.realloc - before <= bound * len(columns)
    assert allocated.peak < 2.1 * n * n * sum(columns)


def as_often_as_told(x, n):
    for i in range(n):
        x = np.sin(x) * x + 0.1 * i
    return x


def up_to(x, n):
    i = 0
    while n > i:
        x = np.sin(x) * x + 0.1 * i
        i += 1
    return x * i


def from_another(x, n):
    y = x
    for i in range(5, n + 5):
        y = np.cos(y) * x - 0.1 * i
    return y


@pytest.mark.parametrize("f", [as_often_as_told, up_to, from_another])
def test_the_tape_of_a_loop_up_to_an_argument_has_the_room_of_its_rounds(f, allocated):
    gradient = lineara.value_and_grad(f)
    jitted, call = prepared(gradient, 0.5, 3)
    (kernel,) = jitted.program(0.5, 3).program.noted["native"].values()
    columns = [t.dtype.itemsize for _, t, _ in kernel.code.taped]
    assert columns
    for n in (-7, 0, 1, 1_000, 100_000):
        before, allocated.peak = allocated.realloc, 0
        np.testing.assert_allclose(call(0.5, n), gradient(0.5, n), rtol=1e-9)
        assert allocated.realloc - before == (len(columns) if n > 0 else 0)
        assert allocated.peak == max(n, 0) * sum(columns)
        assert not allocated.sizes
    with pytest.raises(MemoryError):
        call(0.5, 10**15)
    assert not allocated.sizes
