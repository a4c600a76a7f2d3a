"""A refusal that an `except` has caught comes out when the function returns."""

import contextlib
import ctypes
import math
import re
import threading
from array import array
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from decimal import Decimal

import numpy as np
import pytest
from numpy.linalg import lapack_lite

import lineara.errors
from lineara import custom_vjp, grad, hessian, linearize, stop_gradient, value_and_grad
from lineara.errors import DetachError
from lineara.tape.levels import threads
from lineara.tape.swallowed_errors import MANY

A = np.array([1.0, 2.0])


@pytest.fixture(autouse=True)
def nothing_is_remembered_after_a_trace():
    yield
    assert not threads.refused


def foreign(x):
    return array("d", [x])[0]  # C code, which asks for a plain number


def careless(x):
    try:
        return foreign(x) ** 2
    except Exception:
        return 0.0 * x


def test_an_except_in_the_same_function(said):
    def f(x):
        try:
            y = np.sum(np.asmatrix(x))
        except NotImplementedError:
            y = np.sum(x)
        return y

    assert said(lambda: grad(f)(A)) == (
        "NoRuleError: numpy.asmatrix of a traced value has no derivative rule; np.matrix has "
        "rules of its own; use np.block, arrays and @; an `except` around that line caught this "
        "refusal, and the function went on where plain numbers do not come; let it pass, or name "
        "NoRuleError in the function that catches it, if the result is right without"
        "\n  at f: y = np.sum(np.asmatrix(x))"
    )


def test_an_except_further_out(said):
    found = said(lambda: grad(careless)(2.0))
    assert re.search(
        r"; an `except` around test_swallowed.py:\d+ in careless: return foreign\(x\) \*\* 2 "
        r"caught this refusal, .*\n  at foreign: return array\(\"d\", \[x\]\)\[0\]",
        found,
    )


def test_it_is_chained_to_the_refusal():
    with pytest.raises(DetachError) as caught:
        grad(careless)(2.0)
    assert type(caught.value.__cause__) is DetachError


def test_plain_values_are_not_refused():
    assert careless(2.0) == 4.0
    assert grad(lambda x: x * careless(stop_gradient(x)))(2.0) == 4.0


def test_who_names_the_error_means_it():
    def by_class(x):
        try:
            return foreign(x) ** 2
        except DetachError:
            return x * x

    def by_attribute(x):
        with contextlib.suppress(lineara.errors.LinearaError):
            return foreign(x) ** 2
        return x * x

    assert (grad(by_class)(3.0), grad(by_attribute)(3.0)) == (6.0, 6.0)


def test_a_base_class_of_pythons_does_not_name_it():
    def f(x):
        with contextlib.suppress(TypeError):
            return foreign(x) ** 2
        return x * x

    with pytest.raises(DetachError, match="caught this refusal"):
        grad(f)(3.0)


@pytest.mark.parametrize(
    "differentiate",
    [grad(careless), value_and_grad(careless), lambda x: linearize(careless, x), hessian(careless)],
)
def test_every_way_to_differentiate(differentiate):
    with pytest.raises(DetachError, match="caught this refusal"):
        differentiate(2.0)


def test_a_library_that_tries_and_goes_on():
    text = "def number(x):\n try:\n  return foreign(x)\n except TypeError:\n  return 1.0"
    scope = {"foreign": foreign}
    exec(compile(text, "/lib/site-packages/lib.py", "exec"), scope)
    with pytest.raises(DetachError, match=r"around lib.py:3 in number caught"):
        grad(lambda x: scope["number"](x) * x)(2.0)


def test_compiled_code_that_drops_errors():
    asks = ctypes.pythonapi.PyObject_HasAttrString
    asks.argtypes = [ctypes.py_object, ctypes.c_char_p]

    def f(x):
        return 0.0 * np.sum(x) if asks(x, b"__array_interface__") else np.sum(x)

    with pytest.raises(DetachError, match="compiled code called there caught this refusal"):
        grad(f)(A)


def test_inner_differentiations():
    def inner(x):
        return x * grad(careless)(x)

    def around(x):
        try:
            return grad(foreign)(x)
        except Exception:
            return x

    for f in (inner, around):
        with pytest.raises(DetachError, match="caught this refusal"):
            grad(f)(2.0)


def test_an_error_of_the_users_own_comes_first():
    with pytest.raises(ZeroDivisionError):
        grad(lambda x: 1.0 / [careless(x), 0][1])(2.0)
    assert grad(lambda x: x * x)(3.0) == 6.0


def test_an_error_made_of_the_refusal_is_not_swallowed():
    def f(x):
        try:
            return foreign(x)
        except TypeError as e:
            raise KeyError("mine") from e

    with pytest.raises(KeyError):
        grad(f)(2.0)


