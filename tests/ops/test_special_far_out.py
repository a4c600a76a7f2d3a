"""scipy.special where textbook derivatives cancel or overflow, against 50 digits; zeros."""

import mpmath
import numpy as np
import pytest
import special_lines
from mpmath import mpf
from scipy import special

import lineara
from lineara.ops.scipy import incomplete_gamma_beta

LINES = {name: reference for name, *_, reference in special_lines.SPECIAL}


def pdf_over_cdf(x):
    return mpmath.npdf(x) / mpmath.ncdf(x)


FAR = [  # function, point, place, derivative
    ("erfcx", (1e8,), 0, lambda x: -(1 - 3 / (2 * x * x)) / (x * x * mpmath.sqrt(mpmath.pi))),
    ("erfcx", (30.0,), 0, None),
    ("erfcx", (6.9,), 0, None),
    ("erfcx", (-20.0,), 0, None),
    ("dawsn", (40.0,), 0, None),
    ("dawsn", (-7.5,), 0, None),
    ("log_ndtr", (-30.0,), 0, pdf_over_cdf),
    ("log_ndtr", (-1e6,), 0, lambda x: -x + 1 / -x),
    ("log_ndtr", (30.0,), 0, pdf_over_cdf),
    ("ndtri_exp", (-1e4,), 0, lambda p: 1 / pdf_over_cdf(special.ndtri_exp(-1e4))),
    ("ndtri", (1e-300,), 0, lambda p: 1 / mpmath.npdf(special.ndtri(1e-300))),
    ("expit", (40.0,), 0, None),
    ("expit", (-700.0,), 0, None),
    ("expit", (700.0,), 0, lambda x: mpmath.exp(-x)),
    ("log_expit", (50.0,), 0, None),
    ("logit", (1e-300,), 0, lambda p: 1 / p),
    ("kl_div", (1.0, 1 + 1e-9), 0, lambda x, w: mpmath.log(x / w)),
    ("kl_div", (1.0, 1 + 1e-9), 1, lambda x, w: 1 - x / w),
    ("kl_div", (1e6 + 1, 1e6), 0, lambda x, w: mpmath.log(x / w)),
    ("kl_div", (1e100, 1e-250), 0, lambda x, w: mpmath.log(x / w)),
    ("kl_div", (1e-9, 1.0), 0, lambda x, w: mpmath.log(x / w)),
    ("kl_div", (1e-200, 1e200), 0, lambda x, w: mpmath.log(x / w)),
    ("i0e", (300.0,), 0, None),
    ("i1e", (1e4,), 0, None),
    ("k0e", (300.0,), 0, None),
    ("k1e", (1e4,), 0, None),
    ("betaln", (1e10, 1.0), 0, lambda a, b: -1 / a),
    ("betaln", (1e-8, 1e8), 1, lambda a, b: mpmath.psi(0, b) - mpmath.psi(0, a + b)),
    ("beta", (50.0, 1e-6), 0, None),
    ("poch", (1e9, 0.5), 0, None),
    ("binom", (1e6, 3.0), 0, None),
    *[("binom", (700.0, w), place, None) for w in (0.5, 699.5) for place in (0, 1)],
    ("binom", (1.2 + 1e-9, 0.6), 1, None),
    ("binom", (-1.5, -1e-9), 1, None),
    ("ive_slope", (40, 90.0), 1, None),
    ("binom", (1.0, 2.0), 0, lambda n, k: mpf(1) / 2),
    ("rgamma", (-3.0,), 0, lambda x: -mpf(6)),
    ("rgamma", (1 - 1e-9,), 0, None),
    ("rgamma", (0.5 - 1e-9,), 0, None),
    ("rgamma", (0.0,), 0, lambda x: mpf(1)),
    ("boxcox", (3.0, 1e-12), 1, None),
    ("boxcox1p", (1e-9, 1e-12), 1, None),
    ("inv_boxcox", (2.0, 1e-12), 1, None),
    ("exprel", (1e-12,), 0, lambda x: mpf(1) / 2 + x / 3),
    ("exprel", (-1e3,), 0, None),
    ("cosm1", (1e-9,), 0, None),
    ("ellipk", (1e-13,), 0, None),
    ("ellipe", (1e-13,), 0, None),
    ("ellipkm1", (1e-30,), 0, lambda p: -1 / (2 * p)),
    *[("ellipkm1_slope", (p,), 0, lambda p: 9 * mpmath.pi / 64 * mpmath.hyp2f1(2.5, 2.5, 3, 1 - p))
      for p in (1e-9, 1e-3, 0.499, 0.501, 1 - 1e-9)],
    ("pseudo_huber", (1e3, 1e-3), 0, None),
    ("pseudo_huber", (1e-100, 1e200), 1, lambda d, r: d),
    ("spence", (1.0,), 0, lambda x: -mpf(1)),
    *[("spence", (x,), 0, lambda x: mpmath.log(x) / (1 - x)) for x in (1e-300, 2.0, 1e10)],
    ("spence", (1 + 1e-9,), 0, lambda x: -1 + (x - 1) / 2),
    ("sine_integral", (0.0,), 0, lambda x: mpf(1)),
    ("lambertw", (1e-20, 0), 0, lambda x, k: 1 - 2 * x),
    ("j1", (0.0,), 0, lambda x: mpf(1) / 2),
    ("i1", (0.0,), 0, lambda x: mpf(1) / 2),
    ("polygamma_difference", (0, 1e12, 1e-3), 1, None),
    ("stdtr", (1.7, 1e4), 0, None),
    ("stdtr", (1.7, -1e4), 0, None),
    ("stdtr", (3.5, -60.0), 0, None),
    ("stdtr", (1.7, 1e-6), 0, None),
]  # fmt: skip


