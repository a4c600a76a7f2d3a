"""Random functions of plain Python have the Taylor series that nested jvp gives, or are refused."""

import math

import numpy as np
import pytest
from random_source import module, source

from lineara import jvp, taylor
from lineara.errors import LinearaError

ORDER, PROGRAMS, SHARDS = 2, 12, 4


def nested(f, order):
    """The Taylor coefficients of f at 0, each by a jvp of the one before."""
    gs = [f]
    for _ in range(order):
        gs.append(lambda t, g=gs[-1]: jvp(g, (t,), (1.0,))[1])
    return np.array([float(g(0.0)) / math.factorial(k) for k, g in enumerate(gs)])


@pytest.mark.parametrize("k", range(SHARDS))
def test_a_random_function_has_the_series_of_nested_jvp(k, tmp_path):
    refused = 0
    for seed in range(k, PROGRAMS, SHARDS):
        f = module(source(seed), tmp_path, f"random_taylor_{seed}").f
        rng = np.random.default_rng(seed)
        x, u = rng.normal(size=4), rng.normal(size=4)

        def along(t, f=f, x=x, u=u):
            return f(x + t * u, 0.3 + t, 3)

        expected = nested(along, ORDER)
        try:
            cs = taylor(along, 0.0, [1.0], ORDER)
        except LinearaError:  # it cannot be captured
            refused += 1
            continue
        bound = 1e-9 * (1 + np.abs(expected).max())
        assert np.allclose(cs, expected, rtol=1e-8, atol=bound), f"seed {seed}:\n{source(seed)}"
    assert refused < PROGRAMS / SHARDS, "functions of this kind are captured"
