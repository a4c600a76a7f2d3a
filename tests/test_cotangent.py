"""Sparse cotangents: the laws of the monoid, NumPy's algebra, and the bytes they do not take."""

import math
import pickle
import warnings
from collections import OrderedDict, defaultdict, deque, namedtuple
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from itertools import permutations
from multiprocessing import get_context
from operator import add
from types import SimpleNamespace
from typing import NamedTuple

import attrs
import numpy as np
import pytest
from chunks import chunk_gradient
from hypothesis import given
from hypothesis import strategies as st

from lineara import grad
from lineara.cotangent import (
    LARGE_BYTES,
    Coo,
    Dense,
    LowRank,
    Record,
    Rows,
    Sum,
    Zero,
    combine,
    finish,
    from_wire,
    scatter_add,
    sparse_pays,
    strict,
    to_wire,
    zero,
)
from lineara.cotangent.scatter import sum_columns
from lineara.errors import (
    DensifyWarning,
    RuleError,
    ShapeError,
    StructureError,
    TypeMismatchError,
)
from lineara.testing import check_builder, count_bytes, count_calls
from lineara.trees import flatten

M, N = 7, 5
SHAPE = (M, N)
DTYPES = (np.float32, np.float64, np.complex64, np.complex128)
KINDS = ("zero", "rows", "columns", "coo", "lowrank", "dense", "sum")


# ---- oracles: each kind, and the dense array it stands for, made one element at a time


def numbers(rng, shape, dtype=np.float64):
    """Small integers, so that every sum is exact in every dtype."""
    real = rng.integers(-4, 5, shape)
    imaginary = rng.integers(-4, 5, shape) if np.dtype(dtype).kind == "c" else 0
    return (real + 1j * imaginary if np.dtype(dtype).kind == "c" else real).astype(dtype)


def dense_rows(indices, values, shape, axis):
    out = np.zeros(shape, values.dtype)
    for k, i in enumerate(indices):
        out[(slice(None),) * axis + (i,)] += np.take(values, k, axis)
    return out


def pair(kind, seed, dtype=np.float64, m=6):
    """A builder of `kind`, and its value."""
    rng = np.random.default_rng(seed)
    if kind == "zero":
        return Zero(SHAPE, dtype), np.zeros(SHAPE, dtype)
    if kind in ("rows", "columns"):
        axis = int(kind == "columns")
        i = rng.integers(0, SHAPE[axis], m)
        v = numbers(rng, (m, N) if axis == 0 else (M, m), dtype)
        return Rows(i, v, SHAPE, axis), dense_rows(i, v, SHAPE, axis)
    if kind == "coo":
        flat, v = rng.integers(0, M * N, m), numbers(rng, m, dtype)
        return Coo(flat, v, SHAPE), dense_rows(flat, v, (M * N,), 0).reshape(SHAPE)
    if kind == "lowrank":
        u, v = numbers(rng, (M, 2), dtype), numbers(rng, (N, 2), dtype)
        return LowRank(u, v), np.einsum("ik,jk->ij", u, v)
    if kind == "dense":
        a = numbers(rng, SHAPE, dtype)
        return Dense(a), a
    terms = [pair(k, seed + j, dtype) for j, k in enumerate(("rows", "coo", "lowrank"))]
    return Sum(*(b for b, _ in terms)), sum(d for _, d in terms)


kinds = st.sampled_from(KINDS)
seeds = st.integers(0, 10_000)
dtypes = st.sampled_from(DTYPES)


def same(found, wanted):
    np.testing.assert_array_equal(np.asarray(found), wanted)


def make_samples(*chosen):
    return lambda n: [pair(kind, seed, m=n)[0] for seed, kind in enumerate(chosen)]


# ---- the monoid


@pytest.mark.parametrize("kind", KINDS)
def test_builders_of_one_kind_are_a_commutative_monoid(kind):
    check_builder(make_samples(kind, kind, kind))


def test_builders_of_all_kinds_are_one_commutative_monoid():
    check_builder([pair(kind, seed)[0] for seed, kind in enumerate(KINDS)])


@pytest.mark.parametrize(
    "samples",
    [
        [1.0, 2.5, -3.0],
        [Fraction(1, 3), Fraction(2, 7)],
        [1 + 2j, 3.0],
        [np.ones(3), np.arange(3.0)],
        [{"w": np.ones(2)}, {"w": np.arange(2.0), "b": 1.0}],
        [(1.0, [2.0]), (3.0, [4.0])],
        [{"w": Rows([0], np.ones((1, 2)), (3, 2))}, {"w": Coo([0], [2.0], (3, 2))}],
    ],
    ids=lambda s: type(s[0]).__name__,
)
def test_numbers_arrays_and_containers_are_commutative_monoids(samples):
    check_builder(samples)


@given(kinds, kinds, seeds, dtypes)
def test_finish_is_a_homomorphism(k1, k2, seed, dtype):
    (a, x), (b, y) = pair(k1, seed, dtype), pair(k2, seed + 1, dtype)
    same(finish(combine([a, b])), x + y)
    same(a + b, x + y)
    same(a - b, x - y)


