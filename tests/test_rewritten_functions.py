"""A function whose code or defaults are put in place, as an editor's reload does, is seen anew."""

import gc
import weakref

import numpy as np
import pytest

from lineara import grad, jit, trace, value_and_grad, vmap


def helper(x):
    return x * 2.0


def other(x):
    return x * 50.0


def scaled(x, by=1.0, *, more=1.0):
    return x * by * more


class Model:
    def weight(self, x):
        return x * 3.0

    @staticmethod
    def bias(x):
        return x * 4.0


MODEL = Model()
ROOTS = {
    "a global": lambda x: helper(x),
    "defaults": lambda x: scaled(x),
    "a method": lambda x: MODEL.weight(x),
    "a static method": lambda x: Model.bias(x),
    "in a list": lambda x, fs=[helper]: fs[0](x),
    "in a closure": (lambda h: lambda x: h(x))(helper),
    "an argument": lambda x: sum(map(helper, [x, x])),
}


@pytest.fixture
def rewritten():
    functions = helper, scaled, Model.weight, Model.bias
    old = [(f, f.__code__, f.__defaults__, f.__kwdefaults__) for f in functions]

    def rewrite():
        helper.__code__ = other.__code__
        scaled.__defaults__, scaled.__kwdefaults__ = (9.0,), {"more": 2.0}
        Model.weight.__code__ = (lambda self, x: x * 30.0).__code__
        Model.bias.__code__ = (lambda x: x * 40.0).__code__

    yield rewrite
    for f, code, defaults, options in old:
        f.__code__, f.__defaults__, f.__kwdefaults__ = code, defaults, options


@pytest.mark.parametrize("root", ROOTS)
def test_what_is_put_in_place_is_what_is_differentiated_and_captured(root, rewritten):
    f = ROOTS[root]
    ways = {
        "grad": grad(f),
        "jit": jit(f),
        "jit of grad": jit(grad(f)),
        "a fresh trace": lambda x: trace(f, x)(x),
        "vmap": lambda x: float(vmap(f)(np.array([x]))[0]),
        "value_and_grad": lambda x: value_and_grad(f)(x)[1],
    }
    before = {name: way(1.0) for name, way in ways.items()}
    assert set(before.values()) == {f(1.0)}
    rewritten()
    assert f(1.0) != before["grad"]
    assert {name: way(1.0) for name, way in ways.items()} == dict.fromkeys(ways, f(1.0))


def test_a_function_that_was_copied_is_not_kept_alive():
    def made(k):
        def inner(x):
            return x * k

        return lambda x: inner(x)

    f = made(3.0)
    inner = weakref.ref(f.__closure__[0].cell_contents)
    assert grad(f)(1.0) == 3.0
    for k in range(100):  # the last few may be kept
        assert grad(made(float(k)))(1.0) == k
    del f
    gc.collect()
    assert inner() is None
