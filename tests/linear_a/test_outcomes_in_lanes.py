"""What a function gives, raises and shares in a lane, in a trace and on the tape is as in NumPy."""

import cmath
import collections.abc
import contextlib
import decimal
import fractions
import functools
import itertools
import math
import operator
import statistics
import warnings

import numpy as np
import pytest

import lineara
from lineara.errors import MutationError, NoRuleError, StagingError

MODES = {
    "grad": lambda f, x: lineara.value_and_grad(lambda a: f(1.0 * a).sum())(x)[0],
    "vmap": lambda f, x: lineara.vmap(f)(x[None])[0].sum(),
    "trace": lambda f, x: lineara.trace(f, x)(x).sum(),
}
# Calls for which there is nothing to do: some give the array itself, or a view, and most a copy.
IDLE = {
    "block": np.block,
    "block of a list": lambda a: np.block([a]),
    "concatenate": lambda a: np.concatenate([a]),
    "tile": lambda a: np.tile(a, 1),
    "repeat": lambda a: np.repeat(a, 1, axis=0),
    "roll by nothing": lambda a: np.roll(a, 0),
    "roll along nothing": lambda a: np.roll(a, (), ()),
    "fftshift along nothing": lambda a: np.fft.fftshift(a, axes=()),
    "ifftshift along nothing": lambda a: np.fft.ifftshift(a, ()),
    "take of a row": lambda a: np.take(a, 0, axis=0),
    "take of all": lambda a: np.take(a, range(2), axis=0),
    "take_along_axis": lambda a: np.take_along_axis(a, np.array([[0], [1]]), 1),
    "pad": lambda a: np.pad(a, 0),
    "delete": lambda a: np.delete(a, [], axis=0),
    "insert": lambda a: np.insert(a, 0, []),
    "append": lambda a: np.append(a, []),
    "clip": lambda a: np.clip(a, -9.0, 9.0),
    "nan_to_num": np.nan_to_num,
    "nan_to_num without a copy": lambda a: np.nan_to_num(a, copy=False),
    "tril": lambda a: np.tril(a, 9),
    "sum along nothing": lambda a: np.sum(a, axis=()),
    "max along nothing": lambda a: np.max(a, axis=()),
    "mean of one": lambda a: np.mean(a[None], axis=0),
    "median of one": lambda a: np.median(a[None], axis=0),
    "maximum.reduce": lambda a: np.maximum.reduce(a[None], 0),
    "rot90": lambda a: np.rot90(a, 4),
    "squeeze": np.squeeze,
    "atleast_2d": np.atleast_2d,
    "resize": lambda a: np.resize(a, a.shape),
    "astype": lambda a: a.astype(float),
    "astype without a copy": lambda a: a.astype(float, copy=False),
    "asarray": np.asarray,
    "float64": np.float64,
    "positive": np.positive,
    "real": np.real,
    "conj": np.conj,
    "where": lambda a: np.where(True, a, a),
    "matrix_power": lambda a: np.linalg.matrix_power(a, 1),
    "einsum": lambda a: np.einsum("ij->ij", a),
    "diff": lambda a: np.diff(a, 0),
    "moveaxis": lambda a: np.moveaxis(a, 0, 0),
    "flip along nothing": lambda a: np.flip(a, ()),
    "split": lambda a: np.split(a, 1)[0],
    "ravel": np.ravel,
    "flatten": lambda a: a.flatten(),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", IDLE)
def test_a_call_that_changes_nothing_gives_a_copy_where_numpys_does(name, mode):
    def f(a):
        r = IDLE[name](a)
        r[...] = 7.0
        return a

    x = np.arange(1.0, 5.0).reshape(2, 2)
    with contextlib.suppress(MutationError, NoRuleError):
        assert MODES[mode](f, x.copy()) == f(x.copy()).sum()


STAGED = [2.0, 2j, *[np.dtype(c).type(2) for c in "fdFD"]]
NUMBERS = [True, 2, 2.0, 2j, np.True_, *[np.dtype(c).type(2) for c in "bilQefdgFD"]]
ARITHMETIC = [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv]
ARITHMETIC += [operator.mod, operator.pow, operator.eq, operator.lt]


@pytest.mark.parametrize("act", ARITHMETIC)
def test_a_number_of_a_lane_has_the_class_that_it_has_plainly(act):
    """Of every operator on a number that is staged and one that is not, in either order."""

    def kind(a, b):
        try:
            with np.errstate(all="ignore"):
                return type(act(a, b))
        except TypeError:
            return TypeError

    for staged, other in itertools.product(STAGED, NUMBERS):
        found = []

        def f(x, y=other):
            found.extend([type(act(x, y)), type(act(y, x))])  # noqa: B023
            return x

        plainly = [kind(staged, other), kind(other, staged)]
        turned = act is operator.eq and {type(staged), type(other)} == {complex, np.float64}
        if TypeError not in plainly and not turned:  # of which Python does not tell the left one
            lineara.trace(f, staged)
            assert found == plainly, (staged, other)


# What NumPy gives as an array without axes, or as a number, of a number and of such an array.
WITHOUT_AXES = {
    "array": np.array,
    "real": lambda x: np.real(np.array(1j * x)),
    "imag of the array": lambda x: np.array(1j * x).imag,
    "real of a number": lambda x: np.real(1j * x),
    "where": lambda x: np.where(x > 0, x, 1.0),
    "squeeze": np.squeeze,
    "reshape": lambda x: np.reshape(x, ()),
    "select": lambda x: np.select([x > 0], [x]),
    "piecewise": lambda x: np.piecewise(x, [x > 0], [lambda v: v]),
    "broadcast_to": lambda x: np.broadcast_to(x, ()),
    "broadcast_arrays": lambda x: np.broadcast_arrays(x, 1.0)[0],
    "transpose": np.transpose,
    "i0": np.i0,
    "real_if_close": np.real_if_close,
    "astype": lambda x: np.array(x).astype("f"),
    "astype of a number": lambda x: np.float64(x).astype("f"),
    "tensordot": lambda x: np.tensordot(np.ones(2) * x, np.ones(2), 1),
    "block": np.block,
    "apply_along_axis": lambda x: np.apply_along_axis(np.sum, 0, np.ones(3) * x),
    "vectorize": lambda x: np.vectorize(lambda v: 2.0 * v)(x),
    "a part": lambda x: (np.ones(2) * x)[0, ...],
    "the number in it": lambda x: np.array(x)[()],
    "a sum": lambda x: np.array(x) + 1,
    "einsum": lambda x: np.einsum("ii->", np.ones((2, 2)) * x),
    "clip": lambda x: np.clip(np.array(x), 0, 1),
    "roll": lambda x: np.roll(x, 0),
    "sinc": np.sinc,
    "full": lambda x: np.full((), x),
}


@pytest.mark.parametrize("number", [np.float64, float])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", WITHOUT_AXES)
def test_an_array_without_axes_is_one_where_numpys_is(name, mode, number):
    found = []

    def f(a):
        y = WITHOUT_AXES[name](number(a[0]))
        found.append((isinstance(y, np.ndarray), np.shape(y), np.result_type(y)))
        return y + np.zeros(2)

    with contextlib.suppress(NoRuleError):
        MODES[mode](f, np.ones(2))
        y = WITHOUT_AXES[name](number(1.0))
        assert found[-1] == (isinstance(y, np.ndarray), (), np.result_type(y))


REFUSED = {
    "an axis": lambda a: np.expand_dims(a, -9),
    "an axis of several": lambda a: np.concatenate([a, a], 5),
    "an axis of a sum": lambda a: np.sum(a, axis=7),
    "a cast": lambda a: np.hstack([a, a], casting="safe", dtype=np.int64),
    "a matrix that is not square": np.linalg.inv,
    "a shape": lambda a: np.reshape(a, 7),
    "shapes": lambda a: np.dot(a, a),
    "the shape of out": lambda a: np.sum(a, axis=0, keepdims=True, out=np.zeros((2, 3))),
    "a subscript": lambda a: np.einsum(a, [-1, 1], [-1]),
    "a cast of a copy": lambda a: np.copyto(np.zeros((2, 3), int), a),
    "many axes": lambda a: np.array(functools.reduce(lambda v, _: [v], range(65), float(a[0, 0]))),
    "a divisor that is no integer": lambda a: math.gcd(12, float(a[0, 0])),
    "places that are few": lambda a: np.take_along_axis(a, np.array(1), 1),
    "places that are many": lambda a: np.take_along_axis(a, np.ones((2, 1), int), None),
    "places of another type": lambda a: np.take_along_axis(a, a, 1),
    "a statistic of nothing": lambda a: np.pad(a, 0, "maximum", stat_length=0),
    "a tolerance and another": lambda a: np.linalg.matrix_rank(a, tol=a[0, 0], rtol=a[0, 1]),
    "an imaginary part": lambda a: np.zeros(2).__setitem__(0, complex(a[0, 0])),
    "a number of a class": lambda a: complex(OfClass(float(a[0, 0]))),
    "complex parts of a number": lambda a: np.complex64(1j * a[0, 0], 1j),
    "a complex number among floats": lambda a: np.array([1j * float(a[0, 0])], "f"),
    "a complex number as a whole one": lambda a: np.asarray(1j * float(a[0, 0]), int),
    "a sequence as an element": lambda a: np.copy(a[0]).__setitem__(0, a[0, :1]),
    "places that no line has": lambda a: np.copy(a).partition(3),
    "positions that are no integers": lambda a: np.searchsorted([1, 2], 0, sorter=a[0, :2]),
    "an axis of keys": lambda a: np.lexsort(a, axis=2),
    "a cast of whole numbers": lambda a: operator.itruediv(a.astype(int), 2),
    "a cast of a copied number": lambda a: np.copyto(a > 0, 1),
    "a cast of positions": lambda a: np.argmax(a, axis=0, out=np.copy(a[0])),
    "an array that takes no product": lambda a: np.dot(a, a.T, np.empty((2, 2), order="F")),
    "an array that is no key": lambda a: {a: 1},
    "no copy of a number": lambda a: np.array(float(a[0, 0]), copy=False),
    "no array of a number without a copy": lambda a: np.asarray(a[0, 0], copy=False),
    "no copy in another dtype": lambda a: np.asarray(a, int, copy=False),
    "a choice that there is not": lambda a: np.choose((3 * a[0]).astype(int), [a[0], a[1]]),
    "a choice below zero": lambda a: (-a[0]).astype(int).choose(a[0], a[1]),
    "too many numbers": lambda a: math.atan2(float(a[0, 0]), 1.0, 2.0),
    "an exponent that is no integer": lambda a: math.ldexp(float(a[0, 0]), np.int64(3)),
}


class OfClass:
    """An object with a complex number, of whatever class that is."""

    def __init__(self, number):
        self.number = number

    def __complex__(self):
        return self.number


def stored(dtype, at, number):
    """An array of whole numbers, which are of the lane, into which one number was written."""
    a = (np.ones(2) * number == number).astype(dtype)
    a[at] = number
    return a


# What each gives or raises depends on the number.
OF_A_NUMBER = {
    "an element": lambda x: stored("b", 0, x),
    "Python's as an element": lambda x: stored("B", 0, float(x)),
    "all elements": lambda x: stored("l", slice(None), x),
    "at an array of places": lambda x: stored("l", [0], x),
    "Python's at an array of places": lambda x: stored("l", [0], float(x)),
    "in an array without sign": lambda x: stored("B", 0, x),
    "a list": lambda x: np.array([x, 1.0], "b"),
    "a list without sign": lambda x: np.array([x, 1.0], "B"),
    "a list of Python's": lambda x: np.array([[float(x)]], "l"),
    "a fill": lambda x: np.full(2, float(x), "l"),
    "a cast": lambda x: np.array(x, "l"),
    "truth of a complex number": lambda x: (x * np.array([1j, 0, np.nan])).astype(bool),
    "close, by a tolerance": lambda x: np.isclose(1.5, np.array([1.0, 2.0]), rtol=x, atol=0),
    "close, by a bound": lambda x: np.allclose(x, x + 1, atol=x),
    "close in single precision": lambda x: np.isclose(np.float32(x), float(x), rtol=0, atol=0),
    "before a whole number": lambda x: float(x) < 2**53 + 1,
    "not before a whole number": lambda x: float(x) >= 2**53 + 1,
    "a whole number that is no float": lambda x: float(x) == 2**53 + 1,
    "one that is very large": lambda x: (float(x) <= -(10**400)) + (float(x) != 10**400),
    "a geometric sequence": lambda x: np.geomspace(x + 2, 7.0, 5, endpoint=False),
    "a text": lambda x: np.array([x != "a", x == None]),  # noqa: E711
    "an array and a text": lambda x: x * np.ones(3) != "a",
    "a part where a mask holds": lambda x: masked(x * np.arange(3.0), x),
    "many places": lambda x: placed(x * np.arange(99.0), x),
    "values where a mask holds": lambda x: putmask(x * np.arange(99.0), x),
    "a histogram": lambda x: np.histogram(np.arange(5.0), 3, (0, x))[0],
    "weights of a histogram": lambda x: np.histogram([0.5, x], [0, 1, 2], weights=[1, x])[0],
    "edges of bins": lambda x: np.histogram_bin_edges([1.0, 2.0], [0, x, 2 * x]),
    "bins that are too small": lambda x: np.histogram(np.array([1.0, 1 + x * 1e-16]), 10)[1],
    "a singular matrix": lambda x: np.linalg.inv(x * np.ones((2, 2))),
    "a condition number": lambda x: np.linalg.cond(np.array([[x, 0], [0, 0]], "f"), 1),
    "whole steps": lambda x: np.linspace(-float(x), 7, 5, dtype=int),
    "steps in single precision": lambda x: np.linspace(np.float32(x), 3.3, 5),
    "a ramp": lambda x: np.pad(np.array([x, 1.0], "f"), 2, "linear_ramp", end_values=(0, 3)),
    "a percentile that spreads": lambda x: np.percentile(x * np.ones(3), 40, out=x * np.ones(2)),
    "a plain percentile": lambda x: np.percentile(np.arange(3), 40, out=x * np.ones(2)),
    "spans of time": lambda x: np.arange(3, dtype="m8[s]") * float(x),
    "parts of complex numbers": lambda x: np.array(
        [complex(x, -x), complex(1.0, x), complex(x, 1.0)]
    ),
    "complex parts": lambda x: complex(complex(1.0, x), complex(x, -x)),
    "length and angle": lambda x: np.array(
        [cmath.rect(x, 2.0), cmath.rect(2.0, x), cmath.rect(0 * x, x)]
    ),
    "the imaginary part of an array": lambda x: (x * np.ones(2)).imag,
    "Python's root of nothing": lambda x: (0.0 * float(x)) ** 0.5,
    "Python's root of infinity": lambda x: (abs(float(x)) * -math.inf) ** 0.5,
    "a power of two": lambda x: np.array([math.ldexp(float(x), -3), math.ldexp(float(x), 10**20)]),
    "a fraction and a complex number": lambda x: complex(x, x - 1.5) != fractions.Fraction(3, 2),
    "single precision and Python's": lambda x: np.result_type(np.float32, 1j * float(x)).num,
}


def masked(a, x):
    a[a > 1] = np.array([x])
    return a


def placed(a, x):
    a[np.arange(99)[::-1] % 70] = np.arange(99) * x
    return a[np.arange(99) // 2]


def putmask(a, x):
    np.putmask(a, np.arange(99) % 2 == 0, [x, 2.0, 3.0])
    return a


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", OF_A_NUMBER)
def test_what_a_number_gives_or_raises_in_a_lane_is_what_it_does_plainly(name):
    def outcome(f, x):
        try:
            y = np.asarray(f(x))
        except (ArithmeticError, ValueError, TypeError) as e:
            return type(e)
        return y.dtype, y.tolist()

    for number in (1.5, -1.5, 300.7, 2.0**53, 2.0**53 + 2, 1e30, np.inf, np.nan):
        plainly = outcome(OF_A_NUMBER[name], np.float64(number))
        found = outcome(lambda x: lineara.vmap(OF_A_NUMBER[name])(x)[0], np.array([number]))
        assert str(found) == str(plainly), number  # as text NaN is NaN


def test_the_class_of_the_other_side_may_answer_for_a_number_of_a_lane():
    answers = {f"__{name}__": lambda *_: 7 for name in ("radd", "rfloordiv", "gt", "eq")}
    for base in (float, np.float16):
        cls = type("Answering", (base,), answers | {"__array_ufunc__": None})
        made = cls(1)

        def f(x, made=made):
            return x + made, x // made, x < made, x == made

        found = lineara.vmap(f)(np.ones(2))
        assert [v.tolist() for v in found] == [[7, 7]] * 4


def test_truths_of_arrays_are_pythons():
    def f(x):
        a = x * np.ones(2)
        found = np.array_equal(a, a), np.array_equiv(a, a), np.allclose(a, a)
        assert [type(v) for v in found] == [bool] * 3
        return x

    lineara.vmap(f)(np.ones(2))


@pytest.mark.parametrize("f", [lambda x: 1 / x, lambda x: x.astype("f4")])
def test_what_may_raise_under_errstate_is_refused(f):
    def inside(x):
        with np.errstate(all="raise"):
            return f(x)

    with pytest.raises(StagingError, match="under np"):
        lineara.vmap(inside)(np.zeros(2))
    with np.errstate(all="raise"):
        lineara.vmap(inside)(np.zeros(2))


SINGULAR = {
    "inv": np.linalg.inv,
    "solve": lambda a: np.linalg.solve(a, a),
    "tensorinv": lambda a: np.linalg.tensorinv(a.reshape(2, 1, 2)),
    "matrix_power": lambda a: np.linalg.matrix_power(a, -2),
    "cholesky": np.linalg.cholesky,
    "svd": lambda a: np.linalg.svd(a * np.nan),
    "pinv": lambda a: np.linalg.pinv(a * np.nan),
    "lstsq": lambda a: np.linalg.lstsq(a * np.nan, a),
    "norm": lambda a: np.linalg.norm(a * np.nan, "nuc"),
    "matrix_rank": lambda a: np.linalg.matrix_rank(a * np.nan),
}


@pytest.mark.parametrize("name", SINGULAR)
def test_what_linear_algebra_raises_a_lane_raises_whoever_uses_the_result(name):
    def unused(a):
        SINGULAR[name](a)
        return a

    def caught(a):
        try:
            return SINGULAR[name](a)
        except np.linalg.LinAlgError:
            return a

    a = np.zeros((2, 2))
    for f in (SINGULAR[name], unused):
        for call in (f, lambda a, f=f: lineara.vmap(f)(a[None]), lineara.trace(f, a)):
            with pytest.raises(np.linalg.LinAlgError):
                call(a)
    with pytest.raises(StagingError, match="stands in a try that catches LinAlgError"):
        lineara.vmap(caught)(a[None])


def test_a_class_with_rules_of_its_own_is_refused():
    message = "stack: a MaskedConstant has rules of its own, which are not followed here"
    with pytest.raises(NoRuleError, match=message):
        lineara.vmap(lambda x: np.array([x, np.ma.masked]))(np.ones(2))


def test_a_cast_to_the_same_values_is_refused_unless_all_values_have_them():
    assert lineara.vmap(lambda x: x.astype("D", casting="same_value"))(np.ones(2)).dtype == "D"
    with pytest.raises(StagingError, match="depends on staged values"):
        lineara.vmap(lambda x: x.astype("f", casting="same_value"))(np.ones(2))


def test_texts_that_depend_on_a_lane_are_refused():
    texts = np.array(["a", "b"], np.dtypes.StringDType())
    with pytest.raises(StagingError) as raised:
        lineara.vmap(lambda x: texts * (x * np.ones(2)).astype(np.uint64))(np.ones(2))
    assert raised.value.message == (
        "a staged argument of multiply was written as text, but its value is not known; print its "
        "type"
    )


def test_a_refusal_that_somebody_catches_comes_out_of_the_program():
    def handled(x):
        try:
            return x * {x: 2.0}[x]
        except Exception:
            return x

    def suppressed(x):
        with contextlib.suppress(Exception):
            return x * {x: 2.0}[x]
        return x

    with pytest.raises(StagingError, match=r"^hash"):
        lineara.vmap(handled)(np.ones(2))
    with pytest.raises(StagingError, match="caught this refusal"):
        lineara.vmap(suppressed)(np.ones(2))


@pytest.mark.parametrize("name", REFUSED)
def test_what_numpy_refuses_of_its_type_a_lane_refuses_with_its_exception(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(Exception) as plainly:  # noqa: PT011
            REFUSED[name](np.ones((2, 3)))
        with pytest.raises(plainly.type):
            lineara.vmap(REFUSED[name])(np.ones((1, 2, 3)))


@pytest.mark.parametrize("kind", [int, np.int32, bool])
@pytest.mark.parametrize(
    "stem", ["add", "sub", "mul", "pow", "mod", "floordiv", "lshift", "rshift", "and", "xor", "or"]
)
def test_what_is_written_in_place_is_seen_through_every_name_and_view(stem, kind):
    def f(x):
        a = (x * np.array([3.0, 0.0, 2.0])).astype(kind)
        same, part = a, a[1:]
        act = getattr(operator, f"i{stem}")
        return [np.array(v, float) for v in (same, part, act(a, kind(1)), a)]

    try:
        plainly = f(np.float64(1.0))
    except TypeError as e:
        with pytest.raises(type(e)):
            lineara.vmap(f)(np.ones(1))
        return
    for y, value in zip(lineara.vmap(f)(np.ones(2)), plainly, strict=True):
        np.testing.assert_array_equal(y, [value, value])


class Answering:
    """An object whose operators answer before an array's."""

    __array_ufunc__ = None
    __rfloordiv__ = __rlshift__ = __rand__ = __ror__ = __rxor__ = lambda self, other: "answered"


@pytest.mark.parametrize("stem", ["floordiv", "lshift", "and_", "or_", "xor"])
def test_the_other_side_answers_for_whole_numbers_of_a_lane(stem):
    answers = []

    def f(x):
        answers.append(getattr(operator, stem)((x * np.ones(2)).astype(int), Answering()))
        return x

    lineara.vmap(f)(np.ones(2))
    assert answers == ["answered"]


def test_positions_that_depend_on_a_lane_sort_and_choose():
    def f(x):
        a = x * np.array([3.0, 1.0, 2.0])
        order = np.argsort(a)
        found = np.searchsorted(a, x * 2.5, "right", order)
        chosen = (order % 2).choose(a, 10.0)
        zero = np.array(1j * x)
        assert type(zero.real) is type(zero.imag) is np.ndarray
        assert not isinstance(a, collections.abc.Hashable)
        return found, chosen

    plainly = f(np.float64(1.0))
    for y, value in zip(lineara.vmap(f)(np.ones(2)), plainly, strict=True):
        np.testing.assert_array_equal(y, [value, value])


DATA = {
    "Python's": lambda x: [float(x), 2.0, 3 * float(x), 5.5],
    "NumPy's": lambda x: [x, 2 * x, x + 7],
    "whole numbers beside": lambda x: [float(x), 3, 1, 4],
    "an array": lambda x: x * np.array([1.0, 4.0, 2.0]),
    "one": lambda x: [float(x)],
    "large": lambda x: [1e308 * float(x), 1e308 * float(x), -1e308, 1.0],
    "infinite": lambda x: [np.inf, float(x), -np.inf],
}
NAMES = ["mean", "fmean", "median", "variance", "pvariance", "stdev", "pstdev"]


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("name", NAMES)
def test_statistics_in_a_lane_have_their_classes_bits_exceptions_and_derivatives(name, data):
    classes = []

    def f(x):
        y = getattr(statistics, name)(DATA[data](x))
        classes.append(type(y))
        return y

    x = np.full(2, 1.7)
    try:
        plainly = f(x[0])
    except (ArithmeticError, ValueError, AttributeError) as e:
        with pytest.raises((type(e), StagingError)):
            lineara.vmap(f)(x)
        return
    if name == "median" and data == "whole numbers beside":
        with pytest.raises(StagingError, match="what class of number it gives"):
            lineara.vmap(f)(x)
        return
    np.testing.assert_array_equal(lineara.vmap(f)(x), plainly)
    assert len(set(classes)) == 1
    if data != "large" and np.isfinite(plainly):  # where the composition overflows
        found = lineara.vmap(lineara.grad(f))(x)
        np.testing.assert_allclose(found, lineara.grad(f)(x[0]), rtol=1e-12)


@pytest.mark.parametrize("act", ARITHMETIC)
def test_a_fraction_meets_a_number_of_a_lane_as_it_meets_a_plain_one(act):
    def outcome(f, *args):
        try:
            y = f(*args)
        except TypeError:
            return TypeError
        return type(y), y

    exact, number = fractions.Fraction(1, 3), np.float64(1.7)
    pairs = [(lambda x: exact, float), (float, lambda x: exact), (lambda x: exact, lambda x: x)]
    for p, q in pairs[: 3 if act in ARITHMETIC[:7] else 2]:  # Python does not tell who was asked
        found = []

        def f(x, p=p, q=q):
            y = act(p(x), q(x))
            found.append(type(y))  # noqa: B023
            return y

        cls, value = outcome(f, number)
        assert outcome(lambda x: lineara.vmap(f)(x)[0], np.full(1, 1.7))[1] == value
        assert found[0] is found[1] is cls


def test_an_exact_number_that_no_float_meets_is_refused():
    for exact in (decimal.Decimal(1), fractions.Fraction(1)):
        with pytest.raises((TypeError, NoRuleError)):
            lineara.vmap(lambda x, exact=exact: x * np.ones(2) + exact)(np.ones(2))
    with pytest.raises(TypeError):
        lineara.vmap(lambda x: float(x) + decimal.Decimal(1))(np.ones(2))
