"""Functions that call themselves where staged values decide: definitions that call themselves."""

import dataclasses
import math

import numpy as np
import pytest

import lineara
from lineara.errors import MutationError, StagingError, StructureError
from lineara.staging.capture import trace as capture

X = np.array([0.5, -1.5, 2.0, 0.25, 3.0])


def falling(x):
    if x < 1:
        return x
    return x * falling(x - 1)


def gcd(a, b):
    return a if b < 1e-9 else gcd(b, a % b)


def even(x):
    if x < 1:
        return x * 2
    return odd(x - 1)


def odd(x):
    if x < 1:
        return x * 3
    return even(x - 1)


def simpson(f, a, b, tol):
    m = (a + b) / 2
    whole = (b - a) / 6 * (f(a) + 4 * f(m) + f(b))
    left = (m - a) / 6 * (f(a) + 4 * f((a + m) / 2) + f(m))
    right = (b - m) / 6 * (f(m) + 4 * f((m + b) / 2) + f(b))
    if abs(left + right - whole) < tol:
        return left + right
    return simpson(f, a, m, tol / 2) + simpson(f, m, b, tol / 2)


def adaptive(x):
    return simpson(lambda t: math.sin(t * x), 0.0, 1.0, 1e-6)


def fibonacci(x):
    def fib(n):
        return n if n < 2 else fib(n - 1) + fib(n - 2)

    return fib(x + 4)


def ackermann(x):
    def a(m, n):
        if m < 1:
            return n + 1
        if n < 1:
            return a(m - 1, 1.0)
        return a(m - 1, a(m, n - 1))

    return a(x / x + 1, x)


class Bisection:
    def __init__(self, tol):
        self.tol = tol

    def solve(self, f, a, b):
        m = (a + b) / 2
        if b - a < self.tol:
            return m
        return self.solve(f, a, m) if f(m) > 0 else self.solve(f, m, b)


def root(x):
    return Bisection(1e-9).solve(lambda t: t * t - x, 0.0, x + 1)


def depth(x):
    def go(s, d=0):
        if s < 1:
            return d
        return go(s / 2, d + 1)

    return x * go(x)


def flags(x):
    def go(s, mode):
        if s < 1:
            return s
        return go(s / 2, "b") * 2 if mode == "a" else go(s / 3, "a") * 3

    return go(x, "a")


def records(x):
    def go(p):
        if p.a < 1:
            return p
        return go(Pair(p.a / 2, p.b + p.a))

    q = go(Pair(x, 0.0))
    return q.a * q.b


@dataclasses.dataclass
class Pair:
    a: float
    b: float


def with_loops(x):
    def go(s):
        t = 0.0
        for i in range(5):
            if i * s > 30:
                break
            t += s - i
        return t if s < 1 else t + go(s / 2)

    return go(x)


def cell_between(x):
    k = 1.0

    def go(s):
        return s if s < 1 else k * go(s / 2)

    first = go(x)
    k = 2.0
    return first + 10 * go(x)


def within_itself(x):
    def go(s):
        def inner(u):
            return u if u < 2 else inner(u / 3) + 0.5

        return inner(s * 10) if s < 1 else go(s / 2) + inner(s)

    return go(x)


def of_arrays(x):
    def halve(a, d):
        if a[0] < 0.1:
            return a
        return halve(a * 0.5, d + 1) + d

    return halve(np.array([x, 1.0, x * x]), 0).sum()


FUNCTIONS = [falling, even, odd, adaptive, fibonacci, ackermann, root, depth, flags, records]
FUNCTIONS += [with_loops, cell_between, within_itself, of_arrays]
POINTS = (1.3, 4.5, 2.25)


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_a_recursion_is_a_definition_that_calls_itself(f):
    jitted = lineara.jit(f)
    for x in POINTS:
        assert jitted(x) == f(x)
        assert lineara.grad(jitted)(x) == pytest.approx(lineara.grad(f)(x), rel=1e-9, abs=1e-12)
    assert jitted.captures == 1
    slope = lineara.jit(lineara.grad(f))
    assert slope(POINTS[1]) == pytest.approx(lineara.grad(f)(POINTS[1]), rel=1e-9, abs=1e-12)


def test_a_recursion_of_two_numbers():
    program = capture(gcd, 4.5, 3.0)
    assert program(4.5, 3.0) == gcd(4.5, 3.0)
    assert program(20.0, 7.5) == gcd(20.0, 7.5)


def test_each_kind_of_call_is_one_definition():
    """The text does not grow with the calls that are written, nor with the depth."""
    program = capture(lambda x: falling(x) + falling(x + 1) * falling(2.0), 3.5)
    assert sum([name.startswith("falling") for name in program.program.defs]) == 1
    assert program(5.5) == falling(5.5) + falling(6.5) * falling(2.0)


def test_lanes_recur_as_deep_as_each_needs():
    xs = np.array([3.5, 0.5, 10.5])
    got = lineara.jit(lineara.vmap(falling))(xs)
    assert np.array_equal(got, [falling(x) for x in xs.tolist()])


@dataclasses.dataclass
class Tree:
    v: float
    kids: tuple


