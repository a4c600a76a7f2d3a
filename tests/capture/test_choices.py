"""Variables that hold None, a text, a function or a container as a staged condition says."""

import functools
import math
import operator

import numpy as np
import pytest
from capture.agreement import agrees, gradients_agree

import lineara
from lineara.errors import MutationError, StagingError, StructureError
from lineara.staging.capture import trace as capture

X = np.array([0.4, -0.3, 1.2, 0.7, 2.5])
CASES = [(X,), (-X,), (X[::-1].copy(),), (X * 0,), (np.roll(X, 1),), (-np.roll(X, 3),)]


def scaled(y, z):
    if y is None:
        return z
    return y * z


def given_to_a_helper(x):
    y = x[0] if x[1] > 0 else None
    return scaled(y, x[2]) + scaled(None, x[1]) + scaled(x[3], x[1])


def least_positive(x):
    best = None
    for v in x:
        if v > 0 and (best is None or v < best):
            best = v
    return 0.0 if best is None else best * best


def first_above_one(x):
    k = None
    for i in range(len(x)):
        if x[i] > 1:
            k = i
            break
    if k is None:
        return x.sum()
    return x[k] * 3


def found(x, s):
    for v in x:
        if v > s:
            return v


def of_a_function_that_ends(x):
    r, q = found(x, 1.0), found(x, 0.5)
    if r is None:
        return 0.0 * x[0]
    return r * 2 + (q or 3.0)


def of_three_texts(x):
    kind = "a" if x[0] > 0 else "b" if x[1] > 0 else "c"
    if kind == "a":
        y = x[2]
    elif kind == "b":
        y = x[3] * x[3]
    elif kind != "a":
        y = x[4] ** 3
    return y


def automaton(x):
    state, total = "idle", 0.0
    for v in x:
        if state == "idle":
            if v > 0.5:
                state = "run"
            total = total + v
        elif state == "run":
            total = total * v
            if v < 0.6:
                state = "stop"
        else:
            total = total + 1.0
    return total if state != "stop" else -total


def functions(x):
    f = np.sin if x[0] > 0 else (np.cos if x[1] > 0 else math.exp)
    return f(x[2]) * f(x[3])


def closures(x):
    def by(u):
        return u * x[0]

    g = by if x[1] > 0 else (lambda u: u + x[2])
    return g(g(x[3]))


def pair(x):
    best = None
    for i in range(len(x)):
        if x[i] > 0.6 and (best is None or x[i] > best[1]):
            best = (i, x[i])
    if best is None:
        return 0.0 * x[0]
    i, v = best
    return v * i


def as_a_condition(x):
    y = None
    if x[0] > 0:
        y = x[1]
    if not y:
        return x[2]
    return y * 2


def until_it_is_there(x):
    r, k = None, 0
    while r is None and k < 5:
        if x[k] > 1:
            r = x[k]
        k += 1
    return k * 1.0 if r is None else r


def bound_after_all(x):
    y = None
    if x[0] > 0:
        y = x[1]
    if y is None:
        y = x[2]
    return y * 3


def in_a_dict(x):
    d = {"best": None, "n": 0}
    for v in x:
        if v > 0.5:
            if d["best"] is None:
                d["best"] = v
            d["n"] += 1
    b = d["best"]
    return d["n"] * 1.0 if b is None else b


def in_the_first_round(x):
    total = 0.0
    for _ in range(2):
        last = None
        for v in x:
            if last is None or v > last:
                last = v
        total = total + last * last
    return total


def asked_by_a_function(x):
    y, z = (x[0], None) if x[1] > 0 else (None, x[1])
    a = 1.0 if operator.is_(y, None) else y * 2.0
    return a + (0.0 if operator.is_not(z, None) else x[2])


def remembered(x):
    y = x[0] if x[1] > 0 else None
    missing = y is None
    total = 0.0
    for v in x:
        if missing:
            total = total + v
        elif v > 0 and y is not None:
            total = total + y * v
    return total


def two_of_them(x):
    y = None if x[0] > 0 else x[1]
    z = None if x[2] > 1 else x[3]
    if y is not None and z is not None:
        return y * z
    if not (y is None or x[1] > 9):
        return y * y
    if z is None or y is not None:
        return x[4]
    return z * 3


