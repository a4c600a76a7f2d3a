"""scipy.stats: the methods of distributions, in values, locations, scales and shapes."""

import functools
import warnings

import mpmath
import numpy as np
import pytest
from scipy import stats
from test_numpy_forms import close, difference

import lineara
from lineara.facts.registry import Registry
from lineara.ops.scipy import multivariate_distributions
from lineara.ops.scipy.distribution_formulas import CONTINUOUS, DISCRETE
from lineara.ops.scipy.distributions import _method

x, q = np.array([0.3, 0.9, 1.7]), np.array([0.2, 0.45, 0.93])
PLACES = {"beta": q, "uniform": q, "powerlaw": q, "pareto": x + 1, "triang": q, "weibull_max": -x}
WITH_WHOLE = {"binom": (5,), "betabinom": (5,)}
SHAPES = {"poisson": (2.3,), "binom": (0.3,), "bernoulli": (0.3,), "geom": (0.3,)}
SHAPES |= {"nbinom": (2.5, 0.3), "betabinom": (2.3, 1.4), "skellam": (2.3, 1.1), "logser": (0.4,)}
SHAPES |= {"triang": (0.4,), "loguniform": (0.2, 30.0), "reciprocal": (0.2, 30.0)}
SHAPES |= {"genextreme": (0.3,), "genpareto": (0.3,), "truncnorm": (-0.5, 2.1)}


def shapes_of(name):
    number = getattr(stats, name).numargs
    return [np.float64(s) for s in SHAPES.get(name, [2.3 + 0.4 * i for i in range(number)])]


RULE = (
    "write it with functions that have one, or declare it with lineara.custom_jvp or "
    "lineara.custom_vjp"
)
PLAIN = "give it a plain number there, or declare the derivative with lineara.custom_jvp"
frozen = stats.norm(0.3, 2.0)


def agrees(f, *point):
    y, L = lineara.linearize(f, *point)
    close(y, f(*point), 1e-12)
    assert np.asarray(y).dtype == np.asarray(f(*point)).dtype
    direction = [np.full_like(p, 0.7) for p in point]
    found = L @ (direction[0] if len(point) == 1 else tuple(direction))
    close(found, difference(f, point, direction), 1e-7)


CASES = [
    (name, method)
    for name, law in CONTINUOUS.items()
    for method in ("pdf", "logpdf", "cdf", "sf", "logcdf", "logsf", "ppf", "isf")
    if ("pdf" in method or getattr(law, method) or getattr(law, method[3:], None))
]


@pytest.mark.parametrize(("name", "method"), CASES)
def test_continuous_distributions(name, method):
    dist = getattr(stats, name)
    shapes = shapes_of(name)
    value = q if method in ("ppf", "isf") else 0.4 + 1.3 * PLACES.get(name, x)
    agrees(
        lambda v, *a: getattr(dist, method)(v, *a[:-2], loc=a[-2], scale=a[-1]),
        *(value, *shapes, 0.4, 1.3),
    )


MOMENTS = [
    (name, method)
    for name, law in (CONTINUOUS | DISCRETE).items()
    for method in ("mean", "var", "std", "entropy")
    if getattr(law, "var" if method == "std" else method)
]


@pytest.mark.parametrize(("name", "method"), MOMENTS)
def test_moments_of_frozen_distributions(name, method):
    dist = getattr(stats, name)
    if name in DISCRETE:
        whole = WITH_WHOLE.get(name, ())
        return agrees(lambda *a: getattr(dist(*whole, *a), method)(), *SHAPES[name])
    agrees(lambda *a: getattr(dist(*a), method)(), *shapes_of(name), 0.4, 1.3)


COUNTED = [
    (name, method)
    for name, law in DISCRETE.items()
    for method in ("pmf", "logpmf", "cdf", "sf", "logcdf")
    if "pmf" in method or getattr(law, method.removeprefix("log"))
]


@pytest.mark.parametrize(("name", "method"), COUNTED)
def test_discrete_distributions(name, method):
    dist, k = getattr(stats, name), np.array([1, 2, 4])
    k = np.array([0, 1, 0]) if name == "bernoulli" else k
    whole = WITH_WHOLE.get(name, ())
    agrees(lambda *p: getattr(dist, method)(k, *whole, *p), *SHAPES[name])
    agrees(lambda *p: getattr(dist, method)(k + 2, *whole, *p, loc=2), *SHAPES[name])


@pytest.mark.parametrize(("name", "shapes"), [
    ("gamma", (2.5,)), ("beta", (2.5, 3.0)), ("lognorm", (0.7,)),
                                             ("expon", ()), ("uniform", ())])  # fmt: skip
