"""Functions that SciPy lacks: differences and densities computed without cancellation.

The partials of scipy.special and scipy.stats use them where the textbook formula subtracts two
nearly equal numbers.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from lineara.facts.hints import Shaped, Value

Values = Callable[..., Any]


@functools.cache
def scipy_special(name: str) -> Any:
    """The function of that name in scipy.special, which is imported here."""
    from scipy import special

    return getattr(special, name)


def in_double(function: Values) -> Values:
    """The function computed in double precision; its result in that of its arguments."""

    @functools.wraps(function)
    def call(*args: Any) -> Any:
        dtype = np.result_type(*args)
        dtype = dtype if dtype.kind in "fc" else np.result_type(dtype, np.float32)
        with np.errstate(all="ignore"):
            y = function(*(np.asarray(a) * np.float64(1) for a in args))
        turned = dtype.kind == "f" and np.iscomplexobj(y)
        kind = (
            np.dtype(complex) if turned else dtype
        )  # complex results, as SciPy's, in double precision
        return np.asarray(y).astype(kind)[()]

    return call


def by_order(function: Values) -> Values:
    """A function of an integer order, extended to arrays of orders."""

    @functools.wraps(function)
    def call(n: Shaped, *args: Any) -> Any:
        first, *others = [int(k) for k in np.unique(np.real(n))] or [1]
        y = function(first, *args)
        if np.ndim(n):
            y = np.where(n == first, y, np.nan)
        for k in others:
            y = np.where(n == k, function(k, *args), y)
        return y

    return call


def _only_real(name: str, *args: Any) -> None:
    if any(np.iscomplexobj(a) for a in args):
        raise TypeError(f"{name} is a function of real numbers here")


# --- gamma and its derivatives ------------------------------------------------------------------

_SHIFT = 12  # from here on eight terms of Stirling's series are exact in double precision
BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)


def _stirling(n: int, first: Value, odd: Value, even: Value, two: Callable[[Any, Any], Any]) -> Any:
    """Stirling's series of psi_n, of its first term and the powers x^-(n+1) and x^-(n+2).

    `two` makes of a power, or what stands for it, and how often it was called, the one above.
    """
    terms, power = first + math.factorial(n) / 2 * odd, even
    for k, b in enumerate(BERNOULLI, 1):
        factor = b * math.factorial(2 * k + n - 1) / math.factorial(2 * k)
        terms = terms + factor * power
        power = two(power, k)
    return (-1) ** (n + 1) * terms


def _powers(x: Value, m: int) -> Any:
    """x^m by products, m >= 1."""
    return functools.reduce(lambda y, _: y * x, range(m - 1), x)


class _Apart:
    """x^-m - y^-m for y = x + d, computed by sums of terms of one sign."""

    def __init__(self, x: Any, d: Shaped) -> None:
        self.in_x, self.in_y = 1 / x, 1 / (x + d)
        self.one = d * self.in_x * self.in_y

    def power(self, m: int) -> Any:
        """The difference of the m-th powers."""
        difference, in_y = self.one, self.in_y
        for _ in range(m - 1):  # x^-m-1 - y^-m-1 = (x^-m - y^-m) / x + y^-m (1/x - 1/y)
            difference, in_y = difference * self.in_x + in_y * self.one, in_y * self.in_y
        return difference


@in_double
@by_order
def polygamma_difference(n: int, a: Shaped, b: Shaped) -> Any:
    """psi_n(a) - psi_n(a + b), to full relative precision where both arguments are positive."""
    _only_real("polygamma_difference", a, b)
    positive = (a > 0) & (a + b > 0)
    x, d = np.where(positive, a, 1.0), np.where(positive, b, 0.0)
    high = _Apart(x + _SHIFT, d)
    first = math.factorial(n - 1) * high.power(n) if n else np.log1p(d / (x + _SHIFT))
    square, in_y = high.power(2), _powers(high.in_y, n + 2)
    x2, y2 = high.in_x * high.in_x, high.in_y * high.in_y

    def two(power: Shaped, k: int) -> Any:
        nonlocal in_y
        power, in_y = power * x2 + in_y * square, in_y * y2
        return power

    y = _stirling(n, first, high.power(n + 1), high.power(n + 2), two)
    for k in range(_SHIFT):
        y = y - (-1) ** n * math.factorial(n) * _Apart(x + k, d).power(n + 1)
    if np.all(positive):
        return y
    return np.where(positive, y, polygamma(n, a) - polygamma(n, a + b))


@in_double
@by_order
def polygamma(n: int, x: Any) -> Any:
    """Stirling's series far out, and by recurrence from there; by reflection for complex numbers.

    SciPy's has the negative real numbers, and the higher orders, where products are no faster.
    """
    if n == 0:
        return scipy_special("digamma")(x)
    if not np.iscomplexobj(x):
        if n > 3 or not np.all((x > 0) & (x < 1e30)):
            return scipy_special("polygamma")(n, x)
        return _upwards(n, x)
    low = x.real < 0.5
    c = 1 / np.tan(np.pi * x)
    turned = np.pi ** (n + 1) * np.polyval(_cotangent(n), c)  # of pi cot(pi x), its derivative
    y = _upwards(n, np.where(low, 1 - x, x))
    return np.where(low, (-1) ** n * y - turned, y)


def _upwards(n: int, x: Value) -> Any:
    """psi_n where the real part is positive."""
    inverse = 1 / (x + _SHIFT)
    power, square = _powers(inverse, n), inverse * inverse
    first, odd, even = math.factorial(n - 1) * power, power * inverse, power * square
    y = _stirling(n, first, odd, even, lambda p, _: p * square)
    rest: Any = 0.0
    for k in range(_SHIFT):
        rest = rest + _powers(1 / (x + k), n + 1)
    return y - (-1) ** n * math.factorial(n) * rest


def _cotangent(n: int) -> np.ndarray:
    """The n-th derivative of cot as a polynomial in it."""
    polynomial = np.array([1.0, 0.0])
    for _ in range(n):
        polynomial = -np.polymul([1.0, 0.0, 1.0], np.polyder(polynomial))
    return polynomial


# --- densities [Loader 2000] -------------------------------------------------------------------


def _stirling_error(n: Shaped) -> Any:
    """log n! minus Stirling's formula."""
    small = n < 16
    few, many = np.where(small, n, 1.0), np.where(small, 16.0, n)
    direct = scipy_special("gammaln")(few + 1) - (few + 0.5) * np.log(few) + few
    series = sum(b / (2 * k * (2 * k - 1) * many ** (2 * k - 1)) for k, b in _SERIES)
    return np.where(small, direct - 0.5 * math.log(2 * math.pi), series)


