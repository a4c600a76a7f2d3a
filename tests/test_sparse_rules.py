"""Rules of the user's whose cotangents are builders: they arrive as they are."""

import dataclasses

import numpy as np
import pytest

import lineara
from lineara import Coo, LowRank, Rows, Zero, custom_linear, custom_vjp, external
from lineara.errors import RuleError
from lineara.testing import check_builder, count_bytes

X = np.arange(12.0).reshape(4, 3) / 7
U, V = np.array([0.5, -1.0, 2.0, 0.1]), np.array([1.0, 0.2, -0.4])
AT = np.array([2, 0, 2])


def rows_bwd(shape, y_bar):
    return (Rows(AT, y_bar, shape),)


def cells_bwd(shape, y_bar):
    return (Coo([1, 7, 1], y_bar, shape),)


def columns_bwd(shape, y_bar):
    return (Rows([1], y_bar[:, None], shape, axis=1),)


def product_bwd(residuals, y_bar):
    return (LowRank(U[:, None], np.asarray(y_bar * V)[:, None]),)


def nothing_bwd(shape, y_bar):
    return (Zero(shape),)


def sum_bwd(shape, y_bar):
    return (Rows([1], y_bar[None], shape) + Rows([3], 2 * y_bar[None], shape),)


# The plain function, the rule, and the class of its cotangent where nothing else reads x.
RULES = {
    "rows": (lambda x: x[AT], rows_bwd, Rows),
    "cells": (lambda x: x.ravel()[np.array([1, 7, 1])], cells_bwd, Coo),
    "columns": (lambda x: x[:, 1], columns_bwd, Coo),
    "product": (lambda x: U @ x @ V, product_bwd, LowRank),
    "nothing": (lambda x: 0.0 * x[0], nothing_bwd, Zero),
    "sum": (lambda x: x[1] + 2 * x[3], sum_bwd, Rows),
}
TRACED = [n for n in RULES if n not in ("product", "nothing")]


def ruled(name):
    f, bwd, _ = RULES[name]
    return custom_vjp(f, lambda x: (f(x), x.shape), bwd)


def loss(f):
    return lambda x: np.sum(np.sin(f(x)) * 2.0)


@pytest.mark.parametrize("name", RULES)
def test_the_gradient_is_that_of_the_function_and_keeps_its_class(name):
    f, _, kind = RULES[name]
    expected = lineara.grad(loss(f))(X)
    np.testing.assert_allclose(lineara.grad(loss(ruled(name)))(X), expected, rtol=1e-14)
    sparse = lineara.grad(loss(ruled(name)), sparse=True)(X)
    assert type(sparse) is kind
    np.testing.assert_allclose(np.asarray(sparse), expected, rtol=1e-14)


@pytest.mark.parametrize("name", RULES)
def test_dense_and_sparse_neighbours_meet(name):
    f, rule = RULES[name][0], ruled(name)
    for more in (lambda x: np.sum(x[1] ** 2), lambda x: np.sum(x * x), lambda x: x[2, 1] ** 3):
        expected = lineara.grad(lambda x: loss(f)(2 * x) + more(x))(X)  # noqa: B023
        actual = lineara.grad(lambda x: loss(rule)(2 * x) + more(x))(X)  # noqa: B023
        np.testing.assert_allclose(actual, expected, rtol=1e-13)


def test_sums_of_rules_and_lookups_stay_sparse():
    rule = ruled("rows")
    f = lambda x: np.sum(rule(x)) + np.sum(rule(x) ** 2) + np.sum(x[1])  # noqa: E731
    with lineara.strict():
        g = lineara.grad(f, sparse=True)(X)
    assert type(g) is Rows
    assert g.indices.tolist() == [1, 2, 0, 2, 2, 0, 2] or sorted(set(g.indices)) == [0, 1, 2]


