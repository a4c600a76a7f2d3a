"""Traced values that were about to lose their derivative."""

import array
import importlib
import json
import pickle
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import scipy.linalg
import scipy.ndimage
import scipy.sparse.linalg
import scipy.special
from scipy import sparse

import lineara
from lineara import custom_linear, grad, stop_gradient
from lineara.errors import NoRuleError

plain, plain_complex = np.zeros(2), np.zeros(2, complex)


def test_write_of_a_number_into_a_plain_array(said):
    def f(x):
        plain[0] = x
        return x * x

    found = said(lambda: grad(f)(2.0))
    assert found == (
        "DetachError: float() of a traced f64[] here would lose its derivative: a "
        "plain array cannot hold it, nor can code that Lineara does not see; make the "
        "array that is written with np.zeros, np.array(a) or np.copy(a) in the differentiated "
        "function, or use lineara.stop_gradient to mean it"
        "\n  at f: plain[0] = x"
    )


def test_fill_of_a_plain_array(said):
    def f(x):
        plain.fill(x)
        return x

    found = said(lambda: grad(f)(2.0))
    assert found == (
        "DetachError: float() of a traced f64[] here would lose its derivative: a "
        "plain array cannot hold it, nor can code that Lineara does not see; make the "
        "array that is written with np.zeros, np.array(a) or np.copy(a) in the differentiated "
        "function, or use lineara.stop_gradient to mean it"
        "\n  at f: plain.fill(x)"
    )


def test_addition_in_place_to_an_element(said):
    def f(x):
        plain[0] += x
        return x

    found = said(lambda: grad(f)(2.0))
    assert found == (
        "DetachError: float() of a traced f64[] here would lose its derivative: a "
        "plain array cannot hold it, nor can code that Lineara does not see; make the "
        "array that is written with np.zeros, np.array(a) or np.copy(a) in the differentiated "
        "function, or use lineara.stop_gradient to mean it"
        "\n  at f: plain[0] += x"
    )


def test_addition_in_place_to_a_plain_array(said):
    def f(x):
        y = plain
        y += x
        return np.sum(y)

    found = said(lambda: grad(f)(np.ones(2)))
    assert found == (
        "DetachError: what out= or an operator such as += writes is a plain array, which cannot "
        "hold the derivative of a traced f64[2]; make it with np.zeros, np.array(a) or np.copy(a), "
        "not a.copy(), in the differentiated function, or leave out= away"
        "\n  at f: y += x"
    )


def test_out_plain(said):
    def f(x):
        np.add(x, x, out=plain)
        return np.sum(x)

    found = said(lambda: grad(f)(np.ones(2)))
    assert found == (
        "DetachError: what out= or an operator such as += writes is a plain array, which cannot "
        "hold the derivative of a traced f64[2]; make it with np.zeros, np.array(a) or np.copy(a), "
        "not a.copy(), in the differentiated function, or leave out= away"
        "\n  at f: np.add(x, x, out=plain)"
    )


def test_out_plain_of_a_sum(said):
    def f(x):
        np.sum(x, out=plain[0, ...])
        return np.sum(x)

    found = said(lambda: grad(f)(np.ones(2)))
    assert found == (
        "DetachError: what out= or an operator such as += writes is a plain array, which cannot "
        "hold the derivative of a traced f64[]; make it with np.zeros, np.array(a) or np.copy(a), "
        "not a.copy(), in the differentiated function, or leave out= away"
        "\n  at f: np.sum(x, out=plain[0, ...])"
    )


def test_add_at_a_plain_array(said):
    def f(x):
        np.add.at(plain, [0], x)
        return x

    found = said(lambda: grad(f)(2.0))
    assert found == (
        "DetachError: np.add.at writes traced values into a plain array, which cannot "
        "hold their derivative; make the array inside the differentiated function"
        "\n  at f: np.add.at(plain, [0], x)"
    )


def test_write_of_a_number_into_a_plain_complex_array(said):
    def f(x):
        plain_complex[0] = x
        return x * x

    found = said(lambda: grad(f)(2.0))
    assert found == (
        "DetachError: complex() of a traced f64[] would lose its derivative; make the array that "
        "is written in the differentiated function, or use lineara.stop_gradient to mean it"
        "\n  at f: plain_complex[0] = x"
    )


def test_a_typed_array(said):
    def f(x):
        return array.array("d", [x])[0]

    found = said(lambda: grad(f)(2.0))
    assert found == (
        "DetachError: float() of a traced f64[] here would lose its derivative: a "
        "plain array cannot hold it, nor can code that Lineara does not see; make the "
        "array that is written with np.zeros, np.array(a) or np.copy(a) in the differentiated "
        "function, or use lineara.stop_gradient to mean it"
        '\n  at f: return array.array("d", [x])[0]'
    )


