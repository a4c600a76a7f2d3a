"""A call that has a plan gives what the general way gives, bit for bit, and costs counted work.

BLAS and LAPACK round by where their arguments lie in memory: what calls them agrees in all but
the last bits.
"""

import pickle
import re
import sys
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest
from call_counts import calls
from forms import LINES
from tables import Laws
from test_numpy_forms import form
from test_primitives import SMOOTH, random_like

import lineara
from lineara.facts.primitive import registry
from lineara.tape import plans

laws, everywhere = Laws(), Laws()
NEVER = sys.maxsize


@contextmanager
def plans_at(call: int) -> Iterator[dict[Any, Any]]:
    """Signatures get their plans at that call; the table, which is empty at first."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plans, "CALLS", call)
        patch.setattr(registry, "plans", {})
        patch.setattr(registry, "readers", {})
        yield registry.plans


LIBRARIES = re.compile(
    r"linalg|matmul|matvec|vecmat|vecdot|dot|inner|outer|einsum|kron|conv|corr|@|cumprod|cumulative_prod"
)


def by_blas(line: Any) -> bool:
    """Whether BLAS, LAPACK or SciPy may evaluate a line of a table, or its derivative.

    Or Python, as the recurrence that the derivative of a running product is: signs of zeros may
    differ there.
    """
    return bool(LIBRARIES.search(str(line))) or (not isinstance(line, str) and line.primitive.host)


class Array(NamedTuple):
    """What an array or a number is, and its bits."""

    kind: type
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    data: bytes

    def near(self, other: Any) -> bool:
        """Whether these are the same but for the last bits."""
        if not isinstance(other, Array) or self[:3] != other[:3]:
            return False
        if self.dtype.kind not in "fc":
            return self.data == other.data
        a, b = (np.frombuffer(v.data, self.dtype) for v in (self, other))
        size = np.max(np.abs(a), initial=1.0, where=np.isfinite(a))
        return np.allclose(a, b, 0, 5000 * np.finfo(self.dtype).eps * size, equal_nan=True)


def same(given: Any, expected: Any, rounded: bool) -> bool:
    """Whether two outcomes are equal, or equal but for the last bits of arrays."""
    if not rounded or not isinstance(given, tuple | list):
        return given == expected
    if isinstance(given, Array):
        return given.near(expected)
    alike = type(given) is type(expected) and len(given) == len(expected)
    return alike and all(same(a, b, rounded) for a, b in zip(given, expected, strict=True))


def like(value: Any, seed: int) -> Any:
    """Random numbers of the shape of a value, and of its dtype where that is one of floats.

    A tangent of more digits than its argument is rounded after each step or at the end.
    """
    numbers: Any = random_like(value, seed)
    dtype = getattr(value, "dtype", np.dtype(float))
    return numbers.astype(dtype) if np.shape(value) and dtype.kind == "f" else numbers


def outcome(f: Callable[..., Any], point: list[Any]) -> Any:
    """Value and layout, both directions of the derivative, and the dtypes of all; or the error."""
    try:
        y, L = lineara.linearize(f, *point)
        seeds = [like(p, i) for i, p in enumerate(point)]
        ahead = L @ (seeds[0] if len(point) == 1 else tuple(seeds))
        back = like(y, 9) @ L
    except Exception as e:
        return type(e), str(e)
    return [bits(v) for v in (y, ahead, back)], np.asarray(y).strides


def gradient(f: Callable[..., Any], point: list[Any]) -> Any:
    """The gradient of a sum of what f gives, or the error."""
    try:
        return bits(lineara.grad(lambda *args: np.sum(f(*args) * 0.5))(*point))
    except Exception as e:
        return type(e), str(e)


def bits(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(bits, value))
    a = np.asarray(value)
    return Array(type(value), a.dtype, a.shape, a.tobytes())


def agree(f: Callable[..., Any], point: list[Any], rounded: bool = False) -> None:
    """The same arrays in Fortran order have the plans that were made for those in C order."""
    points = [point]
    if any([np.ndim(p) > 1 for p in point]):
        points.append([np.asfortranarray(p) if np.ndim(p) > 1 else p for p in point])
    with plans_at(NEVER):
        expected = [gradient(f, point), *[outcome(f, p) for p in points]]
    with plans_at(1):
        given = [gradient(f, point), *[outcome(f, p) for p in points]]
    assert same(given, expected, rounded), (given, expected)


def second(f: Callable[..., Any], point: list[Any]) -> Any:
    """The second derivative, in four ways.

    Of a gradient in the first argument alone, the others are traced by the outer level.
    """
    places = tuple(range(len(point)))

    def along(places: tuple[int, ...]) -> Callable[..., Any]:
        inner = lineara.grad(lambda *args: np.sum(np.real(f(*args)) ** 2), argnums=places)
        return lambda *args: sum([np.sum(np.real(g) * 0.25) for g in inner(*args)])

    tangents = tuple([like(p, 3) for p in point])

    def ahead(*args: Any) -> Any:
        return np.sum(np.real(lineara.jvp(f, args, tangents)[1]) ** 2 * 0.25)

    return [
        settled(lambda: bits(lineara.grad(ahead, argnums=places)(*point))),
        settled(lambda: bits(lineara.jvp(along(places), tuple(point), tangents))),
        settled(lambda: bits(lineara.grad(along(places), argnums=places)(*point))),
        settled(lambda: bits(lineara.grad(along((0,)), argnums=places)(*point))),
    ]


def lanes(f: Callable[..., Any], point: list[Any]) -> Any:
    """The gradient at several points at once, and a Jacobian, whose cotangents are lanes."""
    places = tuple(range(len(point)))
    of_sum = lineara.grad(lambda *args: np.sum(np.real(f(*args)) * 0.5), argnums=places)
    stacks = [np.stack([p, p]) for p in map(np.asarray, point)]
    return [
        settled(lambda: bits(lineara.vmap(of_sum)(*stacks))),
        settled(lambda: bits(lineara.jacrev(f)(*point))),
        settled(lambda: bits(lineara.jacfwd(f)(*point))),
    ]


def settled(run: Callable[[], Any]) -> Any:
    """What a run gives, or the error."""
    try:
        return run()
    except Exception as e:
        return type(e), str(e)


DTYPES = (np.float32, np.complex128, np.int64)


def cast(point: list[Any], dtype: Any) -> list[Any]:
    """The point in another dtype; what is no float stays."""
    return [p.astype(dtype) if getattr(p, "dtype", None) == np.float64 else p for p in point]


def agree_everywhere(f: Callable[..., Any], point: list[Any], rounded: bool) -> None:
    """The same of a derivative in a derivative, in lanes, and of other dtypes.

    At depth contributions arrive in another order, and a composition's tangents are wider than
    float32 between its steps: there all but the last bits agree.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of complex numbers made real, and of values

        def single(dtype: Any) -> Any:
            p = cast(point, dtype)
            return gradient(f, p), outcome(f, p)

        runs = {"lanes": lambda: lanes(f, point), "depth": lambda: second(f, point)}
        runs |= {dtype.__name__: partial(single, dtype) for dtype in DTYPES}
        with plans_at(NEVER):
            expected = {name: run() for name, run in runs.items()}
        with plans_at(1):
            given = {name: run() for name, run in runs.items()}
    for name, result in expected.items():
        near = rounded or name in ("depth", "float32")
        assert same(given[name], result, near), (name, given[name], result)