@pytest.mark.parametrize("name", TRACED)
def test_every_mode_and_order_follows(name):
    f, rule = loss(RULES[name][0]), loss(ruled(name))
    for way in (
        lineara.hessian,
        lambda f: lineara.jit(lineara.grad(f)),
        lambda f: lineara.jit(lineara.hessian(f)),
        lambda f: lambda x: lineara.jvp(f, (x,), (np.cos(x),))[1],
        lambda f: lambda x: lineara.vmap(lineara.grad(f))(np.stack([x, x + 1])),
        lambda f: lineara.grad(lambda x: np.sum(lineara.grad(f)(x) ** 2)),
    ):
        np.testing.assert_allclose(way(rule)(X), way(f)(X), rtol=1e-12, atol=1e-14)
    jacobian = lineara.jacobian(ruled(name))(X)
    np.testing.assert_allclose(jacobian, lineara.jacobian(RULES[name][0])(X), atol=1e-15)


def test_linear_functions_and_external_ones_give_builders_too():
    pick = custom_linear(lambda x: x[1], transpose=lambda y_bar: Rows([1], y_bar[None], X.shape))
    far = external(
        lambda x: float(np.sin(x[2, 1])),
        vjp=lambda args, y_bar: (Coo([7], [y_bar * np.cos(args[0][2, 1])], args[0].shape),),
        shape=(),
    )
    f = lambda x: np.sum(pick(x) ** 2)  # noqa: E731
    g = lineara.grad(f, sparse=True)(X)
    assert type(g) is Rows
    np.testing.assert_allclose(np.asarray(g), lineara.grad(lambda x: np.sum(x[1] ** 2))(X))
    h = lineara.grad(lambda x: far(x), sparse=True)(X)
    assert type(h) is Coo
    np.testing.assert_allclose(np.asarray(h)[2, 1], np.cos(X[2, 1]))


# The function, its derivative in a direction, the class of the cotangent.
DIRECTIONS = {
    "a row": (lambda x: np.sin(x[1]), lambda x, d: np.cos(x[1]) * d[1], Rows),
    "two rows": (lambda x: x[1] * x[2], lambda x, d: x[1] * d[2] + d[1] * x[2], Rows),
    "rows": (lambda x: x[AT] ** 2, lambda x, d: 2 * x[AT] * d[AT], Rows),
    "a cell": (lambda x: x[1, 2] ** 2, lambda x, d: 2 * x[1, 2] * d[1, 2], Coo),
    "a column": (lambda x: x[:, 1] ** 2, lambda x, d: 2 * x[:, 1] * d[:, 1], Coo),
    "a product": (lambda x: np.sin(x @ V), lambda x, d: np.cos(x @ V) * (d @ V), LowRank),
    "nothing": (lambda x: np.floor(x[1]), lambda x, d: np.zeros(3), Zero),
    "all": (np.sin, lambda x, d: np.cos(x) * d, np.ndarray),
}


@pytest.mark.parametrize("name", DIRECTIONS)
def test_the_transposed_text_of_a_jvp_gives_builders(name):
    f, directional, kind = DIRECTIONS[name]
    rule = lineara.custom_jvp(f, lambda xs, ds: (f(xs[0]), directional(xs[0], ds[0])))
    g = lineara.grad(loss(rule), sparse=True)(X)
    assert type(g) is kind
    for way in (
        lineara.grad,
        lineara.hessian,
        lambda f: lineara.grad(lambda x: f(2 * x) + f(x) + np.sum(x**2)),
        lambda f: lineara.grad(lambda x: np.sum(lineara.grad(f)(x) ** 2)),
        lambda f: lambda x: lineara.linearize(f, x)[1].to_dense(),
    ):
        np.testing.assert_allclose(way(loss(rule))(X), way(loss(f))(X), rtol=1e-12, atol=1e-14)