def test_pickle_of_a_number(said):
    def f(x):
        return pickle.loads(pickle.dumps(x))

    found = said(lambda: grad(f)(2.0))
    assert found == (
        "DetachError: a traced value cannot be pickled: it belongs to a "
        "differentiation that runs here; take lineara.stop_gradient of it, or "
        "differentiate inside the other process"
        "\n  at f: return pickle.loads(pickle.dumps(x))"
    )


def test_pickle_of_an_array(said):
    def f(x):
        return np.sum(pickle.loads(pickle.dumps(x)))

    found = said(lambda: grad(f)(np.ones(2)))
    assert found == (
        "DetachError: a traced value cannot be pickled: it belongs to a "
        "differentiation that runs here; take lineara.stop_gradient of it, or "
        "differentiate inside the other process"
        "\n  at f: return np.sum(pickle.loads(pickle.dumps(x)))"
    )


def test_dot_method_of_a_plain_array(said):
    def f(x):
        return plain.dot(x)

    found = said(lambda: grad(f)(np.ones(2)))
    assert found == (
        "DetachError: a traced f64[2] was about to become a plain array, which would "
        "lose its derivative; use NumPy functions that have a rule, or "
        "lineara.stop_gradient to mean it"
        "\n  at f: return plain.dot(x)"
    )


@pytest.mark.parametrize("run", [grad, lineara.jit, lambda f: lineara.jit(grad(f))])
def test_a_write_to_an_array_from_outside(said, run):
    kept = np.zeros(2)

    def f(x):
        kept[:] = kept + x
        return kept.sum()

    assert said(lambda: run(f)(np.ones(2))) == (
        "DetachError: a traced f64[2] was about to become plain numbers in a write to an array "
        "that was made outside of the function; make the array that is written with np.zeros, "
        "np.array(a) or np.copy(a) in the function, and return it"
        "\n  at f: kept[:] = kept + x"
    )


def test_index_of_a_plain_array(said):
    def f(x):
        return plain[x]

    found = said(lambda: grad(f)(1.0))
    assert found == (
        "DetachError: a traced f64[] was about to become a plain array, which would "
        "lose its derivative; use NumPy functions that have a rule, or "
        "lineara.stop_gradient to mean it"
        "\n  at f: return plain[x]"
    )


def test_function_of_scipy_that_needs_arrays(said):
    def f(x):
        return np.sum(scipy.linalg.schur(x)[0])

    found = said(lambda: grad(f)(np.eye(2)))
    assert found == (
        "NoRuleError: scipy.linalg.schur of a traced value has no derivative rule; a matrix has "
        "many such forms; eigvals, eigh, expm and solve_sylvester have rules"
        "\n  at f: return np.sum(scipy.linalg.schur(x)[0])"
    )


def test_callback_from_c(said):
    def f(x):
        return scipy.ndimage.generic_filter(np.ones(3), lambda w: x * w[0], 3)[1]

    found = said(lambda: grad(f)(2.0))
    assert found == (
        "DetachError: float() of a traced f64[] here would lose its derivative: a "
        "plain array cannot hold it, nor can code that Lineara does not see; make the "
        "array that is written with np.zeros, np.array(a) or np.copy(a) in the differentiated "
        "function, or use lineara.stop_gradient to mean it"
        "\n  at f: return scipy.ndimage.generic_filter(np.ones(3), lambda w: x * w[0], 3)[1]"
    )


def test_stop_gradient_says_that_no_derivative_is_meant():
    def f(x):
        plain[0] = stop_gradient(x)
        return x * x

    assert grad(f)(3.0) == 6.0
    assert plain[0] == 3.0


@pytest.mark.parametrize("kind", [str, "T"])
def test_text(said, kind):
    def f(x):
        return float(x.astype(kind)[0])

    found = said(lambda: grad(f)(np.ones(2)))
    assert found == (
        "DetachError: a traced f64[2] was about to become text, which cannot hold its "
        "derivative; keep it as numbers, or use lineara.stop_gradient to mean it"
        "\n  at f: return float(x.astype(kind)[0])"
    )


def test_spans_of_time(said):
    def f(x):
        return np.array([x[0], 2.0], dtype="m8[s]").astype(float).sum()

    found = said(lambda: grad(f)(np.ones(2)))
    assert found == (
        "DetachError: a traced f64[2] was about to become spans of time, which cannot hold its "
        "derivative; keep it as numbers, or use lineara.stop_gradient to mean it"
        '\n  at f: return np.array([x[0], 2.0], dtype="m8[s]").astype(float).sum()'
    )