@given(st.lists(kinds, min_size=3, max_size=3), seeds)
def test_associativity_is_exact_for_any_floats(chosen, seed):
    rng = np.random.default_rng(seed)
    a, b, c = (pair(k, seed + j)[0] * rng.standard_normal() for j, k in enumerate(chosen))
    same((a + b) + c, finish(a + (b + c)))


@given(st.lists(st.tuples(kinds, seeds), min_size=1, max_size=6))
def test_combining_at_once_equals_adding_one_by_one(chosen):
    terms = [pair(k, s)[0] for k, s in chosen]
    same(combine(terms), finish(reduce(add, terms)))


@given(kinds, kinds, seeds)
def test_the_built_in_sum_adds_builders(k1, k2, seed):
    (a, x), (b, y) = pair(k1, seed), pair(k2, seed)
    found = sum([a, b])
    assert type(found) is type(a + b)
    same(found, x + y)
    assert sum([Record({"w": 1.0}), Record({"w": 2.0})])["w"] == 3.0


def test_same_kinds_stay_that_kind_and_mixed_kinds_stay_sparse():
    r, c, u = (pair(k, 0)[0] for k in ("rows", "coo", "lowrank"))
    assert [type(g + g) for g in (r, c, u)] == [Rows, Coo, LowRank]
    assert type(r + c) is Sum
    assert [type(p) for p in (r + c + u + r + c).pieces] == [Rows, Coo, LowRank]
    assert type((r + c).coalesce()) is Coo


def test_zero_is_falsy_and_the_identity_itself():
    g = pair("rows", 3)[0]
    nothing = Zero(SHAPE)
    assert not nothing
    assert nothing + g is g
    assert g + nothing is g
    assert isinstance(nothing + nothing, Zero)
    assert combine([None, g, None]) is g


@given(seeds, dtypes, st.integers(0, 2))
def test_rows_of_any_axis_equal_a_loop(seed, dtype, axis):
    rng = np.random.default_rng(seed)
    shape = (4, 3, 5)
    i = rng.integers(-shape[axis], shape[axis], 8)
    v = numbers(rng, (*shape[:axis], 8, *shape[axis + 1 :]), dtype)
    wanted = dense_rows(i, v, shape, axis)
    g = Rows(i, v, shape, axis)
    for found in (finish(g), finish(g.coalesce()), scatter_add(shape, i, v, axis)):
        same(found, wanted)
        assert found.dtype == dtype
        assert found.flags.c_contiguous
        assert found.flags.writeable
    same(g.T, wanted.T)
    same(finish(g.contributions()), wanted)


@pytest.mark.parametrize("D", [1, 3, 16, 17, 64])
@pytest.mark.parametrize("dtype", [np.float16, *DTYPES, np.longdouble, np.clongdouble, np.int64])
def test_every_scatter_kernel_equals_a_loop(D, dtype):
    rng = np.random.default_rng(D)
    rows, values = rng.integers(0, 9, 40), numbers(rng, (40, D), dtype)
    found = sum_columns(9, rows, values)
    assert found.dtype == dtype
    same(found, dense_rows(rows, values, (9, D), 0))


def test_scatter_without_scipy_is_the_same(monkeypatch):
    rng = np.random.default_rng(0)
    rows, values = rng.integers(0, 9, 40), numbers(rng, (40, 64))
    with_scipy = sum_columns(9, rows, values)
    monkeypatch.setitem(__import__("sys").modules, "scipy.sparse", None)
    same(sum_columns(9, rows, values), with_scipy)


def test_scatter_of_exact_numbers_is_exact():
    thirds = np.array([Fraction(1, 3)] * 6)
    assert scatter_add((4,), [1, 1, 1, 2, 2, 2], thirds).tolist() == [0, 1, 1, 0]


@given(kinds, seeds, st.sampled_from([np.float32, np.float64]))
def test_finish_takes_dtype_from_like_and_shares_no_memory(kind, seed, dtype):
    g, wanted = pair(kind, seed)
    like = np.ones(SHAPE, dtype)
    found = finish(g, like)
    same(found, wanted)
    assert found.dtype == dtype
    assert found.flags.c_contiguous
    assert found.flags.writeable
    found[...] = 99
    same(g, wanted)


# ---- coalescing


def test_coalesced_rows_are_sorted_distinct_summed_once():
    g = Rows([4, 1, 4], [[1.0], [2.0], [3.0]], (6, 1))
    once = g.coalesce()
    assert once.indices.tolist() == [1, 4]
    assert once.values.tolist() == [[2.0], [4.0]]
    assert once.coalesced
    assert g.coalesce() is once
    assert once.coalesce() is once


def test_a_false_claim_to_be_coalesced_is_not_believed():
    g = Rows([4, 4], [[1.0], [3.0]], (6, 1), coalesced=True)
    assert not g.coalesced
    W = np.zeros((6, 1))
    W += g
    same(W[4], [4.0])


def test_sums_are_made_in_order_of_position():
    values = [1e16, 1.0, -1e16, 1.0]
    assert Coo([0] * 4, values, (1,)).coalesce().values[0] == ((1e16 + 1.0) - 1e16) + 1.0


