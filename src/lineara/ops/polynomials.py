"""Polynomials: evaluation in every basis, arithmetic, derivatives and integrals, roots."""

from collections.abc import Callable
from typing import Any

import numpy as np

from lineara.errors import NoRuleError, ShapeError
from lineara.facts.hints import Shaped
from lineara.facts.primitive import General, implements, op, primitive
from lineara.facts.types import ArrayType, is_complex, type_of
from lineara.ops.index import line
from lineara.ops.join import concatenate
from lineara.ops.sampled_functions import np_convolve
from lineara.ops.shape import as_array

# --- powers, the highest first: numpy.polyval and its kin -----------------------------------------


def _row(p: Shaped) -> Any:
    """The coefficients as a vector."""
    return line(as_array(p), None, "poly")[0]


@implements(np.polyval)
def polyval(p, x):
    """The polynomial at x, by Horner's rule."""
    p, x = _row(p), as_array(x)
    y = op("broadcast_to")(p[0] * 0, shape=type_of(x).shape) if type_of(p).size else x * 0
    for i in range(type_of(p).size):
        y = y * x + p[i]
    return y


def _added(a: Shaped, b: Shaped) -> Any:
    a, b = _row(a), _row(b)
    n, m = type_of(a).size, type_of(b).size
    if n < m:
        a = concatenate([np.zeros(m - n, type_of(a).dtype), a])
    elif m < n:
        b = concatenate([np.zeros(n - m, type_of(b).dtype), b])
    return a, b


@implements(np.polyadd)
def polyadd(a1, a2):
    """The sum of two polynomials."""
    a, b = _added(a1, a2)
    return a + b


@implements(np.polysub)
def polysub(a1, a2):
    """The difference of two polynomials."""
    a, b = _added(a1, a2)
    return a - b


@implements(np.polymul)
def polymul(a1, a2):
    """The product of two polynomials."""
    return np_convolve(_row(a1), _row(a2))


@implements(np.polydiv)
def polydiv(u, v):
    """(quotient, remainder) of two polynomials."""
    u, v = _row(u) + 0.0, _row(v) + 0.0
    n, m = type_of(u).size - 1, type_of(v).size - 1
    quotient = []
    for _ in range(max(n - m + 1, 0)):
        quotient.append(u[0] / v[0])
        u = concatenate([u[1 : m + 1] - quotient[-1] * v[1:], u[m + 1 :]])
    while type_of(u).size > 1 and np.allclose(u[0], 0, rtol=1e-14):
        u = u[1:]
    return op("stack")(*quotient) if quotient else u[:1] * 0.0, u


@implements(np.polyder)
def polyder(p, m=1):
    """The m-th derivative of a polynomial."""
    p = _row(p)
    for _ in range(m):
        n = type_of(p).size - 1
        p = p[:-1] * np.arange(n, 0, -1)
    return p


@implements(np.polyint)
def polyint(p, m=1, k=None):
    """The m-th antiderivative of a polynomial, with integration constants k."""
    p = _row(p)
    k = np.zeros(m) if k is None else _row(k)
    k = op("broadcast_to")(k, shape=(m,)) if type_of(k).size == 1 else k
    for i in range(m):
        n = type_of(p).size
        p = concatenate([p / np.arange(n, 0, -1), k[i : i + 1]])
    return p


@implements(np.poly)
def poly(seq_of_zeros):
    """The coefficients of the polynomial with these zeros; of a matrix, its characteristic one."""
    zeros = as_array(seq_of_zeros)
    if type_of(zeros).ndim == 2:
        zeros = np.linalg.eigvals(zeros)
    dtype = type_of(zeros).dtype if type_of(zeros).dtype.kind in "fc" else np.dtype(float)
    coefficients = np.ones(1, dtype)
    for i in range(type_of(zeros).size):
        factor = op("stack")(dtype.type(1.0), -zeros[i])
        coefficients = np_convolve(coefficients, factor)
    if not is_complex(coefficients):
        return coefficients
    values = op("stop_gradient")(zeros)
    paired = np.all(np.equal(np.sort(values), np.sort(np.conj(values))))
    return op("real")(coefficients) if paired else coefficients


@primitive
class roots(General):
    """The complex roots of the polynomial with coefficients p, the first not zero :  (n+1) -> (n).

    Their tangents follow from the implicit function theorem: p'(r) r_dot + p_dot(r) = 0.
    """

    host = True

    def result(self, p):
        t = type_of(p)
        if t.ndim != 1 or not t.size:
            raise ShapeError(f"roots: takes a vector of coefficients, not {t}")
        return ArrayType((t.shape[0] - 1,), np.result_type(t.dtype, np.complex64))

    def evaluate(self, xp, /, p):
        return xp.roots(p).astype(np.result_type(p.dtype, np.complex64))

    def arithmetic(self, y, args, params):
        return 50 * y.size**3  # n eigenvalues, about 5 steps of the QR algorithm for each

    def jvp(self, y, primals, tangents, /):
        (p,), (p_dot,) = primals, tangents
        n = type_of(p).size - 1
        powers = op("stack")(*[y ** (n - i) for i in range(n + 1)])
        return -op("matmul")(p_dot, powers) / polyval(polyder(p), y)


