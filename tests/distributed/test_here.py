"""Sums over chunks in this process: what they are, and what they refuse.  Dask is not needed."""

import json
import os
import pickle
import subprocess
import sys
import tracemalloc
from fractions import Fraction
from functools import partial

import losses
import numpy as np
import pytest

import lineara
from lineara import distributed
from lineara.cotangent import Coo, Dense, LowRank, Rows
from lineara.distributed.exact_sums import compressed, rounded_cells
from lineara.distributed.messages import packed, unpacked
from lineara.distributed.runs import tree
from lineara.errors import DistributedError, LinearaError, StructureError, TypeMismatchError

RNG = np.random.default_rng(3)
X, Y = RNG.normal(size=(60, 4)), RNG.random(60)
P = {"w": RNG.normal(size=4), "b": 0.5}
ONE = dict(os.environ, OPENBLAS_NUM_THREADS="1")


def same(a, b):
    """Whether two values and gradients have the same bits."""
    return (
        np.array_equal(a[0], b[0])
        and np.array_equal(a[1]["w"], b[1]["w"])
        and np.array_equal(a[1]["b"], b[1]["b"])
    )


def test_the_gradient_is_that_of_the_sum():
    value, g = distributed.value_and_grad(losses.logistic, P, (X, Y), chunks=7)
    expected, of_all = lineara.value_and_grad(losses.logistic)(P, (X, Y))
    assert value == pytest.approx(expected)
    assert g["w"] == pytest.approx(of_all["w"])
    assert g["b"] == pytest.approx(of_all["b"])


def test_a_list_of_chunks_an_array_and_a_dict_are_the_same_data():
    pairs = [(X[i : i + 7], Y[i : i + 7]) for i in range(0, 60, 7)]
    by_name = distributed.value_and_grad(
        lambda p, c: losses.logistic(p, (c["x"], c["y"])), P, {"x": X, "y": Y}, chunks=7
    )
    listed = distributed.value_and_grad(losses.logistic, P, iter(pairs))
    array = distributed.value_and_grad(losses.logistic, P, (X, Y), chunks=7)
    assert same(listed, array)
    assert same(by_name, array)


def test_files_are_read_where_they_are_worked_on(tmp_path):
    for i in range(3):
        np.save(tmp_path / f"{i}.npy", X[20 * i : 20 * i + 20, 0])
    names = (str(tmp_path / f"{i}.npy") for i in range(3))
    read = distributed.value_and_grad(losses.cubes, 0.5, names, load=np.load)
    assert read == distributed.value_and_grad(losses.cubes, 0.5, X[:, 0].copy(), chunks=20)


def test_an_xarray_object_is_divided_along_a_dimension():
    xarray = pytest.importorskip("xarray", reason="the extra frames")
    data = xarray.DataArray(X, dims=("time", "place"))
    f = lambda w, c: np.sum((np.asarray(c) - w) ** 2)  # noqa: E731
    by_time = distributed.value_and_grad(f, 0.5, data, chunks={"time": 20})
    assert by_time == distributed.value_and_grad(f, 0.5, X, chunks=20)
    with pytest.raises(TypeMismatchError, match=r"names none of time: 60, place: 4; give chunks="):
        distributed.value_and_grad(f, 0.5, data, chunks=20)


def test_strides_do_not_count():
    """A slice that is not contiguous gives what its copy gives: so does one that has travelled."""
    wide = RNG.normal(size=(60, 800))
    params = {"w": RNG.normal(size=400), "b": 0.5}
    every_second = distributed.value_and_grad(losses.logistic, params, (wide[:, ::2], Y), chunks=9)
    copied = (wide[:, ::2].copy(), Y)
    assert same(every_second, distributed.value_and_grad(losses.logistic, params, copied, chunks=9))


def test_gradients_stay_sparse():
    table, places = RNG.normal(size=(100_000, 2)), [np.array([5, 9, 5]), np.array([9, 70])]
    _, g = distributed.value_and_grad(losses.lookups, table, places, out="builder")
    assert isinstance(g, Rows)
    assert g.indices.tolist() == [5, 9, 70]
    _, dense = lineara.value_and_grad(losses.lookups)(table, np.concatenate(places))
    assert np.asarray(g) == pytest.approx(dense)


