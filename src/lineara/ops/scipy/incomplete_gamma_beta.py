"""Derivatives of the incomplete gamma and beta functions in their shapes, of every order.

    P(a, x) = int_0^x g dt/t,   g = t^a exp(-t) / Gamma(a)        so   P^(n) = int_0^x g B_n dt/t

where B_n are the Bell polynomials of the derivatives of log g in a [Comtet 1974].  The smaller of
the integrals below and above x is computed, in the variable u = |log(x / t)| (the logit for beta),
up to where g has decreased by exp(-45); a Gauss rule is accurate for this smooth integrand.
Shapes below 1 are raised by 1 first, by the recurrence in a.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from lineara.facts.hints import Shaped, Value
from lineara.ops.scipy.special_kernels import (
    beta_density,
    by_order,
    gamma_density,
    in_double,
    polygamma_difference,
    scipy_special,
)

_FALL = 45.0  # exp(-45) is below the rounding error of the integral
_NODES = 96
Array = Any


@functools.cache
def _rule() -> tuple[list[float], list[float]]:
    """(nodes, weights) of the Gauss-Legendre rule on [0, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    return ((nodes + 1) / 2).tolist(), (weights / 2).tolist()


def _until(fall: Callable[[Array], Array], slope: Callable[[Array], Array], start: Array) -> Array:
    """The point at which a convex function that increases from 0 reaches `_FALL`."""
    end = start
    for _ in range(1100):
        short = ~(fall(end) >= _FALL) & np.isfinite(end)
        if not np.any(short):
            break
        end = np.where(short, 2 * end, end)
    for _ in range(8):  # Newton's steps from the right stay on the right
        end = end - (fall(end) - _FALL) / slope(end)
    return end


def _integral(hill: Callable[[Array], Array], end: Array) -> Array:
    """The integral of `hill` from 0 to `end`, by the Gauss rule."""
    return end * sum(w * hill(end * v) for v, w in zip(*_rule(), strict=True))


def _psi(k: int, a: Array) -> Array:
    """The k-th derivative of log Gamma."""
    return scipy_special("digamma")(a) if k == 1 else scipy_special("polygamma")(k - 1, a)


# --- one shape ------------------------------------------------------------------------------------


def _bell(n: int, first: Array, rest: list[Array]) -> Array:
    """The n-th complete Bell polynomial of (first, *rest)."""
    values, terms = [1.0], [first, *rest]
    for m in range(n):
        values.append(sum(math.comb(m, i) * values[m - i] * terms[i] for i in range(m + 1)))
    return values[n]


def _gamma_terms(n: int, a: Array) -> list[Array]:
    return [-_psi(k, a) for k in range(1, n + 1)]


@in_double
@by_order
def gamma_density_slope(n: int, a: Shaped, x: Shaped) -> Any:
    """The n-th derivative in a of x^(a-1) exp(-x) / Gamma(a); 0 for n < 0."""
    if n < 0:
        return np.zeros(np.broadcast_shapes(np.shape(a), np.shape(x)))
    inside = (x > 0) & (x < np.inf)
    within = np.where(inside, x, 1.0)
    psi, *rest = [*_gamma_terms(n, a), 0.0]
    y = gamma_density(a, within) * _bell(n, np.log(within) + psi, rest)
    return np.where(inside, y, x * 0.0 if np.all(np.isfinite(x)) else 0.0)


@in_double
@by_order
def gammainc_slope(n: int, a: Value, x: Value) -> Any:
    """The n-th derivative in a of the lower incomplete gamma function, over Gamma(a)."""
    a, x = np.broadcast_arrays(a * 1.0, x * 1.0)
    inside = (a >= 0) & (x > 0) & (x < np.inf)
    small = inside & (a < 1)
    b, t = np.where(inside, a + small, 1.0), np.where(inside, x, 1.0)
    psi, *rest = [*_gamma_terms(n, b), 0.0]
    low = t <= b
    sign = np.where(low, -1.0, 1.0)

    def fall(u: Array) -> Array:
        return t * np.expm1(sign * u) - sign * b * u

    end = _until(fall, lambda u: sign * (t * np.exp(sign * u) - b), np.sqrt(2 * _FALL / b))
    log = np.log(t) + psi
    y = _integral(lambda u: np.exp(-fall(u)) * _bell(n, log + sign * u, rest), end)
    y = -sign * t * gamma_density(b, t) * y
    y = y + np.where(small, gamma_density_slope(n, b, t), 0.0)
    return np.where(inside, y, np.where(np.isnan(a + x) | (a < 0) | (x < 0), np.nan, 0.0))


# --- two shapes -----------------------------------------------------------------------------------


def _bells(i: int, j: int, terms: Callable[[int, int], Array]) -> Array:
    """f_ij / f, from the derivatives `terms(p, q)` of log f in two variables.

    By the recurrence D[p+1, q] = sum over r, s of binomials times D[p-r, q-s] terms(r+1, s).
    """
    derivatives: dict[tuple[int, int], Array] = {(0, 0): 1.0}
    for q in range(j + 1):
        for p in range(i + 1):
            if p:
                derivatives[p, q] = sum(
                    math.comb(p - 1, r) * math.comb(q, s) * derivatives[p - 1 - r, q - s] * term
                    for r in range(p)
                    for s, term in [(s, terms(r + 1, s)) for s in range(q + 1)]
                )
            elif q:
                derivatives[p, q] = sum(
                    math.comb(q - 1, s) * derivatives[0, q - 1 - s] * terms(0, s + 1)
                    for s in range(q)
                )
    return derivatives[i, j]


def _beta_terms(a: Array, b: Array, both: Array) -> Callable[[int, int], Array]:
    """The function (p, q) -> derivative of log(Gamma(both) / Gamma(a) / Gamma(b)), cached."""

    @functools.cache
    def terms(p: int, q: int) -> Array:
        if p and q:
            return _psi(p + q, both)
        own = a if p else b
        return -polygamma_difference(p + q - 1, own, both - own)

    return terms


def _with_logs(terms: Callable[[int, int], Array], log: Array, log1m: Array) -> Any:
    """The derivatives of log(t^a (1-t)^b / B(a, b)), from those of `_beta_terms`."""
    first = {(1, 0): terms(1, 0) + log, (0, 1): terms(0, 1) + log1m}
    return lambda p, q: first[p, q] if (p, q) in first else terms(p, q)


def _by_orders(function: Callable[..., Array]) -> Callable[..., Array]:
    """A function of two integer orders, extended to arrays of orders."""

    @functools.wraps(function)
    def call(i: Value, j: Value, *args: Any) -> Array:
        return by_order(lambda n: by_order(functools.partial(function, n))(j, *args))(i)

    return call


@in_double
@_by_orders
def beta_density_slope(i: int, j: int, a: Shaped, b: Shaped, x: Shaped) -> Any:
    """The derivative of x^(a-1) (1-x)^(b-1) / B(a, b), i times in a, j times in b; 0 below 0."""
    if i < 0 or j < 0:
        return np.zeros(np.broadcast_shapes(np.shape(a), np.shape(b), np.shape(x)))
    inside = (x > 0) & (x < 1)
    t = np.where(inside, x, 0.5)
    terms = _with_logs(_beta_terms(a, b, a + b), np.log(t), np.log1p(-t))
    return np.where(inside, beta_density(a, b, t) * _bells(i, j, terms), x * 0.0)


@in_double
@_by_orders
def betainc_slope(i: int, j: int, a: Value, b: Value, x: Value) -> Any:
    """The derivative of the incomplete beta function over B(a, b), i times in a, j times in b."""
    a, b, x = np.broadcast_arrays(a * 1.0, b * 1.0, x * 1.0)
    inside = (a > 0) & (b > 0) & (x > 0) & (x < 1)
    t = np.where(inside, x, 0.5)
    c, d = np.where(inside, a, 1.0), np.where(inside, b, 1.0)
    log, log1m = np.log(t), np.log1p(-t)
    raised: Array = 0.0
    for k in (0, 1):  # I(a) = I(a+1) + t^a (1-t)^b / (a B(a, b)), and with -1/b for b
        small = (c, d)[k] < 1
        up = np.where(small, (c, d)[k] + 1, 2.0)
        if np.any(small):
            shapes = (up, d) if not k else (c, up)
            beta = (up - 1, d) if not k else (c, up - 1)
            terms = _with_logs(_beta_terms(*shapes, beta[0] + beta[1]), log, log1m)
            part = t * (1 - t) * beta_density(*beta, t) / (up - 1) * _bells(i, j, terms)
            raised = raised + np.where(small, (part, -part)[k], 0.0)
        c, d = (np.where(small, up, c), d) if not k else (c, np.where(small, up, d))
    start = log - log1m
    sign = np.where(t * (c + d) <= c, -1.0, 1.0)

    def at(u: Array) -> tuple[Array, Array]:
        s = start + sign * u
        return -np.logaddexp(0.0, -s), -np.logaddexp(0.0, s)

    def fall(u: Array) -> Array:
        p, q = at(u)
        return c * (log - p) + d * (log1m - q)

    def slope(u: Array) -> Array:
        p, q = at(u)
        return sign * (d * np.exp(p) - c * np.exp(q))

    end = _until(fall, slope, 1 / (c + d))
    beta_terms = _beta_terms(c, d, c + d)

    def hill(u: Array) -> Array:
        return np.exp(-fall(u)) * _bells(i, j, _with_logs(beta_terms, *at(u)))

    y = -sign * t * (1 - t) * beta_density(c, d, t) * _integral(hill, end) + raised
    lost = np.isnan(a + b + x) | (a < 0) | (b < 0) | (x < 0) | (x > 1)
    return np.where(inside, y, np.where(lost, np.nan, 0.0))