def test_outside_of_the_support_there_is_nothing(name, shapes):
    dist, v = getattr(stats, name), np.array([-1.0, 0.5, -2.0])
    g = lineara.grad(lambda v: np.sum(np.where(v > 0, 1, 0) * dist.pdf(v, *shapes)))(v)
    assert g[0] == g[2] == 0.0
    found = lineara.jacobian(lambda v: dist.logpdf(v, *shapes))(v)
    assert np.all(found[[0, 2]] == 0.0)
    assert np.all(np.isfinite(found))


def test_frozen_outside_and_inside():
    assert lineara.grad(lambda v: frozen.logpdf(v))(1.0) == pytest.approx(-0.175)
    assert lineara.grad(lambda m: stats.norm(m, 2.0).logpdf(1.0))(0.3) == pytest.approx(0.175)
    assert lineara.grad(lambda m: stats.norm(loc=m, scale=2.0).interval(0.9)[1])(0.3) == 1.0


log_density = stats.norm.logpdf
of_frozen = frozen.cdf


def test_methods_that_were_taken_outside():
    assert lineara.grad(lambda v: log_density(v))(0.7) == pytest.approx(-0.7)
    assert lineara.grad(lambda v: of_frozen(v))(0.7) == pytest.approx(frozen.pdf(0.7))
    assert list(lineara.grad(lambda v: sum(map(log_density, v)))([0.7, 2.0])) == [-0.7, -2.0]
    shifted = functools.partial(stats.norm.logpdf, loc=0.2)
    assert lineara.grad(lambda v: shifted(v))(0.7) == pytest.approx(-0.5)


def test_truncation_keeps_its_digits_far_out():
    with mpmath.workdps(40):
        exact = mpmath.diff(lambda a: -mpmath.log(mpmath.ncdf(12) - mpmath.ncdf(a)), 9)
    found = lineara.grad(lambda a: stats.truncnorm.logpdf(9.5, a, 12.0))(9.0)
    assert found == pytest.approx(float(exact), rel=1e-11)


@pytest.mark.parametrize("c", [0.0, 1e-9, -1e-4, 0.019, 0.021])
@pytest.mark.parametrize("name", ["genextreme", "genpareto"])
def test_shapes_near_zero_are_smooth(name, c):
    z = mpmath.mpf("0.7")

    def exact(c):
        if name == "genpareto":
            return -z if c == 0 else -(1 + 1 / c) * mpmath.log(1 + c * z)
        t = z if c == 0 else -mpmath.log(1 - c * z) / c
        return -(1 - c) * t - mpmath.exp(-t)

    with mpmath.workdps(60):
        want = [
            mpmath.diff(exact, mpmath.mpf(c) if c else mpmath.mpf(10) ** -40, k) for k in (1, 2)
        ]
    f = lineara.grad(lambda c: getattr(stats, name).logpdf(0.7, c))
    assert f(c) == pytest.approx(float(want[0]), rel=1e-12)
    assert lineara.grad(f)(c) == pytest.approx(float(want[1]), rel=1e-10)


@pytest.mark.parametrize(
    ("act", "text"),
    [
        (lambda a: stats.norm.moment(2, a),
         "scipy.stats.norm.moment of a traced value has no derivative rule; " + RULE),
        (lambda m: stats.poisson.logpmf(3, 2.3, m),
         "scipy.stats.poisson.logpmf has no derivative with respect to loc, which is a whole "
         "number; " + PLAIN),
        (lambda n: stats.binom.logpmf(3, n, 0.3),
         "scipy.stats.binom.logpmf has no derivative with respect to a whole number; " + PLAIN),
        (lambda a: stats.nct.logpdf(0.2, 3.0, a),
         "scipy.stats.nct.logpdf of a traced value has no derivative rule; " + RULE),
        (lambda a: stats.norm.rvs(a),
         "scipy.stats.norm.rvs of a traced value has no derivative rule; "
         "draw with plain parameters and move what was drawn: loc + scale * rvs()"),
        (lambda k: stats.poisson.logpmf(k, 2.0),
         "scipy.stats.poisson.logpmf has no derivative with respect to a whole number; " + PLAIN),
    ],
)  # fmt: skip
def test_what_is_refused(act, text):
    with pytest.raises(lineara.errors.NoRuleError) as caught:
        lineara.grad(act)(1.5)
    assert caught.value.message == text


def test_the_law_of_student_with_infinitely_many_degrees_is_the_normal_one():
    y, L = lineara.linearize(lambda v: stats.t.logpdf(v, np.inf), x)
    np.testing.assert_allclose(y, stats.norm.logpdf(x), rtol=1e-15)
    np.testing.assert_allclose(L @ np.ones(3), -x, rtol=1e-15)


