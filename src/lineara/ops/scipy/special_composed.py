"""scipy.special: functions composed of others, and functions with several results."""

import math
from typing import Any

import numpy as np

from lineara.errors import NoRuleError
from lineara.facts.hints import Axis, Shaped, Tree, Value
from lineara.facts.primitive import Box, Elementwise, elementwise, implements, op
from lineara.facts.types import is_complex, type_of
from lineara.ops.elementwise import (
    cbrt,
    exp,
    exp2,
    expm1,
    log,
    log1p,
    logaddexp,
    real,
    rint,
    sin,
    sqrt,
    stop_gradient,
    trunc,
    where,
)
from lineara.ops.scipy import special_kernels
from lineara.ops.scipy.bessel import airy_ai, airy_aip, airy_bi, airy_bip
from lineara.ops.scipy.special import (
    ORDER,
    Special,
    beta_density,
    betainc_slope,
    binom,
    defined,
    digamma,
    fresnel_c,
    fresnel_s,
    gamma,
    gamma_density,
    gammainc_slope,
    gammainccinv,
    kernel,
    lgamma,
    poch,
    special,
    wofz_derivative,
)
from lineara.ops.scipy.special import zeta as hurwitz
from lineara.ops.scipy.special_elementwise import (
    cosine_integral,
    hyperbolic_cosine_integral,
    jacobi_am,
    jacobi_cn,
    jacobi_dn,
    jacobi_sn,
    xlog1py,
    xlogy,
)
from lineara.ops.scipy.special_elementwise import lambertw as lambert
from lineara.ops.scipy.special_kernels import part, scipy_special


def only_plain(value: Tree, function: str, what: str) -> Any:
    """The value of an argument without a derivative rule; an error if it is traced."""
    if isinstance(value, Box):
        raise NoRuleError(
            f"{function} has no derivative with respect to {what}; give it a plain number there, "
            "or declare the derivative with lineara.custom_jvp"
        )
    return value


implements("scipy.special.psi", "scipy.special.digamma")(digamma)
implements("scipy.special.round")(rint)


for _same in (cbrt, exp2, expm1, log1p):  # like NumPy's functions but for the last bits
    special(f"scipy_{_same.name}", *_same.stated, scipy=_same.name)

# --- sums of exponentials ------------------------------------------------------------------------


def _largest(a: Shaped, axis: Axis) -> Any:
    """The largest real part along the axes, a constant; 0 where it is not finite."""
    top = op("max")(stop_gradient(real(a)), axis=axis, keepdims=True)
    return where(op("isfinite")(top), top, 0.0)


def _axes(a: Shaped, axis: Axis) -> tuple[int, ...]:
    count = len(type_of(a).shape)
    axes = range(count) if axis is None else axis if isinstance(axis, tuple | list) else (axis,)
    return tuple([i % count for i in axes])


@implements("scipy.special.logsumexp")
def logsumexp(a, axis=None, b=None, keepdims=False, return_sign=False):
    """log of the sum of b exp(a); where the sum is all but one term, as accurate as log1p."""
    shape = (
        type_of(a).shape if b is None else np.broadcast_shapes(type_of(a).shape, type_of(b).shape)
    )
    a = a if shape == type_of(a).shape else op("broadcast_to")(a, shape=shape)
    a = op("reshape")(a, shape=(1,)) if not shape else a
    axes = _axes(a, axis)
    a = a if b is None else where(op("equal")(b, 0), -np.inf, a)
    top = _largest(a, axes)
    if b is None and not is_complex(a) and not return_sign:
        y = top + _log_of_rest(a - top, axes)
        sign = None
    else:
        terms = exp(a - top) if b is None else b * exp(a - top)
        total = op("sum")(terms, axis=axes, keepdims=True)
        size = op("abs")(total)
        sign = op("sign")(total) if not is_complex(total) else total / size
        y = (log(size) if return_sign else log(total)) + top
    rest = [n for i, n in enumerate(type_of(a).shape) if i not in axes]
    finish = (lambda v: v) if keepdims else lambda v: op("reshape")(v, shape=tuple(rest))
    return (finish(y), finish(sign)) if return_sign else finish(y)


