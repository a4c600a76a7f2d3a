"""Loops whose bounds are values: of machine code and the interpreter, to the bit.

The bounds of an inner loop are numbers of the rounds around it, so they are told when it begins:
it is counted, and neither a test of its condition nor a position is on its tape.
"""

import itertools

import numpy as np
import pytest
from test_native import NATIVE, agree

import lineara
from lineara.engines.native.lower import lowered

pytest.importorskip("llvmlite")

N = 6
X = np.array([0.3, -0.9, 0.51, 0.11, 0.7, -0.2])
ROOM = 60
"""Places of an array that the loops below go through, on either side of its middle."""


def matrix(x):
    a = np.zeros((N, N))
    for i in range(N):
        for j in range(N):
            a[i, j] = x[i] * x[j] + 1.0
        a[i, i] = a[i, i] + 2.0
    return a


def determinant(x):
    u, product = matrix(x), 1.0
    for k in range(N):
        product = product * u[k, k]
        for i in range(k + 1, N):
            factor = u[i, k] / u[k, k]
            for j in range(k + 1, N):
                u[i, j] = u[i, j] - factor * u[k, j]
    return product


def cholesky(x):
    a = matrix(x)
    for j in range(N):
        for k in range(j):
            a[j, j] = a[j, j] - a[j, k] * a[j, k]
        a[j, j] = np.sqrt(a[j, j])
        for i in range(j + 1, N):
            for k in range(j):
                a[i, j] = a[i, j] - a[i, k] * a[j, k]
            a[i, j] = a[i, j] / a[j, j]
    total = 0.0
    for i in range(N):
        for j in range(i + 1):
            total = total + a[i, j] * (1.0 + i - 0.5 * j)
    return total


def back_substituted(x):
    y, u = x * 1.0, matrix(x)
    for i in range(N - 1, -1, -1):
        for j in range(N - 1, i, -1):
            y[i] = y[i] - u[i, j] * y[j]
        y[i] = y[i] / u[i, i]
    return y @ y


def convolved(x):
    y = np.zeros(2 * N - 1)
    for i in range(2 * N - 1):
        for j in range(i + 1):
            if j < N and i - j < N:
                y[i] = y[i] + x[j] * np.sin(x[i - j])
    return y @ y


def by_while(x):
    total, i = 0.0, 0
    while i < N:
        j = i
        while j <= 4:
            total = total * 0.5 + np.sin(x[i]) * x[j]
            j += 1
        while j > i:
            total = total + x[j] * total
            j -= 1
        i += 1
    return total


COUNTED = [determinant, cholesky, back_substituted, convolved, by_while]


def left_early(x):
    total = 0.0
    for i in range(N):
        for j in range(i + 1, N):
            if total > 0.8:
                break
            total = total + x[i] * x[j] + 0.1
        for j in range(i):
            total = total - x[j] * total
    return total


def of_values(x):
    total, ends = 0.0, np.array([0, 3, 3, 4, 6, 2, -1])
    for i in range(N):
        for j in range(ends[i], ends[i + 1]):
            total = total * 0.9 + x[j] * x[i]
    return total


def of_fewer_than_none(x):
    total = 0.0
    for i in range(N):
        for j in range(i + 3, N):
            total = total + x[j] * np.cos(x[i]) * total + x[i]
        for j in range(0, N - i, 2):
            total = total + x[j] * total
        for j in range(N - 1, i, -3):
            total = total * x[j] + x[i]
    return total


def changed_in_the_loop(x):
    total, stop = 0.0, 2
    for i in range(N):
        j = 0
        while j < stop:
            total = total + x[j] * total + x[i]
            j += 1
            if total > 0.7 and stop < N:
                stop = stop + 1
    return total


OTHERS = [left_early, of_values, of_fewer_than_none, changed_in_the_loop]


def values_agree(f):
    p = lineara.jit(f).program(X)
    assert NATIVE.takes(p.program, p.name) is None
    for x in (X, -X, X[::-1].copy(), 0.0 * X, np.where(X > 0.6, np.inf, X)):
        agree(p.program, p.name, x)


