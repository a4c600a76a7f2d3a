"""Derivatives in functions: a probed argument has a bag of probes, a result takes one or a record.

Closed forms, and the complex step, which shares nothing with the engine.
"""

import functools
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from shards import shards

import lineara
from lineara import Probes, grad, hessian, hvp, jacobian, jvp, linearize, probed, vjp
from lineara.errors import NonScalarOutputError, StagingError, StructureError, TypeMismatchError

H = 1e-30


def cube(x):
    return x**3


def square(x):
    return x * x


def line(slope):
    return lambda x: slope * x


def pairs(g):
    return {p.at: p.cotangent for p in g}


def along(functional, f, u):
    """d/dt functional(f + t u) at 0, by the complex step."""
    return functional(lambda x: f(x) + 1j * H * u(x)).imag / H


# --- a function as an argument --------------------------------------------------------------------


def test_the_functional_gradient_of_a_product():
    g = grad(lambda f: f(2.0) * f(3.0))(probed(square))
    assert repr(g) == "Probes([(2.0, 9.0), (3.0, 4.0)])"
    value, pull = vjp(lambda f: f(2.0) * f(3.0), probed(square))
    assert value == 36.0
    assert pairs(pull(10.0)[0]) == {2.0: 90.0, 3.0: 40.0}


def test_any_callable_may_be_probed():
    class Root:
        def __call__(self, x):
            return np.sqrt(x)

    for f in (np.sqrt, Root(), functools.partial(np.power, 4.0), line(2.0), Root().__call__):
        assert pairs(grad(lambda f: 3.0 * f(4.0))(probed(f))) == {4.0: 3.0}


def functionals():
    """Functionals that the complex step can be taken of."""
    return {
        "product": lambda f: f(0.3) * f(0.7),
        "within itself": lambda f: f(f(0.3)),
        "thrice": lambda f: f(f(f(0.3)) * f(0.2)),
        "in a loop": lambda f: functools.reduce(lambda y, i: f(y + 0.1 * i) * y, range(5), 0.9),
        "of arrays": lambda f: np.sum(f(np.linspace(0.1, 0.9, 4)) ** 2),
        "in elements": lambda f: sum([f(x) * i for i, x in enumerate(np.linspace(0.1, 0.9, 4))]),
        "of a closure": lambda f: (lambda g: g(0.2) * g(g(0.1)))(lambda x: f(x) * x + f(0.5)),
    }


@pytest.mark.parametrize("name", functionals())
def test_the_gradient_is_the_complex_step_along_every_function(name):
    functional = functionals()[name]
    f, u = np.sin, lambda x: np.exp(x) * x
    g = grad(functional)(probed(f))
    wanted = along(functional, f, u)
    assert g @ u == pytest.approx(wanted, rel=1e-13)
    assert jvp(functional, (probed(f),), (u,))[1] == pytest.approx(wanted, rel=1e-13)
    value, L = linearize(functional, probed(f))
    assert value == functional(f)
    assert L @ u == pytest.approx(wanted, rel=1e-13)
    assert (1.0 @ L) @ u == pytest.approx(wanted, rel=1e-13)


@given(
    st.lists(st.floats(-2, 2), min_size=1, max_size=4),
    st.integers(1, 3),
    st.floats(-2, 2),
)
@settings(max_examples=40, deadline=None)
def test_random_iterations(points, depth, a):
    def functional(f):
        total = 0.0
        for x in points:
            for _ in range(depth):
                x = f(x) + a * x
            total = total + x * x
        return total

    u = np.cos
    g = grad(functional)(probed(np.sin))
    assert len(g) == depth * len(points)
    assert g @ u == pytest.approx(along(functional, np.sin, u), rel=1e-12, abs=1e-12)


def test_several_arguments_are_a_point_together():
    value, pull = vjp(lambda f, x: f(x, 3.0), probed(lambda x, y: x * y), 2.0)
    assert value == 6.0
    g, x_bar = pull(1.0)
    assert repr(g) == "Probes([((2.0, 3.0), 1.0)])"
    assert x_bar == 3.0
    assert g @ (lambda x, y: x + 10 * y) == 32.0


