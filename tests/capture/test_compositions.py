"""jit with derivatives and lanes, within and around them; of everything that can be called."""

import collections
import contextlib
import dataclasses
import functools
import inspect

import numpy as np
import pytest

import lineara
from lineara import grad, hessian, hvp, jacobian, jit, jvp, linearize, value_and_grad, vjp, vmap
from lineara.errors import StagingError
from lineara.staging.capture.containers import Snapshot
from lineara.tape.levels import innermost_level

X = np.linspace(0.1, 0.9, 5)
ROWS = np.stack([X, 2 * X, X - 0.3])


def f(x):
    s = 0.0
    for v in x:
        s = s + v * v if v > 0.3 else s + np.sin(v)
    return s


def twice(g):
    @functools.wraps(g)
    def call(*args, **options):
        return g(*args, **options) * 2

    return call


def of_rows(g):
    return lambda rows: np.stack([g(r) for r in rows])


COMPOSITIONS = {
    "jit(grad(f))": (lambda: jit(grad(f))(X), lambda: grad(f)(X)),
    "grad(jit(f))": (lambda: grad(jit(f))(X), lambda: grad(f)(X)),
    "jit(grad(jit(f)))": (lambda: jit(grad(jit(f)))(X), lambda: grad(f)(X)),
    "jit(hessian(f))": (lambda: jit(hessian(f))(X), lambda: hessian(f)(X)),
    "hessian(jit(f))": (lambda: hessian(jit(f))(X), lambda: hessian(f)(X)),
    "grad(grad(jit(f)))": (
        lambda: grad(lambda t: grad(jit(f))(t * X) @ X)(1.0),
        lambda: grad(lambda t: grad(f)(t * X) @ X)(1.0),
    ),
    "jit(vmap(f))": (lambda: jit(vmap(f))(ROWS), lambda: of_rows(f)(ROWS)),
    "vmap(jit(f))": (lambda: vmap(jit(f))(ROWS), lambda: of_rows(f)(ROWS)),
    "jit(vmap(grad(f)))": (lambda: jit(vmap(grad(f)))(ROWS), lambda: of_rows(grad(f))(ROWS)),
    "vmap(grad(jit(f)))": (lambda: vmap(grad(jit(f)))(ROWS), lambda: of_rows(grad(f))(ROWS)),
    "grad(sum of vmap(jit(f)))": (
        lambda: grad(lambda r: vmap(jit(f))(r).sum())(ROWS),
        lambda: of_rows(grad(f))(ROWS),
    ),
    "jit(jit(f))": (lambda: jit(jit(f))(X), lambda: f(X)),
    "jit that calls jit": (lambda: jit(lambda x: jit(f)(x) * 2)(X), lambda: f(X) * 2),
    "vjp of jit": (lambda: vjp(jit(f), X)[1](1.0), lambda: vjp(f, X)[1](1.0)),
    "jit of vjp": (lambda: jit(lambda x: vjp(f, x)[1](1.0))(X), lambda: vjp(f, X)[1](1.0)),
    "jvp of jit": (lambda: jvp(jit(f), (X,), (X,)), lambda: jvp(f, (X,), (X,))),
    "jit of jvp": (lambda: jit(lambda x: jvp(f, (x,), (x,)))(X), lambda: jvp(f, (X,), (X,))),
    "hvp of jit": (lambda: hvp(jit(f))(X, X), lambda: hvp(f)(X, X)),
    "jit of hvp": (lambda: jit(lambda x: hvp(f)(x, x))(X), lambda: hvp(f)(X, X)),
    "jacobian of jit": (
        lambda: jacobian(jit(lambda x: x * f(x)))(X),
        lambda: jacobian(lambda x: x * f(x))(X),
    ),
    "jit of jacobian": (
        lambda: jit(jacobian(lambda x: x * f(x)))(X),
        lambda: jacobian(lambda x: x * f(x))(X),
    ),
    "linearize of jit": (lambda: linearize(jit(f), X)[1] @ X, lambda: linearize(f, X)[1] @ X),
    "value, gradient and more": (
        lambda: jit(value_and_grad(lambda x: (f(x), x), has_aux=True))(X),
        lambda: value_and_grad(lambda x: (f(x), x), has_aux=True)(X),
    ),
    "several arguments": (
        lambda: jit(grad(lambda a, b: f(a) * b, (0, 1)))(X, 2.0),
        lambda: grad(lambda a, b: f(a) * b, (0, 1))(X, 2.0),
    ),
    "a policy": (lambda: grad(jit(f), policy="store_all")(X), lambda: grad(f)(X)),
    "stages": (lambda: lineara.stages(jit(f), X).value_and_grad(X)[1], lambda: grad(f)(X)),
    "trace": (lambda: lineara.trace(jit(f), X)(X), lambda: f(X)),
    "a checkpoint": (lambda: grad(lineara.checkpoint(jit(f)))(X), lambda: grad(f)(X)),
    "whole numbers": (lambda: grad(jit(lambda x, n: x**n))(2.0, 3), lambda: 12.0),
}


