"""SciPy's functions as users write them: each line is an expression, and the laws hold for it."""

import re
import warnings

import numpy as np
from scipy import fft, special  # noqa: F401  the lines mention them
from tables import Laws
from test_numpy_forms import close, difference, flat, random_like

import lineara
from lineara.engines import run
from lineara.linear_a.check import check
from lineara.passes.derivatives import vjp
from lineara.staging.capture import trace

rng = np.random.default_rng(5)
POINT = {
    "s": 0.7,
    "x": np.array([0.31, -0.72, 0.55]),
    "p": np.array([0.83, 0.26, 0.61]),
    "v": np.array([0.9, 1.7, 0.4, 2.3]),
    "A": rng.normal(size=(3, 4)),
    "P": rng.uniform(0.2, 2.0, size=(3, 4)),
}
column = np.array([[0], [2]])
mask = np.array([[True, False, True, True], [False, False, True, True], [True, True, True, False]])

FORMS = """
# sums of exponentials
special.logsumexp(np.stack([x, x])); special.logsumexp(x + 1e3); special.logsumexp(x - 1e3)
special.logsumexp(A); special.logsumexp(A, axis=1); special.logsumexp(A, 0, keepdims=True)
special.logsumexp(A, b=P); special.logsumexp(A, axis=1, b=P); special.logsumexp(A, axis=(0, 1))
special.logsumexp(A, b=mask, axis=1); special.logsumexp(A, b=-P, return_sign=True)[0]
special.logsumexp(A[:, :1], b=P, axis=-1); special.logsumexp(s); special.logsumexp([s, 1.0])
special.logsumexp(np.append(x, -np.inf)); special.logsumexp(60 * x)
special.logsumexp(x + 1j * p).imag; special.softmax(x); special.softmax(A, axis=1)
special.softmax(A, axis=-2); special.softmax(900 * x); special.log_softmax(x)
special.log_softmax(A, axis=1); special.log_softmax(90 * x); special.softplus(x); special.logit(p)
special.expit(A); special.log_expit(A); np.log(special.expit(x)); -np.sum(special.xlogy(p, p))
special.xlogy(np.array([0.0, 1.0, 2.0]), p); special.entr(p); np.sum(special.rel_entr(p, p[::-1]))
special.kl_div(p, 0.3); special.xlog1py(2.0, p)
# gamma and its kin
special.gammaln(P); special.gamma(v); special.loggamma(v); special.rgamma(x); special.digamma(v)
special.psi(v); special.polygamma(1, v); special.polygamma(column, v); special.beta(v, s)
special.betaln(P, v); special.binom(v, 2); special.comb(v + 2, 2); special.comb(5, p)
special.comb(p, 2); special.perm(p, 2)
special.comb(v, 2, repetition=True); special.perm(v + 2, 2); special.factorial(v)
special.poch(v, p[0]); special.factorial(-v - 0.5); special.multigammaln(v + 3, 3)
special.zeta(2.0, v); special.gammainc(2, v); special.gammaincc([1.0, 2.0, 3.0], p)
special.betainc(2, 3, p); special.gammaincinv(2.0, p); special.loggamma(v + 1j * v[0]).real
special.gamma(x + 1j * p).imag; special.erf(x + 1j * p).real
# distributions
special.ndtr(A); special.log_ndtr(A); special.ndtri(p); special.chdtr(3.0, v)
special.chdtrc(3.0, v); special.chdtri(3.0, p); special.gdtr(1.5, 2.0, v); special.gdtrc(s, 2.0, v)
special.pdtr(2, v); special.pdtrc(2, v); special.bdtr(2, 5, p); special.bdtrc(2, 5, p)
special.nbdtr(2, 5, p); special.nbdtrc(2, 5, p); special.fdtr(3.0, 4.0, v)
special.fdtrc(3.0, 4.0, v); special.stdtr(3, x); special.stdtrit(3, p)
fft.fftn(np.stack([A, A * A]), (4, 3)).real; fft.hfftn(A, (3, 4), (0, 1), None, True)
fft.ifftn(np.stack([A, P]), (2, 5)).imag
# the others
special.erf(x); special.erfcx(x, out=np.zeros_like(x)); special.erf(A, np.zeros_like(A))
special.voigt_profile(x, s, 0.3); special.voigt_profile(x, 0.4, s); special.voigt_profile(x, 0.0, s)
special.diric(x, 5); special.diric(np.append(x, 0.0), 4); special.radian(s, 3.0, s)
special.sindg(90 * x); special.fresnel(x); special.sici(p); special.shichi(p)
special.ellipj(x, 0.3); special.airy(x); special.lambertw(v).real
special.lambertw(-0.3 * p, -1).real; special.lambertw(x + 1j * p).imag; special.jv(1, x)
special.jn(2, v); special.jv(0.5, v); special.iv(2, x); special.kv(1.5, v); special.kn(2, v)
special.yn(1, v); special.j0(x); special.i0e(x); special.k0e(v); special.hankel1(0, v).real
special.spherical_jn(2, v); special.spherical_jn(2, v, derivative=True); special.spherical_kn(1, v)
special.eval_legendre(4, x); special.eval_chebyt(column, x)
special.legendre(3)(x); special.hyp2f1(1.0, 2.0, 3.0, x); special.hyp1f1(1.0, 2.0, A)
special.ellipk(p); special.ellipe(p); special.exprel(x); special.cosm1(x); special.cbrt(x)
special.exp2(x); special.expm1(x); special.log1p(x); special.exp10(x); special.boxcox(v, s)
special.inv_boxcox(v, s); special.huber(0.5, A); special.pseudo_huber(s, A); special.powm1(v, s)
special.round(x) * x; special.expi(v); special.exp1(v); special.expn(2, v); special.spence(v)
special.ive(1.5 + 0.0, p + 1j * x[0]).real; special.jve(1, p + 1j * x[0]).imag
special.kve(1, p + 1j * x).real
# Fourier transforms
abs(fft.fft(x)); fft.fft(A, 5, 0, norm="ortho").real; fft.ifft(x, n=2, overwrite_x=True).imag
fft.rfft(v, workers=1).imag; fft.irfft(A, 5); fft.fft2(A).imag; fft.ifftn(A, (2, 2)).real
fft.rfft2(A).imag; fft.irfftn(A); fft.hfft(v); fft.ihfft(v).imag; fft.hfft2(A); fft.ihfftn(A).real
fft.fftshift(A); fft.ifftshift(x, axes=0); fft.rfftn(A, axes=(1, 0)).imag
fft.dct(v); fft.dct(v, 1); fft.dct(A, 3, axis=0); fft.dct(v, 4, norm="ortho"); fft.dct(v, n=6)
fft.dct(v, 1, norm="ortho"); fft.dct(v, 2, norm="forward"); fft.dct(v, 3, 3, norm="ortho")
fft.dct(v, norm="ortho", orthogonalize=False); fft.dct(v, 3, orthogonalize=True); fft.idct(v)
fft.idct(v, 1); fft.idct(A, 3, norm="forward"); fft.idct(v, norm="ortho"); fft.dctn(A)
fft.idctn(A, s=(2, 5), norm="ortho"); fft.dst(v); fft.dst(v, 1); fft.dst(A, 3, axis=0)
fft.dst(v, 4, norm="forward"); fft.dst(v, 2, norm="ortho"); fft.idst(v, 1); fft.idst(v, 2)
fft.idst(v, 3, orthogonalize=True); fft.dstn(A, axes=0); fft.idstn(A, norm="ortho")
np.imag(fft.dct(x + 1j * p))
"""

