"""The direct call under a debug allocator, without memory, in children and in many threads."""

import concurrent.futures
import multiprocessing
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import lineara

pytest.importorskip("llvmlite")

HERE = Path(__file__).parent


def output(script, *args, **variables):
    command = [sys.executable, *script, *map(str, args)]
    ran = subprocess.run(command, capture_output=True, text=True, env=os.environ | variables)
    assert ran.returncode == 0, ran.stdout + ran.stderr[-4000:]
    return ran.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="it measures memory by a module of Unix")
def test_bad_calls_under_a_debug_allocator_crash_nothing_and_keep_nothing(request):
    """10⁷ calls are those of `make fuzz`; what draws its arguments is a twentieth at most."""
    calls = 10**6 if request.config.option.all else 20_000
    debug = {"PYTHONMALLOC": "debug", "PYTHONFAULTHANDLER": "1"}
    said = output([HERE / "fuzz_direct.py"], calls, "--seed", 3, **debug)
    assert "'right'" in said
    assert "after" in said


LITTLE_MEMORY = """
import resource

import numpy as np

import lineara


def slow(x):
    while x < 2.0:
        x = x + 1e-12 * np.sin(x)
    return x


def passed_on(x):
    y = x * 2.0
    for i in range(3):
        y = np.sin(y) + x[::-1] * i
    return y


f = lineara.jit(lineara.grad(slow), engine="native")
f(3.0)
g = lineara.jit(lineara.grad(lambda x: passed_on(x).sum()), engine="native")
x = np.ones(1_000_000)
for _ in range(3):
    assert g(x).shape == x.shape
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 2**25, resource.RLIM_INFINITY))
for run, at in ((f, 1.0), (g, x), (f, 1.0)):
    try:
        kept = [run(at) for _ in range(60)]
        print("there is memory")
    except MemoryError:
        kept = None
        print("MemoryError")
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(f(3.0) > 0.0, g(x).shape)
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="it reads how large it is")
def test_without_memory_a_run_is_a_memory_error_and_the_next_one_runs(tmp_path):
    (tmp_path / "little.py").write_text(LITTLE_MEMORY)
    said = output([tmp_path / "little.py"]).splitlines()
    assert said == ["MemoryError"] * 3 + ["True (1000000,)"]


def filled(x):
    y = np.zeros(x.shape[0])
    y[0] = x[0]
    for i in range(1, x.shape[0]):
        y[i] = 0.9 * y[i - 1] + x[i] * y[i - 1]
    return y.sum()


GRADIENT = lineara.jit(lineara.grad(filled), engine="native")
X = np.linspace(-0.5, 0.5, 400)


def in_a_child(scale):
    return [GRADIENT(X / scale) for _ in range(5)]


SPAWN = pytest.param("spawn", marks=pytest.mark.slow("children import everything anew"))


@pytest.mark.parametrize("way", ["fork", SPAWN])
def test_a_child_runs_code_of_its_own_or_of_its_parent(way):
    if way not in multiprocessing.get_all_start_methods():
        pytest.skip("this system has no such way")
    expected = [in_a_child(k)[0] for k in (1, 2, 3)]
    with multiprocessing.get_context(way).Pool(2) as pool:
        results = pool.map(in_a_child, (1, 2, 3))
    for each, gradient in zip(results, expected, strict=True):
        assert all([np.array_equal(v, gradient) for v in each])
    assert np.array_equal(in_a_child(2)[-1], expected[1])


def test_threads_compile_and_run_one_function_at_once():
    """Sizes are programs of their own, and one is compiled while others run."""
    f = lineara.jit(lineara.grad(filled), engine="native")
    sizes = [20, 21, 22, 23]
    expected = {n: lineara.grad(filled)(X[:n]) for n in sizes}
    start = threading.Barrier(6)

    def work(seed):
        start.wait()
        order = np.random.default_rng(seed).permutation(sizes * 20)
        return [(n, f(X[:n])) for n in order.tolist()]

    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        for results in pool.map(work, range(6)):
            for n, gradient in results:
                np.testing.assert_allclose(gradient, expected[n], rtol=1e-12, atol=1e-14)