@pytest.mark.parametrize("name", COMPOSITIONS)
def test_jit_with_derivatives_and_lanes(name):
    ours, plain = COMPOSITIONS[name]
    a, b = lineara.ravel(ours())[0], lineara.ravel(plain())[0]
    np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


class Model:
    def __init__(self, k):
        self.k = k

    def method(self, x):
        return f(x) * self.k

    def __call__(self, x):
        return f(x) + self.k

    @jit
    def jitted(self, x):
        return f(x) * self.k

    @jit(fallback=True)
    def with_options(self, x):
        return f(x) * self.k

    @staticmethod
    @jit
    def static(x):
        return f(x) * 3

    @classmethod
    @jit
    def of_class(cls, x):
        return f(x) * 4

    @property
    @jit
    def shown(self):
        return self.k * 2.0


MODEL = Model(2.0)
FUNCTIONS = [f, lambda x: x.sum(), np.sum, max]
CALLABLES = {
    "a method": (lambda: jit(MODEL.method)(X), lambda: f(X) * 2),
    "a callable object": (lambda: jit(MODEL)(X), lambda: f(X) + 2),
    "a jitted method": (lambda: MODEL.jitted(X), lambda: f(X) * 2),
    "a jitted method of the class": (lambda: Model.jitted(MODEL, X), lambda: f(X) * 2),
    "a jitted method with options": (lambda: MODEL.with_options(X), lambda: f(X) * 2),
    "a static method": (lambda: MODEL.static(X), lambda: f(X) * 3),
    "a class method": (lambda: Model.of_class(X), lambda: f(X) * 4),
    "a property": (lambda: MODEL.shown, lambda: 4.0),
    "the gradient of a jitted method": (lambda: grad(MODEL.jitted)(X), lambda: 2 * grad(f)(X)),
    "the gradient by the object": (lambda: grad(lambda m: m.jitted(X))(MODEL).k, lambda: f(X)),
    "a partial": (lambda: jit(functools.partial(lambda a, x: a * f(x), 2.0))(X), lambda: 2 * f(X)),
    "a partial by name": (
        lambda: jit(functools.partial(lambda x, a=1.0: a * f(x), a=2.0))(X),
        lambda: 2 * f(X),
    ),
    "a decorated function": (lambda: jit(twice(f))(X), lambda: 2 * f(X)),
    "a decorated jit": (lambda: twice(jit(f))(X), lambda: 2 * f(X)),
    "functions in a list": (
        lambda: jit(lambda x: sum(g(x) for g in FUNCTIONS))(X),
        lambda: sum(g(X) for g in FUNCTIONS),
    ),
    "each of a list": (
        lambda: sum(jit(g)(X) for g in FUNCTIONS),
        lambda: sum(g(X) for g in FUNCTIONS),
    ),
    "a function as an argument": (lambda: jit(lambda g, x: g(x))(f, X), lambda: f(X)),
    "a function in a dict": (lambda: jit(lambda d, x: d["f"](x))({"f": f}, X), lambda: f(X)),
    "an object as an argument": (lambda: jit(lambda m, x: m(x))(MODEL, X), lambda: f(X) + 2),
    "a function of NumPy's": (lambda: jit(np.linalg.norm)(X), lambda: np.linalg.norm(X)),
    "a builtin": (lambda: jit(abs)(-3.0), lambda: 3.0),
    "a class": (lambda: jit(complex)(3.0, 4.0), lambda: 3 + 4j),
    "arguments by name": (lambda: jit(lambda x, *, k=2.0: x * k)(3.0, k=4.0), lambda: 12.0),
    "a default": (lambda: jit(lambda x, *, k=2.0: x * k)(3.0), lambda: 6.0),
    "more arguments": (lambda: jit(lambda *x, **k: sum(x) * k["k"])(1.0, 2.0, k=3.0), lambda: 9.0),
}


@pytest.mark.parametrize("name", CALLABLES)
def test_what_can_be_called_can_be_jitted(name):
    ours, plain = CALLABLES[name]
    np.testing.assert_allclose(ours(), plain(), rtol=1e-13)