def test_what_has_low_rank_travels_as_factors():
    W, chunks = {"W": RNG.normal(size=(200, 300))}, RNG.normal(size=(4, 2, 300))
    _, g = distributed.value_and_grad(losses.layers, W, list(chunks), out="builder")
    assert isinstance(g["W"], LowRank)
    assert g["W"].rank == 8
    assert g["W"].nbytes == 8 * 8 * 500


def test_what_is_not_sparse_any_more_is_sent_as_an_array():
    table, places = RNG.normal(size=12), [np.arange(8), np.arange(4, 12)]
    _, g = distributed.value_and_grad(losses.lookups, table, places, out="builder")
    assert isinstance(g, Dense)


@pytest.mark.parametrize("engine", ["native", "interpreter"])
def test_a_program_gives_the_same(engine):
    value, g = distributed.value_and_grad(
        losses.lookups,
        np.linspace(0, 1, 100),
        [np.array([3, 4]), np.array([4, 9])],
        engine=engine,
        out="builder",
    )
    plain = distributed.value_and_grad(
        losses.lookups, np.linspace(0, 1, 100), [np.array([3, 4]), np.array([4, 9])]
    )
    assert value == pytest.approx(plain[0])
    assert np.asarray(g) == pytest.approx(plain[1])
    assert isinstance(g, Rows)


def test_what_is_no_program_runs_as_it_is():
    def reads_values(w, chunk):
        return w * float(str(float(np.sum(chunk)))) + (w if float(w) > 0 else -w)

    chunks = [np.ones(2), np.ones(3)]
    program = distributed.value_and_grad(reads_values, 2.0, chunks, engine="interpreter")
    assert program == distributed.value_and_grad(reads_values, 2.0, chunks)


def test_second_derivatives_rows_and_lanes():
    v = {"w": np.ones(4), "b": 1.0}
    product = distributed.hvp(losses.logistic, P, v, (X, Y), chunks=7)
    whole = lineara.hvp(lambda p: losses.logistic(p, (X, Y)))(P, v)
    assert product["w"] == pytest.approx(whole["w"])
    assert product["b"] == pytest.approx(whole["b"])
    linear = lambda p, c: c[0] @ p["w"] + p["b"]  # noqa: E731
    rows = distributed.jacobian(linear, P, (X, Y), chunks=7)
    assert np.array_equal(rows["w"], X)
    assert np.array_equal(rows["b"], np.ones(60))
    each = distributed.vmap(lineara.grad(linear), P, (X, Y), chunks=7)
    assert np.array_equal(each["w"], X)


def test_scipy_minimizes_it():
    scipy = pytest.importorskip("scipy.optimize", reason="SciPy has the minimizer")
    m = distributed.minimizable(losses.logistic, P, (X, Y), chunks=20)
    fits = scipy.minimize(m.fun, m.x0, jac=True, method="L-BFGS-B", options={"gtol": 1e-9})
    newton = scipy.minimize(m.fun, m.x0, jac=True, hessp=m.hessp, method="Newton-CG")
    assert m.unravel(fits.x)["w"] == pytest.approx(m.unravel(newton.x)["w"], abs=1e-3)


def drawn(seed):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(20_000, 4)), rng.random(20_000)


def most_bytes(call):
    """The most bytes of Python's and NumPy's memory at a time, and what the call gives."""
    tracemalloc.start()
    try:
        result = call()
        return tracemalloc.get_traced_memory()[1], result
    finally:
        tracemalloc.stop()


def test_memory_does_not_grow_with_the_number_of_chunks():
    """Chunks are made where they are worked on, by a name or a seed, and none is kept."""
    scipy = pytest.importorskip("scipy.optimize", reason="SciPy has the minimizer")
    few, many = [
        distributed.minimizable(losses.logistic, P, iter(range(n)), load=drawn) for n in (3, 60)
    ]
    few.fun(few.x0)  # what is made once
    a, b = [most_bytes(lambda m=m: m.fun(m.x0)) for m in (few, many)]
    assert b[1][0] > 10 * a[1][0]
    assert a[0] > 20_000 * 5 * 8
    assert b[0] < 1.1 * a[0]  # with 20 times as many chunks
    fit = partial(scipy.minimize, few.fun, few.x0, jac=True, method="L-BFGS-B")
    whole, found = most_bytes(fit)
    assert found.success
    assert whole < 1.2 * a[0]


