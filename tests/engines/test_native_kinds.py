"""Numbers of other kinds than float64 are machine code too: nothing is called back.

Exact, they have the interpreter's bits; by default sums are within the bound of `rounding.py`.
"""

import math
from typing import Any

import numpy as np
import pytest
import scipy.special as sp
from rounding import excess
from test_native import bits

import lineara
from lineara.engines import run
from lineara.engines.native import Native

pytest.importorskip("llvmlite")

EXACT, NATIVE = Native(exact=True, masks=True), Native(masks=True)
SPECIAL = [0.0, -0.0, 0.5, -1.5, 2.5, 1e-42, 1e38, -3e38, math.inf, -math.inf, math.nan]
RNG = np.random.default_rng(42)
SINGLES = np.array([*SPECIAL, *RNG.normal(scale=3.0, size=52)], np.float32)
FEW = RNG.normal(size=7).astype(np.float32)
MATRIX = RNG.normal(size=(5, 6)).astype(np.float32)
ANY = RNG.normal(size=100_000)
WHOLE = np.array([0, 1, -7, 16_777_217, -(2**62) - 1, 2**63 - 1, 5])


def of(f, *args):
    """The program of f, its name, and the values."""
    jitted: Any = lineara.jit(f)
    staged = jitted.program(*args)
    return staged.program, staged.name, staged.operands(args)


def agree(f, *args, asks=0, exact_asks=None):
    """Both codes have the interpreter's values, and ask Python no more often than so."""
    program, name, values = of(f, *args)
    with np.errstate(all="ignore"):
        expected = run(program, name, *values, engine="interpreter").results
        for engine, most in ((EXACT, exact_asks), (NATIVE, asks)):
            why = engine.takes(program, name)
            if why is not None:
                assert engine is EXACT, why
                continue
            ours = run(program, name, *values, engine=engine).results
            if engine is EXACT:
                assert bits(ours) == bits(expected)
            else:
                why = excess(program, name, values, expected, ours)
                assert not why, why
            kernel = engine.kernel(program, name)
            asked = [int(n) for n, _ in kernel.asked]
            assert most is None or sum(asked) <= most, [s.what for s in kernel.code.sites]


# --- float32 --------------------------------------------------------------------------------------

OF_ONE = {
    **{name: getattr(np, name) for name in (
        "negative", "abs", "fabs", "sign", "square", "sqrt", "cbrt", "reciprocal", "exp", "exp2",
        "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "arcsin", "arccos",
        "arctan", "sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh", "floor", "ceil",
        "trunc", "rint", "isnan", "isinf", "isfinite", "logical_not", "signbit", "spacing",
        "degrees", "radians", "positive",
    )},
    "erf": sp.erf, "expit": sp.expit, "gammaln": sp.gammaln,
    "x ** 2": lambda x: x**2, "x ** 0": lambda x: x**0, "x ** 1": lambda x: x**1.0,
    "x ** 0.5": lambda x: x**0.5, "x ** -1": lambda x: x**-1.0,
    "weak constants": lambda x: 0.1 * x + 1 - x / 3 + (x > 0) * x,
    "constants of constants": lambda x: x * np.float32(0.1) * (np.float32(0.1) + np.float32(0.7)),
    "clip": lambda x: np.clip(x, -0.0, 2.5),
    "where": lambda x: np.where(x > 0.1, x, 0.1 * x),
    "to float64": lambda x: x.astype(float) * 0.1,
    "to bool": lambda x: x.astype(bool),
    "and back": lambda x: (x.astype(float) * 0.1).astype(np.float32) + (x < 1).astype(np.float32),
}  # fmt: skip
OF_TWO = {
    **{name: getattr(np, name) for name in (
        "add", "subtract", "multiply", "divide", "power", "arctan2", "hypot", "copysign",
        "maximum", "minimum", "fmax", "fmin", "fmod", "remainder", "floor_divide", "logaddexp",
        "nextafter", "equal", "not_equal", "less", "less_equal", "greater", "greater_equal",
        "logical_and", "logical_or", "heaviside",
    )},
    "xlogy": sp.xlogy,
}  # fmt: skip


