"""Variables that only some ways bind: Python's value where they have one, its error where not."""

import numpy as np
import pytest
from capture.agreement import agrees, outcome, outcomes_agree

import lineara
from lineara.staging.capture import trace as capture

X = np.array([0.4, -0.3, 1.2, 0.7, 2.5])
CASES = [(X,), (-X,), (X[::-1].copy(),), (np.roll(X, 1),), (-np.roll(X, 3),), (X - 2,)]
CASES += [(v,) for v in np.random.default_rng(0).normal(size=(10, 5)) * 1.5]


def bound_and_used_under_one_condition(x):
    c = x[0] > 0
    if c:
        a = np.sin(x[1])
    y = x[2]
    if c:
        y += a * 2
    return y


def used_under_another_condition(x):
    if x[0] > 0:
        a = x[1] * x[1]
    elif x[1] > 1:
        a = np.cos(x[2])
    return a * 3 if x[2] > -1 else x[3]


def augmented_and_deleted(x):
    if x[0] > 0:
        a, b = x[1], x[2] * 2
    if x[1] < 0:
        a += x[3]
        del b
    if x[2] > 0:
        return a * a
    return b


def deleted_in_a_branch(x):
    a = x[0] * x[1]
    if x[2] > 1:
        del a
    if x[3] > 0:
        return a
    return x[4]


def lists_and_arrays(x):
    if x[0] > 0:
        row, a = [x[1], x[2]], np.sin(x)
    if x[2] > 0 or x[1] < -1:
        row[0] = row[1] * 2
        return a @ a + row[0] + row[1]
    return x[4]


def of_a_closure(x):
    if x[0] > 1:
        a = x[1] * x[2]

    def inner(k):
        return a * k

    return inner(3) if x[3] > 0 or x[4] > 2 else x[4]


def in_a_comprehension(x):
    if x[0] > 1:
        a = x[1] * x[2]
    if x[3] > 0:
        return sum([v * a for v in x])
    return x[4]


def none_or_a_number(x):
    if x[0] > 0:
        a = x[1] if x[1] > 0 else None
    if x[2] > 0:
        return x[3] if a is None else a * a
    return x[4]


def after_a_break(x):
    for v in x:
        if v > 1:
            first = v * v
            break
        if v < -1:
            last = v * 3
            break
    if x[2] > 0:
        return first
    return last


def carried_from_round_to_round(x):
    total = 0.0
    for i in range(len(x)):
        if i > 0 and x[i] > 0:
            total += before * x[i]  # noqa: F821
        before = x[i]
        if x[i] > 0.5:
            high = before * 2
    return total + high


def carried_out_of_a_while(x):
    i, k = 0, 0
    while i < 4 and x[i] > -1:
        if x[i] > 0:
            found, k = x[i] * x[i], k + 1
        i += 1
    return found + k


def bound_after_the_exit_of_a_round(x):
    for v in x:
        if v > 2:
            break
        last = v * v
    return last * 2


FUNCTIONS = [
    bound_and_used_under_one_condition, used_under_another_condition, augmented_and_deleted,
    deleted_in_a_branch, lists_and_arrays, of_a_closure, in_a_comprehension, none_or_a_number,
    after_a_break, carried_from_round_to_round, carried_out_of_a_while,
    bound_after_the_exit_of_a_round,
]  # fmt: skip


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_a_variable_that_some_ways_bind_is_python_s(f):
    outcomes_agree(f, *CASES)
    assert any([not isinstance(outcome(f, *c), tuple) for c in CASES]), "it gives values"
    if f is not bound_and_used_under_one_condition:
        assert any([isinstance(outcome(f, *c), tuple) for c in CASES]), "and raises"


def last_item(x, n):
    for i in range(n):  # noqa: B007
        x = x * 0.5
    return x.sum() * i


def bound_in_a_round(x, n):
    for i in range(n):
        last = x[i] * x[i]
    return last


def of_the_round_before(x, n):
    y = 0.0
    for i in range(n):
        if i > 0:
            y += previous * x[i]  # noqa: F821
        previous = x[i]
    return y + previous


def counted_while(x, n):
    k = 0
    while k < n:
        square = x[k] * x[k]
        k += 1
    return square + k


@pytest.mark.parametrize("f", [last_item, bound_in_a_round, of_the_round_before, counted_while])
def test_what_a_loop_of_any_number_of_rounds_binds_is_read_after_it(f):
    outcomes_agree(f, *[(X, n) for n in (3, 0, 1, 5)])


def test_a_list_that_one_way_binds_to_another_name_of_it_is_not_taken_for_two():
    def f(x):
        row = [x[0], x[1]]
        if x[2] > 0:
            other = row
        if x[2] > 0:
            other[0] = 5.0
        return row[0] * x[1]

    with pytest.raises(lineara.errors.MutationError, match="list was changed that the staged"):
        capture(f, X)


def test_the_error_whole():
    def f(x):
        if x[0] > 0:
            a = x[1]
        y = x[2]
        return y * a

    agrees(f, (X,))
    with pytest.raises(UnboundLocalError) as e:
        lineara.jit(f)(-X)
    first = f.__code__.co_firstlineno
    assert str(e.value) == (
        "cannot access local variable 'a' where it is not associated with a value"
    )
    assert e.value.__notes__ == [
        f"at test_unset_variables.py:{first + 4} in f: return y * a; it gets a value in line "
        f"{first + 2}, which was not reached"
    ]


def test_what_has_a_value_on_every_way_is_not_looked_at():
    def f(x):
        if x[0] > 0:
            a, d = x[1], 1.0
        else:
            a = d = x[2] * 2
        for v in x:
            b = v * a
            if b > 3:
                break
        while True:
            c = a * 2
            if c < 9:
                break
        return a + b + c + d

    assert "check_" not in str(capture(f, X))
