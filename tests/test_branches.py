"""A traced value takes the branches that NumPy's value takes, or the question is refused."""

import builtins
import collections.abc
import copy
import functools
import numbers
import sys
from typing import Any, SupportsFloat

import numpy as np
import pytest

from lineara import grad, hessian, linearize
from lineara.errors import DetachError
from lineara.facts.registry import registry
from lineara.python.stand_ins import replacements
from lineara.tape.class_questions import class_shown

A = np.array([1.0, 2.0, 3.0])


@functools.singledispatch
def by_class(x):
    return 0.0 * x


@by_class.register(np.ndarray)
def _(x):
    return np.sum(x * x)


@by_class.register(float)
def _(x):
    return 5.0 * x


@by_class.register(list)
def _(x):
    return 7.0 * x[0]


class Model:
    @functools.singledispatchmethod
    def energy(self, x):
        return 0.0 * x

    @energy.register(np.ndarray)
    def _(self, x):
        return np.sum(x * x)

    @energy.register(numbers.Real)
    def _(self, x):
        return 5.0 * x


model = Model()
TABLE = {np.ndarray: lambda x: np.sum(x * x), float: lambda x: 5.0 * x}


def patterns(x):
    match x:
        case collections.abc.Sequence() | dict():
            return 0.0
        case np.ndarray(shape=(n,)) if n == 3:
            return np.sum(x * x)
        case int() | float():
            return 5.0 * x
        case _:
            return 0.0


def taken_apart(x):
    match x:
        case [a, *_, b]:
            return 3.0 * a + 5.0 * b
        case _:
            return np.sum(x * x)


@pytest.mark.parametrize("written", [False, True])
def test_an_array_is_taken_apart_where_numpys_is(written):
    """From NumPy 2.5 on a sequence pattern matches arrays."""

    def f(x):
        if not written:
            return taken_apart(x)
        y = np.zeros(3)
        y[:] = x
        return taken_apart(y)

    apart = taken_apart(A) == 3.0 * A[0] + 5.0 * A[2]
    assert np.array_equal(grad(f)(A), [3.0, 0.0, 5.0] if apart else 2.0 * A)
    assert grad(taken_apart)(np.float64(2.0)) == 4.0


def capture(x):
    match x:
        case float(v):
            return 5.0 * v
        case np.ndarray() as v:
            return np.sum(v * v)


def floating(x):
    match x:
        case np.floating():
            return 5.0 * x
        case np.ndarray():
            return np.sum(x * x)


def named(x):
    match x:
        case np.ndarray() if x.__class__ is np.ndarray:
            return np.sum(x * x)
        case _ if x.__class__ is float:
            return 5.0 * x


def made_inside(x):
    @functools.singledispatch
    def pick(v):
        return 0.0 * v

    @pick.register(float)
    def _(v):
        return 5.0 * v

    @pick.register(np.ndarray)
    def _(v):
        return np.sum(v * v)

    assert pick(2.0) == 10.0
    return pick(x)


def of_kind(*kinds):
    def ask(x):
        return (np.sum(x * x) if np.ndim(x) else 5.0 * x) if isinstance(x, kinds) else np.sum(x) * 0

    return ask


BOTH: dict[str, Any] = {
    "singledispatch": by_class,
    "singledispatch of a list": lambda x: by_class(x) + 0.0 * np.sum(by_class([x, x])),
    "singledispatchmethod": model.energy,
    "singledispatch made inside": made_inside,
    "patterns": patterns,
    "capture": capture,
    "__class__": named,
    "type": lambda x: TABLE[type(x)](x),
    "__class__ as a key": lambda x: TABLE[x.__class__](x),
    "isinstance": of_kind(np.ndarray, float),
    "SupportsFloat": of_kind(SupportsFloat),
    "copied": lambda x: by_class(copy.copy(x)),
    "copied deeply": lambda x: by_class(copy.deepcopy([x])[0]),
}


@pytest.mark.parametrize("name", BOTH)
def test_arrays_and_numbers_take_numpys_branch(name):
    f = BOTH[name]
    assert f(A) == 14.0
    assert np.array_equal(grad(f)(A), 2 * A)
    assert (f(2.0), grad(f)(2.0)) == (10.0, 5.0)


