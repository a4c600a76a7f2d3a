"""Arrays that nothing traced reached: NumPy's results, and NumPy's cost."""

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from call_counts import calls

from lineara import grad, linearize, trace, vmap
from lineara.errors import MutationError

T = np.linspace(0.1, 0.9, 60)


def vandermonde(a: Any, t: Any) -> Any:
    a[:, 1:] = t[:, None]
    np.cumprod(a, axis=1, out=a)
    return a


# Each fills the array that it is given, which nothing traced has reached, and gives what it reads.
FILLS: dict[str, Callable[[Any, Any], Any]] = {
    "vandermonde": vandermonde,
    "in place": lambda a, t: [a.__imul__(3.0), a.__iadd__(t[0]), a.__isub__(a[::-1]), a][-1],
    "a ufunc's out": lambda a, t: (np.multiply(a, 2.5, out=a), np.sin(a, out=a), a)[-1],
    "out of none, and of some": lambda a, t: (
        np.sin(a[0, 0], out=...),
        np.add(a, 1, out=...),
        np.divmod(a, 0.3, out=(None, a)),
        np.modf(a, out=(a, None)),
        np.add(a, 1, out=(a,)),
    ),
    "a view": lambda a, t: (np.add(a[1:], t[0], out=a[1:]), a.T.copy(), a.ravel()[:3]),
    "a view, written later": lambda a, t: (a[0], a.__setitem__(0, 5.0)),
    "sums": lambda a, t: (
        a.sum(),
        np.sum(a, 0),
        a.mean(1),
        a.std(),
        np.max(a, axis=0),
        a.cumsum(0),
    ),
    "products": lambda a, t: (a @ a.T, a.T @ t, np.einsum("ij,ij->i", a, a), np.dot(a[0], a[1])),
    "joined": lambda a, t: (
        np.concatenate([a, a]),
        np.stack([a, a]),
        np.roll(a, 1, 0),
        np.tile(a, 2),
    ),
    "chosen": lambda a, t: (
        np.where(a > 1, a, 0),
        a > 1,
        np.argsort(a, 0),
        np.sort(a, 0),
        a[a > 0.5],
    ),
    "writers": lambda a, t: (
        np.fill_diagonal(a, 7.0),
        np.put(a, [1, 2], t[:2]),
        np.copyto(a[3], 1.0),
        a,
    ),
    "views of NumPy": lambda a, t: (
        a.reshape(-1),
        np.squeeze(a[:1]),
        np.diagonal(a),
        a.T,
        np.flip(a),
    ),
    "elements": lambda a, t: (
        [a.__setitem__((0, i), a[0, i - 1] / 3 + t[i]) for i in range(5)] + [a]
    ),
    "a row": lambda a, t: (
        [a[1].__setitem__(i, a[1][i - 1] / 3 + t[i]) for i in range(-2, 3)] + [a[1][4]]
    ),
    "NumPy's numbers": lambda a, t: (
        a[0][1],
        a[0, 1] + np.float32(1),
        a[0] * np.float64(2),
        -a,
        abs(a),
    ),
    "decompositions": lambda a, t: (np.linalg.svd(a)[1], np.linalg.qr(a[:5])[1], np.linalg.norm(a)),
    "mixed types": lambda a, t: (
        a + 1j,
        a * np.arange(5),
        a.astype(np.float32),
        np.rint(a),
        a // 2,
    ),
    "order": lambda a, t: (np.asfortranarray(a) + 1, a.T + 1, np.copy(a, order="F")),
}


def made() -> Any:
    return np.ones((60, 5)) * 0.5


def described(value: Any) -> Any:
    """All that a program can see of a value."""
    if isinstance(value, tuple | list):
        return [described(v) for v in value]
    if isinstance(value, np.ndarray):
        plain = np.array(value, order="K")
        return type(value), plain.dtype, plain.shape, plain.strides, plain.tobytes()
    return type(value), repr(value)


