"""linear_transpose runs a function on arguments that have a type but no value."""

import math
from dataclasses import dataclass

import numpy as np
import pytest

import lineara
from lineara import grad, hessian, jacobian, linear_transpose
from lineara.errors import LinearityError, ShapeError, StructureError, TypeMismatchError
from lineara.facts.types import ArrayType

A = np.arange(12.0).reshape(3, 4)
X = np.array([1.0, -2.0, 3.0, 0.5])


def written(x):
    y = np.zeros(4)
    for i in range(3):
        y[i + 1] = y[i] + 2 * x[i]
    y[0] = x[3]
    return y


def overwritten(x):
    z = 2.0 * x
    head = z[:2]
    z[0] = 0.0
    z[1:3] += head[0] + x[0]
    z *= 3.0
    return z


def filled(x):
    out = np.zeros((2, 4))
    out[0] = x
    out[1, ::2] = x[:2]
    out.T[1] = x[3]
    return out


LINEAR = {
    "identity": lambda x: x,
    "scale": lambda x: 2.0 * x / 4.0,
    "negative": lambda x: -x,
    "matmul": lambda x: A @ x,
    "vector times matrix": lambda x: x @ A.T,
    "dot": lambda x: np.dot(x, X),
    "outer": lambda x: np.outer(x, X),
    "einsum": lambda x: np.einsum("i,ji->j", x, A),
    "sum": lambda x: np.sum(x),
    "mean": lambda x: x.mean(),
    "cumsum": np.cumsum,
    "element": lambda x: x[2],
    "slice": lambda x: x[1:] - x[:-1],
    "gather": lambda x: x[[0, 0, 3]],
    "mask": lambda x: x[np.array([True, False, True, True])],
    "reverse": lambda x: x[::-1],
    "reshape": lambda x: x.reshape(2, 2).T,
    "reshape and sum": lambda x: np.reshape(x, (2, 2)).sum(axis=0),
    "concatenate": lambda x: np.concatenate([x, x[:1], np.zeros(2)]),
    "stack": lambda x: np.stack([x, 3 * x]),
    "array of elements": lambda x: np.array([x[0], 2 * x[1], 0.0]),
    "broadcast": lambda x: x[:, None] * np.ones((4, 3)),
    "broadcast to": lambda x: np.broadcast_to(np.reshape(x, (4, 1)), (4, 3)),
    "where": lambda x: np.where(X > 0, x, 0.0),
    "diff": np.diff,
    "transpose": lambda x: np.transpose(np.outer(X, x)),
    "loop": lambda x: sum((i * x[i] for i in range(4)), 0.0),
    "solve": lambda x: np.linalg.solve(np.diag([1.0, 2.0, 3.0, 4.0]), x),
    "fft": lambda x: np.real(np.exp(1j * np.outer(np.arange(4), np.arange(4))) @ x),
    "by an integer": lambda x: np.ldexp(x, 2),
    "written": written,
    "overwritten": overwritten,
    "filled": filled,
    "copy": lambda x: np.copy(x) + x.copy(),
}


@pytest.mark.parametrize("name", LINEAR)
def test_the_transpose_law(name):
    f = LINEAR[name]
    rng = np.random.default_rng(0)
    v = rng.standard_normal(4)
    w = rng.standard_normal(np.shape(f(v)))
    (x_bar,) = linear_transpose(f, X)(w)
    assert np.sum(w * f(v)) == pytest.approx(np.sum(x_bar * v), rel=1e-12)


@pytest.mark.parametrize("name", LINEAR)
def test_the_transpose_of_the_transpose_is_the_function(name):
    f = LINEAR[name]
    y = f(X)

    def back(w):
        return linear_transpose(f, X)(w)[0]

    assert np.allclose(linear_transpose(back, y)(X)[0], y)


@pytest.mark.parametrize("name", LINEAR)
def test_linear_functions_are_equal_to_their_derivative(name):
    f = LINEAR[name]
    y, L = lineara.linearize(f, X)
    assert np.allclose(L @ X, y)
    w = np.ones(np.shape(y))
    assert np.allclose(linear_transpose(f, X)(w)[0], L.T @ w)


