"""Differentiations within traces, traces within differentiations, and branches of both."""

import warnings

import numpy as np
import pytest
from test_trace import close

import lineara
from lineara import cond, switch, vmap
from lineara.errors import LeakedVariableError, LinearityError, StagingError

UP, DOWN = np.array([0.7, 1.9]), np.array([0.7, -1.9])


def branches(x):
    s = x[0] * 2  # captured by both branches
    return cond(x[1] > 0, lambda y: np.log(x[1]) * s * y, lambda y: s * s * y, x[0])


def chooses(x):
    fs = [lambda y: y["a"] * x, lambda y: np.exp(y["a"]) * y["b"], lambda y: x * x[0]]
    return np.sum(switch(np.argmax(x), fs, {"a": np.sin(x), "b": x[1]}) ** 2)


def nested(x):
    def inner(y):
        return cond(y > 1, lambda: np.log(y) * x[1], lambda: y * y)

    return cond(x[0] < 1, lambda: inner(x[0] + 1) * x[1], lambda: inner(x[1]))


def several(x):
    a, b = cond(x[1] > 0, lambda: (np.sin(x), x[0] ** 2), lambda: (x * x[1], 1.0))
    return np.sum(a) * b


FUNCTIONS = [branches, chooses, nested, several]
BY_NAME = pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)


@BY_NAME
def test_a_gradient_within_a_trace_to_the_third_order(f):
    def squared(g):
        return lambda v: np.sum(lineara.grad(g)(v) ** 2)

    second = squared(f)
    for g in (second, squared(second)):
        program, staged = lineara.trace(g, UP), lineara.grad(g, policy="store_all")
        for x in (UP, DOWN):
            close(program(x), g(x))
            close(staged(x), lineara.grad(g)(x))


@BY_NAME
def test_other_derivatives_within_a_trace(f):
    for g in (
        lineara.hessian(f),
        lambda v: lineara.jvp(f, (v,), (np.cos(v),))[1],
        lambda v: lineara.vjp(lambda u: f(u) * u, v)[1](v)[0],
    ):
        program = lineara.trace(g, UP)
        for x in (UP, DOWN):
            close(program(x), g(x))


@BY_NAME
def test_lanes_of_gradients(f):
    a = np.array([UP, DOWN, UP * 0.3])
    close(vmap(lineara.grad(f))(a), np.array([lineara.grad(f)(row) for row in a]))


def test_a_branch_that_is_not_taken_is_not_run():
    """Of what a differentiation around the lanes gives, too: there is no logarithm of -1."""

    def f(s, a):
        return np.sum(vmap(lambda x: cond(x > 0, lambda: np.log(s) * x, lambda: s * x))(a))

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        value, g = lineara.value_and_grad(f, (0, 1))(-1.0, np.array([-2.0, -3.0]))
        inner = lineara.trace(lambda x: lineara.grad(lambda v: branches(v))(x), UP)(DOWN)
    assert value == 5.0
    assert g[0] == -5.0
    assert g[1].tolist() == [-1.0, -1.0]
    close(inner, lineara.grad(branches)(DOWN))


def test_a_traced_function_is_differentiated_and_traced_as_any():
    t = lineara.trace(branches, UP)
    close(lineara.grad(t)(DOWN), lineara.grad(branches)(DOWN))
    close(lineara.hessian(t)(UP), lineara.hessian(branches)(UP))
    assert lineara.trace(lambda x: t(x) * 2, UP)(DOWN) == 2 * branches(DOWN)
    with pytest.raises(StagingError) as error:
        lineara.grad(lambda x: t(x))(np.ones(3))
    assert error.value.message == (
        "branches was traced for f64[2] at arguments[0][0], but was given f64[3]; trace it again "
        "for this type"
    )


def root(a):
    return lineara.while_loop(lambda c: abs(c * c - a) > 1e-12, lambda c: (c + a / c) / 2, a + 1)


def summed(a):
    s = np.sin(a)  # captured, of the differentiation

    def body(c):
        return (c[0] + a / c[0]) / 2, c[1] + s * c[0], c[2] + 1

    found = lineara.while_loop(lambda c: abs(c[0] ** 2 - a) > 1e-12, body, (a + 1, 0, 0))
    return found[1] * found[2]


@pytest.mark.parametrize("f", [root, summed])
def test_a_loop_of_unknown_length_in_a_differentiation_in_a_trace(f):
    """It is one operation there, of which every order is a pass."""
    a = np.array([2.0, 9.0, 30.0])
    first = lineara.grad(f)
    for g in (first, lineara.grad(first)):
        expected = np.array([g(v) for v in a])
        close([lineara.trace(g, a[0])(v) for v in a], expected, 1e-9)
        close(vmap(g)(a), expected, 1e-9)  # where lanes stack different rounds, in turn
        close(lineara.trace(vmap(g), a)(a), expected, 1e-9)
        close(lineara.grad(g, policy="store_all")(9.0), lineara.grad(g)(9.0), 1e-8)
    close(lineara.trace(lambda v: lineara.jvp(f, (v,), (2.0,))[1], 2.0)(9.0), 2 * first(9.0))


