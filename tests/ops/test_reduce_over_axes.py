"""Reductions by ufuncs: every axis, initial=, where= and keepdims= together give NumPy's value."""

import itertools

import numpy as np
import pytest

import lineara

T = np.random.default_rng(0).uniform(0.2, 2.0, (2, 3, 4))
UFUNCS = (
    np.add,
    np.multiply,
    np.maximum,
    np.minimum,
    np.fmax,
    np.fmin,
    np.hypot,
    np.logaddexp,
    np.logaddexp2,
)
AXES = (0, 1, -1, (0, 1), (2, 0), (0, 1, 2), None, ())
CASES = [
    (axis, initial, keepdims, masked)
    for axis, initial, keepdims, masked in itertools.product(
        AXES, (None, 0.7), (False, True), (False, True)
    )
]


def options(ufunc, axis, initial, keepdims, masked):
    found = {"axis": axis, "keepdims": keepdims}
    found |= {} if initial is None else {"initial": initial}
    found |= {"where": T > 0.5} if masked else {}
    return None if masked and initial is None and ufunc.identity is None else found


@pytest.mark.parametrize("ufunc", UFUNCS, ids=lambda u: u.__name__)
def test_the_value_is_that_of_numpy_and_the_derivative_a_central_difference(ufunc):
    v = np.random.default_rng(1).uniform(-1, 1, T.shape)
    for case in CASES:
        given = options(ufunc, *case)
        if given is None:
            continue

        def f(a, given=given):
            return ufunc.reduce(a, **given)

        y, L = lineara.linearize(f, T)
        assert np.shape(y) == np.shape(f(T)), case
        np.testing.assert_allclose(y, f(T), rtol=1e-13, err_msg=str(case))
        if np.all(np.isfinite(y)):
            slope = (f(T + 1e-6 * v) - f(T - 1e-6 * v)) / 2e-6
            np.testing.assert_allclose(L @ v, slope, rtol=1e-7, atol=1e-8, err_msg=str(case))


@pytest.mark.parametrize("ufunc", [np.hypot, np.logaddexp, np.logaddexp2, np.fmax, np.fmin])
@pytest.mark.parametrize("axis", [0, 1, (0, 1), None])
@pytest.mark.parametrize("shape", [(0, 3), (3, 0)])
def test_what_has_no_elements_is_what_numpy_says_or_refused_where_numpy_refuses(ufunc, axis, shape):
    empty = np.zeros(shape)
    try:
        expected = ufunc.reduce(empty, axis=axis)
    except ValueError:
        with pytest.raises(lineara.errors.ShapeError, match="has no elements"):
            lineara.linearize(lambda a: ufunc.reduce(a, axis=axis), empty)
    else:
        found, _ = lineara.linearize(lambda a: ufunc.reduce(a, axis=axis), empty)
        assert np.array_equal(found, expected)
        assert np.shape(found) == np.shape(expected)
