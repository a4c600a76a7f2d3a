"""What is read by position: the values are NumPy's, the gradients its own function of positions."""

import numpy as np
import pytest

import lineara
from lineara.errors import NoRuleError

rng = np.random.default_rng(4)


def pulled(read, a, c):
    """The gradient of sum(c * read(a)) for a function that only reads: c, added where it is."""
    g = np.zeros(a.size)
    np.add.at(g, np.ravel(read(np.arange(a.size).reshape(a.shape))), np.ravel(c))
    return g.reshape(a.shape)


@pytest.mark.parametrize("mode", ["edge", "wrap", "reflect", "symmetric"])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_pad_over_several_reflections(n, mode):
    a = rng.normal(size=(n, n + 1))
    for w in range(8):
        widths = ((w, 7 - w), (w // 2, w))
        y, L = lineara.linearize(lambda v, widths=widths: np.pad(v, widths, mode), a)
        np.testing.assert_array_equal(y, np.pad(a, widths, mode))
        c = rng.normal(size=y.shape)
        read = lambda v, widths=widths: np.pad(v, widths, mode)  # noqa: E731
        np.testing.assert_allclose(c @ L, pulled(read, a, c), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("mode", "reach"), [("reflect", 2), ("symmetric", 3)])
def test_odd_reflections_reach_once_over_the_array(mode, reach):
    pad = lambda a, w: np.pad(a, w, mode, reflect_type="odd")  # noqa: E731
    a = rng.normal(size=3)
    y, L = lineara.linearize(lambda a: pad(a, reach), a)
    np.testing.assert_allclose(y, pad(a, reach), rtol=1e-14)
    np.testing.assert_allclose(L @ a, y, rtol=1e-14)
    with pytest.raises(NoRuleError):
        lineara.linearize(lambda a: pad(a, reach + 1), a)


@pytest.mark.parametrize("ufunc", [np.maximum, np.minimum, np.fmax, np.fmin])
@pytest.mark.parametrize(
    "values",
    [[np.nan, 1, 2, np.nan, 3], [1, np.nan, 0, 5, 5], [2, 2, 1, 2, 3], [np.nan, np.nan], [1], []],
)
def test_running_extremes_of_ties_and_of_what_is_not_a_number(ufunc, values):
    a = np.array(values, float)
    y, _ = lineara.linearize(ufunc.accumulate, a)
    np.testing.assert_array_equal(y, ufunc.accumulate(a))
    found = lineara.jacobian(ufunc.accumulate)(a)
    assert np.all(found.sum(axis=1) == 1)  # each place reads one element
    np.testing.assert_array_equal((found @ np.nan_to_num(a, nan=7.0)), np.nan_to_num(y, nan=7.0))


def test_bins_are_those_of_numpy_on_their_edges():
    a = np.arange(11.0) / 10  # each value on an edge
    for bins in (1, 2, 5, 10):
        c = rng.normal(size=bins)

        def weighted(w, bins=bins, c=c):
            return np.sum(c * np.histogram(a, bins, weights=w)[0])

        places = np.minimum(np.searchsorted(np.histogram(a, bins)[1], a, "right") - 1, bins - 1)
        np.testing.assert_allclose(lineara.grad(weighted)(np.ones(11)), c[places])


def test_distinct_values_are_read_where_they_stand_first():
    a = np.array([3.0, 1.0, 3.0, 2.0])
    c = np.array([0.5, -2.0, 4.0])
    expected = np.zeros(4)
    expected[np.unique(a, return_index=True)[1]] = c
    np.testing.assert_array_equal(lineara.grad(lambda v: np.sum(c * np.unique(v)))(a), expected)
