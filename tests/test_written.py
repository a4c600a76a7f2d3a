"""Arrays that are written: random programs against plain NumPy; n reads and writes cost O(n).

A program is a list of small tuples of integers; `execute` reads it the same way in plain NumPy
(the oracle, with complex steps) and in a traced run, so that a failing program shrinks.
"""

import gc
import math
import tracemalloc
from typing import Any

import differences
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lineara
from lineara.errors import LeakedVariableError, MutationError, NoRuleError
from lineara.facts.primitive import Primitive
from lineara.tape import gradient as differentiate
from lineara.tape import mixed_sources as mixtures
from lineara.tape import pull_reads, sweep, written_arrays

N = 6
X = np.array([0.3, -0.7, 1.1, 0.45, -0.25, 0.9])
SHAPES = [(6,), (2, 3), (3, 2), (3,), (2,), (1, 3), (2, 1, 3), (4,), (2, 2), (1,), ()]


# --- the language of random programs -------------------------------------------------------------


def part(shape: tuple[int, ...], ints: tuple[int, ...]) -> Any:
    """A basic index of an array of that shape."""
    found: list[Any] = []
    for n, k in zip(shape, ints, strict=False):
        choice = k % 8
        if choice == 0:
            found.append(slice(None))
        elif choice == 1:
            found.append(slice(None, None, -1))
        elif choice == 2:
            found.append(slice(k % 3, None))
        elif choice == 3:
            found.append(slice(None, -(k % 2) - 1, 2))
        elif choice == 4 and n:
            found.append(k // 8 % n)
        elif choice == 5 and n:
            found.append(-1 - k // 8 % n)
        elif choice == 6:
            found.append(Ellipsis)
            break
        else:
            found += [None, slice(None)]
    return found[0] if len(found) == 1 else tuple(found)


def gathered(shape: tuple[int, ...], ints: tuple[int, ...]) -> Any:
    """An index with an integer array or a mask."""
    n = shape[0]
    a, b = ints
    if a % 3 == 0:
        return np.array([a % n, b % n])
    if a % 3 == 1:
        return np.arange(math.prod(shape)).reshape(shape) % (b % 3 + 2) == 0
    return (
        [b % n, (a + b) % n]
        if len(shape) == 1
        else (slice(None), np.array([b % shape[1], a % shape[1]]))
    )


def fits(shape: tuple[int, ...], into: tuple[int, ...]) -> bool:
    """Whether an array can be written into a region of another shape."""
    try:
        return np.broadcast_shapes(shape, into) == into
    except ValueError:
        return False


def views(r: Any, a: int, b: int, c: int) -> Any:
    """A view, or what NumPy makes a copy of."""
    shapes = [s for s in SHAPES if math.prod(s) == math.prod(r.shape) and s]
    choice = a % 9
    if choice < 3 and r.ndim:
        return r[part(r.shape, (b, c, a // 9))]
    if choice == 3:
        return r.T
    if choice == 4 and shapes:
        return r.reshape(shapes[b % len(shapes)], order="CF"[c % 5 == 0])
    if choice == 5:
        return r.ravel(order="CF"[c % 3 == 0])
    if choice == 6 and r.ndim > 1:
        return np.swapaxes(r, b % r.ndim, c % r.ndim)
    if choice == 7:
        return np.squeeze(r)
    return np.expand_dims(r, b % (r.ndim + 1))


def copies(r: Any, a: int, b: int, c: int) -> Any:
    """A new array with the elements of another."""
    choice = a % 8
    if not r.size:
        return r.copy(order="K")
    if choice == 0:
        return r.copy(order="CKF"[b % 3])
    if choice == 1:
        return np.array(r)
    if choice == 2 and r.ndim:
        return r.flatten()
    if choice == 3 and r.ndim:
        return r[gathered(r.shape, (b, c))]
    if choice == 4:
        return +r
    if choice == 5:
        return np.zeros_like(r)
    if choice == 6 and r.ndim:
        return np.concatenate([r, r[:1]])
    return np.stack([r, r])[b % 2]


def computed(r: Any, q: Any, a: int) -> Any:
    """An elementwise operation or a reduction."""
    choice = a % 6
    if choice == 0:
        return np.sin(r)
    if choice == 1 and (fits(r.shape, q.shape) or fits(q.shape, r.shape)):
        return r * q
    if choice == 2 and (fits(r.shape, q.shape) or fits(q.shape, r.shape)):
        return 0.5 * r - q
    if choice == 3 and r.ndim:
        return r.sum(axis=a // 6 % r.ndim)
    if choice == 4 and r.ndim:
        return np.cumsum(r, axis=0)
    return r / 2.0 + 0.1


def write(r: Any, value: Any, a: int, b: int, c: int, constants: Any) -> None:
    """A write, an in-place operation, or one of NumPy's ways to say the same."""
    choice = a % 15
    at = part(r.shape, (b, c, a // 12)) if r.ndim else ()
    if choice in (4, 5) and r.ndim and r.size:
        at = gathered(r.shape, (b, c))
    region = np.empty(r.shape)[at].shape
    if choice in (0, 1, 4):
        r[at] = value if fits(np.shape(value), region) else 0.25
    elif choice in (2, 5):
        r[at] += value if fits(np.shape(value), region) else 0.5
    elif choice == 3:
        r[at] *= 0.5
    elif choice == 6 and fits(np.shape(value), r.shape):
        r += value
    elif choice == 7:
        r *= constants[b % 3]
    elif choice == 8 and fits(np.shape(value), r.shape):
        np.copyto(r, value)
    elif choice == 9 and np.ndim(value) == 0:
        r.fill(value)
    elif choice == 10 and r.ndim and r.shape[0]:
        i, j = b % r.shape[0], c % r.shape[0]
        r[i], r[j] = r[j], r[i]
    elif choice == 11 and fits(np.shape(value), r.shape):
        np.multiply(r, value, out=r)
    elif choice == 12 and fits(np.shape(value), r.shape):
        r[...] = value  # a copy, whatever is written into `value` later
    elif choice > 12 and r.ndim and r.size:  # from itself, mostly with an overlap
        moved = (
            r[part(r.shape, (c, a // 15, b))] if choice == 13 else r[: region[0]] if region else 1
        )
        if fits(np.shape(moved), region):
            r[at] = moved


def product(r: Any, q: Any) -> Any:
    """The gradient of sum(z**2 r) in z = q, by hand."""
    return 2 * q * r


def differentiated(r: Any, q: Any) -> Any:
    """The same by an inner differentiation, which copies q and reads r as it is now."""
    return np.array(lineara.grad(lambda z: np.sum(z**2 * r))(q))  # a constant one is plain


def execute(program: Any, x: Any, dtype: Any = float, inner: Any = product) -> Any:
    """Run a program on x; all its arrays and numbers, weighted and summed."""
    registers = [
        x,
        np.zeros((2, 3), dtype),
        np.arange(6.0).astype(dtype).reshape(3, 2),
        x.reshape(2, 3),
    ]
    numbers = [x[1], 0.75]
    constants = [0.5, 1.25, np.full((), 0.7)]
    for kind, i, j, a, b, c in program:
        r, q = registers[i % len(registers)], registers[j % len(registers)]
        value = numbers[j % len(numbers)] if c % 3 == 0 else q
        if kind == 0:
            registers.append(views(r, a, b, c))
        elif kind == 1:
            registers.append(copies(r, a, b, c))
        elif kind == 2:
            registers.append(computed(r, q, a))
        elif kind == 3 and r.ndim and math.prod(r.shape):
            numbers.append(r[tuple((a + k * b) % n for k, n in enumerate(r.shape))])
        elif kind == 4:
            constants[b % 3] *= 0.5
            numbers.append(numbers[i % len(numbers)] * numbers[j % len(numbers)])
        elif kind == 10:
            registers.append(inner(r, q) if r.ndim and r.shape == q.shape else inner(r, r * 0.5))
        elif kind > 4:
            write(r, value, a, b, c, constants)
        registers = [r if isinstance(r, np.ndarray) else np.full((), r) for r in registers]
    total = 0.0
    for k, r in enumerate(registers):
        total = total + (np.cos(np.arange(r.size) + k).reshape(r.shape) * r).sum()
    for k, s in enumerate(numbers):
        total = total + math.cos(k) * s
    return total


INT = st.integers(0, 215)
STEP = st.tuples(st.integers(0, 10), INT, INT, INT, INT, INT)
PROGRAM = st.lists(STEP, min_size=1, max_size=9)


def gradient(program: Any, x: np.ndarray, read: Any = execute) -> np.ndarray:
    """The gradient by complex steps, in plain NumPy."""
    found = []
    for i in range(x.size):
        z = x.astype(complex)
        z[i] += 1e-40j
        found.append(read(program, z, complex).imag / 1e-40)
    return np.array(found)


def close(a: Any, b: Any, tol: float = 1e-11) -> bool:
    """Equal to rounding, relative to the size of the numbers."""
    scale = 1.0 + np.max(np.abs(b), initial=0.0)
    return bool(np.max(np.abs(np.asarray(a) - b), initial=0.0) <= tol * scale)


# --- any program ---------------------------------------------------------------------------------


@settings(max_examples=400, deadline=None)
@given(PROGRAM)
def test_any_program_has_numpys_value_and_the_gradient_of_complex_steps(program: Any) -> None:
    x = X.copy()
    value, g = lineara.value_and_grad(lambda v: execute(program, v))(x)
    assert np.array_equal(x, X), "the caller's array is as it was"
    assert close(value, execute(program, X.copy()), 1e-15)
    assert close(g, gradient(program, X))


@settings(max_examples=100, deadline=None)
@given(PROGRAM)
def test_any_program_forward(program: Any) -> None:
    v = np.cos(np.arange(N))
    y, y_dot = lineara.jvp(lambda x: execute(program, x), (X.copy(),), (v,))
    assert close(y, execute(program, X.copy()), 1e-15)
    assert close(y_dot, gradient(program, X) @ v)


@settings(max_examples=40, deadline=None)
@given(PROGRAM)
def test_any_program_twice(program: Any) -> None:
    H = lineara.hessian(lambda x: execute(program, x))(X.copy())
    differences.agrees_along(H, lambda x: gradient(program, x), X)


def test_one_direction_sees_every_element() -> None:
    for wrong in 1e-6 * np.eye(N):
        with pytest.raises(AssertionError):
            differences.agrees_along(2 * X + wrong, lambda x: np.sum(x * x), X)


@settings(max_examples=60, deadline=None)
@given(PROGRAM, PROGRAM)
def test_any_program_inside_another(outer: Any, inner: Any) -> None:
    def read(x: Any) -> Any:
        y = np.zeros(N)
        y[:3] = x[3:]
        y[3:] = np.sin(x[:3])

        def loss(z: Any) -> Any:
            w = np.zeros(N)
            w[::2] = y[::2] * z[1::2]
            w[1::2] = z[::2] + y[0]
            w *= y
            return execute(inner, w) + execute(outer, y * z)

        y += 0.5 * lineara.grad(loss)(x)
        return execute(outer, y)

    g = lineara.grad(read)(X.copy())
    differences.agrees_along(g, read, X)


@settings(max_examples=60, deadline=None)
@given(PROGRAM)
def test_any_program_in_single_precision(program: Any) -> None:
    x = X.astype(np.float32)

    def read(v: Any) -> Any:
        return execute(program, v, np.float32)

    value, g = lineara.value_and_grad(read)(x)
    assert g.dtype == np.float32
    assert close(value, read(x.copy()), 1e-6)
    assert close(g, gradient(program, x.astype(float)), 2e-4)


@settings(max_examples=60, deadline=None)
@given(PROGRAM)
def test_any_program_with_complex_numbers(program: Any) -> None:
    def read(v: Any) -> Any:
        z = v[:N] + 1j * v[N:]
        out = execute(program, z, complex)
        return out.real + 0.5 * out.imag

    v = np.concatenate([X, X[::-1] * 0.3])
    value, g = lineara.value_and_grad(read)(v)
    assert close(value, read(v.copy()), 1e-14)
    differences.agrees_along(g, read, v)


@settings(max_examples=150, deadline=None)
@given(PROGRAM)
def test_any_program_with_inner_gradients_between_its_writes(program: Any) -> None:
    value, g = lineara.value_and_grad(lambda v: execute(program, v, inner=differentiated))(X.copy())
    assert close(value, execute(program, X.copy()), 1e-13)
    assert close(g, gradient(program, X))


OVERLAPS = {
    "a stride": lambda y: y.__setitem__(slice(None, None, 2), y[:3]),
    "another stride": lambda y: y.__setitem__(slice(None, 3), y[::2]),
    "one further": lambda y: y.__setitem__(slice(1, None), y[:-1]),
    "one back": lambda y: y.__setitem__(slice(None, -1), y[1:]),
    "reversed": lambda y: y.__setitem__(slice(None), y[::-1]),
    "a view of it": lambda y: y[::2].__setitem__(slice(None), y[:3]),
    "a transpose": lambda y: y.reshape(3, 2).T.__setitem__(0, y.reshape(2, 3)[0]),
    "columns": lambda y: y.reshape(3, 2).__setitem__((slice(None), 1), y[1:4]),
    "rows": lambda y: y.reshape(2, 3).__setitem__(slice(None), y[:3]),
    "a mask": lambda y: y.__setitem__(np.arange(6) % 2 == 0, y[:3]),
    "index arrays": lambda y: y.__setitem__([0, 2, 4], y[:3]),
    "a gather": lambda y: y.__setitem__(slice(None, None, 2), y[[0, 1, 2]]),
    "copyto": lambda y: np.copyto(y[::2], y[:3]),
    "added": lambda y: np.add(y[::2], y[:3], out=y[::2]),
}


INTO_ONE_NUMBER = {  # NumPy's functions that write, and what the array without axes holds then
    "copyto": (lambda r, v: np.copyto(r, v), 3.0),
    "copyto where nothing is": (lambda r, v: np.copyto(r, v, where=False), 2.0),
    "put": (lambda r, v: np.put(r, 0, v), 3.0),
    "putmask": (lambda r, v: np.putmask(r, True, v), 3.0),
    "putmask of nothing": (lambda r, v: np.putmask(r, False, v), 2.0),
    "place": (lambda r, v: np.place(r, np.array(True), [v]), 3.0),
    "put_along_axis": (lambda r, v: np.put_along_axis(r, np.array([0]), v, None), 3.0),
}


@pytest.mark.parametrize("name", INTO_ONE_NUMBER)
def test_a_function_of_numpys_writes_into_an_array_without_axes(name: str) -> None:
    write, held = INTO_ONE_NUMBER[name]

    def f(x: Any) -> Any:
        r = np.full((), x[0])
        write(r, x[1])
        return r * r

    x = np.array([2.0, 3.0])
    slope = [0.0, 6.0] if held == 3.0 else [4.0, 0.0]
    assert f(x) == held**2
    assert lineara.grad(f)(x).tolist() == slope
    assert lineara.jvp(f, (x,), (np.array([0.0, 1.0]),)) == (held**2, slope[1])
    assert lineara.jit(lineara.grad(f))(x).tolist() == slope


@pytest.mark.parametrize("start", ["x", "x * 1.0", "zeros", "written"])
@pytest.mark.parametrize("name", OVERLAPS)
def test_a_part_written_into_an_overlapping_one(name: str, start: str) -> None:
    def f(x: Any) -> Any:
        y = x if start == "x" else x * 1.0
        if start == "zeros":
            y = np.zeros(6, x.dtype)
            for i in range(6):
                y[i] = x[i] * (i + 1)
        if start == "written":
            y[2:4] = x[1] * x[:2]
        view = y[1:]
        OVERLAPS[name](y)
        OVERLAPS[name](y)
        return y @ np.arange(1.0, 7.0) ** 2 + view[2] * view[3]

    value, g = lineara.value_and_grad(f)(X.copy())
    assert value == f(X.copy())
    expected = []
    for i in range(N):
        z = X.astype(complex)
        z[i] += 1e-40j
        expected.append(f(z).imag / 1e-40)
    assert close(g, np.array(expected))
    h = lineara.hessian(f)(X.copy())
    assert np.allclose(h, h.T)
    assert np.isclose(g @ X, lineara.jvp(f, (X.copy(),), (X,))[1])


# --- arrays of an outer level --------------------------------------------------------------------


def agrees(f: Any, x: Any = X) -> None:
    """The gradient of a function that differentiates inside, against differences of it."""
    differences.agrees(lineara.grad(f)(x.copy()), f, x)


def test_an_outer_array_that_is_written_after_an_inner_use() -> None:
    def f(x: Any) -> Any:
        a = x * 1.0

        def g(s: Any) -> Any:
            y = s * a
            a[0] = 5.0
            return np.sin(y).sum()

        return lineara.grad(g)(2.0) + a @ a

    agrees(f)


@pytest.mark.parametrize("name", ["whole", "reversed", "part", "masked", "before", "copyto"])
def test_a_copy_by_assignment_does_not_follow_its_source_into_an_inner_gradient(name: str) -> None:
    def f(x: Any) -> Any:
        v, y = x * 2.0, x * 1.0
        if name == "reversed":
            y[:] = v[::-1]
        elif name == "part":
            y[1:4] = v[2:5]
        elif name == "copyto":
            np.copyto(y, v)
        else:
            y[:] = v
        if name == "before":
            y.sum()
            assert np.shape(y @ y) == ()
        if name == "masked":
            v[v > 0] = 5.0
        else:
            v *= 3
        return lineara.grad(lambda z: np.sum(z**2 * y))(x).sum() + v @ y

    agrees(f)
    assert np.isclose(lineara.value_and_grad(f)(X.copy())[0], f(X.copy()))


def test_a_linear_map_keeps_what_it_needs_of_an_outer_array() -> None:
    def f(x: Any) -> Any:
        a = np.exp(x)
        y, L = lineara.linearize(lambda v: v * v * a[::-1], a)
        part = a[1:]
        a += 1.0
        y *= 0.5
        return (L @ x).sum() + y.sum() + part.sum()

    agrees(f)


def test_results_of_an_inner_gradient_are_arrays_of_their_own() -> None:
    def f(x: Any) -> Any:
        def g(p: Any) -> Any:
            return np.sum(p[0] + p[1]) * x[0]

        u, v = lineara.grad(g)((x, x * 2))
        u += x
        v[0] = 7.0
        value, w = lineara.value_and_grad(lambda z: (z * x).sum())(x)
        w *= 3
        return u @ v + w @ x + (x * x).sum() * value

    agrees(f)


def test_descent_in_place_with_an_inner_gradient() -> None:
    def f(x: Any) -> Any:
        w = np.zeros(N)
        w += x
        for _ in range(4):
            w -= 0.1 * lineara.grad(lambda v: np.sum(np.cos(v) * x))(w)
        return w @ x

    agrees(f)


def test_an_inner_value_in_an_outer_array_is_an_error() -> None:
    def write(target: Any, z: Any) -> None:
        target[0] = z

    def add(target: Any, z: Any) -> None:
        target += z

    def swap(target: Any, z: Any) -> None:
        np.copyto(target, z)

    for act in (write, add, swap):

        def f(x: Any, act: Any = act) -> Any:
            y, w = np.zeros(N), x * 2

            def g(z: Any) -> Any:
                act(w, z)
                return z

            def h(z: Any) -> Any:
                act(y, z)
                return z

            for inner in (g, h):
                with pytest.raises(LeakedVariableError, match="of an inner differentiation"):
                    lineara.grad(inner)(2.0)
            return y @ w

        assert lineara.grad(f)(X.copy()).tolist() == [0.0] * N


# --- the law: n reads and n writes cost O(n) both ways -------------------------------------------


def tape_of(f: Any, x: Any) -> tuple[int, int]:
    """Entries of the tape, and elements that the reverse sweep moved, for one gradient."""
    counted = {"entries": 0, "moved": 0}
    plain_reverse = sweep.reverse

    def reverse(tape: Any, scalar: Any, last: Any = False, **options: Any) -> Any:
        counted["entries"] += len(tape)
        return plain_reverse(tape, scalar, last, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(differentiate, "reverse", reverse)
        lineara.grad(f)(x)
    return counted["entries"], counted["moved"]


def recurrence(x: Any, n: int) -> Any:
    """Each element from the one before."""
    y = np.zeros(n)
    y[0] = x[0]
    for i in range(n - 1):
        y[i + 1] = y[i] * 0.99 + x[1]
    return y.sum()


def windows(x: Any, n: int) -> Any:
    """Reads of small slices between writes of elements."""
    y = np.ones(n + 3) * x[0]
    for i in range(n):
        y[i + 3] = 0.3 * y[i : i + 3].sum() + x[1]
    return y[-1] + y[[0, n]].sum()


def rows(x: Any, n: int) -> Any:
    """Rows from the rows before, through views."""
    y = np.zeros((n, 4))
    y[0] = x[0]
    for i in range(n - 1):
        row = y[i]
        y[i + 1, 1:] = row[:-1] * x[1]
        y[i + 1, 0] = row[-1]
        row[2] = 0.5
    return y.sum()


def gathers(x: Any, n: int) -> Any:
    """Index arrays and masks of small parts, between writes."""
    y = np.linspace(0.0, 1.0, n + 4) * x[0]
    for i in range(n):
        y[i] = x[1] * y[[i, i + 1]].sum()
        y[i : i + 2] += y[[i + 2, i + 3]]
    return y[n]


def adds(x: Any, n: int) -> Any:
    """np.add.at of few elements, and out= of small parts."""
    y = np.zeros(n + 1)
    for i in range(n):
        np.add.at(y, [i, i + 1, i], x[:3])
        np.multiply(y[i : i + 2], x[0], out=y[i : i + 2])
    return y[0] + y[n // 2]


def prefix(x: Any, n: int) -> Any:
    """The sum of all that has been written, between writes of elements."""
    y, total = np.zeros(n), 0.0
    for i in range(n):
        y[i] = x[i % 3] ** 2
        total = total + y[: i + 1].sum()
    return total


def test_a_growing_part_is_read_with_few_parents() -> None:
    parents = []
    plain_mixture = mixtures.mixture

    def mixture(level: Any, v: Any, origins: Any) -> Any:
        parents.append(len(origins))
        return plain_mixture(level, v, origins)

    x = np.array([0.3, 0.2, 0.1])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mixtures, "mixture", mixture)
        g = lineara.grad(lambda v: prefix(v, 99))(x)
    assert max(parents) <= written_arrays.MANY_PARENTS + 1
    counts = [sum(99 - i for i in range(j, 99, 3)) for j in range(3)]
    assert close(g, 2 * x * counts)


@pytest.mark.slow("counts every element of a thousand rounds")
@pytest.mark.parametrize("program", [recurrence, windows, rows, gathers, adds])
def test_reads_and_writes_cost_a_constant_each(program: Any) -> None:
    x = np.array([0.3, 0.2, 0.1])
    counts, allocated, elements = [], [], []
    for n in (250, 500, 1000):
        counts.append(tape_of(lambda v, n=n: program(v, n), x)[0])
        with Elements() as moved:
            gc.disable()  # what it collects depends on what there was before
            tracemalloc.start()
            lineara.grad(lambda v, n=n: program(v, n))(x)
            allocated.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
            gc.enable()
        elements.append(moved.total)
    assert counts[2] - counts[1] <= 2.1 * (counts[1] - counts[0])
    assert elements[2] <= 2.2 * elements[1] <= 2.2 * 2.2 * elements[0]
    assert allocated[2] <= 2.3 * allocated[1]


class Elements:
    """Counts the elements that primitives and sums of reads touch."""

    def __init__(self) -> None:
        self.total = 0
        self.patch = pytest.MonkeyPatch()

    def __enter__(self) -> "Elements":
        evaluate, pull_plain = Primitive.__call__, pull_reads._pull_plain

        def call(primitive: Any, *args: Any, **params: Any) -> Any:
            y = evaluate(primitive, *args, **params)
            self.total += math.prod(np.shape(y)) if isinstance(y, np.ndarray) else 1
            return y

        def counted(x: Any, terms: Any, shape: Any) -> Any:
            self.total += math.prod(shape)
            return pull_plain(x, terms, shape)

        self.patch.setattr(Primitive, "__call__", call)
        self.patch.setattr(pull_reads, "_pull_plain", counted)
        return self

    def __exit__(self, *_: Any) -> None:
        self.patch.undo()


def test_a_hundred_thousand_reads_and_writes() -> None:
    g = lineara.grad(lambda x: recurrence(x, 100_000))(np.array([0.3, 0.2]))
    assert abs(g[0] - 100.0) < 1e-9
    assert abs(g[1] - 100 * (100_000 - 1 - 99)) < 1e-4


def test_a_whole_use_between_writes_gathers_once_a_version() -> None:
    def f(x: Any) -> Any:
        y = np.zeros(50)
        total = 0.0
        for i in range(50):
            y[i] = x[i % 3]
            total += y.sum() * y @ y + y.mean()
        return total

    entries, _ = tape_of(f, np.array([0.3, 0.2, 0.1]))
    assert entries < 50 * 9


# --- residuals that the user changes -------------------------------------------------------------


@pytest.mark.parametrize("size", [10, 20_000])
def test_a_buffer_that_is_used_again(size: int) -> None:
    buffer, plain_buffer = np.zeros(size), np.zeros(size)

    def f(x: Any, held: Any) -> Any:
        y = np.zeros(size)
        for k in range(3):
            held[:] = k
            y = y + x * held
        return y.sum()

    gradient = lineara.grad(lambda x: f(x, buffer))
    if size == 10:
        assert gradient(np.ones(size)).tolist() == [3.0] * size
        assert f(np.ones(size), plain_buffer) == 3.0 * size
    else:
        with pytest.raises(MutationError, match=r"copy it first(?s:.*)held\[:\] = k"):
            gradient(np.ones(size))
    buffer[:] = 1.0  # unlocked again


@pytest.mark.parametrize("size", [10, 20_000])
def test_a_mask_and_an_index_that_change_after_their_use(size: int) -> None:
    def f(x: Any) -> Any:
        mask, at = np.zeros(size, bool), np.arange(3)
        mask[:2] = True
        y = np.where(mask, x * 3.0, x) + x[at].sum() + x[mask].sum()
        y[at] = y[at] * 2
        z = np.maximum(x, 0.0)[mask]
        mask[:] = False
        at[:] = 5
        return y.sum() + z.sum()

    try:
        g = lineara.grad(f)(np.ones(size))
    except MutationError:
        assert size > 10
        return
    h = 1e-6
    for i in (0, 1, 2, 3, 5):
        e = np.zeros(size)
        e[i] = h
        assert abs(g[i] - (f(np.ones(size) + e) - f(np.ones(size) - e)) / (2 * h)) < 1e-4


def test_the_argument_is_unlocked_when_the_function_raises() -> None:
    x, w = np.ones(20_000), np.ones(20_000)

    def f(v: Any) -> Any:
        y = v * w
        raise KeyError(y.sum())

    with pytest.raises(KeyError):
        lineara.grad(f)(x)
    x[0] = w[0] = 2.0


def flat_wholly(y: Any, v: Any) -> None:
    y.flat = v


def flat_by_slice(y: Any, v: Any) -> None:
    y.flat[:] = v


def flat_by_number(y: Any, v: Any) -> None:
    y.flat[0] = v


def flat_by_list(y: Any, v: Any) -> None:
    y.flat[[0]] = v


@pytest.mark.parametrize("write", [flat_wholly, flat_by_slice, flat_by_number, flat_by_list])
@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_the_flat_elements_are_written_whatever_the_axes(write: Any, shape: Any) -> None:
    def f(x: Any) -> Any:
        y = np.array(x).reshape(shape)
        write(y, 3.0 * x)
        y += x
        return y.flat[:].sum() + 2.0 * y.flat[0] + y.flat[[0]][0] + sum(y.flat)

    assert lineara.value_and_grad(f)(0.5) == (f(0.5), 20.0)


def test_the_dtype_of_an_array_is_set_to_its_own_only() -> None:
    def f(x: Any, dtype: Any) -> Any:
        y = x * x
        y.dtype = dtype
        return y.sum()

    np.testing.assert_array_equal(lineara.grad(f)(np.ones(2), "<f8"), [2.0, 2.0])
    with pytest.raises(NoRuleError, match="no derivative when seen as"):
        lineara.grad(f)(np.ones(2), np.int64)


OPERATIONS = {
    "neg": lambda a: -a,
    "pos": lambda a: +a,
    "abs": abs,
    "add": lambda a: 2.0 + a + 3.0,
    "subtract": lambda a: 2.0 - a - 3.0,
    "multiply": lambda a: 2.0 * a * 3.0,
    "divide": lambda a: 2.0 / a / 3.0,
    "power": lambda a: 2.0 ** (a**2),
    "remainder": lambda a: a % 0.3 + 0.8 % a,
    "sqrt": np.sqrt,
    "negative": np.negative,
    "absolute": np.absolute,
    "math": lambda a: math.sin(a) + math.hypot(a, 1.0),
    "float": float,
    "complex": lambda a: abs(complex(a, 1.0)),
    "item": lambda a: a.item() + a.tolist() + a[()] + a.flat[0],
    "axes": lambda a: a[None][0] + a.reshape(1)[0] + a.ravel()[0] + a.T + a[...],
    "clip": lambda a: np.clip(a, 0.1, 2.0) + a.clip(-2.0, 2.0),
    "where": lambda a: np.where(a > 0, a, 0.0),
    "joined": lambda a: np.stack([a, a])[1] + np.append(a, 1.0)[0] + np.full(2, a)[1],
}
WITHOUT_AXES = {
    "array": np.array,
    "squeeze": lambda x: np.squeeze(np.array([x])),
    "reshape": lambda x: np.array([x]).reshape(()),
    "index": lambda x: np.array([x, 2.0])[0, ...],
    "written": lambda x: _written_wholly(np.zeros(()), x),
}


def _written_wholly(a: Any, x: Any) -> Any:
    a[...] = x
    return a


@pytest.mark.parametrize("made", WITHOUT_AXES)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_array_without_axes_has_the_derivatives_of_its_number(operation: str, made: str) -> None:
    act, array = OPERATIONS[operation], WITHOUT_AXES[made]

    def f(x: Any) -> Any:
        return act(array(x)) * x

    x = 0.7
    first = f(x + 1e-6) - f(x - 1e-6)
    second = (f(x + 1e-3) - 2 * f(x) + f(x - 1e-3)) / 1e-6
    assert lineara.grad(f)(x) == pytest.approx(first / 2e-6, rel=1e-6)
    assert lineara.jvp(f, (x,), (1.0,))[1] == pytest.approx(first / 2e-6, rel=1e-6)
    assert lineara.hvp(f)(x, 1.0) == pytest.approx(second, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("act", [abs, np.abs, lambda z: (-z * z).imag])
def test_a_complex_array_without_axes_has_the_gradient_of_its_number(act: Any) -> None:
    z = 3.0 + 1.0j
    found = lineara.grad(lambda z: act(np.array(z)) ** 2)(z)
    assert found == pytest.approx(lineara.grad(lambda z: act(z) ** 2)(z))
