"""What is evaluated without asking Python, with the interpreter's bits, specials included."""

import functools
import itertools
import math
import platform
import re
import sys

import numpy as np
import pytest
import scipy.special as sp
from test_native import agree, bits

import lineara
from lineara import engines
from lineara.engines import run
from lineara.engines.native import Native, lower
from lineara.engines.native.formulas import FORMULAS, Floats, is_pythons
from lineara.errors import LinearaError, StagingError

pytest.importorskip("llvmlite")

EXACT, NATIVE = Native(exact=True, masks=True), Native()
SPECIAL = [0.0, -0.0, 0.5, -1.5, 2.5, 3.5, -7.25, 1e300, -1e-320, math.inf, -math.inf, math.nan]
ARRAY = np.array([*SPECIAL, *np.linspace(-9.0, 9.0, 51)])
WHOLE = [0, 1, -1, 2, -2, 7, 3_037_000_499, 2**62, -(2**63), 2**63 - 1]

OF_WHOLE = {
    "abs": abs,
    "np.abs": lambda n: np.abs(n),
    "invert": lambda n: ~n,
    "xor": lambda n: n ^ 5,
    **{f"to the {k}": lambda n, k=k: n**k for k in (0, 1, 2, 3, 5, 8, 63)},
}
OF_NUMBERS = {
    "round": round,
    "atan2": lambda x: math.atan2(x, 2.0),
    "atan2 of zero": lambda x: math.atan2(-0.0, x),
    "fmod": lambda x: math.fmod(x, 0.75),
    "fmod by it": lambda x: math.fmod(3.5, x),
    "remainder": lambda x: x % 0.7,
    "remainder by it": lambda x: 3.3 % x,
    "gammaln": sp.gammaln,
    "expit": sp.expit,
}
OF_ARRAYS = {
    "gammaln": sp.gammaln,
    "digamma": sp.digamma,
    "erf": sp.erf,
    "erfc": sp.erfc,
    "gamma": sp.gamma,
    "expit": sp.expit,
    "log1p of SciPy": sp.log1p,
    "xlogy": lambda x: sp.xlogy(x, 2.0 * x),
    "betaln": lambda x: sp.betaln(x, 2.0 + x * x),
    "clip": lambda x: np.clip(x, -0.0, 2.5),
    "squares of whole numbers": lambda x: np.isfinite(x).astype(int) ** 2,
    "NumPy's log1p beside SciPy's": lambda x: np.log1p(x) + sp.log1p(x * x),
}


def of(f, *args):
    """The program of f, its name, and the values."""
    staged = lineara.jit(f).program(*args)
    return staged.program, staged.name, *staged.operands(args)


def same(f, *args, like=None):
    """The program of f for such arguments, which gives the same bits or errors by all engines."""
    program, name, *values = of(f, *(args if like is None else like))
    values = values if like is None else [np.asarray(a)[()] for a in args]
    outcomes = []
    for engine in (engines.engine_of("interpreter"), EXACT, NATIVE):
        if engine.takes(program, name) is None:
            try:
                with np.errstate(all="ignore"):
                    outcomes.append(bits(run(program, name, *values, engine=engine).results))
            except (ArithmeticError, ValueError, LinearaError) as error:
                outcomes.append(f"{type(error).__name__}: {error}")
    assert len(outcomes) > 1
    assert all([outcome == outcomes[0] for outcome in outcomes]), args
    return program, name


def asked(program, name):
    """How often code has asked Python."""
    return sum([times for times, _ in NATIVE.kernel(program, name).asked])


@pytest.mark.parametrize("name", OF_WHOLE)
def test_whole_numbers(name):
    for n in WHOLE:
        program, called = same(OF_WHOLE[name], n, like=[3])
        too_large = "to the" in name and not -(2**63) <= OF_WHOLE[name](n) < 2**63
        assert asked(program, called) == too_large, n


@pytest.mark.parametrize("name", OF_NUMBERS)
def test_numbers(name):
    for x in SPECIAL:
        program, called = same(OF_NUMBERS[name], x, like=[1.25])
        assert not asked(program, called) or not 0.1 < abs(x) < 10  # Python knows what raises


@pytest.mark.parametrize("name", OF_ARRAYS)
def test_arrays(name):
    program, called = same(OF_ARRAYS[name], ARRAY)
    assert NATIVE.sites(program, called) == EXACT.sites(program, called) == 0


def test_a_function_that_python_may_have_of_its_own_is_called_where_it_is_cs():
    for f in (math.erf, math.erfc):
        for x in [*SPECIAL, *np.linspace(-8.0, 28.0, 200).tolist()]:
            same(f, x, like=[0.5])


