"""`try` around what is raised as the program runs: Python's value, gradient and exceptions."""

import contextlib
import math

import numpy as np
import pytest
from capture.agreement import outcome, outcomes_agree
from capture.plain_functions import asserted_and_raised

import lineara
from lineara.errors import StagingError
from lineara.staging.capture import trace as capture

X = np.array([0.4, -0.3, 1.2, 0.7, 2.5])
CASES = [(X,), (-X,), (X[::-1].copy(),), (np.roll(X, 1),), (-np.roll(X, 3),), (X - 2,)]
CASES += [(v,) for v in np.random.default_rng(3).normal(size=(8, 5)) * 1.5]


class Mine(ValueError):
    pass


def rest_is_skipped(x):
    z, k = x[3], 0
    try:
        y = math.sqrt(x[0])
        k = 1
        z = y * x[1]
        z += math.log(x[2])
        k = 2
    except ValueError:
        z = z * x[4]
    return z * 2 + k


def division(x):
    try:
        y = 1.0 / (x[2] if x[2] > 0 else 0.0 * x[1]).item()
    except ZeroDivisionError as e:
        y = x[3] if "division by zero" in str(e) else x[4]
    else:
        y = y * x[2]
    return y


def overflow(x):
    try:
        return math.exp(400 * x[0].item()) * x[1]
    except OverflowError:
        return x[2] * x[2]


def an_index(x):
    i = int(x[0].real * 4)
    try:
        y = x[i]
        y += x[i + 1] * x[2]
    except IndexError:
        return -x[1] * x[3]
    return y


def an_index_that_is_written(x):
    a = x * 1.0
    try:
        a[0] = x[2]
        a[int(x[0].real * 4)] = x[1] * x[2]
        a[1] = x[3]
    except (KeyError, IndexError):
        a[2] = 5 * x[0]
    return a @ a


def raised(x):
    try:
        if x[0] > 0:
            y = x[1] * 3
            raise Mine("positive")
        y = x[2]
    except Mine as e:
        y = y + (1.0 if str(e) == "positive" else 2.0)
    except ValueError:
        y = x[3]
    return y * x[4]


def helper(v):
    if v > 1:
        raise KeyError("large")
    return math.sqrt(v) * v


def through_calls_in_a_loop(x):
    total = 0.0
    for v in x:
        try:
            total += helper(v)
        except KeyError:
            break
        except ValueError:
            continue
        finally:
            total += 0.25 * v
    return total


def nested(x):
    try:
        try:
            y = math.sqrt(x[0])
            y += math.acos(x[1])
        finally:
            x = x * 2
        y += 1
    except ValueError:
        y = x[1]
    return y * x[0]


def let_through(x):
    k = 0
    try:
        try:
            y = math.sqrt(x[0]) + helper(x[1])
        except KeyError:
            k = 1
            y = math.log(x[2])
        else:
            k = 2
    finally:
        x = x * 0.5
    return y * x[3] + k


def within_a_loop_with_state(x):
    total, fails, log = 0.0, 0, []
    for v in x:
        try:
            w = math.log(v)
            log.append(w)
            if w.real < -0.5:
                raise OverflowError("small")
            total = 0.5 * total + w
        except ValueError:
            fails += 1
            if fails > 2:
                return total - 1.0
        except ArithmeticError:
            log.append(v * v)
    return total + fails + sum(log) * 0.1


def a_loop_in_a_try(x):
    total = x[0] * 0
    try:
        for v in x:
            total += math.sqrt(v)
            if total > 2:
                break
        total *= 2
    except ValueError:
        total -= 1
    return total


def while_in_a_try(x):
    y, k = x[0] * x[0] + 0.5, 0
    try:
        while y.real > 0.1:
            y = y - math.sqrt(y - x[1].item()) * 0.5
            k += 1
    except ValueError:
        return y * 3 - k
    return y


def dicts_and_objects(x):
    d = {"a": x[0], "n": 0}
    try:
        d["n"] += 1
        d["a"] = math.sqrt(d["a"])
        d["n"] += 1
    except ValueError:
        d["a"] = d["a"] * d["a"]
    return d["a"] * x[1] + d["n"]


