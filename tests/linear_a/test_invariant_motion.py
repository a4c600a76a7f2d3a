"""Invariant motion: the same values, never more work, and no row of a tape for what is alike."""

import math
import warnings

import numpy as np
import pytest

import lineara
from lineara import jit, stages
from lineara.engines import Ask, run
from lineara.linear_a.check import check
from lineara.linear_a.loops import Scan
from lineara.linear_a.syntax import Prim, leaves
from lineara.policies import checkpoint_name

A, X = -0.5 - np.linspace(0.1, 0.9, 5), np.linspace(0.2, 1.4, 7)
"""What is alike in all rounds, and what differs."""


def elementwise(a, x):
    h = np.zeros(5)
    for i in range(len(x)):
        h = h * (1.0 - np.exp(a)) + np.tanh(a) * x[i]
    return h.sum()


def numbers(a, x):
    s = 0.0
    for v in x:
        s = s * (1.0 - a[0]) + a[1] * a[2] * v
    return s


def of_loops_within(a, x):
    h = 0.0
    for i in range(len(x)):
        for k in range(4):
            h = h * np.sin(a).sum() + x[i] * np.cos(a * x[i]).sum() + 0.1 * k
    return h


def matrices(a, x):
    h = np.ones(5)
    for v in x:
        h = np.tanh((np.outer(a, a) + np.eye(5)) @ h) + v
    return h.sum()


def solutions(a, x):
    h = np.ones(5)
    for v in x:
        h = v * np.linalg.inv(np.diag(a)).sum(axis=0) + 0.1 * np.linalg.solve(np.eye(5) + v, h)
    return h.sum()


def written_in_a_round(a, x):
    s = 0.0
    for v in x:
        w = np.exp(a)
        w[1] = v
        s = s + w.sum() * v
    return s


def handed_on(a, x):
    s, h = 0.0, a * 1.0
    for v in x:
        s = s + h.sum() * v
        h = np.sin(a)
    return s + h[0]


def in_a_branch(a, x):
    s = 0.0
    for v in x:
        if v > 0.7:
            s = s + np.log(a[0] + 2.0) * v
        s = s + np.exp(a[1]) * v
    return s


def at_places(a, x):
    s, k = 0.0, np.array([3, 1, 1])
    for i in range(len(x) - 1):
        s = s + a[k].sum() * x[i + 1] + a[::-1][2] * x[i]
    return s


def a_part_within_and_before(a, x):
    s = 0.0
    for v in x:
        part = a[1:4]
        s = s + (part * v).sum() + np.sin(part).sum() * v + np.sin(part)[0]
    return s


FUNCTIONS = (
    elementwise, numbers, of_loops_within, matrices, solutions, written_in_a_round, handed_on,
    in_a_branch, at_places, a_part_within_and_before,
)  # fmt: skip


@pytest.mark.parametrize("f", FUNCTIONS)
def test_values_and_derivatives_of_two_orders_are_those_of_python(f):
    check(jit(f).program(A, X).program)
    for engine in ("interpreter", "native"):
        assert np.isclose(jit(f, engine=engine)(A, X), f(A, X), rtol=1e-13)
        first = lineara.grad(f, (0, 1))
        for got, want in zip(jit(first, engine=engine)(A, X), first(A, X), strict=True):
            assert np.allclose(got, want, rtol=1e-11)

        def along(a, x, first=first):
            ga, gx = first(a, x)
            return np.sum(ga * np.cos(np.arange(5.0))) + np.sum(gx * np.sin(np.arange(7.0)))

        second = lineara.grad(along)
        assert np.allclose(jit(second, engine=engine)(A, X), second(A, X), rtol=1e-9)


def in_loops(program):
    """The primitives of the bodies of all loops."""
    bodies = {e.body for d in program.defs.values() for e in leaves(d.body) if isinstance(e, Scan)}
    return [e.name for f in bodies for e in leaves(program.defs[f].body) if hasattr(e, "primitive")]


def test_only_what_differs_is_calculated_in_a_round():
    assert not {"exp", "tanh", "subtract"} & {*in_loops(jit(elementwise).program(A, X).program)}
    within = in_loops(jit(of_loops_within).program(A, X).program)
    assert "sin" not in within
    assert "cos" in within
    assert "outer" not in in_loops(jit(matrices).program(A, X).program)
    assert "solve" not in in_loops(jit(numbers).program(A, X).program)
    assert "inv" not in in_loops(jit(solutions).program(A, X).program)


def test_what_cannot_fail_goes_before_a_loop_whatever_fails_in_it():
    def f(a, x):
        s = 0.0
        for v in x:
            s = s + math.log(v)
            s = s + np.exp(a).sum() * v
        return s

    assert "exp" not in in_loops(jit(f).program(A, X).program)


