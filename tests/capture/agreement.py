"""A captured function beside Python itself."""

import numpy as np

from lineara.staging.capture import trace as capture


def agrees(f, *cases):
    """The program for the first arguments gives what Python gives for all of them."""
    program = capture(f, *cases[0])
    for args in cases:
        copies = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
        assert np.array_equal(program(*args), f(*copies))
    return program
