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