@pytest.mark.parametrize("name", FILLS)
@pytest.mark.parametrize("depth", [1, 2])
def test_what_is_filled_with_constants_is_numpys(name: str, depth: int) -> None:
    fill = FILLS[name]
    found = []

    def f(c: Any) -> Any:
        a = np.ones((60, 5))
        a *= 0.5
        found.append(described(fill(a, T)))
        return c * a[2, 3]

    g = f
    for _ in range(depth):
        g = grad(g)
    g(2.0)
    assert found[0] == described(fill(made(), T))


@pytest.mark.parametrize("name", FILLS)
def test_a_traced_value_may_be_written_afterwards(name: str) -> None:
    fill = FILLS[name]

    def f(c: Any) -> Any:
        a = np.ones((60, 5))
        a *= 0.5
        fill(a, T)
        row, columns = a[4], a.T
        a[4, 2] = c * c
        a[:, 1] *= c
        return row[2] + columns[2, 4] + a[4, 2] + np.sum(a[:, 1])

    a = made()
    fill(a, T)
    assert grad(f)(3.0) == pytest.approx(18.0 + a[:, 1].sum(), rel=1e-12)
    assert linearize(f, 3.0)[1] @ 1.0 == pytest.approx(18.0 + a[:, 1].sum(), rel=1e-12)


def test_a_result_may_be_written_with_traced_values() -> None:
    def f(c: Any) -> Any:
        a = np.zeros(4)
        a[:] = T[:4]
        results = np.cumsum(a), np.sin(a), a + 1, a * a, np.sort(a), np.concatenate([a, a])[:4]
        for y in results:
            y[1] = c * c
        return sum([y.sum() for y in results])

    assert grad(f)(3.0) == 36.0


def test_nothing_is_written_below_a_view_that_was_given_away() -> None:
    def f(c: Any) -> Any:
        a = np.zeros(4)
        plain = np.lib.stride_tricks.as_strided(a, (2,), (8,))
        np.add(a, 1.0, out=a)
        return c * plain.sum()

    with pytest.raises(MutationError, match="plain view"):
        grad(f)(3.0)


def test_plain_memory_of_the_users_is_not_written() -> None:
    given = np.ones(5)

    def f(c: Any) -> Any:
        a = np.array(given)
        np.multiply(a, 2.0, out=a)
        a += 1
        return c * a.sum()

    assert grad(f)(1.0) == 15.0
    assert (given == 1).all()


def test_errors_are_numpys() -> None:
    wrong: list[Callable[[Any], Any]] = [
        lambda a: np.cumprod(a, axis=3, out=a),
        lambda a: np.add(a, np.ones(7), out=a),
        lambda a: a.__iadd__(np.ones(7)),
        lambda a: a.__setitem__(9, 1.0),
        lambda a: a.__setitem__(0, np.ones(3)),
        lambda a: a[9],
        lambda a: a @ np.ones(7),
    ]
    for act in wrong:
        with pytest.raises(Exception) as plainly:  # noqa: PT011  # whatever NumPy raises
            act(np.ones(4))

        def f(c: Any, act: Any = act) -> Any:
            act(np.ones(4))
            return c

        with pytest.raises(type(plainly.value)):
            grad(f)(1.0)


def test_an_error_of_the_floating_point_leaves_what_numpy_leaves() -> None:
    contents = []

    def f(c: Any) -> Any:
        a = np.array([1.0, 0.0, 2.0])
        with np.errstate(all="raise"):
            try:
                np.divide(1.0, a, out=a)
            except FloatingPointError:
                contents.append(np.array(a))
        return c

    f(1.0)
    grad(f)(1.0)
    np.testing.assert_array_equal(contents[0], contents[1])


def test_a_filled_constant_costs_as_many_calls_at_every_size_and_few_bytes() -> None:
    def f(c: Any, n: int) -> Any:
        a = np.ones((n, 50))
        vandermonde(a, np.linspace(0, 1, n))
        return c * np.sum(a)

    g = grad(f)
    assert calls(lambda: g(1.0, 100)) == calls(lambda: g(1.0, 5000))
    tracemalloc.start()
    try:
        g(1.0, 5000)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.reset_peak()
        f(1.0, 5000)
        plainly = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1.2 * plainly