NOT_LINEAR = {
    "remainder": (
        lambda x: np.remainder(x, 2.0),
        "remainder is not linear in f64[4]; a linear function adds, subtracts, moves elements, and "
        "multiplies by constants",
    ),
    "product": (
        lambda x: x * x,
        "multiply is not linear in f64[4], f64[4]; a linear function adds, subtracts, "
        "moves elements, "
        "and multiplies by constants",
    ),
    "inner product": (
        lambda x: x @ x,
        "matmul is not linear in f64[4], f64[4]; a linear function adds, subtracts, "
        "moves elements, "
        "and multiplies by constants",
    ),
    "sine": (
        lambda x: np.sin(x),
        "sin is not linear in f64[4]; a linear function adds, subtracts, moves elements, and "
        "multiplies by constants",
    ),
    "math": (
        lambda x: math.exp(x[0]),
        "the value of a linear f64[] was asked for, but it has a type and no value; a linear "
        "function may not branch on its argument or leave NumPy with it",
    ),
    "affine": (
        lambda x: x + 1.0,
        "add of a linear f64[4] and a constant that is not zero is affine; a linear function maps "
        "zero to zero, so leave the constant out",
    ),
    "affine difference": (
        lambda x: 1.0 - x,
        "subtract of a linear f64[4] and a constant that is not zero is affine; a linear function "
        "maps zero to zero, so leave the constant out",
    ),
    "affine choice": (
        lambda x: np.where(X > 0, x, 1.0),
        "where of a linear f64[4] and a constant that is not zero is affine; a linear "
        "function maps "
        "zero to zero, so leave the constant out",
    ),
    "constant": (
        lambda x: np.ones(3),
        "a result (f64[3]) is constant and not zero, so the function is affine; a linear function "
        "maps zero to zero",
    ),
    "branch": (
        lambda x: x if x[0] > 0 else -x,
        "greater reads the value of a linear f64[], which has a type but no value; a "
        "linear function "
        "may not depend on it that way",
    ),
    "position": (
        lambda x: x[np.argmax(x)],
        "the value of a linear f64[4] was asked for, but it has a type and no value; a linear "
        "function may not branch on its argument or leave NumPy with it",
    ),
    "integer": (
        lambda x: x[int(x[0])],
        "the value of a linear f64[] was asked for, but it has a type and no value; a linear "
        "function may not branch on its argument or leave NumPy with it",
    ),
    "truth": (
        lambda x: x if x[1] else 0 * x,
        "the value of a linear f64[] was asked for, but it has a type and no value; a linear "
        "function may not branch on its argument or leave NumPy with it",
    ),
    "rounding": (
        lambda x: round(x[0]) * x,
        "the value of a linear f64[] was asked for, but it has a type and no value; a linear "
        "function may not branch on its argument or leave NumPy with it",
    ),
    "value": (
        lambda x: lineara.stop_gradient(x),
        "the value of a linear f64[4] was asked for, but it has a type and no value; a linear "
        "function may not branch on its argument or leave NumPy with it",
    ),
}


@pytest.mark.parametrize("name", NOT_LINEAR)
def test_what_is_not_linear_is_refused_at_its_line(name):
    f, message = NOT_LINEAR[name]
    with pytest.raises(LinearityError, match="a linear function") as e:
        linear_transpose(f, X)
    assert e.value.message == message
    assert e.value.line.startswith("test_linear_transpose.py:")


def affine_writes(x):
    y = np.ones(4)
    y[0] = x[0]
    return y * 2.0


def test_an_array_of_linear_elements_and_constants_is_affine():
    with pytest.raises(LinearityError, match="has linear elements and constants that are") as e:
        linear_transpose(affine_writes, X)
    assert e.value.message == (
        "an array (f64[4]) has linear elements and constants that are not zero, so it is affine; "
        "a linear function maps zero to zero: leave the constants out"
    )
    assert e.value.line.endswith("in affine_writes: y = np.ones(4)")


def affine_result(x):
    y = np.zeros((2, 4))
    last = y[1]
    last[3] = 7.0
    y[0] = x
    return y


def test_the_line_is_where_the_constants_were_written():
    with pytest.raises(LinearityError, match="has linear elements and constants that are") as e:
        linear_transpose(affine_result, X)
    assert e.value.line.endswith("in affine_result: last[3] = 7.0")


def test_constants_that_were_overwritten_do_not_matter():
    def f(x):
        y = np.ones(4)
        y[:3] = x[1:]
        y[3] = 0.0
        return y

    assert np.array_equal(linear_transpose(f, X)(np.ones(4))[0], [0.0, 1.0, 1.0, 1.0])


@pytest.mark.parametrize(
    "f", [np.abs, np.max, np.sort, np.sign, np.floor, np.isnan, np.unique, lambda x: x**2, np.prod]
)
def test_no_value_is_ever_used(f):
    with pytest.raises((LinearityError, lineara.errors.NoRuleError)):
        linear_transpose(lambda x: f(x) * 1.0, X)


def test_constants_that_never_reach_the_result_do_not_matter():
    def f(x):
        y = np.ones(4)
        y[0] = x[0]
        return y[0] * y[1]

    assert linear_transpose(f, X)(2.0)[0].tolist() == [2.0, 0.0, 0.0, 0.0]


# --- types --------------------------------------------------------------------------------------


class ShapeDtypeStruct:
    def __init__(self, shape, dtype):
        self.shape, self.dtype = shape, dtype


@pytest.mark.parametrize(
    "type_",
    [
        X,
        ArrayType((4,), np.dtype(float)),
        ShapeDtypeStruct((4,), np.float64),
        np.arange(4),
        np.broadcast_to(0.0, 4),
    ],
)
def test_only_the_type_matters(type_):
    (x_bar,) = linear_transpose(lambda x: A @ x, type_)(np.ones(3))
    assert np.array_equal(x_bar, A.sum(0))
    assert x_bar.flags.writeable
    assert x_bar.flags.c_contiguous


