"""Values that SciPy has no function for: differences and densities without cancellation.

They are what the partials of scipy.special and scipy.stats are made of, in the regions where the
textbook formula subtracts two numbers that agree.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

Values = Callable[..., Any]


@functools.cache
def scipy_special(name: str) -> Any:
    """The function of that name in scipy.special, which is imported now."""
    from scipy import special

    return getattr(special, name)


def in_double(function: Values) -> Values:
    """The function computed in double precision; its result in that of its arguments."""

    @functools.wraps(function)
    def call(*args: Any) -> Any:
        found = np.result_type(*args)
        found = found if found.kind in "fc" else np.result_type(found, np.float32)
        with np.errstate(all="ignore"):
            made = function(*(np.asarray(a) * np.float64(1) for a in args))
        turned = found.kind == "f" and np.iscomplexobj(made)
        kind = np.dtype(complex) if turned else found  # as SciPy makes of any real numbers
        return np.asarray(made).astype(kind)[()]

    return call


def by_order(function: Values) -> Values:
    """A function of an integer order, for each of the orders in an array."""

    @functools.wraps(function)
    def call(n: Any, *args: Any) -> Any:
        first, *others = [int(k) for k in np.unique(np.real(n))] or [1]
        found = function(first, *args)
        if np.ndim(n):
            found = np.where(n == first, found, np.nan)
        for k in others:
            found = np.where(n == k, function(k, *args), found)
        return found

    return call


def _only_real(name: str, *args: Any) -> None:
    if any(np.iscomplexobj(a) for a in args):
        raise TypeError(f"{name} is a function of real numbers here")


# --- gamma and its derivatives ------------------------------------------------------------------

_SHIFT = 12  # from here on eight terms of Stirling's series are exact in double precision
BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)


def _stirling(n: int, first: Any, power: Callable[[int], Any]) -> Any:
    """Stirling's series of psi_n, of its first term and the powers x^-m."""
    terms = first + math.factorial(n) / 2 * power(n + 1)
    for k, b in enumerate(BERNOULLI, 1):
        factor = b * math.factorial(2 * k + n - 1) / math.factorial(2 * k)
        terms = terms + factor * power(2 * k + n)
    return (-1) ** (n + 1) * terms


@in_double
@by_order
def polygamma_difference(n: int, a: Any, b: Any) -> Any:
    """psi_n(a) - psi_n(a + b), to full relative precision where both arguments are positive."""
    _only_real("polygamma_difference", a, b)
    positive = (a > 0) & (a + b > 0)
    x, d = np.where(positive, a, 1.0), np.where(positive, b, 0.0)

    def power(m: int, x: Any) -> Any:  # x^-m - (x + d)^-m
        return -(x ** float(-m)) * np.expm1(-m * np.log1p(d / x))

    high = x + _SHIFT
    first = math.factorial(n - 1) * power(n, high) if n else np.log1p(d / high)
    found = _stirling(n, first, lambda m: power(m, high))
    for k in range(_SHIFT):
        found = found - (-1) ** n * math.factorial(n) * power(n + 1, x + k)
    if np.all(positive):
        return found
    return np.where(positive, found, polygamma(n, a) - polygamma(n, a + b))


@in_double
@by_order
def polygamma(n: int, x: Any) -> Any:
    """SciPy's for real numbers, but for the order 0; for complex ones by recurrence upwards."""
    if n == 0:
        return scipy_special("digamma")(x)
    if not np.iscomplexobj(x):
        return scipy_special("polygamma")(n, x)
    low = x.real < 0.5
    c = 1 / np.tan(np.pi * x)
    turned = np.pi ** (n + 1) * np.polyval(_cotangent(n), c)  # of pi cot(pi x), its derivative
    x = np.where(low, 1 - x, x)
    found = _stirling(
        n, math.factorial(n - 1) * (x + _SHIFT) ** -n, lambda m: (x + _SHIFT) ** float(-m)
    )
    for k in range(_SHIFT):
        found = found - (-1) ** n * math.factorial(n) * (x + k) ** float(-n - 1)
    return np.where(low, (-1) ** n * found - turned, found)