def test_a_jvp_of_complex_numbers_gives_builders():
    f, z = lambda x: (1 + 2j) * x[1] ** 2, X + 1j * np.cos(X)
    rule = lineara.custom_jvp(f, lambda xs, ds: (f(xs[0]), (2 + 4j) * xs[0][1] * ds[0][1]))
    for x in (X, z):
        expected = lineara.grad(lambda x: np.sum(np.real((2 - 1j) * f(x) ** 2)))(x)
        g = lineara.grad(lambda x: np.sum(np.real((2 - 1j) * rule(x) ** 2)), sparse=True)(x)
        assert type(g) is Rows and g.dtype == x.dtype  # noqa: PT018
        np.testing.assert_allclose(np.asarray(g), expected, rtol=1e-12)


def test_the_test_of_an_external_makes_nothing_dense():
    far = external(
        lambda x: float(np.sin(x[2, 1])),
        vjp=lambda args, y_bar: (Coo([7], [y_bar * np.cos(args[0][2, 1])], args[0].shape),),
    )
    with lineara.strict():
        assert type(lineara.grad(far, sparse=True)(np.ones((300_000, 3)))) is Coo


def test_nothing_of_the_size_of_the_argument_is_made():
    def peak(n):
        table = np.ones((n, 2))
        row = custom_vjp(
            lambda t: t[3], lambda t: (t[3], t.shape), lambda s, y: (Rows([3], y[None], s),),
            check=False,
        )  # fmt: skip
        g = lineara.grad(lambda t: np.sum(row(t) ** 2), sparse=True)
        g(table)
        return count_bytes(lambda: g(table))

    peak(1_000)  # what is made once in a process
    assert peak(300_000) < 50_000


def test_another_shape_is_an_error():
    rule = custom_vjp(
        lambda x: x[1], lambda x: (x[1], None), lambda _, y: (Rows([1], y[None], (9, 3)),),
        check=False,
    )  # fmt: skip
    with pytest.raises(RuleError) as e:
        lineara.grad(lambda x: np.sum(rule(x)))(X)
    assert "is f64[4,3], but its cotangent from bwd is f64[9,3]; they must have" in e.value.message


class Ones:
    """A builder of the user's: the same number everywhere."""

    def __init__(self, number, shape):
        self.number, self.shape, self.dtype = number, shape, np.dtype(float)

    def __add__(self, other):
        return Ones(self.number + other.number, self.shape)

    def finish(self, like=None):
        return np.ones(self.shape) * self.number

    @staticmethod
    def zero(like):
        return Ones(0.0, like.shape)


@dataclasses.dataclass
class Spread:
    """The same with `merge`, as a dataclass."""

    number: object
    shape: tuple

    @staticmethod
    def merge(terms):
        return Spread(sum(t.number for t in terms), terms[0].shape)

    @staticmethod
    def zero(like):
        return Spread(0.0, like.shape)

    def finish(self, like=None):
        return np.ones(self.shape) * self.number


class Hidden(Ones):
    """The same as an array in the eyes of NumPy."""

    def __add__(self, other):
        return Hidden(self.number + other.number, self.shape)

    def __array__(self, dtype=None, copy=None):
        raise AssertionError("nobody asked for an array")


BUILDERS = [Ones, Spread, Hidden]


def whole(x):
    return np.sum(x)


def of_vjp(kind):
    return custom_vjp(whole, lambda x: (np.sum(x), x.shape), lambda s, y: (kind(y, s),))


def of_linear(kind):
    return custom_linear(whole, transpose=lambda y: kind(y, X.shape))


def of_external(kind):
    return external(lambda x: float(np.sum(x)), vjp=lambda args, y: (kind(y, X.shape),))


RULES_OF = [of_vjp, of_linear, of_external]
TRACED_OF = [of_vjp, of_linear]


@pytest.mark.parametrize("kind", BUILDERS)
def test_the_builders_of_these_tests_keep_the_laws(kind):
    check_builder([kind(1.0, (2,)), kind(-2.5, (2,))])


