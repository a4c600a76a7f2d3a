"""Zero times infinity: a structural zero stays zero whatever it meets, a computed one is NaN.

Each case is a function of x = (4, 0, -1) in which a lane that is not selected has an infinite or
undefined derivative; beside it stand the gradient and the diagonal of the Hessian, by hand.
"""

import functools
import math
from collections.abc import Callable

import numpy as np
import pytest

from lineara import (
    checkpoint,
    grad,
    hessian,
    hvp,
    jacobian,
    jvp,
    linearize,
    stages,
    trace,
    value_and_grad,
    vjp,
    vmap,
)
from lineara.cotangent import Rows

X = np.array([4.0, 0.0, -1.0])


@pytest.fixture(autouse=True)
def _quiet():
    with np.errstate(all="ignore"):
        yield


def where_with_a_constant(x):
    return np.sum(np.where(x > 0, np.sqrt(x), 0.0))


def where_with_the_argument(x):
    return np.sum(np.where(x > 0, np.sqrt(x), 3 * x))


def nested_where(x):
    return np.sum(np.where(x > 0, np.where(x > 1, np.sqrt(x), np.log(x)), 0.0))


def where_on_scalars(x):
    return x[0] ** 2 + np.where(x[1] > 0, np.sqrt(x[1]), 0.0)


def guarded_division(x):
    return np.sum(np.where(x != 0, 1 / x, 0.0))


def guarded_logarithm(x):
    return np.sum(np.where(x > 0, x * np.log(x), 0.0))


def guarded_norm(x):
    d = x - x
    n = np.sqrt(np.sum(d**2))
    return x[0] ** 2 + np.where(n > 0, n, 0.0)


def chain_before_the_where(x):
    y = np.sqrt(x)
    return np.sum(np.where(x > 0, np.exp(-y) * y, 0.0))


def broadcast_before_the_where(x):
    y = np.sqrt(x)[:, None] * np.ones((3, 2))
    return np.sum(np.where((x > 0)[:, None], y, 0.0))


def sum_before_the_where(x):
    rows = np.sqrt(np.stack([x, x]))
    return np.sum(np.where(x > 0, rows.sum(axis=0), 0.0))


def matrix_before_the_where(x):
    return np.sum(np.where(x > 0, np.ones((3, 3)) * np.sqrt(x), 0.0))


def maximum_with_a_constant(x):
    return np.sum(np.maximum(np.sqrt(np.abs(x)), 1.5))


def minimum_of_two(x):
    return np.sum(np.minimum(1 / np.abs(x), 0.5))


def clip(x):
    return np.sum(np.clip(1 / x, -3.0, 3.0))


def largest(x):
    return np.max(np.sqrt(np.abs(x)))


def smallest(x):
    return np.min(1 / np.abs(x))


def sorted_last(x):
    return np.sort(np.sqrt(np.abs(x)))[-1]


def mask(x):
    return np.sum(np.sqrt(x)[x > 0])


def sum_with_where(x):
    return np.sum(np.sqrt(x), where=x > 0)


def lookup(x):
    return np.sqrt(x)[0] ** 3


def lookup_by_index_array(x):
    return np.sum(np.sqrt(x)[[0, 0]])


def part(x):
    return np.sum(np.sqrt(x)[:1])


def concatenated_lookup(x):
    return np.sum(np.concatenate([np.sqrt(x), x])[np.array([0, 3, 4, 5])])


def running_sum(x):
    return np.cumsum(np.sqrt(x))[0]


def written_elements(x):
    y, root = np.zeros(3), np.sqrt(x)
    for i in range(3):
        if x[i] > 0:
            y[i] = root[i]
    return np.sum(y)


def overwritten_elements(x):
    y = np.sqrt(x)
    y[1:] = 0.0
    return np.sum(y)


def python_if_on_scalars(x):
    total = 0.0
    for v in x:
        if v > 0:
            total = total + math.sqrt(v)
    return total