def _log_of_rest(d: Shaped, axes: tuple[int, ...]) -> Any:
    """log of the sum of exp(d), where the largest d is 0: those are counted, the rest is small."""
    t = type_of(d)
    zero = op("equal")(stop_gradient(d), 0)
    if len(axes) == t.ndim:
        zeros = op("reshape")(op("count_nonzero")(zero), shape=(1,) * t.ndim)
    else:
        zeros = op("sum")(zero, axis=axes, keepdims=True)
    count = op("astype")(np.maximum(zeros, 1.0), dtype=t.dtype)
    terms = exp(d) - op("astype")(zero, dtype=t.dtype)  # exp(0) is 1
    rest = op("sum")(terms, axis=axes, keepdims=True)
    none = op("equal")(zeros, 0)
    alone = log(where(none, rest, 1.0))
    return where(none, alone, log1p(rest / count) + log(count))


@implements("scipy.special.softmax")
def softmax(x, axis=None):
    """exp(x) divided by its sum."""
    terms = exp(x - _largest(x, _axes(x, axis)))
    return terms / op("sum")(terms, axis=_axes(x, axis), keepdims=True)


@implements("scipy.special.log_softmax")
def log_softmax(x, axis=None):
    """x minus the logarithm of the sum of exp(x)."""
    return x - logsumexp(x, axis, keepdims=True)


@implements("scipy.special.softplus")
def softplus(x, **options):
    """log(1 + exp(x))."""
    return logaddexp(0.0, x, **options)


# --- products with logarithms --------------------------------------------------------------------


def _times_log(name: str, primitive: Any, logarithm: Any, pole: float) -> Any:
    """x log(w), where a traced x of zero moves as any other, and a plain one hides what w does."""

    @implements(f"scipy.special.{name}")
    def product(x, w):
        if not isinstance(x, Box):
            return primitive(x, w)
        is_complex = type_of(w).dtype.kind == "c"  # and has a logarithm below the pole
        nothing = op("equal" if is_complex else "less_equal")(w, pole)
        smooth = x * logarithm(where(nothing, pole + 1.0, w))
        return where(nothing, primitive(x, w), smooth)

    return product


times_log: Any = _times_log("xlogy", xlogy, log, 0.0)
times_log1p: Any = _times_log("xlog1py", xlog1py, log1p, -1.0)


# --- one argument more, or fewer -----------------------------------------------------------------


@implements("scipy.special.lambertw")
def lambertw(z, k=0, tol=1e-8):
    """The branch k of Lambert's function, a complex number."""
    return lambert(z, k)


@implements("scipy.special.zeta")
def zeta(x, q=None, out=None):
    """Hurwitz' zeta function; in x it has no rule."""
    return hurwitz(x, 1.0 if q is None else q)


@implements("scipy.special.multigammaln")
def multigammaln(a, d):
    """log of the multivariate gamma function of a dimension."""
    total = d * (d - 1) / 4 * math.log(math.pi)
    for j in range(int(d)):
        total = total + lgamma(a - j / 2)
    return total


special(
    "radian",
    lambda y, x, w, u: math.pi / 180,
    lambda y, x, w, u: math.pi / 180 / 60,
    lambda y, x, w, u: math.pi / 180 / 3600,
)


@implements("scipy.special.diric")
def diric(x, n):
    """sin(n x / 2) / (n sin(x / 2)), periodic."""
    n = only_plain(n, "scipy.special.diric", "n")
    below = sin(x / 2)
    pole = op("less")(op("abs")(below), 1e-7)
    at_pole = (-1.0) ** (rint(x / (2 * np.pi)) * (n - 1))
    y = where(pole, at_pole, sin(n * x / 2) / (n * where(pole, 1.0, below)))
    return where((n <= 0) | (n != np.floor(n)), np.nan, y)


def _voigt(x: Value, sigma: Value, gamma: Any, cauchy: Any, normal: Any) -> Any:
    """A partial of Voigt's profile of that of Faddeeva's function; Cauchy's where sigma is 0."""
    wide = where(sigma == 0, 1, sigma) * math.sqrt(2)
    z = (x + 1j * gamma) / wide
    smooth = real(normal(wofz_derivative(1, z), z)) / (wide * wide * math.sqrt(math.pi))
    return where(sigma == 0, cauchy / (math.pi * (x * x + gamma * gamma) ** 2), smooth)


