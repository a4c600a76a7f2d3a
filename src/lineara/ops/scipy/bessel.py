"""scipy.special: Bessel and related functions; differentiable in the argument, not in the order.

A derivative is a combination of the two neighbouring orders, without division by x [DLMF, §10.6].
"""

import math

import numpy as np

from lineara.facts.registry import implements
from lineara.ops.elementwise import imag, real, sign, where
from lineara.ops.scipy import special_kernels
from lineara.ops.scipy.special import ORDER, Special, defined, kernel, rgamma, special
from lineara.ops.scipy.special_kernels import part, whole

DEGREE = "its degree"

jv: Special = special(
    "jv", ORDER, lambda y, x, w: (jv(x - 1, w) - jv(x + 1, w)) / 2, array=special_kernels.jv
)
yv: Special = special("yv", ORDER, lambda y, x, w: (yv(x - 1, w) - yv(x + 1, w)) / 2)
iv: Special = special(
    "iv", ORDER, lambda y, x, w: (iv(x - 1, w) + iv(x + 1, w)) / 2, array=special_kernels.iv
)
kv: Special = special("kv", ORDER, lambda y, x, w: -(kv(x - 1, w) + kv(x + 1, w)) / 2)
yn: Special = special("yn", ORDER, lambda y, x, w: (yv(x - 1, w) - yv(x + 1, w)) / 2)
kn: Special = special("kn", ORDER, lambda y, x, w: -(kv(x - 1, w) + kv(x + 1, w)) / 2)
hankel1: Special = special(
    "hankel1", ORDER, lambda y, x, w: (hankel1(x - 1, w) - hankel1(x + 1, w)) / 2
)
hankel2: Special = special(
    "hankel2", ORDER, lambda y, x, w: (hankel2(x - 1, w) - hankel2(x + 1, w)) / 2
)
hankel1e: Special = special(
    "hankel1e", ORDER, lambda y, x, w: (hankel1e(x - 1, w) - hankel1e(x + 1, w)) / 2 - 1j * y
)
hankel2e: Special = special(
    "hankel2e", ORDER, lambda y, x, w: (hankel2e(x - 1, w) - hankel2e(x + 1, w)) / 2 + 1j * y
)

# Functions scaled by exp(-|Re z|) or exp(-|Im z|) are not holomorphic.

ive: Special = special(
    "ive",
    ORDER,
    lambda y, x, w: ive_slope(x, w),
    wirtinger=(
        lambda y, x, w: 0,
        lambda y, x, w: (ive(x - 1, w) + ive(x + 1, w) - sign(real(w)) * y) / 2,
    ),
    conjugate=(lambda y, x, w: 0, lambda y, x, w: -sign(real(w)) * y / 2),
)
ive_slope: Special = kernel(
    "ive_slope",
    ORDER,
    lambda y, x, w: (ive_slope(x - 1, w) + ive_slope(x + 1, w)) / 2 - sign(w) * y,
)
kve: Special = special("kve", ORDER, lambda y, x, w: kve_slope(x, w))
kve_slope: Special = kernel(
    "kve_slope", ORDER, lambda y, x, w: y - (kve_slope(x - 1, w) + kve_slope(x + 1, w)) / 2
)
jve: Special = special(
    "jve",
    ORDER,
    lambda y, x, w: (jve(x - 1, w) - jve(x + 1, w)) / 2,
    wirtinger=(
        lambda y, x, w: 0,
        lambda y, x, w: (jve(x - 1, w) - jve(x + 1, w) + 1j * sign(imag(w)) * y) / 2,
    ),
    conjugate=(lambda y, x, w: 0, lambda y, x, w: -0.5j * sign(imag(w)) * y),
)
yve: Special = special(
    "yve",
    ORDER,
    lambda y, x, w: (yve(x - 1, w) - yve(x + 1, w)) / 2,
    wirtinger=(
        lambda y, x, w: 0,
        lambda y, x, w: (yve(x - 1, w) - yve(x + 1, w) + 1j * sign(imag(w)) * y) / 2,
    ),
    conjugate=(lambda y, x, w: 0, lambda y, x, w: -0.5j * sign(imag(w)) * y),
)

# --- the orders 0 and 1 --------------------------------------------------------------------------

