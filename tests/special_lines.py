"""The lines of the primitives behind scipy.special, and what mpmath has for each of them."""

import mpmath
import numpy as np
from mpmath import mpf

x = np.array([0.31, 0.72, 0.55])
w = np.array([0.83, 0.24, 0.61])
z = np.array([-1.3, 0.4, 2.2])
big = np.array([1.2, 3.4, 2.0])
row, col = np.array([[0.9, 0.2, 0.7]]), np.array([[0.35], [0.65]])
pi = mpmath.pi


def half(a):
    return mpf(a) / 2


def gamma_density(a, x):
    return mpmath.exp((a - 1) * mpmath.log(x) - x - mpmath.loggamma(a))


def beta_density(a, b, x):
    return x ** (a - 1) * (1 - x) ** (b - 1) / mpmath.beta(a, b)


def t_density(v, t):
    return (1 + t * t / v) ** (-half(v + 1)) / mpmath.sqrt(v) / mpmath.beta(half(v), half(1))


def normal(x):
    return mpmath.erfc(-x / mpmath.sqrt(2)) / 2


def faddeeva(x):
    return mpmath.exp(-x * x) * mpmath.erfc(-1j * x)


def root(f, y, near):
    return mpmath.findroot(lambda t: f(t) - y, near)


def scaled(f, by):
    return lambda v, x: f(v, x) * by(x)


def shrunk(x):
    return mpmath.exp(-abs(x))


def kelvin(n, f):
    return lambda x: mpmath.diff(lambda t: f(0, t), x, n) if n else f(0, x)


def slope_of_scaled_k(v, x):
    """d/dx exp(x) K_v(x), from exp(x) K_v(x) = int_0^oo exp(x (1 - cosh t)) cosh(v t) dt.

    The trapezoidal rule converges as exp(-pi^2 / h) here; a difference of besselk takes a minute.
    """
    h = mpf(1) / 64
    end = mpmath.acosh(1 + 2 * mpmath.mp.prec / x)
    nodes = [mpmath.cosh(k * h) for k in range(int(end / h) + 1)]
    terms = [
        (1 - c) * mpmath.exp(x * (1 - c)) * mpmath.cosh(v * k * h) for k, c in enumerate(nodes)
    ]
    return h * mpmath.fsum(terms)  # the first term, which counts half, is 0


def boxcox(x, w):
    return (x**w - 1) / w


def ratio(x, w):
    return x * mpmath.log(x / w)


POLYNOMIALS = (
    ("legendre", mpmath.legendre), ("chebyt", mpmath.chebyt), ("chebyu", mpmath.chebyu),
    ("gegenbauer", 0.7, mpmath.gegenbauer), ("jacobi", 0.7, 1.2, mpmath.jacobi),
    ("laguerre", lambda n, x: mpmath.laguerre(n, 0, x)), ("genlaguerre", 0.7, mpmath.laguerre),
    ("hermite", mpmath.hermite),
    ("hermitenorm", lambda n, x: mpmath.hermite(n, x / mpmath.sqrt(2)) / 2**half(n)),
)  # fmt: skip


def lower_beta(a, b, x):
    return mpmath.betainc(a, b, 0, x, regularized=True)


def lower_gamma(a, x):
    return mpmath.gammainc(a, 0, x, regularized=True)


SAME = (
    ("cbrt", mpmath.cbrt), ("exp2", lambda x: mpmath.mpf(2) ** x), ("expm1", mpmath.expm1),
    ("log1p", mpmath.log1p),
)  # fmt: skip
DISTRIBUTIONS = (
    ("chdtr", big, z**2, lambda v, x: lower_gamma(half(v), half(x))),
    ("gdtr", w, big, z**2, lambda a, b, x: lower_gamma(b, a * x)),
    ("pdtr", 2, z**2, lambda k, m: mpmath.gammainc(k + 1, m, regularized=True)),
    ("bdtr", 2, np.array([5, 4, 6]), x, lambda k, n, p: lower_beta(n - k, k + 1, 1 - p)),
    ("nbdtr", 2, 5, x, lambda k, n, p: lower_beta(n, k + 1, p)),
    ("fdtr", 2 * big, 7 * w, z**2, lambda m, n, x: lower_beta(
        half(m), half(n), m * x / (n + m * x))),
)  # fmt: skip