@pytest.mark.parametrize("kind", BUILDERS)
@pytest.mark.parametrize("of", RULES_OF)
def test_a_builder_of_the_users_class_arrives(of, kind):
    rule = of(kind)
    f = lambda x: rule(x) ** 2 + 3 * rule(x)  # noqa: E731
    expected = np.full(X.shape, 2 * X.sum() + 3)
    with lineara.strict():
        g = lineara.grad(f, sparse=True)(X)
        (pulled,) = lineara.vjp(f, X, sparse=True)[1](1.0)
        inside = lineara.grad(lambda p: f(p["w"]), sparse=True)({"w": X})["w"]
        parts = [lineara.grad(lambda p: f(p["w"]), out="builder")({"w": X}) for _ in range(2)]
    summed = lineara.finish(lineara.combine(parts))["w"]
    np.testing.assert_allclose(summed, 2 * expected, rtol=1e-14)
    for builder in (g, pulled, inside):
        assert type(builder) is kind
        np.testing.assert_allclose(builder.finish(), expected, rtol=1e-14)
    for dense in (lineara.grad(f)(X), lineara.vjp(f, X)[1](1.0)[0]):
        np.testing.assert_allclose(dense, expected, rtol=1e-14)


class Weights:
    """A container of the user's which has a method of a builder's name."""

    def __init__(self, w, b):
        self.w, self.b = w, b

    def finish(self):
        return self.w


@pytest.mark.parametrize("kind", BUILDERS)
@pytest.mark.parametrize("of", ["vjp", "linear", "external"])
@pytest.mark.parametrize("make", [lambda w: {"w": w, "b": X[0]}, lambda w: Weights(w, X[0])])
def test_a_builder_stands_for_an_array_in_a_container(of, kind, make):
    read = lambda p: (p["w"], p["b"]) if isinstance(p, dict) else (p.w, p.b)  # noqa: E731
    alike = lambda p, w, b: {"w": w, "b": b} if isinstance(p, dict) else Weights(w, b)  # noqa: E731

    def both(p):
        w, b = read(p)
        return np.sum(w) + np.sum(b)

    like = make(X)
    bars = lambda y: alike(like, kind(y, X.shape), np.ones(3) * y)  # noqa: E731
    rule = {
        "vjp": lambda: custom_vjp(both, lambda p: (both(p), None), lambda _, y: (bars(y),)),
        "linear": lambda: custom_linear(both, transpose=bars),
        "external": lambda: external(both, vjp=lambda args, y: (bars(y),)),
    }[of]()
    sparse, dense = (lineara.grad(lambda p: 3 * rule(p), sparse=s)(like) for s in (True, False))
    assert type(read(sparse)[0]) is kind
    np.testing.assert_array_equal(read(sparse)[0].finish(), np.full(X.shape, 3.0))
    for g, part in zip(read(dense), (X, X[0]), strict=True):
        np.testing.assert_array_equal(g, np.full(part.shape, 3.0))


# What else reads x, or what lies between: the class of the sparse gradient is decided by it.
BESIDE = {
    "a row": lambda r, x: r(x) ** 2 + np.sum(x[1] ** 2),
    "an element": lambda r, x: r(x) ** 2 + x[2, 1] ** 3,
    "all": lambda r, x: r(x) ** 2 + np.sum(x * x),
    "its sum": lambda r, x: r(x) ** 2 + np.sum(x),
    "a product": lambda r, x: r(x) ** 2 + np.sum(x @ V),
    "a rule of ours": lambda r, x: r(x) ** 2 + np.sum(ruled("rows")(x)),
    "another class": lambda r, x: r(x) ** 2 + of_vjp(Other)(x),
    "a node between": lambda r, x: r(np.sin(x)) ** 2,
    "a view of all": lambda r, x: r(x[:]) ** 2 + r(x) * x[0, 0],
}


