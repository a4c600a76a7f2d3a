"""docs/functions.md, made from the registry: run this file to write it again.

A module is a row of MODULES.  Where it is complete, a function without a status fails the test.
"""

import statistics
import sys
import types
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.fft
import scipy.integrate
import scipy.interpolate
import scipy.linalg
import scipy.ndimage
import scipy.optimize
import scipy.signal
import scipy.sparse.linalg
import scipy.spatial.distance
import scipy.special
import scipy.stats

import lineara
from lineara.facts.primitive import Constant, registry
from lineara.facts.registry import WRITE, Foreign
from lineara.ops.scipy.distribution_formulas import CONTINUOUS, DISCRETE
from lineara.ops.scipy.multivariate_distributions import VECTORS
from lineara.python.stand_ins import replacements

registry.arrive()  # the rules of all that is imported above
PAGE = Path(__file__).parent.parent / "docs" / "functions.md"


class Listed(NamedTuple):
    """A module of the page; `plain` are the functions that take no traced values."""

    name: str
    module: Any
    plain: tuple[str, ...] = ()
    complete: bool = True  # else only what has a status is listed


NUMPY = """
base_repr binary_repr broadcast_shapes busday_count busday_offset datetime_as_string datetime_data
diag_indices format_float_positional format_float_scientific frombuffer fromfile
fromregex fromstring genfromtxt get_include get_printoptions getbufsize geterr geterrcall indices
info is_busday isdtype isfortran issubdtype iterable load loadtxt mask_indices mintypecode
packbits printoptions promote_types ravel_multi_index row_stack set_printoptions setbufsize
seterr seterrcall show_config show_runtime test tril_indices triu_indices typename unpackbits
unravel_index bartlett blackman hamming hanning
"""
SPECIAL = """
ai_zeros bei_zeros beip_zeros ber_zeros bernoulli berp_zeros bi_zeros erf_zeros euler fresnel_zeros
fresnelc_zeros fresnels_zeros geterr seterr jn_zeros jnjnp_zeros jnp_zeros jnyn_zeros kei_zeros
keip_zeros kelvin_zeros ker_zeros kerp_zeros y0_zeros y1_zeros y1p_zeros yn_zeros ynp_zeros
mathieu_even_coef mathieu_odd_coef obl_cv_seq pro_cv_seq stirling2 factorial2 factorialk
roots_chebyc roots_chebys roots_chebyt roots_chebyu roots_gegenbauer roots_genlaguerre roots_hermite
roots_hermitenorm roots_jacobi roots_laguerre roots_legendre roots_sh_chebyt roots_sh_chebyu
roots_sh_jacobi roots_sh_legendre c_roots cg_roots h_roots he_roots j_roots js_roots l_roots
la_roots p_roots ps_roots s_roots t_roots ts_roots u_roots us_roots chebyc chebys chebyt chebyu
gegenbauer genlaguerre hermite hermitenorm jacobi laguerre legendre sh_chebyt sh_chebyu
sh_jacobi sh_legendre
"""
LINALG = """
dft find_best_blas_type get_blas_funcs get_lapack_funcs hadamard helmert hilbert invhilbert
invpascal pascal diagsvd
"""
STATS = """
random_correlation random_table make_distribution order_statistic multiscale_graphcorr
ortho_group special_ortho_group unitary_group uniform_direction barnard_exact boschloo_exact
fisher_exact poisson_means_test binomtest
"""
SIGNAL = """
get_window kaiser_atten kaiser_beta kaiserord max_len_seq unit_impulse correlation_lags
choose_conv_method check_COLA check_NOLA closest_STFT_dual_window buttord cheb1ord cheb2ord ellipord
besselap buttap ellipap firls firwin_2d remez gammatone iircomb
findfreqs czt_points
"""
SPARSE = """
eye eye_array identity rand random random_array issparse isspmatrix isspmatrix_bsr isspmatrix_coo
isspmatrix_csc isspmatrix_csr isspmatrix_dia isspmatrix_dok isspmatrix_lil load_npz save_npz
get_index_dtype safely_cast_index_arrays
"""
FFT = """
fftfreq rfftfreq next_fast_len prev_fast_len get_workers set_workers register_backend set_backend
set_global_backend skip_backend fhtoffset
"""
CHECKS = """
is_valid_dm is_valid_y num_obs_dm num_obs_y jaccard rogerstanimoto russellrao sokalsneath yule dice
"""
MODULES = [
    Listed("numpy", np, tuple(NUMPY.split())),
    Listed("numpy.linalg", np.linalg, ("test",)),
    Listed("numpy.fft", np.fft, ("fftfreq", "rfftfreq", "test")),
    Listed("numpy.emath", np.emath),
    Listed("numpy.lib.stride_tricks", np.lib.stride_tricks, complete=False),
    Listed("numpy.polynomial.polynomial", np.polynomial.polynomial, complete=False),
    Listed("numpy.polynomial.chebyshev", np.polynomial.chebyshev, complete=False),
    Listed("numpy.polynomial.legendre", np.polynomial.legendre, complete=False),
    Listed("numpy.polynomial.hermite", np.polynomial.hermite, complete=False),
    Listed("numpy.polynomial.hermite_e", np.polynomial.hermite_e, complete=False),
    Listed("numpy.polynomial.laguerre", np.polynomial.laguerre, complete=False),
    Listed("statistics", statistics, complete=False),
    Listed("scipy.special", scipy.special, tuple(SPECIAL.split())),
    Listed("scipy.linalg", scipy.linalg, tuple(LINALG.split())),
    Listed("scipy.stats", scipy.stats, tuple(STATS.split())),
    Listed("scipy.sparse", scipy.sparse, tuple(SPARSE.split())),
    Listed("scipy.sparse.linalg", scipy.sparse.linalg, ("use_solver",)),
    Listed("scipy.interpolate", scipy.interpolate),
    Listed("scipy.ndimage", scipy.ndimage, ("generate_binary_structure", "iterate_structure")),
    Listed("scipy.signal", scipy.signal, tuple(SIGNAL.split())),
    Listed("scipy.optimize", scipy.optimize, ("show_options", "linprog_verbose_callback")),
    Listed("scipy.integrate", scipy.integrate),
    Listed("scipy.fft", scipy.fft, tuple(FFT.split())),
    Listed("scipy.spatial.distance", scipy.spatial.distance, tuple(CHECKS.split())),
]
CLASSES = ("scipy.interpolate", "scipy.sparse", "scipy.stats")  # of which classes are listed