def test_a_recursion_that_static_data_end_stays_pythons():
    tree = Tree(1.0, ())
    for v in range(12):
        tree = Tree(v + 0.5, (Tree(0.25 * v, ()), tree))

    def total(t, x):
        s = t.v * x if x > 1 else t.v
        for k in t.kids:
            s = s + total(k, x * 0.5) if s > 0 else s - k.v
        return s

    assert capture(lambda x: total(tree, x), 2.0)(0.3) == total(tree, 0.3)

    weights = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)

    def along(n, s):
        if n == len(weights):
            return s
        return along(n + 1, s / 2 + weights[n]) if s > 1 else s

    program = capture(lambda x: along(0, x), 200.0)
    assert [program(x) for x in (200.0, 3.0, 1e6)] == [along(0, x) for x in (200.0, 3.0, 1e6)]


def test_a_recursion_without_end_is_pythons_error(monkeypatch):
    monkeypatch.setattr("lineara.engines.interpreter.DEEPEST", 1000)

    def forever(x):
        if x < 0:
            return x
        return forever(x * 1.0)

    with pytest.raises(RecursionError, match="maximum recursion depth exceeded in a program"):
        capture(forever, 1.0)(1.0)


def test_what_a_recursive_function_changes_is_refused_and_put_back():
    calls = []

    def noted(x):
        calls.append(1)
        return x if x < 1 else noted(x / 2)

    with pytest.raises(StagingError, match="a list was changed in a function that calls itself"):
        lineara.jit(noted)(9.0)
    assert calls == []

    def filled(x):
        def fill(a, s):
            a[0] += s
            return s if s < 1 else fill(a, s / 2)

        y = np.zeros(2) + x
        return fill(y, x) + y[0]

    with pytest.raises(MutationError) as e:
        capture(filled, 9.0)
    assert e.value.message == (
        "fill calls itself where staged values decide, and writes into an array that it was given "
        "or finds outside; write into a copy, and return it"
    )


def test_an_array_that_a_recursion_gives_may_be_one_that_it_was_given():
    def pick(a, s):
        return a if s < 1 else pick(a, s / 2)

    def written(x):
        y = x * 1.0
        z = pick(y, x[2] * 10)
        z[0] = 100.0
        return y.sum()

    with pytest.raises(MutationError, match="may be one that is in use under another name"):
        capture(written, X)

    def read(x):
        return pick(x * 1.0, x[2] * 10).sum()

    assert capture(read, X)(X) == read(X)


def test_a_recursion_on_every_way_and_one_that_changes_its_form_are_refused():
    def both(x):
        return both(x - 1) if x > 1 else both(x + 1)

    with pytest.raises(StagingError) as e:
        capture(both, 2.0)
    assert e.value.message == (
        "both calls itself in every branch, so nothing says what it gives; one branch must end "
        "without a call"
    )

    def growing(p):
        return sum(p) if p[-1] < 1 else growing((*p, p[-1] / 2))

    with pytest.raises(StagingError) as e:
        capture(lambda x: growing((x,)), 2.0)
    assert e.value.message == (
        "growing calls itself with other constants, types or containers every time, each of which "
        "is a definition of its own; pass what changes as numbers and arrays that keep their shapes"
    )

    def own(x):
        return x * x if x < 1 else lineara.grad(own)(x - 1)

    with pytest.raises(StagingError) as e:
        capture(own, 2.0)
    assert e.value.message == (
        "a derivative of own is taken within own, which calls itself where staged values decide: "
        "what it is the derivative of is not written yet; differentiate the function as a whole, "
        "or end the recursion by a number that is known while the program is written"
    )


def test_a_container_that_a_recursion_gives_may_be_one_that_it_was_given():
    def last(p, s):
        return p if s < 1 else last(p, s / 2)

    def one_is_changed(x, change):
        a = Pair(x, 1.0)
        b = last(a, x)
        change(a, b)
        return a.a + b.a

    for change in (lambda a, b: setattr(a, "a", 5.0), lambda a, b: setattr(b, "a", 5.0)):
        with pytest.raises(MutationError, match="a Pair was changed that the staged branch or"):
            capture(lambda x, change=change: one_is_changed(x, change), 30.0)

    def new(p, s):
        return Pair(p.a, s) if s < 1 else new(Pair(p.a + 1, 0.0), s / 2)

    def both_are_changed(x):
        a = Pair(x, 1.0)
        b = new(a, x)
        a.a, b.b = 100.0, b.b + 1
        return a.a * b.a + b.b

    assert capture(both_are_changed, 30.0)(9.0) == both_are_changed(9.0)


def test_what_a_recursion_gives_keeps_its_containers():
    def one_or_none(s):
        if s < 1:
            return None
        return 1.0 if one_or_none(s / 2) is None else 2.0

    def pair_or_number(s):
        return (s, s) if s < 1 else pair_or_number(s / 2)[0]

    for f in (one_or_none, pair_or_number):
        with pytest.raises(StructureError) as e:
            capture(f, 30.0)
        assert e.value.message == (
            f"what {f.__name__} gives differs where it calls itself and where it does not: give "
            "the same containers there, with numbers, or None, in the same places"
        )
