"""Random functions that give arrays several names: captured they give Python's value, or refuse.

Many of them write an array that a branch or a loop has given another name, which is refused; what
is not refused has Python's value, and the eager engine's gradient.
"""

import collections
import warnings

import numpy as np
import pytest
from random_rows import Buffers, Rows
from random_source import module

from lineara import explain, grad, jit
from lineara.errors import LinearaError

X = np.random.default_rng(0).normal(size=(4, 3))
POINTS = (0.7, -0.4, 0.05)
PROGRAMS, SHARDS = 80, 8


def proved(seed, folder):
    """What one function counts as; an AssertionError where a value or a gradient is wrong."""
    source = (Rows, Buffers)[seed % 2](seed).source()
    f = module(source, folder, f"rows{seed}").f
    captured = jit(f)
    try:
        for x in POINTS:
            np.testing.assert_allclose(captured(x, X), f(x, X), rtol=1e-8, atol=1e-9)
        slope = grad(captured)(POINTS[0], X)
    except LinearaError:
        return "refused"
    told = [e.what for e in explain(captured, POINTS[0], X).statements]
    assert not [what for what in told if "Error(" in what or "had ended" in what], told
    try:
        want = grad(f)(POINTS[0], X)
    except LinearaError:  # the eager engine refuses some views, too
        return "value"
    np.testing.assert_allclose(slope, want, rtol=1e-7, atol=1e-8)
    return "value and gradient"


@pytest.mark.parametrize("k", range(SHARDS))
def test_no_name_of_an_array_shows_what_it_does_not_show_in_python(k, tmp_path, request):
    found = collections.Counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of overflow, which is Python's own
        programs = PROGRAMS * (4 if request.config.option.all else 1) // SHARDS
        for seed in range(k * programs, (k + 1) * programs):
            try:
                found[proved(seed, tmp_path)] += 1
            except BaseException as e:
                e.add_note(f"seed {seed}")
                raise
    assert found["value and gradient"] >= 0.1 * found.total(), found
