"""An argument that is an array without axes: its class is an array's, and a write is refused."""

import operator

import numpy as np
import pytest

import lineara
from lineara.errors import MutationError

X = np.array(2.0)


def shift(v, by):
    v += by


def through_another_name(t):
    shift(t, 1.0)
    return t * t


def by_an_index(t):
    t[...] = 3.0
    return t * t


def in_a_loop(t):
    for i in range(3):
        shift(t, i)
    return t * t


WAYS = {
    "grad": lineara.grad,
    "jit": lineara.jit,
    "jit of grad": lambda f: lineara.jit(lineara.grad(f)),
    "grad of jit": lambda f: lineara.grad(lineara.jit(f)),
    "grad of grad": lambda f: lineara.grad(lineara.grad(f)),
    "jvp": lambda f: lambda t: lineara.jvp(f, (t,), (t,)),
    "linearize": lambda f: lambda t: lineara.linearize(f, t),
    "jacobian": lineara.jacobian,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("f", [through_another_name, by_an_index, in_a_loop])
def test_a_write_is_refused(f, way):
    with pytest.raises(MutationError) as e:
        WAYS[way](f)(X.copy())
    assert e.value.message == (
        "an argument that is an array without axes (f64) was written in place, which its other "
        "names would not see: it is a number here; bind a new value, t = t + 1, or write into a "
        "copy, t.copy()"
    )


@pytest.mark.parametrize("dtype", ["f4", "f8", "c16"])
@pytest.mark.parametrize("stem", ["add", "sub", "mul", "truediv", "pow"])
def test_each_operator_and_type_of_number(dtype, stem):
    with pytest.raises(MutationError):
        lineara.linearize(lambda t: getattr(operator, f"i{stem}")(t, t), np.array(2.0, dtype))


def test_numbers_and_copies_are_bound_anew():
    def f(t):
        u = t.copy()
        u += t
        t = t * u
        t += 1.0
        return t

    for way in (lineara.grad, lambda f: lineara.jit(lineara.grad(f))):
        assert way(f)(X) == 8.0
    g = lineara.jit(through_another_name)
    assert [g(2.0), g(np.float64(2.0))] == [4.0, 4.0]
    with pytest.raises(MutationError):
        g(X)


@pytest.mark.parametrize("asks", [
    lambda t: isinstance(t, np.ndarray),
    lambda t: type(t) is np.ndarray,
    lambda t: not isinstance(t, float | np.generic),
    lambda t: type(t).__name__ == "ndarray",
    lambda t: t.__class__ is np.ndarray,
], ids=["isinstance", "type", "no number", "name", "class"])  # fmt: skip
def test_its_class_is_that_of_an_array_and_results_are_numbers(asks):
    def f(t):
        y = t * 3.0 if asks(t) else t * 2.0
        return y * 5.0 if asks(y) else y

    assert f(X) == 6.0
    ways = [WAYS[w](f)(X) for w in ("grad", "jit of grad", "grad of jit")]
    assert [lineara.jit(f)(X), lineara.vmap(f)(np.ones(2))[0], *ways] == [6.0, 2.0, 3.0, 3.0, 3.0]
    assert lineara.jit(f)(np.float64(2.0)) == f(np.float64(2.0)) == 4.0
