"""scipy.spatial.distance: distances between two vectors, and between sets of vectors.

A distance defined by a root has slope 0 where it is 0, as a norm.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from lineara.errors import NoRuleError
from lineara.facts.hints import Shaped, Value
from lineara.facts.primitive import implements, op
from lineara.facts.types import type_of
from lineara.ops.eigen import has_values
from lineara.ops.elementwise import root
from lineara.ops.norms import vector_norm
from lineara.ops.shape import as_array, as_floats

Metric = Callable[..., Any]
METRICS: dict[str, Metric] = {}  # between vectors along the last axis, wherever they are


def _metric(*others: str) -> Callable[[Metric], Metric]:
    """Declare a distance between vectors, under its own name and others for `cdist`."""

    def register(between: Metric) -> Metric:
        name = between.__name__
        METRICS.update(dict.fromkeys((name, *others), between))

        @implements(f"scipy.spatial.distance.{name}")
        def call(u: Shaped, v: Shaped, *args: Any, **options: Any) -> Any:
            return between(_vector(u), _vector(v), *args, **options)

        call.__name__, call.__doc__ = name, between.__doc__
        return between

    return register


def _vector(u: Shaped) -> Any:
    u = as_floats(u)
    if type_of(u).ndim != 1:
        raise ValueError("Input vector should be 1-D.")
    return u


def _sum(x: Shaped, w: Value | None = None) -> Any:
    return np.sum(x if w is None else x * w, axis=-1)


@_metric("mink", "mi", "m", "pnorm")
def minkowski(u: Value, v: Value, p: Any = 2, w: Any = None) -> Any:
    """(sum of w |u - v|^p)^(1/p)."""
    if has_values(p) and p <= 0:
        raise ValueError("p must be greater than 0")
    apart = u - v if w is None else (u - v) * as_array(w) ** (1 / p)
    return vector_norm(apart, ord=p, axis=-1)


@_metric("euclid", "eu", "e")
def euclidean(u: Shaped, v: Shaped, w: Value | None = None) -> Any:
    """The length of u - v."""
    return minkowski(u, v, 2, w)


@_metric("sqe", "sqeuclid")
def sqeuclidean(u: Value, v: Value, w: Value | None = None) -> Any:
    """The squared length of u - v."""
    apart = u - v
    return _sum(apart * apart, w)


@_metric("cblock", "cb", "c")
def cityblock(u: Value, v: Value, w: Value | None = None) -> Any:
    """The sum of |u - v|."""
    return _sum(np.abs(u - v), w)


@_metric("chebychev", "cheby", "cheb", "ch")
def chebyshev(u: Value, v: Value, w: Value | None = None) -> Any:
    """The largest |u - v|."""
    apart = np.abs(u - v)
    return np.max(apart if w is None else (np.asarray(w) > 0) * apart, axis=-1)


@_metric("se", "s")
def seuclidean(u: Value, v: Value, V: object) -> Any:  # SciPy's name
    """The length of u - v in units of each component's standard deviation."""
    return minkowski(u, v, 2, 1 / as_array(V))


@_metric("mahal", "mah")
def mahalanobis(u: Value, v: Value, VI: object) -> Any:  # SciPy's name
    """The length of u - v for a covariance whose inverse is VI."""
    apart = u - v
    return root(_sum((apart @ as_array(VI)) * apart))


@_metric("cos")
def cosine(u: Shaped, v: Shaped, w: Value | None = None) -> Any:
    """1 minus the cosine of the angle between u and v."""
    lengths = np.sqrt(_sum(u * u, w) * _sum(v * v, w))
    return np.clip(1.0 - _sum(u * v, w) / lengths, 0.0, 2.0)


@_metric("co")
def correlation(u: Shaped, v: Shaped, w: Shaped | None = None, centered: bool = True) -> Any:
    """1 minus the correlation of the components of u and v."""
    if not centered:
        return cosine(u, v, w)
    if w is not None:
        w = as_array(w) / np.sum(w)
    means = [_sum(x, w) if w is not None else np.mean(x, axis=-1) for x in (u, v)]
    return cosine(u - means[0][..., None], v - means[1][..., None], w)


@_metric()
def braycurtis(u: Shaped, v: Shaped, w: Value | None = None) -> Any:
    """The sum of |u - v| divided by the sum of |u + v|."""
    return _sum(np.abs(u - v), w) / _sum(np.abs(u + v), w)