def _cotangent(n: int) -> np.ndarray:
    """The n-th derivative of cot as a polynomial in it."""
    found = np.array([1.0, 0.0])
    for _ in range(n):
        found = -np.polymul([1.0, 0.0, 1.0], np.polyder(found))
    return found


# --- densities [Loader 2000] -------------------------------------------------------------------


def _stirling_error(n: Any) -> Any:
    """log n! less Stirling's formula."""
    small = n < 16
    few, many = np.where(small, n, 1.0), np.where(small, 16.0, n)
    direct = scipy_special("gammaln")(few + 1) - (few + 0.5) * np.log(few) + few
    series = sum(b / (2 * k * (2 * k - 1) * many ** (2 * k - 1)) for k, b in _SERIES)
    return np.where(small, direct - 0.5 * math.log(2 * math.pi), series)


_SERIES = list(enumerate(BERNOULLI[:7], 1))


def _deviance(x: Any, mean: Any) -> Any:
    """x log(x / mean) + mean - x."""
    t = (mean - x) / x
    near = np.abs(t) < 0.5
    close = np.where(near, t, 0.0)
    series = close * close / 2 * scipy_special("hyp2f1")(1.0, 2.0, 3.0, -close)
    return x * np.where(near, series, t - np.log(np.where(near, 1.0, mean / x)))


@in_double
def gamma_density(a: Any, x: Any) -> Any:
    """x^(a-1) exp(-x) / Gamma(a) for x >= 0, else 0."""
    _only_real("gamma_density", a, x)
    inside = np.where(x > 0, x, 1.0)
    log = -_stirling_error(a) - _deviance(a, inside)
    found = np.exp(log) * np.sqrt(a / (2 * np.pi)) / inside
    at_zero = np.where(a > 1, 0.0, np.where(a == 1, 1.0, np.inf))
    return np.where(x > 0, found, np.where(x == 0, at_zero, x * 0.0))


@in_double
def beta_density(a: Any, b: Any, x: Any) -> Any:
    """x^(a-1) (1-x)^(b-1) / B(a, b) for x in [0, 1], else 0."""
    _only_real("beta_density", a, b, x)
    within, n = (x > 0) & (x < 1), a + b
    p = np.where(within, x, 0.5)
    log = _stirling_error(n) - _stirling_error(a) - _stirling_error(b)
    log = log - _deviance(a, n * p) - _deviance(b, n * (1 - p))
    found = np.exp(log) * np.sqrt(a * b / (2 * np.pi * n)) / (p * (1 - p))
    low = np.where(a > 1, 0.0, np.where(a == 1, b, np.inf))
    high = np.where(b > 1, 0.0, np.where(b == 1, a, np.inf))
    edges = np.where(x == 0, low, np.where(x == 1, high, x * 0.0))
    return np.where(within, found, edges)


@in_double
def log1p_deficit(x: Any) -> Any:
    """(log1p(x) - x / (1 + x)) / x^2."""
    near = np.abs(x) < 0.5
    close, far = np.where(near, x, 0.0), np.where(near, 1.0, x)
    direct = (np.log1p(far) - far / (1 + far)) / far**2
    return np.where(near, scipy_special("hyp2f1")(2.0, 2.0, 3.0, -close) / 2, direct)


@in_double
def hyp1f1(a: Any, b: Any, x: Any) -> Any:
    """1F1(a; b; x), of which SciPy does not end for large x; all but polynomials overflow there."""
    if np.iscomplexobj(x):
        return scipy_special("hyp1f1")(a, b, x)
    polynomial = (np.less_equal(a, 0)) & (np.floor(a) == a)
    x = np.where(np.greater(x, 1e5) & ~polynomial, np.minimum(x, 1e5), x)[()]
    return scipy_special("hyp1f1")(a, b, x)


