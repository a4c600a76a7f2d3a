"""scipy.stats: statistics of samples: moments, correlations, tests, transformations.

Ranks and statistics of ranks are locally constant, and are computed from plain values.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from lineara.errors import NoRuleError
from lineara.facts.hints import Axis, DType, Shaped, Value
from lineara.facts.primitive import Box, implements, op, registry
from lineara.facts.types import type_of
from lineara.ops.elementwise import cos, exp, log, log1p, sin, sqrt, where
from lineara.ops.index import take
from lineara.ops.scipy.special import betaincc, gammaincc
from lineara.ops.scipy.special_composed import stdtr
from lineara.ops.scipy.special_composed import times_log as xlogy
from lineara.ops.scipy.special_elementwise import boxcox as power_law
from lineara.ops.scipy.special_elementwise import rel_entr
from lineara.ops.shape import as_floats, normal_axis

SCALES = {"normal": 1.3489795003921634}


def count(x: Shaped, axis: Axis) -> int:
    """The number of values along the axes."""
    shape = type_of(x).shape
    axes = range(len(shape)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    return math.prod([shape[i] for i in axes])


def without_axis(y: Shaped, axis: Axis, keepdims: bool) -> Any:
    """A result of `keepdims=True`, without the reduced axes unless `keepdims`."""
    return y if keepdims else y.reshape(()) if axis is None else np.squeeze(y, axis)


def no_policy(name: str, nan_policy: str) -> None:
    """Raise an error for a `nan_policy` other than "propagate"."""
    if nan_policy != "propagate":
        raise NoRuleError(
            f"scipy.stats.{name}: nan_policy={nan_policy!r} of traced values has no rule; drop "
            "them before: x[~np.isnan(x)]"
        )


Method = Callable[..., Any]


def of_samples(name: str, axis: int | None = 0) -> Callable[[Method], Method]:
    """Declare SciPy's function from a reduction `function(x, axis, ...)` that keeps its axis."""

    def register(function: Method) -> Method:
        default = axis

        def call(x, *args, axis=default, nan_policy="propagate", keepdims=False, **options):
            no_policy(name, nan_policy)
            before = BEFORE.get(name, 0)  # number of positional arguments before the axis
            if len(args) > before:
                args, axis = (*args[:before], *args[before + 1 :]), args[before]
            return without_axis(function(as_floats(x), axis, *args, **options), axis, keepdims)

        implements(f"scipy.stats.{name}")(call)
        return function

    return register


BEFORE = {"moment": 1, "trim_mean": 1, "pmean": 1}


# --- moments -------------------------------------------------------------------------------------


def central(x: Shaped, axis: Axis, order: int) -> Any:
    """The mean of a power of the distance from the mean."""
    d = x - np.mean(x, axis=axis, keepdims=True)
    return np.mean(d**order, axis=axis, keepdims=True)


@of_samples("moment")
def moment(x, axis, order=1, *, center=None):
    """The mean of a power of the distance from a center."""
    if isinstance(order, list | tuple | np.ndarray):
        raise NoRuleError("scipy.stats.moment: several orders have no rule; ask for one at a time")
    if center is None:
        return central(x, axis, order) if order != 1 else np.mean(x * 0.0, axis=axis, keepdims=True)
    return np.mean((x - center) ** order, axis=axis, keepdims=True)


def _unless_flat(x: Shaped, axis: Axis, second: Shaped, y: Shaped) -> Any:
    """y, but NaN where all values are equal up to rounding."""
    mean = np.mean(x, axis=axis, keepdims=True)
    flat = second <= (np.finfo(type_of(x).dtype).eps * mean) ** 2
    return where(flat, np.nan, y)


@of_samples("skew")
def skew(x, axis, bias=True):
    """The third moment in units of the standard deviation."""
    n, second, third = count(x, axis), central(x, axis, 2), central(x, axis, 3)
    y = third / second**1.5
    if not bias and n > 2:
        y = y * (math.sqrt(n * (n - 1)) / (n - 2))
    return _unless_flat(x, axis, second, y)