@_metric()
def canberra(u: Shaped, v: Shaped, w: Value | None = None) -> Any:
    """The sum of |u - v| / (|u| + |v|); two zeros add nothing."""
    size = np.abs(u) + np.abs(v)
    none = size == 0
    return _sum(np.where(none, 0.0, np.abs(u - v) / np.where(none, 1.0, size)), w)


@implements("scipy.spatial.distance.jensenshannon")
def jensenshannon(p, q, base=None, *, axis=0, keepdims=False):
    """The root of the mean divergence of two distributions from their mean."""
    p, q = (as_array(x) / np.sum(x, axis=axis, keepdims=True) for x in (p, q))
    m = (p + q) / 2.0
    parts = [op("rel_entr")(x, m) for x in (p, q)]
    total = sum(np.sum(x, axis=axis, keepdims=keepdims) for x in parts)
    return root((total if base is None else total / np.log(base)) / 2.0)


# --- all of them --------------------------------------------------------------------------------


def _between(name: str, metric: Any, x: Any, options: dict[str, Any]) -> Metric:
    """The distance function; parameters that depend on all vectors are computed from x."""
    if callable(metric):
        return metric
    between = METRICS.get(metric.lower())
    if between is None:
        raise NoRuleError(f"{name}: metric={metric!r} has no rule; {', '.join(NAMES)} have one")
    if between is seuclidean and options.get("V") is None:
        options["V"] = np.var(x(), axis=0, ddof=1)
    if between is mahalanobis and options.get("VI") is None:
        options["VI"] = np.linalg.inv(np.cov(x().T)).T
    return lambda u, v: between(u, v, **options)


NAMES = [m.__name__ for m in dict.fromkeys(METRICS.values())]


def _matrix(x: Shaped, name: str) -> Any:
    x = as_floats(x)
    if type_of(x).ndim != 2:
        raise ValueError(f"{name} must be a 2-dimensional array.")
    return x


@implements("scipy.spatial.distance.cdist")
def cdist(XA, XB, metric="euclidean", *, out=None, **options):  # SciPy's names
    """The distance of each vector from each of others :  (m,k), (n,k) -> (m,n)."""
    del out
    a, b = _matrix(XA, "XA"), _matrix(XB, "XB")
    between = _between("cdist", metric, lambda: np.concatenate([a, b]), options)
    if callable(metric):
        rows = [[between(a[i], b[j], **options) for j in range(len(b))] for i in range(len(a))]
        return np.stack([np.stack(row) for row in rows])
    return between(a[:, None], b)


@implements("scipy.spatial.distance.pdist")
def pdist(X, metric="euclidean", *, out=None, **options):  # SciPy's names
    """The distances of vectors from each other, each pair once :  (m,k) -> (m (m-1) / 2)."""
    del out
    x = _matrix(X, "X")
    between = _between("pdist", metric, lambda: x, options)
    first, second = np.triu_indices(type_of(x).shape[0], 1)
    if callable(metric):
        return np.stack(
            [between(x[i], x[j], **options) for i, j in zip(first, second, strict=True)]
        )
    return between(x[first], x[second])


@implements("scipy.spatial.distance.squareform")
def squareform(X, force="no", checks=True):  # SciPy's names
    """The distances of pairs as a symmetric matrix, or its upper triangle as such."""
    x = as_array(X)
    ndim, force = type_of(x).ndim, force.lower()
    if (
        ndim not in (1, 2)
        or (force == "tomatrix" and ndim == 2)
        or (force == "tovector" and ndim == 1)
    ):
        raise ValueError(f"squareform: an array of {ndim} axes cannot be made force={force!r}")
    if ndim == 1:
        n = int(np.ceil(np.sqrt(2 * type_of(x).shape[0])))
        if n * (n - 1) != 2 * type_of(x).shape[0]:
            raise ValueError("Incompatible vector size. It must be a binomial coefficient.")
        n = max(n, 1)
        upper = np.triu_indices(n, 1)
        where = np.full((n, n), type_of(x).shape[0])
        where[upper] = np.arange(type_of(x).shape[0])
        return np.concatenate([x, np.zeros(1, type_of(x).dtype)])[np.minimum(where, where.T)]
    n, m = type_of(x).shape
    if n != m:
        raise ValueError("The matrix argument must be square.")
    if checks and has_values(x) and not (np.all(x == x.T) and np.all(np.diag(x) == 0)):
        raise ValueError("Distance matrix 'X' must be symmetric, with zeros on its diagonal.")
    return x[np.triu_indices(n, 1)]