def test_the_numbered_sum_does_not_depend_on_the_order_of_arrival():
    values = [1e16, 1.0, -1e16, 3.7]
    terms = [Coo([0], [v], (1,)) for v in values]
    found = {
        finish(combine([terms[i] for i in order], order=order)).item()
        for order in permutations(range(4))
    }
    assert len(found) == 1


ROUNDING = st.sampled_from([1e16, -1e16, 1.0, 3.7, 2.0**-24, -(2.0**-60), 1e-300, 1e308, -1e308])
HOLDERS = {  # a number as a cotangent of each kind, and the number that comes out
    "number": (float, float),
    "numpy": (np.float64, float),
    "single": (np.float32, float),
    "imaginary": (lambda x: complex(1.0, x), lambda y: y.imag),
    "single complex": (lambda x: np.complex64(complex(x, 2.0)), lambda y: float(y.real)),
    "record": (lambda x: {"w": [x, 0.0]}, lambda y: y["w"][0]),
    "field": (Place := namedtuple("Place", "at"), lambda y: y.at),
    "array": (lambda x: np.array([0.0, x]), lambda y: y[1].item()),
    "array of singles": (lambda x: np.array([x], np.float32), lambda y: y[0].item()),
    "array of no axes": (lambda x: np.array(x), lambda y: y.item()),
    "cells": (lambda x: Coo([1], [x], (3,)), lambda y: y[1].item()),
    "rows": (lambda x: Rows([1], [[x, x]], (3, 2)), lambda y: y[1, 1].item()),
    "several": (lambda x: Dense([x]) + Coo([0], [1.0], (1,)) + Dense([-1.0]), lambda y: y.item()),
}


def a_tree_of_sums(data, terms, through):
    """The terms in any order, combined in any groups of groups, some of them sent on the way."""
    terms = data.draw(st.permutations(terms))
    while len(terms) > 1:
        n = data.draw(st.integers(2, len(terms)))
        part = combine(terms[:n])
        terms = [*terms[n:], data.draw(st.sampled_from(through))(part)]
    return terms[0]


@pytest.mark.parametrize("kind", HOLDERS)
@given(st.lists(ROUNDING | st.floats(-1e100, 1e100), min_size=1, max_size=9), st.data())
def test_the_exact_sum_is_the_true_one_however_the_terms_are_cut(kind, values, data):
    hold, read = HOLDERS[kind]
    narrow = "single" in kind
    if narrow:
        values = [float(np.float32(np.clip(x, -1e30, 1e30))) for x in values]
    sent = [lambda x: x, lambda x: pickle.loads(pickle.dumps(x)), lambda x: from_wire(to_wire(x))]
    if kind == "field":
        sent = sent[:2]  # a wire brings back a record, whose type stays at home
    whole = a_tree_of_sums(data, [hold(x) for x in values], sent)
    found = read(finish(whole, like=hold(0.0), sum="exact"))
    true = sum(map(Fraction, values))
    if abs(true) > 1.7e308:
        wanted = math.inf if true > 0 else -math.inf
    elif narrow:  # the nearest of three neighbours, and of two as near the even one
        near = np.float32(float(true))
        near = [near, *[np.nextafter(near, np.float32(end)) for end in (-np.inf, np.inf)]]
        even = sorted(map(float, near), key=lambda x: int(np.float32(x).view(np.int32)) & 1)
        wanted = min(even, key=lambda x: abs(Fraction(x) - true))
    else:
        wanted = float(true)
    assert found == wanted
    assert type(finish(whole, sum="exact")) in (type(hold(0.0)), dict, np.ndarray)


def test_a_sum_of_numbers_calculates_as_the_rounded_one():
    part = combine([1e16, 1.0, 1.0, 1.0])
    assert part == 10000000000000004.0
    assert repr(part) == "1.0000000000000004e+16"
    assert type(part + 1) is float is type(finish(part)) is type(combine([1.0, 2.0]))
    assert finish(combine([part, -1e16])) == 3.0


@given(kinds, kinds, seeds, dtypes)
def test_the_exact_sum_equals_the_fast_one_where_that_is_exact(k1, k2, seed, dtype):
    (a, x), (b, y) = pair(k1, seed, dtype), pair(k2, seed + 1, dtype)
    same(finish(combine([a, b]), sum="exact"), x + y)
    same(finish((a + b).coalesce("exact")), x + y)


def test_infinities_survive_the_exact_sum():
    g = Coo([0, 0, 1, 1], [np.inf, 1.0, np.inf, -np.inf], (2,))
    np.testing.assert_array_equal(finish(g, sum="exact"), [np.inf, np.nan])


# ---- NumPy's algebra


@given(kinds, seeds, dtypes, st.booleans())
def test_steps_in_place_equal_dense_steps(kind, seed, dtype, contiguous):
    g, x = pair(kind, seed, dtype)
    W = np.ones(SHAPE, dtype) if contiguous else np.ones(SHAPE[::-1], dtype).T
    W -= 2 * g
    same(W, 1 - 2 * x)
    W += g
    same(W, 1 - x)
    assert np.subtract(W, g, out=W) is W
    same(W, 1 - 2 * x)
    np.add(g, W, out=W)
    same(W, 1 - x)
    out = np.empty(SHAPE, dtype)
    np.subtract(W, g, out=out)
    same(out, 1 - 2 * x)


