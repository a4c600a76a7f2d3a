"""Where there is no derivative: what is chosen, and how often and where it was asked for."""

import math

import numpy as np
import pytest

import lineara
from lineara import grad, hessian, jacfwd, kinks, value_and_grad
from lineara.errors import StructureError, TypeMismatchError
from lineara.facts.primitive import op, registry
from lineara.ops.kinks import KINKS, _spectrum
from lineara.tape.levels import open_level

x = np.array([0.0, -2.0, 0.0])
pair = np.array([2.0, 2.0, 1.0])
cube = np.ones((2, 2, 2))


def edges(x):
    return np.sum(np.clip(x, 0.0, 1.0) * np.array([1.0, 10.0, 100.0]))


CHOICES = [
    ("abs=1.0", lambda x: np.sum(np.abs(x)), x, [1, -1, 1]),
    ("abs=-1", lambda x: np.sum(np.fabs(x)), x, [-1, -1, -1]),
    ("abs=0.5", abs, 0.0, 0.5),
    ("abs=1", lambda x: abs(x + 0j), 0.0, 1),
    ("abs=1", math.fabs, 0.0, 1),
    ("sqrt=0.0", np.sqrt, 0.0, 0),
    ("sqrt=2.0", math.sqrt, 0.0, 2),
    ("power=3.0", lambda x: x**0.5 + np.cbrt(x), 0.0, 6),
    ("power=3.0", lambda x: np.sum(x**0.0 + x**1.0 + x**2), x, [1, -3, 1]),
    ('norm="zero"', np.linalg.norm, np.zeros(2), [0, 0]),
    ('norm="nan"', np.linalg.norm, np.zeros(2), [math.nan, math.nan]),
    ('norm="nan"', lambda x: math.hypot(x, 2 * x), 0.0, math.nan),
    ('ties="first"', np.max, pair, [1, 0, 0]),
    ('ties="last"', np.max, pair, [0, 1, 0]),
    ('ties="equal"', np.max, pair, [0.5, 0.5, 0]),
    ('ties="first"', lambda x: np.sum(np.min(x, axis=(0, 2))), cube, np.eye(8)[[0, 2]].sum(0)),
    ('ties="last"', lambda x: np.sum(np.max(x, (2, 0))), cube, np.eye(8)[[5, 7]].sum(0)),
    ('ties="first"', lambda x: np.sum(np.maximum(x, np.zeros(3))), x, [1, 0, 1]),
    ('ties="last"', lambda x: np.sum(np.fmin(x, 0.0)), x, [0, 1, 0]),
    ('clip="inside"', edges, np.array([0.0, 1.0, 2.0]), [1, 10, 0]),
    ('clip="outside"', edges, np.array([0.0, 1.0, 0.5]), [0, 0, 100]),
    ('clip="half"', edges, np.array([0.0, 1.0, 0.5]), [0.5, 5, 100]),
]  # fmt: skip


@pytest.mark.parametrize(("choice", "f", "at", "slope"), CHOICES)
def test_the_choice_is_the_derivative_in_both_modes_and_the_value_stays(choice, f, at, slope):
    policy = eval(f"kinks({choice})")
    with np.errstate(all="ignore"):
        value, found = value_and_grad(policy(f))(at)
        assert value == f(at)
        np.testing.assert_array_equal(np.ravel(found), np.ravel(slope))
        np.testing.assert_array_equal(np.ravel(jacfwd(policy(f))(at)), np.ravel(slope))


OF_NUMBERS = (abs, math.fabs, math.sqrt)


@pytest.mark.parametrize(
    "line", [c for c in CHOICES if "nan" not in c[0] and c[1] not in OF_NUMBERS]
)
def test_staged_programs_follow_the_choice(line):
    choice, f, at, slope = line
    policy = eval(f"kinks({choice})")
    found = lineara.stages(policy(f), at).value_and_grad(at)[1]
    np.testing.assert_array_equal(np.ravel(found), np.ravel(slope))


