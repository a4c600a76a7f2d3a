"""scipy.special: logistic functions, entropies, powers, integrals, losses, hypergeometric ones."""

import math

from lineara.ops.elementwise import (
    abs_,
    cos,
    cosh,
    exp,
    hypot,
    log,
    log1p,
    sign,
    sin,
    sqrt,
    where,
)
from lineara.ops.scipy import special_kernels
from lineara.ops.scipy.special import ORDER, Special, defined, kernel, special
from lineara.ops.scipy.special_kernels import part, scipy_special

# --- logistic functions and entropies ------------------------------------------------------------

expit: Special = special("expit", lambda y, x: y * expit(-x))
logit: Special = special("logit", lambda y, x: defined(y, 1 / (x * (1 - x))))
log_expit: Special = special("log_expit", lambda y, x: expit(-x))
entr: Special = special("entr", lambda y, x: where(x < 0, 0, -log(x) - 1), selects=True)


def _log_ratio(x, w):
    """log(x / w), also where the two nearly agree or the quotient overflows."""
    near = abs(x - w) < 0.5 * w
    return where(near, log1p(where(near, (x - w) / w, 0)), log(x) - log(w))


rel_entr: Special = special(
    "rel_entr",
    lambda y, x, w: where((x < 0) + (w < 0), 0, _log_ratio(x, w) + 1),
    lambda y, x, w: where((x <= 0) + (w < 0), 0, -x / w),
    selects=True,
)
kl_div: Special = special(
    "kl_div",
    lambda y, x, w: where((x < 0) + (w < 0), 0, _log_ratio(x, w)),
    lambda y, x, w: where((x < 0) + (w < 0), 0, where(x == 0, 1, (w - x) / w)),
    selects=True,
)
xlogy: Special = special(
    "xlogy", lambda y, x, w: log(w), lambda y, x, w: where(x == 0, 0, x / w), selects=True
)
xlog1py: Special = special(
    "xlog1py",
    lambda y, x, w: log1p(w),
    lambda y, x, w: where(x == 0, 0, x / (1 + w)),
    selects=True,
)

# --- powers and exponentials ---------------------------------------------------------------------

exp10: Special = special("exp10", lambda y, x: y * math.log(10))
exprel: Special = special("exprel", lambda y, x: hyp1f1(2, 3, x) / 2)
cosm1: Special = special("cosm1", lambda y, x: -sin(x))
powm1: Special = special("powm1", lambda y, x, w: w * x ** (w - 1), lambda y, x, w: x**w * log(x))
boxcox: Special = special(  # log(x) exprel(w log(x))
    "boxcox",
    lambda y, x, w: defined(y, x ** (w - 1)),
    lambda y, x, w: where(x == 0, 1 / (w * w), log(x) ** 2 * hyp1f1(2, 3, w * log(x)) / 2),
)
boxcox1p: Special = special(
    "boxcox1p",
    lambda y, x, w: defined(y, (1 + x) ** (w - 1)),
    lambda y, x, w: where(x == -1, 1 / (w * w), log1p(x) ** 2 * hyp1f1(2, 3, w * log1p(x)) / 2),
)
inv_boxcox: Special = special(  # exp(log1p(w x) / w)
    "inv_boxcox",
    lambda y, x, w: defined(y, y ** (1 - w)),
    lambda y, x, w: -y * x * x * log1p_deficit(w * x),
)
inv_boxcox1p: Special = special(
    "inv_boxcox1p",
    lambda y, x, w: defined(y, (1 + y) ** (1 - w)),
    lambda y, x, w: -(1 + y) * x * x * log1p_deficit(w * x),
)
log1p_deficit: Special = kernel(  # (log1p(x) - x / (1 + x)) / x^2
    "log1p_deficit", lambda y, x: -2 / 3 * hyp2f1(3, 3, 4, -x)
)
_DEGREE = math.pi / 180
sindg: Special = special("sindg", lambda y, x: _DEGREE * cosdg(x))
cosdg: Special = special("cosdg", lambda y, x: -_DEGREE * sindg(x))
tandg: Special = special("tandg", lambda y, x: _DEGREE * (1 + y * y))
cotdg: Special = special("cotdg", lambda y, x: -_DEGREE * (1 + y * y))

# --- integrals -----------------------------------------------------------------------------------

