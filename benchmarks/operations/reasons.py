"""Why a gradient costs more than four values: the first of these that an expression fits."""

import re

REASONS = {
    r"sort|unique|partition": "NumPy sorts numbers with vector instructions, their positions not",
    r"sinc": "the derivative is a spherical Bessel function, exact at 0: a sine and a cosine",
    r"digamma|ellip|airy|kv|iv|beta|hyp1f1|j0|j1|jn|i0|i1|gammainc": (
        "SciPy's function in the derivative takes several times as long as the one in the value"
    ),
    r"maximum|minimum|fmax|fmin|clip|max\(|min\(|ptp": (
        "NumPy compares and chooses in one vector instruction; ties, NaN and the lanes that are "
        "not chosen take a pass over memory each"
    ),
    r"prod|multiply\.accumulate|multiply\.reduce": (
        "the product of the other elements, exact where elements are zero, takes log2 n products"
    ),
    r"poly\(": "a loop in Python over the roots, of short convolutions",
    r"ROWS|SPOTS|ORDER|histogram|reduceat|MASK": "elements are added where they were read from",
    r"linalg(?!.norm.*axis)|cho_|expm\(|toeplitz": (
        "the derivative solves, or multiplies matrices, with matrices as wide as the factor, where "
        "the value has one call of LAPACK for all"
    ),
    r"SPARSE": "the wide, mostly empty gradient is filled with zeros, added and handed out",
    r"convolve|lfilter|gaussian|einsum|@|dot|outer|kron|cross|cov|corrcoef|fft": (
        "a product with respect to each factor, of which the value has one"
    ),
    r"arctan2|hypot|angle": "a look for squares that overflow, and a product for each argument",
}
MEMORY = (
    "the value is one or two passes over memory; the gradient is a pass for each use of each "
    "argument, a copy of what is handed out, and a look for NaN"
)


def why(text: str, value: float) -> str:
    """Why the gradient of an expression costs more than it should; `value` in seconds."""
    found = next((reason for form, reason in REASONS.items() if re.search(form, text)), None)
    return found or (MEMORY if value < 1e-3 else "not known")
