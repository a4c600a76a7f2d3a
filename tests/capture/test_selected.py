"""What a staged mask selects: written where it holds, reduced, and otherwise refused."""

import warnings

import numpy as np
import pytest
from agreement import gradients_agree, outcome

import lineara
from lineara.errors import StagingError
from lineara.staging.capture import trace as capture

X = np.array([0.3, -0.2, 0.5, 1.2, -0.7, 2.1])
POINTS = [X, -X, X[::-1].copy(), np.abs(X)]


def doubled(x):
    x = x.copy()
    m = x > 0
    x[m] *= 2
    return x.sum()


def squared(x):
    x = x.copy()
    m = x > 0
    x[m] = x[m] ** 2 / (1 + x[m])
    return x @ x


def of_a_mask_calculated_twice(x):
    x = x.copy()
    x[x > 0] = np.log(x[x > 0])
    x[(x > -1) & (x < 0)] -= 0.25
    return x.sum()


def of_views(x):
    ahead, here = x[1:][x[:-1] > 0.1], x[:-1][x[:-1] > 0.1]
    return np.sum(ahead * np.sin(here)) + (ahead / (1 + here * here)).max()


def of_a_matrix(x):
    g = np.outer(x, x)
    g[g > 0] = np.sqrt(g[g > 0])
    g[1][g[1] < 0] *= 0.5
    return g.sum()


def in_a_loop(x):
    x = x.copy()
    for i in range(20):
        m = x > 0.1 * i
        x[m] = 0.5 * x[m] + np.sin(x[m])
    return x @ x


def in_a_branch(x):
    m = x > 0
    x = x.copy()
    if x[1] < 0.2:
        x[m] -= 0.1
    else:
        x[m] = np.maximum(x[m], 0.4)
    return x.sum() + x[m].mean()


def reductions(x):
    y = x[x > 0.1]
    total = y.sum() + np.mean(y) + y.prod() + np.max(y) * y.min() + y.size
    return total + (3.0 if np.any(y > 1) and not (y > 1).all() else 0.5) * x[0]


def whole_numbers(x):
    counts = np.zeros(6, int)
    counts[x > 0] += 1
    counts[x > 0.4] *= 3
    return counts[counts > 0].sum() * x[0]


FUNCTIONS = [
    doubled, squared, of_a_mask_calculated_twice, of_views, of_a_matrix, in_a_loop, in_a_branch,
    reductions, whole_numbers,
]  # fmt: skip


@pytest.mark.parametrize("f", FUNCTIONS)
def test_what_a_mask_selects_is_changed_and_reduced_as_in_numpy(f):
    """Nothing warns in lanes that are not selected: no logarithm of what is negative is taken."""
    program = capture(f, X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for x in POINTS:
            np.testing.assert_allclose(program(x), f(x.copy()), rtol=1e-14)
    gradients_agree(f, *[(x,) for x in POINTS])


def test_of_no_selected_element_numpy_s_exception_is_raised():
    def largest(x):
        return x[x > 5].max()

    def summed(x):
        return x[x > 5].sum() + (1 / x[x > 5]).sum()

    assert outcome(capture(largest, X), X) == outcome(largest, X)
    assert outcome(largest, X)[0] is ValueError
    assert capture(summed, X)(X) == summed(X) == 0.0


@pytest.mark.parametrize("f", [squared, of_a_mask_calculated_twice])
def test_second_derivatives_are_those_of_the_eager_engine(f):
    program = lineara.jit(lineara.hessian(f))
    np.testing.assert_allclose(program(X), lineara.hessian(f)(X), rtol=1e-12, atol=1e-14)


def test_what_is_selected_is_an_array_for_isinstance():
    def f(x):
        y = x[x > 0]
        return y.sum() if isinstance(y, np.ndarray) and type(y) is np.ndarray else -1.0

    assert capture(f, X)(X) == f(X)


WAYS = (
    "how many elements there are depends on values; keep the shape with np.where(mask, a, b), or "
    "reduce with np.sum(a, where=mask)"
)


def each(x):
    return sum([v * 2 for v in x[x > 0]])


def returned(x):
    return x[x > 0]


def many(x):
    return len(x[x > 0]) * x[0]


def of_two_masks(x):
    return (x[x > 0] + x[x < 0]).sum()


def of_a_mask_that_was_written(x):
    x, m = x.copy(), x > 0
    y = x[m]
    m[0] = x[1] > 0
    x[m] = y
    return x.sum()


def of_an_array_that_was_written(x):
    x = x.copy()
    y = x[x > 0]
    x[0] = -x[0]
    x[x > 0] = y
    return x.sum()


def beside_an_array(x):
    return (x[x > 0] * np.arange(3.0)).sum()


def joined(x):
    return np.concatenate([x[x > 0], x[x < 0]]).sum()


REFUSED = {
    each: "each element",
    returned: "a result",
    many: "the length",
    of_two_masks: "np.add with what another mask selects",
    of_a_mask_that_was_written: "a write where another mask holds",
    of_an_array_that_was_written: "a write where another mask holds",
    beside_an_array: "np.multiply with an array of the shape (3,)",
    joined: "np.concatenate",
}


@pytest.mark.parametrize("f", [*REFUSED])
def test_what_hangs_on_their_number_is_refused(f):
    with pytest.raises(StagingError) as e:
        capture(f, X)
    said = f"{REFUSED[f]} of what a staged mask selects was asked for; {WAYS}"
    assert e.value.message == said


def under_another_name(x):
    y = x[x > 0]
    z = y
    y *= 2
    return y.sum() + z.sum()


def in_one_branch(x):
    y = x[x > 0]
    if x[0] > 0.2:
        y *= 2
        x = x * y.sum()
    return x.sum() + y.sum()


def test_what_was_changed_in_place_is_not_read_as_it_was():
    """In NumPy it has changed under every name; in a branch, perhaps."""
    with pytest.raises(StagingError) as e:
        capture(under_another_name, X)
    assert e.value.message == (
        "what a staged mask selects was changed in place, and what it was is read, under another "
        "name or after a branch or loop that changed it; give the result a name of its own, "
        "z = 2 * y"
    )
    with pytest.raises(StagingError, match="what a staged mask selects"):
        capture(in_one_branch, X)


def test_a_key_that_is_staged_is_refused_in_words():
    def f(x):
        counts = {0: 0, 1: 0, 2: 0}
        for v in x:
            counts[int(abs(v))] += 1
        return counts[0] * x[0]

    with pytest.raises(StagingError) as e:
        capture(f, X)
    assert e.value.message == (
        "hash() of a staged i64[]: a key of a dict and a member of a set are found by their "
        "values, and this one is not known while a program is written; keep what it leads to in an "
        "array, counts[k] of counts = np.zeros(n), or take lineara.static(k) of a whole number "
        "that the function is given"
    )
