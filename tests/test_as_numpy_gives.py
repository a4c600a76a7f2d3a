"""What NumPy's functions give has NumPy's type: an array without axes is no number, and no view."""

import operator
import re
import sys

import numpy as np
import pytest
import scipy.optimize

from lineara import grad, value_and_grad
from lineara.errors import DetachError, NoRuleError

x0 = [0.3, 1.2, 0.8]
OF_LISTS = """
np.squeeze(v); np.expand_dims(v, 0); np.real_if_close(v); np.ravel(v); np.nan_to_num(v); np.sum(v)
np.mean(v); np.std(v); np.var(v); np.max(v); np.min(v); np.cumsum(v); np.prod(v); np.diff(v)
np.sort(v); np.sqrt(v); np.abs(v); np.outer(v, v); np.dot(v, v); np.reshape(v, (1, -1))
np.transpose(v); np.flip(v); np.roll(v, 1); np.clip(v, 0, 1); np.where([True, False, True], v, 0)
np.average(v); np.tile(v, 2); np.repeat(v, 2); np.ptp(v); np.kron(v, v); np.tensordot(v, v, 1)
np.diag(v); np.array_split(v, 2)[0]; np.flipud(v); np.broadcast_to(v, (2, 3)); np.vdot(v, v)
np.maximum(v, 1.0); np.minimum(v, v); np.hypot(v, 1); np.power(v, 2); np.logaddexp(v, 1)
np.take(v, [0, 2]); np.compress([1, 0, 1], v); np.cumprod(v); np.cov(v); np.linalg.norm(v)
np.interp([0.5, 1.7], [0, 1, 2], v); np.polyval(v, 2.0); np.quantile(v, 0.3); np.fft.rfft(v).real
np.stack([v, v]); np.concatenate([v, v]); np.triu([v, v]); np.swapaxes([v, v], 0, 1)
"""
OF_NUMBERS = """
np.squeeze(x); np.transpose(x); np.reshape(x, ()); np.where(True, x, 2.0); np.i0(x); np.roll(x, 0)
np.real_if_close(x); np.piecewise(x, [x > 0], [lambda v: v * 2]); np.vectorize(lambda v: v * 2)(x)
np.squeeze(a[:1]); a[:1].squeeze(); a[:1].reshape(()); np.reshape(a[:1], ()); a[0, ...]; a[0]
np.tensordot(a, a, 1); np.cov(a); np.array(x)[()]; np.array(x) * 1; np.array(x).item(); a.item(0)
np.array([x]).item(); np.array([[x]]).item((0, 0)); np.array(x).tolist(); a.tolist()[0]; a.sum()
np.ascontiguousarray(x); np.asfortranarray(x); np.require(x); np.asarray_chkfinite(x); np.sum(x)
np.arange(0, x); np.arange(x); np.arange(0, 9, x); np.bool_(x); np.flip(a)[0]; np.median(a)
a.astype(np.float32).item(0); np.bool_(a); np.float64(x) * 1; np.clip(x, 0, 1); np.dot(a, a)
"""


OF_TWO_KINDS = """
np.concatenate([h, x], axis=None); np.concatenate([r, h, x], axis=None); np.append(h, x)
np.append(r, x); np.hstack([h, x]); np.vstack([h, x]); np.stack([h, x]); np.array([h, x])
np.dot(h, x); np.dot(x, h); np.dot(r, x); np.inner(r, x); np.vdot(h, x); np.outer(h, x)
np.choose([0, 1], [h, x]); np.where(True, h, x); np.select([True], [h], x); np.clip(h, x, x)
np.full_like(r, x); np.insert(r, 0, x); np.pad(r, 1, constant_values=x); np.nan_to_num(h, nan=x)
np.cross([h, x, h], [h, x, x]); np.kron(h, x); np.linspace(h, x + 2, 3); np.arange(h, x + 2, 1)
np.diff(r, prepend=x); np.trapezoid(r, dx=x); np.gradient(r, x); np.r_[h, x]; np.polyval([h, h], x)
np.maximum(h, x); np.power(h, x); np.hypot(x, h); np.multiply.outer(h, x); np.heaviside(h, x)
np.average([h, x]); np.add.reduce([h, x]); np.einsum(",", h, x); np.concatenate([x, x], axis=None)
np.concatenate([h, 2 * x], axis=None); np.concatenate([h, x + 1j], axis=None); np.max([h, x])
"""


def lines(text):
    return [line.strip() for row in text.split("\n") for line in row.split(";") if line.strip()]


def shown(v):
    return type(v).__name__, np.shape(v), str(getattr(v, "dtype", ""))


