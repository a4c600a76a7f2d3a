"""Views: parts of parts, in O(1), read densely and by element at once."""

import math
import tracemalloc
from typing import Any

import differences
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lineara
from lineara.errors import MutationError
from lineara.tape.reads import c_strides, locate, reshaped_strides

X = np.sin(np.arange(60.0)).reshape(3, 4, 5)


def gradient(f: Any, x: np.ndarray) -> np.ndarray:
    """The gradient by complex steps, in plain NumPy."""
    found = np.zeros(x.shape)
    for i in np.ndindex(x.shape):
        z = x.astype(complex)
        z[i] += 1e-40j
        found[i] = f(z).imag / 1e-40
    return found


def check(f: Any, x: np.ndarray = X) -> None:
    """Value and gradient of a function of an array, against plain NumPy."""
    value, g = lineara.value_and_grad(f)(x.copy(order="K"))
    assert value == f(x.copy(order="K"))
    assert np.allclose(g, gradient(f, x), rtol=1e-13, atol=1e-14)
    _, ahead = lineara.jvp(f, (x,), (np.cos(x),))
    assert np.isclose(ahead, np.sum(g * np.cos(x)))


FORMS = {
    "element": lambda x: x[1, 2, 3] * x[-1, -2, -3] ** 2,
    "element of an element": lambda x: x[1][2][3] * x[0][1][-1],
    "X.T[i][2:][j]": lambda x: x.T[3][2:][1][2] * x.T[0][1][0],
    "negative steps": lambda x: (x[::-1, ::-2, 3:0:-1] * x[:, 1:3, :3]).sum(),
    "newaxis": lambda x: (x[:, None, 1] * x[None, 1, :, 2][:, :3, None]).sum(),
    "ellipsis": lambda x: (x[..., 2] * x[0, ..., 1:2].T).sum(),
    "empty": lambda x: x[1:1].sum() + x[:, 3:2].sum() + (x[5:] * 2).sum() + x[0, 0, 0],
    "reshape": lambda x: (x.reshape(12, 5)[3] * x.reshape(-1, 2, 5)[2, 1]).sum(),
    "reshape of a part": lambda x: (x[1].reshape(2, 10) * x[:, 1].reshape(-1)[:10]).sum(),
    "ravel and flat": lambda x: x.ravel()[7] * x.T.ravel()[7] * x.flat[9] * x.T.flat[9],
    "transpose": lambda x: (x.transpose(1, 0, 2)[2] * x.swapaxes(0, 1)[3]).sum(),
    "moveaxis": lambda x: (np.moveaxis(x, 0, -1)[1, 2] * np.rollaxis(x, 2)[3, :, 1]).sum(),
    "squeeze": lambda x: (x[:1, 1:2].squeeze() * np.expand_dims(x[2, 3], 0).squeeze(0)).sum(),
    "iteration": lambda x: sum(row[0] * m[1][2] for m in x for row in m),
    "unpacking": lambda x: (lambda a, b, c: (a[1] * b[2] * c[0]).sum())(*x),
    "split": lambda x: (np.split(x, 2, axis=1)[1] * np.array_split(x, 2, axis=1)[0]).sum(),
    "flip": lambda x: (np.flip(x) * np.flip(x, 0)[::-1] * x[:, :, ::-1]).sum(),
    "diagonal": lambda x: (x[0].diagonal() * np.diag(x[1])[:4]).sum(),
    "densely and by element": lambda x: (
        (x[1] * x[1]).sum() * x[1, 2, 3] + x[1][0].sum() * x[1][0][0]
    ),
    "a view twice": lambda x: (lambda v: (v * v[::-1]).sum() * v[0, 1])(x[1]),
    "overlapping": lambda x: (x[:2] * x[1:]).sum() * (x[0, 1:] * x[0, :-1]).sum(),
    "np.sum of a view of a view": lambda x: np.sum(x[1:][:, ::2]) * x[1:].mean(),
    "matrix products of views": lambda x: (x[0].T @ x[1] @ x[2, 0]).sum(),
    "gathers of views": lambda x: (x[1][[0, 2, 2]] * x.T[[1, 1, 4], [0, 3, 0]][:, :1]).sum(),
    "masks of views": lambda x: (x[1][:, ::2][x[1].real[:, ::2] > 0] ** 2).sum(),
}


