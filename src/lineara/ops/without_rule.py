"""SciPy's functions without a rule: what works in the place of each.

Whoever calls one with a traced value gets an error that names it.  The advice of a module is for
what has none of its own.
"""

from lineara.primitive import refuses_rest

WRITE = (
    "write it with functions that have one, "
    "or declare it with lineara.custom_jvp or lineara.custom_vjp"
)
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
