"""scipy.special: each function states its partials; SciPy is imported when one is evaluated.

A partial that is a string names an argument without a rule, which must not be traced.  The formulas
are those of [DLMF]; differences that would cancel are computed in `special_kernels`.
"""

import functools
import inspect
import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from lineara.errors import NoRuleError
from lineara.facts.hints import Shaped, Value
from lineara.facts.primitive import Elementwise, implements, op
from lineara.ops.elementwise import (
    cos,
    exp,
    log,
    log1p,
    real,
    real_dtype,
    sin,
    where,
)
from lineara.ops.scipy import incomplete_gamma_beta, special_kernels
from lineara.ops.scipy.special_kernels import part, scipy_special

Partial = Callable[..., Any] | str


class Special(Elementwise):
    """A function of SciPy's; some of its arguments may have no derivative rule."""

    host = True

    def __init__(
        self,
        name: str,
        full_name: str,
        *partials: Partial,
        counts: Sequence[int] = (),
        **options: Any,
    ) -> None:
        self.known: str = full_name
        self.counts: Sequence[int] = counts
        self.without: dict[int, str] = {i: p for i, p in enumerate(partials) if isinstance(p, str)}
        stated = [(lambda *_: 0) if isinstance(p, str) else p for p in partials]
        super().__init__(name, *stated, **options)
        self.inlined: bool = self.inlined and hasattr(
            math, name
        )  # the others cost more than the call

    @cached_property
    def weights(self) -> list[Callable[..., Any]]:
        """The partials; that of an argument without a rule refuses."""
        stated = super().weights
        return [self._refusal(i) if i in self.without else w for i, w in enumerate(stated)]

    @cached_property
    def complex_weights(self) -> list[tuple[Callable[..., Any], Callable[..., Any] | None]]:
        """The partials for complex arguments."""
        pairs = enumerate(super().complex_weights)
        return [(self.weights[i], None) if i in self.without else pair for i, pair in pairs]

    def literal(self, place: int, number: complex, dtype: np.dtype) -> np.dtype:
        """Orders and counts are real among complex numbers, and whole in double precision."""
        if place not in self.without and place not in self.counts:
            return dtype
        part = real_dtype(dtype)
        return np.dtype(int) if type(number) is int and part == np.float64 else part

    def _refusal(self, i: int) -> Callable[..., Any]:
        def refuse(*_: Any) -> Any:
            raise NoRuleError(
                f"{self.known} has no derivative with respect to {self.without[i]}; give it a "
                "plain number there, or declare the derivative with lineara.custom_jvp"
            )

        return refuse


def special(
    name: str,
    *partials: Partial,
    scipy: str = "",
    array: Callable[..., Any] | None = None,
    **options: Any,
) -> Special:
    """Declare SciPy's function, `scipy` if it has another name there, by its partials."""
    scipy_name = scipy or name

    def late(*args: Any) -> Any:
        return scipy_special(scipy_name)(*args)

    primitive = _declare(name, f"scipy.special.{scipy_name}", partials, array or late, options)
    primitive.same_as = None if array else functools.partial(scipy_special, scipy_name)
    implements(f"scipy.special.{scipy_name}")(primitive)
    return primitive


def kernel(
    name: str, *partials: Partial, array: Callable[..., Any] | None = None, **options: Any
) -> Special:
    """Declare a primitive that is no function of SciPy's, or one result of several."""
    return _declare(name, name, partials, array or getattr(special_kernels, name), options)


def _declare(
    name: str,
    full_name: str,
    partials: tuple[Any, ...],
    array: Callable[..., Any],
    options: dict[str, Any],
) -> Special:
    for p in partials:
        taken = len(partials) + 1 if isinstance(p, str) else len(inspect.signature(p).parameters)
        assert taken == len(partials) + 1, f"{name}: a partial must take (y, *{len(partials)} args)"
    return Special(name, full_name, *partials, array=array, **options)


ORDER = "its order"

# --- gamma ---------------------------------------------------------------------------------------