@pytest.mark.parametrize("made", ["v", "tuple(v)", "[v[0], 1.0, v[2]]"])
def test_functions_take_lists_that_are_differentiated(made):
    for line in lines(OF_LISTS):
        f = eval(f"lambda v: np.sum((lambda v: {line})({made})) + 0 * v[0]", {"np": np})
        value, slopes = value_and_grad(f)(x0)
        assert value == f(x0), line
        for i in range(3):
            up, down = ([v + h * (i == j) for j, v in enumerate(x0)] for h in (1e-6, -1e-6))
            assert slopes[i] == pytest.approx((f(up) - f(down)) / 2e-6, abs=1e-7), line


@pytest.mark.parametrize("x", [3.7, np.float64(3.7), np.float32(3.7)], ids=repr)
def test_results_have_the_class_of_numpys(x):
    for line in lines(OF_NUMBERS):
        seen = []
        scope = {"np": np, "seen": seen, "shown": shown}
        f = eval(f"lambda x: (lambda a: seen.append(shown({line})))(np.array([x, 2 * x]))", scope)
        f(x)
        grad(lambda x, f=f: (f(x), x)[1])(x)
        assert seen[0] == seen[1], line


def test_a_number_of_pythons_takes_the_precision_that_it_takes_plainly():
    for line in lines(OF_TWO_KINDS):
        made, seen = eval(f"lambda x, h, r: {line}", {"np": np}), []

        def f(x, made=made, seen=seen):
            h = np.float32(x)
            y = made(x, h, np.array([h, 2 * h]))
            seen.append((shown(y), np.array(y).tolist()))
            return x

        f(0.7)
        grad(f)(0.7)
        assert seen[0] == seen[1], line


def test_a_view_without_axes_is_written_through():
    views = (
        lambda y: y[1:2].squeeze(),
        lambda y: np.squeeze(y[1:2]),
        lambda y: y[1:2].reshape(()),
        lambda y: np.reshape(y[1:2], ()),
        lambda y: y[1, ...],
    )
    for view in views:

        def f(x, view=view):
            y = x * 1
            z = view(y)
            z *= 7
            y[0] = z
            return y @ x

        x = np.array([1.0, 2.0, 3.0])
        value, g = value_and_grad(f)(x)
        assert value == f(x.copy())
        np.testing.assert_allclose(g, [14.0, 28.0 + 7.0, 6.0])


FORMATS = ["'%s' % x", "'%.3f' % x", "'%5.2e|%g' % (x, x)", "'%(a).2f' % {'a': x}", "'%d' % x"]
FORMATS += ["b'%.2f' % x", "f'{x:.3f}'", "'{:g}'.format(x)", "str(x)"]


@pytest.mark.parametrize("text", FORMATS)
@pytest.mark.parametrize("x", [3.7, np.float64(3.7), np.float32(3.7)], ids=repr)
def test_texts_show_the_number(text, x):
    seen = []
    f = eval(f"lambda x: (seen.append({text}), x * len(seen[-1]))[1]", {"seen": seen})
    plain = f(x)
    assert value_and_grad(f)(x) == (plain, len(seen[0]))
    assert seen[0] == seen[1]


def test_further_arguments_in_a_list():
    """least_squares takes any sequence; the others take a list for one argument."""

    def fitted(a):
        found = scipy.optimize.least_squares(lambda x, b, c: x * c - b, np.zeros(1), args=[a, 2.0])
        return found.x[0]

    value, slope = value_and_grad(fitted)(3.0)
    assert value == pytest.approx(1.5)
    assert slope == pytest.approx(0.5)
    moved = lambda a: scipy.optimize.fixed_point(lambda x, b: 0.5 * x + b, 1.0, args=[a])  # noqa: E731
    assert grad(moved)(2.0) == pytest.approx(2.0)


def test_a_dict_that_grows_while_it_is_read():
    def f(x):
        try:
            for k in x:
                x[k + "z"] = 1.0
        except RuntimeError:
            return x["a"]
        return x["b"]

    assert f({"a": 0.5, "b": 1.5}) == 0.5
    assert value_and_grad(f)({"a": 0.5, "b": 1.5})[0] == 0.5


# --- arrays of objects: Python's operators calculate with their elements --------------------------

OF_OBJECTS = """
o * x; x * o; o + a; a + o; o - a; a - o; o ** x; x ** o; a / o; o / a; c * a; a ** c; o @ a; a @ o
np.dot(o, a); np.dot(a, c); np.multiply(o, a); np.maximum(o, x); np.multiply.outer(o, a)
np.concatenate([o, a]); np.where([True, False], o, a); np.stack([o, a]); np.add.reduce([o, a])
np.append(o, a); np.inner(o, a); np.outer(a, o); np.vdot(c, a); np.tensordot(o, a, 1); np.sum(o * a)
o < a * 2; x < o; a == o; np.less(o, x); o // a; a[:, None] * o; np.hstack([a, o]); np.cumsum(o * a)
"""