j0: Special = special("j0", lambda y, x: -j1(x))
j1: Special = special("j1", lambda y, x: (j0(x) - jv(2, x)) / 2)
y0: Special = special("y0", lambda y, x: -y1(x))
y1: Special = special("y1", lambda y, x: y0(x) - y / x)
i0: Special = special("i0", lambda y, x: i1(x))
implements(np.i0)(i0)
i1: Special = special("i1", lambda y, x: (i0(x) + iv(2, x)) / 2)
k0: Special = special("k0", lambda y, x: -k1(x))
k1: Special = special("k1", lambda y, x: -k0(x) - y / x)
i0e: Special = special("i0e", lambda y, x: ive_slope(0, x))
i1e: Special = special("i1e", lambda y, x: ive_slope(1, x))
k0e: Special = special("k0e", lambda y, x: kve_slope(0, x))
k1e: Special = special("k1e", lambda y, x: kve_slope(1, x))

# --- Airy, Kelvin, Struve and spherical functions ------------------------------------------------

airy_ai: Special = kernel("airy_ai", lambda y, x: airy_aip(x), array=part("airy", 0))
airy_aip: Special = kernel("airy_aip", lambda y, x: x * airy_ai(x), array=part("airy", 1))
airy_bi: Special = kernel("airy_bi", lambda y, x: airy_bip(x), array=part("airy", 2))
airy_bip: Special = kernel("airy_bip", lambda y, x: x * airy_bi(x), array=part("airy", 3))
ber: Special = special("ber", lambda y, x: berp(x))
bei: Special = special("bei", lambda y, x: beip(x))
ker: Special = special("ker", lambda y, x: kerp(x))
kei: Special = special("kei", lambda y, x: keip(x))
berp: Special = special("berp", lambda y, x: where(x == 0, 0, -bei(x) - y / x))
beip: Special = special("beip", lambda y, x: where(x == 0, 0.5, ber(x) - y / x))
kerp: Special = special("kerp", lambda y, x: -kei(x) - y / x)
keip: Special = special("keip", lambda y, x: ker(x) - y / x)


def _power_term(x, w):
    """(w / 2)^x / (sqrt(pi) Gamma(x + 3/2)), the term of Struve's recurrences."""
    return (w / 2) ** x * rgamma(x + 1.5) / math.sqrt(math.pi)


struve: Special = special(
    "struve",
    ORDER,
    lambda y, x, w: (struve(x - 1, w) - struve(x + 1, w) + _power_term(x, w)) / 2,
)
modstruve: Special = special(
    "modstruve",
    ORDER,
    lambda y, x, w: (modstruve(x - 1, w) + modstruve(x + 1, w) + _power_term(x, w)) / 2,
)

# --- orthogonal polynomials ----------------------------------------------------------------------

eval_legendre: Special = special(
    "eval_legendre", DEGREE, lambda y, x, w: where(x == 0, 0, eval_gegenbauer(x - 1, 1.5, w))
)
eval_chebyt: Special = special(
    "eval_chebyt", DEGREE, lambda y, x, w: where(x == 0, 0, x * eval_chebyu(x - 1, w))
)
eval_chebyu: Special = special(
    "eval_chebyu", DEGREE, lambda y, x, w: where(x == 0, 0, 2 * eval_gegenbauer(x - 1, 2, w))
)
eval_gegenbauer: Special = special(
    "eval_gegenbauer",
    DEGREE,
    "its parameter",
    lambda y, x, w, u: defined(y, where(x == 0, 0, 2 * w * eval_gegenbauer(x - 1, w + 1, u))),
)
eval_jacobi: Special = special(
    "eval_jacobi",
    DEGREE,
    *["its parameters"] * 2,
    lambda y, x, w, u, v: defined(
        y, where(x == 0, 0, (x + w + u + 1) / 2 * eval_jacobi(x - 1, w + 1, u + 1, v))
    ),
)
eval_laguerre: Special = special(
    "eval_laguerre", DEGREE, lambda y, x, w: where(x == 0, 0, -eval_genlaguerre(x - 1, 1, w))
)
eval_genlaguerre: Special = special(
    "eval_genlaguerre",
    DEGREE,
    "its parameter",
    lambda y, x, w, u: defined(y, where(x == 0, 0, -eval_genlaguerre(x - 1, w + 1, u))),
)
eval_hermite: Special = special(
    "eval_hermite",
    DEGREE,
    lambda y, x, w: where(x == 0, 0, 2 * x * eval_hermite(abs(x - 1), w)),
    array=whole("eval_hermite"),
)
eval_hermitenorm: Special = special(
    "eval_hermitenorm",
    DEGREE,
    lambda y, x, w: where(x == 0, 0, x * eval_hermitenorm(abs(x - 1), w)),
    array=whole("eval_hermitenorm"),
)
