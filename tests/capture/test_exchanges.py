"""Loops that write one of two arrays, exchange them, and go on until values say that it is enough.

Jacobi's method as it is written by hand, in the ways in which a loop may end and hand on arrays:
each is one loop of the program, with Python's value and the eager engine's derivatives.
"""

import numpy as np
import pytest
from random_source import module

from lineara import explain, grad, jit, jvp
from lineara.errors import MutationError

RNG = np.random.default_rng(0)
POINTS = [RNG.normal(size=7), -2 * RNG.normal(size=7), np.zeros(7), RNG.normal(size=7) ** 3]
HEAD = """
    x, y = np.zeros_like(b), np.zeros_like(b)
"""
ROUND = """
        for i in range(1, len(b) - 1):
            y[i] = 0.5 * (x[i - 1] + x[i + 1] + b[i])
"""
WAYS = {
    "left before the exchange": """
    while True:
{round}
        if np.max(np.abs(y - x)) < 1e-8:
            break
        x, y = y, x
    return y
""",
    "left after it": """
    while True:
{round}
        x, y = y, x
        if np.max(np.abs(y - x)) < 1e-8:
            break
    return x
""",
    "an error is asked for": """
    err = 1.0
    while err > 1e-8:
{round}
        err = np.max(np.abs(y - x))
        x, y = y, x
    return x
""",
    "the exchange comes first": """
    err = 1.0
    while err > 1e-8:
        x, y = y, x
{round}
        err = np.max(np.abs(y - x))
    return y
""",
    "of at most so many rounds": """
    for k in range(500):
{round}
        if np.max(np.abs(y - x)) < 1e-8:
            break
        x, y = y, x
    return y
""",
    "both counted": """
    k = 0
    while True:
{round}
        k += 1
        if np.max(np.abs(y - x)) < 1e-8 or k > 2000:
            break
        x, y = y, x
    return y * k
""",
    "returned from": """
    for k in range(500):
{round}
        if np.max(np.abs(y - x)) < 1e-8:
            return y
        x, y = y, x
    return x
""",
    "without another end": """
    while True:
{round}
        if np.max(np.abs(y - x)) < 1e-8:
            return y
        x, y = y, x
""",
    "two ends": """
    while True:
{round}
        if np.max(np.abs(y - x)) < 1e-8:
            break
        x, y = y, x
        if np.max(np.abs(y)) > 1e3:
            break
    return x + y
""",
    "two results": """
    while True:
{round}
        if np.max(np.abs(y - x)) < 1e-8:
            break
        x, y = y, x
    return np.concatenate((x, 2.0 * y))
""",
    "in one line": """
    while True:
        y[1:-1] = 0.5 * (x[:-2] + x[2:] + b[1:-1])
        if np.max(np.abs(y - x)) < 1e-8:
            break
        x, y = y, x
    return y
""",
    "a flag": """
    done = False
    while not done:
        y[1:-1] = 0.5 * (x[:-2] + x[2:] + b[1:-1])
        if np.max(np.abs(y - x)) < 1e-8:
            done = True
        else:
            x, y = y, x
    return y
""",
    "through a third name": """
    while True:
{round}
        if np.max(np.abs(y - x)) < 1e-8:
            break
        t = x
        x = y
        y = t
    return y
""",
    "three arrays": """
    z = np.zeros_like(b)
    while True:
        for i in range(1, len(b) - 1):
            z[i] = 0.3 * (y[i - 1] + y[i + 1] + b[i]) + 0.2 * x[i]
        if np.max(np.abs(z - y)) < 1e-8:
            break
        x, y, z = y, z, x
    return z
""",
    "the largest change found by hand": """
    while True:
        err = 0.0
        for i in range(1, len(b) - 1):
            y[i] = 0.5 * (x[i - 1] + x[i + 1] + b[i])
            d = abs(y[i] - x[i])
            if d > err:
                err = d
        if err < 1e-8:
            break
        x, y = y, x
    return y
""",
    "of what was None before it": """
    before, k = None, 0
    while True:
{round}
        now = np.sum(y * y)
        if k > 500 or (before is not None and abs(now - before) < 1e-12):
            break
        before, k = now, k + 1
        x, y = y, x
    return y
""",
    "with a list of copies": """
    kept = []
    while True:
{round}
        kept.append(y.copy())
        if np.max(np.abs(y - x)) < 1e-8 or len(kept) > 60:
            break
        x, y = y, x
    return y + kept[-1] * len(kept)
""",
    "written after it": """
    while True:
{round}
        if np.max(np.abs(y - x)) < 1e-8:
            break
        x, y = y, x
    y[0] = 5.0
    x[1] = 3.0 * b[0]
    return x + 2 * y
""",
    "in a plane": """
    x, y = np.zeros((6, 6)), np.zeros((6, 6))
    while True:
        for i in range(1, 5):
            for j in range(1, 5):
                around = x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1]
                y[i, j] = 0.25 * (around + b[i] * b[j])
        if np.abs(y - x).max() < 1e-8:
            break
        x, y = y, x
    return y
""",
}


def made(text, folder, name="exchanges"):
    """The function of a body, read from a file."""
    source = f"import numpy as np\n\n\ndef f(b):{HEAD}{text}".replace("{round}", ROUND)
    return module(source, folder, name).f


@pytest.mark.parametrize("way", WAYS)
def test_rounds_that_exchange_arrays_until_they_have_converged_are_a_loop(way, tmp_path):
    f = made(WAYS[way], tmp_path)
    captured = jit(f, fallback=False)
    for b in POINTS:
        np.testing.assert_array_equal(captured(b), f(b))
    told = [e.what for e in explain(captured, POINTS[0]).statements]
    assert not [what for what in told if "written out" in what], told

    def size(b):
        y = f(b)
        return (y * y * np.cos(y)).sum()

    slope, bend = grad(size), lambda b, v: jvp(grad(size), (b,), (v,))[1]
    slopes, bends = jit(slope, fallback=False), jit(bend, fallback=False)
    for b in POINTS:
        v = np.cos(b)
        np.testing.assert_allclose(slopes(b), slope(b), rtol=1e-11, atol=1e-13)
        np.testing.assert_allclose(bends(b, v), bend(b, v), rtol=1e-10, atol=1e-12)


def test_what_is_not_a_loop_says_why_and_a_copy_makes_it_one(tmp_path):
    kept = """
    first = {first}
    while True:
{round}
        if np.max(np.abs(y - x)) < 1e-8:
            break
        x, y = y, x
    return y + first
"""
    with pytest.raises(MutationError) as e:
        jit(made(kept.replace("{first}", "y"), tmp_path), fallback=False)(POINTS[0])
    assert str(e.value) == (
        "a staged loop writes into an array, and the variable 'y' may be that array under another "
        "name in one of its rounds; bind a copy, a.copy()\n  at exchanges.py:8 in f: while True:"
    )
    f = made(kept.replace("{first}", "y.copy()"), tmp_path, "copied")
    np.testing.assert_array_equal(jit(f, fallback=False)(POINTS[0]), f(POINTS[0]))
