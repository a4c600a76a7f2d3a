"""Where a partial is written with a case, the next derivatives go on as those of the function."""

import numpy as np
import pytest
import scipy.special as sp
from scipy import stats

import lineara
from lineara import grad

HESSIANS = {
    "logaddexp of zeros": (lambda v: np.logaddexp(v[0], v[1]), (0, 0), [[1, -1], [-1, 1]], 4),
    "logaddexp of equal ones": (lambda v: np.logaddexp(v[0], v[1]), (2, 2), [[1, -1], [-1, 1]], 4),
    "logaddexp2": (lambda v: np.logaddexp2(v[0], v[1]), (1, 1),
                   np.log(2) * np.array([[1, -1], [-1, 1]]), 4),
    "xlogy of 0": (lambda v: sp.xlogy(v[0], v[1]), (0, 2), [[0, 1], [1, 0]], 2),
    "xlog1py of 0": (lambda v: sp.xlog1py(v[0], v[1]), (0, 1), [[0, 1], [1, 0]], 2),
    "power with an exponent of 0": (lambda v: v[0] ** v[1], (2, 0),
                                    [[0, 1], [1, 2 * np.log(2) ** 2]], 2),
    "a gamma density of shape 1": (lambda v: stats.gamma.logpdf(v[0], v[1]), (2, 1),
                                   [[0, 1], [1, -np.pi**2 / 3]], 2),
    "logaddexp of far ones": (lambda v: np.logaddexp(v[0], v[1]), (800, -800), np.zeros((2, 2)), 1),
    "logaddexp of what is nothing": (
        lambda v: np.logaddexp(np.logaddexp(v[1] - np.inf, v[0] - np.inf), v[0] ** 2),
        (1, 2), [[2, 0], [0, 0]], 1),
    "logaddexp2 of nothing": (
        lambda v: np.logaddexp2(v[1] - np.inf, v[0] * v[1]), (1, 2), [[0, 1], [1, 0]], 1),
    "softplus far below": (lambda v: sp.softplus(v[0] + v[1]), (-800, -1), np.zeros((2, 2)), 1),
    "log_ndtr where ndtr is 1": (lambda v: sp.log_ndtr(v[0]) + v[1], (800, 1), np.zeros((2, 2)), 1),
    "softplus at 0": (lambda v: sp.softplus(v[0] + v[1]), (1, -1), [[1, 1], [1, 1]], 4),
}  # fmt: skip


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("name", HESSIANS)
def test_second_derivatives_at_points_with_a_case(name, wide):
    of_two, point, want, over = HESSIANS[name]
    f = (lambda v: np.sum(of_two(np.reshape(v, (2, 1))))) if wide else of_two
    found = lineara.hessian(f)(np.array(point, float))
    np.testing.assert_allclose(found, np.array(want) / over, atol=1e-14)
    v = np.array([0.3, -1.1])
    np.testing.assert_allclose(lineara.hvp(f)(np.array(point, float), v), found @ v, atol=1e-14)


@pytest.mark.parametrize(("f", "at", "order", "want"), [
    (sp.spence, 1.0, 2, 1 / 2), (sp.spence, 1.0, 3, -2 / 3),
    (lambda x: sp.sici(x)[0], 0.0, 3, -1 / 3), (lambda x: sp.shichi(x)[0], 0.0, 3, 1 / 3),
    (lambda x: np.logaddexp(x, -x), 0.0, 4, -2.0), (lambda x: np.logaddexp(x, 0.0), 800.0, 3, 0.0),
    (lambda x: np.logaddexp(x, 0.0), -800.0, 3, 0.0), (sp.log_ndtr, 50.0, 3, 0.0),
])  # fmt: skip
def test_higher_derivatives_at_removable_points(f, at, order, want):
    for _ in range(order):
        f = grad(f)
    assert f(at) == pytest.approx(want, abs=1e-13)


@pytest.mark.parametrize("name", ["logaddexp", "logaddexp2"])
def test_infinities_share(name):
    f = grad(lambda v: getattr(np, name)(v[0], v[1]))
    low, high = -np.inf, np.inf
    for point, want in (((low, low), (0.5, 0.5)), ((high, high), (0.5, 0.5)), ((0.0, high), (0, 1)),
                        ((high, 0.0), (1, 0)), ((low, 3.0), (0, 1)), ((3.0, low), (1, 0)),
                        ((low, high), (0, 1)), ((high, low), (1, 0))):  # fmt: skip
        assert tuple(f(np.array(point))) == want


def test_a_plain_zero_hides_what_its_logarithm_does():
    assert grad(lambda t: sp.xlogy(0.0, np.sqrt(t)))(0.0) == 0.0


@pytest.mark.parametrize("f", [np.hypot, np.arctan2])
def test_at_the_origin_both_engines_have_the_same_second_derivatives(f):
    slope = lineara.grad(lambda t: f(t * 0.3, t * 0.5))
    with np.errstate(all="raise"):  # nothing divides by zero on the way
        assert lineara.grad(slope)(0.0) == 0
        assert lineara.grad(slope, policy="store_all")(0.0) == 0


@pytest.mark.parametrize("scale", [2.0**-1000, 2.0**-300, 1.0, 2.0**300, 2.0**1000])
@pytest.mark.parametrize("wide", [False, True])
def test_arctan2_divides_by_no_square_that_is_too_large_or_too_small(scale, wide):
    y, x = (np.array([v * scale]) if wide else v * scale for v in (3.0, 4.0))
    found = lineara.grad(lambda y, x: np.sum(np.arctan2(y, x)), (0, 1))(y, x)
    np.testing.assert_allclose(np.ravel(found) * scale, [4 / 25, -3 / 25], rtol=1e-15)


FAR = [np.inf, -np.inf]


@pytest.mark.parametrize(
    ("y", "x"), [*[(a, b) for a in FAR for b in (1.0, 0.0, *FAR)], *[(1.0, b) for b in FAR]]
)
def test_arctan2_is_flat_at_infinity(y, x):
    """The gradient has the length 1 / hypot(y, x), so its limit is 0 wherever one is infinite."""

    def f(y, x):
        return np.sum(np.arctan2(y, x))

    wide = np.array([y, 1.0]), np.array([x, 1.0])
    for policy in (None, "store_all"):
        slope = lineara.grad(f, (0, 1), policy=policy) if policy else lineara.grad(f, (0, 1))
        assert slope(y, x) == (0.0, 0.0)
        np.testing.assert_array_equal(slope(*wide), [[0.0, 0.5], [0.0, -0.5]])
        assert np.all(np.isnan(slope(np.nan, x)))
    for i in (0, 1):
        bent = lineara.grad(lambda y, x, i=i: lineara.grad(f, (0, 1))(y, x)[i], (0, 1))
        assert bent(y, x) == (0.0, 0.0)