POINTS = [
    *SPECIAL, *WHOLE, *range(-3, 30), 139.0, 140.0, 171.5, 172.0, 1e-20, 9e-21, 5e-324, 2.0**-53,
    1 + 2.0**-52, 2 - 2.0**-52, 4.999999, 5.000001, 1e15, 1e305, 2.6e305,
    *np.geomspace(1e-19, 1e7, 200).tolist(), *np.linspace(-6.1, 142.0, 700).tolist(),
]  # fmt: skip
PAIRS = [
    *itertools.product([*SPECIAL, 1e-290, 1e290, 2.0**511, 3.0], repeat=2),
    *np.random.default_rng(0).normal(size=(400, 2)).tolist(),
    *(np.random.default_rng(1).normal(size=(400, 2)) * [1e-7, 1e200]).tolist(),
]


@pytest.mark.parametrize("name", FORMULAS)
def test_functions_that_python_has_algorithms_for_are_pythons(name):
    f = getattr(math, name)
    pair = name == "hypot"
    jitted = lineara.jit((lambda x, y: f(x, y)) if pair else (lambda x: f(x)), engine="native")
    wrong = []
    for x in PAIRS if pair else [(float(x),) for x in POINTS]:
        said = []
        for g in (f, jitted):
            try:
                said.append(bits(g(*x)))
            except (ValueError, OverflowError) as error:
                said.append(type(error))
        wrong += [x] if said[0] != said[1] else []
    assert wrong == []
    program, called = same((lambda x: f(x, 0.7)) if pair else (lambda x: f(x)), 7.25, like=[0.5])
    kernel = NATIVE.kernel(program, called)
    assert [n for n, _ in kernel.asked] == [not is_pythons(name)]
    if (sys.platform, platform.machine()) == ("linux", "x86_64"):  # elsewhere C may round otherwise
        assert is_pythons.__wrapped__(name)


