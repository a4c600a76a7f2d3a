"""scipy.spatial.distance: whole numbers, and vectors at no distance."""

import numpy as np
import pytest
from scipy.spatial import distance

import lineara
from lineara.ops.scipy.spatial_distance import NAMES

A = np.random.default_rng(3).uniform(0.5, 2.0, size=(3, 4))
WHOLE = np.array([[100, 90, 120, 7], [3, 110, 5, 80], [1, 0, 2, 99], [50, 4, 1, 2], [9, 8, 7, 1]])
OPTIONS = {"seuclidean": (np.arange(1.0, 5.0),), "mahalanobis": (np.eye(4) + 0.1,)}


@pytest.mark.parametrize("name", NAMES)
def test_whole_numbers_are_taken_as_numbers_of_double_precision(name):
    """A product of two of 8 bits does not fit into 8 bits."""
    whole, double = WHOLE.astype(np.int16 if name == "cosine" else np.int8), WHOLE.astype(float)
    f = getattr(distance, name)
    for of in (
        lambda b: lambda a: f(a[0], b[0], *OPTIONS.get(name, ())),
        lambda b: lambda a: f(b[0], a[0], *OPTIONS.get(name, ())),
        lambda b: lambda a: np.sum(distance.cdist(a, b, name)),
    ):
        np.testing.assert_array_equal(lineara.grad(of(whole))(A), lineara.grad(of(double))(A))


def test_what_overflows_in_scipy_itself_is_refused():
    """SciPy's cosine squares numbers of 8 bits in 8 bits; its value is then not a cosine's."""
    b = WHOLE.astype(np.int8)
    assert distance.cosine(A[0], b[0]) != distance.cosine(A[0], WHOLE[0])
    with pytest.raises(lineara.errors.NoRuleError, match=r"cosine: its value, .* is another"):
        lineara.grad(lambda a: distance.cosine(a[0], b[0]))(A)


ROOTS = ("minkowski", "euclidean", "seuclidean", "mahalanobis", "chebyshev", "jensenshannon")


@pytest.mark.parametrize("name", ROOTS)
def test_at_no_distance_the_slope_is_0(name):
    f, options = getattr(distance, name), OPTIONS.get(name, ())
    with np.errstate(all="raise"):
        y, slope = lineara.value_and_grad(lambda u: f(u, A[0], *options))(A[0])
    assert y == 0
    np.testing.assert_array_equal(slope, 0)