@in_double
def ellipkm1_slope(p: Any) -> Any:
    """The derivative of ellipkm1, by Carlson's integral."""
    _only_real("ellipkm1_slope", p)
    return -scipy_special("elliprd")(0.0, 1.0, p) / 6


# --- scaled Bessel functions and the Faddeeva function far out ----------------------------------

_HANKEL = 14  # terms of Hankel's expansion, enough for x > 50 and x > 2 v^2


def _hankel(v: Any, x: Any, sign: int) -> Any:
    """The derivative of sqrt(1/x) sum of (sign)^k a_k(v) / x^k, by its terms."""
    term, found = x**-1.5, -0.5 * x**-1.5
    for k in range(1, _HANKEL):
        term = term * sign * (4 * v * v - (2 * k - 1) ** 2) / (8 * k * x)
        found = found - (k + 0.5) * term
    return found


def _slope(v: Any, x: Any, near: Any, far: Any) -> Any:
    """The direct formula, and Hankel's expansion where the direct one cancels."""
    out = np.abs(x) > np.maximum(50.0, 2 * v * v)
    return np.where(out, far(np.where(out, np.abs(x), 50.0)), near) if np.any(out) else near


@in_double
def ive_slope(v: Any, x: Any) -> Any:
    """The derivative of ive(v, x) in a real x."""
    _only_real("ive_slope", v, x)
    ive = scipy_special("ive")
    near = (ive(v - 1, x) + ive(v + 1, x)) / 2 - np.sign(x) * ive(v, x)
    turn = np.where(x < 0, -((-1.0) ** np.rint(v)), 1.0)  # ive(v, -x) is +-ive(v, x)
    return _slope(v, x, near, lambda r: turn * _hankel(v, r, -1) / math.sqrt(2 * math.pi))


@in_double
def kve_slope(v: Any, x: Any) -> Any:
    """The derivative of kve(v, x) in x."""
    kve = scipy_special("kve")
    near = kve(v, x) - (kve(v - 1, x) + kve(v + 1, x)) / 2
    if np.iscomplexobj(x):
        return near
    return _slope(v, x, near, lambda r: _hankel(v, r, 1) * math.sqrt(math.pi / 2))


@in_double
@by_order
def wofz_derivative(n: int, z: Any) -> Any:
    """The n-th derivative of wofz, n >= 1: w' = -2 z w + 2i / sqrt(pi); far out its series."""
    z = z * (1 + 0j)
    before, found = np.zeros_like(z), scipy_special("wofz")(z)
    for k in range(n):
        start = 2j / math.sqrt(math.pi) if k == 0 else 0.0
        before, found = found, -2 * z * found - 2 * k * before + start
    out = (np.abs(z) > 7) & (z.imag >= 0)
    if not np.any(out):
        return found
    far = np.where(out, z, 10.0)
    term = 1j / math.sqrt(math.pi) * (-1) ** n * math.factorial(n) * far ** float(-n - 1)
    series = term
    for k in range(1, 25):
        term = term * (k - 0.5) * (2 * k + n) * (2 * k + n - 1)
        term = term / (2 * k * (2 * k - 1) * far * far)
        series = series + term
    return np.where(out, series, found)


# --- other ways to call SciPy --------------------------------------------------------------------


def whole(name: str, count: int = 1) -> Values:
    """A function that wants its first arguments as integers, also if they are whole floats."""

    def call(*args: Any) -> Any:
        orders = [np.asarray(n) for n in args[:count]]
        orders = [n.astype(int) if np.all(n == np.rint(n)) else n for n in orders]
        return scipy_special(name)(*[n[()] for n in orders], *args[count:])

    return call


def part(name: str, i: int) -> Values:
    """The i-th result of a function that has several."""
    return lambda *args: scipy_special(name)(*args)[i]