@pytest.mark.parametrize("name", FORMS)
def test_views(name: str) -> None:
    check(FORMS[name])


@pytest.mark.parametrize("name", FORMS)
def test_views_of_an_array_in_fortran_order(name: str) -> None:
    check(FORMS[name], np.asfortranarray(X))


@pytest.mark.parametrize("name", FORMS)
def test_views_of_a_written_array(name: str) -> None:
    def f(x: Any) -> Any:
        y = x * 1.0
        y[1, 2] = x[0, 0] ** 2
        y[0, 0, 0] = 2.0
        return FORMS[name](y)

    check(f)


@pytest.mark.parametrize("name", FORMS)
def test_views_twice_differentiated(name: str) -> None:
    f, v = FORMS[name], np.cos(X)
    d = lineara.hvp(f)(X, v)
    expected = (lineara.grad(f)(X + 1e-6 * v) - lineara.grad(f)(X - 1e-6 * v)) / 2e-6
    assert np.allclose(d, expected, atol=1e-7)


# --- views and writes ----------------------------------------------------------------------------


def test_a_view_shows_what_is_written_later() -> None:
    def f(x: Any) -> Any:
        row, column, flat, part = x[1], x[:, 1], x.reshape(-1), x[1:, ::2]
        element, copied = x[1, 1, 1], x[1].copy()
        before = (row * 2).sum()
        x[1, 1] = x[0, 0]
        flat[0] = 3.0
        part[0, 0] *= x[2, 3]
        return (
            before
            + (row**2).sum()
            + (column**3).sum()
            + flat.sum() * element
            + (part**2).sum()
            + (copied**2).sum()
        )

    check(f)


def test_writes_through_chains_of_views() -> None:
    def f(x: Any) -> Any:
        v = x.T[1:][:, ::-1]
        w = v[2][None, :, 0]
        w[0, 1] = x[2, 2, 2] ** 2
        w += 1.0
        v[0] *= v[1]
        return (x**2).sum() + w.sum()

    check(f)


@pytest.mark.parametrize("order", ["C", "F"])
def test_reshape_and_ravel_alias_exactly_where_numpys_do(order: Any) -> None:
    def f(x: Any) -> Any:
        total = 0.0
        for make in (
            lambda a: a.reshape(-1),
            lambda a: a.ravel(),
            lambda a: a.T.ravel(),
            lambda a: a.ravel(order="F"),
            lambda a: a.T.reshape(5, 12),
            lambda a: a[:, :, 1:].reshape(-1, 4),
            lambda a: a[:, :, :1].reshape(3, 4),
            lambda a: a.reshape(3, 2, 2, 5)[:, 1],
            lambda a: (a.T + 1).ravel(),
            lambda a: np.transpose(a, (1, 0, 2)).reshape(4, -1),
            lambda a: a.flatten(),
            lambda a: a[::2].ravel(),
            lambda a: a[:1, :1].ravel(),
            lambda a: a[:, 0].reshape(3, -1, 1),
            lambda a: np.asfortranarray(a),
            lambda a: a.copy().T.ravel(),
            lambda a: np.copy(a).T.ravel(),
            lambda a: np.array(a, order="C").ravel(),
            lambda a: np.ravel(a[0].T),
            lambda a: np.squeeze(a[:, :1]),
            lambda a: np.asarray(a),
            lambda a: np.ascontiguousarray(a),
            lambda a: +a,
            lambda a: a.astype(a.dtype),
        ):
            base = x * 1.0
            view = make(base)
            again = view.ravel()
            view[0] = 7.0
            base[1, 1] *= 3.0
            again[1:3] += 2.0
            total += (base**2).sum() * 0.01 + (view**2).sum() * 0.1 + again[4]
        return total

    check(f, np.array(X, order=order))


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.sampled_from([1, 2, 3, 4]), min_size=1, max_size=4),
    st.permutations(range(4)),
    st.lists(st.integers(0, 3), min_size=4, max_size=4),
    st.randoms(),
)
def test_strides_of_a_reshape_are_numpys(shape: Any, axes: Any, steps: Any, random: Any) -> None:
    base = np.arange(math.prod(shape) * 16, dtype=np.int8).reshape([n * 2 for n in shape] + [-1])[
        ..., 0
    ]
    v = np.ascontiguousarray(base) if steps[0] == 0 else base
    v = v.transpose([a for a in axes if a < v.ndim])[
        tuple(slice(None, None, s or 1) for s in steps[: v.ndim])
    ]
    sizes = [n for n in v.shape if n != 1]
    random.shuffle(sizes)
    new = [v.size] if random.random() < 0.3 else list(v.shape)
    if len(new) > 1 and random.random() < 0.7:
        k = random.randrange(len(new) - 1)
        new[k : k + 2] = [new[k] * new[k + 1]]
    new.insert(random.randrange(len(new) + 1), 1)
    found = reshaped_strides(v.shape, v.strides, tuple(new))
    reshaped = v.reshape(new)
    shared = np.shares_memory(reshaped, v)
    assert (found is not None) == shared
    if found is not None:
        real = [(n, s) for n, s in zip(new, found, strict=True) if n > 1]
        assert real == [(n, s) for n, s in zip(new, reshaped.strides, strict=True) if n > 1]


