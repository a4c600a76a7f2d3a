"""What a call of a derivative costs beside the function itself, in Python's calls.

Clocks differ from machine to machine and from minute to minute; calls do not.
"""

import builtins
import gc
import itertools
import weakref
from typing import Any

import numpy as np
import pytest
from call_counts import calls

from lineara import grad, jvp, linearize
from lineara.errors import LeakedVariableError


def square(x):
    return x * x


def squares(x):
    return (x * x).sum()


TEN = np.arange(10.0) + 0.5
OF_SQUARE, OF_SQUARES = grad(square), grad(squares)
MAP = linearize(square, 3.0)[1]

COSTS = {
    "grad of a number": (lambda: OF_SQUARE(3.0), 26),
    "grad of ten numbers": (lambda: OF_SQUARES(TEN), 54),
    "jvp of a number": (lambda: jvp(square, (3.0,), (1.0,)), 31),
    "jvp of ten numbers": (lambda: jvp(squares, (TEN,), (TEN,)), 70),
    "linearize of a number": (lambda: linearize(square, 3.0), 29),
    "linearize of ten numbers": (lambda: linearize(squares, TEN), 47),
    "a map of a number": (lambda: MAP @ 1.0, 9),
}


@pytest.mark.parametrize("name", COSTS)
def test_a_call_of_a_derivative_takes_few_calls(name):
    run, most = COSTS[name]
    assert calls(run, warm=2) <= most


def forward(f):
    return lambda x: jvp(f, (x,), (1.0,))[1]


def by_map(f):
    return lambda x: linearize(f, x)[1] @ 1.0


WAYS = {"forward": forward, "reverse": grad, "map": by_map}


def test_forward_over_forward_takes_no_more_calls_than_reverse_over_reverse():
    taken = {
        (a, b): calls(lambda a=a, b=b: WAYS[a](WAYS[b](square))(3.0), warm=2)
        for a in WAYS
        for b in WAYS
    }
    assert taken["forward", "forward"] <= taken["reverse", "reverse"]
    assert max(taken.values()) <= 1.5 * taken["reverse", "reverse"], taken


@pytest.mark.parametrize("ways", list(itertools.product(WAYS, repeat=3)))
def test_every_way_of_a_third_derivative_is_the_same(ways):
    def curve(x):
        return x**3 * np.exp(2.0 * x)

    third = curve
    for way in ways:
        third = WAYS[way](third)
    x = 0.7  # (x^3 e^2x)''' = (8 x^3 + 36 x^2 + 36 x + 6) e^2x
    expected = (8 * x**3 + 36 * x**2 + 36 * x + 6) * np.exp(2 * x)
    assert abs(third(x) - expected) < 1e-12 * expected


def test_a_tangent_and_an_argument_are_not_handed_out():
    x, t = np.ones(3), np.arange(3.0)
    y, y_dot = jvp(lambda x: x, (x,), (t,))
    y[:], y_dot[:] = 7.0, 8.0
    assert x.tolist() == [1.0, 1.0, 1.0]
    assert t.tolist() == [0.0, 1.0, 2.0]


def test_a_large_argument_can_be_written_after_a_jvp():
    x = np.ones(20_000)  # too large to be copied
    y, y_dot = jvp(lambda x: (x * x).sum(), (x,), (x,))
    x[:] = 2.0
    assert (y, y_dot) == (20_000.0, 40_000.0)


def test_a_nan_of_a_lane_that_is_not_chosen_is_no_nan_ahead():
    def f(x):
        return np.where(x > 0, np.sqrt(x), 0.0).sum()

    x = np.array([4.0, 0.0])
    assert jvp(f, (x,), (np.ones(2),)) == (2.0, 0.25)
    inner = jvp(lambda s: jvp(f, (s * x,), (x,))[1], (1.0,), (1.0,))
    assert inner == (1.0, -0.5)  # of 2 sqrt(s): 1 / sqrt(s), and -1 / 2 s^1.5


def test_a_map_of_numbers_gives_the_same_after_any_other_sweep():
    _, L = linearize(lambda x, y: [x * y, y * y, 2.0], 3.0, 5.0)
    _, inner = linearize(lambda x: x * np.inf * 2.0, 1.0)
    for _ in range(2):
        assert L @ (1.0, 10.0) == [35.0, 100.0, 0.0]
        assert [1.0, 1.0, 1.0] @ L == (5.0, 13.0)
        ahead = L @ (np.nan, 1.0)
        assert np.isnan(ahead[0])
        assert ahead[1:] == [10.0, 0.0]
        assert inner @ 0.0 == 0.0  # a direction that is 0 moves nothing
        assert inner @ 1.0 == np.inf
        assert jvp(lambda t: L @ (t, 10.0 * t), (1.0,), (1.0,))[1] == [35.0, 100.0, 0.0]


def test_a_number_of_a_closed_differentiation_is_refused_ahead():
    kept = []

    def f(x):
        kept.append(x)
        return x * 2.0

    jvp(f, (1.0,), (1.0,))
    with pytest.raises(LeakedVariableError):
        jvp(lambda x: x * kept[0], (1.0,), (1.0,))
    with pytest.raises(LeakedVariableError):
        jvp(lambda x: kept[0], (1.0,), (1.0,))
    assert jvp(lambda x: x * 3.0, (1.0,), (1.0,)) == (3.0, 3.0)