def test_a_column_of_constants_takes_few_calls() -> None:
    def f(c: Any, n: int) -> Any:
        a = np.ones((7, 30))
        for j in range(1, n):
            a[:, j] = a[:, j - 1] * T[:7]
        return c * np.sum(a)

    g = grad(f)
    assert calls(lambda: g(1.0, 30)) - calls(lambda: g(1.0, 10)) <= 20 * 19


VIEWS: dict[str, Callable[[Any], Any]] = {
    "a row": lambda a: a[1],
    "from the end": lambda a: a[-2],
    "every other": lambda a: a[::2, 1],
    "backwards": lambda a: a[::-1, ::-2],
    "with an axis": lambda a: a[1:, None, 2],
    "of the last axis": lambda a: a[..., 1],
    "of a view": lambda a: a[1:][::2][..., 1:][-1],
    "of another view": lambda a: a[1:, ::2][::-1, 1, None, ..., ::-2],
    "of a transpose": lambda a: a.T[1][::2],
    "of a reshape": lambda a: a[2].reshape(-1)[1::3],
    "nothing": lambda a: a[3:1],
    "one number without axes": lambda a: a[1, 2, 3, ...],
}


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("before", [0, 1])
def test_what_a_view_of_constants_shows_is_found_when_traced_values_reach_it(
    name: str, before: int
) -> None:
    weights = np.random.default_rng(0).standard_normal((4, 5, 6))

    def f(c: Any) -> Any:
        a = np.ones((4, 5, 6))
        a[before:, 2] = 3.0
        v, whole = VIEWS[name](a), a[:]
        v[...] = c * np.arange(1.0, v.size + 1).reshape(v.shape)
        later = VIEWS[name](a)
        return np.sum(whole * weights) + np.sum(a[0]) + 2 * np.sum(v) + np.sum(later)

    slope = f(1.0) - f(0.0)
    assert grad(f)(0.7) == pytest.approx(slope, abs=1e-12)
    assert grad(lambda c: grad(f)(c) * c)(0.7) == pytest.approx(slope, abs=1e-12)


MEETS: dict[str, Callable[[Any, Any], Any]] = {
    "matmul": lambda a, c: a @ c,
    "dot": lambda a, c: np.dot(c, a),
    "einsum": lambda a, c: np.einsum("ij,j->i", a, c),
    "multiply": lambda a, c: a * c,
    "maximum": lambda a, c: np.maximum(c, a),
    "a view": lambda a, c: a[1:] @ c,
    "a transpose": lambda a, c: a.T @ c,
    "solve": lambda a, c: np.linalg.solve(a + 20 * np.eye(len(a)), c),
    "where": lambda a, c: np.where(a > 0.5, c, a),
    "joined": lambda a, c: np.concatenate([a[0], c]),
}


