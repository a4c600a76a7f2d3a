"""What is traced at whole numbers, flags or single precision has NumPy's value and dtype."""

import numpy as np
import pytest
import scipy
import scipy.integrate
import scipy.linalg as sl
import scipy.special
from scipy.spatial.distance import pdist

from lineara import trace, vmap
from lineara.errors import NoRuleError

A = np.array([[4, 1, 0], [1, 5, 2], [0, 2, 6]])
LOW = np.tril(A)
B = np.array([1, 2, 3])
BAND = np.array([[0, 1, 1], [3, 4, 5], [1, 2, 0]])

FUNCTIONS = {
    "solve": (np.linalg.solve, A, B),
    "inv": (np.linalg.inv, A),
    "det": (np.linalg.det, A),
    "slogdet": (lambda a: np.linalg.slogdet(a)[1], A),
    "cholesky": (np.linalg.cholesky, A),
    "eigvalsh": (np.linalg.eigvalsh, A),
    "svd": (lambda a: np.linalg.svd(a)[1], A),
    "svdvals": (np.linalg.svdvals, A),
    "qr": (lambda a: abs(np.linalg.qr(a)[1]), A),
    "pinv": (np.linalg.pinv, A),
    "lstsq": (lambda a, b: np.linalg.lstsq(a, b, rcond=None)[0], A, B),
    "norms": (lambda a: np.linalg.norm(a) + np.linalg.norm(a, 2) + np.linalg.norm(a, "nuc"), A),
    "cond": (np.linalg.cond, A),
    "a power": (lambda a: np.linalg.matrix_power(a, 3), A),
    "a negative power": (lambda a: np.linalg.matrix_power(a, -2), A),
    "tensorsolve": (np.linalg.tensorsolve, A, B),
    "solve_triangular": (lambda a, b: sl.solve_triangular(a, b, lower=True), LOW, B),
    "solve_banded": (lambda a, b: sl.solve_banded((1, 1), a, b), BAND, B),
    "solveh_banded": (sl.solveh_banded, BAND[:2], B),
    "cho_solve": (lambda a, b: sl.cho_solve(sl.cho_factor(a), b), A, B),
    "lu_solve": (lambda a, b: sl.lu_solve(sl.lu_factor(a), b), A, B),
    "lu": (lambda a: sl.lu(a)[2], A),
    "toeplitz": (sl.solve_toeplitz, A[0], B),
    "circulant": (sl.solve_circulant, A[0], B),
    "sylvester": (lambda a, q: sl.solve_sylvester(a, a, q), A, A),
    "expm": (sl.expm, A),
    "sqrtm": (sl.sqrtm, A),
    "logm": (sl.logm, A),
    "polar": (lambda a: sl.polar(a)[1], A),
    "eigh_tridiagonal": (lambda d, e: sl.eigh_tridiagonal(d, e)[0], B, B[:2]),
    "fft": (np.fft.fft, B),
    "rfft": (np.fft.rfft, B),
    "mean": (np.mean, A),
    "var": (np.var, A),
    "median": (np.median, A),
    "quantile": (lambda a: np.quantile(a, 0.3), B),
    "a quantile of theirs": (lambda a: np.quantile(a, 0.3, method="lower"), B),
    "percentiles": (lambda a: np.percentile(a, [10, 35], axis=0), A),
    "corrcoef": (np.corrcoef, A),
    "gradient": (np.gradient, B),
    "trapezoid": (np.trapezoid, B),
    "linspace": (lambda a: np.linspace(a[0], a[2], 4), B),
    "chebvander": (lambda x: np.polynomial.chebyshev.chebvander(x, 3), np.int8([100, 50, 3])),
    "chebval": (np.polynomial.chebyshev.chebval, B, B),
    "chebval of small numbers": (np.polynomial.chebyshev.chebval, np.float32(B), np.int8(B)),
    "sum of small numbers": (lambda a: np.sum(a, dtype=np.int8), B),
    "interp": (lambda x: np.interp(x, B, 2 * B), B),
    "logsumexp": (scipy.special.logsumexp, B),
    "expit": (scipy.special.expit, B),
    "zscore": (lambda a: scipy.stats.zscore(a), B),
    "simpson": (scipy.integrate.simpson, B),
    "spline": (lambda a: scipy.interpolate.CubicSpline(np.arange(3.0), a)(0.5), B),
    "convolve": (lambda a, b: scipy.signal.convolve(a, b), B, B),
    "fftconvolve": (lambda a, b: scipy.signal.fftconvolve(a, b), B, B),
    "correlate": (lambda a, b: scipy.signal.correlate(a, b, "same"), B, B),
    "smoothed": (lambda a: scipy.ndimage.gaussian_filter(a, 1.0, output=float), A),
    "pdist": (pdist, A),
}