@of_samples("kurtosis")
def kurtosis(x, axis, fisher=True, bias=True):
    """The fourth moment in units of the variance, less that of a normal distribution."""
    n, second, fourth = count(x, axis), central(x, axis, 2), central(x, axis, 4)
    y = fourth / second**2
    if not bias and n > 3:
        y = ((n * n - 1) * y - 3 * (n - 1) ** 2) / ((n - 2) * (n - 3)) + 3
    return _unless_flat(x, axis, second, y - 3 if fisher else y)


def _std(x: Shaped, axis: Any, ddof: int) -> Any:
    return np.std(x, axis=axis, ddof=ddof, keepdims=True)


@of_samples("sem")
def sem(x, axis, ddof=1):
    """The standard error of the mean."""
    return _std(x, axis, ddof) / math.sqrt(count(x, axis))


@of_samples("variation")
def variation(x, axis, ddof=0):
    """The standard deviation over the mean."""
    return _std(x, axis, ddof) / np.mean(x, axis=axis, keepdims=True)


@of_samples("gstd")
def gstd(x, axis, ddof=1):
    """The geometric standard deviation."""
    return exp(_std(log(x), axis, ddof))


def _mean(x: Shaped, axis: Any, dtype: DType, weights: Any) -> Any:
    x = x if dtype is None else op("astype")(x, dtype=np.dtype(dtype))
    return np.average(x, axis=axis, weights=weights, keepdims=True)


@of_samples("gmean")
def gmean(x, axis, dtype=None, weights=None):
    """The geometric mean."""
    return exp(_mean(log(x), axis, dtype, weights))


@of_samples("hmean")
def hmean(x, axis, dtype=None, *, weights=None):
    """The harmonic mean."""
    return np.reciprocal(_mean(1.0 / x, axis, dtype, weights))


def _is_zero(p: Value) -> bool:
    """Whether a power is a plain zero."""
    return not isinstance(p, Box) and p == 0


@of_samples("pmean")
def pmean(x, axis, p, *, dtype=None, weights=None):
    """The power mean: the p-th root of the mean of p-th powers."""
    if _is_zero(p):
        return gmean(x, axis, dtype, weights)
    return _mean(x**p, axis, dtype, weights) ** (1.0 / p)


@of_samples("iqr", axis=None)
def iqr(x, axis, rng=(25, 75), scale=1.0, interpolation="linear"):
    """The difference of two quantiles."""
    if isinstance(scale, str):
        scale = SCALES[scale.lower()]
    of = {"axis": axis, "method": interpolation, "keepdims": True}
    low, high = (np.percentile(x, q, **of) for q in sorted(rng))
    return (high - low) / scale


@of_samples("median_abs_deviation")
def median_abs_deviation(x, axis, center=np.median, scale=1.0):
    """The median absolute distance from a center."""
    scale = SCALES["normal"] / 2 if scale == "normal" else scale
    middle = center(x, axis=axis)
    middle = middle if axis is None else np.expand_dims(middle, axis)
    return np.median(abs(x - middle), axis=axis, keepdims=True) / scale


@of_samples("trim_mean")
def trim_mean(x, axis, proportiontocut):
    """The mean without the smallest and the largest values."""
    if axis is None:
        return np.reshape(trim_mean(np.ravel(x), 0, proportiontocut), (1,) * type_of(x).ndim)
    x = np.sort(np.moveaxis(x, axis, 0), axis=0)
    n = type_of(x).shape[0]
    cut = int(proportiontocut * n)
    return np.expand_dims(np.mean(x[cut : n - cut], axis=0), axis)


class Description(NamedTuple):
    """The result of scipy.stats.describe."""

    nobs: int
    minmax: tuple[Any, Any]
    mean: Any
    variance: Any
    skewness: Any
    kurtosis: Any