def test_scalars_and_their_dtypes():
    assert linear_transpose(lambda x: 3 * x, 1.0)(2.0) == (6.0,)
    assert linear_transpose(lambda x: 3 * x, 1)(2.0) == (6.0,)
    (x_bar,) = linear_transpose(lambda x: 3 * x, np.float32([1, 2]))(np.float32([1, 1]))
    assert x_bar.dtype == np.float32


def test_several_arguments_are_linear_jointly():
    back = linear_transpose(lambda x, y: x - 2 * y, X, X)
    x_bar, y_bar = back(np.ones(4))
    assert np.array_equal(x_bar, np.ones(4))
    assert np.array_equal(y_bar, -2 * np.ones(4))
    with pytest.raises(LinearityError, match="multiply is not linear"):
        linear_transpose(lambda x, y: x * y, 1.0, 1.0)


def test_an_argument_that_is_not_used_has_a_zero_cotangent():
    assert linear_transpose(lambda x, y: x, 1.0, X)(2.0)[1].tolist() == [0.0] * 4
    assert linear_transpose(lambda x: np.zeros(3), X)(np.ones(3))[0].tolist() == [0.0] * 4


@dataclass
class Field:
    u: np.ndarray
    scale: float
    name: str = "u"


def test_containers_on_both_sides():
    def f(field):
        assert field.name == "u"
        return {"sum": np.sum(field.u), "both": [field.scale, field.u[0] + field.scale]}

    (bar,) = linear_transpose(f, Field(X, 1.0))({"sum": 1.0, "both": [10.0, 100.0]})
    assert isinstance(bar, Field)
    assert bar.u.tolist() == [101.0, 1.0, 1.0, 1.0]
    assert (bar.scale, bar.name) == (110.0, None)


def test_complex_functions_have_the_real_inner_product():
    z = np.array([1 + 2j, 3 - 1j])
    w = np.array([1j, 2.0])
    (bar,) = linear_transpose(lambda z: (1 + 2j) * z, z)(w)
    assert np.allclose(bar, (1 - 2j) * w)
    (bar,) = linear_transpose(lambda z: np.sum(np.real(z)), z)(1.0)
    assert np.allclose(bar, [1, 1])


def test_a_cotangent_that_does_not_fit_is_refused():
    back = linear_transpose(lambda x: A @ x, X)
    with pytest.raises(ShapeError, match="the vector has a leaf f") as e:
        back(np.ones(4))
    assert (
        e.value.message
        == "linear_transpose: the vector has a leaf f64[4], but the map takes f64[3]"
    )
    with pytest.raises(StructureError, match="but the map takes Structure"):
        back([np.ones(3)])
    with pytest.raises(TypeMismatchError, match="takes a function"):
        linear_transpose(3.0, X)


def test_memory_of_the_argument_is_never_made():
    big = ArrayType((1 << 24, 8), np.dtype(float))
    peak = lineara.testing.count_bytes(
        lambda: linear_transpose(lambda x: x[3, 2] * 2 + x[5, 1], big)
    )
    assert peak > 0  # the reserved zeros are counted, and never touched
    (bar,) = linear_transpose(lambda x: x[3] * 2, ArrayType((8,), np.dtype(float)))(1.0)
    assert bar[3] == 2.0


# --- at every order -----------------------------------------------------------------------------


def test_the_transpose_is_differentiable():
    def f(w):
        return np.sum(linear_transpose(lambda x: A @ x, X)(w)[0] ** 2)

    w = np.array([1.0, 2.0, 3.0])
    assert np.allclose(grad(f)(w), 2 * A @ (A.T @ w))
    assert np.allclose(hessian(f)(w), 2 * A @ A.T)
    assert np.allclose(
        jacobian(lambda w: linear_transpose(written, X)(w)[0])(np.ones(4)), jacobian(written)(X).T
    )


def test_what_the_function_captured_is_differentiable():
    def f(a):
        return np.sum(linear_transpose(lambda x: a @ x, X)(np.ones(3))[0] ** 2)

    assert np.allclose(grad(f)(A), grad(lambda a: np.sum((a.T @ np.ones(3)) ** 2))(A))
    assert np.allclose(hessian(f)(A), hessian(lambda a: np.sum((a.T @ np.ones(3)) ** 2))(A))


def test_linear_code_may_read_plain_arrays_and_make_them():
    def f(x):
        weights = np.zeros(4)
        weights[1] = 5.0
        weights += 1.0
        if weights[1] > 3:
            return np.sum(weights * x)
        return x[0]

    assert linear_transpose(f, X)(1.0)[0].tolist() == [1.0, 6.0, 1.0, 1.0]


def test_a_linear_value_that_escapes_is_refused():
    kept = []

    def f(x):
        kept.append(x)
        return x

    linear_transpose(f, X)
    with pytest.raises(lineara.errors.LinearaError):
        kept[0] * 2.0
    assert repr(kept[0]) == "linear(f64[4])"
