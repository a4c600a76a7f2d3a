"""The examples that need an installed library do what their first lines say."""

import runpy
from pathlib import Path

import numpy as np
import pytest

import lineara

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


def test_an_estimator_of_scikit_learns_is_searched_and_cloned():
    base = pytest.importorskip("sklearn.base")
    example = runpy.run_path(str(EXAMPLES / "estimator.py"))
    search = example["searched"](np.random.default_rng(0))
    assert search.best_params_ == {"count": 2}
    p = search.best_estimator_.parameters_
    np.testing.assert_allclose(p["height"], [1.5, 0.8], atol=0.05)
    np.testing.assert_allclose(p["centre"], [3.0, 7.0], atol=0.05)
    np.testing.assert_allclose(p["width"], [1.0, 0.5], atol=0.05)
    again = base.clone(search.best_estimator_)
    assert (again.count, hasattr(again, "parameters_")) == (2, False)


def test_an_op_of_pytensors_has_our_gradient():
    pytest.importorskip("pytensor")
    example = runpy.run_path(str(EXAMPLES / "pytensor_op.py"))
    theta = np.array([2.0, 0.5])
    value, gradient = example["compiled"]()(theta)
    here = lineara.value_and_grad(example["log_density"])(theta)
    assert value == here[0]
    np.testing.assert_array_equal(gradient, here[1])