@implements("scipy.stats.describe")
def describe(a, axis=0, ddof=1, bias=True, nan_policy="propagate"):
    """Number, extremes, mean, variance, skewness and kurtosis of samples."""
    no_policy("describe", nan_policy)
    x = as_floats(a)
    both = [without_axis(f(x, axis, bias=bias), axis, False) for f in (skew, kurtosis)]
    ends = np.min(x, axis=axis), np.max(x, axis=axis)
    middle = np.mean(x, axis=axis), np.var(x, axis=axis, ddof=ddof)
    return Description(count(x, axis), ends, *middle, *both)


# --- standard scores, entropy, distances ---------------------------------------------------------


@implements("scipy.stats.zmap")
def zmap(scores, compare, axis=0, ddof=0, nan_policy="propagate"):
    """Scores relative to the mean and standard deviation of the sample `compare`."""
    no_policy("zmap", nan_policy)
    same = scores is compare
    scores, compare = as_floats(scores), as_floats(compare)
    mean, scale = np.mean(compare, axis=axis, keepdims=True), _std(compare, axis, ddof)
    y = (scores - mean) / scale
    flat = scale <= abs(np.finfo(type_of(compare).dtype).eps * mean)
    return where(flat, np.nan, y) if same else y


@implements("scipy.stats.zscore")
def zscore(a, axis=0, ddof=0, nan_policy="propagate"):
    """Values relative to their mean and standard deviation."""
    return zmap(a, a, axis, ddof, nan_policy)


@implements("scipy.stats.gzscore")
def gzscore(a, axis=0, ddof=0, nan_policy="propagate"):
    """The z-scores of the logarithms."""
    logs = log(as_floats(a))
    return zmap(logs, logs, axis, ddof, nan_policy)


@implements("scipy.stats.entropy")
def entropy(pk, qk=None, base=None, axis=0, *, nan_policy="propagate", keepdims=False):
    """The entropy of a distribution, or its divergence from another one."""
    no_policy("entropy", nan_policy)
    p = as_floats(pk)
    p = p / np.sum(p, axis=axis, keepdims=True)
    if qk is None:
        terms = -xlogy(p, p)
    else:
        q = as_floats(qk)
        terms = rel_entr(p, q / np.sum(q, axis=axis, keepdims=True))
    y = np.sum(terms, axis=axis, keepdims=keepdims)
    return y if base is None else y / np.log(base)


def _weights(values: Shaped, weights: Shaped) -> Any:
    n = type_of(values).shape[0]
    w = np.full(n, 1.0 / n) if weights is None else as_floats(weights)
    return w if weights is None else w / np.sum(w)


def _between(u: Shaped, v: Shaped, u_weights: Any, v_weights: Any, of: Method) -> Any:
    """The integral of `of(F - G)` for the empirical distribution functions F and G."""
    u, v = as_floats(u), as_floats(v)
    both = np.concatenate([u, v])
    jumps = np.concatenate([_weights(u, u_weights), -_weights(v, v_weights)])
    order = np.argsort(both, kind="stable")
    apart = np.cumsum(take(jumps, order, 0))[:-1]
    return np.sum(of(apart) * np.diff(take(both, order, 0)))


@implements("scipy.stats.wasserstein_distance")
def wasserstein_distance(u_values, v_values, u_weights=None, v_weights=None):
    """The area between two empirical distribution functions."""
    return _between(u_values, v_values, u_weights, v_weights, abs)


@implements("scipy.stats.energy_distance")
def energy_distance(u_values, v_values, u_weights=None, v_weights=None):
    """The root of twice the integral of the squared difference of distribution functions."""
    return sqrt(2 * _between(u_values, v_values, u_weights, v_weights, lambda d: d * d))


# --- tests ---------------------------------------------------------------------------------------


class Tested:
    """A statistic and its p-value, which is computed when it is asked for.

    Other attributes are those of SciPy's result.
    """

    statistic: Value

    def __init__(self, statistic: Value, pvalue: Callable[[], Any], **others: Any) -> None:
        self.statistic, self._pvalue = statistic, pvalue
        vars(self).update(others)

    @property
    def pvalue(self) -> Any:
        """The p-value, computed at the first access."""
        return self._pvalue()

    def __iter__(self) -> Any:
        return iter((self.statistic, self.pvalue))

    def __getitem__(self, i: Any) -> Any:
        return self.statistic if i in (0, -2) else (self.statistic, self.pvalue)[i]

    def __len__(self) -> int:
        return 2


