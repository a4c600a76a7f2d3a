"""`x.flat = values`, scipy.stats.mode and cumfreq, constants of sequences in programs."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

import lineara

rng = np.random.default_rng(0)
X = np.arange(1.0, 6.0)


def whole(x):
    a: Any = np.zeros((2, 3))
    a.flat = x  # in turn, as often as they fit
    return a


def longer(x):
    a: Any = np.zeros((2, 2))
    a.flat = x
    return a


def of_another_shape(x):
    a: Any = np.zeros((2, 2, 1))
    a.flat = np.outer(x[:2], x[1:3])
    return a


def parts(x):
    a = np.asfortranarray(np.zeros((2, 3)))
    a.flat[1:] = x[:2]
    a.flat[[0, 5, 4]] = [x[0] ** 2, 2.0]
    a.flat[np.array([False, True] * 3)] = x[3:]
    a.flat[2] = x[1] ** 2
    return a


@pytest.mark.parametrize("f", [whole, longer, of_another_shape, parts])
def test_what_is_assigned_to_flat_is_taken_in_turn(f):
    y, L = lineara.linearize(f, X)
    np.testing.assert_array_equal(y, f(X))
    np.testing.assert_allclose(L @ X, (f(1.001 * X) - f(0.999 * X)) / 2e-3, rtol=1e-9)
    staged = lineara.grad(lambda x: np.sum(f(x) ** 2), policy="store_all")(X)
    np.testing.assert_allclose(staged, lineara.grad(lambda x: np.sum(f(x) ** 2))(X))


SAMPLES = [
    np.round(rng.uniform(0, 3, (4, 6))),
    np.round(rng.uniform(0, 3, (4, 3, 5)), 1),
    np.array([1.0, 2.0, 2.0, 1.0, 0.0]),
    np.array([3.0, np.nan, 1.0, 1.0]),
    np.ones(1),
]


@pytest.mark.parametrize("a", SAMPLES, ids=lambda a: str(a.shape))
@pytest.mark.parametrize("axis", [0, -1, None])
@pytest.mark.parametrize("keepdims", [False, True])
def test_the_most_frequent_value_is_an_element_and_moves_with_it(a, axis, keepdims):
    def f(x):
        return stats.mode(x, axis=axis, keepdims=keepdims)

    counts = []

    def value(x):
        found = f(x)
        counts.append(found.count)
        return found.mode

    expected = f(a)
    y, L = lineara.linearize(value, a)
    np.testing.assert_array_equal(y, expected.mode)
    np.testing.assert_array_equal(counts[0], expected.count)
    assert np.shape(y) == np.shape(expected.mode)
    np.testing.assert_allclose(L @ a, expected.mode)  # it scales with the samples


def test_the_frequencies_move_with_the_weights_and_their_limits_with_the_samples():
    x, w = rng.normal(size=20), rng.uniform(1, 2, 20)
    of_weights = lineara.grad(lambda w: stats.cumfreq(x, 4, weights=w)[0][-1])(w)
    np.testing.assert_allclose(of_weights, np.ones(20))
    low = lineara.grad(lambda x: stats.cumfreq(x, 5).lowerlimit)(x)
    expected = np.zeros(20)
    expected[[x.argmin(), x.argmax()]] = 1 + 1 / 8, -1 / 8  # half a bin of four below the least
    np.testing.assert_allclose(low, expected, atol=1e-14)


@pytest.mark.parametrize(
    "at",
    [
        lambda x: np.lexsort((x,)),
        lambda x: np.lexsort((x, [1, 0, 1, 0, 0])),
        lambda x: np.argsort([x[1], x[0], x[2], x[4], x[3]]),
        lambda x: np.argmax([[x[0], x[1]], [x[3], x[2]]], axis=1),
        lambda x: np.searchsorted([0.0, x[1], 9.0], [x[1] + 0.1]),
    ],
)
def test_positions_of_sequences_are_constants_in_a_program_too(at):
    def f(x):
        part = x[at(x)]
        return part @ np.arange(1.0, 1 + len(part))

    np.testing.assert_array_equal(lineara.grad(f, policy="store_all")(X), lineara.grad(f)(X))
