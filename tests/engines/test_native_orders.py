"""Orders, extreme places and truth of lines of elements, against NumPy to the bit."""

import numpy as np
import pytest
from test_native import EXACT, NATIVE, agree

import lineara
from lineara.engines.native.orders import LONG

pytest.importorskip("llvmlite")

rng = np.random.default_rng(8)
LINES = {
    "numbers": rng.normal(size=23),
    "equal ones": np.round(rng.normal(size=40)),
    "zeros of both signs": np.array([0.0, -0.0, 1.0, -0.0, 0.0]),
    "no numbers": np.array([2.0, np.nan, -np.inf, np.nan, np.inf, 1.0, np.nan]),
    "one": np.array([3.0]),
    "two": np.array([3.0, -1.0]),
    "a power of two": rng.normal(size=16),
    "one more": rng.normal(size=17),
    "whole numbers": rng.integers(-3, 3, size=19),
    "far apart": np.array([2**62, -(2**62), 0, 2**63 - 1, -(2**63)]),
    "truths": np.array([False, True, False]),
    "lies": np.zeros(3, bool),
    "rows": rng.integers(-2, 3, size=(5, 6)).astype(float),
    "a stack": rng.normal(size=(3, 4, 5)),
}
READ = {
    "argsort": lambda x, axis: np.argsort(x, axis, kind="stable"),
    "argmax": np.argmax,
    "argmin": np.argmin,
    "any": lambda x, axis: np.any(x, axis=axis),
    "all": lambda x, axis: np.all(x, axis=axis),
}


def axes(x, name):
    return [*range(-1, x.ndim - 1), *[None] * (name != "argsort")]


def read(x):
    """Everything that is read of lines along each axis, and of the array as one line."""
    return [f(x, axis) for name, f in READ.items() for axis in axes(x, name)]


def orders(p, engine):
    """What an engine's code of a program calls back, of the functions that are tested here."""
    return [s for s in engine.code(p.program, p.name).sites if s.what.startswith(tuple(READ))]


@pytest.mark.parametrize("line", LINES)
def test_what_is_read_of_lines_is_numpys_and_python_is_not_asked(line):
    x = LINES[line]
    p = lineara.trace(lambda x: tuple(read(x)), x)
    ys = agree(p.program, p.name, *p.operands((x,)), engines=[EXACT, NATIVE])
    for y, expected in zip(ys, read(x), strict=True):
        np.testing.assert_array_equal(y, expected, strict=True)
    assert not orders(p, NATIVE)
    assert EXACT.takes(p.program, p.name) is not None or not orders(p, EXACT)
    assert x.ndim > 1 or EXACT.takes(p.program, p.name) is None


@pytest.mark.parametrize("view", [lambda x: x.T, lambda x: x[::2, 1:], lambda x: x[:, ::-1]])
def test_lines_lie_as_they_like(view):
    x = LINES["rows"]
    p = lineara.trace(lambda x: tuple(read(view(x))), x)
    agree(p.program, p.name, *p.operands((x,)), engines=[NATIVE])
    assert not orders(p, NATIVE)


def test_kept_axes_and_what_is_sorted():
    x = LINES["a stack"]

    def f(x):
        ties = np.any(x > 0.5, axis=1, keepdims=True) * x
        return np.sum(np.sort(x, axis=1) * np.cos(np.arange(4.0))[:, None]) + np.sum(ties)

    for g in (f, lineara.grad(f)):
        p = lineara.trace(g, x)
        agree(p.program, p.name, *p.operands((x,)), engines=[NATIVE])
        assert not orders(p, NATIVE)


@pytest.mark.parametrize("n", [LONG, LONG + 1])
def test_long_lines_are_sorted_by_numpy(n):
    p = lineara.trace(lambda x: np.argsort(x, kind="stable"), np.cos(np.arange(n)))
    assert len(orders(p, NATIVE)) == (n > LONG)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.argsort(x, None, kind="stable"),
        lambda x: np.argsort(x, axis=1),
        lambda x: np.any(x > 0.9, axis=(0, 1)),
        lambda x: np.argmax(x, axis=0, keepdims=True),
    ],
)
@pytest.mark.parametrize("n", [1, 4])
def test_what_is_read_of_several_lines_is_numpys(f, n):
    x = np.cos(np.arange(n * 5.0)).reshape(n, 5)
    p = lineara.trace(f, x)
    (y,) = agree(p.program, p.name, *p.operands((x,)), engines=[NATIVE])
    np.testing.assert_array_equal(y, f(x))


def test_nothing_has_no_extreme_place():
    x = np.zeros((0, 3))
    p = lineara.trace(lambda x: np.all(x, axis=0), x)
    agree(p.program, p.name, *p.operands((x,)))


@pytest.mark.parametrize("seed", range(24))
def test_where_elements_would_stand_is_numpys_and_python_is_not_asked(seed):
    draw = np.random.default_rng(seed)
    x = np.sort(draw.choice([0.0, -0.0, 1.5, -np.inf, np.inf, np.nan, 2.0, -3.0], seed % 12))
    keys = draw.choice([0.0, 1.5, 1.6, -np.inf, np.inf, np.nan, -3.0, 2.0], (3, 4))
    pairs = [(x, keys[0, 1]), (x, keys.T), (x, np.array([2, -3])), (x, 1)]
    whole = np.sort(draw.integers(-3, 3, 7))
    pairs += [(x.astype("f4"), keys.astype("f4")), (whole, np.int64(1)), (whole, keys)]
    pairs += [(x.astype("f4"), keys.T), (x, keys.astype("f4")), (whole, keys.astype("f4"))]
    for a, v in pairs:
        p = lineara.trace(
            lambda a, v: [np.searchsorted(a, v, side=side) for side in ("left", "right")], a, v
        )
        found = agree(p.program, p.name, *p.operands((a, v)))
        for y, side in zip(found, ("left", "right"), strict=True):
            np.testing.assert_array_equal(y, np.searchsorted(a, v, side=side))
        assert not NATIVE.code(p.program, p.name).sites


@pytest.mark.parametrize("n", [1, 6, 255, 256, 257])
def test_quantiles_of_short_lines_are_not_called_back(n):
    """Longer ones are asked of NumPy, which need not sort."""
    x = np.round(np.random.default_rng(n).normal(size=(3, n)), 1)

    def f(x):
        return np.sum(np.median(x, axis=1) ** 2) + np.sum(np.quantile(x, [0.1, 0.7], axis=1))

    for g in (f, lineara.grad(f)):
        jitted = lineara.jit(g, engine="native")
        np.testing.assert_allclose(jitted(x), g(x), rtol=1e-12)
        said = [line for line in lineara.explain(jitted, x).machine_code if "called back" in line]
        assert bool(said) == (n > 256)
    with np.errstate(all="ignore"):
        assert np.isnan(lineara.jit(np.median, engine="native")(np.append(x[0], np.nan)))
