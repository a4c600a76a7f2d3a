"""Sparse cotangents as sparse tensors of torch and JAX."""

import numpy as np
import pytest

from lineara.cotangent import Coo, Rows, Zero

SHAPE = (7, 5)
RNG = np.random.default_rng(0)
SAMPLES = [
    Zero(SHAPE, np.float32),
    Rows([3, 1, 3], RNG.integers(0, 9, (3, 5)).astype(np.float32), SHAPE),
    Rows([3, 1, 3], RNG.integers(0, 9, (7, 3)).astype(np.float32), SHAPE, axis=1),
    Coo([3, 30, 3], RNG.integers(0, 9, 3).astype(np.float32), SHAPE),
]
SAMPLES.append(SAMPLES[1] + SAMPLES[3])


@pytest.mark.parametrize("g", SAMPLES, ids=repr)
def test_torch_gets_the_same_tensor(g):
    pytest.importorskip("torch")
    np.testing.assert_array_equal(g.to_torch().to_dense().numpy(), np.asarray(g))


@pytest.mark.parametrize("g", SAMPLES, ids=repr)
def test_jax_gets_the_same_tensor(g):
    pytest.importorskip("jax")
    np.testing.assert_array_equal(g.to_jax().todense(), np.asarray(g))