def test_containers_in_and_out():
    def f(p, n):
        return {"sum": p["a"] + p["b"].sum(), "n": n, "scaled": n * p["b"]}

    p = {"a": 2.0, "b": np.array([1.0, 2.0])}
    g = grad(lambda f: f(p, 3)["sum"] * f(p, 3)["scaled"][1])(probed(f))
    first, second = g
    assert (first.at[0]["a"], first.at[1]) == (2.0, 3)
    assert np.array_equal(first.at[0]["b"], p["b"])
    assert (first.cotangent["sum"], first.cotangent["n"]) == (6.0, None)
    assert np.array_equal(second.cotangent["scaled"], [0.0, 5.0])
    assert g @ f == 2 * 5.0 * 6.0  # the functional is quadratic


def test_beside_other_arguments_and_in_containers():
    g = grad(lambda p: p["f"](p["x"]) * p["h"](1.0))(
        {"f": probed(np.sin), "x": 2.0, "h": line(3.0)}
    )
    assert pairs(g["f"]) == {2.0: 3.0}
    assert g["x"] == pytest.approx(3.0 * np.cos(2.0))
    assert g["h"] == pytest.approx({"slope": np.sin(2.0)})


def test_what_is_not_called_has_no_probes():
    assert len(grad(lambda f: 3.0)(probed(square))) == 0
    assert grad(lambda f: 3.0)(probed(square)) @ np.exp == 0.0


def test_a_lane_that_is_not_selected_has_no_probe_and_no_nan():
    at = np.array([0.0, 4.0])
    g = grad(lambda f: np.where(at > 0, np.sqrt(f(at)), 0.0).sum())(probed(square))
    assert np.array_equal(g.probes[0].cotangent, [0.0, 0.125])


def test_points_are_those_of_the_call_whatever_becomes_of_the_array():
    def functional(f):
        x = np.array([1.0, 2.0])
        y = f(x).sum()
        x[0] = 100.0
        return y

    assert np.array_equal(grad(functional)(probed(np.sin)).probes[0].at, [1.0, 2.0])


# --- derivatives inside, and of the gradient ------------------------------------------------------


NESTED = [  # of x^3, whose slope at 2 is 12; of x^4, which the last one differentiates, 32
    (lambda f: grad(f)(2.0), [(2.0, 1.0, (1.0,))]),
    (lambda f: grad(grad(f))(2.0), [(2.0, 1.0, (1.0, 1.0))]),
    (lambda f: grad(grad(grad(f)))(2.0), [(2.0, 1.0, (1.0, 1.0, 1.0))]),
    (lambda f: jvp(f, (2.0,), (3.0,))[1], [(2.0, 1.0, (3.0,))]),
    (lambda f: jvp(grad(f), (2.0,), (3.0,))[1], [(2.0, 1.0, (3.0, 1.0))]),
    (lambda f: grad(lambda x: jvp(f, (x,), (x,))[1])(2.0),
     [(2.0, 1.0, (1.0,)), (2.0, 1.0, (2.0, 1.0))]),
    (lambda f: grad(lambda x: f(x) * x)(2.0) ** 2, [(2.0, 2.0, (64.0,)), (2.0, 64.0, ())]),
]  # fmt: skip


@pytest.mark.parametrize(("functional", "probes"), NESTED)
def test_a_derivative_inside_makes_probes_of_derivatives(functional, probes):
    def u(x):
        return np.exp(x) * x

    g = grad(functional)(probed(cube))
    assert sorted(map(tuple, g)) == probes
    moved = [functional(lambda x, t=t: cube(x) + t * u(x)) for t in (1e-4, -1e-4)]
    assert g @ u == pytest.approx((moved[0] - moved[1]) / 2e-4, rel=1e-6)
    assert jvp(functional, (probed(cube),), (u,))[1] == pytest.approx(g @ u, rel=1e-12)


def test_arrays_hessians_and_jacobians_inside():
    x = np.array([0.3, -0.7])

    def f(x):
        return np.sin(x[0]) * x[1]

    def u(x):
        return np.exp(x[0] * x[1])

    def slope(f):
        return np.sum(grad(f)(x) ** 3)

    def curvature(f):
        return hessian(f)(x)[0, 1] * f(x)

    def product(f):
        return hvp(f)(x, x) @ np.array([1.0, 2.0])

    e = np.exp(x[0] * x[1])
    f1, u1 = np.array([np.cos(x[0]) * x[1], np.sin(x[0])]), e * x[::-1]
    assert grad(slope)(probed(f)) @ u == pytest.approx(3 * (f1**2 @ u1), rel=1e-13)
    u2 = e * np.array([[x[1] ** 2, 1 + x[0] * x[1]], [1 + x[0] * x[1], x[0] ** 2]])
    wanted = u2[0, 1] * f(x) + np.cos(x[0]) * e
    assert grad(curvature)(probed(f)) @ u == pytest.approx(wanted, rel=1e-13)
    wanted = u2 @ x @ np.array([1.0, 2.0])
    assert grad(product)(probed(f)) @ u == pytest.approx(wanted, rel=1e-13)
    assert jvp(product, (probed(f),), (u,))[1] == pytest.approx(wanted, rel=1e-13)

    def spread(f):
        return np.sum(jacobian(f)(x) ** 2)

    g = grad(spread)(probed(np.sin))
    assert g @ np.exp == pytest.approx(2 * np.cos(x) @ np.exp(x), rel=1e-13)


