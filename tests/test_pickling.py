"""What transformations, traces and linearizations give is pickled, copied, and read elsewhere."""

import copy
import functools
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import lineara
from lineara.engines import run
from lineara.errors import PickleError
from lineara.linear_a.parse import parse
from lineara.trees import flatten


def f(x):
    y = np.zeros(3)
    for i in range(3):
        y[i] = np.sin(x[i]) * x[0]
    return np.sum(y * y)


def rows(x):
    return np.where(x > 0.0, np.sqrt(np.abs(x)), 0.0) * x[::-1]


def of_tree(p):
    return {"y": p["w"] * p["b"], "z": [p["b"] + p["w"][0]]}


@lineara.grad
def slope(x):
    return x**3


@lineara.custom_jvp
def cube(x):
    return x**3


@cube.defjvp
def cube_jvp(primals, tangents):
    (x,), (x_dot,) = primals, tangents
    return cube(x), 3 * x**2 * x_dot


def plain_cube(x):
    return x**3


def turned(w, *_):
    return w[::-1]


def cube_vjp(args, w):
    return (3 * args[0] ** 2 * w,)


def of_cube(x):
    return np.sum(cube(x))


def line(slope):
    return lambda x: slope * x * x


class Model:
    scaled = lineara.grad(lambda self, x: self.scale * x**2, 1)

    def __init__(self, scale):
        self.scale = scale

    def loss(self, x):
        return self.scale * np.sum(x**2)


X = np.array([0.3, 1.5, 2.0])
POINT = {"w": X, "b": 2.0}
TEXT = "def f(x: f64;) -> (f64;) = let a = sin(x) in a * x"


def linear(function, *args):
    return lineara.linearize(function, *args)[1]


def checked(staged, *args):
    staged(*args)  # tests the rules that it holds
    return staged


def product(program, x):
    return run(program, "f", x).results


CALLED = {  # what is pickled, and what it is called with
    "grad": lambda: (lineara.grad(f), X),
    "grad with keywords": lambda: (lineara.grad(f, argnums=(0,), sparse=False, out=None), X),
    "grad of a grad": lambda: (lineara.grad(lineara.grad(plain_cube)), 2.0),
    "grad under a policy": lambda: (lineara.grad(f, policy="minimal_tape"), X),
    "grad of a partial": lambda: (lineara.grad(functools.partial(np.dot, X)), X),
    "grad of a method": lambda: (lineara.grad(Model(2.0).loss), X),
    "f by its name": lambda: (lineara.grad(f=f), X),
    "value_and_grad": lambda: (lineara.value_and_grad(f, has_aux=False), X),
    "jacobian": lambda: (lineara.jacobian(rows, mode="reverse"), X),
    "jacfwd": lambda: (lineara.jacfwd(rows), X),
    "jacrev": lambda: (lineara.jacrev(rows), X),
    "hessian": lambda: (lineara.hessian(f), X),
    "vmap": lambda: (lineara.vmap(f), np.stack([X, X + 1.0])),
    "linear_transpose": lambda: (lineara.linear_transpose(turned, X), X),
    "checkpoint": lambda: (lineara.grad(lineara.checkpoint(f)), X),
    "a decorated function": lambda: (slope, 2.0),
    "a rule": lambda: (lineara.grad(cube), 2.0),
    "a transpose": lambda: (lineara.custom_linear(turned, turned), X),
    "external": lambda: (lineara.grad(lineara.external(plain_cube, vjp=cube_vjp)), 2.0),
    "jit": lambda: (lineara.jit(f), X),
    "jit of grad": lambda: (lineara.jit(lineara.grad(f)), X),
    "trace": lambda: (lineara.trace(f, X), X),
    "trace of containers": lambda: (lineara.trace(of_tree, POINT), POINT),
    "trace with a rule": lambda: (checked(lineara.trace(of_cube, X), X), X),
    "a plan": lambda: (lineara.sparse_plan(rows, X), X),
    "a plan of a Hessian": lambda: (lineara.sparse_plan(f, X, hessian=True), X),
    "a program": lambda: (functools.partial(product, parse(TEXT)), 2.0),
    "a linear map": lambda: (linear(rows, X), X),
    "its transpose": lambda: (linear(rows, X).T, X),
    "of containers": lambda: (linear(of_tree, POINT), POINT),
    "composed": lambda: (2.0 * linear(rows, X) @ linear(rows, X), X),
    "of complex numbers": lambda: (linear(np.square, X * 1j), X),
    "of float32": lambda: (linear(rows, X.astype(np.float32)), X.astype(np.float32)),
}


