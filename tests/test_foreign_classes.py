"""Classes of the user's that answer operators and ufuncs: NumPy asks them, and so do traced values.

A traced number may be of any dtype, staged, or traced twice: the class answers all the same.
"""

from typing import Any

import numpy as np
import pytest

import lineara


class Pair:
    """Two numbers with operators of their own; NumPy's numbers leave the answer to it."""

    def __init__(self, a, b):
        self.a, self.b = a, b

    def __radd__(self, k):
        return Pair(k + self.a, self.b)

    def __rsub__(self, k):
        return Pair(k - self.a, -self.b)

    def __rmul__(self, k):
        return Pair(k * self.a, k * self.b)

    def __rtruediv__(self, k):
        return Pair(k / self.a, k / self.b)

    def __rpow__(self, k):
        return Pair(k**self.a, k**self.b)

    def __rmod__(self, k):
        return Pair(k % self.a, self.b)

    __add__ = __mul__ = None


class Ruler:
    """One array; every ufunc is answered, and noted."""

    def __init__(self, v):
        self.v = v

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        inner = [a.v if isinstance(a, Ruler) else a for a in inputs]
        return Ruler(getattr(ufunc, method)(*inner, **options))


OPERATORS = {
    "add": (lambda k, p: k + p, lambda x: 5 * x[0] + x[1]),
    "subtract": (lambda k, p: k - p, lambda x: x[0] - x[1] + 4 * -2.0),
    "multiply": (lambda k, p: k * p, lambda x: x[0] * x[1] + 4 * 2.0 * x[0]),
    "divide": (lambda k, p: k / p, lambda x: x[0] / x[1] + 2 * x[0]),
    "power": (lambda k, p: k**p, lambda x: x[0] ** x[1] + 4 * x[0] ** 2),
    "remainder": (lambda k, p: k % p, lambda x: x[0] % x[1]),
}
X = np.array([1.7, 0.6])
ENGINES = {
    "eager": lineara.grad,
    "staged": lambda f: lineara.grad(f, policy="store_all"),
    "nested": lambda f: lineara.grad(lambda x: lineara.jvp(f, (x,), (x,))[1]),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_is_left_to_the_class(name, engine, dtype):
    act, _ = OPERATORS[name]

    def f(x):
        p = act(x[0], Pair(x[1], 2.0))
        assert type(p.a) is not type(None)
        return p.a + 4 * p.b

    def alone(x):
        a, b = act(x[0], x[1]), 4 * act(x[0], 2.0)
        b = {"add": 8.0, "subtract": -8.0, "remainder": 8.0}.get(name, b)
        return a + b

    x = X.astype(dtype)
    found, expected = ENGINES[engine](f)(x), ENGINES[engine](alone)(x)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, expected, rtol=1e-5 if dtype == np.float32 else 1e-13)


MAKE: Any = Ruler
FORMS = {
    "operator": lambda x: (x * MAKE(x)).v,
    "ufunc": lambda x: np.multiply(x, MAKE(x)).v,
    "reflected": lambda x: np.multiply(MAKE(x), x).v,
    "number": lambda x: (x[0] * MAKE(x[0])).v,
    "plain": lambda x: (x * MAKE(np.array([1.7, 0.6]))).v * x / X,
    "unary": lambda x: np.square(MAKE(x)).v,
    "reduce": lambda x: np.multiply.outer(MAKE(x), x).v[[0, 1], [0, 1]],
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("form", FORMS)
def test_a_ufunc_is_left_to_the_class(form, engine):
    def f(x):
        return np.sum(FORMS[form](x))

    def square(x):
        return x[0] * x[0] if form == "number" else np.sum(x * x)

    np.testing.assert_allclose(ENGINES[engine](f)(X), ENGINES[engine](square)(X), rtol=1e-13)
