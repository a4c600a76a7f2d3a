"""The distributions of scipy.stats as formulas: a table of standardised distributions.

Each function takes a standardised value, (x - loc) / scale, and the shape parameters.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lineara.facts.hints import Shaped, Value
from lineara.facts.primitive import op
from lineara.ops.elementwise import (
    abs_,
    asinh,
    atan2,
    cos,
    exp,
    expm1,
    log,
    log1p,
    sin,
    sinh,
    sqrt,
    where,
)
from lineara.ops.scipy.bessel import i0e
from lineara.ops.scipy.special import (
    beta_density,
    betainc,
    betaincc,
    betainccinv,
    betaincinv,
    betaln,
    digamma,
    erf,
    erfc,
    erfcinv,
    erfinv,
    gamma,
    gamma_density,
    gammainc,
    gammaincc,
    gammainccinv,
    gammaincinv,
    lgamma,
    log_ndtr,
    ndtr,
    ndtri,
    owens_t,
    poch,
)
from lineara.ops.scipy.special_composed import stdtr, stdtrit
from lineara.ops.scipy.special_composed import times_log as xlogy
from lineara.ops.scipy.special_composed import times_log1p as xlog1py
from lineara.ops.scipy.special_elementwise import cosm1, expit, log_expit, logit

Rule = Callable[..., Any]
INF = math.inf
LOG_2_PI = math.log(2 * math.pi)


def positive(*shapes: Any) -> Any:
    """The mask where all shape parameters are greater than zero."""
    good = True
    for s in shapes:
        good = good * op("greater")(s, 0)
    return good


@dataclass(frozen=True)
class Law:
    """The formulas of one distribution; a method whose formula is None has no rule.

    `log` is the logarithm of the density, or of an integer's probability.  `inside` is a point of
    the support, at which the formula is evaluated where a value lies outside of the support.
    """

    log: Rule
    density: Rule | None = None
    cdf: Rule | None = None
    sf: Rule | None = None
    logcdf: Rule | None = None
    logsf: Rule | None = None
    ppf: Rule | None = None
    isf: Rule | None = None
    mean: Rule | None = None
    var: Rule | None = None
    entropy: Rule | None = None
    low: Rule | float = -INF
    open: bool = False  # whether the lower end is not in the support
    high: Rule | float = INF
    inside: float = 0.0
    good: Rule = positive
    whole: tuple[int, ...] = ()  # the places of shape parameters that are integers


def exponential(power: Rule, root: Rule, **others: Any) -> dict[str, Any]:
    """The formulas of a distribution with the survival function exp(-power(z))."""
    return {
        "cdf": lambda z, *s: -expm1(-power(z, *s)),
        "sf": lambda z, *s: exp(-power(z, *s)),
        "logsf": lambda z, *s: -power(z, *s),
        "logcdf": lambda z, *s: log_of_rest(-power(z, *s)),
        "ppf": lambda q, *s: root(-log1p(-q), *s),
        "isf": lambda q, *s: root(-log(q), *s),
    } | others


def log_of_rest(t: Value) -> Any:
    """log(1 - exp(t)) for t <= 0."""
    near = op("greater")(t, -math.log(2))
    return where(near, log(-expm1(where(near, t, -1.0))), log1p(-exp(where(near, -1.0, t))))


def of_normal(to: Rule, back: Rule) -> dict[str, Any]:
    """The formulas of a distribution whose values an increasing map `to` makes normal."""
    return {
        "cdf": lambda z, *s: ndtr(to(z, *s)),
        "sf": lambda z, *s: ndtr(-to(z, *s)),
        "logcdf": lambda z, *s: log_ndtr(to(z, *s)),
        "logsf": lambda z, *s: log_ndtr(-to(z, *s)),
        "ppf": lambda q, *s: back(ndtri(q), *s),
        "isf": lambda q, *s: back(-ndtri(q), *s),
    }


def _same(z: Value) -> Any:
    return z


def _zero(z: Shaped) -> Any:
    return z * 0.0


def log1p_ratio(u: Value) -> Any:
    """log(1 + u) / u, by its series near 0."""
    near = op("less")(abs_(u), 0.02)
    small, wide = where(near, u, 0.0), where(near, 1.0, u)
    series = 0.0
    for k in range(10, 0, -1):
        series = 1 / k - small * series
    return where(near, series, log1p(wide) / wide)


def _mirrored(a: Value, b: Value) -> tuple[Any, Any]:
    """The ends of an interval, reflected to where the normal distribution function is small."""
    right = op("greater")(a, 0)
    return where(right, -b, a), where(right, -a, b)


def normal_mass(a: Value, b: Value) -> Any:
    """The probability of a < z < b."""
    low, high = _mirrored(a, b)
    return ndtr(high) - ndtr(low)


def log_normal_mass(a: Value, b: Value) -> Any:
    """The logarithm of `normal_mass`, accurate also in the tails."""
    low, high = _mirrored(a, b)
    top = log_ndtr(high)
    return top + log_of_rest(log_ndtr(low) - top)


def _truncated_quantile(q: Shaped, a: Value, b: Value) -> Any:
    right = op("greater")(a, 0)
    low, high = _mirrored(a, b)
    share = where(right, 1 - q, q)
    z = ndtri(ndtr(low) + share * (ndtr(high) - ndtr(low)))
    return where(right, -z, z)


def _edge(a: Value) -> tuple[Any, Any]:
    """The normal density at a, and a times that density; both 0 at infinity."""
    finite = op("isfinite")(a)
    a = where(finite, a, 0.0)
    density = where(finite, exp(-a * a / 2) / math.sqrt(2 * math.pi), 0.0)
    return density, a * density


def _truncated_mean(a: Value, b: Value) -> Any:
    return (_edge(a)[0] - _edge(b)[0]) / normal_mass(a, b)


def _truncated_var(a: Value, b: Value) -> Any:
    return 1 + (_edge(a)[1] - _edge(b)[1]) / normal_mass(a, b) - _truncated_mean(a, b) ** 2


def _triangle(z: Shaped, c: Value, left: Rule, right: Rule) -> Any:
    """The formula `left` up to the mode c, and `right` above it, on the reflected interval."""
    rises = op("less")(z, c)
    x, d = where(rises, z, 1 - z), where(rises, c, 1 - c)
    return where(rises, left(x, d), right(x, d))


def _extreme(z: Value, c: Value) -> Any:
    """The logarithm of minus the logarithm of the distribution function."""
    return -z * log1p_ratio(-c * z)


def _pareto(z: Value, c: Value) -> Any:
    """Minus the logarithm of the survival function."""
    return z * log1p_ratio(c * z)


def _bend(c: Value, sign: float, beyond: float) -> Any:
    """The finite end of the support for shapes c of that sign; infinity for others."""
    bent = op("greater")(sign * c, 0)
    return where(bent, 1 / where(bent, c, 1.0), beyond)


def _skellam(k: Value, m: Value, n: Value) -> Any:
    """The log probability of a difference of two Poisson counts."""
    order = abs_(k)
    bessel = log(op("ive")(order, 2 * sqrt(m * n)))
    return bessel - (sqrt(m) - sqrt(n)) ** 2 + k / 2 * (log(m) - log(n))


def _student(z: Shaped, v: Value) -> Any:
    """The log density of Student's t; the normal one where v is infinite."""
    normal = op("isinf")(v)
    v = where(normal, 1.0, v)
    log_density = log(poch(v / 2, 0.5)) - log(math.pi * v) / 2 - (v + 1) / 2 * log1p(z * z / v)
    return where(normal, -(z * z) / 2 - LOG_2_PI / 2, log_density)


def _odds(p: Value) -> Any:
    return p / (1 - p)


def _fisher(z: Value, m: Value, n: Value) -> Any:
    """The log density of F with m and n degrees of freedom."""
    log_density = m / 2 * log(m) + n / 2 * log(n) + xlogy(m / 2 - 1, z)
    return log_density - (m + n) / 2 * log(n + m * z) - betaln(m / 2, n / 2)


def _beta_entropy(a: Value, b: Value) -> Any:
    entropy = betaln(a, b) - (a - 1) * digamma(a) - (b - 1) * digamma(b)
    return entropy + (a + b - 2) * digamma(a + b)


CONTINUOUS = {
    "norm": Law(
        lambda z: -(z * z) / 2 - LOG_2_PI / 2,
        **of_normal(_same, _same),
        mean=lambda: 0.0,
        var=lambda: 1.0,
        entropy=lambda: 0.5 + LOG_2_PI / 2,
    ),
    "lognorm": Law(
        lambda z, s: -((log(z) / s) ** 2) / 2 - log(s * z) - LOG_2_PI / 2,
        **of_normal(lambda z, s: log(z) / s, lambda y, s: exp(s * y)),
        mean=lambda s: exp(s * s / 2),
        var=lambda s: expm1(s * s) * exp(s * s),
        entropy=lambda s: 0.5 + LOG_2_PI / 2 + log(s),
        low=0.0,
        open=True,
        inside=1.0,
    ),
    "expon": Law(
        lambda z: -z,
        **exponential(_same, _same),
        mean=lambda: 1.0,
        var=lambda: 1.0,
        entropy=lambda: 1.0,
        low=0.0,
        inside=1.0,
    ),
    "gamma": Law(
        lambda z, a: xlogy(a - 1, z) - z - lgamma(a),
        density=lambda z, a: gamma_density(a, z),
        cdf=lambda z, a: gammainc(a, z),
        sf=lambda z, a: gammaincc(a, z),
        ppf=lambda q, a: gammaincinv(a, q),
        isf=lambda q, a: gammainccinv(a, q),
        mean=lambda a: a,
        var=lambda a: a,
        entropy=lambda a: digamma(a) * (1 - a) + a + lgamma(a),
        low=0.0,
        inside=1.0,
    ),
    "beta": Law(
        lambda z, a, b: xlog1py(b - 1, -z) + xlogy(a - 1, z) - betaln(a, b),
        density=lambda z, a, b: beta_density(a, b, z),
        cdf=lambda z, a, b: betainc(a, b, z),
        sf=lambda z, a, b: betaincc(a, b, z),
        ppf=lambda q, a, b: betaincinv(a, b, q),
        isf=lambda q, a, b: betainccinv(a, b, q),
        mean=lambda a, b: a / (a + b),
        var=lambda a, b: a * b / ((a + b) ** 2 * (a + b + 1)),
        entropy=_beta_entropy,
        low=0.0,
        high=1.0,
        inside=0.5,
    ),
    "t": Law(
        _student,
        cdf=lambda z, v: stdtr(v, z),
        sf=lambda z, v: stdtr(v, -z),
        ppf=lambda q, v: stdtrit(v, q),
        isf=lambda q, v: -stdtrit(v, q),
    ),
    "cauchy": Law(
        lambda z: -math.log(math.pi) - log1p(z * z),
        cdf=lambda z: atan2(1.0, -z) / math.pi,
        sf=lambda z: atan2(1.0, z) / math.pi,
        ppf=lambda q: -cos(math.pi * q) / sin(math.pi * q),
        isf=lambda q: cos(math.pi * q) / sin(math.pi * q),
        entropy=lambda: math.log(4 * math.pi),
    ),
    "uniform": Law(
        _zero,
        cdf=_same,
        sf=lambda z: 1 - z,
        ppf=_same,
        isf=lambda q: 1 - q,
        mean=lambda: 0.5,
        var=lambda: 1 / 12,
        entropy=lambda: 0.0,
        low=0.0,
        high=1.0,
        inside=0.5,
    ),
    "laplace": Law(
        lambda z: -abs_(z) - math.log(2),
        cdf=lambda z: where(op("greater")(z, 0), 1 - exp(-abs_(z)) / 2, exp(-abs_(z)) / 2),
        sf=lambda z: where(op("greater")(z, 0), exp(-abs_(z)) / 2, 1 - exp(-abs_(z)) / 2),
        ppf=lambda q: where(op("greater")(q, 0.5), -log(2 * (1 - q)), log(2 * q)),
        isf=lambda q: where(op("greater")(q, 0.5), log(2 * (1 - q)), -log(2 * q)),
        mean=lambda: 0.0,
        var=lambda: 2.0,
        entropy=lambda: 1 + math.log(2),
    ),
    "logistic": Law(
        lambda z: log_expit(z) + log_expit(-z),
        cdf=expit,
        sf=lambda z: expit(-z),
        logcdf=log_expit,
        logsf=lambda z: log_expit(-z),
        ppf=logit,
        isf=lambda q: -logit(q),
        mean=lambda: 0.0,
        var=lambda: math.pi**2 / 3,
        entropy=lambda: 2.0,
    ),
    "chi2": Law(
        lambda z, k: xlogy(k / 2 - 1, z) - z / 2 - lgamma(k / 2) - math.log(2) * k / 2,
        density=lambda z, k: gamma_density(k / 2, z / 2) / 2,
        cdf=lambda z, k: gammainc(k / 2, z / 2),
        sf=lambda z, k: gammaincc(k / 2, z / 2),
        ppf=lambda q, k: 2 * gammaincinv(k / 2, q),
        isf=lambda q, k: 2 * gammainccinv(k / 2, q),
        mean=lambda k: k,
        var=lambda k: 2 * k,
        low=0.0,
        inside=1.0,
    ),
    "f": Law(
        _fisher,
        cdf=lambda z, m, n: betainc(m / 2, n / 2, m * z / (n + m * z)),
        sf=lambda z, m, n: betainc(n / 2, m / 2, n / (n + m * z)),
        ppf=lambda q, m, n: _odds(betaincinv(m / 2, n / 2, q)) * n / m,
        isf=lambda q, m, n: n / m / _odds(betaincinv(n / 2, m / 2, q)),
        low=0.0,
        inside=1.0,
    ),
    "weibull_min": Law(
        lambda z, c: log(c) + xlogy(c - 1, z) - z**c,
        **exponential(lambda z, c: z**c, lambda e, c: e ** (1 / c)),
        mean=lambda c: gamma(1 + 1 / c),
        var=lambda c: gamma(1 + 2 / c) - gamma(1 + 1 / c) ** 2,
        low=0.0,
        inside=1.0,
    ),
    "halfnorm": Law(
        lambda z: math.log(2 / math.pi) / 2 - z * z / 2,
        cdf=lambda z: erf(z * math.sqrt(0.5)),
        sf=lambda z: erfc(z * math.sqrt(0.5)),
        logsf=lambda z: math.log(2) + log_ndtr(-z),
        ppf=lambda q: math.sqrt(2) * erfinv(q),
        isf=lambda q: math.sqrt(2) * erfcinv(q),
        mean=lambda: math.sqrt(2 / math.pi),
        var=lambda: 1 - 2 / math.pi,
        entropy=lambda: 0.5 + math.log(math.pi / 2) / 2,
        low=0.0,
        inside=1.0,
    ),
    "rayleigh": Law(
        lambda z: log(z) - z * z / 2,
        **exponential(lambda z: z * z / 2, lambda e: sqrt(2 * e)),
        mean=lambda: math.sqrt(math.pi / 2),
        var=lambda: 2 - math.pi / 2,
        low=0.0,
        open=True,
        inside=1.0,
    ),
    "pareto": Law(
        lambda z, b: log(b) - (b + 1) * log(z),
        **exponential(lambda z, b: b * log(z), lambda e, b: exp(e / b)),
        low=1.0,
        inside=2.0,
    ),
    "gumbel_r": Law(
        lambda z: -z - exp(-z),
        cdf=lambda z: exp(-exp(-z)),
        logcdf=lambda z: -exp(-z),
        sf=lambda z: -expm1(-exp(-z)),
        ppf=lambda q: -log(-log(q)),
        isf=lambda q: -log(-log1p(-q)),
        mean=lambda: np.euler_gamma,
        var=lambda: math.pi**2 / 6,
        entropy=lambda: np.euler_gamma + 1,
    ),
    "gumbel_l": Law(
        lambda z: z - exp(z),
        cdf=lambda z: -expm1(-exp(z)),
        sf=lambda z: exp(-exp(z)),
        logsf=lambda z: -exp(z),
        ppf=lambda q: log(-log1p(-q)),
        isf=lambda q: log(-log(q)),
        mean=lambda: -np.euler_gamma,
        var=lambda: math.pi**2 / 6,
    ),
    "invgamma": Law(
        lambda z, a: -(a + 1) * log(z) - lgamma(a) - 1 / z,
        cdf=lambda z, a: gammaincc(a, 1 / z),
        sf=lambda z, a: gammainc(a, 1 / z),
        ppf=lambda q, a: 1 / gammainccinv(a, q),
        isf=lambda q, a: 1 / gammaincinv(a, q),
        low=0.0,
        open=True,
        inside=1.0,
    ),
    "halfcauchy": Law(
        lambda z: math.log(2 / math.pi) - log1p(z * z),
        cdf=lambda z: atan2(z, 1.0) * (2 / math.pi),
        sf=lambda z: atan2(1.0, z) * (2 / math.pi),
        ppf=lambda q: sin(math.pi / 2 * q) / cos(math.pi / 2 * q),
        isf=lambda q: cos(math.pi / 2 * q) / sin(math.pi / 2 * q),
        low=0.0,
        inside=1.0,
    ),
    "powerlaw": Law(
        lambda z, a: log(a) + xlogy(a - 1, z),
        cdf=lambda z, a: z**a,
        logcdf=lambda z, a: a * log(z),
        ppf=lambda q, a: q ** (1 / a),
        isf=lambda q, a: (1 - q) ** (1 / a),
        mean=lambda a: a / (a + 1),
        low=0.0,
        high=1.0,
        inside=0.5,
    ),
    "truncnorm": Law(
        lambda z, a, b: -(z * z) / 2 - LOG_2_PI / 2 - log_normal_mass(a, b),
        cdf=lambda z, a, b: normal_mass(a, z) / normal_mass(a, b),
        sf=lambda z, a, b: normal_mass(z, b) / normal_mass(a, b),
        ppf=_truncated_quantile,
        mean=_truncated_mean,
        var=_truncated_var,
        low=lambda a, b: a,
        high=lambda a, b: b,
        good=lambda a, b: op("less")(a, b),
    ),
    "triang": Law(
        lambda z, c: (
            math.log(2) + _triangle(z, c, lambda x, d: log(x / d), lambda x, d: log(x / d))
        ),
        cdf=lambda z, c: _triangle(z, c, lambda x, d: x * x / d, lambda x, d: 1 - x * x / d),
        sf=lambda z, c: _triangle(z, c, lambda x, d: 1 - x * x / d, lambda x, d: x * x / d),
        mean=lambda c: (c + 1) / 3,
        var=lambda c: (1 - c + c * c) / 18,
        entropy=lambda c: 0.5 - math.log(2),
        low=0.0,
        high=1.0,
        inside=0.5,
        good=lambda c: _share(c),
    ),
    "genextreme": Law(
        lambda z, c: (1 - c) * _extreme(z, c) - exp(_extreme(z, c)),
        cdf=lambda z, c: exp(-exp(_extreme(z, c))),
        logcdf=lambda z, c: -exp(_extreme(z, c)),
        sf=lambda z, c: -expm1(-exp(_extreme(z, c))),
        low=lambda c: _bend(c, -1, -INF),
        high=lambda c: _bend(c, 1, INF),
        good=lambda c: op("isfinite")(c),
    ),
    "genpareto": Law(
        lambda z, c: -(1 + c) * _pareto(z, c),
        cdf=lambda z, c: -expm1(-_pareto(z, c)),
        sf=lambda z, c: exp(-_pareto(z, c)),
        logsf=lambda z, c: -_pareto(z, c),
        low=0.0,
        high=lambda c: -_bend(c, -1, -INF),
        good=lambda c: op("isfinite")(c),
    ),
    "loguniform": Law(
        lambda z, a, b: -log(z) - log(log(b) - log(a)),
        cdf=lambda z, a, b: (log(z) - log(a)) / (log(b) - log(a)),
        sf=lambda z, a, b: (log(b) - log(z)) / (log(b) - log(a)),
        ppf=lambda q, a, b: exp(log(a) + q * (log(b) - log(a))),
        isf=lambda q, a, b: exp(log(b) + q * (log(a) - log(b))),
        mean=lambda a, b: (b - a) / (log(b) - log(a)),
        low=lambda a, b: a,
        high=lambda a, b: b,
        inside=1.0,
        good=lambda a, b: op("greater")(a, 0) * op("greater")(b, a),
    ),
    "vonmises": Law(
        lambda z, k: k * cosm1(z) - LOG_2_PI - log(i0e(k)),
        good=lambda k: op("greater_equal")(k, 0),
    ),
    "rice": Law(
        lambda z, b: log(z) - (z - b) ** 2 / 2 + log(i0e(z * b)),
        low=0.0,
        open=True,
        inside=1.0,
        good=lambda b: op("greater_equal")(b, 0),
    ),
    "invgauss": Law(
        lambda z, m: -(LOG_2_PI + 3 * log(z)) / 2 - (z / m - 1) ** 2 / (2 * z),
        mean=lambda m: m,
        var=lambda m: m**3,
        low=0.0,
        open=True,
        inside=1.0,
    ),
    "fisk": Law(
        lambda z, c: log(c) + xlogy(c - 1, z) + 2 * log_expit(-c * log(z)),
        cdf=lambda z, c: expit(c * log(z)),
        sf=lambda z, c: expit(-c * log(z)),
        ppf=lambda q, c: exp(logit(q) / c),
        isf=lambda q, c: exp(-logit(q) / c),
        low=0.0,
        open=True,
        inside=1.0,
    ),
    "lomax": Law(
        lambda z, c: log(c) - (c + 1) * log1p(z),
        **exponential(lambda z, c: c * log1p(z), lambda e, c: expm1(e / c)),
        low=0.0,
        inside=1.0,
    ),
    "weibull_max": Law(
        lambda z, c: log(c) + xlogy(c - 1, -z) - (-z) ** c,
        cdf=lambda z, c: exp(-((-z) ** c)),
        logcdf=lambda z, c: -((-z) ** c),
        sf=lambda z, c: -expm1(-((-z) ** c)),
        ppf=lambda q, c: -((-log(q)) ** (1 / c)),
        isf=lambda q, c: -((-log1p(-q)) ** (1 / c)),
        high=0.0,
        inside=-1.0,
    ),
    "maxwell": Law(
        lambda z: math.log(2 / math.pi) / 2 + 2 * log(z) - z * z / 2,
        cdf=lambda z: gammainc(1.5, z * z / 2),
        sf=lambda z: gammaincc(1.5, z * z / 2),
        ppf=lambda q: sqrt(2 * gammaincinv(1.5, q)),
        isf=lambda q: sqrt(2 * gammainccinv(1.5, q)),
        mean=lambda: 2 * math.sqrt(2 / math.pi),
        var=lambda: 3 - 8 / math.pi,
        low=0.0,
        open=True,
        inside=1.0,
    ),
    "chi": Law(
        lambda z, k: (1 - k / 2) * math.log(2) - lgamma(k / 2) + xlogy(k - 1, z) - z * z / 2,
        cdf=lambda z, k: gammainc(k / 2, z * z / 2),
        sf=lambda z, k: gammaincc(k / 2, z * z / 2),
        ppf=lambda q, k: sqrt(2 * gammaincinv(k / 2, q)),
        isf=lambda q, k: sqrt(2 * gammainccinv(k / 2, q)),
        low=0.0,
        inside=1.0,
    ),
    "betaprime": Law(
        lambda z, a, b: xlogy(a - 1, z) - xlog1py(a + b, z) - betaln(a, b),
        cdf=lambda z, a, b: betainc(a, b, z / (1 + z)),
        sf=lambda z, a, b: betainc(b, a, 1 / (1 + z)),
        ppf=lambda q, a, b: _odds(betaincinv(a, b, q)),
        isf=lambda q, a, b: 1 / _odds(betaincinv(b, a, q)),
        low=0.0,
        inside=1.0,
    ),
    "gennorm": Law(
        lambda z, b: log(b / 2) - lgamma(1 / b) - abs_(z) ** b,
        inside=1.0,
    ),
    "johnsonsu": Law(
        lambda z, a, b: log(b) - log1p(z * z) / 2 - (a + b * asinh(z)) ** 2 / 2 - LOG_2_PI / 2,
        **of_normal(lambda z, a, b: a + b * asinh(z), lambda y, a, b: sinh((y - a) / b)),
        good=lambda a, b: op("greater")(b, 0) * op("isfinite")(a),
    ),
    "exponnorm": Law(
        lambda z, k: 1 / (2 * k * k) - z / k + log_ndtr(z - 1 / k) - log(k),
        mean=lambda k: k,
        var=lambda k: 1 + k * k,
    ),
    "nakagami": Law(
        lambda z, v: math.log(2) + xlogy(v, v) - lgamma(v) + xlogy(2 * v - 1, z) - v * z * z,
        cdf=lambda z, v: gammainc(v, v * z * z),
        sf=lambda z, v: gammaincc(v, v * z * z),
        ppf=lambda q, v: sqrt(gammaincinv(v, q) / v),
        isf=lambda q, v: sqrt(gammainccinv(v, q) / v),
        low=0.0,
        inside=1.0,
    ),
    "skewnorm": Law(
        lambda z, a: math.log(2) - z * z / 2 - LOG_2_PI / 2 + log_ndtr(a * z),
        cdf=lambda z, a: ndtr(z) - 2 * owens_t(z, a),
        good=lambda a: op("isfinite")(a),
    ),
}

