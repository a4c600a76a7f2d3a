"""Numbers of other kinds than float64 are machine code too: nothing is called back.

Exact, they have the interpreter's bits; by default sums are within the bound of `rounding.py`.
"""

import cmath
import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import scipy.special as sp
from rounding import excess
from test_native import bits

import lineara
from lineara.engines import run
from lineara.engines.native import Native
from lineara.engines.native.python_complex import WRITTEN, is_pythons_complex
from lineara.linear_a.check import check
from lineara.linear_a.parse import parse

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
    agree_of(program, name, values, asks, exact_asks)


def agree_of(
    program, name, values, asks: int | None = 0, exact_asks: int | None = 0,
    engines=(EXACT, NATIVE),
):  # fmt: skip
    """The same of a program; by the exact engine and another one."""
    with np.errstate(all="ignore"):
        expected = run(program, name, *values, engine="interpreter").results
        for engine, most in zip(engines, (exact_asks, asks), strict=True):
            why = engine.takes(program, name)
            if why is not None:
                assert engine is engines[0], why
                continue
            ours = run(program, name, *values, engine=engine).results
            if engine is engines[0]:
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
    program, name, _ = of(lambda a: f(a[0]), FEW[:1])
    for x in SINGLES[:13]:
        agree_of(program, name, [np.array([x])])


@pytest.mark.parametrize("name", OF_TWO)
def test_functions_of_two_float32s_are_machine_code_with_the_interpreters_bits(name):
    f = OF_TWO[name]
    shifted = np.roll(SINGLES, 5)
    agree(f, SINGLES, shifted, exact_asks=0)
    agree(lambda x, w: f(x, w[:, None]), FEW, FEW, asks=int(name == "floor_divide"))
    agree(lambda x, w: f(x[0], w[0]), FEW, SINGLES[4:])
    if name not in ("nextafter", "heaviside", "logaddexp"):
        agree(lambda x, w: f(x, w), SINGLES[:7], WHOLE)  # NumPy makes float64 of both


def test_a_large_constant_is_rounded_once_to_a_float32():
    n = 2**54 + 2**30 + 1  # as a float64 it is half-way between two float32s
    text = (
        f"def f(x: f32;) -> (f32;) = let k: i64 = {n}_i64 in "
        "let y: f32 = astype[dtype=f32](k) in x + y"
    )
    program = check(parse(text))
    agree_of(program, "f", [np.float32(0)])
    assert run(program, "f", np.float32(0), engine=NATIVE).results[0] == 2**54 + 2**31


def test_a_float32_and_a_whole_number_are_compared_as_float64s():
    x = np.array([2**24, -(2**24), 2.0**40], np.float32)
    n = np.array([2**24 + 1, -(2**24) - 1, 2**40 + 1])
    agree(lambda x, n: (x < n, x == n, x > n, x[0] < n[0], x[0] != n[0]), x, n)
    assert (np.array(x < n) == [True, False, True]).all()


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


@pytest.mark.parametrize("n", [33, 1003, 100_003, 1_000_003])
def test_a_long_sum_of_float32s_is_rounded_once(n):
    """Whatever its length: of the array itself, of products, and of what a region makes."""
    x = np.full(n, 0.1, np.float32)
    y = np.sin(x) * x

    def sums(x):
        return np.sum(x), x @ x, np.mean(x), np.sum(np.sin(x) * x)

    wide = [a.astype(float) for a in (x, y)]
    exact = wide[0].sum(), wide[0] @ wide[0], wide[0].mean(), wide[1].sum()
    for ours, value in zip(lineara.jit(sums, engine="native")(x), exact, strict=True):
        assert ours.dtype == np.float32
        assert abs(ours - value) <= np.spacing(np.float32(value))


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


# --- complex128 -----------------------------------------------------------------------------------

PARTS = [0.0, -0.0, 1.5, -2.25, 1e300, 3e-310, math.inf, -math.inf, math.nan]
ODD = np.array([complex(x, y) for x in PARTS for y in PARTS])
COMPLEX = RNG.normal(size=70) + 1j * RNG.normal(size=70)
WHOLES = np.array([1, -2, 0, 5, 2**53, 7, -9])
TABLE = COMPLEX[:30].reshape(5, 6)
OF_ONE_COMPLEX = {
    **{name: getattr(np, name) for name in (
        "negative", "abs", "sign", "square", "sqrt", "reciprocal", "exp", "exp2", "expm1", "log",
        "log2", "log10", "log1p", "sin", "cos", "tan", "arcsin", "arccos", "arctan", "sinh", "cosh",
        "tanh", "arcsinh", "arccosh", "arctanh", "isnan", "isinf", "isfinite", "logical_not",
        "conj", "real", "imag", "rint", "positive",
    )},
    "x ** 2": lambda z: z**2, "x ** 0.5": lambda z: z**0.5, "x ** -1j": lambda z: z**-1j,
    "weak constants": lambda z: 0.1 * z + 1 - z / 3 + 2j * z + (z.real > 0) * z,
    "where": lambda z: np.where(z.real > 0.1, z, 0.1j),
    "to bool": lambda z: z.astype(bool),
    "parts": lambda z: z.real * z.imag + 1j * z.real,
    "of reals": lambda z: z.real.astype(complex) + np.conj(z.imag) + np.real(z.imag),
}  # fmt: skip
OF_TWO_COMPLEX = {name: getattr(np, name) for name in (
    "add", "subtract", "multiply", "divide", "power", "equal", "not_equal", "less",
    "less_equal", "greater", "greater_equal", "logical_and", "logical_or", "maximum", "minimum",
)}  # fmt: skip