# --- views that are arrays of their own: refused when they would be stale ------------------------

STALE = {
    "broadcast_to": lambda x: np.broadcast_to(x, (2, *x.shape)),
    "broadcast_arrays": lambda x: np.broadcast_arrays(x, np.ones((2, 1, 1, 1)))[0],
    "diagonal": lambda x: x[:, :3].diagonal(),
    "np.diagonal": lambda x: np.diagonal(x[0]),
    "real": lambda x: (x + 1j).real,
    "einsum": lambda x: np.einsum("iij->ij", x[:, :3]),
}


@pytest.mark.parametrize("name", STALE)
def test_views_that_do_not_follow_are_right_or_refused(name: str) -> None:
    make = STALE[name]
    check(lambda x: (make(x) ** 2).sum() * x[0, 0, 0])

    def write_to_it(x: Any) -> Any:
        v = make(x)
        v[0] = 2.0
        return v.sum()

    with pytest.raises(MutationError, match="write to that one, or to a copy"):
        lineara.grad(write_to_it)(X)

    def write_before_use(x: Any) -> Any:
        y = x * 1.0 if name != "real" else x + 1j
        v = y.real if name == "real" else make(y)
        y[0] = 2.0
        return v.sum()

    with pytest.raises(MutationError, match="take the view again"):
        lineara.grad(write_before_use)(X)


ALIASES = {
    "astype(copy=False)": lambda y: y.astype(float, copy=False),
    "astype": lambda y: y.astype(float),
    "np.array(copy=None)": lambda y: np.array(y, copy=None),
    "np.array(copy=False)": lambda y: np.array(y, copy=False),
    "np.array": lambda y: np.array(y),
    "np.array(copy=None, order=F)": lambda y: np.array(y, copy=None, order="F"),
    "np.asarray": lambda y: np.asarray(y),
    "np.asarray(copy=True)": lambda y: np.asarray(y, copy=True),
    "np.clip without bounds": lambda y: np.clip(y, None, None),
    "np.clip": lambda y: np.clip(y, -9.0, 9.0),
    "np.real of real numbers": lambda y: np.real(y),
    "np.diag of a matrix": lambda y: np.diag(y),
    "np.diag(v=)": lambda y: np.diag(v=y),
    "np.diag of a vector": lambda y: np.diag(y[0]),
    "np.diagonal(a=)": lambda y: np.diagonal(a=y),
    "np.atleast_3d": lambda y: np.atleast_3d(y),
    "np.squeeze": lambda y: np.squeeze(y),
    "np.require": lambda y: np.require(y),
    "np.ma.asarray": lambda y: np.ma.asarray(y),
    "np.asmatrix": lambda y: np.asmatrix(y),
    "np.real_if_close": lambda y: np.real_if_close(y),
    "as_strided": lambda y: np.lib.stride_tricks.as_strided(y, (2, 2), (8, 8)),
    "sliding_window_view": lambda y: np.lib.stride_tricks.sliding_window_view(y, 2, axis=1),
    "sliding_window_view of a part": lambda y: np.lib.stride_tricks.sliding_window_view(y[0], 2)[1],
    "np.nan_to_num": lambda y: np.nan_to_num(y),
    "np.expand_dims": lambda y: np.expand_dims(y, 0),
    "np.flip": lambda y: np.flip(y),
    "np.rot90": lambda y: np.rot90(y),
    "np.split": lambda y: np.split(y, 3)[0],
    "np.array of rows": lambda y: np.array([y[0], y[1]]),
    "copy": lambda y: y.copy(),
}