class Other(Ones):
    """Another class, whose sum with Ones is not known."""

    def __add__(self, other):
        assert type(other) is Other
        return Other(self.number + other.number, self.shape)


@pytest.mark.parametrize("beside", BESIDE)
@pytest.mark.parametrize("of", RULES_OF)
def test_neighbours_of_it_make_one_array(of, beside):
    f, rule = BESIDE[beside], of(Ones)
    expected = lineara.grad(lambda x: f(np.sum, x))(X)
    actual = lineara.grad(lambda x: f(rule, x))(X)
    sparse = lineara.grad(lambda x: f(rule, x), sparse=True)(X)
    assert type(sparse) is np.ndarray
    for g in (actual, sparse):
        np.testing.assert_allclose(g, expected, rtol=1e-13)


def test_a_part_that_it_belongs_to_is_finished():
    rule = custom_vjp(whole, lambda x: (np.sum(x), x.shape), lambda s, y: (Ones(y, s),))
    g = lineara.grad(lambda x: rule(x[1:3]) ** 2, sparse=True)(X)
    assert type(g) is Rows
    np.testing.assert_allclose(np.asarray(g)[:, 0], [0, *[2 * X[1:3].sum()] * 2, 0], rtol=1e-14)


@pytest.mark.parametrize("kind", [Ones, Spread, Hidden])
@pytest.mark.parametrize("of", TRACED_OF)
def test_every_mode_and_order_follows_a_builder_of_the_users(of, kind):
    rule = of(kind)
    for way in (
        lineara.hessian,
        lambda f: lineara.jit(lineara.grad(f)),
        lambda f: lambda x: lineara.jvp(f, (x,), (np.cos(x),))[1],
        lambda f: lambda x: lineara.vmap(lineara.grad(f))(np.stack([x, x + 1])),
        lambda f: lineara.grad(lambda x: np.sum(lineara.grad(f)(x) ** 2)),
        lambda f: lineara.grad(lambda x: np.sum(np.asarray(lineara.grad(f, sparse=True)(x)) ** 2)),
    ):
        a, b = (way(lambda x, r=r: np.sin(r(x) ** 2))(X) for r in (rule, np.sum))
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-13)
    for r in (rule, np.sum):
        weight = lineara.grad(
            lambda w: np.sum(lineara.grad(lambda x: w**3 * r(x))(X) ** 2)  # noqa: B023
        )
        np.testing.assert_allclose(weight(2.0), 6 * 2.0**5 * X.size, rtol=1e-13)


def test_a_second_derivative_is_not_affine_in_the_fields_of_a_builder():
    class Scaled(Ones):
        def __init__(self, number, shape, scale=2.0):
            super().__init__(number, shape)
            self.scale = scale

        def finish(self, like=None):
            return np.ones(self.shape) * (self.number * (self.scale - 1.0))

    rule = custom_linear(whole, transpose=lambda y: Scaled(y, X.shape))
    h = lineara.hessian(lambda x: rule(x) ** 3)(X)
    np.testing.assert_allclose(h, lineara.hessian(lambda x: np.sum(x) ** 3)(X), rtol=1e-13)


def test_a_nan_within_it_meets_dead_lanes_as_one_in_an_array_does():
    def bring(kind):
        back = lambda r, y: (kind(y / r, X.shape),)  # noqa: E731
        rule = custom_vjp(whole, lambda x: (np.sum(x), x[0, 0]), back, check=False)
        return lambda x: np.where(x[0, 0] > 0, rule(x), 3.0) + x[1, 1]

    for kind in (Ones, Spread, Hidden, lambda number, shape: np.ones(shape) * number):
        f = bring(kind)
        expected = np.zeros(X.shape)
        expected[1, 1] = 1.0
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(lineara.grad(f)(X), expected)
            sparse = lineara.grad(f, sparse=True)(X)
        np.testing.assert_array_equal(np.asarray(sparse), expected)