LINES = [f.strip() for text in FORMS.splitlines() if text[:1] != "#" for f in text.split(";")]
LINES = [line for line in LINES if line]
ROUGH = r"erfcx|hyp1f1|betainc"  # where SciPy's own values are rough


laws = Laws()


def form(line):
    """The expression as a function, and the names that it is a function of."""
    names = [n for n in POINT if re.search(rf"(?<![\w.\"]){n}(?![\w(\"'=])", line)]
    function = eval(f"lambda {', '.join(names)}: flat({line})", globals() | {"flat": flat})
    return function, [POINT[n] for n in names]


@laws.of(LINES)
def the_value_is_that_of_scipy(line):
    f, point = form(line)
    plain = f(*point)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        y, _ = lineara.linearize(f, *point)
    assert np.shape(y) == np.shape(plain)
    assert np.asarray(y).dtype == np.asarray(plain).dtype
    if re.search(r"\.(jn|jv|iv)\(", line):  # whose kernels are more accurate than SciPy's
        close(y, plain, 4e-14)
    else:
        np.testing.assert_array_equal(y, plain)


@laws.of(LINES)
def first_derivatives_agree_with_differences_in_both_modes(line):
    f, point = form(line)
    y, L = lineara.linearize(f, *point)
    direction = [random_like(p, i) for i, p in enumerate(point)]
    ahead = L @ (direction[0] if len(point) == 1 else tuple(direction))
    close(ahead, difference(f, point, direction), 1e-7)
    y_bar = random_like(y, 9)
    back = y_bar @ L
    back = (back,) if len(point) == 1 else back
    total = sum(np.sum(g * d) for g, d in zip(back, direction, strict=True))
    close(total, np.sum(y_bar * ahead), 1e-11)


@laws.of(LINES)
def second_derivatives_agree_with_differences(line):
    f, point = form(line)
    c = random_like(f(*point), 5)
    gradient = lineara.grad(lambda *v: np.sum(c * f(*v)))
    direction = [random_like(p, i) for i, p in enumerate(point)]
    _, found = lineara.jvp(gradient, tuple(point), tuple(direction))
    close(found, difference(gradient, point, direction), 1e-6)


@laws.of(LINES)
def staged_equals_eager(line):
    f, point = form(line)
    staged = trace(f, *point)
    program = check(vjp(staged.program, staged.name))
    y, L = lineara.linearize(f, *point)
    c = random_like(y, 9)
    out = run(program, f"{staged.name}.vjp", *staged.operands(tuple(point)), c)
    close(out.results[0], y, 1e-13)
    gradient = c @ L
    gradient = (gradient,) if len(point) == 1 else gradient
    for a, b in zip(out.lresults, gradient, strict=False):  # large constants come after
        close(a, b, 1e-11)


test_every_law = laws.test()