def tail(t: Value, alternative: str, above: Callable[[Any], Any]) -> Any:
    """The p-value of a symmetric statistic t, where `above(t)` is the probability to exceed t."""
    if alternative not in ("two-sided", "less", "greater"):
        raise ValueError("`alternative` must be 'less', 'greater', or 'two-sided'.")
    if alternative == "two-sided":
        return 2 * above(abs(t))
    return above(t if alternative == "greater" else -t)


def _of_student(t: Shaped, df: Value, alternative: str) -> Tested:
    return Tested(t, lambda: tail(t, alternative, lambda s: stdtr(df, -s)), df=df)


@implements("scipy.stats.ttest_1samp")
def ttest_1samp(a, popmean, axis=0, nan_policy="propagate", alternative="two-sided"):
    """The t-test for the mean of one sample."""
    no_policy("ttest_1samp", nan_policy)
    x = as_floats(a)
    t = (np.mean(x, axis=axis) - popmean) / without_axis(sem(x, axis), axis, False)
    return _of_student(t, count(x, axis) - 1, alternative)


@implements("scipy.stats.ttest_rel")
def ttest_rel(a, b, axis=0, nan_policy="propagate", alternative="two-sided"):
    """The t-test for the mean of paired differences."""
    return ttest_1samp(as_floats(a) - as_floats(b), 0.0, axis, nan_policy, alternative)


@implements("scipy.stats.ttest_ind")
def ttest_ind(
    a, b, *, axis=0, equal_var=True, nan_policy="propagate", alternative="two-sided", trim=0,
    method=None,
):  # fmt: skip
    """The t-test for the means of two independent samples."""
    no_policy("ttest_ind", nan_policy)
    if trim or method is not None:
        raise NoRuleError("scipy.stats.ttest_ind: trim= and method= of traced values have no rule")
    x, y = as_floats(a), as_floats(b)
    n, m = count(x, axis), count(y, axis)
    v, w = np.var(x, axis=axis, ddof=1), np.var(y, axis=axis, ddof=1)
    if equal_var:
        df = n + m - 2.0
        wide = ((n - 1) * v + (m - 1) * w) / df * (1 / n + 1 / m)
    else:  # Welch's test, whose degrees of freedom are differentiable
        wide = v / n + w / m
        df = wide**2 / ((v / n) ** 2 / (n - 1) + (w / m) ** 2 / (m - 1))
    t = (np.mean(x, axis=axis) - np.mean(y, axis=axis)) / sqrt(wide)
    return _of_student(t, df, alternative)


@implements("scipy.stats.f_oneway")
def f_oneway(*samples, axis=0, equal_var=True, nan_policy="propagate", keepdims=False):
    """The analysis of variance: the F-test for equal means of several samples."""
    no_policy("f_oneway", nan_policy)
    if not equal_var or keepdims or axis is None:
        raise NoRuleError(
            "scipy.stats.f_oneway: equal_var=False, keepdims= and axis=None have no rule"
        )
    parts = [as_floats(s) for s in samples]
    axis = normal_axis(axis, type_of(parts[0]).ndim, "f_oneway")
    sizes = [count(s, axis) for s in parts]
    middle = np.mean(np.concatenate(parts, axis=axis), axis=axis)
    pairs = list(zip(sizes, parts, strict=True))
    between = sum(n * (np.mean(s, axis=axis) - middle) ** 2 for n, s in pairs)
    within = sum(n * np.var(s, axis=axis) for n, s in pairs)
    m, n = len(parts) - 1, sum(sizes) - len(parts)
    f = (between / m) / (within / n)
    return Tested(f, lambda: 1 - betaincc(n / 2, m / 2, n / (n + m * f)))