@dataclasses.dataclass
class Parameters:
    w: np.ndarray
    b: float
    name: str = "p"


Pair = collections.namedtuple("Pair", "a b")


def same(a, b):
    """Whether two results are the same to the bit, the types and the memory layout."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.strides == b.strides and a.tobytes() == b.tobytes()
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return [*a] == [*b] and all(same(a[k], b[k]) for k in a)
    if dataclasses.is_dataclass(a):
        return same(vars(a), vars(b))
    return a is b or a == b


def of_containers(p, pair, d):
    values = [p.w * pair.a, (pair.b, None, "text", 1)]
    return {"p": Parameters(p.w * 2, p.b + d["k"], p.name), "v": values, "n": Pair(p.b, d["k"])}


RESULTS = [
    (of_containers, (Parameters(X, 1.0), Pair(2.0, np.float64(3.0)), {"k": 0.5})),
    (lambda x: x * 2, (2.0,)),
    (lambda x: x * 2, (np.float64(2.0),)),
    (lambda x: x * 2, (np.float32(2.0),)),
    (lambda x: x * 2, (2,)),
    (lambda x: x / 2, (3,)),
    (lambda x: x // 2, (3,)),
    (lambda x: x**2, (3,)),
    (lambda x: -x, (True,)),
    (lambda x: 1j * x, (2.0,)),
    (lambda x: x > 1, (2.0,)),
    (lambda x: x > 1, (np.float64(2.0),)),
    (lambda x: bool(x > 1), (np.float64(2.0),)),
    (lambda x: [bool(v > 0.5) for v in x], (X,)),
    (lambda x: bool(x), (0.0,)),
    (lambda x: int(x), (2.6,)),
    (lambda x: round(x), (2.6,)),
    (lambda x: x is None, (2.0,)),
    (lambda x: np.int64(3) * x, (2,)),
    (lambda x: x.sum(), (X,)),
    (lambda x: (x > 0).sum(), (X,)),
    (lambda x: x.argmax(), (X,)),
    (lambda x: len(x), (X,)),
    (lambda x: x[0], (X,)),
    (lambda x: float(x[0]), (X,)),
    (lambda x: x.tolist(), (X,)),
    (lambda x: x.astype(int), (X,)),
    (lambda x: x.T, (ROWS,)),
    (lambda x: [x] * 3, (2.0,)),
    (lambda x: None, (X,)),
    (lambda x: np.zeros(3, dtype=bool).sum() + isinstance(x, bool), (2.0,)),
    (lambda x: x + (type(x) is float), (2.0,)),
]


@pytest.mark.parametrize(("g", "args"), RESULTS)
def test_results_have_the_types_of_python(g, args):
    assert same(jit(g)(*args), g(*args))


def test_a_jitted_function_is_one_edge_of_the_graph_of_a_derivative():
    g, edges = jit(f), []
    g(X)

    def around(x):
        tape = innermost_level().tape
        before = len(tape)
        y = g(x)
        edges.append(len(tape) - before)
        return y * 2

    np.testing.assert_allclose(grad(around)(X), 2 * grad(f)(X), rtol=1e-13)
    assert edges == [1]
    assert g.captures == 1


class Noted:
    """An object that answers for attributes that it has not, and a slot that a property hides."""

    __slots__ = ("_kept",)


class Hides(Noted):
    @property
    def _kept(self):
        return [1.0]

    def __getattr__(self, name):
        return lambda: name


def test_objects_that_answer_for_what_they_do_not_hold_are_unchanged():
    held = Hides()
    masked = np.ma.masked_array([1.0, 2.0], [False, True])
    g = jit(lambda x: x * held._kept[0] + (held.missing() == "missing") + float(masked.data[0]))
    assert [g(2.0), g(3.0)] == [4.0, 5.0]
    assert g.captures == 1
    masked.data[0] = 5.0
    assert g(2.0) == 8.0
    assert g.captures == 2


def test_what_numpy_notes_in_its_functions_is_no_change():
    def g(x):
        with contextlib.suppress(ValueError):  # before NumPy 2.4
            inspect.signature(np.sin)
        return np.sin(x) * np.sum(x)

    assert jit(g)(2.0) == g(2.0)
    assert not {id(np.sin), id(np.sum)} & Snapshot(g).kept.keys()


def test_a_jitted_function_that_writes_is_not_differentiated():
    @jit
    def fills(y, x):
        y[0] = x
        return y.sum()

    with pytest.raises(StagingError, match=r"^fills writes into its arguments"):
        grad(fills)(np.zeros(2), 3.0)