@implements(np.roots)
def np_roots(p):
    """The roots of a polynomial: as real numbers if all are real."""
    p = _row(p)
    n = type_of(p).size
    if not n or n == 1:
        return np.zeros(0)
    if np.equal(p[0], 0):
        raise NoRuleError(
            "roots: the first coefficient is 0, and when it moves a root comes from infinity; "
            "leave it away: np.trim_zeros(p, 'f')"
        )
    y = roots(p)
    return op("real")(y) if np.all(np.equal(op("imag")(y), 0)) else y


@implements(np.polyfit)
def polyfit(x, y, deg, rcond=None, full=False, w=None, cov=False):
    """The coefficients of the polynomial of degree `deg` that fits the points best."""
    if full or cov:
        raise NoRuleError(
            f"polyfit: {'full' if full else 'cov'}= of traced values has no rule; the residuals "
            "are y - np.polyval(p, x)"
        )
    x, y = as_array(x) + 0.0, as_array(y) + 0.0
    matrix = vander(x, deg + 1)
    if w is not None:
        weights = as_array(w)
        matrix = matrix * weights[:, None]
        y = y * (weights[:, None] if type_of(y).ndim == 2 else weights)
    scale = op("sqrt")(op("sum")(matrix * matrix, axis=(0,), keepdims=True))
    q = matrix / scale
    scaled = np.linalg.lstsq(q, y, rcond=rcond)[0]
    return scaled / (scale[0][:, None] if type_of(y).ndim == 2 else scale[0])


@implements(np.vander)
def vander(x, N=None, increasing=False):
    """The Vandermonde matrix: one column for each power of x."""
    x = as_array(x)
    wide = np.result_type(type_of(x).dtype, int)
    x = x if type_of(x).dtype == wide else op("astype")(x, dtype=wide)
    n = type_of(x).size if N is None else N
    columns = [np.ones(type_of(x).shape, type_of(x).dtype)]
    for _ in range(n - 1):
        columns.append(columns[-1] * x)
    rows = columns[:n] if increasing else columns[:n][::-1]
    if not rows:
        return np.zeros((type_of(x).size, 0), type_of(x).dtype)
    return op("permute_dims")(op("stack")(*rows), axes=(1, 0))


# --- orthogonal bases: numpy.polynomial -----------------------------------------------------------

# p_(k+1) = (a_k x + b_k) p_k - c_k p_(k-1), with p_0 = 1 and p_1 = a_0 x + b_0
BASES: dict[str, Callable[[int], tuple[float, float, float]]] = {
    "poly": lambda k: (1.0, 0.0, 0.0),
    "cheb": lambda k: (2.0 if k else 1.0, 0.0, 1.0),
    "leg": lambda k: ((2 * k + 1) / (k + 1), 0.0, k / (k + 1)),
    "herm": lambda k: (2.0, 0.0, 2.0 * k),
    "herme": lambda k: (1.0, 0.0, float(k)),
    "lag": lambda k: (-1 / (k + 1), (2 * k + 1) / (k + 1), k / (k + 1)),
}


def _evaluation(basis: str) -> Callable[..., Any]:
    """The function that evaluates a series in a basis by backward recurrence  [Clenshaw 1955]."""
    step = BASES[basis]

    def val(x, c, tensor=True):
        """The series at x; c may hold several series in its columns."""
        x, c = as_array(x), as_array(c) * 1.0
        if tensor and type_of(c).ndim > 1:
            c = op("reshape")(c, shape=(*type_of(c).shape, *(1,) * type_of(x).ndim))
        b1: Any = 0.0
        b2: Any = 0.0
        for k in range(type_of(c).shape[0] - 1, -1, -1):
            slope, shift, _ = step(k)
            _, _, past = step(k + 1)
            b1, b2 = c[k] + (slope * x + shift) * b1 - past * b2, b1
        return b1

    return val


def _columns(basis: str) -> Callable[..., Any]:
    """The function that evaluates the polynomials of a basis up to a degree."""
    step = BASES[basis]

    def columns(x, deg):
        """The polynomials of degree 0 to `deg` at x, along a new last axis."""
        x = as_array(x)
        if type_of(x).ndim == 0:
            x = op("reshape")(x, shape=(1,))
        polynomials = [x * 0.0 + 1.0]
        for k in range(deg):
            slope, shift, past = step(k)
            new = (slope * x + shift) * polynomials[-1]
            polynomials.append(new if not k or not past else new - past * polynomials[-2])
        stacked = op("stack")(*polynomials)
        return op("permute_dims")(stacked, axes=(*range(1, type_of(stacked).ndim), 0))

    return columns


_MODULES = {
    "poly": np.polynomial.polynomial,
    "cheb": np.polynomial.chebyshev,
    "leg": np.polynomial.legendre,
    "herm": np.polynomial.hermite,
    "herme": np.polynomial.hermite_e,
    "lag": np.polynomial.laguerre,
}
for _basis, _module in _MODULES.items():
    implements(getattr(_module, f"{_basis}val"))(_evaluation(_basis))
    implements(getattr(_module, f"{_basis}vander"))(_columns(_basis))
