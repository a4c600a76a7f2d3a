"""Input that could have been an error and is not, and what it gives."""

import math

import numpy as np
import pytest

from lineara import grad, jvp, value_and_grad, vjp


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.longdouble, ">f8"])
def test_a_gradient_has_the_dtype_of_its_argument(dtype):
    g = grad(lambda x: np.sum(x * x))(np.ones(2, dtype))
    assert g.dtype == np.dtype(dtype)
    assert g.tolist() == [2.0, 2.0]


def test_integers_alone_are_promoted_and_do_not_overflow():
    assert grad(lambda x: np.sum(x * x * 100))(np.array([100], np.int8)).tolist() == [20_000.0]
    assert grad(lambda x: x * x)(10**20) == 2e20
    assert grad(lambda x: x * np.int8(100) * np.int8(100))(1.0) == 10_000.0


def test_integers_beside_floats_are_constants():
    assert grad(lambda p: p["n"] * p["x"])({"n": 3, "x": 2.0}) == {"n": 0.0, "x": 3.0}


def test_strings_none_and_flags_inside_a_container_stay_as_they_are():
    p = {"name": "lynx", "none": None, "flag": True, "x": 2.0}
    assert grad(lambda p: p["x"] ** 2)(p) == {**p, "x": 4.0}


def test_a_constant_function_has_the_gradient_zero():
    assert grad(lambda x: 1.0)(2.0) == 0.0
    assert grad(lambda x: 1)(np.ones(2)).tolist() == [0.0, 0.0]
    assert grad(lambda x: int(x))(2.5) == 0.0


def test_none_is_the_zero_vector():
    assert jvp(lambda x: x * x, (2.0,), (None,)) == (4.0, 0.0)
    assert vjp(lambda x: x * x, np.ones(2))[1](None)[0].tolist() == [0.0, 0.0]


def test_lists_beside_traced_values_are_arrays():
    assert grad(lambda x: np.sum([1.0, 2.0] * x + [0, 1]))(np.ones(2)).tolist() == [1.0, 2.0]


def test_traced_numbers_are_keys_and_members_of_sets_as_their_values_are():
    memo = {}

    def remembered(x):
        if x not in memo:
            memo[x] = x * x
        return memo[x]

    assert grad(lambda x: {3.0: 2.0}.get(x, 5.0) * x)(4.0) == 5.0
    assert grad(lambda x: sum({x, 2 * x, 3.0}))(4.0) == 3.0
    assert grad(lambda x: (x in {3.0: 2.0}) * x)(3.0) == 1.0
    assert grad(remembered)(3.0) == 6.0


def test_comparisons_are_numpys_truth_values():
    x = np.array([0.7, 0.3, -0.2])
    assert value_and_grad(lambda x: ~(x[0] > 0) * x[1] + x[2])(x)[0] == -0.2
    assert value_and_grad(lambda x: ((x[0] > 0) + (x[1] > 0)) * x[1])(x)[0] == 0.3


def test_numbers_of_numpy_widen_single_precision_as_numpy_does():
    x = np.array([1, 2, 3], np.float32)
    for f in (
        lambda x: np.float64(1e300) * x * 1e-300,
        lambda x: x * np.int64(16777217) - 16777216.0,
        lambda x: x * np.float64(2),
        lambda x: np.float64(2) * x,
        lambda x: x ** np.float64(2) + np.float64(2),
        lambda x: x * 2.0,
    ):
        y, g = value_and_grad(lambda x, f=f: np.sum(f(x)))(x)
        assert y == np.sum(f(x))
        assert g.dtype == np.float32


def test_what_the_user_gave_is_not_handed_out():
    x, w = np.arange(3.0), np.ones(3)
    y, pull = vjp(lambda x: x, x)
    pull(w)[0][0] = 5.0
    jvp(lambda x: x, (x,), (w,))[1][0] = 7.0
    y[0] = 9.0
    assert w.tolist() == [1.0, 1.0, 1.0]
    assert x.tolist() == [0.0, 1.0, 2.0]


def test_lists_are_vectors_in_products():
    x = np.array([1.0, 2.0, 3.0])
    for f in (lambda x: x @ [1, 2, 3], lambda x: [1, 2, 3] @ x, lambda x: np.dot([1, 2, 3], x)):
        assert grad(f)(x).tolist() == [1.0, 2.0, 3.0]


def test_traced_arrays_are_as_unhashable_as_arrays():
    with pytest.raises(TypeError, match="unhashable type: 'TracedArray'"):
        grad(lambda x: {x: 1.0}[x])(np.ones(2))


def test_python_s_own_errors_name_what_was_traced():
    for act, text in {
        (lambda x: x + "a"): "unsupported operand type(s) for +: 'TracedNumber' and 'str'",
        (lambda x: x + None): "unsupported operand type(s) for +: 'TracedNumber' and 'NoneType'",
        (lambda x: x[0]): "'TracedNumber' object is not subscriptable",
        (lambda x: [1, 2][x]): "list indices must be integers or slices, not TracedNumber",
    }.items():
        with pytest.raises(TypeError) as caught:
            grad(act)(1.0)
        assert str(caught.value) == text


def test_the_user_s_own_errors_pass_unchanged():
    def f(x):
        raise KeyError("zz")

    with pytest.raises(KeyError, match="zz"):
        grad(f)(1.0)
    with pytest.raises(ValueError, match="truth value of an array"):
        grad(lambda x: x[0] if x > 0 else 0.0)(np.ones(2))
    with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
        grad(lambda x: np.sum(np.linalg.solve(x, np.ones(2))))(np.zeros((2, 2)))
    with pytest.raises(ValueError, match=r"math domain error|expected a nonnegative input"):
        grad(math.sqrt)(-1.0)


def test_division_by_zero_follows_numpy_for_its_numbers_and_python_for_its_own():
    with np.errstate(all="ignore"):
        assert value_and_grad(lambda x: 1 / x)(np.float64(0.0)) == (math.inf, -math.inf)
    with pytest.raises(ZeroDivisionError, match="float division by zero"):
        grad(lambda x: 1 / x)(0.0)


def test_objects_may_hold_traced_values_for_a_while():
    def f(x):
        held = np.empty(1, object)
        held[0] = x
        return held[0] * x

    assert grad(f)(3.0) == 6.0


def test_names_of_sparse_leaves_are_looked_for(said):
    def f(p):
        return p["emb"][0] * 2.0

    found = said(lambda: grad(f, sparse="embed")({"emb": np.ones(3)}))
    assert found == (
        "StructureError: grad: sparse names embed, which is no leaf; the leaves are ['emb']\n"
        '  at <lambda>: found = said(lambda: grad(f, sparse="embed")({"emb": np.ones(3)}))'
    )