@pytest.mark.parametrize("f", COUNTED + OTHERS, ids=lambda f: f.__name__)
def test_bounds_that_are_values(f):
    values_agree(f)
    values_agree(lineara.grad(f))


@pytest.mark.parametrize("f", [by_while, back_substituted])
def test_a_loop_back_over_one_that_was_counted_stacks_in_turn(f):
    values_agree(lineara.hessian(f))


@pytest.mark.parametrize(("f", "loops"), [*zip(COUNTED, (2, 4, 1, 2, 2), strict=True)])
def test_no_position_is_on_the_tape_of_a_loop_that_is_counted_when_it_begins(f, loops):
    """But where the rows of an inner loop begin, once for each round of the outer one.

    The convolution also keeps which way a branch went.
    """
    p = lineara.jit(lineara.grad(f), engine="native").program(X)
    code = lowered(p.program, p.name, True, False)
    kinds = [t.dtype.kind for _, t, _ in code.taped]
    assert kinds.count("i") == loops


def read_in_triangles(x, y):
    """What is read of arguments, of a constant and of a copy that is written."""
    total, z, ends = 0.0, y.copy(), np.array([0.5, 1.5, -2.0, 0.25, 3.0, -1.0])
    for i in range(N):
        for j in range(N - 1, i, -1):
            total = total * y[i, j] + x[j - i] * y[j, i] * z[i, j]
            total = total * ends[j] * 0.1 + x[-1 - j] * y[2 * i - i, -2]
            z[i, j] = total
        for j in range(i):
            if total > 0.3:
                total = total * x[j] - z[j, i]
    return total


def test_what_is_read_of_arguments_and_constants_is_read_again():
    """On the tape are two sums, a product, and what was read of the copy.

    Beside these there are the way of the branch, and where the rows of the inner loops begin.
    """
    y = np.cos(np.arange(N * N, dtype=float)).reshape(N, N)
    f = lineara.jit(lineara.grad(read_in_triangles, (0, 1)), engine="native")
    p = f.program(X, y)
    for x in (X, -X, X[::-1].copy(), 0.0 * X):
        agree(p.program, p.name, x, y)
        agree(p.program, p.name, x, -y)
    code = lowered(p.program, p.name, True, False)
    assert sorted([t.dtype.kind for _, t, _ in code.taped]) == [*"ffffiii"]


def read_of_locals(x):
    """What is read of arrays that a loop leaves as they are, some of which change after it."""
    u, v, total = np.exp(x), x * x - 0.5, 0.3
    first = u[0]
    for i in range(N):
        total = total * u[i] + v[-1 - i] * np.sin(total)
    u[0] = total
    u[2:4] = u[2:4] * total
    for i in range(N):
        w = v * total
        for j in range(i, N):
            total = total * w[j] + u[j] * total * first
            w[j] = total
            total = total * w[i] * u[2]
        total = total * v[i]
    m = np.outer(u, v)
    t = m.T[1:, ::2]
    for i in range(N - 1):
        for j in range(3):
            total = total * t[i, j] + total * m[i, 2 * j] + t[i, j] * u[j]
            if j == 1:
                total = total * 0.5 + u[j] * total
        u = np.sin(u) * 0.9 if i == 2 else u
    for row in u[1:]:
        total = total * row
    v[1] = v[1] * total
    for i in range(N):
        u[i] = u[i] * v[i]
        total = total * u[i] * v[i]
    return total + u @ v


def read_in_while(x):
    u, total, k = np.cos(x) + 0.5, x[0], 0.0
    while k < 3.0 + x[1]:
        for j in range(N):
            total = total * u[j] + np.sin(total)
        u[1] = u[1] * total
        k = k + 1.0
    return total


def read_on_a_way_back_within_a_loop(x):
    """The slope of a loop that reads one row, before the next row is stored."""
    u, total = np.outer(x, x), 0.4
    for k in range(N - 1):

        def along(s, row=k, u=u):
            for _ in range(2 * N):
                for j in range(N):
                    s = np.sin(s) * u[row, j]
            return s

        total = total + lineara.grad(along)(total)
        for j in range(N):
            u[k + 1, j] = u[k + 1, j] * total
    return total + u[N - 1] @ x


