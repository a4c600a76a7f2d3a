"""Small promises of the public names."""

import numpy as np
import pytest

import lineara
from lineara import jvp, linearize


def test_testing_is_there_without_an_import_of_its_own():
    assert lineara.testing.__name__ == "lineara.testing"


def test_other_names_are_not():
    with pytest.raises(AttributeError, match="module 'lineara' has no attribute 'gradient'"):
        _ = lineara.gradient


def test_a_linear_map_over_a_number():
    _, L = linearize(lambda x: 3.0 * x, np.ones(2))
    assert np.array_equal((L / 2) @ np.ones(2), [1.5, 1.5])
    assert np.array_equal(np.ones(2) @ (L / 2), [1.5, 1.5])
    with pytest.raises(TypeError, match="LinearMap"):
        L / np.ones(2)


def test_jvp_with_more_results():
    assert jvp(lambda x: (x * x, "seen"), (3.0,), (1.0,), has_aux=True) == (9.0, 6.0, "seen")


def test_linear_maps_meet_traced_values_on_both_sides():
    def f(x):
        y, L = lineara.linearize(lambda z: z**2 * x, x)  # the map 2 x^2
        return np.sum((L @ x) * (y @ L)) + np.sum((x[0] * L) @ x) + np.sum((L * x[0]) @ x)

    def plain(x):
        return np.sum(4.0 * x**8) + 4.0 * x[0] * np.sum(x**3)

    x = np.array([0.5, 1.5, -1.0])
    assert np.allclose(f(x), plain(x))
    assert np.allclose(lineara.grad(f)(x), lineara.grad(plain)(x))