polygamma: Special = special(
    "polygamma", ORDER, lambda y, x, w: polygamma(x + 1, w), array=special_kernels.polygamma
)
polygamma_difference: Special = kernel(  # psi_n(a) - psi_n(a + b)
    "polygamma_difference",
    ORDER,
    lambda y, x, w, u: polygamma_difference(x + 1, w, u),
    lambda y, x, w, u: -polygamma(x + 1, w + u),
)


def defined(y: Value, slope: Value) -> Any:
    """The slope, but NaN where y is NaN, that is outside of the domain."""
    return where(y != y, y, slope)


digamma: Special = special("digamma", lambda y, x: defined(y, polygamma(1, x)), scipy="psi")
gamma: Special = special("gamma", lambda y, x: y * digamma(x))
lgamma: Special = special("lgamma", lambda y, x: digamma(x), scipy="gammaln")
loggamma: Special = special("loggamma", lambda y, x: defined(y, digamma(x)))
gammasgn: Special = special("gammasgn", lambda y, x: defined(y, 0))
rgamma: Special = special(  # by reflection near the poles of digamma
    "rgamma",
    lambda y, x: where(
        real(x) < 0.5,
        gamma(1 - x) * (cos(math.pi * x) - digamma(1 - x) * sin(math.pi * x) / math.pi),
        -y * digamma(x),
    ),
)
beta: Special = special(
    "beta",
    lambda y, x, w: y * polygamma_difference(0, x, w),
    lambda y, x, w: y * polygamma_difference(0, w, x),
)
betaln: Special = special(
    "betaln",
    lambda y, x, w: polygamma_difference(0, x, w),
    lambda y, x, w: polygamma_difference(0, w, x),
)
poch: Special = special(
    "poch",
    lambda y, x, w: -y * polygamma_difference(0, x, w),
    lambda y, x, w: y * digamma(x + w),
)


def _over_poles(x, w, of_top, of_bottom, of_rest):
    """A partial of binom, summed over its three gamma functions, finite at their poles."""
    a, b, c = gamma(x + 1), rgamma(w + 1), rgamma(x - w + 1)
    slopes = [_reciprocal_slope(w + 1), _reciprocal_slope(x - w + 1)]
    return a * (
        of_top * digamma(x + 1) * b * c + of_bottom * slopes[0] * c + of_rest * b * slopes[1]
    )


def _reciprocal_slope(x):
    """The derivative of 1 / gamma for x < 1/2, by reflection."""
    turned = digamma(1 - x) * sin(math.pi * x) / math.pi
    return where(x < 0.5, gamma(1 - x) * (cos(math.pi * x) - turned), -rgamma(x) * digamma(x))


binom: Special = special(  # Gamma(x + 1) / Gamma(w + 1) / Gamma(x - w + 1)
    "binom",
    lambda y, x, w: where(
        (w > -1) * (x - w > -1),
        -y * polygamma_difference(0, x - w + 1, w),
        defined(y, _over_poles(x, w, 1, 0, 1)),
    ),
    lambda y, x, w: where(
        (w > -1) * (x - w > -1),
        -y * polygamma_difference(0, w + 1, x - 2 * w),
        _over_poles(x, w, 0, 1, -1),
    ),
)
zeta: Special = kernel(
    "zeta",
    ORDER,
    lambda y, x, w: defined(y, -x * zeta(x + 1, w)),
    array=lambda s, q: scipy_special("zeta")(s, q),
)

