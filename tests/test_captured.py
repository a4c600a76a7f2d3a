"""What a function captured, and the same function with other captured values."""

import dataclasses
import functools
import math

import numpy as np
import pytest

from lineara.errors import StructureError
from lineara.python.captured_values import captured, with_captured


def make(w, b=0.0):
    def f(x):
        return w * x + b

    return f


class Dense:
    def __init__(self, w):
        self.w, self.act = w, math.tanh

    def __call__(self, x):
        return self.act(self.w * x)

    def loss(self, x):
        return self(x) ** 2


class Stack:
    def __init__(self, *layers):
        self.layers = list(layers)
        self.scale = 2.0

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.scale * x


class Slotted:
    __slots__ = ("missing", "w")

    def __init__(self, w):
        self.w = w

    def __call__(self, x):
        return self.w * x


def test_a_closure_has_its_free_variables():
    f = make(3.0, 1.0)
    assert captured(f) == {"w": 3.0, "b": 1.0}
    g = with_captured(f, {"w": 5.0})
    assert (g(2.0), f(2.0)) == (11.0, 7.0)
    assert (g.__name__, g.__qualname__) == (f.__name__, f.__qualname__)


def test_a_captured_closure_is_nested():
    helper = make(3.0)
    scale = 2.0

    def f(x):
        return helper(x) * scale

    assert captured(f) == {"helper": {"w": 3.0, "b": 0.0}, "scale": 2.0}
    g = with_captured(f, {"helper": {"w": 10.0}, "scale": 1.0})
    assert (g(1.0), f(1.0), helper(1.0)) == (10.0, 6.0, 3.0)


def test_a_captured_function_may_be_given_whole():
    helper, act = make(3.0), math.sin

    def f(x):
        return helper(x) + act(0.0)

    g = with_captured(f, {"helper": lambda x: 100.0, "act": math.cos})
    assert (g(1.0), f(1.0)) == (101.0, 3.0)


def test_a_partial_has_its_parameters():
    def f(a, b, *rest, c=0.0, **options):
        return a, b, rest, c, options

    p = functools.partial(f, 1.0, 2.0, 3.0, c=4.0, d=5.0)
    assert captured(p) == {"a": 1.0, "b": 2.0, "rest[0]": 3.0, "c": 4.0, "d": 5.0}
    assert with_captured(p, {"a": 9.0, "rest[0]": 8.0, "d": 7.0})() == (9, 2, (8.0,), 4, {"d": 7})
    assert captured(functools.partial(max, 1.0)) == {"args[0]": 1.0}


def test_a_partial_of_a_closure():
    p = functools.partial(make(3.0), x=2.0)
    assert captured(p) == {"x": 2.0, "__func__": {"w": 3.0, "b": 0.0}}
    assert with_captured(p, {"__func__": {"w": 4.0}})() == 8.0
    assert with_captured(p, {})(x=5.0) == 15.0


def test_a_bound_method_has_the_attributes_of_its_object():
    layer = Dense(0.0)
    assert captured(layer.loss) == {"self": {"w": 0.0}}
    g = with_captured(layer.loss, {"self": {"w": 1.0}})
    assert g(1.0) == math.tanh(1.0) ** 2
    assert layer.loss(1.0) == 0.0
    assert type(g.__self__) is Dense


def test_a_callable_object_has_its_attributes():
    layer = Dense(0.0)
    assert captured(layer) == {"self": {"w": 0.0}}
    assert with_captured(layer, {"self": {"w": 1.0}})(1.0) == math.tanh(1.0)
    assert layer.w == 0.0


def test_slots_are_attributes():
    assert captured(Slotted(3.0)) == {"self": {"w": 3.0}}
    assert with_captured(Slotted(3.0), {"self": {"w": 4.0}})(2.0) == 8.0


def test_callable_objects_in_containers():
    net = Stack(Dense(1.0), Slotted(2.0), math.sin)
    found = {"self": {"layers": [{"self": {"w": 1.0}}, {"self": {"w": 2.0}}, {}], "scale": 2.0}}
    assert captured(net) == found
    new = with_captured(net, {"self": {"layers": [{}, {"self": {"w": 0.0}}, {}]}})
    assert new(1.0) == 0.0
    assert net(1.0) == 2.0 * math.sin(2.0 * math.tanh(1.0))
    assert net.layers[1].w == 2.0


def test_defaults_globals_modules_and_plain_functions_are_left_out():
    module, cls, plain = math, Dense, test_slots_are_attributes

    def f(x, w=3.0):
        return module, cls, plain, np

    assert captured(f) == {}
    assert captured(math.sin) == {}
    assert captured(Dense) == {}
    assert with_captured(math.sin, {}) is math.sin