@pytest.mark.parametrize("name", FORMULAS)
def test_a_python_with_another_algorithm_is_not_imitated(name, monkeypatch):
    """Another rounding at one of the points is enough."""
    asked, (formula, points) = is_pythons.__wrapped__, FORMULAS[name]
    monkeypatch.setattr(math, name, functools.partial(formula, Floats()))
    assert asked(name)
    for one in (0, len(points) // 2, len(points) - 1):
        call = itertools.count()

        def other(of, *x, call=call, one=one):
            y = formula(of, *x)
            return math.nextafter(y, math.inf) if next(call) == one else y

        monkeypatch.setitem(FORMULAS, name, (other, points))
        assert not asked(name)


ROUNDED = np.array([
    *SPECIAL, 2.675, 1.005, 0.125, 5e-324, 1e22, 1e292, 123456.789,
    *np.random.default_rng(0).normal(size=200) * 1e3, *np.arange(-40, 40) / 8,
])  # fmt: skip


@pytest.mark.parametrize("decimals", [None, 0, 1, 2, -1, -3, 8, 9, 17, 22, -22, 23, -23])
def test_rounding_to_decimals_is_numpys(decimals):
    given = () if decimals is None else (decimals,)

    def f(x):
        return np.round(x, *given) + 0.5 * np.around(-x, *given)

    program, called = same(f, ROUNDED)
    inside = decimals is None or abs(decimals) <= 22
    assert NATIVE.sites(program, called) == EXACT.sites(program, called) == (0 if inside else 2)
    same(lambda x: np.round(x[3] * 2.0, *given), ROUNDED)
    same(lambda x: np.exp(np.round(x * 3.0, *given)), ROUNDED[-200:].reshape(8, -1))  # a region
    jitted = lineara.jit(f, engine="native")
    with np.errstate(all="ignore"):
        assert bits(jitted(ROUNDED)) == bits(f(ROUNDED))


def test_rounding_of_other_kinds():
    for decimals in (0, 2, -1):
        whole = np.array([1, -15, 25, 34, 2**53 + 1])
        same(lambda n, d=decimals: np.round(n, d), whole)
        same(lambda x, d=decimals: np.round(x, d), ROUNDED[-200:].astype(np.float32))
        same(lambda z, d=decimals: np.round(z, d), ROUNDED[-40:] * (1 - 2j))


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("shape", [(3, 4, 5), (1, 7, 2), (6, 1, 1), (0, 2, 3), (2, 3, 0)])
def test_running_sums(axis, shape):
    x = np.random.default_rng(1).normal(size=shape)
    for f in (lambda x: np.cumsum(x, axis=axis), lambda x: np.cumsum(x.T, axis=axis)):
        program, called = same(f, x)
        assert NATIVE.sites(program, called) == 0


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("shape", [(3, 4, 5), (1, 7, 2), (6, 1, 1), (0, 2, 3), (2, 3, 0)])
def test_running_products_and_their_derivatives(axis, shape):
    x = np.random.default_rng(1).normal(size=shape)

    def total(x):
        y = np.cumprod(x, axis=axis)
        return np.sum(y * y * y)

    program, called = same(lambda x: np.cumprod(x.T, axis=axis), x)
    assert NATIVE.sites(program, called) == 0
    slope = lineara.grad(total)
    program, called, _ = of(slope, x)
    assert NATIVE.sites(program, called) == 0
    np.testing.assert_allclose(lineara.jit(slope, engine="native")(x), slope(x), rtol=1e-13)


@pytest.mark.parametrize(("axis", "loops"), [(0, 3), (1, 2)])
def test_running_sums_go_through_memory_once(axis, loops):
    """Row by row where the rows are summed, else all lines at a time."""
    program, called, *_ = of(lambda x: np.cumsum(x, axis=axis), np.ones((3, 4)))
    text = lower.lowered(program, called, True, False).text
    assert len(re.findall(r"^body\d+:", text, re.MULTILINE)) == loops


def test_running_sums_of_whole_numbers_and_of_specials():
    same(lambda n: np.cumsum(n), np.array([2**62, 2**62, 5, -7]))
    same(lambda x: np.cumsum(x), np.array([-0.0, -0.0, 1e308, 1e308, -math.inf, math.nan]))
    program, called = same(
        lineara.grad(lambda x: (np.cumsum(x, axis=0) * np.arange(12.0).reshape(4, 3)).sum()),
        np.ones((4, 3)),
    )
    assert NATIVE.sites(program, called) == 0


@pytest.mark.parametrize("n", [1, 2, 3, 5, 24])
def test_the_sign_and_the_logarithm_of_a_determinant(n):
    x = np.random.default_rng(n).normal(size=(n, n))
    for scale in (1.0, -1.0, 1e-200, 1e200):  # the determinant itself is too small, or too large
        program, called, value = of(lambda x: np.linalg.slogdet(x)[:2], scale * x)
        agree(program, called, value, engines=[NATIVE])
        assert asked(program, called) == 0
    program, called, value = of(lineara.grad(lambda x: np.linalg.slogdet(x)[1]), x)
    agree(program, called, value, engines=[NATIVE])
    same(lambda x: np.linalg.slogdet(x)[:2], np.ones((n + 1, n + 1)))


SCALED = [*SPECIAL, 1.0, math.pi, 5e-324, 3e-310, 1.7e308, 2.0**-1000]
POWERS = [
    *range(-3, 4), -1074, -1075, -2100, 52, 1023, 1024, 2100,
    *[sign * 2**k + d for sign in (1, -1) for k in (31, 32, 40, 62) for d in (-1, 0, 1)],
]  # fmt: skip
DIVIDED = [
    *range(-13, 14),
    *[n for n in WHOLE if n > -(2**63)],
    2**31,
    -(2**40),
    3 * 999_999_999_989,
    2**62 - 2**31,
]
OF_INTEGERS = {
    "gcd": (lambda a, b: math.gcd(a, b), itertools.product(DIVIDED, repeat=2)),
    "lcm": (lambda a, b: math.lcm(a, b), itertools.product(DIVIDED, repeat=2)),
    "three": (lambda a, b: math.gcd(a, b, 12), itertools.product(DIVIDED, repeat=2)),
    "of a truth": (lambda a, b: math.lcm(a, b > 0), itertools.product(DIVIDED, repeat=2)),
    "ldexp": (lambda x, n: math.ldexp(x, n), itertools.product(SCALED, POWERS)),
    "ldexp by a truth": (lambda x, n: math.ldexp(x, n > 0), itertools.product(SCALED, POWERS)),
}


@pytest.mark.parametrize("name", OF_INTEGERS)
def test_functions_of_math_of_integers_are_code(name):
    f, points = OF_INTEGERS[name]
    points, program, wrong = [*points], lineara.jit(f, engine="native"), []
    for x in points:
        said = []
        for g in (f, program):
            try:
                said.append(bits(g(*x)))
            except (OverflowError, StagingError) as error:
                said.append(type(error))
        large = said[1] is StagingError and f(*x) >= 2**63
        wrong += [x] if said[0] != said[1] and not large else []
    assert wrong == []
    for x in ((15, -6), (-35, 14)):
        text = same(f, *((float(x[0]), x[1]) if "ldexp" in name else x))
        assert asked(*text) == (name == "of a truth")
    if "ldexp" not in name:
        for x in itertools.product((0, 6, -(2**63)), repeat=2):
            same(f, *x, like=[15, -6])


def test_divisors_in_a_loop_and_in_lanes_are_not_called_back():
    def coprime(n):
        count = 0
        for i in range(1, n):
            if math.gcd(i, n) == 1:
                count += math.lcm(i, 4)
        return count

    assert asked(*same(coprime, 97)) == 0
    assert lineara.jit(coprime, engine="native")(97) == coprime(97)
    lanes = lineara.jit(lineara.vmap(lambda i: math.gcd(i, 6) * math.lcm(i, 4)), engine="native")
    i = np.arange(-20, 20)
    np.testing.assert_array_equal(lanes(i), np.gcd(i, 6) * np.lcm(i, 4))
