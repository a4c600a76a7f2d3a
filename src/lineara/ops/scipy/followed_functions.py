"""SciPy's Python functions that are differentiated through their source, like the user's own.

They call NumPy and other functions with rules, and the overlay copies their source as it copies the
user's.  Compiled functions that they call have no source, and are refused by name.

Functions with a shortcut for special values are not listed here: source that tests `a[0] != 1` or
`not np.any(u)` has a different derivative at that value.  They are written anew elsewhere.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from lineara.errors import NoRuleError
from lineara.facts.hints import Value
from lineara.facts.primitive import follows
from lineara.facts.registry import WRITE
from lineara.ops.shape import any_box, as_array

NAMES = {
    "scipy.signal": """
abcd_normalize bessel bilinear_zpk bode butter cheb1ap cheb2ap cheby1 cheby2 coherence
cont2discrete csd czt dbode decimate deconvolve dfreqresp dimpulse dlsim dstep ellip envelope firwin
firwin2 freqresp freqs freqs_zpk freqz freqz_sos freqz_zpk gauss_spline gausspulse group_delay
hilbert2 iirfilter impulse istft lombscargle lp2bp lp2bp_zpk lp2bs lp2bs_zpk lp2hp lp2hp_zpk lp2lp
lp2lp_zpk periodogram resample resample_poly savgol_filter sawtooth sos2tf sos2zpk
sosfilt_zi sosfiltfilt sosfreqz spectrogram square ss2tf ss2zpk step stft sweep_poly tf2sos tf2ss
tf2zpk vectorstrength welch wiener zoom_fft zpk2sos zpk2ss zpk2tf
""",
    "scipy.signal.windows": "exponential",
    "scipy.interpolate": "lagrange",
    "scipy.optimize": "rosen rosen_der rosen_hess rosen_hess_prod",
    "scipy.stats": "cumfreq relfreq",
}
for _module, _names in NAMES.items():
    follows(_module, _names, WRITE)


# --- functions with a shortcut ------------------------------------------------------------------


def _is_traced(value: Value) -> bool:
    return any_box([value])


def _lsim(run: Callable[..., Any], system, U, T, X0=None, interp=True):  # SciPy's names
    """scipy.signal.lsim, whose source skips an input of zeros: run on inputs that are not zero."""
    if _is_traced(T):
        raise NoRuleError(
            "scipy.signal.lsim: of traced times it has no rule; give plain T=, and scale the "
            "system: the matrices A and B times c run c times as fast"
        )
    if not _is_traced(U) or np.any(as_array(U)):
        return run(system, U, T, X0, interp)
    response = run(system, as_array(U) + 1.0, T, X0, interp)  # the response is affine in the input
    less = run(system, np.ones(np.shape(U)), T, None, interp)
    return response[0], *(a - b for a, b in zip(response[1:], less[1:], strict=True))


follows("scipy.signal", "lsim", WRITE, around=_lsim)
