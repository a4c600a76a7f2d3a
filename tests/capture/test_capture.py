"""What capture makes of branches, loops, arrays and errors; the errors of what it cannot make."""

from typing import NamedTuple

import numpy as np
import pytest
from capture.agreement import agrees
from capture.plain_functions import checked

import lineara
from lineara.errors import LinearaError, MutationError, ShapeError, StagingError, StructureError
from lineara.staging.capture import trace as capture

X = np.array([0.4, -0.3, 1.2, 0.7, 2.5])


def forms(program):
    """How many loops and branches the text of a program has."""
    text = str(program)
    return text.count("scan[") + text.count("while["), text.count("cond[")


# --- what follows a block that may be left --------------------------------------------------------


def guard(x):
    if x < 0:
        return 0.0
    if x > 10:
        return 10.0
    y = x * x
    return y + 1


def first_above(x, s):
    for i in range(len(x)):
        if x[i] > s:
            k = i
            break
    else:
        k = len(x) - 1
    return x[k]


def newton(a):
    x, rounds = a, 0
    while True:
        better = 0.5 * (x + a / x)
        if abs(better - x) < 1e-12:
            break
        x = better
        rounds += 1
        if rounds > 50:
            return -1.0
    return better + rounds


def nested_exits(x, s):
    total = 0.0
    for i in range(len(x)):
        if x[i] < 0:
            continue
        for j in range(len(x)):
            if x[j] * x[i] > s:
                return total
            if j > i:
                break
            total = total + x[j]
    return -total


def helper_that_rebinds(x, s):
    factor = 1.0

    def double():
        nonlocal factor
        factor *= 2

    for v in x:
        if v > s:
            double()
    return factor + 0.0 * s


def loop_in_a_helper_that_rebinds(x, s):
    last, count = s, 0

    def go():
        nonlocal last, count
        for v in x:
            count += 1
            if v > s:
                last = v

    go()
    return last + count


def condition_that_rebinds(x, s):
    k, asked, total = len(x), 0, s

    def more():
        nonlocal k, asked
        k -= 1
        asked += 2
        return x[k] > s

    while more():
        total = total * 0.5 + k
    return total + 100 * k + 1000 * asked


def until_it_returns(x, s):
    k, total = 0, 1.0
    while True:
        k += 1
        total = total * 0.5 + s
        if k > 10 * x[0] or total > 40:
            return total + k


def break_in_an_else(x, s):
    total = s
    for v in x:
        for w in x:
            if w > v + s:
                break
        else:
            total = total * 0.5 + v
            break
        total += w
    else:
        total = -total
    return total


def continue_in_an_else(x, s):
    total = s
    for v in x:
        for _ in range(2):
            pass
        else:
            if v > s:
                continue
        total += v
    return total


@pytest.mark.parametrize(
    ("f", "cases"),
    [
        (helper_that_rebinds, [(X, 0.5), (X, 9.0), (-X, -1.0)]),
        (loop_in_a_helper_that_rebinds, [(X, 0.5), (X, 9.0), (-X, -1.0)]),
        (condition_that_rebinds, [(X, 0.5), (X, 1.0), (X, 9.0)]),
        (until_it_returns, [(X, 0.5), (X, 100.0), (-X, 1.0)]),
        (break_in_an_else, [(X, 0.5), (X, 5.0), (X, -9.0), (-X, 0.1)]),
        (continue_in_an_else, [(X, 0.5), (X, 5.0), (X, -9.0)]),
        (guard, [(3.0,), (-1.0,), (11.0,)]),
        (first_above, [(X, 0.5), (X, 2.0), (X, 9.0), (-X, 0.0)]),
        (newton, [(2.0,), (9.0,), (1e-9,)]),
        (nested_exits, [(X, 1.0), (X, 100.0), (X, 0.1), (np.abs(X), 5.0)]),
    ],
)
def test_blocks_that_are_left(f, cases):
    agrees(f, *cases)


def test_a_guard_is_a_branch_of_its_own_and_nothing_is_asked_twice():
    assert forms(capture(guard, 3.0)) == (0, 2)


def test_only_what_is_taken_is_evaluated():
    def safe(x):
        return np.log(x) if x > 0 else 0.0 * x

    with np.errstate(all="raise"):
        agrees(safe, (2.0,), (-1.0,), (0.0,))


def test_and_or_not_and_chains():
    def f(x, y):
        a = 1.0 if 0 < x < y else 2.0
        b = 10.0 if (x > 1 and y / (x - 1) > 2) or not y > 0 else 20.0
        c = 100.0 if (x > 0 and y > 0) or (x < -0.4 and not y < 1) else 200.0
        return a + b + c

    agrees(f, (0.5, 2.0), (3.0, 2.0), (1.0, -1.0), (1.5, 5.0), (-0.5, 2.0))


