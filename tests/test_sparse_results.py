"""Sparse gradients: their class follows from the operations, their value equals the dense one."""

import copy
import enum
import pickle
import tracemalloc
import warnings
from collections import OrderedDict, defaultdict, deque
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
from call_counts import lines
from hypothesis import given, settings
from hypothesis import strategies as st

import lineara
from lineara import Coo, LowRank, Rows, Zero, combine, finish
from lineara.cotangent import Builder
from lineara.errors import DensifyWarning, LinearaError, StructureError
from lineara.testing import count_calls
from lineara.trees import flatten, map_leaves

W = np.random.default_rng(0).standard_normal((40, 6))
V = np.random.default_rng(1).standard_normal(50)
AT = np.array([3, 7, 3])


def sparse(f: Any, x: Any) -> Any:
    """The sparse gradient; it equals the dense one."""
    g = lineara.grad(f, sparse=True)(x)
    expected = lineara.grad(f)(x)
    found = np.asarray(finish(g)) if isinstance(g, Builder) else g
    assert np.allclose(found, expected, rtol=1e-13, atol=1e-13)
    return g


# --- the class of the result ---------------------------------------------------------------------

ROWS = {
    "an index array": lambda w: np.sin(w[AT]).sum(),
    "a list": lambda w: w[[1, 2]].prod(),
    "negative indices": lambda w: (w[np.array([-1, -40, 3])] ** 2).sum(),
    "a mask of rows": lambda w: w[np.arange(40) % 7 == 0].sum(),
    "one row": lambda w: w[5] @ w[6],
    "a slice of rows": lambda w: np.exp(w[3:9:2]).sum(),
    "rows backwards": lambda w: (w[9:3:-1] ** 3).sum(),
    "rows by iteration": lambda w: sum((r**2).sum() for r in list(w)[:3]),
    "take": lambda w: np.take(w, AT, axis=0).sum() ** 2,
    "rows of a slice": lambda w: np.sin(w[10:][AT]).sum(),
    "two dimensions of indices": lambda w: (w[np.array([[1, 2], [2, 3]])] ** 2).sum(),
    "rows and slices": lambda w: w[AT].sum() + w[1:3].sum() + w[0].sum(),
    "tuple with a slice": lambda w: (w[AT, :] ** 2).sum(),
}
COO = {
    "an element": lambda w: w[1, 2] * w[3, 4],
    "elements of rows": lambda w: w[1][2] * w[-1][-1] ** 2,
    "elements by arrays": lambda w: (w[AT, [0, 1, 2]] ** 2).sum(),
    "a column": lambda w: np.sin(w[:, 2]).sum(),
    "a part of rows": lambda w: (w[3:5, 1:3] ** 2).sum(),
    "the diagonal": lambda w: sum(w[i, i] for i in range(5)),
    "elements and rows": lambda w: w[1, 2] * w[3].sum(),
    "a row of the transpose": lambda w: (w.T[2] ** 2).sum(),
}
LOW_RANK = {
    "a product": lambda w: np.sin(w @ np.ones(6)).sum(),
    "a product from the left": lambda w: np.sin(np.ones(40) @ w).sum(),
    "two products": lambda w: (w @ np.arange(6.0)).sum() * (w @ np.ones(6))[0],
    "the transpose": lambda w: np.sin(w.T @ np.ones(40)).sum(),
    "np.dot": lambda w: (np.dot(w, np.ones(6)) ** 2).sum(),
}
DENSE = {
    "elementwise": lambda w: np.sin(w).sum(),
    "a sum": lambda w: w.sum(),
    "rows and elementwise": lambda w: w[AT].sum() + (w * w).sum(),
    "products of high rank": lambda w: (w @ np.ones((6, 6))).sum(),
    "a product and a row": lambda w: (w @ np.ones(6)).sum() + w[1].sum(),
    "all of the transpose": lambda w: np.sin(w.T).sum(),
    "all under another shape": lambda w: np.sin(w.reshape(-1)).sum(),
    "all as a view": lambda w: np.sin(w[:]).sum(),
}
NOTHING = {
    "not read": lambda w: 1.5,
    "shape only": lambda w: float(w.shape[0]),
    "compared": lambda w: 2.0 if (w > 0).any() else 3.0,
    "read in vain": lambda w: (w[AT] * 1.0, 2.0)[1],
}