def may_be_unset(x):
    try:
        y = math.sqrt(x[0])
        z = math.sqrt(x[1])
    except ValueError:
        pass
    return z * y if x[2] > 0 else y


def all_are_caught(x):
    try:
        return math.sqrt(x[0]) / x[1]
    except:  # noqa: E722
        return x[2] * x[2]


def in_a_conditional_expression(x):
    try:
        y = math.sqrt(x[0]) if x[1] > 0 else math.log(x[2])
        y += 0.5 if x[3] > 0 and math.acos(x[4]).real > 1 else x[0]
    except ValueError:
        y = x[3]
    return y * x[4]


def an_index_that_no_array_has(x):
    try:
        y = np.sin(x[0])
        y = y + x[len(x)]
    except IndexError as e:
        y = x[0] * (2 if "out of bounds for axis 0" in str(e) else 3)
    return y


def too_many_indices(x):
    try:
        y = x[0, 1]
    except LookupError:
        y = x[1]
    finally:
        x = x * 2
    return y * x[2]


def a_write_where_no_array_is(x):
    a = x * 1.0
    try:
        a[0] = 2.0
        a[len(x)] = 1.0
    except IndexError:
        a[1] = x[0]
    return a @ x


def an_index_after_what_may_raise(x):
    try:
        if x[0] > 0:
            raise Mine("positive")
        y = x[9]
    except Mine:
        y = x[1]
    except IndexError:
        y = x[2] * x[3]
    return y


OUT_OF_BOUNDS = [
    an_index_that_no_array_has,
    too_many_indices,
    a_write_where_no_array_is,
    an_index_after_what_may_raise,
]


FUNCTIONS = [
    rest_is_skipped, division, overflow, an_index, an_index_that_is_written, raised,
    asserted_and_raised, through_calls_in_a_loop, nested, let_through, within_a_loop_with_state,
    a_loop_in_a_try,
    while_in_a_try, dicts_and_objects, may_be_unset, all_are_caught, in_a_conditional_expression,
]  # fmt: skip


@pytest.mark.parametrize("f", [*FUNCTIONS, *OUT_OF_BOUNDS], ids=lambda f: f.__name__)
def test_what_handlers_do_is_python_s(f):
    outcomes_agree(f, *CASES)


def test_the_context_of_what_a_handler_raises_is_what_it_caught():
    for x in (-X, X):
        with pytest.raises((RuntimeError, AssertionError)) as plain:
            asserted_and_raised(x)
        with pytest.raises((RuntimeError, AssertionError)) as e:
            lineara.jit(asserted_and_raised)(x)
        assert type(e.value.__cause__) is type(plain.value.__cause__)
        assert type(e.value.__context__) is type(plain.value.__context__)


def test_a_try_in_which_nothing_may_raise_costs_nothing():
    def f(x):
        try:
            y = np.sin(x).sum()
        except ValueError:
            y = x[0]
        finally:
            x = x * 2
        return y + x[1]

    assert "cond" not in str(capture(f, X))


def test_a_loop_with_a_try_is_one_definition():
    programs = [capture(through_calls_in_a_loop, np.linspace(0, 1, n)) for n in (9, 90)]
    assert len({p.size() for p in programs}) == 1


def test_in_lanes_each_lane_goes_its_own_way():
    rows = np.array([c[0] for c in CASES])
    for f in (rest_is_skipped, all_are_caught, nested):
        found = lineara.vmap(f)(rows)
        np.testing.assert_allclose(found, [f(row) for row in rows], rtol=1e-14)


def test_the_text_of_what_says_values_is_refused_where_it_is_asked_for():
    def f(x):
        try:
            return x[int(x[0])]
        except IndexError as e:
            return x[1] if "axis 0" in str(e) else x[2]

    with pytest.raises(StagingError) as e:
        capture(f, X)
    assert e.value.message == (
        "the text of the exception of an index was asked for, which was caught as the program "
        "runs: it says values that are not known while a program is written; give one of your own"
    )


def in_a_with(x):
    try:
        with contextlib.nullcontext():
            return math.sqrt(x[0])
    except ValueError:
        return x[1]


