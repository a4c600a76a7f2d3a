"""sparse_rule: an edge from places and values, in every mode and at every order."""

import numpy as np
import pytest

import lineara
from lineara import Coo, Rows, sparse_rule
from lineara.errors import NoRuleError, RuleError, StagingError, TypeMismatchError

X = np.arange(12.0).reshape(4, 3) / 7
AT, TO = np.array([2, 0, 2]), np.array([1, 1, 0])
LEFT, RIGHT = np.array([1, 2]), np.array([0, 3])

# The function, its places and values, the class of the cotangent.
CASES = {
    "a row": (lambda x: np.sin(x[1]), lambda x: (1, np.cos(x[1])), Rows),
    "from the end": (lambda x: np.sin(x[-1]), lambda x: (-1, np.cos(x[-1])), Rows),
    "rows": (lambda x: x[AT] ** 2, lambda x: (AT, 2 * x[AT]), Rows),
    "cells": (lambda x: 3 * x[AT, TO], lambda x: ((AT, TO), 3.0), Coo),
    "a sum of rows": (lambda x: np.sum(x[AT] ** 3), lambda x: (AT, 3 * x[AT] ** 2), Rows),
    "products of cells": (
        lambda x: x[LEFT, 0] * x[RIGHT, 1],
        lambda x: (
            (np.stack([LEFT, RIGHT], 1), np.array([[0, 1]])),
            np.stack([x[RIGHT, 1], x[LEFT, 0]], axis=1),
        ),
        Coo,
    ),
}
ORDERS = {
    "jvp": lambda f: lambda x: lineara.jvp(f, (x,), (np.cos(x),))[1],
    "hessian": lineara.hessian,
    "gradient of a gradient": lambda f: lineara.grad(lambda x: np.sum(lineara.grad(f)(x) ** 2)),
    "staged": lambda f: lineara.jit(lineara.grad(f)),
    "lanes": lambda f: lambda x: lineara.vmap(lineara.grad(f))(np.stack([x, x + 1])),
}


def loss(f):
    return lambda x: np.sum(np.sin(f(x)) * 2.0)


@pytest.mark.parametrize("name", CASES)
def test_the_gradient_is_that_of_the_function_in_its_class(name):
    f, edge, kind = CASES[name]
    rule = sparse_rule(f, edge, example=(X,))
    with lineara.strict():
        g = lineara.grad(loss(rule), sparse=True)(X)
    assert type(g) is kind
    np.testing.assert_allclose(np.asarray(g), lineara.grad(loss(f))(X), rtol=1e-13)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("order", ORDERS)
def test_every_mode_and_order_follows(name, order):
    f, edge, _ = CASES[name]
    way = ORDERS[order]
    expected = way(loss(f))(X)
    np.testing.assert_allclose(way(loss(sparse_rule(f, edge)))(X), expected, rtol=1e-12, atol=1e-14)


def test_of_three_axes_and_of_complex_numbers():
    x = np.arange(24.0).reshape(2, 3, 4)
    rule = sparse_rule(lambda x: 3 * x[TO[:2], 2], lambda x: ((TO[:2], 2), 3.0))
    g = lineara.grad(lambda x: np.sum(rule(x) ** 2), sparse=True)(x)
    assert type(g) is Coo
    expected = lineara.grad(lambda x: np.sum((3 * x[TO[:2], 2]) ** 2))(x)
    np.testing.assert_allclose(np.asarray(g), expected)
    z = np.array([1 + 1j, 2 - 1j])
    square = sparse_rule(lambda z: z[1] ** 2, lambda z: (1, 2 * z[1]))
    actual = lineara.grad(lambda z: square(z).real)(z)
    np.testing.assert_allclose(actual, lineara.grad(lambda z: (z[1] ** 2).real)(z))


WRONG = {
    "places of a slice": (
        lambda x: (slice(0, 2), 1.0),
        TypeMismatchError,
        "sparse_rule(double): places are integers or arrays of them, one for each of the first "
        "axes of an array of the shape (4, 3); found slice",
    ),
    "no values": (
        lambda x: AT,
        RuleError,
        "sparse_rule(double): edge must return (places, values), but it returned i64[3]",
    ),
    "values of another shape": (
        lambda x: (AT, np.ones(5)),
        RuleError,
        "sparse_rule(double): the values have the shape (5,) and x[places] (3, 3); the first must "
        "broadcast to the second",
    ),
    "places of another shape": (
        lambda x: (np.array([[1]]), 1.0),
        RuleError,
        "sparse_rule(double): x[places] has the shape (1, 1, 3) and the result (3,); the first "
        "must begin with the second",
    ),
}


def double(x):
    return 2 * x[1]


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_edge_is_refused(name):
    edge, kind, message = WRONG[name]
    with pytest.raises(kind) as e:
        lineara.grad(lambda x: np.sum(sparse_rule(double, edge, check=False)(x)))(X)
    assert e.value.message == message


def test_wrong_values_and_places_are_seen():
    with pytest.raises(RuleError, match=r"sparse_rule\(double\): edge says that <J\^T w, v> is"):
        sparse_rule(double, lambda x: (1, 3.0), example=(X,))
    with pytest.raises(RuleError, match=r"sparse_rule\(double\): edge says that <J\^T w, v> is"):
        sparse_rule(double, lambda x: (2, 2.0), example=(X,))
    with pytest.raises(IndexError, match=r"sparse_rule\(double\): a place is not on an axis of 4"):
        sparse_rule(double, lambda x: (4, 2.0), example=(X,))


def test_other_arguments_have_no_derivative():
    def times(x, a):
        return a * x[1]

    rule = sparse_rule(times, lambda x, a: (1, a))
    np.testing.assert_array_equal(lineara.grad(lambda x: np.sum(rule(x, 2.0)))(X)[1], 2.0)
    np.testing.assert_array_equal(lineara.grad(lambda x: np.sum(rule(a=2.0, x=x)))(X)[1], 2.0)
    with pytest.raises(NoRuleError) as e:
        lineara.grad(lambda a: np.sum(rule(X, a)))(2.0)
    assert e.value.message == (
        "sparse_rule(times): no derivative with respect to the argument `a`, for places and values "
        "are those of the first one; give it a plain value, or declare a custom_vjp"
    )


def test_places_that_a_program_computes_are_refused():
    largest = sparse_rule(lambda x: x[np.argmax(x)], lambda x: (np.argmax(x), 1.0))
    x = np.array([1.0, 3.0, 2.0])
    assert lineara.grad(largest, sparse=True)(x) == Rows([1], [1.0], (3,))
    with pytest.raises(StagingError) as e:
        lineara.trace(lineara.grad(largest), x)
    assert e.value.message == (
        "sparse_rule(<lambda>): a program computes these places, and a rule of places needs to "
        "know them; call it outside of jit, trace and vmap, or index x without a rule"
    )