gamma_density: Special = kernel(  # x = a, w = x
    "gamma_density",
    lambda y, x, w: where(w > 0, y * (log(w) - digamma(x)), 0),
    lambda y, x, w: where(w > 0, y * ((x - 1) / w - 1), where((w == 0) * (x == 2), 1, 0)),
    selects=True,
)
beta_density: Special = kernel(  # x = a, w = b, u = x
    "beta_density",
    lambda y, x, w, u: where((u > 0) * (u <= 1), y * (log(u) - polygamma_difference(0, x, w)), 0),
    lambda y, x, w, u: where(
        (u >= 0) * (u < 1), y * (log1p(-u) - polygamma_difference(0, w, x)), 0
    ),
    lambda y, x, w, u: where((u > 0) * (u < 1), y * ((x - 1) / u - (w - 1) / (1 - u)), 0),
    selects=True,
)
gamma_density_slope: Special = kernel(  # n derivatives in a
    "gamma_density_slope",
    ORDER,
    lambda y, x, w, u: gamma_density_slope(x + 1, w, u),
    lambda y, x, w, u: where(
        u > 0, y * ((w - 1) / u - 1) + x / u * gamma_density_slope(x - 1, w, u), 0
    ),
    array=incomplete_gamma_beta.gamma_density_slope,
    selects=True,
)
gammainc_slope: Special = kernel(
    "gammainc_slope",
    ORDER,
    lambda y, x, w, u: gammainc_slope(x + 1, w, u),
    lambda y, x, w, u: gamma_density_slope(x, w, u),
    array=incomplete_gamma_beta.gammainc_slope,
)
gammainc: Special = special(
    "gammainc",
    lambda y, x, w: defined(y, gammainc_slope(1, x, w)),
    lambda y, x, w: defined(y, gamma_density(x, w)),
)
gammaincc: Special = special(
    "gammaincc",
    lambda y, x, w: defined(y, -gammainc_slope(1, x, w)),
    lambda y, x, w: defined(y, -gamma_density(x, w)),
)
gammaincinv: Special = special(
    "gammaincinv",
    lambda y, x, w: -gammainc_slope(1, x, y) / gamma_density(x, y),
    lambda y, x, w: 1 / gamma_density(x, y),
)
gammainccinv: Special = special(
    "gammainccinv",
    lambda y, x, w: -gammainc_slope(1, x, y) / gamma_density(x, y),
    lambda y, x, w: -1 / gamma_density(x, y),
)


def _beta_density_slope(y, i, j, a, b, x):
    """The derivative in x."""
    here = y * ((a - 1) / x - (b - 1) / (1 - x))
    in_a = i / x * beta_density_slope(i - 1, j, a, b, x)
    in_b = j / (1 - x) * beta_density_slope(i, j - 1, a, b, x)
    return where((x > 0) * (x < 1), here + in_a - in_b, 0)


beta_density_slope: Special = kernel(  # i derivatives in a, j in b
    "beta_density_slope",
    ORDER,
    ORDER,
    lambda y, i, j, a, b, x: beta_density_slope(i + 1, j, a, b, x),
    lambda y, i, j, a, b, x: beta_density_slope(i, j + 1, a, b, x),
    _beta_density_slope,
    array=incomplete_gamma_beta.beta_density_slope,
    selects=True,
)
betainc_slope: Special = kernel(
    "betainc_slope",
    ORDER,
    ORDER,
    lambda y, i, j, a, b, x: betainc_slope(i + 1, j, a, b, x),
    lambda y, i, j, a, b, x: betainc_slope(i, j + 1, a, b, x),
    lambda y, i, j, a, b, x: beta_density_slope(i, j, a, b, x),
    array=incomplete_gamma_beta.betainc_slope,
)
betainc: Special = special(
    "betainc",
    lambda y, x, w, u: defined(y, betainc_slope(1, 0, x, w, u)),
    lambda y, x, w, u: defined(y, betainc_slope(0, 1, x, w, u)),
    lambda y, x, w, u: defined(y, beta_density(x, w, u)),
)
betaincc: Special = special(
    "betaincc",
    lambda y, x, w, u: defined(y, -betainc_slope(1, 0, x, w, u)),
    lambda y, x, w, u: defined(y, -betainc_slope(0, 1, x, w, u)),
    lambda y, x, w, u: defined(y, -beta_density(x, w, u)),
)
betaincinv: Special = special(
    "betaincinv",
    lambda y, x, w, u: -betainc_slope(1, 0, x, w, y) / beta_density(x, w, y),
    lambda y, x, w, u: -betainc_slope(0, 1, x, w, y) / beta_density(x, w, y),
    lambda y, x, w, u: 1 / beta_density(x, w, y),
)
betainccinv: Special = special(
    "betainccinv",
    lambda y, x, w, u: -betainc_slope(1, 0, x, w, y) / beta_density(x, w, y),
    lambda y, x, w, u: -betainc_slope(0, 1, x, w, y) / beta_density(x, w, y),
    lambda y, x, w, u: -1 / beta_density(x, w, y),
)