def test_in_a_generator():
    def values(x):
        for k in range(3):
            try:
                yield foreign(x) ** k
            except TypeError:
                yield k * x

    with pytest.raises(DetachError, match=r"an `except` around .* caught"):
        grad(lambda x: sum(values(x)))(2.0)


def test_threads_do_not_meet():
    found = []

    def other():
        try:
            grad(careless)(2.0)
        except DetachError as e:
            found.append(e)

    def f(x):
        t = threading.Thread(target=other)
        t.start()
        t.join()
        return x * x

    assert grad(f)(3.0) == 6.0
    assert "caught this refusal" in str(found[0])


def test_questions_without_a_refusal_are_pythons_own():
    def f(x):
        y = getattr(x, "magnitude", x)
        try:
            y = x.to_base_units()
        except AttributeError:
            y = y * (1.0 if np.iterable(x) else 3.0)
        try:
            return np.sum(y[0:1, 0])
        except IndexError:  # so says NumPy
            return np.sum(y)

    assert np.array_equal(grad(f)(A), np.ones(2))


def test_ever_so_many_that_are_meant_are_not_kept():
    kept = []

    def f(x):
        y = 0.0
        for _ in range(3 * MANY):
            try:
                y += foreign(x)
            except DetachError:
                y += x
            kept.append(len(threads.refused))
        return y

    assert grad(f)(2.0) == 3.0 * MANY
    assert max(kept) <= MANY + 1


def test_our_own_code_may_try():
    @custom_vjp
    def f(x):
        return x * x

    f.defvjp(lambda x: (x * x, x), lambda x, y_bar: (2 * x * float(stop_gradient(y_bar)),))

    assert grad(f)(3.0) == 6.0
    assert hessian(f)(3.0) == 2.0


class Held:
    """What says that it is an array, and gives a traced one."""

    def __init__(self, v):
        self.v = v

    def __array__(self, dtype=None, copy=None):
        return self.v


@pytest.mark.parametrize("caught", ["KeyError", "ValueError", "Exception", "BaseException"])
def test_compiled_code_that_wants_numpys_own_array(caught):
    text = f"def f(x):\n try:\n  return wanted(x)\n except {caught}:\n  return 7.0 * x.sum()"
    scope = {"wanted": lambda x: np.sum(np.ma.masked_invalid(Held(x)))}
    exec(text, scope)
    assert scope["f"](A) == 3.0
    with pytest.raises(DetachError, match="compiled code takes no traced array"):
        grad(scope["f"])(A)


def test_lapack_wants_numpys_own_array():
    def size(x):  # of LAPACK's workspace
        work = np.zeros(1)
        lapack_lite.dgeqrf(2, 2, np.ones((2, 2)) * x, 2, np.zeros(2), work, -1, 0)
        return x * (work[0] > 0)

    assert size(2.0) == 2.0
    with pytest.raises(DetachError, match="takes no traced array: Expected an array for parameter"):
        grad(size)(2.0)


def test_errors_of_other_classes_that_only_a_traced_value_gets():
    def f(x):
        return np.array([x], object).astype("S").size * x

    def g(x):
        try:
            return f(x)
        except Exception:
            return 7 * x

    assert f(1.0) == g(1.0) == 1.0
    for h in (f, g):
        with pytest.raises(DetachError, match="an array element with a sequence"):
            grad(h)(1.0)


def test_a_function_that_goes_to_another_process():
    def f(x):
        with ProcessPoolExecutor(1) as pool:
            return x * pool.submit(math.floor, 2.5).result() + pool.submit(outside, 1).result()

    with pytest.raises(DetachError, match=r"Can't pickle .* start other processes outside of it"):
        grad(f)(1.0)


def outside(x):
    return x


def test_suppress_catches_as_except_does():
    def f(x, *errors):
        with contextlib.suppress(*errors):
            Decimal(x)
            return x
        return 3 * x

    def g(x):
        with suppress(TypeError, ValueError):
            return [2 * x, math.sqrt(-x)][0]
        return 3 * x

    assert f(2.0, TypeError) == 2.0
    for errors in [(TypeError,), (ZeroDivisionError, Exception), ()]:
        with pytest.raises(DetachError, match="takes no traced number"):
            grad(lambda x, e=errors: f(x, *e))(2.0)
    assert (g(2.0), grad(g)(2.0)) == (6.0, 3.0)


def test_a_plain_view_that_is_written(said):
    def f(x):
        out = np.ma.masked_array(np.ones(()))
        np.ma.median(np.ma.arange(30.0), out=out)
        return x * float(out)

    assert f(2.0) == 29.0
    assert said(lambda: grad(f)(2.0)) == (
        "MutationError: a plain view of an array that is made in a differentiated function was "
        "about to be overwritten, which is to be read only; give a plain copy, "
        "np.array(y.tolist())\n  at f: np.ma.median(np.ma.arange(30.0), out=out)"
    )