def test_the_second_derivative_in_a_function():
    # F(f) = f(f(2)); along u and v it is f''(f 2) u v + f' ... at 2, with u and v at f(2)
    def functional(f):
        return f(f(2.0))

    u, v = np.sin, np.cos
    wanted = 48 * u(2.0) * v(2.0) - np.sin(8.0) * u(2.0) + np.cos(8.0) * v(2.0)

    def first(f):
        return grad(functional)(f) @ v

    assert grad(first)(probed(cube)) @ u == pytest.approx(wanted, rel=1e-13)
    assert jvp(first, (probed(cube),), (u,))[1] == pytest.approx(wanted, rel=1e-13)
    moved = hvp(functional)(probed(cube), u)  # how points and cotangents move
    assert [p.at for p in moved] == [0.0, pytest.approx(u(2.0))]
    assert moved.probes[0].cotangent == pytest.approx(48 * u(2.0) + np.cos(8.0))


def random_number(pick, f, x, depth):
    """A number made of values and derivatives of f, of any mode in any other, at moving points."""
    if depth == 0:
        return pick.choice([x, 0.5 * x, pick.uniform(-1, 1)])

    def again():
        return random_number(pick, f, x, depth - 1)

    def body(seed, y):
        return random_number(random.Random(seed), f, y, depth - 1)

    seed, way = pick.random(), pick.randrange(9)
    if way == 0:
        return again() * again()
    if way == 1:
        return again() + np.sin(again())
    if way in (2, 3):
        return f(again())
    if way == 4:
        return grad(f)(again())
    if way == 5:
        return grad(lambda y: body(seed, y))(again())
    if way == 6:
        return jvp(lambda y: body(seed, y), (again(),), (again(),))[1]
    if way == 7:
        y, pull = vjp(lambda y: f(y) * body(seed, y), again())
        return y * pull(again())[0]
    return hvp(f)(again(), again())


@pytest.mark.parametrize("shard", shards(6))
def test_any_nesting_of_modes_has_the_derivative_along_a_function(shard):
    # the derivative in s of the functional at f + s u, where nothing is probed, is the oracle
    def f(x):
        return np.sin(x) * x

    def u(x):
        return np.exp(-x * x) + x

    moving = 0
    for seed in range(20 * shard, 20 * shard + 20):

        def functional(g, seed=seed):
            return random_number(random.Random(seed), g, 0.7, 4)

        wanted = grad(lambda s: functional(lambda x: f(x) + s * u(x)) + 0.0 * s)(0.0)
        g = grad(lambda g: functional(g) + 0.0 * g(0.0))(probed(f))
        found = g @ u, jvp(lambda g: functional(g) + 0.0 * g(0.0), (probed(f),), (u,))[1]
        assert found == pytest.approx((wanted, wanted), rel=1e-9, abs=1e-9), seed
        moving += wanted != 0
    assert moving > 8


def test_levels_are_not_confused():
    # x ↦ d/df of (x f(x)) paired with cos, at sin: x cos x, so its slope is cos x - x sin x
    def inner(x):
        return grad(lambda f: x * f(x))(probed(np.sin)) @ np.cos

    assert grad(inner)(0.7) == pytest.approx(np.cos(0.7) - 0.7 * np.sin(0.7), rel=1e-13)

    def both(f):
        return grad(lambda g: f(g(1.0)) * g(2.0))(probed(f)) @ np.cos

    # both(f) = f'(f 1) cos 1 f(2) + f(f 1) cos 2; along u at f = square
    u = np.exp
    wanted = np.cos(1.0) * (np.e * 4 + 2 * np.e * 4 + 2 * u(2.0))
    wanted += np.cos(2.0) * (np.e + 2 * np.e)
    assert grad(both)(probed(square)) @ u == pytest.approx(wanted, rel=1e-13)


