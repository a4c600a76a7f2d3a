"""Loops of vectors that take the place of NumPy's have their bits, with any strides and sizes."""

import ctypes
import math
import platform

import numpy as np
import pytest

import lineara

pytest.importorskip("llvmlite")

from lineara.engines.native import vector_loops
from lineara.engines.native.machine_code import Compiler
from lineara.engines.native.symbols import c_function, numpy_loop

COMPILER = Compiler()
GLIBC = pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc" or not COMPILER.llvm.get_host_cpu_features().get("fma"),
    reason="exp is that of another C library, or of a processor that multiplies and adds in two",
)


@pytest.fixture(scope="module")
def loop():
    """The code, which is there as long as this is held."""
    return COMPILER.loaded(vector_loops.text(), 1, {"c.exp": c_function("exp")})


def of_c(xs):
    """exp as Python has it, which asks the C library."""

    def exp(x):
        try:
            return math.exp(x)
        except OverflowError:
            return math.inf

    return np.array([exp(x) for x in xs.tolist()])


@GLIBC
def test_a_loop_of_vectors_has_the_bits_of_the_c_library(loop):
    rng = np.random.default_rng(3)
    for x in (vector_loops.points(), rng.normal(size=20_000), rng.uniform(-760, 760, 20_000)):
        assert vector_loops.called(loop["exp"], x).tobytes() == of_c(x).tobytes()


@GLIBC
@pytest.mark.parametrize("n", [0, 1, 3, 255, 256, 257, 1000])
@pytest.mark.parametrize("steps", [(1, 1), (2, 1), (1, 3), (-1, 1), (0, 1)], ids=str)
def test_strides_are_any_and_nothing_else_is_written(n, steps, loop):
    rng = np.random.default_rng(n)
    x, y = rng.normal(size=3000) * 300.0, np.full(3100, 7.0)
    first = 3000 - 1 if steps[0] < 0 else 0
    places = np.array([x.ctypes.data + 8 * first, y.ctypes.data + 8 * 50])
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)(loop["exp"])
    sizes, strides = np.array([n]), 8 * np.array(steps)
    call(places.ctypes.data, sizes.ctypes.data, strides.ctypes.data, None)
    expected = np.full(3100, 7.0)
    at = 50 + steps[1] * np.arange(n)
    expected[at] = of_c(x[first + steps[0] * np.arange(n)])
    assert y.tobytes() == expected.tobytes()


@GLIBC
def test_a_loop_may_write_over_what_it_reads(loop):
    x = np.random.default_rng(0).normal(size=1000)
    expected = of_c(x)
    place, size, strides = np.array([x.ctypes.data] * 2), np.array([1000]), np.array([8, 8])
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)(loop["exp"])
    call(place.ctypes.data, size.ctypes.data, strides.ctypes.data, None)
    assert x.tobytes() == expected.tobytes()


def test_what_has_other_bits_goes_on_as_it_is():
    """A loop that is not the C library's exp is asked itself, whatever it is called."""
    others = [numpy_loop(f, ("f64",), "f64") for f in (np.expm1, np.exp2, np.log)]
    for other in others:
        assert other is not None
        assert vector_loops.quicker(vector_loops.EXP, other.address, COMPILER) == other.address
        assert vector_loops.quicker("numpy.log.f64.f64", other.address, COMPILER) == other.address


def test_exp_of_code_has_numpys_bits():
    x = np.concatenate([vector_loops.points(), np.linspace(-5.0, 5.0, 2001)])
    with np.errstate(all="ignore"):
        for f in (lambda x: np.exp(x), lambda x: np.exp(x[::-2].copy()) * 0.5):
            ours, numpys = lineara.jit(f, engine="native")(x), f(x)
            assert ours.tobytes() == numpys.tobytes()
