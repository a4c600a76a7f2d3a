"""Arguments to differentiate by name, and the one convention of `hvp` and `hessian`."""

import pickle
import warnings

import numpy as np
import pytest

import lineara
from lineara import errors, grad, hessian, hvp, jacfwd, jacobian, jacrev, value_and_grad

X = np.array([1.0, 2.0])


def energy(x, rate=2.0, *, scale=1.0):
    return scale * rate**2 * np.sum(x**3)


def vector(x, rate=2.0, *, scale=1.0):
    return scale * rate * x**2


def test_a_name_is_a_position_however_the_argument_is_given():
    wanted = grad(energy, 1)(X, 3.0)
    by_name = grad(energy, argnames="rate")
    assert by_name(X, 3.0) == by_name(X, rate=3.0) == by_name(x=X, rate=3.0) == wanted == 54.0
    assert by_name(X) == 36.0  # where its default is


def test_several_names_give_a_dict():
    value, g = value_and_grad(energy, argnames=["x", "scale"])(X, 3.0, scale=2.0)
    assert value == 162.0
    assert g["scale"] == 81.0
    assert np.array_equal(g["x"], 54.0 * X**2)


@pytest.mark.parametrize("of", [jacobian, jacfwd, jacrev])
def test_jacobians_take_names(of):
    assert np.array_equal(of(vector, argnames="rate")(X, rate=3.0), X**2)
    blocks = of(vector, argnames=["x", "scale"])(X, 3.0, scale=2.0)
    assert np.array_equal(blocks["x"], np.diag(12.0 * X))
    assert np.array_equal(blocks["scale"], 3.0 * X**2)


def test_second_derivatives_take_names():
    H = hessian(energy, argnames=["x", "rate"])(X, 3.0)
    assert np.array_equal(H["x"]["x"], np.diag(54.0 * X))
    assert np.array_equal(H["x"]["rate"], 18.0 * X**2)
    v = {"x": np.array([1.0, 0.0]), "rate": 2.0}
    moved = hvp(energy, argnames=["x", "rate"])(X, 3.0, v)
    assert np.allclose(moved["x"], H["x"]["x"] @ v["x"] + H["x"]["rate"] * 2.0)
    assert hvp(energy, argnames="rate")(1.0, x=X, rate=3.0) == 18.0


def test_hvp_of_positions():
    moved = hvp(energy, (0, 1))(X, 3.0, (np.zeros(2), 1.0))
    assert np.array_equal(moved[0], 18.0 * X**2)
    assert moved[1] == 18.0
    assert hvp(energy, 1)(X, 3.0, 1.0, scale=2.0) == 36.0


def test_a_plan_takes_names():
    plan = lineara.sparse_plan(lambda a, x: a * x**2, 3.0, X, argnames="x")
    assert np.array_equal(plan(3.0, X).toarray(), np.diag(6.0 * X))


def test_names_go_through_jit_policies_and_pickles():
    of = grad(energy, argnames="rate")
    assert lineara.jit(of)(X, 3.0) == pickle.loads(pickle.dumps(of))(X, 3.0) == 54.0
    assert grad(energy, argnames="rate", policy="store_all")(X, 3.0) == 54.0
    assert grad(of, argnames="rate")(X, 3.0) == 18.0


@pytest.mark.parametrize(
    ("keywords", "said"),
    [
        (
            {"argnames": "rte"},
            "grad: argnames='rte': f has no parameter 'rte'; its parameters are x, rate, scale",
        ),
        (
            {"argnames": []},
            "grad: argnames=[]: no name is given; its parameters are x, rate, scale",
        ),
        (
            {"argnames": "x", "argnums": 1},
            "grad: argnums=1 and argnames='x' both say what to differentiate; give one of them",
        ),
    ],
)
def test_names_that_are_none(keywords, said):
    with pytest.raises(errors.TypeMismatchError) as e:
        grad(energy, **keywords)
    assert str(e.value).splitlines()[0] == said


def test_a_call_that_does_not_give_what_is_named():
    with pytest.raises(errors.TypeMismatchError) as e:
        grad(energy, argnames="x")(rate=1.0)
    assert str(e.value).splitlines()[0] == (
        "grad: argnames='x' asks for x, but the call does not give it; "
        "give it by position or as x=..."
    )


def test_the_old_form_of_hvp_warns_at_the_users_line():
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = hvp(energy, X, np.ones(2))
    assert np.array_equal(found, 24.0 * X)
    assert [w.category for w in told] == [DeprecationWarning]
    assert str(told[0].message) == (
        "hvp(f, x, v) is deprecated, and goes in version 0.3: write hvp(f)(x, v)"
    )
    assert told[0].filename == __file__


def test_a_direction_is_missing():
    with pytest.raises(errors.TypeMismatchError) as e:
        hvp(energy)(X)
    assert str(e.value).splitlines()[0] == (
        "hvp: takes the arguments of f, then the direction v, but was given 1 positional "
        "argument(s); write hvp(f)(x, v)"
    )