_SERIES = list(enumerate(BERNOULLI[:7], 1))


def _deviance(x: Value, mean: Shaped) -> Any:
    """x log(x / mean) + mean - x, near the mean by the series of atanh."""
    t = (mean - x) / x
    near = np.abs(t) < 0.5
    close = np.where(near, t, 0.0)
    r = close / (2 + close)  # log1p(t) = 2 atanh(r), and t - 2 r = t r
    square, tail = r * r, 0.0
    for k in range(35, 1, -2):
        tail = tail * square + 1 / k
    series = r * (close - 2 * square * tail)
    return x * np.where(near, series, t - np.log(np.where(near, 1.0, mean / x)))


@in_double
def gamma_density(a: Shaped, x: Shaped) -> Any:
    """x^(a-1) exp(-x) / Gamma(a) for x >= 0, else 0."""
    _only_real("gamma_density", a, x)
    inside = np.where(x > 0, x, 1.0)
    log = -_stirling_error(a) - _deviance(a, inside)
    y = np.exp(log) * np.sqrt(a / (2 * np.pi)) / inside
    at_zero = np.where(a > 1, 0.0, np.where(a == 1, 1.0, np.inf))
    return np.where(x > 0, y, np.where(x == 0, at_zero, x * 0.0))


@in_double
def beta_density(a: Shaped, b: Shaped, x: Shaped) -> Any:
    """x^(a-1) (1-x)^(b-1) / B(a, b) for x in [0, 1], else 0."""
    _only_real("beta_density", a, b, x)
    within, n = (x > 0) & (x < 1), a + b
    p = np.where(within, x, 0.5)
    log = _stirling_error(n) - _stirling_error(a) - _stirling_error(b)
    log = log - _deviance(a, n * p) - _deviance(b, n * (1 - p))
    y = np.exp(log) * np.sqrt(a * b / (2 * np.pi * n)) / (p * (1 - p))
    low = np.where(a > 1, 0.0, np.where(a == 1, b, np.inf))
    high = np.where(b > 1, 0.0, np.where(b == 1, a, np.inf))
    edges = np.where(x == 0, low, np.where(x == 1, high, x * 0.0))
    return np.where(within, y, edges)


@in_double
def log1p_deficit(x: Shaped) -> Any:
    """(log1p(x) - x / (1 + x)) / x^2."""
    near = np.abs(x) < 0.5
    close, far = np.where(near, x, 0.0), np.where(near, 1.0, x)
    direct = (np.log1p(far) - far / (1 + far)) / far**2
    return np.where(near, scipy_special("hyp2f1")(2.0, 2.0, 3.0, -close) / 2, direct)


@in_double
def hyp1f1(a: Shaped, b: Value, x: Shaped) -> Any:
    """1F1(a; b; x), of which SciPy does not end for large x; all but polynomials overflow there."""
    if np.iscomplexobj(x):
        return scipy_special("hyp1f1")(a, b, x)
    polynomial = (np.less_equal(a, 0)) & (np.floor(a) == a)
    x = np.where(np.greater(x, 1e5) & ~polynomial, np.minimum(x, 1e5), x)[()]
    return scipy_special("hyp1f1")(a, b, x)


@in_double
def ellipk_slope(m: Shaped) -> Any:
    """The derivative of ellipk: from ellipe, which agrees with it too much where m is small."""
    _only_real("ellipk_slope", m)
    small = np.abs(m) < 0.2
    away = np.where(small, 0.5, m)
    left = (1 - away) * scipy_special("ellipk")(away)
    y = np.asarray((scipy_special("ellipe")(away) - left) / (2 * away * (1 - away)))
    y[small] = math.pi / 8 * scipy_special("hyp2f1")(1.5, 1.5, 2.0, m[small])
    return y


@in_double
@by_order
def spherical_jn(n: int, z: Shaped) -> Any:
    """SciPy's, but for the order 1 of real numbers: near 0 by its series."""
    if n != 1 or np.iscomplexobj(z):
        return scipy_special("spherical_jn")(n, z)
    near = np.abs(z) < 1
    close, far = np.where(near, z, 0.0), np.where(near | np.isinf(z), 1.0, z)
    q, series = close * close / 2, 0.0
    for k in range(9, -1, -1):  # 1 / (k! (2k + 3)!!)
        odd = math.prod(range(3, 2 * k + 4, 2))
        series = 1 / (math.factorial(k) * odd) - q * series
    direct = (np.sin(far) / far - np.cos(far)) / far
    return np.where(near, series * close, np.where(np.isinf(z), 0.0, direct))


@in_double
def ellipkm1_slope(p: Value) -> Any:
    """The derivative of ellipkm1, by Carlson's integral."""
    _only_real("ellipkm1_slope", p)
    return -scipy_special("elliprd")(0.0, 1.0, p) / 6


# --- Bessel functions of the first orders ---------------------------------------------------------


def _third(zeroth: Value, first: Value, x: Shaped, sign: int, scaled: bool) -> Any:
    """The function of the order 2 from those of the orders 0 and 1, near 0 by its series."""
    near = np.abs(x) < 2
    close = np.where(near, x, 0.0)
    q, series = close * close / 4, 0.0
    for k in range(12, -1, -1):
        series = series * sign * q + 1 / (math.factorial(k) * math.factorial(k + 2))
    series = series * q * np.exp(-np.abs(close)) if scaled else series * q
    direct = sign * (zeroth - 2 * first / np.where(near, 1.0, x))
    return np.where(near, series, direct)[()]