def tower(floors):
    f = lineara.function(lambda x: x * x * 0.5)
    for _ in range(floors):
        f = lineara.function(lambda x, f=f: f(f(x)) + 1.0)
    return f


@pytest.mark.parametrize("order", [1, 2])
def test_what_calls_a_function_twice_is_not_twice_as_long(order):
    """2**n calls are 2 n in the text of a gradient of any order, as in that of the value."""
    sizes = []
    for floors in (2, 3, 4):
        g = tower(floors)
        for _ in range(order):
            g = lineara.grad(g)
        program = lineara.trace(g, 0.3)
        close(program(0.4), g(0.4))
        sizes.append(len(program.program.defs))
    assert sizes[1] - sizes[0] == sizes[2] - sizes[1]


def test_a_root_by_a_loop_in_a_trace_has_the_derivative_of_a_root():
    close(lineara.trace(lineara.grad(root), 2.0)(5.0), 5**-0.5 / 2)
    close(lineara.trace(lineara.grad(lineara.grad(root)), 2.0)(5.0), -(5**-1.5) / 4, 1e-6)


@pytest.mark.parametrize("f", [root, summed, lambda v: cond(v > 3, np.log, np.square, v)])
def test_lanes_in_a_differentiation_in_a_trace(f):
    a = np.array([2.0, 9.0, 30.0])

    def whole(a):
        return np.sum(np.sin(vmap(f)(a)))

    for g in (
        lineara.grad(whole),
        lambda v: lineara.hvp(whole)(v, np.cos(v)),
        lambda v: lineara.jvp(whole, (v,), (np.cos(v),))[1],
        lineara.jacobian(lambda v: vmap(f)(v * v[::-1])),
    ):
        close(lineara.trace(g, a)(a), g(a), 1e-9)


def test_an_array_in_which_nothing_moved_yet_takes_values_of_two_levels():
    """Its values were plain; what is written into it is of the outer differentiation too."""

    def f(x, s):
        y = np.copy(np.roll(x, 1) * 1.0)
        y[0] = np.sin(s) * y[1]
        y[1:] *= (x * s)[1:]
        return np.sum(y)

    x = np.array([0.5, 2.0, 3.0])

    def exact(s):  # d/ds of sin(s) x[0] + x[0] x[1] s + x[1] x[2] s
        return np.cos(s) * x[0] + x[0] * x[1] + x[1] * x[2]

    def slope(s):
        return lineara.jvp(f, (x, s), (np.zeros(3), 1.0))[1]

    close(slope(0.7), exact(0.7))
    close(lineara.grad(slope)(0.7), -np.sin(0.7) * x[0])
    close(lineara.trace(slope, 0.1)(0.7), exact(0.7))


def test_a_branch_writes_into_copies_of_what_is_around_it():
    def f(x):
        z = x * 2.0

        def written():
            y = np.copy(z)
            y[0] = x[1]
            np.add.at(y, [0, 0, 2], x)
            return np.array(z)[0] * y

        return np.sum(cond(x[0] > 0, written, lambda: z))

    x = np.array([0.5, 2.0, 3.0])
    for g in (f, lineara.grad(f)):
        for v in (x, -x):
            close(lineara.trace(g, x)(v), g(v))
            close(vmap(g)(np.stack([v, x])), [g(v), g(x)])


def still(x):
    """An array of what does not move, which a trace knows as a value of the program."""
    y = np.zeros_like(x)
    y[2] -= np.sum(np.argsort(x) * 0.3)
    return y


def by_number(x, s):
    y = still(x) * 1.0
    y[0] = np.tanh(s)
    return np.sum(y * s)


def by_part(x, s):
    y = still(x) * 1.0
    y[1:] += s * x[1:]
    y[[0, 2]] *= s
    return np.sum(y * s)


def by_views(x, s):
    y = np.copy(still(x) + 1)
    turned, column = y[::-1], y.reshape(3, 1)
    y[0] = s
    turned[1] = x[0] * s
    column[2, 0] *= s
    return np.sum(y * s) + turned @ turned + np.sum(column**3)


def by_functions(x, s):
    y = np.exp(still(x))
    np.add.at(y, [0, 0, 1], s)
    np.multiply(y, s, out=y)
    np.copyto(y[1:], x[1:])
    y /= s
    return np.sum(y * y)


def by_rows(x, s):
    y = np.exp(still(x))
    z = np.outer(y, y)
    z[1] = x
    z.T[0] += s
    z[0, 0] = y[1]
    return np.sum(z * z * s)