@laws.of(SMOOTH)
def a_primitive_with_a_plan_gives_what_it_gives_without(line: Any):
    agree(line.plain(), line.point(), by_blas(line))


@laws.of(LINES)
def a_form_of_numpys_with_a_plan_gives_what_it_gives_without(line: str):
    agree(*form(line), by_blas(line))


def test_one_shape_after_another_has_a_plan():
    """np.tile reads its result off under two more shapes."""
    x = np.arange(6.0).reshape(3, 2)
    agree(lambda a: np.tile(a, (2, 1)), [x])
    agree(lambda a: np.tile(a, (2, 3)) + np.reshape(a, (1, 6))[0, 0], [x])


@everywhere.of(SMOOTH)
def a_primitive_with_a_plan_agrees_at_every_level_in_lanes_and_dtypes(line: Any):
    agree_everywhere(line.plain(), line.point(), by_blas(line))


@everywhere.of(LINES)
def a_form_with_a_plan_agrees_at_every_level_in_lanes_and_dtypes(line: str):
    agree_everywhere(*form(line), by_blas(line))


def made() -> list[str]:
    """The functions that have a plan."""
    return [
        getattr(head[0], "__name__", None) or head[0].name
        for head, signatures in registry.plans.items()
        for plan in signatures.values()
        if type(plan) is plans.Plan
    ]


def alternately(*calls: tuple[Callable[..., Any], list[Any]], rounded: bool = False) -> None:
    """Calls in turn, each as if it were the only one, and with the value that it has plainly."""
    expected = []
    for f, point in calls:
        with plans_at(NEVER):
            expected.append((gradient(f, point), outcome(f, point)))
    with plans_at(2):
        for _ in range(4):
            given = [(gradient(f, p), outcome(f, p)) for f, p in calls]
            assert same(given, expected, rounded), (given, expected)
        assert made()
        for f, point in calls:
            value = lineara.linearize(f, *point)[0]  # NumPy's numbers are given as Python's
            plain = bits(f(*point))
            assert same(bits(value)._replace(kind=plain.kind), plain, rounded)


