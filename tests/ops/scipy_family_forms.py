"""Expressions with SciPy's families (linalg, sparse, interpolate, ndimage, signal)."""

import numpy as np
from scipy import sparse, stats
from scipy.interpolate import (
    Akima1DInterpolator,
    CubicSpline,
    PchipInterpolator,
    RegularGridInterpolator,
    interp1d,
    make_interp_spline,
)
from scipy.sparse.linalg import splu

rng = np.random.default_rng(6)
POINT = {
    "s": 0.7,
    "x": np.array([0.31, -0.72, 0.55]),
    "y": np.array([-1.2, 0.4, 2.1]),
    "v": np.array([0.9, 1.7, 0.4, 2.3]),
    "A": rng.normal(size=(3, 4)),
    "B": rng.normal(size=(4, 2)),
    "M": rng.normal(size=(3, 3)) + 3 * np.eye(3),
    "N": rng.normal(size=(2, 3, 3)) + 3 * np.eye(3),
    "Q": rng.normal(size=(4, 3)),
}
C = rng.normal(size=(3, 3))
P = rng.uniform(-0.9, 1.9, size=(2, 3))
GRID = np.array([-1.0, -0.2, 0.6, 2.0])
SPLINE = CubicSpline(GRID, [0.3, 1.0, -0.4, 0.2])
PIECES = PchipInterpolator(GRID, rng.normal(size=(4, 2)))
LINE = interp1d(GRID, rng.normal(size=(2, 4)))
CUBIC = interp1d(GRID, rng.normal(size=4), kind="cubic", fill_value="extrapolate")
STEPS = interp1d(GRID, rng.normal(size=4), kind="nearest")
TABLE = RegularGridInterpolator((GRID[:3], GRID), rng.normal(size=(3, 4)))
SOS = np.array([[0.3, 0.2, 0.1, 1.0, -0.4, 0.2], [1.0, 0.5, 0.25, 1.0, 0.3, -0.1]])
AT = [0, 2, 1, 0]
CROSS = np.array([[1, 0, 1], [1, 1, 1]])
PLACES = np.array([[-0.83, 0.31, 1.37, 2.62], [0.29, 1.24, 3.77, -1.36]])
REGIONS = np.array([[0, 1, 1, 2], [2, 0, 1, 1], [2, 2, 2, 0]])
ROWS = interp1d(GRID, rng.normal(size=(2, 4, 3)), kind="cubic", axis=1)
EXACT = sparse.linalg.spsolve
SURFACE = RegularGridInterpolator((GRID, GRID), rng.normal(size=(4, 4)), "cubic")
KNOTS = np.array([-1.0, -1.0, -1.0, 0.3, 2.0, 2.0, 2.0])
UNIFORM = np.arange(8.0)
FIELD = RegularGridInterpolator((GRID[:3], GRID), rng.normal(size=(3, 4, 2, 3)))
LU = splu(sparse.csc_matrix(rng.normal(size=(3, 3)) + 3 * np.eye(3)[::-1]))
NORMAL = stats.multivariate_normal
FROZEN = NORMAL([0.1, 0.2], [[1.0, 0.3], [0.3, 2.0]])
KDE = stats.gaussian_kde([0.1, 0.7, 2.0], 0.4, weights=[1.0, 2.0, 1.5])
BASIS = make_interp_spline(GRID, [0.3, 1.0, -0.4, 0.2])
AKIMA = Akima1DInterpolator(np.arange(-3.0, 4.0), rng.normal(size=7))
SPARSE = sparse.csr_array(np.where(rng.uniform(size=(3, 4)) < 0.6, rng.normal(size=(3, 4)), 0.0))
SYSTEM = sparse.csc_array(np.eye(3) * 2 + np.diag([0.3, -0.7], 1))


def gram(m):
    """A positive definite matrix."""
    return m @ np.conj(np.swapaxes(m, -1, -2)) + np.eye(m.shape[-1])


def projection(q):
    """The projection on what orthonormal columns span."""
    return q @ q.T


