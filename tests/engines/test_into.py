"""`jit(f).into(out)`: the results are put into arrays that there are, and nothing else differs."""

import copy
import pickle
import tracemalloc
from dataclasses import dataclass

import numpy as np
import pytest
from call_counts import calls
from hypothesis import given
from hypothesis import strategies as st

import lineara
from lineara.errors import ShapeError, StagingError, StructureError, TypeMismatchError

pytest.importorskip("llvmlite")

X = np.array([0.3, 0.9, 0.51, 0.11, 0.7])


@dataclass
class Pair:
    a: np.ndarray
    b: np.ndarray


def filled(x):
    y = np.zeros(x.shape[0])
    y[0] = x[0]
    for i in range(1, x.shape[0]):
        y[i] = 0.9 * y[i - 1] + x[i] * y[i - 1]
    return y


CASES = {
    "an array": (lambda x: np.sin(x) * x, (X,)),
    "a gradient": (lineara.grad(lambda x: filled(x).sum()), (X,)),
    "a matrix": (lambda m: m.T @ m, (np.arange(6.0).reshape(2, 3),)),
    "a loop": (filled, (np.linspace(-0.5, 0.5, 50),)),
    "a tuple": (lambda x: (x * 2.0, x[::-1] > 0.2), (X,)),
    "containers": (lambda x: {"a": x * 2.0, "b": [x[1:], (x[:2] * 3.0,)]}, (X,)),
    "a class": (lambda x: Pair(x + 1.0, np.arange(3) * 2), (X,)),
    "an argument as it is": (lambda x: x, (X,)),
    "one array twice": (lambda x: (x, x), (X,)),
    "nothing": (lambda x: x * 2.0, (np.zeros(0),)),
    "float32": (lambda x: x * 2, (X.astype(np.float32),)),
}


def empty_like(tree):
    leaves, structure = lineara.trees.flatten(tree)
    return lineara.trees.unflatten(structure, [np.full_like(v, 7) for v in leaves])


def arrays(tree):
    return lineara.trees.flatten(tree)[0]


@pytest.mark.parametrize("engine", ["native", "interpreter", "adaptive"])
@pytest.mark.parametrize("case", CASES)
def test_the_arrays_have_the_results_and_are_given_back(case, engine):
    f, args = CASES[case]
    jitted = lineara.jit(f, engine=engine)
    expected = jitted(*args)
    out = empty_like(expected)
    put = jitted.into(out)
    for _ in range(4):  # captured, run, called directly
        for v in arrays(out):
            v[...] = 0
        got = put(*args)
        assert type(got) is type(expected)
        assert all([a is b for a, b in zip(arrays(got), arrays(out), strict=True)])
        for v, e in zip(arrays(out), arrays(expected), strict=True):
            np.testing.assert_array_equal(v, e)
            assert v.dtype == e.dtype


def fast(n=5):
    """A call that machine code makes, its argument, and where the result is put."""
    x, out = np.linspace(0.1, 0.9, n), np.empty(n)
    put = lineara.jit(lambda x: np.sin(x) * x[::-1], engine="native").into(out)
    for _ in range(3):
        put(x)
    return put, x, out


def test_no_array_is_made_and_no_function_of_pythons_is_called():
    for n in (1_000, 100_000):
        put, x, out = fast(n)
        assert calls(lambda: put(x)) == 1  # noqa: B023  # the lambda; `put` is machine code
        tracemalloc.start()
        put(x)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 1_000  # with a result of its own it would be 8 n
        np.testing.assert_array_equal(out, np.sin(x) * x[::-1])


@given(first=st.integers(0, 12), k=st.integers(0, 12), n=st.integers(1, 6))
def test_memory_of_an_argument_may_be_written(first, k, n):
    memory = np.linspace(0.1, 0.9, 20)
    x, out = memory[first : first + n], memory[k : k + n]
    expected = np.sin(x) * x[::-1]
    put = REVERSED.into(out)
    put(x.copy())
    put(x.copy())
    memory[:] = np.linspace(0.1, 0.9, 20)
    assert put(x) is out
    np.testing.assert_array_equal(out, expected)


REVERSED = lineara.jit(lambda x: np.sin(x) * x[::-1], engine="native")


def test_arrays_that_lie_in_another_way_get_a_copy():
    put, x, _ = fast()
    expected = np.sin(x) * x[::-1]
    for out in (np.empty(10)[::2], np.empty(5)[::-1], np.empty(41, np.uint8)[1:].view(float)):
        assert put.jitted.into(out)(x) is out
        np.testing.assert_array_equal(out, expected)


def test_what_becomes_of_an_array_later_is_looked_at_in_each_call():
    put, x, out = fast()
    out.flags.writeable = False
    with pytest.raises(TypeMismatchError) as caught:
        put(x)
    assert caught.value.message == "into: out is read-only; pass an array that can be written"
    out.flags.writeable = True
    out.shape = (5, 1)
    with pytest.raises(ShapeError, match=r"the result for out is f64\[5\], and out is f64\[5,1\]"):
        put(x)
    out.shape = (5,)
    assert put(x) is out
    np.testing.assert_array_equal(out, np.sin(x) * x[::-1])


SCALE = 2.0


