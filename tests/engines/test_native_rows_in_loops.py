"""Loops that read rows of an array and write others: no round copies the array."""

import re

import numpy as np
import pytest

import lineara

pytest.importorskip("llvmlite")

TURN = np.array([[0.9, 0.1], [-0.1, 0.9]])


def scaled(n, x):
    y = np.zeros((n, 2))
    y[0] = x
    for i in range(n - 1):
        y[i + 1] = 0.9 * y[i]
    return np.sum(y * y)


def oscillator(n, x):
    y = np.zeros((n, 2))
    y[0] = x
    for i in range(n - 1):
        y[i + 1] = y[i] + 0.1 * np.array([-y[i, 1], y[i, 0]])
    return np.sum(y[-1] ** 2)


def columns(n, x):
    y = np.zeros((2, n))
    y[:, 0] = x
    for i in range(1, n):
        y[:, i] = 0.5 * y[:, i - 1]
    return np.sum(y[:, -1] ** 2)


def halves(n, x):
    y = np.zeros((n, 4))
    y[0, :2] = x
    for i in range(n - 1):
        y[i + 1, :2] = y[i, :2] + 0.1 * y[i, 2:]
        y[i + 1, 2:] = y[i, 2:] - 0.1 * y[i, :2]
    return np.sum(y[-1] ** 2)


def stored(n, x):
    y, s = np.zeros((n, 2)), x * 1.0
    for i in range(n):
        s = 0.99 * s + 0.1
        y[i] = s
    return np.sum(y**2)


def chosen(n, x):
    y = np.zeros((n, 2))
    y[0] = x
    for i in range(n - 1):
        if y[i, 0] > 0.5:
            y[i + 1] = 0.9 * y[i]
        else:
            y[i + 1] = 1.1 * y[i] + 0.1
    return np.sum(y**2)


def turned(n, x):
    y = np.zeros((n, 2, 2))
    y[0] = np.eye(2) * x
    for i in range(n - 1):
        y[i + 1] = TURN @ y[i]
    return np.sum(y**2)


def exchanged(n, x):
    y = np.outer(np.arange(n) / n, x)
    for i in range(n // 2):
        a = y[i].copy()
        y[i] = y[n - 1 - i]
        y[n - 1 - i] = a * 2.0
    return np.sum(y[:, 0] * np.arange(n))


def exchanged_at_once(n, x):
    y = np.outer(np.arange(n) / n, x)
    for i in range(n - 1):
        y[i], y[i + 1] = y[i + 1] * 0.5, y[i].copy()
    return np.sum(y * y)


def three_rows(n, x):
    y = np.outer(np.arange(n) / n, x)
    for i in range(n - 2):
        a, b, c = y[i], y[i + 1].copy(), y[i + 2].copy()
        a = a.copy()
        y[i] = b * 0.5
        y[i + 1] = c
        y[i + 2] = a + b * c
    return np.sum(y * y)


def handed_up(n, x):
    y = np.outer(np.arange(n) / n, x)
    for i in range(n - 1):
        y[i] = y[i + 1]
        y[i + 1] = y[i][::-1]
    return np.sum(y * y)


def windows(n, x):
    y = np.zeros(n)
    y[:2] = x
    for i in range(n - 2):
        y[i + 1 : i + 3] += 0.3 * y[i : i + 2]
    return np.sum(y**2)


def eliminated(n, x):
    y = np.outer(np.arange(1.0, n + 1), np.arange(1.0, 7)) % 7 * x[0] + n * np.eye(n, 6)
    for k in range(6):
        for i in range(k + 1, n):
            y[i] = y[i] - y[i, k] / y[k, k] * y[k]
    return np.sum(np.log(np.abs(np.diag(y)))) * x[1]


def moved(f, n, x):
    """The bytes of each move in the code of a function's value and gradient."""
    text = lineara.stages(lambda x: f(n, x), x).machine_code.llvm
    return sorted(map(int, re.findall(r"memmove[^\n]*, i64 (\d+), i1", text)))


PROGRAMS = [
    scaled, oscillator, columns, halves, stored, chosen, turned, exchanged, exchanged_at_once,
    three_rows, handed_up, windows, eliminated,
]  # fmt: skip


@pytest.mark.parametrize("f", PROGRAMS)
def test_no_round_copies_an_array_whose_rows_it_reads_and_writes(f):
    x, n = np.array([0.7, 0.4]), 24

    def at(x):
        return f(n, x)

    few, more = moved(f, n, x), moved(f, 2 * n, x)
    assert few == more
    assert max(few, default=0) < 8 * n
    ours = lineara.jit(lineara.value_and_grad(at), engine="native")(x)
    for value, expected in zip(ours, lineara.value_and_grad(at)(x), strict=True):
        np.testing.assert_allclose(value, expected, rtol=1e-12)
    exact = lineara.jit(lineara.value_and_grad(at), engine="native exact")(x)
    interpreted = lineara.jit(lineara.value_and_grad(at), engine="interpreter")(x)
    for value, expected in zip(exact, interpreted, strict=True):
        np.testing.assert_array_equal(value, expected)