def _of_first_orders(name: str, zeroth: str, first: str, sign: int) -> Values:
    """SciPy's function, whose orders -1 to 2 of real numbers are made of its quicker ones."""

    def call(v: Shaped, x: Shaped) -> Any:
        other = np.ndim(v) or np.iscomplexobj(x) or float(v) not in (-1.0, 0.0, 1.0, 2.0)
        if other or not np.all(np.abs(x) < 700):  # where those of 0 and 1 overflow, or are lost
            return scipy_special(name)(v, x)
        one = scipy_special(first)(x)
        if abs(v) == 1:
            return one if v == 1 else sign * one
        zero = scipy_special(zeroth)(x)
        return zero if v == 0 else _third(zero, one, x, sign, name == "ive")

    call.__name__ = name
    return call


jv: Values = _of_first_orders("jv", "j0", "j1", -1)
iv: Values = _of_first_orders("iv", "i0", "i1", 1)
ive: Values = _of_first_orders("ive", "i0e", "i1e", 1)


# --- scaled Bessel functions and the Faddeeva function far out ----------------------------------

_HANKEL = 14  # terms of Hankel's expansion, enough for x > 50 and x > 2 v^2


def _hankel(v: Value, x: Shaped, sign: int) -> Any:
    """The derivative of sqrt(1/x) sum of (sign)^k a_k(v) / x^k, by its terms."""
    term, y = x**-1.5, -0.5 * x**-1.5
    for k in range(1, _HANKEL):
        term = term * sign * (4 * v * v - (2 * k - 1) ** 2) / (8 * k * x)
        y = y - (k + 0.5) * term
    return y


def _slope(v: Value, x: Shaped, near: Shaped, far: Callable[..., Any]) -> Any:
    """The direct formula, and Hankel's expansion where the direct one cancels."""
    out = np.abs(x) > np.maximum(50.0, 2 * v * v)
    return np.where(out, far(np.where(out, np.abs(x), 50.0)), near) if np.any(out) else near


@in_double
def ive_slope(v: Shaped, x: Shaped) -> Any:
    """The derivative of ive(v, x) in a real x."""
    _only_real("ive_slope", v, x)
    near = (ive(v - 1, x) + ive(v + 1, x)) / 2 - np.sign(x) * ive(v, x)
    turn = np.where(x < 0, -((-1.0) ** np.rint(v)), 1.0)  # ive(v, -x) is +-ive(v, x)
    return _slope(v, x, near, lambda r: turn * _hankel(v, r, -1) / math.sqrt(2 * math.pi))


@in_double
def kve_slope(v: Value, x: Shaped) -> Any:
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
    before, w = np.zeros_like(z), scipy_special("wofz")(z)
    for k in range(n):
        start = 2j / math.sqrt(math.pi) if k == 0 else 0.0
        before, w = w, -2 * z * w - 2 * k * before + start
    out = (np.abs(z) > 7) & (z.imag >= 0)
    if not np.any(out):
        return w
    far = np.where(out, z, 10.0)
    term = 1j / math.sqrt(math.pi) * (-1) ** n * math.factorial(n) * far ** float(-n - 1)
    series = term
    for k in range(1, 25):
        term = term * (k - 0.5) * (2 * k + n) * (2 * k + n - 1)
        term = term / (2 * k * (2 * k - 1) * far * far)
        series = series + term
    return np.where(out, series, w)


# --- other ways to call SciPy --------------------------------------------------------------------


def whole(name: str, count: int = 1) -> Values:
    """SciPy's function with its first `count` arguments converted to integers."""

    def call(*args: Any) -> Any:
        orders = [np.asarray(n) for n in args[:count]]
        orders = [n.astype(int) if np.all(n == np.rint(n)) else n for n in orders]
        return scipy_special(name)(*[n[()] for n in orders], *args[count:])

    return call


def part(name: str, i: int) -> Values:
    """The i-th result of a function that has several."""
    return lambda *args: scipy_special(name)(*args)[i]
