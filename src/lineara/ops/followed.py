"""SciPy's functions that are read as if the user had written them.

Where a function of SciPy's is Python that calls NumPy, and other functions with rules, nobody needs
to write it once more: the overlay copies its source as it copies the user's.  What it calls that is
compiled has no source, and is refused with the function's name.

Here is only what has no shortcut for a value that may be traced.  Source that tests `a[0] != 1` or
`not np.any(u)` has another derivative at that value than beside it, and is written anew elsewhere.
"""

from lineara.ops.without_rule import WRITE
from lineara.primitive import follows

NAMES = {
    "scipy.signal": """
abcd_normalize bessel bilinear_zpk butter cheb1ap cheb2ap cheby1 cheby2 coherence cont2discrete csd
czt dbode decimate dfreqresp dimpulse dlsim dstep ellip envelope freqs freqs_zpk freqz freqz_sos
freqz_zpk gausspulse group_delay hilbert2 iirfilter istft lombscargle lp2bp_zpk lp2bs_zpk lp2hp_zpk
lp2lp_zpk periodogram resample resample_poly savgol_filter sawtooth sos2tf sos2zpk sosfilt_zi
sosfiltfilt sosfreqz spectrogram ss2tf ss2zpk stft sweep_poly tf2sos tf2ss tf2zpk welch wiener
zoom_fft zpk2sos zpk2ss zpk2tf
""",
    "scipy.interpolate": "lagrange",
    "scipy.stats": "cumfreq relfreq",
}
for _module, _names in NAMES.items():
    follows(_module, _names, WRITE)
