"""Random functions of plain Python: captured, they give its bits, and the gradients of all others.

A refusal is allowed in a few of a hundred; a wrong value never.
"""

import collections
import functools
import warnings

import numpy as np
import pytest
from random_source import module, source

import lineara
from lineara.errors import LinearaError
from lineara.passes.derivatives import reverse
from lineara.staging.capture import trace as capture
from lineara.staging.value_and_map import Halves

PROGRAMS, SHARDS = 60, 12
STEP = 1e-5
ONE_ULP = 4e-16  # BLAS adds rows of views in another order than those of copies


def near(a, b, tolerance=1e-9):
    np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def slope(f, x, s, n, u, r):
    """The central difference of f along (u, r), or None where two steps disagree: at a kink."""
    found = [(f(x + h * u, s + h * r, n) - f(x - h * u, s - h * r, n)) / (2 * h)
             for h in (STEP, STEP / 4)]  # fmt: skip
    return found[1] if abs(found[0] - found[1]) < 1e-6 * (1 + abs(found[1])) else None


def prove(seed, folder):
    """What became of one function: a count by kind."""
    counts = collections.Counter(programs=1)
    f = module(source(seed), folder, f"random_source_{seed}").f
    rng = np.random.default_rng(seed)
    size = rng.integers(3, 7)
    points = [(rng.normal(size=size), float(rng.normal()), 3) for _ in range(3)]
    try:
        p = capture(f, *points[0])
    except (LinearaError, NameError) as error:
        counts[f"refused: {type(error).__name__}: {str(error)[:70]}"] += 1
        counts["refused"] += 1
        return counts
    program = reverse(p.program, p.name)
    for x, s, n in points:
        expected, found = f(x, s, n), p(x, s, n)
        counts["last bit"] += not np.array_equal(found, expected)
        near(found, expected, ONE_ULP * 8)
        counts["other type"] += type(found) is not type(expected)
        eager = lineara.grad(f, (0, 1))(x, s, n)
        (g, h, *_), _ = Halves(p, program, (x, s, n), {}).gradient([1.0])
        near(g, eager[0])
        near(h, eager[1])
        u, r = rng.normal(size=size), float(rng.normal())
        oracle = slope(f, x, s, n, u, r)
        counts["kinks"] += oracle is None
        if oracle is not None:
            near(g @ u + h * r, oracle, 1e-5)
    return counts


def proved(seed, folder):
    """The same, where warnings are errors; an error shows the text."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        try:
            return prove(seed, folder)
        except Exception as error:
            error.add_note(f"seed {seed}:\n{source(seed)}")
            raise


@functools.cache
def shard(k, programs, folder):
    found = collections.Counter()
    for seed in range(k, programs, SHARDS):
        found += proved(seed, folder)
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("random_source")


@pytest.mark.parametrize("k", range(SHARDS))
def test_a_random_function_is_captured_to_its_bits_with_its_gradient(k, folder, request):
    programs = 300 if request.config.option.all else PROGRAMS
    found = shard(k, programs, folder)
    assert found["refused"] <= max(4, 0.05 * found["programs"]), found  # of 25; drawn evenly


@pytest.mark.slow("60 random functions: 4 s; the shares above check their values and gradients")
def test_few_random_functions_are_refused_and_most_have_python_s_bits(folder):
    found = sum([shard(k, PROGRAMS, folder) for k in range(SHARDS)], collections.Counter())
    assert found["programs"] == PROGRAMS
    assert found["refused"] < 0.05 * PROGRAMS, found
    assert found["last bit"] <= 0.02 * PROGRAMS, found
    assert found["kinks"] < 0.5 * 3 * PROGRAMS, found