OF_OBJECTS = {
    "astype": lambda x: (x.astype(object) ** 2).sum(),
    "astype of a scalar": lambda x: x[0].astype(object) ** 2 + x[1] ** 2,
    "array": lambda x: (np.array([x[0], x[1]], dtype=object) ** 2).sum(),
    "array of arrays": lambda x: (np.array([x, 0 * x], dtype=object) ** 2).sum(),
    "ragged": lambda x: sum(v**2 for v in np.array([x[:1], x[1:]], dtype=object).ravel()),
    "asarray": lambda x: (np.asarray(x, dtype=object) ** 2).sum(),
    "asanyarray": lambda x: (np.asanyarray(x, dtype=object) ** 2).sum(),
    "ascontiguousarray": lambda x: (np.ascontiguousarray(x, dtype=object) ** 2).sum(),
    "asfortranarray": lambda x: (np.asfortranarray(x, dtype=object) ** 2).sum(),
    "full": lambda x: sum(np.full(1, v, dtype=object)[0] ** 2 for v in x),
}


@pytest.mark.parametrize("name", OF_OBJECTS)
def test_arrays_of_objects_keep_derivatives(name):
    assert np.array_equal(grad(OF_OBJECTS[name])(np.array([1.0, 2.0])), [2.0, 4.0])


def test_text_of_a_stopped_value_is_meant():
    found = grad(lambda x: float(stop_gradient(x).astype(str)[0]) * x[1])(np.array([1.0, 2.0]))
    assert np.array_equal(found, [0.0, 1.0])


MATRIX = scipy.sparse.csr_array(np.array([[1.0, 2.0], [0.0, 3.0]]))


def test_a_sparse_matrix(said):
    assert said(lambda: grad(lambda x: np.sum(MATRIX.multiply(x)))(np.ones(2))).startswith(
        "DetachError: a traced f64[2] was about to become a plain array, which would lose its "
        "derivative; of a sparse matrix A the products A @ x, x @ A, A.dot(x) and p * A have "
        "rules, and spsolve; the others have A.toarray(), or "
        "lineara.stop_gradient to mean it\n  at <lambda>: "
    )


REFUSED = [
    (lambda a: a.max(), "scipy.sparse.csr_matrix.max: of traced values it has no rule; products, "
     "sums, .T, .diagonal(), .multiply() and .toarray() have"),
    (lambda a: a[0, 0], "a part of a sparse matrix of traced values has no rule; A.toarray()[...] "
     "has one"),
    (lambda a: a.todense(), "csr_matrix.todense: makes a np.matrix; use toarray()"),
    (lambda a: a.sum(axis=0), "csr_matrix.sum: along an axis it is a np.matrix, whose * is another "
     "one; A.toarray().sum(axis) has a rule, and so has A @ np.ones(n)"),
    (lambda a: a + 1.0, "a number added to a sparse matrix fills it; use A.toarray()"),
    (lambda a: a.multiply(a), "a sparse matrix of traced values times the elements of another has "
     "no rule; A.multiply(B.toarray()) has one"),
    (lambda a: (a + a).power(2), "power: several entries make one element; use A.toarray() ** n"),
    (lambda a: sparse.linalg.lobpcg(a, a), "scipy.sparse.linalg.lobpcg of traced values has no "
     "rule; eigsh has, and numpy.linalg.eigh of A.toarray()"),
]  # fmt: skip


@pytest.mark.parametrize(("act", "text"), REFUSED)
def test_what_a_sparse_matrix_of_traced_values_has_not(act, text):
    with pytest.raises(NoRuleError) as caught:
        grad(lambda x: act(sparse.csr_matrix((x, ([0, 1], [1, 0])))) * 1.0)(np.ones(2))
    assert caught.value.message == text


def test_a_sparse_matrix_as_a_linear_function():
    times = custom_linear(lambda v: MATRIX @ v, transpose=lambda w: MATRIX.T @ w)
    assert np.array_equal(grad(lambda x: np.sum(times(x)))(np.ones(2)), [1.0, 5.0])


@pytest.mark.parametrize(
    "act",
    [
        lambda x: json.loads(json.dumps(x)),
        lambda x: json.loads(json.dumps({"loss": [x]}, indent=1))["loss"][0],
    ],
)
def test_code_that_wants_the_digits(said, act):
    assert said(lambda: grad(act)(2.0)).startswith(
        "DetachError: float() of a traced f64[] here would lose its derivative: a plain array "
    )


def test_a_unit_that_multiplies_a_traced_value():
    units = importlib.import_module("pint").UnitRegistry()
    metres = grad(lambda x: np.sum((x * units.km).to("m").magnitude ** 2))
    assert metres(2.0) == 4e6
    assert np.array_equal(metres(np.array([1.0, 2.0])), [2e6, 4e6])
    assert grad(lambda x: (units.km * x / units.hour).to("m/hour").magnitude)(2.0) == 1000.0