def test_progress_is_a_line_on_stderr(capsys):
    distributed.value_and_grad(losses.logistic, P, (X, Y), chunks=20, progress=True)
    distributed.value_and_grad(losses.logistic, P, (X, Y), chunks=20, progress=False)
    shown = capsys.readouterr()
    assert shown.err.count("value_and_grad, chunks") == 1
    assert "100%" in shown.err
    assert shown.out == ""


# --- exact sums -----------------------------------------------------------------------------------


def test_exact_sums_do_not_depend_on_the_chunks():
    results = [
        distributed.value_and_grad(losses.logistic, P, (X, Y), chunks=n, sum="exact")
        for n in (1, 7, 60)
    ]
    assert same(results[0], results[1])
    assert same(results[0], results[2])


def test_an_exact_sum_is_the_true_sum_of_what_the_rows_give():
    each = [lineara.grad(losses.logistic)(P, (X[i : i + 1], Y[i : i + 1])) for i in range(60)]
    _, g = distributed.value_and_grad(losses.logistic, P, (X, Y), chunks=9, sum="exact")
    for j in range(4):
        assert g["w"][j] == float(sum(Fraction(float(one["w"][j])) for one in each))
    assert g["b"] == float(sum(Fraction(float(one["b"])) for one in each))


def test_exact_sums_of_complex_and_narrow_numbers():
    z = RNG.normal(size=10) + 1j * RNG.normal(size=10)
    f = lambda w, c: np.sum(np.abs(w * c[:, None]) ** 2)  # noqa: E731
    w = np.array([1 + 2j, 3 - 1j])
    a, b = [distributed.value_and_grad(f, w, z, chunks=n, sum="exact")[1] for n in (3, 10)]
    assert np.array_equal(a, b)
    assert a == pytest.approx(lineara.grad(f)(w, z))
    narrow = np.float32([1.0, 2.0])
    cubed = lambda w, c: np.sum((w * np.float32(c)[:, None]) ** 3)  # noqa: E731
    _, g = distributed.value_and_grad(cubed, narrow, X[:9, 0], chunks=2, sum="exact")
    each = [lineara.grad(cubed)(narrow, X[i : i + 1, 0]).astype(float) for i in range(9)]
    assert g.dtype == np.float32
    assert g[0] == np.float32(sum(Fraction(one[0]) for one in each))


def test_compressed_cells_keep_the_true_sum():
    places = RNG.integers(0, 5, 400)
    numbers = RNG.normal(size=400) * 10.0 ** RNG.integers(-300, 300, 400)
    halves = [compressed(places[s], numbers[s]) for s in (slice(0, 150), slice(150, 400))]
    at, kept = compressed(*[np.concatenate(column) for column in zip(*halves, strict=True)])
    cells, sums = rounded_cells(at, kept, np.dtype(float))
    assert len(kept) < 400
    for cell, total in zip(cells, sums, strict=True):
        assert total == float(sum(map(Fraction, numbers[places == cell])))


def test_sums_on_the_way_may_be_too_large_for_a_float():
    big = np.finfo(float).max
    at, kept = compressed(np.zeros(4, int), np.array([big, big, -big, -1.0]))
    assert rounded_cells(at, kept, np.dtype(float))[1].tolist() == [big]


def test_infinities_and_nan_are_their_own_sum():
    numbers = np.array([np.inf, 1.0, np.inf, -np.inf, 2.0, np.nan])
    at, kept = compressed(np.array([0, 0, 1, 1, 2, 3]), numbers)
    assert repr(rounded_cells(at, kept, np.dtype(float))[1].tolist()) == "[inf, nan, 2.0, nan]"


def test_pieces_must_not_be_divided():
    with pytest.raises(DistributedError, match=r"chunks of a multiple of so many rows, but chunk"):
        distributed.value_and_grad(losses.logistic, P, (X, Y), chunks=7, sum="exact", piece=2)
    even = [
        distributed.value_and_grad(losses.logistic, P, (X, Y), chunks=n, sum="exact", piece=2)
        for n in (8, 30)
    ]
    assert same(*even)


# --- messages and trees ---------------------------------------------------------------------------


def test_a_message_holds_what_the_wire_form_can():
    sent = {
        "rows": Rows([1, 3], np.float32([[1, 2], [3, 4]]), (5, 2)),
        "cells": Coo([7], [1j], (3, 3)),
        "factors": LowRank(np.ones((3, 1)), np.ones((2, 1))),
        "numbers": (1.5, 2 + 3j, np.float32(0.1), 7, None, "name", True),
        "inf": float("-inf"),
    }
    got, notes = unpacked(packed(sent, {"moved": 3}))
    assert notes == {"moved": 3}
    for name in ("rows", "cells", "factors"):
        assert np.array_equal(np.asarray(got[name]), np.asarray(sent[name]))
        assert got[name].dtype == sent[name].dtype
    assert tuple(got["numbers"].fields.values()) == sent["numbers"]
    assert type(got["numbers"][2]) is np.float32
    assert got["inf"] == float("-inf")