def test_an_array_of_objects_is_calculated_with_element_by_element():
    for line in lines(OF_OBJECTS):
        made, seen = eval(f"lambda x, a, o, c: {line}", {"np": np}), []

        def f(x, made=made, seen=seen):
            y = made(
                x, np.array([x, 2 * x]), np.array([x, x + 1], object), np.array([2, 3], object)
            )
            seen.append((np.shape(y), str(getattr(y, "dtype", ""))))
            return float(np.sum(np.multiply(y, 1.0))) + x

        value, slope = value_and_grad(f)(1.5)
        assert value == f(1.5), line
        assert seen[0] == seen[-1], line
        assert type(slope) is float, line
        assert slope == pytest.approx((f(1.5 + 1e-6) - f(1.5 - 1e-6)) / 2e-6, abs=1e-6), line


# --- arrays that NumPy does not copy --------------------------------------------------------------

SHARED = np.ones(3)


class Tells:
    """An array by its `__array__`, which notes what it was asked."""

    def __init__(self, made):
        self.made, self.asked = made, []

    def __array__(self, dtype=None, copy=None):
        self.asked.append((dtype, copy))
        return np.copy(self.made) if copy and isinstance(self.made, np.ndarray) else self.made


MAKERS = [
    lambda v: np.array(v, copy=None),
    lambda v: np.array(v, copy=False),
    np.array,
    np.asarray,
    np.asanyarray,
    np.atleast_1d,
    lambda v: np.array(v, dtype=float),
    lambda v: np.array(v, order="F", copy=None),
    lambda v: np.array(v, np.float32),
    lambda v: np.asarray(v, np.float32),
    lambda v: np.require(v),
]


@pytest.mark.parametrize("source", ["the array", "its memory", "a class", "a class of a new one"])
@pytest.mark.parametrize("make", MAKERS)
def test_an_array_is_new_where_it_is_plainly(make, source):
    def f(x):
        SHARED[:] = 1.0
        told = Tells(np.ones(3) if source == "a class of a new one" else SHARED)
        v = {"the array": SHARED, "its memory": memoryview(SHARED)}.get(source, told)
        y = make(v)
        seen.append((told.asked, np.shape(y), str(y.dtype), y is told.made, y is SHARED))
        y[0] = x
        return 2.0 * float(told.made[0]) + 3.0 * float(SHARED[0]) + y[0]

    seen = []
    plain = f(1.5)
    try:
        outcome = value_and_grad(f)(1.5)
    except DetachError as e:
        outcome = e.message
    if isinstance(outcome, str):  # a plain array was to be written
        assert "plain array" in outcome
    else:
        value, slope = outcome
        assert value == plain
        assert slope == pytest.approx((f(2.5) - plain) / 1.0)
    assert seen[0] == seen[1]


@pytest.mark.parametrize("told", [None, 1.0, [1.0], "one"])
def test_what_a_class_says_is_refused_as_numpy_refuses_it(told):
    for make in (*MAKERS, lambda v: np.add(v, 1.0)):
        with pytest.raises(ValueError, match="__array__ method not producing an array") as plainly:
            make(Tells(told))
        with pytest.raises(ValueError, match=re.escape(str(plainly.value))):
            grad(lambda x, make=make: (make(Tells(told)), x)[1])(1.0)


NEITHER_COPIED = [
    lambda x: np.array(x, copy=False),
    lambda x: np.array([x], copy=False),
    lambda x: np.array(np.array([x]), dtype=np.float32, copy=False),
    lambda x: np.array(np.array([x]), dtype=int, copy=False),
    lambda x: np.array(np.array([[x, x], [x, x]]), order="F", copy=False),
]


@pytest.mark.parametrize("make", NEITHER_COPIED)
def test_a_copy_that_must_not_be_is_refused_as_numpy_refuses_it(make):
    for f in (make, grad(make)):
        with pytest.raises(ValueError, match="Unable to avoid copy"):
            f(1.0)


# --- other types, and the memory ------------------------------------------------------------------


@pytest.mark.parametrize("size", [3, 1000, 20_001, 70_000])
@pytest.mark.parametrize("mean", [np.mean, lambda y: y.mean(), lambda y: np.mean(y, 0)])
def test_the_mean_of_half_precision_is_that_of_single(mean, size):
    weights = np.random.default_rng(size).uniform(1, 2, size).astype(np.float16)
    value, slope = value_and_grad(lambda x: mean(x * weights))(np.float16(1.5))
    plain = mean(np.float16(1.5) * weights)
    assert value == plain < 4
    assert value.dtype == slope.dtype == plain.dtype == np.float16
    assert abs(slope - weights.mean(dtype=float)) < 1e-2