# --- globals of the user's ------------------------------------------------------------------------


def batch(data):
    """A closure over an array."""
    return lambda x: np.sum(x * data)


GLOBALS = {
    "a dict of functions": lambda: {"loss": batch(np.arange(3.0))},
    "a list of functions": lambda: [batch(np.arange(3.0))],
    "a tuple of functions": lambda: (batch(np.arange(3.0)),),
    "a function": lambda: batch(np.arange(3.0)),
    "a list of arrays": lambda: [np.ones(3), np.ones(3)],
}


HELD: Any = None


def of_held(x):
    held = HELD["loss"] if type(HELD) is dict else HELD if callable(HELD) else HELD[0]
    return held(x) if callable(held) else np.sum(held * x)


@pytest.mark.parametrize("anew", [False, True], ids=["the same one", "one for each run"])
def test_a_run_takes_no_more_calls_after_many_than_after_few(anew, monkeypatch):
    """Also of a global that each run makes anew."""
    for kind, made in GLOBALS.items():
        monkeypatch.setitem(globals(), "HELD", made())

        def run(made=made):
            if anew:
                monkeypatch.setitem(globals(), "HELD", made())
            grad(of_held)(np.ones(3))

        assert calls(run, warm=40) == calls(run, warm=4), kind


def test_what_functions_of_a_global_captured_is_read_in_each_run(monkeypatch):
    """Also after the name was bound to another one in between, and of a builtin."""

    def pair():
        factor = 2.0

        def loss(x):
            return np.sum(x * factor)

        def becomes(value):
            nonlocal factor
            factor = value

        return loss, becomes

    x = np.ones(3)
    for kind in (lambda f: f, lambda f: {"loss": f}, lambda f: [f]):
        loss, becomes = pair()
        held, other = kind(loss), kind(pair()[0])
        for value, between in ((2.0, held), (3.0, held), (4.0, other), (5.0, held)):
            monkeypatch.setitem(globals(), "HELD", between)
            grad(of_held)(x)
            becomes(value)
            monkeypatch.setitem(globals(), "HELD", held)
            np.testing.assert_array_equal(grad(of_held)(x), [value] * 3)
    loss, becomes = pair()
    monkeypatch.setattr(builtins, "loss_of_all_modules", loss, raising=False)
    for value in (2.0, 7.0, 8.0):
        becomes(value)
        given = grad(lambda x: loss_of_all_modules(x))(x)  # noqa: F821
        np.testing.assert_array_equal(given, [value] * 3)


def test_nothing_is_kept_of_what_a_global_was(monkeypatch):
    arrays = []
    monkeypatch.setitem(globals(), "HELD", None)
    for n in range(8):
        data = np.arange(float(n + 1))
        globals()["HELD"] = batch(data)
        grad(of_held)(np.ones(n + 1))
        globals()["HELD"] = {"loss": batch(data)}
        grad(of_held)(np.ones(n + 1))
        arrays.append(weakref.ref(data))
        del data
    gc.collect()
    assert [a() for a in arrays[:-2]] == [None] * 6


# --- what passes make of a trace ------------------------------------------------------------------


def under_a_policy(f, x):
    return grad(f, policy="store_all")(x)


def test_the_passes_run_once_for_a_text():
    def curve(x):
        return np.sin(x) * x

    assert calls(lambda: under_a_policy(curve, 0.5), warm=2) < 2_500  # 4,000 with the passes


def test_a_policy_of_the_users_is_asked_at_every_call():
    class Counted:
        __hash__ = None  # type: ignore[assignment]  # as a dataclass that is not frozen
        asked = 0

        def __call__(self, cut):
            self.asked += 1
            return set()

    policy = Counted()
    for x in (0.5, 0.5):
        assert grad(lambda x: np.sin(x) * x, policy=policy)(x) == np.cos(x) * x + np.sin(x)
    assert policy.asked == 2


def numbers(n: int, at: int) -> np.ndarray:
    a = np.linspace(1.0, 2.0, n)
    a[at] += 1e-15 * 8
    return a


@pytest.mark.parametrize(
    "captured",
    [
        (2.0, 2.0 + 2**-51),
        (2.0, -2.0),
        (0.0, -0.0),
        (np.float32(0.1), 0.1),
        (numbers(5, 2), numbers(5, 3)),
        (numbers(50_000, 20_000), numbers(50_000, 20_001)),
        (np.arange(4.0), np.arange(4.0).astype(np.float32)),
        (np.arange(4), np.arange(4.0)),
    ],
    ids=lambda pair: f"{type(pair[0]).__name__} {np.size(pair[0])} {np.asarray(pair[1]).dtype}",
)
def test_functions_that_differ_in_a_constant_alone_have_their_own_derivatives(captured):
    for c in (*captured, *captured):

        def f(x, c=c):
            return np.sum(np.exp(c * x) * c)

        def g(x, c=c):
            return np.sum(np.exp(np.arctan2(c, -1.0) * x))

        for h in (f, g):
            np.testing.assert_array_equal(under_a_policy(h, 0.5), grad(h)(0.5))
