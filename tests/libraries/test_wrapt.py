"""wrapt: functions and methods that it decorates, and its lru_cache."""

import math

from following import Cases

cases = Cases("wrapt")

import wrapt


@wrapt.decorator
def doubled(wrapped, instance, args, kwargs):
    return wrapped(*args, **kwargs) * 2


@wrapt.decorator
def grown(wrapped, instance, args, kwargs):
    return math.exp(wrapped(*args, **kwargs))


@wrapt.synchronized
@doubled
@grown
def wave(x):
    return math.sin(x)


class Model:
    def __init__(self, a):
        self.a = a

    @grown
    def value(self, x):
        return math.sin(self.a * x)

    @doubled
    @classmethod
    def named(cls, x):
        return math.cos(x)

    @doubled
    @staticmethod
    def free(x):
        return math.tanh(x)


@cases.at(0.5)
def function(x):
    return wave(x) * x


@cases.at(0.5, 1.5)
def method(x, a):
    return Model(a).value(x) * x


@cases.at(0.5)
def of_the_class(x):
    return Model.named(x) + Model(1.0).free(x)


@cases.at(0.5)
def wrapper(x):
    return wrapt.FunctionWrapper(math.sin, lambda f, i, a, k: f(*a, **k) * math.cosh(a[0]))(x)


test_works, test_refused, test_jitted = cases.tests()