def in_branches_and_loops(x, s):
    b = np.exp(still(x))

    def g(u):
        y = b * 1.0
        y[0] = s * u
        y[1:] *= u
        return np.sum(y * u)

    def step(c):
        y = np.copy(b)
        y[0] = c[1]
        return c[0] + np.sum(y), c[1] * 0.9

    once = cond(s > 0, g, lambda u: u, s) + switch(np.argmax(x), [g, g, np.sin], s)
    again = lineara.fori_loop(0, 2, lambda i, c: cond(c > 0, g, g, c), s * 0.1)
    return once + again + lineara.while_loop(lambda c: c[0] < 4.0, step, (s, s))[0]


WRITING = [by_number, by_part, by_views, by_functions, by_rows, in_branches_and_loops]


@pytest.mark.parametrize("f", WRITING, ids=lambda f: f.__name__)
def test_what_does_not_move_takes_what_does_as_it_does_without_a_trace(f):
    """An array that the differentiated function makes of values of the program is its own."""
    x, s = np.array([1.0, 3.0, 2.0]), 0.5

    def bent(x, s):
        a, b = lineara.grad(f, argnums=(0, 1))(x, s)
        return a @ x + b * b

    for g in (f, bent):
        slope = lineara.grad(g, argnums=(0, 1))
        for found, expected in zip(lineara.trace(slope, x, s)(x, s), slope(x, s), strict=True):
            close(found, expected)


def test_what_was_made_outside_of_a_differentiation_in_a_trace_takes_nothing_of_it():
    def f(x):
        outside = x * 1.0
        view = outside[1:]

        def whole(s):
            outside[0] = s
            return s

        def other(s):  # made in a differentiation that is over
            kept[0][0] = s
            return s

        def keeps(s):
            kept.append(np.copy(outside))
            return s

        kept = []
        lineara.grad(keeps)(x[0])
        for g in (whole, lambda s: np.add.at(view, [0], s), other):
            with pytest.raises(LeakedVariableError, match="of an inner differentiation"):
                lineara.grad(g)(x[1])
        return np.sum(outside)

    x = np.array([1.0, 3.0, 2.0])
    close(lineara.trace(f, x)(x), 6.0)


def test_whole_numbers_fill_and_find():
    def f(x):
        y = np.zeros(3)
        y[:2] = x[:2] ** 2
        i = np.argmax(x)
        return y[i] * np.sum(np.full(2, i) * x[:2]) + y[np.array([i, 0])][0]

    x = np.array([0.5, 2.0, 1.0])  # y[1] (x[0] + x[1]) + y[1]
    for g in (lineara.grad(f), lineara.trace(lineara.grad(f), x[::-1].copy())):
        close(g(x), [4.0, 2 * 2.0 * 3.5 + 4.0, 0.0])


def test_a_batch_rule_that_needs_the_number_of_lanes_goes_from_lane_to_lane():
    def f(x):
        return np.sum(cond(x[0] > 0, lambda: np.convolve(x, x), lambda: np.zeros(5) * x[0]))

    a = np.array([[1.0, 2.0, 3.0], [-1.0, 1.0, 1.0], [2.0, 0.5, 0.5]])
    close(vmap(f)(a), [36.0, 0.0, 9.0])
    close(
        lineara.grad(lambda a: np.sum(vmap(f)(a)))(a), np.array([[12.0], [0.0], [6.0]]) * np.ones(3)
    )


def test_a_linear_function_has_no_loop_of_unknown_length():
    def f(n, x):
        def halved(v):
            return lineara.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] / 2), (0.0, v))

        return lineara.linear_transpose(lambda v: halved(v)[1], 1.0)(x)

    assert f(3.0, 2.0) == (0.25,)
    with pytest.raises(LinearityError) as error:
        lineara.trace(f, 3.0, 2.0)
    assert error.value.message == (
        "function: a staged condition ends a loop of a linear function, whose arguments have no "
        "values here; let the rule loop with lineara.fori_loop"
    )


def test_a_trace_within_a_differentiation_takes_the_types_of_its_arguments():
    def f(x, d):
        return lineara.trace(lambda y, e: y * y * e["a"], x, d)(x, d)

    d = {"a": 2.0}
    assert lineara.grad(f)(3.0, d) == 12.0
    assert lineara.grad(lineara.grad(f))(3.0, d) == 4.0
    assert lineara.trace(f, 3.0, d)(4.0, d) == 32.0
    assert vmap(f, (0, None))(np.arange(3.0), d).tolist() == [0.0, 2.0, 8.0]
    with pytest.raises(LeakedVariableError) as error:
        lineara.grad(lambda x: lineara.trace(lambda y: y * x, 2.0)(3.0))(3.0)
    assert error.value.message == (
        "a value of a differentiation around this trace was used in it; pass it as an argument of "
        "the traced function"
    )
