"""scipy.stats: the methods of distributions, in values, locations, scales and shapes."""

import numpy as np
import pytest
from scipy import stats
from test_numpy_forms import close, difference

import lineara
from lineara.ops.laws import CONTINUOUS, DISCRETE

x, q = np.array([0.3, 0.9, 1.7]), np.array([0.2, 0.5, 0.93])
PLACES = {"beta": q, "uniform": q, "powerlaw": q, "pareto": x + 1}
OF_SHAPES = ("gamma", "beta", "t", "chi2", "invgamma")  # the shape of its cdf has no rule
SHAPES = {"poisson": (2.3,), "binom": (5, 0.3), "bernoulli": (0.3,), "geom": (0.3,)}
SHAPES |= {"nbinom": (2.5, 0.3)}
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
    shapes = [np.float64(2.3 + 0.4 * i) for i in range(dist.numargs)]
    value = q if method in ("ppf", "isf") else 0.4 + 1.3 * PLACES.get(name, x)
    if name in OF_SHAPES and "pdf" not in method:
        agrees(lambda v, m, s: getattr(dist, method)(v, *shapes, m, s), value, 0.4, 1.3)
    else:
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
    if name == "binom":
        return agrees(lambda p: getattr(dist(5, p), method)(), 0.3)
    if name in DISCRETE:
        return agrees(lambda *a: getattr(dist(*a), method)(), *SHAPES[name])
    shapes = [2.3 + 0.4 * i for i in range(dist.numargs)]
    agrees(lambda *a: getattr(dist(*a), method)(), *shapes, 0.4, 1.3)


@pytest.mark.parametrize("method", ["pmf", "logpmf", "cdf", "sf", "logcdf"])
@pytest.mark.parametrize("name", DISCRETE)
def test_discrete_distributions(name, method):
    dist, k = getattr(stats, name), np.array([1, 2, 4])
    k = np.array([0, 1, 0]) if name == "bernoulli" else k
    if "f" in method and "m" not in method and name == "nbinom":
        agrees(lambda p: getattr(dist, method)(k, 2.5, p), 0.3)
    elif name == "binom":
        agrees(lambda p: getattr(dist, method)(k, 5, p), 0.3)
    else:
        agrees(lambda *p: getattr(dist, method)(k, *p), *SHAPES[name])


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


@pytest.mark.parametrize(
    ("act", "text"),
    [
        (lambda a: stats.norm.moment(2, a),
         "scipy.stats.norm.moment of a traced value has no derivative rule; " + RULE),
        (lambda a: stats.vonmises.logpdf(0.2, a),
         "scipy.stats.vonmises.logpdf of a traced value has no derivative rule; " + RULE),
        (lambda a: stats.norm.rvs(a),
         "scipy.stats.norm.rvs of a traced value has no derivative rule; "
         "draw with plain parameters and move what was drawn: loc + scale * rvs()"),
        (lambda k: stats.poisson.logpmf(k, 2.0),
         "scipy.stats.poisson.logpmf has no derivative with respect to a whole number; " + PLAIN),
        (lambda a: stats.gamma.cdf(2.0, a),
         "scipy.special.gammainc has no derivative with respect to its shape; " + PLAIN),
    ],
)  # fmt: skip
def test_what_is_refused(act, text):
    with pytest.raises(lineara.errors.NoRuleError) as caught:
        lineara.grad(act)(1.5)
    assert caught.value.message == text
