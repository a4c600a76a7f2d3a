"""Reductions by ufuncs: every axis, initial=, where= and keepdims= together give NumPy's value."""

import itertools

import numpy as np
import pytest

import lineara
from lineara.ops.branchless_where import select

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


@pytest.mark.parametrize("chosen", [0, 1, 7, 3000])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128])
def test_few_and_many_are_selected_as_where_selects(chosen, order, dtype):
    rng = np.random.default_rng(chosen)
    mask = np.zeros(6000, bool)
    mask[rng.permutation(6000)[:chosen]] = True
    mask = np.asarray(mask.reshape(60, 100), order=order)
    a = rng.standard_normal((60, 100)).astype(dtype)
    a[::7], a[1::7], a[2::7] = np.inf, np.nan, -0.0
    for values in (a, np.asfortranarray(a), a[::-1], np.broadcast_to(a[0], a.shape)):
        selected, expected = select(mask, values, 0), np.where(mask, values, 0)
        assert selected.dtype == expected.dtype
        assert np.ascontiguousarray(selected).tobytes() == np.ascontiguousarray(expected).tobytes()


@pytest.mark.parametrize("axis", [None, 0, 1, (0, 2), (0, 1, 2)])
@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize("size", [1, 60])
def test_ties_share_and_a_nan_comes_from_nans(name, axis, size):
    x = np.round(np.random.default_rng(0).standard_normal((8, 9, 10 * size)))
    x[2, 3, 4] = x[2, 3, 5] = np.nan
    top = getattr(np, name)(x, axis=axis, keepdims=True)
    hit = np.where(np.isnan(top), np.isnan(x), x == top)
    expected = hit / hit.sum(axis=axis, keepdims=True)
    for _ in range(6):  # a plan comes after some calls
        gradient = lineara.grad(lambda x: np.sum(getattr(np, name)(x, axis=axis)))(x)
        np.testing.assert_array_equal(gradient, expected)