def test_an_object_does_not_travel():
    with pytest.raises(TypeMismatchError, match=r"does not travel between workers; what a chunk"):
        packed(object(), {})


def test_arrays_of_a_message_are_aligned():
    got, _ = unpacked(packed([np.ones(3, np.int8), np.ones(5)], {}))
    assert got[1].array.ctypes.data % 16 == 0


@pytest.mark.parametrize("count", [1, 8, 9, 64, 65, 1000])
def test_the_tree_of_sums_has_each_chunk_once_in_order(count):
    def join(*parts):
        assert 2 <= len(parts) <= 8
        return [i for part in parts for i in part]

    assert tree(count, lambda i: [i], join) == list(range(count))


# --- errors ---------------------------------------------------------------------------------------


def test_a_chunk_with_nan_is_named():
    chunks = [np.ones(2), np.array([1.0, np.nan]), np.ones(1), np.array([np.nan])]
    with pytest.raises(DistributedError) as error:
        distributed.value_and_grad(losses.cubes, 0.5, chunks)
    assert error.value.message == (
        "value_and_grad: NaN came from chunk 1, 3 of 4 (counted from 0); nan='keep' adds it, and "
        "lineara.explain_nan(loss)(params, chunk) says where it began"
    )
    assert np.isnan(distributed.value_and_grad(losses.cubes, 0.5, chunks, nan="keep")[1])


def test_a_chunk_that_raises_is_named_with_the_line():
    chunks = [np.ones(2), np.ones((2, 2))]
    with pytest.raises(DistributedError) as error:
        distributed.value_and_grad(lambda w, c: np.sum(w * c @ np.ones(3)), 0.5, chunks)
    assert error.value.message.startswith("value_and_grad: chunk 0 of 2 raised ShapeError: matmul:")
    assert error.value.line.startswith("test_here.py:")
    assert "np.sum(w * c @ np.ones(3))" in error.value.line


REFUSED = [
    ({"data": X}, "value_and_grad: chunks=None of data with 60 rows; give the number of rows"),
    ({"data": X, "chunks": 0}, "value_and_grad: chunks=0 of data with 60 rows"),
    ({"data": []}, "value_and_grad: the data has no chunks"),
    ({"data": 3.0}, "value_and_grad: f64\\[\\] is no data in chunks; give a list of chunks"),
    ({"data": "a.npy"}, "value_and_grad: str 'a.npy' is no data in chunks"),
    ({"data": (X, Y[:9]), "chunks": 9}, "different numbers of chunks .0: 7, 1: 1."),
    ({"data": [X], "client": "thread"}, "client=.*; give a distributed.Client, 'threads'"),
    ({"data": [X], "engine": "adaptive"}, "engine='adaptive'; give 'native' or 'interpreter'"),
    ({"data": [X], "nan": "no"}, "nan='no'; give 'error' or 'keep'"),
    ({"data": [X], "sum": "true"}, "sum='true' and piece=1; sum is 'fast' or 'exact'"),
    ({"data": [3.0], "sum": "exact"}, "divides a chunk into rows, and f64.. has none"),
]


@pytest.mark.parametrize(("given", "text"), REFUSED, ids=[text[:30] for _, text in REFUSED])
def test_what_is_refused(given, text):
    with pytest.raises((TypeMismatchError, StructureError, DistributedError), match=text):
        distributed.value_and_grad(losses.cubes, 0.5, **given)


def test_an_error_of_ours_that_has_travelled_keeps_its_line():
    error = LinearaError("what was asked", line="model.py:3 in f: x.sum(3)")
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.message, again.line) == (str(error), error.message, error.line)


def test_the_package_does_not_need_dask():
    program = (
        "import sys, json, lineara.distributed as d;"
        "d.value_and_grad(lambda w, c: w * c, 1.0, [2.0]);"
        "print(json.dumps([m for m in sys.modules if m in ('dask', 'distributed')]))"
    )
    run = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, env=ONE)
    assert json.loads(run.stdout) == []
