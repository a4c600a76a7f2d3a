"""vmap outside of programs: branches and loops of the function are those of lanes."""

import numpy as np
import pytest

import lineara

XS = np.array([4.0, -0.5, 0.25, 9.0, 1.0, -3.0])


def branch(x):
    return np.sqrt(x) if x > 0 else np.sin(x)


def root(x):
    a = abs(x) + 1.0
    y = a
    while abs(y * y - a) > 1e-12:
        y = (y + a / y) / 2
    return y


def guards(x):
    if x < 0:
        return -x
    for k in range(6):
        if x * k > 5:
            return x + k
    else:
        x = x * 3
    return x if x < 2 else x * x


def falling(x):
    return x if x < 1 else x * falling(x - 1)


def fills(x):
    y = np.zeros(5)
    y[0] = x
    for i in range(1, 5):
        if y[i - 1] > 2:
            y[i] = y[i - 1] / 2
        else:
            y[i] = y[i - 1] + 1
    return y.sum()


def dead(x):
    if x > 0:
        return np.log(x) / np.sqrt(x)
    return x * 0.5


def closure(x):
    scale = 1.0

    def double():
        nonlocal scale
        scale *= 2

    while x * scale < 3 and scale < 100:
        double()
    return x * scale


FUNCTIONS = [branch, root, guards, falling, fills, dead, closure]


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_lanes_give_what_the_function_gives(f):
    expected = [f(x) for x in XS.tolist()]
    assert np.allclose(lineara.vmap(f)(XS), expected, rtol=1e-14)
    slopes = [lineara.grad(f)(x) for x in XS.tolist()]
    assert np.allclose(lineara.vmap(lineara.grad(f))(XS), slopes, rtol=1e-12)
    total = lineara.grad(lambda xs: np.sum(lineara.vmap(f)(xs)))
    assert np.allclose(total(XS), slopes, rtol=1e-12)
    assert np.allclose(lineara.jacfwd(lineara.vmap(f))(XS), np.diag(slopes), rtol=1e-12)
    second = [lineara.grad(lineara.grad(f))(x) for x in XS.tolist()]
    curved = lineara.grad(lambda xs: np.sum(total(xs) * np.arange(6.0)))
    assert np.allclose(curved(XS), second * np.arange(6.0), rtol=1e-9)
    both = lineara.vmap(lineara.vmap(f))(XS.reshape(2, 3))
    assert np.allclose(both, np.reshape(expected, (2, 3)), rtol=1e-14)


def test_values_around_are_those_of_the_differentiation():
    def model(p, xs):
        def one(x, k):
            return p["a"] * x if x > p["b"] else np.sin(p["b"] * x) * k

        return np.sum(lineara.vmap(one, (0, None))(xs, 2.0))

    def plain(p, xs):
        a, b = p["a"], p["b"]
        return sum([a * x if x > b else np.sin(b * x) * 2.0 for x in xs])

    p = {"a": 1.5, "b": 0.5}
    assert model(p, XS) == pytest.approx(plain(p, XS))
    slopes, expected = (lineara.grad(f)(p, XS) for f in (model, plain))
    assert slopes == pytest.approx(expected)


def test_no_value_of_a_dead_lane_is_calculated():
    def f(x):
        return 1 / (x - 4.0) if x != 4.0 else x * 2

    with np.errstate(all="raise"):
        assert np.array_equal(lineara.vmap(f)(XS)[:1], [8.0])
        slopes = lineara.grad(lambda xs: np.sum(lineara.vmap(f)(xs)))(XS)
    assert slopes[0] == 2.0
    assert np.all(np.isfinite(slopes))


def test_a_lane_that_raises_is_the_users_error():
    def f(x):
        if x < -2:
            raise ValueError(f"too low: {x}")
        return x

    with pytest.raises(ValueError, match=r"too low: -3\.0"):
        lineara.vmap(f)(XS)
    assert np.array_equal(lineara.vmap(f)(XS[:5]), XS[:5])


def test_the_function_runs_once_for_all_lanes():
    runs = []

    def f(x):
        runs.append(1)
        return x * x if x > 0 else -x

    assert np.array_equal(lineara.vmap(f)(XS), [f(x) for x in XS])
    assert len(runs) == 1 + len(XS)
