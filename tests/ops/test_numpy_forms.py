"""NumPy's functions as users write them: each line is an expression, and the laws hold for it.

Names in capitals and the lower-case vectors are differentiated, whichever occur in the line.
"""

import re
import warnings

import numpy as np
import pytest
from forms import LINES, ONE_NUMBER, POINT, mask, rng, rows
from linalg_forms import gram, projector, spectral
from tables import Laws

import lineara
from lineara.facts.types import type_of

__all__ = ["LINES", "gram", "mask", "projector", "rng", "rows", "spectral"]  # lines mention them
laws = Laws()


def form(line):
    """The expression as a function, and the names that it is a function of."""
    names = [n for n in POINT if re.search(rf"(?<![\w.\"]){n}(?![\w(\"'=])", line)]
    names = names or ["s"]
    function = eval(f"lambda {', '.join(names)}: flat({line})", globals())
    return function, [POINT[n] for n in names]


def flat(out):
    """Several results as one vector."""
    if isinstance(out, tuple | list):
        return np.concatenate([np.ravel(v) for v in out])
    return out


def random_like(value, seed):
    real = np.random.default_rng(seed).normal(size=np.shape(value))
    return real if np.shape(value) else float(real)


def difference(f, point, direction, step=1e-5):
    at = [
        f(*(p + k * step * d for p, d in zip(point, direction, strict=True)))
        for k in (-2, -1, 1, 2)
    ]
    return (at[0] - 8 * at[1] + 8 * at[2] - at[3]) / (12 * step)


def close(a, b, tolerance):
    np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * 10)


@laws.of(LINES)
def the_value_is_that_of_numpy(line):
    f, point = form(line)
    plain = f(*point)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        y, _ = lineara.linearize(f, *point)
    assert np.shape(y) == np.shape(plain)
    assert np.asarray(y).dtype == np.asarray(plain).dtype
    np.testing.assert_array_equal(y, plain)


@laws.of(LINES)
def first_derivatives_agree_with_differences_in_both_modes(line):
    f, point = form(line)
    y, L = lineara.linearize(f, *point)
    direction = [random_like(p, i) for i, p in enumerate(point)]
    x_dot = direction[0] if len(point) == 1 else tuple(direction)
    ahead = L @ x_dot
    close(ahead, difference(f, point, direction), 1e-7)
    y_bar = random_like(y, 9)
    back = y_bar @ L
    back = (back,) if len(point) == 1 else back
    total = sum(np.sum(g * d) for g, d in zip(back, direction, strict=True))
    close(total, np.sum(y_bar * ahead), 1e-12)


@laws.of(LINES)
def jacobians_forward_and_reverse_agree(line):
    f, point = form(line)
    ahead = lineara.jacobian(f, mode="forward")(*point)
    back = lineara.jacobian(f, mode="reverse")(*point)
    assert np.shape(ahead) == (*np.shape(f(*point)), *np.shape(point[0]))
    close(ahead, back, 1e-12)


@laws.of(LINES)
def second_derivatives_agree_with_differences(line):
    f, point = form(line)
    c = random_like(f(*point), 5)
    gradient = lineara.grad(lambda *v: np.real(np.sum(c * f(*v))))
    direction = [random_like(p, i) for i, p in enumerate(point)]
    _, found = lineara.jvp(gradient, tuple(point), tuple(direction))
    close(found, difference(gradient, point, direction), 1e-6)


@laws.of([line for line in LINES if not re.search(ONE_NUMBER, line)])
def single_precision_is_that_of_numpy(line):
    f, point = form(line)
    point = [np.float32(p) if np.shape(p) else p for p in point]
    if "rcond" in line or not any(np.shape(p) for p in point):
        return  # numbers alone are double; a cutoff is a matter of the precision
    plain = f(*point)
    y, L = lineara.linearize(f, *point)
    assert type_of(y) == type_of(plain)
    close(y, plain, 1e-4)
    back = random_like(y, 3) @ L
    for g, p in zip(back if isinstance(back, tuple) else (back,), point, strict=True):
        assert np.shape(p) == () or g.dtype == np.float32


@pytest.mark.parametrize("f", [np.var, np.std, np.cov])
@pytest.mark.parametrize("ddof", [3, 4])
def test_of_no_degrees_of_freedom_the_value_is_that_of_numpy(f, ddof):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        y, _ = lineara.linearize(lambda x: f(x, ddof=ddof), POINT["x"])
        np.testing.assert_array_equal(y, f(POINT["x"], ddof=ddof))


@pytest.mark.parametrize("f", [np.var, np.std])
def test_of_no_degrees_of_freedom_in_a_row_the_value_is_that_of_numpy(f):
    where = np.array([[True, True, True, True], [True, False, True, False], [True] + 3 * [False]])
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        g = lambda a: f(a, axis=1, where=where, ddof=2)  # noqa: E731
        np.testing.assert_array_equal(lineara.linearize(g, POINT["A"])[0], g(POINT["A"]))


@pytest.mark.parametrize("at", [0, 1, 500, 998, 999])
def test_a_quantile_of_many_values_is_none_if_one_is(at):
    many = np.random.default_rng(at).normal(size=1000)
    y, _ = lineara.linearize(lambda x: np.quantile(x, 0.1), many)
    assert y == np.quantile(many, 0.1)
    many[at] = np.nan
    assert np.isnan(lineara.linearize(lambda x: np.quantile(x, 0.1), many)[0])


test_every_law = laws.test()