def two_best(x):
    best = second = None
    for v in x:
        if best is None or v > best:
            second, best = best, v
        elif second is None or v > second:
            second = v
    if best is None or second is None:
        return 0.0 * x[0]
    return best * 10 + second


def found_in_a_while(x):
    acc, i = None, 0
    while i < len(x) and (acc is None or acc < 2):
        acc = x[i] if acc is None else acc + x[i]
        i += 1
    return acc * i


def of_a_nested_function(x):
    def pick(k):
        if k == 0:
            return None
        return x[1] if k == 1 else x[2]

    r, f, s = pick(int(abs(x[0]) * 3)), None, "a"
    for v in x:
        f = np.sin if v > 0.5 else (f or np.cos)
        s = "b" if s == "a" and v > 0 else "c" if s == "b" else "a"
    weight = {"a": 1.0, "b": 2.0, "c": 3.0}[s]
    return (r * 2 if r is not None else x[3]) + f(x[0]) * weight


FUNCTIONS = [
    two_of_them,
    found_in_a_while,
    of_a_nested_function,
    given_to_a_helper,
    least_positive,
    first_above_one,
    of_a_function_that_ends,
]
FUNCTIONS += [of_three_texts, automaton, functions, closures, pair, as_a_condition, remembered]
FUNCTIONS += [until_it_is_there, bound_after_all, in_a_dict, in_the_first_round]
FUNCTIONS += [asked_by_a_function]


@pytest.mark.parametrize("f", FUNCTIONS)
def test_a_choice_is_carried_with_its_tag(f):
    agrees(f, *CASES)
    gradients_agree(f, *CASES)


@pytest.mark.parametrize("f", [least_positive, automaton, pair, until_it_is_there])
def test_the_size_of_a_program_does_not_depend_on_that_of_the_data(f):
    assert len({capture(f, np.linspace(-1, 2, n)).size() for n in (10, 40)}) == 1


@pytest.mark.parametrize("f", [least_positive, automaton])
def test_a_gradient_costs_what_the_value_costs(f):
    works = []
    for n in (64, 128, 256):
        x = np.linspace(0.4, 0.9, n)
        program = lineara.trace(lineara.value_and_grad(f), x)
        works.append((capture(f, x).run(x).work, program.run(x).work))
    for value, both in works:
        assert both <= 4 * value
    assert works[2][1] - works[1][1] == pytest.approx(2 * (works[1][1] - works[0][1]), rel=0.02)


def test_an_error_where_a_choice_is_none_is_a_check():
    def f(x):
        y = x[0] if x[1] < 0 else None
        if y is None:
            raise ValueError("nothing there")
        z = y * 2
        if not isinstance(y, float):
            raise TypeError("no number")
        return z

    program = capture(f, X)
    assert program(X) == f(X)
    assert lineara.jit(lineara.grad(f))(X)[0] == 2.0
    with pytest.raises(ValueError, match="nothing there") as e:
        program(-X)
    assert e.value.args == ("nothing there",)


# --- what is refused ------------------------------------------------------------------------------


def returned(x):
    y = None
    if x[0] > 0:
        y = x[1]
    return y


def calculated(x):
    return returned(x) * 2


def classified(x):
    return 1.0 if isinstance(returned(x), float) else x[0]


def printed(x):
    return x[0] if f"{returned(x)}" else x[1]


def iterated(x):
    return [*(returned(x) or (1.0,))]


def given_to_numpy(x):
    axis = None if x[0] > 0 else 0
    return np.sum(x, axis=axis)


def given_to_python(x):
    return x[0] * len(list(filter(None if x[0] > 0 else math.isnan, [1.0, 0.0])))


def _gaps(y):
    yield 1.0 if y is None else 2.0


def given_to_a_generator(x):
    return x[0] * sum(_gaps(returned(x)))


def held_by_a_generator(x):
    y = returned(x)

    def gaps():
        yield 1.0 if y is None else 2.0

    return x[0] * next(gaps())


def given_by_a_partial(x):
    return x[0] * sum(functools.partial(_gaps, returned(x))())