@implements("scipy.stats.chisquare")
def chisquare(f_obs, f_exp=None, ddof=0, axis=0, *, sum_check=True):
    """The chi-squared test of observed against expected frequencies."""
    x = as_floats(f_obs)
    e = np.mean(x, axis=axis, keepdims=True) if f_exp is None else as_floats(f_exp)
    statistic = np.sum((x - e) ** 2 / e, axis=axis)
    half = (count(x, axis) - 1 - ddof) / 2
    return Tested(statistic, lambda: gammaincc(half, statistic / 2))


@implements("scipy.stats.pearsonr")
def pearsonr(x, y, *, alternative="two-sided", method=None, axis=0):
    """The correlation of two samples."""
    if method is not None:
        raise NoRuleError("scipy.stats.pearsonr: method= of traced values has no rule")
    x, y = as_floats(x), as_floats(y)
    a, b = (v - np.mean(v, axis=axis, keepdims=True) for v in (x, y))
    sides = sqrt(np.sum(a * a, axis=axis)), sqrt(np.sum(b * b, axis=axis))
    r = np.sum(a * b, axis=axis) / (sides[0] * sides[1])
    half = count(x, axis) / 2 - 1

    def above(r: Value) -> Any:
        return betaincc(half, half, (1 + r) / 2)

    return Tested(r, lambda: tail(r, alternative, above), correlation=r)


class Line(NamedTuple):
    """The result of scipy.stats.linregress."""

    slope: Any
    intercept: Any
    rvalue: Any
    pvalue: Any
    stderr: Any


class _LineWithError(Line):
    intercept_stderr: Any = None


@implements("scipy.stats.linregress")
def linregress(x, y, alternative="two-sided"):
    """The straight line of least squares, with its correlation and errors."""
    x, y = as_floats(x), as_floats(y)
    n = count(x, 0)
    middle = np.mean(x), np.mean(y)
    a, b = x - middle[0], y - middle[1]
    xx, xy, yy = np.mean(a * a), np.mean(a * b), np.mean(b * b)
    slope, r = xy / xx, xy / sqrt(xx * yy)
    if n == 2:  # a line through both
        error = slope * 0.0
        p = float(not np.all(y[0] != y[1]))
    else:
        t = r * sqrt((n - 2) / ((1.0 - r + 1e-20) * (1.0 + r + 1e-20)))
        p = tail(t, alternative, lambda s: stdtr(n - 2, -s))
        error = sqrt((1 - r * r) * yy / xx / (n - 2))
    line = _LineWithError(slope, middle[1] - slope * middle[0], r, p, error)
    line.intercept_stderr = error * sqrt(xx + middle[0] ** 2)
    return line


# --- directions ----------------------------------------------------------------------------------


def _directions(samples: Shaped, high: Value, low: Value, axis: Axis) -> tuple[Any, Any, Any]:
    period = high - low
    angles = as_floats(samples) * (2 * math.pi / period)
    return *(np.mean(f(angles), axis=axis, keepdims=True) for f in (sin, cos)), period


@of_samples("circmean", axis=None)
def circmean(samples, axis, high=2 * math.pi, low=0):
    """The direction of the mean of unit vectors."""
    s, c, period = _directions(samples, high, low, axis)
    return (np.arctan2(s, c) * (period / (2 * math.pi)) - low) % period + low


def _length(samples: Shaped, high: Value, low: Value, axis: Axis) -> Any:
    s, c, _ = _directions(samples, high, low, axis)
    return np.minimum(np.hypot(s, c), 1.0)


@of_samples("circvar", axis=None)
def circvar(samples, axis, high=2 * math.pi, low=0):
    """1 minus the length of the mean of unit vectors."""
    return 1.0 - _length(samples, high, low, axis)


@of_samples("circstd", axis=None)
def circstd(samples, axis, high=2 * math.pi, low=0, *, normalize=False):
    """The standard deviation of a wrapped normal distribution with that length."""
    deviation = sqrt(-2 * log(_length(samples, high, low, axis)))
    return deviation if normalize else deviation * ((high - low) / (2 * math.pi))


BEFORE |= {"circmean": 2, "circvar": 2, "circstd": 2}

# --- transformations -----------------------------------------------------------------------------