special(  # a normal density of deviation w, convolved with Cauchy's of width u
    "voigt_profile",
    lambda y, x, w, u: _voigt(x, w, u, -2 * x * u, lambda slope, z: slope),
    lambda y, x, w, u: where(
        w == 0, 0, -y / w + _voigt(x, w, u, 0, lambda slope, z: -math.sqrt(2) * slope * z)
    ),
    lambda y, x, w, u: _voigt(x, w, u, x * x - u * u, lambda slope, z: 1j * slope),
)

# --- counting ------------------------------------------------------------------------------------


def _counted(n: Value, k: Value, y: Value) -> Any:
    """y, but 0 unless 0 <= k <= n."""
    return where(op("less_equal")(k, n) * op("greater_equal")(k, 0), y, 0.0)


def _not_exact(exact: bool, name: str) -> None:
    if exact:
        raise NoRuleError(
            f"scipy.special.{name} with exact=True counts integers, which have no derivative; "
            "leave exact=True out"
        )


@implements("scipy.special.comb")
def comb(N, k, *, exact=False, repetition=False):
    """The binomial coefficient of N and k."""
    _not_exact(exact, "comb")
    if repetition:
        empty = op("equal")(k, 0) * op("greater_equal")(N, 0)
        return where(empty, 1.0, binom(N + k - 1, k))
    return _counted(N, k, binom(N, k))


@implements("scipy.special.perm")
def perm(N, k, exact=False):
    """The number of sequences of k out of N elements."""
    _not_exact(exact, "perm")
    return _counted(N, k, poch(N - k + 1, k))


@implements("scipy.special.factorial")
def factorial(n, exact=False, extend="zero"):
    """n!, as gamma(n + 1); 0 below zero unless extended."""
    _not_exact(exact, "factorial")
    y = gamma(n + 1)
    return y if extend == "complex" else where(op("less")(n, 0), 0.0, y)


# --- several results -----------------------------------------------------------------------------


def _several(name: str, *parts: Any) -> None:
    implements(f"scipy.special.{name}")(lambda *args: tuple([p(*args) for p in parts]))


_several("fresnel", fresnel_s, fresnel_c)
_several("ellipj", jacobi_sn, jacobi_cn, jacobi_dn, jacobi_am)
_several("airy", airy_ai, airy_aip, airy_bi, airy_bip)

# --- distribution functions --------------------------------------------------------------------

stdtr: Special = special("stdtr", lambda y, x, w: _t_slope(x, w), lambda y, x, w: _t_density(x, w))
stdtrit: Special = special(
    "stdtrit",
    lambda y, x, w: -_t_slope(x, y) / _t_density(x, y),
    lambda y, x, w: 1 / _t_density(x, y),
)


def _t_slope(v: Value, t: Value) -> Any:
    """The derivative in the degrees of freedom, of half of an incomplete beta function.

    It is that of v / (v + t^2) far out, and its complement near 0.
    """
    far = betainc_slope(1, 0, v / 2, 0.5, v / (v + t * t))
    near = betainc_slope(0, 1, 0.5, v / 2, t * t / (v + t * t))
    in_shape = op("sign")(t) / 4 * where(t * t > v, -far, near)
    return in_shape - t / (2 * v) * _t_density(v, t)


def _t_density(v: Value, t: Value) -> Any:
    """Student's density."""
    return op("poch")(v / 2, 0.5) / sqrt(math.pi * v) * exp(-(v + 1) / 2 * log1p(t * t / v))