def test_max_min_any_all():
    def f(x):
        best, least = -9.0, 9.0
        for v in x:
            best, least = max(best, v), min(v, least)
        some = any(v > 2 for v in x)
        every = all([v > -1 for v in x])
        return best - least + (1.0 if some else 2.0) + (5.0 if every else 7.0)

    agrees(f, (X,), (-X,), (X / 10,))


# --- arrays ---------------------------------------------------------------------------------------


def swapped(x):
    now, before = x.copy(), np.zeros(len(x))
    for _ in range(6):
        for i in range(1, len(x) - 1):
            before[i] = 0.5 * (now[i - 1] + now[i + 1])
        now, before = before, now
    return now - 2 * before


def through_rows(x):
    table = np.zeros((len(x), len(x)))
    for i in range(len(x)):
        row = table[i]
        for j in range(len(x)):
            if x[j] > x[i]:
                row[j] = x[i] * x[j]
            else:
                row[j] += 1.0
    return table


def in_a_branch(x, s):
    y = np.zeros(3)
    if s > 0:
        y[0] = x[0]
        y[1:] = x[1:3] * s
    else:
        y += x[:3]
    y[2] -= 1.0
    return y


def two_names_for_one(x):
    a, b = x.copy(), x * 0.0
    for _ in range(6):
        b[0] = b[0] + 1.0
        a = a + b
        b = a
    return a + 10 * b


def held_elsewhere(x):
    y = x * 1.0
    first = y
    for _ in range(6):
        y[0] += 1.0
        y = y * 0.5
    return 100 * first + y


def another_array_from_then_on(x):
    a, b = np.zeros(len(x)), x * 1.0
    for i in range(6):
        b[1] = b[1] + i
        b = a
        a[0] = a[0] + x[0]
    return a + 10 * b


def fill(out, value):
    out[0] = value


def read_by_a_call(x):
    value = 1.0
    if x[0] > 0:
        value = 2.0
    out = np.zeros(2)
    fill(out, value)
    return out


@pytest.mark.parametrize(
    ("f", "cases"),
    [
        (two_names_for_one, [(X,), (-X,)]),
        (held_elsewhere, [(X,), (-X,)]),
        (another_array_from_then_on, [(X,), (-X,)]),
        (read_by_a_call, [(X,), (-X,)]),
        (swapped, [(X,), (-X,)]),
        (through_rows, [(X,), (X[::-1].copy(),)]),
        (in_a_branch, [(X, 1.0), (X, -1.0)]),
    ],
)
def test_arrays_that_blocks_write(f, cases):
    agrees(f, *cases)


def test_a_write_where_the_array_may_be_another_one_is_refused():
    def f(x, s):
        a, b = np.zeros(3), np.ones(3)
        c = a if s > 0 else b
        c[0] = x[0]
        return a.sum() + 10 * b.sum() + c.sum()

    with pytest.raises(MutationError) as e:
        capture(f, X, 1.0)
    assert e.value.message == (
        "an array that a staged branch or loop gave was written, or is read after a write, where "
        "it may be one that is in use under another name, and whether it is depends on values; "
        "let the branch or the loop give a copy, a.copy()"
    )


def test_and_is_right_where_nobody_holds_the_others():
    def f(x, s):
        y = x * 2
        if s > 0:
            y = y + 1
        y[0] = 7.0
        return y

    agrees(f, (X, 1.0), (X, -1.0))


def test_numbers_keep_their_precision_from_round_to_round():
    def total(x):
        s = 0.0
        for v in x:
            s = s + v
        return s

    x = (np.arange(1, 40) / 7).astype(np.float32)
    program = capture(total, x)
    assert type(program(x)) is np.float32
    assert program(x) == total(x)
    assert type(capture(total, X)(X)) is type(total(X))


def ends_in_parentheses(x):
    y = -x if x > 0 else x
    return (
        y
        # a comment before the end
    )


def ends_in_what_is_never_done(x):
    if x > 0:
        return -x
    return x
    y = 1  # noqa: F841


def ends_in_a_function(x):
    def inner(y):
        return -y if y > 0 else y

    x = inner(x)
    return x

    def other(z):
        return z


def ends_in_nothing(x):
    if x > 0:
        x = -x
    else:
        pass
    if x > -1:
        return x
    return 2 * x
    """a text, and a comment"""
    # that is the end


@pytest.mark.parametrize(
    "f",
    [ends_in_parentheses, ends_in_what_is_never_done, ends_in_a_function, ends_in_nothing],
    ids=lambda f: f.__name__,
)
def test_functions_are_read_wherever_their_code_ends(f):
    agrees(f, (2.0,), (-3.0,), (0.5,))