HEAD = """# Functions

What becomes of a function when a traced value goes in. This page is made from the registry by
`tests/functions_page.py`.

- **derivative**: the result keeps its derivative, in every mode and to every order, also in a
  [program](staging.md), unless it says *not in programs*.
- **constant**: the result does not move, or not with the values: a comparison, a rounding, a
  position, a shape, a text.
- **plain**: takes integers, shapes, files or options, where nothing is traced.
- **refused**: a `NoRuleError` at your line, which says what works; where nothing stands here, it is
  to write the function with others that have rules, or to declare its derivative.

Ufuncs take `out=`, `where=`, `dtype=` and `casting=`, and have `reduce`, `accumulate`, `reduceat`,
`outer` and `at`. Whatever is not in a list is refused as well: nothing loses a derivative in
silence. Results whose shape depends on values (`unique`, `nonzero`, `x[x > 0]`) are followed by
`grad` and its kin, and refused where a program is written, since a program has fixed shapes. A
function of SciPy's whose own Python code happens to follow traced values works, also where it is
listed as refused.
"""
PROGRAMS = "derivative, not in programs"
ON_VALUES = ["eig", "eigvals", "orth", "null_space", "subspace_angles"]  # shapes ask for values
ON_VALUES += ["cg", "cgs", "bicg", "bicgstab", "gmres", "lgmres", "minres", "qmr", "tfqmr"]
ON_VALUES += [
    "gcrotmk",
    "butter",
    "cheby1",
    "cheby2",
    "ellip",
    "bessel",
    "iirfilter",
    "group_delay",
]
ON_VALUES += ["sawtooth", "gausspulse", "normalize", "ss2tf", "ss2zpk", "tf2ss", "tf2zpk", "tf2sos"]
ON_VALUES += ["zpk2sos", "zpk2ss", "dlsim", "dstep", "dimpulse", "dfreqresp", "dbode", "sosfilt_zi"]
ON_VALUES += ["bilinear_zpk", "lp2bp_zpk", "lp2bs_zpk", "lp2hp_zpk", "lp2lp_zpk", "cont2discrete"]
OF_SHAPES = ("einsum_path",)  # what only the shapes decide
METHODS = ["logpdf", "pdf", "logpmf", "pmf", "logcdf", "cdf", "logsf", "sf", "ppf", "isf", "mean"]
METHODS += ["var", "std", "entropy"]


