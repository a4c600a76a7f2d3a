"""A captured function beside Python itself."""

import numpy as np

import lineara
from lineara.staging.capture import trace as capture


def agrees(f, *cases):
    """The program for the first arguments gives what Python gives for all of them."""
    program = capture(f, *cases[0])
    for args in cases:
        copies = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
        assert np.array_equal(program(*args), f(*copies))
    return program


def gradients_agree(f, *cases):
    """The gradient of the program is that of eager differentiation, with one capture."""
    program = lineara.jit(lineara.grad(f))
    for args in cases:
        expected = lineara.grad(f)(*args)
        np.testing.assert_allclose(program(*args), expected, rtol=1e-12, atol=1e-14)
    assert program.captures == 1
