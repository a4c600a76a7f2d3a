"""A builder given to a pull, or to the transpose of a linear map, stays one where it can."""

import itertools

import numpy as np
import pytest

import lineara
from lineara import Coo, LowRank, Rows, Zero
from lineara.cotangent.sparse_vector import SparseVector
from lineara.facts.primitive import op
from lineara.testing import count_bytes

X = np.arange(12.0).reshape(4, 3) / 7
W = np.cos(np.arange(15.0)).reshape(3, 5)
AT = np.array([2, 0, 2, 3])
MASK = np.array([True, False, True, True])


def written(x):
    y = np.zeros((6, 3))
    y[1:5] = 2 * x
    y[0] = x[1]
    return y


def filled(x):
    y = x * 3
    y[AT[:2]] = x[:2]
    y[3, 1] = x[0, 0]
    return y


# A function of a (4, 3) array, and the class of its cotangent for rows.
LINEAR = {
    "scaling": (lambda x: 2 * x, Rows),
    "products with arrays": (lambda x: np.arange(3.0) * x / X[:, :1].clip(1), Rows),
    "nonlinear": (lambda x: np.sin(x) * x, Rows),
    "a gather": (lambda x: (2 * x)[AT], Rows),
    "a gather twice": (lambda x: np.sin(np.sin(x)[AT])[AT[:2]], Rows),
    "a mask": (lambda x: (2 * x)[MASK], Rows),
    "elements": (lambda x: (2 * x)[AT, [0, 1, 1, 2]], Coo),
    "mixed": (lambda x: (2 * x)[1:, [2, 0]], Coo),
    "a slice": (lambda x: (2 * x)[1:3], Rows),
    "steps back": (lambda x: (2 * x)[::-2], Rows),
    "a column": (lambda x: (2 * x)[:, 1], Coo),
    "a new axis": (lambda x: (2 * x)[:, None, 1:], Coo),
    "a row and an element": (lambda x: (2 * x)[1] * x[2, 1], Coo),
    "leading axes": (lambda x: np.sin(x.reshape(2, 2, 3)) * 2, Rows),
    "leading axes of a value": (lambda x: (2 * x).reshape(2, 2, 3), Rows),
    "a line": (lambda x: (x * x).reshape(-1) * 2, Coo),
    "turned": (lambda x: (2 * x).T * X.T, Coo),
    "more axes": (lambda x: np.stack([2 * x, x]).transpose(1, 0, 2), Coo),
    "a sum": (lambda x: 2 * x + np.sin(x), Rows),
    "a difference": (lambda x: x[1:] * 2 - (3 * x)[:-1], Rows),
    "a sum over the last axis": (lambda x: np.sum(x * x, axis=1), Rows),
    "a sum over the first axis": (lambda x: np.sum(x * x, axis=0), Coo),
    "a sum that is kept": (lambda x: x / np.sum(x * x + 1, axis=1, keepdims=True), Rows),
    "broadcast": (lambda x: (2 * x)[1] * np.ones((4, 1)), Rows),
    "joined": (lambda x: np.concatenate([2 * x, x[:1]]), Rows),
    "matmul": (lambda x: np.sin(x) @ W, Rows),
    "matmul of a vector": (lambda x: np.sin(x) @ W[:, 0], Rows),
    "matmul of the argument": (lambda x: x @ W, Rows),
    "layers": (lambda x: np.tanh(np.tanh(x @ W) @ W.T), Rows),
    "matmul from the left": (lambda x: W.T @ np.sin(x).T, np.ndarray),
    "where": (lambda x: np.where(X > 0.5, 2 * x, 0.0), Rows),
    "written": (written, Coo),
    "filled": (filled, Coo),
}
READS_ALL = {
    "contracted": lambda x: X.T @ np.sin(x),
    "a running sum": lambda x: np.cumsum(2 * x, axis=0),
    "beside something dense": lambda x: np.stack([2 * x, np.ones_like(x) * np.sum(x)]),
    "a vector in front": lambda x: X[:, 0] @ np.sin(x),
    "letters": lambda x: np.einsum("ij,jk->ik", np.sin(x), W),
}


def rows(y):
    values = np.cos(np.arange(y[[0, 0]].size)).reshape(y[[0, 0]].shape)
    return Rows([len(y) - 2, 0], values, y.shape)


def cells(y):
    return Coo([0, y.size - 1, 0], [1.0, -2.0, 0.5], y.shape)


def several(y):
    return rows(y) + cells(y)


GIVEN = (rows, cells, several)