A, B, ROW = np.arange(6.0).reshape(2, 3), np.ones((2, 3)) / 3, np.array([0.5, -2.0, 3.0])


def test_other_shapes_dtypes_and_options_have_plans_of_their_own():
    alternately(
        (lambda x: np.max(x, axis=0), [A]),
        (lambda x: np.max(x, axis=0), [A.T.copy()]),
        (lambda x: np.max(x, axis=0), [A.astype(np.float32)]),
        (lambda x: np.max(x, axis=1), [A]),
        (lambda x: np.max(x, axis=True and 1, keepdims=True), [A]),
        (lambda x: np.max(x, axis=(0, 1)), [A]),
        (lambda x: np.max(x, 0, initial=2.5), [A]),
    )


def test_options_that_are_equal_and_no_other_number_are_told_apart():
    alternately(
        (lambda x: np.maximum(x, 0.0)[0] + 0 * ROW, [A]),
        (lambda x: np.copysign(x, 0.0) + 0 * ROW, [A]),
        (lambda x: np.copysign(x, -0.0) + 0 * ROW, [A]),
        (lambda x: np.where(x > 1, x, 1) + ROW, [A]),
        (lambda x: np.where(x > 1, x, True) + ROW, [A]),
    )


def test_numbers_of_pythons_and_of_numpys_have_plans_of_their_own():
    alternately(
        (lambda x: ROW * x, [0.75]),
        (lambda x: ROW * x, [np.float64(0.75)]),
        (lambda x: ROW.astype(np.float32) * x, [0.75]),
        (lambda x: ROW.astype(np.float32) * x, [np.float64(0.75)]),
    )


def test_a_plan_reads_the_values_of_its_call():
    """Ties, infinities and NaN have the derivatives of the general rule: nothing is remembered."""
    f = lambda x: np.max(x, axis=1) + np.min(x, axis=1)  # noqa: E731
    odd = [A, A * 0, np.where(A > 2, np.nan, A), np.where(A > 2, np.inf, A), -A]
    alternately(*[(f, [a]) for a in odd])


def test_sequences_of_other_lengths_have_plans_of_their_own():
    alternately(
        (lambda x: np.concatenate([x, A]), [B]),
        (lambda x: np.concatenate([A, x]), [B]),
        (lambda x: np.concatenate((x, A)), [B]),
        (lambda x: np.concatenate([x, x, A]), [B]),
        (lambda x: np.stack([x, A], axis=1), [B]),
    )


def test_a_plain_array_may_be_written_after_a_call_that_has_a_plan():
    weights = np.ones((3, 2))

    def f(x):
        y = np.sum(x @ weights)
        weights[:] = 7.0
        return y

    with plans_at(1):
        for _ in range(3):
            weights[:] = 1.0
            np.testing.assert_array_equal(lineara.grad(f)(A), np.full((2, 3), 2.0))
        assert "matmul" in made()


def test_a_value_that_numpy_refuses_is_refused_in_its_words():
    singular = np.ones((2, 2))
    with plans_at(1):
        lineara.grad(lambda a: np.sum(np.linalg.solve(a, ROW[:2])))(np.eye(2))
        with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
            lineara.grad(lambda a: np.sum(np.linalg.solve(a, ROW[:2])))(singular)
        assert "solve" in made()


def test_a_policy_at_kinks_is_asked_where_there_is_a_plan():
    ties = np.zeros(3)
    with plans_at(1):
        slope = lineara.grad(lambda x: np.sum(np.max(x, axis=0) + np.max(x[None], axis=1)))
        assert slope(ties).tolist() == [2 / 3] * 3
        assert "amax" in made() or "max" in made()
        first = lineara.kinks(ties="first")
        policy = first(lambda x: np.sum(np.max(x, axis=0) + np.max(x[None], axis=1)))
        assert lineara.grad(policy)(ties).tolist() == [2.0, 0.0, 0.0]
        assert slope(ties).tolist() == [2 / 3] * 3


@pytest.mark.parametrize("n", [8, 64, 200])
def test_a_linear_system_has_numpys_value_and_one_derivative(n: int):
    """The factors of large matrices are kept; LAPACK rounds with them in another way."""
    a, b = np.cos(np.arange(n * n, dtype=float)).reshape(n, n) + n * np.eye(n), np.arange(1.0 * n)
    alternately(
        (np.linalg.solve, [a, b]),
        (np.linalg.solve, [a, a]),
        (np.linalg.det, [a / n]),
        (lambda a: np.linalg.slogdet(a)[1], [a]),
        rounded=True,
    )