def test_loops_and_checkpoints_inside():
    g = grad(lambda f: lineara.fori_loop(0, 3, lambda i, x: f(x) / 4, 2.0))(probed(square))
    assert [p.cotangent for p in g] == [0.015625, 0.03125, 0.25]
    g = grad(lambda f: grad(lineara.checkpoint(lambda x: f(x) * x))(2.0))(probed(cube))
    assert g @ np.sin == pytest.approx(np.sin(2.0) + 2 * np.cos(2.0))


# --- a function as a result -----------------------------------------------------------------------


def wave(p):
    return lambda x: p["a"] * np.sin(p["b"] * x)


def test_a_result_that_is_a_function_takes_a_record_or_probes():
    p = {"a": 2.0, "b": 0.5}
    f, pull = vjp(wave, p)
    assert f(3.0) == 2.0 * np.sin(1.5)
    record = {"p": {"a": 1.0, "b": 10.0}}
    assert pull(record) == ({"a": 1.0, "b": 10.0},)
    assert pull(Probes({3.0: 1.0})) == (grad(lambda p: wave(p)(3.0))(p),)
    assert pull(Probes([(3.0, 1.0, (2.0,))])) == (
        grad(lambda p: jvp(wave(p), (3.0,), (2.0,))[1])(p),
    )
    assert pull(Probes()) == ({"a": 0.0, "b": 0.0},)


def test_the_two_cotangents_of_a_closure_agree():
    # the bag, pulled back along the map that makes the closure, is the record
    def functional(f):
        return f(2.0) * f(f(3.0))

    p = {"a": 2.0, "b": 0.5}
    bag = grad(functional)(probed(wave(p)))
    assert vjp(wave, p)[1](bag)[0] == pytest.approx(grad(functional)(wave(p))["p"], rel=1e-14)


def test_a_result_beside_others_and_in_arrays():
    def make(W):
        return {"layer": lambda x: np.tanh(W @ x), "size": np.sum(W**2)}

    W, x, k = np.arange(6.0).reshape(2, 3) / 10, np.ones(3), np.array([1.0, 2.0])
    value, pull = vjp(make, W)
    assert np.array_equal(value["layer"](x), np.tanh(W @ x))
    (found,) = pull({"layer": Probes([(x, k)]), "size": 1.0})
    wanted = grad(lambda W: make(W)["layer"](x) @ k + make(W)["size"])(W)
    assert np.allclose(found, wanted, rtol=1e-14)


def test_functions_to_functions():
    def twice(f):
        return lambda x: f(f(x))

    f, pull = vjp(twice, probed(np.sin))
    assert f(1.0) == np.sin(np.sin(1.0))
    assert pairs(pull(Probes({1.0: 1.0}))[0]) == {1.0: np.cos(np.sin(1.0)), np.sin(1.0): 1.0}
    _, pull = vjp(twice, line(3.0))
    assert pull(Probes({1.0: 1.0})) == ({"slope": 6.0},)
    same, pull = vjp(lambda f: f, probed(np.sin))
    assert same(1.0) == np.sin(1.0)
    assert pairs(pull(Probes({1.0: 2.0}))[0]) == {1.0: 2.0}


def test_a_function_result_inside_a_differentiation():
    def h(a):
        f, pull = vjp(line, a * a)
        return f(2.0) * pull(Probes([(a, a)]))[0]  # 2 a^2 a a

    assert grad(h)(3.0) == 8 * 27.0
    assert jvp(line, (2.0,), (5.0,))[1] == {"slope": 5.0}


# --- bags -----------------------------------------------------------------------------------------


def test_bags_are_functionals():
    g, h = Probes({2.0: 3.0}), Probes([(1.0, 5.0, (2.0,))])
    assert (g + 2 * h) @ cube == 3 * 8.0 + 2 * 5 * 2 * 3.0
    assert grad(lambda a: (a * g) @ (lambda x: a * x))(2.0) == 2 * 2 * 6.0
    assert grad(lambda x: Probes([(x, x)]) @ np.sin)(1.0) == pytest.approx(
        np.sin(1.0) + np.cos(1.0)
    )


def test_complex_results_are_pairs_of_reals():
    g = grad(lambda f: (f(1.0 + 2.0j) * 3j).real)(probed(lambda z: z * z))
    assert g @ (lambda z: z) == (3j * (1 + 2j)).real