SHIFTED = (
    "a random generator takes plain parameters: shift and scale what it draws, "
    "loc + scale * rng.normal(size=n), or draw with lineara.random"
)
CHOSEN = "a random generator takes plain arrays: draw positions, x[rng.permutation(len(x))]"
GENERATOR = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("f", "type_", "works"),
    [
        (lambda x: GENERATOR.normal(x[0], 1.0), "f64[]", SHIFTED),
        (lambda x: np.random.default_rng(0).uniform(high=x[1], size=3)[0], "f64[]", SHIFTED),
        (lambda x: GENERATOR.multivariate_normal(
            x, np.eye(2))[0], "f64[2]", SHIFTED),
        (lambda x: np.random.RandomState(0).poisson(x), "f64[2]", SHIFTED),
        (lambda x: GENERATOR.permutation(x)[0], "f64[2]", CHOSEN),
        (lambda x: GENERATOR.choice(x, 2)[0], "f64[2]", CHOSEN),
    ],
)  # fmt: skip
def test_a_random_generator_with_a_traced_parameter(said, f, type_, works):
    assert said(lambda: grad(f)(np.ones(2))).split("\n")[0] == (
        f"DetachError: a traced {type_} was about to become a plain array, which would lose its "
        f"derivative; {works}, or lineara.stop_gradient to mean it"
    )


def test_what_is_advised_for_random_generators_works():
    def f(x):
        rng = np.random.default_rng(0)
        return np.sum(x[0] + x[1] * rng.normal(size=3)) + x[rng.permutation(len(x))][0]

    drawn = np.random.default_rng(0)
    sum_ = np.sum(drawn.normal(size=3))
    expected = np.array([3.0, sum_]) + (drawn.permutation(2)[0] == np.arange(2))
    assert np.allclose(grad(f)(np.ones(2)), expected)


def test_the_address_of_an_array_that_is_made_inside(said):
    def f(x):
        y = np.zeros(2)
        y.ctypes.data_as(None)
        return np.sum(x + y)

    assert said(lambda: grad(f)(np.ones(2))) == (
        "DetachError: ctypes: what is written at the address of an array that is made in a "
        "differentiated function would be lost; take a plain copy, np.array(y.tolist()), and write "
        "it back with y[...] = copy\n  at f: y.ctypes.data_as(None)"
    )


def test_a_memo_that_holds_an_equal_number(said):
    memo = {2.0: 4.0}

    def f(x):
        if x not in memo:
            memo[x] = x * x
        return memo[x]

    assert said(lambda: grad(f)(2.0)) == (
        "DetachError: a dict or a set was asked for a traced f64[] and has another number that is "
        "equal: what it holds has the derivative of that number, or none; give each "
        "differentiation a memo of its own, or ask for lineara.stop_gradient(x) to mean it"
        "\n  at f: return memo[x]"
    )
    memo.clear()
    assert grad(f)(2.0) == 4.0


def test_fraction(said):
    def f(x):
        return float(Fraction(x)) * x

    assert said(lambda: grad(f)(2.0)) == (
        "DetachError: a Fraction of a traced number would lose its derivative; compute with "
        "floats, or give it lineara.stop_gradient(x) to mean a constant\n"
        "  at f: return float(Fraction(x)) * x"
    )


def test_compiled_code_that_takes_floats_only(said):
    def f(x):
        return float(Decimal(x)) * x

    def caught(x):
        try:
            return f(x)
        except TypeError:
            return 2.0 * x

    message = (
        "DetachError: compiled code takes no traced number: conversion from TracedNumber to "
        "Decimal is not supported; compute with Python's operators, math and NumPy, or give it "
        "lineara.stop_gradient(x) to mean a constant\n"
    )
    assert said(lambda: grad(f)(2.0)) == message + "  at f: return float(Decimal(x)) * x"
    assert said(lambda: grad(caught)(2.0)) == message + "  at caught: except TypeError:"


def test_a_number_that_is_not_finite_among_whole_ones(said):
    def f(x):
        counts = np.zeros(2, int)
        counts[0] = np.float64(x) * np.inf
        return x

    assert said(lambda: grad(f)(2.0)) == (
        "DetachError: a traced f64[] was about to become a plain array, which would lose its "
        "derivative; use NumPy functions that have a rule, or lineara.stop_gradient to mean it\n"
        "  at f: counts[0] = np.float64(x) * np.inf"
    )


def test_records(said):
    def f(x):
        return np.array([(1, (2, x))], dtype=[("a", int), ("b", "f8, f8")])

    assert said(lambda: grad(f)(2.0)) == (
        "DetachError: a list of traced numbers was about to become records, which cannot hold its "
        "derivative; keep it as numbers, or use lineara.stop_gradient to mean it\n"
        '  at f: return np.array([(1, (2, x))], dtype=[("a", int), ("b", "f8, f8")])'
    )
