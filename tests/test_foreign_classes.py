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


# --- classes that NumPy asks by its protocols -----------------------------------------------------


HANDLED = {}


def implements(function):
    def declare(ours):
        HANDLED[function] = ours
        return ours

    return declare


class Asked:
    """An array whose class answers what a table of functions has."""

    def __init__(self, v):
        self.v = v

    def __array_function__(self, function, types, args, kwargs):
        return HANDLED[function](*args, **kwargs) if function in HANDLED else NotImplemented

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        if ufunc is np.exp or ufunc == np.sin or ufunc in (np.multiply, np.gcd):
            inner = [a.v if isinstance(a, Asked) else a for a in inputs]
            return Asked(getattr(ufunc, method)(*inner, **options))
        return NotImplemented


@implements(np.sum)
def _(a):
    return 3.0 * np.sum(a.v)


@implements(np.concatenate)
def _(arrays, axis=0):
    return Asked(np.concatenate([a.v for a in arrays], axis))


def with_a_table_of_its_own(x):
    handled = {np.mean: lambda a: 5.0 * a.v.mean()}

    class Own:
        def __init__(self):
            self.v = x

        def __array_function__(self, function, types, args, kwargs):
            return handled[function](*args)

    return np.mean(Own())


class Inner(np.ndarray):
    """An array of NumPy's that leaves the answer to NumPy."""

    def __array_function__(self, function, types, args, kwargs):
        seen.append((function.__name__, function is np.sum, function is np.full))
        return super().__array_function__(function, types, args, kwargs)


seen = []
ROWS = np.arange(4.0).view(Inner)
ASKED = {
    "a table": lambda x: np.sum(Asked(x)),
    "a sequence": lambda x: np.sum(np.concatenate([Asked(x), Asked(x * x)])),
    "by identity": lambda x: np.exp(Asked(x)).v.sum(),
    "by equality": lambda x: np.sin(Asked(x)).v.sum(),
    "in a tuple": lambda x: np.multiply(Asked(x), x).v.sum() + np.gcd(Asked(4), 6).v,
    "a method": lambda x: np.multiply.outer(Asked(x), x).v.sum(),
    "a class inside": with_a_table_of_its_own,
    "left to NumPy": lambda x: x @ x * float(np.sum(ROWS)) * float(np.full(2, 3.0, like=ROWS)[0]),
    "an inner function": lambda x: np.sum._implementation(x) * float(np.sum._implementation(ROWS)),
}


@pytest.mark.parametrize("name", ASKED)
def test_a_class_knows_the_function_that_numpy_asks_it_for(name):
    f = ASKED[name]
    seen.clear()
    plain = f(X)
    told, seen[:] = seen.copy(), []
    value, slopes = lineara.value_and_grad(f)(X)
    assert (value, seen) == (plain, told)
    check(f, X, slopes)


def check(f, x, slopes):
    up, down = ([f(x + h * e) for e in np.eye(len(x))] for h in (1e-6, -1e-6))
    np.testing.assert_allclose(slopes, np.subtract(up, down) / 2e-6, rtol=1e-6)


@pytest.mark.parametrize("function", [np.sum, np.asarray, np.sin, np.random.normal])
def test_numpy_knows_what_may_be_overridden(function):
    def f(x):
        o = np.testing.overrides
        seen.append(
            (
                o.allows_array_function_override(function),
                o.allows_array_ufunc_override(function),
                function in o.get_overridable_numpy_array_functions(),
                function in o.get_overridable_numpy_ufuncs(),
            )
        )
        return x

    seen.clear()
    f(1.0)
    lineara.grad(f)(1.0)
    assert seen[0] == seen[1]