# --- what is refused ------------------------------------------------------------------------------


def caught(error, act):
    with pytest.raises(error) as found:
        act()
    return found.value.message.split("\n")[0]


REFUSED = [
    (lambda: probed(3.0), "probed: takes a function, but was given f64[]"),
    (lambda: grad(lambda f: f(x=2.0))(probed(square)),
     "probed(square) was called with the keyword x; a probe is at positional arguments, so give "
     "them by position"),
    (lambda: grad(lambda f: f(2.0)(3.0))(probed(line)),
     "probed(line) returned function, a function: its own calls would not be seen; probe a "
     "function of all the arguments"),
    (lambda: grad(lambda f: grad(lambda a: f(line(a)))(2.0))(probed(lambda g: g(3.0))),
     "probed(<lambda>) was called with function, in which something moves; a probe is at numbers, "
     "arrays and containers of them"),
    (lambda: jacobian(lambda f: np.array([f(2.0), f(3.0)]))(probed(square)),
     "the functions like probed(square) have no basis, so there is no matrix of derivatives; take "
     "grad of one number, vjp with one cotangent, or jvp along one function"),
    (lambda: vjp(lambda a: np.sin, 2.0),
     "vjp: the function returned ufunc, which has no derivative; return numbers, arrays or "
     "containers of them (other things with has_aux=True)"),
    (lambda: grad(lambda f: quad(f, 0, 1)[0])(probed(square)),
     "quad: a function that was given to it uses one that is probed, whose calls a solver makes "
     "out of sight; write the rule out (a sum over nodes, Newton's steps) or differentiate in what "
     "the function captured, without probed"),
    (lambda: Probes({2.0: 1.0}) @ 3.0,
     "probes @ u: u is a function, the direction, but was given f64[]"),
]  # fmt: skip


@pytest.mark.parametrize(("act", "said"), REFUSED)
def test_what_is_refused_says_what_would_work(act, said):
    assert caught(TypeMismatchError, act) == said


UNLIKE = [
    (lambda: jvp(lambda f: f(2.0), (probed(square),), (1.0,)),
     "a tangent of a probed function is a function like it, but was given f64[]"),
    (lambda: vjp(lambda f: f, probed(square))[1](1.0),
     "a cotangent of a probed function is Probes, but was given f64[]"),
    (lambda: vjp(line, 2.0)[1](1.0),
     "a cotangent of a function is Probes, or a dict of what it captured, by name, but was given "
     "f64[]"),
    (lambda: jvp(lambda p: p[0](2.0), ([line(2.0)],), ([1.0],)),
     "a tangent of a function is a dict of what it captured, by name, but was given f64[]"),
]  # fmt: skip


@pytest.mark.parametrize(("act", "said"), UNLIKE)
def test_a_vector_that_does_not_fit_a_function(act, said):
    assert caught(StructureError, act) == f"applying a linear map: {said}"


def test_other_refusals():
    assert caught(StructureError, lambda: Probes([3.0])) == (
        "Probes: a probe is a pair (point, cotangent), or a triple with a tuple of directions, but "
        "was given f64[]"
    )
    assert caught(StructureError, lambda: Probes([(1.0, 1.0, 2.0)])) == (
        "Probes: the directions of a probe are a tuple, but it has f64[]"
    )
    assert caught(StructureError, lambda: Probes({2.0: 1.0}) @ (lambda x: np.ones(2))) == (
        "probes @ u: the cotangent is f64[], but u gave f64[2]; u is like the function"
    )

    def lanes():
        grad(lambda f: lineara.vmap(f)(np.ones(2)).sum())(probed(square))

    assert caught(StagingError, lanes) == (
        "probed(square) was called in a traced program, where it has no derivative; call it "
        "outside of trace, cond, scan and the like, or differentiate in what it captured"
    )
    assert caught(StagingError, lambda: lineara.trace(lambda f: f(2.0), probed(square))) == (
        "trace: probed(square) is a function, and the arguments of a program are numbers; trace a "
        "function of the numbers that uses it, or take the derivative outside of trace"
    )
    with pytest.raises(NonScalarOutputError, match="for several results, use jacobian or vjp"):
        grad(line)(2.0)


def test_called_plainly_a_probed_function_is_the_function():
    f = probed(square)
    assert (f(3.0), f.__name__, repr(f)) == (9.0, "square", "probed(square)")
    assert grad(f)(3.0) == 6.0
