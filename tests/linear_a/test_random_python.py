"""Random plain Python functions: traced, differentiated, over lanes, and as complex steps say."""

import warnings

import numpy as np
import pytest
from random_python import RandomFunction
from shards import shards

import lineara

STEP = 1e-30


def near(a, b, tol=1e-9):
    """Equal, but for rounding."""
    np.testing.assert_allclose(a, b, rtol=tol, atol=tol)


def prove(seed: int) -> None:
    """All that is said of one function."""
    made = RandomFunction(seed)
    f, rng = made.function(), np.random.default_rng(seed)
    x, s = rng.normal(size=3), float(rng.normal())
    u, r = rng.normal(size=3), float(rng.normal())
    value = f(x, s)
    dot = f(x + 1j * STEP * u, s + 1j * STEP * r).imag / STEP
    both = lineara.grad(f, (0, 1))
    g, h = both(x, s)
    near(g @ u + h * r, dot)  # the eager engine
    near(lineara.jvp(f, (x, s), (u, r))[1], dot)
    t = lineara.trace(f, rng.normal(size=3), 0.5)
    near(t(x, s), value, 1e-12)  # the program that was traced elsewhere
    for policy in ("store_all", "recompute_all"):
        a, b = lineara.grad(f, (0, 1), policy=policy)(x, s)
        near(a, g)
        near(b, h)
    a, b = lineara.trace(both, rng.normal(size=3), 0.5)(x, s)
    near(a, g)  # a differentiation in a trace
    near(b, h)
    X, S = rng.normal(size=(4, 3)), rng.normal(size=4)
    rows = np.array([f(x, s) for x, s in zip(X, S, strict=True)])
    near(lineara.vmap(f)(X, S), rows, 1e-11)
    lanes = lineara.grad(lambda X, S: np.sum(np.sin(lineara.vmap(f)(X, S))), (0, 1))
    a, b = lanes(X, S)
    for i in range(4):
        ga, gb = both(X[i], float(S[i]))
        near(a[i], ga * np.cos(rows[i]))
        near(b[i], gb * np.cos(rows[i]))
    c, d = lineara.trace(lanes, X[::-1].copy(), S)(X, S)
    near(c, a)
    near(d, b)
    c, d = lineara.vmap(both)(X, S)
    near(c, a / np.cos(rows)[:, None])
    near(d, b / np.cos(rows))
    near(lineara.trace(lineara.vmap(f), X[::-1].copy(), S)(X, S), rows, 1e-11)

    def along(v, t):
        g, h = both(v, t)
        return g @ u + h * r

    def slope(v, t):
        return lineara.jvp(f, (v, t), (u, r))[1]

    a, b = lineara.grad(along, (0, 1))(x, s)  # reverse over reverse, and over forward in a program
    c, d = lineara.grad(slope, (0, 1), policy="store_all")(x, s)
    near(c, a, 1e-8)
    near(d, b, 1e-8)


def proved(seed: int) -> None:
    """The same, where warnings are errors; an error shows the text."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        try:
            prove(seed)
        except Exception as error:
            error.add_note(RandomFunction(seed).text)
            raise


@pytest.mark.parametrize("seed", shards(150))
def test_a_random_function_holds_in_every_way_to_run_it(seed):
    proved(seed)
