"""Functions inside a differentiated container: what they captured moves, in every mode."""

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from lineara import check_grads, grad, hessian, hvp, jacobian, jvp, linearize, vjp


def cubic(a):
    return lambda x: a**3 * x


def power(n):
    return lambda x: x**n


def product(p):
    return p["f"](5.0) * p["s"]


def at():
    return {"f": cubic(2.0), "s": 3.0}


SLOPES = {"f": {"a": 180.0}, "s": 40.0}


def test_the_gradient_has_what_the_function_captured():
    assert grad(product)(at()) == SLOPES


@pytest.mark.parametrize("sparse", [True, ["s"]])
def test_sparse(sparse):
    assert grad(product, sparse=sparse)(at()) == SLOPES


def test_every_mode():
    assert vjp(product, at())[1](1.0) == (SLOPES,)
    assert jvp(product, (at(),), ({"f": {"a": 1.0}, "s": 0.0},)) == (120.0, 180.0)
    assert jacobian(product, mode="forward")(at()) == SLOPES
    assert jacobian(product, mode="reverse")(at()) == SLOPES
    assert linearize(product, at())[1].shape == (1, 2)
    assert check_grads(product, (at(),))


def test_second_order():
    assert hvp(product)(at(), {"f": {"a": 1.0}, "s": 0.0}) == {"f": {"a": 180.0}, "s": 60.0}
    assert hessian(product)(at())["f"]["a"]["s"] == 60.0


def test_within_another_differentiation():
    def slope(x):
        return grad(product)({"f": cubic(x), "s": 3.0})["f"]["a"]

    assert grad(slope)(2.0) == 180.0


def test_a_function_that_was_not_called_has_zeros():
    assert grad(lambda p: p["s"] ** 2)(at()) == {"f": {"a": 0.0}, "s": 6.0}


def test_a_function_that_captured_no_moving_number_stays():
    plain, square = cubic.__class__, power(2)
    found = grad(product)({"f": square, "s": 1.0, "type": plain})
    assert found == {"f": square, "s": 25.0, "type": plain}


def test_partials_methods_and_records():
    @dataclass
    class Model:
        act: Any
        w: float

    class Line:
        def __init__(self, slope):
            self.slope = slope

        def at(self, x):
            return self.slope * x

    found = grad(lambda p: p[0](3.0) * p[1](2.0))(
        (functools.partial(np.multiply, 2.0), Line(4.0).at)
    )
    assert list(found[0].values()) == [24.0]
    assert found[1] == {"self": {"slope": 12.0}}
    model = grad(lambda m: m.act(m.w))(Model(cubic(2.0), 3.0))
    assert model == Model({"a": 36.0}, 8.0)


def test_arrays_that_a_function_captured():
    W = np.arange(6.0).reshape(2, 3)
    x = np.ones(3)

    def layer(W):
        return lambda x: np.tanh(W @ x)

    found = grad(lambda layers: layers[1](layers[0](x)).sum())([layer(W), layer(np.eye(2))])
    direct = grad(lambda V: np.tanh(np.tanh(V @ x)).sum())(W)
    assert np.allclose(found[0]["W"], direct)
    assert found[1]["W"].shape == (2, 2)