@given(kinds, seeds, dtypes)
def test_linear_algebra_of_builders_equals_that_of_arrays(kind, seed, dtype):
    g, x = pair(kind, seed, dtype)
    W = np.full(SHAPE, 3, dtype)
    for found, wanted in [
        (g * 2, x * 2),
        (2.0 * g, 2.0 * x),
        (np.float32(2) * g, np.float32(2) * x),
        (g / 2, x / 2),
        (-g, -x),
        (+g, x),
        (np.conjugate(g), x.conj()),
        (g.T, x.T),
        (g * W, x * W),
        (W * g, W * x),
        (g * W[0], x * W[0]),
        (g / W, x / W),
        (W + g, W + x),
        (W - g, W - x),
        (g + W, x + W),
        (g - W, x - W),
        (g.astype(np.complex128), x.astype(np.complex128)),
    ]:
        same(found, wanted)
        assert found.dtype == wanted.dtype
        assert found.shape == wanted.shape
    assert g.norm() == pytest.approx(np.linalg.norm(x), rel=1e-5)
    assert np.linalg.norm(g) == g.norm()


@pytest.mark.parametrize("kind", ["zero", "rows", "columns", "coo", "lowrank"])
def test_scaling_keeps_the_kind(kind):
    g = pair(kind, 5)[0]
    assert {type(h) for h in (2 * g, g / 2, -g, g.clip(0.1), g.T, g + g)} == {type(g)}


@pytest.mark.parametrize("kind", ["rows", "columns", "coo"])
def test_functions_that_keep_zero_act_on_the_touched_cells(kind):
    g, x = pair(kind, 5)
    for found, wanted in [
        (g**2, x**2),
        (np.square(g), x**2),
        (abs(g), abs(x)),
        (np.sqrt(g**2), abs(x)),
        (np.tanh(g), np.tanh(x)),
    ]:
        assert type(found) is type(g)
        same(found, wanted)


def test_absent_elements_stay_zero_whatever_they_are_divided_by():
    g = Coo([1], [6.0], (3,))
    same(g / np.array([0.0, 2.0, np.inf]), [0, 3, 0])


@given(kinds, seeds)
def test_other_functions_make_dense_arrays(kind, seed):
    g, x = pair(kind, seed)
    same(np.exp(g), np.exp(x))
    same(np.sum(g, axis=0), x.sum(0))
    same(np.add.reduce(g), x.sum(0))
    same(g @ np.ones((N, 2)), x @ np.ones((N, 2)))
    same(np.ones(M) @ g, np.ones(M) @ x)
    same(1 / (1 + g * g), 1 / (1 + x * x))
    same(np.concatenate([g, g]), np.concatenate([x, x]))


@given(seeds, dtypes)
def test_lowrank_products_equal_those_of_the_matrix(seed, dtype):
    (g, x), (h, y) = pair("lowrank", seed, dtype), pair("lowrank", seed + 1, dtype)
    rng = np.random.default_rng(seed)
    same(g @ numbers(rng, N), x @ numbers(np.random.default_rng(seed), N))
    right, left = numbers(rng, (N, 3), dtype), numbers(rng, (2, M), dtype)
    same(g @ right, x @ right)
    same(left @ g, left @ x)
    product = g @ h.T
    assert type(product) is LowRank
    same(product, x @ y.T)


def test_a_running_average_of_lowrank_does_not_grow_beyond_the_matrix():
    average, dense = Zero(SHAPE), np.zeros(SHAPE)
    for seed in range(20):
        g, x = pair("lowrank", seed)
        average, dense = average * 0.5 + g, dense * 0.5 + x
    assert average.coalesce().rank <= min(SHAPE)
    np.testing.assert_allclose(finish(average), dense)


def test_a_running_average_of_rows_does_not_grow_with_time():
    average = Zero((1000, 4))
    for seed in range(50):
        rows = np.random.default_rng(seed).integers(0, 10, 5)
        average = 0.9 * average + Rows(rows, np.ones((5, 4)), (1000, 4))
    assert average.indices.size <= 10 + 5


def test_clip_scales_to_the_norm_and_leaves_small_ones():
    g, x = pair("rows", 1)
    same(g.clip(1e9), x)
    assert g.clip(0.5).norm() == pytest.approx(0.5)


def test_the_value_read_and_written_may_be_the_same_memory():
    W = np.arange(6.0).reshape(3, 2)
    wanted = W.copy()
    wanted[1:] += W[:2]
    W += Rows([1, 2], W[:2], (3, 2))
    same(W, wanted)
    V = np.eye(3)
    V += LowRank(V, V)
    same(V, 2 * np.eye(3))