@pytest.mark.parametrize("f", [read_of_locals, read_in_while, read_on_a_way_back_within_a_loop])
def test_what_is_read_of_arrays_that_change_later(f):
    values_agree(f)
    values_agree(lineara.grad(f))


def test_what_is_read_of_an_array_that_stays_is_not_on_the_tape():
    def f(x):
        u, total = np.exp(x), 0.3
        for i in range(N):
            total = np.sin(total) * u[i]
        u[0] = total
        return u @ x

    values_agree(lineara.grad(f))
    p = lineara.jit(lineara.grad(f), engine="native").program(X)
    code = lowered(p.program, p.name, True, False)
    assert len(code.taped) == 2  # sin and cos of the total


@pytest.mark.parametrize("later", [False, True])
def test_what_is_stored_over_within_the_loop_is_on_the_tape(later):
    def f(x):
        u, total = x * 1.0, 0.3
        for i in range(1, N):
            for j in range(i):
                total = np.sin(total) * u[j]
            u[i - later] = total
        return total + u @ x

    p = lineara.jit(lineara.grad(f)).program(X)
    agree(p.program, p.name, X, engines=[NATIVE])
    code = lowered(p.program, p.name, True, False)
    assert len(code.taped) == 3 + later  # sin, cos, where rows begin, and what is stored over


def nest(bounds, at, steps):
    """Three loops, the bounds of each affine in the rounds around it."""
    (a, b), (c, d, e, f), (g, h, k) = bounds

    def looped(x):
        y, total = np.concatenate([x, x, x, x, x, x, x, x, x, x]), 0.0
        for i in range(a, b, steps[0]):
            y[i + at] = y[i + at] * 0.5 + x[0]
            for j in range(c * i + d, e * i + f, steps[1]):
                total = total * 0.5 + y[j + i + at]
                for m in range(g * i + h, k * j + h, steps[2]):
                    y[m + at] = y[m + at] * y[j + at] + total
                if total > 0.9:
                    y[j + at] = np.sin(total)
        return total + y @ y

    return looped


def random_nest(seed):
    rng = np.random.default_rng(seed)
    small = lambda n, *size: [int(v) for v in rng.integers(-n, n + 1, *size)]  # noqa: E731
    bounds = small(3, 2), [*small(1, 1), *small(3, 1), *small(1, 1), *small(3, 1)], small(1, 3)
    steps = [int(s) for s in rng.choice([1, 1, 1, -1, -1, 2, -2], 3)]
    return nest(bounds, ROOM // 2, steps)


@pytest.mark.parametrize("seed", range(8))
def test_random_nests(seed):
    """Rounds of no or many numbers, up and down, with writes in between."""
    f = random_nest(seed)
    for derive in (lambda f: f, lineara.grad):
        p = lineara.jit(derive(f)).program(X)
        for x in (X, -X):
            agree(p.program, p.name, x)


def test_a_number_that_would_not_fit_ends_as_in_the_interpreter():
    for start, stop in itertools.product((0, 2**63 - 5, -(2**63)), (2**63 - 1, 2**63 - 3)):

        def f(x, start=start, stop=stop):
            total, i = x * 0.0, start
            while i < stop and total < 4.0:
                total = total + x
                i += 1
            return total

        p = lineara.jit(f).program(1.0)
        agree(p.program, p.name, 1.0)


def test_a_long_loop_that_is_not_interrupted_goes_on():
    def f(x):
        while x < 500_000.0:
            x = x + 1.0
        return x

    assert lineara.jit(f, engine="native")(0.5) == 500_000.5


def test_an_error_in_a_round_is_told():
    def f(x):
        total = 0.0
        for i in range(N):
            for j in range(i, i + 3):
                total = total + x[j]
        return total

    p = lineara.jit(lineara.grad(f)).program(X)
    told = agree(p.program, p.name, X)
    assert issubclass(told[0], IndexError)