def numbers(y):
    """The bits of a result, in its containers."""
    leaves, structure = flatten(y.toarray() if hasattr(y, "toarray") else y)
    return structure, [(type(v), np.asarray(v).tobytes()) for v in leaves]


@pytest.fixture(scope="module")
def elsewhere():
    """The results of a process that was given nothing but pickles."""
    script = """
import pickle, sys
pairs = pickle.load(sys.stdin.buffer)
pickle.dump({k: pickle.loads(b)(x) for k, (b, x) in pairs.items()}, sys.stdout.buffer)
"""
    here = Path(__file__).parent
    path = os.pathsep.join([str(here), str(here.parent / "src")])
    made = {k: make() for k, make in CALLED.items()}
    given = pickle.dumps({k: (pickle.dumps(g), x) for k, (g, x) in made.items()})
    done = subprocess.run(
        [sys.executable, "-c", script],
        input=given,
        capture_output=True,
        env=os.environ | {"PYTHONPATH": path},
        check=True,
    )
    return pickle.loads(done.stdout)


@pytest.mark.parametrize("name", CALLED)
def test_another_process_calculates_the_same(name, elsewhere):
    g, x = CALLED[name]()
    assert numbers(elsewhere[name]) == numbers(g(x))


@pytest.mark.parametrize("name", CALLED)
def test_a_copy_calculates_the_same(name):
    g, x = CALLED[name]()
    y = numbers(g(x))
    for twin in (copy.copy(g), copy.deepcopy(g), pickle.loads(pickle.dumps(g, 2))):
        assert numbers(twin(x)) == y


def test_a_decorated_function_is_itself_again():
    assert pickle.loads(pickle.dumps(slope)) is slope
    assert pickle.loads(pickle.dumps(cube)) is cube


def test_a_pickled_trace_has_the_derivative_of_its_program():
    staged = pickle.loads(pickle.dumps(lineara.trace(lambda x: np.sum(np.sin(x) * x[0]), X)))
    assert staged.f is None
    here = lineara.grad(lambda x: np.sum(np.sin(x) * x[0]))
    assert np.allclose(lineara.grad(staged)(X), here(X), rtol=1e-14)
    assert np.allclose(lineara.hessian(staged)(X), lineara.jacfwd(here)(X), rtol=1e-14)


def test_a_pickled_map_is_the_map_in_every_way():
    L = linear(of_tree, POINT)
    M = pickle.loads(pickle.dumps(L))
    assert (M.domain, M.codomain, M.work) == (L.domain, L.codomain, L.work)
    assert np.array_equal(M.to_dense(), L.to_dense())
    assert (M.pattern() != L.pattern()).nnz == 0
    w = L @ POINT
    assert numbers(w @ M) == numbers(w @ L)
    assert M.T.T is M


def test_a_pickled_map_keeps_its_dead_lanes():
    L = linear(lambda x: np.where(x > 1.0, np.sqrt(x - 1.0), 0.0), np.array([1.0, 2.0]))
    M = pickle.loads(pickle.dumps(L))
    assert np.array_equal(np.ones(2) @ M, [0.0, 0.5])
    assert np.array_equal(M @ np.ones(2), [0.0, 0.5])


def test_pickles_hold_programs_and_no_tapes():
    L = linear(lambda x: np.sin(x) * x, np.ones(1000))
    assert len(pickle.dumps(L)) < 30_000  # two arrays of weights, and text


def test_cloudpickle_writes_functions_with_their_code():
    cloudpickle = pytest.importorskip("cloudpickle")
    scale = 3.0
    for made in (lineara.grad, lineara.jit, lineara.hessian, lineara.checkpoint):
        g = made(lambda x: scale * x * x)
        assert pickle.loads(cloudpickle.dumps(g))(2.0) == g(2.0)