@pytest.mark.parametrize("name", OF_ONE_COMPLEX)
def test_functions_of_a_complex_number_are_machine_code_with_the_interpreters_bits(name):
    f = OF_ONE_COMPLEX[name]
    agree(f, ODD, exact_asks=0)
    agree(lambda t, z, s: (f(t), f(z), f(s)), TABLE, COMPLEX[:1], TABLE[:1, :1])
    program, name, _ = of(lambda a: f(a[0]), ODD[:1])
    for z in (*COMPLEX[:20], *ODD[::7]):
        agree_of(program, name, [np.array([z])], 0 if np.isfinite(z) else None, None)


@pytest.mark.parametrize("name", OF_TWO_COMPLEX)
def test_functions_of_two_complex_numbers_are_machine_code_with_the_interpreters_bits(name):
    f = OF_TWO_COMPLEX[name]
    agree(f, ODD, np.roll(ODD, 23), exact_asks=0)

    def broadcast(z, w, x, n, b):
        others = [(f(z, v), f(v, z)) for v in (x, n, b)]
        return f(z, w[::-1]), f(z, w[:5, None]), f(z, w[0]), others

    agree(broadcast, COMPLEX[:7], COMPLEX[7:14], ANY[:7], WHOLES, WHOLES > 0)
    program, name, _ = of(lambda z, w: f(z[0], w[0]), ODD[:1], ODD[:1])
    for k in range(50):
        agree_of(program, name, [COMPLEX[k : k + 1], COMPLEX[k + 20 : k + 21]])


COMPLEX_CASES = {
    "a sum": (np.sum, COMPLEX),
    "a sum of columns": (lambda z: z.sum(axis=0), TABLE),
    "a sum of rows": (lambda z: z.sum(axis=1), TABLE),
    "a mean": (np.mean, TABLE),
    "a sum of products": (lambda z: z @ z, COMPLEX),
    "an inner product": (lambda z: np.vdot(z, 2j * z), COMPLEX),
    "running sums": (np.cumsum, COMPLEX),
    "truth": (lambda z: (z != 0.5j) & (z == z), TABLE),
    "a product of matrices": (lambda z: z @ z.T, TABLE),
    "a product with reals": (lambda z: z @ z.T.real, TABLE),
    "a large product": (lambda z: z @ z.T, ANY[:4000].reshape(40, 100) * (1 + 0.5j)),
    "an einsum": (lambda z: np.einsum("ij,kj->ik", z, np.conj(z)), TABLE),
    "a transpose": (lambda z: (np.conj(z).T * 2j, np.abs(z.T), z.T[1]), TABLE),
    "elements": (lambda z: z[np.array([0, 3, 3])] * z[1] + z[-1], COMPLEX),
    "rows": (lambda z: z[np.array([0, 3, 3])], TABLE),
    "joined": (lambda z: (np.concatenate([z, z * 2.0]), np.stack([z, z.real])), TABLE[0]),
    "an outer product": (lambda z: np.outer(z, z), TABLE[0]),
    "a difference": (lambda z: np.diff(z) ** 2, COMPLEX),
    "a norm": (lambda z: np.sqrt(np.sum(np.abs(z) ** 2, axis=1)), TABLE),
    "zeros": (lambda z: np.zeros(3, complex) + z[:3], COMPLEX),
}


@pytest.mark.parametrize("name", COMPLEX_CASES)
def test_arrays_of_complex_numbers_are_machine_code(name):
    agree(*COMPLEX_CASES[name])


def test_what_no_register_holds_is_called_back():
    """Gradients of a product of windows in complex64, and digits that are numbers of a program."""
    w = COMPLEX[:3].astype(np.complex64)

    def smooth(z):
        return np.sum(np.abs(np.convolve(z, w)) ** 2)

    z = COMPLEX[:5].astype(np.complex64)
    expected = lineara.grad(smooth)(z)
    assert np.allclose(lineara.jit(lineara.grad(smooth), engine="native")(z), expected, rtol=1e-5)
    program = parse("def f(x: f64[3], k: i64;) -> (f64[3];) = round(x, k)")
    for k in (1, -1):
        x = np.array([1.25, -17.55, 0.5])
        (y,) = run(program, "f", x, np.int64(k), engine="native").results
        assert y.tolist() == np.round(x, k).tolist()