@pytest.mark.parametrize("name", OF_ONE)
def test_functions_of_a_float32_are_machine_code_with_the_interpreters_bits(name):
    f = OF_ONE[name]
    agree(f, SINGLES, exact_asks=0)
    agree(f, MATRIX, exact_asks=0)
    for x in SINGLES[:13]:
        agree(lambda a, f=f: f(a[0]), np.array([x]), exact_asks=0)


@pytest.mark.parametrize("name", OF_TWO)
def test_functions_of_two_float32s_are_machine_code_with_the_interpreters_bits(name):
    f = OF_TWO[name]
    shifted = np.roll(SINGLES, 5)
    agree(f, SINGLES, shifted, exact_asks=0)
    agree(lambda x, w: f(x, w[:, None]), FEW, FEW, asks=int(name == "floor_divide"))
    agree(lambda x, w: f(x[0], w[0]), FEW, SINGLES[4:])
    if name not in ("nextafter", "heaviside", "logaddexp"):
        agree(lambda x, w: f(x, w), SINGLES[:7], WHOLE)  # NumPy makes float64 of both


GIVEN = np.random.default_rng(3)
CASES = {
    "a sum": (np.sum, SINGLES[4:7]),
    "a long sum": (np.sum, ANY[:1003].astype(np.float32)),
    "a sum of columns": (lambda x: x.sum(axis=0), MATRIX),
    "a sum of rows": (lambda x: x.sum(axis=1), MATRIX),
    "a sum of what lies apart": (lambda x: x[:, ::2].sum(), MATRIX),
    "a sum of products": (lambda x: x @ x, ANY[:999].astype(np.float32)),
    "a mean": (np.mean, ANY[:70].astype(np.float32)),
    "running sums": (np.cumsum, FEW),
    "extrema": (lambda x: (x.max(axis=0), x.min(), np.argmax(x), np.argmin(x, axis=1)), MATRIX),
    "extrema of NaN": (lambda x: (x.max(), x.min(), np.argmax(x)), SINGLES),
    "an order": (lambda x: (np.sort(x), np.argsort(x, kind="stable")), SINGLES),
    "truth": (lambda x: (np.any(x > 2), np.all(x), np.any(x, axis=0)), MATRIX),
    "a product of matrices": (lambda x: x @ x.T, MATRIX),
    "a large product": (lambda x: x @ x.T, ANY[:9000].astype(np.float32).reshape(90, 100)),
    "with float64": (lambda x: (x @ np.ones((6, 3)), x * np.float64(2)), MATRIX),
    "an einsum": (lambda x: np.einsum("ij,kj->ik", x, x), MATRIX),
    "a transpose": (lambda x: (x.T * 2.0, x.T[1]), MATRIX),
    "elements": (lambda x: x[np.array([0, 3, 3])] * x[1] + x[-1], FEW),
    "rows": (lambda x: x[np.array([0, 3, 3])], MATRIX),
    "joined": (lambda x: (np.concatenate([x, x * 2.0]), np.stack([x, x]), x[None] * x), FEW),
    "an outer product": (lambda x: np.outer(x, x), FEW),
    "a difference": (lambda x: np.diff(x) ** 2, FEW),
    "a norm": (lambda x: np.sqrt(np.sum(x * x, axis=1)), MATRIX),
    "softmax": (lambda x: np.exp(x - x.max(1, keepdims=True)).sum(1), MATRIX),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_arrays_of_float32_are_machine_code(name):
    agree(*CASES[name])


def filled(x):
    y = np.zeros(x.shape[0], np.float32)
    y[0] = x[0]
    for i in range(1, x.shape[0]):
        y[i] = 0.9 * y[i - 1] + x[i] * np.sin(y[i - 1])
        if y[i] > 1:
            y[i] = y[i] - 0.1 * i
    return y


def carried(x):
    total = x[0]
    for i in range(x.shape[0]):
        total = total * np.float32(0.7) + np.tanh(x[i]) * total
    return total


def halved(x):
    y, n = x[0] * x[0] + np.float32(9.0), 0
    while y > 0.1:
        y = y * np.float32(0.5) - np.float32(0.001) * y * y
        n = n + 1
    return y * x[1], n


def scattered(x):
    y = np.zeros((4, 3), np.float32)
    for i in range(x.shape[0]):
        y[i % 4] = y[i % 4] + x[i] * np.arange(3, dtype=np.float32)
    return (y * y).sum(axis=0)


LOOPS = {"filled": filled, "carried": carried, "halved": halved, "scattered": scattered}


@pytest.mark.parametrize("name", LOOPS)
def test_loops_of_float32_are_machine_code(name):
    f = LOOPS[name]
    agree(f, FEW)
    x = ANY[:100].astype(np.float32)
    agree(lambda x: lineara.grad(lambda x: np.sum(f(x)[0] if name == "halved" else f(x)))(x), x)


def layers(W, b, V, c, X, Y):
    o = np.tanh(X @ W + b) @ V + c
    o = o - np.max(o, axis=1, keepdims=True)
    p = o - np.log(np.sum(np.exp(o), axis=1, keepdims=True))
    return -np.mean(np.sum(p * Y, axis=1))


def network(dtype):
    """The arguments of `layers`."""
    rng = np.random.default_rng(7)
    shapes = (64, 128), (128,), (128, 10), (10,), (32, 64)
    args = [0.1 * rng.normal(size=shape) for shape in shapes]
    return [a.astype(dtype) for a in (*args, np.eye(10)[rng.integers(0, 10, 32)])]


def test_the_gradient_of_a_network_in_float32_asks_python_nothing():
    f = lineara.grad(layers, argnums=(0, 1, 2, 3))
    agree(f, *network(np.float32))


@pytest.mark.parametrize("n", [8192, 20_001])
def test_regions_of_float32_have_the_bits_that_lines_alone_have(n, monkeypatch):
    def f(x):
        y = np.sin(x) * 2.0 + np.exp(-x * x)
        z = np.where(y > 0.3, y, x) / 3
        return z.sum(), z.max(), (z.reshape(-1, 1) * np.float32(0.1)).sum(axis=0), z

    x = ANY[:n].astype(np.float32)
    program, name, values = of(f, x)
    in_region = run(program, name, *values, engine=NATIVE).results
    for ours, expected in zip(in_region, f(x), strict=True):
        np.testing.assert_allclose(ours, expected, 1e-6)
    assert bits(in_region[3]) == bits(f(x)[3])
    monkeypatch.setattr("lineara.engines.native.regions.LEAST", 10**9)
    program, name, values = of(f, x + np.float32(0))
    monkeypatch.setattr("lineara.engines.native.emitted.key_of", lambda *_: "")
    assert bits(run(program, name, *values, engine=Native(masks=True)).results) == bits(in_region)


def test_a_sum_of_float32s_that_lie_apart_is_rounded_once():
    x = np.ascontiguousarray(np.abs(ANY).astype(np.float32).reshape(-1, 2))
    f = lineara.jit(lambda x: (x[:, 0].sum(), x[:, 0] @ x[:, 1]), engine="native")
    total, product = f(x)
    wide = x.astype(float)
    assert total == np.float32(wide[:, 0].sum())
    assert abs(product - wide[:, 0] @ wide[:, 1]) <= np.spacing(product)


def test_a_float32_goes_in_and_out_of_direct_calls():
    def f(x, a):
        return x * np.float32(0.1), a * x, a[0]

    args = np.float32(0.3), FEW
    jitted: Any = lineara.jit(f, engine="native")
    ours = [jitted(*args) for _ in range(3)][-1]
    direct = jitted.program(*args).direct
    assert direct is not None
    interpreted = lineara.jit(f, engine="interpreter")
    expected = interpreted(*args)
    for given in (ours, direct(*args)):
        assert bits(list(given)) == bits(list(expected))
        assert [type(v) for v in given] == [type(v) for v in expected]
    for x in SINGLES[:11]:
        assert bits(list(jitted(x, FEW))) == bits(list(interpreted(x, FEW)))
    odd = np.frombuffer(bytes(4) + FEW.tobytes(), np.float32)[1:]  # not at a multiple of eight
    assert bits(list(jitted(args[0], odd))) == bits(list(expected))
