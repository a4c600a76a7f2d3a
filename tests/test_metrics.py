"""A metric in both directions: cotangents to tangents and back."""

from dataclasses import dataclass

import numpy as np
import pytest

import lineara
from lineara import Metric, Rows, manifold
from lineara.errors import GeometryError

A = np.array([[2.0, 1.0, 0.0], [1.0, 3.0, 0.5], [0.0, 0.5, 1.0]])
G = {"w": np.array([1.0, -2.0]), "b": 0.5}
METRICS = {
    "L2": Metric.L2,
    "diag": Metric.diag({"w": 0.5, "b": 4.0}),
    "diag of arrays": Metric.diag({"w": np.array([0.5, 3.0]), "b": 4.0}),
    "matrix": Metric.matrix(A),
    "function": Metric(lambda g: {k: 2 * v for k, v in g.items()},
                       lower=lambda v: {k: x / 2 for k, x in v.items()}),
}  # fmt: skip


@pytest.mark.parametrize("name", METRICS)
def test_lower_is_the_inverse(name):
    metric = METRICS[name]
    back = metric.lower(metric(G))
    np.testing.assert_allclose(back["w"], G["w"], rtol=1e-14)
    assert back["b"] == pytest.approx(G["b"], rel=1e-14)
    metric.check(G, {"w": np.array([0.3, 0.1]), "b": 1.0})


def test_declared_classes_are_exchanged_both_ways():
    @dataclass(frozen=True)
    class Speed:
        dx: float

    @dataclass(frozen=True)
    class Slope:
        x: float

    @manifold(tangent=Speed, cotangent=Slope)
    @dataclass(frozen=True)
    class Place:
        x: float

    g = lineara.grad(lambda p: p.x**2)(Place(3.0))
    v = Metric.diag(0.5)(g)
    assert (g, v) == (Slope(6.0), Speed(3.0))
    assert Metric.diag(0.5).lower(v) == g
    assert Metric.L2.lower([v]) == [Slope(3.0)]

    @dataclass(frozen=True)
    class Other:
        x: float

    @manifold(tangent=Speed, cotangent=Other)
    @dataclass(frozen=True)
    class Elsewhere:
        x: float

    with pytest.raises(GeometryError) as e:
        Metric.L2.lower(v)
    assert e.value.message == (
        "lower: the tangents Speed belong to the cotangents Slope and Other; declare a class of "
        "tangents for each"
    )


def test_sparse_ones_stay_sparse_both_ways():
    g = Rows([1], np.ones((1, 2)), (1_000_000, 2))
    with lineara.strict():
        metric = Metric.diag({"table": 0.5})
        v = metric({"table": g})
        back = metric.lower(v)
    assert type(v["table"]) is type(back["table"]) is Rows
    assert back["table"] == g


def test_weights_are_differentiated():
    def raised(a):
        return Metric.diag({"w": a})({"w": 3.0})["w"]

    def lowered(a):
        return Metric.diag({"w": a}).lower({"w": 3.0})["w"]

    assert (lineara.grad(raised)(2.0), lineara.grad(lowered)(2.0)) == (3.0, -0.75)
    assert lineara.grad(lineara.grad(lowered))(2.0) == 0.75
    assert lineara.jit(lineara.grad(lowered))(2.0) == -0.75
    np.testing.assert_allclose(lineara.vmap(lowered)(np.array([1.0, 2.0])), [3.0, 1.5])
    with pytest.raises(GeometryError, match="a metric is positive, but was given"):
        lineara.grad(raised)(-2.0)


def test_a_function_alone_has_one_direction():
    def double(g):
        return 2 * g

    with pytest.raises(GeometryError) as e:
        Metric(double).lower(1.0)
    assert e.value.message == (
        "lower: Metric(double) was given as a function from cotangents to tangents, and its "
        "inverse is not known; give it as Metric(f, lower=g), or take a Metric.diag or a "
        "Metric.matrix of an array"
    )
    with pytest.raises(GeometryError) as e:
        Metric(double, lower=lambda v: v).check(1.0)
    assert e.value.message == (
        "Metric.check: lower(metric(g)) = 2.0 for g = 1.0; lower is the inverse of the metric"
    )
