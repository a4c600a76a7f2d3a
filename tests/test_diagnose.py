"""check_grads reports deviations as numbers, explain_nan where a NaN or an infinity was born."""

import math
import re
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

from lineara import check_grads, explain_nan, grad, stop_gradient
from lineara.errors import RuleError


@pytest.fixture(autouse=True)
def _quiet():
    with np.errstate(all="ignore"):
        yield


# --- check_grads ---------------------------------------------------------------------------------

POINT = np.array([0.3, 1.2, 2.0])


def smooth(x):
    return np.sum(np.sin(x) * np.exp(-x) * x[0])


def test_a_right_derivative_passes_to_rounding_at_every_order():
    report = check_grads(smooth, (POINT,), order=3)
    assert report
    assert [max(r.deviation for r in report.rows if r.order == n) < 1e-9 for n in (1, 2, 3)]
    assert report.largest(1, "rev") < 1e-14


def test_each_order_is_checked_in_every_mode_of_every_derivative():
    modes = [(r.order, r.mode) for r in check_grads(smooth, (POINT,), order=2).rows]
    assert modes == [
        (1, "fwd"),
        (1, "rev"),
        (2, "fwd over fwd"),
        (2, "rev over fwd"),
        (2, "fwd over rev"),
        (2, "rev over rev"),
    ]
    only = check_grads(smooth, (POINT,), order=3, modes=("rev",))
    assert [r.mode for r in only.rows] == ["rev", "rev over rev", "rev over rev over rev"]


def deviating(x):
    """The value of x**2 with half of its derivative."""
    return x * stop_gradient(x)


def test_a_wrong_derivative_is_reported_with_its_number():
    report = check_grads(deviating, (3.0,), seed=1)
    assert not report
    first, second = report.rows
    assert not first.passed
    assert second.passed  # reverse agrees with forward: both are wrong
    direction = np.random.default_rng(1).standard_normal(())
    assert first.deviation == pytest.approx(3.0 * abs(direction))
    assert first.allowed == pytest.approx(1e-6 + 1e-6 * 6.0 * abs(direction))


def with_a_detached_slope(x):
    """sin(x), whose first derivative is right and whose second is lost."""
    return np.sin(x) + (x - stop_gradient(x)) * (stop_gradient(np.cos(x)) - np.cos(x))


@pytest.mark.parametrize(
    ("f", "order"), [(lambda x: stop_gradient(x) * x, 1), (with_a_detached_slope, 2)]
)
def test_reverse_mode_alone_is_compared_with_the_differences(f, order):
    report = check_grads(f, (2.0,), order=order, modes=("rev",))
    assert [row.passed for row in report.rows] == [n < order for n in range(1, order + 1)]
    assert check_grads(np.sin, (2.0,), order=order, modes=("rev",))


def test_it_raises_only_when_asked():
    report = check_grads(deviating, (3.0,))
    with pytest.raises(RuleError, match="FAILED"):
        report.raise_if_failed()
    check_grads(smooth, (POINT,)).raise_if_failed()


def test_the_report_is_a_table():
    text = re.sub(r"\d\.\de[-+]\d\d", "1.0e-12", str(check_grads(smooth, (POINT,))))
    assert text.splitlines() == [
        "order  mode  deviation  allowed  ",
        "    1  fwd     1.0e-12  1.0e-12  passed",
        "    1  rev     1.0e-12  1.0e-12  passed",
    ]
    assert repr(check_grads(smooth, (POINT,))) == str(check_grads(smooth, (POINT,)))


@dataclass
class Params:
    w: np.ndarray
    b: float
    name: str = "layer"
    count: int = 3


def test_containers_in_and_out():
    def f(p, scale):
        y = np.tanh(p.w @ p.w + p.b) * scale["s"][0]
        return {"y": y, "norm": np.sum(y * y), "count": p.count}

    args = (Params(np.array([[0.1, 0.5], [0.2, 0.3]]), 0.7), {"s": [1.5]})
    report = check_grads(f, args, order=2)
    assert report, report


def test_complex_arguments_and_results():
    z = np.array([1 + 2j, 0.5 - 1j])
    report = check_grads(lambda z: np.abs(z) ** 2 * np.exp(z), (z,), order=2)
    assert report, report


def test_float32_is_compared_with_the_tolerance_of_float32():
    report = check_grads(lambda x: np.sum(np.exp(x)), (np.ones(3, np.float32),), order=2)
    assert report, report
    assert all(r.allowed > 1e-3 for r in report.rows)


def test_a_tolerance_can_be_given():
    report = check_grads(smooth, (POINT,), atol=0.0, rtol=0.0)
    assert all(r.allowed == 0.0 for r in report.rows)
    assert not report


def test_integers_are_promoted_as_grad_promotes_them():
    assert check_grads(lambda x: x**3, (2,), order=2)


def test_a_nan_never_passes():
    assert not check_grads(lambda x: np.sqrt(x) ** 2, (0.0,))


def test_the_same_seed_gives_the_same_numbers():
    a, b, c = (check_grads(smooth, (POINT,), seed=s) for s in (0, 0, 1))
    assert a == b != c


# --- explain_nan ---------------------------------------------------------------------------------


def whole(report):
    """The report without the places in the file."""
    return re.sub(r"test_diagnose\.py:\d+", "here", str(report))


