"""A captured function beside Python itself."""

import cmath
import math
from types import SimpleNamespace

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


def outcome(f, *args):
    """What a call gives, or the class and the arguments of what it raises."""
    try:
        return f(*[a.copy() if isinstance(a, np.ndarray) else a for a in args])
    except Exception as error:
        return type(error), error.args


def outcomes_agree(f, *cases, captures=1):
    """One program has Python's value or exception for all of these, and its gradient.

    The gradient is the eager one, and that of complex steps.
    """
    program, gradient = lineara.jit(f), lineara.jit(lineara.grad(f))
    for args in cases:
        expected = outcome(f, *args)
        assert outcome(program, *args) == expected, args
        if not isinstance(expected, tuple):
            eager = lineara.grad(f)(*args)
            np.testing.assert_allclose(gradient(*args), eager, rtol=1e-12, atol=1e-14)
            np.testing.assert_allclose(eager, complex_step(f, *args), rtol=1e-12, atol=1e-14)
    assert program.captures == captures


def complex_step(f, x, *others, h=1e-40):
    """The gradient of f along each element of x, by plain Python on complex numbers."""
    space = f.__globals__
    kept = space.get("math")
    space["math"] = COMPLEX_MATH
    try:
        steps = [f(x + 1j * h * e, *others) for e in np.eye(x.size)]
    finally:
        space["math"] = kept
    return np.array([np.imag(y) / h for y in steps])


def _inside(f, inside, text="math domain error"):
    """A function of cmath that raises where that of math does."""

    def call(z):
        if not inside(z.real):
            raise ValueError(text)
        return f(z)

    return call


COMPLEX_MATH = SimpleNamespace(
    sqrt=_inside(cmath.sqrt, lambda v: v >= 0),
    log=_inside(cmath.log, lambda v: v > 0),
    acos=_inside(cmath.acos, lambda v: abs(v) <= 1),
    sin=cmath.sin,
    exp=cmath.exp,
    pi=math.pi,
)
