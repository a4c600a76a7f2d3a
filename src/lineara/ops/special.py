"""scipy.special: each function states its partials; SciPy is imported when one is evaluated."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from lineara.ops.elementwise import abs_, exp
from lineara.primitive import Elementwise, elementwise, implements, registry
from lineara.types import type_of


def special(name: str, *partials: Callable[..., Any], scipy: str = "", **options: Any) -> Any:
    """Declare SciPy's function, `scipy` if it has another name there, by its partials."""
    known = scipy or name

    def late(*args: Any) -> Any:
        from scipy import special

        return getattr(special, known)(*args)

    made: Elementwise = elementwise(name, *partials, **{"array": late} | options)
    return implements(f"scipy.special.{known}")(made)


def _polygamma(n: Any, x: Any) -> Any:
    """SciPy's in x's precision; the order 0 SciPy computes by way of the others."""
    from scipy import special

    found = special.digamma(x) if np.all(n == 0) else special.polygamma(n, x)
    return _in_precision_of(x, found)


def _in_precision_of(x: Any, found: Any) -> Any:
    dtype = type_of(x).dtype
    return found.astype(np.result_type(np.float32, dtype)) if dtype.kind in "fc" else found


def _of_order(name: str) -> Any:
    """SciPy's function of an integer order, which a program may hold as another number."""

    def late(order: Any, x: Any) -> Any:
        from scipy import special

        found = getattr(special, name)(np.real(np.asarray(order)).astype(int), x)
        return _in_precision_of(x, found)

    return late


_2_OVER_SQRT_PI = 2 / math.sqrt(math.pi)
erf = special("erf", lambda y, x: _2_OVER_SQRT_PI * exp(-x * x))
erfc = special("erfc", lambda y, x: -_2_OVER_SQRT_PI * exp(-x * x))
gamma = special("gamma", lambda y, x: y * polygamma(0, x))
lgamma = special("lgamma", lambda y, x: polygamma(0, x), scipy="gammaln")
polygamma = special(  # the order is a plain number
    "polygamma", lambda y, x, w: 0, lambda y, x, w: polygamma(x + 1, w), array=_polygamma
)

bessel_i = elementwise(  # of an integer order: I_n' = (I_n-1 + I_n+1) / 2
    "bessel_i",
    lambda y, x, w: 0,
    lambda y, x, w: 0.5 * (bessel_i(abs_(x - 1), w) + bessel_i(x + 1, w)),
    array=_of_order("iv"),
)
i1 = special("i1", lambda y, x: 0.5 * (i0(x) + bessel_i(2, x)))
i0 = elementwise("i0", lambda y, x: i1(x))
spherical_j = elementwise(  # of an integer order, regular at 0 to all orders
    "spherical_j",
    lambda y, x, w: 0,
    lambda y, x, w: (
        (x * spherical_j(abs_(x - 1), w) - (x + 1) * spherical_j(x + 1, w)) / (2 * x + 1)
    ),
    array=_of_order("spherical_jn"),
)
sinc = elementwise(  # smooth at 0 to all orders, as no quotient is
    "sinc", lambda y, x: -math.pi * spherical_j(1, math.pi * x)
)

registry.functions |= {np.i0: i0, np.sinc: sinc}
registry.functions |= {math.erf: erf, math.erfc: erfc, math.gamma: gamma, math.lgamma: lgamma}
