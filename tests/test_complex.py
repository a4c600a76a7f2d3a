"""Complex derivatives against closed forms, in every mode, and what no complex matrix holds."""

import numpy as np
import pytest

import lineara
from lineara import (
    grad,
    hessian,
    jacfwd,
    jacobian,
    jacrev,
    linearize,
    value_and_grad,
)
from lineara.errors import LinearityError, NonScalarOutputError, TypeMismatchError

z = np.array([0.3 + 0.4j, -1.2 + 0.7j, 0.9 - 0.2j])
x = np.array([0.3, -1.2, 0.9])

HOLOMORPHIC = [  # f, f'
    (lambda z: z**3, lambda z: 3 * z**2),
    (np.exp, np.exp),
    (np.log, lambda z: 1 / z),
    (np.sin, np.cos),
    (np.tan, lambda z: 1 / np.cos(z) ** 2),
    (np.tanh, lambda z: 1 / np.cosh(z) ** 2),
    (np.arctan, lambda z: 1 / (1 + z * z)),
    (np.sqrt, lambda z: 0.5 / np.sqrt(z)),
    (np.arcsinh, lambda z: 1 / np.sqrt(1 + z * z)),
    (lambda z: z ** (1 + 2j), lambda z: (1 + 2j) * z ** (2j)),
    (lambda z: (1 + z) / (2 - z), lambda z: 3 / (2 - z) ** 2),
    (lambda z: np.conj(np.exp(np.conj(z))), np.exp),  # conjugated twice
]
ONLY_REAL = [np.abs, np.conj, np.real, np.angle, lambda z: z * np.conj(z), lambda z: z.real + 0j]


@pytest.mark.parametrize(("f", "derivative"), HOLOMORPHIC)
@pytest.mark.parametrize("mode", [jacobian, jacfwd, jacrev])
def test_the_jacobian_of_a_holomorphic_function_is_its_derivative(f, derivative, mode):
    np.testing.assert_allclose(mode(f)(z), np.diag(derivative(z)), atol=1e-13)
    matrix = linearize(f, z)[1]
    np.testing.assert_allclose(matrix.to_dense(), np.diag(derivative(z)), atol=1e-13)
    first = linearize(lambda z: f(z)[:1], z)[1]  # more columns than rows: by rows
    np.testing.assert_allclose(first.to_dense(), np.diag(derivative(z))[:1], atol=1e-13)


@pytest.mark.parametrize(("f", "derivative"), HOLOMORPHIC)
def test_a_holomorphic_gradient_is_the_derivative(f, derivative):
    for at in z:
        found = grad(f, convention="holomorphic")(complex(at))
        np.testing.assert_allclose(found, derivative(at), rtol=1e-12)
    twice = grad(grad(np.sin, convention="holomorphic"), convention="holomorphic")
    np.testing.assert_allclose(twice(1 + 2j), -np.sin(1 + 2j))


@pytest.mark.parametrize("f", ONLY_REAL)
@pytest.mark.parametrize("mode", [jacfwd, jacrev])
def test_what_is_not_holomorphic_has_no_matrix(f, mode):
    with pytest.raises(LinearityError, match="v is right for every v, or give the real") as caught:
        mode(f)(z)
    assert caught.value.message == (
        "the derivative with respect to complex numbers is not linear over them (the function "
        "is not holomorphic), so no complex matrix holds it; use linearize, whose L @ v is "
        "right for every v, or give the real and the imaginary part as two arguments"
    )
    with pytest.raises(LinearityError, match="v is right for every v, or give the real"):
        linearize(f, z)[1].to_dense()
    with pytest.raises(LinearityError, match="v is right for every v, or give the real"):
        grad(lambda z: f(np.array([z]))[0], convention="holomorphic")(1 + 2j)


@pytest.mark.parametrize("mode", [jacobian, jacfwd, jacrev])
def test_complex_results_of_real_numbers(mode):
    for f, slope in [
        (lambda x: x * (1 + 2j), (1 + 2j) * np.eye(3)),
        (lambda x: np.exp(1j * x), np.diag(1j * np.exp(1j * x))),
        (lambda x: np.sum(x * 1j), np.full(3, 1j)),
        (lambda x: np.array([np.sum(x), np.sum(x * x * 1j)]), np.array([x * 0 + 1, 2j * x])),
    ]:
        np.testing.assert_allclose(mode(f)(x), slope, atol=1e-14)


def test_containers_of_real_and_complex_numbers():
    def f(d):
        return {"r": d["x"] * d["z"], "q": d["x"] * 1j, "s": d["x"] * 2}

    for mode in (jacfwd, jacrev):
        found = mode(f)({"x": 2.0, "z": 1 + 1j})
        assert found["r"] == {"x": 1 + 1j, "z": 2}
        assert found["q"] == {"x": 1j, "z": 0}
        assert found["s"] == {"x": 2, "z": 0}
        assert type(found["s"]["x"]) is float


def test_hessians():
    assert hessian(lambda z: np.abs(z) ** 2)(1 + 2j) == 2  # the gradient is 2 z
    with pytest.raises(LinearityError, match="v is right for every v, or give the real"):
        hessian(lambda z: np.abs(z) ** 4)(1 + 2j)
    np.testing.assert_allclose(
        jacobian(jacobian(lambda z: z**3))(z), np.einsum("ij,jk->ijk", np.diag(6 * z), np.eye(3))
    )


def test_the_conjugate_convention():
    def f(z, p):
        return np.abs(z[0]) ** 2 * p["a"] + (z[1] ** 2).real

    args = np.array([3 + 4j, 1j]), {"a": 2.0}
    ascent = grad(f, (0, 1))(*args)
    value, other = value_and_grad(f, (0, 1), convention="conjugate")(*args)
    assert value == f(*args)
    np.testing.assert_array_equal(other[0], np.conj(ascent[0]))
    assert other[1] == ascent[1] == {"a": 25.0}
    found, aux = grad(lambda z: (np.abs(z), "aux"), has_aux=True, convention="conjugate")(3 + 4j)
    assert type(found) is complex
    assert abs(found - (0.6 - 0.8j)) < 1e-12
    assert aux == "aux"


def test_what_does_not_go_with_a_convention():
    for options, message in [
        ({"convention": "jax"}, "grad: convention='jax' is not known; give ascent, conjugate, "
         "holomorphic"),
        ({"convention": "conjugate", "sparse": True}, "grad: convention='conjugate' does not go "
         "with sparse, combine or out; conjugate what they give"),
        ({"convention": "holomorphic", "policy": "store_all"}, "grad: 'holomorphic' does not go "
         "with policy= or strong_zero="),
    ]:  # fmt: skip
        with pytest.raises(TypeMismatchError) as caught:
            grad(abs, **options)(1j)
        assert caught.value.message == message
    with pytest.raises(
        NonScalarOutputError, match="a holomorphic derivative is of one complex"
    ) as caught:
        lineara.grad(np.exp, convention="holomorphic")(z)
    assert caught.value.message == (
        "grad: a holomorphic derivative is of one complex number, but the function returned "
        "c128[3]; use jacobian"
    )
