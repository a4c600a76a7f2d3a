"""A builder that reaches a value in between, an argument's or not, stays one where it can."""

import numpy as np
import pytest
from test_given_builders import LINEAR, READS_ALL

import lineara
from lineara import Coo, LowRank, Rows, custom_vjp
from lineara.errors import RuleError
from lineara.testing import check_builder, count_bytes

X = np.sin(np.arange(12.0)).reshape(4, 3)
W = np.cos(np.arange(15.0)).reshape(3, 5)
AT = np.array([2, 0, 2])
V = np.array([1.0, 0.2, -0.4])


class Ones:
    """A builder of the user's: the same number everywhere."""

    def __init__(self, number, shape):
        self.number, self.shape = number, shape

    def __add__(self, other):
        return Ones(self.number + other.number, self.shape)

    def scaled(self, number):
        return Ones(self.number * number, self.shape)

    def finish(self, like=None):
        return np.ones(self.shape) * self.number

    @staticmethod
    def zero(like):
        return Ones(0.0, like.shape)


def total_by(kind):
    """The sum of an array as a rule whose cotangent is of that class."""
    cotangent = {
        Ones: lambda shape, y: Ones(y, shape),
        LowRank: lambda s, y: LowRank(y * np.ones((s[0], 1)), np.ones((s[1], 1))),
        Rows: lambda s, y: Rows(np.arange(s[0]), y * np.ones(s), s),
    }[kind]
    return custom_vjp(
        np.sum, lambda x: (np.sum(x), x.shape), lambda shape, y: (cotangent(shape, y),), check=False
    )


OWN, LOW, ROWS = total_by(Ones), total_by(LowRank), total_by(Rows)
STACK = np.cos(np.arange(24.0)).reshape(2, 4, 3)

# A function of a (4, 3) array, and the class of its gradient.
BETWEEN = {
    "scaling, then rows": (lambda x: np.sum((x * 2)[AT] ** 2), Rows),
    "a function, then rows": (lambda x: np.sum(np.sin(x)[AT] ** 2), Rows),
    "a slice": (lambda x: np.sum((x * 2)[1:3] ** 2), Rows),
    "an element": (lambda x: (x * 2)[1, 1] ** 2, Coo),
    "cells": (lambda x: np.sum((x * 2)[AT, [0, 1, 2]] ** 2), Coo),
    "leading axes": (lambda x: np.sum((x * 2).reshape(2, 2, 3)[1] ** 2), Rows),
    "a sum of two": (lambda x: np.sum((x + x[::-1])[AT] ** 2), Rows),
    "joined": (lambda x: np.sum(np.concatenate([x * 2, x])[AT] ** 2), Rows),
    "matmul": (lambda x: np.sum((x @ W)[AT] ** 2), Rows),
    "a stack": (lambda x: np.sum((np.stack([x, 2 * x]) @ W)[1, AT] ** 2), Rows),
    "letters": (lambda x: np.sum(np.einsum("ij,jk->ik", 2 * x, W)[AT] ** 2), Rows),
    "a running sum of rows": (lambda x: np.sum(np.cumsum(2 * x, axis=1)[AT] ** 2), Rows),
    "several steps": (lambda x: np.sum(np.tanh((2 * x)[1:] @ W)[[0, 2]] ** 2), Rows),
    "several reads": (lambda x: np.sum((x * 2)[AT]) + np.sum((x * 3)[1] ** 2) + x[0, 1], Coo),
    "a product": (lambda x: np.sum(np.sin((2 * x) @ V)), LowRank),
    "a rule of products": (lambda x: LOW((2 * x).T) ** 2, LowRank),
    "products of a product": (lambda x: LOW((2 * x) @ W), LowRank),
    "a rule of rows": (lambda x: ROWS(np.sin(x)[1:]), Rows),
    "a class of the user's": (lambda x: OWN(2 * x) ** 2 + OWN(x + x), Ones),
    "rows and all": (lambda x: np.sum((x * 2)[AT]) + np.sum(x * x), np.ndarray),
    "the user's and rows": (lambda x: OWN(2 * x) + np.sum(x[AT]), np.ndarray),
    "a running sum over rows": (lambda x: np.sum(np.cumsum(2 * x, axis=0)[AT]), np.ndarray),
}


@pytest.mark.parametrize("name", BETWEEN)
def test_what_reaches_a_value_in_between_keeps_its_class(name):
    f, kind = BETWEEN[name]
    expected = lineara.grad(f)(X)
    for g in (lineara.grad(f, sparse=True)(X), lineara.vjp(f, X, sparse=True)[1](1.0)[0]):
        assert type(g) is kind
        dense = g.finish() if hasattr(g, "finish") else g
        np.testing.assert_allclose(dense, expected, rtol=1e-13, atol=1e-15)


READ = {
    "rows": lambda y: np.sum(y[[0, -1, 0]] ** 2) + np.sum(y[1:] * y[:-1]),
    "elements": lambda y: np.sum(y[..., -1] ** 2) + np.sum(y.reshape(-1)[[0, 2, 0]]),
    "all and a row": lambda y: np.sum(y) + np.sum(np.sin(y[-1])),
    "rules": lambda y: LOW(y) ** 2 + OWN(2 * y) + OWN(y) if np.ndim(y) == 2 else y[0] * 1.0,
}