def test_densifying_something_large_warns_and_is_an_error_under_strict():
    n = LARGE_BYTES // 8 + 1
    g = Coo([3], [2.0], (n,))
    with pytest.warns(DensifyWarning, match="np.exp: a sparse cotangent of shape") as caught:
        assert np.exp(g)[3] == np.exp(2.0)
    assert caught[0].filename == __file__
    with pytest.warns(DensifyWarning, match="np.sum"):
        assert np.sum(g) == 2.0
    with strict(), pytest.raises(DensifyWarning):
        np.cos(g)
    W = np.zeros(n)
    with warnings.catch_warnings(), strict():
        W -= 0.1 * (g + g)
        np.exp(Coo([3], [2.0], (5,)))
        assert np.asarray(g)[3] == 2.0
    assert W[3] == pytest.approx(-0.4)


# ---- an array to look at


@given(kinds, kinds, seeds)
def test_equality_is_by_value_across_kinds(k1, k2, seed):
    (a, x), (b, y) = pair(k1, seed), pair(k2, seed)
    assert (a == b) == np.array_equal(x, y)
    assert a == Dense(x)
    assert a == a + Zero(SHAPE)
    assert a != Zero((3, 3))
    same(a == x, x == x)


@pytest.mark.parametrize(
    ("g", "text"),
    [
        (Rows(np.arange(100), np.ones((100, 64)), (1_000_000, 64)),
         "Rows(100 of 1 000 000 x 64, 0.01 %)"),
        (Rows([1, 1], np.ones((4, 2)), (4, 10), axis=1), "Rows(1 of 4 x 10 along axis 1, 10 %)"),
        (Coo([1, 5], [1.0, 1.0], (1000, 2)), "Coo(2 of 1 000 x 2, 0.1 %)"),
        (Coo([0], [1.0], ()), "Coo(1 of scalar, 1e+02 %)"),
        (LowRank(np.ones((512, 20)), np.ones((300, 20))), "LowRank(rank 20 of 512 x 300)"),
        (Zero((3, 2), np.float32), "Zero(3 x 2, float32)"),
        (Dense(np.ones(3)), "Dense(3, float64)"),
        (Record({"w": Zero((2,))}), "Record({'w': Zero(2, float64)})"),
    ],
)  # fmt: skip
def test_repr(g, text):
    assert repr(g) == text


@given(kinds, seeds)
def test_shape_dtype_size_and_bytes(kind, seed):
    g, x = pair(kind, seed)
    assert (g.shape, g.dtype, g.ndim, g.size) == (x.shape, x.dtype, x.ndim, x.size)
    assert np.shape(g) == x.shape
    assert g.nbytes == sum(a.nbytes for a in g.arrays())
    with pytest.raises(TypeError):
        hash(g)


@given(kinds, seeds, dtypes)
def test_pickle_and_wire_bring_back_the_same(kind, seed, dtype):
    g = pair(kind, seed, dtype)[0]
    for twin in (pickle.loads(pickle.dumps(g)), from_wire(to_wire(g)), from_wire(to_wire(g + g))):
        assert type(twin) is type(g)
        assert twin.dtype == g.dtype
    assert from_wire(to_wire(g)) == g


def test_the_wire_carries_containers_and_short_indices():
    g = {"emb": Rows([3], np.ones((1, 2)), (10, 2)), "rest": [1.0, (Coo([1], [2.0], (4,)),)]}
    wire = to_wire(g)
    assert all(type(node) is tuple for node in wire)
    assert wire[0][1].dtype == np.int32
    back = finish(from_wire(wire), {"emb": np.ones((10, 2)), "rest": [0.0, (np.ones(4),)]})
    same(back["emb"], finish(g["emb"]))
    assert back["rest"][0] == 1.0
    same(back["rest"][1][0], [0, 2, 0, 0])
    with pytest.raises(StructureError, match="'tree' is no kind of cotangent"):
        from_wire((("tree", 1),))


@pytest.mark.parametrize("kind", ["zero", "rows", "columns", "coo", "dense"])
def test_scipy_gets_the_same_matrix(kind):
    g, x = pair(kind, 2)
    same(g.to_scipy().toarray(), x)


def test_scipy_gets_a_linear_operator_from_lowrank():
    g, x = pair("lowrank", 2)
    same(g.to_scipy() @ np.ones(N), x @ np.ones(N))


def test_a_missing_library_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "tensorflow", None)
    with pytest.raises(ImportError, match=r"to_tf: tensorflow .* `pip install tensorflow`"):
        pair("rows", 0)[0].to_tf()
    with pytest.raises(TypeMismatchError, match="LowRank is no sparse tensor in other libraries"):
        pair("lowrank", 0)[0].to_torch()


# ---- containers


Layer = namedtuple("Layer", ["w", "b"])


@dataclass(frozen=True)
class Model:
    emb: np.ndarray
    layers: list
    name: str = "m"


def model():
    return Model(np.ones((4, 2)), [Layer(np.ones(3), 0.5), Layer(np.ones(3), 0.5)])


def test_a_record_is_finished_in_the_type_of_the_container():
    g = Record({"emb": Rows([1], [[1.0, 2.0]], (4, 2)), "layers": Record({1: Record({"b": 2.0})})})
    found = finish(combine([g, g]), model())
    assert type(found) is Model
    assert found.name == "m"
    assert type(found.layers) is list
    assert type(found.layers[1]) is Layer
    same(found.emb, [[0, 0], [2, 4], [0, 0], [0, 0]])
    same(found.layers[0].w, np.zeros(3))
    assert (found.layers[0].b, found.layers[1].b) == (0.0, 4.0)