def test_every_order_follows_the_choice():
    policy = kinks(abs=1.0, ties="first")
    f = policy(lambda x: np.sum(np.abs(x) ** 2 + np.maximum(x, 0.0) ** 2))
    np.testing.assert_array_equal(hessian(f)(x), np.diag([4.0, 2.0, 4.0]))
    np.testing.assert_array_equal(jacfwd(grad(f))(x), np.diag([4.0, 2.0, 4.0]))


def test_the_default_comes_back_after_the_function():
    def f(x):
        return kinks(abs=1.0)(abs)(x) + 10 * abs(x)

    assert grad(f)(0.0) == 1.0
    assert grad(abs)(0.0) == 0.0
    with pytest.raises(IndexError):
        grad(kinks(abs=1.0)(lambda x: [][0]))(0.0)
    assert grad(abs)(0.0) == 0.0


def test_an_inner_policy_wins():
    inner = kinks(abs=-1.0)(abs)
    assert grad(kinks(abs=1.0)(lambda x: inner(x) + 10 * abs(x)))(0.0) == 9.0


def test_without_differentiation_it_is_the_function():
    policy = kinks(abs=1.0)
    assert policy(abs)(-3) == 3
    assert policy.hits == []


def test_math_still_raises():
    with pytest.raises(ValueError, match="math domain error"):
        grad(kinks(sqrt=0.0)(math.sqrt))(-1.0)


DEFAULTS = [
    ("abs", (0.0,), (0.0,)), ("fabs", (0.0,), (0.0,)), ("sqrt", (0.0,), (math.inf,)),
    ("cbrt", (0.0,), (math.inf,)), ("length", (0.0,), (0.0,)), ("hypot", (0.0, 0.0), (0.0, 0.0)),
    ("maximum", (2.0, 2.0), (0.5, 0.5)), ("minimum", (2.0, 2.0), (0.5, 0.5)),
    ("fmax", (2.0, 2.0), (0.5, 0.5)), ("fmin", (2.0, 2.0), (0.5, 0.5)),
    ("clip_below", (2.0, 2.0), (0.5, 0.5)), ("clip_above", (2.0, 2.0), (0.5, 0.5)),
    ("power", (0.0, 0.5), (math.inf, 0.0)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "point", "slopes"), DEFAULTS, ids=[d[0] for d in DEFAULTS])
def test_what_is_not_chosen_has_the_documented_slope(name, point, slopes):
    f, rows = op(name), [np.array([v, v]) for v in point]
    with np.errstate(all="ignore"):
        found = grad(lambda *v: np.sum(f(*v)), tuple(range(len(point))))(*rows)
    np.testing.assert_array_equal(found, [[v, v] for v in slopes])


@pytest.mark.parametrize(
    ("point", "exponent", "hits"),
    [(0.0, 0.5, 1), (0.0, 1.0, 0), (0.0, 0.0, 0), (0.0, 2.5, 0), (0.0, -0.5, 0), (0.3, 0.5, 0)],
)
def test_a_power_breaks_at_zero_with_an_exponent_between_zero_and_one(point, exponent, hits):
    policy = kinks(power=3.0)
    with np.errstate(all="ignore"):
        grad(policy(lambda x: np.sum(x**exponent)))(np.array([point, 0.7]))
    assert [count for _, _, count in policy.hits] == [1] * hits


def test_hits_say_how_often_and_where():
    def f(x):
        low = np.abs(x)
        if x[0] > 0:
            low = -low
        return np.sum(low) + np.max(x) + np.sum(np.sort(x))

    for derivative, at in ((grad, x), (hessian, x)):
        policy = kinks()
        derivative(policy(f))(at)
        found = {(hit.kink, hit.line.partition(": ")[2]): hit.times for hit in policy.hits}
        assert found == {
            ("abs", "low = np.abs(x)"): 2,
            ("branch", "if x[0] > 0:"): 1,
            ("ties", "return np.sum(low) + np.max(x) + np.sum(np.sort(x))"): 1,
            ("sort", "return np.sum(low) + np.max(x) + np.sum(np.sort(x))"): 1,
        }
        assert all("test_kinks.py:" in hit.line for hit in policy.hits)