MAY_BE_REFUSED = {n for n in ALIASES if n.startswith(("as_strided", "sliding"))} | {
    "np.diag of a matrix",
    "np.diag(v=)",
    "np.diagonal(a=)",
    "np.require",
    "np.ma.asarray",
    "np.asmatrix",
    "np.real_if_close",
}


@pytest.mark.filterwarnings("ignore:the matrix subclass")
@pytest.mark.parametrize("start", ["traced", "written", "constant", "two levels"])
@pytest.mark.parametrize("name", ALIASES)
def test_an_alias_follows_a_copy_does_not_and_nothing_is_wrong(name: str, start: str) -> None:
    def f(x: Any) -> Any:
        y = np.outer(x, x) if start in ("traced", "written") else np.zeros((3, 3))
        if start == "written":
            y[2] = x * 2

        def read(scale: Any) -> Any:
            v = ALIASES[name](y)
            y[0, 0] = 5 * x[1]
            y[...] *= 2
            y[0] += x
            return scale * (np.abs(v) ** 2).sum() + (y * y).sum()

        return lineara.grad(read)(1.5) + y[0, 1] if start == "two levels" else read(1.5)

    x = np.array([0.7, -1.3, 2.1])
    try:
        value, g = lineara.value_and_grad(f)(x.copy())
    except MutationError:
        assert name in MAY_BE_REFUSED
    except lineara.errors.DetachError:  # of a traced array no plain one may be made
        assert start != "constant"
    except lineara.errors.NoRuleError:
        assert start != "constant"
    else:
        assert np.isclose(value, f(x.copy()), rtol=1e-13)
        differences.agrees(g, f, x)


@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_a_plain_view_that_is_gone_or_lies_elsewhere_refuses_nothing() -> None:
    def f(x: Any) -> Any:
        y, total, windows = np.arange(8.0), 0.0, None
        for i in range(4):
            windows = np.lib.stride_tricks.sliding_window_view(y[4:], 2)
            total += windows.sum()
            y[i] = x[i]
        del windows
        total += np.require(y[4:]).sum() + np.asmatrix(y[6:]).sum()
        y[5] = x[1] ** 2
        y *= 2.0
        return total + y.sum()

    value, g = lineara.value_and_grad(f)(np.arange(4.0))
    assert value == f(np.arange(4.0))
    assert g.tolist() == [2.0, 6.0, 2.0, 2.0]


def test_a_plain_view_cannot_be_written() -> None:
    def f(x: Any) -> Any:
        y = np.zeros(3)
        np.lib.stride_tricks.as_strided(y, (3,), (8,))[0] = 2.0
        return (y * x).sum()

    with pytest.raises((ValueError, MutationError), match=r"read.only"):
        lineara.grad(f)(np.ones(3))


def test_real_and_imaginary_parts_can_be_assigned() -> None:
    def f(x: Any) -> Any:
        z = x[0] + 1j * x[1]
        z.real = x[2] ** 2
        z.imag = z.real * 2
        y = np.real(x)
        y[0, 0] = 3.0
        return (abs(z) ** 2).sum() + x[0].sum()

    value, g = lineara.value_and_grad(f)(X.copy())
    h = 1e-6
    assert np.isclose(value, f(X.copy()), rtol=1e-14)
    for i in ((0, 0, 0), (0, 1, 1), (2, 1, 1)):
        e = np.zeros(X.shape)
        e[i] = h
        assert abs(g[i] - (f(X + e) - f(X - e)) / (2 * h)) < 1e-6


def test_indices_without_axes() -> None:
    check(lambda x: (x[np.array(1)] ** 2).sum() * x[np.array(0), 1, np.int64(2)])

    def f(x: Any) -> Any:
        y = x * 2.0
        copied = y[np.array(1)]
        y[np.array(1)] = 3.0
        y[np.array(2), 0] += x[0, 0]
        return (copied * y[1] * y[2]).sum() + y[np.array(2), 0, 1]

    check(f)


# --- cost ----------------------------------------------------------------------------------------


def test_a_chain_of_views_is_one_view() -> None:
    seen: list[Any] = []

    def f(x: Any) -> Any:
        v = x
        for _ in range(1000):
            v = v[1:]
        seen.append((v.k.offset, v.k.root is x))
        return v[0] * v[-1]

    x = np.arange(1010.0)
    assert lineara.grad(f)(x)[1000] == 1009.0
    assert seen == [(1000, True)]