SPECIAL = [  # name, arguments, and the function of mpmath
    # gamma
    ("gamma", big, mpmath.gamma),
    ("lgamma", big, mpmath.loggamma),
    ("loggamma", big, mpmath.loggamma),
    ("rgamma", z, mpmath.rgamma),
    ("digamma", z, mpmath.digamma),
    ("polygamma", 1, big, mpmath.polygamma),
    ("polygamma", 2, z, mpmath.polygamma),
    ("polygamma", 2, big, mpmath.polygamma),
    ("polygamma", 3, big, mpmath.polygamma),
    ("polygamma_difference", 0, big, x, lambda n, a, b: mpmath.psi(n, a) - mpmath.psi(n, a + b)),
    ("polygamma_difference", 2, big, -x, lambda n, a, b: mpmath.psi(n, a) - mpmath.psi(n, a + b)),
    ("beta", big, x, mpmath.beta),
    ("beta", col, row, mpmath.beta),
    ("betaln", big, x, lambda a, b: mpmath.log(mpmath.beta(a, b))),
    ("poch", big, z, mpmath.rf),
    ("binom", z, x, mpmath.binomial),
    ("binom", big, -z, mpmath.binomial),
    ("zeta", 2.5, big, mpmath.zeta),
    ("gamma_density", big, w, gamma_density),
    ("over_square", z, w, lambda x, w: x / (x * x + w * w)),
    ("over_square", row, col, lambda x, w: x / (x * x + w * w)),
    ("jv", 2, z, mpmath.besselj), ("jv", 1, big, mpmath.besselj), ("iv", 2, z, mpmath.besseli),
    ("spherical_jn", 1, big, lambda n, x: mpmath.sqrt(half(pi) / x)
        * mpmath.besselj(n + half(1), x)),
    ("ellipk_slope", x, lambda m: (mpmath.ellipe(m) / (1 - m) - mpmath.ellipk(m)) / (2 * m)),
    ("ellipk_slope", -big, lambda m: (mpmath.ellipe(m) / (1 - m) - mpmath.ellipk(m)) / (2 * m)),
    ("beta_density", big, w, x, beta_density),
    ("gamma_density_slope", 1, big, w, lambda n, a, x: mpmath.diff(
        lambda a: gamma_density(a, x), a, n) if n > 0 else n + 1 and gamma_density(a, x)),
    ("beta_density_slope", 1, 1, big, w, x, lambda i, j, a, b, x: min(i, j) >= 0 and mpmath.diff(
        lambda a, b: beta_density(a, b, x), (a, b), (i, j))),
    ("gammainc_slope", 1, col, big, lambda n, a, x: mpmath.diff(
        lambda a: mpmath.gammainc(a, 0, x, regularized=True), a, n)),
    ("betainc_slope", 0, 1, big, w, x, lambda i, j, a, b, x: mpmath.diff(
        lambda a, b: mpmath.betainc(a, b, 0, x, regularized=True), (a, b), (i, j))),
    ("gammainc", big, w, lambda a, x: mpmath.gammainc(a, 0, x, regularized=True)),
    ("betainc", big, w, x, lambda a, b, x: mpmath.betainc(a, b, 0, x, regularized=True)),
    ("stdtr", big, z, lambda v, t: half(1) + t * t_density(v, 0) * mpmath.hyp2f1(
        half(1), half(v + 1), half(3), -t * t / v)),
    *DISTRIBUTIONS,
    *((name + "c", *args, lambda *a, f=f: 1 - f(*a)) for name, *args, f in DISTRIBUTIONS),
    ("gammaincinv", big, x, lambda a, p: root(
        lambda t: mpmath.gammainc(a, 0, t, regularized=True), p, a * p + p**4)),
    ("betaincinv", 1.7, 2.5, x, lambda a, b, p: root(
        lambda t: mpmath.betainc(a, b, 0, t, regularized=True), p, p)),
    ("gammainc", 1.7, big, lambda a, x: mpmath.gammainc(a, 0, x, regularized=True)),
    ("gammaincc", 1.7, big, lambda a, x: mpmath.gammainc(a, x, regularized=True)),
    ("gammaincinv", 1.7, x, lambda a, p: root(
        lambda t: mpmath.gammainc(a, 0, t, regularized=True), p, 2 * p + p**4)),
    ("gammainccinv", 1.7, x, lambda a, p: root(
        lambda t: mpmath.gammainc(a, t, regularized=True), p, 2 * (1 - p) + (1 - p)**4)),
    ("betainc", 1.7, 2, x, lambda a, b, x: mpmath.betainc(a, b, 0, x, regularized=True)),
    ("betaincc", 1.7, 2, x, lambda a, b, x: mpmath.betainc(a, b, x, 1, regularized=True)),
    ("betaincinv", 1.7, 2, x, lambda a, b, p: root(
        lambda t: mpmath.betainc(a, b, 0, t, regularized=True), p, p)),
    ("betainccinv", 1.7, 2, x, lambda a, b, p: root(
        lambda t: mpmath.betainc(a, b, t, 1, regularized=True), p, 1 - p)),
    ("stdtr", 1.7, z, lambda v, t: half(1) + t * t_density(v, 0) * mpmath.hyp2f1(
        half(1), half(v + 1), half(3), -t * t / v)),
    ("stdtrit", 2, x, lambda v, p: (2 * p - 1) * mpmath.sqrt(2 / (4 * p * (1 - p)))),
    ("betaincc", 1.7, 2.3, x, lambda a, b, x: mpmath.betainc(a, b, x, 1, regularized=True)),
    ("betaincc", w, big, x, lambda a, b, x: mpmath.betainc(a, b, x, 1, regularized=True)),
    ("betainccinv", 1.7, 2.3, x, lambda a, b, p: root(
        lambda t: mpmath.betainc(a, b, t, 1, regularized=True), p, 1 - p)),
    ("gammaincc", big, w, lambda a, x: mpmath.gammainc(a, x, regularized=True)),
    ("gammainccinv", big, x, lambda a, p: root(
        lambda t: mpmath.gammainc(a, t, regularized=True), p, a * (1 - p) + (1 - p) ** 4)),
    ("stdtrit", 2.4, x, lambda v, p: root(lambda t: half(1) + t * t_density(v, 0) * mpmath.hyp2f1(
        half(1), half(v + 1), half(3), -t * t / v), p, 3 * (p - half(1)))),
    *(("scipy_" + name, x, f) for name, f in SAME),
    ("radian", z, big, w, lambda d, m, s: (d + m / 60 + s / 3600) * pi / 180),
    ("voigt_profile", z, w, big, lambda x, s, g: mpmath.re(faddeeva((x + 1j * g) / s
        / mpmath.sqrt(2))) / s / mpmath.sqrt(2 * pi)),
    # the error function and the normal distribution
    ("erf", z, mpmath.erf),
    ("erfc", z, mpmath.erfc),
    ("erfcx", z, lambda x: mpmath.exp(x * x) * mpmath.erfc(x)),
    ("erfi", z, mpmath.erfi),
    ("dawsn", z, lambda x: mpmath.exp(-x * x) * mpmath.erfi(x) * mpmath.sqrt(pi) / 2),
    ("erfinv", x, mpmath.erfinv),
    ("erfcinv", x, lambda p: mpmath.erfinv(1 - p)),
    ("ndtr", z, normal),
    ("log_ndtr", z, lambda x: mpmath.log(normal(x))),
    ("ndtri", x, lambda p: mpmath.sqrt(2) * mpmath.erfinv(2 * p - 1)),
    ("ndtri_exp", -big, lambda p: mpmath.sqrt(2) * mpmath.erfinv(2 * mpmath.exp(p) - 1)),
    ("owens_t", z, x, lambda h, a: mpmath.quad(
        lambda t: mpmath.exp(-h * h * (1 + t * t) / 2) / (1 + t * t), [0, a]) / (2 * pi)),
    ("fresnel_s", z, mpmath.fresnels),
    ("fresnel_c", z, mpmath.fresnelc),
    # logistic functions and entropies
    ("expit", z, lambda x: 1 / (1 + mpmath.exp(-x))),
    ("logit", x, lambda p: mpmath.log(p / (1 - p))),
    ("log_expit", z, lambda x: -mpmath.log(1 + mpmath.exp(-x))),
    ("entr", x, lambda x: -x * mpmath.log(x)),
    ("rel_entr", x, w, ratio),
    ("kl_div", x, w, lambda x, w: ratio(x, w) - x + w),
    ("xlogy", z, x, lambda x, w: x * mpmath.log(w)),
    ("xlogy", col, row, lambda x, w: x * mpmath.log(w)),
    ("xlog1py", z, x, lambda x, w: x * mpmath.log(1 + w)),
    # powers and exponentials
    ("exp10", z, lambda x: mpf(10) ** x),
    ("exprel", z, lambda x: mpmath.expm1(x) / x),
    ("cosm1", z, lambda x: mpmath.cos(x) - 1),
    ("powm1", x, z, lambda x, w: x**w - 1),
    ("boxcox", x, w, boxcox),
    ("boxcox1p", x, w, lambda x, w: boxcox(1 + x, w)),
    ("inv_boxcox", x, w, lambda x, w: (1 + w * x) ** (1 / w)),
    ("inv_boxcox1p", x, w, lambda x, w: (1 + w * x) ** (1 / w) - 1),
    ("log1p_deficit", z[1:], lambda x: (mpmath.log(1 + x) - x / (1 + x)) / x**2),
    ("sindg", 50 * z, lambda x: mpmath.sin(mpmath.radians(x))),
    ("cosdg", 50 * z, lambda x: mpmath.cos(mpmath.radians(x))),
    ("tandg", 50 * z, lambda x: mpmath.tan(mpmath.radians(x))),
    ("cotdg", 50 * z, lambda x: mpmath.cot(mpmath.radians(x))),
    # integrals
    ("expi", z, mpmath.ei),
    ("exp1", x, mpmath.e1),
    ("expn", 3, x, mpmath.expint),
    ("expn", 0, x, mpmath.expint),
    ("spence", x, lambda x: mpmath.polylog(2, 1 - x)),
    ("sine_integral", z, mpmath.si),
    ("cosine_integral", x, mpmath.ci),
    ("hyperbolic_sine_integral", z, mpmath.shi),
    ("hyperbolic_cosine_integral", x, mpmath.chi),
    ("wrightomega", z, lambda x: mpmath.lambertw(mpmath.exp(x)).real),
    # losses
    ("huber", x, z, lambda d, r: r * r / 2 if abs(r) <= d else d * (abs(r) - d / 2)),
    ("pseudo_huber", x, z, lambda d, r: d * d * (mpmath.sqrt(1 + (r / d) ** 2) - 1)),
    # hypergeometric functions and elliptic integrals
    ("hyp0f1", 1.7, z, mpmath.hyp0f1),
    ("hyp1f1", 1.7, 0.6, z, mpmath.hyp1f1),
    ("hyp2f1", 1.7, 0.6, 2.2, x, mpmath.hyp2f1),
    ("hyperu", 1.7, 0.6, big, mpmath.hyperu),
    ("ellipk", x, mpmath.ellipk),
    ("ellipe", x, mpmath.ellipe),
    ("ellipkm1", x, lambda p: mpmath.ellipk(1 - p)),
    ("ellipkm1_slope", x, lambda p: -mpmath.diff(mpmath.ellipk, 1 - p)),
    ("ellipkinc", z, 0.3, mpmath.ellipf),
    ("ellipeinc", z, 0.3, mpmath.ellipe),
    ("jacobi_sn", z, 0.3, lambda u, m: mpmath.ellipfun("sn", u, m=m)),
    ("jacobi_cn", z, 0.3, lambda u, m: mpmath.ellipfun("cn", u, m=m)),
    ("jacobi_dn", z, 0.3, lambda u, m: mpmath.ellipfun("dn", u, m=m)),
    ("jacobi_am", z, 0.3, lambda u, m: mpmath.quad(
        lambda t: mpmath.ellipfun("dn", t, m=m), [0, u])),
    # Bessel functions
    ("jv", 1.5, big, mpmath.besselj),
    ("yv", 1.5, big, mpmath.bessely),
    ("iv", 1.5, big, mpmath.besseli),
    ("kv", 1.5, big, mpmath.besselk),
    ("yn", 0, big, mpmath.bessely),
    ("kn", 0, big, mpmath.besselk),
    ("jve", 1.5, big, mpmath.besselj),
    ("yve", 1.5, big, mpmath.bessely),
    ("ive", 2, z, scaled(mpmath.besseli, shrunk)),
    ("kve", 1.5, big, scaled(mpmath.besselk, mpmath.exp)),
    ("ive_slope", 12, 30 * big, lambda v, x: (
        mpmath.diff(lambda t: mpmath.besseli(v, t) * shrunk(t), x))),
    ("ive_slope", 3, 60 * big, lambda v, x: (
        mpmath.diff(lambda t: mpmath.besseli(v, t) * shrunk(t), x))),
    ("kve_slope", 3, 60 * big, slope_of_scaled_k),
    ("ive_slope", 1.5, big, lambda v, x: (
        mpmath.diff(lambda t: mpmath.besseli(v, t) * shrunk(t), x))),
    ("ive_slope", 2, z, lambda v, x: mpmath.diff(lambda t: mpmath.besseli(v, t) * shrunk(t), x)),
    ("kve_slope", 2, big, slope_of_scaled_k),
    ("j0", z, lambda x: mpmath.besselj(0, x)),
    ("j1", z, lambda x: mpmath.besselj(1, x)),
    ("y0", big, lambda x: mpmath.bessely(0, x)),
    ("y1", big, lambda x: mpmath.bessely(1, x)),
    ("i0", z, lambda x: mpmath.besseli(0, x)),
    ("i1", z, lambda x: mpmath.besseli(1, x)),
    ("k0", big, lambda x: mpmath.besselk(0, x)),
    ("k1", big, lambda x: mpmath.besselk(1, x)),
    ("i0e", z, lambda x: mpmath.besseli(0, x) * shrunk(x)),
    ("i1e", z, lambda x: mpmath.besseli(1, x) * shrunk(x)),
    ("k0e", big, lambda x: mpmath.besselk(0, x) * mpmath.exp(x)),
    ("k1e", big, lambda x: mpmath.besselk(1, x) * mpmath.exp(x)),
    ("airy_ai", z, mpmath.airyai),
    ("airy_aip", z, lambda x: mpmath.airyai(x, derivative=1)),
    ("airy_bi", z, mpmath.airybi),
    ("airy_bip", z, lambda x: mpmath.airybi(x, derivative=1)),
    ("ber", z, kelvin(0, mpmath.ber)),
    ("bei", z, kelvin(0, mpmath.bei)),
    ("ker", big, kelvin(0, mpmath.ker)),
    ("kei", big, kelvin(0, mpmath.kei)),
    ("berp", z, kelvin(1, mpmath.ber)),
    ("beip", z, kelvin(1, mpmath.bei)),
    ("kerp", big, kelvin(1, mpmath.ker)),
    ("keip", big, kelvin(1, mpmath.kei)),
    ("struve", 1.5, big, mpmath.struveh),
    ("modstruve", 1.5, big, mpmath.struvel),
    ("spherical_jn", 2, big, lambda n, x: mpmath.besselj(n + half(1), x) * mpmath.sqrt(pi / 2 / x)),
    ("spherical_yn", 0, big, lambda n, x: mpmath.bessely(n + half(1), x) * mpmath.sqrt(pi / 2 / x)),
    ("spherical_in", 0, big, lambda n, x: mpmath.besseli(n + half(1), x) * mpmath.sqrt(pi / 2 / x)),
    ("spherical_kn", 2, big, lambda n, x: mpmath.besselk(n + half(1), x) * mpmath.sqrt(pi / 2 / x)),
    # orthogonal polynomials
    *[(f"eval_{name}", n, *rest, z, f) for n in (0, 1) for name, *rest, f in POLYNOMIALS],
    ("eval_legendre", 3, z, mpmath.legendre),
    ("eval_legendre", 2.5, x, mpmath.legendre),
    ("eval_chebyt", 4, z, mpmath.chebyt),
    ("eval_chebyu", 4, z, mpmath.chebyu),
    ("eval_gegenbauer", 3, 0.7, z, mpmath.gegenbauer),
    ("eval_jacobi", 3, 0.7, 1.2, z, mpmath.jacobi),
    ("eval_laguerre", 3, z, lambda n, x: mpmath.laguerre(n, 0, x)),
    ("eval_genlaguerre", 3, 0.7, z, mpmath.laguerre),
    ("eval_hermite", 3, z, mpmath.hermite),
    ("eval_hermitenorm", 3, z, lambda n, x: mpmath.hermite(n, x / mpmath.sqrt(2)) / 2**half(n)),
    # complex values of real numbers
    ("wofz", z, faddeeva),
    ("wofz_derivative", 1, z, lambda n, x: mpmath.diff(faddeeva, x, n)),
    ("lambertw", z, 0, lambda x, k: mpmath.lambertw(x, k)),
    ("hankel1", 1.5, big, mpmath.hankel1),
    ("hankel2", 1.5, big, mpmath.hankel2),
    ("hankel1e", 1.5, big, lambda v, x: mpmath.hankel1(v, x) * mpmath.exp(-1j * x)),
    ("hankel2e", 1.5, big, lambda v, x: mpmath.hankel2(v, x) * mpmath.exp(1j * x)),
]  # fmt: skip