def test_a_partial_that_is_infinite_meets_a_zero():
    def loss(x):
        y = np.sqrt(x)
        return np.sum(y * y)

    report = explain_nan(loss, np.array([4.0, 0.0]))
    assert whole(report) == (
        "a NaN or infinity in the gradient of args[0], born in\n"
        "  sqrt at here in loss: y = np.sqrt(x)\n"
        "    the partial at [1] is inf because x is 0.0; cotangent 0.0; 0.0 * inf = nan"
    )
    (birth,) = report.births
    assert (birth.operation, birth.at, birth.operands) == ("sqrt", (1,), (0.0,))
    assert (birth.partial, birth.cotangent) == (math.inf, 0.0)
    assert report.leaves == ("args[0]",)


def test_scalars_and_functions_of_math():
    def loss(x):
        return math.sqrt(x) * 0.0

    assert whole(explain_nan(loss, 0.0)) == (
        "a NaN or infinity in the gradient of args[0], born in\n"
        "  sqrt at here in loss: return math.sqrt(x) * 0.0\n"
        "    the partial is inf because x is 0.0; cotangent 0.0; 0.0 * inf = nan"
    )


def test_a_value_that_is_infinite_comes_first():
    def loss(p):
        total = p["a"][0] * p["a"][1]
        return total / p["b"]

    assert whole(explain_nan(loss, {"a": [1.0, 2.0], "b": np.float64(0.0)})) == (
        "a NaN or infinity in the value, born in\n"
        '  divide at here in loss: return total / p["b"]\n'
        "    the value is inf, x is 2.0 and w is 0.0\n"
        "a NaN or infinity in the gradient of args[0]['a'][0], args[0]['a'][1], args[0]['b'], "
        "born in\n"
        '  divide at here in loss: return total / p["b"]\n'
        "    the partial is inf because x is 2.0 and w is 0.0; cotangent 1.0; 1.0 * inf = inf\n"
        '  divide at here in loss: return total / p["b"]\n'
        "    the partial is -inf because x is 2.0 and w is 0.0; cotangent 1.0; 1.0 * -inf = -inf"
    )


def test_the_line_is_that_of_the_function_that_was_called():
    def root(v):
        return v**0.5

    def loss(x, y):
        return root(x) * y

    report = explain_nan(loss, 0.0, 2.0)
    assert whole(report) == (
        "a NaN or infinity in the gradient of args[0], born in\n"
        "  power at here in root: return v**0.5\n"
        "    the partial is inf because x is 0.0; cotangent 2.0; 2.0 * inf = inf"
    )


def test_the_first_step_of_a_long_loop_is_named():
    def loss(x):
        total = 0.0
        for k in range(5):
            total = total + np.log(x[k]) * x[k]
        return total

    report = explain_nan(loss, np.array([1.0, 2.0, 0.0, 3.0, 4.0]))
    value, *rest = report.births
    assert (value.kind, value.operation, value.operands) == ("value", "log", (0.0,))
    assert {b.operation for b in rest} == {"log", "multiply"}


def test_dead_lanes_are_no_cause():
    def loss(x):
        return np.sum(np.where(x > 0, np.sqrt(x), 0.0))

    report = explain_nan(loss, np.array([4.0, 0.0, -1.0]))
    assert not report
    assert str(report) == "no NaN or infinity in the value or in the gradient"


def test_only_births_that_reach_an_argument_are_named():
    def loss(x):
        dead = np.sqrt(x[1]) ** 2
        return np.where(x[0] > 0, np.sqrt(x[1] - x[1]), dead) * 0.0 + x[0]

    report = explain_nan(loss, np.array([1.0, 0.0]))
    assert [b.operation for b in report.births] == ["sqrt"]


def test_nothing_is_found_where_nothing_is_wrong():
    assert not explain_nan(smooth, POINT)
    assert not explain_nan(lambda x: 1.0, 2.0)


def test_a_constant_that_is_nan_is_said_to_be_one():
    assert whole(explain_nan(lambda x: float("nan"), 2.0)) == (
        "a NaN or infinity in the value, born in\n  a constant that f returns\n    the value is nan"
    )


def test_a_matrix_product_and_an_array_result():
    def f(x):
        return np.array([[1.0, np.inf]]) @ x

    report = explain_nan(f, np.array([1.0, 0.0]))
    assert [(b.kind, b.operation) for b in report.births] == [
        ("value", "matmul"),
        ("gradient", "matmul"),
    ]


def test_a_gradient_that_is_explained_itself():
    def loss(x):
        return x**1.5

    report = explain_nan(grad(loss), 0.0)  # its derivative is 0.75 / sqrt(x)
    assert report.births
    assert all("loss" in b.line or "explain_nan(grad(loss)" in b.line for b in report.births)


def test_namespaces_of_leaves_are_named_by_their_paths():
    def loss(p):
        return np.sqrt(p.a) + p.b

    assert explain_nan(loss, SimpleNamespace(a=0.0, b=1.0)).leaves == ("args[0].a",)


def test_the_trace_leaves_nothing_behind():
    explain_nan(lambda x: np.sqrt(x), 0.0)
    assert grad(lambda x: x * x)(3.0) == 6.0
