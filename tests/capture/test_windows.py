"""Slices with staged ends, and lists of staged numbers, as indices: read and written."""

import numpy as np
import pytest
from capture.agreement import agrees, gradients_agree

import lineara
from lineara.errors import LinearaError, StagingError
from lineara.staging.capture import trace as capture

X = np.array([0.4, -0.3, 1.2, 0.7, 2.5])
CASES = [(X,), (np.abs(np.roll(X, 1)) * 0.3,), (X * 0,)]
TABLE = np.arange(12.0).reshape(6, 2) ** 2


def read(x):
    i, k = int(abs(x[0]) * 3), np.argmax(x[:3])
    return x[i : i + 2].sum() * x[0] + (x[k : k + 2] * x[k + 1 : k + 3][::-1]).sum()


def written(x):
    i = int(abs(x[0]) * 3)
    y = np.zeros(6)
    y[i : i + 2] = x[:2]
    y[i + 1 : i + 4] += x[2:]
    y[i : i + 4 : 2] *= 2.0
    y[i : i + 2] = y[i + 1 : i + 3]
    return y @ np.arange(6.0)


def smoothed(x):
    h, y = np.array([0.25, 0.5, 0.25]), np.zeros(len(x))
    for i in range(1, len(x) - 1):
        y[i] = x[i - 1 : i + 2] @ h
    return y @ y


def rows_exchanged(x):
    k = int(np.argmax(np.abs(x)))
    a = np.outer(x, np.arange(1.0, 6.0)) ** 2
    a[[0, k]] = a[[k, 0]]
    a[:, [k, 1]] = a[:, [1, k]]
    return a[0] @ a[1] + a[k, [0, 1]] @ a[[k, 2], [2, k]]


def one_place_twice(x):  # the last one counts
    k = int(np.argmax(np.abs(x)))
    a = np.outer(x, x)
    a[[k, 3, k], 1:3] = np.arange(6.0).reshape(3, 2) * x[0]
    a[[k, -k]] *= 2.0
    a[..., [1, k]] += a[..., [k, k]]
    return a[k] @ a[3]


def axes_apart(x):
    k, b = int(np.argmax(np.abs(x))), np.zeros((2, 5, 3, 5))
    b[1, :, [0, k % 3, 0]] = np.arange(75.0).reshape(3, 5, 5) * x[0]
    b[:, [k, 0], None, 1:, [1, k]] = np.arange(8.0).reshape(2, 2, 1, 2) * x[1]
    b[:, [[k, 0]], :2, 2] += x[2]
    return (b * b).sum() + b[1, 1, 2, 3]


def a_permutation(x):
    p, k = [*range(5)], int(np.argmax(np.abs(x)))
    p[0], p[k] = p[k], p[0]
    return x[p] @ np.arange(5.0) + x[p[1:]].sum() ** 2


def blocks(x):
    total, w = 0.0, 2
    for b in range(2):
        low = b * w
        total = total * 0.7 + x[low : low + w].sum() * x[b * w + 1 : (b + 1) * w + 1][1]
    for _ in range(5):
        k = int(x[1] * 0) + 1
        total = total + x[k : k + 2].sum() + TABLE[k : k + 2, 1] @ x[k : k + 2]
    return total


def of_tables(x):
    y = np.zeros((4, 6))
    for i in range(4):
        k = int(abs(x[i]))
        y[k, i : i + 2] = x[i : i + 2] if i < 3 else x[:2]
        y[i * 0 : i * 0 + 2, k + 1] += x[0]
        view = y[k : k + 2]
        view[0, 1] = x[i] * 3
        view[:, k : k + 2] *= 0.5
    return (y * np.arange(24.0).reshape(4, 6)).sum()


FUNCTIONS = [read, written, smoothed, blocks, of_tables]


@pytest.mark.parametrize("f", FUNCTIONS)
def test_a_window_is_a_slice(f):
    agrees(f, *CASES)
    gradients_agree(f, *CASES)


def test_a_loop_of_windows_is_one_definition_and_costs_its_windows():
    sizes, works = set(), []
    for n in (50, 100, 200):
        x = np.linspace(0, 1, n)
        program, both = capture(smoothed, x), lineara.trace(lineara.value_and_grad(smoothed), x)
        sizes.add(program.size())
        works.append((program.run(x).work, both.run(x).work))
    assert len(sizes) == 1
    for value, both in works:
        assert both <= 4 * value
    assert works[2][1] - works[1][1] == pytest.approx(2 * (works[1][1] - works[0][1]), rel=0.02)


@pytest.mark.parametrize("f", [rows_exchanged, one_place_twice, axes_apart, a_permutation])
def test_a_list_of_staged_numbers_is_an_index(f):
    agrees(f, *CASES)
    gradients_agree(f, *CASES)


def test_places_that_are_not_there_are_refused():
    def beyond(x):
        y = np.zeros(5)
        y[[np.argmax(x), int(x[0])]] = x[:2]
        return y

    program = capture(beyond, X)
    assert np.array_equal(program(X + 3), beyond(X + 3))
    for start in (5.0, -6.0):
        with pytest.raises(IndexError, match="out of bounds for axis 0 with size 5"):
            program(np.full(5, start))


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x[: int(x[0])].sum(),
        lambda x: x[int(x[0]) :].sum(),
        lambda x: x[int(x[0]) : 4].sum(),
        lambda x: x[int(x[0]) : int(x[1]) + 2].sum(),
        lambda x: x[int(x[0]) : 2 * int(x[0]) + 1].sum(),
    ],
)
def test_a_slice_of_as_many_elements_as_values_say_is_refused(f):
    with pytest.raises(StagingError) as e:
        capture(f, X)
    assert e.value.message == (
        "a slice whose ends are staged has as many elements as values say, and an array of a "
        "program keeps its shape; give it a width that is known, x[i:i + 3], or take all of x and "
        "leave out what is not meant, np.where(np.arange(len(x)) < i, x, 0)"
    )


def test_a_window_that_leaves_its_axis_is_refused_as_the_program_runs():
    program = capture(lambda x: x[int(x[0]) : int(x[0]) + 3].sum(), X)
    assert program(X + 2) == (X + 2)[2:5].sum()
    for start in (3.0, -1.0):
        with pytest.raises(LinearaError, match="a slice of 3 elements at a staged place leaves"):
            program(np.full(5, start))