def derivative(name, point, place):
    f = getattr(special, name, None) or lineara.facts.primitive.op(name)
    f = lineara.facts.primitive.op(name) if name in ("lambertw",) else f
    found = lineara.linearize(lambda v: f(*[v if i == place else p for i, p in enumerate(point)]),
                              point[place])[1] @ 1.0  # fmt: skip
    return np.real(found)


@pytest.mark.parametrize(("name", "point", "place", "truth"), FAR, ids=[f"{f[:2]}" for f in FAR])
def test_derivatives_far_out(name, point, place, truth):
    with mpmath.workdps(50):
        exact = [mpf(v) if isinstance(v, float) else v for v in point]
        order = tuple(int(i == place) for i, v in enumerate(point) if isinstance(v, float))
        floats = [v for v in exact if isinstance(v, mpf)]
        whole = [v for v in exact if not isinstance(v, mpf)]
        f = LINES[name]
        expected = truth(*exact) if truth else mpmath.diff(lambda *v: f(*whole, *v), floats, order)
        expected = float(expected)
    np.testing.assert_allclose(derivative(name, point, place), expected, rtol=4e-13)


DENSITIES = [
    ("gammainc", (1e6, 1.001e6)),
    ("gammainc", (1e10, 1e10 + 2e5)),
    ("gammainc", (0.01, 1e-300)),
    ("gammainc", (16.0, 17.0)),
    ("betainc", (1e6, 1e6, 0.5001)),
    ("betainc", (17.0, 40.0, 0.3)),
    ("betainc", (1e8, 3.0, 1 - 3e-8)),
    ("betainc", (2.0, 3.0, 1e-9)),
]


@pytest.mark.parametrize(("name", "point"), DENSITIES, ids=str)
def test_densities_do_not_subtract_large_logarithms(name, point):
    with mpmath.workdps(50):
        if name == "gammainc":
            a, x = map(mpf, point)
            truth = mpmath.exp((a - 1) * mpmath.log(x) - x - mpmath.loggamma(a))
        else:
            a, b, x = map(mpf, point)
            log_beta = mpmath.loggamma(a) + mpmath.loggamma(b) - mpmath.loggamma(a + b)
            truth = (a - 1) * mpmath.log(x) + (b - 1) * mpmath.log(1 - x) - log_beta
            truth = mpmath.exp(truth)
    found = derivative(name, point, len(point) - 1)
    np.testing.assert_allclose(found, float(truth), rtol=3e-14)


@pytest.mark.parametrize("point", [(3, 75.0), (1, 99.0), (20, 1100.0), (40, 4000.0)], ids=str)
def test_slopes_of_scaled_bessel_functions_are_exact_where_the_direct_formula_cancels(point):
    with mpmath.workdps(40):
        v, x = map(mpf, point)
        of_i = mpmath.besseli(v + 1, x) + v / x * mpmath.besseli(v, x)
        of_k = -mpmath.besselk(v - 1, x) - v / x * mpmath.besselk(v, x)
        truth = {"ive": (of_i - mpmath.besseli(v, x)) * mpmath.exp(-x)}
        truth["kve"] = (of_k + mpmath.besselk(v, x)) * mpmath.exp(x)
    for name, expected in truth.items():
        np.testing.assert_allclose(derivative(name, point, 1), float(expected), rtol=3e-15)


ZEROS = [  # function, point, partials
    ("xlogy", (0.0, 0.0), (-np.inf, 0.0)),
    ("xlogy", (0.0, 2.0), (np.log(2), 0.0)),
    ("xlog1py", (0.0, -1.0), (-np.inf, 0.0)),
    ("entr", (-1.0,), (0.0,)),
    ("entr", (0.0,), (np.inf,)),
    ("rel_entr", (-1.0, 2.0), (0.0, 0.0)),
    ("rel_entr", (0.0, 2.0), (-np.inf, 0.0)),
    ("kl_div", (0.0, 2.0), (-np.inf, 1.0)),
    ("comb", (2.0, -1.0), (0.0, 0.0)),
    ("comb", (2.0, 3.0), (0.0, 0.0)),
    ("perm", (2.0, -1.0), (0.0, 0.0)),
    ("huber", (1.0, 1.0), (0.0, 1.0)),
    ("huber", (-1.0, 0.5), (0.0, 0.0)),
    ("huber", (1.0, -3.0), (2.0, -1.0)),
    ("pseudo_huber", (0.0, 1.0), (0.0, 0.0)),
]


