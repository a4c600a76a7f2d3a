"""The program of a plan computes each entry once, where f moves, scales and adds elements."""

import numpy as np
import pytest

from lineara import hessian, linearize, sparse_plan
from lineara.cotangent.lanes import LOST
from lineara.engines import run
from lineara.engines.engine import Ask

X = np.cos(np.arange(36.0)) + 1.5
SIDE = np.arange(36).reshape(6, 6)
AT = np.array([3, 1, 3, 0, 7])


def interpreted(plan):
    """The plan, whose program is not compiled."""
    text = plan.program.definition
    plan.program.definition = text._replace(engine="interpreter")
    return plan


def laplacian(x):
    u = x.reshape(6, 6)
    inner = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1]
    return inner + 0.1 * np.sin(u[1:-1, 1:-1])


def filled(x):
    y = np.zeros(len(x))
    y[1:] = x[:-1] * x[1:]
    y[0] = np.sin(x[5])
    return y


def in_place(x):
    y = (3 - 2 * x) * x + 1
    y[1:] -= x[:-1]
    y[:-1] -= 2 * x[1:]
    return y


# What is in lanes, apart from a few rows.
BY_ENTRY = {
    "a stencil": laplacian,
    "written": filled,
    "written in place": in_place,
    "a gather with repeats": lambda x: x[AT] * x[AT[::-1]] + np.exp(x[AT]),
    "one element for all": lambda x: x * x[3] - x[::-1],
    "an arrow": lambda x: np.concatenate([[np.sum(x**2)], x[1:] * x[0] + np.tanh(x[1:])]),
    "a number": lambda x: np.sum(x * x),
    "short sums": lambda x: np.sum(x.reshape(6, 6) ** 2, axis=1) / np.mean(x.reshape(9, 4), 1)[:6],
    "differences": lambda x: np.diff(x * x) * np.hypot(x[1:], x[:-1]),
    "rolled": lambda x: np.roll(x, 2) * x + np.flip(x),
    "turned": lambda x: (x.reshape(4, 9).T * x.reshape(9, 4)).ravel(),
    "chosen by constants": lambda x: np.where(SIDE.ravel() % 2 == 0, x * x, x[::-1]),
    "padded": lambda x: np.pad(x * x, 1)[2:] - x,
    "several results": lambda x: {"a": x[1:] * x[:-1], "b": (x[0], x[3] * x[4]), "c": 2.0},
    "zero": lambda x: 0 * x[:3],
    "zero at the ends": lambda x: np.concatenate([0 * x[:1], x[1:-1] * x[2:], 0 * x[-1:]]),
    "factors with a zero": lambda x: np.arange(36.0) * x + np.sin(x) * (SIDE.ravel() % 3),
    "stacked": lambda x: np.stack([x, x * x, x[::-1]], axis=1),
}
BY_PRODUCTS = {
    "chosen by values": lambda x: np.where(x > 1, x * x, x)[1:] * x[:-1],
    "the larger": lambda x: np.maximum(x[1:], x[:-1]),
    "a running sum": lambda x: np.cumsum(x * x),
}


def loop(x):
    y = np.zeros(len(x))
    for i in range(1, len(x)):
        y[i] = x[i] * x[i - 1]
    return y


@pytest.mark.parametrize("name", BY_ENTRY)
def test_entries_are_those_of_the_dense_jacobian(name):
    f = BY_ENTRY[name]
    plan = interpreted(sparse_plan(f, X))
    assert plan.by_entry
    for x in (X, X[::-1] ** 2):
        np.testing.assert_allclose(plan(x).toarray(), linearize(f, x)[1].to_dense(), atol=1e-13)
    assert plan(X).has_canonical_format


@pytest.mark.parametrize("name", [*BY_PRODUCTS, "a loop"])
def test_other_programs_have_products(name):
    f = BY_PRODUCTS.get(name, loop)
    plan = interpreted(sparse_plan(f, X))
    assert not plan.by_entry
    np.testing.assert_allclose(plan(X).toarray(), linearize(f, X)[1].to_dense(), atol=1e-13)


def test_several_arguments_of_several_kinds():
    f = lambda p, c: p["u"][1:] * c + p["v"] * p["u"][:-1] * p["w"]  # noqa: E731
    p = {"u": np.arange(5.0), "v": 2.0, "w": np.ones(4, np.float32)}
    plan = interpreted(sparse_plan(f, p, 3.0, argnums=(0, 1)))
    assert plan.by_entry
    np.testing.assert_allclose(plan(p, 3.0).toarray(), linearize(f, p, 3.0)[1].to_dense())
    g = lambda x: x[1:] * x[:-1]  # noqa: E731
    x = np.arange(4, dtype=np.float32)
    assert interpreted(sparse_plan(g, x))(x).dtype == np.float32


def test_a_hessian_has_entries_too():
    f = lambda u: np.sum((u[1:] - u[:-1]) ** 4) + np.sum(u**4) + u[0] * u[5]  # noqa: E731
    plan = interpreted(sparse_plan(f, X, hessian=True))
    assert plan.by_entry
    np.testing.assert_allclose(plan(X).toarray(), hessian(f)(X), atol=1e-12)


def test_a_structural_zero_stays_one():
    f = lambda x: np.sqrt(x)[1:] + x[:-1]  # noqa: E731
    plan = interpreted(sparse_plan(f, X))
    x = X.copy()
    x[3] = 0.0
    with np.errstate(divide="ignore"):
        J = plan(x).toarray()
    assert J[2, 3] == np.inf
    assert np.isfinite(np.delete(J.ravel(), 2 * 36 + 3)).all()


def test_lanes_follow_from_the_operations():
    L = linearize(lambda x: x[1:] * 3.0 - x[:-1], np.ones(4))[1]
    (y,) = L.lanes()
    assert [(v.tolist(), at.tolist()) for v, at in y.lanes] == [
        ([3.0, 3.0, 3.0], [1, 2, 3]),
        ([-1.0, -1.0, -1.0], [0, 1, 2]),
    ]
    (y,) = linearize(lambda x: np.cumsum(x), np.ones(4))[1].lanes()
    assert y.lanes[0].columns.tolist() == [LOST] * 4
    assert linearize(lambda x: x[:0], np.ones(4))[1].lanes()[0].shape == (0,)


def test_work_is_that_of_the_entries_and_not_of_products():
    n = 400

    def ring(x):
        total = 0 * x
        for k in (1, 7, 31, 83):
            total = total + np.tanh(np.roll(x, k) - x)
        return total

    x = np.cos(np.arange(float(n)))
    plan = sparse_plan(ring, x)
    assert plan.by_entry
    products = sparse_plan(ring, x, pattern=plan.pattern)
    work, more = (
        run(p.program, p.name, *args, *p.beside, ask=Ask(work=True)).work
        for p, args in ((plan.program, [x]), (products.program, [x, *products.seeds]))
        if p is not None
    )
    assert work < 10 * plan.pattern.nnz
    assert 2 * work < more