def public(listed: Listed) -> dict[str, Any]:
    """The functions of a module by name."""
    names = getattr(listed.module, "__all__", None) or dir(listed.module)
    if listed.name.startswith("numpy"):
        names = dir(listed.module)
    values = {n: getattr(listed.module, n) for n in sorted(names) if not n.startswith("_")}
    return {
        n: v
        for n, v in values.items()
        if callable(v)
        and not isinstance(v, types.ModuleType)
        and not (_is_type(v) and not _is_listed(listed, v))
    }


def _is_type(value: Any) -> bool:
    """A class that is no function in the user's eyes, as ndarray is."""
    return isinstance(value, type) and value not in (np.vectorize, np.ndenumerate, np.nditer)


def _is_listed(listed: Listed, value: Any) -> bool:
    """A class whose objects take values: an interpolator, a sparse matrix, a density."""
    error = issubclass(value, Exception) or "Method" in value.__name__
    return listed.name in CLASSES and not error


def distribution(name: str, dist: Any) -> str:
    """The methods of a distribution that have a rule."""
    law = (DISCRETE if hasattr(dist, "pmf") else CONTINUOUS).get(name)
    if name in VECTORS:
        known = list(VECTORS[name][0])
    elif law is None:
        return "refused: write -log of its density with functions that have rules"
    else:
        density = ("logpmf", "pmf") if hasattr(dist, "pmf") else ("logpdf", "pdf")
        asked = {"std": "var", "logcdf": "cdf", "logsf": "sf"}
        known = [
            m
            for m in METHODS
            if m in density
            or getattr(law, m, None) is not None
            or (m in asked and getattr(law, asked[m]) is not None)
        ]
    return "derivative: " + ", ".join(f"`{m}`" for m in known)


def status(listed: Listed, name: str, function: Any, stood: set[int]) -> str:
    """What becomes of a function; the empty string where nothing is known."""
    if name in listed.plain:
        return "plain"
    if type(function).__name__.endswith("_gen"):
        return distribution(name, function)
    foreign = registry.foreign.get(function) or Foreign(function)
    if name in OF_SHAPES or isinstance(foreign.ours, Constant) or foreign.reads:
        return "constant"
    if foreign.ours is not None or foreign.of_object is not None:
        module = getattr(foreign.ours, "__module__", "")
        solver = module.startswith("lineara.solvers") and not module.endswith("samples")
        beside = solver or name in ON_VALUES
        return PROGRAMS if beside and listed.name.startswith("scipy") else "derivative"
    if foreign.kind == "followed":
        return PROGRAMS if name in ON_VALUES else "derivative"
    if foreign.advice:
        return _refused(foreign.advice)
    if _is_type(function):
        return _refused(OF_CLASSES.get(name, WRITE))
    return "derivative" if id(function) in stood else ""


def _refused(advice: str) -> str:
    return "refused" if advice == WRITE else f"refused: {advice}"


RBF = "write the sum of radial functions, with numpy.linalg.solve for its weights"
OF_CLASSES = {
    "RBFInterpolator": RBF,
    "Rbf": RBF,
    "UnivariateSpline": "scipy.interpolate.make_interp_spline and CubicSpline have rules",
    "InterpolatedUnivariateSpline": "scipy.interpolate.make_interp_spline has a rule",
    "RectBivariateSpline": "scipy.interpolate.RegularGridInterpolator has a rule",
}


def page() -> str:
    """The text of the page."""
    stood = set(replacements())
    parts = [HEAD]
    for listed in MODULES:
        rows = [(n, status(listed, n, f, stood)) for n, f in public(listed).items()]
        lines = [f"| `{n}` | {s} |" for n, s in rows if s]
        parts.append(f"\n## {listed.name}\n\n| function | |\n|---|---|\n" + "\n".join(lines) + "\n")
    return "".join(parts)


def unknown() -> list[str]:
    """The functions of complete modules that have no status."""
    stood = set(replacements())
    return [
        f"{listed.name}.{n}"
        for listed in MODULES
        if listed.complete
        for n, f in public(listed).items()
        if not status(listed, n, f, stood)
    ]


if __name__ == "__main__":
    assert lineara
    PAGE.write_text(page(), encoding="utf-8")
    sys.exit(bool(unknown()) and f"without a status: {', '.join(unknown())}")
