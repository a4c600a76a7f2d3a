"""SciPy's families as users call them: each line is an expression, and the laws hold for it."""

import re
import warnings

import numpy as np
import pytest
from scipy import linalg, sparse
from scipy_family_forms import LINES, POINT, SPARSE, SYSTEM, C, gram
from test_numpy_forms import close, difference, flat, random_like

import lineara

__all__ = ["SPARSE", "SYSTEM", "C", "flat", "gram", "linalg", "sparse"]  # the lines mention them


def form(line):
    """The expression as a function, and the values of what it is a function of."""
    names = [n for n in POINT if re.search(rf"(?<![\w.\"]){n}(?![\w(\"'=])", line)] or ["s"]
    function = eval(f"lambda {', '.join(names)}: flat({line})", globals())
    return function, [POINT[n] for n in names]


@pytest.mark.parametrize("line", LINES)
def test_the_value_is_that_of_scipy(line):
    f, point = form(line)
    plain = f(*point)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        y, _ = lineara.linearize(f, *point)
    assert np.shape(y) == np.shape(plain)
    assert np.asarray(y).dtype == np.asarray(plain).dtype
    if (
        "cho_factor" in line and "cho_solve" not in line
    ):  # SciPy leaves the other triangle as it was
        return
    close(y, plain, 1e-13)


@pytest.mark.parametrize("line", LINES)
def test_first_derivatives_agree_with_differences_in_both_modes(line):
    f, point = form(line)
    y, L = lineara.linearize(f, *point)
    direction = [random_like(p, i) for i, p in enumerate(point)]
    ahead = L @ (direction[0] if len(point) == 1 else tuple(direction))
    close(ahead, difference(f, point, direction), 1e-7)
    y_bar = random_like(y, 9)
    back = y_bar @ L
    back = (back,) if len(point) == 1 else back
    total = sum(np.sum(g * d) for g, d in zip(back, direction, strict=True))
    close(total, np.sum(y_bar * ahead), 1e-12)


@pytest.mark.parametrize("line", LINES)
def test_second_derivatives_agree_with_differences(line):
    f, point = form(line)
    c = random_like(f(*point), 5)
    gradient = lineara.grad(lambda *v: np.sum(c * f(*v)))
    direction = [random_like(p, i) for i, p in enumerate(point)]
    _, found = lineara.jvp(gradient, tuple(point), tuple(direction))
    close(found, difference(gradient, point, direction), 1e-6)
