"""What looks at values and has no derivative: in programs and over lanes as NumPy gives it."""

import numpy as np
import pytest

import lineara

X = np.array([[3.0, 1.0, 2.0], [2.0, 5.0, 0.5]])
W = np.arange(6.0).reshape(2, 3)
FLAGS = np.array([[True, False, True]] * 2)

FOUND = {
    "argsort(axis=None)": lambda x: x.ravel()[np.argsort(x, axis=None)] * np.arange(6.0),
    "argsort(x, 0)": lambda x: np.argsort(x, 0) * W,
    "argsort(stable=True)": lambda x: np.argsort(x, axis=0, stable=True) * W,
    "argpartition(axis=None)": lambda x: x.ravel()[np.argpartition(x, 2, axis=None)[2]],
    "lexsort": lambda x: np.lexsort((x[0], x[1])) * x[0],
    "searchsorted by position": lambda x: np.searchsorted(np.sort(x[0]), x[1], "right"),
    "searchsorted in a list": lambda x: np.searchsorted([x[0, 1], x[0, 0]], 2.0),
    "digitize by position": lambda x: np.digitize(x[1], [1.0, 2.0, 5.0], True),
    "isclose by position": lambda x: np.isclose([x[0, 0], x[0, 1]], 3.0, 1e-3),
    "isin": lambda x: np.isin(x, [1.0, 2.0]),
    "matrix_rank by position": lambda x: np.linalg.matrix_rank(x, 1e-3),
    "round by position": lambda x: np.round(x, 1),
    "any(where=)": lambda x: np.any(x > 2, axis=1, where=x < 4),
    "all(where=)": lambda x: np.all(x > 2, axis=1, where=x > 1),
    "any of flags(where=)": lambda x: np.any(FLAGS, where=x > 2, axis=1),
    "all(keepdims)": lambda x: np.all(x > 0, keepdims=True),
    "all(axes)": lambda x: np.all(x > 0, axis=(0, 1), keepdims=True),
    "argmax(keepdims)": lambda x: np.argmax(x, keepdims=True),
    "argmax(axis, keepdims)": lambda x: np.argmax(x, axis=1, keepdims=True),
    "argmin": lambda x: np.argmin(x),
    "nanargmax(keepdims)": lambda x: np.nanargmax(x, keepdims=True),
    "count_nonzero": lambda x: np.count_nonzero(x > 1),
    "count_nonzero(keepdims)": lambda x: np.count_nonzero(x > 1, keepdims=True),
    "nanmin(keepdims)": lambda x: np.nanmin(x, axis=None, keepdims=True),
}


@pytest.mark.parametrize("name", FOUND)
def test_a_program_and_lanes_find_what_numpy_finds(name):
    f = FOUND[name]
    program = lineara.trace(lambda x: f(x) * np.sum(x), X)
    lanes = lineara.vmap(f)(np.stack([X, -X]))
    for x, lane in zip((X, -X), lanes, strict=True):
        want = np.asarray(f(x))
        assert lane.shape == want.shape
        assert lane.dtype == want.dtype
        np.testing.assert_array_equal(lane, want)
        got = program(x)
        assert np.shape(got) == want.shape
        np.testing.assert_array_equal(got, want * np.sum(x))
