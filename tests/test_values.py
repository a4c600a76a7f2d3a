"""The value of a call is NumPy's own: bits, dtype, strides and exceptions, whoever composes it."""

import math
import statistics
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest
import scipy.linalg

import lineara
from lineara.errors import DetachError, LinearaError
from lineara.facts.registry import registry
from lineara.python.numpy_values import is_composed

X = np.array([0.3, 1.7, -2.1, 0.9, 5.5, 0.1])
M = np.array([[2.0, 0.3, 0.1], [0.4, 3.0, 0.7], [0.5, 0.2, 1.0]])
CALLS = {
    "median": lambda x: np.median(x),
    "quantile": lambda x: np.quantile(x, [0.1, 0.77]),
    "std": lambda x: np.std(x, ddof=1),
    "var of columns": lambda x: np.var(np.reshape(x, (2, 3)), axis=0),
    "average": lambda x: np.average(x, weights=[1, 2, 3, 4, 5, 6]),
    "cov": lambda x: np.cov(x, x[::-1]),
    "corrcoef": lambda x: np.corrcoef(x, x[::-1]),
    "interp": lambda x: np.interp([0.1, 2.2], [0, 1, 2, 3, 4, 5], x),
    "gradient": lambda x: np.gradient(x, 0.1),
    "trapezoid": lambda x: np.trapezoid(x, dx=0.3),
    "convolve": lambda x: np.convolve(x, [0.1, 0.7, 0.3], "same"),
    "polyval": lambda x: np.polyval(x, 0.3),
    "polyfit": lambda x: np.polyfit(np.arange(6.0), x, 2),
    "pinv": lambda x: np.linalg.pinv(M * x[:3]),
    "norm": lambda x: np.linalg.norm(x),
    "cond": lambda x: np.linalg.cond(M * x[:3]),
    "slogdet": lambda x: np.linalg.slogdet(M * x[:3])[1],
    "matrix_power": lambda x: np.linalg.matrix_power(M * x[:3], 3),
    "cross": lambda x: np.cross(np.reshape(x, (2, 3)), M[:2]),
    "kron": lambda x: np.kron(M, x),
    "hypot.accumulate": lambda x: np.hypot.accumulate(x),
    "logaddexp.reduce": lambda x: np.logaddexp.reduce(x),
    "multiply.reduceat": lambda x: np.multiply.reduceat(x, [0, 2, 5]),
    "reduceat of nothing": lambda x: np.multiply.reduceat(x, []),
    "divmod": lambda x: np.divmod(x, 0.7)[1],
    "float_power": lambda x: np.float_power(np.abs(x), 1.3),
    "unwrap": lambda x: np.unwrap(3 * x),
    "nanmean": lambda x: np.nanmean(x),
    "geomspace": lambda x: np.geomspace(x[1], x[4], 7),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
@pytest.mark.parametrize("name", CALLS)
def test_the_value_of_a_call_is_that_of_numpy(name: str, dtype: type):
    f, x = CALLS[name], X.astype(dtype)
    try:
        plain = np.asarray(f(x))
    except TypeError:  # linear algebra of half numbers
        pytest.skip("NumPy refuses it, too")
    value, _ = lineara.vjp(f, x)
    value = np.asarray(value)
    assert (value.dtype, value.strides) == (plain.dtype, plain.strides)
    assert value.tobytes() == plain.tobytes()


def _caught(f, x):
    try:
        f(x)
    except Exception as error:
        return type(error)
    return None


RAISING = {
    "axis": lambda x: np.sum(x, axis=3),
    "axis of a composition": lambda x: np.median(x, axis=3),
    "axis of a join": lambda x: np.concatenate([x, x], axis=1),
    "axis of a method": lambda x: x.std(axis=1),
    "shape of out": lambda x: np.concatenate([x, x], out=np.zeros(3)),
    "cast to out": lambda x: np.concatenate([x, x], out=np.zeros(12, int)),
    "casting": lambda x: np.concatenate([x, x], dtype=np.float32, casting="safe"),
    "indices": lambda x: np.add.reduceat(x, [9]),
    "singular": lambda x: np.linalg.solve(np.zeros((2, 2)), x[:2]),
    "order of a norm": lambda x: np.linalg.norm(np.reshape(x, (2, 3)), 3),
    "keyword": lambda x: np.sum(x, axes=0),
    "shapes": lambda x: np.cross(np.reshape(x, (1, 6)), x),
}


@pytest.mark.parametrize("name", RAISING)
def test_what_numpy_raises_is_caught_as_what_it_is(name: str):
    f = RAISING[name]
    plain = _caught(f, X)
    assert plain is not None

    def program(x):
        try:
            f(x)
        except plain:
            return 3.0 * x[0]
        return x[0]

    value, gradient = lineara.value_and_grad(program)(X)
    assert (value, gradient[0]) == (3.0 * X[0], 3.0)


def test_a_derivative_that_fails_where_numpy_has_a_value_is_refused():
    singular = np.array([[1.0, 2.0], [2.0, 4.0]])
    with pytest.raises(np.linalg.LinAlgError, match="NumPy has a value here") as found:
        lineara.grad(lambda a: np.linalg.slogdet(a)[1])(singular)
    assert isinstance(found.value, LinearaError)


def test_a_composition_that_disagrees_is_refused(monkeypatch):
    assert is_composed(np.median)
    other = replace(registry.foreign[np.median], ours=lambda x: x[0])
    monkeypatch.setitem(registry.foreign, np.median, other)
    with pytest.raises(LinearaError) as found:
        lineara.grad(lambda x: np.median(x))(X)
    assert found.value.message == (
        "numpy.median: its value, f64[], is another than that of the composition that the "
        "derivative would come from; write it with functions that have a rule"
    )


def test_tables_by_function_are_found_behind_decorators():
    class Model:
        table: ClassVar = {np.sin: 2.0, np.cos: 3.0}

        @np.errstate(all="ignore")
        def scaled(self, f, x):
            return self.table[f] * f(x)

    model = Model()
    assert lineara.grad(lambda x: model.scaled(np.sin, x))(0.5) == pytest.approx(2.0 * np.cos(0.5))


def test_eigenvectors_have_the_signs_of_the_plain_call():
    rng = np.random.default_rng(3)
    for _ in range(20):
        a = rng.normal(size=(4, 4))
        a, b = a + a.T, a @ a.T + np.eye(4)
        for f in (
            lambda x: scipy.linalg.eigh(x, subset_by_index=[1, 2])[1],
            lambda x, b=b: scipy.linalg.eigh(x, b)[1],
            lambda x: scipy.linalg.eigh_tridiagonal(np.diag(x), np.diag(x, 1))[1],
        ):
            y, L = lineara.linearize(f, a)
            np.testing.assert_array_equal(y, f(a))
            e = rng.normal(size=a.shape)
            e = e + e.T
            np.testing.assert_allclose(
                L @ e, (f(a + 1e-6 * e) - f(a - 1e-6 * e)) / 2e-6, 1e-4, 1e-5
            )


@pytest.mark.parametrize(
    "name", ["mean", "fmean", "median", "variance", "stdev", "pvariance", "pstdev"]
)
def test_a_function_of_python_gives_numbers_of_python(name):
    def f(data):
        y = getattr(statistics, name)(data)
        return 2 * y if type(y) is float else y

    data = [1.5, 2.5, 4.0]
    assert lineara.value_and_grad(f)(data)[0] == f(data)
    single = [np.float64(v) for v in data]
    assert lineara.value_and_grad(f)(single)[0] == f(single)


OF_ITEMS = [
    *[getattr(statistics, n) for n in ("mean", "fmean", "variance", "stdev", "pstdev")],
    math.fsum,
]


@pytest.mark.parametrize("way", ["generator", "iterator", "map"])
@pytest.mark.parametrize("f", OF_ITEMS, ids=lambda f: f.__name__)
def test_an_iterator_counts_as_the_list_of_its_items(f, way):
    def items(data):
        if way == "map":
            return map(lambda v: v * v, data)
        squares = (v * v for v in data)
        return squares if way == "generator" else iter([*squares])

    data = [1.5, 2.5, 4.0]
    want = lineara.value_and_grad(lambda data: f([v * v for v in data]))(data)
    assert any(want[1])
    for g in (lineara.value_and_grad(lambda data: f(items(data))),
              lineara.value_and_grad(lineara.jit(lambda data: f(items(data))))):  # fmt: skip
        value, slopes = g(data)
        assert value == f(items(data))
        np.testing.assert_allclose(slopes, want[1], rtol=1e-14)


def test_a_library_that_calculates_with_integer_ratios_is_refused():
    def f(data):
        return statistics.NormalDist.from_samples(data).stdev

    with pytest.raises(DetachError) as e:
        lineara.grad(f)([1.5, 2.5, 4.0])
    assert e.value.message == (
        "statistics calculates with the integer ratio of a traced number, which would lose its "
        "derivative; write the sum itself, or use lineara.stop_gradient(x) to mean a constant"
    )
    assert "in f: return statistics.NormalDist" in str(e.value)
