"""Arrays of other libraries as arguments: their memory is read, and gradients are of their kind.

The library is the array API's reference here; torch and JAX are in tests/peers.
"""

import subprocess
import sys

import array_api_strict as xs
import numpy as np
import pytest

import lineara
from lineara.errors import LinearaError, TypeMismatchError

A = np.array([0.5, 1.5, -1.0])


def f(x):
    return np.sum(np.sin(x) * x)


def of_tree(p):
    return np.sum(p["w"] * p["w"]) * p["s"] + p["n"]


def kind(x):
    return type(x).__module__.partition(".")[0]


WAYS = {
    "grad": lambda x: lineara.grad(f)(x),
    "value_and_grad": lambda x: lineara.value_and_grad(f)(x)[1],
    "jacobian": lambda x: lineara.jacobian(np.sin)(x),
    "jacrev": lambda x: lineara.jacrev(np.sin)(x),
    "hessian": lambda x: lineara.hessian(f)(x),
    "hvp": lambda x: lineara.hvp(f)(x, x),
    "vjp": lambda x: lineara.vjp(f, x)[1](1.0)[0],
    "linearize": lambda x: 1.0 @ lineara.linearize(f, x)[1],
    "a map of a map": lambda x: np.ones(3) @ lineara.linearize(np.sin, x)[1],
}


CASES = [(way, dtype) for way in WAYS for dtype in ("float64", "float32")]
CASES += [(way, "complex128") for way in ("jacobian", "jacrev", "a map of a map")]


@pytest.mark.parametrize(("way", "dtype"), CASES)
def test_what_belongs_to_an_argument_is_of_its_kind(way, dtype):
    array = A.astype(dtype)
    x = xs.asarray(array)
    y, numpys = WAYS[way](x), WAYS[way](array)
    assert kind(y) == "array_api_strict"
    assert np.array_equal(np.asarray(y), numpys)
    assert np.asarray(y).dtype == numpys.dtype


def test_what_a_function_computes_is_numpys():
    y, L = lineara.linearize(np.sin, xs.asarray(A))
    assert type(y) is np.ndarray
    for v in (xs.asarray(A), A):  # a tangent may be of either kind
        assert np.array_equal(L @ v, np.cos(A) * A)
    assert type(lineara.jvp(np.sin, (xs.asarray(A),), (A,))[1]) is np.ndarray


def test_containers_of_them():
    point = {"w": xs.asarray(A), "s": 2.0, "n": xs.asarray([1, 2])}
    g = lineara.grad(lambda p: of_tree({**p, "n": np.sum(p["n"])}))(point)
    assert [kind(g["w"]), kind(g["n"])] == ["array_api_strict"] * 2
    assert np.array_equal(np.asarray(g["w"]), 4.0 * A)
    assert np.array_equal(np.asarray(g["n"]), [0.0, 0.0])
    assert g["s"] == np.sum(A * A)


def test_whole_numbers_alone_count_as_floating():
    g = lineara.grad(lambda x: np.sum(x**2))(xs.asarray([1, 2, 3]))
    assert np.array_equal(np.asarray(g), [2.0, 4.0, 6.0])


def test_an_array_without_axes():
    x = xs.asarray(2.0, dtype=xs.float32)
    for g in (lineara.grad(np.square)(x), lineara.jacobian(np.square)(x)):
        assert (kind(g), np.asarray(g).dtype, float(g)) == ("array_api_strict", np.float32, 4.0)


def test_sparse_gradients_stay_sparse():
    g = lineara.grad(lambda x: x[1] ** 2, sparse=True)(xs.asarray(A))
    assert isinstance(g, lineara.Rows | lineara.Coo)


def test_inside_of_another_differentiation():
    x = xs.asarray(A)

    def slope(c):
        return np.sum(lineara.grad(lambda v: c * f(v))(x))

    assert np.isclose(lineara.grad(slope)(2.0), np.sum(lineara.grad(f)(A)))


def test_memory_is_shared_and_not_changed():
    array = A.copy()
    lineara.grad(f)(xs.asarray(array, copy=False))
    assert np.array_equal(array, A)


def test_derivatives_are_compared_with_differences():
    assert lineara.check_grads(f, (xs.asarray(A),))


# --- what is refused, in its words ----------------------------------------------------------------

PROGRAMS = {
    "trace": lambda x: lineara.trace(f, x),
    "jit": lambda x: lineara.jit(lineara.grad(f))(x),
    "a policy": lambda x: lineara.grad(f, policy="minimal_tape")(x),
    "vmap": lambda x: lineara.vmap(f)(x),
    "taylor": lambda x: lineara.taylor(f, x, [x], 2),
    "ravel": lineara.ravel,
}
SAID = {"jit": "trace", "a policy": "trace"}


@pytest.mark.parametrize("name", PROGRAMS)
def test_arguments_of_programs_are_numpys(name):
    with pytest.raises(TypeMismatchError) as error:
        PROGRAMS[name](xs.asarray(A))
    assert error.value.message == (
        f"{SAID.get(name, name)}: takes NumPy's arrays, but was given array_api_strict Array; "
        "give np.from_dlpack(x), which is the same memory as NumPy's array"
    )


class OnADevice:
    """An array that is not in the processor's memory."""

    __lineara_leaf__ = True  # no container of attributes, as a class of a library's is none
    shape = (3,)
    dtype = np.dtype(float)

    def __dlpack_device__(self):
        return 2, 0

    def __dlpack__(self, **_):
        raise BufferError("the memory is on cuda:0\nand a second line")


def test_memory_that_numpy_does_not_read():
    with pytest.raises(TypeMismatchError) as error:
        lineara.grad(f)(OnADevice())
    assert error.value.message.startswith(
        f"the {__name__} OnADevice cannot be read as NumPy's array ("
    )
    assert error.value.message.endswith(
        "); give one of numbers that NumPy knows and that lies in the processor's memory"
    )
    assert "\n" not in error.value.message


def test_a_vector_of_another_shape():
    _, L = lineara.linearize(f, xs.asarray(A))
    with pytest.raises(LinearaError) as error:
        L @ xs.asarray([1.0])
    assert error.value.message == (
        "applying a linear map: a tangent of Array has the shape (3,), but was given one of (1,)"
    )


def test_no_framework_is_imported():
    script = (
        "import sys, numpy as np, lineara\n"
        "lineara.grad(np.sum)(np.ones(2)); lineara.jit(np.sum)(np.ones(2))\n"
        "print([m for m in ('torch', 'jax', 'array_api_strict') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr
