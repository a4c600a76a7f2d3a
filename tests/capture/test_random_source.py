"""Random functions of plain Python: captured, they give its bits, and the gradients of all others.

Those whose program is short give the second derivative, too: the jvp of the gradient, or the vjp,
in turns (`make fuzz` asks for both).  A refusal is allowed in a few of a hundred; a wrong value
never.
"""

import collections
import functools
import warnings

import numpy as np
import pytest
from random_source import module, source

import lineara
from lineara.engines import run
from lineara.errors import LinearaError
from lineara.passes.derivatives import grad, reverse, vjp
from lineara.passes.jvp import jvp
from lineara.passes.names import GRAD, JVP, VJP
from lineara.staging.capture import trace as capture
from lineara.staging.value_and_map import Halves

PROGRAMS, SHARDS = 60, 12
SHORT = 150  # lines of the program: up to there its second derivative is compared
STEP = 1e-5
ONE_ULP = 4e-16  # BLAS adds rows of views in another order than those of copies


def near(a, b, tolerance=1e-9):
    np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def slope(f, x, s, n, u, r):
    """The central difference of f along (u, r); None where it has a kink or jumps.

    There two steps disagree, or the value is not between those beside it.
    """
    ends = [[f(x + h * u, s + h * r, n) for h in (step, -step)] for step in (STEP, STEP / 4)]
    wide, narrow = [(a - b) / (2 * h) for (a, b), h in zip(ends, (STEP, STEP / 4), strict=True)]
    jumps = abs(sum(ends[1]) / 2 - f(x, s, n)) > STEP
    return None if jumps or abs(wide - narrow) >= 1e-6 * (1 + abs(narrow)) else narrow


def refusal(error, order=""):
    """What a refusal counts as, beside those of its order."""
    return [f"{order}refused: {type(error).__name__}: {str(error)[:70]}", f"{order}refused"]


def prove_second(f, captured, program, point, rng, orders):
    """What became of the second derivative of one function at a point: a count by kind.

    It is the jvp of the gradient, or the vjp, by the passes on the program, by the eager engine,
    and by central differences of eager gradients.
    """
    counts = collections.Counter(second=1)
    x, s, n = point
    (u, v), (r, q) = rng.normal(size=(2, x.size)), rng.normal(size=2)

    def gradient(x, s):
        return lineara.grad(f, (0, 1))(x, s, n)

    def along(x, s, n):
        g, h = gradient(x, s)
        return g @ v + h * q

    _, (g, h) = lineara.jvp(gradient, (x, s), (u, r))
    at = captured.operands(point, {})
    for order, name, given in [((jvp, JVP, (u, r)), (vjp, VJP, (v, q)))[o] for o in orders]:
        try:
            second = order(grad(program, captured.name), captured.name + GRAD)
            p, k = run(second, captured.name + GRAD + name, *at, *given).lresults
        except LinearaError as error:
            counts.update(refusal(error, "second "))
        else:
            counts[f"second by {name}"] += 1
            expected = (g, h) if order is jvp else (g @ v + h * q,)
            found = (p, k) if order is jvp else (p @ u + k * r,)
            for one, other in zip(found, expected, strict=True):
                near(one, other)
    oracle = slope(along, x, s, n, u, r)
    counts["second kinks"] += oracle is None
    if oracle is not None:
        near(g @ v + h * q, oracle, 1e-5)
    return counts


def prove(seed, folder, short=SHORT):
    """What became of one function: a count by kind."""
    counts = collections.Counter(programs=1)
    f = module(source(seed), folder, f"random_source_{seed}").f
    rng = np.random.default_rng(seed)
    size = rng.integers(3, 7)
    points = [(rng.normal(size=size), float(rng.normal()), 3) for _ in range(3)]
    try:
        p = capture(f, *points[0])
    except (LinearaError, NameError) as error:
        counts.update(refusal(error))
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
    if len(str(p.program).splitlines()) <= short:
        orders = (0, 1) if short > SHORT else (seed % 2,)
        counts += prove_second(f, p, program, points[0], rng, orders)
    return counts


def proved(seed, folder, short=SHORT):
    """The same, where warnings are errors; an error shows the text."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        try:
            return prove(seed, folder, short)
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
    assert found["second refused"] <= 0.05 * found["second"], found


@pytest.mark.slow("60 random functions: 4 s; the shares above check their values and gradients")
def test_few_random_functions_are_refused_and_most_have_python_s_bits(folder):
    found = sum([shard(k, PROGRAMS, folder) for k in range(SHARDS)], collections.Counter())
    assert found["programs"] == PROGRAMS
    assert found["refused"] < 0.05 * PROGRAMS, found
    assert found["last bit"] <= 0.02 * PROGRAMS, found
    assert found["kinks"] < 0.5 * 3 * PROGRAMS, found
    assert found["second"] >= 0.3 * PROGRAMS, found
    assert found["second kinks"] < 0.5 * found["second"], found