def test_what_is_constant_but_for_rounding_has_no_skewness():
    flat = np.array([1e4, 1e4, 1e4 + 2e-12])
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert np.isnan(stats.skew(flat))
        assert np.isnan(lineara.linearize(stats.skew, flat)[0])


@pytest.mark.parametrize(("name", "shapes"), [
    ("binom", (5, 1.5)), ("binom", (5, -0.5)), ("bernoulli", (1.5,)), ("geom", (1.5,)),
    ("geom", (0.0,)), ("nbinom", (2.5, 1.5)), ("poisson", (-1.0,)),
])  # fmt: skip
def test_shapes_that_are_none_give_nan(name, shapes):
    dist = getattr(stats, name)
    for k in (0, 1, 2):
        assert np.isnan(dist.logpmf(k, *shapes))
        y, _ = lineara.linearize(lambda p, k=k: dist.logpmf(k, *shapes[:-1], p), shapes[-1])
        assert np.isnan(y)


@pytest.mark.parametrize(("name", "c"), [("genextreme", 0.3), ("genpareto", -0.3)])
def test_a_bounded_law_ends_where_scipys_does(name, c):
    dist, end = getattr(stats, name), 1 / abs(c)
    for at in (end - 1e-3, end + 1e-3, 1.5 * end):
        y, L = lineara.linearize(lambda v, at=at: dist.pdf(at, v), c)
        np.testing.assert_allclose(y, dist.pdf(at, c), rtol=1e-12)
        assert (L @ 1.0 == 0) == (at > end)


def test_what_is_no_whole_number_has_no_mass():
    for f, want in ((stats.poisson.logpmf, -np.inf), (stats.poisson.pmf, 0.0)):
        y, L = lineara.linearize(lambda m, f=f: f([2.5, 3.0], m), 2.3)
        assert y[0] == want
        np.testing.assert_allclose(y[1], f(3, 2.3), rtol=1e-14)
        assert (L @ 1.0)[0] == 0


def test_an_interval_leaves_as_much_on_either_side():
    agrees(lambda m, d: np.stack(stats.norm(m, d).interval(0.8)), 0.3, 2.0)
    agrees(lambda a: np.stack(stats.gamma.interval(0.7, a, loc=0.1)), 2.3)


@pytest.mark.parametrize("method", ["cdf", "sf", "logcdf", "logsf"])
def test_discrete_distributions_between_whole_numbers_and_at_another_place(method):
    at = np.array([1.5, 3.2, 4.0])
    agrees(lambda m: getattr(stats.poisson, method)(at, m, loc=1), 2.3)
    agrees(lambda p: getattr(stats.geom, method)(at + 1, p, loc=1), 0.3)


@pytest.mark.parametrize("ends", [(0.4, 2.1), (-2.1, -0.4), (3.0, 9.0), (-9.0, -3.0)])
@pytest.mark.parametrize("method", ["ppf", "cdf", "logsf", "logpdf"])
def test_a_normal_truncated_on_one_side_of_its_middle(method, ends):
    at = q if method == "ppf" else np.mean(ends) + 0.2 * (q - 0.5)
    agrees(lambda v, a, b: getattr(stats.truncnorm, method)(v, a, b), at, *map(np.float64, ends))


def test_there_is_no_quantile_of_what_is_no_share():
    y, _ = lineara.linearize(lambda m: stats.norm.ppf([-0.1, 0.5, 1.1], m), 0.3)
    np.testing.assert_array_equal(y, [np.nan, 0.3, np.nan])


def test_the_mean_of_equal_directions_is_no_longer_than_they_are():
    angles = np.repeat(np.linspace(0.1, 6.0, 400)[:, None], 3, axis=1)
    y, _ = lineara.linearize(lambda a: stats.circvar(a, axis=1), angles)
    assert np.all(y >= 0)


def test_a_method_of_plain_arguments_is_scipys():
    call = _method("cdf", lambda self, *args, **kwds: (self, args, kwds))
    assert call(stats.norm, 0.3, 1.0, scale=2.0) == (stats.norm, (0.3, 1.0), {"scale": 2.0})


def test_classes_of_scipy_are_made_anew_with_what_they_do_with_plain_numbers(monkeypatch):
    """At import this happened before any test."""
    monkeypatch.setattr(multivariate_distributions, "registry", registry := Registry())
    multivariate_distributions._density(stats.gaussian_kde)
    kde = registry.ours(stats.gaussian_kde)([0.1, 0.7, 2.0])
    assert kde(0.3) == stats.gaussian_kde([0.1, 0.7, 2.0])(0.3)
    method = multivariate_distributions._method("wishart", "logpdf", type(stats.wishart).logpdf)
    assert method(stats.wishart, 2.0, 3, 1.0) == stats.wishart.logpdf(2.0, 3, 1.0)