@pytest.mark.parametrize("name", ROWS)
def test_rows(name: str) -> None:
    g = sparse(ROWS[name], W)
    assert type(g) is Rows
    assert g.shape == W.shape
    assert g.dtype == W.dtype


@pytest.mark.parametrize("name", COO)
def test_coo(name: str) -> None:
    assert type(sparse(COO[name], W)) is Coo


@pytest.mark.parametrize("name", LOW_RANK)
def test_low_rank(name: str) -> None:
    g = sparse(LOW_RANK[name], W)
    assert type(g) is LowRank
    assert g.rank <= 2


@pytest.mark.parametrize("name", DENSE)
def test_dense(name: str) -> None:
    assert type(sparse(DENSE[name], W)) is np.ndarray


@pytest.mark.parametrize("name", NOTHING)
def test_zero(name: str) -> None:
    g = sparse(NOTHING[name], W)
    assert type(g) is Zero
    assert not g
    assert (g + W) is W or np.array_equal(finish(g + W), W)


def test_elements_of_vectors_are_rows() -> None:
    assert type(sparse(lambda v: np.sin(v[3]) * v[-1] + v[2:4].sum() + v[AT].prod(), V)) is Rows


@pytest.mark.parametrize("scale", [0.0, 1.0, np.nan, 1e300])
def test_the_class_does_not_depend_on_values(scale: float) -> None:
    for table, kind in ((ROWS, Rows), (COO, Coo), (LOW_RANK, LowRank), (DENSE, np.ndarray)):
        for f in table.values():
            with np.errstate(all="ignore"):
                g = lineara.grad(lambda w, f=f: f(w) * scale + 1.0, sparse=True)(W * scale)
            assert type(g) is kind


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 8), st.integers(-40, 39), st.integers(-6, 5)), max_size=6))
def test_sparse_equals_dense(reads: Any) -> None:
    def f(w: Any) -> Any:
        total = 1.0
        for kind, i, j in reads:
            part = [
                lambda i=i, j=j: w[i, j],
                lambda i=i: w[i],
                lambda i=i, j=j: w[[i, j, i]],
                lambda j=j: w[:, j],
                lambda i=i: w[abs(i) :: 3],
                lambda i=i, j=j: w.T[j, i],
                lambda i=i, j=j: w[5:].T[j][[i // 2, 1]],
                lambda i=i, j=j: w.reshape(-1)[[i, j]],
                lambda: w.T[2:][::-1],
            ][kind]()
            total = total * 0.5 + np.sin(part).sum()
        return total

    g = lineara.grad(f, sparse=True)(W)
    assert isinstance(g, Builder) == (not any(kind == 8 and False for kind, _, _ in reads))
    assert np.allclose(finish(g), lineara.grad(f)(W), rtol=1e-12, atol=1e-13)


# --- containers ----------------------------------------------------------------------------------


@dataclass
class Model:
    """Two tables and a vector."""

    emb: Any
    out: Any
    bias: Any = 0.5


def test_containers_keep_their_type_and_missing_parts_are_zero() -> None:
    m = {"a": Model(W, W * 2, V), "unused": [W, V, 3.0], "name": "m"}

    def f(p: Any) -> Any:
        a = p["a"]
        return (a.emb[AT] @ a.out[1]).sum() + a.bias.sum()

    g = lineara.grad(f, sparse=True)(m)
    assert isinstance(g["a"], Model)
    assert type(g["a"].emb) is Rows
    assert type(g["a"].out) is Rows
    assert type(g["a"].bias) is np.ndarray
    assert "unused" not in g or all(not v for v in g["unused"])
    whole = finish(g, m)
    dense = lineara.grad(f)(m)
    assert np.allclose(whole["a"].emb, dense["a"].emb)
    assert np.array_equal(whole["unused"][0], dense["unused"][0])


class Colour(enum.Enum):
    """A label."""

    RED = 1


class Pair(NamedTuple):
    """Two tables."""

    a: Any
    b: Any


class Plain:
    """A class of the user, who declared nothing."""

    def __init__(self, **held: Any) -> None:
        vars(self).update(held)


LABELS = {"name": "n", "none": None, "colour": Colour.RED, "flag": True}
HOLDERS = {
    "a namespace": lambda held: SimpleNamespace(**held),
    "a plain class": lambda held: Plain(**held),
    "an ordered dict": OrderedDict,
    "a defaultdict": lambda held: defaultdict(list, held),
    "a dict": dict,
}


def read(x: Any, key: str) -> Any:
    return x[key] if isinstance(x, dict) else getattr(x, key)


@pytest.mark.parametrize("name", HOLDERS)
def test_every_field_of_a_container_has_its_gradient(name: str) -> None:
    held = {"w": W, "u": V, "x": 2.0, "k": 3, "z": V + 1j, "f": W.astype("f"), **LABELS}
    p = HOLDERS[name](held)
    g = lineara.grad(lambda p: read(p, "w")[AT].sum(), sparse=True)(p)
    dense = lineara.grad(lambda p: read(p, "w")[AT].sum())(p)
    assert isinstance(g, type(p))
    assert type(read(g, "w")) is Rows
    for key, like in {"u": V, "z": V + 1j, "f": held["f"]}.items():
        zero = read(g, key)
        assert (type(zero), zero.shape, zero.dtype) == (Zero, like.shape, like.dtype)
    for key in ("x", "k", *LABELS):
        assert read(g, key) == read(dense, key)
        assert type(read(g, key)) is type(read(dense, key))
    for key, x in held.items():
        if isinstance(x, np.ndarray):
            x = x.copy()
            x -= 0.1 * read(g, key)
            assert np.allclose(x, held[key] - 0.1 * read(dense, key))


def test_sequences_have_a_zero_for_each_element() -> None:
    for p in ([W, V, "s", 2.0, 3], (W, V, "s", 2.0, 3), Pair(W, V)):
        g = lineara.grad(lambda p: p[0][AT].sum(), sparse=True)(p)
        assert isinstance(g, type(p))
        assert [type(g[0]), type(g[1])] == [Rows, Zero]
        assert list(g)[2:] == [x if type(x) is str else 0.0 for x in list(p)[2:]]
    g = lineara.grad(lambda p: p[0][AT].sum(), sparse=True)([W, deque([W, "s"], maxlen=5)])
    assert (type(g[1]), g[1].maxlen, g[1][1], type(g[1][0])) == (deque, 5, "s", Zero)


def test_untouched_containers_are_zeros_at_any_depth() -> None:
    deep = SimpleNamespace(l=[W, {"v": V, "n": "label"}], t=(Model(W, V),), d={"w": [W]})
    p = Model(W, [deep, V], deque([V]))
    g = lineara.grad(lambda p: p.emb[AT].sum(), sparse=True)(p)
    below = g.out[0]
    assert isinstance(below, SimpleNamespace)
    assert isinstance(below.l, list)
    zeros = (g.out[1], g.bias[0], below.l[0], below.l[1]["v"], below.t[0].emb, below.d["w"][0])
    assert [type(zero) for zero in zeros] == [Zero] * 6
    assert below.l[1].get("n") == "label"
    assert "Zero(40 x 6, float64)" in repr(below)


def test_a_dict_holds_what_was_touched_and_answers_for_the_rest() -> None:
    p = {"a": W, "b": {"c": V, "n": "label"}, "k": 3}
    g = lineara.grad(lambda p: p["a"][AT].sum(), sparse=True)(p)
    assert list(g) == ["a"]
    assert type(g["b"]["c"]) is Zero
    assert (g["b"]["n"], g["k"], g.get("k")) == ("label", 0.0, 0.0)
    assert g.get("nothing") is None
    with pytest.raises(KeyError):
        g["nothing"]
    assert "nothing" not in g
    assert flatten(g)[0] == [g["a"]]
    stepped = map_leaves(lambda x, d: x if type(x) is str else x - 0.1 * d, p, g)
    assert np.allclose(stepped["a"], W - 0.1 * np.asarray(g["a"]))
    assert np.array_equal(stepped["b"]["c"], V)
    assert stepped["b"]["n"] == "label"
    with pytest.raises(StructureError, match=r"\['d'\] only in the first"):
        map_leaves(lambda x, d: x, p | {"d": 1.0}, g)


@pytest.mark.parametrize("make", [list, tuple])
def test_a_long_sequence_of_containers(make: Any) -> None:
    layers = make({"w": W.copy(), "b": V.copy()} for _ in range(100))
    g = lineara.grad(lambda p: p[3]["w"][AT].sum() + p[-1]["b"][0], sparse=True)(layers)
    assert isinstance(g, make)
    assert len(g) == 100
    for layer, d in zip(layers, g, strict=True):
        for key in layer:
            layer[key] -= 0.1 * d[key]
    assert np.array_equal(layers[2]["w"], W)
    assert layers[3]["w"][7, 0] == W[7, 0] - 0.1
    assert layers[99]["b"][0] == V[0] - 0.1
    assert type(list(g)[98]["b"]) is Zero


def test_zeros_that_are_made_lazily_can_be_copied_and_sent() -> None:
    p = {"m": Model(W, [W, V], {"v": V}), "l": [{"w": W} for _ in range(100)], "u": V}
    g = lineara.grad(lambda p: p["m"].emb[AT].sum() + p["l"][70]["w"][0].sum(), sparse=True)(p)
    for twin in (pickle.loads(pickle.dumps(g)), copy.deepcopy(g)):
        assert type(twin) is dict
        assert list(twin) == ["m", "l"]
        assert type(twin["m"].out) is list
        assert type(twin["m"].out[1]) is Zero
        assert twin["l"][70]["w"] == g["l"][70]["w"]
    assert len(pickle.dumps(g)) < W.nbytes * 10


def test_zeros_cost_what_is_looked_at() -> None:
    def calls(n: int) -> int:
        big = [Model(W, [W] * n, {str(i): W for i in range(n)}) for _ in range(n)]
        p = Model(W, big, [big, (big,)])
        gradient = lineara.grad(lambda p: p.emb[1].sum(), sparse=True)
        gradient(p)
        return count_calls(lambda: gradient(p))

    assert calls(300) <= calls(3) + 10


def test_sparse_by_name() -> None:
    m = {"a": Model(W, W * 2, V), "b": [W]}

    def f(p: Any) -> Any:
        return (p["a"].emb[AT] ** 2).sum() + p["a"].out[1].sum() + p["b"][0][2].sum()

    g = lineara.grad(f, sparse=("emb",))(m)
    assert type(g["a"].emb) is Rows
    assert type(g["a"].out) is np.ndarray
    assert type(g["b"][0]) is np.ndarray
    h = lineara.grad(f, sparse="a.out")(m)
    assert type(h["a"].out) is Rows
    assert type(h["a"].emb) is np.ndarray
    with pytest.raises(StructureError, match="which is no leaf"):
        lineara.grad(f, sparse=("embedding",))(m)


def test_several_arguments() -> None:
    g, h = lineara.grad(lambda w, v: (w[AT] @ w[1]).sum() * v[2], (0, 1), sparse=True)(W, V)
    assert type(g) is Rows
    assert type(h) is Rows
    value, k = lineara.value_and_grad(lambda w: w[1].sum(), sparse=True)(W)
    assert abs(value - W[1].sum()) < 1e-14
    assert type(k) is Rows


def test_single_precision_and_complex_leaves() -> None:
    g = lineara.grad(lambda w: (w[AT] ** 2).sum(), sparse=True)(W.astype(np.float32))
    assert g.dtype == np.float32
    z = W + 1j * W[::-1]
    h = lineara.grad(lambda w: (abs(w[AT]) ** 2).sum(), sparse=True)(z)
    assert h.dtype == np.complex128
    assert np.allclose(finish(h), lineara.grad(lambda w: (abs(w[AT]) ** 2).sum())(z))


# --- what users do with them ---------------------------------------------------------------------


def test_a_step_of_descent_scatters_into_the_table() -> None:
    for table in (ROWS, COO, LOW_RANK, DENSE, NOTHING):
        for f in table.values():
            w, v = W.copy(), W.copy()
            w -= 0.1 * lineara.grad(f, sparse=True)(w)
            v -= 0.1 * lineara.grad(f)(v)
            assert type(w) is np.ndarray
            assert np.allclose(w, v, rtol=0, atol=1e-14)


def test_builders_of_chunks_combine() -> None:
    data = np.arange(12).reshape(4, 3)

    def loss(w: Any, rows: Any) -> Any:
        return np.sin(w[rows]).sum() + w[0, 1] * w[2].sum()

    chunks = [lineara.grad(loss, out="builder")(W, rows) for rows in data]
    whole = lineara.grad(lambda w: sum(loss(w, rows) for rows in data))(W)
    assert all(isinstance(c, Builder) for c in chunks)
    assert np.allclose(finish(combine(chunks), W), whole, atol=1e-13)
    trees = [
        lineara.grad(lambda p, r: loss(p["w"], r), out="builder")({"w": W, "v": V}, r) for r in data
    ]
    found = finish(combine(trees), {"w": W, "v": V})
    assert np.allclose(found["w"], whole, atol=1e-13)
    assert np.array_equal(found["v"], 0 * V)


def test_sparse_gradients_inside_another_gradient() -> None:
    def outer(s: Any) -> Any:
        g = lineara.grad(lambda w: (w[AT] ** 2).sum() * s, sparse=True)(W)
        return np.sum(g * g) if not isinstance(g, Builder) else finish(g).sum()

    expected = 2 * 2.0 * (lineara.grad(lambda w: (w[AT] ** 2).sum())(W) ** 2).sum()
    assert abs(lineara.grad(outer)(2.0) - expected) < 1e-9


def test_hessian_vector_products_with_sparse_gradients() -> None:
    f = ROWS["an index array"]
    v = np.ones_like(W)
    _, d = lineara.jvp(lambda w: lineara.grad(f)(w), (W,), (v,))
    expected = np.zeros_like(W)
    np.add.at(expected, AT, -np.sin(W[AT]))
    assert np.allclose(d, expected)


# --- nothing of the size of a large leaf is made -------------------------------------------------

N = 10_000_000


@pytest.fixture(scope="module")
def large() -> np.ndarray:
    return np.zeros(N)


READS = {
    "untouched": lambda x: 1.0,
    "elements": lambda x: x[3] * x[-1],
    "a slice": lambda x: np.sin(x[10:20]).sum(),
    "a gather": lambda x: (x[np.array([1, 2, N - 1])] + 1).prod(),
    "a matrix view": lambda x: np.exp(x.reshape(1000, -1)[3, 4:6]).sum(),
    "rows of a matrix view": lambda x: np.exp(x.reshape(-1, 10)[[3, 5]]).sum(),
    "rows of a transpose": lambda x: np.exp(x.reshape(10, -1).T[[3, 5]]).sum(),
    "every other": lambda x: np.cos(x[::2][4:8]).sum(),
}


@pytest.mark.parametrize("name", READS)
def test_memory_follows_what_is_touched(name: str, large: np.ndarray) -> None:
    f, few = READS[name], np.zeros(3)
    few -= 0.0 * lineara.grad(lambda x: x[[1, 2]].sum(), sparse=True)(few)  # imports
    tracemalloc.start()
    g = lineara.grad(f, sparse=True)(large)
    large -= 0.0 * g
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert isinstance(g, Builder)
    assert peak < 2_000_000
    assert large.flags.writeable


def test_a_dense_gradient_of_something_large_is_no_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", DensifyWarning)
        lineara.grad(lambda x: x[3] ** 2)(np.zeros(3_000_000))


def test_strict_refuses_to_make_a_large_gradient_dense(large: np.ndarray) -> None:
    g = lineara.grad(lambda x: x[3] ** 2, sparse=True)(large)
    with lineara.strict(), pytest.raises((DensifyWarning, LinearaError)):
        np.cos(g)


def test_memory_is_free_when_the_gradient_is() -> None:
    x = np.ones(300_000)

    def f(v: Any) -> Any:
        y = v[1:] * v[:-1]
        y[2:5] += v[:3]
        return np.sin(y).sum() + v.reshape(1000, -1).T[3].sum()

    lineara.grad(f)(x)
    tracemalloc.start()
    for _ in range(3):
        lineara.grad(f)(x)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < x.nbytes


# --- long containers of numbers -------------------------------------------------------------------


@pytest.mark.parametrize("kind", [list, tuple])
def test_the_python_that_runs_follows_the_numbers_that_were_used(kind):
    g = lineara.grad(lambda x: x[5] ** 2 + x[-1], sparse=True)
    short, long = (kind(map(float, range(n))) for n in (100, 20_000))
    assert lines(lambda: g(long)) < lines(lambda: g(short)) + 100
    gradient = g(long)
    assert isinstance(gradient, kind)
    assert gradient == lineara.grad(lambda x: x[5] ** 2 + x[-1])(long)
    gradient = g(kind([*map(float, range(9)), "a", None, 3, np.float32(2)]) + kind([1.0]))
    assert gradient == kind([*[0.0] * 5, 10.0, *[0.0] * 3, "a", None, 0.0, 0.0, 1.0])


@pytest.mark.parametrize("make", [list, lambda x: dict(enumerate(x))])
def test_a_number_that_was_not_used_is_a_zero_at_once(make: Any) -> None:
    g = lineara.grad(lambda x: x[5] ** 2)
    few, many = (make(map(float, range(n))) for n in (100, 2_100))
    assert lines(lambda: g(many)) - lines(lambda: g(few)) < 12 * 2_000