# Calls of Python's functions and bytes of the tape, forward and back, of one operation on 4 x 4
# arrays: a fifth more than there are.  The general way makes 110 to 620 calls in 1,500 to 9,000.
COSTS: dict[str, tuple[Callable[..., Any], int, int]] = {
    "sin": (lambda x, y, row: np.sin(y), 4, 750),
    "product and sum": (lambda x, y, row: y * x + x, 4, 900),
    "sum with a row": (lambda x, y, row: y + row, 9, 560),
    "matmul": (lambda x, y, row: y @ x, 14, 560),
    "slices, concatenated": (lambda x, y, row: np.concatenate([y[2:], y[:2]]), 46, 2100),
    "sum": (lambda x, y, row: y + np.sum(y, axis=0), 25, 1000),
    "max": (lambda x, y, row: y - np.max(y, axis=1, keepdims=True), 30, 1000),
    "solve": (lambda x, y, row: np.linalg.solve(x, y), 50, 560),
    "slogdet": (lambda x, y, row: y + np.linalg.slogdet(y)[1], 62, 1150),
    "where": (lambda x, y, row: np.where(x > 0.0, y, x), 18, 730),
}


def matrices(dtype: Any = float) -> list[Any]:
    """Two matrices of 4 x 4."""
    return [
        (np.eye(4) + 0.1 * np.cos(i + np.arange(16.0)).reshape(4, 4)).astype(dtype)
        for i in range(2)
    ]


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        *[(name, np.float64) for name in COSTS],
        *[(name, np.float32) for name in COSTS if name != "slogdet"],  # a number of float32
    ],
)
def test_an_operation_with_a_plan_makes_few_calls_and_a_short_entry(name: str, dtype: Any):
    step, most_calls, most_bytes = COSTS[name]
    x, y = matrices(dtype)
    tape: list[int] = []

    def run(times: int) -> Callable[[], Any]:
        def f(x, y):
            row, before = x[0], tracemalloc.get_traced_memory()[0]
            for _ in range(times):
                y = step(x, y, row)
            tape.append(tracemalloc.get_traced_memory()[0] - before)
            return np.sum(y)

        gradient = lineara.grad(f, argnums=(0, 1))
        return lambda: gradient(x, y)

    def bytes_of_tape(run: Callable[[], Any]) -> int:
        tracemalloc.start()
        try:
            run()
        finally:
            tracemalloc.stop()
        return tape[-1]

    few, many = run(5), run(25)
    with plans_at(1):
        for warm in (few, many, few, many):
            warm()
        assert calls(many) - calls(few) <= 20 * most_calls
        assert bytes_of_tape(many) - bytes_of_tape(few) <= 20 * most_bytes


def test_types_of_an_array_that_was_unpickled_take_no_plan_from_others():
    x = np.ones((7, 3), np.float32)  # a shape of which nothing is kept yet
    y = pickle.loads(pickle.dumps(x))
    assert y.dtype is not x.dtype

    def f(x, y):
        row = x[0]
        for _ in range(20):
            y = y + row
        return np.sum(y)

    def taken() -> int:
        with plans_at(1):
            return calls(lambda: lineara.grad(f, argnums=(0, 1))(x, x), warm=2)

    lineara.trace(f, y, y)  # whose types are kept
    assert taken() < 600


# Calls of Python's functions that an operation on 4 x 4 arrays takes in a gradient of a function of
# a gradient, with a sine: a fifth more than there are.  The general way makes 150 to 1,800.
AT_DEPTH: dict[str, int] = {
    "sin": 76,
    "product and sum": 48,
    "sum with a row": 120,
    "matmul": 355,
    "slices, concatenated": 620,
    "sum": 310,
    "max": 455,
    "solve": 320,
    "slogdet": 560,
    "where": 170,
}


@pytest.mark.parametrize("name", AT_DEPTH)
def test_an_operation_in_a_derivative_of_a_derivative_makes_few_calls(name: str):
    step = COSTS[name][0]
    x, y = matrices()

    def run(times: int) -> Callable[[], Any]:
        def f(x, y):
            row = x[0]
            for _ in range(times):
                y = np.sin(step(x, y, row))
            return np.sum(y)

        inner = lineara.grad(f, argnums=(0, 1))
        outer = lineara.grad(lambda x, y: sum([np.sum(g * g) for g in inner(x, y)]), argnums=(0, 1))
        return lambda: outer(x, y)

    few, many = run(5), run(25)
    with plans_at(1):
        assert calls(many, warm=2) - calls(few, warm=2) <= 20 * AT_DEPTH[name]


test_every_law = laws.test()
test_every_law_everywhere = pytest.mark.slow("two orders, lanes and five dtypes of each line")(
    everywhere.test()
)
