"""What nested functions change of the functions around them, in branches and loops of their own."""

import functools

import pytest

import lineara
from lineara.errors import StagingError
from lineara.staging.capture import trace as capture

POINTS = (2.0, -3.0, 0.0, 0.5, 100.0)


def in_a_branch(x):
    t = 1.0

    def f(v):
        nonlocal t
        if v > 1:
            t = v

    f(x)
    return t


def before_a_return(x):
    t = 1.0

    def f(v):
        nonlocal t
        if v > 1:
            t = v
            return 2.0
        t = t * 3
        return 4.0

    r = f(x)
    return t * r


def in_a_while(x):
    t = 1.0

    def f(v):
        nonlocal t
        while v > 1:
            v = v / 2
            t = t + 1
        return v

    return f(x) * t


def two_of_them(x):
    a = b = 1.0

    def f():
        nonlocal a, b
        if a > b:
            a = a - b
        else:
            b = b - a * 0.5

    a = x
    for _ in range(5):
        f()
    return a + 10 * b


def in_rounds(x):
    t = 0.0

    def add(v):
        nonlocal t
        if v > 1:
            t += v
        else:
            t -= v

    i = 0
    while i < 6:
        add(x * i)
        i += 1
    return t


def before_a_break(x):
    t = 0.0

    def f():
        nonlocal t
        for k in range(8):
            t += k
            if x < k:
                break
        else:
            t = -t

    f()
    return t + 0 * x


def of_a_method(x):
    t = 0.0

    class Adds:
        def go(self, v):
            nonlocal t
            if v > 0:
                t += v
            return self

    Adds().go(x).go(-x).go(1.0)
    return t


def of_a_decorator(x):
    n = 0

    def counted(f):
        @functools.wraps(f)
        def g(*args):
            nonlocal n
            if args[0] > 1:
                n += 1
            return f(*args)

        return g

    @counted
    def square(v):
        return v * v

    return square(x) + square(x / 2) + n * 100


def attribute_of_a_function(x):
    def f(v):
        if v > 1:
            f.n = f.n + 1

    f.n = 0
    f(x)
    f(x * 2)
    return x + f.n


FUNCTIONS = [in_a_branch, before_a_return, in_a_while, two_of_them, in_rounds, before_a_break]
FUNCTIONS += [of_a_method, of_a_decorator, attribute_of_a_function]


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_what_a_nested_function_rebinds_is_seen_around_it(f):
    program = capture(f, 2.0)
    assert [program(x) for x in POINTS] == [f(x) for x in POINTS]
    slope = lineara.jit(lineara.grad(f))
    assert [slope(x) for x in POINTS[:2]] == [lineara.grad(f)(x) for x in POINTS[:2]]


def counts(take):
    """A function in which one that counts its calls is called in an expression."""

    def f(x):
        n = 0

        def g(v):
            nonlocal n
            n += 1
            return v

        y = take(g, x)
        return y + n

    return f


TAKES = {
    "conditional": lambda g, x: g(x) if x > 1 else g(x) + g(x),
    "and": lambda g, x: x + (g(x) > 1 and g(x) < 50),
    "or": lambda g, x: x + (g(x) > 1 or g(x) < 50),
    "chain": lambda g, x: x + (1 < g(x) < g(50)),
    "longer chain": lambda g, x: x + (-9 < g(x) < g(50) < 60),
}


@pytest.mark.parametrize("take", TAKES.values(), ids=TAKES)
def test_what_an_expression_would_change_on_one_way_is_refused(take):
    with pytest.raises(StagingError, match="the variable 'n' was changed in a branch"):
        capture(counts(take), 2.0)


def test_a_derivative_in_a_program_reads_what_is_calculated_around_it():
    def f(x):
        k = x * 2

        def g(v):
            if v > 1:
                return v * k
            return v * v * k

        return lineara.grad(g)(x) + lineara.grad(lambda v: v * k if v > 1 else -k)(x)

    jitted = lineara.jit(f)
    assert [jitted(x) for x in POINTS] == [f(x) for x in POINTS]
    slope = lineara.grad(jitted)
    assert [slope(x) for x in POINTS] == [lineara.grad(f)(x) for x in POINTS]


def test_a_rule_that_is_stated_in_a_captured_function_is_tested_as_it_runs():
    def f(x):
        @lineara.custom_jvp
        def steps(v):
            s = 0.0
            for k in range(6):
                if v > k:
                    s = s + v
            while s > 100:
                s = s / 2
            return s

        @steps.defjvp
        def rule(primals, tangents):
            (v,), (t,) = primals, tangents
            n = 0
            for k in range(6):
                if v > k:
                    n += 1
            return steps(v), n * t

        return steps(x) * 2

    assert lineara.jit(f)(3.5) == f(3.5) == 28.0
    assert lineara.grad(lineara.jit(f))(3.5) == 8.0


def test_a_key_is_asked_once_for_each_item():
    def f(x):
        asked = 0

        def key(v):
            nonlocal asked
            asked += 1
            return -v

        first = sorted([3, 1, 2], key=key)[0]
        last = sorted("bca", key=ord, reverse=True)[0]
        return first * x + asked + max([1, 2, 2], key=key) * (last == "c")

    assert capture(f, 2.0)(3.0) == f(3.0) == 13.0