def iterated(c):
    z, n = c[0] * 0, 0.0
    for k in range(40):
        z = z * z * 0.5 + c[k % 3]
        n = n + abs(z) if z.real > 0 else n - z.imag
    return n


def resonance(x):
    pole = x[0] * np.exp(1j * x[1])
    h = 1 / ((1 - pole / 1j) * (1 - np.conj(pole) / 1j))
    return abs(h) ** 2 + np.abs(1 / (1 + h)) + (h * h).imag


def waves(x):
    z = np.zeros(x.shape[0], complex)
    for i in range(1, x.shape[0]):
        z[i] = 0.9j * z[i - 1] + x[i] * np.exp(1j * x[i])
    return z


def wanders(x):
    z, n = complex(x[0], 4.0), 0
    while abs(z) > 0.5:
        z = z * (0.7 + 0.2j)
        n += 1
    return (z / (1 + 1j)).real * x[1]


COMPLEX_LOOPS = {
    "iterated": (iterated, COMPLEX[:3] / 4), "resonance": (resonance, np.array([0.4, 0.8])),
    "waves": (lambda x: np.sum(np.abs(waves(x)) ** 2), ANY[:100]),
    "wanders": (wanders, ANY[:3]),
}  # fmt: skip


@pytest.mark.parametrize("name", COMPLEX_LOOPS)
def test_loops_of_complex_numbers_and_their_gradients_are_machine_code(name):
    f, x = COMPLEX_LOOPS[name]
    agree(f, x)
    agree(lineara.grad(f), x)


OF_PYTHON = {
    "sum": lambda z, w: z + w,
    "difference": lambda z, w: z - w,
    "product": lambda z, w: z * w,
    "quotient": lambda z, w: z / w,
    "size": lambda z, w: abs(z) + abs(w),
    "exponential": lambda z, w: cmath.exp(z) - cmath.exp(w),
    "with a float": lambda z, w: (z * 2.5 - 0.1) / (w.real - w) + 1 / z,
    "parts": lambda z, w: z.real * w.imag + (z == w) + z.conjugate(),
}


@pytest.mark.parametrize("name", OF_PYTHON)
def test_pythons_complex_numbers_have_pythons_bits_and_exceptions(name):
    f = OF_PYTHON[name]
    jitted = lineara.jit(f, engine="native")

    def outcome(of, z, w):
        try:
            y = of(z, w)
        except (ArithmeticError, ValueError) as error:
            return type(error), str(error)
        return type(y), bits(np.array([y], complex).view(float))

    for z in ODD:
        for w in (*ODD[3::11], 0j, 1 + 2j):
            z, w = complex(z), complex(w)
            assert outcome(jitted, z, w) == outcome(f, z, w), (z, w)
    for z in COMPLEX:
        for w in COMPLEX[::5]:
            assert outcome(jitted, complex(z), complex(w)) == outcome(f, complex(z), complex(w))
    agree(f, complex(COMPLEX[0]), complex(COMPLEX[1]))


def rounded_once(z, w):
    """A product as a fused multiply-add makes it."""

    def fused(x, y, rounded):
        return float(Fraction(x) * Fraction(y) + Fraction(rounded))

    return complex(fused(z.real, w.real, -z.imag * w.imag), fused(z.real, w.imag, z.imag * w.real))


@pytest.mark.parametrize("name", WRITTEN)
def test_a_python_of_other_bits_is_not_imitated(name, monkeypatch):
    """Another rounding at one of the points is enough."""
    asked, (pythons, written) = is_pythons_complex.__wrapped__, WRITTEN[name]
    assert asked(name)
    for one in (0, 150, 297):
        for k in range(2):
            call = itertools.count()

            def other(z, w, k=k, one=one, call=call):
                y = complex(written(z, w))
                off = [y.real, y.imag]
                if next(call) == one:
                    off[k] = math.nextafter(off[k], math.inf)
                return complex(*off)

            monkeypatch.setitem(WRITTEN, name, (pythons, other))
            assert not asked(name)
    if name == "python_multiply":
        monkeypatch.setitem(WRITTEN, name, (pythons, rounded_once))
        assert not asked(name)


def test_complex_numbers_go_in_and_out_of_calls():
    def f(z, a):
        return z * 2j, a * z, a[0], abs(z), [z, z.real]

    args = 0.3 + 0.4j, COMPLEX
    for z in (args[0], np.complex128(0.3 - 0.1j)):
        jitted: Any = lineara.jit(f, engine="native")
        ours = [jitted(z, COMPLEX) for _ in range(3)][-1]
        expected = lineara.jit(f, engine="interpreter")(z, COMPLEX)
        assert bits(list(ours)) == bits(list(expected))
        assert [type(v) for v in ours] == [type(v) for v in expected]