def test_arrays_and_objects_without_call_are_values():
    @dataclasses.dataclass
    class Params:
        w: float

        def norm(self):
            return self.w

    p, a = Params(1.0), np.ones(3)

    def f():
        return p.norm() + a.sum()

    found = captured(f)
    assert found["p"] is p
    assert found["a"] is a
    assert with_captured(f, {"p": Params(2.0), "a": np.zeros(2)})() == 2.0


def test_decorators_are_followed():
    def deco(factor):
        def decorate(f):
            @functools.wraps(f)
            def wrapper(x):
                return factor * f(x)

            return wrapper

        return decorate

    f = deco(2.0)(functools.cache(make(3.0)))
    assert captured(f) == {"factor": 2.0, "f": {"w": 3.0, "b": 0.0}}
    g = with_captured(f, {"f": {"w": 5.0}})
    assert (g(1.0), f(1.0)) == (10.0, 6.0)
    assert g.__name__ == "f"


def test_recursion_goes_on_with_the_new_values():
    w = 2.0

    def power(n):
        return 1.0 if n == 0 else w * power(n - 1)

    assert captured(power) == {"w": 2.0}
    g = with_captured(power, {"w": 3.0})
    assert (g(3), power(3)) == (27.0, 8.0)


def test_mutual_recursion():
    a, b = 2.0, 3.0

    def even(n):
        return 1.0 if n == 0 else a * odd(n - 1)

    def odd(n):
        return 1.0 if n == 0 else b * even(n - 1)

    assert captured(even) == {"a": 2.0, "odd": {"b": 3.0}}
    g = with_captured(even, {"a": 10.0, "odd": {"b": 1.0}})
    assert (g(4), even(4)) == (100.0, 36.0)


def counters():
    n, step = 0, 1

    def bump():
        nonlocal n
        n += step

    def f():
        bump()
        bump()
        return n

    return f


def test_a_shared_variable_is_listed_once_and_stays_shared():
    f = counters()
    assert captured(f) == {"bump": {"n": 0, "step": 1}}
    g = with_captured(f, captured(f))
    assert (g(), g(), f()) == (2, 4, 2)
    assert with_captured(f, {"n": 10, "bump": {"step": 5}})() == 20


def test_an_object_reached_twice_stays_one_object():
    layer = Dense(1.0)
    method = layer.loss

    def f(x):
        return layer(x) ** 2 - method(x)

    assert captured(f) == {"layer": {"self": {"w": 1.0}}}
    g = with_captured(f, {"layer": {"self": {"w": 5.0}}})
    assert g(1.0) == 0.0
    assert g.__closure__[0].cell_contents is g.__closure__[1].cell_contents.__self__


def test_a_variable_that_is_not_assigned_yet_is_left_out():
    def f():
        return later

    assert captured(f) == {}
    later = 1
    assert captured(f) == {"later": 1}


def test_super_still_works():
    class Child(Dense):
        def __call__(self, x):
            return super().__call__(x) + self.w

    child = Child(0.0)
    assert captured(child) == {"self": {"w": 0.0}}
    assert with_captured(child, {"self": {"w": 1.0}})(1.0) == math.tanh(1.0) + 1.0


def test_a_callable_of_a_class_of_containers():
    class Params(dict):
        def __call__(self, x):
            return self["w"] * x * self.scale

    p = Params(w=2.0)
    p.scale = 3.0
    assert with_captured(p, {"self": {"scale": 5.0}})(1.0) == 10.0
    assert p(1.0) == 6.0


@pytest.mark.parametrize(
    "f",
    [make(3.0), functools.partial(make(3.0), 2.0), Dense(1.0).loss, Dense(1.0), Stack(Dense(1.0))],
)
def test_the_same_values_give_the_same_function(f):
    args = () if isinstance(f, functools.partial) else (2.0,)
    before = captured(f)
    assert with_captured(f, captured(f))(*args) == f(*args)
    assert captured(f) == before
    assert captured(with_captured(f, before)) == before


def test_an_unknown_name_is_an_error():
    with pytest.raises(StructureError, match="what was captured there") as info:
        with_captured(make(1.0), {"v": 2.0})
    assert info.value.message == ("with_captured: there is no `v`; what was captured there: b, w")


def test_a_value_where_names_are_needed_is_an_error():
    with pytest.raises(StructureError, match="self must be a dict of names, as") as info:
        with_captured(Dense(1.0), {"self": 3.0})
    assert info.value.message == (
        "with_captured: self must be a dict of names, as `captured` gives it; found float"
    )