def test_zero_of_a_container_finishes_to_zeros():
    found = finish(zero(model()))
    assert found.layers[0].b == 0.0
    same(found.emb, np.zeros((4, 2)))


def test_records_have_the_algebra_of_one_long_vector():
    g = Record({"w": Coo([0], [3.0], (2,)), "deep": {"b": 4.0}, "name": "m"})
    assert g.norm() == 5.0
    assert finish(2 * g - g)["deep"]["b"] == 4.0
    assert g.clip(1.0).norm() == pytest.approx(1.0)
    assert (g / 2)["deep"]["b"] == 2.0
    assert (-g)["name"] == "m"
    assert set(g + {"new": 1.0}) == {"w", "deep", "name", "new"}
    assert pickle.loads(pickle.dumps(g))["deep"] == {"b": 4.0}


class Plain:
    """A class of the user, who declared nothing."""

    def __init__(self, w, name):
        self.w, self.name = w, name


class Slots:
    __slots__ = ("name", "w")

    def __init__(self, w, name):
        self.w, self.name = w, name


@attrs.define
class Defined:
    w: float
    name: str


class Pair(NamedTuple):
    w: float
    name: str


class Settings(dict):
    """A dict with attributes."""


CONTAINERS = {
    "namespace": SimpleNamespace(w=3.0, name="n"),
    "plain class": Plain(3.0, "n"),
    "slots": Slots(3.0, "n"),
    "attrs": Defined(3.0, "n"),
    "NamedTuple": Pair(3.0, "n"),
    "deque": deque([3.0, "n"], maxlen=7),
    "list": [3.0, "n"],
    "tuple": (3.0, "n"),
    "dict": {"w": 3.0, "name": "n"},
    "OrderedDict": OrderedDict(w=3.0, name="n"),
    "defaultdict": defaultdict(list, w=3.0, name="n"),
    "subclass of dict": Settings(w=3.0, name="n"),
    "nested": {"a": [SimpleNamespace(w=(3.0,), name=None)], "b": Plain(2.0, math.sin)},
}


def numbers_of(p):
    return [
        v for v in flatten(p)[0] if v is not None and not callable(v) and not isinstance(v, str)
    ]


@pytest.mark.parametrize("name", CONTAINERS)
def test_the_gradients_of_every_container_combine(name):
    x = CONTAINERS[name]

    g = x if name == "deque" else grad(lambda p: sum(v**2 for v in numbers_of(p)))(x)
    for found in (
        finish(combine([g, g])),
        finish(combine([g, g]), x),
        finish(2 * combine([g, g]) / 2),
    ):
        assert type(found) is type(x)
        leaves, structure = flatten(found)
        assert structure == flatten(g)[1]
        assert leaves == [2 * v if type(v) is float else v for v in flatten(g)[0]]
    assert combine([g, g]).norm() > 0


def test_parts_in_another_order_come_back_in_that_of_the_container():
    assert finish(combine([Record({1: 1.0}), [1.0, 2.0]])) == [1.0, 3.0]
    assert finish(combine([Record({"b": 1.0}), {"a": 1.0, "b": 2.0}])) == {"a": 1.0, "b": 3.0}


def test_a_container_inside_itself_is_refused():
    cyclic, other = [1.0], [2.0]
    cyclic.append(cyclic)
    other.append([3.0, other])
    for act in (
        lambda: finish(combine([cyclic, cyclic])),
        lambda: finish(combine([cyclic, other])),
        lambda: finish(cyclic),
        lambda: finish(zero(cyclic), cyclic),
        lambda: combine([cyclic, cyclic]).norm(),
        lambda: 2 * combine([other, cyclic]),
        lambda: to_wire(other),
    ):
        with pytest.raises(StructureError, match="contains itself"):
            act()


def test_a_container_twice_in_a_tree_is_no_cycle():
    a = {"x": 1.0}
    found = finish(combine([{"p": a, "q": [a, a]}, {"p": a, "q": [a, a]}]))
    assert found == {"p": {"x": 2.0}, "q": [{"x": 2.0}, {"x": 2.0}]}
    b = {"x": 1.0, "y": {"x": 5.0}}
    assert finish(combine([Record({"y": b}), b])) == {"y": {"x": 6.0, "y": {"x": 5.0}}, "x": 1.0}


def test_what_never_calculates_passes_through():
    labels = {"s": "n", "n": None, "f": math.sin, "b": True, "t": float}
    assert finish(combine([labels, labels])) == labels
    assert finish(-(2 * combine([labels, labels]))) == labels
    assert combine([labels, labels]).norm() == 0.0


def test_containers_may_be_three_thousand_deep():
    def cons(depth, leaf):
        chain = None
        for _ in range(depth):
            chain = (leaf, chain)
        return chain

    g = combine([cons(3_000, 1.0), cons(3_000, 2.0)])
    found = from_wire(to_wire(2 * g)).norm(), finish(g, cons(3_000, 0.0))
    assert found[0] == pytest.approx(3.0 * 2 * math.sqrt(3_000))
    depth, rest = 0, found[1]
    while rest is not None:
        assert rest[0] == 3.0
        depth, rest = depth + 1, rest[1]
    assert depth == 3_000