# --- the error function and the normal distribution ---------------------------------------------

_2_OVER_SQRT_PI = 2 / math.sqrt(math.pi)
_SQRT_2_PI = math.sqrt(2 * math.pi)
_SQRT_HALF = math.sqrt(0.5)
wofz_derivative: Special = kernel(
    "wofz_derivative", ORDER, lambda y, x, w: wofz_derivative(x + 1, w)
)
wofz: Special = special("wofz", lambda y, x: wofz_derivative(1, x))
erf: Special = special("erf", lambda y, x: _2_OVER_SQRT_PI * exp(-x * x))
erfc: Special = special("erfc", lambda y, x: -_2_OVER_SQRT_PI * exp(-x * x))
erfi: Special = special("erfi", lambda y, x: _2_OVER_SQRT_PI * exp(x * x))
erfcx: Special = special(  # wofz(i x)
    "erfcx",
    lambda y, x: real(1j * wofz_derivative(1, 1j * x)),
    wirtinger=(lambda y, x: 1j * wofz_derivative(1, 1j * x),),
    conjugate=(lambda y, x: 0,),
)
dawsn: Special = special(  # of a real x: sqrt(pi) / 2 times the imaginary part of wofz(x)
    "dawsn",
    lambda y, x: real(-1j / _2_OVER_SQRT_PI * wofz_derivative(1, x + 0j)),
    wirtinger=(lambda y, x: 1 - 2 * x * y,),
    conjugate=(lambda y, x: 0,),
)


def _density_over_ndtr(x: Shaped) -> Any:
    """The normal density over the distribution, which is 1 from 9 on; powers of erfcx overflow."""
    far = real(x) > 12
    near = 2 / _SQRT_2_PI / erfcx(-_SQRT_HALF * where(far, 0, x))
    return where(far, exp(-x * x / 2) / _SQRT_2_PI, near)


erfinv: Special = special("erfinv", lambda y, x: exp(y * y) / _2_OVER_SQRT_PI)
erfcinv: Special = special("erfcinv", lambda y, x: -exp(y * y) / _2_OVER_SQRT_PI)
ndtr: Special = special("ndtr", lambda y, x: exp(-x * x / 2) / _SQRT_2_PI)
log_ndtr: Special = special("log_ndtr", lambda y, x: _density_over_ndtr(x))
ndtri: Special = special("ndtri", lambda y, x: _SQRT_2_PI * exp(y * y / 2))
ndtri_exp: Special = special("ndtri_exp", lambda y, x: _SQRT_2_PI / 2 * erfcx(-_SQRT_HALF * y))
owens_t: Special = special(
    "owens_t",
    lambda y, x, w: -exp(-x * x / 2) * erf(w * x * _SQRT_HALF) / (2 * _SQRT_2_PI),
    lambda y, x, w: exp(-x * x * (1 + w * w) / 2) / (2 * math.pi * (1 + w * w)),
)
fresnel_s: Special = kernel(
    "fresnel_s", lambda y, x: sin(math.pi / 2 * x * x), array=part("fresnel", 0)
)
fresnel_c: Special = kernel(
    "fresnel_c", lambda y, x: cos(math.pi / 2 * x * x), array=part("fresnel", 1)
)

for _name in ("erf", "erfc", "gamma", "lgamma"):
    implements(getattr(math, _name))(op(_name))