def _distributions(tail: str, sign: int) -> None:
    """Declare distribution functions, or their complements, whose slopes have the other sign.

    Counts are cut off to whole numbers, as SciPy does: their slope is 0.
    """
    special(
        f"chdtr{tail}",
        lambda y, x, w: defined(y, sign / 2 * gammainc_slope(1, x / 2, w / 2)),
        lambda y, x, w: defined(y, sign / 2 * gamma_density(x / 2, w / 2)),
    )
    special(
        f"gdtr{tail}",
        lambda y, x, w, u: defined(y, sign * u * gamma_density(w, x * u)),
        lambda y, x, w, u: defined(y, sign * gammainc_slope(1, w, x * u)),
        lambda y, x, w, u: defined(y, sign * x * gamma_density(w, x * u)),
    )
    special(
        f"pdtr{tail}",
        lambda y, x, w: defined(y, 0),
        lambda y, x, w: defined(y, -sign * gamma_density(op("floor")(x) + 1, w)),
    )
    special(
        f"bdtr{tail}",
        lambda y, x, w, u: defined(y, 0),
        lambda y, x, w, u: defined(y, 0),
        lambda y, x, w, u: defined(y, -sign * _binomial_slope(op("floor")(x), trunc(w), u)),
        counts=[1],
    )
    special(
        f"nbdtr{tail}",
        lambda y, x, w, u: defined(y, 0),
        lambda y, x, w, u: defined(y, 0),
        lambda y, x, w, u: defined(y, sign * beta_density(trunc(w), trunc(x) + 1, u)),
        counts=[0, 1],
    )
    special(
        f"fdtr{tail}",
        lambda y, x, w, u: defined(
            y, sign * (_f_shape(x, w, x * u, w) + u * w * _f_density(x, w, u))
        ),
        lambda y, x, w, u: defined(
            y, -sign * (_f_shape(w, x, w, x * u) + u * x * _f_density(x, w, u))
        ),
        lambda y, x, w, u: defined(y, sign * w * x * _f_density(x, w, u)),
    )


def _binomial_slope(k: Value, n: Value, p: Value) -> Any:
    """The density in p of more than k of n, which is certain for k < 0 and cannot be for k = n."""
    some = (k >= 0) * (k < n)
    return where(some, beta_density(where(some, k, 0) + 1, where(some, n - k, 1), p), 0)


def _f_shape(m: Value, n: Value, a: Value, b: Value) -> Any:
    """The slope in m of the incomplete beta function of m / 2 and n / 2 at a / (a + b)."""
    near, far = a / (a + b), b / (a + b)
    slope = betainc_slope(1, 0, m / 2, n / 2, near)
    return where(a < b, slope, -betainc_slope(0, 1, n / 2, m / 2, far)) / 2


def _f_density(m: Value, n: Value, x: Value) -> Any:
    """The density of that function at m x / (n + m x), over (n + m x)^2."""
    a, total = m * x, n + m * x
    below, above = beta_density(m / 2, n / 2, a / total), beta_density(n / 2, m / 2, n / total)
    return where(a < n, below, above) / total**2


for _tail, _sign in (("", 1), ("c", -1)):
    _distributions(_tail, _sign)
implements("scipy.special.chdtri")(lambda v, p: 2 * gammainccinv(v / 2, p))

# --- spherical functions -------------------------------------------------------------------------


def _spherical(name: str, before: float, after: float) -> Any:
    """A spherical Bessel function, whose derivative is made of the neighbours' [DLMF, 10.51]."""

    def slope(n: Value, z: Value) -> Any:
        lower = n * before * bessel(abs(n - 1), z)
        return (lower + (n + 1) * after * bessel(n + 1, z)) / (2 * n + 1)

    bessel = kernel(
        f"spherical_{name}",
        ORDER,
        lambda y, x, w: slope(x, w),
        array=special_kernels.spherical_jn
        if name == "jn"
        else lambda n, z: scipy_special(f"spherical_{name}")(n, z),
    )

    @implements(f"scipy.special.spherical_{name}")
    def function(n, z, derivative=False):
        return slope(n, z) if derivative else bessel(n, z)

    return bessel


spherical_jn: Any = _spherical("jn", 1, -1)
spherical_yn: Any = _spherical("yn", 1, -1)
spherical_in: Any = _spherical("in", 1, 1)
spherical_kn: Any = _spherical("kn", -1, -1)
sinc: Elementwise = elementwise(  # smooth at 0 to all orders, as no quotient is
    "sinc", lambda y, x: -math.pi * spherical_jn(1, math.pi * x), host=True
)
implements(np.sinc)(sinc)
sine_integral: Any = kernel("sine_integral", lambda y, x: spherical_jn(0, x), array=part("sici", 0))
hyperbolic_sine_integral: Any = kernel(
    "hyperbolic_sine_integral", lambda y, x: spherical_in(0, x), array=part("shichi", 0)
)
_several("sici", sine_integral, cosine_integral)
_several("shichi", hyperbolic_sine_integral, hyperbolic_cosine_integral)
