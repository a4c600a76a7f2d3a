"""`match`, `in` and assignments within expressions, where staged values decide."""

import math

import numpy as np
import pytest
from capture.agreement import agrees, gradients_agree

import lineara
from lineara.errors import StagingError
from lineara.staging.capture import trace as capture

X = np.array([0.4, -0.3, 1.2, 0.7, 2.5])
CASES = [(X,), (-X,), (X[::-1].copy(),), (X * 0,), (np.roll(X, 1),), (-np.roll(X, 3),)]


class Level:
    LOW, HIGH = 1, 2


def literals_and_guards(x):
    total, k = 0.0, 0
    for v in x:
        match round(v * 2):
            case 0:
                total += v
            case Level.LOW | Level.HIGH as k:
                total += v * k
            case k if k > 3:
                total -= k * v
            case -1:
                total *= 2
            case _:
                total += 1
    return total + k


def pairs(x):
    match int(x[0] * 3), x[1] > 0:
        case 0, True:
            return x[0]
        case 1, flag if flag:
            return x[2]
        case (n, _):
            return x[1] * n


def texts_and_none(x):
    kind = "low" if x[0] > 0 else "high" if x[1] > 0 else None
    match kind:
        case "low":
            y = x[0]
        case "high":
            y = x[1] * 2
        case None:
            y = x[2]
    return y


def left_from_within(x):
    for v in x:
        match int(v):
            case 0:
                continue
            case 2:
                break
            case n:
                return v * n
    return x[0]


def a_capture_of_a_guard_that_fails(x):
    k = 7
    match math.floor(x[0]):
        case 5:
            pass
        case k if x[1] > 0:
            pass
    return x[2] * k


def left_to_python(x):
    match {"a": 1, "b": [x[0], x[1], x[2]]}:
        case {"a": 1, "b": [y, *_]}:
            return y * len([*"abc"])


def in_a_tuple(x):
    k = int(x[1] * 3)
    a = x[0] if k in (0, 1, 5) else x[2]
    b = x[1] if k not in {0, -1} else x[3]
    c = x[2] if x[0] in range(-2, 9, 2) or k in range(3) else x[4]
    return a + b + c


def both_walruses(x):
    if (v := x[0]) > 0 and (w := x[1]) < 0:
        return v + w
    return v


def walrus_in_a_loop(x):
    total = 0.0
    for i in range(len(x)):
        if x[i] > 0 and (u := x[i] * 2) > 1 and (k := i) > 1:
            total += u * k
        elif not (x[i] > 0.1 or (z := x[i]) > -2):
            total -= z
    return total


def walrus_over_a_value(x):
    w = 3.0
    if x[0] > 0 and (w := x[1]) < 5:
        return w
    return w * x[2]


def walrus_in_a_while(x):
    k = 0
    while k < 5 and (v := x[k]) < 1:
        k += 1
    while (w := 0.5 * x[2]) + k < 2:
        k += 1
    return v * k + w


FUNCTIONS = [literals_and_guards, pairs, texts_and_none, left_from_within, left_to_python]
FUNCTIONS += [a_capture_of_a_guard_that_fails, in_a_tuple, both_walruses, walrus_in_a_loop]
FUNCTIONS += [walrus_over_a_value, walrus_in_a_while]


@pytest.mark.parametrize("f", FUNCTIONS)
def test_it_means_what_it_does_in_python(f):
    agrees(f, *CASES)
    gradients_agree(f, *CASES)


def test_only_the_case_that_is_taken_is_evaluated():
    def f(x):
        match int(x > 0):
            case 1:
                return np.log(x)
            case _:
                return x * 0.0

    with np.errstate(all="raise"):
        agrees(f, (2.0,), (-1.0,))
    assert lineara.jit(lineara.grad(f))(-1.0) == 0.0


def test_a_loop_of_matches_is_one_definition():
    assert len({capture(literals_and_guards, np.linspace(-1, 3, n)).size() for n in (9, 90)}) == 1


def test_a_name_that_a_walrus_may_not_have_bound_is_looked_at_where_it_is_used():
    def f(x):
        if x[0] > 0 or (w := x[1]) > 0:
            return w
        return x[2]

    agrees(f, (-np.abs(X),), (X * [-1, -1, 1, 1, 1],))
    with pytest.raises(UnboundLocalError, match="local variable 'w'"):
        lineara.jit(f)(X)


def test_a_pattern_of_a_class_under_a_staged_guard_is_refused_at_its_line():
    def f(x):
        match (x[0], 1.0):
            case tuple(pair) if pair[0] > 0:
                return x[0]
        return x[1]

    with pytest.raises(StagingError) as e:
        capture(f, X)
    assert e.value.message.startswith("bool() of a staged bool[]")
    assert "case tuple(pair) if pair[0] > 0:" in str(e.value)