FORMS = """
# linear systems
linalg.solve(M, x); linalg.solve(M, A); linalg.solve(M, x, transposed=True); linalg.solve(N, x)
linalg.solve(M, x, assume_a="sym", lower=True)
linalg.solve(M, x, assume_a="sym"); linalg.solve(gram(M), x, assume_a="pos", lower=True)
linalg.solve(gram(M), A, assume_a="pos")
linalg.solve(N[None], B[:3] * np.ones((1, 2, 1, 1)), assume_a="sym")
linalg.solve(N[None], B[:3] * np.ones((1, 2, 1, 1)), assume_a="tridiagonal")
linalg.solve(M, x, assume_a="diagonal")
linalg.solve(M, x, assume_a="tridiagonal"); linalg.solve(M, x, assume_a="upper triangular")
linalg.solve(M, x, assume_a="lower triangular", transposed=True); linalg.solve(C, x)
np.imag(linalg.solve(gram(M + 1j * C), x, assume_a="her")); linalg.inv(M); linalg.det(M)
np.imag(linalg.solve_triangular(M + 1j * C, x))
linalg.solve_triangular(M, x); linalg.solve_triangular(M, A, lower=True, check_finite=False)
linalg.solve_triangular(M, x, trans="T"); linalg.solve_triangular(M, x, 2, unit_diagonal=True)
np.real(linalg.solve_triangular(M + 1j * C, x, trans=1)); linalg.norm(A); linalg.norm(x, 1)
linalg.norm(A, axis=0, check_finite=False); linalg.norm(M, "nuc")
linalg.solve_sylvester(M, gram(C), A[:, :3]); linalg.solve_continuous_lyapunov(M, gram(C))
linalg.solve_banded((1, 1), A[:3] + 4 * np.eye(3)[:, [1]], v)
linalg.solve_banded((0, 2), A[:3] + 4 * np.eye(3)[:, [2]], B)
linalg.solveh_banded(A[:2] + 4 * np.eye(2)[:, [1]], v)
linalg.solveh_banded(A + 6 * np.eye(3)[:, [0]], B, lower=True)
# factorisations
linalg.cholesky(gram(M)); linalg.cholesky(gram(M), lower=True); linalg.cholesky(gram(N))
linalg.cho_solve(linalg.cho_factor(gram(M)), x); linalg.cho_solve((M, True), A)
linalg.cho_solve(linalg.cho_factor(gram(M), lower=True), A); linalg.cho_solve((C, False), x)
np.imag(linalg.cho_solve(linalg.cho_factor(gram(M + 1j * C)), x))
np.log(np.diag(linalg.cho_factor(gram(M))[0])); linalg.qr(A, mode="economic")[0]
linalg.qr(Q, mode="economic")[1]; linalg.qr(M)[1]; linalg.qr(A, mode="r")[0]; linalg.svdvals(A)
linalg.svd(A, full_matrices=False)[0]; linalg.svd(Q, compute_uv=False); linalg.svd(M)[2]
linalg.eigh(M)[0]; linalg.eigh(M)[1] ** 2; abs(linalg.eigh(M, lower=False)[1]); linalg.eigvalsh(M)
linalg.eigh(M, gram(C))[0]; linalg.eigh(M, gram(C))[1]; linalg.eigvalsh(M, gram(M))
linalg.eigh(M, subset_by_index=[1, 2])[0]; linalg.eigh(M, subset_by_index=[0, 1])[0]
linalg.eigh(M, eigvals_only=True, driver="evd")
linalg.eigh(M, gram(C), lower=False)[0]; np.real(linalg.eigvals(gram(M)))
np.real(linalg.eig(gram(M))[0]); linalg.eig(gram(M))[1]; np.real(linalg.eigvals(gram(M), gram(C)))
linalg.pinv(A); linalg.pinv(Q, return_rank=True)[0]; linalg.pinvh(gram(M)); linalg.polar(M)[0]
linalg.polar(A, side="left")[1]; linalg.lstsq(Q, v)[0]; linalg.lstsq(Q, v)[1]; linalg.lstsq(Q, B)[1]
linalg.lu_factor(M)[0]; linalg.lu_solve(linalg.lu_factor(M), x); linalg.lu_factor(M[::-1])[0]
linalg.lu_solve(linalg.lu_factor(M[::-1]), A, trans=1); linalg.lu_solve(linalg.lu_factor(C), x)
np.imag(linalg.lu_solve(linalg.lu_factor(M + 1j * C), x, trans=2)); linalg.lu(M[::-1])[1]
linalg.lu(M[::-1], permute_l=True)[0]; linalg.lu(M[::-1], p_indices=True)[2]; linalg.lu(C * s)[2]
projection(linalg.orth(Q[:, :2])); linalg.orth(A[:1].T); linalg.null_space(A)
projection(linalg.null_space(M[:1])); linalg.subspace_angles(Q, B)
linalg.subspace_angles(Q[:, :1], B); linalg.orthogonal_procrustes(Q, Q @ C)[0]
linalg.orthogonal_procrustes(M, C)[1]; linalg.polar(np.eye(3) * s + 0.1)[0]; linalg.polar(A)[1]
linalg.polar(gram(N) * s + N)[0]; linalg.leslie(x, v[:2]); linalg.fiedler(v)
linalg.convolution_matrix(x, 4); linalg.convolution_matrix(x, 3, "same")
linalg.solve_circulant(v, A.T); linalg.cho_solve_banded((np.abs(A[:2]) + 1, False), v)
linalg.cho_solve_banded((np.abs(A[:2]) + 1, True), B)
np.imag(linalg.solve_sylvester(M + 1j * C, gram(M), A[:, :3]))
linalg.solve_discrete_lyapunov(0.1 * M, C)
linalg.solve_discrete_lyapunov(0.1 * M, C, "bilinear"); linalg.eig_banded(A, lower=True)[0]
linalg.eigvals_banded(A[:2], select=2, select_range=(1, 2))
linalg.eigvals_banded(A[:2], select=0)
linalg.eigvals_banded(A[:2], select="i", select_range=(1, 2)); linalg.eigh_tridiagonal(v, x)[0]
abs(linalg.eigh_tridiagonal(v, x)[1]); projection(linalg.eigh_tridiagonal(v, x)[1][:, :2])
linalg.eigvalsh_tridiagonal(v, x)
linalg.solve_continuous_are(-M, A[:, :2], gram(C), np.eye(2)) @ x
linalg.solve_continuous_are(-C, A[:, :1], gram(M), [[s]])
linalg.solve_discrete_are(0.3 * M, A[:, :2], gram(C), gram(M)[:2, :2])
linalg.solve_discrete_are(0.3 * M, A[:, :1], gram(C), s); linalg.solve_continuous_are(s, s, 1.0, s)
# functions of matrices
linalg.expm_frechet(M, C); linalg.expm_frechet(0.3 * C, M, compute_expm=False)
linalg.fractional_matrix_power(gram(M), 0.5); linalg.fractional_matrix_power(gram(C), s)
linalg.fractional_matrix_power(M, 3); linalg.signm(M) + M
linalg.expm(M); linalg.expm(N); linalg.expm(s * C); np.imag(linalg.expm(1j * M)); linalg.sqrtm(M)
linalg.sqrtm(gram(M)); linalg.logm(M); linalg.sinm(M); linalg.cosm(M); linalg.tanhm(0.3 * M)
linalg.expm(linalg.logm(M)); np.imag(linalg.sqrtm(M + 0.5j * C))
# matrices of a structure
linalg.block_diag(M, A, x); linalg.block_diag(C, s * M); linalg.toeplitz(x); linalg.toeplitz(x, v)
np.imag(linalg.toeplitz(x + 1j * y)); linalg.circulant(v); linalg.hankel(v); linalg.hankel(x, v)
linalg.companion(v); linalg.khatri_rao(A[:, :3], M); linalg.matmul_toeplitz((x, y), x)
linalg.solve_toeplitz((x + 2 * np.eye(3)[0], y), y)
# splines
CubicSpline(GRID, np.multiply.outer(v, M))(x[0])
CubicSpline(GRID, v)(x); CubicSpline(GRID, v)(P); CubicSpline(GRID + 0.1 * v, Q)(x)
CubicSpline(GRID, A, axis=1)(x); CubicSpline(GRID, v, bc_type="natural")(x, 1)
CubicSpline(GRID, v, bc_type="clamped")(x, nu=2); CubicSpline(GRID, v).derivative()(x)
CubicSpline(GRID, v, bc_type=((1, s), (2, 0.3)))(x)
CubicSpline(GRID, v, bc_type=((2, s), (1, 0.3)))(x)
CubicSpline(GRID, v).integrate(-0.5, x[2])
CubicSpline(GRID, np.append(v[:3], v[0]), bc_type="periodic")(3 * x); CubicSpline(GRID, B)(x)
CubicSpline(GRID, np.concatenate([Q[:3], Q[:1]]), bc_type="periodic")(3 * x)
CubicSpline(GRID[1:], x)(y); CubicSpline(GRID[:3], x)(y); CubicSpline(GRID[:2], x[:2])(y)
scipy.interpolate.splev([3.2, 4.5], (UNIFORM, v, 3), ext=1)
scipy.interpolate.splev(x, BASIS); SPLINE(x); SPLINE(x, 2); SPLINE(s)
SPLINE.derivative(2)(x); SPLINE.antiderivative()(x); SPLINE.integrate(s, 1.3); PIECES(A)
CubicSpline(GRID, v).antiderivative()(x); CubicSpline(GRID, v).antiderivative(2)(y)
np.nan_to_num(CubicSpline(GRID, v, extrapolate=False)(y)); PchipInterpolator(GRID, v)(x)
PchipInterpolator(GRID + 0.1 * v, Q)(x); PchipInterpolator(GRID, v).derivative()(x); BASIS(x)
BASIS.derivative()(x); AKIMA(x); CubicHermiteSpline(GRID, v, v**2)(x); PPoly(A[:, :3], GRID)(x)
interp1d(GRID, v)(P); interp1d(GRID, A)(x); interp1d(GRID, Q, axis=0)(P); LINE(x); LINE(P)
interp1d(GRID, v, kind="cubic")(x); interp1d(GRID, v, kind="nearest")(x); STEPS(x) * x
interp1d(GRID, v, kind="previous")(x); interp1d(GRID, v, kind="next")(x); CUBIC(P + s)
interp1d(GRID[::-1], v, fill_value="extrapolate")(y); interp1d(GRID, A, fill_value="extrapolate")(y)
interp1d(GRID, v, bounds_error=False, fill_value=(s, 2.0))(3 * y)
interp1d(GRID, v, bounds_error=False, fill_value=0.5)(3 * x)
interp1d(GRID, Q, axis=0, bounds_error=False, fill_value=(x, y))(3 * y)
interp1d(GRID, A, bounds_error=False, fill_value=np.ones(3))(3 * y)
make_interp_spline(GRID, v)(x); make_interp_spline(GRID, Q, k=1)(x)
make_interp_spline(GRID, GRID)(x); make_interp_spline(GRID, Q, 2).derivative()(x)
make_interp_spline(GRID + v / 9, v * v, 2)(P); make_interp_spline(GRID, v, 0)(P)
make_interp_spline(np.cumsum(v), A, axis=1).integrate(1.0, s + 1)
make_interp_spline(GRID, v, 2, KNOTS)(x)
interp1d(np.cumsum(v), A, "quadratic")(x + 2); interp1d(GRID, v, "zero")(P)
interp1d(GRID, Q, 0, axis=0)(x)
interp1d(GRID, v, "slinear")(x); interp1d(GRID, v, 2, fill_value="extrapolate")(3 * x)
Akima1DInterpolator(np.cumsum(v), B)(x + 2); Akima1DInterpolator(GRID[:2], v[:2])(s - 1)
Akima1DInterpolator(GRID, Q, method="makima")(x); Akima1DInterpolator(GRID, A, axis=1)(P)
RegularGridInterpolator((GRID, GRID), np.outer(v, v), "slinear")(P[:, :2])
RegularGridInterpolator((GRID, GRID + v / 9), np.outer(v, v), "cubic", solver=EXACT)(P[:, 1:])
RegularGridInterpolator((GRID,), Q, "slinear", False, None)(y[:, None]); SURFACE(P[:, :2])
RegularGridInterpolator((GRID[:3], GRID), A)(np.array([[s - 0.3, 0.3], [0.1, 0.4]]))
TABLE((0.5 * np.stack([x, x[::-1]]), 0.6 * np.stack([x, x])))
RegularGridInterpolator((GRID[:3], GRID), A)((0.5 * x, 0.6 * x[::-1])); TABLE((0.5 * x, 0.6 * x))
TABLE(np.stack([0.5 * x, 0.3 * x + 0.1 * s], axis=1)); TABLE(0.5 * x[:2])
RegularGridInterpolator((GRID,), v, bounds_error=False, fill_value=None)(y)
RegularGridInterpolator((GRID,), Q, method="nearest")(x)
RegularGridInterpolator((GRID,), v, bounds_error=False, fill_value=0.0)(2 * y)
scipy.interpolate.splev(x, scipy.interpolate.splrep(GRID, v))
scipy.interpolate.splev(3 * x, scipy.interpolate.splrep(GRID, v, k=2), der=1, ext=1)
scipy.interpolate.splev(3 * x, scipy.interpolate.splrep(GRID, v, k=1), ext=3)
scipy.interpolate.splint(s - 1, 1.3, scipy.interpolate.splrep(GRID, v))
# Python's statistics
statistics.mean(v); statistics.fmean(list(v), v); statistics.median(x); statistics.stdev(list(v))
statistics.variance(v, s); statistics.pstdev(v); statistics.pvariance(x)
# signals and images
signal.convolve(x, v); signal.convolve(x, v, mode="same"); signal.convolve(v, y, mode="valid")
signal.convolve(A, B, mode="same"); signal.fftconvolve(A, M); signal.oaconvolve(v, x)
signal.correlate(x, v); signal.correlate(v, x, mode="same"); signal.correlate(x, v, mode="valid")
np.imag(signal.correlate(x + 1j * y, 1j * y)); signal.convolve2d(A, B[:2])
signal.lfilter(x, y, A); signal.lfilter([1.0], [1.0, -0.5], v); signal.lfilter(x, [2.0], A, axis=0)
signal.lfilter(x, y, v, zi=v[:2])[0]; signal.lfilter(x, y, A, axis=0, zi=np.ones((2, 4)) * s)[1]
signal.lfilter([0.3, 0.2], [1.0, -0.5, s, 0.1], v, zi=x)[1]; signal.sosfilt(SOS, A)
signal.sosfilt(SOS, s * v); signal.filtfilt([0.2, 0.3], [1.0, -0.4], np.tile(v, 3))
signal.filtfilt(x[:2], y[:2] + [3.0, 0.0], np.tile(A, 3), padtype="even", padlen=2)
signal.filtfilt([0.2], [1.0, -0.4, 0.1], np.tile(x, 5), padtype="constant"); signal.detrend(A)
signal.detrend(A, axis=0, type="constant"); np.imag(signal.hilbert(v))
np.abs(signal.hilbert(A, axis=0))
ndimage.convolve(A, B); ndimage.convolve(A, M, mode="wrap"); ndimage.correlate(v, x, mode="nearest")
ndimage.correlate(A, M, mode="constant", cval=s); ndimage.convolve(v, B[:, 0], origin=-1)
ndimage.convolve1d(A, x, axis=0, mode="mirror"); ndimage.correlate1d(A, B[:, 0])
ndimage.convolve1d(v, B[:2, 0], origin=0); ndimage.gaussian_filter(A, 1.1)
ndimage.gaussian_filter(A, (0.6, 1.2), order=(1, 2), mode="nearest"); ndimage.gaussian_filter(A, s)
ndimage.gaussian_filter1d(A, 0.8, axis=0, order=1); ndimage.gaussian_filter1d(v, s + 0.2, radius=3)
ndimage.gaussian_filter(A, 0.9, axes=(1,), mode="constant", cval=0.3); ndimage.uniform_filter(A, 3)
ndimage.uniform_filter(A, (2, 3), mode="wrap"); ndimage.uniform_filter1d(v, 4); ndimage.sobel(A)
ndimage.sobel(A, axis=0, mode="constant"); ndimage.prewitt(A, 1); ndimage.laplace(A)
signal.correlate2d(A, M[:2], mode="same", boundary="symm"); signal.correlate2d(B[:2], M, "valid")
signal.convolve2d(A, M[:2], "same", boundary="wrap"); signal.convolve2d(A, B, fillvalue=s)
np.imag(signal.correlate2d(A + 1j * A[::-1], 1j * M)); signal.upfirdn(x, A, 2, 3, axis=0)
signal.medfilt(A, 3); signal.medfilt(np.tile(x, 3), 5); signal.lfilter_zi(x, y)
signal.lfiltic(x, v, y)
signal.lfiltic(v, x, y, y); list(signal.normalize(x, v)); signal.chirp(v, s, 1.0, 2.0, phi=30)
signal.chirp(v, s, 2.0, s, "log"); signal.chirp(x, 0.3, s, 2.0, "quadratic", vertex_zero=False)
signal.sosfilt(SOS, A, zi=s * np.ones((2, 3, 2)))[1]
ndimage.gaussian_laplace(A, 0.9); ndimage.gaussian_gradient_magnitude(A, 0.9, mode="wrap")
ndimage.minimum_filter(A, 3); ndimage.maximum_filter(A, (2, 3), mode="constant", cval=s)
ndimage.median_filter(A, 3, mode="nearest"); ndimage.rank_filter(A, -2, footprint=CROSS)
ndimage.percentile_filter(A, 30, 3, mode="wrap"); ndimage.maximum_filter1d(A, 3, axis=0)
ndimage.grey_dilation(A, footprint=CROSS); ndimage.grey_closing(A, (2, 2))
ndimage.white_tophat(A, 3); ndimage.morphological_gradient(A, 3); ndimage.spline_filter(A, 4)
ndimage.map_coordinates(A, PLACES + s, mode="mirror")
ndimage.map_coordinates(A, PLACES - s, order=0)
ndimage.map_coordinates(A, PLACES + s, order=1, cval=s, mode="constant")
ndimage.map_coordinates(A, PLACES + s, order=2, cval=s, mode="grid-constant")
ndimage.map_coordinates(A, 2 * PLACES + s, order=4, mode="reflect")
ndimage.map_coordinates(A, 2 * PLACES - s, order=5, mode="nearest")
ndimage.map_coordinates(A, PLACES + s, order=3, mode="wrap"); ndimage.shift(A, (s, -1.3))
ndimage.shift(A, s, mode="grid-wrap", order=2); ndimage.zoom(A, 1.7, mode="nearest")
ndimage.zoom(A, (2, 0.7), order=1, mode="grid-constant", grid_mode=True)
ndimage.rotate(A, 40 * s, mode="mirror"); ndimage.rotate(N, 40 * s, (2, 0), reshape=False)
ndimage.affine_transform(A, M[:2, :2] / 3, (s, 0.1), (2, 3))
ndimage.affine_transform(A, [1.1, s], 0.2)
ndimage.geometric_transform(A, lambda at: (at[0] * s, at[1] + 0.3 - s), mode="nearest")
ndimage.sum_labels(A, REGIONS, [0, 1]); ndimage.mean(A, REGIONS); ndimage.variance(A, REGIONS, 2)
ndimage.center_of_mass(A**2, REGIONS, [1])[0]; ndimage.mean(A > 0, REGIONS, [2]) * s
ndimage.center_of_mass(A**2); np.array(ndimage.center_of_mass(A**2, REGIONS, [1, 2]))
# distances
distance.cdist(A, A[:2] * s); distance.cdist(A, A)
distance.cdist(A, Q.T, "sqeuclidean"); distance.cdist(A, Q.T, "cityblock", w=v)
distance.cdist(A, Q.T, "minkowski", p=1.5, w=[0.1, 0.2, 0.5, 0.4]); distance.cdist(A, Q.T, "cosine")
distance.cdist(A, Q.T, "chebyshev"); distance.cdist(A, Q.T, "seuclidean")
distance.cdist(Q, Q[::-1] * s, "mahalanobis"); distance.cdist(A, Q.T, "correlation")
distance.cdist(A, Q.T, "canberra"); distance.cdist(A, Q.T, "braycurtis")
distance.cdist(A, Q.T, distance.euclidean); distance.pdist(A); distance.pdist(A, "seuclidean")
distance.pdist(Q, lambda a, b: np.sum(np.sin(a * b))); distance.squareform(distance.pdist(A))
distance.squareform(distance.squareform(x)); distance.jensenshannon(v, v[::-1] ** 2, 2)
distance.jensenshannon(A**2, A[::-1] ** 2 + 1, axis=1, keepdims=True)
distance.euclidean(x, y, v[:3])
distance.mahalanobis(x, y, gram(M)); distance.correlation(x, y, v[:3])
distance.minkowski(x, y, s + 1)
# what is read as the user's: filters, spectra, systems
list(signal.butter(3, s / 2)); signal.butter(2, [s / 4, s / 2], "band", output="sos")
list(signal.cheby1(2, s + 0.3, s)); list(signal.cheby2(2, 20.0, s))
list(signal.ellip(2, 1.0, 20.0, s))
list(signal.bessel(2, s)); signal.sosfiltfilt(signal.butter(2, s, output="sos"), np.tile(v, 3))
np.abs(signal.freqz(x, v, 4)[1]); np.angle(signal.freqs(x, v, [1.0, 2.0])[1])
signal.group_delay((x, v), 4)[1]
signal.periodogram(v)[1]; signal.welch(np.tile(v, 4) * A.ravel()[:1], nperseg=8)[1]
np.imag(signal.csd(np.ravel(A), np.ravel(Q), nperseg=4)[1]); signal.coherence(A, Q.T, nperseg=2)[1]
signal.spectrogram(np.ravel(A), nperseg=4)[2]; np.abs(signal.stft(np.ravel(A), nperseg=4)[2])
signal.istft(signal.stft(np.ravel(A), nperseg=4)[2] ** 2, nperseg=4)[1]
signal.lombscargle([0.1, 0.5, 0.9, 2.0], v, [1.0, 2.0]); signal.resample(A, 5, axis=1)
signal.resample(v, 3); signal.resample_poly(A, 3, 2, axis=1); signal.decimate(np.tile(v, 8), 2)
signal.savgol_filter(np.ravel(A), 5, 2); signal.savgol_filter(A, 3, 1, deriv=1, mode="nearest")
signal.envelope(np.ravel(A)); np.imag(signal.hilbert2(A)); signal.sawtooth(x + s)
signal.gausspulse(x, 2 * s)
signal.sweep_poly(x, y); np.imag(signal.czt(v, 3)); np.abs(signal.zoom_fft(v, [0.1, 0.4], 3))
signal.wiener(A, 3)
signal.zpk2tf(x, y, s)[0]; list(signal.tf2ss(x, v))
signal.ss2tf(M, A[:, :1], A[:1, :3], [[s]])[1]; signal.dlsim((x, v, 1.0), y)[1]
signal.cont2discrete((M, A[:, :1], A[:1, :3], [[s]]), 0.1)[0]; signal.tf2zpk(x[:2], y[:2])[0]
scipy.interpolate.interpn((GRID[:3], GRID), A, 0.5 * np.stack([x, x[::-1]], axis=1))
# sparse matrices
SPARSE @ v; SPARSE @ B; x @ SPARSE; np.transpose(A)[:, :3] @ SPARSE; SPARSE.T @ x; SPARSE.dot(v)
SPARSE.dot(B); sparse.csc_array(SPARSE) @ v; sparse.coo_matrix(SPARSE) @ v
sparse.csr_matrix(SPARSE) * v; x * sparse.csr_matrix(SPARSE); sparse.bsr_array(SPARSE) @ (s * v)
sparse.dia_matrix(SPARSE) @ B; sparse.csr_matrix(SPARSE).T * x; sparse.lil_array(SPARSE) @ v
np.imag((SPARSE * 1j) @ v); SPARSE @ (SPARSE.T @ x); sparse.eye_array(3) @ A; SPARSE.astype(int) @ v
sparse.linalg.spsolve(SYSTEM, x); sparse.linalg.spsolve(SYSTEM.tocsr(), A)
sparse.linalg.spsolve(SYSTEM.T, x); sparse.linalg.spsolve(SYSTEM, np.sin(x)) @ y
sparse.csr_matrix((v, (AT, [2, 1, 0, 0])), shape=(3, 3)) @ x; sparse.coo_array((v, (AT, AT))) @ x
sparse.csr_array((v, [0, 2, 1, 0], [0, 1, 2, 4])).toarray(); sparse.csr_matrix(M) * x
sparse.csc_matrix((v, [0, 2, 1, 0], [0, 1, 2, 4])).T @ x
(sparse.csr_array(M) @ sparse.csc_array(M)).toarray()
(sparse.csr_array(A) @ sparse.csr_array(B)).toarray()
(SPARSE @ sparse.csr_array(Q) @ sparse.csr_array(M)).toarray()
(SYSTEM + sparse.csr_array(M)).toarray()
(SYSTEM - 2 * sparse.csr_array(M)).sum(axis=0); (sparse.csr_array(M) @ SYSTEM).sum(axis=1)
sparse.csr_array(M).mean(axis=0); sparse.csr_array(M).diagonal(1); sparse.csr_matrix(M).trace()
(s * SYSTEM) @ x; (s * SYSTEM + SYSTEM.T) @ x; -sparse.csr_array(M) / s @ x; x @ sparse.csr_array(A)
sparse.diags([v, x], [0, -1]) @ v; sparse.diags([-1.0, s, 2.0], [-1, 0, 1], shape=(4, 4)) @ v
sparse.diags(v).toarray(); sparse.diags(v, 1).toarray(); sparse.diags([v], [-2]).toarray()
sparse.diags([x], [1]) @ v; sparse.diags([x], [-1], shape=(4, 3)) @ y
sparse.diags([x], [1], shape=(3, 5)).toarray()
sparse.diags_array([v, x], offsets=[0, 1]) @ v
sparse.spdiags(A, [-1, 0, 1], 4, 4) @ v; sparse.dia_array((A, [0, 1, 2]), shape=(3, 4)) @ v
sparse.linalg.spsolve(sparse.csc_matrix(M), x); sparse.linalg.spsolve(s * SYSTEM, A)
sparse.linalg.cg(sparse.csr_array(gram(M)), x)[0]; sparse.linalg.gmres(sparse.csr_array(M), y)[0]
sparse.linalg.cg(gram(M), x, rtol=1e-12)[0]; sparse.linalg.bicgstab(SYSTEM, x, rtol=1e-12)[0]
sparse.linalg.splu(sparse.csc_matrix(M)).solve(x); LU.solve(x); LU.solve(A, "T")
sparse.linalg.splu(sparse.csc_matrix(M)).solve(A, "T"); sparse.linalg.factorized(SYSTEM)(x)
sparse.kron(SYSTEM, sparse.csr_array(M)).toarray(); sparse.vstack([sparse.csr_array(M), SYSTEM]) @ x
sparse.hstack([SYSTEM, sparse.csr_array(A)]).toarray(); sparse.csr_array(M).multiply(C).sum()
sparse.bmat([[sparse.csr_matrix(M), None], [None, SYSTEM]]).toarray()
sparse.bmat([[sparse.csr_matrix(M), None], [None, SYSTEM]]) @ np.append(x, y)
sparse.csr_array(M).power(2).toarray()
sparse.block_diag([sparse.csr_array(A), SYSTEM]).toarray(); sparse.linalg.norm(sparse.csr_array(M))
# statistics of samples
stats.zscore(v); stats.zscore(A, axis=None); stats.zscore(A, 1, ddof=1); stats.zmap(x, v)
stats.gzscore(v); stats.skew(v); stats.skew(A, axis=1, bias=False); stats.skew(A, keepdims=True)
stats.kurtosis(A, 1); stats.kurtosis(A, None, fisher=False); stats.kurtosis(v, bias=False)
stats.moment(v, 3); stats.moment(A, 2, 1); stats.moment(A, axis=None, order=4)
stats.moment(v, 1); stats.moment(v, order=2, center=s); stats.sem(A); stats.variation(v, ddof=1)
stats.gmean(v); stats.gmean(v, weights=v); stats.hmean(v); stats.pmean(v, s); stats.pmean(v, 0)
stats.gstd(v); stats.iqr(A, axis=1); stats.iqr(v, rng=(10, 60), scale="normal")
stats.median_abs_deviation(A); stats.median_abs_deviation(v, scale="normal")
stats.trim_mean(np.ravel(A), 0.2); stats.trim_mean(A, 0.3, axis=1); stats.describe(A).skewness
stats.describe(v).variance; stats.entropy(v); stats.entropy(v, v[::-1] + s, base=2)
stats.entropy(v**2 / np.sum(v**2)); stats.wasserstein_distance(x, v)
stats.wasserstein_distance(x, y, [1.0, 2.0, 0.5], v[:3]); stats.energy_distance(x, v)
list(stats.ttest_1samp(v, s)); stats.ttest_1samp(A, 0.1, axis=1, alternative="less")[1]
stats.ttest_rel(x, y).pvalue; stats.ttest_ind(x, v).statistic; stats.ttest_ind(x, v)[1]
stats.ttest_ind(A, M, equal_var=False, axis=1).statistic; stats.f_oneway(x, y, v)[1]
stats.f_oneway(A, M, axis=1).statistic; list(stats.chisquare(v)); stats.pearsonr(x, y)[0]
stats.chisquare(v, np.sum(v) / 4 * np.ones(4)).pvalue; stats.pearsonr(v, v[::-1] ** 2).pvalue
list(stats.linregress(v, v**2 + A[0])); stats.linregress(np.arange(3.0), x).intercept_stderr
stats.circmean(x); stats.circmean(A, 3, -3, axis=1); stats.circvar(x); stats.circstd(x)
stats.circstd(A, axis=0, normalize=True); stats.boxcox(v, s); stats.boxcox(v, 0)
stats.boxcox_llf(s, v); stats.boxcox_llf(s, A**2, axis=1)
stats.yeojohnson_llf(s, A, axis=1, keepdims=True)
stats.yeojohnson(x, s); stats.yeojohnson_llf(s, x); stats.rankdata(x) * x
stats.spearmanr(x, y)[0] * s
# distributions of vectors
NORMAL.logpdf(x, y, gram(M)); NORMAL.pdf(np.ones(3), x, v[:3]); NORMAL.logpdf(A, cov=s * np.eye(4))
NORMAL.logpdf(x); NORMAL.entropy(x, gram(M)); NORMAL.cdf(s, 0.2, 1.3); NORMAL(x, gram(M)).pdf(y)
NORMAL(x).logpdf([0.1, 0.2, 0.3]); NORMAL(np.zeros(3), s).entropy(); FROZEN.logpdf(A[:, :2])
NORMAL.cdf(x[:2], y[:2], gram(B[:2])); FROZEN.cdf(x[:2]); FROZEN.logcdf(v[:2])
stats.multivariate_t.logpdf(x, y, gram(M), v[0]); stats.multivariate_t(x, gram(M), np.inf).pdf(y)
stats.multivariate_t(df=4, loc=x).logpdf(A[:, :3]); stats.dirichlet.logpdf([0.2, 0.3, 0.5], v[:3])
stats.dirichlet(v[:3]).pdf([0.2, 0.3]); stats.dirichlet.logpdf(v / np.sum(v), [1.5, 2.0, 0.7, 3.0])
stats.dirichlet.mean(v); stats.dirichlet(v).var(); stats.dirichlet.entropy(v)
stats.multinomial.logpmf([1, 0, 2], 3, v[:3] / np.sum(v[:3]))
stats.multinomial(3, v[:3] / np.sum(v[:3])).pmf([[1, 0, 2], [1, 1, 0]])
stats.wishart.logpdf(gram(M), 5, gram(C)); stats.wishart(v[0] + 3, gram(M)).pdf(gram(C))
stats.invwishart.logpdf(gram(M), 5, gram(C)); stats.invwishart(v[0] + 3, gram(M)).logpdf(gram(C))
stats.matrix_normal.logpdf(A, np.ones((3, 4)), gram(M), 2 * np.eye(4))
s * stats.dirichlet.logpdf([0.2, 0.3, 0.5], [1.5, 2.0, 0.7]); s * FROZEN.logpdf([0.1, 0.3])
s * NORMAL([0.1, 0.2], [[1.0, 0.3], [0.3, 2.0]]).pdf([0.1, 0.3]); stats.uniform.logpdf(v, -3, 7)
stats.gaussian_kde(v)(x); stats.gaussian_kde(A[:2], "silverman").logpdf(B[:2])
stats.gaussian_kde(v, s, weights=v).pdf(x); KDE(x); KDE.logpdf(x); KDE.pdf(s)
# other orders, axes, origins and ends
ndimage.gaussian_filter1d(v, 0.9, order=2); ndimage.gaussian_filter1d(v, s, order=3, radius=2)
ndimage.gaussian_filter1d(A, 0.8, axis=0, order=4, mode="wrap"); ndimage.sobel(A, 1, mode="wrap")
ndimage.gaussian_filter(A, 0.7, order=(2, 0), radius=2)
ndimage.prewitt(A, axis=-1, mode="nearest"); ndimage.correlate1d(A, B[:, 0], axis=0, origin=1)
ndimage.convolve1d(v, B[:3, 0], origin=1); ndimage.convolve1d(A, x, axis=1, origin=-1)
ndimage.uniform_filter1d(A, 3, 0, origin=1, cval=s); ndimage.correlate(A, B[:2], origin=(-1, 0))
ndimage.convolve(A, B, origin=(1, -1), mode="mirror")
ndimage.correlate1d(A, x, mode="constant", cval=s); ndimage.gaussian_laplace(A, (0.8, 1.1))
ROWS(P); ROWS(s); ROWS(x[:2]); FIELD(np.stack([0.5 * x, 0.3 * x + 0.1 * s], axis=1))
FIELD(0.5 * x[:2])
RegularGridInterpolator((GRID[:3], GRID), np.multiply.outer(A, v))((0.5 * x, 0.6 * x))
RegularGridInterpolator((GRID[:3], GRID), np.multiply.outer(A, x), "nearest")((0.5 * x, 0.6 * x))
RegularGridInterpolator((GRID[:3], GRID), np.multiply.outer(A, x), "linear", False, s)((y, 0.6 * x))
CubicSpline(GRID, np.multiply.outer(x[:2], v), axis=1)(P); CubicSpline(GRID, A, axis=-1)(x, 3)
linalg.solve_triangular(N, A[:, :2]); linalg.solve_triangular(M, A, trans=2, lower=True)
linalg.polar(gram(M))[1]; linalg.polar(A[:, :2], side="left")[0]; linalg.svd(A[:1])[1]
linalg.cho_solve(linalg.cho_factor(M @ M.T * s + np.eye(3)), A); linalg.inv(N); linalg.det(N)
linalg.expm(M[:1, :1]); linalg.expm(M[:2, :2] * s); linalg.sqrtm(gram(M)[:1, :1])
linalg.det(M[:2, :2]); linalg.solve(M[:1, :1], x[:1]); linalg.toeplitz(v[:1], v)
linalg.toeplitz(A[0], A[1]) @ v; linalg.khatri_rao(M, A[:, :3]); linalg.hankel(v, A[0])
linalg.companion(v[:2]); linalg.fiedler(x)
linalg.solve_banded((2, 0), A[:3] + 4 * np.eye(3)[:, [0]], v); linalg.circulant(x[:1])
linalg.solve_banded((1, 1), A[:3] + 4 * np.eye(3)[:, [1]], B); linalg.subspace_angles(B, Q[:, :2])
signal.convolve(A, B[:2], mode="valid"); signal.correlate(A, B[:2])
signal.correlate(v, y, mode="full"); signal.fftconvolve(A, M, "same")
signal.convolve2d(A, M[:2], "same", boundary="symm"); signal.convolve2d(A, B[:2], "valid")
signal.correlate2d(A, B, fillvalue=s); signal.correlate2d(A, M[:2], "same", boundary="wrap")
signal.lfilter(x, y, A, axis=0); signal.lfilter(x[:1], y, v); signal.lfilter(x, y[:1], A)
signal.upfirdn(x, v, 3, 2); signal.upfirdn(v, x); signal.hilbert(v).real
np.imag(signal.hilbert(x)); signal.medfilt(v, 3); distance.cdist(A, Q.T, "minkowski", p=3)
distance.cdist(A, Q.T, "euclidean", w=v); distance.cdist(A, Q.T, "sqeuclidean", w=v)
distance.pdist(A, "cityblock"); distance.pdist(A, "cosine"); distance.pdist(A, "minkowski", p=1.5)
distance.pdist(A, "canberra"); distance.pdist(A, "correlation"); distance.cosine(x, y)
distance.cosine(x, y, v[:3]); distance.chebyshev(x, y); distance.canberra(x, y)
distance.braycurtis(x, y); distance.cityblock(x, y, v[:3]); distance.sqeuclidean(x, y)
distance.minkowski(x, y, 3, v[:3]); distance.seuclidean(x, y, v[:3]); distance.euclidean(x, y)
sparse.linalg.spsolve(SYSTEM, A[:, :2] * s); SPARSE.T @ M; M @ SPARSE; SPARSE @ (B * s)
ndimage.white_tophat(A, footprint=CROSS); ndimage.black_tophat(A, (2, 3), origin=(0, 1))
ndimage.morphological_laplace(A, 3, mode="nearest"); ndimage.grey_opening(A, (1, 3), axes=(0, 1))
ndimage.morphological_gradient(A, footprint=CROSS, mode="constant", cval=s)
ndimage.grey_closing(A, footprint=CROSS, mode="wrap"); ndimage.grey_erosion(A, footprint=CROSS)
signal.convolve(s, s * s); signal.correlate(x[0], s); signal.fftconvolve(x[:1], v)
ndimage.spline_filter1d(A, 1, axis=0); ndimage.map_coordinates(A[:1], PLACES, mode="mirror")
ndimage.map_coordinates(A[:1, :1], PLACES, order=0, mode="mirror")
ndimage.spline_filter1d(A, 2, mode="reflect"); signal.filtfilt(x, v, np.tile(v, 3), padlen=0)
stats.gaussian_kde(v, lambda kde: kde.neff**-0.3)(x); stats.norm(0.2, 1.3).logpdf(x)
stats.uniform.ppf([0.0, 0.3, 1.0], s, v[0]); stats.beta.isf([0.0, 0.3, 1.0], 1.5, v[0], scale=s)
stats.norm.logpdf(x=x, loc=s); ndimage.correlate1d(A, x, mode="constant", cval=1.0)
ndimage.rank_filter(A, 1, 3, mode="constant", cval=s, origin=(1, 0))
ndimage.percentile_filter(A, 40, 3, None, None, "constant", s, 1)
stats.yeojohnson(v, s); stats.yeojohnson(-v, s); stats.yeojohnson_llf(s, v); stats.boxcox(v, -s)
"""
ENDS = ("reflect", "grid-mirror", "constant", "grid-constant", "nearest", "mirror", "grid-wrap",
        "wrap")  # fmt: skip
FORMS += "\n".join(
    f"{call}, order={order}, cval=s, mode={mode!r})"
    for call in ("ndimage.map_coordinates(A, 2 * PLACES + s", "ndimage.shift(A, (-2 * s, 1.3)")
    for mode in ENDS
    for order in range(4)
)
LINES = [f.strip() for text in FORMS.splitlines() if text[:1] != "#" for f in text.split(";")]
LINES = [line for line in LINES if line]
