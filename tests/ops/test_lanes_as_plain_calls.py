"""NumPy's functions in a lane, where nobody knows the values: what comes out is NumPy's own.

Values up to rounding, types, what is raised or warned of, all as of a plain call; each line is a
function and its arguments.
"""

import warnings

import numpy as np
import pytest

import lineara

inf, nan = np.inf, np.nan
X = np.array([[1.5, nan, -2.0], [nan, nan, nan], [0.5, inf, inf]])
W = np.array([0.25, -1.0, 0.5])
Z = np.array([1.0 + 2.0j, complex(inf, 1.0), complex(2.0, nan)])


def _written(a, i):
    a = np.zeros(4) * a[0] + 1
    a[i.astype(int)] = a[0] - 3.0
    return a


def _imag_set(z):
    z = z * 1
    z.imag = z.real
    return z


_NAN = ["nanmin", "nanmax", "nanmean", "nanvar", "nanstd", "nanmedian", "nanargmin", "nanargmax"]
CALLS = {
    **{f"{n} {axis}": (lambda x, n=n, a=axis: getattr(np, n)(x, axis=a), X)
       for n in _NAN for axis in (None, 0, 1)},
    **{f"{n} of nothing": (lambda x, n=n: getattr(np, n)(x, axis=0), X[:, :2]) for n in _NAN},
    "nanquantile": (lambda x: np.nanquantile(x, [0.25, 0.5], axis=1), X),
    "nanpercentile": (lambda x: np.nanpercentile(x, 75, axis=0), X),
    "var of both": (lambda x: np.var(x, ddof=1, correction=2), W),
    "nanvar of both": (lambda x: np.nanvar(x, ddof=1, correction=2), W),
    "var, complex": (lambda x: np.var(x, dtype=complex), W),
    "quantile, a number": (lambda x: np.quantile(x, 0.5), X),
    "quantile of fractions": (lambda q: np.quantile([0, 1, 2], q), 0.25),
    "quantile, NumPy's": (lambda x: np.quantile(x.astype("f"), np.float64(0.3)), W),
    "quantile, Python's": (lambda x: np.quantile(x.astype("f"), 0.3), W),
    "quantile of integers": (lambda q: np.quantile(np.arange(4), [q], method="nearest"), 0.3),
    "quantile out of range": (lambda q: np.quantile(np.arange(4), q), 1.25),
    "percentile out of range": (lambda q: np.percentile(np.arange(4), [q, 3.0]), nan),
    "quantile of infinities": (lambda x: np.quantile(x, 0.75), np.array([1.0, inf, inf])),
    "quantile between infinities": (lambda x: np.quantile(x, 0.1), np.array([1.0, -inf, inf])),
    "weights below 0": (lambda w: _weighted(w), W),
    "weights of 0": (lambda w: _weighted(w), W * 0),
    "cov": (lambda x: np.cov(x.astype("f"), dtype="f"), np.arange(6.0).reshape(2, 3) ** 2),
    "cov, aweights below 0": (lambda w: np.cov(np.arange(3.0), aweights=w), W),
    "cov, few weights": (lambda w: np.cov(np.arange(3.0), aweights=w, ddof=3), np.ones(3)),
    "cov, one sample": (lambda x: np.cov(x[:1]), W),
    "interp, f infinite": (lambda f: np.interp(0.5, [0, 1], f), np.array([0, -inf])),
    "interp, x infinite": (lambda x: np.interp(0.5, x, [0, 10]), np.array([-inf, 1])),
    "interp, both": (lambda x: np.interp(0.5, x, [10, 10]), np.array([-inf, inf])),
    "interp on points": (lambda f: np.interp([1, 2, 3], [1, 2, 3], f), np.array([1, nan, 3])),
    "interp, complex": (lambda f: np.interp([0.5, 1, 2.5], [0, 1, 3], f), Z),
    "nan_to_num, complex": (np.nan_to_num, Z),
    "imag is set": (_imag_set, Z),
    "one number at positions": (_written, W, np.array([3.0, 0.0, 3.0])),
}  # fmt: skip


def _weighted(w):
    return np.quantile(np.array([2.0, 1.0, 3.0]), 0.5, weights=w, method="inverted_cdf")


def _outcome(run):
    """The value or the exception, and what was warned of beside NumPy's arithmetic."""
    with warnings.catch_warnings(record=True) as told, np.errstate(all="ignore"):
        warnings.simplefilter("always")
        try:
            found = run()
        except (ValueError, TypeError) as e:
            found = type(e), str(e)
    said = [str(w.message) for w in told if issubclass(w.category, RuntimeWarning)]
    return found, [s for s in said if "encountered in" not in s and "divide by" not in s]


@pytest.mark.parametrize("name", CALLS)
def test_a_lane_gives_what_a_plain_call_gives(name):
    f, *args = CALLS[name]
    types = []

    def seen(*xs):
        y = f(*xs)
        types.append((type(y), y.dtype, y.shape, np.isscalar(y)))
        return y

    plain, warned = _outcome(lambda: seen(*args))
    lane, told = _outcome(lambda: lineara.vmap(seen)(*[np.asarray(a)[None] for a in args])[0])
    assert told == warned
    if isinstance(plain, tuple):
        assert issubclass(lane[0], plain[0])
        assert plain[1] in lane[1]
        return
    assert types[0] == types[1]
    bits = np.finfo(plain.dtype if plain.dtype.kind in "fc" else float).eps
    np.testing.assert_allclose(lane, plain, rtol=4 * bits)


@pytest.mark.parametrize("name", ["quantile out of range", "weights below 0"])
def test_what_is_raised_by_value_is_no_dead_code(name):
    f, x = CALLS[name]

    def program(x):
        f(x)
        return 2 * x

    with pytest.raises(ValueError, match="must be"):
        lineara.vmap(program)(np.asarray(x)[None])
    with pytest.raises(ValueError, match="must be"):
        lineara.vmap(lineara.grad(lambda x: np.sum(program(x))))(np.asarray(x)[None])