def test_what_the_function_reaches_may_change(monkeypatch):
    put = lineara.jit(lambda x: x * SCALE, engine="native").into(np.empty(5))
    for _ in range(3):
        np.testing.assert_array_equal(put(X), X * 2.0)
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    np.testing.assert_array_equal(put(X), X * 3.0)


def test_other_shapes_go_the_long_way_and_come_back():
    put, x, out = fast()
    with pytest.raises(ShapeError):
        put(x[:3])
    assert put(x) is out


@pytest.mark.parametrize(
    ("out", "kind", "said"),
    [
        (1.0, TypeMismatchError, "into: the results of f are put into arrays of NumPy's, and out "
         "is 1.0; pass np.empty of the shape and the dtype of the result"),
        (3, TypeMismatchError, "into: the results of f are put into arrays of NumPy's, and out "
         "is 3; pass np.empty of the shape and the dtype of the result"),
        ([np.empty(5), None], TypeMismatchError, "into: the results of f are put into arrays of "
         "NumPy's, and out[1] is None; pass np.empty of the shape and the dtype of the "
         "result"),
        (np.ma.masked_array(X, X > 1), TypeMismatchError, "into: the results of f are put into "
         "arrays of NumPy's, and out is f64[5]; pass np.empty of the shape and the dtype of the "
         "result"),
        (np.broadcast_to(1.0, (5,)), TypeMismatchError,
         "into: out is read-only; pass an array that can be written"),
        ((X, X[1:]), StructureError, "into: out[0] and out[1] lie in the same memory, so one "
         "result would be put over the other; pass arrays of their own"),
    ],
)  # fmt: skip
def test_what_no_result_can_be_put_into_is_refused_at_once(out, kind, said):
    def f(x):
        return x * 2.0

    with pytest.raises(kind) as caught:
        lineara.jit(f).into(out)
    assert caught.value.message == said


@pytest.mark.parametrize(
    ("result", "out", "kind", "said"),
    [
        (lambda x: x, (np.empty(5),), StructureError,
         "into: f gives Structure(*), and out is Structure((*,)); pass arrays in the containers of "
         "the result"),
        (lambda x: (x, 3), (np.empty(5), np.empty(5)), ShapeError, "into: the result for out[1] is "
         "i64[], and out[1] is f64[5]; pass an array of the type of the result"),
        (lambda x: x, np.empty(5, ">f8"), ShapeError, "into: the result for out is f64[5], and out "
         "is f64[5] in another byte order; pass an array of the type of the result"),
        (lambda x: x, np.empty(4), ShapeError, "into: the result for out is f64[5], and out is "
         "f64[4]; pass an array of the type of the result"),
        (lambda x: x, np.empty(5, np.float32), ShapeError, "into: the result for out is f64[5], "
         "and out is f32[5]; pass an array of the type of the result"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("engine", ["native", "interpreter"])
def test_another_result_than_the_arrays_are_made_for_is_refused(result, out, kind, said, engine):
    def f(x):
        return result(x)

    before = copy.deepcopy(out)
    put = lineara.jit(f, engine=engine).into(out)
    for _ in range(3):
        with pytest.raises(kind) as caught:
            put(X)
        assert caught.value.message == said
    np.testing.assert_array_equal(arrays(out)[0], arrays(before)[0])


@pytest.mark.parametrize(
    "around",
    [
        lambda f: lineara.grad(lambda x: f(x).sum()),
        lambda f: lineara.jit(lambda x: f(x) + 1.0),
        lambda f: lineara.vmap(lambda a: f(np.array([a, a, a, a, a]))),
    ],
)
def test_where_results_are_no_numbers_yet_it_is_refused(around):
    put, x, out = fast()
    before = out.copy()
    with pytest.raises(StagingError) as caught:
        around(put)(x)
    assert caught.value.message == (
        "into: <lambda> is called where a derivative is taken or a program is written, and only "
        "numbers are put into out; call the function itself there"
    )
    np.testing.assert_array_equal(out, before)


@pytest.mark.parametrize("engine", ["native", "interpreter"])
def test_a_number_goes_into_an_array_without_axes(engine):
    value, slope = np.empty(()), np.empty(5)
    put = lineara.jit(lineara.value_and_grad(lambda x: (x * x).sum()), engine=engine)
    put = put.into((value, slope))
    for k in range(4):
        y, g = put(X * k)
        assert y is value
        assert g is slope
        np.testing.assert_allclose(value, (X * k) @ (X * k))
        np.testing.assert_array_equal(slope, 2 * k * X)


def test_an_error_of_the_function_is_raised_as_ever():
    put = lineara.jit(lambda x, i: x[i] * np.ones(2), engine="native").into(np.empty(2))
    for _ in range(3):
        np.testing.assert_array_equal(put(X, 1), [0.9, 0.9])
    with pytest.raises(IndexError, match="7"):
        put(X, 7)
    np.testing.assert_array_equal(put(X, 0), [0.3, 0.3])


def doubled(x):
    return x * 2.0


def test_it_pickles_with_its_arrays():
    put = pickle.loads(pickle.dumps(lineara.jit(doubled).into(np.empty(5))))
    np.testing.assert_array_equal(put(X), X * 2.0)
    assert repr(put).endswith("doubled at " + repr(doubled).rpartition(" ")[2] + "> into f64[5]>")