@pytest.mark.parametrize("make", GIVEN)
@pytest.mark.parametrize("name", [*LINEAR, *READS_ALL])
def test_a_builder_is_pulled_as_its_array_is(name, make):
    f = LINEAR[name][0] if name in LINEAR else READS_ALL[name]
    y, pull = lineara.vjp(f, X)
    w = make(y)
    (expected,) = pull(w.finish())
    (dense,) = pull(w)
    assert type(dense) is np.ndarray
    np.testing.assert_allclose(dense, expected, rtol=1e-13, atol=1e-14)
    L = lineara.linearize(f, X)[1]
    for g in (lineara.vjp(f, X, sparse=True)[1](w)[0], L.T @ w, w @ L, L.T.T.T @ w):
        np.testing.assert_allclose(np.asarray(g), expected, rtol=1e-13, atol=1e-14)
    assert type(L.T @ w.finish()) is np.ndarray


@pytest.mark.parametrize("name", LINEAR)
def test_rows_stay_rows_or_cells_unless_they_are_contracted(name):
    f, kind = LINEAR[name]
    y, pull = lineara.vjp(f, X, sparse=True)
    assert type(pull(rows(y))[0]) is kind
    assert isinstance(pull(cells(y))[0], Rows | Coo)


@pytest.mark.parametrize("name", ["a gather", "matmul", "leading axes"])
def test_a_map_of_maps_keeps_builders(name):
    f = LINEAR[name][0]
    L, M = lineara.linearize(f, X)[1], lineara.linearize(lambda x: np.sin(x) * 2, X)[1]
    w = rows(f(X))
    for whole in (L @ M, L @ M + 2 * (L @ M), -(L @ M) / 3):
        g = whole.T @ w
        assert isinstance(g, Rows)
        np.testing.assert_allclose(np.asarray(g), whole.T @ w.finish(), rtol=1e-13)


def test_forward_a_builder_is_its_array():
    for f, _ in LINEAR.values():
        L = lineara.linearize(f, X)[1]
        for v in (rows(X), cells(X)):
            np.testing.assert_allclose(L @ v, L @ v.finish(), rtol=1e-13, atol=1e-15)


def test_several_results_arguments_and_dense_neighbours():
    def f(p):
        return {"a": np.sin(p["t"])[AT], "b": p["t"][1] * p["c"], "n": np.sum(p["t"][0])}

    p = {"t": X, "c": 2.0}
    _, pull = lineara.vjp(f, p, sparse=True)
    w = {"a": Rows([1, 3], np.ones((2, 3)), (4, 3)), "b": np.arange(3.0), "n": 0.5}
    (g,) = pull(w)
    (expected,) = lineara.vjp(f, p)[1](w | {"a": w["a"].finish()})
    assert type(g["t"]) is Rows
    assert g["c"] == expected["c"]
    np.testing.assert_allclose(np.asarray(g["t"]), expected["t"], rtol=1e-14)


def test_what_no_cell_reaches_is_zero_times_infinity_too():
    f = lambda x: np.sqrt(x)[1:]  # noqa: E731
    x = np.array([1.0, 0.0, 4.0, 9.0])
    w = Coo([1, 0], [1.0, 0.0], (3,))  # the zero given is structural, as in an array
    L = lineara.linearize(f, x)[1]
    np.testing.assert_array_equal(np.asarray(L.T @ w), [0.0, 0.0, 0.25, 0.0])
    np.testing.assert_array_equal(L.T @ w.finish(), [0.0, 0.0, 0.25, 0.0])
    g = lineara.linearize(lambda x: np.where(x > 0, np.sqrt(x), 0.0) @ np.ones((4, 1)), x)[1]
    np.testing.assert_array_equal(np.asarray(g.T @ Coo([0], [1.0], (1,)))[1:3], [0.0, 0.25])
    nan = Coo([2], [np.nan], (3,))
    assert np.isnan(np.asarray(L.T @ nan)[3])


@pytest.mark.parametrize("dtype", [np.float32, np.complex128])
def test_other_dtypes(dtype):
    x = X.astype(dtype) * (1 + 1j if dtype is np.complex128 else 1)
    for name in ("nonlinear", "a gather", "matmul", "a sum over the last axis"):
        f = LINEAR[name][0]
        y, pull = lineara.vjp(f, x, sparse=True)
        w = Rows([1], np.ones_like(y[[1]]), y.shape)
        (g,) = pull(w)
        assert type(g) is Rows
        assert g.dtype == x.dtype
        (expected,) = pull(w.finish())
        np.testing.assert_allclose(np.asarray(g), np.asarray(expected), rtol=2e-6)


def test_other_builders_and_zero():
    _, pull = lineara.vjp(lambda x: 2 * x, X, sparse=True)
    np.testing.assert_array_equal(pull(LowRank(X[:, :1], X[:3, 1:2]))[0].shape, X.shape)
    assert type(pull(Zero(X.shape))[0]) is Zero
    _, pull = lineara.vjp(lambda x: x[1, 1] * 2, X)
    assert pull(Coo([0], [3.0], ()))[0][1, 1] == 6.0