def in_a_cond(x):
    try:
        return lineara.cond(x[0] > 0, lambda v: math.sqrt(v), lambda v: v, x[1])
    except ValueError:
        return x[1]


def test_what_cannot_end_a_block_is_refused():
    with pytest.raises(StagingError) as e:
        capture(in_a_with, X)
    assert e.value.message == (
        "math_sqrt of staged f64[] stands in a `with`, or in a function that is not read, within a "
        "try that catches ValueError: what is done at its end where that is raised is not known "
        "while a program is written; put the try into it, or leave it before"
    )
    with pytest.raises(StagingError) as e:
        capture(in_a_cond, X)
    assert e.value.message == (
        "math_sqrt of staged f64[] stands in a try that catches ValueError: whether it is raised "
        "is not known while a program is written; choose with lineara.cond on the numbers, or let "
        "the exception out"
    )


def test_our_own_refusals_are_not_caught():
    def f(x):
        try:
            return {x[0]: 1.0}[x[1]]
        except Exception:
            return x[2]

    assert outcome(f, X) == X[2]
    with pytest.raises(StagingError, match=r"^hash\(\) of a staged f64"):
        capture(f, X)


def test_a_list_that_would_be_held_otherwise_before_a_check_in_a_try_is_refused():
    def f(x):
        total = 0.0
        try:
            rows = [[] for _ in range(3)]
            for i in range(len(x)):
                rows[i % 3].append(x[i])
                if x[i] > 0.01:
                    rows[0].append(np.sin(x[i]))
            for row in rows:
                for v in row:
                    total = 0.5 * total + v
            rows.append([total, x[0]])
            total += rows[len(rows[0]) % 2][-1]
        finally:
            total = np.sin(total)
        return total

    with pytest.raises(StagingError) as error:
        capture(f, np.linspace(-1.0, 1.0, 6))
    assert str(error.value).startswith(
        "a try: after what may raise in it, a list that was made before is read or written where "
        "a staged number says, or gets staged values; do that once before the try"
    )


def stack_of_a_helper(x, s):
    w, k = [], 0
    for i in range(3):
        if x[i] > -0.6:
            w.append((x[i], k))
        elif w and x[i] < s:
            k += w.pop()[1] + 1
    return sum([u * (j + 1) for u, j in w])


def of_a_helper(x, s):
    """Its room was reckoned without the rest of the try: it wrote beside its arrays before."""
    try:
        y = stack_of_a_helper(x, s)
    finally:
        s *= 0.1
    return y + s


def made_between_two_raises(x, s):
    try:
        y = math.sqrt(s + 2.0)
        w = []
        y += math.sqrt(s + x[0])
        for v in x:
            if v > 0:
                w.append(v)
    except ValueError:
        return 0.5 * s
    return y + sum(w)


def made_in_a_branch(x, s):
    y = s
    try:
        if s > 0:
            w = [[] for k in range(2)]
            y += math.sqrt(s + x[0])
            for i in range(3):
                w[i % 2].append(x[i])
            y += sum(w[0])
    except ValueError:
        y = 0.5 * s
    return y


@pytest.mark.parametrize("f", [of_a_helper, made_between_two_raises, made_in_a_branch])
def test_a_list_that_is_wanted_after_what_may_raise_is_refused(f):
    """No form is written again that was begun where the list is made."""
    with pytest.raises(StagingError) as e:
        capture(f, X, 0.3)
    assert e.value.message == (
        "a try: after what may raise in it, a list that was made before is read or written where a "
        "staged number says, or gets staged values; do that once before the try"
    )


def test_a_loop_whose_condition_raises_after_an_exit_in_a_try_is_refused():
    def f(x):
        i, total = 0, 0.0
        try:
            while math.sqrt(x[0] + 3.0 - i) > 0.5:
                total += x[i % 2]
                i += 1
                if total > 2.0:
                    break
        except ValueError:
            total -= 1.0
        return total

    with pytest.raises(StagingError) as error:
        capture(f, np.array([0.3, 0.2]))
    assert str(error.value).startswith(
        "a loop: its condition may raise what a try around it catches, after a round that may have "
        "been left otherwise; write `while True` and ask in the body, with a break"
    )