expi: Special = special("expi", lambda y, x: exp(x) / x)
exp1: Special = special("exp1", lambda y, x: defined(y, -exp(-x) / x))
expn: Special = special(
    "expn",
    ORDER,
    lambda y, x, w: defined(y, where(x == 0, -y * (1 + 1 / w), -expn(abs(x - 1), w))),
)
spence: Special = special(  # smooth at 1, as no quotient is
    "spence",
    lambda y, x: where(abs(x - 1) < 0.1, -hyp2f1(1, 1, 2, 1 - x), log(x) / where(x == 1, 1, 1 - x)),
)
cosine_integral: Special = kernel("cosine_integral", lambda y, x: cos(x) / x, array=part("sici", 1))
hyperbolic_cosine_integral: Special = kernel(
    "hyperbolic_cosine_integral", lambda y, x: cosh(x) / x, array=part("shichi", 1)
)
lambertw: Special = kernel(
    "lambertw",
    lambda y, x, w: exp(-y) / (1 + y),
    "its branch",
    array=lambda z, k: scipy_special("lambertw")(z, k),
)
wrightomega: Special = special("wrightomega", lambda y, x: y / (1 + y))

# --- losses --------------------------------------------------------------------------------------

huber: Special = special(
    "huber",
    lambda y, x, w: where((x < 0) + (abs_(w) <= x), 0, abs_(w) - x),
    lambda y, x, w: where(x < 0, 0, where(abs_(w) <= x, w, x * sign(w))),
    selects=True,
)
pseudo_huber: Special = special(  # x (sqrt(x^2 + w^2) - x)
    "pseudo_huber",
    lambda y, x, w: where(x > 0, _huber_slope(x, w / x), 0),
    lambda y, x, w: where(x > 0, w / hypot(1, w / x), 0),
    selects=True,
)


def _huber_slope(x, t):
    """The derivative of x^2 (s - 1) in x, where s = sqrt(1 + t^2) and t = w / x."""
    s = hypot(1, t)
    return x * (t / (1 + s)) ** 2 * (t * (t / s))


# --- hypergeometric functions and elliptic integrals ---------------------------------------------

hyp0f1: Special = special(
    "hyp0f1", "its parameter", lambda y, x, w: defined(y, hyp0f1(x + 1, w) / x)
)
hyp1f1: Special = special(
    "hyp1f1",
    *["its parameters"] * 2,
    lambda y, x, w, u: defined(y, x / w * hyp1f1(x + 1, w + 1, u)),
    array=special_kernels.hyp1f1,
)
hyp2f1: Special = special(
    "hyp2f1",
    *["its parameters"] * 3,
    lambda y, x, w, u, v: x * w / u * hyp2f1(x + 1, w + 1, u + 1, v),
)
hyperu: Special = special(
    "hyperu", *["its parameters"] * 2, lambda y, x, w, u: -x * hyperu(x + 1, w + 1, u)
)
ellipk: Special = special("ellipk", lambda y, x: ellipk_slope(x))
ellipk_slope: Special = kernel(
    "ellipk_slope", lambda y, x: 9 * math.pi / 64 * hyp2f1(2.5, 2.5, 3, x)
)
ellipe: Special = special("ellipe", lambda y, x: defined(y, -math.pi / 8 * hyp2f1(0.5, 1.5, 2, x)))
ellipkm1: Special = special("ellipkm1", lambda y, x: ellipkm1_slope(x))
ellipkm1_slope: Special = kernel(  # Legendre's equation gives the second derivative
    "ellipkm1_slope",
    lambda y, x: where(
        x < 0.5,
        (ellipkm1(x) / 4 - (1 - 2 * x) * y) / (x * (1 - x)),
        9 * math.pi / 64 * hyp2f1(2.5, 2.5, 3, 1 - x),
    ),
)
PARAMETER = "its parameter m"
ellipkinc: Special = special(
    "ellipkinc", lambda y, x, w: defined(y, 1 / sqrt(1 - w * sin(x) ** 2)), PARAMETER
)
ellipeinc: Special = special(
    "ellipeinc", lambda y, x, w: defined(y, sqrt(1 - w * sin(x) ** 2)), PARAMETER
)
jacobi_sn: Special = kernel(
    "jacobi_sn",
    lambda y, x, w: jacobi_cn(x, w) * jacobi_dn(x, w),
    PARAMETER,
    array=part("ellipj", 0),
)
jacobi_cn: Special = kernel(
    "jacobi_cn",
    lambda y, x, w: -jacobi_sn(x, w) * jacobi_dn(x, w),
    PARAMETER,
    array=part("ellipj", 1),
)
jacobi_dn: Special = kernel(
    "jacobi_dn",
    lambda y, x, w: -w * jacobi_sn(x, w) * jacobi_cn(x, w),
    PARAMETER,
    array=part("ellipj", 2),
)
jacobi_am: Special = kernel(
    "jacobi_am", lambda y, x, w: jacobi_dn(x, w), PARAMETER, array=part("ellipj", 3)
)
