"""Arrays of torch and JAX as arguments: read by DLPack, with gradients of their kind."""

import numpy as np
import pytest

import lineara
from lineara.errors import DetachError, TypeMismatchError

A = np.array([0.5, 1.5, -1.0], np.float32)


def f(x):
    return np.sum(np.sin(x) * x)


def made(library, array):
    if library == "torch":
        return pytest.importorskip("torch").from_dlpack(array)
    return pytest.importorskip("jax.numpy").asarray(array)


WAYS = {
    "grad": lambda x: lineara.grad(f)(x),
    "jacobian": lambda x: lineara.jacobian(np.sin)(x),
    "hessian": lambda x: lineara.hessian(f)(x),
    "hvp": lambda x: lineara.hvp(f)(x, x),
    "vjp": lambda x: lineara.vjp(f, x)[1](1.0)[0],
}


@pytest.mark.parametrize("library", ["torch", "jax"])
@pytest.mark.parametrize("way", WAYS)
def test_what_belongs_to_an_argument_is_of_its_kind(way, library):
    for array in (A, np.array(A[0])) if way == "grad" else (A,):
        x = made(library, array)
        y, numpys = WAYS[way](x), np.asarray(WAYS[way](array))
        assert type(y) is type(x)
        assert np.asarray(y).dtype == numpys.dtype
        np.testing.assert_array_equal(np.asarray(y), numpys)


@pytest.mark.parametrize("library", ["torch", "jax"])
def test_containers_and_whole_numbers(library):
    g = lineara.grad(lambda p: np.sum(p["w"] ** 2) * p["s"])({"w": made(library, A), "s": 2.0})
    np.testing.assert_array_equal(np.asarray(g["w"]), 4 * A)
    g = lineara.grad(lambda x: np.sum(x**2))(made(library, np.array([1, 2], np.int32)))
    np.testing.assert_array_equal(np.asarray(g), [2.0, 4.0])


def message(error, act):
    with pytest.raises(error) as caught:
        act()
    return caught.value.message


def test_what_torch_refuses_is_refused_in_words():
    torch = pytest.importorskip("torch")
    assert message(TypeMismatchError, lambda: lineara.grad(f)(torch.ones(3).requires_grad_())) == (
        "the torch Tensor asks for a gradient of torch's, which would stop here; "
        "lineara.to_torch(f) is f as a function that torch differentiates, and x.detach() is the "
        "tensor without that gradient"
    )
    assert message(
        TypeMismatchError, lambda: lineara.grad(f)(torch.ones(3, dtype=torch.bfloat16))
    ).startswith("the torch Tensor cannot be read as NumPy's array (")
    given = message(DetachError, lambda: lineara.grad(lambda x: np.sum(torch.ones(3) * x))(A))
    assert given.startswith("torch was given a traced value: ")


def test_what_jax_follows_is_refused_in_words():
    jax = pytest.importorskip("jax")
    for way, name in ((jax.jit, "DynamicJaxprTracer"), (jax.grad, "LinearizeTracer")):
        said = message(TypeMismatchError, lambda way=way: way(lineara.grad(f))(jax.numpy.ones(3)))
        assert said == (
            f"the jax {name} is a value that JAX follows, in jit, grad or vmap around, and has no "
            "numbers yet; lineara.to_jax(f) is f as a function that JAX follows"
        )