# ---- costs


BIG = (10_000_000, 64)


def big_rows(seed, m=100, shape=BIG):
    rng = np.random.default_rng(seed)
    return Rows(rng.integers(0, shape[0], m), np.ones((m, shape[1])), shape)


def test_adding_and_scaling_rows_of_a_huge_table_takes_less_than_a_megabyte():
    a, b = big_rows(0), big_rows(1)

    def act():
        total = 0.5 * combine([a, b]) - a / 3
        return total.coalesce(), total.norm(), repr(total), from_wire(to_wire(total)) == total

    act()  # SciPy is imported at the first use
    assert count_bytes(act) < 1_000_000


def test_zero_of_a_gigabyte_takes_less_than_a_kilobyte():
    like = np.broadcast_to(0.0, (1 << 14, 1 << 13))
    assert count_bytes(lambda: (Zero(like.shape), zero(like))) < 1024


@pytest.mark.parametrize("kind", [k for k in KINDS if k != "zero"])
def test_combine_costs_the_same_at_any_size(kind):
    costs = set()
    for m in (10, 10_000):
        a, b = pair(kind, 0, m=m)[0], pair(kind, 1, m=m)[0]
        costs.add(count_calls(lambda a=a, b=b: combine([a, b])))
        assert count_bytes(lambda a=a, b=b: combine([a, b])) < 2048
    assert len(costs) == 1


def test_a_long_chain_of_additions_is_linear():
    def chain(k):
        g = Coo([0], [1.0], (10,))
        return count_calls(lambda: reduce(lambda total, _: total + g, range(k), g).coalesce())

    assert chain(20_000) < 11 * chain(2_000)


def test_an_in_place_step_of_a_table_touches_only_its_rows():
    W = np.zeros((100_000, 64), np.float32)
    g = big_rows(0, shape=W.shape).astype(np.float32)

    def step():
        nonlocal W
        W -= 0.1 * g

    step()
    assert count_bytes(step) < 20 * g.nbytes


def test_a_lowrank_step_does_not_form_the_matrix():
    W = np.zeros((1000, 1000))
    g = LowRank(np.ones((1000, 2)), np.ones((1000, 2)))
    assert count_bytes(lambda: np.subtract(W, g, out=W)) < W.nbytes / 2
    assert (W == -2).all()


def test_sparse_pays_follows_the_measured_break_even():
    assert sparse_pays(1000, 100_000, 1)
    assert not sparse_pays(1500, 100_000, 1)
    assert sparse_pays(10_000, 100_000, 8)
    assert sparse_pays(50_000, 100_000, 64)
    assert not sparse_pays(51_000, 100_000, 64)


# ---- the law of chunks


def test_the_gradient_of_a_sum_is_the_combination_of_those_of_its_chunks():
    rng = np.random.default_rng(0)
    data = [
        (int(i), float(c))
        for i, c in zip(rng.integers(0, 20, 40), rng.integers(0, 9, 40), strict=True)
    ]
    chunks = [data[i::4] for i in range(4)]
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        wires = list(pool.map(chunk_gradient, chunks))
    assert combine(map(from_wire, wires)) == from_wire(chunk_gradient(data))


# ---- mistakes


@pytest.mark.parametrize(
    ("act", "error", "message"),
    [
        (lambda: Zero((2,)) + Zero((3,)), ShapeError,
         "cotangents of shapes (2,) and (3,) do not add; their shapes must be equal"),
        (lambda: Rows([9], [[1.0]], (5, 1)), ShapeError,
         "index 9 is out of bounds for an axis of length 5"),
        (lambda: Rows([0], [[1.0]], (5, 1), axis=2), ShapeError,
         "axis 2 does not exist in the shape (5, 1)"),
        (lambda: Rows([0, 1], [[1.0]], (5, 1)), ShapeError,
         "2 indices along axis 0 of an array of shape (5, 1) need values of shape (2, 1), "
         "not (1, 1)"),
        (lambda: Coo([True], [1.0], (5,)), TypeMismatchError,
         "indices of a sparse cotangent are integers, not bool; "
         "np.flatnonzero(mask) gives those of a mask"),
        (lambda: LowRank(np.ones((2, 3)), np.ones((3, 2))), ShapeError,
         "LowRank: U of shape (2, 3) and V of shape (3, 2) give no U @ V.T; "
         "they must be (m, k) and (n, k)"),
        (lambda: LowRank(np.ones((2, 1)), np.ones((3, 1))) @ np.ones(2), ShapeError,
         "matmul: a LowRank of shape (2, 3) and 2 rows do not compose; 3 rows are needed"),
        (lambda: combine([]), StructureError,
         "combine: there is nothing to combine; give at least a Zero(shape)"),
        (lambda: combine([{"w": 1.0}, 2.0]), StructureError,
         "combine: a float and a container do not add; "
         "all terms must be cotangents of the same value"),
        (lambda: finish(Record({"w": 1.0}), {"v": 0.0}), StructureError,
         "finish: a cotangent with the keys ['w'] does not belong to a dict with the keys ['v']; "
         "give the value that was differentiated as like="),
        (lambda: finish(Zero((2,), complex), np.ones(2)), TypeMismatchError,
         "a cotangent of dtype complex128 does not go into an array of dtype float64; "
         "take an array of dtype complex128"),
        (lambda: np.add(1.0, Zero((2,)), out=Zero((2,))), TypeMismatchError,
         "np.add: out= is a Zero, which is immutable; "
         "write g = g + h, or give an ndarray as out="),
        (lambda: finish(Coo([0, 0], np.ones(2, np.longdouble), (1,)), sum="exact"),
         TypeMismatchError,
         f"sum='exact' is for float16, 32, 64 and complex64, 128, not {np.dtype(np.longdouble)}; "
         "use sum='fast'"),
    ],
)  # fmt: skip
def test_messages_say_what_was_asked_found_and_would_work(act, error, message):
    with pytest.raises(error) as caught:
        act()
    assert caught.value.message == message