def test_numbers_of_pythons_are_its_own_in_loops_that_only_python_calculates():
    def halved(x, t):
        s, deep = 0.0, 1.0
        for v in x:
            for w in x:
                s = s + v * w
                deep = deep * 0.99
            t = t * 0.5
        assert type(t) is type(deep) is float
        return s * t * deep

    agrees(halved, (X, 3.0), (X, -2.0))


def test_what_a_loop_could_change_and_does_not_stays_known():
    def chosen(x, last):
        weights, k, s, y = {0: 2.0, 1: 3.0}, 1, 0.0, x * 1.0
        for v in x:
            s = s + weights[k] * v
            if last:
                k = 0
                y[0] = s
        y[1:] = s
        return s + y.sum()

    agrees(chosen, (X, False))
    with pytest.raises(LinearaError, match="a key of a dict"):
        capture(lambda x, c: chosen(x, c > 0), X, 1.0)


def test_a_number_of_either_kind_does_not_lose_its_precision_unsaid():
    def f(x, y, c):
        s = 0.1 if c > 0 else y[0]
        return s * x

    x = X.astype(np.float32)
    with pytest.raises(StagingError) as e:
        capture(f, x, X, 1.0)
    assert e.value.message == (
        "multiply of f64[] and f32[5]: a number that is Python's in one branch or round of a loop "
        "and NumPy's in another has the precision of what it meets in one and its own in the "
        "other; make it one of them where it begins, float(x) or np.float64(x)"
    )
    agrees(lambda x, y, c: f(x, y, c), (X, X, 1.0), (X, X, -1.0))


@pytest.mark.parametrize("name", ["add", "multiply", "maximum", "floor_divide", "true_divide"])
@pytest.mark.parametrize("n", [np.arange(1, 6), np.int64(3)])
def test_a_whole_number_of_either_kind_meets_whole_numbers(name, n):
    def f(x, n, c):
        k = 1 if c > 0 else np.int64(2)
        return x * getattr(np, name)(n, k)

    agrees(f, (X, n, 1.0), (X, n, -1.0))


def test_a_zero_beside_floats_is_one_of_them_unless_its_class_is_asked_for():
    def f(x):
        return x if x > 0 else 0

    agrees(f, (2.0,), (-2.0,))
    with pytest.raises(StagingError, match="the class of a staged"):
        capture(lambda x: isinstance(f(x), int), 2.0)


def test_the_size_of_a_program_does_not_depend_on_that_of_the_data():
    def f(x):
        y = np.zeros(len(x))
        for i in range(1, len(x)):
            y[i] = y[i - 1] + x[i] if x[i] > 0 else 0.0
        return y.sum()

    assert len({capture(f, np.ones(n)).size() for n in (10, 100, 1000)}) == 1


# --- errors of the user's -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "note"),
    [
        ((X, -1.0), 'raise ValueError("s must be positive")'),
        ((-X, 1.0), 'assert x.sum() > 0, "no mass"'),
        ((np.array([5.0, -3.0, 1, 1, 1]), 1.0), 'raise RuntimeError("too low")'),
    ],
)
def test_what_is_raised_under_a_staged_condition_is_raised_as_the_program_runs(args, note):
    program = capture(checked, X, 2.0)
    assert program(X, 3.0) == checked(X, 3.0)
    with pytest.raises(Exception) as plain:  # noqa: PT011
        checked(*args)
    with pytest.raises(type(plain.value)) as e:
        program(*args)
    assert type(e.value) is type(plain.value)
    assert e.value.args == plain.value.args
    assert [n.endswith(f"in checked: {note}") for n in e.value.__notes__] == [True]


def test_a_variable_without_a_value_is_the_users_error():
    def f(x):
        for v in x:
            if v > 100:
                k = v
                break
        return k

    def g(x):
        if x[0] > 9:
            k = x[0]
        return k

    def within(x):
        total = 0.0
        for v in x:
            if v > 0:
                total += late  # noqa: F821
            late = v  # noqa: F841
        return total

    def of_a_closure(x):
        if x[0] > 9:
            k = x[0]

        def inner():
            return k

        return inner()

    for h in (f, g, within, of_a_closure):
        with pytest.raises(NameError) as plain:
            h(X / 10)
        for way in (lambda h, x: capture(h, x)(x), lambda h, x: lineara.jit(h)(x)):
            with pytest.raises(NameError) as e:
                way(h, X / 10)
            assert type(e.value) is type(plain.value)
            assert e.value.args == plain.value.args


# --- what cannot be captured ----------------------------------------------------------------------


def whole_or_not(x):
    n = 2**60 + 1 if x[0] > 0 else 2.0
    return x[0] * n


def real_or_complex(x):
    return x[0] if x[0] > 0 else 1j * x[0]