SQRT = (0.25, -1 / 32)  # of sqrt at 4
E = math.exp(-2)
CASES: dict[Callable, tuple[list[float], list[float]]] = {
    where_with_a_constant: ([0.25, 0, 0], [-1 / 32, 0, 0]),
    where_with_the_argument: ([0.25, 3, 3], [-1 / 32, 0, 0]),
    nested_where: ([0.25, 0, 0], [-1 / 32, 0, 0]),
    where_on_scalars: ([8, 0, 0], [2, 0, 0]),
    guarded_division: ([-1 / 16, 0, -1], [1 / 32, 0, -2]),
    guarded_logarithm: ([math.log(4) + 1, 0, 0], [0.25, 0, 0]),
    guarded_norm: ([8, 0, 0], [2, 0, 0]),
    chain_before_the_where: ([-E / 4, 0, 0], [E / 32, 0, 0]),
    broadcast_before_the_where: ([0.5, 0, 0], [-1 / 16, 0, 0]),
    sum_before_the_where: ([0.5, 0, 0], [-1 / 16, 0, 0]),
    matrix_before_the_where: ([0.75, 0, 0], [-3 / 32, 0, 0]),
    maximum_with_a_constant: ([0.25, 0, 0], [-1 / 32, 0, 0]),
    minimum_of_two: ([-1 / 16, 0, 0], [1 / 32, 0, 0]),
    clip: ([-1 / 16, 0, -1], [1 / 32, 0, -2]),
    largest: ([0.25, 0, 0], [-1 / 32, 0, 0]),
    smallest: ([-1 / 16, 0, 0], [1 / 32, 0, 0]),
    sorted_last: ([0.25, 0, 0], [-1 / 32, 0, 0]),
    mask: ([0.25, 0, 0], [-1 / 32, 0, 0]),
    sum_with_where: ([0.25, 0, 0], [-1 / 32, 0, 0]),
    lookup: ([3, 0, 0], [3 / 8, 0, 0]),
    lookup_by_index_array: ([0.5, 0, 0], [-1 / 16, 0, 0]),
    part: ([0.25, 0, 0], [-1 / 32, 0, 0]),
    concatenated_lookup: ([1.25, 1, 1], [-1 / 32, 0, 0]),
    running_sum: ([0.25, 0, 0], [-1 / 32, 0, 0]),
    written_elements: ([0.25, 0, 0], [-1 / 32, 0, 0]),
    overwritten_elements: ([0.25, 0, 0], [-1 / 32, 0, 0]),
    python_if_on_scalars: ([0.25, 0, 0], [-1 / 32, 0, 0]),
}
ROWS = [pytest.param(f, *map(np.array, both), id=f.__name__) for f, both in CASES.items()]
every_case = pytest.mark.parametrize(("f", "slope", "bend"), ROWS)


@every_case
def test_a_lane_that_is_not_selected_adds_nothing_to_the_gradient(f, slope, bend):
    np.testing.assert_allclose(grad(f)(X), slope, rtol=1e-14)
    np.testing.assert_allclose(grad(f, strong_zero=True)(X), slope, rtol=1e-14)
    np.testing.assert_allclose(np.asarray(grad(f, sparse=True)(X)), slope, rtol=1e-14)


@every_case
def test_nor_to_vjp_jvp_and_jacobians(f, slope, bend):
    np.testing.assert_allclose(vjp(f, X)[1](1.0)[0], slope, rtol=1e-14)
    np.testing.assert_allclose(jacobian(f, mode="forward")(X), slope, rtol=1e-14)
    np.testing.assert_allclose(jacobian(f, mode="reverse")(X), slope, rtol=1e-14)
    v = np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(jvp(f, (X,), (v,))[1], slope @ v, rtol=1e-14)


@every_case
def test_nor_at_second_order(f, slope, bend):
    np.testing.assert_allclose(hessian(f)(X), np.diag(bend), rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(jacobian(grad(f), mode="reverse")(X), np.diag(bend), atol=1e-15)
    v = np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(hvp(f)(X, v), bend * v, rtol=1e-13, atol=1e-15)


@every_case
def test_nor_to_a_gradient_of_a_gradient(f, slope, bend):
    along = grad(lambda s: np.sum(grad(f)(s * X)))(1.0)
    np.testing.assert_allclose(along, bend @ X, rtol=1e-13)
    along = grad(lambda s: jvp(f, (s * X,), (np.ones(3),))[1])(1.0)
    np.testing.assert_allclose(along, bend @ X, rtol=1e-13)


# --- the same in programs ------------------------------------------------------------------------

UNTRACED = {mask, written_elements, python_if_on_scalars}  # their shapes, their way, are values
STAGED = [row for row in ROWS if row.values[0] not in UNTRACED]
every_traced_case = pytest.mark.parametrize(("f", "slope", "bend"), STAGED)


@every_traced_case
def test_nor_to_the_gradient_of_a_program(f, slope, bend):
    close = functools.partial(np.testing.assert_allclose, rtol=1e-13, atol=1e-15)
    v = np.array([1.0, 2.0, 3.0])
    kept = checkpoint(f, policy="store_all")
    close(grad(f, policy="recompute_all")(X), slope)
    close(vjp(f, X, policy="store_all")[1](1.0)[0], slope)
    close(grad(kept)(X), slope)
    close(jvp(kept, (X,), (v,))[1], slope @ v)
    close(stages(f, X).value_and_grad(X)[1], slope)
    close(trace(grad(f), X)(X), slope)
    close(trace(lambda x: jvp(f, (x,), (v,))[1], X)(X), slope @ v)
    close(vmap(grad(f))(np.stack([X, X]))[1], slope)
    close(trace(jacobian(f, mode="forward"), X)(X), slope)


@every_traced_case
def test_and_in_single_precision_it_stays_there(f, slope, bend):
    x = X.astype(np.float32)
    for g in (grad(f), trace(grad(f), x), grad(f, policy="store_all")):
        found = g(x)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, slope, rtol=1e-5)