def _given(lmbda: object, name: str) -> Any:
    if lmbda is None:
        raise NoRuleError(
            f"scipy.stats.{name}: of traced values it has a rule for a given lmbda; "
            f"scipy.optimize.minimize of -{name}_llf finds one that keeps its derivative"
        )
    return lmbda


@implements("scipy.stats.boxcox")
def boxcox(x, lmbda=None, alpha=None, optimizer=None):
    """(x**lmbda - 1) / lmbda."""
    return power_law(as_floats(x), _given(lmbda, "boxcox"))


def _likelihood(y: Shaped, slope: Any, axis: Any, keepdims: bool) -> Any:
    """The normal log-likelihood of transformed values y, with log derivatives of sum `slope`."""
    spread = np.log(np.var(y, axis=axis, keepdims=True))
    return without_axis(slope - count(y, axis) / 2 * spread, axis, keepdims)


@implements("scipy.stats.boxcox_llf")
def boxcox_llf(lmb, data, *, axis=0, keepdims=False, nan_policy="propagate"):
    """The log-likelihood of a parameter of boxcox."""
    no_policy("boxcox_llf", nan_policy)
    x = as_floats(data)
    slope = (lmb - 1) * np.sum(log(x), axis=axis, keepdims=True)
    return _likelihood(power_law(x, lmb), slope, axis, keepdims)


def _yeo_johnson(x: Shaped, lmbda: Value) -> Any:
    up = x >= 0
    rise, fall = where(up, x, 0.0), where(up, 0.0, -x)
    return where(up, power_law(1 + rise, lmbda), -power_law(1 + fall, 2 - lmbda))


@implements("scipy.stats.yeojohnson")
def yeojohnson(x, lmbda=None):
    """The Yeo-Johnson transformation, boxcox for numbers of both signs."""
    return _yeo_johnson(as_floats(x), _given(lmbda, "yeojohnson"))


@implements("scipy.stats.yeojohnson_llf")
def yeojohnson_llf(lmb, data, *, axis=0, nan_policy="propagate", keepdims=False):
    """The log-likelihood of a parameter of yeojohnson."""
    no_policy("yeojohnson_llf", nan_policy)
    x = as_floats(data)
    slope = (lmb - 1) * np.sum(np.sign(x) * log1p(abs(x)), axis=axis, keepdims=True)
    return _likelihood(_yeo_johnson(x, lmb), slope, axis, keepdims)


class ModeResult(NamedTuple):
    """The result of scipy.stats.mode; the counts are constants."""

    mode: Any
    count: Any


@implements("scipy.stats.mode")
def mode(a, axis=0, nan_policy="propagate", keepdims=False):
    """The most frequent value, of several the smallest; its cotangent goes to one element."""
    no_policy("mode", nan_policy)
    shape = type_of(a).shape
    if axis is None:
        result = mode(np.reshape(a, (-1,)))
        ones = (1,) * len(shape)
        return ModeResult(*(np.reshape(v, ones) for v in result)) if keepdims else result
    axis = normal_axis(axis, len(shape), "scipy.stats.mode")
    a = np.moveaxis(a, axis, -1)
    a = np.take_along_axis(a, np.argsort(a, axis=-1, kind="stable"), axis=-1)
    first = np.concatenate([np.full((*a.shape[:-1], 1), True), a[..., 1:] != a[..., :-1]], -1)
    place = np.arange(a.shape[-1])
    run = place - np.maximum.accumulate(np.where(first, place, 0), axis=-1)
    at = np.argmax(run, axis=-1)[..., None]  # where the first of the longest runs ends
    both = np.take_along_axis(a, at, axis=-1), 1 + np.take_along_axis(run, at, axis=-1)
    if keepdims:
        return ModeResult(*(np.moveaxis(v, -1, axis) for v in both))
    return ModeResult(*(v[..., 0] for v in both))


# --- ranks ---------------------------------------------------------------------------------------

for _name in ("rankdata", "spearmanr", "kendalltau", "percentileofscore"):
    registry.await_(f"scipy.stats.{_name}", lambda f: registry.declare(f, kind="rule", reads=True))