@pytest.mark.parametrize(("axis", "times"), [(None, 2), (0, 1), (1, 1)])
def test_hits_of_sorting_count_neighbours_that_are_equal(axis, times):
    policy = kinks()
    a = np.array([[1.0, 2.0], [1.0, 3.0], [4.0, 4.0]])
    grad(policy(lambda a: np.sum(np.sort(a, axis=axis))))(a)
    assert [(hit.kink, hit.times) for hit in policy.hits] == [("sort", times)]


def test_a_norm_is_no_branch_of_the_users():
    policy = kinks()
    grad(policy(np.linalg.norm))(np.zeros(3))
    assert [(hit.kink, hit.times) for hit in policy.hits] == [("norm", 1)]


def test_the_kink_of_a_spectrum_counts_matrices_and_has_a_text_for_every_word():
    kink, a = _spectrum(op("eigvalsh"), "eigh_vectors"), np.diag([1.0, 2.0, 2.0])
    assert kink.text is not None
    assert (kink.name, kink.words, kink.default) == ("spectrum", ("nan", "zero"), "nan")
    assert kink.at(None, np.array([a, a + np.diag([0, 0, 0.1])])).tolist() == [True, False]
    for word in kink.words:
        np.testing.assert_array_equal(kink.text(word, a), op("eigh_vectors")(a))


def test_every_kink_is_of_a_primitive():
    assert set(KINKS) <= set(registry.primitives)


def test_a_word_that_is_no_kink():
    with pytest.raises(StructureError, match="the kinks with a choice are abs, sqrt") as caught:
        kinks(relu=0)
    assert caught.value.message == (
        "kinks: there is nothing to choose at 'relu'; "
        "the kinks with a choice are abs, sqrt, power, norm, ties, clip, spectrum"
    )


@pytest.mark.parametrize(
    ("choice", "mend"),
    [
        ({"ties": "left"}, "ties='left' is no choice; give 'equal' or 'first' or 'last'"),
        ({"abs": "zero"}, "abs='zero' is no choice; give a number, the slope"),
        ({"abs": True}, "abs=True is no choice; give a number, the slope"),
        ({"norm": 0}, "norm=0 is no choice; give 'zero' or 'nan'"),
    ],
)
def test_a_choice_that_is_none(choice, mend):
    with pytest.raises(TypeMismatchError, match="is no choice") as caught:
        kinks(**choice)
    assert caught.value.message == f"kinks: {mend}"


def test_it_shows_its_choices():
    assert repr(kinks(abs=1, ties="first")) == "lineara.kinks(abs=1, ties='first')"


def test_a_policy_leaves_nothing_behind():
    """Functions that come after it compare as before it, and are not counted."""

    def f(x):
        return np.sum(np.where(x == 1.0, x, x * x))

    x = np.array([1.0, 2.0])
    lineara.grad(f)(x)  # a level of this thread exists
    with open_level() as level:
        before = dict(vars(level.S)), dict(vars(level.X))
    policy = lineara.kinks()
    lineara.grad(policy(f))(x)
    seen = policy.hits
    assert seen
    lineara.grad(f)(x)
    assert policy.hits == seen
    with open_level() as again:
        assert again is level
        assert vars(again.S).keys() == before[0].keys()
        assert vars(again.X).keys() == before[1].keys()


def test_comparisons_of_staged_values_are_not_asked_for():
    f = lineara.kinks(abs=1.0)(lambda x: np.sum(np.where(x == 1.0, x, np.abs(x))))
    x = np.array([1.0, 0.0])
    slope = lineara.trace(lineara.grad(f), x)
    np.testing.assert_allclose(slope(x), [1.0, 1.0])