@pytest.mark.parametrize("name", BOTH)
def test_so_do_maps_and_second_derivatives(name):
    f = BOTH[name]
    assert np.array_equal(np.ones(()) @ linearize(f, A)[1], 2 * A)
    assert np.array_equal(hessian(f)(A), 2 * np.eye(3))


@pytest.mark.parametrize("name", BOTH)
def test_so_do_arrays_that_were_written(name):
    f = BOTH[name]

    def written(x):
        y = np.zeros(3)
        assert y.__class__ is np.ndarray
        y[:] = x
        return f(y)

    assert np.array_equal(grad(written)(A), 2 * A)


def test_a_traced_number_is_an_abstract_scalar_of_numpys():
    assert floating(np.float64(2.0)) == 10.0
    assert grad(floating)(np.float64(2.0)) == 5.0
    assert np.array_equal(grad(floating)(A), 2 * A)


ABSTRACT = [numbers.Number, numbers.Complex, numbers.Real, numbers.Rational, SupportsFloat]
# ByteString goes with Python 3.14, and warns of it before.
NAMES = [name for name in collections.abc.__all__ if name != "ByteString"]
ABSTRACT += [getattr(collections.abc, name) for name in NAMES]


@pytest.mark.parametrize("kind", ABSTRACT)
@pytest.mark.parametrize("value", [A, np.float64(2.0)])
def test_abstract_classes_hold_what_numpys_do(kind, value):
    def f(x):
        here = isinstance(x, kind)
        match x:
            case kind():
                assert here
            case _:
                assert not here
        return np.sum(x) * (2.0 if here else 1.0)

    assert np.all(grad(f)(value) == (2.0 if isinstance(value, kind) else 1.0))


def test_a_subclass_of_float_made_inside_is_a_class_of_its_own():
    def f(x):
        class Metres(float):
            pass

        assert not isinstance(x, Metres)
        assert not isinstance(2.0, Metres)
        assert {float: 1}.get(Metres) is None
        assert isinstance(Metres(2.0), Metres)
        return x * Metres(2.0)

    assert grad(f)(3.0) == 2.0


ASKED = ["__array_interface__", "__array_struct__", "__dlpack__", "__dlpack_device__", "data"]
ASKED += ["ctypes", "strides", "flags", "base", "tobytes"]


@pytest.mark.parametrize("name", ASKED)
def test_a_question_for_the_memory_is_refused_and_not_answered_with_no(name):
    assert hasattr(A, name)
    with pytest.raises(DetachError, match="was about to become a plain array"):
        grad(lambda x: np.sum(x * x) if hasattr(x, name) else 0.0 * np.sum(x))(A)


@pytest.mark.parametrize("name", [*ASKED, "__array__"])
def test_an_array_in_which_nothing_is_traced_answers(name):
    def f(x):
        y = np.zeros(3)
        return np.sum(x * x) if hasattr(y, name) else 0.0 * np.sum(x)

    assert np.array_equal(grad(f)(A), 2 * A)


@pytest.mark.parametrize("name", ["__cuda_array_interface__", "__array__", "itemsize"])
def test_a_question_with_numpys_answer(name):
    def f(x):
        return (2.0 if hasattr(x, name) else 1.0) * np.sum(x)

    assert np.array_equal(grad(f)(A), np.full(3, 2.0 if hasattr(A, name) else 1.0))


def test_whole_numbers_are_a_constant():
    assert grad(lambda x: 2.0 * x if x.is_integer() else x)(4.0) == 2.0
    assert grad(lambda x: 2.0 * x if x.is_integer() else x)(4.5) == 1.0


def test_the_matrix_product_in_place_reaches_the_alias():
    def f(x):
        y = x * 1.0
        z = y
        y @= np.array([[0.0, 1.0], [2.0, 0.0]])
        return np.sum(z * np.array([[1.0, 3.0], [0.0, 0.0]]))

    x = np.eye(2)
    assert f(x) == 3.0
    assert np.array_equal(grad(f)(x), [[3.0, 2.0], [0.0, 0.0]])


def products(x):
    for _ in range(20):
        x = np.tanh(np.eye(3) @ x)
    return np.sum(x)