@pytest.mark.parametrize("name", [*LINEAR, *READS_ALL])
def test_what_is_read_of_a_result_has_the_gradient_of_the_dense_sweep(name):
    f = LINEAR[name][0] if name in LINEAR else READS_ALL[name]
    for read in READ.values():
        whole = lambda x, read=read: np.sum(read(f(x)) + f(2 * x)[0])  # noqa: E731
        expected = lineara.grad(whole)(X)
        g = lineara.grad(whole, sparse=True)(X)
        dense = g.finish() if hasattr(g, "finish") else g
        np.testing.assert_allclose(dense, expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: LOW(x * np.arange(1.0, 10.0) / np.arange(1.0, 13.0)[:, None] - x),
        lambda x: np.sum(x @ np.ones(9)) * (x @ np.ones(9))[1],
    ],
    ids=["rows and columns scaled", "an element of a product"],
)
def test_products_that_meet_are_one_low_rank(f):
    x = np.cos(np.arange(108.0)).reshape(12, 9)
    g = lineara.grad(f, sparse=True)(x)
    assert type(g) is LowRank
    np.testing.assert_allclose(g.finish(), lineara.grad(f)(x), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("dtype", [np.float32, np.complex128])
def test_other_dtypes(dtype):
    z = X.astype(dtype) * (1 + 1j if dtype is np.complex128 else 1)
    f = lambda z: np.sum(np.real((z * 2)[AT] @ W.astype(dtype)) ** 2)  # noqa: E731
    g = lineara.grad(f, sparse=True)(z)
    assert type(g) is Rows and g.dtype == dtype  # noqa: PT018
    np.testing.assert_allclose(np.asarray(g), lineara.grad(f)(z), rtol=1e-5)
    h = lineara.grad(lambda x: np.sum(np.real((x * (1 + 2j))[AT] ** 2)), sparse=True)(X)
    np.testing.assert_allclose(
        np.asarray(h), lineara.grad(lambda x: np.sum(np.real((x * (1 + 2j))[AT] ** 2)))(X)
    )


def test_zero_times_infinity_and_higher_orders_are_as_in_arrays():
    x = np.array([[0.0, 1.0], [4.0, 9.0], [2.0, 0.0]])
    f = lambda x: np.sum(np.where(x > 0, np.sqrt(x), 0.0)[[0, 2]] ** 2)  # noqa: E731
    np.testing.assert_array_equal(np.asarray(lineara.grad(f, sparse=True)(x)), lineara.grad(f)(x))
    f = lambda x: np.sum(np.sin(x)[[0, 2]] ** 2)  # noqa: E731
    twice = lambda s: lambda x: np.sum(np.asarray(lineara.grad(f, sparse=s)(x)) ** 2)  # noqa: E731
    np.testing.assert_allclose(lineara.grad(twice(True))(x), lineara.grad(twice(False))(x))


def test_a_low_rank_of_a_rule_stays_one_whatever_its_rank():
    for rank, shape in [(1, (2, 2)), (3, (4, 3)), (1, (1, 5))]:
        u, v = np.ones((shape[0], rank)), np.ones((shape[1], rank))
        rule = custom_vjp(
            np.sum, lambda x: (np.sum(x), None),
            lambda _, y, u=u, v=v: (LowRank(y * u / u.shape[1], v),),
        )  # fmt: skip
        g = lineara.grad(lambda x, rule=rule: rule(x) ** 2, sparse=True)(np.ones(shape))
        assert type(g) is LowRank
        assert g.rank == rank


def test_terms_of_a_long_chain_are_added_up():
    def halves(x):
        y = 2 * x
        for _ in range(40):
            y = y * 0.5 + y * 0.5
        return y[3] * y[5]

    x = np.arange(50.0)
    g = lineara.grad(halves, sparse=True)(x)
    np.testing.assert_allclose(np.asarray(g), lineara.grad(halves)(x))
    assert len(g.values) <= 8192


BIG = {
    "scaling": lambda t: np.sum((t * 2)[[3, 7]] ** 2),
    "leading axes": lambda t: np.sum(np.sin(t).reshape(-1, 10, 2)[[3, 7]] ** 2),
    "joined": lambda t: np.sum(np.concatenate([t * 2, t])[[3, 7]]),
    "matmul": lambda t: np.sum((np.sin(t) @ np.ones((2, 3)))[[3, 7]] ** 2),
    "letters": lambda t: np.sum(np.einsum("ij,jk->ik", t * 2, np.ones((2, 3)))[[3, 7]]),
}


@pytest.mark.parametrize("name", BIG)
def test_the_sweep_makes_nothing_of_the_size_of_the_argument(name):
    def peak(n):
        pull = lineara.vjp(BIG[name], np.ones((n, 2)), sparse=True)[1]
        pull(1.0)
        return count_bytes(lambda: pull(1.0))

    peak(100)  # what is made once in a process
    assert peak(100_000) < 1.2 * peak(1_000) + 2_000


def test_scaled_is_a_law_of_builders():
    check_builder([Ones(1.0, (2,)), Ones(-3.0, (2,))])

    class Wrong(Ones):
        def __add__(self, other):
            return Wrong(self.number + other.number, self.shape)

        def scaled(self, number):
            return self

        @staticmethod
        def zero(like):
            return Wrong(0.0, like.shape)

    with pytest.raises(
        RuleError, match=r"check_builder: scaling \(a.scaled\(3\) = a \+ a \+ a\) fails"
    ):
        check_builder([Wrong(1.0, (2,))])