@pytest.mark.parametrize("n", [4, 200])
@pytest.mark.parametrize("name", MEETS)
def test_what_a_constant_was_when_it_met_a_traced_value_counts(name: str, n: int) -> None:
    rng = np.random.default_rng(0)
    first, second = rng.standard_normal((2, n, n))
    weights, c = rng.standard_normal(2 * n), rng.standard_normal(n)

    def f(c: Any) -> Any:
        a = np.zeros((n, n))
        a[:] = first
        y = MEETS[name](a, c)
        a[:, 1:] = second[:, 1:]
        z = MEETS[name](a, c)
        return np.sum(np.sin(y) * weights[: y.shape[0]].sum()) + np.sum(np.cos(z))

    def plainly(c: Any) -> Any:
        mixed = np.concatenate([first[:, :1], second[:, 1:]], axis=1)
        y, z = MEETS[name](first, c), MEETS[name](mixed, c)
        return np.sum(np.sin(y) * weights[: y.shape[0]].sum()) + np.sum(np.cos(z))

    expected = grad(plainly)(c)
    for _ in range(6):  # a plan comes after some calls
        np.testing.assert_allclose(grad(f)(c), expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(linearize(f, c)[1].T @ 1.0, expected, rtol=1e-12, atol=1e-12)


def test_a_constant_that_meets_a_traced_value_takes_few_calls() -> None:
    def f(c: Any, times: int) -> Any:
        a = np.zeros((5, 5))
        a[:, 0] = 1.0
        for _ in range(times):
            c = a @ c
        return np.sum(c)

    g = grad(f)
    assert calls(lambda: g(T[:5], 12), 6) - calls(lambda: g(T[:5], 2), 6) <= 10 * 20


# What each gives of constants has to be known where x is staged, of few elements and of many.
KNOWN: dict[str, Callable[[Any, int], Any]] = {
    "a mask": lambda x, n: (x * np.ones(n))[np.arange(n) % 2 == 0],
    "a mask of floats": lambda x, n: (x * np.arange(n))[np.sin(np.arange(1.0 * n)) > 0.1],
    "positions": lambda x, n: (x * np.arange(n))[np.arange(n)[::-1] // 2],
    "an order": lambda x, n: (x * np.ones(n))[np.argsort(-np.arange(n))],
    "positions of true": lambda x, n: (x * np.arange(n))[np.flatnonzero(np.arange(n) % 3)],
    "distinct values": lambda x, n: x * np.unique(np.arange(n) % 7),
    "taken": lambda x, n: np.ones(int(np.take(np.arange(n), np.arange(n) // 2)[-1])) * x,
    "a size": lambda x, n: np.ones(int(np.arange(n).max())) * x,
    "a condition": lambda x, n: x if np.arange(n).sum() % 2 else -x,
}


@pytest.mark.parametrize("n", [9, 99])
@pytest.mark.parametrize("name", KNOWN)
def test_what_is_calculated_from_constants_is_known_where_values_are_staged(
    name: str, n: int
) -> None:
    def f(x: Any) -> Any:
        return KNOWN[name](x, n)

    np.testing.assert_array_equal(vmap(f)(np.array([1.5]))[0], f(1.5))
    np.testing.assert_array_equal(trace(f, 1.5)(1.5), f(1.5))


@pytest.mark.parametrize("n", [9, 99])
def test_what_is_calculated_from_constants_is_written_without_those(n: int) -> None:
    outside = np.arange(1.0 * n)

    def f(x: Any) -> Any:
        a = np.arange(1.0 * n)
        b, c = a + 0, np.where(True, outside, a)
        b[0], c[1] = 5.0, x
        return np.stack([a * x, b, c])

    expected = f(1.5)
    np.testing.assert_array_equal(trace(f, 1.5)(1.5), expected)
    np.testing.assert_array_equal(vmap(f)(np.array([1.5]))[0], expected)
    assert outside[1] == 1.0


@pytest.mark.filterwarnings("ignore")  # of casts, as NumPy's
@pytest.mark.parametrize("dtype", ["l", "B", "?", "f4", "D"])
@pytest.mark.parametrize("number", [1.5, -1.5, 300.7, 1e30, np.inf, np.nan])
def test_a_staged_number_fills_an_array_cast_as_numpy_casts_it(number: float, dtype: str) -> None:
    def f(x: Any) -> Any:
        fills = [np.full(2, v, dtype) for v in (x, float(x), 1j * x)]
        return np.stack([*fills, np.full_like(np.ones(2, dtype), x), np.full(2, [x, x], dtype)])

    expected = f(np.float64(number))
    found = vmap(f)(np.array([number]))[0]
    assert found.dtype == expected.dtype
    if dtype not in "lB" or 0 <= number < 256:  # of other numbers, C does not say what a cast gives
        np.testing.assert_array_equal(found, expected)