@every_traced_case
def test_nor_at_second_order_of_a_program(f, slope, bend):
    close = functools.partial(np.testing.assert_allclose, rtol=1e-13, atol=1e-15)
    v = np.array([1.0, 2.0, 3.0])
    close(grad(lambda x: np.sum(grad(f)(x) * v), policy="store_all")(X), bend * v)
    close(grad(lambda x: jvp(f, (x,), (v,))[1], policy="store_all")(X), bend * v)
    close(trace(lambda x: hvp(f)(x, v), X)(X), bend * v)
    close(vmap(lambda x: hvp(f)(x, v))(np.stack([X, X]))[0], bend * v)
    close(trace(hessian(f), X)(X), np.diag(bend))


# --- what was never touched, or never asked ------------------------------------------------------


def test_a_direction_with_zeros_moves_nothing_there():
    x = np.array([4.0, 0.0])
    assert jvp(np.sqrt, (x,), (np.array([1.0, 0.0]),))[1].tolist() == [0.25, 0.0]
    assert vjp(np.sqrt, x)[1](np.array([1.0, 0.0]))[0].tolist() == [0.25, 0.0]


def test_the_jacobian_of_a_pole_has_its_infinity_on_the_diagonal_only():
    x = np.array([4.0, 0.0])
    for mode in ("forward", "reverse"):
        assert jacobian(np.sqrt, mode=mode)(x).tolist() == [[0.25, 0.0], [0.0, np.inf]]
    _, L = linearize(np.sqrt, x)
    assert L.to_dense().tolist() == [[0.25, 0.0], [0.0, np.inf]]


def test_a_traced_direction_is_never_taken_for_a_structural_zero():
    def along(t):  # the derivative in the direction t is linear in t, also at t = 0
        return np.sum(jvp(np.sqrt, (np.array([4.0]),), (t * np.ones(1),))[1])

    assert grad(along)(0.0) == 0.25


def test_elements_that_are_never_read_stay_zero():
    table = np.zeros((1000, 2))
    table[3] = 4.0

    def loss(t):
        row = t[3]
        return np.sum(np.where(row > 5, 1 / (row - row), np.sqrt(row)))

    g = grad(loss)(table)
    assert g[3].tolist() == [0.25, 0.25]
    assert np.count_nonzero(g) == 2
    sparse = grad(loss, sparse=True)(table)
    assert isinstance(sparse, Rows)
    np.testing.assert_array_equal(np.asarray(sparse), g)


def test_containers_and_unused_leaves():
    g = grad(lambda p: np.where(p["a"] > 0, 1 / p["a"], p["b"][0]))(
        {"a": np.float64(0.0), "b": [2.0, 5.0]}
    )
    assert g == {"a": 0.0, "b": [1.0, 0.0]}


# --- computed zeros -------------------------------------------------------------------------------


def test_a_computed_zero_times_infinity_is_nan():
    def square_of_root(x):
        return np.sqrt(x) ** 2

    def product_with_zero(x):
        return np.sqrt(x) * 0.0

    def difference(x):
        return 1 / x - 1 / x

    for f in (square_of_root, product_with_zero, difference):
        zero = np.float64(0.0)
        assert math.isnan(grad(f)(zero)), f.__name__
        assert math.isnan(jvp(f, (zero,), (1.0,))[1])
        assert math.isnan(vjp(f, zero)[1](1.0)[0])
        assert math.isnan(jacobian(f)(zero))


def test_strong_zero_makes_it_zero():
    def loss(x):
        return np.sum(np.sqrt(x) ** 2)

    x = np.array([4.0, 0.0])
    assert np.isnan(grad(loss)(x)).tolist() == [False, True]
    assert grad(loss, strong_zero=True)(x).tolist() == [1.0, 0.0]
    assert grad(lambda x: np.sqrt(x) * 0.0, strong_zero=True)(0.0) == 0.0
    assert value_and_grad(loss, strong_zero=True)(x)[1].tolist() == [1.0, 0.0]


def test_strong_zero_leaves_infinities_that_are_multiplied_by_something():
    assert grad(np.sqrt, strong_zero=True)(0.0) == math.inf


def test_a_nan_in_a_live_lane_stays():
    def loss(x):
        return np.sum(np.where(x >= 0, np.sqrt(x) ** 2, 0.0))

    assert np.isnan(grad(loss)(X)).tolist() == [False, True, False]


def test_a_nan_in_the_data_stays():
    data = np.array([1.0, np.nan])
    assert np.isnan(grad(lambda x: np.sum(x * data))(np.ones(2))).tolist() == [False, True]
    live = ~np.isnan(data)
    g = grad(lambda x: np.sum(np.where(live, x * data, 0.0)))(np.ones(2))
    assert g.tolist() == [1.0, 0.0]