def changes_a_set(x):
    seen = set()
    if x[0] > 0:
        seen.add(1)
    return len(seen)


def another_shape(x):
    y = x
    while y[0] < 10:
        y = np.concatenate([y, y])
    return y


def other_containers(x):
    return (x[0],) if x[0] > 0 else [x[0]]


def draws(x, generator=np.random.default_rng(0)):  # noqa: B008
    return generator.normal() * x[0] if x[0] > 0 else x[0]


@pytest.mark.parametrize(
    ("f", "kind", "said"),
    [
        (
            whole_or_not,
            StructureError,
            "what is returned is i64[] and f64[] in the two branches of a staged condition, and "
            "what Python does with these differs; make them of one type, with float() or astype",
        ),
        (
            real_or_complex,
            StructureError,
            "what is returned is f64[] and c128[] in the two branches of a staged condition, and "
            "what Python does with these differs; make them of one type, with float() or astype",
        ),
        (
            changes_a_set,
            StagingError,
            "a set was changed in a branch that depends on staged values: a program cannot change "
            "it when it runs; bind a new value to a variable instead, or write into an array",
        ),
        (
            another_shape,
            ShapeError,
            "the variable 'y' is f64[5] and f64[10] before and after a round of a staged loop; it "
            "must keep its shape",
        ),
        (
            other_containers,
            StructureError,
            "what is returned is Structure((*,)) and Structure([*]) in the two branches of a "
            "staged condition; make it the same containers",
        ),
        (
            draws,
            StagingError,
            "random numbers were drawn from a Generator in a branch that depends on staged values: "
            "a program would have the same ones whenever it runs; draw them before and pass them "
            "as an argument, or have the same ones from lineara.random or a generator that the "
            "function makes of a seed",
        ),
    ],
)
def test_what_cannot_be_captured_is_an_error(f, kind, said):
    with pytest.raises(kind) as e:
        capture(f, X)
    assert isinstance(e.value, LinearaError)
    assert e.value.message == said
    assert f.__name__ in str(e.value)


def test_what_a_refused_branch_has_changed_is_put_back():
    log = []

    def f(x):
        if x[0] > 0:
            log.append(1)
        return x

    with pytest.raises(StagingError, match="a list was changed"):
        capture(f, X)
    assert log == []


def test_a_recursive_definition_has_branches_of_pythons():
    @lineara.function
    def power(x, n):
        if n == 0:
            return 1.0
        return x * power(x, n - 1)

    program = capture(lambda x, n: power(x, n[0]), 2.0, np.array([3]))
    assert [program(2.0, np.array([k])) for k in (0, 3, 10)] == [1.0, 8.0, 1024.0]


class Line(NamedTuple):
    slope: float
    start: float

    def at(self, x):
        return self.slope * x + self.start if x > 0 else self.start


def test_programs_leave_eager_derivatives_the_classes_that_they_had():
    def f(line):
        same = line.__class__ is type(line) and isinstance(line, Line)
        return line.at(2.0) if same else 0.0

    line = Line(3.0, 1.0)
    program = capture(f, line)
    for _ in range(2):
        assert lineara.value_and_grad(f)(line) == (7.0, Line(2.0, 1.0))
        assert program(line) == 7.0
        assert lineara.jit(f)(line) == 7.0


class Wrapped:
    def __init__(self, a):
        self.a = a

    def __array__(self, dtype=None, copy=None):
        return self.a

    def __setitem__(self, at, value):
        self.a[at] = value


def test_an_object_that_shows_an_array_is_written_into_another():
    def f(x):
        a = Wrapped(np.zeros((2, 2)))
        a[:] = Wrapped(np.array([[x, 1.0], [2.0, x]]))
        return a.a.sum()

    assert capture(f, 2.0)(5.0) == f(5.0) == 13.0


def test_masks_and_places_made_of_constants_in_the_function_are_known():
    def f(x):
        d = np.ones((3, 3)) * x.sum()
        d[np.eye(3, dtype=bool)] = np.arange(3.0)
        n = np.arange(3)
        return d[~np.eye(3, dtype=bool)].sum() + d[n, n].sum() + d[np.ones(3, "bool")][0, 1]

    x = np.ones(2)
    assert capture(f, x)(3 * x) == f(3 * x)


def test_a_loop_that_has_no_end_while_the_program_is_written_is_refused(monkeypatch):
    monkeypatch.setattr("lineara.staging.capture.forms.ENDLESS", 1000)

    def f(x):
        going = True
        while going:
            x = x * 0.5
        return x

    with pytest.raises(StagingError, match="written out in more than 1000 operations") as e:
        capture(f, 1.0)
    assert "while going:" in str(e.value) or "x = x * 0.5" in str(e.value)