def test_it_is_differentiated_and_staged_as_its_array():
    def by(w):
        return lambda x: np.sum(lineara.vjp(lambda x: np.sin(x)[AT], x)[1](w)[0] ** 2)

    w = Rows([1, 2], np.ones((2, 3)), (4, 3))
    expected = lineara.grad(by(w.finish()))(X)
    np.testing.assert_allclose(lineara.grad(by(w))(X), expected, rtol=1e-13)
    np.testing.assert_allclose(lineara.hessian(by(w))(X), lineara.hessian(by(w.finish()))(X))


INDICES = [
    0, -1, slice(None), slice(1, None, 2), slice(None, None, -1), slice(2, 2), ..., None,
    (1, 2), (1, ..., -2), (..., 0), (None, 1, ..., None), (slice(None), 1), (slice(1, 3), ..., 2),
    np.array([2, 0, 2, -1]), (slice(None), np.array([1, 1, 0])), (..., np.array([[3], [0]])),
    (np.array([1, 0]), np.array([2, 1])), (np.array([[1], [0]]), np.array([2, 1])),
    (np.array([1, 0]), slice(None), np.array([2, 1])), (0, slice(None), np.array([2, 1, 1])),
    (slice(1, None), np.array([2, 1]), 0), (0, np.array([1, 2])), np.array([], int),
    np.array([True, False, True]), (slice(None), np.arange(16).reshape(4, 4) % 3 == 0),
    (np.arange(12).reshape(3, 4) % 5 == 0,), (1, 1, 1), (np.array([1, 1]), 2, 3),
]  # fmt: skip


def sparse(shape, tail, seed=0):
    """A sparse vector with blocks of some axes, some of them twice, and its array."""
    rng = np.random.default_rng(seed)
    lead = shape[: len(shape) - tail]
    at = rng.integers(0, max(1, int(np.prod(lead))), 4 if np.prod(lead) else 0)
    values = rng.normal(size=(len(at), *shape[len(shape) - tail :]))
    v = SparseVector(shape, at, values, 1)
    return v, np.array(v.v)


@pytest.mark.parametrize("tail", range(4))
def test_primitives_move_blocks_as_they_move_arrays(tail):
    def same(y, expected):
        assert isinstance(y, SparseVector) or not expected.shape
        assert np.shape(y) == expected.shape
        np.testing.assert_allclose(getattr(y, "v", y), expected, atol=1e-13)

    for at in INDICES:
        shape = (3, 4, 4)
        x, a = sparse(shape, tail)
        same(op("index")(x, at=at), np.asarray(a[at]))
        part = a[at]
        if np.ndim(part):
            y, b = sparse(part.shape, min(tail, part.ndim), 1)
            same(op("scatter")(y, at=at, shape=shape), op("scatter")(b, at=at, shape=shape))
    x, a = sparse((2, 6, 4), tail)
    for shape in [
        (12, 4),
        (2, 2, 3, 4),
        (48,),
        (2, 24),
        (1, 2, 6, 1, 4),
        (2, 6, 2, 2),
        (8, 6),
        (-1, 8),
    ]:
        same(op("reshape")(x, shape=shape), a.reshape(shape))
    for axes in itertools.permutations(range(3)):
        same(op("permute_dims")(x, axes=axes), a.transpose(axes))
    for k in range(1, 4):
        for axis in itertools.combinations(range(3), k):
            same(op("sum")(x, axis=axis, keepdims=False), a.sum(axis))
    x, a = sparse((3, 1, 4), tail)
    for shape in [(3, 2, 4), (5, 3, 1, 4), (2, 3, 6, 4)]:
        same(op("broadcast_to")(x, shape=shape), np.broadcast_to(a, shape))
    x, a = sparse((4, 3, 2), tail)
    for offset, steps in [
        (0, (6, 2, 1)),
        (5, (6, 2, 1)),
        (1, (12, 2, 1)),
        (24, (-6, 2, 1)),
        (0, (1, 4, 12)),
    ]:
        whole = np.zeros(60)
        for i in np.ndindex(a.shape):
            whole[offset + np.dot(i, steps)] += a[i]
        same(x.at_strides(offset, steps, (10, 3, 2)), whole.reshape(10, 3, 2))


BIG = {
    "a gather": lambda t: np.tanh(t)[:-1] * 3,
    "leading axes": lambda t: (2 * t).reshape(-1, 10, t.shape[1])[1:],
    "matmul": lambda t: np.sin(t) @ np.ones((t.shape[1], 3)),
    "a sum": lambda t: np.sum(t * t + t[::-1], axis=1),
    "turned": lambda t: np.sin(t.T),
}


@pytest.mark.parametrize("name", BIG)
def test_nothing_of_the_size_of_the_argument_is_made(name):
    def peak(n):
        y, L = lineara.linearize(BIG[name], np.ones((n, 2)))
        w = Coo([3, y.size - 1], [1.0, 2.0], y.shape)

        def pulled():
            with lineara.strict():
                return L.T @ w

        pulled()
        return count_bytes(pulled)

    peak(100)  # what is made once in a process
    assert peak(100_000) < 1.2 * peak(1_000) + 2_000
    assert peak(100_000) < 40_000