@pytest.mark.parametrize("n", [10, 100, 1000])
def test_elements_of_rows_cost_nothing_of_the_matrix(n: int) -> None:
    x = np.ones((n, n))

    def f(v: Any) -> Any:
        total = 0.0
        for i in range(5):
            total += v[i][i + 1] * v.T[i][2:][1] + v[i, 1:3].sum()
        return total

    lineara.grad(f, sparse=True)(x)
    tracemalloc.start()
    g = lineara.grad(f, sparse=True)(x)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    copied = x.nbytes if x.nbytes <= 64 * 1024 else 0
    assert peak < 60_000 + 2 * copied
    assert np.array_equal(np.asarray(g), lineara.grad(f)(x))


def test_locate_follows_numpy() -> None:
    a = np.arange(60).reshape(3, 4, 5)
    for at in (
        1,
        (1, slice(None, None, -1)),
        (..., 2),
        (None, 1, ..., 3),
        (slice(5, 0, -2), 0, -1),
        (),
    ):
        offset, strides, shape = locate(at, 0, c_strides(a.shape), a.shape)
        part = np.asarray(a[at])
        assert shape == part.shape
        positions = np.full(shape, offset)
        for axis, (n, s) in enumerate(zip(shape, strides, strict=True)):
            positions = positions + (np.arange(n) * s).reshape(-1, *(1,) * (len(shape) - axis - 1))
        assert np.array_equal(positions, part)


@pytest.mark.parametrize("part", [0, -1, slice(1), slice(None, None, -1)])
def test_a_part_of_a_complex_array_follows_the_rules_of_complex_numbers(part: Any) -> None:
    z = np.exp(1j * np.arange(6.0)).reshape(2, 3) * (1 + np.arange(6.0)).reshape(2, 3)
    got = lineara.grad(lambda z: np.sum(np.abs(z[part] * z[part]) ** 2))(z)
    expected = np.zeros_like(z)
    expected[part] = 4 * np.abs(z[part]) ** 2 * z[part]  # the gradient of |z|**4
    assert np.allclose(got, expected, rtol=1e-13)


def test_many_small_views_of_several_forms_and_dtypes() -> None:
    def f(x: Any) -> Any:
        rows, columns = [x[i] for i in (0, 1, 0)], [x[:, j, ::2] for j in (3, 3, 0)]
        return sum(np.prod(v) for v in (*rows, *columns)) + np.sum(x[0][1] ** 2) * x[1][2][3]

    check(f)
    single = lineara.grad(f)(X.astype(np.float32))
    assert single.dtype == np.float32
    assert np.allclose(single, gradient(f, X), rtol=1e-4, atol=1e-5)
    for where in (True, False):
        g = lineara.grad(f, sparse=where)(X)
        assert np.allclose(np.asarray(g), gradient(f, X), rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128])
@pytest.mark.parametrize(
    ("shape", "at"),
    [
        ((50, 300), np.arange(120) % 50 - 25),
        ((40, 7, 90), np.arange(100).reshape(10, 10) % 40),
        ((40, 300), (slice(None), np.arange(200) * 7 % 300)),
        ((6, 40, 50), (slice(None), np.arange(60).reshape(20, 3) % 80 - 40)),
        ((5000, 3), np.arange(3000) ** 2 % 5000),
        ((40, 300), (np.arange(90) % 40).astype(np.uint8)),
        ((30, 30), (np.arange(5000) % 30,)),
    ],
)
def test_rows_that_are_read_many_times_add_up(shape, at, dtype):
    rng = np.random.default_rng(0)
    x = rng.normal(size=shape).astype(dtype)
    c = rng.normal(size=x[at].shape).astype(dtype)
    _, pull = lineara.vjp(lambda x: (x[at], 2 * x[at]), x)  # two reads meet in one gradient
    (found,) = pull((c, c))
    want = np.zeros(shape, dtype)
    np.add.at(want, at, 3 * c)
    tolerance = 1e-3 if dtype == np.float32 else 1e-11  # sums of up to 200 terms
    assert found.dtype == dtype
    np.testing.assert_allclose(found, want, rtol=tolerance, atol=tolerance)
