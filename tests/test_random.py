"""Random numbers from keys: replayed, independent, differentiable in what scales them."""

import numpy as np
import pytest

import lineara
from lineara import checkpoint, grad, jacobian, random
from lineara.errors import TypeMismatchError


def test_a_key_gives_the_same_numbers_each_time():
    key = random.key(11)
    for draw in (
        lambda: random.normal(key, (3, 2)),
        lambda: random.uniform(key, 5, -1.0, 1.0),
        lambda: random.exponential(key, 4, 2.0),
        lambda: random.integers(key, 6, 0, 100),
        lambda: random.permutation(key, 10),
        lambda: random.generator(key).gamma(2.0, size=3),
        lambda: random.normal(key),
    ):
        np.testing.assert_array_equal(draw(), draw())


def test_keys_are_independent():
    root = random.key(0)
    keys = [root, *random.split(root, 3), *random.split(random.split(root)[1]), random.key(1)]
    draws = np.array([random.normal(k, 4000) for k in keys])
    assert len(set(keys)) == len(keys)
    assert np.max(np.abs(np.corrcoef(draws) - np.eye(len(keys)))) < 0.07
    assert random.fold_in(root, 2) == random.split(root, 3)[2]


def test_moments():
    key = random.key(5)
    assert abs(np.mean(random.normal(key, 20000, 3.0, 2.0)) - 3.0) < 0.05
    assert abs(np.std(random.normal(key, 20000, 3.0, 2.0)) - 2.0) < 0.05
    assert abs(np.mean(random.uniform(key, 20000, 1.0, 2.0)) - 1.5) < 0.01
    assert abs(np.mean(random.exponential(key, 20000, 3.0)) - 3.0) < 0.1


def test_derivatives_in_the_parameters():
    key = random.key(2)
    z = random.normal(key, 3)
    np.testing.assert_allclose(jacobian(lambda s: random.normal(key, 3, 1.0, s))(2.0), z)
    np.testing.assert_allclose(jacobian(lambda m: random.normal(key, 3, m))(np.zeros(3)), np.eye(3))
    u = random.uniform(key, 3)
    np.testing.assert_allclose(jacobian(lambda a: random.uniform(key, 3, a, 2.0))(0.5), 1 - u)
    assert type(random.normal(key)) is float
    program = lineara.stages(lambda s: np.sum(random.normal(key, 3, 0.0, s) ** 2), 2.0)
    assert program.value_and_grad(2.0)[1] == pytest.approx(4.0 * np.sum(z**2))


def test_checkpoint_draws_again_what_it_drew():
    def noisy(x):
        return np.sum(np.sin(x + random.normal(random.key(4), 3)))

    np.testing.assert_array_equal(grad(checkpoint(noisy))(np.ones(3)), grad(noisy)(np.ones(3)))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: random.key(-1), "random.key: a seed is a non-negative integer, not -1"),
        (lambda: random.key(1.5), "random.key: a seed is a non-negative integer, not 1.5"),
        (lambda: random.key(True), "random.key: a seed is a non-negative integer, not True"),
        (
            lambda: random.normal(7, 3),
            "random.generator: takes a key, but was given i64[]; random.key(seed) makes it",
        ),
        (
            lambda: random.split(np.zeros(2)),
            "random.split: takes a key, but was given f64[2]; random.key(seed) makes it",
        ),
    ],
)
def test_what_is_no_key(call, message):
    with pytest.raises(TypeMismatchError) as caught:
        call()
    assert caught.value.message == message