@pytest.mark.parametrize(("name", "point", "partials"), ZEROS, ids=str)
def test_lanes_that_are_not_selected_are_structural_zeros(name, point, partials):
    f = getattr(special, name)
    with np.errstate(all="ignore"):
        found = lineara.grad(lambda *v: f(*v), tuple(range(len(point))))(*point)
    np.testing.assert_allclose(found, partials, rtol=1e-14)


@pytest.mark.parametrize("name", ["beta_density_slope", "gamma_density_slope"])
@pytest.mark.parametrize("at", [-0.5, 0.0, 1.0, 1.5])
def test_slopes_of_a_density_in_its_shapes_are_0_where_its_support_ends(name, at):
    of_beta = name == "beta_density_slope"
    orders, point = ((1, 0), (3.0, 4.0, at)) if of_beta else ((1,), (3.0, min(at, -at)))
    f = lambda *v: lineara.facts.primitive.op(name)(*orders, *v)  # noqa: E731
    with np.errstate(all="ignore"):
        y, slopes = lineara.value_and_grad(f, tuple(range(len(point))))(*point)
    assert {y, *slopes} == {0.0}


@pytest.mark.parametrize("scale", [1.0, 1e4, 1e9])
def test_an_integral_is_taken_until_the_hill_has_fallen(scale):
    fall, slope = lambda u: scale * (np.expm1(u) - u), lambda u: scale * np.expm1(u)
    end = incomplete_gamma_beta._until(fall, slope, np.full(2, 1 / scale))
    np.testing.assert_allclose(fall(end), 45, rtol=1e-6)


def test_what_is_far_less_than_the_largest_is_added_to_it():
    y, _ = lineara.linearize(special.logsumexp, np.array([0.0, -40.0]))
    assert y == pytest.approx(np.exp(-40), rel=1e-14, abs=0)


def test_zero_times_the_logarithm_of_zero_has_no_nan():
    weights, p = np.array([0.0, 1.0]), np.array([0.0, 0.5])
    assert lineara.grad(lambda p: np.sum(special.xlogy(weights, p)))(p).tolist() == [0.0, 2.0]


@pytest.mark.parametrize(("name", "pole"), [("xlogy", 0.0), ("xlog1py", -1.0)])
def test_nothing_times_the_logarithm_of_nothing_is_not_calculated(name, pole):
    with np.errstate(all="raise"):
        y, _ = lineara.linearize(getattr(special, name), np.zeros(2), np.full(2, pole))
    assert y.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("degree", [0, 0.0])
@pytest.mark.parametrize("line", special_lines.POLYNOMIALS, ids=lambda p: f"eval_{p[0]}")
def test_a_polynomial_of_degree_0_is_constant_to_every_order_also_at_infinity(line, degree):
    name, *parameters, _ = line
    f = lambda x: getattr(special, f"eval_{name}")(degree, *parameters, x)  # noqa: E731
    value = f
    for _ in range(3):
        f = lineara.grad(f)
        with np.errstate(all="ignore"):
            assert f(0.3) == f(-2.0) == 0
            assert f(np.inf) == 0 or np.isnan(value(np.inf))  # SciPy's own


@pytest.mark.parametrize("name", ["jve", "yve", "ive", "kve", "hankel1e", "hankel2e"])
def test_scaled_functions_of_complex_numbers_are_not_taken_for_holomorphic(name):
    f, z = getattr(special, name), np.array([0.7 - 0.4j, -0.3 + 1.1j])
    for direction in (1.0, 1j):
        _, found = lineara.jvp(lambda z: f(1, z), (z,), (direction * np.ones(2),))
        h = 1e-6 * direction
        np.testing.assert_allclose(found, (f(1, z + h) - f(1, z - h)) / 2e-6, rtol=1e-8)


def test_digamma_of_complex_numbers_to_the_third_order():
    z = np.array([-3.3 + 0.1j, 40 - 7j, 0.2 - 30j])
    f = special.digamma
    for order in (1, 2, 3):
        f = lambda z, f=f: lineara.jvp(f, (z,), (np.ones(3) + 0j,))[1]  # noqa: E731
        with mpmath.workdps(40):
            truth = [complex(mpmath.polygamma(order, mpmath.mpc(v))) for v in z]
        np.testing.assert_allclose(f(z), truth, rtol=1e-13)


@pytest.mark.parametrize("name", ["jv", "yv", "iv", "kv", "jve", "yve", "ive", "kve"])
@pytest.mark.parametrize("order", [-1, 0, 1, 2, 3])
def test_bessel_functions_of_whole_orders_are_scipys(name, order):
    x = np.array([1e-3, 0.4, 1.9, 2.1, 30.0])
    y, _ = lineara.linearize(lambda x: getattr(special, name)(order, x), x)
    np.testing.assert_allclose(y, getattr(special, name)(order, x), rtol=2e-13)