def test_the_work_and_the_tape_of_what_is_alike_do_not_grow_with_the_rounds():
    def by_hand(a, x):
        h, c, t = np.zeros(5), 1.0 - np.exp(a), np.tanh(a)
        for i in range(len(x)):
            h = h * c + t * x[i]
        return h.sum()

    for n in (10, 1000):
        x = np.linspace(0, 1, n)
        one, other = (stages(f, A, x).certificate for f in (elementwise, by_hand))
        assert one.tape_bytes == other.tape_bytes
        work = []
        for f in (elementwise, by_hand):
            p = jit(f).program(A, x)
            work.append(run(p.program, p.name, *p.operands((A, x)), ask=Ask(work=True)).work)
        assert work[0] == work[1]


def test_a_loop_without_a_round_calculates_nothing():
    def f(a, x):
        s = a * 1.0
        for v in x:
            s = s + v * np.log(a - 1.0)
        return s

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        value, slope = jit(lineara.value_and_grad(f))(1.0, np.zeros(0))
    assert (value, slope) == (1.0, 1.0)


def test_the_exception_of_the_first_round_is_the_one_that_python_meets_first():
    def f(a, x, i):
        s = 0.0
        for v in x:
            s = s + x[i] * v
            s = s + np.linalg.inv(a * np.ones((2, 2))).sum()
        return s

    def g(a, x, i):
        s = 0.0
        for v in x:
            s = s + np.linalg.inv(a * np.ones((2, 2))).sum()
            s = s + x[i] * v
        return s

    for engine in ("interpreter", "native"):
        for h, kind in ((f, IndexError), (g, np.linalg.LinAlgError)):
            with pytest.raises(kind):
                h(1.0, X, 9)
            with pytest.raises(kind):
                jit(h, engine=engine)(1.0, X, 9)


def everywhere(f, *args):
    """The primitives of all definitions of a captured function."""
    program = jit(f).program(*args).program
    return [e.name for d in program.defs.values() for e in leaves(d.body) if isinstance(e, Prim)]


def test_what_a_round_calculates_twice_goes_before_it_once():
    def f(a, x):
        s = a[0]
        for v in x:
            s = s * np.exp(a).sum() + v
            s = s + np.exp(a).sum() * s
        return s

    assert everywhere(f, A, X).count("exp") == 1
    assert np.isclose(jit(f)(A, X), f(A, X), rtol=1e-13)


def test_places_and_parts_stay_in_the_round():
    def f(a, x, n):
        s = 0.0
        for v in x:
            s = s + a[(n + 1) % 3] * v + (a[::-1] * v)[n % 2]
        return s

    within = in_loops(jit(f).program(A, X, 4).program)
    assert within.count("python_remainder") == 2
    assert within.count("index") == 4
    assert np.isclose(jit(f)(A, X, 4), f(A, X, 4), rtol=1e-13)


def test_what_acts_does_so_in_each_round(capsys):
    def f(a, x):
        s = 0.0
        for v in x:
            print(np.exp(a[0]))
            s = s + v
        return s

    jit(f)(A, X)
    assert capsys.readouterr().out.count("\n") == len(X)


def test_a_name_for_a_policy_stays_where_it_is_given():
    def f(a, x):
        s = 0.0
        for v in x:
            s = s + checkpoint_name(np.exp(a), "e").sum() * v
        return s

    assert "checkpoint_name" in in_loops(jit(f).program(A, X).program)
    assert "exp" not in in_loops(jit(f).program(A, X).program)


def by_domain(a, x):
    s = 0.0
    for v in x:
        s = s + math.log(v - 5.0)  # a ValueError
        s = s + np.linalg.inv(a * np.ones((2, 2))).sum()
    return s


def by_division(a, x):
    s = 0.0
    for i in range(len(x)):
        s = s + 1.0 / (i * 0.0 * math.sin(a))  # a ZeroDivisionError
        s = s + np.linalg.inv(a * np.ones((2, 2))).sum()
    return s


def by_raise(a, x):
    s = 0.0
    for v in x:
        if v < 5.0:
            raise KeyError("low")
        s = s + np.linalg.inv(a * np.ones((2, 2))).sum()
    return s


RAISED = {by_domain: ValueError, by_division: ZeroDivisionError, by_raise: KeyError}


@pytest.mark.parametrize("f", RAISED)
@pytest.mark.parametrize("engine", ["interpreter", "native"])
def test_what_may_raise_stays_behind_what_raised_before_it(f, engine):
    for g in (f, jit(f, engine=engine)):
        with pytest.raises(RAISED[f]) as caught:
            g(1.0, X)
        assert not isinstance(caught.value, np.linalg.LinAlgError)  # which is a ValueError


def test_a_print_comes_before_the_exception_of_what_follows_it(capsys):
    def f(a, x):
        s = 0.0
        for v in x:
            print("begun", v)
            s = s + v * np.linalg.inv(a * np.ones((2, 2))).sum()
        return s

    with pytest.raises(np.linalg.LinAlgError):
        jit(f)(1.0, X)
    assert capsys.readouterr().out == "begun 0.2\n"