def test_a_deep_copy_has_objects_of_its_own():
    model = Model(2.0)
    g = copy.deepcopy(lineara.grad(model.loss))
    model.scale = 100.0
    assert np.array_equal(g(X), 4.0 * X)


def test_a_transformed_function_is_a_method_where_a_function_is():
    assert Model(2.0).scaled(3.0) == 12.0
    assert repr(lineara.grad(f)) == "<grad of f>"


def test_what_a_transformed_function_captured_is_what_the_function_did():
    for made in (lineara.grad, lineara.hessian, lineara.checkpoint):
        g = made(line(2.0))
        assert lineara.vjp(lambda h: h(3.0), g)[1](1.0)[0].keys() == {"slope"}
    assert lineara.grad(lambda h: h(3.0))(lineara.grad(line(2.0))) == {"slope": 6.0}


def test_a_program_is_captured_anew_where_what_a_gradient_reaches_has_changed():
    held = {"scale": 2.0}
    slope = lineara.grad(lambda x: held["scale"] * x)
    jitted = lineara.jit(lambda x: slope(x) + x)
    assert jitted(1.0) == 3.0
    held["scale"] = 5.0
    assert jitted(1.0) == 6.0


# --- what is refused, in its words ----------------------------------------------------------------


def told(act):
    with pytest.raises(PickleError) as error:
        act()
    return error.value.message


def test_a_function_that_cannot_be_imported():
    def local(x):
        return x

    for made in (lineara.grad, lineara.jit, lineara.hessian, lineara.vmap, lineara.custom_jvp):
        assert told(lambda made=made: pickle.dumps(made(local))) == (
            "pickle: the function test_a_function_that_cannot_be_imported.<locals>.local cannot be "
            "imported: pickle writes the name of a function, and there is none that is "
            f"{__name__}.test_a_function_that_cannot_be_imported.<locals>.local; define it with "
            "def at the top of a module, or use cloudpickle.dumps, which writes functions with "
            "their code"
        )
    assert "<locals>.local" in told(lambda: pickle.dumps(lineara.grad(lineara.grad(local))))
    assert "<lambda>" in told(lambda: pickle.dumps(lineara.sparse_plan(lambda x: x * x, X)))


@pytest.mark.parametrize("name", ["grad", "jit", "trace", "a linear map", "a program"])
def test_a_pickle_of_another_version(name, monkeypatch):
    thing = CALLED[name]()[0]
    if name == "a program":
        thing = thing.args[0]
    raw, written_by = pickle.dumps(thing), lineara.__version__
    monkeypatch.setattr(lineara, "__version__", "7.5.0")
    assert told(lambda: pickle.loads(raw)) == (
        f"pickle: this was written by Lineara {written_by}, and this is Lineara 7.5.0, which does "
        f"not read it: pickles hold programs and names of one version; read it with Lineara "
        f"{written_by}, or make the object anew and pickle that"
    )


def test_a_program_whose_rule_was_not_tested():
    @lineara.custom_jvp
    def square(x):
        return x * x

    @square.defjvp
    def rule(primals, tangents):
        return primals[0] ** 2, 2 * primals[0] * tangents[0]

    staged = lineara.trace(lambda x: square(x), 2.0)
    assert told(lambda: pickle.dumps(staged)) == (
        "pickle: custom_jvp(square) was not tested yet, and a pickled program has nothing to test "
        "its rules with; call the program once before, or declare the rule with check=False"
    )
    staged(2.0)
    again = pickle.loads(pickle.dumps(staged))
    assert lineara.grad(again)(3.0) == 6.0


def test_a_linear_map_whose_numbers_are_traced():
    def inside(x):
        _, L = lineara.linearize(lambda v: v * v, x)
        return float(len(pickle.dumps(L))) * x

    with pytest.raises(lineara.errors.DetachError) as error:
        lineara.grad(inside)(2.0)
    assert error.value.message == (
        "pickle: the numbers of this linear map are traced: it belongs to a differentiation or a "
        "trace that runs here; linearize outside of it, or let it return its value and linearize "
        "there"
    )