FLAGS = np.array([True, False, True, True])
OTHERS = {
    "a median of flags": (np.median, FLAGS),
    "a median of one": (np.median, B),
    "a sum of flags": (np.nansum, FLAGS),
    "a product": (np.nanprod, B),
    "a mean of flags": (np.mean, FLAGS),
    "slopes of what wraps around": (np.gradient, np.array([1, 0, 3, 200], np.uint8)),
    "no NaN in integers": (np.nan_to_num, B),
    "a step": (lambda x: np.heaviside(x, 1), B),
    "a polynomial": (lambda x: np.polyval([1, 2], x), B),
    "an area": (scipy.integrate.trapezoid, np.float32([1, 4, 9])),
    "areas": (scipy.integrate.cumulative_trapezoid, np.float32([1, 4, 9])),
    "areas from 0": (
        lambda y: scipy.integrate.cumulative_trapezoid(y, initial=0),
        np.float32([1, 4, 9]),
    ),
    "under parabolas": (scipy.integrate.simpson, np.float32([1, 4, 9])),
    "under parabolas and a line": (scipy.integrate.simpson, np.float32([1, 4, 9, 3])),
}
FUNCTIONS |= OTHERS


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_program_of_whole_numbers_has_the_value_and_dtype(name):
    f, *args = FUNCTIONS[name]
    want, found = f(*args), trace(f, *args)(*args)
    single = any([a.dtype == np.float32 for a in args])
    np.testing.assert_allclose(found, want, rtol=1e-6 if single else 1e-12, atol=1e-12)
    assert np.asarray(found).dtype == np.asarray(want).dtype


@pytest.mark.parametrize("name", ["svdvals", "expm", "solve_banded", "quantile"])
def test_so_has_a_function_over_lanes(name):
    f, *args = FUNCTIONS[name]
    lanes = [np.stack([a, 2 * a]) for a in args]
    want = [f(*row) for row in zip(*lanes, strict=True)]
    np.testing.assert_allclose(vmap(f)(*lanes), want, rtol=1e-12)


FILTERS = {
    "gaussian_filter": lambda a: scipy.ndimage.gaussian_filter(a, 1.0),
    "uniform_filter": lambda a: scipy.ndimage.uniform_filter(a),
    "correlate": lambda a: scipy.ndimage.correlate(a, np.full((3, 3), 0.1)),
    "sobel": lambda a: scipy.ndimage.sobel(a),
    "laplace": lambda a: scipy.ndimage.laplace(a),
    "gaussian_laplace": lambda a: scipy.ndimage.gaussian_laplace(a, 1.0),
}


@pytest.mark.parametrize("name", FILTERS)
def test_a_filter_whose_result_scipy_would_cut_off_is_refused(name):
    with pytest.raises(NoRuleError) as caught:
        trace(FILTERS[name], A)
    assert str(caught.value).split("\n")[0] == (
        f"{name}: the image has int64, and so has the result, which does not move; give "
        "image.astype(float), or output=float"
    )