def test_what_is_handed_out_is_nobody_elses():
    store = np.ones(X.shape)

    class Stored(Ones):
        def finish(self, like=None):
            return store

    back = lambda s, y: (Stored(y, s),)  # noqa: E731
    rule = custom_vjp(whole, lambda x: (np.sum(x), x.shape), back, check=False)
    g, h = lineara.grad(lambda x, y: rule(x) + rule(y), (0, 1))(X, X.copy())
    assert not any(np.shares_memory(a, b) for a, b in ((g, h), (g, store), (h, store)))

    constant = np.ones(3)
    fixed = custom_vjp(
        lambda x: np.sum(x[1]), lambda x: (np.sum(x[1]), x.shape),
        lambda s, y: (Rows([1], constant[None], s),), check=False,
    )  # fmt: skip
    cases = [
        lambda x, y: np.sum((x[0] + y[0]) ** 2),
        lambda x, y: np.sum((x[:, 1] + y[:, 1]) ** 2),
        lambda x, y: np.sum((x[AT] + y[AT]) ** 2),
        lambda x, y: np.sum((x @ V + y @ V) ** 2),
        lambda x, y: np.sum(x[1] + y),
        lambda x, y: np.sum(x + y[1]),
        lambda x, y: fixed(x) + fixed(y),
    ]
    for f in cases:
        g, h = lineara.grad(f, (0, 1), sparse=True)(X, X.copy())
        mine, others = ([a] if type(a) is np.ndarray else a.arrays() for a in (g, h))
        pairs = [(a, b) for a in mine for b in [*others, constant, V, AT]]
        assert not any(np.shares_memory(a, b) for a, b in pairs)


def test_nothing_of_the_size_of_the_argument_is_made_for_a_builder_of_the_users():
    def peak(n):
        x = np.ones((n, 2))
        back = lambda s, y: (Ones(y, s),)  # noqa: E731
        rule = custom_vjp(lambda x: x[0, 0], lambda x: (x[0, 0], x.shape), back, check=False)
        g = lineara.grad(lambda x: rule(x) ** 2, sparse=True)
        g(x)
        return count_bytes(lambda: g(x))

    peak(1_000)  # what is made once in a process
    assert peak(300_000) < 50_000


class Sumless:
    """A class with `finish` that does not add."""

    def __init__(self, number, shape):
        self.number, self.shape = number, shape

    def finish(self, like=None):
        return np.full(self.shape, self.number)


WHO = {
    of_vjp: ("custom_vjp(whole): the argument `x`", "bwd"),
    of_linear: ("custom_linear(whole): an argument", "the transpose"),
    of_external: ("external(<lambda>): an argument", "vjp="),
}


@pytest.mark.parametrize("of", RULES_OF)
def test_a_class_without_a_sum_is_refused_in_words(of):
    with pytest.raises(RuleError) as e:
        lineara.grad(lambda x: of(Sumless)(x) ** 2)(X)
    who, by = WHO[of]
    assert e.value.message == (
        f"{who} has a cotangent from {by} of the class Sumless, which has finish() but no sum; "
        "give the class merge(terms) or +, or return what finish() gives"
    )


@pytest.mark.parametrize("of", RULES_OF)
def test_a_builder_that_finishes_to_another_shape_is_refused_by_the_test_of_the_rule(of):
    with pytest.raises(RuleError) as e:
        lineara.grad(of(lambda y, shape: Ones(y, (9,))), sparse=True)(X)
    who, by = WHO[of]
    assert e.value.message == (
        f"{who} is f64[4,3], but its cotangent from {by}, a Ones, is finished to f64[9]; they "
        "must have the same shape"
    )


@pytest.mark.parametrize("of", RULES_OF)
def test_a_wrong_builder_is_found_by_the_test_of_the_rule(of):
    with pytest.raises(RuleError, match=r"difference|transpose"):
        lineara.grad(lambda x: of(lambda y, shape: Ones(2 * y, shape))(x))(X)
