"""A gradient that processes of their own calculate: they import this module and no tests."""

import numpy as np

from lineara.cotangent import Rows, to_wire


def chunk_gradient(chunk):
    """The gradient of sum(w[i, :] * c) over one chunk of (i, c), as it goes over the wire."""
    rows = [i for i, _ in chunk]
    return to_wire(Rows(rows, np.array([[c, 2 * c] for _, c in chunk]), (1000, 2)).coalesce())