def choices(x):
    for _ in range(20):
        x = np.concatenate([np.where(x > 0.5, x, x * 2), x])[:3]
    return np.sum(x)


def rows(x):
    y = np.zeros((21, 3))
    y[0] = x
    for i in range(20):
        y[i + 1] = y[i] * 0.5
    return np.sum(y)


def whole(x):
    y = np.zeros(3)
    for _ in range(20):
        y += x
    return np.sum(y)


@pytest.mark.parametrize("f", [products, choices, rows, whole])
def test_our_own_code_does_not_ask_for_the_class_at_every_operation(f):
    asked, g = [], grad(f)

    def watch(frame, event, _):
        if event == "call" and frame.f_code is class_shown.__code__:
            asked.append(frame.f_back)

    g(A)
    sys.setprofile(watch)
    try:
        g(A)
    finally:
        sys.setprofile(None)
    assert len(asked) < 15  # of 20 rounds


def imported(x):
    import numpy

    return 2 * x if numpy.zeros(2).dtype.type is numpy.float64 else x


def enclosed():
    np_ = np
    return lambda x: 2 * x if np.zeros(2).dtype.type is np_.double else x


def counting(x):
    global COUNTED
    COUNTED = type(x)
    y = x if x > 1 else -x
    return 2 * x if y is x and COUNTED is float else x


IDENTITIES = {
    "dtype.type": lambda x: 2 * x if np.zeros(2).dtype.type is np.float64 else x,
    "another name": lambda x: 2 * x if np.zeros(2).dtype.type is np.double else x,
    "another class": lambda x: x if np.zeros(2).dtype.type is np.float32 else 2 * x,
    "is not": lambda x: x if np.zeros(2).dtype.type is not np.float64 else 2 * x,
    "of a traced value": lambda x: 2 * x if np.asarray(x).dtype.type is np.float64 else x,
    "__class__ of a number": lambda x: 2 * x if (3.0).__class__ is float else x,
    "of another number": lambda x: x if (3).__class__ is float else 2 * x,
    "whole": lambda x: 2 * x if np.zeros(2, "i2").dtype.type is np.int16 else x,
    "builtins": lambda x: 2 * x if builtins.float is float else x,
    "type": lambda x: 2 * x if type(x) is float and type(abs(-3.0)) is float else x,
    "after or": lambda x: 2 * x if (None or np.zeros(2).dtype.type) is np.float64 else x,
    "one of two": lambda x: 2 * x if type(x) is (float if x > 1 else np.float64) else x,
    "the other of two": lambda x: x if np.dtype("i").type is (x if x < 1 else np.int8) else 2 * x,
    "in a loop": lambda x: sum(x for t in "fdFD" if np.dtype(t).type is not np.float64) - x,
    "imported inside": imported,
    "enclosed": enclosed(),
    "of a dtype that a call gives": lambda x: (
        2 * x if type(np.sin(np.ones(2) * x)[0]) is np.dtype("f8").type else x
    ),
    "of an element's class": lambda x: (
        2 * x if (x * np.ones(2))[0].__class__ is np.zeros((2, 2))[0, 0].__class__ else x
    ),
    "before a traced number's": lambda x: x if float is not x.__class__ else 2 * x,
    "before a dtype's": lambda x: x if np.float64 is not np.zeros(2).dtype.type else 2 * x,
    "of a choice": lambda x: (
        2 * x if type(x * np.ones(2)) is (type(x) if isinstance(x, int) else np.ndarray) else x
    ),
    "in a function that assigns a global": counting,
    "no class": lambda x: 2 * x if x is not float and None is not np.float64 else x,
}


@pytest.mark.parametrize("name", IDENTITIES)
def test_a_class_of_numbers_is_itself(name):
    f = IDENTITIES[name]
    assert (f(2.0), grad(f)(2.0)) == (4.0, 2.0)


def test_one_class_stands_for_a_class_of_numbers_wherever_it_is_asked():
    classes = [f for f in registry.foreign.values() if f.kind == "class"]
    table = replacements()
    assert all(
        table[id(f.original)] is f.stand_in is registry.number_class(f.original) for f in classes
    )