# ---- check_builder finds what is wrong


class Broken:
    """A user's builder of a list of numbers; each subclass breaks one law."""

    def __init__(self, values):
        self.values = values

    @classmethod
    def merge(cls, terms):
        return cls([v for t in terms for v in t.values])

    def finish(self, like=None):
        return sum(self.values)

    @staticmethod
    def zero(like):
        return Broken([])


class Mutating(Broken):
    @classmethod
    def merge(cls, terms):
        terms[0].values.extend([v for t in terms[1:] for v in t.values])
        return terms[0]


class FirstOnly(Broken):
    @classmethod
    def merge(cls, terms):
        return terms[0]


class Doubling(Broken):
    def finish(self, like=None):
        return 2 * sum(self.values) if len(self.values) > 1 else sum(self.values)


class Eager(Broken):
    @classmethod
    def examples(cls, n):
        return [cls([1.0] * n), cls([2.0] * n)]


@pytest.mark.parametrize(
    ("cls", "law"), [(Mutating, "purity"), (FirstOnly, "commutativity"), (Doubling, "homomorphism")]
)
def test_check_builder_names_the_law_that_fails(cls, law):
    with pytest.raises(RuleError, match=rf"check_builder: {law} "):
        check_builder([cls([1.0]), cls([2.0]), cls([4.0])])


class WithoutAddition:
    def finish(self, like=None):
        return np.zeros(2)


class WithoutFinish:
    @staticmethod
    def merge(terms):
        return terms[0]


class SumsOnly:
    def __init__(self, value=1.0):
        self.value = value

    def __add__(self, other):
        return type(self)(self.value + other.value)


class WithoutZero(SumsOnly):
    def __eq__(self, other):
        return self.value == other.value


class WithoutComparison(SumsOnly):
    @classmethod
    def zero(cls, like):
        return cls(0.0)


class OwnValue(WithoutZero, WithoutComparison):
    pass


class Nothing:
    pass


OWN_VALUE = "finish(like); or, where a sum is its own value, zero(like) and an == of two"


@pytest.mark.parametrize(
    ("cls", "lacks"),
    [
        (WithoutAddition, "merge(terms), a static method that adds them, or a + of two"),
        (WithoutFinish, "finish(like), which gives the number or array that the terms add up to"),
        *[(cls, OWN_VALUE) for cls in (SumsOnly, WithoutZero, WithoutComparison)],
        (Nothing, "the methods of a builder: merge(terms) and finish(like), or +"),
    ],
)
def test_check_builder_names_the_method_that_is_missing(cls, lacks):
    with pytest.raises(RuleError) as e:
        check_builder([cls(), cls()])
    assert e.value.message == f"check_builder: {cls.__name__} lacks {lacks}"


def test_sums_that_are_their_own_values_are_builders():
    check_builder([OwnValue(2.0), OwnValue(3.0), OwnValue(0.5)])


@pytest.mark.parametrize(
    ("given", "what"), [(Nothing, "the class Nothing"), (Nothing(), "one Nothing")]
)
def test_check_builder_says_what_it_takes(given, what):
    with pytest.raises(RuleError) as e:
        check_builder(given)
    assert e.value.message == (
        f"check_builder: {what} is given; give a list of cotangents, a function from a size to "
        "one, or a class that has it as a static method `examples(size)`"
    )


def test_combine_is_called_for_numbers_and_arrays_only():
    called = []

    def step(leaf, g):
        called.append(leaf)
        return leaf - 0.5 * g

    params = {"w": 2.0, "name": "a", "flag": True, "none": None, "b": np.ones(2)}
    g = grad(lambda p: p["w"] ** 2 + p["b"] @ p["b"], combine=step)(params)
    assert [g.pop("b").tolist(), g] == [
        [0.0, 0.0],
        {"w": 0.0, "name": "a", "flag": True, "none": None},
    ]
    assert [type(x) for x in called] == [float, np.ndarray]


def test_check_builder_counts_the_cost_of_adding():
    with pytest.raises(RuleError, match="cost of combine grows with the size"):
        check_builder(Eager)
