"""Functions without a rule, mostly SciPy's, with advice on what works instead.

A call with a traced value raises an error with this advice.  A module's advice is for its functions
that have none of their own.
"""

from typing import Any

from lineara.errors import NoRuleError
from lineara.facts.hints import Shaped
from lineara.facts.primitive import implements, refuses, refuses_rest
from lineara.facts.registry import WRITE
from lineara.facts.types import type_of

RANKS = "it is made of ranks, which do not move: give it lineara.stop_gradient(x)"
PICK = "choose with plain values, lineara.stop_gradient(x), and compute with what was chosen"
TABLE = {
    "scipy.linalg": {
        "schur hessenberg qz ordqz rsf2csf cdf2rdf": (
            "a matrix has many such forms; eigvals, eigh, expm and solve_sylvester have rules"
        ),
        "ldl": "scipy.linalg.cholesky and lu have rules",
        "rq qr_multiply qr_insert qr_delete qr_update": "numpy.linalg.qr has a rule",
        "cossin": "numpy.linalg.svd of the blocks has a rule",
        "cholesky_banded": "scipy.linalg.solveh_banded and cholesky have rules",
        "funm": "expm, logm, sqrtm, cosm, sinm and their kin have rules",
        "expm_cond matrix_balance": "it says how digits are lost: give it plain values",
        "clarkson_woodruff_transform": "multiply by a random matrix that was drawn before",
    },
    "scipy.interpolate": {
        "splprep make_lsq_spline make_smoothing_spline make_splrep make_splprep": (
            "scipy.interpolate.make_interp_spline and CubicSpline have rules"
        ),
        "spalde splder splantider sproot": "scipy.interpolate.splev with der= has a rule",
        "griddata": "scipy.interpolate.RegularGridInterpolator has a rule",
        "bisplrep bisplev": "scipy.interpolate.RegularGridInterpolator has a rule",
        "pchip_interpolate": "scipy.interpolate.PchipInterpolator has a rule",
        "barycentric_interpolate krogh_interpolate lagrange": (
            "numpy.polynomial.Polynomial.fit of the degree has a rule"
        ),
    },
    "scipy.optimize": {
        "milp linear_sum_assignment quadratic_assignment": PICK,
        "direct brute": "scipy.optimize.minimize from what it finds has a rule",
        "fmin_l_bfgs_b fmin_tnc fmin_slsqp fmin_cobyla": (
            "scipy.optimize.minimize(..., method=...) has a rule"
        ),
        "fminbound brent golden bracket": "scipy.optimize.minimize_scalar has a rule",
        "approx_fprime check_grad": "lineara.grad has no steps to choose",
        "line_search": "scipy.optimize.minimize has a rule",
    },
    "scipy.integrate": {
        "solve_bvp": "scipy.optimize.root of the equations at the nodes has a rule",
        "qmc_quad cubature nsum tanhsinh lebedev_rule": "scipy.integrate.quad and nquad have rules",
        "newton_cotes": "scipy.integrate.simpson and fixed_quad have rules",
    },
    "scipy.stats": {
        "quantile scoreatpercentile": "numpy.quantile has a rule",
        "kstest ks_1samp ks_2samp mannwhitneyu wilcoxon kruskal ranksums friedmanchisquare somersd "
        "weightedtau chatterjeexi spearmanrho theilslopes siegelslopes": RANKS,
        "bootstrap permutation_test monte_carlo_test": (
            "draw the samples with plain values, and compute with np.take"
        ),
        "binned_statistic binned_statistic_2d binned_statistic_dd": (
            "numpy.histogram with weights= has a rule"
        ),
        "fit": "scipy.optimize.minimize of -np.sum(dist.logpdf(data, ...)) has a rule",
        "expectile": "scipy.optimize.root_scalar of its equation has a rule",
        "sigmaclip trim1 trimboth": PICK,
        "tmin tmax": "np.mean(x[(x > low) & (x < high)]) has a rule",
    },
    "scipy.signal": {
        "find_peaks find_peaks_cwt peak_prominences peak_widths": PICK,
        "argrelmax argrelmin argrelextrema": PICK,
        "iirdesign": "scipy.signal.iirfilter of a given order has a rule",
    },
    "scipy.ndimage": {
        "label find_objects watershed_ift": PICK,
        "binary_closing binary_dilation binary_erosion binary_fill_holes binary_hit_or_miss "
        "binary_opening binary_propagation distance_transform_bf distance_transform_cdt "
        "distance_transform_edt": "its input is true or false: give it plain values",
        "generic_filter generic_filter1d vectorized_filter": (
            "numpy.lib.stride_tricks.sliding_window_view has a rule"
        ),
    },
    "scipy.sparse.linalg": {
        "lobpcg svds": "of a small matrix numpy.linalg.eigh and svd have rules",
        "onenormest": "it estimates: give it plain values",
    },
    "scipy.special": {
        "sph_harm_y sph_harm_y_all": (
            "scipy.special.eval_legendre(n, cos(theta)) has one, for harmonics with m = 0"
        ),
        "ellip_harm ellip_harm_2 ellip_normal": "scipy.integrate.solve_ivp has a rule",
    },
}


for _module, _advice in TABLE.items():
    for _names, _works in _advice.items():
        refuses(*(f"{_module}.{name}" for name in _names.split()), advice=_works)
refuses_rest(
    "scipy.cluster.vq",
    "scipy.fft",
    "scipy.integrate",
    "scipy.interpolate",
    "scipy.linalg",
    "scipy.ndimage",
    "scipy.optimize",
    "scipy.signal",
    "scipy.signal.windows",
    "scipy.sparse",
    "scipy.sparse.linalg",
    "scipy.spatial",
    "scipy.spatial.distance",
    "scipy.special",
    "scipy.stats",
    advice=WRITE,
)


@implements("mpmath.libmp.libmpf.from_float")
def from_float(x: Shaped, *_: Any) -> Any:
    """Refuse a traced number: mpmath converts a float to integers, which loses the derivative."""
    raise NoRuleError(
        f"mpmath: a number of many digits was about to be made of a traced {type_of(x)}; it "
        "consists of integers, which have no derivative: mpmath.fp computes with floats, and "
        "lineara.external gives the call a derivative"
    )