@pytest.mark.parametrize("order", "<>=")
def test_the_order_of_bytes_is_kept_or_refused(order):
    for make in (np.zeros, np.ones, np.empty):
        seen = []

        def f(x, make=make, seen=seen):
            y = make(3, f"{order}f8")
            seen.append(y.dtype.byteorder)
            y[:] = x
            return y.sum()

        plain = f(1.5)
        try:
            assert grad(f)(1.5) == 3.0
            assert f(1.5) == plain
        except DetachError:
            assert order == ">"
        assert len(set(seen)) == 1


ERRORS = """
bool(np.empty((3, 0)) * x); bool(np.empty(0)); bool(a); int(a); del_(a, 0); del_(a, slice(2))
del_(a.flat, 0); np.ones((1,) * 64).flat; np.arange(0.0, 10.0, 0.0); np.arange(x, x + 1, 0 * x)
np.dot(m, m, np.empty((4, 4))[::2, ::2]); np.dot(m, m, np.empty((2, 2)).T)
np.dot(m, m, np.empty(2)); np.dot(m, m, np.empty((2, 2), np.float32))
np.dot(m, m, np.empty((2, 2), int)); bool(np.zeros(2)); np.add(a); np.sin(); np.add(a, a, a, a)
np.add(a, a, None, out=a); np.sin(a, a, a); np.add(a, 1, out=()); np.add(a, 1, out=[0.0])
np.negative(a, out=(...,)); np.divmod(a, 2, out=(a, ...)); np.frexp(a, out=a)
np.add(a, 1, out=(a, a)); np.add(a.astype("f4"), a, casting="no"); np.sqrt(a, signature="d")
np.sqrt(a.astype(">f8"), casting="no"); np.sqrt(a, dtype="f4", casting="safe")
np.require(a, None, "Q"); np.require(a, None, ["C", "F"]); np.minimum(a, a, 1, a, 1)
"""


def test_errors_are_those_of_numpy():
    scope = {"np": np, "del_": operator.delitem}
    for line in lines(ERRORS):
        made = eval(f"lambda x, a, m: {line}", scope)

        def f(x, made=made):
            made(x, np.array([x, x]), np.full((2, 2), x))
            return x

        with pytest.raises(
            (ValueError, TypeError, KeyError, RuntimeError, ArithmeticError)
        ) as plainly:
            f(1.5)
        with pytest.raises(type(plainly.value)):
            grad(f)(1.5)


def test_einsum_of_one_array_is_written_into_out():
    def f(x):
        y = np.ones((2, 2))
        np.einsum("iijj->ij", x, out=y)
        return np.sum(y * y)

    x = np.arange(16.0).reshape(2, 2, 2, 2)
    value, slopes = value_and_grad(f)(x)
    assert value == f(x)
    np.testing.assert_array_equal(slopes, 2 * x * np.einsum("ij,kl->ijkl", np.eye(2), np.eye(2)))


class Own(np.ndarray):
    """A class of arrays, which results are of."""


class Wrapping:
    """An array by its `__array__`, which makes results objects of its class."""

    def __array__(self, dtype=None, copy=None):
        return np.ones(2)

    def __array_wrap__(self, array, context=None, return_scalar=False):
        return [array]


OF_A_CLASS = """
a * o; o * a; a + o; np.add(o, a); np.concatenate([o, a]); o @ a; np.sum(o * x); np.hypot(a, o)
np.minimum(a, w); np.add(w, a); np.multiply.outer(w, a)
"""


def test_a_result_that_would_be_of_another_class_is_refused():
    for line in lines(OF_A_CLASS):
        made = eval(f"lambda x, a, o, w: {line}", {"np": np})

        def f(x, made=made):
            made(x, np.array([x, x]), np.array([1, 2]).view(Own), Wrapping())
            return x

        with pytest.raises(NoRuleError, match="has rules of its own"):
            grad(f)(1.5)


def test_an_array_that_must_own_its_memory_is_refused():
    with pytest.raises(NoRuleError, match=r"require: .*; take a.copy\(\)"):
        grad(lambda x: np.require(np.array([x, x]), None, "O")[0])(1.0)


def test_the_size_in_memory_is_refused():
    for made in (lambda x: x, lambda x: np.array([x]), lambda x: np.zeros(3)):
        with pytest.raises(NoRuleError, match=r"sys.getsizeof: .*; use nbytes"):
            grad(lambda x, made=made: x * sys.getsizeof(made(x)))(1.0)