CONTINUOUS["reciprocal"] = CONTINUOUS["loguniform"]


def _choices(n: Value, k: Value) -> Any:
    """The logarithm of the binomial coefficient."""
    return -betaln(1 + n - k, 1 + k) - log(n + 1)


def _share(p: Value) -> Any:
    return op("greater_equal")(p, 0) * op("less_equal")(p, 1)


DISCRETE = {
    "poisson": Law(
        lambda k, m: xlogy(k, m) - lgamma(k + 1) - m,
        cdf=lambda k, m: gammaincc(k + 1, m),
        sf=lambda k, m: gammainc(k + 1, m),
        mean=lambda m: m,
        var=lambda m: m,
        low=0.0,
        inside=0.0,
        good=lambda m: op("greater_equal")(m, 0),
    ),
    "binom": Law(
        lambda k, n, p: _choices(n, k) + xlogy(k, p) + xlog1py(n - k, -p),
        cdf=lambda k, n, p: where(k >= n, 1.0, betaincc(k + 1, np.maximum(n - k, 1), p)),
        sf=lambda k, n, p: where(k >= n, 0.0, betainc(k + 1, np.maximum(n - k, 1), p)),
        mean=lambda n, p: n * p,
        var=lambda n, p: n * p * (1 - p),
        low=0.0,
        high=lambda n, p: n,
        good=lambda n, p: _share(p) * op("greater_equal")(n, 0),
        whole=(0,),
    ),
    "bernoulli": Law(
        lambda k, p: xlogy(k, p) + xlog1py(1 - k, -p),
        cdf=lambda k, p: where(op("greater_equal")(k, 1), 1.0, 1 - p),
        sf=lambda k, p: where(op("greater_equal")(k, 1), 0.0, p),
        mean=lambda p: p,
        var=lambda p: p * (1 - p),
        low=0.0,
        high=1.0,
        good=_share,
    ),
    "geom": Law(
        lambda k, p: xlog1py(k - 1, -p) + log(p),
        **exponential(lambda k, p: -k * log1p(-p), lambda e, p: e, ppf=None, isf=None),
        mean=lambda p: 1 / p,
        var=lambda p: (1 - p) / (p * p),
        low=1.0,
        inside=1.0,
        good=lambda p: _share(p) * op("greater")(p, 0),
    ),
    "betabinom": Law(
        lambda k, n, a, b: _choices(n, k) + betaln(k + a, n - k + b) - betaln(a, b),
        mean=lambda n, a, b: n * a / (a + b),
        var=lambda n, a, b: n * (a + b + n) * a * b / ((a + b) ** 2 * (a + b + 1)),
        low=0.0,
        high=lambda n, a, b: n,
        good=lambda n, a, b: op("greater_equal")(n, 0) * positive(a, b),
        whole=(0,),
    ),
    "skellam": Law(_skellam, mean=lambda m, n: m - n, var=lambda m, n: m + n),
    "logser": Law(
        lambda k, p: k * log(p) - log(k) - log(-log1p(-p)),
        low=1.0,
        inside=1.0,
        good=lambda p: op("greater")(p, 0) * op("less")(p, 1),
    ),
    "nbinom": Law(
        lambda k, n, p: -betaln(n, k + 1) - log(n + k) + n * log(p) + xlog1py(k, -p),
        cdf=lambda k, n, p: betainc(n, k + 1, p),
        sf=lambda k, n, p: betaincc(n, k + 1, p),
        mean=lambda n, p: n * (1 - p) / p,
        var=lambda n, p: n * (1 - p) / (p * p),
        low=0.0,
        good=lambda n, p: _share(p) * op("greater")(n, 0) * op("greater")(p, 0),
    ),
}