REFUSED = [returned, calculated, classified, printed, iterated, given_to_numpy]
REFUSED += [given_to_python, given_to_a_generator, given_by_a_partial]


@pytest.mark.parametrize("f", REFUSED)
def test_what_a_program_cannot_do_with_a_choice_is_refused(f):
    with pytest.raises(StagingError) as e:
        capture(f, X)
    assert "a value was used that a staged condition chooses: it is " in e.value.message


def test_a_generator_asks_what_it_holds_and_is_refused_its_branch():
    with pytest.raises(StagingError, match="bool"):
        capture(held_by_a_generator, X)


def test_the_error_says_what_the_choice_is_and_what_works():
    with pytest.raises(StagingError) as e:
        capture(calculated, X)
    assert e.value.message == (
        "a value was used that a staged condition chooses: it is f64[] or None as the program "
        "runs; ask which it is, with `is`, == or as a condition, in a branch that uses it, or call "
        "it where all are functions"
    )
    assert "return returned(x) * 2" in str(e.value)


def a_module_or_a_number(x):
    if x[0] > 0:
        return np
    return x[1]


def test_the_error_names_a_module_too():
    with pytest.raises(StagingError) as e:
        capture(a_module_or_a_number, X)
    assert "it is module or f64[] as the program runs" in e.value.message


def test_lists_that_can_be_changed_are_not_chosen_from():
    with pytest.raises(StructureError, match="make it the same containers"):
        capture(lambda x: len([x[0]] if x[0] > 0 else [x[0], x[1]]), X)


def test_whether_two_staged_values_are_one_object_is_refused():
    def f(x, y):
        return x if x is y else x + y

    with pytest.raises(StagingError) as e:
        lineara.jit(f)(X, X)
    assert e.value.message == (
        "whether two staged values are one object is not known while a program is written: the "
        "same program may be given one array twice, and a branch gives one of several; compare "
        "what they hold, or pass a flag"
    )
    assert capture(lambda x: x if x is not None and x is x else 2 * x, X)(X)[0] == X[0]


def test_an_array_that_an_operation_made_is_no_other_one():
    def f(x, y):
        z, part = x * 1.0, y[:2]
        same = [x is z, z is x, part is y[:2], part is x, z is z, x.T is x.T, z[:] is z]
        return x * (1.0 + sum([2.0**i for i, v in enumerate(same) if v]))

    agrees(f, (X, X + 1), (X, X))


def test_is_true_asks_a_truth_value_of_pythons():
    def f(x, y):
        big, small = x > 1.0, y[0] > 0
        a = 1.0 if big is True else 2.0
        b = 10.0 if big is not False else 20.0
        return x * (a + b + (100.0 if small is True else 200.0))

    agrees(f, (2.0, X), (0.5, -X))


@pytest.mark.parametrize("of", [lambda v: [v], lambda v: {0: v}, lambda v: np.array([v])])
def test_a_container_that_a_chosen_key_finds_is_written_or_refused(of):
    def in_rounds(x):
        sums = {"even": of(0.0), "odd": of(0.0)}
        for i in range(len(x)):
            sums["odd" if i % 2 else "even"][0] += x[i]
        return sums["even"][0] + 10 * sums["odd"][0]

    def once(x):
        sums = {"low": of(1.0), "high": of(2.0)}
        sums["high" if x[0] > 1 else "low"][0] += x[1]
        return sums["low"][0] + 10 * sums["high"][0]

    x = np.arange(1.0, 9.0)
    for f in (in_rounds, once):
        try:
            value = lineara.jit(f)(x)
        except MutationError:
            assert f is once or isinstance(of(0.0), np.ndarray)
        else:
            assert value == f(x)


def test_a_chosen_key_of_a_list_that_grows_in_a_loop():
    def f(x):
        groups = {"even": [], "odd": []}
        for i, v in enumerate(x):
            groups["odd" if i % 2 else "even"].append(v * v)
        return sum(sum(g) * len(g) for g in groups.values()) + groups["odd"][-1]

    x = np.arange(1.0, 9.0)
    assert lineara.jit(f)(x) == f(x)
    np.testing.assert_array_equal(lineara.jit(lineara.grad(f))(x), lineara.grad(f)(x))
